"""Fetches the agent CLIs from npm, in the versions that were proven: `python fetch.py FOLDER [NAME...]`.

Claude Code and Codex must install; the others are left out where they do not.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fairlead.hosts.clis.mapping import hosts

REQUIRED = ("claude_code", "codex")
BESIDE = {"qwen": ("node@22",)}
"""What a CLI needs beside itself, where the machine's own is too old."""
VERSIONS = {host.name: (f"{host.package}@{host.proven}", *BESIDE.get(host.name, ())) for host in hosts(False)}
GUESTS = {
    "cursor_sdk": ("@cursor/sdk@1.0.32", "node@22"),
    "copilot_sdk": ("@github/copilot-sdk@1.0.14",),
    "jetbrains": ("@github/copilot-language-server@1.539.0",),
    "vscode": ("code-server@4.139.1",),
}
"""Programs that run the hooks of these CLIs: what of them can be had. Their own install scripts are not needed."""


WHEELS = "recipes"
"""The name of what the recipes of docs/clis/machines.md install: fairlead as it is now, and what it needs."""
REPOSITORY = Path(__file__).parents[4]


def make_wheels(place: Path) -> bool:
    """Build fairlead's wheel, and have those that it needs beside it. Whether they are there."""
    wanted = [f"{REPOSITORY}[rules,serve]", "-c", str(REPOSITORY / "constraints.txt")]
    made = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--wheel-dir", str(place), *wanted],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    if made.returncode:
        print(f"{WHEELS}: {made.stderr.strip()[-500:]}", file=sys.stderr)
        return False
    (place / "fetched").touch()
    return True


def fetch(folder: Path, name: str) -> bool:
    """Install one, unless it is there. Whether it is."""
    if name == WHEELS:
        return make_wheels(folder / name)
    packages = (VERSIONS | GUESTS)[name]
    place, wanted = folder / name, "\n".join(packages)
    mark = place / "fetched"
    if mark.exists() and mark.read_text() == wanted:
        return True
    place.mkdir(parents=True, exist_ok=True)
    npm = ["npm", "install", "--prefix", str(place), "--no-audit", "--no-fund", "--no-package-lock", "--force"]
    npm += ["--ignore-scripts"] if name == "vscode" else []
    try:
        ran = subprocess.run([*npm, *packages], capture_output=True, text=True, timeout=600, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return False
    if ran.returncode != 0:
        print(f"{name}: {ran.stderr.strip()[-500:]}", file=sys.stderr)
        return False
    mark.write_text(wanted)
    return True


if __name__ == "__main__":
    found = {name: fetch(Path(sys.argv[1]), name) for name in sys.argv[2:] or VERSIONS}
    print(
        "\n".join(
            f"{'have' if there else 'NO  '} {' '.join((VERSIONS | GUESTS).get(name, (name,)))}"
            for name, there in found.items()
        )
    )
    sys.exit(any(not found.get(name, True) for name in REQUIRED))
