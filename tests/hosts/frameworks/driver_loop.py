"""The reference loop, which every framework is measured against, as a driver."""

from __future__ import annotations

import asyncio
import inspect
import json
from typing import Any

import driver
from driver import Call, Played, Say, Workbench
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from fairlead import Hooks
from fairlead.hosts.loop.agent import LOOP, Agent
from fairlead.hosts.loop.tools import Tool


def shown(messages: list[ModelMessage]) -> list[str]:
    """What a model is sent, as `role: text`."""
    lines = []
    for part in (part for message in messages for part in message.parts):
        kind: str = part.part_kind
        if kind == "tool-call":
            lines.append(f"assistant: calls {part.tool_name} {json.dumps(part.args_as_dict(), sort_keys=True)}")
        else:
            role = {"system-prompt": "system", "user-prompt": "user", "text": "assistant"}.get(kind, "tool")
            lines.append(f"{role}: {part.content}")
    return lines


def scripted(script: list[Say | Call | Exception], played: Played, name: str) -> FunctionModel:
    async def reply(messages: list[ModelMessage], info: Any) -> ModelResponse:
        played.sent.append(shown(messages))
        played.models.append(name)
        said = script.pop(0) if script else Say("Done.")
        if isinstance(said, Exception):
            raise said
        if isinstance(said, Say):
            return ModelResponse([TextPart(said.text)])
        return ModelResponse([ToolCallPart(tool, args) for tool, args in said.tools])

    return FunctionModel(reply, model_name=name)


def a_tool(function: Any) -> Tool:
    async def run(args: dict[str, Any]) -> Any:
        result = function(**args)
        return await result if inspect.isawaitable(result) else result

    kind = {"shell": "shell", "read": "read"}.get(function.__name__, "unknown")
    return Tool(function.__name__, function.__doc__ or "", {}, run, kind, "read_only")


class Driver(driver.Driver):
    framework = LOOP
    streams = False
    helpers = True

    def adapter(self, hooks: Hooks) -> dict[str | None, Agent]:
        return {}

    async def close(self, adapter: dict[str | None, Agent]) -> None:
        for agent in adapter.values():
            await agent.close()

    async def play(
        self,
        hooks: Hooks,
        *script: Say | Call | Exception,
        given: str = "Go.",
        bench: Workbench | None = None,
        session_id: str | None = None,
        helper: list[Say | Call | Exception] | None = None,
        system_prompt: str = "Be brief.",
        adapter: Any = None,
        approve: bool | None = None,
        **_: Any,
    ) -> Played:
        played, left = Played(), list(script)
        agents = {} if adapter is None else adapter
        if session_id not in agents:
            agents[session_id] = self._agent(hooks, session_id, bench or Workbench(), helper, system_prompt, played)
        agent = agents[session_id]
        agent.model = scripted(left, played, "first")
        agent.models["second"] = scripted(left, played, "second")
        try:
            played.output = (await agent.run(given)).output
        except asyncio.CancelledError:
            raise
        except Exception as error:
            played.error = error
        finally:
            if adapter is None:
                await self.close(agents)
        return played

    def _agent(
        self,
        hooks: Hooks,
        session_id: str | None,
        bench: Workbench,
        helper: Any,
        system_prompt: str,
        played: Played,
    ) -> Agent:
        tools = [a_tool(function) for function in bench.tools]
        helpers = {}
        if helper is not None:
            helpers["helper"] = Agent(scripted(helper, played, "helper"), tools, name="helper", policy="open")
        return Agent(
            "test", tools, hooks, system_prompt=system_prompt, policy="open", subagents=helpers, session_id=session_id
        )
