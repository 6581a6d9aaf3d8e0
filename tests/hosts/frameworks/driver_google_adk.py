"""The driver of Google ADK: a scripted model, an in-memory runner, our plugin."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterable
from typing import Any

import boundary
import driver
from driver import Call, Played, Say, Way, Workbench, limited
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.genai import types

from fairlead import Hooks
from fairlead.hosts.frameworks.google_adk import FRAMEWORK, Fairlead

CONFIRM = "adk_request_confirmation"


def text_of(content: types.Content | None) -> str:
    parts = content.parts if content is not None else None
    return "".join(part.text for part in parts or () if part.text)


def lines(contents: Iterable[types.Content]) -> list[str]:
    """Messages as `role: text`."""
    told = []
    for content in contents:
        for part in content.parts or ():
            if part.function_call:
                args = json.dumps(part.function_call.args, sort_keys=True)
                told.append(f"assistant: calls {part.function_call.name} {args}")
            elif part.function_response:
                told.append(f"tool: {json.dumps(part.function_response.response)}")
            elif part.text:
                told.append(f"{'assistant' if content.role == 'model' else 'user'}: {part.text}")
    return told


class Scripted(BaseLlm):
    """A model that answers from a script, and keeps what it was sent."""

    script: Any
    played: Any

    async def generate_content_async(self, request: LlmRequest, stream: bool = False) -> AsyncIterator[LlmResponse]:
        self.played.sent.append([f"system: {request.config.system_instruction}", *lines(request.contents)])
        self.played.models.append(self.model)
        said = self.script.pop(0) if self.script else Say("Done.")
        if isinstance(said, Exception):
            raise said
        parts = [types.Part(text=said.text)] if said.text else []
        if isinstance(said, Call):
            parts += [types.Part.from_function_call(name=name, args=_args(name, args)) for name, args in said.tools]
        elif stream:
            for word in said.text.split(" "):
                piece = word if said.text.startswith(word) else f" {word}"
                yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=piece)]), partial=True)
        yield LlmResponse(content=types.Content(role="model", parts=parts), partial=False if stream else None)


def _args(name: str, args: dict[str, Any]) -> dict[str, Any]:
    return {"request": args["message"]} if name == "helper" else args


class Adapter(Fairlead):
    """A plugin that outlives a request, and the runner's sessions with it."""

    session_service: Any = None


class Driver(driver.Driver):
    framework = FRAMEWORK
    sync = True
    interrupts = True
    helpers = True
    module = "google.adk.runners"
    native = True
    ways = ("wide", "limited")

    def adapter(self, hooks: Hooks) -> Adapter:
        return Adapter(hooks)

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
        played, left, bench = Played(), list(script), bench or Workbench()
        plugin = adapter or Adapter(hooks)
        plugin.models["second"] = Scripted(model="second", script=left, played=played)
        tools: list[Any] = list(bench.tools)
        if helper is not None:
            model = Scripted(model="helper", script=helper, played=played)
            tools.append(AgentTool(LlmAgent(name="helper", description="Helps.", model=model, tools=bench.tools)))
        agent = LlmAgent(
            name="agent",
            model=Scripted(model="first", script=left, played=played),
            instruction=system_prompt,
            tools=tools,
        )
        runner = InMemoryRunner(app=App(name="driver", root_agent=agent, plugins=[plugin]))
        if plugin.session_service is None:
            plugin.session_service = runner.session_service
        runner.session_service = plugin.session_service
        mode = StreamingMode.SSE if streaming else StreamingMode.NONE
        play = Play(runner, played, session_id or "s", RunConfig(streaming_mode=mode), sync)
        try:
            await play.run(types.Content(role="user", parts=[types.Part(text=given)]))
            while play.asked and approve is not None:
                await play.run(play.answer(approve))
        except asyncio.CancelledError:
            raise
        except Exception as error:
            played.error = error
        finally:
            played.history = await play.history()
            if adapter is None:
                await runner.close()
        return played

    @classmethod
    def tap(cls) -> bool:
        invoke = FunctionTool._invoke_callable

        async def tapped(self: Any, target: Any, args: dict[str, Any]) -> Any:
            if target is self.func:
                boundary.report_run(self.name, args, target)
            return await invoke(self, target, args)

        FunctionTool._invoke_callable = tapped  # type: ignore[method-assign]
        return True

    # --- for the bench ----------------------------------------------------------------------

    async def work(self, calls: int, *, hooks: Hooks | None = None, native: int = 0, way: Way = "plain") -> None:
        kind = KINDS[way]
        plugins = [kind(f"nothing-{number}") for number in range(native)] if hooks is None else [Fairlead(hooks)]
        agent = LlmAgent(name="agent", model=Working(model="working", left=calls), tools=[nothing])
        runner = InMemoryRunner(app=App(name="driver", root_agent=agent, plugins=plugins))
        await runner.session_service.create_session(app_name="driver", user_id="u", session_id="s")
        message = types.Content(role="user", parts=[types.Part(text="Go.")])
        async for _ in runner.run_async(user_id="u", session_id="s", new_message=message):
            pass
        await runner.close()


class Nothing(BasePlugin):
    async def before_tool_callback(self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any) -> None:
        return None


class NothingAtAll(Nothing):
    async def after_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, result: Any) -> None:
        return None

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        return None

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        return None


class NothingForLong(BasePlugin):
    @limited
    async def before_tool_callback(self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any) -> None:
        return None


KINDS: dict[Way, Any] = {"plain": Nothing, "wide": NothingAtAll, "limited": NothingForLong}


async def nothing(name: str) -> str:
    """Do nothing."""
    driver.tick()
    return "nothing"


class Working(BaseLlm):
    """Asks for so many calls, one after another."""

    left: int

    async def generate_content_async(self, request: LlmRequest, stream: bool = False) -> AsyncIterator[LlmResponse]:
        self.left -= 1
        part = types.Part(text="Done.")
        if self.left >= 0:
            part = types.Part.from_function_call(name="nothing", args={"name": "x"})
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=3, candidates_token_count=2)
        yield LlmResponse(content=types.Content(role="model", parts=[part]), usage_metadata=usage)


class Play:
    """One request of a user, and the answers that it takes."""

    def __init__(self, runner: InMemoryRunner, played: Played, session_id: str, config: RunConfig, sync: bool) -> None:
        self.runner, self.played, self.session_id, self.config, self.sync = runner, played, session_id, config, sync
        self.asked: list[Any] = []

    async def run(self, message: types.Content) -> None:
        about = {"app_name": "driver", "user_id": "u", "session_id": self.session_id}
        if await self.runner.session_service.get_session(**about) is None:
            await self.runner.session_service.create_session(**about)
        self.asked = []
        given: Any = {"user_id": "u", "session_id": self.session_id, "new_message": message, "run_config": self.config}
        if self.sync:
            for event in self._run_sync(given):
                self._take(event)
        else:
            async for event in self.runner.run_async(**given):
                self._take(event)

    def _run_sync(self, given: Any) -> Iterable[Any]:
        """Older versions lose what is raised on the thread of theirs."""
        lost: list[BaseException] = []
        before, threading.excepthook = threading.excepthook, lambda args: lost.append(args.exc_value)
        try:
            yield from self.runner.run(**given)
        finally:
            threading.excepthook = before
        if lost:
            raise lost[0]

    def _take(self, event: Any) -> None:
        text = text_of(event.content)
        if event.partial:
            self.played.pieces.append(text)
            return
        calls = event.get_function_calls()
        asked = [call for call in calls if call.name == CONFIRM]
        self.asked += [call.id for call in asked]
        self.played.asked += [call.args["toolConfirmation"]["hint"] for call in asked]
        if text and not calls and not event.get_function_responses():
            self.played.output = text

    def answer(self, approve: bool) -> types.Content:
        """What the user interface sends back."""
        parts = [
            types.Part(function_response=types.FunctionResponse(id=one, name=CONFIRM, response={"confirmed": approve}))
            for one in self.asked
        ]
        return types.Content(role="user", parts=parts)

    async def history(self) -> list[str]:
        session = await self.runner.session_service.get_session(
            app_name="driver", user_id="u", session_id=self.session_id
        )
        return lines(event.content for event in session.events if event.content) if session else []
