"""Edits a TOML text by tables: adds and removes some, while every other byte stays as it is."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_HEADER = re.compile(r"^[ \t]*\[.*$", re.MULTILINE)


class TomlTable(NamedTuple):
    """One `[table]` or `[[table]]`, from its header to its last line that is no comment."""

    name: tuple[str, ...]
    start: int
    end: int
    text: str
    value: Any
    """The content of the table."""


def tables(text: str) -> list[TomlTable]:
    """The tables of a text, which must be valid TOML."""
    starts: list[int] = []
    for header in _HEADER.finditer(text):
        if _is_toml(text[starts[-1] if starts else 0 : header.start()]):  # and not in the middle of a value
            starts.append(header.start())
    found = []
    for start, end in pairwise([*starts, len(text)]):
        end = start + len(_without_remarks(text[start:end]))
        name, value = [], tomllib.loads(text[start:end])
        for _ in _name_of(text[start:end].partition("\n")[0]):
            key, value = next(iter(value.items()))
            name.append(key)
        found.append(
            TomlTable(tuple(name), start, end, text[start:end], value[0] if isinstance(value, list) else value)
        )
    return found


def added(text: str, table: str) -> str:
    """Add a table at the end, after an empty line."""
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return f"{text}{gap}{table}\n"


def without(text: str, unwanted: Callable[[TomlTable], bool]) -> str:
    """Remove some tables, and the empty line before each."""
    for table in reversed(tables(text)):
        if unwanted(table):
            lines = _LINE.findall(text[: table.start])
            start = table.start - (len(lines[-1]) if lines and not lines[-1].strip() else 0)
            text = text[:start] + text[table.end :]
    return text


def quoted(text: str) -> str:
    """A text as a TOML string."""
    return json.dumps(text, ensure_ascii=False)


def _is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _name_of(header: str) -> list[str]:
    name, value = [], tomllib.loads(header)
    while isinstance(value, dict) and value:
        key, value = next(iter(value.items()))
        name.append(key)
    return name


def _without_remarks(text: str) -> str:
    """Cut trailing empty lines and comments, which belong to the next table."""
    lines = _LINE.findall(text)
    while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")) and _is_toml("".join(lines[:-1])):
        lines.pop()
    return "".join(lines)
