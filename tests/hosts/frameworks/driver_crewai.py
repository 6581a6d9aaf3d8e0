"""The driver of crewai: a crew of one agent with a scripted `BaseLLM`, kicked off, streamed, or awaited."""

from __future__ import annotations

import asyncio
import atexit
import functools
import inspect
import json
import os
import shutil
import tempfile
from typing import Any
from unittest.mock import patch

HOME = tempfile.mkdtemp(prefix="fairlead-crewai-")  # crewai keeps a database there
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
os.environ |= {
    "HOME": HOME, "CREWAI_STORAGE_DIR": HOME, "CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_DISABLE_TRACKING": "true",
    "OTEL_SDK_DISABLED": "true", "CREWAI_TRACING_ENABLED": "false", "CREWAI_TESTING": "true",
}  # fmt: skip

import boundary  # noqa: E402
import driver  # noqa: E402
from crewai import Agent, BaseLLM, Crew, Task  # noqa: E402
from crewai.hooks import InterceptionPoint, ToolCallHookContext, register_hook, unregister_hook  # noqa: E402
from crewai.tools import tool as crewai_tool  # noqa: E402
from crewai.tools.base_tool import Tool  # noqa: E402
from driver import Call, Played, Say, Way, Workbench  # noqa: E402

from fairlead import Hooks  # noqa: E402
from fairlead.hosts.frameworks.crewai import FRAMEWORK, Fairlead  # noqa: E402

DELEGATE = "delegate_work_to_coworker"


def shown(messages: list[dict[str, Any]]) -> list[str]:
    lines = []
    for message in messages:
        if message.get("content") is not None:
            lines.append(f"{message['role']}: {message['content']}")
        for call in message.get("tool_calls") or ():
            args = json.dumps(json.loads(call["function"]["arguments"]), sort_keys=True)
            lines.append(f"assistant: calls {call['function']['name']} {args}")
    return lines


class Scripted(BaseLLM):
    """Says what stands in a script, and streams it word by word."""

    script: Any = None
    played: Any = None
    with_tools: bool = True

    def supports_function_calling(self) -> bool:
        return self.with_tools

    def get_context_window_size(self) -> int:
        return 100_000

    def get_input_tokens_count(self, *args: Any) -> int:
        return 1

    def call(self, messages: Any, tools: Any = None, **options: Any) -> Any:
        self.played.sent.append(shown(messages))
        self.played.models.append(self.model)
        said = self.script.pop(0) if self.script else Say("Done.")
        if isinstance(said, Exception):
            raise said
        if isinstance(said, Say):
            if self._effective_stream():
                self._stream(said.text, options)
            return said.text
        number = len(self.played.sent)
        return [a_call(f"call-{self.model}-{number}-{at}", *call) for at, call in enumerate(said.tools)]

    def _stream(self, text: str, options: dict[str, Any]) -> None:
        about = {name: options.get(name) for name in ("from_task", "from_agent")}
        for word in text.replace(" ", " \0").split("\0"):
            self._emit_stream_chunk_event(word, **about)


def a_call(call_id: str, tool: str, args: dict[str, Any]) -> dict[str, Any]:
    if tool == "helper":
        tool, args = DELEGATE, {"task": args["message"], "context": "none", "coworker": "helper"}
    return {"id": call_id, "type": "function", "function": {"name": tool, "arguments": json.dumps(args)}}


def a_tool(function: Any) -> Any:
    made = function
    if inspect.iscoroutinefunction(function):

        def made(name: str) -> str:
            """Take a moment."""
            return str(asyncio.run(function(name)))

    else:

        def made(*args: Any, **options: Any) -> Any:
            return function(*args, **options)

        made.__doc__, made.__annotations__ = function.__doc__, function.__annotations__
        made.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    made.__name__ = function.__name__
    return crewai_tool(function.__name__)(made)


def an_agent(name: str, llm: BaseLLM, prompt: str, **options: Any) -> Agent:
    given = {"goal": "Help.", "backstory": prompt, "cache": False, "max_retry_limit": 0, **options}
    return Agent(role=name, llm=llm, **given)


class Driver(driver.Driver):
    framework = FRAMEWORK
    sync = True
    interrupts = True
    helpers = True
    module = "crewai"
    native = True
    ways = ("wide",)

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
        **agent: Any,
    ) -> Played:
        played, left = Played(), list(script)
        tools = [a_tool(function) for function in (bench or Workbench()).tools]
        main = an_agent(
            "main", Scripted(model="first", script=left, played=played), system_prompt,
            tools=tools, allow_delegation=helper is not None, **agent,
        )  # fmt: skip
        agents = [main]
        if helper is not None:
            llm = Scripted(model="helper", script=helper, played=played)
            agents.append(an_agent("helper", llm, "Help out.", tools=tools))
        task = Task(description=given, expected_output="An answer.", agent=main)
        crew = Crew(agents=agents, tasks=[task], cache=False, stream=streaming)
        fairlead = adapter or Fairlead(hooks)
        fairlead.models["second"] = Scripted(model="second", script=left, played=played)
        inputs = {"session_id": session_id} if session_id else {}
        try:
            answer, ask = "yes" if approve else "no", ToolCallHookContext.request_human_input

            def show(context: Any, prompt: str, *more: Any) -> Any:
                played.asked.append(prompt)
                return ask(context, prompt, *more)

            with (
                patch("builtins.input", side_effect=EOFError if approve is None else [answer] * 9),
                patch.object(ToolCallHookContext, "request_human_input", show),
            ):
                output = await self._run(crew, inputs, streaming, sync, played)
            played.output = output if output.strip() else None
            played.history = shown(task.output.messages) if task.output is not None else []
        except Exception as error:
            played.error = error
        finally:
            if adapter is None:
                fairlead.close() if sync else await fairlead.aclose()
        return played

    @staticmethod
    async def _run(crew: Crew, inputs: dict[str, Any], streaming: bool, sync: bool, played: Played) -> str:
        if sync:
            return str((await asyncio.to_thread(crew.kickoff, inputs)).raw)
        if not streaming:
            return str((await crew.akickoff(inputs)).raw)
        stream = await crew.kickoff_async(inputs)
        async for chunk in stream:
            played.pieces.append(chunk.content)
        return str(stream.result.raw)

    @classmethod
    def tap(cls) -> bool:
        for name in ("run", "_run"):
            own = getattr(Tool, name)

            @functools.wraps(own)
            def tapped(self: Any, *args: Any, _own: Any = own, **given: Any) -> Any:
                boundary.report_run(self.name, given, self.func)
                return _own(self, *args, **given)

            setattr(Tool, name, tapped)
        return True

    # --- for the bench ----------------------------------------------------------------------

    async def work(self, calls: int, *, hooks: Hooks | None = None, native: int = 0, way: Way = "plain") -> None:
        def nothing(number: int) -> str:
            """Do nothing."""
            driver.tick()
            return "nothing"

        llm = Counting(model="first")
        llm.left = calls
        tools = [crewai_tool("nothing")(nothing)]
        agent = an_agent("main", llm, "Be brief.", tools=tools, max_iter=10 * calls)
        crew = Crew(agents=[agent], tasks=[Task(description="Go.", expected_output="-", agent=agent)], cache=False)
        points = (*AROUND, *AROUND_MODEL) if way == "wide" else AROUND
        natives = [(point, lambda ctx: None) for _ in range(native) for point in points]
        fairlead = None if hooks is None else Fairlead(hooks)
        for point, hook in natives:
            register_hook(point, hook)
        try:
            await crew.akickoff()
        finally:
            for point, hook in natives:
                unregister_hook(point, hook)
            if fairlead is not None:
                await fairlead.aclose()


AROUND = (InterceptionPoint.PRE_TOOL_CALL, InterceptionPoint.POST_TOOL_CALL)
AROUND_MODEL = (InterceptionPoint.PRE_MODEL_CALL, InterceptionPoint.POST_MODEL_CALL)


class Counting(BaseLLM):
    """Asks for a tool so many times."""

    left: int = 0

    def supports_function_calling(self) -> bool:
        return True

    def get_context_window_size(self) -> int:
        return 10_000_000

    def get_input_tokens_count(self, *args: Any) -> int:
        return 1

    def call(self, messages: Any, tools: Any = None, **options: Any) -> Any:
        self.left -= 1
        return [a_call(f"call-{self.left}", "nothing", {"number": self.left})] if self.left >= 0 else "Done."
