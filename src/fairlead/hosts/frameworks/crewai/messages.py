"""Messages and answers of crewai as plain messages that hooks read, and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from crewai.agents.parser import AgentFinish
from crewai.utilities.agent_utils import extract_tool_call_info, format_answer
from pydantic import BaseModel

from ..messages import Message, as_text
from ..turn import rewritten

BLANK = " "
"""An empty answer. crewai takes an empty text for a failure of the model."""


def system_prompt(messages: Sequence[Message]) -> str | None:
    return "\n\n".join(as_text(m.get("content")) for m in messages if m.get("role") == "system") or None


def with_system_prompt(messages: list[Message], prompt: str | None) -> None:
    """Replace the system prompt."""
    first = next((m for m in messages if m.get("role") == "system"), {"role": "system"})
    rest = [m for m in messages if m.get("role") != "system"]
    messages[:] = [*([{**first, "content": prompt}] if prompt else []), *rest]


def last_input(messages: Sequence[Message]) -> list[int]:
    """The positions of the user's input: the user messages at the end."""
    found: list[int] = []
    for at in range(len(messages) - 1, -1, -1):
        role = messages[at].get("role")
        if role == "user":
            found.insert(0, at)
        elif found and role != "system":
            break
    return found


def input_at(messages: Sequence[Message], positions: Sequence[int]) -> Any:
    """The user's input in these messages: a text, or a list of contents."""
    contents = [messages[at].get("content") or "" for at in positions]
    if len(contents) < 2:
        return contents[0] if contents else ""
    if all(isinstance(one, str) for one in contents):
        return "\n\n".join(contents)
    blocks = [[{"type": "text", "text": one}] if isinstance(one, str) else one for one in contents]
    return [block for some in blocks for block in some]


def plain(message: Message) -> Message:
    """A message, as hooks read it."""
    role, content = message.get("role"), message.get("content")
    if role == "tool":
        about = {"call_id": message.get("tool_call_id"), "tool": message.get("name")}
        return {"role": "tool", **about, "content": as_text(content), "is_error": False}
    if role == "assistant" and message.get("tool_calls"):
        calls = [{"id": i, "tool": tool, "args": args} for i, tool, args in calls_in(message["tool_calls"])]
        return {"role": "assistant", "content": as_text(content), "tool_calls": calls}
    return {"role": role, "content": content if isinstance(content, (str, list)) else as_text(content)}


def native(message: Message) -> Message:
    """A hook's message, as crewai sends it."""
    if message.get("role") == "tool":
        about = {"tool_call_id": message.get("call_id"), "name": message.get("tool")}
        return {"role": "tool", **about, "content": as_text(message.get("content"))}
    if calls := message.get("tool_calls"):
        native_calls = [
            {"id": c["id"], "type": "function", "function": {"name": c["tool"], "arguments": json.dumps(c["args"])}}
            for c in calls
        ]
        return {"role": "assistant", "content": message.get("content") or None, "tool_calls": native_calls}
    return {"role": message.get("role"), "content": message.get("content")}


def rewrite(messages: Sequence[Message], changed: Sequence[Message]) -> list[Message]:
    """The messages to send after a hook has changed them. System messages stay."""
    others = [m for m in messages if m.get("role") != "system"]
    system = [m for m in messages if m.get("role") == "system"]
    return [*system, *rewritten(others, [plain(m) for m in others], changed, native)]


def calls_in(answer: Any) -> list[tuple[str, str, dict[str, Any]]]:
    """The calls in an answer: id, tool and arguments. Empty if the answer is a text."""
    if not isinstance(answer, list):
        return []
    found = [extract_tool_call_info(call) for call in answer]
    return [(info[0], info[1], _arguments(info[2])) for info in found if info is not None]


def _arguments(args: Any) -> dict[str, Any]:
    if isinstance(args, str):
        try:
            args = json.loads(args) if args else {}
        except ValueError:
            return {"arguments": args}
    return dict(args) if isinstance(args, dict) else {"arguments": args}


def text_of(answer: Any) -> str | None:
    """The text of an answer. None if it calls tools."""
    if isinstance(answer, BaseModel):
        return answer.model_dump_json()
    return None if isinstance(answer, list) else str(answer or "")


def final_text(answer: Any, *, with_tools: bool) -> str | None:
    """The text of a final answer, else None. A model without native tools may call them in its text."""
    text = text_of(answer)
    if text is None or with_tools or not isinstance(answer, str):
        return text
    answer = format_answer(text)
    return str(answer.output) if isinstance(answer, AgentFinish) else None


def as_answer(text: str | None, answer: Any, *, with_tools: bool) -> Any:
    """An answer with this text. Raises ValueError if the answer is typed and the text does not fit."""
    if isinstance(answer, BaseModel):
        return type(answer).model_validate_json(text or "")
    text = text if text and text.strip() else BLANK
    if with_tools or final_text(text, with_tools=False) == text:
        return text
    return f"Thought: I now can give a final answer\nFinal Answer: {text}"
