"""Large requests: they are worked on away from the event loop, so that small ones do not wait for them.

One piece of work is done at a time, and callers take turns, so that many large requests add up to no more than one.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from ..journal.entry import Call, directly
from ..threads import elsewhere, threads
from .limits import HUGE, LARGE, Overloaded
from .offload import Offload

T = TypeVar("T")

AT_ONCE = 256 << 20
"""Bytes of large requests that may be under way at once. One caller may have half of that."""


class Large:
    """Where large requests are worked on: on a thread and, what takes longest, in another process."""

    def __init__(self) -> None:
        self._offload = Offload()
        self._held: Counter[str] = Counter()
        self._here, self._elsewhere = Turns(), Turns()

    @contextmanager
    def hold(self, caller: str, size: int) -> Iterator[None]:
        """Have room for a request of so many bytes. Raises `Overloaded` if there is none."""
        if size <= LARGE:
            yield
            return
        if self._held[caller] + size > AT_ONCE // 2 or self._held.total() + size > AT_ONCE:
            raise Overloaded("too many large requests are under way already")
        self._held[caller] += size
        known = elsewhere.set(partial(self.call, caller, size))
        try:
            yield
        finally:
            elsewhere.reset(known)
            self._held[caller] -= size
            self._held += Counter()  # without those who hold nothing

    async def run(self, caller: str, fn: Callable[..., T], *args: Any) -> T:
        """`fn(*args)`: here, or on a thread if a large request is being worked on."""
        if elsewhere.get() is None:
            return fn(*args)
        async with self._here.turn(caller):
            return await threads.run(fn, *args)

    async def call(self, caller: str, size: int, fn: Callable[..., T], *args: Any) -> T:
        """`fn(*args)` on a thread; for a huge request in another process."""
        return await (self.run if size <= HUGE else self.away)(caller, fn, *args)

    async def away(self, caller: str, fn: Callable[..., T], *args: Any) -> T:
        """`fn(*args)` in another process."""
        async with self._elsewhere.turn(caller):
            return await threads.run(self._offload.call, fn, *args)

    async def offload(self, caller: str, fn: Callable[[Call], None], size: int) -> None:
        """`fn(call)` on a thread, where `call` calls a function: for a huge request in another process."""
        if size <= HUGE:
            await self.run(caller, fn, directly)
            return
        async with self._elsewhere.turn(caller):
            await threads.run(fn, self._offload.call)

    def close(self) -> None:
        self._offload.close()


class Turns:
    """A lock for which callers queue, each with one piece of work at a time."""

    def __init__(self) -> None:
        self._all = asyncio.Lock()
        self._own: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, caller: str) -> AsyncIterator[None]:
        own = self._own.get(caller)
        if own is None:
            own = self._own[caller] = asyncio.Lock()
        async with own, self._all:
            yield
