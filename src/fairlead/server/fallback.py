"""What holds in a folder while the daemon cannot be asked: it writes that down in `fallback.json`.

A folder that is not in the file, and a file that cannot be read, mean closed.
"""

from __future__ import annotations

import os
from pathlib import Path

from ..fallback_file import LIMIT, Policies, changing_folders, read_folders
from ..lifecycle import EVENTS
from ..logs import logger
from ..registry import Hooks
from ..switches import read_setting

_NOT_ASKED = frozenset({"fairlead.guard", "fairlead.untrusted"})
"""Hooks of fairlead's own that count for nothing here: the guard would keep every agent from doing anything, and the
notice denies nothing."""


class Fallback:
    """Writes the file, as this daemon comes to know folders."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._told: dict[str, tuple[object, bool]] = {}

    def tell(self, folder: str, hooks: Hooks) -> None:
        """Write down what holds in a folder, if its hooks are others than they were."""
        now = (hooks.table, hooks.enforcing)
        if self._told.get(folder) == now:
            return
        policies = policies_of(hooks, self._pausing)
        try:
            with changing_folders(self._path) as folders:
                if folders.get(folder) != policies:
                    folders.pop(folder, None)  # the newest is the last
                    folders[folder] = policies
        except OSError as error:
            logger.error("%s cannot be written (%s): without a daemon, steps that guard are refused", self._path, error)
        else:
            if len(self._told) >= LIMIT:
                self._told.clear()
            self._told[folder] = now

    def opens(self, folder: str, event: str) -> bool:
        """Whether a launcher in a folder that gets no answer lets a step pass. It looks up the folders as this does."""
        folders, place = read_folders(self._path), Path(os.path.realpath(folder))
        for known in (place, *place.parents):
            if (policies := folders.get(str(known))) is not None:
                return policies.get(event) == "open"
            if (known / "fairlead.toml").exists():
                return False
        return False

    @property
    def _pausing(self) -> bool:
        """Whether hooks are only watched for a while. When that is over, nobody may be there to write it down."""
        return read_setting(self._path.parent).until is not None


def policies_of(hooks: Hooks, pausing: bool = False) -> Policies:
    """Per event, whether a step passes that nobody could be asked about: only if every hook there fails open.

    With a journal that fails closed, nothing passes: it would not be written down.
    """
    if (hooks.enforcing or pausing) and getattr(hooks.journal, "on_failure", None) == "closed":
        return dict.fromkeys(EVENTS, "closed")
    held = [
        hook
        for hook in hooks
        if hook.enforce and hook.phase != "observe" and hook.on_failure != "open" and hook.name not in _NOT_ASKED
        and (hooks.enforcing or pausing or hook.locked)
    ]  # fmt: skip
    return {event: "closed" if any(event in hook.events for hook in held) else "open" for event in EVENTS}
