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
from contextvars import ContextVar
from operator import length_hint
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec
from msgspec.structs import replace

from .approvals import Approval, ApprovalRequest, seek_approval
from .deadlines import CANCELS, Deadline
from .decision import Call, Decision, Failure, FailureKind, Mark, Monitored, RunOutcome, Said, Stretch
from .errors import FairleadError, HookTimeout, MalformedVerdict, Quarantined
from .hook import Hook, Ran
from .lifecycle import Control, Event, Step
from .threads import portal
from .verdict import ENDING, Opinion, Verdict, apply, check, clean, fold

if TYPE_CHECKING:
    from .table import Table

Going = Generator[Any, Any, None]
Details = dict[str, Any] | None

_SUSPENDED = -math.inf  # what a hook's clock shows once its deadline keeps the time: it is never in patience

finishing: ContextVar[Callable[[Decision[Any]], Decision[Any]] | None] = ContextVar("fairlead_finish", default=None)
"""Who has the last word on a decision before it is journaled: a host's say on what it can carry out."""

CALM = 16
"""Dispatches a chain must finish without suspending before its hooks are no longer timed one by one."""


class Chain(msgspec.Struct):
    """The hooks that apply to one kind of step, in running order. Compiled once, then only read."""

    table: Table
    event: Event[Any]
    stretch: Stretch  # the transforms, then the gates that run one after another
    gates: Stretch  # those gates alone
    group: Stretch  # async gates, when there are several: they run at once
    observers: Stretch
    detached: tuple[Hook, ...] = ()
    plain: bool = False  # `stretch` is all there is
    inline: bool = False  # ... and none of it is async, guarded or recorded
    has_async: bool = False
    record: bool = False
    journal: Callable[[Decision[Any]], None] | None = None
    patience: float = math.inf  # the shortest time-out; less than none if some hook must always be settled
    always_timed: bool = False
    lone: bool = False  # one hook, so that the chain's clock is the hook's
    calm: int = 0  # dispatches since a hook last suspended, up to CALM


class Run(msgspec.Struct):
    """Where one dispatch stands, once there is something to keep track of. Its hooks are timed."""

    chain: Chain
    original: Step
    step: Step
    stretch: Stretch
    todo: Iterator[Call] | None  # its calls; what is left of them tells which hook is running
    clock: list[float]  # when the current hook started; a list, because it is set for every hook
    marks: list[Mark] | None = None  # what is recorded: see `Decision.runs`
    deadline: Deadline | None = None  # of the current hook, once it has suspended
    said: list[tuple[Hook, Said]] = []
    asked: bool = False  # somebody wants a human to decide
    barred: bool = False  # a transform denied or aborted, so the gates are not asked
    sync: bool = False
    closing: bool = False  # the current hook is being abandoned
    decision: Decision[Any] | None = None

    # --- how a hook ended -------------------------------------------------------------------

    def settle(self, said: Any, error: BaseException | None) -> bool:
        """Take in how the current hook ended. True if the loop must go on with a new `todo`."""
        hook, deadline = self.stretch.hooks[-1 - length_hint(self.todo or ())], self.deadline
        if deadline is None:
            took = monotonic() - self.clock[0]
            late = took > hook.limit
        else:
            self.deadline = None
            took = monotonic() - deadline.started
            late = deadline.cancels > 0 or took > hook.limit
            if deadline.task is not None and (deadline.release(error) or deadline.is_foreign(error)):
                self._cancel(hook, took, error)
        details: Details = None
        if said is not None and isinstance(said, Ran):
            said, details = said.said, said.details
        if said is None and error is None and not late:
            if hook.quarantine is not None:
                hook.quarantine.reset()
            if self.marks is not None:
                self.marks.append(("none", took, details))
            return False
        if (late or isinstance(error, HookTimeout)) and hook.timeout is not None:
            return self._fail(hook, "timeout", f"no answer within {hook.timeout:g} s", took, details)
        if error is not None:
            kind = _FAILURES.get(type(error), "error")
            return self._fail(hook, kind, _describe(error), took, getattr(error, "details", None))
        try:
            return self._take(hook, said, took, details)
        except MalformedVerdict as problem:
            return self._fail(hook, "malformed", str(problem), took, details)
        except Exception as problem:  # from a mapping, a value or a field of somebody else's making
            return self._fail(hook, "malformed", _describe(problem), took, details)

    def give_in(self, error: BaseException) -> None:
        """A hook's task ended in some other way than by the hook's returning or raising."""
        self.deadline = None
        self._fail(self.stretch.hooks[-1], "error", _describe(error), 0.0, None)

    def _cancel(self, hook: Hook, took: float, error: BaseException | None) -> NoReturn:
        """The caller was cancelled. That goes on, even where the hook swallowed it."""
        self._mark("cancelled", took)
        if hook.quarantine is not None:
            hook.quarantine.cancelled()
        raise error if isinstance(error, CancelledError) else CancelledError

    def _mark(self, outcome: RunOutcome, took: float, details: Details = None) -> None:
        if self.marks is not None:
            self.marks.append((outcome, took, details))

    def _take(self, hook: Hook, said: Any, took: float, details: Details) -> bool:
        """A verdict: check it, apply it whole or not at all, remember it."""
        if hook.phase == "observe":
            raise MalformedVerdict("verdict", "an observer only watches; use phase='gate' or 'transform'")
        chain, transforms = self.chain, hook.phase == "transform"
        verdict = check(said, self.step, chain.event, may_change=transforms, may_loosen=hook.layer != "project")
        step = apply(self.step, verdict.changes, chain.table.hooks.tools)
        self._mark("verdict", took, details)
        if hook.quarantine is not None:
            hook.quarantine.reset()
        if not self._enforced(hook):
            self.said.append((hook, Monitored(hook.name, verdict)))
            return False
        self.said.append((hook, Opinion(hook, verdict)))
        self.asked = self.asked or verdict.control == "ask"
        if not transforms:
            return False
        changed, self.step = step is not self.step, step
        moved = changed and self._follow()
        if verdict.control in ENDING or verdict.control == "skip_rest":
            return self._end_transforms(verdict.control)
        return moved

    def _fail(self, hook: Hook, kind: FailureKind, error: str, took: float, details: Details) -> bool:
        """A failure: what comes of it is the hook's policy, never an accident."""
        self._mark(kind, took, details)
        if hook.quarantine is not None and kind != "quarantined":
            hook.quarantine.failed()
        policy = None if hook.phase == "observe" else hook.on_failure
        control: Control | None = None
        if policy == "abort":
            control = "abort"
        elif policy == "closed" and self.chain.event.veto in ("abort", "deny", "stop"):
            control = self.chain.event.veto
        failure = Failure(hook.name, self.chain.event.name, kind, clean(error), policy, control)
        if not self._enforced(hook):
            self.said.append((hook, Monitored(hook.name, Verdict(control or "proceed", str(failure)), "failure")))
            return False
        self.said.append((hook, failure))
        if control is None:
            return False
        self.said.append((hook, Opinion(hook, Verdict(control, str(failure)), "failure")))
        return hook.phase == "transform" and self._end_transforms(control)

    def _enforced(self, hook: Hook) -> bool:
        return hook.enforce and self.chain.table.hooks.enforce

    # --- what runs next ---------------------------------------------------------------------

    def _next(self, stretch: Stretch) -> None:
        if self.sync:  # without a loop here, what is to be awaited is awaited elsewhere
            stretch = Stretch(tuple((call, False) for call, _ in stretch.calls), stretch.hooks)
        self.stretch = stretch
        self.todo = iter(stretch.calls)
        if self.marks is not None:
            self.marks.append(stretch)

    def _end_transforms(self, control: Control) -> bool:
        self.barred = control in ("deny", "abort")
        self._next(_NOTHING if self.barred else self.chain.gates)
        return True

    def _follow(self) -> bool:
        """A change may turn a call into one of another kind: then that kind's gates judge it."""
        chain = self.chain.table.chain_for(self.step) or self.chain.table.empty(self.chain.event)
        if chain is self.chain or self.todo is None:
            return False
        calls = tuple(self.todo)
        hooks = self.stretch.hooks[len(self.stretch.hooks) - len(calls) :]
        left = sum(hook.phase == "transform" for hook in hooks)
        self.chain = chain
        self._next(Stretch((*calls[:left], *chain.gates.calls), (*hooks[:left], *chain.gates.hooks)))
        return True

    # --- the decision -----------------------------------------------------------------------

    @property
    def verdicts(self) -> list[Opinion]:
        return [what for _, what in self.said if isinstance(what, Opinion)]

    @property
    def asks(self) -> bool:
        """True while a human must decide and has not yet."""
        winner = fold(self.verdicts) if self.asked else None
        return winner is not None and winner.verdict.control == "ask" and self._approval() is None

    def _approval(self) -> Approval | None:
        return next((what for _, what in self.said if isinstance(what, Approval)), None)

    @property
    def unfinished(self) -> bool:
        """True when the plain loop was not all: somebody asks, or a change led to another chain."""
        return self.decision is None and (not self.chain.plain or self.asks)

    def watch(self) -> None:
        """The decision stands: hand it to those who only watch."""
        chain, decision = self.chain, self._decide()
        self.decision = decision
        for hook in chain.detached:
            self._next(Stretch((), (hook,)))
            self._mark(chain.table.hooks.detach(self, hook, decision), 0.0)
        self._next(_watching(chain.observers, decision))
        self.clock[0] = monotonic()

    def conclude(self) -> Decision[Any]:
        """The finished decision, with all that was recorded on the way and what the host says to it."""
        chain, decision = self.chain, self.decision
        marks = () if self.marks is None else tuple(self.marks)
        if decision is None:
            decision = self._decide(marks) if self.said else Decision(self.step, self.original, "proceed", (), marks)
        elif marks or len(self.said) != len(decision.said):
            # Observers saw the decision before they, in turn, were recorded or failed.
            decision = replace(decision, said=tuple(what for _, what in self.said), marks=marks)
        if self.said and (finish := finishing.get()) is not None:
            decision = finish(decision)
        if chain.journal is not None:
            chain.journal(decision)
        return decision

    def give_up(self) -> None:
        """The caller was cancelled: there is no decision, but there is something to write down."""
        if self.chain.journal is not None:
            said, marks = tuple(what for _, what in self.said), tuple(self.marks or ())
            self.chain.journal(Decision(self.step, self.original, "abort", said, marks))

    def _decide(self, marks: tuple[Mark, ...] = ()) -> Decision[Any]:
        winner, approval = fold(self.verdicts), self._approval() if self.asked else None
        control: Control = "proceed" if winner is None else winner.verdict.control
        if approval is not None:
            control = approval.answer
        return Decision(self.step, self.original, control, tuple(what for _, what in self.said), marks)


_NOTHING = Stretch()
_NOT_OURS = (GeneratorExit, KeyboardInterrupt, SystemExit)  # every other way to raise is a hook's failure
_FAILURES: dict[type, FailureKind] = {Quarantined: "quarantined", MalformedVerdict: "malformed"}


def begin(chain: Chain, step: Step, todo: Iterator[Call], cell: list[Run], began: float | None) -> Run:
    """Start keeping track of a dispatch that is at `todo` in its chain."""
    marks: list[Mark] | None = [chain.stretch] if chain.record else None
    run = Run(chain, step, step, chain.stretch, todo, [began or monotonic()], marks)
    cell.append(run)
    return run


def _watching(observers: Stretch, decision: Decision[Any]) -> Stretch:
    """The observers, with the decision in the hands of those who want it."""

    def showing(call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda step: call(step, decision)

    calls = tuple(
        (showing(call) if hook.wants_decision else call, is_async)
        for (call, is_async), hook in zip(observers.calls, observers.hooks, strict=True)
    )
    return Stretch(calls, observers.hooks)


def _describe(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = "(an error that cannot be shown)"
    if isinstance(error, FairleadError):
        return text  # which says it all
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


# --- running ------------------------------------------------------------------------------------


@types.coroutine
def each(chain: Chain, step: Step, todo: Iterator[Call], cell: list[Run], began: float | None) -> Going:
    """Run hook after hook. This is the loop that everything else serves.

    `cell` holds the run, once there is one: a hook had something to say, or is timed. `began` is when
    a chain of one hook was entered, if it is not.
    """
    patience, clock, marks = chain.patience, None, None
    while True:
        for call, is_async in todo:
            try:
                said = (yield from call(step)) if is_async else call(step)
                if said is None:
                    if not cell:
                        continue  # no opinion costs nothing
                    if clock is None:
                        clock, marks = cell[0].clock, cell[0].marks
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
                if isinstance(error, _NOT_OURS) or (cell and cell[0].closing):
                    raise
                run = cell[0] if cell else begin(chain, step, todo, cell, began)
                moved = run.settle(None, error)
            else:
                run = cell[0] if cell else begin(chain, step, todo, cell, began)
                moved = run.settle(said, None)
            step = run.step
            run.clock[0] = monotonic()  # what it takes to settle is nobody's time
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
                started, timeout = clock[0], run.stretch.hooks[-1 - length_hint(run.todo)].timeout
                run.deadline = deadline = Deadline(started, None if timeout is None else started + timeout)
                clock[0] = _SUSPENDED
            elif waiting is None and deadline is not None and deadline.overdue():
                error = CancelledError(deadline)
            if error is None:
                if waiting is not None and deadline is not None:
                    if getattr(waiting, "_asyncio_future_blocking", None) is None:
                        waiting = going.throw(
                            RuntimeError(f"a hook awaited {waiting!r}, which is no awaitable of asyncio")
                        )
                        continue
                    waiting = deadline.watch(waiting)
                try:
                    yield waiting
                except GeneratorExit:
                    going.close()
                    raise
                except BaseException as thrown:
                    error = thrown
                    if deadline is not None and deadline.task is None:
                        deadline.interrupted()
                    if deadline is not None and deadline.refuses(thrown):
                        waiting = deadline.waiting
                        continue
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
    run.clock[0] = monotonic()
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
        except _NOT_OURS:
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
    return _part(run, _watching(Stretch(((hook.call, hook.is_async),), (hook,)), decision))


def _part(run: Run, gate: Stretch) -> Run:
    """A run of one hook, apart from the others'."""
    marks: list[Mark] | None = [gate] if run.chain.record else None
    return Run(run.chain, run.step, run.step, gate, iter(gate.calls), [0.0], marks)


async def _ask(run: Run) -> None:
    """Put the question to a human, once, with the final step."""
    asked, hooks = fold(run.verdicts), run.chain.table.hooks
    if asked is None:
        return
    question = asked.verdict.reason
    request = ApprovalRequest(run.step, asked.hook.name, None if question is None else clean(question))
    run.said.append((asked.hook, await seek_approval(hooks.approver, request, hooks.approval_timeout)))


def _elsewhere(awaitable: Any, run: Run) -> Any:
    """A sync caller's hook returned something to await: it is awaited on the private loop."""
    timeout = run.stretch.hooks[-1 - length_hint(run.todo or ())].timeout

    async def wait() -> Any:
        try:
            async with asyncio.timeout(timeout) as clock:
                return await awaitable
        except TimeoutError:
            if clock.expired():
                raise HookTimeout from None
            raise

    return portal.run(wait)
