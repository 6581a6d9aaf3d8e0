"""The peers: each runs n no-op hooks the way its own agent loop would, through its own machinery.

A peer that is not installed, or whose internals have moved, is left out by name and never in silence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from .timing import Contestant, awaiting, calling

SOURCE = "{prefix}def hook_{i}({params}):\n    return {returns}\n"


def functions(n: int, *, is_async: bool, params: str = "step", returns: str = "None") -> list[Callable[..., Any]]:
    """n distinct functions: one function called n times would flatter every cache there is."""
    made: dict[str, Any] = {}
    for i in range(n):
        exec(SOURCE.format(prefix="async " if is_async else "", i=i, params=params, returns=returns), made)
    return [made[f"hook_{i}"] for i in range(n)]


def plain_sync(n: int, step: Any) -> Contestant:
    hooks = functions(n, is_async=False)

    def once(step: Any) -> None:
        for hook in hooks:
            hook(step)

    return calling("plain loop, sync", once, step)


def plain_async(n: int, step: Any) -> Contestant:
    hooks = functions(n, is_async=True)

    async def once(step: Any) -> None:
        for hook in hooks:
            await hook(step)

    return awaiting("plain loop, await", once, step)


def asyncio_timeout(n: int, step: Any) -> Contestant:
    hooks = functions(n, is_async=True)

    async def once(step: Any) -> None:
        for hook in hooks:
            async with asyncio.timeout(5):
                await hook(step)

    return awaiting("asyncio.timeout around each", once, step)


def pluggy(n: int, step: Any) -> Contestant:
    import pluggy as p

    spec, impl = p.HookspecMarker("bench"), p.HookimplMarker("bench")

    class Spec:
        @spec
        def before_tool(self, step: Any) -> None: ...

    manager = p.PluginManager("bench")
    manager.add_hookspecs(Spec)
    for i, fn in enumerate(functions(n, is_async=False, params="self, step")):
        plugin = type(f"Plugin{i}", (), {"before_tool": impl(fn)})
        manager.register(plugin())
    call = manager.hook.before_tool
    return calling("pluggy (sync)", lambda step: call(step=step), step)


def blinker(n: int, step: Any) -> Contestant:
    from blinker import Signal

    signal = Signal()
    hooks = functions(n, is_async=True, params="sender, **data")
    for hook in hooks:
        signal.connect(hook, weak=False)
    return awaiting("blinker send_async", lambda step: signal.send_async("agent", step=step), step)


def aiosignal(n: int, step: Any) -> Contestant:
    from aiosignal import Signal

    signal: Any = Signal(object())
    signal.extend(functions(n, is_async=True))
    signal.freeze()
    return awaiting("aiosignal", signal.send, step)


def _pydantic_ai(n: int, timeout: float | None) -> Callable[[Any], Any]:
    from pydantic_ai.capabilities import Hooks
    from pydantic_ai.messages import ToolCallPart

    hooks: Any = Hooks()
    params, options = "ctx, *, call, tool_def, args", {} if timeout is None else {"timeout": timeout}
    for hook in functions(n, is_async=True, params=params, returns="args"):
        hooks.on.before_tool_execute(**options)(hook)
    context, call, args = object(), ToolCallPart("bash", {}), {"command": "git status"}
    return lambda step: hooks.before_tool_execute(context, call=call, tool_def=step, args=args)


def pydantic_ai(n: int, step: Any) -> Contestant:
    return awaiting("pydantic-ai Hooks", _pydantic_ai(n, None), step)


def pydantic_ai_timeout(n: int, step: Any) -> Contestant:
    return awaiting("pydantic-ai Hooks, timeout=5", _pydantic_ai(n, 5), step)


def strands(n: int, step: Any) -> Contestant:
    from strands.hooks import BeforeToolCallEvent, HookRegistry

    registry = HookRegistry()
    for hook in functions(n, is_async=True, params="event"):
        registry.add_callback(BeforeToolCallEvent, hook)
    use: Any = {"name": "bash", "toolUseId": "1", "input": {}}
    event = BeforeToolCallEvent(agent=None, selected_tool=None, tool_use=use, invocation_state={})  # type: ignore[arg-type]
    return awaiting("strands hooks", registry.invoke_callbacks_async, event)


def google_adk(n: int, step: Any) -> Contestant:
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.plugins.plugin_manager import PluginManager

    hooks = functions(n, is_async=True, params="self, *, tool, tool_args, tool_context")
    plugins = [
        type(f"Plugin{i}", (BasePlugin,), {"before_tool_callback": hook})(name=f"p{i}") for i, hook in enumerate(hooks)
    ]
    manager = PluginManager(plugins)
    tool: Any = object()
    run = manager.run_before_tool_callback
    return awaiting("google-adk plugins", lambda tool: run(tool=tool, tool_args={}, tool_context=tool), tool)


def agent_framework(n: int, step: Any) -> Contestant:
    from agent_framework import FunctionInvocationContext, FunctionMiddleware, tool
    from agent_framework._middleware import FunctionMiddlewarePipeline

    source = "async def process(self, context, call_next):\n    await call_next()\n"

    def middleware(i: int) -> Any:
        made: dict[str, Any] = {}
        exec(source, made)
        return type(f"Middleware{i}", (FunctionMiddleware,), {"process": made["process"]})()

    pipeline = FunctionMiddlewarePipeline(*[middleware(i) for i in range(n)])

    @tool
    def bash(command: str) -> str:
        """Run a command."""
        return ""

    async def done(context: Any) -> None: ...

    def once(step: Any) -> Any:
        context = FunctionInvocationContext(function=bash, arguments={})
        return pipeline.execute(context, done)

    return awaiting("agent-framework middleware", once, step)


PEERS: list[Callable[[int, Any], Contestant]] = [
    asyncio_timeout, pluggy, blinker, aiosignal, pydantic_ai, pydantic_ai_timeout, strands, google_adk, agent_framework
]  # fmt: skip
