"""What is said in Microsoft Agent Framework, as hooks read it, and back."""

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

from ..model import Message as Plain
from ..model import as_text
from ..turn import Reply, rewritten

STOP_REASONS = {"length": "max_tokens", "content_filter": "refusal"}
SHOWN = ("text", "text_reasoning")
"""Contents that a user gets to read."""
PLAIN = (str, int, float)


def user(text: str) -> Message:
    return Message("user", [text])


# --- contents -------------------------------------------------------------------------------------


def shown(contents: Sequence[Content]) -> Any:
    """Some contents as hooks read them: a text, or a list of texts and objects."""
    if all(content.type == "text" for content in contents):
        return "\n".join(content.text or "" for content in contents)
    return [content.text if content.type == "text" else _block(content) for content in contents]


def meant(wanted: Any, contents: Iterable[Content]) -> list[Content]:
    """What a hook made of some contents: their own where they are as they were, else texts."""
    if not isinstance(wanted, list):
        return [Content.from_text(as_text(wanted))]
    native = {to_json(_block(content)): content for content in contents if content.type != "text"}
    blocks = [None if isinstance(one, str) else native.get(to_json(one)) for one in wanted]
    return [found or Content.from_text(as_text(one)) for found, one in zip(blocks, wanted, strict=True)]


def _block(content: Content) -> dict[str, Any]:
    if content.type == "data":  # all of an image is no reading matter
        return {"type": "data", "media_type": content.media_type, "size": len(content.uri or "")}
    block: dict[str, Any] = to_jsonable_python(content.to_dict(), fallback=str)
    return block


def readable(output: Any) -> Any:
    """What a tool gives, as hooks read it."""
    if isinstance(output, list) and all(isinstance(one, Content) for one in output):
        output = shown(output)
        if isinstance(output, list):
            return [{"type": "text", "text": one} if isinstance(one, str) else one for one in output]
    return output if output is None or isinstance(output, str) else to_jsonable_python(output, fallback=str)


def result(output: Any, native: Any) -> Any:
    """What a hook wants a tool to have given, in the framework's words."""
    return meant(output, native if isinstance(native, list) else ()) if isinstance(output, list) else output


def arguments(given: Any) -> dict[str, Any]:
    """A tool's arguments as plain data."""
    if isinstance(given, dict) and all(value is None or isinstance(value, PLAIN) for value in given.values()):
        return given
    args = to_jsonable_python(given, fallback=str)
    return args if isinstance(args, dict) else {"arguments": args}


def said_by(messages: Sequence[Message]) -> list[Content]:
    """What the user has to say now, whatever stands beside it. What comes before an agent's words was said earlier."""
    new = [message for message in messages[_news(messages) :] if message.role == "user"]
    return [content for message in new for content in message.contents if not _is_answer(content)]


def saying(messages: Sequence[Message], wanted: Message) -> list[Message]:
    """The messages, with this in place of what the user has to say. Answers of his to questions stay."""
    at = _news(messages)
    kept = list(messages[:at])
    for message in messages[at:]:
        answered = [content for content in message.contents if _is_answer(content)]
        if message.role != "user":
            kept.append(message)
        elif answered:
            kept.append(Message("user", answered))
    return [*kept, wanted]


def _news(messages: Sequence[Message]) -> int:
    return max((number for number, message in enumerate(messages, 1) if message.role == "assistant"), default=0)


def _is_answer(content: Content) -> bool:
    return content.type in ("function_approval_response", "function_result")


def answers(messages: Sequence[Message]) -> list[Content]:
    """What a human now says of calls that were left to him. Whatever he said before the last answer is settled."""
    return contents_of(messages[_news(messages) :], "function_approval_response")


def contents_of(messages: Iterable[Message], kind: str) -> list[Content]:
    return [content for message in messages for content in message.contents if content.type == kind]


# --- messages -------------------------------------------------------------------------------------


def plain(messages: Sequence[Message]) -> list[Plain]:
    return [said for _, said in _units(messages)]


def rewrite(messages: Sequence[Message], wanted: Sequence[Plain]) -> list[Message]:
    """The messages that a hook wants to be sent."""
    units = _units(messages)
    contents = [content for message in messages for content in message.contents]
    make: Callable[[Plain], Message] = lambda message: _made(message, contents)  # noqa: E731
    return rewritten([native for native, _ in units], [said for _, said in units], wanted, make)


def _units(messages: Sequence[Message]) -> list[tuple[Message, Plain]]:
    """Each message with its plain one; one with several results is as many."""
    tools: dict[str | None, str | None] = {}
    found: list[tuple[Message, Plain]] = []
    for message in messages:
        results = [content for content in message.contents if content.type == "function_result"]
        calls = [content for content in message.contents if content.type == "function_call"]
        others = [content for content in message.contents if content.type not in ("function_result", "function_call")]
        if calls or others or not results:
            native = message if not results else Message(message.role, [*others, *calls])
            said: Plain = {"role": message.role, "content": shown(others)}
            if calls:
                tools.update((call.call_id, call.name) for call in calls)
                said["tool_calls"] = [{"id": c.call_id, "tool": c.name, "args": call_args(c)} for c in calls]
            found.append((native, said))
        for result in results:
            about = {"call_id": result.call_id, "tool": tools.get(result.call_id)}
            native = message if len(message.contents) == 1 else Message("tool", [result])
            is_error = result.exception is not None
            found.append((native, {"role": "tool", **about, "content": _told(result), "is_error": is_error}))
    return found


def _told(result: Content) -> Any:
    return shown(result.items) if result.items else as_text(result.result)


def call_args(call: Content) -> dict[str, Any]:
    return arguments(call.parse_arguments() or {})


def _made(message: Plain, contents: Sequence[Content]) -> Message:
    role, content = message.get("role"), message.get("content")
    made = meant(content, contents) if content else []
    if role == "tool":
        error = as_text(content) if message.get("is_error") else None
        return Message("tool", [Content.from_function_result(message["call_id"], result=made, exception=error)])
    calls = [
        Content.from_function_call(call["id"], call["tool"], arguments=call["args"])
        for call in message.get("tool_calls") or ()
    ]
    return Message(role, [*made, *calls])


# --- answers --------------------------------------------------------------------------------------


def read(response: ChatResponse) -> Reply:
    spent = response.usage_details or {}
    usage = {"input_tokens": spent.get("input_token_count"), "output_tokens": spent.get("output_token_count")}
    reason = STOP_REASONS.get(response.finish_reason or "", "end_turn")
    return Reply(response.text, usage if spent else None, reason)


def retold(messages: Sequence[Message], text: str | None) -> list[Message]:
    """The messages of an answer with these words and no others. They are new ones: the old ones are somebody's."""
    places = [number for number, message in enumerate(messages) if message.text]
    at = places[-1] if places else None
    found: list[Message] = []
    for number, message in enumerate(messages):
        calls = any(content.type == "function_call" for content in message.contents)
        unsaid = ("text",) if calls else SHOWN  # a model may want its thoughts back with its calls
        kept = [content for content in message.contents if content.type not in unsaid]
        if number == at and text:
            kept.insert(0, Content.from_text(text))
        if kept:
            found.append(Message(message.role, kept, author_name=message.author_name, message_id=message.message_id))
    if at is None and text:
        found.append(Message("assistant", [text]))
    return found


def with_text(response: ChatResponse, text: str, options: Mapping[str, Any]) -> ChatResponse:
    """A model's answer with other words."""
    return ChatResponse(
        messages=retold(response.messages, text), response_id=response.response_id, model=response.model,
        conversation_id=response.conversation_id, created_at=response.created_at,
        finish_reason=response.finish_reason, usage_details=response.usage_details,
        response_format=options.get("response_format"), continuation_token=response.continuation_token,
        additional_properties=response.additional_properties,
    )  # fmt: skip


def answered(response: AgentResponse, text: str | None, response_format: Any) -> AgentResponse:
    """An agent's answer with other words, and nothing that still has the old ones."""
    return AgentResponse(
        messages=retold(response.messages, text), response_id=response.response_id, agent_id=response.agent_id,
        created_at=response.created_at, usage_details=response.usage_details, response_format=response_format,
        continuation_token=response.continuation_token, additional_properties=response.additional_properties,
    )  # fmt: skip


def chat_updates(response: ChatResponse) -> list[ChatResponseUpdate]:
    """A model's answer as a stream would have brought it."""
    about = {
        "response_id": response.response_id, "conversation_id": response.conversation_id, "model": response.model,
        "created_at": response.created_at, "finish_reason": response.finish_reason,
        "continuation_token": response.continuation_token, "additional_properties": response.additional_properties,
    }  # fmt: skip
    return _updates(ChatResponseUpdate, response, about)


def agent_updates(response: AgentResponse) -> list[AgentResponseUpdate]:
    """An agent's answer as a stream would have brought it."""
    about = {
        "response_id": response.response_id, "agent_id": response.agent_id, "created_at": response.created_at,
        "continuation_token": response.continuation_token, "additional_properties": response.additional_properties,
    }  # fmt: skip
    return _updates(AgentResponseUpdate, response, about)


def _updates(kind: Any, response: Any, about: dict[str, Any]) -> list[Any]:
    updates = [
        kind(contents=list(said.contents), role=said.role, author_name=said.author_name, message_id=said.message_id,
             **about)
        for said in response.messages or [Message("assistant", [])]
    ]  # fmt: skip
    if response.usage_details:
        updates[-1].contents.append(Content.from_usage(response.usage_details))
    return updates
