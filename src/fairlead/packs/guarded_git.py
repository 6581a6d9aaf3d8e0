"""What git takes away although it does not track it: `git stash -u`, `git clean -f`, `git add -A && git stash`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ..shell import Command, Line
from .effort import join
from .protected_paths import exists

_CLEANS_WITHOUT_FORCE = re.compile(r"(?i)clean\.requireforce")


def untracked_taken(command: Command, line: Line, kept: Mapping[str, str], home: str) -> tuple[str, str] | None:
    """A protected file that git takes away and does not track, and whose it is."""
    added = [one for one in line.commands if one.runs("git add") or one.runs("git stage")]
    stashes = command.runs("git stash") and command.operands[1:2] in ([], ["push"], ["save"], ["create"])
    takes_all = stashes and command.has("--include-untracked", "--all")
    takes_added = bool(added) and (stashes or _overwrites(command))
    forced = command.has("--force") or _CLEANS_WITHOUT_FORCE.search(line.text) is not None
    cleans = command.runs("git clean") and forced and not command.has("--dry-run")
    root = Path(command.folder or "/")
    while (takes_all or takes_added or cleans) and root != root.parent and not exists(f"{root}/.git"):
        root = root.parent
    if not (takes_all or takes_added or cleans) or root == root.parent:
        return None
    tracked = _tracked(root)
    paths = [join(command.folder, word, home) for word in command.operands[1:]] if cleans else []
    if any(word[:1] == ":" for word in command.operands[1:]):  # `:/`, `:(top)x`: of all the repository
        paths = []
    for place, whose in kept.items():
        name = place.removesuffix("/**")
        if paths and not any(f"{root}/{name}".startswith(path) for path in paths):
            continue
        if takes_added and not (takes_all or cleans or any(_adds(one, f"{root}/{name}", home) for one in added)):
            continue
        if name[0] != "/" and "*" not in name and exists(f"{root}/{name}") and name.encode() not in tracked:
            return name, whose
    return None


def _overwrites(command: Command) -> bool:
    """Does git put the files of the work tree back, so that those that were only added are gone?"""
    if command.runs("git reset"):
        return command.has("--hard", "--merge")
    if command.runs("git checkout") or command.runs("git switch"):
        return command.has("--force", "--discard-changes")
    return command.runs("git rm") and command.has("--force") and not command.has("--cached")


def _adds(command: Command, path: str, home: str) -> bool:
    if command.has("--all") or not {":/", "*"}.isdisjoint(command.operands):
        return True
    named = [join(command.folder, word, home).rstrip("/") for word in command.operands[1:]]
    return any(path == one or path.startswith(f"{one}/") for one in named)


def _tracked(root: Path) -> bytes:
    """The index of a repository, in which the names of tracked files stand."""
    try:
        with open(root / ".git" / "index", "rb") as file:
            return file.read(64 << 20)
    except OSError:
        return b""
