"""The adapter for Microsoft Agent Framework: an agent middleware.

`Fairlead` is what a user adds. Each run of an agent has an `AgentFrameworkRun`. It adds a chat middleware and a
function middleware to the run, after those of the agent and its client, so that hooks judge what these have changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import nullcontext
from typing import Any, NoReturn

from agent_framework import (
    AgentContext,
    AgentMiddleware,
    AgentResponse,
    ChatContext,
    ChatMiddleware,
    ChatMiddlewareLayer,
    FunctionInvocationContext,
    FunctionInvocationLayer,
    FunctionMiddleware,
    HistoryProvider,
    Message,
    MiddlewareTermination,
    ResponseStream,
    add_usage_details,
)

from ....errors import FairleadError
from ....lifecycle import Agent
from ....registry import Hooks
from ....session import new_id
from ..adapter import Adapter, AgentRun, without
from ..flow import run_flow
from ..framework import WHOLE, Framework
from . import messages
from .boundaries import ADD, WORKFLOW, wrap
from .model_calls import call_model, close, replay
from .tool_calls import INSIDE, MiddlewareState, Next, call_handoff, call_tool

FRAMEWORK = Framework(
    name="agent_framework",
    title="Microsoft Agent Framework",
    package="agent-framework-core",
    versions=">=1.0,<2",
    can=WHOLE,
    notes=(
        "A tool that the provider runs itself is no tool call here: it is part of the model's answer.",
        "Hooks see a call of a tool with approval_mode='always_require' when a human has approved or refused it.",
        "The framework answers a call of a tool that does not exist, and hooks do not see it.",
    ),
)

JUDGING = ("before_turn_end", "before_response", "before_output")
"""Events at which a hook may refuse or change an answer. If there is such a hook, the answer is not streamed live."""
MODEL_EVENTS = ("before_model", "after_model")
TOOL_EVENTS = (
    "tool_requested", "before_tool", "before_permission", "after_permission", "after_tool", "after_tool_batch",
)  # fmt: skip


class Fairlead(Adapter, AgentMiddleware):
    """Runs an agent under hooks: `Agent(client=client, middleware=[Fairlead(hooks)])`.

    It belongs to the agent, or to one run (`agent.run(..., middleware=[Fairlead(hooks)])`), not to the chat client.

    - `models` names the chat clients that a hook may switch to. Other names go to the agent's own client, as its
      `model` option.
    - An `AgentSession` is one session. `aclose()` and `async with` end it. A run without one is a session of its own.
    - `session_id` makes one session of all runs that have none.
    """

    framework = FRAMEWORK

    def __init__(self, hooks: Hooks | None = None, **options: Any) -> None:
        super().__init__(hooks, **options)
        self.questions: dict[Any, None] = {}  # that wait for a human

    async def process(self, context: AgentContext, call_next: Next) -> None:
        await AgentFrameworkRun(self, context, call_next).run()


wrap(lambda middleware: isinstance(middleware, Fairlead), lambda middleware: isinstance(middleware, _ModelMiddleware))


class AgentFrameworkRun(AgentRun):
    """One run of an agent."""

    def __init__(self, fairlead: Fairlead, context: AgentContext, call_next: Next) -> None:
        session_id = None if context.session is None else context.session.session_id
        self.sessions = fairlead.sessions
        self.state = MiddlewareState(fairlead.models, fairlead.questions, session_id, context.agent)
        self.context, self.call_next = context, call_next
        self.name: str = getattr(context.agent, "name", None) or "agent"
        parent = INSIDE.get()
        self.parent = parent if parent is not None and parent.sessions.hooks is self.sessions.hooks else None
        self.terminated: MiddlewareTermination | None = None
        self.usage: Any = None  # of answers that the caller does not get to see
        self.final: AgentResponse | None = None

    # --- the run ----------------------------------------------------------------------------

    async def run(self) -> None:
        """Run the agent. Where the answer is streamed, do all that comes before the stream."""
        context = self.context
        if self._is_second():
            await self.call_next()
            return
        self._check_client()
        await self._start()
        if self.refusal is not None:
            self._set_result(AgentResponse(messages=[Message("assistant", [self.refusal])]))
            return
        try:
            if not await self._begin():
                self._set_result(await self._end_refused())
                return
            self._add()
            setattr(context, ADD, self._add)
            await self._next()
            if not context.stream:
                await self._rounds()
            elif context.result is not None:
                context.result = ResponseStream(self._stream(context.result), finalizer=lambda _: self.final)
        except BaseException as error:
            await self._raise(error)
        if self.terminated is not None:
            raise self.terminated  # another middleware lets no other run after it

    def _add(self) -> None:
        """Add our middleware to the run, inside of all other."""
        context, state = self.context, self.state
        kwargs = context.client_kwargs or {}
        others = [one for one in kwargs.get("middleware") or () if not isinstance(one, _OURS)]
        state.handoffs = _handoffs([*others, *(getattr(context.agent, "context_providers", None) or ())])
        first = [_HandoffMiddleware(state)] if state.handoffs else []
        ours = [_ToolMiddleware(state), _ModelMiddleware(state)]
        context.client_kwargs = {**kwargs, "middleware": [*first, *others, *ours]}

    async def _rounds(self) -> None:
        """Run the agent again as long as hooks extend the turn."""
        context = self.context
        while (feedback := await self._conclude(context.result)) is not None:
            if not await self._continue(context.result, feedback):
                self.final = await self._end_refused()
                break
            await self._next()
        context.result = self.final

    async def _stream(self, stream: Any) -> AsyncIterator[Any]:
        """Do the same, streamed. Where a hook may refuse or change the answer, it is shown at the end."""
        holds = self.parent is not None or self.sessions.judges(*JUDGING)
        held: list[Any] = []
        try:
            while True:
                async for update in stream:
                    if holds:
                        held.append(update)
                    else:
                        yield update
                response = await stream.get_final_response()
                if (feedback := await self._conclude(response)) is None:
                    break
                held.clear()
                if not await self._continue(response, feedback):
                    self.final = await self._end_refused()
                    break
                await self._next()
                stream = self.context.result
            if holds and self.final is not response:
                held = messages.agent_updates(self.final)
            for update in held:
                yield update
        except GeneratorExit:  # the reader of the stream has left
            await run_flow(self.fail(asyncio.CancelledError()))
            await close(stream)
            raise
        except BaseException as error:
            await self._raise(error)

    async def _next(self) -> None:
        try:
            await self.call_next()
        except MiddlewareTermination as termination:
            self.terminated = termination

    async def _raise(self, error: BaseException) -> NoReturn:
        """Fail the run with an error, or with that of a hook which the framework has wrapped."""
        error = self.state.failure or error
        await run_flow(self.fail(error))
        raise error from error.__cause__  # not from the framework's wrapper

    def _set_result(self, response: AgentResponse) -> None:
        stream = self.context.stream
        self.context.result = replay(messages.agent_updates(response), lambda _: response) if stream else response

    def _is_second(self) -> bool:
        """Whether another `Fairlead` with the same hooks governs this run already. With other hooks, it is an error."""
        for one in self.context.client_kwargs.get("middleware") or ():
            if isinstance(one, _ToolMiddleware) and one.state.agent is self.context.agent:
                if one.state.turn.sessions.hooks is self.sessions.hooks:
                    return True
                raise FairleadError(
                    f"the agent {self.name!r} runs under another Fairlead already; register all hooks with one Hooks"
                )
        return False

    def _check_client(self) -> None:
        client = getattr(self.context.agent, "client", None)
        for layer, events in ((ChatMiddlewareLayer, MODEL_EVENTS), (FunctionInvocationLayer, TOOL_EVENTS)):
            if not isinstance(client, layer) and self.sessions.judges(*events):
                raise FairleadError(
                    f"the agent {self.name!r} has no chat client on which middleware works ({layer.__name__}): "
                    f"hooks on {', '.join(events)} would not run"
                )

    # --- the beginning ----------------------------------------------------------------------

    async def _start(self) -> None:
        """Open the turn, in its session; or that of a subagent, in its parent's."""
        context = self.context
        if self.parent is None:
            session_id = None if context.session is None else context.session.session_id
            session_id = WORKFLOW.get() or session_id
            turn = self.sessions.turn(session_id, agent=self.name, streaming=context.stream)
            known = turn.session.agent
            if known is not None and known.name != self.name:  # another agent continues the conversation
                turn.session.agent = Agent(new_id("agent"), self.name)
            self.turn = turn
        else:
            message = messages.shown(messages.input_of(context.messages))
            changed = await run_flow(self.start_subagent(self.parent, self.name, message))
            if changed is not message:
                context.messages = messages.with_input(context.messages, messages.user(changed))
        self.state.turn = self.turn

    async def _begin(self) -> bool:
        """Begin the turn. Gives whether the agent is to run."""
        context, turn = self.context, self.turn
        contents = messages.input_of(context.messages)
        message, prompt = messages.shown(contents), self._instructions()
        source = "user" if contents and not turn.restarts else "continuation"
        turn_input = await run_flow(
            turn.begin(message, source=source, system_prompt=prompt, committed_len=len(context.messages))
        )
        if turn.over:
            return False
        if turn_input.input != message:
            changed = Message("user", messages.contents_from(turn_input.input, contents))
            context.messages = messages.with_input(context.messages, changed)
        if turn_input.system_prompt != prompt:
            self.state.prompt = prompt or "", turn_input.system_prompt or ""
        # Context that hooks have added by now is kept in the conversation, as the user's input is.
        context.messages = [*context.messages, *(messages.user(text.signed) for text in turn.waiting)]
        turn.waiting = []
        await self.state.take_answers(context.messages)
        return True

    def _option(self, name: str) -> list[Any]:
        """The values of an option: the agent's, and the run's."""
        places = (getattr(self.context.agent, "default_options", None), self.context.options)
        return [place[name] for place in places if place and place.get(name)]

    def _instructions(self) -> str | None:
        return "\n".join(self._option("instructions")) or None

    # --- the end ----------------------------------------------------------------------------

    async def _conclude(self, response: AgentResponse | None) -> str | None:
        """End the turn, with `final` as the answer. Gives what the agent is to continue with, if it is to."""
        if self.state.failure is not None:
            raise self.state.failure
        turn, response = self.turn, response or AgentResponse(messages=[])
        over, asks = turn.over, bool(response.user_input_requests)
        if asks:  # the agent asks a human, and continues in another run
            turn.stop(None)
        pending = self.state.handed_over  # then another agent has the conversation, and this one cannot go on with it
        with without(turn, "before_turn_end", "extend") if pending else nullcontext():
            feedback = await run_flow(turn.ending())
        if feedback is not None and not pending:
            return feedback
        if asks and response.text:
            turn.over = over
        if self.usage is not None:
            response.usage_details = add_usage_details(self.usage, response.usage_details)
        self.final = await self._end_with(response)
        feedback = None if asks or pending else await run_flow(self.stop())
        if feedback is not None:
            self.renew()
            self.state.turn = self.turn
        return feedback

    async def _end_with(self, response: AgentResponse) -> AgentResponse:
        output = await run_flow(self.end(response.text))
        if (output.text or "") == response.text:
            return response
        formats = self._option("response_format")
        changed = messages.agent_response(response, output.text, None if self.turn.over or not formats else formats[-1])
        if self.state.handed_over and not self.turn.over:
            changed.messages.append(response.messages[-1])  # the framework reads there who gets the conversation
        return changed

    async def _end_refused(self) -> AgentResponse:
        """End a turn that hooks have refused."""
        response = await self._end_with(AgentResponse(messages=[]))
        await run_flow(self.stop())
        return response

    async def _continue(self, response: AgentResponse, feedback: str) -> bool:
        """Add the answer and the feedback to the conversation. Gives whether the agent is to run again."""
        context, session = self.context, self.context.session
        self.usage = add_usage_details(self.usage, response.usage_details)
        providers = getattr(context.agent, "context_providers", None) or ()
        if session is not None and (
            session.service_session_id or any(isinstance(p, HistoryProvider) and p.load_messages for p in providers)
        ):
            context.messages = [messages.user(feedback)]  # the service or the provider keeps the rest
        else:
            context.messages = [*context.messages, *response.messages, messages.user(feedback)]
        return self.turn.started or await self._begin()


def _handoffs(parts: list[Any]) -> dict[str, str]:
    """The handoff tools of an agent, and whom each calls: from the framework's middleware that carries them out."""
    found: dict[str, str] = {}
    for part in parts:
        found |= getattr(getattr(part, "_middleware", part), "_handoff_functions", None) or {}
    return found


class _HandoffMiddleware(FunctionMiddleware):
    """Stands before the framework's own, which lets no other middleware see a handoff."""

    def __init__(self, state: MiddlewareState) -> None:
        self.state = state

    async def process(self, context: FunctionInvocationContext, call_next: Next) -> None:
        if context.function.name in self.state.handoffs:
            await call_handoff(self.state, context, call_next)
        else:
            await call_next()


class _ToolMiddleware(FunctionMiddleware):
    def __init__(self, state: MiddlewareState) -> None:
        self.state = state

    async def process(self, context: FunctionInvocationContext, call_next: Next) -> None:
        if context.function.name in self.state.handoffs:  # it has been judged
            await call_next()
        else:
            await call_tool(self.state, context, call_next)


class _ModelMiddleware(ChatMiddleware):
    def __init__(self, state: MiddlewareState) -> None:
        self.state = state

    async def process(self, context: ChatContext, call_next: Next) -> None:
        await call_model(self.state, context, call_next)


_OURS = (_HandoffMiddleware, _ToolMiddleware, _ModelMiddleware)
