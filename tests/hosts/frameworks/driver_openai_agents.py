"""The driver of the OpenAI Agents SDK: a scripted `Model`, run, streamed, or run where nothing can be awaited."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import agents
import boundary
import driver
from agents import (
    Agent,
    Model,
    ModelResponse,
    Runner,
    SQLiteSession,
    ToolInputGuardrail,
    ToolOutputGuardrail,
    Usage,
    set_tracing_disabled,
)
from agents.tool_guardrails import ToolGuardrailFunctionOutput
from driver import Call, Played, Say, Way, Workbench, limited
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
)

from fairlead import Hooks
from fairlead.hosts.frameworks.openai_agents import FRAMEWORK, Fairlead

set_tracing_disabled(True)  # which goes over the network
_ids = count(1)


def message(text: str) -> ResponseOutputMessage:
    content = [ResponseOutputText(annotations=[], text=text, type="output_text", logprobs=[])]
    return ResponseOutputMessage(
        id=f"msg_{next(_ids)}", content=content, role="assistant", status="completed", type="message"
    )


def function_call(tool: str, args: Any) -> ResponseFunctionToolCall:
    number = next(_ids)
    raw = args if isinstance(args, str) else json.dumps(args)
    return ResponseFunctionToolCall(
        id=f"fc_{number}", call_id=f"call_{number}", name=tool, arguments=raw, type="function_call"
    )


def _bound(function: Any, args: Any, given: Any) -> dict[str, Any]:
    named = inspect.signature(function).bind(*args, **given).arguments
    return {name: value for name, value in named.items() if not isinstance(value, agents.RunContextWrapper)}


def output_of(said: Any) -> list[Any]:
    if isinstance(said, Say):
        return [message(said.text)]
    if isinstance(said, Call):
        return [*([message(said.text)] if said.text else []), *(function_call(*call) for call in said.tools)]
    return list(said)  # items, as they are


def written(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    except ValueError:
        return arguments


def shown(items: Any) -> list[str]:
    """What a model is sent, as `role: text`."""
    lines = []
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
        kind = item.get("type", "message")
        if kind == "function_call":
            lines.append(f"assistant: calls {item['name']} {written(item['arguments'])}")
        elif kind == "function_call_output":
            lines.append(f"tool: {item['output']}")
        elif kind == "message":
            content = item["content"]
            if not isinstance(content, str):
                content = "".join(part.get("text", "") for part in content)
            lines.append(f"{item['role']}: {content}")
    return lines


class Scripted(Model):
    """A model that says what it is told to."""

    def __init__(self, script: list[Any], played: Played, name: str = "first") -> None:
        self.script, self.played, self.model = script, played, name

    def _next(self, instructions: Any, items: Any) -> list[Any]:
        self.played.sent.append([*([f"system: {instructions}"] if instructions else []), *shown(items)])
        self.played.models.append(self.model)
        said = self.script.pop(0) if self.script else Say("Done.")
        if isinstance(said, Exception):
            raise said
        return output_of(said)

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **rest: Any) -> ModelResponse:
        return ModelResponse(self._next(system_instructions, input), Usage(requests=1, total_tokens=1), None)

    async def stream_response(
        self, system_instructions: Any, input: Any, *args: Any, **rest: Any
    ) -> AsyncIterator[Any]:
        output = self._next(system_instructions, input)
        texts = [item.content[0].text for item in output if isinstance(item, ResponseOutputMessage)]
        for text in texts:
            for word in text.replace(" ", " \0").split("\0"):
                yield ResponseTextDeltaEvent(
                    content_index=0, delta=word, item_id="msg", logprobs=[], output_index=0, sequence_number=0,
                    type="response.output_text.delta",
                )  # fmt: skip
        response = Response(
            id="resp", created_at=0, model=self.model, object="response", output=output, tool_choice="auto", tools=[],
            parallel_tool_calls=True,
        )  # fmt: skip
        yield ResponseCompletedEvent(response=response, sequence_number=0, type="response.completed")


async def drained(result: Any, played: Played | None = None) -> Any:
    async for event in result.stream_events():
        raw = event.data if event.type == "raw_response_event" else None
        if played is not None and raw is not None and raw.type == "response.output_text.delta":
            played.pieces.append(raw.delta)
    return result


class Driver(driver.Driver):
    framework = FRAMEWORK
    sync = True
    interrupts = True
    helpers = True
    module = "agents"
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
        bench = bench or Workbench()
        fairlead = adapter or Fairlead(hooks)
        fairlead.models = {"second": Scripted(left, played, "second")}
        tools = [agents.function_tool(tool) for tool in bench.tools]
        agent = Agent("main", instructions=system_prompt, model=Scripted(left, played), tools=list(tools))
        if helper is not None:
            helping = Agent("helper", model=Scripted(helper, played, "helper"), tools=list(tools))
            agent.tools.append(self._as_tool(helping))
        options: dict[str, Any] = {"session": SQLiteSession(session_id)} if session_id else {}
        try:
            result = await self._run(fairlead, agent, given, played, streaming, sync, options)
            while result.interruptions and approve is not None:
                state = result.to_state()
                for item in result.interruptions:
                    played.asked.append(str(fairlead.question(item).reason))
                    (state.approve if approve else state.reject)(item)
                result = await self._run(fairlead, agent, state, played, streaming, sync, options)
            played.output = result.final_output or None
            played.history = shown(result.to_input_list())
        except asyncio.CancelledError:
            raise
        except Exception as error:
            played.error = error
        finally:
            if adapter is None:
                await fairlead.aclose()
        return played

    @staticmethod
    def _as_tool(helping: Any) -> Any:
        @agents.function_tool(name_override="helper")
        async def help_out(message: str) -> str:
            """Help."""
            return str((await Runner.run(helping, message)).final_output)

        return help_out

    @staticmethod
    async def _run(
        fairlead: Fairlead, agent: Any, given: Any, played: Played, streaming: bool, sync: bool, options: dict[str, Any]
    ) -> Any:
        if sync:
            return await asyncio.to_thread(lambda: fairlead.run_sync(agent, given, **options))
        if streaming:
            return await drained(fairlead.run_streamed(agent, given, **options), played)
        return await fairlead.run(agent, given, **options)

    @classmethod
    def tap(cls) -> bool:
        decorate = agents.function_tool

        def function_tool(function: Any = None, **options: Any) -> Any:
            if function is None:
                return lambda function: function_tool(function, **options)
            name = options.get("name_override") or function.__name__
            if inspect.iscoroutinefunction(function):

                @functools.wraps(function)
                async def tapped(*args: Any, **given: Any) -> Any:
                    boundary.report_run(name, _bound(function, args, given), function)
                    return await function(*args, **given)
            else:

                @functools.wraps(function)
                def tapped(*args: Any, **given: Any) -> Any:
                    boundary.report_run(name, _bound(function, args, given), function)
                    return function(*args, **given)

            return decorate(tapped, **options)

        agents.function_tool = function_tool
        return True

    # --- for the bench ----------------------------------------------------------------------

    async def work(self, calls: int, *, hooks: Hooks | None = None, native: int = 0, way: Way = "plain") -> None:
        tool = agents.function_tool(nothing)
        check = limited(allow) if way == "limited" else allow
        tool.tool_input_guardrails = [ToolInputGuardrail(check, name=f"allow-{n}") for n in range(native)] or None
        if way == "wide":  # around the model it has none that there can be ten of
            tool.tool_output_guardrails = [ToolOutputGuardrail(allow, name=f"allow-{n}") for n in range(native)] or None
        agent = Agent("main", model=Working(calls), tools=[tool])
        runner: Any = Runner if hooks is None else Fairlead(hooks)
        await runner.run(agent, "Go.", max_turns=calls + 2)


async def nothing(name: str) -> str:
    """Do nothing."""
    driver.tick()
    return "nothing"


async def allow(data: Any) -> ToolGuardrailFunctionOutput:
    return ToolGuardrailFunctionOutput.allow()


class Working(Model):
    """Asks for so many calls, one after another."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    async def get_response(self, *args: Any, **rest: Any) -> ModelResponse:
        self.left -= 1
        output = message("Done.") if self.left < 0 else function_call("nothing", '{"name": "x"}')
        return ModelResponse([output], Usage(), None)

    def stream_response(self, *args: Any, **rest: Any) -> AsyncIterator[Any]:
        raise NotImplementedError
