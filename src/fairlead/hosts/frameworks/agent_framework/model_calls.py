"""Requests to the model in Microsoft Agent Framework: what is sent, and what becomes of the answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agent_framework import (
    ChatContext,
    ChatResponse,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    add_usage_details,
)

from ....errors import UnknownName
from ....lifecycle import BeforeModel
from ..adapter import judge_live_request
from ..flow import run_flow
from ..messages import Message as Plain
from ..turn import ModelCall, ModelResult
from . import messages

if TYPE_CHECKING:
    from .tool_calls import MiddlewareState

    Next = Callable[[], Awaitable[None]]


async def call_model(state: MiddlewareState, context: ChatContext, call_next: Next) -> None:
    """Make one request to the model, in place of the framework."""
    turn = state.turn
    if context.stream or state.prompt is not None or not turn.passes():
        await AgentFrameworkRequest(state, context, call_next).run()
        return
    await call_next()
    if context.result is not None:
        state.calls = messages.contents_of(context.result.messages, "function_call")


class AgentFrameworkRequest:
    """One request to the model. It is repeated when a hook refuses the answer."""

    def __init__(self, state: MiddlewareState, context: ChatContext, call_next: Next) -> None:
        self.state, self.turn, self.context, self.call_next = state, state.turn, context, call_next
        self.messages: list[Message] = list(context.messages)
        self.options: dict[str, Any] = dict(context.options or {})
        self.name: str | None = self.options.get("model") or getattr(context.client, "model", None)
        self.kept = bool(self.options.get("conversation_id"))  # by the service, which stores the conversation
        self.usage: Any = None  # of answers that a hook refused
        self.final: ChatResponse | None = None
        if state.prompt is not None:
            own, changed = state.prompt
            sent = self.options.pop("instructions", None) or ""
            if prompt := changed + sent[len(own) :] if sent.startswith(own) else changed:
                self.options["instructions"] = prompt

    async def run(self) -> None:
        context, turn = self.context, self.turn
        if context.stream and not turn.sessions.judges("after_model"):
            await self._live()
            return
        result = await run_flow(turn.ask(self.name, self._plain, self._whole, messages.reply_of))
        response = self._answer(result)
        self.state.calls = messages.contents_of(response.messages, "function_call")
        context.result = replay(messages.chat_updates(response), self._assembled) if context.stream else response

    async def _live(self) -> None:
        """Stream the answer live. Hooks may refuse the request, but none judges the answer."""
        turn = self.turn
        call = await run_flow(judge_live_request(turn, self.name, self._plain))
        name = call.model or self.name
        if call.answer is not None:
            response = self._answer(ModelResult(text=call.answer))
            self.context.result = replay(messages.chat_updates(response), lambda _: response)
            return
        try:
            stream = await self._send(call)
        except Exception as error:
            await run_flow(turn.model_failed(name, error))
            raise
        self.context.result = ResponseStream(self._watched(stream, name), finalizer=lambda _: self.final)

    async def _watched(self, stream: Any, name: str | None) -> AsyncIterator[Any]:
        try:
            async for update in stream:
                yield update
            final = self.final = await stream.get_final_response()
        except GeneratorExit:
            await close(stream)
            raise
        except Exception as error:
            await run_flow(self.turn.model_failed(name, error))
            raise
        self.state.calls = messages.contents_of(final.messages, "function_call")
        await run_flow(self.turn.after_model(name, messages.reply_of(final)))

    # --- what the model is sent -------------------------------------------------------------

    def _with_context(self) -> list[Message]:
        return self.messages if self.kept else self.turn.with_injected(self.messages, messages.user)

    def _plain(self) -> list[Plain]:
        return messages.plain(self._with_context()) if BeforeModel in self.turn.subscribed_steps else []

    async def _whole(self, call: ModelCall) -> ChatResponse:
        """The model's whole answer, also where it is streamed."""
        if self.final is not None:  # a hook refused this answer, but it was paid for
            self.usage = add_usage_details(self.usage, self.final.usage_details)
        found = await self._send(call)
        if self.context.stream:
            async for _ in found:
                pass
            found = await found.get_final_response()
        self.final = found
        return found

    async def _send(self, call: ModelCall) -> Any:
        context, known, options = self.context, self._with_context(), self.options
        texts = [messages.user(text) for text in call.context]
        sent = [*known, *texts] if call.messages is None else messages.rewrite([*known, *texts], call.messages)
        if not self.kept:
            self.turn.place(len(self.messages), call.context)
        other = None
        if call.model is not None:
            other = self.state.models.get(call.model, call.model)
            options = {key: value for key, value in options.items() if key != "model"}
            if isinstance(other, str):
                options["model"], other = other, None
        context.messages, context.options = sent, options
        if other is not None:
            return await self._switched(other, sent, options)
        await self.call_next()
        return context.result

    async def _switched(self, client: Any, messages: Sequence[Message], options: dict[str, Any]) -> Any:
        """The answer of another client. The agent's own client still runs the tools."""
        context = self.context
        if not hasattr(client, "get_response"):
            raise UnknownName("model", client, self.state.models)
        below: Any = super(FunctionInvocationLayer, client) if isinstance(client, FunctionInvocationLayer) else client
        kwargs = dict(context.kwargs)
        result = below.get_response(
            messages=messages, stream=context.stream, options=options,
            compaction_strategy=kwargs.pop("compaction_strategy", None), tokenizer=kwargs.pop("tokenizer", None),
            function_invocation_kwargs=context.function_invocation_kwargs, client_kwargs=kwargs,
        )  # fmt: skip
        return result if context.stream else await result

    # --- what it answers --------------------------------------------------------------------

    def _answer(self, result: ModelResult) -> ChatResponse:
        """The answer, with the text that hooks give it."""
        if result.native is None:
            response = ChatResponse(messages=[Message("assistant", [result.text or ""])], model=self.name)
        else:
            response = result.native
            if result.text is not None:
                response = messages.with_text(response, result.text, self.options)
        if self.usage is not None:
            response.usage_details = add_usage_details(self.usage, response.usage_details)
        return response

    def _assembled(self, updates: Sequence[Any]) -> ChatResponse:
        return ChatResponse.from_updates(updates, output_format_type=self.options.get("response_format"))


def replay(updates: Iterable[Any], finalizer: Callable[[Sequence[Any]], Any]) -> ResponseStream:
    """A complete answer, as a stream."""

    async def stream() -> AsyncIterator[Any]:
        for update in updates:
            yield update

    return ResponseStream(stream(), finalizer=finalizer)


async def close(stream: Any) -> None:
    """Close a stream. Errors of the framework's own telemetry are ignored."""
    with suppress(Exception):
        if hasattr(stream, "close"):  # not in the oldest versions
            await stream.close()
