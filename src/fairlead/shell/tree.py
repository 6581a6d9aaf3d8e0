"""The tree of a command line, and the budget for reading it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Union

DEPTH = 32
"""How deep brackets, blocks and substitutions are followed."""
TOKENS = 4000
"""How many tokens of a line, with all that is nested in it, are read."""


class TooComplex(Exception):
    """A line takes too long to read, or is nested too deep."""


class Budget:
    """How many tokens may still be read. One budget is shared by a line and all lines in it."""

    __slots__ = ("left",)

    def __init__(self, tokens: int = TOKENS) -> None:
        self.left = tokens

    def spend(self, tokens: int = 1) -> None:
        self.left -= tokens
        if self.left < 0:
            raise TooComplex


class TextPart(NamedTuple):
    """A part of a word that is what it says. Unquoted, `*` or `{a,b}` in it still mean something."""

    text: str
    quoted: bool


class Variable(NamedTuple):
    """`$NAME`, or `${NAME...}` with what follows the name: an operator, and the parts after it."""

    name: str
    operator: str
    argument: tuple[WordPart, ...]
    quoted: bool
    source: str


class Substitution(NamedTuple):
    """`$(...)` and backticks; with `<` or `>` as its sign a process whose output or input is a file."""

    body: Block
    sign: str
    quoted: bool
    source: str


class Arithmetic(NamedTuple):
    """`$((...))`"""

    text: str
    source: str


WordPart = Union[TextPart, Variable, Substitution, Arithmetic]
WordParts = Union[str, tuple[WordPart, ...]]
"""A word of plain characters is a str. Any other consists of parts."""


class RedirectNode(NamedTuple):
    """Where a descriptor leads: `2>file`, `<<END` with its document, `{fd}<file`."""

    descriptor: str
    operator: str
    word: WordParts
    document: HereDocument | None


class HereDocument:
    """A here-document. Its text comes later than the command that reads it."""

    __slots__ = ("end", "expands", "tabs", "text")

    def __init__(self, end: str, expands: bool, tabs: bool) -> None:
        self.end, self.expands, self.tabs, self.text = end, expands, tabs, ""


class Assignment(NamedTuple):
    """`a=1`, `a+=1`, `a[0]=1`, `a=(1 2)`"""

    name: str
    value: WordParts | list[WordParts]
    adds: bool
    item: str | None = None


class Simple(NamedTuple):
    """A command of words."""

    assignments: list[Assignment]
    words: list[WordParts]
    redirects: list[RedirectNode]


class Compound(NamedTuple):
    """A command that consists of others: `( )`, `{ }`, `if`, `case`, `while`, `until`, `for`, `select`, `[[`, `((`.

    Each block may run. A `for` has a variable, and maybe words; a `case` has its word and the patterns in words.
    Pipelines with `&&` and `||` between them are of the kind `and-or`, and what runs in the background is `&` or
    `coproc`.
    """

    kind: str
    blocks: list[Block]
    redirects: list[RedirectNode]
    variable: str = ""
    words: list[WordParts] | None = None
    operators: Sequence[str] = ()


class Function(NamedTuple):
    name: str
    body: Node


Node = Union[Simple, Compound, Function]
Pipeline = list[Node]
Block = list[Pipeline]
