"""The file: an SQLite database that any number of processes append to.

Each record's digest covers the one before it, its number, its columns and its salted bytes, so that a body can be
erased and the chain still checks. The newest digest is also kept in a file of its own beside the database (`.head`), so
that a record that was cut off at the end is missed, too.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from hashlib import sha256
from itertools import chain
from operator import add
from pathlib import Path
from typing import Any

import msgspec

from ..logs import logger
from ..places import BadPlace, refuse_remote
from .entry import NOTHING, OLD_COLUMNS, VERSION, Entry, Tally, columns_of, entry_of, references, tally_of
from .errors import JournalError, NewerJournal

SCHEMA = 2
"""The version of what is below. A file that says more was made by a newer fairlead."""
APPLICATION = 0x66616972
_TABLES = f"""
CREATE TABLE records (
  seq INTEGER PRIMARY KEY, {", ".join(f"{column} {'INTEGER' if column == 'at' else 'TEXT'}" for column in OLD_COLUMNS)},
  body BLOB NOT NULL, digest BLOB NOT NULL
);
CREATE UNIQUE INDEX by_id ON records (id);
CREATE INDEX by_session ON records (session, seq);
CREATE INDEX by_time ON records (at);
CREATE TABLE runs (
  seq INTEGER, place INTEGER, hook TEXT, outcome TEXT, took INTEGER, control TEXT, PRIMARY KEY (seq, place)
) WITHOUT ROWID;
CREATE TABLE texts (digest BLOB PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE uses (digest BLOB PRIMARY KEY, last INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
EFFECT = "coalesce(effect, control)"
"""What was carried out, in SQL. Written just so, it is found in the index of what is rare."""
RARE = f"{EFFECT} NOT IN ('proceed')"
_SECOND = f"""
ALTER TABLE records ADD COLUMN effect TEXT;
ALTER TABLE records ADD COLUMN user TEXT;
ALTER TABLE records ADD COLUMN salt BLOB;
ALTER TABLE records ADD COLUMN erased BLOB;
CREATE INDEX by_effect ON records ({EFFECT}, seq) WHERE {RARE};
CREATE TABLE sessions (
  session TEXT PRIMARY KEY, host TEXT, first INTEGER NOT NULL, last INTEGER NOT NULL, began INTEGER NOT NULL,
  ended INTEGER NOT NULL, records INTEGER NOT NULL, denied INTEGER NOT NULL, failed INTEGER NOT NULL,
  changed INTEGER NOT NULL, asked INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX by_last ON sessions (last);
"""
"""What schema 2 adds. A new file is made of the same steps as an old one that goes on, so that the two are equal."""
SCRIPTS = {1: _TABLES, 2: _TABLES + _SECOND}
SALT = 16
"""Random bytes that go into the digest of a body, so that a short one that was erased cannot be guessed."""
KEY = 32
"""Bytes of the key of the digests of what was redacted."""
WITNESSED = 3600 * 10**9
"""Nanoseconds that a run of records must span before the clock that dated them is believed."""
ROWS = 8
"""Rows that are inserted at once: one by one, Python's lock would go to and fro between threads."""
BUSY = 30.0
"""Seconds to wait for other processes' batches: a disk may take its time, and what waits is not lost by waiting."""
PATIENT, EAGER = 0.001, 0.0001
"""Seconds between looks whether they are done, at first and after a while."""
CHECKPOINT = 0.05
"""Seconds between two tries to empty the log while a process reads old pages."""


Counted = tuple[int, tuple[Any, ...], Tally]
"""A record as it is counted for its session: its number, its columns, and what it adds."""
Written = list[Counted]


class Head(msgspec.Struct, frozen=True):
    """The newest record: its number and its digest."""

    seq: int
    digest: str
    journal: str


class Tail(msgspec.Struct):
    """The end of the chain inside a transaction: the number and the digest that the next record is chained to."""

    seq: int
    digest: bytes


def link(previous: bytes, seq: int, columns: Sequence[Any], runs: Sequence[Any], content: bytes) -> bytes:
    """The digest of a record: it covers all that went before. `content` stands for the body: see `seal`."""
    about = sha256(msgspec.json.encode([columns, runs])).digest()
    return sha256(previous + seq.to_bytes(8, "big") + about + content).digest()


def seal(salt: bytes, body: bytes) -> bytes:
    """What of a body goes into its record's digest, and stays when the body and its salt are erased."""
    return sha256(salt + body).digest()


def old_link(previous: bytes, seq: int, body: bytes) -> bytes:
    """The digest of a record of schema 1."""
    return sha256(previous + seq.to_bytes(8, "big") + body).digest()


def genesis(journal: str) -> bytes:
    """What the first record of a journal is chained to."""
    return sha256(b"fairlead journal " + journal.encode()).digest()


_abandoned: list[sqlite3.Connection] = []


class Store:
    """A journal's file, open for appending by one thread of this process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = ""
        self._tables: list[Any] = []  # as they were when they were last found to be ours
        try:
            refuse_remote(path)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(beside(path, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except BadPlace as error:
            raise JournalError(str(error)) from None
        except OSError as error:
            raise unwritable(path, error) from None
        try:
            with self._locked():
                self._db = _connect(path)
                self._prepare()
                self._look_at_tables()
        except BaseException as error:
            self.close()
            if isinstance(error, (sqlite3.Error, OSError)):
                raise unwritable(path, error) from None
            raise

    def close(self) -> None:
        if hasattr(self, "_db"):
            with suppress(sqlite3.Error):
                self._db.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def abandon(self) -> None:
        """In a child process: the file is the parent's, whose connection must be neither used nor closed here."""
        _abandoned.append(self._db)
        os.close(self._lock)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One process at a time: the head beside the file must follow the file.

        Whoever has waited for a while looks more often, or it would seldom find the short moment between two
        batches of a process that commits one after the other.
        """
        began = time.monotonic()
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waited = time.monotonic() - began
                if waited > BUSY:
                    raise JournalError(f"the journal {self.path} is busy: another process holds its lock") from None
                time.sleep(PATIENT if waited < 100 * PATIENT else EAGER)
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def _prepare(self) -> None:
        """Make the tables, or add those that an older journal lacks, and read the journal's name."""
        version = version_of(self._db, self.path)
        if version > SCHEMA:
            raise newer(self.path, version)
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
            self._go_on_from_schema_1()

    def _make_head(self, journal: str) -> None:
        """Make the head before the tables, so that a journal without one has lost it.

        The head of a journal that had records is left: it says that a file is gone.
        """
        head = read_head(self.path)
        if head is None or head.seq == 0:
            write_head(self.path, Head(0, genesis(journal).hex(), journal))

    def _go_on_from_schema_1(self) -> None:
        """Give an old journal what is new, under a note in its chain. Its records stay as they are."""
        refuse_changed(self._db, self.path, 1)
        with self._chained(self._add_schema_2) as tail:
            name = f"{self.journal[:10]}-schema-{SCHEMA}"
            self._insert([_note(name, "schema", was=1, now=SCHEMA)], tail, [])

    def _add_schema_2(self) -> None:
        for statement in _SECOND.split(";"):
            self._db.execute(statement)
        self._db.execute(f"PRAGMA user_version = {SCHEMA}")
        self._count_sessions(_counted(self._db))

    def _look_at_tables(self) -> None:
        """Refuse a file with tables, or triggers, that are not ours: what it acknowledges could be lost."""
        tables = _master(self._db)
        if tables != self._tables:
            refuse_changed(self._db, self.path, SCHEMA)
            self._tables = tables

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All of it or nothing."""
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
        """A transaction that adds to the chain, for who holds the lock. The head beside the file follows it.

        The old head is compared first, since it is what tells that records were cut off: a note of what is wrong comes
        before all else.
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
        """What is wrong with the end of the file, as the head beside it tells.

        A head may lag behind: a writer was killed before it could write its own.
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
        """What the record after this number is chained to, as far as the file has it."""
        if seq == 0:
            row = self._db.execute("SELECT 1 FROM records WHERE seq = 1").fetchone()
            return None if row is None else genesis(self.journal)
        row = self._db.execute("SELECT digest FROM records WHERE seq = ?", (seq,)).fetchone()
        return None if row is None else bytes(row[0])

    # --- appending --------------------------------------------------------------------------

    def append(self, entries: Sequence[Entry], rest: float = 0.0) -> Head:
        """Write entries after whatever is there, all of them or none. One that is there already is left out.

        `rest` is for how many seconds others may have the processor after each few.
        """
        with self._locked(), self._chained(self._look_again) as tail:
            written: Written = []
            for start in range(0, len(entries), ROWS):
                self._insert(entries[start : start + ROWS], tail, written)
                if rest:
                    time.sleep(rest)
            self._count_sessions(written)
        return Head(tail.seq, tail.digest.hex(), self.journal)

    def _look_again(self) -> None:
        """Refuse to write to a file that another program has changed: to a newer schema, or behind our back."""
        version = version_of(self._db, self.path)
        if version > SCHEMA:
            raise newer(self.path, version)
        self._look_at_tables()

    def _insert(self, entries: Sequence[Entry], tail: Tail, written: Written) -> None:
        """Write a few entries at the end. What is to be counted for their sessions is added to `written`."""
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
            written.append((seq, entry.columns, entry.tally))
            runs += [(seq, *run) for run in entry.runs]
            texts |= entry.texts
            uses |= dict.fromkeys(entry.texts, seq)
        self._put("INSERT INTO records", rows)
        self._put("INSERT INTO runs", runs)
        self._put("INSERT OR IGNORE INTO texts", list(texts.items()))
        self._put("INSERT OR REPLACE INTO uses", list(uses.items()))

    def _count_sessions(self, written: Iterable[Counted]) -> None:
        """Add records to the rows of their sessions."""
        sessions = sessions_of(written)
        self._db.executemany(_COUNT, [(name, *row) for name, row in sessions.items()])

    def _put(self, into: str, rows: list[tuple[Any, ...]]) -> None:
        """Insert rows. A statement has room for a few, or for one: then SQLite need not read it each time."""
        start = 0
        while start < len(rows):
            part = rows[start : start + (ROWS if len(rows) - start >= ROWS else 1)]
            places = ", ".join([f"({_places(part[0])})"] * len(part))
            self._db.execute(f"{into} VALUES {places}", list(chain.from_iterable(part)))
            start += len(part)

    def key(self) -> bytes:
        """The key of the digests of what was redacted. It is made with the journal, and kept beside it."""
        file = beside(self.path, ".key")
        with self._locked():
            try:
                if len(found := file.read_bytes()) != KEY:
                    raise JournalError(f"{file} is no key of fairlead's; move it away, and another is made")
                return found
            except FileNotFoundError:
                made, new = os.urandom(KEY), beside(self.path, ".key.new")
                descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
                with os.fdopen(descriptor, "wb") as written:
                    written.write(made)
                os.replace(new, file)
                return made

    # --- what is old ------------------------------------------------------------------------

    def oldest_kept(self, max_size: int, max_age: float) -> int | None:
        """The first record to keep, if there is something to prune."""
        (size,) = self._db.execute(
            "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, "
            "pragma_page_size"
        ).fetchone()
        first, last = self._db.execute("SELECT min(seq), max(seq) FROM records").fetchone()
        if first is None:
            return None
        keep = max(self._first_young(first, max_age), first)
        if size > max_size:  # down to nine tenths, so that it is not done again at once
            keep = max(keep, first + (int((last - first + 1) * (1 - 0.9 * max_size / size)) or 1))
        return keep if keep > first else None

    def _first_young(self, first: int, max_age: float) -> int:
        """The first record to keep for its age.

        The last of those that are too old stays: it alone may be dated by a clock that was set back for a moment.
        """
        age = int(min(max_age, 1e9) * 1e9)  # 1e9 s: longer than there are records
        query = "SELECT at, (SELECT max(at) FROM records) FROM records WHERE seq = ?"
        begins, ends = self._db.execute(query, (first,)).fetchone()
        if begins >= ends - age:  # by no clock is any too old
            return first
        cutoff = self._believed_time() - age
        (young,) = self._db.execute("SELECT min(seq) FROM records WHERE at >= ?", (cutoff,)).fetchone()
        return int(young) - 1

    def _believed_time(self) -> int:
        """A time that has certainly come, by which records are old. A leap of the clock is not believed.

        It is the earliest in the newest run of records that spans an hour. If the clock leapt and came back within the
        hour, a record from before or after the leap is in that run.
        """
        with closing(self._db.execute("SELECT at FROM records ORDER BY seq DESC")) as times:
            (earliest,) = (latest,) = times.fetchone()
            for (at,) in times:
                earliest, latest = min(earliest, at), max(latest, at)
                if latest - earliest >= WITNESSED:
                    break
        return int(earliest)

    def digest_of(self, seq: int) -> bytes:
        row = self._db.execute("SELECT digest FROM records WHERE seq = ?", (seq,)).fetchone()
        if row is None:
            raise JournalError(f"the journal {self.path} has no record {seq}; run `fairlead verify`")
        return bytes(row[0])

    def prune(self, keep: int) -> None:
        """Drop the records before `keep`, whose note in the chain was written already."""
        with self._locked():
            with self._transaction():
                self._db.execute("DELETE FROM records WHERE seq < ?", (keep,))
                self._db.execute("DELETE FROM runs WHERE seq < ?", (keep,))
                self._db.execute("DELETE FROM texts WHERE digest IN (SELECT digest FROM uses WHERE last < ?)", (keep,))
                self._db.execute("DELETE FROM uses WHERE last < ?", (keep,))
                self._db.execute("DELETE FROM sessions WHERE last < ?", (keep,))
            self._db.executescript("PRAGMA incremental_vacuum")  # to its end: `execute` takes one step of it

    # --- erasing ----------------------------------------------------------------------------

    def erase(self, seqs: Sequence[int], note: Entry) -> Head:
        """Erase the bodies of records, their salts, and the texts that no other record has, under a note in the chain.

        The digests stay, so the chain still checks. A record of schema 1 cannot be erased: its digest needs its body.
        """
        with self._locked():
            self._db.execute("PRAGMA secure_delete = ON")  # what was erased is overwritten, and not just let go of
            with self._chained(self._look_again) as tail:
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
        """Write the log into the file and empty it: both have what was erased until then.

        A process that is reading needs the old pages. Others may write while it is waited for.
        """
        until = time.monotonic() + BUSY
        self._db.execute("PRAGMA busy_timeout = 0")  # a try that waits would keep others from writing
        try:
            while self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                if time.monotonic() > until:
                    raise JournalError(
                        f"what was erased is still in the file {self.path}, since a process is reading it; end that "
                        "process, and erase the same records again"
                    )
                time.sleep(CHECKPOINT)
        finally:
            self._db.execute(f"PRAGMA busy_timeout = {int(BUSY * 1000)}")

    def _erase_body(self, seq: int) -> set[bytes]:
        """Erase one body. The texts that it refers to are returned."""
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


def sessions_of(written: Iterable[Counted]) -> dict[str, list[Any]]:
    """What some records add to the rows of their sessions: host, first, last, began, ended, and the counts."""
    sessions: dict[str, list[Any]] = {}
    for seq, columns, tally in written:
        _, at, _, _, session, host, *_ = columns
        if session is None:
            continue
        row = sessions.get(session)
        if row is None:
            sessions[session] = [host, seq, seq, at, at, 1, *tally]
            continue
        row[0] = row[0] or host
        row[2], row[3], row[4] = seq, min(row[3], at), max(row[4], at)
        row[5] += 1
        if tally is not NOTHING:
            row[6:] = map(add, row[6:], tally)
    return sessions


def _note(name: str, note: str, **about: Any) -> Entry:
    """A note of the store's own."""
    told = {"v": VERSION, "id": name, "at": time.time_ns(), "kind": "note", "note": note}
    return entry_of(told | about)


def _counted(db: sqlite3.Connection) -> Iterator[Counted]:
    """The records of a file, to be counted. One that is damaged is for `fairlead verify` to name."""
    for seq, body in db.execute("SELECT seq, body FROM records ORDER BY seq"):
        with suppress(msgspec.MsgspecError, UnicodeError, TypeError, KeyError, AttributeError):
            told = msgspec.json.decode(body, type=dict[str, Any])
            yield seq, columns_of(told), tally_of(told)


_Object = tuple[str, str, str, str]
_SPACES = re.compile(r"[ \t\n\f\r]+")
"""White space to SQLite. Any other is part of a name."""
_STATISTICS = [
    ("table", "sqlite_stat1", "sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)"),
    ("table", "sqlite_stat4", "sqlite_stat4", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"),
]
"""What ANALYZE makes for the query planner: the second in some builds of SQLite only."""


def refuse_changed(db: sqlite3.Connection, path: Path, schema: int) -> None:
    """Raise `JournalError` for a file with tables, or triggers, that are not ours: nothing is written to one."""
    if changed := changes_of(db, schema):
        raise JournalError(_strange(path, changed))


def changes_of(db: sqlite3.Connection, schema: int) -> list[str]:
    """How the tables, indexes, triggers and views of a file differ from those that this program would make."""
    return sorted(f"{what} {name!r} is {how}" for (what, name), how in _differences(db, schema))


def _differences(db: sqlite3.Connection, schema: int) -> Iterator[tuple[tuple[str, str], str]]:
    found, ours = Counter(_objects(db)), Counter(_expected(schema))
    strange, missing = found - ours - Counter(_STATISTICS), ours - found
    names = {one[:2] for one in ours}
    yield from ((one[:2], "changed" if one[:2] in names else "none of fairlead's") for one in strange)
    yield from ((one[:2], "missing") for one in missing if one[:2] not in {other[:2] for other in strange})


def _master(db: sqlite3.Connection) -> list[Any]:
    """All that the file says it has, of whatever type and name. What SQLite makes of it follows from the SQL alone."""
    return db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid").fetchall()


def _objects(db: sqlite3.Connection) -> list[_Object]:
    return [(str(what), str(name), str(table), _SPACES.sub(" ", str(sql))) for what, name, table, sql in _master(db)]


@cache
def _expected(schema: int) -> list[_Object]:
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCRIPTS[schema])
        return _objects(db)


def _strange(path: Path, changes: list[str]) -> str:
    return (
        f"the journal {path} cannot be trusted to keep what is written to it: {'; '.join(changes)}; move it away; "
        "`fairlead verify` says more"
    )


def _places(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)
    try:
        if version_of(db, path) == 0:  # which also says if the file is somebody else's
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # which is heard only before anything is written
        db.execute("PRAGMA journal_mode = WAL").fetchone()
        db.execute("PRAGMA synchronous = FULL")  # so that the head beside the file is never ahead of it
        db.execute("PRAGMA journal_size_limit = 67108864")
    except BaseException:
        db.close()
        raise
    return db


def version_of(db: sqlite3.Connection, path: Path) -> int:
    """The schema of a file: 0 if it is new. Raises `JournalError` for a file that is none of ours."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (application,) = db.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION and (version or db.execute("SELECT 1 FROM sqlite_master").fetchone()):
        raise JournalError(f"{path} is a database, but not a journal of fairlead's; name another path")
    return int(version)


def newer(path: Path, version: int) -> NewerJournal:
    return NewerJournal(f"the journal {path} has schema {version}, and this fairlead knows {SCHEMA}: update fairlead")


def unwritable(path: Path, error: Exception) -> JournalError:
    if isinstance(error, JournalError):
        return error
    problem = getattr(error, "strerror", None) or str(error)
    ways = {
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
    if isinstance(file, str | os.PathLike) and Path(file) != path:  # one of those beside it
        problem = f"{os.fspath(file)}: {problem}"
    way = next((f"; {way}" for word, way in ways.items() if word in problem), "")
    return JournalError(f"the journal {path} cannot be written: {problem}{way}")


def newest(db: sqlite3.Connection, journal: str) -> tuple[int, bytes]:
    """The number and the digest that the next record is chained to."""
    row = db.execute("SELECT seq, digest FROM records ORDER BY seq DESC LIMIT 1").fetchone()
    return (0, genesis(journal)) if row is None else (row[0], bytes(row[1]))


# --- beside the file --------------------------------------------------------------------------


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def read_head(path: Path) -> Head | None:
    try:
        return msgspec.json.decode(beside(path, ".head").read_bytes(), type=Head)
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return None


def write_head(path: Path, head: Head) -> None:
    """All of it or nothing, and nobody sees half of it."""
    new = beside(path, ".head.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        data = msgspec.json.encode(head)
        if os.write(descriptor, data) != len(data):  # half a head would be taken for a lost one
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(descriptor)
    os.replace(new, beside(path, ".head"))
