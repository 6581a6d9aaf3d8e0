"""One framework, measured in its own environment: `python -m bench.framework NAME`. See `bench.frameworks`."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
from importlib import import_module
from statistics import median
from time import perf_counter
from typing import Any

from fairlead import Hooks

CALLS, ROUNDS = 40, 9
COUNTS = (1, 10, 50)


def hooks_of(count: int) -> Hooks:
    """So many hooks on every tool call that have no opinion."""
    hooks = Hooks()
    for number in range(count):
        hooks.add(lambda step: None, on="before_tool", name=f"nothing-{number}")
    return hooks


async def main(name: str) -> None:
    seat = import_module(f"seat_{name}").Seat()
    native = (1, 10) if seat.native else ()
    ways: dict[str, dict[str, Any]] = {"alone": {}}
    ways |= {f"native {count}": {"native": count} for count in native}
    ways |= {f"fairlead {count}": {"hooks": hooks_of(count)} for count in COUNTS}
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for options in ways.values():
        await seat.work(2, **options)
    for _ in range(ROUNDS):
        for way, options in ways.items():
            taken[way].append(await per_call(seat, options))
    best = {way: min(times) for way, times in taken.items()}
    alone = best["alone"]
    told = {
        "alone": alone,
        "native": {count: best[f"native {count}"] - alone for count in native},
        "fairlead": {count: best[f"fairlead {count}"] - alone for count in COUNTS},
        "import": import_cost(name, seat.module),
    }
    print(json.dumps(told))


async def per_call(seat: Any, options: dict[str, Any]) -> float:
    """Microseconds per call: a request with many calls against one with few."""
    gc.collect()
    few, many = 2, 2 + CALLS
    times = []
    for calls in (few, many):
        began = perf_counter()
        await seat.work(calls, **options)
        times.append(perf_counter() - began)
    return (times[1] - times[0]) / (many - few) * 1e6


def import_cost(name: str, module: str) -> float:
    """Milliseconds that the adapter takes beyond its framework, in the same process."""
    code = (
        f"import {module}, asyncio, msgspec, time; began = time.perf_counter(); import fairlead.hosts.{name}; "
        "print(time.perf_counter() - began)"
    )
    with tempfile.TemporaryDirectory() as cache:  # where what is compiled the first time is kept, whatever is set here
        environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environ["PYTHONPYCACHEPREFIX"] = cache
        argv = [sys.executable, "-W", "ignore", "-c", code]
        times = [float(subprocess.check_output(argv, env=environ).split()[-1]) for _ in range(8)]
    return median(times[1:]) * 1000


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
