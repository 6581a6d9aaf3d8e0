"""Who may see the inspector: the user who opens the address that `fairlead ui` printed, in that browser.

Three secrets, each of 256 bits, new for each run:

- The *token* is in the address, behind the `#`, so that the browser never sends it as part of one. It works once.
- The *cookie* is what the browser gets for the token. A browser sends it to every port of this machine, so another
  server here can learn it. So it may only read.
- The *key* is kept by the page's script in the tab's `sessionStorage`, which belongs to this port alone. Whatever
  changes something needs both.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

from ..paths import make_private, runtime_folder
from .markup import document, h

TOKEN_HEADER = "x-fairlead-token"  # noqa: S105 (a name)
KEY_HEADER = "x-fairlead-key"


class Access:
    """The secrets of one run, and what was presented for them."""

    def __init__(self) -> None:
        self._token: str | None = secrets.token_urlsafe(32)
        self.cookie_name = f"fairlead_{secrets.token_hex(8)}"
        self._cookie = secrets.token_urlsafe(32)
        self._key = secrets.token_urlsafe(32)

    def address(self, port: int) -> str:
        """The address that signs a browser in. It works once."""
        return f"http://127.0.0.1:{port}/sign-in#{self._token or 'used'}"

    def renew(self) -> None:
        """Make another token, for another browser. Those who are signed in stay so."""
        self._token = secrets.token_urlsafe(32)

    @property
    def is_used(self) -> bool:
        """Whether the token was used."""
        return self._token is None

    def sign_in(self, token: str | None) -> str | None:
        """The key, for the right token; None for any other, and for one that was used."""
        if self._token is None or not _same(token, self._token):
            return None
        self._token = None
        return self._key

    def cookie(self) -> str:
        """The header that gives a browser its cookie."""
        return f"{self.cookie_name}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"

    def may_read(self, cookies: str) -> bool:
        """Whether a request's cookies have ours."""
        try:
            found = SimpleCookie(cookies).get(self.cookie_name)
        except CookieError:
            return False
        return found is not None and _same(found.value, self._cookie)

    def may_change(self, key: str | None) -> bool:
        return _same(key, self._key)


def _same(presented: str | None, secret: str) -> bool:
    return presented is not None and hmac.compare_digest(presented.encode(errors="replace"), secret.encode())


@contextmanager
def redirect_file(address: str) -> Iterator[Path]:
    """A page on disk that only this user can read, and that leads to an address.

    The browser is started with the name of this file, because every user can see the arguments of a process, and the
    address has a token. The file is gone at the end of the block, and sooner if the caller unlinks it.
    """
    folder = make_private(runtime_folder())
    path = folder / f"inspector-{secrets.token_hex(8)}.html"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        head = [("meta", {"http_equiv": "refresh", "content": f"0; url={address}"})]
        with os.fdopen(descriptor, "w") as file:
            file.write(document("fairlead", head, h.p("This page opens the inspector.")))
        yield path
    finally:
        path.unlink(missing_ok=True)
