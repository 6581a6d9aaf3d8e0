"""Git repositories, read without running git: which work tree a folder is in, and which repository that is.

All work trees of one repository share its common directory, and so the trust in its hooks.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

_URL = re.compile(r'^\s*\[remote "origin"\][^\[]*?^\s*url\s*=\s*(.+?)\s*$', re.MULTILINE)
_LIMIT = 1 << 16
"""Bytes that are read of any file of git's."""


class Repository(msgspec.Struct, frozen=True, omit_defaults=True):
    """One work tree of a git repository."""

    common: str
    """The directory that all its work trees share, as a rule `.git` of the first one."""
    top: str
    """The top folder of this work tree."""
    origin: str | None = None
    inode: int = 0

    def is_other(self, now: Repository) -> bool:
        """Whether the repository that is there now is not this one, which was there before."""
        if self.origin is not None or now.origin is not None:
            return self.origin != now.origin
        return self.inode != now.inode


def repositories_of(folder: Path) -> list[Repository]:
    """Every work tree that a folder is in, the innermost first: `git init` in a subfolder hides none of them."""
    found = []
    for place in (folder, *folder.parents):
        git = place / ".git"
        try:
            if git.is_dir():
                found.append(_repository(git, place))
            elif git.is_file() and (linked := _linked(git, place)) is not None:
                found.append(linked)
        except OSError:
            continue
    return found


def _linked(git: Path, top: Path) -> Repository | None:
    """A linked work tree, or a submodule: `.git` is a file that names the directory.

    A work tree counts only if the repository names it, too. Otherwise any folder could claim to be one.
    """
    named = _first_line(git).removeprefix("gitdir:").strip()
    directory = Path(os.path.normpath(top / named))
    if not named or not directory.is_dir():
        return None
    if not (directory / "commondir").is_file():
        return _repository(directory, top)  # a submodule is a repository of its own
    back = directory / _first_line(directory / "gitdir")
    if os.path.realpath(back) != os.path.realpath(git):
        return None
    return _repository(directory / _first_line(directory / "commondir"), top)


def _repository(common: Path, top: Path) -> Repository:
    real = Path(os.path.realpath(common))
    found = _URL.search(_read(real / "config"))
    return Repository(str(real), str(top), found[1] if found else None, real.stat().st_ino)


def _first_line(path: Path) -> str:
    return _read(path).partition("\n")[0].strip()


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_LIMIT).decode(errors="replace")
    except OSError:
        return ""
