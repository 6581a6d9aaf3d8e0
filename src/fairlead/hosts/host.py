"""An agent CLI, as a table: which of its events is which of ours, what it can carry out there, and how it is told.

Each CLI has a module of its own with one `Host` in it. What they share is here, in `effect`, and in `answering`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from ..lifecycle import EVENTS, Agent
from ..tools import Kind, Tools
from .effect import Effect

Payload = Mapping[str, Any]
"""What the CLI says of one moment: the JSON that it gives to a hook."""


EXIT_2 = "exit 2"
"""In place of JSON: the CLI is told by exit code 2, with this on stderr."""
TEXT = "text"
"""In place of JSON: the CLI is told this, as it is."""


WARNING = ("session_start", "before_input", "before_tool")
"""Our events at which what hooks warn of is shown to the user."""


class Identity(NamedTuple):
    """Whose moment it is."""

    session_id: str | None = None
    turn_id: str | None = None
    cwd: str | None = None
    agent: Agent | None = None


class Moment(msgspec.Struct, frozen=True):
    """One event of a CLI's, and what it is here."""

    event: str
    """Ours."""
    read: Callable[[Payload], dict[str, Any] | None]
    """The step's own fields. None: nothing has happened that hooks need to hear of."""
    say: Callable[[Effect, str, Payload], dict[str, Any]]
    """The JSON that makes the CLI do what is to be done, given the CLI's name of the event, and what it said of it.

    Empty is no opinion.
    """
    can: tuple[str, ...] = ()
    """The controls and fields that the CLI carries out here, and "context"."""
    wait: float | None = None
    """Seconds that the CLI gives a hook here, where that cannot be set."""
    inside: Moment | None = None
    """What it is instead where it happens to a subagent that shares its session with who started it."""
    installed: bool = True
    """Whether `fairlead install` asks for it. Not where it would cost more than it is worth, or is another's name."""


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """One agent CLI."""

    name: str
    title: str
    program: str
    """The command that starts it."""
    package: str | None = None
    """Its package on npm."""
    proven: str | None = None
    """The version against which all this was tried. None: it is from documents only, and so experimental."""
    moments: dict[str, Moment]
    identify: Callable[[Payload], Identity]
    tools: tuple[tuple[str, Kind, dict[str, Any]], ...] = ()
    """Tools that the default table does not know, or knows differently."""
    project: str | None = None
    """The variable in which the CLI names the project's folder."""
    prefix: str = ""
    """What its answers begin with, so that it finds them."""
    asks: tuple[str, str] | None = None
    """A variable and its value, where somebody sits before the CLI, so that it can put an `ask` to them itself."""
    warns: bool = False
    """Whether it shows its user a `systemMessage`, at the events of `WARNING`."""
    headless: dict[str, str] = {}
    """What is different at an event in a headless run, in a few words."""
    notes: tuple[str, ...] = ()
    """What a user should know that no table says."""

    @property
    def experimental(self) -> bool:
        return self.proven is None

    def can(self, event: str) -> frozenset[str]:
        """What it can carry out at one of our events, in whichever moment."""
        return frozenset(part for moment in self.moments.values() if moment.event == event for part in moment.can)

    def capabilities(self) -> dict[str, frozenset[str]]:
        return {event: self.can(event) for event in EVENTS if any(m.event == event for m in self.moments.values())}


class Hooked(msgspec.Struct, forbid_unknown_fields=True):
    """A moment of an agent CLI, as the thin client sends it."""

    host: str
    event: str
    payload: str
    """The CLI's own JSON, as it came."""
    cwd: str = "/"
    env: dict[str, str | None] = {}
    """The variables that hooks may see."""
    told: dict[str, str] = {}
    """What the CLI's own variables say."""
    deadline: float | None = None

    def by(self) -> Host:
        """Whose moment it is. Copilot also runs what a project has for Claude Code.

        Its variable alone does not tell: a repository can set that for Claude Code, and a Claude Code that was started
        in Copilot's shell has it, too. The payload is the CLI's own: Copilot's has the time in it, and Claude Code's
        has not.
        """
        copilot = self.host == "claude_code" and "COPILOT_CLI" in self.told and _has_key(self.payload, "timestamp")
        return host_named("copilot" if copilot else self.host)

    def root(self, host: Host) -> str:
        """The folder whose configuration holds.

        Claude Code itself says where it works, so what else its environment says of Copilot's folder does not count.
        """
        own = host_named(self.host).project if self.host != host.name else None
        return self.told.get(own or "") or self.told.get(host.project or "") or self.cwd

    def attended(self, host: Host) -> bool:
        """Whether somebody sits before the CLI, who can be asked there."""
        return host.asks is not None and self.told.get(host.asks[0]) == host.asks[1]


def _has_key(payload: str, key: str) -> bool:
    """Whether a JSON text is an object with this key. What is no JSON is refused later, with a reason."""
    try:
        return key in msgspec.json.decode(payload, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False


ALL = ("claude_code", "codex", "gemini", "qwen", "copilot", "droid", "cline", "opencode")
EXPERIMENTAL = ("cursor", "windsurf", "kiro", "goose")


def canonical_name(name: str | None) -> str | None:
    """A host's own name, for one of the names that people give it."""
    return {"claude": "claude_code", "claude-code": "claude_code"}.get(name or "", name)


def host_named(name: str) -> Host:
    """The host of this name; `claude` is Claude Code."""
    from importlib import import_module

    from ..errors import UnknownName

    name = canonical_name(name) or name
    if name not in ALL and name not in EXPERIMENTAL:
        raise UnknownName("host", name, (*ALL, *EXPERIMENTAL))
    host: Host = import_module(f"fairlead.hosts.{name}").HOST
    return host


def hosts(experimental: bool = True) -> list[Host]:
    return [host_named(name) for name in (*ALL, *(EXPERIMENTAL if experimental else ()))]


def host_tools() -> Tools:
    """What the tools of all these CLIs do, each for its own."""
    tools = Tools()
    for host in hosts():
        for pattern, kind, about in host.tools:
            tools.add(pattern, kind, host=host.name, **about)
    return tools


# --- reading ------------------------------------------------------------------------------------


def a_dict(value: Any) -> dict[str, Any]:
    """Arguments as a dict, whatever the CLI calls arguments."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = msgspec.json.decode(value)
        except msgspec.MsgspecError:
            return {"input": value}
    return value if isinstance(value, dict) else {} if value is None else {"input": value}


def a_text(value: Any) -> str | None:
    """A field that should be a text, or nothing."""
    return value if isinstance(value, str) and value else None


def content(value: Any) -> Any:
    """What a tool gave back, as a step takes it: a text, an object or a list of content blocks."""
    if value is None or isinstance(value, (str, dict)):
        return value
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return value
    return msgspec.json.encode(value).decode()


def as_text(value: Any) -> str:
    """What a hook gives in place of an output, for a CLI that takes only text."""
    if isinstance(value, list) and all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in value):
        return "\n".join(part["text"] for part in value)
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()


def seconds(milliseconds: Any) -> float | None:
    return milliseconds / 1000 if isinstance(milliseconds, (int, float)) else None


def nothing(payload: Payload) -> dict[str, Any]:
    """A step with no fields of its own."""
    return {}


def unheard(payload: Payload) -> None:
    """Something happened that is no event of ours."""


def silence(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    """Nothing that is said here would be heard."""
    return {}
