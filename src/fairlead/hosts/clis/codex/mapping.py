"""Codex. It is strict: if an answer has a key that Codex does not know, Codex drops the answer and runs the tool."""

from __future__ import annotations

from typing import Any

from .. import hook_json
from ..effect import Effect, refuse_args
from ..mapping import EventMapping, Host, Payload, no_reply


def _refine_before_tool(effect: Effect, payload: Payload) -> Effect:
    if effect.args is None or effect.deny is not None:
        return effect
    call = hook_json.parse_tool(payload)
    return effect if _takes_over(str(call["tool"]), effect.args, call["args"]) else refuse_args(effect, call["tool"])


def _render_before_tool(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    if effect.deny is not None:
        keys = {"permissionDecision": "deny", "permissionDecisionReason": effect.deny}
    elif effect.args is not None:
        keys = {"permissionDecision": "allow", "updatedInput": effect.args}
    return hook_json.specific(event, **keys, additionalContext=hook_json.context_text(effect))


def _takes_over(tool: str, new: dict[str, Any], old: dict[str, Any]) -> bool:
    """Whether Codex uses changed arguments. For its own tools, only the command may change."""
    only_command = {**new, "command": None} == {**old, "command": None}
    return tool.startswith("mcp__") or (only_command and isinstance(new.get("command"), str))


def _render_after_tool(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    return hook_json.block_keys(effect.deny) | hook_json.render_context(effect, event, payload)


HOST = Host(
    name="codex",
    title="Codex",
    program="codex",
    package="@openai/codex",
    proven="0.166.0",
    identify=hook_json.identify,
    shows_warnings=True,
    headless={"before_input": "reason not shown"},
    events={
        "SessionStart": EventMapping(
            "session_start", hook_json.parse_session_start, hook_json.render_stop, ("abort", "context")
        ),
        "SessionEnd": EventMapping("session_end", hook_json.parse_session_end, no_reply, fixed_timeout=3.0),
        "UserPromptSubmit": EventMapping(
            "before_input", hook_json.parse_prompt, hook_json.render_input, ("deny", "stop", "abort", "context")
        ),
        "PreToolUse": EventMapping(
            "before_tool",
            hook_json.parse_tool,
            _render_before_tool,
            ("deny", "args", "context"),
            refine=_refine_before_tool,
        ),
        "PermissionRequest": EventMapping(
            "before_permission", hook_json.parse_permission, hook_json.render_permission, ("deny", "allow", "resolved")
        ),
        "PostToolUse": EventMapping("after_tool", hook_json.parse_tool_result, _render_after_tool, ("deny", "context")),
        "Stop": EventMapping(
            "before_turn_end", hook_json.parse_turn_end, hook_json.render_turn_end, ("extend", "stop", "abort")
        ),
        "SubagentStart": EventMapping(
            "subagent_start", hook_json.parse_subagent_start, hook_json.render_context, ("context",)
        ),
        "SubagentStop": EventMapping(
            "subagent_stop", hook_json.parse_subagent_stop, hook_json.render_turn_end, ("extend",)
        ),
        "PreCompact": EventMapping("before_compact", hook_json.parse_compact, no_reply),
        "PostCompact": EventMapping("after_compact", hook_json.parse_compact_done, no_reply),
    },
)
