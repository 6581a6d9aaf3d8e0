"""Messages of Microsoft Agent Framework as plain messages that hooks read, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agent_framework import (
    AgentResponse,
    AgentResponseUpdate,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    Message,
)
from pydantic_core import to_json, to_jsonable_python

from ..messages import Message as Plain
from ..messages import as_text
from ..turn import Reply, rewritten

STOP_REASONS = {"length": "max_tokens", "content_filter": "refusal"}
SHOWN = ("text", "text_reasoning")
"""Kinds of content that a user reads."""
PLAIN = (str, int, float)


def user(text: str) -> Message:
    return Message("user", [text])


# --- contents -------------------------------------------------------------------------------------


def shown(contents: Sequence[Content]) -> Any:
    """Some contents as hooks read them: a text, or a list of texts and objects."""
    if all(content.type == "text" for content in contents):
        return "\n".join(content.text or "" for content in contents)
    return [content.text if content.type == "text" else _block(content) for content in contents]


def contents_from(changed: Any, contents: Iterable[Content]) -> list[Content]:
    """Contents that a hook has changed: the native one where it is the same, else a text."""
    if not isinstance(changed, list):
        return [Content.from_text(as_text(changed))]
    native = {to_json(_block(content)): content for content in contents if content.type != "text"}
    blocks = [None if isinstance(one, str) else native.get(to_json(one)) for one in changed]
    return [found or Content.from_text(as_text(one)) for found, one in zip(blocks, changed, strict=True)]


def _block(content: Content) -> dict[str, Any]:
    if content.type == "data":  # hooks do not read the bytes of an image
        return {"type": "data", "media_type": content.media_type, "size": len(content.uri or "")}
    block: dict[str, Any] = to_jsonable_python(content.to_dict(), fallback=str)
    return block


def readable(output: Any) -> Any:
    """A tool's output, as hooks read it."""
    if isinstance(output, list) and all(isinstance(one, Content) for one in output):
        output = shown(output)
        if isinstance(output, list):
            return [{"type": "text", "text": one} if isinstance(one, str) else one for one in output]
    return output if output is None or isinstance(output, str) else to_jsonable_python(output, fallback=str)


def result(output: Any, native: Any) -> Any:
    """Output that a hook gives for a tool, as the framework has it."""
    return contents_from(output, native if isinstance(native, list) else ()) if isinstance(output, list) else output


def arguments(args: Any) -> dict[str, Any]:
    """A tool's arguments as plain data."""
    if isinstance(args, dict) and all(value is None or isinstance(value, PLAIN) for value in args.values()):
        return args
    plain = to_jsonable_python(args, fallback=str)
    return plain if isinstance(plain, dict) else {"arguments": plain}


def input_of(messages: Sequence[Message]) -> list[Content]:
    """The contents of the user's input: of the user messages after the agent's last one."""
    new = [message for message in messages[_first_new(messages) :] if message.role == "user"]
    return [content for message in new for content in message.contents if not _is_answer(content)]


def with_input(messages: Sequence[Message], changed: Message) -> list[Message]:
    """The messages with another user input. The user's answers to questions stay."""
    at = _first_new(messages)
    kept = list(messages[:at])
    for message in messages[at:]:
        answers = [content for content in message.contents if _is_answer(content)]
        if message.role != "user":
            kept.append(message)
        elif answers:
            kept.append(Message("user", answers))
    return [*kept, changed]


def _first_new(messages: Sequence[Message]) -> int:
    return max((number for number, message in enumerate(messages, 1) if message.role == "assistant"), default=0)


def _is_answer(content: Content) -> bool:
    return content.type in ("function_approval_response", "function_result")


def answers(messages: Sequence[Message]) -> list[Content]:
    """A human's new answers to questions about calls: those after the agent's last message."""
    return contents_of(messages[_first_new(messages) :], "function_approval_response")


def contents_of(messages: Iterable[Message], kind: str) -> list[Content]:
    return [content for message in messages for content in message.contents if content.type == kind]


# --- messages -------------------------------------------------------------------------------------


def plain(messages: Sequence[Message]) -> list[Plain]:
    return [message for _, message in _units(messages)]


def rewrite(messages: Sequence[Message], changed: Sequence[Plain]) -> list[Message]:
    """The messages to send after a hook has changed them."""
    units = _units(messages)
    contents = [content for message in messages for content in message.contents]
    make: Callable[[Plain], Message] = lambda message: _native(message, contents)  # noqa: E731
    return rewritten([native for native, _ in units], [plain for _, plain in units], changed, make)


def _units(messages: Sequence[Message]) -> list[tuple[Message, Plain]]:
    """Each message with its plain one. A message with several tool results becomes several."""
    tools: dict[str | None, str | None] = {}
    found: list[tuple[Message, Plain]] = []
    for message in messages:
        results = [content for content in message.contents if content.type == "function_result"]
        calls = [content for content in message.contents if content.type == "function_call"]
        others = [content for content in message.contents if content.type not in ("function_result", "function_call")]
        if calls or others or not results:
            native = message if not results else Message(message.role, [*others, *calls])
            plain: Plain = {"role": message.role, "content": shown(others)}
            if calls:
                tools.update((call.call_id, call.name) for call in calls)
                plain["tool_calls"] = [{"id": c.call_id, "tool": c.name, "args": call_args(c)} for c in calls]
            found.append((native, plain))
        for result in results:
            about = {"call_id": result.call_id, "tool": tools.get(result.call_id)}
            native = message if len(message.contents) == 1 else Message("tool", [result])
            content = shown(result.items) if result.items else as_text(result.result)
            is_error = result.exception is not None
            found.append((native, {"role": "tool", **about, "content": content, "is_error": is_error}))
    return found


def call_args(call: Content) -> dict[str, Any]:
    return arguments(call.parse_arguments() or {})


def _native(message: Plain, contents: Sequence[Content]) -> Message:
    role, content = message.get("role"), message.get("content")
    native = contents_from(content, contents) if content else []
    if role == "tool":
        error = as_text(content) if message.get("is_error") else None
        return Message("tool", [Content.from_function_result(message["call_id"], result=native, exception=error)])
    calls = [
        Content.from_function_call(call["id"], call["tool"], arguments=call["args"])
        for call in message.get("tool_calls") or ()
    ]
    return Message(role, [*native, *calls])


# --- answers --------------------------------------------------------------------------------------


def reply_of(response: ChatResponse) -> Reply:
    counts = response.usage_details or {}
    usage = {"input_tokens": counts.get("input_token_count"), "output_tokens": counts.get("output_token_count")}
    reason = STOP_REASONS.get(response.finish_reason or "", "end_turn")
    return Reply(response.text, usage if counts else None, reason)


def messages_with_text(messages: Sequence[Message], text: str | None) -> list[Message]:
    """Copies of an answer's messages, with this text and no other."""
    places = [number for number, message in enumerate(messages) if message.text]
    at = places[-1] if places else None
    found: list[Message] = []
    for number, message in enumerate(messages):
        calls = any(content.type == "function_call" for content in message.contents)
        replaced = ("text",) if calls else SHOWN  # a model may need its reasoning back with its calls
        kept = [content for content in message.contents if content.type not in replaced]
        if number == at and text:
            kept.insert(0, Content.from_text(text))
        if kept:
            found.append(Message(message.role, kept, author_name=message.author_name, message_id=message.message_id))
    if at is None and text:
        found.append(Message("assistant", [text]))
    return found


def with_text(response: ChatResponse, text: str, options: Mapping[str, Any]) -> ChatResponse:
    """A model's answer with another text."""
    return ChatResponse(
        messages=messages_with_text(response.messages, text), response_id=response.response_id, model=response.model,
        conversation_id=response.conversation_id, created_at=response.created_at,
        finish_reason=response.finish_reason, usage_details=response.usage_details,
        response_format=options.get("response_format"), continuation_token=response.continuation_token,
        additional_properties=response.additional_properties,
    )  # fmt: skip


def agent_response(response: AgentResponse, text: str | None, response_format: Any) -> AgentResponse:
    """An agent's answer with another text, and without the parsed value of the old one."""
    return AgentResponse(
        messages=messages_with_text(response.messages, text), response_id=response.response_id,
        agent_id=response.agent_id,
        created_at=response.created_at, usage_details=response.usage_details, response_format=response_format,
        continuation_token=response.continuation_token, additional_properties=response.additional_properties,
    )  # fmt: skip


def chat_updates(response: ChatResponse) -> list[ChatResponseUpdate]:
    """A model's answer as updates of a stream."""
    about = {
        "response_id": response.response_id, "conversation_id": response.conversation_id, "model": response.model,
        "created_at": response.created_at, "finish_reason": response.finish_reason,
        "continuation_token": response.continuation_token, "additional_properties": response.additional_properties,
    }  # fmt: skip
    return _updates(ChatResponseUpdate, response, about)


def agent_updates(response: AgentResponse) -> list[AgentResponseUpdate]:
    """An agent's answer as updates of a stream."""
    about = {
        "response_id": response.response_id, "agent_id": response.agent_id, "created_at": response.created_at,
        "continuation_token": response.continuation_token, "additional_properties": response.additional_properties,
    }  # fmt: skip
    return _updates(AgentResponseUpdate, response, about)


def _updates(kind: Any, response: Any, about: dict[str, Any]) -> list[Any]:
    updates = [
        kind(contents=list(message.contents), role=message.role, author_name=message.author_name,
             message_id=message.message_id,
             **about)
        for message in response.messages or [Message("assistant", [])]
    ]  # fmt: skip
    if response.usage_details:
        updates[-1].contents.append(Content.from_usage(response.usage_details))
    return updates
