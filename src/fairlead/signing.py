"""Signatures on what is sent to an HTTP hook and on what comes back.

A request is signed over its timestamp and body. A verdict is signed over its timestamp, the
signature of the request it answers, and its body, so that an old verdict cannot be played again.
Whoever writes the server can use these two functions:

    verify(secret, request.headers, body)
    headers = sign(secret, verdict, answers=request.headers["Fairlead-Signature"])
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping

from .errors import FairleadError

TIMESTAMP, SIGNATURE = "Fairlead-Timestamp", "Fairlead-Signature"
MAX_AGE = 300.0
"""Seconds that the clocks of both sides may differ, transport included."""


class BadSignature(FairleadError):
    """A message that does not come from who it should, or not now."""


def sign(secret: str, body: bytes, *, answers: str = "", now: float | None = None) -> dict[str, str]:
    """The headers that sign a body. `answers` is the signature of the request, if this is the answer."""
    timestamp = str(int(time.time() if now is None else now))
    return {TIMESTAMP: timestamp, SIGNATURE: _signature(secret, timestamp, answers, body)}


def verify(
    secret: str, headers: Mapping[str, str], body: bytes, *, answers: str = "", now: float | None = None
) -> None:
    """Raise `BadSignature` unless these headers sign this body, and did so just now."""
    found = {name.lower(): value for name, value in headers.items()}
    timestamp, signature = found.get(TIMESTAMP.lower(), ""), found.get(SIGNATURE.lower(), "")
    if not signature:
        raise BadSignature(f"not signed: no {SIGNATURE} header")
    expected = _signature(secret, timestamp, answers, body)
    if not hmac.compare_digest(expected.encode(), signature.encode(errors="replace")):
        raise BadSignature("the signature does not match; do both sides have the same secret?")
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 20):
        raise BadSignature(f"no time: {TIMESTAMP} is the seconds since 1970")
    age = abs((time.time() if now is None else now) - int(timestamp))
    if age > MAX_AGE:
        raise BadSignature(f"signed {age:.0f} s ago; check the clocks of both sides")


def _signature(secret: str, timestamp: str, answers: str, body: bytes) -> str:
    message = b"%b.%b.%b" % (timestamp.encode(errors="replace"), answers.encode(errors="replace"), body)
    return "sha256=" + hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()
