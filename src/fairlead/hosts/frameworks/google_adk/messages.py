"""Contents of Google ADK as plain messages that hooks read, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.adk.models.llm_response import LlmResponse
from google.genai import types

from ..messages import Message, as_text
from ..turn import Reply

STOP_REASONS = {"MAX_TOKENS": "max_tokens"} | dict.fromkeys(
    ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"), "refusal"
)


def output_of(result: Any) -> Any:
    """A tool's output, without the dict that the framework wraps it in."""
    return result["result"] if isinstance(result, dict) and result.keys() == {"result"} else result


def text_of(content: Any) -> str:
    parts = content.parts if content is not None else None
    return "".join(part.text for part in parts or () if part.text and not part.thought)


def calls_of(content: Any) -> list[Any]:
    return [part.function_call for part in (content.parts if content is not None else None) or () if part.function_call]


def user_content(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


def model_content(text: str | None) -> types.Content:
    return types.Content(role="model", parts=[types.Part(text=text)] if text else [])


def with_text(text: str | None, reply: Any = None) -> Any:
    """A new reply with this text, or a reply with another text. Without a text there is no event."""
    if reply is None:
        return LlmResponse(content=model_content(text)) if text is not None else LlmResponse()
    rest = [part for part in (reply.content.parts if reply.content is not None else None) or () if not part.text]
    parts = [*([types.Part(text=text)] if text else []), *rest]
    return reply.model_copy(update={"content": types.Content(role="model", parts=parts) if parts else None})


def reply_of(reply: Any) -> Reply:
    usage, reason = reply.usage_metadata, reply.finish_reason
    counts = usage and {
        "input_tokens": usage.prompt_token_count or 0, "output_tokens": usage.candidates_token_count or 0
    }  # fmt: skip
    return Reply(
        text_of(reply.content), counts, reason and STOP_REASONS.get(getattr(reason, "name", reason), "end_turn")
    )


def units_of(contents: Sequence[types.Content]) -> list[types.Content]:
    """Contents that are one message each. Several tool results become several."""
    units: list[types.Content] = []
    for content in contents:
        results = [part for part in content.parts or () if part.function_response]
        rest = [part for part in content.parts or () if not part.function_response]
        units += [types.Content(role=content.role, parts=[part]) for part in results]
        if rest or not results:
            units.append(types.Content(role=content.role, parts=rest) if results else content)
    return units


def joined(units: Sequence[types.Content]) -> list[types.Content]:
    """The reverse of `units_of`: results of tools that were called together must be one content."""
    contents: list[types.Content] = []
    for unit in units:
        is_result = bool(unit.parts) and all(part.function_response for part in unit.parts or ())
        if is_result and contents and all(part.function_response for part in contents[-1].parts or (types.Part(),)):
            contents[-1] = types.Content(role="user", parts=[*(contents[-1].parts or ()), *(unit.parts or ())])
        else:
            contents.append(unit)
    return contents


def message_of(unit: types.Content) -> Message:
    """A content as a plain message."""
    result = next((part.function_response for part in unit.parts or () if part.function_response), None)
    if result is not None:
        response = result.response or {}
        is_error = response.keys() == {"error"}
        content = response["error"] if is_error else output_of(response)
        return {
            "role": "tool", "call_id": result.id, "tool": result.name, "content": content, "is_error": is_error
        }  # fmt: skip
    message: Message = {"role": "assistant" if unit.role == "model" else "user", "content": text_of(unit)}
    if calls := calls_of(unit):
        message["tool_calls"] = [{"id": call.id, "tool": call.name, "args": call.args or {}} for call in calls]
    return message


def content_of(message: Message) -> types.Content:
    """A message that a hook made, as a content."""
    role, content = message.get("role"), message.get("content")
    if role == "tool":
        response = {"error" if message.get("is_error") else "result": content}
        result = types.FunctionResponse(id=message.get("call_id"), name=message.get("tool"), response=response)
        return types.Content(role="user", parts=[types.Part(function_response=result)])
    parts = [types.Part(text=as_text(content))] if content else []
    for call in message.get("tool_calls") or ():
        native = types.FunctionCall(id=call.get("id"), name=call["tool"], args=call.get("args"))
        parts.append(types.Part(function_call=native))
    return types.Content(role="model" if role == "assistant" else "user", parts=parts)


def block_of(part: Any) -> dict[str, Any]:
    """A part of the user's input, as hooks read it."""
    if part.text is not None:
        return {"type": "text", "text": part.text}
    if (result := part.function_response) is not None:
        return {"type": "tool_result", "tool": result.name, "call_id": result.id, "content": result.response}
    data = part.inline_data or part.file_data
    return {
        "type": "file", "mime_type": getattr(data, "mime_type", None), "uri": getattr(data, "file_uri", None)
    }  # fmt: skip


def part_of(block: Any) -> types.Part:
    if isinstance(block, dict) and block.get("type") == "tool_result":
        result = types.FunctionResponse(id=block["call_id"], name=block["tool"], response=block["content"])
        return types.Part(function_response=result)
    return types.Part(text=as_text(block))
