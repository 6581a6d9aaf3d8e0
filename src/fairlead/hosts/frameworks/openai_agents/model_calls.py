"""Requests to the model in the OpenAI Agents SDK: wrappers of its models, under hooks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

from agents import Model, ModelBehaviorError, ModelProvider, ModelResponse, Usage

from ....lifecycle import BeforeModel
from ..messages import Message
from ..turn import ModelCall, Turn, rewritten
from .messages import completed_of, delta_of, items_of, message_of, plain, text_of, user_message
from .tool_calls import current

JUDGING = ("after_model", "before_response", "before_output")
"""Events at which a hook may refuse or change an answer. If there is such a hook, the answer is not streamed live."""


class GuardedProvider(ModelProvider):  # type: ignore[misc]
    """Wraps the models of another provider."""

    def __init__(self, inner: Any) -> None:
        self.inner: Any = inner.inner if isinstance(inner, GuardedProvider) else inner

    def get_model(self, model_name: str | None) -> Any:
        return GuardedModel(self.inner.get_model(model_name), model_name)

    def __getattr__(self, name: str) -> Any:
        if name == "inner" or name.startswith("__"):  # while it is being copied
            raise AttributeError(name)
        return getattr(self.inner, name)

    async def aclose(self) -> None:
        if hasattr(self.inner, "aclose"):
            await self.inner.aclose()


class GuardedModel(Model):  # type: ignore[misc]
    """Wraps a model: hooks judge each request right before it is made."""

    def __init__(self, inner: Any, name: str | None = None) -> None:
        self.inner: Any = inner.inner if isinstance(inner, GuardedModel) else inner
        found = getattr(self.inner, "model", None)
        self.name = found if isinstance(found, str) else name or type(self.inner).__name__

    def __getattr__(self, name: str) -> Any:
        if name == "inner" or name.startswith("__"):  # while it is being copied
            raise AttributeError(name)
        return getattr(self.inner, name)

    async def close(self) -> None:
        await self.inner.close()

    def get_retry_advice(self, request: Any) -> Any:
        return self.inner.get_retry_advice(request)

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self.inner._cleanup_on_run_end(owner)

    async def get_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, output_schema: Any,
        handoffs: Any, tracing: Any, **rest: Any,
    ) -> Any:  # fmt: skip
        arguments = {
            "system_instructions": system_instructions, "input": input, "model_settings": model_settings,
            "tools": tools, "output_schema": output_schema, "handoffs": handoffs, "tracing": tracing, **rest,
        }  # fmt: skip
        run = current()
        return await run.call_model(OpenAIRequest(run, self, arguments))

    async def stream_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, output_schema: Any,
        handoffs: Any, tracing: Any, **rest: Any,
    ) -> AsyncIterator[Any]:  # fmt: skip
        arguments = {
            "system_instructions": system_instructions, "input": input, "model_settings": model_settings,
            "tools": tools, "output_schema": output_schema, "handoffs": handoffs, "tracing": tracing, **rest,
        }  # fmt: skip
        run = current()
        events: asyncio.Queue[Any] = asyncio.Queue()
        request = OpenAIRequest(run, self, arguments, events.put_nowait)
        task = asyncio.get_running_loop().create_task(run.call_model(request))
        task.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            yield request.completed(await task)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])


class OpenAIRequest:
    """One request to the model. It is repeated when a hook refuses the answer or extends the turn."""

    def __init__(
        self, run: Any, model: GuardedModel, arguments: dict[str, Any], sink: Callable[[Any], None] | None = None
    ) -> None:
        self.run, self.model, self.name, self.arguments, self.sink = run, model.inner, model.name, arguments, sink
        items = arguments["input"]
        self.items: list[Any] = [user_message(items)] if isinstance(items, str) else list(items)
        self.remembered = bool(arguments.get("conversation_id"))  # by the provider, also what was just sent
        self.elsewhere = bool(self.remembered or arguments.get("previous_response_id"))
        self.native: list[Any] = []
        self.shown: list[Message] = []
        self.kept: list[Any] = []  # the answers of this request before a hook extended the turn
        self.usage: Any = None
        self.holds = sink is not None and run.fairlead.sessions.judges(*JUDGING)
        self.held: list[Any] = []
        self.last: Any = None

    def plain(self) -> list[Message]:
        turn = self.run.turn
        self.native = turn.with_injected(self.items, user_message) if turn.placed else self.items
        if BeforeModel not in turn.subscribed_steps:
            return []
        tools: dict[str, str] = {}
        self.shown = [plain(item, tools) for item in self.native]
        return self.shown

    async def send(self, call: ModelCall) -> Any:
        if call.messages is None:
            items = [*self.native, *map(user_message, call.context)]
        else:
            units = rewritten([[item] for item in self.native], self.shown, call.messages, items_of)
            items = [item for unit in units for item in unit]
        if self.elsewhere:  # the provider stores the conversation
            self.items += map(user_message, call.context)
        else:
            self.run.turn.place(len(self.items), call.context)
        arguments = {**self.arguments, "input": items}
        if self.run.prompt is not None:
            arguments["system_instructions"] = self.run.prompt or None
        model = self.model if call.model is None else self.run.model_named(call.model)
        response = await (model.get_response(**arguments) if self.sink is None else self._streamed(model, arguments))
        if self.remembered:
            self.items = []
        if self.usage is None:
            self.usage = response.usage
        else:  # an answer that is not used was paid for, too
            total = Usage()
            total.add(self.usage)
            total.add(response.usage)
            self.usage = total
        return response

    async def _streamed(self, model: Any, arguments: dict[str, Any]) -> Any:
        self.held, self.last = [], None
        sink: Callable[[Any], None] = self.sink or self.held.append
        send = self.held.append if self.holds else sink
        done: list[Any] = []
        async for event in model.stream_response(**arguments):
            if event.type in ("response.completed", "response.incomplete"):
                self.last = event
                continue
            if event.type == "response.output_item.done":
                done.append(event.item)
            (send if event.type not in ("response.failed", "error") else sink)(event)
        if self.last is None:
            raise ModelBehaviorError("the model's stream ended without an answer")
        final = self.last.response
        if not final.output and done:
            final.output = done
        usage = Usage(requests=1)
        if final.usage is not None:
            usage = Usage(
                requests=1, input_tokens=final.usage.input_tokens, output_tokens=final.usage.output_tokens,
                total_tokens=final.usage.total_tokens,
            )  # fmt: skip
        return ModelResponse(final.output, usage, final.id)

    def release(self, response: Any, native: Any) -> None:
        """Stream what was held back, or the text that a hook gives instead."""
        if self.sink is None:
            return
        if response is native:
            for event in self.held:
                self.sink(event)
        elif text := text_of(response):
            self.sink(delta_of(text))
        self.held = []

    def extend(self, response: Any, feedback: str, turn: Turn) -> None:
        """Add the answer and the feedback to the conversation, for another request."""
        self.kept += response.output
        if not self.remembered:
            self.items += response.to_input_items()
        if self.elsewhere:
            self.items.append(user_message(feedback))
        else:
            turn.place(len(self.items), [feedback])

    def complete(self, response: Any) -> Any:
        """The answer that the SDK gets: with all usage, and all earlier answers of this request."""
        if self.usage is not None and self.usage is not response.usage:
            response = replace(response, usage=self.usage)
        return replace(response, output=[*self.kept, *response.output]) if self.kept else response

    def completed(self, response: Any) -> Any:
        """The last event of the stream."""
        if self.last is None:
            return completed_of(response.output)
        final = self.last.response
        if final.output == response.output:
            return self.last
        changes: dict[str, Any] = {"output": list(response.output)}
        if final.usage is not None:
            count = ("input_tokens", "output_tokens", "total_tokens")
            changes["usage"] = final.usage.model_copy(update={name: getattr(response.usage, name) for name in count})
        return self.last.model_copy(update={"response": final.model_copy(update=changes)})


class FixedReply(Model):  # type: ignore[misc]
    """A model that always answers with the same text. It stands in where hooks refuse the request."""

    def __init__(self, text: str) -> None:
        self.text = text

    async def get_response(self, *args: Any, **rest: Any) -> Any:
        return ModelResponse([message_of(self.text)], Usage(), None)

    async def stream_response(self, *args: Any, **rest: Any) -> AsyncIterator[Any]:
        if self.text:
            yield delta_of(self.text)
        yield completed_of([message_of(self.text)])
