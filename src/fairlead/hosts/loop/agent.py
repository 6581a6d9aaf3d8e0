"""The reference loop: a small agent in which every event fires and every control is honoured.

The order of events and the meaning of each control are in `frameworks.turn` and `frameworks.tool_call`, which every
framework adapter uses, too. What is here is the agent around them: the conversation, the model, the tools, its
permission policy, compaction and subagents. Read it from `run` down.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast, get_args

import msgspec

from ...approvals import Approval, ApprovalRequest, seek_approval
from ...decision import Decision
from ...errors import FairleadError, UnknownName, describe
from ...lifecycle import EVENTS, AfterCompact, BeforeCompact, Notification, Step
from ...registry import Hooks
from ...session import Session
from ..frameworks.flow import Call, Flow, run_flow
from ..frameworks.framework import Framework
from ..frameworks.messages import Message, Reply, as_messages
from ..frameworks.tool_call import CANCELLED, RETRIES, ToolCall, ToolError, readable
from ..frameworks.turn import (
    EXTENDS,
    FEEDBACK,
    LIMITS,
    LastingSession,
    ModelCall,
    ModelResult,
    Sessions,
    Turn,
    end_session,
)
from .model import ask_model
from .tools import Tool, text_tool

if TYPE_CHECKING:
    from pydantic_ai.models import Model

__all__ = ["EXTENDS", "FEEDBACK", "POLICIES", "RETRIES", "Agent", "Moment", "PermissionPolicy", "Result"]

T = TypeVar("T")

PermissionPolicy = Literal["read-only", "ask-writes", "open", "deny-all"]
POLICIES: tuple[PermissionPolicy, ...] = get_args(PermissionPolicy)
"""What happens to a tool call that no hook decides: only reading runs, writing asks, all runs, nothing runs."""

_LEFT = {"proceed", "skip_rest", "ask"}
"""Controls that are not for a host to carry out, or that only the approver of the hooks answers."""
LOOP = Framework(
    name="loop",
    title="fairlead's own loop",
    package="fairlead",
    versions=">=0",
    can={
        name: " ".join((*(event.controls - _LEFT), *event.changes, *(["context"] * event.context)))
        for name, event in EVENTS.items()
    },
)
_ALL_STEPS: frozenset[type[Step]] = frozenset(event.step for event in EVENTS.values())


class Result(msgspec.Struct):
    """What came of one request. `output` is None when there is nothing to show.

    `by_hook` says that a hook has ended the request, or has kept its answer back.
    """

    output: str | None
    stop_reason: str
    by_hook: bool = False
    requests: int = 0
    extends: int = 0
    usage: dict[str, int] = {}


class Moment(msgspec.Struct, frozen=True):
    """Something for a UI to show: a decided step, or a piece of the model's text as it comes."""

    decision: Decision[Any] | None = None
    text: str | None = None

    @property
    def event(self) -> str:
        return "text" if self.decision is None else self.decision.event


class LoopSessions(Sessions):
    """The sessions of an agent and its subagents, and the listeners to what happens in them."""

    def __init__(self, hooks: Hooks) -> None:
        super().__init__(hooks, LOOP)
        self.listeners: list[Callable[[Moment], None]] = []

    def show(self, moment: Moment) -> None:
        for listener in self.listeners:
            listener(moment)


class LoopTurn(Turn):
    """A turn in which every event fires, whether a hook subscribes to it or not, and each can be shown."""

    sessions: LoopSessions

    @property
    def subscribed_steps(self) -> frozenset[type[Step]]:
        return _ALL_STEPS

    def take(self, decision: Decision[Any]) -> Decision[Any]:
        self.sessions.show(Moment(decision))
        return super().take(decision)


class Agent:
    """An agent: a model, some tools, and hooks. One conversation, one session, any number of requests.

    `async with Agent(model, tools, hooks) as agent: await agent.run("...")`. To resume, pass the
    `messages` and the `session_id` of an earlier agent.
    """

    def __init__(
        self,
        model: Model | str,
        tools: Iterable[Tool] = (),
        hooks: Hooks | None = None,
        *,
        name: str = "agent",
        system_prompt: str = "",
        policy: PermissionPolicy = "ask-writes",
        max_requests: int = 20,
        token_budget: int = 100_000,
        compact: Callable[[Sequence[Message]], Awaitable[Sequence[Message]]] | None = None,
        models: Mapping[str, Model | str] | None = None,
        subagents: Mapping[str, Agent] | None = None,
        messages: Iterable[Message] = (),
        session: Session | None = None,
        session_id: str | None = None,
        streaming: bool = False,
        **about: Any,
    ) -> None:
        if policy not in POLICIES:
            raise UnknownName("policy", policy, POLICIES)
        self.model = model
        self._sessions = LoopSessions(hooks if hooks is not None else Hooks())
        self.hooks = self._sessions.hooks
        self.name = name
        self.messages: list[Message] = list(messages)
        self.session = session or self.hooks.session(session_id, **({"agent": name, "host": "loop"} | about))
        self.session.limits, self.session.request_id = LIMITS, None  # `Turn.begin` makes one for each request
        self.result = Result(None, "end_turn")
        self._entry = LastingSession(self.session)
        self._turn = self._new_turn()
        self._system_prompt = system_prompt
        self._policy: PermissionPolicy = policy
        self._max_requests = max_requests
        self._token_budget = token_budget
        self._compact = compact or _leave_out_the_oldest
        self.models = dict(models or {})
        self._subagents = dict(subagents or {})
        for subagent, agent in self._subagents.items():
            if len(agent.hooks) and agent.hooks is not self.hooks:
                raise FairleadError(f"the subagent {subagent!r} has hooks of its own; it works under its parent's")
        self._tools = {tool.name: tool for tool in (*tools, *self._subagent_tools())}
        self._streaming = streaming
        self._source: Literal["new", "resume"] = "resume" if self.messages else "new"
        self._state: Literal["new", "open", "closed"] = "new"
        self._streams: set[asyncio.Task[Result]] = set()
        self._busy = False

    # --- a session --------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close("exit" if error[0] is None else "error")

    def _new_turn(self) -> Turn:
        return LoopTurn(self.session, self._sessions, self._entry, lasting=True)

    async def _open(self) -> None:
        if self._state == "closed":
            raise FairleadError("this agent's session has ended; make another one to resume it")
        if self._state == "new":
            self._state = "open"
            if self.session.parent is not None:  # a subagent has its own events
                self._entry.started = True
                return
            try:
                await run_flow(self._turn.open(self._source))
            except BaseException:
                self._state = "closed"  # a session that may not start is over
                await _surely(self._end_session("error"))
                raise

    async def close(self, reason: str = "exit") -> None:
        """End the session: background tasks are waited for, `session_end` fires, once."""
        if self._busy and not self._streams:
            raise FairleadError("this agent is at work; cancel its request, or wait for it, and close it then")
        if self._state == "open":
            self._state = "closed"
            await _surely(self._close(reason))

    async def _close(self, reason: str) -> None:
        for task in self._streams:  # the caller has left a stream, and Python has yet to notice
            task.cancel()
        if self._streams:
            await asyncio.wait(self._streams)
        await self._end_session(reason)

    async def _end_session(self, reason: str) -> None:
        decisions = await run_flow(end_session(self._entry, reason))
        for decision in decisions:
            self._sessions.show(Moment(decision))
        for decision in decisions:
            decision.raise_for_abort()

    # --- a request --------------------------------------------------------------------------

    async def run(self, message: Any, *, source: Literal["user", "continuation", "background"] = "user") -> Result:
        """Work on one request of the user. Raises `HookAborted` if a hook aborts, `ModelFailed` if the model fails."""
        if self._busy:
            raise FairleadError("this agent is at work; wait for it, or make another one")
        self._busy = True
        try:
            await self._open()
            return await self._request(self._new_turn(), message, source)
        finally:
            self._busy = False

    async def stream(self, message: Any) -> AsyncIterator[Moment]:
        """`run`, moment by moment. To leave early, use `contextlib.aclosing`: that cancels the request."""
        moments: asyncio.Queue[Moment | None] = asyncio.Queue()
        self._sessions.listeners.append(moments.put_nowait)
        task = asyncio.get_running_loop().create_task(self.run(message))
        task.add_done_callback(lambda _: moments.put_nowait(None))
        self._streams.add(task)
        task.add_done_callback(self._streams.discard)
        try:
            while (moment := await moments.get()) is not None:
                yield moment
            await task
        finally:
            self._sessions.listeners.remove(moments.put_nowait)
            if not task.done():
                task.cancel()
                await asyncio.wait([task])

    async def _request(self, turn: Turn, message: Any, source: str) -> Result:
        self._turn, self.result = turn, Result(None, "end_turn")
        try:
            self.result.output = await self._answer(turn, message, source)
        except BaseException as error:
            await _surely(run_flow(turn.failed(error)))
            raise
        finally:
            result = self.result
            result.stop_reason, result.by_hook = turn.stop_reason, turn.by_hook
            result.requests, result.extends = turn.requests, turn.extends
        await _surely(run_flow(turn.leave()))
        return self.result

    async def _answer(self, turn: Turn, message: Any, source: str) -> str | None:
        """Run the turn. Returns what the user gets to see."""
        turn_input = await run_flow(
            turn.begin(
                message, source=source, system_prompt=self._system_prompt, committed_len=len(self.messages) + 1,
                commit=self._commit,
            )
        )  # fmt: skip
        text = None if turn.over else await self._converse(turn, turn_input.system_prompt)
        response = await run_flow(turn.respond(text))
        await _surely(run_flow(turn.end_turn(response)))
        return await run_flow(turn.output(response))

    async def _converse(self, turn: Turn, system_prompt: str | None) -> str:
        """Let the model work until the turn may end. Returns its last words."""
        while True:
            text, voluntary = await self._model_and_tools(turn, system_prompt)
            feedback = await run_flow(
                turn.ending(voluntary=voluntary, committed_len=len(self.messages) + 1, commit=self._commit)
            )
            if feedback is None:
                return text

    def _commit(self, content: Any) -> None:
        """Make a message of the user, or one that extends the turn, part of the conversation."""
        self.messages.append({"role": "user", "content": content})

    # --- the model --------------------------------------------------------------------------

    async def _model_and_tools(self, turn: Turn, system_prompt: str | None) -> tuple[str, bool]:
        """Ask the model and run its tools until it has nothing more to do, or has been asked too often."""
        text, last = "", turn.requests + self._max_requests
        while turn.requests < last:
            self._place_context(turn)
            await run_flow(self._maybe_compact(turn))
            reply = None if turn.over else await self._ask(turn, system_prompt, last - turn.requests)
            if turn.over:
                return text, True
            if reply is None:  # hooks have refused all requests that were left
                continue
            text = reply.text or text
            message: Message = {"role": "assistant", "content": reply.text}
            self.messages.append(message | ({"tool_calls": reply.tool_calls} if reply.tool_calls else {}))
            if not reply.tool_calls:
                turn.stop_reason = reply.stop_reason or "end_turn"
                return reply.text or "", True
            await self._call_tools(turn, reply.tool_calls)
            if turn.over:
                return text, True
        self._place_context(turn)  # a refusal of the last request belongs to this turn
        turn.stop_reason = "max_turn_requests"
        await self.notify(f"the model was asked {self._max_requests} times without an end", "warning")
        return text, False

    async def _ask(self, turn: Turn, system_prompt: str | None, attempts: int) -> Reply | None:
        """Ask the model, at most so many times if hooks refuse. Returns None if they refuse each time."""

        def conversation() -> list[Message]:
            self._place_context(turn)
            return self.messages

        call = partial(self._call_model, system_prompt)
        result: ModelResult = await run_flow(
            turn.ask(_model_name(self.model), conversation, call, lambda reply: reply, attempts=attempts)
        )
        if result.native is None:
            return None if result.text is None else Reply(result.text)
        reply = cast(Reply, result.native)
        return reply if result.text is None else msgspec.structs.replace(reply, text=result.text)

    async def _call_model(self, system_prompt: str | None, model_call: ModelCall) -> Reply:
        self.messages += model_call.injected
        model = self.model if model_call.model is None else self.models.get(model_call.model, model_call.model)
        messages = self.messages if model_call.messages is None else model_call.messages
        on_text = (lambda text: self._sessions.show(Moment(text=text))) if self._streaming else None
        reply = await ask_model(model, system_prompt, messages, list(self._tools.values()), on_text)
        for key, count in (reply.usage or {}).items():
            self.result.usage[key] = self.result.usage.get(key, 0) + count
        return reply

    def _place_context(self, turn: Turn) -> None:
        """Put the context that hooks have added where the model reads it next."""
        self.messages += as_messages(turn.waiting)
        turn.waiting = []

    # --- compaction -------------------------------------------------------------------------

    def _maybe_compact(self, turn: Turn) -> Flow[None]:
        before = _tokens(self.messages)
        if before <= self._token_budget:
            return
        decision = yield from turn.fire(
            BeforeCompact, message_count=len(self.messages), token_estimate=before, threshold=self._token_budget
        )
        if turn.over or (decision is not None and decision.control == "skip"):
            return
        self.messages = list((yield Call(lambda: self._compact(self.messages))))
        after = _tokens(self.messages)
        yield from turn.fire(AfterCompact, message_count=len(self.messages), tokens_before=before, tokens_after=after)

    # --- tools ------------------------------------------------------------------------------

    async def _call_tools(self, turn: Turn, requested: list[dict[str, Any]]) -> None:
        """Judge the calls of one reply one after another, run them at once, and keep their results in order."""
        calls = [self._tool_call(turn, call["tool"], call["args"], call["id"]) for call in requested]
        why = "the request failed"
        try:
            for call in calls:
                await run_flow(call.judge())
            for call in calls if turn.over else ():
                call.skip()
            await _all(run_flow(call.finish()) for call in calls)
        except asyncio.CancelledError:
            why = CANCELLED
            raise
        finally:  # a call without a result would spoil the conversation for good
            try:
                await _surely(_abort_all(calls, why))
            finally:
                self.messages += map(_result_of, calls)
        await run_flow(turn.end_batch([call["id"] for call in requested]))
        self._place_context(turn)  # beside the results, also if the model is not asked again in this turn

    def _tool_call(self, turn: Turn, name: str, args: dict[str, Any], call_id: str) -> ToolCall:
        tool = self._tools.get(name)
        about: dict[str, Any] = {}
        if tool is not None:
            known = {"kind": tool.kind, "safety": tool.safety}
            about = {key: value for key, value in known.items() if value is not None}

        async def run(args: dict[str, Any]) -> Any:
            return None if tool is None else await tool.run(args)

        call = turn.tool(
            name, args, call_id, run, proposed=lambda args: self._proposes(call.about["safety"]),
            ask=lambda decision: self._ask_human(call, decision), through=(asyncio.CancelledError,), **about,
        )  # fmt: skip
        call.refusal = f"the policy is {self._policy}"
        if tool is None:
            call.missing = f"there is no tool {name!r}; there are {', '.join(self._tools) or 'none'}"
        return call

    def _proposes(self, safety: str | None) -> str:
        """Return what the agent's own policy does with a call."""
        if self._policy in ("open", "deny-all"):
            return "allow" if self._policy == "open" else "deny"
        if safety == "read_only":
            return "allow"
        return "ask" if self._policy == "ask-writes" else "deny"

    async def _ask_human(self, call: ToolCall, decision: Decision[Any] | None) -> Approval:
        if decision is not None and decision.control == "ask":  # the approver of the hooks leaves it to this host
            return Approval("deny", None, f"no other approver is configured: {decision.reason or decision.hook}")
        step, tool = call.step, call.about["tool"]
        await self.notify(f"waiting for approval of {tool}")
        request = ApprovalRequest(step, self.name, f"May {self.name} use {tool}?")
        return await seek_approval(self.hooks.approver, request, self.hooks.approval_timeout)

    # --- subagents --------------------------------------------------------------------------

    def _subagent_tools(self) -> list[Tool]:
        return [
            text_tool(
                name, f"Give a task to the agent {name!r}.", partial(self._delegate, name), "message",
                kind="agent", safety="mutating",
            )
            for name in self._subagents
        ]  # fmt: skip

    async def _delegate(self, name: str, message: str) -> str:
        """Give a task to a subagent. It has its own conversation and session, and its parent's hooks."""
        parent = self._turn
        turn, task, refused = await run_flow(parent.subagent(name, message))
        if refused is not None:
            raise ToolError(refused)
        child = self._subagents[name]._child_of(self, name, turn.session)
        source = "user"
        try:
            while True:
                try:
                    result = await child._request(turn, task or "", source)
                except BaseException as error:
                    with suppress(FairleadError):  # what ended it is what the parent raises
                        await _surely(run_flow(parent.stop_subagent(turn, describe(error))))
                    raise
                task = await run_flow(parent.stop_subagent(turn))
                if task is None:
                    return result.output or ""
                turn, source = turn.again(), "continuation"
        finally:
            await child.close()

    def _child_of(self, parent: Agent, name: str, session: Session) -> Agent:
        tools = [tool for tool in self._tools.values() if tool.name not in self._subagents]  # those are bound to us
        child = Agent(
            self.model, tools, parent.hooks, subagents=self._subagents, name=name, system_prompt=self._system_prompt,
            policy=self._policy, max_requests=self._max_requests, token_budget=self._token_budget,
            compact=self._compact, models=self.models, streaming=self._streaming, session=session,
        )  # fmt: skip
        child._sessions, child._state = parent._sessions, "open"
        child._entry.started = True
        return child

    # --- notifications ----------------------------------------------------------------------

    async def notify(self, message: str, level: str = "info") -> None:
        """Tell the user something, unless a hook skips it."""
        await run_flow(self._turn.fire(Notification, message=message, level=level))


async def _abort_all(calls: Sequence[ToolCall], why: str) -> None:
    """Report the end of each call that has none yet."""
    for call in calls:
        await run_flow(call.abort(why))


def _result_of(call: ToolCall) -> Message:
    """Return the message with which the model reads what came of a call."""
    result = call.result
    content, is_error = result.error_text if result.is_error else readable(result.output), result.is_error
    if not call.finished:
        known = "it ran, but its result is not known" if call.started else "it did not run"
        content, is_error = f"{known}: the request failed", True
    return {
        "role": "tool", "call_id": call.about["call_id"], "tool": call.about["tool"], "content": content,
        "is_error": is_error,
    }  # fmt: skip


def _model_name(model: Any) -> str:
    return model if isinstance(model, str) else str(getattr(model, "model_name", model))


def _tokens(messages: Sequence[Message]) -> int:
    """A rough count: four characters each."""
    return len(msgspec.json.encode(messages, enc_hook=str)) // 4


def _is_users(message: Message) -> bool:
    """Whether a message is from the user, and not from a hook."""
    return message["role"] == "user" and "hook" not in message


async def _leave_out_the_oldest(messages: Sequence[Message]) -> Sequence[Message]:
    """The newer half of a conversation, cut where the user speaks, so that no call loses its result."""
    half = len(messages) // 2
    newer = range(half, len(messages))
    cut = next((i for i in newer if _is_users(messages[i])), None)
    kept: list[Message] = []
    if cut is None:  # in the middle of a long turn, what it is about must stay
        cut = next((i for i in newer if messages[i]["role"] != "tool"), half)
        while cut and messages[cut]["role"] == "tool":
            cut -= 1
        kept = [message for message in messages[:cut] if _is_users(message)][-1:]
    if cut <= len(kept):
        return messages
    left_out = f"[{cut - len(kept)} earlier messages were left out]"
    return [{"role": "user", "content": left_out}, *kept, *messages[cut:]]


async def _all(awaitables: Iterable[Awaitable[T]]) -> list[T]:
    """Await all at once, and cancel the others when one fails."""
    tasks = [asyncio.ensure_future(item) for item in awaitables]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        raise


async def _surely(awaitable: Awaitable[Any]) -> None:
    """Await something to its end, also while being cancelled. The cancellation goes on afterwards."""
    task = asyncio.ensure_future(awaitable)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.cancelled():
                raise
            cancelled = error
        except BaseException:
            break  # the task's own error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()
        raise cancelled
    task.result()
