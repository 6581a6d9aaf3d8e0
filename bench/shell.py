"""What reading a command line costs: ordinary lines, garbage, and lines of growing length.

Part of `make bench`. With FAIRLEAD_CORPORA set to a folder that has `tldr_commands.jsonl` (each line JSON with a
`command`), ordinary lines come from there. Prints a table and how the figures stand to the targets; asserts nothing.
"""

from __future__ import annotations

import json
import os
import random
import string
from pathlib import Path
from statistics import median
from time import process_time

from fairlead.lifecycle import BeforeTool
from fairlead.shell import read

MEDIAN, GARBAGE = 60.0, 10.0
"""Microseconds of an ordinary line, and milliseconds of 100 KB of garbage, at most."""
ORDINARY = (
    "ls -la", "git status --short", "git commit -am 'a message'", "cd src && pytest -x -q 2>&1 | tail -20",
    "grep -rn 'def main' --include='*.py' .", "find . -name '*.pyc' -delete", "docker run --rm -v a:/w python:3 bash",
    "for f in *.py; do wc -l \"$f\"; done", "sed -i 's/a/b/g' file.txt", "curl -sSfL https://example.com/x | jq .name",
    "tar czf out.tgz --exclude .git .", "npm run build && npm test", "kubectl get pods -n web -o wide",
    "python3 -c 'import sys; print(sys.version)'", "sudo systemctl restart nginx", "cat <<E > f\nx\nE",
)  # fmt: skip


def ordinary() -> list[str]:
    folder = os.environ.get("FAIRLEAD_CORPORA")
    if folder is None:
        return list(ORDINARY) * 50
    text = Path(folder, "tldr_commands.jsonl").read_text()
    return [json.loads(row)["command"] for row in text.splitlines()]


def shapes(size: int) -> dict[str, str]:
    """Texts of about this many characters that are hard to read."""
    dice = random.Random(1)
    return {
        "garbage": "".join(dice.choices(string.printable, k=size)),
        "words": "a " * (size // 2),
        "one word": "x" * size,
        "quotes": "'\"" * (size // 2),
        "substitutions": "$(a) " * (size // 5),
        "backticks": "`" * size,
        "commands": "a b;" * (size // 4),
        "a here-document": "cat <<E\n" + "some text\n" * (size // 10) + "E\n",
    }


def taken(text: str) -> float:
    """Seconds that reading takes, the best of three."""
    times = []
    for _ in range(3):
        began = process_time()
        read(text, "/work")
        times.append(process_time() - began)
    return min(times)


def main() -> None:
    times = sorted(taken(line) * 1e6 for line in ordinary())
    middle = median(times)
    slow = times[len(times) * 99 // 100]
    print(f"an ordinary line ({len(times):,} of them): median {middle:.1f} us, p99 {slow:.0f} us")
    print(f"  at most {MEDIAN:g} us{'   OVER' if middle > MEDIAN else ''}\n")
    print(f"{'ms':20}{'25 KB':>10}{'100 KB':>10}{'400 KB':>10}   read to its end")
    for name in shapes(100):
        texts = [shapes(size)[name] for size in (25_000, 100_000, 400_000)]
        figures = [taken(text) * 1e3 for text in texts]
        over = "   OVER" if figures[1] > GARBAGE else ""
        print(f"{name:20}" + "".join(f"{figure:10.2f}" for figure in figures) + f"   {read(texts[1]).sound}{over}")
    print(f"  100 KB in at most {GARBAGE:g} ms\n")
    step = BeforeTool(tool="Read", args={"path": "x"})
    began = process_time()
    for _ in range(1000):
        step.target.commands  # noqa: B018
    print(f"the commands of a step that is no shell call: {(process_time() - began) * 1e3:.2f} us")


if __name__ == "__main__":
    main()
