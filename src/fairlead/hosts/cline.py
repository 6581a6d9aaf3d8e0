"""Cline. Its hooks are programs named by event; a `cancel` ends the whole run."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ..lifecycle import Agent
from . import hook_json as said
from .effect import Effect
from .host import Host, Identity, Moment, Payload, a_dict, a_text, content, nothing, seconds, silence


def _identify(payload: Payload) -> Identity:
    task = a_text(payload.get("taskId"))
    session_id = a_text(a_dict(payload.get("sessionContext")).get("rootSessionId")) or task
    agent_id = a_text(payload.get("agent_id"))
    agent = Agent(agent_id, None, a_text(payload.get("parent_agent_id"))) if agent_id else None
    roots = payload.get("workspaceRoots")
    cwd = a_text(roots[0]) if isinstance(roots, list) and roots else None
    return Identity(session_id, None, cwd, agent)


def _tool(payload: Payload) -> dict[str, Any]:
    call = a_dict(payload.get("tool_call")) or a_dict(payload.get("tool_result"))
    return {"tool": call.get("name"), "args": a_dict(call.get("input")), "call_id": a_text(call.get("id"))}


def _tool_done(payload: Payload) -> dict[str, Any]:
    result = a_dict(payload.get("tool_result"))
    error = a_text(result.get("error"))
    failed = error is not None or a_dict(payload.get("postToolUse")).get("success") is False
    about = {"outcome": "error" if failed else "ok", "is_error": failed, "error": error}
    return {
        **_tool(payload), **about, "output": content(result.get("output")),
        "duration": seconds(result.get("durationMs")),
    }  # fmt: skip


def _input(payload: Payload) -> dict[str, Any] | None:
    text = a_dict(payload.get("userPromptSubmit")).get("prompt") or payload.get("prompt")
    return {"input": text} if isinstance(text, str) and text else None


def _reason(payload: Payload) -> dict[str, Any]:
    return {"reason": a_text(payload.get("reason"))}


def _failure(payload: Payload) -> dict[str, Any]:
    error = a_dict(payload.get("error"))
    return {"error": a_text(error.get("message")) or a_text(payload.get("error")), "where": "task"}


def _say(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    if effect.stop is not None:
        return {"cancel": True, "errorMessage": effect.stop}
    if effect.deny is not None:
        return _refusing(effect.deny, payload)
    text = said.joined(effect)
    told: dict[str, Any] = {} if text is None else {"context": text}
    return told if effect.args is None else told | {"overrideInput": effect.args}


def _refusing(reason: str, payload: Payload) -> dict[str, Any]:
    """A `cancel` would end the whole run, and the model would not hear why.

    Cline's own tools fail before they run if they are given no input. Any other tool, of an MCP server say, would run
    with none, so its call is cancelled.
    """
    if _tool(payload)["tool"] in _OWN:
        return {"overrideInput": None, "context": reason}
    return {"cancel": True, "errorMessage": reason}


_OWN = frozenset({
    "run_commands", "editor", "apply_patch", "read_files", "search_codebase", "fetch_web_content", "spawn_agent",
})  # fmt: skip


_STARTS = Moment("subagent_start", nothing, silence)
_STOPS = Moment("subagent_stop", _reason, silence)
_MOMENTS = {
    "TaskStart": Moment("session_start", nothing, silence, inside=_STARTS),
    "TaskResume": Moment("session_start", lambda payload: {"source": "resume"}, silence),
    "UserPromptSubmit": Moment("before_input", _input, silence),
    "PreToolUse": Moment("before_tool", _tool, _say, ("deny", "args", "stop", "abort", "context")),
    "PostToolUse": Moment("after_tool", _tool_done, _say, ("stop", "abort", "context")),
    "TaskComplete": Moment("before_turn_end", nothing, silence, inside=_STOPS),
    "TaskError": Moment("error", _failure, silence),
    "TaskCancel": Moment("turn_end", lambda payload: {"stop_reason": "cancelled"}, silence),
    "SessionShutdown": Moment("session_end", _reason, silence, inside=_STOPS),
}
_TOLD_AS = {
    "agent_start": "TaskStart", "agent_resume": "TaskResume", "prompt_submit": "UserPromptSubmit",
    "tool_call": "PreToolUse", "tool_result": "PostToolUse", "agent_end": "TaskComplete", "agent_error": "TaskError",
    "agent_abort": "TaskCancel", "session_shutdown": "SessionShutdown",
}  # fmt: skip
"""What Cline calls in its JSON the events whose names its files have."""

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
        "What the user says is not seen in headless runs, and nothing can be refused or added there.",
        "A denied call of a tool that is not Cline's own, of an MCP server say, ends the whole run.",
    ),
    moments=_MOMENTS | {told: replace(_MOMENTS[name], installed=False) for told, name in _TOLD_AS.items()},
)
