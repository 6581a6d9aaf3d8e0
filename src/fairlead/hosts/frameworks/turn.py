"""The lifecycle of one request: which events fire when, and what each control means.

The reference loop and every framework adapter run on this code, so the order of events exists once. The methods of
`Turn` are flows: run them with `run_flow`, or with `run_flow_sync` where nothing can be awaited. A request reads:

    begin -> (before_model -> after_model -> tool calls)... -> ending -> end

`ask` is `before_model`, the request to the model and `after_model` in one. `failed` ends a request early.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from typing import Any, Literal, TypeVar

import msgspec

from ...approvals import Approval, ApprovalRequest
from ...decision import Context, Decision
from ...errors import FairleadError, UnknownName, describe
from ...frozen import thaw
from ...lifecycle import (
    AfterInput,
    AfterModel,
    AfterRequest,
    AfterToolBatch,
    Agent,
    BeforeInput,
    BeforeModel,
    BeforeOutput,
    BeforePrompt,
    BeforeRequest,
    BeforeResponse,
    BeforeTurnEnd,
    Error,
    SessionEnd,
    SessionStart,
    Step,
    SubagentStart,
    SubagentStop,
    TurnEnd,
    TurnStart,
)
from ...registry import Hooks
from ...session import Session, SessionOptions, new_id
from .flow import Call, Dispatch, Flow
from .framework import Framework
from .messages import Message, Reply, as_messages, as_text, rewritten
from .tool_call import RETRIES, Ask, ToolCall, ToolResult

__all__ = ["Reply", "Sessions", "Turn", "end_session", "rewritten"]

T = TypeVar("T")

EXTENDS, REFUSALS = 3, 3
FEEDBACK = "The work is not finished yet. Go on."
"""The message to the model when a hook extends the turn without a reason."""
LIMITS = {"extend": EXTENDS, "retry": RETRIES}
"""How often in a row a host carries out these controls."""
SESSIONS = 1000
"""How many sessions an adapter keeps. Beyond that, the least recently used one ends."""


# --- what the host does next ----------------------------------------------------------------------


class TurnInput(msgspec.Struct):
    """The input and the system prompt that the turn begins with. If `turn.over` is set, it does not begin."""

    input: Any
    system_prompt: str | None


class ModelCall(msgspec.Struct):
    """How the host asks the model."""

    model: str | None = None
    """The model to ask instead of the agent's."""
    messages: list[Message] | None = None
    """The messages to send instead of the conversation. They include `injected`."""
    injected: list[Message] = []
    """The context that hooks add to the conversation."""
    answer: str | None = None
    """The answer that a hook gives in place of the model, which is not asked."""
    refused: bool = False
    """A hook refuses the request. `turn.waiting` has the reason, for the model to read in the next request."""

    @property
    def context(self) -> list[str]:
        """The texts of `injected`."""
        return [message["content"] for message in self.injected]


class ModelResult(msgspec.Struct):
    """What came of asking the model."""

    native: Any = None
    """The framework's own reply. None if a hook has answered, if the turn is over, or if all attempts were refused."""
    text: str | None = None
    """The text that replaces the reply's own. None if nothing does."""


class TurnOutput(msgspec.Struct):
    """What the user gets to see. None is nothing."""

    text: str | None
    changed: bool = False


# --- sessions -------------------------------------------------------------------------------------


class LastingSession(msgspec.Struct):
    """A session that lasts from request to request, and the context that waits for its next one."""

    session: Session
    started: bool = False
    waiting: list[Context] = []
    stopped: tuple[str | None, str] | None = None
    """The end message and the stop reason of the first turn, which a hook has ended when the session started."""
    agents: dict[str, Agent] = {}
    """The agents that take turns in it, by name."""
    twin: LastingSession | None = None
    """The session of the same id beside it, which has the same state and store."""

    def agent_named(self, name: str | None) -> Agent | None:
        """The agent of this name. Each keeps its id from request to request."""
        first = self.session.agent
        if name is None or first is None or first.name == name:
            return first
        if name not in self.agents:
            self.agents[name] = Agent(new_id("agent"), name)
        return self.agents[name]


class Sessions:
    """The sessions of all agents that run under one set of hooks, in one framework.

    A request without a session of the framework's gets its own, which ends with it. `beside` are the sessions of the
    same hooks in another part of the framework: sessions of one id share their state and their store.
    """

    def __init__(
        self, hooks: Hooks | None, framework: Framework, *, asks: bool = False, beside: Sessions | None = None,
        **about: Any,
    ) -> None:  # fmt: skip
        if hooks is not None and not isinstance(hooks, Hooks):
            raise TypeError(f"Fairlead takes the Hooks that yours are registered with, not {type(hooks).__name__}")
        for unknown in about.keys() - SessionOptions.__annotations__.keys() - {"session_id"}:
            raise UnknownName(
                "keyword", unknown, [*SessionOptions.__annotations__, "models", "session_id"], " of Fairlead"
            )
        self.hooks = hooks if hooks is not None else Hooks()
        self.framework = framework
        self._asks = asks and self.hooks.approver is None  # an approver of the hooks replaces the framework's question
        self._about = {"host": framework.name, **about}
        self._capabilities: dict[bool, dict[str, frozenset[str]]] = {}  # by whether the answer is streamed
        self._entries: OrderedDict[Any, LastingSession] = OrderedDict()
        self._beside: Sessions | None = beside
        if beside is not None:
            beside._beside = self

    def turn(
        self, session_id: str | None = None, *, key: Any = None, agent: str | None = None, streaming: bool = False,
        **about: Any,
    ) -> Turn:  # fmt: skip
        """Return a new request, in the framework's session of this id, or in its own.

        `key` tells sessions apart where the framework's ids alone do not.
        """
        session_id = session_id or self._about.get("session_id")
        key = session_id if key is None else key
        entry = self._entries.get(key) if session_id is not None else None
        if entry is None:
            entry = LastingSession(self._session(session_id, agent, about))
            if session_id is not None:
                self._entries[key] = entry
                self._share(key, entry)
        if session_id is not None:
            self._entries.move_to_end(key)
        session = copy(entry.session)  # the copy has the request's own ids, and shares the session's state
        if "agent" not in self._about:
            session.agent = entry.agent_named(agent)
        if streaming not in self._capabilities:
            self._capabilities[streaming] = self.framework.capabilities(streaming)
        session.capabilities = self._capabilities[streaming]
        return Turn(session, self, entry, lasting=session_id is not None)

    def _session(self, session_id: str | None, agent: str | None, about: dict[str, Any]) -> Session:
        known = {"agent": agent or "agent", **self._about, **about}
        known.pop("session_id", None)
        session = self.hooks.session(session_id, **known, approver=_leave_to_framework if self._asks else None)
        session.limits, session.request_id = LIMITS, None  # `Turn.begin` makes one for each request
        return session

    def _share(self, key: Any, entry: LastingSession) -> None:
        twin = None if self._beside is None else self._beside._entries.get(key)
        if twin is not None:
            entry.twin, twin.twin = twin, entry
            entry.session.state, entry.session.store = twin.session.state, twin.session.store

    def judges(self, *events: str) -> bool:
        """Return whether a hook may refuse or change something at one of these events, and not only observe."""
        return any(hook.phase != "observe" and not hook.events.isdisjoint(events) for hook in self.hooks)

    def surplus(self) -> Iterable[LastingSession]:
        """Yield the least recently used sessions beyond `SESSIONS`. The caller ends them."""
        while len(self._entries) > SESSIONS:
            yield self._entries.popitem(last=False)[1]

    def closing(self) -> Flow[None]:
        """End all sessions."""
        while self._entries:
            yield from self.over(next(reversed(self._entries)), "exit")

    def over(self, key: Any, reason: str) -> Flow[None]:
        """End one session, if there is one."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            yield from end_session(entry, reason)


async def _leave_to_framework(request: ApprovalRequest) -> Approval:
    """Leave the question to the framework, which has its own way to ask."""
    return Approval("ask", request.step.host)


def end_session(entry: LastingSession, reason: str) -> Flow[list[Decision[Any]]]:
    """End a session: wait for its background tasks, report their errors, and fire `session_end`.

    Returns the decisions. No hook can keep a session from ending, so it is for the caller to look at them.
    """
    session = entry.session
    decisions: list[Decision[Any]] = []
    if not entry.started:
        return decisions
    entry.started = False
    errors = yield Call(session.close)  # a coroutine: it is awaited, or runs on the portal's thread
    steps: list[Step] = [session.step(Error, error=describe(error), where="background") for error in errors]
    if session.parent is None:  # a subagent has its own events
        steps.append(session.step(SessionEnd, reason=reason))
    for step in steps:
        with suppress(FairleadError):
            decisions.append((yield Dispatch(session, step)))
    return decisions


# --- a turn ---------------------------------------------------------------------------------------


class Turn:
    """One request and its turn, from `begin` to `end`."""

    def __init__(
        self, session: Session, sessions: Sessions, entry: LastingSession, *, lasting: bool, parent: Turn | None = None
    ) -> None:
        self.session = session
        self.sessions = sessions
        self.parent = parent
        self.waiting: list[Context] = []
        """The context that hooks have added since the model was last asked. It reads it in the next request."""
        self.placed: list[tuple[int, str]] = []
        """The context that the model has read so far, each text with the index of the message that follows it."""
        self.over = False
        """A hook has ended the turn, or refused its input. The user then reads `end_message`, and not an answer."""
        self.end_message: str | None = None
        self.by_hook = False
        """A hook has ended the turn, or has kept its answer back."""
        self.stop_reason = "end_turn"
        self.requests = self.extends = self.restarts = 0
        self._entry, self._lasting = entry, lasting
        self._results: list[dict[str, Any]] = []
        self._refusal = "refused"  # why a hook refused the model last
        self._started = self._ended = False
        self._turn_id: str | None = None
        self._handed_over: list[Session] = []  # the sessions, as they were before each hand-over

    # --- dispatching ------------------------------------------------------------------------

    def fire(self, kind: type[Step], /, **fields: Any) -> Flow[Decision[Any] | None]:
        """Dispatch a step and apply the decision (`take`). Returns None if no hook subscribes to the event.

        Most agents have hooks for few events, and building a step costs more than this look.
        """
        if kind not in self.subscribed_steps:
            return None
        return self.take((yield Dispatch(self.session, self.session.step(kind, **fields))))

    def take(self, decision: Decision[Any]) -> Decision[Any]:
        """Apply a decision to the turn: an abort raises, a stop ends the turn, context waits for the model."""
        if decision.contributions:
            decision.raise_for_abort()
            if decision.control != "extend":
                self.waiting += decision.context
            if decision.control == "stop":
                self.stop(decision.reason, decision.stop_reason or "end_turn")
        return decision

    @property
    def subscribed_steps(self) -> frozenset[type[Step]]:
        """The steps that some hook subscribes to, now."""
        return self.sessions.hooks.subscribed_steps

    def stop(self, reason: str | None, stop_reason: str = "end_turn") -> None:
        """End the turn, as soon as the host can do so."""
        if not self.over:
            self._end_early(f"[Stopped: {reason}]" if reason else None, stop_reason)

    def _end_early(self, end_message: str | None, stop_reason: str) -> None:
        self.over = self.by_hook = True
        self.end_message, self.stop_reason = end_message, stop_reason

    # --- the beginning ----------------------------------------------------------------------

    def open(self, source: str) -> Flow[None]:
        """Start the session."""
        self._entry.started = True
        yield from self.fire(SessionStart, source=source)
        self._entry.waiting += self.waiting
        self.waiting = []
        if self.over:
            self._entry.stopped = (self.end_message, self.stop_reason)

    def begin(
        self,
        message: Any,
        *,
        source: str = "user",
        system_prompt: str | None = None,
        committed_len: int = 1,
        prompted: bool = True,
        commit: Callable[[Any], object] | None = None,
    ) -> Flow[TurnInput]:
        """Start the request and its turn, with the user's input, up to the first request to the model.

        `committed_len` is the number of messages with the input. `commit`, if given, adds the accepted input to the
        conversation. A framework that builds the system prompt later calls `prompt` itself, and passes
        `prompted=False` here.
        """
        session, entry = self.session, self._entry
        for old in self.sessions.surplus():
            yield from end_session(old, "forgotten")
        session.request_id = new_id("request")
        if self.parent is None and not entry.started:
            try:
                yield from self.open("new")
            except Exception:  # a session that may not start is over, and the next request starts another one
                yield from end_session(entry, "error")
                raise
        self._keep_ids((yield from self.fire(BeforeRequest, state=session.state)))
        turn_input = TurnInput(message, system_prompt)
        if self.parent is None and entry.stopped is not None:
            self._end_early(*entry.stopped)
            entry.stopped = None
            return turn_input
        decision = yield from self.fire(BeforeInput, source=source, input=message)
        if decision is not None:
            turn_input.input = thaw(decision.step.input)
            if decision.denied:  # the context of the hooks waits for the next input
                self._end_early(f"[Message rejected: {decision.reason or 'refused'}]", "refusal")
        if self.over:
            return turn_input
        self._turn_id = session.turn_id = new_id("turn")
        self.waiting[:0], entry.waiting = entry.waiting, []
        if commit is not None:
            commit(turn_input.input)
        yield from self.fire(AfterInput, committed_len=committed_len)
        if self.over:
            return turn_input
        self._started = True
        is_subagent = session.parent is not None
        agent_type = session.agent.name if is_subagent and session.agent else None
        yield from self.fire(TurnStart, is_subagent=is_subagent, agent_type=agent_type)
        if not self.over and prompted:
            turn_input.system_prompt = yield from self.prompt(system_prompt, turn_input.input)
        return turn_input

    def prompt(self, system_prompt: str | None, message: Any) -> Flow[str | None]:
        """Return the system prompt to use for this input of the user."""
        decision = yield from self.fire(BeforePrompt, system_prompt=system_prompt, user_message=as_text(message))
        return system_prompt if decision is None else str(decision.step.system_prompt or "") or None

    def again(self) -> Turn:
        """Return another turn of the same subagent, which a hook keeps from stopping."""
        turn = self.__class__(self.session, self.sessions, self._entry, lasting=True, parent=self.parent)
        turn.restarts = self.restarts
        return turn

    @property
    def started(self) -> bool:
        """Whether the turn has started, and not ended."""
        return self._started

    def reopen(self) -> None:
        """Go on with a turn that the framework goes on with after its end."""
        self._started, self._ended = True, False
        self.session.turn_id = self._turn_id

    def _keep_ids(self, decision: Decision[Any] | None) -> None:
        """Keep the ids and the state, which a hook may have changed, for later requests of the session."""
        if decision is not None and self.parent is None:
            session, kept = self.session, self._entry.session
            kept.state, kept.checkpoint_id, kept.session_id = session.state, session.checkpoint_id, session.session_id
            if self._entry.twin is not None:
                self._entry.twin.session.state = session.state

    # --- the model --------------------------------------------------------------------------

    def before_model(self, model: str | None, messages: Sequence[Message], *, attempt: int = 1) -> Flow[ModelCall]:
        """Prepare a request to the model. `messages` is the conversation, with the context that was `placed`."""
        yield from self.end_batch()
        if self.over:
            return ModelCall(answer=self.end_message or "")
        self.requests += 1
        fresh, self.waiting = self.waiting, []
        if BeforeModel not in self.subscribed_steps:
            return ModelCall(injected=as_messages(fresh))
        shown = [*messages, *as_messages(fresh)]
        about = {"model": model, "messages": shown, "message_count": len(shown), "attempt": attempt}
        decision = self.take((yield Dispatch(self.session, self.session.step(BeforeModel, **about))))
        fresh += self.waiting
        self.waiting = []
        if decision.denied or self.over:
            self.waiting = fresh
            self._refuse(decision)
            return ModelCall(answer=self.end_message or "") if self.over else ModelCall(refused=True)
        step, model_call = decision.step, ModelCall(injected=as_messages(fresh))
        if step.model is not None and step.model != model:
            model_call.model = step.model
        if "messages" in decision.changed:
            model_call.messages = [*thaw(step.messages), *as_messages(decision.context)]
        if step.assistant is not None:
            model_call.answer = as_text(thaw(step.assistant))
            model_call.injected, self.waiting = [], fresh  # the model reads it when it is asked the next time
        return model_call

    def passes(self) -> bool:
        """Return whether the next request to the model concerns no hook. The framework then makes it by itself."""
        subscribed = self.subscribed_steps
        if self.over or self.waiting or self.placed or BeforeModel in subscribed or AfterModel in subscribed:
            return False
        if self._results and AfterToolBatch in subscribed:
            return False
        self.requests += 1
        self._results = []
        return True

    def after_model(self, model: str | None, reply: Reply) -> Flow[ModelResult | None]:
        """Judge the model's answer. None if it is not to be used: `waiting` then has the reason for the model."""
        decision = yield from self.fire(
            AfterModel, model=model, output=reply.text, usage=reply.usage, stop_reason=reply.stop_reason
        )
        if decision is None:
            return ModelResult()
        if self.over:
            return ModelResult(None, self.end_message or "")
        if decision.denied:
            self._refuse(decision)
            return None
        return ModelResult(text=as_text(thaw(decision.step.output)) if "output" in decision.changed else None)

    def model_failed(self, model: str | None, error: BaseException) -> Flow[None]:
        """Report a request to the model that failed."""
        yield from self.fire(AfterModel, model=model, error=describe(error))

    def ask(
        self,
        model: str | None,
        messages: Callable[[], Sequence[Message]],
        call: Callable[[ModelCall], Any],
        read: Callable[[Any], Reply],
        *,
        through: tuple[type[BaseException], ...] = (),
        attempts: int = REFUSALS,
    ) -> Flow[ModelResult]:
        """Ask the model under hooks: `call` makes the request, `read` turns the native reply into a `Reply`.

        If a hook refuses a request or its answer, the model is asked again and reads why. After three refusals the
        turn ends. A host that can make fewer requests passes `attempts`; if all are refused, `native` and `text` of
        the result are None. Exceptions in `through` are the framework's own, and no failure of the model.
        """
        for attempt in range(1, min(attempts, REFUSALS) + 1):
            model_call = yield from self.before_model(model, messages(), attempt=attempt)
            if model_call.refused:
                continue
            result = ModelResult(text=model_call.answer)
            if self.over:
                return result
            name = model_call.model or model
            reply = Reply(model_call.answer)
            if model_call.answer is None:
                try:
                    result.native = yield Call(partial(call, model_call))
                except through:
                    raise
                except Exception as error:
                    yield from self.model_failed(name, error)
                    raise
                if AfterModel not in self.subscribed_steps:
                    return result
                reply = read(result.native)
            after = yield from self.after_model(name, reply)
            if after is not None:
                if self.over:
                    return after
                result.text = result.text if after.text is None else after.text
                return result
        if attempts < REFUSALS:
            return ModelResult()
        self.end_refused()
        return ModelResult(None, self.end_message or "")

    def _refuse(self, decision: Decision[Any]) -> None:
        if decision.denied:
            self._refusal = decision.reason or "refused"
            self.waiting.append(Context(self._refusal, decision.hook or "fairlead"))

    def end_refused(self) -> None:
        """End the turn, because hooks have refused the model too often."""
        self.stop(self._refusal, "refusal")

    # --- context for the model ----------------------------------------------------------------

    def place(self, position: int, texts: Iterable[str]) -> None:
        """Remember where the model read some context, for a framework that does not keep it."""
        self.placed += [(position, text) for text in texts]

    def with_injected(self, messages: Iterable[T], make: Callable[[str], T]) -> list[T]:
        """Return the framework's messages with the context that was placed among them."""
        with_injected: list[T] = []
        places = iter([*self.placed, (-1, "")])
        position, text = next(places)
        for number, message in enumerate(messages):
            while position == number:
                with_injected.append(make(text))
                position, text = next(places)
            with_injected.append(message)
        while position >= 0:
            with_injected.append(make(text))
            position, text = next(places)
        return with_injected

    # --- tools ------------------------------------------------------------------------------

    def tool(
        self,
        name: str,
        args: Mapping[str, Any],
        call_id: str | None,
        run: Callable[[dict[str, Any]], Any],
        *,
        proposed: Literal["allow", "ask", "deny"] | Callable[[dict[str, Any]], Any] = "allow",
        ask: Ask | None = None,
        through: tuple[type[BaseException], ...] = (),
        read: Callable[[Any], Any] = lambda output: output,
        server: str | None = None,
        remote: str | None = None,
        **about: Any,
    ) -> ToolCall:
        """Return a tool call of this turn. `run` takes the arguments and returns the tool's output.

        `proposed` is what the host itself would do, or a function that says so for the final arguments. `ask` puts a
        question to a human by the host's own means. Exceptions in `through` are the framework's own: they pass as
        they are, and the call is not over. `read` turns an output into something that hooks can read. `server` is the
        MCP server of the tool, if it is of one, and `remote` the name that the tool has there.
        """
        if server is not None:
            tools, host = self.sessions.hooks.tools, self.session.host
            known = name if remote is None or tools.knows(name, host) else remote
            kind, target, safety = tools.classify(known, args, host, server=server)
            about = {"kind": kind, "target": target, "safety": safety, **about}
        about = {"tool": name, "call_id": call_id or new_id("call"), **about}
        return ToolCall(self, thaw(dict(args)), about, run, proposed, ask, through, read)

    def record_result(self, name: str, call_id: str, result: ToolResult) -> None:
        """Note that a call is over, for `after_tool_batch`."""
        fields = {"outcome": result.outcome, "is_error": result.is_error}
        self._results.append({"tool": name, "call_id": call_id, **fields})

    def end_batch(self, order: Sequence[str] = ()) -> Flow[None]:
        """Fire `after_tool_batch`, if calls have ended. `order` lists their ids, if they may have ended in another."""
        if self._results:
            results, self._results = self._results, []
            if order:
                results.sort(key=lambda result: order.index(result["call_id"]))
            yield from self.fire(AfterToolBatch, results=results)

    # --- the end ----------------------------------------------------------------------------

    def ending(
        self, *, voluntary: bool = True, committed_len: int = 1, commit: Callable[[str], object] | None = None
    ) -> Flow[str | None]:
        """Ask whether the turn may end. Returns the message with which the model goes on, if it may not.

        `committed_len` and `commit` are those of `begin`, for that message.
        """
        yield from self.end_batch()
        if self.over or not self._started:
            return None
        decision = yield from self.fire(
            BeforeTurnEnd, stop_reason=self.stop_reason, continues_so_far=self.extends, voluntary=voluntary
        )
        if decision is None:
            return None
        if decision.control == "stop":  # the turn was ending anyway, so the user still gets the model's answer
            self.over = False
        if decision.control != "extend" or self.extends >= EXTENDS:
            return None
        feedback = yield from self._continue("\n\n".join(decision.context) or FEEDBACK, committed_len, commit)
        self.over = False  # a hook that refuses the message lets the turn end, with the model's answer
        return feedback

    def _continue(
        self, feedback: str, committed_len: int, commit: Callable[[str], object] | None
    ) -> Flow[str | None]:  # fmt: skip
        """Judge the message that extends the turn as an input. Returns it, unless a hook refuses it."""
        decision = yield from self.fire(BeforeInput, source="continuation", input=feedback)
        if self.over or (decision is not None and decision.denied):
            return None
        if decision is not None and "input" in decision.changed:
            feedback = as_text(thaw(decision.step.input))
        if commit is not None:
            commit(feedback)
        yield from self.fire(AfterInput, committed_len=committed_len)
        if self.over:
            return None
        self.extends += 1
        return feedback

    def end(self, text: str | None, *, leaves: bool = True) -> Flow[TurnOutput]:
        """End the turn with the model's answer, and return what the user gets to see.

        With `leaves=False` the request goes on, for a framework that may still send the answer back: `leave` ends it.
        """
        shown = yield from self.respond(text)
        yield from self.end_turn(shown)
        shown = yield from self.output(shown)
        if leaves:
            yield from self.leave()
        return TurnOutput(shown, shown != text)

    def respond(self, text: str | None) -> Flow[str | None]:
        """Judge the response. If a hook has ended the turn, the response is what there is to say about that."""
        if self.over:
            return self.end_message
        return (yield from self._respond(text)) if self._started else text

    def end_turn(self, response: str | None) -> Flow[None]:
        """End the turn, if it has started."""
        try:
            if self._started:
                self._started = False
                while self._handed_over:
                    yield from self.hand_back()
                yield from self.fire(
                    TurnEnd, stop_reason=self.stop_reason, iterations=self.requests, response_length=len(response or "")
                )
        finally:
            self.session.turn_id = None

    def output(self, content: str | None) -> Flow[str | None]:
        """Judge what the user gets to see. None is nothing."""
        if content is None:
            return None
        decision = yield from self.fire(BeforeOutput, content=content)
        if decision is not None and decision.denied:
            self.by_hook = True
            return None
        return as_text(thaw(decision.step.content)) if decision and "content" in decision.changed else content

    def leave(self, error: str | None = None) -> Flow[None]:
        """End the request, whose turn has ended before."""
        if self._ended:
            return
        self._ended = True
        try:
            self._keep_ids((yield from self.fire(AfterRequest, state=self.session.state, error=error)))
        finally:
            if self.parent is None:
                self._entry.waiting += self.waiting
                self.waiting = []
                if not self._lasting:
                    yield from end_session(self._entry, "exit" if error is None else "error")

    def judge(self, text: str) -> Flow[TurnOutput]:
        """Judge another answer that the framework has made since the turn ended."""
        shown = yield from self._respond(text)
        shown = yield from self.output(shown)
        return TurnOutput(shown, shown != text)

    def _respond(self, response: str | None) -> Flow[str | None]:
        decision = yield from self.fire(BeforeResponse, response=response)
        if decision is not None and decision.denied:
            self.by_hook = True
            return f"[Response filtered: {decision.reason or 'refused'}]"
        return as_text(thaw(decision.step.response)) if decision and "response" in decision.changed else response

    def failed(self, error: BaseException) -> Flow[None]:
        """End the turn and the request early, and report the error. The caller raises it."""
        if self._ended:
            return
        text = "cancelled" if isinstance(error, CancelledError) else describe(error)
        self.stop_reason = "cancelled" if isinstance(error, CancelledError) else "error"
        with suppress(FairleadError):  # the caller raises what ended the request, and nothing that comes after it
            yield from self.end_turn(None)
        with suppress(FairleadError):
            yield from self.fire(Error, error=text, where="request")
        with suppress(FairleadError):
            yield from self.leave(text)

    # --- other agents -----------------------------------------------------------------------

    def hand_over(self, name: str, message: str | None = None) -> Flow[str | None]:
        """Hand the turn over to another agent, with the conversation so far. Returns why not, if a hook refuses."""
        session, before, can = self.session, self.session.agent, self.session.capabilities or {}
        session.agent = Agent(new_id("agent"), name, before.id if before else None)
        session.capabilities = {**can, "subagent_start": frozenset(can.get("subagent_start", ())) - {"initial_message"}}
        decision = yield from self.fire(SubagentStart, agent_name=name, initial_message=message)
        session.capabilities = can
        if decision is not None and decision.denied:
            session.agent = before
            return _may_not_start(name, decision)
        self._handed_over.append(copy(session))
        self._handed_over[-1].agent = before
        return None

    def hand_back(self) -> Flow[None]:
        """Hand the turn back to the agent that has handed it over."""
        name = self.session.agent.name if self.session.agent else None
        before = self._handed_over.pop().agent
        yield from self.fire(SubagentStop, agent_name=name, reason=self.stop_reason)
        self.session.agent = before

    def subagent(self, name: str, message: str | None) -> Flow[tuple[Turn, str | None, str | None]]:
        """Prepare a subagent. Returns its turn, its message, and why it may not start, if a hook refuses."""
        session = self.session.subagent(name, capabilities=self.session.capabilities, approver=self.session.approver)
        session.request_id = None  # `begin` makes one
        child = self.__class__(session, self.sessions, self._entry, lasting=True, parent=self)
        decision = yield from child.fire(SubagentStart, agent_name=name, initial_message=message)
        if decision is None:
            return child, message, None
        refused = _may_not_start(name, decision) if decision.denied else None
        return child, decision.step.initial_message, refused

    def stop_subagent(self, child: Turn, reason: str | None = None) -> Flow[str | None]:
        """Ask whether a subagent may stop. Returns the message with which it goes on (`again`), if it may not.

        `reason` says why it stops, where that is something else than the stop reason of its turn.
        """
        name = child.session.agent.name if child.session.agent else None
        decision = yield from child.fire(
            SubagentStop, agent_name=name, reason=reason or child.stop_reason, continues_so_far=child.restarts
        )
        self.waiting += child.waiting  # the agent that has started it reads the context that is left
        child.waiting = []
        if decision is None or decision.control != "extend" or child.restarts >= EXTENDS:
            return None
        child.restarts += 1
        return "\n\n".join(decision.context) or FEEDBACK


def _may_not_start(name: str, decision: Decision[Any]) -> str:
    return f"the agent {name!r} may not start: {decision.reason or 'denied'}"
