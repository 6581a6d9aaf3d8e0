"""The adapter for the OpenAI Agents SDK: a `Runner`.

The SDK's own hooks only watch. So `Fairlead` runs a copy of the agent whose model, tools and handoffs run under hooks.
Each run has an `OpenAIRun`, which the copies find in a context variable. An agent that is run inside of a tool
(`agent.as_tool`, or `Runner.run` in a function) is a subagent: the SDK's default runner also sends it here.
"""

from __future__ import annotations

import asyncio
from asyncio import CancelledError
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

from agents import RunContextWrapper, RunResultStreaming, RunState
from agents.run import DEFAULT_MAX_TURNS, AgentRunner, get_default_agent_runner, set_default_agent_runner

from ....decision import Decision
from ....errors import FairleadError
from ....registry import Hooks
from ..adapter import Adapter
from ..flow import run_flow
from ..framework import WHOLE, Framework
from .agent import Guarded, guarded_agent
from .messages import id_of, part
from .run import OpenAIRun
from .tool_calls import CALL, RUN, run_of_thread

FRAMEWORK = Framework(
    name="openai_agents",
    title="OpenAI Agents SDK",
    package="openai-agents",
    versions=">=0.8,<0.25",
    can=WHOLE,
    notes=(
        "Tool hooks do not see tools that run at the provider (web search, hosted MCP, ...), nor ComputerTool.",
        "after_model lists them in usage['other_calls'].",
        "An ask at a handoff, a ShellTool, an ApplyPatchTool or a CustomTool goes to the hooks' approver only.",
        "At a handoff there is no initial message to change, and subagent_stop cannot extend.",
        "Read a RunState that was stored as a text with RunState.from_string(fairlead.agent(agent), text).",
    ),
)


class Fairlead(Adapter, AgentRunner):  # type: ignore[misc] # its `run_sync` calls our `run`
    """Runs agents under hooks, in place of the SDK's own runner: `Runner = Fairlead(hooks)`.

    `run`, `run_sync` and `run_streamed` have the same parameters and return values as in `agents.Runner`.

    - `models` names the models that a hook may switch to. Other names are left to the run's model provider.
    - Runs with a `session` or a `conversation_id` are requests of one session. `aclose()` and `async with` end it.
      Any other run is a session of its own.
    - `session_id` makes one session of all runs.
    """

    framework = FRAMEWORK

    def __init__(self, hooks: Hooks | None = None, **options: Any) -> None:
        super().__init__(hooks, **options)
        self.inner: Any = _without_hooks(get_default_agent_runner())

    async def run(self, starting_agent: Any, input: Any, **options: Any) -> Any:
        """`Runner.run`, under hooks."""
        run = self._open(input)
        inside = RUN.set(run)
        try:
            agent, changed, options = await run.begin(starting_agent, input, options)
            result = await self.beneath.run(agent, changed, **options)
            await run.finish(result)
            return result
        except BaseException as error:
            reported = await run.fail_with(error)
            if reported is error:
                raise
        finally:
            RUN.reset(inside)
            await run.leave()
        raise reported  # out here, because the SDK's error has it as its cause

    def run_streamed(self, starting_agent: Any, input: Any, **options: Any) -> Any:
        """`Runner.run_streamed`, under hooks."""
        return _Streamed(self, starting_agent, input, options)

    def agent(self, agent: Any) -> Any:
        """The copy of an agent that is under hooks, for `RunState.from_json` and `from_string`."""
        return guarded_agent(agent, {})

    def question(self, interruption: Any) -> Decision[Any] | None:
        """What a human is asked: the reason, and in the decision's step the arguments for the tool.

        The SDK shows the model's arguments, and no reason. None if no hook of this adapter asks.
        """
        call_id = id_of(interruption.raw_item)
        calls = (call for run in self.paused for call in run.calls if call.call_id == call_id and call.shown)
        return next((call.question for call in calls if call.raw == part(interruption.raw_item, "arguments")), None)

    # --- runs -------------------------------------------------------------------------------

    @property
    def beneath(self) -> Any:
        """The SDK's runner without hooks. From now on, the SDK sends subagents here."""
        default = get_default_agent_runner()
        if not isinstance(default, _Nested):  # another Fairlead may be set: it would run our subagents under its hooks
            set_default_agent_runner(_Nested(default))
        return _without_hooks(default)

    def _open(self, input: Any, *, streaming: bool = False) -> OpenAIRun:
        """The run for an input: a new one, or one that waited for an answer."""
        parent = RUN.get()
        parent = parent if parent is not None and parent.fairlead is self else None
        run = None
        if isinstance(input, RunState):
            if not isinstance(getattr(input, "_current_agent", None), Guarded):
                raise FairleadError(
                    "this RunState has no hooks: read it with RunState.from_string(fairlead.agent(agent), text)"
                )
            run = self._paused_run(input, 0 if parent is None else parent.depth + 1)
        if run is None:
            run = OpenAIRun(self, parent, streaming)
        else:
            del self.paused[run]
        call = CALL.get()
        run.streaming, run.parent = streaming, parent
        run.call = call if call is not None and parent is not None and call.turn is parent.turn else None
        return run

    def _paused_run(self, state: Any, depth: int) -> OpenAIRun | None:
        """The run whose question this state answers. Models may give the calls of several runs the same id."""
        questions = _questions(state.get_interruptions())
        ids = getattr(getattr(state, "_context", None), RUN_IDS, None)
        found = [run for run in self.paused if run.depth == depth and not run.questions.isdisjoint(questions)]
        if ids is not None:
            found = [run for run in found if run.id in ids]
        return found[0] if len(found) == 1 else None

    async def wait_for_human(self, run: OpenAIRun, result: Any) -> None:
        about = result.context_wrapper.__dict__
        about[RUN_IDS] = {run.id, *about.get(RUN_IDS, ())}
        run.questions = _questions(result.interruptions)
        await run_flow(self.pause(run, run))


RUN_IDS = "fairlead_run_ids"
"""The attribute of the SDK's context with the ids of paused runs. A state that was read from a text has none."""


def _questions(interruptions: list[Any]) -> set[tuple[str, str]]:
    """The calls that a human is asked about: their ids, and what they would do."""
    return {(id_of(item.raw_item), str(part(item.raw_item, "arguments"))) for item in interruptions}


def _without_hooks(runner: Any) -> Any:
    while isinstance(runner, Fairlead | _Nested):
        runner = runner.inner
    return runner


class _Nested:
    """The SDK's default runner, once an agent has run under hooks: its subagents run under hooks, too."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    @contextmanager
    def _runner(self) -> Iterator[Any]:
        """The runner for this place, within the run that it belongs to."""
        run, call, found = RUN.get(), None, None
        if run is None and (found := run_of_thread()) is not None:
            run, call = found
        if run is None:
            yield self.inner
        elif found is None or isinstance(run, Fairlead):
            yield run if isinstance(run, Fairlead) else run.fairlead
        else:
            tokens = RUN.set(run), CALL.set(call)
            try:
                yield run.fairlead
            finally:
                RUN.reset(tokens[0])
                CALL.reset(tokens[1])

    async def run(self, starting_agent: Any, input: Any, **options: Any) -> Any:
        with self._runner() as runner:
            return await runner.run(starting_agent, input, **options)

    def run_sync(self, starting_agent: Any, input: Any, **options: Any) -> Any:
        with self._runner() as runner:
            return runner.run_sync(starting_agent, input, **options)

    def run_streamed(self, starting_agent: Any, input: Any, **options: Any) -> Any:
        with self._runner() as runner:
            return runner.run_streamed(starting_agent, input, **options)


# --- streams --------------------------------------------------------------------------------------


class _Streamed(RunResultStreaming):
    """A streamed run. The SDK makes its own result after hooks judged the input; this one then shares its state."""

    def __init__(self, fairlead: Fairlead, agent: Any, input: Any, options: dict[str, Any]) -> None:
        context = options.get("context")
        super().__init__(
            input=input if isinstance(input, (str, list)) else [], new_items=[], raw_responses=[], final_output=None,
            input_guardrail_results=[], output_guardrail_results=[], tool_input_guardrail_results=[],
            tool_output_guardrail_results=[], current_agent=agent, current_turn=0,
            context_wrapper=context if isinstance(context, RunContextWrapper) else RunContextWrapper(context),
            max_turns=options.get("max_turns", DEFAULT_MAX_TURNS), _current_agent_output_schema=None, trace=None,
        )  # fmt: skip
        stream = self.fairlead_stream = _Stream()
        stream.task = asyncio.get_running_loop().create_task(self._run_under_hooks(fairlead, agent, input, options))
        stream.task.add_done_callback(lambda _: stream.events.put_nowait(None))  # also if it never started

    async def _run_under_hooks(self, fairlead: Fairlead, agent: Any, input: Any, options: dict[str, Any]) -> None:
        stream = self.fairlead_stream
        run: OpenAIRun | None = None
        try:
            run = fairlead._open(input, streaming=True)
            RUN.set(run)
            agent, changed, options = await run.begin(agent, input, options)
            stream.inner = fairlead.beneath.run_streamed(agent, changed, **options)
            stream.inner.__dict__["fairlead_stream"] = stream
            self.__dict__ = stream.inner.__dict__
            async for event in stream.inner.stream_events():
                stream.events.put_nowait(event)
            if stream.cancelled and self.final_output is None and not self.interruptions:
                raise CancelledError
            await run.finish(self)
        except BaseException as error:
            stream.error = error if run is None else await run.fail_with(error)
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
            await asyncio.wait([stream.task])
            raise
        stream.events.put_nowait(None)  # for another reader
        if stream.error is not None and not isinstance(stream.error, CancelledError):
            raise stream.error

    def cancel(self, mode: Any = "immediate") -> None:
        stream = self.fairlead_stream
        stream.cancelled = True
        if stream.inner is None:
            stream.task.cancel()
        else:
            super().cancel(mode)


class _Stream:
    """The state of a streamed run."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[Any] = asyncio.Queue()
        self.task: Any = None
        self.inner: Any = None
        self.error: BaseException | None = None
        self.cancelled = False
