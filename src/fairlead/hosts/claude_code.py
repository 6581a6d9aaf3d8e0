"""Claude Code."""

from __future__ import annotations

from typing import Any

from . import hook_json as said
from .effect import Effect
from .host import Host, Moment, Payload, as_text, silence


def _say_after_tool(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    """Claude Code shows what a tool gave back even if it is blocked, so it is replaced, in the tool's own shape.

    Of a tool whose shape is not known, the output can only be kept from the model by ending the turn.
    """
    context = said.joined(effect)
    new = effect.output if effect.deny is None else effect.deny
    if new is None:
        return said.specific(event, additionalContext=context) | said.stopping(effect)
    shaped = _shaped(payload, new)
    if not shaped:
        effect.stop = effect.stop or effect.deny or "the output must not be shown as it is, and cannot be changed here"
    return said.specific(event, additionalContext=context, **shaped) | said.stopping(effect)


_ALSO_THERE = ("structuredContent", "persistedOutputPath", "persistedOutputSize", "rawOutputPath")
"""Where the output of a command is, too: the model would be shown it, or told the file to read it from."""


def _shaped(payload: Payload, new: Any) -> dict[str, Any]:
    old, text = payload.get("tool_response"), as_text(new)
    if str(payload.get("tool_name")).startswith("mcp__"):
        return {"updatedMCPToolOutput": new if isinstance(new, list) else [{"type": "text", "text": text}]}
    if not isinstance(old, dict):
        return {}
    if isinstance(new, dict) and new.keys() == old.keys():
        return {"updatedToolOutput": new}
    if "stdout" in old:
        kept = {key: value for key, value in old.items() if key not in _ALSO_THERE}
        return {"updatedToolOutput": {**kept, "stdout": text, "stderr": "", "isImage": False}}
    file = old.get("file")
    if old.get("type") == "text" and isinstance(file, dict) and "content" in file:
        return {"updatedToolOutput": {**old, "file": {**file, "content": text}}}
    return {}


def _say_failed(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    """What a failed tool said cannot be replaced: it is kept from the model by ending the turn."""
    if effect.deny is not None or effect.output is not None:
        effect.stop = effect.stop or effect.deny or "the output must not be shown as it is"
    return said.specific(event, additionalContext=said.joined(effect)) | said.stopping(effect)


HOST = Host(
    name="claude_code",
    title="Claude Code",
    program="claude",
    package="@anthropic-ai/claude-code",
    proven="2.1.325",
    identify=said.identify,
    warns=True,
    project="CLAUDE_PROJECT_DIR",
    asks=("CLAUDE_CODE_ENTRYPOINT", "cli"),
    moments={
        "SessionStart": Moment("session_start", said.session_start, said.say_context, ("context",)),
        "SessionEnd": Moment("session_end", said.session_end, silence),
        "UserPromptSubmit": Moment("before_input", said.prompt, said.say_input, ("deny", "stop", "abort", "context")),
        "PreToolUse": Moment(
            "before_tool", said.tool, said.say_before_tool,
            ("deny", "ask", "allow", "args", "stop", "abort", "context"),
        ),
        "PermissionRequest": Moment(
            "before_permission", said.permission, said.say_permission, ("deny", "allow", "resolved")
        ),
        "PermissionDenied": Moment("after_permission", said.permission_denied, silence),
        "PostToolUse": Moment(
            "after_tool", said.tool_done, _say_after_tool, ("deny", "output", "stop", "abort", "context")
        ),
        "PostToolUseFailure": Moment("after_tool", said.tool_failed, _say_failed, ("stop", "abort", "context")),
        "PostToolBatch": Moment("after_tool_batch", said.batch, _say_failed, ("stop", "abort", "context")),
        "Stop": Moment("before_turn_end", said.turn_end, said.say_turn_end, ("extend", "stop", "abort")),
        "StopFailure": Moment("error", said.failure, silence),
        "SubagentStart": Moment("subagent_start", said.subagent_start, said.say_context, ("context",)),
        "SubagentStop": Moment("subagent_stop", said.subagent_stop, said.say_turn_end, ("extend",)),
        "PreCompact": Moment("before_compact", said.compact, silence),
        "PostCompact": Moment("after_compact", said.compacted, silence),
        "Notification": Moment("notification", said.notification, silence),
        "MessageDisplay": Moment("before_output", said.displayed, silence, installed=False),  # for each piece of it
    },
    tools=(
        ("Agent", "agent", {}),
        ("Skill", "agent", {}),
        ("{ListAgents,ReportFindings,ScheduleWakeup,DeferredToolPlaceholder,TodoWrite,ExitPlanMode}", "agent", {}),
    ),
)  # fmt: skip
