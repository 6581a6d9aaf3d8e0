"""Codex. It is strict: a key it does not know, and the whole answer is thrown away, and the tool runs."""

from __future__ import annotations

from typing import Any

from . import hook_json as said
from .effect import Effect, to_repeat
from .host import Host, Moment, Payload, silence


def _say_before_tool(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    args, tool = effect.args, str(payload.get("tool_name"))
    if args is not None and effect.deny is None and not _taken_over(tool, args, said.tool(payload)["args"]):
        effect.deny = to_repeat(tool, args)
    if effect.deny is not None:
        keys: dict[str, Any] = {"permissionDecision": "deny", "permissionDecisionReason": effect.deny}
    else:
        keys = {} if args is None else {"permissionDecision": "allow", "updatedInput": args}
    return said.specific(event, **keys, additionalContext=said.joined(effect))


def _taken_over(tool: str, new: dict[str, Any], old: dict[str, Any]) -> bool:
    """Whether Codex takes changed arguments over: of its own tools, only the command."""
    only_command = {**new, "command": None} == {**old, "command": None}
    return tool.startswith("mcp__") or (only_command and isinstance(new.get("command"), str))


def _say_after_tool(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    return said.blocking(effect.deny) | said.specific(event, additionalContext=said.joined(effect))


def _say_session_start(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    return said.specific(event, additionalContext=said.joined(effect)) | said.stopping(effect)


HOST = Host(
    name="codex",
    title="Codex",
    program="codex",
    package="@openai/codex",
    proven="0.166.0",
    identify=said.identify,
    warns=True,
    headless={"before_input": "reason not shown"},
    moments={
        "SessionStart": Moment("session_start", said.session_start, _say_session_start, ("abort", "context")),
        "SessionEnd": Moment("session_end", said.session_end, silence, wait=3.0),
        "UserPromptSubmit": Moment("before_input", said.prompt, said.say_input, ("deny", "stop", "abort", "context")),
        "PreToolUse": Moment("before_tool", said.tool, _say_before_tool, ("deny", "args", "context")),
        "PermissionRequest": Moment(
            "before_permission", said.permission, said.say_permission, ("deny", "allow", "resolved")
        ),
        "PostToolUse": Moment("after_tool", said.tool_done, _say_after_tool, ("deny", "context")),
        "Stop": Moment("before_turn_end", said.turn_end, said.say_turn_end, ("extend", "stop", "abort")),
        "SubagentStart": Moment("subagent_start", said.subagent_start, said.say_context, ("context",)),
        "SubagentStop": Moment("subagent_stop", said.subagent_stop, said.say_turn_end, ("extend",)),
        "PreCompact": Moment("before_compact", said.compact, silence),
        "PostCompact": Moment("after_compact", said.compacted, silence),
    },
)
