"""One request that a framework's agent works on: what is dispatched when, and what the framework is to do about it.

The order of the events is that of the reference loop (`loop`). What a framework's adapter calls gives `Work`, to be
gone through with `drive` where things can be awaited, and with `drive_sync` where they cannot.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from typing import Any, Literal, TypeVar

import msgspec

from ..approvals import Approval, ApprovalRequest
from ..decision import Context, Decision
from ..errors import FairleadError, UnknownName, describe
from ..frozen import thaw
from ..lifecycle import (
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
from ..registry import Hooks
from ..session import About, Session, new_id
from .framework import Framework
from .model import Message, as_messages, as_text
from .tool_call import RETRIES, Ask, Called, ToolCall
from .work import Work

T = TypeVar("T")

EXTENDS, REFUSALS = 3, 3
FEEDBACK = "The work is not finished yet. Go on."
"""What the model is told when a hook extends the turn without saying why."""
SESSIONS = 1000
"""Sessions that an adapter remembers. Beyond that, the one that was used least recently ends."""


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


class Ended(msgspec.Struct):
    """What the user gets to see. None is nothing."""

    text: str | None
    changed: bool = False


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
        if hooks is not None and not isinstance(hooks, Hooks):
            raise TypeError(f"Fairlead takes the Hooks that yours are registered with, not {type(hooks).__name__}")
        for unknown in about.keys() - About.__annotations__.keys() - {"session_id"}:
            raise UnknownName("keyword", unknown, [*About.__annotations__, "models", "session_id"], " of Fairlead")
        self.hooks = hooks if hooks is not None else Hooks()
        self.framework = framework
        self._asks = asks and self.hooks.approver is None  # whoever is named to approve is asked, and not the framework
        self._about = {"host": framework.name, **about}
        self._can = {streaming: framework.capabilities(streaming) for streaming in (False, True)}
        self._kept: OrderedDict[Any, _Kept] = OrderedDict()

    def turn(
        self, session_id: str | None = None, *, key: Any = None, agent: str | None = None, streaming: bool = False,
        **about: Any,
    ) -> Turn:  # fmt: skip
        """A new request, of some session of the framework's or of its own.

        `key` tells sessions apart where the framework's ids alone do not.
        """
        session_id = session_id or self._about.get("session_id")
        key = session_id if key is None else key
        kept = self._kept.get(key) if session_id is not None else None
        if kept is None:
            kept = _Kept(self._session(session_id, agent, about))
            if session_id is not None:
                self._kept[key] = kept
        if session_id is not None:
            self._kept.move_to_end(key)
        session = copy(kept.session)  # whose ids are this request's, whose state is the session's
        session.capabilities = self._can[streaming]
        return Turn(session, self, kept, lasting=session_id is not None)

    def _session(self, session_id: str | None, agent: str | None, about: dict[str, Any]) -> Session:
        known = {"agent": agent or "agent", **self._about, **about}
        known.pop("session_id", None)
        session = self.hooks.session(session_id, **known)
        session.limits = {"extend": EXTENDS, "retry": RETRIES}
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
            yield from self.over(next(reversed(self._kept)), "exit")

    def over(self, key: Any, reason: str) -> Work[None]:
        """End one session, if there is one."""
        kept = self._kept.pop(key, None)
        if kept is not None:
            yield from end_session(kept, reason)


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
        self._reason = "refused"  # why the model was refused last
        self._started = self._ended = False
        self._helpers: list[Session] = []  # whoever the work was handed to, and by whom

    # --- dispatching ------------------------------------------------------------------------

    def fire(self, kind: type[Step], /, **fields: Any) -> Work[Decision[Any] | None]:
        """Dispatch a step. Raises `HookAborted`; a stop ends the turn, context waits for the model to be asked.

        None if nobody listens: most events of most agents are nobody's, and a step costs more than a look.
        """
        if kind not in self.heard:
            return None
        return self.take((yield self.session, self.session.step(kind, **fields)))

    def take(self, decision: Decision[Any]) -> Decision[Any]:
        """What a decision has to say to the turn."""
        if decision.said:
            decision.raise_for_abort()
            if decision.control != "extend":
                self.waiting += decision.context
            if decision.control == "stop":
                self.stop(decision.reason, decision.stop_reason or "end_turn")
        return decision

    @property
    def heard(self) -> frozenset[type[Step]]:
        """What somebody listens to, now."""
        return self.runs.hooks.heard

    def stop(self, reason: str | None, stop_reason: str = "end_turn") -> None:
        """The turn ends as soon as the framework can be made to."""
        if not self.over:
            self.over, self.stop_reason = True, stop_reason
            self.said = f"[Stopped: {reason}]" if reason else None

    # --- the beginning ----------------------------------------------------------------------

    def begin(
        self,
        given: Any,
        *,
        source: str = "user",
        system_prompt: str | None = None,
        committed_len: int = 1,
        prompted: bool = True,
    ) -> Work[Begun]:
        """What comes before the model. `given` is what the user says; `committed_len` the messages with it.

        A framework that tells the system prompt later calls `prompt` itself, and says `prompted=False` here.
        """
        session, kept = self.session, self._kept
        for old in self.runs.surplus():
            yield from end_session(old, "forgotten")
        session.request_id = new_id("request")
        if self.parent is None and not kept.started:
            kept.started = True
            try:
                yield from self.fire(SessionStart, source="new")
            except Exception:  # a session that may not start is over, and the next request starts another one
                yield from end_session(kept, "error")
                raise
        self._take_ids((yield from self.fire(BeforeRequest, state=session.state)))
        decision = yield from self.fire(BeforeInput, source=source, input=given)
        begun = Begun(given, system_prompt)
        if decision is not None:
            begun.input = thaw(decision.step.input)
            if decision.denied:  # and what hooks wanted to be read is read by the next one
                self.over, self.stop_reason = True, "refusal"
                self.said = f"[Message rejected: {decision.reason or 'refused'}]"
        if self.over:
            return begun
        session.turn_id = new_id("turn")
        self.waiting[:0], kept.waiting = kept.waiting, []
        self._started = True
        yield from self.fire(AfterInput, committed_len=committed_len)
        is_helper = self.parent is not None
        agent_type = session.agent.name if is_helper and session.agent else None
        if not self.over:
            yield from self.fire(TurnStart, is_subagent=is_helper, agent_type=agent_type)
        if not self.over and prompted:
            begun.system_prompt = yield from self.prompt(system_prompt, begun.input)
        return begun

    def prompt(self, system_prompt: str | None, given: Any) -> Work[str | None]:
        """The system prompt to be used, for what the user says."""
        decision = yield from self.fire(BeforePrompt, system_prompt=system_prompt, user_message=as_text(given))
        return system_prompt if decision is None else str(decision.step.system_prompt or "") or None

    def again(self) -> Turn:
        """Another turn of the same subagent, which was told to go on when it had ended."""
        turn = Turn(self.session, self.runs, self._kept, lasting=True, parent=self.parent)
        turn.extends = self.extends
        return turn

    @property
    def started(self) -> bool:
        """Whether it has begun, and not ended."""
        return self._started

    def reopen(self) -> None:
        """It looked like the end, and was not."""
        self._started, self._ended = True, False

    def _take_ids(self, decision: Decision[Any] | None) -> None:
        if decision is None:
            return
        session, kept, step = self.session, self._kept, decision.step
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
        if BeforeModel not in self.heard:
            return Asking(context=[text.signed for text in fresh])
        shown = [*messages, *as_messages(fresh)]
        about = {"model": model, "messages": shown, "message_count": len(shown), "attempt": attempt}
        decision = self.take((yield self.session, self.session.step(BeforeModel, **about)))
        fresh += self.waiting
        self.waiting = []
        if decision.denied or self.over:
            self.waiting = fresh
            self._refuse(decision)
            return Asking(answer=self.said or "") if self.over else Asking(refused=True)
        step, asking = decision.step, Asking(context=[text.signed for text in fresh])
        if step.model is not None and step.model != model:
            asking.model = step.model
        if "messages" in decision.changed:
            asking.messages = [*thaw(step.messages), *as_messages(decision.context)]
        if step.assistant is not None:
            asking.answer = as_text(thaw(step.assistant))
        return asking

    def passes(self) -> bool:
        """Whether nobody has anything to say of the next request to the model. Then it is made as it is."""
        heard = self.heard
        if self.over or self.waiting or self.placed or BeforeModel in heard or AfterModel in heard:
            return False
        if self._results and AfterToolBatch in heard:
            return False
        self.requests += 1
        self._results = []
        return True

    def after_model(self, model: str | None, reply: Reply) -> Work[Asked | None]:
        """The model has answered. None if the answer is not to be used: `waiting` then has the reason for the model."""
        decision = yield from self.fire(
            AfterModel, model=model, output=reply.text, usage=reply.usage, stop_reason=reply.stop_reason
        )
        if decision is None:
            return Asked()
        if self.over:
            return Asked(None, self.said or "")
        if decision.denied:
            self._refuse(decision)
            return None
        return Asked(text=as_text(thaw(decision.step.output)) if "output" in decision.changed else None)

    def model_failed(self, model: str | None, error: BaseException) -> Work[None]:
        yield from self.fire(AfterModel, model=model, error=describe(error))

    def ask(
        self,
        model: str | None,
        messages: Callable[[], Sequence[Message]],
        call: Callable[[Asking], Any],
        read: Callable[[Any], Reply],
        *,
        through: tuple[type[BaseException], ...] = (),
    ) -> Work[Asked]:
        """All of it, for a framework that lets one stand between it and the model: `call` asks, `read` tells the reply.

        A model whose request or answer is refused is told why, and asked again, some times. Exceptions in `through` are
        the framework's own, and no failure of the model's.
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
                except through:
                    raise
                except Exception as error:
                    yield from self.model_failed(name, error)
                    raise
                if AfterModel not in self.heard:
                    return asked
                reply = read(asked.native)
            after = yield from self.after_model(name, reply)
            if after is not None:
                if self.over:
                    return after
                asked.text = asked.text if after.text is None else after.text
                return asked
        self.give_up()
        return Asked(None, self.said or "")

    def _refuse(self, decision: Decision[Any]) -> None:
        if decision.denied:
            self._reason = decision.reason or "refused"
            self.waiting.append(Context(self._reason, decision.hook or "fairlead"))

    def give_up(self) -> None:
        """The model was refused too often: the turn ends."""
        self.stop(self._reason, "refusal")

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
        proposed: Literal["allow", "ask", "deny"] | Callable[[dict[str, Any]], Any] = "allow",
        ask: Ask | None = None,
        through: tuple[type[BaseException], ...] = (),
        read: Callable[[Any], Any] = lambda output: output,
        **about: Any,
    ) -> ToolCall:
        """One call, to be judged, run, and told of. `run` is given the arguments and gives the tool's output.

        `proposed` is what the framework itself would do, or what says it of the arguments as they are in the end; `ask`
        puts a question to a human by the framework's own means.
        Exceptions in `through` are the framework's own: they pass as they are, and the call is not over. `read` makes
        of an output what hooks can read.
        """
        about = {"tool": name, "call_id": call_id or new_id("call"), **about}
        return ToolCall(self, dict(args), about, run, proposed, ask, through, read)

    def told(self, name: str, call_id: str, called: Called) -> None:
        """A call is over."""
        told = {"tool": name, "call_id": call_id, "outcome": called.outcome, "is_error": called.is_error}
        self._results.append(told)

    def _batch(self) -> Work[None]:
        """All calls of one reply are over."""
        if self._results:
            results, self._results = self._results, []
            yield from self.fire(AfterToolBatch, results=results)

    # --- the end ----------------------------------------------------------------------------

    def ending(self, *, voluntary: bool = True) -> Work[str | None]:
        """The turn is about to end. What the model is told instead, if it is to go on."""
        yield from self._batch()
        if self.over or not self._started:
            return None
        decision = yield from self.fire(
            BeforeTurnEnd, stop_reason=self.stop_reason, continues_so_far=self.extends, voluntary=voluntary
        )
        if decision is None:
            return None
        if decision.control == "stop":  # which it was about to do: what the model said is still worth hearing
            self.over = False
        if decision.control != "extend" or self.extends >= EXTENDS:
            return None
        self.extends += 1
        return "\n\n".join(decision.context) or FEEDBACK

    def end(self, text: str | None, *, leaves: bool = True) -> Work[Ended]:
        """The turn is over. What the user gets to see; if a hook has ended it, that is what there is to say of it.

        Where the framework may still send the answer back, the request is not over: it is with `leave`.
        """
        shown = self.said if self.over else text
        if self._started:
            if not self.over:
                shown = yield from self._respond(shown)
            yield from self._end_turn(shown)
        if shown is not None:
            shown = yield from self._output(shown)
        if leaves:
            yield from self._end_request()
        return Ended(shown, shown != text)

    def leave(self) -> Work[None]:
        """The request is over, whose turn has ended before."""
        yield from self._end_request()

    def judge(self, text: str) -> Work[Ended]:
        """What the user gets to see, where something else was made of an answer since the turn has ended."""
        shown = yield from self._respond(text)
        if shown is not None:
            shown = yield from self._output(shown)
        return Ended(shown, shown != text)

    def _respond(self, shown: str | None) -> Work[str | None]:
        decision = yield from self.fire(BeforeResponse, response=shown)
        if decision is not None and decision.denied:
            return f"[Response filtered: {decision.reason or 'refused'}]"
        return as_text(thaw(decision.step.response)) if decision and "response" in decision.changed else shown

    def _output(self, shown: str) -> Work[str | None]:
        decision = yield from self.fire(BeforeOutput, content=shown)
        if decision is not None and decision.denied:
            return None
        return as_text(thaw(decision.step.content)) if decision and "content" in decision.changed else shown

    def failed(self, error: BaseException) -> Work[None]:
        """Whatever ended the request early is told of. It is for the caller to raise it."""
        if self._ended:
            return
        text = "cancelled" if isinstance(error, CancelledError) else describe(error)
        self.stop_reason = "cancelled" if isinstance(error, CancelledError) else "error"
        with suppress(FairleadError):  # what ended the request is what its caller should hear of
            yield from self.fire(Error, error=text, where="request")
        with suppress(FairleadError):
            if self._started:
                yield from self._end_turn(None)
        with suppress(FairleadError):
            yield from self._end_request(text)

    def _end_turn(self, response: str | None) -> Work[None]:
        self._started = False
        while self._helpers:
            yield from self.hand_back()
        yield from self.fire(
            TurnEnd, stop_reason=self.stop_reason, iterations=self.requests, response_length=len(response or "")
        )

    def _end_request(self, error: str | None = None) -> Work[None]:
        if self._ended:
            return
        self._ended = True
        try:
            self._take_ids((yield from self.fire(AfterRequest, state=self.session.state, error=error)))
        finally:
            if self.parent is None:
                self._kept.waiting += self.waiting
                self.waiting = []
                if not self._lasting:
                    yield from end_session(self._kept, "exit" if error is None else "error")

    # --- other agents -----------------------------------------------------------------------

    def hand_over(self, name: str, message: str | None = None) -> Work[str | None]:
        """Another agent goes on with the work. Why not, if it may not. It goes on with what was said so far."""
        session, before, can = self.session, self.session.agent, self.session.capabilities or {}
        session.agent = Agent(new_id("agent"), name, before.id if before else None)
        session.capabilities = {**can, "subagent_start": frozenset(can.get("subagent_start", ())) - {"initial_message"}}
        decision = yield from self.fire(SubagentStart, agent_name=name, initial_message=message)
        session.capabilities = can
        if decision is not None and decision.denied:
            session.agent = before
            return f"the agent {name!r} may not start: {decision.reason or 'denied'}"
        self._helpers.append(copy(session))
        self._helpers[-1].agent = before
        return None

    def hand_back(self) -> Work[None]:
        """Whoever the work was handed to is done with it."""
        name = self.session.agent.name if self.session.agent else None
        before = self._helpers.pop().agent
        yield from self.fire(SubagentStop, agent_name=name, reason=self.stop_reason)
        self.session.agent = before

    def helper(self, name: str, message: str | None) -> Work[tuple[Turn, str | None, str | None]]:
        """A subagent is about to start: its turn, its message, and why not, if it may not."""
        session = self.session.subagent(name, capabilities=self.session.capabilities)
        session.approver = self.session.approver
        child = Turn(session, self.runs, self._kept, lasting=True, parent=self)
        decision = yield from child.fire(SubagentStart, agent_name=name, initial_message=message)
        if decision is None:
            return child, message, None
        refused = f"the agent {name!r} may not start: {decision.reason or 'denied'}" if decision.denied else None
        return child, decision.step.initial_message, refused

    def helper_stops(self, child: Turn) -> Work[str | None]:
        """A subagent is about to stop. What it is told instead, if it is to go on."""
        name = child.session.agent.name if child.session.agent else None
        decision = yield from child.fire(
            SubagentStop, agent_name=name, reason=child.stop_reason, continues_so_far=child.extends
        )
        self.waiting += child.waiting  # what is said of it is for whoever asked it
        child.waiting = []
        if decision is None or decision.control != "extend" or child.extends >= EXTENDS:
            return None
        child.extends += 1
        return "\n\n".join(decision.context) or FEEDBACK


# --- messages -------------------------------------------------------------------------------------


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
