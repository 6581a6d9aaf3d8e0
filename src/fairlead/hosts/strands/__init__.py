"""Strands Agents: agents that run under hooks, by one hook provider.

`Fairlead` is what a user adds; each request that an agent works on has a `_Run` of its own. What Strands' hook events
cannot do is done around its model and its tools: by its middleware where it has one (1.62), and before that by
stand-ins for the model and the tool that are about to be used. Either way ours is the last to touch them: nobody comes
after it who could change what was judged.
"""

from __future__ import annotations

import sys
from asyncio import CancelledError, Lock
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from contextvars import ContextVar
from copy import copy
from inspect import isawaitable, signature
from typing import Any, NoReturn, Self
from weakref import WeakKeyDictionary, WeakSet

from strands import Agent
from strands.hooks import (
    AfterInvocationEvent,
    AfterModelCallEvent,
    AfterMultiAgentInvocationEvent,
    AfterToolCallEvent,
    AgentInitializedEvent,
    BeforeInvocationEvent,
    BeforeModelCallEvent,
    BeforeMultiAgentInvocationEvent,
    BeforeNodeCallEvent,
    BeforeToolCallEvent,
    HookProvider,
    HookRegistry,
)
from strands.interrupt import InterruptException
from strands.models import BedrockModel, Model

from ...approvals import Approval
from ...decision import Decision
from ...errors import FairleadError, Unenforceable, UnknownName
from ...frozen import thaw
from ...lifecycle import BeforeModel, BeforeOutput, BeforeResponse
from ...registry import Hooks
from ...session import new_id
from ..framework import WHOLE, Framework
from ..model import Message, as_text
from ..tool_call import Called
from ..turn import Asked, Asking, Runs, Turn, end_session, rewritten
from ..work import Work, drive
from .messages import (
    REASONS,
    approval_of,
    blocks_of,
    calls_tools,
    chunks_of,
    merged,
    new_in,
    output_of,
    plain_of,
    readable,
    reply_of,
    result_of,
    said_in,
    text_of,
    unit_of,
    units_of,
    with_context,
)

try:
    from strands.middleware import ExecuteToolStage, InvokeModelStage
    from strands.types.events import ToolResultEvent
except ImportError:  # before 1.62
    from strands.types._events import ToolInterruptEvent, ToolResultEvent

    ExecuteToolStage = InvokeModelStage = None

FRAMEWORK = Framework(
    name="strands",
    title="Strands Agents",
    package="strands-agents",
    versions=">=1.30,<2",
    can=WHOLE,
    notes=(
        "Agent.structured_output() goes past the agent's loop, and is refused: pass structured_output_model instead.",
        "A structured output can be watched, but not changed: a hook that tries fails the request.",
    ),
)

FINAL = ("before_response", "before_output")
HELD = ("after_model", *FINAL)
"""Events at which a hook may object to what a model says: nothing of it is streamed before they are over."""
PAUSED = ("interrupt", "checkpoint")
"""Why Strands may leave a request that it will go on with."""
FORM = "structured_output"
"""The type of the tool with which a model gives an answer that is no text."""

Stream = AsyncGenerator[Any, None]

_KNOWN: WeakKeyDictionary[Any, list[Hooks]] = WeakKeyDictionary()
"""Agents that run under hooks, and under whose."""


class _Interrupted(Exception):
    """A tool has its own question to ask."""

    def __init__(self, event: Any) -> None:
        self.event = event


class _ToolFailed(Exception):
    """A tool gave an error for its result."""


class Fairlead(HookProvider):  # type: ignore[misc]
    """Runs an agent under hooks: `Agent(model=..., tools=[...], hooks=[Fairlead(hooks)])`.

    `models` are those that a hook may switch to, by name; as everywhere in Strands, a string is the id of a model in
    Bedrock. An agent is one session, that of its session manager if it has one; it ends with `aclose()`, or at the end
    of `async with`. `session_id` makes one session of all agents. The agents that an agent has for tools, and those of
    a swarm or a graph (`Swarm(agents, hooks=[Fairlead(hooks)])`), run under the same hooks, as its subagents.
    """

    def __init__(
        self,
        hooks: Hooks | None = None,
        *,
        models: Mapping[str, Model | str] | None = None,
        session_id: str | None = None,
        **about: Any,
    ) -> None:
        self.runs = Runs(hooks, FRAMEWORK, asks=True, **({"session_id": session_id} if session_id else {}), **about)
        self.models = dict(models or {})
        self._session_id = session_id
        self._ids: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._agents: WeakSet[Any] = WeakSet()
        self._going: dict[tuple[int, int], _Run] = {}
        self._paused: WeakKeyDictionary[Any, _Run] = WeakKeyDictionary()
        self._owners: WeakKeyDictionary[Any, _Run] = WeakKeyDictionary()  # the swarm or graph that an agent works for
        self._replaced: WeakKeyDictionary[Any, tuple[Any, Any]] = WeakKeyDictionary()  # models, and their stand-ins

    async def aclose(self) -> None:
        """End all sessions, and what still waits for an answer."""
        while self._paused:
            await self._paused.popitem()[1].failed(CancelledError())
        await self.runs.aclose()

    def close(self) -> None:
        """End all sessions, where nothing can be awaited."""
        self.runs.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    # --- registering ------------------------------------------------------------------------

    def register_hooks(self, registry: HookRegistry, **_: Any) -> None:
        """Strands calls this. An agent that is complete by then is taken over when it does something."""
        registry.add_callback(AgentInitializedEvent, self._initialized)
        registry.add_callback(BeforeInvocationEvent, self._late_invocation)
        registry.add_callback(BeforeToolCallEvent, self._late_tool)
        registry.add_callback(BeforeMultiAgentInvocationEvent, self._before_agents)
        registry.add_callback(BeforeNodeCallEvent, self._before_node)
        registry.add_callback(AfterMultiAgentInvocationEvent, self._after_agents)

    def _initialized(self, event: AgentInitializedEvent) -> None:
        self._take_over(event.agent)

    async def _late_invocation(self, event: BeforeInvocationEvent) -> None:
        if self._take_over(event.agent):
            await self._before_invocation(event)

    def _late_tool(self, event: BeforeToolCallEvent) -> None:
        if self._take_over(event.agent) and not _has_middleware(event.agent):
            self._before_tool(event)

    def _take_over(self, agent: Any) -> bool:
        """Register with an agent, after everybody else: its own hooks and plugins have spoken when ours do."""
        if agent in self._agents:
            return False
        self._agents.add(agent)
        _KNOWN.setdefault(agent, []).append(self.runs.hooks)
        add = agent.hooks.add_callback
        last: Any = {"order": float("inf")} if "order" in signature(add).parameters else {}  # since 1.62
        add(BeforeInvocationEvent, self._before_invocation, **last)
        add(AfterInvocationEvent, self._after_invocation)
        add(AfterToolCallEvent, self._after_tool)
        if _has_middleware(agent):
            agent.add_middleware(InvokeModelStage, self._invoke_model)
            agent.add_middleware(ExecuteToolStage, self._execute_tool)
        else:
            add(BeforeModelCallEvent, self._before_model)
            add(AfterModelCallEvent, self._after_model)
            add(BeforeToolCallEvent, self._before_tool)
        return True

    def adopt(self, agent: Any) -> None:
        """An agent that another one has for a tool, or that is part of a swarm or a graph."""
        if isinstance(agent, Agent) and not any(hooks is self.runs.hooks for hooks in _KNOWN.get(agent, ())):
            self._take_over(agent)

    def turn_of(self, owner: Any, name: str) -> Turn:
        """A new request of an agent, a swarm or a graph: each is a conversation, which its session manager may name."""
        manager = getattr(owner, "_session_manager", None) or getattr(owner, "session_manager", None)
        found = getattr(owner, "session_id", None) or getattr(manager, "session_id", None)  # the first since 1.62
        session_id = self._session_id or found or self._ids.setdefault(owner, new_id("session"))
        return self.runs.turn(session_id, agent=name)

    def _run_of(self, agent: Any, state: Any) -> _Run | None:
        """The request that something belongs to: that of the same invocation, or else the agent's latest."""
        found = self._going.get((id(agent), id(state)))
        return found or next((run for run in reversed(self._runs_of(agent))), None)

    def _runs_of(self, agent: Any) -> list[_Run]:
        return [run for run in tuple(self._going.values()) if run.agent is agent]

    def model_named(self, name: str) -> Any:
        if name not in self.models:
            raise UnknownName("model", name, self.models, " (those of Fairlead(hooks, models=...) can be switched to)")
        model = self.models[name]
        return BedrockModel(model_id=model) if isinstance(model, str) else model

    def name_of(self, model: Any) -> str:
        config = model.get_config()
        known = config.get("model_id") if isinstance(config, Mapping) else getattr(config, "model_id", None)
        return next((name for name, one in self.models.items() if one is model), known or type(model).__name__)

    # --- requests ---------------------------------------------------------------------------

    async def _before_invocation(self, event: BeforeInvocationEvent) -> None:
        agent, key = event.agent, (id(event.agent), id(event.invocation_state))
        run = self._going.get(key)
        if (run is not None and run.event is event) or getattr(event, "cancel", False):
            return
        if event.messages is None:
            raise FairleadError("Agent.structured_output() goes past hooks: give structured_output_model to the call")
        paused = self._paused.pop(agent, None)
        if paused is not None and event.messages:
            await paused.failed(CancelledError())  # nobody has answered; this is something else
        if run is not None and not run.resumes:  # a hook that came later has raised: Strands never ended that one
            del self._going[key]
            await run.failed(CancelledError())
            run = None
        run = run or (paused if not event.messages else None)
        if run is None:
            run = await self._start(agent, said_in(event.messages))
            await run.begin(event, "user" if event.messages else "continuation")
        elif run.ended:  # and yet it goes on: somebody has more for a subagent to do
            run.renew()
            await run.begin(event, "continuation")
        run.event, run.resumes = event, False
        self._going[key] = run

    async def _start(self, agent: Any, given: Any) -> _Run:
        """Whose request it is."""
        parent = self._owners.get(agent) or _INSIDE.get()
        if parent is None or parent.agent is agent or parent.turn.runs.hooks is not self.runs.hooks:
            return _Run(self, agent, self.turn_of(agent, agent.name))
        try:
            turn, message, refused = await drive(parent.turn.helper(agent.name, as_text(given)))
        except FairleadError as error:
            parent.error = error
            raise
        if refused is not None:
            raise FairleadError(refused)
        return _Run(self, agent, turn, parent, message if message != as_text(given) else None)

    async def _after_invocation(self, event: AfterInvocationEvent) -> None:
        agent, key = event.agent, (id(event.agent), id(event.invocation_state))
        run = self._going.get(key)
        if run is None:
            return
        self._put_back(agent)
        result, error = event.result, run.error
        leaving = sys.exc_info()[1] if result is None and error is None else None  # Strands does not say why
        if error is not None or leaving is not None:
            del self._going[key]
            await run.failed(error or leaving)
            if error is not None:  # which has perhaps become a tool's result by now, or another exception's cause
                _raise(error)
        elif result is not None and result.stop_reason in PAUSED:
            self._paused[agent] = self._going.pop(key)
        else:
            feedback = None
            try:
                feedback = await run.conclude(result)
            except BaseException as raised:
                await run.failed(raised)
                raise
            finally:
                if feedback is None:
                    del self._going[key]
            if feedback is not None:
                event.resume, run.resumes = feedback, True

    # --- models -----------------------------------------------------------------------------

    def _invoke_model(self, context: Any, following: Any) -> Any:
        run = self._run_of(context.agent, context.invocation_state)
        if run is not None and run.passes():
            return following(context)
        return following(context.replace(model=self._stand_in(context.agent, context.model)))

    def _before_model(self, event: BeforeModelCallEvent) -> None:
        agent, run = event.agent, self._run_of(event.agent, event.invocation_state)
        if run is not None:
            run.asked = bool(getattr(event, "cancel", False))
        if agent not in self._replaced:
            self._replaced[agent] = agent.model, self._stand_in(agent, agent.model)
            agent.model = self._replaced[agent][1]

    def _after_model(self, event: AfterModelCallEvent) -> None:
        self._put_back(event.agent)
        run = self._run_of(event.agent, event.invocation_state)
        if run is not None and not run.asked and event.exception is None:
            run.error = Unenforceable("another model was asked, past all hooks; to route models, use Strands 1.62")
        if run is not None and run.error is not None:
            raise run.error

    def _put_back(self, agent: Any) -> None:
        """The agent has its own model again, unless it is busy with another request."""
        if agent in self._replaced and len(self._runs_of(agent)) < 2:
            model, stand_in = self._replaced.pop(agent)
            if agent.model is stand_in:
                agent.model = model

    def _stand_in(self, agent: Any, model: Any) -> Any:
        """The model, but for how it is asked."""

        def stream(messages: Any, tool_specs: Any = None, system_prompt: Any = None, **options: Any) -> Any:
            run = self._run_of(agent, options.get("invocation_state"))
            if run is None or run.passes():  # none: hooks came in the middle of a request
                return model.stream(messages, tool_specs, system_prompt, **options)
            return run.ask(model, messages, tool_specs, system_prompt, options)

        stand_in = copy(model)
        stand_in.stream = stream
        return stand_in

    # --- tools ------------------------------------------------------------------------------

    def _execute_tool(self, context: Any, following: Any) -> Stream:
        def execute(tool_use: Any) -> Any:
            return following(context.replace(tool_use=tool_use))

        def interrupt(name: str, reason: Any) -> Any:
            answer = context.interrupt(name, reason=reason).response
            return _answer(context.agent, context.tool_use, name, reason, answer)

        state = context.invocation_state
        run = self._run_of(context.agent, state) or self._run_for_call(context.agent)
        return run.call(context.tool, context.tool_use, state, execute, interrupt)

    def _before_tool(self, event: BeforeToolCallEvent) -> None:
        """A stand-in for the tool: when it is used, everybody else is done with the arguments."""
        tool = event.selected_tool
        if tool is None or getattr(tool, "_fairlead", None) is self:
            return

        async def stream(tool_use: Any, invocation_state: Any, **options: Any) -> Stream:
            def execute(tool_use: Any) -> Any:
                return tool.stream(tool_use, invocation_state, **options)

            def interrupt(name: str, reason: Any) -> Any:
                return _answer(event.agent, tool_use, name, reason, event.interrupt(name, reason))

            run = self._run_of(event.agent, invocation_state) or self._run_for_call(event.agent)
            events = run.call(tool, tool_use, invocation_state, execute, interrupt)
            try:
                async with aclosing(events):
                    async for one in events:
                        yield one
            except InterruptException as asks:
                yield ToolInterruptEvent(tool_use, [asks.interrupt])

        stand_in = copy(tool)
        stand_in.stream, stand_in._fairlead = stream, self
        event.selected_tool = stand_in

    def _run_for_call(self, agent: Any) -> _Run:
        """A call outside of any request is one that a program makes: `agent.tool.name(...)`."""
        run = _Run(self, agent, self.turn_of(agent, agent.name))
        run.direct = True
        return run

    async def _after_tool(self, event: AfterToolCallEvent) -> None:
        """A call is over. Strands makes a result of every exception: what must fail the request does so here."""
        run = self._going.get((id(event.agent), id(event.invocation_state)))
        if run is not None and run.error is not None:
            raise run.error
        form = getattr(event.selected_tool, "tool_type", None) == FORM
        if run is None or form:
            return
        if event.tool_use["toolUseId"] in run.judged:
            run.judged.remove(event.tool_use["toolUseId"])  # once: some models give a later call the same id
        else:
            await run.past(event)

    # --- swarms and graphs ------------------------------------------------------------------

    def _before_agents(self, event: BeforeMultiAgentInvocationEvent) -> None:
        source = event.source
        run = self._paused.pop(source, None) or _Run(self, source, self.turn_of(source, source.id))
        self._going[id(source), 0] = run
        for node in source.nodes.values():
            self.adopt(node.executor)
            self._owners[node.executor] = run

    async def _before_node(self, event: BeforeNodeCallEvent) -> None:
        """What it is about is known now, and not before."""
        run = self._going[id(event.source), 0]
        async with run.lock:
            if run.event is None:
                run.event = event
                try:
                    task = readable(event.source.state.task)
                    begun = await drive(run.turn.begin(task))
                    if begun.input != task and not run.turn.over:
                        wanted = begun.input
                        event.source.state.task = wanted if isinstance(wanted, str) else blocks_of(wanted)
                except FairleadError as error:
                    run.error = error
                    raise
        if run.turn.over:
            event.cancel_node = run.turn.said or "stopped"

    async def _after_agents(self, event: AfterMultiAgentInvocationEvent) -> None:
        source, leaving = event.source, sys.exc_info()[1]
        run = self._going.pop((id(source), 0))
        status = getattr(source.state, "completion_status", None) or getattr(source.state, "status", None)
        if getattr(status, "value", None) == "interrupted":
            self._paused[source] = run
            return
        for node in source.nodes.values():
            self._owners.pop(node.executor, None)
        if run.event is not None and run.error is None and leaving is None:
            try:
                await run.end_of_all()
            except FairleadError as error:
                run.error = error
        elif run.event is not None:
            await run.failed(run.error or leaving)
        if run.error is not None:  # of which a swarm says only that it failed
            _raise(run.error)


class _Run:
    """One request that an agent works on, or a swarm or a graph."""

    def __init__(
        self, fairlead: Fairlead, agent: Any, turn: Turn, parent: _Run | None = None, message: str | None = None
    ) -> None:
        self.fairlead, self.agent, self.turn, self.parent = fairlead, agent, turn, parent
        self.message = message
        """What a subagent is to do instead of what it was told."""
        self.event: Any = None
        """With which it began, or goes on."""
        self.system_prompt: str | None = None
        self.feedback: str | None = None
        """With which it is to go on."""
        self.ended = self.stopped = False
        """The turn is over; and whoever has this subagent knows that it has stopped."""
        self.error: FairleadError | None = None
        """Why the request fails, though Strands may not think so."""
        self.asked = False
        """The model was asked under hooks, the last time."""
        self.judged: list[str] = []
        """Calls that hooks have heard of, and Strands has not ended."""
        self.resumes = False
        """It goes on with another invocation."""
        self.direct = False
        """A program calls a tool by itself."""
        self.lock = Lock()  # several nodes of a graph start at once

    def renew(self) -> None:
        """There is to be another turn."""
        self.turn = self.turn.again()
        self.ended = self.stopped = False

    async def begin(self, event: BeforeInvocationEvent, source: str) -> None:
        agent, turn, messages = self.agent, self.turn, event.messages
        given = said_in(messages) if self.message is None else self.message
        about = {"system_prompt": agent.system_prompt, "committed_len": len(agent.messages) + len(messages)}
        try:
            begun = await drive(turn.begin(given, source=source, **about))
        except BaseException as error:
            await self.failed(error)
            raise
        if begun.system_prompt != agent.system_prompt:
            self.system_prompt = begun.system_prompt or ""
        if messages and turn.session.turn_id is None:  # nothing of it is kept; but an answer needs somebody who asked
            event.messages = [{"role": "user", "content": [{"text": "[Message rejected]"}]}]
        elif begun.input != said_in(messages):
            old = messages[: len(messages) - new_in(messages)]
            event.messages = [*old, {"role": "user", "content": blocks_of(begun.input)}]

    # --- the model --------------------------------------------------------------------------

    def passes(self) -> bool:
        """Whether the next request to the model is made as it is: nobody listens to any of it."""
        heard = self.turn.heard
        if self.ended or self.system_prompt is not None or BeforeResponse in heard or BeforeOutput in heard:
            return False
        self.asked = self.turn.passes()
        return self.asked

    async def ask(
        self, model: Any, messages: Any, tool_specs: Any, system_prompt: Any, options: dict[str, Any]
    ) -> Stream:
        """One request to the model. What hooks may object to is held back."""
        self.asked = True
        came: list[Asked] = []
        held = self.fairlead.runs.judges(*HELD)
        try:
            if self.ended:  # somebody else has it asked again: that is another turn
                self.renew()
                await drive(self.turn.begin("", source="continuation", system_prompt=system_prompt))
            if self.system_prompt is not None:
                system_prompt = self.system_prompt or None
                options["system_prompt_content"] = blocks_of(system_prompt) if system_prompt else None
            work = self._asking(model, list(messages), lambda model, sent: model.stream(
                sent, tool_specs, system_prompt, **options
            ))  # fmt: skip
            async with aclosing(_go(work, came, lambda _: held)) as chunks:
                async for chunk in chunks:
                    yield chunk
            asked = came[0]
            text = await self._last_words(asked)
        except FairleadError as error:
            self.error = error
            raise
        if held or asked.native is None:
            for chunk in chunks_of(asked.native or [], text):
                yield chunk

    def _asking(self, model: Any, given: list[Any], send: Callable[[Any, Any], Any]) -> Work[Asked]:
        turn, fairlead, history = self.turn, self.fairlead, self.agent.messages
        units: list[Any] = []
        plain: list[Message] = []

        def shown() -> list[Message]:
            if BeforeModel in turn.heard:
                units[:] = units_of(given)
                plain[:] = plain_of(units)
            return plain

        def call(asking: Asking) -> Any:
            given[:] = with_context(given, asking.context)
            if asking.context and history and history[-1]["role"] == "user":
                history[-1:] = with_context(history[-1:], asking.context)  # a new message: others may have the old one
            sent = given
            if asking.messages is not None:
                sent = merged(rewritten(units, plain, asking.messages, unit_of))
            return send(model if asking.model is None else fairlead.model_named(asking.model), list(sent))

        return turn.ask(fairlead.name_of(model), shown, call, reply_of)

    async def _last_words(self, asked: Asked) -> str | None:
        """What the model says instead, if it has nothing more to do and a hook wants to have a say in that."""
        forms = any(tool.tool_type == FORM for tool in self.agent.tool_registry.dynamic_tools.values())
        if forms or calls_tools(asked.native) or not self.fairlead.runs.judges(*FINAL):
            return asked.text
        reply = reply_of(asked.native)
        if not self.turn.over:
            self.turn.stop_reason = reply.stop_reason or "end_turn"
        self.feedback = await drive(self.turn.ending())
        if self.feedback is not None:
            return asked.text
        self.ended = True
        ended = await drive(self.turn.end(reply.text if asked.text is None else asked.text))
        return ended.text or "" if ended.changed else asked.text

    # --- tools ------------------------------------------------------------------------------

    async def call(
        self,
        tool: Any,
        tool_use: Any,
        state: Any,
        execute: Callable[[Any], Any],
        interrupt: Callable[[str, Any], Any],
    ) -> Stream:
        """One call, as the events that Strands expects of it."""
        if getattr(tool, "tool_type", None) == FORM:
            async for event in execute(tool_use):
                yield event
            return
        self.fairlead.adopt(getattr(tool, "agent", None))
        self.judged.append(tool_use["toolUseId"])
        name = getattr(tool, "tool_name", None) or tool_use["name"]  # another hook may have put it in the other's place
        raw = tool_use["input"]  # a model may give a list, or a text, which some tools take
        whole = raw if isinstance(raw, dict) else {"input": raw} if raw else {}
        args = {key: value for key, value in whole.items() if _can_be_told(value)}
        kept = {key: value for key, value in whole.items() if key not in args}
        last: list[Any] = []
        came: list[Called] = []

        def start(args: dict[str, Any]) -> Any:
            return execute({**tool_use, "input": raw if args | kept == whole else args | kept})

        def ask(decision: Decision[Any] | None) -> Approval:
            asks = {} if decision is None else {"question": decision.reason, "hook": decision.hook}
            about = {"tool": name, "args": thaw(decision.step.args) if decision is not None else args}
            return approval_of(interrupt(f"fairlead:{asks.get('hook')}", asks | about))

        def result(events: list[Any]) -> Any:
            """What the tool gave. Raises what went wrong, in it or in a subagent."""
            last[:] = [event if isinstance(event, ToolResultEvent) else ToolResultEvent(event) for event in events[-1:]]
            error = self.error or (last[0].exception if last else _ToolFailed("it gave no result"))
            if error is None and last[0].tool_result.get("status") == "error":
                error = _ToolFailed(as_text(output_of(last[0].tool_result)))
            if error is not None:
                raise error
            return last[0].tool_result

        call = self.turn.tool(
            name, args, tool_use["toolUseId"], start, read=output_of,
            ask=ask if "event_loop_cycle_id" in state else None,  # who calls a tool directly cannot be interrupted
            through=(InterruptException, _Interrupted), **_about(tool),
        )  # fmt: skip
        try:
            if self.direct:  # no request begins that would do it
                for old in self.fairlead.runs.surplus():
                    await drive(end_session(old, "forgotten"))
            await drive(call.judge())
            if call.free:
                async for event in self._inside(start(call.args)):
                    if _asks(event):
                        self.judged.remove(tool_use["toolUseId"])
                    yield event
                return
            events = _go(call.finish(), came, lambda event: isinstance(event, ToolResultEvent), result)
            async for event in self._inside(events):
                yield event
        except _Interrupted as asks:
            self.judged.remove(tool_use["toolUseId"])
            yield asks.event
            return
        except InterruptException:
            self.judged.remove(tool_use["toolUseId"])
            raise
        except FairleadError as error:
            self.error = error
            raise
        called = came[0]
        yield ToolResultEvent(_result(tool_use, called)) if called.replaced or not last else last[0]

    async def _inside(self, events: Stream) -> Stream:
        """What happens while a tool is at work. Whoever reads its events meanwhile is not inside of it."""
        try:
            while True:
                inside = _INSIDE.set(self)
                try:
                    event = await anext(events)
                except StopAsyncIteration:
                    return
                finally:
                    _INSIDE.reset(inside)
                yield event
        finally:
            await _close(events)

    async def past(self, event: AfterToolCallEvent) -> None:
        """Somebody else has refused a call, or answered it, or there is no such tool: it has an end all the same."""
        use, status = event.tool_use, event.result.get("status")
        args = use["input"] if isinstance(use["input"], dict) else {}
        proposed: Any = "deny" if event.cancel_message else "allow"

        def given(args: dict[str, Any]) -> Any:
            if status == "error":
                raise _ToolFailed(as_text(output_of(event.result)))
            return event.result

        try:
            if event.selected_tool is not None and status != "error" and not _has_middleware(event.agent):
                raise Unenforceable(f"a hook that came later had {use['name']} run, past all hooks; use Strands 1.62")
            called = await drive(
                self.turn.tool(use["name"], args, use["toolUseId"], given, proposed=proposed, read=output_of).work()
            )
        except FairleadError as error:
            self.error = error
            raise
        if called.replaced and not event.cancel_message:
            event.result = _result(use, called)

    # --- the end ----------------------------------------------------------------------------

    async def conclude(self, result: Any) -> str | None:
        """The turn is about to end. With what the agent goes on, if it is to."""
        turn = self.turn
        feedback, self.feedback = self.feedback, None
        if not self.ended:
            reason = "end_turn" if result is None else result.stop_reason
            if not turn.over:
                turn.stop_reason = REASONS.get(reason, "end_turn")
            if feedback is None and reason != "cancelled":
                feedback = await drive(turn.ending(voluntary=reason not in REASONS))
            if feedback is not None:
                return feedback
            await self._end(result)
        if self.parent is None:
            return None
        self.stopped = True
        return await drive(self.parent.turn.helper_stops(turn))

    async def _end(self, result: Any) -> None:
        """The turn is over, and no hook has had a say in its last words yet, if any wants to."""
        form = getattr(result, FORM, None)
        text = text_of(result.message["content"]) if result is not None else None
        text = text if form is None else form.model_dump_json()
        self.ended = True
        ended = await drive(self.turn.end(text))
        if not ended.changed or (not ended.text and not text):
            return
        if form is not None:
            raise Unenforceable(f"Strands gives {type(form).__name__} as it is; a hook wants it to be {ended.text!r}")
        if result is not None:
            calls = [block for block in result.message["content"] if "toolUse" in block]  # whose results are there
            result.message["content"] = [*blocks_of(ended.text or ""), *calls]

    async def end_of_all(self) -> None:
        """A swarm or a graph is done. What its last agent says was judged when it said it."""
        last = list(self.agent.state.results.values())[-1:]
        text = "\n".join(text_of(one.message["content"]) for node in last for one in node.get_agent_results())
        ended = await drive(self.turn.end(text))
        if ended.changed and not self.turn.over:
            raise Unenforceable("what a swarm or a graph gives is what its agents give; change that")

    async def failed(self, error: BaseException | None) -> None:
        """The request is over early."""
        error = getattr(error, "original_exception", None) or error  # Strands wraps what happens in a second request
        if error is None or isinstance(error, GeneratorExit):
            error = CancelledError()
        await drive(self.turn.failed(error))
        if self.parent is not None:
            if isinstance(error, FairleadError):
                self.parent.error = error  # the tool that this agent is would make a result of it
            if not self.stopped:
                self.stopped = True
                with suppress(FairleadError):  # what ended it is what the parent should hear of
                    await drive(self.parent.turn.helper_stops(self.turn))


_INSIDE: ContextVar[_Run | None] = ContextVar("fairlead_strands", default=None)
"""Whose tool is at work: an agent that runs inside of it is a subagent."""


async def _go(
    work: Work[Any], came: list[Any], held: Callable[[Any], bool], made: Callable[[Any], Any] = lambda items: items
) -> Stream:
    """`drive`, for work in which something is streamed: it is passed on as it comes, unless it is held back.

    What the work is given is `made` of all that came. What comes of the work itself is put into `came`.
    """
    value: Any = None
    error: BaseException | None = None
    left: GeneratorExit | None = None
    while True:
        try:
            wanted = work.send(value) if error is None else work.throw(error)
        except StopIteration as end:
            came.append(end.value)
            return
        except CancelledError:
            if left is not None:
                raise left from None
            raise
        value = error = None
        try:
            if isinstance(wanted, tuple):
                value = await wanted[0].dispatch(wanted[1])
                continue
            value = wanted()
            if hasattr(value, "__aiter__"):
                items: list[Any] = []
                try:
                    async for item in value:
                        if _asks(item):
                            raise _Interrupted(item)
                        items.append(item)
                        if not held(item):
                            yield item
                finally:
                    await _close(value)
                value = made(items)
            elif isawaitable(value):
                value = await value
        except GeneratorExit as leaving:  # whoever listens has left: for the work that is as good as cancelled
            left, error = leaving, CancelledError()
        except BaseException as raised:
            error = raised


async def _close(stream: Any) -> None:
    if hasattr(stream, "aclose"):
        await stream.aclose()


def _asks(event: Any) -> bool:
    """Whether a tool has its own question to ask."""
    return isinstance(event, dict) and "tool_interrupt_event" in event


def _raise(error: Exception) -> NoReturn:
    """Raise what was raised before, and is perhaps the cause of what is on its way now."""
    try:
        raise error
    finally:
        error.__context__ = None  # or else the two were each other's


def _result(tool_use: Any, called: Called) -> Any:
    """What the model is given for a call."""
    content = result_of(called.output if called.replaced else str(called.error))
    return {"toolUseId": tool_use["toolUseId"], "status": "error" if called.is_error else "success", "content": content}


def _answer(agent: Any, tool_use: Any, name: str, reason: Any, answer: Any) -> Any:
    """What a human has answered, if it was this that was asked. Strands tells questions apart by call and name."""
    for one in agent._interrupt_state.interrupts.values():
        asked = one.reason if one.name == name and f":{tool_use['toolUseId']}:" in one.id else None
        if isinstance(asked, Mapping) and all(asked.get(key) == reason[key] for key in ("tool", "args")):
            return answer
    return {"approved": False, "reason": "somebody was asked about this call, but with other arguments"}


def _has_middleware(agent: Any) -> bool:
    return InvokeModelStage is not None and hasattr(agent, "add_middleware")


def _about(tool: Any) -> dict[str, Any]:
    """What Strands knows of a tool."""
    if getattr(tool, "tool_type", None) == "agent":
        return {"kind": "agent"}
    if (remote := getattr(tool, "mcp_tool", None)) is None:
        return {}
    hints = getattr(remote, "annotations", None)
    if getattr(hints, "readOnlyHint", None):
        return {"kind": "mcp", "safety": "read_only"}
    return {"kind": "mcp", "safety": "destructive"} if getattr(hints, "destructiveHint", None) else {"kind": "mcp"}


def _can_be_told(value: Any) -> bool:
    """Who calls a tool directly may give it anything: an agent, a connection."""
    return value is None or isinstance(value, (str, int, float, list, dict, tuple, bytes))
