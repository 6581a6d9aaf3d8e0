"""Who is writing: each process marks what it has not written yet, so that a crash is noticed afterwards.

The mark is a file that its writer keeps locked. One that can be locked belongs to a process that is gone.
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

from .store import beside


class Mark:
    """This process's mark. Its first byte says whether there is something that was not written yet."""

    def __init__(self, path: Path, writer: str) -> None:
        folder = _folder(path)
        folder.mkdir(mode=0o700, exist_ok=True)
        self._path, new = folder / writer, folder / f".{writer}"
        self._file = os.open(new, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._set = False
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            os.write(self._file, b"0" + msgspec.json.encode({"pid": os.getpid(), "since": time.time_ns()}))
            os.rename(new, self._path)  # only now can it be taken for a mark
        except BaseException:  # of a full disk, say: the next try must not wait for the lock of this one
            os.close(self._file)
            raise

    def set(self, pending: bool) -> None:
        if pending != self._set:
            self._set = pending
            os.pwrite(self._file, b"1" if pending else b"0", 0)

    def abandon(self) -> None:
        """In a child process: the mark is the parent's."""
        os.close(self._file)

    def close(self) -> None:
        """Called once nothing is left to write: there is nothing to notice."""
        if self._file >= 0:
            with suppress(OSError):
                self._path.unlink()
            os.close(self._file)
            self._file = -1


def _folder(path: Path) -> Path:
    return beside(path, ".writers")


def crashed(path: Path) -> Iterator[dict[str, Any]]:
    """The writers that ended with something unwritten. Each is forgotten once the next one is asked for."""
    try:
        marks = [mark for mark in _folder(path).iterdir() if not mark.name.startswith(".")]
    except OSError:
        return
    for mark in marks:
        left = _left_by(mark)
        if left is None:
            continue
        if left[:1] == b"1":
            about: dict[str, Any] = {"pid": None, "since": None}
            with suppress(msgspec.MsgspecError, UnicodeError):
                about |= msgspec.json.decode(left[1:], type=dict[str, int])
            yield {"writer": mark.name, **about}
        with suppress(OSError):
            mark.unlink()


def _left_by(mark: Path) -> bytes | None:
    """What a dead writer's mark says; None for one that lives."""
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
