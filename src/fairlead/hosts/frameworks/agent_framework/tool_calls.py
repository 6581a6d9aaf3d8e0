"""Tool calls in Microsoft Agent Framework, and what humans answer about them."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from inspect import isawaitable
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn

import agent_framework
from agent_framework import (
    Content,
    FunctionInvocationContext,
    Message,
    MiddlewareTermination,
    UserInputRequiredException,
)
from agent_framework.exceptions import ToolException
from pydantic_core import to_json

from ....approvals import Approval
from ....decision import Decision
from ....errors import FairleadError
from ....frozen import thaw
from ..adapter import MCP_SERVER
from ..flow import run_flow
from . import messages
from .boundaries import JUDGED, JudgedRun

if TYPE_CHECKING:
    from ..turn import Turn

Next = Callable[[], Awaitable[None]]

INSIDE: ContextVar[Turn | None] = ContextVar("fairlead_agent_framework", default=None)
"""The turn whose tool runs here: an agent that starts inside of it is a subagent."""
MiddlewareFailure: Any = getattr(agent_framework, "MiddlewareFailure", None)
"""The exception with which a function middleware fails a run at once. It exists since 1.15."""
ASKS_AGAIN = tuple(map(int, agent_framework.__version__.split(".")[:2])) >= (1, 19)
"""Whether another question can follow a human's answer. Older versions lose it, or ask twice."""
THROUGH = (UserInputRequiredException, FairleadError, *([MiddlewareFailure] if MiddlewareFailure else []))
KINDS = ("shell", "read", "write", "search", "fetch", "mcp", "agent")
QUESTIONS = 1000
"""How many questions are remembered."""
OURS = "fairlead"
"""The property of a call that holds the questions of hooks, for the human who is asked."""


async def call_tool(state: MiddlewareState, context: FunctionInvocationContext, call_next: Next) -> None:
    """Perform one tool call, in place of the framework."""
    if state.failure is not None:
        state.fail(state.failure)
    try:
        await AgentFrameworkToolCall(state, context, call_next).run()
    except FairleadError as error:
        state.fail(error)


class MiddlewareState:
    """What the middleware inside of a run shares with it. Chat clients keep the middleware after the run."""

    turn: Turn

    def __init__(
        self, models: Mapping[str, Any], questions: dict[Any, None], session_id: str | None, agent: Any
    ) -> None:
        self.models, self.questions, self.session_id, self.agent = models, questions, session_id, agent
        self.prompt: tuple[str, str] | None = None
        """The agent's own instructions, and those that a hook puts in their place."""
        self.calls: list[Content] = []
        """The calls that the model wants. Before the model is called: those that a human has approved."""
        self.approved: set[str | None] = set()
        self.handoffs: dict[str, str] = {}
        """The tools that hand the conversation over, and the agents that get it."""
        self.handed_over = False
        """Whether that has happened in this run."""
        self.failure: FairleadError | None = None
        """The error that the run fails with. The framework would take it for an error of the tool."""

    def fail(self, error: FairleadError) -> NoReturn:
        """Leave the call and the run. The run raises `failure` in the end."""
        self.failure = self.failure or error
        self.turn.over = True  # for the other calls of the batch
        if MiddlewareFailure is not None:
            raise MiddlewareFailure(str(error))
        raise MiddlewareTermination(str(error), result=str(error))

    # --- matching calls ---------------------------------------------------------------------

    def matching(self, name: str, args: dict[str, Any]) -> Content | None:
        """The model's own content for a call, where the framework gives no call id (before 1.3)."""
        named = [call for call in self.calls if call.name == name]
        same = [call for call in named if messages.call_args(call).items() <= args.items()]
        found = next(iter(same or named), None)
        self.calls = [call for call in self.calls if call is not found]
        return found

    def known(self, context: FunctionInvocationContext) -> Content | None:
        call_id = context.metadata.get("call_id")
        return next((call for call in self.calls if call.call_id == call_id), None)

    # --- approvals --------------------------------------------------------------------------

    def was_approved(self, call: Content | None, context: FunctionInvocationContext) -> bool:
        """Whether a human was asked about this very call, by the framework or by a hook, and has approved it.

        The framework's own word is not enough: it also reports calls as approved that it only held back because of
        others, and that no human has seen.
        """
        call = self.shown_call(call, context)
        if call is None:
            return False
        if not ASKS_AGAIN and not _requires(context.function):  # these accept an answer without a question
            return self.questions.pop(self._key(call), self) is None
        has_question = call.call_id in self.approved or OURS in (call.additional_properties or ())
        return has_question or _requires(context.function)

    def shown_call(self, call: Content | None, context: FunctionInvocationContext) -> Content | None:
        """The call as the human saw it who answered, if any."""
        response = context.metadata.get("approval_response")
        if response is not None:
            shown: Content | None = response.function_call
            return shown
        return None if self.turn.requests else call  # approved calls run before the first request to the model

    def remember(self, question: Content) -> None:
        self.questions[self._key(question.function_call)] = None
        while len(self.questions) > QUESTIONS:
            del self.questions[next(iter(self.questions))]

    def _key(self, call: Content) -> Any:
        return self.session_id, call.call_id, call.name, to_json(messages.call_args(call))

    async def take_answers(self, history: Sequence[Message]) -> None:
        """Take a human's answers about calls. Calls that the human refuses end here."""
        for answer in messages.answers(history):
            call = answer.function_call
            if call is None or (call.additional_properties or {}).get("server_label"):
                continue  # the call of a hosted tool
            if answer.approved is True:
                self.calls.append(call)
                self.approved.add(call.call_id)
            else:
                args = messages.call_args(call)
                await run_flow(
                    self.turn.tool(call.name, args, call.call_id, _not_run, proposed="ask", ask=_refused).perform()
                )


async def call_inside(state: MiddlewareState, function: Any, invoke: Any, options: dict[str, Any]) -> Any:
    """Judge a call that a tool makes by itself, as a code executor does, or an agent without hooks that runs in a tool.

    A call that is refused raises in the tool. Of humans, it can ask only the approver of the hooks.
    """
    about = {name: options.pop(name) for name in ("context", "tool_call_id", "skip_parsing") if name in options}
    passed = options.get("arguments")
    args = messages.arguments({k: v for k, v in options.items() if k != "arguments"} if passed is None else passed)

    def run(judged: dict[str, Any]) -> Any:
        return invoke(function, **(options if judged == args else {"arguments": judged}), **about)

    call = state.turn.tool(
        function.name, args, about.get("tool_call_id"), run, read=messages.readable, **_about(function, state)
    )
    try:
        result = await run_flow(call.perform())
    except FairleadError as error:
        state.failure = state.failure or error  # the run fails with it, whatever the tool does
        state.turn.over = True
        raise
    if result.replaced and result.is_error:
        raise ToolException(result.text)
    return messages.result(result.output, None) if result.replaced else result.result()


async def call_handoff(state: MiddlewareState, context: FunctionInvocationContext, call_next: Next) -> None:
    """Judge the call with which an agent hands the conversation over. The framework's own middleware carries it out."""
    if state.failure is not None:
        state.fail(state.failure)
    try:
        await Handoff(state, context, call_next).run()
    except FairleadError as error:
        state.fail(error)


class AgentFrameworkToolCall:
    """One tool call, under hooks."""

    def __init__(self, state: MiddlewareState, context: FunctionInvocationContext, call_next: Next) -> None:
        self.state, self.context, self.call_next = state, context, call_next
        self.native = context.arguments
        self.args = messages.arguments(self.native)
        function, call_id = context.function, context.metadata.get("call_id")
        self.call = state.matching(function.name, self.args) if call_id is None else None
        self.approved = state.was_approved(self.call, context)
        self.shown = _shown(state.shown_call(self.call, context))  # the questions that the human has answered
        self.terminated: MiddlewareTermination | None = None
        self.tool_call = state.turn.tool(
            function.name, self.args, call_id or (self.call and self.call.call_id), self._run, read=messages.readable,
            ask=self._ask, proposed="ask" if self.approved and _requires(function) else "allow", through=THROUGH,
            **_about(function, state),
        )  # fmt: skip

    async def run(self) -> None:
        context, call = self.context, self.tool_call
        if not await call.judge_async() or not await self._run_natively():
            result = await run_flow(call.finish())
            context.result = messages.result(result.output, context.result) if result.replaced else result.result()
        if self.terminated is not None:
            raise self.terminated

    async def _run_natively(self) -> bool:
        """Have the framework run the tool. Gives whether no hook subscribes to the result, also by now."""
        call = self.tool_call
        call.began = monotonic()
        try:
            output = await self._run(thaw(call.args))  # a copy that the tool may change
        except THROUGH:
            raise
        except (Exception, CancelledError) as error:
            if call.runs_natively:
                if isinstance(error, Exception):
                    call.record_native_end(error=error)
                raise
            call.take_native_result(partial(_raise, error))
            return False
        self.context.result = output
        if not call.runs_natively:
            call.take_native_result(lambda: output)
            return False
        call.record_native_end(output)
        return True

    async def _run(self, args: dict[str, Any]) -> Any:
        context = self.context
        context.arguments = self.native if args == self.args else args
        inner = partial(call_inside, self.state)
        judged = JUDGED.set(JudgedRun(self.tool_call, context.function, inner))
        inside = INSIDE.set(self.state.turn)
        try:
            await self.call_next()
        except MiddlewareTermination as termination:  # a tool that ends the run has a result all the same
            self.terminated = termination
            return termination.result if isawaitable(context.result) else context.result or termination.result
        finally:
            INSIDE.reset(inside)
            JUDGED.reset(judged)
        return context.result

    def _ask(self, decision: Decision[Any] | None) -> Approval:
        state = self.state
        args = self.args if decision is None else thaw(decision.step.args)
        questions = () if decision is None else decision.questions
        if self.approved and args == self.args and {*questions} <= self.shown:  # the human saw this very call
            return Approval("allow")
        call = self.call or state.known(self.context)
        if state.turn.parent is not None or call is None:
            return Approval("deny", None, "a subagent cannot ask a human")
        if not state.turn.requests and not ASKS_AGAIN:
            return Approval("deny", None, "it is not what was approved")
        question = _question(call, None if args == self.args else args, decision)
        state.remember(question)
        raise UserInputRequiredException([question])


class Handoff(AgentFrameworkToolCall):
    """The call with which an agent hands the conversation over to another one, its subagent for hooks."""

    async def _run(self, args: dict[str, Any]) -> Any:
        refusal = await run_flow(self.state.turn.hand_over(self.state.handoffs[self.context.function.name]))
        if refusal is not None:
            return refusal
        self.state.handed_over = True
        return await super()._run(args)


def _about(function: Any, state: MiddlewareState) -> dict[str, Any]:
    """What the framework knows of a tool."""
    if function.name in state.handoffs:
        return {"kind": "agent"}
    if function.kind in KINDS:
        return {"kind": function.kind}
    remote = (function.additional_properties or {}).get("_mcp_remote_name")
    if not isinstance(remote, str):
        return {}
    servers = (one.name for one in getattr(state.agent, "mcp_tools", ()) if any(f is function for f in one.functions))
    return {"server": next(servers, MCP_SERVER), "remote": remote}


def _raise(error: BaseException) -> NoReturn:
    raise error


def _shown(call: Content | None) -> set[Any]:
    """The questions that the human saw with a call."""
    questions = None if call is None else (call.additional_properties or {}).get(OURS)
    return {tuple(one) for one in questions} if isinstance(questions, list) else set()


def _requires(function: Any) -> bool:
    return bool(function.approval_mode == "always_require")


def _refused(decision: Decision[Any] | None) -> Approval:
    return Approval("deny", None, "a human has refused it")


def _not_run(args: Any) -> NoReturn:
    raise FairleadError("a human has refused it")  # the last resort that keeps it from running


def _question(call: Content, args: dict[str, Any] | None, decision: Decision[Any] | None) -> Content:
    """The question for a human: the call, with the arguments that the tool would get."""
    hook, reason = (None, None) if decision is None else (decision.hook, decision.reason)
    questions = [] if decision is None else [list(one) for one in decision.questions]
    shown = Content.from_function_call(
        call.call_id, call.name, arguments=call.arguments if args is None else args,
        additional_properties={**(call.additional_properties or {}), OURS: questions},
    )  # fmt: skip
    shown.id = call.id
    about = {"hook": hook, "reason": reason}
    return Content.from_function_approval_request(call.id or call.call_id, shown, additional_properties=about)
