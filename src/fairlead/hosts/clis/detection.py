"""Tells which program fired an event.

Programs run hook files of each other: Cursor runs those of Claude Code, VS Code those of Copilot. A program also
inherits the environment of the one that started it. So neither the entry that ran nor a variable names the host. The
payload does: each program has keys that no other has. Where two programs send the same form, a variable decides that
the one sets for its hooks only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .mapping import Host, Payload, a_text, host_named


class EventSource(NamedTuple):
    """The program that fired an event, and its own name for the event."""

    host: Host
    event: str


def find_source(entry: str, event: str, payload: Payload, cli_env: Mapping[str, str]) -> EventSource:
    """Return the program that fired an event, whichever CLI's entry ran.

    `entry` is that CLI, `event` its name for the event, and `cli_env` the variables that CLIs set for their hooks.
    """
    host, name = host_named(_sender(entry, payload, cli_env)), a_text(payload.get("hook_event_name"))
    return EventSource(host, name if name in host.events and host.name != entry else event)


def _sender(entry: str, payload: Payload, cli_env: Mapping[str, str]) -> str:
    if entry not in ("claude_code", "copilot"):
        return entry
    if "cursor_version" in payload:
        return "cursor"
    if "hook_event_name" in payload and "timestamp" in payload:  # Claude Code sends no timestamp
        return "copilot" if "COPILOT_PROJECT_DIR" in cli_env else "vscode"
    if entry == "copilot" and not {"sessionId", "hook_event_name"} & payload.keys():
        return entry if "COPILOT_PROJECT_DIR" in cli_env else "jetbrains"
    if entry == "claude_code" and "DEVIN_PROJECT_DIR" in cli_env and "cwd" not in payload:
        return "devin"
    return entry
