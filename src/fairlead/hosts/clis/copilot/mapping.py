"""GitHub Copilot CLI. Its payloads are in camelCase and do not name their event. The launcher passes the name."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ....lifecycle import Agent
from .. import hook_json
from ..effect import Effect, refuse_args
from ..mapping import (
    EventMapping,
    Host,
    Identity,
    Payload,
    a_dict,
    a_text,
    as_text,
    content,
    error_fields,
    no_reply,
    own_agent,
    without_none,
)


def _identify(payload: Payload) -> Identity:
    if "hook_event_name" in payload:
        return hook_json.identify(payload)
    session_id, agent_id = a_text(payload.get("sessionId")), a_text(payload.get("agentId"))
    parent = a_text(payload.get("parentAgentId"))
    cwd = a_text(payload.get("cwd"))
    if agent_id is None:
        return Identity(session_id, None, cwd, own_agent(session_id))
    # A subagent's steps carry its own id as the session's. They belong to the parent's session.
    session_id = parent if parent and session_id == agent_id else session_id
    return Identity(session_id, None, cwd, Agent(agent_id, a_text(payload.get("agentType")), parent or session_id))


def _parse_tool(payload: Payload) -> dict[str, Any]:
    args = payload.get("toolArgs", payload.get("toolInput"))
    return {"tool": payload.get("toolName"), "args": a_dict(args), "call_id": a_text(payload.get("toolCallId"))}


def _parse_tool_result(payload: Payload) -> dict[str, Any]:
    result = a_dict(payload.get("toolResult"))
    failed = result.get("resultType") not in (None, "success")
    outcome = "denied" if result.get("resultType") in ("denied", "rejected") else "error" if failed else "ok"
    text = content(result.get("textResultForLlm"))
    error = a_text(text) if failed else None
    return {**_parse_tool(payload), "output": text, "outcome": outcome, "is_error": failed, "error": error}


def _parse_tool_failure(payload: Payload) -> dict[str, Any]:
    return _parse_tool(payload) | error_fields(_error(payload) or "the tool failed")


def _parse_permission(payload: Payload) -> dict[str, Any]:
    return {**(_parse_tool(payload) if "toolName" in payload else hook_json.parse_tool(payload)), "proposed": "ask"}


def _parse_turn_end(payload: Payload) -> dict[str, Any]:
    return {"stop_reason": a_text(payload.get("stopReason")) or "end_turn"}


def _parse_subagent(payload: Payload) -> dict[str, Any]:
    return {"agent_name": a_text(payload.get("agentName"))}


def _parse_failure(payload: Payload) -> dict[str, Any]:
    return {"error": _error(payload), "where": a_text(payload.get("errorContext"))}


def _error(payload: Payload) -> str | None:
    error = payload.get("error")
    return a_text(error) or a_text(a_dict(error).get("message"))


def _parse_transformed(payload: Payload) -> dict[str, Any]:
    return {"committed_len": len(a_text(payload.get("transformedPrompt")) or "")}


def _has_text_args(payload: Payload) -> bool:
    """Whether a tool takes one text in place of arguments, as apply_patch does."""
    return bool(_parse_tool(payload)["args"] == {"input": payload.get("toolArgs")})


def _refine_before_tool(effect: Effect, payload: Payload) -> Effect:
    """Deny new arguments that are no text, for a tool that takes a text."""
    if effect.args is None or effect.deny is not None or not _has_text_args(payload):
        return effect
    return effect if isinstance(effect.args.get("input"), str) else refuse_args(effect, payload.get("toolName"))


def _render_before_tool(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    if effect.deny is not None:
        return {"permissionDecision": "deny", "permissionDecisionReason": effect.deny}
    args = effect.args.get("input") if effect.args is not None and _has_text_args(payload) else effect.args
    decision = None if effect.allow is None else "allow"
    return without_none(modifiedArgs=args, permissionDecision=decision) | _render_context(effect, event, payload)


def _render_input(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    if effect.deny is not None:
        return hook_json.block_keys(effect.deny)
    prompt = None if effect.input is None else as_text(effect.input)
    return without_none(modifiedPrompt=prompt) | _render_context(effect, event, payload)


def _render_after_tool(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    reply = hook_json.block_keys(effect.deny)
    if effect.output is not None and effect.deny is None:
        reply = {"modifiedResult": {"resultType": "success", "textResultForLlm": as_text(effect.output)}}
    return reply | _render_context(effect, event, payload)


def _render_context(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    return without_none(additionalContext=hook_json.context_text(effect))


def _render_permission(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    if effect.deny is not None:
        interrupt = None if effect.stop is None else True
        return without_none(behavior="deny", message=effect.deny, interrupt=interrupt)
    return {"behavior": "allow"} if effect.allow is not None else {}


_PERMISSION = EventMapping(
    "before_permission", _parse_permission, _render_permission, ("deny", "allow", "resolved", "stop", "abort")
)
# The same events with Claude Code's JSON, which Copilot sends to hooks that subscribe to these names.
_PASCAL = {
    "SessionStart": EventMapping("session_start", hook_json.parse_session_start, no_reply),
    "SessionEnd": EventMapping("session_end", hook_json.parse_session_end, no_reply),
    "UserPromptSubmit": EventMapping("before_input", hook_json.parse_prompt, hook_json.render_input, ("deny",)),
    "PreToolUse": EventMapping(
        "before_tool", hook_json.parse_tool, hook_json.render_before_tool, ("deny", "args", "context")
    ),
    "PostToolUse": EventMapping("after_tool", hook_json.parse_tool_result, no_reply),
    "PostToolUseFailure": EventMapping("after_tool", hook_json.parse_tool_failure, no_reply),
    "PermissionRequest": _PERMISSION,
    "Stop": EventMapping("before_turn_end", hook_json.parse_turn_end, hook_json.render_turn_end, ("extend",)),
    "SubagentStart": EventMapping("subagent_start", hook_json.parse_subagent_start, no_reply),
    "SubagentStop": EventMapping("subagent_stop", hook_json.parse_subagent_stop, no_reply),
    "PreCompact": EventMapping("before_compact", hook_json.parse_compact, no_reply),
    "Notification": EventMapping("notification", hook_json.parse_notification, no_reply),
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
    notes=("It also runs the hooks in a project's .claude/settings.json. The daemon judges each step once.",),
    events={
        "sessionStart": EventMapping("session_start", hook_json.parse_session_start, _render_context, ("context",)),
        "sessionEnd": EventMapping("session_end", hook_json.parse_session_end, no_reply),
        "userPromptSubmitted": EventMapping(
            "before_input", hook_json.parse_prompt, _render_input, ("deny", "input", "context")
        ),
        "preToolUse": EventMapping(
            "before_tool",
            _parse_tool,
            _render_before_tool,
            ("deny", "allow", "args", "context"),
            _refine_before_tool,
            context_if_refused=False,
        ),
        "permissionRequest": _PERMISSION,
        "postToolUse": EventMapping(
            "after_tool", _parse_tool_result, _render_after_tool, ("deny", "output", "context")
        ),
        "postToolUseFailure": EventMapping("after_tool", _parse_tool_failure, _render_context, ("context",)),
        "agentStop": EventMapping("before_turn_end", _parse_turn_end, hook_json.render_turn_end, ("extend",)),
        "subagentStart": EventMapping("subagent_start", _parse_subagent, _render_context, ("context",)),
        "subagentStop": EventMapping("subagent_stop", _parse_subagent, hook_json.render_turn_end, ("extend",)),
        "preCompact": EventMapping("before_compact", hook_json.parse_compact, no_reply),
        "notification": EventMapping("notification", hook_json.parse_notification, no_reply),
        "errorOccurred": EventMapping("error", _parse_failure, no_reply),
        "userPromptTransformed": EventMapping("after_input", _parse_transformed, no_reply, installed=False),
        **{name: replace(mapping, installed=False) for name, mapping in _PASCAL.items()},
    },
)
