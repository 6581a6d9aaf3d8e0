"""Time-outs and cancellation. Each trap the prototype fell into is a test here."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import time
from contextlib import suppress
from functools import partial
from time import monotonic

import pytest

from fairlead import Hooks, ask, deny
from fairlead.engine.deadlines import Deadline
from fairlead.engine.threads import threads
from fairlead.lifecycle import BeforeTool

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


async def test_the_callers_cancellation_keeps_its_message():
    hooks, entered = Hooks(), asyncio.Event()

    @hooks.on.before_tool
    async def waits(s):
        entered.set()
        await forever()

    task = asyncio.create_task(hooks.dispatch(STEP))
    await entered.wait()
    task.cancel("shutting down")
    with pytest.raises(asyncio.CancelledError, match="shutting down"):
        await task


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


async def test_a_hook_that_awaits_a_cancelled_future_of_other_code_has_failed():
    hooks = Hooks()

    @hooks.on.before_tool
    async def unlucky(s):
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.cancel)
        await future

    decision = await hooks.dispatch(STEP)  # the caller is not cancelled, so the hook failed
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


async def test_closing_a_dispatch_leaves_no_deadline_behind():
    hooks = Hooks()

    @hooks.on.before_tool(timeout=60)
    async def waits(s):
        await forever()

    coroutine = hooks.dispatch(STEP)
    coroutine.send(None)
    await asyncio.sleep(0.01)  # longer than a tick, so that the deadline is sorted into a bucket
    coroutine.close()
    await asyncio.sleep(0.01)
    gc.collect()
    assert not [thing for thing in gc.get_objects() if isinstance(thing, Deadline)]


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


async def stubborn(s):
    while True:
        with suppress(asyncio.CancelledError):
            await forever()


async def test_a_hook_after_an_abandoned_one_fails_as_usual():
    hooks = Hooks()
    hooks.add(stubborn, on="before_tool", timeout=0.02, on_failure="open")

    @hooks.on.before_tool(on_failure="open")
    def broken(s):
        raise RuntimeError("broken")

    decision = await asyncio.wait_for(hooks.dispatch(STEP), 5)
    assert [(failure.hook, failure.kind) for failure in decision.failures] == [
        ("stubborn", "timeout"),
        ("broken", "error"),
    ]


async def test_an_abandoned_hook_that_raises_when_it_is_closed_has_failed_once():
    hooks = Hooks(record=True)

    @hooks.on.before_tool(timeout=0.02, on_failure="open")
    async def raises(s):
        try:
            await stubborn(s)
        finally:
            raise RuntimeError("broken")

    decision = await asyncio.wait_for(hooks.dispatch(STEP), 5)
    assert [run.outcome for run in decision.runs] == ["timeout"]


async def test_an_observer_that_is_abandoned_leaves_the_others_one_run_each():
    hooks, ran = Hooks(), []

    hooks.add(lambda s: ran.append("first"), on="before_tool", name="first", phase="observe")
    hooks.add(stubborn, on="before_tool", phase="observe", timeout=0.02)
    hooks.add(lambda s: ran.append("last"), on="before_tool", name="last", phase="observe")
    await asyncio.wait_for(hooks.dispatch(STEP), 5)
    assert ran == ["first", "last"]


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


async def test_a_sync_function_that_returns_an_awaitable_has_a_timeout_too():
    hooks = Hooks(timeout=0.02)
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


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds by which the engine's clock is ahead: a test that adds to them need not wait."""
    ahead = [0.0]
    for module in ("dispatch", "run", "loop", "deadlines"):
        monkeypatch.setattr(f"fairlead.engine.{module}.monotonic", lambda: monotonic() + ahead[0])
    return ahead


async def quick(s):
    return None


@pytest.mark.parametrize("before", [0, 1, 3])
async def test_the_clock_starts_when_the_hook_starts_not_when_it_first_suspends(before: int, passed: list[float]):
    hooks = Hooks()
    for i in range(before):
        hooks.add(quick, on="before_tool", name=f"quick{i}")

    @hooks.on.before_tool(timeout=3600, on_failure="open")
    async def blocks_then_hangs(s):
        passed[0] += 3601
        await forever()

    decision = await asyncio.wait_for(hooks.dispatch(STEP), 30)
    assert decision.failures[0].kind == "timeout"


@pytest.mark.parametrize("before", [0, 1, 3])
async def test_the_time_that_earlier_hooks_take_is_not_the_hooks(before: int, passed: list[float]):
    hooks = Hooks()

    def blocks(s):
        passed[0] += 3601

    for i in range(before):
        hooks.add(blocks, on="before_tool", name=f"blocks{i}")

    @hooks.on.before_tool(timeout=3600)
    async def waits(s):
        passed[0] += 3000
        await asyncio.sleep(0.02)  # several ticks

    assert (await hooks.dispatch(STEP)).failures == ()


async def test_the_recorded_time_of_earlier_hooks_is_not_the_hooks(passed: list[float]):
    hooks = Hooks(record=True)

    def takes_an_hour(s):
        passed[0] += 3600

    hooks.add(takes_an_hour, on="before_tool", name="first")
    hooks.add(takes_an_hour, on="before_tool", name="second")
    runs = (await hooks.dispatch(STEP)).runs
    assert [round(run.duration / 3600) for run in runs] == [1, 1]


async def test_the_time_that_an_approver_takes_is_not_the_observers(passed: list[float]):
    def takes_an_hour(request):
        passed[0] += 3600
        return True

    hooks = Hooks(record=True, approver=takes_an_hour)
    hooks.add(lambda s: ask("sure?"), on="before_tool", name="asks")
    hooks.add(lambda s: None, on="before_tool", name="watches", phase="observe")
    assert (await hooks.dispatch(STEP)).runs[-1].duration < 60


async def test_a_hook_that_blocks_past_its_deadline_without_suspending_is_late():
    hooks = Hooks()

    @hooks.on.before_tool(timeout=0.01, on_failure="open")
    async def blocks(s):
        time.sleep(0.03)
        return deny("too late")

    decision = await hooks.dispatch(STEP)
    assert (decision.control, decision.failures[0].kind) == ("proceed", "timeout")


async def test_an_untimed_chain_times_out_when_a_hook_suspends():
    hooks, hang = Hooks(), []

    @hooks.on.before_tool(timeout=0.02)
    async def sometimes(s):
        if hang:
            await forever()

    for _ in range(50):
        await hooks.dispatch(STEP)
    hang.append(True)
    assert (await asyncio.wait_for(hooks.dispatch(STEP), 1)).failures[0].kind == "timeout"


async def is_late(hooks: Hooks, passed: list[float], late: list[bool]) -> bool:
    """Whether the hook `late` is found late, which shows that its chain is timed."""
    late.append(True)
    decision = await hooks.dispatch(STEP)
    late.clear()
    return bool(decision.failures)


@pytest.mark.parametrize(("quiet", "timed"), [(15, True), (16, False), (40, False)])
async def test_a_chain_is_timed_until_sixteen_dispatches_in_a_row_went_without_a_suspension(
    quiet: int, timed: bool, passed: list[float]
):
    hooks, suspend, late = Hooks(), [], []

    @hooks.on.before_tool(timeout=60)
    async def first(s):
        if suspend:
            await asyncio.sleep(0)

    @hooks.on.before_tool(timeout=60)
    async def second(s):
        if late:
            passed[0] += 61
            return deny("too late")

    for _ in range(20):
        await hooks.dispatch(STEP)
    assert not await is_late(hooks, passed, late)
    suspend.append(True)
    await hooks.dispatch(STEP)  # makes the chain timed again
    suspend.clear()
    for _ in range(quiet):
        await hooks.dispatch(STEP)
    assert await is_late(hooks, passed, late) is timed


async def test_every_dispatch_gives_a_decision_however_many_were_quiet():
    hooks = Hooks()
    hooks.add(lambda s: None, on="before_tool", name="quiet")
    decisions = [await hooks.dispatch(STEP) for _ in range(40)]
    assert all(decision.step is STEP for decision in decisions)


async def test_a_hook_may_fail_however_many_dispatches_were_quiet():
    hooks, failing = Hooks(), []

    def fails(s):
        if failing:
            raise RuntimeError("broken")

    hooks.add(fails, on="before_tool")
    for _ in range(40):
        await hooks.dispatch(STEP)
    failing.append(True)
    assert (await hooks.dispatch(STEP)).failures[0].error == "RuntimeError: broken"


async def test_observers_run_in_every_dispatch_however_many_were_quiet():
    hooks, seen = Hooks(), []
    hooks.add(lambda s: None, on="before_tool", name="quiet")
    hooks.add(seen.append, on="before_tool", name="watch", phase="observe")
    for _ in range(40):
        await hooks.dispatch(STEP)
    assert len(seen) == 40


async def test_every_dispatch_is_recorded_however_many_were_quiet():
    hooks = Hooks(record=True)
    hooks.add(lambda s: None, on="before_tool", name="quiet")
    decisions = [await hooks.dispatch(STEP) for _ in range(40)]
    assert [len(decision.runs) for decision in decisions] == [1] * 40


async def test_a_quiet_end_lifts_a_streak_of_failures_however_many_were_quiet():
    hooks, failing = Hooks(), []

    @hooks.on.before_tool(quarantine=(2, 60))
    def flaky(s):
        if failing:
            raise RuntimeError("broken")

    for _ in range(40):
        await hooks.dispatch(STEP)
    for fails in (True, False, True, True):
        failing[:] = [True] * fails
        decision = await hooks.dispatch(STEP)
    assert decision.failures[0].kind == "error"  # and not "quarantined"


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
    monkeypatch.setattr("fairlead.engine.threads.ABANDONED_LIMIT", 2)
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
    theirs.send(b"x")  # which is never read
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
