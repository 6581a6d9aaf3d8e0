"""What a command line does: every command in it, with its words, its folder and the way it is run.

Nothing runs. The reader follows what the line itself says: variables, loops over words, functions, aliases, `cd`,
here-documents, and the programs that run other programs (`carriers`). Branches are all taken. Where the line does
not say what happens, the command is not `sure`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple

from .assignments import assigned_value
from .carriers import CARRIERS, carrier_of
from .commands import Command, Dialect, Feed, Line, Redirect, join, quote
from .environment import HOLDS_CODE, HOLDS_LINE, PROMPTS
from .files import Files
from .outputs import output_of, written_by
from .shells import TAKES_TEXT, run_script, shell_in
from .syntax import DECLARES, Parser
from .tree import (
    Block,
    Budget,
    Compound,
    Function,
    HereDocument,
    Node,
    Pipeline,
    RedirectNode,
    Simple,
    Substitution,
    TooComplex,
    WordParts,
)
from .words import Expander, Value, Word, is_exact, made, may_vanish, shortened, unknown_of

_ODD = re.compile("[\0\r]")
"""Characters that shells disagree about."""
NESTED = 6
"""How deep lines in lines are read: `sh -c "sh -c ..."`."""
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)", re.ASCII)
CALLS = 8
"""How deep functions that call functions are followed."""
TURNS = 16
"""How many words of a `for` are followed one by one."""
_CALCULATES = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v"})
"""Operators of `[[` that take expressions, or a variable with an index."""


def read(text: str, folder: str = "", variables: Mapping[str, str] | None = None, dialect: Dialect = "posix") -> Line:
    """Read a command line. `folder` is where it runs, and `variables` are those of its environment that are known.

    `dialect` says whose line it is. PowerShell and cmd have a smaller reader, which is never sure.
    """
    if dialect != "posix":
        from .windows import read_windows  # most lines are POSIX

        return read_windows(text, dialect, folder, variables or {})
    known: dict[str, Value] = {"IFS": " \t\n", "SHELL": "/bin/sh", "BASH": "/bin/bash", **(variables or {})}
    shell = Shell(known, folder, Budget())
    shell.sure = not _ODD.search(text)
    shell.keeps_last = "$_" in text or "${_" in text
    tree: list[Command] = []
    try:
        parser = Parser(text, shell.budget)
        block = parser.parse()
        shell.sound = parser.sound
        shell.run(block, into=tree)
        shell.run_uncalled(into=tree)
    except (TooComplex, RecursionError):
        shell.sound = False
        for command in (*tree[-1:], *shell.files.commands[-1:]):  # where the reader stopped
            command.sure = False
    if not shell.sound and not tree:
        tree.append(Command([Word(text[:200], ("...",))], folder, (), False))
    return Line(text, tree, shell.sound)


@lru_cache(maxsize=64)
def commands_of(text: str, dialect: Dialect = "posix") -> list[Command]:
    """The commands of a line. A line that is asked about again and again is read once."""
    return read(text, dialect=dialect).commands


class ShellState(NamedTuple):
    variables: dict[str, Value]
    folder: str
    before: str
    arguments: list[str] | None


class Shell:
    """Follows a line. One shell follows all lines in it, too."""

    def __init__(self, variables: dict[str, Value], folder: str, budget: Budget) -> None:
        self.budget = budget
        self.words = Expander(variables, budget, self._output_of_substitution, self._substitute)
        self.words.folder = folder
        self.before = folder
        self.functions: dict[str, list[Node]] = {}
        """The bodies that a function of the line may have: one, or more where branches define it."""
        self.uncalled: dict[str, Node] = {}
        self.aliases: dict[str, str] = {}
        self.git_settings: dict[str, str] = {}
        self.exported = set(variables) - {"IFS"}
        """Variables that other programs get, too."""
        self.descriptors: dict[str, str | None] = {}
        """What `exec 3<<<text` puts behind a descriptor."""
        self.files = Files()
        self.exports_all = self.keeps_last = False
        self._last_turn: list[tuple[str, tuple[str, ...], bool]] | None = None
        self.locals: list[dict[str, Value]] = []
        """What the variables were that functions have made their own, call by call."""
        self.maybe = 0
        """How many of the blocks that are followed may not run at all."""
        self.via: tuple[str, ...] = ()
        self.sure = self.sound = True
        self.depth = self.calls = self.pipelines = 0
        self._part_of_text = False
        """Is a line followed whose text may be there in part?"""
        self._without = False  # is a command followed again without some of its words?
        self.feed: Feed | None = None
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
        if len(pipeline) == 1:
            if type(node := pipeline[0]) is Compound and node.kind in ("and-or", "&", "coproc"):
                self._compound(node, into)  # its pipelines have their own numbers
                return
            self.pipelines += 1
            self._place = (self.pipelines, 0)
            self._node(node, into)
            return
        self.pipelines += 1
        number, feed = self.pipelines, self.feed
        for position, node in enumerate(pipeline):
            self._place = (number, position)
            before, state = len(into), self._saved()
            self._node(node, into)
            if position + 1 < len(pipeline):
                self.feed = Feed(None, into[before:], self.maybe)
                self._restore(state)
            else:  # the last one is a process of its own in bash, and the shell itself in zsh
                self._doubt(state)
        self.feed = feed

    def _node(self, node: Node, into: list[Command]) -> None:
        if type(node) is Simple:
            self._simple(node, into)
        elif type(node) is Compound:
            self._compound(node, into)
        elif type(node) is Function:
            older = self.functions.get(node.name, []) if self.maybe else []
            self.functions[node.name] = [*older, node.body]
            self.uncalled[node.name] = node.body

    def _compound(self, node: Compound, into: list[Command]) -> None:
        feed, place = self.feed, self._place
        if node.redirects:
            command = self._command([], into)
            self._redirect(command, node.redirects)
            command.inner += self._taken()
            for redirect in command.redirects:
                if redirect.writes:
                    self.files.write(self.path_of(redirect.target), None)
            if command.stdin is not None or command.source is not feed:
                self.feed = command.source or Feed(command.stdin, [])
        if node.kind in ("for", "select"):
            self._for(node, into)
        elif node.kind == "for ((":
            self._count(node, into)
        elif node.kind in ("if", "case", "while", "until"):
            self._expand_quietly(node.words or (), into)
            self._branches(node, into)
        elif node.kind in ("(", "&", "coproc"):
            state = self._saved()
            if node.kind == "coproc":
                self.feed = Feed(Word("", ("coproc",)), [])
            self.run(node.blocks[0], into)
            self._restore(state)
        elif node.kind == "and-or":
            self._and_or(node, into)
        else:
            if node.kind == "((":
                self._calculate(node.words or ())
            words = self._expand_quietly(node.words or (), into)
            if node.kind == "[[" and not _CALCULATES.isdisjoint(words):
                for word in words:
                    self.words.evaluate(word)
                into += self._taken()
            for block in node.blocks:
                self.run(block, into)
        self._place = place
        if node.redirects or node.kind == "coproc":
            self.feed = feed

    def _and_or(self, node: Compound, into: list[Command]) -> None:
        """The first pipeline runs, others may. After `||`, what those before it changed is not known."""
        self.run(node.blocks[0], into)
        state = self._saved()
        self.maybe += 1
        for operator, block in zip(node.operators, node.blocks[1:], strict=True):
            folder = self.folder
            if operator == "||":
                self._doubt(state._replace(folder=folder))
            self.run(block, into)
            if operator == "||" and self.folder != folder:
                self.words.folder = ""
        self.maybe -= 1
        self._doubt(state._replace(folder=self.folder))

    def _calculate(self, words: Iterable[WordParts]) -> list[str | None]:
        """The values of expressions. What they set is set."""
        values: list[str | None] = []
        for word in words:
            inside, self._inside = self._inside, []
            text = self.words.text(word)
            self._inside = inside  # what runs in it is expanded, and taken, by the caller
            values.append(self.words.calculated(text) if type(text) is str else None)
        return values

    def _count(self, node: Compound, into: list[Command]) -> None:
        """`for ((i = 0; i < 3; i++))`: a few turns one by one. If there may be more, what they set is not known."""
        words = node.words or []
        self._expand_quietly(words, into)
        if len(words) == 3:
            self._calculate(words[:1])
            self._last_turn = None
            for _ in range(TURNS):
                (value,) = self._calculate(words[1:2])
                if value is None or words[1] == ():
                    break
                if value == "0":
                    return
                self._turn(node.blocks, into)
                self._calculate(words[2:])
        self._branches(node, into)

    def _turn(self, blocks: Iterable[Block], into: list[Command]) -> None:
        """One turn of a loop. One that runs the same commands as the turn before adds nothing."""
        before, size = self._last_turn, len(into)
        self.maybe += 1
        for block in blocks:
            self.run(block, into)
        self.maybe -= 1
        self._last_turn = [
            (command.program, tuple(command.args), command.sure) for top in into[size:] for command in top.walk()
        ]
        if before == self._last_turn:
            del into[size:]

    def _expand_quietly(self, words: Iterable[WordParts], into: list[Command]) -> list[str]:
        """Words that are no command: `[[ ... ]]`, `case WORD in`. What runs in them counts."""
        expanded = [field for word in words for field in self.words.fields(word)]
        into += self._taken()
        return expanded

    def _saved(self) -> ShellState:
        self.budget.spend(len(self.variables) // 32)
        return ShellState(dict(self.variables), self.folder, self.before, self.words.arguments)

    def _restore(self, state: ShellState) -> None:
        self.words.variables, self.words.folder, self.before, self.words.arguments = state

    def _doubt(self, state: ShellState) -> None:
        """What has changed since then may have, or not."""
        for name, value in self.variables.items():
            if name not in state.variables or state.variables[name] != value:
                doubt = (f"${name}",)
                if isinstance(value, list):
                    self.variables[name] = [Word(one, doubt) for one in value]
                else:
                    self.variables[name] = None if value is None else Word(value, doubt)
        if self.folder != state.folder:
            self.words.folder = ""

    def _branches(self, node: Compound, into: list[Command]) -> None:
        """Take every branch. What a branch sets may be so afterwards."""
        turns = TURNS if node.kind in ("while", "until", "for ((") else 1
        self._last_turn = None
        for turn in range(turns):
            before, feed = dict(self.variables), self.feed
            if turns > 1:
                state = self._saved()
                self._turn(node.blocks, into)
                self._doubt(state)
            else:
                for block in node.blocks:
                    self._maybe(block, into)
            if self.feed is feed and (turn or self.variables == before):
                return  # what the first turn sets, the second sees
            if self.feed is not feed and self.feed is not None and not self.feed.text:
                return  # all lines are read
        if turns > 1:
            self.feed = Feed(None, [])
            for block in node.blocks:
                self._maybe(block, into)

    def _maybe(self, block: Block, into: list[Command]) -> None:
        """Follow a block that may not run: what it changes is not known for sure afterwards."""
        state = self._saved()
        self.maybe += 1
        self.run(block, into)
        self.maybe -= 1
        self._doubt(state)

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
        assigned = (
            [(one, assigned_value(self.words, one, self.depth)) for one in node.assignments] if node.assignments else ()
        )
        words: list[str] = []
        for word in node.words:
            if type(word) is str and not any(sign in word for sign in "{*?[~"):
                words.append(word)
            else:
                words += self.words.fields(word)
        if not words or words[0] in DECLARES:
            for one, value in assigned:
                self.variables[one.name] = value
                if one.name == "BASH_ALIASES" and one.item and not isinstance(one.value, list):
                    self.aliases[one.item] = self.words.text(one.value)
        if not (words or node.redirects or assigned or self._inside):
            return
        inside = self._taken()
        command = self._command(words, into)
        command.inner += inside
        if assigned:
            environment: dict[str, Value] = {one.name: value for one, value in assigned}
            for name, value in environment.items():
                command.assignments[name] = " ".join(value) if isinstance(value, list) else value or ""
            self.note_environment(command, list(environment))
        if node.redirects:
            self._redirect(command, node.redirects)
            command.inner += self._taken()
        if assigned and words:
            with self.environment(environment):
                self.invoke(command)
        else:
            self.invoke(command)
        if words and self.keeps_last:
            self.variables["_"] = words[-1]
        for redirect in command.redirects:
            if redirect.writes:
                self.files.write(self.path_of(redirect.target), None if self.maybe else command, redirect.operator)

    def note_environment(self, command: Command, names: Iterable[str]) -> None:
        """Variables that have programs run a line, or code that is not on the line."""
        if any(name in HOLDS_CODE for name in names):
            command.sure = False
        for name in names:
            value = command.assignments.get(name) or self.variables.get(name)
            if name in HOLDS_LINE and isinstance(value, str) and value:
                self.line(value.lstrip("|"), f"{name}=", command, apart=True)
            elif name in PROMPTS and isinstance(value, str) and ("$" in value or "`" in value):
                self._substitute(value)
                command.inner += self._taken()
            elif name in ("BASH_ENV", "ENV") and isinstance(value, str):
                run_script(self, command, value, [])

    def path_of(self, path: str) -> str:
        """The absolute path of a file in the folder of the shell, or as it is written if that is not known."""
        home = self.variables.get("HOME")
        return join(self.folder, path, home if isinstance(home, str) else "~") or os.path.normpath(path)

    @contextmanager
    def environment(self, values: Mapping[str, Value]) -> Iterator[None]:
        """`A=1 program`: variables that are set for one command only."""
        old = {name: self.variables.get(name) for name in values}
        new = set(values) - self.exported
        self.variables.update(values)
        self.exported |= new
        yield
        self.exported -= new
        self.variables.update(old)

    def text_behind(self, command: Command, descriptor: str) -> str | None:
        """What a command reads from a descriptor: `sh /dev/fd/3 3<<<text`, or after `exec 3<<<text`."""
        for redirect in reversed(command.redirects):
            if (redirect.descriptor or "0") == descriptor and redirect.operator in ("<<", "<<-", "<<<"):
                return redirect.target
        return self.descriptors.get(descriptor)

    def script_of(self, command: Command, file: str) -> str | None:
        """The text of a file that the line wrote before. The command is not sure if that is not known."""
        if behind := _DESCRIPTOR.fullmatch(file):
            text = self.text_behind(command, behind[1])
            command.sure = command.sure and text is not None
            return text
        self.budget.spend(1 + len(self.files.commands) // 8)
        writers = self.files.writers_of(self.path_of(file))
        texts = [written_by(one) for one in writers or ()]
        if writers is None or None in texts:
            command.sure = command.sure and writers is None and not self.files.names(file, command)
            return None
        return made([text for text in texts if text is not None]) if texts else None

    def _command(self, words: list[str], into: list[Command]) -> Command:
        self.budget.spend()
        command = Command(words, self.folder, self.via, self.sure)
        command.pipeline, command.position = self._place
        command.maybe = self.maybe
        command.read_from(self.feed)
        into.append(command)
        self.files.commands.append(command)
        return command

    def _taken(self) -> list[Command]:
        """The commands of the substitutions that were expanded just now."""
        inside, self._inside = self._inside, []
        return inside

    def _redirect(self, command: Command, trees: Iterable[RedirectNode]) -> None:
        """The redirections of a command, and what it reads because of them."""
        own: dict[str, str | None] = {}
        for tree in trees:
            if tree.document is not None:
                text = own[tree.descriptor or "0"] = self._document(tree.document)
            else:
                text = self.words.text(tree.word)
                if tree.operator == "<<<":
                    own[tree.descriptor or "0"] = (
                        text + "\n" if type(text) is str else Word(text + "\n", unknown_of(text))
                    )
                elif tree.operator == "<&":
                    own[tree.descriptor or "0"] = own.get(text, self.descriptors.get(text))
                elif tree.operator in ("<", "<>"):
                    inside = [one for one in self._inside if one.via[-1:] == ("<(...)",)]
                    own[tree.descriptor or "0"] = output_of(inside, self.maybe) if text.startswith("<(") else None
            command.redirects.append(Redirect(tree.operator, text, tree.descriptor))
        if "0" in own:
            command.read_from(Feed(own["0"], []))
        if command.program == "exec" and not command.args:
            self.descriptors.update(own)
            if "0" in own:
                self.feed = Feed(own["0"], [])

    def _document(self, document: HereDocument) -> str:
        if not document.expands or not any(sign in document.text for sign in "$`\\"):
            return document.text
        parser = Parser(document.text, self.budget, self.depth)
        text = self.words.text(parser.parse_text())
        self.sure = self.sure and parser.sound
        return text

    def invoke(self, command: Command) -> None:
        """What a command does to those after it, and which commands it runs."""
        self._follow(command)
        if not self._without and (self._part_of_text or may_vanish((command.path, *command.args))):
            self._invoke_without(command)

    def _invoke_without(self, command: Command) -> None:
        """The same command without words that may not be there: no check may count on them."""
        state = self._saved()
        self._without = True
        for words in shortened([command.path, *command.args], self._part_of_text):
            self.budget.spend()
            other = Command(words, command.folder, command.via, False)
            other.pipeline, other.position, other.maybe = command.pipeline, command.position, command.maybe
            other.stdin, other.reads, other.source = command.stdin, command.reads, command.source
            other.redirects, other.assignments = command.redirects, command.assignments
            command.inner.append(other)
            self.words.variables = dict(state.variables)
            self._follow(other)
            self._restore(state)
        self._without = False

    def _follow(self, command: Command) -> None:
        name = command.program
        if name in self.functions and is_exact(name):
            self._call(command)
        elif name in self.aliases and is_exact(name):
            self._alias(command)
        elif (carrier := CARRIERS.get(name) or carrier_of(name)) is not None:
            carrier(self, command)
        elif command.path.startswith(("/proc/", "/dev/")):
            command.sure = False
        elif "/" in command.path:
            run_script(self, command, command.path, command.args)
        elif name not in TAKES_TEXT and (rest := shell_in(command.args)):
            self.program(rest, name, command, sure=False)

    def _call(self, command: Command) -> None:
        """A function of the line."""
        self.uncalled.pop(command.program, None)
        if self.calls >= CALLS:
            command.sure = self.sound = False
            return
        arguments, via, feed = self.words.arguments, self.via, self.feed
        self.calls += 1
        self.words.arguments, self.via = command.args, (*via, f"{command.program}()")
        self.locals.append({})
        for body in self.functions[command.program]:
            self._node(body, command.inner)
        self.variables.update(self.locals.pop())
        self.words.arguments, self.via, self.feed = arguments, via, feed
        self.calls -= 1

    def _alias(self, command: Command) -> None:
        text = self.aliases.pop(command.program)
        quoted = " ".join(quote(word) for word in command.args)
        self.line(made([text, f" {quoted}"]), f"alias {command.program}", command)
        self.aliases[command.program] = text

    def line(self, text: str, via: str, command: Command, *, apart: bool = False, feed: Feed | None = None) -> None:
        """Follow a line that a command runs: `sh -c LINE`, `eval LINE`. Apart: what it sets is gone afterwards."""
        if self.depth >= NESTED:
            command.sure = self.sound = False
            return
        parser = Parser(text, self.budget, self.depth)
        state, was, sure, outer = self._saved() if apart else None, self.via, self.sure, self.feed
        if apart:
            self.words.variables = self._inherited()
        place = self._place
        self.depth += 1
        self.feed = feed
        self.via, self.sure = (*was, via), sure and is_exact(text)
        in_part = self._part_of_text
        sources = (command.stdin or "", *command.args, *command.assignments.values())
        made_of = (text, *(one for one in sources if type(one) is not str and (one in text or text in one)))
        self._part_of_text = in_part or may_vanish(made_of)
        block = parser.parse()
        self.sure = self.sure and parser.sound
        self.run(block, command.inner)
        self.depth -= 1
        self._part_of_text = in_part
        self.via, self.sure, self.feed, self._place = was, sure, outer, place
        if not parser.sound:
            command.sure = self.sound = False
        if state is not None:
            self._restore(state)

    def _inherited(self) -> dict[str, Value]:
        """The variables of a process that the shell starts. Those that are not exported may be in its environment."""
        inherited: dict[str, Value] = {"IFS": " \t\n"}
        for name, value in self.variables.items():
            if name in self.exported or self.exports_all:
                inherited[name] = value if isinstance(value, str) else None
            elif name != "IFS":
                inherited[name] = Word(value, (f"${name}",)) if isinstance(value, str) else None
        return inherited

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """What runs on another machine, in a container or as another user has an environment of its own."""
        variables, exported = self.words.variables, self.exported
        self.words.variables = {name: variables[name] for name in ("HOME", "SHELL", "IFS") if name in variables}
        self.exported = set(self.words.variables)
        yield
        self.words.variables, self.exported = variables, exported

    def program(self, words: list[str], via: str, command: Command, *, sure: bool = True) -> None:
        """Follow a command that a command runs with its own words: `sudo WORDS`. It reads what that one reads."""
        if not words:
            return
        was, known, feed = self.via, self.sure, self.feed
        self.via, self.sure = (*was, via), known and sure
        self.budget.spend()
        inner = Command(words, self.folder, self.via, self.sure)
        inner.pipeline, inner.position = command.pipeline, command.position
        inner.stdin, inner.reads, inner.source = command.stdin, command.reads, command.source
        inner.redirects, inner.maybe = command.redirects, command.maybe
        self.files.commands.append(inner)
        command.inner.append(inner)
        if len(self.via) > 2 * NESTED:
            inner.sure = False
        else:
            self.invoke(inner)
        self.via, self.sure, self.feed = was, known, feed

    def change_folder(self, to: str) -> None:
        home = self.variables.get("HOME")
        folder = self.before if to == "-" else join(self.folder, to, home if isinstance(home, str) else "~")
        self.before, self.words.folder = self.folder, folder

    def evaluate(self, command: Command, text: str) -> None:
        """An expression that a command calculates: `let`, and the index in `unset 'a[i]'`."""
        self.words.evaluate(text)
        command.inner += self._taken()

    # --- what is written ------------------------------------------------------------------------

    def _substitute(self, text: str) -> None:
        """Expand a text that was quoted before: what is substituted in it runs."""
        if not ("$(" in text or "`" in text or "${" in text):
            return
        if self.depth >= NESTED:
            self.sound = False
            return
        self.depth += 1
        self.words.text(Parser(text, self.budget, self.depth).parse_text())
        self.depth -= 1

    def _output_of_substitution(self, part: Substitution) -> Value:
        inside, via, feed, place = self._inside, self.via, self.feed, self._place
        state = self._saved()
        self.via, self.feed, self._inside = (*via, f"{part.sign if part.sign in '<>' else '$'}(...)"), None, []
        if part.sign == ">":
            self.feed = Feed(Word("", ("stdin",)), [])
        commands = self.run(part.body)
        self.via, self.feed, self._place = via, feed, place
        self._restore(state)
        self._inside = [*inside, *commands]
        if part.sign in ("<", ">", "quiet", ""):
            return None
        text = output_of(commands, self.maybe)
        return (
            None
            if text is None
            else Word(text.rstrip("\n"), unknown_of(text))
            if unknown_of(text)
            else text.rstrip("\n")
        )
