"""Tells which program fired an event.

Programs run hook files of each other: Cursor runs those of Claude Code, VS Code those of Copilot. A program also
inherits the environment of the one that started it. So neither the entry that ran nor a variable names the host. The
payload does: each program has keys that no other has. Where two programs send the same form, a variable decides that
the one sets for its hooks only.

A payload can have a form that no known program sends to that entry. Then its form decides, and the answer refuses in
every way that programs of these forms know. `fairlead doctor` counts such steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...errors import FairleadError
from ...lifecycle import GUARDING
from .mapping import Host, Payload, a_text, host_named

FORMS = ("claude_code", "copilot")
"""The programs whose forms others adopted."""


class EventSource(NamedTuple):
    """The program that fired an event, and its own name for the event."""

    host: Host
    event: str
    is_known: bool = True
    """Whether fairlead knows a program that sends this to that entry. If not, `host` is the one whose form it has."""


def find_source(entry: str, event: str, payload: Payload, cli_env: Mapping[str, str]) -> EventSource:
    """Return the program that fired an event, whichever CLI's entry ran.

    `entry` is that CLI, `event` its name for the event, and `cli_env` the variables that CLIs set for their hooks.
    """
    host, name = host_named(_sender(entry, payload, cli_env)), a_text(payload.get("hook_event_name"))
    source = EventSource(host, name if name in host.events and host.name != entry else event)
    return source if _has_form(source, payload) else _by_form(entry, event, payload) or source


def _sender(entry: str, payload: Payload, cli_env: Mapping[str, str]) -> str:
    if entry not in ("claude_code", "copilot"):
        return entry
    if "cursor_version" in payload:
        return "cursor"
    # Claude Code sends no timestamp, and runs no entries of Copilot.
    if "hook_event_name" in payload and ("timestamp" in payload or entry == "copilot"):
        return "copilot" if "COPILOT_PROJECT_DIR" in cli_env else "vscode"
    if entry == "copilot" and not {"sessionId", "hook_event_name"} & payload.keys():
        return entry if "COPILOT_PROJECT_DIR" in cli_env else "jetbrains"
    if entry == "claude_code" and "DEVIN_PROJECT_DIR" in cli_env and "cwd" not in payload:
        return "devin"
    return entry


def _by_form(entry: str, event: str, payload: Payload) -> EventSource | None:
    """Return the program whose form a payload has, at an event that guards. None: it has the form of none."""
    ours = host_named(entry).events[event].event
    if ours not in GUARDING:
        return None
    for host in map(host_named, FORMS):
        for name, mapping in host.events.items():
            source = EventSource(host, name, is_known=False)
            if mapping.event == ours and mapping.installed and _has_form(source, payload):
                return source
    return None


def _has_form(source: EventSource, payload: Payload) -> bool:
    """Whether a program's event can be parsed from a payload."""
    mapping = source.host.events.get(source.event)
    try:
        fields = None if mapping is None else mapping.parse(payload)
    except FairleadError:
        return False
    return mapping is not None and (fields is None or isinstance(fields.get("tool", ""), str))
