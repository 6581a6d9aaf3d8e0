"""The OpenAI Agents SDK's items and answers as hooks see them, and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agents import ItemHelpers, RunState
from agents.models.fake_id import FAKE_RESPONSES_ID
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
)

from ..model import Message, as_text
from ..turn import Reply

LOCAL = ("function_call", "shell_call", "local_shell_call", "apply_patch_call", "custom_tool_call")
"""Calls that tool hooks see."""
PENDING = (*LOCAL, "computer_call", "mcp_approval_request")
"""Parts of an answer with which it is not the last one."""

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


def with_text(response: Any, text: str) -> Any:
    """An answer with another text. Its calls stay as they are."""
    rest = [item for item in response.output if not isinstance(item, ResponseOutputMessage)]
    calls = any(getattr(item, "type", None) in PENDING for item in rest)
    return replace(response, output=rest if calls and not text else [message_of(text), *rest])


def is_final(response: Any) -> bool:
    return bool(_messages_in(response)) and not any(getattr(item, "type", None) in PENDING for item in response.output)


def told(response: Any) -> Reply:
    """An answer, as hooks see it."""
    usage = response.usage
    counts: dict[str, Any] = {
        "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "total_tokens": usage.total_tokens
    }  # fmt: skip
    kinds = [str(getattr(item, "type", "")) for item in response.output]
    if others := [kind for kind in kinds if kind.endswith("_call") and kind not in LOCAL]:
        counts["other_calls"] = others
    return Reply(text_of(response), counts, "end_turn")


def output_text(result: Any) -> str | None:
    """What the user gets to see, as a text."""
    output = result.final_output
    if output is None or isinstance(output, str):
        return output
    items = [item for item in result.new_items if item.type == "message_output_item"]
    return ItemHelpers.text_message_output(items[-1]) if items else as_text(output)


def as_output(text: str | None, output: Any, agent: Any) -> Any:
    """What hooks made of an output, in the type that it had, where it still is of that type."""
    if text is None or isinstance(output, str):
        return text
    try:
        return agent.output_type.inner.validate_json(text)
    except Exception:
        return text


# --- messages -------------------------------------------------------------------------------------


def said_by_user(given: Any) -> tuple[Any, Callable[[Any], Any], int]:
    """What the user says, how to put something else in its place, and how many messages it is part of."""
    if isinstance(given, RunState):
        return None, lambda _: given, 1
    if isinstance(given, str):
        return given, lambda new: new if isinstance(new, str) else [{"role": "user", "content": new}], 1
    if given and isinstance(given[-1], dict) and given[-1].get("role") == "user":
        return given[-1]["content"], lambda new: [*given[:-1], {**given[-1], "content": new}], len(given)
    return given, lambda new: new if isinstance(new, (str, list)) else as_text(new), len(given)


def user_message(text: str) -> Any:
    return {"role": "user", "content": text}


def plain(item: Any, tools: dict[str, str]) -> Message:
    """One item of the conversation, as hooks see it. `tools` are those that were called so far, by the call's id."""
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
    """A message of a hook's, as the SDK has it."""
    role, content = message.get("role"), message.get("content")
    if "item" in message:
        return [message["item"]]
    if role == "tool":
        return [{"type": "function_call_output", "call_id": message["call_id"], "output": as_text(content)}]
    said = [{"role": role, "content": content if role == "user" else as_text(content)}] if content else []
    calls = [
        {"type": "function_call", "call_id": call["id"], "name": call["tool"], "arguments": json.dumps(call["args"])}
        for call in message.get("tool_calls") or ()
    ]
    return [*said, *calls]


def arguments_of(raw: str | None) -> dict[str, Any]:
    try:
        args = json.loads(raw) if raw else {}
    except ValueError:
        args = None
    return args if isinstance(args, dict) else {"arguments": raw}
