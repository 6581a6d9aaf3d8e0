"""The digest chain of the journal: each record's digest covers all records before it.

A digest covers the digest before it, the record's number, its columns and the digest of its salted body. A body can be
erased together with its salt, and the chain still verifies.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import msgspec


def genesis(journal: str) -> bytes:
    """The digest that the first record of a journal follows."""
    return sha256(b"fairlead journal " + journal.encode()).digest()


def link(previous: bytes, seq: int, columns: Sequence[Any], runs: Sequence[Any], content: bytes) -> bytes:
    """The digest of a record, which covers all records before it.

    `content` is the `seal` of its body.
    """
    about = sha256(msgspec.json.encode([columns, runs])).digest()
    return sha256(previous + seq.to_bytes(8, "big") + about + content).digest()


def seal(salt: bytes, body: bytes) -> bytes:
    """The digest of a body. It stays when the body and its salt are erased."""
    return sha256(salt + body).digest()


def old_link(previous: bytes, seq: int, body: bytes) -> bytes:
    """The digest of a record of schema 1."""
    return sha256(previous + seq.to_bytes(8, "big") + body).digest()
