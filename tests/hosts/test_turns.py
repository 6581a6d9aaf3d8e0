"""What all frameworks' adapters share: hooks that come while a call is on its way."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead import Approval, Hooks, allow, ask, deny
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


# --- questions ----------------------------------------------------------------------------------


class Call:
    """A call in a framework that asks a human by its own means, and what was shown."""

    def __init__(self, answer: str, **says: Any) -> None:
        self.hooks = Hooks()
        self.shown: list[Any] = []
        self.ran: list[Any] = []
        self.answer = answer
        for name, verdict in says.items():
            event = name.partition("__")[0]
            self.hooks.add(lambda step, verdict=verdict: verdict, on=event, name=name, phase="gate")

    def _ask(self, decision: Any) -> Approval:
        self.shown.append(None if decision is None else decision.questions)
        return Approval(self.answer)  # type: ignore[arg-type]

    async def play(self, **how: Any) -> Any:
        turn = Runs(self.hooks, FRAMEWORK, asks=True).turn("s1")
        await drive(turn.begin("Go."))
        return await drive(turn.tool("shell", {"command": "ls"}, "c1", self.ran.append, ask=self._ask, **how).work())


@pytest.mark.parametrize("answer", ["allow", "deny"])
async def test_questions_of_both_events_are_put_together(answer: str) -> None:
    call = Call(
        answer, before_tool__a=ask("spend?"), before_tool__b=ask("delete?"), before_permission__c=ask("really?")
    )
    await call.play()
    (shown,) = call.shown
    assert [question for _, question in shown] == ["spend?", "delete?", "really?"]
    assert bool(call.ran) is (answer == "allow")


async def test_a_hook_that_asks_the_same_at_both_events_asks_once() -> None:
    call = Call("allow")
    call.hooks.add(lambda step: ask("sure?"), on=["before_tool", "before_permission"], name="both")
    await call.play()
    assert call.shown == [(("both", "sure?"),)]


async def test_a_hook_that_grants_the_permission_does_not_answer_what_another_asks() -> None:
    call = Call("deny", before_tool=ask("spend?"), before_permission=allow())
    await call.play()
    assert (call.shown, call.ran) == ([(("before_tool", "spend?"),)], [])


async def test_a_hook_that_grants_the_permission_answers_the_framework() -> None:
    call = Call("deny", before_permission=allow())
    await call.play(proposed="ask")
    assert (call.shown, len(call.ran)) == ([], 1)


async def test_nobody_is_asked_when_the_permission_is_denied() -> None:
    call = Call("allow", before_tool=ask("spend?"), before_permission=deny("no"))
    await call.play()
    assert (call.shown, call.ran) == ([], [])


async def test_where_the_framework_asks_too_the_hooks_questions_are_shown() -> None:
    call = Call("allow", before_tool=ask("spend?"))
    await call.play(proposed="ask")
    assert call.shown == [(("before_tool", "spend?"),)]
