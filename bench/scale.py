"""Scale: many hooks that hang at once, a million dispatches, the cost of importing.

Part of `make bench`. Prints figures; asserts nothing.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import resource
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import monotonic, perf_counter

from fairlead import Hooks
from fairlead.lifecycle import BeforeTool


async def hanging(n: int, limit: float, *, bare: bool = False) -> tuple[float, float]:
    """n concurrent dispatches whose hooks all hang: how far from its deadline the first and last end.

    `bare` is the same with `asyncio.timeout` around the hook and nothing else.
    """
    hooks, starts = Hooks(), []

    @hooks.on.before_tool(timeout=limit, on_failure="open")
    async def hangs(step: BeforeTool) -> None:
        starts.append(monotonic())
        await asyncio.Event().wait()

    step = BeforeTool(tool="bash")

    async def barely() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await hangs(step)

    async def one() -> float:
        position = len(starts)
        await (barely() if bare else hooks.dispatch(step))
        return monotonic() - starts[position] - limit

    late = await asyncio.gather(*(one() for _ in range(n)))
    return min(late), max(late)


async def million(n: int, *, new_tools: bool) -> tuple[float, int]:
    """n dispatches: seconds, and the growth of the process in KiB."""
    hooks = Hooks()

    async def quiet(step: BeforeTool) -> None: ...

    hooks.add(quiet, on="before_tool", tool="tool-*")
    steps = [BeforeTool(tool=f"tool-{i}" if new_tools else "tool-1") for i in range(20_000)]
    for step in steps:
        await hooks.dispatch(step)
    gc.collect()
    before, started = _resident(), perf_counter()
    for _ in range(n // len(steps)):
        for step in steps:
            await hooks.dispatch(step)
    taken = perf_counter() - started
    gc.collect()
    return taken, _resident() - before


def _resident() -> int:
    """What the process holds in memory now, in KiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 1024


def importing(*fields: str, runs: int = 40) -> list[float]:
    """The best times, in ms, that a fresh interpreter takes to import each of these, in turn."""
    taken: dict[str, list[float]] = {modules: [] for modules in fields}
    for _ in range(runs):
        for modules in fields:
            code = f"from time import perf_counter as t; a = t(); import {modules}; print(t() - a)"
            command = [sys.executable, "-I", "-c", code]
            taken[modules].append(float(subprocess.run(command, capture_output=True, check=True).stdout) * 1000)
    return [min(times) for times in taken.values()]


async def main() -> None:
    logging.getLogger("fairlead").setLevel(logging.ERROR)  # each of the hooks that hang would be a line
    for bare in (True, False):
        runs = [await hanging(10_000, 1.0, bare=bare) for _ in range(3)]
        what = "asyncio.timeout" if bare else "fairlead"
        lasts = ", ".join(f"{last * 1000:+.1f}" for _, last in runs)
        print(f"10,000 hooks that hang, {what}, three times: the last ends {lasts} ms after its deadline")
    for new_tools in (False, True):
        seconds, grown = await million(1_000_000, new_tools=new_tools)
        what = "ever-new tool names" if new_tools else "one tool"
        print(f"1,000,000 dispatches, {what}: {seconds:.2f} s, memory grew by {grown} KiB")
    base, ours = importing("asyncio, msgspec", "asyncio, msgspec, fairlead.registry")
    print(f"importing asyncio and msgspec: {base:.1f} ms; with fairlead: {ours:.1f} ms ({ours - base:+.1f} ms)")


if __name__ == "__main__":
    asyncio.run(main())
