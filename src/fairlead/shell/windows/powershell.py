"""The syntax of PowerShell, as far as it says which commands run: a text becomes a tree.

Branches, loops and functions are no nodes: their commands stand in the block around them. A text that the parser does
not understand is no error: `sound` is False. Expressions here have no possessive or atomic groups, and each
alternative begins with another character, so time grows with the length of the text.
"""

from __future__ import annotations

import re

from ..commands import Redirect
from ..words import Word, unknown_of
from .tree import Block, Nested, Pipeline, Scanner, Simple, joined

_SINGLE, _DOUBLE = "'\u2018\u2019\u201a\u201b", '"\u201c\u201d\u201e'
"""Typographic quotes are quotes, too."""
_GAP = re.compile(r"[^\S\n]+|`\r?\n|<#|#[^\n]*")
_PLAIN = re.compile(rf"(?:[^\s`$(){{}};|&<>,@{_SINGLE}{_DOUBLE}]|@\{{[\w/+-]*\}}|@(?!\{{))+")
_VARIABLE = re.compile(r"[$@](?:\{([^{}\n]*)\}|((?:\w+:)?\w+|[$?^]))")
_IN_DOUBLE = re.compile(rf"[^`${_DOUBLE}]+")
_IN_SINGLE = re.compile(rf"[^{_SINGLE}]+")
_HERE = re.compile(rf"@([{_SINGLE}{_DOUBLE}])[ \t]*\r?\n")
_IN_HERE = re.compile(r"[^`$]+")
_HERE_END, _HERE_END_DOUBLE = re.compile(rf"\n[{_SINGLE}]@"), re.compile(rf"\n[{_DOUBLE}]@")
_KEY = re.compile(r"[\w'\"-]+[ \t]*=")
_VERBATIM = re.compile(r"--%([^\n|]*)")
_REDIRECT = re.compile(r"([1-6*]?)(>>|>)(?:(&)([12]))?")
_NUMBER = re.compile(r"[+-]?\d[\d.]*(?:[kmgtp]b)?(?=[\s;|)}&,*/%<>+-]|$)", re.IGNORECASE)
_EXPRESSION = re.compile(rf"[{_SINGLE}{_DOUBLE}$(@\[{{!]|-not\b|-bnot\b|\+\+|--(?=\$)", re.IGNORECASE)
_CALL = re.compile(rf"&(?!&)|\.(?=[\s$({{{_SINGLE}{_DOUBLE}])")
_CONTROL = re.compile(
    r"(?:if|elseif|else[ \t]+if|while|until|for|foreach|switch|param|catch|trap|else|try|finally|do|begin|process|end"
    r"|dynamicparam|data|parallel|sequence)(?=[\s({\[])"
    r"|(?:function|filter|workflow|configuration|class|enum)[ \t]+[^\s({]+",
    re.IGNORECASE,
)
_OPENS = re.compile(r"\s*(?:-\w+\s*)?(?=[({\[])")
_RETURN = re.compile(r"(?:return|throw)(?=[\s;$('\"]|$)", re.IGNORECASE)
_EACH = re.compile(r"\$\w+[ \t]+in\b", re.IGNORECASE)
_MEMBER = re.compile(r"(?:::|\??\.)([A-Za-z_]\w*)(\(?)")
_TYPE = re.compile(r"\[[\w.,`\[\] ]{0,200}\]")
_OPERATOR = re.compile(r"[-+*/%?]{0,2}=(?!=)|\+|[^\s]")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b"}
_CONSTANTS = frozenset({"true", "false", "null", "_", "psitem"})


class PowerShellParser(Scanner):
    """Parses one PowerShell line or script."""

    def parse(self) -> Block:
        return self._block("")

    # --- blocks ---------------------------------------------------------------------------------

    def _block(self, closer: str) -> Block:
        """Statements up to a bracket, or to the end."""
        block: Block = []
        self.enter()
        while True:
            self._skip("\n;,&|")
            if self.at >= len(self.text):
                self.sound = self.sound and not closer
                break
            sign = self.text[self.at]
            if sign in ")}":
                self.at += 1
                if sign == closer:
                    break
                self.sound = False
            else:
                self._statement(block)
        self.depth -= 1
        return block

    def _skip(self, signs: str = "") -> None:
        """Go past blanks, comments and these signs. The `&` before a program is none of them."""
        text = self.text
        while self.at < len(text):
            if found := _GAP.match(text, self.at):
                self.at = found.end()
                if found[0] == "<#":
                    end = text.find("#>", self.at)
                    self.at = len(text) if end < 0 else end + 2
            elif text[self.at] in signs and not (text[self.at] == "&" and self._calls()):
                self.at += 1
            else:
                return
            self.budget.spend()

    def _calls(self) -> bool:
        """Is the `&` here the operator that calls a program, and not one that separates commands?"""
        return self.text[self.at + 1 : self.at + 2] not in ("&", "") and self.text[self.at - 1 : self.at] != "&"

    def _statement(self, block: Block) -> None:
        if found := _CONTROL.match(self.text, self.at):
            if self._control(found, block):
                return
        elif found := _RETURN.match(self.text, self.at) or _EACH.match(self.text, self.at):
            self.at = found.end()
        before = self.at
        pipeline: Pipeline = []
        self._pipeline(pipeline)
        if pipeline:
            block.append(pipeline)
        if self.at == before:  # a sign that means nothing here
            self.at += 1
            self.budget.spend()
            self.sound = False

    def _control(self, found: re.Match[str], block: Block) -> bool:
        """`if (...) {...}` and its like: what is in its brackets. False if the word is no keyword here."""
        opens = _OPENS.match(self.text, found.end())
        if opens is None:
            return False
        self.at = opens.end()
        while self.at < len(self.text) and self.text[self.at] in "({[":
            sign = self.text[self.at]
            if sign == "[":
                type_name = _TYPE.match(self.text, self.at)
                self.at = type_name.end() if type_name else self.at + 1
            else:
                self.at += 1
                block += self._block(")" if sign == "(" else "}")
            if sign == "{":
                break
            self._skip("\n")
        return True

    def _pipeline(self, pipeline: Pipeline) -> None:
        while True:
            self._skip("\n" if pipeline else "")
            if not self._element(pipeline):
                return
            self._skip()
            if not self.text.startswith("|", self.at) or self.text.startswith("||", self.at):
                return
            self.at += 1

    def _element(self, pipeline: Pipeline) -> bool:
        """One command or expression. `$x = ...` leads to what is assigned."""
        text = self.text
        if self.at >= len(text) or text[self.at] in "\n;|)}" or text.startswith("&&", self.at):
            return False
        simple = Simple()
        if found := _CALL.match(text, self.at):
            self.at = found.end()
            self._command(simple, [found[0]] if found[0] == "." else [])
        elif _EXPRESSION.match(text, self.at) or _NUMBER.match(text, self.at):
            name = self._expression(simple)
            if name:
                return self._assigned(name, simple, pipeline)
        else:
            self._command(simple, [])
        pipeline.append(simple)
        return True

    def _assigned(self, name: str, target: Simple, pipeline: Pipeline) -> bool:
        self.enter()
        self._skip("\n")
        after: Block = []
        if found := _CONTROL.match(self.text, self.at):
            self._control(found, after)
        else:
            first: Pipeline = []
            self._pipeline(first)
            after.append(first)
        self.depth -= 1
        elements = [simple for one in after for simple in one]
        if len(elements) == 1 and elements[0].value is not None:
            self.variables[name.casefold()] = elements[0].value
            elements[0].assignments[name] = elements[0].value
        else:
            self.variables.pop(name.casefold(), None)
        if not elements:
            elements.append(Simple(assignments={name: Word("", (f"${name}",))}))
        elements[0].nested += target.nested
        pipeline += elements
        return True

    # --- commands -------------------------------------------------------------------------------

    def _command(self, simple: Simple, words: list[str]) -> None:
        """The words of a command, up to its end."""
        simple.words = words
        text, listed = self.text, False
        while True:
            self._skip()
            if self.at >= len(text) or text[self.at] in "\n;|&)}":
                return
            self.budget.spend()
            if found := _REDIRECT.match(text, self.at):
                self._redirect(simple, found)
            elif text[self.at] == ",":
                self.at += 1
                listed = True
                self._skip("\n")
            elif found := _VERBATIM.match(text, self.at):
                words += found[1].split()
                self.at = found.end()
            else:
                if listed:
                    simple.listed.add(len(words))
                words.append(self._word(simple))
                listed = False

    def _redirect(self, simple: Simple, found: re.Match[str]) -> None:
        self.at = found.end()
        if found[3]:
            simple.redirects.append(Redirect(">&", found[4], found[1]))
            return
        self._skip()
        ends = self.at >= len(self.text) or self.text[self.at] in "\n;|&)}<>,"
        simple.redirects.append(Redirect(found[2], "" if ends else self._word(simple), found[1]))

    def _word(self, simple: Simple) -> str:
        """One word of a command: its pieces without quotes. Always takes at least one character."""
        text, start = self.text, self.at
        if found := _HERE.match(text, self.at):
            return self._here_string(found, simple)
        pieces: list[str] = []
        unknown: list[str] = []
        while self.at < len(text):
            piece = self._piece(simple, first=self.at == start)
            if piece is None:
                break
            pieces.append(piece)
            unknown += unknown_of(piece)
            self.budget.spend()
        if self.at == start:
            self.at += 1
            pieces.append(text[start])
            self.sound = False
        return joined(pieces, unknown)

    def _piece(self, simple: Simple, first: bool) -> str | None:
        """A piece of a word: plain characters, a string, a variable, or something in brackets. None where it ends."""
        text, sign = self.text, self.text[self.at]
        if sign in _SINGLE or sign in _DOUBLE:
            return self._string(simple)
        if sign == "`":  # before a letter it hides words: R`emove-Item
            self.at += 2
            return text[self.at - 1 : self.at]
        if sign == "(" or text.startswith(("$(", "@("), self.at):
            return self._nested(simple, "$(...)", 1 if sign == "(" else 2, ")")
        if first and (sign == "{" or text.startswith("@{", self.at)):
            return self._hash(simple) if sign == "@" else self._nested(simple, "{...}", 1, "}")
        if (sign == "$" or (sign == "@" and first)) and (found := _VARIABLE.match(text, self.at)):
            self.at = found.end()
            return self._variable(found)
        if found := _PLAIN.match(text, self.at):
            self.at = found.end()
            return found[0]
        if sign == "$":
            self.at += 1
            return sign
        return None

    def _nested(self, simple: Simple, sign: str, opening: int, closer: str) -> str:
        self.at += opening
        block = self._block(closer)
        simple.nested.append(Nested(sign, block))
        if sign == "$(...)" and len(block) == 1 and len(block[0]) == 1 and block[0][0].value is not None:
            return block[0][0].value
        return Word(sign, (sign,))

    def _hash(self, simple: Simple) -> str:
        """`@{name = value; ...}`: the names are no commands."""
        self.at += 2
        self.enter()
        block: Block = []
        while True:
            self._skip("\n;,&|)")
            if self.at >= len(self.text) or self.text[self.at] == "}":
                break
            found = _KEY.match(self.text, self.at)
            self.at = found.end() if found else self.at
            self._skip("\n=")
            if self.at < len(self.text) and self.text[self.at] not in "}":
                self._statement(block)
        self.sound = self.sound and self.at < len(self.text)
        self.at += 1
        self.depth -= 1
        simple.nested.append(Nested("$(...)", block))
        return Word("@{...}", ("@{...}",))

    def _variable(self, found: re.Match[str]) -> str:
        name = found[1] or found[2] or ""
        return found[0] if name.casefold() in _CONSTANTS else self.value_of(name, found[0])

    # --- strings --------------------------------------------------------------------------------

    def _string(self, simple: Simple) -> str:
        quotes = _SINGLE if self.text[self.at] in _SINGLE else _DOUBLE
        inside = _IN_SINGLE if quotes is _SINGLE else _IN_DOUBLE
        text, pieces, unknown = self.text, list[str](), list[str]()
        self.at += 1
        while self.at < len(text):
            self.budget.spend()
            sign = text[self.at]
            if sign in quotes:
                self.at += 1
                if text[self.at : self.at + 1] not in tuple(quotes):
                    return joined(pieces, unknown)
                pieces.append(sign)  # a doubled quote
                self.at += 1
            elif found := inside.match(text, self.at):
                pieces.append(found[0])
                self.at = found.end()
            else:
                piece = self._in_double(simple)
                pieces.append(piece)
                unknown += unknown_of(piece)
        self.sound = False
        return joined(pieces, unknown)

    def _in_double(self, simple: Simple) -> str:
        """A backtick, or a dollar sign, between double quotes."""
        text = self.text
        if text[self.at] == "`":
            self.at += 2
            return _ESCAPES.get(text[self.at - 1 : self.at], text[self.at - 1 : self.at])
        if text.startswith("$(", self.at):
            return self._nested(simple, "$(...)", 2, ")")
        if found := _VARIABLE.match(text, self.at):
            self.at = found.end()
            return self._variable(found)
        self.at += 1
        return "$"

    def _here_string(self, found: re.Match[str], simple: Simple) -> str:
        r"""`@'...'@` over lines. Of `@"..."@`, what is nested in it counts."""
        quotes = _SINGLE if found[1] in _SINGLE else _DOUBLE
        end = (_HERE_END if quotes is _SINGLE else _HERE_END_DOUBLE).search(self.text, found.end() - 1)
        body = self.text[found.end() : end.start() if end else len(self.text)].rstrip("\r")
        self.at = end.end() if end else len(self.text)
        self.sound = self.sound and end is not None
        if quotes is _SINGLE or not any(sign in body for sign in "$`"):
            return body
        inner = PowerShellParser(body, self.budget, self.variables, self.depth)
        pieces: list[str] = []
        while inner.at < len(body):
            self.budget.spend()
            plain = _IN_HERE.match(body, inner.at)
            pieces.append(plain[0] if plain else inner._in_double(simple))
            inner.at = plain.end() if plain else inner.at
        return joined(pieces, [one for piece in pieces for one in unknown_of(piece)])

    # --- expressions ----------------------------------------------------------------------------

    def _expression(self, simple: Simple) -> str:
        """A value, up to its end: its strings, its calls, and what is nested in it. Gives the name that is set."""
        text, start = self.text, self.at
        pieces: list[str] | None = []
        variable = head = ""
        while True:
            self._skip()
            if self.at >= len(text) or text[self.at] in "\n;|&)}":
                break
            self.budget.spend()
            sign, before = text[self.at], self.at
            if found := _REDIRECT.match(text, self.at):
                self._redirect(simple, found)
                continue
            if found := _HERE.match(text, self.at):
                piece: str | None = self._here_string(found, simple)
            elif sign in ".:?" and (found := _MEMBER.match(text, self.at)):
                piece = pieces = None
                head = self._member(found, simple, text[start : self.at], head)
            elif sign == "[" and (found := _TYPE.match(text, self.at)):
                piece, self.at = "", found.end()
                variable = variable if before == start else ""
            elif sign in "$@({`" or sign in _SINGLE or sign in _DOUBLE:
                piece = self._piece(simple, first=True)
                if sign == "$" and not variable and (found := _VARIABLE.match(text, before)):
                    variable = found[1] or found[2]
            else:
                operator = _OPERATOR.match(text, self.at)
                self.at = operator.end() if operator else self.at + 1
                if operator and operator[0].endswith("="):
                    return variable or "_"
                pieces = pieces if sign == "+" else None
                continue
            if piece is None and self.at == before:
                self.at += 1
            elif piece:
                simple.literals.append(piece)
            if piece is None:
                pieces = None
            elif pieces is not None:
                pieces.append(piece)
        self._conclude(simple, pieces, head)
        return ""

    def _member(self, found: re.Match[str], simple: Simple, before: str, head: str) -> str:
        """`.Name`, `::Name(...)`: a call names the expression. The call of a type's own method is preferred."""
        self.at = found.end()
        if not found[2]:
            return head
        block = self._block(")")
        simple.nested.append(Nested("$(...)", block))
        simple.literals += [text for pipeline in block for one in pipeline if not one.words for text in one.literals]
        if head.startswith("["):
            return head
        static = _TYPE.fullmatch(before.strip()) if found[0].startswith("::") else None
        return f"{before.strip()}::{found[1]}" if static else f".{found[1]}"

    def _conclude(self, simple: Simple, pieces: list[str] | None, head: str) -> None:
        if head:
            simple.words = [head, *simple.literals]
        elif pieces:
            simple.value = joined(pieces, [one for piece in pieces for one in unknown_of(piece)])
