"""Hooks that were written once, in every framework: each behaviour in every way in which the framework can be run.

A behaviour says what it needs of the framework. Where the framework cannot do that, the very same hooks must be
reported as unsupported, and nothing may slip through in silence.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from driver import Call, Say, call
from scene import Scene, aborted, has

from fairlead import (
    Approval,
    Hooks,
    Unenforceable,
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
    stop,
)
from fairlead.journal import Journal
from fairlead.journal.reading import Reader
from fairlead.journal.verify import verify

LS = call("shell", command="ls")
ORDER = """
session_start before_request before_input after_input turn_start before_prompt before_model after_model
tool_requested before_tool before_permission after_permission after_tool after_tool_batch before_model after_model
before_turn_end before_response turn_end before_output after_request session_end
"""
"""The events of a run with one tool call."""
Need = tuple[str, str]
Body = Callable[..., Awaitable[None]]


def needs(*wanted: Need) -> Callable[[Body], Body]:
    """What a framework must be able to carry out for this. Elsewhere, it must say that it cannot."""

    def decorate(body: Body) -> Body:
        @functools.wraps(body)
        async def behaviour(scene: Scene, **fixtures: Any) -> None:
            missing = [(event, part) for event, part in wanted if not scene.can(event, part)]
            if not missing:
                await body(scene, **fixtures)
                return
            scene.seen = "reported"
            failed: BaseException | None = None
            try:
                await body(scene, **fixtures)
            except (AssertionError, IndexError) as seen:  # of course: it cannot do it
                failed = seen
            assert failed is not None, f"{missing} is not in the table, and yet works"
            for event, part in missing:
                fired = any(d.event == event and (d.control == part or part in d.changed) for d in scene.decisions)
                said = (event, part) in scene.reported or any(
                    isinstance(error, Unenforceable) for error in scene.errors
                )
                assert said or not fired, f"{part} at {event} was lost in silence"

        behaviour.wanted = wanted  # type: ignore[attr-defined]
        return behaviour

    return decorate


# --- tools ------------------------------------------------------------------------------------------


@needs(("before_tool", "deny"))
async def test_a_denied_call_does_not_run_and_the_model_is_told_why(scene: Scene) -> None:
    scene.add(lambda step: deny("no ls here") if step.target.command == "ls" else None, on="before_tool", kind="shell")
    played = await scene.play(LS)
    assert scene.ran == []
    assert has(played.sent[1], "no ls here", "tool")
    assert played.output == "Done."


@needs(("before_tool", "deny"))
async def test_only_the_denied_one_of_several_calls_is_left_out(scene: Scene) -> None:
    scene.add(lambda step: deny("no") if step.target.command == "rm" else None, on="before_tool", kind="shell")
    both = Call([("shell", {"command": "ls"}), ("shell", {"command": "rm"}), ("read", {"path": "a"})])
    played = await scene.play(both)
    assert sorted(str(args) for _, args in scene.ran) == ["{'command': 'ls'}", "{'path': 'a'}"]
    assert has(played.sent[1], "ran ls", "tool")
    assert has(played.sent[1], "no", "tool")


@needs(("before_tool", "args"))
async def test_rewritten_arguments_reach_the_tool_and_not_the_model_s_history(scene: Scene) -> None:
    scene.add(change(args={"command": "ls -l"}), on="before_tool", tool="shell", once=True)
    played = await scene.play(LS)
    assert scene.ran == [("shell", {"command": "ls -l"})]
    assert has(played.sent[1], 'calls shell {"command": "ls"}', "assistant")
    assert has(played.sent[1], "ran ls -l", "tool")


@needs(("before_tool", "args"))
async def test_a_gate_sees_the_rewritten_arguments(scene: Scene) -> None:
    seen: list[Any] = []
    scene.add(change(args={"command": "ls -l"}), on="before_tool")
    scene.hooks.add(lambda step: seen.append(step.target.command), on="before_tool", phase="gate", name="gate")
    await scene.play(LS)
    assert seen == ["ls -l"]


@needs(("before_tool", "result"))
async def test_an_answer_stands_in_for_the_tool(scene: Scene) -> None:
    scene.add(answer("a cached listing"), on="before_tool")
    played = await scene.play(LS)
    assert scene.ran == []
    assert has(played.sent[1], "a cached listing", "tool")
    assert [step.outcome for step in scene.steps("after_tool")] == ["answered"]


@needs(("after_tool", "deny"))
async def test_a_withheld_output_never_reaches_the_model(scene: Scene) -> None:
    scene.add(deny("not for you"), on="after_tool")
    played = await scene.play(LS)
    assert len(scene.ran) == 1
    assert has(played.sent[1], "not for you", "tool")
    assert not any(has(request, "ran ls") for request in played.sent)


@needs(("after_tool", "output"))
async def test_a_redacted_output_is_what_the_model_reads(scene: Scene) -> None:
    scene.add(lambda step: change(output=step.output.replace("ls", "[redacted]")), on="after_tool", outcome="ok")
    played = await scene.play(LS)
    assert has(played.sent[1], "ran [redacted]", "tool")
    assert not has(played.sent[1], "ran ls", "tool")


@needs(("after_tool", "output"))
async def test_a_redacted_failure_is_what_the_model_reads(scene: Scene) -> None:
    redact = lambda step: change(output=step.output.replace("hunter2", "[redacted]"))
    scene.add(redact, on="after_tool")
    played = await scene.play(call("fail", why="no such user: hunter2"))
    assert not any("hunter2" in text for request in played.sent[1:] for text in request if not text.startswith("assi"))
    if "Unenforceable" not in str(played.error) and len(played.sent) > 1:  # else the turn has ended, which is safe, too
        assert has(played.sent[1], "no such user: [redacted]", "tool")


async def test_the_output_of_a_failed_call_is_what_can_be_changed(scene: Scene) -> None:
    await scene.play(call("fail", why="broken pipe"))
    (step,) = scene.steps("after_tool")
    assert "broken pipe" in step.output
    assert "broken pipe" in step.error


@needs(("after_tool", "retry"))
async def test_a_failed_call_is_tried_again_when_a_hook_says_so(scene: Scene) -> None:
    scene.add(lambda step: retry() if step.is_error else None, on="after_tool")
    played = await scene.play(call("flaky", why="busy"))
    assert len(scene.ran) == 2
    assert has(played.sent[1], "worked", "tool")


async def test_observers_hear_of_denied_calls(scene: Scene) -> None:
    received: list[tuple[str, bool]] = []
    scene.add(deny("no"), on="before_tool")
    scene.hooks.add(
        lambda step: received.append((step.outcome, step.executed)), on="after_tool", phase="observe", name="watch"
    )
    await scene.play(LS)
    assert received == [("denied", False)]


async def test_a_tool_that_raises_is_told_as_an_error(scene: Scene) -> None:
    await scene.play(call("fail", why="broken pipe"))
    (step,) = scene.steps("after_tool")
    assert (step.outcome, step.is_error, step.executed) == ("error", True, True)
    assert "broken pipe" in step.error


async def test_calls_of_one_reply_run_at_once_and_are_one_batch(scene: Scene) -> None:
    two = Call([("slow", {"name": "one"}), ("slow", {"name": "two"})])
    played = await scene.play(two)
    assert has(played.sent[1], "one is done", "tool")
    assert has(played.sent[1], "two is done", "tool")
    assert len(scene.steps("after_tool")) == 2
    if scene.can("after_tool_batch"):
        assert [len(step.results) for step in scene.steps("after_tool_batch")] == [2]


async def test_a_call_has_one_id_and_its_kind_and_target_in_all_its_events(scene: Scene) -> None:
    await scene.play(LS)
    steps = [d.step for d in scene.decisions if d.event in ("tool_requested", "before_tool", "after_tool")]
    assert len({step.call_id for step in steps}) == 1
    assert {(step.tool, step.kind, step.target.command) for step in steps} == {("shell", "shell", "ls")}


# --- context ----------------------------------------------------------------------------------------


@needs(("before_input", "context"))
async def test_context_at_the_input_is_read_by_the_model(scene: Scene) -> None:
    scene.add(inject("You are on main."), on="before_input")
    played = await scene.play(LS)
    assert [has(request, "[judge] You are on main.") for request in played.sent] == [True, True]


@needs(("after_tool", "context"))
async def test_context_after_a_tool_is_read_by_the_model_and_stays(scene: Scene) -> None:
    scene.add(inject("That was slow."), on="after_tool", once=True)
    played = await scene.play(LS, call("read", path="a"))
    assert [has(request, "That was slow.") for request in played.sent] == [False, True, True]


# --- the model --------------------------------------------------------------------------------------


@needs(("before_model", "model"))
async def test_the_model_can_be_switched_for_one_request(scene: Scene) -> None:
    scene.add(change(model="second"), on="before_model", once=True)
    played = await scene.play(LS)
    assert played.models == ["second", "first"]


@needs(("before_model", "assistant"))
async def test_an_answer_stands_in_for_the_model(scene: Scene) -> None:
    scene.add(answer("From the cache."), on="before_model")
    played = await scene.play()
    assert (played.sent, played.output) == ([], "From the cache.")


@needs(("before_model", "messages"))
async def test_messages_can_be_rewritten_for_the_model(scene: Scene) -> None:
    def hide(step: Any) -> Any:
        clean = [{**m, "content": str(m["content"]).replace("hunter2", "***")} for m in step.messages]
        return change(messages=clean)

    scene.add(hide, on="before_model")
    played = await scene.play(LS, given="My password is hunter2.")
    assert all(has(request, "My password is ***.", "user") for request in played.sent)
    assert not any(has(request, "hunter2") for request in played.sent)
    assert has(played.sent[1], "ran ls", "tool")


@needs(("after_model", "output"))
async def test_the_model_s_words_can_be_changed_before_the_user_reads_them(scene: Scene) -> None:
    scene.add(lambda step: change(output=step.output.replace("hunter2", "***")), on="after_model")
    played = await scene.play(Say("It is hunter2."))
    assert played.output == "It is ***."
    assert "hunter2" not in "".join(played.pieces)


@needs(("before_model", "deny"))
async def test_a_model_that_hooks_refuse_without_end_is_given_up_after_three_attempts(scene: Scene) -> None:
    scene.add(deny("not now"), on="before_model")
    played = await scene.play()
    assert [step.attempt for step in scene.steps("before_model")] == [1, 2, 3]
    assert (played.sent, played.output) == ([], "[Stopped: not now]")
    assert [step.stop_reason for step in scene.steps("turn_end")] == ["refusal"]


@needs(("before_model", "deny"))
async def test_a_refused_request_is_made_again_with_the_reason(scene: Scene) -> None:
    scene.add(deny("say please"), on="before_model", once=True)
    played = await scene.play()
    assert [step.attempt for step in scene.steps("before_model")] == [1, 2]
    assert has(played.sent[0], "say please", "user")
    assert played.output == "Done."


# --- the turn ---------------------------------------------------------------------------------------


@needs(("before_input", "deny"))
async def test_a_refused_message_never_reaches_the_model(scene: Scene) -> None:
    scene.add(deny("not here"), on="before_input")
    played = await scene.play(LS)
    assert played.sent == []
    assert "not here" in (played.output or "")


@needs(("before_input", "deny"), ("before_input", "context"))
async def test_context_with_a_refused_message_is_read_with_the_next_one(scene: Scene) -> None:
    scene.add(deny("not here", context="Mind the gap."), on="before_input", once=True)
    scene.adapter = scene.driver.adapter(scene.hooks)
    refused = await scene.play(session_id="c1", given="Secret.")
    accepted = await scene.play(session_id="c1", given="Hello.")
    await scene.driver.close(scene.adapter)
    assert refused.sent == []
    assert has(accepted.sent[0], "[judge] Mind the gap.")


@needs(("after_tool", "stop"))
async def test_a_hook_can_stop_the_turn(scene: Scene) -> None:
    scene.add(stop("enough"), on="after_tool")
    played = await scene.play(LS, LS, LS)
    assert (len(scene.ran), len(played.sent)) == (1, 1)
    assert "enough" in (played.output or "")
    assert played.error is None


@needs(("before_turn_end", "extend"))
async def test_a_turn_is_kept_alive_until_the_work_is_done_but_not_for_ever(scene: Scene) -> None:
    scene.add(extend("The tests still fail."), on="before_turn_end")
    played = await scene.play(Say("1"), Say("2"), Say("3"), Say("4"), Say("5"))
    assert (len(played.sent), played.output) == (4, "4")
    assert [step.continues_so_far for step in scene.steps("before_turn_end")] == [0, 1, 2, 3]
    assert has(played.sent[1], "The tests still fail.", "user")


@needs(("before_output", "content"))
async def test_what_the_user_sees_can_be_changed(scene: Scene) -> None:
    scene.add(lambda step: change(content=step.content.replace("hunter2", "***")), on="before_output")
    played = await scene.play(Say("It is hunter2."))
    assert played.output == "It is ***."
    assert "hunter2" not in "".join(played.pieces)


async def test_an_abort_fails_the_request(scene: Scene) -> None:
    scene.add(abort("no more"), on="before_tool")
    played = await scene.play(LS)
    assert scene.ran == []
    assert len(played.sent) == 1
    assert aborted(played.error) or (
        not scene.can("before_tool", "abort") and ("before_tool", "abort") in scene.reported
    )


async def test_a_stream_comes_piece_by_piece_where_no_hook_may_change_it(scene: Scene) -> None:
    scene.hooks.add(lambda step: None, on="after_model", phase="observe", name="watch")
    played = await scene.play(Say("One two three."))
    assert played.output == "One two three."
    if scene.way == "streaming":
        assert "".join(played.pieces) == "One two three."


# --- approvals --------------------------------------------------------------------------------------


async def test_an_approved_call_runs(scene: Scene) -> None:
    asked: list[str] = []

    async def approve(request: Any) -> Approval:
        asked.append(request.question)
        return Approval("allow", "alice")

    scene.hooks.approver = approve
    scene.add(ask("May it?"), on="before_tool")
    await scene.play(LS)
    assert (asked, len(scene.ran)) == (["May it?"], 1)


async def test_a_call_that_is_not_approved_does_not_run_and_the_model_is_told(scene: Scene) -> None:
    async def refuse(request: Any) -> Approval:
        return Approval("deny", "alice", "not on Fridays")

    scene.hooks.approver = refuse
    scene.add(ask("May it?"), on="before_tool")
    played = await scene.play(LS)
    assert scene.ran == []
    assert has(played.sent[1], "not on Fridays", "tool")


async def test_a_question_without_an_approver_is_a_refusal(scene: Scene) -> None:
    scene.add(ask("May it?"), on="before_tool")
    await scene.play(LS)
    assert scene.ran == []


@needs(("before_tool", "ask"))
async def test_the_framework_s_own_approval_lets_a_call_run(scene: Scene) -> None:
    scene.add(ask("May it?"), on="before_tool")
    played = await scene.play(LS, approve=True)
    assert scene.of("before_tool")[0].control == "ask"
    assert scene.ran == [("shell", {"command": "ls"})]
    assert has(played.sent[-1], "ran ls", "tool")
    assert [step.outcome for step in scene.steps("after_tool")] == ["ok"]


@needs(("before_tool", "ask"))
async def test_the_framework_s_own_refusal_keeps_a_call_from_running(scene: Scene) -> None:
    scene.add(ask("May it?"), on="before_tool")
    played = await scene.play(LS, approve=False)
    assert scene.of("before_tool")[0].control == "ask"
    assert scene.ran == []
    assert played.output == "Done."
    assert [step.outcome for step in scene.steps("after_tool")] == ["denied"]


SPEND, DELETE, REALLY = "Spend 5 EUR?", "Delete the production database?", "Really?"


def two_questions(scene: Scene) -> None:
    scene.add(ask(SPEND), on="before_tool", name="budget")
    scene.add(ask(DELETE), on="before_tool", name="ops", phase="gate")


@pytest.mark.parametrize("refused", [None, "budget", "ops"])
async def test_a_call_runs_only_if_every_question_is_approved(scene: Scene, refused: str | None) -> None:
    put: list[str] = []

    async def approve(request: Any) -> Approval:
        put.append(request.hook)
        return Approval("deny" if request.hook == refused else "allow", "alice")

    scene.hooks.approver = approve
    two_questions(scene)
    await scene.play(LS)
    assert (put, len(scene.ran)) == (["budget"] if refused == "budget" else ["budget", "ops"], refused is None)


@needs(("before_tool", "ask"))
@pytest.mark.parametrize("approve", [True, False])
async def test_the_framework_s_own_question_shows_what_every_hook_asks(scene: Scene, approve: bool) -> None:
    two_questions(scene)
    played = await scene.play(LS, approve=approve)
    assert [f"[budget] {SPEND}" in text and f"[ops] {DELETE}" in text for text in played.asked] == [True]
    assert len(scene.ran) == approve


@needs(("before_tool", "ask"), ("before_permission", "ask"))
async def test_the_framework_s_own_question_shows_what_is_asked_at_either_event(scene: Scene) -> None:
    two_questions(scene)
    scene.add(ask(REALLY), on="before_permission", name="late")
    played = await scene.play(LS, approve=True)
    assert [all(text in shown for text in (SPEND, DELETE, REALLY)) for shown in played.asked] == [True]
    assert len(scene.ran) == 1


@needs(("before_tool", "ask"))
async def test_what_a_hook_asks_is_not_answered_by_another_that_allows(scene: Scene) -> None:
    scene.add(ask(SPEND), on="before_tool", name="budget")
    scene.add(allow(), on="before_permission", name="generous")
    played = await scene.play(LS, approve=False)
    assert ([SPEND in text for text in played.asked], scene.ran) == ([True], [])


@needs(("before_tool", "ask"))
async def test_a_question_that_was_not_shown_is_not_approved(scene: Scene) -> None:
    scene.add(ask(SPEND), on="before_tool", name="budget")
    judged: list[Any] = []

    def second_thoughts(step: Any) -> Any:
        judged.append(step)
        return ask(DELETE) if len(judged) > 1 else None

    scene.add(second_thoughts, on="before_tool", name="ops")
    played = await scene.play(LS, approve=True)
    questions = [text for _, text in scene.of("before_tool")[-1].questions]
    assert len(questions) == min(len(judged), 2)  # some frameworks have a call judged again when there is an answer
    assert len(scene.ran) == all(text in played.asked[-1] for text in questions)  # some cannot ask anew, and refuse


# --- failures ---------------------------------------------------------------------------------------


def broken(step: Any) -> None:
    raise RuntimeError("list not found")


async def hanging(step: Any) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("hook", [broken, hanging])
async def test_a_hook_that_breaks_keeps_the_call_from_running(scene: Scene, hook: Any) -> None:
    scene.hooks.add(hook, on="before_tool", name="broken", **({"timeout": 0.05} if hook is hanging else {}))
    played = await scene.play(LS)
    assert scene.ran == []
    assert played.output == "Done."
    (decision,) = scene.of("before_tool")
    assert (decision.cause, decision.denied) == ("failure", True)


@pytest.mark.parametrize("hook", [broken, hanging])
async def test_a_hook_that_may_break_lets_the_call_run(scene: Scene, hook: Any) -> None:
    late = {"timeout": 0.05} if hook is hanging else {}
    scene.hooks.add(hook, on="before_tool", name="broken", on_failure="open", **late)
    played = await scene.play(LS)
    assert (len(scene.ran), played.output) == (1, "Done.")


async def test_an_observer_that_breaks_changes_nothing(scene: Scene) -> None:
    scene.hooks.add(broken, on="*", phase="observe", name="broken")
    played = await scene.play(LS)
    assert (len(scene.ran), played.output, played.error) == (1, "Done.", None)


async def test_a_hook_in_monitor_mode_changes_nothing(scene: Scene) -> None:
    scene.add(deny("no"), on="before_tool", enforce=False)
    played = await scene.play(LS)
    assert (len(scene.ran), played.output) == (1, "Done.")
    assert [seen.control for decision in scene.of("before_tool") for seen in decision.monitored] == ["deny"]


async def test_a_model_that_fails_is_told_as_an_error_and_the_request_ends(scene: Scene) -> None:
    played = await scene.play(RuntimeError("overloaded"))
    assert played.error is not None
    assert scene.events.count("after_request") == scene.events.count("before_request")
    assert scene.events.count("turn_end") == scene.events.count("turn_start")
    assert "overloaded" in "".join(str(step.error) for step in scene.steps("error"))


# --- identity, state, sessions ----------------------------------------------------------------------


async def test_state_and_counters_last_for_the_whole_run(scene: Scene) -> None:
    counts: list[int] = []

    def count(step: Any) -> Any:
        session = current_session()
        assert session is not None
        session.state["last"] = step.tool
        counts.append(session.store.increment("calls"))
        return deny("one is enough") if counts[-1] > 1 else None

    scene.hooks.add(count, on="before_tool", name="count")
    await scene.play(LS, LS)
    assert (counts, len(scene.ran)) == ([1, 2], 1)


async def test_a_session_starts_and_ends_once(scene: Scene) -> None:
    await scene.play(LS)
    assert (scene.events[0], scene.events[-1]) == ("session_start", "session_end")
    assert [scene.events.count(name) for name in ("session_start", "session_end")] == [1, 1]
    assert len({decision.step.session_id for decision in scene.decisions}) == 1


async def test_two_requests_of_one_conversation_are_one_session(scene: Scene) -> None:
    scene.adapter = scene.driver.adapter(scene.hooks)
    await scene.play(session_id="c1")
    await scene.play(session_id="c1")
    await scene.driver.close(scene.adapter)
    assert [scene.events.count(name) for name in ("session_start", "before_request", "session_end")] == [1, 2, 1]
    assert len({decision.step.session_id for decision in scene.decisions}) == 1


async def test_a_session_that_may_not_start_does_not_start_the_second_time_either(scene: Scene) -> None:
    scene.add(abort("closed on Sundays"), on="session_start")
    scene.adapter = scene.driver.adapter(scene.hooks)
    for _ in range(2):
        played = await scene.play(LS, session_id="c1")
        assert (played.sent, scene.ran) == ([], [])
    await scene.driver.close(scene.adapter)


async def test_every_step_says_which_host_and_which_request(scene: Scene) -> None:
    await scene.play(LS)
    assert {decision.step.host for decision in scene.decisions} == {scene.driver.framework.name}
    inside = [d.step for d in scene.decisions if d.event not in ("session_start", "session_end", "before_request")]
    assert len({step.request_id for step in inside}) == 1
    assert None not in {step.request_id for step in inside}


async def test_the_order_of_a_run_is_that_of_the_reference_loop(scene: Scene) -> None:
    await scene.play(LS)
    assert scene.events == [event for event in ORDER.split() if scene.can(event)]


async def test_a_subagent_has_an_identity_of_its_own(scene: Scene) -> None:
    if not scene.driver.helpers:
        scene.seen = "silent"
        assert not scene.can("subagent_start")
        return
    scene.add(lambda step: deny("not for helpers") if step.agent.name == "helper" else None, on="before_tool")
    played = await scene.play(call("helper", message="Help me."), helper=[LS, Say("Helped.")])
    (start,) = scene.steps("subagent_start")
    assert (start.agent.name, start.agent.parent is not None) == ("helper", True)
    assert scene.ran == []
    assert any(has(request, "not for helpers", "tool") for request in played.sent)


async def test_a_subagent_shares_the_limits_and_the_root_session_of_the_agent_that_started_it(scene: Scene) -> None:
    if not scene.driver.helpers:
        return

    def limit(step: Any) -> Any:
        session = current_session()
        assert session is not None
        return deny("that is enough") if session.store.increment("calls") > 2 else None

    scene.add(limit, on="before_tool", kind="shell")
    await scene.play(LS, call("helper", message="Help me."), LS, helper=[LS, LS, Say("Helped.")])
    assert len(scene.ran) == 2
    (session,) = {step.session_id for step in scene.steps("session_start")}
    assert {decision.step.root_session_id for decision in scene.decisions} == {session}


async def test_two_runs_at_once_do_not_mix(scene: Scene) -> None:
    if scene.way == "sync":
        return  # one thread does one thing
    scene.adapter = scene.driver.adapter(scene.hooks)
    scene.add(lambda step: change(args={"command": f"{step.args['command']} of {step.session_id}"}), on="before_tool")
    both = [scene.play(LS, session_id=name, bench=type(scene.bench)(scene.ran)) for name in ("c1", "c2")]
    await asyncio.gather(*both)
    await scene.driver.close(scene.adapter)
    sessions = {d.step.session_id for d in scene.of("before_tool")}
    assert len(sessions) == 2
    assert sorted(args["command"] for _, args in scene.ran) == sorted(f"ls of {name}" for name in sessions)


async def test_what_happened_is_in_the_journal(scene: Scene, tmp_path: Any) -> None:
    path = tmp_path / "journal.db"
    with Journal(path) as journal:
        hooks = Hooks(journal=journal)
        hooks.add(lambda step: deny("no"), on="before_tool", name="judge")
        await scene.driver.play(
            hooks, LS, bench=scene.bench, streaming=scene.way == "streaming", sync=scene.way == "sync"
        )
    assert verify(path).problem is None
    with Reader(path) as reader:
        found = [record.body["step"]["event"] for record in reader.records() if not record.is_note]
    assert (found.count("before_tool"), found.count("after_tool")) == (1, 1)


async def test_a_journal_that_cannot_be_written_and_fails_closed_stops_the_agent(scene: Scene, tmp_path: Any) -> None:
    journal = Journal(tmp_path, durability="full")  # a folder
    hooks = Hooks(journal=journal)
    played = await scene.driver.play(
        hooks, LS, bench=scene.bench, streaming=scene.way == "streaming", sync=scene.way == "sync"
    )
    journal.close(0.1)
    assert scene.ran == []
    assert played.output != "Done."


async def test_allow_lets_a_call_run_without_asking(scene: Scene) -> None:
    scene.add(allow(), on="before_tool")
    await scene.play(LS)
    assert len(scene.ran) == 1
