"""The feeds: every record arrives once, in order, and a connection that broke goes on where it was."""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing

import pytest
from ui_journal import demo_hooks

from fairlead.journal import Journal
from fairlead.journal.errors import JournalError
from fairlead.journal.reading import Reader
from fairlead.lifecycle import BeforeTool
from fairlead.ui import live
from fairlead.ui.live import event
from fairlead.ui.markup import h
from fairlead.ui.pages.session import Following, session_view
from fairlead.ui.pages.sessions import changed_sessions
from fairlead.ui.searching import newest_number


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(live, "POLL", 0.005)
    monkeypatch.setattr(live, "WITHOUT_JOURNAL", 0.005)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "live.db"


async def write(path, count: int, session: str = "s", first: int = 0) -> None:
    journal = Journal(path)
    async with demo_hooks(journal) as hooks:
        for number in range(first, first + count):
            step = BeforeTool(tool="bash", args={"command": f"echo {number}"}, call_id=str(number), session_id=session)
            await hooks.dispatch(step)
    journal.close()


def records(reader, after, now):
    """A feed's rows: one for each record."""
    query = "SELECT seq FROM records WHERE seq > ? AND seq <= ? ORDER BY seq"
    return [(seq, h.li(seq)) for (seq,) in reader.db.execute(query, (after, now))]


async def arrived(path, after: int, count: int, new_rows=records) -> list[tuple[int, str]]:
    """The first rows of a feed, with the id of each."""
    found: list[tuple[int, str]] = []
    async with asyncio.timeout(20), aclosing(live._events(path, after, new_rows)) as events:
        async for text in events:
            if match := re.fullmatch(r"id: (\d+)\nevent: row\n(.*)\n\n", text, re.DOTALL):
                data = "\n".join(line.removeprefix("data: ") for line in match[2].split("\n"))
                found.append((int(match[1]), data))
            if len(found) >= count:
                return found
    raise AssertionError("the feed ended")


async def test_every_record_arrives_once_and_in_order_while_they_are_written(path):
    reading = asyncio.create_task(arrived(path, 0, 300))
    for first in range(0, 300, 50):
        await write(path, 50, first=first)
    assert [seq for seq, _ in await reading] == list(range(1, 301))


async def test_a_feed_goes_on_after_the_number_that_the_browser_had(path):
    await write(path, 20)
    assert [seq for seq, _ in await arrived(path, 15, 5)] == [16, 17, 18, 19, 20]


async def test_a_feed_waits_for_a_journal_that_is_not_there_yet(path):
    reading = asyncio.create_task(arrived(path, 0, 1))
    await asyncio.sleep(0)
    await write(path, 1)
    assert [seq for seq, _ in await reading] == [1]


async def test_a_journal_that_cannot_be_read_for_a_moment_loses_no_row(path):
    await write(path, 3)
    looks = []

    def busy_at_first(reader, after, now):
        looks.append(after)
        if len(looks) == 1:
            raise JournalError("database is locked")
        return records(reader, after, now)

    assert [seq for seq, _ in await arrived(path, 0, 3, busy_at_first)] == [1, 2, 3]
    assert looks == [0, 0]


async def test_a_feed_takes_up_a_journal_that_replaced_another(path):
    await write(path, 3)
    async with asyncio.timeout(20), aclosing(live._events(path, 3, records)) as events:
        await anext(events)  # it has looked at the journal
        await asyncio.wait_for(write(path, 1, first=3), 10)
        assert "id: 4" in await anext(events)
        for file in path.parent.glob("live.db*"):
            if file.is_file():
                file.unlink()
        await write(path, 2)
        assert "id: 1\n" in await anext(events)
        assert "id: 2\n" in await anext(events)


async def test_a_session_that_has_something_new_is_in_the_feed_of_the_list(path):
    await write(path, 3, "old")
    await write(path, 2, "new", first=3)
    with Reader(path) as reader:
        assert [one.row.session for one in changed_sessions(reader, 3, newest_number(reader))] == ["new"]
        assert [one.row.session for one in changed_sessions(reader, 0, newest_number(reader))] == ["old", "new"]


async def test_a_record_of_a_moment_that_is_there_changes_its_row(path, journal):
    """What a feed sends, row by row, is what the page shows when it is loaded again."""
    with Reader(journal) as reader:
        view = session_view(reader, "calls")
        following = Following("calls", int(view.timeline.moments[0].began * 1e6))
        shown: dict[str, str] = {}
        seqs = [seq for (seq,) in reader.db.execute("SELECT seq FROM records WHERE session = 'calls' ORDER BY seq")]
        for before, now in zip([seqs[0] - 1, *seqs], seqs, strict=False):
            for _, row in following.rows(reader, before, now):
                shown[re.search(r'<li id="(\w+)"', row)[1]] = row
    moments = {f"m{moment.seq}": moment for moment in view.timeline.moments}
    assert shown.keys() == moments.keys()
    assert all(moment.findings[0].mark.word in shown[name] for name, moment in moments.items() if moment.findings)


async def test_a_feed_that_begins_in_the_middle_of_a_call_knows_the_call(journal):
    with Reader(journal) as reader:
        call = next(moment for moment in session_view(reader, "calls").timeline.moments if len(moment.rows) == 5)
        middle, last = call.rows[1].seq, call.rows[-1].seq
        found = dict(Following("calls", 0).rows(reader, middle, last))
    assert f'id="m{call.seq}"' in found[last]


def test_a_row_of_several_lines_is_one_event():
    assert event(7, h.pre("a\nb")) == "id: 7\nevent: row\ndata: <pre>a\ndata: b</pre>\n\n"


def test_a_text_of_a_record_cannot_end_an_event():
    assert event(7, h.p("x\r\n\rid: 9")).count("id:") == 2
    assert "\r" not in event(7, h.p("x\r\rid: 9"))
