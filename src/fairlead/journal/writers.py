"""Crash detection: the mark of a process says whether it has unwritten records.

The mark is a file that its process keeps locked. A mark that can be locked belongs to a process that has ended.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from .store import sibling


class WriterMark:
    """This process's mark. Its first byte says whether there are unwritten records."""

    def __init__(self, path: Path, writer: str) -> None:
        folder = _folder(path)
        folder.mkdir(mode=0o700, exist_ok=True)
        self._path, new = folder / writer, folder / f".{writer}"
        self._file = os.open(new, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._set = False
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            os.write(self._file, b"0" + msgspec.json.encode({"pid": os.getpid(), "since": time.time_ns()}))
            os.rename(new, self._path)  # only now do other processes see it
        except BaseException:  # such as a full disk: release the lock for the next try
            os.close(self._file)
            raise

    def set(self, pending: bool) -> None:
        if pending != self._set:
            self._set = pending
            os.pwrite(self._file, b"1" if pending else b"0", 0)

    def abandon(self) -> None:
        """Close the file in a child process: the mark is the parent's."""
        os.close(self._file)

    def close(self) -> None:
        """Remove the mark. Called when all records are written."""
        if self._file >= 0:
            with suppress(OSError):
                self._path.unlink()
            os.close(self._file)
            self._file = -1


def _folder(path: Path) -> Path:
    return sibling(path, ".writers")


def crashed_writers(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the writers that ended with unwritten records, and remove their marks."""
    try:
        marks = [mark for mark in _folder(path).iterdir() if not mark.name.startswith(".")]
    except OSError:
        return
    for mark in marks:
        content = _content_of_ended(mark)
        if content is None:
            continue
        if content[:1] == b"1":
            about: dict[str, Any] = {"pid": None, "since": None}
            with suppress(msgspec.MsgspecError, UnicodeError):
                about |= msgspec.json.decode(content[1:], type=dict[str, int])
            yield {"writer": mark.name, **about}
        with suppress(OSError):
            mark.unlink()


def _content_of_ended(mark: Path) -> bytes | None:
    """The content of an ended writer's mark; None if the writer is running."""
    try:
        file = os.open(mark, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.read(file, 4096)
    except OSError:
        return None
    finally:
        os.close(file)
