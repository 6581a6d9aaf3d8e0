"""Threads for blocking hooks, and the private event loop of `dispatch_sync`.

They are daemon threads: a hook that never returns is abandoned and cannot keep the process alive.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from queue import SimpleQueue

T = TypeVar("T")

ABANDONED_LIMIT = 64
"""Abandoned threads that are still running, at which blocking hooks fail without being started."""


class _ThreadCall:
    """One call on a thread, and the future its caller awaits."""

    __slots__ = ("_args", "_context", "_fn", "_loop", "finished", "waiter")

    def __init__(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._fn = fn
        self._args = args
        self._context = contextvars.copy_context()
        self._loop = asyncio.get_running_loop()
        self.waiter: asyncio.Future[Any] = self._loop.create_future()
        self.finished = False

    def work(self) -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = self._context.run(self._fn, *self._args)
        except StopIteration as stop:  # a future cannot hold one
            error = RuntimeError(f"the hook raised {stop!r}")
        except BaseException as raised:
            error = raised
        self.finished = True
        with suppress(RuntimeError):  # the caller's loop is closed
            self._loop.call_soon_threadsafe(self._deliver, result, error)

    def _deliver(self, result: Any, error: BaseException | None) -> None:
        if self.waiter.done():
            return
        if error is not None:
            self.waiter.set_exception(error)
        else:
            self.waiter.set_result(result)


class Threads:
    """Daemon threads that run blocking hooks, reused while they are idle."""

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[_ThreadCall]] = []
        self._abandoned: set[_ThreadCall] = set()

    async def run(self, fn: Callable[..., T], *args: Any) -> T:
        """Call `fn(*args)` on a thread, with the caller's contextvars. Cancelling abandons the thread."""
        if self.abandoned >= ABANDONED_LIMIT:
            raise RuntimeError(f"{ABANDONED_LIMIT} threads are stuck in hooks that timed out; fix those hooks")
        job = _ThreadCall(fn, args)
        self._submit(job)
        try:
            return await job.waiter  # type: ignore[no-any-return]
        except asyncio.CancelledError:
            if not job.finished:
                self._abandoned.add(job)
            raise

    @property
    def abandoned(self) -> int:
        """How many abandoned threads are still running."""
        if self._abandoned:
            self._abandoned = {job for job in self._abandoned if not job.finished}
        return len(self._abandoned)

    def _submit(self, job: _ThreadCall) -> None:
        try:
            inbox = self._idle.pop()
        except IndexError:
            from queue import SimpleQueue  # few programs have blocking hooks

            inbox = SimpleQueue()
            threading.Thread(target=self._work, args=(inbox,), name="fairlead-hook", daemon=True).start()
        inbox.put(job)

    def _work(self, inbox: SimpleQueue[_ThreadCall]) -> None:
        while True:
            inbox.get().work()
            self._idle.append(inbox)


OffloadFn = Callable[..., Coroutine[Any, Any, Any]]
active_offload: contextvars.ContextVar[OffloadFn | None] = contextvars.ContextVar("fairlead_offload", default=None)
"""Calls a function outside of the event loop. The daemon sets it for a large step; otherwise it is None.

The call may be made in another process, so the function, its arguments and its result must be picklable.
"""


class LoopShare:
    """The seconds that the rules of one request may still take on the event loop, and where they run after that.

    The daemon makes one for each request, so that the rules of one request do not delay the others.
    """

    __slots__ = ("call", "left")

    def __init__(self, seconds: float, call: OffloadFn) -> None:
        self.left = seconds
        self.call = call


loop_share: contextvars.ContextVar[LoopShare | None] = contextvars.ContextVar("fairlead_loop_share", default=None)
"""The share of the current request; None outside of the daemon."""
sync_caller_waits: contextvars.ContextVar[bool] = contextvars.ContextVar("fairlead_sync_caller", default=False)
"""True in code that a sync caller waits for, however deeply nested."""


class Portal:
    """One private event loop on its own thread, for async hooks of synchronous callers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ident: int | None = None

    def run(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine there while the caller blocks, with the caller's contextvars."""
        if sync_caller_waits.get() or threading.get_ident() == self._ident:
            # The private loop may be waiting for this call, so waiting for the loop could be a deadlock.
            return _run_on_new_thread(make)
        loop = self.loop
        future: concurrent.futures.Future[T] = concurrent.futures.Future()
        context = contextvars.copy_context()
        context.run(sync_caller_waits.set, True)
        tasks: list[asyncio.Task[T]] = []

        def start() -> None:
            task = loop.create_task(make(), context=context)
            tasks.append(task)
            task.add_done_callback(lambda done: _copy_result(done, future))

        loop.call_soon_threadsafe(start)
        try:
            return future.result()
        except BaseException:
            if not future.done():  # the caller was interrupted, say by Ctrl-C
                loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])
            raise

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The private loop, started when it is first needed."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                thread = threading.Thread(target=self._loop.run_forever, name="fairlead-loop", daemon=True)
                thread.start()
                self._ident = thread.ident
            return self._loop


def _copy_result(task: asyncio.Task[T], future: concurrent.futures.Future[T]) -> None:
    if task.cancelled():
        future.set_exception(asyncio.CancelledError())
    elif error := task.exception():
        future.set_exception(error)
    else:
        future.set_result(task.result())


def _run_on_new_thread(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    future: concurrent.futures.Future[T] = concurrent.futures.Future()
    context = contextvars.copy_context()
    context.run(sync_caller_waits.set, True)

    def work() -> None:
        try:
            future.set_result(context.run(asyncio.run, make()))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, name="fairlead-nested", daemon=True).start()
    return future.result()


threads = Threads()
portal = Portal()


def _after_fork() -> None:
    """Start without threads in a child process: it has none of its parent's."""
    threads.__init__()  # type: ignore[misc]
    portal.__init__()  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
