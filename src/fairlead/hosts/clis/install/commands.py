"""The command lines by which CLIs start the launcher."""

from __future__ import annotations

import re
import shlex
from functools import lru_cache
from pathlib import Path, PurePath

from ....lifecycle import GUARDING
from ..launcher import NAME, USUAL
from ..mapping import Host, hosts
from .settings import LAUNCHER_NOT_IN_HOME, SCOPES, InstallScope, settings_of, timeouts

_TEST = ["test", "-x"]
"""How a command line begins that checks for the launcher before it starts it."""
_SHELL = ["/bin/sh", "-c"]
"""How a command line begins that starts the launcher in the home of the current user."""
_START_IN_HOME = (
    "case $(command -p id -un || echo /) in "  # for a user without an entry, it shows the number and fails
    '"" | [!A-Za-z0-9_]* | *[!A-Za-z0-9._@-]*) exit 127 ;; esac; '
    f'eval "set -- ~$(command -p id -un)/{USUAL} \\"\\$@\\""; '
    'case $* in /*) exec "$@" ;; esac; exit 127'  # a ~ that stands for no home stays: a file of the working folder
)
# The home is what the user database says. There is no name or number after any $, because some CLIs expand those.


def command_of(host: Host, event: str, launcher: Path | None, timeout: float, scope: InstallScope = "user") -> str:
    """The command line for an event of a CLI. Without a launcher, it starts the one in the current user's home."""
    return _line(host, event, launcher, f"{timeouts(host, host.events[event], timeout)[1]:g}", scope)


def launcher_argv(launcher: Path | None) -> list[str]:
    """The arguments with which `/bin/sh` starts the launcher."""
    return ["-c", _START_IN_HOME, NAME] if launcher is None else [str(launcher)]


def is_ours(command: object) -> bool:
    """Whether a command line starts the launcher of fairlead."""
    if not isinstance(command, str) or NAME not in command:
        return False
    try:
        words = shlex.split(command[1:-1] if command.startswith("(") and command.endswith(")") else command)
        if words[:2] == _SHELL and words[3:4] == [NAME]:
            return words[2] in _scripts()
        if words[:2] == _TEST:
            again = words.index(words[2], 3)
            words = words[again:] if words[again - 1].endswith(";") else []
    except (ValueError, IndexError):
        return False
    return bool(words) and PurePath(words[0]).name == NAME


@lru_cache(8)
def exact_commands(launcher: Path | None) -> re.Pattern[str]:
    """Matches command lines that start this launcher and nothing else. `is_ours` also accepts similar ones."""
    lines = {
        re.escape(_line(host, event, launcher, "SECONDS", scope))
        for host in hosts()
        for event in host.events
        for scope in SCOPES
    }
    return re.compile("|".join(sorted(lines)).replace("SECONDS", r"[0-9.]+"))


def _line(host: Host, event: str, launcher: Path | None, seconds: str, scope: InstallScope) -> str:
    ours, settings = host.events[event].event, settings_of(host)
    # A CLI runs the entries of all scopes. The daemon judges a step once, so it must know which entry brings it.
    entry = host.name if scope == "user" else f"{host.name}@{scope}"
    words = f"{seconds} {ours} {entry} {event}"
    if launcher is None:
        script = _guarding_script(settings.if_no_user_launcher) if ours in GUARDING else _START_IN_HOME
        return f"{shlex.join([*_SHELL, script, NAME])} {words}"
    start = f"{shlex.quote(str(launcher))} {words}"
    if settings.if_launcher_gone is None or ours not in GUARDING:
        return start
    # Without braces, which some login shells lack, and without $, which some CLIs expand.
    line = f"{shlex.join([*_TEST, str(launcher)])} || {settings.if_launcher_gone}; {start} || exit 2"
    return f"({line})" if settings.in_subshell else line


def _guarding_script(refuse: str | None) -> str:
    """Starts the launcher of the current user. If there is none, the command `refuse` refuses the step."""
    refuse = refuse or f'echo "{LAUNCHER_NOT_IN_HOME}" >&2'
    return f"({_START_IN_HOME}); case $? in 0) ;; 2) exit 2 ;; *) {refuse}; exit 2 ;; esac"


@lru_cache(1)
def _scripts() -> frozenset[str]:
    """All scripts that start the launcher in the home of the current user."""
    return frozenset({_START_IN_HOME, *(_guarding_script(settings_of(host).if_no_user_launcher) for host in hosts())})
