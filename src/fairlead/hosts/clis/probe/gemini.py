"""The Gemini API: generateContent, and streamGenerateContent with `alt=sse`."""

from __future__ import annotations

import json
from typing import Any

from .dialects import HttpReply
from .model import Say, ScriptedCall, ScriptedTurn


def offers_tools(body: dict[str, Any]) -> bool:
    """Whether the agent itself asks: its side calls (routing, who speaks next, summaries) declare no functions."""
    tools = body.get("tools")
    declared = any(tool.get("functionDeclarations") for tool in tools or [] if isinstance(tool, dict))
    return declared and not _wants_json(body)


def reply(turn: ScriptedTurn, body: dict[str, Any], path: str, number: int) -> HttpReply:
    """One whole answer: a stream is a single chunk of the same form."""
    if isinstance(turn, Say):
        text = json.dumps(_least(_schema(body))) if _wants_json(body) else turn.text
        parts: list[dict[str, Any]] = [{"text": text}]
    else:
        calls = (turn,) if isinstance(turn, ScriptedCall) else turn
        parts = [
            {"functionCall": {"id": f"call_{number}_{place}", "name": call.tool, "args": call.args}}
            for place, call in enumerate(calls)
        ]
    answer = {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": path.rpartition("/models/")[2].partition(":")[0],
        "responseId": f"response_{number}",
    }
    content = json.dumps(answer)
    if ":streamGenerateContent" in path:
        if "alt=sse" in path.partition("?")[2]:
            return HttpReply(200, "text/event-stream", f"data: {content}\r\n\r\n".encode())
        content = f"[{content}]"
    return HttpReply(200, "application/json", content.encode())


def _config(body: dict[str, Any]) -> dict[str, Any]:
    config = body.get("generationConfig")
    return config if isinstance(config, dict) else {}


def _wants_json(body: dict[str, Any]) -> bool:
    return _config(body).get("responseMimeType") == "application/json"


def _schema(body: dict[str, Any]) -> dict[str, Any]:
    config = _config(body)
    schema = config.get("responseJsonSchema") or config.get("responseSchema")
    return schema if isinstance(schema, dict) else {"type": "object"}


def _least(schema: dict[str, Any]) -> Any:
    """The least value a schema allows: what a side call gets that wants JSON.

    Of a choice the last is taken: who speaks next is then the user, and the turn ends.
    """
    choice = schema.get("enum")
    if choice:
        return choice[-1]
    kind = str(schema.get("type", "object")).lower()
    if kind == "object":
        fields = schema.get("properties") or {}
        return {name: _least(fields.get(name) or {"type": "string"}) for name in schema.get("required") or fields}
    return {"array": [], "number": 0, "integer": 0, "boolean": False}.get(kind, "ok")
