"""Qwen Code: how fairlead reads each of its events, and how it answers."""

from __future__ import annotations

from typing import Any

from .. import hook_json
from ..effect import Effect
from ..mapping import EventMapping, Host, Payload, no_reply, no_step


def _render_after_tool(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    """Replace the output of a denied call: here, `continue: false` does that, and does not end the turn."""
    if effect.deny is not None:
        return {"continue": False, "stopReason": effect.deny}
    return hook_json.render_context(effect, event, payload)


HOST = Host(
    name="qwen",
    title="Qwen Code",
    program="qwen",
    package="@qwen-code/qwen-code",
    proven="0.24.4",
    identify=hook_json.identify,
    project="QWEN_PROJECT_DIR",
    headless={"before_input": "reason not shown", "session_end": "never fires"},
    notes=("It fires no SessionEnd in headless runs.",),
    events={
        "SessionStart": EventMapping(
            "session_start", hook_json.parse_session_start, hook_json.render_context, ("context",)
        ),
        "SessionEnd": EventMapping("session_end", hook_json.parse_session_end, no_reply),
        "UserPromptSubmit": EventMapping(
            "before_input", hook_json.parse_prompt, hook_json.render_input, ("deny", "stop", "abort", "context")
        ),
        "PreToolUse": EventMapping("before_tool", hook_json.parse_tool, hook_json.render_before_tool, ("deny",)),
        "PostToolUse": EventMapping(
            "after_tool", hook_json.parse_tool_result, _render_after_tool, ("deny", "context"), context_if_refused=False
        ),
        "PostToolUseFailure": EventMapping(
            "after_tool",
            hook_json.parse_tool_failure,
            _render_after_tool,
            ("deny", "context"),
            context_if_refused=False,
        ),
        "PostToolBatch": EventMapping(
            "after_tool_batch", hook_json.parse_batch, hook_json.render_context, ("context",)
        ),
        "Stop": EventMapping("before_turn_end", hook_json.parse_turn_end, hook_json.render_turn_end, ("extend",)),
        "SubagentStart": EventMapping("subagent_start", hook_json.parse_subagent_start, no_reply),
        "SubagentStop": EventMapping(
            "subagent_stop", hook_json.parse_subagent_stop, hook_json.render_turn_end, ("extend",)
        ),
        "PreCompact": EventMapping("before_compact", hook_json.parse_compact, no_reply),
        "Notification": EventMapping("notification", hook_json.parse_notification, no_reply),
        "MessageDisplay": EventMapping("before_output", hook_json.parse_output, no_reply, installed=False),
        "InstructionsLoaded": EventMapping("before_prompt", no_step, no_reply, installed=False),
    },
)
