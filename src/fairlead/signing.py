"""Signatures on what is sent to an HTTP hook and on what comes back.

A request is signed over its timestamp, a random nonce and its body, so that no two requests have the same
signature. A verdict is also signed over the signature of the request it answers, so that a verdict on one request
is never taken for a verdict on another. The author of the server uses these:

    seen = Nonces()                                     # once
    verify(secret, request.headers, body, seen=seen)    # refuses a request that was here before
    headers = sign(secret, verdict, answers=request.headers["Fairlead-Signature"])
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import time
from collections.abc import Mapping

from .errors import FairleadError

TIMESTAMP, NONCE, SIGNATURE = "Fairlead-Timestamp", "Fairlead-Nonce", "Fairlead-Signature"
MAX_AGE = 300.0
"""Seconds that the clocks of both sides may differ, transport included."""
_VERSION = "v2"
_TIME, _NONCE = re.compile(r"[0-9]{1,19}"), re.compile(r"[0-9A-Za-z_-]{16,128}")


class BadSignature(FairleadError):
    """A message whose signature is missing, wrong, too old or used before."""


class Nonces:
    """The nonces of the requests that a server has verified, for as long as a copy of one could be accepted."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        self._adding = threading.Lock()

    def add(self, nonce: str, now: float) -> bool:
        """Remember a nonce. False if it is known already."""
        with self._adding:
            while self._until and self._until[oldest := next(iter(self._until))] < now:
                del self._until[oldest]
            known = nonce in self._until
            self._until.setdefault(nonce, now + 2 * MAX_AGE)
        return not known


def sign(
    secret: str, body: bytes, *, answers: str = "", now: float | None = None, nonce: str | None = None
) -> dict[str, str]:
    """The headers that sign a body. `answers` is the signature of the request, if this is the answer."""
    timestamp = str(int(time.time() if now is None else now))
    nonce = secrets.token_hex(16) if nonce is None else nonce
    return {TIMESTAMP: timestamp, NONCE: nonce, SIGNATURE: _signature(secret, timestamp, nonce, answers, body)}


def verify(
    secret: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    answers: str = "",
    seen: Nonces | None = None,
    now: float | None = None,
) -> None:
    """Raise `BadSignature` unless these headers sign this body, and did so just now.

    With `seen`, they must also do so for the first time.
    """
    found = {name.lower(): value for name, value in headers.items()}
    timestamp, nonce, signature = (found.get(name.lower(), "") for name in (TIMESTAMP, NONCE, SIGNATURE))
    if not signature:
        raise BadSignature(f"not signed: no {SIGNATURE} header")
    if not signature.startswith(f"{_VERSION}="):
        raise BadSignature(f"the signature does not begin with {_VERSION}=; update fairlead on both sides")
    expected = _signature(secret, timestamp, nonce, answers, body)
    if not hmac.compare_digest(expected.encode(), signature.encode(errors="replace")):
        raise BadSignature("the signature does not match; do both sides have the same secret?")
    if not _TIME.fullmatch(timestamp):
        raise BadSignature(f"no time: {TIMESTAMP} is the seconds since 1970")
    if not _NONCE.fullmatch(nonce):
        raise BadSignature(f"no nonce: {NONCE} is 16 to 128 random letters and digits")
    now = time.time() if now is None else now
    age = abs(now - int(timestamp))
    if age > MAX_AGE:
        raise BadSignature(f"signed {age:.0f} s ago; check the clocks of both sides")
    if seen is not None and not seen.add(nonce, now):
        raise BadSignature("this was received before")


def _signature(secret: str, timestamp: str, nonce: str, answers: str, body: bytes) -> str:
    """The signature. None of the parts before the body has a dot in it, so that no two messages read the same."""
    signed = ".".join((_VERSION, timestamp, nonce, answers)).encode(errors="replace") + b"." + body
    return f"{_VERSION}=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
