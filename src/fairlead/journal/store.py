"""The journal's file: an SQLite database that any number of processes append to.

Each record has a digest that covers all records before it (see `digest_chain`). The newest digest is also in a file
beside the database (`.head`), which shows whether records were cut off at the end.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import chain
from operator import add
from pathlib import Path
from typing import Any

import msgspec

from ..paths import BadPath, atomic_write, refuse_remote
from ..redaction.logs import logger
from .digest_chain import genesis, link, seal
from .entry import NO_COUNTS, OLD_COLUMNS, VERSION, Entry, SessionCounts, columns_of, counts_of, entry_of, references
from .errors import JournalError
from .schema import APPLICATION, SCHEMA, SCRIPTS, SECOND, newer_error, objects_in, refuse_changed, version_of

SALT = 16
"""Random bytes in the digest of a body, so that a short body cannot be guessed after it was erased."""
KEY = 32
"""Bytes of the key for the digests of redacted values."""
CLOCK_SPAN = 3600 * 10**9
"""Nanoseconds that consecutive records must span before pruning trusts their clock."""
ROWS = 8
"""Rows per INSERT. With single rows, threads would pass Python's lock to and fro."""
LOCK_TIMEOUT = 30.0
"""Seconds to wait for the lock while other processes write. A slow disk may take long, and waiting loses nothing."""
LOCK_POLL, LOCK_POLL_EAGER = 0.001, 0.0001
"""Seconds between two tries to get the lock, at first and after a while."""
CHECKPOINT_POLL = 0.05
"""Seconds between two tries to empty SQLite's log while a process reads old pages."""


CountedRecord = tuple[int, tuple[Any, ...], SessionCounts]
"""A record to count for its session: its number, its columns, and what it adds."""
CountedRecords = list[CountedRecord]


class Head(msgspec.Struct, frozen=True):
    """The newest record: its number and its digest."""

    seq: int
    digest: str
    journal: str


class Tail(msgspec.Struct):
    """The end of the chain in a transaction: the number and digest before the next record."""

    seq: int
    digest: bytes


_abandoned: list[sqlite3.Connection] = []


class JournalFile:
    """A journal's file that one thread of this process appends to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = ""
        self._tables: list[Any] = []  # at the last check
        try:
            refuse_remote(path)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(sibling(path, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except BadPath as error:
            raise JournalError(str(error)) from None
        except OSError as error:
            raise write_error(path, error) from None
        try:
            with self._locked():
                self._db = _connect(path)
                self._prepare()
                self._check_tables()
        except BaseException as error:
            self.close()
            if isinstance(error, (sqlite3.Error, OSError)):
                raise write_error(path, error) from None
            raise

    def close(self) -> None:
        if hasattr(self, "_db"):
            with suppress(sqlite3.Error):
                self._db.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def abandon(self) -> None:
        """Forget the file in a child process, which must not use or close the connection."""
        _abandoned.append(self._db)
        os.close(self._lock)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock that keeps the head in step with the database.

        After a while, this polls more often. Otherwise it would seldom find the short gap between two batches of a
        busy process.
        """
        began = time.monotonic()
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waited = time.monotonic() - began
                if waited > LOCK_TIMEOUT:
                    raise JournalError(f"the journal {self.path} is busy: another process holds its lock") from None
                time.sleep(LOCK_POLL if waited < 100 * LOCK_POLL else LOCK_POLL_EAGER)
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def _prepare(self) -> None:
        """Create the tables, or upgrade an older file, and read the journal's id."""
        version = version_of(self._db, self.path)
        if version > SCHEMA:
            raise newer_error(self.path, version)
        if version == 0:
            os.chmod(self.path, 0o600)
            journal = os.urandom(16).hex()
            self._make_head(journal)
            named = f"INSERT INTO meta VALUES ('journal', '{journal}')"  # noqa: S608 (hexadecimal)
            script = f"BEGIN IMMEDIATE; {SCRIPTS[SCHEMA]} {named}; PRAGMA user_version = {SCHEMA}; COMMIT"
            self._db.executescript(f"PRAGMA application_id = {APPLICATION}; {script}")
        row = self._db.execute("SELECT value FROM meta WHERE key = 'journal'").fetchone()
        if row is None:
            raise JournalError(f"the journal {self.path} has lost its name; move it away; `fairlead verify` says more")
        self.journal = str(row[0])
        if version == 1:
            self._upgrade_schema_1()

    def _make_head(self, journal: str) -> None:
        """Create the head before the tables, so that a journal without a head has lost it.

        An old head that names records stays, because it shows that their file is gone.
        """
        head = read_head(self.path)
        if head is None or head.seq == 0:
            write_head(self.path, Head(0, genesis(journal).hex(), journal))

    def _upgrade_schema_1(self) -> None:
        """Add schema 2 to an old journal, with a note in its chain. Its records stay as they are."""
        refuse_changed(self._db, self.path, 1)
        with self._chained(self._add_schema_2) as tail:
            name = f"{self.journal[:10]}-schema-{SCHEMA}"
            self._insert([_note(name, "schema", was=1, now=SCHEMA)], tail, [])

    def _add_schema_2(self) -> None:
        for statement in SECOND.split(";"):
            self._db.execute(statement)
        self._db.execute(f"PRAGMA user_version = {SCHEMA}")
        self._count_sessions(_counted(self._db))

    def _check_tables(self) -> None:
        """Refuse a file with foreign tables or triggers, which could drop acknowledged records."""
        tables = objects_in(self._db)
        if tables != self._tables:
            refuse_changed(self._db, self.path, SCHEMA)
            self._tables = tables

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Commit all statements or none."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield
            self._db.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def _chained(self, prepare: Callable[[], None] | None = None) -> Iterator[Tail]:
        """A transaction that adds to the chain and then updates the head. The caller holds the lock.

        The old head is compared first, because it shows whether records were cut off. If so, a note comes before the
        new records.
        """
        head = read_head(self.path)
        with self._transaction():
            if prepare is not None:
                prepare()
            tail = Tail(*newest(self._db, self.journal))
            problem = self._problem_at_end(head, tail)
            if problem is not None:
                self._insert([_note(f"{os.urandom(5).hex()}-damaged", "damaged", problem=problem)], tail, [])
            yield tail
        if problem is not None:
            logger.warning("journal %s: %s; `fairlead verify` says more", self.path, problem)
        write_head(self.path, Head(tail.seq, tail.digest.hex(), self.journal))

    def _problem_at_end(self, head: Head | None, tail: Tail) -> str | None:
        """What is wrong with the end of the file, compared with the head.

        A head may be behind, if a writer was killed before it could update it.
        """
        if head is None:
            return "the head beside the file is missing"
        if head.journal != self.journal:
            return "the head beside the file is another journal's"
        if head.seq > tail.seq:
            return f"records {tail.seq + 1} to {head.seq} are missing at the end"
        digest = tail.digest if head.seq == tail.seq else self._digest_after(head.seq)
        if digest is None:
            return "the head beside the file is older than all that is left"
        return None if digest.hex() == head.digest else f"record {head.seq} is not what the head beside the file says"

    def _digest_after(self, seq: int) -> bytes | None:
        """The digest that the record after this number follows; None if the file has neither."""
        if seq == 0:
            row = self._db.execute("SELECT 1 FROM records WHERE seq = 1").fetchone()
            return None if row is None else genesis(self.journal)
        row = self._db.execute("SELECT digest FROM records WHERE seq = ?", (seq,)).fetchone()
        return None if row is None else bytes(row[0])

    # --- appending --------------------------------------------------------------------------

    def append(self, entries: Sequence[Entry], rest: float = 0.0) -> Head:
        """Append all entries or none. An entry whose id is there already is skipped.

        `rest` is how many seconds this sleeps after each `ROWS` entries, to leave the processor to other threads.
        """
        with self._locked(), self._chained(self._check_file) as tail:
            written: CountedRecords = []
            for start in range(0, len(entries), ROWS):
                self._insert(entries[start : start + ROWS], tail, written)
                if rest:
                    time.sleep(rest)
            self._count_sessions(written)
        return Head(tail.seq, tail.digest.hex(), self.journal)

    def _check_file(self) -> None:
        """Refuse to write to a file that another program has changed since it was opened."""
        version = version_of(self._db, self.path)
        if version > SCHEMA:
            raise newer_error(self.path, version)
        self._check_tables()

    def _insert(self, entries: Sequence[Entry], tail: Tail, written: CountedRecords) -> None:
        """Insert a few entries at the end, and add them to `written`, to be counted."""
        rows: list[Any] = []
        runs: list[Any] = []
        texts: dict[bytes, bytes] = {}
        uses: dict[bytes, int] = {}
        ids = [entry.columns[0] for entry in entries]
        found = self._db.execute(f"SELECT id FROM records WHERE id IN ({_places(ids)})", ids)  # noqa: S608 (places)
        known = {row[0] for row in found}
        for entry in entries:
            if entry.columns[0] in known:
                continue
            known.add(entry.columns[0])
            tail.seq = seq = tail.seq + 1
            salt = os.urandom(SALT)
            tail.digest = digest = link(tail.digest, seq, entry.columns, entry.runs, seal(salt, entry.body))
            old, new = entry.columns[: len(OLD_COLUMNS)], entry.columns[len(OLD_COLUMNS) :]
            rows.append((seq, *old, entry.body, digest, *new, salt, None))
            written.append((seq, entry.columns, entry.counts))
            runs += [(seq, *run) for run in entry.runs]
            texts |= entry.texts
            uses |= dict.fromkeys(entry.texts, seq)
        self._insert_rows("INSERT INTO records", rows)
        self._insert_rows("INSERT INTO runs", runs)
        self._insert_rows("INSERT OR IGNORE INTO texts", list(texts.items()))
        self._insert_rows("INSERT OR REPLACE INTO uses", list(uses.items()))

    def _count_sessions(self, written: Iterable[CountedRecord]) -> None:
        """Add records to the rows of their sessions."""
        sessions = sessions_of(written)
        self._db.executemany(_COUNT, [(name, *row) for name, row in sessions.items()])

    def _insert_rows(self, into: str, rows: list[tuple[Any, ...]]) -> None:
        """Insert rows, `ROWS` or one per statement, so that SQLite caches the two statements."""
        start = 0
        while start < len(rows):
            part = rows[start : start + (ROWS if len(rows) - start >= ROWS else 1)]
            places = ", ".join([f"({_places(part[0])})"] * len(part))
            self._db.execute(f"{into} VALUES {places}", list(chain.from_iterable(part)))
            start += len(part)

    def key(self) -> bytes:
        """The key for the digests of redacted values, from the file beside the journal.

        The first call makes it.
        """
        file = sibling(self.path, ".key")
        with self._locked():
            try:
                if len(found := file.read_bytes()) != KEY:
                    raise JournalError(f"{file} is not a key of fairlead's; move it away, and fairlead makes another")
                return found
            except FileNotFoundError:
                made = os.urandom(KEY)
                atomic_write(file, made)
                return made

    # --- pruning ----------------------------------------------------------------------------

    def oldest_kept(self, max_size: int, max_age: float) -> int | None:
        """The first record to keep; None if there is nothing to prune."""
        (size,) = self._db.execute(
            "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, "
            "pragma_page_size"
        ).fetchone()
        first, last = self._db.execute("SELECT min(seq), max(seq) FROM records").fetchone()
        if first is None:
            return None
        keep = max(self._first_young(first, max_age), first)
        if size > max_size:  # down to nine tenths, so that the next batch does not prune again
            keep = max(keep, first + (int((last - first + 1) * (1 - 0.9 * max_size / size)) or 1))
        return keep if keep > first else None

    def _first_young(self, first: int, max_age: float) -> int:
        """The first record to keep by age.

        The last record that is too old stays, because its clock may have been set back for a moment.
        """
        age = int(min(max_age, 1e9) * 1e9)  # 1e9 s is older than any record
        query = "SELECT at, (SELECT max(at) FROM records) FROM records WHERE seq = ?"
        begins, ends = self._db.execute(query, (first,)).fetchone()
        if begins >= ends - age:  # no record is too old by any clock
            return first
        cutoff = self._believed_time() - age
        (young,) = self._db.execute("SELECT min(seq) FROM records WHERE at >= ?", (cutoff,)).fetchone()
        return int(young) - 1

    def _believed_time(self) -> int:
        """A time that has certainly passed, whatever the clock shows, to judge the age of records.

        It is the earliest time among the newest records that span an hour. If the clock jumped ahead and came back
        within the hour, a record from before or after the jump is among them.
        """
        with closing(self._db.execute("SELECT at FROM records ORDER BY seq DESC")) as times:
            (earliest,) = (latest,) = times.fetchone()
            for (at,) in times:
                earliest, latest = min(earliest, at), max(latest, at)
                if latest - earliest >= CLOCK_SPAN:
                    break
        return int(earliest)

    def digest_of(self, seq: int) -> bytes:
        row = self._db.execute("SELECT digest FROM records WHERE seq = ?", (seq,)).fetchone()
        if row is None:
            raise JournalError(f"the journal {self.path} has no record {seq}; run `fairlead verify`")
        return bytes(row[0])

    def prune(self, keep: int) -> None:
        """Delete the records before `keep`. The caller has already written the note about that."""
        with self._locked():
            with self._transaction():
                self._db.execute("DELETE FROM records WHERE seq < ?", (keep,))
                self._db.execute("DELETE FROM runs WHERE seq < ?", (keep,))
                self._db.execute("DELETE FROM texts WHERE digest IN (SELECT digest FROM uses WHERE last < ?)", (keep,))
                self._db.execute("DELETE FROM uses WHERE last < ?", (keep,))
                self._db.execute("DELETE FROM sessions WHERE last < ?", (keep,))
            self._db.executescript("PRAGMA incremental_vacuum")  # `execute` would do only the first step

    # --- erasing ----------------------------------------------------------------------------

    def erase(self, seqs: Sequence[int], note: Entry) -> Head:
        """Erase bodies, salts and the texts that no other record uses, and add a note to the chain.

        The digests stay, so the chain still verifies. A record of schema 1 cannot be erased: its digest needs its body.
        """
        with self._locked():
            self._db.execute("PRAGMA secure_delete = ON")  # SQLite overwrites erased content
            with self._chained(self._check_file) as tail:
                texts: set[bytes] = set()
                for seq in seqs:
                    texts |= self._erase_body(seq)
                for digest in texts:
                    used = "SELECT 1 FROM records WHERE instr(body, CAST(? AS BLOB))"
                    if self._db.execute(used, (digest.hex(),)).fetchone() is None:
                        self._db.execute("DELETE FROM texts WHERE digest = ?", (digest,))
                        self._db.execute("DELETE FROM uses WHERE digest = ?", (digest,))
                self._insert([note], tail, [])
        self._drop_old_pages()
        return Head(tail.seq, tail.digest.hex(), self.journal)

    def _drop_old_pages(self) -> None:
        """Empty SQLite's log into the file, because both still hold the erased content.

        This waits for processes that read the old pages. Others may write in the meantime.
        """
        until = time.monotonic() + LOCK_TIMEOUT
        self._db.execute("PRAGMA busy_timeout = 0")  # a waiting try would block writers
        try:
            while self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                if time.monotonic() > until:
                    raise JournalError(
                        f"what was erased is still in the file {self.path}, since a process is reading it; end that "
                        "process, and erase the same records again"
                    )
                time.sleep(CHECKPOINT_POLL)
        finally:
            self._db.execute(f"PRAGMA busy_timeout = {int(LOCK_TIMEOUT * 1000)}")

    def _erase_body(self, seq: int) -> set[bytes]:
        """Erase one body, and return the digests of the texts that it refers to."""
        row = self._db.execute("SELECT kind, body, salt, erased FROM records WHERE seq = ?", (seq,)).fetchone()
        if row is None:
            raise JournalError(f"the journal {self.path} has no record {seq}")
        kind, body, salt, erased = row
        if kind == "note":
            raise JournalError(f"record {seq} of {self.path} is a note, and cannot be erased; only decisions can")
        if erased is not None:
            return set()
        if salt is None:
            raise JournalError(f"record {seq} of {self.path} is of schema 1, and cannot be erased; it can be pruned")
        self._db.execute(
            "UPDATE records SET body = x'', salt = NULL, erased = ? WHERE seq = ?", (seal(salt, body), seq)
        )
        return references(msgspec.json.decode(body))


_COUNTS = ("records", "denied", "failed", "changed", "asked")
_COUNT = f"""
INSERT INTO sessions (session, host, first, last, began, ended, {", ".join(_COUNTS)})
VALUES ({", ".join("?" * 11)}) ON CONFLICT (session) DO UPDATE SET
  last = excluded.last, began = min(began, excluded.began), ended = max(ended, excluded.ended),
  host = coalesce(host, excluded.host), {", ".join(f"{name} = {name} + excluded.{name}" for name in _COUNTS)}
"""  # noqa: S608 (names of ours)


def sessions_of(written: Iterable[CountedRecord]) -> dict[str, list[Any]]:
    """What records add to their sessions: host, first, last, began, ended, and counts."""
    sessions: dict[str, list[Any]] = {}
    for seq, columns, counts in written:
        _, at, _, _, session, host, *_ = columns
        if session is None:
            continue
        row = sessions.get(session)
        if row is None:
            sessions[session] = [host, seq, seq, at, at, 1, *counts]
            continue
        row[0] = row[0] or host
        row[2], row[3], row[4] = seq, min(row[3], at), max(row[4], at)
        row[5] += 1
        if counts is not NO_COUNTS:
            row[6:] = map(add, row[6:], counts)
    return sessions


def _note(name: str, note: str, **about: Any) -> Entry:
    """A note that the file itself adds to the chain."""
    body = {"v": VERSION, "id": name, "at": time.time_ns(), "kind": "note", "note": note}
    return entry_of(body | about)


def _counted(db: sqlite3.Connection) -> Iterator[CountedRecord]:
    """The records of a file, to be counted.

    Damaged ones are skipped; `fairlead verify` names them.
    """
    for seq, body in db.execute("SELECT seq, body FROM records ORDER BY seq"):
        with suppress(msgspec.MsgspecError, UnicodeError, TypeError, KeyError, AttributeError):
            decoded = msgspec.json.decode(body, type=dict[str, Any])
            yield seq, columns_of(decoded), counts_of(decoded)


def _places(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=LOCK_TIMEOUT, isolation_level=None, check_same_thread=False)
    try:
        if version_of(db, path) == 0:  # raises for another program's database
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # has no effect after the first write
        db.execute("PRAGMA journal_mode = WAL").fetchone()
        db.execute("PRAGMA synchronous = FULL")  # so that the head is never ahead of the file
        db.execute("PRAGMA journal_size_limit = 67108864")
    except BaseException:
        db.close()
        raise
    return db


def write_error(path: Path, error: Exception) -> JournalError:
    """The error for a journal that cannot be written, with what to do about it."""
    if isinstance(error, JournalError):
        return error
    problem = getattr(error, "strerror", None) or str(error)
    remedies = {
        "full": "free some space, or lower max_size in [journal]",
        "No space": "free some space, or lower max_size in [journal]",
        "disk I/O": "look at the disk: free some space, or lower max_size in [journal]",
        "too large": "free some space, or lower max_size in [journal]",
        "quota": "free some space, or lower max_size in [journal]",
        "readonly": "make the file and its folder writable",
        "Read-only": "make the file and its folder writable",
        "Permission": "make the file and its folder writable",
        "unable to open": "make the file and its folder writable",
        "not a database": "move it away; `fairlead verify` says more",
        "s a directory": "move it away",
        "Not a directory": "move it away",
        "File exists": "move it away",
        "malformed": "move it away; `fairlead verify` says more",
    }
    file = getattr(error, "filename", None)
    if isinstance(file, str | os.PathLike) and Path(file) != path:  # one of the files beside it
        problem = f"{os.fspath(file)}: {problem}"
    remedy = next((f"; {remedy}" for word, remedy in remedies.items() if word in problem), "")
    return JournalError(f"the journal {path} cannot be written: {problem}{remedy}")


def newest(db: sqlite3.Connection, journal: str) -> tuple[int, bytes]:
    """The number and the digest that the next record follows."""
    row = db.execute("SELECT seq, digest FROM records ORDER BY seq DESC LIMIT 1").fetchone()
    return (0, genesis(journal)) if row is None else (row[0], bytes(row[1]))


# --- files beside it --------------------------------------------------------------------------


def sibling(path: Path, suffix: str) -> Path:
    """The file beside a journal with this suffix."""
    return path.with_name(path.name + suffix)


def read_head(path: Path) -> Head | None:
    try:
        return msgspec.json.decode(sibling(path, ".head").read_bytes(), type=Head)
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return None


def write_head(path: Path, head: Head) -> None:
    """Replace the head atomically: a reader sees the old one or the new one."""
    new = sibling(path, ".head.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        data = msgspec.json.encode(head)
        if os.write(descriptor, data) != len(data):  # half a head would count as a lost one
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(descriptor)
    os.replace(new, sibling(path, ".head"))
