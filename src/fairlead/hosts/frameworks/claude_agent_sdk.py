"""The adapter for the Claude Agent SDK: a dict of hook callbacks.

The SDK drives Claude Code and passes its events to callbacks. The adapter handles them as fairlead does for Claude Code
itself (`hosts/clis/handler`), but in this process. Claude Code does not report sessions and requests as the lifecycle
has them, so the adapter dispatches these steps itself.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace as replaced
from functools import partial, wraps
from typing import Any, NoReturn

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, PermissionResultAllow, PermissionResultDeny
from claude_agent_sdk._internal.query import Query
from claude_agent_sdk.types import HookEvent
from msgspec.structs import replace

from ...approvals import Approval, ApprovalRequest
from ...decision import Decision
from ...engine.run import EffectFn
from ...errors import ArgumentsChanged, FairleadError, UnknownName, describe
from ...lifecycle import (
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
from ...redaction.logs import logger
from ...registry import Hooks
from ...session import Session, SessionOptions, new_id
from ..clis.claude_code import mapping as claude_code
from ..clis.effect import Effect, effect_of, limit_to, reason_of
from ..clis.handler import CliSessionState, EventHandler, args_digest, parse_event
from ..clis.mapping import EventMapping, Payload, a_dict, as_text, no_reply
from .adapter import Closable
from .flow import Call, Flow
from .framework import Framework
from .turn import SESSIONS

CALLBACK_TIMEOUT = 86_400.0
"""Seconds that the CLI waits for a callback. Hooks have time-outs of their own, and a human may take long."""
UNSEEN = ("SessionStart", "SessionEnd", "MessageDisplay")
"""Events of Claude Code that happen before or after the SDK receives any, or that are too many."""

FRAMEWORK = Framework(
    name="claude_agent_sdk",
    title="Claude Agent SDK",
    package="claude-agent-sdk",
    versions=">=0.1.76,<0.3",
    can={
        "session_start": "context",
        "session_end": "deny",
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
        "A hook that aborts ends the turn, as a stop does: the SDK does not pass a hook's exception to its caller.",
        "`before_permission` and `after_permission` fire where Claude Code needs a permission, not for every call.",
    ),
)
CAN = FRAMEWORK.capabilities()


def _through_sdk(mapping: EventMapping) -> EventMapping:
    """Return a mapping with what the SDK can carry out, some of it without the CLI's JSON."""

    def refine(effect: Effect, payload: Payload) -> Effect:
        return limit_to(mapping.refine(effect, payload), mapping.can)

    can = tuple(part for part in CAN[mapping.event] if part != "context" or part in mapping.can)
    return replace(mapping, can=can, refine=refine)


HOST = replace(
    claude_code.HOST,
    name=FRAMEWORK.name,
    title=FRAMEWORK.title,
    events={name: _through_sdk(event) for name, event in claude_code.HOST.events.items() if name not in UNSEEN},
)
GUARDS = frozenset(
    name for name, event in HOST.events.items() if event.render is not no_reply and {"deny", "stop"} & {*event.can}
)
"""Events at which hooks can refuse something. The CLI then also refuses it if it cannot reach the callback."""
ANSWERS = {"AskUserQuestion": ("answers", "annotations")}
"""Arguments that a tool gets from the user whom it asks, after hooks have judged it."""
JUDGED = 1000
"""How many judged calls of a session are kept until they end."""
CALL_ID = "claudecode/toolUseId"
"""Where a call of a tool in this process has the call's id, in its `_meta`."""
BY = "another hook, or can_use_tool,"
SYNTHETIC = "<synthetic>"
"""The model of messages that Claude Code makes by itself."""
NO_HOOKS = (
    "Claude Code calls no hooks, so nothing that the agent does would be judged: it runs with --bare, or with "
    "CLAUDE_CODE_SIMPLE in its environment or under `env` in its settings; remove that"
)
BLOCKS = {"on_failure": "block"} if "on_failure" in HookMatcher.__dataclass_fields__ else {}


class Fairlead(Closable, dict[HookEvent, list[HookMatcher]]):
    """Runs the agents of the Claude Agent SDK under hooks. Pass it as the `hooks` of `ClaudeAgentOptions`:

        options = ClaudeAgentOptions(hooks=Fairlead(hooks))

    If your options have `can_use_tool` or other hooks, write `options = Fairlead(hooks).options(options)`.

    - One `Fairlead` may serve many clients and queries. `aclose()` and `async with` end their sessions.
    - The CLI calls a tool of yours `mcp__server__tool`. For servers in `own`, hooks see the tool's own name.
    - `session_id` makes one session of all queries.
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
        for unknown in about.keys() - SessionOptions.__annotations__.keys():
            raise UnknownName(
                "keyword", unknown, [*SessionOptions.__annotations__, "own", "session_id"], " of Fairlead"
            )
        if isinstance(own, str):
            raise TypeError(f"own is a list of names of MCP servers: own=[{own!r}]")
        self.engine = hooks if hooks is not None else Hooks()
        self._own = tuple(f"mcp__{server}__" for server in own)
        self._about = {"agent": "agent", "host": HOST.name, **about}
        self._session_id = session_id
        self._sessions: OrderedDict[str, _CliSession] = OrderedDict()
        tools = self.engine.tools
        for pattern, kind, more in HOST.tools if tools.spec("Skill", {}, HOST.name).kind == "unknown" else ():
            tools.add(pattern, kind, host=HOST.name, **more)
        for name in HOST.events:
            blocks = BLOCKS if name in GUARDS else {}
            super().__setitem__(
                name, [HookMatcher(hooks=[partial(self._on_event, name)], timeout=CALLBACK_TIMEOUT, **blocks)]
            )

    def options(self, options: ClaudeAgentOptions | None = None) -> ClaudeAgentOptions:
        """The same options, with these hooks added, also around `can_use_tool`."""
        options = options if options is not None else ClaudeAgentOptions()
        ask, hooks = options.can_use_tool, self | (options.hooks or {})
        if isinstance(ask, partial) and getattr(ask.func, "__func__", None) is Fairlead._permit:
            return options  # they have these hooks already
        if ask is None:
            return replaced(options, hooks=hooks)
        # The CLI does not wait for the hooks of this event before it takes the answer of `can_use_tool`. So our
        # `can_use_tool` runs them first.
        hooks["PermissionRequest"] = hooks["PermissionRequest"][1:]
        return replaced(options, hooks=hooks, can_use_tool=partial(self._permit, ask))

    def _keep(self, *args: Any, **options: Any) -> NoReturn:
        raise TypeError("this would take hooks out of force; to add hooks of yours, write Fairlead(hooks) | others")

    __setitem__ = __delitem__ = pop = popitem = clear = update = setdefault = _keep  # type: ignore[assignment]

    def __ior__(self, others: Any) -> Any:  # type: ignore[misc]
        return NotImplemented  # Python then uses `|`

    def __or__(self, others: Mapping[Any, list[HookMatcher]]) -> dict[HookEvent, list[HookMatcher]]:  # type: ignore[override]
        """These hooks and others together. The union of two dicts would lose some."""
        return {name: [*self.get(name, ()), *self._beside(others.get(name, ()))] for name in {**self, **others}}

    def _beside(self, matchers: Iterable[HookMatcher]) -> Iterator[HookMatcher]:
        """The matchers that are not of a `Fairlead` with the same hooks. Another one is an error."""
        for matcher in matchers:
            owners = [getattr(getattr(one, "func", None), "__self__", None) for one in matcher.hooks]
            other = next((one for one in owners if isinstance(one, Fairlead)), None)
            if other is None:
                yield matcher
            elif other.engine is not self.engine:
                raise FairleadError("the options have another Fairlead already; register all hooks with one Hooks")

    __ror__ = __or__  # type: ignore[assignment]

    def why(self, session_id: str) -> str | None:
        """Why hooks ended the last turn of a session, if they did. The SDK's result does not always say."""
        session = self._sessions.get(session_id)
        return None if session is None else session.stopped

    # --- the SDK's callbacks ----------------------------------------------------------------

    async def _on_event(self, name: str, payload: Any, call_id: str | None, context: Any) -> dict[str, Any]:
        """Handle an event. An error is a refusal here: the CLI continues if a callback raises."""
        session = None
        try:
            session = await self._session_of(str(payload["session_id"]))
            event = _SdkEvent(session, name, payload)
            reply = await event.reply()
            if name in ("PostToolUse", "PostToolUseFailure"):
                await event.check_arguments()
            return reply
        except Exception as error:
            return _refusal(session, name, payload, error)

    async def _permit(self, ask: Any, tool: str, args: dict[str, Any], context: Any) -> Any:
        """Have hooks judge a permission, then ask the user's own `can_use_tool`."""
        found = [session for session in self._sessions.values() if session.has(context.tool_use_id)]
        if len(found) > 1:  # some models number their calls: then it must have these arguments, too
            found = [session for session in found if session.has(context.tool_use_id, args_digest(args))]
        session = found[0] if len(found) == 1 else None
        try:
            if session is None:
                raise FairleadError(f"the CLI asks for a permission for an unknown call of {tool!r}")
            payload = {
                "session_id": session.name, "tool_name": tool, "tool_input": args, "tool_use_id": context.tool_use_id,
                "agent_id": context.agent_id, "agent_type": session.agents.get(context.agent_id),
            }  # fmt: skip
            event = _SdkEvent(session, "PermissionRequest", payload)
            decision = (await event.reply()).get("hookSpecificOutput", {}).get("decision")
            if decision is None:
                reasons = [reason for reason in (context.decision_reason, event.question) if reason]
                answer = await ask(tool, args, replaced(context, decision_reason="\n".join(reasons) or None))
            elif decision["behavior"] == "allow":
                answer = PermissionResultAllow()
            else:
                answer = PermissionResultDeny(message=decision["message"])
            changed = answer.updated_input if isinstance(answer, PermissionResultAllow) else None
            if changed is not None and _judged_part(tool, changed) != _judged_part(tool, args):
                raise ArgumentsChanged(session.named(tool), context.tool_use_id, "can_use_tool")
            refusal = await event.after_permission(isinstance(answer, PermissionResultAllow))
            return answer if refusal is None else PermissionResultDeny(message=refusal)
        except Exception as error:
            _refusal(session, "PermissionRequest", {}, error)
            return PermissionResultDeny(message=_failure_text(error))

    async def _check_call(self, server: str, params: Mapping[str, Any]) -> str | None:
        """Check a call of a tool in this process, just before it runs. Gives why it may not, if it is not as judged."""
        call_id, tool = str(a_dict(params.get("_meta")).get(CALL_ID)), f"mcp__{server}__{params.get('name')}"
        ran = args_digest(_judged_part(tool, a_dict(params.get("arguments"))))
        found = [session for session in self._sessions.values() if call_id in session.judged]
        if not found or any(ran in session.judged[call_id] for session in found):
            return None
        for session in found:
            del session.judged[call_id]
            error = ArgumentsChanged(session.named(tool), call_id, BY)
            await session.fire(Error, error=f"ArgumentsChanged: {error}", where=f"tool {session.named(tool)}")
            _refusal(session, "PreToolUse", {}, error)
        return f"ArgumentsChanged: {error}"

    # --- sessions ---------------------------------------------------------------------------

    async def _session_of(self, name: str) -> _CliSession:
        found = self._sessions.get(name)
        if found is None:
            about = {**self._about, "agent": Agent(name, self._about["agent"])}
            # the run cannot fail: what cannot be denied is stopped as soon as possible
            approver = _leave_to_cli if self.engine.approver is None else None
            session = self.engine.session(
                self._session_id or name, **about, capabilities=CAN, lenient=True, approver=approver
            )
            session.request_id = None  # each input of the user makes one
            found = self._sessions[name] = _CliSession(name, session, self._own)
            while len(self._sessions) > SESSIONS:
                await self._sessions.popitem(last=False)[1].end("forgotten")
        self._sessions.move_to_end(name)
        return found

    def closing(self) -> Flow[None]:
        while self._sessions:
            yield Call(partial(self._sessions.popitem()[1].end, "exit"))


class _Watched:
    """A transport that fails as soon as the model answers, if Claude Code has called none of our hooks by then.

    Some switches turn off all hooks of Claude Code, and it does not say so. One of them may stand in the settings of a
    project, which the model can write.
    """

    def __init__(self, transport: Any) -> None:
        self._transport = transport

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        calls_hooks, messages = False, self._transport.read_messages()
        async for message in messages:
            if message.get("type") == "control_request":
                calls_hooks = calls_hooks or message["request"].get("subtype") == "hook_callback"
            elif message.get("type") == "assistant" and not calls_hooks and message["message"]["model"] != SYNTHETIC:
                with suppress(Exception):  # the CLI's end, which is what we want
                    await self._transport.close()
                    await messages.aclose()
                raise FairleadError(NO_HOOKS)
            yield message


def _watch(init: Callable[..., None]) -> Callable[..., None]:
    @wraps(init)
    def watching(self: Any, *args: Any, **options: Any) -> None:
        init(self, *args, **options)
        callbacks = [one for matcher in (self.hooks or {}).get("UserPromptSubmit", ()) for one in matcher["hooks"]]
        owners = [getattr(getattr(one, "func", None), "__self__", None) for one in callbacks]
        fairlead = next((one for one in owners if isinstance(one, Fairlead)), None)
        if fairlead is not None:
            self.transport = _Watched(self.transport)
            self._handle_sdk_mcp_request = _checking(fairlead, self._handle_sdk_mcp_request)

    return watching


def _checking(fairlead: Fairlead, handle: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    """Handle requests to servers in this process, but refuse a call of a tool that is not as hooks have judged it."""

    async def checked(server: str, message: Any) -> Any:
        if message.get("method") == "tools/call":
            refusal = await fairlead._check_call(server, a_dict(message.get("params")))
            if refusal is not None:
                result = {"content": [{"type": "text", "text": refusal}], "isError": True}
                return {"jsonrpc": "2.0", "id": message.get("id"), "result": result}
        return await handle(server, message)

    return checked


Query.__init__ = _watch(Query.__init__)  # type: ignore[method-assign]


async def _leave_to_cli(request: ApprovalRequest) -> Approval:
    """Leave the question to the CLI. It asks `can_use_tool`, or refuses if there is none."""
    return Approval("ask", HOST.name)


def _with_stop(event: str, can: Collection[str], decision: Decision[Any]) -> Decision[Any]:
    """A decision on a step that the CLI does not report, with its effect: a stop, or nothing."""
    if decision.event != event:
        return decision
    return decision.with_effect("proceed" if effect_of(decision, can).stop is None else "stop")


def _refusal(session: _CliSession | None, name: str, payload: Any, error: Exception) -> dict[str, Any]:
    """The reply to the CLI after an error: it refuses the operation, and stops the turn."""
    why = f"ArgumentsChanged: {error}" if isinstance(error, ArgumentsChanged) else _failure_text(error)
    logger.error("%s: at %s, %s", HOST.title, name, why)
    if session is not None:
        session.stop(why)
    with suppress(Exception):  # the CLI's payload may be the cause
        return HOST.events[name].render(Effect(deny=why, stop=why), name, payload)
    return {"continue": False, "stopReason": why}


def _failure_text(error: Exception) -> str:
    return f"refused, because this went wrong: {describe(error)}"


def _judged_part(tool: str, args: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call that hooks have judged: all but those that the user gives."""
    return {name: value for name, value in args.items() if name not in ANSWERS.get(tool, ())}


class _CliSession:
    """A session of the CLI."""

    def __init__(self, name: str, session: Session, own: tuple[str, ...]) -> None:
        self.name, self.session, self._own = name, session, own
        self.state = CliSessionState()
        self.stopped: str | None = None
        """Why hooks have ended the turn, also before the CLI knows it."""
        self.judged: dict[str, list[str]] = {}
        """Digests of the arguments of calls that may run, by the call's id. Some models use an id again."""
        self.agents: dict[str, str | None] = {}
        """The names of subagents, by their ids."""
        self.started = self._in_request = self._in_turn = False

    def named(self, tool: str) -> str:
        """The name of a tool, as hooks see it."""
        return next((tool.removeprefix(server) for server in self._own if tool.startswith(server)), tool)

    def stop(self, why: str) -> None:
        """End the turn. No tool runs until the CLI has ended it."""
        self.stopped = self.stopped or why
        self.state.halt = self.state.halt or why

    def has(self, call_id: str | None, args: str | None = None) -> bool:
        return any(call[0] == call_id and args in (None, call[2]) for call in self.state.calls)

    async def dispatch(self, step: Step, can: Any = None, carry: EffectFn | None = None) -> Decision[Any]:
        """Dispatch a step. A deny that the event cannot carry out stops all tools until the user's next message."""
        self._in_turn = step.event == "turn_start" or (self._in_turn and step.event != "turn_end")
        session = self.session
        decision = await (session.dispatch(step) if carry is None else session.dispatch_with_effect(step, carry))
        if decision.control in ("stop", "abort") and "stop" in CAN[step.event]:
            self.stop(reason_of(decision))
        elif decision.denied and not {"deny", "stop"} & CAN[step.event]:
            self.state.halt = reason_of(decision)
        return decision

    async def fire(self, kind: type[Step], **fields: Any) -> Effect:
        """Dispatch a step that the CLI does not report."""
        if kind not in self.session.hooks.subscribed_steps:
            return Effect()
        can = frozenset({*CAN[kind.event], "stop"})  # the nearest thing to an abort
        decision = await self.dispatch(self.session.step(kind, **fields), carry=partial(_with_stop, kind.event, can))
        if kind in (BeforeRequest, AfterRequest):
            self.session.state, self.session.checkpoint_id = decision.step.state, decision.step.checkpoint_id
        effect = effect_of(decision, can)
        self.state.context += [*effect.context, *effect.later]
        return effect

    async def begin(self, source: str) -> str | None:
        """Begin a request, of the user or of a background task. Gives why hooks refuse it, if they do."""
        session, effect = self.session, Effect()
        await self.end_request()  # the CLI may not have reported the end of the last one
        if source == "user":
            self.stopped = self.state.halt = None
        session.request_id, session.turn_id = new_id("request"), None
        self._in_request = True
        if not self.started:
            effect = await self.fire(SessionStart, source="new")
            self.started = effect.stop is None  # else the next request starts it again
        return effect.stop or (await self.fire(BeforeRequest, state=session.state)).stop

    async def end_request(self, stop_reason: str = "end_turn", error: str | None = None) -> None:
        """End the request, if there is one."""
        if self._in_turn:
            self._in_turn = False
            await self.fire(TurnEnd, stop_reason=stop_reason)
        if self._in_request:
            self._in_request = False
            await self.fire(AfterRequest, state=self.session.state, error=error)

    async def end(self, reason: str) -> None:
        with suppress(FairleadError):  # a hook cannot keep it from ending
            await self.end_request()
        await self.session.close()
        if self.started:
            with suppress(FairleadError):
                await self.fire(SessionEnd, reason=reason)


class _SdkEvent(EventHandler):
    """An event, as the SDK passes it."""

    def __init__(self, session: _CliSession, event: str, payload: dict[str, Any]) -> None:
        if event == "StopFailure":  # the last message says what went wrong
            payload = {"error_details": payload.get("last_assistant_message"), **payload}
        super().__init__(parse_event(HOST, event, payload), session.state, session.dispatch)
        self.session = session
        self.question: str | None = None  # of hooks, at this event
        if payload.get("agent_id"):
            session.agents[payload["agent_id"]] = payload.get("agent_type")

    async def reply(self) -> dict[str, Any]:
        session, event = self.session, self.mapping.event
        refusal = await self._before()
        if refusal is not None:
            reply = self.mapping.render(Effect(stop=refusal), self.event, self.payload)
        else:
            reply = await super().reply()
        if reply.get("continue") is False or (event == "before_input" and "decision" in reply):
            session.stop(str(reply.get("stopReason") or reply.get("reason")))
            if event == "before_tool":  # the turn ends after the batch: not every CLI stops with a deny
                reply = {key: value for key, value in reply.items() if key not in ("continue", "stopReason")}
            elif not self.identity.shares_session:
                await session.end_request()
        elif event == "before_turn_end" and "decision" not in reply:
            await session.end_request()
        elif event == "error":
            await session.end_request("error", str(self.payload.get("error_details") or self.payload.get("error")))
        return reply

    async def check_arguments(self) -> None:
        """Raise `ArgumentsChanged` if the tool has run with other arguments than hooks have judged."""
        tool, call_id = str(self.payload.get("tool_name")), str(self.payload.get("tool_use_id"))
        judged = self.session.judged.pop(call_id, None)
        if judged is None:
            return
        ran = args_digest(_judged_part(tool, a_dict(self.payload.get("tool_input"))))
        if ran not in judged:
            name = self.session.named(tool)
            error = ArgumentsChanged(name, call_id, BY, ran=True)
            await self.session.fire(Error, error=f"ArgumentsChanged: {error}", where=f"tool {name}")
            raise error
        judged.remove(ran)
        if judged:
            self.session.judged[call_id] = judged

    def _render(self, effect: Effect) -> dict[str, Any]:
        if self.mapping.event == "before_tool" and effect.deny is None:
            tool, args = str(self.payload.get("tool_name")), a_dict(self.payload.get("tool_input"))
            digest = args_digest(_judged_part(tool, args if effect.args is None else effect.args))
            judged = self.session.judged
            judged.setdefault(str(self.payload.get("tool_use_id")), []).append(digest)
            while len(judged) > JUDGED:
                del judged[next(iter(judged))]
        return super()._render(effect)

    async def _before(self) -> str | None:
        """Dispatch the steps before the event. Gives why hooks stop here, if they do."""
        session, event, payload = self.session, self.mapping.event, self.payload
        if event == "before_input" and (fields := self.mapping.parse(payload)) is not None:
            return await session.begin(fields["source"])
        if event == "after_tool_batch":
            for call in payload["tool_calls"] if session.stopped is None else ():
                if session.has(call.get("tool_use_id")):
                    await self._end_refused(call)
            return session.stopped
        if self.event == "PostToolUseFailure":
            await session.fire(
                Error, error=str(payload.get("error")), where=f"tool {session.named(str(payload.get('tool_name')))}"
            )
        return None

    async def _end_refused(self, call: dict[str, Any]) -> None:
        """End a call that no hook denied and that has not run: `can_use_tool` or the CLI has refused it."""
        about = {
            "tool": self.session.named(call["tool_name"]),
            "args": a_dict(call.get("tool_input")),
            "call_id": call["tool_use_id"],
        }
        why = str(call.get("tool_response") or "the permission was refused")
        ending = {"outcome": "denied", "executed": False, "error": why, "is_error": True}
        self.state.calls = [known for known in self.state.calls if known[0] != call["tool_use_id"]]
        await self._report(AfterTool, about | ending)

    async def after_permission(self, granted: bool) -> str | None:
        """Report a permission. Gives why the call does not run in spite of it, if hooks stop here."""
        fields = self._complete(self.mapping.parse(self.payload) or {})
        del fields["proposed"]
        return await self._report(AfterPermission, fields | {"granted": granted})

    async def _report(self, kind: type[Step], fields: dict[str, Any]) -> str | None:
        """Dispatch a step that the CLI does not report. Gives why hooks stop the turn, if they do."""
        can = CAN[kind.event]
        carry = partial(_with_stop, kind.event, can)
        effect = effect_of(await self.session.dispatch(self._step(kind, fields), carry=carry), can)
        self.state.context += [*effect.context, *effect.later]
        return effect.stop

    def _effect(self, decision: Decision[Any], can: tuple[str, ...]) -> Effect:
        effect = super()._effect(decision, can)
        self.question = self.question or (reason_of(decision) if decision.control == "ask" else None)
        return effect

    def _complete(self, fields: dict[str, Any]) -> dict[str, Any]:
        if "tool" in fields:
            fields["tool"] = self.session.named(fields["tool"])
        output = fields.get("output")
        if isinstance(output, list) and all(block.get("type") == "text" for block in output):
            fields["output"] = as_text(output)  # a tool of the user gives a text this way
        return super()._complete(fields)

    def _step(self, kind: type[Step], fields: dict[str, Any]) -> Any:
        session, identity = self.session.session, self.identity
        session.turn_id = identity.turn_id or self.state.turn_id
        session.cwd = identity.cwd or session.cwd
        return session.step(kind, **{"agent": self._agent(), **fields})

    def _agent(self) -> Agent | None:
        return self.identity.agent if self.identity.shares_session else self.session.session.agent
