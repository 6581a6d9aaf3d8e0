"""The JSON Schemas of every envelope and every verdict, derived from the lifecycle table."""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from ..lifecycle import CONTROLS, EVENTS, STOP_REASONS, Content, event_named
from ..result import ResultBody
from ..verdict import CONTROL_ALIASES
from .steps import VERSION

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def envelope_schema(event: str) -> dict[str, Any]:
    """The JSON Schema of an event's envelope."""
    row = event_named(event)
    (schema,), components = msgspec.json.schema_components([row.step], ref_template="#/$defs/{name}")
    body = components.pop(row.step.__name__, schema)
    properties = {"fairlead": {"const": VERSION}, "event": {"const": row.name}}
    for name, kind in body["properties"].items():
        if name != "event":
            properties[name] = _without_null(kind)
    return {
        "$schema": DIALECT,
        "title": row.step.__name__,
        "description": row.step.__doc__,
        "type": "object",
        "properties": properties,
        "required": ["fairlead", "event", *(n for n in body.get("required", ()) if n != "event")],
        **({"$defs": {name: _without_null(kind) for name, kind in components.items()}} if components else {}),
    }


def verdict_schema(event: str) -> dict[str, Any]:
    """The JSON Schema of the verdicts that a hook may return at an event."""
    row = event_named(event)
    controls: list[str] = [control for control in CONTROLS if control in row.controls]
    controls += [alias for alias, control in CONTROL_ALIASES.items() if control in row.controls]
    defs: dict[str, Any] = {}
    properties: dict[str, Any] = {
        "control": _nullable({"enum": [*controls, *(["veto"] if row.veto else [])]}),
        "reason": _nullable({"type": "string"}),
        "name": _nullable({"type": "string"}),
        "warnings": _nullable({"type": "array", "items": {"type": "string"}}),
        "metadata": _nullable({"type": "object"}),
    }
    if "stop" in row.controls:
        properties["stop_reason"] = _nullable({"enum": list(STOP_REASONS)})
    if row.context:
        properties["additional_context"] = _nullable({"type": "array", "items": {"type": "string"}})
    for field in row.changes:
        (kind,), _ = msgspec.json.schema_components([row.settable[field]])
        properties[field] = _nullable(_without_null(kind))
    if "result" in row.changes:
        result, defs = _result_schema()
        properties["result"] = _nullable(result)
    if "args" in row.changes:
        properties["command"] = properties["url"] = _nullable({"type": "string"})
        texts = {"type": "array", "items": {"type": "string"}}
        properties["paths"] = {"anyOf": [{"type": "string"}, texts, {"type": "null"}]}
    return {
        "$schema": DIALECT,
        "title": f"Verdict on {row.name}",
        "type": "object",
        "properties": properties,
        "additionalProperties": {"type": "null"},  # a null counts as absent, whatever the key
        **({"$defs": defs} if defs else {}),
    }


def _result_schema() -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema of a result, and its definitions. An object with a `kind` is one of the bodies."""
    (content,), _ = msgspec.json.schema_components([Content])
    bodies, defs = msgspec.json.schema_components(get_args(ResultBody), ref_template="#/$defs/{name}")
    plain = {"if": {"type": "object"}, "then": {"not": {"required": ["kind"]}}}
    return {"anyOf": [content | plain, *bodies]}, defs


def schemas() -> dict[str, dict[str, Any]]:
    """The schemas of all events: `{"before_tool": {"envelope": ..., "verdict": ...}, ...}`."""
    return {name: {"envelope": envelope_schema(name), "verdict": verdict_schema(name)} for name in EVENTS}


def _nullable(kind: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [kind, {"type": "null"}]} if kind else {}


def _without_null(kind: Any) -> Any:
    """A schema without its null: an envelope leaves out what is None."""
    if not isinstance(kind, dict):
        return kind
    kind = {key: value for key, value in kind.items() if key != "default"}
    if "properties" in kind:
        kind["properties"] = {name: _without_null(value) for name, value in kind["properties"].items()}
    if "anyOf" in kind:
        options = [option for option in kind["anyOf"] if option != {"type": "null"}]
        return options[0] if len(options) == 1 else kind | {"anyOf": options}
    if "enum" in kind:
        return kind | {"enum": [value for value in kind["enum"] if value is not None]}
    return kind
