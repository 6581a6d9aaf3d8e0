"""One run of an agent of the OpenAI Agents SDK, under hooks."""

from __future__ import annotations

import json
from asyncio import CancelledError
from contextlib import nullcontext, suppress
from copy import copy
from functools import partial
from typing import Any

from agents import Agent, FunctionTool, Model, ModelResponse, RunConfig, Usage

from ....approvals import Approval
from ....errors import FairleadError
from ....session import new_id
from ..adapter import AgentRun, without
from ..flow import run_flow
from ..messages import as_text
from ..turn import ModelResult, Sessions, TurnOutput
from .agent import Guarded, guarded_agent, original, run_tool_flow
from .messages import (
    arguments_of,
    as_output,
    id_of,
    is_final,
    is_typed,
    message_of,
    output_text,
    reply_of,
    text_of,
    user_input,
    with_text,
)
from .model_calls import FixedReply, GuardedModel, GuardedProvider, OpenAIRequest
from .tool_calls import CallRefused, OpenAIToolCall, asks_for_approval

SHOWN = ("before_response", "before_output")
NOTHING = "null"
"""The answer in place of an empty one, where the output is typed: the SDK would call the model again."""


class OpenAIRun(AgentRun):
    """One run of an agent: its turn, and the calls that are not over."""

    def __init__(self, fairlead: Any, parent: OpenAIRun | None, streaming: bool) -> None:
        self.fairlead, self.parent, self.streaming = fairlead, parent, streaming
        self.sessions: Sessions = fairlead.sessions
        self.id = new_id("run")
        self.call: OpenAIToolCall | None = None  # the parent's, in which this run is
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.root: Any = None
        self.context: Any = None
        self.provider: Any = None
        self.owned: Any = None
        self.input: Any = None  # the user's
        self.prompt_judged = False
        self.prompt: str | None = None  # the system prompt that a hook gives
        self.calls: list[OpenAIToolCall] = []
        self.questions: set[tuple[str, str]] = set()  # the calls that a human is asked about, while the run is paused
        self.handoffs: dict[str, str] = {}  # the ids of calls that are handoffs, by the handoff's name
        self.decided: dict[str, bool] = {}  # by call id: whether a human is asked about it
        self.asks = False  # whether a human is asked about any
        self.hook_texts: set[str] = set()  # texts that hooks gave in place of the model's: they need not have its type
        self.output: TurnOutput | None = None
        self.has_begun = self.turn_end_judged = self.handed_over = False
        self.error: FairleadError | None = None

    async def begin(self, agent: Any, input: Any, options: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
        """Begin the turn, or resume it. Gives what the SDK is to run: agent, input and options."""
        agent = original(agent)
        options = {**options, "run_config": self._configured(options.get("run_config"))}
        if self.has_begun:  # a human has answered, and the run continues
            return self.root, input, options
        self.has_begun, self.root = True, guarded_agent(agent, {})
        self.input, put, length = user_input(input)
        await self._start(agent.name, length, options)
        if not self.turn.over:
            return self.root, put(self.input), options
        quiet = RunConfig(model=FixedReply(self.turn.end_message or ""), tracing_disabled=True)
        return Agent(name=agent.name), "", {"run_config": quiet, "context": options.get("context")}

    async def _start(self, name: str, length: int, options: dict[str, Any]) -> None:
        source = "continuation" if self.input is None else "user"
        if self.parent is None:
            conversation = getattr(options.get("session"), "session_id", None) or options.get("conversation_id")
            self.turn = self.sessions.turn(conversation, agent=name, streaming=self.streaming)
        else:
            self.input = await run_flow(self.start_subagent(self.parent.turn, name, self.input))
            if self.refusal is not None:
                if self.call is not None:
                    self.call.refusal = self.refusal
                return
        turn_input = await run_flow(self.turn.begin(self.input, source=source, committed_len=length, prompted=False))
        self.input = turn_input.input

    def _configured(self, config: Any) -> Any:
        """The run's configuration, with models that run under hooks."""
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
        """End the turn with the result of the run, or keep the run while it waits for a human."""
        if result.interruptions:
            self._mark_shown(result.interruptions)
            await self.fairlead.wait_for_human(self, result)
            if self.call is not None and getattr(self.call.tool, "_is_agent_tool", False):
                self.call.held = True  # any other tool has an output, whatever became of the agent that it ran
            return
        self._check()
        turn, last = self.turn, result.last_agent
        if not isinstance(last, Guarded):  # hooks refused the input: nothing has run, and nothing is kept
            result.input = []
        await self.end_calls_left()
        if self.output is None and self.refusal is None:
            text = None if turn.over else output_text(result)
            if not self.turn_end_judged:
                await run_flow(turn.ending())
            self.output = await self._end_turn(text)
        await run_flow(self.stop())
        if self.output is not None and (self.output.changed or turn.over):
            result.final_output = as_output(self.output.text, result.final_output, last)
        for name in ("current_agent", "_last_agent"):  # the user's own, and not our copy
            if name in result.__dict__:
                result.__dict__[name] = original(last if isinstance(last, Guarded) else self.root)

    def _mark_shown(self, interruptions: list[Any]) -> None:
        """Mark the calls that a human is asked about."""
        for item in interruptions:
            calls = [call for call in self.calls if call.call_id == id_of(item.raw_item) and call.waiting is not None]
            if len(calls) == 1:  # else it is a subagent's, or one answer would be for several questions
                calls[0].shown = True

    async def fail_with(self, error: BaseException) -> BaseException:
        """End the run early. Gives the error for its caller: a hook's, if there is one."""
        cause: BaseException | None = error  # the SDK wraps what its tools raise
        while cause is not None and not isinstance(cause, FairleadError):
            cause = cause.__cause__
        reported = cause or self.error or error
        with suppress(FairleadError, CancelledError):
            await self.end_calls_left()
        await run_flow(self.fail(reported))
        if self.call is not None and isinstance(reported, FairleadError):
            self.call.raised = reported  # the SDK makes a text of what a tool raises
        return reported

    async def leave(self) -> None:
        owned, self.owned = self.owned, None
        if owned is not None and hasattr(owned, "aclose"):
            await owned.aclose()

    # --- the model --------------------------------------------------------------------------

    async def call_model(self, request: OpenAIRequest) -> Any:
        """The model's answer. Calls the model again as long as hooks refuse the answer or extend the turn."""
        self._check()
        await self.end_calls_left()
        if self.output is not None and not self.turn.over:  # the SDK did not take the answer for the final one
            self.reopen()
            self.output = None
        tools, schema = request.arguments["tools"], request.arguments["output_schema"]
        while True:
            await self._judge_prompt(request)
            read = partial(reply_of, tools=tools)
            result = await run_flow(self.turn.ask(request.name, request.plain, request.send, read))
            response = self._response(result)
            final = self.turn.over or is_final(response, tools, schema)
            feedback = None
            if final:
                feedback = None if self.turn.over else await run_flow(self.turn.ending())
                self.turn_end_judged = feedback is None
                if feedback is None:
                    feedback, response = await self._end_early(response)
            request.release(response, result.native)
            if feedback is not None:
                request.extend(response, feedback, self.turn)
                continue
            if not final:
                await self._judge_calls(response, tools)
            elif is_typed(schema) and not text_of(response):
                self.hook_texts.add(NOTHING)
                response = with_text(response, NOTHING, final=True)
            return request.complete(response)

    async def _judge_prompt(self, request: OpenAIRequest) -> None:
        """Have hooks judge the system prompt. It is known at the first request to the model."""
        if not self.prompt_judged and not self.turn.over:
            self.prompt_judged, prompt = True, request.arguments["system_instructions"]
            changed = await run_flow(self.turn.prompt(prompt, self.input))
            self.prompt = None if changed == prompt else changed or ""

    def _check(self) -> None:
        """Raise the error of a hook that aborted the request, whatever the SDK has made of it."""
        if self.error is not None:
            raise self.error

    def _response(self, result: ModelResult) -> Any:
        if result.text is None:
            return result.native
        self.hook_texts.add(result.text)
        if result.native is None:
            return ModelResponse([message_of(result.text)], Usage(), None)
        return with_text(result.native, result.text)

    async def _end_early(self, response: Any) -> tuple[str | None, Any]:
        """End the turn before the run: where a hook may change what is streamed, and for a subagent."""
        turn = self.turn
        if self.parent is None and not (self.streaming and self.sessions.judges(*SHOWN)):
            return None, response
        self.output = await self._end_turn(text_of(response))
        if self.output.changed:
            self.hook_texts.add(self.output.text or "")
            response = with_text(response, self.output.text or "", final=True)
        feedback = await run_flow(self.stop())
        if feedback is not None:
            self.renew()
            self.output, self.turn_end_judged = None, False
            self.turn.placed, self.input, self.prompt_judged = turn.placed, feedback, False
            await run_flow(self.turn.begin(feedback, source="continuation", prompted=False))
        return feedback, response

    async def _end_turn(self, text: str | None) -> TurnOutput:
        # After a handoff, the agent that the work was handed to has given the answer: it cannot be extended.
        with without(self.turn, "subagent_stop", "extend") if self.handed_over else nullcontext():
            return await run_flow(self.end(text))

    # --- tools ------------------------------------------------------------------------------

    async def _judge_calls(self, response: Any, tools: list[Any]) -> None:
        """Have hooks judge all calls of one answer, one after another, before the SDK runs any of them."""
        known = {tool.name: tool for tool in tools if isinstance(tool, FunctionTool)}
        for item in response.output:
            if getattr(item, "type", None) != "function_call":
                continue
            tool = known.get(item.name)
            if tool is None:
                self.handoffs[item.name] = item.call_id
                continue
            native = tool.__dict__.get("fairlead_original", tool)
            call = OpenAIToolCall(self.turn, native, item.call_id, item.arguments, self._proposal(native, item.call_id))
            self.calls.append(call)
            await call.judge()
            asks = self.decided[item.call_id] = call.waiting == "ask"
            self.asks = self.asks or asks
            if asks or native.needs_approval is not False:
                self.approve_here(tool, native)

    def _proposal(self, native: Any, call_id: str) -> Any:
        """What a tool's own `needs_approval` proposes for a call, with the arguments that hooks leave it."""

        async def proposed(args: dict[str, Any]) -> str:
            return "ask" if await asks_for_approval(native.needs_approval, self.context, args, call_id) else "allow"

        return proposed if callable(native.needs_approval) else "ask" if native.needs_approval else "allow"

    def approve_here(self, tool: Any, native: Any) -> None:
        """Have the hooks' decision say whether a human is asked about a call of this tool."""

        async def needs_approval(context: Any, args: dict[str, Any], call_id: str) -> bool:
            if call_id in self.decided:
                return self.decided[call_id]
            return await asks_for_approval(native.needs_approval, context, args, call_id)

        tool.needs_approval = needs_approval

    async def invoke(self, tool: Any, context: Any, arguments: str) -> Any:
        """Run a call when the SDK does. Gives the output for the SDK."""
        call_id = getattr(context, "tool_call_id", None) or ""
        try:
            call = self._judged(tool, call_id, arguments)
            if call is None:  # another process has judged it
                call = OpenAIToolCall(self.turn, tool, call_id, arguments, shown=True)
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

    def _judged(self, tool: Any, call_id: str, arguments: str) -> OpenAIToolCall | None:
        """The call that hooks have judged: of this tool, with these arguments. There may be others with its id."""
        found = (call for call in self.calls if call.call_id == call_id and call.raw == arguments)
        return next((call for call in found if not call.running and call.tool.name == tool.name), None)

    async def end_calls_left(self) -> None:
        """End the calls that the SDK did not run: a human has refused them, or a guardrail of the SDK has."""
        left, self.calls = self.calls, []
        for call in left:
            if call.waiting == "ask":
                await call.resume(Approval("deny", None, "a human has refused it"))
            elif call.waiting == "run":
                await call.abandon()

    async def hand_over(self, native: Any, context: Any, arguments: str | None) -> tuple[Any, str | None]:
        """Perform a handoff. Gives the agent that continues, if any, and the text for the model, if not the usual."""
        original_args = arguments_of(arguments)
        agents: list[Any] = []

        async def run(args: dict[str, Any]) -> str:
            with without(self.turn, "subagent_start", "initial_message"):  # there is none: it sees the conversation
                refusal = await run_flow(self.turn.hand_over(native.agent_name))
            if refusal is not None:
                raise CallRefused(refusal)
            self.handed_over = True
            raw = arguments if args == original_args else json.dumps(args)
            agents.append(await native.on_invoke_handoff(context, raw))
            self.prompt = None  # of the other agent
            return str(native.get_transfer_message(agents[0]))

        call_id = self.handoffs.pop(native.tool_name, None)
        call = self.turn.tool(native.tool_name, original_args, call_id, run, kind="agent")
        result = await run_tool_flow(call.perform())
        if isinstance(result.error, CallRefused) and not result.replaced:
            return None, str(result.error)
        output = result.result()
        return (agents[0] if agents else None), (as_text(output) if result.replaced else None)
