"""The syntax of CEL as rules use it: an expression becomes a tree of nodes.

What this parser does not understand is refused, because its cost could not be bounded. It is more
lenient than CEL in places: the library that evaluates an expression reads it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from ..errors import FairleadError

DEPTH = 50
"""How deep an expression, or a value that it reads, may be. The library recurses: a stack overflow ends the process."""
MACROS = frozenset({"all", "exists", "exists_one", "filter", "map"})
_KEYWORDS = frozenset({"false", "null", "true"})

_RAW = r"""(?:[bB]?[rR]|[rR][bB])(?:\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}|"[^"\n]*"|'[^'\n]*')"""
_PLAIN = (
    r"""[bB]?(?:\"{3}(?:\\[\s\S]|[^\\])*?\"{3}|'{3}(?:\\[\s\S]|[^\\])*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
)
_NUMBER = r"0[xX][0-9a-fA-F]+[uU]?|(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?[uU]?"
_TOKEN = re.compile(
    rf"(?P<string>{_RAW}|{_PLAIN})|(?P<name>[A-Za-z_]\w*)|(?P<number>{_NUMBER})|(?P<comment>//[^\n]*)"
    r"|(?P<operator>&&|\|\||[=!<>]=|\S)",
    re.ASCII,
)
_PRECEDENCE = {
    "||": 1, "&&": 2, "==": 3, "!=": 3, "<": 3, "<=": 3, ">": 3, ">=": 3, "in": 3, "+": 4, "-": 4, "*": 5, "/": 5,
    "%": 5,
}  # fmt: skip

NodeKind = Literal[
    "literal", "name", "select", "has", "index", "call", "method", "macro", "list", "map", "unary", "binary", "choice"
]


class BadRule(FairleadError, ValueError):
    """A rule that is wrong for every step."""


class ExpressionNode(NamedTuple):
    """A part of an expression.

    The first part of a method or a macro is what it is called on; the second of a macro is its variable.
    """

    kind: NodeKind
    text: str  # the literal, name, field, function or operator
    parts: tuple[ExpressionNode, ...]
    start: int
    at: int  # where `text` stands, or the dot before a field
    end: int
    depth: int


class _ExpressionToken(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


def parse(text: str) -> ExpressionNode:
    """Returns the tree of an expression. Raises `BadRule` where it is no expression."""
    parser = _RuleParser(text)
    tree = parser.expression()
    if parser.token.kind != "end":
        raise parser.error("an operator, or the end,")
    return tree


class NodePlace(NamedTuple):
    """A node where it stands."""

    node: ExpressionNode
    parent: ExpressionNode | None
    bound: frozenset[str]  # the variables of the macros it stands in
    macros: int  # how many those are


def walk(
    node: ExpressionNode, parent: ExpressionNode | None = None, bound: frozenset[str] = frozenset(), macros: int = 0
) -> Iterator[NodePlace]:
    """Yields every node of a tree, except for the variables of macros where they are declared."""
    yield NodePlace(node, parent, bound, macros)
    if node.kind != "macro":
        for part in node.parts:
            yield from walk(part, node, bound, macros)
        return
    called_on, variable, *bodies = node.parts
    yield from walk(called_on, node, bound, macros)
    for body in bodies:
        yield from walk(body, node, bound | {variable.text}, macros + 1)


class _RuleParser:
    """A recursive descent over the tokens; binary operators by precedence."""

    def __init__(self, text: str) -> None:
        self._tokens = [
            _ExpressionToken(match.lastgroup or "", match[0], match.start(), match.end())
            for match in _TOKEN.finditer(text)
            if match.lastgroup != "comment"
        ]
        self._tokens.append(_ExpressionToken("end", "", len(text), len(text)))
        self._next = 0
        self._open = 0  # brackets

    @property
    def token(self) -> _ExpressionToken:
        return self._tokens[self._next]

    def expression(self) -> ExpressionNode:
        condition = self._operation(1)
        if not self._takes("?"):
            return condition
        yes = self._operation(1)
        self._expect(":")
        self._nest(1)  # `a ? b : c ? d : e` nests to the right
        no = self.expression()
        self._nest(-1)
        return self._node("choice", "?", (condition, yes, no), condition.start, condition.end)

    def error(self, expected: str) -> BadRule:
        found = repr(self.token.text) if self.token.text else "its end"
        where = f"syntax error at character {self.token.start + 1} of the expression"
        return BadRule(f"{where}: {expected} belongs here, not {found}")

    def _operation(self, lowest: int) -> ExpressionNode:
        left = self._unary()
        while (precedence := self._precedence()) >= lowest:
            operator = self._take()
            right = self._operation(precedence + 1)
            parts: tuple[ExpressionNode, ...] = (left, right)
            if operator.text in ("&&", "||") and (left.kind, left.text) == ("binary", operator.text):
                parts = (*left.parts, right)  # which CEL balances, so a long one is not a deep one
            left = self._node("binary", operator.text, parts, left.start, operator.start)
        return left

    def _precedence(self) -> int:
        return _PRECEDENCE.get(self.token.text, 0) if self.token.kind in ("operator", "name") else 0

    def _unary(self) -> ExpressionNode:
        first = self.token
        while self.token.text in ("!", "-"):
            self._take()
        operand = self._member()
        if first.text not in ("!", "-"):
            return operand
        return self._node("unary", first.text, (operand,), first.start, first.start)

    def _member(self) -> ExpressionNode:
        node = self._primary()
        while self.token.text in (".", "[") and self.token.kind == "operator":
            dot = self._take()
            if dot.text == "[":
                index = self._nested()
                self._expect("]")
                node = self._node("index", "[", (node, index), node.start, node.end)
                continue
            name = self._name()
            if self.token.text != "(":
                node = self._node("select", name.text, (node,), node.start, dot.start)
            elif name.text in MACROS:
                node = self._macro(node, name)
            else:
                node = self._node("method", name.text, (node, *self._arguments()), node.start, name.start)
        return node

    def _macro(self, called_on: ExpressionNode, name: _ExpressionToken) -> ExpressionNode:
        variable, *bodies = self._arguments() or (called_on,)
        if variable.kind != "name" or len(bodies) not in ((1, 2) if name.text == "map" else (1,)):
            raise BadRule(f"{name.text} is called as x.{name.text}(name, ...)")
        return self._node("macro", name.text, (called_on, variable, *bodies), called_on.start, name.start)

    def _primary(self) -> ExpressionNode:
        token = self.token
        if token.kind in ("string", "number") or (token.kind == "name" and token.text in _KEYWORDS):
            self._take()
            return self._node("literal", token.text, (), token.start, token.start)
        if token.kind == "name":
            name = self._name()
            if self.token.text != "(":
                return self._node("name", name.text, (), name.start, name.start)
            kind: NodeKind = "has" if name.text == "has" else "call"
            return self._node(kind, name.text, self._arguments(), name.start, name.start)
        if self._takes("("):
            inner = self._nested()
            self._expect(")")
            return inner
        if self._takes("["):
            return self._node("list", "[", self._items("]"), token.start, token.start)
        if self._takes("{"):
            return self._node("map", "{", self._items("}"), token.start, token.start)
        if token.text == "." and self._tokens[self._next + 1].kind == "name":
            raise BadRule(f"a name does not begin with a dot: .{self._tokens[self._next + 1].text}")
        raise self.error("a value")

    def _name(self) -> _ExpressionToken:
        if self.token.kind != "name" or self.token.text == "in":
            raise self.error("a name")
        return self._take()

    def _arguments(self) -> tuple[ExpressionNode, ...]:
        self._expect("(")
        arguments: list[ExpressionNode] = []
        while self.token.text != ")" or arguments:
            arguments.append(self._nested())
            if not self._takes(","):
                break
        self._expect(")")
        return tuple(arguments)

    def _items(self, closing: str) -> tuple[ExpressionNode, ...]:
        """The items of a list, or the keys and values of a map; a comma may follow the last."""
        items: list[ExpressionNode] = []
        while self.token.text != closing:
            items.append(self._nested())
            if closing == "}":
                self._expect(":")
                items.append(self._nested())
            if not self._takes(","):
                break
        self._expect(closing)
        return tuple(items)

    def _nested(self) -> ExpressionNode:
        self._nest(1)
        node = self.expression()
        self._nest(-1)
        return node

    def _nest(self, levels: int) -> None:
        self._open += levels
        if self._open > DEPTH:
            raise _too_deep()

    def _take(self) -> _ExpressionToken:
        token = self.token
        if token.kind != "end":
            self._next += 1
        return token

    def _takes(self, text: str) -> bool:
        if self.token.kind != "operator" or self.token.text != text:
            return False
        self._next += 1
        return True

    def _expect(self, text: str) -> None:
        if not self._takes(text):
            raise self.error(repr(text))

    def _node(
        self, kind: NodeKind, text: str, parts: tuple[ExpressionNode, ...], start: int, at: int
    ) -> ExpressionNode:
        depth = 1 + max((part.depth for part in parts), default=0)
        if depth > DEPTH:
            raise _too_deep()
        return ExpressionNode(kind, text, parts, start, at, self._tokens[self._next - 1].end, depth)


def _too_deep() -> BadRule:
    return BadRule(f"an expression may be at most {DEPTH} operations deep: split it into several rules")
