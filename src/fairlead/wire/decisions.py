"""A decision as JSON, and back: the format of the journal and of the daemon's answers.

`encode_decision` writes the contributions of all hooks, in chain order. `decode_decision` makes an equal decision of
them. Everything else (the reason, the context, the failures) follows from the contributions in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from ..approvals import Approval
from ..decision import (
    Contribution,
    Decision,
    Failure,
    HookApproval,
    HookRun,
    HookSequence,
    Monitored,
    RunEntry,
    Unsupported,
    run_rows,
)
from ..errors import FairleadError
from ..hook import Hook
from ..lifecycle import CONTROLS, Control, Step, event_named
from ..verdict import HookVerdict, Verdict
from .steps import envelope, step_from_envelope


class BadRecord(FairleadError):
    """Raised for JSON that is not a decision."""


def encode_decision(decision: Decision[Any]) -> dict[str, Any]:
    """A decision as plain data: the original step, its changes, the contributions and the runs."""
    data: dict[str, Any] = {"step": envelope(decision.original), "control": decision.control}
    changed = {name: getattr(decision.step, name) for name in decision.changed}
    if changed:
        data["left"] = changed
    if decision.contributions:
        data["said"] = [_encode_contribution(part) for part in decision.contributions]
    if decision.effect is not None:
        data["effect"] = decision.effect
    if decision.unanswered is not None:
        data["unanswered"] = decision.unanswered
    if decision.run_log and (rows := run_rows(decision.run_log)):
        data["runs"] = rows
    return data


def summary(decision: Decision[Any]) -> dict[str, Any]:
    """What follows from that data, for readers that do not use `decode_decision`."""
    if (
        decision.control == "proceed" and not decision.contributions and decision.step is decision.original
    ):  # most often
        return _EMPTY_SUMMARY | {"warnings": decision.warnings, "metadata": {}}
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


_EMPTY_SUMMARY: dict[str, Any] = {
    "control": "proceed", "denied": False, "reason": None, "hook": None, "cause": None, "stop_reason": None,
    "changed": (), "context": (), "warnings": (), "unsupported": (), "metadata": {},
}  # fmt: skip
"""The summary of a decision without contributions."""


def _encode_contribution(part: Contribution) -> dict[str, Any]:
    match part:
        case HookVerdict():
            cause = {} if part.cause == "policy" else {"cause": part.cause}
            limit = {} if part.hook.text_limit is None else {"text_limit": part.hook.text_limit}
            return {"hook": part.hook.name, "verdict": part.verdict, **cause, **limit}
        case Failure():
            return {"failure": part}
        case Monitored():
            return {"monitored": part}
        case HookApproval():
            note = {} if part.note is None else {"note": part.note}
            return {"approval": part.approval._asdict(), "hook": part.hook, "question": part.question, **note}
        case Unsupported():
            return {"unsupported": part.part}


def decode_decision(data: Mapping[str, Any]) -> Decision[Any]:
    """The decision that `encode_decision` wrote. Raises `BadRecord` for anything else."""
    try:
        original = step_from_envelope(data["step"])
        control = _control(data["control"])
        effect = None if data.get("effect") is None else _control(data["effect"])
        decoder = _ContributionDecoder(original)
        contributions = tuple(decoder.decode(part) for part in data.get("said", ()))
        run_log = tuple(decoder.run_log(data.get("runs", ())))
        step = _apply_changes(original, data.get("left"))
        return Decision(step, original, control, contributions, run_log, effect, data.get("unanswered"))
    except BadRecord:
        raise
    except (FairleadError, msgspec.ValidationError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadRecord(f"not a decision: {type(error).__name__} {error}") from None


def _control(value: Any) -> Control:
    if value not in CONTROLS:
        raise BadRecord(f"{value!r} is no control")
    return cast(Control, value)


def _apply_changes(original: Step, changes: Mapping[str, Any] | None) -> Step:
    if not changes:
        return original
    types = event_named(original.event).types
    return replace(original, **{name: msgspec.convert(value, types[name]) for name, value in changes.items()})


class _ContributionDecoder:
    """Decodes contributions. Their hooks are stand-ins, which have a name and a phase and never run."""

    def __init__(self, step: Step) -> None:
        self._event = step.event
        self._known: dict[tuple[str, str, int | None], Hook] = {}
        self._first_ask: tuple[str, str | None] = (
            "",
            None,
        )  # the first hook that asks, and its question, which records of older versions leave out

    def _hook(self, name: str, phase: Any = "transform", limit: int | None = None) -> Hook:
        if (name, phase, limit) not in self._known:
            hook = Hook(_stand_in, self._event, name=name, phase=phase, text_limit=limit)
            self._known[name, phase, limit] = hook
        return self._known[name, phase, limit]

    def decode(self, part: Mapping[str, Any]) -> Contribution:
        """The contribution that `_encode_contribution` wrote."""
        if "verdict" in part:
            verdict = msgspec.convert(part["verdict"], Verdict)
            if verdict.control == "ask" and not self._first_ask[0]:
                self._first_ask = part["hook"], verdict.reason
            stand_in = self._hook(part["hook"], limit=part.get("text_limit"))
            return HookVerdict(stand_in, verdict, part.get("cause", "policy"))
        if "failure" in part:
            return msgspec.convert(part["failure"], Failure)
        if "monitored" in part:
            return msgspec.convert(part["monitored"], Monitored)
        if "approval" in part:
            hook, question = (part["hook"], part["question"]) if "hook" in part else self._first_ask
            return HookApproval(hook, question, Approval(**part["approval"]), part.get("note"))
        return Unsupported(part["unsupported"])

    def run_log(self, data: Any) -> Iterator[RunEntry]:
        """The entries of `Decision.run_log` for the runs of a decision."""
        runs = [HookRun(*run) for run in data]
        if runs:
            yield HookSequence((), tuple(self._hook(run.hook, run.phase) for run in runs))
            yield from ((run.outcome, float(run.duration), run.details) for run in runs)


def _stand_in(_: Any) -> None:
    """Stand for a hook that ran in another process."""
