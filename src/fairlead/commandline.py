"""A shell's command line, taken apart: what it runs, what that writes to, and in which folder.

It is read in one pass and with a limit on the work, so that no command, however it is made, takes long. What
it cannot understand it says so.
"""

from __future__ import annotations

import os
import re

DEPTH, FRAMES = 4, 32
"""How deep commands in commands, and brackets in brackets, are followed."""
WORK = 4000
"""Signs and paths that are looked at. Beyond that, any mention counts, too."""
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


class TooMuch(Exception):
    """A command that would take too long to understand."""


class Work:
    """What is known while a command is judged, and how much more may be done."""

    __slots__ = ("left", "variables")

    def __init__(self, variables: dict[str, str]) -> None:
        self.variables = variables
        self.left = WORK

    def spend(self, effort: int, length: int = 0) -> None:
        self.left -= effort
        if self.left < 0 or length > LONGEST:
            raise TooMuch


class Command:
    """One command: its words, what the commands inside it say, what it writes to, and the folder it runs in."""

    __slots__ = ("folder", "given", "input", "outputs", "words")

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.words: list[str] = []
        self.given: list[str] = []
        self.outputs: list[str] = []
        self.input = ""

    def program(self) -> tuple[str, list[str]]:
        """What is run in the end, past `sudo` and its like, and the words it is given."""
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


class Line:
    """A command line as pipelines of commands, in one pass. Not `sound` where it could not be understood."""

    def __init__(self, text: str, folder: str, work: Work, depth: int) -> None:
        self.pipelines: list[list[Command]] = []
        self.sound = True
        self._work, self._variables, self._depth = work, work.variables, depth
        self._folder = self._before = folder
        self._frames: list[tuple[str, Command, list[Command], list[str], str]] = []
        self._command, self._pipeline = Command(folder), list[Command]()
        self._heard: list[str] = []  # the words since the innermost bracket was opened
        self._redirect = ""
        self._documents: list[tuple[str, bool, Command]] = []
        if depth > DEPTH:
            raise TooMuch
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
            said = _ANSI.sub(lambda m: m[4] or chr(int(m[3], 8) if m[3] else int(m[1] or m[2], 16)), text)
            read, null, _ = said.partition("\0")  # where bash ends this piece, and zsh the whole word
            self.sound = self.sound and not null
            return read
        if kind == "double":
            if inner := _SUBSTITUTES.search(text):
                self._nest(text[inner.end() :])
            return _IN_DOUBLE.sub(self._expand, text)
        return "" if text == "\n" and kind == "escaped" else text

    def _nest(self, text: str) -> None:
        """A command inside quotes or a document."""
        line = Line(text, self._folder, self._work, self._depth + 1)
        self.sound = self.sound and line.sound
        self.pipelines += line.pipelines
        self._command.given += line._heard

    def _open(self, sign: str) -> None:
        if sign != "(" and not self._command.words:
            self._command.words.append("$(")  # what this will run is not known
        self._frames.append((sign, self._command, self._pipeline, self._heard, self._folder))
        if len(self._frames) > FRAMES:
            raise TooMuch
        if ">" in self._redirect:
            self._command.outputs = self._command.given  # what is said inside is where it writes to
        self._command, self._pipeline, self._heard, self._redirect = Command(self._folder), [], [], ""

    def _close(self) -> None:
        self._finish()
        if self._frames:
            heard = self._heard
            _, self._command, self._pipeline, self._heard, self._folder = self._frames.pop()
            self._command.given += heard

    def _finish(self, piped: bool = False) -> None:
        command, self._redirect = self._command, ""
        self._command = Command(self._folder)
        if command.words or command.outputs or command.given:
            self._heard += command.words
            self._heard += command.given
            self._pipeline.append(command)
            self._carry_out(command)
        if not piped and self._pipeline:
            self.pipelines.append(self._pipeline)
            self._pipeline = []

    def _carry_out(self, command: Command) -> None:
        """What changes how later words read: variables, and the folder."""
        name, rest = command.program()
        for word in command.words if name in ("", "export", "declare", "local", "readonly", "typeset") else ():
            if found := _ASSIGNS.fullmatch(word):
                self._variables[found[1]] = found[2] or (command.given or [""])[-1]
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
    """The absolute path that is meant in a folder. Anybody's home is taken for this user's."""
    if path[:1] == "~":
        path = home + path[path.find("/") :] if "/" in path else home
    path = os.path.normpath(path if path[:1] == "/" else f"{folder}/{path}")
    return path[1:] if path[:2] == "//" else path
