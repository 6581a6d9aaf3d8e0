"""What a crewai agent sends to its model and gets from it, as hooks see it, and back again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from crewai.agents.parser import AgentFinish
from crewai.utilities.agent_utils import extract_tool_call_info, format_answer
from pydantic import BaseModel

from ..model import Message, as_text
from ..turn import rewritten

BLANK = " "
"""Nothing. crewai takes an empty answer for a failure of the model's."""


def system_prompt(messages: Sequence[Message]) -> str | None:
    return "\n\n".join(as_text(m.get("content")) for m in messages if m.get("role") == "system") or None


def with_system_prompt(messages: list[Message], prompt: str | None) -> None:
    """Say something else to begin with."""
    first = next((m for m in messages if m.get("role") == "system"), {"role": "system"})
    rest = [m for m in messages if m.get("role") != "system"]
    messages[:] = [*([{**first, "content": prompt}] if prompt else []), *rest]


def last_said(messages: Sequence[Message]) -> list[int]:
    """Where the user's last words are: all that he has said since somebody else spoke."""
    found: list[int] = []
    for at in range(len(messages) - 1, -1, -1):
        role = messages[at].get("role")
        if role == "user":
            found.insert(0, at)
        elif found and role != "system":
            break
    return found


def said_at(messages: Sequence[Message], places: Sequence[int]) -> Any:
    """What the user says in these messages: a text, or a list of contents."""
    said = [messages[at].get("content") or "" for at in places]
    if len(said) < 2:
        return said[0] if said else ""
    if all(isinstance(one, str) for one in said):
        return "\n\n".join(said)
    blocks = [[{"type": "text", "text": one}] if isinstance(one, str) else one for one in said]
    return [block for some in blocks for block in some]


def plain(message: Message) -> Message:
    """A message as hooks see it."""
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
        made = [
            {"id": c["id"], "type": "function", "function": {"name": c["tool"], "arguments": json.dumps(c["args"])}}
            for c in calls
        ]
        return {"role": "assistant", "content": message.get("content") or None, "tool_calls": made}
    return {"role": message.get("role"), "content": message.get("content")}


def rewrite(messages: Sequence[Message], wanted: Sequence[Message]) -> list[Message]:
    """The messages that a hook wants to be sent, for one request. What the system says first stays."""
    said = [m for m in messages if m.get("role") != "system"]
    system = [m for m in messages if m.get("role") == "system"]
    return [*system, *rewritten(said, [plain(m) for m in said], wanted, native)]


def calls_in(answer: Any) -> list[tuple[str, str, dict[str, Any]]]:
    """The calls that a model asks for: id, tool and arguments. None if it only says something."""
    if not isinstance(answer, list):
        return []
    found = [extract_tool_call_info(call) for call in answer]
    return [(info[0], info[1], _arguments(info[2])) for info in found if info is not None]


def _arguments(given: Any) -> dict[str, Any]:
    if isinstance(given, str):
        try:
            given = json.loads(given) if given else {}
        except ValueError:
            return {"arguments": given}
    return dict(given) if isinstance(given, dict) else {"arguments": given}


def text_of(answer: Any) -> str | None:
    """What a model says. None if it asks for tools."""
    if isinstance(answer, BaseModel):
        return answer.model_dump_json()
    return None if isinstance(answer, list) else str(answer or "")


def final_text(answer: Any, *, with_tools: bool) -> str | None:
    """The agent's answer, if it is one. A model that was given no tools to call may ask for them in its text."""
    text = text_of(answer)
    if text is None or with_tools or not isinstance(answer, str):
        return text
    told = format_answer(text)
    return str(told.output) if isinstance(told, AgentFinish) else None


def as_answer(text: str | None, answer: Any, *, with_tools: bool) -> Any:
    """An answer that says this. Raises ValueError if it must have a form that the text does not have."""
    if isinstance(answer, BaseModel):
        return type(answer).model_validate_json(text or "")
    text = text if text and text.strip() else BLANK
    if with_tools or final_text(text, with_tools=False) == text:
        return text
    return f"Thought: I now can give a final answer\nFinal Answer: {text}"
