"""Deadlines for hooks that suspend: one coarse timer per event loop instead of one per hook.

A deadline never fires early and at most about one tick late. It fires by cancelling the future the
hook waits for, which is what cancelling its task would do, but leaves the task's own cancellations
to those who asked for them. A hook that swallows the cancellation is cancelled again each tick.

Most hooks that suspend are done within a tick. So a new deadline is only noted; whatever is still
pending at the next tick is sorted into a bucket, where it costs nothing until it is due.
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
    """When one hook must be done. `at` None is never."""

    started: float
    at: float | None
    waiting: asyncio.Future[Any] | None = None  # what the hook is parked on
    proxy: asyncio.Future[None] | None = None  # what its task waits for instead, if that may refuse to end
    cancels: int = 0  # how many times this has fired
    released: bool = False
    task: asyncio.Task[Any] | None = None
    before: int = 0  # cancellations the task had been asked for by then
    wheel: Wheel | None = None
    bucket: int = 0  # where the wheel keeps it; 0 is nowhere yet
    missed: bool = False  # it was due, but what the hook waits for was done: it is cancelled when it goes on
    outer: bool = False  # a deadline around this one has fired: of a hook that dispatched

    def watch(self, waiting: asyncio.Future[Any]) -> asyncio.Future[Any]:
        """The hook is parked on a future; give what its task is to wait for.

        (On a bare yield it is back before any timer could fire.) A plain future ends when it is
        cancelled. A task, or a gathering of them, may refuse: then there must be a way around it.
        """
        if getattr(waiting, "_asyncio_future_blocking", None) is None:
            raise RuntimeError(f"a hook awaited {waiting!r}, which is no awaitable of asyncio")
        self.waiting = waiting
        loop = waiting.get_loop()
        if self.wheel is None:
            if loop is not asyncio.get_running_loop():
                raise RuntimeError(f"a hook awaited {waiting!r}, which belongs to another event loop")
            self.task = task = asyncio.current_task(loop)
            self.before = 0 if task is None else task.cancelling()
            self.wheel = wheel = _wheel_of(loop)
            if self.at is not None:
                wheel.note(self)
        if type(waiting) is asyncio.Future:
            return waiting
        self.proxy = proxy = loop.create_future()
        waiting._asyncio_future_blocking = False  # the handshake of asyncio: who awaits whom
        proxy._asyncio_future_blocking = True
        waiting.add_done_callback(lambda _: None if proxy.done() else proxy.set_result(None))
        return proxy

    def overdue(self) -> bool:
        """Fire if the time has come and the wheel has not seen it yet."""
        at = self.at
        if at is None or monotonic() < at:
            return False
        self._fired()
        return True

    def fire(self) -> None:
        """Cancel what the hook waits for; go around it if that was tried often enough."""
        if self.cancels >= CANCELS:
            if self.proxy is not None:
                self.proxy.cancel(self)
            return
        if self.waiting is not None and not self.waiting.cancel(self):
            self.missed = True  # a done future cannot be cancelled, so the hook is about to go on
            return
        self._fired()

    def _fired(self) -> None:
        self.cancels += 1
        self.at = monotonic() + TICK

    def interrupted(self, error: asyncio.CancelledError) -> None:
        """A cancellation has arrived, whoever asked for it."""
        if self.task is None:  # the hook had not waited for anything yet
            self.task = task = asyncio.current_task()
            self.before = 0 if task is None else task.cancelling() - 1
        for arg in error.args:
            # One that started before us is around us; one that started later is settled further in.
            if isinstance(arg, Deadline) and arg.started < self.started:
                self.outer = True

    def release(self, error: BaseException | None) -> bool:
        """The hook has ended, with this error. True if the caller was cancelled, not just the hook.

        The task counts the cancellations asked of it. One more than before is the caller's, even if
        the hook swallowed it; and one that got through while we asked for none is the caller's too.
        """
        self.released = True
        self.waiting = self.proxy = None  # a cancelled future keeps who cancelled it
        if self.bucket and self.wheel is not None and (waiting := self.wheel.buckets.get(self.bucket)):
            waiting.discard(self)
        if self.task is None:
            return False
        through = isinstance(error, asyncio.CancelledError) and not self.cancels
        return self.task.cancelling() > (0 if through else self.before)

    def refuses(self, error: BaseException) -> bool:
        """Whether the caller's cancellation must first be passed on to what the hook waits for."""
        if self.proxy is None or self.waiting is None or self.waiting.done() or self.cancels >= CANCELS:
            return False
        if not isinstance(error, asyncio.CancelledError):
            return False
        self.waiting._asyncio_future_blocking = True
        return self.waiting.cancel(*error.args)


class Wheel:
    """The deadlines of one event loop: those noted since the last tick, and buckets of one tick."""

    __slots__ = ("_fired", "_noted", "_timer", "_when", "buckets", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.buckets: dict[int, set[Deadline]] = {}
        self._noted: list[Deadline] = []
        self._fired: list[Deadline] = []  # at the last tick; who is still there is cancelled again
        self._timer: asyncio.TimerHandle | None = None
        self._when = 0.0

    def note(self, deadline: Deadline) -> None:
        noted = self._noted
        noted.append(deadline)
        if len(noted) == 1:
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
        noted, self._noted = self._noted, []
        fired, self._fired = self._fired, []
        for deadline in fired:
            if not deadline.released:
                self._fire(deadline)
        for deadline in noted:
            if not deadline.released and deadline.at is not None:
                bucket = deadline.bucket = int(deadline.at / TICK) + 1  # the first tick that lies wholly after it
                self.buckets.setdefault(bucket, set()).add(deadline)
        due = int(monotonic() / TICK)  # read anew: a blocking hook may have held the loop up
        for bucket in sorted(b for b in self.buckets if b <= due):
            for deadline in self.buckets.pop(bucket):
                self._fire(deadline)
        for bucket in [b for b, waiting in self.buckets.items() if not waiting]:
            del self.buckets[bucket]  # all of its hooks answered in time
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
    wheel: Wheel | None = None


_local = _Local()


def _wheel_of(loop: asyncio.AbstractEventLoop) -> Wheel:
    """The wheel of this thread's loop."""
    wheel = _local.wheel
    if wheel is None or wheel.loop is not loop:
        wheel = _local.wheel = Wheel(loop)
    return wheel


class TooLateError(TimeoutError):
    """What was awaited did not end in time."""


async def in_time(work: Awaitable[T], timeout: float | None) -> T:
    """Await something, but no longer than this. What will not be cancelled is left behind."""

    async def wait() -> T:
        return await work

    task = asyncio.get_running_loop().create_task(wait())
    try:
        done, _ = await asyncio.wait([task], timeout=timeout)
    except asyncio.CancelledError:
        _leave(task)
        raise
    if not done:
        _leave(task)
        raise TooLateError
    return task.result()


def _leave(task: asyncio.Task[Any]) -> None:
    task.cancel()
    task.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody else will look
