"""What a tool call costs in each framework: alone, with its own hooks, and with fairlead's.

Part of `make bench`. Each framework runs in its own environment below .frameworks (see `make test-frameworks`), where
`bench.framework` measures it. Prints a table and how the figures stand to the targets; asserts nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SUITE = ROOT / "tests/frameworks"
PLACES = ROOT / ".frameworks"
IMPORT = 20.0
"""Milliseconds that importing an adapter may take beyond its framework."""
COUNTS = (1, 10, 50)


def main(names: list[str]) -> None:
    sys.path.insert(0, str(SUITE))
    from environments import prepare  # type: ignore[import-not-found]

    table = tomllib.loads((SUITE / "versions.toml").read_text())
    print("A tool call, in us: what the framework takes, and what hooks add to that (best of several rounds).")
    print(f"{'':18}{'alone':>9} {'native 1':>9} {'10':>7}   {'fairlead 1':>11} {'10':>7} {'50':>7}   {'import':>10}")
    for name in names or table:
        place = PLACES / f"{name}-new"
        prepare(place, table[name]["new"])
        print(line(name, measured(place, name)), flush=True)
    print(f"import: ms beyond the framework's own, {IMPORT:g} allowed. Our 10 should cost less than its own 10.")


def measured(place: Path, name: str) -> dict[str, Any]:
    about = {"FAIRLEAD_FRAMEWORK": name, "PYTHONPATH": f"{ROOT}:{SUITE}"}
    done = subprocess.run(
        [place.absolute() / "bin/python", "-W", "ignore", "-m", "bench.framework", name],
        env=os.environ | about, cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{name}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def line(name: str, found: dict[str, Any]) -> str:
    native, ours = found["native"], found["fairlead"]
    cells = [f"{native[str(n)]:+7.0f}" if native else "      -" for n in (1, 10)]
    verdict = "" if not native else "  ok" if ours["10"] <= native["10"] else "  OVER"
    told = f"{name:18}{found['alone']:9.0f}   {cells[0]} {cells[1]}       "
    told += " ".join(f"{ours[str(count)]:+7.0f}" for count in COUNTS)
    late = "" if found["import"] <= IMPORT else "  OVER"
    return f"{told}   {found['import']:8.1f}{late}{verdict}"


if __name__ == "__main__":
    main(sys.argv[1:])
