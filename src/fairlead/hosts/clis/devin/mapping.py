"""Devin CLI and Devin Desktop, formerly Windsurf. They run the hooks of Claude Code, and send the same JSON.

Experimental: this follows the documentation and was never tested with the program.
"""

from __future__ import annotations

from .. import hook_json
from ..mapping import EventMapping, Host, no_reply

HOST = Host(
    name="devin",
    title="Devin",
    program="devin",
    identify=hook_json.identify,
    project="DEVIN_PROJECT_DIR",
    installs="claude_code",
    events={
        "SessionStart": EventMapping("session_start", hook_json.parse_session_start, no_reply),
        "SessionEnd": EventMapping("session_end", hook_json.parse_session_end, no_reply),
        "UserPromptSubmit": EventMapping("before_input", hook_json.parse_prompt, hook_json.render_exit_2, ("deny",)),
        "PreToolUse": EventMapping("before_tool", hook_json.parse_tool, hook_json.render_exit_2, ("deny",)),
        "PermissionRequest": EventMapping("before_permission", hook_json.parse_permission, no_reply),
        "PostToolUse": EventMapping("after_tool", hook_json.parse_tool_result, no_reply),
        "Stop": EventMapping("before_turn_end", hook_json.parse_turn_end, hook_json.render_turn_end, ("extend",)),
    },
)
