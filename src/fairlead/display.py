"""Output for people: colours only on a terminal, and no text that could control the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from .escaping import escape as escape  # most modules that print take it from here

_COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34"}
CONTROL_COLOURS = {
    "deny": "red", "denied": "red", "abort": "red", "stop": "red",
    "ask": "yellow", "skip": "yellow", "extend": "yellow", "retry": "yellow",
    "proceed": "green", "allow": "green",
}  # fmt: skip
"""The colour of each control, and of what became of a tool call."""


def paint(text: str, *colours: str, to: TextIO | None = None) -> str:
    """Colour a text if it goes to a terminal."""
    codes = ";".join(_COLOURS[colour] for colour in colours if colour)
    return f"\x1b[{codes}m{text}\x1b[0m" if codes and _in_colour(to or sys.stdout) else text


def styled(text: str, *colours: str) -> str:
    """Make one line safe to print, and colour it."""
    return paint(escape(text), *colours)


def _in_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def columns(rows: Iterable[Sequence[str]], indent: str = "") -> str:
    """Align rows in columns. The last column has no padding."""
    table = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*(row[:-1] for row in table), strict=True)]
    lines = (
        indent + "  ".join([*(cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=True)), row[-1]])
        for row in table
    )
    return "\n".join(line.rstrip() for line in lines)


def short(value: Any, limit: int = 100) -> str:
    """A value in one line: a text as it is, anything else as JSON, cut to `limit` characters."""
    import msgspec

    text = escape(value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode())
    return text if len(text) <= limit else text[: limit - 3] + "..."


def counted(count: int, word: str, words: str | None = None) -> str:
    """A number and what it counts: 1 step, 2,000 steps."""
    return f"{count:,} {word if count == 1 else words or f'{word}s'}"


def print_json(data: Any) -> None:
    """Print data as JSON, with every character escaped that could control a terminal."""
    import msgspec

    sys.stdout.write(_escape_unseen(msgspec.json.format(msgspec.json.encode(data, enc_hook=str), indent=2)) + "\n")


def print_line(data: Any) -> None:
    """Print data as JSON in one line, escaped in the same way."""
    import msgspec

    sys.stdout.write(_escape_unseen(msgspec.json.encode(data, enc_hook=str)) + "\n")


def _escape_unseen(data: bytes) -> str:
    import re

    unseen = r"[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
    return re.sub(unseen, lambda found: f"\\u{ord(found[0]):04x}", data.decode())
