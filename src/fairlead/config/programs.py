"""Programs and files outside a project that its hooks use: pinned when a human trusts the project.

A file that this user cannot write is pinned by path and owner, so that an upgrade of the system breaks no hook.
Every other file is pinned by its content. The check runs before each run of the hook.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from hashlib import file_digest
from pathlib import Path
from typing import Any

import msgspec

from ..errors import FairleadError, RunnerFailed
from ..lifecycle import Step

_Stamp = tuple[int, int, int, int, int]
_digests: dict[str, tuple[_Stamp, str]] = {}
_REMEMBERED = 1024


class ProgramChanged(RunnerFailed):
    """A program of a project's hook is not the one that was trusted."""


class ProgramPin(msgspec.Struct, frozen=True, omit_defaults=True):
    """One file outside the project, as it was when the project was trusted."""

    path: str
    owner: int | None = None
    """The file's owner, for a file that this user could not write."""
    digest: str | None = None
    """The SHA-256 of every other file."""

    def problem(self) -> str | None:
        """Why this is not the file that was trusted; None if it is."""
        try:
            status = os.stat(self.path)
            if self.owner is None:
                return None if digest_of(self.path) == self.digest else f"{self.path} has changed since it was trusted"
        except OSError as error:
            return f"{self.path} was trusted, and is gone or cannot be read ({error.strerror})"
        if status.st_uid != self.owner:
            return f"{self.path} belonged to user {self.owner} when it was trusted, and now to user {status.st_uid}"
        return f"{self.path} can be written by this user since it was trusted" if can_write(self.path) else None


def pin_program(path: str) -> ProgramPin:
    """The pin of a file as it is now. Raises OSError if it cannot be read."""
    owner = os.stat(path).st_uid
    return ProgramPin(path, digest=digest_of(path)) if can_write(path) else ProgramPin(path, owner=owner)


def can_write(path: str) -> bool:
    """Whether this user can change a file or put another in its place: by its mode, as its owner, or from above."""
    for place in {Path(path), Path(os.path.realpath(path))}:
        for part in (place, *place.parents):
            if os.stat(part).st_uid == os.geteuid() or os.access(part, os.W_OK):
                return True
    return False


def digest_of(path: str) -> str:
    """The SHA-256 of a file. A file that nothing has touched is not read again."""
    status = os.stat(path)
    stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    known = _digests.get(path)
    if known is None or known[0] != stamp:
        with open(path, "rb") as file:
            known = (stamp, file_digest(file, "sha256").hexdigest())
        if len(_digests) >= _REMEMBERED:
            _digests.clear()
        _digests[path] = known
    return known[1]


class PinnedRunner:
    """Runs a hook of a project only while every outside file it uses is the one that was trusted."""

    def __init__(self, fn: Callable[[Step], Any], pins: Sequence[ProgramPin], root: Path) -> None:
        self.fn = fn
        self.pins = tuple(pins)
        self._root = root

    def __repr__(self) -> str:
        return repr(self.fn)

    async def __call__(self, step: Step) -> Any:
        for pin in self.pins:
            if (problem := pin.problem()) is not None:
                raise ProgramChanged(f"{problem}; look at it, then run `fairlead trust` in {self._root}")
        said = self.fn(step)
        return await said if inspect.isawaitable(said) else said

    async def aclose(self) -> None:
        close = getattr(self.fn, "aclose", None)
        if close is not None:
            await close()


class Unavailable:
    """Stands for a hook of a trusted project that cannot be started: each call fails, by the hook's policy."""

    def __init__(self, problem: FairleadError, root: Path) -> None:
        self._problem = f"{problem}; put it back, or look at the project with `fairlead trust` in {root}"

    def __repr__(self) -> str:
        return "<unavailable>"

    def __call__(self, step: Step) -> Any:
        raise ProgramChanged(self._problem)
