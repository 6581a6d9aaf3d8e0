"""The same behaviours where no decision is kept: what no hook subscribes to is then left to the framework.

Where there is a journal, every event is recorded, and the ways around ours are never taken. So all behaviours that
show in their results, and not only in the decisions, hold here once more.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import test_portable
from driver import Call, Driver, call
from scene import Scene, has

from fairlead import change, deny, inject, retry, stop

Behaviour = Callable[[Scene], Awaitable[None]]


def told_by_what_came_of_it(behaviour: Behaviour) -> bool:
    source = inspect.getsource(behaviour)
    return [*inspect.signature(behaviour).parameters] == ["scene"] and not re.search(
        r"scene\.(steps|of|events|decisions|reported)|[Jj]ournal", source
    )


FOUND = [one for name, one in vars(test_portable).items() if name.startswith("test_") and told_by_what_came_of_it(one)]


def test_there_are_such_behaviours() -> None:
    assert len(FOUND) > 20


@pytest.fixture
def quiet(driver: Driver, way: str) -> Scene:
    return Scene(driver, way, recorded=False)


@pytest.mark.parametrize("behaviour", FOUND, ids=lambda one: one.__name__.removeprefix("test_"))
async def test_it_holds_where_nothing_is_recorded(quiet: Scene, behaviour: Any) -> None:
    for event, part in getattr(behaviour, "wanted", ()):
        if not quiet.can(event, part):
            pytest.skip(f"it cannot, and says so where decisions are kept: {part} at {event}")
    await inspect.unwrap(behaviour)(quiet)


def tool_is_judged(scene: Scene, *parts: str) -> None:
    for part in parts:
        if not scene.can("before_tool", part):
            pytest.skip(f"it cannot: {part} at before_tool")


async def test_context_before_a_tool_is_read_by_the_model(quiet: Scene) -> None:
    tool_is_judged(quiet, "context")
    quiet.add(inject("Mind the gap."), on="before_tool", once=True)
    played = await quiet.play(call("shell", command="ls"))
    assert [has(request, "Mind the gap.") for request in played.sent] == [False, True]


async def test_a_stop_before_a_tool_is_the_end(quiet: Scene) -> None:
    tool_is_judged(quiet, "stop")
    quiet.add(stop("enough"), on="before_tool")
    played = await quiet.play(call("shell", command="ls"))
    assert (quiet.ran, len(played.sent)) == ([], 1)
    assert "enough" in (played.output or "")


async def test_a_hook_that_is_added_while_a_call_is_judged_is_asked(quiet: Scene) -> None:
    tool_is_judged(quiet, "deny")

    def add(step: Any) -> None:
        if len(quiet.hooks) == 1:
            quiet.hooks.add(lambda step: deny("not any more"), on="before_permission", name="late")

    quiet.hooks.add(add, on="before_tool", name="adds")
    played = await quiet.play(call("shell", command="ls"))
    assert quiet.ran == []
    assert has(played.sent[1], "not any more", "tool")


def add_while_a_tool_runs(
    scene: Scene, hook: Callable[[Any], Any], *, on: str = "after_tool", running: int = 1
) -> None:
    """No hook subscribes to the end of calls when they begin, and this one does when the last call ends."""

    class Ran(list[Any]):
        def append(self, one: Any) -> None:
            super().append(one)
            if len(self) == running:
                scene.hooks.add(hook, on=on, name="late", replace=True)

    scene.bench.ran = Ran()
    scene.hooks.add(lambda step: None, on="before_tool", name="nothing")


async def test_a_hook_that_is_added_while_a_tool_runs_sees_its_result(quiet: Scene) -> None:
    if not quiet.can("after_tool", "output"):
        pytest.skip("it cannot: output at after_tool")
    add_while_a_tool_runs(quiet, lambda step: change(output="[redacted]"))
    played = await quiet.play(call("shell", command="ls"))
    assert has(played.sent[1], "[redacted]", "tool")


async def test_a_hook_that_is_added_while_a_tool_runs_sees_how_long_it_took(quiet: Scene) -> None:
    received: list[float] = []
    add_while_a_tool_runs(quiet, lambda step: received.append(step.duration))
    await quiet.play(call("slow", name="a"))
    assert len(received) == 1
    assert received[0] > 0.045  # the tool sleeps for 0.05


async def test_a_hook_that_is_added_while_tools_run_sees_the_whole_batch(quiet: Scene) -> None:
    if not quiet.can("after_tool_batch"):
        pytest.skip("it does not fire")
    received: list[list[str]] = []

    def hear(step: Any) -> None:
        received.append(sorted(one["tool"] for one in step.results))

    add_while_a_tool_runs(quiet, hear, on="after_tool_batch", running=2)
    await quiet.play(Call([("shell", {"command": "ls"}), ("read", {"path": "a"})]))
    assert [[name.rsplit("__")[-1] for name in names] for names in received] == [["read", "shell"]]


async def test_a_hook_that_is_added_while_a_tool_fails_sees_the_failure(quiet: Scene) -> None:
    received: list[tuple[str, bool]] = []
    add_while_a_tool_runs(quiet, lambda step: received.append((step.outcome, step.is_error)))
    await quiet.play(call("fail", why="broken pipe"))
    assert received == [("error", True)]


async def test_a_hook_that_is_added_while_a_tool_fails_may_have_it_tried_again(quiet: Scene) -> None:
    if not quiet.can("after_tool", "retry"):
        pytest.skip("it cannot: retry at after_tool")
    add_while_a_tool_runs(quiet, lambda step: retry() if step.is_error else None)
    played = await quiet.play(call("flaky", why="busy"))
    assert len(quiet.ran) == 2
    assert has(played.sent[1], "worked", "tool")
