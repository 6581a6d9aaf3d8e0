"""Gemini CLI: how fairlead reads each of its events, and how it answers."""

from __future__ import annotations

from typing import Any

from .. import hook_json
from ..effect import Effect
from ..mapping import EventMapping, Host, Payload, a_dict, a_text, as_text, content, no_reply, no_step, without_none


def _parse_model(payload: Payload) -> dict[str, Any]:
    request = a_dict(payload.get("llm_request"))
    messages = request.get("messages")
    messages = messages if isinstance(messages, list) else []
    return {"model": a_text(request.get("model")), "messages": messages, "message_count": len(messages)}


def _parse_model_result(payload: Payload) -> dict[str, Any]:
    response = a_dict(payload.get("llm_response"))
    usage = response.get("usageMetadata")
    fields = {"model": _parse_model(payload)["model"], "output": content(response.get("text"))}
    return {**fields, "usage": usage if isinstance(usage, dict) else None}


def _parse_tool_result(payload: Payload) -> dict[str, Any]:
    """Parse a result. Gemini reports a failed tool like any other, with an error in its output."""
    fields, error = hook_json.parse_tool_result(payload), a_dict(a_dict(payload.get("tool_response")).get("error"))
    if not error:
        return fields
    return {**fields, "outcome": "error", "is_error": True, "error": a_text(error.get("message")) or "the tool failed"}


def _render_before_tool(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    args = None if effect.deny is not None else effect.args
    return (
        hook_json.block_keys(effect.deny, "deny")
        | hook_json.specific(event, tool_input=args)
        | hook_json.stop_keys(effect)
    )


def _render(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    return hook_json.block_keys(effect.deny, "deny") | hook_json.render_stop(effect, event, payload)


def _render_turn_end(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    return hook_json.block_keys(effect.extend, "deny") | hook_json.stop_keys(effect)


def _render_before_model(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    if effect.assistant is not None and effect.deny is None:
        candidate = {"content": {"role": "model", "parts": [as_text(effect.assistant)]}, "finishReason": "STOP"}
        # Gemini uses an answer only together with a refusal of the call.
        return {"decision": "deny", "reason": "answered"} | hook_json.specific(
            event, llm_response={"candidates": [candidate]}
        )
    request = without_none(model=effect.model, messages=effect.messages)
    return (
        hook_json.block_keys(effect.deny, "deny")
        | hook_json.specific(event, llm_request=request or None)
        | hook_json.stop_keys(effect)
    )


HOST = Host(
    name="gemini",
    title="Gemini CLI",
    program="gemini",
    package="@google/gemini-cli",
    proven="0.61.0",
    identify=hook_json.identify,
    shows_warnings=True,
    project="GEMINI_PROJECT_DIR",
    events={
        "SessionStart": EventMapping("session_start", hook_json.parse_session_start, _render, ("context",)),
        "SessionEnd": EventMapping("session_end", hook_json.parse_session_end, no_reply),
        "BeforeAgent": EventMapping(
            "before_input", hook_json.parse_prompt, _render, ("deny", "stop", "abort", "context")
        ),
        "BeforeModel": EventMapping(
            "before_model",
            _parse_model,
            _render_before_model,
            ("deny", "stop", "abort", "model", "messages", "assistant"),
        ),
        "BeforeTool": EventMapping(
            "before_tool", hook_json.parse_tool, _render_before_tool, ("deny", "args", "stop", "abort")
        ),
        "AfterTool": EventMapping("after_tool", _parse_tool_result, _render, ("deny", "stop", "abort", "context")),
        "AfterAgent": EventMapping(
            "before_turn_end", hook_json.parse_turn_end, _render_turn_end, ("extend", "stop", "abort")
        ),
        "AfterModel": EventMapping(
            "after_model", _parse_model_result, no_reply, installed=False
        ),  # fires for every piece of an answer
        "BeforeToolSelection": EventMapping("before_model", no_step, no_reply, installed=False),
        "PreCompress": EventMapping("before_compact", hook_json.parse_compact, no_reply),
        "Notification": EventMapping("notification", hook_json.parse_notification, no_reply),
    },
    tools=(
        ("invoke_agent", "agent", {}),
        ("{complete_task,update_topic,write_todos,enter_plan_mode,exit_plan_mode,activate_skill}", "agent", {}),
    ),
    notes=("An `extend` starts a new turn: `BeforeAgent` fires again, with the reason as the prompt.",),
)
