"""The page of sessions: the newest first, with what was asked and what stood out."""

from __future__ import annotations

from ui_journal import SESSION

from fairlead import Hooks
from fairlead.journal import Journal
from fairlead.journal.reading import Reader
from fairlead.lifecycle import BeforeInput
from fairlead.ui.pages.sessions import newest_sessions


def test_the_newest_session_comes_first(reader):
    last = [one.row.last for one in newest_sessions(reader)]
    assert last == sorted(last, reverse=True)


def test_a_session_is_listed_by_what_the_user_asked(reader):
    found = {one.row.session: one for one in newest_sessions(reader)}
    assert found["calls"].message == "Fix the failing test, and save the work."
    assert found["calls"].folder == "/work/calc"


def test_a_page_goes_on_where_the_one_before_it_ended(reader):
    everything = [one.row.session for one in newest_sessions(reader)]
    first = newest_sessions(reader, limit=1)
    rest = newest_sessions(reader, before=first[0].row.last)
    assert [one.row.session for one in (*first, *rest)] == everything


def test_the_page_counts_what_stood_out(tab):
    shown = tab.get("/").text
    row = shown.partition('id="session-calls"')[2].partition("</tr>")[0]
    for words in ("Fix the failing test", "claude_code", "/work/calc", "denied", "hook failed", "changed", "asked"):
        assert words in row
    assert f"/session?id={SESSION}" in shown


def test_without_a_journal_the_page_says_what_writes_one(new_tab, tmp_path):
    answer = new_tab(tmp_path / "none.db").sign_in().get("/")
    assert answer.status_code == 200
    assert "fairlead install" in answer.text


def test_without_a_journal_the_page_waits_for_the_first_session(new_tab, tmp_path):
    shown = new_tab(tmp_path / "none.db").sign_in().get("/").text
    assert 'data-live="/live?after=0"' in shown
    assert f"{tmp_path}/none.db" in shown


async def test_a_session_is_listed_by_a_long_message_too(tmp_path):
    path = tmp_path / "long.db"
    journal = Journal(path)
    async with Hooks(journal=journal) as hooks:
        await hooks.dispatch(BeforeInput(input="Find out why it is slow. " + "More. " * 500, session_id="s"))
    journal.close()
    with Reader(path) as reader:
        (one,) = newest_sessions(reader)
    assert one.message is not None
    assert one.message.startswith("Find out why it is slow. More.")
    assert len(one.message) < 400
