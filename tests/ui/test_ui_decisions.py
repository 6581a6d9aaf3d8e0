"""The page of all decisions: filters in the address, said back in words; counts; a search that takes bounded time."""

from __future__ import annotations

import html
import re

import pytest
from ui_journal import DENIED, SECRET

from fairlead.journal.reading import Filter
from fairlead.ui import searching
from fairlead.ui.searching import RecordSelection, search, search_texts


def everything(reader, selection, **options):
    """The numbers of all records of a selection, page after page."""
    found, before = [], None
    while True:
        page = search(reader, selection, before=before, **options)
        found += [moment.seq for moment in page.moments]
        before = page.before
        if before is None:
            return found


SELECTIONS = {
    "all": RecordSelection(),
    "denied": RecordSelection(Filter(decision="deny")),
    "notable": RecordSelection(notable=True),
    "hook": RecordSelection(Filter(hook=DENIED)),
    "tool": RecordSelection(Filter(tool="R*")),
    "host": RecordSelection(Filter(host="claude_code")),
    "session": RecordSelection(Filter(session="calls")),
    "session and tool": RecordSelection(Filter(session="calls", tool="bash")),
    "event and decision": RecordSelection(Filter(event="before_tool", decision="deny")),
    "never": RecordSelection(Filter(decision="abort")),
    "agent": RecordSelection(Filter(agent="explorer")),
}


@pytest.fixture
def small_steps(monkeypatch):
    """Steps and pages so small that a journal of some dozens of records needs many."""
    for name, value in {"FIRST_STEP": 3, "LARGEST_STEP": 3, "SHOWN": 2, "COUNTED": 5}.items():
        monkeypatch.setattr(searching, name, value)


@pytest.mark.parametrize("name", SELECTIONS)
def test_the_pages_of_a_selection_have_each_of_its_records_once(reader, small_steps, name):
    selection = SELECTIONS[name]
    if selection.notable:
        wanted = [record.seq for record in reader.records() if record.effect not in (None, "proceed")]
    else:
        wanted = [record.seq for record in reader.records(selection.filter)]
    assert everything(reader, selection) == wanted[::-1]


@pytest.mark.parametrize("budget", [0.0, 1e-9])
def test_without_time_a_search_says_where_to_go_on(reader, small_steps, budget):
    page = search(reader, RecordSelection(text="nowhere"), budget=budget)
    assert page.moments == []
    assert page.is_cut
    assert page.before == searching.newest_number(reader) - 2


def test_a_search_that_is_cut_finds_all_in_the_end(reader, small_steps):
    wanted = [record.seq for record in reader.records() if "git push" in str(record.body)]
    assert wanted
    assert everything(reader, RecordSelection(text="git push"), budget=1e-4) == wanted[::-1]


def test_a_text_is_found_as_people_write_it(reader):
    """In the journal it is JSON: quotes and lines are escaped."""
    assert everything(reader, RecordSelection(text="Force-push is off here.\nOpen a pull request."))
    assert everything(reader, RecordSelection(text="-qam 'Fix add'"))
    assert not everything(reader, RecordSelection(text=SECRET))


def test_long_texts_are_found_by_their_newest_record(reader):
    (digest, text) = reader.db.execute("SELECT digest, CAST(body AS TEXT) FROM texts LIMIT 1").fetchone()
    (last,) = reader.db.execute("SELECT last FROM uses WHERE digest = ?", (digest,)).fetchone()
    word = max(re.findall(r"\w{5,}", text), key=len)
    assert last in [moment.seq for moment in search_texts(reader, word).moments]
    assert search_texts(reader, "nowhere at all").moments == []


def test_counts_are_those_of_the_records_found(reader):
    page = search(reader, RecordSelection(Filter(session="calls")))
    wanted = [record.body["step"].get("tool") for record in reader.records(Filter(session="calls"))]
    assert page.counts["tool"]["bash"] == wanted.count("bash")
    assert page.counted == len(wanted)


# --- the page -----------------------------------------------------------------------------------------


def words_of(page: str, part: str) -> str:
    inside = re.search(rf'class="{part}"[^>]*>(.*?)</p>', page, re.DOTALL)[1]
    return html.unescape(re.sub(r"<[^>]+>", "", inside)).strip()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", "All records, newest first."),
        ("decision=deny", "Records with the decision denied, newest first. Show all"),
        ("decision=notable", "Records with another decision than goes on, newest first. Show all"),
        (
            "hook=no-force-push&tool=bash",
            "Records with the hook no-force-push, of the tool bash, newest first. Show all",
        ),
        ("session=calls&q=git+push", "Records in the session calls, containing git push, newest first. Show all"),
        ("since=2020-01-01&event=before_tool", "Records at before_tool, since 2020-01-01, newest first. Show all"),
    ],
)
def test_the_page_says_back_what_its_address_asks_for(tab, query, words):
    said = words_of(tab.get(f"/decisions?{query}").text, "sentence")
    assert sorted(re.split(r", ", said)) == sorted(re.split(r", ", words))


def test_each_count_is_a_link_that_asks_for_it(tab):
    page = tab.get("/decisions?session=calls").text
    link = re.search(r'<a href="([^"]*decision=deny[^"]*)"><span>denied</span> <span class="dim">(\d+)', page)
    narrower = tab.get(html.unescape(link[1])).text
    assert narrower.count('<li id="d') == int(link[2])


def test_the_page_goes_on(tab, monkeypatch):
    monkeypatch.setattr(searching, "SHOWN", 10)
    first = tab.get("/decisions").text
    older = html.unescape(re.search(r'href="(/decisions\?before=\d+)"', first)[1])
    second = tab.get(older).text
    ids = [set(re.findall(r'<li id="(d\d+)"', page)) for page in (first, second)]
    assert len(ids[0]) == len(ids[1]) == 10
    assert not ids[0] & ids[1]


def test_the_script_gets_rows_and_where_to_go_on(tab, monkeypatch, small_steps):
    monkeypatch.setattr(searching, "BUDGET", 0.0)
    rows = tab.get("/decisions/rows?q=nowhere").text
    assert rows.startswith('<ol id="rows">')
    assert "data-more" in rows
    assert "data-auto" in rows
    assert "<html" not in rows


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("decision=denyy", "did you mean"),
        ("event=before_tol", "did you mean"),
        ("since=whenever", "whenever"),
        ("tool={a", "never closed"),
    ],
)
def test_a_mistake_in_the_address_is_said(tab, query, words):
    answer = tab.get(f"/decisions?{query}")
    assert answer.status_code == 400
    assert words.lower() in answer.text.lower()


def test_a_link_leads_to_all_decisions_that_stand_out(tab):
    """A denial may be older than the records that are counted."""
    shown = tab.get("/decisions").text
    assert 'href="/decisions?decision=notable"' in shown
    assert "all that stand out" in shown
