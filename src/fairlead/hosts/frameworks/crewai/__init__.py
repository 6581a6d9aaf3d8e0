"""The adapter for crewai: one function at each of its interception points.

`Fairlead` is what a user makes. The interception points can refuse and change a tool call, but they can only fail a
request to the model. So the adapter puts a `ModelPatch` around the model of an agent, right before it is called. Each
run of an agent has a `CrewaiRun`, and each of its tool calls a `CrewaiToolCall`.
"""

from __future__ import annotations

from asyncio import CancelledError
from contextvars import ContextVar
from typing import Any, Self
from weakref import WeakSet

from crewai import LLM
from crewai.hooks import HookAborted, InterceptionPoint

from ....errors import FairleadError, UnknownName
from ....registry import Hooks
from ....session import new_id
from ..adapter import Adapter
from ..flow import Flow, run_flow_sync
from ..framework import WHOLE, Framework
from .model_calls import ModelPatch
from .registration import close_points, open_points
from .run import CrewaiRun, agent_of, name_of, surely
from .tool_calls import BLOCKED, INSIDE, CrewaiToolCall, replace_stored_result

__all__ = ["FRAMEWORK", "Fairlead"]

FRAMEWORK = Framework(
    name="crewai",
    title="CrewAI",
    package="crewai",
    versions=">=1.15.19,<1.16",
    can=WHOLE,
    notes=(
        "A kickoff raises what hooks raise as the cause of crewai's own HookAborted.",
        "Hooks do not see requests to a model outside of an agent's loop (planning, memory, guardrails).",
    ),
)

OPEN: list[Fairlead] = []
"""Those in force."""
EXECUTOR: ContextVar[Any] = ContextVar("fairlead_crewai_executor", default=None)
"""The executor that is about to call its model."""


class MarkedCopy:
    """Replaces `copy` of a crew or an agent that `only` names. Copies that Python itself makes have it, too."""

    def __init__(self, fairlead: Fairlead, original: Any) -> None:
        self.fairlead, self.original = fairlead, original

    def __call__(self) -> Any:
        made = type(self.original).copy(self.original)
        self.fairlead.copied(made)
        return made


def _is_marked(one: Any, fairlead: Fairlead) -> bool:
    mark = getattr(one, "__dict__", {}).get("copy")
    return isinstance(mark, MarkedCopy) and mark.fairlead is fairlead


class Fairlead(Adapter):
    """Runs crews and agents under hooks: `with Fairlead(hooks): crew.kickoff()`, or `Fairlead(hooks)` at the start.

    It is in force in the whole process from the moment it is made until `close()`. With `only`, it is in force for
    these crews and agents, their copies and their subagents.

    - `models` names the models that a hook may switch to. Other names go to `crewai.LLM`.
    - One kickoff is one session, and each of its tasks is a request. `kickoff(inputs={"session_id": ...})` continues a
      session, which `close()` then ends.
    - `session_id` makes one session of all kickoffs.
    """

    framework = FRAMEWORK

    def __init__(self, hooks: Hooks | None = None, *, only: Any = (), **options: Any) -> None:
        super().__init__(hooks, **options)
        self.is_open = False
        self._only: list[Any] = [only] if hasattr(only, "key") else list(only)
        self._originals = len(self._only)  # the rest are copies that crewai has made of them
        self._sessions: dict[Any, tuple[str | None, bool]] = {}  # by kickoff; True if it ends with it
        self._live: dict[int, CrewaiRun] = {}  # by executor
        self._calls: dict[int, CrewaiToolCall] = {}  # by the id of the arguments, which crewai does not copy
        self._patches: WeakSet[ModelPatch] = WeakSet()
        self._points = {
            InterceptionPoint.EXECUTION_START: self._started,
            InterceptionPoint.EXECUTION_END: self._on_end,
            InterceptionPoint.POST_STEP: self._task_is_done,
            InterceptionPoint.PRE_MODEL_CALL: self._before_model,
            InterceptionPoint.PRE_TOOL_CALL: self._before_tool,
            InterceptionPoint.POST_TOOL_CALL: self._after_tool,
        }
        self.open()

    # --- being in force ---------------------------------------------------------------------

    def open(self) -> None:
        """Put the hooks in force. The constructor does it; it can be done again after `close()`."""
        if not self.is_open:
            self._refuse_second()
            self.is_open = True
            open_points(self._points)
            OPEN.append(self)
            for one in tuple(self._only):
                self.follow(one)

    def _refuse_second(self) -> None:
        """Two of them in force for the same agents would judge each call twice, by two policies."""
        for other in OPEN:
            mine, theirs = [id(one) for one in self._only], [id(one) for one in other._only]
            if not mine or not theirs or not {*mine}.isdisjoint(theirs):
                raise FairleadError(
                    "another Fairlead is in force for the same crews and agents; register all hooks with one Hooks, "
                    "close the other one, or give each its own `only`"
                )

    def closing(self) -> Flow[None]:
        if self.is_open:
            close_points(self._points)
            OPEN.remove(self)
            for one in self._only:
                if _is_marked(one, self):
                    del vars(one)["copy"]
            del self._only[self._originals :]
        self.is_open = False
        for patch in list(self._patches):
            patch.take_out()
        for run in list(self._live.values()):
            yield from run.fail(CancelledError())
        self._calls.clear()
        self._sessions.clear()
        yield from super().closing()

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
        return _is_marked(agent, self) or _is_marked(crew, self)

    def follow(self, original: Any) -> None:
        """Be in force for a crew or an agent, and for its copies. Another one that is made alike is no copy."""
        object.__setattr__(original, "copy", MarkedCopy(self, original))

    def copied(self, made: Any) -> None:
        """Be in force for a copy."""
        if self.is_open:
            self._only.append(made)
            self.follow(made)

    def _inside(self) -> CrewaiToolCall | None:
        return next((call for call in reversed(INSIDE.get()) if call.run.fairlead is self), None)

    # --- kickoffs ---------------------------------------------------------------------------

    def _started(self, ctx: Any) -> None:
        """A crew starts, or a flow. An agent that is run by itself is a flow."""
        known = (ctx.inputs or {}).get("session_id")
        own = known is None and self.session_id is None
        session_id = new_id("session") if own else None if known is None else str(known)
        self._sessions[_key_of(ctx)] = session_id, own

    def _on_end(self, ctx: Any) -> None:
        key = _key_of(ctx)
        session_id, own = self._sessions.pop(key, (None, False))
        with surely():
            try:
                for run in [run for run in list(self._live.values()) if run.key == key]:
                    text = None if ctx.output is None else str(getattr(ctx.output, "raw", ctx.output))
                    run_flow_sync(run.finish(text) if ctx.error is None else run.fail(ctx.error))
            finally:
                if own:
                    run_flow_sync(self.sessions.over(session_id, "exit" if ctx.error is None else "error"))

    def _task_is_done(self, ctx: Any) -> Any:
        """End the turn if a tool's result is the answer. Other turns have ended with the model's answer."""
        for run in [run for run in list(self._live.values()) if ctx.task is not None and run.task is ctx.task]:
            with surely(run):
                output = run_flow_sync(run.finish(ctx.payload.raw))
            if output.changed:
                return ctx.payload.model_copy(update={"raw": output.text or " ", "pydantic": None, "json_dict": None})
        return None

    # --- the model --------------------------------------------------------------------------

    def _before_model(self, ctx: Any) -> None:
        executor = ctx.executor
        with surely():
            if executor is None or not self._watches(ctx.agent, ctx.crew):
                return
            EXECUTOR.set(executor)
            llm = getattr(executor, "llm", None) or ctx.llm  # another hook may have put another model in the context
            patch = vars(llm).get("call")
            if not isinstance(patch, ModelPatch) or not patch.is_of(self, llm):
                for name in ("call", "acall"):
                    self._patches.add(ModelPatch(self, llm, name))

    def run_of_request(self, messages: Any) -> CrewaiRun | None:
        """The run that makes a request. None if no agent's loop makes it, or one without hooks."""
        executor = EXECUTOR.get()
        if executor is None or executor.messages is not messages:
            # When an agent has used up its iterations, crewai sends a copy of the messages.
            runs = (run for run in list(self._live.values()) if messages and isinstance(messages, list))
            return next((run for run in runs if run.first is messages[0]), None)
        if not self._watches(agent_of(executor), getattr(executor, "crew", None)):
            return None
        run = self._live.get(id(executor))
        if run is not None and executor.iterations == 0 and run.first is not messages[0]:  # crewai has started again
            run_flow_sync(run.fail(run.error or RuntimeError("the agent was started again")))
            run = None
        if run is None:
            run = self._live[id(executor)] = CrewaiRun(self, executor, self._inside())
        return run

    def session_of(self, run: CrewaiRun) -> str | None:
        return self._sessions.get(run.key, (None, False))[0]

    def model_named(self, name: str) -> Any:
        if name in self.models:
            return self.models[name]
        try:
            return LLM(model=name)
        except Exception as error:
            raise UnknownName("model", name, self.models) from error

    def forget(self, run: CrewaiRun) -> None:
        if self._live.get(id(run.executor)) is run:
            del self._live[id(run.executor)]

    # --- tools ------------------------------------------------------------------------------

    def _before_tool(self, ctx: Any) -> None:
        with surely():
            if not self._watches(ctx.agent, ctx.crew):
                return
            call = self._calls[id(ctx.tool_input)] = CrewaiToolCall(self._run_of(ctx), ctx)
        try:
            runs = not call.advance()
        except Exception as error:  # else crewai would run the tool; the request fails after it
            runs, call.failure = False, call.run.refuse(error)
        if runs and call.args != ctx.tool_input:
            if ctx.tool_input:
                ctx.tool_input.clear()
                ctx.tool_input.update(call.args)
            else:  # crewai would not read an empty dict again
                runs, call.is_ours = False, True
        INSIDE.set((*INSIDE.get(), call))
        if not runs:
            raise HookAborted("not run by crewai", "fairlead")

    def _after_tool(self, ctx: Any) -> str | None:
        call = self._calls.pop(id(ctx.tool_input), None)
        if call is None:
            return self._refused_elsewhere(ctx)
        try:
            if call.failure is not None:
                raise call.failure
            with surely(call.run):
                has_run = call.runs
                call.finish(ctx)
                text = call.result(ctx)
                if has_run and text is not None:
                    replace_stored_result(ctx, text)
                return text
        finally:
            INSIDE.set(tuple(other for other in INSIDE.get() if other is not call))

    def _refused_elsewhere(self, ctx: Any) -> str | None:
        """Report a call that a crewai hook has refused before ours ran. Gives what the model reads instead, if so."""
        if not self._watches(ctx.agent, ctx.crew) or not str(ctx.tool_result).startswith(BLOCKED):
            return None
        call = CrewaiToolCall(self._run_of(ctx), ctx, proposed="deny")
        with surely(call.run):
            if not call.advance():
                call.advance(error=PermissionError(ctx.tool_result))
        return call.outcome.text if call.outcome is not None and call.outcome.revised else None

    def _run_of(self, ctx: Any) -> CrewaiRun:
        runs = [run for run in list(self._live.values()) if agent_of(run.executor) is ctx.agent]
        for run in runs:
            if len(runs) == 1 or any(tool is ctx.tool for tool in run.executor.tools):
                return run
        run = CrewaiRun(self, None, self._inside())  # of an unknown loop; hooks judge the call, too
        run.turn = self.sessions.turn(agent=name_of(ctx.agent))
        return run

    def finish_inside(self, call: CrewaiToolCall, text: str) -> str | None:
        """End the agents that ran inside of a tool. Gives the last one's output, if hooks have changed it."""
        changed = None
        for run in [run for run in list(self._live.values()) if run.parent is call]:
            output = run_flow_sync(run.finish(text) if run.error is None else run.fail(run.error))
            if output is not None and output.changed:
                changed = output.text or ""
        return changed


def _key_of(ctx: Any) -> Any:
    return ctx.flow.flow_id if ctx.crew is None else id(ctx.crew)
