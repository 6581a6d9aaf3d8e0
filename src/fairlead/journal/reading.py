"""Reads a journal: records, filtered or one by one, and statistics of hooks and sessions."""

from __future__ import annotations

import sqlite3
import time
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import msgspec

from ..decision import Decision
from ..glob import compile_glob, is_exact
from ..wire.decisions import decode_decision
from .entry import COLUMNS, FAILED, REFUSED, STOPPING, WOULD, references, unfold
from .errors import JournalError, NoJournal, NoRecord
from .schema import EFFECT, RARE, SCHEMA, newer_error, version_of

PAGE = 500
_LONG = 9e9
"""Seconds that SQLite can store as nanoseconds. No clock shows more."""


class Filter(msgspec.Struct, frozen=True):
    """Selects records. A field that is None matches all."""

    event: str | None = None
    tool: str | None = None  # a glob
    decision: str | None = None  # the effective control
    hook: str | None = None  # that ran, or decided
    session: str | None = None
    host: str | None = None
    agent: str | None = None
    since: float | None = None  # seconds since 1970
    until: float | None = None
    notes: bool = True
    user: str | None = None
    newest: int | None = None  # only among so many of the newest records

    def where(self, schema: int = SCHEMA) -> tuple[str, list[Any]]:
        """The SQL condition for a file of this schema, and its values.

        `Reader` defines the SQL function `fits`.
        """
        parts: list[str] = ["1"]
        values: list[Any] = []
        effect, user = (EFFECT, "user") if schema > 1 else ("control", "NULL")
        exact = {
            "event": self.event, effect: self.decision, "session": self.session, "host": self.host,
            "agent": self.agent, "tool": self.tool if self.tool is None or is_exact(self.tool) else None,
            user: self.user,
        }  # fmt: skip
        if self.decision not in (None, "proceed") and schema > 1:
            parts.append(RARE)  # so that SQLite uses its index
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
        if self.newest is not None:
            parts.append("seq > (SELECT max(seq) FROM records) - ?")
            values.append(self.newest)
        if not self.notes:
            parts.append("kind = 'decision'")
        return " AND ".join(parts), values


_glob = lru_cache(64)(compile_glob)


def _fits(glob: str, tool: str | None) -> bool:
    return tool is not None and _glob(glob).fullmatch(tool) is not None


class Record(msgspec.Struct, frozen=True):
    """One record, with its long texts in place."""

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
    def began(self) -> float:
        """When the dispatch began, or the time in the transcript of an imported step.

        Sort records by number, never by time.
        """
        step = self.body.get("step") or {}
        metadata = step.get("metadata") if isinstance(step, dict) else None
        if isinstance(metadata, dict) and metadata.get("imported") is True and isinstance(metadata.get("at"), str):
            with suppress(ValueError):
                return datetime.fromisoformat(metadata["at"]).timestamp()
        return self.at - float(self.body.get("took") or 0.0)

    @property
    def effect(self) -> str | None:
        """What the host carried out; None for a note."""
        found = self.body.get("effect") or self.body.get("control")
        return None if found is None else str(found)

    @property
    def is_whole(self) -> bool:
        """Whether the decision is complete: all of it was written, and it was not erased."""
        return not self.is_note and "unwritable" not in self.body and "erased" not in self.body

    @property
    def is_note(self) -> bool:
        return bool(self.body["kind"] == "note")

    @property
    def policy(self) -> str | None:
        """The policy id: the digest of the policy that was in force."""
        return self.body.get("policy_id")

    @property
    def policy_hooks(self) -> list[dict[str, Any]]:
        """The hooks that were registered, each with its options, form and version."""
        policy = self.body.get("policy") or []
        found = policy.get("hooks") if isinstance(policy, dict) else policy  # a list, where no tools were described
        return [hook for hook in found if isinstance(hook, dict)] if isinstance(found, list) else []

    @property
    def decision(self) -> Decision[Any]:
        """The recorded decision. Raises `BadRecord` for a note."""
        return decode_decision(self.body)


class HookStats(msgspec.Struct, frozen=True):
    """The statistics of one hook.

    Times are in seconds; `share` is its part of the time of all hooks.

    `denials` were carried out. `monitored` counts denials and questions of a hook that is not enforced.
    """

    hook: str
    runs: int
    denials: int
    failures: int
    p50: float
    p99: float
    total: float
    share: float
    monitored: int = 0


class SessionRow(msgspec.Struct, frozen=True):
    """The counts of one session, including pruned records. Times are in nanoseconds since 1970."""

    session: str
    host: str | None
    first: int
    last: int
    began: int
    ended: int
    records: int
    denied: int
    failed: int
    changed: int
    asked: int


class Reader:
    """A journal that is open for reading. Other processes may write to it at the same time."""

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        if not path.exists():
            raise NoJournal(
                f"there is no journal at {path} yet; the first step of an agent creates it: an agent CLI after "
                "`fairlead install`, or your own agent with Hooks(journal=Journal())"
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
            raise newer_error(path, version)
        self.version = version

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.db.close()

    # --- records ----------------------------------------------------------------------------

    def records(self, which: Filter | None = None, *, limit: int | None = None, after: int = 0) -> Iterator[Record]:
        """The records in order; with a limit, only the newest ones."""
        which = which or Filter()
        condition, values = which.where(self.version)
        if limit is None:
            yield from self._forward(condition, values, after)
            return
        query = f"SELECT seq, digest, body FROM records WHERE {condition} AND seq > ? ORDER BY seq DESC LIMIT ?"  # noqa: S608
        newest = list(self._run(query, [*values, after, limit]))
        yield from (self._record(*row) for row in reversed(newest))

    def _forward(self, condition: str, values: list[Any], after: int) -> Iterator[Record]:
        query = f"SELECT seq, digest, body FROM records WHERE {condition} AND seq > ? ORDER BY seq LIMIT {PAGE}"  # noqa: S608
        while True:  # page by page, because a long read would keep SQLite from emptying its log
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
        """Yield new records for ever, from now on or after a record.

        Yields None if there is no new one.
        """
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
        if not body:
            return Record(seq, digest.hex(), self._without_body(seq))
        try:
            folded = msgspec.json.decode(body)
            texts = {key: text for key in references(folded) if (text := self.text(key)) is not None}
            unfolded = {key: unfold(value, texts) for key, value in folded.items()}
            if "policy" in folded:
                unfolded["policy_id"] = folded["policy"]["$text"]
            return Record(seq, digest.hex(), unfolded)
        except (msgspec.MsgspecError, ValueError, TypeError, KeyError, AttributeError):
            raise JournalError(f"record {seq} of {self.path} is damaged; run `fairlead verify`") from None

    def _without_body(self, seq: int) -> dict[str, Any]:
        """The body of an erased record, as far as its columns tell."""
        (row,) = self._run(f"SELECT {', '.join(COLUMNS)} FROM records WHERE seq = ?", [seq])  # noqa: S608
        known = dict(zip(COLUMNS, row, strict=True))
        step = {
            "event": known["event"], "session_id": known["session"], "host": known["host"], "tool": known["tool"],
            "agent": known["agent"] and {"name": known["agent"]},
        }  # fmt: skip
        winner = {"hook": known["hook"], "cause": known["cause"]}
        kept = {
            name: known[name] for name in ("id", "at", "kind", "control", "effect", "user") if known[name] is not None
        }
        if kept["kind"] == "note":
            return kept | {"note": "erased body", "erased": True}
        return kept | {
            "erased": True,
            "step": {name: value for name, value in step.items() if value is not None},
            **({} if winner["hook"] is None else {"winner": winner}),
        }

    def text(self, digest: bytes) -> bytes | None:
        """The JSON of a long text; None if it is gone."""
        row = self.db.execute("SELECT body FROM texts WHERE digest = ?", (digest,)).fetchone()
        return None if row is None else bytes(row[0])

    def _run(self, query: str, values: list[Any]) -> Iterator[Any]:
        try:
            with closing(self.db.execute(query, values)) as cursor:
                yield from cursor
        except (sqlite3.Error, UnicodeError) as error:
            raise JournalError(f"the journal {self.path} cannot be read: {error}; run `fairlead verify`") from None

    # --- statistics -------------------------------------------------------------------------

    def stats(self, which: Filter | None = None) -> list[HookStats]:
        """Per hook: its runs, denials, failures and times. The most costly hook comes first."""
        return hook_stats([self], which)

    def add_to(self, totals: HookTotals, which: Filter | None) -> None:
        """Add the runs of this journal's hooks."""
        condition, values = (which or Filter()).where(self.version)
        query = "SELECT hook, outcome, took, control FROM runs"
        if condition != "1":
            query += f" WHERE seq IN (SELECT seq FROM records WHERE {condition})"  # noqa: S608
        totals.denials.update(self._denials(condition, values))
        for hook, outcome, took, control in self._run(query, values):
            if not isinstance(hook, str) or not isinstance(took, int):
                raise JournalError(f"the runs in {self.path} are damaged; run `fairlead verify`")
            totals.taken.setdefault(hook, array("q")).append(took)
            if isinstance(control, str) and control.startswith(WOULD) and control.removeprefix(WOULD) in STOPPING:
                totals.monitored[hook] += 1
            if outcome in FAILED:
                totals.failures[hook] += 1

    def _denials(self, condition: str, values: list[Any]) -> dict[str, int]:
        """How many operations each hook stopped, with a denial or with the same effect."""
        effect = EFFECT if self.version > 1 else "records.control"
        rare = f"AND {RARE} AND " if self.version > 1 else "AND "
        words = ", ".join(f"'{word}'" for word in REFUSED)
        refused = f"SELECT seq, hook FROM records WHERE {condition} {rare}{effect} IN ({words})"  # noqa: S608
        query = (
            f"SELECT runs.hook, count(DISTINCT seq) FROM ({refused}) AS refused JOIN runs USING (seq) "  # noqa: S608
            f"WHERE runs.control IN ({words}) OR (runs.outcome = 'verdict' AND runs.hook = refused.hook) "
            "GROUP BY runs.hook"
        )
        return dict(self._run(query, values))

    def rule_verdicts(self, which: Filter | None = None) -> Iterator[tuple[str, str, str]]:
        """The verdicts of packs, oldest first: the rule, the control ("would deny" if it was not enforced), the target.

        Only what would stop a call is listed.
        """
        condition, values = (which or Filter()).where(self.version)
        words = ", ".join(f"'{prefix}{word}'" for word in STOPPING for prefix in ("", WOULD))
        query = (
            f"SELECT seq, digest, body FROM records WHERE {condition} AND "  # noqa: S608
            f"seq IN (SELECT seq FROM runs WHERE control IN ({words})) ORDER BY seq"
        )
        for row in self._run(query, values):
            body = self._record(*row).body
            for contribution in body.get("said") or ():
                yield from _rule_verdicts(contribution, body["step"])

    def counts(self, which: Filter | None = None) -> dict[str, int]:
        """The number of decisions per effective control."""
        condition, values = (which or Filter()).where(self.version)
        effect = EFFECT if self.version > 1 else "control"
        query = f"SELECT {effect}, count(*) FROM records WHERE {condition} AND kind = 'decision' GROUP BY 1"  # noqa: S608
        return dict(self._run(query, values))

    def sessions(self, *, limit: int = 50, before: int | None = None) -> list[SessionRow]:
        """The newest sessions first.

        `before` skips those whose last record has this number or a higher one.

        Empty for a file of schema 1, which has no counts.
        """
        if self.version < 2:
            return []
        query = "SELECT * FROM sessions WHERE last < ? ORDER BY last DESC LIMIT ?"
        return [SessionRow(*row) for row in self._run(query, [before or 1 << 62, limit])]

    def session(self, session: str) -> SessionRow | None:
        """One session; None if the journal has none of that id, or is of schema 1, which has no counts."""
        if self.version < 2:
            return None
        for row in self._run("SELECT * FROM sessions WHERE session = ?", [session]):
            return SessionRow(*row)
        return None


def _rule_verdicts(contribution: dict[str, Any], step: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The verdict of a contribution, if it is one of a pack's rule that would stop the call."""
    for one, prefix in ((contribution, ""), (contribution.get("monitored") or {}, WOULD)):
        verdict = one.get("verdict") or {}
        metadata, control = verdict.get("metadata"), verdict.get("control")
        if isinstance(metadata, dict) and isinstance(rule := metadata.get("rule"), str) and control in STOPPING:
            target = step.get("target") or {}
            paths = " ".join(map(str, target.get("paths") or ()))
            yield (
                rule,
                f"{prefix}{control}",
                str(target.get("command") or paths or target.get("url") or step.get("tool")),
            )


class RuleStats(msgspec.Struct):
    """How often a rule of a pack spoke, and the newest call that it spoke about."""

    rule: str
    denied: int = 0
    asked: int = 0
    would_stop: int = 0
    """How often it would have denied or asked, if its pack were enforced."""
    last: str = ""


def rule_stats(readers: Iterable[Reader], which: Filter | None = None) -> list[RuleStats]:
    """The statistics of each rule of a pack that spoke. The one that spoke most often comes first."""
    found: dict[str, RuleStats] = {}
    for reader in readers:
        for rule, control, target in reader.rule_verdicts(which):
            stats = found.setdefault(rule, RuleStats(rule))
            stats.last = target
            if control.startswith(WOULD):
                stats.would_stop += 1
            elif control == "ask":
                stats.asked += 1
            else:
                stats.denied += 1
    return sorted(found.values(), key=lambda one: (-one.denied - one.asked - one.would_stop, one.rule))


class HookTotals(msgspec.Struct):
    """The runs of hooks in one or several journals, from which `HookStats` are computed."""

    taken: dict[str, array[int]] = {}
    denials: Counter[str] = msgspec.field(default_factory=Counter)
    failures: Counter[str] = msgspec.field(default_factory=Counter)
    monitored: Counter[str] = msgspec.field(default_factory=Counter)


def hook_stats(readers: Iterable[Reader], which: Filter | None = None) -> list[HookStats]:
    """The statistics of each hook over several journals. The most costly hook comes first."""
    totals = HookTotals()
    for reader in readers:
        reader.add_to(totals, which)
    everything = sum(map(sum, totals.taken.values())) or 1
    found = [_stats(hook, sorted(times), totals, everything) for hook, times in totals.taken.items()]
    return sorted(found, key=lambda stats: (-stats.total, stats.hook))


def _stats(hook: str, times: list[int], totals: HookTotals, everything: int) -> HookStats:
    total = sum(times)
    p50, p99 = (times[min(int(len(times) * part), len(times) - 1)] / 1e9 for part in (0.5, 0.99))
    denials, failures, monitored = totals.denials[hook], totals.failures[hook], totals.monitored[hook]
    return HookStats(hook, len(times), denials, failures, p50, p99, total / 1e9, total / everything, monitored)
