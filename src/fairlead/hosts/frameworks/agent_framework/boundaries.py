"""Places of the framework that no middleware reaches: a tool's own call, a workflow's steps, and the chat client.

Importing the adapter wraps methods of the framework. For programs without a `Fairlead`, they do what they did.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import agent_framework
from agent_framework import (
    AgentMiddlewareLayer,
    BaseAgent,
    ChatMiddlewareLayer,
    Executor,
    FunctionInvocationLayer,
    FunctionTool,
)

from ....errors import FairleadError
from ....session import new_id
from . import messages

if TYPE_CHECKING:
    from ..tool_call import ToolCall

CallInside = Callable[[Any, Any, dict[str, Any]], Awaitable[Any]]
"""Judges a call that a tool makes by itself. It takes the other tool, its `invoke`, and the options of the call."""

JUDGED: ContextVar[JudgedRun | None] = ContextVar("fairlead_agent_framework_judged", default=None)
"""The run of a tool that hooks have just permitted."""
WORKFLOW: ContextVar[str | None] = ContextVar("fairlead_agent_framework_workflow", default=None)
"""The session of the workflow whose step runs here. All agents of a workflow share one."""
ADD = "_fairlead_add"
"""The attribute of a run's context that holds the function with which `Fairlead` adds its middleware to the run."""
_sessions: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


class JudgedRun:
    """One run of one tool, with the arguments that hooks have judged."""

    def __init__(self, call: ToolCall, function: Any, call_inside: CallInside) -> None:
        self.call, self.function, self.call_inside, self.used = call, function, call_inside, False

    def check(self, args: Any) -> None:
        """Raise `ArgumentsChanged` if the tool is about to run with other arguments, or a second time."""
        self.call.check(messages.arguments(args or {}), "middleware of a context provider")
        if self.used:
            about = self.call.about
            raise FairleadError(
                f"tool {about['tool']!r} (call {about['call_id']}) did not run again: middleware of a context provider "
                "repeats a call that hooks have judged once; let a hook at after_tool retry it"
            )
        self.used = True


def _check_tool(invoke: Any) -> Any:
    @wraps(invoke)
    async def checked(self: Any, **options: Any) -> Any:
        judged = JUDGED.get()
        if judged is None:
            return await invoke(self, **options)
        if judged.function is not self or options.get("context") is None:
            return await judged.call_inside(self, invoke, options)
        judged.check(options.get("arguments"))
        return await invoke(self, **options)

    return checked


def _add_last(handler: Any) -> Any:
    """Add our middleware to a run after all agent middleware, which could remove it, or add other middleware to it."""

    @wraps(handler)
    def adding(self: Any, context: Any) -> Any:
        if (add := getattr(context, ADD, None)) is not None:
            add()
        return handler(self, context)

    return adding


def _in_executor(execute: Any) -> Any:
    @wraps(execute)
    async def executed(
        self: Any, message: Any, sources: Any, state: Any, runner_context: Any, *rest: Any, **options: Any
    ) -> Any:
        with _workflow(runner_context):
            return await execute(self, message, sources, state, runner_context, *rest, **options)

    return executed


def _in_function(execute: Any) -> Any:
    @wraps(execute)
    async def executed(self: Any, *args: Any, **options: Any) -> Any:
        with _workflow(self):
            return await execute(self, *args, **options)

    return executed


@contextmanager
def _workflow(owner: Any) -> Iterator[None]:
    """Run a part of a workflow in the workflow's session."""
    token = WORKFLOW.set(WORKFLOW.get() or _sessions.setdefault(owner, new_id("workflow")))
    try:
        yield
    finally:
        WORKFLOW.reset(token)


IsOurs = Callable[[Any], bool]


def _refuse_in(places: Iterable[Any], is_ours: IsOurs, what: str) -> None:
    for place in places:
        if any(map(is_ours, place if isinstance(place, (list, tuple)) else (place,))):
            raise FairleadError(
                f"{what} never calls Fairlead, which is a middleware of agents; "
                "write Agent(client=client, middleware=[Fairlead(hooks)])"
            )


def _refusing_client(init: Any, is_ours: IsOurs) -> Any:
    @wraps(init)
    def refusing(self: Any, *args: Any, middleware: Any = None, **options: Any) -> None:
        _refuse_in([middleware], is_ours, "a chat client")
        init(self, *args, middleware=middleware, **options)

    return refusing


def _checking_request(get_response: Any, is_ours: IsOurs, is_last: IsOurs) -> Any:
    """Refuse a `Fairlead` among a client's middleware, and put our chat middleware after that of context providers."""

    @wraps(get_response)
    def checking(self: Any, *args: Any, **options: Any) -> Any:
        own = [getattr(self, name, None) for name in ("chat_middleware", "function_middleware")]
        passed, kwargs = options.get("middleware"), options.get("client_kwargs") or {}
        _refuse_in([*own, passed, kwargs.get("middleware")], is_ours, "a chat client")
        if isinstance(passed, list):
            options["middleware"] = sorted(passed, key=is_last)
        if isinstance(kwargs.get("middleware"), list):
            options["client_kwargs"] = {**kwargs, "middleware": sorted(kwargs["middleware"], key=is_last)}
        return get_response(self, *args, **options)

    return checking


def _refusing_agent(init: Any, is_ours: IsOurs) -> Any:
    @wraps(init)
    def refusing(self: Any, *args: Any, middleware: Any = None, **options: Any) -> None:
        if not isinstance(self, AgentMiddlewareLayer):
            _refuse_in([middleware], is_ours, f"a {type(self).__name__}, which has no AgentMiddlewareLayer,")
        init(self, *args, middleware=middleware, **options)

    return refusing


def wrap(is_ours: IsOurs, is_last: IsOurs) -> None:
    """Wrap the framework's methods, once. `is_ours` recognises a `Fairlead`, and `is_last` its chat middleware."""
    agent: Any = AgentMiddlewareLayer
    agent._middleware_handler = _add_last(agent._middleware_handler)
    tool: Any = FunctionTool
    tool.invoke = _check_tool(tool.invoke)
    executor: Any = Executor
    executor.execute = _in_executor(executor.execute)
    if (functional := getattr(agent_framework, "FunctionalWorkflow", None)) is not None:  # not in the oldest versions
        functional._execute = _in_function(functional._execute)
    base: Any = BaseAgent
    base.__init__ = _refusing_agent(base.__init__, is_ours)
    layers: list[Any] = [ChatMiddlewareLayer, FunctionInvocationLayer]
    for layer in layers:
        layer.__init__ = _refusing_client(layer.__init__, is_ours)
        layer.get_response = _checking_request(layer.get_response, is_ours, is_last)
