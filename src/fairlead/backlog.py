"""The queue of detached observers: bounded, in order, drained at the end."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, Any

from .threads import portal

if TYPE_CHECKING:
    from .decision import Decision, RunOutcome
    from .hook import Hook
    from .lifecycle import Step

logger = logging.getLogger("fairlead")

LIMIT = 1024

_Item = tuple["Hook", "Step", "Decision[Any]", contextvars.Context]


class Backlog:
    """Runs of detached observers that wait their turn, on the loop of whoever dispatched.

    Each loop has its own queue and one task that works it off, which ends when nothing is left.
    """

    def __init__(self) -> None:
        self.dropped = 0
        self._queues: dict[asyncio.AbstractEventLoop, deque[_Item]] = {}
        self._tasks: dict[asyncio.AbstractEventLoop, asyncio.Task[None]] = {}

    def put(self, hook: Hook, step: Step, decision: Decision[Any]) -> RunOutcome:
        """Queue one run. When the queue is full the newest, this one, is dropped and counted."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            loop = portal.loop
        queue = self._queues.setdefault(loop, deque())
        if len(queue) >= LIMIT:
            self.dropped += 1
            return "dropped"
        queue.append((hook, step, decision, contextvars.copy_context()))
        if loop not in self._tasks:
            loop.call_soon_threadsafe(self._start, loop)
        return "detached"

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop not in self._tasks and self._queues.get(loop):
            self._tasks[loop] = loop.create_task(self._work(loop))

    async def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        queue = self._queues[loop]
        try:
            while queue:
                hook, step, decision, context = queue.popleft()
                await loop.create_task(_run(hook, step, decision), context=context)
        finally:
            del self._tasks[loop]
            if not queue:
                self._queues.pop(loop, None)

    async def drain(self, timeout: float) -> None:
        until = monotonic() + timeout
        for loop, task in list(self._tasks.items()):
            left = max(0.0, until - monotonic())
            if loop is asyncio.get_running_loop():
                await asyncio.wait([task], timeout=left)
            elif portal.owns(loop):
                waiter = asyncio.run_coroutine_threadsafe(asyncio.wait_for(asyncio.shield(task), left), loop)
                await asyncio.wait([asyncio.wrap_future(waiter)])
        lost = sum(map(len, self._queues.values()))
        if lost:
            self.dropped += lost
            logger.warning("%d runs of detached observers were dropped: not done within %g s", lost, timeout)
            self._queues.clear()


async def _run(hook: Hook, step: Step, decision: Decision[Any]) -> None:
    """One detached run. Its failures go to the log and nowhere else."""
    try:
        async with asyncio.timeout(hook.timeout):
            said = hook.call(step, decision) if hook.wants_decision else hook.call(step)
            if said is not None:
                await said
    except Exception as error:
        logger.warning("detached hook %r failed at %s: %r", hook.name, step.event, error)
