"""The decision: what the engine concluded from all verdicts, and how it got there.

A decision keeps what was said, in chain order, and whose word counts. Everything else a host may
want to know (the reason, the context for the model, who failed) is read off that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Literal, NamedTuple, Self, TypeVar

import msgspec
from msgspec.structs import replace

from .approvals import Approval
from .errors import HookAborted
from .frozen import thaw
from .hook import FailurePolicy, Hook, Phase
from .lifecycle import BeforeTool, Control, Step, StopReason
from .verdict import TEXT_LIMIT, Cause, Opinion, Verdict, clean, fold

RunOutcome = Literal[
    "verdict", "none", "error", "timeout", "malformed", "cancelled", "quarantined", "detached", "dropped"
]
FailureKind = Literal["error", "timeout", "malformed", "quarantined"]


class Context(str):
    """A text for the model. `hook` says who added it."""

    __slots__ = ("hook",)
    hook: str

    def __new__(cls, text: str, hook: str) -> Self:
        self = super().__new__(cls, text)
        self.hook = hook
        return self

    @property
    def signed(self) -> str:
        """As the model reads it: who says it comes first."""
        return f"[{self.hook}] {self}"


class Failure(msgspec.Struct, frozen=True):
    """A hook that broke. `control` is what its policy made of that, None if the loop goes on.

    `traceback` is there for a Python hook that raised: from the hook on, redacted, and not longer than 4 KiB.
    """

    hook: str
    event: str
    kind: FailureKind
    error: str
    policy: FailurePolicy | None = None
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
    """A question that a hook asks, and the answer to it."""

    hook: str
    question: str | None
    approval: Approval
    note: str | None = None  # what every denial of the hook says, too

    @property
    def reason(self) -> str | None:
        reason = self.approval.explain(self.question)
        if self.note is not None and self.approval.answer == "deny" and self.note not in (reason or ""):
            return noted(reason, self.note)
        return None if reason is None else clean(reason)

    @property
    def signed(self) -> str:
        """As a human reads it beside others: who asks comes first."""
        return f"[{clean(self.hook)}] {self.reason or 'wants a human to decide'}"


def noted(reason: str | None, note: str) -> str:
    """A reason with what the hook has to say beside it, which is never what is cut off."""
    room = TEXT_LIMIT - len(note.encode()) - len(" ()")
    kept = clean(reason or "").encode()[:room].decode(errors="ignore")
    return f"{kept} ({note})" if kept else note


def deciding(approvals: Sequence[HookApproval]) -> Sequence[HookApproval]:
    """The answers that decide: the first refusal, or else all that are left to the host, or else all."""
    refused = [one for one in approvals if one.approval.answer == "deny"]
    left = [one for one in approvals if one.approval.answer == "ask"]
    return refused[:1] or left or approvals


class HookRun(NamedTuple):
    """One start of one hook, and its one end. `duration` is in seconds.

    `details` is what its runner saw: the exit code and the stderr of a command, say.
    """

    hook: str
    phase: Phase
    outcome: RunOutcome
    duration: float
    details: dict[str, Any] | None = None


Call = tuple[Callable[..., Any], bool]
"""A hook as the engine's loop needs it: what to call, and whether the call must be awaited."""


class Stretch(msgspec.Struct, frozen=True):
    """Hooks that run one after another. They stand apart from their calls, which the loop works on."""

    calls: tuple[Call, ...] = ()
    hooks: tuple[Hook, ...] = ()


Mark = float | tuple[RunOutcome, float, dict[str, Any] | None] | Stretch
"""What recording writes down: which hooks are to run, then how each of them ended, as far as they got."""


class Unsupported(msgspec.Struct, frozen=True):
    """A part of the decision that its host has said it cannot carry out."""

    part: str


Said = Opinion | Failure | Monitored | HookApproval | Unsupported
S = TypeVar("S", bound=Step)
K = TypeVar("K")


class Decision(msgspec.Struct, Generic[S], frozen=True, repr_omit_defaults=True):
    """What the engine concluded about one step. `str()` tells the story in a few lines."""

    step: S
    original: S
    control: Control = "proceed"
    said: tuple[Said, ...] = ()
    marks: tuple[Mark, ...] = ()  # cheap to write, and read by `runs`
    effect: Control | None = None  # what the host carries out, where that is something else: see `effective`
    unanswered: str | None = None  # why the host did not get it, and acted by itself: `effect` is what it did

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
        """What its host carries out: the control, unless the host can do only something else."""
        return self.control if self.effect is None else self.effect

    def with_effect(self, carried_out: Control, unanswered: str | None = None) -> Self:
        """The same decision, of which the host carries out this; or has done so, without an answer."""
        effect = None if carried_out == self.control else carried_out
        return replace(self, effect=effect, unanswered=unanswered)

    @property
    def reason(self) -> str | None:
        """Why, for the model or the user to read. Of several questions, each is there, after the name of its hook."""
        if answers := deciding(self.approvals):
            return answers[0].reason if len(answers) == 1 else "\n".join(one.signed for one in answers)
        reason = None if self._winner is None else self._winner.verdict.reason
        return None if reason is None else clean(reason)

    @property
    def hook(self) -> str | None:
        """The hook that decided."""
        if answers := deciding(self.approvals):
            return answers[0].hook
        return None if self._winner is None else self._winner.hook.name

    @property
    def cause(self) -> Cause | None:
        """Whether that was policy, a hook that broke, or a human."""
        if self.approvals:
            return "approval"
        return None if self._winner is None else self._winner.cause

    @property
    def denied(self) -> bool:
        """True when the operation is refused, also when a stop takes the decision further."""
        return self.control == "deny" or any(opinion.verdict.control == "deny" for opinion in self.opinions)

    @property
    def stop_reason(self) -> StopReason | None:
        if self.control != "stop" or self._winner is None:
            return None
        return self._winner.verdict.stop_reason or "end_turn"

    @property
    def changed(self) -> tuple[str, ...]:
        """The fields in which the step differs from how it came."""
        if self.step is self.original:
            return ()
        return tuple(name for name in self.step.__struct_fields__ if self._differs(name))

    def raise_for_abort(self) -> None:
        """Raise `HookAborted` if a hook failed the request. Its cause is what the hook raised, if it did."""
        if self.control == "abort" and self._winner is not None:
            name = self._winner.verdict.name or self._winner.hook.name
            raise HookAborted(name, self.reason) from self._winner.error

    # --- what else was said -----------------------------------------------------------------

    @property
    def opinions(self) -> tuple[Opinion, ...]:
        """The verdicts that count, in chain order, whoever finished first."""
        return self._of(Opinion)

    @property
    def context(self) -> tuple[Context, ...]:
        """Texts for the model."""
        return tuple(_contexts(self.opinions))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What hooks warn of, and the failures that changed nothing."""
        given = [clean(text) for opinion in self.opinions for text in opinion.verdict.warnings]
        if isinstance(self.step, BeforeTool) and self.step.kind == "unknown":
            given.append(unknown_kind(self.step.tool))
        return (*given, *(str(failure) for failure in self.failures if failure.control is None))

    @property
    def failures(self) -> tuple[Failure, ...]:
        return self._of(Failure)

    @property
    def monitored(self) -> tuple[Monitored, ...]:
        """What hooks in monitor mode would have done."""
        return self._of(Monitored)

    @property
    def approval(self) -> Approval | None:
        """A human's answer, if one was asked. Of several, the one that decides: a refusal, if there is one."""
        return next((one.approval for one in deciding(self.approvals)), None)

    @property
    def approvals(self) -> tuple[HookApproval, ...]:
        """The questions that were put, and the answer to each."""
        return self._of(HookApproval)

    @property
    def questions(self) -> tuple[tuple[str, str | None], ...]:
        """What is left to the host to ask, if the control is ask: each hook, and its question."""
        left = (one for one in deciding(self.approvals) if one.approval.answer == "ask")
        return tuple(dict.fromkeys((one.hook, one.question) for one in left))

    @property
    def unsupported(self) -> tuple[str, ...]:
        """What the host cannot carry out of this."""
        return tuple(what.part for what in self._of(Unsupported))

    @property
    def metadata(self) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for opinion in self.opinions:
            merged |= opinion.verdict.metadata or {}
        return merged

    @property
    def runs(self) -> tuple[HookRun, ...]:
        """One per started hook. Empty unless recording is on."""
        return tuple(_runs(self.marks))

    def _of(self, kind: type[K]) -> tuple[K, ...]:
        """What was said of one kind. As a rule nobody has said anything."""
        return tuple(what for what in self.said if isinstance(what, kind)) if self.said else ()

    @property
    def _winner(self) -> Opinion | None:
        return fold(self.opinions) if self.said else None

    def _differs(self, name: str) -> bool:
        new, old = getattr(self.step, name), getattr(self.original, name)
        if new is old:
            return False
        try:
            return bool(new != old)
        except Exception:  # of values that cannot be compared, such as arrays
            return True

    def __str__(self) -> str:
        return "\n".join(_story(self))

    def __repr__(self) -> str:
        return f"<Decision on {_story_line(self)}>".replace("\n", " ")


def unknown_kind(tool: str) -> str:
    """What to say of a tool that no table knows."""
    return clean(
        f"tool {tool!r} is of unknown kind; classify it with [[tool]] in fairlead.toml, or hooks.tools.add(...)"
    )


def _runs(marks: tuple[Mark, ...]) -> Iterator[HookRun]:
    hooks: Iterator[Hook] = iter(())
    for mark in marks:
        if isinstance(mark, Stretch):
            hooks = iter(mark.hooks)
            continue
        hook = next(hooks)
        if isinstance(mark, float):  # it had no opinion, the usual case
            yield HookRun(hook.name, hook.phase, "none", mark)
        else:
            yield HookRun(hook.name, hook.phase, *mark)


def _contexts(opinions: tuple[Opinion, ...]) -> Iterator[Context]:
    for opinion in opinions:
        verdict = opinion.verdict
        texts = verdict.context
        if verdict.control == "extend" and verdict.reason:
            texts = (verdict.reason, *texts)  # the feedback is the next user message
        for text in texts:
            yield Context(clean(text), opinion.hook.name)


# --- telling it to a person ---------------------------------------------------------------------

_DERIVED = ("kind", "target", "safety")


def _story(decision: Decision[Any]) -> Iterator[str]:
    """The conclusion first, then what led to it."""
    yield _story_line(decision)
    for name in decision.changed:
        if name not in _DERIVED:  # those follow from the arguments
            old, new = getattr(decision.original, name), getattr(decision.step, name)
            yield f"  changed      {name}: {_short(old)} -> {_short(new)}"
    for text in decision.context:
        yield f"  context      {_short(text)} (from {text.hook})"
    for warning in decision.warnings:
        yield f"  warning      {warning}"
    for failure in decision.failures:
        if failure.control is not None:
            yield f"  failure      {failure}"
    for seen in decision.monitored:
        yield f"  monitored    {seen.hook} would have said {seen.control}{_because(seen.reason)}"
    for one in decision.approvals:
        yield f"  approval     {one.approval.answer} to {clean(one.hook)}{_because(one.approval.why)}"
    for part in decision.unsupported:
        yield f"  unsupported  {part}"
    if decision.unanswered is not None:
        yield f"  unanswered   {clean(decision.unanswered)}"
    for run in decision.runs:
        yield f"  ran          {run.hook} ({run.phase}): {run.outcome} in {run.duration * 1000:.3f} ms"


def _story_line(decision: Decision[Any]) -> str:
    tool = getattr(decision.original, "tool", None)
    words = [f"{decision.event}{f' {tool}' if tool else ''}:", decision.control]
    if decision.effect is not None:
        words.append(f"(in effect: {decision.effect})")
    if decision.stop_reason:
        words.append(f"({decision.stop_reason})")
    if decision.hook:
        words.append(f"by {decision.hook}")
    if decision.cause and decision.cause != "policy":
        words.append(f"({decision.cause})")
    return clean(" ".join(words)) + _because(decision.reason)


def _because(reason: str | None) -> str:
    return f": {clean(reason)}" if reason else ""


def _short(value: Any) -> str:
    text = repr(str(value)) if isinstance(value, str) else repr(thaw(value))
    return text if len(text) <= 100 else text[:97] + "..."
