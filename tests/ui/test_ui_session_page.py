"""The page of one session, its details, and the page of one decision."""

from __future__ import annotations

import re
import shlex

import pytest
from ui_journal import DENIED, SECRET, SESSION

from fairlead.lifecycle import EVENTS
from fairlead.ui.pages.decision import decision_view


@pytest.fixture
def shown(tab):
    return tab.get("/session?id=calls").text


def before_tool(reader, text: str) -> int:
    """The number of the record at which a call was judged, by something that its record holds."""
    query = "SELECT seq FROM records WHERE event = 'before_tool' AND instr(body, CAST(? AS BLOB))"
    return int(reader.db.execute(query, (text,)).fetchone()[0])


def test_who_reads_only_what_stands_out_knows_the_session(shown):
    section = shown.partition("What stands out")[2].partition("</section>")[0]
    for words in (
        "denied",
        "git push --force origin main",
        "Force-push is off here.",
        DENIED,
        "hook failed",
        "changed",
    ):
        assert words in section


def test_the_facts_say_what_it_cost(shown):
    facts = re.search(r'class="facts">(.*?)</p>', shown)[1]
    assert "claude_code" in facts
    assert "/work/calc" in facts
    assert re.search(r"\d+ records → \d+ moments", facts)
    assert "of which hooks" in facts


def test_every_event_is_on_the_page_of_a_session_that_has_them_all(tab):
    rows = tab.get(f"/session?id={SESSION}").text.count('<li id="m')
    assert rows > len(EVENTS) / 2


def test_details_show_the_diff_each_hook_and_the_records(tab, reader):
    seq = before_tool(reader, "rm -rf build")
    shown = tab.get(f"/moment?record={seq}").text
    assert '<div class="removed">-rm -rf build</div>' in shown
    assert '<div class="added">+mv build .trash/</div>' in shown
    for words in ("trash", "may change", "judges", DENIED, "no opinion", reader.record(str(seq)).id):
        assert words in shown


def test_a_secret_is_on_no_page_and_its_kind_is(tab, reader):
    seq = before_tool(reader, "Authorization")
    pages = [
        tab.get(address).text for address in ("/", "/session?id=calls", f"/moment?record={seq}", f"/decision?id={seq}")
    ]
    assert not any(SECRET in page for page in pages)
    assert "Taken out before it was written" in pages[2]


def test_a_moment_is_a_command_to_paste(tab, reader, fairlead, tmp_path):
    seq = before_tool(reader, "git push")
    shown = tab.get(f"/moment?record={seq}").text
    command = re.search(r'<pre tabindex="0">(.*?)</pre>', shown)[1].replace("&#x27;", "'").replace("&quot;", '"')
    words = shlex.split(command)
    assert words[:3] == ["fairlead", "test", "before_tool"]
    words[words.index("-C") + 1] = str(tmp_path)
    code, out, _ = fairlead(*words[1:])
    assert code == 0
    assert "git push --force origin main" in out


def test_a_decision_links_to_those_before_and_after(reader):
    middle = reader.record("10")
    view = decision_view(reader, middle.id)
    assert (view.before, view.after) == (reader.record("9").id, reader.record("11").id)


def test_every_record_has_a_page(tab, reader):
    for (seq,) in reader.db.execute("SELECT seq FROM records"):
        answer = tab.get(f"/decision?id={seq}")
        assert answer.status_code == 200, answer.text
        assert reader.record(str(seq)).digest in answer.text


def test_an_address_to_a_record_leads_to_its_moment(tab, reader):
    (seq,) = reader.db.execute(
        "SELECT seq FROM records WHERE session = 'calls' AND event = 'after_tool' LIMIT 1"
    ).fetchone()
    shown = tab.get(f"/session?id=calls&at={seq}").text
    assert shown.count(" data-here>") == 1


@pytest.mark.parametrize(
    ("address", "status", "words"),
    [
        ("/session?id=none", 404, "no session"),
        ("/session", 404, "no session"),
        ("/decision?id=none", 404, "no record"),
        ("/nothing", 404, "no such page"),
        ("/session?id=calls&after=abc", 200, "What stands out"),
        ("/session?id=calls&after=99999999999999999999999", 200, "What stands out"),
        ("/moment?record=99999999", 404, "no record"),
        ("/moment", 404, "names no record"),
    ],
)
def test_a_wrong_address_says_what_is_wrong(tab, address, status, words):
    answer = tab.get(address)
    assert answer.status_code == status
    assert words in answer.text
