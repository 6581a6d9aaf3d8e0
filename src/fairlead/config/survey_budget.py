"""A budget for looking at a project's files, so that every survey ends."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from fnmatch import translate
from functools import partial
from pathlib import Path

from ..errors import FairleadError
from ..packs.guarded_files import matches

LOOKS = 100_000
"""Files that are looked at and entries that are listed for one fairlead.toml: about a second at most."""
LONGEST_PATH = 4096
"""Characters of a path, or of a pattern."""
GLOB = re.compile(r"[*?\[]")
_CLASS = re.compile(r"\[[:.=]")


class Untrustworthy(FairleadError):
    """The hooks of a project cannot be trusted as they are."""


class SurveyBudget:
    """How many files a survey may still look at. It keeps listings, so no folder is listed twice."""

    def __init__(self, looks: int = LOOKS) -> None:
        self.left = looks
        self._listings: dict[str, list[str]] = {}

    def spend(self, looks: int = 1) -> None:
        """Raise `Untrustworthy` if this is more than is left."""
        self.left -= looks
        if self.left < 0:
            raise Untrustworthy("looking for the files that its commands name takes too long; name fewer, or simpler")

    def kind(self, path: str) -> str:
        """ "file", "folder", or "" for anything else, links followed."""
        self.spend(1 + len(path) // LONGEST_PATH)
        try:
            mode = os.stat(path).st_mode
        except (OSError, ValueError):
            return ""
        return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else ""

    def listing(self, folder: str) -> list[str]:
        """The names in a folder; none if it cannot be listed."""
        self.spend()
        if folder not in self._listings:
            names = self._listings[folder] = []
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        self.spend()
                        names.append(entry.name)
            except (OSError, ValueError):
                return names
        return self._listings[folder]


def glob_files(word: str, root: Path, budget: SurveyBudget | None = None) -> list[str]:
    """The files of the project that a pattern in a word stands for, as a shell would expand it."""
    if not GLOB.search(word):
        return []
    budget = budget or SurveyBudget()
    patterns = {part for part in (word, *re.split(r"[\s=,:;@]+", word)) if GLOB.search(part) and "\0" not in part}
    budget.spend(sum(len(pattern) for pattern in patterns) // 16)  # to compile them
    found: set[str] = set()
    for pattern in patterns:
        for path in _expand(pattern, root, budget):
            if path.startswith(f"{root}{os.sep}".replace("//", "/")) and budget.kind(path) == "file":
                found.add(os.path.relpath(path, root))
    return sorted(found)


def _expand(pattern: str, root: Path, budget: SurveyBudget) -> Iterable[str]:
    """The paths that a pattern stands for. `x/..` is removed first, so that no path is found twice."""
    if len(pattern) > LONGEST_PATH:
        raise Untrustworthy(f"a pattern is longer than {LONGEST_PATH} characters")
    path, places = os.path.normpath(root / pattern), [os.sep]
    if path.startswith(f"{root}{os.sep}"):  # whose own name is no pattern, whatever it looks like
        path, places = path[len(str(root)) :], [str(root)]
    for part in path.split(os.sep)[1:]:
        if GLOB.search(part):
            places = [path for place in places for path in _matches(place, part, budget)]
        else:
            places = [os.path.join(place, part) for place in places]
            budget.spend(len(places) // 16)
    return places


def _matches(folder: str, part: str, budget: SurveyBudget) -> Iterator[str]:
    if _CLASS.search(part):
        fits: Callable[[str], object] = partial(matches, part)
    else:
        fits = re.compile(translate(part.replace("[^", "[!"))).match  # which is much faster
    return (os.path.join(folder, name) for name in budget.listing(folder) if fits(name))
