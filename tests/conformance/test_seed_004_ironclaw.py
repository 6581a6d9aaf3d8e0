"""Seed 004, ironclaw: modify or reject, fail open or closed.

How its words map to ours:

- `Continue{modified: None}` is None, `Continue{modified}` is `change(...)`, `Reject{reason}` is `deny(reason)`.
- A failure mode is `on_failure="open"` or `"closed"`; error and time-out are both failures.
- `beforeInbound` is before_input (`input`), `beforeToolCall` is before_tool (`args`), `beforeOutbound` is
  before_output (`content`), `transformResponse` is before_response (`response`), `onSessionStart` and `onSessionEnd`
  are session_start and session_end. `hook_points` is `on=`, which takes several events.
- A tool call's modification is a JSON object there and here. What is no object is ignored there; here it is a
  malformed verdict, and `on_failure="open"` leaves the arguments alone, with a warning.
- Registering the same name again replaces: `replace=True`. Its default priority of 100 is `priority=100`.
"""

import asyncio
import json

import pytest

from fairlead import Hooks, UnknownName, change, deny
from fairlead.lifecycle import BeforeInput, BeforeOutput, BeforeResponse, BeforeTool, SessionEnd, SessionStart

HELLO = BeforeInput(input="hello", user_id="u-1", channel="cli")


@pytest.fixture
def hooks():
    return Hooks()


def appending(text):
    async def hook(step):
        return change(input=step.input + text)

    return hook


async def raises(step):
    raise RuntimeError("boom")


async def never_answers(step):
    await asyncio.Event().wait()


# --- the registry -------------------------------------------------------------------------------


def test_registered_hooks_are_listed(hooks):
    hooks.add(raises, on="before_input", name="one")
    hooks.add(raises, on="before_tool", name="two")
    assert [hook.name for hook in hooks] == ["one", "two"]


def test_unregistered_hook_is_not_listed(hooks):
    hooks.add(raises, on="before_input", name="one")
    hooks.add(raises, on="before_input", name="two")
    hooks.unregister("one")
    assert [hook.name for hook in hooks] == ["two"]


async def test_unregistered_hook_does_not_run(hooks):
    hooks.add(appending("!"), on="before_input", name="one")
    hooks.unregister("one")
    assert (await hooks.dispatch(HELLO)).step.input == "hello"


def test_unregistering_what_is_not_there_says_so(hooks):
    with pytest.raises(UnknownName, match="nobody"):
        hooks.unregister("nobody")


async def test_duplicate_name_replaces(hooks):
    hooks.add(appending(" from the old one"), on="before_input", name="greeter")
    hooks.add(appending(" from the new one"), on="before_input", name="greeter", replace=True)
    assert (await hooks.dispatch(HELLO)).step.input == "hello from the new one"


def test_duplicate_name_is_listed_once(hooks):
    hooks.add(raises, on="before_input", name="greeter")
    hooks.add(raises, on="before_input", name="greeter", replace=True)
    assert [hook.name for hook in hooks] == ["greeter"]


async def test_dispatch_in_flight_keeps_the_hooks_it_started_with(hooks):
    @hooks.on.before_input
    async def first(step):
        hooks.unregister("second")

    hooks.add(appending(" and second"), on="before_input", name="second")
    assert (await hooks.dispatch(HELLO)).step.input == "hello and second"


# --- modify and reject --------------------------------------------------------------------------


async def test_hooks_form_a_chain_by_priority(hooks):
    hooks.add(appending(" third"), on="before_input", name="c", priority=200)
    hooks.add(appending(" first"), on="before_input", name="a", priority=10)
    hooks.add(appending(" second"), on="before_input", name="b", priority=100)
    assert (await hooks.dispatch(HELLO)).step.input == "hello first second third"


async def test_each_hook_sees_the_modification_before_it(hooks):
    seen = []
    hooks.add(appending(" world"), on="before_input", name="modify")
    hooks.add(lambda step: seen.append(step.input), on="before_input", name="read")
    await hooks.dispatch(HELLO)
    assert seen == ["hello world"]


async def test_reject_gives_the_reason(hooks):
    hooks.add(lambda step: deny("no spam"), on="before_input", name="reject")
    decision = await hooks.dispatch(HELLO)
    assert (decision.control, decision.reason) == ("deny", "no spam")


async def test_reject_stops_the_chain(hooks):
    ran = []
    hooks.add(lambda step: deny("no spam"), on="before_input", name="reject")
    hooks.add(ran.append, on="before_input", name="after")
    await hooks.dispatch(HELLO)
    assert ran == []


async def test_modification_to_the_same_content_is_none(hooks):
    hooks.add(lambda step: change(input="".join(step.input)), on="before_input", name="same")
    assert (await hooks.dispatch(HELLO)).changed == ()


async def test_modification_is_told(hooks):
    hooks.add(appending("!"), on="before_input")
    assert (await hooks.dispatch(HELLO)).changed == ("input",)


@pytest.mark.parametrize(
    ("step", "field"),
    [
        pytest.param(BeforeInput(input="old"), "input", id="beforeInbound"),
        pytest.param(BeforeOutput(content="old"), "content", id="beforeOutbound"),
        pytest.param(BeforeResponse(response="old"), "response", id="transformResponse"),
    ],
)
async def test_content_is_modified(hooks, step, field):
    hooks.add(lambda step: change(**{field: "new"}), on=step.event, name="modify")
    decision = await hooks.dispatch(step)
    assert getattr(decision.step, field) == "new"


# --- tool parameters ----------------------------------------------------------------------------

LIST_HOME = BeforeTool(tool="ls", args={"path": "/home"})


async def test_tool_parameters_are_replaced_by_valid_json(hooks):
    hooks.add(lambda step: change(args=json.loads('{"dir": "/tmp"}')), on="before_tool", name="modify")
    assert (await hooks.dispatch(LIST_HOME)).step.args == {"dir": "/tmp"}


async def test_tool_parameters_are_left_alone_by_invalid_json(hooks):
    hooks.add(lambda step: change(args="not json"), on="before_tool", name="modify", on_failure="open")
    decision = await hooks.dispatch(LIST_HOME)
    assert (decision.control, decision.step.args) == ("proceed", {"path": "/home"})


async def test_invalid_tool_parameters_are_warned_of(hooks):
    hooks.add(lambda step: change(args="not json"), on="before_tool", name="sloppy", on_failure="open")
    (warning,) = (await hooks.dispatch(LIST_HOME)).warnings
    assert [part for part in ("sloppy", "before_tool", "args") if part not in warning] == []


async def test_tool_call_says_whether_a_chat_or_a_job_made_it(hooks):
    seen = []
    hooks.add(lambda step: seen.append(step.origin), on="before_tool", name="watch")
    await hooks.dispatch(LIST_HOME)
    await hooks.dispatch(BeforeTool(tool="ls", origin="job-7"))
    assert seen == ["chat", "job-7"]


# --- fail open, fail closed ---------------------------------------------------------------------

FAILING = pytest.mark.parametrize(("broken", "kind"), [(raises, "error"), (never_answers, "timeout")])


@FAILING
async def test_fail_open_goes_on_with_the_next_hook(hooks, broken, kind):
    hooks.add(broken, on="before_input", timeout=0.02, on_failure="open")
    hooks.add(appending(" world"), on="before_input", name="next")
    decision = await hooks.dispatch(HELLO)
    assert (decision.control, decision.step.input) == ("proceed", "hello world")


@FAILING
async def test_fail_closed_rejects(hooks, broken, kind):
    hooks.add(broken, on="before_input", timeout=0.02, on_failure="closed")
    decision = await hooks.dispatch(HELLO)
    assert (decision.control, decision.cause) == ("deny", "failure")


@FAILING
async def test_fail_closed_stops_the_chain(hooks, broken, kind):
    ran = []
    hooks.add(broken, on="before_input", timeout=0.02, on_failure="closed")
    hooks.add(ran.append, on="before_input", name="next")
    await hooks.dispatch(HELLO)
    assert ran == []


@FAILING
@pytest.mark.parametrize("mode", ["open", "closed"])
async def test_failure_is_recorded_for_what_it_was(hooks, broken, kind, mode):
    hooks.add(broken, on="before_input", timeout=0.02, on_failure=mode)
    (failure,) = (await hooks.dispatch(HELLO)).failures
    assert (failure.hook, failure.kind) == (broken.__name__, kind)


# --- the points ---------------------------------------------------------------------------------


async def test_hook_runs_at_its_own_points_only(hooks):
    points = []
    hooks.add(lambda step: points.append(step.event), on=["before_input", "before_output"], name="watch")
    for step in (HELLO, LIST_HOME, BeforeOutput(content="bye"), BeforeResponse(response="bye"), SessionStart()):
        await hooks.dispatch(step)
    assert points == ["before_input", "before_output"]


@pytest.mark.parametrize("kind", [SessionStart, SessionEnd])
async def test_session_event_fires_with_user_and_session(hooks, kind):
    seen = []
    hooks.add(lambda step: seen.append((step.user_id, step.session_id)), on=kind.event, name="watch")
    await hooks.dispatch(kind(user_id="u-1", session_id="s-1"))
    assert seen == [("u-1", "s-1")]


@pytest.mark.parametrize("kind", [SessionStart, SessionEnd])
async def test_session_event_has_nothing_to_modify(hooks, kind):
    hooks.add(lambda step: {"session_id": "s-2"}, on=kind.event, name="modify", on_failure="open")
    decision = await hooks.dispatch(kind(session_id="s-1"))
    assert decision.step.session_id == "s-1"


async def test_metadata_travels_with_the_step(hooks):
    seen = []
    hooks.add(lambda step: seen.append(step.metadata), on="before_input", name="watch")
    await hooks.dispatch(BeforeInput(input="hello", metadata={"trace": "t-1"}))
    assert seen == [{"trace": "t-1"}]
