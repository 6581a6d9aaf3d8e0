"""The file `fallback.json`: for each folder, what passes at each event while the daemon cannot be asked.

The launcher reads it with nothing but a shell, so there is one line per folder. The daemon writes what holds in a
folder when it is asked there. `fairlead trust` closes a folder until then.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ..lifecycle import EVENTS
from ..paths import atomic_write

NAME = "fallback.json"
LIMIT = 1000
"""Folders that are remembered."""

Policies = dict[str, str]
"""By event, "open" or "closed"."""


def close_folder(state: Path, folder: str) -> None:
    """Close a folder that the daemon has not answered for, and all below it."""
    with changing_folders(state / NAME) as folders:
        for below in [known for known in folders if known.startswith(f"{folder}/")]:
            del folders[below]
        folders[folder] = dict.fromkeys(EVENTS, "closed")


@contextmanager
def changing_folders(path: Path) -> Iterator[dict[str, Policies]]:
    """What the file says of each folder, to be changed, while no other process changes it."""
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folders = read_folders(path)
        before = dict(folders)
        yield folders
        while len(folders) > LIMIT:
            del folders[_spare(folders)]
        if folders != before:
            _write(path, folders)


def _spare(folders: dict[str, Policies]) -> str:
    """The oldest folder that is open: a closed one that is left out has what holds around it."""
    is_open = (folder for folder, policies in folders.items() if "open" in policies.values())
    return next(is_open, next(iter(folders)))


def read_folders(path: Path) -> dict[str, Policies]:
    """What the file says; nothing if it cannot be read, which means closed."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Policies])
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError):
        return {}


def _write(path: Path, folders: dict[str, Policies]) -> None:
    lines = ",\n".join(f"{_text(folder)}: {_line(policies)}" for folder, policies in folders.items())
    atomic_write(path, f"{{\n{lines}\n}}\n".encode(), 0o644)


def _line(policies: Policies) -> str:
    return "{" + ", ".join(f'"{event}": "{policy}"' for event, policy in policies.items()) + "}"


def _text(folder: str) -> str:
    return msgspec.json.encode(folder.encode("utf-8", "replace").decode()).decode()
