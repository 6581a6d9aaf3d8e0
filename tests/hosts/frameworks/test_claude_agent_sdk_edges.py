"""What a review found in the Claude Agent SDK: whose permission it is."""

from __future__ import annotations

from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, PermissionResultAllow, PermissionResultDeny, ToolPermissionContext
from test_claude_agent_sdk import tell

from fairlead import Hooks, deny
from fairlead.hosts.frameworks.claude_agent_sdk import Fairlead


@pytest.mark.parametrize("same", [False, True], ids=["other arguments", "same arguments"])
async def test_equal_call_ids_do_not_mix_up_sessions(same: bool) -> None:
    async def yes(*asked: Any) -> PermissionResultAllow:
        return PermissionResultAllow()

    hooks = Hooks()
    hooks.add(lambda step: deny("no") if step.session_id == "bob" else None, on="before_permission", name="judge")
    fairlead = Fairlead(hooks)
    options = fairlead.options(ClaudeAgentOptions(can_use_tool=yes))
    for who in ("alice", "bob"):
        await tell(fairlead, "UserPromptSubmit", session_id=who)
        args = {"command": "ls" if same else who}
        await tell(fairlead, "PreToolUse", session_id=who, tool_use_id="call_0", tool_input=args)
    assert options.can_use_tool is not None
    context = ToolPermissionContext(signal=None, suggestions=[], tool_use_id="call_0")
    answer = await options.can_use_tool("Bash", {"command": "ls" if same else "bob"}, context)
    assert isinstance(answer, PermissionResultDeny)


def test_it_takes_hooks_and_nothing_else() -> None:
    with pytest.raises(TypeError, match="Hooks"):
        Fairlead([lambda step: None])  # type: ignore[arg-type]
