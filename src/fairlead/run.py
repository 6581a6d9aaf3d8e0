"""Where one dispatch stands, and the rules: what a hook's end means, what runs next, what is decided."""

from __future__ import annotations

import math
from asyncio import CancelledError
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from operator import length_hint
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec
from msgspec.structs import replace

from .deadlines import Deadline
from .decision import (
    Call,
    Decision,
    Failure,
    FailureKind,
    HookApproval,
    Mark,
    Monitored,
    RunOutcome,
    Said,
    Stretch,
    deciding,
    noted,
)
from .errors import HookTimeout, MalformedVerdict, Quarantined, Unenforceable, describe
from .hook import Hook, Ran
from .lifecycle import Control, Event, Step
from .verdict import ENDING, Opinion, Verdict, apply, check, clean, fold

if TYPE_CHECKING:
    from concurrent.futures import Future

    from .session import Session
    from .table import Table

Details = dict[str, Any] | None
Carry = Callable[[Decision[Any]], Decision[Any]]
"""Gives a decision its effect: what the host carries out. A decision on another step than the host's stays as it is."""
Keep = Callable[[Decision[Any], float], "Future[None] | None"]
"""Takes in a finished decision and when it was begun. What it returns is waited for before the decision is given."""

working: ContextVar[Session | None] = ContextVar("fairlead_session", default=None)
"""Whose step is being dispatched. Its host has the last word on a decision before it is journaled."""
carrying: ContextVar[Carry | None] = ContextVar("fairlead_carrying", default=None)
"""What the host of the step that is being dispatched carries out, where a session's capabilities do not tell."""


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
    keep: Keep | None = None
    patience: float = math.inf  # the shortest time-out; less than none if some hook must always be settled
    always_timed: bool = False
    lone: bool = False  # one hook, so that the chain's clock is the hook's
    timed: bool = True  # each hook is, until the chain has been calm for a while
    calm: int = 0  # timed dispatches since a hook last suspended


class Run(msgspec.Struct):
    """Where one dispatch stands, once there is something to keep track of. Its hooks are timed."""

    chain: Chain
    original: Step
    step: Step
    stretch: Stretch
    todo: Iterator[Call] | None  # its calls; what is left of them tells which hook is running
    clock: list[float]  # when the current hook started, and the first; a list, because it is set for every hook
    marks: list[Mark] | None = None  # what is recorded: see `Decision.runs`
    deadline: Deadline | None = None  # of the current hook, once it has suspended
    parked: Hook | None = None  # ... which is this one
    said: list[tuple[Hook, Said]] = []
    asked: bool = False  # somebody wants a human to decide
    barred: bool = False  # a transform denied or aborted, so the gates are not asked
    sync: bool = False
    closing: bool = False  # the current hook is being abandoned
    decision: Decision[Any] | None = None
    kept: Future[None] | None = None  # the journal is not done with the decision yet

    # --- how a hook ended -------------------------------------------------------------------

    def settle(self, said: Any, error: BaseException | None) -> bool:
        """Take in how the current hook ended. True if the loop must go on with a new `todo`."""
        now, deadline = monotonic(), self.deadline
        if deadline is None:
            hook = self.stretch.hooks[-1 - length_hint(self.todo or ())]
            took = now - self.clock[0]
            late = took > hook.limit
        else:
            self.deadline, hook = None, self.parked or self.stretch.hooks[-1]
            took = now - deadline.started
            late = deadline.cancels > 0 or took > hook.limit
            if deadline.task is not None and (deadline.release(error) or deadline.outer):
                self._cancel(hook, took, error)
        details: Details = None
        if said is not None and isinstance(said, Ran):
            said, details = said.said, said.details
        if said is not None or error is not None or late:
            try:
                return self._heed(hook, said, error, took, late, details)
            finally:
                self.clock[0] = monotonic()  # what it takes to heed a hook is nobody's time
        if hook.quarantine is not None:
            hook.quarantine.reset()
        if self.marks is not None:
            self.marks.append(("none", took, details))
        self.clock[0] = now
        return False

    def _heed(
        self, hook: Hook, said: Any, error: BaseException | None, took: float, late: bool, details: Details
    ) -> bool:
        """A hook said something, failed or was late."""
        if (late or isinstance(error, HookTimeout)) and hook.timeout is not None:
            return self._fail(hook, "timeout", f"no answer within {hook.timeout:g} s", took, details)
        if error is not None:
            kind = _FAILURES.get(type(error), "error")
            return self._fail(hook, kind, describe(error), took, getattr(error, "details", None), error)
        try:
            return self._take(hook, said, took, details)
        except MalformedVerdict as problem:
            return self._fail(hook, "malformed", str(problem), took, details)
        except Exception as problem:  # from a mapping, a value or a field of somebody else's making
            return self._fail(hook, "malformed", describe(problem), took, details, problem)

    def give_in(self, error: BaseException) -> None:
        """A hook's task ended in some other way than by the hook's returning or raising."""
        self.deadline = None
        if self.marks and isinstance(self.marks[-1], tuple):
            self.marks.pop()  # one start, one end
        self._fail(self.stretch.hooks[-1], "error", describe(error), 0.0, None, error)

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
        if hook.note is not None and verdict.control in _DENIALS:
            verdict = replace(verdict, reason=noted(verdict.reason, hook.note))
        self.said.append((hook, Opinion(hook, verdict)))
        self.asked = self.asked or verdict.control == "ask"
        if not transforms:
            return False
        changed, self.step = step is not self.step, step
        moved = changed and self._follow()
        if verdict.control in ENDING or verdict.control == "skip_rest":
            return self._end_transforms(verdict.control)
        return moved

    def _fail(
        self, hook: Hook, kind: FailureKind, error: str, took: float, details: Details,
        raised: BaseException | None = None,
    ) -> bool:  # fmt: skip
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
        from .redaction import redact_text  # a failure may show anything, and only a failure should pay for it
        from .tracebacks import keep_traceback

        error = clean(redact_text(error)) if hook.note is None else noted(redact_text(error), hook.note)
        traceback = None if raised is None else keep_traceback(hook, raised)
        failure = Failure(hook.name, self.chain.event.name, kind, error, policy, control, traceback)
        if not self._enforced(hook):
            self.said.append((hook, Monitored(hook.name, Verdict(control or "proceed", str(failure)), "failure")))
            return False
        self.said.append((hook, failure))
        if control is None:
            return False
        cause = raised if control == "abort" else None  # an error holds on to its frames, and to all that is in them
        self.said.append((hook, Opinion(hook, Verdict(control, str(failure)), "failure", cause)))
        return hook.phase == "transform" and self._end_transforms(control)

    def _enforced(self, hook: Hook) -> bool:
        return hook.enforce and (hook.locked or self.chain.table.hooks.enforcing)

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
        return winner is not None and winner.verdict.control == "ask" and not self._approvals

    @property
    def _approvals(self) -> list[HookApproval]:
        return [what for _, what in self.said if isinstance(what, HookApproval)]

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
        self._next(watching(chain.observers, decision))
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
        try:
            if self.said and (session := working.get()) is not None:
                decision = session.last_word(decision)
            if (carry := carrying.get()) is not None:
                decision = carry(decision)
        except Unenforceable:  # which ends the operation
            decision = replace(decision, effect="abort")
            raise
        finally:  # what a host cannot carry out is written down, too
            if chain.keep is not None:
                self.kept = chain.keep(decision, self.clock[1])
        return decision

    def give_up(self) -> None:
        """The caller was cancelled: there is no decision, but there is something to write down."""
        if self.chain.keep is not None:
            said, marks = tuple(what for _, what in self.said), tuple(self.marks or ())
            with suppress(Exception):  # which must not take the place of the cancellation
                self.chain.keep(Decision(self.step, self.original, "abort", said, marks), self.clock[1])

    def _decide(self, marks: tuple[Mark, ...] = ()) -> Decision[Any]:
        winner, answers = fold(self.verdicts), deciding(self._approvals) if self.asked else ()
        control: Control = "proceed" if winner is None else winner.verdict.control
        if answers:
            control = answers[0].approval.answer
        return Decision(self.step, self.original, control, tuple(what for _, what in self.said), marks)


_NOTHING = Stretch()
_DENIALS = ("deny", "ask", "stop", "abort")
_FAILURES: dict[type, FailureKind] = {Quarantined: "quarantined", MalformedVerdict: "malformed"}


def begin(chain: Chain, step: Step, todo: Iterator[Call], cell: list[Run], began: float | None) -> Run:
    """Start keeping track of a dispatch that is at `todo` in its chain."""
    marks: list[Mark] | None = [chain.stretch] if chain.record else None
    now = began or monotonic()
    run = Run(chain, step, step, chain.stretch, todo, [now, now], marks)
    cell.append(run)
    return run


def watching(observers: Stretch, decision: Decision[Any]) -> Stretch:
    """The observers, with the decision in the hands of those who want it."""

    def showing(call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda step: call(step, decision)

    calls = tuple(
        (showing(call) if hook.wants_decision else call, is_async)
        for (call, is_async), hook in zip(observers.calls, observers.hooks, strict=True)
    )
    return Stretch(calls, observers.hooks)
