"""Spools hold records while a newer fairlead owns the journal: one file per writer.

Each line is a record. The next process that can write the journal imports the spools of processes that have ended.
"""

from __future__ import annotations

import fcntl
import os
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from ..redaction.logs import logger
from .entry import Entry, entry_of
from .store import Head, sibling


class Spool:
    """A spool that this process appends to."""

    def __init__(self, journal: Path, writer: str) -> None:
        folder = sibling(journal, ".spool")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = folder / f"{writer}.jsonl"
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def append(self, entries: Iterable[Entry], rest: float = 0.0) -> Head | None:
        lines = b"".join(_line(entry) for entry in entries)
        if lines:
            before = os.fstat(self._file).st_size
            try:
                left = memoryview(lines)
                while left:
                    left = left[os.write(self._file, left) :]
                os.fsync(self._file)
            except OSError:  # all lines or none
                os.ftruncate(self._file, before)
                raise
        return None

    def abandon(self) -> None:
        """Close the file in a child process: the spool is the parent's."""
        os.close(self._file)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _line(entry: Entry) -> bytes:
    texts = [b64encode(text).decode() for text in entry.texts.values()]
    return msgspec.json.encode({"body": b64encode(entry.body).decode(), "texts": texts}) + b"\n"


def read_spools(journal: Path) -> Iterator[list[Entry]]:
    """Yield the entries of each spool whose process has ended, and remove the spool afterwards."""
    try:
        spools = sorted(sibling(journal, ".spool").glob("*.jsonl"))
    except OSError:
        return
    for spool in spools:
        with suppress(OSError), spool.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue  # its writer is running
            yield list(_read(spool, file))
            spool.unlink()


def _read(spool: Path, lines: Iterable[bytes]) -> Iterator[Entry]:
    for number, line in enumerate(lines, 1):
        try:
            record: dict[str, Any] = msgspec.json.decode(line)
            body = b64decode(record["body"])
            texts = [b64decode(text) for text in record["texts"]]
            known = msgspec.json.decode(body)
            entry = entry_of(known, body, {sha256(text).digest(): text for text in texts})
            _check(entry, known)
        except Exception:  # any program of the user can write to the file
            logger.warning("%s, line %d: not a record, or cut off by a crash; skipped", spool, number)
        else:
            yield entry


def _check(entry: Entry, known: dict[str, Any]) -> None:
    """Raise for an entry that the journal could not store."""
    name, at, kind, *_ = entry.columns  # the others are strings or None
    msgspec.convert((name, at, kind), tuple[str, _Number, Literal["decision", "note"]])
    if kind == "decision":
        msgspec.convert(known["step"], dict[str, Any])
    msgspec.convert(entry.runs, tuple[tuple[int, str, str, _Number, str | None], ...])


_Number = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
