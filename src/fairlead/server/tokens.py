"""Tokens: what callers over TCP may do.

The file holds digests of the tokens, never the tokens.
"""

from __future__ import annotations

import fcntl
import hmac
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Literal, get_args

import msgspec

from ..errors import FairleadError, UnknownName
from ..paths import atomic_write, make_private

TokenScope = Literal["dispatch", "approve", "read", "admin"]
SCOPES: tuple[TokenScope, ...] = get_args(TokenScope)
EVERYTHING: frozenset[TokenScope] = frozenset(SCOPES)


class Token(msgspec.Struct, frozen=True):
    """A token as it is stored."""

    name: str
    scopes: frozenset[TokenScope]
    digest: str
    created: float


class Tokens:
    """The tokens of a user, in a file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "tokens.json"
        self._stamp: tuple[int, int] | None = None
        self._known: list[Token] = []

    def add(self, name: str, scopes: list[str]) -> str:
        """Make a token. Only this call returns it; the file has its digest."""
        for scope in scopes:
            if scope not in SCOPES:
                raise UnknownName("scope", scope, SCOPES)
        if not scopes:
            raise FairleadError(f"a token needs a scope: name one or more of {', '.join(SCOPES)}")
        token = f"fairlead_{secrets.token_urlsafe(32)}"
        with self._changing() as tokens:
            if any(known.name == name for known in tokens):
                raise FairleadError(f"there is a token {name!r} already; revoke it first")
            tokens.append(Token(name, frozenset(scopes), _digest(token), time.time()))  # type: ignore[arg-type]
        return token

    def revoke(self, name: str) -> None:
        with self._changing() as tokens:
            kept = [token for token in tokens if token.name != name]
            if len(kept) == len(tokens):
                raise UnknownName("token", name, [token.name for token in tokens])
            tokens[:] = kept

    def find(self, token: str) -> Token | None:
        """The token with this text; None if it is unknown. All are compared, each in constant time."""
        digest, found = _digest(token), None
        for known in self.all():
            if hmac.compare_digest(known.digest, digest):
                found = known
        return found

    def scopes_of(self, token: str) -> frozenset[TokenScope]:
        """What a token allows; an unknown one allows nothing."""
        found = self.find(token)
        return frozenset() if found is None else found.scopes

    def all(self) -> list[Token]:
        try:
            status = self._file.stat()
            stamp = (status.st_mtime_ns, status.st_ino)
            if stamp != self._stamp:
                self._known = msgspec.json.decode(self._file.read_bytes(), type=list[Token])
                self._stamp = stamp
        except FileNotFoundError:
            self._known = []
        except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise FairleadError(f"{self._file} cannot be read: {error}; remove it and make new tokens") from None
        return self._known

    @contextmanager
    def _changing(self) -> Iterator[list[Token]]:
        make_private(self._folder)
        with (self._folder / "tokens.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            tokens = list(self.all())
            yield tokens
            atomic_write(self._file, msgspec.json.encode(tokens))


def _digest(token: str) -> str:
    return sha256(token.encode(errors="replace")).hexdigest()
