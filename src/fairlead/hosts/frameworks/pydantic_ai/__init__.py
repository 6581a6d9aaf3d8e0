"""The adapter for pydantic-ai: a capability.

`Fairlead` is what a user adds. Each run of an agent has a `PydanticAIRun`. Each request to the model goes through a
`JudgedModel`, which wraps the real one, so nothing can change a request after hooks have judged it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any, cast
from uuid import UUID
from weakref import WeakValueDictionary

from pydantic_ai import exceptions
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import DeferredToolRequests, RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import ValidationError, to_json

from ....approvals import Approval
from ....decision import Decision
from ....errors import ArgumentsChanged, FairleadError
from ....frozen import thaw
from ....registry import Hooks
from ..adapter import MCP_SERVER, Adapter, AgentRun, safety_from_hints
from ..flow import run_flow
from ..framework import WHOLE, Framework
from ..messages import Message
from ..pydantic_messages import arguments
from ..tool_call import ToolError
from ..turn import SESSIONS, Turn
from .messages import (
    NoOutput,
    as_output,
    is_final,
    output_text,
    output_tools,
    plain_part,
    prompt_from,
    prompt_in,
    readable,
    replace_prompt,
    reply_of,
    response_from,
    same,
    shown,
    system_prompt,
    text_of,
    with_text,
)
from .model_calls import JudgedModel, PydanticAIRequest
from .toolsets import GovernedTools, OuterCall, governed, jsonable

__all__ = ["FRAMEWORK", "Fairlead", "NoOutput"]

FRAMEWORK = Framework(
    name="pydantic_ai",
    title="Pydantic AI",
    package="pydantic-ai-slim",
    versions=">=1.101,<3",
    can=WHOLE,
    notes=(
        "Hooks do not see tools that a provider runs itself (native tools).",
        "An agent with a structured output raises NoOutput where a hook ends its turn.",
        "An agent is a subagent if it runs in a tool or an output function, under the same hooks.",
    ),
)

THROUGH = (exceptions.ApprovalRequired, exceptions.CallDeferred)
"""The exceptions with which pydantic-ai defers a call. The call is not over then."""
FAILED: Any = getattr(exceptions, "ToolFailed", None)
"""The exception with which a tool fails, from pydantic-ai 2 on."""
SHOWN = ("before_response", "before_output")
JUDGING = ("after_model", "before_turn_end", "before_response", "before_output")
"""Events at which a hook may refuse or change an answer. If there is such a hook, the answer is not streamed live."""

_INSIDE: ContextVar[Turn | None] = ContextVar("fairlead_pydantic_ai", default=None)
"""The turn whose tool runs here: an agent that starts inside of it is a subagent."""


_runs: WeakValueDictionary[int, PydanticAIRun] = WeakValueDictionary()  # by the id of the context they were opened in


class _Retry(ToolError):
    """A tool asks the model to call it again (`ModelRetry`), and tells it why."""


class _Others(type):
    """The type of all capabilities but ours, in the way in which pydantic-ai asks for it."""

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, AbstractCapability) and not issubclass(kind, (Fairlead, PydanticAIRun))


class _AnyOther(metaclass=_Others):
    """Any capability but ours."""


def _innermost() -> CapabilityOrdering:
    """The place inside of all others, of innermost ones, too: hooks also judge what other capabilities change."""
    return CapabilityOrdering(position="innermost", wrapped_by=[cast(Any, _AnyOther)])


class Fairlead(Adapter, AbstractCapability[Any]):
    """Runs an agent under hooks: `Agent(model, capabilities=[Fairlead(hooks)])`.

    - `models` names the models that a hook may switch to. Other names are left to pydantic-ai.
    - A conversation that continues (`conversation_id=` or `message_history=` of `agent.run`) is one session.
      `aclose()` and `async with` end it. Any other run is a session of its own.
    - `session_id` makes one session of all runs.
    """

    framework = FRAMEWORK

    def __init__(self, hooks: Hooks | None = None, **options: Any) -> None:
        super().__init__(hooks, **options)
        self.questions: OrderedDict[tuple[Any, str], tuple[Any, Any, frozenset[Any]]] = OrderedDict()
        """Calls that humans were asked about: the model's arguments, those to be used, and what hooks ask."""

    def get_ordering(self) -> CapabilityOrdering:
        return _innermost()

    async def for_run(self, ctx: RunContext[Any]) -> AbstractCapability[Any]:
        other = _runs.get(id(ctx))
        if other is None:
            run = _runs[id(ctx)] = PydanticAIRun(self, ctx)
            return run
        if other.sessions.hooks is self.sessions.hooks:  # the agent and its run have it, say
            return AbstractCapability()
        raise FairleadError(
            "this agent has two Fairleads with different Hooks; put all hooks into one Hooks, and use one"
        )


class PydanticAIRun(AgentRun, AbstractCapability[Any]):
    """One run of an agent."""

    def __init__(self, fairlead: Fairlead, ctx: RunContext[Any]) -> None:
        self.sessions, self.models, self.questions = fairlead.sessions, fairlead.models, fairlead.questions
        parent = _INSIDE.get()
        self.parent = parent if parent is not None and parent.sessions.hooks is self.sessions.hooks else None
        self.opened_in = ctx  # as long as this lives, no other context has its id
        self.continues = bool(ctx.messages)
        self.changed_prompt: tuple[Any, Any] | None = None  # the user's prompt, and what a hook made of it
        self.prompt: str | None = None  # the system prompt that a hook gives
        self.failure: FairleadError | None = None  # raised by a hook
        self.error: BaseException | None = None  # raised by the run
        self.running = 0
        self.live: str | None = None  # the model whose answer is streamed live
        self.shown: str | None = None  # the answer, as hooks have judged it
        self.ending = False
        self.calls: dict[str, tuple[ToolCallPart, dict[str, Any]]] = {}  # the model's calls, and their valid arguments
        self.seen_calls: set[str] = set()
        self.seen_request: Any = None  # the last request whose tool results hooks have seen
        self.deferred: dict[str, str] = {}  # tools that pydantic-ai would not run by itself, and why
        self.outer_calls: dict[str, OuterCall] = {}  # by call id: calls on their way through toolsets of the user
        self.governed: dict[str, ToolDefinition] = {}  # the tools of `GovernedTools`, by name
        self.outer_args: dict[str, dict[str, Any]] = {}  # by call id: judged arguments of tools around these
        self.compares = False  # whether a toolset compares the arguments that reach it with the judged ones,
        self.judged_args: dict[str, Any] = {}  # which are these, by call id
        self._beginning = asyncio.Lock()

    def get_ordering(self) -> CapabilityOrdering:
        return _innermost()

    # --- the run ----------------------------------------------------------------------------

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Callable[[], Awaitable[Any]]) -> Any:
        try:
            result = await handler()
            self._check()
            if not self.has_turn:  # another capability has answered in place of the model
                await self.begin(ctx)
            if self.refusal is None:
                if not self.ended:
                    await self._finish(result)
                else:
                    await self._judge_output(result)
                    await run_flow(self.turn.leave())
            return result
        except BaseException as error:
            self.error = error
            if not self.running:
                await self._failed()
            raise

    @contextmanager
    def surely(self) -> Iterator[None]:
        """What hooks raise ends the run, even if another capability handles the exception."""
        try:
            yield
        except FairleadError as error:
            self.failure = error
            raise

    async def begin(self, ctx: RunContext[Any], request: ModelRequestContext | None = None) -> Turn:
        """The turn. It begins at the first call of the model or a tool: what the model is sent is known then."""
        self._check()
        with self.surely():
            async with self._beginning:
                return self.turn if self.has_turn else await self._begin(ctx, request)

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure

    async def _begin(self, ctx: RunContext[Any], request: ModelRequestContext | None) -> Turn:
        content = ctx.prompt
        if request is not None and content is not None:  # another capability may have changed it
            content = prompt_in(request.messages[-1], content)
        message = original = shown(content)
        agent = getattr(ctx.agent, "name", None) or "agent"
        if self.parent is None:
            self.turn = self.sessions.turn(_conversation(ctx, self.continues), agent=agent)
        else:
            message = await run_flow(self.start_subagent(self.parent, agent, original))
            if self.refusal is not None:
                return self.turn
        turn = self.turn
        parameters = None if request is None else request.model_request_parameters
        prompt = system_prompt(ctx.messages if request is None else request.messages, parameters)
        source = "user" if ctx.prompt is not None else "continuation"
        turn_input = await run_flow(
            turn.begin(message, source=source, system_prompt=prompt, committed_len=len(ctx.messages))
        )
        if turn.session.turn_id is None:  # it was refused, and is not kept
            turn_input.input = original and "[refused]"
        if turn_input.input != original:
            self.changed_prompt = (ctx.prompt, content), prompt_from(turn_input.input, content)
        if turn_input.system_prompt != prompt:
            self.prompt = turn_input.system_prompt or ""
        return turn

    async def _failed(self) -> None:
        """Report that the run has failed, or was cancelled, once no tool runs any more."""
        error = self.error
        if not self.has_turn or error is None or self.refusal is not None:
            return
        if isinstance(error, NoOutput):
            await run_flow(self.turn.leave() if self.ended else self.turn.end(None))
        else:
            if not self.ended and self.live is not None and isinstance(error, Exception):
                with suppress(FairleadError):
                    await run_flow(self.turn.model_failed(self.live, error))
            await run_flow(self.turn.failed(error))
        with suppress(FairleadError):  # the caller of the parent gets the error that ended the subagent
            await run_flow(self.stop())

    async def _finish(self, result: Any) -> None:
        """End the turn with the output of the run, which hooks may change."""
        turn, output = self.turn, result.output
        is_deferred = isinstance(output, DeferredToolRequests)  # another run continues with it
        if is_deferred:
            turn.stop(None)
        if turn.over or not self.ending:
            await run_flow(turn.ending())
        final = await run_flow(self.end(None if is_deferred else output_text(output)))
        await run_flow(self.stop())
        if final.changed:
            result.output = as_output(final.text, output)

    async def _judge_output(self, result: Any) -> None:
        """Have hooks judge the output if a function has changed the answer that they judged."""
        output = getattr(result, "output", None)
        if self.turn.over or output is None or isinstance(output, DeferredToolRequests):
            return
        text, is_hidden = output_text(output), self.shown is None
        if is_hidden or (not self.shown and text == " "):  # pydantic-ai was given a blank for it
            result.output = as_output(self.shown, output)
        elif not same(text, self.shown):
            final = await run_flow(self.turn.judge(text))
            if final.changed:
                result.output = as_output(final.text, output)

    # --- the model --------------------------------------------------------------------------

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        turn = await self.begin(ctx, request_context)
        if self.ended and not turn.over:  # an output function or a validator has sent the answer back
            self.reopen()
        if self.changed_prompt is not None:
            replaced = [replace_prompt(some, *self.changed_prompt) for some in (ctx.messages, request_context.messages)]
            self.changed_prompt = None if any(replaced) else self.changed_prompt
        if not turn.over:
            await self._report_results(turn, ctx, output_tools(request_context.model_request_parameters))
        request_context.model = JudgedModel(request_context.model, self, ctx)
        return request_context

    async def _report_results(self, turn: Turn, ctx: RunContext[Any], outputs: set[str]) -> None:
        """Show hooks the results of calls that did not run here: a human or another capability answered them."""
        request: Any = ctx.messages[-1]
        if request.run_id != ctx.run_id or request is self.seen_request:
            return
        self.seen_request = request
        for part in request.parts:
            message = plain_part(part)
            if message is None or message["role"] != "tool" or message["tool"] in outputs:
                continue
            if message["call_id"] in self.seen_calls or _finds_tools(part):
                continue
            self.seen_calls.add(message["call_id"])
            refused = getattr(part, "outcome", None) == "denied"
            approval = Approval("deny", None, message["content"]) if refused else Approval("allow")
            args = _args_of(ctx.messages, message["call_id"])
            result = await run_flow(
                turn.tool(
                    message["tool"], args, message["call_id"], partial(_result, message, part),
                    proposed="ask" if refused else "allow", ask=partial(_answer, approval),
                ).perform()
            )  # fmt: skip
            if result.replaced and not refused:
                request.parts = [replace(p, content=result.output) if p is part else p for p in request.parts]
        self.seen_calls.clear()  # some models give a later call the same id

    async def call_model(self, request: PydanticAIRequest) -> ModelResponse:
        """The model's answer. Calls the model again as long as hooks refuse the answer or extend the turn."""
        while True:
            turn = await self.begin(request.ctx)
            result = await run_flow(turn.ask(request.name, request.plain, request.send, reply_of))
            response = response_from(result, request.parameters)
            if not turn.over and not is_final(response, request.parameters):
                return response
            feedback = None if turn.over else await run_flow(turn.ending())
            self.ending = True
            if feedback is None:
                feedback, response = await self._end_early(response, request)
            if feedback is None:
                return response
            request.extend(response, feedback)

    async def _end_early(self, response: ModelResponse, request: PydanticAIRequest) -> tuple[str | None, ModelResponse]:
        """End the turn before the run, if the answer is shown before the run ends and a hook may change it.

        A stream and the nodes of `iter` show it. The turn of a subagent ends here, too: it may have to continue.
        """
        is_subagent = self.parent is not None
        if self.refusal is not None or not (request.streams or is_subagent or self.sessions.judges(*SHOWN)):
            return None, response
        # The request of an agent that is no subagent ends with the run: the answer may be sent back.
        output = await run_flow(self.end(text_of(response, request.parameters), leaves=is_subagent))
        self.shown = output.text
        if output.changed:
            response = with_text(response, output.text, request.parameters)
        feedback = await run_flow(self.stop())
        if feedback is not None:
            self.renew()
            await run_flow(self.turn.begin(feedback, source="continuation"))
        return feedback, response

    @property
    def buffers(self) -> bool:
        """Whether an answer is held back until hooks have judged it."""
        return self.parent is not None or self.sessions.judges(*JUDGING)

    # --- tools ------------------------------------------------------------------------------

    async def prepare_tools(self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        """Have calls that pydantic-ai would defer come here first, so that hooks judge them."""
        self.deferred = {tool.name: tool.kind for tool in tool_defs if tool.kind in ("unapproved", "external")}
        if not self.deferred:
            return tool_defs
        return [replace(tool, kind="function") if tool.name in self.deferred else tool for tool in tool_defs]

    async def after_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any]
    ) -> dict[str, Any]:
        self.calls[call.tool_call_id] = call, args
        return args

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any],
        handler: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> Any:  # fmt: skip
        """Judge a call of a tool that another capability has put around those that we govern, such as a code executor.

        Other capabilities may still change its arguments inside of the handler. `before_tool_execute` compares them.
        """
        tools = None if ctx.tool_manager is None else ctx.tool_manager.tools
        tool = (tools or {}).get(call.tool_name)
        if tool is None or self.governs(tool_def) or _finds_tools(tool_def):
            return await handler(args)
        call_id = call.tool_call_id

        async def run(judged: dict[str, Any]) -> Any:
            self.outer_args[call_id] = jsonable(judged)
            try:
                return await handler(judged)
            finally:
                del self.outer_args[call_id]

        return await self.call_tool(call.tool_name, args, ctx, tool, run)

    def governs(self, tool_def: ToolDefinition) -> bool:
        """Whether a tool is one of those that `GovernedTools` has, perhaps by another name."""
        if tool_def.kind == "output" or tool_def.name in self.governed:
            return True
        schema = tool_def.parameters_json_schema
        return any(one.parameters_json_schema is schema for one in self.governed.values())

    async def before_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any]
    ) -> dict[str, Any]:
        judged = self.outer_args.get(call.tool_call_id)
        if judged is not None and jsonable(args) != judged:
            raise ArgumentsChanged(tool_def.name, call.tool_call_id, "another capability")
        return args

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return GovernedTools(governed(toolset, self), self)

    async def call_tool(
        self, name: str, args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any], handler: Any
    ) -> Any:
        """Perform a call that pydantic-ai and all other capabilities have let pass."""
        turn = await self.begin(ctx)
        call_id = ctx.tool_call_id or ""
        self.seen_calls.add(call_id)
        call, checked = self.calls.pop(call_id, (None, None))
        is_unchanged = (
            call is not None and call.tool_name == name and args == checked and _is_unchanged(tool, call, ctx, args)
        )
        plain = arguments(call) if is_unchanged else jsonable(args)
        why = self.deferred.get(name)

        async def run(final: dict[str, Any]) -> Any:
            if why == "external":
                raise exceptions.CallDeferred
            used = args if final == plain else await _checked(tool, final, ctx) if is_unchanged else final
            if self.compares:
                self.judged_args[call_id] = jsonable(used)
            try:
                return await _within(turn, handler, used)
            except NoOutput as nothing:  # of a subagent
                return str(nothing)
            except exceptions.SkipToolExecution as skipped:
                return skipped.result
            except exceptions.ModelRetry as retry:  # a message to the model, which hooks may change
                raise _Retry(retry.message) from retry
            except ValidationError as invalid:  # pydantic-ai tells the model more of it than its text says
                details = invalid.errors(include_url=False, include_context=False)
                about.failure_text = to_json(details, fallback=str).decode()
                raise

        about = turn.tool(
            name, plain, call_id, run, read=readable, through=THROUGH, ask=partial(self._ask, ctx, call_id, plain),
            proposed="ask" if why == "unapproved" else "allow", **_about(tool.tool_def),
        )  # fmt: skip
        self.running += 1
        try:
            with self.surely():
                result = await run_flow(about.perform())
        finally:
            self.judged_args.pop(call_id, None)
            self.running -= 1
            if self.error is not None and not self.running:  # pydantic-ai cancels a run before its calls
                await self._failed()
        if isinstance(result.error, _Retry):
            raise exceptions.ModelRetry(result.text if result.replaced else str(result.error))
        if isinstance(result.error, ValidationError) and result.replaced:
            raise exceptions.ModelRetry(result.text)
        if result.replaced and result.is_error and FAILED is not None:
            raise FAILED(result.text)
        return result.result()

    def _ask(
        self, ctx: RunContext[Any], call_id: str, plain: dict[str, Any], decision: Decision[Any] | None
    ) -> Approval:
        """A human's answer, by a deferred call of pydantic-ai's."""
        used = plain if decision is None else thaw(decision.step.args)
        questions = frozenset(() if decision is None else decision.questions)
        shown = self.questions.get((ctx.conversation_id, call_id))  # None if another process has asked
        if ctx.tool_call_approved and (shown is None or questions <= shown[2]):
            if shown is None or shown[0] != plain or shown[1] == used:
                return Approval("allow")  # the human may have given other arguments
            return Approval("deny", None, "a human was asked about this call, but with other arguments")
        self.questions[ctx.conversation_id, call_id] = plain, used, questions
        while len(self.questions) > SESSIONS:
            self.questions.popitem(last=False)
        about = {} if decision is None else {"hook": decision.hook, "reason": decision.reason}
        raise exceptions.ApprovalRequired(about if used == plain else about | {"args": used})

    async def wrap_output_process(
        self, ctx: RunContext[Any], *, output_context: Any, output: Any, handler: Callable[[Any], Awaitable[Any]]
    ) -> Any:
        """An output function may run another agent."""
        return await _within(self.turn, handler, output) if self.has_turn else await handler(output)


def _finds_tools(one: Any) -> bool:
    """Whether a tool or a result is pydantic-ai's own, by which the model finds tools. Other kinds are named `a.b`."""
    kind = getattr(one, "tool_kind", None)
    return kind is not None and "." not in kind


def _is_unchanged(tool: ToolsetTool[Any], call: ToolCallPart, ctx: RunContext[Any], args: dict[str, Any]) -> bool:
    """Whether a tool's own validator has left the arguments as the model gave them. It may change them in place."""
    if tool.args_validator_func is None:
        return True
    with suppress(ValidationError):
        original = arguments(call)
        return bool(tool.args_validator.validate_json(to_json(original), context=ctx.validation_context) == args)
    return False


async def _checked(tool: ToolsetTool[Any], changed: dict[str, Any], ctx: RunContext[Any]) -> dict[str, Any]:
    """Arguments that a hook gives, checked as the model's are."""
    args: dict[str, Any] = tool.args_validator.validate_json(to_json(changed), context=ctx.validation_context)
    if tool.args_validator_func is not None:
        before = jsonable(args)
        checking = tool.args_validator_func(ctx, **args)
        if inspect.isawaitable(checking):
            await checking
        if jsonable(args) != before:
            raise ArgumentsChanged(tool.tool_def.name, ctx.tool_call_id, "the tool's args_validator")
    return args


async def _within(turn: Turn, handler: Callable[[Any], Awaitable[Any]], value: Any) -> Any:
    inside = _INSIDE.set(turn)
    try:
        return await handler(value)
    finally:
        _INSIDE.reset(inside)


def _about(tool: ToolDefinition) -> dict[str, Any]:
    """What is known of a tool of an MCP server."""
    metadata = tool.metadata or {}
    return {"server": MCP_SERVER, **safety_from_hints(metadata["annotations"])} if "annotations" in metadata else {}


def _args_of(messages: Sequence[ModelMessage], call_id: str) -> dict[str, Any]:
    """The arguments of a call, as the model gave them."""
    calls = (call for m in reversed(messages) if isinstance(m, ModelResponse) for call in m.tool_calls)
    return next((arguments(call) for call in calls if call.tool_call_id == call_id), {})


def _answer(approval: Approval, decision: Decision[Any] | None) -> Approval:
    return approval


def _result(message: Message, part: Any, args: Any) -> Any:
    if message["is_error"]:
        raise FairleadError(message["content"])
    return readable(part.content)


def _conversation(ctx: RunContext[Any], continues: bool) -> str | None:
    """The id of a conversation that continues. None if pydantic-ai made it up, at the same moment as the run's."""
    found = ctx.conversation_id
    if found is None or continues or ctx.run_id is None:
        return found
    with suppress(ValueError):
        ids = UUID(found), UUID(ctx.run_id)
        if {one.version for one in ids} == {7} and abs((ids[0].int >> 80) - (ids[1].int >> 80)) < 50:
            return None
    return found
