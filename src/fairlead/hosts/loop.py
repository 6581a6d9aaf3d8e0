"""The reference loop: a small agent in which every event fires and every control is honoured.

It says what the lifecycle means: every other host is measured against it. Read it from `run` down:
a request holds a turn, a turn holds requests to the model, and those hold tool calls. `_fire` is the
only place that dispatches; an abort or a stop leaves from there as an exception, so that the code
below reads as what happens when nobody objects.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, get_args

import msgspec

from ..approvals import Approval, ApprovalRequest, seek_approval
from ..decision import Context, Decision
from ..errors import FairleadError, HookAborted, UnknownName, describe
from ..frozen import thaw
from ..lifecycle import (
    AfterCompact,
    AfterInput,
    AfterModel,
    AfterPermission,
    AfterRequest,
    AfterTool,
    AfterToolBatch,
    BeforeCompact,
    BeforeInput,
    BeforeModel,
    BeforeOutput,
    BeforePermission,
    BeforePrompt,
    BeforeRequest,
    BeforeResponse,
    BeforeTool,
    BeforeTurnEnd,
    Error,
    Notification,
    SessionEnd,
    SessionStart,
    Step,
    SubagentStart,
    SubagentStop,
    ToolRequested,
    ToolStep,
    TurnEnd,
    TurnStart,
)
from ..registry import Hooks
from ..session import Session, new_id
from .model import Message, ModelFailed, Reply, as_messages, as_text, ask_model
from .tools import Tool, ToolError, text_tool

if TYPE_CHECKING:
    from pydantic_ai.models import Model

S = TypeVar("S", bound=Step)
T = TypeVar("T")

Policy = Literal["read-only", "ask-writes", "open", "deny-all"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
"""What a tool may do that no hook has spoken about: nothing that changes anything, ask first, all, nothing at all."""

EXTENDS, RETRIES = 3, 2
FEEDBACK = "The work is not finished yet. Go on."
"""What the model is told when a hook extends the turn without saying why."""


class Result(msgspec.Struct):
    """What came of one request. `output` is None when there is nothing to show.

    `by_hook` says that it was a hook who ended it, or who kept its answer back.
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


class _Stopped(Exception):
    """A hook ends the turn."""

    def __init__(self, decision: Decision[Any]) -> None:
        super().__init__(decision.reason)
        self.stop_reason: str = decision.stop_reason or "end_turn"
        self.said = f"[Stopped: {decision.reason}]" if decision.reason else None


class _Call(msgspec.Struct):
    """One tool call on its way."""

    id: str
    name: str
    tool: Tool | None
    args: dict[str, Any]
    outcome: Literal["ok", "error", "denied", "aborted", "answered"] = "ok"
    output: Any = None
    error: str | None = None
    context: list[Context] = []
    requested: bool = False  # tool_requested has fired
    started: bool = False
    told: bool = False  # after_tool has fired
    finished: bool = False

    @property
    def runs(self) -> bool:
        return self.outcome == "ok"


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
        policy: Policy = "ask-writes",
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
        self.hooks = hooks if hooks is not None else Hooks()
        self.name = name
        self.messages: list[Message] = list(messages)
        self.session = session or self.hooks.session(session_id, **({"agent": name, "host": "loop"} | about))
        self.session.limits = {"extend": EXTENDS, "retry": RETRIES}
        self._system_prompt = system_prompt
        self._policy: Policy = policy
        self._max_requests = max_requests
        self._token_budget = token_budget
        self._compact = compact or _leave_out_the_oldest
        self._models = dict(models or {})
        self._subagents = dict(subagents or {})
        for helper, agent in self._subagents.items():
            if len(agent.hooks) and agent.hooks is not self.hooks:
                raise FairleadError(f"the subagent {helper!r} has hooks of its own; it works under its parent's")
        self._tools = {tool.name: tool for tool in (*tools, *self._subagent_tools())}
        self._streaming = streaming
        self._source: Literal["new", "resume"] = "resume" if self.messages else "new"
        self._state: Literal["new", "open", "closed"] = "new"
        self.result = Result(None, "end_turn")
        self._waiting: list[Context] = []  # context for the next turn
        self._listeners: list[Callable[[Moment], None]] = []
        self._streams: set[asyncio.Task[Result]] = set()
        self._busy = False

    # --- a session --------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close("exit" if error[0] is None else "error")

    async def _open(self) -> None:
        if self._state == "closed":
            raise FairleadError("this agent's session has ended; make another one to resume it")
        if self._state == "new":
            self._state = "open"
            if self.session.parent is not None:  # a subagent has its own events
                return
            try:
                self._waiting += (await self._fire(SessionStart, source=self._source)).context
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
        for work in self._streams:  # somebody left one, and Python has yet to notice
            work.cancel()
        if self._streams:
            await asyncio.wait(self._streams)
        await self._end_session(reason)

    async def _end_session(self, reason: str) -> None:
        try:
            for error in await self.session.close():
                await self._fire(Error, error=describe(error), where="background")
        finally:
            if self.session.parent is None:
                await self._fire(SessionEnd, reason=reason)

    # --- a request --------------------------------------------------------------------------

    async def run(self, given: Any, *, source: Literal["user", "continuation", "background"] = "user") -> Result:
        """Work on one request of the user. Raises `HookAborted` if a hook aborts, `ModelFailed` if the model fails."""
        if self._busy:
            raise FairleadError("this agent is at work; wait for it, or make another one")
        self._busy = True
        try:
            await self._open()
            return await self._request_of(given, source)
        finally:
            self._busy = False

    async def _request_of(self, given: Any, source: str) -> Result:
        self.session.request_id = new_id("request")
        self.result = Result(None, "end_turn")
        try:
            before = await self._fire(BeforeRequest, state=self.session.state)
            self._waiting += before.context
            self._take_ids(before.step)
            output = await self._turn(given, source)
            self.result.output = await self._output(output)
        except BaseException as error:
            with suppress(FairleadError):  # what ended the request is what its caller should hear of
                await _surely(self._failed(error))
            raise
        await _surely(self._end_request())
        return self.result

    async def stream(self, given: Any) -> AsyncIterator[Moment]:
        """`run`, moment by moment. To leave early, use `contextlib.aclosing`: that cancels the request."""
        moments: asyncio.Queue[Moment | None] = asyncio.Queue()
        self._listeners.append(moments.put_nowait)
        work = asyncio.get_running_loop().create_task(self.run(given))
        work.add_done_callback(lambda _: moments.put_nowait(None))
        self._streams.add(work)
        work.add_done_callback(self._streams.discard)
        try:
            while (moment := await moments.get()) is not None:
                yield moment
            await work
        finally:
            self._listeners.remove(moments.put_nowait)
            if not work.done():
                work.cancel()
                await asyncio.wait([work])

    def _take_ids(self, step: BeforeRequest | AfterRequest) -> None:
        self.session.state = step.state
        self.session.checkpoint_id = step.checkpoint_id
        if step.session_id is not None:
            self.session.session_id = step.session_id

    async def _failed(self, error: BaseException) -> None:
        """Whatever ended the request early: it is reported, and the request is over."""
        text = "cancelled" if isinstance(error, asyncio.CancelledError) else describe(error)
        try:
            await self._fire(Error, error=text, where="request")
        finally:
            await self._end_request(text)

    async def _end_request(self, error: str | None = None) -> None:
        after = await self._fire(AfterRequest, state=self.session.state, error=error)
        self._waiting += after.context
        self._take_ids(after.step)

    # --- a turn -----------------------------------------------------------------------------

    async def _turn(self, given: Any, source: str) -> str | None:
        """One turn. Gives what the model had to say in the end."""
        try:
            decision = await self._fire(BeforeInput, source=source, input=given)
        except _Stopped as stopped:
            return self._stopped(stopped)
        if decision.control == "deny":  # and nothing of it is kept
            self.result.stop_reason, self.result.by_hook = "refusal", True
            return f"[Message rejected: {decision.reason or 'refused'}]"
        self.session.turn_id = new_id("turn")
        self._say(thaw(decision.step.input), [*self._waiting, *decision.context])
        self._waiting = []
        started = False
        response: str | None = None
        try:
            self._note(await self._fire(AfterInput, committed_len=len(self.messages)))
            started = True
            is_subagent = self.session.parent is not None
            self._note(
                await self._fire(TurnStart, is_subagent=is_subagent, agent_type=self.name if is_subagent else None)
            )
            response = await self._work(as_text(decision.step.input))
            response = await self._respond(response)
        except _Stopped as stopped:
            response = self._stopped(stopped)
        except BaseException as error:
            self.result.stop_reason = "cancelled" if isinstance(error, asyncio.CancelledError) else "error"
            raise
        finally:
            try:
                if started:
                    await _surely(self._end_turn(response))
            finally:
                self.session.turn_id = None
        return response

    async def _work(self, user_message: str) -> str:
        """Ask the model until the turn may end."""
        prompt = await self._fire(BeforePrompt, system_prompt=self._system_prompt, user_message=user_message)
        self._note(prompt)
        while True:
            text, voluntary = await self._requests(prompt.step.system_prompt)
            try:
                decision = await self._fire(
                    BeforeTurnEnd, stop_reason=self.result.stop_reason,
                    continues_so_far=self.result.extends, voluntary=voluntary,
                )  # fmt: skip
            except _Stopped as stopped:  # which it was about to do: what the model said is still worth hearing
                self._stopped(stopped)
                return text
            if decision.control != "extend" or self.result.extends >= EXTENDS:
                self._waiting += decision.context
                return text
            self.result.extends += 1
            self.messages.append({"role": "user", "content": "\n\n".join(decision.context) or FEEDBACK})
            self._add(self._waiting)  # the model goes on, and reads it now
            self._waiting = []

    async def _respond(self, response: str) -> str | None:
        decision = await self._fire(BeforeResponse, response=response)
        if decision.control == "deny":
            self.result.by_hook = True
            return f"[Response filtered: {decision.reason or 'refused'}]"
        return as_text(thaw(decision.step.response))

    def _stopped(self, stopped: _Stopped) -> str | None:
        """A hook ended the turn. Gives what there is to say about it."""
        self.result.stop_reason, self.result.by_hook = stopped.stop_reason, True
        return stopped.said

    async def _end_turn(self, response: str | None) -> None:
        result = self.result
        await self._fire(
            TurnEnd, stop_reason=result.stop_reason, iterations=result.requests, response_length=len(response or "")
        )

    async def _output(self, content: str | None) -> str | None:
        """What the user gets to see."""
        if content is None:
            return None
        decision = await self._fire(BeforeOutput, content=content)
        if decision.control == "deny":
            self.result.by_hook = True
            return None
        return as_text(thaw(decision.step.content))

    # --- the model --------------------------------------------------------------------------

    async def _requests(self, system_prompt: str | None) -> tuple[str, bool]:
        """Model and tools in turn, until the model has nothing more to do or has asked too often."""
        text = ""
        for _ in range(self._max_requests):
            await self._maybe_compact()
            reply = await self._ask(system_prompt)
            if reply is None:
                continue
            text = reply.text or text
            said: Message = {"role": "assistant", "content": reply.text}
            self.messages.append(said | ({"tool_calls": reply.tool_calls} if reply.tool_calls else {}))
            if not reply.tool_calls:
                self.result.stop_reason = reply.stop_reason
                self._waiting += reply.context
                return reply.text, True
            try:
                await self._call_tools(reply.tool_calls)
            finally:
                self._add(reply.context)
        self.result.stop_reason = "max_turn_requests"
        await self.notify(f"the model was asked {self._max_requests} times without an end", "warning")
        return text, False

    async def _ask(self, system_prompt: str | None) -> Reply | None:
        """One request to the model. None if a hook would have none of it: then the model is told why."""
        self.result.requests += 1
        model, name = self.model, _model_name(self.model)
        before = await self._fire(
            BeforeModel, model=name, messages=self.messages, message_count=len(self.messages), attempt=1
        )
        self._note(before)
        if before.control == "deny":
            self._refused(before)
            return None
        step = before.step
        if step.model is not None and step.model != name:
            model, name = self._models.get(step.model, step.model), step.model
        if step.assistant is not None:
            reply = Reply(as_text(thaw(step.assistant)))
        else:
            messages = self.messages
            if "messages" in before.changed:
                messages = [*thaw(step.messages), *as_messages(before.context)]
            reply = await self._request(model, name, system_prompt, messages)
        after = await self._fire(
            AfterModel, model=name, output=reply.text, usage=reply.usage, stop_reason=reply.stop_reason
        )
        if after.control == "deny":
            self._note(after)
            self._refused(after)
            return None
        reply.text, reply.context = as_text(thaw(after.step.output)), after.context
        return reply

    async def _request(self, model: Any, name: str, system_prompt: str | None, messages: list[Message]) -> Reply:
        on_text = self._on_text if self._streaming else None
        try:
            reply = await ask_model(model, system_prompt, messages, list(self._tools.values()), on_text)
        except ModelFailed as error:
            await self._fire(AfterModel, model=name, error=str(error))
            raise
        for key, count in reply.usage.items():
            self.result.usage[key] = self.result.usage.get(key, 0) + count
        return reply

    def _refused(self, decision: Decision[Any]) -> None:
        self.messages.append({"role": "user", "content": f"[{decision.hook}] {decision.reason or 'refused'}"})

    def _on_text(self, text: str) -> None:
        for listener in self._listeners:
            listener(Moment(text=text))

    # --- compaction -------------------------------------------------------------------------

    async def _maybe_compact(self) -> None:
        before = _tokens(self.messages)
        if before <= self._token_budget:
            return
        decision = await self._fire(
            BeforeCompact, message_count=len(self.messages), token_estimate=before, threshold=self._token_budget
        )
        if decision.control == "skip":
            self._note(decision)
            return
        self.messages = list(await self._compact(self.messages))
        self._note(decision)
        after = _tokens(self.messages)
        self._note(
            await self._fire(AfterCompact, message_count=len(self.messages), tokens_before=before, tokens_after=after)
        )

    # --- tools ------------------------------------------------------------------------------

    async def _call_tools(self, requested: list[dict[str, Any]]) -> None:
        """All calls of one reply: judged one after another, run at once, their results in the order of the calls."""
        calls = [_Call(call["id"], call["tool"], self._tools.get(call["tool"]), call["args"]) for call in requested]
        try:
            stopped = await self._run_all(calls)
        finally:  # a call without a result would spoil the conversation for good
            for call in calls:
                await self._tell_of_abort(call)
                if not call.finished:
                    known = "it ran, but its result is not known" if call.started else "it did not run"
                    call.output, call.error = None, f"{known}: the request failed"
                content = call.error if call.error is not None else call.output
                self.messages.append({
                    "role": "tool", "call_id": call.id, "tool": call.name, "content": content,
                    "is_error": call.error is not None,
                })  # fmt: skip
        for call in calls:
            self._add(call.context)
        results = [
            {"tool": c.name, "call_id": c.id, "outcome": c.outcome, "is_error": c.error is not None} for c in calls
        ]
        self._note(await self._fire(AfterToolBatch, results=results))
        if stopped is not None:
            raise stopped

    async def _run_all(self, calls: list[_Call]) -> _Stopped | None:
        stopped: _Stopped | None = None
        for call in calls:
            if stopped is not None:
                break
            try:
                await self._judge(call)
            except _Stopped as stop:
                stopped = stop
        for call in calls if stopped is not None else ():
            if call.runs:  # nobody has started yet, and now nobody will
                call.outcome, call.error = "aborted", "not run: the turn was stopped"
        ends = await _all(self._finish(call) for call in calls)
        return stopped or next((end for end in ends if end is not None), None)

    async def _tell_of_abort(self, call: _Call) -> None:
        """Whatever became of the request, a call that was requested has an end."""
        if call.requested and not call.told:
            call.outcome, call.told = "aborted", True
            call.error = call.error or "the request failed"
            fields = {"outcome": "aborted", "executed": call.started, "is_error": True, "error": call.error}
            with suppress(FairleadError):
                await _surely(self._fire_tool(AfterTool, call, **fields))

    async def _judge(self, call: _Call) -> None:
        """Whether a call may run, and with which arguments."""
        call.requested = True
        call.context += (await self._fire_tool(ToolRequested, call)).context
        if call.tool is None:
            call.outcome = "error"
            call.error = f"there is no tool {call.name!r}; there are {', '.join(self._tools) or 'none'}"
            return
        decision = await self._fire_tool(BeforeTool, call)
        call.context += decision.context
        if decision.denied:
            call.outcome, call.error = "denied", f"Hook blocked tool '{call.name}': {decision.reason or 'denied'}"
        elif decision.step.result is not None:
            call.outcome, call.output = "answered", thaw(decision.step.result)
            call.error = as_text(call.output) if decision.step.is_error else None
        elif decision.control != "stop":
            call.args = thaw(decision.step.args)
            await self._permit(call, decision)
        if decision.control == "stop":
            raise _Stopped(decision)

    async def _permit(self, call: _Call, before: Decision[BeforeTool]) -> None:
        """The permission events, around the agent's own policy."""
        proposed = "allow" if before.control == "allow" else self._proposes(before.step)
        decision = await self._fire_tool(BeforePermission, call, proposed=proposed)
        call.context += decision.context
        if decision.control == "stop" and not decision.denied:
            raise _Stopped(decision)  # nobody need be asked
        granted, why = proposed == "allow", f"the policy is {self._policy}"
        left = next((one for one in (before, decision) if one.control == "ask"), None)  # to this host, by the approver
        if left is not None and not decision.denied:
            granted, why = False, f"nobody else is there to ask: {left.reason or left.hook}"
        elif decision.control in ("allow", "deny") or decision.denied:
            granted, why = decision.control == "allow", decision.reason or "refused"
        elif proposed == "ask":
            answer = await self._ask_human(decision.step)
            granted, why = answer.answer == "allow", answer.why or "refused"
        after = await self._fire_tool(AfterPermission, call, granted=granted)
        call.context += after.context
        if not granted:
            call.outcome, call.error = "denied", f"Permission denied for tool '{call.name}': {why}"
        for stop in (decision, after):
            if stop.control == "stop":
                raise _Stopped(stop)

    def _proposes(self, step: ToolStep) -> str:
        if self._policy in ("open", "deny-all"):
            return "allow" if self._policy == "open" else "deny"
        if step.safety == "read_only":
            return "allow"
        return "ask" if self._policy == "ask-writes" else "deny"

    async def _ask_human(self, step: ToolStep) -> Approval:
        await self.notify(f"waiting for approval of {step.tool}")
        request = ApprovalRequest(step, self.name, f"May {self.name} use {step.tool}?")
        return await seek_approval(self.hooks.approver, request, self.hooks.approval_timeout)

    async def _finish(self, call: _Call) -> _Stopped | None:
        """Run a call, if it runs, and tell the hooks how it ended. A retry runs it again, as it is."""
        for attempt in range(1, RETRIES + 2):
            started, executed = monotonic(), call.runs and call.tool is not None
            if executed and call.tool is not None:
                await self._execute(call, call.tool)
            call.told = True
            decision = await self._fire_tool(
                AfterTool, call, outcome=call.outcome, executed=executed, output=call.output,
                is_error=call.error is not None, error=call.error, attempt=attempt,
                duration=monotonic() - started if executed else None,
            )  # fmt: skip
            call.context += decision.context
            if decision.control != "retry" or attempt > RETRIES:
                break
            call.outcome, call.output, call.error = "ok", None, None
        if decision.denied:
            call.error = f"[withheld by {decision.hook}] {decision.reason or ''}".rstrip()
        elif "output" in decision.changed:
            call.output = thaw(decision.step.output)
            call.error = as_text(call.output) if call.error is not None else None
        call.finished = True
        return _Stopped(decision) if decision.control == "stop" else None

    async def _execute(self, call: _Call, tool: Tool) -> None:
        call.started = True
        try:
            call.output = await tool.run(copy.deepcopy(call.args))  # which are its own to change
        except asyncio.CancelledError:
            call.error = "the request was cancelled"
            await self._tell_of_abort(call)
            raise
        except HookAborted:  # in a subagent; it fails this request, too
            raise
        except ToolError as error:
            call.outcome, call.error = "error", str(error)
        except Exception as error:
            call.outcome, call.error = "error", describe(error)
            await self._fire(Error, error=call.error, where=f"tool {call.name}")

    # --- subagents --------------------------------------------------------------------------

    def _subagent_tools(self) -> list[Tool]:
        return [
            text_tool(
                name, f"Give a task to the agent {name!r}.", self._delegating(name), "message",
                kind="agent", safety="mutating",
            )
            for name in self._subagents
        ]  # fmt: skip

    def _delegating(self, name: str) -> Callable[[str], Awaitable[str]]:
        async def delegate(message: str) -> str:
            return await self._delegate(name, message)

        return delegate

    async def _delegate(self, name: str, message: str) -> str:
        """A subagent at work: its own conversation and session, the parent's hooks."""
        child = self._subagents[name]._child_of(self, name)
        child._listeners = self._listeners
        start = await child._fire(SubagentStart, agent_name=name, initial_message=message)
        if start.control == "deny":
            raise ToolError(f"the agent {name!r} may not start: {start.reason or 'denied'}")
        child._waiting += start.context
        given = start.step.initial_message or ""
        try:
            extends = 0
            while True:
                try:
                    result = await child.run(given, source="continuation" if extends else "user")
                except BaseException as error:
                    with suppress(FairleadError, _Stopped):  # what ended it is what the parent should hear of
                        await _surely(child._fire(SubagentStop, agent_name=name, reason=describe(error)))
                    raise
                stop = await child._fire(
                    SubagentStop, agent_name=name, reason=result.stop_reason, continues_so_far=extends
                )
                if stop.control != "extend" or extends >= EXTENDS:
                    return "\n\n".join([result.output or "", *(text.signed for text in stop.context)])
                extends += 1
                given = "\n\n".join(stop.context) or FEEDBACK
        finally:
            await child.close()

    def _child_of(self, parent: Agent, name: str) -> Agent:
        tools = [tool for tool in self._tools.values() if tool.name not in self._subagents]  # those are bound to us
        return Agent(
            self.model, tools, parent.hooks, subagents=self._subagents, name=name, system_prompt=self._system_prompt,
            policy=self._policy, max_requests=self._max_requests, token_budget=self._token_budget,
            compact=self._compact, models=self._models, streaming=self._streaming,
            session=parent.session.subagent(name),
        )  # fmt: skip

    # --- what everything above needs --------------------------------------------------------

    async def notify(self, message: str, level: str = "info") -> None:
        """Tell the user something, unless a hook would rather not."""
        await self._fire(Notification, message=message, level=level)

    async def _fire(self, kind: type[S], /, **fields: Any) -> Decision[S]:
        """Dispatch a step. An abort and a stop leave from here."""
        decision = await self._dispatch(self.session.step(kind, **fields))
        if decision.control == "stop":
            self._waiting += decision.context
            raise _Stopped(decision)
        return decision

    async def _fire_tool(self, kind: type[Any], call: _Call, /, **fields: Any) -> Decision[Any]:
        """A step about a call. A stop is for the caller to carry out, with the call's results in order."""
        known = {"kind": call.tool.kind, "safety": call.tool.safety} if call.tool is not None else {}
        given = {name: value for name, value in known.items() if value is not None}
        step = self.session.step(kind, tool=call.name, args=call.args, call_id=call.id, **given, **fields)
        decision = await self._dispatch(step)
        if decision.control == "stop" and kind is ToolRequested:
            call.context += decision.context
            raise _Stopped(decision)
        return decision

    async def _dispatch(self, step: S) -> Decision[S]:
        decision = await self.session.dispatch(step)
        for listener in self._listeners:
            listener(Moment(decision))
        decision.raise_for_abort()
        return decision

    def _say(self, content: Any, context: Sequence[Context]) -> None:
        self.messages.append({"role": "user", "content": content})
        self._add(context)

    def _note(self, decision: Decision[Any]) -> None:
        self._add(decision.context)

    def _add(self, context: Sequence[Context]) -> None:
        """What hooks have to say to the model goes where the model will read it next."""
        self.messages += as_messages(context)


def _model_name(model: Any) -> str:
    return model if isinstance(model, str) else str(getattr(model, "model_name", model))


def _tokens(messages: Sequence[Message]) -> int:
    """A rough count: four characters each."""
    return len(msgspec.json.encode(messages, enc_hook=str)) // 4


def _is_users(message: Message) -> bool:
    """Whether the user said this, and not a hook."""
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


async def _all(work: Iterable[Awaitable[T]]) -> list[T]:
    """Do things at once, and leave none behind when one of them fails."""
    tasks = [asyncio.ensure_future(item) for item in work]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        raise


async def _surely(work: Awaitable[Any]) -> None:
    """Do something to its end, also while being cancelled; the cancellation goes on afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.cancelled():
                raise
            cancelled = error
        except BaseException:
            break  # which is the task's own
    if cancelled is not None:
        if not task.cancelled():
            task.exception()
        raise cancelled
    task.result()
