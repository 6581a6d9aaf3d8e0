"""Finds the files that hooks name anywhere in their entries. The guard protects these files.

Of folders, only those count that a gate of the system's or the user's file names, and that no agent works in: any other
folder that is given to a hook is most often what the hook looks at.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from shutil import which
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any

from ..errors import FairleadError
from ..packs.guarded_files import SYSTEM_FOLDERS
from ..paths import fixed_folders
from ..runners.environment import leads_into
from .programs import can_write
from .survey import SHEBANGS, path_spans, shebang_of

if TYPE_CHECKING:
    from .approvals import ApprovalSettings
    from .hook_entry import ConfiguredHook

_SHELL_WORD = re.compile(r"[^\s;&|<>()`\"'{}]+")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)[^}]*\})")
_FOLDERS = 8
"""Folders that a shell line may change to, and its words be relative to."""


def files_of(hooks: Iterable[ConfiguredHook]) -> Iterator[Path]:
    """Every file that these hooks name, where they name it: programs, scripts, their arguments and variables.

    Programs of the system that this user cannot change are left out.
    """
    for configured in hooks:
        for path in _files_of(configured):
            if not path.startswith(SYSTEM_FOLDERS) or _can_write(path):
                yield Path(path)


def notifying_files(approvals: ApprovalSettings) -> Iterator[Path]:
    """The programs that notify a person, and the files that their commands name, but for the system's own."""
    for target in approvals.notify:
        for word in target.argv:
            path = os.path.join(target.cwd, word)
            if os.path.isfile(path) and (not path.startswith(SYSTEM_FOLDERS) or _can_write(path)):
                yield Path(path)


def folders_of(hooks: Iterable[ConfiguredHook], root: str | None) -> Iterator[Path]:
    """The folders that gates of the system's and the user's file name, but for those that agents work in."""
    shared = [os.path.realpath(path) for path in (os.path.expanduser("~"), gettempdir(), root) if path is not None]
    for configured in hooks:
        if configured.hook.layer == "project" or configured.hook.phase == "observe":
            continue
        base = str(Path(configured.file).parent)
        for word in _words_of(configured) if configured.form in ("command", "worker") else ():
            for start, end in path_spans(word, partial(_is_folder, base)):
                folder = os.path.realpath(os.path.join(base, word[start:end]))
                holds = any(os.path.commonpath([folder, path]) == folder for path in shared)
                if not holds and not (root is not None and leads_into(folder, root)) and _can_write(folder):
                    yield Path(os.path.normpath(os.path.join(base, word[start:end])))


def _files_of(configured: ConfiguredHook) -> Iterator[str]:
    entry, folder = configured.entry, str(Path(configured.file).parent)
    folders = fixed_folders()
    env = {**os.environ, **(folders.env if folders is not None else {}), **_variables(entry)}
    for word in _words_of(configured):
        for path in (*_paths(word, [folder]), *_paths_of_line(word, folder, env)):
            yield path
            yield from _interpreters(path, folder, env)
    for value in _variables(entry).values():
        yield from _paths(value, [folder])


def _words_of(configured: ConfiguredHook) -> list[str]:
    """The words that start a hook, as the entry has them, and the program that was found for the first."""
    entry, runs = configured.entry, configured.entry[configured.form]
    if configured.form == "python":
        module = runs.rpartition(":")[0]
        beside = module.replace(".", "/")
        return [module, f"{beside}.py", f"{beside}/__init__.py", str(entry.get("interpreter", ""))]
    if configured.form == "shell":
        return [runs]
    runner: Any = configured.hook.fn
    while not hasattr(runner, "argv") and hasattr(runner, "fn"):
        runner = runner.fn
    return [*runs, *getattr(runner, "argv", [])[:1]] if isinstance(runs, list) else []


def _variables(entry: Mapping[str, Any]) -> dict[str, str]:
    env = entry.get("env")
    return {name: value for name, value in env.items() if isinstance(value, str)} if isinstance(env, dict) else {}


def _paths(word: str, folders: Iterable[str]) -> Iterator[str]:
    """The files that a word names, also in a part of it: `--rules=rules.txt`."""
    for folder in folders:
        for start, end in path_spans(word, partial(_is_file, folder)):
            yield os.path.normpath(os.path.join(folder, word[start:end]))


def _paths_of_line(line: str, folder: str, env: Mapping[str, str]) -> Iterator[str]:
    """The files that a shell line names. Each folder in it may be one that it changes to."""
    if not _SHELL_WORD.fullmatch(line) or "$" in line or line[:1] == "~":
        line = _VARIABLE.sub(lambda found: env.get(found[1] or found[2], found[0]), line)
        words = [os.path.expanduser(word) for word in _SHELL_WORD.findall(line)]
        folders = {folder: None}
        for word in words:
            leads_into = next(reversed(folders))  # `cd a && cd b`
            for base in (folder, leads_into):
                if len(folders) < _FOLDERS and "\0" not in word and os.path.isdir(os.path.join(base, word)):
                    folders[os.path.join(base, word)] = None
        for word in words:
            yield from _paths(word, folders)


def _interpreters(path: str, folder: str, env: Mapping[str, str]) -> Iterator[str]:
    """The interpreters of a script, by its first line and by theirs, and the files they are given."""
    for _ in range(SHEBANGS):
        try:
            with open(path, "rb") as file:
                words = shebang_of(file.read(512))
        except (OSError, FairleadError):
            return
        if not words:
            return
        for word in words[1:]:
            yield from _paths(word, [folder])
        found = os.path.join(folder, words[0]) if os.sep in words[0] else which(words[0], path=env.get("PATH"))
        if found is None or not _is_file(folder, found):
            return
        yield (path := os.path.normpath(found))


def _is_file(folder: str, path: str) -> bool:
    return "\0" not in path and os.path.isfile(os.path.join(folder, path))


def _is_folder(base: str, path: str) -> bool:
    return "\0" not in path and os.path.isdir(os.path.join(base, path))


def _can_write(path: str) -> bool:
    try:
        return can_write(path)
    except OSError:
        return True
