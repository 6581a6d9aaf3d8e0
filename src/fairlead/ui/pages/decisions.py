"""The page of all decisions: filtered by what is in the address, counted, and searched for a text."""

from __future__ import annotations

from collections import Counter
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...amounts import moment as time_of
from ...errors import FairleadError, UnknownName
from ...glob import compile_glob
from ...journal.reading import Filter
from ...lifecycle import CONTROLS, event_named
from ..clock import moment as shown_time
from ..clock import plural
from ..findings import BY_CONTROL
from ..layout import fragment, number, page, reader_of
from ..marks import MARKS
from ..markup import Html, h, join
from ..moments import SessionMoment
from ..record_details import decision_address
from ..searching import FACETS, NOTABLE, Page, RecordSelection, TextPage, search, search_texts
from .sessions import session_address

MENU = ("Decisions", "/decisions")
HEAVY = (
    ("denied decisions", "/decisions?decision=deny"),
    ("a decision that never came", "/decisions?decision=abort"),
    ("a tool that was never called", "/decisions?tool=none"),
    ("a hook that never ran", "/decisions?hook=none"),
    ("a text that is nowhere", "/decisions?q=nowhere+at+all"),
    ("a text in long texts", "/decisions/texts?q=nowhere+at+all"),
)
"""Addresses that take long, for the bench."""
LISTED = 12
"""Values of a facet."""
_WORDS = {
    "decision": "with the decision", "hook": "with the hook", "tool": "of the tool", "host": "in", "event": "at",
    "session": "in the session", "agent": "by the agent", "user": "for the user", "since": "since", "until": "until",
}  # fmt: skip
_FIELDS = ("decision", "event", "tool", "hook", "session", "host", "agent", "user")


# --- the address ----------------------------------------------------------------------------------


def selection_of(request: Request) -> RecordSelection:
    """The selection that an address asks for. Raises `FairleadError` for one that makes no sense."""
    query = {name: value for name in _FIELDS if (value := request.query_params.get(name))}
    notable = query.get("decision") == NOTABLE
    if notable:
        del query["decision"]
    if "decision" in query and query["decision"] not in CONTROLS:
        raise UnknownName("decision", query["decision"], (*CONTROLS, NOTABLE))
    if "event" in query:
        event_named(query["event"])
    if "tool" in query:
        compile_glob(query["tool"])
    try:
        since, until = (
            time_of(text) if (text := request.query_params.get(end)) else None for end in ("since", "until")
        )
    except ValueError as error:
        raise FairleadError(str(error)) from None
    chosen: dict[str, Any] = {**query, "since": since, "until": until}
    return RecordSelection(Filter(**chosen, notes=not query), request.query_params.get("q", "")[:500], notable)


def chosen_of(request: Request) -> dict[str, str]:
    """The filters of an address, as they are in it."""
    return {name: value for name in (*_WORDS, "q") if (value := request.query_params.get(name))}


def address(chosen: dict[str, str], **changed: Any) -> str:
    """The address of the page with other filters. None takes one away."""
    merged = {name: value for name, value in {**chosen, **changed}.items() if value is not None}
    return f"/decisions?{urlencode(merged)}" if merged else "/decisions"


# --- the page -------------------------------------------------------------------------------------


def decisions_page(chosen: dict[str, str], found: Page) -> Html:
    return join(
        h.h1("Decisions"),
        form(chosen),
        sentence(chosen, found),
        h.div(
            h.div(
                h.ol([decision_row(one) for one in found.moments], class_="decisions", id="rows"),
                None if found.moments or found.before else h.p("There is no such record.", class_="empty"),
                go_on(chosen, found),
                class_="found",
            ),
            facets(chosen, found),
            class_="with-facets",
        ),
    )


def form(chosen: dict[str, str]) -> Html:
    """The search. The filters stay."""
    kept = [h.input(type="hidden", name=name, value=value) for name, value in chosen.items() if name != "q"]
    return h.form(
        kept,
        h.label("Search the records for a text ", class_="hidden", for_="q"),
        h.input(
            type="search", name="q", id="q", value=chosen.get("q"), placeholder="a text in records: exact, any field"
        ),
        h.button("Search", type="submit"),
        action="/decisions",
        role="search",
        class_="search",
    )


def sentence(chosen: dict[str, str], found: Page) -> Html:
    """What the address asks for, in words."""
    parts: list[Any] = []
    for name, value in chosen.items():
        if name == "q":
            parts.append(join("containing ", h.b(value)))
        elif value == NOTABLE and name == "decision":
            parts.append(join("with another decision than ", h.b(decision_word("proceed"))))
        else:
            parts.append(join(_WORDS[name], " ", h.b(_facet_word(name, value))))
    words = [join(", " if index else " ", part) for index, part in enumerate(parts)]
    how_many = "All records" if not chosen else "Records"
    return h.p(
        how_many, words, ", newest first. ",
        h.a("Show all", href="/decisions") if chosen else None,
        class_="sentence",
    )  # fmt: skip


def decision_word(control: str) -> str:
    """A control in words for people."""
    known = BY_CONTROL.get(control)
    return MARKS[known].word if known else "goes on"


def decision_row(one: SessionMoment) -> Html:
    """One record, in one line."""
    row, first = one.rows[0], one.findings[0] if one.findings else None
    code = h.span if one.lane == "model" or one.is_user else h.code
    return h.li(
        h.a(
            h.span(shown_time(row.ended), class_="at"),
            h.span(
                h.span(h.b(one.name), " ", one.what and code(one.what), class_="aim"),
                h.span(" ", row.event, class_="event"),
                first and first.why and h.span(" ", first.why, class_="why"),
                class_="what",
            ),
            h.span(first and first.mark.badge(), class_="decision"),
            h.span(first and first.by, class_="by"),
            href=decision_address(row.id),
        ),
        h.a("session", href=session_address(row.session, at=row.seq), class_="of-session", title=row.session)
        if row.session else None,
        id=f"d{row.seq}",
        class_=None if first else "plain",
    )  # fmt: skip


def go_on(chosen: dict[str, str], found: Page) -> Html | None:
    """The way to what is further back. The script goes it by itself, while the search finds too little."""
    if found.before is None:
        return _in_texts(chosen) if "q" in chosen else None
    rows = f"/decisions/rows?{urlencode({**chosen, 'before': found.before})}"
    words = f"Looked back to record {found.before:,}. " if found.is_cut else ""
    return h.p(
        words,
        h.a("Look further back" if found.is_cut else "Older", href=address(chosen, before=found.before), rel="next"),
        h.button("Stop", type="button", data_stop=True) if found.is_cut else None,
        id="more", class_="more", data_more=rows, data_auto=found.is_cut, role="status",
    )  # fmt: skip


def _in_texts(chosen: dict[str, str]) -> Html:
    where = f"/decisions/texts?{urlencode({'q': chosen['q']})}"
    return h.p(
        "All records were searched. Texts of more than 512 characters are stored beside them: ",
        h.a("search those, too", href=where),
        id="more", class_="more",
    )  # fmt: skip


def facets(chosen: dict[str, str], found: Page) -> Html:
    """What else there is among the records found, with counts, each a link that asks for it."""
    about = f"Counts of the newest {plural(found.counted, 'record')} found"
    return h.aside(
        [_facet(name, found.counts[name], chosen) for name in FACETS],
        h.p(about, class_="about") if found.counted else None,
        aria_label="Filters",
        class_="facets",
    )


def _facet(name: str, counts: Counter[str], chosen: dict[str, str]) -> Html | None:
    if not counts and name not in chosen:
        return None
    rows = [
        h.li(
            h.a(
                h.span(_facet_word(name, value)),
                " ",
                h.span(f"{count:,}", class_="dim"),
                href=address(chosen, **{name: value}),
            )
        )
        for value, count in _listed(name, counts, chosen)
    ]
    clear = h.a("any", href=address(chosen, **{name: None})) if name in chosen else None
    return h.section(h.h2(name, " ", clear), h.ul(rows))


def _listed(name: str, counts: Counter[str], chosen: dict[str, str]) -> list[tuple[str, int]]:
    """The values of a facet. Decisions that are rare may be older than what was counted: all of them have one link."""
    values = counts.most_common(LISTED)
    if name == "decision" and name not in chosen and counts["proceed"]:
        values.append((NOTABLE, counts.total() - counts["proceed"]))
    return values


def _facet_word(name: str, value: str) -> str:
    if name != "decision":
        return value
    return "all that stand out" if value == NOTABLE else decision_word(value)


def texts_page(text: str, found: TextPage) -> Html:
    back = h.a("Back to records", href=address({"q": text}))
    return join(
        h.h1("Decisions"),
        form({"q": text}),
        h.p("The newest record of each long text containing ", h.b(text), ". ", back, class_="sentence"),
        h.ol([decision_row(one) for one in found.moments], class_="decisions", id="rows"),
        _go_on_in_texts(text, found),
    )


def _go_on_in_texts(text: str, found: TextPage) -> Html:
    if found.before is None:
        return h.p(
            "All long texts were searched." if found.moments else "No long text has it.", id="more", class_="more"
        )
    where = urlencode({"q": text, "before": found.before})
    return h.p(
        f"Looked back to text {found.before:,}. ",
        h.a("Look further back", href=f"/decisions/texts?{where}", rel="next"),
        h.button("Stop", type="button", data_stop=True),
        id="more", class_="more", data_more=f"/decisions/texts/rows?{where}", data_auto=True, role="status",
    )  # fmt: skip


# --- the endpoints --------------------------------------------------------------------------------


def _found(request: Request) -> tuple[dict[str, str], Page]:
    selection = selection_of(request)
    with reader_of(request) as reader:
        return chosen_of(request), search(reader, selection, before=number(request, "before") or None)


def show(request: Request) -> Response:
    return page(request, "Decisions", decisions_page(*_found(request)))


def more_rows(request: Request) -> Response:
    """The next rows, for the script."""
    chosen, found = _found(request)
    rows = h.ol([decision_row(one) for one in found.moments], id="rows")
    return fragment(join(rows, go_on(chosen, found)))


def _found_texts(request: Request) -> tuple[str, TextPage]:
    text = request.query_params.get("q", "")[:500]
    if not text:
        raise FairleadError("a search needs a text: add ?q=... to the address")
    with reader_of(request) as reader:
        return text, search_texts(reader, text, before=number(request, "before") or None)


def show_texts(request: Request) -> Response:
    return page(request, "Search", texts_page(*_found_texts(request)))


def more_texts(request: Request) -> Response:
    text, found = _found_texts(request)
    rows = h.ol([decision_row(one) for one in found.moments], id="rows")
    return fragment(join(rows, _go_on_in_texts(text, found)))


ROUTES = [
    Route("/decisions", show),
    Route("/decisions/rows", more_rows),
    Route("/decisions/texts", show_texts),
    Route("/decisions/texts/rows", more_texts),
]
