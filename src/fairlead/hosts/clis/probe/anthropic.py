"""The Messages API: what Claude Code speaks."""

from __future__ import annotations

import json
from typing import Any

from .dialects import HttpReply
from .model import Say, ScriptedCall, ScriptedTurn


def offers_tools(body: dict[str, Any]) -> bool:
    """Whether a request is one of the agent's own: those for titles and the like offer no tools."""
    return bool(body.get("tools"))


def reply(turn: ScriptedTurn, body: dict[str, Any], path: str, number: int) -> HttpReply:
    """A turn as a message: streamed if the request asks for that."""
    blocks = _blocks(turn, number)
    message = {
        "id": f"msg_probe{number:06d}",
        "type": "message",
        "role": "assistant",
        "model": str(body.get("model") or "scripted"),
        "content": blocks,
        "stop_reason": "end_turn" if isinstance(turn, Say) else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 10},
    }
    if not body.get("stream"):
        return HttpReply(200, "application/json", json.dumps(message).encode())
    return HttpReply(200, "text/event-stream", b"".join(_event(event) for event in _events(message)))


def _blocks(turn: ScriptedTurn, number: int) -> list[dict[str, Any]]:
    """The content of the message. The ids of its calls are different in every message."""
    if isinstance(turn, Say):
        return [{"type": "text", "text": turn.text}]
    calls = (turn,) if isinstance(turn, ScriptedCall) else turn
    return [
        {"type": "tool_use", "id": f"toolu_probe{number:06d}{place:02d}", "name": call.tool, "input": call.args}
        for place, call in enumerate(calls)
    ]


def _events(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The message as the events of its stream."""
    empty = {**message, "content": [], "stop_reason": None}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": empty}]
    for index, block in enumerate(message["content"]):
        delta: dict[str, Any]
        if block["type"] == "text":
            start, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events += [
            {"type": "content_block_start", "index": index, "content_block": start},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events += [
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": 10}},
        {"type": "message_stop"},
    ]
    return events


def _event(event: dict[str, Any]) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
