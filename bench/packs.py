"""What packs cost per call: ordinary commands, 100 KB of garbage, and calls that are no command.

Part of `make bench`. With FAIRLEAD_CORPORA set to a folder that has `tldr_commands.jsonl`, ordinary commands come from
there. If `make corpora` was run before, the rivals' figures stand beside. Prints a table; asserts nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from time import process_time

from fairlead.hook import Hook
from fairlead.lifecycle import BeforeTool
from fairlead.packs import Pack, packs
from fairlead.packs.judging import PackGate, line_of, pack_hook

from .shell import ordinary, shapes

MEDIAN, GARBAGE, OTHER = 200.0, 10.0, 2.0
"""Microseconds of an ordinary command, milliseconds of garbage, microseconds of a call that is no command."""
RESULTS = Path("build/corpora/results.json")
FOLDER = "/home/me/project"


def judged(gates: list[PackGate], text: str) -> float:
    """Seconds that all packs take for a command."""
    step = BeforeTool(tool="bash", args={"command": text}, cwd=FOLDER)
    line_of.cache_clear()
    began = process_time()
    for gate in gates:
        gate(step)
    return process_time() - began


def of_no_command(every: list[Pack]) -> float:
    """Microseconds that the packs add to a call of a tool that is no shell: the best of many rounds."""
    step = BeforeTool(tool="Read", args={"file_path": f"{FOLDER}/main.py"}, cwd=FOLDER)
    hooks: list[Hook] = [pack_hook(pack) for pack in every]
    gates = [hook.fn for hook in hooks if hook.kind is None or step.kind in hook.kind]
    best = []
    for _ in range(50):
        began = process_time()
        for _ in range(200):
            for gate in gates:
                gate(step)
        best.append((process_time() - began) / 200 * 1e6)
    return min(best)


def rivals() -> list[tuple[str, str]]:
    """The median times of rivals, if they were measured."""
    if not RESULTS.exists():
        return [("rivals", "not measured: run `make corpora` first")]
    found = json.loads(RESULTS.read_text())["rivals"]
    rows = []
    for name, of in found.items():
        taken = of.get("tldr_commands", {}).get("median_us")
        if taken:
            rows.append((name, f"{taken:10,.1f} us per ordinary command"))
    return rows


def main() -> None:
    every = packs("recommended")
    gates = [PackGate(pack) for pack in every]
    texts = ordinary()
    for text in texts[:200]:
        judged(gates, text)
    taken = sorted(judged(gates, text) * 1e6 for text in texts)
    print(f"{len(every)} packs, {len(texts)} ordinary commands")
    print(f"  {'median':24}{median(taken):10.1f} us (at most {MEDIAN:.0f})")
    print(f"  {'99 of 100 below':24}{taken[int(len(taken) * 0.99)]:10.1f} us")
    for name, text in shapes(100_000).items():
        worst = min(judged(gates, text) for _ in range(3)) * 1e3
        print(f"  100 KB of {name:14}{worst:10.1f} ms{f' (at most {GARBAGE:.0f})' if name == 'garbage' else ''}")
    print(f"  {'a call of no command':24}{of_no_command(every):10.2f} us (at most {OTHER:.0f})")
    for name, text in rivals():
        print(f"  {name:24}{text}")


if __name__ == "__main__":
    main()
