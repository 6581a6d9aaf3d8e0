"""pydantic-ai: agents that run under hooks, by one capability.

`Fairlead` is what a user adds. Each run of an agent has a `Run` of its own, and each request to the model goes
through a `JudgedModel`, which stands right before the real one: nobody comes after it who could change what was judged.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import UUID

from pydantic_ai import exceptions
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_ai.tools import DeferredToolRequests, RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
from pydantic_core import to_json, to_jsonable_python

from ...approvals import Approval
from ...decision import Decision
from ...errors import FairleadError
from ...frozen import thaw
from ...registry import Hooks
from ..framework import WHOLE, Framework
from ..model import Message, arguments, as_text
from ..turn import SESSIONS, Runs, Turn
from ..work import Closes, Work, drive
from .asking import JudgedModel, Request
from .messages import (
    NoOutput,
    as_output,
    is_final,
    meant,
    output_text,
    outputs,
    plain_part,
    prompt_in,
    readable,
    said_again,
    same,
    shown,
    spoken,
    system_prompt,
    text_of,
    told,
    with_text,
)

__all__ = ["FRAMEWORK", "Fairlead", "NoOutput"]

FRAMEWORK = Framework(
    name="pydantic_ai",
    title="Pydantic AI",
    package="pydantic-ai-slim",
    versions=">=1.101,<3",
    can=WHOLE,
    notes=(
        "Tools that a provider runs itself (native tools) are not seen.",
        "An agent whose output is no text raises NoOutput where a hook ends its turn.",
        "An agent is a subagent if it runs in a tool or an output function, under the same hooks.",
    ),
)

THROUGH = (exceptions.ApprovalRequired, exceptions.CallDeferred)
"""How pydantic-ai leaves a call to somebody else. It is not over then."""
FAILED: Any = getattr(exceptions, "ToolFailed", None)
"""How a call is said to have failed, from pydantic-ai 2 on."""
SHOWN = ("before_response", "before_output")
JUDGING = ("after_model", "before_turn_end", "before_response", "before_output")
"""Events at which a hook may still object to an answer: none of it is streamed before they are over."""

_INSIDE: ContextVar[Turn | None] = ContextVar("fairlead_pydantic_ai", default=None)
"""Whose tool is at work: an agent that runs inside of it is a subagent."""


class Fairlead(Closes, AbstractCapability[Any]):
    """Runs an agent under hooks: `Agent(model, capabilities=[Fairlead(hooks)])`.

    `models` are those that a hook may switch to, by name; other names are left to pydantic-ai. A conversation that
    goes on (`conversation_id=` or `message_history=` of `agent.run`) is one session, which ends with `aclose()`, or at
    the end of `async with`; any other run is a session of its own. `session_id` makes one session of all runs.
    """

    def __init__(
        self,
        hooks: Hooks | None = None,
        *,
        models: Mapping[str, Model | str] | None = None,
        session_id: str | None = None,
        **about: Any,
    ) -> None:
        self.runs = Runs(hooks, FRAMEWORK, asks=True, session_id=session_id, **about)
        self.models = dict(models or {})
        self.asked: OrderedDict[tuple[Any, str], tuple[Any, Any, frozenset[Any]]] = OrderedDict()
        """What humans were asked about calls: the model's arguments, those to be used, and what hooks ask."""

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")  # what other capabilities change is judged, too

    async def for_run(self, ctx: RunContext[Any]) -> AbstractCapability[Any]:
        return Run(self, ctx)

    def _closing(self) -> Work[None]:
        return self.runs.closing()


class Run(AbstractCapability[Any]):
    """One run of an agent."""

    def __init__(self, fairlead: Fairlead, ctx: RunContext[Any]) -> None:
        self.runs, self.models, self.asked = fairlead.runs, fairlead.models, fairlead.asked
        self.turn: Turn | None = None
        parent = _INSIDE.get()
        self.parent = parent if parent is not None and parent.runs.hooks is self.runs.hooks else None
        self.goes_on = bool(ctx.messages)
        self.given: tuple[Any, Any] | None = None  # what the user has said, and what a hook made of it
        self.prompt: str | None = None  # the system prompt that a hook wants
        self.failure: FairleadError | None = None  # what a hook has raised
        self.error: BaseException | None = None  # what the run has raised
        self.running = 0
        self.live: str | None = None  # the model whose answer is streamed as it comes
        self.shown: str | None = None  # the answer, as it was judged
        self.refused = self.ending = self.ended = self.stopped = False
        self.calls: dict[str, tuple[ToolCallPart, dict[str, Any]]] = {}  # what was asked for, and its valid arguments
        self.heard: set[str] = set()
        self.answered: Any = None  # the request with calls' answers that was heard last
        self.deferred: dict[str, str] = {}  # tools that pydantic-ai would not run by itself, and why
        self._beginning = asyncio.Lock()

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")

    # --- the run ----------------------------------------------------------------------------

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Callable[[], Awaitable[Any]]) -> Any:
        try:
            result = await handler()
            self._go_on()
            if self.turn is not None and not self.refused:
                if not self.ended:
                    await self._finish(self.turn, result)
                else:
                    await self._made(self.turn, result)
                    await drive(self.turn.leave())
            return result
        except BaseException as error:
            self.error = error
            if not self.running:
                await self._failed()
            raise

    @contextmanager
    def surely(self) -> Iterator[None]:
        """What hooks raise ends the run, even if another capability takes it for something to get over."""
        try:
            yield
        except FairleadError as error:
            self.failure = error
            raise

    async def begin(self, ctx: RunContext[Any], asking: ModelRequestContext | None = None) -> Turn:
        """The turn. It begins when the model or a tool is about to be asked: what the model is told is known then."""
        self._go_on()
        with self.surely():
            async with self._beginning:
                return self.turn or await self._begin(ctx, asking)

    def _go_on(self) -> None:
        if self.failure is not None:
            raise self.failure

    async def _begin(self, ctx: RunContext[Any], asking: ModelRequestContext | None) -> Turn:
        content = ctx.prompt
        if asking is not None and content is not None:  # another capability may have made something else of it
            content = prompt_in(asking.messages[-1], content)
        given = said = shown(content)
        agent = getattr(ctx.agent, "name", None) or "agent"
        if self.parent is None:
            turn = self.turn = self.runs.turn(_conversation(ctx, self.goes_on), agent=agent)
        else:
            turn, message, refused = await drive(self.parent.helper(agent, as_text(said)))
            self.turn = turn
            if refused is not None:
                self.refused, turn.over, turn.said = True, True, refused
                return turn
            if message is not None and message != as_text(said):
                given = message
        parameters = None if asking is None else asking.model_request_parameters
        prompt = system_prompt(ctx.messages if asking is None else asking.messages, parameters)
        source = "user" if ctx.prompt is not None else "continuation"
        begun = await drive(turn.begin(given, source=source, system_prompt=prompt, committed_len=len(ctx.messages)))
        if turn.session.turn_id is None:  # it was refused, and nothing of it is kept
            begun.input = said and "[refused]"
        if begun.input != said:
            self.given = (ctx.prompt, content), meant(begun.input, content)
        if begun.system_prompt != prompt:
            self.prompt = begun.system_prompt or ""
        return turn

    async def _failed(self) -> None:
        """The run has failed, or was cancelled, and no call is at work any more."""
        turn, error = self.turn, self.error
        if turn is None or error is None or self.refused:
            return
        if isinstance(error, NoOutput) and not self.ended:
            await drive(turn.end(None))
        elif not self.ended:
            if self.live is not None and isinstance(error, Exception):
                with suppress(FairleadError):
                    await drive(turn.model_failed(self.live, error))
            await drive(turn.failed(error))
        elif isinstance(error, NoOutput):
            await drive(turn.leave())
        else:  # what came after the answer has failed
            await drive(turn.failed(error))
        with suppress(FairleadError):  # what ended it is what the parent should hear of
            await self._stops(turn)

    async def _stops(self, turn: Turn) -> str | None:
        """A subagent is over, once. What it is told instead, if it is to go on."""
        if self.parent is None or self.stopped:
            return None
        self.stopped = True
        return await drive(self.parent.helper_stops(turn))

    async def _finish(self, turn: Turn, result: Any) -> None:
        """The run is over. What it gives is what hooks make of it."""
        output = result.output
        goes_on = isinstance(output, DeferredToolRequests)  # in another run
        if goes_on:
            turn.stop(None)
        if turn.over or not self.ending:
            await drive(turn.ending())
        ended = await drive(turn.end(None if goes_on else output_text(output)))
        self.ended = True
        await self._stops(turn)
        if ended.changed:
            result.output = as_output(ended.text, output)

    async def _made(self, turn: Turn, result: Any) -> None:
        """The answer was judged when the model gave it. What a function has made of it since then was not."""
        output = getattr(result, "output", None)
        if turn.over or output is None or isinstance(output, DeferredToolRequests):
            return
        text, kept = output_text(output), self.shown is None
        if kept or (not self.shown and text == " "):  # pydantic-ai was given a blank for it
            result.output = as_output(self.shown, output)
        elif not same(text, self.shown):
            ended = await drive(turn.judge(text))
            if ended.changed:
                result.output = as_output(ended.text, output)

    # --- the model --------------------------------------------------------------------------

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        turn = await self.begin(ctx, request_context)
        if self.ended and not turn.over:  # an output function or a validator has sent the answer back
            turn.reopen()
            self.ended = self.stopped = False
        if self.given is not None:
            said = [said_again(some, *self.given) for some in (ctx.messages, request_context.messages)]
            self.given = None if any(said) else self.given
        if not turn.over:
            await self._hear(turn, ctx, outputs(request_context.model_request_parameters))
        request_context.model = JudgedModel(request_context.model, self, ctx)
        return request_context

    async def _hear(self, turn: Turn, ctx: RunContext[Any], own: set[str]) -> None:
        """Hooks hear of calls that were answered elsewhere, too: by a human, by another capability, by nobody."""
        request: Any = ctx.messages[-1]
        if request.run_id != ctx.run_id or request is self.answered:
            return
        self.answered = request
        for part in request.parts:
            said = plain_part(part)
            if said is None or said["role"] != "tool" or said["tool"] in own or said["call_id"] in self.heard:
                continue
            if getattr(part, "tool_kind", None) is not None:  # of pydantic-ai's own, by which tools are found
                continue
            self.heard.add(said["call_id"])
            refused = getattr(part, "outcome", None) == "denied"
            approval = Approval("deny", None, said["content"]) if refused else Approval("allow")
            args = _asked_for(ctx.messages, said["call_id"])
            called = await drive(
                turn.tool(
                    said["tool"], args, said["call_id"], partial(_give, said, part),
                    proposed="ask" if refused else "allow", ask=partial(_answer, approval),
                ).work()
            )  # fmt: skip
            if called.replaced and not refused:
                request.parts = [replace(p, content=called.output) if p is part else p for p in request.parts]
        self.heard.clear()  # some models give a later call the same id

    async def ask(self, request: Request) -> ModelResponse:
        """The model's answer, when hooks have no objection left, and nothing that it is told instead."""
        while True:
            turn = await self.begin(request.ctx)
            asked = await drive(turn.ask(request.name, request.plain, request.send, told))
            response = spoken(asked, request.parameters)
            if not turn.over and not is_final(response, request.parameters):
                return response
            feedback = None if turn.over else await drive(turn.ending())
            self.ending = True
            if feedback is None:
                feedback, response = await self._end_early(turn, response, request)
            if feedback is None:
                return response
            request.go_on(response, feedback)

    async def _end_early(
        self, turn: Turn, response: ModelResponse, request: Request
    ) -> tuple[str | None, ModelResponse]:
        """Where an answer may be seen before the run is over, and a hook may object to it, the turn ends first.

        It is seen in a stream and in the nodes of `iter`. A subagent may have to go on, too.
        """
        if self.refused or not (request.streams or self.parent is not None or self.runs.judges(*SHOWN)):
            return None, response
        leaves = self.parent is not None  # else it is over when the run is: the answer may be sent back
        ended = await drive(turn.end(text_of(response, request.parameters), leaves=leaves))
        self.ended, self.shown = True, ended.text
        if ended.changed:
            response = with_text(response, ended.text, request.parameters)
        feedback = await self._stops(turn)
        if feedback is not None:
            self.turn, self.ended, self.stopped = turn.again(), False, False
            await drive(self.turn.begin(feedback, source="continuation"))
        return feedback, response

    @property
    def buffers(self) -> bool:
        """Whether an answer is kept back until hooks have spoken."""
        return self.parent is not None or self.runs.judges(*JUDGING)

    # --- tools ------------------------------------------------------------------------------

    async def prepare_tools(self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        """Calls that pydantic-ai would leave to somebody else come here first, where hooks can judge them."""
        self.deferred = {tool.name: tool.kind for tool in tool_defs if tool.kind in ("unapproved", "external")}
        if not self.deferred:
            return tool_defs
        return [replace(tool, kind="function") if tool.name in self.deferred else tool for tool in tool_defs]

    async def after_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any]
    ) -> dict[str, Any]:
        self.calls[call.tool_call_id] = call, args
        return args

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return _Tools(toolset, self)

    async def call(
        self, name: str, args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any], handler: Any
    ) -> Any:
        """A call that pydantic-ai and other capabilities want to be made as it is."""
        turn = await self.begin(ctx)
        call_id = ctx.tool_call_id or ""
        self.heard.add(call_id)
        call, checked = self.calls.pop(call_id, (None, None))
        as_asked = call is not None and call.tool_name == name and args == checked
        given = arguments(call) if as_asked else to_jsonable_python(args, bytes_mode="base64", fallback=str)
        why = self.deferred.get(name)

        async def run(wanted: dict[str, Any]) -> Any:
            if why == "external":
                raise exceptions.CallDeferred
            used = args if wanted == given else await _checked(tool, wanted, ctx) if as_asked else wanted
            try:
                return await _within(turn, handler, used)
            except NoOutput as nothing:  # of a subagent
                return str(nothing)

        def ask(decision: Decision[Any] | None) -> Approval:
            used = given if decision is None else thaw(decision.step.args)
            questions = frozenset(() if decision is None else decision.questions)
            asked = self.asked.get((ctx.conversation_id, call_id))  # not known if it was in another process
            if ctx.tool_call_approved and (asked is None or questions <= asked[2]):
                if asked is None or asked[0] != given or asked[1] == used:
                    return Approval("allow")  # who approves may give other arguments
                return Approval("deny", None, "somebody was asked about this call, but with other arguments")
            self.asked[ctx.conversation_id, call_id] = given, used, questions
            while len(self.asked) > SESSIONS:
                self.asked.popitem(last=False)
            asks = {} if decision is None else {"hook": decision.hook, "reason": decision.reason}
            raise exceptions.ApprovalRequired(asks if used == given else asks | {"args": used})

        self.running += 1
        try:
            with self.surely():
                called = await drive(
                    turn.tool(
                        name, given, call_id, run, read=readable, through=THROUGH, ask=ask,
                        proposed="ask" if why == "unapproved" else "allow", **_about(tool.tool_def),
                    ).work()
                )  # fmt: skip
        finally:
            self.running -= 1
            if self.error is not None and not self.running:  # a cancelled run is told so before its calls are
                await self._failed()
        if called.replaced and called.is_error and FAILED is not None:
            raise FAILED(called.text)
        return called.result()

    async def wrap_output_process(
        self, ctx: RunContext[Any], *, output_context: Any, output: Any, handler: Callable[[Any], Awaitable[Any]]
    ) -> Any:
        """An output function may run another agent."""
        return await handler(output) if self.turn is None else await _within(self.turn, handler, output)


@dataclass
class _Tools(WrapperToolset[Any]):
    """Stands right before the tools."""

    run: Run

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        return await self.run.call(
            name, tool_args, ctx, tool, lambda args: self.wrapped.call_tool(name, args, ctx, tool)
        )


async def _checked(tool: ToolsetTool[Any], wanted: dict[str, Any], ctx: RunContext[Any]) -> dict[str, Any]:
    """Arguments that a hook wants, checked as the model's are."""
    args: dict[str, Any] = tool.args_validator.validate_json(to_json(wanted), context=ctx.validation_context)
    if tool.args_validator_func is not None:
        checking = tool.args_validator_func(ctx, **args)
        if inspect.isawaitable(checking):
            await checking
    return args


async def _within(turn: Turn, handler: Callable[[Any], Awaitable[Any]], given: Any) -> Any:
    inside = _INSIDE.set(turn)
    try:
        return await handler(given)
    finally:
        _INSIDE.reset(inside)


def _about(tool: ToolDefinition) -> dict[str, Any]:
    """What is known of a tool of an MCP server."""
    if "annotations" not in (tool.metadata or {}):
        return {}
    hints = (tool.metadata or {})["annotations"] or {}
    if hints.get("readOnlyHint"):
        return {"kind": "mcp", "safety": "read_only"}
    return {"kind": "mcp", "safety": "destructive"} if hints.get("destructiveHint") else {"kind": "mcp"}


def _asked_for(messages: Sequence[ModelMessage], call_id: str) -> dict[str, Any]:
    """The arguments that a call was asked for with."""
    calls = (call for m in reversed(messages) if isinstance(m, ModelResponse) for call in m.tool_calls)
    return next((arguments(call) for call in calls if call.tool_call_id == call_id), {})


def _answer(approval: Approval, decision: Any) -> Approval:
    return approval


def _give(said: Message, part: Any, args: Any) -> Any:
    if said["is_error"]:
        raise FairleadError(said["content"])
    return readable(part.content)


def _conversation(ctx: RunContext[Any], goes_on: bool) -> str | None:
    """The id of a conversation that goes on. None if pydantic-ai has made one up, at the same moment as the run's."""
    found = ctx.conversation_id
    if found is None or goes_on or ctx.run_id is None:
        return found
    with suppress(ValueError):
        ids = UUID(found), UUID(ctx.run_id)
        if {one.version for one in ids} == {7} and abs((ids[0].int >> 80) - (ids[1].int >> 80)) < 50:
            return None
    return found
