"""Pins the programs and files outside a project that its hooks use, when a human trusts the project.

A file that this user cannot write is pinned by path and owner, so that an upgrade of the system breaks no hook.
Every other file is pinned by its content. The check runs before each run of the hook.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import file_digest
from pathlib import Path
from typing import Any

import msgspec

from ..errors import HookUnavailable, RunnerFailed
from ..lifecycle import Step
from .document import Mistake
from .regular_files import open_regular
from .wrapper import HookWrapper

_Stamp = tuple[int, int, int, int, int]
_digests: dict[str, tuple[_Stamp, str]] = {}
_REMEMBERED = 1024
_LINKS = 40
"""Links that lead to one another. The kernel follows no more."""


class ProgramChanged(RunnerFailed):
    """A program of a project's hook is not the one that was trusted."""


class ProgramPin(msgspec.Struct, frozen=True, omit_defaults=True):
    """One file outside the project, as it was when the project was trusted."""

    path: str
    owner: int | None = None
    """The file's owner, for a file that this user could not write."""
    digest: str | None = None
    """The SHA-256 of every other file."""
    executable: bool = False

    def problem(self) -> str | None:
        """Why this is not the file that was trusted; None if it is."""
        try:
            owner = os.stat(self.path).st_uid
            if self.digest is not None and digest_of(self.path) != self.digest:
                return f"{self.path} has changed since it was trusted"
        except OSError as error:
            return f"{self.path} was trusted, and is gone or cannot be read ({error.strerror})"
        if self.executable and not os.access(self.path, os.X_OK):
            return f"{self.path} could be run when it was trusted, and now cannot"
        if self.owner is not None and owner != self.owner:
            return f"{self.path} belonged to user {self.owner} when it was trusted, and now to user {owner}"
        if self.owner is not None and can_write(self.path):
            return f"{self.path} can be written by this user since it was trusted"
        return None


def pin_program(path: str) -> ProgramPin:
    """The pin of a file as it is now. Raises OSError if it cannot be read."""
    runs, owner = os.access(path, os.X_OK), os.stat(path).st_uid
    if can_write(path):
        return ProgramPin(path, digest=digest_of(path), executable=runs)
    return ProgramPin(path, owner=owner, executable=runs)


def can_write(path: str) -> bool:
    """Whether this user can change a file or put another in its place: by its mode, as its owner, or from above."""
    for place in _on_the_way(os.path.abspath(path)):
        is_link = os.path.islink(place)
        if os.lstat(place).st_uid == os.geteuid() or (not is_link and os.access(place, os.W_OK)):
            return True
    return False


def _on_the_way(path: str) -> Iterator[str]:
    """Every file, folder and link that leads to a file."""
    left = path
    for _ in range(_LINKS):
        prefix, rest = "/", [part for part in left.split("/") if part]
        yield prefix
        while rest:
            prefix = os.path.join(prefix, rest.pop(0))
            yield prefix
            if os.path.islink(prefix):
                target = os.path.join(os.path.dirname(prefix), os.readlink(prefix))
                left = os.path.normpath(os.path.join(target, *rest))
                break
        else:
            return
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def digest_of(path: str) -> str:
    """The SHA-256 of a file. A file that nothing has touched is not read again."""
    status = os.stat(path)
    stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    known = _digests.get(path)
    if known is None or known[0] != stamp:
        with open_regular(path) as file:
            known = (stamp, file_digest(file, "sha256").hexdigest())
        if len(_digests) >= _REMEMBERED:
            _digests.clear()
        _digests[path] = known
    return known[1]


class PinnedRunner(HookWrapper):
    """Runs a hook of a project only while everything that it uses is as it was trusted.

    `pins` are files outside the project, and those inside for which no copy can stand. `absent` are paths that its
    command names and that were not there when the project was trusted: a file that appears there now would steer the
    hook. So would one that `appears`, which looks for others that its patterns stand for.
    """

    def __init__(
        self,
        fn: Callable[[Step], Any],
        pins: Sequence[ProgramPin],
        absent: Sequence[Path],
        root: Path,
        appears: Callable[[], Iterable[Path]] = tuple,
    ) -> None:
        super().__init__(fn)
        self.pins = tuple(pins)
        self.absent = tuple(absent)
        self._root = root
        self._appears = appears

    def problem(self) -> str | None:
        """What has changed since it was trusted, and what to do about it; None if nothing has."""
        problems = [pin.problem() for pin in self.pins]
        new = [*(path for path in self.absent if os.path.lexists(path)), *self._appears()]
        problems += [f"{path} was not there when it was trusted" for path in new]
        found = next(filter(None, problems), None)
        return None if found is None else f"{found}; look at it, then run `fairlead trust` in {self._root}"

    async def __call__(self, step: Step) -> Any:
        if (problem := self.problem()) is not None:
            raise ProgramChanged(problem)
        return await super().__call__(step)


class Unavailable:
    """Stands for a hook that cannot run on this machine: each call fails, by the hook's policy.

    `mistake` says what is missing, and where the file names it. It is none of the file's, but it is shown like one.
    """

    def __init__(self, mistake: Mistake, error: HookUnavailable) -> None:
        self.mistake = mistake
        self.error = error

    def __repr__(self) -> str:
        return "<unavailable>"

    def __call__(self, step: Step) -> Any:
        raise RunnerFailed(f"it cannot run on this machine: {self.mistake.problem}")


def unavailable(runner: Any) -> Unavailable | None:
    """The `Unavailable` inside a hook and its wrappers; None if the hook can run."""
    while not isinstance(runner, Unavailable) and hasattr(runner, "fn"):
        runner = runner.fn
    return runner if isinstance(runner, Unavailable) else None
