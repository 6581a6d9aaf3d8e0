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
from itertools import pairwise
from statistics import mean
from time import perf_counter
from typing import Any

from fairlead import Hooks

CALLS, ROUNDS = 20, 100
BUDGET = 60.0
"""Seconds for all rounds; there are at least four."""
COUNTS = (1, 10, 50)
WAYS = {"wide": (1, 10), "limited": (10,)}
"""Hooks of the framework's own that reach as far as ours, and such as promise as much; see `driver.Way`."""


def hooks_of(count: int) -> Hooks:
    """So many hooks on every tool call that have no opinion."""
    hooks = Hooks()
    for number in range(count):
        hooks.add(lambda step: None, on="before_tool", name=f"nothing-{number}")
    return hooks


async def main(name: str) -> None:
    driver = import_module(f"driver_{name}").Driver()
    native = COUNTS if driver.native else ()
    ways: dict[str, dict[str, Any]] = {"alone": {}, "alone again": {}}  # which shows what is noise
    ways |= {f"native {count}": {"native": count} for count in native}
    ways |= {f"{way} {count}": {"native": count, "way": way} for way in driver.ways for count in WAYS[way]}
    ways |= {f"fairlead {count}": {"hooks": hooks_of(count)} for count in COUNTS}
    rounds: dict[str, list[list[float]]] = {way: [] for way in ways}
    for options in ways.values():
        await driver.work(2, **options)
    until = perf_counter() + BUDGET
    for number in range(ROUNDS):
        if number >= 4 and perf_counter() > until:
            break
        for way, options in ways.items():
            rounds[way].append(await gaps(driver, options))
    took = {way: per_call(found) for way, found in rounds.items()}
    alone = took["alone"]
    found = {
        "alone": alone,
        "noise": abs(took["alone again"] - alone),
        "native": {count: took[f"native {count}"] - alone for count in native},
        **{way: {count: took[f"{way} {count}"] - alone for count in WAYS[way] if way in driver.ways} for way in WAYS},
        "fairlead": {count: took[f"fairlead {count}"] - alone for count in COUNTS},
        "import": import_cost(name, driver.module),
    }
    print(json.dumps(found))


async def gaps(driver: Any, options: dict[str, Any]) -> list[float]:
    """From one call to the next, for all calls of a request."""
    ticks = import_module("driver").TICKS
    ticks.clear()
    gc.collect()
    gc.disable()  # as `timeit` does: which call a collection falls into is chance, and some take as long as ten hooks
    try:
        await driver.work(CALLS + 1, **options)
    finally:
        gc.enable()
    return [after - before for before, after in pairwise(ticks)]


def per_call(rounds: list[list[float]]) -> float:
    """Microseconds per call. The first call is compared with the first, the last with the last, and the best counts:

    a call takes milliseconds, and whatever else the machine does would hide what a hook takes.
    """
    return mean(min(times) for times in zip(*rounds, strict=True)) * 1e6


def import_cost(name: str, module: str) -> float:
    """Milliseconds that the adapter takes beyond its framework, in the same process."""
    code = (
        f"import {module}, asyncio, msgspec, time; began = time.perf_counter(); "
        f"import fairlead.hosts.frameworks.{name}; "
        "print(time.perf_counter() - began)"
    )
    with tempfile.TemporaryDirectory() as cache:  # where what is compiled the first time is kept, whatever is set here
        environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environ["PYTHONPYCACHEPREFIX"] = cache
        argv = [sys.executable, "-W", "ignore", "-c", code]
        times = [float(subprocess.check_output(argv, env=environ).split()[-1]) for _ in range(16)]
    return min(times) * 1000


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
