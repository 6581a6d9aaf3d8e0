"""Strands Agents: agents that run under hooks, by one hook provider.

`Fairlead` is what a user adds; each request that an agent works on has a `Run` of its own, and each of its tool calls a
`Call`. What Strands' hook events cannot do is done around its model and its tools: by its middleware where it has one
(1.62), and before that by stand-ins for the model and the tool that are about to be used. Either way ours is the last
to touch them: nobody comes after it who could change what was judged.
"""

from __future__ import annotations

import sys
from asyncio import CancelledError
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import aclosing
from copy import copy
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
from strands.models import BedrockModel, Model

from ...errors import FairleadError, Unenforceable, UnknownName
from ...registry import Hooks
from ...session import new_id
from ..framework import WHOLE, Framework
from ..model import as_text
from ..turn import SESSIONS, Runs, Turn
from ..work import Closes, Work, drive
from .call import INSIDE, Call, end_call
from .messages import FORM, said_in
from .run import Run
from .streams import Stream
from .versions import ExecuteToolStage, InvokeModelStage, has_middleware, question_of

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

PAUSED = ("interrupt", "checkpoint")
"""Why Strands may leave a request that it will go on with."""
_KNOWN: WeakKeyDictionary[Any, list[Hooks]] = WeakKeyDictionary()
"""Agents that run under hooks, and under whose."""


class Fairlead(Closes, HookProvider):  # type: ignore[misc]
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
        self._going: dict[tuple[int, int], Run] = {}
        self._paused: OrderedDict[Any, Run] = OrderedDict()  # by agent, until somebody has answered a question
        self._owners: WeakKeyDictionary[Any, Run] = WeakKeyDictionary()  # the swarm or graph that an agent works for
        self._replaced: WeakKeyDictionary[Any, tuple[Any, Any]] = WeakKeyDictionary()  # models, and their stand-ins

    def _closing(self) -> Work[None]:
        while self._paused:
            yield from self._give_up()
        yield from self.runs.closing()

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
        if self._take_over(event.agent) and not has_middleware(event.agent):
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
        if has_middleware(agent):
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

    def _run_of(self, agent: Any, state: Any) -> Run | None:
        """The request that something belongs to: that of the same invocation, or else the agent's latest."""
        found = self._going.get((id(agent), id(state)))
        return found or next((run for run in reversed(self._runs_of(agent))), None)

    def _runs_of(self, agent: Any) -> list[Run]:
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
            await drive(paused.failed(CancelledError()))  # nobody has answered; this is something else
        if run is not None and not run.resumes:  # a hook that came later has raised: Strands never ended that one
            del self._going[key]
            await drive(run.failed(CancelledError()))
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

    async def _start(self, agent: Any, given: Any) -> Run:
        """Whose request it is."""
        parent = self._owners.get(agent) or INSIDE.get()
        if parent is None or parent.agent is agent or parent.turn.runs.hooks is not self.runs.hooks:
            return Run(self, agent, self.turn_of(agent, agent.name))
        try:
            turn, message, refused = await drive(parent.turn.helper(agent.name, as_text(given)))
        except FairleadError as error:
            parent.error = error
            raise
        if refused is not None:
            raise FairleadError(refused)
        return Run(self, agent, turn, parent, message if message != as_text(given) else None)

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
            await drive(run.failed(error or leaving))
            if error is not None:  # which has perhaps become a tool's result by now, or another exception's cause
                _raise(error)
        elif result is not None and result.stop_reason in PAUSED:
            await self._pause(agent, self._going.pop(key))
        else:
            feedback = None
            try:
                feedback = await run.conclude(result)
            except BaseException as raised:
                await drive(run.failed(raised))
                raise
            finally:
                if feedback is None:
                    del self._going[key]
            if feedback is not None:
                event.resume, run.resumes = feedback, True

    async def _pause(self, agent: Any, run: Run) -> None:
        self._paused[agent] = run
        while len(self._paused) > SESSIONS:
            await drive(self._give_up())

    def _give_up(self) -> Work[None]:
        """What has waited longest for an answer ends without one. A subagent has waited longer than its parent."""
        agent, run = self._paused.popitem(last=False)
        self._disown(agent)
        yield from run.failed(CancelledError())

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
            return context.interrupt(name, reason=reason).response

        state = context.invocation_state
        run = self._run_for_call(context.agent, state)
        return Call(run, context.tool, context.tool_use, state, execute, interrupt).work()

    def _before_tool(self, event: BeforeToolCallEvent) -> None:
        """A stand-in for the tool: when it is used, everybody else is done with the arguments."""
        tool = event.selected_tool
        if tool is None or getattr(tool, "_fairlead", None) is self:
            return

        async def stream(tool_use: Any, invocation_state: Any, **options: Any) -> Stream:
            def execute(tool_use: Any) -> Any:
                return tool.stream(tool_use, invocation_state, **options)

            run = self._run_for_call(event.agent, invocation_state)
            events = Call(run, tool, tool_use, invocation_state, execute, event.interrupt).work()
            try:
                async with aclosing(events):
                    async for one in events:
                        yield one
            except InterruptException as asks:
                yield question_of(tool_use, asks.interrupt)

        stand_in = copy(tool)
        stand_in.stream, stand_in._fairlead = stream, self
        event.selected_tool = stand_in

    def _run_for_call(self, agent: Any, state: Any) -> Run:
        """A call outside of any request is one that a program makes: `agent.tool.name(...)`."""
        run = self._run_of(agent, state)
        if run is None:
            run = Run(self, agent, self.turn_of(agent, agent.name))
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
            await end_call(run, event)

    # --- swarms and graphs ------------------------------------------------------------------

    def _before_agents(self, event: BeforeMultiAgentInvocationEvent) -> None:
        source = event.source
        run = self._paused.pop(source, None) or Run(self, source, self.turn_of(source, source.id))
        self._going[id(source), 0] = run
        for node in source.nodes.values():
            self.adopt(node.executor)
            self._owners[node.executor] = run

    async def _before_node(self, event: BeforeNodeCallEvent) -> None:
        run = self._going[id(event.source), 0]
        await run.begin_all(event)
        if run.turn.over:
            event.cancel_node = run.turn.said or "stopped"

    async def _after_agents(self, event: AfterMultiAgentInvocationEvent) -> None:
        source, leaving = event.source, sys.exc_info()[1]
        run = self._going.pop((id(source), 0))
        status = getattr(source.state, "completion_status", None) or getattr(source.state, "status", None)
        if getattr(status, "value", None) == "interrupted":
            await self._pause(source, run)
            return
        self._disown(source)
        if run.event is not None and run.error is None and leaving is None:
            try:
                await run.end_all()
            except FairleadError as error:
                run.error = error
        elif run.event is not None:
            await drive(run.failed(run.error or leaving))
        if run.error is not None:  # of which a swarm says only that it failed
            _raise(run.error)

    def _disown(self, source: Any) -> None:
        """The agents of a swarm or a graph no longer work for it. An agent has none."""
        for node in getattr(source, "nodes", {}).values():
            self._owners.pop(node.executor, None)


def _raise(error: Exception) -> NoReturn:
    """Raise what was raised before, and is perhaps the cause of what is on its way now."""
    try:
        raise error
    finally:
        error.__context__ = None  # or else the two were each other's
