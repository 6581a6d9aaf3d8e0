"""Deadlines for hooks that suspend: one coarse timer per event loop instead of one per hook.

A deadline only cancels a hook. What the time-out then means is decided in `run.py` (`Run.on_result`).

A deadline never fires early, and at most about one tick late. It fires by cancelling the future that the hook awaits.
Cancelling the hook's task would do the same, but would also change the task's own count of cancellations. A hook that
swallows the cancellation is cancelled again each tick.

Most hooks that suspend end within a tick. So a new deadline only goes into a list. At the next tick, each one that is
still pending is sorted into a bucket, where it costs nothing until it is due.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable
from time import monotonic
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

TICK = 0.005
CANCELS = 3
"""A hook that swallows this many cancellations is abandoned."""


class Deadline(msgspec.Struct, eq=False):
    """The moment by which one hook must have ended. Without `at`, it never fires."""

    started: float
    at: float | None
    awaited: asyncio.Future[Any] | None = None  # what the hook awaits
    proxy: asyncio.Future[None] | None = None  # what its task awaits instead, where cancelling may have no effect
    cancels: int = 0  # how many times this has fired
    released: bool = False
    task: asyncio.Task[Any] | None = None
    cancelling_before: int = 0  # the task's count of cancellations when the hook suspended
    wheel: TimerWheel | None = None
    bucket: int = 0  # its bucket on the wheel; 0 is none yet
    missed: bool = False  # it was due when the awaited future was done: the hook is cancelled when it goes on
    outer: bool = False  # the deadline of an outer hook, which dispatched this one's step, has fired

    def watch(self, awaited: asyncio.Future[Any]) -> asyncio.Future[Any]:
        """Start to watch over the future that a hook awaits. Returns what its task must await.

        A plain future ends when it is cancelled. A task or a `gather` may go on: then the task awaits a proxy, which
        can always be ended. (A hook that yields without a future is back before any timer could fire.)
        """
        if getattr(awaited, "_asyncio_future_blocking", None) is None:
            raise RuntimeError(f"a hook awaited {awaited!r}, which is not an awaitable of asyncio")
        self.awaited = awaited
        loop = awaited.get_loop()
        if self.wheel is None:
            if loop is not asyncio.get_running_loop():
                raise RuntimeError(f"a hook awaited {awaited!r}, which belongs to another event loop")
            self.task = task = asyncio.current_task(loop)
            self.cancelling_before = 0 if task is None else task.cancelling()
            self.wheel = wheel = _wheel_of(loop)
            if self.at is not None:
                wheel.add(self)
        if type(awaited) is asyncio.Future:
            return awaited
        self.proxy = proxy = loop.create_future()
        awaited._asyncio_future_blocking = False  # by this flag asyncio knows what a task awaits
        proxy._asyncio_future_blocking = True
        awaited.add_done_callback(lambda _: None if proxy.done() else proxy.set_result(None))
        return proxy

    def overdue(self) -> bool:
        """Fire if the deadline has passed and the wheel has not seen it yet. True if it fired."""
        at = self.at
        if at is None or monotonic() < at:
            return False
        self._count_cancel()
        return True

    def fire(self) -> None:
        """Cancel what the hook awaits. After enough cancellations, end the proxy instead."""
        if self.cancels >= CANCELS:
            if self.proxy is not None:
                self.proxy.cancel(self)
            return
        if self.awaited is not None and not self.awaited.cancel(self):
            self.missed = True  # a done future cannot be cancelled, and the hook is about to go on
            return
        self._count_cancel()

    def _count_cancel(self) -> None:
        self.cancels += 1
        self.at = monotonic() + TICK

    def on_cancelled(self, error: asyncio.CancelledError) -> None:
        """Process a cancellation: by this deadline, by the caller or by an outer deadline."""
        if self.task is None:  # the hook had not awaited a future yet
            self.task = task = asyncio.current_task()
            self.cancelling_before = 0 if task is None else task.cancelling() - 1
        for arg in error.args:
            # One that started earlier is of an outer hook. One that started later is handled by an inner dispatch.
            if isinstance(arg, Deadline) and arg.started < self.started:
                self.outer = True

    def release(self, error: BaseException | None) -> bool:
        """Stop watching a hook that ended with this error. True if the caller was cancelled, not just the hook.

        The task counts its cancellations. One more than before is the caller's, even if the hook swallowed it. One
        that ends the hook while this deadline has not fired is the caller's, too.
        """
        self.released = True
        self.awaited = self.proxy = None  # a cancelled future refers to the deadline that cancelled it
        if self.bucket and self.wheel is not None and (others := self.wheel.buckets.get(self.bucket)):
            others.discard(self)
        if self.task is None:
            return False
        through = isinstance(error, asyncio.CancelledError) and not self.cancels
        return self.task.cancelling() > (0 if through else self.cancelling_before)

    def pass_on(self, error: BaseException) -> bool:
        """Pass the caller's cancellation on to what the hook awaits. False if the hook itself must get it."""
        if self.proxy is None or self.awaited is None or self.awaited.done() or self.cancels >= CANCELS:
            return False
        if not isinstance(error, asyncio.CancelledError):
            return False
        self.awaited._asyncio_future_blocking = True
        return self.awaited.cancel(*error.args)


class TimerWheel:
    """The deadlines of one event loop: a list of new ones, and a bucket per tick for the others."""

    __slots__ = ("_fired", "_new", "_timer", "_when", "buckets", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.buckets: dict[int, set[Deadline]] = {}
        self._new: list[Deadline] = []
        self._fired: list[Deadline] = []  # at the last tick; hooks that are still running are cancelled again
        self._timer: asyncio.TimerHandle | None = None
        self._when = 0.0

    def add(self, deadline: Deadline) -> None:
        new = self._new
        new.append(deadline)
        if len(new) == 1:
            self._tick_at(monotonic() + TICK)

    def _tick_at(self, when: float) -> None:
        if self._timer is not None:
            if self._when <= when:
                return
            self._timer.cancel()
        self._when = when
        self._timer = self.loop.call_later(when - monotonic(), self._tick)

    def _tick(self) -> None:
        self._timer = None
        new, self._new = self._new, []
        fired, self._fired = self._fired, []
        for deadline in fired:
            if not deadline.released:
                self._fire(deadline)
        for deadline in new:
            if not deadline.released and deadline.at is not None:
                bucket = deadline.bucket = int(deadline.at / TICK) + 1  # the first tick that lies wholly after it
                self.buckets.setdefault(bucket, set()).add(deadline)
        due = int(monotonic() / TICK)  # read again: a blocking hook may have held the event loop up
        for bucket in sorted(b for b in self.buckets if b <= due):
            for deadline in self.buckets.pop(bucket):
                self._fire(deadline)
        for bucket in [b for b, deadlines in self.buckets.items() if not deadlines]:
            del self.buckets[bucket]  # all of its hooks ended in time
        if self._fired:
            self._tick_at(monotonic() + TICK)
        elif self.buckets:
            self._tick_at(min(self.buckets) * TICK)

    def _fire(self, deadline: Deadline) -> None:
        last = deadline.cancels >= CANCELS
        deadline.fire()
        if not last:
            self._fired.append(deadline)


class _Local(threading.local):
    wheel: TimerWheel | None = None


_local = _Local()


def _wheel_of(loop: asyncio.AbstractEventLoop) -> TimerWheel:
    """The wheel of this thread's loop."""
    wheel = _local.wheel
    if wheel is None or wheel.loop is not loop:
        wheel = _local.wheel = TimerWheel(loop)
    return wheel


class TooLateError(TimeoutError):
    """`wait_at_most` waited for the whole time-out."""


async def wait_at_most(awaitable: Awaitable[T], timeout: float | None) -> T:
    """Await something for at most `timeout` seconds. What does not end when it is cancelled is abandoned."""

    async def wait() -> T:
        return await awaitable

    task = asyncio.get_running_loop().create_task(wait())
    try:
        done, _ = await asyncio.wait([task], timeout=timeout)
    except asyncio.CancelledError:
        _abandon(task)
        raise
    if not done:
        _abandon(task)
        raise TooLateError
    return task.result()


def _abandon(task: asyncio.Task[Any]) -> None:
    task.cancel()
    # Read its exception: asyncio warns of one that is never read.
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
