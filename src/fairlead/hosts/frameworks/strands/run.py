"""A request that an agent in Strands works on, or a swarm or a graph, under hooks."""

from __future__ import annotations

from asyncio import CancelledError, Lock
from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from strands.hooks import BeforeInvocationEvent, BeforeNodeCallEvent

from ....errors import FairleadError, Unenforceable
from ....lifecycle import BeforeModel, BeforeOutput, BeforeResponse
from ..adapter import AgentRun
from ..flow import Flow, run_flow
from ..messages import Message
from ..turn import ModelCall, ModelResult, Turn, rewritten
from .messages import (
    FORM,
    REASONS,
    blocks_of,
    calls_tools,
    chunks_of,
    input_of,
    is_form,
    merged,
    new_in,
    plain_of,
    readable,
    reply_of,
    text_of,
    unit_of,
    units_of,
    with_context,
)
from .streams import Stream, Streamed, stream_flow

if TYPE_CHECKING:
    from . import Fairlead

FINAL = ("before_response", "before_output")
HELD = ("after_model", *FINAL)
"""Events at which a hook may refuse or change an answer. If there is such a hook, the answer is not streamed live."""


class StrandsRun(AgentRun):
    """A request that an agent works on, or a swarm or a graph."""

    def __init__(self, fairlead: Fairlead, agent: Any, turn: Turn | None = None) -> None:
        self.fairlead, self.agent = fairlead, agent
        if turn is not None:
            self.turn = turn
        self.parent: StrandsRun | None = None
        self.message: Any = None
        """The message that hooks gave a subagent in place of its own."""
        self.event: Any = None
        """The event with which it began, or was resumed."""
        self.invocation: Any = None
        """The event with which a swarm or a graph was called."""
        self.system_prompt: str | None = None
        """The system prompt that hooks want instead."""
        self.feedback: str | None = None
        """The message with which it continues."""
        self.error: FairleadError | None = None
        """Why the request fails, though Strands may not know it."""
        self.model_seen = False
        """Whether the last request to the model went through hooks."""
        self.judged: list[str] = []
        """The ids of calls that hooks have judged, and that Strands has not ended."""
        self.resumes = False
        """Whether it continues with another invocation."""
        self.direct = False
        """Whether a program calls a tool by itself."""
        self.lock = Lock()  # several nodes of a graph start at once

    async def begin(self, event: BeforeInvocationEvent, source: str) -> None:
        agent, turn, messages = self.agent, self.turn, event.messages
        message = input_of(messages) if self.message is None else self.message
        about = {"system_prompt": agent.system_prompt, "committed_len": len(agent.messages) + len(messages)}
        try:
            turn_input = await run_flow(turn.begin(message, source=source, **about))
        except BaseException as error:
            await run_flow(self.fail(error))
            raise
        if turn_input.system_prompt != agent.system_prompt:
            self.system_prompt = turn_input.system_prompt or ""
        if messages and turn.session.turn_id is None:  # the input is refused and not kept, but a reply needs one
            event.messages = [{"role": "user", "content": [{"text": "[Message rejected]"}]}]
        elif turn_input.input != input_of(messages):
            old = messages[: len(messages) - new_in(messages)]
            event.messages = [*old, {"role": "user", "content": blocks_of(turn_input.input)}]

    async def begin_all(self, event: BeforeNodeCallEvent) -> None:
        """Begin the turn of a swarm or a graph, at its first node: only then is its task known."""
        async with self.lock:
            if self.event is not None:
                return
            self.event, state = event, event.source.state
            task = readable(state.task)
            try:
                turn_input = await run_flow(self.turn.begin(task))
            except FairleadError as error:
                self.error = error
                raise
            if turn_input.input != task and not self.turn.over:
                state.task = turn_input.input if isinstance(turn_input.input, str) else blocks_of(turn_input.input)

    # --- the model --------------------------------------------------------------------------

    def passes(self) -> bool:
        """Whether the next request to the model is made as it is: no hook subscribes to any part of it."""
        steps = self.turn.subscribed_steps
        if self.ended or self.system_prompt is not None or BeforeResponse in steps or BeforeOutput in steps:
            return False
        self.model_seen = self.turn.passes()
        return self.model_seen

    async def call_model(
        self, model: Any, messages: Any, tool_specs: Any, system_prompt: Any, options: dict[str, Any]
    ) -> Stream:
        """Make one request to the model. What a hook may refuse or change is held back."""
        self.model_seen = True
        results: list[ModelResult] = []
        held = self.fairlead.sessions.judges(*HELD)
        try:
            if self.ended:  # other code resumes the agent: that is another turn
                self.renew()
                await run_flow(self.turn.begin("", source="continuation", system_prompt=system_prompt))
            if self.system_prompt is not None:
                system_prompt = self.system_prompt or None
                options["system_prompt_content"] = blocks_of(system_prompt) if system_prompt else None
            flow = self._model_flow(model, list(messages), lambda model, sent: model.stream(
                sent, tool_specs, system_prompt, **options
            ))  # fmt: skip
            async with aclosing(stream_flow(flow, results, lambda _: held)) as chunks:
                async for chunk in chunks:
                    yield chunk
            result = results[0]
            text = await self._final_text(result)
        except FairleadError as error:
            self.error = error
            raise
        if held or result.native is None:
            for chunk in chunks_of(result.native or [], text):
                yield chunk

    def _model_flow(self, model: Any, messages: list[Any], send: Callable[[Any, Any], Any]) -> Flow[ModelResult]:
        turn, fairlead, history = self.turn, self.fairlead, self.agent.messages
        units: list[Any] = []
        plain: list[Message] = []

        def shown() -> list[Message]:
            if BeforeModel in turn.subscribed_steps:
                units[:] = units_of(messages)
                plain[:] = plain_of(units)
            return plain

        def call(request: ModelCall) -> Any:
            messages[:] = with_context(messages, request.context)
            if request.context and history and history[-1]["role"] == "user":
                history[-1:] = with_context(history[-1:], request.context)  # a new message: others may hold the old one
            sent = messages
            if request.messages is not None:
                sent = merged(rewritten(units, plain, request.messages, unit_of))
            return Streamed(send(model if request.model is None else fairlead.model_named(request.model), list(sent)))

        return turn.ask(fairlead.name_of(model), shown, call, reply_of)

    async def _final_text(self, result: ModelResult) -> str | None:
        """The text to use instead of the model's, if the reply is final and a hook may change it."""
        forms = any(is_form(tool) for tool in self.agent.tool_registry.dynamic_tools.values())
        if forms or calls_tools(result.native) or not self.fairlead.sessions.judges(*FINAL):
            return result.text
        reply = reply_of(result.native)
        if not self.turn.over:
            self.turn.stop_reason = reply.stop_reason or "end_turn"
        self.feedback = await run_flow(self.turn.ending())
        if self.feedback is not None:
            return result.text
        output = await run_flow(self.end(reply.text if result.text is None else result.text))
        return output.text or "" if output.changed else result.text

    # --- the end ----------------------------------------------------------------------------

    async def conclude(self, result: Any) -> str | None:
        """End the turn. Gives the message with which the agent continues, if it is to."""
        turn = self.turn
        feedback, self.feedback = self.feedback, None
        if not self.ended:
            reason = "end_turn" if result is None else result.stop_reason
            if not turn.over:
                turn.stop_reason = REASONS.get(reason, "end_turn")
            if feedback is None and reason != "cancelled":
                feedback = await run_flow(turn.ending(voluntary=reason not in REASONS))
            if feedback is not None:
                return feedback
            await self._end_with(result)
        return await run_flow(self.stop())

    async def _end_with(self, result: Any) -> None:
        """End the turn with what the agent gives, as no hook has judged that yet."""
        form = getattr(result, FORM, None)
        text = text_of(result.message["content"]) if result is not None else None
        text = text if form is None else form.model_dump_json()
        output = await run_flow(self.end(text))
        if not output.changed or (not output.text and not text):
            return
        if form is not None:
            raise Unenforceable(f"Strands gives {type(form).__name__} as it is; a hook wants it to be {output.text!r}")
        if result is not None:
            calls = [block for block in result.message["content"] if "toolUse" in block]  # their results stay, too
            result.message["content"] = [*blocks_of(output.text or ""), *calls]

    async def end_all(self) -> None:
        """End the turn of a swarm or a graph. Hooks have judged what its last agent says."""
        last = list(self.agent.state.results.values())[-1:]
        text = "\n".join(text_of(one.message["content"]) for node in last for one in node.get_agent_results())
        output = await run_flow(self.turn.end(text))
        if output.changed and not self.turn.over:
            raise Unenforceable("what a swarm or a graph gives is what its agents give; change that")

    def fail(self, error: BaseException | None) -> Flow[None]:
        error = getattr(error, "original_exception", None) or error  # Strands wraps errors of a second request
        if error is None or isinstance(error, GeneratorExit):
            error = CancelledError()
        if self.parent is not None and isinstance(error, FairleadError):
            self.parent.error = error  # Strands would make a tool's result of it
        yield from super().fail(error)
