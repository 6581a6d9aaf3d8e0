"""Claude Code: how fairlead reads each of its events, and how it answers. Many other CLIs send the same JSON."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from .. import hook_json
from ..effect import Effect
from ..mapping import EventMapping, Host, Payload, as_text, no_reply

_UNSHOWN = "the output must not be shown as it is"


def _refine_after_tool(effect: Effect, payload: Payload) -> Effect:
    """Stop the turn if the output must change and fairlead does not know the shape that this tool's output has."""
    new = _new_output(effect)
    if new is None or _replacement(payload, new):
        return effect
    return replace(effect, stop=effect.stop or effect.deny or f"{_UNSHOWN}, and cannot be changed here")


def _render_after_tool(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    """Replace the output. Claude Code shows a tool's output to the model even if a hook blocks it."""
    new = _new_output(effect)
    replacement = {} if new is None else _replacement(payload, new)
    context = hook_json.context_text(effect)
    return hook_json.specific(event, additionalContext=context, **replacement) | hook_json.stop_keys(effect)


def _new_output(effect: Effect) -> Any:
    return effect.output if effect.deny is None else effect.deny


_OUTPUT_COPIES = ("structuredContent", "persistedOutputPath", "persistedOutputSize", "rawOutputPath")
"""Keys that also hold a command's output, or the file that the model could read it from."""


def _replacement(payload: Payload, new: Any) -> dict[str, Any]:
    """Return the key that replaces the output, in the tool's own shape; nothing if that shape is unknown."""
    old, text = payload.get("tool_response"), as_text(new)
    if str(payload.get("tool_name")).startswith("mcp__"):
        return {"updatedMCPToolOutput": new if isinstance(new, list) else [{"type": "text", "text": text}]}
    if not isinstance(old, dict):
        return {}
    if isinstance(new, dict) and new.keys() == old.keys():
        return {"updatedToolOutput": new}
    if "stdout" in old:
        kept = {key: value for key, value in old.items() if key not in _OUTPUT_COPIES}
        return {"updatedToolOutput": {**kept, "stdout": text, "stderr": "", "isImage": False}}
    file = old.get("file")
    if old.get("type") == "text" and isinstance(file, dict) and "content" in file:
        return {"updatedToolOutput": {**old, "file": {**file, "content": text}}}
    return {}


def _refine_failure(effect: Effect, payload: Payload) -> Effect:
    """Stop the turn instead of changing the output. Claude Code does not replace the output of a failed tool."""
    if effect.deny is None and effect.output is None:
        return effect
    return replace(effect, deny=None, output=None, stop=effect.stop or effect.deny or _UNSHOWN)


HOST = Host(
    name="claude_code",
    title="Claude Code",
    program="claude",
    package="@anthropic-ai/claude-code",
    proven="2.1.325",
    identify=hook_json.identify,
    shows_warnings=True,
    project="CLAUDE_PROJECT_DIR",
    entry_point="CLAUDE_CODE_ENTRYPOINT",
    attended=("cli", "claude-vscode", "claude-desktop", "claude-desktop-3p", "ssh-remote"),
    attended_variable="CLAUDE_CODE_SESSION_ATTENDED",
    reported={
        "claude-vscode": "in some versions of the extension for VS Code",
        "claude-desktop": "in the desktop app on Windows",
        "claude-desktop-3p": "in the desktop app on Windows",
        "remote": "in cloud sessions with two repositories, whose projects' hooks are not read",
        "remote_mobile": "in cloud sessions with two repositories, whose projects' hooks are not read",
    },
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
            ("deny", "ask", "allow", "args", "stop", "abort", "context"),
        ),
        "PermissionRequest": EventMapping(
            "before_permission", hook_json.parse_permission, hook_json.render_permission, ("deny", "allow", "resolved")
        ),
        "PermissionDenied": EventMapping("after_permission", hook_json.parse_permission_denied, no_reply),
        "PostToolUse": EventMapping(
            "after_tool", hook_json.parse_tool_result, _render_after_tool,
            ("deny", "output", "stop", "abort", "context"), refine=_refine_after_tool,
        ),
        "PostToolUseFailure": EventMapping(
            "after_tool", hook_json.parse_tool_failure, hook_json.render_stop, ("stop", "abort", "context"),
            refine=_refine_failure,
        ),
        "PostToolBatch": EventMapping(
            "after_tool_batch", hook_json.parse_batch, hook_json.render_stop, ("stop", "abort", "context"),
        ),
        "Stop": EventMapping(
            "before_turn_end", hook_json.parse_turn_end, hook_json.render_turn_end, ("extend", "stop", "abort")
        ),
        "StopFailure": EventMapping("error", hook_json.parse_turn_failure, no_reply),
        "SubagentStart": EventMapping(
            "subagent_start", hook_json.parse_subagent_start, hook_json.render_context, ("context",)
        ),
        "SubagentStop": EventMapping(
            "subagent_stop", hook_json.parse_subagent_stop, hook_json.render_turn_end, ("extend",)
        ),
        "PreCompact": EventMapping("before_compact", hook_json.parse_compact, no_reply),
        "PostCompact": EventMapping("after_compact", hook_json.parse_compact_done, no_reply),
        "Notification": EventMapping("notification", hook_json.parse_notification, no_reply),
        # Fires for every piece of a message.
        "MessageDisplay": EventMapping("before_output", hook_json.parse_output, no_reply, installed=False),
    },
    tools=(
        ("Agent", "agent", {}),
        ("Skill", "agent", {}),
        ("{ListAgents,ReportFindings,ScheduleWakeup,DeferredToolPlaceholder,TodoWrite,ExitPlanMode}", "agent", {}),
    ),
)  # fmt: skip
