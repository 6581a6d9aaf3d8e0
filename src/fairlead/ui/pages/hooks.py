"""The hooks: how often each ran, denied and failed, how long it took, when it last spoke, and where it stands."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...config.layers import find, read
from ...journal.reading import Filter, HookStats, Reader
from ..clock import moment, plural
from ..layout import number, page, reader_of
from ..marks import MARKS
from ..markup import Html, h
from ..record_details import decision_address

MENU = ("Hooks", "/hooks")
WINDOWS = (1_000, 10_000, 100_000)
"""Of how many of the newest records the page can tell. The first one is what it shows without a choice."""


class LastVerdict(NamedTuple):
    """The newest record at which a hook had something to say, and how often it had."""

    record: str
    at: float
    verdicts: int


class HookRow(NamedTuple):
    """A hook, with what the newest records say of it."""

    stats: HookStats
    last_verdict: LastVerdict | None
    place: str | None


# --- the query ------------------------------------------------------------------------------------


def hooks_of(reader: Reader, newest: int, places: dict[str, str] | None = None) -> list[HookRow]:
    """The hooks that ran at the newest records. Those that refuse or fail come first, then the costly ones."""
    last_verdict = _last_verdicts(reader, newest)
    rows = [
        HookRow(stats, last_verdict.get(stats.hook), (places or {}).get(stats.hook))
        for stats in reader.stats(Filter(newest=newest))
    ]
    return sorted(rows, key=lambda row: (-row.stats.denials - row.stats.failures, -row.stats.total, row.stats.hook))


def _last_verdicts(reader: Reader, newest: int) -> dict[str, LastVerdict]:
    query = (
        "SELECT speaker, id, at, verdicts FROM records JOIN (SELECT hook AS speaker, max(seq) AS latest, "
        "count(*) AS verdicts FROM runs "
        "WHERE outcome = 'verdict' AND seq > (SELECT max(seq) FROM records) - ? GROUP BY hook) ON seq = latest"
    )
    found = reader.db.execute(query, (newest,))
    return {hook: LastVerdict(str(record), at / 1e9, verdicts) for hook, record, at, verdicts in found}


def places_of(folder: Path) -> dict[str, str]:
    """Where each configured hook stands, as this folder's configuration has it: `file:line`."""
    return {configured.name: configured.where for configured in read(find(folder)).hooks}


# --- the page -------------------------------------------------------------------------------------


def hook_list(rows: list[HookRow]) -> Html:
    """The hooks, one in a row."""
    head = ("hook", "runs", "verdicts", "what stood out", "median ms", "p99 ms", "share of time", "last verdict")
    return h.table(
        h.caption("Hooks, those that refused or failed first", class_="hidden"),
        h.thead(h.tr([h.th(word, scope="col", class_="number" if word in _NUMBERS else None) for word in head])),
        h.tbody([_row(row) for row in rows], id="rows"),
        class_="hook-list",
    )


_NUMBERS = frozenset({"runs", "verdicts", "median ms", "p99 ms", "share of time"})


def _row(row: HookRow) -> Html:
    stats, last_verdict = row.stats, row.last_verdict
    counts = {"denied": stats.denials, "failed": stats.failures, "would": stats.monitored}
    return h.tr(
        h.td(h.span(stats.hook, class_="title"), h.div(row.place, class_="about") if row.place else None),
        h.td(f"{stats.runs:,}", class_="number"),
        h.td(f"{last_verdict.verdicts:,}" if last_verdict else "0", class_="number"),
        h.td([MARKS[name].counted(count) for name, count in counts.items()], class_="counts"),
        h.td(_millis(stats.p50), class_="number"),
        h.td(_millis(stats.p99), class_="number"),
        h.td(f"{stats.share:.0%}", class_="number"),
        h.td(
            h.a(moment(last_verdict.at), href=decision_address(last_verdict.record))
            if last_verdict
            else h.span("never", class_="dim")
        ),
    )


def _millis(seconds: float) -> str:
    """One unit for the whole column, fine enough for a Python hook, which takes microseconds."""
    return f"{seconds * 1000:,.3f}" if seconds >= 0.0000005 else "<0.001"


def windows(chosen: int) -> Html:
    """Of which records the page tells, and the way to the others."""
    links = [
        h.a(f"{size:,}", href=f"/hooks?{urlencode({'last': size})}", aria_current="true" if size == chosen else None)
        for size in WINDOWS
    ]
    return h.p("Of the newest ", h.span(links, class_="choices"), " records.", class_="sentence")


def show(request: Request) -> Response:
    newest = min(number(request, "last") or WINDOWS[0], WINDOWS[-1])
    folder = Path.cwd()
    with reader_of(request) as reader:
        rows = hooks_of(reader, newest, places_of(folder))
    nothing = h.div(h.p("No hook ran at these records."), class_="empty")
    return page(
        request,
        "Hooks",
        h.h1("Hooks"),
        windows(newest),
        hook_list(rows) if rows else nothing,
        rows and h.p(f"{plural(len(rows), 'hook')}. Files are those that are in force in {folder}.", class_="sentence"),
    )


ROUTES = [Route("/hooks", show)]
