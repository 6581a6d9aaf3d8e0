"""The file: an SQLite database that any number of processes append to.

Each record's digest covers the one before it, its number, its columns and its salted bytes, so that a body can be
erased and the chain still checks. The newest digest is also kept in a file of its own beside the database (`.head`), so
that a record that was cut off at the end is missed, too.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from hashlib import sha256
from itertools import chain
from operator import add
from pathlib import Path
from typing import Any

import msgspec

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
DAY = 86400 * 10**9
LEAP, WITNESSED = DAY, DAY // 24
"""Nanoseconds without a record after which a clock may have leapt, and for which it must go on to be believed."""
ROWS = 8
"""Rows that are inserted at once: one by one, Python's lock would go to and fro between threads."""
BUSY = 30.0
"""Seconds to wait for other processes' batches: a disk may take its time, and what waits is not lost by waiting."""
PATIENT, EAGER = 0.001, 0.0001
"""Seconds between looks whether they are done, at first and after a while."""


Counted = tuple[int, tuple[Any, ...], Tally]
"""A record as it is counted for its session: its number, its columns, and what it adds."""
Written = list[Counted]


class Head(msgspec.Struct, frozen=True):
    """The newest record: its number and its digest."""

    seq: int
    digest: str
    journal: str


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
                self.journal = self._prepare()
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

    def _prepare(self) -> str:
        """The journal's name, which is made with its tables."""
        version = version_of(self._db, self.path)
        if version > SCHEMA:
            raise newer(self.path, version)
        if version == 0:
            os.chmod(self.path, 0o600)
            journal = os.urandom(16).hex()
            named = f"INSERT INTO meta VALUES ('journal', '{journal}')"  # noqa: S608 (hexadecimal)
            script = f"BEGIN IMMEDIATE; {SCRIPTS[SCHEMA]} {named}; PRAGMA user_version = {SCHEMA}; COMMIT"
            self._db.executescript(f"PRAGMA application_id = {APPLICATION}; {script}")
        row = self._db.execute("SELECT value FROM meta WHERE key = 'journal'").fetchone()
        if row is None:
            raise JournalError(f"the journal {self.path} has lost its name; move it away; `fairlead verify` says more")
        journal = str(row[0])
        if version == 1:
            self._go_on_from_schema_1(journal)
        if read_head(self.path) is None and not newest(self._db, journal)[0]:
            write_head(self.path, Head(0, genesis(journal).hex(), journal))  # never missing without a reason
        return journal

    def _go_on_from_schema_1(self, journal: str) -> None:
        """Give an old journal what is new, under a note in its chain. Its records stay as they are."""
        refuse_changed(self._db, self.path, 1)
        with self._transaction():
            for statement in _SECOND.split(";"):
                self._db.execute(statement)
            seq, digest = newest(self._db, journal)
            self._count_sessions(_counted(self._db))
            note = {"v": VERSION, "id": f"{journal[:10]}-schema-{SCHEMA}", "at": time.time_ns(), "kind": "note"}
            seq, digest = self._insert([entry_of(note | {"note": "schema", "was": 1, "now": SCHEMA})], seq, digest, [])
            self._db.execute(f"PRAGMA user_version = {SCHEMA}")
        write_head(self.path, Head(seq, digest.hex(), journal))

    def _look_at_tables(self) -> None:
        """Refuse a file with tables, or triggers, that are not ours: what it acknowledges could be lost."""
        (self._tables,) = self._db.execute("PRAGMA schema_version").fetchone()
        refuse_changed(self._db, self.path, SCHEMA)

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

    # --- appending --------------------------------------------------------------------------

    def append(self, entries: Sequence[Entry], rest: float = 0.0) -> Head:
        """Write entries after whatever is there, all of them or none. One that is there already is left out.

        `rest` is for how many seconds others may have the processor after each few.
        """
        with self._locked():
            with self._transaction():
                # A batch that another program with a newer schema has changed the file under must not be written.
                if version_of(self._db, self.path) > SCHEMA:
                    raise newer(self.path, version_of(self._db, self.path))
                if self._db.execute("PRAGMA schema_version").fetchone() != (self._tables,):
                    self._look_at_tables()
                seq, digest = newest(self._db, self.journal)
                written: Written = []
                for start in range(0, len(entries), ROWS):
                    seq, digest = self._insert(entries[start : start + ROWS], seq, digest, written)
                    if rest:
                        time.sleep(rest)
                self._count_sessions(written)
            head = Head(seq, digest.hex(), self.journal)
            write_head(self.path, head)
        return head

    def _insert(self, entries: Sequence[Entry], seq: int, digest: bytes, written: Written) -> tuple[int, bytes]:
        """Write a few entries after a record of that number and that digest. Those of the last one are returned.

        What is to be counted for their sessions is added to `written`.
        """
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
            seq += 1
            salt = os.urandom(SALT)
            digest = link(digest, seq, entry.columns, entry.runs, seal(salt, entry.body))
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
        return seq, digest

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

    # --- what is wrong, and what is old -----------------------------------------------------

    def look(self) -> str | None:
        """What is wrong with the end of the file, as the head beside it tells."""
        with self._locked():
            head = read_head(self.path)
            seq, digest = newest(self._db, self.journal)
            if head is None:
                return "the head beside the file is missing" if seq else None
            if head.journal != self.journal:
                return "the head beside the file is another journal's"
            if head.seq > seq:
                return f"records {seq + 1} to {head.seq} are missing at the end"
            if head.seq == seq and head.digest != digest.hex():
                return f"record {seq} is not what the head beside the file says"
            if head.seq < seq:
                write_head(self.path, Head(seq, digest.hex(), self.journal))  # a writer was killed before it could
        return None

    def oldest_kept(self, max_size: int, max_age: float) -> int | None:
        """The first record to keep, if there is something to prune."""
        (size,) = self._db.execute(
            "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, "
            "pragma_page_size"
        ).fetchone()
        first, last = self._db.execute("SELECT min(seq), max(seq) FROM records").fetchone()
        if first is None:
            return None
        keep = first
        if size > max_size:  # down to nine tenths, so that it is not done again at once
            keep += int((last - first + 1) * (1 - 0.9 * max_size / size)) or 1
        cutoff = max(self._believed_time() - int(min(max_age, 1e9) * 1e9), 0)  # 1e9 s: longer than there are records
        row = self._db.execute("SELECT min(seq) FROM records WHERE at >= ?", (cutoff,)).fetchone()
        keep = max(keep, min(row[0] or last, last))
        return keep if keep > first else None

    def _believed_time(self) -> int:
        """The time by which records are old. A clock that has just leapt ahead is not believed.

        After a day without records, the new time is that of the clock only once records were written for an hour.
        Until then it is the time before.
        """
        now = time.time_ns()
        (since,) = self._db.execute("SELECT min(at) FROM records WHERE at > ?", (now - LEAP,)).fetchone()
        if since is not None and now - since >= WITNESSED:
            return now
        (before,) = self._db.execute("SELECT max(at) FROM records WHERE at <= ?", (now - LEAP,)).fetchone()
        return now if before is None else int(before)

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
            with self._transaction():
                texts: set[bytes] = set()
                for seq in seqs:
                    texts |= self._erase_body(seq)
                for digest in texts:
                    used = "SELECT 1 FROM records WHERE instr(body, CAST(? AS BLOB))"
                    if self._db.execute(used, (digest.hex(),)).fetchone() is None:
                        self._db.execute("DELETE FROM texts WHERE digest = ?", (digest,))
                        self._db.execute("DELETE FROM uses WHERE digest = ?", (digest,))
                seq, last = self._insert([note], *newest(self._db, self.journal), [])
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()  # the log has old pages, too
            head = Head(seq, last.hex(), self.journal)
            write_head(self.path, head)
        return head

    def _erase_body(self, seq: int) -> set[bytes]:
        """Erase one body. The texts that it refers to are returned."""
        row = self._db.execute("SELECT body, salt, erased FROM records WHERE seq = ?", (seq,)).fetchone()
        if row is None:
            raise JournalError(f"the journal {self.path} has no record {seq}")
        body, salt, erased = row
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


def _counted(db: sqlite3.Connection) -> Iterator[Counted]:
    """The records of a file, to be counted. One that is damaged is for `fairlead verify` to name."""
    for seq, body in db.execute("SELECT seq, body FROM records ORDER BY seq"):
        with suppress(msgspec.MsgspecError, UnicodeError, TypeError, KeyError, AttributeError):
            told = msgspec.json.decode(body, type=dict[str, Any])
            yield seq, columns_of(told), tally_of(told)


def refuse_changed(db: sqlite3.Connection, path: Path, schema: int) -> None:
    """Raise `JournalError` for a file with tables, or triggers, that are not ours: nothing is written to one."""
    if changed := changes_of(db, schema):
        raise JournalError(_strange(path, changed))


def changes_of(db: sqlite3.Connection, schema: int) -> list[str]:
    """How the tables, indexes, triggers and views of a file differ from those that this program would make."""
    return sorted(f"{what} {name!r} is {how}" for (what, name), how in _differences(db, schema))


def _differences(db: sqlite3.Connection, schema: int) -> Iterator[tuple[tuple[str, str], str]]:
    found, ours = _objects(db), _expected(schema)
    yield from ((key, "missing") for key in ours.keys() - found.keys())
    yield from ((key, "none of fairlead's") for key in found.keys() - ours.keys())
    yield from ((key, "changed") for key in ours.keys() & found.keys() if ours[key] != found[key])


def _objects(db: sqlite3.Connection) -> dict[tuple[str, str], str]:
    rows = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT GLOB 'sqlite_stat*'")
    return {(str(what), str(name)): f"{table}: {' '.join(str(sql).split())}" for what, name, table, sql in rows}


@cache
def _expected(schema: int) -> dict[tuple[str, str], str]:
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
        "directory": "move it away",
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
        os.write(descriptor, msgspec.json.encode(head))
    finally:
        os.close(descriptor)
    os.replace(new, beside(path, ".head"))
