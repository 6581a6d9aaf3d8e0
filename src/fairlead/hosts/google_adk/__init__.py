"""Google's Agent Development Kit: agents that run under hooks, by one plugin.

A plugin is called before and after things, and never around them. So the work of a turn, which goes around a request
to the model and around a tool call, stops where the framework does its part (`_Native`), and goes on with what came of
it in the callback that follows (`_advance`). What the framework does not do, asking a model again or asking another
one, the plugin does itself.

`Fairlead` is what a user adds; an invocation is a `_Run`, and each agent that works in it has a `_Line`.
"""

from __future__ import annotations

import functools
import inspect
import re
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, NamedTuple, Self, TypeVar
from weakref import ref

import msgspec
from google.adk.agents.readonly_context import ReadonlyContext
from google.adk.agents.run_config import StreamingMode
from google.adk.events.event import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.models.registry import LLMRegistry
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from ...approvals import Approval
from ...decision import Context, Decision
from ...errors import FairleadError, HookAborted, UnknownName
from ...frozen import thaw
from ...lifecycle import AfterModel, Agent, BeforeModel, BeforeOutput
from ...registry import Hooks
from ...session import new_id
from ..framework import WHOLE, Framework
from ..model import Message, as_text
from ..tool_call import Called, ToolCall
from ..turn import SESSIONS, Asked, Asking, Runs, Turn, rewritten
from ..work import Work, drive
from .messages import (
    block_of,
    calls_of,
    content_of,
    joined,
    message_of,
    model_content,
    output_of,
    part_of,
    reply_of,
    saying,
    text_of,
    units_of,
    user_content,
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

TRANSFER = "transfer_to_agent"
OUTPUT = ("after_model", "before_response", "before_output")
"""Where a hook may change what the user reads: then nothing of a stream is shown before it has spoken."""
_calling: ContextVar[_Calling | None] = ContextVar("fairlead_google_adk_call", default=None)
"""The tool call that runs here: an agent that starts inside of it is its helper."""


class _Native(NamedTuple):
    """Here the framework does its part: it asks the model, or runs the tool, with these arguments."""

    args: dict[str, Any]


class _Calling(NamedTuple):
    """A tool call that runs."""

    plugin: Fairlead
    run: _Run
    line: _Line
    args: dict[str, Any]

    @property
    def message(self) -> str:
        """What an agent is asked, if the tool is one."""
        return as_text(self.args.get("request", self.args))


class _Unanswered(BaseException):
    """A human is asked by the framework's own means; the call goes on when the answer is there."""

    def __init__(self, asking: Decision[Any] | None) -> None:
        self.asking = asking


class _Line:
    """An agent at work, or several that hand the work over: the turn, and the request to the model under way."""

    def __init__(self, turn: Turn, parent: Turn | None = None) -> None:
        self.turn, self.parent = turn, parent
        self.agent: Any = None
        self.given: Any = None  # what a helper is asked, and what it is asked instead
        self.wanted: Any = None
        self.ended = False
        self.shown: str | None = None  # the answer that the hooks have judged
        self.prompts: dict[str, tuple[str, str]] = {}  # by agent: its instruction, and what it is to be instead
        self.request = LlmRequest()
        self.model: str | None = None
        self.contents: list[types.Content] = []  # of the request, as the framework made it
        self.asking: Work[Asked] | None = None
        self.natively = self.holds = False


class _Run:
    """An invocation: the agents at work in it, and the calls that are not over."""

    def __init__(self, invocation: Any, line: _Line) -> None:
        root = getattr(invocation, "agent", None)
        self.alive = ref(invocation)
        self.line = line
        self.lines: dict[tuple[str, str | None], _Line] = {}  # by agent and branch: one agent may work twice at once
        self.root = getattr(root, "name", None)
        self.is_chat = hasattr(root, "canonical_model")  # no workflow, in which each agent has an answer of its own
        self.streams = _streams(invocation)
        self.calls: dict[Any, Work[Called] | None] = {}  # by context, as ids may recur; those of delegations by id
        self.unanswered = False
        self.broken: FairleadError | None = None
        self.error: BaseException | None = None

    def line_of(self, name: str, branch: str | None) -> _Line:
        return self.lines.get((name, branch)) or self.lines.get((name, None)) or self.line

    def call_of(self, call_id: str | None) -> Any:
        """The key in `calls` of a call that is not over."""
        keys = (key for key in self.calls if getattr(key, "function_call_id", key) == call_id)
        return next(keys, None)

    @property
    def nested(self) -> bool:
        """Whether it runs inside a tool of another, where nobody can answer a question."""
        return self.line.parent is not None


async def _advance(work: Work[Any], value: Any = None, error: BaseException | None = None) -> Any:
    """Go on with some work, to its end or to where the framework does its part: then this gives a `_Native`."""
    while True:
        try:
            wanted = work.send(value) if error is None else work.throw(error)
        except StopIteration as end:
            return end.value
        value = error = None
        try:
            value = await wanted[0].dispatch(wanted[1]) if isinstance(wanted, tuple) else wanted()
            if inspect.isawaitable(value):
                value = await value
            if isinstance(value, _Native):
                return value
        except BaseException as raised:  # the work decides what becomes of it
            error = raised


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
            call = _calling.get()
            if call is not None and call.plugin is self:
                call.run.broken = error
            run = self._runs.get(about.invocation_id)
            if run is not None:
                run.broken = error
                await self._fail(run, error)
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
        self._runs: dict[str, _Run] = {}
        self._waiting: dict[Any, _Run] = {}  # for a human's answer, by session

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def close(self) -> None:
        """What a runner calls when it is closed. The one inside of an agent tool ends nothing: it has our plugin."""
        if _calling.get() is None:
            await self.aclose()

    async def aclose(self) -> None:
        """End all sessions."""
        left = [*self._runs.values(), *self._waiting.values()]
        self._runs, self._waiting = {}, {}
        for run in left:
            await self._fail(run, run.error or CancelledError())
        await self._sessions.aclose()

    # --- an invocation ----------------------------------------------------------------------

    @_kept
    async def on_user_message_callback(self, *, invocation_context: Any, user_message: Any) -> Any:
        return await self._told(invocation_context, user_message)

    async def _told(self, invocation: Any, message: Any) -> Any:
        key = _key(invocation)
        if key in self._waiting and message is not None and all(map(_is_answer, message.parts or ())):
            run = self._runs[invocation.invocation_id] = self._waiting.pop(key)
            run.alive, run.unanswered = ref(invocation), False
            return None  # the turn goes on, with the answer
        return await self._start(invocation, message)

    @_kept
    async def before_run_callback(self, *, invocation_context: Any) -> Any:
        line = (await self._run(invocation_context)).line
        if line.turn.over and not line.ended:
            await self._end(line, None)
        return model_content(line.shown) if line.ended else None

    async def _run(self, invocation: Any) -> _Run:
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

    async def _start(self, invocation: Any, message: Any) -> Any:
        """A run begins. Gives what the user is taken to have said, if that is something else."""
        for key in [key for key, run in self._runs.items() if run.alive() is None]:  # some versions tell of no failure
            gone = self._runs.pop(key)
            await self._fail(gone, gone.error or CancelledError())
        parts = list(message.parts or ()) if message is not None else []
        blocks = [block_of(part) for part in parts]
        is_text = all(block["type"] == "text" for block in blocks)
        given: Any = as_text(blocks) if is_text else blocks
        call, agent = _calling.get(), getattr(invocation, "agent", None)
        name, wanted = getattr(agent, "name", "agent"), given
        if call is not None and call.plugin is self:
            line = await self._helper(call.line.turn, name, given)
            wanted = line.wanted
        else:
            session, about = invocation.session, {"user_id": invocation.user_id, **self._about}
            line = _Line(
                self._sessions.turn(
                    self._session_id or session.id,
                    key=self._session_id or _key(invocation),
                    agent=name,
                    streaming=_streams(invocation),
                    **about,
                )
            )
        self._runs[invocation.invocation_id] = _Run(invocation, line)
        if not line.ended:
            source = "continuation" if message is None or any(part.function_response for part in parts) else "user"
            wanted = await self._begin(line, invocation, agent, wanted, source)
        if line.turn.session.turn_id is None:  # it was refused, and is not to be read in later turns, either
            wanted = line.turn.said or "[Message rejected]"
        if message is None or wanted == given:
            return None
        wanted = wanted if isinstance(wanted, list) else [{"type": "text", "text": as_text(wanted)}]
        return types.Content(role="user", parts=rewritten(parts, blocks, wanted, part_of))

    async def _begin(self, line: _Line, invocation: Any, agent: Any, given: Any, source: str = "user") -> Any:
        """A turn begins. Gives its input."""
        prompt = await _instruction(agent, invocation)
        count = len(invocation.session.events) + 1
        begun = await drive(line.turn.begin(given, source=source, system_prompt=prompt, committed_len=count))
        if begun.system_prompt != prompt:
            line.prompts[agent.name] = prompt or "", begun.system_prompt or ""
        return begun.input

    @_kept
    async def after_run_callback(self, *, invocation_context: Any) -> None:
        run = self._runs.get(invocation_context.invocation_id)
        if run is None:
            return
        if run.unanswered and not run.nested:
            key = _key(invocation_context)
            del self._runs[invocation_context.invocation_id]
            forgotten = [self._waiting.pop(key)] if key in self._waiting else []
            self._waiting[key] = run
            if len(self._waiting) > SESSIONS:
                forgotten.append(self._waiting.pop(next(iter(self._waiting))))
            for gone in forgotten:
                await self._fail(gone, CancelledError())
            return
        await self._abandon(run)
        for line in _lines(run):
            await self._end_quietly(line)
        del self._runs[invocation_context.invocation_id]

    async def on_run_error_callback(self, *, invocation_context: Any, error: Exception) -> None:
        run = self._runs.pop(invocation_context.invocation_id, None)
        if run is not None:
            await self._fail(run, _cause(error))

    async def _end(self, line: _Line, text: str | None) -> str | None:
        """The turn is over. `line.shown` is what is to be seen of it; gives what a helper is told for it to go on."""
        ended = await drive(line.turn.end(text))
        line.ended, line.shown = True, ended.text
        return None if line.parent is None else await drive(line.parent.helper_stops(line.turn))

    async def _end_quietly(self, line: _Line) -> None:
        """The turn is over, and there was no answer; or it was that of others, who have turns of their own."""
        if not line.ended:
            await self._ending(line)
            line.turn.over, line.turn.said = True, None
            await self._end(line, None)

    async def _ending(self, line: _Line) -> None:
        """The turn is about to end where the framework cannot be made to go on."""
        can = dict(line.turn.session.capabilities or {})
        can["before_turn_end"] = frozenset(can["before_turn_end"]) - {"extend"}
        line.turn.session.capabilities = can
        await drive(line.turn.ending())

    async def _fail(self, run: _Run, error: BaseException) -> None:
        """Whatever ended the run early is told of, as far as it has not been."""
        await self._abandon(run)
        for line in _lines(run):
            if not line.ended:
                line.ended = True
                await drive(line.turn.failed(error))
                if line.parent is not None:
                    with suppress(FairleadError):
                        await drive(line.parent.helper_stops(line.turn))

    async def _abandon(self, run: _Run) -> None:
        """The calls that are under way have no end but this one."""
        calls, run.calls = run.calls, {}
        for work in filter(None, calls.values()):
            with suppress(CancelledError, Exception):
                await _advance(work, error=CancelledError())

    # --- agents -----------------------------------------------------------------------------

    @_kept
    async def before_agent_callback(self, *, agent: Any, callback_context: Any) -> Any:
        invocation = _invocation(callback_context)
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
            call, above = _calling.get(), getattr(agent, "parent_agent", None)
            parent = call.line if call is not None else run.line_of(getattr(above, "name", ""), None)
            given = call.message if call is not None else text_of(invocation.user_content)
            line = await self._helper(parent.turn, agent.name, given)
        run.lines[agent.name, branch] = line
        if not line.ended and line.turn.session.turn_id is None:
            await self._begin_helper(line, invocation, agent)
        line.agent = agent
        return model_content(line.shown) if line.ended else None

    async def _helper(self, parent: Turn, name: str, given: Any) -> _Line:
        """An agent is about to work for another: `ended`, if it may not."""
        message = as_text(given)
        turn, wanted, refused = await drive(parent.helper(name, message))
        line = _Line(turn, parent)
        line.given, line.wanted = given, given if wanted == message else wanted
        line.ended, line.shown = refused is not None, refused
        return line

    async def _begin_helper(self, line: _Line, invocation: Any, agent: Any) -> None:
        wanted = await self._begin(line, invocation, agent, line.wanted)
        if line.turn.over:
            await self._end(line, None)
        elif wanted != line.given:  # which stands in the session as it was given
            line.turn.waiting.insert(0, Context(as_text(wanted), "fairlead"))

    @_kept
    async def after_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
        run, line = await self._line(callback_context)
        if line is not run.line and not run.unanswered:
            await self._end_quietly(line)

    async def _hand_over(self, run: _Run, line: _Line, name: Any) -> str | None:
        why = await drive(line.turn.hand_over(str(name)))
        if why is None:
            run.lines[str(name), None] = line
        return why

    async def _line(self, context: Any) -> tuple[_Run, _Line]:
        run = self._runs.get(context.invocation_id) or await self._run(_invocation(context))
        run.error = None  # whatever went wrong, it goes on
        return run, run.line_of(context.agent_name, _branch(context))

    # --- the model --------------------------------------------------------------------------

    @_kept
    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> Any:
        run, line = await self._line(callback_context)
        if line.ended:  # a text that was streamed before a tool call looked like the end
            line.turn.reopen()
            line.ended = False
        line.agent = line.agent or _invocation(callback_context).agent
        line.request, line.model, line.contents = llm_request, llm_request.model, list(llm_request.contents)
        if callback_context.agent_name in line.prompts:
            _instruct(llm_request, *line.prompts[callback_context.agent_name])
        line.holds = run.streams and self._sessions.judges(*OUTPUT)
        line.natively, line.asking = not line.turn.passes(), None
        if not line.natively:
            return None
        line.asking = self._ask(line, callback_context)
        came = await _advance(line.asking)
        return None if isinstance(came, _Native) else await self._answered(line, callback_context, came)

    @_kept
    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> Any:
        _, line = await self._line(callback_context)
        if llm_response.partial:
            return LlmResponse(partial=True) if line.holds else None
        if line.asking is not None:
            asking, line.asking = line.asking, None
            came = await _advance(asking, llm_response)
        elif AfterModel not in line.turn.heard:
            came = Asked(llm_response)
        else:  # some versions give a streamed reply in several pieces
            after = await drive(line.turn.after_model(line.model, reply_of(llm_response)))
            came = Asked(llm_response, after.text) if after else await drive(self._ask(line, callback_context))
        return await self._answered(line, callback_context, came, llm_response)

    @_kept
    async def on_model_error_callback(self, *, callback_context: Any, llm_request: Any, error: Exception) -> None:
        run, line = await self._line(callback_context)
        run.error = error
        if line.asking is not None:
            asking, line.asking = line.asking, None
            try:
                await _advance(asking, error=error)
            except Exception as raised:
                if raised is not error:
                    raise

    def _ask(self, line: _Line, context: Any) -> Work[Asked]:
        def messages() -> list[Message]:
            if BeforeModel not in line.turn.heard:
                return []
            return [message_of(unit) for unit in units_of(line.turn.woven(line.contents, user_content))]

        return line.turn.ask(line.model, messages, functools.partial(self._call, line, context), reply_of)

    async def _call(self, line: _Line, context: Any, asking: Asking) -> Any:
        """Ask the model: by the framework, the first time; by ourselves, when it is asked again or is another."""
        turn, request = line.turn, line.request
        if asking.messages is not None:
            units = units_of(turn.woven(line.contents, user_content))
            request.contents = joined(
                rewritten(units, [message_of(unit) for unit in units], asking.messages, content_of)
            )
        turn.place(len(line.contents), asking.context)
        if asking.messages is None:
            request.contents = turn.woven(line.contents, user_content)
        request.model, model, natively, line.natively = line.model, None, line.natively, False
        if asking.model is not None:
            model = self._model(asking.model, await _model_of(line.agent, context))
            request.model = model if isinstance(model, str) else model.model
        if model is None or isinstance(model, str):
            if natively:
                return _Native({})
            model = await _model_of(line.agent, context)
        _invocation(context).increment_llm_call_count()
        reply = LlmResponse()
        async for piece in model.generate_content_async(request, stream=False):
            reply = reply if piece.partial else piece
        return reply

    def _model(self, name: str, current: Any) -> Any:
        """The model of this name; only its name, if the agent's own model goes by that as well."""
        found = self._models.get(name, name)
        if not isinstance(found, str):
            return found
        try:
            kind = LLMRegistry.resolve(found)
        except ValueError:
            raise UnknownName("model", name, [*self._models, current.model]) from None
        return found if isinstance(current, kind) else LLMRegistry.new_llm(found)

    async def _answered(self, line: _Line, context: Any, asked: Asked, native: Any = None) -> Any:
        """The model has answered, or a hook for it. Gives the reply to take instead, None for the native one."""
        turn = line.turn
        while True:
            reply = asked.native if asked.native is not None else saying(asked.text)
            if asked.native is not None and asked.text is not None:
                reply = saying(asked.text, reply)
            if turn.over:
                await self._end(line, None)
                return saying(line.shown)
            if calls_of(reply.content):
                reply = await self._judge_delegations(line, context, reply)
                if calls_of(reply.content):
                    break
                asked = await drive(self._ask(line, context))
                continue
            if getattr(line.agent, "code_executor", None) is not None:
                break  # it is seen at the event whether the turn goes on
            turn.stop_reason = reply_of(reply).stop_reason or "end_turn"
            text = text_of(reply.content)
            feedback = await drive(turn.ending()) or await self._end(line, text)
            if feedback is None:
                if line.shown != text:
                    reply = saying(line.shown, None if line.shown is None else reply)
                break
            if line.ended:
                line.turn = turn = turn.again()
                line.ended = False
                feedback = as_text(await self._begin(line, _invocation(context), line.agent, feedback, "continuation"))
            said = [(context.agent_name, reply.content)] if reply.content is not None else []
            await self._add(line, context, *said, ("user", user_content(feedback)))
            asked = await drive(self._ask(line, context))
        return None if reply is native else reply

    async def _add(self, line: _Line, context: Any, *said: tuple[str, types.Content]) -> None:
        """Add to the conversation what the framework does not. It stands in the session; the user is not shown it."""
        invocation = _invocation(context)
        for author, content in said:
            line.contents.append(content)
            event = Event(
                invocation_id=invocation.invocation_id, author=author, branch=invocation.branch, content=content
            )
            if getattr(invocation, "isolation_scope", None) is not None:
                event.isolation_scope = invocation.isolation_scope
            await invocation.session_service.append_event(session=invocation.session, event=event)

    async def _judge_delegations(self, line: _Line, context: Any, reply: Any) -> Any:
        """The reply, without those delegations that are refused.

        An agent of the mode "task" is started as soon as the model calls it: its tool, and our callback, never run.
        """
        refused: list[tuple[Any, dict[str, Any]]] = []
        for part in reply.content.parts:
            tool = line.request.tools_dict.get(part.function_call.name) if part.function_call else None
            if _is_delegated(tool):
                run = self._runs[context.invocation_id]
                if not part.function_call.id or part.function_call.id in run.calls:
                    part.function_call.id = new_id("adk-call")
                answer = await self._judge_delegation(run, line, tool, part.function_call)
                refused += [(part, answer)] if answer is not None else []
        if not refused:
            return reply
        calls = [part for part, _ in refused]
        results = [
            types.FunctionResponse(id=part.function_call.id, name=part.function_call.name, response=answer)
            for part, answer in refused
        ]
        told = types.Content(role="user", parts=[types.Part(function_response=result) for result in results])
        asked = types.Content(role="model", parts=calls)
        await self._add(line, context, (context.agent_name, asked), (context.agent_name, told))
        rest = types.Content(role="model", parts=[part for part in reply.content.parts if part not in calls])
        return reply.model_copy(update={"content": rest})

    async def _judge_delegation(self, run: _Run, line: _Line, tool: Any, call: Any) -> dict[str, Any] | None:
        """What the model is told instead, if this one may not be."""
        args = dict(call.args or {})
        work = line.turn.tool(tool.name, args, call.id, _Native, read=output_of, kind="agent").work()
        came = await _advance(work)
        if isinstance(came, Called):
            return _response(came)
        why: str | None = "the arguments of a delegation cannot be changed"  # they stand in the model's message
        if came.args == args:
            helper = await self._helper(line.turn, tool.agent.name, args.get("request", args))
            why = helper.shown if helper.ended else None
            run.lines[tool.agent.name, None] = helper
        if why is not None:
            return _response(await _advance(work, {"error": why}))
        run.calls[call.id] = work
        return None

    @_kept
    async def on_event_callback(self, *, invocation_context: Any, event: Any) -> Any:
        """What is shown has been judged by now. If it has not, because others had it said, that is made up for."""
        run = self._runs.get(invocation_context.invocation_id)
        answers = event.get_function_responses() if run is not None and run.calls else ()
        if run is not None and any(run.call_of(one.id) is not None for one in answers):
            return await self._delegated(run, event)
        text = text_of(event.content)
        if run is None or not text or event.partial or event.author == "user" or not event.is_final_response():
            return None
        line = run.line_of(event.author, event.branch)
        if text == line.shown or calls_of(event.content):
            return None
        if not line.ended and hasattr(line.agent, "canonical_model"):
            await self._ending(line)
            await self._end(line, text)
            shown = line.shown
        else:
            decision = await drive(line.turn.fire(BeforeOutput, content=text))
            if decision is None:
                return None
            shown = None if decision.denied else as_text(thaw(decision.step.content))
        if shown == text:
            return None
        return event.model_copy(update={"content": None if shown is None else saying(shown, event).content})

    async def _delegated(self, run: _Run, event: Any) -> Any:
        """An agent to which a task was given is done with it. A retry gets the same result again."""
        parts, changed = [], False
        for part in event.content.parts:
            result = part.function_response
            work = run.calls.pop(run.call_of(result.id), None) if result is not None else None
            while work is not None:
                called = await _advance(work, result.response)
                if not isinstance(called, _Native):
                    if called.replaced:
                        result, changed = result.model_copy(update={"response": _response(called)}), True
                    break
            parts.append(types.Part(function_response=result) if result is not None else part)
        content = types.Content(role=event.content.role, parts=parts)
        return event.model_copy(update={"content": content}) if changed else None

    # --- tools ------------------------------------------------------------------------------

    @_kept
    async def before_tool_callback(self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any) -> Any:
        run, line = await self._line(tool_context)
        if _is_delegated(tool) and tool_context.function_call_id in run.calls:
            return None  # it was judged with the reply, and ends with the agent
        requires = await _requires_confirmation(tool, tool_args, tool_context)
        call = self._call_of(run, line, tool, tool_args, tool_context, "ask" if requires else "allow")
        try:
            await drive(call.judge())
        except _Unanswered as waiting:
            run.unanswered = True
            return _request_confirmation(tool, tool_args, tool_context, waiting.asking)
        args, work = call.args, None
        if not call.free or tool.name == TRANSFER:
            work = call.finish()
            came = await _advance(work)
            if isinstance(came, Called):
                return _response(came)
            args = came.args
        if tool.name == TRANSFER:
            why = await self._hand_over(run, line, args.get("agent_name"))
            if why is not None and work is not None:
                return _response(await _advance(work, {"error": why}))
        if args != tool_args:
            tool_args.clear()  # a copy: what the model gave stands in its message
            tool_args.update(args)
        if requires and tool_context.tool_confirmation is None:  # a hook has answered
            tool_context.tool_confirmation = ToolConfirmation(confirmed=True)
        run.calls[tool_context] = work
        _calling.set(_Calling(self, run, line, tool_args))
        return None

    @_kept
    async def after_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, result: Any
    ) -> dict[str, Any] | None:
        run, _ = await self._line(tool_context)
        if _is_delegated(tool) or tool_context not in run.calls:
            return None
        work = run.calls.pop(tool_context)
        _calling.set(None)
        actions, call_id = tool_context.actions, tool_context.function_call_id
        if call_id in actions.requested_tool_confirmations or call_id in actions.requested_auth_configs:
            run.unanswered = True  # the tool itself asks, and the call is not over
            return None
        if work is None:
            return None
        called, again = await _finish(work, tool, tool_context, value=result)
        if again and called.error is not None and not called.replaced:
            raise called.error
        return _response(called) if again or called.replaced else None

    @_kept
    async def on_tool_error_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, error: Any
    ) -> dict[str, Any] | None:
        run, line = await self._line(tool_context)
        run.error = error
        key, cause = tool_context if tool_context in run.calls else tool_context.function_call_id, _cause(error)
        known, work = key in run.calls, run.calls.pop(key, None)
        _calling.set(None)
        if known and work is None:  # nobody listens
            if isinstance(cause, HookAborted):
                raise cause
            return None
        if work is None:  # some versions do not ask about a tool that does not exist
            work = self._call_of(run, line, tool, tool_args, tool_context).work()
            came = await _advance(work)
            if isinstance(came, Called):
                return _response(came)
        try:
            called, _ = await _finish(work, tool, tool_context, error=cause)
        except CancelledError:
            return None  # which the framework goes on with
        return None if called.error is not None and not called.replaced else _response(called)

    def _call_of(
        self, run: _Run, line: _Line, tool: Any, args: dict[str, Any], context: Any, proposed: Any = "allow"
    ) -> ToolCall:
        return line.turn.tool(
            tool.name, args, context.function_call_id, _Native, proposed=proposed, read=output_of,
            ask=functools.partial(_approval, run, args, context), through=(_Unanswered,), **_about(tool),
        )  # fmt: skip


# --- runs -----------------------------------------------------------------------------------------


def _invocation(context: Any) -> Any:
    """The invocation of a callback's context. Older versions have no public way to it."""
    public = getattr(context, "get_invocation_context", None)
    if public is not None:
        return public()
    return context if hasattr(context, "session_service") else context._invocation_context


def _branch(context: Any) -> str | None:
    """Where in an invocation this is. Newer contexts know it; the invocation's is a copy that takes its time."""
    try:
        return context.branch  # type: ignore[no-any-return]
    except AttributeError:
        return _invocation(context).branch  # type: ignore[no-any-return]


def _key(invocation: Any) -> tuple[str, str, str]:
    """A session of the framework's: two users may have sessions of the same id."""
    session = invocation.session
    return session.app_name, session.user_id, session.id


def _is_answer(part: Any) -> bool:
    """Whether a human answers what the framework has asked."""
    return part.function_response is not None and str(part.function_response.name).startswith("adk_request_")


def _streams(invocation: Any) -> bool:
    return invocation.run_config is not None and invocation.run_config.streaming_mode == StreamingMode.SSE


def _lines(run: _Run) -> list[_Line]:
    """The agents of a run, those that were started last first."""
    return list(dict.fromkeys([*reversed(run.lines.values()), run.line]))


def _cause(error: BaseException) -> BaseException:
    """What went wrong, without what the framework wraps it in."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, FairleadError):
        cause = cause.__cause__
    return cause or error


async def _instruction(agent: Any, invocation: Any) -> str | None:
    """The instruction of an agent, as the model will read it."""
    found = getattr(agent, "instruction", None)
    context = ReadonlyContext(invocation)
    if callable(found):
        found = found(context)
        return str(await found if inspect.isawaitable(found) else found)
    if not found or "{" not in found:
        return found or None
    from google.adk.utils.instructions_utils import inject_session_state  # which imports much of the framework

    with suppress(KeyError, ValueError):  # of which the framework tells
        return str(await inject_session_state(found, context))
    return str(found)


def _instruct(request: Any, before: str, after: str) -> None:
    told = request.config.system_instruction
    if not isinstance(told, str) or not before or before not in told:
        request.config.system_instruction = f"{after}\n\n{told}" if isinstance(told, str) else after
    else:
        request.config.system_instruction = told.replace(before, after, 1)


async def _model_of(agent: Any, context: Any) -> Any:
    resolve = getattr(agent, "canonical_model_async", None)
    return agent.canonical_model if resolve is None else await resolve(context)


# --- tools ----------------------------------------------------------------------------------------


async def _finish(
    work: Work[Called], tool: Any, context: Any, value: Any = None, error: BaseException | None = None
) -> tuple[Called, bool]:
    """The call is over, unless a hook wants it to be tried again: whether it was."""
    again = False
    while isinstance(came := await _advance(work, value, error), _Native):
        again, value, error = True, None, None
        try:
            value = await tool.run_async(args=came.args, tool_context=context)
        except Exception as raised:
            error = _cause(raised)
    return came, again


def _about(tool: Any) -> dict[str, Any]:
    """What the framework knows of a tool."""
    if tool.name == TRANSFER or getattr(tool, "agent", None) is not None:
        return {"kind": "agent"}
    hints = getattr(getattr(tool, "raw_mcp_tool", None), "annotations", None)
    return {"safety": "destructive"} if getattr(hints, "destructiveHint", None) else {}


def _is_delegated(tool: Any) -> bool:
    return getattr(getattr(tool, "agent", None), "mode", None) == "task"


async def _requires_confirmation(tool: Any, args: dict[str, Any], context: Any) -> bool:
    """Whether the framework itself asks before it runs this. In older versions the tool does, when it runs."""
    check = getattr(tool, "check_require_confirmation", None)
    with suppress(Exception):  # which is the framework's to deal with: it checks again
        return check is not None and await check(args, context) is True
    return False


def _approval(run: _Run, args: dict[str, Any], context: Any, asking: Decision[Any] | None) -> Approval:
    """A human's answer, by the framework's own means. What the question was stands in the session."""
    if run.nested:
        return Approval("deny", None, "nobody can be asked from inside an agent that is a tool")
    answer = context.tool_confirmation
    if answer is None:
        raise _Unanswered(asking)
    asked = (call.args or {} for call in _calls_in(context) if call.name == "adk_request_confirmation")
    shown = next((one for one in asked if one["originalFunctionCall"].get("id") == context.function_call_id), None)
    if answer.confirmed and not (shown and _names(shown["toolConfirmation"]["hint"], _naming(asking, args, context))):
        return Approval("deny", None, "its arguments are not those that were approved")
    return Approval("allow" if answer.confirmed else "deny", "the user")


def _calls_in(context: Any) -> Iterator[Any]:
    """The calls in a session, of the latest event first."""
    for event in reversed(_invocation(context).session.events):
        yield from event.get_function_calls()


def _naming(asking: Decision[Any] | None, args: dict[str, Any], context: Any) -> str:
    """What a question says of the arguments. The framework itself shows those that the model gave."""
    final = args if asking is None else thaw(asking.step.args)
    given = next((call.args or {} for call in _calls_in(context) if call.id == context.function_call_id), None)
    told = msgspec.json.encode(final, enc_hook=str, order="deterministic").decode()
    return "" if final == given else f" It will be called with {told}."


def _names(hint: str, naming: str) -> bool:
    """Whether a question did say this of them."""
    return hint.endswith(naming) if naming else not re.search(r" It will be called with \{.*\}\.$", hint, re.DOTALL)


def _request_confirmation(
    tool: Any, args: dict[str, Any], context: Any, asking: Decision[Any] | None
) -> dict[str, Any]:
    hint = (asking.reason if asking is not None else None) or f"May {tool.name} be called?"
    context.request_confirmation(hint=hint + _naming(asking, args, context))
    context.actions.skip_summarization = True  # the model is not asked before there is an answer
    return {"error": "This tool call requires confirmation, please approve or reject."}


def _response(called: Called) -> dict[str, Any]:
    if called.is_error:
        return {"error": called.text}
    return called.output if isinstance(called.output, dict) else {"result": called.output}
