"""Which numbered behaviour of which seed a test pins, and the tables of docs/seeds.md that are made of them.

A test is marked with `@behaviour("004-17", lines="127-130", kind="same", about="Reject carries a reason")`. The lines
are those of the seed's file. Run this file to write the tables into docs/seeds.md.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args

F = TypeVar("F", bound=Callable[..., Any])
Kind = Literal["same", "otherwise", "different"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SEEDS = {"000": "stakpak", "001": "synwire", "002": "openfang", "003": "defect", "004": "ironclaw"}

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "seeds.md"


class Behaviour(NamedTuple):
    """One behaviour of a seed: fairlead does the same, expresses it otherwise, or differs by choice."""

    number: str
    lines: str
    kind: Kind
    about: str
    test: str = ""
    module: str = ""

    @property
    def order(self) -> tuple[str, int]:
        seed, _, number = self.number.partition("-")
        return seed, int(number)


def behaviour(number: str, *, lines: str, kind: Kind, about: str) -> Callable[[F], F]:
    """Mark the test that pins this behaviour. A test may pin several; a behaviour is pinned by one test."""
    if not re.fullmatch(rf"(?:{'|'.join(SEEDS)})-[1-9]\d*", number):
        raise ValueError(f"a behaviour's number is like 004-17, not {number!r}")
    if not re.fullmatch(r"\d+(-\d+)?(, \d+(-\d+)?)*", lines):
        raise ValueError(f"{number}: lines are like '127', '127-130' or '12, 40-44', not {lines!r}")
    if kind not in KINDS:
        raise ValueError(f"{number}: kind is one of {', '.join(KINDS)}, not {kind!r}")

    def mark(test: F) -> F:
        pinned = vars(test).setdefault("behaviours", [])
        pinned.insert(0, Behaviour(number, lines, kind, about, test.__name__, test.__module__))
        return test

    return mark


def collect() -> list[Behaviour]:
    """All behaviours that the tests of this folder pin, in order. Raises `ValueError` if two have one number."""
    found: dict[str, Behaviour] = {}
    for path in sorted(HERE.glob("test_*.py")):
        for test in vars(import_module(path.stem)).values():
            for one in getattr(test, "behaviours", ()) if callable(test) else ():
                if one.module != path.stem:
                    continue  # imported from another module
                if one.number in found:
                    raise ValueError(f"{one.number} is pinned by {one.test} and by {found[one.number].test}")
                found[one.number] = one
    return sorted(found.values(), key=lambda one: one.order)


def missing(behaviours: Iterable[Behaviour]) -> list[str]:
    """The numbers that no test pins, below the highest number of each seed, and the seeds without any."""
    highest = dict.fromkeys(SEEDS, 1)
    numbers = {one.order for one in behaviours}
    for seed, number in numbers:
        highest[seed] = max(highest[seed], number)
    wanted = ((seed, number) for seed, last in highest.items() for number in range(1, last + 1))
    return [f"{seed}-{number}" for seed, number in wanted if (seed, number) not in numbers]


def tables(behaviours: list[Behaviour]) -> str:
    """The tables of docs/seeds.md: the count per seed, and each behaviour that is not the same."""
    rows = ["| seed | behaviours | same | expressed otherwise | different by choice |", "|---|---|---|---|---|"]
    groups = [(f"{seed} {name}", [b for b in behaviours if b.number.startswith(seed)]) for seed, name in SEEDS.items()]
    for name, group in [*groups, ("all", behaviours)]:
        counts = (sum(one.kind == kind for one in group) for kind in KINDS)
        rows.append(f"| {name} | {len(group)} | {' | '.join(map(str, counts))} |")
    for kind, title in (("otherwise", "Expressed otherwise"), ("different", "Different by choice")):
        rows += ["", f"### {title}", "", "| behaviour | lines | fairlead | test |", "|---|---|---|---|"]
        for one in behaviours:
            if one.kind == kind:
                link = f"[`{one.test}`](../tests/conformance/{one.module}.py)"
                rows.append(f"| {one.number} | {one.lines} | {one.about.replace('|', chr(92) + '|')} | {link} |")
    return "\n".join(rows) + "\n"


MARKED = re.compile(r"(?<=<!-- behaviours -->\n).*?(?=<!-- /behaviours -->)", re.DOTALL)


def written(page: str, behaviours: list[Behaviour]) -> str:
    """The page with the tables as the tests have them now."""
    return MARKED.sub(lambda _: tables(behaviours), page)


if __name__ == "__main__":
    sys.path[:0] = [str(HERE), str(HERE.parent)]
    PAGE.write_text(written(PAGE.read_text(), collect()))
