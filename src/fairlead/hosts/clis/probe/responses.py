"""The Responses API of OpenAI, as Codex speaks it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .dialects import HttpReply

if TYPE_CHECKING:
    from .model import ScriptedCall, ScriptedTurn


def offers_tools(body: dict[str, Any]) -> bool:
    """Whether a request is one of the agent's own, and not one for a title or a summary."""
    return bool(_tools(body))


def reply(turn: ScriptedTurn, body: dict[str, Any], path: str, number: int) -> HttpReply:
    """Say a turn: as events if the request asks for a stream, else as one response."""
    items = _items(turn, body, number)
    response = {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": body.get("model", ""),
        "output": items,
        "usage": {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 2,
        },
    }
    if not body.get("stream"):
        return HttpReply(200, "application/json", json.dumps(response).encode())
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}
    ]
    for index, item in enumerate(items):
        started = {**item, "status": "in_progress"}
        events.append({"type": "response.output_item.added", "output_index": index, "item": started})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": response})
    lines = (f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': at})}\n\n"
             for at, event in enumerate(events))  # fmt: skip
    return HttpReply(200, "text/event-stream", "".join(lines).encode())


def _items(turn: ScriptedTurn, body: dict[str, Any], number: int) -> list[dict[str, Any]]:
    from .model import Say

    if isinstance(turn, Say):
        content = {"type": "output_text", "text": turn.text, "annotations": []}
        message = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed"}
        return [{**message, "content": [content]}]
    calls = turn if isinstance(turn, tuple) else (turn,)
    return [_call(call, body, f"{number}_{at}") for at, call in enumerate(calls)]


def _call(call: ScriptedCall, body: dict[str, Any], mark: str) -> dict[str, Any]:
    """A call in the form of the tool's kind, which the request says: free-form tools take a text, others JSON."""
    space, _, name = call.tool.rpartition(".")
    item = {"status": "completed", "call_id": f"call_{mark}", "name": name}
    if space:
        item["namespace"] = space
    if _tools(body).get(call.tool) == "custom":
        return {"type": "custom_tool_call", "id": f"ctc_{mark}", **item, "input": str(call.args.get("input", ""))}
    return {"type": "function_call", "id": f"fc_{mark}", **item, "arguments": json.dumps(call.args)}


def _tools(body: dict[str, Any]) -> dict[str, str]:
    """The tools that a request offers, with their kinds; `space.tool` is one in a namespace.

    For some models they are not in `tools`, but in an item of the input, where plain ones are in a namespace too.
    """
    offered = list(body.get("tools") or [])
    for item in body.get("input") or []:
        if isinstance(item, dict) and item.get("type") == "additional_tools":
            offered += item.get("tools") or []
    kinds = {}
    for tool in offered:
        name, kind = str(tool.get("name")), str(tool.get("type"))
        if kind != "namespace":
            kinds[name] = kind
            continue
        for inner in tool.get("tools") or []:
            kinds[("" if name == "functions" else name + ".") + str(inner.get("name"))] = str(inner.get("type"))
    return kinds
