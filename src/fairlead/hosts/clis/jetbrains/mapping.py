"""Copilot's own agent in JetBrains ("Local"). It runs the hooks that a project has for Copilot.

It reads nothing of an answer but a deny, and no exit code. It sends no session id. Its other agent is the Copilot SDK,
which sends what Copilot CLI sends.
"""

from __future__ import annotations

from typing import Any

from ..copilot.mapping import HOST as COPILOT
from ..effect import Effect
from ..mapping import EventMapping, Host, Payload, no_reply

_EVENTS = (
    "sessionStart", "sessionEnd", "agentStop", "userPromptSubmitted", "preToolUse", "postToolUse", "errorOccurred",
)  # fmt: skip


def _render_before_tool(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    if effect.deny is None:
        return {}
    return {"permissionDecision": "deny", "permissionDecisionReason": effect.deny}


def _mapping(event: str) -> EventMapping:
    mapping = COPILOT.events[event]
    if event == "preToolUse":
        return EventMapping(mapping.event, mapping.parse, _render_before_tool, ("deny",))
    return EventMapping(mapping.event, mapping.parse, no_reply)


HOST = Host(
    name="jetbrains",
    title="Copilot in JetBrains",
    program="idea",
    identify=COPILOT.identify,
    folder_in_payload=True,
    installs="copilot",
    events={event: _mapping(event) for event in _EVENTS},
    tools=COPILOT.tools,
)
