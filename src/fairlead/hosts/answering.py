"""One moment of an agent CLI: its JSON in, what fairlead decides, the CLI's JSON out.

Where the engine is, in the daemon or in this very process, is the caller's business.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import time
from typing import Any

import msgspec
from msgspec.structs import replace

from ..decision import Decision
from ..errors import FairleadError
from ..lifecycle import EVENTS, AfterTool, Agent, Control, Step, ToolStep, TurnEnd, TurnStart
from ..logs import logger
from ..run import Carry
from ..session import new_id
from .effect import Effect, control_of, effect_of, reason_of
from .host import EXIT_2, TEXT, WARNING, Host, Identity

EXTENDS = 3
"""How often a turn may be kept alive."""
ENDS = ("before_turn_end", "subagent_stop")
"""Events at which it can be."""
CALLS = 64
"""Open tool calls that are remembered for a session."""
CONTEXT = 16
"""Texts that wait for an event which takes them."""

LATE = "there was no answer in time"
"""Why a launcher acts by itself, though there is a daemon that decides."""

Dispatch = Callable[[Step, dict[str, tuple[str, ...]], Carry], Awaitable[Decision[Any]]]
"""Decides on a step, for a host with these capabilities, of which the last argument says what it carries out."""
Acted = Callable[[], Control | None]
"""Says what the launcher did, if it did not wait for the answer; None while it waits."""


class BadPayload(FairleadError):
    """What a CLI sent is not what it sends at this event."""


class Memory(msgspec.Struct):
    """What must be remembered of a session between two moments, because its CLI does not say it again."""

    turn: str | None = None
    parent: str | None = None
    """Who started the session, if an agent did."""
    sequence: int = 0
    calls: list[tuple[str, str, str, float]] = []
    """Open calls: id, tool, arguments, and when they were asked for."""
    denied: list[str] = []
    """Calls that were denied, and of which some CLIs tell nevertheless that they are over."""
    asked: list[str] = []
    """Calls about which the CLI asks its user, because hooks do."""
    context: list[str] = []
    halt: str | None = None
    extended: dict[str, int] = {}
    """How often the turn of an agent was kept alive, by the agent's id; the session's own has none."""
    extending: str | None = None
    """What the turn was kept alive with, the last time."""
    warned: list[str] = []
    """Warnings that the model was told to pass on."""


def read_payload(host: Host, event: str, said: str) -> dict[str, Any]:
    """What a CLI says of a moment. Raises `FairleadError` for what is no moment of it."""
    if event not in host.moments:
        raise FairleadError(f"{host.title} has no event {event!r} that fairlead knows; run `fairlead install` again")
    try:
        return msgspec.json.decode(said, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise BadPayload(f"{host.title} sent no JSON object at {event}: {error}") from None


async def answer(
    host: Host,
    event: str,
    payload: dict[str, Any],
    memory: Memory,
    dispatch: Dispatch,
    *,
    attended: bool = False,
    acted: Acted = lambda: None,
) -> str:
    """The answer for the thin client: the exit code, and the text that the CLI reads: `0:TEXT:end`.

    `attended`: a user is known to sit before the CLI, and sees what it shows.
    """
    reply = await Answering(host, event, payload, memory, dispatch, attended, acted).answer()
    if EXIT_2 in reply:
        return f"2:{reply[EXIT_2]}:end"
    if TEXT in reply:
        return f"0:{reply[TEXT]}:end"
    return f"0:{host.prefix + msgspec.json.encode(reply, enc_hook=str).decode() if reply else ''}:end"


class Answering:
    """One moment, being answered."""

    def __init__(
        self,
        host: Host,
        event: str,
        payload: dict[str, Any],
        memory: Memory,
        dispatch: Dispatch,
        attended: bool = False,
        acted: Acted = lambda: None,
    ) -> None:
        self.host, self.event, self.payload = host, event, payload
        self.who: Identity = host.identify(payload)
        self.moment = host.moments[event]
        self.memory, self.dispatch, self.attended, self.acted = memory, dispatch, attended, acted
        if self.moment.inside is not None and self._shares:
            self.moment = self.moment.inside

    async def answer(self) -> dict[str, Any]:
        fields = self.moment.read(self.payload)
        if fields is not None and not isinstance(fields.get("tool", ""), str):
            raise BadPayload(f"{self.host.title} sent something else than a {self.event}: it names no tool")
        if fields is None or (self.moment.event == "after_tool" and self._is_denied(fields.get("call_id"))):
            return {}
        try:
            step = self._step(EVENTS[self.moment.event].step, self._remembered(fields))
        except (TypeError, ValueError, FairleadError) as error:
            raise BadPayload(f"{self.host.title} sent something else than a {self.event}: {error}") from None
        can = self.moment.can
        if step.event == "before_permission" and step.call_id in self.memory.asked:
            can = tuple(part for part in can if part != "allow")  # what a hook asks, another does not answer
        decision, effect = await self._decide(step, can, Effect())
        await self._follow(decision, effect)
        return await self._say(decision, effect)

    async def _decide(self, step: Step, can: tuple[str, ...], beside: Effect) -> tuple[Decision[Any], Effect]:
        """The decision on a step, and what it comes to here.

        That is worked out before the decision is journaled, so that the record says what the CLI is told. `beside` is
        what the CLI is told with the same answer.
        """
        found: list[Effect] = []

        def carry(decision: Decision[Any]) -> Decision[Any]:
            if (decision.event, decision.step.sequence) != (step.event, step.sequence):
                return decision  # of a step that a hook has dispatched
            effect = self._effect(decision, can)
            self._limit(step.event, effect)
            if (acted := self.acted()) is not None:
                control: Control = acted if step.event == self.moment.event else "proceed"
                found.append(_undelivered(effect, control))
                return decision.with_effect(control, LATE)
            found.append(effect)
            control = self._carried(step.event, effect, beside)
            if control == "stop" and decision.control == "abort" and "abort" in can:
                control = "abort"
            return decision.with_effect(control)

        decision = await self.dispatch(step, {step.event: can}, carry)
        if not found:
            carry(decision)
        return decision, found[-1]

    def _limit(self, event: str, effect: Effect) -> None:
        """What was decided before: no tool runs after a stop, and a turn is not kept alive for ever."""
        memory = self.memory
        if event == "before_tool" and memory.halt is not None and effect.deny is None:
            effect.deny = memory.halt
        if effect.extend is not None and event in ENDS and memory.extended.get(self._whose, 0) >= EXTENDS:
            logger.warning("%s: a turn was kept alive %d times, and now ends", self.host.title, EXTENDS)
            effect.later.append(effect.extend)
            effect.extend = None

    def _carried(self, event: str, effect: Effect, beside: Effect) -> Control:
        """What the CLI makes of an effect, as far as its answer says so."""

        def render(told: Effect) -> dict[str, Any]:
            return self.moment.say(told, self.event, self.payload)

        if event == self.moment.event:
            return control_of(effect, render)
        # Of a step that the CLI does not tell of, only a stop is carried out, in the answer to what it does tell of.
        stops = effect.stop is not None and render(replace(beside, stop=effect.stop)) != render(
            replace(beside, stop=None)
        )
        return "stop" if stops else "proceed"

    def _is_denied(self, call_id: Any) -> bool:
        """Whether a call is over for us. Some models give another one, which is not, the same id."""
        return call_id in self.memory.denied and all(call[0] != call_id for call in self.memory.calls)

    # --- before -----------------------------------------------------------------------------

    def _step(self, kind: type[Step], fields: dict[str, Any]) -> Any:
        who, agent = self.who, self._agent()
        self.memory.sequence += 1
        header = {
            "session_id": who.session_id, "turn_id": who.turn_id or self.memory.turn, "cwd": who.cwd,
            "agent": agent, "host": self.host.name, "sequence": self.memory.sequence,
        }  # fmt: skip
        return kind(**(header | fields))

    def _agent(self, **about: Any) -> Agent | None:
        """Whose moment it is. Some CLIs say only when a session starts by whom that was."""
        who = self.who
        if who.agent is None or who.agent.id != who.session_id:
            return who.agent
        self.memory.parent = who.agent.parent or self.memory.parent
        return replace(who.agent, **{"parent": self.memory.parent} | about)

    def _remembered(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The fields, with what the CLI does not say: which turn, which call, how often it was kept alive."""
        memory, event = self.memory, self.moment.event
        if event == "before_input" and fields.get("input") == memory.extending:
            fields["source"] = "continuation"  # some CLIs put what keeps a turn alive as if the user had said it
        elif event == "before_input" and not self._shares:
            memory.turn = self.who.turn_id or new_id("turn")
            memory.extended.pop("", None)
            memory.extending = None
            if fields.get("source", "user") == "user" and self._agent() == self._agent(parent=None):
                memory.halt = None
        elif event in ENDS:
            return {"continues_so_far": memory.extended.get(self._whose, 0)} | fields
        elif event == "before_tool":
            fields.setdefault("call_id", None)
            if fields["call_id"] is None:
                fields["call_id"] = new_id("call")
            for calls in (memory.denied, memory.asked):  # an id that comes again
                if fields["call_id"] in calls:
                    calls.remove(fields["call_id"])
            memory.calls.append((fields["call_id"], fields["tool"], written(fields["args"]), time()))
            del memory.calls[:-CALLS]
        elif issubclass(EVENTS[event].step, ToolStep):
            return self._call(fields)
        return fields

    @property
    def _shares(self) -> bool:
        """Whether it is a subagent's, in the session of whoever started it."""
        who = self.who
        return who.agent is not None and who.agent.parent is not None and who.agent.id != who.session_id

    @property
    def _whose(self) -> str:
        """Whose turn it is."""
        agent = self.who.agent
        return agent.id or "" if agent is not None and agent.parent is not None else ""

    def _call(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The fields of a later moment of a call, with the call's id: the CLI's, or else that of the likeliest."""
        calls, tool, args = self.memory.calls, fields["tool"], written(fields["args"])
        known = next((call for call in calls if call[0] == fields.get("call_id")), None)
        if fields.get("call_id") is None:
            known = next((call for call in calls if call[1:3] == (tool, args)), None)
            known = known or next((call for call in calls if call[1] == tool), None)
        if known is not None and self.moment.event == "after_tool":
            calls.remove(known)
            if fields.get("duration") is None:
                fields["duration"] = round(max(time() - known[3], 0.0), 3)
        return fields | {"call_id": fields.get("call_id") or (known[0] if known else None)}

    # --- after ------------------------------------------------------------------------------

    async def _follow(self, decision: Decision[Any], effect: Effect) -> None:
        """What comes of a decision beyond the CLI's answer: what waits, what follows at once."""
        memory, event = self.memory, self.moment.event
        if event in ENDS:
            await self._end(effect)
        elif event == "before_input" and effect.deny is None:
            await self._also(TurnStart, {}, effect)
        elif event == "before_tool" and effect.deny is not None:
            await self._denied(decision.step, effect.deny, effect)
        elif event == "before_tool" and effect.ask is not None:
            memory.asked = [*memory.asked, decision.step.call_id][-CALLS:]
        memory.halt = effect.halt or memory.halt
        if event in WARNING:
            self._pass_on(effect)
        if "context" in self.moment.can:
            effect.context, memory.context = [*memory.context, *effect.context], []
        memory.context = [*memory.context, *effect.later][-CONTEXT:]

    def _pass_on(self, effect: Effect) -> None:
        """Have the model tell the user of warnings that the CLI may not show: headless, none shows any."""
        if self.host.warns and self.attended:
            return
        memory = self.memory
        news = [warning for warning in effect.warnings if warning not in memory.warned]
        memory.warned = [*memory.warned, *news][-CONTEXT:]
        place = effect.context if "context" in self.moment.can else effect.later
        place += [f"Tell the user of this warning in your answer: {warning}" for warning in news]

    async def _say(self, decision: Decision[Any], effect: Effect) -> dict[str, Any]:
        """The CLI's JSON. Context that has no place in it, or goes with a message nobody reads, waits on."""
        context, denied = effect.context, effect.deny is not None
        if self.moment.event == "before_input" and (denied or effect.stop is not None):
            effect.context = []
        reply = self.moment.say(effect, self.event, self.payload)
        effect.context, said = [], effect.context
        if said and self.moment.say(effect, self.event, self.payload) != reply:
            context = []
        self.memory.context = [*context, *self.memory.context][-CONTEXT:]
        if self.moment.event == "before_tool" and effect.deny is not None and not denied:
            await self._denied(decision.step, effect.deny, effect)  # what the CLI would not take over
        if effect.warnings and self.host.warns and self.moment.event in WARNING:
            reply = reply | {"systemMessage": "\n".join(effect.warnings)}
        return reply

    async def _end(self, effect: Effect) -> None:
        """The turn goes on, or it is over."""
        extended, whose = self.memory.extended, self._whose
        if effect.extend is not None:
            extended[whose] = extended.pop(whose, 0) + 1
            while len(extended) > CALLS:
                del extended[next(iter(extended))]
            self.memory.extending = effect.extend
            return
        extended.pop(whose, None)
        self.memory.extending = None
        if self.moment.event == "before_turn_end":
            await self._also(TurnEnd, {"stop_reason": "end_turn"}, effect)

    async def _denied(self, step: Any, why: str, effect: Effect) -> None:
        """A call that does not run is over, too, and those who watch hear of it."""
        about = {name: getattr(step, name) for name in ("tool", "args", "kind", "target", "safety", "call_id")}
        calls = self.memory.calls
        for latest in [call for call in calls if call[0] == step.call_id][-1:]:
            calls.remove(latest)
        self.memory.denied = [*self.memory.denied, step.call_id][-CALLS:]
        over = {"outcome": "denied", "executed": False, "error": why, "is_error": True}
        await self._also(AfterTool, about | over, effect)

    async def _also(self, kind: type[Step], fields: dict[str, Any], effect: Effect) -> None:
        """A step that the CLI does not tell of. What is said of it is carried out with what it is told now."""
        can = tuple(part for part in ("context", "stop") if part in self.moment.can)
        _, said = await self._decide(self._step(kind, fields), can, effect)
        effect.context += said.context
        effect.later += said.later
        effect.stop, effect.halt = effect.stop or said.stop, effect.halt or said.halt

    def _effect(self, decision: Decision[Any], can: tuple[str, ...]) -> Effect:
        effect = effect_of(decision, can)
        if decision.denied and effect.deny is None and effect.stop is None:
            logger.error(
                "%s cannot carry out at %s what a hook wants: %s", self.host.title, self.event, reason_of(decision)
            )
        return effect


def _undelivered(effect: Effect, control: Control) -> Effect:
    """An effect of which the CLI was told nothing: what the launcher did, and what can wait for a later step."""
    deny = f"[fairlead] refused, because {LATE}" if control == "deny" else None
    return Effect(deny=deny, halt=effect.halt, later=[*effect.context, *effect.later])


def written(args: dict[str, Any]) -> str:
    import hashlib

    return hashlib.sha256(msgspec.json.encode(args, enc_hook=str, order="sorted")).hexdigest()[:16]
