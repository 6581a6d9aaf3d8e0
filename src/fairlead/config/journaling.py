"""What a file says about the journal and about redaction: the tables `[journal]` and `[redact]`.

Only the system's and the user's files may: an agent could change its project's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from ..amounts import seconds, size
from ..errors import FairleadError, nearest
from ..hook import Layer
from ..journal.anchor import Anchor
from .document import Document


class RedactionSettings(msgspec.Struct, frozen=True):
    """What is redacted beside what always is."""

    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    values: tuple[str, ...] = ()

    def __add__(self, other: RedactionSettings) -> RedactionSettings:
        return RedactionSettings(
            (*self.names, *other.names), (*self.patterns, *other.patterns), (*self.values, *other.values)
        )


def read_journal(document: Document, layer: Layer) -> dict[str, Any]:
    """The options of `Journal` that a file gives, and `enabled`."""
    return read_table(document, layer, "journal", JOURNAL)


def read_redact(document: Document, layer: Layer, environ: Mapping[str, str] | None) -> RedactionSettings:
    """Names, patterns and values that a file lists. A value is named by the variable that holds it."""

    def values(items: Any) -> tuple[str, ...]:
        from ..redaction.redactor import check_value
        from .hook_entry import value_of

        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise ValueError('values must be a list of { env = "NAME" }: a secret does not belong in a file')
        for item in items:
            if item.keys() != {"env"} or not isinstance(item["env"], str):
                raise ValueError(f'write {{ env = "NAME" }}, the variable that holds the value, not {item}')
        known = os.environ if environ is None else environ
        try:
            return tuple(check_value(value_of(item, environ)) for item in items if known.get(item["env"]))
        except FairleadError as error:
            raise ValueError(str(error)) from None

    checks: dict[str, Callable[[Any], Any]] = {"names": _texts, "patterns": _patterns, "values": values}
    return RedactionSettings(**read_table(document, layer, "redact", checks))


def read_table(
    document: Document, layer: Layer, name: str, checks: Mapping[str, Callable[[Any], Any]]
) -> dict[str, Any]:
    """The sound values of a table that a project's file may not have."""
    table = document.data.get(name, {})
    if not isinstance(table, dict):
        document.wrong((name,), f"{name} must be a table", value=True)
        return {}
    if table and layer == "project":
        document.wrong((name,), f"a project cannot say anything about the {name}; the user's file can")
        return {}
    sound: dict[str, Any] = {}
    for key, value in table.items():
        if key not in checks:
            document.wrong((name, key), f"unknown key {key!r}{nearest(key, checks)}")
            continue
        try:
            sound[key] = checks[key](value)
        except (ValueError, TypeError) as error:
            document.wrong((name, key), str(error), value=True)
    return sound


def boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("it must be true or false")
    return value


def _path(value: Any) -> str:
    if not isinstance(value, str) or not os.path.isabs(os.path.expanduser(value)) or "\0" in value:
        raise ValueError("it must be an absolute path")
    return os.path.expanduser(value)


def one_of(choices: tuple[str, ...], value: Any) -> str:
    if value not in choices:
        raise ValueError(f"it must be one of {', '.join(choices)}{nearest(value, choices)}")
    return str(value)


def _above_nothing(read: Callable[[Any], Any], value: Any) -> Any:
    if isinstance(value, bool) or not read(value) > 0:
        raise ValueError("it must be above 0")
    return read(value)


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise ValueError("it must be a list of texts")
    return tuple(value)


def _patterns(value: Any) -> tuple[str, ...]:
    from ..redaction.redactor import NOT_PORTABLE, gives_nothing_back  # only a file with patterns pays for it

    for pattern in _texts(value):
        try:
            if re.compile(pattern).search(""):
                raise ValueError(f"{pattern!r} matches everything")
        except re.error as error:
            raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
        if gives_nothing_back(pattern):
            raise ValueError(f"{pattern!r} {NOT_PORTABLE}")
    return _texts(value)


def read_anchor(value: Any) -> Anchor:
    if not isinstance(value, dict):
        raise ValueError('it must be { file = "..." }, { command = [...] } or { url = "..." }')
    for key in value.keys() - set(Anchor.__struct_fields__):
        raise ValueError(f"unknown key {key!r}{nearest(key, Anchor.__struct_fields__)}")
    options = {**value, **({"every": seconds(value["every"])} if "every" in value else {})}
    try:
        anchor = msgspec.convert(options, Anchor)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None
    if not 0 <= anchor.every < 1e6:
        raise ValueError("every must be a duration below 11 days")
    if anchor.file is not None:
        return msgspec.structs.replace(anchor, file=_path(anchor.file))
    if anchor.command is not None and not anchor.command:
        raise ValueError("command names no program")
    if anchor.url is not None and not anchor.url.startswith(("http://", "https://")):
        raise ValueError("url must begin with http:// or https://")
    return anchor


JOURNAL: dict[str, Callable[[Any], Any]] = {
    "enabled": boolean, "path": _path, "durability": partial(one_of, ("normal", "full")),
    "on_failure": partial(one_of, ("open", "closed")), "max_size": partial(_above_nothing, size),
    "max_age": partial(_above_nothing, seconds), "anchor": read_anchor,
}  # fmt: skip
"""The keys of `[journal]`, and how the value of each is read."""
