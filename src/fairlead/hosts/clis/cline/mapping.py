"""Cline. Its hooks are programs with the name of the event. A `cancel` ends the whole run."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ....lifecycle import Agent
from .. import hook_json
from ..effect import Effect
from ..mapping import (
    EventMapping,
    Host,
    Identity,
    Payload,
    a_dict,
    a_text,
    content,
    first_text,
    input_fields,
    no_fields,
    no_reply,
    to_seconds,
    without_none,
)


def _identify(payload: Payload) -> Identity:
    task = a_text(payload.get("taskId"))
    session_id = a_text(a_dict(payload.get("sessionContext")).get("rootSessionId")) or task
    agent_id = a_text(payload.get("agent_id"))
    agent = Agent(agent_id, None, a_text(payload.get("parent_agent_id"))) if agent_id else None
    return Identity(session_id, None, first_text(payload.get("workspaceRoots")), agent)


def _parse_tool(payload: Payload) -> dict[str, Any]:
    call = a_dict(payload.get("tool_call")) or a_dict(payload.get("tool_result"))
    return {"tool": call.get("name"), "args": a_dict(call.get("input")), "call_id": a_text(call.get("id"))}


def _parse_tool_result(payload: Payload) -> dict[str, Any]:
    result = a_dict(payload.get("tool_result"))
    error = a_text(result.get("error"))
    failed = error is not None or a_dict(payload.get("postToolUse")).get("success") is False
    fields = {"outcome": "error" if failed else "ok", "is_error": failed, "error": error}
    return {
        **_parse_tool(payload), **fields, "output": content(result.get("output")),
        "duration": to_seconds(result.get("durationMs")),
    }  # fmt: skip


def _parse_input(payload: Payload) -> dict[str, Any] | None:
    return input_fields(a_dict(payload.get("userPromptSubmit")).get("prompt") or payload.get("prompt"))


def _parse_end(payload: Payload) -> dict[str, Any]:
    return {"reason": a_text(payload.get("reason"))}


def _parse_failure(payload: Payload) -> dict[str, Any]:
    error = a_dict(payload.get("error"))
    return {"error": a_text(error.get("message")) or a_text(payload.get("error")), "where": "task"}


def _render(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    if effect.stop is not None:
        return {"cancel": True, "errorMessage": effect.stop}
    if effect.deny is not None:
        return _refusal(effect.deny, payload)
    return without_none(context=hook_json.context_text(effect), overrideInput=effect.args)


def _refusal(reason: str, payload: Payload) -> dict[str, Any]:
    """Refuse a call without `cancel` where possible: a `cancel` ends the run, and the model never reads the reason.

    Cline's own tools fail before they run if they get no input. Any other tool would run without input, so its call
    is cancelled.
    """
    if _parse_tool(payload)["tool"] in _OWN:
        return {"overrideInput": None, "context": reason}
    return {"cancel": True, "errorMessage": reason}


_OWN = frozenset({
    "run_commands", "editor", "apply_patch", "read_files", "search_codebase", "fetch_web_content", "spawn_agent",
})  # fmt: skip


_STARTS = EventMapping("subagent_start", no_fields, no_reply)
_STOPS = EventMapping("subagent_stop", _parse_end, no_reply)
_EVENTS = {
    "TaskStart": EventMapping("session_start", no_fields, no_reply, in_subagent=_STARTS),
    "TaskResume": EventMapping("session_start", lambda payload: {"source": "resume"}, no_reply),
    "UserPromptSubmit": EventMapping("before_input", _parse_input, no_reply),
    "PreToolUse": EventMapping(
        "before_tool", _parse_tool, _render, ("deny", "args", "stop", "abort", "context"), context_if_refused=False
    ),
    "PostToolUse": EventMapping(
        "after_tool", _parse_tool_result, _render, ("stop", "abort", "context"), context_if_refused=False
    ),
    "TaskComplete": EventMapping("before_turn_end", no_fields, no_reply, in_subagent=_STOPS),
    "TaskError": EventMapping("error", _parse_failure, no_reply),
    "TaskCancel": EventMapping("turn_end", lambda payload: {"stop_reason": "cancelled"}, no_reply),
    "SessionShutdown": EventMapping("session_end", _parse_end, no_reply, in_subagent=_STOPS),
}
_JSON_NAMES = {
    "agent_start": "TaskStart", "agent_resume": "TaskResume", "prompt_submit": "UserPromptSubmit",
    "tool_call": "PreToolUse", "tool_result": "PostToolUse", "agent_end": "TaskComplete", "agent_error": "TaskError",
    "agent_abort": "TaskCancel", "session_shutdown": "SessionShutdown",
}  # fmt: skip
"""The event names in Cline's JSON, and the file names of the same events."""

HOST = Host(
    name="cline",
    title="Cline",
    program="cline",
    package="cline",
    proven="3.0.65",
    identify=_identify,
    prefix="HOOK_CONTROL\t",
    tools=(
        ("*__*", "mcp", {"server": "*"}),
        ("fetch_web_content", "fetch", {"url": ("requests", "url")}),
        ("{ask_question,skills,team_*}", "agent", {}),
    ),
    headless={"before_input": "never fires"},
    notes=(
        "In headless runs, hooks do not see the user's message. They cannot refuse it or add to it.",
        "If a hook denies a tool that is not Cline's own (one of an MCP server, for example), the whole run ends.",
    ),
    events=_EVENTS | {name: replace(_EVENTS[file], installed=False) for name, file in _JSON_NAMES.items()},
)
