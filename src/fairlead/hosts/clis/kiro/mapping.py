"""Kiro CLI and IDE. Experimental: this follows the documentation and was never tested with the CLI."""

from __future__ import annotations

from typing import Any

from .. import hook_json
from ..effect import Effect
from ..mapping import TEXT, EventMapping, Host, Payload, no_fields, no_reply, without_none


def _render_context(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    """Kiro takes all that a hook prints as context."""
    return without_none(**{TEXT: hook_json.context_text(effect)})


EMBEDDED = {
    "agentSpawn": EventMapping("session_start", no_fields, _render_context, ("context",)),
    "userPromptSubmit": EventMapping("before_input", hook_json.parse_prompt, _render_context, ("context",)),
    "preToolUse": EventMapping("before_tool", hook_json.parse_tool, hook_json.render_exit_2, ("deny",)),
    "postToolUse": EventMapping("after_tool", hook_json.parse_tool_result, no_reply),
    "stop": EventMapping("before_turn_end", hook_json.parse_turn_end, no_reply),
}
"""The events of hooks in the files of agents, which Kiro CLI 2 reads, and 3 still does."""
STANDALONE = {
    "SessionStart": EMBEDDED["agentSpawn"],
    "UserPromptSubmit": EventMapping("before_input", hook_json.parse_prompt, hook_json.render_exit_2, ("deny",)),
    "PreToolUse": EMBEDDED["preToolUse"],
    "PostToolUse": EMBEDDED["postToolUse"],
    "Stop": EMBEDDED["stop"],
}
"""The events of hooks in files of their own, which Kiro CLI 3 and Kiro IDE 1 read."""

HOST = Host(
    name="kiro",
    title="Kiro",
    program="kiro-cli",
    identify=hook_json.identify,
    events={**EMBEDDED, **STANDALONE},
)
