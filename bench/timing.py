"""Measuring side by side: every contestant in turn, many rounds, so that noise hits all alike."""

from __future__ import annotations

import asyncio
import gc
import statistics
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any


@dataclass
class Contestant:
    """Something to measure. `run(n)` does its work n times; async ones return a coroutine."""

    name: str
    run: Callable[[int], Any]
    is_async: bool


@dataclass
class Timing:
    name: str
    best: float
    median: float


def awaiting(name: str, once: Callable[[Any], Awaitable[Any]], step: Any) -> Contestant:
    async def run(n: int) -> None:
        for _ in range(n):
            await once(step)

    return Contestant(name, run, True)


def calling(name: str, once: Callable[[Any], Any], step: Any) -> Contestant:
    def run(n: int) -> None:
        for _ in range(n):
            once(step)

    return Contestant(name, run, False)


async def measure(contestants: list[Contestant], *, budget_ms: float = 8.0, rounds: int = 25) -> dict[str, Timing]:
    """Nanoseconds per run, best and median, over rounds that go around the whole field."""
    counts = {c.name: await _calibrate(c, budget_ms) for c in contestants}
    samples: dict[str, list[float]] = {c.name: [] for c in contestants}
    gc.collect()
    gc.freeze()
    for _ in range(rounds):
        for c in contestants:
            samples[c.name].append(await _sample(c, counts[c.name]))
    gc.unfreeze()
    return {name: Timing(name, min(taken), statistics.median(taken)) for name, taken in samples.items()}


async def _sample(c: Contestant, n: int) -> float:
    started = perf_counter_ns()
    if c.is_async:
        await c.run(n)
    else:
        c.run(n)
    return (perf_counter_ns() - started) / n


async def _calibrate(c: Contestant, budget_ms: float) -> int:
    n = 16
    await _sample(c, 4 * n)  # what is compiled on first use is not what is measured
    while True:
        per_run = await _sample(c, n)
        if per_run * n > 1e6 or n > 200_000:  # a millisecond is enough to judge by
            return max(4, int(budget_ms * 1e6 / per_run))
        n *= 4
        await asyncio.sleep(0)
