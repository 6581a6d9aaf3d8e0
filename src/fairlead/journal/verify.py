"""Verifies a journal: whether it is what was written, and which record is not.

The chain shows records that were changed, removed or inserted. The head beside the file shows records that were cut
off. Only an anchor shows a journal that was forged as a whole. If a piece of evidence is missing, the verdict is
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

from .anchor import AnchoredHead
from .digest_chain import genesis, link, old_link, seal
from .entry import COLUMNS, OLD_COLUMNS, SessionCounts, columns_of, counts_of, references, runs_of
from .reading import Reader
from .schema import changes_of
from .store import read_head, sessions_of


class VerifyResult(msgspec.Struct, frozen=True):
    """The result. `record` is the first bad record, if that is known."""

    records: int
    first: int | None = None
    last: int | None = None
    problem: str | None = None
    record: int | None = None
    anchored: int | None = None  # the newest record whose digest an anchor confirms
    newer: int = 0  # records after the head
    notes: tuple[str, ...] = ()
    doubt: str | None = None  # which evidence is missing
    erased: int = 0  # records whose body is erased; their digests still verify

    @property
    def verdict(self) -> str:
        if self.problem is not None:
            return "bad"
        if self.doubt is not None:
            return "unproven"
        return "consistent" if self.anchored is None else "untampered"


class _Problem(Exception):
    def __init__(self, problem: str, record: int | None = None) -> None:
        super().__init__(problem)
        self.record = record


def verify(
    path: str | Path,
    anchors: Sequence[AnchoredHead] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> VerifyResult:
    """Check every record of a journal, and its anchors if it should have any.

    Raises `JournalError` for a file that is not a journal.
    """
    path = Path(path)
    head = read_head(path)  # first, so that records written in the meantime are newer than the head
    known = {anchor.seq for anchor in anchors or ()} | ({head.seq} if head is not None else set())
    walk = _Walk(known, progress)
    try:
        with Reader(path) as reader:
            walk.go(reader)
            doubt = walk.check_head(head, lambda: read_head(path)) or walk.check_erased()
            walk.check_sessions(reader)  # after the head, because a cut-off record is also missing in its session
            anchored = walk.check_anchors(anchors or ())
            _check_indexes(reader.db)
    except _Problem as bad:
        return VerifyResult(walk.count, walk.first, walk.seq, str(bad), bad.record, notes=tuple(walk.notes))
    except (sqlite3.Error, UnicodeError) as error:
        return VerifyResult(walk.count, walk.first, walk.seq, f"the file is damaged: {error}", walk.seq + 1)
    if doubt is None and anchored is None and anchors is not None and walk.count:
        doubt = _no_anchor_doubt(anchors, walk.first)
    newer = 0 if head is None else walk.seq - head.seq
    return VerifyResult(
        walk.count, walk.first, walk.seq or None, None, None, anchored, newer, tuple(walk.notes), doubt, walk.erased
    )


def _no_anchor_doubt(anchors: Sequence[AnchoredHead], first: int | None) -> str:
    if not anchors:
        return "there are no anchors to compare with, so all of it could be forged"
    newest = max(anchor.seq for anchor in anchors)
    return (
        f"record {newest} is the newest that was anchored, and the journal begins with record {first}: only the "
        "journal itself says that the records between were pruned, so all of it could be forged"
    )


class _Walk:
    """Checks the chain record by record, and collects what the other checks need."""

    def __init__(self, known: set[int], progress: Callable[[int, int], None] | None) -> None:
        self._known = known  # the records whose digest the head or an anchor has
        self._progress = progress
        self.count = 0
        self.first: int | None = None
        self.seq = 0
        self.digest = b""
        self.journal = ""
        self.notes: list[str] = []
        self._digests: dict[int, bytes] = {}  # of the records in `_known`
        self._pruned: tuple[int, bytes] | None = None  # the last pruned record and its digest, from a note
        self._starts: set[tuple[int, str]] = set()  # where the chain may begin after a pruning
        self._checked: set[bytes] = set()
        self._salted = False  # all records are, from the first of schema 2 on
        self._unknown: set[str] = set()  # sessions with missing records: their counts may be higher
        self._sessions: dict[str, list[Any]] = {}
        self._erased: set[int] = set()  # records without a body
        self._noted: set[int] = set()  # erased records that a later note names

    @property
    def erased(self) -> int:
        return len(self._erased)

    def go(self, reader: Reader) -> None:
        db = reader.db
        db.execute("BEGIN")  # one snapshot, while others may write
        changed = changes_of(db, reader.version)
        if changed:
            raise _Problem(f"the file's tables are not what fairlead makes: {'; '.join(changed)}")
        row = db.execute("SELECT value FROM meta WHERE key = 'journal'").fetchone()
        if row is None:
            raise _Problem("the journal has lost its name")
        if not isinstance(row[0], str):
            raise _Problem("the journal's name was changed")
        self.journal = row[0]
        (total,) = db.execute("SELECT count(*) FROM records").fetchone()
        runs = _by_record(db)
        salted = ("salt", "erased", *COLUMNS) if reader.version > 1 else ("NULL", "NULL", *OLD_COLUMNS, "NULL", "NULL")
        for row in db.execute(f"SELECT seq, digest, body, {', '.join(salted)} FROM records ORDER BY seq"):  # noqa: S608
            self._check_record(db, row, runs)
            self.count += 1
            if self._progress is not None and self.count % 1000 == 0:
                self._progress(self.count, total)
        for stray in runs(None):
            raise _Problem(f"record {stray} is missing, though its runs are there", stray)
        self._check_start()

    def _check_record(
        self, db: sqlite3.Connection, row: tuple[Any, ...], runs: Callable[[int | None], list[Any]]
    ) -> None:
        seq, digest, body, salt, erased, *columns = row
        if not isinstance(body, bytes) or not isinstance(digest, bytes) or not isinstance(salt, (bytes, type(None))):
            raise _Problem(f"record {seq} was changed", seq)
        ran = runs(seq)
        chained = self._chaining(seq, body, salt, erased, columns, ran)
        if self.first is None:
            self.first = seq
            before = genesis(self.journal) if seq == 1 else None
            self._begins = (seq, chained, digest)
        else:
            if seq != self.seq + 1:
                raise _Problem(f"record {self.seq + 1} is missing", self.seq + 1)
            before = self.digest
        if before is not None and chained(before) != digest:
            raise _Problem(f"record {seq} was changed, or is not where it belongs", seq)
        self.seq, self.digest = seq, digest
        if seq in self._known:
            self._digests[seq] = digest
        if erased is None:
            self._check_content(db, seq, body, tuple(columns), ran)
        else:
            known = dict(zip(COLUMNS, columns, strict=True))
            if known["kind"] == "note":
                raise _Problem(f"record {seq} is a note whose body was erased, so its content is unknown", seq)
            self._erased.add(seq)
            self._count(seq, tuple(columns), counts_of(known), whole=False)  # as far as its columns show

    def _chaining(
        self, seq: int, body: bytes, salt: bytes | None, erased: Any, columns: list[Any], runs: list[Any]
    ) -> Callable[[bytes], bytes]:
        """A function from the digest before a record to the digest that the record must have.

        The note of a pruning, which has the digest before the first record, comes after it.
        """
        if salt is None and erased is None:
            if self._salted:
                raise _Problem(f"record {seq} was changed", seq)
            return lambda before: old_link(before, seq, body)
        self._salted = True
        content = seal(salt, body) if salt is not None and erased is None else erased
        if not isinstance(content, bytes) or (erased is not None and (body or salt is not None)):
            raise _Problem(f"record {seq} was changed", seq)
        return lambda before: link(before, seq, columns, runs, content)

    def _check_content(
        self, db: sqlite3.Connection, seq: int, body: bytes, columns: tuple[Any, ...], runs: list[Any]
    ) -> None:
        try:
            decoded = msgspec.json.decode(body)
            known = columns_of(decoded)
            stored = known if self._salted else (*known[: len(OLD_COLUMNS)], *(None for _ in known[len(OLD_COLUMNS) :]))
            same = stored == columns and [list(run) for run in runs_of(decoded)] == runs
            texts = references(decoded)
            self._count(seq, known, counts_of(decoded))
        except (msgspec.MsgspecError, ValueError, TypeError, KeyError, AttributeError):
            raise _Problem(f"record {seq} is not what was written", seq) from None
        if not same:
            raise _Problem(f"what is searched for in record {seq} was changed", seq)
        for digest in texts - self._checked:
            row = db.execute("SELECT body FROM texts WHERE digest = ?", (digest,)).fetchone()
            if row is None:
                raise _Problem(f"record {seq} has lost a text ({digest.hex()[:12]})", seq)
            if not isinstance(row[0], bytes) or sha256(row[0]).digest() != digest:
                raise _Problem(f"a text of record {seq} was changed ({digest.hex()[:12]})", seq)
            self._checked.add(digest)
        if decoded.get("kind") == "note":
            self._read_note(seq, decoded)

    def _read_note(self, seq: int, note: dict[str, Any]) -> None:
        match note.get("note"):
            case "pruned":
                self._starts.add((int(note["through"]), str(note["digest"])))
            case "damaged":
                raise _Problem(f"before record {seq}, the journal was found damaged: {note.get('problem')}", seq)
            case "crashed":
                self.notes.append(f"record {seq}: process {note.get('pid')} crashed; its last moment may be lost")
            case "lost":
                self.notes.append(f"record {seq}: {note.get('records')} records could not be written")
            case "erased":
                self._noted |= self._erased.intersection(note["records"])
                self.notes.append(
                    f"record {seq}: {note.get('user')} erased the bodies of records {note.get('records')}"
                )

    def _count(self, seq: int, columns: tuple[Any, ...], counts: SessionCounts, *, whole: bool = True) -> None:
        """Add a record to the expected rows of sessions."""
        session = columns[4]
        if not isinstance(session, str):
            return
        if not whole or (self.first != 1 and session not in self._sessions):
            self._unknown.add(session)  # the session may have begun before the pruning
        for name, row in sessions_of([(seq, columns, counts)]).items():
            known = self._sessions.setdefault(name, row)
            if known is not row:
                known[0] = known[0] or row[0]
                known[2], known[3], known[4] = row[2], min(known[3], row[3]), max(known[4], row[4])
                known[5:] = [old + new for old, new in zip(known[5:], row[5:], strict=True)]

    def check_sessions(self, reader: Reader) -> None:
        """Compare the rows of sessions with the records.

        The rows also count pruned and erased records.
        """
        if reader.version == 1:
            return
        left = dict(self._sessions)
        for name, *row in reader.db.execute("SELECT * FROM sessions"):
            known = left.pop(name, None)
            if known is None or not self._agrees(name, row, known):
                raise _Problem(f"what is counted for the session {name!r} was changed")
        for name in left:
            raise _Problem(f"nothing is counted for the session {name!r} any more")

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
        raise _Problem(f"record {first - 1} is missing, and no note says that it was pruned", first - 1)

    def check_head(self, head: Any, again: Callable[[], Any]) -> str | None:
        """Compare the end of the chain with the head. Returns a doubt if there is no head."""
        if head is None:
            return "the head beside the file is missing, so records may have been cut off at the end"
        if head.journal != self.journal:
            raise _Problem("the head beside the file is another journal's")
        if head.seq > self.seq:
            raise _Problem(f"record {self.seq + 1} is missing: the head says that there were {head.seq}", self.seq + 1)
        known = genesis(self.journal) if head.seq == 0 and self.first in (None, 1) else self._digests.get(head.seq)
        if known is None and again() == head:  # otherwise, the journal was pruned in the meantime
            raise _Problem("the head beside the file is older than all that is left, so records may have been cut off")
        if known is not None and known.hex() != head.digest:
            raise _Problem(f"record {head.seq} is not what the head beside the file says", head.seq)
        return None

    def check_erased(self) -> str | None:
        """Return a doubt if a body is missing and no note in the chain says who erased it."""
        gone = sorted(self._erased - self._noted)
        if not gone:
            return None
        return (
            f"the bodies of {len(gone)} records are gone, and no note in the chain says who erased them: the first is "
            f"that of record {gone[0]}"
        )

    def check_anchors(self, anchors: Sequence[AnchoredHead]) -> int | None:
        """The newest record whose digest an anchor confirms.

        The digest of the last pruned record must match, too, but confirms nothing: an attacker who knows it can forge
        a chain that begins there.
        """
        own = [anchor for anchor in anchors if anchor.journal == self.journal]
        if anchors and not own:
            raise _Problem("the anchors are another journal's")
        for anchor in own:
            if anchor.seq > self.seq:
                raise _Problem(f"record {self.seq + 1} is missing: record {anchor.seq} was anchored", self.seq + 1)
            known = self._digests.get(anchor.seq)
            if known is None and self._pruned is not None and self._pruned[0] == anchor.seq:
                known = self._pruned[1]
            if known is not None and known.hex() != anchor.digest:
                raise _Problem(f"record {anchor.seq}, or one before it, is not what was anchored", anchor.seq)
        return max((anchor.seq for anchor in own if anchor.seq in self._digests), default=None)


def _by_record(db: sqlite3.Connection) -> Callable[[int | None], list[Any]]:
    """A function that returns the runs of one record after another.

    With None, it returns the number of a record that is missing although runs of it are left.
    """
    rows = iter(db.execute("SELECT seq, place, hook, outcome, took, control FROM runs ORDER BY seq, place"))
    ahead: list[Any] = []

    def of(seq: int | None) -> list[Any]:
        found: list[Any] = []
        for row in chain(ahead[:], rows):
            ahead.clear()
            if seq is None:
                return [row[0]]
            if not isinstance(row[0], int):
                raise _Problem(f"a run of record {seq}, or of a later one, was changed")
            if row[0] > seq:
                ahead.append(row)
                break
            if row[0] < seq:
                raise _Problem(f"record {row[0]} is missing, though its runs are there", row[0])
            found.append(list(row[1:]))
        return found

    return of


def _check_indexes(db: sqlite3.Connection) -> None:
    with closing(db.execute("PRAGMA integrity_check(1)")) as found:
        (result,) = found.fetchone()
    if result != "ok":
        raise _Problem(f"the file is damaged: {result}")
