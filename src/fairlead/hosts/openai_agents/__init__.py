"""The OpenAI Agents SDK: agents that run under hooks, by a `Runner` of our own.

The SDK's own hooks only watch. So `Fairlead` runs a copy of the agent whose model, tools and handoffs come to us
first; each run has a `Run` of its own, which they find in a context variable. An agent that is run inside of a tool
(`agent.as_tool`, or `Runner.run` in a function) is a subagent: the SDK's default runner sends it here, too.
"""

from __future__ import annotations

import asyncio
from asyncio import CancelledError
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from typing import Any

from agents import Model, RunContextWrapper, RunResultStreaming, RunState
from agents.run import DEFAULT_MAX_TURNS, AgentRunner, get_default_agent_runner, set_default_agent_runner

from ...decision import Decision
from ...errors import FairleadError
from ...registry import Hooks
from ..framework import WHOLE, Framework
from ..turn import SESSIONS, Runs
from ..work import Closes, Work, drive
from .agent import Guarded, guarded_agent
from .call import CALL, RUN
from .messages import id_of, part
from .run import Run

FRAMEWORK = Framework(
    name="openai_agents",
    title="OpenAI Agents SDK",
    package="openai-agents",
    versions=">=0.8,<0.25",
    can=WHOLE,
    notes=(
        "Tools that run at the provider (web search, hosted MCP, ...) and ComputerTool are not seen by tool hooks.",
        "after_model lists them in usage['other_calls'].",
        "An ask at a handoff, a ShellTool, an ApplyPatchTool or a CustomTool goes to the hooks' approver only.",
        "At a handoff there is no initial message to change, and subagent_stop cannot extend.",
        "Read a RunState that was written down with RunState.from_string(fairlead.agent(agent), text).",
    ),
)


class Fairlead(Closes):
    """Runs agents under hooks, in place of the SDK's own runner: `Runner = Fairlead(hooks)`.

    `run`, `run_sync` and `run_streamed` take what those of `agents.Runner` take, and give what they give. `models` are
    those that a hook may switch to, by name; other names are left to the run's model provider. Runs with a `session`
    or a `conversation_id` are requests of one session, which ends with `aclose()`, or at the end of `async with`; any
    other run is a session of its own. `session_id` makes one session of all runs.
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
        self.paused: OrderedDict[Run, set[tuple[str, str]]] = OrderedDict()  # until somebody has answered a question
        self.inner: Any = _without_hooks(get_default_agent_runner())

    async def run(self, starting_agent: Any, input: Any, **options: Any) -> Any:
        """`Runner.run`, under hooks."""
        run = self._open(starting_agent, input, options)
        inside = RUN.set(run)
        try:
            agent, given, options = await run.begin(starting_agent, input, options)
            result = await self.beneath.run(agent, given, **options)
            await run.finish(result)
            return result
        except BaseException as error:
            told = await run.failed(error)
            if told is error:
                raise
        finally:
            RUN.reset(inside)
            await run.leave()
        raise told  # out here, because the SDK's error has it as its cause

    def run_sync(self, starting_agent: Any, input: Any, **options: Any) -> Any:
        """`Runner.run_sync`, under hooks."""
        return _Sync(self).run_sync(starting_agent, input, **options)

    def run_streamed(self, starting_agent: Any, input: Any, **options: Any) -> Any:
        """`Runner.run_streamed`, under hooks."""
        return _Streamed(self, starting_agent, input, options)

    def agent(self, agent: Any) -> Any:
        """The copy of an agent that is under hooks, for `RunState.from_json` and `from_string`."""
        return guarded_agent(agent, {})

    def question(self, interruption: Any) -> Decision[Any] | None:
        """What a human is asked: why, and in the decision's step the arguments that the tool would be given.

        The SDK shows those that the model gave, and no reason. None if the question is not put here, or not by a hook.
        """
        call_id = id_of(interruption.raw_item)
        calls = (call for run in self.paused for call in run.calls if call.call_id == call_id and call.put)
        return next((call.asking for call in calls if call.raw == part(interruption.raw_item, "arguments")), None)

    def _closing(self) -> Work[None]:
        while self.paused:
            yield from self.paused.popitem(last=False)[0].turn.failed(CancelledError())  # subagents first
        yield from self.runs.closing()

    # --- runs -------------------------------------------------------------------------------

    @property
    def beneath(self) -> Any:
        """Whoever runs agents without hooks. From now on, we hear of what it is asked to run meanwhile."""
        default = get_default_agent_runner()
        if not isinstance(default, _Nested):  # another Fairlead may be: it would run our subagents under its hooks
            set_default_agent_runner(_Nested(default))
        return _without_hooks(default)

    def _open(self, agent: Any, given: Any, options: dict[str, Any], *, streaming: bool = False) -> Run:
        """The run that this is: a new one, or one that waited for an answer."""
        parent = RUN.get()
        parent = parent if parent is not None and parent.fairlead is self else None
        run = None
        if isinstance(given, RunState):
            if not isinstance(getattr(given, "_current_agent", None), Guarded):
                raise FairleadError(
                    "this RunState knows nothing of the hooks: "
                    "read it with RunState.from_string(fairlead.agent(agent), text)"
                )
            run = self._waiting(given, 0 if parent is None else parent.depth + 1)
        if run is None:
            run = Run(self, parent, streaming)
        else:
            del self.paused[run]
        call = CALL.get()
        run.streaming, run.parent = streaming, parent
        run.call = call if call is not None and parent is not None and call.turn is parent.turn else None
        return run

    def _waiting(self, state: Any, depth: int) -> Run | None:
        """The run whose question this state answers. Models may give the calls of several runs the same id."""
        asked, runs = _questions(state.get_interruptions()), getattr(getattr(state, "_context", None), PUT, None)
        found = [run for run, put in self.paused.items() if run.depth == depth and not put.isdisjoint(asked)]
        if runs is not None:
            found = [run for run in found if run.id in runs]
        return found[0] if len(found) == 1 else None

    async def pause(self, run: Run, result: Any) -> None:
        about = result.context_wrapper.__dict__
        about[PUT] = {run.id, *about.get(PUT, ())}
        self.paused[run] = _questions(result.interruptions)
        while len(self.paused) > SESSIONS:
            await drive(self.paused.popitem(last=False)[0].turn.failed(CancelledError()))


PUT = "fairlead_put"
"""Where the SDK's context of a run that waits has the run's id. That of a state that was read from a text has none."""


def _questions(interruptions: list[Any]) -> set[tuple[str, str]]:
    """The calls that a human is asked about: their ids, and what they would do."""
    return {(id_of(item.raw_item), str(part(item.raw_item, "arguments"))) for item in interruptions}


def _without_hooks(runner: Any) -> Any:
    while isinstance(runner, Fairlead | _Nested):
        runner = runner.inner
    return runner


class _Sync(AgentRunner):
    """The SDK's own way to run something where nothing can be awaited."""

    def __init__(self, fairlead: Fairlead) -> None:
        self.fairlead = fairlead

    async def run(self, starting_agent: Any, input: Any, **options: Any) -> Any:
        return await self.fairlead.run(starting_agent, input, **options)


class _Nested:
    """The SDK's default runner, once an agent has run under hooks: what such an agent runs is under hooks, too."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    @property
    def _runner(self) -> Any:
        run = RUN.get()
        return self.inner if run is None else run.fairlead

    async def run(self, starting_agent: Any, input: Any, **options: Any) -> Any:
        return await self._runner.run(starting_agent, input, **options)

    def run_sync(self, starting_agent: Any, input: Any, **options: Any) -> Any:
        return self._runner.run_sync(starting_agent, input, **options)

    def run_streamed(self, starting_agent: Any, input: Any, **options: Any) -> Any:
        return self._runner.run_streamed(starting_agent, input, **options)


# --- streams --------------------------------------------------------------------------------------


class _Streamed(RunResultStreaming):
    """A streamed run. The SDK's own result is made when hooks have had their say; then this one is its twin."""

    def __init__(self, fairlead: Fairlead, agent: Any, given: Any, options: dict[str, Any]) -> None:
        context = options.get("context")
        super().__init__(
            input=given if isinstance(given, (str, list)) else [], new_items=[], raw_responses=[], final_output=None,
            input_guardrail_results=[], output_guardrail_results=[], tool_input_guardrail_results=[],
            tool_output_guardrail_results=[], current_agent=agent, current_turn=0,
            context_wrapper=context if isinstance(context, RunContextWrapper) else RunContextWrapper(context),
            max_turns=options.get("max_turns", DEFAULT_MAX_TURNS), _current_agent_output_schema=None, trace=None,
        )  # fmt: skip
        stream = self.fairlead_stream = _Stream()
        stream.work = asyncio.get_running_loop().create_task(self._work(fairlead, agent, given, options))
        stream.work.add_done_callback(lambda _: stream.events.put_nowait(None))  # also if it never began

    async def _work(self, fairlead: Fairlead, agent: Any, given: Any, options: dict[str, Any]) -> None:
        stream = self.fairlead_stream
        run: Run | None = None
        try:
            run = fairlead._open(agent, given, options, streaming=True)
            RUN.set(run)
            agent, given, options = await run.begin(agent, given, options)
            stream.inner = fairlead.beneath.run_streamed(agent, given, **options)
            stream.inner.__dict__["fairlead_stream"] = stream
            self.__dict__ = stream.inner.__dict__
            async for event in stream.inner.stream_events():
                stream.events.put_nowait(event)
            if stream.cancelled and self.final_output is None and not self.interruptions:
                raise CancelledError
            await run.finish(self)
        except BaseException as error:
            stream.error = error if run is None else await run.failed(error)
            self.is_complete = True
        finally:
            if run is not None:
                await run.leave()

    async def stream_events(self) -> AsyncIterator[Any]:
        stream = self.fairlead_stream
        try:
            while (event := await stream.events.get()) is not None:
                yield event
        except CancelledError:
            self.cancel()
            await asyncio.wait([stream.work])
            raise
        stream.events.put_nowait(None)  # whoever asks again
        if stream.error is not None and not isinstance(stream.error, CancelledError):
            raise stream.error

    def cancel(self, mode: Any = "immediate") -> None:
        stream = self.fairlead_stream
        stream.cancelled = True
        if stream.inner is None:
            stream.work.cancel()
        else:
            super().cancel(mode)


class _Stream:
    """What a streamed run is made of."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[Any] = asyncio.Queue()
        self.work: Any = None
        self.inner: Any = None
        self.error: BaseException | None = None
        self.cancelled = False
