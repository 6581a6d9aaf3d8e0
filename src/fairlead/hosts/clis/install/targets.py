"""The files that `fairlead install` writes. A target only edits texts: `plan` and `apply` read and write the files."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from ....errors import FairleadError
from ..launcher import NAME
from ..mapping import Host
from .commands import command_of
from .settings import InstallScope, entry_of, settings_file, settings_of

MAX_SIZE = 16 << 20
"""Bytes that a file of settings has at most."""


class Baseline(NamedTuple):
    """What is known of a file as it was before anything was installed."""

    existed: bool = True
    made: tuple[tuple[str, ...], ...] | None = None
    """The members that the installation added. None: unknown."""


class Inspection(msgspec.Struct):
    """What a file holds."""

    events: dict[str, bool] = {}
    """Events with hooks of fairlead, and whether they are exactly as it would install them now."""
    foreign: dict[str, list[str]] = {}
    """Hooks of other programs at events that fairlead installs hooks for."""
    untrusted: list[str] = []
    """Events whose hooks the CLI skips, because its settings do not trust them."""
    problems: list[str] = []
    """Why the CLI may ignore the file."""


class SettingsTarget(Protocol):
    """One file that an installation writes."""

    @property
    def path(self) -> Path: ...
    @property
    def is_program(self) -> bool: ...
    @property
    def events(self) -> tuple[str, ...]:
        """The events that have hooks in it."""

    def add_hooks(self, text: str | None) -> tuple[str, Baseline]:
        """Return the text with fairlead's hooks, and what it was without. Raises `FairleadError` if they do not fit."""

    def remove_hooks(self, text: str, before: Baseline) -> str | None:
        """Return the text without fairlead's hooks. None: nothing is left of it."""

    def inspect(self, text: str | None) -> Inspection:
        """Return what a text holds."""


class Placement(NamedTuple):
    """Hooks of one CLI and where they go: what its targets are made from."""

    host: Host
    scope: InstallScope
    path: Path
    launcher: Path | None
    """None: the launcher in the home of the user who runs the CLI."""
    timeout: float

    @property
    def events(self) -> tuple[str, ...]:
        """The CLI's events that get a hook."""
        return tuple(event for event, mapping in self.host.events.items() if mapping.installed)

    def commands(self) -> dict[str, str]:
        """The command line of each event."""
        return {event: command_of(self.host, event, self.launcher, self.timeout, self.scope) for event in self.events}

    def entries(self) -> dict[str, Any]:
        """The JSON entry of each event."""
        commands = self.commands()
        return {event: entry_of(self.host, event, commands[event], self.timeout) for event in self.events}


def targets_of(host: Host, scope: InstallScope, root: Path, launcher: Path, timeout: float) -> list[SettingsTarget]:
    """The files that make a CLI run fairlead's hooks, for a launcher and a time-out."""
    from .json_file import json_files

    settings, path = settings_of(host), settings_file(host, scope, root)
    if not (path.is_absolute() and launcher.is_absolute()):  # the CLI starts it from any folder
        raise FairleadError(f"HOME must be an absolute path, not {os.environ.get('HOME')!r}")
    if settings.expands_dollar and "$" in str(launcher):
        raise FairleadError(f"{host.title} would expand the $ in {launcher}; set FAIRLEAD_STATE_DIR to another folder")
    try:
        str(launcher).encode()
    except UnicodeError:
        raise FairleadError(f"{str(launcher)!r} is no text; set FAIRLEAD_STATE_DIR to another folder") from None
    shared = scope == "project"  # it is for more than one user
    placement = Placement(host, scope, path, None if shared else launcher, timeout)
    return (settings.targets or json_files)(placement)


def read_text(path: Path) -> str | None:
    """Read a file of settings; None if there is none. Raises `FairleadError` if it is no text."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise FairleadError(f"{path} is a folder, and should be a file")
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_SIZE:
            raise FairleadError(f"{path} is no file that could hold settings")
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise FairleadError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line, column = content.count(b"\n", 0, error.start) + 1, error.start - content.rfind(b"\n", 0, error.start)
        raise FairleadError(f"{path}:{line}:{column}: this is not UTF-8; it is unchanged") from None


class OwnFile:
    """A file that holds nothing but what fairlead writes: a program for one event, or a module for all events."""

    def __init__(self, path: Path, events: tuple[str, ...], text: str, *, is_program: bool = False) -> None:
        self.path, self.events, self.is_program = path, events, is_program
        self._text = text

    def add_hooks(self, text: str | None) -> tuple[str, Baseline]:
        if text is not None and NAME not in text:
            raise FairleadError(
                f"{self.path} exists, and fairlead did not write it; it is unchanged: rename it, or take it away"
            )
        if text is not None and self._foreign_lines(text):
            raise FairleadError(f"{self.path} has lines that are not fairlead's; put them into a file of their own")
        return self._text, Baseline(existed=False)

    def remove_hooks(self, text: str, before: Baseline) -> str | None:
        return text if NAME not in text else self._foreign_lines(text)

    def _foreign_lines(self, text: str) -> str | None:
        """What a user has added to a program, beside fairlead's line."""
        left = [line for line in text.splitlines(keepends=True) if NAME not in line] if self.is_program else []
        return "".join(left) if any(line.strip() and not line.startswith("#!") for line in left) else None

    def inspect(self, text: str | None) -> Inspection:
        found = Inspection()
        ours = text is not None and NAME in text
        if ours:
            found.events = dict.fromkeys(self.events, text == self._text)
        elif not self.events:
            found.problems.append(f"{self.path} is missing, and the CLI ignores the hooks without it")
        for file in self._other_programs():
            if file.name != self.path.name or not ours:
                for event in self.events:
                    found.foreign.setdefault(event, []).append(str(file))
        return found

    def _other_programs(self) -> list[Path]:
        """Programs for the same event: the CLI runs them, too, whatever the ending of their names."""
        if not self.is_program or not self.path.parent.is_dir():
            return []
        return sorted(file for file in self.path.parent.iterdir() if file.stem.lower() == self.path.name.lower())
