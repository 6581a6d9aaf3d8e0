"""GitHub Copilot CLI. Its events are told in camelCase, and do not say their name: the launcher does."""

from __future__ import annotations

from typing import Any

from ..lifecycle import Agent
from . import hook_json as said
from .effect import Effect, to_repeat
from .host import Host, Identity, Moment, Payload, a_dict, a_text, as_text, content, silence


def _identify(payload: Payload) -> Identity:
    if "hook_event_name" in payload:
        return said.identify(payload)
    session_id, agent_id = a_text(payload.get("sessionId")), a_text(payload.get("agentId"))
    parent = a_text(payload.get("parentAgentId"))
    cwd = a_text(payload.get("cwd"))
    if agent_id is None:
        return Identity(session_id, None, cwd, Agent(session_id) if session_id else None)
    # A subagent's steps have a session of their own, which is its id; they belong to its parent's.
    session_id = parent if parent and session_id == agent_id else session_id
    return Identity(session_id, None, cwd, Agent(agent_id, a_text(payload.get("agentType")), parent or session_id))


def _tool(payload: Payload) -> dict[str, Any]:
    args = payload.get("toolArgs", payload.get("toolInput"))
    return {"tool": payload.get("toolName"), "args": a_dict(args), "call_id": a_text(payload.get("toolCallId"))}


def _tool_done(payload: Payload) -> dict[str, Any]:
    result = a_dict(payload.get("toolResult"))
    failed = result.get("resultType") not in (None, "success")
    outcome = "denied" if result.get("resultType") in ("denied", "rejected") else "error" if failed else "ok"
    text = content(result.get("textResultForLlm"))
    error = a_text(text) if failed else None
    return {**_tool(payload), "output": text, "outcome": outcome, "is_error": failed, "error": error}


def _tool_failed(payload: Payload) -> dict[str, Any]:
    error = payload.get("error")
    text = a_text(error) or a_text(a_dict(error).get("message")) or "the tool failed"
    return {**_tool(payload), "outcome": "error", "is_error": True, "error": text, "output": text}


def _permission(payload: Payload) -> dict[str, Any]:
    return {**(_tool(payload) if "toolName" in payload else said.tool(payload)), "proposed": "ask"}


def _turn_end(payload: Payload) -> dict[str, Any]:
    return {"stop_reason": a_text(payload.get("stopReason")) or "end_turn"}


def _subagent(payload: Payload) -> dict[str, Any]:
    return {"agent_name": a_text(payload.get("agentName"))}


def _failure(payload: Payload) -> dict[str, Any]:
    error = payload.get("error")
    text = a_text(error) or a_text(a_dict(error).get("message"))
    return {"error": text, "where": a_text(payload.get("errorContext"))}


def _transformed(payload: Payload) -> dict[str, Any]:
    return {"committed_len": len(a_text(payload.get("transformedPrompt")) or "")}


def _say_before_tool(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    if effect.deny is not None:
        return {"permissionDecision": "deny", "permissionDecisionReason": effect.deny}
    told: dict[str, Any] = {}
    if effect.args is not None:
        is_text = _tool(payload)["args"] == {"input": payload.get("toolArgs")}  # as those of apply_patch are
        told["modifiedArgs"] = effect.args.get("input") if is_text else effect.args
        if is_text and not isinstance(told["modifiedArgs"], str):
            effect.deny = to_repeat(str(payload.get("toolName")), effect.args)
            return {"permissionDecision": "deny", "permissionDecisionReason": effect.deny}
    if effect.allow is not None:
        told["permissionDecision"] = "allow"
    return told | _context(effect)


def _say_input(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    if effect.deny is not None:
        return said.blocking(effect.deny)
    changed = {} if effect.input is None else {"modifiedPrompt": as_text(effect.input)}
    return changed | _context(effect)


def _say_after_tool(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    told = said.blocking(effect.deny)
    if effect.output is not None and effect.deny is None:
        told = {"modifiedResult": {"resultType": "success", "textResultForLlm": as_text(effect.output)}}
    return told | _context(effect)


def _context(effect: Effect) -> dict[str, Any]:
    text = said.joined(effect)
    return {} if text is None else {"additionalContext": text}


def _say_context(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    return _context(effect)


def _say_permission(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    if effect.deny is not None:
        ends = {} if effect.stop is None else {"interrupt": True}
        return {"behavior": "deny", "message": effect.deny} | ends
    return {"behavior": "allow"} if effect.allow is not None else {}


# The same events, told as Claude Code tells them, where a hook asks for them by these names.
_PASCAL = {
    "SessionStart": Moment("session_start", said.session_start, silence, installed=False),
    "SessionEnd": Moment("session_end", said.session_end, silence, installed=False),
    "UserPromptSubmit": Moment("before_input", said.prompt, said.say_input, ("deny",), installed=False),
    "PreToolUse": Moment("before_tool", said.tool, said.say_before_tool, ("deny", "args", "context"), installed=False),
    "PostToolUse": Moment("after_tool", said.tool_done, silence, installed=False),
    "PostToolUseFailure": Moment("after_tool", said.tool_failed, silence, installed=False),
    "PermissionRequest": Moment(
        "before_permission",
        _permission,
        _say_permission,
        ("deny", "allow", "resolved", "stop", "abort"),
        installed=False,
    ),
    "Stop": Moment("before_turn_end", said.turn_end, said.say_turn_end, ("extend",), installed=False),
    "SubagentStart": Moment("subagent_start", said.subagent_start, silence, installed=False),
    "SubagentStop": Moment("subagent_stop", said.subagent_stop, silence, installed=False),
    "PreCompact": Moment("before_compact", said.compact, silence, installed=False),
    "Notification": Moment("notification", said.notification, silence, installed=False),
}

HOST = Host(
    name="copilot",
    title="Copilot CLI",
    program="copilot",
    package="@github/copilot",
    proven="1.0.102",
    identify=_identify,
    project="COPILOT_PROJECT_DIR",
    tools=(("*-*", "mcp", {"server": "*"}), ("*/*", "mcp", {"server": "*"})),
    notes=("It also reads a project's .claude/settings.json, so what is installed there asks a second time.",),
    moments={
        "sessionStart": Moment("session_start", said.session_start, _say_context, ("context",)),
        "sessionEnd": Moment("session_end", said.session_end, silence),
        "userPromptSubmitted": Moment("before_input", said.prompt, _say_input, ("deny", "input", "context")),
        "preToolUse": Moment("before_tool", _tool, _say_before_tool, ("deny", "allow", "args", "context")),
        "permissionRequest": Moment(
            "before_permission", _permission, _say_permission, ("deny", "allow", "resolved", "stop", "abort")
        ),
        "postToolUse": Moment("after_tool", _tool_done, _say_after_tool, ("deny", "output", "context")),
        "postToolUseFailure": Moment("after_tool", _tool_failed, _say_context, ("context",)),
        "agentStop": Moment("before_turn_end", _turn_end, said.say_turn_end, ("extend",)),
        "subagentStart": Moment("subagent_start", _subagent, _say_context, ("context",)),
        "subagentStop": Moment("subagent_stop", _subagent, said.say_turn_end, ("extend",)),
        "preCompact": Moment("before_compact", said.compact, silence),
        "notification": Moment("notification", said.notification, silence),
        "errorOccurred": Moment("error", _failure, silence),
        "userPromptTransformed": Moment("after_input", _transformed, silence, installed=False),
        **_PASCAL,
    },
)
