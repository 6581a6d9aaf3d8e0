"""Windsurf. It has an event for each kind of tool.

Experimental: this follows the documentation and was never tested with the CLI.
"""

from __future__ import annotations

from typing import Any

from .. import hook_json
from ..mapping import EventMapping, Host, Identity, Payload, a_dict, a_text, content, input_fields, no_reply, own_agent


def _identify(payload: Payload) -> Identity:
    session_id = a_text(payload.get("trajectory_id"))
    cwd = a_text(a_dict(payload.get("tool_info")).get("cwd"))
    return Identity(session_id, a_text(payload.get("execution_id")), cwd, own_agent(session_id))


def _parse_tool(payload: Payload) -> dict[str, Any]:
    info = a_dict(payload.get("tool_info"))
    action = str(payload.get("agent_action_name", "")).removeprefix("pre_").removeprefix("post_")
    args = {_ARGS.get(key, key): value for key, value in info.items()}
    if action == "mcp_tool_use":
        name = f"mcp__{info.get('mcp_server_name')}__{info.get('mcp_tool_name')}"
        return {"tool": name, "args": a_dict(info.get("mcp_tool_arguments"))}
    return {"tool": _TOOLS.get(action, action), "args": args}


_TOOLS = {"run_command": "run_command", "read_code": "read_file", "write_code": "write_file"}
_ARGS = {"command_line": "command"}


def _parse_tool_result(payload: Payload) -> dict[str, Any]:
    return {**_parse_tool(payload), "output": content(a_dict(payload.get("tool_info")).get("mcp_result"))}


def _parse_prompt(payload: Payload) -> dict[str, Any] | None:
    return input_fields(a_dict(payload.get("tool_info")).get("user_prompt"))


_BEFORE = EventMapping("before_tool", _parse_tool, hook_json.render_exit_2, ("deny",))
_AFTER = EventMapping("after_tool", _parse_tool_result, no_reply)

HOST = Host(
    name="windsurf",
    title="Windsurf",
    program="windsurf",
    identify=_identify,
    events={
        "pre_user_prompt": EventMapping("before_input", _parse_prompt, hook_json.render_exit_2, ("deny",)),
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
