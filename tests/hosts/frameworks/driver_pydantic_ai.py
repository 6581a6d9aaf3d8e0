"""The driver of pydantic-ai: a scripted `FunctionModel`, run, streamed, or run where nothing can be awaited."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import boundary
import driver
from driver import Call, Played, Say, Way, Workbench, limited
from pydantic_ai import Agent, UsageLimits
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults
from pydantic_ai.toolsets import FunctionToolset

from fairlead import Hooks
from fairlead.hosts.frameworks.pydantic_ai import FRAMEWORK, Fairlead


def shown(messages: list[ModelMessage]) -> list[str]:
    """What a model is sent, as `role: text`."""
    lines = []
    for message in messages:
        for part in message.parts:
            kind: str = part.part_kind
            if kind == "tool-call":
                lines.append(f"assistant: calls {part.tool_name} {json.dumps(part.args_as_dict(), sort_keys=True)}")
            elif (role := ROLES.get(kind)) is not None:
                lines.append(f"{role}: {part.content}")
    return lines


ROLES = {
    "system-prompt": "system", "user-prompt": "user", "text": "assistant",
    "tool-return": "tool", "retry-prompt": "tool", "retry-feedback": "user",
}  # fmt: skip


def sent(messages: list[ModelMessage], info: AgentInfo) -> list[str]:
    return [*([f"system: {info.instructions}"] if info.instructions else []), *shown(messages)]


def scripted(script: list[Say | Call | Exception], played: Played, name: str) -> FunctionModel:
    def next_one(messages: list[ModelMessage], info: AgentInfo) -> Say | Call:
        played.sent.append(sent(messages, info))
        played.models.append(name)
        said = script.pop(0) if script else Say("Done.")
        if isinstance(said, Exception):
            raise said
        return said

    async def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        said = next_one(messages, info)
        if isinstance(said, Say):
            return ModelResponse([TextPart(said.text)])
        text = [TextPart(said.text)] if said.text else []
        return ModelResponse([*text, *(ToolCallPart(tool, args) for tool, args in said.tools)])

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        said = next_one(messages, info)
        for word in said.text.replace(" ", " \0").split("\0") if said.text else ():
            yield word
        if isinstance(said, Call):
            for number, (tool, args) in enumerate(said.tools, 1):
                yield {number: DeltaToolCall(tool, json.dumps(args))}

    return FunctionModel(reply, stream_function=stream, model_name=name)


def run_sync(agent: Agent[Any, Any], given: Any, options: dict[str, Any]) -> Any:
    """Run it on a thread that has a loop of its own, and close that."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return agent.run_sync(given, **options)
    finally:
        loop.close()


class Driver(driver.Driver):
    framework = FRAMEWORK
    sync = True
    interrupts = True
    helpers = True
    module = "pydantic_ai"
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
        fairlead = adapter or Fairlead(hooks)
        fairlead.models = {"second": scripted(left, played, "second")}
        agent = Agent(
            scripted(left, played, "first"), name="main", instructions=system_prompt, capabilities=[fairlead],
            output_type=[str, DeferredToolRequests], tools=(bench or Workbench()).tools,
        )  # fmt: skip
        if helper is not None:
            self._add_helper(agent, Agent(
                scripted(helper, played, "helper"), name="helper", capabilities=[fairlead],
                tools=(bench or Workbench()).tools,
            ))  # fmt: skip
        try:
            output, history = await self._run(agent, played, streaming, sync, given, conversation_id=session_id)
            while isinstance(output, DeferredToolRequests) and approve is not None:
                played.asked += [str(about.get("reason")) for about in output.metadata.values()]
                answers = DeferredToolResults(approvals={call.tool_call_id: approve for call in output.approvals})
                output, history = await self._run(
                    agent, played, streaming, sync, None, conversation_id=session_id, message_history=history,
                    deferred_tool_results=answers,
                )  # fmt: skip
            played.output = output if isinstance(output, str) and output.strip() else None
            played.history = shown(history)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            played.error = error
        finally:
            if adapter is None:
                await fairlead.aclose()
        return played

    @staticmethod
    def _add_helper(agent: Agent[Any, Any], helping: Agent[Any, Any]) -> None:
        @agent.tool_plain(name="helper")
        async def help_out(message: str) -> str:
            return str((await helping.run(message)).output)

    @staticmethod
    async def _run(
        agent: Agent[Any, Any], played: Played, streaming: bool, sync: bool, given: Any, **options: Any
    ) -> tuple[Any, list[ModelMessage]]:
        if sync:
            result = await asyncio.to_thread(run_sync, agent, given, options)
            return result.output, result.all_messages()
        if not streaming:
            result = await agent.run(given, **options)
            return result.output, result.all_messages()
        async with agent.run_stream(given, **options) as stream:
            if stream.response.tool_calls or not stream.response.parts:
                output = await stream.get_output()
            else:
                async for piece in stream.stream_text(delta=True, debounce_by=None):
                    played.pieces.append(piece)
                output = await stream.get_output()
            return output, stream.all_messages()

    @classmethod
    def tap(cls) -> bool:
        call_tool = FunctionToolset.call_tool

        async def tapped(self: Any, name: str, args: dict[str, Any], ctx: Any, tool: Any) -> Any:
            boundary.report_run(name, dict(args), self.tools[name].function)
            return await call_tool(self, name, args, ctx, tool)

        FunctionToolset.call_tool = tapped  # type: ignore[method-assign]
        return True

    # --- for the bench ----------------------------------------------------------------------

    async def work(self, calls: int, *, hooks: Hooks | None = None, native: int = 0, way: Way = "plain") -> None:
        fairlead = None if hooks is None else Fairlead(hooks)
        kind = KINDS[way]
        capabilities: list[Any] = [kind() for _ in range(native)] if fairlead is None else [fairlead]
        agent = Agent(working(calls), tools=[nothing], capabilities=capabilities)
        await agent.run("Go.", usage_limits=UsageLimits(request_limit=None))
        if fairlead is not None:
            await fairlead.aclose()


class Nothing(AbstractCapability[Any]):
    async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        return args


class NothingAtAll(Nothing):
    async def after_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, result: Any) -> Any:
        return result

    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        return request_context

    async def after_model_request(self, ctx: Any, *, request_context: Any, response: Any) -> Any:
        return response


class NothingForLong(AbstractCapability[Any]):
    @limited
    async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        return args


KINDS: dict[Way, Any] = {"plain": Nothing, "wide": NothingAtAll, "limited": NothingForLong}


async def nothing(name: str) -> str:
    """Do nothing."""
    driver.tick()
    return "nothing"


def working(calls: int) -> FunctionModel:
    """Asks for so many calls, one after another."""
    left = iter(range(calls))

    async def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        for number in left:
            return ModelResponse([ToolCallPart("nothing", {"name": "x"}, f"c{number}")])
        return ModelResponse([TextPart("Done.")])

    return FunctionModel(reply)
