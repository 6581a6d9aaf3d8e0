"""Tools of MCP servers, as `langchain-mcp-adapters` makes them.

Such a tool has interceptors inside of it, which may change a call after hooks have judged it, repeat it, or send it to
another tool of the server. The adapter puts one more innermost, where the request leaves for the server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from copy import copy
from inspect import getclosurevars
from types import CellType, FunctionType
from typing import Any, Protocol, TypeVar

from langchain_core.tools import BaseTool

from ..adapter import MCP_SERVER

_INTERCEPTORS = "tool_interceptors"
T = TypeVar("T", bound=BaseTool)


class McpRequest(Protocol):
    """A request of `langchain-mcp-adapters` to a server."""

    name: str
    args: dict[str, Any]


Interceptor = Callable[[McpRequest, Callable[[McpRequest], Awaitable[Any]]], Awaitable[Any]]


def server_of(tool: BaseTool | None) -> dict[str, Any]:
    """The server of a tool, and the tool's name there. Empty if it is no tool of `langchain-mcp-adapters`.

    Only the function that calls the server knows them.
    """
    function = _calling(tool)
    if function is None:
        return {}
    known = getclosurevars(function).nonlocals
    server, remote = known.get("server_name"), getattr(known.get("tool"), "name", None)
    return {"server": server if isinstance(server, str) else MCP_SERVER, "remote": remote}


def with_innermost(tool: T, innermost: Interceptor) -> T:
    """A copy of a tool that has one more interceptor inside of all others. Without others, it is the tool itself."""
    function = _calling(tool)
    if function is None or function.__closure__ is None:
        return tool
    cells = dict(zip(function.__code__.co_freevars, function.__closure__, strict=True))
    interceptors = cells[_INTERCEPTORS].cell_contents if _INTERCEPTORS in cells else None
    if not interceptors:
        return tool
    cells[_INTERCEPTORS] = CellType([*interceptors, innermost])
    changed = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, tuple(cells.values())
    )
    changed.__kwdefaults__, changed.__annotations__ = function.__kwdefaults__, function.__annotations__
    governed = copy(tool)
    object.__setattr__(governed, "coroutine", changed)
    return governed


def remote_call(tool: BaseTool, request: McpRequest, call_id: str | None) -> dict[str, Any]:
    """The tool call that a request makes, with the name that LangChain has for the tool of this name at the server."""
    remote = server_of(tool).get("remote")
    name = tool.name
    if isinstance(remote, str) and request.name != remote:
        name = f"{name.removesuffix(remote)}{request.name}" if name.endswith(remote) else request.name
    return {"name": name, "args": dict(request.args), "id": call_id}


def content_of_result(result: Any) -> Any:
    """What the model reads of a server's result."""
    blocks: Iterable[Any] = getattr(result, "content", None) or ()
    if isinstance(blocks, str):
        return blocks
    return [one.model_dump(mode="json", exclude_none=True) if hasattr(one, "model_dump") else one for one in blocks]


def _calling(tool: BaseTool | None) -> FunctionType | None:
    """The function of a tool that calls its server."""
    function = getattr(tool, "coroutine", None)
    is_theirs = str(getattr(function, "__module__", "")).startswith("langchain_mcp_adapters.")
    return function if is_theirs and isinstance(function, FunctionType) else None
