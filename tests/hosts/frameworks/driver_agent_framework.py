"""The driver of Microsoft Agent Framework: a scripted chat client, run or streamed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import boundary
import driver
from agent_framework import (
    Agent,
    AgentResponse,
    AgentSession,
    BaseChatClient,
    ChatContext,
    ChatMiddleware,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationContext,
    FunctionInvocationLayer,
    FunctionMiddleware,
    FunctionTool,
    Message,
    ResponseStream,
    tool,
)
from driver import Call, Played, Say, Way, Workbench, limited

from fairlead import Hooks
from fairlead.hosts.frameworks.agent_framework import FRAMEWORK, Fairlead


def shown(messages: Sequence[Message]) -> list[str]:
    """What a model is sent, as `role: text`."""
    lines = []
    for message in messages:
        for content in message.contents:
            if content.type == "text":
                lines.append(f"{message.role}: {content.text}")
            elif content.type == "function_call":
                args = json.dumps(content.parse_arguments(), sort_keys=True)
                lines.append(f"assistant: calls {content.name} {args}")
            elif content.type == "function_result":
                lines.append(f"tool: {content.result}")
    return lines


class Scripted(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """A chat client that says what it is told to."""

    def __init__(self, name: str, script: list[Any], played: Played, **options: Any) -> None:
        super().__init__(**options)
        self.model, self.script, self.played, self.number = name, script, played, 0

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Any:
        if stream:
            wanted = options.get("response_format")
            return ResponseStream(
                self._pieces(messages, options),
                finalizer=lambda updates: ChatResponse.from_updates(updates, output_format_type=wanted),
            )
        return self._reply(messages, options)

    def next_one(self, messages: Sequence[Message], options: Mapping[str, Any]) -> Say | Call:
        prompt = options.get("instructions")
        self.played.sent.append([*([f"system: {prompt}"] if prompt else []), *shown(messages)])
        self.played.models.append(options.get("model") or self.model)
        said = self.script.pop(0) if self.script else Say("Done.")
        if isinstance(said, Exception):
            raise said
        return said

    def contents(self, said: Say | Call) -> list[Content]:
        contents = []
        for name, args in said.tools if isinstance(said, Call) else ():
            self.number += 1
            contents.append(Content.from_function_call(f"{self.model}-{self.number}", name, arguments=json.dumps(args)))
        return contents

    async def _reply(self, messages: Sequence[Message], options: Mapping[str, Any]) -> ChatResponse:
        said = self.next_one(messages, options)
        contents = [*([Content.from_text(said.text)] if said.text else []), *self.contents(said)]
        return ChatResponse(
            messages=[Message("assistant", contents)], model=self.model, finish_reason="stop",
            usage_details={"input_token_count": 3, "output_token_count": 2},
            response_format=options.get("response_format"),
        )  # fmt: skip

    async def _pieces(
        self, messages: Sequence[Message], options: Mapping[str, Any]
    ) -> AsyncIterator[ChatResponseUpdate]:
        said = self.next_one(messages, options)
        for word in said.text.replace(" ", " \0").split("\0") if said.text else ():
            yield ChatResponseUpdate(contents=[Content.from_text(word)], role="assistant")
        if contents := self.contents(said):
            yield ChatResponseUpdate(contents=contents, role="assistant")
        usage = {"input_token_count": 3, "output_token_count": 2}
        yield ChatResponseUpdate(contents=[Content.from_usage(usage)], role="assistant")


def tools_of(bench: Workbench) -> list[Any]:
    return [tool(function, approval_mode="never_require") for function in bench.tools]


class Driver(driver.Driver):
    framework = FRAMEWORK
    interrupts = True
    helpers = True
    module = "agent_framework._agents"  # `from agent_framework import Agent` loads it: the package itself is lazy
    native = True
    ways = ("wide", "limited")

    def __init__(self) -> None:
        self.sessions: dict[str, AgentSession] = {}

    def adapter(self, hooks: Hooks) -> Fairlead:
        self.sessions.clear()
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
        fairlead.models = {"second": Scripted("second", left, played)}
        tools = tools_of(bench or Workbench())
        if helper is not None:
            helping = Agent(
                client=Scripted("helper", helper, played), name="helper", tools=tools_of(bench or Workbench()),
                middleware=[fairlead],
            )  # fmt: skip
            tools.append(helping.as_tool(arg_name="message"))
        agent = Agent(
            client=Scripted("first", left, played), name="main", instructions=system_prompt, tools=tools,
            middleware=[fairlead],
        )  # fmt: skip
        session = None
        if session_id is not None:
            session = self.sessions.setdefault(session_id, AgentSession(session_id=session_id))
        elif approve is not None:  # without a session, an approval is worth nothing
            session = AgentSession()
        try:
            result = await self._run(agent, played, streaming, given, session)
            while (asked := result.user_input_requests) and approve is not None:
                played.asked += [str((one.additional_properties or {}).get("reason")) for one in asked]
                answers = [request.to_function_approval_response(approve) for request in asked]
                result = await self._run(agent, played, streaming, Message("user", answers), session)
            played.output = result.text or None
            played.history = shown(result.messages)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            played.error = error
        finally:
            if adapter is None:
                await fairlead.aclose()
        return played

    @staticmethod
    async def _run(
        agent: Agent, played: Played, streaming: bool, given: Any, session: AgentSession | None
    ) -> AgentResponse:
        if not streaming:
            return await agent.run(given, session=session)
        stream = agent.run(given, session=session, stream=True)
        async for update in stream:
            if update.text and update.role == "assistant":
                played.pieces.append(update.text)
        return await stream.get_final_response()

    @classmethod
    def tap(cls) -> bool:
        call = FunctionTool.__call__

        def tapped(self: Any, *args: Any, **given: Any) -> Any:
            boundary.report_run(self.name, given, self.func)
            return call(self, *args, **given)

        FunctionTool.__call__ = tapped  # type: ignore[method-assign]
        return True

    # --- for the bench ----------------------------------------------------------------------

    async def work(self, calls: int, *, hooks: Hooks | None = None, native: int = 0, way: Way = "plain") -> None:
        fairlead = None if hooks is None else Fairlead(hooks)
        kinds = KINDS[way]
        middleware = [kind() for _ in range(native) for kind in kinds] if fairlead is None else [fairlead]
        client = Working(calls, function_invocation_configuration={"max_iterations": calls + 2})
        agent = Agent(client=client, tools=[nothing], middleware=middleware)
        await agent.run("Go.")
        if fairlead is not None:
            await fairlead.aclose()


class Nothing(FunctionMiddleware):
    async def process(self, context: FunctionInvocationContext, call_next: Any) -> None:
        await call_next()


class NothingSaid(ChatMiddleware):
    async def process(self, context: ChatContext, call_next: Any) -> None:
        await call_next()


class NothingForLong(FunctionMiddleware):
    async def process(self, context: FunctionInvocationContext, call_next: Any) -> None:
        await no_word(context)
        await call_next()


@limited
async def no_word(context: FunctionInvocationContext) -> None:
    return None


KINDS: dict[Way, tuple[Any, ...]] = {"plain": (Nothing,), "wide": (Nothing, NothingSaid), "limited": (NothingForLong,)}


@tool(approval_mode="never_require")
async def nothing(name: str) -> str:
    """Do nothing."""
    driver.tick()
    return "nothing"


class Working(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """Asks for so many calls, one after another."""

    def __init__(self, calls: int, **options: Any) -> None:
        super().__init__(**options)
        self.left = calls

    async def _inner_get_response(self, **asked: Any) -> ChatResponse:
        self.left -= 1
        if self.left < 0:
            return ChatResponse(messages=[Message("assistant", ["Done."])])
        call = Content.from_function_call(f"c{self.left}", "nothing", arguments={"name": "x"})
        return ChatResponse(messages=[Message("assistant", [call])])
