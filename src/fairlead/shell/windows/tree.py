"""The tree of a PowerShell or cmd line: blocks of pipelines of simple commands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ..commands import Redirect
from ..tree import DEPTH, Budget, TooComplex
from ..words import LONGEST, Word


@dataclass(slots=True)
class Simple:
    """One command: its words without quotes, and what is nested in them. An expression has no words."""

    words: list[str] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    nested: list[Nested] = field(default_factory=list)
    assignments: dict[str, str] = field(default_factory=dict)
    listed: set[int] = field(default_factory=set)
    """Which words go on with the list of the word before: `b` in `a,b`."""
    value: str | None = None
    """The text that an expression stands for, if the line says it."""
    literals: list[str] = field(default_factory=list)
    """The texts in an expression."""
    source: str = ""
    """How the command is written. Only of cmd, whose `cmd /c` takes its line as it is written."""


class Nested(NamedTuple):
    """A block inside a command: `$(...)` gives it words, and a script block `{...}` may be run by it."""

    sign: str
    block: Block


Pipeline = list[Simple]
Block = list[Pipeline]


class Scanner:
    """A place in a text, with the bounds of reading it. Both parsers begin here."""

    def __init__(self, text: str, budget: Budget, variables: dict[str, str], depth: int) -> None:
        self.text, self.budget, self.variables, self.depth = text, budget, variables, depth
        self.at = 0
        self.sound = True

    def enter(self) -> None:
        """Go one bracket deeper. `depth` counts the brackets around the line, too."""
        self.depth += 1
        if self.depth > DEPTH:
            raise TooComplex

    def value_of(self, name: str, source: str) -> str:
        """The value of a variable, or how it is written. Only running would tell for sure."""
        value = self.variables.get(name.casefold())
        self.budget.spend(1 + len(value or "") // 256)
        return Word(source if value is None else value, (source[:80],))


def joined(pieces: list[str], unknown: Iterable[str]) -> str:
    """One word made of its pieces."""
    text = "".join(pieces)
    if len(text) > LONGEST and len(pieces) > 1:  # variables can double each other
        return Word(text[:LONGEST], (*unknown, "..."))
    unknown = tuple(unknown)
    return Word(text, unknown) if unknown else text
