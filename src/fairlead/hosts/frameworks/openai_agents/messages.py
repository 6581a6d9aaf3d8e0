"""Items and answers of the OpenAI Agents SDK as plain messages that hooks read, and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
from agents import ItemHelpers, RunState, ShellTool
from agents.models.fake_id import FAKE_RESPONSES_ID
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
)

from ..messages import Message, as_text
from ..turn import Reply

LOCAL = ("function_call", "shell_call", "local_shell_call", "apply_patch_call", "custom_tool_call")
"""Kinds of calls that tool hooks see."""
PENDING = (*LOCAL, "computer_call", "mcp_approval_request")
"""Kinds of items after which the SDK calls the model again."""

# --- answers --------------------------------------------------------------------------------------


def message_of(text: str) -> Any:
    content: list[Any] = [ResponseOutputText(annotations=[], text=text, type="output_text", logprobs=[])]
    return ResponseOutputMessage(
        id=FAKE_RESPONSES_ID, content=content, role="assistant", status="completed", type="message"
    )


def delta_of(text: str) -> Any:
    return ResponseTextDeltaEvent(
        content_index=0, delta=text, item_id=FAKE_RESPONSES_ID, logprobs=[], output_index=0, sequence_number=0,
        type="response.output_text.delta",
    )  # fmt: skip


def completed_of(output: list[Any]) -> Any:
    response = Response(
        id=FAKE_RESPONSES_ID, created_at=0, model="", object="response", output=output, tool_choice="auto", tools=[],
        parallel_tool_calls=False,
    )  # fmt: skip
    return ResponseCompletedEvent(response=response, sequence_number=0, type="response.completed")


def _messages_in(response: Any) -> list[Any]:
    return [item for item in response.output if isinstance(item, ResponseOutputMessage)]


def text_of(response: Any) -> str:
    parts: list[Any] = [part for message in _messages_in(response) for part in message.content]
    return "".join(str(getattr(part, "text", None) or getattr(part, "refusal", "")) for part in parts)


def with_text(response: Any, text: str, *, final: bool = False) -> Any:
    """An answer with another text and the same calls. A final one has a message, even an empty one."""
    rest = [item for item in response.output if not isinstance(item, ResponseOutputMessage)]
    calls = any(getattr(item, "type", None) in PENDING for item in rest)
    return replace(response, output=rest if calls and not text and not final else [message_of(text), *rest])


def is_final(response: Any, tools: list[Any], schema: Any) -> bool:
    """Whether the SDK takes the answer for the final one. A typed output without text is not."""
    messages, elsewhere = _messages_in(response), _elsewhere(tools)
    if not messages or (is_typed(schema) and not ItemHelpers.extract_last_text(messages[-1])):
        return False
    kinds = {getattr(item, "type", None) for item in response.output}
    return not any(kind in PENDING and kind not in elsewhere for kind in kinds)


def is_typed(schema: Any) -> bool:
    return schema is not None and not schema.is_plain_text()


def _elsewhere(tools: list[Any]) -> tuple[str, ...]:
    """Kinds of calls that look local, but run at the provider."""
    hosted = any(isinstance(tool, ShellTool) and tool.executor is None for tool in tools)
    return ("shell_call",) if hosted else ()


def reply_of(response: Any, tools: list[Any]) -> Reply:
    """An answer, as hooks read it."""
    usage = response.usage
    counts: dict[str, Any] = {
        "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "total_tokens": usage.total_tokens
    }  # fmt: skip
    kinds = [str(getattr(item, "type", "")) for item in response.output]
    elsewhere = _elsewhere(tools)
    if others := [kind for kind in kinds if kind.endswith("_call") and (kind not in LOCAL or kind in elsewhere)]:
        counts["other_calls"] = others
    return Reply(text_of(response), counts, "end_turn")


def output_text(result: Any) -> str | None:
    """The output that the user sees, as a text."""
    output = result.final_output
    if output is None or isinstance(output, str):
        return output
    last = [item for item in result.new_items if item.type in ("message_output_item", "tool_call_output_item")][-1:]
    if last and last[0].type == "message_output_item":
        return str(ItemHelpers.text_message_output(last[0]))
    return msgspec.json.encode(readable(output), enc_hook=str).decode()  # a tool's output


def as_output(text: str | None, output: Any, agent: Any) -> Any:
    """The text that hooks give for an output, in the output's type if it still has that type."""
    if text is None or isinstance(output, str):
        return text
    try:
        return agent.output_type.inner.validate_json(text)
    except Exception:
        return text


# --- messages -------------------------------------------------------------------------------------


def user_input(input: Any) -> tuple[Any, Callable[[Any], Any], int]:
    """The user's input, a function that puts another in its place, and the number of messages with it."""
    if isinstance(input, RunState):
        return None, lambda _: input, 1
    if isinstance(input, str):
        return input, lambda new: new if isinstance(new, str) else [{"role": "user", "content": new}], 1
    if new := _new_messages(input):
        content = _joined([item["content"] for item in input[-new:]])
        before, last = input[:-new], input[-1]
        return content, lambda other: input if other == content else [*before, {**last, "content": other}], len(input)
    return input, lambda new: new if isinstance(new, (str, list)) else as_text(new), len(input)


def _new_messages(items: list[Any]) -> int:
    """The number of user messages at the end."""
    found = 0
    while found < len(items) and isinstance(items[-found - 1], dict) and items[-found - 1].get("role") == "user":
        found += 1
    return found


def _joined(contents: list[Any]) -> Any:
    if len(contents) == 1:
        return contents[0]
    if all(isinstance(content, str) for content in contents):
        return "\n\n".join(contents)
    return [
        block
        for content in contents
        for block in ([{"type": "input_text", "text": content}] if isinstance(content, str) else content)
    ]


def user_message(text: str) -> Any:
    return {"role": "user", "content": text}


def plain(item: Any, tools: dict[str, str]) -> Message:
    """One item of the conversation, as hooks read it. `tools` has the names of tools by call id."""
    kind = item.get("type", "message")
    if kind == "message":
        content = item.get("content")
        if isinstance(content, list) and all(isinstance(part, dict) and "text" in part for part in content):
            content = "".join(part["text"] for part in content)
        role = item.get("role", "user")
        return {"role": "system" if role == "developer" else role, "content": content}
    if kind == "function_call":
        tools[item["call_id"]] = item["name"]
        call = {"id": item["call_id"], "tool": item["name"], "args": arguments_of(item.get("arguments"))}
        return {"role": "assistant", "content": "", "tool_calls": [call]}
    if kind.endswith("_output"):
        call_id = item.get("call_id")
        return {
            "role": "tool", "call_id": call_id, "tool": tools.get(str(call_id)), "content": item.get("output"),
            "is_error": False,
        }  # fmt: skip
    return {"role": "assistant", "content": "", "item": dict(item)}


def items_of(message: Message) -> list[Any]:
    """A hook's message, as items of the SDK."""
    role, content = message.get("role"), message.get("content")
    if "item" in message:
        return [message["item"]]
    if role == "tool":
        return [{"type": "function_call_output", "call_id": message["call_id"], "output": as_text(content)}]
    text = [{"role": role, "content": content if role == "user" else as_text(content)}] if content else []
    calls = [
        {"type": "function_call", "call_id": call["id"], "name": call["tool"], "arguments": json.dumps(call["args"])}
        for call in message.get("tool_calls") or ()
    ]
    return [*text, *calls]


def part(raw: Any, name: str) -> Any:
    return raw.get(name) if isinstance(raw, dict) else getattr(raw, name, None)


def id_of(raw: Any) -> str:
    return str(part(raw, "call_id") or part(raw, "id"))


def readable(output: Any) -> Any:
    return output.model_dump(exclude_none=True) if hasattr(output, "model_dump") else output


def arguments_of(raw: str | None) -> dict[str, Any]:
    try:
        args = json.loads(raw) if raw else {}
    except ValueError:
        args = None
    return args if isinstance(args, dict) else {"arguments": raw}
