"""Plain messages: how hooks read and change a conversation, in the loop and in every framework.

{"role": "user", "content": "..."}
{"role": "assistant", "content": "...", "tool_calls": [{"id": "...", "tool": "...", "args": {...}}]}
{"role": "tool", "call_id": "...", "tool": "...", "content": "...", "is_error": false}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from ...decision import Context

T = TypeVar("T")
Message = dict[str, Any]


class Reply(msgspec.Struct):
    """What a model answers, as hooks see it, and the tool calls that it asks for."""

    text: str | None = None
    usage: dict[str, Any] | None = None
    stop_reason: str | None = None
    tool_calls: list[dict[str, Any]] = []


def as_text(content: Any) -> str:
    """Return what a model or a user can read of some content: its texts, or else its JSON. An image is its type."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        return "\n".join(as_text(block) for block in content)
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        return str(content["text"])
    if isinstance(content, dict) and "image" in (content.get("type"), content.get("kind")):
        return f"[image: {_media_type(content)}]"
    return msgspec.json.encode(content, enc_hook=str).decode()


_MEDIA_TYPES = ("mime", "mimeType", "mime_type", "media_type", "format")


def _media_type(image: dict[str, Any]) -> str:
    """Return the type of an image, where its block or the source in it gives one."""
    parts = [part for part in (image, image.get("source")) if isinstance(part, dict)]
    found = (part[key] for part in parts for key in _MEDIA_TYPES if isinstance(part.get(key), str))
    return next(found, "unknown type")


def as_messages(context: Iterable[Context]) -> list[Message]:
    """Turn the context that hooks add into messages for the model. `hook` marks them as not the user's."""
    return [{"role": "user", "content": text.signed, "hook": text.hook} for text in context]


def rewritten(
    native: Sequence[T], plain: Sequence[Message], wanted: Sequence[Message], make: Callable[[Message], T]
) -> list[T]:
    """Turn messages that a hook has changed into a framework's own.

    A message that is as it was keeps its native form; `make` builds the others.
    """
    left = list(zip(plain, native, strict=True))
    found: list[T] = []
    for message in wanted:
        at = next((number for number, (old, _) in enumerate(left) if old == message), None)
        found.append(make(message) if at is None else left.pop(at)[1])
    return found
