"""Qwen Code."""

from __future__ import annotations

from typing import Any

from . import hook_json as said
from .effect import Effect
from .host import Host, Moment, Payload, silence, unheard


def _say_after_tool(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    """`continue: false` does not end a turn here: it puts the reason in the place of the output."""
    if effect.deny is not None:
        return {"continue": False, "stopReason": effect.deny}
    return said.say_context(effect, event, payload)


HOST = Host(
    name="qwen",
    title="Qwen Code",
    program="qwen",
    package="@qwen-code/qwen-code",
    proven="0.24.4",
    identify=said.identify,
    project="QWEN_PROJECT_DIR",
    headless={"before_input": "reason not shown", "session_end": "never fires"},
    notes=("It fires no SessionEnd in headless runs.",),
    moments={
        "SessionStart": Moment("session_start", said.session_start, said.say_context, ("context",)),
        "SessionEnd": Moment("session_end", said.session_end, silence),
        "UserPromptSubmit": Moment("before_input", said.prompt, said.say_input, ("deny", "stop", "abort", "context")),
        "PreToolUse": Moment("before_tool", said.tool, said.say_before_tool, ("deny",)),
        "PostToolUse": Moment("after_tool", said.tool_done, _say_after_tool, ("deny", "context")),
        "PostToolUseFailure": Moment("after_tool", said.tool_failed, _say_after_tool, ("deny", "context")),
        "PostToolBatch": Moment("after_tool_batch", said.batch, said.say_context, ("context",)),
        "Stop": Moment("before_turn_end", said.turn_end, said.say_turn_end, ("extend",)),
        "SubagentStart": Moment("subagent_start", said.subagent_start, silence),
        "SubagentStop": Moment("subagent_stop", said.subagent_stop, said.say_turn_end, ("extend",)),
        "PreCompact": Moment("before_compact", said.compact, silence),
        "Notification": Moment("notification", said.notification, silence),
        "MessageDisplay": Moment("before_output", said.displayed, silence, installed=False),
        "InstructionsLoaded": Moment("before_prompt", unheard, silence, installed=False),
    },
)
