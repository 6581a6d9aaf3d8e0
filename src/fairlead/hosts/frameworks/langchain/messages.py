"""LangChain's messages as plain messages that hooks read, and back."""

from __future__ import annotations

from typing import Any

from langchain.agents.middleware import ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from ....errors import FairleadError
from ....session import new_id
from ..messages import Message, as_text
from ..turn import ModelResult, Reply

OURS = "fairlead"
_ENDS = {"length": "max_tokens", "max_tokens": "max_tokens", "content_filter": "refusal", "refusal": "refusal"}


def is_ours(message: AnyMessage) -> bool:
    return (message.id or "").startswith(OURS)


def human_message(content: Any) -> HumanMessage:
    return HumanMessage(content, id=new_id(OURS))


def joined(contents: list[Any]) -> Any:
    """The contents of several messages, as that of one."""
    if len(contents) == 1:
        return contents[0]
    if all(isinstance(one, str) for one in contents):
        return "\n\n".join(contents)
    blocks = [[{"type": "text", "text": one}] if isinstance(one, str) else one for one in contents]
    return [block for one in blocks for block in one]


def with_text(message: AIMessage, text: str, **changed: Any) -> AIMessage:
    return message.model_copy(update={"content": text, "additional_kwargs": {}, **changed})


def answer_of(result: ModelResult) -> tuple[list[AnyMessage], Any]:
    """The messages of a reply, and its structured response. Hooks that change the text drop the latter."""
    if result.native is None:
        return [AIMessage(result.text or "", id=new_id(OURS))], None
    messages, structured = list(result.native.result), result.native.structured_response
    if result.text is None:
        return messages, structured
    return [with_text(one, result.text) if isinstance(one, AIMessage) else one for one in messages], None


def reply_of(response: ModelResponse) -> Reply:
    message = next(one for one in reversed(response.result) if isinstance(one, AIMessage))
    about = message.response_metadata
    ends = _ENDS.get(str(about.get("finish_reason") or about.get("stop_reason")), "end_turn")
    return Reply(str(message.text), dict(message.usage_metadata) if message.usage_metadata else None, ends)


def plain_message(message: AnyMessage) -> Message:
    """A message, as hooks read it."""
    if isinstance(message, ToolMessage):
        return {
            "role": "tool", "call_id": message.tool_call_id, "tool": message.name, "content": message.content,
            "is_error": message.status == "error",
        }  # fmt: skip
    if isinstance(message, AIMessage):
        calls = [{"id": call["id"], "tool": call["name"], "args": call["args"]} for call in message.tool_calls]
        return {"role": "assistant", "content": str(message.text)} | ({"tool_calls": calls} if calls else {})
    return {"role": "system" if isinstance(message, SystemMessage) else "user", "content": message.content}


def native_message(message: Message) -> AnyMessage:
    role, content = message.get("role"), message.get("content")
    content = content if isinstance(content, (str, list)) else as_text(content)
    if role == "assistant":
        calls = [
            {"id": call["id"], "name": call["tool"], "args": call["args"]} for call in message.get("tool_calls") or ()
        ]
        return AIMessage(content, tool_calls=calls)
    if role == "tool":
        status = "error" if message.get("is_error") else "success"
        return ToolMessage(content, tool_call_id=message["call_id"], name=message.get("tool"), status=status)
    if role not in ("user", "system"):
        raise FairleadError(f"a message has role user, assistant, tool or system, not {role!r}")
    return SystemMessage(content) if role == "system" else HumanMessage(content)


def model_name(model: Any) -> str:
    names = (getattr(model, name, None) for name in ("model_name", "model", "model_id"))
    return next((name for name in names if isinstance(name, str) and name), type(model).__name__)
