"""Git repositories, read without running git: which work tree a folder is in, and which repository that is.

All work trees of one repository share its common directory, and so the trust in its hooks.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from .regular_files import read_regular

_LIMIT = 1 << 16
"""Bytes that are read of any file of git's."""


class Repository(msgspec.Struct, frozen=True, omit_defaults=True):
    """One work tree of a git repository."""

    common: str
    """The directory that all its work trees share, as a rule `.git` of the first one."""
    top: str
    """The top folder of this work tree."""
    origin: str | None = None
    inode: tuple[int, int] = (0, 0)
    made: int = 0
    """When git wrote the file `description`, which it does once; 0 if there is none. Inodes are used again."""

    def is_same(self, other: Repository) -> bool:
        """Whether two work trees are of one repository, also if that was moved in between."""
        return self.common == other.common or (self._is_unmoved(other) and self.origin == other.origin)

    def _is_unmoved(self, other: Repository) -> bool:
        return self.inode == other.inode and (self.made == other.made or 0 in (self.made, other.made))

    def is_replaced_by(self, now: Repository) -> bool:
        """Whether another repository has taken the place of this one."""
        if self.origin is not None or now.origin is not None:
            return self.origin != now.origin
        return not self._is_unmoved(now)


def repositories_of(folder: Path) -> list[Repository]:
    """Every work tree that a folder is in, the innermost first: `git init` in a subfolder hides none of them.

    Of two work trees of one repository, one inside the other, the inner one counts.
    """
    found: list[Repository] = []
    for place in (folder, *folder.parents):
        git = place / ".git"
        try:
            tree = _repository(git, place) if git.is_dir() else _linked(git, place) if git.is_file() else None
        except OSError:
            continue
        if tree is not None and all(tree.common != inner.common for inner in found):
            found.append(tree)
    return found


def claims_of(folder: Path) -> list[Repository]:
    """The repositories that git uses in a folder though they do not name it, as after a work tree was moved by hand."""
    found: list[Repository] = []
    for place in (folder, *folder.parents):
        git = place / ".git"
        try:
            directory = _named_by(git, place) if git.is_file() else git
            if directory is None or not directory.is_dir():
                continue
            common = directory / (_first_line(directory / "commondir") or ".")
            tree = _repository(common, place, linked=True)
            confirmed = _repository(git, place) if git.is_dir() else _linked(git, place)
        except OSError:
            continue
        found += [tree] if tree is not None and confirmed is None else []
    return found


def _named_by(git: Path, top: Path) -> Path | None:
    """The directory that a file `.git` names."""
    named = _first_line(git).removeprefix("gitdir:").strip()
    return Path(os.path.normpath(top / named)) if named else None


def _linked(git: Path, top: Path) -> Repository | None:
    """A linked work tree, or a submodule: `.git` is a file that names the directory.

    A work tree counts only if the repository names it, too. Otherwise any folder could claim to be one.
    """
    directory = _named_by(git, top)
    if directory is None or not directory.is_dir():
        return None
    if not (directory / "commondir").is_file():
        return _repository(directory, top)  # a submodule is a repository of its own
    back = directory / _first_line(directory / "gitdir")
    if os.path.realpath(back) != os.path.realpath(git):
        return None
    return _repository(directory / _first_line(directory / "commondir"), top, linked=True)


def _repository(common: Path, top: Path, linked: bool = False) -> Repository | None:
    """The repository of a work tree. A `.git` folder is that of the folder it is in, and of work trees it names.

    Otherwise any folder could claim another one's by a link, and be trusted in its place.
    """
    real = Path(os.path.realpath(common))
    if real.name == ".git" and not linked and os.path.realpath(top) != str(real.parent):
        return None
    status = real.stat()
    origin = _origin(_read(real / "config"))
    return Repository(str(real), str(top), origin, (status.st_dev, status.st_ino), _made(real / "description"))


def _made(description: Path) -> int:
    try:
        return description.stat().st_mtime_ns
    except OSError:
        return 0


def _origin(config: str) -> str | None:
    """The address of the remote `origin`, as git's configuration has it."""
    in_origin = False
    for line in map(str.strip, config.splitlines()):
        if line.startswith("["):
            in_origin = line.replace(" ", "").lower() == '[remote"origin"]'
        elif in_origin and line.partition("=")[0].strip().lower() == "url":
            return line.partition("=")[2].strip() or None
    return None


def _first_line(path: Path) -> str:
    return _read(path).partition("\n")[0].strip()


def _read(path: Path) -> str:
    try:
        return read_regular(path, _LIMIT).decode(errors="replace")
    except (OSError, ValueError):
        return ""
