"""A step as JSON, and back. The JSON object is called its envelope."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..errors import FairleadError
from ..lifecycle import Event, Step, event_named

VERSION = 1


_latest: tuple[Step | None, bytes] = (None, b"")


def encode_step(step: Step) -> bytes:
    """Encode a step as JSON: its event, its header and its fields, without those that are None.

    The external hooks of a dispatch share one encoding until one of them changes the step.
    """
    global _latest
    known, data = _latest
    if known is not step:
        data = msgspec.json.encode(envelope(step))
        if "state" not in step.__struct_fields__:  # hooks may edit `state` in place
            _latest = (step, data)
    return data


def envelope(step: Step) -> dict[str, Any]:
    """The envelope of a step, which `encode_step` encodes."""
    data: dict[str, Any] = {"fairlead": VERSION, "event": step.event}
    for name in step.__struct_fields__:
        value = getattr(step, name)
        if value is not None:
            data[name] = value
    return data


def plain_envelope(step: Step, enc_hook: Any = None) -> dict[str, Any]:
    """The envelope of a step as plain data. Bytes stay bytes, so that redaction can look into them."""
    data: dict[str, Any] = msgspec.to_builtins(envelope(step), enc_hook=enc_hook, builtin_types=(bytes, bytearray))
    return data


def decode_step(data: bytes | str) -> Step:
    """Decode a step. Raises `FairleadError` for anything that is not an envelope."""
    try:
        return step_from_envelope(msgspec.json.decode(data, type=dict[str, Any]))
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise FairleadError(f"not an envelope: {error}") from None


def step_from_envelope(envelope: Mapping[str, Any]) -> Step:
    """The step of an envelope. Raises `FairleadError` for anything that is not an envelope."""
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
                pass  # the slower way below has the better error
        return event.step(**{name: _convert(event, name, value) for name, value in fields.items()})  # type: ignore[no-any-return]
    except (msgspec.MsgspecError, RecursionError, TypeError, ValueError) as error:
        if isinstance(error, FairleadError):
            raise
        raise FairleadError(f"not an envelope: {error}") from None


def _convert(event: Event[Any], name: str, value: Any) -> Any:
    kind = event.types.get(name, Any)
    try:
        return None if value is None else msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise FairleadError(f"not an envelope: {name} of {event.name}: {error}") from None
