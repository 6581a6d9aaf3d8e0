"""Handles one event of an agent CLI: its JSON in, fairlead's decision, the CLI's JSON out.

The reason of a denied call goes from the decision into an `Effect` (see `effect`), and then into the CLI's JSON by
`render` of the CLI's own `mapping`. The CLI gives it to the model.

The caller brings the engine. It is in the daemon, or in this process.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import time
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from ...decision import Decision
from ...engine.run import EffectFn
from ...errors import FairleadError
from ...lifecycle import EVENTS, AfterTool, Agent, Control, Step, ToolStep, TurnEnd, TurnStart
from ...redaction.logs import logger
from ...session import new_id
from .effect import Effect, control_of, effect_of, hold_context, limit_to, reason_of
from .mapping import EXIT_2, REFUSAL, TEXT, UNKNOWN_PROGRAM, WARNING, EventMapping, Host, Identity

EXTENDS = 3
"""How often hooks may extend a turn."""
ENDS = ("before_turn_end", "subagent_stop")
"""Events at which they can."""
CALLS = 64
"""Open tool calls that are kept for a session."""
CONTEXT = 16
"""Texts that wait for an event that takes context."""

LATE = "there was no answer in time"
"""Why a launcher acts without the answer of a daemon that is still deciding."""

DispatchFn = Callable[[Step, dict[str, tuple[str, ...]], EffectFn], Awaitable[Decision[Any]]]
"""Decides on a step, for a host with these capabilities. `EffectFn` sets what the host carries out."""
LauncherControl = Callable[[], Control | None]
"""Returns what the launcher did if it no longer waits for the answer; None while it waits."""


class BadPayload(FairleadError):
    """The CLI sent a payload that does not fit the event."""


class OpenCall(NamedTuple):
    """A tool call that has not ended yet."""

    id: str
    tool: str
    args_digest: str
    started: float


HaltScope = Literal["turn", "first_turn", "session"]
"""How long no tool runs. After a refusal at the session's start, messages are refused, too: the first one, or all."""


class CliSessionState(msgspec.Struct):
    """What fairlead keeps of a CLI's session between two events, because the CLI does not repeat it.

    The daemon saves it as JSON. Names of fields in that file stay as they are.
    """

    turn_id: str | None = msgspec.field(default=None, name="turn")
    parent: str | None = None
    """The session or agent that started the session, if an agent did."""
    sequence: int = 0
    calls: list[OpenCall] = []
    denied_calls: list[str] = msgspec.field(default_factory=list, name="denied")
    """Ids of denied calls. Some CLIs report the end of these, too."""
    asked_calls: list[str] = msgspec.field(default_factory=list, name="asked")
    """Ids of calls that the CLI asks its user about, because a hook does."""
    context: list[str] = []
    """Texts for the model that wait for an event that takes context."""
    halt: str | None = None
    """Why no tool runs until the user's next message, or for as long as `halt_scope` says."""
    halt_scope: HaltScope = "turn"
    extends: dict[str, int] = msgspec.field(default_factory=dict, name="extended")
    """How often a turn was extended, by the subagent's id; the session's main agent has the key ""."""
    extend_reason: str | None = msgspec.field(default=None, name="extending")
    """The reason of the last extend. Some CLIs send it back as the user's message."""
    warned: list[str] = []
    """Warnings that the model was asked to pass on to the user."""


class CliEvent(NamedTuple):
    """One event of a CLI, parsed."""

    host: Host
    name: str
    """The CLI's name of the event."""
    payload: dict[str, Any]
    mapping: EventMapping
    identity: Identity
    fields: dict[str, Any] | None
    """The step's own fields. None: there is no step for hooks to judge."""
    metadata: dict[str, str]
    """What is known of the program that fired it: see `HookRequest.metadata`."""


def read_payload(entry: Host, event: str, text: str) -> dict[str, Any]:
    """Decode the JSON that a CLI's entry was given at an event. Raises `FairleadError` for an unknown event."""
    if event not in entry.events:
        raise FairleadError(f"{entry.title} has no event {event!r} that fairlead knows; run `fairlead install` again")
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise BadPayload(f"{entry.title} sent no JSON object at {event}: {error}") from None


def parse_event(host: Host, name: str, payload: dict[str, Any], metadata: dict[str, str] | None = None) -> CliEvent:
    """Find out what an event is, where it belongs, and the fields of its step: once for all who need it."""
    if name not in host.events:
        raise FairleadError(f"{host.title} has no event {name!r} that fairlead knows")
    identity, mapping = host.identify(payload), host.events[name]
    if mapping.in_subagent is not None and identity.shares_session:
        mapping = mapping.in_subagent
    return CliEvent(host, name, payload, mapping, identity, mapping.parse(payload), metadata or {})


async def answer(
    event: CliEvent,
    state: CliSessionState,
    dispatch: DispatchFn,
    *,
    attended: bool = False,
    launcher_control: LauncherControl = lambda: None,
) -> str:
    """Return the answer for the thin client. `attended`: a user sits at the CLI and sees what it shows."""
    return answer_text(event.host, await EventHandler(event, state, dispatch, attended, launcher_control).reply())


def answer_text(host: Host, reply: dict[str, Any]) -> str:
    """Return the exit code, and the text that the CLI reads, as `0:TEXT:end`."""
    if EXIT_2 in reply:
        return f"2:{reply[EXIT_2]}:end"
    if TEXT in reply:
        return f"0:{reply[TEXT]}:end"
    if not reply and not host.needs_reply:
        return "0::end"
    json = {key: value for key, value in reply.items() if key != REFUSAL}
    text = f"{host.prefix}{msgspec.json.encode(json, enc_hook=str).decode()}"
    return f"refusal:{text}\n{reply[REFUSAL]}:end" if REFUSAL in reply else f"0:{text}:end"


def repeat_answer(event: CliEvent, effect: Effect) -> str:
    """Return the answer for a second entry that the CLI ran for a step: the same effect, without its texts."""
    control = replace(limit_to(effect, event.mapping.can), context=[], later=[], warnings=[])
    return answer_text(event.host, _render(event, control))


def _render(event: CliEvent, effect: Effect) -> dict[str, Any]:
    """Return the CLI's JSON. A program that fairlead does not know gets a refusal in every way."""
    reply, refused = event.mapping.render(effect, event.name, event.payload), effect.deny or effect.stop
    return reply | {REFUSAL: refused} if refused and UNKNOWN_PROGRAM in event.metadata else reply


class EventHandler:
    """Decides on one event of a CLI, and on the steps that the CLI does not report but that follow from it."""

    def __init__(
        self,
        event: CliEvent,
        state: CliSessionState,
        dispatch: DispatchFn,
        attended: bool = False,
        launcher_control: LauncherControl = lambda: None,
    ) -> None:
        self.host, self.event, self.payload, self.mapping, self.identity, self.fields, self.metadata = event
        self.parsed = event
        self.effect: Effect | None = None
        """What the CLI carries out, once it is known. None: there was no step."""
        self.state, self.dispatch, self.attended, self.launcher_control = state, dispatch, attended, launcher_control

    async def reply(self) -> dict[str, Any]:
        """Return the CLI's JSON. An empty dict leaves the event to the CLI."""
        fields = self.fields
        if fields is not None and not isinstance(fields.get("tool", ""), str):
            raise BadPayload(f"{self.host.title} sent something else than a {self.event}: it names no tool")
        if fields is None or (self.mapping.event == "after_tool" and self._is_denied(fields.get("call_id"))):
            return {}
        try:
            step = self._step(EVENTS[self.mapping.event].step, self._complete(fields))
        except (TypeError, ValueError, FairleadError) as error:
            raise BadPayload(f"{self.host.title} sent something else than a {self.event}: {error}") from None
        can = self.mapping.can
        if step.event == "before_permission" and step.call_id in self.state.asked_calls:
            can = tuple(part for part in can if part != "allow")  # the user answers what a hook asks, not another hook
        decision, effect = await self._decide(step, can)
        await self._follow_up(decision, effect)
        self.effect = effect
        return self._render(effect)

    async def _decide(self, step: Step, can: tuple[str, ...]) -> tuple[Decision[Any], Effect]:
        """Dispatch a step, and work out the effect before the decision is journaled, so that the record has it."""
        effects: list[Effect] = []

        def carry(decision: Decision[Any]) -> Decision[Any]:
            if (decision.event, decision.step.sequence) != (step.event, step.sequence):
                return decision  # of a step that a hook dispatched
            effect = self._limited(step.event, self._effect(decision, can))
            reported = step.event == self.mapping.event
            if (done := self.launcher_control()) is not None:
                control: Control = done if reported else "proceed"
                effects.append(_undelivered(effect, control))
                return decision.with_effect(control, LATE)
            effect = self.mapping.refine(effect, self.payload) if reported else effect
            effects.append(effect)
            control = control_of(effect)
            if control == "stop" and decision.aborts and "abort" in can:
                control = "abort"
            return decision.with_effect(control)

        decision = await self.dispatch(step, {step.event: can}, carry)
        if not effects:
            carry(decision)
        return decision, effects[-1]

    def _effect(self, decision: Decision[Any], can: tuple[str, ...]) -> Effect:
        effect = effect_of(decision, can)
        refuses_later = decision.event == "session_start"  # all messages and tool calls of the session
        if decision.denied and effect.deny is None and effect.stop is None and not refuses_later:
            logger.error(
                "%s cannot carry out at %s what a hook wants: %s", self.host.title, self.event, reason_of(decision)
            )
        return effect

    def _limited(self, event: str, effect: Effect) -> Effect:
        """Apply earlier decisions: no tool runs after a stop, and a turn is extended only so often."""
        state = self.state
        halted = event == "before_tool" or (event == "before_input" and state.halt_scope != "turn")
        if state.halt is not None and halted and "deny" in self.mapping.can and effect.deny is None:
            effect.deny = state.halt
        if effect.extend is not None and event in ENDS and state.extends.get(self.identity.subagent_id, 0) >= EXTENDS:
            logger.warning("%s: a turn was kept alive %d times, and now ends", self.host.title, EXTENDS)
            effect.later.append(effect.extend)
            effect.extend = None
        return effect

    def _is_denied(self, call_id: Any) -> bool:
        """Whether a call ended with its denial. Some models use the id again for another call, which is open."""
        return call_id in self.state.denied_calls and all(call.id != call_id for call in self.state.calls)

    # --- the step ---------------------------------------------------------------------------

    def _step(self, kind: type[Step], fields: dict[str, Any]) -> Any:
        identity, agent = self.identity, self._agent()
        parent = None if agent is None or identity.shares_session else agent.parent
        self.state.sequence += 1
        header: dict[str, Any] = {
            "session_id": identity.session_id, "turn_id": identity.turn_id or self.state.turn_id,
            "root_session_id": parent or identity.session_id,
            "cwd": identity.cwd, "agent": agent, "host": self.host.name, "sequence": self.state.sequence,
        }  # fmt: skip
        if self.metadata:
            header["metadata"] = dict(self.metadata)
        return kind(**(header | fields))

    def _agent(self) -> Agent | None:
        """Return the agent that the event belongs to. Some CLIs name its parent only when the session starts."""
        session_id, agent = self.identity.session_id, self.identity.agent
        if agent is None or agent.id != session_id:
            return agent
        self.state.parent = agent.parent or self.state.parent
        return replace(agent, parent=self.state.parent)

    def _complete(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Add the fields that the CLI leaves out: the turn, the call's id, how often the turn was extended."""
        event = self.mapping.event
        if event == "before_input":
            self._begin_turn(fields)
        elif event in ENDS:
            return {"continues_so_far": self.state.extends.get(self.identity.subagent_id, 0)} | fields
        elif event == "before_tool":
            self._open_call(fields)
        elif issubclass(EVENTS[event].step, ToolStep):
            return self._match_call(fields)
        return fields

    def _begin_turn(self, fields: dict[str, Any]) -> None:
        state = self.state
        if fields.get("input") == state.extend_reason:
            fields["source"] = "continuation"  # some CLIs send the reason of an extend as the user's message
        elif not self.identity.shares_session:
            state.turn_id = self.identity.turn_id or new_id("turn")
            state.extends.pop("", None)
            state.extend_reason = None
            agent = self._agent()
            is_users = fields.get("source", "user") == "user" and (agent is None or agent.parent is None)
            if is_users and state.halt_scope == "turn":
                state.halt = None  # an agent that another agent started hears no user

    def _open_call(self, fields: dict[str, Any]) -> None:
        state = self.state
        call_id = fields["call_id"] = fields.get("call_id") or new_id("call")
        for calls in (state.denied_calls, state.asked_calls):  # an id that is used again
            if call_id in calls:
                calls.remove(call_id)
        state.calls.append(OpenCall(call_id, fields["tool"], args_digest(fields["args"]), time()))
        del state.calls[:-CALLS]

    def _match_call(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a later event of a call, with its id: the CLI's, or that of the likeliest open call."""
        calls, tool = self.state.calls, fields["tool"]
        known = next((call for call in calls if call.id == fields.get("call_id")), None)
        if fields.get("call_id") is None:
            same = (tool, args_digest(fields["args"]))
            known = next((call for call in calls if (call.tool, call.args_digest) == same), None)
            known = known or next((call for call in calls if call.tool == tool), None)
        if known is not None and self.mapping.event == "after_tool":
            calls.remove(known)
            if fields.get("duration") is None:
                fields["duration"] = round(max(time() - known.started, 0.0), 3)
        return fields | {"call_id": fields.get("call_id") or (known.id if known else None)}

    # --- after the decision -----------------------------------------------------------------

    async def _follow_up(self, decision: Decision[Any], effect: Effect) -> None:
        """Dispatch the steps that follow at once, and keep what later events need."""
        state, event = self.state, self.mapping.event
        if event in ENDS:
            await self._end_turn(effect)
        elif event == "before_input" and effect.deny is None:
            await self._dispatch_unreported(TurnStart, {}, effect)
        elif event == "before_tool" and effect.deny is not None:
            await self._end_denied_call(decision.step, effect.deny, effect)
        elif event == "before_tool" and effect.ask is not None:
            state.asked_calls = [*state.asked_calls, decision.step.call_id][-CALLS:]
        state.halt = effect.halt or state.halt
        if event == "session_start":
            self._start_session(decision, effect)
        elif event == "before_input" and state.halt_scope == "first_turn":
            state.halt_scope = "turn"  # the next message starts another one
        if event in WARNING:
            self._pass_on_warnings(effect)

    def _start_session(self, decision: Decision[Any], effect: Effect) -> None:
        """Remember whether hooks refuse the session. Few CLIs can keep it from starting, or stop there for good."""
        state = self.state
        if decision.aborts:
            again = "; start a new session to try again" if decision.cause == "failure" else ""
            state.halt, state.halt_scope = reason_of(decision) + again, "session"
        elif effect.halt is not None:
            state.halt, state.halt_scope = effect.halt, "first_turn"
        elif state.halt_scope != "turn":  # the session is resumed, and its hooks do not object any more
            state.halt, state.halt_scope = None, "turn"

    def _pass_on_warnings(self, effect: Effect) -> None:
        """Ask the model to pass on warnings that the CLI may not show. In a headless run, no CLI shows any."""
        if self.host.shows_warnings and self.attended:
            return
        state = self.state
        new = [warning for warning in effect.warnings if warning not in state.warned]
        state.warned = [*state.warned, *new][-CONTEXT:]
        texts = effect.context if "context" in self.mapping.can else effect.later
        texts += [f"Tell the user of this warning in your answer: {warning}" for warning in new]

    def _render(self, effect: Effect) -> dict[str, Any]:
        """Return the CLI's JSON. Context that has no place in it waits for a later event."""
        state, event = self.state, self.mapping.event
        if "context" in self.mapping.can:
            effect.context, state.context = [*state.context, *effect.context], []
        takes_context = self.mapping.context_if_refused and event != "before_input"  # no model reads a refused message
        if not takes_context and (effect.deny is not None or effect.stop is not None):
            effect = hold_context(effect)
        state.context = [*state.context, *effect.later][-CONTEXT:]
        reply = _render(self.parsed, effect)
        if effect.warnings and self.host.shows_warnings and event in WARNING:
            reply = reply | {"systemMessage": "\n".join(effect.warnings)}
        return reply

    async def _end_turn(self, effect: Effect) -> None:
        """Count an extend, or end the turn."""
        extends, subagent_id = self.state.extends, self.identity.subagent_id
        if effect.extend is not None:
            extends[subagent_id] = extends.pop(subagent_id, 0) + 1
            while len(extends) > CALLS:
                del extends[next(iter(extends))]
            self.state.extend_reason = effect.extend
            return
        extends.pop(subagent_id, None)
        self.state.extend_reason = None
        if self.mapping.event == "before_turn_end":
            await self._dispatch_unreported(TurnEnd, {"stop_reason": "end_turn"}, effect)

    async def _end_denied_call(self, step: Any, why: str, effect: Effect) -> None:
        """Dispatch the end of a call that does not run. Hooks that watch calls need it."""
        calls = self.state.calls
        for latest in [call for call in calls if call.id == step.call_id][-1:]:
            calls.remove(latest)
        self.state.denied_calls = [*self.state.denied_calls, step.call_id][-CALLS:]
        fields = {name: getattr(step, name) for name in ("tool", "args", "kind", "target", "safety", "call_id")}
        denied = {"outcome": "denied", "executed": False, "error": why, "is_error": True}
        await self._dispatch_unreported(AfterTool, fields | denied, effect)

    async def _dispatch_unreported(self, kind: type[Step], fields: dict[str, Any], effect: Effect) -> None:
        """Dispatch a step that the CLI does not report, and add what follows from it to the present effect."""
        can = tuple(part for part in ("context", "stop") if part in self.mapping.can)
        _, added = await self._decide(self._step(kind, fields), can)
        effect.context += added.context
        effect.later += added.later
        effect.stop, effect.halt = effect.stop or added.stop, effect.halt or added.halt


def _undelivered(effect: Effect, control: Control) -> Effect:
    """Return the effect of an answer that came too late: what the launcher did, and what can wait for a later step."""
    deny = f"[fairlead] refused, because {LATE}" if control == "deny" else None
    return Effect(deny=deny, halt=effect.halt, later=[*effect.context, *effect.later])


def args_digest(args: dict[str, Any]) -> str:
    """Return a short digest of a call's arguments, to find the call again."""
    import hashlib

    return hashlib.sha256(msgspec.json.encode(args, enc_hook=str, order="sorted")).hexdigest()[:16]
