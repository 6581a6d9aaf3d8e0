"""The journal's tables, and whether a file has these and nothing else: a foreign trigger could drop records."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

from .entry import OLD_COLUMNS
from .errors import JournalError, NewerJournal

SCHEMA = 2
"""The version of the tables below. A newer fairlead has made a file with a higher one."""
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
"""The effective control, in SQL. The index below needs exactly this expression."""
RARE = f"{EFFECT} NOT IN ('proceed')"
SECOND = f"""
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
"""What schema 2 adds. A new file runs the same statements as an upgraded one, so that both are equal."""
SCRIPTS = {1: _TABLES, 2: _TABLES + SECOND}


def version_of(db: sqlite3.Connection, path: Path) -> int:
    """The schema of a file; 0 for a new file.

    Raises `JournalError` for another program's database.
    """
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (application,) = db.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION and (version or db.execute("SELECT 1 FROM sqlite_master").fetchone()):
        raise JournalError(f"{path} is a database, but not a fairlead journal; name another path")
    return int(version)


def newer_error(path: Path, version: int) -> NewerJournal:
    """The error for a journal that a newer fairlead has made."""
    return NewerJournal(f"the journal {path} has schema {version}, and this fairlead knows {SCHEMA}: update fairlead")


_Object = tuple[str, str, str, str]
_SPACES = re.compile(r"[ \t\n\f\r]+")
"""SQLite's white space. Other white space can be part of a name."""
_STATISTICS = [
    ("table", "sqlite_stat1", "sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)"),
    ("table", "sqlite_stat4", "sqlite_stat4", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"),
]
"""The tables that ANALYZE makes for the query planner. Only some builds of SQLite make the second."""


def refuse_changed(db: sqlite3.Connection, path: Path, schema: int) -> None:
    """Raise `JournalError` for a file with foreign tables or triggers. Nothing is written to it."""
    if changed := changes_of(db, schema):
        raise JournalError(_foreign_objects(path, changed))


def changes_of(db: sqlite3.Connection, schema: int) -> list[str]:
    """How the tables, indexes, triggers and views of a file differ from what fairlead creates."""
    return sorted(f"{what} {name!r} is {how}" for (what, name), how in _differences(db, schema))


def _differences(db: sqlite3.Connection, schema: int) -> Iterator[tuple[tuple[str, str], str]]:
    found, ours = Counter(_objects(db)), Counter(_expected(schema))
    strange, missing = found - ours - Counter(_STATISTICS), ours - found
    names = {one[:2] for one in ours}
    yield from ((one[:2], "changed" if one[:2] in names else "none of fairlead's") for one in strange)
    yield from ((one[:2], "missing") for one in missing if one[:2] not in {other[:2] for other in strange})


def objects_in(db: sqlite3.Connection) -> list[Any]:
    """All objects of the file. What SQLite does with an object follows from its SQL alone."""
    return db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid").fetchall()


def _objects(db: sqlite3.Connection) -> list[_Object]:
    return [(str(what), str(name), str(table), _SPACES.sub(" ", str(sql))) for what, name, table, sql in objects_in(db)]


@cache
def _expected(schema: int) -> list[_Object]:
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCRIPTS[schema])
        return _objects(db)


def _foreign_objects(path: Path, changes: list[str]) -> str:
    return (
        f"the journal {path} cannot be trusted to keep what is written to it: {'; '.join(changes)}; move it away; "
        "`fairlead verify` says more"
    )
