"""Detached observers: a bounded queue, in order, drained at the end, dropped and counted when full."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from fairlead import Hooks, current_session, deny
from fairlead.lifecycle import BeforeTool, TurnStart

STEP = BeforeTool(tool="bash")


async def test_a_detached_observer_takes_no_time_of_the_dispatch():
    hooks = Hooks(record=True)
    hooks.add(lambda s: None, on="before_tool", name="later", phase="observe", detached=True)
    (run,) = (await hooks.dispatch(STEP)).runs
    assert run.duration == 0


async def test_a_detached_observer_does_not_hold_up_the_dispatch():
    hooks, go_on, done = Hooks(record=True), asyncio.Event(), []

    @hooks.on.before_tool(phase="observe", detached=True)
    async def audit(step, decision):
        await go_on.wait()
        done.append(decision.control)

    hooks.add(lambda s: deny("no"), on="before_tool", name="denies")
    decision = await hooks.dispatch(STEP)
    assert (done, decision.runs[-1].outcome) == ([], "detached")
    go_on.set()
    await hooks.aclose()
    assert done == ["deny"]


async def test_detached_runs_keep_their_order():
    hooks, seen = Hooks(), []
    hooks.add(lambda s: seen.append(s.args["n"]), on="before_tool", phase="observe", detached=True, name="audit")
    for n in range(10):
        await hooks.dispatch(BeforeTool(tool="bash", args={"n": n}))
    await hooks.aclose()
    assert seen == list(range(10))


async def test_when_the_queue_is_full_the_newest_is_dropped_and_counted(monkeypatch):
    monkeypatch.setattr("fairlead.engine.detached.LIMIT", 2)
    hooks, seen = Hooks(record=True), []
    hooks.add(lambda s: seen.append(s.args["n"]), on="before_tool", phase="observe", detached=True, name="audit")
    outcomes = [(await hooks.dispatch(BeforeTool(tool="bash", args={"n": n}))).runs[0].outcome for n in range(4)]
    await hooks.aclose()
    assert (outcomes, seen, hooks.dropped) == (["detached", "detached", "dropped", "dropped"], [0, 1], 2)


async def test_draining_gives_up_after_its_timeout_and_counts_what_is_lost(caplog):
    hooks = Hooks()

    async def hangs(s):
        await asyncio.Event().wait()

    hooks.add(hangs, on="before_tool", phase="observe", detached=True)
    for _ in range(3):
        await hooks.dispatch(STEP)
    with caplog.at_level(logging.WARNING, "fairlead"):
        await asyncio.wait_for(hooks.aclose(timeout=0.02), 1)
    assert hooks.dropped == 3
    assert "dropped" in caplog.text


async def test_a_detached_failure_goes_to_the_log_and_the_next_runs(caplog):
    hooks, seen = Hooks(), []

    @hooks.on.before_tool(phase="observe", detached=True)
    def broken(s):
        raise RuntimeError("boom")

    hooks.add(lambda s: seen.append(1), on="before_tool", phase="observe", detached=True, name="next")
    with caplog.at_level(logging.WARNING, "fairlead"):
        await hooks.dispatch(STEP)
        await hooks.aclose()
    assert seen == [1]
    assert "'broken' failed at before_tool" in caplog.text


async def test_a_detached_observer_that_hangs_is_cut_off_by_its_own_timeout():
    hooks, seen = Hooks(), []

    @hooks.on.before_tool(phase="observe", detached=True, timeout=0.02)
    async def hangs(s):
        await asyncio.Event().wait()

    hooks.add(lambda s: seen.append(1), on="before_tool", phase="observe", detached=True, name="next")
    await hooks.dispatch(STEP)
    await hooks.aclose(timeout=1)
    assert seen == [1]


async def test_a_detached_observer_knows_its_session():
    hooks, seen = Hooks(), []
    hooks.add(lambda s: seen.append(current_session()), on="turn_start", phase="observe", detached=True, name="audit")
    session = hooks.session()
    await session.dispatch(session.step(TurnStart))
    await hooks.aclose()
    assert seen == [session]


def test_detached_observers_run_after_a_sync_dispatch_too():
    hooks, seen = Hooks(), threading.Event()
    hooks.add(lambda s: seen.set(), on="before_tool", phase="observe", detached=True, name="audit")
    hooks.dispatch_sync(STEP)
    assert seen.wait(1)


async def test_hooks_as_a_context_manager_drain_on_leaving():
    seen = []
    async with Hooks() as hooks:
        hooks.add(lambda s: seen.append(1), on="before_tool", phase="observe", detached=True, name="audit")
        await hooks.dispatch(STEP)
    assert seen == [1]


@pytest.mark.parametrize("count", [1, 5])
def test_draining_from_another_loop_waits_for_what_sync_dispatches_left(count: int):
    hooks, seen = Hooks(), []

    async def audit(s):
        await asyncio.sleep(0.005)
        seen.append(1)

    hooks.add(audit, on="before_tool", phase="observe", detached=True)
    for _ in range(count):
        hooks.dispatch_sync(STEP)
    asyncio.run(hooks.aclose())
    assert len(seen) == count
