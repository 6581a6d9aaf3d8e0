"""What stands between the OpenAI Agents SDK and its models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

from agents import Model, ModelBehaviorError, ModelProvider, ModelResponse, Usage

from ...lifecycle import BeforeModel
from ..model import Message
from ..turn import Asking, Turn, rewritten
from .call import current
from .messages import completed_of, delta_of, items_of, message_of, plain, text_of, user_message

JUDGING = ("after_model", "before_response", "before_output")
"""Events at which a hook may still object to an answer: none of it is streamed before they are over."""


class GuardedProvider(ModelProvider):  # type: ignore[misc]
    """Gives models that come to us first."""

    def __init__(self, inner: Any) -> None:
        self.inner: Any = inner.inner if isinstance(inner, GuardedProvider) else inner

    def get_model(self, model_name: str | None) -> Any:
        return GuardedModel(self.inner.get_model(model_name), model_name)

    def __getattr__(self, name: str) -> Any:
        if name == "inner" or name.startswith("__"):  # of one that is being copied
            raise AttributeError(name)
        return getattr(self.inner, name)

    async def aclose(self) -> None:
        if hasattr(self.inner, "aclose"):
            await self.inner.aclose()


class GuardedModel(Model):  # type: ignore[misc]
    """Stands right before the model."""

    def __init__(self, inner: Any, name: str | None = None) -> None:
        self.inner: Any = inner.inner if isinstance(inner, GuardedModel) else inner
        found = getattr(self.inner, "model", None)
        self.name = found if isinstance(found, str) else name or type(self.inner).__name__

    def __getattr__(self, name: str) -> Any:
        if name == "inner" or name.startswith("__"):  # of one that is being copied
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
        given = {
            "system_instructions": system_instructions, "input": input, "model_settings": model_settings,
            "tools": tools, "output_schema": output_schema, "handoffs": handoffs, "tracing": tracing, **rest,
        }  # fmt: skip
        run = current()
        return await run.ask(Request(run, self, given))

    async def stream_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, output_schema: Any,
        handoffs: Any, tracing: Any, **rest: Any,
    ) -> AsyncIterator[Any]:  # fmt: skip
        given = {
            "system_instructions": system_instructions, "input": input, "model_settings": model_settings,
            "tools": tools, "output_schema": output_schema, "handoffs": handoffs, "tracing": tracing, **rest,
        }  # fmt: skip
        run = current()
        events: asyncio.Queue[Any] = asyncio.Queue()
        request = Request(run, self, given, events.put_nowait)
        work = asyncio.get_running_loop().create_task(run.ask(request))
        work.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            yield request.completed(await work)
        finally:
            if not work.done():
                work.cancel()
                await asyncio.wait([work])


class Request:
    """One request to the model, as often as it has to be made."""

    def __init__(self, run: Any, model: GuardedModel, given: dict[str, Any], sink: Callable[[Any], None] | None = None):
        self.run, self.model, self.name, self.given, self.sink = run, model.inner, model.name, given, sink
        asked = given["input"]
        self.items: list[Any] = [user_message(asked)] if isinstance(asked, str) else list(asked)
        self.remembered = bool(given.get("conversation_id"))  # by the provider: also what was just sent and said
        self.elsewhere = bool(self.remembered or given.get("previous_response_id"))
        self.native: list[Any] = []
        self.shown: list[Message] = []
        self.kept: list[Any] = []  # what the model has said in this request before it was told to go on
        self.usage: Any = None
        self.holds = sink is not None and run.fairlead.runs.judges(*JUDGING)
        self.held: list[Any] = []
        self.last: Any = None

    def plain(self) -> list[Message]:
        turn = self.run.turn
        self.native = turn.woven(self.items, user_message) if turn.placed else self.items
        if BeforeModel not in turn.heard:
            return []
        tools: dict[str, str] = {}
        self.shown = [plain(item, tools) for item in self.native]
        return self.shown

    async def send(self, asking: Asking) -> Any:
        if asking.messages is None:
            items = [*self.native, *map(user_message, asking.context)]
        else:
            units = rewritten([[item] for item in self.native], self.shown, asking.messages, items_of)
            items = [item for unit in units for item in unit]
        if self.elsewhere:  # the provider remembers what it was sent
            self.items += map(user_message, asking.context)
        else:
            self.run.turn.place(len(self.items), asking.context)
        given = {**self.given, "input": items}
        if self.run.prompt is not None:
            given["system_instructions"] = self.run.prompt or None
        model = self.model if asking.model is None else self.run.model_named(asking.model)
        response = await (model.get_response(**given) if self.sink is None else self._streamed(model, given))
        if self.remembered:
            self.items = []
        if self.usage is None:
            self.usage = response.usage
        else:  # an answer that nobody uses was paid for all the same
            total = Usage()
            total.add(self.usage)
            total.add(response.usage)
            self.usage = total
        return response

    async def _streamed(self, model: Any, given: dict[str, Any]) -> Any:
        self.held, self.last = [], None
        sink: Callable[[Any], None] = self.sink or self.held.append
        send = self.held.append if self.holds else sink
        done: list[Any] = []
        async for event in model.stream_response(**given):
            if event.type in ("response.completed", "response.incomplete"):
                self.last = event
                continue
            if event.type == "response.output_item.done":
                done.append(event.item)
            (send if event.type not in ("response.failed", "error") else sink)(event)
        if self.last is None:
            raise ModelBehaviorError("the model's stream ended without an answer")
        said = self.last.response
        if not said.output and done:
            said.output = done
        usage = Usage(requests=1)
        if said.usage is not None:
            usage = Usage(
                requests=1, input_tokens=said.usage.input_tokens, output_tokens=said.usage.output_tokens,
                total_tokens=said.usage.total_tokens,
            )  # fmt: skip
        return ModelResponse(said.output, usage, said.id)

    def release(self, response: Any, native: Any) -> None:
        """What was held back may be seen, or else what a hook made of it."""
        if self.sink is None:
            return
        if response is native:
            for event in self.held:
                self.sink(event)
        elif text := text_of(response):
            self.sink(delta_of(text))
        self.held = []

    def go_on(self, response: Any, feedback: str, turn: Turn) -> None:
        """The model is asked to go on: what it has said, and what it is told, are part of the conversation."""
        self.kept += response.output
        if not self.remembered:
            self.items += response.to_input_items()
        if self.elsewhere:
            self.items.append(user_message(feedback))
        else:
            turn.place(len(self.items), [feedback])

    def whole(self, response: Any) -> Any:
        """All that the SDK gets to see of it."""
        if self.usage is not None and self.usage is not response.usage:
            response = replace(response, usage=self.usage)
        return replace(response, output=[*self.kept, *response.output]) if self.kept else response

    def completed(self, response: Any) -> Any:
        """The end of a stream."""
        if self.last is None:
            return completed_of(response.output)
        said = self.last.response
        if said.output == response.output:
            return self.last
        changes: dict[str, Any] = {"output": list(response.output)}
        if said.usage is not None:
            count = ("input_tokens", "output_tokens", "total_tokens")
            changes["usage"] = said.usage.model_copy(update={name: getattr(response.usage, name) for name in count})
        return self.last.model_copy(update={"response": said.model_copy(update=changes)})


class Said(Model):  # type: ignore[misc]
    """Says what hooks have to say, where no model is asked."""

    def __init__(self, text: str) -> None:
        self.text = text

    async def get_response(self, *args: Any, **rest: Any) -> Any:
        return ModelResponse([message_of(self.text)], Usage(), None)

    async def stream_response(self, *args: Any, **rest: Any) -> AsyncIterator[Any]:
        if self.text:
            yield delta_of(self.text)
        yield completed_of([message_of(self.text)])
