"""Time-outs and cancellation. Each trap the prototype fell into is a test here."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import time
from functools import partial
from time import monotonic

import pytest

from fairlead import Hooks, deny
from fairlead.lifecycle import BeforeTool
from fairlead.threads import threads

STEP = BeforeTool(tool="bash", args={"command": "ls"})


async def forever(s=None):
    await asyncio.Event().wait()


async def test_a_hook_that_hangs_is_cancelled_and_falls_closed():
    hooks, cancelled = Hooks(), []

    @hooks.on.before_tool(timeout=0.02)
    async def hangs(s):
        try:
            await forever()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    decision = await hooks.dispatch(STEP)
    assert (decision.control, decision.failures[0].kind, cancelled) == ("deny", "timeout", [True])


async def test_the_failure_names_hook_limit_and_event():
    hooks = Hooks()
    hooks.add(forever, on="before_tool", name="slow", timeout=0.02, on_failure="open")
    (warning,) = (await hooks.dispatch(STEP)).warnings
    assert warning == "hook 'slow' failed at before_tool (timeout): no answer within 0.02 s"


async def test_the_chain_goes_on_after_an_open_timeout_and_the_next_hook_has_its_own():
    hooks, ran = Hooks(), []
    hooks.add(forever, on="before_tool", name="one", timeout=0.02, on_failure="open")
    hooks.add(forever, on="before_tool", name="two", timeout=0.02, on_failure="open")
    hooks.add(lambda s: ran.append("last"), on="before_tool", name="last")
    decision = await hooks.dispatch(STEP)
    assert ([f.hook for f in decision.failures], ran) == (["one", "two"], ["last"])


async def test_no_timeout_at_all_may_be_asked_for():
    hooks, done = Hooks(), asyncio.Event()

    @hooks.on.before_tool(timeout=None)
    async def waits(s):
        await done.wait()
        return deny("after all")

    task = asyncio.create_task(hooks.dispatch(STEP))
    asyncio.get_running_loop().call_later(0.03, done.set)
    assert (await task).reason == "after all"


# --- trap 1: the caller's own cancellation ---------------------------------------------------------


async def test_the_callers_cancellation_cancels_the_hook_and_propagates():
    hooks, entered, cancelled = Hooks(), asyncio.Event(), []

    @hooks.on.before_tool
    async def waits(s):
        entered.set()
        try:
            await forever()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    task = asyncio.create_task(hooks.dispatch(STEP))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cancelled == [True]


async def test_the_callers_cancellation_wins_when_it_arrives_while_a_hook_times_out():
    """Trap 1. The hook reacts to its time-out by cancelling the caller, in the same moment."""
    hooks = Hooks()

    @hooks.on.before_tool(timeout=0.02, on_failure="open")
    async def hangs(s):
        try:
            await forever()
        except asyncio.CancelledError:
            task.cancel()
            raise

    task = asyncio.create_task(hooks.dispatch(STEP))
    await asyncio.wait([task], timeout=1)
    assert task.cancelled()


async def test_the_callers_cancellation_just_before_the_deadline_is_delivered_propagates():
    hooks = Hooks()
    hooks.add(forever, on="before_tool", timeout=0.02, on_failure="open")
    task = asyncio.create_task(hooks.dispatch(STEP))
    await asyncio.sleep(0)
    time.sleep(0.05)  # the deadline has passed, its tick has not run
    task.cancel()
    await asyncio.wait([task], timeout=1)
    assert task.cancelled()


async def test_a_cancellation_that_a_hook_swallows_propagates_all_the_same():
    hooks, entered, ran = Hooks(), asyncio.Event(), []

    @hooks.on.before_tool
    async def swallows(s):
        entered.set()
        try:
            await forever()
        except asyncio.CancelledError:
            return

    hooks.add(lambda s: ran.append("next"), on="before_tool", name="next")
    task = asyncio.create_task(hooks.dispatch(STEP))
    await entered.wait()
    task.cancel()
    await asyncio.wait([task], timeout=1)
    assert (task.cancelled(), ran) == (True, [])


async def test_a_timed_out_hook_leaves_no_cancellation_behind():
    hooks = Hooks()
    hooks.add(forever, on="before_tool", timeout=0.02)
    await hooks.dispatch(STEP)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)  # would raise if one were pending


async def test_a_dispatch_in_the_cleanup_of_a_cancelled_task_runs_and_times_out_as_usual():
    hooks, decisions = Hooks(), []
    hooks.add(forever, on="before_tool", timeout=0.02)

    async def work():
        try:
            await forever()
        finally:
            decisions.append(await hooks.dispatch(STEP))

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task], timeout=1)
    assert (task.cancelled(), decisions[0].failures[0].kind) == (True, "timeout")


async def test_a_hook_that_runs_into_somebody_elses_cancelled_future_has_failed():
    hooks = Hooks()

    @hooks.on.before_tool
    async def unlucky(s):
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.cancel)
        await future

    decision = await hooks.dispatch(STEP)  # nobody cancelled us, so the hook failed
    assert (decision.cause, decision.failures[0].kind) == ("failure", "error")


async def test_a_cancellation_asked_for_before_the_dispatch_is_not_swallowed():
    hooks = Hooks()
    hooks.add(forever, on="before_tool", on_failure="open")

    async def work():
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await hooks.dispatch(STEP)

    task = asyncio.create_task(work())
    await asyncio.wait([task], timeout=1)
    assert task.cancelled()


async def test_the_caller_can_cancel_a_hook_that_spins():
    hooks = Hooks()

    @hooks.on.before_tool(on_failure="open")
    async def spins(s):
        while True:
            await asyncio.sleep(0)

    task = asyncio.create_task(hooks.dispatch(STEP))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task], timeout=1)
    assert task.cancelled()


async def test_asyncio_timeout_around_a_dispatch_works():
    hooks = Hooks()
    hooks.add(forever, on="before_tool")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await hooks.dispatch(STEP)


async def test_closing_a_dispatch_closes_its_hook():
    hooks, closed = Hooks(), []

    @hooks.on.before_tool
    async def waits(s):
        try:
            await forever()
        finally:
            closed.append(True)

    coroutine = hooks.dispatch(STEP)
    coroutine.send(None)
    coroutine.close()
    assert closed == [True]


# --- trap 2: never early, at most about a tick late ------------------------------------------------


@pytest.mark.parametrize("limit", [0.011, 0.02, 0.033])
async def test_a_timeout_never_fires_early_and_at_most_a_few_ticks_late(limit: float):
    hooks, took = Hooks(), []

    @hooks.on.before_tool(timeout=limit, on_failure="open")
    async def hangs(s):
        started = monotonic()
        try:
            await forever()
        finally:
            took.append(monotonic() - started)

    for _ in range(5):
        await hooks.dispatch(STEP)
    assert min(took) >= limit
    assert sorted(took)[2] < limit + 0.05  # the median: one bad moment of the machine is not ours


async def test_a_timeout_does_not_fire_early_after_a_blocking_hook():
    """Trap 2: a clock read before the blocking hook would be stale."""
    hooks, took = Hooks(), []
    hooks.add(lambda s: time.sleep(0.05), on="before_tool", name="blocks")

    @hooks.on.before_tool(timeout=0.03, on_failure="open")
    async def hangs(s):
        started = monotonic()
        try:
            await forever()
        finally:
            took.append(monotonic() - started)

    await hooks.dispatch(STEP)
    assert took[0] >= 0.03


# --- trap 3: hooks that swallow their cancellation --------------------------------------------------


async def test_a_hook_that_swallows_its_cancellation_leaves_the_next_hook_its_timeout():
    hooks = Hooks()

    @hooks.on.before_tool(timeout=0.02, on_failure="open")
    async def swallows(s):
        try:
            await forever()
        except asyncio.CancelledError:
            return deny("too late")

    hooks.add(forever, on="before_tool", name="next", timeout=0.02, on_failure="open")
    decision = await asyncio.wait_for(hooks.dispatch(STEP), 1)
    assert [(f.hook, f.kind) for f in decision.failures] == [("swallows", "timeout"), ("next", "timeout")]


async def test_a_verdict_returned_after_the_deadline_is_discarded():
    hooks = Hooks()

    @hooks.on.before_tool(timeout=0.02, on_failure="open")
    async def late(s):
        try:
            await forever()
        except asyncio.CancelledError:
            return deny("too late")

    decision = await hooks.dispatch(STEP)
    assert (decision.control, decision.failures[0].kind) == ("proceed", "timeout")


async def test_a_hook_that_swallows_and_suspends_again_is_cancelled_again_and_abandoned_after_the_third():
    hooks, cancels, ran = Hooks(), [], []

    @hooks.on.before_tool(timeout=0.02, on_failure="open")
    async def stubborn(s):
        while True:
            try:
                await forever()
            except asyncio.CancelledError:
                cancels.append(monotonic())

    hooks.add(lambda s: ran.append("next"), on="before_tool", name="next")
    decision = await asyncio.wait_for(hooks.dispatch(STEP), 1)
    assert (len(cancels), decision.failures[0].kind, ran) == (3, "timeout", ["next"])
    assert cancels[1] - cancels[0] >= 0.004  # a tick apart, not at once


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_hook_that_swallows_everything_is_abandoned_too():
    hooks = Hooks()

    @hooks.on.before_tool(timeout=0.02, on_failure="open")
    async def stubborn(s):
        while True:
            try:
                await forever()
            except BaseException:
                pass

    hooks.add(lambda s: deny("reached"), on="before_tool", name="next")
    decision = await asyncio.wait_for(hooks.dispatch(STEP), 1)
    assert [failure.kind for failure in decision.failures] == ["timeout"]
    assert decision.reason == "reached"
    gc.collect()


async def test_a_busy_hook_that_yields_without_waiting_times_out_too():
    hooks = Hooks()

    @hooks.on.before_tool(timeout=0.02)
    async def spins(s):
        while True:
            await asyncio.sleep(0)

    assert (await asyncio.wait_for(hooks.dispatch(STEP), 1)).failures[0].kind == "timeout"


async def test_a_hook_that_turns_its_cancellation_into_an_error_has_timed_out():
    hooks = Hooks()

    @hooks.on.before_tool(timeout=0.02)
    async def converts(s):
        try:
            await forever()
        except asyncio.CancelledError:
            raise ValueError("not my fault") from None

    assert (await hooks.dispatch(STEP)).failures[0].kind == "timeout"


# --- trap 5: shared verdicts --------------------------------------------------------------------------


async def test_a_verdict_shared_between_hooks_and_dispatches_is_never_changed():
    from copy import deepcopy

    shared = {"control": "deny", "args": {"command": "x"}, "additional_context": ["c"]}
    value = deny("no", args={"command": "y"}, metadata={"k": [1]})
    before = deepcopy((shared, value))
    hooks = Hooks()
    hooks.add(lambda s: shared, on="before_tool", name="one", on_failure="open")
    hooks.add(lambda s: value, on="before_tool", name="two", priority=1)
    for _ in range(3):
        await hooks.dispatch(STEP)
    assert (shared, value) == before


# --- trap 6: awaitables that are not coroutines -----------------------------------------------------


class Awaitable:
    def __await__(self):
        yield from asyncio.sleep(0).__await__()
        return deny("awaited")


async def a_deny(s, *more):
    await asyncio.sleep(0)
    return deny("awaited")


class AsyncCallable:
    async def __call__(self, s):
        return deny("awaited")


def a_future(s):
    future = asyncio.get_running_loop().create_future()
    future.set_result(deny("awaited"))
    return future


AWAITABLES = {
    "lambda": lambda s: a_deny(s),
    "partial": partial(a_deny),
    "object": lambda s: Awaitable(),
    "callable": AsyncCallable(),
    "future": a_future,
    "task": lambda s: asyncio.ensure_future(a_deny(s)),
    "method": AsyncCallable().__call__,
}


@pytest.mark.parametrize("kind", AWAITABLES)
@pytest.mark.parametrize("phase", ["transform", "gate"])
async def test_every_kind_of_awaitable_is_awaited(kind: str, phase: str):
    hooks = Hooks()
    hooks.add(AWAITABLES[kind], on="before_tool", name="hook", phase=phase)
    assert (await hooks.dispatch(STEP)).reason == "awaited"


async def test_a_sync_function_that_returns_an_awaitable_has_a_timeout_too(monkeypatch):
    monkeypatch.setattr("fairlead.hook.DEFAULT_TIMEOUT", 0.02)
    hooks = Hooks()
    hooks.add(lambda s: forever(), on="before_tool", name="hidden")
    assert (await asyncio.wait_for(hooks.dispatch(STEP), 1)).failures[0].kind == "timeout"


# --- trap 7: registering from inside a hook ---------------------------------------------------------


async def test_registering_from_inside_a_hook_does_not_change_the_dispatch_in_flight():
    hooks, ran = Hooks(), []

    @hooks.on.before_tool
    async def registers(s):
        if not ran:
            hooks.add(lambda s: ran.append("new"), on="before_tool", name="new")
        await asyncio.sleep(0)
        ran.append("old")

    await hooks.dispatch(STEP)
    assert ran == ["old"]
    await hooks.dispatch(STEP)
    assert ran == ["old", "old", "new"]


# --- trap 8: the clock starts when the hook does ----------------------------------------------------


@pytest.mark.parametrize("before", [0, 1, 3])
async def test_the_clock_starts_when_the_hook_starts_not_when_it_first_suspends(before: int):
    hooks, took = Hooks(), []

    async def quick(s):
        return None

    for i in range(before):
        hooks.add(quick, on="before_tool", name=f"quick{i}")

    @hooks.on.before_tool(timeout=0.06, on_failure="open")
    async def blocks_then_hangs(s):
        started = monotonic()
        time.sleep(0.05)
        try:
            await forever()
        finally:
            took.append(monotonic() - started)

    await hooks.dispatch(STEP)
    assert 0.06 <= took[0] < 0.1


async def test_a_hook_that_blocks_past_its_deadline_without_suspending_is_late():
    hooks = Hooks()

    @hooks.on.before_tool(timeout=0.01, on_failure="open")
    async def blocks(s):
        time.sleep(0.03)
        return deny("too late")

    decision = await hooks.dispatch(STEP)
    assert (decision.control, decision.failures[0].kind) == ("proceed", "timeout")


async def test_a_chain_that_was_calm_for_long_still_times_out_when_a_hook_suspends():
    hooks, hang = Hooks(), []

    @hooks.on.before_tool(timeout=0.02)
    async def sometimes(s):
        if hang:
            await forever()

    for _ in range(50):
        await hooks.dispatch(STEP)
    hang.append(True)
    assert (await asyncio.wait_for(hooks.dispatch(STEP), 1)).failures[0].kind == "timeout"


# --- trap 9: gates in their own tasks ---------------------------------------------------------------


async def test_asyncio_timeout_inside_concurrent_gates_cancels_nothing_but_itself():
    hooks, caught = Hooks(), []

    async def impatient(s):
        try:
            async with asyncio.timeout(0.01):
                await forever()
        except TimeoutError:
            caught.append(asyncio.current_task())

    for i in range(3):
        hooks.add(impatient, on="before_tool", phase="gate", name=f"gate{i}")
    decision = await hooks.dispatch(STEP)
    assert (decision.control, len(set(caught))) == ("proceed", 3)


@pytest.mark.parametrize("phase", ["transform", "gate", "observe"])
async def test_asyncio_timeout_inside_a_lone_hook_works(phase: str):
    hooks, caught = Hooks(), []

    @hooks.on.before_tool(phase=phase)
    async def impatient(s):
        try:
            async with asyncio.timeout(0.01):
                await forever()
        except TimeoutError:
            caught.append(True)

    await hooks.dispatch(STEP)
    assert caught == [True]


async def test_a_task_group_inside_a_hook_is_torn_down_by_the_hooks_timeout():
    hooks, ended = Hooks(), []

    async def child():
        try:
            await forever()
        finally:
            ended.append(True)

    @hooks.on.before_tool(timeout=0.02)
    async def grouped(s):
        async with asyncio.TaskGroup() as group:
            group.create_task(child())
            group.create_task(child())

    decision = await asyncio.wait_for(hooks.dispatch(STEP), 1)
    assert (decision.failures[0].kind, ended) == ("timeout", [True, True])


async def test_one_hanging_gate_of_several_times_out_and_the_others_count():
    hooks = Hooks()

    async def denies(s):
        return deny("no")

    hooks.add(forever, on="before_tool", phase="gate", name="hangs", timeout=0.02, on_failure="open")
    hooks.add(denies, on="before_tool", phase="gate", name="denies")
    decision = await hooks.dispatch(STEP)
    assert (decision.hook, decision.failures[0].hook) == ("denies", "hangs")


async def test_cancelling_the_caller_cancels_all_concurrent_gates():
    hooks, entered, cancelled = Hooks(), [], []
    both = asyncio.Event()

    async def waits(s):
        entered.append(1)
        if len(entered) == 2:
            both.set()
        try:
            await forever()
        except asyncio.CancelledError:
            cancelled.append(1)
            raise

    hooks.add(waits, on="before_tool", phase="gate", name="one")
    hooks.add(waits, on="before_tool", phase="gate", name="two")
    task = asyncio.create_task(hooks.dispatch(STEP))
    await both.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(cancelled) == 2


async def test_a_hanging_observer_is_cut_off_and_the_decision_comes():
    hooks = Hooks()
    hooks.add(forever, on="before_tool", phase="observe", timeout=0.02)
    decision = await asyncio.wait_for(hooks.dispatch(STEP), 1)
    assert (decision.control, decision.failures[0].kind) == ("proceed", "timeout")


# --- blocking hooks -------------------------------------------------------------------------------


async def test_a_sync_hook_with_a_timeout_runs_on_a_thread_and_is_abandoned_when_it_is_late():
    hooks, release, where = Hooks(), threading.Event(), []

    @hooks.on.before_tool(timeout=0.02)
    def blocks(s):
        where.append(threading.current_thread())
        release.wait(5)

    decision = await asyncio.wait_for(hooks.dispatch(STEP), 1)
    assert decision.failures[0].kind == "timeout"
    assert where[0] is not threading.current_thread()
    assert threads.abandoned >= 1
    release.set()


async def test_a_blocking_hook_does_not_hold_up_the_loop():
    hooks, release = Hooks(), threading.Event()

    @hooks.on.before_tool(blocking=True)
    def blocks(s):
        assert release.wait(5)
        return deny("done")

    task = asyncio.create_task(hooks.dispatch(STEP))
    await asyncio.sleep(0.01)  # the loop runs on
    release.set()
    assert (await task).reason == "done"


async def test_sync_hooks_without_a_timeout_run_inline():
    hooks, where = Hooks(), []
    hooks.add(lambda s: where.append(threading.current_thread()), on="before_tool", name="inline")
    await hooks.dispatch(STEP)
    assert where == [threading.current_thread()]


async def test_an_error_on_a_thread_is_the_hooks_failure():
    hooks = Hooks()

    @hooks.on.before_tool(blocking=True)
    def raises(s):
        raise StopIteration("odd")

    assert "StopIteration" in (await hooks.dispatch(STEP)).failures[0].error


async def test_too_many_abandoned_threads_fail_further_blocking_hooks(monkeypatch):
    monkeypatch.setattr("fairlead.threads.ABANDONED_LIMIT", 2)
    monkeypatch.setattr(threads, "_abandoned", set())
    hooks, release = Hooks(), threading.Event()

    @hooks.on.before_tool(timeout=0.01)
    def blocks(s):
        release.wait(5)

    errors = [(await hooks.dispatch(STEP)).failures[0].kind for _ in range(3)]
    release.set()
    assert errors == ["timeout", "timeout", "error"]


async def test_a_hook_that_always_has_something_to_read_is_held_to_its_time_out():
    """The loop reads before it looks at the clock, so what the hook waits for is done at every tick."""
    loop, (ours, theirs) = asyncio.get_running_loop(), socket.socketpair()
    theirs.send(b"x")  # which nobody takes
    future = loop.create_future()
    loop.add_reader(ours, lambda: future.done() or future.set_result(None))

    async def busy(s):
        nonlocal future
        until = monotonic() + 2
        while monotonic() < until:
            future = loop.create_future()
            await future

    hooks, started = Hooks(), monotonic()
    hooks.add(busy, on="before_tool", timeout=0.05)
    decision = await hooks.dispatch(STEP)
    loop.remove_reader(ours)
    ours.close()
    theirs.close()
    assert (decision.failures[0].kind, monotonic() - started < 1) == ("timeout", True)
