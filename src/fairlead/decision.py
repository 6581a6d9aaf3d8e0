"""The decision: what the engine concluded from all verdicts, and why.

A decision keeps the contributions of all hooks, in chain order, and the resulting control. Everything else that a host
may want to know (the reason, the context for the model, the failures) is a property that follows from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Literal, NamedTuple, Self, TypeVar

import msgspec
from msgspec.structs import replace

from .approvals import Approval
from .errors import HookAborted
from .hook import Hook, Phase
from .lifecycle import EVENTS, BeforeTool, Control, FailurePolicy, Step, StopReason
from .verdict import TEXT_LIMIT, Cause, HookVerdict, Verdict, clean, cut_warnings, fold

RunOutcome = Literal[
    "verdict", "none", "error", "timeout", "malformed", "cancelled", "quarantined", "detached", "dropped"
]
FailureKind = Literal["error", "timeout", "malformed", "quarantined"]


class Context(str):
    """A text for the model. `hook` is the name of the hook that added it."""

    __slots__ = ("hook",)
    hook: str

    def __new__(cls, text: str, hook: str) -> Self:
        self = super().__new__(cls, text)
        self.hook = hook
        return self

    @property
    def signed(self) -> str:
        """The text as the model reads it, after the name of the hook."""
        return f"[{self.hook}] {self}"


class Failure(msgspec.Struct, frozen=True):
    """A hook that failed. `control` is what its failure policy led to, None if the agent goes on.

    `policy` is "verdict" where `on_failure` is a verdict.
    `traceback` is that of a Python hook that raised: its own frames only, redacted, at most 4 KiB.
    """

    hook: str
    event: str
    kind: FailureKind
    error: str
    policy: FailurePolicy | Literal["verdict"] | None = None
    control: Control | None = None
    traceback: str | None = None

    def __str__(self) -> str:
        return f"hook {self.hook!r} failed at {self.event} ({self.kind}): {self.error}"


class Monitored(msgspec.Struct, frozen=True):
    """What a hook in monitor mode would have done."""

    hook: str
    verdict: Verdict
    cause: Cause = "policy"

    @property
    def control(self) -> Control:
        return self.verdict.control

    @property
    def reason(self) -> str | None:
        return self.verdict.reason


class HookApproval(msgspec.Struct, frozen=True):
    """The question of a hook, and the answer to it."""

    hook: str
    question: str | None
    approval: Approval
    note: str | None = None  # a text that is added to every denial of the hook

    @property
    def reason(self) -> str | None:
        reason = self.approval.explain(self.question)
        if self.note is not None and self.approval.answer == "deny" and self.note not in (reason or ""):
            return with_note(reason, self.note)
        return None if reason is None else clean(reason)

    @property
    def signed(self) -> str:
        """The reason as a human reads it among others, after the name of the hook."""
        return f"[{clean(self.hook)}] {self.reason or 'wants a human to decide'}"


def with_note(reason: str | None, note: str, limit: int | None = None) -> str:
    """A reason with the hook's note. A long reason is cut, the note never."""
    room = max((limit or TEXT_LIMIT) - len(note.encode()) - len(" ()"), 0)
    kept = clean(reason or "", limit).encode()[:room].decode(errors="ignore")
    return f"{kept} ({note})" if kept else note


def deciding_approvals(approvals: Sequence[HookApproval]) -> Sequence[HookApproval]:
    """The approvals that decide: the first deny, or all that the host is to ask, or all."""
    refused = [one for one in approvals if one.approval.answer == "deny"]
    for_host = [one for one in approvals if one.approval.answer == "ask"]
    return refused[:1] or for_host or approvals


class HookRun(NamedTuple):
    """One start of one hook, and its one end. `duration` is in seconds.

    `details` are facts from its runner, such as the exit code and the stderr of a command.
    """

    hook: str
    phase: Phase
    outcome: RunOutcome
    duration: float
    details: dict[str, Any] | None = None


HookCall = tuple[Callable[..., Any], bool]
"""A hook as the engine's loop needs it: what to call, and whether the call must be awaited."""


class HookSequence(msgspec.Struct, frozen=True):
    """Hooks that run one after another, and their calls, which are all that the loop needs."""

    calls: tuple[HookCall, ...] = ()
    hooks: tuple[Hook, ...] = ()


RunEntry = float | tuple[RunOutcome, float, dict[str, Any] | None] | HookSequence
"""An entry of the run log: a sequence of hooks that is to run, then the end of each hook that was started.

A float is the duration of a hook that returned None, the most common end.
"""


class Unsupported(msgspec.Struct, frozen=True):
    """A part of the decision that its host cannot carry out."""

    part: str


_FIELD_OF = {"command": "args", "paths": "args", "url": "args", "prepend_input": "input"}
"""The field of a step that changes, where a verdict has another name for a part of it."""

Contribution = HookVerdict | Failure | Monitored | HookApproval | Unsupported
S = TypeVar("S", bound=Step)
K = TypeVar("K")


class Decision(msgspec.Struct, Generic[S], frozen=True, repr_omit_defaults=True):
    """The result of one dispatch. `str()` gives the control, the reason and what each hook did."""

    step: S
    original: S
    control: Control = "proceed"
    contributions: tuple[Contribution, ...] = ()
    run_log: tuple[RunEntry, ...] = ()  # cheap to write; `runs` reads it
    effect: Control | None = None  # what the host carries out, if not `control`: see `effective`
    unanswered: str | None = None  # why the host did not get the decision in time; `effect` is what it did instead

    # --- what it says -----------------------------------------------------------------------

    @property
    def event(self) -> str:
        return self.step.event

    @property
    def proceeds(self) -> bool:
        """True when nothing stands in the way: the control is proceed or allow."""
        return self.control == "proceed" or self.control == "allow"

    @property
    def effective(self) -> Control:
        """What the host carries out: the control, unless the host could only do something else."""
        return self.control if self.effect is None else self.effect

    def with_effect(self, carried_out: Control, unanswered: str | None = None) -> Self:
        """A copy of the decision with what the host carries out, or has done without an answer."""
        effect = None if carried_out == self.control else carried_out
        return replace(self, effect=effect, unanswered=unanswered)

    @property
    def reason(self) -> str | None:
        """The reason, for the model or the user. Of several questions, each comes after the name of its hook."""
        if answers := deciding_approvals(self.approvals):
            return answers[0].reason if len(answers) == 1 else "\n".join(one.signed for one in answers)
        return None if self._winner is None else _reason_of(self._winner)

    @property
    def hook(self) -> str | None:
        """The hook that decided."""
        if answers := deciding_approvals(self.approvals):
            return answers[0].hook
        return None if self._winner is None else self._winner.hook.name

    @property
    def cause(self) -> Cause | None:
        """Whether a policy, the failure of a hook or a human decided."""
        if self.approvals:
            return "approval"
        return None if self._winner is None else self._winner.cause

    @property
    def denied(self) -> bool:
        """True when the operation is refused, also when a stop takes the decision further."""
        return self.control == "deny" or any(verdict.control == "deny" for verdict in self._verdicts)

    @property
    def stop_reason(self) -> StopReason | None:
        if self.control != "stop" or self._winner is None:
            return None
        return self._winner.verdict.stop_reason or "end_turn"

    @property
    def changed(self) -> tuple[str, ...]:
        """The fields in which the step differs from the original."""
        if self.step is self.original:
            return ()
        return tuple(name for name in self.step.__struct_fields__ if self._differs(name))

    @property
    def aborts(self) -> bool:
        """True when the request fails, or the session does not start: an abort, or a deny where a veto is an abort."""
        return self.control == "abort" or (self.denied and EVENTS[self.event].veto == "abort")

    @property
    def unchanged(self) -> tuple[str, ...]:
        """The fields that hooks wanted to change and that are as they were: the change had no effect."""
        changed = self.changed
        wanted = (_FIELD_OF.get(name, name) for verdict in self._verdicts for name in verdict.changes)
        return tuple(dict.fromkeys(name for name in wanted if name not in changed))

    def raise_for_abort(self) -> None:
        """Raise `HookAborted` if the decision `aborts`. Its cause is what the hook raised, if anything."""
        if not self.contributions or not self.aborts:
            return
        refusal = fold([one for one in self.verdicts if one.verdict.control != "stop"])  # a stop is above a deny
        if refusal is not None:
            name = refusal.hook.name if refusal.verdict.name is None else refusal.verdict.name
            raise HookAborted(name, _reason_of(refusal)) from refusal.error

    # --- all contributions ------------------------------------------------------------------

    @property
    def verdicts(self) -> tuple[HookVerdict, ...]:
        """The verdicts that count, in chain order."""
        return self._of(HookVerdict)

    @property
    def context(self) -> tuple[Context, ...]:
        """Texts for the model."""
        return tuple(_contexts(self.verdicts))

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of hooks, and the failures that changed nothing."""
        warnings = [clean(text, one.hook.text_limit) for one in self.verdicts for text in one.verdict.warnings]
        warnings += (warning for one in self.verdicts for warning in cut_warnings(one.hook, one.verdict))
        if isinstance(self.step, BeforeTool) and self.step.kind == "unknown":
            warnings.append(unknown_kind(self.step.tool))
        if not self.contributions:
            return tuple(warnings)
        return (*warnings, *(str(failure) for failure in self.failures if failure.control is None))

    @property
    def failures(self) -> tuple[Failure, ...]:
        return self._of(Failure)

    @property
    def monitored(self) -> tuple[Monitored, ...]:
        """What hooks in monitor mode would have done."""
        return self._of(Monitored)

    @property
    def approval(self) -> Approval | None:
        """The answer of a human, if there is one. Of several, the one that decides: a deny, if there is one."""
        return next((one.approval for one in deciding_approvals(self.approvals)), None)

    @property
    def approvals(self) -> tuple[HookApproval, ...]:
        """Every question, with its answer."""
        return self._of(HookApproval)

    @property
    def questions(self) -> tuple[tuple[str, str | None], ...]:
        """The questions that the host is to ask, if the control is ask: (hook, question) pairs."""
        for_host = (one for one in deciding_approvals(self.approvals) if one.approval.answer == "ask")
        return tuple(dict.fromkeys((one.hook, one.question) for one in for_host))

    @property
    def unsupported(self) -> tuple[str, ...]:
        """The parts of the decision that the host cannot carry out."""
        return tuple(what.part for what in self._of(Unsupported))

    @property
    def metadata(self) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for verdict in self._verdicts:
            merged |= verdict.metadata or {}
        return merged

    @property
    def runs(self) -> tuple[HookRun, ...]:
        """One per started hook. Empty unless recording is on."""
        return tuple(HookRun(*row) for row in run_rows(self.run_log))

    @property
    def _verdicts(self) -> Iterator[Verdict]:
        return (hook_verdict.verdict for hook_verdict in self.verdicts)

    def _of(self, kind: type[K]) -> tuple[K, ...]:
        """The contributions of one kind. Most decisions have none at all."""
        return tuple(what for what in self.contributions if isinstance(what, kind)) if self.contributions else ()

    @property
    def _winner(self) -> HookVerdict | None:
        return fold(self.verdicts) if self.contributions else None

    def _differs(self, name: str) -> bool:
        new, old = getattr(self.step, name), getattr(self.original, name)
        if new is old:
            return False
        try:
            return bool(new != old)
        except Exception:  # some values, such as arrays, cannot be compared
            return True

    def __str__(self) -> str:
        from .rendering import render  # few decisions are shown

        return "\n".join(render(self))

    def __repr__(self) -> str:
        from .rendering import headline

        return f"<Decision on {headline(self)}>".replace("\n", " ")


def _reason_of(one: HookVerdict) -> str | None:
    reason = one.verdict.reason
    return None if reason is None else clean(reason, one.hook.text_limit)


def unknown_kind(tool: str) -> str:
    """The warning about a tool that no table knows."""
    return clean(
        f"tool {tool!r} is of unknown kind; classify it with [[tool]] in fairlead.toml, or hooks.tools.add(...)"
    )


def run_rows(run_log: tuple[RunEntry, ...]) -> list[tuple[Any, ...]]:
    """The fields of each `HookRun`; without its details, if there are none."""
    rows: list[tuple[Any, ...]] = []
    hooks: Iterator[Hook] = iter(())
    for mark in run_log:
        if mark.__class__ is HookSequence:
            hooks = iter(mark.hooks)
            continue
        hook = next(hooks)
        if mark.__class__ is float:  # it returned None
            rows.append((hook.name, hook.phase, "none", mark))
        else:
            outcome, duration, details = mark  # type: ignore[misc]
            row = (hook.name, hook.phase, outcome, duration)
            rows.append(row if details is None else (*row, details))
    return rows


def _contexts(verdicts: tuple[HookVerdict, ...]) -> Iterator[Context]:
    for hook_verdict in verdicts:
        verdict = hook_verdict.verdict
        texts = verdict.context
        if verdict.control == "extend" and verdict.reason:
            texts = (verdict.reason, *texts)  # the feedback is the next user message
        for text in texts:
            yield Context(clean(text, hook_verdict.hook.text_limit), hook_verdict.hook.name)
