"""`make bench`: the cost of a dispatch, side by side with the peers, in one run.

Every figure is nanoseconds per dispatch of a step to n no-op hooks. The ratios are what counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairlead import Hooks
from fairlead.lifecycle import BeforeTool

from . import chart, peers
from .timing import Contestant, Timing, awaiting, calling, measure

SIZES = (0, 1, 10, 100)
STEP = BeforeTool(tool="bash", args={"command": "git status"})


def _hooks(n: int, *, is_async: bool, record: bool = False, **options: Any) -> Hooks:
    hooks = Hooks(record=record)
    for hook in peers.functions(n, is_async=is_async):
        hooks.add(hook, on="before_tool", **options)
    return hooks


def ours(n: int, step: Any) -> Contestant:
    hooks = _hooks(n, is_async=True)
    return awaiting("fairlead, time-outs on", hooks.dispatch, step)


def ours_sync(n: int, step: Any) -> Contestant:
    hooks = _hooks(n, is_async=False)
    return calling("fairlead, sync", hooks.dispatch_sync, step)


def ours_recording(n: int, step: Any) -> Contestant:
    hooks = _hooks(n, is_async=True, record=True)
    return awaiting("fairlead, recording", hooks.dispatch, step)


DISPATCH = [peers.plain_sync, ours_sync, peers.plain_async, ours, ours_recording, *peers.PEERS]


async def dispatch_rows(sizes: tuple[int, ...], rounds: int) -> dict[str, dict[int, Timing]]:
    rows: dict[str, dict[int, Timing]] = {}
    for n in sizes:
        field = [c for make in DISPATCH if (c := await _try(make, n)) is not None]
        for name, timing in (await measure(field, rounds=rounds)).items():
            rows.setdefault(name, {})[n] = timing
    return rows


_left_out: set[str] = set()


async def _try(make: Callable[[int, Any], Contestant], n: int) -> Contestant | None:
    try:
        contestant = make(n, STEP)
        if contestant.is_async:
            await contestant.run(1)
        else:
            contestant.run(1)
        return contestant
    except Exception as error:
        if make.__name__ not in _left_out:
            _left_out.add(make.__name__)
            print(f"left out: {make.__name__}: {type(error).__name__}: {error}", file=sys.stderr)
        return None


# --- single figures ------------------------------------------------------------------------------


async def gate_rows(rounds: int) -> dict[str, Timing]:
    """A lone gate against a lone transform; ten gates at once against gathering ten tasks."""
    lone_transform = _hooks(1, is_async=True)
    lone_gate = _hooks(1, is_async=True, phase="gate")
    ten_gates = _hooks(10, is_async=True, phase="gate")
    fns = peers.functions(10, is_async=True)

    async def gather(step: Any) -> None:
        await asyncio.gather(*(fn(step) for fn in fns))

    return await measure(
        [
            awaiting("one transform", lone_transform.dispatch, STEP),
            awaiting("one gate", lone_gate.dispatch, STEP),
            awaiting("gather ten tasks", gather, STEP),
            awaiting("ten gates", ten_gates.dispatch, STEP),
        ],
        rounds=rounds,
    )


async def suspension_rows(rounds: int) -> dict[str, Timing]:
    """A hook that suspends against the same suspension awaited directly."""

    async def suspends(step: Any) -> None:
        await asyncio.sleep(0)

    hooks = Hooks()
    hooks.add(suspends, on="before_tool")
    return await measure(
        [
            awaiting("bare suspension", suspends, STEP),
            awaiting("a hook that suspends", hooks.dispatch, STEP),
        ],
        rounds=rounds,
    )


async def scale_rows(rounds: int) -> dict[str, Timing]:
    """10,000 hooks over 1,000 tools against only the ten that match."""
    many, few = Hooks(), Hooks()
    hooks = peers.functions(10_000, is_async=True)
    for i, hook in enumerate(hooks):
        many.add(hook, on="before_tool", tool=f"tool_{i % 1000}")
    for hook in hooks[7::1000]:
        few.add(hook, on="before_tool", tool="tool_7")
    step = BeforeTool(tool="tool_7")
    return await measure(
        [
            awaiting("the 10 that match", few.dispatch, step),
            awaiting("10,000 hooks over 1,000 tools", many.dispatch, step),
        ],
        rounds=rounds,
    )


async def step_rows(rounds: int) -> dict[str, Timing]:
    """What it costs to build a step, which is not part of a dispatch."""
    build = calling("building a step", lambda args: BeforeTool(tool="bash", args=args), {"command": "git status"})
    return await measure([build], rounds=rounds)


# --- targets ---------------------------------------------------------------------------------------


def targets(rows: dict[str, dict[int, Timing]], single: dict[str, Timing]) -> list[tuple[str, float, float]]:
    """(what, ratio measured, ratio allowed). Ratios are of the best times."""
    floor, us = rows["plain loop, await"], rows["fairlead, time-outs on"]
    sync, recording = rows["fairlead, sync"], rows["fairlead, recording"]
    found = [
        (f"{n} hooks against the plain await loop", us[n].best / floor[n].best, limit)
        for n, limit in zip(SIZES, (2.2, 3.0, 1.8, 1.4), strict=True)
    ]
    found += [(f"recording against not, {n} hooks", recording[n].best / us[n].best, 2.0) for n in SIZES[1:]]
    if "pluggy (sync)" in rows:
        found += [
            (f"dispatch_sync against pluggy, {n}", sync[n].best / rows["pluggy (sync)"][n].best, 0.2) for n in SIZES
        ]
    if "aiosignal" in rows:
        found += [
            (f"aiosignal, {n}", us[n].best / rows["aiosignal"][n].best, limit) for n, limit in ((10, 1.2), (100, 1.0))
        ]
    frameworks = ("pydantic-ai Hooks", "strands hooks", "google-adk plugins", "agent-framework middleware")
    for peer in (name for name in frameworks if name in rows):
        found.append((f"slowest ratio to {peer}", max(us[n].best / rows[peer][n].best for n in SIZES), 1.0))
    found += [
        ("a lone gate against a transform", single["one gate"].best / single["one transform"].best, 1.1),
        ("ten gates against gathering ten tasks", single["ten gates"].best / single["gather ten tasks"].best, 1.3),
        ("a suspending hook", single["a hook that suspends"].best / single["bare suspension"].best, 2.0),
        (
            "10,000 hooks against the 10",
            single["10,000 hooks over 1,000 tools"].best / single["the 10 that match"].best,
            1.2,
        ),
    ]
    return found


# --- printing --------------------------------------------------------------------------------------


def table(rows: dict[str, dict[int, Timing]]) -> str:
    floor = rows["plain loop, await"]
    lines = [f"{'ns per dispatch (ratio to the await loop)':<42}" + "".join(f"{f'{n} hooks':>18}" for n in SIZES)]
    for name, timings in sorted(rows.items(), key=lambda row: row[1][SIZES[-1]].best):
        cells = "".join(f"{_cell(timings.get(n), floor[n]):>18}" for n in SIZES)
        lines.append(f"{name:<42}{cells}")
    return "\n".join(lines)


def _cell(timing: Timing | None, floor: Timing) -> str:
    return "-" if timing is None else f"{timing.best:,.0f} ({timing.best / floor.best:.2f}x)"


async def run(rounds: int) -> dict[str, Any]:
    rows = await dispatch_rows(SIZES, rounds)
    single: dict[str, Timing] = {}
    for more in (gate_rows, suspension_rows, scale_rows, step_rows):
        single |= await more(rounds)
    return {"rows": rows, "single": single, "targets": targets(rows, single)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--svg", type=Path)
    options = parser.parse_args()
    found = asyncio.run(run(options.rounds))
    print(table(found["rows"]))
    print()
    for name, timing in found["single"].items():
        print(f"{name:<42}{timing.best:>12,.0f} ns   median {timing.median:>10,.0f}")
    print()
    for what, ratio, limit in found["targets"]:
        print(f"{'ok ' if ratio <= limit else 'OVER'} {what:<50}{ratio:>8.2f}x   at most {limit:.2f}x")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(_plain(found), indent=1))
    if options.svg:
        options.svg.parent.mkdir(parents=True, exist_ok=True)
        options.svg.write_text(chart.svg(found["rows"], SIZES))


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    as_pair = lambda timing: {"best_ns": round(timing.best, 1), "median_ns": round(timing.median, 1)}
    return {
        "python": platform.python_version(),
        "dispatch": {name: {n: as_pair(t) for n, t in row.items()} for name, row in found["rows"].items()},
        "single": {name: as_pair(t) for name, t in found["single"].items()},
        "targets": [{"what": w, "ratio": round(r, 3), "limit": limit} for w, r, limit in found["targets"]],
    }


if __name__ == "__main__":
    main()
