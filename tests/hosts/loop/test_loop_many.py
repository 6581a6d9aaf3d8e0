"""Many sessions at once in one process: nothing of one is seen by another."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from fairlead import FairleadError, Hooks, current_session, inject
from fairlead.hosts.loop.agent import Agent
from fairlead.hosts.loop.tools import text_tool

SESSIONS, HOOKS = 200, 20


def talker(name: str) -> FunctionModel:
    """A model that calls a tool once, and then repeats all that it has been told."""

    def say(messages: Any, info: Any) -> ModelResponse:
        received = [str(part.content) for message in messages for part in message.parts if hasattr(part, "content")]
        if len(messages) == 1:
            return ModelResponse([ToolCallPart("echo", {"text": name})])
        return ModelResponse([TextPart(" ".join(received))])

    return FunctionModel(say)


async def test_two_hundred_sessions_with_twenty_hooks_each_keep_to_themselves():
    hooks = Hooks()
    for i in range(HOOKS):

        async def count(step: Any, i: int = i) -> Any:
            session = current_session()
            await asyncio.sleep(0)
            assert current_session() is session
            session.state[i] = session.state.get(i, 0) + 1
            return inject(session.user_id) if i == 0 and step.event == "after_tool" else None

        hooks.add(count, on="*", name=f"hook-{i}")

    async def echo(text: str) -> str:
        await asyncio.sleep(0)
        return text

    tools = [text_tool("echo", "Say it.", echo, "text", kind="read", safety="read_only")]

    async def one(name: str) -> tuple[str, set[int]]:
        async with Agent(talker(name), tools, hooks, user_id=name) as agent:
            result = await agent.run(f"I am {name}")
        return result.output or "", set(agent.session.state.values())

    found = await asyncio.gather(*(one(f"user-{i:03}") for i in range(SESSIONS)))
    for i, (output, _) in enumerate(found):
        assert {word for word in output.split() if word.startswith("user-")} == {f"user-{i:03}"}
    assert len({tuple(sorted(counts)) for _, counts in found}) == 1


async def test_one_agent_does_one_thing_at_a_time():
    async with Agent(talker("a"), []) as agent:
        first = asyncio.create_task(agent.run("one"))
        await asyncio.sleep(0)
        with pytest.raises(FairleadError, match="at work"):
            await agent.run("two")
        await first


async def test_a_session_does_not_end_under_a_request():
    async with Agent(talker("a"), []) as agent:
        work = asyncio.create_task(agent.run("one"))
        await asyncio.sleep(0)
        with pytest.raises(FairleadError, match="at work"):
            await agent.close()
        await work
