"""VS Code's own agent ("Local"). It runs the hooks of Copilot, and sends its own JSON, which resembles Claude Code's.

Its other agents are Copilot, Claude Code and Codex themselves, and send what these send.
"""

from __future__ import annotations

from typing import Any

from .. import hook_json
from ..effect import Effect
from ..mapping import EventMapping, Host, Payload, no_reply


def _render_turn_end(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    """Keep the turn alive. VS Code expects the decision among the event's own keys."""
    return hook_json.specific(event, **hook_json.block_keys(effect.extend)) | hook_json.stop_keys(effect)


HOST = Host(
    name="vscode",
    title="VS Code",
    program="code",
    identify=hook_json.identify,
    folder_in_payload=True,
    installs="copilot",
    shows_warnings=True,
    events={
        "SessionStart": EventMapping(
            "session_start", hook_json.parse_session_start, hook_json.render_context, ("context",)
        ),
        "SessionEnd": EventMapping("session_end", hook_json.parse_session_end, no_reply),
        "UserPromptSubmit": EventMapping(
            "before_input", hook_json.parse_prompt, hook_json.render_input, ("deny", "stop", "abort", "context")
        ),
        "PreToolUse": EventMapping(
            "before_tool", hook_json.parse_tool, hook_json.render_before_tool,
            ("deny", "allow", "args", "stop", "abort", "context"),
        ),
        "PostToolUse": EventMapping(
            "after_tool", hook_json.parse_tool_result, hook_json.render_stop, ("stop", "abort", "context")
        ),
        "PreCompact": EventMapping("before_compact", hook_json.parse_compact, no_reply),
        "SubagentStart": EventMapping(
            "subagent_start", hook_json.parse_subagent_start, hook_json.render_context, ("context",)
        ),
        "SubagentStop": EventMapping("subagent_stop", hook_json.parse_subagent_stop, _render_turn_end, ("extend",)),
        "Stop": EventMapping(
            "before_turn_end", hook_json.parse_turn_end, _render_turn_end, ("extend", "stop", "abort")
        ),
        "ErrorOccurred": EventMapping("error", hook_json.parse_turn_failure, no_reply),
    },
)  # fmt: skip
