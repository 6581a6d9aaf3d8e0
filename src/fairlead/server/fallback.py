"""What launchers do without the daemon: each folder's failure policy, in `fallback.json`.

A launcher refuses steps in a folder that is not in the file, or if it cannot read the file.
"""

from __future__ import annotations

import os
from pathlib import Path

from ..config.fallback_file import LIMIT, Policies, changing_folders, read_folders
from ..enforcement import read_setting
from ..lifecycle import EVENTS
from ..redaction.logs import logger
from ..registry import Hooks

_NOT_COUNTED = frozenset({"fairlead.guard", "fairlead.untrusted"})
"""Hooks of fairlead that do not count here: the guard would stop every agent, and the notice denies nothing."""


class Fallback:
    """Writes the file, as the daemon loads the hooks of folders."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written: dict[str, tuple[object, bool]] = {}

    def write(self, folder: str, hooks: Hooks) -> None:
        """Write the failure policy of a folder, if its hooks have changed."""
        now = (hooks.table, hooks.enforcing)
        if self._written.get(folder) == now:
            return
        policies = policies_of(hooks, self._is_paused)
        try:
            with changing_folders(self._path) as folders:
                if folders.get(folder) != policies:
                    folders.pop(folder, None)  # the newest comes last
                    folders[folder] = policies
        except OSError as error:
            logger.error(
                "%s cannot be written (%s): without a daemon, launchers refuse tool calls and prompts",
                self._path,
                error,
            )
        else:
            if len(self._written) >= LIMIT:
                self._written.clear()
            self._written[folder] = now

    def fails_open(self, folder: str, event: str) -> bool:
        """Whether a launcher in this folder lets a step pass without an answer.

        Launchers use the same look-up.
        """
        folders, place = read_folders(self._path), Path(os.path.realpath(folder))
        for known in (place, *place.parents):
            if (policies := folders.get(str(known))) is not None:
                return policies.get(event) == "open"
            if (known / "fairlead.toml").exists():
                return False
        return False

    @property
    def _is_paused(self) -> bool:
        """Whether enforcement is paused.

        A pause may end while no daemon is there to write that to the file.
        """
        return read_setting(self._path.parent).until is not None


def policies_of(hooks: Hooks, paused: bool = False) -> Policies:
    """Per event, whether a step passes without the daemon: only if all its hooks fail open.

    With a journal that fails closed, no step passes, because it could not be recorded.
    """
    if (hooks.enforcing or paused) and getattr(hooks.journal, "on_failure", None) == "closed":
        return dict.fromkeys(EVENTS, "closed")
    closed = [
        hook
        for hook in hooks
        if hook.enforce and hook.phase != "observe" and hook.on_failure != "open" and hook.name not in _NOT_COUNTED
        and (hooks.enforcing or paused or hook.locked)
    ]  # fmt: skip
    return {event: "closed" if any(event in hook.events for hook in closed) else "open" for event in EVENTS}
