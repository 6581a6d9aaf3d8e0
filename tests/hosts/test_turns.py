"""What all frameworks' adapters share: hooks that come while a call is on its way."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead import Hooks, deny
from fairlead.hosts.framework import WHOLE, Framework
from fairlead.hosts.turn import Runs
from fairlead.hosts.work import drive

FRAMEWORK = Framework(name="some", title="Some", package="some", versions=">=1", can=WHOLE)


@pytest.mark.parametrize(
    ("while_at", "on"),
    [("tool_requested", "before_tool"), ("tool_requested", "before_permission"), ("before_tool", "before_permission")],
)
async def test_a_hook_that_is_added_while_a_call_is_judged_is_heard(while_at: str, on: str) -> None:
    hooks = Hooks()
    ran: list[Any] = []
    hooks.add(lambda step: hooks.add(lambda step: deny("no"), on=on, name="late") and None, on=while_at, name="adds")
    turn = Runs(hooks, FRAMEWORK).turn("s1")
    await drive(turn.begin("Go."))
    called = await drive(turn.tool("shell", {"command": "ls"}, "c1", ran.append).work())
    assert (called.outcome, ran) == ("denied", [])
