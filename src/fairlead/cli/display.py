"""Showing things to a person: colours only on a terminal, and nothing that could take the terminal over."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from ..escaping import escape as escape  # which most of the command line takes from here

_COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34"}


def paint(text: str, *colours: str, to: TextIO | None = None) -> str:
    """Text in colour, if anybody can see it."""
    if not _in_colour(to or sys.stdout):
        return text
    codes = ";".join(_COLOURS[colour] for colour in colours)
    return f"\x1b[{codes}m{text}\x1b[0m"


def _in_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def columns(rows: Iterable[Sequence[str]], indent: str = "") -> str:
    """Rows in columns as wide as they must be, the last one left to run."""
    table = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*(row[:-1] for row in table), strict=True)]
    lines = (
        indent + "  ".join([*(cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=True)), row[-1]])
        for row in table
    )
    return "\n".join(line.rstrip() for line in lines)


def short(value: Any, limit: int = 100) -> str:
    """A value in one line, as JSON."""
    import msgspec

    text = escape(value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode())
    return text if len(text) <= limit else text[: limit - 3] + "..."


def print_json(data: Any) -> None:
    """Data, as JSON in which nothing is left that a terminal could take for something else."""
    import msgspec

    sys.stdout.write(_harmless(msgspec.json.format(msgspec.json.encode(data, enc_hook=str), indent=2)) + "\n")


def print_line(data: Any) -> None:
    """The same, in one line."""
    import msgspec

    sys.stdout.write(_harmless(msgspec.json.encode(data, enc_hook=str)) + "\n")


def _harmless(data: bytes) -> str:
    import re

    unseen = r"[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
    return re.sub(unseen, lambda found: f"\\u{ord(found[0]):04x}", data.decode())
