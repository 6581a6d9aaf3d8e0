"""Work in which something is streamed: what a model says, and what a tool tells while it runs."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import AsyncGenerator, Callable
from inspect import isawaitable
from typing import Any

from ..work import Work

Stream = AsyncGenerator[Any, None]


class Interrupted(Exception):
    """A tool has its own question to ask."""

    def __init__(self, event: Any) -> None:
        self.event = event


def asks(event: Any) -> bool:
    """Whether a tool has its own question to ask."""
    return isinstance(event, dict) and "tool_interrupt_event" in event


async def close(stream: Any) -> None:
    if hasattr(stream, "aclose"):
        await stream.aclose()


async def go(
    work: Work[Any], came: list[Any], held: Callable[[Any], bool], made: Callable[[Any], Any] = lambda items: items
) -> Stream:
    """`drive`, for work in which something is streamed: it is passed on as it comes, unless it is held back.

    What the work is given is `made` of all that came. What comes of the work itself is put into `came`.
    """
    value: Any = None
    error: BaseException | None = None
    left: GeneratorExit | None = None
    while True:
        try:
            wanted = work.send(value) if error is None else work.throw(error)
        except StopIteration as end:
            came.append(end.value)
            return
        except CancelledError:
            if left is not None:
                raise left from None
            raise
        value = error = None
        try:
            if isinstance(wanted, tuple):
                value = await wanted[0].dispatch(wanted[1])
                continue
            value = wanted()
            if hasattr(value, "__aiter__"):
                items: list[Any] = []
                try:
                    async for item in value:
                        if asks(item):
                            raise Interrupted(item)
                        items.append(item)
                        if not held(item):
                            yield item
                finally:
                    await close(value)
                value = made(items)
            elif isawaitable(value):
                value = await value
        except GeneratorExit as leaving:  # whoever listens has left: for the work that is as good as cancelled
            left, error = leaving, CancelledError()
        except BaseException as raised:
            error = raised
