"""A command of a line, and the line: what the reader gives."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from .options import Argument, Options, arguments, read_options
from .words import Word, emptied, is_exact, is_known, is_number, unknown_of

Dialect = Literal["posix", "powershell", "cmd"]
"""Whose syntax a line has."""


class Redirect(NamedTuple):
    """Where a descriptor leads: `>file`, `2>&1`, `<file`; of `<<END` and `<<<` the text itself."""

    operator: str
    target: str
    descriptor: str = ""

    @property
    def writes(self) -> bool:
        """Does this create or change the file that it names?"""
        return ">" in self.operator and not (self.operator == ">&" and is_number(self.target.lstrip("-")))


class Command:
    """One command of a line: a program and its words, and how it comes to run."""

    __slots__ = (
        "_options", "args", "assignments", "folder", "inner", "maybe", "path", "pipeline", "position", "program",
        "reads", "redirects", "source", "stdin", "sure", "via",
    )  # fmt: skip

    def __init__(self, words: list[str], folder: str, via: tuple[str, ...], sure: bool) -> None:
        self.program: str = program_name(words[0]) if words else ""
        """The name of the program, without its folder. Empty where a line only assigns or redirects."""
        self.path: str = words[0] if words else ""
        """The program as the line calls it, with its folder."""
        self.args: list[str] = words[1:]
        """The words after the program. One that is not fully known is a `Word`."""
        self.assignments: dict[str, str] = {}
        """Variables that are set for this command: `A=1 program`."""
        self.redirects: list[Redirect] = []
        self.stdin: str | None = None
        """The text that it reads, if the line has it: a here-document, a here-string, or what `echo` writes."""
        self.reads: Command | None = None
        """The command before it in the pipeline."""
        self.source: Feed | None = None
        """All that it reads from: the commands before it, or a text."""
        self.pipeline, self.position = 0, 0
        """Commands of one pipeline have one number. The position in it counts from 0."""
        self.folder = folder
        """Where it runs: the folder of the call, and each `cd` before it. Empty if not known."""
        self.via = via
        """What runs it, the outermost first: `("sudo", "xargs")`, `("sh -c",)`, `("$(...)",)`. Empty: the shell."""
        self.inner: list[Command] = []
        """The commands in it: of its substitutions, and those that it runs."""
        self.maybe = 0
        """How many branches it stands in, each of which may not run."""
        self.sure = sure and all(map(is_known, words)) and (not words or is_exact(words[0]))
        """False where something of it is decided only when it runs."""
        self._options: list[tuple[str, Options]] | None = None

    def read_from(self, feed: Feed | None) -> None:
        """Have it read this. None: what the shell reads."""
        self.source = feed
        self.stdin = feed.text if feed is not None else None
        self.reads = feed.commands[-1] if feed is not None and feed.commands else None

    @property
    def options(self) -> dict[str, str | None]:
        """Its options in their long form if that is known, `-rf` as two, each with its value."""
        return self._read().options

    @property
    def operands(self) -> list[str]:
        """Its words that are neither options nor values of options."""
        return self._read().operands

    def arguments(self) -> Iterator[Argument]:
        """Its options and operands in the order of its words, and where each value stands."""
        return arguments(self.program, self.args)

    def _read(self) -> Options:
        return self._readings()[0][1]

    def _readings(self) -> list[tuple[str, Options]]:
        """The program and its options; and the same again if all variables that are not known are empty."""
        if self._options is None:
            self._options = self._parse()
        return self._options

    def _parse(self) -> list[tuple[str, Options]]:
        readings = [(self.program, read_options(self.program, self.args))]
        if not self.sure and any(map(unknown_of, (self.path, *self.args))):
            words = [text for word in (self.path, *self.args) if (text := emptied(word)) or not unknown_of(word)]
            if words and words != [self.path, *self.args]:  # `git $X push`
                program = program_name(words[0])
                readings.append((program, read_options(program, words[1:])))
        return readings

    def has(self, *options: str) -> bool:
        """Has it any of these options, in whatever spelling? `has("--force")` is true of `git push -f`."""
        return any(reading.has(options) for _, reading in self._readings())

    def runs(self, words: str) -> bool:
        """Is this its program, and do its operands begin so? `runs("git push")` is true of `git -C x push -f a`."""
        program, *first = words.split()
        return any(
            name == program and (not first or reading.operands[: len(first)] == first)
            for name, reading in self._readings()
        )

    @property
    def carries(self) -> bool:
        """Does it only run other commands, which are in `inner`? `sudo`, `xargs`, `sh -c` do."""
        own = len(self.via)
        return any(len(one.via) > own and one.via[own].split()[0] == self.program for one in self.inner)

    def writes(self) -> list[str]:
        """The files that its redirections write."""
        return [redirect.target for redirect in self.redirects if redirect.writes]

    def to_builtins(self) -> dict[str, Any]:
        """What rules see of it. Options stand there in every spelling, and `runs` has its first words, one to three."""
        operands = [str(word) for word in self.operands]
        readings = self._readings()
        data: dict[str, Any] = {
            "program": str(self.program),
            "args": [str(word) for word in self.args],
            "options": {name: str(value or "") for _, one in readings for name, value in one.spellings()},
            "operands": operands,
            "runs": [
                " ".join([name, *one.operands[:count]])
                for name, one in readings
                for count in range(min(len(one.operands), 2) + 1)
            ],
            "assignments": {name: str(value) for name, value in self.assignments.items()},
            "writes": [str(path) for path in self.writes()],
            "via": list(self.via),
            "folder": self.folder,
            "pipeline": self.pipeline,
            "position": self.position,
            "sure": self.sure,
        }
        if self.stdin is not None:
            data["stdin"] = str(self.stdin)
        return data

    def walk(self) -> Iterator[Command]:
        """This command, and all that are in it."""
        yield self
        for command in self.inner:
            yield from command.walk()

    def __repr__(self) -> str:
        via = f" via {', '.join(self.via)}" if self.via else ""
        return f"<Command {' '.join([self.program, *self.args])}{via}{'' if self.sure else ', not sure'}>"


class Line:
    """A command line that was read."""

    __slots__ = ("commands", "sound", "sure", "text", "tree")

    def __init__(self, text: str, tree: list[Command], sound: bool) -> None:
        self.text = text
        self.sound = sound
        """False if a part of the line was not understood, or not read because it is too long or too deep."""
        self.tree = tree
        """The commands of the line itself. Those that run inside others are in their `inner`."""
        self.commands: list[Command] = [command for top in tree for command in top.walk()]
        """All commands, those inside others included."""
        self.sure = sound and all(command.sure for command in self.commands)
        """False if it is not sound, or if a part of it is decided only when it runs."""


def program_name(word: str) -> str:
    """The name of a program in a path. A name that is not known stays as it is written."""
    name = os.path.basename(word.rstrip("/")) if "/" in word else word
    return Word(name, unknown_of(word)) if unknown_of(word) else name


class Feed(NamedTuple):
    """What a command reads: a text that the line has, or the output of the commands before it."""

    text: str | None
    commands: list[Command]
    maybe: int = 0
    """How many branches stand around the commands."""


def quote(word: str) -> str:
    """A word that a shell reads back as it is."""
    return word if re.fullmatch(r"[\w@%+=:,./-]+", word) else "'" + word.replace("'", "'\"'\"'") + "'"


def join(folder: str, path: str, home: str) -> str:
    """The absolute path of a path in a folder. The home of any user is taken for this user's. Empty if not known."""
    if not is_known(path):
        return ""
    if path[:1] == "~":
        path = home + path[path.find("/") :] if "/" in path else home
    if path[:1] not in ("/", "~") and not folder:
        return ""
    path = os.path.normpath(path if path[:1] == "/" else f"{folder}/{path}")
    return path[1:] if path[:2] == "//" else path
