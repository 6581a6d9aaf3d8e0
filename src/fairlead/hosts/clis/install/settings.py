"""Describes the settings of a CLI for `fairlead install`. Each CLI has its own `settings` module."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ....errors import FairleadError
from ....lifecycle import EVENTS, GUARDING, ToolStep
from ..mapping import EventMapping, Host
from ..packages import load_part

if TYPE_CHECKING:
    from .targets import Placement, SettingsTarget

InstallScope = Literal["user", "project", "managed"]
SCOPES: tuple[InstallScope, ...] = ("user", "project", "managed")
TIMEOUT = 120.0
"""Seconds that the settings allow a hook, unless the user asks for another time."""
ROOT = Path("/")
"""The folder below which the managed files are."""

LAUNCHER_GONE = "[fairlead] refused: its launcher is gone; run fairlead install"
LAUNCHER_NOT_IN_HOME = "[fairlead] refused: its launcher is not in your home; run fairlead install"
REFUSE_ON_STDERR = f"echo '{LAUNCHER_GONE}' >&2"
"""Refuses in a CLI that takes exit code 2. Programs that run the entries of another CLI take it, too."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Where one CLI reads hooks from, how it wants them written, and what turns them off."""

    # --- the files ------------------------------------------------------------------------------

    form: Literal["groups", "list", "files", "plugin"] = "groups"
    """Each event has a list of groups of hooks; or a list of hooks; or a program; or one module serves all events."""
    user: str
    project: str
    managed: str | None = None
    """The file that holds for every user of the machine."""
    managed_on_mac: str | None = None
    """The managed file on macOS, if it is another."""
    moved_by: tuple[str, str] | None = None
    """A variable that moves the user's files, and the beginning of their paths that it replaces."""
    overridden_by: tuple[str, ...] = ()
    """Files beside the file whose top level holds events. The first that exists wins, event by event."""
    is_own: bool = False
    """Whether the file holds nothing but fairlead's entries."""
    template: dict[str, Any] = {}
    """The content that a new file starts with."""
    pins: dict[tuple[str, ...], Any] = {}
    """Values that a managed file also gets, so that no user can set others."""
    targets: Callable[[Placement], list[SettingsTarget]] | None = None
    """Makes the files to write, for a CLI that needs more than entries in a JSON file."""

    # --- an entry -------------------------------------------------------------------------------

    has_type: bool = True
    """Whether an entry has `"type": "command"`."""
    extra: dict[str, Any] = {}
    """Other fields of each entry."""
    command_key: str = "command"
    timeout_key: str | None = "timeout"
    timeout_unit: int = 1
    """What one second is in the time-out field."""
    max_timeout: float | None = None
    """Seconds that the CLI allows a hook at most."""
    matcher: str | None = None
    """The matcher for every tool, if the CLI requires one."""
    fail_closed: dict[str, Any] = {}
    """Fields with which the CLI refuses a guarding step when the hook itself fails."""
    if_launcher_gone: str | None = None
    """A shell command that refuses a guarding step if the launcher is gone. None: the CLI itself refuses, or what it
    does is unknown."""
    in_subshell: bool = False
    """Whether the command line must be one command, because a program that runs it adds a here-document to it."""
    if_no_user_launcher: str | None = None
    """The same for a project's hooks, if the user has no launcher. None: a message on stderr."""
    expands_dollar: bool = False
    """Whether the CLI expands variables in the texts of its settings."""

    # --- what keeps hooks from running ----------------------------------------------------------

    allows: tuple[Literal["comments", "commas"], ...] = ("comments", "commas")
    """What the CLI accepts beyond strict JSON. It ignores a file that has anything else."""
    off_switches: tuple[tuple[tuple[str, ...], Any], ...] = ()
    """Keys, each with the value that turns all hooks off."""
    off_variables: tuple[str, ...] = ()
    """Variables that turn all hooks off."""
    disabled_key: tuple[str, ...] | None = None
    """The key that lists the command lines of hooks that are off."""
    managed_only: tuple[str, ...] | None = None
    """The key of the managed file that turns off all hooks of other files."""
    needs_trust: bool = False
    """Whether the CLI skips hooks that its settings do not trust. Managed hooks need no trust."""
    project_files: tuple[str, ...] = ()
    """Other files of a project that can hold hooks, or turn them off."""
    env_files: tuple[str, ...] = ()
    """Files of a project from which the CLI takes variables."""
    served: str | None = None
    """The user's file in which the CLI keeps settings that its vendor serves. They beat the managed file."""
    merge_setting: dict[str, Any] = {}
    """What served settings must have so that managed hooks run, too. Without it, they hide the whole managed file."""
    examine: Callable[[Path, set[Path]], Iterator[tuple[Literal["warning", "problem"], str, str]]] | None = None
    """What else the doctor checks in a project, beside the files it has seen: a level, a finding and what to do."""
    copy_more: Callable[[dict[Path, Path], Path, Path, Path], None] | None = None
    """What else the doctor copies for a trial run: from files to copies, for a project, to a home and a project."""

    notes: dict[InstallScope, str] = {}
    """What the user must do or know after an installation."""


def settings_of(host: Host | str) -> Settings:
    """The `SETTINGS` of a CLI's package."""
    settings: Settings = load_part(host if isinstance(host, str) else host.name, "settings").SETTINGS
    return settings


def settings_file(host: Host, scope: InstallScope, root: Path) -> Path:
    """The CLI's settings file in a scope, or the folder if it has a file for each event."""
    settings = settings_of(host)
    if scope == "project":
        return root / settings.project
    if scope == "managed":
        on_mac = settings.managed_on_mac if sys.platform == "darwin" else None
        managed = on_mac or settings.managed
        if managed is None:
            raise FairleadError(f"{host.title} has no settings that hold for a whole machine; use --scope user")
        return ROOT / managed.lstrip("/")
    return _user_path(settings, settings.user)


def served_file(host: Host) -> Path | None:
    """The file in which a CLI keeps the settings that its vendor serves."""
    settings = settings_of(host)
    return None if settings.served is None else _user_path(settings, settings.served)


def has_scope(host: Host, scope: InstallScope) -> bool:
    """Whether a CLI has settings of this scope."""
    return scope != "managed" or settings_of(host).managed is not None


def settings_files(host: Host, root: Path) -> list[Path]:
    """The CLI's settings files of all scopes."""
    return list(dict.fromkeys(settings_file(host, scope, root) for scope in SCOPES if has_scope(host, scope)))


def _user_path(settings: Settings, file: str) -> Path:
    variable, prefix = settings.moved_by or ("", "")
    folder = os.environ.get(variable) if variable else None
    if folder:
        return Path(folder).expanduser().absolute() / file.removeprefix(prefix).lstrip("/")
    return Path.home() / file.removeprefix("~/")


def timeouts(host: Host, mapping: EventMapping, timeout: float) -> tuple[float, float]:
    """Seconds that the CLI allows a hook at an event, and the fewer seconds within which fairlead answers."""
    limits = (timeout, mapping.fixed_timeout, settings_of(host).max_timeout)
    allowed = min(limit for limit in limits if limit is not None)
    return allowed, round(max(allowed - 10.0, allowed * 0.8), 3)


def entry_of(host: Host, event: str, command: str, timeout: float) -> dict[str, Any]:
    """The JSON entry that makes the CLI run a command at an event."""
    settings, mapping = settings_of(host), host.events[event]
    hook: dict[str, Any] = {"type": "command"} if settings.has_type else {}
    hook |= {settings.command_key: command, **settings.extra}
    if settings.timeout_key is not None:
        hook[settings.timeout_key] = max(int(timeouts(host, mapping, timeout)[0] * settings.timeout_unit), 1)
    if mapping.event in GUARDING:
        hook |= settings.fail_closed
    if settings.form == "list":
        return hook
    has_matcher = settings.matcher is not None and issubclass(EVENTS[mapping.event].step, ToolStep)
    return {**({"matcher": settings.matcher} if has_matcher else {}), "hooks": [hook]}
