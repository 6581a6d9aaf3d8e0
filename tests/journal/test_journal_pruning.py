"""Caps by size and by age: what is old goes, the chain says so, and what is left is whole."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from fairlead import Hooks
from fairlead.journal import writer
from fairlead.journal.verify import verify
from fairlead.lifecycle import BeforeModel


@pytest.fixture(autouse=True)
def tidy_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "PRUNE_INTERVAL", 0.0)


SHARED = {"role": "system", "content": "all of them share this " + "s" * 200}


@pytest.fixture
def pruned(open_journal: Any, path: Path) -> Path:
    """A journal of two hundred model calls, of which only the newest are kept."""
    journal = open_journal(max_size=150_000)
    hooks = Hooks(journal=journal)
    for number in range(200):
        own = {"role": "user", "content": f"only {number} has this " + "o" * 1000}
        hooks.dispatch_sync(BeforeModel(model="m", messages=[SHARED, own], request_id=str(number)))
        if number % 20 == 19:
            journal.flush()
    journal.close()
    return path


def test_a_journal_is_held_to_its_size(pruned: Path, sql: Any) -> None:
    pages, free, each = (sql(f"PRAGMA {what}")[0][0] for what in ("page_count", "freelist_count", "page_size"))
    size = (pages - free) * each
    assert size < 300_000


def test_the_file_itself_becomes_smaller(pruned: Path) -> None:
    assert pruned.stat().st_size < 400_000


def test_the_space_of_what_was_pruned_is_given_back(open_journal: Any, path: Path, keep: Any, sql: Any) -> None:
    journal = open_journal()
    keep(journal, *range(20), args={"command": "ls"}, metadata={"big": [str(n) * 300 for n in range(500)]})
    hooks = keep(journal, *range(500), args={"command": "y " * 300})
    journal.close()
    sql("PRAGMA wal_checkpoint(TRUNCATE)")
    before = path.stat().st_size
    again = open_journal(max_size=50_000)
    keep(again, 1)
    again.close()
    sql("PRAGMA wal_checkpoint(TRUNCATE)")
    assert hooks is not None
    assert path.stat().st_size < before / 2


def test_a_pruned_journal_verifies(pruned: Path) -> None:
    checked = verify(pruned)
    assert checked.problem is None
    assert checked.first is not None
    assert checked.first > 1


def test_the_newest_records_are_kept(pruned: Path, records: Any) -> None:
    numbers = [int(record.body["step"]["request_id"]) for record in records() if not record.is_note]
    assert numbers == list(range(numbers[0], 200))


def test_what_is_kept_is_whole(pruned: Path, records: Any) -> None:
    for record in records():
        if not record.is_note:
            own = f"only {record.body['step']['request_id']} has this " + "o" * 1000
            assert record.body["step"]["messages"] == [SHARED, {"role": "user", "content": own}]


def test_texts_that_only_pruned_records_used_are_gone(pruned: Path, records: Any, sql: Any) -> None:
    decisions = sum(not record.is_note for record in records())
    ((texts,),) = sql("SELECT count(*) FROM texts")
    assert texts == decisions + 2  # what all share, and the policy


def test_the_hooks_that_ran_for_pruned_records_are_gone(open_journal: Any, keep: Any, sql: Any) -> None:
    journal = open_journal(max_size=1)
    hooks = Hooks(journal=journal)
    hooks.add(lambda step: None, on="before_tool", name="hook")
    keep(journal, *range(50), hooks=hooks)
    keep(journal, "last", hooks=hooks)
    ((strays,),) = sql("SELECT count(*) FROM runs WHERE seq < (SELECT min(seq) FROM records)")
    assert strays == 0


def test_show_tells_a_kept_record_in_full(pruned: Path, cli: Any, records: Any) -> None:
    ended = cli("show", records()[-1].id, "--json", "--journal", pruned)
    assert "is missing" not in ended.out


def test_what_is_too_old_is_pruned(open_journal: Any, keep: Any, kept: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of the old ones stays, until the one after it is too old as well."""
    now = time.time_ns()
    journal = open_journal(max_age=3600)
    for minutes in (-300, -299, -240, 0, 30, 60):
        monkeypatch.setattr(writer.time, "time_ns", lambda at=now + minutes * 60 * 10**9: at)
        keep(journal, minutes)
    assert kept() == ["-240", "0", "30", "60"]


def test_what_is_young_enough_is_kept(open_journal: Any, keep: Any, kept: Any) -> None:
    keep(open_journal(max_age=3600), *range(30))
    assert len(kept()) == 30


def test_a_journal_is_pruned_again_and_again(open_journal: Any, keep: Any, path: Path) -> None:
    journal = open_journal(max_size=40_000)
    for number in range(30):
        keep(journal, *(f"{number}.{more}" for more in range(10)))
    journal.close()
    assert verify(path).problem is None


def test_a_prefix_deleted_by_hand_is_noticed(pruned: Path, sql: Any) -> None:
    ((first,),) = sql("SELECT min(seq) FROM records")
    for table in ("records", "runs"):
        sql(f"DELETE FROM {table} WHERE seq < ?", first + 2)
    checked = verify(pruned)
    assert (checked.verdict, checked.record) == ("bad", first + 1)


def test_a_prefix_deleted_by_hand_from_a_whole_journal_is_noticed(rich: Path, sql: Any) -> None:
    for table in ("records", "runs"):
        sql(f"DELETE FROM {table} WHERE seq < 3")
    assert verify(rich).record == 2


def test_a_kill_between_the_note_and_the_pruning_is_no_damage(
    run: Any, path: Path, open_journal: Any, keep: Any
) -> None:
    code = """
import fairlead.journal.store as store, fairlead.journal.writer as writer
writer.PRUNE_INTERVAL = 0.0
store.JournalFile.prune = lambda self, keep: os.kill(os.getpid(), signal.SIGKILL)
journal = Journal(path, max_size=1)
hooks = Hooks(journal=journal)
for number in range(10):
    hooks.dispatch_sync(step(number))
journal.flush()
"""
    assert run(code).code == -9
    keep(open_journal(), "after")
    assert verify(path).problem is None


def test_a_journal_is_held_to_its_size_while_it_is_written(open_journal: Any, path: Path, keep: Any, sql: Any) -> None:
    journal = open_journal(max_size=300_000)
    for _ in range(6):
        keep(journal, *range(400), args={"command": "x " * 200})
        journal.flush()
    journal.close()
    pages, free, each = (sql(f"PRAGMA {what}")[0][0] for what in ("page_count", "freelist_count", "page_size"))
    assert (pages - free) * each < 450_000
