"""The JSON of Claude Code's hooks, which Codex, Qwen, Droid and others took over, each with changes of its own.

Reading is the same in all of them. What is said differs, so each host puts its answers together from these parts.
"""

from __future__ import annotations

from typing import Any

from ..errors import FairleadError
from ..lifecycle import Agent
from .effect import Effect
from .host import EXIT_2, Identity, Payload, a_dict, a_text, content, seconds

SOURCES = {"startup": "new", "clear": "new", "compact": "resume", "resume": "resume", "fork": "fork"}
OUTCOMES = {"success": "ok", "error": "error", "cancelled": "aborted"}


def identify(payload: Payload) -> Identity:
    name, agent_id = a_text(payload.get("agent_type")), a_text(payload.get("agent_id"))
    session_id = a_text(payload.get("session_id"))
    turn_id = a_text(payload.get("turn_id")) or a_text(payload.get("prompt_id"))
    # A subagent's parent is the session's own agent, unless the CLI says otherwise.
    agent = Agent(agent_id, name, a_text(payload.get("parent_agent_id")) or session_id) if agent_id else None
    own = Agent(session_id, None, a_text(payload.get("calling_session_id"))) if session_id else None
    return Identity(session_id, turn_id, a_text(payload.get("cwd")), agent or own)


# --- reading ------------------------------------------------------------------------------------


def session_start(payload: Payload) -> dict[str, Any]:
    return {"source": SOURCES.get(str(payload.get("source")), "new")}


def session_end(payload: Payload) -> dict[str, Any]:
    return {"reason": a_text(payload.get("reason"))}


def prompt(payload: Payload) -> dict[str, Any] | None:
    text = payload.get("prompt")
    if not isinstance(text, str):
        raise FairleadError("a prompt was expected, and what came has no text in its place")
    if not text:
        return None
    background = text.startswith("<task-notification>")  # how a subagent in the background comes back
    return {"input": text, "source": "background" if background else "user"}


def tool(payload: Payload) -> dict[str, Any]:
    return {
        "tool": payload.get("tool_name"),
        "args": a_dict(payload.get("tool_input")),
        "call_id": a_text(payload.get("tool_call_id")) or a_text(payload.get("tool_use_id")),
    }


def tool_done(payload: Payload) -> dict[str, Any]:
    response = payload.get("tool_response", payload.get("tool_result"))
    return {**tool(payload), "output": content(response), "duration": seconds(payload.get("duration_ms"))}


def tool_failed(payload: Payload) -> dict[str, Any]:
    error = a_text(payload.get("error")) or "the tool failed"
    outcome = "aborted" if payload.get("is_interrupt") else "error"
    about = {"outcome": outcome, "is_error": True, "error": error, "output": error}
    return {**tool(payload), **about, "duration": seconds(payload.get("duration_ms"))}


def permission(payload: Payload) -> dict[str, Any]:
    return {**tool(payload), "proposed": "ask"}


def permission_denied(payload: Payload) -> dict[str, Any]:
    return {**tool(payload), "granted": False}


def batch(payload: Payload) -> dict[str, Any]:
    calls = payload.get("tool_calls")
    return {"results": [_result(call) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []}


def _result(call: Payload) -> dict[str, Any]:
    """A call of a batch, as in every other host. Not all CLIs say how it has ended."""
    told, outcome = tool(call), OUTCOMES.get(str(call.get("status")))
    ended = {"outcome": outcome, "is_error": None if outcome is None else outcome != "ok"}
    about = {"args": told["args"], "output": content(call.get("tool_response"))}
    return {"tool": told["tool"], "call_id": told["call_id"], **ended, **about}


def turn_end(payload: Payload) -> dict[str, Any]:
    return {"stop_reason": a_text(payload.get("stop_reason")) or "end_turn"}


def compact(payload: Payload) -> dict[str, Any]:
    tokens = payload.get("token_count", payload.get("input_tokens"))
    return {"token_estimate": tokens if isinstance(tokens, int) else None}


def compacted(payload: Payload) -> dict[str, Any]:
    tokens = payload.get("token_count", payload.get("input_tokens"))
    return {"tokens_after": tokens if isinstance(tokens, int) else None}


def subagent_start(payload: Payload) -> dict[str, Any]:
    return {"agent_name": a_text(payload.get("agent_type")), "initial_message": a_text(payload.get("prompt"))}


def subagent_stop(payload: Payload) -> dict[str, Any]:
    return {"agent_name": a_text(payload.get("agent_type")), "reason": a_text(payload.get("reason"))}


def notification(payload: Payload) -> dict[str, Any]:
    return {
        "message": a_text(payload.get("message")) or "",
        "level": a_text(payload.get("notification_type")) or "info",
    }


def displayed(payload: Payload) -> dict[str, Any]:
    return {"content": a_text(payload.get("delta")) or a_text(payload.get("displayed_text")) or ""}


def failure(payload: Payload) -> dict[str, Any]:
    error = payload.get("error_details") or payload.get("error")
    return {"error": a_text(error) or "the turn failed", "where": "turn"}


# --- saying -------------------------------------------------------------------------------------


def joined(effect: Effect) -> str | None:
    """All context as one text."""
    return "\n\n".join(effect.context) or None


def specific(event: str, **keys: Any) -> dict[str, Any]:
    """`hookSpecificOutput`, if there is anything to put in it."""
    given = {key: value for key, value in keys.items() if value is not None}
    return {"hookSpecificOutput": {"hookEventName": event, **given}} if given else {}


def stopping(effect: Effect) -> dict[str, Any]:
    return {} if effect.stop is None else {"continue": False, "stopReason": effect.stop}


def blocking(reason: str | None) -> dict[str, Any]:
    return {} if reason is None else {"decision": "block", "reason": reason}


def say_before_tool(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    decision = "deny" if effect.deny is not None else "ask" if effect.ask is not None else None
    reason = effect.deny or effect.ask
    if decision is None and effect.allow is not None:
        decision, reason = "allow", effect.allow
    told = specific(
        event, permissionDecision=decision, permissionDecisionReason=reason,
        updatedInput=None if decision == "deny" else effect.args, additionalContext=joined(effect),
    )  # fmt: skip
    return told | stopping(effect)


def say_context(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    return specific(event, additionalContext=joined(effect))


def say_input(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    return blocking(effect.deny) | specific(event, additionalContext=joined(effect)) | stopping(effect)


def say_turn_end(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    return blocking(effect.extend) | stopping(effect)


def say_permission(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    if effect.deny is not None:
        return specific(event, decision={"behavior": "deny", "message": effect.deny})
    return specific(event, decision={"behavior": "allow"}) if effect.allow is not None else {}


def say_refusal(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    """For hosts that know no answer but exit 2, with the reason on stderr."""
    refused = effect.deny or effect.stop
    return {} if refused is None else {EXIT_2: refused}
