"""Flows in which something is streamed: what a model says, and what a tool reports while it runs."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import AsyncGenerator, Callable
from typing import Any

from ..flow import Flow, Pause, run_flow

Stream = AsyncGenerator[Any, None]


class Streamed(Pause):
    """The stream of a model or a tool. It is passed on before the flow continues."""

    items: Any


class Interrupted(Exception):
    """A tool asks a human a question of its own."""

    def __init__(self, event: Any) -> None:
        self.event = event


def is_question(event: Any) -> bool:
    """Whether this is the event with which a tool asks a human a question of its own."""
    return isinstance(event, dict) and "tool_interrupt_event" in event


async def close(stream: Any) -> None:
    if hasattr(stream, "aclose"):
        await stream.aclose()


async def stream_flow(
    flow: Flow[Any],
    results: list[Any],
    held: Callable[[Any], bool],
    collect: Callable[[Any], Any] = lambda items: items,
) -> Stream:
    """Run a flow like `run_flow`, and pass on what its calls stream, unless an item is held back.

    The flow receives what `collect` makes of all items of a stream. The flow's own result is put into `results`.
    """
    value: Any = None
    error: BaseException | None = None
    left: GeneratorExit | None = None
    while True:
        try:
            result = await run_flow(flow, value, error)
        except CancelledError:
            if left is not None:
                raise left from None
            raise
        if not isinstance(result, Streamed):
            results.append(result)
            return
        value = error = None
        items: list[Any] = []
        try:
            try:
                async for item in result.items:
                    if is_question(item):
                        raise Interrupted(item)
                    items.append(item)
                    if not held(item):
                        yield item
            finally:
                await close(result.items)
            value = collect(items)
        except GeneratorExit as leaving:  # the reader of the stream has left: the flow takes that as a cancellation
            left, error = leaving, CancelledError()
        except BaseException as raised:
            error = raised
