"""Work: what happens in a host, written down once for hosts that wait and for those that do not.

Frameworks differ in how they are told, and in whether they can await. So what happens is a generator that yields what
is to be dispatched or done, and is given what came of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Coroutine, Generator
from types import CoroutineType
from typing import Any, Self, TypeAlias, TypeVar

from ..threads import portal

T = TypeVar("T")
Work: TypeAlias = Generator[Any, Any, T]
"""Yields a (session, step) to be dispatched, or something to be called, and gets what came of it."""


async def drive(work: Work[T]) -> T:
    """Go through some work, awaiting what is to be awaited."""
    value: Any = None
    error: BaseException | None = None
    while True:
        try:
            wanted = work.send(value) if error is None else work.throw(error)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        value = error = None
        try:
            if isinstance(wanted, tuple):
                value = await wanted[0].dispatch(wanted[1])
            else:
                value = wanted()
                if value.__class__ is CoroutineType or inspect.isawaitable(value):  # which looks for long at others
                    value = await value
        except BaseException as raised:  # the work decides what becomes of it
            error = raised


def drive_sync(work: Work[T]) -> T:
    """Go through some work on this thread."""
    value: Any = None
    error: BaseException | None = None
    while True:
        try:
            wanted = work.send(value) if error is None else work.throw(error)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        value = error = None
        try:
            value = wanted[0].dispatch_sync(wanted[1]) if isinstance(wanted, tuple) else wanted()
            if inspect.iscoroutine(value):
                value = _wait_for(value)
        except BaseException as raised:
            error = raised


def _wait_for(work: Coroutine[Any, Any, Any]) -> Any:
    return portal.run(lambda: work)


class Closes:
    """What `close()`, `await aclose()` and the end of `async with` have in common."""

    def _closing(self) -> Work[None]:
        raise NotImplementedError

    def close(self) -> None:
        """End all sessions, where nothing can be awaited."""
        drive_sync(self._closing())

    async def aclose(self) -> None:
        """End all sessions, and whatever waits for somebody's answer."""
        await drive(self._closing())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()
