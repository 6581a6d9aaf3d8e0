"""The tables of docs/frameworks.md, from what the suite has seen: `python matrix.py RESULTS [--write] [--newest]`

Without `--write` it says whether the page has them as they are. With `--newest`, the newest versions are enough, and
it is not checked that the oldest ones do the same.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from fairlead import EVENTS
from fairlead.hosts.frameworks.framework import ALL
from fairlead.lifecycle import CONTROLS

PAGE = Path(__file__).parents[3] / "docs/frameworks.md"
Seen = dict[str, dict[str, str]]
"""What was seen of a behaviour or a cell, in each way of running."""


def read(folder: Path, ages: list[str]) -> dict[str, Seen]:
    """What was seen of each framework, by its title. Its oldest version must have shown what its newest has."""
    found: dict[str, Seen] = {}
    for name in ALL:
        files = [file for age in ages for file in (folder / age).glob(f"{name}-*.json")]
        if len(files) != len(ages):
            sys.exit(f"{folder} needs one result of {name} in each of {', '.join(ages)}; it has {len(files)} in all")
        told: list[Any] = [json.loads(file.read_text()) for file in files]
        newest = told[0]["results"]
        for file, one in zip(files, told, strict=True):
            oldest = one["results"]
            if newest != oldest:
                differ = [key for key in newest | oldest if newest.get(key) != oldest.get(key)]
                sys.exit(f"{files[0].stem} and {file.stem} differ in {', '.join(differ)}")
        found[told[0]["title"]] = newest
    return found


def cells(found: dict[str, Seen]) -> str:
    """What each framework carries out, per event; what it does not while streaming stands in brackets."""
    rows = [_row("event", found), "|---|" + "---|" * len(found)]
    for event in EVENTS:
        told = [_told(seen, event) for seen in found.values()]
        if any(told):
            rows.append(_row(f"`{event}`", told))
    return "\n".join(rows)


def _told(seen: Seen, event: str) -> str:
    wanted = [*(name for name in CONTROLS if name != "proceed"), *EVENTS[event].changes, "context"]
    words = []
    fires = event in seen["test_the_events_that_fire_are_those_of_the_table"].get("events", "").split()
    for part in wanted:
        ways = seen.get(f"{event} {part}", {})
        if ways.get("async") == "yes":
            words.append(part if ways.get("streaming", "yes") == "yes" else f"({part})")
    return " ".join(words) or ("seen" if fires else "")


def behaviours(found: dict[str, Seen]) -> str:
    """What was tried everywhere, and where it works."""
    names = list(dict.fromkeys(key for seen in found.values() for key in seen if key.startswith("test_")))
    names = [name for name in names if any("events" not in seen.get(name, {}) for seen in found.values())]
    rows = [_row("behaviour", found), "|---|" + "---|" * len(found)]
    for name in names:
        title = name.removeprefix("test_").replace("_s_", "'s ").replace("_", " ")
        rows.append(_row(title, (_works(seen.get(name, {})) for seen in found.values())))
    return "\n".join(rows)


def _works(ways: dict[str, str]) -> str:
    """In which ways it works."""
    if not ways:
        return ""
    works = [way for way, seen in ways.items() if seen == "yes"]
    if len(works) == len(ways):
        return "yes"
    return (
        f"{', '.join(works)} only"
        if works
        else {"reported": "no, and says so", "silent": "no such event"}[max(ways.values())]
    )


def _row(first: str, cells: Any) -> str:
    return f"| {first} | " + " | ".join(cells) + " |"


def main(folder: Path, write: bool, ages: list[str]) -> int:
    found = read(folder, ages)
    page = PAGE.read_text()
    wanted = page
    for name, table in {"cells": cells(found), "behaviours": behaviours(found)}.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, rest = wanted.split(begin)
        wanted = before + begin + table + "\n" + end + rest.split(end, 1)[1]
    if write:
        PAGE.write_text(wanted)
    elif wanted != page:
        print(f"{PAGE} does not say what was seen: run `python tests/hosts/frameworks/matrix.py {folder} --write`")
        return 1
    print(f"{PAGE.name} says what was seen")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("results", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--newest", action="store_true")
    options = parser.parse_args()
    sys.exit(main(options.results, options.write, ["new"] if options.newest else ["new", "old"]))
