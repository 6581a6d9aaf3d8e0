"""The page of the journal: how large it is, and whether it is what was written."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from ui_journal import wait_until

from fairlead.journal import Journal
from fairlead.journal.reading import Reader
from fairlead.ui.pages.journal import Check, journal_state


@pytest.fixture
def copy(journal: Path, tmp_path: Path) -> Path:
    """A journal that a test may change."""
    for file in journal.parent.glob("journal*"):
        if file.is_file():
            shutil.copy(file, tmp_path / file.name)
    return tmp_path / journal.name


def test_the_state_has_the_numbers_of_the_records(reader: Reader):
    state = journal_state(reader)
    assert state.first == 1
    assert state.last == sum(1 for _ in reader.records())
    assert state.head is not None
    assert state.head.seq == state.last


def test_a_sound_journal_is_verified_until_its_last_record(tab, reader: Reader):
    assert tab.post("/journal/check").status_code == 200
    assert f"verified until record {journal_state(reader).last}" in tab.get("/journal").text


def test_a_changed_record_is_named(new_tab, copy: Path):
    with closing(sqlite3.connect(copy)) as db, db:
        db.execute("UPDATE records SET tool = 'ls' WHERE seq = 5")
    tab = new_tab(copy).sign_in()
    tab.post("/journal/check")
    shown = tab.get("/journal").text
    assert "Not what was written" in shown
    assert "record 5" in shown


def test_a_check_is_only_started_by_a_page_of_ours(tab):
    assert tab.get("/journal/check").status_code == 405
    assert tab.post("/journal/check", x_fairlead_key="wrong").status_code == 403


def test_one_check_runs_at_a_time(copy: Path, monkeypatch: pytest.MonkeyPatch):
    from fairlead.ui.pages import journal as module

    running = []
    monkeypatch.setattr(module, "verify", lambda *args: wait_until(lambda: running) or None)
    check = Check(copy)
    assert check.start(None)
    assert not check.start(None)
    running.append(True)
    check.wait(10)
    assert check.start(None)
    check.wait(10)


def test_notes_are_listed(new_tab, copy: Path):
    with Journal(copy) as journal:
        journal.note("paused by hand")
        journal.flush()
    assert "paused by hand" in new_tab(copy).sign_in().get("/journal").text
