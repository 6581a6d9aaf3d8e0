"""Factory Droid. It runs a tool on `ask`, and exit code 3 aborts the agent."""

from __future__ import annotations

from .. import hook_json
from ..effect import Effect, refuse_args
from ..mapping import EventMapping, Host, Payload, no_reply


def _refine_before_tool(effect: Effect, payload: Payload) -> Effect:
    """Deny a call that a hook took an argument from. Droid merges new arguments into the old ones."""
    call = hook_json.parse_tool(payload)
    if effect.args is None or effect.deny is not None or call["args"].keys() <= effect.args.keys():
        return effect
    return refuse_args(effect, call["tool"])


HOST = Host(
    name="droid",
    title="Factory Droid",
    program="droid",
    package="droid",
    proven="0.215.0",
    identify=hook_json.identify,
    project="FACTORY_PROJECT_DIR",
    tools=(("{TodoWrite,Skill,TaskOutput,TaskStop,ExitSpecMode}", "agent", {}),),
    headless={"before_input": "never fires"},
    notes=("`droid exec` fires no UserPromptSubmit, so hooks do not see the user's message there.",),
    events={
        "SessionStart": EventMapping(
            "session_start", hook_json.parse_session_start, hook_json.render_context, ("context",)
        ),
        "SessionEnd": EventMapping("session_end", hook_json.parse_session_end, no_reply),
        "UserPromptSubmit": EventMapping(
            "before_input", hook_json.parse_prompt, hook_json.render_input, ("deny", "stop", "abort", "context")
        ),
        "PreToolUse": EventMapping(
            "before_tool",
            hook_json.parse_tool,
            hook_json.render_before_tool,
            ("deny", "allow", "args", "stop", "abort"),
            refine=_refine_before_tool,
        ),
        "PostToolUse": EventMapping(
            "after_tool", hook_json.parse_tool_result, hook_json.render_stop, ("stop", "abort", "context")
        ),
        "Stop": EventMapping(
            "before_turn_end", hook_json.parse_turn_end, hook_json.render_turn_end, ("extend", "stop", "abort")
        ),
        "SubagentStop": EventMapping(
            "subagent_stop", hook_json.parse_subagent_stop, hook_json.render_turn_end, ("extend",)
        ),
        "PreCompact": EventMapping("before_compact", hook_json.parse_compact, no_reply),
        "Notification": EventMapping("notification", hook_json.parse_notification, no_reply),
    },
)
