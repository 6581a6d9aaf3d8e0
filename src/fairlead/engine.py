"""Dispatch: one step in, one decision out.

`each` is the loop. It is a generator so that a dispatch whose hooks never suspend, and most never
do, runs to its end without a task, a timer or an exception; and while nobody has anything to say,
there is nothing but the loop. The first hook that speaks, fails or suspends starts a `Run`, which
knows the rules. `parked` takes over when a hook does suspend, and holds it to its deadline.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import types
from asyncio import CancelledError
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import suppress
from operator import length_hint
from time import monotonic
from typing import Any

from .approvals import ApprovalRequest, seek_approvals
from .deadlines import CANCELS, Deadline, TooLateError, in_time
from .decision import Call, Decision, HookApproval, Mark, Stretch
from .errors import HookTimeout
from .hook import Hook
from .lifecycle import Step
from .run import Chain, Run, begin, watching
from .session import current_session
from .threads import portal
from .verdict import clean

Going = Generator[Any, Any, None]

CALM = 16
"""Dispatches a chain must finish without suspending before its hooks are no longer timed one by one."""

_SUSPENDED = -math.inf  # what a hook's clock shows once its deadline keeps the time: it is never in patience
NOT_OURS = (GeneratorExit, KeyboardInterrupt, SystemExit)  # every other way to raise is a hook's failure


@types.coroutine
def each(chain: Chain, step: Step, todo: Iterator[Call], cell: list[Run], began: float | None) -> Going:
    """Run hook after hook. This is the loop that everything else serves.

    `cell` holds the run, once there is one: a hook had something to say, or is timed. `began` is when
    a chain of one hook was entered, if it is not.
    """
    clock: list[float] | None = None
    while True:
        for call, is_async in todo:
            try:
                said = (yield from call(step)) if is_async else call(step)
                if said is None:
                    if clock is None:
                        if not cell:
                            continue  # no opinion costs nothing
                        clock, marks, patience = cell[0].clock, cell[0].marks, chain.patience
                    now = monotonic()
                    took = now - clock[0]
                    if took < patience:  # which a hook that has suspended never is
                        clock[0] = now
                        if marks is not None:
                            marks.append(took)
                        continue
                elif not is_async and inspect.isawaitable(said):
                    sync = bool(cell) and cell[0].sync
                    said = _elsewhere(said, cell[0]) if sync else (yield from said.__await__())
            except BaseException as error:
                if isinstance(error, NOT_OURS) or (cell and cell[0].closing):
                    raise
                run = cell[0] if cell else begin(chain, step, todo, cell, began)
                moved = run.settle(None, error)
            else:
                run = cell[0] if cell else begin(chain, step, todo, cell, began)
                moved = run.settle(said, None)
            step = run.step
            if moved and run.todo is not None:
                todo = run.todo
                break
        else:
            return


def rest(run: Run) -> Going:
    """`each` for what a run has left to do."""
    return each(run.chain, run.step, run.todo or iter(()), [run], None)


@types.coroutine
def phases(run: Run) -> Going:
    """All of a dispatch: transforms and gates, the gates that run at once, a human, the observers."""
    if run.decision is None:
        yield from rest(run)
        run.todo = None  # no hook is running that could be late
        if run.chain.group.calls and not run.barred:
            yield from _here(run, _together)
        if run.asks:
            yield from _here(run, _ask)
        run.watch()
    yield from rest(run)


@types.coroutine
def _here(run: Run, work: Callable[[Run], Coroutine[Any, Any, None]]) -> Going:
    """Await something on the caller's loop, or on the private one if the caller has none."""
    if run.sync:
        portal.run(lambda: work(run))
    else:
        yield from work(run)


async def drive(run: Run, work: Callable[[Run], Going]) -> None:
    """Run `work(run)` in the caller's task, every hook held to its time-out."""
    going = work(run)
    for waiting in going:
        await parked(run, work, going, waiting)
        break


@types.coroutine
def parked(run: Run, work: Callable[[Run], Going], going: Going, waiting: Any) -> Going:
    """Go on from the first suspension, with a deadline for each hook that suspends.

    The clock of a hook starts when the hook does, not here. What the hook waits for is passed on to
    its task; what the task sends or throws comes back here first.
    """
    clock = run.clock
    error: BaseException | None = None
    try:
        while True:
            deadline, error = run.deadline, None
            if deadline is None and run.todo is not None:  # a hook has just suspended
                run.parked = hook = run.stretch.hooks[-1 - length_hint(run.todo)]
                started, timeout = clock[0], hook.timeout
                run.deadline = deadline = Deadline(started, None if timeout is None else started + timeout)
                clock[0] = _SUSPENDED
            elif waiting is None and deadline is not None and deadline.overdue():
                error = CancelledError(deadline)
            if error is None:
                if waiting is not None and deadline is not None:
                    try:
                        waiting = deadline.watch(waiting)
                    except RuntimeError as wrong:  # which asyncio would tell the hook, too
                        waiting = going.throw(wrong)
                        continue
                try:
                    yield waiting
                except GeneratorExit:
                    going.close()
                    raise
                except BaseException as thrown:
                    error = thrown
                    if deadline is not None and isinstance(thrown, CancelledError):
                        deadline.interrupted(thrown)
                    if deadline is not None and deadline.refuses(thrown):
                        waiting = deadline.waiting
                        continue
            if error is None and deadline is not None and deadline.missed and deadline.overdue():
                deadline.missed = False
                error = CancelledError(deadline)
            if error is None:
                for waiting in going:  # a `for`, because it ends without an exception
                    break
                else:
                    return
            else:
                waiting = going.throw(error)
                if deadline is not None and deadline is run.deadline and deadline.cancels >= CANCELS:
                    going = _abandon(run, work, going)
                    waiting = next(going)
    except StopIteration:
        return
    finally:
        error = None  # its traceback holds this frame: without this they would keep each other alive
        if run.deadline is not None:
            run.deadline.release(None)


def _abandon(run: Run, work: Callable[[Run], Going], going: Going) -> Going:
    """A hook that swallowed every cancellation is closed, and the run goes on after it."""
    run.closing = True
    with suppress(BaseException):  # of a hook that swallows even that, or raises: nothing waits for it any more
        going.close()
    run.closing = False
    run.settle(None, None)
    return work(run)


async def _together(run: Run) -> None:
    """Run several async gates at once, each in its own task, each to its end."""
    loop = asyncio.get_running_loop()
    finished: asyncio.Future[None] = loop.create_future()
    group = run.chain.group
    parts = [_part(run, Stretch((call,), (hook,))) for call, hook in zip(group.calls, group.hooks, strict=True)]
    left = len(parts)

    async def judge(part: Run) -> None:
        nonlocal left
        part.clock[0] = monotonic()
        try:
            await drive(part, rest)
        except NOT_OURS:
            raise
        except BaseException as error:  # its task was cancelled: by us, or by the gate itself
            if not cancelled:
                part.give_in(error)
        finally:
            left -= 1
            if not left and not finished.done():
                finished.set_result(None)

    cancelled = False
    tasks = [loop.create_task(judge(part)) for part in parts]
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
            run.said += part.said
            run.asked = run.asked or part.asked
            if run.marks is not None:
                run.marks += part.marks or ()
        run.said.sort(key=lambda pair: pair[0].order)  # in chain order, whoever finished first
    for task in tasks:
        if task.done() and not task.cancelled() and (fatal := task.exception()) is not None:
            raise fatal


def alone(run: Run, hook: Hook, decision: Decision[Any]) -> Run:
    """A run of one observer that nobody waits for."""
    return _part(run, watching(Stretch(((hook.call, hook.is_async),), (hook,)), decision))


def _part(run: Run, gate: Stretch) -> Run:
    """A run of one hook, apart from the others'."""
    marks: list[Mark] | None = [gate] if run.chain.record else None
    return Run(run.chain, run.step, run.step, gate, iter(gate.calls), [0.0, 0.0], marks)


async def _ask(run: Run) -> None:
    """Put every question of every hook that asks to a human, with the final step."""
    session, hooks = current_session(None), run.chain.table.hooks
    asking: dict[tuple[str, str | None], Hook] = {}
    for opinion in run.verdicts:
        if opinion.verdict.control == "ask":
            question = opinion.verdict.reason
            asking.setdefault((opinion.hook.name, None if question is None else clean(question)), opinion.hook)
    requests = [ApprovalRequest(run.step, name, question) for name, question in asking]
    approver = (session and session.approver) or hooks.approver
    answers = await seek_approvals(approver, requests, hooks.approval_timeout)
    for hook, request, answer in zip(asking.values(), requests, answers, strict=False):  # a refusal may end them
        run.said.append((hook, HookApproval(request.hook, request.question, answer, hook.note)))


def _elsewhere(awaitable: Any, run: Run) -> Any:
    """A sync caller's hook returned something to await: it is awaited on the private loop."""
    timeout = run.stretch.hooks[-1 - length_hint(run.todo or ())].timeout

    async def wait() -> Any:
        try:
            return await in_time(awaitable, timeout)
        except TooLateError:
            raise HookTimeout from None

    return portal.run(wait)
