"""A model that says its lines, and an agent that plays a scene with it while everything is written down."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from fairlead import Approval, ApprovalRequest, Hooks, Verdict
from fairlead.hosts.loop.agent import Agent, Result
from fairlead.hosts.loop.tools import Tool, ToolError
from fairlead.testing import Recorder

Calls = Sequence[tuple[str, dict[str, Any]]]
Line = str | tuple[str, Calls] | Exception
"""What the model says, the tools it calls, or how it fails."""

_ROLES = {"system-prompt": "system", "user-prompt": "user", "text": "assistant"}


class Scripted:
    """A model that says its lines, then "Done.", and keeps what it was sent, as one text per part."""

    def __init__(self, *lines: Line, name: str = "scripted") -> None:
        self.sent: list[list[str]] = []
        self._lines = iter(lines)
        self.model = FunctionModel(self._say, stream_function=self._stream, model_name=name)

    def _next(self, messages: list[ModelMessage]) -> tuple[str, Calls]:
        self.sent.append([_part(part) for message in messages for part in message.parts])
        line = next(self._lines, "Done.")
        if isinstance(line, Exception):
            raise line
        return (line, ()) if isinstance(line, str) else line

    def _say(self, messages: list[ModelMessage], _: Any) -> ModelResponse:
        text, calls = self._next(messages)
        parts = [ToolCallPart(tool, args, f"call-{n}") for n, (tool, args) in enumerate(calls, 1)]
        return ModelResponse([*([TextPart(text)] if text else []), *parts])

    async def _stream(self, messages: list[ModelMessage], _: Any) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        text, calls = self._next(messages)
        for word in text.split(" "):
            yield word + " "
        for n, (tool, args) in enumerate(calls, 1):
            yield {n: DeltaToolCall(tool, json.dumps(args), f"call-{n}")}


def _part(part: Any) -> str:
    if part.part_kind == "tool-call":
        return f"call: {part.tool_name} {json.dumps(part.args_as_dict())}"
    if part.part_kind == "tool-return":
        return f"{'error' if part.outcome == 'failed' else 'result'}: {part.content}"
    return f"{_ROLES[part.part_kind]}: {part.content}"


class Scene:
    """An agent with a model, three tools and a subagent, and a record of all that happens.

    `look` only reads, `touch` changes something, `crash` fails, `helper` is another agent. Every tool
    that runs is in `ran`, the human was asked what is in `asked`, and refuses if `refuses` is set.
    """

    def __init__(self, *lines: Line, helper: Sequence[Line] = ("Helped.",), **options: Any) -> None:
        self.ran: list[str] = []
        self.asked: list[ApprovalRequest] = []
        self.refuses = False
        self.hooks = Hooks(approver=self._approve)
        self.seen = Recorder(self.hooks)
        self.model = Scripted(*lines)
        self.other = Scripted("From the other model.", name="other")
        self.helper = Scripted(*helper, name="helper")
        self.error: BaseException | None = None
        self.result = Result(None, "end_turn")
        helping = Agent(self.helper.model, [self._tool("look", "read_only")], system_prompt="You help.", policy="open")
        defaults: dict[str, Any] = {
            "system_prompt": "Be brief.",
            "policy": "open",
            "models": {"other": self.other.model},
            "subagents": {"helper": helping},
            "compact": self._compact,
        }
        tools = [self._tool("look", "read_only"), self._tool("touch", "mutating"), self._tool("crash", "read_only")]
        self.agent = Agent(self.model.model, tools, self.hooks, **(defaults | options))

    def add(self, what: Verdict | Callable[..., Any], on: str | Sequence[str], name: str = "judge", **how: Any) -> None:
        """Register a hook. A verdict is given once, the first time the event fires."""
        given: list[Verdict] = [what] if isinstance(what, Verdict) else []

        def once(step: Any) -> Verdict | None:
            return given.pop() if given else None

        self.hooks.add(once if isinstance(what, Verdict) else what, on=on, name=name, **how)

    async def play(self, *inputs: str) -> Scene:
        """Run these requests one after another, end the session, and keep what came of the last."""
        try:
            for given in inputs or ("Go.",):
                self.result = await self.agent.run(given)
        except Exception as error:
            self.error = error
        try:
            await self.agent.close()
        except Exception as error:
            self.error = self.error or error
        return self

    @property
    def sent(self) -> list[list[str]]:
        return self.model.sent

    @property
    def output(self) -> str | None:
        return self.result.output

    @property
    def events(self) -> list[str]:
        return self.seen.events

    def steps(self, event: str) -> list[Any]:
        """The steps of an event, as hooks left them."""
        return [decision.step for decision in self.seen.of(event)]

    def requests_with(self, text: str) -> list[int]:
        """The requests to the model, by number, that contained this text."""
        return [n for n, parts in enumerate(self.sent) if any(text in part for part in parts)]

    def _tool(self, name: str, safety: Any) -> Tool:
        async def run(args: dict[str, Any]) -> str:
            self.ran.append(f"{name} {args.get('at', '')}".rstrip())
            if name == "crash":
                raise RuntimeError("boom")
            if args.get("at") == "nowhere":
                raise ToolError("nothing there")
            return f"{name}: {args.get('at', 'all')} ({len(self.ran)})"

        schema = {"type": "object", "properties": {"at": {"type": "string"}}}
        return Tool(name, f"To {name}.", schema, run, "write" if safety == "mutating" else "read", safety)

    async def _approve(self, request: ApprovalRequest) -> Approval:
        self.asked.append(request)
        return Approval("deny", "ann", "not today") if self.refuses else Approval("allow", "ann")

    async def _compact(self, messages: Sequence[Any]) -> Sequence[Any]:
        self.ran.append("compact")
        return [{"role": "user", "content": "(a summary)"}, *messages[1:]]


@pytest.fixture
def scripted() -> type[Scripted]:
    return Scripted


@pytest.fixture
def scene() -> type[Scene]:
    return Scene
