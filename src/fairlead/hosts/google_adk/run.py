"""Invocations of Google ADK under hooks: the agents at work in them, and work that stops where the framework works."""

from __future__ import annotations

import inspect
from asyncio import CancelledError
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

from google.adk.agents.readonly_context import ReadonlyContext
from google.adk.agents.run_config import StreamingMode
from google.adk.events.event import Event
from google.adk.models.llm_request import LlmRequest
from google.genai import types

from ...decision import Context
from ...errors import FairleadError
from ..model import as_text
from ..tool_call import Called, ToolCall
from ..turn import Asked, Turn
from ..work import Work, drive

if TYPE_CHECKING:
    from . import Fairlead

CALLING: ContextVar[Calling | None] = ContextVar("fairlead_google_adk_call", default=None)
"""The tool call that runs here: an agent that starts inside of it is its helper."""


class Calling(NamedTuple):
    """A tool call that runs."""

    plugin: Fairlead
    run: Run
    line: Line
    args: dict[str, Any]

    @property
    def message(self) -> str:
        """What an agent is asked, if the tool is one."""
        return as_text(self.args.get("request", self.args))


# --- work -----------------------------------------------------------------------------------------


class Native(NamedTuple):
    """Here the framework does its part: it asks the model, or runs the tool, with these arguments."""

    args: dict[str, Any]


async def advance(work: Work[Any], value: Any = None, error: BaseException | None = None) -> Any:
    """Go on with some work, to its end or to where the framework does its part: then this gives a `Native`."""
    while True:
        try:
            wanted = work.send(value) if error is None else work.throw(error)
        except StopIteration as end:
            return end.value
        value = error = None
        try:
            value = await wanted[0].dispatch(wanted[1]) if isinstance(wanted, tuple) else wanted()
            if inspect.isawaitable(value):
                value = await value
            if isinstance(value, Native):
                return value
        except BaseException as raised:  # the work decides what becomes of it
            error = raised


async def under_way(call: Work[Called] | ToolCall | None) -> Work[Called] | None:
    """The work of a call that the framework runs. None if it was left to the framework, and nobody listens yet."""
    if not isinstance(call, ToolCall):
        return call
    if call.free:
        return None
    work = call.finish()
    await advance(work)
    return work


# --- agents and runs ------------------------------------------------------------------------------


class Line:
    """An agent at work, or several that hand the work over: the turn, and the request to the model under way."""

    def __init__(self, turn: Turn, parent: Turn | None = None) -> None:
        self.turn, self.parent = turn, parent
        self.agent: Any = None
        self.given: Any = None  # what a helper is asked, and what it is asked instead
        self.wanted: Any = None
        self.ended = False
        self.shown: str | None = None  # the answer that the hooks have judged
        self.prompts: dict[str, tuple[str, str]] = {}  # by agent: its instruction, and what it is to be instead
        self.request = LlmRequest()
        self.model: str | None = None
        self.contents: list[types.Content] = []  # of the request, as the framework made it
        self.asking: Work[Asked] | None = None
        self.natively = self.holds = False

    async def begin(self, invocation: Any, agent: Any, given: Any, source: str = "user") -> Any:
        """A turn begins. Gives its input."""
        prompt = await _instruction(agent, invocation)
        count = len(invocation.session.events) + 1
        begun = await drive(self.turn.begin(given, source=source, system_prompt=prompt, committed_len=count))
        if begun.system_prompt != prompt:
            self.prompts[agent.name] = prompt or "", begun.system_prompt or ""
        return begun.input

    async def begin_helper(self, invocation: Any, agent: Any) -> None:
        wanted = await self.begin(invocation, agent, self.wanted)
        if self.turn.over:
            await self.end(None)
        elif wanted != self.given:  # which stands in the session as it was given
            self.turn.waiting.insert(0, Context(as_text(wanted), "fairlead"))

    async def add(self, context: Any, *said: tuple[str, types.Content]) -> None:
        """Add to the conversation what the framework does not. It stands in the session; the user is not shown it."""
        invocation = invocation_of(context)
        for author, content in said:
            self.contents.append(content)
            event = Event(
                invocation_id=invocation.invocation_id, author=author, branch=invocation.branch, content=content
            )
            if getattr(invocation, "isolation_scope", None) is not None:
                event.isolation_scope = invocation.isolation_scope
            await invocation.session_service.append_event(session=invocation.session, event=event)

    async def ending(self) -> None:
        """The turn is about to end where the framework cannot be made to go on."""
        can = dict(self.turn.session.capabilities or {})
        can["before_turn_end"] = frozenset(can["before_turn_end"]) - {"extend"}
        self.turn.session.capabilities = can
        await drive(self.turn.ending())

    async def end(self, text: str | None) -> str | None:
        """The turn is over. `shown` is what is to be seen of it; gives what a helper is told for it to go on."""
        ended = await drive(self.turn.end(text))
        self.ended, self.shown = True, ended.text
        return None if self.parent is None else await drive(self.parent.helper_stops(self.turn))

    async def end_quietly(self) -> None:
        """The turn is over, and there was no answer; or it was that of others, who have turns of their own."""
        if not self.ended:
            await self.ending()
            self.turn.over, self.turn.said = True, None
            await self.end(None)

    async def fail(self, error: BaseException) -> None:
        """What ended the turn early is told of, if it has not ended before."""
        if self.ended:
            return
        self.ended = True
        await drive(self.turn.failed(error))
        if self.parent is not None:
            with suppress(FairleadError):
                await drive(self.parent.helper_stops(self.turn))


async def helper_of(parent: Turn, name: str, given: Any) -> Line:
    """An agent is about to work for another: `ended`, if it may not."""
    message = as_text(given)
    turn, wanted, refused = await drive(parent.helper(name, message))
    line = Line(turn, parent)
    line.given, line.wanted = given, given if wanted == message else wanted
    line.ended, line.shown = refused is not None, refused
    return line


class Run:
    """An invocation: the agents at work in it, and the calls that are not over."""

    def __init__(self, invocation: Any, line: Line) -> None:
        root = getattr(invocation, "agent", None)
        self.alive = ref(invocation)
        self.line = line
        self.lines: dict[tuple[str, str | None], Line] = {}  # by agent and branch: one agent may work twice at once
        self.root = getattr(root, "name", None)
        self.is_chat = hasattr(root, "canonical_model")  # no workflow, in which each agent has an answer of its own
        self.streams = streams(invocation)
        self.calls: dict[Any, Work[Called] | ToolCall] = {}  # by context, as ids may recur; those of delegations by id
        self.unanswered = False
        self.broken: FairleadError | None = None
        self.error: BaseException | None = None

    @property
    def nested(self) -> bool:
        """Whether it runs inside a tool of another, where nobody can answer a question."""
        return self.line.parent is not None

    def line_of(self, name: str, branch: str | None) -> Line:
        return self.lines.get((name, branch)) or self.lines.get((name, None)) or self.line

    def call_of(self, call_id: str | None) -> Any:
        """The key in `calls` of a call that is not over."""
        keys = (key for key in self.calls if getattr(key, "function_call_id", key) == call_id)
        return next(keys, None)

    async def hand_over(self, line: Line, name: Any) -> str | None:
        """Another agent goes on with the work. Gives why not, if it may not."""
        why = await drive(line.turn.hand_over(str(name)))
        if why is None:
            self.lines[str(name), None] = line
        return why

    async def end(self) -> None:
        await self._abandon()
        for line in self._latest_first():
            await line.end_quietly()

    async def fail(self, error: BaseException) -> None:
        """Whatever ended the run early is told of, as far as it has not been."""
        await self._abandon()
        for line in self._latest_first():
            await line.fail(error)

    async def _abandon(self) -> None:
        """The calls that are under way have no end but this one."""
        calls, self.calls = self.calls, {}
        for call in calls.values():
            with suppress(CancelledError, Exception):
                if (work := await under_way(call)) is not None:
                    await advance(work, error=CancelledError())

    def _latest_first(self) -> list[Line]:
        """The agents at work, those that were started last first."""
        return list(dict.fromkeys([*reversed(self.lines.values()), self.line]))


# --- what the framework knows of an invocation ----------------------------------------------------


def invocation_of(context: Any) -> Any:
    """The invocation of a callback's context. Older versions have no public way to it."""
    public = getattr(context, "get_invocation_context", None)
    if public is not None:
        return public()
    return context if hasattr(context, "session_service") else context._invocation_context


def branch_of(context: Any) -> str | None:
    """Where in an invocation this is. Newer contexts know it; the invocation's is a copy that takes its time."""
    try:
        return context.branch  # type: ignore[no-any-return]
    except AttributeError:
        return invocation_of(context).branch  # type: ignore[no-any-return]


def key_of(invocation: Any) -> tuple[str, str, str]:
    """A session of the framework's: two users may have sessions of the same id."""
    session = invocation.session
    return session.app_name, session.user_id, session.id


def streams(invocation: Any) -> bool:
    return invocation.run_config is not None and invocation.run_config.streaming_mode == StreamingMode.SSE


def cause_of(error: BaseException) -> BaseException:
    """What went wrong, without what the framework wraps it in."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, FairleadError):
        cause = cause.__cause__
    return cause or error


async def _instruction(agent: Any, invocation: Any) -> str | None:
    """The instruction of an agent, as the model will read it."""
    found = getattr(agent, "instruction", None)
    context = ReadonlyContext(invocation)
    if callable(found):
        found = found(context)
        return str(await found if inspect.isawaitable(found) else found)
    if not found or "{" not in found:
        return found or None
    from google.adk.utils.instructions_utils import inject_session_state  # which imports much of the framework

    with suppress(KeyError, ValueError):  # of which the framework tells
        return str(await inject_session_state(found, context))
    return str(found)
