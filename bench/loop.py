"""The reference loop: what hooks add to a tool call, and a thousand sessions at once.

Part of `make bench`. Prints figures; asserts nothing.
"""

from __future__ import annotations

import asyncio
import gc
import resource
from time import perf_counter
from typing import Any

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from fairlead import Hooks, current_session
from fairlead.hosts.loop.agent import Agent
from fairlead.hosts.loop.tools import Tool, text_tool

CALLS, HOOKS, SESSIONS = 20, 20, 1000


def model(calls: int) -> FunctionModel:
    """A model that calls a tool so many times, one by one, and is done."""
    left = iter(range(calls))

    def say(_: Any, __: Any) -> ModelResponse:
        i = next(left, None)
        return ModelResponse([TextPart("done")] if i is None else [ToolCallPart("echo", {"text": str(i)})])

    return FunctionModel(say, model_name="scripted")


def echo() -> Tool:
    async def run(text: str) -> str:
        return text

    return text_tool("echo", "Say it again.", run, "text", kind="read", safety="read_only")


def hooked(n: int) -> Hooks:
    """n hooks on every event, each of which counts in its session."""
    hooks = Hooks()
    for i in range(n):

        async def count(step: Any, i: int = i) -> None:
            session = current_session()
            if session is not None:
                session.state[i] = session.state.get(i, 0) + 1

        hooks.add(count, on="*", name=f"hook-{i}")
    return hooks


async def one(hooks: Hooks, calls: int) -> Agent:
    agent = Agent(model(calls), [echo()], hooks, policy="open", max_requests=calls + 1)
    async with agent:
        await agent.run("go")
    return agent


async def per_call(n: int, rounds: int = 7) -> float:
    """Microseconds for one tool call of a run."""
    hooks = hooked(n)
    best = float("inf")
    for _ in range(rounds):
        started = perf_counter()
        await one(hooks, CALLS)
        best = min(best, perf_counter() - started)
    return best / CALLS * 1e6


async def crowd() -> tuple[float, int, bool]:
    """Many sessions at once: seconds, growth in KiB, and whether each has counted just its own events."""
    hooks = hooked(HOOKS)
    await asyncio.gather(*(one(hooks, 3) for _ in range(10)))
    gc.collect()
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, perf_counter()
    agents = await asyncio.gather(*(one(hooks, 3) for _ in range(SESSIONS)))
    took = perf_counter() - started
    counts = {tuple(agent.session.state.values()) for agent in agents}
    return took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, len(counts) == 1


async def run() -> None:
    bare, with_hooks = await per_call(0), await per_call(HOOKS)
    print(
        f"a tool call in the loop: {bare:.0f} us without hooks, {with_hooks:.0f} us with {HOOKS} on every event", end=""
    )
    print(f" ({with_hooks / bare:.2f}x)")
    took, grown, apart = await crowd()
    print(
        f"{SESSIONS:,} sessions at once, 3 tool calls and {HOOKS} hooks each: {took:.1f} s "
        f"({SESSIONS / took:,.0f} a second), memory grew by {grown:,} KiB, {'no' if apart else 'SOME'} cross-talk"
    )


if __name__ == "__main__":
    asyncio.run(run())
