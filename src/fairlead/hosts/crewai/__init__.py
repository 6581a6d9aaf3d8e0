"""crewai: crews and agents that run under hooks, by one registration.

`Fairlead` is what a user makes. It registers one function at each interception point that matters. These can refuse and
change a tool call, but of a request to the model they can only make a failure: so the model of an agent gets a `Seam`
around its `call`, right before it is asked. Each run of an agent has a `Run`, and each of its tool calls a `Call`.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Self
from weakref import WeakSet

from crewai import LLM, BaseLLM
from crewai.hooks import HookAborted, InterceptionPoint, register_hook, unregister_hook

from ...errors import UnknownName
from ...registry import Hooks
from ...session import new_id
from ..framework import WHOLE, Framework
from ..turn import Runs
from ..work import Closes, Work, drive_sync
from .call import BLOCKED, INSIDE, Call, retell
from .run import Run, Seam, agent_of, name_of, surely

__all__ = ["FRAMEWORK", "Fairlead"]

FRAMEWORK = Framework(
    name="crewai",
    title="CrewAI",
    package="crewai",
    versions=">=1.15.19,<1.16",
    can=WHOLE,
    notes=(
        "What hooks raise leaves a kickoff as crewai's own HookAborted, with the cause in it.",
        "Requests to a model that no agent's loop makes (planning, memory, guardrails) are not seen.",
        "Hooks that are registered later than Fairlead see a tool call's arguments after it, and may change them.",
    ),
)

ASKING: ContextVar[Any] = ContextVar("fairlead_crewai_asking", default=None)
"""The executor that is about to ask its model."""


class Fairlead(Closes):
    """Runs crews and agents under hooks: `with Fairlead(hooks): crew.kickoff()`, or `Fairlead(hooks)` at the start.

    It is in force for all of the process from the moment it is made until `close()`, or for the crews and agents in
    `only`, their copies and their subagents. `models` are those that a hook may switch to, by name; other names are
    given to `crewai.LLM`. One kickoff is one session, each task in it a request; `kickoff(inputs={"session_id": ...})`
    goes on with a session, which then ends with `close()`, and `session_id` here makes one session of all.
    """

    def __init__(
        self,
        hooks: Hooks | None = None,
        *,
        only: Any = (),
        models: Mapping[str, BaseLLM] | None = None,
        session_id: str | None = None,
        **about: Any,
    ) -> None:
        self.runs = Runs(hooks, FRAMEWORK, asks=True, session_id=session_id, **about)
        self.models = dict(models or {})
        self.is_open = False
        self._only = [only] if hasattr(only, "key") else list(only)
        self._own_session = session_id is not None
        self._sessions: dict[Any, tuple[str | None, bool]] = {}  # by crew or flow: its id, and whether it ends with it
        self._live: dict[int, Run] = {}  # by executor
        self._calls: dict[int, Call] = {}  # by the arguments, which crewai hands around as they are
        self._seams: WeakSet[Seam] = WeakSet()
        self._points = {
            InterceptionPoint.EXECUTION_START: self._started,
            InterceptionPoint.EXECUTION_END: self._ended,
            InterceptionPoint.POST_STEP: self._task_is_done,
            InterceptionPoint.PRE_MODEL_CALL: self._before_model,
            InterceptionPoint.PRE_TOOL_CALL: self._before_tool,
            InterceptionPoint.POST_TOOL_CALL: self._after_tool,
        }
        self.open()

    # --- being in force ---------------------------------------------------------------------

    def open(self) -> None:
        """Be in force. It is from the beginning; and can be again, after `close()`."""
        if not self.is_open:
            self.is_open = True
            for point, hook in self._points.items():
                register_hook(point, hook)

    def _closing(self) -> Work[None]:
        if self.is_open:
            for point, hook in self._points.items():
                unregister_hook(point, hook)
        self.is_open = False
        for seam in list(self._seams):
            seam.take_out()
        for run in list(self._live.values()):
            yield from run.fail(CancelledError())
        self._calls.clear()
        self._sessions.clear()
        yield from self.runs.closing()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    def _watches(self, agent: Any, crew: Any) -> bool:
        if not self.is_open:
            return False
        if not self._only or self._inside() is not None:
            return True
        if any(one is agent or one is crew for one in self._only):
            return True
        keys = {one.key for one in self._only}  # which copies have, too; it changes with what a crew is made of
        return any(getattr(one, "key", None) in keys for one in (agent, crew))

    def _inside(self) -> Call | None:
        return next((call for call in reversed(INSIDE.get()) if call.run.fairlead is self), None)

    # --- kickoffs ---------------------------------------------------------------------------

    def _started(self, ctx: Any) -> None:
        """A crew begins, or a flow: an agent that is run by itself is a flow."""
        for agent in () if ctx.crew is None else (*ctx.crew.agents, ctx.crew.manager_agent):
            executor = getattr(agent, "agent_executor", None)  # of an earlier kickoff, with the hooks of that time
            if executor is not None and self._before_model not in executor.before_llm_call_hooks:
                executor.before_llm_call_hooks.append(self._before_model)
        given = (ctx.inputs or {}).get("session_id")
        own = given is None and not self._own_session
        session_id = new_id("session") if own else None if given is None else str(given)
        self._sessions[_key_of(ctx)] = session_id, own

    def _ended(self, ctx: Any) -> None:
        key = _key_of(ctx)
        session_id, own = self._sessions.pop(key, (None, False))
        with surely():
            try:
                for run in [run for run in list(self._live.values()) if run.key == key]:
                    text = None if ctx.output is None else str(getattr(ctx.output, "raw", ctx.output))
                    drive_sync(run.finish(text) if ctx.error is None else run.fail(ctx.error))
            finally:
                if own:
                    drive_sync(self.runs.over(session_id, "exit" if ctx.error is None else "error"))

    def _task_is_done(self, ctx: Any) -> Any:
        """Most turns ended when the model gave its answer. Not if a tool's result is the answer."""
        for run in [run for run in list(self._live.values()) if ctx.task is not None and run.task is ctx.task]:
            with surely(run):
                ended = drive_sync(run.finish(ctx.payload.raw))
            if ended.changed:
                return ctx.payload.model_copy(update={"raw": ended.text or " ", "pydantic": None, "json_dict": None})
        return None

    # --- the model --------------------------------------------------------------------------

    def _before_model(self, ctx: Any) -> None:
        executor = ctx.executor
        with surely():
            if executor is None or not self._watches(ctx.agent, ctx.crew):
                return
            ASKING.set(executor)
            seam = vars(ctx.llm).get("call")
            if not isinstance(seam, Seam) or not seam.is_of(self, ctx.llm):
                for name in ("call", "acall"):
                    self._seams.add(Seam(self, ctx.llm, name))

    def run_that_asks(self, messages: Any) -> Run | None:
        """Whose request this is. None if no agent's loop makes it, or none that is watched."""
        executor = ASKING.get()
        if executor is None or executor.messages is not messages:
            # What crewai asks for when an agent has used up its iterations goes by another way, with a copy.
            runs = (run for run in list(self._live.values()) if messages and isinstance(messages, list))
            return next((run for run in runs if run.first is messages[0]), None)
        if not self._watches(agent_of(executor), getattr(executor, "crew", None)):
            return None
        run = self._live.get(id(executor))
        if run is not None and executor.iterations == 0 and run.first is not messages[0]:  # crewai has begun again
            drive_sync(run.fail(run.error or RuntimeError("the agent was started again")))
            run = None
        if run is None:
            run = self._live[id(executor)] = Run(self, executor, self._inside())
        return run

    def session_of(self, run: Run) -> str | None:
        return self._sessions.get(run.key, (None, False))[0]

    def model_named(self, name: str) -> Any:
        if name in self.models:
            return self.models[name]
        try:
            return LLM(model=name)
        except Exception as error:
            raise UnknownName("model", name, self.models) from error

    def forget(self, run: Run) -> None:
        if self._live.get(id(run.executor)) is run:
            del self._live[id(run.executor)]

    # --- tools ------------------------------------------------------------------------------

    def _before_tool(self, ctx: Any) -> None:
        with surely():
            if not self._watches(ctx.agent, ctx.crew):
                return
            call = self._calls[id(ctx.tool_input)] = Call(self._run_of(ctx), ctx)
        try:
            runs = not call.go()
        except Exception as error:  # crewai would run the tool; it fails the request when it is over
            runs, call.failure = False, call.run.refuse(error)
        if runs and call.args != ctx.tool_input:
            if ctx.tool_input:
                ctx.tool_input.clear()
                ctx.tool_input.update(call.args)
            else:  # which crewai would not look at again
                runs, call.is_ours = False, True
        INSIDE.set((*INSIDE.get(), call))
        if not runs:
            raise HookAborted("not run by crewai", "fairlead")

    def _after_tool(self, ctx: Any) -> str | None:
        call = self._calls.pop(id(ctx.tool_input), None)
        if call is None:
            self._refused_elsewhere(ctx)
            return None
        try:
            if call.failure is not None:
                raise call.failure
            with surely(call.run):
                has_run = call.runs
                call.come_back(ctx)
                text = call.result(ctx)
                if has_run and text is not None:
                    retell(ctx, text)
                return text
        finally:
            INSIDE.set(tuple(other for other in INSIDE.get() if other is not call))

    def _refused_elsewhere(self, ctx: Any) -> None:
        """Another hook, registered earlier, has refused the call: ours hear of it all the same."""
        if not self._watches(ctx.agent, ctx.crew) or not str(ctx.tool_result).startswith(BLOCKED):
            return
        call = Call(self._run_of(ctx), ctx, proposed="deny")
        with surely(call.run):
            if not call.go():
                call.go(error=PermissionError(ctx.tool_result))

    def _run_of(self, ctx: Any) -> Run:
        runs = [run for run in list(self._live.values()) if agent_of(run.executor) is ctx.agent]
        for run in runs:
            if len(runs) == 1 or any(tool is ctx.tool for tool in run.executor.tools):
                return run
        run = Run(self, None, self._inside())  # no loop that we know of; the call is judged all the same
        run.turn = self.runs.turn(agent=name_of(ctx.agent))
        return run

    def finish_inside(self, call: Call, text: str) -> str | None:
        """Agents that ran inside of a tool are done. What the last of them has to say instead of this, if anything."""
        said = None
        for run in [run for run in list(self._live.values()) if run.parent is call]:
            ended = drive_sync(run.finish(text) if run.error is None else run.fail(run.error))
            if ended is not None and ended.changed:
                said = ended.text or ""
        return said


def _key_of(ctx: Any) -> Any:
    return ctx.flow.flow_id if ctx.crew is None else id(ctx.crew)
