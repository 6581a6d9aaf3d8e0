"""Asking a model in Microsoft Agent Framework: what it is sent, and what becomes of its answer."""

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

from ...errors import UnknownName
from ...lifecycle import BeforeModel
from ..model import Message as Plain
from ..turn import REFUSALS, Asked, Asking, Reply
from ..work import drive
from . import messages as said

if TYPE_CHECKING:
    from .tools import Loop

    Next = Callable[[], Awaitable[None]]


async def ask_model(loop: Loop, context: ChatContext, call_next: Next) -> None:
    """One request to the model, in place of the framework's."""
    turn = loop.turn
    if context.stream or loop.prompt is not None or not turn.passes():
        await Request(loop, context, call_next).work()
        return
    await call_next()
    if context.result is not None:
        loop.wanted = said.contents_of(context.result.messages, "function_call")


class Request:
    """One request to the model, as often as it has to be made."""

    def __init__(self, loop: Loop, context: ChatContext, call_next: Next) -> None:
        self.loop, self.turn, self.context, self.call_next = loop, loop.turn, context, call_next
        self.messages: list[Message] = list(context.messages)
        self.options: dict[str, Any] = dict(context.options or {})
        self.name: str | None = self.options.get("model") or getattr(context.client, "model", None)
        self.kept = bool(self.options.get("conversation_id"))  # by the service, which remembers what it was told
        self.spent: Any = None
        self.final: ChatResponse | None = None
        if loop.prompt is not None:
            own, wanted = loop.prompt
            told = self.options.pop("instructions", None) or ""
            if prompt := wanted + told[len(own) :] if told.startswith(own) else wanted:
                self.options["instructions"] = prompt

    async def work(self) -> None:
        context, turn = self.context, self.turn
        if context.stream and not turn.runs.judges("after_model"):
            await self._live()
            return
        asked = await drive(turn.ask(self.name, self._plain, self._whole, said.read))
        response = self._answer(asked)
        self.loop.wanted = said.contents_of(response.messages, "function_call")
        context.result = replay(said.chat_updates(response), self._assembled) if context.stream else response

    async def _live(self) -> None:
        """The answer as it comes. Nobody may object to it, but to its being asked for."""
        turn = self.turn
        for attempt in range(1, REFUSALS + 1):
            asking = await drive(turn.before_model(self.name, self._plain(), attempt=attempt))
            if not asking.refused:
                break
        else:
            turn.give_up()
            asking = Asking(answer=turn.said or "")
        name = asking.model or self.name
        if asking.answer is not None:
            if not turn.over:
                await drive(turn.after_model(name, Reply(asking.answer)))
            response = self._answer(Asked(text=asking.answer))
            self.context.result = replay(said.chat_updates(response), lambda _: response)
            return
        try:
            stream = await self._send(asking)
        except Exception as error:
            await drive(turn.model_failed(name, error))
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
            await drive(self.turn.model_failed(name, error))
            raise
        self.loop.wanted = said.contents_of(final.messages, "function_call")
        await drive(self.turn.after_model(name, said.read(final)))

    # --- what the model is sent -------------------------------------------------------------

    def _woven(self) -> list[Message]:
        return self.messages if self.kept else self.turn.woven(self.messages, said.user)

    def _plain(self) -> list[Plain]:
        return said.plain(self._woven()) if BeforeModel in self.turn.heard else []

    async def _whole(self, asking: Asking) -> ChatResponse:
        """The model's answer, all of it."""
        if self.final is not None:  # which was refused, and paid for
            self.spent = add_usage_details(self.spent, self.final.usage_details)
        found = await self._send(asking)
        if self.context.stream:
            async for _ in found:
                pass
            found = await found.get_final_response()
        self.final = found
        return found

    async def _send(self, asking: Asking) -> Any:
        context, woven, options = self.context, self._woven(), self.options
        texts = [said.user(text) for text in asking.context]
        sent = [*woven, *texts] if asking.messages is None else said.rewrite([*woven, *texts], asking.messages)
        if not self.kept:
            self.turn.place(len(self.messages), asking.context)
        other = None
        if asking.model is not None:
            other = self.loop.models.get(asking.model, asking.model)
            options = {key: value for key, value in options.items() if key != "model"}
            if isinstance(other, str):
                options["model"], other = other, None
        context.messages, context.options = sent, options
        if other is not None:
            return await self._switched(other, sent, options)
        await self.call_next()
        return context.result

    async def _switched(self, client: Any, messages: Sequence[Message], options: dict[str, Any]) -> Any:
        """Another client's answer. The tools are still called where they always are."""
        context = self.context
        if not hasattr(client, "get_response"):
            raise UnknownName("model", client, self.loop.models)
        below: Any = super(FunctionInvocationLayer, client) if isinstance(client, FunctionInvocationLayer) else client
        kwargs = dict(context.kwargs)
        result = below.get_response(
            messages=messages, stream=context.stream, options=options,
            compaction_strategy=kwargs.pop("compaction_strategy", None), tokenizer=kwargs.pop("tokenizer", None),
            function_invocation_kwargs=context.function_invocation_kwargs, client_kwargs=kwargs,
        )  # fmt: skip
        return result if context.stream else await result

    # --- what it answers --------------------------------------------------------------------

    def _answer(self, asked: Asked) -> ChatResponse:
        """The answer, with the words that hooks want."""
        if asked.native is None:
            response = ChatResponse(messages=[Message("assistant", [asked.text or ""])], model=self.name)
        else:
            response = asked.native
            if asked.text is not None:
                response = said.with_text(response, asked.text, self.options)
        if self.spent is not None:
            response.usage_details = add_usage_details(self.spent, response.usage_details)
        return response

    def _assembled(self, updates: Sequence[Any]) -> ChatResponse:
        return ChatResponse.from_updates(updates, output_format_type=self.options.get("response_format"))


def replay(updates: Iterable[Any], finalizer: Callable[[Sequence[Any]], Any]) -> ResponseStream:
    """An answer that is there already, as a stream."""

    async def stream() -> AsyncIterator[Any]:
        for update in updates:
            yield update

    return ResponseStream(stream(), finalizer=finalizer)


async def close(stream: Any) -> None:
    """Give up a stream. The framework's own telemetry may object to the moment."""
    with suppress(Exception):
        if hasattr(stream, "close"):  # not in the oldest versions
            await stream.close()
