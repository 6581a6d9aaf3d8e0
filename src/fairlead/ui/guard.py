"""In front of every request: is it from this machine's browser, from a page of ours, and signed in?

The checks are in this order, and a request that fails one reaches no page:

1. The process that connected is this user's. Every user of a machine can reach its ports, and a browser gives its
   cookies to every port of 127.0.0.1, also to another user's server (403).
2. `Host` is a name of this machine. A page elsewhere whose name was pointed to 127.0.0.1 has another (421). Any port is
   right, because ssh may forward another one.
3. `Origin`, if there is one, is that host. What changes something must have one (403).
4. The browser does not say that another page asks: neither of another site nor of another port of this machine (403).
5. The cookie is right, unless the request is for signing in (401).
6. What changes something has the key as well (403).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response

from ..peers import user_of_connection
from .access import KEY_HEADER, Access

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
}
OPEN = frozenset({"/sign-in", "/assets/ui.css", "/assets/ui.js", "/assets/icon.svg"})
"""What a browser needs to sign in. None of it depends on a journal."""
_LOOPBACK = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?")
_SAFE = frozenset({"GET", "HEAD"})


class RequestGuard:
    """The middleware. It refuses by itself, and adds the headers to every answer."""

    def __init__(self, app: ASGIApp, access: Access, is_ours: Callable[[Scope], bool] | None = None) -> None:
        self._app = app
        self._access = access
        self._is_ours = is_ours or _is_ours

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no web sockets
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        if self._is_ours(scope):
            refusal = self._refusal(scope["method"], scope["path"], Headers(scope=scope))
        else:
            refusal = _refuse(403, "Another user of this machine asked.")
        await (refusal or self._app)(scope, receive, send_with_headers)

    def _refusal(self, method: str, path: str, headers: Headers) -> Response | None:
        """The answer to a request that must not reach a page; None if it may."""
        if (refused := _from_elsewhere(method, path, headers)) is not None:
            return refused
        if path in OPEN:
            return None
        if not self._access.may_read(headers.get("cookie", "")):
            return _refuse(401, "Not signed in. Open the address that `fairlead ui` printed; it works once.")
        if method not in _SAFE and not self._access.may_change(headers.get(KEY_HEADER)):
            return _refuse(
                403, "This tab may only look. To answer or to change something, open it with a new address: press "
                "Enter where `fairlead ui` runs.",
            )  # fmt: skip
        return None


def _is_ours(scope: Scope) -> bool:
    """Whether a request comes from a process of this user, or of root, who may read everything anyway."""
    try:
        user = user_of_connection(tuple(scope["client"]), tuple(scope["server"]))
    except (LookupError, OSError, TypeError):
        return False
    return user in (None, 0, os.geteuid())


def _from_elsewhere(method: str, path: str, headers: Headers) -> Response | None:
    hosts, origins = headers.getlist("host"), headers.getlist("origin")
    if len(hosts) != 1 or not _LOOPBACK.fullmatch(hosts[0]):
        return _refuse(421, "The inspector answers to 127.0.0.1 and localhost only.")
    if any(origin != f"http://{hosts[0]}" for origin in origins):
        return _refuse(403, "Another page sent this.")
    if method not in _SAFE and not origins:
        return _refuse(403, "What changes something must come from a page of the inspector.")
    site, mode = headers.get("sec-fetch-site", "none"), headers.get("sec-fetch-mode")
    opens = path == "/sign-in" and method == "GET" and mode == "navigate"  # from the file that opened the browser
    if site not in ("same-origin", "none") and not opens:
        return _refuse(403, "Another page asked for this. Open the address yourself.")
    return None


def _refuse(status: int, words: str) -> Response:
    return PlainTextResponse(f"{words}\n", status)
