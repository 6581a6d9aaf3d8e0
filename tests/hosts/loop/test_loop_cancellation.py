"""A run that is cancelled at any moment leaves nothing behind, and every end it owes fires once.

The moments are found, not chosen: a rich turn is run again and again, and cancelled at its first
suspension, its second, and so on, until it gets through without being cancelled. Every event has a
hook that suspends, so that every dispatch is among them.
"""

from __future__ import annotations

import asyncio
import secrets
import types
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

import pytest
from left_running import left_running

from fairlead import Hooks, current_session, extend
from fairlead.hosts.loop.agent import Agent
from fairlead.hosts.loop.tools import Tool, Workspace
from fairlead.lifecycle import EVENTS

LIMIT = 600  # suspensions that a turn may have before something must be wrong


class Suspensions:
    """Counts the suspensions of coroutines, and calls back at one of them."""

    def __init__(self, at: int, then: Callable[[], object]) -> None:
        self.count = 0
        self._at = at
        self._then = then

    async def watch(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Await `work`, and count how often it waits for something."""
        return await self._watched(work)

    @types.coroutine
    def _watched(self, work: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Pass on all that the work waits for and all that it is told."""
        error: BaseException | None = None
        while True:
            try:
                waiting = work.send(None) if error is None else work.throw(error)
            except StopIteration as end:
                return end.value
            self.count += 1
            if self.count == self._at:
                self._then()
            try:
                yield waiting
                error = None
            except BaseException as thrown:
                error = thrown


class Turn:
    """A turn with all there is to it: tools at once, one of them killed, a subagent, an extension, background work."""

    def __init__(self, make_model: Any, root: Any, mark: str) -> None:
        self.begun: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.hooks = Hooks(approver=self._approve)
        self.hooks.add(lambda step: self.begun.update([step.event]), on="*", name="begins", priority=1)
        self.hooks.add(self._suspend, on="*", name="suspends")
        self.hooks.add(lambda step: self.ended.update([step.event]), on="*", name="ends", phase="observe")
        self.hooks.add(self._extend_once, on="before_turn_end", name="extends")
        self.hooks.add(self._spawn, on="turn_start", name="spawns")
        # The long sleep does not end by itself: it is killed, by the time-out if not by the cancellation.
        calls = [("shell", {"command": f"sleep 31.{mark}; true"}), ("shell", {"command": "echo hi"})]
        model = make_model(("", calls), ("", [("helper", {"message": "Help."}), ("crash", {})]), "Almost.", "Done.")
        helper = Agent(make_model(("", [("list", {"path": "."})])).model, Workspace(root).tools, policy="open")
        tools = [*Workspace(root, timeout=0.02).tools, Tool("crash", "Fail.", {}, self._crash, "read", "read_only")]
        self.agent = Agent(
            model.model, tools, self.hooks, subagents={"helper": helper}, token_budget=1, compact=self._compact
        )

    async def run(self) -> None:
        try:
            await self.agent.run("Go.")
        finally:
            await self.agent.close()

    async def _suspend(self, step: Any) -> None:
        await asyncio.sleep(0)

    async def _approve(self, request: Any) -> Any:
        await asyncio.sleep(0)
        return ("allow",)

    async def _crash(self, args: Any) -> None:
        await asyncio.sleep(0)
        raise RuntimeError("boom")

    async def _compact(self, messages: Any) -> Any:
        await asyncio.sleep(0)
        return messages

    def _extend_once(self, step: Any) -> Any:
        return extend("go on") if not step.continues_so_far and step.agent.parent is None else None

    def _spawn(self, step: Any) -> None:
        session = current_session()
        assert session is not None
        session.spawn(asyncio.sleep(0.001))


def check(turn: Turn, nth: int, others: set[Any]) -> None:
    """What holds after a run that was cancelled at its nth suspension, or not at all."""
    where = f"cancelled at suspension {nth}, after {dict(turn.begun)}"
    assert not others, f"{where}: left behind {others}"
    owed = {"turn_end": "turn_start", "after_request": "before_request", "session_end": "session_start"}
    assert {end: turn.ended[end] for end in owed} == {end: turn.begun[start] for end, start in owed.items()}, where


async def sweep(start: Callable[[int], Awaitable[tuple[Turn, bool]]]) -> int:
    """Cancel at the first suspension, the second, and so on, until a run gets through. Gives how many there were."""
    here = asyncio.all_tasks()
    for nth in range(1, LIMIT):
        turn, cancelled = await start(nth)
        check(turn, nth, asyncio.all_tasks() - here)
        if not cancelled:
            return nth
    raise AssertionError("the turn never gets through")


async def ended(task: asyncio.Task[None]) -> bool:
    """Wait for a run; whether it was cancelled."""
    async with asyncio.timeout(10):
        await asyncio.wait([task])
    if not task.cancelled():
        task.result()
    return task.cancelled()


@pytest.fixture
def mark() -> str:
    """Digits by which this test's processes are known."""
    return f"{secrets.randbelow(10**9):09}"


async def test_the_rich_turn_has_every_event_in_it(scripted, tmp_path, mark):
    turn = Turn(scripted, tmp_path, mark)
    await turn.run()
    assert set(turn.begun) == set(EVENTS)


async def test_a_run_cancelled_at_any_of_its_own_suspensions_ends_in_order(scripted, tmp_path, mark):
    async def start(nth: int) -> tuple[Turn, bool]:
        turn = Turn(scripted, tmp_path, f"{mark}{nth:03}")
        watched = Suspensions(nth, lambda: task.cancel())
        task = asyncio.get_running_loop().create_task(watched.watch(turn.run()))
        return turn, await ended(task)

    assert await sweep(start) > 60
    assert left_running(f"sleep 31.{mark}") == []


async def test_a_run_cancelled_while_any_of_its_tasks_suspends_ends_in_order(scripted, tmp_path, mark):
    """As above, but the moments are those of all tasks: the tool calls, the subagent, the ends themselves."""
    loop = asyncio.get_running_loop()

    async def start(nth: int) -> tuple[Turn, bool]:
        turn = Turn(scripted, tmp_path, f"{mark}{nth:03}")
        watched = Suspensions(nth, lambda: loop.call_soon(task.cancel))

        def factory(loop: Any, work: Any, **about: Any) -> asyncio.Task[Any]:
            return asyncio.Task(watched.watch(work), loop=loop, **about)

        loop.set_task_factory(factory)
        try:
            task = loop.create_task(turn.run())
            return turn, await ended(task)
        finally:
            loop.set_task_factory(None)

    assert await sweep(start) > 100
    assert left_running(f"sleep 31.{mark}") == []


async def test_a_stream_cancelled_at_any_suspension_ends_its_request_in_order(scripted, tmp_path, mark):
    async def follow(turn: Turn) -> None:
        try:
            async for _ in turn.agent.stream("Go."):
                pass
        finally:
            await turn.agent.close()

    async def start(nth: int) -> tuple[Turn, bool]:
        turn = Turn(scripted, tmp_path, f"{mark}{nth:03}")
        watched = Suspensions(nth, lambda: task.cancel())
        task = asyncio.get_running_loop().create_task(watched.watch(follow(turn)))
        return turn, await ended(task)

    await sweep(start)
    assert left_running(f"sleep 31.{mark}") == []


async def test_a_cancelled_request_is_reported_as_such(scripted, tmp_path):
    hooks, started = Hooks(), asyncio.Event()
    seen: list[tuple[str, str]] = []
    hooks.add(lambda step: started.set(), on="after_permission", name="starts")
    hooks.add(lambda step: seen.append((step.event, step.error)), on=("error", "after_request"), name="sees")
    model = scripted(("", [("shell", {"command": "sleep 31"})]))
    async with Agent(model.model, Workspace(tmp_path).tools, hooks, policy="open") as agent:
        work = asyncio.create_task(agent.run("Go."))
        await started.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
    assert seen == [("error", "cancelled"), ("after_request", "cancelled")]


async def test_a_cancelled_agent_can_be_asked_again(scripted, tmp_path):
    hooks, started = Hooks(), asyncio.Event()
    hooks.add(lambda step: started.set(), on="before_model", name="starts")
    hold = asyncio.Event()

    async def hold_once(step: Any) -> None:
        await hold.wait()

    hooks.add(hold_once, on="before_model", name="holds", timeout=None)
    async with Agent(scripted("Hello.").model, hooks=hooks) as agent:
        work = asyncio.create_task(agent.run("Go."))
        await started.wait()
        work.cancel()
        await asyncio.wait([work])
        hold.set()
        assert (await agent.run("Again.")).output == "Hello."
