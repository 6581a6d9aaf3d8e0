"""Words of a command line: quotes, escapes, variables and substitutions become the parts of a word.

Expressions in this module give nothing back that they have taken (no possessive or atomic groups: their meaning
differs between Pythons), and each alternative begins with a character that no other begins with. So time grows with
the length of the text.
"""

from __future__ import annotations

import re

from .tree import DEPTH, Arithmetic, Block, Budget, Substitution, TextPart, TooComplex, Variable, WordPart, WordParts

BLANK = re.compile(r"(?:[ \t\r]+|\\\r?\n)*")
_PLAIN = re.compile(r"[^ \t\r\n;&|<>()`\"'\\$#][^ \t\r\n;&|<>()`\"'\\$]*(?=[ \t\n;&|<>)]|\Z)")
_RUN = re.compile(r"[^ \t\r\n;&|<>()`\"'\\$]+")
_VARIABLE = re.compile(r"\$([A-Za-z0-9_]+|[@*#?$!-])")
_BRACED = re.compile(r"\$\{(!?[#]?)([A-Za-z0-9_]+(?:\[[^\]\"'`$\\]*\])?|[@*#?$!-])")
_DEFAULT_OF_ZSH = re.compile(r"\$\{()()(?=:-)")
"""`${:-word}`, which is the word."""
_IN_BRACES = re.compile(r"[^}\"'`$\\]+")
_IN_QUOTES = re.compile(r"[^\"`$\\]+")
_IN_DOCUMENT = re.compile(r"[^`$\\]+")
_BACKTICKS = re.compile(r"`([^`\\]*(?:\\.[^`\\]*)*)`", re.DOTALL)
_SINGLE = re.compile(r"'([^']*)'")
_ANSI_QUOTED = re.compile(r"\$'([^'\\]*(?:\\.[^'\\]*)*)'", re.DOTALL)
ANSI = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))", re.DOTALL)
_ANSI_NAMES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_ARITHMETIC = re.compile(r"[^()'\"`\\]+")
_OLD_ARITHMETIC = re.compile(r"\$\[([^\[\]\"'`$\\;&|]{1,200})\]")
_OPERATOR_OF = re.compile(r":?[-=+?]|##?|%%?|//?|\^\^?|,,?|:|@|")
_EXTGLOB = "@?*!+"


class WordReader:
    """Reads words of a text. `sound` is False where the text is not what a shell would take."""

    def __init__(self, text: str, budget: Budget, depth: int = 0) -> None:
        self.text, self.budget, self.depth = text, budget, depth
        self.at = 0
        self.sound = True
        self._peeked = (-1, "")

    def _block(self) -> Block:
        """Pipelines up to a closing bracket or word. `Parser` knows commands."""
        raise NotImplementedError

    def _nested(self, text: str) -> Block:
        """The commands of a text in this one."""
        raise NotImplementedError

    def _peek(self) -> str:
        """The plain word that is next, which stays where it is."""
        if self._peeked[0] != self.at:
            found = _PLAIN.match(self.text, self.at)
            self._peeked = (self.at, found[0] if found else "")
        return self._peeked[1]

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > DEPTH:
            raise TooComplex

    def _blank(self) -> None:
        """Skip blanks. A comment is none between the words of a command that goes on."""
        self.at = BLANK.match(self.text, self.at).end()  # type: ignore[union-attr]

    def _close(self, word: str) -> None:
        """Read the word or the bracket that ends a block."""
        if self.text.startswith(word, self.at):
            self.at += len(word)
        else:
            self.sound = False

    def _word(self) -> WordParts | None:
        if plain := self._peek():
            self.budget.spend()
            self.at += len(plain)
            return plain
        parts: list[WordPart] = []
        text = self.text
        if text[self.at : self.at + 1] == "#":
            return None
        while self.at < len(text):
            found = _RUN.match(text, self.at)
            if found is not None:
                parts.append(TextPart(found[0], False))
                self.at = found.end()
                if text[self.at : self.at + 1] == "(" and found[0][-1] in _EXTGLOB:
                    self._extended_glob(parts)
            elif not self._special(parts, quoted=False):
                break
            self.budget.spend()
        return tuple(parts) if parts else None

    def _special(self, parts: list[WordPart], quoted: bool) -> bool:
        """Read one quote, escape, variable or substitution into the parts. False if there is none here."""
        text, at = self.text, self.at
        sign = text[at]
        if sign == "$":
            self._dollar(parts, quoted)
        elif sign == "`":
            self._backticks(parts, quoted)
        elif sign == "\\":
            self._escape(parts, quoted)
        elif quoted:
            return False
        elif sign == "'":
            self._quoted(_SINGLE, parts)
        elif sign == '"':
            self.at += 1
            parts.append(TextPart("", True))
            self._until_quote(parts, _IN_QUOTES)
            self._close('"')
        elif sign in "<>" and text[at + 1 : at + 2] == "(":
            self.at += 1
            self._substitution(parts, sign, quoted)
        else:
            return False
        return True

    def _quoted(self, pattern: re.Pattern[str], parts: list[WordPart]) -> None:
        """Single quotes. Without an end, all that follows is in them."""
        found = pattern.match(self.text, self.at)
        if found is None:
            self.sound = False
            parts.append(TextPart(self.text[self.at + 1 :], True))
            self.at = len(self.text)
        else:
            parts.append(TextPart(found[1] if pattern is _SINGLE else self._decoded(found[1]), True))
            self.at = found.end()

    def _decoded(self, text: str) -> str:
        """The characters that `$'...'` stands for. bash ends it at a null character, zsh ends the whole word."""
        decoded, null, _ = ANSI.sub(character, text).partition("\0")
        self.sound = self.sound and not null
        return decoded

    def _escape(self, parts: list[WordPart], quoted: bool) -> None:
        after = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if after == "\n":
            return
        if quoted and after not in ('"', "$", "`", "\\"):
            parts.append(TextPart("\\" + after, True))
        else:
            parts.append(TextPart(after or "\\", True))

    def _until_quote(self, parts: list[WordPart], run: re.Pattern[str]) -> None:
        """What stands in double quotes, or in a here-document: variables and substitutions."""
        text = self.text
        while self.at < len(text):
            self.budget.spend()
            if found := run.match(text, self.at):
                parts.append(TextPart(found[0], True))
                self.at = found.end()
            elif not self._special(parts, quoted=True):
                return

    def _dollar(self, parts: list[WordPart], quoted: bool) -> None:
        text, at = self.text, self.at
        after = text[at + 1 : at + 2]
        if after == "(":
            if text[at + 2 : at + 3] == "(" and (inside := self._arithmetic(at + 3)) is not None:
                parts.append(Arithmetic(inside, text[at : self.at]))
                inner = self._parts_of(inside)  # `$((x[$(cmd)]))` runs a command
                parts.extend(part._replace(sign="quiet") for part in inner if isinstance(part, Substitution))
            else:
                self.at += 1
                self._substitution(parts, "$", quoted)
        elif after == "{":
            self._braces(parts, quoted)
        elif after == "'" and not quoted:
            self._quoted(_ANSI_QUOTED, parts)
        elif after == "[" and (inside := self._old_arithmetic()) is not None:
            parts.append(Arithmetic(inside, text[at : self.at]))
        elif after == '"' and not quoted:
            self.at += 1
        elif found := _VARIABLE.match(text, at):
            name = found[1] if found[1][0].isalpha() or found[1][0] == "_" else found[1][0]
            self.at = at + 1 + len(name)
            parts.append(Variable(name, "", (), quoted, text[at : self.at]))
        else:
            parts.append(TextPart("$", quoted))
            self.at += 1

    def _braces(self, parts: list[WordPart], quoted: bool) -> None:
        """`${NAME}`, `${NAME:-word}`, `${#NAME}`, `${!NAME}`."""
        text, began = self.text, self.at
        found = _BRACED.match(text, began) or _DEFAULT_OF_ZSH.match(text, began)
        if found is None:
            self.sound = False
            parts.append(TextPart("${", quoted))
            self.at += 2
            return
        self._deeper()
        self.at = found.end()
        argument: list[WordPart] = []
        while self.at < len(text) and text[self.at] != "}":
            self.budget.spend()
            if run := _IN_BRACES.match(text, self.at):
                argument.append(TextPart(run[0], quoted))
                self.at = run.end()
            elif text[self.at] in "'\"" and not quoted:
                self._special(argument, quoted=False)
            elif not self._special(argument, quoted=quoted):
                argument.append(TextPart(text[self.at], True))  # a quote in quotes
                self.at += 1
        self._close("}")
        self.depth -= 1
        operator = ""
        if argument and isinstance(first := argument[0], TextPart):
            operator = _OPERATOR_OF.match(first.text)[0]  # type: ignore[index]
            argument[0] = TextPart(first.text[len(operator) :], first.quoted)
        parts.append(Variable(found[2], found[1] + operator, tuple(argument), quoted, text[began : self.at]))

    def _substitution(self, parts: list[WordPart], sign: str, quoted: bool) -> None:
        """What stands between this bracket and the one that closes it."""
        began = self.at - 1
        self._deeper()
        self.budget.spend(4)
        self.at += 1
        body = self._block()
        while self.at < len(self.text) and self.text[self.at] != ")":  # something that ends nothing
            self.sound = False
            self.at += len(self._peek()) or 1
            body += self._block()
        self._close(")")
        self.depth -= 1
        parts.append(Substitution(body, sign, quoted, self.text[began : self.at]))

    def _backticks(self, parts: list[WordPart], quoted: bool) -> None:
        found = _BACKTICKS.match(self.text, self.at)
        if found is None:
            self.sound = False
            inside, source = self.text[self.at + 1 :], self.text[self.at :]
        else:
            inside, source = found[1], found[0]
        escaped = r'\\([`$\\"])' if quoted else r"\\([`$\\])"
        self._deeper()
        self.budget.spend(4 + len(inside) // 16)
        body = self._nested(re.sub(escaped, r"\1", inside))
        self.depth -= 1
        self.at += len(source)
        parts.append(Substitution(body, "$", quoted, source))

    def _arithmetic(self, at: int) -> str | None:
        """The text from here up to `))`, after which it goes on. None if this is no arithmetic."""
        text, depth, position = self.text, 0, at
        while position < len(text):
            self.budget.spend()
            sign = text[position]
            if sign == "(":
                depth += 1
            elif sign == ")":
                if depth == 0:
                    if text[position + 1 : position + 2] != ")":
                        return None
                    self.at = position + 2
                    return text[at:position]
                depth -= 1
            elif sign == "\\":
                position += 1
            elif found := _ARITHMETIC.match(text, position):
                position = found.end() - 1
            position += 1
        return None

    def _old_arithmetic(self) -> str | None:
        """`$[1+2]`, where no bracket, quote or substitution stands in it."""
        found = _OLD_ARITHMETIC.match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        return found[1]

    def _extended_glob(self, parts: list[WordPart]) -> None:
        """`@(a|b)`: a pattern of alternatives, one bracket in another."""
        depth, position = 0, self.at
        while position < len(self.text):
            self.budget.spend()
            sign = self.text[position]
            depth += (sign == "(") - (sign == ")")
            position += 1
            if depth == 0:
                parts.append(TextPart(self.text[self.at : position], False))
                self.at = position
                return
            if sign == "\n":
                break
        self.sound = False

    def _parts_of(self, text: str) -> tuple[WordPart, ...]:
        """The parts of a text as if it stood in double quotes."""
        inner = type(self)(text, self.budget, self.depth)
        parts = inner.parse_text()
        self.sound = self.sound and inner.sound
        return parts

    def parse_text(self) -> tuple[WordPart, ...]:
        """The whole text as that of a here-document: no word of it is a command, but substitutions run."""
        parts: list[WordPart] = []
        self._until_quote(parts, _IN_DOCUMENT)
        return tuple(parts)


def character(found: re.Match[str]) -> str:
    byte, short, long, octal, control, other = found.groups()
    if byte or short or long:
        code = int(byte or short or long, 16)
        return chr(code) if code < 0x110000 else "\ufffd"
    if octal:
        return chr(int(octal, 8) & 0xFF)
    if control:
        return chr(ord(control) & 0x1F)
    return _ANSI_NAMES.get(other, other)
