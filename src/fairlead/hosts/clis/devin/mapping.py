"""Devin CLI and Devin Desktop, formerly Windsurf. They send Claude Code's JSON, and run its hooks, too.

Experimental: this follows the documentation and was never tested with the program.
"""

from __future__ import annotations

from typing import Any

from .. import hook_json
from ..effect import Effect
from ..mapping import EventMapping, Host, Payload, no_reply


def _render_permission(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    if effect.deny is not None:
        return hook_json.render_exit_2(effect, event, payload)
    return {} if effect.allow is None else {"decision": "approve"}


HOST = Host(
    name="devin",
    title="Devin",
    program="devin",
    identify=hook_json.identify,
    project="DEVIN_PROJECT_DIR",
    notes=("It also runs the hooks of Claude Code. The daemon judges each step once.",),
    events={
        "SessionStart": EventMapping("session_start", hook_json.parse_session_start, no_reply),
        "SessionEnd": EventMapping("session_end", hook_json.parse_session_end, no_reply),
        "UserPromptSubmit": EventMapping("before_input", hook_json.parse_prompt, hook_json.render_exit_2, ("deny",)),
        "PreToolUse": EventMapping("before_tool", hook_json.parse_tool, hook_json.render_exit_2, ("deny",)),
        "PermissionRequest": EventMapping(
            "before_permission", hook_json.parse_permission, _render_permission, ("deny", "allow", "resolved")
        ),
        "PostToolUse": EventMapping("after_tool", hook_json.parse_tool_result, no_reply),
        "Stop": EventMapping("before_turn_end", hook_json.parse_turn_end, hook_json.render_turn_end, ("extend",)),
    },
)
