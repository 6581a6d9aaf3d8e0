"""Arithmetic of a shell: `$((1 + x))`, `((x++))`, `let x=1`, with C's operators on numbers of 64 bits.

An expression that depends on something that the line does not say raises `NotKnown`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_TOKEN = re.compile(
    r"\s*(?:(\d+#[0-9a-zA-Z@_]+|0[xX][0-9a-fA-F]+|\d+)|([A-Za-z_]\w*)"
    r"|(<<=|>>=|\*\*|\+\+|--|&&|\|\||<<|>>|<=|>=|==|!=|[-+*/%&^|]=|[-+*/%&|^~!<>()=?:,]))"
)
_BLANK = re.compile(r"\s*\Z")
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"), ("+", "-"), ("*", "/", "%"),
)  # fmt: skip
_ASSIGNS = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="})
_LONGEST = 400
_DEPTH = 24


class NotKnown(Exception):
    """Only the shell that runs the line knows the value, or the expression is none."""


def calculate(text: str, get: Callable[[str], str | None], put: Callable[[str, str], None]) -> int:
    """The value of an expression. `get` gives variables (None: not known), `put` takes those that it sets."""
    return _ArithmeticExpression(text, get, put, 0).whole()


class _ArithmeticExpression:
    def __init__(
        self, text: str, get: Callable[[str], str | None], put: Callable[[str, str], None], depth: int
    ) -> None:
        if len(text) > _LONGEST or depth > _DEPTH:
            raise NotKnown
        self.get, self.put, self.depth = get, put, depth
        self.tokens: list[tuple[str, str]] = []
        self.at = 0
        self.idle = 0  # above 0 in what `&&`, `||` and `?:` leave out
        self.nested = 0
        position = 0
        while not _BLANK.match(text, position):
            found = _TOKEN.match(text, position)
            if found is None:
                raise NotKnown
            self.tokens.append(("number" if found[1] else "name" if found[2] else "sign", found[0].strip()))
            position = found.end()

    def whole(self) -> int:
        if not self.tokens:
            return 0
        value = self.comma()
        if self.at < len(self.tokens):
            raise NotKnown
        return value

    def sign(self, *signs: str) -> str:
        """Take the next token if it is one of these."""
        if self.at < len(self.tokens) and self.tokens[self.at][1] in signs:
            self.at += 1
            return self.tokens[self.at - 1][1]
        return ""

    def comma(self) -> int:
        value = self.assignment()
        while self.sign(","):
            value = self.assignment()
        return value

    def assignment(self) -> int:
        if self.at + 1 < len(self.tokens) and self.tokens[self.at][0] == "name":
            (_, name), (_, sign) = self.tokens[self.at : self.at + 2]
            if sign in _ASSIGNS:
                self.at += 2
                old = 0 if sign == "=" else self.load(name)
                value = self.assignment()
                return self.store(name, value if sign == "=" else _apply(sign[:-1], old, value))
        return self.choice()

    def choice(self) -> int:
        value = self.either()
        if not self.sign("?"):
            return value
        self.idle += not value
        first = self.assignment()
        self.idle += bool(value) - (not value)
        if not self.sign(":"):
            raise NotKnown
        second = self.choice()
        self.idle -= bool(value)
        return first if value else second

    def either(self) -> int:
        value = self.both()
        while self.sign("||"):
            self.idle += bool(value)
            other = self.both()
            self.idle -= bool(value)
            value = int(bool(value) or bool(other))
        return value

    def both(self) -> int:
        value = self.level(0)
        while self.sign("&&"):
            self.idle += not value
            other = self.level(0)
            self.idle -= not value
            value = int(bool(value) and bool(other))
        return value

    def level(self, level: int) -> int:
        if level == len(_LEVELS):
            return self.power()
        value = self.level(level + 1)
        while sign := self.sign(*_LEVELS[level]):
            other = self.level(level + 1)
            value = 0 if self.idle and sign in "/%" else _apply(sign, value, other)
        return value

    def power(self) -> int:
        value = self.unary()
        if self.sign("**"):
            other = self.power()
            if not 0 <= other < 64:
                raise NotKnown
            value = _wrapped(value**other)
        return value

    def unary(self) -> int:
        self.nested += 1
        if self.nested > _DEPTH:
            raise NotKnown
        if sign := self.sign("!", "~", "+", "-"):
            value = self.unary()
            value = {"!": int(not value), "~": ~value, "+": value, "-": -value}[sign]
        elif sign := self.sign("++", "--"):
            name = self.name()
            value = self.store(name, self.load(name) + (1 if sign == "++" else -1))
        else:
            value = self.primary()
        self.nested -= 1
        return _wrapped(value)

    def primary(self) -> int:
        if self.sign("("):
            value = self.comma()
            if not self.sign(")"):
                raise NotKnown
            return value
        if self.at >= len(self.tokens):
            raise NotKnown
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return _number(text)
        if kind != "name":
            raise NotKnown
        value = self.load(text)
        if sign := self.sign("++", "--"):
            self.store(text, value + (1 if sign == "++" else -1))
        return value

    def name(self) -> str:
        if self.at >= len(self.tokens) or self.tokens[self.at][0] != "name":
            raise NotKnown
        self.at += 1
        return self.tokens[self.at - 1][1]

    def load(self, name: str) -> int:
        """The value of a variable, which may itself be an expression."""
        text = self.get(name)
        if text is None:
            raise NotKnown
        if text.isascii() and text.isdigit() and text[0] != "0":
            return _number(text)
        return _ArithmeticExpression(text, self.get, self.put, self.depth + 1).whole()

    def store(self, name: str, value: int) -> int:
        value = _wrapped(value)
        if not self.idle:
            self.put(name, str(value))
        return value


def _number(text: str) -> int:
    base, sign, digits = text.partition("#")
    try:
        if sign:
            return _wrapped(int(digits, int(base)) if int(base) <= 36 else _not_known())
        if text[:2] in ("0x", "0X"):
            return _wrapped(int(text, 16))
        return _wrapped(int(text, 8 if text[0] == "0" else 10))
    except ValueError:
        raise NotKnown from None


def _not_known() -> int:
    raise NotKnown


def _wrapped(number: int) -> int:
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def _apply(sign: str, left: int, right: int) -> int:
    if sign in ("/", "%"):
        if right == 0:
            raise NotKnown
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return _wrapped(quotient if sign == "/" else left - quotient * right)
    if sign in ("<<", ">>"):
        shift = right & 63
        return _wrapped(left << shift if sign == "<<" else left >> shift)
    return _wrapped(int(_OPERATIONS[sign](left, right)))


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "|": lambda a, b: a | b, "^": lambda a, b: a ^ b, "&": lambda a, b: a & b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b,
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
}  # fmt: skip
