"""Requests to the model in pydantic-ai: hooks judge each right before it is made, streamed or not."""

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

from ....errors import UnknownName
from ....lifecycle import BeforeModel
from ..adapter import judge_live_request
from ..flow import run_flow
from ..messages import Message
from ..turn import ModelCall, ModelResult
from .messages import plain, reply_of, response_from, rewrite, with_system_prompt

if TYPE_CHECKING:
    from . import PydanticAIRun


class PydanticAIRequest:
    """One request to the model. It is repeated when a hook refuses the answer or extends the turn."""

    def __init__(
        self, run: PydanticAIRun, ctx: RunContext[Any], model: Model, messages: Sequence[ModelMessage],
        settings: Any, parameters: ModelRequestParameters, *, streams: bool = False,
    ) -> None:  # fmt: skip
        self.run, self.ctx, self.model, self.name = run, ctx, model, model.model_name
        self.messages = list(messages)
        self.settings, self.parameters, self.streams = settings, parameters, streams
        self._unused: ModelResponse | None = None

    def plain(self) -> list[Message]:
        return plain(self.messages) if BeforeModel in self.run.turn.subscribed_steps else []

    async def send(self, call: ModelCall) -> ModelResponse:
        if self._unused is not None:
            self._count(self._unused)
        model, messages, parameters = self.prepared(call)
        if self.streams:
            async with model.request_stream(messages, self.settings, parameters, self.ctx) as stream:
                async for _ in stream:
                    pass
            response = stream.get()
        else:
            response = await model.request(messages, self.settings, parameters)
        self._unused = response
        return response

    def prepared(self, call: ModelCall) -> tuple[Model, list[ModelMessage], ModelRequestParameters]:
        """The model to call, and what it is sent. Context that hooks add stays in the conversation."""
        changed = None if call.messages is None else rewrite(self.messages, call.messages)
        if call.context:
            parts = [UserPromptPart(text) for text in call.context]
            last: Any = self.messages[-1]
            kept: Any = self.ctx.messages[-1]
            self.messages[-1] = replace(last, parts=[*last.parts, *parts])
            kept.parts = [*kept.parts, *parts]
        messages, parameters = changed or self.messages, self.parameters
        if self.run.prompt is not None:
            messages, parameters = with_system_prompt(messages, parameters, self.run.prompt)
        model = self.model if call.model is None else _model_named(call.model, self.run.models)
        return model, messages, parameters

    def extend(self, response: ModelResponse, feedback: str) -> None:
        """Add the answer and the feedback to the conversation, for another request."""
        self._count(response)
        self._unused = None
        last: Any = self.messages[-1]
        request = ModelRequest([UserPromptPart(feedback)], instructions=last.instructions)
        for message in (response, request):
            message.run_id, message.conversation_id = self.ctx.run_id, self.ctx.conversation_id
            self.messages.append(message)
            self.ctx.messages.append(message)

    def _count(self, response: ModelResponse) -> None:
        """Count the usage of an answer that pydantic-ai does not get to see."""
        self.ctx.usage.incr(response.usage)
        self.ctx.usage.requests += 1


class JudgedModel(WrapperModel):
    """Wraps the model. It is the innermost wrapper."""

    def __init__(self, wrapped: Model, run: PydanticAIRun, ctx: RunContext[Any]) -> None:
        super().__init__(wrapped)
        self.run, self.ctx = run, ctx

    async def request(
        self, messages: list[ModelMessage], model_settings: Any, model_request_parameters: ModelRequestParameters
    ) -> ModelResponse:
        request = messages, model_settings, model_request_parameters
        if isinstance(messages[-1], ModelResponse):  # a provider that has paused continues the same request
            return await self.wrapped.request(*request)
        with self.run.surely():
            return await self.run.call_model(PydanticAIRequest(self.run, self.ctx, self.wrapped, *request))

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: Any,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncIterator[StreamedResponse]:
        request = messages, model_settings, model_request_parameters
        if isinstance(messages[-1], ModelResponse):
            async with self.wrapped.request_stream(*request, run_context) as stream:
                yield stream
            return
        judged = PydanticAIRequest(self.run, self.ctx, self.wrapped, *request, streams=True)
        with self.run.surely():
            if self.run.buffers:
                yield Replay(model_request_parameters, await self.run.call_model(judged))
            else:
                async with self._live(judged) as stream:
                    yield stream

    @asynccontextmanager
    async def _live(self, request: PydanticAIRequest) -> AsyncIterator[StreamedResponse]:
        """Stream the answer live. Hooks may refuse the request, but none judges the answer."""
        run, turn = self.run, await self.run.begin(self.ctx)
        call = await run_flow(judge_live_request(turn, request.name, request.plain))
        if call.answer is not None:
            yield Replay(request.parameters, response_from(ModelResult(text=call.answer), request.parameters))
            return
        name = call.model or request.name
        model, messages, parameters = request.prepared(call)
        run.live = name  # if it fails, the reader of the stream gets the error, and the run reports it
        async with model.request_stream(messages, request.settings, parameters, self.ctx) as stream:
            yield stream
        run.live = None
        await run_flow(turn.after_model(name, reply_of(stream.get())))


class Replay(StreamedResponse):
    """A complete answer, as a stream."""

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
