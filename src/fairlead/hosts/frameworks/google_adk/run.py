"""Invocations of Google ADK under hooks, and the runs of agents in them."""

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

from ....decision import Context
from ....errors import FairleadError
from ..adapter import AgentRun, without
from ..flow import Call, Flow, Pause, run_flow
from ..messages import as_text
from ..tool_call import ToolCall, ToolResult
from ..turn import ModelResult, Turn

if TYPE_CHECKING:
    from . import Fairlead

RUNNING: ContextVar[RunningTool | None] = ContextVar("fairlead_google_adk_call", default=None)
"""The tool call that runs here: an agent that starts inside of it is a subagent."""


class RunningTool(NamedTuple):
    """A tool call that runs."""

    plugin: Fairlead
    runs: InvocationRuns
    run: AdkRun
    tool: Any
    args: dict[str, Any]
    call: ToolCall

    @property
    def message(self) -> str:
        """The message for an agent, if the tool is one."""
        return as_text(self.args.get("request", self.args))


# --- flows ----------------------------------------------------------------------------------------


class RunNatively(Pause):
    """Pauses a flow while the framework calls the model, or runs the tool, with these arguments."""

    args: dict[str, Any]


async def flow_of(call: Flow[ToolResult] | ToolCall | None) -> Flow[ToolResult] | None:
    """The flow of a call that the framework runs. None if no hook subscribes to its result yet."""
    if not isinstance(call, ToolCall):
        return call
    if call.runs_natively:
        return None
    flow = call.finish()
    await run_flow(flow)
    return flow


# --- agents and invocations -----------------------------------------------------------------------


class AdkRun(AgentRun):
    """An agent's run, or that of several that hand the work over: the turn, and the current request to the model."""

    def __init__(self, turn: Turn | None = None) -> None:
        if turn is not None:
            self.turn = turn
        self.agent: Any = None
        self.original: Any = None  # the message of a subagent,
        self.message: Any = None  # and what hooks made of it
        self.shown: str | None = None  # the answer, as hooks have judged it
        self.prompts: dict[str, tuple[str, str]] = {}  # by agent: its instruction, and that of hooks
        self.request = LlmRequest()
        self.model: str | None = None
        self.contents: list[types.Content] = []  # of the request, as the framework made it
        self.model_flow: Flow[ModelResult] | None = None
        self.natively = self.holds = False

    async def begin(self, invocation: Any, agent: Any, message: Any, source: str = "user") -> Any:
        """Begin a turn. Gives its input."""
        prompt = await _instruction(agent, invocation)
        count = len(invocation.session.events) + 1
        turn_input = await run_flow(self.turn.begin(message, source=source, system_prompt=prompt, committed_len=count))
        if turn_input.system_prompt != prompt:
            self.prompts[agent.name] = prompt or "", turn_input.system_prompt or ""
        return turn_input.input

    async def begin_subagent(self, invocation: Any, agent: Any) -> None:
        message = await self.begin(invocation, agent, self.message)
        if self.turn.over:
            await self.end_with(None)
        elif message != self.original:  # the session has the original
            self.turn.waiting.insert(0, Context(as_text(message), "fairlead"))

    async def add(self, context: Any, *contents: tuple[str, types.Content]) -> None:
        """Add contents to the session that the framework does not add. The user does not see them."""
        invocation = invocation_of(context)
        for author, content in contents:
            self.contents.append(content)
            event = Event(
                invocation_id=invocation.invocation_id, author=author, branch=invocation.branch, content=content
            )
            if getattr(invocation, "isolation_scope", None) is not None:
                event.isolation_scope = invocation.isolation_scope
            await invocation.session_service.append_event(session=invocation.session, event=event)

    async def judge_turn_end(self) -> None:
        """Have hooks judge the end of a turn that the framework cannot extend."""
        with without(self.turn, "before_turn_end", "extend"):
            await run_flow(self.turn.ending())

    async def end_with(self, text: str | None) -> str | None:
        """End the turn. `shown` is the answer. Gives what a subagent is to continue with, if it is to."""
        self.shown = (await run_flow(self.end(text))).text
        return await run_flow(self.stop())

    async def end_without_answer(self) -> None:
        """End the turn without an answer, or with that of other agents, which have turns of their own."""
        if not self.ended:
            await self.judge_turn_end()
            self.turn.over, self.turn.end_message = True, None
            await self.end_with(None)

    def fail(self, error: BaseException) -> Flow[None]:
        if not self.ended:
            self.ended = True
            yield from super().fail(error)


async def start_run(parent: Turn, name: str, message: Any) -> AdkRun:
    """Start a subagent. Its run is `ended` if hooks refuse it."""
    run = AdkRun()
    run.original, run.message = message, await run_flow(run.start_subagent(parent, name, message))
    run.ended, run.shown = run.refusal is not None, run.refusal
    return run


class InvocationRuns:
    """The runs of the agents in an invocation, and the calls that are not over."""

    def __init__(self, invocation: Any, run: AdkRun) -> None:
        root = getattr(invocation, "agent", None)
        self.alive = ref(invocation)
        self.run = run
        self.by_agent: dict[tuple[str, str | None], AdkRun] = {}  # by agent and branch: an agent may run twice at once
        self.root = getattr(root, "name", None)
        self.is_chat = hasattr(root, "canonical_model")  # not a workflow, in which each agent has its own answer
        self.streams = streams(invocation)
        self.calls: dict[Any, Flow[ToolResult] | ToolCall] = {}  # by context, as ids may recur; delegations by id
        self.seen: set[Any] = set()  # the contexts of calls that have come to us before their tools
        self.unanswered = False
        self.broken: FairleadError | None = None
        self.error: BaseException | None = None

    @property
    def nested(self) -> bool:
        """Whether it runs inside a tool of another invocation, where no human can be asked."""
        return self.run.turn.parent is not None

    def run_of(self, name: str, branch: str | None) -> AdkRun:
        return self.by_agent.get((name, branch)) or self.by_agent.get((name, None)) or self.run

    def call_of(self, call_id: str | None) -> Any:
        """The key in `calls` of a call that is not over."""
        keys = (key for key in self.calls if getattr(key, "function_call_id", key) == call_id)
        return next(keys, None)

    async def hand_over(self, run: AdkRun, name: Any) -> str | None:
        """Hand the work over to another agent. Gives why not, if hooks refuse it."""
        why = await run_flow(run.turn.hand_over(str(name)))
        if why is None:
            self.by_agent[str(name), None] = run
        return why

    async def end(self) -> None:
        await self._abandon_calls()
        for run in self._latest_first():
            await run.end_without_answer()

    def fail(self, error: BaseException) -> Flow[None]:
        """End all runs early, those that have not ended."""
        yield Call(self._abandon_calls)
        for run in self._latest_first():
            yield from run.fail(error)

    async def _abandon_calls(self) -> None:
        """End the calls that are not over."""
        calls, self.calls = self.calls, {}
        for call in calls.values():
            with suppress(CancelledError, Exception):
                if (flow := await flow_of(call)) is not None:
                    await run_flow(flow, error=CancelledError())

    def _latest_first(self) -> list[AdkRun]:
        """The runs, the latest first."""
        return list(dict.fromkeys([*reversed(self.by_agent.values()), self.run]))


# --- what the framework knows of an invocation ----------------------------------------------------


def invocation_of(context: Any) -> Any:
    """The invocation of a callback's context. Older versions have no public way to it."""
    public = getattr(context, "get_invocation_context", None)
    if public is not None:
        return public()
    return context if hasattr(context, "session_service") else context._invocation_context


def branch_of(context: Any) -> str | None:
    """The branch of an invocation. Newer contexts have it; the invocation's is a slower copy."""
    try:
        return context.branch  # type: ignore[no-any-return]
    except AttributeError:
        return invocation_of(context).branch  # type: ignore[no-any-return]


def key_of(invocation: Any) -> tuple[str, str, str]:
    """The key of a session: two users may have sessions with the same id."""
    session = invocation.session
    return session.app_name, session.user_id, session.id


def streams(invocation: Any) -> bool:
    return invocation.run_config is not None and invocation.run_config.streaming_mode == StreamingMode.SSE


def cause_of(error: BaseException) -> BaseException:
    """The hook's error inside of the framework's, or the error itself."""
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
    from google.adk.utils.instructions_utils import inject_session_state  # imports much of the framework

    with suppress(KeyError, ValueError):  # the framework reports these
        return str(await inject_session_state(found, context))
    return str(found)
