"""The page of one decision: all that its record says, as `fairlead show` does, and the way to those around it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...journal.reading import Reader, Record
from ..clock import duration, moment
from ..findings import TimelineBody, decode_body, findings
from ..layout import Crumb, page, reader_of
from ..markup import Html, h, join
from ..moments import TextReader
from ..record_details import decision_address, moment_details, value_of
from .sessions import session_address

_AROUND = ("root", "user", "machine", "enforcement", "parent", "can", "lenient", "variables")
_HEADER = ("root_session_id", "turn_id", "request_id", "checkpoint_id", "host", "cwd", "user_id", "channel",
           "thread_id", "sequence", "metadata", "call_id", "kind", "safety")  # fmt: skip


class DecisionView(NamedTuple):
    """A record, and those before and after it in its session."""

    record: Record
    before: str | None
    after: str | None
    findings: list[Any]


# --- the query ------------------------------------------------------------------------------------


def decision_view(reader: Reader, name: str) -> DecisionView:
    """One record by its id or number, and its neighbours."""
    record = reader.record(name)
    session = (record.body.get("step") or {}).get("session_id")
    before = _neighbour(reader, session, record.seq, "<", "DESC")
    after = _neighbour(reader, session, record.seq, ">", "ASC")
    return DecisionView(record, before, after, findings(_body(reader, record.seq), record.seq, TextReader(reader)))


def _body(reader: Reader, seq: int) -> TimelineBody:
    return decode_body(reader.db.execute("SELECT body FROM records WHERE seq = ?", (seq,)).fetchone()[0])


def _neighbour(reader: Reader, session: str | None, seq: int, side: str, order: str) -> str | None:
    query = f"SELECT id FROM records WHERE session IS ? AND seq {side} ? ORDER BY seq {order} LIMIT 1"  # noqa: S608
    row = reader.db.execute(query, (session, seq)).fetchone()
    return None if row is None else str(row[0])


# --- the page -------------------------------------------------------------------------------------


def decision_page(view: DecisionView) -> Html:
    record = view.record
    step = record.body.get("step") or {}
    name = f"note: {record.body.get('note')}" if record.is_note else str(step.get("event"))
    first = view.findings[0] if view.findings else None
    return join(
        h.h1(name, step.get("tool") and join(" of ", h.code(str(step["tool"])))),
        h.p(
            first.mark.badge() if first else h.span("proceeds: nothing stands out", class_="dim"),
            first and h.span(first.by, class_="dim"),
            first and h.span(first.why),
            class_="facts",
        ),
        neighbours(view),
        h.section(moment_details([record]), class_="card") if record.is_whole else unreadable(record),
        h.section(h.h2("The record"), h.dl(list(about(record)), class_="values card")),
    )


def unreadable(record: Record) -> Html:
    """A note, or a record that was erased or could not be written: what there is of it."""
    if record.is_note:
        return h.section(value_of(record.body), class_="card")
    words = "Its body was erased." if "erased" in record.body else "It could not be written in full."
    return h.section(h.p(words, class_="dim"), value_of(record.body), class_="card")


def neighbours(view: DecisionView) -> Html:
    """Links to the records before and after, and to the moment in its session."""
    step = view.record.body.get("step") or {}
    session = step.get("session_id")
    return h.nav(
        h.a("← before", href=decision_address(view.before), rel="prev") if view.before else h.span("← before"),
        h.a("after →", href=decision_address(view.after), rel="next") if view.after else h.span("after →"),
        h.a("its session", href=session_address(str(session), at=view.record.seq)) if session else None,
        class_="neighbours",
        aria_label="Records around this one",
    )


def about(record: Record) -> Iterator[Html]:
    """Where the record stands, and what was around the step."""
    body, step = record.body, record.body.get("step") or {}
    yield _fact("record", h.code(record.id), f" number {record.seq}")
    yield _fact("at", moment(record.at))
    if isinstance(body.get("took"), float):
        yield _fact("took", duration(body["took"]))
    if step.get("session_id"):
        yield _fact("session", h.a(str(step["session_id"]), href=session_address(str(step["session_id"]))))
    for name in _AROUND:
        if body.get(name) is not None:
            yield _fact(name, _plain(body[name]))
    for name in _HEADER:
        if step.get(name) not in (None, {}, []):
            yield _fact(name.replace("_", " "), _plain(step[name]))
    if agent := step.get("agent"):
        yield _fact("agent", _plain(agent))
    for place, kind in body.get("lossy") or ():
        yield _fact("not exact", f"{place}: {kind}")
    for path, kind, digest in body.get("redacted") or ():
        yield _fact("taken out", f"{kind} ({path}), ", h.code(digest))
    if record.policy is not None:
        yield _fact("policy", h.code(record.policy[:16]), f" {len(record.policy_hooks)} hooks")
        versions = {hook.get("name"): hook.get("version") for hook in record.policy_hooks}
        for hook in dict.fromkeys(run[0] for run in body.get("runs") or ()):
            yield _fact("hook", f"{hook}, version {versions.get(hook, '?')}")
    yield _fact("digest", h.code(record.digest))


def _fact(name: str, *words: Any) -> Html:
    return join(h.dt(name), h.dd(words))


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()


def show(request: Request) -> Response:
    with reader_of(request) as reader:
        view = decision_view(reader, request.query_params.get("id", ""))
    session = (view.record.body.get("step") or {}).get("session_id")
    crumbs = [Crumb("Sessions", "/"), *([Crumb(str(session), session_address(str(session)))] if session else [])]
    return page(request, f"Decision {view.record.id}", decision_page(view), crumbs=crumbs)


ROUTES = [Route("/decision", show)]
