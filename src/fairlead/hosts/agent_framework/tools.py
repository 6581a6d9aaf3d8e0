"""The tool calls of a run in Microsoft Agent Framework, and what humans say of them."""

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
from pydantic_core import to_json

from ...approvals import Approval
from ...decision import Decision
from ...errors import FairleadError
from ...frozen import thaw
from ..work import drive
from . import messages as said

if TYPE_CHECKING:
    from ..turn import Turn

Next = Callable[[], Awaitable[None]]

INSIDE: ContextVar[Turn | None] = ContextVar("fairlead_agent_framework", default=None)
"""Whose tool is at work: an agent that runs inside of it is a subagent."""
MiddlewareFailure: Any = getattr(agent_framework, "MiddlewareFailure", None)
"""How a function middleware makes a run fail at once. Not there before 1.15."""
ASKS_AGAIN = tuple(map(int, agent_framework.__version__.split(".")[:2])) >= (1, 19)
"""Whether a question can be asked anew when a human has answered. Earlier, it is lost, or asked twice."""
THROUGH = (UserInputRequiredException, FairleadError, *([MiddlewareFailure] if MiddlewareFailure else []))
KINDS = ("shell", "read", "write", "search", "fetch", "mcp", "agent")
QUESTIONS = 1000
"""Questions that are remembered."""
OURS = "fairlead"
"""Where a call that a human is asked about says what hooks ask."""


class Loop:
    """What the middleware inside of a run knows of it. Chat clients keep that for a while, so it is not all."""

    turn: Turn

    def __init__(self, models: Mapping[str, Any], asked: dict[Any, None], session_id: str | None) -> None:
        self.models, self.asked, self.session_id = models, asked, session_id
        self.prompt: tuple[str, str] | None = None
        """The agent's own instructions, and those that a hook wants."""
        self.wanted: list[Content] = []
        """What the model wants; before it is asked: what a human has approved."""
        self.approved: set[str | None] = set()
        self.failure: FairleadError | None = None
        """What the run is to fail with. The framework would make an error of the tool's of it."""

    async def call_tool(self, context: FunctionInvocationContext, call_next: Next) -> None:
        """One call, in place of the framework's."""
        if self.failure is not None:
            self._fail(self.failure)
        try:
            await Call(self, context, call_next).work()
        except FairleadError as error:
            self._fail(error)

    def _fail(self, error: FairleadError) -> NoReturn:
        """Out of the call, and out of the run, which raises `failure` in the end."""
        self.failure = self.failure or error
        self.turn.over = True  # for the calls beside it
        if MiddlewareFailure is not None:
            raise MiddlewareFailure(str(error))
        raise MiddlewareTermination(str(error), result=str(error))

    # --- which one it is --------------------------------------------------------------------

    def matching(self, name: str, args: dict[str, Any]) -> Content | None:
        """The model's own words for a call. Before 1.3, the framework does not tell which one it is."""
        named = [call for call in self.wanted if call.name == name]
        same = [call for call in named if said.call_args(call).items() <= args.items()]
        found = next(iter(same or named), None)
        self.wanted = [call for call in self.wanted if call is not found]
        return found

    def known(self, context: FunctionInvocationContext) -> Content | None:
        call_id = context.metadata.get("call_id")
        return next((call for call in self.wanted if call.call_id == call_id), None)

    # --- approvals --------------------------------------------------------------------------

    def was_approved(self, call: Content | None, context: FunctionInvocationContext) -> bool:
        """Whether a human was asked about this very call, by the framework or by a hook, and has approved it.

        It is not enough that the framework says so: it also does of calls that it held back because of others, and
        about which nobody was asked.
        """
        call = self.asked_about(call, context)
        if call is None:
            return False
        if not ASKS_AGAIN and not _requires(context.function):  # these take an answer to what nobody has asked
            return self.asked.pop(self._key(call), self) is None
        asked = call.call_id in self.approved or OURS in (call.additional_properties or ())
        return asked or _requires(context.function)

    def asked_about(self, call: Content | None, context: FunctionInvocationContext) -> Content | None:
        """The call as a human was shown it, if he has answered."""
        response = context.metadata.get("approval_response")
        if response is not None:
            shown: Content | None = response.function_call
            return shown
        return None if self.turn.requests else call  # what was approved has run before the model was asked

    def remember(self, question: Content) -> None:
        self.asked[self._key(question.function_call)] = None
        while len(self.asked) > QUESTIONS:
            del self.asked[next(iter(self.asked))]

    def _key(self, call: Content) -> Any:
        return self.session_id, call.call_id, call.name, to_json(said.call_args(call))

    async def answered(self, messages: Sequence[Message]) -> None:
        """What a human says of the calls that were left to him. Those that he refuses are over."""
        for answer in said.answers(messages):
            call = answer.function_call
            if call is None or (call.additional_properties or {}).get("server_label"):
                continue  # a hosted tool's
            if answer.approved is True:
                self.wanted.append(call)
                self.approved.add(call.call_id)
            else:
                args = said.call_args(call)
                await drive(
                    self.turn.tool(call.name, args, call.call_id, _not_run, proposed="ask", ask=_refused).work()
                )


class Call:
    """One call, under hooks."""

    def __init__(self, loop: Loop, context: FunctionInvocationContext, call_next: Next) -> None:
        self.loop, self.context, self.call_next = loop, context, call_next
        self.native = context.arguments
        self.given = said.arguments(self.native)
        function, call_id = context.function, context.metadata.get("call_id")
        self.call = loop.matching(function.name, self.given) if call_id is None else None
        self.approved = loop.was_approved(self.call, context)
        self.shown = _shown(loop.asked_about(self.call, context))  # the questions that were answered with it
        self.ended: MiddlewareTermination | None = None
        self.told = loop.turn.tool(
            function.name, self.given, call_id or (self.call and self.call.call_id), self._run, read=said.readable,
            ask=self._ask, proposed="ask" if self.approved and _requires(function) else "allow", through=THROUGH,
            **({"kind": function.kind} if function.kind in KINDS else {}),
        )  # fmt: skip

    async def work(self) -> None:
        context, told = self.context, self.told
        if not await told.judged() or not await self._passes():
            called = await drive(told.finish())
            context.result = said.result(called.output, context.result) if called.replaced else called.result()
        if self.ended is not None:
            raise self.ended

    async def _passes(self) -> bool:
        """Have the framework do it. Whether nobody wants to hear of that, also by now."""
        told = self.told
        told.began = monotonic()
        try:
            output = await self._run(thaw(told.args))  # which are its own to change
        except THROUGH:
            raise
        except (Exception, CancelledError) as error:
            if told.free:
                if isinstance(error, Exception):
                    told.passed(error=error)
                raise
            told.ran(partial(_raise, error))
            return False
        self.context.result = output
        if not told.free:
            told.ran(lambda: output)
            return False
        told.passed(output)
        return True

    async def _run(self, args: dict[str, Any]) -> Any:
        context = self.context
        context.arguments = self.native if args == self.given else args
        inside = INSIDE.set(self.loop.turn)
        try:
            await self.call_next()
        except MiddlewareTermination as termination:  # a tool that ends the run has a result all the same
            self.ended = termination
            return termination.result if isawaitable(context.result) else context.result or termination.result
        finally:
            INSIDE.reset(inside)
        return context.result

    def _ask(self, decision: Decision[Any] | None) -> Approval:
        loop, given = self.loop, self.given
        args = given if decision is None else thaw(decision.step.args)
        questions = () if decision is None else decision.questions
        if self.approved and args == given and {*questions} <= self.shown:  # this very call is what a human has seen
            return Approval("allow")
        asked = self.call or loop.known(self.context)
        if loop.turn.parent is not None or asked is None:
            return Approval("deny", None, "there is nobody whom a subagent could ask")
        if not loop.turn.requests and not ASKS_AGAIN:
            return Approval("deny", None, "it is not what was approved")
        question = _question(asked, None if args == given else args, decision)
        loop.remember(question)
        raise UserInputRequiredException([question])


def _raise(error: BaseException) -> NoReturn:
    raise error


def _shown(call: Content | None) -> set[Any]:
    """The questions that a human was shown with a call."""
    questions = None if call is None else (call.additional_properties or {}).get(OURS)
    return {tuple(one) for one in questions} if isinstance(questions, list) else set()


def _requires(function: Any) -> bool:
    return bool(function.approval_mode == "always_require")


def _refused(decision: Decision[Any] | None) -> Approval:
    return Approval("deny", None, "a human has refused it")


def _not_run(args: Any) -> NoReturn:
    raise FairleadError("a human has refused it")  # if nothing else, this keeps it from running


def _question(call: Content, args: dict[str, Any] | None, decision: Decision[Any] | None) -> Content:
    """What a human is asked: the call, with the arguments that the tool would get."""
    hook, reason = (None, None) if decision is None else (decision.hook, decision.reason)
    questions = [] if decision is None else [list(one) for one in decision.questions]
    asked = Content.from_function_call(
        call.call_id, call.name, arguments=call.arguments if args is None else args,
        additional_properties={**(call.additional_properties or {}), OURS: questions},
    )  # fmt: skip
    asked.id = call.id
    about = {"hook": hook, "reason": reason}
    return Content.from_function_approval_request(call.id or call.call_id, asked, additional_properties=about)
