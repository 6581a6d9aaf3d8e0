"""Ordinary steps of every event, for tests and for trying things out."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from .lifecycle import EVENTS, Step, event_named

_TOOL: dict[str, Any] = {"tool": "bash", "args": {"command": "echo hello"}, "call_id": "call-1"}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "session_end": {"reason": "exit"},
    "before_request": {"state": {}},
    "after_request": {"state": {}},
    "before_input": {"input": "hello"},
    "after_input": {"committed_len": 1},
    "before_prompt": {"system_prompt": "You are helpful.", "user_message": "hello"},
    "before_compact": {"message_count": 40, "token_estimate": 90_000, "threshold": 80_000},
    "after_compact": {"message_count": 4, "tokens_before": 90_000, "tokens_after": 9_000},
    "before_model": {"model": "test-model", "messages": [{"role": "user", "content": "hello"}], "message_count": 1},
    "after_model": {"model": "test-model", "output": "hi", "usage": {"input_tokens": 1}, "stop_reason": "end_turn"},
    "before_permission": {"proposed": "ask"},
    "after_permission": {"granted": True},
    "after_tool": {"output": "hello\n", "duration": 0.01},
    "after_tool_batch": {"results": [{"tool": "bash", "is_error": False}]},
    "before_response": {"response": "done"},
    "before_output": {"content": "done"},
    "turn_end": {"stop_reason": "end_turn", "iterations": 1, "response_length": 4},
    "subagent_start": {"agent_name": "helper", "initial_message": "look around"},
    "subagent_stop": {"agent_name": "helper", "reason": "done"},
    "notification": {"message": "build finished"},
    "error": {"error": "boom", "where": "before_model"},
}


def step(event: str, /, **fields: Any) -> Any:
    """A step of an event, with sensible defaults for the fields that you leave out."""
    row = event_named(event)
    defaults = {"session_id": "session-1", **(_TOOL if row.about_tool else {}), **deepcopy(_DEFAULTS.get(event, {}))}
    if row.about_tool and "tool" in fields and "args" not in fields:
        defaults["args"] = {}
    return row.step(**(defaults | fields))


def every_step() -> list[Step]:
    """One step of every event, in the order of the lifecycle."""
    return [step(name) for name in EVENTS]
