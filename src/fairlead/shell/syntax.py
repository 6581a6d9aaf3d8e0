"""The syntax of a shell's command line: a text becomes a tree. Nothing is expanded here.

The grammar is bash's, which has that of POSIX shells in it, and what zsh shares with both. A text that it does not
understand is no error: `Parser.sound` is False, and the tree has what could be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .quoting import BLANK, WordReader
from .tree import (
    Assignment,
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
    TextPart,
    WordParts,
)

_GAP = re.compile(r"(?:[ \t\r]+|\\\r?\n|#[^\n]*)*")
_REDIRECT = re.compile(r"([0-9]+|\{[A-Za-z_][A-Za-z0-9_]*\})?(&>>|&>|<<<|<<-|<<|<>|<&|>>|>\||>&|<(?!\()|>(?!\())")
_ASSIGNS = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[([^\]]{0,256})\])?(\+?)=")
_TEST_OPERATOR = re.compile(r"[<>()&|]+")
_NAME = re.compile(r"[^ \t\r\n;&|<>()`\"'\\$]+")
_FUNCTION = re.compile(r"[ \t]*\([ \t]*\)")
_BEFORE_BRACKET = re.compile(r"(?:if|then|elif|else|while|until|do|for|time|coproc|[!{])(?=\()")
"""Reserved words that a bracket may follow right away: `if(a); then(b); fi`, `!(a)`."""

DECLARES = frozenset({"export", "declare", "local", "readonly", "typeset"})
"""Commands whose words set variables."""
_CLOSERS = frozenset({"then", "else", "elif", "fi", "do", "done", "esac", "}"})
_OPENERS = frozenset({"if", "while", "until", "for", "select", "case", "{", "function", "[[", "coproc", "time", "!"})


class Parser(WordReader):
    """Reads a text from its beginning. `sound` is False where the text is not what a shell would take."""

    def __init__(self, text: str, budget: Budget, depth: int = 0) -> None:
        super().__init__(text, budget, depth)
        self._documents: list[HereDocument] = []

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

    def _nested(self, text: str) -> Block:
        inner = Parser(text, self.budget, self.depth)
        block = inner.parse()
        self.sound = self.sound and inner.sound
        return block

    # --- lists ----------------------------------------------------------------------------------

    def _block(self) -> Block:
        """Pipelines up to a closing bracket or word, which is left where it is, or the end of the text."""
        block: Block = []
        while True:
            self._skip_lines()
            if self.at >= len(self.text) or self._at_end():
                return block
            before = self.at
            if pipeline := self._and_or():
                block.append(pipeline)
            elif self.at == before:
                return block

    def _and_or(self) -> Pipeline:
        """Pipelines with `&&` and `||` between them, which are one command of the tree, and `&` after them."""
        pipelines, operators = [self._pipeline()], list[str]()
        while pipelines[-1] and (sign := self.text[self.at : self.at + 2]) in ("&&", "||"):
            self.budget.spend()
            self.at += 2
            self._skip_newlines()
            if self.at >= len(self.text) or self._at_end() or not (pipeline := self._pipeline()):
                self.sound = False
                break
            operators.append(sign)
            pipelines.append(pipeline)
        pipeline = pipelines[0]
        if operators:
            pipeline = [Compound("and-or", [[one] for one in pipelines], [], operators=operators)]
        if pipeline and self.text[self.at : self.at + 1] == "&" and self.text[self.at + 1 : self.at + 2] != "&":
            self.budget.spend()
            self.at += 1
            pipeline = [Compound("&", [[pipeline]], [])]
        return pipeline

    def _at_end(self) -> bool:
        """Is this a bracket or a word that closes a block?"""
        if self.text[self.at] == ")" or self.text.startswith(";;", self.at) or self.text.startswith(";&", self.at):
            return True
        return self._reserved() in _CLOSERS

    def _reserved(self) -> str:
        """The word that is next, if it is plain: maybe a reserved one. It stays where it is."""
        if word := self._peek():
            return word
        found = _BEFORE_BRACKET.match(self.text, self.at)
        return found[0] if found else ""

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

    def _take(self, document: HereDocument) -> None:
        """The lines up to the one that ends a here-document."""
        tabs = r"\t*" if document.tabs else ""
        self.budget.spend(1 + (len(self.text) - self.at) // 400)
        end = re.compile(rf"^{tabs}{re.escape(document.end)}$", re.MULTILINE).search(self.text, self.at)
        text = self.text[self.at : end.start() if end else len(self.text)]
        document.text = re.sub(r"^\t+", "", text, flags=re.MULTILINE) if document.tabs else text
        self.at = min(end.end() + 1, len(self.text)) if end else len(self.text)

    def _pipeline(self) -> Pipeline:
        pipeline: Pipeline = []
        while True:
            if (node := self._command()) is not None:
                pipeline.append(node)
            self._gap()
            if self.text[self.at : self.at + 1] != "|" or self.text[self.at + 1 : self.at + 2] == "|":
                return pipeline
            self.budget.spend()
            self.at += 2 if self.text[self.at + 1 : self.at + 2] == "&" else 1
            self._skip_newlines()

    # --- commands -------------------------------------------------------------------------------

    def _command(self) -> Node | None:
        self.budget.spend()
        if self.text[self.at : self.at + 1] == "(":
            return self._bracket()
        word = self._reserved()
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
            while word == "time" and (option := self._peek()) in ("-p", "--"):
                self.at += len(option)
                self._gap()
            if word == "coproc":
                self._skip_name_of_coproc()
            node = self._command() if self.at < len(self.text) and not self._at_end() else None
            return Compound("coproc", [[[node]]], []) if node is not None and word == "coproc" else node
        self._deeper()
        node = _READERS[word](self, word)
        self.depth -= 1
        return node

    def _skip_name_of_coproc(self) -> None:
        """`coproc NAME { ... }`: a name is there only before a compound command."""
        name = self._peek()
        rest = BLANK.match(self.text, self.at + len(name)).end()  # type: ignore[union-attr]
        if name and name not in _OPENERS and (self.text[rest : rest + 1] in ("{", "(")):
            self.at = rest

    def _gap(self) -> None:
        """Skip blanks and comments."""
        self.at = _GAP.match(self.text, self.at).end()  # type: ignore[union-attr]

    def _compound(
        self, kind: str, blocks: list[Block], variable: str = "", words: list[WordParts] | None = None
    ) -> Compound:
        redirects: list[RedirectNode] = []
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
            word = self._reserved()
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
            words: list[WordParts] | None = [self._parts_of(one) for one in inside.split(";")]
            return self._compound("for ((", [self._body()], words=words)
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

    def _words(self) -> list[WordParts]:
        words: list[WordParts] = []
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
        words: list[WordParts] = []
        while self.at < len(self.text):
            self._skip_newlines()
            if self._peek() == "]]":
                break
            if (word := self._word()) is not None:
                words.append(word)
            elif found := _TEST_OPERATOR.match(self.text, self.at):
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
        words: list[WordParts] = []
        redirects: list[RedirectNode] = []
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

    def _assignment(self, words: list[WordParts]) -> Assignment | None:
        """`a=1`, `a+=1`, `a=(1 2)`, before any words. To `declare` and its like, all but an array is a word."""
        if words and (not isinstance(words[0], str) or words[0] not in DECLARES):
            return None
        found = _ASSIGNS.match(self.text, self.at)
        if found is None or (words and self.text[found.end() : found.end() + 1] != "("):
            return None
        self.at = found.end()
        name, adds, index = found[1], bool(found[3]), found[2]
        if self.text[self.at : self.at + 1] != "(":
            value: WordParts | list[WordParts] = self._word() or ""
            return Assignment(name, value, adds, index)
        self.at += 1
        items: list[WordParts] = []
        while True:
            self._skip_newlines()
            if (word := self._word()) is None:
                break
            items.append(word)
        self._close(")")
        return Assignment(name, items, adds)

    def _redirect(self) -> RedirectNode | None:
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
            document = HereDocument(end, isinstance(word, str), found[2] == "<<-")
            if not isinstance(word, str) and not any(isinstance(part, TextPart) and part.quoted for part in word):
                document.end, document.expands = raw, True
            self._documents.append(document)
        return RedirectNode(found[1] or "", found[2], word, document)

    # --- words ----------------------------------------------------------------------------------


_READERS: dict[str, Callable[[Parser, str], Node | None]] = {
    "if": Parser._if, "while": Parser._while, "until": Parser._while, "for": Parser._for, "select": Parser._for,
    "case": Parser._case, "{": Parser._group, "function": Parser._named_function, "[[": Parser._test,
}  # fmt: skip
