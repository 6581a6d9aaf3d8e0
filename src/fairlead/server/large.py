"""Large requests are handled off the event loop, so that small ones do not wait for them.

One piece of work runs at a time, and callers take turns. So many large requests cost others no more than one does.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from ..engine.threads import active_offload, threads
from ..journal.entry import Invoke, call_here
from .limits import HUGE, LARGE, Overloaded
from .offload import Offload

T = TypeVar("T")

AT_ONCE = 256 << 20
"""Bytes of large requests that may be in progress at once. One caller may have half of that."""


class LargeRequests:
    """Runs the slow parts of large requests: on a thread, and the slowest in another process."""

    def __init__(self) -> None:
        self._offload = Offload()
        self._held: Counter[str] = Counter()
        self._thread_lock, self._process_lock = FairLock(), FairLock()

    @contextmanager
    def hold(self, caller: str, size: int) -> Iterator[None]:
        """Reserve room for a request of `size` bytes. Raises `Overloaded` if there is none."""
        if size <= LARGE:
            yield
            return
        if self._held[caller] + size > AT_ONCE // 2 or self._held.total() + size > AT_ONCE:
            raise Overloaded("too many large requests are under way already")
        self._held[caller] += size
        token = active_offload.set(partial(self.call, caller, size))
        try:
            yield
        finally:
            active_offload.reset(token)
            self._held[caller] -= size
            self._held += Counter()  # drops the callers that hold nothing

    async def run(self, caller: str, fn: Callable[..., T], *args: Any) -> T:
        """Call `fn(*args)`: on a thread during a large request, otherwise here."""
        if active_offload.get() is None:
            return fn(*args)
        async with self._thread_lock.turn(caller):
            return await threads.run(fn, *args)

    async def call(self, caller: str, size: int, fn: Callable[..., T], *args: Any) -> T:
        """Call `fn(*args)` on a thread, or in another process for a huge request."""
        return await (self.run if size <= HUGE else self.run_in_process)(caller, fn, *args)

    async def run_in_process(self, caller: str, fn: Callable[..., T], *args: Any) -> T:
        """Call `fn(*args)` in another process."""
        async with self._process_lock.turn(caller):
            return await threads.run(self._offload.call, fn, *args)

    async def offload(self, caller: str, fn: Callable[[Invoke], None], size: int) -> None:
        """Call `fn(invoke)` on a thread.

        `invoke` calls functions: in another process for a huge request.
        """
        if size <= HUGE:
            await self.run(caller, fn, call_here)
            return
        async with self._process_lock.turn(caller):
            await threads.run(fn, self._offload.call)

    def close(self) -> None:
        self._offload.close()


class FairLock:
    """A lock that callers get in turn. Each caller queues with one piece of work at a time."""

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
