"""The loop that runs the hooks of one dispatch.

`run_hooks` is the loop. It is a generator, so that a dispatch whose hooks never suspend runs to its end without a
task, a timer or an exception, and while no hook returns a verdict it does nothing but call hooks. The first hook that
returns a verdict, fails or suspends starts a `Run`, which holds the rules. When a hook suspends, `resume` takes over
and holds it to its time-out.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import types
from asyncio import CancelledError
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import suppress
from time import monotonic
from typing import Any

from ..approvals import ApprovalRequest, seek_approvals
from ..decision import Decision, HookApproval, HookCall, HookSequence, RunEntry
from ..errors import HookTimeout
from ..hook import Hook
from ..lifecycle import Step
from ..session import current_session
from ..verdict import HookVerdict, clean
from .chain import Chain
from .deadlines import CANCELS, Deadline, TooLateError, wait_at_most
from .run import Run, start_run, with_decision
from .threads import portal

HookLoop = Generator[Any, Any, None]
"""A loop that is under way. It yields what a hook waits for, and ends when no hook is left."""

PROPAGATED = (GeneratorExit, KeyboardInterrupt, SystemExit)
"""Exceptions that end the dispatch. Every other one is a failure of the hook that raised it."""

_SUSPENDED = -math.inf  # in the clock of a hook that has suspended, so that the loop never finds it in time


@types.coroutine
def run_hooks(
    chain: Chain, step: Step, remaining: Iterator[HookCall], cell: list[Run], started: float | None
) -> HookLoop:
    """Run hook after hook. This is the loop that everything else serves.

    `cell` holds the `Run`, once there is one. `started` is when an untimed chain of one hook was entered.
    """
    clock: list[float] | None = None
    while True:
        for call, is_async in remaining:
            try:
                result = (yield from call(step)) if is_async else call(step)
                if result is None:
                    if clock is None:
                        if not cell:
                            continue  # an untimed hook without a verdict: nothing else to do
                        clock, run_log, min_timeout = cell[0].clock, cell[0].run_log, chain.min_timeout
                    now = monotonic()
                    duration = now - clock[0]
                    if duration < min_timeout:  # never true of a hook that has suspended
                        clock[0] = now
                        if run_log is not None:
                            run_log.append(duration)
                        continue
                elif not is_async and inspect.isawaitable(result):
                    sync = bool(cell) and cell[0].sync
                    result = await_on_private_loop(result, cell[0]) if sync else (yield from result.__await__())
            except BaseException as error:
                if isinstance(error, PROPAGATED) or (cell and cell[0].is_abandoning):
                    raise
                run = cell[0] if cell else start_run(chain, step, remaining, cell, started)
                is_new = run.on_hook_end(None, error)
            else:
                run = cell[0] if cell else start_run(chain, step, remaining, cell, started)
                is_new = run.on_hook_end(result, None)
            step = run.step
            if is_new and run.remaining is not None:
                remaining = run.remaining
                break
        else:
            return


def run_remaining(run: Run) -> HookLoop:
    """Run the hooks that a run has left."""
    return run_hooks(run.chain, run.step, run.remaining or iter(()), [run], None)


@types.coroutine
def run_phases(run: Run) -> HookLoop:
    """Run all phases: the sequence, the concurrent gates, the approver, the observers."""
    if run.decision is None:
        yield from run_remaining(run)
        run.remaining = None  # no hook is running that could be late
        if run.chain.concurrent_gates.calls and not run.gates_skipped:
            yield from _await_with(run, _run_concurrent_gates)
        if run.needs_approval:
            yield from _await_with(run, _request_approvals)
        run.start_observers()
    yield from run_remaining(run)


@types.coroutine
def _await_with(run: Run, function: Callable[[Run], Coroutine[Any, Any, None]]) -> HookLoop:
    """Await `function(run)` on the caller's loop, or on the private one if the caller has none."""
    if run.sync:
        portal.run(lambda: function(run))
    else:
        yield from function(run)


async def run_to_end(run: Run, make_loop: Callable[[Run], HookLoop]) -> None:
    """Run a loop to its end in the caller's task, every hook held to its time-out."""
    loop = make_loop(run)
    for awaited in loop:
        await resume(run, make_loop, loop, awaited)
        break


@types.coroutine
def resume(run: Run, make_loop: Callable[[Run], HookLoop], loop: HookLoop, awaited: Any) -> HookLoop:
    """Run a loop to its end from its first suspension, with a deadline for each hook that suspends.

    A time-out counts from the start of the hook, not from here. What the hook awaits is passed on to the caller's task.
    What the task sends or throws comes back here first.
    """
    clock = run.clock
    error: BaseException | None = None
    try:
        while True:
            deadline, error = run.deadline, None
            if deadline is None and run.remaining is not None:  # a hook has just suspended
                run.suspended_hook = hook = run.current_hook
                started, timeout = clock[0], hook.timeout
                run.deadline = deadline = Deadline(started, None if timeout is None else started + timeout)
                clock[0] = _SUSPENDED
            elif awaited is None and deadline is not None and deadline.overdue():
                error = CancelledError(deadline)
            if error is None:
                if awaited is not None and deadline is not None:
                    try:
                        awaited = deadline.watch(awaited)
                    except RuntimeError as wrong:  # asyncio would raise it in the hook, too
                        awaited = loop.throw(wrong)
                        continue
                try:
                    yield awaited
                except GeneratorExit:
                    loop.close()
                    raise
                except BaseException as thrown:
                    error = thrown
                    if deadline is not None and isinstance(thrown, CancelledError):
                        deadline.on_cancelled(thrown)
                    if deadline is not None and deadline.pass_on(thrown):
                        awaited = deadline.awaited
                        continue
            if error is None and deadline is not None and deadline.missed and deadline.overdue():
                deadline.missed = False
                error = CancelledError(deadline)
            if error is None:
                for awaited in loop:  # a `for` ends without an exception
                    break
                else:
                    return
            else:
                awaited = loop.throw(error)
                if deadline is not None and deadline is run.deadline and deadline.cancels >= CANCELS:
                    loop = _abandon(run, make_loop, loop)
                    awaited = next(loop)
    except StopIteration:
        return
    finally:
        error = None  # its traceback holds this frame: a cycle otherwise
        if run.deadline is not None:
            run.deadline.release(None)


def _abandon(run: Run, make_loop: Callable[[Run], HookLoop], loop: HookLoop) -> HookLoop:
    """Close a hook that swallowed every cancellation, and give the loop for the hooks after it."""
    run.is_abandoning = True
    with suppress(BaseException):  # the hook may swallow this, too, or raise: nothing waits for it any more
        loop.close()
    run.is_abandoning = False
    run.on_hook_end(None, None)
    return make_loop(run)


async def _run_concurrent_gates(run: Run) -> None:
    """Run several async gates at once, each in its own task, each to its end."""
    event_loop = asyncio.get_running_loop()
    finished: asyncio.Future[None] = event_loop.create_future()
    gates = run.chain.concurrent_gates
    parts = [_run_of_one(run, HookSequence((c,), (h,))) for c, h in zip(gates.calls, gates.hooks, strict=True)]
    left = len(parts)

    async def judge(part: Run) -> None:
        nonlocal left
        part.clock[0] = monotonic()
        try:
            await run_to_end(part, run_remaining)
        except PROPAGATED:
            raise
        except BaseException as error:  # its task was cancelled, here or by the gate itself
            if not cancelled:
                part.fail_current(error)
        finally:
            left -= 1
            if not left and not finished.done():
                finished.set_result(None)

    cancelled = False
    tasks = [event_loop.create_task(judge(part)) for part in parts]
    try:
        await finished
    except CancelledError:
        cancelled = True
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=1.0)
        raise
    finally:
        for part in parts:
            run.contributions += part.contributions
            run.has_question = run.has_question or part.has_question
            if run.run_log is not None:
                run.run_log += part.run_log or ()
        run.contributions.sort(key=lambda pair: pair[0].order)  # in chain order, not in finishing order
    for task in tasks:
        if task.done() and not task.cancelled() and (fatal := task.exception()) is not None:
            raise fatal


def detached_run(run: Run, hook: Hook, decision: Decision[Any]) -> Run:
    """A run of one detached observer, for the queue."""
    return _run_of_one(run, with_decision(HookSequence(((hook.call, hook.is_async),), (hook,)), decision))


def _run_of_one(run: Run, sequence: HookSequence) -> Run:
    """A run of one hook on the same step. The caller sets its clock when the hook starts."""
    run_log: list[RunEntry] | None = [sequence] if run.chain.records_runs else None
    return Run(run.chain, run.step, run.step, sequence, iter(sequence.calls), [0.0, 0.0], run_log)


async def _request_approvals(run: Run) -> None:
    """Put every question of every hook to the approver, with the final step."""
    session, hooks = current_session(None), run.chain.table.hooks
    by_question: dict[tuple[str, str | None], list[HookVerdict]] = {}
    changed_by: dict[str, None] = {}
    for hook_verdict in run.verdicts:
        hook, question = hook_verdict.hook, hook_verdict.verdict.reason
        if hook_verdict.verdict.control == "ask":
            by_question.setdefault((hook.name, None if question is None else clean(question)), []).append(hook_verdict)
        if hook_verdict.verdict.changes:
            changed_by[hook.name] = None
    requests = [
        ApprovalRequest(run.step, name, question, run.original, tuple(changed_by), tuple(verdicts))
        for (name, question), verdicts in by_question.items()
    ]
    approver = (session and session.approver) or hooks.approver
    answers = await seek_approvals(approver, requests, hooks.approval_timeout)
    for request, answer in zip(requests, answers, strict=False):  # a deny ends them early
        hook = request.verdicts[0].hook
        run.contributions.append((hook, HookApproval(request.hook, request.question, answer, hook.note)))


def await_on_private_loop(awaitable: Any, run: Run) -> Any:
    """Await what the current hook of a sync caller returned, for as long as the hook's time-out allows."""
    timeout = run.current_hook.timeout

    async def wait() -> Any:
        try:
            return await wait_at_most(awaitable, timeout)
        except TooLateError:
            raise HookTimeout from None

    return portal.run(wait)
