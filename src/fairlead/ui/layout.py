"""The frame of every page: its head, the menu, and what endpoints need to answer a request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from ..journal.reading import Reader
from .access import Access
from .answer_code import AnswerCode
from .markup import Html, document, h

Menu = tuple[str, str]
"""A word in the menu, and its address."""


class Ui(msgspec.Struct, frozen=True):
    """What all pages of one run share."""

    journal: Path
    access: Access
    menu: Sequence[Menu] = ()
    code: AnswerCode | None = None  # that answers need; None: this run takes none


class Crumb(NamedTuple):
    """A step of the way to a page, for the line above its title."""

    word: str
    address: str


def ui_of(request: Request) -> Ui:
    """What all pages share."""
    found: Ui = request.app.state.ui
    return found


def reader_of(request: Request) -> Reader:
    """The journal, open for reading until the end of a `with` block. Keep it short: no query may hold the file."""
    return Reader(ui_of(request).journal)


def number(request: Request, name: str) -> int:
    """A number in the address; 0 without it, and for anything that is no number."""
    text = request.query_params.get(name, "")
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else 0


def page(
    request: Request,
    title: str,
    *content: Any,
    crumbs: Sequence[Crumb] = (),
    status: int = 200,
    live: str | None = None,
    summary: str | None = None,
) -> Response:
    """A page with the menu around it. `live` is the address of its feed of new rows, `summary` that of
    the part with the id "summary", which is fetched again when rows came."""
    ui = ui_of(request)
    return HTMLResponse(
        document(
            f"{title} - fairlead",
            HEAD,
            h.a("Skip to the content", href="#content", class_="skip"),
            h.header(
                h.a(h.span("fairlead", class_="name"), " inspector", href="/", class_="brand"),
                h.nav([_menu_item(word, to, request.url.path) for word, to in ui.menu], aria_label="Pages"),
                h.span("connecting", id="live", role="status") if live else None,
                class_="top",
            ),
            h.main(
                crumbs
                and h.nav(
                    [h.a(crumb.word, href=crumb.address) for crumb in crumbs],
                    class_="crumbs",
                    aria_label="Where you are",
                ),
                content,
                id="content",
                tabindex="-1",
                data_live=live,
                data_summary=summary,
            ),
        ),
        status,
    )


HEAD: Sequence[tuple[str, dict[str, Any]]] = (
    ("link", {"rel": "icon", "href": "/assets/icon.svg", "type": "image/svg+xml"}),
    ("link", {"rel": "stylesheet", "href": "/assets/ui.css"}),
    ("script", {"type": "module", "src": "/assets/ui.js"}),
)


def _menu_item(word: str, to: str, path: str) -> Html:
    here = path == to or (to != "/" and path.startswith(f"{to}/"))
    return h.a(word, href=to, aria_current="page" if here else None)


def message(request: Request, status: int, title: str, *words: Any) -> Response:
    """A page that only says something: that nothing is there, or what is wrong."""
    return page(request, title, h.h1(title), [h.p(word, class_="reason") for word in words], status=status)


def fragment(content: Html) -> Response:
    """A part of a page, which the script puts into it."""
    return HTMLResponse(content)


def asset(name: str) -> bytes:
    """A file that comes with fairlead, from the installed package."""
    return files("fairlead.ui").joinpath("assets", name).read_bytes()
