"""Measures what journaling adds to a dispatch, records per second, and the time to find one session.

Part of `make bench`. Prints figures and compares them with the targets; asserts nothing.
"""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from fairlead import Hooks, Journal
from fairlead.journal.entry import Entry, entry_of
from fairlead.journal.reading import Filter, Reader
from fairlead.journal.store import JournalFile
from fairlead.lifecycle import BeforeTool

HOOKS, BURST, ROUNDS = 5, 300, 60
SUSTAINED, MILLION, PER_SESSION = 20_000, 1_000_000, 40
LIMIT_US = 5.0


def hooked(**options: Any) -> Hooks:
    hooks = Hooks(**options)
    for i in range(HOOKS):
        hooks.add(lambda step: None, on="before_tool", name=f"hook-{i}")
    return hooks


STEP = BeforeTool(tool="bash", args={"command": "git status --short"}, session_id="s-1", cwd="/repo", host="loop")


async def burst(hooks: Hooks) -> float:
    """Microseconds of one dispatch, in a burst that the queue has room for."""
    started = perf_counter()
    for _ in range(BURST):
        await hooks.dispatch(STEP)
    return (perf_counter() - started) / BURST * 1e6


async def added(folder: Path) -> tuple[float, float]:
    """Microseconds of a dispatch that is recorded, and of one that is journaled, in alternating bursts."""
    journal = Journal(folder / "added.db")
    plain, kept = hooked(record=True), hooked(journal=journal)
    recorded, journaled = [], []
    for _ in range(ROUNDS):
        recorded.append(await burst(plain))
        journaled.append(await burst(kept))
        journal.flush()
    journal.close()
    return statistics.median(recorded), statistics.median(journaled)


async def sustained(folder: Path) -> tuple[float, float]:
    """Records a second, from dispatch to disk; and raw inserts of the very same rows."""
    path = folder / "sustained.db"
    journal = Journal(path)
    hooks = hooked(journal=journal)
    started = perf_counter()
    for _ in range(SUSTAINED):
        await hooks.dispatch(STEP)
    journal.flush(None)
    ours = SUSTAINED / (perf_counter() - started)
    journal.close()
    return ours, raw(path, folder / "raw.db")


def raw(written: Path, path: Path) -> float:
    """The same rows into the same tables, by sqlite3 alone."""
    source = sqlite3.connect(written)
    schema = [sql for (sql,) in source.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")]
    rows = {table: source.execute(f"SELECT * FROM {table}").fetchall() for table in ("records", "runs")}
    source.close()
    target = sqlite3.connect(path, isolation_level=None)
    target.execute("PRAGMA journal_mode = WAL")
    target.execute("PRAGMA synchronous = FULL")
    for sql in schema:
        target.execute(sql)
    started = perf_counter()
    for at in range(0, SUSTAINED, 512):
        target.execute("BEGIN IMMEDIATE")
        batch = rows["records"][at : at + 512]
        target.executemany(f"INSERT INTO records VALUES ({', '.join('?' * len(batch[0]))})", batch)
        target.executemany("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?)", rows["runs"][at * HOOKS : (at + 512) * HOOKS])
        target.execute("COMMIT")
    took = perf_counter() - started
    target.close()
    return SUSTAINED / took


def entries(count: int) -> Iterator[Entry]:
    now = time.time_ns()
    for i in range(count):
        step = {
            "event": "before_tool",
            "session_id": f"s-{i // PER_SESSION}",
            "tool": "bash",
            "args": {"command": f"ls {i}"},
        }
        body = {"id": f"b-{i}", "at": now + i, "kind": "decision", "control": "proceed", "step": step, "runs": []}
        yield entry_of(body)


def one_of_many(folder: Path) -> tuple[float, float, int]:
    """Milliseconds to read one session out of a million records, cold and warm."""
    path = folder / "million.db"
    store, batch = JournalFile(path), []
    for entry in entries(MILLION):
        batch.append(entry)
        if len(batch) == 20_000:
            store.append(batch)
            batch.clear()
    store.close()
    taken, found = [], 0
    for i in range(50):
        started = perf_counter()
        with Reader(path) as reader:
            found = len(list(reader.records(Filter(session=f"s-{i * 499}"))))
        taken.append((perf_counter() - started) * 1e3)
    return taken[0], statistics.median(taken), found


def main() -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        recorded, journaled = asyncio.run(added(folder))
        more = journaled - recorded
        mark = "" if more <= LIMIT_US else "   OVER"
        print(f"a dispatch with {HOOKS} hooks, recorded: {recorded:.2f} us; journaled: {journaled:.2f} us")
        print(f"  journaling adds {more:.2f} us (at most {LIMIT_US:g}){mark}")
        ours, by_hand = asyncio.run(sustained(folder))
        print(f"sustained, from dispatch to disk: {ours:,.0f} records a second, redacted and chained")
        print(f"  raw sqlite3 inserts of the same rows: {by_hand:,.0f} a second ({by_hand / ours:.1f}x)")
        cold, warm, found = one_of_many(folder)
        print(f"one session ({found} records) out of {MILLION:,}: {cold:.1f} ms at first, {warm:.1f} ms then")


if __name__ == "__main__":
    main()
