"""What the seeds' own loops do, in ours. What their hooks do is in `tests/conformance`."""

from __future__ import annotations

import pytest

from fairlead import HookAborted, abort, change, deny, extend, stop
from fairlead.hosts.loop.agent import FEEDBACK

LOOK = ("Looking.", [("look", {"at": "a"})])


# --- seed 000, stakpak: a request, its state and its checkpoint ----------------------------------


async def test_000_state_that_a_hook_edits_is_seen_by_every_later_hook_of_the_request(scene):
    played = scene()
    played.add(lambda step: step.state.update(input="built"), on="before_request", name="builds")
    await played.play()
    (after,) = played.steps("after_request")
    assert after.state == {"input": "built"}


async def test_000_state_lasts_from_one_request_to_the_next(scene):
    played = scene()
    played.add(lambda step: step.state.update(n=step.state.get("n", 0) + 1), on="before_request", name="counts")
    await played.play("One.", "Two.")
    assert played.agent.session.state == {"n": 2}


async def test_000_a_checkpoint_made_before_the_request_is_on_its_tool_calls(scene):
    played = scene(LOOK)
    played.add(change(checkpoint_id="c-1"), on="before_request")
    await played.play()
    assert [step.checkpoint_id for step in played.steps("before_tool")] == ["c-1"]


async def test_000_a_new_checkpoint_at_the_end_is_where_the_next_request_starts(scene):
    played = scene()
    played.add(lambda step: change(checkpoint_id=f"after {step.request_id}"), on="after_request")
    await played.play("One.", "Two.")
    first, second = played.steps("before_request")
    assert (first.checkpoint_id, second.checkpoint_id) == (None, f"after {first.request_id}")


async def test_000_a_hook_may_give_the_request_its_session(scene):
    played = scene()
    played.add(change(session_id="known"), on="before_request")
    await played.play()
    assert (played.agent.session.session_id, played.steps("session_end")[0].session_id) == ("known", "known")


async def test_000_after_request_also_comes_after_an_error(scene):
    played = await scene(RuntimeError("down")).play()
    (after,) = played.steps("after_request")
    assert "down" in after.error


async def test_000_an_abort_fails_the_request_in_the_seed_s_words(scene):
    played = scene()
    played.add(abort("quota exceeded", name="billing"), on="before_model")
    await played.play()
    assert isinstance(played.error, HookAborted)
    assert str(played.error) == "[billing:hook_abort] quota exceeded"


async def test_000_an_abort_at_the_start_asks_no_model(scene):
    played = scene()
    played.add(abort("no"), on="before_request")
    await played.play()
    assert (played.sent, played.events.count("after_request")) == ([], 1)


# --- seed 002, openfang: a blocked tool ----------------------------------------------------------


async def test_002_a_blocked_tool_is_an_error_result_and_the_loop_goes_on(scene):
    played = scene(LOOK)
    played.add(deny("production is frozen"), on="before_tool")
    await played.play()
    assert played.sent[1][-1] == "error: Hook blocked tool 'look': production is frozen"
    assert (played.ran, played.output) == ([], "Done.")


async def test_002_an_observer_that_fails_changes_nothing_and_the_next_still_runs(scene):
    def fails(step):
        raise RuntimeError("disk full")

    played = scene(LOOK)
    ran: list[str] = []
    events = ("before_tool", "after_tool", "before_prompt", "turn_end")
    played.add(fails, on=events, name="fails", phase="observe")
    played.add(lambda step: ran.append(step.event), on=events, name="next", phase="observe")
    await played.play()
    assert (ran, played.output) == (["before_prompt", "before_tool", "after_tool", "turn_end"], "Done.")


async def test_002_after_tool_receives_the_result(scene):
    played = await scene(LOOK).play()
    assert [step.output for step in played.steps("after_tool")] == ["look: a (1)"]


# --- seed 003, defect: keeping the turn alive ----------------------------------------------------


def extending(times: int):
    return lambda step: extend(f"feedback {step.continues_so_far}") if step.continues_so_far < times else None


async def test_003_two_extensions_make_three_requests(scene):
    played = scene("One.", "Two.", "Three.")
    played.add(extending(2), on="before_turn_end")
    await played.play()
    assert (len(played.sent), played.output) == (3, "Three.")
    assert [parts[-1] for parts in played.sent] == ["user: Go.", "user: feedback 0", "user: feedback 1"]


async def test_003_a_turn_is_extended_at_most_three_times(scene):
    played = scene()
    played.add(extending(100), on="before_turn_end")
    await played.play()
    assert (len(played.sent), played.result.extends) == (4, 3)
    assert [step.continues_so_far for step in played.steps("before_turn_end")] == [0, 1, 2, 3]


async def test_003_each_turn_may_be_extended_anew(scene):
    played = scene()
    played.add(extending(1), on="before_turn_end")
    await played.play("One.", "Two.")
    assert [step.continues_so_far for step in played.steps("before_turn_end")] == [0, 1, 0, 1]


async def test_003_an_extension_without_feedback_has_a_default_text(scene):
    played = scene()
    played.add(extend(), on="before_turn_end")
    await played.play()
    assert played.sent[1][-1] == f"user: {FEEDBACK}"


async def test_003_the_feedback_of_several_hooks_is_one_message(scene):
    played = scene()
    played.add(extend("lint"), on="before_turn_end", name="lint", phase="gate")
    played.add(extend("types"), on="before_turn_end", name="types", phase="gate")
    await played.play()
    assert played.sent[1][-1] == "user: lint\n\ntypes"


async def test_003_the_end_is_voluntary_when_the_model_has_nothing_more_to_do(scene):
    (end,) = (await scene(LOOK).play()).steps("before_turn_end")
    assert (end.voluntary, end.stop_reason) == (True, "end_turn")


async def test_003_the_end_is_involuntary_when_the_request_cap_was_hit(scene):
    played = await scene(LOOK, LOOK, max_requests=2).play()
    (end,) = played.steps("before_turn_end")
    assert (end.voluntary, end.stop_reason, len(played.sent)) == (False, "max_turn_requests", 2)
    assert played.result.stop_reason == "max_turn_requests"


async def test_003_an_extension_resets_the_request_budget(scene):
    played = scene(LOOK, LOOK, LOOK, "Finished.", max_requests=2)
    played.add(extend("you may go on"), on="before_turn_end")
    await played.play()
    assert (len(played.sent), played.output, played.result.stop_reason) == (4, "Finished.", "end_turn")


async def test_003_an_extension_starts_no_new_turn(scene):
    played = scene()
    played.add(extending(2), on="before_turn_end")
    await played.play()
    assert [played.events.count(name) for name in ("turn_start", "turn_end")] == [1, 1]


async def test_003_the_feedback_is_an_input_whose_source_is_a_continuation(scene):
    played = scene("One.", "Two.")
    played.add(extend("run the tests"), on="before_turn_end")
    await played.play()
    assert [(step.source, step.input) for step in played.steps("before_input")] == [
        ("user", "Go."), ("continuation", "run the tests"),
    ]  # fmt: skip
    assert [step.committed_len for step in played.steps("after_input")] == [1, 3]


async def test_003_a_continuation_is_rewritten_like_any_input(scene):
    played = scene("One.", "Two.")
    played.add(extend("run the tests"), on="before_turn_end", name="more")
    played.add(
        lambda step: change(input="run all tests") if step.source == "continuation" else None,
        on="before_input", name="all",
    )  # fmt: skip
    await played.play()
    assert played.sent[1][-1] == "user: run all tests"


REFUSALS = {
    "before_input-deny": deny("enough"),
    "before_input-stop": stop("enough", "refusal"),
    "after_input-stop": stop("enough", "refusal"),
}


@pytest.mark.parametrize("refusal", REFUSALS)
async def test_003_a_refused_continuation_lets_the_turn_end_with_the_answer(refusal, scene):
    event, verdict = refusal.partition("-")[0], REFUSALS[refusal]
    played = scene("One.", "Two.")
    played.add(extend("run the tests"), on="before_turn_end", name="more")
    inputs = iter([None, verdict])
    played.add(lambda step: next(inputs), on=event, name="refuses")
    await played.play()
    assert (played.output, len(played.sent), played.result.extends) == ("One.", 1, 0)
    assert played.result.stop_reason == ("refusal" if verdict.control == "stop" else "end_turn")


async def test_003_the_seed_s_own_words_are_understood(scene):
    played = scene("One.", "Two.")
    said = iter([{"control": "continue", "additional_context": ["run the tests"]}])
    played.add(lambda step: next(said, None), on="before_turn_end")
    await played.play()
    assert (played.sent[1][-1], played.output) == ("user: run the tests", "Two.")


@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"])
async def test_003_a_break_ends_the_turn_with_its_stop_reason(reason, scene):
    played = scene()
    played.add(lambda step: {"control": "break", "stop_reason": reason}, on="before_model")
    await played.play()
    assert (played.sent, played.result.stop_reason) == ([], reason)
    assert [step.stop_reason for step in played.steps("turn_end")] == [reason]


# --- seed 004, ironclaw: what the user reads instead ---------------------------------------------


async def test_004_a_rejected_message_is_answered_with_the_reason(scene):
    played = scene()
    played.add(deny("spam"), on="before_input")
    await played.play()
    assert (played.output, played.sent) == ("[Message rejected: spam]", [])


async def test_004_a_rejected_outbound_message_is_suppressed(scene):
    played = scene("The key is 1234.")
    played.add(lambda step: deny("a key") if "key" in step.content else None, on="before_output")
    await played.play()
    assert (played.output, played.error) == (None, None)


async def test_004_a_rejected_response_is_filtered_with_the_reason(scene):
    played = scene("Nonsense.")
    played.add(deny("wrong"), on="before_response")
    await played.play()
    assert played.output == "[Response filtered: wrong]"


async def test_004_modifications_of_the_response_chain(scene):
    played = scene("one")
    for name in ("two", "three"):
        played.add(lambda step, name=name: change(response=f"{step.response} {name}"), on="before_response", name=name)
    await played.play()
    assert played.output == "one two three"


async def test_004_the_session_s_start_and_end_fire(scene):
    played = await scene().play()
    assert (played.events[0], played.events[-1]) == ("session_start", "session_end")
