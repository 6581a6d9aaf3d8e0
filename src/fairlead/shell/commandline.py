"""Reads a shell's command line: which commands it runs, what they write to, and in which folder.

The line is read in one pass and with a limit on the effort, so that no command takes long. `CommandLine.sound` is
False for a line that the reader does not understand.
"""

from __future__ import annotations

import os
import re

LIMIT = 64 << 10
"""How many characters of a command are read. In a longer one, any mention counts."""
DEPTH, FRAMES = 4, 32
"""How deep commands in commands, and brackets in brackets, are followed."""
WORK = 4000
"""How many tokens and paths are read. In a longer line, any mention counts."""
LONGEST = 4096
"""Characters of a path, or of a variable."""

# shlex is not used: it takes a newline for a space, knows no substitution, and is ten times slower.
_LEX = re.compile(
    r"""(?P<gap>[\ \t\r]+|\\\n|\#[^\n]*)
    |(?P<open>\$\(|[<>]?\(|`)
    |(?P<redirect>\d*&?(?:>>|>\||>&|>|<>|<<<|<<-?|<&|<))
    |(?P<close>\))
    |(?P<end>\n|;|&&|&|\|\||\|&?)
    |(?P<word>(?:[^\s;&|<>()`"'\\$]+|\\.|"[^"\\]*(?:\\.[^"\\]*)*"|'[^']*'|\$'[^'\\]*(?:\\.[^'\\]*)*'
        |\$\{[^}\s"'$]*\}|\$(?![('{]))+)
    |(?P<odd>.)""",
    re.VERBOSE | re.DOTALL,
)
_VARIABLE = r"\$\{[!#]?(?P<name>\w+)(?::?[-=+](?P<default>[^}\"'$]*))?[^}\"'$]*\}|\$(?P<bare>\w+)"
_PIECE = re.compile(
    r"""\\(?P<escaped>.)|\$?"(?P<double>(?:[^"\\]|\\.)*)"|\$'(?P<ansi>(?:[^'\\]|\\.)*)'|'(?P<single>[^']*)'|"""
    + _VARIABLE,
    re.DOTALL,
)
_IN_DOUBLE = re.compile(r"\\(?P<escaped>[\\\"$`\n])|" + _VARIABLE)
_ANSI = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|([0-7]{1,3})|(.))", re.DOTALL)
_ASSIGNS = re.compile(r"(\w+)\+?=(.*)", re.DOTALL)
_SUBSTITUTES = re.compile(r"\$\(|`")
_KEYWORDS = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "{", "time"})
WRAPPERS = frozenset({
    "sudo", "doas", "env", "nohup", "nice", "ionice", "timeout", "stdbuf", "command", "builtin", "exec", "setsid",
    "xargs",
})  # fmt: skip
_MILD = re.compile(r"-[0rtEHki]|-[nPLs]\d+|-n|-[oe]L|-I(?:\{\}|%)?|\{\}|%|\d+[smhd]?|--[\w-]*|\w+=.*", re.DOTALL)


class TooComplex(Exception):
    """A command line takes too long to read."""


class Effort:
    """The variables that are known on a line, and how much effort is left to read it."""

    __slots__ = ("left", "variables")

    def __init__(self, variables: dict[str, str]) -> None:
        self.variables = variables
        self.left = WORK

    def spend(self, effort: int, length: int = 0) -> None:
        self.left -= effort
        if self.left < 0 or length > LONGEST:
            raise TooComplex


class ShellCommand:
    """One command: its words, those of the commands inside it, its output files, its input and its folder."""

    __slots__ = ("folder", "inner_words", "input", "outputs", "words")

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.words: list[str] = []
        self.inner_words: list[str] = []
        self.outputs: list[str] = []
        self.input = ""

    def program(self) -> tuple[str, list[str]]:
        """The program that runs, after `sudo` and other wrappers, and its words."""
        i, words = 0, self.words
        while i < len(words):
            name = os.path.basename(words[i])
            if name in WRAPPERS:  # an option that is not known may take a word, so it ends up as the program
                i += 1
                while i < len(words) and _MILD.fullmatch(words[i]):
                    i += 1
            elif name in _KEYWORDS or _ASSIGNS.fullmatch(words[i]):
                i += 1
            else:
                return name, words[i + 1 :]
        return "", []


class CommandLine:
    """A command line as pipelines of commands. It is not `sound` if the reader does not understand it."""

    def __init__(self, text: str, folder: str, work: Effort, depth: int) -> None:
        self.pipelines: list[list[ShellCommand]] = []
        self.sound = True
        self._work, self._variables, self._depth = work, work.variables, depth
        self._folder = self._before = folder
        self._frames: list[tuple[str, ShellCommand, list[ShellCommand], list[str], str]] = []
        self._command, self._pipeline = ShellCommand(folder), list[ShellCommand]()
        self._inner_words: list[str] = []  # the words since the innermost bracket was opened
        self._redirect = ""
        self._documents: list[tuple[str, bool, ShellCommand]] = []
        if depth > DEPTH:
            raise TooComplex
        self._read(text)

    def _read(self, text: str) -> None:
        position = 0
        while (found := _LEX.match(text, position)) is not None:
            position, sign, kind = found.end(), found[0], found.lastgroup
            self._work.spend(1)
            if kind == "word":
                self._take(sign)
            elif kind == "redirect":
                self._redirect = sign
            elif kind == "end":
                self._finish(piped=sign in ("|", "|&"))
                if sign == "\n" and self._documents:
                    position = self._take_documents(text, position)
            elif kind == "close" or (sign == "`" and self._frames and self._frames[-1][0] == "`"):
                self._close()
            elif kind == "open":
                self._open(sign)
            elif kind == "odd":
                self.sound = False
        while self._frames:
            self._close()
        self._finish()

    def _take(self, raw: str) -> None:
        word, redirect, self._redirect = _PIECE.sub(self._expand, raw), self._redirect, ""
        if not redirect:
            self._command.words.append(word)
        elif ">" in redirect:
            self._command.outputs.append(word)
        elif "<<<" in redirect:
            self._command.input += word
        elif "<<" in redirect:
            self._documents.append((word, raw == word, self._command))

    def _expand(self, piece: re.Match[str]) -> str:
        """A piece of a word without its quotes, and with the variables that are known."""
        kind = piece.lastgroup or ""
        text = piece[kind]
        if kind in ("name", "bare", "default"):
            known = self._variables.get(piece["name"] or piece["bare"])
            self._work.spend(1, len(known or ""))  # variables can double each other
            return known if known is not None else piece["default"] or piece[0]
        if kind == "ansi":
            decoded = _ANSI.sub(lambda m: m[4] or chr(int(m[3], 8) if m[3] else int(m[1] or m[2], 16)), text)
            read, null, _ = decoded.partition("\0")  # where bash ends this piece, and zsh the whole word
            self.sound = self.sound and not null
            return read
        if kind == "double":
            if inner := _SUBSTITUTES.search(text):
                self._nest(text[inner.end() :])
            return _IN_DOUBLE.sub(self._expand, text)
        return "" if text == "\n" and kind == "escaped" else text

    def _nest(self, text: str) -> None:
        """A command inside quotes or a document."""
        line = CommandLine(text, self._folder, self._work, self._depth + 1)
        self.sound = self.sound and line.sound
        self.pipelines += line.pipelines
        self._command.inner_words += line._inner_words

    def _open(self, sign: str) -> None:
        if sign != "(" and not self._command.words:
            self._command.words.append("$(")  # what this will run is not known
        self._frames.append((sign, self._command, self._pipeline, self._inner_words, self._folder))
        if len(self._frames) > FRAMES:
            raise TooComplex
        if ">" in self._redirect:
            self._command.outputs = self._command.inner_words  # the words inside name where it writes to
        self._command, self._pipeline, self._inner_words, self._redirect = ShellCommand(self._folder), [], [], ""

    def _close(self) -> None:
        self._finish()
        if self._frames:
            inner_words = self._inner_words
            _, self._command, self._pipeline, self._inner_words, self._folder = self._frames.pop()
            self._command.inner_words += inner_words

    def _finish(self, piped: bool = False) -> None:
        command, self._redirect = self._command, ""
        self._command = ShellCommand(self._folder)
        if command.words or command.outputs or command.inner_words:
            self._inner_words += command.words
            self._inner_words += command.inner_words
            self._pipeline.append(command)
            self._carry_out(command)
        if not piped and self._pipeline:
            self.pipelines.append(self._pipeline)
            self._pipeline = []

    def _carry_out(self, command: ShellCommand) -> None:
        """Apply what changes the meaning of later words: variables, and the folder."""
        name, rest = command.program()
        for word in command.words if name in ("", "export", "declare", "local", "readonly", "typeset") else ():
            if found := _ASSIGNS.fullmatch(word):
                self._variables[found[1]] = found[2] or (command.inner_words or [""])[-1]
        if name in ("cd", "pushd", "popd"):
            to = next((word for word in rest if word == "-" or word[:1] != "-"), "-" if name == "popd" else "~")
            folder = self._before if to == "-" else join(self._folder, to, self._variables["HOME"])
            self._before, self._folder = self._folder, folder
            self._command.folder = folder

    def _take_documents(self, text: str, position: int) -> int:
        """Skip what follows `<<END`, up to its end: it is no command, but the input of one."""
        for word, expands, command in self._documents:
            end = re.compile(rf"^\t*{re.escape(word)}[ \t\r]*$", re.MULTILINE).search(text, position)
            body = text[position : end.start() if end else len(text)]
            position = end.end() if end else len(text)
            command.input += body
            if expands and (inner := _SUBSTITUTES.search(body)):
                self._nest(body[inner.end() :])
        self._documents = []
        return position


def join(folder: str, path: str, home: str) -> str:
    """The absolute path of a path in a folder. The home of any user is taken for this user's."""
    if path[:1] == "~":
        path = home + path[path.find("/") :] if "/" in path else home
    path = os.path.normpath(path if path[:1] == "/" else f"{folder}/{path}")
    return path[1:] if path[:2] == "//" else path
