"""The ways around the hooks: what is the same in all frameworks.

The routes of a framework are in `test_<name>_ways_around.py`. Each of them is closed: the boundary check of
`conftest.py` holds, and the hook's verdict is carried out. Or its test is marked `ungoverned`, with the words of the
framework's page.
"""

from __future__ import annotations

import boundary
import pytest
from boundary import Boundary, same_arguments
from driver import NAME, Driver, Workbench, call
from scene import Scene

from fairlead import Hooks, change, deny
from fairlead.lifecycle import BeforeTool

LS = {"command": "ls"}


@pytest.mark.skipif(NAME == "loop", reason="the loop is no framework, and has its own page")
def test_the_page_lists_what_is_not_governed() -> None:
    assert boundary.not_governed(NAME)


async def test_every_run_of_a_tool_is_compared_with_what_was_judged(scene: Scene, judged: Boundary) -> None:
    scene.add(change(args={"command": "pwd"}), on="before_tool", kind="shell")
    await scene.play(call("shell", command="ls"))
    assert scene.ran == [("shell", {"command": "pwd"})]
    assert judged.judged == 1


async def test_a_run_that_was_not_judged_is_noticed(scene: Scene) -> None:
    """The check itself: a permit is for one tool, for its arguments, and for one run."""
    check = Boundary()
    check._hooks.append(scene.hooks)
    session = scene.hooks.session("s")
    check.decide(session, await session.dispatch(session.step(BeforeTool, tool="shell", args=LS, call_id="1")))
    check.ran("shell", {"command": "rm"})
    check.ran("read", LS)
    check.ran("shell", LS)
    check.ran("shell", LS)
    assert check.judged == 1
    assert [text.split(";")[0] for text in check.ways_around] == [
        "shell ran with {'command': 'rm'}", "read ran with {'command': 'ls'}", "shell ran with {'command': 'ls'}",
    ]  # fmt: skip


def test_arguments_may_be_validated_and_filled_up_but_not_added_to() -> None:
    def tool(command: str, times: int = 1, context: object = None) -> None: ...

    assert same_arguments({"command": "ls"}, {"command": "ls", "times": 1, "context": object()}, tool)
    assert same_arguments({"times": "2"}, {"times": 2}, tool)
    assert not same_arguments({"command": "ls"}, {"command": "ls", "times": 3}, tool)
    assert not same_arguments({"command": "ls"}, {"command": "ls -a"}, tool)
    assert not same_arguments({"command": "ls", "times": 2}, {"command": "ls"}, tool)


def test_a_tool_of_the_bench_reports_its_run_where_the_driver_does_not(judged: Boundary) -> None:
    hooks = Hooks()
    hooks.add(lambda step: deny("no"), on="before_tool", name="judge")
    bench = Workbench()
    bench.shell("ls")
    noticed, judged.ways_around = judged.ways_around, []
    assert bool(noticed) is not Driver.tapped
