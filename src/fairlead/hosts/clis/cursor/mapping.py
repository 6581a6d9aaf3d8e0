"""Cursor. Experimental: its code for hooks is part of the tests, and the agent was never run.

Its generic events fire for every tool, so its events for single kinds of tools (`beforeShellExecution` and others)
would only bring the same calls again. Cursor Tab, which completes what a user types, has no generic events.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ....errors import FairleadError
from .. import hook_json
from ..effect import Effect
from ..mapping import (
    EventMapping,
    Host,
    Identity,
    Payload,
    a_text,
    content,
    error_fields,
    first_text,
    no_fields,
    no_reply,
    own_agent,
    to_seconds,
    without_none,
)


def _identify(payload: Payload) -> Identity:
    session_id = a_text(payload.get("conversation_id"))
    cwd = a_text(payload.get("cwd")) or first_text(payload.get("workspace_roots"))
    return Identity(session_id, a_text(payload.get("generation_id")), cwd, own_agent(session_id))


def _parse_tab_read(payload: Payload) -> dict[str, Any]:
    """Parse the reading of a file for a completion. The payload also has the content, which no hook needs."""
    path = a_text(payload.get("file_path"))
    if path is None:
        raise FairleadError("the path of a file was expected, and what came has none")
    return {"tool": "TabRead", "args": {"file_path": path}}


def _parse_tool_result(payload: Payload) -> dict[str, Any]:
    output = payload.get("tool_output", payload.get("tool_response"))
    return {**hook_json.parse_tool(payload), "output": content(output), "duration": to_seconds(payload.get("duration"))}


def _parse_tool_failure(payload: Payload) -> dict[str, Any]:
    return hook_json.parse_tool(payload) | error_fields(a_text(payload.get("error_message")) or "the tool failed")


def _parse_subagent_start(payload: Payload) -> dict[str, Any]:
    return {"agent_name": a_text(payload.get("subagent_type")), "initial_message": a_text(payload.get("task"))}


def _parse_subagent_stop(payload: Payload) -> dict[str, Any]:
    return {"agent_name": a_text(payload.get("subagent_type")), "reason": a_text(payload.get("status"))}


def _render_before_tool(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    if effect.deny is not None:
        return {"permission": "deny", "user_message": effect.deny, "agent_message": effect.deny}
    runs = effect.allow is not None or effect.args is not None
    return without_none(updated_input=effect.args, permission="allow" if runs else None)


def _render_context(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    return without_none(additional_context=hook_json.context_text(effect))


def _refine_input(effect: Effect, payload: Payload) -> Effect:
    """Report a stop as the deny that comes with it: Cursor refuses the message, and does no more."""
    return replace(effect, stop=None)


def _render_input(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    refused = effect.deny or effect.stop
    return {} if refused is None else {"continue": False, "user_message": refused}


def _render_turn_end(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    return without_none(followup_message=effect.extend)


HOST = Host(
    name="cursor",
    title="Cursor",
    program="cursor-agent",
    identify=_identify,
    project="CURSOR_PROJECT_DIR",
    needs_reply=True,
    events={
        "sessionStart": EventMapping("session_start", no_fields, _render_context, ("context",)),
        "sessionEnd": EventMapping("session_end", hook_json.parse_session_end, no_reply),
        "beforeSubmitPrompt": EventMapping(
            "before_input", hook_json.parse_prompt, _render_input, ("deny", "stop", "abort"), _refine_input
        ),
        "preToolUse": EventMapping("before_tool", hook_json.parse_tool, _render_before_tool, ("deny", "allow", "args")),
        "beforeTabFileRead": EventMapping("before_tool", _parse_tab_read, _render_before_tool, ("deny",)),
        "postToolUse": EventMapping("after_tool", _parse_tool_result, _render_context, ("context",)),
        "postToolUseFailure": EventMapping("after_tool", _parse_tool_failure, no_reply),
        "subagentStart": EventMapping("subagent_start", _parse_subagent_start, _render_before_tool, ("deny",)),
        "subagentStop": EventMapping("subagent_stop", _parse_subagent_stop, _render_turn_end, ("extend",)),
        "preCompact": EventMapping("before_compact", hook_json.parse_compact, no_reply),
        "stop": EventMapping("before_turn_end", hook_json.parse_turn_end, _render_turn_end, ("extend",)),
    },
    tools=(("TabRead", "read", {}),),
)
