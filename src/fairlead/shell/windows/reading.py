"""Follows a PowerShell or cmd line: every command in it, those inside others included. Nothing runs."""

from __future__ import annotations

import ntpath
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from ..commands import Command, Line, join
from ..tree import Budget, TooComplex
from ..words import Word, is_known, unknown_of
from .carriers import CARRIERS, runs_posix
from .cmd import CmdParser
from .cmdlets import ALIASES, CMD_ALIASES, PROGRAMS_TOO, WindowsCommand, parameters_of
from .powershell import PowerShellParser
from .tree import Block, Pipeline, Simple

if TYPE_CHECKING:
    from ..reading import Shell

WindowsDialect = Literal["powershell", "cmd"]
NESTED = 6
"""How deep lines in lines are read: `powershell -c "cmd /c ..."`."""
_PARSERS: dict[str, type[PowerShellParser | CmdParser]] = {"powershell": PowerShellParser, "cmd": CmdParser}
_WINDOWS_PATH = re.compile(r"[A-Za-z]:|.*\\", re.DOTALL)
_COMMENT = re.compile(r"\s*(?:<?#|@?rem\b|:)", re.IGNORECASE)
_ECHOES = frozenset({"write-output", "write-host", "echo"})


def read_windows(text: str, dialect: WindowsDialect, folder: str, variables: Mapping[str, str]) -> Line:
    """Read a PowerShell or cmd line. The line and its commands are never sure."""
    shell = WindowsShell(dialect, folder, Budget(), variables)
    tree: list[Command] = []
    try:
        shell.run_text(text, tree)
    except (TooComplex, RecursionError):
        shell.sound = False
    if not tree and (not shell.sound or (text.strip() and not _COMMENT.match(text))):
        tree.append(WindowsCommand([Word(text[:200], ("...",))], folder, ()))
    line = Line(text, tree, shell.sound)
    line.sure = False
    return line


class WindowsShell:
    """Follows a line. A line inside it has a shell of its own, and the same budget."""

    def __init__(
        self, dialect: WindowsDialect, folder: str, budget: Budget, variables: Mapping[str, str],
        via: tuple[str, ...] = (), depth: int = 0, brackets: int = 0,
    ) -> None:  # fmt: skip
        self.dialect, self.folder, self.before = dialect, folder, folder
        self.budget, self.environment, self.via = budget, variables, via
        self.depth, self.brackets = depth, brackets
        self.variables = {f"env:{name.casefold()}" if dialect == "powershell" else name.casefold(): value
                          for name, value in variables.items()}  # fmt: skip
        self.sound = True
        self.pipelines = 0

    @classmethod
    def inside(cls, shell: Shell, dialect: WindowsDialect) -> WindowsShell:
        """A shell for the lines that a command of a POSIX line runs."""
        known = {name: value for name, value in shell.variables.items() if isinstance(value, str)}
        return cls(dialect, shell.folder, shell.budget, known, shell.via, shell.depth)

    def run_text(self, text: str, into: list[Command], feed: Command | None = None) -> None:
        parser = _PARSERS[self.dialect](text, self.budget, self.variables, self.brackets)
        block = parser.parse()
        self.sound = self.sound and parser.sound
        self._run(block, into, feed)

    def _run(self, block: Block, into: list[Command], feed: Command | None = None) -> None:
        for pipeline in block:
            self._pipeline(pipeline, into, feed)

    def _pipeline(self, pipeline: Pipeline, into: list[Command], feed: Command | None) -> None:
        self.pipelines += 1
        number = self.pipelines
        before, text = (feed.reads, feed.stdin) if feed is not None else (None, None)
        for position, simple in enumerate(pipeline):
            command = self._simple(simple, into, (number, position), before, text)
            if command is not None:
                before = command
            text = _written(simple, command)

    def _simple(
        self, simple: Simple, into: list[Command], place: tuple[int, int], before: Command | None, text: str | None
    ) -> Command | None:
        """One command of a pipeline. A value inside brackets is none."""
        if not simple.words and self.brackets and not (simple.nested or simple.redirects or simple.assignments):
            return None
        self.budget.spend()
        command = WindowsCommand(simple.words, self.folder, self.via, simple.listed)
        written = command.program
        command.program = self.canonical(written)
        command.redirects, command.assignments = simple.redirects, simple.assignments
        command.pipeline, command.position = place
        command.reads, command.stdin = before, text
        into.append(command)
        for sign, block in simple.nested:
            runs = sign == "{...}" and command.program
            self._nested(block, command, str(command.program) if runs else sign)
        self._as_program(written, command)
        self.invoke(command, simple.source)
        return command

    def _nested(self, block: Block, command: Command, via: str) -> None:
        was, self.via = self.via, (*self.via, via)
        self.brackets += 1
        self._run(block, command.inner, command)
        self.brackets -= 1
        self.via = was

    def canonical(self, name: str) -> str:
        """The one name of a command that has several."""
        return (ALIASES if self.dialect == "powershell" else CMD_ALIASES).get(name, name)

    def _as_program(self, written: str, command: Command) -> None:
        """`rm -rf x` may also run the program rm, unless a parameter is clearly the cmdlet's: `rm -Recurse x`."""
        table = parameters_of(command.program)
        if self.dialect != "powershell" or written not in PROGRAMS_TOO or written == command.program:
            return
        options = [word.lstrip("-").partition(":")[0] for word in command.args if re.match(r"-\w\w\w", word)]
        if any(table.in_full(name) in table.written for name in options):
            return
        own = Command([written, *command.args], command.folder, (*command.via, f"alias {written}"), False)
        own.redirects, own.pipeline, own.position = command.redirects, command.pipeline, command.position
        own.reads, own.stdin = command.reads, command.stdin
        command.inner.append(own)

    # --- what commands run ----------------------------------------------------------------------

    def invoke(self, command: Command, source: str = "") -> None:
        """Follow what a command runs. `source` is how it is written."""
        if (carrier := CARRIERS.get(command.program)) is not None:
            carrier(self, command, source)
        elif runs_posix(command.program):
            self.posix(command)

    def line(self, text: str, dialect: WindowsDialect, via: str, command: Command) -> None:
        """Follow a line that a command runs: `cmd /c LINE`."""
        if self.depth >= NESTED:
            self.sound = False
            return
        inner = WindowsShell(
            dialect, self.folder, self.budget, self.environment, (*command.via, via), self.depth + 1, self.brackets
        )
        if dialect == self.dialect:
            inner.variables = dict(self.variables)
        inner.run_text(text, command.inner, None if text is command.stdin else command)
        self.sound = self.sound and inner.sound

    def program(self, words: list[str], via: str, command: Command, *, named: bool = False) -> None:
        """Follow a command that a command runs with its own words. `named`: it may be one of the shell's own."""
        if not words:
            return
        if len(command.via) >= 2 * NESTED:
            self.sound = False
            return
        self.budget.spend()
        inner = WindowsCommand(words, self.folder, (*command.via, via))
        inner.program = self.canonical(inner.program) if named else inner.program
        inner.pipeline, inner.position = command.pipeline, command.position
        inner.reads, inner.stdin, inner.redirects = command.reads, command.stdin, command.redirects
        command.inner.append(inner)
        self.invoke(inner)

    def posix(self, command: Command, words: list[str] | None = None) -> None:
        """Have the reader of POSIX lines follow what a program runs; with `words`, the command that these are."""
        from ..reading import Shell

        shell = Shell({"IFS": " \t\n", **self.environment}, self.folder, self.budget)
        shell.via, shell.sure, shell.depth = command.via, False, self.depth + 1
        if len(command.via) >= 2 * NESTED:
            self.sound = False
        elif words is None:
            shell.invoke(command)
        else:
            shell.program(words, str(command.program), command)
        self.sound = self.sound and shell.sound

    def change_folder(self, to: str) -> None:
        """Follow `cd`, also to a path of Windows. A folder that is not known is empty."""
        before = self.folder
        if to == "-":
            self.folder = self.before
        elif _WINDOWS_PATH.match(to) or (_WINDOWS_PATH.match(before) and not to.startswith("~")):
            absolute = ntpath.isabs(to) or bool(before)
            self.folder = ntpath.normpath(ntpath.join(before, to)) if absolute and is_known(to) else ""
        else:
            self.folder = join(before, to, self.environment.get("HOME", "~"))
        self.before = before


def _written(simple: Simple, command: Command | None) -> str | None:
    """What a command writes into the pipeline, if the line says it."""
    if not simple.words:
        return simple.value
    if command is None or command.program not in _ECHOES:
        return None
    words = command.operands if command.program != "echo" else command.args
    unknown = [one for word in words for one in unknown_of(word)]
    return Word(" ".join(words), unknown) if unknown else " ".join(words)
