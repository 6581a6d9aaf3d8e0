"""The first page: the sessions, the newest first, and what stood out in each."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...journal.errors import NoJournal
from ...journal.reading import Reader, SessionRow
from ...peers import user_name
from ..clock import duration, moment
from ..findings import line
from ..layout import number, page, reader_of, ui_of
from ..live import feed
from ..marks import MARKS
from ..markup import Html, h
from ..moments import TextReader
from ..searching import newest_number

MENU = ("Sessions", "/")
PAGE = 50
BEGINNING = 12
"""Records at the beginning of a session among which its first message is looked for."""


class ListedSession(NamedTuple):
    """A session in the list, with what its first records say about it."""

    row: SessionRow
    message: str | None = None
    folder: str | None = None
    user: str | None = None
    agent: str | None = None


# --- the query ------------------------------------------------------------------------------------


def newest_sessions(reader: Reader, *, before: int | None = None, limit: int = PAGE) -> list[ListedSession]:
    """The newest sessions first. `before` goes on after a page: the number of the last record there."""
    return [_described(reader, row) for row in reader.sessions(limit=limit, before=before)]


def one_session(reader: Reader, session: str) -> ListedSession | None:
    """One session by its id; None if the journal has none of that id."""
    row = reader.session(session)
    return None if row is None else _described(reader, row)


def changed_sessions(reader: Reader, after: int, now: int) -> list[ListedSession]:
    """The sessions with records after a number, the newest last."""
    if reader.version < 2:
        return []
    query = "SELECT * FROM sessions WHERE last > ? AND last <= ? ORDER BY last DESC LIMIT ?"
    rows = reader.db.execute(query, (after, now, PAGE)).fetchall()
    return [_described(reader, SessionRow(*row)) for row in reversed(rows)]


def _described(reader: Reader, row: SessionRow) -> ListedSession:
    """The session with its first message, its folder and its user, from its first records."""
    query = "SELECT body, user FROM records WHERE session = ? AND seq >= ? ORDER BY seq LIMIT ?"
    texts = TextReader(reader)
    message = folder = user = agent = None
    for body, recorded_user in _rows(reader, query, (row.session, row.first, BEGINNING)):
        step = _step_of(body)
        user = user or recorded_user
        folder = folder or _text(step.get("cwd"))
        agent = agent or _text((step.get("agent") or {}).get("name"))
        message = message or _message(step, texts)
        if message and folder:
            break
    return ListedSession(row, message, folder, user, agent)


def _rows(reader: Reader, query: str, values: tuple[Any, ...]) -> Iterable[Any]:
    try:
        return reader.db.execute(query, values).fetchall()
    except (sqlite3.Error, UnicodeError):  # `fairlead verify` says more; the list must not fail over one record
        return ()


def _step_of(body: bytes) -> dict[str, Any]:
    try:
        step = msgspec.json.decode(body).get("step")
    except (msgspec.MsgspecError, UnicodeError, AttributeError):
        return {}
    return step if isinstance(step, dict) else {}


def _message(step: dict[str, Any], texts: TextReader) -> str | None:
    """What the user wrote, in one line. None: a damaged record does not say."""
    if step.get("event") != "before_input":
        return None
    try:
        return line(texts(step.get("input"))) or None
    except (msgspec.MsgspecError, UnicodeError, TypeError):
        return None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


# --- the page -------------------------------------------------------------------------------------


def sessions_table(sessions: list[ListedSession]) -> Html:
    """The list of sessions."""
    head = ("last", "what was asked", "host", "records", "what stood out")
    return h.table(
        h.caption("Sessions, newest first", class_="hidden"),
        h.thead(h.tr([h.th(word, scope="col") for word in head])),
        h.tbody([session_row(one) for one in sessions], id="rows"),
        class_="sessions",
    )


def session_row(one: ListedSession) -> Html:
    """One session. Its id is that of the row, so that a live one replaces the old."""
    row = one.row
    counts = {"denied": row.denied, "failed": row.failed, "changed": row.changed, "asked": row.asked}
    about = [word for word in (one.folder, by_another(one.user)) if word]
    return h.tr(
        h.td(moment(row.ended / 1e9), class_="when"),
        h.td(
            h.a(one.message or row.session, href=session_address(row.session), class_="title"),
            h.div([h.span(word) for word in about], one.message and h.code(row.session), class_="about"),
        ),
        h.td(row.host or ""),
        h.td(
            f"{row.records:,}", h.div(duration((row.ended - row.began) / 1e9), class_="about"), class_="number",
        ),
        h.td([MARKS[name].counted(number) for name, number in counts.items()], class_="counts"),
        id=f"session-{row.session}",
    )  # fmt: skip


def by_another(user: str | None) -> str | None:
    """The user of a session, where that is not the one who looks."""
    return f"by {user}" if user and user != user_name(os.geteuid()) else None


def session_address(session: str, **more: Any) -> str:
    """The address of a session's page."""
    return f"/session?{urlencode({'id': session, **more})}"


def nothing_yet(journal: Path) -> Html:
    """What to do where nothing was recorded. The first session takes its place."""
    return h.div(
        h.p("No session has been recorded yet. The first one appears here by itself."),
        h.p(
            "Run ",
            h.code("fairlead install"),
            " for the agent CLIs that you use, or give your own agent ",
            h.code("Hooks(journal=Journal())"),
            ".",
        ),
        h.p("The journal is ", h.code(str(journal)), "."),
        class_="empty",
    )


def show(request: Request) -> Response:
    after, found = 0, []
    with suppress(NoJournal), reader_of(request) as reader:
        after = newest_number(reader)
        found = newest_sessions(reader, before=number(request, "before") or None, limit=PAGE + 1)
    shown, more = found[:PAGE], found[PAGE:]
    return page(
        request,
        "Sessions",
        h.h1("Sessions"),
        sessions_table(shown),
        None if shown else nothing_yet(ui_of(request).journal),
        more and h.p(h.a("Older sessions", href=f"/?before={shown[-1].row.last}", rel="next"), class_="more"),
        live=None if number(request, "before") else f"/live?after={after}",
    )


def live(request: Request) -> Response:
    """The feed of the list: a session that has something new comes to the top."""

    def rows(reader: Reader, after: int, now: int) -> list[tuple[int, Html]]:
        return [(one.row.last, session_row(one)) for one in changed_sessions(reader, after, now)]

    return feed(request, rows)


ROUTES = [Route("/", show), Route("/live", live)]
