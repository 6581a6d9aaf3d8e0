"""Asking a model in a run of pydantic-ai: hooks stand right before it, whether its answer is streamed or not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic_ai import exceptions
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, UserPromptPart
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse, infer_model
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.tools import RunContext

from ...errors import UnknownName
from ...lifecycle import BeforeModel
from ..model import Message
from ..turn import REFUSALS, Asked, Asking, Reply
from ..work import drive
from .messages import plain, prompted, rewrite, spoken, told

if TYPE_CHECKING:
    from ..pydantic_ai import Run


class Request:
    """One request to the model, made as often as it has to be."""

    def __init__(
        self, run: Run, ctx: RunContext[Any], model: Model, messages: Sequence[ModelMessage],
        settings: Any, parameters: ModelRequestParameters, *, streams: bool = False,
    ) -> None:  # fmt: skip
        self.run, self.ctx, self.model, self.name = run, ctx, model, model.model_name
        self.messages = list(messages)
        self.settings, self.parameters, self.streams = settings, parameters, streams
        self._unused: ModelResponse | None = None

    def plain(self) -> list[Message]:
        return plain(self.messages) if self.run.turn is not None and BeforeModel in self.run.turn.heard else []

    async def send(self, asking: Asking) -> ModelResponse:
        if self._unused is not None:
            self._count(self._unused)
        model, messages, parameters = self.prepared(asking)
        if self.streams:
            async with model.request_stream(messages, self.settings, parameters, self.ctx) as stream:
                async for _ in stream:
                    pass
            response = stream.get()
        else:
            response = await model.request(messages, self.settings, parameters)
        self._unused = response
        return response

    def prepared(self, asking: Asking) -> tuple[Model, list[ModelMessage], ModelRequestParameters]:
        """Which model is asked, and with what. What hooks add stays in the conversation."""
        changed = None if asking.messages is None else rewrite(self.messages, asking.messages)
        if asking.context:
            parts = [UserPromptPart(text) for text in asking.context]
            last: Any = self.messages[-1]
            kept: Any = self.ctx.messages[-1]
            self.messages[-1] = replace(last, parts=[*last.parts, *parts])
            kept.parts = [*kept.parts, *parts]
        messages, parameters = changed or self.messages, self.parameters
        if self.run.prompt is not None:
            messages, parameters = prompted(messages, parameters, self.run.prompt)
        model = self.model if asking.model is None else _model_named(asking.model, self.run.models)
        return model, messages, parameters

    def go_on(self, response: ModelResponse, feedback: str) -> None:
        """What the model has said, and what it is told, are part of the conversation."""
        self._count(response)
        self._unused = None
        last: Any = self.messages[-1]
        request = ModelRequest([UserPromptPart(feedback)], instructions=last.instructions)
        for message in (response, request):
            message.run_id, message.conversation_id = self.ctx.run_id, self.ctx.conversation_id
            self.messages.append(message)
            self.ctx.messages.append(message)

    def _count(self, response: ModelResponse) -> None:
        """An answer that pydantic-ai does not get to see was paid for all the same."""
        self.ctx.usage.incr(response.usage)
        self.ctx.usage.requests += 1


class JudgedModel(WrapperModel):
    """Stands right before the model."""

    def __init__(self, wrapped: Model, run: Run, ctx: RunContext[Any]) -> None:
        super().__init__(wrapped)
        self.run, self.ctx = run, ctx

    async def request(
        self, messages: list[ModelMessage], model_settings: Any, model_request_parameters: ModelRequestParameters
    ) -> ModelResponse:
        asked = messages, model_settings, model_request_parameters
        if isinstance(messages[-1], ModelResponse):  # a provider that has paused goes on with what it was asked
            return await self.wrapped.request(*asked)
        with self.run.surely():
            return await self.run.ask(Request(self.run, self.ctx, self.wrapped, *asked))

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: Any,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncIterator[StreamedResponse]:
        asked = messages, model_settings, model_request_parameters
        if isinstance(messages[-1], ModelResponse):
            async with self.wrapped.request_stream(*asked, run_context) as stream:
                yield stream
            return
        request = Request(self.run, self.ctx, self.wrapped, *asked, streams=True)
        with self.run.surely():
            if self.run.buffers:
                yield Replay(model_request_parameters, await self.run.ask(request))
            else:
                async with self._live(request) as stream:
                    yield stream

    @asynccontextmanager
    async def _live(self, request: Request) -> AsyncIterator[StreamedResponse]:
        """The answer as it comes. Nobody objects to what it says."""
        run, turn = self.run, await self.run.begin(self.ctx)
        for attempt in range(1, REFUSALS + 1):
            asking = await drive(turn.before_model(request.name, request.plain(), attempt=attempt))
            if not asking.refused:
                break
        else:
            turn.give_up()
            asking = Asking(answer=turn.said)
        name = asking.model or request.name
        if asking.answer is not None:
            if not turn.over:
                await drive(turn.after_model(name, Reply(asking.answer)))
            yield Replay(request.parameters, spoken(Asked(text=asking.answer), request.parameters))
            return
        model, messages, parameters = request.prepared(asking)
        run.live = name  # should it fail, whoever reads the stream hears of it, and not we
        async with model.request_stream(messages, request.settings, parameters, self.ctx) as stream:
            yield stream
        run.live = None
        await drive(turn.after_model(name, told(stream.get())))


class Replay(StreamedResponse):
    """An answer that is there already, as a stream."""

    def __init__(self, parameters: ModelRequestParameters, response: ModelResponse) -> None:
        super().__init__(parameters)
        self.response = response
        self._usage = response.usage
        self.finish_reason = response.finish_reason

    async def _get_event_iterator(self) -> AsyncIterator[Any]:
        for part in self.response.parts:
            yield self._parts_manager.handle_part(vendor_part_id=None, part=part)

    def get(self) -> ModelResponse:
        return self.response

    async def close_stream(self) -> None:
        pass

    @property
    def model_name(self) -> str:
        return self.response.model_name or ""

    @property
    def provider_name(self) -> str | None:
        return self.response.provider_name

    @property
    def provider_url(self) -> str | None:
        return self.response.provider_url

    @property
    def timestamp(self) -> datetime:
        return self.response.timestamp


def _model_named(name: str, models: Mapping[str, Model | str]) -> Model:
    found = models.get(name, name)
    if not isinstance(found, str):
        return found
    try:
        return infer_model(found)
    except (exceptions.UserError, ValueError):
        raise UnknownName("model", name, models) from None
