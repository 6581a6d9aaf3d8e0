"""Messages of pydantic-ai as plain messages that hooks read, and back."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_ai.messages import (
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturn,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_core import from_json, to_json, to_jsonable_python

from ....errors import FairleadError
from ..messages import Message, as_text
from ..pydantic_messages import history_of
from ..pydantic_messages import reply_of as loop_reply
from ..turn import ModelResult, Reply, rewritten


class NoOutput(FairleadError):
    """A hook has ended the run of an agent with a structured output, so there is no output."""


# --- answers --------------------------------------------------------------------------------------


def reply_of(response: ModelResponse) -> Reply:
    reply = loop_reply(response)
    return Reply(reply.text, reply.usage, reply.stop_reason)


def response_from(result: ModelResult, parameters: ModelRequestParameters) -> ModelResponse:
    """The answer, with the text that hooks give it."""
    if result.native is None:
        return with_text(ModelResponse([], model_name="fairlead"), result.text, parameters)
    response: ModelResponse = result.native
    return response if result.text is None else with_text(response, result.text, parameters)


def output_tools(parameters: ModelRequestParameters) -> set[str]:
    """The tools with which a model gives a structured output."""
    return {tool.name for tool in parameters.output_tools}


def is_final(response: ModelResponse, parameters: ModelRequestParameters) -> bool:
    """Whether the run would end with it."""
    calls = {call.tool_name for call in response.tool_calls}
    if calls:
        return not calls.isdisjoint(output_tools(parameters))
    return bool(response.text) and parameters.allow_text_output  # else pydantic-ai asks again


def text_of(response: ModelResponse, parameters: ModelRequestParameters) -> str:
    """The text of a final answer, as the user sees it."""
    final = (call for call in response.tool_calls if call.tool_name in output_tools(parameters))
    call = next(final, None)
    return response.text or "" if call is None else _bare(call.args_as_json_str(), _wrapping(call, parameters))


WRAPPED = "response"
"""The key under which a model gives an output that is no JSON object."""


def _wrapping(call: ToolCallPart, parameters: ModelRequestParameters) -> str | None:
    keys = (tool.outer_typed_dict_key for tool in parameters.output_tools if tool.name == call.tool_name)
    return next(keys, None)


def _bare(text: str, key: str | None) -> str:
    """An output as the user gets it, without the key under which the model gives it."""
    with suppress(ValueError):
        value = from_json(text) if key is not None else None
        if isinstance(value, dict) and list(value) == [key]:
            return to_json(value[key]).decode()
    return text


def _wrapped(text: str, key: str | None) -> str:
    if key is None:
        return text
    value = from_json(text)
    return text if isinstance(value, dict) and list(value) == [key] else to_json({key: value}).decode()


def with_text(response: ModelResponse, text: str | None, parameters: ModelRequestParameters) -> ModelResponse:
    """The answer with another text. Where the output is structured, the text must be that, as JSON."""
    text = text or " "  # pydantic-ai takes an empty text for no answer
    parts: list[Any] = list(response.parts)
    finals = [part for part in parts if isinstance(part, ToolCallPart) and part.tool_name in output_tools(parameters)]
    wants_text = parameters.allow_text_output and parameters.output_mode in ("text", "tool")
    if finals or not (wants_text or response.tool_calls):
        try:
            from_json(text)
        except ValueError:
            raise NoOutput(text.strip() or "a hook withholds the output") from None
    if finals:
        args = [_wrapped(text, _wrapping(part, parameters)) for part in finals]
        changed = {id(part): replace(part, args=one) for part, one in zip(finals, args, strict=True)}
        return replace(response, parts=[changed.get(id(part), part) for part in parts])
    if parameters.output_tools and not (wants_text or response.tool_calls):
        part = ToolCallPart(parameters.output_tools[0].name, text)
        return replace(response, parts=[replace(part, args=_wrapped(text, _wrapping(part, parameters)))])
    if parameters.output_object is not None and not (wants_text or response.tool_calls):
        properties = parameters.output_object.json_schema.get("properties") or {}
        text = _wrapped(text, WRAPPED if list(properties) == [WRAPPED] else None)
    at = next((number for number, part in enumerate(parts) if isinstance(part, TextPart)), 0)
    kept = [[part for part in some if not isinstance(part, TextPart)] for some in (parts[:at], parts[at:])]
    return replace(response, parts=[*kept[0], TextPart(text), *kept[1]])


def output_text(output: Any) -> str:
    return output if isinstance(output, str) else to_json(output, fallback=str).decode()


def same(text: str, other: str | None) -> bool:
    """Whether two texts are equal, as they are or as JSON."""
    if text == other or other is None:
        return text == other
    try:
        return bool(from_json(_bare(text, WRAPPED)) == from_json(_bare(other, WRAPPED)))
    except ValueError:
        return False


def as_output(text: str | None, output: Any) -> Any:
    """The text that hooks give for an output, as a value of the output's type."""
    if isinstance(output, str):
        return text or ""
    try:
        return TypeAdapter(type(output)).validate_json(text or "")
    except ValidationError:
        raise NoOutput(text or "a hook withholds the output") from None


# --- the conversation -----------------------------------------------------------------------------


def plain(messages: Sequence[ModelMessage]) -> list[Message]:
    return [message for _, message in _units(messages)]


def _units(messages: Sequence[ModelMessage]) -> list[tuple[Any, Message]]:
    """Parts of requests, and whole responses, each with its plain message."""
    found: list[tuple[Any, Message]] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            reply = loop_reply(message)
            calls = {"tool_calls": reply.tool_calls} if reply.tool_calls else {}
            found.append((message, {"role": "assistant", "content": reply.text, **calls}))
        else:
            found += [(part, plain) for part in message.parts if (plain := plain_part(part)) is not None]
    return found


def plain_part(part: Any) -> Message | None:
    """A part of a request as a plain message. None for what is not conversation, such as the system prompt."""
    kind: str = part.part_kind
    if kind == "user-prompt":
        return {"role": "user", "content": shown(part.content)}
    if kind == "tool-return":
        is_error = part.outcome not in ("success", "interrupted")
        about = {"call_id": part.tool_call_id, "tool": part.tool_name}
        return {"role": "tool", **about, "content": part.model_response_str(), "is_error": is_error}
    if kind == "retry-prompt" and part.tool_name is not None:  # pydantic-ai 2 returns it from the tool
        about = {"call_id": part.tool_call_id, "tool": part.tool_name}
        return {"role": "tool", **about, "content": part.model_response(), "is_error": True}
    return {"role": "user", "content": part.model_response()} if kind in ("retry-prompt", "retry-feedback") else None


def rewrite(messages: Sequence[ModelMessage], changed: Sequence[Message]) -> list[ModelMessage]:
    """The messages to send after a hook has changed them. What is not conversation comes first."""
    units = _units(messages)
    pending: list[Any] = [
        part for m in messages if isinstance(m, ModelRequest) for part in m.parts if plain_part(part) is None
    ]
    sent: list[ModelMessage] = []
    for one in rewritten([part for part, _ in units], [plain for _, plain in units], changed, _native):
        if isinstance(one, ModelResponse):
            sent += [ModelRequest(pending), one] if pending else [one]
            pending = []
        else:
            pending.append(one)
    last: Any = messages[-1]
    return [*sent, replace(last, parts=pending)]


def _native(message: Message) -> Any:
    native = history_of(None, [message])[0]
    return native if isinstance(native, ModelResponse) else native.parts[0]


# --- the user's prompt, and tool outputs ----------------------------------------------------------


def shown(content: Any) -> Any:
    """The user's prompt, as hooks read it: texts as they are, everything else as an object."""
    if content is None or isinstance(content, str):
        return content or ""
    return [one if isinstance(one, str) else _block(one) for one in content]


def _block(one: Any) -> dict[str, Any]:
    if data := getattr(one, "data", None):
        return {"kind": one.kind, "media_type": one.media_type, "size": len(data)}
    block = to_jsonable_python(one, fallback=str, serialize_unknown=True)
    return block if isinstance(block, dict) else {"text": as_text(block)}


def prompt_from(changed: Any, content: Any) -> Any:
    """A prompt that a hook has changed, as pydantic-ai has it."""
    if isinstance(changed, str):
        return changed
    blocks = [one for one in content or () if not isinstance(one, str)]
    native = {to_json(_block(one)): one for one in blocks}
    return [one if isinstance(one, str) else native.get(to_json(one), as_text(one)) for one in changed]


def replace_prompt(messages: Sequence[ModelMessage], old: Sequence[Any], new: Any) -> bool:
    """Put another prompt into the run's own request. Gives whether the user's prompt was found there."""
    if old[0] is None:  # there is no user prompt
        last: Any = messages[-1]
        if not any(isinstance(part, UserPromptPart) and part.content == new for part in last.parts):
            last.parts = [*last.parts, UserPromptPart(new)]
        return True
    for message in reversed(messages):
        parts: list[Any] = list(message.parts)
        prompts = [part for part in parts if isinstance(part, UserPromptPart)]
        part = next((part for part in prompts if part.content in old), None)
        if part is None and len(prompts) > 1 and prompt_in(message, None) in old:
            part, parts = prompts[0], [one for one in parts if one is prompts[0] or one not in prompts]
        if part is not None:
            message.parts = [replace(part, content=new) if one is part else one for one in parts]
            return True
    return False


def prompt_in(message: ModelMessage, otherwise: Any) -> Any:
    """The user's prompt in a request, as pydantic-ai has it."""
    prompts = [part.content for part in message.parts if isinstance(part, UserPromptPart)]
    if len(prompts) < 2:
        return prompts[0] if prompts else otherwise
    return [one for content in prompts for one in ([content] if isinstance(content, str) else content)]


def readable(output: Any) -> Any:
    """A tool's output, as hooks read it: with all that the model reads."""
    if isinstance(output, ToolReturn):
        value, content = output.return_value, output.content
        output = {"return_value": value, "content": shown(content)} if content else value
    if output is None or isinstance(output, str):
        return output
    return to_jsonable_python(output, bytes_mode="base64", fallback=str, serialize_unknown=True)


# --- the system prompt ----------------------------------------------------------------------------


def system_prompt(messages: Sequence[ModelMessage], parameters: ModelRequestParameters | None) -> str | None:
    """The system prompt and instructions. Without parameters, those of the last request."""
    texts = [part.content for m in messages for part in m.parts if isinstance(part, SystemPromptPart)]
    if parameters is not None:
        texts += [part.content for part in parameters.instruction_parts or ()]
    else:
        last = next((m for m in reversed(messages) if isinstance(m, ModelRequest)), None)
        texts += [last.instructions] if last is not None and last.instructions else []
    return "\n\n".join(texts) if texts else None


def with_system_prompt(
    messages: Sequence[ModelMessage], parameters: ModelRequestParameters, prompt: str
) -> tuple[list[ModelMessage], ModelRequestParameters]:
    """A request with another system prompt, in the place of its own."""
    sent: list[ModelMessage] = []
    placed = False
    for message in messages:
        if isinstance(message, ModelRequest):
            parts: list[Any] = [part for part in message.parts if not isinstance(part, SystemPromptPart)]
            if len(parts) < len(message.parts) and not placed:
                parts, placed = [SystemPromptPart(prompt), *parts], True
            message = replace(message, parts=parts, instructions=None)
        sent.append(message)
    return sent, replace(parameters, instruction_parts=[] if placed else [InstructionPart(prompt)])
