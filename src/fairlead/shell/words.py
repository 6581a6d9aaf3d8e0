"""The words of a command after expansion: quotes removed, variables put in, braces multiplied.

Only what the line itself says is known. A word that also depends on something else (an unknown variable, the output
of a program, the files of a folder) is a `Word`: its text is as far as it is known, and `unknown` says what is not.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Self, Union

from .syntax import Arithmetic, Budget, Part, Substitution, Text, Variable
from .syntax import Word as Tree

LONGEST = 64 << 10
"""Characters of a value. Variables can double each other."""
MANY = 256
"""Words that braces may become."""
_GLOB = re.compile(r"[*?\[]")
_BRACES = re.compile(r"\{([^{}]+)\}")
_RANGE = re.compile(r"(-?\d+|[a-zA-Z])\.\.(-?\d+|[a-zA-Z])(?:\.\.(-?\d+))?")
_HELD = re.compile("[\ue000-\uf8ff]")
_FIRST_HELD = 0xE000
_BLANKS = re.compile(r"[ \t\n]+")
_NUMBERS = re.compile(r"[\d\s+\-*/%()<>&|^~]{1,80}")
_OPERATIONS: dict[type[ast.AST], Callable[..., int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Invert: operator.invert,
}  # fmt: skip


class Word(str):
    """A word that is not fully known: its text as far as it is, and what it also depends on."""

    __slots__ = ("unknown",)

    def __new__(cls, text: str, unknown: Iterable[str] = ()) -> Self:
        word = super().__new__(cls, text)
        word.unknown = tuple(dict.fromkeys(unknown))
        return word

    unknown: tuple[str, ...]
    """Variables as `$NAME`, substitutions as `$(...)`, and `*` for names of files."""


Value = Union[str, list[str], None]
"""Of a variable: a text, the items of an array, or not known."""


def unknown_of(text: str) -> tuple[str, ...]:
    return text.unknown if isinstance(text, Word) else ()


def is_exact(text: str) -> bool:
    """Is this precisely what the program is given? Names of files that a pattern stands for may differ."""
    return type(text) is str


def is_known(text: str) -> bool:
    """Is all of it on the line? A pattern for names of files is, and `{}` for those that `find` comes upon."""
    return type(text) is str or unknown_of(text) in (("*",), ("{}",))


class Expander:
    """Expands words with the variables of a line."""

    def __init__(self, variables: dict[str, Value], budget: Budget, output_of: Callable[[Substitution], Value]) -> None:
        self.variables, self.budget, self._output_of = variables, budget, output_of
        self.arguments: list[str] | None = None
        self.name = "sh"
        self.folder = ""

    def fields(self, word: Tree) -> list[str]:
        """The words that one word of the line becomes."""
        if isinstance(word, str):
            if "{" in word:
                return [self._globbed(text) for text in multiplied(word, self.budget)]
            return [self._globbed(word)]
        if any(type(part) is Text and not part.quoted and "{" in part.text for part in word):
            return self._multiplied(word)
        return self._joined(word)

    def text(self, parts: Tree) -> str:
        """One text, not split at blanks: a value, the text of a document, the target of a redirection."""
        if isinstance(parts, str):
            return parts
        if len(parts) == 1 and type(parts[0]) is Text:
            return parts[0].text
        pieces, unknown = [], list[str]()
        for part in parts:
            value = self._value(part)
            text = " ".join(value) if isinstance(value, list) else value
            unknown += unknown_of(text)
            pieces.append(text)
        return self._made(pieces, unknown)

    def _globbed(self, text: str) -> str:
        return Word(text, ("*",)) if _GLOB.search(text) and text not in ("[", "[[") else text

    def _multiplied(self, word: Sequence[Part]) -> list[str]:
        """Braces in a word of parts: each part that is no plain text is held by one character meanwhile."""
        held: list[Part] = []
        template = ""
        for part in word:
            if type(part) is Text and not part.quoted:
                template += _HELD.sub("", part.text)
            elif len(held) < 6000:
                template += chr(_FIRST_HELD + len(held))
                held.append(part)
        fields: list[str] = []
        for text in multiplied(template, self.budget):
            pieces = filter(None, re.split("([\ue000-\uf8ff])", text))
            fields += self._joined(
                [held[ord(one) - _FIRST_HELD] if _HELD.match(one) else Text(one, False) for one in pieces]
            )
        return fields

    def _joined(self, word: Sequence[Part]) -> list[str]:
        """The fields of one word: a value that is not quoted is split at blanks."""
        fields: list[str] = []
        pieces: list[str] = []
        unknown: list[str] = []
        begun = False
        for part in word:
            if type(part) is Text:
                pieces.append(part.text)
                begun = begun or part.quoted or bool(part.text)
                if not part.quoted and _GLOB.search(part.text):
                    unknown.append("*")
                continue
            value = self._value(part)
            quoted = getattr(part, "quoted", False)
            if isinstance(value, list):
                items: list[str] = value
            elif quoted or unknown_of(value):
                items = [value]
            else:
                items = _BLANKS.split(value)
                if _GLOB.search(value):
                    items = [self._globbed(item) for item in items]
            begun = begun or (quoted and not isinstance(value, list))
            for number, item in enumerate(items):
                if number and (begun or pieces):
                    fields.append(self._made(pieces, unknown))
                    pieces, unknown, begun = [], [], False
                if item:
                    begun = True
                    pieces.append(item)
                    unknown += unknown_of(item)
        if begun:
            fields.append(self._made(pieces, unknown))
        return fields

    def _made(self, pieces: Sequence[str], unknown: Sequence[str]) -> str:
        text = "".join(pieces)
        if len(text) > LONGEST:
            text, unknown = text[:LONGEST], [*unknown, "..."]
        return Word(text, unknown) if unknown else str(text)

    # --- values ---------------------------------------------------------------------------------

    def _value(self, part: Part) -> str | list[str]:
        if isinstance(part, Text):
            return part.text
        self.budget.spend()
        value: Value
        if isinstance(part, Variable):
            value = self.value_of(part)
        elif isinstance(part, Arithmetic):
            value = self._calculated(part.text)
        else:
            value = self._output_of(part)
            if value is None:
                return "" if part.sign == "quiet" else Word(part.source, ("$(...)",))
        return Word(part.source, (part.source[:80],)) if value is None else value

    def value_of(self, part: Variable) -> Value:
        """What a variable gives on this line, after its operator."""
        value = self._raw(part.name)
        how = part.operator
        if not how:
            return value
        if how[0] == "!":
            named = value if isinstance(value, str) and how == "!" else None
            return self._raw(named) if named else None
        if how in ("#", "#?") and not part.argument:
            return None if value is None else str(len(value))
        if how in (":-", "-", ":=", "=", ":+", "+", ":?", "?"):
            return self._or_else(part, value, how[-1])
        if not isinstance(value, str) or isinstance(value, Word) or len(value) > 256:
            return None
        argument = self.text(part.argument)
        return None if unknown_of(argument) else _edited(value, how, argument)

    def _or_else(self, part: Variable, value: Value, how: str) -> Value:
        """`${x:-default}` and its kin. Of a variable that the line does not set, the default is the best guess."""
        if how == "?":
            return value
        if how == "+":
            given = self.text(part.argument)
            return given if value else "" if value == "" else Word(given, (f"${part.name}", *unknown_of(given)))
        if value:
            return value
        given = self.text(part.argument)
        if value is None:
            given = Word(given, (f"${part.name}", *unknown_of(given)))
        if how == "=":
            self.variables[part.name] = given
        return given

    def _raw(self, name: str) -> Value:
        if "[" in name:
            return self._item(name)
        if name in ("@", "*"):
            return self.arguments
        if name.isdigit():
            at = int(name[:4])
            if at == 0:
                return self.name
            if self.arguments is None:
                return None
            return self.arguments[at - 1] if at <= len(self.arguments) else ""
        if name == "#":
            return None if self.arguments is None else str(len(self.arguments))
        if name == "PWD":
            return self.folder or None
        value = self.variables.get(name)
        return (value[0] if value else "") if isinstance(value, list) else value

    def _item(self, name: str) -> Value:
        """`a[@]`, `a[1]`"""
        array, _, index = name[:-1].partition("[")
        value = self.variables.get(array)
        items = value if isinstance(value, list) else None if value is None else [value]
        if items is None or index in ("@", "*"):
            return items
        if not index.lstrip("-").isdigit():
            return None
        at = int(index[:6])
        return items[at] if -len(items) <= at < len(items) else ""

    def _calculated(self, text: str) -> str | None:
        """A whole number, if the expression consists of numbers and known variables."""
        known = re.sub(r"\$?\{?\b([A-Za-z_]\w*)\b\}?", lambda m: str(self.variables.get(m[1]) or m[0]), text)
        if not _NUMBERS.fullmatch(known):
            return None
        try:
            tree = ast.parse(known.strip().replace("/", "//"), mode="eval")
            number = _number(tree.body)
        except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
            return None
        return str(number)


def multiplied(text: str, budget: Budget) -> list[str]:
    """What `a{b,c}` and `{1..3}` become."""
    done: list[str] = []
    waiting = [text]
    while waiting:
        one = waiting.pop()
        budget.spend(1 + len(one) // 256)
        braces, choices = None, None
        if len(done) + len(waiting) < MANY:
            for braces in _BRACES.finditer(one):
                if (choices := _choices(braces[1])) is not None:
                    break
        if braces is None or choices is None:
            done.append(one)
        else:
            head, tail = one[: braces.start()], one[braces.end() :]
            waiting += [head + choice + tail for choice in reversed(choices)]
    return done


def _choices(inside: str) -> list[str] | None:
    if "," in inside:
        return inside.split(",")
    found = _RANGE.fullmatch(inside)
    if found is None:
        return None
    numbers = [found[1], found[2]]
    try:
        first, last = (int(number) if number.lstrip("-").isdigit() else ord(number) for number in numbers)
    except ValueError:
        return None
    step = abs(int(found[3] or 1)) or 1
    if abs(last - first) // step >= MANY:
        return None
    values = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
    return [str(one) if numbers[0].lstrip("-").isdigit() else chr(one) for one in values]


def _number(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return _bounded(node.value)
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATIONS:
        return _bounded(_OPERATIONS[type(node.op)](_number(node.operand)))
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _bounded(_OPERATIONS[type(node.op)](_number(node.left), _number(node.right)))
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.LShift, ast.RShift)):
        left, right = _number(node.left), _number(node.right)
        if 0 <= right < 64:
            return _bounded(left << right if isinstance(node.op, ast.LShift) else left >> right)
    raise ValueError(ast.dump(node))


def _bounded(number: int) -> int:
    if abs(number) >= 1 << 63:
        raise ValueError(number)
    return number


def _edited(value: str, how: str, argument: str) -> str | None:
    """`${x#a}`, `${x%a}`, `${x/a/b}`, `${x:1:2}`, `${x^^}`"""
    if how in ("#", "##", "%", "%%"):
        return _trimmed(value, how, argument)
    if how in ("/", "//"):
        old, _, new = argument.partition("/")
        if _GLOB.search(old) or not old:
            return None
        return value.replace(old, new, -1 if how == "//" else 1)
    if how == ":":
        return _cut(value, argument)
    if argument:
        return None
    cases: dict[str, Callable[[str], str]] = {
        "^^": str.upper, ",,": str.lower, "^": lambda s: s[:1].upper() + s[1:], ",": lambda s: s[:1].lower() + s[1:],
    }  # fmt: skip
    return cases[how](value) if how in cases else None


def _trimmed(value: str, how: str, pattern: str) -> str | None:
    if "[" in pattern:
        return None
    expression = re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)
    lengths = range(len(value) + 1) if len(how) == 1 else range(len(value), -1, -1)
    for length in lengths:
        part = value[:length] if how[0] == "#" else value[len(value) - length :]
        if expression.fullmatch(part):
            return value[length:] if how[0] == "#" else value[: len(value) - length]
    return value


def _cut(value: str, argument: str) -> str | None:
    found = re.fullmatch(r" ?(-?\d{1,6})(?::(-?\d{1,6}))?", argument)
    if found is None:
        return None
    begin = int(found[1])
    begin = max(len(value) + begin, 0) if begin < 0 else begin
    if found[2] is None:
        return value[begin:]
    length = int(found[2])
    return value[begin : begin + length] if length >= 0 else value[begin:length]
