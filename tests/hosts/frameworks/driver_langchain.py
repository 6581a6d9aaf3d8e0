"""The driver of LangChain's `create_agent`."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import boundary
import driver
from driver import Call, Played, Say, Way, Workbench, limited
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from fairlead import Hooks
from fairlead.hosts.frameworks.langchain import FRAMEWORK, Fairlead

ROLES = {"human": "user", "ai": "assistant"}


def shown(messages: list[BaseMessage]) -> list[str]:
    lines = []
    for message in messages:
        if message.text or not getattr(message, "tool_calls", ()):
            lines.append(f"{ROLES.get(message.type, message.type)}: {message.text}")
        for call in getattr(message, "tool_calls", ()):
            lines.append(f"assistant: calls {call['name']} {json.dumps(call['args'], sort_keys=True)}")
    return lines


class Scripted(BaseChatModel):
    """Says what stands in a script, and streams it word by word."""

    model_name: str = "first"
    script: Any = None
    played: Any = None

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> Scripted:
        return self

    def _next(self, messages: list[BaseMessage]) -> AIMessage:
        self.played.sent.append(shown(messages))
        self.played.models.append(self.model_name)
        said = self.script.pop(0) if self.script else Say("Done.")
        if isinstance(said, Exception):
            raise said
        if isinstance(said, Say):
            return AIMessage(said.text)
        number = len(self.played.sent)
        calls = [
            {"name": tool, "args": args, "id": f"call-{self.model_name}-{number}-{at}"}
            for at, (tool, args) in enumerate(said.tools)
        ]
        return AIMessage(said.text, tool_calls=calls)

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages))])

    def _stream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any
    ) -> Iterator[ChatGenerationChunk]:
        message = self._next(messages)
        words = str(message.text).split(" ") if message.text else []
        pieces = [AIMessageChunk(word if at == 0 else f" {word}") for at, word in enumerate(words)]
        if message.tool_calls:
            calls = [
                tool_call_chunk(name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=at)
                for at, call in enumerate(message.tool_calls)
            ]
            pieces.append(AIMessageChunk("", tool_call_chunks=calls))
        for piece in pieces or [AIMessageChunk("")]:
            chunk = ChatGenerationChunk(message=piece)
            if run_manager:
                run_manager.on_llm_new_token(str(piece.text), chunk=chunk)
            yield chunk


def a_tool(function: Any) -> StructuredTool:
    if not asyncio.iscoroutinefunction(function):
        return StructuredTool.from_function(function)

    def blocking(name: str) -> str:
        return str(asyncio.run(function(name)))

    return StructuredTool.from_function(
        blocking, function, name=function.__name__, description=function.__doc__, infer_schema=True
    )


class Driver(driver.Driver):
    framework = FRAMEWORK
    sync = True
    interrupts = True
    helpers = True
    module = "langchain.agents"
    native = True
    ways = ("wide", "limited")

    def __init__(self) -> None:
        self._savers: WeakKeyDictionary[Fairlead, InMemorySaver] = WeakKeyDictionary()

    def adapter(self, hooks: Hooks) -> Fairlead:
        return Fairlead(hooks, models={})

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
        **agent: Any,
    ) -> Played:
        played, left = Played(), list(script)
        fairlead = adapter if adapter is not None else self.adapter(hooks)
        fairlead.models["second"] = Scripted(model_name="second", script=left, played=played)
        tools = [a_tool(function) for function in (bench or Workbench()).tools]
        if helper is not None:
            tools.append(self._helper(fairlead, helper, tools, played))
        thread = session_id or (None if approve is None else "approval")
        built = create_agent(
            Scripted(script=left, played=played),
            tools,
            system_prompt=system_prompt,
            middleware=[fairlead],
            checkpointer=None if thread is None else self._savers.setdefault(fairlead, InMemorySaver()),
            **agent,
        )
        config: Any = {} if thread is None else {"configurable": {"thread_id": thread}}
        try:
            wanted: Any = {"messages": [{"role": "user", "content": given}]}
            while wanted is not None:
                state = await self._run(built, wanted, config, streaming, sync, played)
                wanted = None
                if approve is not None and state.get("__interrupt__"):
                    played.asked += [str(one.value) for one in state["__interrupt__"]]
                    answer = {"decisions": [{"type": "approve" if approve else "reject"}]}
                    wanted = Command(resume={one.id: answer for one in state["__interrupt__"]})
            played.history = shown(state["messages"])
            last = state["messages"][-1]
            played.output = str(last.text) or None if isinstance(last, (AIMessage, ToolMessage)) else None
        except Exception as error:
            played.error = error
        finally:
            if adapter is None:
                fairlead.close() if sync else await fairlead.aclose()
        return played

    async def _run(self, agent: Any, given: Any, config: Any, streaming: bool, sync: bool, played: Played) -> Any:
        if sync:
            return agent.invoke(given, config)
        if not streaming:
            return await agent.ainvoke(given, config)
        state: Any = {}
        async for mode, part in agent.astream(given, config, stream_mode=["messages", "values"]):
            if mode == "values":
                state = state | part
            elif isinstance(part[0], AIMessage) and part[0].text:
                played.pieces.append(str(part[0].text))
        return state

    def _helper(self, fairlead: Any, script: Any, tools: list[Any], played: Played) -> StructuredTool:
        model = Scripted(model_name="helper", script=script, played=played)
        agent = create_agent(model, list(tools), middleware=[fairlead], name="helper")

        def helper(message: str) -> str:
            """Ask the helper."""
            return str(agent.invoke({"messages": [{"role": "user", "content": message}]})["messages"][-1].text)

        async def ahelper(message: str) -> str:
            done = await agent.ainvoke({"messages": [{"role": "user", "content": message}]})
            return str(done["messages"][-1].text)

        return StructuredTool.from_function(helper, ahelper, name="helper")

    @classmethod
    def tap(cls) -> bool:
        run, arun = StructuredTool._run, StructuredTool._arun

        @functools.wraps(run)
        def tapped(self: Any, *args: Any, **given: Any) -> Any:
            boundary.report_run(self.name, _own(given), self.func)
            return run(self, *args, **given)

        @functools.wraps(arun)
        async def atapped(self: Any, *args: Any, **given: Any) -> Any:
            if self.coroutine is not None and not of_a_server(self.coroutine):  # without one, it calls `_run`
                boundary.report_run(self.name, _own(given), self.coroutine)
            return await arun(self, *args, **given)

        StructuredTool._run, StructuredTool._arun = tapped, atapped  # type: ignore[method-assign]
        return True

    # --- for the bench ----------------------------------------------------------------------

    async def work(self, calls: int, *, hooks: Hooks | None = None, native: int = 0, way: Way = "plain") -> None:
        fairlead = None if hooks is None else Fairlead(hooks)
        kind = KINDS[way]
        middleware = [kind(number) for number in range(native)] if fairlead is None else [fairlead]
        agent = create_agent(Working(left=calls), [nothing], middleware=middleware)
        config: Any = {"recursion_limit": 10 * calls + 20}  # two steps or more for each call
        await agent.ainvoke({"messages": [{"role": "user", "content": "Go."}]}, config)
        if fairlead is not None:
            await fairlead.aclose()


def of_a_server(function: Any) -> bool:
    """Whether it sends a call to an MCP server. What reaches the server is what runs: servers of tests report it."""
    return str(function.__module__).startswith("langchain_mcp_adapters.")


def _own(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in ("config", "run_manager")}


class Nothing(AgentMiddleware):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    @property
    def name(self) -> str:
        return f"nothing-{self.number}"  # two of one name are refused

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return handler(request)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return await handler(request)


class NothingAtAll(Nothing):
    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request)

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request)


class NothingForLong(Nothing):
    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        await no_word(request)
        return await handler(request)


@limited
async def no_word(request: Any) -> None:
    return None


KINDS: dict[Way, Any] = {"plain": Nothing, "wide": NothingAtAll, "limited": NothingForLong}


@tool
async def nothing(name: str) -> str:
    """Do nothing."""
    driver.tick()
    return "nothing"


class Working(BaseChatModel):
    """Asks for so many calls, one after another."""

    left: int

    @property
    def _llm_type(self) -> str:
        return "working"

    def bind_tools(self, tools: Any, **options: Any) -> Working:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        self.left -= 1
        calls = [{"name": "nothing", "args": {"name": "x"}, "id": f"c{self.left}"}] if self.left >= 0 else []
        return ChatResult(generations=[ChatGeneration(message=AIMessage("" if calls else "Done.", tool_calls=calls))])

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        return self._generate(messages)  # and not on a thread
