"""Gemini CLI."""

from __future__ import annotations

from typing import Any

from . import hook_json as said
from .effect import Effect
from .host import Host, Moment, Payload, a_dict, a_text, as_text, content, silence, unheard


def _model(payload: Payload) -> dict[str, Any]:
    request = a_dict(payload.get("llm_request"))
    messages = request.get("messages")
    messages = messages if isinstance(messages, list) else []
    return {"model": a_text(request.get("model")), "messages": messages, "message_count": len(messages)}


def _model_done(payload: Payload) -> dict[str, Any]:
    response = a_dict(payload.get("llm_response"))
    usage = response.get("usageMetadata")
    about = {"model": _model(payload)["model"], "output": content(response.get("text"))}
    return {**about, "usage": usage if isinstance(usage, dict) else None}


def _tool_done(payload: Payload) -> dict[str, Any]:
    """A tool that failed is told of as one that did not, but for the error in what it gave back."""
    about, error = said.tool_done(payload), a_dict(a_dict(payload.get("tool_response")).get("error"))
    if not error:
        return about
    return {**about, "outcome": "error", "is_error": True, "error": a_text(error.get("message")) or "the tool failed"}


def _refusing(effect: Effect) -> dict[str, Any]:
    return {} if effect.deny is None else {"decision": "deny", "reason": effect.deny}


def _say_before_tool(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    args = None if effect.deny is not None or effect.args is None else effect.args
    return _refusing(effect) | said.specific(event, tool_input=args) | said.stopping(effect)


def _say(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    return _refusing(effect) | said.specific(event, additionalContext=said.joined(effect)) | said.stopping(effect)


def _say_turn_end(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    kept = {} if effect.extend is None else {"decision": "deny", "reason": effect.extend}
    return kept | said.stopping(effect)


def _say_before_model(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    if effect.assistant is not None and effect.deny is None:
        candidate = {"content": {"role": "model", "parts": [as_text(effect.assistant)]}, "finishReason": "STOP"}
        # An answer is only taken together with a refusal of the call.
        return {"decision": "deny", "reason": "answered"} | said.specific(
            event, llm_response={"candidates": [candidate]}
        )
    wanted = {"model": effect.model, "messages": effect.messages}
    request = {key: value for key, value in wanted.items() if value is not None}
    return _refusing(effect) | said.specific(event, llm_request=request or None) | said.stopping(effect)


HOST = Host(
    name="gemini",
    title="Gemini CLI",
    program="gemini",
    package="@google/gemini-cli",
    proven="0.61.0",
    identify=said.identify,
    warns=True,
    project="GEMINI_PROJECT_DIR",
    moments={
        "SessionStart": Moment("session_start", said.session_start, _say, ("context",)),
        "SessionEnd": Moment("session_end", said.session_end, silence),
        "BeforeAgent": Moment("before_input", said.prompt, _say, ("deny", "stop", "abort", "context")),
        "BeforeModel": Moment(
            "before_model", _model, _say_before_model, ("deny", "stop", "abort", "model", "messages", "assistant")
        ),
        "BeforeTool": Moment("before_tool", said.tool, _say_before_tool, ("deny", "args", "stop", "abort")),
        "AfterTool": Moment("after_tool", _tool_done, _say, ("deny", "stop", "abort", "context")),
        "AfterAgent": Moment("before_turn_end", said.turn_end, _say_turn_end, ("extend", "stop", "abort")),
        "AfterModel": Moment("after_model", _model_done, silence, installed=False),  # for each piece of an answer
        "BeforeToolSelection": Moment("before_model", unheard, silence, installed=False),
        "PreCompress": Moment("before_compact", said.compact, silence),
        "Notification": Moment("notification", said.notification, silence),
    },
    tools=(
        ("invoke_agent", "agent", {}),
        ("{complete_task,update_topic,write_todos,enter_plan_mode,exit_plan_mode,activate_skill}", "agent", {}),
    ),
    notes=("A turn that is kept alive begins a new one: `BeforeAgent` fires again, with the reason as the prompt.",),
)
