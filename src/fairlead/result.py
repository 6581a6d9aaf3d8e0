"""The result that a hook gives in place of a tool's own, as a verdict in JSON writes it.

A text, an object and a list of content blocks are written as they are. Every JSON value, these included, can be
written as an object with its kind:

    {"kind": "text", "text": "cached"}
    {"kind": "json", "value": [1, 2]}
    {"kind": "content", "blocks": [{"kind": "text", "text": "a chart:"}, {"kind": "image", "mime": "image/png"}]}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from .errors import MalformedVerdict
from .lifecycle import Content


class Text(msgspec.Struct, tag_field="kind", tag="text", forbid_unknown_fields=True):
    """A text."""

    text: str


class Image(msgspec.Struct, tag_field="kind", tag="image"):
    """An image among content blocks. It may have other fields, such as its data."""

    mime: str


class AnyJson(msgspec.Struct, tag_field="kind", tag="json", forbid_unknown_fields=True):
    """Any JSON value."""

    value: Any


class Blocks(msgspec.Struct, tag_field="kind", tag="content", forbid_unknown_fields=True):
    """Content blocks."""

    blocks: list[Text | Image]


ResultBody: Any = Text | AnyJson | Blocks
"""A result with its kind."""


def read_result(value: Any) -> Any:
    """The result that a verdict in JSON gives. Raises `MalformedVerdict`."""
    has_kind = isinstance(value, Mapping) and "kind" in value
    try:
        body = msgspec.convert(value, ResultBody if has_kind else Content)
    except (msgspec.ValidationError, RecursionError) as error:
        way_out = '; an object with a "kind" of its own is {"kind": "json", "value": {...}}' if has_kind else ""
        raise MalformedVerdict("result", f"{error}{way_out}") from None
    match body:
        case Text():
            return body.text
        case AnyJson():
            return "null" if body.value is None else body.value  # None is no result: the tool would run
        case Blocks():
            return [_block(part) for part in value["blocks"]]
    return body


def _block(part: Mapping[str, Any]) -> dict[str, Any]:
    """A content block, as fairlead's hosts have it."""
    fields = {name: value for name, value in part.items() if name not in ("kind", "type") and value is not None}
    return {"type": part["kind"], **fields}


def encode_result(value: Any) -> Any:
    """A result as a verdict in JSON gives it: `read_result` reads the same value."""
    if isinstance(value, Mapping):
        plain = "kind" not in value
    elif isinstance(value, list):
        plain = all(isinstance(block, Mapping) for block in value)
    else:
        plain = isinstance(value, str)
    return value if plain else {"kind": "json", "value": value}
