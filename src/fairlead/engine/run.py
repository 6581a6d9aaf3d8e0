"""The state of one dispatch, and its rules: what a hook's end means, what runs next, what is decided."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from operator import length_hint
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import msgspec
from msgspec.structs import replace

from ..decision import (
    Contribution,
    Decision,
    Failure,
    FailureKind,
    HookApproval,
    HookCall,
    HookSequence,
    Monitored,
    RunEntry,
    RunOutcome,
    deciding_approvals,
    with_note,
)
from ..errors import HookTimeout, MalformedVerdict, Quarantined, Unenforceable, describe
from ..hook import Hook, RunnerResult
from ..lifecycle import Control, FailurePolicy, Step
from ..verdict import ENDING, HookVerdict, Verdict, apply, check, clean, cut_warnings, fold
from .chain import Chain
from .deadlines import Deadline

if TYPE_CHECKING:
    from concurrent.futures import Future

    from ..session import Session

Details = dict[str, Any] | None
EffectFn = Callable[[Decision[Any]], Decision[Any]]
"""Sets the effect of a decision: what the host carries out. It leaves decisions on other steps as they are."""

active_session: ContextVar[Session | None] = ContextVar("fairlead_session", default=None)
"""The session whose step is being dispatched."""
active_effect: ContextVar[EffectFn | None] = ContextVar("fairlead_effect", default=None)
"""Sets the effect for the host of that step, where the session's capabilities do not say all of it."""


class Run(msgspec.Struct):
    """The state of one dispatch. It exists once a hook is timed, suspends, fails or returns a verdict."""

    chain: Chain
    original: Step
    step: Step
    sequence: HookSequence
    remaining: Iterator[HookCall] | None  # its calls that are left, which also tells which hook is running
    clock: list[float]  # when the current hook started, and the first; a list is the fastest to set for every hook
    run_log: list[RunEntry] | None = None  # what is recorded: see `Decision.runs`
    deadline: Deadline | None = None  # of the current hook, once it has suspended
    suspended_hook: Hook | None = None  # ... which is this one
    contributions: list[tuple[Hook, Contribution]] = []
    has_question: bool = False  # some hook returned `ask`
    gates_skipped: bool = False  # a transform denied or aborted, so no gate runs
    sync: bool = False
    is_abandoning: bool = False  # the current hook is being closed
    decision: Decision[Any] | None = None
    pending_write: Future[None] | None = None  # ends when the sink has the decision

    # --- how a hook ended -------------------------------------------------------------------

    def on_hook_end(self, result: Any, error: BaseException | None) -> bool:
        """Process what the current hook returned or raised. True if `remaining` is a new iterator."""
        now, deadline = monotonic(), self.deadline
        if deadline is None:
            hook = self.current_hook
            duration = now - self.clock[0]
            late = duration > hook.limit
        else:
            self.deadline, hook = None, self.suspended_hook or self.sequence.hooks[-1]
            duration = now - deadline.started
            late = deadline.cancels > 0 or duration > hook.limit
            if deadline.task is not None and (deadline.release(error) or deadline.outer):
                self._on_caller_cancelled(hook, duration, error)
        details: Details = None
        if result is not None and isinstance(result, RunnerResult):
            result, details = result.verdict, result.details
        if result is not None or error is not None or late:
            try:
                return self.on_result(hook, result, error, duration, late, details)
            finally:
                self.clock[0] = monotonic()  # processing a result does not count against the next hook
        if hook.quarantine is not None:
            hook.quarantine.reset()
        self._log_run("none", duration, details)
        self.clock[0] = now
        return False

    @property
    def current_hook(self) -> Hook:
        """The hook that is running or has just ended, while it has not suspended."""
        return self.sequence.hooks[-1 - length_hint(self.remaining or ())]

    def on_result(
        self, hook: Hook, result: Any, error: BaseException | None, duration: float, late: bool, details: Details
    ) -> bool:
        """Process a verdict, an error or a time-out of a hook. True if `remaining` is a new iterator."""
        if (late or isinstance(error, HookTimeout)) and hook.timeout is not None:
            return self._on_failure(hook, "timeout", f"no answer within {hook.timeout:g} s", duration, details)
        if error is not None:
            kind = _FAILURE_KINDS.get(type(error), "error")
            return self._on_failure(hook, kind, describe(error), duration, getattr(error, "details", None), error)
        try:
            return self._on_verdict(hook, result, duration, details)
        except MalformedVerdict as problem:
            return self._on_failure(hook, "malformed", str(problem), duration, details)
        except Exception as problem:  # raised by a mapping or a value that the hook returned
            return self._on_failure(hook, "malformed", describe(problem), duration, details, problem)

    def fail_current(self, error: BaseException) -> None:
        """Fail the hook of a run of one, whose task ended without the hook returning or raising."""
        if self.run_log and isinstance(self.run_log[-1], tuple):
            self.run_log.pop()  # one start, one end
        self._on_failure(self.sequence.hooks[-1], "error", describe(error), 0.0, None, error)

    def _on_caller_cancelled(self, hook: Hook, duration: float, error: BaseException | None) -> NoReturn:
        """Pass the caller's cancellation on, even where the hook swallowed it."""
        self._log_run("cancelled", duration)
        if hook.quarantine is not None:
            hook.quarantine.cancelled()
        raise error if isinstance(error, CancelledError) else CancelledError

    def _log_run(self, outcome: RunOutcome, duration: float, details: Details = None) -> None:
        if self.run_log is not None:
            self.run_log.append((outcome, duration, details))

    def _on_verdict(self, hook: Hook, result: Any, duration: float, details: Details) -> bool:
        """Check a verdict, apply it whole or not at all, and keep it."""
        if hook.phase == "observe":
            raise MalformedVerdict("verdict", "an observer only watches; use phase='gate' or 'transform'")
        chain, transforms = self.chain, hook.phase == "transform"
        verdict = check(result, self.step, chain.event, may_change=transforms, may_loosen=hook.layer != "project")
        step = apply(self.step, verdict.changes, chain.table.hooks.tools)
        self._log_run("verdict", duration, details)
        if hook.quarantine is not None:
            hook.quarantine.reset()
        if not self._is_enforced(hook):
            self.contributions.append((hook, Monitored(hook.name, verdict)))
            return False
        if hook.note is not None and verdict.control in _WITH_NOTE:
            reason = with_note(verdict.reason, hook.note, hook.text_limit)
            warnings = (*verdict.warnings, *cut_warnings(hook, Verdict(reason=verdict.reason)))
            verdict = replace(verdict, reason=reason, warnings=warnings)
        return self._take(hook, HookVerdict(hook, verdict), step)

    def _take(self, hook: Hook, hook_verdict: HookVerdict, step: Step) -> bool:
        """Keep a verdict that counts, and the step with its changes. True if `remaining` is a new iterator."""
        verdict = hook_verdict.verdict
        self.contributions.append((hook, hook_verdict))
        self.has_question = self.has_question or verdict.control == "ask"
        if hook.phase != "transform":
            return False
        changed, self.step = step is not self.step, step
        switched = changed and self._switch_chain()
        if verdict.control in ENDING or verdict.control == "skip_rest":
            return self._end_transforms(verdict.control)
        return switched

    def _on_failure(
        self, hook: Hook, kind: FailureKind, error: str, duration: float, details: Details,
        raised: BaseException | None = None,
    ) -> bool:  # fmt: skip
        """Apply the failure policy of a hook that broke."""
        self._log_run(kind, duration, details)
        if hook.quarantine is not None and kind != "quarantined":
            hook.quarantine.failed()
        policy, verdict, step = self._failure_policy(hook)
        control = None if verdict is None or verdict.control == "proceed" else verdict.control
        # Only a failure should pay for these imports. Its text may hold a secret.
        from ..redaction.redactor import redact_text
        from .tracebacks import find_traceback, log_failure

        error = clean(redact_text(error)) if hook.note is None else with_note(redact_text(error), hook.note)
        traceback = None if raised is None else find_traceback(hook, raised)
        event = self.chain.event.name
        failure = Failure(hook.name, event, kind, error, policy, control, traceback and traceback.text)
        log_failure(failure, self.step.agent, traceback)
        if verdict is not None and verdict.reason is None:
            verdict = replace(verdict, reason=str(failure))
        if not self._is_enforced(hook):
            verdict = verdict or Verdict(reason=str(failure))
            self.contributions.append((hook, Monitored(hook.name, verdict, "failure")))
            return False
        self.contributions.append((hook, failure))
        if verdict is None:
            return False
        aborts = control == "abort" or (control == "deny" and self.chain.event.veto == "abort")
        cause = raised if aborts else None  # an exception keeps its frames alive, and all values in them
        return self._take(hook, HookVerdict(hook, verdict, "failure", cause), step)

    def _failure_policy(self, hook: Hook) -> tuple[FailurePolicy | Literal["verdict"] | None, Verdict | None, Step]:
        """The name of a hook's failure policy, the verdict that follows from it here, and the step with its changes."""
        event, policy = self.chain.event, hook.on_failure
        if hook.phase == "observe":
            return None, None, self.step
        if isinstance(policy, Verdict):
            may_change = hook.phase == "transform"
            try:
                verdict = check(policy, self.step, event, may_change=may_change, may_loosen=hook.layer != "project")
                return "verdict", verdict, apply(self.step, verdict.changes, self.chain.table.hooks.tools)
            except MalformedVerdict:  # this step does not take it, as in a retry of what was not executed
                policy = "closed"
        control = event.control_on_failure(policy)
        return policy, None if control is None else Verdict(control), self.step

    def _is_enforced(self, hook: Hook) -> bool:
        return hook.enforce and (hook.locked or self.chain.table.hooks.enforcing)

    # --- what runs next ---------------------------------------------------------------------

    def _run_next(self, sequence: HookSequence) -> None:
        """Make these the hooks that the loop runs next."""
        if self.sync:  # there is no loop here: what a hook awaits is awaited on the private loop
            sequence = HookSequence(tuple((call, False) for call, _ in sequence.calls), sequence.hooks)
        self.sequence = sequence
        self.remaining = iter(sequence.calls)
        if self.run_log is not None:
            self.run_log.append(sequence)

    def _end_transforms(self, control: Control) -> bool:
        """Go on with the gates, or without them after a deny or an abort."""
        self.gates_skipped = control in ("deny", "abort")
        self._run_next(_NO_HOOKS if self.gates_skipped else self.chain.gates)
        return True

    def _switch_chain(self) -> bool:
        """Let the right gates judge a changed step: a change may turn a call into one of another kind."""
        chain = self.chain.table.chain_for(self.step) or self.chain.table.empty_chain(self.chain.event)
        if chain is self.chain or self.remaining is None:
            return False
        calls = tuple(self.remaining)
        hooks = self.sequence.hooks[len(self.sequence.hooks) - len(calls) :]
        count = sum(hook.phase == "transform" for hook in hooks)
        self.chain = chain
        self._run_next(HookSequence((*calls[:count], *chain.gates.calls), (*hooks[:count], *chain.gates.hooks)))
        return True

    # --- the decision -----------------------------------------------------------------------

    @property
    def verdicts(self) -> list[HookVerdict]:
        """The verdicts so far, those of failures included."""
        return [part for _, part in self.contributions if isinstance(part, HookVerdict)]

    @property
    def needs_approval(self) -> bool:
        """True while a human must decide and has not yet."""
        winner = fold(self.verdicts) if self.has_question else None
        return winner is not None and winner.verdict.control == "ask" and not self._approvals

    @property
    def _approvals(self) -> list[HookApproval]:
        return [part for _, part in self.contributions if isinstance(part, HookApproval)]

    @property
    def is_unfinished(self) -> bool:
        """True when the sequence was not all: a hook asks, or a change led to a chain with more phases."""
        return self.decision is None and (not self.chain.is_sequential or self.needs_approval)

    def start_observers(self) -> None:
        """Make the decision, queue the detached observers and let the loop run the others."""
        chain, decision = self.chain, self._decide()
        self.decision = decision
        for hook in chain.detached:
            self._run_next(HookSequence((), (hook,)))
            self._log_run(chain.table.hooks.detach(self, hook, decision), 0.0)
        self._run_next(with_decision(chain.observers, decision))
        self.clock[0] = monotonic()

    def conclude(self) -> Decision[Any]:
        """Give the finished decision: recorded, with the effect that the host can carry out."""
        chain, decision = self.chain, self.decision
        run_log = () if self.run_log is None else tuple(self.run_log)
        if decision is None and not self.contributions:
            decision = Decision(self.step, self.original, "proceed", (), run_log)
        elif decision is None:
            decision = self._decide(run_log)
        elif run_log or len(self.contributions) != len(decision.contributions):
            # The observers got the decision before their own runs and failures were in it.
            decision = replace(decision, contributions=self._parts, run_log=run_log)
        try:
            if self.contributions and (session := active_session.get()) is not None:
                decision = session.apply_capabilities(decision)
            if (set_effect := active_effect.get()) is not None:
                decision = set_effect(decision)
        except Unenforceable:  # the error ends the operation
            decision = replace(decision, effect="abort")
            raise
        finally:  # a decision that the host cannot carry out is recorded, too
            if chain.sink is not None:
                self.pending_write = chain.sink(decision, self.clock[1])
        return decision

    def record_cancelled(self) -> None:
        """Record a dispatch that the caller cancelled, so that it has no decision."""
        if self.chain.sink is not None:
            cancelled = Decision(self.step, self.original, "abort", self._parts, tuple(self.run_log or ()))
            with suppress(Exception):  # an error here must not replace the cancellation
                self.chain.sink(cancelled, self.clock[1])

    def _decide(self, run_log: tuple[RunEntry, ...] = ()) -> Decision[Any]:
        winner = fold(self.verdicts)
        control: Control = "proceed" if winner is None else winner.verdict.control
        if self.has_question and (approvals := deciding_approvals(self._approvals)):
            control = approvals[0].approval.answer
        return Decision(self.step, self.original, control, self._parts, run_log)

    @property
    def _parts(self) -> tuple[Contribution, ...]:
        return tuple(part for _, part in self.contributions)


_NO_HOOKS = HookSequence()
_WITH_NOTE = ("deny", "ask", "stop", "abort")
_FAILURE_KINDS: dict[type, FailureKind] = {Quarantined: "quarantined", MalformedVerdict: "malformed"}


def start_run(
    chain: Chain, step: Step, remaining: Iterator[HookCall], cell: list[Run] | None = None, started: float | None = None
) -> Run:
    """Start to keep the state of a dispatch whose hooks are called up to `remaining`, in `cell` if there is one."""
    run_log: list[RunEntry] | None = [chain.sequence] if chain.records_runs else None
    now = started or monotonic()
    run = Run(chain, step, step, chain.sequence, remaining, [now, now], run_log)
    if cell is not None:
        cell.append(run)
    return run


def with_decision(observers: HookSequence, decision: Decision[Any]) -> HookSequence:
    """The observers, each called with the decision if it takes one."""

    def bind(call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda step: call(step, decision)

    calls = tuple(
        (bind(call) if hook.wants_decision else call, is_async)
        for (call, is_async), hook in zip(observers.calls, observers.hooks, strict=True)
    )
    return HookSequence(calls, observers.hooks)
