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
    print("A tool call, in us: what the framework takes, what two measurements of that differ by, and what hooks add.")
    counts = "".join(f"{count:8}" for count in COUNTS)
    print(f"{'':34}{'native, at a tool':>24}{'wide':>8}{'fairlead':>24}")
    print(f"{'':18}{'alone':>8}{'noise':>8}{counts}{10:8}{counts}{'import':>8}")
    for name in names or table:
        place = PLACES / f"{name}-new"
        prepare(place, table[name]["new"])
        print(line(name, measured(place, name)), flush=True)
    print("wide: hooks of its own before and after both tool and model, as far as ours reach.")
    print(
        f"import: ms beyond the framework's own, {IMPORT:g} allowed. At the end: our ten against its ten, and its wide."
    )


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
    native, wide, ours = found["native"], found["wide"], found["fairlead"]
    added = [*(native.get(str(count)) for count in COUNTS), wide, *(ours[str(count)] for count in COUNTS)]
    told = f"{name:18}{found['alone']:8.0f}{found['noise']:8.0f}"
    told += "".join(f"{'-':>8}" if one is None else f"{one:+8.0f}" for one in added) + f"{found['import']:8.1f}"
    told += f"  {against(ours['10'], native.get('10'), found['noise'])}; {against(ours['10'], wide, found['noise'])}"
    return told if found["import"] <= IMPORT else f"{told}, import OVER"


def against(ours: float, theirs: float | None, noise: float) -> str:
    if theirs is None:
        return "-"
    return "less" if ours < theirs - noise else "more" if ours > theirs + noise else "same"


if __name__ == "__main__":
    main(sys.argv[1:])
