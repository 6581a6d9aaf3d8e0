"""The page of one session: its facts, what stands out, when it was, and every moment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...journal.errors import NoRecord
from ...journal.reading import Reader
from ..clock import duration, plural, seconds, short_seconds
from ..clock import moment as shown_moment
from ..findings import Highlight
from ..lanes import lanes
from ..layout import Crumb, fragment, number, page, reader_of
from ..live import feed
from ..markup import Html, h, join
from ..moments import (
    PAGE,
    Clean,
    Grouping,
    SessionMoment,
    TextReader,
    Timeline,
    session_rows,
    standing_out,
    timeline_of,
)
from ..record_details import moment_details
from ..searching import newest_number
from .sessions import ListedSession, by_another, one_session, session_address

STANDING_OUT = 60
"""What is listed of what stands out. The rest is in the list of all moments."""


AROUND = 200
"""Records before one that an address names."""


class SessionView(NamedTuple):
    """All that the page shows."""

    listed: ListedSession
    timeline: Timeline
    after: int
    at: int = 0  # the record that the address names


# --- the query ------------------------------------------------------------------------------------


def session_view(
    reader: Reader, session: str, *, after: int = 0, at: int = 0, limit: int = PAGE, clean: Clean | None = None
) -> SessionView:
    """One session, and a page of its moments: those after a record, or around one."""
    listed = one_session(reader, session)
    if listed is None:
        raise NoRecord(f"the journal {reader.path} has no session {session!r}; it may have been pruned")
    if at:
        after = _some_before(reader, session, at)
    if clean is not None:
        listed = listed._replace(message=clean(listed.message), folder=clean(listed.folder))
    return SessionView(listed, timeline_of(reader, session, after=after, limit=limit, clean=clean), after, at)


def _some_before(reader: Reader, session: str, at: int) -> int:
    """A record some way before another; 0 if that is near the beginning of the session."""
    query = "SELECT seq FROM records WHERE session = ? AND seq < ? ORDER BY seq DESC LIMIT 1 OFFSET ?"
    row = reader.db.execute(query, (session, at, AROUND)).fetchone()
    return 0 if row is None else int(row[0])


# --- the page -------------------------------------------------------------------------------------


def session_page(view: SessionView) -> Html:
    moments = view.timeline.moments
    if not moments:
        return join(heading(view), h.p("There is nothing after this.", class_="empty"))
    return join(h.div(summary(view), id="summary"), every_moment(view), pages_of(view))


def summary(view: SessionView) -> Html:
    """What is above the list of all moments. While the session goes on, it is fetched again."""
    moments = view.timeline.moments
    return join(
        heading(view),
        what_stands_out(standing_out(moments)),
        h.section(h.h2("When"), lanes(moments), class_="when-lanes"),
    )


def heading(view: SessionView) -> Html:
    """What was asked, and the facts in one line."""
    one, row, moments = view.listed, view.listed.row, view.timeline.moments
    words: list[Any] = [row.host, h.code(row.session), one.folder and h.span(one.folder)]
    words.append(by_another(one.user))
    words.append(shown_moment(row.began / 1e9))
    if moments:
        whole = view.after == 0 and view.timeline.more is None
        words.append(
            f"{plural(row.records, 'record')} → {plural(len(moments), 'moment')}"
            if whole
            else plural(row.records, "record")
        )
        words.append(cost(moments))
    return join(
        h.h1(one.message or row.session),
        h.p([h.span(word) for word in words if word], class_="facts"),
    )


def cost(moments: list[SessionMoment]) -> str:
    """How long it took, and the share that hooks have in that."""
    length = max(moment.ended for moment in moments) - min(moment.began for moment in moments)
    hooks = sum(moment.hook_time for moment in moments)
    share = f" ({hooks / length:.0%})" if 0 < hooks <= length else ""
    return f"{duration(length)}, of which hooks {duration(hooks)}{share}"


def what_stands_out(found: list[tuple[Highlight, SessionMoment]]) -> Html:
    """Only what was denied, failed, held, told or changed. Who reads only this knows the session."""
    if not found:
        words = h.p("Nothing: no hook denied, changed, asked or failed.", class_="dim")
        return h.section(h.h2("What stands out"), words)
    rest = len(found) - STANDING_OUT
    return h.section(
        h.h2("What stands out ", h.span(len(found), class_="dim")),
        h.ol([h.li(_line(one, moment)) for one, moment in found[:STANDING_OUT]], class_="standing-out"),
        h.p(f"and {rest:,} more in the list below", class_="more dim") if rest > 0 else None,
    )


def _line(one: Highlight, moment: SessionMoment) -> Html:
    return h.a(
        one.mark.badge(),
        h.span(h.b(moment.name), " ", h.code(moment.what), class_="what"),
        h.span(one.why, class_="why"),
        h.span(one.by, class_="by"),
        href=f"#m{moment.seq}",
    )


def every_moment(view: SessionView) -> Html:
    moments = view.timeline.moments
    first = moments[0].began
    return moment_list(moments, [moment_row(moment, first, here=_has(moment, view.at)) for moment in moments])


def moment_list(moments: list[SessionMoment], rows: list[Html]) -> Html:
    """The list of moments, with the quiet ones behind a checkbox."""
    quiet = sum(moment.is_quiet for moment in moments)
    head = ("at", "what", "decision", "by", "slow hook", "hooks")
    words = f" also the {quiet} on which no hook had anything to say"
    return h.section(
        h.div(
            h.h2("Every moment"),
            h.label(h.input(type="checkbox", id="show-quiet"), words) if quiet else None,
            class_="beside",
        ),
        h.div([h.span(word) for word in head], class_="moment-head", aria_hidden="true"),
        h.ol(rows, class_="moments", id="rows"),
        class_="every-moment" if any(moment.slow_hook for moment in moments) else "every-moment none-slow",
    )


def _has(moment: SessionMoment, seq: int) -> bool:
    return any(row.seq == seq for row in moment.rows)


def moment_row(moment: SessionMoment, first: float, *, here: bool = False, details: Html | None = None) -> Html:
    """One moment. It opens to its details, which are fetched then if they are not given."""
    one = moment.findings[0] if moment.findings else None
    source = f"/moment?{urlencode([('record', row.seq) for row in moment.rows])}"
    kinds = [
        moment.lane,
        None if one or moment.slow_hook else "plain",
        "quiet" if moment.is_quiet else None,
        "user" if moment.is_user else None,
        "nested" if moment.agent else None,
        f"mark-{one.mark.family}" if one else None,
    ]
    return h.li(
        h.details(
            h.summary(
                h.span(seconds(moment.began - first), class_="at"),
                h.span(_what(moment, one), class_="what"),
                h.span(one and one.mark.badge(), _more(moment), class_="decision"),
                h.span(one and one.by, class_="by", title=(one and one.by) or None),
                h.span(moment.slow_hook, class_="slow", title=moment.slow_hook),
                h.span(_hook_time(moment), class_="took"),
            ),
            h.div(details or h.a("Details", href=source), class_="opened"),
            data_src=None if details else source,
        ),
        id=f"m{moment.seq}",
        class_=" ".join(filter(None, kinds)),
        data_here=here,
    )


def _what(moment: SessionMoment, one: Highlight | None) -> Html:
    shown = h.span(moment.what) if moment.lane == "model" or moment.is_user else h.code(moment.what)
    return join(
        h.span(
            moment.agent and h.span(moment.agent, class_="agent"),
            h.b(moment.name),
            " ",
            moment.what and shown,
            moment.is_failed and h.span(" failed", class_="dim"),
            class_="aim",
        ),
        one and one.why and h.span(" ", one.why, class_="why"),
    )


def _more(moment: SessionMoment) -> Html | None:
    """How many other marks a moment has."""
    others = len({one.mark for one in moment.findings}) - 1
    return h.span(f"+{others}", class_="dim plus", title=_marks(moment)) if others > 0 else None


def _marks(moment: SessionMoment) -> str:
    return ", ".join(dict.fromkeys(one.mark.word for one in moment.findings))


def _hook_time(moment: SessionMoment) -> Html | None:
    if not moment.hooks:
        return None
    return h.span(short_seconds(moment.hook_time), class_="long" if moment.slow_hook else None)


def pages_of(view: SessionView) -> Html | None:
    """The way to the moments before and after."""
    session, more = view.listed.row.session, view.timeline.more
    if more is None and not view.after:
        return None
    return h.p(
        view.after and h.a("From the beginning", href=session_address(session)),
        " ",
        more and h.a("Later moments", href=session_address(session, after=more), rel="next"),
        class_="more",
    )


# --- the endpoints --------------------------------------------------------------------------------


def show(request: Request) -> Response:
    session, after, at = request.query_params.get("id", ""), number(request, "after"), number(request, "at")
    with reader_of(request) as reader:
        now = newest_number(reader)
        view = session_view(reader, session, after=after, at=at)
    moments = view.timeline.moments
    feed_address = None
    if moments and view.timeline.more is None:
        began = int(moments[0].began * 1e6)
        feed_address = f"/session/live?{urlencode({'id': session, 'after': now, 'began': began})}"
    title = view.listed.message or session
    again = f"/session/summary?{urlencode({'id': session, 'after': view.after})}" if feed_address else None
    crumbs = [Crumb("Sessions", "/")]
    return page(request, title, session_page(view), crumbs=crumbs, live=feed_address, summary=again)


def show_summary(request: Request) -> Response:
    with reader_of(request) as reader:
        view = session_view(reader, request.query_params.get("id", ""), after=number(request, "after"))
    return fragment(summary(view))


def live(request: Request) -> Response:
    """The feed of a session: moments that are new, and those that got another record."""
    following = Following(request.query_params.get("id", ""), number(request, "began"))
    return feed(request, following.rows)


class Following:
    """What a feed of a session knows: the moments near its end, to which the next record may belong."""

    def __init__(self, session: str, began: int) -> None:
        self._session = session
        self._first = began / 1e6
        self._grouping: Grouping | None = None

    def rows(self, reader: Reader, after: int, now: int) -> Iterator[tuple[int, Html]]:
        """The rows of the moments that records after a number belong to."""
        texts = TextReader(reader)
        if self._grouping is None:
            self._grouping = Grouping(self._session, texts)
            for row in session_rows(reader, self._session, _some_before(reader, self._session, after)):
                if row.seq > after:
                    break
                self._grouping.add(row)
        self._grouping.use(texts)
        changed: dict[int, tuple[int, SessionMoment]] = {}
        for row in session_rows(reader, self._session, after):
            if row.seq > now:
                break
            moment = self._grouping.add(row)
            changed.pop(moment.seq, None)
            changed[moment.seq] = (row.seq, moment)
        for seq, moment in changed.values():
            self._grouping.finish(moment)
            yield seq, moment_row(moment, self._first)
        self._grouping.forget(AROUND)


def show_moment(request: Request) -> Response:
    """The details of a moment: a fragment for the script, a page for who follows the link."""
    names = [name for name in request.query_params.getlist("record") if name.isdecimal()][:50]
    if not names:
        raise NoRecord("this address names no record")
    with reader_of(request) as reader:
        details = moment_details([reader.record(name) for name in names])
    if request.headers.get("sec-fetch-mode") == "navigate":
        return page(request, "Moment", h.h1("Moment"), details, crumbs=[Crumb("Sessions", "/")])
    return fragment(details)


ROUTES = [
    Route("/session", show),
    Route("/session/summary", show_summary),
    Route("/session/live", live),
    Route("/moment", show_moment),
]
