"""Seed 002, openfang: a synchronous gate and three observers.

How its words map to ours:

- `fire` is `hooks.dispatch_sync`, `has_handlers(event)` is `hooks.has_hooks(event)`.
- `BeforeToolCall` is before_tool, its handlers are gates, and `Err(reason)` is `deny(reason)`.
- `AfterToolCall` is after_tool, `BeforePromptBuild` is before_prompt and `AgentLoopEnd` is turn_end. Their handlers
  only observe: `phase="observe"`. An `Err` of theirs is an exception, which is recorded in `decision.failures`.
- `agent_name` and `agent_id` are the step's `agent`.
"""

import threading

import pytest

from fairlead import Agent, Hooks, deny
from fairlead.lifecycle import AfterTool, BeforePrompt, BeforeTool, TurnEnd

OBSERVED = [
    pytest.param(AfterTool(tool="file_read"), id="AfterToolCall"),
    pytest.param(BeforePrompt(), id="BeforePromptBuild"),
    pytest.param(TurnEnd(), id="AgentLoopEnd"),
]
GATED = pytest.param(BeforeTool(tool="file_read"), id="BeforeToolCall")


@pytest.fixture
def hooks():
    return Hooks()


def broken(step):
    raise RuntimeError("oops")


# --- the gate -----------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [GATED, *OBSERVED])
def test_empty_registry_is_a_no_op(hooks, step):
    decision = hooks.dispatch_sync(step)
    assert (decision.control, decision.step) == ("proceed", step)


def test_block_returns_the_reason(hooks):
    hooks.add(lambda step: deny("Not allowed"), on="before_tool", phase="gate", name="block")
    decision = hooks.dispatch_sync(BeforeTool(tool="file_read"))
    assert (decision.denied, decision.reason) == (True, "Not allowed")


def test_first_block_gives_the_reason(hooks):
    hooks.add(lambda step: deny("first"), on="before_tool", phase="gate", name="one")
    hooks.add(lambda step: deny("second"), on="before_tool", phase="gate", name="two")
    assert hooks.dispatch_sync(BeforeTool(tool="file_read")).reason == "first"


def test_handler_that_is_fine_with_it_lets_the_call_through(hooks):
    hooks.add(lambda step: None, on="before_tool", phase="gate", name="ok")
    assert hooks.dispatch_sync(BeforeTool(tool="file_read")).proceeds


def test_handler_runs_in_the_thread_that_fires(hooks):
    ran_in = []
    hooks.add(lambda step: ran_in.append(threading.get_ident()), on="before_tool", phase="gate", name="where")
    hooks.dispatch_sync(BeforeTool(tool="file_read"))
    assert ran_in == [threading.get_ident()]


# --- the observers ------------------------------------------------------------------------------


def test_after_receives_the_result(hooks):
    seen = []
    hooks.add(lambda step: seen.append((step.tool, step.output)), on="after_tool", phase="observe", name="watch")
    hooks.dispatch_sync(AfterTool(tool="file_read", output="ok"))
    assert seen == [("file_read", "ok")]


@pytest.mark.parametrize("step", OBSERVED)
def test_several_handlers_all_fire_in_registration_order(hooks, step):
    fired = []
    for name in ("second", "first", "third"):
        hooks.add(lambda step, name=name: fired.append(name), on=step.event, phase="observe", name=name)
    hooks.dispatch_sync(step)
    assert fired == ["second", "first", "third"]


@pytest.mark.parametrize("step", OBSERVED)
def test_error_in_an_observer_changes_nothing(hooks, step):
    hooks.add(broken, on=step.event, phase="observe")
    decision = hooks.dispatch_sync(step)
    assert (decision.control, decision.denied, decision.step) == ("proceed", False, step)


@pytest.mark.parametrize("step", OBSERVED)
def test_observer_after_one_that_failed_still_runs(hooks, step):
    seen = []
    hooks.add(broken, on=step.event, phase="observe")
    hooks.add(seen.append, on=step.event, phase="observe", name="next")
    hooks.dispatch_sync(step)
    assert seen == [step]


@pytest.mark.parametrize("step", OBSERVED)
def test_error_in_an_observer_is_reported(hooks, step):
    hooks.add(broken, on=step.event, phase="observe")
    (failure,) = hooks.dispatch_sync(step).failures
    assert (failure.hook, failure.event, failure.error) == ("broken", step.event, "RuntimeError: oops")


def test_observer_cannot_block(hooks):
    hooks.add(lambda step: deny("not mine to say"), on="after_tool", phase="observe", name="watch")
    assert hooks.dispatch_sync(AfterTool(tool="file_read")).proceeds


# --- the registry -------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [GATED, *OBSERVED])
def test_each_of_the_four_events_fires(hooks, step):
    fired = []
    events = ("before_tool", "after_tool", "before_prompt", "turn_end")
    hooks.add(lambda step: fired.append(step.event), on=events, phase="observe", name="watch")
    hooks.dispatch_sync(step)
    assert fired == [step.event]


def test_handlers_know_the_agent(hooks):
    seen = []
    hooks.add(lambda step: seen.append((step.agent.id, step.agent.name)), on="turn_end", phase="observe", name="watch")
    hooks.dispatch_sync(TurnEnd(agent=Agent(id="abc-123", name="test-agent")))
    assert seen == [("abc-123", "test-agent")]


def test_empty_registry_has_no_handlers(hooks):
    assert not hooks.has_hooks("before_tool")


def test_has_handlers_once_one_is_registered(hooks):
    hooks.add(lambda step: None, on="before_tool", phase="gate", name="ok")
    assert hooks.has_hooks("before_tool")


def test_has_handlers_is_per_event(hooks):
    hooks.add(lambda step: None, on="before_tool", phase="gate", name="ok")
    assert not hooks.has_hooks("after_tool")


# --- threads ------------------------------------------------------------------------------------


def register_while_dispatching(hooks, handler, threads=4, each=25):
    """Register `handler(name)` for many names from several threads. Gives the names and the dispatches meanwhile."""
    together = threading.Barrier(threads + 1)

    def register(thread):
        together.wait()
        for number in range(each):
            name = f"{thread}-{number}"
            hooks.add(handler(name), on="turn_end", phase="observe", name=name)

    workers = [threading.Thread(target=register, args=(thread,)) for thread in range(threads)]
    for worker in workers:
        worker.start()
    together.wait()
    dispatched = 0
    while dispatched == 0 or any(worker.is_alive() for worker in workers):
        hooks.dispatch_sync(TurnEnd())
        dispatched += 1
    for worker in workers:
        worker.join()
    return {f"{thread}-{number}" for thread in range(threads) for number in range(each)}, dispatched


def test_registering_from_several_threads_while_dispatching_loses_no_handler(hooks):
    fired = []
    names, _ = register_while_dispatching(hooks, lambda name: lambda step: fired.append(name))
    fired.clear()
    hooks.dispatch_sync(TurnEnd())
    assert sorted(fired) == sorted(names)


def test_registering_from_several_threads_while_dispatching_loses_no_dispatch(hooks):
    fired = []
    hooks.add(fired.append, on="turn_end", phase="observe", name="there from the start")
    _, dispatched = register_while_dispatching(hooks, lambda name: lambda step: None)
    assert len(fired) == dispatched
