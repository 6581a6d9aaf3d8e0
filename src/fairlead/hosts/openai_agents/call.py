"""Tool calls of the OpenAI Agents SDK: judged when the model has asked for them, run when the SDK runs them."""

from __future__ import annotations

import inspect
import json
from asyncio import CancelledError
from contextlib import suppress
from contextvars import ContextVar
from time import monotonic
from typing import Any

import agents.tool as sdk

from ...approvals import Approval
from ...decision import Decision
from ...errors import FairleadError, HookAborted
from ...session import new_id
from ..tool_call import STOPPED, Called
from ..turn import Turn
from ..work import Work
from .messages import arguments_of, readable

FAILED = ("An error occurred while running the tool. ", "An error occurred while parsing tool arguments. ")
"""How the SDK begins what it tells the model of a tool that raised, where it does not tell us of it."""
TELLS = hasattr(sdk, "maybe_invoke_function_tool_failure_error_function")
"""Whether it does. It can since 0.10.4."""
_PAUSE = object()
UNASKED = "nobody has approved it"

RUN: ContextVar[Any] = ContextVar("fairlead_openai_agents_run", default=None)
"""The run that is under hooks, here and now."""
CALL: ContextVar[Call | None] = ContextVar("fairlead_openai_agents_call", default=None)
"""The call that is at work: an agent that runs inside of it is a subagent."""


def current() -> Any:
    run = RUN.get()
    if run is None:
        raise FairleadError("this agent belongs under hooks: run it with the Fairlead(hooks) that it was made for")
    return run


class Refused(Exception):
    """A subagent may not start."""


async def asks_for_approval(setting: Any, context: Any, args: dict[str, Any], call_id: str) -> bool:
    """What a tool's own `needs_approval` says."""
    if callable(setting):
        setting = setting(context, args, call_id)
        if inspect.isawaitable(setting):
            setting = await setting
    return bool(setting)


class Call:
    """A call on its way: it is judged when the model has asked for it, and run when the SDK runs it."""

    def __init__(
        self, turn: Turn, tool: Any, call_id: str, arguments: str, proposed: Any = "allow", *, put: bool = False
    ) -> None:
        self.tool, self.raw, self.call_id = tool, arguments, call_id
        self.given = arguments_of(arguments)
        self.turn = turn
        self.asking: Decision[Any] | None = None  # the question
        self.waiting: str | None = None  # for somebody's answer ("ask"), or to be run ("run")
        self.args = self.given
        self.called: Called | None = None
        self.noted: BaseException | None = None  # what it raised, of which the SDK makes a text
        self.text: Any = None  # that text
        self.refused: str | None = None
        self.held = self.began = self.running = False  # held: its subagent waits for somebody's answer
        self.put = put  # a human was asked about this very call, and not only about one with its id
        self.told = turn.tool(
            tool.name, self.given, call_id, self._ready, proposed=proposed, ask=self._ask,
            read=readable, **_about(tool),
        )  # fmt: skip
        self.work: Work[Called] | None = None  # none as long as it is free to run

    def _ask(self, decision: Decision[Any] | None) -> Any:
        self.waiting, self.asking = "ask", decision
        return _PAUSE

    def _ready(self, args: dict[str, Any]) -> Any:
        self.waiting, self.args = "run", args
        return _PAUSE

    async def judge(self) -> None:
        """Begin, until it may run, is over, or somebody has to be asked."""
        left = await self.told.opened()
        if left is None and self.told.free:
            self._ready(self.told.args)
        else:
            self.work = self.told.finish() if left is None else self.told.work(left)
            await self.go()

    async def go(self, value: Any = None, error: BaseException | None = None) -> None:
        """Go on, until it must wait or is over."""
        if self.work is None:  # it was free, but somebody listens by now
            self.work = self.told.finish()
            await self.go()
        self.waiting = None
        while True:
            try:
                wanted = self.work.send(value) if error is None else self.work.throw(error)
            except StopIteration as end:
                self.called = end.value
                return
            value = error = None
            try:
                if isinstance(wanted, tuple):
                    value = await wanted[0].dispatch(wanted[1])
                elif (value := wanted()) is _PAUSE:
                    return
                elif inspect.isawaitable(value):
                    value = await value
            except BaseException as raised:
                error = raised

    async def abandon(self) -> None:
        """It will not run."""
        self.waiting = None
        if self.listened_to:
            with suppress(CancelledError):
                await self.go(error=CancelledError())
        else:
            self.work = self.told.finish()
            self.work.close()  # nobody hears of it, also not later
        self.called = Called("aborted", STOPPED, True, True)

    @property
    def listened_to(self) -> bool:
        """Whether somebody wants to hear what comes of it."""
        return self.work is not None or not self.told.free

    async def run(self, context: Any) -> Any:
        if self.waiting == "ask":
            await self.go(Approval("allow") if self._approved(context) else Approval("deny", None, UNASKED))
        if self.waiting == "run" and self.turn.over and not self.began:
            await self.abandon()
        while self.waiting == "run":
            self.began = True
            await self._run(context)
            if self.held:
                return self.text
        called = self.called or Called()
        if called.replaced:
            return called.text
        return self.text if called.error is not None and self.text is not None else called.result()

    def _approved(self, context: Any) -> bool:
        """Whether somebody has approved this call, or all of its tool. Another call may have had its id."""
        if not self.put and context.is_tool_approved(self.tool.name, new_id("call")) is not True:
            return False
        return context.is_tool_approved(self.tool.name, self.call_id) is True

    async def _run(self, context: Any) -> None:
        self.noted = self.text = self.refused = None
        self.held = False
        inside, self.told.began = CALL.set(self), monotonic() if self.work is None else None
        try:
            raw = self.raw if self.args == self.given else json.dumps(self.args)
            output = await _noting(self.tool, self)(context, raw)
        except BaseException as error:
            CALL.reset(inside)
            await self._came(None, self.noted or error)
            return
        CALL.reset(inside)
        if not TELLS and isinstance(output, str) and output.startswith(FAILED):
            self.noted = self.noted or RuntimeError(output)
        if self.refused is not None and output == self.refused:  # else it has more to say, which hooks should see
            self.noted = self.noted or Refused(self.refused)
        self.text = output
        if not self.held:
            await self._came(output, self.noted)

    async def _came(self, output: Any, error: BaseException | None) -> None:
        """The tool has given something, or raised. An abort, in a subagent or wherever, fails this request, too."""
        if self.listened_to or isinstance(error, HookAborted):
            await (self.go(output) if error is None else self.go(error=error))
            return
        self.waiting = None
        if error is not None and not isinstance(error, Exception):
            raise error
        self.called = self.told.passed(output, error)


def _noting(tool: Any, call: Call) -> Any:
    """A tool's own function, which tells the call of what it raises before the SDK makes a text of that."""
    bind = getattr(tool.on_invoke_tool, "__agents_bind_function_tool__", None)
    if not TELLS or bind is None:
        return tool.on_invoke_tool

    async def failed(context: Any, error: Exception) -> Any:
        call.noted = call.noted or error
        return await sdk.maybe_invoke_function_tool_failure_error_function(
            function_tool=tool, context=context, error=error
        )

    noting = object.__new__(type(tool))
    noting.__dict__.update(tool.__dict__)
    return bind(sdk.set_function_tool_failure_error_function(noting, failed))


def _about(tool: Any) -> dict[str, Any]:
    """What the SDK knows of what a tool does."""
    if getattr(tool, "_is_agent_tool", False):
        return {"kind": "agent"}
    origin = getattr(tool, "_tool_origin", None)
    return {"kind": "mcp"} if origin is not None and getattr(origin.type, "value", None) == "mcp" else {}
