"""Seed 000, stakpak: a request's lifecycle with shared state.

How its words map to ours:

- `Continue` is None, `Skip` is `skip_rest()`, `Abort{name, reason}` is `abort(reason, name=...)`.
- A `HookError` is an exception; that it fails the operation is `on_failure="abort"`.
- `HookContext` is a session: `ctx.state` is `session.state` (and the `state` of before_request and
  after_request), `spawn_task` is `session.spawn`, `clone` is `session.fork`.
- `BeforeInference` and `AfterInference` are before_model and after_model, `ToolCallRequested` is
  tool_requested, `ToolCallAborted` is after_tool with the outcome "aborted".
"""

import asyncio

import pytest

from fairlead import HookAborted, Hooks, abort, change, current_session, skip_rest
from fairlead.lifecycle import (
    AfterModel,
    AfterRequest,
    AfterTool,
    BeforeModel,
    BeforeRequest,
    BeforeTool,
    Error,
    ToolRequested,
)


@pytest.fixture
def hooks():
    return Hooks()


@pytest.fixture
def ran():
    """The hooks that ran, in order."""
    return []


def noting(ran, name, verdict=None):
    """A hook that notes that it ran, and says `verdict`."""

    async def hook(step):
        ran.append(name)
        return verdict

    return hook


def add(hooks, ran, name, verdict=None, **options):
    hooks.add(noting(ran, name, verdict), on="before_request", name=name, **options)


# --- order --------------------------------------------------------------------------------------


async def test_lower_priority_runs_first(hooks, ran):
    add(hooks, ran, "late", priority=90)
    add(hooks, ran, "early", priority=10)
    await hooks.dispatch(BeforeRequest())
    assert ran == ["early", "late"]


async def test_default_priority_is_50(hooks, ran):
    add(hooks, ran, "51", priority=51)
    add(hooks, ran, "default")
    add(hooks, ran, "49", priority=49)
    await hooks.dispatch(BeforeRequest())
    assert ran == ["49", "default", "51"]


async def test_equal_priority_keeps_registration_order(hooks, ran):
    names = ["d", "a", "c", "b"]
    for name in names:
        add(hooks, ran, name, priority=7)
    await hooks.dispatch(BeforeRequest())
    assert ran == names


# --- continue, skip, abort, error ---------------------------------------------------------------


async def test_no_hooks_proceed(hooks):
    decision = await hooks.dispatch(BeforeRequest())
    assert decision.control == "proceed"


async def test_hooks_that_continue_all_run(hooks, ran):
    add(hooks, ran, "first")
    add(hooks, ran, "second")
    await hooks.dispatch(BeforeRequest())
    assert ran == ["first", "second"]


async def test_skip_stops_the_chain(hooks, ran):
    add(hooks, ran, "first", skip_rest())
    add(hooks, ran, "second")
    await hooks.dispatch(BeforeRequest())
    assert ran == ["first"]


async def test_skip_proceeds(hooks, ran):
    add(hooks, ran, "first", skip_rest())
    add(hooks, ran, "second", abort("never said"))
    decision = await hooks.dispatch(BeforeRequest())
    assert decision.proceeds


async def test_abort_stops_the_chain(hooks, ran):
    add(hooks, ran, "first", abort("no budget"))
    add(hooks, ran, "second")
    await hooks.dispatch(BeforeRequest())
    assert ran == ["first"]


async def test_abort_names_the_hook(hooks, ran):
    add(hooks, ran, "budget", abort("no budget left"))
    decision = await hooks.dispatch(BeforeRequest())
    with pytest.raises(HookAborted) as raised:
        decision.raise_for_abort()
    assert str(raised.value) == "[budget:hook_abort] no budget left"


async def test_abort_may_name_itself(hooks, ran):
    add(hooks, ran, "budget", abort("no budget left", name="accounting"))
    decision = await hooks.dispatch(BeforeRequest())
    with pytest.raises(HookAborted) as raised:
        decision.raise_for_abort()
    assert str(raised.value) == "[accounting:hook_abort] no budget left"


async def test_what_is_not_an_abort_raises_nothing(hooks, ran):
    add(hooks, ran, "first", skip_rest("done here"))
    decision = await hooks.dispatch(BeforeRequest())
    assert decision.raise_for_abort() is None


async def test_error_stops_the_chain(hooks, ran):
    @hooks.on.before_request(on_failure="abort")
    async def broken(step):
        raise ConnectionError("database is down")

    add(hooks, ran, "second")
    await hooks.dispatch(BeforeRequest())
    assert ran == []


async def test_error_fails_the_operation(hooks):
    @hooks.on.before_model(on_failure="abort")
    async def broken(step):
        raise ConnectionError("database is down")

    decision = await hooks.dispatch(BeforeModel())
    with pytest.raises(HookAborted, match=r"^\[broken:hook_abort\] .*database is down"):
        decision.raise_for_abort()


# --- the shared state ---------------------------------------------------------------------------


async def test_state_changes_are_seen_by_later_hooks(hooks):
    @hooks.on.before_request
    async def build(step):
        step.state["input"] = ["hello"]

    @hooks.on.before_request
    async def extend_it(step):
        step.state["input"].append("world")

    decision = await hooks.dispatch(BeforeRequest(state={}))
    assert decision.step.state == {"input": ["hello", "world"]}


async def test_replaced_state_is_seen_by_later_hooks(hooks):
    seen = []
    hooks.add(lambda step: change(state={"round": 2}), on="before_request", name="replace")
    hooks.add(lambda step: seen.append(step.state), on="before_request", name="read")
    await hooks.dispatch(BeforeRequest(state={"round": 1}))
    assert seen == [{"round": 2}]


async def test_state_travels_through_the_events_of_a_request(hooks):
    @hooks.on.before_model
    async def build_input(step):
        current_session().state["input"] = "prompt"

    @hooks.on.after_model
    async def read_it(step):
        current_session().state["output"] = f"answer to {current_session().state['input']}"

    session = hooks.session(state={})
    await session.dispatch(session.step(BeforeModel))
    await session.dispatch(session.step(AfterModel))
    assert session.state["output"] == "answer to prompt"


async def test_hook_may_set_the_session_id(hooks):
    hooks.add(lambda step: change(session_id="s-1"), on="before_request", name="open")
    decision = await hooks.dispatch(BeforeRequest())
    assert decision.step.session_id == "s-1"


@pytest.mark.parametrize("step", [BeforeRequest, AfterRequest])
async def test_hook_may_set_the_checkpoint_id(hooks, step):
    hooks.add(lambda step: change(checkpoint_id="c-1"), on=step.event, name="save")
    decision = await hooks.dispatch(step())
    assert decision.step.checkpoint_id == "c-1"


# --- clones and background tasks ----------------------------------------------------------------


async def test_clone_keeps_ids(hooks):
    session = hooks.session("s-1", request_id="r-1", checkpoint_id="c-1")
    twin = session.fork()
    assert (twin.session_id, twin.request_id, twin.checkpoint_id) == ("s-1", "r-1", "c-1")


async def test_clone_has_its_own_copy_of_the_state(hooks):
    session = hooks.session(state={"seen": [1]})
    session.fork().state["seen"].append(2)
    assert session.state == {"seen": [1]}


async def test_clones_do_not_share_background_tasks(hooks):
    release = asyncio.Event()
    session = hooks.session()
    session.spawn(release.wait())
    # If it shared the task, it would wait for it and report that it was late.
    assert await session.fork().close(timeout=0.02) == []
    release.set()
    await session.close()


async def test_background_task_of_a_hook_is_finished_when_the_session_is_closed(hooks):
    release, saved = asyncio.Event(), []

    async def save():
        await release.wait()
        saved.append("checkpoint")

    @hooks.on.after_request
    async def in_the_background(step):
        current_session().spawn(save())

    session = hooks.session()
    await session.dispatch(session.step(AfterRequest))
    release.set()
    await session.close()
    assert saved == ["checkpoint"]


async def test_background_task_errors_are_reported(hooks):
    async def save():
        raise ConnectionError("database is down")

    session = hooks.session()
    session.spawn(save())
    errors = await session.close()
    assert [str(error) for error in errors] == ["database is down"]


async def test_background_task_error_leaves_the_request_alone(hooks):
    async def save():
        raise ConnectionError("database is down")

    @hooks.on.before_request
    async def in_the_background(step):
        current_session().spawn(save())

    session = hooks.session()
    decision = await session.dispatch(session.step(BeforeRequest))
    await session.close()
    assert decision.proceeds


# --- the events ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(BeforeRequest(), id="BeforeRequest"),
        pytest.param(AfterRequest(), id="AfterRequest"),
        pytest.param(BeforeModel(), id="BeforeInference"),
        pytest.param(AfterModel(), id="AfterInference"),
        pytest.param(ToolRequested(tool="ls"), id="ToolCallRequested"),
        pytest.param(BeforeTool(tool="ls"), id="BeforeToolExecution"),
        pytest.param(AfterTool(tool="ls"), id="AfterToolExecution"),
        pytest.param(AfterTool(tool="ls", outcome="aborted", executed=False), id="ToolCallAborted"),
        pytest.param(Error(error="boom"), id="Error"),
    ],
)
async def test_event_reaches_its_hooks(hooks, step):
    seen = []
    hooks.add(seen.append, on=step.event, name="watch")
    await hooks.dispatch(step)
    assert seen == [step]


async def test_hook_for_aborted_calls_sees_no_others(hooks):
    seen = []
    hooks.add(lambda step: seen.append(step.outcome), on="after_tool", outcome="aborted", name="watch")
    for outcome in ("ok", "error", "denied", "aborted", "answered"):
        await hooks.dispatch(AfterTool(tool="ls", outcome=outcome))
    assert seen == ["aborted"]


async def test_after_request_says_why_it_failed(hooks):
    seen = []
    hooks.add(lambda step: seen.append(step.error), on="after_request", name="watch")
    await hooks.dispatch(AfterRequest(error="model unreachable"))
    assert seen == ["model unreachable"]
