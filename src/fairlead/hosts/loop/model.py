"""Asks a model through pydantic-ai's direct API, so that the loop can use any provider that pydantic-ai knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import FairleadError
from ..frameworks.messages import Message, Reply, as_text
from ..frameworks.pydantic_messages import history_of, reply_of

if TYPE_CHECKING:
    from pydantic_ai.models import Model, ModelRequestParameters

    from .tools import Tool

__all__ = ["Message", "ModelFailed", "Reply", "as_text", "ask_model"]


class ModelFailed(FairleadError):
    """The model could not be asked."""


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
        from ...redaction.redactor import redact_text  # which takes a while to import, and is seldom needed

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


def _parameters(tools: Sequence[Tool]) -> ModelRequestParameters:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.parameters)
            for tool in tools
        ]
    )
