"""Looks for records in a large journal: in steps of numbers, from the newest back, for a bounded time.

A query that finds little would read the whole file, and hold up the journal's writer. So each answer looks at as many
records as its time allows, and says where to go on. What is rare has an index, and needs no steps.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from time import perf_counter
from typing import Any, NamedTuple

import msgspec

from ..journal.errors import JournalError
from ..journal.reading import Filter, Reader
from ..journal.schema import RARE
from .moments import SessionMoment, single_moment

BUDGET = 0.05
"""Seconds that an answer may look."""
FIRST_STEP, LARGEST_STEP = 500, 20_000
"""Numbers that are looked at in one query: more and more, as long as it is quick."""
QUICK = 0.01
SHOWN = 100
"""Records on one page."""
COUNTED = 2000
"""Records that the counts beside the list are about."""
NOTABLE = "notable"
"""As a decision in an address: anything but proceed."""
FACETS = ("decision", "hook", "tool", "host", "event")


class RecordSelection(NamedTuple):
    """Which records an address asks for."""

    filter: Filter = Filter()
    text: str = ""
    notable: bool = False

    @property
    def is_everything(self) -> bool:
        return self.filter == Filter() and not self.text and not self.notable

    @property
    def is_indexed(self) -> bool:
        """Whether an index leads to the records, so that looking takes no steps."""
        rare = self.notable or self.filter.decision not in (None, "proceed")
        return not self.text and (rare or self.filter.session is not None)


class Light(NamedTuple):
    """The columns of a record."""

    seq: int
    decision: str | None
    hook: str | None
    tool: str | None
    host: str | None
    event: str | None


class Page(NamedTuple):
    """What was found: the moments to show, the counts beside them, and where to go on."""

    moments: list[SessionMoment]
    counts: dict[str, Counter[str]]
    counted: int
    before: int | None  # go on with the records before this number; None if all were looked at
    is_cut: bool  # the time was over before the page was full


def search(
    reader: Reader, selection: RecordSelection, *, before: int | None = None, budget: float | None = None
) -> Page:
    """The newest records of a selection, before a number."""
    condition, values = _condition(reader, selection)
    newest = newest_number(reader)
    oldest = reader.db.execute("SELECT coalesce(min(seq), 1) FROM records").fetchone()[0]
    upper = min(before or newest + 1, newest + 1)
    found: list[Light] = []
    until = perf_counter() + (BUDGET if budget is None else budget)
    step = newest + 1 if selection.is_indexed else FIRST_STEP
    while upper > oldest and len(found) < COUNTED:
        lower, started = max(upper - step, oldest), perf_counter()
        found += _step(reader, condition, values, lower, upper, COUNTED - len(found))
        upper = lower
        if perf_counter() - started < QUICK:
            step = min(step * 4, LARGEST_STEP) if not selection.is_indexed else step
        if perf_counter() > until:  # after a step, so that each answer gets somewhere
            break
    shown = found[:SHOWN]
    is_cut = len(found) < SHOWN and upper > oldest
    more = upper if is_cut else shown[-1].seq if len(found) > SHOWN else upper if upper > oldest else None
    return Page([_moment(reader, one.seq) for one in shown], _counts(found), len(found), more, is_cut)


def newest_number(reader: Reader) -> int:
    """The number of the newest record."""
    return int(reader.db.execute("SELECT coalesce(max(seq), 0) FROM records").fetchone()[0])


def _step(
    reader: Reader, condition: str, values: list[Any], lower: int, upper: int, limit: int
) -> list[Light]:  # fmt: skip
    effect = "coalesce(effect, control)" if reader.version > 1 else "control"
    query = (
        f"SELECT seq, {effect}, hook, tool, host, event FROM records WHERE seq >= ? AND seq < ? AND {condition} "  # noqa: S608
        "ORDER BY seq DESC LIMIT ?"
    )
    try:
        return [Light(*row) for row in reader.db.execute(query, (lower, upper, *values, limit))]
    except (sqlite3.Error, UnicodeError) as error:
        raise JournalError(f"the journal {reader.path} cannot be read: {error}; run `fairlead verify`") from None


def _condition(reader: Reader, selection: RecordSelection) -> tuple[str, list[Any]]:
    """The SQL of a selection. The runs of a hook are looked up for each record: most journals have millions."""
    which = selection.filter
    condition, values = msgspec.structs.replace(which, hook=None).where(reader.version)
    if which.hook is not None:
        condition += " AND (hook = ? OR EXISTS (SELECT 1 FROM runs WHERE runs.seq = records.seq AND runs.hook = ?))"
        values += [which.hook, which.hook]
    if selection.notable:
        condition += f" AND {RARE}" if reader.version > 1 else " AND control <> 'proceed'"
    if selection.text:
        condition += " AND instr(body, CAST(? AS BLOB))"
        values.append(as_written(selection.text))
    return condition, values


def as_written(text: str) -> str:
    """A text as it is in the JSON of a record."""
    return msgspec.json.encode(text).decode()[1:-1]


def _counts(found: list[Light]) -> dict[str, Counter[str]]:
    return {name: Counter(value for one in found if (value := getattr(one, name))) for name in FACETS}


def _moment(reader: Reader, seq: int) -> SessionMoment:
    """A record by itself, as a moment. In a list of decisions, each record is a row."""
    query = "SELECT seq, id, at, session, event, body FROM records WHERE seq = ?"
    return single_moment(reader, reader.db.execute(query, (seq,)).fetchone())


# --- long texts -----------------------------------------------------------------------------------


class TextPage(NamedTuple):
    """Records that refer to a long text with the words in it. Long texts are stored once, beside the records."""

    moments: list[SessionMoment]
    before: int | None


def search_texts(reader: Reader, text: str, *, before: int | None = None, budget: float | None = None) -> TextPage:
    """The newest record of each long text that has a text in it, the newest texts first."""
    newest = reader.db.execute("SELECT coalesce(max(rowid), 0) FROM texts").fetchone()[0]
    upper = min(before or newest + 1, newest + 1)
    query = (
        "SELECT uses.last FROM texts JOIN uses USING (digest) WHERE texts.rowid >= ? AND texts.rowid < ? "
        "AND instr(texts.body, CAST(? AS BLOB)) ORDER BY texts.rowid DESC"
    )
    found: list[int] = []
    until = perf_counter() + (BUDGET if budget is None else budget)
    step = FIRST_STEP
    while upper > 1 and len(found) < SHOWN:
        lower, started = max(upper - step, 1), perf_counter()
        found += [seq for (seq,) in reader.db.execute(query, (lower, upper, as_written(text)))]
        upper = lower
        if perf_counter() - started < QUICK:
            step = min(step * 4, LARGEST_STEP)
        if perf_counter() > until:
            break
    known = [seq for seq in dict.fromkeys(found) if _exists(reader, seq)]
    return TextPage([_moment(reader, seq) for seq in known], upper if upper > 1 else None)


def _exists(reader: Reader, seq: int) -> bool:
    return reader.db.execute("SELECT 1 FROM records WHERE seq = ? AND kind = 'decision'", (seq,)).fetchone() is not None
