"""The queue of detached observers: bounded, in order, drained when `Hooks` closes."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING

from ..decision import Failure
from ..redaction.logs import logger
from .threads import portal, sync_caller_waits

if TYPE_CHECKING:
    from ..decision import RunOutcome
    from .run import Run

LIMIT = 1024

_Item = tuple["Run", contextvars.Context]


class DetachedQueue:
    """Runs of detached observers, queued per event loop: the caller's, or the private one for sync callers."""

    def __init__(self) -> None:
        self.dropped = 0
        self._queues: dict[asyncio.AbstractEventLoop, _LoopQueue] = {}

    def put(self, run: Run) -> RunOutcome:
        """Queue one run. When the queue is full the newest, this one, is dropped and counted."""
        try:
            # The loop of a nested sync dispatch ends with the dispatch, and its queue would end with it.
            loop = portal.loop if sync_caller_waits.get() else asyncio.get_running_loop()
        except RuntimeError:
            loop = portal.loop
        queue = self._queues.get(loop)
        if queue is None:
            self._queues = {known: queue for known, queue in self._queues.items() if not known.is_closed()}
            queue = self._queues[loop] = _LoopQueue(loop)
        if len(queue.items) >= LIMIT:
            self.dropped += 1
            return "dropped"
        queue.items.append((run, contextvars.copy_context()))
        loop.call_soon_threadsafe(queue.start)
        return "detached"

    async def drain(self, timeout: float) -> None:
        """Let every queued run end; those that are not done in time are dropped and counted."""
        queues = [queue for queue in self._queues.values() if not queue.loop.is_closed()]
        lost = sum(await asyncio.gather(*(queue.finish_from_any_loop(timeout) for queue in queues)))
        if lost:
            self.dropped += lost
            logger.warning("%d runs of detached observers were dropped: not done within %g s", lost, timeout)


class _LoopQueue:
    """The queue of one event loop, and the task that empties it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.items: deque[_Item] = deque()
        self._task: asyncio.Task[None] | None = None
        self._current: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self.items and (self._task is None or self._task.done()):
            self._task = self.loop.create_task(self._run_all())

    async def _run_all(self) -> None:
        while self.items:
            run, context = self.items.popleft()
            self._current = self.loop.create_task(_run_detached(run), context=context)
            await asyncio.wait([self._current])

    async def finish_from_any_loop(self, timeout: float) -> int:
        if self.loop is asyncio.get_running_loop():
            return await self._finish(timeout)
        if not self.loop.is_running():
            lost = len(self.items)
            self._drop()
            return lost
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._finish(timeout), self.loop))

    def _drop(self) -> None:
        """Drop all queued runs."""
        while self.items:
            _journal_end(self.items.popleft()[0], "dropped")

    async def _finish(self, timeout: float) -> int:
        """Wait until the queue is empty. Returns how many runs were dropped."""
        self.start()
        if self._task is None or self._task.done():
            return 0
        done, _ = await asyncio.wait([self._task], timeout=timeout)
        if done:
            return 0
        lost = len(self.items) + 1
        self._drop()
        self._task.cancel()
        if self._current is not None:
            self._current.cancel()
        await asyncio.wait([self._task], timeout=1)
        return lost


async def _run_detached(run: Run) -> None:
    """Run one detached observer. Its outcome goes to the journal."""
    from .loop import run_remaining, run_to_end

    run.clock[0] = monotonic()
    try:
        await run_to_end(run, run_remaining)
    except Exception as error:
        logger.warning("a detached hook ended badly: %r", error)
    except BaseException:
        _journal_end(run, "cancelled")
        raise
    _journal_end(run)


def _journal_end(run: Run, outcome: RunOutcome | None = None) -> None:
    """Journal how a detached run ended: the record of its decision was written before."""
    note = getattr(run.chain.table.hooks.journal, "note", None)
    if note is None:
        return
    hook, step = run.sequence.hooks[-1], run.step
    entry = run.run_log[-1] if run.run_log else None
    facts: dict[str, object] = {"outcome": "none"}
    if isinstance(entry, float):
        facts["duration"] = entry
    elif isinstance(entry, tuple):
        facts["outcome"], facts["duration"], _ = entry
    if outcome is not None:
        facts["outcome"] = outcome
    errors = [failure.error for _, failure in run.contributions if isinstance(failure, Failure)]
    optional = {
        "event": step.event,
        "session": step.session_id,
        "sequence": step.sequence,
        "error": next(iter(errors), None),
    }
    facts |= {name: value for name, value in optional.items() if value is not None}
    try:
        note("detached", hook=hook.name, **facts)
    except Exception as error:  # a journal that cannot be written to logs that itself
        logger.warning("the end of the detached hook %r could not be journaled: %s", hook.name, error)
