"""How much of a call the guard reads, and how it joins paths."""

from __future__ import annotations

from ..shell.commands import join as join_known
from ..shell.tree import TooComplex

LIMIT = 64 << 10
"""How many characters of a command are read. In a longer one, any mention counts."""
WORK = 4000
"""How many words and paths are looked at. In a longer line, any mention counts."""
LONGEST = 4096
"""Characters of a path, or of a variable."""


class Effort:
    """The variables that are known on a line, and how much effort is left to look at it."""

    __slots__ = ("left", "variables")

    def __init__(self, variables: dict[str, str]) -> None:
        self.variables = variables
        self.left = WORK

    def spend(self, effort: int, length: int = 0) -> None:
        self.left -= effort
        if self.left < 0 or length > LONGEST:
            raise TooComplex


def join(folder: str, path: str, home: str) -> str:
    """The absolute path of a path in a folder, as far as both are known."""
    return join_known(folder or "/", str(path), home)
