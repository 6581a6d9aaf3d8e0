"""Expressions of every kind that rules have, at random and of the right types, and values for them to read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Choose = Callable[[Sequence[Any]], Any]
"""Picks one of several: `random.choice`, or a draw of hypothesis."""

ELEMENTS = {"ints": "int", "texts": "text", "maps": "map", "lists": "ints", "map": "text"}
"""What a macro over each type comes to."""


def values(size: int, flavour: int = 0) -> dict[str, Any]:
    """Arguments for expressions, larger or smaller: many small values, some large ones, long texts, or long lists."""
    small = {"i": 7, "t": "ab", "s": "b", "l": [1], "w": ["a"], "d": [{"k": "v"}], "m": {"k": "v"}, "n": [[1]]}
    return (
        {
            "i": 7, "t": "a" * size, "s": "a" * (size // 2) + "b", "l": list(range(size)), "w": ["ab"] * size,
            "d": [{"k": "v", "n": 1}] * size, "m": {f"k{i}": i for i in range(size)}, "n": [[1] * 8] * (size // 8 + 1),
        },
        {
            "i": 7, "t": "é" * size, "s": "x", "l": [1] * (size // 2 + 1), "w": ["é" * 50] * (size // 20 + 1),
            "d": [{"k": "v" * 100}] * (size // 20 + 1), "m": {f"k{i}": {"a": i} for i in range(size // 4 + 1)},
            "n": [[1] * 30] * (size // 30 + 1),
        },
        small | {"t": "ab" * (size * 50), "s": "ab" * size + "b", "w": ["a" * size] * 10},
        small | {"l": list(range(size)), "n": [list(range(size))] * 3, "d": [{"k": "v" * size}] + [{"k": "v"}] * size},
    )[flavour]  # fmt: skip


class Expressions:
    """A grammar that is walked at random. `make("bool", 4)` is an expression of this type and depth."""

    def __init__(self, choose: Choose) -> None:
        self._choose = choose
        self._variables: list[tuple[str, str]] = []
        self._made = 0

    def make(self, kind: str, depth: int) -> str:
        bound = [name for name, is_a in self._variables if is_a == kind]
        if bound and self._choose([True, True, False]):
            return self._choose(bound)
        if depth <= 0:
            return self._choose(LEAVES[kind])
        form = self._choose(FORMS[kind] + (MACROS[kind] if len(self._variables) < 2 else []) + LEAVES[kind][:1])
        return self._fill(form, depth - 1)

    def _fill(self, form: str, depth: int) -> str:
        """`<int>` becomes an expression; in `<range>.all(x, <bool>)` the variable is bound in what follows."""
        filled, bound = "", 0
        while "<" in form:
            before, _, rest = form.partition("<")
            kind, closed, rest = rest.partition(">")
            if not closed or not kind.isalpha():
                filled, form = f"{filled}{before}<", form[len(before) + 1 :]
                continue
            if kind == "range":
                over = self._choose(list(ELEMENTS))
                made = self.make(over, depth)
                self._made += 1
                self._variables.append((f"x{self._made}", ELEMENTS[over]))
                bound += 1
                rest = rest.replace("(x,", f"(x{self._made},", 1)
            else:
                made = self.make(kind, depth)
            filled, form = filled + before + made, rest
        if bound:
            del self._variables[-bound:]
        return filled + form


LEAVES = {
    "bool": ["true", "false"],
    "int": ["args.i", "1", "args.l[0]"],
    "text": ["args.t", "args.s", '"ab"', 'args["t"]'],
    "ints": ["args.l", "[1, 2, 3]", "args.n[0]"],
    "texts": ["args.w", '["a", "b"]'],
    "map": ["args.m", "args", "args.d[0]", '{"a": "b"}'],
    "maps": ["args.d", "[args.m]"],
    "lists": ["args.n", "[args.l, [1]]"],
}
FORMS = {
    "bool": [
        "(<bool> || <bool>)", "(<bool> && <bool>)", "!(<bool>)", "(<bool> ? <bool> : <bool>)", "<text> == <text>",
        "<text> < <text>", "<text>.contains(<text>)", "<text>.startsWith(<text>)", "<int> == <int>", "<int> >= <int>",
        "<ints> == <ints>", "<texts> != <texts>", "<int> in <ints>", "<text> in <texts>", "<text> in <map>",
        "<map> == <map>", "<maps> == <maps>", "has(<map>.zz)", "bytes(<text>) == bytes(<text>)",
        'dyn(<text>).matches("a+b$|é")', "optional.of(<ints>).orValue(<ints>) == <ints>",
    ],
    "int": ["(<int> + <int>)", "size(<text>)", "<texts>.size()", "size(<map>)", "<ints>[0]", "(<bool> ? <int> : 1)"],
    "text": [
        "(<text> + <text>)", "string(<int>)", "string(<text>)", "(<bool> ? <text> : <text>)", "<texts>[0]",
        "[<text>, <text>][1]",
    ],
    "ints": ["(<ints> + <ints>)", "[<int>, <int>]", "(<bool> ? <ints> : <ints>)", "<lists>[0]"],
    "texts": ["(<texts> + <texts>)", "[<text>, <text>]", "(<bool> ? <texts> : <texts>)"],
    "map": ['{"a": <text>, "b": <ints>}', '{"a": <map>}.a', "<maps>[0]"],
    "maps": ["(<maps> + <maps>)", "[<map>, <map>]"],
    "lists": ["(<lists> + <lists>)", "[<ints>]"],
}  # fmt: skip
MACROS = {
    "bool": ["<range>.all(x, <bool> || true)", "<range>.exists(x, <bool> && false)", "<range>.exists_one(x, <bool>)"],
    "int": ["<range>.map(x, <int>).size()"],
    "text": [],
    "ints": ["<range>.map(x, <int>)", "<range>.map(x, <bool>, <int>)"],
    "texts": ["<range>.map(x, <text>)", "<range>.map(x, <text>).filter(y, true)"],
    "map": [],
    "maps": ["<range>.map(x, <map>)"],
    "lists": ["<range>.map(x, <ints>)"],
}
