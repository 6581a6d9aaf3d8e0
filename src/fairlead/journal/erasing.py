"""Erasing: bodies of records are taken out for good, and the journal still verifies, and says so."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from ..peers import user_name
from ..redaction import redact_text
from .entry import VERSION, entry_of
from .errors import JournalError
from .reading import Reader
from .store import Store


def erase(path: str | Path, records: Sequence[str], *, why: str | None = None) -> list[int]:
    """Erase the bodies of some records, by id or number, and write a note into the chain. Their numbers are returned.

    Bodies, salts and the long texts that no other record has are gone for good. What is left are the columns: when,
    which event, session, tool and hook, and what was decided.
    """
    path = Path(path)
    with Reader(path) as reader:  # which also tells that there is such a journal
        numbers = sorted({reader.record(name).seq for name in records})
    if not numbers:
        raise JournalError(f"no records of {path} are named, so none is erased")
    note = {
        "v": VERSION, "id": f"{os.urandom(5).hex()}-erased", "at": time.time_ns(), "kind": "note", "note": "erased",
        "records": numbers, "user": user_name(os.geteuid()),
    }  # fmt: skip
    if why is not None:
        note["why"] = redact_text(why)
    store = Store(path)
    try:
        store.erase(numbers, entry_of(note))
    finally:
        store.close()
    return numbers
