"""Where each agent CLI looks for hooks, and how it wants them written down: one table."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Literal

import msgspec

from ..errors import FairleadError
from ..lifecycle import GUARDING
from .host import Host, Moment

Scope = Literal["user", "project", "managed"]
SCOPES: tuple[Scope, ...] = ("user", "project", "managed")
TIMEOUT = 120.0
"""Seconds that a CLI is told to give a hook."""
ROOT = Path("/")
"""Below this is what belongs to the machine."""


LOST = "[fairlead] refused: its launcher is gone; run fairlead install"
LOST_IN_HOME = "[fairlead] refused: its launcher is not in your home; run fairlead install"
_TO_STDERR = f"echo '{LOST}' >&2"
_CANCEL = """printf 'HOOK_CONTROL\\t{"cancel": true, "errorMessage": "%s"}\\n' """
_TO_STDOUT = f"{_CANCEL}'{LOST}'"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How one CLI is told of hooks."""

    form: Literal["groups", "list", "files", "plugin"] = "groups"
    """An event's list of groups of hooks; its list of hooks; a program for each event; or a module for all of them."""
    user: str
    project: str
    managed: str | None = None
    on_mac: str | None = None
    """The managed file on macOS, if it is another."""
    moved: tuple[str, str] | None = None
    """A variable that says what is to be in place of the beginning of the user's file."""
    several: str | None = None
    """Files beside it that count, too."""
    beaten_by: tuple[str, ...] = ()
    """Files beside it, of which the first that is there wins, event by event."""
    own: bool = False
    """Whether the file is for us alone."""
    fresh: dict[str, Any] = {}
    """What a new file begins with."""
    pins: dict[tuple[str, ...], Any] = {}
    """What a managed file also says, so that no user can say otherwise."""

    typed: bool = True
    """Whether a hook says that it is a command."""
    plus: dict[str, Any] = {}
    """What else it says."""
    command: str = "command"
    """The key of the command line."""
    timeout: str | None = "timeout"
    """The key of the time-out."""
    unit: int = 1
    """What a second is in it."""
    limit: float | None = None
    """Seconds that a hook has at most."""
    matcher: str | None = None
    """What stands for every tool, where it must be said."""
    closed: dict[str, Any] = {}
    """What makes it refuse a step that guards when the hook itself fails."""
    lost: str | None = None
    """What a shell says, so that a step that guards is refused, where there is no launcher to start. None: the CLI
    refuses by itself then, or nobody knows what it does."""
    lost_in_home: str | None = None
    """What a shell says where whoever works on a project has no launcher. None: it says so on stderr."""

    takes: tuple[Literal["comments", "commas"], ...] = ("comments", "commas")
    """What it takes beside strict JSON. With anything else in it, it reads nothing of the file."""
    off: tuple[tuple[tuple[str, ...], Any], ...] = ()
    """What turns all hooks off."""
    muted: tuple[str, ...] | None = None
    """Where the command lines are listed of hooks that are turned off."""
    managed_only: tuple[str, ...] | None = None
    """What in the managed file turns off all hooks that are not in it, too."""
    served: str | None = None
    """Where it keeps the settings that its vendor serves to an organization, which count for more than the managed
    file. It is beside the user's file, so users can write it."""
    merged: dict[str, Any] = {}
    """What those settings must say so that hooks in the managed file run, too. Without it, the managed file counts for
    nothing as soon as anything is served."""
    expands: bool = False
    """Whether $ in a text stands for a variable."""
    says: dict[Scope, str] = {}
    """What is left to do, or to know."""


SETTINGS: dict[str, Settings] = {
    "claude_code": Settings(
        user="~/.claude/settings.json", moved=("CLAUDE_CONFIG_DIR", "~/.claude"), project=".claude/settings.json",
        managed="/etc/claude-code/managed-settings.json",
        on_mac="/Library/Application Support/ClaudeCode/managed-settings.json",
        matcher="*", closed={"onFailure": "block"}, takes=(), off=((("disableAllHooks",), True),),
        managed_only=("allowManagedHooksOnly",),
        served="~/.claude/remote-settings.json", merged={"managedSourcesBehavior": "merge"},
    ),
    "codex": Settings(
        user="~/.codex/hooks.json", moved=("CODEX_HOME", "~/.codex"), project=".codex/hooks.json",
        managed="/etc/codex/requirements.toml", lost=_TO_STDERR, takes=(),
        says={
            "user": "Codex has been told to trust these hooks, and no others: see hooks.state in its config.toml.",
            "project": "Codex runs them in a project that it trusts. Others who work on it trust them by /hooks.",
        },
    ),
    "gemini": Settings(
        user="~/.gemini/settings.json", moved=("GEMINI_CLI_HOME", "~"), project=".gemini/settings.json",
        managed="/etc/gemini-cli/settings.json", on_mac="/Library/Application Support/GeminiCli/settings.json",
        pins={("hooksConfig", "enabled"): True},
        unit=1000, takes=("comments",), off=((("hooksConfig", "enabled"), False),),
        muted=("hooksConfig", "disabled"), expands=True,
        says={"project": "Gemini CLI runs them in a folder that it trusts."},
    ),
    "qwen": Settings(
        user="~/.qwen/settings.json", moved=("QWEN_HOME", "~/.qwen"), project=".qwen/settings.json",
        managed="/etc/qwen-code/settings.json", on_mac="/Library/Application Support/QwenCode/settings.json",
        pins={("disableAllHooks",): False},
        unit=1000, lost=_TO_STDERR, takes=("comments",), off=((("disableAllHooks",), True),), expands=True,
        says={"project": "Qwen Code runs them in a folder that it trusts."},
    ),
    "copilot": Settings(
        form="list", user="~/.copilot/hooks/fairlead.json", moved=("COPILOT_HOME", "~/.copilot"),
        project=".github/hooks/fairlead.json", managed="/etc/github-copilot/policy.d/fairlead.json",
        own=True, fresh={"version": 1}, command="bash", timeout="timeoutSec", takes=(),
        off=((("disableAllHooks",), True),),
        says={"project": "Copilot CLI runs them in a folder that it trusts (headless: --trust-folder)."},
    ),
    "droid": Settings(
        user="~/.factory/settings.json", moved=("FACTORY_HOME_OVERRIDE", "~"), project=".factory/settings.json",
        managed="/etc/factory/settings.json", beaten_by=("hooks.json", "hooks/hooks.json"),
        pins={("hooks", "hooksDisabled"): False},
        lost=_TO_STDERR, takes=("comments",), off=((("hooks", "hooksDisabled"), True), (("hooksDisabled",), True)),
        served="~/.factory/cache/org-managed-settings.json",
    ),
    "cline": Settings(
        form="files", user="~/.cline/hooks", moved=("CLINE_DIR", "~/.cline"), project=".cline/hooks", limit=120.0,
        lost=_TO_STDOUT, lost_in_home=f"{_CANCEL}'{LOST_IN_HOME}'",
    ),
    "opencode": Settings(
        form="plugin", user="~/.config/opencode/plugin/fairlead.js", moved=("XDG_CONFIG_HOME", "~/.config"),
        project=".opencode/plugin/fairlead.js",
    ),
    "cursor": Settings(
        form="list", user="~/.cursor/hooks.json", project=".cursor/hooks.json", managed="/etc/cursor/hooks.json",
        on_mac="/Library/Application Support/Cursor/hooks.json",
        fresh={"version": 1}, typed=False, closed={"failClosed": True},
    ),
    "windsurf": Settings(
        form="list", user="~/.codeium/windsurf/hooks.json", project=".windsurf/hooks.json",
        managed="/etc/windsurf/hooks.json", on_mac="/Library/Application Support/Windsurf/hooks.json",
        typed=False, plus={"show_output": False}, timeout=None,
    ),
    "kiro": Settings(
        form="list", user="~/.kiro/agents/fairlead.json", project=".kiro/agents/fairlead.json", several="*.json",
        own=True, fresh={"name": "fairlead", "description": "Every step is put to fairlead.", "tools": ["*"]},
        typed=False, timeout="timeout_ms", unit=1000,
        says={
            "user": "Kiro runs the hooks of the agent in use: kiro-cli agent set-default fairlead, or --agent NAME",
            "project": "Kiro runs the hooks of the agent in use: kiro-cli chat --agent fairlead",
        },
    ),
    "goose": Settings(
        user="~/.agents/plugins/fairlead/hooks/hooks.json", project=".agents/plugins/fairlead/hooks/hooks.json",
        own=True, closed={"on_failure": "block"},
    ),
}  # fmt: skip


def settings_file(host: Host, scope: Scope, root: Path) -> Path:
    """The file of a CLI's that is meant by a scope, or the folder, if there is one for each event."""
    settings = SETTINGS[host.name]
    if scope == "project":
        return root / settings.project
    if scope == "managed":
        managed = settings.on_mac if sys.platform == "darwin" and settings.on_mac else settings.managed
        if managed is None:
            raise FairleadError(f"{host.title} has no settings that hold for a whole machine; use --scope user")
        return ROOT / managed.lstrip("/")
    return _moved(settings, settings.user)


def served_file(host: Host) -> Path | None:
    """Where a CLI keeps the settings that its vendor serves."""
    settings = SETTINGS[host.name]
    return None if settings.served is None else _moved(settings, settings.served)


def has_scope(host: Host, scope: Scope) -> bool:
    return scope != "managed" or SETTINGS[host.name].managed is not None


def _moved(settings: Settings, file: str) -> Path:
    if settings.moved is not None:
        variable, beginning = settings.moved
        named = os.environ.get(variable)
        if named:
            rest = file.removeprefix(beginning).lstrip("/")
            return Path(named).expanduser().absolute() / rest
    return Path.home() / file.removeprefix("~/")


def times(host: Host, moment: Moment, timeout: float) -> tuple[float, float]:
    """Seconds that the CLI gives a hook at a moment, and seconds within which we have answered."""
    theirs = min(limit for limit in (timeout, moment.wait, SETTINGS[host.name].limit) if limit is not None)
    return theirs, round(max(theirs - 10.0, theirs * 0.8), 3)


def entry_of(host: Host, event: str, command: str, timeout: float) -> dict[str, Any]:
    """What is written down for an event."""
    settings, moment = SETTINGS[host.name], host.moments[event]
    handler: dict[str, Any] = {"type": "command"} if settings.typed else {}
    handler |= {settings.command: command, **settings.plus}
    if settings.timeout is not None:
        handler[settings.timeout] = max(int(times(host, moment, timeout)[0] * settings.unit), 1)
    if moment.event in GUARDING:
        handler |= settings.closed
    if settings.form == "list":
        return handler
    named = settings.matcher is not None and _about_a_tool(moment)
    return {**({"matcher": settings.matcher} if named else {}), "hooks": [handler]}


def _about_a_tool(moment: Moment) -> bool:
    from ..lifecycle import EVENTS, ToolStep

    return issubclass(EVENTS[moment.event].step, ToolStep)
