"""One request that a framework's agent works on: what is dispatched when, and what the framework is to do about it.

Frameworks differ in how they are told, and in whether they wait. So what happens is written down once, as generators
that yield what is to be dispatched or done, and are given what came of it: `drive` goes through one where things can
be awaited, `drive_sync` where they cannot. The order of the events is that of the reference loop (`loop`).
"""

from __future__ import annotations

import inspect
from asyncio import CancelledError
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy, deepcopy
from time import monotonic
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from ..approvals import Approval, ApprovalRequest
from ..decision import Context, Decision
from ..errors import FairleadError, HookAborted, describe
from ..frozen import thaw
from ..lifecycle import (
    AfterInput,
    AfterModel,
    AfterPermission,
    AfterRequest,
    AfterTool,
    AfterToolBatch,
    Agent,
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
    SessionEnd,
    SessionStart,
    Step,
    SubagentStart,
    SubagentStop,
    ToolRequested,
    TurnEnd,
    TurnStart,
)
from ..registry import Hooks
from ..session import Session, new_id
from ..threads import portal
from .framework import Framework
from .model import Message, as_text

T = TypeVar("T")
Work: TypeAlias = Generator[Any, Any, T]
"""Yields a (session, step) to be dispatched, or something to be called, and gets what came of it."""

EXTENDS, RETRIES, REFUSALS = 3, 2, 3
FEEDBACK = "The work is not finished yet. Go on."
"""What the model is told when a hook extends the turn without saying why."""
SESSIONS = 1000
"""Sessions that an adapter remembers. Beyond that, the one that was used least recently ends."""


# --- going through it -----------------------------------------------------------------------------


async def drive(work: Work[T]) -> T:
    """Go through some work, awaiting what is to be awaited."""
    value: Any = None
    error: BaseException | None = None
    while True:
        try:
            wanted = work.send(value) if error is None else work.throw(error)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        value = error = None
        try:
            if isinstance(wanted, tuple):
                value = await wanted[0].dispatch(wanted[1])
            else:
                value = wanted()
                if inspect.isawaitable(value):
                    value = await value
        except BaseException as raised:  # the work decides what becomes of it
            error = raised


def drive_sync(work: Work[T]) -> T:
    """Go through some work on this thread."""
    value: Any = None
    error: BaseException | None = None
    while True:
        try:
            wanted = work.send(value) if error is None else work.throw(error)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        value = error = None
        try:
            value = wanted[0].dispatch_sync(wanted[1]) if isinstance(wanted, tuple) else wanted()
            if inspect.iscoroutine(value):
                value = _wait_for(value)
        except BaseException as raised:
            error = raised


def _wait_for(work: Coroutine[Any, Any, Any]) -> Any:
    return portal.run(lambda: work)


# --- what the framework is to do ------------------------------------------------------------------


class Begun(msgspec.Struct):
    """How the turn begins: with this input, and this system prompt. Not at all if `turn.over` says so."""

    input: Any
    system_prompt: str | None


class Asking(msgspec.Struct):
    """How the model is to be asked."""

    model: str | None = None
    """Another model than the agent's."""
    messages: list[Message] | None = None
    """What it is sent instead, context and all."""
    context: list[str] = []
    """What is added for it to read, where `messages` is None."""
    answer: str | None = None
    """It is not asked: this is the answer."""
    refused: bool = False
    """It is not asked: `turn.waiting` has the reason, for it to read when it is asked again."""


class Reply(msgspec.Struct):
    """What a model answered, as hooks see it."""

    text: str | None = None
    usage: dict[str, Any] | None = None
    stop_reason: str | None = None


class Asked(msgspec.Struct):
    """What came of asking the model."""

    native: Any = None
    """The framework's own reply. None if there is none: a hook has answered, or the turn is over."""
    text: str | None = None
    """The text that the reply has instead of its own."""


class Called(msgspec.Struct):
    """What came of a tool call."""

    outcome: Literal["ok", "error", "denied", "aborted", "answered"] = "ok"
    output: Any = None
    """What the tool gave, as it is; or what the model is given instead, if `replaced`."""
    replaced: bool = False
    is_error: bool = False
    error: Exception | None = None
    """What the tool raised, where hooks have nothing to say about it: the framework has its own ways."""

    @property
    def text(self) -> str:
        return as_text(self.output)

    def result(self) -> Any:
        """What the tool gave, or is said to have given. Raises what it raised."""
        if self.error is not None and not self.replaced:
            raise self.error
        return self.output


class Ended(msgspec.Struct):
    """What the user gets to see. None is nothing."""

    text: str | None
    changed: bool = False


Ask: TypeAlias = Callable[[Decision[Any]], Any]
"""Puts the question to a human by the framework's own means, and gives an `Approval`; or leaves by an exception."""


# --- sessions -------------------------------------------------------------------------------------


class _Kept(msgspec.Struct):
    """A session that goes on from request to request."""

    session: Session
    started: bool = False
    waiting: list[Context] = []


class Runs:
    """The sessions of the agents that run under some hooks, in one framework.

    A request that belongs to no session of the framework's has one of its own, which ends with it.
    """

    def __init__(self, hooks: Hooks | None, framework: Framework, *, asks: bool = False, **about: Any) -> None:
        self.hooks = hooks if hooks is not None else Hooks()
        self.framework = framework
        self._asks = asks and self.hooks.approver is None  # whoever is named to approve is asked, and not the framework
        self._about = {"host": framework.name, **about}
        self._can = {streaming: framework.capabilities(streaming) for streaming in (False, True)}
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def turn(
        self, session_id: str | None = None, *, agent: str | None = None, streaming: bool = False, **about: Any
    ) -> Turn:
        """A new request, of some session of the framework's or of its own."""
        session_id = session_id or self._about.get("session_id")
        kept = self._kept.get(session_id) if session_id is not None else None
        if kept is None:
            kept = _Kept(self._session(session_id, agent, about))
            if session_id is not None:
                self._kept[session_id] = kept
        if session_id is not None:
            self._kept.move_to_end(session_id)
        session = copy(kept.session)  # whose ids are this request's, whose state is the session's
        session.capabilities = self._can[streaming]
        return Turn(session, self, kept, lasting=session_id is not None)

    def _session(self, session_id: str | None, agent: str | None, about: dict[str, Any]) -> Session:
        known = {"agent": agent or "agent", **self._about, **about}
        known.pop("session_id", None)
        session = self.hooks.session(session_id, **known)
        if self._asks:
            session.approver = _leave_it
        return session

    def judges(self, *events: str) -> bool:
        """Whether some hook may refuse or change something at one of these events, and not only watch."""
        return any(hook.phase != "observe" and not hook.events.isdisjoint(events) for hook in self.hooks)

    def surplus(self) -> Iterable[_Kept]:
        while len(self._kept) > SESSIONS:
            yield self._kept.popitem(last=False)[1]

    def closing(self) -> Work[None]:
        """End all sessions."""
        while self._kept:
            yield from end_session(self._kept.popitem()[1], "exit")

    async def aclose(self) -> None:
        await drive(self.closing())

    def close(self) -> None:
        drive_sync(self.closing())


async def _leave_it(request: ApprovalRequest) -> Approval:
    """The framework has its own way to ask."""
    return Approval("ask", request.step.host)


def end_session(kept: _Kept, reason: str) -> Work[None]:
    session = kept.session
    if kept.started:
        kept.started = False
        yield session.close  # a coroutine, where it can be awaited; background work is waited for there
        with suppress(FairleadError):  # it is over, whoever may object
            yield session, session.step(SessionEnd, reason=reason)


# --- a turn ---------------------------------------------------------------------------------------


class Turn:
    """One request, from `begin` to `end`."""

    def __init__(self, session: Session, runs: Runs, kept: _Kept, *, lasting: bool, parent: Turn | None = None) -> None:
        self.session = session
        self.runs = runs
        self.parent = parent
        self.waiting: list[Context] = []
        """What hooks want the model to read, the next time that it is asked."""
        self.placed: list[tuple[int, str]] = []
        """What it was given to read so far, and before which message."""
        self.over = False
        """A hook has ended the turn, or refused it. `said` is then all there is to say."""
        self.said: str | None = None
        self.stop_reason = "end_turn"
        self.requests = self.extends = 0
        self._kept, self._lasting = kept, lasting
        self._results: list[dict[str, Any]] = []
        self._started = self._ended = False
        self._helpers: list[Session] = []  # whoever the work was handed to, and by whom

    # --- dispatching ------------------------------------------------------------------------

    def _fire(self, kind: type[Step], /, **fields: Any) -> Work[Decision[Any]]:
        """Dispatch a step. Raises `HookAborted`; a stop ends the turn, context waits for the model to be asked."""
        decision: Decision[Any] = yield self.session, self.session.step(kind, **fields)
        if decision.said:
            decision.raise_for_abort()
            if decision.control != "extend":
                self.waiting += decision.context
            if decision.control == "stop":
                self.stop(decision.reason, decision.stop_reason or "end_turn")
        return decision

    def stop(self, reason: str | None, stop_reason: str = "end_turn") -> None:
        """The turn ends as soon as the framework can be made to."""
        if not self.over:
            self.over, self.stop_reason = True, stop_reason
            self.said = f"[Stopped: {reason}]" if reason else None

    # --- the beginning ----------------------------------------------------------------------

    def begin(
        self, given: Any, *, source: str = "user", system_prompt: str | None = None, committed_len: int = 1
    ) -> Work[Begun]:
        """What comes before the model. `given` is what the user says; `committed_len` the messages with it."""
        session, kept = self.session, self._kept
        for old in self.runs.surplus():
            yield from end_session(old, "forgotten")
        session.request_id = new_id("request")
        if self.parent is None and not kept.started:
            kept.started = True
            yield from self._fire(SessionStart, source="new")
        before = yield from self._fire(BeforeRequest, state=session.state)
        self._take_ids(before.step)
        decision = yield from self._fire(BeforeInput, source=source, input=given)
        begun = Begun(thaw(decision.step.input), system_prompt)
        if decision.denied:  # and what hooks wanted to be read is read by the next one
            self.over, self.stop_reason = True, "refusal"
            self.said = f"[Message rejected: {decision.reason or 'refused'}]"
        if self.over:
            return begun
        session.turn_id = new_id("turn")
        self.waiting[:0], kept.waiting = kept.waiting, []
        self._started = True
        yield from self._fire(AfterInput, committed_len=committed_len)
        is_helper = self.parent is not None
        agent_type = session.agent.name if is_helper and session.agent else None
        if not self.over:
            yield from self._fire(TurnStart, is_subagent=is_helper, agent_type=agent_type)
        if not self.over:
            prompt = yield from self._fire(BeforePrompt, system_prompt=system_prompt, user_message=as_text(begun.input))
            begun.system_prompt = prompt.step.system_prompt
        return begun

    def _take_ids(self, step: BeforeRequest | AfterRequest) -> None:
        session, kept = self.session, self._kept
        session.state = step.state
        session.checkpoint_id = step.checkpoint_id
        if step.session_id is not None:
            session.session_id = step.session_id
        if self.parent is None:
            kept.session.state, kept.session.checkpoint_id = session.state, session.checkpoint_id
            kept.session.session_id = session.session_id

    # --- the model --------------------------------------------------------------------------

    def before_model(self, model: str | None, messages: Sequence[Message], *, attempt: int = 1) -> Work[Asking]:
        """The model is about to be asked. `messages` are those of the conversation, with what was placed there."""
        yield from self._batch()
        if self.over:
            return Asking(answer=self.said or "")
        self.requests += 1
        fresh, self.waiting = self.waiting, []
        shown = [*messages, *as_messages(fresh)]
        decision = yield from self._fire(
            BeforeModel, model=model, messages=shown, message_count=len(shown), attempt=attempt
        )
        fresh += self.waiting
        self.waiting = []
        step = decision.step
        if decision.denied or self.over:
            self.waiting = fresh
            self._refuse(decision)
            return Asking(answer=self.said or "") if self.over else Asking(refused=True)
        asking = Asking(context=[f"[{text.hook}] {text}" for text in fresh])
        if step.model is not None and step.model != model:
            asking.model = step.model
        if "messages" in decision.changed:
            asking.messages = [*thaw(step.messages), *as_messages(decision.context)]
        if step.assistant is not None:
            asking.answer = as_text(thaw(step.assistant))
        return asking

    def after_model(self, model: str | None, reply: Reply) -> Work[Asked | None]:
        """The model has answered. None if the answer is not to be used: `waiting` then has the reason for the model."""
        decision = yield from self._fire(
            AfterModel, model=model, output=reply.text, usage=reply.usage, stop_reason=reply.stop_reason
        )
        if self.over:
            return Asked(None, self.said or "")
        if decision.denied:
            self._refuse(decision)
            return None
        return Asked(text=as_text(thaw(decision.step.output)) if "output" in decision.changed else None)

    def model_failed(self, model: str | None, error: BaseException) -> Work[None]:
        yield from self._fire(AfterModel, model=model, error=describe(error))

    def ask(
        self,
        model: str | None,
        messages: Callable[[], Sequence[Message]],
        call: Callable[[Asking], Any],
        read: Callable[[Any], Reply],
    ) -> Work[Asked]:
        """All of it, for a framework that lets one stand between it and the model: `call` asks, `read` tells the reply.

        A model whose request or answer is refused is told why, and asked again, some times.
        """
        for attempt in range(1, REFUSALS + 1):
            asking = yield from self.before_model(model, messages(), attempt=attempt)
            if asking.refused:
                continue
            asked = Asked(text=asking.answer)
            if self.over:
                return asked
            name = asking.model or model
            reply = Reply(asking.answer)
            if asking.answer is None:
                try:
                    asked.native = yield lambda asking=asking: call(asking)
                except Exception as error:
                    yield from self.model_failed(name, error)
                    raise
                reply = read(asked.native)
            after = yield from self.after_model(name, reply)
            if after is not None:
                if self.over:
                    return after
                asked.text = asked.text if after.text is None else after.text
                return asked
        self.stop(self._reason, "refusal")
        return Asked(None, self.said or "")

    def _refuse(self, decision: Decision[Any]) -> None:
        if decision.denied:
            self._reason = decision.reason or "refused"
            self.waiting.append(Context(self._reason, decision.hook or "fairlead"))

    _reason = "refused"

    # --- what hooks have to say to the model --------------------------------------------------

    def place(self, position: int, texts: Iterable[str]) -> None:
        """Remember where the model was told something, for a framework that forgets what it is given to add."""
        self.placed += [(position, text) for text in texts]

    def woven(self, messages: Iterable[T], make: Callable[[str], T]) -> list[T]:
        """The framework's messages, with what was placed among them."""
        woven: list[T] = []
        places = iter([*self.placed, (-1, "")])
        position, text = next(places)
        for number, message in enumerate(messages):
            while position == number:
                woven.append(make(text))
                position, text = next(places)
            woven.append(message)
        while position >= 0:
            woven.append(make(text))
            position, text = next(places)
        return woven

    # --- tools ------------------------------------------------------------------------------

    def tool(
        self,
        name: str,
        args: Mapping[str, Any],
        call_id: str | None,
        run: Callable[[dict[str, Any]], Any],
        *,
        proposed: Literal["allow", "ask", "deny"] = "allow",
        ask: Ask | None = None,
        through: tuple[type[BaseException], ...] = (),
        read: Callable[[Any], Any] = lambda output: output,
        **about: Any,
    ) -> Work[Called]:
        """One call: judged, run, and told of. `run` is given the arguments and gives the tool's output.

        `ask` puts a question to a human by the framework's own means. Exceptions in `through` are the framework's own:
        they pass as they are, and the call is not over. `read` makes of an output what hooks can read.
        """
        about = {"tool": name, "call_id": call_id or new_id("call"), **about}
        called = Called()
        args = yield from self._judge(called, dict(args), about, proposed, ask)
        for attempt in range(1, RETRIES + 2):
            began, executed = monotonic(), called.outcome == "ok"
            if executed:
                yield from self._execute(called, args, about, run, through)
            told = called.output if called.replaced else _readable(read(called.output))
            error = called.text if called.is_error and called.replaced else called.error and describe(called.error)
            decision = yield from self._fire(
                AfterTool, args=args, outcome=called.outcome, executed=executed, error=error, attempt=attempt,
                output=None if called.is_error else told, is_error=called.is_error,
                duration=monotonic() - began if executed else None, **about,
            )  # fmt: skip
            if decision.control != "retry" or attempt > RETRIES:
                break
            called = Called()
        if decision.denied:
            withheld = f"[withheld by {decision.hook}] {decision.reason or ''}".rstrip()
            called.output, called.replaced, called.is_error = withheld, True, True
        elif "output" in decision.changed:
            called.output, called.replaced = thaw(decision.step.output), True
        self._results.append({
            "tool": name, "call_id": about["call_id"], "outcome": called.outcome, "is_error": called.is_error
        })  # fmt: skip
        return called

    def _judge(
        self, called: Called, args: dict[str, Any], about: dict[str, Any], proposed: str, ask: Ask | None
    ) -> Work[dict[str, Any]]:
        """Whether a call may run, and with which arguments."""
        if not self.over:
            yield from self._fire(ToolRequested, args=args, **about)
        if self.over:
            _refused(called, "not run: the turn was stopped", "aborted")
            return args
        decision = yield from self._fire(BeforeTool, args=args, **about)
        if decision.denied:
            _refused(called, f"Hook blocked tool '{about['tool']}': {decision.reason or 'denied'}")
        elif self.over:
            _refused(called, "not run: the turn was stopped", "aborted")
        elif decision.step.result is not None:
            called.outcome, called.replaced = "answered", True
            called.output, called.is_error = thaw(decision.step.result), bool(decision.step.is_error)
        else:
            args = thaw(decision.step.args)
            if decision.control == "allow":
                proposed = "allow"
            elif decision.control == "ask":
                proposed = "ask"
            yield from self._permit(called, args, about, proposed, decision, ask)
        return args

    def _permit(
        self, called: Called, args: dict[str, Any], about: dict[str, Any], proposed: str,
        before: Decision[Any], ask: Ask | None,
    ) -> Work[None]:  # fmt: skip
        """The permission events, around what the framework itself would do."""
        decision = yield from self._fire(BeforePermission, args=args, proposed=proposed, **about)
        granted, why = proposed == "allow", "refused"
        if decision.control in ("allow", "deny") or decision.denied:
            granted, why = decision.control == "allow", decision.reason or "refused"
        elif proposed == "ask" or decision.control == "ask":
            asking = decision if decision.control == "ask" else before
            approval = Approval("deny", None, "nobody is there to approve")
            if ask is not None:
                approval = yield lambda: ask(asking)
            granted, why = approval.granted, approval.explain(asking.reason) or "refused"
        yield from self._fire(AfterPermission, args=args, granted=granted, **about)
        if not granted:
            _refused(called, f"Permission denied for tool '{about['tool']}': {why}")
        elif self.over:
            _refused(called, "not run: the turn was stopped", "aborted")

    def _execute(
        self, called: Called, args: dict[str, Any], about: dict[str, Any], run: Callable[[dict[str, Any]], Any],
        through: tuple[type[BaseException], ...],
    ) -> Work[None]:  # fmt: skip
        try:
            called.output = yield lambda: run(deepcopy(args))  # which are its own to change
        except through:
            raise
        except CancelledError:
            fields = {"outcome": "aborted", "is_error": True, "error": "the request was cancelled", **about}
            with suppress(FairleadError):
                yield from self._fire(AfterTool, args=args, **fields)
            raise
        except HookAborted:  # in a subagent; it fails this request, too
            raise
        except Exception as error:
            called.outcome, called.is_error, called.error = "error", True, error
            yield from self._fire(Error, error=describe(error), where=f"tool {about['tool']}")

    def _batch(self) -> Work[None]:
        """All calls of one reply are over."""
        if self._results:
            results, self._results = self._results, []
            yield from self._fire(AfterToolBatch, results=results)

    # --- the end ----------------------------------------------------------------------------

    def ending(self, *, voluntary: bool = True) -> Work[str | None]:
        """The turn is about to end. What the model is told instead, if it is to go on."""
        yield from self._batch()
        if self.over or not self._started:
            return None
        decision = yield from self._fire(
            BeforeTurnEnd, stop_reason=self.stop_reason, continues_so_far=self.extends, voluntary=voluntary
        )
        if decision.control == "stop":  # which it was about to do: what the model said is still worth hearing
            self.over = False
        if decision.control != "extend" or self.extends >= EXTENDS:
            return None
        self.extends += 1
        return "\n\n".join(decision.context) or FEEDBACK

    def end(self, text: str | None) -> Work[Ended]:
        """The turn is over. What the user gets to see; if a hook has ended it, that is what there is to say of it."""
        shown = self.said if self.over else text
        if self._started:
            if not self.over:
                decision = yield from self._fire(BeforeResponse, response=shown)
                if decision.denied:
                    shown = f"[Response filtered: {decision.reason or 'refused'}]"
                elif "response" in decision.changed:
                    shown = as_text(thaw(decision.step.response))
            yield from self._end_turn(shown)
        if shown is not None:
            decision = yield from self._fire(BeforeOutput, content=shown)
            if decision.denied:
                shown = None
            elif "content" in decision.changed:
                shown = as_text(thaw(decision.step.content))
        yield from self._end_request()
        return Ended(shown, shown != text)

    def failed(self, error: BaseException) -> Work[None]:
        """Whatever ended the request early is told of. It is for the caller to raise it."""
        if self._ended:
            return
        text = "cancelled" if isinstance(error, CancelledError) else describe(error)
        self.stop_reason = "cancelled" if isinstance(error, CancelledError) else "error"
        with suppress(FairleadError):  # what ended the request is what its caller should hear of
            yield from self._fire(Error, error=text, where="request")
        with suppress(FairleadError):
            if self._started:
                yield from self._end_turn(None)
        with suppress(FairleadError):
            yield from self._end_request(text)

    def _end_turn(self, response: str | None) -> Work[None]:
        self._started = False
        while self._helpers:
            yield from self.hand_back()
        yield from self._fire(
            TurnEnd, stop_reason=self.stop_reason, iterations=self.requests, response_length=len(response or "")
        )

    def _end_request(self, error: str | None = None) -> Work[None]:
        if self._ended:
            return
        self._ended = True
        try:
            after = yield from self._fire(AfterRequest, state=self.session.state, error=error)
            self._take_ids(after.step)
        finally:
            if self.parent is None:
                self._kept.waiting += self.waiting
                self.waiting = []
                if not self._lasting:
                    yield from end_session(self._kept, "exit" if error is None else "error")

    # --- other agents -----------------------------------------------------------------------

    def hand_over(self, name: str, message: str | None = None) -> Work[str | None]:
        """Another agent goes on with the work. Why not, if it may not."""
        before = self.session.agent
        session = self.session
        session.agent = Agent(new_id("agent"), name, before.id if before else None)
        decision = yield from self._fire(SubagentStart, agent_name=name, initial_message=message)
        if decision.denied:
            session.agent = before
            return f"the agent {name!r} may not start: {decision.reason or 'denied'}"
        self._helpers.append(copy(session))
        self._helpers[-1].agent = before
        return None

    def hand_back(self) -> Work[None]:
        """Whoever the work was handed to is done with it."""
        name = self.session.agent.name if self.session.agent else None
        before = self._helpers.pop().agent
        yield from self._fire(SubagentStop, agent_name=name, reason=self.stop_reason)
        self.session.agent = before

    def helper(self, name: str, message: str | None) -> Work[tuple[Turn, str | None, str | None]]:
        """A subagent is about to start: its turn, its message, and why not, if it may not."""
        session = self.session.subagent(name, capabilities=self.session.capabilities)
        session.approver = self.session.approver
        child = Turn(session, self.runs, self._kept, lasting=True, parent=self)
        decision = yield from child._fire(SubagentStart, agent_name=name, initial_message=message)
        refused = f"the agent {name!r} may not start: {decision.reason or 'denied'}" if decision.denied else None
        return child, decision.step.initial_message, refused

    def helper_stops(self, child: Turn) -> Work[str | None]:
        """A subagent is about to stop. What it is told instead, if it is to go on."""
        name = child.session.agent.name if child.session.agent else None
        decision = yield from child._fire(
            SubagentStop, agent_name=name, reason=child.stop_reason, continues_so_far=child.extends
        )
        self.waiting += child.waiting  # what is said of it is for whoever asked it
        child.waiting = []
        if decision.control != "extend" or child.extends >= EXTENDS:
            return None
        child.extends += 1
        return "\n\n".join(decision.context) or FEEDBACK


def _refused(called: Called, why: str, outcome: Literal["denied", "aborted"] = "denied") -> None:
    called.outcome, called.output, called.replaced, called.is_error = outcome, why, True, True


def _readable(output: Any) -> Any:
    """A tool's output as a step takes it: a text, an object or a list of content blocks."""
    if output is None or isinstance(output, (str, dict)):
        return output
    if isinstance(output, (list, tuple)) and all(isinstance(block, dict) for block in output):
        return list(output)
    try:
        return msgspec.json.encode(output, enc_hook=str).decode()
    except Exception:
        return str(output)


# --- messages -------------------------------------------------------------------------------------


def as_messages(context: Iterable[Context]) -> list[Message]:
    """What hooks have to say to the model, as messages."""
    return [{"role": "user", "content": f"[{text.hook}] {text}", "hook": text.hook} for text in context]


def rewritten(
    native: Sequence[T], plain: Sequence[Message], wanted: Sequence[Message], make: Callable[[Message], T]
) -> list[T]:
    """The framework's messages for what a hook made of them: its own where they are as they were, else new ones."""
    left = list(zip(plain, native, strict=True))
    found: list[T] = []
    for message in wanted:
        at = next((number for number, (old, _) in enumerate(left) if old == message), None)
        found.append(make(message) if at is None else left.pop(at)[1])
    return found
