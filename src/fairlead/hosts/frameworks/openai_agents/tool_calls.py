"""Tool calls of the OpenAI Agents SDK: judged when the model requests them, run when the SDK runs them."""

from __future__ import annotations

import inspect
import json
from asyncio import CancelledError
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import get_ident
from time import monotonic
from typing import Any

import agents.tool as sdk

from ....approvals import Approval
from ....decision import Decision
from ....errors import FairleadError, HookAborted
from ....session import new_id
from ..adapter import MCP_SERVER
from ..flow import Flow, Pause, run_flow
from ..tool_call import STOPPED, ToolResult
from ..turn import Turn
from .messages import arguments_of, readable

FAILED = ("An error occurred while running the tool. ", "An error occurred while parsing tool arguments. ")
"""How the SDK's own text about an exception of a tool begins. It says no more than the exception."""
REPORTS_ERRORS = hasattr(sdk, "maybe_invoke_function_tool_failure_error_function")
"""Whether this version reports the exceptions of tools. It does since 0.10.4."""
_PAUSE = Pause()
UNAPPROVED = "no human has approved it"

RUN: ContextVar[Any] = ContextVar("fairlead_openai_agents_run", default=None)
"""The run that is active here."""
CALL: ContextVar[OpenAIToolCall | None] = ContextVar("fairlead_openai_agents_call", default=None)
"""The tool call that runs here: an agent that starts inside of it is a subagent."""
_running: dict[object, tuple[Any, OpenAIToolCall | None, int]] = {}  # runs whose tools run now: run, call and thread


@contextmanager
def inside_tool(call: OpenAIToolCall | None = None) -> Iterator[None]:
    """Mark the code of a tool, so that an agent that it runs is found to be inside of it, also in a thread."""
    me, inside = object(), CALL.set(call)
    _running[me] = RUN.get(), call, get_ident()
    try:
        yield
    finally:
        del _running[me]
        CALL.reset(inside)


def run_of_thread() -> tuple[Any, OpenAIToolCall | None] | None:
    """Find the run that this thread belongs to, though a thread of a pool has no context variables.

    While tools run, a thread that runs none of them is taken for theirs. None if no tool runs. The run is a `Fairlead`
    if several of its tools run: then it is unknown whose subagent this is. Raises if it is unknown whose hooks apply.
    """
    here = get_ident()
    running = list(_running.values())
    if not running or any(thread == here for _, _, thread in running):
        return None
    fairleads = {id(run.fairlead): run.fairlead for run, _, _ in running}
    if len(fairleads) > 1:
        raise FairleadError(
            "this thread has no context, and tools of several Fairleads run: start the thread with a copy of the "
            "context (contextvars.copy_context().run), or run the agent with the Fairlead that is meant"
        )
    if len(running) == 1:
        return running[0][0], running[0][1]
    return next(iter(fairleads.values())), None


def current() -> Any:
    run = RUN.get()
    if run is None:
        raise FairleadError("this agent runs under hooks only: run it with the Fairlead(hooks) that made it")
    return run


class CallRefused(Exception):
    """A subagent may not start."""


async def asks_for_approval(setting: Any, context: Any, args: dict[str, Any], call_id: str) -> bool:
    """What a tool's own `needs_approval` says."""
    if callable(setting):
        setting = setting(context, args, call_id)
        if inspect.isawaitable(setting):
            setting = await setting
    return bool(setting)


class OpenAIToolCall:
    """A tool call: hooks judge it when the model requests it, and the SDK runs it later."""

    def __init__(
        self, turn: Turn, tool: Any, call_id: str, arguments: str, proposed: Any = "allow", *, shown: bool = False
    ) -> None:
        self.tool, self.raw, self.call_id = tool, arguments, call_id
        self.original = arguments_of(arguments)
        self.turn = turn
        self.question: Decision[Any] | None = None  # that a human is asked
        self.waiting: str | None = None  # for a human's answer ("ask"), or to be run ("run")
        self.args = self.original
        self.result: ToolResult | None = None
        self.raised: BaseException | None = None  # by the tool; the SDK makes a text of it
        self.text: Any = None  # that text
        self.refusal: str | None = None  # of the subagent that the tool starts
        self.held = self.began = self.running = False  # held: its subagent waits for a human's answer
        self.shown = shown  # a human was asked about this very call, and not only about another with its id
        self.tool_call = turn.tool(
            tool.name, self.original, call_id, self._ready, proposed=proposed, ask=self._ask,
            read=readable, **_about(tool),
        )  # fmt: skip
        self.flow: Flow[ToolResult] | None = None  # None as long as the SDK may run it natively

    def _ask(self, decision: Decision[Any] | None) -> Any:
        self.waiting, self.question = "ask", decision
        return _PAUSE

    def _ready(self, args: dict[str, Any]) -> Any:
        self.waiting, self.args = "run", args
        return _PAUSE

    async def judge(self) -> None:
        """Have hooks judge the call, until it may run, is over, or waits for a human."""
        rest = await self.tool_call.judge_fast()
        if rest is None and self.tool_call.runs_natively:
            self._ready(self.tool_call.args)
        else:
            self.flow = self.tool_call.finish() if rest is None else self.tool_call.perform(rest)
            await self.resume()

    async def resume(self, value: Any = None, error: BaseException | None = None) -> None:
        """Continue the call, until it must wait or is over."""
        if self.flow is None:  # it ran natively, but a hook subscribes to the result by now
            self.flow = self.tool_call.finish()
            await self.resume()
        self.waiting = None
        result: ToolResult | Pause = await run_flow(self.flow, value, error)
        if not isinstance(result, Pause):
            self.result = result

    async def abandon(self) -> None:
        """End a call that will not run."""
        self.waiting = None
        if self.has_subscriber:
            with suppress(CancelledError):
                await self.resume(error=CancelledError())
        else:
            self.flow = self.tool_call.finish()
            self.flow.close()  # no hook sees it, also not later
        self.result = ToolResult("aborted", STOPPED, True, True)

    @property
    def has_subscriber(self) -> bool:
        """Whether a hook subscribes to the result."""
        return self.flow is not None or not self.tool_call.runs_natively

    async def run(self, context: Any) -> Any:
        if self.waiting == "ask":
            await self.resume(Approval("allow") if self._approved(context) else Approval("deny", None, UNAPPROVED))
        if self.waiting == "run" and self.turn.over and not self.began:
            await self.abandon()
        while self.waiting == "run":
            self.began = True
            await self._run(context)
            if self.held:
                return self.text
        result = self.result or ToolResult()
        if result.replaced:
            return result.text
        return self.text if result.error is not None and self.text is not None else result.result()

    def _approved(self, context: Any) -> bool:
        """Whether a human has approved this call, or all of its tool. Another call may have had its id."""
        if not self.shown and context.is_tool_approved(self.tool.name, new_id("call")) is not True:
            return False
        return context.is_tool_approved(self.tool.name, self.call_id) is True

    async def _run(self, context: Any) -> None:
        self.raised = self.text = self.refusal = self.tool_call.failure_text = None
        self.held = False
        self.tool_call.began = monotonic() if self.flow is None else None
        try:
            raw = self.raw if self.args == self.original else json.dumps(self.args)
            with inside_tool(self):
                output = await _invoke(self.tool, self, context, raw)
        except BaseException as error:
            await self._finish(None, self.raised or error)
            return
        if not REPORTS_ERRORS and isinstance(output, str) and output.startswith(FAILED):
            self.raised = self.raised or RuntimeError(output)
        if self.refusal is not None and output == self.refusal:  # else it has more output, which hooks should see
            self.raised = self.raised or CallRefused(self.refusal)
        self.text = output
        if isinstance(output, str) and not output.startswith(FAILED):  # it tells the model more than the exception
            self.tool_call.failure_text = output
        if not self.held:
            await self._finish(output, self.raised)

    async def _finish(self, output: Any, error: BaseException | None) -> None:
        """Take the output of the tool, or what it raised. An abort, also of a subagent, fails this request."""
        if self.has_subscriber or isinstance(error, HookAborted):
            await (self.resume(output) if error is None else self.resume(error=error))
            return
        self.waiting = None
        if error is not None and not isinstance(error, Exception):
            raise error
        self.result = self.tool_call.record_native_end(output, error)


async def _invoke(tool: Any, call: OpenAIToolCall, context: Any, arguments: str) -> Any:
    """Call a tool's own function. Its time limit is here, so that hooks see the text that stands in for the result."""
    function = _reporting(tool, call)
    if getattr(tool, "timeout_seconds", None) is None:
        return await function(context, arguments)

    async def timed_out(context: Any, error: Any) -> Any:
        call.raised = error
        if tool.timeout_error_function is None:
            return sdk.default_tool_timeout_error_message(tool_name=tool.name, timeout_seconds=tool.timeout_seconds)
        text = tool.timeout_error_function(context, error)
        return await text if inspect.isawaitable(text) else text

    limited = object.__new__(type(tool))
    limited.__dict__.update(tool.__dict__, on_invoke_tool=function, timeout_error_function=timed_out)
    return await sdk.invoke_function_tool(function_tool=limited, context=context, arguments=arguments)


def _reporting(tool: Any, call: OpenAIToolCall) -> Any:
    """A tool's own function, which reports what it raises before the SDK makes a text of it."""
    bind = getattr(tool.on_invoke_tool, "__agents_bind_function_tool__", None)
    if not REPORTS_ERRORS or bind is None:
        return tool.on_invoke_tool

    async def failed(context: Any, error: Exception) -> Any:
        call.raised = call.raised or error
        return await sdk.maybe_invoke_function_tool_failure_error_function(
            function_tool=tool, context=context, error=error
        )

    reporting = object.__new__(type(tool))
    reporting.__dict__.update(tool.__dict__)
    return bind(sdk.set_function_tool_failure_error_function(reporting, failed))


def _about(tool: Any) -> dict[str, Any]:
    """What the SDK knows of what a tool does."""
    if getattr(tool, "_is_agent_tool", False):
        return {"kind": "agent"}
    origin = getattr(tool, "_tool_origin", None)
    if origin is None or getattr(origin.type, "value", None) != "mcp":
        return {}
    return {"server": getattr(origin, "mcp_server_name", None) or MCP_SERVER}
