"""Plain messages to and from those of pydantic-ai: for its adapter, and for the loop, which asks models through it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...errors import FairleadError
from ...session import new_id
from .messages import Message, Reply, as_text

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse

_STOP_REASONS = {"length": "max_tokens", "content_filter": "refusal"}


def reply_of(response: ModelResponse) -> Reply:
    """Read a response of pydantic-ai's."""
    calls = [
        {"id": call.tool_call_id or new_id("call"), "tool": call.tool_name, "args": arguments(call)}
        for call in response.tool_calls
    ]
    usage = {"input_tokens": response.usage.input_tokens, "output_tokens": response.usage.output_tokens}
    reason = _STOP_REASONS.get(response.finish_reason or "", "end_turn")
    return Reply(response.text or "", usage, reason, calls)


def arguments(call: Any) -> dict[str, Any]:
    """Return the arguments of a call.

    If the model wrote no JSON object, the tool is called with the text instead, and reports what is wrong with it.
    """
    try:
        args: Any = call.args_as_dict()
    except Exception:
        args = None
    return args if isinstance(args, dict) else {"arguments": call.args}


def history_of(system_prompt: str | None, messages: Sequence[Message]) -> list[ModelMessage]:
    """Turn plain messages into those of pydantic-ai."""
    from pydantic_ai.messages import (
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )

    history: list[ModelMessage] = []
    parts: list[Any] = [SystemPromptPart(system_prompt)] if system_prompt else []
    for message in messages:
        role, content = message.get("role"), as_text(message.get("content"))
        if role == "assistant":
            if parts:
                history.append(ModelRequest(parts))
                parts = []
            calls = [ToolCallPart(call["tool"], call["args"], call["id"]) for call in message.get("tool_calls") or ()]
            history.append(ModelResponse([*([TextPart(content)] if content or not calls else []), *calls]))
        elif role == "tool":
            outcome: Any = "failed" if message.get("is_error") else "success"
            parts.append(ToolReturnPart(message["tool"], content, message["call_id"], outcome=outcome))
        elif role == "system":
            parts.append(SystemPromptPart(content))
        elif role == "user":
            parts.append(UserPromptPart(content))
        else:
            raise FairleadError(f"a message has role user, assistant, tool or system, not {role!r}")
    history.append(ModelRequest(parts))
    return history
