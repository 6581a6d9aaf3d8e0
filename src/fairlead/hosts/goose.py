"""goose. From its documents: nobody has seen this run."""

from __future__ import annotations

from . import hook_json as said
from .host import Host, Moment, silence

HOST = Host(
    name="goose",
    title="goose",
    program="goose",
    identify=said.identify,
    moments={
        "SessionStart": Moment("session_start", said.session_start, silence),
        "SessionEnd": Moment("session_end", said.session_end, silence),
        "UserPromptSubmit": Moment("before_input", said.prompt, said.say_refusal, ("deny",)),
        "PreToolUse": Moment("before_tool", said.tool, said.say_refusal, ("deny",)),
        "PostToolUse": Moment("after_tool", said.tool_done, silence),
        "PostToolUseFailure": Moment("after_tool", said.tool_failed, silence),
        "Stop": Moment("before_turn_end", said.turn_end, silence),
        "PreCompact": Moment("before_compact", said.compact, silence),
        "Notification": Moment("notification", said.notification, silence),
    },
)
