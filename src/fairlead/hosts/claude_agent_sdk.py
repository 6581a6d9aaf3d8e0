"""Claude Agent SDK.

The SDK drives Claude Code, whose moments it hands to callbacks: they are answered as those of Claude Code are
(`answering`), only in this very process. What the CLI does not tell of, sessions and requests, is told here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace as replaced
from functools import partial
from typing import Any, Self

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, PermissionResultAllow, PermissionResultDeny
from msgspec.structs import replace

from ..approvals import Approval, ApprovalRequest
from ..decision import Decision
from ..errors import FairleadError, describe
from ..lifecycle import (
    AfterPermission,
    AfterRequest,
    AfterTool,
    Agent,
    BeforeRequest,
    Error,
    SessionEnd,
    SessionStart,
    Step,
    TurnEnd,
)
from ..logs import logger
from ..registry import Hooks
from ..run import Carry
from ..session import Session, new_id
from . import claude_code
from .answering import Answering, Memory, written
from .effect import Effect, effect_of, reason_of
from .framework import Framework
from .host import a_dict, as_text, silence

SESSIONS = 1000
"""Sessions that are remembered. Beyond that, the one that was heard of least recently ends."""
PATIENCE = 86_400.0
"""Seconds that the CLI waits for a callback. Hooks have time-outs of their own, and whoever approves takes a while."""
UNSEEN = ("SessionStart", "SessionEnd", "MessageDisplay")
"""Moments of Claude Code's that are over before the SDK listens, come when it no longer does, or are too many."""

FRAMEWORK = Framework(
    name="claude_agent_sdk",
    title="Claude Agent SDK",
    package="claude-agent-sdk",
    versions=">=0.1.76,<0.3",
    can={
        "session_start": "context",
        "session_end": "",
        "before_request": "context state checkpoint_id",
        "after_request": "context state checkpoint_id",
        "before_input": "deny stop context",
        "turn_start": "stop context",
        "before_compact": "",
        "after_compact": "",
        "before_tool": "deny ask allow args stop context",
        "before_permission": "deny ask allow resolved stop context",
        "after_permission": "stop context",
        "after_tool": "deny output stop context",
        "after_tool_batch": "stop context",
        "before_turn_end": "extend context",
        "turn_end": "",
        "subagent_start": "context",
        "subagent_stop": "extend context",
        "notification": "",
        "error": "",
    },
    notes=(
        "A hook that aborts ends the turn, as one that stops it: the SDK hands no exception of a hook's to its caller.",
        "`before_permission` and `after_permission` fire where Claude Code wants a permission, and not for every call.",
    ),
)
CAN = FRAMEWORK.capabilities()
HOST = replace(
    claude_code.HOST,
    name=FRAMEWORK.name,
    title=FRAMEWORK.title,
    moments={
        name: replace(moment, can=tuple(CAN[moment.event]))
        for name, moment in claude_code.HOST.moments.items()
        if name not in UNSEEN
    },
)
GUARDS = frozenset(
    name for name, moment in HOST.moments.items() if moment.say is not silence and {"deny", "stop"} & {*moment.can}
)
"""Moments at which something can be kept from happening: then it is, also where our callback is not even reached."""
BLOCKS = {"on_failure": "block"} if "on_failure" in HookMatcher.__dataclass_fields__ else {}


class Fairlead(dict[str, list[HookMatcher]]):
    """Hooks for the agents of the Claude Agent SDK. It is what `ClaudeAgentOptions` takes as `hooks`:

        options = ClaudeAgentOptions(hooks=Fairlead(hooks))

    Or, with options that have `can_use_tool` or hooks of their own: `options = Fairlead(hooks).options(options)`. One
    `Fairlead` may serve many clients and queries. `await fairlead.aclose()`, or `async with`, ends their sessions.

    The CLI calls a tool of yours `mcp__server__tool`. The tools of the servers in `own` go by their own names here.
    """

    def __init__(
        self,
        hooks: Hooks | None = None,
        *,
        own: Collection[str] = (),
        session_id: str | None = None,
        **about: Any,
    ) -> None:
        if hooks is not None and not isinstance(hooks, Hooks):
            raise TypeError(f"Fairlead takes the Hooks that yours are registered with, not {type(hooks).__name__}")
        self.engine = hooks if hooks is not None else Hooks()
        self._own = tuple(f"mcp__{server}__" for server in own)
        self._about = {"agent": "agent", "host": HOST.name, **about}
        self._session_id = session_id
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        tools = self.engine.tools
        for pattern, kind, more in HOST.tools if tools.spec("Skill", {}, HOST.name).kind == "unknown" else ():
            tools.add(pattern, kind, host=HOST.name, **more)
        for name in HOST.moments:
            blocks = BLOCKS if name in GUARDS else {}
            super().__setitem__(name, [HookMatcher(hooks=[partial(self._heard, name)], timeout=PATIENCE, **blocks)])

    def options(self, options: ClaudeAgentOptions | None = None) -> ClaudeAgentOptions:
        """The same options, with these hooks beside those that are there, and around `can_use_tool`."""
        options = options if options is not None else ClaudeAgentOptions()
        ask, hooks = options.can_use_tool, self | (options.hooks or {})
        if ask is None:
            return replaced(options, hooks=hooks)
        # The CLI does not wait for the hooks of this moment before it takes what the callback says. So the callback
        # has to wait for them.
        hooks["PermissionRequest"] = hooks["PermissionRequest"][1:]
        return replaced(options, hooks=hooks, can_use_tool=partial(self._permit, ask))

    def __or__(self, others: Mapping[str, list[HookMatcher]]) -> dict[str, list[HookMatcher]]:  # type: ignore[override]
        """These hooks and others, side by side. None is lost, as it would be of two dicts."""
        return {name: [*self.get(name, ()), *others.get(name, ())] for name in {**self, **others}}

    __ror__ = __or__  # type: ignore[assignment]

    def why(self, session_id: str) -> str | None:
        """Why hooks have ended the last turn of a session, if they have: the SDK's result does not always say."""
        kept = self._kept.get(session_id)
        return None if kept is None else kept.stopped

    # --- the SDK's callbacks ----------------------------------------------------------------

    async def _heard(self, name: str, payload: Any, call_id: str | None, context: Any) -> dict[str, Any]:
        """A moment. What an exception would let pass is refused: the CLI goes on if a callback raises."""
        kept = None
        try:
            kept = await self._of(str(payload["session_id"]))
            return await _Told(kept, name, payload).answer()
        except Exception as error:
            return _refusal(kept, name, payload, error)

    async def _permit(self, ask: Any, tool: str, given: dict[str, Any], context: Any) -> Any:
        """A permission is wanted: hooks judge, and then whoever the SDK's user has put there is asked."""
        found = [kept for kept in self._kept.values() if kept.has(context.tool_use_id)]
        if len(found) > 1:  # some models number their calls: then it is the one with these arguments, or nobody's
            found = [kept for kept in found if kept.has(context.tool_use_id, written(given))]
        kept = found[0] if len(found) == 1 else None
        try:
            if kept is None:
                raise FairleadError(f"a permission is wanted for a call of {tool!r} that was never heard of")
            payload = {
                "session_id": kept.name, "tool_name": tool, "tool_input": given, "tool_use_id": context.tool_use_id,
                "agent_id": context.agent_id, "agent_type": kept.agents.get(context.agent_id),
            }  # fmt: skip
            moment = _Told(kept, "PermissionRequest", payload)
            told = (await moment.answer()).get("hookSpecificOutput", {}).get("decision")
            if told is None:
                reasons = [reason for reason in (context.decision_reason, moment.asks) if reason]
                answer = await ask(tool, given, replaced(context, decision_reason="\n".join(reasons) or None))
            elif told["behavior"] == "allow":
                answer = PermissionResultAllow()
            else:
                answer = PermissionResultDeny(message=told["message"])
            refused = await moment.permitted(isinstance(answer, PermissionResultAllow))
            return answer if refused is None else PermissionResultDeny(message=refused)
        except Exception as error:
            _refusal(kept, "PermissionRequest", {}, error)
            return PermissionResultDeny(message=f"refused, because this went wrong: {describe(error)}")

    # --- sessions ---------------------------------------------------------------------------

    async def _of(self, name: str) -> _Kept:
        kept = self._kept.get(name)
        if kept is None:
            about = {**self._about, "agent": Agent(name, self._about["agent"])}
            session = self.engine.session(self._session_id or name, **about, capabilities=CAN)
            session.lenient = (
                True  # the run cannot be made to fail: what cannot be denied is stopped, as soon as it can
            )
            session.approver = _leave_it if self.engine.approver is None else None
            kept = self._kept[name] = _Kept(name, session, self._own)
            while len(self._kept) > SESSIONS:
                await self._kept.popitem(last=False)[1].end("forgotten")
        self._kept.move_to_end(name)
        return kept

    async def aclose(self) -> None:
        """End all sessions."""
        while self._kept:
            await self._kept.popitem()[1].end("exit")

    def close(self) -> None:
        """The same where nothing can be awaited."""
        from ..threads import portal

        portal.run(self.aclose)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


async def _leave_it(request: ApprovalRequest) -> Approval:
    """The CLI asks: `can_use_tool`, and where there is none, it refuses."""
    return Approval("ask", HOST.name)


def _stopping(event: str, can: Collection[str], decision: Decision[Any]) -> Decision[Any]:
    """A decision on a step that the CLI does not tell of, with its effect: a stop, or nothing."""
    if decision.event != event:
        return decision
    return decision.with_effect("proceed" if effect_of(decision, can).stop is None else "stop")


def _refusal(kept: _Kept | None, name: str, payload: Any, error: Exception) -> dict[str, Any]:
    """What the CLI is told when something went wrong on the way: no, and nothing more in this turn."""
    why = f"refused, because this went wrong: {describe(error)}"
    logger.error("%s: at %s, %s", HOST.title, name, why)
    if kept is not None:
        kept.stop(why)
    with suppress(Exception):  # it may be because of what the CLI sent
        return HOST.moments[name].say(Effect(deny=why, stop=why), name, payload)
    return {"continue": False, "stopReason": why}


class _Kept:
    """A session of the CLI's."""

    def __init__(self, name: str, session: Session, own: tuple[str, ...]) -> None:
        self.name, self.session, self._own = name, session, own
        self.memory = Memory()
        self.stopped: str | None = None
        """Why the turn is over, though the CLI may not know it yet."""
        self.agents: dict[str, str | None] = {}
        """The names of subagents, by their ids."""
        self.started = self._requested = self._turning = False

    def named(self, tool: str) -> str:
        """A tool, as hooks call it."""
        return next((tool.removeprefix(server) for server in self._own if tool.startswith(server)), tool)

    def stop(self, why: str) -> None:
        """The turn is over. Until the CLI has ended it, no tool runs."""
        self.stopped = self.stopped or why
        self.memory.halt = self.memory.halt or why

    def has(self, call_id: str | None, args: str | None = None) -> bool:
        return any(call[0] == call_id and args in (None, call[2]) for call in self.memory.calls)

    async def dispatch(self, step: Step, can: Any = None, carry: Carry | None = None) -> Decision[Any]:
        """Decide. What is denied where nothing can be denied keeps the tools from running, until the user speaks."""
        self._turning = step.event == "turn_start" or (self._turning and step.event != "turn_end")
        session = self.session
        decision = await (session.dispatch(step) if carry is None else session.dispatch_carried(step, carry))
        if decision.control in ("stop", "abort") and "stop" in CAN[step.event]:
            self.stop(reason_of(decision))
        elif decision.denied and not {"deny", "stop"} & CAN[step.event]:
            self.memory.halt = reason_of(decision)
        return decision

    async def fire(self, kind: type[Step], **fields: Any) -> Effect:
        """A step that the CLI does not tell of."""
        if kind not in self.session.hooks.heard:
            return Effect()
        can = frozenset({*CAN[kind.event], "stop"})  # which is as near to an abort as one gets
        decision = await self.dispatch(self.session.step(kind, **fields), carry=partial(_stopping, kind.event, can))
        if kind in (BeforeRequest, AfterRequest):
            self.session.state, self.session.checkpoint_id = decision.step.state, decision.step.checkpoint_id
        effect = effect_of(decision, can)
        self.memory.context += [*effect.context, *effect.later]
        return effect

    async def begin(self, source: str) -> str | None:
        """The user says something, or a task in the background. Why nobody is to hear it, if so."""
        session, effect = self.session, Effect()
        await self.over()  # of the request before this, the CLI may not have told the end
        if source == "user":
            self.stopped = self.memory.halt = None
        session.request_id, session.turn_id = new_id("request"), None
        self._requested = True
        if not self.started:
            effect = await self.fire(SessionStart, source="new")
            self.started = effect.stop is None  # else it is asked again
        return effect.stop or (await self.fire(BeforeRequest, state=session.state)).stop

    async def over(self, stop_reason: str = "end_turn", error: str | None = None) -> None:
        """The request is over, if there is one."""
        if self._turning:
            self._turning = False
            await self.fire(TurnEnd, stop_reason=stop_reason)
        if self._requested:
            self._requested = False
            await self.fire(AfterRequest, state=self.session.state, error=error)

    async def end(self, reason: str) -> None:
        with suppress(FairleadError):  # it is over, whoever may object
            await self.over()
        await self.session.close()
        if self.started:
            with suppress(FairleadError):
                await self.fire(SessionEnd, reason=reason)


class _Told(Answering):
    """A moment, as the SDK tells of it."""

    def __init__(self, kept: _Kept, event: str, payload: dict[str, Any]) -> None:
        if event == "StopFailure":  # what went wrong is in what the user is told of it
            payload = {"error_details": payload.get("last_assistant_message"), **payload}
        super().__init__(HOST, event, payload, kept.memory, kept.dispatch)
        self.kept = kept
        self.asks: str | None = None  # what hooks ask, at this very moment
        if payload.get("agent_id"):
            kept.agents[payload["agent_id"]] = payload.get("agent_type")

    async def answer(self) -> dict[str, Any]:
        kept, event = self.kept, self.moment.event
        refused = await self._before()
        if refused is not None:
            reply = self.moment.say(Effect(stop=refused), self.event, self.payload)
        else:
            reply = await super().answer()
        if reply.get("continue") is False or (event == "before_input" and "decision" in reply):
            kept.stop(str(reply.get("stopReason") or reply.get("reason")))
            if event == "before_tool":  # the turn ends after the batch: not every CLI heeds it beside a deny
                reply = {key: value for key, value in reply.items() if key not in ("continue", "stopReason")}
            elif not self._shares:
                await kept.over()
        elif event == "before_turn_end" and "decision" not in reply:
            await kept.over()
        elif event == "error":
            await kept.over("error", str(self.payload.get("error_details") or self.payload.get("error")))
        return reply

    async def _before(self) -> str | None:
        """What comes before the moment. Why it does not come to it, if so."""
        kept, event, payload = self.kept, self.moment.event, self.payload
        if event == "before_input" and (fields := self.moment.read(payload)) is not None:
            return await kept.begin(fields["source"])
        if event == "after_tool_batch":
            for call in payload["tool_calls"] if kept.stopped is None else ():
                if kept.has(call.get("tool_use_id")):
                    await self._refused(call)
            return kept.stopped
        if self.event == "PostToolUseFailure":
            await kept.fire(
                Error, error=str(payload.get("error")), where=f"tool {kept.named(str(payload.get('tool_name')))}"
            )
        return None

    async def _refused(self, call: dict[str, Any]) -> None:
        """A call that was not denied here, and yet has not run: whoever the CLI has asked has refused it."""
        about = {
            "tool": self.kept.named(call["tool_name"]),
            "args": a_dict(call.get("tool_input")),
            "call_id": call["tool_use_id"],
        }
        why = str(call.get("tool_response") or "the permission was refused")
        over = {"outcome": "denied", "executed": False, "error": why, "is_error": True}
        self.memory.calls = [known for known in self.memory.calls if known[0] != call["tool_use_id"]]
        await self._tell(AfterTool, about | over)

    async def permitted(self, granted: bool) -> str | None:
        """A permission was given, or not. Why the call does not run nevertheless, if so."""
        fields = self._remembered(self.moment.read(self.payload) or {})
        del fields["proposed"]
        return await self._tell(AfterPermission, fields | {"granted": granted})

    async def _tell(self, kind: type[Step], fields: dict[str, Any]) -> str | None:
        """A step that the CLI does not tell of. Why the turn is over, if it is now."""
        can = CAN[kind.event]
        carry = partial(_stopping, kind.event, can)
        effect = effect_of(await self.kept.dispatch(self._step(kind, fields), carry=carry), can)
        self.memory.context += [*effect.context, *effect.later]
        return effect.stop

    def _effect(self, decision: Decision[Any], can: tuple[str, ...]) -> Effect:
        effect = super()._effect(decision, can)
        self.asks = self.asks or (reason_of(decision) if decision.control == "ask" else None)
        return effect

    def _remembered(self, fields: dict[str, Any]) -> dict[str, Any]:
        if "tool" in fields:
            fields["tool"] = self.kept.named(fields["tool"])
        output = fields.get("output")
        if isinstance(output, list) and all(block.get("type") == "text" for block in output):
            fields["output"] = as_text(output)  # which is how a tool of one's own gives a text
        return super()._remembered(fields)

    def _step(self, kind: type[Step], fields: dict[str, Any]) -> Any:
        session, who = self.kept.session, self.who
        session.turn_id = who.turn_id or self.memory.turn
        session.cwd = who.cwd or session.cwd
        return session.step(kind, **{"agent": self._agent(), **fields})

    def _agent(self, **about: Any) -> Agent | None:
        return self.who.agent if self._shares else self.kept.session.agent
