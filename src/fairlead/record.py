"""A decision as JSON, and back: what the journal keeps and what the daemon answers.

`tell` writes down what was said, in chain order; `hear` gives a decision that says the same.
Whatever else a decision tells (its reason, its context, who failed) follows from that in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from .approvals import Approval
from .decision import Decision, Failure, HookApproval, HookRun, Mark, Monitored, Said, Stretch, Unsupported
from .errors import FairleadError
from .hook import Hook
from .lifecycle import CONTROLS, Control, Step, event_named
from .verdict import Opinion, Verdict
from .wire import envelope, step_of


class BadRecord(FairleadError):
    """JSON that is not a decision."""


def tell(decision: Decision[Any]) -> dict[str, Any]:
    """A decision, as plain data: the step as it came, what of it changed, what was said, what ran."""
    told: dict[str, Any] = {"step": envelope(decision.original), "control": decision.control}
    left = {name: getattr(decision.step, name) for name in decision.changed}
    if left:
        told["left"] = left
    if decision.said:
        told["said"] = [_tell_said(what) for what in decision.said]
    if decision.effect is not None:
        told["effect"] = decision.effect
    if decision.unanswered is not None:
        told["unanswered"] = decision.unanswered
    runs = decision.runs
    if runs:
        told["runs"] = [run if run.details is not None else run[:4] for run in runs]
    return told


def summary(decision: Decision[Any]) -> dict[str, Any]:
    """What follows from all that, for readers who have no `Decision`."""
    if decision.control == "proceed" and not decision.said and decision.step is decision.original:  # as a rule
        return _NOTHING | {"warnings": decision.warnings, "metadata": {}}
    return {
        "control": decision.control,
        "denied": decision.denied,
        "reason": decision.reason,
        "hook": decision.hook,
        "cause": decision.cause,
        "stop_reason": decision.stop_reason,
        "changed": decision.changed,
        "context": [{"text": str(text), "hook": text.hook} for text in decision.context],
        "warnings": decision.warnings,
        "unsupported": decision.unsupported,
        "metadata": decision.metadata,
    }


_NOTHING: dict[str, Any] = {
    "control": "proceed", "denied": False, "reason": None, "hook": None, "cause": None, "stop_reason": None,
    "changed": (), "context": (), "warnings": (), "unsupported": (), "metadata": {},
}  # fmt: skip
"""The summary of a decision on which nobody had anything to say."""


def _tell_said(what: Said) -> dict[str, Any]:
    match what:
        case Opinion():
            cause = {} if what.cause == "policy" else {"cause": what.cause}
            return {"hook": what.hook.name, "verdict": what.verdict, **cause}
        case Failure():
            return {"failure": what}
        case Monitored():
            return {"monitored": what}
        case HookApproval():
            note = {} if what.note is None else {"note": what.note}
            return {"approval": what.approval._asdict(), "hook": what.hook, "question": what.question, **note}
        case Unsupported():
            return {"unsupported": what.part}


def hear(told: Mapping[str, Any]) -> Decision[Any]:
    """The decision that was told. Raises `BadRecord` for anything else."""
    try:
        original = step_of(told["step"])
        control = _control(told["control"])
        effect = None if told.get("effect") is None else _control(told["effect"])
        hooks = _Hooks(original)
        said = tuple(hooks.heard(what) for what in told.get("said", ()))
        marks = tuple(hooks.marks(told.get("runs", ())))
        left, unanswered = _left(original, told.get("left")), told.get("unanswered")
        return Decision(left, original, control, said, marks, effect, unanswered)
    except BadRecord:
        raise
    except (FairleadError, msgspec.ValidationError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadRecord(f"not a decision: {type(error).__name__} {error}") from None


def _control(word: Any) -> Control:
    if word not in CONTROLS:
        raise BadRecord(f"{word!r} is no control")
    return cast(Control, word)


def _left(original: Step, left: Mapping[str, Any] | None) -> Step:
    if not left:
        return original
    types = event_named(original.event).types
    return replace(original, **{name: msgspec.convert(value, types[name]) for name, value in left.items()})


class _Hooks:
    """Stand-ins for the hooks of a decision that was made elsewhere. They have names, and never run."""

    def __init__(self, step: Step) -> None:
        self._event = step.event
        self._known: dict[tuple[str, str], Hook] = {}
        self._asks: tuple[str, str | None] = "", None  # who asked first, which older versions did not say

    def _hook(self, name: str, phase: Any = "transform") -> Hook:
        if (name, phase) not in self._known:
            self._known[name, phase] = Hook(_elsewhere, self._event, name=name, phase=phase)
        return self._known[name, phase]

    def heard(self, what: Mapping[str, Any]) -> Said:
        if "verdict" in what:
            verdict = msgspec.convert(what["verdict"], Verdict)
            if verdict.control == "ask" and not self._asks[0]:
                self._asks = what["hook"], verdict.reason
            return Opinion(self._hook(what["hook"]), verdict, what.get("cause", "policy"))
        if "failure" in what:
            return msgspec.convert(what["failure"], Failure)
        if "monitored" in what:
            return msgspec.convert(what["monitored"], Monitored)
        if "approval" in what:
            hook, question = (what["hook"], what["question"]) if "hook" in what else self._asks
            return HookApproval(hook, question, Approval(**what["approval"]), what.get("note"))
        return Unsupported(what["unsupported"])

    def marks(self, runs: Any) -> Iterator[Mark]:
        heard = [HookRun(*run) for run in runs]
        if heard:
            yield Stretch((), tuple(self._hook(run.hook, run.phase) for run in heard))
            yield from ((run.outcome, float(run.duration), run.details) for run in heard)


def _elsewhere(_: Any) -> None:
    """Where a hook ran in another process, there is nothing here to run."""
