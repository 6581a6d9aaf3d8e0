"""The dialect of OpenAI's chat completions: one JSON object, or SSE chunks whose tool calls come in pieces."""

from __future__ import annotations

import json
from typing import Any

from .dialects import HttpReply
from .model import Say, ScriptedCall, ScriptedTurn


def offers_tools(body: dict[str, Any]) -> bool:
    """Whether a request is one of the agent's own."""
    return bool(body.get("tools"))


def reply(turn: ScriptedTurn, body: dict[str, Any], path: str, number: int) -> HttpReply:
    """A turn in this dialect: streamed (SSE) if the request asks for that."""
    base = {"id": f"chatcmpl-{number}", "created": 1_700_000_000, "model": str(body.get("model") or "scripted")}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    ends = "stop" if isinstance(turn, Say) else "tool_calls"
    if not body.get("stream"):
        message: dict[str, Any] = {"role": "assistant", "content": None}
        if isinstance(turn, Say):
            message["content"] = turn.text
        else:
            message["tool_calls"] = _calls(turn, number)
        choice = {"index": 0, "message": message, "finish_reason": ends, "logprobs": None}
        whole = {**base, "object": "chat.completion", "choices": [choice], "usage": usage}
        return HttpReply(200, "application/json", json.dumps(whole).encode())

    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if isinstance(turn, Say):
        deltas.append({"content": turn.text})
    else:
        for index, call in enumerate(_calls(turn, number)):
            arguments = call["function"]["arguments"]
            opening = {**call, "index": index, "function": {**call["function"], "arguments": ""}}
            rest = {"index": index, "function": {"arguments": arguments}}
            deltas += [{"tool_calls": [opening]}, {"tool_calls": [rest]}]
    chunk = {**base, "object": "chat.completion.chunk"}
    chunks = [{**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": ends}]})
    chunks.append({**chunk, "choices": [], "usage": usage})
    lines = [f"data: {json.dumps(each)}\n\n" for each in chunks]
    return HttpReply(200, "text/event-stream", "".join([*lines, "data: [DONE]\n\n"]).encode())


def _calls(turn: ScriptedCall | tuple[ScriptedCall, ...], number: int) -> list[dict[str, Any]]:
    """The tool calls of a turn, each with an id of its own."""
    return [
        {
            "id": f"call_{number}_{index}",
            "type": "function",
            "function": {"name": call.tool, "arguments": json.dumps(call.args)},
        }
        for index, call in enumerate((turn,) if isinstance(turn, ScriptedCall) else turn)
    ]
