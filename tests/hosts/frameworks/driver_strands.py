"""Strands Agents in the portable suite: a scripted model, tools, and agents as tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import boundary
import driver
from driver import Call, Played, Say, Way, Workbench, limited
from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent
from strands.models import Model
from strands.tools.decorator import DecoratedFunctionTool

from fairlead import Hooks
from fairlead.hosts.frameworks.strands import FRAMEWORK, Fairlead
from fairlead.hosts.frameworks.strands.versions import ExecuteToolStage, InvokeModelStage


def shown(messages: list[Any], system_prompt: str | None = None) -> list[str]:
    """Strands' messages as `role: text`."""
    lines = [f"system: {system_prompt}"] if system_prompt else []
    for message in messages:
        for block in message["content"]:
            if "text" in block:
                lines.append(f"{message['role']}: {block['text']}")
            elif "toolUse" in block:
                use = block["toolUse"]
                lines.append(f"assistant: calls {use['name']} {json.dumps(use['input'], sort_keys=True)}")
            elif "toolResult" in block:
                content = block["toolResult"]["content"]
                lines.append("tool: " + "\n".join(one.get("text") or json.dumps(one.get("json")) for one in content))
    return lines


class Scripted(Model):  # type: ignore[misc]
    """Says what the script says, one word at a time."""

    def __init__(self, script: list[Say | Call | Exception], played: Played, name: str) -> None:
        self.script, self.played, self.name = script, played, name
        self.config = {"model_id": name, "context_window_limit": 200_000}

    def update_config(self, **config: Any) -> None:
        self.config |= config

    def get_config(self) -> Any:
        return self.config

    def structured_output(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def stream(
        self, messages: Any, tool_specs: Any = None, system_prompt: str | None = None, **_: Any
    ) -> AsyncIterator[Any]:
        self.played.sent.append(shown(messages, system_prompt))
        self.played.models.append(self.name)
        said = self.script.pop(0) if self.script else Say("Done.")
        if isinstance(said, Exception):
            raise said
        yield {"messageStart": {"role": "assistant"}}
        words = said.text.split(" ") if said.text else []
        if words:
            yield {"contentBlockStart": {"start": {}}}
            for number, word in enumerate(words):
                yield {"contentBlockDelta": {"delta": {"text": f" {word}" if number else word}}}
            yield {"contentBlockStop": {}}
        calls = said.tools if isinstance(said, Call) else []
        for name, args in calls:
            call_id = f"call-{len(self.played.sent)}-{calls.index((name, args))}"
            args = {"input": args["message"]} if name == "helper" and hasattr(Agent, "as_tool") else args
            yield {"contentBlockStart": {"start": {"toolUse": {"name": name, "toolUseId": call_id}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(args)}}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}
        yield {"metadata": {"usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}, "metrics": {}}}


def helper_tool(agent: Agent) -> Any:
    """An agent as a tool: since 1.34 by Strands' own means, before that in a function."""
    if hasattr(agent, "as_tool"):
        return agent.as_tool(name="helper")

    @tool
    async def helper(message: str) -> str:
        """Ask the helper."""
        return str(await agent.invoke_async(message))

    return helper


class Conversation:
    """Where Strands would look an agent up: its session manager has the id, and here also the messages."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id

    def register_hooks(self, registry: Any, **_: Any) -> None:
        pass


class Driver(driver.Driver):
    framework = FRAMEWORK
    sync = True
    interrupts = True
    helpers = True
    module = "strands"
    native = True
    ways = ("wide", "limited")

    def adapter(self, hooks: Hooks) -> Fairlead:
        return Fairlead(hooks)

    async def play(
        self,
        hooks: Hooks,
        *script: Say | Call | Exception,
        given: str = "Go.",
        bench: Workbench | None = None,
        streaming: bool = False,
        sync: bool = False,
        session_id: str | None = None,
        approve: bool | None = None,
        helper: list[Say | Call | Exception] | None = None,
        system_prompt: str = "Be brief.",
        adapter: Any = None,
    ) -> Played:
        played, left = Played(), list(script)
        fairlead = adapter or self.adapter(hooks)
        fairlead.models["second"] = Scripted(left, played, "second")
        tools = [tool(function) for function in (bench or Workbench()).tools]
        common: dict[str, Any] = {"callback_handler": None, "hooks": [fairlead]}
        if helper is not None:
            model = Scripted(helper, played, "helper")
            tools.append(helper_tool(Agent(model=model, tools=list(tools), name="helper", **common)))
        agent = Agent(
            model=Scripted(left, played, "first"), tools=tools, system_prompt=system_prompt,
            session_manager=Conversation(session_id) if session_id else None, **common,
        )  # fmt: skip
        try:
            result = await self._run(agent, given, streaming, sync, played)
            while result.stop_reason == "interrupt" and approve is not None:
                played.asked += [str(one.reason) for one in result.interrupts]
                answers = [
                    {"interruptResponse": {"interruptId": one.id, "response": "y" if approve else "n"}}
                    for one in result.interrupts
                ]
                result = await self._run(agent, answers, streaming, sync, played)
            if result.stop_reason != "interrupt":
                played.output = str(result).rstrip("\n") or None
        except asyncio.CancelledError:
            raise
        except Exception as error:
            played.error = error
        finally:
            played.history = shown(agent.messages)
            if adapter is None:
                await self.close(fairlead)
        return played

    async def _run(self, agent: Agent, given: Any, streaming: bool, sync: bool, played: Played) -> Any:
        if sync:
            return agent(given)
        if not streaming:
            return await agent.invoke_async(given)
        result = None
        async for event in agent.stream_async(given):
            if "data" in event:
                played.pieces.append(event["data"])
            result = event.get("result", result)
        return result

    @classmethod
    def tap(cls) -> bool:
        stream = DecoratedFunctionTool.stream

        async def tapped(self: Any, tool_use: Any, *args: Any, **options: Any) -> AsyncIterator[Any]:
            boundary.report_run(self.tool_name, tool_use["input"], self._tool_func)
            async for event in stream(self, tool_use, *args, **options):
                yield event

        DecoratedFunctionTool.stream = tapped
        return True

    # --- for the bench ----------------------------------------------------------------------

    async def work(self, calls: int, *, hooks: Hooks | None = None, native: int = 0, way: Way = "plain") -> None:
        fairlead = None if hooks is None else Fairlead(hooks)
        agent = Agent(
            model=Working(calls), tools=[nothing], callback_handler=None, hooks=None if fairlead is None else [fairlead]
        )
        for _ in range(native):
            if way == "wide":
                agent.add_middleware(ExecuteToolStage, passing_on)
                agent.add_middleware(InvokeModelStage, passing_on)
            else:
                agent.hooks.add_callback(BeforeToolCallEvent, limited(no_word) if way == "limited" else ignoring)
        await agent.invoke_async("Go.")
        if fairlead is not None:
            await self.close(fairlead)


def ignoring(event: Any) -> None:
    return None


async def no_word(event: Any) -> None:
    return None


async def passing_on(context: Any, following: Any) -> AsyncIterator[Any]:
    async for event in following(context):
        yield event


@tool
async def nothing(name: str) -> str:
    """Do nothing."""
    driver.tick()
    return "nothing"


class Working(Model):  # type: ignore[misc]
    """Asks for so many calls, one after another."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def update_config(self, **config: Any) -> None:
        pass

    def get_config(self) -> Any:
        return {"model_id": "working", "context_window_limit": 200_000}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def stream(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        self.left -= 1
        yield {"messageStart": {"role": "assistant"}}
        if self.left < 0:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "Done."}}}
        else:
            yield {"contentBlockStart": {"start": {"toolUse": {"name": "nothing", "toolUseId": f"c{self.left}"}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": '{"name": "x"}'}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if self.left < 0 else "tool_use"}}
