"""Copies of agents of the OpenAI Agents SDK whose models, tools and handoffs run under hooks."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any, TypeVar

from agents import (
    AgentOutputSchema,
    AgentOutputSchemaBase,
    ApplyPatchTool,
    FunctionTool,
    Handoff,
    LocalShellTool,
    Model,
    ShellTool,
    ToolsToFinalOutputResult,
    handoff,
)
from agents.editor import ApplyPatchResult

from ....decision import Context
from ....errors import FairleadError
from ..flow import Flow, run_flow
from ..tool_call import ToolResult
from .messages import readable
from .model_calls import GuardedModel
from .tool_calls import RUN, current, inside_tool

T = TypeVar("T")


class Guarded:
    """Marks a copy of an agent that runs under hooks."""

    fairlead_original: Any


def original(agent: Any) -> Any:
    return agent.__dict__.get("fairlead_original", agent)


_KINDS: dict[type[Any], type[Any]] = {}


def _guarded_kind(kind: type[Any]) -> type[Any]:
    """The class of a copy: that of the agent, with tools under hooks."""
    if kind in _KINDS:
        return _KINDS[kind]
    if issubclass(kind, Guarded):  # the SDK has copied the copy
        return kind

    class Copy(kind, Guarded):  # type: ignore[misc]
        async def get_all_tools(self, run_context: Any) -> list[Any]:
            run = RUN.get()
            if run is not None:
                run.context = run_context
            return [_guarded_tool(tool, run) for tool in await super().get_all_tools(run_context)]

        def __setattr__(self, name: str, value: Any) -> None:
            """The agent's own functions receive the copy, and may set another model or other handoffs."""
            before = self.__dict__.get("handoffs")
            if name == "handoffs" and isinstance(before, _Handoffs) and not isinstance(value, _Handoffs):
                value = _Handoffs(value, before.source, before.seen)
            super().__setattr__(name, _guarded_attribute(name, value))

    Copy.__name__, Copy.__qualname__ = kind.__name__, kind.__qualname__
    _KINDS[kind] = Copy
    return Copy


def guarded_agent(agent: Any, seen: dict[int, Any]) -> Any:
    """A copy of an agent whose model, tools and handoffs run under hooks. The agent itself is unchanged."""
    agent = original(agent)
    if id(agent) in seen:
        return seen[id(agent)]
    guarded = seen[id(agent)] = object.__new__(_guarded_kind(type(agent)))
    about = {name: _guarded_attribute(name, value) for name, value in agent.__dict__.items()}
    guarded.__dict__.update(about, fairlead_original=agent, handoffs=_Handoffs(agent.handoffs, guarded, seen))
    return guarded


def _guarded_attribute(name: str, value: Any) -> Any:
    """The value of an attribute of a copy: a model runs under hooks, and so does what ends a turn."""
    if name == "model" and isinstance(value, Model) and not isinstance(value, GuardedModel):
        return GuardedModel(value)
    if name == "output_type" and value not in (None, str) and not isinstance(value, _Output):
        return _Output(value)
    if name == "tool_use_behavior" and value != "run_llm_again" and not hasattr(value, "fairlead_original"):
        return _judged_behavior(value)
    return value


class _Handoffs(list[Any]):
    """The handoffs of a copy. The agent's own functions receive the copy, and may add some."""

    def __init__(self, items: list[Any], source: Any, seen: dict[int, Any]) -> None:
        super().__init__(items)
        self.source, self.seen = source, seen
        self.guarded: dict[int, tuple[Any, Any]] = {}

    def __iter__(self) -> Iterator[Any]:
        for item in super().__iter__():
            if id(item) not in self.guarded:
                self.guarded[id(item)] = item, _guarded_handoff(item, self.source, self.seen)
            yield self.guarded[id(item)][1]


def _guarded_handoff(item: Any, source: Any, seen: dict[int, Any]) -> Any:
    native = item.__dict__.get("fairlead_original", item) if isinstance(item, Handoff) else handoff(original(item))
    guarded = object.__new__(type(native))
    target = getattr(native, "_agent_ref", None)
    target = guarded_agent(target(), seen) if target is not None and target() is not None else None
    message: list[str | None] = [None]  # for the model, of the last handoff
    refused = [False]

    async def on_invoke_handoff(context: Any, arguments: str | None = None) -> Any:
        agent, message[0] = await current().hand_over(native, context, arguments)
        refused[0] = agent is None
        return source if agent is None else guarded_agent(agent, seen)

    def input_filter(data: Any) -> Any:
        return data if refused[0] else native.input_filter(data)

    guarded.__dict__.update(native.__dict__, fairlead_original=native, on_invoke_handoff=on_invoke_handoff)
    guarded.get_transfer_message = lambda agent: message[0] or native.get_transfer_message(agent)
    if native.input_filter is not None:  # a refused agent continues with the whole conversation
        guarded.input_filter = input_filter
    if target is not None:  # where a RunState looks for agents
        guarded.agent, guarded._agent_ref = target, weakref.ref(target)
    return guarded


def _guarded_tool(tool: Any, run: Any) -> Any:
    """A copy of a tool that runs under hooks. A tool that runs at the provider is returned as it is."""
    if "fairlead_original" in getattr(tool, "__dict__", ()):
        return tool
    changes: dict[str, Any] = {}
    if isinstance(tool, FunctionTool):

        async def on_invoke_tool(context, arguments):  # type: ignore[no-untyped-def] # the SDK reads its signature
            return await current().invoke(tool, context, arguments)

        changes["on_invoke_tool"] = on_invoke_tool
        if hasattr(tool, "timeout_seconds"):
            changes["timeout_seconds"] = None  # the limit is for the tool, and not for its hooks
    elif isinstance(tool, (ShellTool, LocalShellTool)) and tool.executor is not None:
        changes["executor"] = _shell(tool)
    elif isinstance(tool, ApplyPatchTool):
        changes["editor"] = _Editor(tool)
    elif hasattr(tool, "on_invoke_tool"):  # a CustomTool, whose input is a text
        changes["on_invoke_tool"] = _custom(tool)
    else:
        return tool
    guarded = object.__new__(type(tool))
    guarded.__dict__.update(tool.__dict__, fairlead_original=tool, **changes)
    if run is not None and run.asks and isinstance(tool, FunctionTool):
        run.approve_here(guarded, tool)
    return guarded


async def _call(name: str, args: dict[str, Any], call_id: str | None, run: Any, **about: Any) -> ToolResult:
    async def wait(args: dict[str, Any]) -> Any:
        with inside_tool():
            output = run(args)
            return await output if inspect.isawaitable(output) else output

    return await run_tool_flow(current().turn.tool(name, args, call_id, wait, read=readable, **about).perform())


async def run_tool_flow(flow: Flow[T]) -> T:
    """Run a flow inside of a tool. The run keeps an abort: the SDK would make a text of it."""
    try:
        return await run_flow(flow)
    except FairleadError as error:
        current().error = error
        raise


def _shell(tool: Any) -> Any:
    async def execute(request: Any) -> Any:
        action = request.data.action
        field = "commands" if hasattr(action, "commands") else "command"
        original = {field: list(getattr(action, field))}
        about = [name for name in ("working_directory", "env", "user") if hasattr(action, name)]
        for name in about:  # where and as whom a local shell runs it
            if value := getattr(action, name):
                original[name] = value

        def run(args: dict[str, Any]) -> Any:
            if args == original:
                return tool.executor(request)
            data, changed = copy(request.data), copy(action)
            commands = args.get(field)
            setattr(changed, field, [commands] if isinstance(commands, str) else list(commands or ()))
            for name in about:  # a hook removes what it leaves out
                setattr(changed, name, args.get(name, {} if name == "env" else None))
            data.action = changed
            return tool.executor(replace(request, data=data))

        result = await _call(tool.name, original, request.data.call_id, run, kind="shell")
        return result.text if result.replaced else result.result()

    return execute


def _custom(tool: Any) -> Any:
    async def on_invoke_tool(context, text):  # type: ignore[no-untyped-def]
        call_id = getattr(context, "tool_call_id", None)
        result = await _call(
            tool.name, {"input": text}, call_id, lambda args: tool.on_invoke_tool(context, args.get("input", ""))
        )
        return result.text if result.replaced else result.result()

    return on_invoke_tool


class _Editor:
    """An editor that applies patches under hooks."""

    def __init__(self, tool: Any) -> None:
        self.tool = tool

    async def create_file(self, operation: Any) -> Any:
        return await self._apply(self.tool.editor.create_file, operation)

    async def update_file(self, operation: Any) -> Any:
        return await self._apply(self.tool.editor.update_file, operation)

    async def delete_file(self, operation: Any) -> Any:
        return await self._apply(self.tool.editor.delete_file, operation)

    async def _apply(self, method: Any, operation: Any) -> Any:
        fields = ("type", "path", "diff", "move_to")
        original = {name: getattr(operation, name) for name in fields if getattr(operation, name, None) is not None}

        def run(args: dict[str, Any]) -> Any:
            return method(operation if args == original else replace(operation, **args))

        result = await _call(self.tool.name, original, None, run, kind="write")
        if result.replaced:
            return ApplyPatchResult(status="failed" if result.is_error else "completed", output=result.text)
        return result.result()


def _judged_behavior(behavior: Any) -> Any:
    """A `tool_use_behavior` that dispatches before_turn_end if a tool's output ends the run."""

    async def decide(context: Any, results: list[Any]) -> Any:
        final = await _apply_behavior(behavior, context, results)
        run = current()
        if final.is_final_output and not run.turn.over:
            feedback = await run_flow(run.turn.ending())
            run.turn_end_judged = feedback is None
            if feedback is not None:
                run.turn.waiting.append(Context(feedback, "before_turn_end"))
                return ToolsToFinalOutputResult(is_final_output=False)
        return final

    decide.fairlead_original = behavior  # type: ignore[attr-defined]
    return decide


async def _apply_behavior(behavior: Any, context: Any, results: list[Any]) -> Any:
    if callable(behavior):
        decided = behavior(context, results)
        return await decided if inspect.isawaitable(decided) else decided
    names = None if behavior == "stop_on_first_tool" else behavior.get("stop_at_tool_names", ())
    for result in results:
        if names is None or result.tool.name in names:
            return ToolsToFinalOutputResult(is_final_output=True, final_output=result.output)
    return ToolsToFinalOutputResult(is_final_output=False)


class _Output(AgentOutputSchemaBase):  # type: ignore[misc]
    """The type of an agent's output. A text that a hook gives need not be of that type."""

    def __init__(self, kind: Any) -> None:
        self.inner = kind if isinstance(kind, AgentOutputSchemaBase) else AgentOutputSchema(kind)

    def is_plain_text(self) -> bool:
        return bool(self.inner.is_plain_text())

    def name(self) -> str:
        return str(self.inner.name())

    def json_schema(self) -> dict[str, Any]:
        return dict(self.inner.json_schema())

    def is_strict_json_schema(self) -> bool:
        return bool(self.inner.is_strict_json_schema())

    def validate_json(self, json_str: str) -> Any:
        try:
            return self.inner.validate_json(json_str)
        except Exception:
            run = RUN.get()
            if run is not None and json_str in run.hook_texts:
                return json_str
            raise
