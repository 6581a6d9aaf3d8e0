"""Factory Droid. An `ask` means run there, and exit 3 aborts the agent."""

from __future__ import annotations

from typing import Any

from . import hook_json as said
from .effect import Effect, to_repeat
from .host import Host, Moment, Payload, silence


def _say_before_tool(effect: Effect, event: str, payload: Payload) -> dict[str, Any]:
    """Droid puts new arguments over the old ones: one that a hook has taken out would stay."""
    old = said.tool(payload)["args"]
    if effect.args is not None and effect.deny is None and not old.keys() <= effect.args.keys():
        effect.deny = to_repeat(str(payload.get("tool_name")), effect.args)
    return said.say_before_tool(effect, event, payload)


HOST = Host(
    name="droid",
    title="Factory Droid",
    program="droid",
    package="droid",
    proven="0.215.0",
    identify=said.identify,
    project="FACTORY_PROJECT_DIR",
    tools=(("{TodoWrite,Skill,TaskOutput,TaskStop,ExitSpecMode}", "agent", {}),),
    headless={"before_input": "never fires"},
    notes=("`droid exec` fires no UserPromptSubmit: what a user says there is not seen.",),
    moments={
        "SessionStart": Moment("session_start", said.session_start, said.say_context, ("context",)),
        "SessionEnd": Moment("session_end", said.session_end, silence),
        "UserPromptSubmit": Moment("before_input", said.prompt, said.say_input, ("deny", "stop", "abort", "context")),
        "PreToolUse": Moment("before_tool", said.tool, _say_before_tool, ("deny", "allow", "args", "stop", "abort")),
        "PostToolUse": Moment("after_tool", said.tool_done, said.say_input, ("stop", "abort", "context")),
        "Stop": Moment("before_turn_end", said.turn_end, said.say_turn_end, ("extend", "stop", "abort")),
        "SubagentStop": Moment("subagent_stop", said.subagent_stop, said.say_turn_end, ("extend",)),
        "PreCompact": Moment("before_compact", said.compact, silence),
        "Notification": Moment("notification", said.notification, silence),
    },
)
