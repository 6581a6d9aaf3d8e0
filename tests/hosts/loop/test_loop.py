"""The reference loop: what each event and each control means to a conversation.

`CASES` has, for every event, every control it takes, every field it lets a hook change, and context. Each
case plays a scene in which the hook `judge` gives one verdict, once, and looks at what the model was
sent, what ran, and what the user got.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from fairlead import (
    Approval,
    FairleadError,
    HookAborted,
    Hooks,
    Verdict,
    abort,
    allow,
    answer,
    ask,
    change,
    current_session,
    deny,
    extend,
    inject,
    retry,
    skip,
    skip_rest,
    stop,
)
from fairlead.hosts.loop.agent import FEEDBACK, Agent
from fairlead.hosts.loop.model import ModelFailed
from fairlead.hosts.loop.tools import Tool
from fairlead.hosts.loop.trace import lines_of
from fairlead.lifecycle import EVENTS
from fairlead.testing import Recorder

LOOK = ("Looking.", [("look", {"at": "a"})])
TOUCH = ("Touching.", [("touch", {"at": "b"})])
CRASH = ("Trying.", [("crash", {})])
HELP = ("Asking for help.", [("helper", {"message": "Help me."})])
COMPACTING = {"token_budget": 1}

# A scene in which the event fires: what the model says first, and how the agent is set up.
SCENES: dict[str, tuple[Any, dict[str, Any]]] = {
    "before_compact": (LOOK, COMPACTING),
    "after_compact": (LOOK, COMPACTING),
    "subagent_start": (HELP, {}),
    "subagent_stop": (HELP, {}),
    "notification": (TOUCH, {"policy": "ask-writes"}),
    "error": (CRASH, {}),
}
USUAL: tuple[Any, dict[str, Any]] = (LOOK, {})

# The ends of a run, which fire once each, whatever happens.
ENDS = ("turn_end", "after_request", "session_end")


def scene_of(event: str, make: Any, **options: Any) -> Any:
    line, about = SCENES.get(event, USUAL)
    return make(line, **(about | options))


# --- the table ------------------------------------------------------------------------------------


class Case(NamedTuple):
    event: str
    part: str
    verdict: Verdict
    check: Callable[[Any], None]
    options: dict[str, Any] = {}
    inputs: tuple[str, ...] = ("Go.",)

    @property
    def id(self) -> str:
        return f"{self.event}-{self.part}-{self.check.__name__}"


CASES: list[Case] = []


def case(event: str, part: str, verdict: Verdict, *inputs: str, **options: Any) -> Callable[[Any], Any]:
    def keep(check: Any) -> Any:
        CASES.append(Case(event, part, verdict, check, options, inputs or ("Go.",)))
        return check

    return keep


# --- controls of single events


@case("before_input", "deny", deny("no jokes"))
def the_user_is_told_and_nothing_is_kept(scene):
    assert (scene.output, scene.sent, scene.agent.messages) == ("[Message rejected: no jokes]", [], [])


@case("before_model", "deny", deny("not yet"))
def the_reason_goes_to_the_model_in_the_next_request(scene):
    assert scene.sent[0] == ["system: Be brief.", "user: Go.", "user: [judge] not yet"]


@case("before_model", "deny", deny("not yet"), max_requests=1)
def a_denied_request_counts(scene):
    assert (scene.sent, scene.result.stop_reason) == ([], "max_turn_requests")


@case("after_model", "deny", deny("rude"))
def the_output_is_not_used_and_the_model_is_told(scene):
    assert (scene.ran, scene.sent[1]) == ([], ["system: Be brief.", "user: Go.", "user: [judge] rude"])


@case("before_tool", "deny", deny("not here"))
def the_call_does_not_run_and_the_model_sees_an_error_with_the_reason(scene):
    assert (scene.ran, scene.sent[1][-1]) == ([], "error: Hook blocked tool 'look': not here")


@case("before_permission", "deny", deny("not you"))
def permission_is_refused_and_the_model_sees_the_reason(scene):
    assert (scene.ran, scene.sent[1][-1]) == ([], "error: Permission denied for tool 'look': not you")


@case("after_tool", "deny", deny("secret"))
def the_output_is_withheld_and_the_model_sees_the_reason(scene):
    assert (scene.ran, scene.sent[1][-1]) == (["look a"], "error: [withheld by judge] secret")


@case("before_response", "deny", deny("off topic"))
def the_response_is_filtered(scene):
    assert scene.output == "[Response filtered: off topic]"


@case("before_output", "deny", deny("not for you"))
def the_output_is_suppressed(scene):
    assert (scene.output, scene.error) == (None, None)


@case("subagent_start", "deny", deny("no helpers"))
def the_subagent_does_not_start(scene):
    assert (scene.helper.sent, scene.sent[1][-1]) == ([], "error: the agent 'helper' may not start: no helpers")


@case("before_tool", "ask", ask("Really?"), policy="deny-all")
def a_human_who_agrees_grants_the_call(scene):
    assert ([request.question for request in scene.asked], scene.ran) == (["Really?"], ["look a"])


@case("before_permission", "ask", ask("Sure?"), policy="deny-all")
def a_human_who_agrees_grants_the_permission(scene):
    assert ([request.question for request in scene.asked], scene.ran) == (["Sure?"], ["look a"])


@case("before_tool", "allow", allow("fine"), policy="deny-all")
def the_policy_is_not_asked(scene):
    assert (scene.ran, [step.proposed for step in scene.steps("before_permission")]) == (["look a"], ["allow"])


@case("before_permission", "allow", allow("fine"), policy="deny-all")
def the_permission_is_granted(scene):
    assert (scene.ran, [step.granted for step in scene.steps("after_permission")]) == (["look a"], [True])


@case("before_compact", "skip", skip("keep it all"))
def the_conversation_is_left_as_it_is(scene):
    assert scene.sent[0] == ["system: Be brief.", "user: Go."]


@case("notification", "skip", skip("hush"))
def the_user_is_not_told(scene):
    assert "waiting for approval" not in "\n".join(lines_of(scene.seen.of("notification")[0]))


@case("after_tool", "retry", retry("again"))
def the_call_runs_again_with_the_same_arguments(scene):
    assert (scene.ran, scene.sent[1][-1]) == (["look a", "look a"], "result: look: a (2)")


@case("before_turn_end", "extend", extend("test it"))
def the_feedback_is_the_next_user_message(scene):
    assert (len(scene.sent), scene.sent[2][-2:]) == (3, ["assistant: Done.", "user: test it"])


@case("subagent_stop", "extend", extend("go on"))
def the_subagent_goes_on_with_the_feedback(scene):
    assert (len(scene.helper.sent), scene.helper.sent[1][-1]) == (2, "user: go on")


# --- changes


@case("before_request", "change state", change(state={"tenant": "acme"}))
def the_session_has_the_new_state(scene):
    assert (scene.agent.session.state, scene.steps("after_request")[0].state) == ({"tenant": "acme"},) * 2


@case("before_request", "change session_id", change(session_id="s-9"))
def later_steps_carry_the_new_session_id(scene):
    assert {step.session_id for step in scene.seen.steps[1:]} == {"s-9"}


@case("before_request", "change checkpoint_id", change(checkpoint_id="c-1"))
def later_steps_carry_the_checkpoint_id(scene):
    assert {step.checkpoint_id for step in scene.seen.steps[1:]} == {"c-1"}


@case("after_request", "change state", change(state={"turns": 1}), "Go.", "Again.")
def the_next_request_starts_with_the_new_state(scene):
    assert scene.steps("before_request")[1].state == {"turns": 1}


@case("after_request", "change checkpoint_id", change(checkpoint_id="c-2"), "Go.", "Again.")
def the_next_request_carries_the_new_checkpoint_id(scene):
    assert scene.steps("before_request")[1].checkpoint_id == "c-2"


@case("before_input", "change input", change(input="Stay."))
def the_model_reads_the_new_input(scene):
    assert scene.sent[0] == ["system: Be brief.", "user: Stay."]


@case("before_input", "change prepend_input", change(prepend_input="Please: "))
def the_model_reads_what_was_prepended(scene):
    assert scene.sent[0] == ["system: Be brief.", "user: Please: Go."]


@case("before_prompt", "change system_prompt", change(system_prompt="Be kind."))
def every_request_of_the_turn_has_the_new_system_prompt(scene):
    assert [parts[0] for parts in scene.sent] == ["system: Be kind.", "system: Be kind."]


@case("before_model", "change model", change(model="other"))
def the_other_model_is_asked(scene):
    assert (scene.sent, scene.output, len(scene.other.sent)) == ([], "From the other model.", 1)


@case("before_model", "change messages", change(messages=[{"role": "user", "content": "Sit."}]))
def the_model_is_sent_the_new_messages_this_once(scene):
    assert (scene.sent[0], scene.sent[1][1]) == (["system: Be brief.", "user: Sit."], "user: Go.")


@case("before_model", "change assistant", answer("Cached."))
def the_answer_takes_the_place_of_the_model_s(scene):
    assert (scene.sent, scene.output) == ([], "Cached.")


@case("after_model", "change output", change(output="Peering."))
def the_conversation_keeps_the_new_output(scene):
    assert scene.sent[1][2:4] == ["assistant: Peering.", 'call: look {"at": "a"}']


@case("before_tool", "change args", change(args={"at": "z"}))
def the_tool_runs_with_the_new_arguments(scene):
    assert (scene.ran, scene.sent[1][-1]) == (["look z"], "result: look: z (1)")


@case("before_tool", "change result", answer("from a cache"))
def the_answer_takes_the_place_of_the_tool_s(scene):
    assert (scene.ran, scene.sent[1][-1]) == ([], "result: from a cache")


@case("before_tool", "change is_error", answer("it is closed", is_error=True))
def an_answer_may_be_an_error(scene):
    assert (scene.ran, scene.sent[1][-1]) == ([], "error: it is closed")


@case("before_permission", "change resolved", change(resolved=True), policy="deny-all")
def resolved_true_grants(scene):
    assert scene.ran == ["look a"]


@case("before_permission", "change resolved", change(resolved=False))
def resolved_false_refuses(scene):
    assert (scene.ran, scene.sent[1][-1]) == ([], "error: Permission denied for tool 'look': refused")


@case("after_tool", "change output", change(output="[redacted]"))
def the_model_sees_the_new_result(scene):
    assert (scene.ran, scene.sent[1][-1]) == (["look a"], "result: [redacted]")


@case("before_response", "change response", change(response="All done."))
def the_user_gets_the_new_response(scene):
    assert (scene.output, scene.steps("before_output")[0].content) == ("All done.", "All done.")


@case("before_output", "change content", change(content="DONE"))
def the_user_sees_the_new_content(scene):
    assert scene.output == "DONE"


@case("subagent_start", "change initial_message", change(initial_message="Help quickly."))
def the_subagent_starts_with_the_new_message(scene):
    assert scene.helper.sent[0] == ["system: You help.", "user: Help quickly."]


@case("notification", "change message", change(message="a moment, please"))
def the_user_reads_the_new_message(scene):
    assert "a moment, please" in "\n".join(lines_of(scene.seen.of("notification")[0]))


# --- stop, wherever there is a turn to end: how often the model was asked by then, and what ran

STOPS: dict[str, tuple[int, list[str]]] = {
    "before_input": (0, []),
    "after_input": (0, []),
    "turn_start": (0, []),
    "before_prompt": (0, []),
    "before_compact": (0, []),
    "after_compact": (0, ["compact"]),
    "before_model": (0, []),
    "after_model": (1, []),
    "tool_requested": (1, []),
    "before_tool": (1, []),
    "before_permission": (1, []),
    "after_permission": (1, []),
    "after_tool": (1, ["look a"]),
    "after_tool_batch": (1, ["look a"]),
    "before_turn_end": (2, ["look a"]),
}


def _stops_at(event: str, asked: int, ran: list[str]) -> None:
    @case(event, "stop", stop("enough", "refusal"))
    def the_turn_ends_there_with_the_reason(scene):
        assert (len(scene.sent), scene.ran) == (asked, ran)
        said = "Done." if event == "before_turn_end" else "[Stopped: enough]"  # where the model has said its last word
        assert (scene.output, scene.result.stop_reason) == (said, "refusal")


for _event, (_asked, _ran) in STOPS.items():
    _stops_at(_event, _asked, _ran)


# --- context: the first request to the model that has it, of three in two turns

CONTEXT: dict[str, int] = {
    "session_start": 0,
    "before_request": 0,
    "before_input": 0,
    "after_input": 0,
    "turn_start": 0,
    "before_prompt": 0,
    "before_compact": 0,
    "after_compact": 0,
    "before_model": 0,
    "after_model": 1,
    "tool_requested": 1,
    "before_tool": 1,
    "before_permission": 1,
    "after_permission": 1,
    "after_tool": 1,
    "after_tool_batch": 1,
    "subagent_stop": 1,
    "before_turn_end": 2,
    "after_request": 2,
}


def _adds_context_at(event: str, first: int) -> None:
    @case(event, "context", inject("mind the gap"), "Go.", "Again.")
    def the_model_reads_it_in_its_next_request(scene):
        assert scene.requests_with("[judge] mind the gap")[:1] == [first]


for _event, _first in CONTEXT.items():
    _adds_context_at(_event, _first)


@case("subagent_start", "context", inject("mind the gap"))
def the_subagent_reads_it(scene):
    assert scene.helper.sent[0] == ["system: You help.", "user: Help me.", "user: [judge] mind the gap"]


# --- a session that hooks refuse


@case("session_start", "deny", deny("not today"))
def the_session_does_not_start(scene):
    assert str(scene.error) == "[judge:hook_abort] not today"
    assert (scene.sent, "before_input" in scene.events) == ([], False)


@case("session_start", "stop", stop("not today", "refusal"), "One.", "Two.")
def the_first_turn_ends_before_it_begins(scene):
    outputs = [decision.step.content for decision in scene.seen.of("before_output")]
    assert outputs == ["[Stopped: not today]", "Done."]
    assert [scene.events.count(name) for name in ("before_request", "before_input", "turn_start")] == [2, 1, 1]


@case("session_end", "deny", deny("too early"))
def the_reject_is_recorded_and_the_session_ends(scene):
    (decision,) = scene.seen.of("session_end")
    assert (decision.denied, decision.reason, scene.error, scene.output) == (True, "too early", None, "Done.")


# --- what every event takes


def _takes_everywhere(event: str) -> None:
    @case(event, "abort", abort("no"))
    def the_caller_is_told_who_aborted_and_why(scene):
        assert isinstance(scene.error, HookAborted)
        assert str(scene.error) == "[judge:hook_abort] no"

    @case(event, "proceed", Verdict())
    def everything_goes_on_as_if_there_were_no_hook(scene):
        assert (scene.error, scene.output, len(scene.sent)) == (None, "Done.", 2)


for _event in EVENTS:
    _takes_everywhere(_event)


@pytest.mark.parametrize("entry", CASES, ids=lambda entry: entry.id)
async def test_what_a_verdict_means_to_the_conversation(entry, scene):
    played = scene_of(entry.event, scene, **entry.options)
    played.add(entry.verdict, on=entry.event)
    await played.play(*entry.inputs)
    entry.check(played)


@pytest.mark.parametrize("event", EVENTS)
async def test_skip_rest_leaves_out_later_transforms_but_no_gate_and_no_observer(event, scene):
    played = scene_of(event, scene)
    ran: list[str] = []
    played.add(lambda step: skip_rest(), on=event)
    for phase in ("transform", "gate", "observe"):
        played.add(lambda step, phase=phase: ran.append(phase), on=event, name=phase, phase=phase, priority=90)
    await played.play()
    assert (set(ran), played.error, played.output) == ({"gate", "observe"}, None, "Done.")


def test_the_table_has_every_event_with_all_that_it_takes():
    wanted = {(name, control) for name, event in EVENTS.items() for control in event.controls - {"skip_rest"}}
    wanted |= {(name, f"change {field}") for name, event in EVENTS.items() for field in event.changes}
    wanted |= {(name, "context") for name, event in EVENTS.items() if event.context}
    assert {(entry.event, entry.part) for entry in CASES} == wanted


# --- the order ------------------------------------------------------------------------------------

ENTRY = ["session_start", "before_request", "before_input", "after_input", "turn_start", "before_prompt"]
CALL = ["tool_requested", "before_tool", "before_permission", "after_permission", "after_tool"]
ENDING = ["before_turn_end", "before_response", "turn_end", "before_output", "after_request", "session_end"]


async def test_the_events_of_a_run_come_in_the_order_of_the_lifecycle(scene):
    played = await scene(LOOK).play()
    asking = ["before_model", "after_model"]
    assert played.events == [*ENTRY, *asking, *CALL, "after_tool_batch", *asking, *ENDING]


async def test_compaction_comes_before_the_request_it_makes_room_for(scene):
    played = await scene(**COMPACTING).play()
    assert played.events == [*ENTRY, "before_compact", "after_compact", "before_model", "after_model", *ENDING]


async def test_the_whole_of_a_subagent_s_request_lies_within_the_tool_call(scene):
    played = await scene(HELP).play()
    inner = played.events[played.events.index("subagent_start") : played.events.index("subagent_stop") + 1]
    assert inner == [
        "subagent_start", "before_request", "before_input", "after_input", "turn_start", "before_prompt",
        "before_model", "after_model", "before_turn_end", "before_response", "turn_end", "before_output",
        "after_request", "subagent_stop",
    ]  # fmt: skip
    assert played.events[played.events.index("subagent_stop") + 1] == "after_tool"


async def test_steps_are_numbered_in_the_order_they_fire(scene):
    played = await scene(LOOK).play()
    assert [step.sequence for step in played.seen.steps] == list(range(1, len(played.events) + 1))


async def test_steps_of_a_turn_carry_its_id_and_no_others_do(scene):
    played = await scene(LOOK).play()
    with_turn = [step.event for step in played.seen.steps if step.turn_id is not None]
    assert (with_turn[0], with_turn[-1]) == ("after_input", "turn_end")
    assert {step.event for step in played.seen.steps if step.turn_id is None}.isdisjoint(with_turn)


async def test_each_request_has_an_id_of_its_own_and_the_session_stays(scene):
    played = await scene().play("Go.", "Again.")
    first, second = played.steps("before_request")
    assert first.request_id != second.request_id
    assert first.session_id == second.session_id


# --- the ends -------------------------------------------------------------------------------------


def ends(scene: Any) -> dict[str, int]:
    return {event: scene.events.count(event) for event in ENDS}


ONCE = dict.fromkeys(ENDS, 1)


async def test_the_ends_fire_once_after_a_run(scene):
    assert ends(await scene(LOOK).play()) == ONCE


@pytest.mark.parametrize("event", EVENTS)
async def test_the_ends_fire_once_each_when_a_hook_aborts(event, scene):
    played = scene_of(event, scene)
    played.add(abort("no"), on=event)
    await played.play()
    began = {
        end: played.events.count(start) for end, start in zip(ENDS, ("turn_start", "before_request"), strict=False)
    }
    assert ends(played) == began | {"session_end": 1}


@pytest.mark.parametrize("event", STOPS)
async def test_the_ends_fire_once_each_when_a_hook_stops_the_turn(event, scene):
    played = scene_of(event, scene)
    played.add(stop("enough"), on=event)
    await played.play()
    assert ends(played) == ONCE | {"turn_end": played.events.count("turn_start")}


@pytest.mark.parametrize("lines", [(RuntimeError("down"),), (LOOK, RuntimeError("down"))], ids=["first", "second"])
async def test_the_ends_fire_once_each_when_the_model_fails(lines, scene):
    assert ends(await scene(*lines).play()) == ONCE


async def test_the_ends_fire_once_each_when_compaction_fails(scene):
    async def compact(messages):
        raise RuntimeError("full")

    played = await scene(**COMPACTING, compact=compact).play()
    assert (ends(played), str(played.error)) == (ONCE, "full")


async def test_the_turn_s_end_says_why_after_how_many_requests_and_how_long_the_answer_was(scene):
    (end,) = (await scene(LOOK).play()).steps("turn_end")
    assert (end.stop_reason, end.iterations, end.response_length) == ("end_turn", 2, len("Done."))


async def test_closing_twice_ends_the_session_once(scene):
    played = await scene().play()
    await played.agent.close()
    assert played.events.count("session_end") == 1


async def test_an_agent_that_never_ran_has_no_session_to_end(scene):
    played = scene()
    await played.agent.close()
    assert played.events == []


@pytest.mark.parametrize(("fails", "reason"), [(False, "exit"), (True, "error")])
async def test_the_session_s_end_says_whether_it_was_left_by_an_error(fails, reason, scene):
    played = scene()
    try:
        async with played.agent:
            if fails:
                raise KeyError
    except KeyError:
        pass
    assert [step.reason for step in played.steps("session_end")] == [reason]


async def test_an_agent_whose_session_ended_runs_no_more(scene):
    played = await scene().play()
    with pytest.raises(FairleadError, match="session has ended"):
        await played.agent.run("Go.")


# --- errors ---------------------------------------------------------------------------------------


def errors(scene: Any) -> list[tuple[str, str]]:
    return [(step.where, step.error) for step in scene.steps("error")]


async def test_an_error_is_reported_when_the_model_fails(scene):
    played = await scene(RuntimeError("down")).play()
    assert isinstance(played.error, ModelFailed)
    assert errors(played) == [("request", str(played.error))]


async def test_a_failed_request_to_the_model_has_an_after_model_with_the_error(scene):
    played = await scene(RuntimeError("down")).play()
    (after,) = played.steps("after_model")
    assert (after.output, after.error) == (None, str(played.error))


async def test_after_request_says_what_the_request_failed_of(scene):
    played = await scene(RuntimeError("down")).play()
    assert [step.error for step in played.steps("after_request")] == [str(played.error)]


async def test_an_error_is_reported_when_a_tool_crashes_and_the_model_sees_it(scene):
    played = await scene(CRASH).play()
    assert errors(played) == [("tool crash", "RuntimeError: boom")]
    assert (played.sent[1][-1], played.output) == ("error: RuntimeError: boom", "Done.")


async def test_a_tool_that_says_why_it_cannot_is_no_error_of_the_agent(scene):
    played = await scene(("", [("look", {"at": "nowhere"})])).play()
    assert (errors(played), played.sent[1][-1]) == ([], "error: nothing there")


async def test_an_error_is_reported_when_a_hook_aborts(scene):
    played = scene()
    played.add(abort("no"), on="before_model")
    assert errors(await played.play()) == [("request", "[judge:hook_abort] no")]


async def test_an_error_is_reported_when_compaction_fails(scene):
    async def compact(messages):
        raise RuntimeError("full")

    assert errors(await scene(**COMPACTING, compact=compact).play()) == [("request", "RuntimeError: full")]


async def test_an_error_is_reported_when_background_work_fails(scene):
    async def work():
        raise RuntimeError("lost")

    played = scene()
    played.add(lambda step: current_session().spawn(work()), on="turn_end")
    assert errors(await played.play()) == [("background", "RuntimeError: lost")]


async def test_the_error_of_a_request_is_reported_though_a_hook_aborts_at_it(scene):
    played = scene(RuntimeError("down"))
    played.add(abort("and no"), on="error")
    assert isinstance((await played.play()).error, ModelFailed)


# --- input ----------------------------------------------------------------------------------------


async def test_after_input_says_how_long_the_conversation_is(scene):
    played = await scene(LOOK).play("Go.", "Again.")
    assert [step.committed_len for step in played.steps("after_input")] == [1, 5]


async def test_a_refused_input_is_not_in_the_next_request(scene):
    played = scene()
    played.add(deny("no"), on="before_input")
    await played.play("Secret.", "Hello.")
    assert played.sent == [["system: Be brief.", "user: Hello."]]


async def test_a_refused_input_starts_no_turn(scene):
    played = scene()
    played.add(deny("no"), on="before_input")
    await played.play()
    assert played.events == [
        "session_start", "before_request", "before_input", "before_output", "after_request", "session_end",
    ]  # fmt: skip


async def test_an_input_of_several_parts_is_read_by_the_model(scene):
    played = scene()
    await played.agent.run(["Look at", {"type": "text", "text": "this."}])
    assert played.sent[0][1] == "user: Look at\nthis."


# --- tools ----------------------------------------------------------------------------------------

TWO = ("Both.", [("look", {"at": "a"}), ("touch", {"at": "b"})])


async def test_the_calls_of_one_reply_run_at_once_and_their_results_keep_their_order(scripted):
    second_ran = asyncio.Event()

    async def first(args):
        await second_ran.wait()
        return "first"

    async def second(args):
        second_ran.set()
        return "second"

    model = scripted(("", [("first", {}), ("second", {})]))
    tools = [Tool("first", "", {}, first, "read", "read_only"), Tool("second", "", {}, second, "read", "read_only")]
    async with asyncio.timeout(5), Agent(model.model, tools) as agent:
        await agent.run("Go.")
    assert model.sent[1][-2:] == ["result: first", "result: second"]


async def test_no_call_of_a_reply_runs_before_all_were_judged(scene):
    played = scene(TWO)
    played.add(lambda step: played.ran.append(f"judged {step.tool}"), on="before_tool")
    await played.play()
    assert played.ran == ["judged look", "judged touch", "look a", "touch b"]


async def test_a_denied_call_does_not_hold_up_the_others(scene):
    played = scene(TWO)
    played.add(deny("no"), on="before_tool")
    await played.play()
    assert (played.ran, played.sent[1][-2:]) == (
        ["touch b"], ["error: Hook blocked tool 'look': no", "result: touch: b (1)"],
    )  # fmt: skip


@pytest.mark.parametrize(("verdict", "outcome"), [(deny("no"), "denied"), (answer("cached"), "answered")])
async def test_denied_and_answered_calls_fire_no_permission_events_but_after_tool(verdict, outcome, scene):
    played = scene(LOOK)
    played.add(verdict, on="before_tool")
    await played.play()
    (after,) = played.steps("after_tool")
    assert (after.outcome, after.executed, after.duration) == (outcome, False, None)
    assert not {"before_permission", "after_permission"} & set(played.events)


async def test_after_tool_says_how_a_call_that_ran_ended(scene):
    played = await scene(("", [("look", {"at": "a"}), ("crash", {})])).play()
    good, bad = played.steps("after_tool")
    assert (good.outcome, good.executed, good.output, good.is_error, good.error) == (
        "ok",
        True,
        "look: a (1)",
        False,
        None,
    )
    assert (bad.outcome, bad.executed, bad.is_error, bad.error) == ("error", True, True, "RuntimeError: boom")


async def test_after_tool_fires_for_a_call_without_permission(scene):
    (after,) = (await scene(LOOK, policy="deny-all").play()).steps("after_tool")
    assert (after.outcome, after.executed) == ("denied", False)


async def test_after_tool_fires_for_the_calls_that_a_stop_left_out(scene):
    played = scene(TWO)
    played.add(stop("enough"), on="before_tool")
    await played.play()
    assert [(step.tool, step.outcome) for step in played.steps("after_tool")] == [
        ("look", "aborted"),
        ("touch", "aborted"),
    ]
    assert played.ran == []


async def test_a_stop_leaves_no_call_without_a_result_in_the_conversation(scene):
    played = scene(TWO)
    played.add(stop("enough"), on="before_tool")
    await played.play("Go.", "Again.")
    assert played.sent[1][-3:] == ["error: not run: the turn was stopped"] * 2 + ["user: Again."]


async def test_a_call_of_a_tool_that_is_not_there_is_an_error_that_names_those_that_are(scene):
    played = await scene(("", [("lok", {})])).play()
    assert played.sent[1][-1] == "error: there is no tool 'lok'; there are look, touch, crash, helper"
    assert [(step.outcome, step.executed) for step in played.steps("after_tool")] == [("error", False)]


async def test_the_batch_lists_the_calls_and_how_they_ended(scene):
    played = scene(TWO)
    played.add(deny("no"), on="before_tool")
    (batch,) = (await played.play()).steps("after_tool_batch")
    assert batch.results == [
        {"tool": "look", "call_id": "call-1", "outcome": "denied", "is_error": True},
        {"tool": "touch", "call_id": "call-2", "outcome": "ok", "is_error": False},
    ]


async def test_a_gate_sees_the_arguments_the_tool_will_get(scene):
    played = scene(LOOK)
    seen: list[Any] = []
    played.add(lambda step: seen.append(step.args["at"]), on="before_tool", name="gate", phase="gate")
    played.add(change(args={"at": "z"}), on="before_tool")
    await played.play()
    assert (seen, played.ran) == (["z"], ["look z"])


async def test_permission_is_asked_for_the_arguments_the_tool_will_get(scene):
    played = scene(LOOK)
    played.add(change(args={"at": "z"}), on="before_tool")
    await played.play()
    assert [step.args for step in played.steps("before_permission")] == [{"at": "z"}]


async def test_a_retry_is_granted_at_most_twice_and_fires_no_new_before_events(scene):
    played = scene(LOOK)
    played.add(lambda step: retry(), on="after_tool")
    await played.play()
    assert (played.ran, played.events.count("before_tool")) == (["look a"] * 3, 1)
    assert [step.attempt for step in played.steps("after_tool")] == [1, 2, 3]


async def test_a_retry_of_a_call_that_did_not_run_is_a_malformed_verdict(scene):
    played = scene(LOOK)
    played.add(deny("no"), on="before_tool")
    played.add(retry(), on="after_tool", name="again")
    await played.play()
    (decision,) = played.seen.of("after_tool")
    assert ([failure.kind for failure in decision.failures], played.ran) == (["malformed"], [])


async def test_a_retry_may_turn_an_error_into_a_result(scripted):
    tries = iter([RuntimeError("busy"), None])

    async def flaky(args):
        if error := next(tries):
            raise error
        return "there"

    hooks = Hooks()
    hooks.add(lambda step: retry() if step.is_error else None, on="after_tool", name="again")
    model = scripted(("", [("flaky", {})]))
    async with Agent(model.model, [Tool("flaky", "", {}, flaky)], hooks, policy="open") as agent:
        await agent.run("Go.")
    assert model.sent[1][-1] == "result: there"


# --- permission -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "line", "proposed", "asked", "ran"),
    [
        ("open", TOUCH, "allow", 0, True),
        ("ask-writes", LOOK, "allow", 0, True),
        ("ask-writes", TOUCH, "ask", 1, True),
        ("read-only", LOOK, "allow", 0, True),
        ("read-only", TOUCH, "deny", 0, False),
        ("deny-all", LOOK, "deny", 0, False),
    ],
)
async def test_what_the_policies_propose_and_do(policy, line, proposed, asked, ran, scene):
    played = await scene(line, policy=policy).play()
    assert [step.proposed for step in played.steps("before_permission")] == [proposed]
    assert [step.granted for step in played.steps("after_permission")] == [ran]
    assert (len(played.asked), bool(played.ran)) == (asked, ran)


async def test_a_policy_s_refusal_tells_the_model_which_policy_it_is(scene):
    played = await scene(TOUCH, policy="read-only").play()
    assert played.sent[1][-1] == "error: Permission denied for tool 'touch': the policy is read-only"


async def test_a_human_s_refusal_tells_the_model_why(scene):
    played = scene(TOUCH, policy="ask-writes")
    played.refuses = True
    await played.play()
    assert (played.ran, played.sent[1][-1]) == ([], "error: Permission denied for tool 'touch': not today")


async def test_an_ask_that_is_refused_blocks_the_tool(scene):
    played = scene(LOOK)
    played.refuses = True
    played.add(ask("Really?"), on="before_tool")
    await played.play()
    assert played.sent[1][-1] == "error: Hook blocked tool 'look': not approved by ann: not today"


async def test_an_ask_at_before_permission_that_is_refused_refuses_permission(scene):
    played = scene(LOOK)
    played.refuses = True
    played.add(ask("Sure?"), on="before_permission")
    await played.play()
    assert (played.ran, [step.granted for step in played.steps("after_permission")]) == ([], [False])


@pytest.mark.parametrize("event", ["before_tool", "before_permission"])
async def test_a_question_that_the_approver_leaves_to_this_host_is_refused(event, scene):
    async def leave(request):
        return Approval("ask")

    played = scene(LOOK)
    played.hooks.approver = leave
    played.add(ask("Really?"), on=event)
    await played.play()
    assert (played.ran, [step.granted for step in played.steps("after_permission")]) == ([], [False])
    assert "no other approver is configured: Really?" in played.sent[1][-1]


async def test_a_call_approved_at_before_tool_is_not_asked_about_again(scene):
    played = scene(TOUCH, policy="ask-writes")
    played.add(ask("Really?"), on="before_tool")
    await played.play()
    assert ([request.question for request in played.asked], played.ran) == (["Really?"], ["touch b"])


async def test_a_deny_at_before_permission_wins_over_an_allow_at_before_tool(scene):
    played = scene(LOOK)
    played.add(allow(), on="before_tool", name="lenient")
    played.add(deny("still no"), on="before_permission")
    await played.play()
    assert (played.ran, played.sent[1][-1]) == ([], "error: Permission denied for tool 'look': still no")


async def test_no_approver_is_a_refusal(scripted):
    model = scripted(("", [("touch", {})]))
    async with Agent(model.model, [Tool("touch", "", {}, None, "write", "mutating")]) as agent:
        await agent.run("Go.")
    assert model.sent[1][-1].startswith("error: Permission denied for tool 'touch': no approver is set")


async def test_waiting_for_a_human_is_announced(scene):
    played = await scene(TOUCH, policy="ask-writes").play()
    assert [step.message for step in played.steps("notification")] == ["waiting for approval of touch"]


async def test_what_a_human_is_asked_about_is_what_will_run(scene):
    played = scene(TOUCH, policy="ask-writes")
    played.add(change(args={"at": "z"}), on="before_tool")
    await played.play()
    assert ([request.step.args for request in played.asked], played.ran) == ([{"at": "z"}], ["touch z"])


def test_an_unknown_policy_is_refused_with_a_suggestion():
    with pytest.raises(FairleadError, match="did you mean 'read-only'"):
        Agent("test", policy="readonly")  # type: ignore[arg-type]


# --- the model ------------------------------------------------------------------------------------


async def test_before_model_sees_the_conversation_as_it_will_be_sent(scene):
    played = await scene(LOOK).play()
    first, second = played.steps("before_model")
    assert (first.model, first.message_count, first.messages) == ("scripted", 1, [{"role": "user", "content": "Go."}])
    assert [message["role"] for message in second.messages] == ["user", "assistant", "tool"]


async def test_after_model_sees_the_text_the_usage_and_the_stop_reason(scene):
    (after,) = (await scene("Hello.").play()).steps("after_model")
    assert (after.output, after.stop_reason, set(after.usage)) == (
        "Hello.",
        "end_turn",
        {"input_tokens", "output_tokens"},
    )


async def test_the_result_counts_the_requests_and_sums_the_usage(scene):
    played = await scene(LOOK).play()
    total = sum(step.usage["output_tokens"] for step in played.steps("after_model"))
    assert (played.result.requests, played.result.usage["output_tokens"]) == (2, total)


async def test_an_answer_in_the_model_s_place_is_seen_by_after_model(scene):
    played = scene()
    played.add(answer("Cached."), on="before_model")
    await played.play()
    assert [step.output for step in played.steps("after_model")] == ["Cached."]


# --- compaction -----------------------------------------------------------------------------------


async def test_a_conversation_within_its_budget_is_not_compacted(scene):
    assert "before_compact" not in (await scene(LOOK, token_budget=10_000).play()).events


async def test_the_model_is_sent_the_compacted_conversation(scene):
    assert (await scene(**COMPACTING).play()).sent == [["system: Be brief.", "user: (a summary)"]]


async def test_a_skipped_compaction_has_no_after(scene):
    played = scene(**COMPACTING)
    played.add(skip(), on="before_compact")
    await played.play()
    assert ("after_compact" in played.events, "compact" in played.ran) == (False, False)


async def test_compaction_tells_its_size_before_and_after(scene):
    played = await scene(**COMPACTING).play("A long story. " * 20)
    (before,), (after,) = played.steps("before_compact"), played.steps("after_compact")
    assert (before.message_count, before.threshold, before.token_estimate) == (1, 1, after.tokens_before)
    assert after.tokens_after < after.tokens_before


async def test_the_compaction_at_hand_leaves_out_the_older_half_and_says_so(scripted):
    model = scripted()
    old = [message for n in range(3) for message in (
        {"role": "user", "content": f"q{n}"}, {"role": "assistant", "content": f"a{n}"},
    )]  # fmt: skip
    async with Agent(model.model, messages=old, token_budget=1) as agent:
        await agent.run("q3")
    assert model.sent == [["user: [4 earlier messages were left out]", "user: q2", "assistant: a2", "user: q3"]]


# --- the end of a turn ----------------------------------------------------------------------------


async def test_context_at_the_turn_s_end_without_extend_waits_for_the_next_turn(scene):
    played = scene()
    played.add(inject("by the way"), on="before_turn_end")
    await played.play("Go.", "Again.")
    assert (len(played.sent), played.sent[1][-2:]) == (2, ["user: Again.", "user: [judge] by the way"])


async def test_an_extension_without_a_word_has_a_default_text(scene):
    played = scene()
    played.add(extend(), on="before_turn_end")
    await played.play()
    assert played.sent[1][-1] == f"user: {FEEDBACK}"


async def test_the_user_gets_the_last_answer_of_an_extended_turn(scene):
    played = scene("First.", "Second.")
    played.add(extend("again"), on="before_turn_end")
    await played.play()
    assert (played.output, played.result.extends, played.events.count("before_response")) == ("Second.", 1, 1)


async def test_the_request_cap_is_announced(scene):
    played = await scene(LOOK, LOOK, max_requests=2).play()
    assert [(step.message, step.level) for step in played.steps("notification")] == [
        ("the model was asked 2 times without an end", "warning")
    ]


async def test_a_filtered_response_still_goes_through_before_output(scene):
    played = scene()
    played.add(deny("no"), on="before_response")
    await played.play()
    assert [step.content for step in played.steps("before_output")] == ["[Response filtered: no]"]


async def test_a_stop_without_a_reason_leaves_nothing_to_show(scene):
    played = scene()
    played.add(stop(), on="before_model")
    await played.play()
    assert (played.output, "before_output" in played.events) == (None, False)


# --- several turns, and resuming ------------------------------------------------------------------


async def test_a_second_turn_continues_the_conversation(scene):
    played = await scene("Hello.").play("Hi.", "How are you?")
    assert played.sent[1] == ["system: Be brief.", "user: Hi.", "assistant: Hello.", "user: How are you?"]


async def test_several_turns_are_one_session(scene):
    played = await scene().play("One.", "Two.", "Three.")
    assert [played.events.count(name) for name in ("session_start", "turn_end", "session_end")] == [1, 3, 1]


async def test_a_resumed_agent_has_the_conversation_and_the_session_id(scene):
    first = await scene("Hello.").play("Hi.")
    second = scene(messages=first.agent.messages, session_id=first.agent.session.session_id)
    await second.play("And now?")
    assert second.sent[0] == ["system: Be brief.", "user: Hi.", "assistant: Hello.", "user: And now?"]
    (start,) = second.steps("session_start")
    assert (start.source, start.session_id) == ("resume", first.agent.session.session_id)


async def test_a_new_agent_s_session_is_new(scene):
    assert [step.source for step in (await scene().play()).steps("session_start")] == ["new"]


async def test_a_failed_request_can_be_followed_by_another(scene):
    played = scene(RuntimeError("down"), "Up again.")
    with pytest.raises(ModelFailed):
        await played.agent.run("Hi.")
    assert (await played.agent.run("Still there?")).output == "Up again."


async def test_two_agents_do_not_share_a_conversation(scene):
    one, two = scene(), scene()
    await asyncio.gather(one.play("One."), two.play("Two."))
    assert (one.sent, two.sent) == ([["system: Be brief.", "user: One."]], [["system: Be brief.", "user: Two."]])


# --- streaming ------------------------------------------------------------------------------------


async def test_a_stream_gives_every_event_of_the_request_in_order(scene):
    played = scene(LOOK)
    async with played.agent:
        moments = [moment.event async for moment in played.agent.stream("Go.")]
    assert moments == played.events[1:-1]


async def test_a_stream_raises_what_the_request_failed_of(scene):
    played = scene()
    played.add(abort("no"), on="before_model")
    with pytest.raises(HookAborted):
        async for _ in played.agent.stream("Go."):
            pass


async def test_leaving_a_stream_cancels_the_request(scene):
    played = scene(LOOK)
    stream = played.agent.stream("Go.")
    async for moment in stream:
        if moment.event == "before_model":
            break
    await stream.aclose()
    assert (played.events.count("turn_end"), played.steps("after_request")[0].error) == (1, "cancelled")


async def test_a_stream_shows_what_a_subagent_does(scene):
    played = scene(HELP)
    moments = [moment.decision.step async for moment in played.agent.stream("Go.") if moment.decision]
    assert "Helped." in [step.output for step in moments if step.event == "after_model"]


# --- subagents ------------------------------------------------------------------------------------


async def test_a_subagent_s_answer_is_the_tool_s_result(scene):
    played = await scene(HELP).play()
    assert played.sent[1][-1] == "result: Helped."


async def test_a_subagent_has_a_session_of_its_own_that_names_its_parent(scene):
    played = await scene(HELP).play()
    (start,) = played.steps("subagent_start")
    assert start.session_id != played.agent.session.session_id
    assert (start.agent.name, start.agent.parent) == ("helper", played.agent.session.agent.id)


async def test_a_subagent_s_turn_says_that_it_is_one(scene):
    played = await scene(HELP).play()
    assert [(step.is_subagent, step.agent_type) for step in played.steps("turn_start")] == [
        (False, None),
        (True, "helper"),
    ]


async def test_the_parent_s_hooks_apply_to_a_subagent_s_tools(scene):
    played = scene(HELP, helper=[LOOK])
    played.add(lambda step: deny("no") if step.agent.name == "helper" else None, on="before_tool")
    await played.play()
    assert (played.ran, played.helper.sent[1][-1]) == ([], "error: Hook blocked tool 'look': no")


async def test_a_subagent_starts_afresh_each_time(scene):
    played = await scene(HELP, HELP).play()
    assert played.helper.sent == [["system: You help.", "user: Help me."]] * 2


async def test_a_subagent_is_extended_at_most_three_times(scene):
    played = scene(HELP)
    played.add(lambda step: extend(f"more {step.continues_so_far}"), on="subagent_stop")
    await played.play()
    assert (len(played.helper.sent), [step.continues_so_far for step in played.steps("subagent_stop")]) == (
        4,
        [0, 1, 2, 3],
    )


async def test_a_subagent_whose_model_fails_is_an_error_result(scene):
    played = await scene(HELP, helper=[RuntimeError("down")]).play()
    assert played.sent[1][-1].startswith("error: the model")
    assert (played.output, "down" in played.sent[1][-1]) == ("Done.", True)


async def test_several_subagents_work_at_once(scene):
    both = ("Ask two.", [("helper", {"message": "one"}), ("helper", {"message": "two"})])
    played = await scene(both, helper=["First.", "Second."]).play()
    assert sorted(played.sent[1][-2:]) == ["result: First.", "result: Second."]  # whichever asked its model first
    assert len({step.session_id for step in played.steps("subagent_start")}) == 2


# --- notifications --------------------------------------------------------------------------------


async def test_notify_tells_the_user(scene):
    played = scene()
    await played.agent.notify("half way", "debug")
    assert [(step.message, step.level) for step in played.steps("notification")] == [("half way", "debug")]


# --- odds and ends --------------------------------------------------------------------------------


async def test_an_agent_without_hooks_works(scripted):
    async with Agent(scripted("Hello.").model) as agent:
        assert (await agent.run("Hi.")).output == "Hello."


async def test_what_an_agent_is_told_about_its_user_is_in_every_step(scripted):
    hooks = Hooks()
    seen = Recorder(hooks)
    async with Agent(scripted().model, hooks=hooks, user_id="u-1", channel="cli", name="clerk") as agent:
        await agent.run("Hi.")
    assert {(step.user_id, step.channel, step.agent.name, step.host) for step in seen.steps} == {
        ("u-1", "cli", "clerk", "loop")
    }


async def test_background_work_of_a_hook_is_waited_for_at_the_end(scene):
    played = scene()
    finished: list[str] = []

    async def work():
        await asyncio.sleep(0)
        finished.append("work")

    played.add(lambda step: current_session().spawn(work()), on="before_model")
    played.add(lambda step: finished.append("end"), on="session_end", name="end")
    await played.play()
    assert finished == ["work", "end"]


async def test_a_gate_that_breaks_keeps_the_tool_from_running(scene):
    def broken(step):
        raise RuntimeError("list not found")

    played = scene(LOOK)
    played.add(broken, on="before_tool", phase="gate")
    await played.play()
    assert (played.ran, played.sent[1][-1].startswith("error: Hook blocked tool 'look'")) == ([], True)


async def test_an_approver_may_take_its_time(scripted):
    asked, answered = asyncio.Event(), asyncio.Event()

    async def approve(request):
        asked.set()
        await answered.wait()
        return Approval("allow")

    async def touch(args):
        return "touched"

    model = scripted(("", [("touch", {})]))
    tools = [Tool("touch", "", {}, touch, "write", "mutating")]
    async with asyncio.timeout(5), Agent(model.model, tools, Hooks(approver=approve)) as agent:
        work = asyncio.create_task(agent.run("Go."))
        await asked.wait()
        assert len(model.sent) == 1
        answered.set()
        await work
    assert model.sent[1][-1] == "result: touched"
