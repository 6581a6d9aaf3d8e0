"""What is said in a run of pydantic-ai, in the plain words that hooks read, and back."""

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

from ...errors import FairleadError
from ..model import Message, as_text, history_of, reply_of
from ..turn import Asked, Reply, rewritten


class NoOutput(FairleadError):
    """A hook has ended the run of an agent whose output is no text, and there is nothing else to give."""


# --- answers --------------------------------------------------------------------------------------


def told(response: ModelResponse) -> Reply:
    reply = reply_of(response)
    return Reply(reply.text, reply.usage, reply.stop_reason)


def spoken(asked: Asked, parameters: ModelRequestParameters) -> ModelResponse:
    """The answer, with the words that hooks want."""
    if asked.native is None:
        return with_text(ModelResponse([], model_name="fairlead"), asked.text, parameters)
    response: ModelResponse = asked.native
    return response if asked.text is None else with_text(response, asked.text, parameters)


def outputs(parameters: ModelRequestParameters) -> set[str]:
    """The tools by which a model gives an output that is no text."""
    return {tool.name for tool in parameters.output_tools}


def is_final(response: ModelResponse, parameters: ModelRequestParameters) -> bool:
    """Whether the run would end with it."""
    calls = {call.tool_name for call in response.tool_calls}
    if calls:
        return not calls.isdisjoint(outputs(parameters))
    return bool(response.text) and parameters.allow_text_output  # else pydantic-ai asks again


def text_of(response: ModelResponse, parameters: ModelRequestParameters) -> str:
    """What there is to see of a final answer."""
    final = (call for call in response.tool_calls if call.tool_name in outputs(parameters))
    call = next(final, None)
    return response.text or "" if call is None else _bare(call.args_as_json_str(), _wrapping(call, parameters))


WRAPPED = "response"
"""The key under which a model gives an output that is no object."""


def _wrapping(call: ToolCallPart, parameters: ModelRequestParameters) -> str | None:
    keys = (tool.outer_typed_dict_key for tool in parameters.output_tools if tool.name == call.tool_name)
    return next(keys, None)


def _bare(text: str, key: str | None) -> str:
    """An output as the user gets it, and not as the model has to give it."""
    with suppress(ValueError):
        given = from_json(text) if key is not None else None
        if isinstance(given, dict) and list(given) == [key]:
            return to_json(given[key]).decode()
    return text


def _wrapped(text: str, key: str | None) -> str:
    if key is None:
        return text
    given = from_json(text)
    return text if isinstance(given, dict) and list(given) == [key] else to_json({key: given}).decode()


def with_text(response: ModelResponse, text: str | None, parameters: ModelRequestParameters) -> ModelResponse:
    """The answer with other words. Where an output of some type is wanted, they must be one, as JSON."""
    text = text or " "  # pydantic-ai takes no text at all for no answer
    parts: list[Any] = list(response.parts)
    finals = [part for part in parts if isinstance(part, ToolCallPart) and part.tool_name in outputs(parameters)]
    wants_text = parameters.allow_text_output and parameters.output_mode in ("text", "tool")
    if finals or not (wants_text or response.tool_calls):
        try:
            from_json(text)
        except ValueError:
            raise NoOutput(text.strip() or "a hook keeps the output back") from None
    if finals:
        said = [(part, _wrapped(text, _wrapping(part, parameters))) for part in finals]
        changed = {id(part): replace(part, args=args) for part, args in said}
        return replace(response, parts=[changed.get(id(part), part) for part in parts])
    if parameters.output_tools and not (wants_text or response.tool_calls):
        part = ToolCallPart(parameters.output_tools[0].name, text)
        return replace(response, parts=[replace(part, args=_wrapped(text, _wrapping(part, parameters)))])
    if parameters.output_object is not None and not (wants_text or response.tool_calls):
        wanted = parameters.output_object.json_schema.get("properties") or {}
        text = _wrapped(text, WRAPPED if list(wanted) == [WRAPPED] else None)
    at = next((number for number, part in enumerate(parts) if isinstance(part, TextPart)), 0)
    kept = [[part for part in some if not isinstance(part, TextPart)] for some in (parts[:at], parts[at:])]
    return replace(response, parts=[*kept[0], TextPart(text), *kept[1]])


def output_text(output: Any) -> str:
    return output if isinstance(output, str) else to_json(output, fallback=str).decode()


def same(text: str, other: str | None) -> bool:
    """Whether two texts say the same, as what they are or as JSON."""
    if text == other or other is None:
        return text == other
    try:
        return bool(from_json(_bare(text, WRAPPED)) == from_json(_bare(other, WRAPPED)))
    except ValueError:
        return False


def as_output(text: str | None, output: Any) -> Any:
    """What hooks made of an output, as one of its type."""
    if isinstance(output, str):
        return text or ""
    try:
        return TypeAdapter(type(output)).validate_json(text or "")
    except ValidationError:
        raise NoOutput(text or "a hook keeps the output back") from None


# --- the conversation -----------------------------------------------------------------------------


def plain(messages: Sequence[ModelMessage]) -> list[Message]:
    return [message for _, message in _units(messages)]


def _units(messages: Sequence[ModelMessage]) -> list[tuple[Any, Message]]:
    """Parts of requests, and whole responses, each with its plain message."""
    found: list[tuple[Any, Message]] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            reply = reply_of(message)
            calls = {"tool_calls": reply.tool_calls} if reply.tool_calls else {}
            found.append((message, {"role": "assistant", "content": reply.text, **calls}))
        else:
            found += [(part, said) for part in message.parts if (said := plain_part(part)) is not None]
    return found


def plain_part(part: Any) -> Message | None:
    """What a part of a request says. None for what is no part of the conversation, as the system prompt is not."""
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


def rewrite(messages: Sequence[ModelMessage], wanted: Sequence[Message]) -> list[ModelMessage]:
    """The messages that a hook wants to be sent. What is no part of the conversation comes first."""
    units = _units(messages)
    asked: list[Any] = [
        part for m in messages if isinstance(m, ModelRequest) for part in m.parts if plain_part(part) is None
    ]
    sent: list[ModelMessage] = []
    for one in rewritten([part for part, _ in units], [said for _, said in units], wanted, _made):
        if isinstance(one, ModelResponse):
            sent += [ModelRequest(asked), one] if asked else [one]
            asked = []
        else:
            asked.append(one)
    last: Any = messages[-1]
    return [*sent, replace(last, parts=asked)]


def _made(message: Message) -> Any:
    made = history_of(None, [message])[0]
    return made if isinstance(made, ModelResponse) else made.parts[0]


# --- what a user says, and a tool gives -----------------------------------------------------------


def shown(content: Any) -> Any:
    """What a user says, as hooks read it: texts as they are, everything else as an object."""
    if content is None or isinstance(content, str):
        return content or ""
    return [one if isinstance(one, str) else _block(one) for one in content]


def _block(one: Any) -> dict[str, Any]:
    if data := getattr(one, "data", None):
        return {"kind": one.kind, "media_type": one.media_type, "size": len(data)}
    block = to_jsonable_python(one, fallback=str, serialize_unknown=True)
    return block if isinstance(block, dict) else {"text": as_text(block)}


def meant(wanted: Any, content: Any) -> Any:
    """What a hook made of what a user says, in pydantic-ai's words."""
    if isinstance(wanted, str):
        return wanted
    blocks = [one for one in content or () if not isinstance(one, str)]
    native = {to_json(_block(one)): one for one in blocks}
    return [one if isinstance(one, str) else native.get(to_json(one), as_text(one)) for one in wanted]


def said_again(messages: Sequence[ModelMessage], old: Sequence[Any], new: Any) -> bool:
    """Have a run's own request say something else than the user did. The user's objects are left as they are."""
    if old[0] is None:  # the user said nothing
        last: Any = messages[-1]
        if not any(isinstance(part, UserPromptPart) and part.content == new for part in last.parts):
            last.parts = [*last.parts, UserPromptPart(new)]
        return True
    for message in reversed(messages):
        parts: list[Any] = list(message.parts)
        said = [part for part in parts if isinstance(part, UserPromptPart)]
        part = next((part for part in said if part.content in old), None)
        if part is None and len(said) > 1 and prompt_in(message, None) in old:
            part, parts = said[0], [one for one in parts if one is said[0] or one not in said]
        if part is not None:
            message.parts = [replace(part, content=new) if one is part else one for one in parts]
            return True
    return False


def prompt_in(message: ModelMessage, otherwise: Any) -> Any:
    """What the user says in a request, as pydantic-ai has it."""
    said = [part.content for part in message.parts if isinstance(part, UserPromptPart)]
    if len(said) < 2:
        return said[0] if said else otherwise
    return [one for content in said for one in ([content] if isinstance(content, str) else content)]


def readable(output: Any) -> Any:
    """What a tool gives, as hooks read it: with all that the model is given to read."""
    if isinstance(output, ToolReturn):
        given, content = output.return_value, output.content
        output = {"return_value": given, "content": shown(content)} if content else given
    if output is None or isinstance(output, str):
        return output
    return to_jsonable_python(output, bytes_mode="base64", fallback=str, serialize_unknown=True)


# --- the system prompt ----------------------------------------------------------------------------


def system_prompt(messages: Sequence[ModelMessage], parameters: ModelRequestParameters | None) -> str | None:
    """All that an agent is told before the conversation begins. Without parameters, what it was told last."""
    texts = [part.content for m in messages for part in m.parts if isinstance(part, SystemPromptPart)]
    if parameters is not None:
        texts += [part.content for part in parameters.instruction_parts or ()]
    else:
        last = next((m for m in reversed(messages) if isinstance(m, ModelRequest)), None)
        texts += [last.instructions] if last is not None and last.instructions else []
    return "\n\n".join(texts) if texts else None


def prompted(
    messages: Sequence[ModelMessage], parameters: ModelRequestParameters, prompt: str
) -> tuple[list[ModelMessage], ModelRequestParameters]:
    """A request with another system prompt, in the place of the one it has."""
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
