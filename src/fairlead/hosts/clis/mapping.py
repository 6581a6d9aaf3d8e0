"""What fairlead knows about an agent CLI: its events, what each of them can carry out, and how to answer it.

Each CLI has a folder of its own, whose `mapping` module holds one `Host`. What all of them share is here, in `effect`
and in `handler`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from ...lifecycle import EVENTS, Agent
from ...tools import Kind, Tools
from .effect import Effect, to_text, unchanged

Payload = Mapping[str, Any]
"""The JSON object that the CLI gives to a hook at one of its events."""


EXIT_2 = "exit 2"
"""In place of JSON: the launcher ends with exit code 2 and prints this on stderr."""
TEXT = "text"
"""In place of JSON: the launcher prints this text as it is."""
REFUSAL = "refusal"
"""Beside JSON: the launcher prints that on stdout and this reason on stderr, and ends with exit code 2."""


WARNING = ("session_start", "before_input", "before_tool")
"""fairlead's events at which the user sees the warnings of hooks."""


class Identity(NamedTuple):
    """The session, turn, folder and agent that an event belongs to."""

    session_id: str | None = None
    turn_id: str | None = None
    cwd: str | None = None
    agent: Agent | None = None

    @property
    def shares_session(self) -> bool:
        """Whether it is a subagent's event, in the session of the agent that started it."""
        return self.agent is not None and self.agent.parent is not None and self.agent.id != self.session_id

    @property
    def subagent_id(self) -> str:
        """The id of the subagent whose turn it is; "" for the session's main agent."""
        return self.agent.id or "" if self.agent is not None and self.agent.parent is not None else ""


class EventMapping(msgspec.Struct, frozen=True):
    """How one event of a CLI becomes a step, and how the decision on it becomes the CLI's JSON."""

    event: str
    """fairlead's name of the event."""
    parse: Callable[[Payload], dict[str, Any] | None]
    """Returns the step's own fields. None: there is no step for hooks to judge."""
    render: Callable[[Effect, str, Payload], dict[str, Any]]
    """Returns the JSON that makes the CLI carry out an effect. The text is the CLI's name of the event.

    An empty dict leaves the event to the CLI.
    """
    can: tuple[str, ...] = ()
    """The controls and fields that the CLI carries out at this event, and "context"."""
    refine: Callable[[Effect, Payload], Effect] = unchanged
    """Adapts an effect to this payload, where `can` holds for some payloads only. `render` gets the result."""
    context_if_refused: bool = True
    """Whether an answer that denies or stops has a place for context."""
    fixed_timeout: float | None = None
    """Seconds that the CLI waits for a hook, where no setting changes that."""
    in_subagent: EventMapping | None = None
    """The mapping to use when a subagent that shares its parent's session fires the event."""
    installed: bool = True
    """Whether `fairlead install` subscribes to it. Not if it costs too much, or is a second name of another event."""


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """One agent CLI."""

    name: str
    title: str
    program: str
    """The command that starts it."""
    package: str | None = None
    """Its package on npm."""
    proven: str | None = None
    """The version that this mapping was tested with. None: it follows the documentation only and is experimental."""
    events: dict[str, EventMapping]
    """The CLI's events by its own names for them."""
    identify: Callable[[Payload], Identity]
    tools: tuple[tuple[str, Kind, dict[str, Any]], ...] = ()
    """Tools that the default table does not have, or has with another kind."""
    project: str | None = None
    """The variable in which the CLI names the project's folder."""
    needs_reply: bool = False
    """Whether it takes an empty answer for a failure of the hook."""
    prefix: str = ""
    """The text that the CLI expects before the JSON of an answer."""
    folder_in_payload: bool = False
    """Whether only the payload names the project's folder. The working folder may be another."""
    entry_point: str | None = None
    """The variable in which the CLI says which of its programs runs."""
    attended: tuple[str, ...] = ()
    """The values of that variable with which a user sits at the CLI. It can then ask the user by itself."""
    attended_variable: str | None = None
    """A variable that the CLI sets to 0 if no user sits at it, whichever of its programs runs."""
    reported: dict[str, str] = {}
    """Entry points at which hooks are reported not to fire, and where that happens."""
    installs: str | None = None
    """The CLI whose entries it runs, if it reads no files that are its own."""
    shows_warnings: bool = False
    """Whether it shows a `systemMessage` to its user, at the events of `WARNING`."""
    headless: dict[str, str] = {}
    """How an event differs in a headless run, in a few words."""
    notes: tuple[str, ...] = ()
    """What a user should know and no table shows."""

    @property
    def experimental(self) -> bool:
        return self.proven is None

    def can(self, event: str) -> frozenset[str]:
        """Return all that it can carry out at one of fairlead's events, over all of its own events for it."""
        return frozenset(part for mapping in self.events.values() if mapping.event == event for part in mapping.can)

    def capabilities(self) -> dict[str, frozenset[str]]:
        mapped = {mapping.event for mapping in self.events.values()}
        return {event: self.can(event) for event in EVENTS if event in mapped}


class HookRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The request that the thin client sends for one event of an agent CLI."""

    host: str
    """The entry that ran: the CLI that it was installed for, and where, as in `claude_code@project`."""
    event: str
    payload: str
    """The CLI's own JSON, unchanged."""
    cwd: str = "/"
    env: dict[str, str | None] = {}
    """The variables that hooks may see."""
    cli_env: dict[str, str] = msgspec.field(default_factory=dict, name="told")
    """The variables that the CLI sets for its hooks. Installed clients of every version send them as `told`."""
    deadline: float | None = None

    @property
    def entry(self) -> Host:
        """The CLI whose entry ran. Another program may have run it: see `detection`."""
        return host_named(self.host.partition("@")[0])

    def root(self, host: Host, named: str | None = None) -> str:
        """Return the folder whose configuration applies. `named` is the folder that the payload names.

        Claude Code names its project itself. Then the variable of another CLI does not count.
        """
        own = self.entry.project
        variables = self.cli_env.get(own or "") or self.cli_env.get(host.project or "")
        return variables or (named if host.folder_in_payload else None) or self.cwd

    def entry_point(self, host: Host) -> str | None:
        """Return which of the CLI's programs runs: its terminal program, an editor's extension, an SDK."""
        return self.cli_env.get(host.entry_point or "")

    def metadata(self, host: Host, is_known: bool = True) -> dict[str, str]:
        """Return what the journal keeps of the program that fired the event."""
        found, entry_point = dict[str, str](), self.entry_point(host)
        if entry_point:
            found[ENTRY_POINT] = entry_point
            if not self.cli_env.get(host.project or ""):
                found[NO_PROJECT] = "true"
        if not is_known:
            found[UNKNOWN_PROGRAM] = self.entry.name
        return found

    def is_attended(self, host: Host) -> bool:
        """Whether a user sits at the CLI and can be asked there."""
        return self.entry_point(host) in host.attended and self.cli_env.get(host.attended_variable or "") != "0"


ENTRY_POINT, NO_PROJECT, UNKNOWN_PROGRAM = "entry_point", "no_project", "unknown_program"
"""Names in a step's metadata: which of a CLI's programs ran, that it named no project's folder, and the entry that a
program ran which fairlead does not know."""

ALL = ("claude_code", "codex", "gemini", "qwen", "copilot", "droid", "cline", "opencode")
EXPERIMENTAL = ("cursor", "windsurf", "devin", "kiro", "goose")
GUESTS = ("vscode", "jetbrains")
"""Programs that run the entries of another CLI, and read no files that are their own."""
NAMES = (*ALL, *EXPERIMENTAL, *GUESTS)


def canonical_name(name: str | None) -> str | None:
    """Return a CLI's name for one of the names that people use for it."""
    return {"claude": "claude_code", "claude-code": "claude_code"}.get(name or "", name)


def host_named(name: str) -> Host:
    """Return the CLI of this name. `claude` is Claude Code."""
    from importlib import import_module

    from ...errors import UnknownName

    name = canonical_name(name) or name
    if name not in NAMES:
        raise UnknownName("host", name, NAMES)
    host: Host = import_module(f"fairlead.hosts.clis.{name}.mapping").HOST
    return host


def hosts(experimental: bool = True) -> list[Host]:
    """Return all CLIs, or only those that were tested with a real version."""
    return [host_named(name) for name in (*ALL, *(EXPERIMENTAL if experimental else ()))]


def host_tools() -> Tools:
    """Return the tool table of every CLI, each entry for its own CLI."""
    tools = Tools()
    for host in [*hosts(), *map(host_named, GUESTS)]:
        for pattern, kind, about in host.tools:
            tools.add(pattern, kind, host=host.name, **about)
    return tools


# --- parsing ------------------------------------------------------------------------------------


def a_dict(value: Any) -> dict[str, Any]:
    """Return a tool's arguments as a dict. Some CLIs send them as JSON text, or as any other value."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = msgspec.json.decode(value)
        except msgspec.MsgspecError:
            return {"input": value}
    return value if isinstance(value, dict) else {} if value is None else {"input": value}


def a_text(value: Any) -> str | None:
    """Return a field that is a text with something in it, else None."""
    return value if isinstance(value, str) and value else None


def content(value: Any) -> Any:
    """Return a tool's output as a step takes it: a text, an object or a list of content blocks."""
    if value is None or isinstance(value, (str, dict)):
        return value
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return value
    return msgspec.json.encode(value).decode()


def as_text(value: Any) -> str:
    """Return a hook's new value as text, for a CLI that takes only text."""
    if isinstance(value, list) and all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in value):
        return "\n".join(part["text"] for part in value)
    return to_text(value)


def to_seconds(milliseconds: Any) -> float | None:
    return milliseconds / 1000 if isinstance(milliseconds, (int, float)) else None


def first_text(value: Any) -> str | None:
    """Return the first item of a list, if that is a text."""
    return a_text(value[0]) if isinstance(value, list) and value else None


def input_fields(text: Any) -> dict[str, Any] | None:
    """The fields of a user's message. None: it has no text."""
    return {"input": text} if isinstance(text, str) and text else None


def error_fields(error: str, outcome: str = "error") -> dict[str, Any]:
    """The fields of a tool call that failed, whose only output is the error."""
    return {"outcome": outcome, "is_error": True, "error": error, "output": error}


def own_agent(session_id: str | None, parent: str | None = None) -> Agent | None:
    """Return a session's main agent, which has the session's id."""
    return Agent(session_id, None, parent) if session_id else None


def no_fields(payload: Payload) -> dict[str, Any]:
    """The step has no fields of its own."""
    return {}


def no_step(payload: Payload) -> None:
    """The event is none of fairlead's."""


# --- rendering ----------------------------------------------------------------------------------


def no_reply(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    """The CLI ignores output at this event."""
    return {}


def without_none(**keys: Any) -> dict[str, Any]:
    """Return the keys that have a value."""
    return {key: value for key, value in keys.items() if value is not None}
