"""Accepted changes: a file that says which differences a human wants, who that is, why, and until when.

[[accepted]]
change = "proceed -> deny"
hook = "no-force-push"
shape = "bash: git push --force*"   # a glob; leave it out for all shapes
who = "ana"
why = "force-push is off since March"
until = 2026-12-31
"""

from __future__ import annotations

import tomllib
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import msgspec

from ..errors import FairleadError, nearest
from ..glob import compile_glob
from .report import ChangeClass, DiffReport

KEYS = ("change", "hook", "shape", "who", "why", "until")
NEEDED = ("change", "who", "why", "until")


class Accepted(msgspec.Struct, frozen=True):
    """One accepted change."""

    change: str
    who: str
    why: str
    until: date
    hook: str | None = None
    shape: str | None = None

    def covers(self, change: ChangeClass) -> bool:
        """Whether a class is this change."""
        wanted = " ".join(self.change.replace("->", " -> ").split())
        return (
            wanted in (f"{change.before.control} -> {change.after.control}", f"{change.before} -> {change.after}")
            and (self.hook is None or self.hook in (change.before.hook, change.after.hook))
            and (self.shape is None or compile_glob(self.shape).fullmatch(change.shape) is not None)
        )

    def __str__(self) -> str:
        return f"{self.who}, until {self.until}: {self.why}"


def read_accepted(path: Path) -> list[Accepted]:
    """Read a file of accepted changes. Raises `FairleadError` for the first mistake."""
    try:
        data = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise FairleadError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FairleadError(f"{path} is not TOML: {error}") from None
    for key in data:
        if key != "accepted":
            raise FairleadError(f"{path}: unknown key {key!r}; accepted changes are written as [[accepted]] tables")
    entries = data.get("accepted", [])
    if not isinstance(entries, list):
        raise FairleadError(f"{path}: accepted changes are written as [[accepted]] tables")
    return [_read(entry, f"{path}: accepted change {number}") for number, entry in enumerate(entries, 1)]


def _read(entry: Any, where: str) -> Accepted:
    if not isinstance(entry, dict):
        raise FairleadError(f"{where} is not a table")
    for key in entry:
        if key not in KEYS:
            raise FairleadError(f"{where}: unknown key {key!r}{nearest(key, KEYS)}")
    for key in NEEDED:
        if not entry.get(key):
            raise FairleadError(f"{where} has no {key!r}: say {', '.join(NEEDED[1:-1])} and {NEEDED[-1]}")
    until = entry["until"]
    until = until.date() if isinstance(until, datetime) else until
    try:
        until = date.fromisoformat(until) if isinstance(until, str) else until
        if "->" not in entry["change"]:
            raise ValueError('change must be two controls, such as "deny -> proceed"')
        return msgspec.convert({**entry, "until": until}, Accepted)
    except (ValueError, TypeError) as error:
        raise FairleadError(f"{where}: {error}") from None


def accept(report: DiffReport, accepted: list[Accepted], today: date | None = None) -> None:
    """Mark the classes of a report that were accepted. What has expired counts for nothing, and is listed."""
    today = today or datetime.now(UTC).date()
    for change in report.changes:
        for one in accepted:
            if one.covers(change):
                if one.until < today:
                    report.expired.append(str(one))
                else:
                    change.accepted = str(one)
    report.expired = list(dict.fromkeys(report.expired))
    report.totals.accepted = sum(change.spread.count for change in report.changes if change.accepted is not None)
