"""Windsurf. From its documents: nobody has seen this run. It has an event for each kind of tool."""

from __future__ import annotations

from typing import Any

from ..lifecycle import Agent
from . import hook_json as said
from .host import Host, Identity, Moment, Payload, a_dict, a_text, content, silence


def _identify(payload: Payload) -> Identity:
    session_id = a_text(payload.get("trajectory_id"))
    cwd = a_text(a_dict(payload.get("tool_info")).get("cwd"))
    return Identity(session_id, a_text(payload.get("execution_id")), cwd, Agent(session_id) if session_id else None)


def _tool(payload: Payload) -> dict[str, Any]:
    about = a_dict(payload.get("tool_info"))
    action = str(payload.get("agent_action_name", "")).removeprefix("pre_").removeprefix("post_")
    args = {_ARGS.get(key, key): value for key, value in about.items()}
    if action == "mcp_tool_use":
        name = f"mcp__{about.get('mcp_server_name')}__{about.get('mcp_tool_name')}"
        return {"tool": name, "args": a_dict(about.get("mcp_tool_arguments"))}
    return {"tool": _TOOLS.get(action, action), "args": args}


_TOOLS = {"run_command": "run_command", "read_code": "read_file", "write_code": "write_file"}
_ARGS = {"command_line": "command"}


def _tool_done(payload: Payload) -> dict[str, Any]:
    return {**_tool(payload), "output": content(a_dict(payload.get("tool_info")).get("mcp_result"))}


def _prompt(payload: Payload) -> dict[str, Any] | None:
    text = a_dict(payload.get("tool_info")).get("user_prompt")
    return {"input": text} if isinstance(text, str) and text else None


_BEFORE = Moment("before_tool", _tool, said.say_refusal, ("deny",))
_AFTER = Moment("after_tool", _tool_done, silence)

HOST = Host(
    name="windsurf",
    title="Windsurf",
    program="windsurf",
    identify=_identify,
    moments={
        "pre_user_prompt": Moment("before_input", _prompt, said.say_refusal, ("deny",)),
        "pre_run_command": _BEFORE,
        "pre_read_code": _BEFORE,
        "pre_write_code": _BEFORE,
        "pre_mcp_tool_use": _BEFORE,
        "post_run_command": _AFTER,
        "post_read_code": _AFTER,
        "post_write_code": _AFTER,
        "post_mcp_tool_use": _AFTER,
    },
)
