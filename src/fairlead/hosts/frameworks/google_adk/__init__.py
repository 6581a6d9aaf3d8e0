"""The adapter for Google's Agent Development Kit: a plugin.

ADK calls a plugin before and after a model or tool call, never around it. So the flow of such a call pauses where the
framework does its part (`RunNatively`), and resumes with the result in the next callback. What the framework cannot
do, such as calling the model again or calling another one, the plugin does itself.

`Fairlead` is what a user adds. An invocation has an `InvocationRuns`, and each agent in it an `AdkRun`.
"""

from __future__ import annotations

import functools
from asyncio import CancelledError
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any, TypeVar
from weakref import ref

from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from ....errors import FairleadError, HookAborted
from ....frozen import thaw
from ....lifecycle import AfterModel, Agent, BeforeOutput, BeforeTool
from ....registry import Hooks
from ....session import new_id
from ..adapter import Adapter
from ..flow import Flow, run_flow
from ..framework import WHOLE, Framework
from ..messages import as_text
from ..tool_call import ToolCall, ToolResult
from ..turn import ModelResult, rewritten
from .delegation import end_delegations
from .messages import block_of, calls_of, model_content, part_of, reply_of, text_of, with_text
from .model_calls import conclude, instruct, model_flow
from .run import (
    RUNNING,
    AdkRun,
    InvocationRuns,
    RunNatively,
    RunningTool,
    branch_of,
    cause_of,
    flow_of,
    invocation_of,
    key_of,
    start_run,
    streams,
)
from .tool_calls import (
    TRANSFER,
    Unanswered,
    call_of,
    finish,
    governed_tool,
    in_workflow,
    is_answer,
    is_delegated,
    is_governed,
    judge_answer,
    leaves_out_plugins,
    request_confirmation,
    requires_confirmation,
    response_of,
    seal,
)

C = TypeVar("C", bound=Callable[..., Awaitable[Any]])

FRAMEWORK = Framework(
    name="google_adk",
    title="Google ADK",
    package="google-adk",
    versions=">=1.22.1,<3",
    can=WHOLE,
    notes=(
        "The framework wraps what a plugin raises: an abort is the cause of a RuntimeError.",
        "Callbacks of the agent itself, and plugins after this one, run after the hooks.",
        "What a code executor or a tool of the model's provider runs is no tool call here.",
    ),
)

OUTPUT = ("after_model", "before_response", "before_output")
"""Events at which a hook may refuse or change an answer. If there is such a hook, the answer is not streamed live."""


def _guarded(callback: C) -> C:
    """Keep an invocation from continuing after a hook's error, which the framework may make a text of."""

    @functools.wraps(callback)
    async def guarded(self: Fairlead, **arguments: Any) -> Any:
        get = arguments.get
        context: Any = get("invocation_context") or get("callback_context") or get("tool_context")
        invocation_id = context.invocation_id
        runs = self._invocations.get(invocation_id)
        if runs is not None and runs.broken is not None:
            raise runs.broken
        try:
            return await callback(self, **arguments)
        except FairleadError as error:
            tool = RUNNING.get()
            if tool is not None and tool.plugin is self:
                tool.runs.broken = error
            runs = self._invocations.get(invocation_id)
            if runs is not None:
                runs.broken = error
                await run_flow(runs.fail(error))
            raise

    return guarded  # type: ignore[return-value]


class Fairlead(Adapter, BasePlugin):
    """Runs all agents of a runner under hooks: `InMemoryRunner(agent, plugins=[Fairlead(hooks)])`.

    It also works in the `plugins` of a `Runner` and of an `App`.

    - `models` names the models that a hook may switch to. Other names are looked up in ADK's registry.
    - Sessions are those of the runner. `await runner.close()`, `await fairlead.aclose()` and `async with` end them.
    - `session_id` makes one session of all runs.
    """

    framework = FRAMEWORK

    def __init__(self, hooks: Hooks | None = None, **options: Any) -> None:
        super().__init__(hooks, **options)
        BasePlugin.__init__(self, name="fairlead")
        self._about = {name: value for name, value in options.items() if name not in ("models", "session_id")}
        self._invocations: dict[str, InvocationRuns] = {}

    async def close(self) -> None:  # type: ignore[override]
        """End all sessions when a runner closes, except the runner inside of an agent tool: it has our plugin, too."""
        if RUNNING.get() is None:
            await self.aclose()

    def closing(self) -> Flow[None]:
        invocations, self._invocations = self._invocations, {}
        for runs in invocations.values():
            yield from runs.fail(runs.error or CancelledError())
        yield from super().closing()

    # --- an invocation ----------------------------------------------------------------------

    @_guarded
    async def on_user_message_callback(self, *, invocation_context: Any, user_message: Any) -> Any:
        return await self._receive(invocation_context, user_message)

    @_guarded
    async def before_run_callback(self, *, invocation_context: Any) -> Any:
        run = (await self._runs_of(invocation_context)).run
        if run.turn.over and not run.ended:
            await run.end_with(None)
        return model_content(run.shown) if run.ended else None

    @_guarded
    async def after_run_callback(self, *, invocation_context: Any) -> None:
        runs = self._invocations.get(invocation_context.invocation_id)
        if runs is None:
            return
        if runs.unanswered and not runs.nested:
            del self._invocations[invocation_context.invocation_id]
            await run_flow(self.pause(key_of(invocation_context), runs))
            return
        await runs.end()
        del self._invocations[invocation_context.invocation_id]

    async def on_run_error_callback(self, *, invocation_context: Any, error: Exception) -> None:
        runs = self._invocations.pop(invocation_context.invocation_id, None)
        if runs is not None:
            await run_flow(runs.fail(cause_of(error)))

    async def _runs_of(self, invocation: Any) -> InvocationRuns:
        """The runs of an invocation. It begins here if it is resumed without a message.

        It also begins here if an earlier plugin has changed the message: the session has it by now.
        """
        if invocation.invocation_id not in self._invocations:
            last = invocation.session.events[-1] if invocation.session.events else None
            if last is None or last.author != "user" or last.invocation_id != invocation.invocation_id:
                await self._receive(invocation, None)
            elif (changed := await self._receive(invocation, last.content)) is not None:
                last.content = changed
        return self._invocations[invocation.invocation_id]

    async def _receive(self, invocation: Any, message: Any) -> Any:
        key = key_of(invocation)
        if key in self.paused and message is not None and all(map(is_answer, message.parts or ())):
            runs = self._invocations[invocation.invocation_id] = self.paused.pop(key)
            runs.alive, runs.unanswered = ref(invocation), False
            if runs.run.ended and not runs.run.turn.over:  # the agent has answered while it waited
                runs.run.reopen()
            return None  # the turn continues with the answer
        return await self._start(invocation, message)

    async def _start(self, invocation: Any, message: Any) -> Any:
        """Begin an invocation. Gives the message that hooks put in place of the user's, if they do."""
        for key in [
            key for key, runs in self._invocations.items() if runs.alive() is None
        ]:  # some versions do not report a failure
            gone = self._invocations.pop(key)
            await run_flow(gone.fail(gone.error or CancelledError()))
        parts = list(message.parts or ()) if message is not None else []
        blocks = [block_of(part) for part in parts]
        original: Any = as_text(blocks) if all(block["type"] == "text" for block in blocks) else blocks
        agent = getattr(invocation, "agent", None)
        run = await self._first_run(invocation, getattr(agent, "name", "agent"), original)
        self._invocations[invocation.invocation_id] = InvocationRuns(invocation, run)
        changed = original if run.turn.parent is None else run.message
        if not run.ended:
            source = "continuation" if message is None or any(part.function_response for part in parts) else "user"
            changed = await run.begin(invocation, agent, changed, source)
        if run.turn.session.turn_id is None:  # it was refused: later turns must not read it, either
            changed = run.turn.end_message or "[Message rejected]"
        if message is None or changed == original:
            return None
        changed = changed if isinstance(changed, list) else [{"type": "text", "text": as_text(changed)}]
        return types.Content(role="user", parts=rewritten(parts, blocks, changed, part_of))

    async def _first_run(self, invocation: Any, name: str, message: Any) -> AdkRun:
        """The run of the invocation's own agent: a subagent, if a tool has started it."""
        tool = RUNNING.get()
        if tool is not None and tool.plugin is self:
            return await start_run(tool.run.turn, name, message)
        session, about = invocation.session, {"user_id": invocation.user_id, **self._about}
        return AdkRun(
            self.sessions.turn(
                self.session_id or session.id,
                key=self.session_id or key_of(invocation),
                agent=name,
                streaming=streams(invocation),
                **about,
            )
        )

    # --- agents -----------------------------------------------------------------------------

    @_guarded
    async def before_agent_callback(self, *, agent: Any, callback_context: Any) -> Any:
        invocation = invocation_of(callback_context)
        runs = await self._runs_of(invocation)
        branch = invocation.branch
        if not runs.by_agent and (runs.is_chat or agent.name == runs.root):
            runs.by_agent[agent.name, branch] = runs.run
            session = runs.run.turn.session
            if session.agent is None or session.agent.name != agent.name:  # the agent that ran last continues
                session.agent = Agent(new_id("agent"), agent.name)
        run = runs.by_agent.get((agent.name, branch))
        if run is None or run.ended:
            run = runs.by_agent.pop((agent.name, None), None)  # the work was handed over to it
        if run is None or run.ended:  # an agent of a workflow, or one that is a tool in the same invocation
            tool, above = RUNNING.get(), getattr(agent, "parent_agent", None)
            parent = tool.run if tool is not None else runs.run_of(getattr(above, "name", ""), None)
            message = tool.message if tool is not None else text_of(invocation.user_content)
            run = await start_run(parent.turn, agent.name, message)
        runs.by_agent[agent.name, branch] = run
        if not run.ended and run.turn.session.turn_id is None:
            await run.begin_subagent(invocation, agent)
        run.agent = agent
        return model_content(run.shown) if run.ended else None

    @_guarded
    async def after_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
        runs, run = await self._current(callback_context)
        if run is not runs.run and not runs.unanswered:
            await run.end_without_answer()

    async def _current(self, context: Any) -> tuple[InvocationRuns, AdkRun]:
        runs = self._invocations.get(context.invocation_id) or await self._runs_of(invocation_of(context))
        runs.error = None  # whatever failed, the invocation continues
        return runs, runs.run_of(context.agent_name, branch_of(context))

    # --- the model --------------------------------------------------------------------------

    @_guarded
    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> Any:
        runs, run = await self._current(callback_context)
        if run.ended:  # a text that was streamed before a tool call looked like the end
            run.reopen()
        run.agent = run.agent or invocation_of(callback_context).agent
        run.request, run.model, run.contents = llm_request, llm_request.model, list(llm_request.contents)
        judges, tools = BeforeTool in run.turn.subscribed_steps, llm_request.tools_dict
        for name, tool in list(tools.items()):
            if (judges or leaves_out_plugins(tool)) and not is_delegated(tool):
                tools[name] = governed_tool(self, tool)
        if callback_context.agent_name in run.prompts:
            instruct(llm_request, *run.prompts[callback_context.agent_name])
        run.holds = runs.streams and self.sessions.judges(*OUTPUT)
        run.natively, run.model_flow = not run.turn.passes(), None
        if not run.natively:
            return None
        run.model_flow = model_flow(self.models, run, callback_context)
        result: Any = await run_flow(run.model_flow)
        if isinstance(result, RunNatively):
            return None
        return await conclude(self.models, runs, run, callback_context, result)

    @_guarded
    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> Any:
        runs, run = await self._current(callback_context)
        if llm_response.partial:
            return LlmResponse(partial=True) if run.holds else None
        if run.model_flow is not None:
            flow, run.model_flow = run.model_flow, None
            result = await run_flow(flow, llm_response)
        elif AfterModel not in run.turn.subscribed_steps:
            result = ModelResult(llm_response)
        else:  # some versions give a streamed reply in several pieces
            after = await run_flow(run.turn.after_model(run.model, reply_of(llm_response)))
            if after is not None:
                result = ModelResult(llm_response, after.text)
            else:
                result = await run_flow(model_flow(self.models, run, callback_context))
        return await conclude(self.models, runs, run, callback_context, result, llm_response)

    @_guarded
    async def on_model_error_callback(self, *, callback_context: Any, llm_request: Any, error: Exception) -> None:
        runs, run = await self._current(callback_context)
        runs.error = error
        if run.model_flow is not None:
            flow, run.model_flow = run.model_flow, None
            try:
                await run_flow(flow, error=error)
            except Exception as raised:
                if raised is not error:
                    raise

    # --- what is shown ----------------------------------------------------------------------

    @_guarded
    async def on_event_callback(self, *, invocation_context: Any, event: Any) -> Any:
        """Have hooks judge an answer that no request to the model gave: another plugin or a callback did."""
        runs = self._invocations.get(invocation_context.invocation_id)
        answers = event.get_function_responses() if runs is not None and runs.calls else ()
        if runs is not None and any(runs.call_of(one.id) is not None for one in answers):
            return await end_delegations(runs, event)
        text = text_of(event.content)
        if runs is None or not text or event.partial or event.author == "user" or not event.is_final_response():
            return None
        run = runs.run_of(event.author, event.branch)
        if text == run.shown or calls_of(event.content):
            return None
        if not run.ended and hasattr(run.agent, "canonical_model"):
            await run.judge_turn_end()
            await run.end_with(text)
            shown = run.shown
        else:
            decision = await run_flow(run.turn.fire(BeforeOutput, content=text))
            if decision is None:
                return None
            shown = None if decision.denied else as_text(thaw(decision.step.content))
        if shown == text:
            return None
        return event.model_copy(update={"content": None if shown is None else with_text(shown, event).content})

    # --- tools ------------------------------------------------------------------------------

    @_guarded
    async def before_tool_callback(self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any) -> Any:
        runs, run = await self._current(tool_context)
        if is_delegated(tool) and tool_context.function_call_id in runs.calls:
            return None  # it was judged with the reply, and ends with the agent
        runs.seen.add(tool_context)
        requires = await requires_confirmation(tool, tool_args, tool_context)
        call = call_of(runs, run, tool, tool_args, tool_context, "ask" if requires else "allow")
        if leaves_out_plugins(tool) and not is_governed(tool):
            call.missing = f"the agent {tool.name!r} cannot run here: it leaves out plugins, and hooks would not see it"
        try:
            native = await call.judge_async()
        except Unanswered as waiting:
            runs.unanswered = True
            if in_workflow(tool_context):  # the framework asks by itself, about the arguments that it has then
                tool_args.clear()
                tool_args.update(call.args)
                seal(tool)
                RUNNING.set(RunningTool(self, runs, run, tool, tool_args, call))
                return None
            return request_confirmation(tool, tool_args, tool_context, waiting.decision)
        args, flow = call.args, None
        if not native or tool.name == TRANSFER:
            flow = call.finish()
            result: Any = await run_flow(flow)
            if isinstance(result, ToolResult):
                return response_of(result)
            args = result.args
        if tool.name == TRANSFER:
            why = await runs.hand_over(run, args.get("agent_name"))
            if why is not None and flow is not None:
                return response_of(await run_flow(flow, {"error": why}))
        if args != tool_args:
            tool_args.clear()  # a copy: the model's message keeps its own
            tool_args.update(args)
        if requires and tool_context.tool_confirmation is None:  # a hook has answered
            tool_context.tool_confirmation = ToolConfirmation(confirmed=True)
        call.began = monotonic() if flow is None else None
        runs.calls[tool_context] = call if flow is None else flow
        if not is_governed(tool):
            seal(tool)
        RUNNING.set(RunningTool(self, runs, run, tool, tool_args, call))
        return None

    @_guarded
    async def after_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, result: Any
    ) -> dict[str, Any] | None:
        runs, run = await self._current(tool_context)
        if is_delegated(tool):
            return None
        seen = tool_context in runs.seen
        runs.seen.discard(tool_context)
        if tool_context not in runs.calls:
            return None if seen else await judge_answer(runs, run, tool, tool_args, tool_context, result)
        call = runs.calls.pop(tool_context)
        RUNNING.set(None)
        actions, call_id = tool_context.actions, tool_context.function_call_id
        if call_id in actions.requested_tool_confirmations or call_id in actions.requested_auth_configs:
            runs.unanswered = True  # the tool itself asks, and the call is not over
            return None
        flow = await flow_of(call)
        if flow is None:
            if isinstance(call, ToolCall):
                call.record_native_end(result)
            return None
        outcome, again = await finish(flow, tool, tool_context, value=result)
        if again and outcome.error is not None and not outcome.replaced:
            raise outcome.error
        return response_of(outcome) if again or outcome.replaced else None

    @_guarded
    async def on_tool_error_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, error: Any
    ) -> dict[str, Any] | None:
        runs, run = await self._current(tool_context)
        runs.error = error
        runs.seen.add(tool_context)
        key, cause = tool_context if tool_context in runs.calls else tool_context.function_call_id, cause_of(error)
        call = runs.calls.pop(key, None)
        flow = await flow_of(call)
        RUNNING.set(None)
        if isinstance(call, ToolCall) and flow is None:  # no hook subscribes
            if isinstance(cause, HookAborted):
                raise cause
            call.record_native_end(error=error)
            return None
        if flow is None:  # some versions do not call us before a tool that does not exist
            flow = call_of(runs, run, tool, tool_args, tool_context).perform()
            outcome: Any = await run_flow(flow)
            if isinstance(outcome, ToolResult):
                return response_of(outcome)
        try:
            outcome, _ = await finish(flow, tool, tool_context, error=cause)
        except CancelledError:
            return None  # the framework continues with the cancellation
        return None if outcome.error is not None and not outcome.replaced else response_of(outcome)
