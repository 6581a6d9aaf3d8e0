"""Coverage: which tool calls of the agent CLIs ran without a decision."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...errors import FairleadError
from ...hosts.clis.mapping import host_named, host_tools
from ...hosts.clis.transcripts.coverage import WHY, CallCounts, Coverage, Gap, Reason
from ...hosts.clis.transcripts.decisions import Decisions
from ...hosts.clis.transcripts.transcript import HOSTS, changed_since, transcripts_of
from ...journal.reading import Reader
from ..clock import moment, plural
from ..layout import page, reader_of
from ..markup import Html, h
from .sessions import session_address

MENU = ("Coverage", "/coverage")
DAYS = {"1": "the last day", "7": "the last week", "30": "the last month"}
SHOWN = 200
"""Gaps in the list. The counts have all."""


class CoverageView(NamedTuple):
    """What the transcripts and the journal say together."""

    counts: dict[tuple[str, str], CallCounts]
    reasons: Counter[Reason]
    gaps: list[Gap]
    sessions: int
    problems: list[str]


# --- the query ------------------------------------------------------------------------------------


def coverage_since(reader: Reader, home: Path, since: float | None) -> CoverageView:
    """Compare the transcripts below a home folder with the journal."""
    coverage = Coverage(Decisions(reader), host_tools(), since)
    gaps: list[Gap] = []
    problems: list[str] = []
    for name in HOSTS:
        transcripts = transcripts_of(name)
        for source in changed_since(transcripts, transcripts.places(home), since):
            try:
                gaps.extend(coverage.examine(transcripts, source))
            except (FairleadError, RecursionError) as error:
                problems.append(str(error) or f"{source.path} is nested too deeply to be read")
    gaps.sort(key=lambda gap: -(gap.at or 0.0))
    return CoverageView(coverage.counts, coverage.reasons, gaps[:SHOWN], len(coverage.sessions), problems)


# --- the page -------------------------------------------------------------------------------------


def counts_table(counts: dict[tuple[str, str], CallCounts]) -> Html:
    """The calls of each tool of each CLI."""
    head = ("agent", "tool", "calls", "decided", "denied", "did not run", "gaps")
    order = sorted(counts.items(), key=lambda row: (-row[1].gaps, HOSTS.index(row[0][0]), row[0][1].casefold()))
    rows = [
        h.tr(
            h.td(host_named(cli).title),
            h.td(h.code(tool)),
            [
                h.td(f"{value:,}", class_="number")
                for value in (count.calls, count.decided, count.denied, count.not_run)
            ],
            h.td(h.b(f"! {count.gaps:,}") if count.gaps else "0", class_="number" + (" gap" if count.gaps else "")),
        )
        for (cli, tool), count in order
    ]
    heads = [h.th(word, scope="col", class_="number" if place > 1 else None) for place, word in enumerate(head)]
    return h.table(h.caption("Calls by tool", class_="hidden"), h.thead(h.tr(heads)), h.tbody(rows), class_="calls")


def reasons_list(reasons: Counter[Reason]) -> Html:
    """Why calls have no decision, with what to do about it."""
    return h.ul([h.li(h.b(plural(number, "gap")), f": {WHY[reason]}") for reason, number in reasons.most_common()],
                class_="card reasons")  # fmt: skip


def gaps_table(gaps: list[Gap]) -> Html:
    """The newest gaps."""
    rows = [
        h.tr(
            h.td(moment(gap.at) if gap.at else "", class_="when"),
            h.td(host_named(gap.cli).title),
            h.td(h.b(gap.tool), " ", h.code(gap.about), h.div(gap.why, class_="about")),
            h.td(h.a(gap.session, href=session_address(gap.session)), gap.agent and h.div(gap.agent, class_="about")),
        )
        for gap in gaps
    ]
    heads = [h.th(word, scope="col") for word in ("at", "agent", "call", "session")]
    return h.table(h.caption("Gaps, newest first", class_="hidden"), h.thead(h.tr(heads)), h.tbody(rows, id="rows"),
                   class_="gaps")  # fmt: skip


def choices(days: str) -> Html:
    """Which time the page is about, and the way to others."""
    links = [
        h.a(words, href=f"/coverage?{urlencode({'days': number})}", aria_current="true" if number == days else None)
        for number, words in DAYS.items()
    ]
    return h.p("Tool calls in the transcripts of the agent CLIs, of ", h.span(links, class_="choices"), ".",
               class_="sentence")  # fmt: skip


def coverage_page(view: CoverageView) -> list[Html]:
    """What was found, the gaps first."""
    shown = [h.p(problem, class_="failed card") for problem in view.problems]
    if not view.counts:
        return [*shown, h.div(h.p("The transcripts have no tool call of that time."), class_="empty")]
    if not (total := view.reasons.total()):
        shown.append(h.p(h.b(f"✓ No gap in {plural(view.sessions, 'session')}."), class_="approved card"))
    else:
        shown.append(h.p(h.b(f"! {plural(total, 'gap')} in {plural(view.sessions, 'session')}."), class_="failed card"))
        shown += [reasons_list(view.reasons), h.h2("Calls without a decision"), gaps_table(view.gaps)]
    return [*shown, h.h2("Calls by tool"), counts_table(view.counts)]


def show(request: Request) -> Response:
    days = request.query_params.get("days", "1")
    days = days if days in DAYS else "1"
    with reader_of(request) as reader:
        view = coverage_since(reader, Path.home(), time.time() - int(days) * 86_400)
    return page(request, "Coverage", h.h1("Coverage"), choices(days), coverage_page(view))


ROUTES = [Route("/coverage", show)]
