"""The toolsets of an agent, with hooks where the tools themselves are.

A user's own `WrapperToolset` may change a call, repeat it, or send it to another tool. So calls that pass through one
are judged beneath it. All other calls are judged on the outside, which costs less. There, only the function of an
`ApprovalRequiredToolset` could change the arguments afterwards, so they are compared beneath it.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pydantic_ai.exceptions import SkipToolExecution
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import (
    AbstractToolset,
    ApprovalRequiredToolset,
    CombinedToolset,
    ToolsetTool,
    WrapperToolset,
)
from pydantic_ai.toolsets._dynamic import DynamicToolset
from pydantic_core import to_jsonable_python

from ....errors import ArgumentsChanged
from ..adapter import without

if TYPE_CHECKING:
    from . import PydanticAIRun

_OURS = ("pydantic_ai.", "fairlead.")
"""The modules of toolsets that leave a call as it is."""


def _mark(run: PydanticAIRun) -> str:
    """The key in a tool's metadata of the name that it has beneath a user's toolset. Others may have renamed it."""
    return f"fairlead_{id(run)}"


@dataclass
class OuterCall:
    """A call on its way through toolsets of the user."""

    name: str
    """The name by which the model has called the tool."""
    inner_name: str
    """The name of that tool beneath the user's toolset."""
    calls: int = 0
    """How many calls have reached a tool."""


@dataclass
class GovernedTools(WrapperToolset[Any]):
    """All tools of an agent. It judges the calls that no toolset beneath it judges."""

    run: PydanticAIRun
    inner_names: dict[str, str] = field(default_factory=dict)
    """The tools that are judged beneath a toolset of the user, with their names there."""

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools, mark = dict(await self.wrapped.get_tools(ctx)), _mark(self.run)
        for name, tool in tools.items():
            metadata = tool.tool_def.metadata
            if metadata is None or mark not in metadata:
                self.inner_names.pop(name, None)
                continue
            self.inner_names[name] = metadata[mark]
            rest = {key: value for key, value in metadata.items() if key != mark}
            tools[name] = replace(tool, tool_def=replace(tool.tool_def, metadata=rest or None))
        self.run.governed.update({name: tool.tool_def for name, tool in tools.items()})
        return tools

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        def call(args: dict[str, Any]) -> Any:
            return self.wrapped.call_tool(name, args, ctx, tool)

        if name not in self.inner_names:
            return await self.run.call_tool(name, tool_args, ctx, tool, call)
        outer_calls, call_id = self.run.outer_calls, ctx.tool_call_id or ""
        outer = outer_calls[call_id] = OuterCall(name, self.inner_names[name])
        try:
            result = await call(tool_args)
        except SkipToolExecution as skipped:
            result, outer.calls = skipped.result, 0
        finally:
            outer_calls.pop(call_id, None)
        if outer.calls:
            return result

        async def no_tool(args: dict[str, Any]) -> Any:  # by a toolset of the user, without the tool
            return result

        with without((await self.run.begin(ctx)), "before_tool", "args"):
            return await self.run.call_tool(name, tool_args, ctx, tool, no_tool)


@dataclass
class GovernedLeaf(WrapperToolset[Any]):
    """A toolset beneath one of the user. It judges the calls that reach it."""

    run: PydanticAIRun

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools = dict(await self.wrapped.get_tools(ctx))
        mark = _mark(self.run)
        for name, tool in tools.items():
            metadata = {**(tool.tool_def.metadata or {}), mark: name}
            tools[name] = replace(tool, tool_def=replace(tool.tool_def, metadata=metadata))
        return tools

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        outer = self.run.outer_calls.get(ctx.tool_call_id or "")
        shown = name
        if outer is not None:
            outer.calls += 1
            shown = outer.name if outer.inner_name == name else name
        return await self.run.call_tool(
            shown, tool_args, ctx, tool, lambda args: self.wrapped.call_tool(name, args, ctx, tool)
        )


@dataclass
class ComparedTools(WrapperToolset[Any]):
    """A toolset beneath a function that gets the judged arguments and might change them."""

    run: PydanticAIRun

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        judged = self.run.judged_args.get(ctx.tool_call_id or "")
        if judged is not None and judged != jsonable(tool_args):
            raise ArgumentsChanged(name, ctx.tool_call_id, "the function of an ApprovalRequiredToolset")
        return await self.wrapped.call_tool(name, tool_args, ctx, tool)


def jsonable(args: Any) -> Any:
    """Arguments as hooks see them."""
    return to_jsonable_python(args, bytes_mode="base64", fallback=str)


def governed(toolset: AbstractToolset[Any], run: PydanticAIRun, beneath: bool = False) -> AbstractToolset[Any]:
    """Return a toolset that judges the calls beneath each toolset of the user, or the same one if there is none.

    `beneath` says that this toolset itself is beneath one.
    """
    if isinstance(toolset, CombinedToolset):
        inner = [governed(one, run, beneath) for one in toolset.toolsets]
        if all(one is old for one, old in zip(inner, toolset.toolsets, strict=True)):
            return toolset
        return replace(toolset, toolsets=inner)
    if isinstance(toolset, DynamicToolset):
        return _governed_dynamic(toolset, run, beneath)
    if isinstance(toolset, WrapperToolset):
        return _governed_wrapper(toolset, run, beneath)
    return GovernedLeaf(toolset, run) if beneath else toolset


def _governed_wrapper(toolset: WrapperToolset[Any], run: PydanticAIRun, beneath: bool) -> AbstractToolset[Any]:
    is_ours = type(toolset).__module__.startswith(_OURS)
    wrapped = governed(toolset.wrapped, run, beneath or not is_ours)
    if isinstance(toolset, ApprovalRequiredToolset) and not beneath:
        wrapped, run.compares = ComparedTools(wrapped, run), True
    if wrapped is toolset.wrapped:
        return toolset
    changed = copy(toolset)  # and not `replace`: its class may have a constructor of its own
    for name, value in vars(toolset).items():  # it may have the toolset under another name, too
        if value is toolset.wrapped:
            setattr(changed, name, wrapped)
        elif not is_ours:
            setattr(changed, name, _governed_value(value, run))
    return changed


def _governed_value(value: Any, run: PydanticAIRun) -> Any:
    """An attribute of a toolset of the user, with toolsets in it governed. It may be a list or a dict of some."""
    if isinstance(value, AbstractToolset):
        return governed(value, run, beneath=True)
    if type(value) is dict and any(isinstance(one, AbstractToolset) for one in value.values()):
        return {key: _governed_value(one, run) for key, one in value.items()}
    if type(value) in (list, tuple) and any(isinstance(one, AbstractToolset) for one in value):
        return type(value)(_governed_value(one, run) for one in value)
    return value


def _governed_dynamic(toolset: DynamicToolset[Any], run: PydanticAIRun, beneath: bool) -> DynamicToolset[Any]:
    """A function that makes a toolset: what it makes is governed, and the same result gives the same toolset."""
    make: Callable[[RunContext[Any]], Any] = toolset.toolset_func
    last: list[Any] = [None, None]

    async def made(ctx: RunContext[Any]) -> AbstractToolset[Any] | None:
        result = make(ctx)
        result = await result if hasattr(result, "__await__") else result
        if result is not None and last[0] is not result:
            last[:] = result, governed(result, run, beneath)
        return None if result is None else last[1]

    return DynamicToolset(made, per_run_step=toolset.per_run_step, id=toolset.id)
