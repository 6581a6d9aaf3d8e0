"""ironclaw's own JSON of events and points, as steps and events of ours.

An event is what serde writes of a `HookEvent`: one variant and its fields, such as
`{"Inbound": {"user_id": "u-1", "channel": "cli", "content": "hello", "thread_id": null}}`. A point is a text such as
`"beforeInbound"`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..errors import FairleadError, nearest
from ..lifecycle import (
    BeforeInput,
    BeforeOutput,
    BeforeResponse,
    BeforeTool,
    SessionEnd,
    SessionStart,
    Step,
    event_also_named,
    event_named,
)


class _MessageEvent(msgspec.Struct):
    user_id: str
    channel: str
    content: str
    thread_id: str | None = None


class _ToolCallEvent(msgspec.Struct):
    tool_name: str
    parameters: dict[str, Any] | None
    user_id: str
    context: str


class _SessionEvent(msgspec.Struct):
    user_id: str
    session_id: str


class _ResponseEvent(msgspec.Struct):
    user_id: str
    thread_id: str
    response: str


_VARIANTS: dict[str, tuple[Any, type[Step], dict[str, str]]] = {
    "Inbound": (_MessageEvent, BeforeInput, {"content": "input"}),
    "ToolCall": (_ToolCallEvent, BeforeTool, {"tool_name": "tool", "parameters": "args", "context": "origin"}),
    "Outbound": (_MessageEvent, BeforeOutput, {}),
    "SessionStart": (_SessionEvent, SessionStart, {}),
    "SessionEnd": (_SessionEvent, SessionEnd, {}),
    "ResponseTransform": (_ResponseEvent, BeforeResponse, {}),
}
"""Of each variant: its fields, our step, and our names of the fields that have another one."""


def read_event(data: bytes | str | Mapping[str, Any]) -> Step:
    """The step of a `HookEvent`. Raises `FairleadError` for anything else."""
    try:
        event = msgspec.json.decode(data) if isinstance(data, (bytes, str)) else data
        if not isinstance(event, Mapping) or len(event) != 1:
            raise FairleadError('not an event of ironclaw: it is an object with one variant, like {"Inbound": {...}}')
        ((variant, body),) = event.items()
        if variant not in _VARIANTS:
            raise FairleadError(f"unknown event of ironclaw {variant!r}{nearest(variant, _VARIANTS)}")
        fields, kind, names = _VARIANTS[variant]
        read = msgspec.structs.asdict(msgspec.convert(body, fields))
        return kind(**{names.get(name, name): value for name, value in read.items() if value is not None})
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise FairleadError(f"not an event of ironclaw: {error}") from None


def read_point(data: bytes | str) -> str:
    """Our name of a `HookPoint`, which is a JSON text. Raises `UnknownName` for anything else."""
    try:
        point = msgspec.json.decode(data, type=str)
    except (msgspec.MsgspecError, UnicodeError):
        point = data.decode(errors="replace") if isinstance(data, bytes) else data
    return event_named(event_also_named(point) or point).name
