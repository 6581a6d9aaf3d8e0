"""Google's Agent Development Kit: agents that run under hooks, by one plugin.

A plugin is called before and after things, and never around them. So the work of a turn, which goes around a request
to the model and around a tool call, stops where the framework does its part (`Native`), and goes on with what came of
it in the callback that follows (`advance`). What the framework does not do, asking a model again or asking another
one, the plugin does itself.

`Fairlead` is what a user adds; an invocation is a `Run`, and each agent that works in it has a `Line`.
"""

from __future__ import annotations

import functools
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic
from typing import Any, Self, TypeVar
from weakref import ref

from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from ...errors import FairleadError, HookAborted
from ...frozen import thaw
from ...lifecycle import AfterModel, Agent, BeforeOutput
from ...registry import Hooks
from ...session import new_id
from ..framework import WHOLE, Framework
from ..model import as_text
from ..tool_call import Called, ToolCall
from ..turn import SESSIONS, Asked, Runs, rewritten
from ..work import drive
from .asking import answered, ask, instruct
from .delegating import delegated
from .messages import block_of, calls_of, model_content, part_of, reply_of, saying, text_of
from .run import (
    CALLING,
    Calling,
    Line,
    Native,
    Run,
    advance,
    branch_of,
    cause_of,
    helper_of,
    invocation_of,
    key_of,
    streams,
    under_way,
)
from .tools import (
    TRANSFER,
    Unanswered,
    call_of,
    finish,
    is_answer,
    is_delegated,
    request_confirmation,
    requires_confirmation,
    response_of,
)

C = TypeVar("C", bound=Callable[..., Awaitable[Any]])

FRAMEWORK = Framework(
    name="google_adk",
    title="Google ADK",
    package="google-adk",
    versions=">=1.22.1,<3",
    can=WHOLE,
    notes=(
        "An abort leaves a run as the cause of the RuntimeError that the framework makes of what a plugin raises.",
        "Callbacks of the agent itself, and plugins that stand after this one, come after the hooks.",
        "What a code executor or a tool of the model's provider runs is no tool call here.",
    ),
)

OUTPUT = ("after_model", "before_response", "before_output")
"""Where a hook may change what the user reads: then nothing of a stream is shown before it has spoken."""


def _kept(callback: C) -> C:
    """What the hooks have ended stays ended, also where the framework makes a text of what a subagent raises."""

    @functools.wraps(callback)
    async def kept(self: Fairlead, **given: Any) -> Any:
        about: Any = given.get("invocation_context") or given.get("callback_context") or given.get("tool_context")
        run = self._runs.get(about.invocation_id)
        if run is not None and run.broken is not None:
            raise run.broken
        try:
            return await callback(self, **given)
        except FairleadError as error:
            call = CALLING.get()
            if call is not None and call.plugin is self:
                call.run.broken = error
            run = self._runs.get(about.invocation_id)
            if run is not None:
                run.broken = error
                await run.fail(error)
            raise

    return kept  # type: ignore[return-value]


class Fairlead(BasePlugin):
    """Runs all agents of a runner under hooks: `InMemoryRunner(agent, plugins=[Fairlead(hooks)])`.

    The same goes for the `plugins` of a `Runner` and of an `App`. `models` are those that a hook may switch to, by
    name; others are looked up in ADK's registry. Sessions are those of the runner; they end with `await
    runner.close()`, with `await fairlead.aclose()`, or at the end of `async with`.
    """

    def __init__(
        self,
        hooks: Hooks | None = None,
        *,
        models: Mapping[str, Any] | None = None,
        session_id: str | None = None,
        **about: Any,
    ) -> None:
        super().__init__(name="fairlead")
        self._sessions = Runs(hooks, FRAMEWORK, asks=True, **about)
        self._about, self._session_id = about, session_id
        self._models = dict(models or {})
        self._runs: dict[str, Run] = {}
        self._waiting: dict[Any, Run] = {}  # for a human's answer, by session

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def close(self) -> None:
        """What a runner calls when it is closed. The one inside of an agent tool ends nothing: it has our plugin."""
        if CALLING.get() is None:
            await self.aclose()

    async def aclose(self) -> None:
        """End all sessions."""
        left = [*self._runs.values(), *self._waiting.values()]
        self._runs, self._waiting = {}, {}
        for run in left:
            await run.fail(run.error or CancelledError())
        await drive(self._sessions.closing())

    # --- an invocation ----------------------------------------------------------------------

    @_kept
    async def on_user_message_callback(self, *, invocation_context: Any, user_message: Any) -> Any:
        return await self._told(invocation_context, user_message)

    @_kept
    async def before_run_callback(self, *, invocation_context: Any) -> Any:
        line = (await self._run(invocation_context)).line
        if line.turn.over and not line.ended:
            await line.end(None)
        return model_content(line.shown) if line.ended else None

    @_kept
    async def after_run_callback(self, *, invocation_context: Any) -> None:
        run = self._runs.get(invocation_context.invocation_id)
        if run is None:
            return
        if run.unanswered and not run.nested:
            del self._runs[invocation_context.invocation_id]
            await self._wait(key_of(invocation_context), run)
            return
        await run.end()
        del self._runs[invocation_context.invocation_id]

    async def on_run_error_callback(self, *, invocation_context: Any, error: Exception) -> None:
        run = self._runs.pop(invocation_context.invocation_id, None)
        if run is not None:
            await run.fail(cause_of(error))

    async def _run(self, invocation: Any) -> Run:
        """The run, which has begun by now: also one that is resumed without a message.

        If a plugin that stands before this one has changed the message, it is seen only now, in the session.
        """
        if invocation.invocation_id not in self._runs:
            last = invocation.session.events[-1] if invocation.session.events else None
            if last is None or last.author != "user" or last.invocation_id != invocation.invocation_id:
                await self._told(invocation, None)
            elif (wanted := await self._told(invocation, last.content)) is not None:
                last.content = wanted
        return self._runs[invocation.invocation_id]

    async def _told(self, invocation: Any, message: Any) -> Any:
        key = key_of(invocation)
        if key in self._waiting and message is not None and all(map(is_answer, message.parts or ())):
            run = self._runs[invocation.invocation_id] = self._waiting.pop(key)
            run.alive, run.unanswered = ref(invocation), False
            if run.line.ended and not run.line.turn.over:  # the agent has said something while it waited
                run.line.turn.reopen()
                run.line.ended = False
            return None  # the turn goes on, with the answer
        return await self._start(invocation, message)

    async def _start(self, invocation: Any, message: Any) -> Any:
        """A run begins. Gives what the user is taken to have said, if that is something else."""
        for key in [key for key, run in self._runs.items() if run.alive() is None]:  # some versions tell of no failure
            gone = self._runs.pop(key)
            await gone.fail(gone.error or CancelledError())
        parts = list(message.parts or ()) if message is not None else []
        blocks = [block_of(part) for part in parts]
        given: Any = as_text(blocks) if all(block["type"] == "text" for block in blocks) else blocks
        agent = getattr(invocation, "agent", None)
        line = await self._first_line(invocation, getattr(agent, "name", "agent"), given)
        self._runs[invocation.invocation_id] = Run(invocation, line)
        wanted = given if line.parent is None else line.wanted
        if not line.ended:
            source = "continuation" if message is None or any(part.function_response for part in parts) else "user"
            wanted = await line.begin(invocation, agent, wanted, source)
        if line.turn.session.turn_id is None:  # it was refused, and is not to be read in later turns, either
            wanted = line.turn.said or "[Message rejected]"
        if message is None or wanted == given:
            return None
        wanted = wanted if isinstance(wanted, list) else [{"type": "text", "text": as_text(wanted)}]
        return types.Content(role="user", parts=rewritten(parts, blocks, wanted, part_of))

    async def _first_line(self, invocation: Any, name: str, given: Any) -> Line:
        """The agent that an invocation is of: a helper, if a tool has started it."""
        call = CALLING.get()
        if call is not None and call.plugin is self:
            return await helper_of(call.line.turn, name, given)
        session, about = invocation.session, {"user_id": invocation.user_id, **self._about}
        return Line(
            self._sessions.turn(
                self._session_id or session.id,
                key=self._session_id or key_of(invocation),
                agent=name,
                streaming=streams(invocation),
                **about,
            )
        )

    async def _wait(self, key: Any, run: Run) -> None:
        """A run stops until a human has answered. Those for which there is no room are given up."""
        forgotten = [self._waiting.pop(key)] if key in self._waiting else []
        self._waiting[key] = run
        if len(self._waiting) > SESSIONS:
            forgotten.append(self._waiting.pop(next(iter(self._waiting))))
        for gone in forgotten:
            await gone.fail(CancelledError())

    # --- agents -----------------------------------------------------------------------------

    @_kept
    async def before_agent_callback(self, *, agent: Any, callback_context: Any) -> Any:
        invocation = invocation_of(callback_context)
        run = await self._run(invocation)
        branch = invocation.branch
        if not run.lines and (run.is_chat or agent.name == run.root):
            run.lines[agent.name, branch] = run.line
            session = run.line.turn.session
            if session.agent is None or session.agent.name != agent.name:  # the one that was last at work goes on
                session.agent = Agent(new_id("agent"), agent.name)
        line = run.lines.get((agent.name, branch))
        if line is None or line.ended:
            line = run.lines.pop((agent.name, None), None)  # the work was handed over to it
        if line is None or line.ended:  # an agent of a workflow, or one that is a tool in the same invocation
            call, above = CALLING.get(), getattr(agent, "parent_agent", None)
            parent = call.line if call is not None else run.line_of(getattr(above, "name", ""), None)
            given = call.message if call is not None else text_of(invocation.user_content)
            line = await helper_of(parent.turn, agent.name, given)
        run.lines[agent.name, branch] = line
        if not line.ended and line.turn.session.turn_id is None:
            await line.begin_helper(invocation, agent)
        line.agent = agent
        return model_content(line.shown) if line.ended else None

    @_kept
    async def after_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
        run, line = await self._line(callback_context)
        if line is not run.line and not run.unanswered:
            await line.end_quietly()

    async def _line(self, context: Any) -> tuple[Run, Line]:
        run = self._runs.get(context.invocation_id) or await self._run(invocation_of(context))
        run.error = None  # whatever went wrong, it goes on
        return run, run.line_of(context.agent_name, branch_of(context))

    # --- the model --------------------------------------------------------------------------

    @_kept
    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> Any:
        run, line = await self._line(callback_context)
        if line.ended:  # a text that was streamed before a tool call looked like the end
            line.turn.reopen()
            line.ended = False
        line.agent = line.agent or invocation_of(callback_context).agent
        line.request, line.model, line.contents = llm_request, llm_request.model, list(llm_request.contents)
        if callback_context.agent_name in line.prompts:
            instruct(llm_request, *line.prompts[callback_context.agent_name])
        line.holds = run.streams and self._sessions.judges(*OUTPUT)
        line.natively, line.asking = not line.turn.passes(), None
        if not line.natively:
            return None
        line.asking = ask(self._models, line, callback_context)
        came = await advance(line.asking)
        return None if isinstance(came, Native) else await answered(self._models, run, line, callback_context, came)

    @_kept
    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> Any:
        run, line = await self._line(callback_context)
        if llm_response.partial:
            return LlmResponse(partial=True) if line.holds else None
        if line.asking is not None:
            asking, line.asking = line.asking, None
            came = await advance(asking, llm_response)
        elif AfterModel not in line.turn.heard:
            came = Asked(llm_response)
        else:  # some versions give a streamed reply in several pieces
            after = await drive(line.turn.after_model(line.model, reply_of(llm_response)))
            came = Asked(llm_response, after.text) if after else await drive(ask(self._models, line, callback_context))
        return await answered(self._models, run, line, callback_context, came, llm_response)

    @_kept
    async def on_model_error_callback(self, *, callback_context: Any, llm_request: Any, error: Exception) -> None:
        run, line = await self._line(callback_context)
        run.error = error
        if line.asking is not None:
            asking, line.asking = line.asking, None
            try:
                await advance(asking, error=error)
            except Exception as raised:
                if raised is not error:
                    raise

    # --- what is shown ----------------------------------------------------------------------

    @_kept
    async def on_event_callback(self, *, invocation_context: Any, event: Any) -> Any:
        """What is shown has been judged by now. If it has not, because others had it said, that is made up for."""
        run = self._runs.get(invocation_context.invocation_id)
        answers = event.get_function_responses() if run is not None and run.calls else ()
        if run is not None and any(run.call_of(one.id) is not None for one in answers):
            return await delegated(run, event)
        text = text_of(event.content)
        if run is None or not text or event.partial or event.author == "user" or not event.is_final_response():
            return None
        line = run.line_of(event.author, event.branch)
        if text == line.shown or calls_of(event.content):
            return None
        if not line.ended and hasattr(line.agent, "canonical_model"):
            await line.ending()
            await line.end(text)
            shown = line.shown
        else:
            decision = await drive(line.turn.fire(BeforeOutput, content=text))
            if decision is None:
                return None
            shown = None if decision.denied else as_text(thaw(decision.step.content))
        if shown == text:
            return None
        return event.model_copy(update={"content": None if shown is None else saying(shown, event).content})

    # --- tools ------------------------------------------------------------------------------

    @_kept
    async def before_tool_callback(self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any) -> Any:
        run, line = await self._line(tool_context)
        if is_delegated(tool) and tool_context.function_call_id in run.calls:
            return None  # it was judged with the reply, and ends with the agent
        requires = await requires_confirmation(tool, tool_args, tool_context)
        call = call_of(run, line, tool, tool_args, tool_context, "ask" if requires else "allow")
        try:
            free = await call.judged()
        except Unanswered as waiting:
            run.unanswered = True
            return request_confirmation(tool, tool_args, tool_context, waiting.asking)
        args, work = call.args, None
        if not free or tool.name == TRANSFER:
            work = call.finish()
            came = await advance(work)
            if isinstance(came, Called):
                return response_of(came)
            args = came.args
        if tool.name == TRANSFER:
            why = await run.hand_over(line, args.get("agent_name"))
            if why is not None and work is not None:
                return response_of(await advance(work, {"error": why}))
        if args != tool_args:
            tool_args.clear()  # a copy: what the model gave stands in its message
            tool_args.update(args)
        if requires and tool_context.tool_confirmation is None:  # a hook has answered
            tool_context.tool_confirmation = ToolConfirmation(confirmed=True)
        call.began = monotonic() if work is None else None
        run.calls[tool_context] = call if work is None else work
        CALLING.set(Calling(self, run, line, tool_args))
        return None

    @_kept
    async def after_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, result: Any
    ) -> dict[str, Any] | None:
        run, _ = await self._line(tool_context)
        if is_delegated(tool) or tool_context not in run.calls:
            return None
        call = run.calls.pop(tool_context)
        CALLING.set(None)
        actions, call_id = tool_context.actions, tool_context.function_call_id
        if call_id in actions.requested_tool_confirmations or call_id in actions.requested_auth_configs:
            run.unanswered = True  # the tool itself asks, and the call is not over
            return None
        work = await under_way(call)
        if work is None:
            if isinstance(call, ToolCall):
                call.passed(result)
            return None
        called, again = await finish(work, tool, tool_context, value=result)
        if again and called.error is not None and not called.replaced:
            raise called.error
        return response_of(called) if again or called.replaced else None

    @_kept
    async def on_tool_error_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, error: Any
    ) -> dict[str, Any] | None:
        run, line = await self._line(tool_context)
        run.error = error
        key, cause = tool_context if tool_context in run.calls else tool_context.function_call_id, cause_of(error)
        call = run.calls.pop(key, None)
        work = await under_way(call)
        CALLING.set(None)
        if isinstance(call, ToolCall) and work is None:  # nobody listens
            if isinstance(cause, HookAborted):
                raise cause
            call.passed(error=error)
            return None
        if work is None:  # some versions do not ask about a tool that does not exist
            work = call_of(run, line, tool, tool_args, tool_context).work()
            came = await advance(work)
            if isinstance(came, Called):
                return response_of(came)
        try:
            called, _ = await finish(work, tool, tool_context, error=cause)
        except CancelledError:
            return None  # which the framework goes on with
        return None if called.error is not None and not called.replaced else response_of(called)
