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
SUITE = ROOT / "tests/hosts/frameworks"
PLACES = ROOT / ".frameworks"
IMPORT = 20.0
"""Milliseconds that importing an adapter may take beyond its framework."""
COLUMNS = {"native": (1, 10, 50), "wide": (1, 10), "limited": (10,), "fairlead": (1, 10, 50)}
"""How many hooks of each kind."""
LEGEND = f"""\
native: hooks of its own that do nothing before a tool. wide: such before and after both tool and model, as far as ours
reach. limited: such before a tool, each with a time limit and a failure policy, as ours have. import: ms beyond the
framework's own, {IMPORT:g} allowed. At the end: our ten against its ten of each kind."""


def main(names: list[str]) -> None:
    sys.path.insert(0, str(SUITE))
    from environments import prepare  # type: ignore[import-not-found]

    table = tomllib.loads((SUITE / "versions.toml").read_text())
    print("A tool call, in us: what the framework takes, what two measurements of that differ by, and what hooks add.")
    counts = "".join(f"{count:8}" for ours in COLUMNS.values() for count in ours)
    print(f"{'':34}" + "".join(f"{title:>{8 * len(ours)}}" for title, ours in COLUMNS.items()))
    print(f"{'':18}{'alone':>8}{'noise':>8}{counts}{'import':>8}")
    for name in names or measurable(table):
        place = PLACES / f"{name}-new"
        prepare(place, table[name]["new"])
        print(line(name, measured(place, name)), flush=True)
    print(LEGEND)


def measurable(table: dict[str, Any]) -> list[str]:
    """The frameworks that can be driven. The table also has environments with two of them."""
    return [name for name in table if (SUITE / f"driver_{name}.py").exists()]


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
    added = [found[title].get(str(count)) for title, counts in COLUMNS.items() for count in counts]
    row = f"{name:18}{found['alone']:8.0f}{found['noise']:8.0f}"
    row += "".join(f"{'-':>8}" if one is None else f"{one:+8.0f}" for one in added) + f"{found['import']:8.1f}"
    ours, theirs = found["fairlead"]["10"], (found[title].get("10") for title in ("native", "wide", "limited"))
    row += "  " + ", ".join(against(ours, one, found["noise"]) for one in theirs)
    return row if found["import"] <= IMPORT else f"{row}, import OVER"


def against(ours: float, theirs: float | None, noise: float) -> str:
    if theirs is None:
        return "-"
    return "less" if ours < theirs - noise else "more" if ours > theirs + noise else "same"


if __name__ == "__main__":
    main(sys.argv[1:])
