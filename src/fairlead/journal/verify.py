"""Verifying: whether a journal is what was written, and which record is not.

The chain shows what was changed, taken out or put in. The head beside the file shows what was cut off. Only an
anchor shows a journal that was made anew as a whole. Where something is missing that would tell, the verdict is
"unproven".
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from .anchor import Anchored
from .entry import COLUMNS, OLD_COLUMNS, Tally, columns_of, references, runs_of, tally_of
from .reading import Reader
from .store import changes_of, genesis, link, old_link, read_head, seal, sessions_of


class Checked(msgspec.Struct, frozen=True):
    """What was found. `record` is the first bad one, where it can be told."""

    records: int
    first: int | None = None
    last: int | None = None
    problem: str | None = None
    record: int | None = None
    anchored: int | None = None  # up to here, somebody else knows the digest, too
    newer: int = 0  # records that the head beside the file does not know of yet
    notes: tuple[str, ...] = ()
    doubt: str | None = None  # what is missing that would tell more, though it should be there
    erased: int = 0  # records whose body is erased; their digests still check

    @property
    def verdict(self) -> str:
        if self.problem is not None:
            return "bad"
        if self.doubt is not None:
            return "unproven"
        return "consistent" if self.anchored is None else "untampered"


class _Bad(Exception):
    def __init__(self, problem: str, record: int | None = None) -> None:
        super().__init__(problem)
        self.record = record


def verify(
    path: str | Path,
    anchors: Sequence[Anchored] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Checked:
    """Check every record of a journal, against anchors if there should be any. Raises `JournalError` if it is none."""
    path = Path(path)
    head = read_head(path)  # before the file is looked at: what is written meanwhile is newer, never older
    known = {anchor.seq for anchor in anchors or ()} | ({head.seq} if head is not None else set())
    walk = _Walk(known, progress)
    try:
        with Reader(path) as reader:
            walk.go(reader)
            doubt = walk.check_head(head, lambda: read_head(path)) or walk.check_erased()
            walk.check_sessions(reader)  # after the head: a record that was cut off is missed in its session, too
            anchored = walk.check_anchors(anchors or ())
            _check_indexes(reader.db)
    except _Bad as bad:
        return Checked(walk.count, walk.first, walk.seq, str(bad), bad.record, notes=tuple(walk.notes))
    except (sqlite3.Error, UnicodeError) as error:
        return Checked(walk.count, walk.first, walk.seq, f"the file is damaged: {error}", walk.seq + 1)
    if doubt is None and anchored is None and anchors is not None and walk.count:
        doubt = _vouched_for_nothing(anchors, walk.first)
    newer = 0 if head is None else walk.seq - head.seq
    return Checked(
        walk.count, walk.first, walk.seq or None, None, None, anchored, newer, tuple(walk.notes), doubt, walk.erased
    )


def _vouched_for_nothing(anchors: Sequence[Anchored], first: int | None) -> str:
    if not anchors:
        return "there are no anchors to compare with, so nobody can tell whether all of it was made anew"
    newest = max(anchor.seq for anchor in anchors)
    return (
        f"record {newest} is the newest that was anchored, and the journal begins with record {first}: only the "
        "journal itself says that the records between were pruned, and that not all of it was made anew"
    )


class _Walk:
    """Goes along the chain, record by record."""

    def __init__(self, known: set[int], progress: Callable[[int, int], None] | None) -> None:
        self._known = known  # the records whose digest somebody else has, too
        self._progress = progress
        self.count = 0
        self.first: int | None = None
        self.seq = 0
        self.digest = b""
        self.journal = ""
        self.notes: list[str] = []
        self._digests: dict[int, bytes] = {}  # of records that are there
        self._pruned: tuple[int, bytes] | None = None  # the last that is gone, and its digest, as a note says
        self._starts: set[tuple[int, str]] = set()  # where the chain may begin, since all before was pruned
        self._checked: set[bytes] = set()
        self._salted = False  # from the first record of schema 2 on, all are
        self._unknown: set[str] = set()  # sessions that are not all there: counts are at least those that are
        self._sessions: dict[str, list[Any]] = {}
        self._erased: set[int] = set()  # records whose body is gone
        self._noted: set[int] = set()  # those of which a later note says so

    @property
    def erased(self) -> int:
        return len(self._erased)

    def go(self, reader: Reader) -> None:
        db = reader.db
        db.execute("BEGIN")  # one moment of the file, whoever writes to it meanwhile
        changed = changes_of(db, reader.version)
        if changed:
            raise _Bad(f"the file's tables are not what fairlead makes: {'; '.join(changed)}")
        row = db.execute("SELECT value FROM meta WHERE key = 'journal'").fetchone()
        if row is None:
            raise _Bad("the journal has lost its name")
        if not isinstance(row[0], str):
            raise _Bad("the journal's name was changed")
        self.journal = row[0]
        (total,) = db.execute("SELECT count(*) FROM records").fetchone()
        runs = _by_record(db)
        salted = ("salt", "erased", *COLUMNS) if reader.version > 1 else ("NULL", "NULL", *OLD_COLUMNS, "NULL", "NULL")
        for row in db.execute(f"SELECT seq, digest, body, {', '.join(salted)} FROM records ORDER BY seq"):  # noqa: S608
            self._step(db, row, runs)
            self.count += 1
            if self._progress is not None and self.count % 1000 == 0:
                self._progress(self.count, total)
        for stray in runs(None):
            raise _Bad(f"record {stray} is missing, though its runs are there", stray)
        self._check_start()

    def _step(self, db: sqlite3.Connection, row: tuple[Any, ...], runs: Callable[[int | None], list[Any]]) -> None:
        seq, digest, body, salt, erased, *columns = row
        if not isinstance(body, bytes) or not isinstance(digest, bytes) or not isinstance(salt, (bytes, type(None))):
            raise _Bad(f"record {seq} was changed", seq)
        ran = runs(seq)
        chained = self._chaining(seq, body, salt, erased, columns, ran)
        if self.first is None:
            self.first = seq
            before = genesis(self.journal) if seq == 1 else None
            self._begins = (seq, chained, digest)
        else:
            if seq != self.seq + 1:
                raise _Bad(f"record {self.seq + 1} is missing", self.seq + 1)
            before = self.digest
        if before is not None and chained(before) != digest:
            raise _Bad(f"record {seq} was changed, or is not where it belongs", seq)
        self.seq, self.digest = seq, digest
        if seq in self._known:
            self._digests[seq] = digest
        if erased is None:
            self._check_content(db, seq, body, tuple(columns), ran)
        else:
            known = dict(zip(COLUMNS, columns, strict=True))
            if known["kind"] == "note":
                raise _Bad(f"record {seq} is a note whose body was erased: nobody can tell what it said", seq)
            self._erased.add(seq)
            self._count(seq, tuple(columns), tally_of(known), whole=False)  # as far as its columns tell

    def _chaining(
        self, seq: int, body: bytes, salt: bytes | None, erased: Any, columns: list[Any], runs: list[Any]
    ) -> Callable[[bytes], bytes]:
        """The digest that a record must have after the one before it. A pruned journal tells that one last."""
        if salt is None and erased is None:
            if self._salted:
                raise _Bad(f"record {seq} was changed", seq)
            return lambda before: old_link(before, seq, body)
        self._salted = True
        content = seal(salt, body) if salt is not None and erased is None else erased
        if not isinstance(content, bytes) or (erased is not None and (body or salt is not None)):
            raise _Bad(f"record {seq} was changed", seq)
        return lambda before: link(before, seq, columns, runs, content)

    def _check_content(
        self, db: sqlite3.Connection, seq: int, body: bytes, columns: tuple[Any, ...], runs: list[Any]
    ) -> None:
        try:
            told = msgspec.json.decode(body)
            known = columns_of(told)
            stored = known if self._salted else (*known[: len(OLD_COLUMNS)], *(None for _ in known[len(OLD_COLUMNS) :]))
            same = stored == columns and [list(run) for run in runs_of(told)] == runs
            wanted = references(told)
            self._count(seq, known, tally_of(told))
        except (msgspec.MsgspecError, ValueError, TypeError, KeyError, AttributeError):
            raise _Bad(f"record {seq} is not what was written", seq) from None
        if not same:
            raise _Bad(f"what is searched for in record {seq} was changed", seq)
        for digest in wanted - self._checked:
            row = db.execute("SELECT body FROM texts WHERE digest = ?", (digest,)).fetchone()
            if row is None:
                raise _Bad(f"record {seq} has lost a text ({digest.hex()[:12]})", seq)
            if not isinstance(row[0], bytes) or sha256(row[0]).digest() != digest:
                raise _Bad(f"a text of record {seq} was changed ({digest.hex()[:12]})", seq)
            self._checked.add(digest)
        if told.get("kind") == "note":
            self._heed(seq, told)

    def _heed(self, seq: int, note: dict[str, Any]) -> None:
        match note.get("note"):
            case "pruned":
                self._starts.add((int(note["through"]), str(note["digest"])))
            case "damaged":
                raise _Bad(f"before record {seq}, the journal was found damaged: {note.get('problem')}", seq)
            case "crashed":
                self.notes.append(f"record {seq}: process {note.get('pid')} crashed; its last moment may be lost")
            case "lost":
                self.notes.append(f"record {seq}: {note.get('records')} records could not be written")
            case "erased":
                self._noted |= self._erased.intersection(note["records"])
                self.notes.append(
                    f"record {seq}: {note.get('user')} erased the bodies of records {note.get('records')}"
                )

    def _count(self, seq: int, columns: tuple[Any, ...], tally: Tally, *, whole: bool = True) -> None:
        """Add a record to what the rows of sessions must say."""
        session = columns[4]
        if not isinstance(session, str):
            return
        if not whole or (self.first != 1 and session not in self._sessions):
            self._unknown.add(session)  # of a pruned journal, a session may have begun before
        for name, row in sessions_of([(seq, columns, tally)]).items():
            known = self._sessions.setdefault(name, row)
            if known is not row:
                known[0] = known[0] or row[0]
                known[2], known[3], known[4] = row[2], min(known[3], row[3]), max(known[4], row[4])
                known[5:] = [old + new for old, new in zip(known[5:], row[5:], strict=True)]

    def check_sessions(self, reader: Reader) -> None:
        """Compare the rows of sessions with the records. They count also what was pruned or erased."""
        if reader.version == 1:
            return
        left = dict(self._sessions)
        for name, *row in reader.db.execute("SELECT * FROM sessions"):
            known = left.pop(name, None)
            if known is None or not self._agrees(name, row, known):
                raise _Bad(f"what is counted for the session {name!r} was changed")
        for name in left:
            raise _Bad(f"nothing is counted for the session {name!r} any more")

    def _agrees(self, name: str, row: list[Any], known: list[Any]) -> bool:
        if name not in self._unknown:
            return row == known
        if not all(isinstance(value, int) for value in row[1:]):
            return False
        first, last, began, ended, *counts = row[1:]
        at_least = all(have >= seen for have, seen in zip(counts, known[5:], strict=True))
        return at_least and last == known[2] and first <= known[1] and began <= known[3] and ended >= known[4]

    def _check_start(self) -> None:
        if self.first is None or self.first == 1:
            return
        first, chained, digest = self._begins
        for through, before in self._starts:
            if through == first - 1 and chained(bytes.fromhex(before)) == digest:
                self._pruned = (through, bytes.fromhex(before))
                return
        raise _Bad(f"record {first - 1} is missing, and no note says that it was pruned", first - 1)

    def check_head(self, head: Any, again: Callable[[], Any]) -> str | None:
        """Compare the end of the chain with the head beside the file. Without one, that is a doubt."""
        if head is None:
            return "the head beside the file is missing, so nobody can tell whether records were cut off at the end"
        if head.journal != self.journal:
            raise _Bad("the head beside the file is another journal's")
        if head.seq > self.seq:
            raise _Bad(f"record {self.seq + 1} is missing: the head says that there were {head.seq}", self.seq + 1)
        known = genesis(self.journal) if head.seq == 0 and self.first in (None, 1) else self._digests.get(head.seq)
        if known is None and again() == head:  # and not that somebody has pruned the journal meanwhile
            raise _Bad("the head beside the file is older than all that is left, so records may have been cut off")
        if known is not None and known.hex() != head.digest:
            raise _Bad(f"record {head.seq} is not what the head beside the file says", head.seq)
        return None

    def check_erased(self) -> str | None:
        """A body that is gone without a note in the chain is a doubt: anybody may have taken it out."""
        gone = sorted(self._erased - self._noted)
        if not gone:
            return None
        return (
            f"the bodies of {len(gone)} records are gone, and no note in the chain says who erased them: the first is "
            f"that of record {gone[0]}"
        )

    def check_anchors(self, anchors: Sequence[Anchored]) -> int | None:
        """The newest record that an anchor vouches for.

        The digest of what was pruned must fit, too, but vouches for nothing: anybody who knows it can begin there.
        """
        vouched = [anchor for anchor in anchors if anchor.journal == self.journal]
        if anchors and not vouched:
            raise _Bad("the anchors are another journal's")
        for anchor in vouched:
            if anchor.seq > self.seq:
                raise _Bad(f"record {self.seq + 1} is missing: record {anchor.seq} was anchored", self.seq + 1)
            known = self._digests.get(anchor.seq)
            if known is None and self._pruned is not None and self._pruned[0] == anchor.seq:
                known = self._pruned[1]
            if known is not None and known.hex() != anchor.digest:
                raise _Bad(f"record {anchor.seq}, or one before it, is not what was anchored", anchor.seq)
        return max((anchor.seq for anchor in vouched if anchor.seq in self._digests), default=None)


def _by_record(db: sqlite3.Connection) -> Callable[[int | None], list[Any]]:
    """The runs of one record after another; of None, the records that runs are left of."""
    rows = iter(db.execute("SELECT seq, place, hook, outcome, took, control FROM runs ORDER BY seq, place"))
    ahead: list[Any] = []

    def of(seq: int | None) -> list[Any]:
        found: list[Any] = []
        for row in chain(ahead[:], rows):
            ahead.clear()
            if seq is None:
                return [row[0]]
            if not isinstance(row[0], int):
                raise _Bad(f"a run of record {seq}, or of a later one, was changed")
            if row[0] > seq:
                ahead.append(row)
                break
            if row[0] < seq:
                raise _Bad(f"record {row[0]} is missing, though its runs are there", row[0])
            found.append(list(row[1:]))
        return found

    return of


def _check_indexes(db: sqlite3.Connection) -> None:
    with closing(db.execute("PRAGMA integrity_check(1)")) as found:
        (said,) = found.fetchone()
    if said != "ok":
        raise _Bad(f"the file is damaged: {said}")
