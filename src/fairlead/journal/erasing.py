"""Erases the bodies of records for good.

The journal still verifies, and a note says what was erased.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from ..peers import user_name
from ..redaction.redactor import redact_text
from .entry import VERSION, entry_of
from .errors import JournalError
from .reading import Reader
from .store import JournalFile


def erase(path: str | Path, records: Sequence[str], *, why: str | None = None) -> list[int]:
    """Erase the bodies of records, by id or number, and return the numbers.

    Bodies, salts and the long texts that no other record uses are gone for good. The columns stay: time, event,
    session, tool, hook and decision.
    """
    path = Path(path)
    with Reader(path) as reader:  # raises if there is no such journal
        numbers = sorted({reader.record(name).seq for name in records})
    if not numbers:
        raise JournalError(f"name the records of {path} to erase")
    note = {
        "v": VERSION, "id": f"{os.urandom(5).hex()}-erased", "at": time.time_ns(), "kind": "note", "note": "erased",
        "records": numbers, "user": user_name(os.geteuid()),
    }  # fmt: skip
    if why is not None:
        note["why"] = redact_text(why)
    store = JournalFile(path)
    try:
        store.erase(numbers, entry_of(note))
    finally:
        store.close()
    return numbers
