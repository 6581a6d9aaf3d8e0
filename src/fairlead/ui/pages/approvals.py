"""The questions that hooks ask a human: live, with all that is asked about, and a form to answer.

The form is there if `fairlead ui --approve` was started from a terminal that no agent runs. Each answer needs the code
that this terminal shows, and is for exactly what the page showed: it names the digest of each question.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from ...errors import FairleadError
from ...redaction.logs import logger
from ...redaction.masking import rows_of
from ...redaction.redactor import redact_text
from ...rendering import ABSENT, FieldChange
from ...server.answers import (
    WaitingCall,
    answer_call,
    calls_of,
    failed_notifications,
    read_grants,
    read_questions,
    revoke,
    seconds_until,
)
from ...server.grants import Grant, GrantRequest
from ..answer_code import AnswerCode, WrongCode
from ..clock import moment
from ..layout import page, ui_of
from ..markup import Html, h, join
from ..record_details import difference, value_of
from .sessions import session_address

MENU = ("Approvals", "/approvals")
POLL = 0.5
"""Seconds between two looks at the questions."""
ALIVE = 15.0
"""Seconds after which a feed without news says that it is there."""
BODY = 64 << 10
"""Bytes of an answer."""


# --- the query ------------------------------------------------------------------------------------


def open_calls() -> list[WaitingCall]:
    """The calls about which hooks ask, the oldest first."""
    return calls_of(read_questions())


# --- the page -------------------------------------------------------------------------------------


def questions_list(calls: Sequence[WaitingCall], *, may_approve: bool) -> Html:
    """All open questions; or that there are none."""
    if not calls:
        words = "No hook asks anything now. A question appears here as soon as one does."
        return h.ol(h.li(h.p(words), class_="empty", id="no-question"), id="questions", class_="questions")
    return h.ol([question_card(call, may_approve=may_approve) for call in calls], id="questions", class_="questions")


def question_card(call: WaitingCall, *, may_approve: bool) -> Html:
    """One call: what is asked, what would run, what hooks changed, how long is left, and the answer."""
    first = call.questions[0]
    return h.li(
        h.article(
            h.h2(first.question or "may it?"),
            h.p(list(_facts(call)), class_="facts"),
            asking_hooks(call),
            h.dl([_row(name, text) for name, text in rows_of(first.step)], class_="values final")
            if first.step.get("tool") else None,
            list(_changes(call)),
            answer_form(call) if may_approve else None,
            class_="card question",
            aria_label=f"Question of {first.hook}",
        ),
        id=f"call-{'-'.join(call.ids)}",
        data_call=True,
    )  # fmt: skip


def _facts(call: WaitingCall) -> Iterator[Html]:
    first = call.questions[0]
    until = call.waits_until
    words = call.left
    yield h.b(words, class_="left", data_until=None if until is None else f"{until:.0f}")
    yield h.span("asked ", moment(first.asked))
    if first.session:
        yield h.a(first.session, href=session_address(first.session))
    if first.root:
        yield h.span(first.root)


def _row(name: str, text: str) -> Html:
    return join(h.dt(name), h.dd(value_of(text)))


def asking_hooks(call: WaitingCall) -> Html:
    """Which hooks ask, by which rule, and why."""
    head = ("hook", "asks")
    rows = [
        h.tr(
            h.td(h.code(question.hook or "?")),
            h.td(
                question.question or "may it?",
                question.rule and h.div("rule ", h.code(question.rule), f", {question.level}", class_="about"),
                question.note and h.div(question.note, class_="about"),
            ),
            id=f"question-{question.id}",
        )
        for question in call.questions
    ]
    return h.table(
        h.thead(h.tr([h.th(word, scope="col") for word in head])), h.tbody(rows), class_="asking"
    )  # fmt: skip


def _changes(call: WaitingCall) -> Iterator[Html]:
    first = call.questions[0]
    if first.changes:
        yield h.h3("Changed by ", h.code(", ".join(first.changed_by) or "a hook"), " before it was asked about")
    for path, before, after in first.changes:
        change = FieldChange(path, *(ABSENT if value is None else value for value in (before, after)))
        yield difference(change, {})


def answer_form(call: WaitingCall) -> Html:
    """The answer, for exactly what is shown."""
    shown = [h.input(type="hidden", name="shown", value=f"{one.id} {one.shown}") for one in call.questions]
    name = call.ids[0]
    return h.form(
        h.button("Enter does not answer", disabled=True, class_="hidden", tabindex="-1"),  # the default button
        shown,
        h.p(
            _field("Code on the terminal", h.input(
                type="text", name="code", id=f"code-{name}", required=True, autocomplete="off", spellcheck="false",
                size="10", maxlength="20",
            ), f"code-{name}"),
            _field("Why", h.input(type="text", name="why", id=f"why-{name}", maxlength="500", autocomplete="off"),
                   f"why-{name}"),
            class_="fields",
        ),
        h.p(
            h.button("Approve once", name="answer", value="approve", class_="main"),
            h.button("Deny", name="answer", value="deny"),
            class_="buttons",
        ),
        _grant_choices(call),
        h.p("", role="status"),
        data_post="/approvals/answer",
        class_="answer",
    )  # fmt: skip


def _field(words: str, field: Html, name: str) -> Html:
    return join(h.label(words, for_=name), field)


def _grant_choices(call: WaitingCall) -> Html:
    """What may be granted; or why nothing may."""
    if call.no_grant is not None:
        return h.p("It can only be approved once: ", call.no_grant, ".", class_="about")
    scopes = set.intersection(*(set(question.grants) for question in call.questions))
    until = f"until-{call.ids[0]}"
    words = "Or let exactly this call run again, without a question:"
    return h.fieldset(
        h.legend(words, class_="about"),
        h.button("In this session", name="answer", value="session") if "session" in scopes else None,
        h.button("For this project", name="answer", value="project"),
        h.span(
            h.button("Until", name="answer", value="until"),
            h.label("time", for_=until, class_="hidden"),
            h.input(type="text", name="until", id=until, value="18:00", size="6", maxlength="20", autocomplete="off"),
        ),
        class_="grants",
    )


def how_to_answer(*, may_approve: bool) -> Html:
    """How to answer from here; or where else."""
    if may_approve:
        words = "Each answer needs the code that the terminal shows where this inspector runs. It changes every time."
        return h.p(words, class_="sentence")
    return h.p(
        "To answer, run ", h.code("fairlead approvals watch"), " in a terminal. To answer from this page, start the ",
        "inspector with ", h.code("fairlead ui --approve"), ".", class_="sentence",
    )  # fmt: skip


def grants_table(grants: Sequence[Grant], *, may_approve: bool) -> Html:
    """The grants in force, each with a way to end it."""
    if not grants:
        return h.p("There are no grants.", class_="dim")
    head = ("call", "hook", "scope", "ends", "used", "given by", *(["end it"] if may_approve else []))
    return h.table(
        h.thead(h.tr([h.th(word, scope="col") for word in head])),
        h.tbody([_grant_row(grant, may_approve=may_approve) for grant in grants]),
        class_="granted",
    )


def _grant_row(grant: Grant, *, may_approve: bool) -> Html:
    form = h.form(
        h.input(type="hidden", name="grant", value=grant.id),
        h.button("Revoke", aria_label=f"Revoke grant {grant.id}"),
        h.span("", role="status"),
        data_post="/approvals/revoke",
    )
    return h.tr(
        h.td(h.code(grant.summary), h.div(grant.folder or "", class_="about")),
        h.td(h.code(grant.hook or "?"), grant.rule and h.div(grant.rule, class_="about")),
        h.td("this session" if grant.scope == "session" else "the project", data_word="for"),
        h.td(moment(grant.expires), data_word="until"),
        h.td(str(grant.uses), class_="number", data_word="used"),
        h.td(grant.who or "", data_word="given by"),
        h.td(form) if may_approve else None,
    )


# --- the endpoints --------------------------------------------------------------------------------


def show(request: Request) -> Response:
    may_approve = ui_of(request).code is not None
    questions = questions_list(open_calls(), may_approve=may_approve)
    return page(
        request,
        "Approvals",
        h.h1("Approvals"),
        how_to_answer(may_approve=may_approve),
        [h.p(line, class_="failed badge") for line in failed_notifications()],
        h.div(questions, data_questions="/approvals/live", aria_live="polite"),
        h.section(h.h2("Grants in force"), grants_table(read_grants(), may_approve=may_approve)),
    )


def feed(request: Request) -> Response:
    """The list of questions, whenever another one is open or a call no longer waits."""
    return StreamingResponse(_events(may_approve=ui_of(request).code is not None), media_type="text/event-stream")


async def _events(*, may_approve: bool) -> AsyncIterator[str]:
    yield "retry: 1000\n\n"
    known: Any = None
    silent = 0.0
    while True:
        try:
            calls = await run_in_threadpool(open_calls)
        except (FairleadError, OSError) as error:  # the daemon is about to end; the next one has the questions
            logger.warning("the inspector's list of questions: %s", error)
            calls = []
        now = [(call.ids, call.waits_until) for call in calls]
        if now != known:
            known, silent = now, 0.0
            html = questions_list(calls, may_approve=may_approve)
            data = "\n".join(f"data: {line}" for line in html.split("\n"))
            yield f"event: questions\n{data}\n\n"
        elif silent >= ALIVE:
            silent = 0.0
            yield ": alive\n\n"
        silent += POLL
        await asyncio.sleep(POLL)


async def answer(request: Request) -> Response:
    """Answer a call with what the form sent."""
    return await _change(request, _answer)


async def end_grant(request: Request) -> Response:
    """Revoke a grant. It needs no code: it takes away what was allowed."""

    def end(form: AnswerForm, _: AnswerCode) -> None:
        revoke(_one(form, "grant"))

    return await _change(request, end)


AnswerForm = Mapping[str, Sequence[str]]


async def _change(request: Request, do: Callable[[AnswerForm, AnswerCode], None]) -> Response:
    code = ui_of(request).code
    if code is None:
        return PlainTextResponse("Start `fairlead ui --approve` to answer from a page.\n", 403)
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > BODY:
            raise HTTPException(413, "Too long")
    form = parse_qs(body.decode(errors="replace"), keep_blank_values=True, max_num_fields=100)
    try:
        await run_in_threadpool(do, form, code)
    except FairleadError as error:
        return PlainTextResponse(f"{redact_text(str(error))}\n", 403 if isinstance(error, WrongCode) else 409)
    return PlainTextResponse("Done.\n")


def _one(form: AnswerForm, name: str) -> str:
    return next(iter(form.get(name, ())), "").strip()


def _answer(form: AnswerForm, code: AnswerCode) -> None:
    """Answer all questions of a call as they were shown. The code is used up, whatever the daemon says then."""
    questions = [(name, digest) for name, _, digest in (one.partition(" ") for one in form.get("shown", ()))]
    choice = _one(form, "answer")
    if not questions or choice not in ("approve", "deny", "session", "project", "until"):
        raise FairleadError("the page did not say what to answer; load it again")
    grant = None
    if choice == "session":
        grant = GrantRequest("session")
    elif choice in ("project", "until"):
        grant = GrantRequest("project", seconds_until(_one(form, "until")) if choice == "until" else None)
    if grant is not None:
        grant = GrantRequest(grant.scope, grant.seconds)  # an end that is too far away is an error
    code.use(_one(form, "code"))
    answer_call(questions, choice != "deny", _one(form, "why") or None, grant)


ROUTES = [
    Route("/approvals", show),
    Route("/approvals/live", feed),
    Route("/approvals/answer", answer, methods=["POST"]),
    Route("/approvals/revoke", end_grant, methods=["POST"]),
]
