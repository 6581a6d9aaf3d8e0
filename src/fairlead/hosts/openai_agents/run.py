"""One run of an agent of the OpenAI Agents SDK, under hooks."""

from __future__ import annotations

import json
from asyncio import CancelledError
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from functools import partial
from typing import Any

from agents import Agent, FunctionTool, Model, ModelResponse, RunConfig, Usage

from ...approvals import Approval
from ...errors import FairleadError
from ...session import new_id
from ..model import as_text
from ..turn import Asked, Ended, Runs, Turn
from ..work import drive
from .agent import Guarded, guarded_agent, original, under_hooks
from .asking import GuardedModel, GuardedProvider, Request, Said
from .call import Call, Refused, asks_for_approval
from .messages import (
    arguments_of,
    as_output,
    id_of,
    is_final,
    is_typed,
    message_of,
    output_text,
    said_by_user,
    text_of,
    told,
    with_text,
)

SHOWN = ("before_response", "before_output")
NOTHING = "null"
"""An answer without words, where one of some type is wanted: the SDK would ask again."""


class Run:
    """One run of an agent: its turn, and the calls that are on their way."""

    turn: Turn

    def __init__(self, fairlead: Any, parent: Run | None, streaming: bool) -> None:
        self.fairlead, self.parent, self.streaming = fairlead, parent, streaming
        self.runs: Runs = fairlead.runs
        self.id = new_id("run")
        self.call: Call | None = None  # the parent's, in which this run is
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.root: Any = None
        self.context: Any = None
        self.provider: Any = None
        self.owned: Any = None
        self.given: Any = None  # what the user says
        self.prompted = False
        self.prompt: str | None = None  # the system prompt that a hook wants
        self.calls: list[Call] = []
        self.handoffs: dict[str, str] = {}  # the ids of calls that are handoffs, by the handoff's name
        self.decided: dict[str, bool] = {}  # which calls a human is asked about
        self.asks = False  # whether there are any
        self.said: set[str] = set()  # what hooks said in place of the model: it need not be of any type
        self.ended: Ended | None = None
        self.begun = self.refused = self.asked_to_end = self.stopped = self.handed_over = False
        self.error: FairleadError | None = None

    async def begin(self, agent: Any, given: Any, options: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
        """What the SDK is to run, when hooks have had their say."""
        agent = original(agent)
        options = {**options, "run_config": self._configured(options.get("run_config"))}
        if self.begun:  # somebody has answered, and it goes on
            return self.root, given, options
        self.begun, self.root = True, guarded_agent(agent, {})
        self.given, put, length = said_by_user(given)
        await self._start(agent.name, length, options)
        if not self.turn.over:
            return self.root, put(self.given), options
        quiet = RunConfig(model=Said(self.turn.said or ""), tracing_disabled=True)
        return Agent(name=agent.name), "", {"run_config": quiet, "context": options.get("context")}

    async def _start(self, name: str, length: int, options: dict[str, Any]) -> None:
        source = "continuation" if self.given is None else "user"
        if self.parent is None:
            conversation = getattr(options.get("session"), "session_id", None) or options.get("conversation_id")
            self.turn = self.runs.turn(conversation, agent=name, streaming=self.streaming)
        else:
            said = as_text(self.given)
            self.turn, message, refused = await drive(self.parent.turn.helper(name, said))
            if message is not None and message != said:
                self.given = message
            if refused is not None:
                self.refused, self.turn.over, self.turn.said = True, True, refused
                if self.call is not None:
                    self.call.refused = refused
                return
        begun = await drive(self.turn.begin(self.given, source=source, committed_len=length, prompted=False))
        self.given = begun.input

    def _configured(self, config: Any) -> Any:
        """The run's configuration, with models that come to us first."""
        if config is None or isinstance(config, dict):
            config = RunConfig(**(config or {}))
            self.owned = config.model_provider
        config = copy(config)
        config.model_provider = GuardedProvider(config.model_provider)
        self.provider = config.model_provider.inner
        if isinstance(config.model, Model):
            config.model = GuardedModel(config.model)
        return config

    def model_named(self, name: str) -> Any:
        found = self.fairlead.models.get(name, name)
        return self.provider.get_model(found) if isinstance(found, str) else found

    async def finish(self, result: Any) -> None:
        """The run is over, or waits for somebody's answer. What it gives is what hooks make of it."""
        if result.interruptions:
            self._put(result.interruptions)
            await self.fairlead.pause(self, result)
            if self.call is not None and getattr(self.call.tool, "_is_agent_tool", False):
                self.call.held = True  # any other tool has an output, whatever became of the agent that it ran
            return
        self._check()
        turn, last = self.turn, result.last_agent
        if not isinstance(last, Guarded):  # nothing has run: hooks would have none of it, and nothing of it is kept
            result.input = []
        await self.settle()
        if self.ended is None and not self.refused:
            text = None if turn.over else output_text(result)
            if not self.asked_to_end:
                await drive(turn.ending())
            self.ended = await self._end(text)
        if self.parent is not None and not self.stopped and not self.refused:
            self.stopped = True
            await drive(self.parent.turn.helper_stops(turn))
        if self.ended is not None and (self.ended.changed or turn.over):
            result.final_output = as_output(self.ended.text, result.final_output, last)
        for name in ("current_agent", "_last_agent"):  # the user's own, and not our copy
            if name in result.__dict__:
                result.__dict__[name] = original(last if isinstance(last, Guarded) else self.root)

    def _put(self, interruptions: list[Any]) -> None:
        """A human is asked about these calls."""
        for item in interruptions:
            calls = [call for call in self.calls if call.call_id == id_of(item.raw_item) and call.waiting is not None]
            if len(calls) == 1:  # else it is a subagent's, or the answer would be one to several questions
                calls[0].put = True

    async def failed(self, error: BaseException) -> BaseException:
        """The run is over early. What its caller is to hear of."""
        found: BaseException | None = error  # the SDK wraps what its tools raise
        while found is not None and not isinstance(found, FairleadError):
            found = found.__cause__
        heard = found or self.error or error
        with suppress(FairleadError, CancelledError):
            await self.settle()
        if hasattr(self, "turn"):
            await drive(self.turn.failed(heard))
            if self.parent is not None and not self.stopped and not self.refused:
                self.stopped = True
                with suppress(FairleadError):
                    await drive(self.parent.turn.helper_stops(self.turn))
        if self.call is not None and isinstance(heard, FairleadError):
            self.call.noted = heard  # the SDK makes a text of what a tool raises
        return heard

    async def leave(self) -> None:
        owned, self.owned = self.owned, None
        if owned is not None and hasattr(owned, "aclose"):
            await owned.aclose()

    # --- the model --------------------------------------------------------------------------

    async def ask(self, request: Request) -> Any:
        """The model's answer, when hooks have no objection left, and nothing that it is told instead."""
        self._check()
        await self.settle()
        if self.ended is not None and not self.turn.over:  # we took something for the end that was none to the SDK
            self.turn.reopen()
            self.ended, self.stopped = None, False
        tools, schema = request.given["tools"], request.given["output_schema"]
        while True:
            if not self.prompted and not self.turn.over:
                self.prompted, prompt = True, request.given["system_instructions"]
                wanted = await drive(self.turn.prompt(prompt, self.given))
                self.prompt = None if wanted == prompt else wanted or ""
            read = partial(told, tools=tools)
            asked = await drive(self.turn.ask(request.name, request.plain, request.send, read))
            response = self._spoken(asked)
            final = self.turn.over or is_final(response, tools, schema)
            feedback = None
            if final:
                feedback = None if self.turn.over else await drive(self.turn.ending())
                self.asked_to_end = feedback is None
                if feedback is None:
                    feedback, response = await self._end_early(response)
            request.release(response, asked.native)
            if feedback is not None:
                request.go_on(response, feedback, self.turn)
                continue
            if not final:
                await self._judge(response, tools)
            elif is_typed(schema) and not text_of(response):
                self.said.add(NOTHING)
                response = with_text(response, NOTHING, final=True)
            return request.whole(response)

    def _check(self) -> None:
        """Whatever the SDK has made of it: a request that a hook has aborted does not go on."""
        if self.error is not None:
            raise self.error

    def _spoken(self, asked: Asked) -> Any:
        if asked.text is None:
            return asked.native
        self.said.add(asked.text)
        if asked.native is None:
            return ModelResponse([message_of(asked.text)], Usage(), None)
        return with_text(asked.native, asked.text)

    async def _end_early(self, response: Any) -> tuple[str | None, Any]:
        """Where a hook may change what is streamed, and where a subagent may have to go on, the turn ends here."""
        turn = self.turn
        if self.parent is None and not (self.streaming and self.runs.judges(*SHOWN)):
            return None, response
        self.ended = await self._end(text_of(response))
        if self.ended.changed:
            self.said.add(self.ended.text or "")
            response = with_text(response, self.ended.text or "", final=True)
        if self.parent is None:
            return None, response
        feedback = await drive(self.parent.turn.helper_stops(turn))
        self.stopped = feedback is None
        if feedback is not None:
            self.turn, self.ended, self.asked_to_end = turn.again(), None, False
            self.turn.placed, self.given, self.prompted = turn.placed, feedback, False
            await drive(self.turn.begin(feedback, source="continuation", prompted=False))
        return feedback, response

    async def _end(self, text: str | None) -> Ended:
        if not self.handed_over:
            return await drive(self.turn.end(text))
        with self._unable("subagent_stop", "extend"):  # whoever the work was handed to has had the last word
            return await drive(self.turn.end(text))

    @contextmanager
    def _unable(self, event: str, part: str) -> Iterator[None]:
        """What the table says can be done, but not here: it is reported."""
        session = self.turn.session
        can = session.capabilities or {}
        session.capabilities = {**can, event: frozenset(can.get(event, ())) - {part}}
        try:
            yield
        finally:
            session.capabilities = can

    # --- tools ------------------------------------------------------------------------------

    async def _judge(self, response: Any, tools: list[Any]) -> None:
        """All calls of one answer are judged one after another, before the SDK runs any of them."""
        known = {tool.name: tool for tool in tools if isinstance(tool, FunctionTool)}
        for item in response.output:
            if getattr(item, "type", None) != "function_call":
                continue
            tool = known.get(item.name)
            if tool is None:
                self.handoffs[item.name] = item.call_id
                continue
            native = tool.__dict__.get("fairlead_original", tool)
            call = Call(self.turn, native, item.call_id, item.arguments, self._asks_for(native, item.call_id))
            self.calls.append(call)
            await call.judge()
            wanted = self.decided[item.call_id] = call.waiting == "ask"
            self.asks = self.asks or wanted
            if wanted or native.needs_approval is not False:
                self.approve_here(tool, native)

    def _asks_for(self, native: Any, call_id: str) -> Any:
        """What a tool's own `needs_approval` says of a call, with the arguments that hooks leave it."""

        async def proposed(args: dict[str, Any]) -> str:
            return "ask" if await asks_for_approval(native.needs_approval, self.context, args, call_id) else "allow"

        return proposed if callable(native.needs_approval) else "ask" if native.needs_approval else "allow"

    def approve_here(self, tool: Any, native: Any) -> None:
        """Whether a human is asked about a call of this tool is what hooks have decided."""

        async def needs_approval(context: Any, args: dict[str, Any], call_id: str) -> bool:
            if call_id in self.decided:
                return self.decided[call_id]
            return await asks_for_approval(native.needs_approval, context, args, call_id)

        tool.needs_approval = needs_approval

    async def invoke(self, tool: Any, context: Any, arguments: str) -> Any:
        """The SDK runs a call. What came of it."""
        call_id = getattr(context, "tool_call_id", None) or ""
        try:
            call = self._judged(call_id, arguments)
            if call is None:  # it was asked for in another process
                call = Call(self.turn, tool, call_id, arguments, put=True)
                self.calls.append(call)
                await call.judge()
            call.tool, call.running = tool, True  # there may be two of its name
            output = await call.run(context)
        except FairleadError as error:
            self.error = error  # the SDK wraps it in an error of its own
            raise
        call.running = False
        if not call.held:
            self.calls.remove(call)
        return output

    def _judged(self, call_id: str, arguments: str) -> Call | None:
        """The call that hooks have judged. There may be others with its id."""
        found = (call for call in self.calls if call.call_id == call_id and call.raw == arguments)
        return next((call for call in found if not call.running), None)

    async def settle(self) -> None:
        """Calls that the SDK did not run after all: a human has refused them, or the SDK's own guardrails have."""
        left, self.calls = self.calls, []
        for call in left:
            if call.waiting == "ask":
                await call.go(Approval("deny", None, "a human has refused it"))
            elif call.waiting == "run":
                await call.abandon()

    async def hand_over(self, native: Any, context: Any, arguments: str | None) -> tuple[Any, str | None]:
        """The agent that goes on, and what the model is told. None is as ever."""
        given = arguments_of(arguments)
        went: list[Any] = []

        async def go(args: dict[str, Any]) -> str:
            with self._unable("subagent_start", "initial_message"):  # there is none: it sees the conversation
                refused = await drive(self.turn.hand_over(native.agent_name))
            if refused is not None:
                raise Refused(refused)
            self.handed_over = True
            went.append(await native.on_invoke_handoff(context, arguments if args == given else json.dumps(args)))
            self.prompt = None  # which was that of another agent
            return str(native.get_transfer_message(went[0]))

        call_id = self.handoffs.pop(native.tool_name, None)
        called = await under_hooks(self.turn.tool(native.tool_name, given, call_id, go, kind="agent").work())
        if isinstance(called.error, Refused) and not called.replaced:
            return None, str(called.error)
        result = called.result()
        return (went[0] if went else None), (as_text(result) if called.replaced else None)
