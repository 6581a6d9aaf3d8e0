"""The details of records: what came, what changed, what each hook did and why, and how to try it again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from itertools import islice
from typing import Any
from urllib.parse import urlencode

import msgspec

from ..decision import Decision
from ..frozen import thaw
from ..journal.reading import Record
from ..lifecycle import HEADER
from ..rendering import ABSENT, FieldChange, answer_of, changes
from ..wire.decisions import BadRecord
from .clock import duration, short_seconds
from .findings import BY_CONTROL
from .marks import MARKS
from .markup import Html, h, join
from .shell_command import as_test_command

LONG = 8000
"""Characters of a value that are shown."""
DIFF_LINES = 400
_LEFT_OUT = frozenset({*HEADER, "event", "fairlead", "tool", "call_id", "origin", "kind", "target", "safety"})
_PHASES = {"transform": "may change", "gate": "judges", "observe": "watches"}
_OUTCOMES = {
    "none": "no opinion", "verdict": "verdict", "error": "failed", "timeout": "timed out", "malformed": "bad verdict",
    "cancelled": "cancelled", "quarantined": "left out: it had failed too often", "detached": "in the background",
    "dropped": "dropped: the queue was full",
}  # fmt: skip
_FAILED = frozenset({"error", "timeout", "malformed", "quarantined", "dropped"})


def moment_details(records: Sequence[Record], *, linked: bool = True) -> Html:
    """All that the records of one moment say: what came, what was decided, each hook that ran, and what came of it."""
    decided = [(record, decision) for record in records if (decision := _decision(record)) is not None]
    return h.div(
        _values(_came(records[0]), "came"),
        [_decided(record, decision) for record, decision in decided],
        hooks_table([decision for _, decision in decided]),
        _values(_outcome(records[-1]), "went") if len(records) > 1 else None,
        [h.p(f"Record {one.id} cannot be read in full.", class_="dim") for one in records if not one.is_whole],
        _redacted(records),
        _command(records),
        _records(records, linked),
        class_="details",
    )


def _decision(record: Record) -> Decision[Any] | None:
    """The recorded decision; None for a record that is not whole."""
    try:
        return record.decision if record.is_whole else None
    except BadRecord:
        return None


# --- what came and went ---------------------------------------------------------------------------


def _came(record: Record) -> Iterator[tuple[str, Any]]:
    """The fields that say what the step is about."""
    step = record.body.get("step") or {}
    for name, value in step.items():
        if name == "args" and isinstance(value, dict):
            yield from value.items()
        elif name not in _LEFT_OUT and name != "messages" and value not in (None, "", {}, []):
            yield name, value


def _outcome(record: Record) -> Iterator[tuple[str, Any]]:
    """What came of a call: its output, or why there is none. It is shown as the host gave it to the hooks."""
    step = record.body.get("step") or {}
    for name in ("outcome", "output", "error", "duration", "usage", "stop_reason"):
        value = step.get(name)
        if value not in (None, "", {}) and not (name == "error" and value == step.get("output")):
            yield name, duration(value) if name == "duration" and isinstance(value, float) else value


def _values(pairs: Iterable[tuple[str, Any]], kind: str) -> Html | None:
    rows = [(h.dt(str(name)), h.dd(value_of(value))) for name, value in pairs]
    return h.dl(rows, class_=f"values {kind}") if rows else None


def value_of(value: Any) -> Html:
    """A value in full, up to a limit: a text as it is, anything else as JSON."""
    text = value if isinstance(value, str) else msgspec.json.format(msgspec.json.encode(value, enc_hook=str)).decode()
    rest = len(text) - LONG
    return h.pre(text[:LONG], h.span(f"\n… {rest:,} more characters", class_="dim") if rest > 0 else None)


# --- what was decided -----------------------------------------------------------------------------


def _decided(record: Record, decision: Decision[Any]) -> Html | None:
    """What came of one step; nothing where no hook had anything to say."""
    if not (decision.contributions or decision.step is not decision.original or decision.unanswered):
        return None
    return h.section(
        h.h3("at ", h.code(decision.event), ": ", _control(decision)),
        h.p(decision.reason, class_="reason") if decision.reason else None,
        [difference(change, record.body) for change in changes(decision)],
        _verdicts(decision),
        class_="decided",
    )


def _control(decision: Decision[Any]) -> Html:
    by = f" by {decision.hook}" if decision.hook else ""
    effect = f", and the agent did: {decision.effect}" if decision.effect else ""
    known = BY_CONTROL.get(decision.control)
    return join(h.b(MARKS[known].word if known else "goes on"), by, effect)


def difference(change: FieldChange, body: dict[str, Any]) -> Html:
    """What was changed, line by line. What redaction hid is equal before and after, so its kind is named."""
    before, after = (_lines(value) for value in (change.old, change.new))
    shown: list[Html] = []
    for line in islice(unified_diff(before, after, lineterm="", n=3), 2, DIFF_LINES):
        kind = {"+": "added", "-": "removed"}.get(line[:1])
        if not line.startswith("@@"):
            shown.append(h.div(line, class_=kind))
    if not shown:
        kinds = [row[1] for row in body.get("redacted") or () if str(row[0]).startswith(f"step.{change.path}")]
        what = " and ".join(dict.fromkeys(map(str, kinds))) or "a secret"
        shown = [h.div(f"{what} taken out; the journal holds neither text", class_="dim")]
    return h.figure(h.figcaption("changed ", h.code(change.path)), h.pre(shown), class_="difference")


def _lines(value: Any) -> list[str]:
    if value is ABSENT or value is None:
        return []
    if isinstance(value, str):
        return value.splitlines()
    return msgspec.json.format(msgspec.json.encode(thaw(value), enc_hook=str)).decode().splitlines()


def hooks_table(decisions: Sequence[Decision[Any]], *, silent: bool | None = None) -> Html | None:
    """Each hook that ran: at which event, in which phase, what it answered, and how long it took.

    `silent` chooses: only those without an opinion, or only the others.
    """
    runs = [
        (decision, run)
        for decision in decisions
        for run in decision.runs
        if silent is None or (run.outcome == "none") == silent
    ]
    if not runs:
        return None
    head = ("at", "hook", "phase", "outcome", "seconds")
    rows = [
        h.tr(
            h.td(decision.event, class_="dim"),
            h.td(run.hook),
            h.td(_PHASES.get(run.phase, run.phase), title=run.phase),
            h.td(_answer(decision, run), h.span(_facts(run.details), class_="dim")),
            h.td(short_seconds(run.duration), class_="number"),
        )
        for decision, run in runs
    ]
    return h.table(
        h.thead(h.tr([h.th(word, scope="col", class_="number" if word == "seconds" else None) for word in head])),
        h.tbody(rows),
        class_="hooks",
    )


def _answer(decision: Decision[Any], run: Any) -> Html:
    if run.outcome == "verdict":
        return h.span(answer_of(decision, run.hook) or "verdict")
    words = _OUTCOMES.get(run.outcome, run.outcome)
    if run.outcome not in _FAILED:
        return h.span(words, class_="dim")
    why = answer_of(decision, run.hook)
    return join(h.b(words), why and f": {why}")


def _facts(details: Any) -> str | None:
    """What the runner says, such as the exit code of a command."""
    found = {key: value for key, value in (details or {}).items() if value not in ("", None)}
    return "  " + ", ".join(f"{key} {str(value)[:200]}" for key, value in found.items()) if found else None


def _verdicts(decision: Decision[Any]) -> list[Html]:
    """Texts for the model, warnings, tracebacks, and what the agent could not do."""
    shown = [_note(f"told the model, by {text.hook}", str(text)) for text in decision.context]
    shown += [_note("warning", warning) for warning in decision.warnings]
    shown += [_note(f"traceback of {one.hook}", one.traceback) for one in decision.failures if one.traceback]
    shown += [_note("the agent cannot carry out", part) for part in decision.unsupported]
    for one in decision.approvals:
        answer = {"allow": "approved", "deny": "refused"}.get(one.approval.answer, "left to the agent")
        words = f"{answer} by {one.approval.who or 'a human'}" + (f": {one.approval.why}" if one.approval.why else "")
        shown.append(_note(f"{one.hook} asked: {one.question or 'may it?'}", words))
    if decision.unanswered:
        shown.append(_note("the daemon did not answer", decision.unanswered))
    return shown


def _note(title: str, text: str) -> Html:
    return h.figure(h.figcaption(title), value_of(text), class_="note")


# --- the rest -------------------------------------------------------------------------------------


def _redacted(records: Sequence[Record]) -> Html | None:
    """Which secrets were taken out before anything was written. Their kinds are known, their texts are not."""
    rows = {(str(row[0]), str(row[1])) for record in records for row in record.body.get("redacted") or ()}
    if not rows:
        return None
    listed = ", ".join(f"{kind} ({path.removeprefix('step.')})" for path, kind in sorted(rows))
    return h.p(h.b("Taken out before it was written: "), listed, class_="dim")


def _command(records: Sequence[Record]) -> Html | None:
    """The command that asks the hooks of today about the step that hooks judged."""
    judged = max(records, key=_is_judged)
    command = None if judged.is_note else as_test_command(judged.body.get("step") or {})
    if command is None:
        return None
    return h.figure(h.figcaption("Try it with the hooks of today"), h.pre(command, tabindex="0"), class_="command")


def _is_judged(record: Record) -> tuple[bool, bool]:
    """Whether hooks said something about a step, and whether it is the one that they usually judge."""
    return bool(record.body.get("said")), (record.body.get("step") or {}).get("event") == "before_tool"


def _records(records: Sequence[Record], linked: bool) -> Html:
    events = [(one, str((one.body.get("step") or {}).get("event", "note"))) for one in records]
    links = [
        h.li(h.a(event, href=decision_address(one.id)) if linked else event, " ", h.code(one.id))
        for one, event in events
    ]
    return h.div(h.span("Records "), h.ul(links), class_="records")


def decision_address(record: str) -> str:
    """The address of one decision."""
    return f"/decision?{urlencode({'id': record})}"
