"""Public keys as OpenSSH writes them: `ssh-ed25519 AAAA... name`."""

from __future__ import annotations

import base64
import binascii
import re

PUBLIC_KEY = re.compile(r"((?:sk-)?(?:ssh|ecdsa)-[\w@.-]{3,64}) ([A-Za-z0-9+/]{32,}={0,2})(?: (.*))?")


def is_public_key(text: str) -> bool:
    """Whether this is one key: its type, and data that begins with the same type."""
    parsed = PUBLIC_KEY.fullmatch(text.strip())
    if parsed is None:
        return False
    try:
        data = base64.b64decode(parsed[2], validate=True)
    except binascii.Error:
        return False
    kind = parsed[1].encode()
    return data[:4] == len(kind).to_bytes(4, "big") and data[4 : 4 + len(kind)] == kind
