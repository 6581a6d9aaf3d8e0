"""The lifecycle that the loop and every framework adapter share: turns, tool calls and flows, without a framework."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fairlead import (
    Approval,
    HookAborted,
    Hooks,
    UnknownName,
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
    stop,
)
from fairlead.hosts.frameworks.flow import Call, Dispatch, Flow, Pause, run_flow, run_flow_sync
from fairlead.hosts.frameworks.framework import WHOLE, Framework
from fairlead.hosts.frameworks.messages import Reply
from fairlead.hosts.frameworks.turn import LastingSession, ModelCall, ModelResult, Sessions, TurnOutput, end_session
from fairlead.lifecycle import BeforeInput
from fairlead.testing import Recorder

FRAMEWORK = Framework(name="some", title="Some", package="some", versions=">=1", can=WHOLE)


@pytest.mark.parametrize(
    ("while_at", "on"),
    [("tool_requested", "before_tool"), ("tool_requested", "before_permission"), ("before_tool", "before_permission")],
)
async def test_a_hook_that_is_added_while_a_call_is_judged_is_asked(while_at: str, on: str) -> None:
    hooks = Hooks()
    ran: list[Any] = []
    hooks.add(lambda step: hooks.add(lambda step: deny("no"), on=on, name="late") and None, on=while_at, name="adds")
    turn = Sessions(hooks, FRAMEWORK).turn("s1")
    await run_flow(turn.begin("Go."))
    called = await run_flow(turn.tool("shell", {"command": "ls"}, "c1", ran.append).perform())
    assert (called.outcome, ran) == ("denied", [])


# --- sessions -----------------------------------------------------------------------------------


def test_what_is_no_hooks_is_refused() -> None:
    with pytest.raises(TypeError, match="takes the Hooks that yours are registered with, not list"):
        Sessions([], FRAMEWORK)  # type: ignore[arg-type]


def test_an_unknown_keyword_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match="user_id"):
        Sessions(Hooks(), FRAMEWORK, user="u")


def test_without_hooks_there_are_some_to_add_to() -> None:
    assert list(Sessions(None, FRAMEWORK).hooks) == []


def test_a_request_has_the_session_of_its_id() -> None:
    sessions = Sessions(Hooks(), FRAMEWORK)
    first, second, other = (sessions.turn(name).session for name in ("s1", "s1", "s2"))
    assert (first.session_id, first.store is second.store, first.store is other.store) == ("s1", True, False)


def test_requests_without_an_id_have_sessions_of_their_own() -> None:
    sessions = Sessions(Hooks(), FRAMEWORK)
    first, second = sessions.turn().session, sessions.turn().session
    assert first.session_id != second.session_id
    assert first.store is not second.store


def test_a_key_tells_sessions_of_one_id_apart() -> None:
    sessions = Sessions(Hooks(), FRAMEWORK)
    first, second, again = (sessions.turn("s1", key=key).session for key in ("a", "b", "a"))
    assert (first.store is again.store, first.store is second.store) == (True, False)


def test_a_session_id_for_all_requests_may_be_given() -> None:
    sessions = Sessions(Hooks(), FRAMEWORK, session_id="s1")
    first, second = sessions.turn().session, sessions.turn().session
    assert (first.session_id, first.store is second.store) == ("s1", True)


def test_agents_that_share_a_session_keep_their_names_and_ids() -> None:
    sessions = Sessions(Hooks(), FRAMEWORK)
    one, two, again = (sessions.turn("s1", agent=name).session for name in ("one", "two", "two"))
    assert [session.agent.name for session in (one, two, again) if session.agent] == ["one", "two", "two"]
    assert two.agent == again.agent != one.agent
    assert two.store is one.store


def test_an_agent_that_the_user_names_has_this_name_in_each_request() -> None:
    sessions = Sessions(Hooks(), FRAMEWORK, agent="mine")
    for name in ("one", "two"):
        agent = sessions.turn("s1", agent=name).session.agent
        assert agent is not None
        assert agent.name == "mine"


def test_sessions_of_one_id_in_two_parts_of_a_framework_share_their_store() -> None:
    agents = Sessions(Hooks(), FRAMEWORK)
    nodes = Sessions(agents.hooks, FRAMEWORK, beside=agents)
    for first, second in ((agents, nodes), (nodes, agents)):
        session = first.turn(f"s{id(first)}").session
        assert second.turn(f"s{id(first)}").session.store is session.store
    assert nodes.turn("other").session.store is not agents.turn("s1").session.store


@pytest.mark.parametrize(("agent", "name"), [(None, "agent"), ("coder", "coder")])
def test_an_agent_without_a_name_is_the_agent(agent: str | None, name: str) -> None:
    session = Sessions(Hooks(), FRAMEWORK).turn(agent=agent).session
    assert session.agent is not None
    assert (session.agent.name, session.host) == (name, "some")


def test_a_session_knows_what_its_framework_can_do_and_how_often() -> None:
    session = Sessions(Hooks(), FRAMEWORK).turn().session
    assert session.capabilities == FRAMEWORK.capabilities(False)
    assert session.limits == {"extend": 3, "retry": 2}


@pytest.mark.parametrize(
    ("asks", "approver", "left"), [(True, None, True), (False, None, False), (True, lambda request: True, False)]
)
def test_questions_are_left_to_a_framework_that_asks_unless_the_hooks_have_an_approver(
    asks: bool, approver: Any, left: bool
) -> None:
    session = Sessions(Hooks(approver=approver), FRAMEWORK, asks=asks).turn().session
    assert (session.approver is not None) is left


@pytest.mark.parametrize(
    ("phase", "events", "judges"),
    [
        ("transform", ("before_tool", "after_tool"), True),
        ("gate", ("after_tool",), True),
        ("gate", ("before_tool",), False),
        ("observe", ("after_tool",), False),
    ],
)
def test_a_hook_that_only_observes_does_not_judge(phase: Any, events: tuple[str, ...], judges: bool) -> None:
    hooks = Hooks()
    hooks.add(lambda step: None, on="after_tool", name="h", phase=phase)
    assert Sessions(hooks, FRAMEWORK).judges(*events) is judges


async def test_beyond_so_many_sessions_the_least_recently_used_one_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead.hosts.frameworks.turn.SESSIONS", 2)
    hooks = Hooks()
    seen = Recorder(hooks)
    sessions = Sessions(hooks, FRAMEWORK)
    for session_id in ("s1", "s2", "s1"):
        await run_flow(sessions.turn(session_id).begin("Go."))
    assert seen.of("session_end") == []
    await run_flow(sessions.turn("s3").begin("Go."))
    assert [(d.step.session_id, d.step.reason) for d in seen.of("session_end")] == [("s2", "forgotten")]


async def test_sessions_of_one_request_are_not_kept() -> None:
    scene = Scripted()
    await run_flow(scene.sessions.turn().begin("Go."))
    await run_flow(scene.sessions.closing())
    assert "session_end" not in scene.seen.events


async def test_the_steps_of_a_request_have_its_id() -> None:
    scene = Scripted()
    for _ in range(2):
        scene.turn = scene.sessions.turn("s1")
        await run_flow(scene.turn.begin("Go."))
        await scene.end()
    assert [step.request_id for step in scene.steps("turn_start")] == [
        step.request_id for step in scene.steps("after_request")
    ]
    assert len({step.request_id for step in scene.steps("turn_start")} - {None}) == 2


async def test_a_session_starts_and_ends_once() -> None:
    scene = Scripted()
    for _ in range(2):
        turn = scene.sessions.turn("s1")
        await run_flow(turn.begin("Go."))
        await run_flow(turn.end("Done."))
    for _ in range(2):
        await run_flow(scene.sessions.over("s1", "exit"))
    assert [event for event in scene.seen.events if event.startswith("session")] == ["session_start", "session_end"]


async def test_a_session_that_no_request_has_begun_in_ends_without_events() -> None:
    scene = Scripted()
    await run_flow(scene.sessions.closing())
    assert scene.seen.events == []


async def test_a_session_that_has_not_started_has_no_decisions_at_its_end() -> None:
    entry = LastingSession(Hooks().session())
    assert await run_flow(end_session(entry, "exit")) == []


@pytest.mark.parametrize("refusal", [abort("no"), deny("no")], ids=["abort", "deny"])
async def test_a_session_that_may_not_start_ends_and_the_next_request_starts_another(refusal: Verdict) -> None:
    scene = Scripted()
    scene.add(refusal, on="session_start", once=True)
    with pytest.raises(HookAborted, match=":hook_abort] no"):
        await run_flow(scene.turn.begin("Go."))
    await run_flow(scene.sessions.turn("s1").begin("Go."))
    begun = [event for event in scene.seen.events if event.startswith("session")]
    assert begun == ["session_start", "session_end", "session_start"]


async def test_context_from_the_start_of_a_session_is_read_once() -> None:
    scene = Scripted("Hi.", "Hi.")
    scene.add(inject("welcome"), on="session_start")
    await run_flow(scene.turn.begin("Go."))
    await scene.ask()
    await scene.ask()
    assert scene.sent == [["[judge] welcome"], []]


# --- questions ----------------------------------------------------------------------------------


class Question:
    """A call in a framework that asks a human by its own means, and what was shown."""

    def __init__(self, answer: str, **says: Any) -> None:
        self.hooks = Hooks()
        self.shown: list[Any] = []
        self.ran: list[Any] = []
        self.answer = answer
        for name, verdict in says.items():
            event = name.partition("__")[0]
            self.hooks.add(lambda step, verdict=verdict: verdict, on=event, name=name, phase="gate")

    def _ask(self, decision: Any) -> Approval:
        self.shown.append(None if decision is None else decision.questions)
        return Approval(self.answer)  # type: ignore[arg-type]

    async def play(self, **how: Any) -> Any:
        turn = Sessions(self.hooks, FRAMEWORK, asks=True).turn("s1")
        await run_flow(turn.begin("Go."))
        return await run_flow(
            turn.tool("shell", {"command": "ls"}, "c1", self.ran.append, ask=self._ask, **how).perform()
        )


@pytest.mark.parametrize("answer", ["allow", "deny"])
async def test_questions_of_both_events_are_put_together(answer: str) -> None:
    call = Question(
        answer, before_tool__a=ask("spend?"), before_tool__b=ask("delete?"), before_permission__c=ask("really?")
    )
    await call.play()
    (shown,) = call.shown
    assert [question for _, question in shown] == ["spend?", "delete?", "really?"]
    assert bool(call.ran) is (answer == "allow")


async def test_a_hook_that_asks_the_same_at_both_events_asks_once() -> None:
    call = Question("allow")
    call.hooks.add(lambda step: ask("sure?"), on=["before_tool", "before_permission"], name="both")
    await call.play()
    assert call.shown == [(("both", "sure?"),)]


async def test_a_hook_that_grants_the_permission_does_not_answer_what_another_asks() -> None:
    call = Question("deny", before_tool=ask("spend?"), before_permission=allow())
    await call.play()
    assert (call.shown, call.ran) == ([(("before_tool", "spend?"),)], [])


async def test_a_hook_that_grants_the_permission_answers_the_framework() -> None:
    call = Question("deny", before_permission=allow())
    await call.play(proposed="ask")
    assert (call.shown, len(call.ran)) == ([], 1)


async def test_no_human_is_asked_when_the_permission_is_denied() -> None:
    call = Question("allow", before_tool=ask("spend?"), before_permission=deny("no"))
    await call.play()
    assert (call.shown, call.ran) == ([], [])


async def test_where_the_framework_asks_too_the_hooks_questions_are_shown() -> None:
    call = Question("allow", before_tool=ask("spend?"))
    await call.play(proposed="ask")
    assert call.shown == [(("before_tool", "spend?"),)]


# --- the turn -----------------------------------------------------------------------------------


class Scripted:
    """A turn in which every event is recorded, and whose model says what it was sent."""

    def __init__(self, *lines: str | Exception) -> None:
        self.hooks = Hooks()
        self.seen = Recorder(self.hooks)
        self.lines = list(lines)
        self.sent: list[list[str]] = []
        self.sessions = Sessions(self.hooks, FRAMEWORK)
        self.turn = self.sessions.turn("s1")

    def add(self, verdict: Verdict, on: str, *, once: bool = False) -> None:
        left = [verdict]
        self.hooks.add(lambda step: (left.pop() if left else None) if once else verdict, on=on, name="judge")

    async def ask(self, **options: Any) -> ModelResult:
        return await run_flow(self.turn.ask("tiny", list, self._call, Reply, **options))

    def _call(self, asking: ModelCall) -> str:
        self.sent.append(asking.context)
        line = self.lines.pop(0)
        if isinstance(line, Exception):
            raise line
        return line

    async def end(self) -> None:
        await run_flow(self.turn.end("Done."))

    def steps(self, event: str) -> list[Any]:
        return [decision.step for decision in self.seen.of(event)]


@pytest.mark.parametrize("event", ["before_model", "after_model"])
async def test_a_model_that_hooks_refuse_is_given_up_after_three_attempts(event: str) -> None:
    scene = Scripted("1", "2", "3", "4")
    scene.add(deny("no"), on=event)
    await run_flow(scene.turn.begin("Go."))
    assert await scene.ask() == ModelResult(None, "[Stopped: no]")
    assert [step.attempt for step in scene.steps("before_model")] == [1, 2, 3]
    assert (scene.turn.over, scene.turn.stop_reason) == (True, "refusal")


async def test_a_host_that_can_make_fewer_requests_goes_on_after_as_many_refusals() -> None:
    scene = Scripted()
    scene.add(deny("no"), on="before_model")
    await run_flow(scene.turn.begin("Go."))
    assert await scene.ask(attempts=2) == ModelResult()
    assert (scene.turn.over, [text.signed for text in scene.turn.waiting]) == (False, ["[judge] no", "[judge] no"])


async def test_context_with_a_refused_input_waits_for_the_next_input() -> None:
    scene = Scripted("Hi.")
    scene.add(deny("no", context="mind the gap"), on="before_input", once=True)
    await run_flow(scene.turn.begin("Secret."))
    await run_flow(scene.turn.end(None))
    scene.turn = scene.sessions.turn("s1")
    await run_flow(scene.turn.begin("Hello."))
    await scene.ask()
    assert scene.sent == [["[judge] mind the gap"]]


async def test_context_with_an_answer_in_the_model_s_place_is_read_in_the_next_request() -> None:
    scene = Scripted("Hi.")
    scene.add(answer("Cached.", context="mind the gap"), on="before_model", once=True)
    await run_flow(scene.turn.begin("Go."))
    assert (await scene.ask()).text == "Cached."
    await scene.ask()
    assert scene.sent == [["[judge] mind the gap"]]


async def test_a_failed_request_ends_its_turn_reports_the_error_and_ends() -> None:
    scene = Scripted(RuntimeError("down"))
    await run_flow(scene.turn.begin("Go."))
    with pytest.raises(RuntimeError) as failure:
        await scene.ask()
    await run_flow(scene.turn.failed(failure.value))
    assert scene.seen.events[-4:] == ["after_model", "turn_end", "error", "after_request"]


async def test_a_turn_that_is_stopped_before_it_starts_has_no_end() -> None:
    scene = Scripted()
    scene.add(stop("enough"), on="after_input")
    await run_flow(scene.turn.begin("Go."))
    shown = await run_flow(scene.turn.end(None))
    assert shown.text == "[Stopped: enough]"
    assert scene.seen.events[-3:] == ["after_input", "before_output", "after_request"]


async def test_steps_after_the_turn_do_not_carry_its_id() -> None:
    scene = Scripted()
    await run_flow(scene.turn.begin("Go."))
    await run_flow(scene.turn.end("Done."))
    with_turn = [step.event for step in scene.seen.steps if step.turn_id is not None]
    assert (with_turn[0], with_turn[-1]) == ("after_input", "turn_end")


async def test_errors_of_background_work_are_reported_when_the_session_ends() -> None:
    async def work() -> None:
        raise RuntimeError("lost")

    scene = Scripted()
    scene.hooks.add(lambda step: current_session().spawn(work()), on="turn_start", name="spawns")
    await run_flow(scene.turn.begin("Go."))
    await run_flow(scene.turn.end("Done."))
    await run_flow(scene.sessions.closing())
    assert scene.seen.events[-2:] == ["error", "session_end"]
    assert [step.error for step in scene.steps("error")] == ["RuntimeError: lost"]


@pytest.mark.parametrize(
    ("event", "verdict"),
    [("before_input", stop()), ("before_input", deny("no")), ("after_input", stop()), ("turn_start", stop())],
)
async def test_a_turn_that_does_not_begin_has_its_input_all_the_same(event: str, verdict: Verdict) -> None:
    scene = Scripted()
    scene.add(verdict, on=event)
    begun = await run_flow(scene.turn.begin("Go.", system_prompt="Be brief."))
    assert (begun.input, begun.system_prompt, scene.turn.over) == ("Go.", "Be brief.", True)
    assert "before_prompt" not in scene.seen.events


async def test_hooks_may_change_the_input_and_the_system_prompt() -> None:
    scene = Scripted()
    scene.hooks.add(lambda step: change(input="Go!"), on="before_input", name="louder")
    scene.hooks.add(lambda step: change(system_prompt="Be long."), on="before_prompt", name="longer")
    committed: list[Any] = []
    begun = await run_flow(scene.turn.begin("Go.", system_prompt="Be brief.", commit=committed.append))
    assert (begun.input, begun.system_prompt, committed) == ("Go!", "Be long.", ["Go!"])


async def test_a_framework_that_builds_the_prompt_later_asks_for_it_itself() -> None:
    scene = Scripted()
    await run_flow(scene.turn.begin("Go.", prompted=False))
    assert "before_prompt" not in scene.seen.events
    assert await run_flow(scene.turn.prompt("Be brief.", "Go.")) == "Be brief."
    assert [step.user_message for step in scene.steps("before_prompt")] == ["Go."]


async def test_a_session_that_may_not_go_on_gives_the_input_back() -> None:
    scene = Scripted()
    scene.add(stop("closed"), on="session_start")
    turn_input = await run_flow(scene.turn.begin("Go.", system_prompt="Be brief."))
    assert (turn_input.input, turn_input.system_prompt, scene.turn.over) == ("Go.", "Be brief.", True)


async def test_a_turn_says_whether_it_is_a_subagents() -> None:
    scene = Scripted()
    await run_flow(scene.turn.begin("Go."))
    child, message, refused = await run_flow(scene.turn.subagent("helper", "Help."))
    await run_flow(child.begin(message))
    assert refused is None
    assert [(s.is_subagent, s.agent_type) for s in scene.steps("turn_start")] == [(False, None), (True, "helper")]
    assert scene.seen.events.count("session_start") == 1


async def test_a_subagent_belongs_to_no_request_until_its_own_begins() -> None:
    scene = Scripted()
    await run_flow(scene.turn.begin("Go."))
    child, _, _ = await run_flow(scene.turn.subagent("helper", "Help."))
    await run_flow(child.begin("Help."))
    assert scene.steps("subagent_start")[0].request_id is None
    assert len({step.request_id for step in scene.steps("turn_start")} - {None}) == 2


async def test_without_hooks_a_subagent_starts_with_its_message() -> None:
    turn = Sessions(Hooks(), FRAMEWORK).turn("s1")
    await run_flow(turn.begin("Go."))
    child, message, refused = await run_flow(turn.subagent("helper", "Help."))
    assert (child.parent, message, refused) == (turn, "Help.", None)


async def test_a_subagent_that_a_hook_refuses_says_why() -> None:
    scene = Scripted()
    scene.add(deny("no helpers"), on="subagent_start")
    await run_flow(scene.turn.begin("Go."))
    _, message, refused = await run_flow(scene.turn.subagent("helper", "Help."))
    assert (message, refused) == ("Help.", "the agent 'helper' may not start: no helpers")


async def test_a_subagent_is_kept_from_stopping_at_most_three_times() -> None:
    scene = Scripted()
    scene.add(extend("go on"), on="subagent_stop")
    await run_flow(scene.turn.begin("Go."))
    child, _, _ = await run_flow(scene.turn.subagent("helper", "Help."))
    messages = []
    for _ in range(4):
        messages.append(await run_flow(scene.turn.stop_subagent(child)))
        child = child.again()
    assert [message is not None for message in messages] == [True, True, True, False]
    assert [step.continues_so_far for step in scene.steps("subagent_stop")] == [0, 1, 2, 3]
    assert {(step.agent_name, step.reason) for step in scene.steps("subagent_stop")} == {("helper", "end_turn")}


async def test_context_that_a_subagent_has_left_is_read_by_the_agent_that_started_it() -> None:
    scene = Scripted("Hi.")
    scene.add(inject("found"), on="subagent_stop")
    await run_flow(scene.turn.begin("Go."))
    child, _, _ = await run_flow(scene.turn.subagent("helper", "Help."))
    assert await run_flow(scene.turn.stop_subagent(child, "done")) is None
    await scene.ask()
    assert (scene.sent, child.waiting) == ([["[judge] found"]], [])
    assert scene.steps("subagent_stop")[0].reason == "done"


async def test_a_turn_is_handed_over_and_back() -> None:
    scene = Scripted()
    await run_flow(scene.turn.begin("Go."))
    assert await run_flow(scene.turn.hand_over("writer")) is None
    await scene.end()
    events = ("subagent_start", "subagent_stop", "turn_end")
    names = [step.agent and step.agent.name for step in scene.seen.steps if step.event in events]
    assert names == ["writer", "writer", "agent"]
    assert scene.steps("subagent_stop")[0].agent_name == "writer"


async def test_a_hand_over_that_a_hook_refuses_leaves_the_agent() -> None:
    scene = Scripted()
    scene.add(deny(), on="subagent_start")
    await run_flow(scene.turn.begin("Go."))
    can = scene.turn.session.capabilities
    assert await run_flow(scene.turn.hand_over("writer")) == "the agent 'writer' may not start: denied"
    assert scene.turn.session.agent is not None
    assert (scene.turn.session.agent.name, scene.turn.session.capabilities) == ("agent", can)


async def test_a_turn_that_the_framework_goes_on_with_has_its_id_again() -> None:
    scene = Scripted()
    await run_flow(scene.turn.begin("Go."))
    turn_id = scene.turn.session.turn_id
    assert scene.turn.started
    await scene.end()
    assert not scene.turn.started
    scene.turn.reopen()
    assert (scene.turn.started, scene.turn.session.turn_id) == (True, turn_id)
    await scene.end()
    assert (scene.seen.events.count("turn_end"), scene.seen.events.count("after_request")) == (2, 2)


async def test_a_request_ends_once() -> None:
    scene = Scripted()
    await run_flow(scene.turn.begin("Go."))
    await scene.end()
    await run_flow(scene.turn.leave())
    await run_flow(scene.turn.failed(RuntimeError("late")))
    assert scene.seen.events.count("after_request") == 1
    assert "error" not in scene.seen.events


@pytest.mark.parametrize(("session_id", "ends"), [("s1", 0), (None, 1)])
async def test_a_session_of_one_request_ends_with_it(session_id: str | None, ends: int) -> None:
    scene = Scripted()
    scene.turn = scene.sessions.turn(session_id)
    await run_flow(scene.turn.begin("Go."))
    await scene.end()
    assert [step.reason for step in scene.steps("session_end")] == ["exit"] * ends


async def test_a_state_that_a_hook_sets_is_kept_for_the_next_request() -> None:
    scene = Scripted()
    scene.add(change(state={"n": 1}), on="before_request", once=True)
    await run_flow(scene.turn.begin("Go."))
    turn = scene.sessions.turn("s1")
    await run_flow(turn.begin("Go."))
    assert (turn.session.state, turn.session.session_id) == ({"n": 1}, "s1")


@pytest.mark.parametrize(("reason", "text"), [("enough", "[Stopped: enough]"), (None, "")])
async def test_a_turn_that_is_over_answers_in_the_models_place(reason: str | None, text: str) -> None:
    scene = Scripted()
    await run_flow(scene.turn.begin("Go."))
    scene.turn.stop(reason)
    scene.turn.stop("something else")
    assert await scene.ask() == ModelResult(None, text)
    assert (scene.turn.requests, scene.turn.by_hook) == (0, True)


async def test_without_hooks_for_the_model_context_reaches_it_all_the_same() -> None:
    hooks = Hooks()
    hooks.add(lambda step: inject("hello"), on="turn_start", name="greets")
    turn = Sessions(hooks, FRAMEWORK).turn("s1")
    await run_flow(turn.begin("Go."))
    assert (await run_flow(turn.before_model("tiny", []))).context == ["[greets] hello"]
    assert (await run_flow(turn.before_model("tiny", []))).context == []


PASSES: dict[str, tuple[dict[str, Verdict], bool]] = {
    "no hook": ({}, True),
    "a hook elsewhere": ({"before_output": change(warnings="hm")}, True),
    "a hook before the model": ({"before_model": change(warnings="hm")}, False),
    "a hook after the model": ({"after_model": change(warnings="hm")}, False),
    "context that waits": ({"turn_start": inject("hello")}, False),
    "a turn that is over": ({"turn_start": stop()}, False),
}


@pytest.mark.parametrize(("verdicts", "passes"), PASSES.values(), ids=PASSES)
async def test_a_request_passes_that_concerns_no_hook(verdicts: dict[str, Verdict], passes: bool) -> None:
    hooks = Hooks()
    for event, verdict in verdicts.items():
        hooks.add(lambda step, verdict=verdict: verdict, on=event, name=event)
    turn = Sessions(hooks, FRAMEWORK).turn("s1")
    await run_flow(turn.begin("Go."))
    assert turn.passes() is passes
    assert turn.requests == passes


@pytest.mark.parametrize("is_subscribed", [True, False])
async def test_a_request_after_tool_calls_passes_unless_a_hook_looks_at_the_batch(is_subscribed: bool) -> None:
    hooks = Hooks()
    if is_subscribed:
        hooks.add(lambda step: None, on="after_tool_batch", name="h")
    turn = Sessions(hooks, FRAMEWORK).turn("s1")
    await run_flow(turn.begin("Go."))
    await run_flow(turn.tool("shell", {}, "c1", lambda args: "x").perform())
    assert turn.passes() is not is_subscribed


async def test_context_that_was_placed_keeps_a_request_from_passing() -> None:
    turn = Sessions(Hooks(), FRAMEWORK).turn("s1")
    turn.place(1, ["hello"])
    assert not turn.passes()


@pytest.mark.parametrize(
    ("placed", "expected"),
    [
        ([], ["a", "b"]),
        ([(0, "x")], ["<x>", "a", "b"]),
        ([(1, "x"), (1, "y")], ["a", "<x>", "<y>", "b"]),
        ([(2, "x"), (5, "y")], ["a", "b", "<x>", "<y>"]),
    ],
)
def test_context_stands_where_the_model_has_read_it(placed: list[tuple[int, str]], expected: list[str]) -> None:
    turn = Sessions(Hooks(), FRAMEWORK).turn("s1")
    for position, text in placed:
        turn.place(position, [text])
    assert turn.with_injected(["a", "b"], "<{}>".format) == expected


def test_context_stands_in_an_empty_conversation_too() -> None:
    turn = Sessions(Hooks(), FRAMEWORK).turn("s1")
    turn.place(0, ["x"])
    assert turn.with_injected([], str) == ["x"]


async def test_what_a_host_leaves_out_has_its_usual_meaning() -> None:
    scene = Scripted()
    await run_flow(scene.turn.begin("Go."))
    await run_flow(scene.turn.before_model("tiny", []))
    await run_flow(scene.turn.ending())
    assert scene.steps("after_input")[0].committed_len == 1
    assert scene.steps("before_model")[0].attempt == 1
    assert scene.steps("before_turn_end")[0].voluntary is True


def test_a_framework_neither_asks_nor_streams_unless_it_says_so() -> None:
    streaming = Framework(
        name="some", title="Some", package="some", versions=">=1", can=WHOLE, streaming={"after_model": "abort"}
    )
    session = Sessions(Hooks(), streaming).turn().session
    assert session.approver is None
    assert session.capabilities == streaming.capabilities(False) != streaming.capabilities(True)


async def test_an_answer_at_which_a_hook_stops_the_turn_is_not_used() -> None:
    scene = Scripted("Hi.")
    scene.add(stop("enough"), on="after_model")
    await run_flow(scene.turn.begin("Go."))
    assert (await scene.ask()).native is None


@pytest.mark.parametrize("begins", [True, False])
async def test_a_turn_that_is_over_or_has_not_begun_is_not_asked_whether_it_may_end(begins: bool) -> None:
    scene = Scripted()
    if begins:
        await run_flow(scene.turn.begin("Go."))
        scene.turn.stop("enough")
    assert await run_flow(scene.turn.ending()) is None
    assert "before_turn_end" not in scene.seen.events


async def test_a_turn_that_has_not_begun_has_no_response_to_judge() -> None:
    scene = Scripted()
    assert await run_flow(scene.turn.respond("Done.")) == "Done."
    assert scene.seen.events == []


async def test_without_hooks_a_turn_ends_with_the_models_answer() -> None:
    turn = Sessions(Hooks(), FRAMEWORK).turn("s1")
    await run_flow(turn.begin("Go."))
    assert await run_flow(turn.ending()) is None
    assert await run_flow(turn.end("Done.")) == TurnOutput("Done.")


async def test_context_from_within_a_subagent_waits_for_the_agent_that_started_it() -> None:
    scene = Scripted()
    scene.hooks.add(lambda step: inject("found"), on="after_request", name="finds", agent="helper")
    await run_flow(scene.turn.begin("Go."))
    child, _, _ = await run_flow(scene.turn.subagent("helper", "Help."))
    await run_flow(child.begin("Help."))
    await run_flow(child.end("Done."))
    await run_flow(scene.turn.stop_subagent(child))
    assert [text.signed for text in scene.turn.waiting] == ["[finds] found"]


async def test_context_from_the_end_of_a_request_that_goes_on_is_read_once() -> None:
    scene = Scripted("Hi.")
    scene.add(inject("bye"), on="after_request", once=True)
    await run_flow(scene.turn.begin("Go."))
    await scene.end()
    scene.turn.reopen()
    await scene.end()
    scene.turn = scene.sessions.turn("s1")
    await run_flow(scene.turn.begin("Go."))
    await scene.ask()
    assert scene.sent == [["[judge] bye"]]


async def test_a_hand_over_cannot_change_the_first_message() -> None:
    written: list[Any] = []
    hooks = Hooks(journal=written.append)
    hooks.add(lambda step: change(initial_message="x"), on="subagent_start", name="h")
    turn = Sessions(hooks, FRAMEWORK).turn("s1")
    await run_flow(turn.begin("Go."))
    agent = turn.session.agent
    await run_flow(turn.hand_over("writer", "Write."))
    (start,) = [decision for decision in written if decision.event == "subagent_start"]
    assert start.unsupported == ("initial_message",)
    assert agent is not None
    assert (start.step.agent.name, start.step.agent.parent) == ("writer", agent.id)


@pytest.mark.parametrize(("order", "ids"), [((), ["c2", "c1"]), (("c1", "c2"), ["c1", "c2"])])
async def test_a_batch_is_reported_once_in_the_order_of_its_calls(order: tuple[str, ...], ids: list[str]) -> None:
    scene = Scripted()
    await run_flow(scene.turn.begin("Go."))
    for call_id in ("c2", "c1"):
        await run_flow(scene.turn.tool("shell", {}, call_id, lambda args: "x").perform())
    await run_flow(scene.turn.end_batch(order))
    await run_flow(scene.turn.end_batch(order))
    (batch,) = scene.steps("after_tool_batch")
    assert [result["call_id"] for result in batch.results] == ids


@pytest.mark.parametrize(
    ("reason", "message"), [("test it", "test it"), (None, "The work is not finished yet. Go on.")]
)
async def test_a_turn_is_extended_at_most_three_times(reason: str | None, message: str) -> None:
    scene = Scripted()
    scene.add(extend(reason), on="before_turn_end")
    await run_flow(scene.turn.begin("Go."))
    messages = [await run_flow(scene.turn.ending(voluntary=False)) for _ in range(4)]
    assert [text is not None and message in text for text in messages] == [True, True, True, False]
    assert scene.turn.waiting == []  # the feedback is a message, and no context
    ends = scene.steps("before_turn_end")
    assert [(step.continues_so_far, step.voluntary) for step in ends] == [(n, False) for n in range(4)]


async def test_a_turn_is_extended_where_no_hook_judges_inputs() -> None:
    hooks = Hooks()
    hooks.add(lambda step: extend("test it"), on="before_turn_end", name="h")
    turn = Sessions(hooks, FRAMEWORK).turn("s1")
    await run_flow(turn.begin("Go."))
    assert "test it" in str(await run_flow(turn.ending()))


async def test_the_message_that_extends_a_turn_is_one_message_unless_the_host_says_otherwise() -> None:
    scene = Scripted()
    scene.add(extend("test it"), on="before_turn_end")
    await run_flow(scene.turn.begin("Go."))
    await run_flow(scene.turn.ending())
    await run_flow(scene.turn.ending(committed_len=4))
    assert [step.committed_len for step in scene.steps("after_input")] == [1, 1, 4]


async def test_a_stop_of_a_turn_that_ends_anyway_leaves_its_answer() -> None:
    scene = Scripted()
    scene.add(stop("enough"), on="before_turn_end")
    await run_flow(scene.turn.begin("Go."))
    assert await run_flow(scene.turn.ending()) is None
    assert (await run_flow(scene.turn.end("Done."))).text == "Done."


SHOWN: dict[str, tuple[dict[str, Verdict], tuple[str | None, bool], bool]] = {
    "the answer": ({}, ("Done.", False), False),
    "another response": ({"before_response": change(response="Well done.")}, ("Well done.", True), False),
    "no response": ({"before_response": deny("rude")}, ("[Response filtered: rude]", True), True),
    "another output": ({"before_output": change(content="Well done.")}, ("Well done.", True), False),
    "no output": ({"before_output": deny("rude")}, (None, True), True),
}


@pytest.mark.parametrize(("verdicts", "shown", "by_hook"), SHOWN.values(), ids=SHOWN)
@pytest.mark.parametrize("again", [True, False])
async def test_the_user_sees_what_hooks_leave_of_the_answer(
    verdicts: dict[str, Verdict], shown: tuple[str | None, bool], by_hook: bool, again: bool
) -> None:
    scene = Scripted()
    for event, verdict in verdicts.items():
        scene.hooks.add(lambda step, verdict=verdict: verdict, on=event, name=event)
    await run_flow(scene.turn.begin("Go."))
    output = await run_flow(scene.turn.judge("Done.") if again else scene.turn.end("Done."))
    assert ((output.text, output.changed), scene.turn.by_hook) == (shown, by_hook)


async def test_a_request_may_go_on_after_its_turn() -> None:
    scene = Scripted()
    await run_flow(scene.turn.begin("Go."))
    await run_flow(scene.turn.end("Done.", leaves=False))
    assert scene.seen.events[-1] == "before_output"
    (end,) = scene.steps("turn_end")
    assert (end.response_length, end.iterations, end.stop_reason) == (5, 0, "end_turn")


@pytest.mark.parametrize(
    ("error", "text", "stop_reason"),
    [(RuntimeError("down"), "RuntimeError: down", "error"), (asyncio.CancelledError(), "cancelled", "cancelled")],
)
async def test_a_request_that_fails_says_why(error: BaseException, text: str, stop_reason: str) -> None:
    scene = Scripted()
    scene.turn = scene.sessions.turn()
    await run_flow(scene.turn.begin("Go."))
    await run_flow(scene.turn.failed(error))
    assert [(step.error, step.where) for step in scene.steps("error")] == [(text, "request")]
    assert scene.steps("after_request")[0].error == text
    assert scene.steps("turn_end")[0].stop_reason == stop_reason
    assert scene.steps("session_end")[0].reason == "error"


@pytest.mark.parametrize("event", ["turn_end", "error", "after_request"])
async def test_a_hook_that_aborts_does_not_hide_why_a_request_failed(event: str) -> None:
    scene = Scripted()
    scene.add(abort("no"), on=event)
    await run_flow(scene.turn.begin("Go."))
    await run_flow(scene.turn.failed(RuntimeError("down")))
    assert scene.seen.events[-3:] == ["turn_end", "error", "after_request"]


# --- the model ----------------------------------------------------------------------------------


async def test_hooks_may_ask_another_model_with_other_messages() -> None:
    scene, calls = Scripted(), []
    scene.add(change(model="large", messages=[{"role": "user", "content": "Hi."}]), on="before_model")
    await run_flow(scene.turn.begin("Go."))
    await run_flow(scene.turn.ask("tiny", list, lambda asking: calls.append(asking) or "x", Reply))
    assert (calls[0].model, calls[0].messages) == ("large", [{"role": "user", "content": "Hi."}])
    assert scene.steps("after_model")[0].model == "large"


async def test_hooks_may_replace_the_models_answer() -> None:
    scene = Scripted("rude")
    scene.add(change(output="polite"), on="after_model")
    await run_flow(scene.turn.begin("Go."))
    assert await scene.ask() == ModelResult("rude", "polite")


async def test_a_stop_after_the_model_ends_the_turn() -> None:
    scene = Scripted("x")
    scene.add(stop("enough"), on="after_model")
    await run_flow(scene.turn.begin("Go."))
    assert await run_flow(scene.turn.after_model("tiny", Reply("x"))) == ModelResult(None, "[Stopped: enough]")


async def test_the_frameworks_own_exceptions_are_no_failure_of_the_model() -> None:
    scene = Scripted(KeyError("theirs"))
    await run_flow(scene.turn.begin("Go."))
    with pytest.raises(KeyError):
        await scene.ask(through=(KeyError,))
    assert "after_model" not in scene.seen.events


async def test_a_host_may_end_a_turn_that_was_refused_for_no_reason() -> None:
    scene = Scripted()
    scene.turn.end_refused()
    assert (scene.turn.end_message, scene.turn.stop_reason) == ("[Stopped: refused]", "refusal")


async def test_an_answer_that_no_hook_changes_is_the_models_own() -> None:
    scene, calls = Scripted(), []
    await run_flow(scene.turn.begin("Go."))
    result = await run_flow(scene.turn.ask("tiny", list, lambda asking: calls.append(asking) or "x", Reply))
    assert (result, calls[0].messages, calls[0].model) == (ModelResult("x"), None, None)
    await scene.end()
    assert scene.steps("turn_end")[0].iterations == 1


async def test_without_hooks_for_the_model_its_answer_is_its_own() -> None:
    turn = Sessions(Hooks(), FRAMEWORK).turn("s1")
    await run_flow(turn.begin("Go."))
    assert await run_flow(turn.ask("tiny", list, lambda asking: "x", Reply)) == ModelResult("x")
    assert await run_flow(turn.after_model("tiny", Reply("x"))) == ModelResult()


async def test_a_stop_before_the_model_ends_the_turn_without_a_request() -> None:
    scene = Scripted()
    scene.add(stop("enough"), on="before_model")
    await run_flow(scene.turn.begin("Go."))
    assert await scene.ask() == ModelResult(None, "[Stopped: enough]")
    assert (scene.sent, scene.seen.events[-1]) == ([], "before_model")


async def test_context_for_one_request_is_read_once() -> None:
    scene = Scripted("x", "y")
    scene.add(inject("hello"), on="before_model", once=True)
    await run_flow(scene.turn.begin("Go."))
    await scene.ask()
    await scene.ask()
    assert scene.sent == [["[judge] hello"], []]


async def test_a_batch_before_a_request_that_passes_is_not_reported_later() -> None:
    hooks = Hooks()
    turn = Sessions(hooks, FRAMEWORK).turn("s1")
    await run_flow(turn.begin("Go."))
    await run_flow(turn.tool("shell", {}, "c1", lambda args: "x").perform())
    assert turn.passes()
    seen = Recorder(hooks)
    await run_flow(turn.end_batch())
    assert seen.events == []


async def test_a_state_that_a_hook_sets_for_a_subagent_is_its_own() -> None:
    scene = Scripted()
    scene.hooks.add(lambda step: change(state={"n": 1}), on="before_request", name="h", agent="helper")
    await run_flow(scene.turn.begin("Go."))
    child, _, _ = await run_flow(scene.turn.subagent("helper", "Help."))
    await run_flow(child.begin("Help."))
    assert (child.session.state, scene.sessions.turn("s1").session.state) == ({"n": 1}, {})


async def test_a_model_that_is_refused_once_reads_why() -> None:
    scene = Scripted("first", "second")
    scene.add(deny("say it better"), on="after_model", once=True)
    await run_flow(scene.turn.begin("Go."))
    assert (await scene.ask()).native == "second"
    assert scene.sent == [[], ["[judge] say it better"]]


# --- retries ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("times", "runs"), [(1, 2), (2, 3), (3, 3), (9, 3)])
async def test_a_call_is_tried_again_at_most_twice_and_keeps_its_last_output(times: int, runs: int) -> None:
    scene = Scripted()
    ran: list[int] = []

    def run(args: Any) -> str:
        ran.append(len(ran) + 1)
        return f"run {ran[-1]}"

    scene.hooks.add(lambda step: retry() if step.attempt <= times else None, on="after_tool", name="again")
    await run_flow(scene.turn.begin("Go."))
    called = await run_flow(scene.turn.tool("shell", {"command": "ls"}, "c1", run).perform())
    assert (ran, called.outcome, called.output) == (list(range(1, runs + 1)), "ok", f"run {runs}")
    assert [step.attempt for step in scene.steps("after_tool")] == list(range(1, runs + 1))


# --- flows --------------------------------------------------------------------------------------


class Handed(Pause):
    """What a host has to do by itself."""

    name: str


def a_flow() -> Flow[str]:
    try:
        first = yield Call(lambda: Handed("first"))
    except ValueError as error:
        first = f"caught {error}"
    second = yield Call(lambda: 2)
    return f"{first} {second}"


async def _async_run(*args: Any) -> Any:
    return await run_flow(*args)


async def _sync_run(*args: Any) -> Any:
    return run_flow_sync(*args)


@pytest.mark.parametrize("run", [_async_run, _sync_run])
@pytest.mark.parametrize(
    ("resumed", "result"), [(("done", None), "done 2"), ((None, ValueError("late")), "caught late 2")]
)
async def test_a_flow_pauses_where_the_host_works_and_goes_on_with_what_came_of_it(
    run: Any, resumed: Any, result: str
) -> None:
    flow = a_flow()
    paused = await run(flow)
    assert paused == Handed("first")
    assert await run(flow, *resumed) == result


@pytest.mark.parametrize("run", [_async_run, _sync_run])
async def test_a_flow_receives_results_whether_they_are_awaited_or_not(run: Any) -> None:
    async def later() -> str:
        return "later"

    def flow() -> Flow[list[Any]]:
        hooks = Hooks()
        hooks.add(lambda step: deny("no"), on="before_input", name="no")
        session = hooks.session()
        decision = yield Dispatch(session, session.step(BeforeInput, source="user", input="Go."))
        return [decision.control, (yield Call(later)), (yield Call(lambda: "now"))]

    assert await run(flow()) == ["deny", "later", "now"]


@pytest.mark.parametrize("run", [_async_run, _sync_run])
async def test_an_error_that_a_flow_does_not_handle_is_raised(run: Any) -> None:
    def fail() -> None:
        raise OSError("gone")

    def flow() -> Flow[None]:
        yield Call(fail)

    with pytest.raises(OSError, match="gone"):
        await run(flow())
