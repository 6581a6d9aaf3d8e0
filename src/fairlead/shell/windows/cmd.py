"""The syntax of cmd.exe, as far as it says which commands run: a text becomes a tree.

The commands of `if` and `for` stand in the block around them, and all branches count. Expressions here have no
possessive or atomic groups, and each alternative begins with another character, so time grows with the length.
"""

from __future__ import annotations

import re

from ..commands import Redirect
from ..words import Word, unknown_of
from .tree import Block, Nested, Pipeline, Scanner, Simple, joined

_GAP = re.compile(r"(?:[^\S\n]|[,;=])+|\^\r?\n")
_BLANK = re.compile(r"[^\S\n]+|\^\r?\n")
_PLAIN = re.compile(r"[^\s^\"%!&|<>()]+")
_VARIABLE = re.compile(r"%([^%\s:=\"&|<>]+)(?::[^%\n]*)?%|!([^!\s:=\"&|<>]+)(?::[^!\n]*)?!|%%?~?[\w*]+|%%")
_SEPARATOR = re.compile(r"[,;=]")
_QUOTED = re.compile(r"[^\"%!\n]+")
_REDIRECT = re.compile(r"(\d?)(>>|>|<)(?:&(\d))?")
_REMARK = re.compile(r"(?:rem(?=[\s,;=]|$)|:)[^\n]*", re.IGNORECASE)
_IF = re.compile(r"if(?=[\s(])", re.IGNORECASE)
_ELSE = re.compile(r"(?:else|do)(?=[\s(]|$)", re.IGNORECASE)
_FOR = re.compile(r"for\s+(?:/[a-z]\s+)?", re.IGNORECASE)
_IN = re.compile(r"in\s*\(", re.IGNORECASE)
_TESTS = frozenset({"exist", "errorlevel", "defined", "cmdextversion"})
_COMPARES = frozenset({"equ", "neq", "lss", "leq", "gtr", "geq"})
_ATTACHED = re.compile(r"([a-z]+)([/.\\].*)", re.IGNORECASE | re.DOTALL)
_SWITCHES = re.compile(r"/[^/]+")
BUILTINS = frozenset({
    "assoc", "break", "call", "cd", "chdir", "cls", "cmd", "color", "copy", "date", "del", "dir", "dpath", "echo",
    "endlocal", "erase", "exit", "ftype", "goto", "md", "mkdir", "mklink", "move", "path", "pause", "popd", "prompt",
    "pushd", "rd", "ren", "rename", "rmdir", "set", "setlocal", "shift", "start", "time", "title", "type", "ver",
    "verify", "vol",
})  # fmt: skip
_SEPARATED = frozenset({"del", "erase", "rd", "rmdir", "md", "mkdir", "copy", "move", "type", "dir", "ren", "rename"})
"""Commands of cmd's own whose words commas and semicolons separate, too."""


class CmdParser(Scanner):
    """Parses one line or batch script of cmd.exe."""

    def parse(self) -> Block:
        block: Block = []
        self._block(block, 0)
        return block

    def _block(self, block: Block, brackets: int) -> None:
        """Commands up to the bracket that closes these."""
        self.enter()
        while True:
            self._skip("\n&|@")
            if self.at >= len(self.text):
                self.sound = self.sound and not brackets
                break
            if self.text[self.at] == ")":
                self.at += 1
                if brackets:
                    break
                self.sound = False
            else:
                self._pipeline(block, brackets)
        self.depth -= 1

    def _skip(self, signs: str = "") -> None:
        while self.at < len(self.text):
            if found := _GAP.match(self.text, self.at):
                self.at = found.end()
            elif self.text[self.at] in signs:
                self.at += 1
            else:
                return
            self.budget.spend()

    def _pipeline(self, block: Block, brackets: int) -> None:
        pipeline: Pipeline = []
        while True:
            self._skip("@")
            self._element(block, pipeline, brackets)
            self._skip()
            if not self.text.startswith("|", self.at) or self.text.startswith("||", self.at):
                break
            self.at += 1
        if pipeline:
            block.append(pipeline)

    def _element(self, block: Block, pipeline: Pipeline, brackets: int) -> None:
        """One command, or what `if`, `for` and brackets lead to."""
        text = self.text
        while self.at < len(text):
            self.budget.spend()
            self._skip("@")
            if found := _REMARK.match(text, self.at) or _ELSE.match(text, self.at):
                self.at = found.end()
            elif found := _IF.match(text, self.at):
                self.at = found.end()
                self._condition(brackets)
            elif found := _FOR.match(text, self.at):
                self.at = found.end()
                self._for(block)
            else:
                break
        if text.startswith("(", self.at):
            self.at += 1
            inner: Block = []
            self._block(inner, brackets + 1)
            pipeline += inner.pop() if inner and pipeline else []
            block += inner
            self._after_brackets(block)
        elif self.at < len(text) and text[self.at] not in "\n&|)":
            self._command(pipeline, brackets)

    def _after_brackets(self, block: Block) -> None:
        """Redirections of what is in brackets are a command without a program."""
        simple = Simple()
        self._skip()
        while found := _REDIRECT.match(self.text, self.at):
            self._redirect(simple, found)
            self._skip()
        if simple.redirects:
            block.append([simple])

    def _condition(self, brackets: int) -> None:
        """Go past `[/i] [not] exist X`, `A==B`, `A equ B`. What follows is a command."""
        simple = Simple()
        while True:
            self._skip()
            word = self._word(simple, brackets)
            if not word.casefold().startswith("/i") and word.casefold() != "not":
                break
        if word.casefold() in _TESTS:
            self._skip()
            self._word(simple, brackets)
            return
        before = self.at
        self._skip()
        if "==" in word or "==" in self.text[before : self.at]:
            if not word.endswith("==") and "==" in word:
                self.at = before  # a==b is one word
            else:
                self._word(simple, brackets)
        elif self._word(simple, brackets).casefold() in _COMPARES:
            self._skip()
            self._word(simple, brackets)
        else:
            self.at = before  # no test that cmd knows

    def _for(self, block: Block) -> None:
        """`%i in (...) do`: what is in the brackets are words, or a command in quotes that `for /f` runs."""
        simple = Simple()
        for _ in range(3):  # options and the variable
            self._skip()
            if found := _IN.match(self.text, self.at):
                self.at = found.end()
                break
            self._word(simple, 0)
        else:
            self.sound = False
            return
        end = self.text.find(")", self.at)
        inside = self.text[self.at : end if end >= 0 else len(self.text)].strip()
        quoted = len(inside) > 1 and inside[0] == inside[-1] and inside[0] in "'`"
        if quoted or inside[:1] == "'":  # brackets may be part of the command
            close = self.text.find("')", self.at)
            end = close + 1 if close >= 0 else end
            inside = self.text[self.at : end if end >= 0 else len(self.text)].strip()
            inner = CmdParser(inside.strip("'`"), self.budget, self.variables, self.depth)
            simple.nested.append(Nested("$(...)", inner.parse()))
            block.append([simple])
        self.at = end + 1 if end >= 0 else len(self.text)

    # --- commands -------------------------------------------------------------------------------

    def _command(self, pipeline: Pipeline, brackets: int) -> None:
        simple, text, start = Simple(), self.text, self.at
        simple.words += self._program(simple, brackets)
        gap = _GAP if simple.words and simple.words[0].casefold() in _SEPARATED else _BLANK
        while self.at < len(text):
            self.budget.spend()
            sign = text[self.at]
            if found := gap.match(text, self.at):
                self.at = found.end()
            elif sign in "\n&|" or (sign == ")" and brackets):
                break
            elif found := _REDIRECT.match(text, self.at):
                self._redirect(simple, found)
            else:
                word = self._word(simple, brackets, separated=gap is _GAP)
                switches = _SWITCHES.findall(word) if gap is _GAP and word[:1] == "/" else []
                simple.words += switches if "".join(switches) == word else [word]
        simple.source = text[start : self.at]
        if simple.words[:1] == ["set"] or simple.words[:1] == ["SET"]:
            self._set(simple)
        pipeline.append(simple)

    def _program(self, simple: Simple, brackets: int) -> list[str]:
        """The first word. Switches may be attached to a command of cmd's own: `del/s/q`, `cd..`."""
        if found := _REDIRECT.match(self.text, self.at):
            self._redirect(simple, found)
            return []
        word = self._word(simple, brackets, separated=True)
        found = _ATTACHED.fullmatch(word)
        if found is None or found[1].casefold() not in BUILTINS or isinstance(word, Word):
            return [word]
        return [found[1], *(_SWITCHES.findall(found[2]) if found[2][0] == "/" else [found[2]])]

    def _set(self, simple: Simple) -> None:
        name, sign, value = " ".join(simple.words[1:]).partition("=")
        if sign and name and not name.startswith("/"):
            unknown = [one for word in simple.words for one in unknown_of(word)]
            simple.assignments[name] = self.variables[name.casefold()] = joined([value], unknown)

    def _redirect(self, simple: Simple, found: re.Match[str]) -> None:
        self.at = found.end()
        if found[3]:
            simple.redirects.append(Redirect(f"{found[2]}&", found[3], found[1]))
        else:
            self._skip()
            simple.redirects.append(Redirect(found[2], self._word(simple, 1), found[1]))

    def _word(self, simple: Simple, brackets: int, *, separated: bool = False) -> str:
        """One word without its quotes. `separated`: commas, semicolons and equal signs end it. May be empty."""
        text = self.text
        pieces: list[str] = []
        while self.at < len(text):
            sign = text[self.at]
            if sign == '"':
                pieces += self._quoted()
            elif sign == "^":
                pieces.append(text[self.at + 1 : self.at + 2].strip("\n"))
                self.at += 2
            elif sign in "%!":
                pieces.append(self._variable())
            elif sign == "(" or (sign == ")" and not brackets):
                pieces.append(sign)
                self.at += 1
            elif found := _PLAIN.match(text, self.at):
                ends = _SEPARATOR.search(found[0]) if separated else None
                self.at = found.start() + ends.start() if ends else found.end()
                pieces.append(text[found.start() : self.at])
                if ends:
                    break
            else:
                break
            self.budget.spend()
        return joined(pieces, [one for piece in pieces for one in unknown_of(piece)])

    def _quoted(self) -> list[str]:
        """What is between quotes: only variables mean something there. The end of the line ends it, too."""
        text, pieces = self.text, list[str]()
        self.at += 1
        while self.at < len(text) and text[self.at] != "\n":
            self.budget.spend()
            if text[self.at] == '"':
                self.at += 1
                return pieces
            if found := _QUOTED.match(text, self.at):
                pieces.append(found[0])
                self.at = found.end()
            else:
                pieces.append(self._variable())
        self.sound = False
        return pieces

    def _variable(self) -> str:
        """`%NAME%`, `!NAME!`, `%1`, `%%i`. A sign by itself is only a sign."""
        found = _VARIABLE.match(self.text, self.at)
        if found is None:
            self.at += 1
            return self.text[self.at - 1]
        self.at = found.end()
        if found[0] == "%%":
            return "%"
        name = found[1] or found[2]
        plain = name is not None and ":" not in found[0]
        return self.value_of(name, found[0]) if plain else Word(found[0], (found[0][:80],))
