"""The queue of detached observers: bounded, in order, drained at the end."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING

from .decision import Failure
from .logs import logger
from .threads import portal, waited_for

if TYPE_CHECKING:
    from .decision import RunOutcome
    from .run import Run

LIMIT = 1024

_Item = tuple["Run", contextvars.Context]


class Backlog:
    """Detached runs that wait their turn, on the loop of whoever dispatched (sync callers: ours)."""

    def __init__(self) -> None:
        self.dropped = 0
        self._lanes: dict[asyncio.AbstractEventLoop, _Lane] = {}

    def put(self, run: Run) -> RunOutcome:
        """Queue one run. When the queue is full the newest, this one, is dropped and counted."""
        try:
            # The loop of a nested synchronous dispatch ends with it, and would take the queue along.
            loop = portal.loop if waited_for.get() else asyncio.get_running_loop()
        except RuntimeError:
            loop = portal.loop
        lane = self._lanes.get(loop)
        if lane is None:
            self._lanes = {known: lane for known, lane in self._lanes.items() if not known.is_closed()}
            lane = self._lanes[loop] = _Lane(loop)
        if len(lane.queue) >= LIMIT:
            self.dropped += 1
            return "dropped"
        lane.queue.append((run, contextvars.copy_context()))
        loop.call_soon_threadsafe(lane.start)
        return "detached"

    async def drain(self, timeout: float) -> None:
        """Let everything queued run; what is not done in time is dropped and counted."""
        lanes = [lane for lane in self._lanes.values() if not lane.loop.is_closed()]
        lost = sum(await asyncio.gather(*(lane.finish_from_anywhere(timeout) for lane in lanes)))
        if lost:
            self.dropped += lost
            logger.warning("%d runs of detached observers were dropped: not done within %g s", lost, timeout)


class _Lane:
    """One loop's queue, and the task that works it off and ends when nothing is left."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.queue: deque[_Item] = deque()
        self._task: asyncio.Task[None] | None = None
        self._current: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self.queue and (self._task is None or self._task.done()):
            self._task = self.loop.create_task(self._work())

    async def _work(self) -> None:
        while self.queue:
            run, context = self.queue.popleft()
            self._current = self.loop.create_task(_work_off(run), context=context)
            await asyncio.wait([self._current])

    async def finish_from_anywhere(self, timeout: float) -> int:
        if self.loop is asyncio.get_running_loop():
            return await self._finish(timeout)
        if not self.loop.is_running():
            lost = len(self.queue)
            self._drop()
            return lost
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._finish(timeout), self.loop))

    def _drop(self) -> None:
        """Give up on what is queued."""
        while self.queue:
            _note_end(self.queue.popleft()[0], "dropped")

    async def _finish(self, timeout: float) -> int:
        """Wait for the queue to empty and say how many runs were lost."""
        self.start()
        if self._task is None or self._task.done():
            return 0
        done, _ = await asyncio.wait([self._task], timeout=timeout)
        if done:
            return 0
        lost = len(self.queue) + 1
        self._drop()
        self._task.cancel()
        if self._current is not None:
            self._current.cancel()
        await asyncio.wait([self._task], timeout=1)
        return lost


async def _work_off(run: Run) -> None:
    """One detached run. Its failures go to the log, and how it ended into the journal."""
    from .engine import drive, rest

    run.clock[0] = monotonic()
    try:
        await drive(run, rest)
    except Exception as error:
        logger.warning("a detached hook ended badly: %r", error)
    except BaseException:
        _note_end(run, "cancelled")
        raise
    for _, failure in run.said:
        logger.warning("detached %s", failure)
    _note_end(run)


def _note_end(run: Run, outcome: RunOutcome | None = None) -> None:
    """Write down how a detached run ended: the record of its decision was written before."""
    note = getattr(run.chain.table.hooks.journal, "note", None)
    if note is None:
        return
    hook, step = run.stretch.hooks[-1], run.step
    mark = run.marks[-1] if run.marks else None
    told: dict[str, object] = {"outcome": "none"}
    if isinstance(mark, float):
        told["duration"] = mark
    elif isinstance(mark, tuple):
        told["outcome"], told["duration"], _ = mark
    if outcome is not None:
        told["outcome"] = outcome
    errors = [failure.error for _, failure in run.said if isinstance(failure, Failure)]
    about = {
        "event": step.event,
        "session": step.session_id,
        "sequence": step.sequence,
        "error": next(iter(errors), None),
    }
    told |= {name: value for name, value in about.items() if value is not None}
    try:
        note("detached", hook=hook.name, **told)
    except Exception as error:  # of a journal that cannot be written, which says so itself
        logger.warning("how the detached hook %r ended could not be written down: %s", hook.name, error)
