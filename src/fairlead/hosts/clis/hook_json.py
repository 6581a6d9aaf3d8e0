"""The JSON of Claude Code's hooks. Codex, Qwen, Droid and others adopted it, each with changes.

They all parse alike. Their replies differ, so each CLI composes its own from the parts here.
"""

from __future__ import annotations

from typing import Any

from ...errors import FairleadError
from ...lifecycle import Agent
from .effect import Effect
from .mapping import (
    EXIT_2,
    Identity,
    Payload,
    a_dict,
    a_text,
    content,
    error_fields,
    own_agent,
    to_seconds,
    without_none,
)

SOURCES = {"startup": "new", "clear": "new", "compact": "resume", "resume": "resume", "fork": "fork"}
OUTCOMES = {"success": "ok", "error": "error", "cancelled": "aborted"}


def identify(payload: Payload) -> Identity:
    name, agent_id = a_text(payload.get("agent_type")), a_text(payload.get("agent_id"))
    session_id = a_text(payload.get("session_id"))
    turn_id = a_text(payload.get("turn_id")) or a_text(payload.get("prompt_id"))
    # A subagent's parent is the session's main agent, unless the CLI names another.
    agent = Agent(agent_id, name, a_text(payload.get("parent_agent_id")) or session_id) if agent_id else None
    main = own_agent(session_id, a_text(payload.get("calling_session_id")))
    return Identity(session_id, turn_id, a_text(payload.get("cwd")), agent or main)


# --- parsing ------------------------------------------------------------------------------------


def parse_session_start(payload: Payload) -> dict[str, Any]:
    return {"source": SOURCES.get(str(payload.get("source")), "new")}


def parse_session_end(payload: Payload) -> dict[str, Any]:
    return {"reason": a_text(payload.get("reason"))}


def parse_prompt(payload: Payload) -> dict[str, Any] | None:
    text = payload.get("prompt")
    if not isinstance(text, str):
        raise FairleadError("a prompt was expected, and what came has no text in its place")
    if not text:
        return None
    background = text.startswith("<task-notification>")  # the report of a background subagent
    return {"input": text, "source": "background" if background else "user"}


def parse_tool(payload: Payload) -> dict[str, Any]:
    return {
        "tool": payload.get("tool_name"),
        "args": a_dict(payload.get("tool_input")),
        "call_id": a_text(payload.get("tool_call_id")) or a_text(payload.get("tool_use_id")),
    }


def parse_tool_result(payload: Payload) -> dict[str, Any]:
    response = payload.get("tool_response", payload.get("tool_result"))
    return {**parse_tool(payload), "output": content(response), "duration": to_seconds(payload.get("duration_ms"))}


def parse_tool_failure(payload: Payload) -> dict[str, Any]:
    error = a_text(payload.get("error")) or "the tool failed"
    fields = error_fields(error, "aborted" if payload.get("is_interrupt") else "error")
    return {**parse_tool(payload), **fields, "duration": to_seconds(payload.get("duration_ms"))}


def parse_permission(payload: Payload) -> dict[str, Any]:
    return {**parse_tool(payload), "proposed": "ask"}


def parse_permission_denied(payload: Payload) -> dict[str, Any]:
    return {**parse_tool(payload), "granted": False}


def parse_batch(payload: Payload) -> dict[str, Any]:
    calls = payload.get("tool_calls")
    calls = calls if isinstance(calls, list) else []
    return {"results": [_parse_batch_call(call) for call in calls if isinstance(call, dict)]}


def _parse_batch_call(call: Payload) -> dict[str, Any]:
    """Parse one call of a batch. Some CLIs do not report its outcome."""
    fields, outcome = parse_tool(call), OUTCOMES.get(str(call.get("status")))
    return {
        "tool": fields["tool"], "call_id": fields["call_id"], "outcome": outcome,
        "is_error": None if outcome is None else outcome != "ok", "args": fields["args"],
        "output": content(call.get("tool_response")),
    }  # fmt: skip


def parse_turn_end(payload: Payload) -> dict[str, Any]:
    return {"stop_reason": a_text(payload.get("stop_reason")) or "end_turn"}


def parse_compact(payload: Payload) -> dict[str, Any]:
    return {"token_estimate": _tokens(payload)}


def parse_compact_done(payload: Payload) -> dict[str, Any]:
    return {"tokens_after": _tokens(payload)}


def _tokens(payload: Payload) -> int | None:
    tokens = payload.get("token_count", payload.get("input_tokens"))
    return tokens if isinstance(tokens, int) else None


def parse_subagent_start(payload: Payload) -> dict[str, Any]:
    return {"agent_name": a_text(payload.get("agent_type")), "initial_message": a_text(payload.get("prompt"))}


def parse_subagent_stop(payload: Payload) -> dict[str, Any]:
    return {"agent_name": a_text(payload.get("agent_type")), "reason": a_text(payload.get("reason"))}


def parse_notification(payload: Payload) -> dict[str, Any]:
    return {
        "message": a_text(payload.get("message")) or "",
        "level": a_text(payload.get("notification_type")) or "info",
    }


def parse_output(payload: Payload) -> dict[str, Any]:
    return {"content": a_text(payload.get("delta")) or a_text(payload.get("displayed_text")) or ""}


def parse_turn_failure(payload: Payload) -> dict[str, Any]:
    error = payload.get("error_details") or payload.get("error")
    return {"error": a_text(error) or "the turn failed", "where": "turn"}


# --- rendering ----------------------------------------------------------------------------------


def context_text(effect: Effect) -> str | None:
    """Return all context as one text."""
    return "\n\n".join(effect.context) or None


def specific(event: str, **keys: Any) -> dict[str, Any]:
    """Return `hookSpecificOutput` with the keys that have a value, or nothing if none has."""
    present = without_none(**keys)
    return {"hookSpecificOutput": {"hookEventName": event, **present}} if present else {}


def stop_keys(effect: Effect) -> dict[str, Any]:
    return {} if effect.stop is None else {"continue": False, "stopReason": effect.stop}


def block_keys(reason: str | None, decision: str = "block") -> dict[str, Any]:
    return {} if reason is None else {"decision": decision, "reason": reason}


def render_before_tool(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    decision = "deny" if effect.deny is not None else "ask" if effect.ask is not None else None
    reason = effect.deny or effect.ask
    if decision is None and effect.allow is not None:
        decision, reason = "allow", effect.allow
    reply = specific(
        event, permissionDecision=decision, permissionDecisionReason=reason,
        updatedInput=None if decision == "deny" else effect.args, additionalContext=context_text(effect),
    )  # fmt: skip
    return reply | stop_keys(effect)


def render_context(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    return specific(event, additionalContext=context_text(effect))


def render_stop(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    return render_context(effect, event, payload) | stop_keys(effect)


def render_input(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    return block_keys(effect.deny) | render_stop(effect, event, payload)


def render_turn_end(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    return block_keys(effect.extend) | stop_keys(effect)


def render_permission(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    if effect.deny is not None:
        return specific(event, decision={"behavior": "deny", "message": effect.deny})
    return specific(event, decision={"behavior": "allow"}) if effect.allow is not None else {}


def render_exit_2(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    """For CLIs that take a refusal only as exit code 2, with the reason on stderr."""
    refused = effect.deny or effect.stop
    return {} if refused is None else {EXIT_2: refused}
