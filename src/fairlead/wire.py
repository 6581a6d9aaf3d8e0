"""The wire: a step as one JSON envelope, and the JSON Schemas of every envelope and verdict.

The schemas are derived from the lifecycle table; nothing about an event is written twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from .errors import FairleadError
from .lifecycle import CONTROLS, EVENTS, STOP_REASONS, Event, Step, event_named

VERSION = 1
DIALECT = "https://json-schema.org/draft/2020-12/schema"


_latest: tuple[Step | None, bytes] = (None, b"")


def encode_step(step: Step) -> bytes:
    """The envelope of a step: its event, its header and its fields. What is None is left out.

    All external hooks of a dispatch share one encoding, until one of them changes the step.
    """
    global _latest
    known, data = _latest
    if known is not step:
        data = _encode(step)
        if "state" not in step.__struct_fields__:  # which hooks may edit in place
            _latest = (step, data)
    return data


def _encode(step: Step) -> bytes:
    return msgspec.json.encode(envelope(step))


def envelope(step: Step) -> dict[str, Any]:
    """What `encode_step` encodes."""
    made: dict[str, Any] = {"fairlead": VERSION, "event": step.event}
    for name in step.__struct_fields__:
        value = getattr(step, name)
        if value is not None:
            made[name] = value
    return made


def plain(step: Step, enc_hook: Any = None) -> dict[str, Any]:
    """The envelope as plain data. Bytes stay bytes: in base64, nobody would see what is in them."""
    data: dict[str, Any] = msgspec.to_builtins(envelope(step), enc_hook=enc_hook, builtin_types=(bytes, bytearray))
    return data


def decode_step(data: bytes | str) -> Step:
    """The step of an envelope. Raises `FairleadError` for anything that is not one."""
    try:
        return step_of(msgspec.json.decode(data, type=dict[str, Any]))
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise FairleadError(f"not an envelope: {error}") from None


def step_of(envelope: Mapping[str, Any]) -> Step:
    """The step of an envelope that was decoded already. Raises `FairleadError` for anything that is not one."""
    try:
        fields = dict(envelope)
        version = fields.pop("fairlead", VERSION)
        if version != VERSION:
            raise FairleadError(f"envelope version {version!r} is not {VERSION}; update fairlead")
        event = event_named(fields.pop("event", None))
        if fields.keys() <= event.types.keys():
            try:
                return msgspec.convert(fields | {"event": event.name}, type=event.step)  # type: ignore[no-any-return]
            except msgspec.ValidationError:
                pass  # it is put in better words below
        return event.step(**{name: _convert(event, name, value) for name, value in fields.items()})  # type: ignore[no-any-return]
    except (msgspec.MsgspecError, RecursionError, TypeError, ValueError) as error:
        if isinstance(error, FairleadError):
            raise
        raise FairleadError(f"not an envelope: {error}") from None


def _convert(event: Event[Any], name: str, value: Any) -> Any:
    kind = event.types.get(name, Any)
    return None if value is None else msgspec.convert(value, kind)


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
    """The JSON Schema of what a hook may answer to an event."""
    row = event_named(event)
    words: list[str] = [control for control in CONTROLS if control in row.controls]
    words += [seed for seed, ours in (("break", "stop"), ("continue", "extend")) if ours in row.controls]
    properties: dict[str, Any] = {
        "control": _nullable({"enum": [*words, *(["veto"] if row.veto else [])]}),
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
        (kind,), _ = msgspec.json.schema_components([row.types[field]])
        properties[field] = _nullable(_without_null(kind))
    if "args" in row.changes:
        properties["command"] = properties["url"] = _nullable({"type": "string"})
        texts = {"type": "array", "items": {"type": "string"}}
        properties["paths"] = {"anyOf": [{"type": "string"}, texts, {"type": "null"}]}
    return {
        "$schema": DIALECT,
        "title": f"Verdict on {row.name}",
        "type": "object",
        "properties": properties,
        "additionalProperties": {"type": "null"},  # null is absent, whatever the key
    }


def schemas() -> dict[str, dict[str, Any]]:
    """All of them: `{"before_tool": {"envelope": ..., "verdict": ...}, ...}`."""
    return {name: {"envelope": envelope_schema(name), "verdict": verdict_schema(name)} for name in EVENTS}


def _nullable(kind: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [kind, {"type": "null"}]} if kind else {}


def _without_null(kind: Any) -> Any:
    """A schema without its null: on the wire, what is None is absent."""
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
