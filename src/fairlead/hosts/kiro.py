"""Kiro CLI. From its documents: nobody has seen this run."""

from __future__ import annotations

from typing import Any

from . import hook_json as said
from .effect import Effect
from .host import TEXT, Host, Moment, Payload, nothing, silence


def _say_context(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    """What a hook prints is context, as it is."""
    text = said.joined(effect)
    return {} if text is None else {TEXT: text}


HOST = Host(
    name="kiro",
    title="Kiro CLI",
    program="kiro-cli",
    identify=said.identify,
    moments={
        "agentSpawn": Moment("session_start", nothing, _say_context, ("context",)),
        "userPromptSubmit": Moment("before_input", said.prompt, _say_context, ("context",)),
        "preToolUse": Moment("before_tool", said.tool, said.say_refusal, ("deny",)),
        "postToolUse": Moment("after_tool", said.tool_done, silence),
        "stop": Moment("before_turn_end", said.turn_end, silence),
    },
)
