"""Asking a model, through pydantic-ai's direct API, so that any provider it knows can be used.

The loop speaks in plain messages, which hooks can read and change:

    {"role": "user", "content": "..."}
    {"role": "assistant", "content": "...", "tool_calls": [{"id": "...", "tool": "...", "args": {...}}]}
    {"role": "tool", "call_id": "...", "tool": "...", "content": "...", "is_error": false}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ..decision import Context
from ..errors import FairleadError
from ..session import new_id

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters

    from .tools import Tool

Message = dict[str, Any]


class ModelFailed(FairleadError):
    """The model could not be asked."""


class Reply(msgspec.Struct):
    """What a model answered."""

    text: str
    tool_calls: list[dict[str, Any]] = []
    usage: dict[str, int] = {}
    stop_reason: str = "end_turn"
    context: Sequence[Context] = ()  # what hooks had to say about it


_STOP_REASONS = {"length": "max_tokens", "content_filter": "refusal"}


async def ask_model(
    model: Model | str,
    system_prompt: str | None,
    messages: Sequence[Message],
    tools: Sequence[Tool],
    on_text: Callable[[str], None] | None = None,
) -> Reply:
    """One request. With `on_text` the answer is streamed, and each piece of its text handed over as it comes."""
    from pydantic_ai.direct import model_request, model_request_stream

    try:
        history, parameters = history_of(system_prompt, messages), _parameters(tools)
        if on_text is None:
            response = await model_request(model, history, model_request_parameters=parameters)
        else:
            async with model_request_stream(model, history, model_request_parameters=parameters) as stream:
                async for event in stream:
                    if text := _text_of(event):
                        on_text(text)
                response = stream.get()
        return reply_of(response)
    except Exception as error:
        from ..redaction import redact_text  # which takes a while to import, and is seldom needed

        # Some servers repeat the key they refuse, and a traceback would show the cause with all it says.
        raise ModelFailed(redact_text(_explain(error, model))) from None


def _text_of(event: Any) -> str:
    if getattr(event, "event_kind", None) not in ("part_start", "part_delta"):
        return ""  # the end of a part has all of its text again
    part = getattr(event, "part", None) or getattr(event, "delta", None)
    kind = getattr(part, "part_kind", None) or getattr(part, "part_delta_kind", None)
    return (getattr(part, "content", None) or getattr(part, "content_delta", None) or "") if kind == "text" else ""


def _explain(error: Exception, model: Any) -> str:
    """What went wrong, and the way out."""
    model = model if isinstance(model, str) else getattr(model, "model_name", model)
    text = str(error)
    status = getattr(error, "status_code", None)
    if "api_key" in text.lower() or "api key" in text.lower() or status in (401, 403):
        return f"the model {model} needs a key: {text}"
    if status == 404 or "Unknown model" in text or "Unknown provider" in text:
        return f"there is no model {model}: {text}"
    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None and len(causes) < 10:
        causes.append(cause)  # type: ignore[arg-type]
    if any(isinstance(cause, ConnectionError) or "onnect" in type(cause).__name__ for cause in causes):
        return f"the model {model} cannot be reached: {causes[-1] or text}"
    return f"the model {model} failed: {text or type(error).__name__}"


def reply_of(response: ModelResponse) -> Reply:
    calls = [
        {"id": call.tool_call_id or new_id("call"), "tool": call.tool_name, "args": arguments(call)}
        for call in response.tool_calls
    ]
    usage = {"input_tokens": response.usage.input_tokens, "output_tokens": response.usage.output_tokens}
    reason = _STOP_REASONS.get(response.finish_reason or "", "end_turn")
    return Reply(response.text or "", calls, usage, reason)


def arguments(call: Any) -> dict[str, Any]:
    """What the model gave. A model that gives no object has its text shown to the tool, which will complain."""
    try:
        args: Any = call.args_as_dict()
    except Exception:
        args = None
    return args if isinstance(args, dict) else {"arguments": call.args}


def _parameters(tools: Sequence[Tool]) -> ModelRequestParameters:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.parameters)
            for tool in tools
        ]
    )


def history_of(system_prompt: str | None, messages: Sequence[Message]) -> list[ModelMessage]:
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
    asked: list[Any] = [SystemPromptPart(system_prompt)] if system_prompt else []
    for message in messages:
        role, content = message.get("role"), as_text(message.get("content"))
        if role == "assistant":
            if asked:
                history.append(ModelRequest(asked))
                asked = []
            calls = [ToolCallPart(call["tool"], call["args"], call["id"]) for call in message.get("tool_calls") or ()]
            history.append(ModelResponse([*([TextPart(content)] if content or not calls else []), *calls]))
        elif role == "tool":
            outcome: Any = "failed" if message.get("is_error") else "success"
            asked.append(ToolReturnPart(message["tool"], content, message["call_id"], outcome=outcome))
        elif role == "system":
            asked.append(SystemPromptPart(content))
        elif role == "user":
            asked.append(UserPromptPart(content))
        else:
            raise FairleadError(f"a message has role user, assistant, tool or system, not {role!r}")
    history.append(ModelRequest(asked))
    return history


def as_text(content: Any) -> str:
    """What a model or a user can read of some content: its texts, or else its JSON."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        return "\n".join(as_text(block) for block in content)
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        return str(content["text"])
    return msgspec.json.encode(content, enc_hook=str).decode()


def as_messages(context: Iterable[Context]) -> list[Message]:
    """What hooks have to say to the model, as messages."""
    return [{"role": "user", "content": text.signed, "hook": text.hook} for text in context]
