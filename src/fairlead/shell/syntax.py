"""The syntax of a shell's command line: a text becomes a tree. Nothing is expanded here.

The grammar is bash's, which has that of POSIX shells in it, and what zsh shares with both. A text that it does not
understand is no error: `Parser.sound` is False, and the tree has what could be read.

Expressions in this module give nothing back that they have taken (no possessive or atomic groups: their meaning
differs between Pythons), and each alternative begins with a character that no other begins with. So time grows with
the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
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


# --- the tree -----------------------------------------------------------------------------------


class Text(NamedTuple):
    """A part of a word that is what it says. Unquoted, `*` or `{a,b}` in it still mean something."""

    text: str
    quoted: bool


class Variable(NamedTuple):
    """`$NAME`, or `${NAME...}` with what follows the name: an operator, and the parts after it."""

    name: str
    operator: str
    argument: tuple[Part, ...]
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


Part = Union[Text, Variable, Substitution, Arithmetic]
Word = Union[str, tuple[Part, ...]]
"""A word of plain characters is a str. Any other consists of parts."""


class Redirect(NamedTuple):
    """Where a descriptor leads: `2>file`, `<<END` with its document, `{fd}<file`."""

    descriptor: str
    operator: str
    word: Word
    document: Document | None


class Document:
    """A here-document. Its text comes later than the command that reads it."""

    __slots__ = ("end", "expands", "tabs", "text")

    def __init__(self, end: str, expands: bool, tabs: bool) -> None:
        self.end, self.expands, self.tabs, self.text = end, expands, tabs, ""


class Assignment(NamedTuple):
    name: str
    value: Word | list[Word]
    adds: bool


class Simple(NamedTuple):
    """A command of words."""

    assignments: list[Assignment]
    words: list[Word]
    redirects: list[Redirect]


class Compound(NamedTuple):
    """A command that consists of others: `( )`, `{ }`, `if`, `case`, `while`, `until`, `for`, `select`, `[[`, `((`.

    Each block may run. A `for` has a variable, and maybe words; a `case` has its word and the patterns in words.
    """

    kind: str
    blocks: list[Block]
    redirects: list[Redirect]
    variable: str = ""
    words: list[Word] | None = None


class Function(NamedTuple):
    name: str
    body: Node


Node = Union[Simple, Compound, Function]
Pipeline = list[Node]
Block = list[Pipeline]


# --- tokens -------------------------------------------------------------------------------------

_GAP = re.compile(r"(?:[ \t\r]+|\\\r?\n|#[^\n]*)*")
_BLANK = re.compile(r"(?:[ \t\r]+|\\\r?\n)*")
_PLAIN = re.compile(r"[^\s;&|<>()`\"'\\$#][^\s;&|<>()`\"'\\$]*(?=[ \t\n;&|<>)]|\Z)")
_REDIRECT = re.compile(r"(\d+|\{\w+\})?(&>>|&>|<<<|<<-|<<|<>|<&|>>|>\||>&|<(?!\()|>(?!\())")
_RUN = re.compile(r"[^\s;&|<>()`\"'\\$]+")
_VARIABLE = re.compile(r"\$(\w+|[@*#?$!-])")
_BRACED = re.compile(r"\$\{(!?[#]?)(\w+(?:\[[^\]\"'`$\\]*\])?|[@*#?$!-])")
_IN_BRACES = re.compile(r"[^}\"'`$\\]+")
_IN_QUOTES = re.compile(r"[^\"`$\\]+")
_IN_DOCUMENT = re.compile(r"[^`$\\]+")
_BACKTICKS = re.compile(r"`([^`\\]*(?:\\.[^`\\]*)*)`", re.DOTALL)
_SINGLE = re.compile(r"'([^']*)'")
_ANSI_QUOTED = re.compile(r"\$'([^'\\]*(?:\\.[^'\\]*)*)'", re.DOTALL)
_ANSI = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))", re.DOTALL
)
_ANSI_NAMES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_ARITHMETIC = re.compile(r"[^()'\"`\\]+")
_ASSIGNS = re.compile(r"([A-Za-z_]\w*)(?:\[(?:[^\]$`]|\$(?!\())*\])?(\+?)=")  # an index may not run anything
_NAME = re.compile(r"[^\s;&|<>()`\"'\\$]+")
_OPERATOR_OF = re.compile(r":?[-=+?]|##?|%%?|//?|\^\^?|,,?|:|@|")
_FUNCTION = re.compile(r"[ \t]*\([ \t]*\)")
_EXTGLOB = "@?*!+"

DECLARES = frozenset({"export", "declare", "local", "readonly", "typeset"})
"""Commands whose words set variables."""
_CLOSERS = frozenset({"then", "else", "elif", "fi", "do", "done", "esac", "}"})
_OPENERS = frozenset({"if", "while", "until", "for", "select", "case", "{", "function", "[[", "coproc", "time", "!"})


class Parser:
    """Reads a text from its beginning. `sound` is False where the text is not what a shell would take."""

    def __init__(self, text: str, budget: Budget, depth: int = 0) -> None:
        self.text, self.budget, self.depth = text, budget, depth
        self.at = 0
        self.sound = True
        self._documents: list[Document] = []
        self._peeked = (-1, "")

    def parse(self) -> Block:
        """The whole text."""
        block: Block = []
        while True:
            block += self._block()
            if self.at >= len(self.text):
                return block
            self.sound = False  # a bracket or a word that ends what was never begun
            self.budget.spend()
            self.at += 1 if self.text[self.at] in ");&|" else len(self._peek()) or 1

    # --- lists ----------------------------------------------------------------------------------

    def _block(self) -> Block:
        """Pipelines up to a closing bracket or word, which is left where it is, or the end of the text."""
        block: Block = []
        while True:
            self._skip_lines()
            if self.at >= len(self.text) or self._at_end():
                return block
            before = self.at
            pipeline = self._pipeline()
            if pipeline:
                block.append(pipeline)
            elif self.at == before:
                return block

    def _at_end(self) -> bool:
        """Is this a bracket or a word that closes a block?"""
        if self.text[self.at] == ")" or self.text.startswith(";;", self.at) or self.text.startswith(";&", self.at):
            return True
        return self._peek() in _CLOSERS

    def _skip_lines(self) -> None:
        """Skip what separates pipelines: blanks, comments, newlines (and the documents after them), `;` and `&`."""
        text = self.text
        while True:
            self._gap()
            sign = text[self.at : self.at + 1]
            if sign == "\n":
                self._newline()
            elif sign and sign in ";&" and text[self.at + 1 : self.at + 2] not in (";", "&", ">"):
                self.budget.spend()
                self.at += 1
            elif text.startswith("&&", self.at):
                self.at += 2
            else:
                return

    def _newline(self) -> None:
        self.budget.spend()
        self.at += 1
        documents, self._documents = self._documents, []
        for document in documents:
            self._take(document)

    def _take(self, document: Document) -> None:
        """The lines up to the one that ends a here-document."""
        tabs = r"\t*" if document.tabs else ""
        self.budget.spend(1 + (len(self.text) - self.at) // 1024)
        end = re.compile(rf"^{tabs}{re.escape(document.end)}$", re.MULTILINE).search(self.text, self.at)
        text = self.text[self.at : end.start() if end else len(self.text)]
        document.text = re.sub(r"^\t+", "", text, flags=re.MULTILINE) if document.tabs else text
        self.at = min(end.end() + 1, len(self.text)) if end else len(self.text)

    def _peek(self) -> str:
        """The plain word that is next, which stays where it is."""
        if self._peeked[0] != self.at:
            found = _PLAIN.match(self.text, self.at)
            self._peeked = (self.at, found[0] if found else "")
        return self._peeked[1]

    def _pipeline(self) -> Pipeline:
        pipeline: Pipeline = []
        while True:
            if (node := self._command()) is not None:
                pipeline.append(node)
            self._gap()
            if self.text[self.at : self.at + 1] != "|":
                return pipeline
            self.budget.spend()
            self.at += 2 if self.text[self.at + 1 : self.at + 2] in ("|", "&") else 1
            ends = self.text[self.at - 2 : self.at] == "||"
            self._gap()
            while self.text[self.at : self.at + 1] == "\n":
                self._newline()
                self._gap()
            if ends:
                return pipeline

    # --- commands -------------------------------------------------------------------------------

    def _command(self) -> Node | None:
        self.budget.spend()
        if self.text[self.at : self.at + 1] == "(":
            return self._bracket()
        word = self._peek()
        if word in _OPENERS:
            self.at += len(word)
            return self._opened(word)
        if word and (found := _FUNCTION.match(self.text, self.at + len(word))):
            self.at = found.end()
            return self._function(word)
        if not word and (found := _NAME.match(self.text, self.at)):  # a name right before its brackets
            after = _FUNCTION.match(self.text, found.end())
            if after and not found[0].endswith("="):
                self.at = after.end()
                return self._function(found[0])
        return self._simple()

    def _opened(self, word: str) -> Node | None:
        """What a reserved word begins."""
        self._gap()
        if word in ("!", "time", "coproc"):
            if word == "time" and self._peek() == "-p":
                self.at += 2
                self._gap()
            if word == "coproc":
                self._skip_name_of_coproc()
            return self._command() if self.at < len(self.text) and not self._at_end() else None
        self._deeper()
        node = _READERS[word](self, word)
        self.depth -= 1
        return node

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > DEPTH:
            raise TooComplex

    def _skip_name_of_coproc(self) -> None:
        """`coproc NAME { ... }`: a name is there only before a compound command."""
        name = self._peek()
        rest = _BLANK.match(self.text, self.at + len(name)).end()  # type: ignore[union-attr]
        if name and name not in _OPENERS and (self.text[rest : rest + 1] in ("{", "(")):
            self.at = rest

    def _gap(self) -> None:
        """Skip blanks and comments."""
        self.at = _GAP.match(self.text, self.at).end()  # type: ignore[union-attr]

    def _blank(self) -> None:
        """Skip blanks. A comment is none between the words of a command that goes on."""
        self.at = _BLANK.match(self.text, self.at).end()  # type: ignore[union-attr]

    def _close(self, word: str) -> None:
        """Read the word or the bracket that ends a block."""
        if self.text.startswith(word, self.at):
            self.at += len(word)
        else:
            self.sound = False

    def _compound(
        self, kind: str, blocks: list[Block], variable: str = "", words: list[Word] | None = None
    ) -> Compound:
        redirects: list[Redirect] = []
        while True:
            self._blank()
            if (redirect := self._redirect()) is None:
                return Compound(kind, blocks, redirects, variable, words)
            redirects.append(redirect)

    def _bracket(self) -> Compound:
        self._deeper()
        self.at += 1
        if self.text[self.at : self.at + 1] == "(" and (inside := self._arithmetic(self.at + 1)) is not None:
            body = self._parts_of(inside)
            self.depth -= 1
            return self._compound("((", [], words=[body])
        block = self._block()
        self._close(")")
        self.depth -= 1
        return self._compound("(", [block])

    def _group(self, _: str) -> Compound:
        block = self._block()
        self._close("}")
        return self._compound("{", [block])

    def _if(self, _: str) -> Compound:
        blocks = [self._block()]
        while True:
            word = self._peek()
            if word not in ("then", "elif", "else"):
                break
            self.at += len(word)
            blocks.append(self._block())
        self._close("fi")
        return self._compound("if", blocks)

    def _while(self, word: str) -> Compound:
        blocks = [self._block(), self._body()]
        return self._compound(word, blocks)

    def _body(self) -> Block:
        """`do ... done`, or braces, which bash takes as well."""
        self._skip_lines()
        if self._peek() == "{":
            self.at += 1
            block = self._block()
            self._close("}")
            return block
        self._close("do")
        block = self._block()
        self._close("done")
        return block

    def _for(self, word: str) -> Compound:
        if self.text.startswith("((", self.at) and (inside := self._arithmetic(self.at + 2)) is not None:
            words: list[Word] | None = [self._parts_of(inside)]
            return self._compound("while", [self._body()], words=words)
        variable = self._peek()
        self.at += len(variable)
        self._skip_newlines()
        words = None
        if self._peek() == "in":
            self.at += 2
            words = self._words()
        return self._compound(word, [self._body()], variable, words)

    def _skip_newlines(self) -> None:
        self._gap()
        while self.text[self.at : self.at + 1] == "\n":
            self._newline()
            self._gap()

    def _words(self) -> list[Word]:
        words: list[Word] = []
        while True:
            self._gap()
            if (word := self._word()) is None:
                return words
            words.append(word)

    def _case(self, _: str) -> Compound:
        words, blocks = [self._word() or ""], list[Block]()
        self._skip_newlines()
        self._close("in")
        while True:
            self._skip_newlines()
            if self.at >= len(self.text) or self._peek() == "esac":
                break
            before = self.at
            if self.text[self.at] == "(":
                self.at += 1
            while True:  # the patterns
                self._gap()
                if (word := self._word()) is None:
                    break
                words.append(word)
                self._gap()
                if self.text[self.at : self.at + 1] == "|":
                    self.at += 1
            self._close(")")
            blocks.append(self._block())
            for sign in (";;&", ";;", ";&"):
                if self.text.startswith(sign, self.at):
                    self.at += len(sign)
                    break
            if self.at == before:
                self.sound = False
                break
        self._close("esac")
        return self._compound("case", blocks, words=words)

    def _test(self, _: str) -> Compound:
        """`[[ ... ]]`: words and operators, of which only the substitutions run."""
        words: list[Word] = []
        while self.at < len(self.text):
            self._skip_newlines()
            if self._peek() == "]]":
                break
            if (word := self._word()) is not None:
                words.append(word)
            elif found := re.compile(r"[<>()&|]+").match(self.text, self.at):
                self.at = found.end()
            else:
                break
        self._close("]]")
        return self._compound("[[", [], words=words)

    def _named_function(self, _: str) -> Function | None:
        name = self._peek() or (found[0] if (found := _NAME.match(self.text, self.at)) else "")
        self.at += len(name)
        if found := _FUNCTION.match(self.text, self.at):
            self.at = found.end()
        return self._function(name)

    def _function(self, name: str) -> Function | None:
        self._skip_newlines()
        self._deeper()
        body = self._command() if self.at < len(self.text) else None
        self.depth -= 1
        if body is None:
            self.sound = False
            return None
        return Function(name, body)

    # --- simple commands ------------------------------------------------------------------------

    def _simple(self) -> Simple | None:
        assignments: list[Assignment] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            self._blank()
            if (redirect := self._redirect()) is not None:
                redirects.append(redirect)
            elif (assignment := self._assignment(words)) is not None:
                assignments.append(assignment)
            elif (word := self._word()) is not None:
                words.append(word)
            else:
                break
        if self.text[self.at : self.at + 1] == "(" and words:  # no function, no array: not a shell that we know
            self.sound = False
            self._deeper()
            self.at += 1
            body = self._block()
            self._close(")")
            self.depth -= 1
            words.append((Substitution(body, "", False, "(...)"),))
        return Simple(assignments, words, redirects) if assignments or words or redirects else None

    def _assignment(self, words: list[Word]) -> Assignment | None:
        """`a=1`, `a+=1`, `a=(1 2)`, before any words. To `declare` and its like, all but an array is a word."""
        if words and (not isinstance(words[0], str) or words[0] not in DECLARES):
            return None
        found = _ASSIGNS.match(self.text, self.at)
        if found is None or (words and self.text[found.end() : found.end() + 1] != "("):
            return None
        self.at = found.end()
        name, adds = found[1], bool(found[2])
        if self.text[self.at : self.at + 1] != "(":
            value: Word | list[Word] = self._word() or ""
            return Assignment(name, value, adds)
        self.at += 1
        items: list[Word] = []
        while True:
            self._skip_newlines()
            if (word := self._word()) is None:
                break
            items.append(word)
        self._close(")")
        return Assignment(name, items, adds)

    def _redirect(self) -> Redirect | None:
        found = _REDIRECT.match(self.text, self.at)
        if found is None:
            return None
        self.budget.spend()
        self.at = found.end()
        self._blank()
        began = self.at
        word = self._word()
        if word is None:
            self.sound, word = False, ""
        document = None
        if found[2] in ("<<", "<<-"):
            raw = self.text[began : self.at]
            end = word if isinstance(word, str) else "".join(getattr(part, "text", "") for part in word)
            document = Document(end, isinstance(word, str), found[2] == "<<-")
            if not isinstance(word, str) and not any(isinstance(part, Text) and part.quoted for part in word):
                document.end, document.expands = raw, True
            self._documents.append(document)
        return Redirect(found[1] or "", found[2], word, document)

    # --- words ----------------------------------------------------------------------------------

    def _word(self) -> Word | None:
        if plain := self._peek():
            self.budget.spend()
            self.at += len(plain)
            return plain
        parts: list[Part] = []
        text = self.text
        if text[self.at : self.at + 1] == "#":
            return None
        while self.at < len(text):
            found = _RUN.match(text, self.at)
            if found is not None:
                parts.append(Text(found[0], False))
                self.at = found.end()
                if text[self.at : self.at + 1] == "(" and found[0][-1] in _EXTGLOB:
                    self._extended_glob(parts)
            elif not self._special(parts, quoted=False):
                break
            self.budget.spend()
        return tuple(parts) if parts else None

    def _special(self, parts: list[Part], quoted: bool) -> bool:
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
            parts.append(Text("", True))
            self._until_quote(parts, _IN_QUOTES)
            self._close('"')
        elif sign in "<>" and text[at + 1 : at + 2] == "(":
            self.at += 1
            self._substitution(parts, sign, quoted)
        else:
            return False
        return True

    def _quoted(self, pattern: re.Pattern[str], parts: list[Part]) -> None:
        """Single quotes. Without an end, all that follows is in them."""
        found = pattern.match(self.text, self.at)
        if found is None:
            self.sound = False
            parts.append(Text(self.text[self.at + 1 :], True))
            self.at = len(self.text)
        else:
            parts.append(Text(found[1] if pattern is _SINGLE else self._decoded(found[1]), True))
            self.at = found.end()

    def _decoded(self, text: str) -> str:
        """The characters that `$'...'` stands for. bash ends it at a null character, zsh ends the whole word."""
        decoded, null, _ = _ANSI.sub(_character, text).partition("\0")
        self.sound = self.sound and not null
        return decoded

    def _escape(self, parts: list[Part], quoted: bool) -> None:
        after = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if after == "\n":
            return
        if quoted and after not in ('"', "$", "`", "\\"):
            parts.append(Text("\\" + after, True))
        else:
            parts.append(Text(after or "\\", True))

    def _until_quote(self, parts: list[Part], run: re.Pattern[str]) -> None:
        """What stands in double quotes, or in a here-document: variables and substitutions."""
        text = self.text
        while self.at < len(text):
            self.budget.spend()
            if found := run.match(text, self.at):
                parts.append(Text(found[0], True))
                self.at = found.end()
            elif not self._special(parts, quoted=True):
                return

    def _dollar(self, parts: list[Part], quoted: bool) -> None:
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
        elif after == '"' and not quoted:
            self.at += 1
        elif found := _VARIABLE.match(text, at):
            name = found[1] if found[1][0].isalpha() or found[1][0] == "_" else found[1][0]
            self.at = at + 1 + len(name)
            parts.append(Variable(name, "", (), quoted, text[at : self.at]))
        else:
            parts.append(Text("$", quoted))
            self.at += 1

    def _braces(self, parts: list[Part], quoted: bool) -> None:
        """`${NAME}`, `${NAME:-word}`, `${#NAME}`, `${!NAME}`."""
        text, began = self.text, self.at
        found = _BRACED.match(text, began)
        if found is None:
            self.sound = False
            parts.append(Text("${", quoted))
            self.at += 2
            return
        self._deeper()
        self.at = found.end()
        argument: list[Part] = []
        while self.at < len(text) and text[self.at] != "}":
            self.budget.spend()
            if run := _IN_BRACES.match(text, self.at):
                argument.append(Text(run[0], quoted))
                self.at = run.end()
            elif text[self.at] in "'\"" and not quoted:
                self._special(argument, quoted=False)
            elif not self._special(argument, quoted=quoted):
                argument.append(Text(text[self.at], True))  # a quote in quotes
                self.at += 1
        self._close("}")
        self.depth -= 1
        operator = ""
        if argument and isinstance(first := argument[0], Text):
            operator = _OPERATOR_OF.match(first.text)[0]  # type: ignore[index]
            argument[0] = Text(first.text[len(operator) :], first.quoted)
        parts.append(Variable(found[2], found[1] + operator, tuple(argument), quoted, text[began : self.at]))

    def _substitution(self, parts: list[Part], sign: str, quoted: bool) -> None:
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

    def _backticks(self, parts: list[Part], quoted: bool) -> None:
        found = _BACKTICKS.match(self.text, self.at)
        if found is None:
            self.sound = False
            inside, source = self.text[self.at + 1 :], self.text[self.at :]
        else:
            inside, source = found[1], found[0]
        escaped = r'\\([`$\\"])' if quoted else r"\\([`$\\])"
        self._deeper()
        self.budget.spend(4 + len(inside) // 16)
        inner = Parser(re.sub(escaped, r"\1", inside), self.budget, self.depth)
        body = inner.parse()
        self.sound = self.sound and inner.sound
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

    def _extended_glob(self, parts: list[Part]) -> None:
        """`@(a|b)`: a pattern of alternatives, one bracket in another."""
        depth, position = 0, self.at
        while position < len(self.text):
            self.budget.spend()
            sign = self.text[position]
            depth += (sign == "(") - (sign == ")")
            position += 1
            if depth == 0:
                parts.append(Text(self.text[self.at : position], False))
                self.at = position
                return
            if sign == "\n":
                break
        self.sound = False

    def _parts_of(self, text: str) -> tuple[Part, ...]:
        """The parts of a text as if it stood in double quotes."""
        inner = Parser(text, self.budget, self.depth)
        parts = inner.parse_text()
        self.sound = self.sound and inner.sound
        return parts

    def parse_text(self) -> tuple[Part, ...]:
        """The whole text as that of a here-document: no word of it is a command, but substitutions run."""
        parts: list[Part] = []
        self._until_quote(parts, _IN_DOCUMENT)
        return tuple(parts)


def _character(found: re.Match[str]) -> str:
    byte, short, long, octal, control, other = found.groups()
    if byte or short or long:
        code = int(byte or short or long, 16)
        return chr(code) if code < 0x110000 else "\ufffd"
    if octal:
        return chr(int(octal, 8) & 0xFF)
    if control:
        return chr(ord(control) & 0x1F)
    return _ANSI_NAMES.get(other, other)


_READERS: dict[str, Callable[[Parser, str], Node | None]] = {
    "if": Parser._if, "while": Parser._while, "until": Parser._while, "for": Parser._for, "select": Parser._for,
    "case": Parser._case, "{": Parser._group, "function": Parser._named_function, "[[": Parser._test,
}  # fmt: skip
