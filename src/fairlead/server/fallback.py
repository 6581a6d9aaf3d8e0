"""What holds in a folder while nobody can be asked: `fallback.json`, open or closed for each event.

The launcher reads it with nothing but a shell, so there is one line per folder. A folder that is not in it, and a
file that cannot be read, mean closed.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path

import msgspec

from ..lifecycle import EVENTS
from ..logs import logger
from ..registry import Hooks
from ..switches import read_setting

LIMIT = 1000
"""Folders that are remembered."""

Policies = dict[str, str]


class Fallback:
    """The file, and what it says."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folders: OrderedDict[str, Policies] = OrderedDict(_read(path))
        self._told: dict[str, tuple[object, bool]] = {}

    def tell(self, folder: str, hooks: Hooks) -> None:
        """Write down what holds in a folder, if its hooks are others than they were."""
        now = (hooks.table, hooks.enforcing)
        if self._told.get(folder) == now:
            return
        self._told[folder] = now
        policies = policies_of(hooks, self._pausing)
        if self._folders.get(folder) == policies:
            return
        self._folders[folder] = policies
        while len(self._folders) > LIMIT:
            self._told.pop(self._folders.popitem(last=False)[0], None)
        self._write()

    def opens(self, folder: str, event: str) -> bool:
        """Whether a launcher in a folder that gets no answer lets a step pass. It looks up the folders as this does."""
        place = Path(os.path.realpath(folder))
        for known in (place, *place.parents):
            if (policies := self._folders.get(str(known))) is not None:
                return policies.get(event) == "open"
            if (known / "fairlead.toml").exists():
                return False
        return False

    def _write(self) -> None:
        lines = ",\n".join(f"{_text(folder)}: {_line(policies)}" for folder, policies in self._folders.items())
        new = self._path.with_suffix(".new")
        try:
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            with os.fdopen(descriptor, "w") as file:
                file.write(f"{{\n{lines}\n}}\n")
            os.replace(new, self._path)
        except OSError as error:
            logger.error("%s cannot be written (%s): without a daemon, steps that guard are refused", self._path, error)
            self._told.clear()
            self._folders = OrderedDict(_read(self._path))

    @property
    def _pausing(self) -> bool:
        """Whether hooks are only watched for a while. When that is over, nobody may be there to write it down."""
        return read_setting(self._path.parent).until is not None


def policies_of(hooks: Hooks, pausing: bool = False) -> Policies:
    """Per event, whether a step passes that nobody could be asked about: only if every hook there fails open.

    The guard of fairlead's own files is not asked: it would keep every agent from doing anything. With a journal that
    fails closed, nothing passes: it would not be written down.
    """
    if (hooks.enforcing or pausing) and getattr(hooks.journal, "on_failure", None) == "closed":
        return dict.fromkeys(EVENTS, "closed")
    held = [
        hook
        for hook in hooks
        if hook.enforce and hook.phase != "observe" and hook.on_failure != "open" and hook.layer != "builtin"
        and (hooks.enforcing or pausing or hook.locked)
    ]  # fmt: skip
    return {event: "closed" if any(event in hook.events for hook in held) else "open" for event in EVENTS}


def _read(path: Path) -> dict[str, Policies]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Policies])
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError):
        return {}


def _line(policies: Policies) -> str:
    return "{" + ", ".join(f'"{event}": "{policy}"' for event, policy in policies.items()) + "}"


def _text(folder: str) -> str:
    return msgspec.json.encode(folder.encode("utf-8", "replace").decode()).decode()
