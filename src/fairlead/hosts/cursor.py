"""Cursor. From its documents: nobody has seen this run."""

from __future__ import annotations

from typing import Any

from ..lifecycle import Agent
from . import hook_json as said
from .effect import Effect
from .host import Host, Identity, Moment, Payload, a_text, content, nothing, seconds, silence


def _identify(payload: Payload) -> Identity:
    session_id = a_text(payload.get("conversation_id"))
    roots = payload.get("workspace_roots")
    cwd = a_text(payload.get("cwd")) or (a_text(roots[0]) if isinstance(roots, list) and roots else None)
    return Identity(session_id, a_text(payload.get("generation_id")), cwd, Agent(session_id) if session_id else None)


def _tool_done(payload: Payload) -> dict[str, Any]:
    output = payload.get("tool_output", payload.get("tool_response"))
    return {**said.tool(payload), "output": content(output), "duration": seconds(payload.get("duration"))}


def _tool_failed(payload: Payload) -> dict[str, Any]:
    error = a_text(payload.get("error_message")) or "the tool failed"
    return {**said.tool(payload), "outcome": "error", "is_error": True, "error": error, "output": error}


def _subagent(payload: Payload) -> dict[str, Any]:
    return {"agent_name": a_text(payload.get("subagent_type")), "initial_message": a_text(payload.get("task"))}


def _subagent_stop(payload: Payload) -> dict[str, Any]:
    return {"agent_name": a_text(payload.get("subagent_type")), "reason": a_text(payload.get("status"))}


def _say_before_tool(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    refused = effect.deny or effect.ask
    if refused is not None:
        word = "deny" if effect.deny is not None else "ask"
        return {"permission": word, "user_message": refused, "agent_message": refused}
    told: dict[str, Any] = {} if effect.args is None else {"updated_input": effect.args}
    return told | ({"permission": "allow"} if effect.allow is not None or effect.args is not None else {})


def _say_context(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    text = said.joined(effect)
    return {} if text is None else {"additional_context": text}


def _say_input(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    refused = effect.deny or effect.stop
    return {} if refused is None else {"continue": False, "user_message": refused}


def _say_turn_end(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    return {} if effect.extend is None else {"followup_message": effect.extend}


HOST = Host(
    name="cursor",
    title="Cursor",
    program="cursor-agent",
    identify=_identify,
    project="CURSOR_PROJECT_DIR",
    moments={
        "sessionStart": Moment("session_start", nothing, _say_context, ("context",)),
        "sessionEnd": Moment("session_end", said.session_end, silence),
        "beforeSubmitPrompt": Moment("before_input", said.prompt, _say_input, ("deny", "stop", "abort")),
        "preToolUse": Moment("before_tool", said.tool, _say_before_tool, ("deny", "allow", "args")),
        "postToolUse": Moment("after_tool", _tool_done, _say_context, ("context",)),
        "postToolUseFailure": Moment("after_tool", _tool_failed, silence),
        "subagentStart": Moment("subagent_start", _subagent, _say_before_tool, ("deny",)),
        "subagentStop": Moment("subagent_stop", _subagent_stop, _say_turn_end, ("extend",)),
        "preCompact": Moment("before_compact", said.compact, silence),
        "stop": Moment("before_turn_end", said.turn_end, _say_turn_end, ("extend",)),
    },
)
