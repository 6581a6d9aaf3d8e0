"""OpenCode. Its hooks are functions of a plugin, so `fairlead install` writes a plugin that runs the launcher."""

from __future__ import annotations

from typing import Any

from ....lifecycle import Agent
from .. import hook_json
from ..effect import Effect
from ..mapping import (
    EventMapping,
    Host,
    Identity,
    Payload,
    a_dict,
    a_text,
    content,
    no_fields,
    no_reply,
    no_step,
    without_none,
)


def _identify(payload: Payload) -> Identity:
    session_id = a_text(payload.get("session_id"))
    for key in ("raw_input", "input", "event"):
        about = a_dict(payload.get(key))
        about = a_dict(about.get("properties")) if key == "event" else about
        session_id = session_id or a_text(about.get("sessionID"))
    info = a_dict(a_dict(a_dict(payload.get("event")).get("properties")).get("info"))
    parent = a_text(payload.get("parent_session_id")) or a_text(info.get("parentID"))
    cwd = a_text(payload.get("cwd")) or a_text(info.get("directory"))
    agent = Agent(session_id, a_text(payload.get("agent")), parent) if session_id else None
    return Identity(session_id, a_text(payload.get("message_id")), cwd, agent)


def _parse_tool(payload: Payload) -> dict[str, Any]:
    raw = a_dict(payload.get("raw_input"))
    args = payload.get("tool_input", raw.get("args"))
    call_id = a_text(payload.get("tool_use_id")) or a_text(raw.get("callID"))
    return {"tool": payload.get("tool_name"), "args": a_dict(args), "call_id": call_id}


def _parse_tool_result(payload: Payload) -> dict[str, Any]:
    return {**_parse_tool(payload), "output": content(a_dict(payload.get("raw_output")).get("output"))}


def _parse_prompt(payload: Payload) -> dict[str, Any] | None:
    parts = a_dict(payload.get("output")).get("parts")
    texts = [part["text"] for part in parts or () if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return {"input": "\n".join(texts)} if texts else None


def _render(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    """Tell the plugin what to do.

    It throws on `deny`, aborts the session on `stop`, replaces `args` and `output`, and adds `context`.
    """
    return without_none(
        deny=effect.deny, stop=effect.stop, args=effect.args, output=effect.output,
        context=hook_json.context_text(effect),
    )  # fmt: skip


HOST = Host(
    name="opencode",
    title="OpenCode",
    program="opencode",
    package="opencode-ai",
    proven="1.18.33",
    identify=_identify,
    tools=(("{todowrite,todoread,skill}", "agent", {}),),
    events={
        "event:session.created": EventMapping("session_start", no_fields, no_reply),
        "chat.message": EventMapping("before_input", _parse_prompt, _render, ("deny", "stop", "abort", "context")),
        "PreToolUse": EventMapping("before_tool", _parse_tool, _render, ("deny", "args", "stop", "abort")),
        "PostToolUse": EventMapping(
            "after_tool", _parse_tool_result, _render, ("deny", "output", "stop", "abort", "context")
        ),
        "event:session.idle": EventMapping("before_turn_end", no_fields, no_reply),
        "event:session.status": EventMapping("notification", no_step, no_reply, installed=False),
    },
)
