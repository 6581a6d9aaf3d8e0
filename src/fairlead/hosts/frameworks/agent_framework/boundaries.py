"""Places of the framework that no middleware reaches: a tool's own call, a workflow's steps, and the chat client.

Importing the adapter wraps three methods of the framework. For programs without a `Fairlead`, they do what they did.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from agent_framework import ChatMiddlewareLayer, Executor, FunctionInvocationLayer, FunctionTool

from ....errors import ArgumentsChanged, FairleadError
from ....session import new_id
from . import messages

if TYPE_CHECKING:
    from ..tool_call import ToolCall

JUDGED: ContextVar[JudgedRun | None] = ContextVar("fairlead_agent_framework_judged", default=None)
"""The run of a tool that hooks have just permitted."""
WORKFLOW: ContextVar[str | None] = ContextVar("fairlead_agent_framework_workflow", default=None)
"""The session of the workflow whose step runs here. All agents of a workflow share one."""
_sessions: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


class JudgedRun:
    """One run of one tool, with the arguments that hooks have judged."""

    def __init__(self, call: ToolCall, function: Any, args: dict[str, Any]) -> None:
        self.call, self.function, self.args, self.used = call, function, args, False

    def check(self, args: Any) -> None:
        """Raise `ArgumentsChanged` if the tool is about to run with other arguments, or a second time."""
        about = self.call.about
        if messages.arguments(args or {}) != self.args:
            raise ArgumentsChanged(about["tool"], about["call_id"], "middleware of a context provider")
        if self.used:
            raise FairleadError(
                f"tool {about['tool']!r} (call {about['call_id']}) did not run again: middleware of a context provider "
                "repeats a call that hooks have judged once; let a hook at after_tool retry it"
            )
        self.used = True


def _check_tool(invoke: Any) -> Any:
    @wraps(invoke)
    async def checked(self: Any, *, arguments: Any = None, **options: Any) -> Any:
        judged = JUDGED.get()
        if judged is not None and judged.function is self and options.get("context") is not None:
            judged.check(arguments)
        return await invoke(self, arguments=arguments, **options)

    return checked


def _in_workflow(execute: Any) -> Any:
    @wraps(execute)
    async def executed(
        self: Any, message: Any, sources: Any, state: Any, runner_context: Any, *rest: Any, **options: Any
    ) -> Any:
        outer = WORKFLOW.get()
        token = WORKFLOW.set(outer or _sessions.setdefault(runner_context, new_id("workflow")))
        try:
            return await execute(self, message, sources, state, runner_context, *rest, **options)
        finally:
            WORKFLOW.reset(token)

    return executed


def _refuse_in_client(init: Any, is_ours: Callable[[Any], bool]) -> Any:
    @wraps(init)
    def refusing(self: Any, *args: Any, middleware: Any = None, **options: Any) -> None:
        if any(map(is_ours, middleware if isinstance(middleware, (list, tuple)) else (middleware,))):
            raise FairleadError(
                "a chat client never calls Fairlead, which is a middleware of agents; "
                "write Agent(client=client, middleware=[Fairlead(hooks)])"
            )
        init(self, *args, middleware=middleware, **options)

    return refusing


def wrap(is_ours: Callable[[Any], bool]) -> None:
    """Wrap the framework's methods, once. `is_ours` recognises a `Fairlead`."""
    tool, executor = FunctionTool, Executor
    tool.invoke = _check_tool(tool.invoke)  # type: ignore[method-assign]
    executor.execute = _in_workflow(executor.execute)  # type: ignore[method-assign]
    for layer in (ChatMiddlewareLayer, FunctionInvocationLayer):
        layer.__init__ = _refuse_in_client(layer.__init__, is_ours)  # type: ignore[method-assign]
