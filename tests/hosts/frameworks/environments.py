"""The tests of every framework, with its oldest and its newest version: `environments.py DIR [--newest] [NAME ...]`

Each runs in an environment of its own below DIR, which is made when it is missing. With `--newest`, the oldest versions
are left out. What was seen is written to DIR/results, from which `matrix.py` makes the tables of the docs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
TESTING = ["pytest>=8.2", "pytest-asyncio>=0.26", "pytest-timeout>=2.3", "mypy>=1.15", "pyright[nodejs]>=1.1.400"]


def main(folder: Path, names: list[str], ages: list[str]) -> int:
    table = tomllib.loads((HERE / "versions.toml").read_text())
    wanted = [(name, age) for name in names or table for age in table[name] if age in ages]
    for name, age in wanted:
        prepare(folder / f"{name}-{age}", table[name][age])
    with ThreadPoolExecutor(os.cpu_count()) as several:
        codes = list(several.map(lambda one: run(folder, *one), wanted))
    return max(codes)


def prepare(place: Path, packages: list[str]) -> None:
    """An environment with these packages, the project, and what its tests need."""
    mark = place / "ready"
    made_of = "\n".join([*packages, *TESTING])
    if mark.exists() and mark.read_text() == made_of:
        return
    began = time.monotonic()
    uv = [sys.executable, "-m", "uv", "--quiet"]
    subprocess.run([*uv, "venv", "--clear", "--python", sys.executable, place], check=True)
    python = str(place / "bin/python")
    subprocess.run([*uv, "pip", "install", "--python", python, *packages, *TESTING, "-e", ROOT], check=True)
    mark.write_text(made_of)
    print(f"{place.name}: {', '.join(packages)} in {time.monotonic() - began:.0f} s", flush=True)


def run(folder: Path, name: str, age: str) -> int:
    """The suite, in one environment."""
    about = {"FAIRLEAD_FRAMEWORK": name, "FAIRLEAD_RESULTS": str((folder / "results" / age).absolute())}
    words = ["-m", "pytest", "-m", "", "-W", "default", "-p", "no:cacheprovider", str(HERE)]
    done = subprocess.run(
        [folder.absolute() / f"{name}-{age}/bin/python", *words],
        env=os.environ | about, cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    last = (done.stdout.strip().splitlines() or ["nothing was said"])[-1]
    print(f"{name} ({age}): {last}", flush=True)
    if done.returncode:
        print(done.stdout[-20_000:], done.stderr[-5_000:], sep="\n", flush=True)
    return done.returncode


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--newest", action="store_true", help="leave out the oldest versions")
    options = parser.parse_args()
    sys.exit(main(options.folder, options.names, ["new"] if options.newest else ["new", "old"]))
