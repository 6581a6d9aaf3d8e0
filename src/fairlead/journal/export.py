"""Exports records as OpenTelemetry spans in OTLP's JSON.

Ids follow from the record, so a second export adds nothing.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from ..telemetry.attributes import BAD, SCOPE, attributes, run_attributes, timeline, title
from ..wire.decisions import BadRecord
from .reading import Record

_INTERNAL = 1
_ERROR = 2


def otlp(record: Record) -> dict[str, Any]:
    """The spans of one decision: one for the dispatch, and one for each hook under it."""
    end = int(record.body["at"])
    start = end - int((record.body.get("took") or 0) * 1e9)
    session = record.body["step"].get("session_id") or record.id
    trace = sha256(str(session).encode()).hexdigest()[:32]
    top = _span_id(record.id)
    try:
        decision = record.decision
    except BadRecord:  # the record is incomplete
        spans = [_span(trace, top, None, str(record.body["step"].get("event")), start, end, {})]
    else:
        about = attributes(decision) | {"fairlead.record": record.id}
        spans = [_span(trace, top, None, title(decision), start, end, about, bool(decision.failures))]
        for place, (run, began, ended) in enumerate(timeline(decision, start, end)):
            hook_id, about = _span_id(f"{record.id}/{place}"), run_attributes(run)
            spans.append(_span(trace, hook_id, top, run.hook, began, ended, about, run.outcome in BAD))
    resource = {"attributes": _attributes({"service.name": SCOPE})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": SCOPE}, "spans": spans}]}]}


def _span_id(name: str) -> str:
    return sha256(name.encode()).hexdigest()[:16]


def _span(
    trace: str, span: str, parent: str | None, name: str, start: int, end: int, about: dict[str, Any], bad: bool = False
) -> dict[str, Any]:
    return {
        "traceId": trace,
        "spanId": span,
        **({} if parent is None else {"parentSpanId": parent}),
        "name": name,
        "kind": _INTERNAL,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(end),
        "attributes": _attributes(about),
        "status": {"code": _ERROR} if bad else {},
    }


def _attributes(about: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in about.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": str(value)}
