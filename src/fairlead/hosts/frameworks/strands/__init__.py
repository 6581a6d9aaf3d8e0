"""The adapter for Strands Agents: a hook provider.

`Fairlead` is what a user adds. Each request that an agent works on has a `StrandsRun`, and each of its tool calls a
`StrandsToolCall`. Where Strands' hook events are not enough, the adapter wraps the model and the tools: with Strands'
middleware (since 1.62), or with a copy of the model or the tool that is about to be used. In both cases the adapter is
the last to touch them, so nothing can change what hooks have judged.
"""

from __future__ import annotations

import sys
from asyncio import CancelledError
from collections.abc import Mapping
from contextlib import aclosing
from copy import copy
from functools import wraps
from inspect import signature
from typing import Any, NoReturn
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
from strands.models import BedrockModel

from ....errors import FairleadError, Unenforceable, UnknownName
from ....registry import Hooks
from ....session import new_id
from ..adapter import Adapter
from ..flow import Flow, run_flow
from ..framework import WHOLE, Framework
from ..turn import Turn
from .messages import input_of, is_form
from .run import StrandsRun
from .streams import Stream
from .tool_calls import INSIDE, StrandsToolCall, end_call
from .versions import (
    ExecuteToolStage,
    InvokeModelStage,
    be_innermost,
    bidirectional_events,
    has_middleware,
    question_of,
)

FRAMEWORK = Framework(
    name="strands",
    title="Strands Agents",
    package="strands-agents",
    versions=">=1.30,<2",
    can=WHOLE,
    notes=(
        "Agent.structured_output() bypasses the agent's loop, and is refused: pass structured_output_model instead.",
        "Hooks see a structured output, but cannot change it: a hook that tries fails the request.",
    ),
)

PAUSED = ("interrupt", "checkpoint")
"""Why Strands stops a request that it resumes later."""
_OWNER: WeakKeyDictionary[Any, Fairlead] = WeakKeyDictionary()
"""The adapter that each agent runs under."""
_ADOPTED: WeakSet[Any] = WeakSet()
"""Agents without a `Fairlead` of their own, that an adapter has taken over."""
_REGISTERED: WeakKeyDictionary[Any, Fairlead] = WeakKeyDictionary()
"""The adapter in each registry of an agent, a swarm or a graph."""


class Fairlead(Adapter, HookProvider):  # type: ignore[misc]
    """Runs an agent under hooks: `Agent(model=..., tools=[...], hooks=[Fairlead(hooks)])`.

    - `models` names the models that a hook may switch to. As everywhere in Strands, a string is a Bedrock model id.
    - An agent is one session: that of its session manager, if it has one. `aclose()` and `async with` end it.
    - `session_id` makes one session of all agents.
    - Agents used as tools, and those of a swarm or a graph (`Swarm(agents, hooks=[Fairlead(hooks)])`), are subagents
      under the same hooks.
    """

    framework = FRAMEWORK

    def __init__(self, hooks: Hooks | None = None, **options: Any) -> None:
        super().__init__(hooks, **options)
        self._ids: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._agents: WeakSet[Any] = WeakSet()
        self._registries: WeakSet[Any] = WeakSet()  # of these agents; copies of an agent share one
        self._active: dict[tuple[int, int], StrandsRun] = {}
        self._owners: WeakKeyDictionary[Any, StrandsRun] = WeakKeyDictionary()  # the swarm or graph of an agent
        self._replaced: WeakKeyDictionary[Any, tuple[Any, Any]] = WeakKeyDictionary()  # models, and their stand-ins

    # --- registering ------------------------------------------------------------------------

    def register_hooks(self, registry: HookRegistry, **_: Any) -> None:
        """Strands calls this. An agent that is complete by then is taken over at its next event."""
        other = _REGISTERED.setdefault(registry, self)
        if other.sessions.hooks is not self.sessions.hooks:
            raise FairleadError("it runs under another Fairlead already; register all hooks with one Hooks")
        if other is not self:
            return
        registry.add_callback(AgentInitializedEvent, self._initialized)
        registry.add_callback(BeforeInvocationEvent, self._late_invocation)
        registry.add_callback(BeforeToolCallEvent, self._late_tool)
        registry.add_callback(BeforeMultiAgentInvocationEvent, self._before_agents)
        registry.add_callback(BeforeNodeCallEvent, self._before_node)
        registry.add_callback(AfterMultiAgentInvocationEvent, self._after_agents)
        for event in bidirectional_events():
            registry.add_callback(event, self._refuse_bidirectional)

    def _refuse_bidirectional(self, event: Any) -> NoReturn:
        raise FairleadError(
            f"Fairlead does not govern bidirectional agents: hooks would not see what {type(event.agent).__name__} does"
        )

    def _initialized(self, event: AgentInitializedEvent) -> None:
        if not isinstance(event.agent, Agent):  # since 1.62, bidirectional agents have this event, too
            self._refuse_bidirectional(event)
        self._take_over(event.agent)

    async def _late_invocation(self, event: BeforeInvocationEvent) -> None:
        if self._take_over(event.agent):
            await self._before_invocation(event)

    def _late_tool(self, event: BeforeToolCallEvent) -> None:
        if self._take_over(event.agent) and not has_middleware(event.agent):
            self._before_tool(event)

    def _take_over(self, agent: Any, *, shared: bool = False) -> bool:
        """Register with an agent, after its own hooks, plugins and middleware, so that they run before ours."""
        if agent in self._agents:
            return False
        if (other := _OWNER.get(agent)) is not None:
            if other.sessions.hooks is self.sessions.hooks:
                return False  # it is governed already, by the same hooks
            if not shared:
                raise FairleadError(
                    f"the agent {agent.name!r} runs under another Fairlead already; register all hooks with one Hooks"
                )
        self._agents.add(agent)
        _OWNER.setdefault(agent, self)
        if agent.hooks in self._registries:  # a copy of an agent, which shares all hooks and middleware with it
            return False
        self._registries.add(agent.hooks)
        add = agent.hooks.add_callback
        last: Any = {"order": float("inf")} if "order" in signature(add).parameters else {}  # since 1.62
        add(BeforeInvocationEvent, self._before_invocation, **last)
        add(AfterInvocationEvent, self._after_invocation)
        add(AfterToolCallEvent, self._after_tool)
        if has_middleware(agent):
            be_innermost(agent, {InvokeModelStage: self._invoke_model, ExecuteToolStage: self._execute_tool})
        else:
            add(BeforeModelCallEvent, self._before_model)
            add(AfterModelCallEvent, self._after_model)
            add(BeforeToolCallEvent, self._before_tool)
        return True

    def adopt(self, agent: Any) -> None:
        """Take over an agent that another one uses as a tool, or that is part of a swarm or a graph.

        It may work for agents under several sets of hooks. All of them judge what it does.
        """
        if isinstance(agent, Agent):
            if agent not in _OWNER:
                _ADOPTED.add(agent)
            self._take_over(agent, shared=True)

    def turn_of(self, owner: Any, name: str) -> Turn:
        """A new request of an agent, a swarm or a graph. Each is a session, which its session manager may name."""
        if (outer := self._owners.get(owner)) is not None:  # a swarm or graph inside another one
            return self.sessions.turn(outer.turn.session.session_id, agent=name)
        manager = getattr(owner, "_session_manager", None) or getattr(owner, "session_manager", None)
        found = getattr(owner, "session_id", None) or getattr(manager, "session_id", None)  # the first since 1.62
        session_id = self.session_id or found or self._ids.setdefault(owner, new_id("session"))
        return self.sessions.turn(session_id, agent=name)

    def _run_of(self, agent: Any, state: Any) -> StrandsRun | None:
        """The run of an invocation, or else the agent's latest."""
        found = self._active.get((id(agent), id(state)))
        return found or next((run for run in reversed(self._runs_of(agent))), None)

    def _runs_of(self, agent: Any) -> list[StrandsRun]:
        return [run for run in tuple(self._active.values()) if run.agent is agent]

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
        run = self._active.get(key)
        if (run is not None and run.event is event) or getattr(event, "cancel", False):
            return
        if event.messages is None:
            raise FairleadError("Agent.structured_output() bypasses hooks: give structured_output_model to the call")
        paused = self.paused.pop(agent, None)
        if paused is not None and event.messages:
            await run_flow(paused.fail(CancelledError()))  # the user says something instead of answering
        if run is not None and not run.resumes:  # a hook that ran later has raised, so Strands never ended this run
            del self._active[key]
            await run_flow(run.fail(CancelledError()))
            run = None
        run = run or (paused if not event.messages else None)
        if run is None:
            run = await self._start(agent, input_of(event.messages))
            await run.begin(event, "user" if event.messages else "continuation")
        elif run.ended:  # a hook has more for a subagent to do
            run.renew()
            await run.begin(event, "continuation")
        run.event, run.resumes = event, False
        self._active[key] = run

    async def _start(self, agent: Any, message: Any) -> StrandsRun:
        """A new run: that of a subagent, if another agent has started it."""
        parent = self._owners.get(agent) or INSIDE.get()
        if parent is None or parent.agent is agent or parent.turn.sessions.hooks is not self.sessions.hooks:
            return StrandsRun(self, agent, self.turn_of(agent, agent.name))
        run = StrandsRun(self, agent)
        run.parent = parent
        try:
            changed = await run_flow(run.start_subagent(parent.turn, agent.name, message))
        except FairleadError as error:
            parent.error = error
            raise
        if run.refusal is not None:
            raise FairleadError(run.refusal)
        run.message = None if changed is message else changed
        return run

    async def _after_invocation(self, event: AfterInvocationEvent) -> None:
        agent, key = event.agent, (id(event.agent), id(event.invocation_state))
        run = self._active.get(key)
        if run is None:
            return
        self._put_back(agent)
        result, error = event.result, run.error
        leaving = sys.exc_info()[1] if result is None and error is None else None  # Strands does not give the reason
        if error is not None or leaving is not None:
            del self._active[key]
            await run_flow(run.fail(error or leaving))
            if error is not None:  # Strands may have made a tool's result of it, or the cause of another exception
                _raise(error)
        elif result is not None and result.stop_reason in PAUSED:
            await run_flow(self.pause(agent, self._active.pop(key)))
        else:
            feedback = None
            try:
                feedback = await run.conclude(result)
            except BaseException as raised:
                await run_flow(run.fail(raised))
                raise
            finally:
                if feedback is None:
                    del self._active[key]
            if feedback is not None:
                event.resume, run.resumes = feedback, True

    def abandon_oldest(self) -> Flow[None]:
        self._disown(next(iter(self.paused)))
        yield from super().abandon_oldest()

    # --- models -----------------------------------------------------------------------------

    def _invoke_model(self, context: Any, following: Any) -> Any:
        run = self._run_of(context.agent, context.invocation_state)
        if run is not None and run.passes():
            return following(context)
        return following(context.replace(model=self._stand_in(context.agent, context.model)))

    def _before_model(self, event: BeforeModelCallEvent) -> None:
        agent, run = event.agent, self._run_of(event.agent, event.invocation_state)
        if run is not None:
            run.model_seen = bool(getattr(event, "cancel", False))
        if agent not in self._replaced:
            self._replaced[agent] = agent.model, self._stand_in(agent, agent.model)
            agent.model = self._replaced[agent][1]

    def _after_model(self, event: AfterModelCallEvent) -> None:
        self._put_back(event.agent)
        run = self._run_of(event.agent, event.invocation_state)
        if run is not None and not run.model_seen and event.exception is None:
            run.error = Unenforceable("another model was called, bypassing all hooks; to route models use Strands 1.62")
        if run is not None and run.error is not None:
            raise run.error

    def _put_back(self, agent: Any) -> None:
        """Give the agent its own model back, unless it works on another request."""
        if agent in self._replaced and len(self._runs_of(agent)) < 2:
            model, stand_in = self._replaced.pop(agent)
            if agent.model is stand_in:
                agent.model = model

    def _stand_in(self, agent: Any, model: Any) -> Any:
        """A copy of the model whose `stream` goes through hooks."""

        def stream(messages: Any, tool_specs: Any = None, system_prompt: Any = None, **options: Any) -> Any:
            run = self._run_of(agent, options.get("invocation_state"))
            if run is None or run.passes():  # None: the adapter was added during a request
                return model.stream(messages, tool_specs, system_prompt, **options)
            return run.call_model(model, messages, tool_specs, system_prompt, options)

        stand_in = copy(model)
        stand_in.stream = stream
        return stand_in

    # --- tools ------------------------------------------------------------------------------

    def _execute_tool(self, context: Any, following: Any) -> Stream:
        def execute(tool_use: Any) -> Any:
            return following(context.replace(tool_use=tool_use))

        def interrupt(name: str, reason: Any) -> Any:
            return context.interrupt(name, reason=reason).response

        state = context.invocation_state
        run = self._run_for_call(context.agent, state)
        return StrandsToolCall(run, context.tool, context.tool_use, state, execute, interrupt).stream()

    def _before_tool(self, event: BeforeToolCallEvent) -> None:
        """Put a stand-in in the tool's place. It runs after all other hooks had the arguments."""
        tool = event.selected_tool
        if tool is None or getattr(tool, "_fairlead", None) is self:
            return

        async def stream(tool_use: Any, invocation_state: Any, **options: Any) -> Stream:
            def execute(tool_use: Any) -> Any:
                return tool.stream(tool_use, invocation_state, **options)

            run = self._run_for_call(event.agent, invocation_state)
            events = StrandsToolCall(run, tool, tool_use, invocation_state, execute, event.interrupt).stream()
            try:
                async with aclosing(events):
                    async for one in events:
                        yield one
            except InterruptException as question:
                yield question_of(tool_use, question.interrupt)

        stand_in = copy(tool)
        stand_in.stream, stand_in._fairlead = stream, self
        event.selected_tool = stand_in

    def _run_for_call(self, agent: Any, state: Any) -> StrandsRun:
        """The run of a call. A call outside of any run is one that a program makes: `agent.tool.name(...)`."""
        run = self._run_of(agent, state)
        if run is None:
            run = StrandsRun(self, agent, self.turn_of(agent, agent.name))
            run.direct = True
        return run

    async def _after_tool(self, event: AfterToolCallEvent) -> None:
        """Fail the request here if it must fail: Strands makes a tool's result of every exception before this."""
        run = self._active.get((id(event.agent), id(event.invocation_state)))
        if run is not None and run.error is not None:
            raise run.error
        if run is None or is_form(event.selected_tool):
            return
        if event.tool_use["toolUseId"] in run.judged:
            run.judged.remove(event.tool_use["toolUseId"])  # once: some models give a later call the same id
        else:
            await end_call(run, event)

    # --- swarms and graphs ------------------------------------------------------------------

    def _before_agents(self, event: BeforeMultiAgentInvocationEvent) -> None:
        source = event.source
        if (known := self._active.get((id(source), 0))) is not None and known.invocation is event:
            return  # the adapter is there twice
        run = self.paused.pop(source, None) or StrandsRun(self, source, self.turn_of(source, source.id))
        run.invocation = event
        self._active[id(source), 0] = run
        for node in source.nodes.values():
            member = node.executor
            self.adopt(member)
            if hasattr(member, "nodes") and member.hooks not in _REGISTERED:  # another swarm or graph
                member.hooks.add_hook(self)
            self._owners[member] = run

    async def _before_node(self, event: BeforeNodeCallEvent) -> None:
        run = self._active[id(event.source), 0]
        await run.begin_all(event)
        if run.turn.over:
            event.cancel_node = run.turn.end_message or "stopped"

    async def _after_agents(self, event: AfterMultiAgentInvocationEvent) -> None:
        source, leaving = event.source, sys.exc_info()[1]
        run = self._active.pop((id(source), 0), None)
        if run is None:  # the adapter is there twice
            return
        status = getattr(source.state, "completion_status", None) or getattr(source.state, "status", None)
        if getattr(status, "value", None) == "interrupted":
            await run_flow(self.pause(source, run))
            return
        self._disown(source)
        if run.event is not None and run.error is None and leaving is None:
            try:
                await run.end_all()
            except FairleadError as error:
                run.error = error
        elif run.event is not None:
            await run_flow(run.fail(run.error or leaving))
        if run.error is not None:  # a swarm itself would only say that it failed
            _raise(run.error)

    def _disown(self, source: Any) -> None:
        """Forget that the agents of a swarm or a graph work for it."""
        for node in getattr(source, "nodes", {}).values():
            self._owners.pop(node.executor, None)


def _adopt_inside(stream: Any) -> Any:
    """Take over an agent without a `Fairlead` when it runs inside of a tool: a tool of Strands may have made it."""

    @wraps(stream)
    def streaming(self: Any, *args: Any, **options: Any) -> Any:
        run = INSIDE.get()
        if run is not None and (self not in _OWNER or self in _ADOPTED):
            run.fairlead.adopt(self)
        return stream(self, *args, **options)

    return streaming


Agent.stream_async = _adopt_inside(Agent.stream_async)


def _raise(error: Exception) -> NoReturn:
    """Raise an error that was raised before, and may be the cause of the current one."""
    try:
        raise error
    finally:
        error.__context__ = None  # else each would be the other's context
