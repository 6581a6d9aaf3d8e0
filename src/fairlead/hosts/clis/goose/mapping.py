"""goose. Experimental: this follows the documentation and was never tested with the CLI."""

from __future__ import annotations

from .. import hook_json
from ..mapping import EventMapping, Host, no_reply

HOST = Host(
    name="goose",
    title="goose",
    program="goose",
    identify=hook_json.identify,
    events={
        "SessionStart": EventMapping("session_start", hook_json.parse_session_start, no_reply),
        "SessionEnd": EventMapping("session_end", hook_json.parse_session_end, no_reply),
        "UserPromptSubmit": EventMapping("before_input", hook_json.parse_prompt, hook_json.render_exit_2, ("deny",)),
        "PreToolUse": EventMapping("before_tool", hook_json.parse_tool, hook_json.render_exit_2, ("deny",)),
        "PostToolUse": EventMapping("after_tool", hook_json.parse_tool_result, no_reply),
        "PostToolUseFailure": EventMapping("after_tool", hook_json.parse_tool_failure, no_reply),
        "Stop": EventMapping("before_turn_end", hook_json.parse_turn_end, no_reply),
        "PreCompact": EventMapping("before_compact", hook_json.parse_compact, no_reply),
        "Notification": EventMapping("notification", hook_json.parse_notification, no_reply),
    },
)
