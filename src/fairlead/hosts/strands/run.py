"""One request that an agent in Strands works on, or a swarm or a graph, under hooks."""

from __future__ import annotations

from asyncio import CancelledError, Lock
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

from strands.hooks import BeforeInvocationEvent, BeforeNodeCallEvent

from ...errors import FairleadError, Unenforceable
from ...lifecycle import BeforeModel, BeforeOutput, BeforeResponse
from ..model import Message
from ..turn import Asked, Asking, Turn, rewritten
from ..work import Work, drive
from .messages import (
    FORM,
    REASONS,
    blocks_of,
    calls_tools,
    chunks_of,
    merged,
    new_in,
    plain_of,
    readable,
    reply_of,
    said_in,
    text_of,
    unit_of,
    units_of,
    with_context,
)
from .streams import Stream, go

if TYPE_CHECKING:
    from ..strands import Fairlead

FINAL = ("before_response", "before_output")
HELD = ("after_model", *FINAL)
"""Events at which a hook may object to what a model says: nothing of it is streamed before they are over."""


class Run:
    """One request that an agent works on, or a swarm or a graph."""

    def __init__(
        self, fairlead: Fairlead, agent: Any, turn: Turn, parent: Run | None = None, message: str | None = None
    ) -> None:
        self.fairlead, self.agent, self.turn, self.parent = fairlead, agent, turn, parent
        self.message = message
        """What a subagent is to do instead of what it was told."""
        self.event: Any = None
        """With which it began, or goes on."""
        self.system_prompt: str | None = None
        self.feedback: str | None = None
        """With which it is to go on."""
        self.ended = self.stopped = False
        """The turn is over; and whoever has this subagent knows that it has stopped."""
        self.error: FairleadError | None = None
        """Why the request fails, though Strands may not think so."""
        self.asked = False
        """The model was asked under hooks, the last time."""
        self.judged: list[str] = []
        """Calls that hooks have heard of, and Strands has not ended."""
        self.resumes = False
        """It goes on with another invocation."""
        self.direct = False
        """A program calls a tool by itself."""
        self.lock = Lock()  # several nodes of a graph start at once

    def renew(self) -> None:
        """There is to be another turn."""
        self.turn = self.turn.again()
        self.ended = self.stopped = False

    async def begin(self, event: BeforeInvocationEvent, source: str) -> None:
        agent, turn, messages = self.agent, self.turn, event.messages
        given = said_in(messages) if self.message is None else self.message
        about = {"system_prompt": agent.system_prompt, "committed_len": len(agent.messages) + len(messages)}
        try:
            begun = await drive(turn.begin(given, source=source, **about))
        except BaseException as error:
            await drive(self.failed(error))
            raise
        if begun.system_prompt != agent.system_prompt:
            self.system_prompt = begun.system_prompt or ""
        if messages and turn.session.turn_id is None:  # nothing of it is kept; but an answer needs somebody who asked
            event.messages = [{"role": "user", "content": [{"text": "[Message rejected]"}]}]
        elif begun.input != said_in(messages):
            old = messages[: len(messages) - new_in(messages)]
            event.messages = [*old, {"role": "user", "content": blocks_of(begun.input)}]

    async def begin_all(self, event: BeforeNodeCallEvent) -> None:
        """The same for a swarm or a graph, at its first node: what it is about is known now, and not before."""
        async with self.lock:
            if self.event is not None:
                return
            self.event, state = event, event.source.state
            task = readable(state.task)
            try:
                begun = await drive(self.turn.begin(task))
            except FairleadError as error:
                self.error = error
                raise
            if begun.input != task and not self.turn.over:
                state.task = begun.input if isinstance(begun.input, str) else blocks_of(begun.input)

    # --- the model --------------------------------------------------------------------------

    def passes(self) -> bool:
        """Whether the next request to the model is made as it is: nobody listens to any of it."""
        heard = self.turn.heard
        if self.ended or self.system_prompt is not None or BeforeResponse in heard or BeforeOutput in heard:
            return False
        self.asked = self.turn.passes()
        return self.asked

    async def ask(
        self, model: Any, messages: Any, tool_specs: Any, system_prompt: Any, options: dict[str, Any]
    ) -> Stream:
        """One request to the model. What hooks may object to is held back."""
        self.asked = True
        came: list[Asked] = []
        held = self.fairlead.runs.judges(*HELD)
        try:
            if self.ended:  # somebody else has it asked again: that is another turn
                self.renew()
                await drive(self.turn.begin("", source="continuation", system_prompt=system_prompt))
            if self.system_prompt is not None:
                system_prompt = self.system_prompt or None
                options["system_prompt_content"] = blocks_of(system_prompt) if system_prompt else None
            work = self._asking(model, list(messages), lambda model, sent: model.stream(
                sent, tool_specs, system_prompt, **options
            ))  # fmt: skip
            async with aclosing(go(work, came, lambda _: held)) as chunks:
                async for chunk in chunks:
                    yield chunk
            asked = came[0]
            text = await self._last_words(asked)
        except FairleadError as error:
            self.error = error
            raise
        if held or asked.native is None:
            for chunk in chunks_of(asked.native or [], text):
                yield chunk

    def _asking(self, model: Any, given: list[Any], send: Callable[[Any, Any], Any]) -> Work[Asked]:
        turn, fairlead, history = self.turn, self.fairlead, self.agent.messages
        units: list[Any] = []
        plain: list[Message] = []

        def shown() -> list[Message]:
            if BeforeModel in turn.heard:
                units[:] = units_of(given)
                plain[:] = plain_of(units)
            return plain

        def call(asking: Asking) -> Any:
            given[:] = with_context(given, asking.context)
            if asking.context and history and history[-1]["role"] == "user":
                history[-1:] = with_context(history[-1:], asking.context)  # a new message: others may have the old one
            sent = given
            if asking.messages is not None:
                sent = merged(rewritten(units, plain, asking.messages, unit_of))
            return send(model if asking.model is None else fairlead.model_named(asking.model), list(sent))

        return turn.ask(fairlead.name_of(model), shown, call, reply_of)

    async def _last_words(self, asked: Asked) -> str | None:
        """What the model says instead, if it has nothing more to do and a hook wants to have a say in that."""
        forms = any(tool.tool_type == FORM for tool in self.agent.tool_registry.dynamic_tools.values())
        if forms or calls_tools(asked.native) or not self.fairlead.runs.judges(*FINAL):
            return asked.text
        reply = reply_of(asked.native)
        if not self.turn.over:
            self.turn.stop_reason = reply.stop_reason or "end_turn"
        self.feedback = await drive(self.turn.ending())
        if self.feedback is not None:
            return asked.text
        self.ended = True
        ended = await drive(self.turn.end(reply.text if asked.text is None else asked.text))
        return ended.text or "" if ended.changed else asked.text

    # --- the end ----------------------------------------------------------------------------

    async def conclude(self, result: Any) -> str | None:
        """The turn is about to end. With what the agent goes on, if it is to."""
        turn = self.turn
        feedback, self.feedback = self.feedback, None
        if not self.ended:
            reason = "end_turn" if result is None else result.stop_reason
            if not turn.over:
                turn.stop_reason = REASONS.get(reason, "end_turn")
            if feedback is None and reason != "cancelled":
                feedback = await drive(turn.ending(voluntary=reason not in REASONS))
            if feedback is not None:
                return feedback
            await self._end(result)
        if self.parent is None:
            return None
        self.stopped = True
        return await drive(self.parent.turn.helper_stops(turn))

    async def _end(self, result: Any) -> None:
        """The turn is over, and no hook has had a say in its last words yet, if any wants to."""
        form = getattr(result, FORM, None)
        text = text_of(result.message["content"]) if result is not None else None
        text = text if form is None else form.model_dump_json()
        self.ended = True
        ended = await drive(self.turn.end(text))
        if not ended.changed or (not ended.text and not text):
            return
        if form is not None:
            raise Unenforceable(f"Strands gives {type(form).__name__} as it is; a hook wants it to be {ended.text!r}")
        if result is not None:
            calls = [block for block in result.message["content"] if "toolUse" in block]  # whose results are there
            result.message["content"] = [*blocks_of(ended.text or ""), *calls]

    async def end_all(self) -> None:
        """A swarm or a graph is done. What its last agent says was judged when it said it."""
        last = list(self.agent.state.results.values())[-1:]
        text = "\n".join(text_of(one.message["content"]) for node in last for one in node.get_agent_results())
        ended = await drive(self.turn.end(text))
        if ended.changed and not self.turn.over:
            raise Unenforceable("what a swarm or a graph gives is what its agents give; change that")

    def failed(self, error: BaseException | None) -> Work[None]:
        """The request is over early."""
        error = getattr(error, "original_exception", None) or error  # Strands wraps what happens in a second request
        if error is None or isinstance(error, GeneratorExit):
            error = CancelledError()
        yield from self.turn.failed(error)
        if self.parent is not None:
            if isinstance(error, FairleadError):
                self.parent.error = error  # the tool that this agent is would make a result of it
            if not self.stopped:
                self.stopped = True
                with suppress(FairleadError):  # what ended it is what the parent should hear of
                    yield from self.parent.turn.helper_stops(self.turn)
