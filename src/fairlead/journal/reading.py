"""Reading a journal: what was decided, filtered, one record in full, and what the hooks come to."""

from __future__ import annotations

import sqlite3
import time
from array import array
from collections.abc import Iterator
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import msgspec

from ..decision import Decision
from ..glob import compile_glob, is_exact
from ..record import hear
from .entry import references, unfold
from .errors import JournalError, NoJournal, NoRecord
from .store import SCHEMA, newer, version_of

PAGE = 500
_LONG = 9e9
"""Seconds: what SQLite takes as nanoseconds, and no clock shows."""
_FAILED = ("error", "timeout", "malformed", "quarantined", "dropped")


class Filter(msgspec.Struct, frozen=True):
    """Which records. What is None does not matter."""

    event: str | None = None
    tool: str | None = None  # a glob
    decision: str | None = None
    hook: str | None = None  # it ran, or decided
    session: str | None = None
    host: str | None = None
    agent: str | None = None
    since: float | None = None  # seconds since 1970
    until: float | None = None
    notes: bool = True

    def where(self) -> tuple[str, list[Any]]:
        """As SQL. `fits` is the reader's own function."""
        parts: list[str] = ["1"]
        values: list[Any] = []
        exact = {
            "event": self.event, "control": self.decision, "session": self.session, "host": self.host,
            "agent": self.agent, "tool": self.tool if self.tool is None or is_exact(self.tool) else None,
        }  # fmt: skip
        for column, value in exact.items():
            if value is not None:
                parts.append(f"{column} = ?")
                values.append(value)
        if self.tool is not None and not is_exact(self.tool):
            parts.append("fits(?, tool)")
            values.append(self.tool)
        if self.hook is not None:
            parts.append("(hook = ? OR seq IN (SELECT seq FROM runs WHERE hook = ?))")
            values += [self.hook, self.hook]
        for bound, sign in ((self.since, ">="), (self.until, "<")):
            if bound is not None:
                parts.append(f"at {sign} ?")
                values.append(int(min(max(bound, -_LONG), _LONG) * 1e9))
        if not self.notes:
            parts.append("kind = 'decision'")
        return " AND ".join(parts), values


_glob = lru_cache(64)(compile_glob)


def _fits(glob: str, tool: str | None) -> bool:
    return tool is not None and _glob(glob).fullmatch(tool) is not None


class Record(msgspec.Struct, frozen=True):
    """One record, its long texts in place."""

    seq: int
    digest: str
    body: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.body["id"])

    @property
    def at(self) -> float:
        return float(self.body["at"]) / 1e9

    @property
    def is_note(self) -> bool:
        return bool(self.body["kind"] == "note")

    @property
    def policy(self) -> str | None:
        """The policy id: the digest of what was in force."""
        return self.body.get("policy_id")

    @property
    def decision(self) -> Decision[Any]:
        """The decision, as it was. Raises `BadRecord` for a note."""
        return hear(self.body)


class HookStats(msgspec.Struct, frozen=True):
    """What one hook comes to. Times are in seconds; `share` is its part of the time of all hooks."""

    hook: str
    runs: int
    denials: int
    failures: int
    p50: float
    p99: float
    total: float
    share: float


class Reader:
    """A journal, open for reading. Others may write to it meanwhile."""

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        if not path.exists():
            raise NoJournal(
                f"there is no journal at {path} yet; keep one with Hooks(journal=Journal()) or `fairlead serve`"
            )
        self.path = path
        try:
            self.db = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=10, isolation_level=None)
        except sqlite3.Error as error:
            raise JournalError(f"the journal {path} cannot be read: {error}") from None
        try:
            version = version_of(self.db, path)
        except (sqlite3.Error, UnicodeError, JournalError) as error:
            self.db.close()
            if isinstance(error, JournalError):
                raise
            raise JournalError(f"the journal {path} cannot be read: {error}") from None
        self.db.create_function("fits", 2, _fits, deterministic=True)
        if version == 0:
            self.db.close()
            raise NoJournal(f"there is no journal at {path} yet: its first record was never written")
        if version > SCHEMA:
            self.db.close()
            raise newer(path, version)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.db.close()

    # --- records ----------------------------------------------------------------------------

    def records(self, which: Filter | None = None, *, limit: int | None = None, after: int = 0) -> Iterator[Record]:
        """Records in order; with a limit, the newest so many."""
        which = which or Filter()
        condition, values = which.where()
        if limit is None:
            yield from self._forward(condition, values, after)
            return
        query = f"SELECT seq, digest, body FROM records WHERE {condition} AND seq > ? ORDER BY seq DESC LIMIT ?"  # noqa: S608
        newest = list(self._run(query, [*values, after, limit]))
        yield from (self._record(*row) for row in reversed(newest))

    def _forward(self, condition: str, values: list[Any], after: int) -> Iterator[Record]:
        query = f"SELECT seq, digest, body FROM records WHERE {condition} AND seq > ? ORDER BY seq LIMIT {PAGE}"  # noqa: S608
        while True:  # page by page: a long look would keep the file from being tidied
            page = list(self._run(query, [*values, after]))
            for row in page:
                yield self._record(*row)
            if len(page) < PAGE:
                return
            after = page[-1][0]

    def record(self, name: str) -> Record:
        """One record, by its id or its number."""
        column = "seq" if name.isdigit() else "id"
        for row in self._run(f"SELECT seq, digest, body FROM records WHERE {column} = ?", [name]):  # noqa: S608
            return self._record(*row)
        raise NoRecord(f"the journal {self.path} has no record {name!r}; `fairlead log` lists them")

    def follow(
        self, which: Filter | None = None, *, after: int | None = None, every: float = 0.2
    ) -> Iterator[Record | None]:
        """Records as they come, from now or after some record, for ever. None is given where there was nothing new."""
        if after is None:
            after = self._last()
        while True:
            now, found = self._last(), False
            for record in self.records(which, after=after):
                found, now = True, max(now, record.seq)
                yield record
            after = now
            if not found:
                yield None
                time.sleep(every)

    def _last(self) -> int:
        (last,) = self.db.execute("SELECT coalesce(max(seq), 0) FROM records").fetchone()
        return int(last)

    def _record(self, seq: int, digest: bytes, body: bytes) -> Record:
        try:
            folded = msgspec.json.decode(body)
            wanted = references(folded)
            texts = {key: text for key in wanted if (text := self._text(key)) is not None}
            unfolded = {key: unfold(value, texts) for key, value in folded.items()}
            if "policy" in folded:
                unfolded["policy_id"] = folded["policy"]["$text"]
            return Record(seq, digest.hex(), unfolded)
        except (msgspec.MsgspecError, ValueError, TypeError, KeyError, AttributeError):
            raise JournalError(f"record {seq} of {self.path} is damaged; run `fairlead verify`") from None

    def _text(self, digest: bytes) -> bytes | None:
        row = self.db.execute("SELECT body FROM texts WHERE digest = ?", (digest,)).fetchone()
        return None if row is None else bytes(row[0])

    def _run(self, query: str, values: list[Any]) -> Iterator[Any]:
        try:
            with closing(self.db.execute(query, values)) as cursor:
                yield from cursor
        except (sqlite3.Error, UnicodeError) as error:
            raise JournalError(f"the journal {self.path} cannot be read: {error}; run `fairlead verify`") from None

    # --- what it comes to -------------------------------------------------------------------

    def stats(self, which: Filter | None = None) -> list[HookStats]:
        """Per hook: how often it ran, refused and failed, and how long it took. The most costly first."""
        condition, values = (which or Filter()).where()
        query = "SELECT hook, outcome, took, control FROM runs"
        if condition != "1":
            query += f" WHERE seq IN (SELECT seq FROM records WHERE {condition})"  # noqa: S608
        taken: dict[str, array[int]] = {}
        denials: dict[str, int] = {}
        failures: dict[str, int] = {}
        for hook, outcome, took, control in self._run(query, values):
            if not isinstance(hook, str) or not isinstance(took, int):
                raise JournalError(f"the runs in {self.path} are damaged; run `fairlead verify`")
            taken.setdefault(hook, array("q")).append(took)
            if control == "deny":
                denials[hook] = denials.get(hook, 0) + 1
            if outcome in _FAILED:
                failures[hook] = failures.get(hook, 0) + 1
        everything = sum(map(sum, taken.values())) or 1
        found = [
            _stats(hook, sorted(times), denials.get(hook, 0), failures.get(hook, 0), everything)
            for hook, times in taken.items()
        ]
        return sorted(found, key=lambda stats: (-stats.total, stats.hook))

    def counts(self, which: Filter | None = None) -> dict[str, int]:
        """How many decisions there are of each control."""
        condition, values = (which or Filter()).where()
        query = f"SELECT control, count(*) FROM records WHERE {condition} AND kind = 'decision' GROUP BY control"  # noqa: S608
        return dict(self._run(query, values))


def _stats(hook: str, times: list[int], denials: int, failures: int, everything: int) -> HookStats:
    total = sum(times)
    p50, p99 = (times[min(int(len(times) * part), len(times) - 1)] / 1e9 for part in (0.5, 0.99))
    return HookStats(hook, len(times), denials, failures, p50, p99, total / 1e9, total / everything)
