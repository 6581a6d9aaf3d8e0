"""Microsoft Agent Framework: agents that run under hooks, by one agent middleware.

`Fairlead` is what a user adds. Each run of an agent has a `_Run` of its own, which puts a chat middleware and a
function middleware into it, after those of the agent and its client: what they have changed is judged, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
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

from ...errors import FairleadError
from ...lifecycle import Agent
from ...registry import Hooks
from ...session import new_id
from ..framework import WHOLE, Framework
from ..model import as_text
from ..turn import Runs, Turn
from ..work import Closes, Work, drive
from . import messages as said
from .asking import ask_model, close, replay
from .tools import INSIDE, Loop, Next

FRAMEWORK = Framework(
    name="agent_framework",
    title="Microsoft Agent Framework",
    package="agent-framework-core",
    versions=">=1.0,<2",
    can=WHOLE,
    notes=(
        "A tool that the provider runs itself is no tool call here: it is part of the model's answer.",
        "A tool with approval_mode='always_require' comes to hooks when a human has approved or refused it.",
        "A call of a tool that is not there is answered by the framework, and hooks do not hear of it.",
    ),
)

JUDGING = ("before_turn_end", "before_response", "before_output")
"""Events at which a hook may still object to an answer: none of it is streamed before they are over."""
MODEL_EVENTS = ("before_model", "after_model")
TOOL_EVENTS = (
    "tool_requested", "before_tool", "before_permission", "after_permission", "after_tool", "after_tool_batch",
)  # fmt: skip


class Fairlead(Closes, AgentMiddleware):
    """Runs an agent under hooks: `Agent(client=client, middleware=[Fairlead(hooks)])`.

    It belongs to the agent, or to one run (`agent.run(..., middleware=[Fairlead(hooks)])`), not to the chat client.
    `models` are the chat clients that a hook may switch to, by name; other names go to the agent's own client, as its
    `model` option. An `AgentSession` is one session, which ends with `aclose()`, or at the end of `async with`; a run
    without one is a session of its own. `session_id` makes one session of all runs that have none.
    """

    def __init__(
        self,
        hooks: Hooks | None = None,
        *,
        models: Mapping[str, Any] | None = None,
        session_id: str | None = None,
        **about: Any,
    ) -> None:
        self.runs = Runs(hooks, FRAMEWORK, asks=True, **({"session_id": session_id} if session_id else {}), **about)
        self.models = dict(models or {})
        self.asked: dict[Any, None] = {}  # questions that wait for a human

    async def process(self, context: AgentContext, call_next: Next) -> None:
        await _Run(self, context, call_next).work()

    def _closing(self) -> Work[None]:
        return self.runs.closing()


class _Run:
    """One run of an agent."""

    def __init__(self, fairlead: Fairlead, context: AgentContext, call_next: Next) -> None:
        session_id = None if context.session is None else context.session.session_id
        self.runs, self.loop = fairlead.runs, Loop(fairlead.models, fairlead.asked, session_id)
        self.context, self.call_next = context, call_next
        self.name: str = getattr(context.agent, "name", None) or "agent"
        parent = INSIDE.get()
        self.parent = parent if parent is not None and parent.runs.hooks is self.runs.hooks else None
        self.terminated: MiddlewareTermination | None = None
        self.spent: Any = None
        self.final: AgentResponse | None = None

    # --- the run ----------------------------------------------------------------------------

    async def work(self) -> None:
        """All of it; or, where the answer is streamed, all that comes before the stream."""
        context = self.context
        self._check_client()
        if (refused := await self._start()) is not None:
            self._result(_spoken(refused))
            return
        try:
            if not await self._begin():
                self._result(await self._give_up())
                return
            others = context.client_kwargs.get("middleware") or ()
            context.client_kwargs["middleware"] = [*others, _Tools(self.loop), _Model(self.loop)]
            await self._next()
            if not context.stream:
                await self._rounds()
            elif context.result is not None:
                context.result = ResponseStream(self._stream(context.result), finalizer=lambda _: self.final)
        except BaseException as error:
            await self._fail(error)
        if self.terminated is not None:
            raise self.terminated  # by another middleware, which wants nobody to come after it

    async def _rounds(self) -> None:
        """The agent goes on as long as hooks want it to."""
        context = self.context
        while (feedback := await self._ending(context.result)) is not None:
            if not await self._go_on(context.result, feedback):
                self.final = await self._give_up()
                break
            await self._next()
        context.result = self.final

    async def _stream(self, stream: Any) -> AsyncIterator[Any]:
        """The same, streamed. Where a hook may object to the answer, nothing of it is shown before the end."""
        holds = self.parent is not None or self.runs.judges(*JUDGING)
        held: list[Any] = []
        try:
            while True:
                async for update in stream:
                    if holds:
                        held.append(update)
                    else:
                        yield update
                given = await stream.get_final_response()
                if (feedback := await self._ending(given)) is None:
                    break
                held.clear()
                if not await self._go_on(given, feedback):
                    self.final = await self._give_up()
                    break
                await self._next()
                stream = self.context.result
            if holds and self.final is not given:
                held = said.agent_updates(self.final)
            for update in held:
                yield update
        except GeneratorExit:  # nobody reads on
            await drive(self.loop.turn.failed(asyncio.CancelledError()))
            await close(stream)
            raise
        except BaseException as error:
            await self._fail(error)

    async def _next(self) -> None:
        try:
            await self.call_next()
        except MiddlewareTermination as ended:
            self.terminated = ended

    async def _fail(self, error: BaseException) -> NoReturn:
        error = self.loop.failure or error
        await drive(self.loop.turn.failed(error))
        raise error from error.__cause__  # and not because of whatever has carried it here

    def _result(self, response: AgentResponse) -> None:
        stream = self.context.stream
        self.context.result = replay(said.agent_updates(response), lambda _: response) if stream else response

    def _check_client(self) -> None:
        client = getattr(self.context.agent, "client", None)
        for layer, events in ((ChatMiddlewareLayer, MODEL_EVENTS), (FunctionInvocationLayer, TOOL_EVENTS)):
            if not isinstance(client, layer) and self.runs.judges(*events):
                raise FairleadError(
                    f"the agent {self.name!r} has no chat client on which middleware works ({layer.__name__}): "
                    f"hooks on {', '.join(events)} would not be heard"
                )

    # --- the beginning ----------------------------------------------------------------------

    async def _start(self) -> str | None:
        """The turn, in its session; or a subagent's, in that of whoever asks it. Why not, if it may not start."""
        context, refused = self.context, None
        if self.parent is None:
            session_id = None if context.session is None else context.session.session_id
            turn = self.runs.turn(session_id, agent=self.name, streaming=context.stream)
            known = turn.session.agent
            if known is not None and known.name != self.name:  # another agent goes on with the conversation
                turn.session.agent = Agent(new_id("agent"), self.name)
        else:
            given = as_text(said.shown(said.said_by(context.messages)))
            turn, message, refused = await drive(self.parent.helper(self.name, given))
            if message is not None and message != given:
                context.messages = said.saying(context.messages, said.user(message))
        self.loop.turn = turn
        return refused

    async def _begin(self) -> bool:
        """Whether the agent is to go to work."""
        context, turn = self.context, self.loop.turn
        contents = said.said_by(context.messages)
        given, prompt = said.shown(contents), self._instructions()
        source = "user" if contents and not turn.extends else "continuation"
        begun = await drive(turn.begin(given, source=source, system_prompt=prompt, committed_len=len(context.messages)))
        if turn.over:
            return False
        if begun.input != given:
            context.messages = said.saying(context.messages, Message("user", said.meant(begun.input, contents)))
        if begun.system_prompt != prompt:
            self.loop.prompt = prompt or "", begun.system_prompt or ""
        # What hooks have to say by now is kept with the conversation, as what the user says is.
        context.messages = [*context.messages, *(said.user(text.signed) for text in turn.waiting)]
        turn.waiting = []
        await self.loop.answered(context.messages)
        return True

    def _option(self, name: str) -> list[Any]:
        """What the agent, and what the run, has for an option."""
        places = (getattr(self.context.agent, "default_options", None), self.context.options)
        return [place[name] for place in places if place and place.get(name)]

    def _instructions(self) -> str | None:
        return "\n".join(self._option("instructions")) or None

    # --- the end ----------------------------------------------------------------------------

    async def _ending(self, response: AgentResponse | None) -> str | None:
        """What the agent is told instead of ending. If nothing, `final` is what it has to say in the end."""
        if self.loop.failure is not None:
            raise self.loop.failure
        turn, response = self.loop.turn, response or AgentResponse(messages=[])
        over, asks = turn.over, bool(response.user_input_requests)
        if asks:  # a human; it goes on in another run
            turn.stop(None)
        feedback = await drive(turn.ending())
        if feedback is not None:
            return feedback
        if asks and response.text:
            turn.over = over
        if self.spent is not None:
            response.usage_details = add_usage_details(self.spent, response.usage_details)
        self.final = await self._end(response)
        return None if asks or self.parent is None else await self._stops(turn)

    async def _end(self, response: AgentResponse) -> AgentResponse:
        turn = self.loop.turn
        ended = await drive(turn.end(response.text))
        if (ended.text or "") == response.text:
            return response
        wanted = self._option("response_format")
        return said.answered(response, ended.text, None if turn.over or not wanted else wanted[-1])

    async def _give_up(self) -> AgentResponse:
        """A hook wants none of it."""
        response = await self._end(AgentResponse(messages=[]))
        if self.parent is not None:
            await drive(self.parent.helper_stops(self.loop.turn))
        return response

    async def _stops(self, turn: Turn) -> str | None:
        """A subagent stops; or goes on, in another turn."""
        feedback = None if self.parent is None else await drive(self.parent.helper_stops(turn))
        if feedback is not None:
            self.loop.turn = turn.again()
        return feedback

    async def _go_on(self, response: AgentResponse, feedback: str) -> bool:
        """What the agent has said, and what it is told, are part of the conversation."""
        context, session = self.context, self.context.session
        self.spent = add_usage_details(self.spent, response.usage_details)
        providers = getattr(context.agent, "context_providers", None) or ()
        if session is not None and (
            session.service_session_id or any(isinstance(p, HistoryProvider) and p.load_messages for p in providers)
        ):
            context.messages = [said.user(feedback)]  # the rest is kept there
        else:
            context.messages = [*context.messages, *response.messages, said.user(feedback)]
        return self.loop.turn.started or await self._begin()


def _spoken(text: str) -> AgentResponse:
    return AgentResponse(messages=[Message("assistant", [text])])


class _Tools(FunctionMiddleware):
    def __init__(self, loop: Loop) -> None:
        self.loop = loop

    async def process(self, context: FunctionInvocationContext, call_next: Next) -> None:
        await self.loop.call_tool(context, call_next)


class _Model(ChatMiddleware):
    def __init__(self, loop: Loop) -> None:
        self.loop = loop

    async def process(self, context: ChatContext, call_next: Next) -> None:
        await ask_model(self.loop, context, call_next)
