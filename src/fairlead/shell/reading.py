"""What a command line does: every command in it, with its words, its folder and the way it is run.

Nothing runs. The reader follows what the line itself says: variables, loops over words, functions, aliases, `cd`,
here-documents, and the programs that run other programs (`carriers`). Branches are all taken. Where the line does
not say what happens, the command is not `sure`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from .carriers import CARRIERS, carrier_of
from .commands import Command, Dialect, Feed, Line, Redirect, join, quote
from .outputs import output_of
from .syntax import (
    DECLARES,
    Assignment,
    Block,
    Budget,
    Compound,
    Document,
    Function,
    Node,
    Parser,
    Pipeline,
    Simple,
    Substitution,
    TooComplex,
)  # fmt: skip
from .syntax import Redirect as RedirectTree
from .words import Expander, Value, Word, is_exact, unknown_of

NESTED = 6
"""How deep lines in lines are read: `sh -c "sh -c ..."`."""
CALLS = 8
"""How deep functions that call functions are followed."""
TURNS = 16
"""How many words of a `for` are followed one by one."""


def read(text: str, folder: str = "", variables: Mapping[str, str] | None = None, dialect: Dialect = "posix") -> Line:
    """Read a command line. `folder` is where it runs, and `variables` are those of its environment that are known.

    `dialect` says whose line it is. PowerShell and cmd have a smaller reader, which is never sure.
    """
    if dialect != "posix":
        from .windows import read_windows  # most lines are POSIX

        return read_windows(text, dialect, folder, variables or {})
    known: dict[str, Value] = {"IFS": " \t\n", "SHELL": "/bin/sh", "BASH": "/bin/bash", **(variables or {})}
    shell = Shell(known, folder, Budget())
    tree: list[Command] = []
    try:
        parser = Parser(text, shell.budget)
        block = parser.parse()
        shell.sound = parser.sound
        shell.run(block, into=tree)
        shell.run_uncalled(into=tree)
    except (TooComplex, RecursionError):
        shell.sound = False
    if not shell.sound and not tree:
        tree.append(Command([Word(text[:200], ("...",))], folder, (), False))
    return Line(text, tree, shell.sound)


@lru_cache(maxsize=64)
def commands_of(text: str, dialect: Dialect = "posix") -> list[Command]:
    """The commands of a line. A line that is asked about again and again is read once."""
    return read(text, dialect=dialect).commands


class State(NamedTuple):
    variables: dict[str, Value]
    folder: str
    before: str


class Shell:
    """Follows a line. One shell follows all lines in it, too."""

    def __init__(self, variables: dict[str, Value], folder: str, budget: Budget) -> None:
        self.budget = budget
        self.words = Expander(variables, budget, self._output_of_substitution)
        self.words.folder = folder
        self.before = folder
        self.functions: dict[str, Node] = {}
        self.uncalled: dict[str, Node] = {}
        self.aliases: dict[str, str] = {}
        self.git_aliases: dict[str, str] = {}
        self.via: tuple[str, ...] = ()
        self.sure = self.sound = True
        self.depth = self.calls = self.pipelines = 0
        self._feed: Feed | None = None
        self._inside: list[Command] = []  # the commands of substitutions in the words that are being expanded
        self._place = (0, 0)

    @property
    def variables(self) -> dict[str, Value]:
        return self.words.variables

    @property
    def folder(self) -> str:
        return self.words.folder

    # --- blocks ---------------------------------------------------------------------------------

    def run(self, block: Block, into: list[Command] | None = None) -> list[Command]:
        """Follow a block. Gives its commands, also those that were found before it became too complex."""
        commands: list[Command] = [] if into is None else into
        for pipeline in block:
            self._pipeline(pipeline, commands)
        return commands

    def run_uncalled(self, into: list[Command]) -> None:
        """Functions that the line defines and does not call may be called by something else."""
        for name, body in list(self.uncalled.items()):
            self.uncalled.pop(name, None)
            self.words.arguments = None
            self._node(body, into)

    def _pipeline(self, pipeline: Pipeline, into: list[Command]) -> None:
        self.pipelines += 1
        number, feed = self.pipelines, self._feed
        for position, node in enumerate(pipeline):
            self._place = (number, position)
            before = len(into)
            self._node(node, into)
            if position + 1 < len(pipeline):
                self._feed = Feed(None, into[before:])
        self._feed = feed

    def _node(self, node: Node, into: list[Command]) -> None:
        if type(node) is Simple:
            self._simple(node, into)
        elif type(node) is Compound:
            self._compound(node, into)
        elif type(node) is Function:
            self.functions[node.name] = self.uncalled[node.name] = node.body

    def _compound(self, node: Compound, into: list[Command]) -> None:
        feed, place = self._feed, self._place
        if node.redirects:
            command = self._command([], into)
            command.redirects, command.stdin = self._redirected(node.redirects, None)
            command.inner += self._taken()
            if command.stdin is not None:
                self._feed = Feed(command.stdin, [])
        if node.kind in ("for", "select"):
            self._for(node, into)
        elif node.kind in ("if", "case", "while", "until"):
            self._expand_quietly(node.words or (), into)
            self._branches(node, into)
        elif node.kind == "(":
            state = self._saved()
            self.run(node.blocks[0], into)
            self._restore(state)
        else:
            self._expand_quietly(node.words or (), into)
            for block in node.blocks:
                self.run(block, into)
        self._feed, self._place = feed, place

    def _expand_quietly(self, words: Iterable[object], into: list[Command]) -> None:
        """Words that are no command: `[[ ... ]]`, `case WORD in`. What runs in them counts."""
        for word in words:
            self.words.fields(word)  # type: ignore[arg-type]
        into += self._taken()

    def _saved(self) -> State:
        return State(dict(self.variables), self.folder, self.before)

    def _restore(self, state: State) -> None:
        self.words.variables, self.words.folder, self.before = dict(state.variables), state.folder, state.before

    def _branches(self, node: Compound, into: list[Command]) -> None:
        """Take every branch. What a branch sets may be so afterwards."""
        turns = 2 if node.kind in ("while", "until") else 1  # what the first turn sets, the second sees
        for _ in range(turns):
            before = dict(self.variables)
            for block in node.blocks:
                self._maybe(block, into)
            if self.variables == before:
                break

    def _maybe(self, block: Block, into: list[Command]) -> None:
        """Follow a block that may not run: what it changes is not known for sure afterwards."""
        state = self._saved()
        self.run(block, into)
        for name, value in self.variables.items():
            if name not in state.variables or state.variables[name] != value:
                self.variables[name] = Word(value, (f"${name}",)) if isinstance(value, str) else None

    def _for(self, node: Compound, into: list[Command]) -> None:
        words = [field for word in node.words for field in self.words.fields(word)] if node.words is not None else None
        if words is None:
            words = self.words.arguments
        into += self._taken()
        body = node.blocks[0]
        for word in (words or [])[:TURNS]:
            self.variables[node.variable] = word
            self.run(body, into)
        if words is None or len(words) > TURNS:
            self.variables[node.variable] = None
            self.run(body, into)

    # --- commands -------------------------------------------------------------------------------

    def _simple(self, node: Simple, into: list[Command]) -> None:
        assigned = [(one, self._assigned(one)) for one in node.assignments] if node.assignments else ()
        words: list[str] = []
        for word in node.words:
            if type(word) is str and not any(sign in word for sign in "{*?["):
                words.append(word)
            else:
                words += self.words.fields(word)
        if not words or words[0] in DECLARES:
            for one, value in assigned:
                self.variables[one.name] = value
        if words or node.redirects or assigned or self._inside:
            inside = self._taken()
            command = self._command(words, into)
            command.inner += inside
            if node.words and any(isinstance(part, Substitution) for part in node.words[0]):
                command.path = ""
            for one, value in assigned:
                command.assignments[one.name] = " ".join(value) if isinstance(value, list) else value or ""
            if node.redirects:
                command.redirects, command.stdin = self._redirected(node.redirects, command.stdin)
                command.inner += self._taken()
            self.invoke(command)

    def _assigned(self, one: Assignment) -> Value:
        if isinstance(one.value, list):
            items = [field for word in one.value for field in self.words.fields(word)]
            old = self.variables.get(one.name)
            return [*old, *items] if one.adds and isinstance(old, list) else items
        text = self.words.text(one.value)
        old = self.variables.get(one.name)
        if one.adds and isinstance(old, str):
            return (
                Word(old + text, unknown_of(old) + unknown_of(text))
                if unknown_of(old) + unknown_of(text)
                else old + text
            )
        return text

    def _command(self, words: list[str], into: list[Command]) -> Command:
        self.budget.spend()
        command = Command(words, self.folder, self.via, self.sure)
        command.pipeline, command.position = self._place
        if self._feed is not None:
            command.stdin = self._feed.text
            command.reads = self._feed.commands[-1] if self._feed.commands else None
        into.append(command)
        return command

    def _taken(self) -> list[Command]:
        """The commands of the substitutions that were expanded just now."""
        inside, self._inside = self._inside, []
        return inside

    def _redirected(self, trees: Iterable[RedirectTree], stdin: str | None) -> tuple[list[Redirect], str | None]:
        redirects: list[Redirect] = []
        for tree in trees:
            if tree.document is not None:
                text = stdin = self._document(tree.document)
            else:
                text = self.words.text(tree.word)
                if tree.operator == "<<<":
                    stdin = text
            redirects.append(Redirect(tree.operator, text, tree.descriptor))
        return redirects, stdin

    def _document(self, document: Document) -> str:
        if not document.expands or not any(sign in document.text for sign in "$`\\"):
            return document.text
        parser = Parser(document.text, self.budget, self.depth)
        text = self.words.text(parser.parse_text())
        self.sure = self.sure and parser.sound
        return text

    def invoke(self, command: Command) -> None:
        """What a command does to those after it, and which commands it runs."""
        name = command.program
        if name in self.functions:
            self._call(command)
        elif name in self.aliases and is_exact(name):
            self._alias(command)
        elif (carrier := CARRIERS.get(name) or carrier_of(name)) is not None:
            carrier(self, command)

    def _call(self, command: Command) -> None:
        """A function of the line."""
        body = self.functions[command.program]
        self.uncalled.pop(command.program, None)
        if self.calls >= CALLS:
            command.sure = self.sound = False
            return
        arguments, via, feed = self.words.arguments, self.via, self._feed
        self.calls += 1
        self.words.arguments, self.via = command.args, (*via, f"{command.program}()")
        self._node(body, command.inner)
        self.words.arguments, self.via, self._feed = arguments, via, feed
        self.calls -= 1

    def _alias(self, command: Command) -> None:
        text = self.aliases.pop(command.program)
        quoted = " ".join(quote(word) for word in command.args)
        self.line(f"{text} {quoted}", f"alias {command.program}", command)
        self.aliases[command.program] = text

    def line(self, text: str, via: str, command: Command, *, apart: bool = False, feed: Feed | None = None) -> None:
        """Follow a line that a command runs: `sh -c LINE`, `eval LINE`. Apart: what it sets is gone afterwards."""
        if self.depth >= NESTED:
            command.sure = self.sound = False
            return
        parser = Parser(text, self.budget, self.depth)
        state, was, sure, outer = self._saved() if apart else None, self.via, self.sure, self._feed
        place = self._place
        self.depth += 1
        self._feed = feed
        self.via, self.sure = (*was, via), sure and is_exact(text)
        block = parser.parse()
        self.sure = self.sure and parser.sound
        self.run(block, command.inner)
        self.depth -= 1
        self.via, self.sure, self._feed, self._place = was, sure, outer, place
        if not parser.sound:
            command.sure = self.sound = False
        if state is not None:
            self._restore(state)

    def program(self, words: list[str], via: str, command: Command, *, sure: bool = True) -> None:
        """Follow a command that a command runs with its own words: `sudo WORDS`. It reads what that one reads."""
        if not words:
            return
        was, known, feed = self.via, self.sure, self._feed
        self.via, self.sure = (*was, via), known and sure
        self.budget.spend()
        inner = Command(words, self.folder, self.via, self.sure)
        inner.pipeline, inner.position = command.pipeline, command.position
        inner.stdin, inner.reads = command.stdin, command.reads
        inner.redirects = command.redirects
        command.inner.append(inner)
        if len(self.via) > 2 * NESTED:
            inner.sure = False
        else:
            self.invoke(inner)
        self.via, self.sure, self._feed = was, known, feed

    def change_folder(self, to: str) -> None:
        home = self.variables.get("HOME")
        folder = self.before if to == "-" else join(self.folder, to, home if isinstance(home, str) else "~")
        self.before, self.words.folder = self.folder, folder

    # --- what is written ------------------------------------------------------------------------

    def _output_of_substitution(self, part: Substitution) -> Value:
        inside, via, feed, place = self._inside, self.via, self._feed, self._place
        state = self._saved()
        self.via, self._feed, self._inside = (*via, f"{part.sign if part.sign in '<>' else '$'}(...)"), None, []
        commands = self.run(part.body)
        self.via, self._feed, self._place = via, feed, place
        self._restore(state)
        self._inside = [*inside, *commands]
        if part.sign in ("<", ">", "quiet", ""):
            return None
        text = output_of(commands)
        return (
            None
            if text is None
            else Word(text.rstrip("\n"), unknown_of(text))
            if unknown_of(text)
            else text.rstrip("\n")
        )
