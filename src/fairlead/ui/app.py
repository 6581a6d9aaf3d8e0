"""The inspector's application: its routes, with the guard in front, and what a page says when something is wrong."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from ..errors import FairleadError
from ..journal.errors import NoJournal, NoRecord
from ..redaction.logs import logger
from ..redaction.redactor import redact_text
from .access import TOKEN_HEADER, Access
from .answer_code import AnswerCode
from .guard import RequestGuard
from .layout import HEAD, Ui, asset, message, ui_of
from .markup import document, h
from .pages import (
    approvals,
    coverage,
    decision,
    decisions,
    hooks,
    journal,
    playground,
    policy,
    replay,
    session,
    sessions,
)

PAGES: tuple[ModuleType, ...] = (
    sessions,
    decisions,
    session,
    decision,
    approvals,
    hooks,
    policy,
    playground,
    replay,
    coverage,
    journal,
)  # fmt: skip
"""The pages, in the order of the menu."""

_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def make_app(
    journal_file: Path,
    access: Access,
    *,
    code: AnswerCode | None = None,
    is_ours: Callable[[Scope], bool] | None = None,
) -> RequestGuard:
    """The application for one journal. Only a browser that has signed in with `access` gets an answer.

    Answers to questions need `code`; without one, they are refused. `is_ours` says whether a connection is this
    user's; without it, the kernel does.
    """
    menu = [page.MENU for page in PAGES if getattr(page, "MENU", None)]
    routes = [
        Route("/sign-in", _sign_in_page, methods=["GET"]),
        Route("/sign-in", _sign_in, methods=["POST"]),
        Route("/assets/{name}", _asset, methods=["GET"]),
        *(route for page in PAGES for route in page.ROUTES),
    ]
    app = Starlette(
        routes=routes,
        exception_handlers={HTTPException: _http_error, FairleadError: _refused, Exception: _broken},
    )
    app.router.redirect_slashes = False
    app.state.ui = Ui(journal_file, access, menu, code)
    return RequestGuard(app, access, is_ours)  # around all of it, so that no answer lacks the headers


# --- signing in -----------------------------------------------------------------------------------


def _sign_in_page(request: Request) -> Response:
    """The page that the printed address leads to. The script sends the token, which only it can see."""
    words = h.p("Signing in ...", id="sign-in", role="status")
    without = h.noscript(h.p("The inspector needs its script to sign you in. Allow scripts for this address."))
    return HTMLResponse(document("fairlead", HEAD, h.main(h.h1("fairlead inspector"), words, without, class_="alone")))


def _sign_in(request: Request) -> Response:
    access = ui_of(request).access
    key = access.sign_in(request.headers.get(TOKEN_HEADER))
    if key is None:
        return PlainTextResponse("This address was used already, or is another run's.\n", 403)
    return JSONResponse({"key": key}, headers={"set-cookie": access.cookie()})


def _asset(request: Request) -> Response:
    """A file that comes with fairlead. The guard lets only known names through without a cookie."""
    name = request.path_params["name"]
    if name not in {"ui.css", "ui.js", "icon.svg"}:
        raise HTTPException(404)
    return Response(asset(name), media_type=_TYPES[os.path.splitext(name)[1]])


# --- when something is wrong ----------------------------------------------------------------------


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 (Starlette promises it)
    if error.status_code == 404:
        return message(request, 404, "Not found", "There is no such page.")
    return message(request, error.status_code, error.detail, "")


def _refused(request: Request, error: Exception) -> Response:
    """A mistake in the address, or a journal that cannot be read."""
    words = redact_text(str(error))
    if isinstance(error, NoJournal):
        return message(request, 200, "Nothing recorded yet", words)
    if isinstance(error, NoRecord):
        return message(request, 404, "Not found", words)
    return message(request, 400, "This cannot be shown", words)


def _broken(request: Request, error: Exception) -> Response:
    logger.error("the inspector could not show %s", request.url.path, exc_info=error)
    return message(
        request, 500, "Something broke", "This is a mistake in fairlead. Where `fairlead ui` runs, it says more."
    )
