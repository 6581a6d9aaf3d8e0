"""What evaluating an expression may cost, bounded before it begins.

An evaluation cannot be interrupted: the library holds the interpreter until it is done. So the cost
is estimated from the expression and the sizes of the values it reads, and is never less than what it
really is. The unit is a nanosecond of the machine that the constants below were measured on.

The estimate follows what the library does: an operation copies its operands, a macro each element
that it comes to, and `map` and `filter` copy the list they build once for every element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from .syntax import DEPTH, ExpressionNode

BUDGET = 100e6
"""What one evaluation may cost."""

READ, READ_BYTE = 1_800.0, 3.0  # a value of the step becomes one of the library
EVALUATE, LOOP = 100.0, 250.0  # an operation, an element of a macro
COPY, COPY_BYTE = 150.0, 0.5
COMPARE = 40.0
CALL, RETURN, RETURN_BYTE = 2_500.0, 250.0, 1.5  # a function of ours, which is given Python values
EXTRA_BYTE = {
    "+": 1.5, "contains": 3.5, "double": 3.0, "duration": 50.0, "int": 3.0, "string": 2.0, "timestamp": 5.0,
    "uint": 3.0,
}  # fmt: skip
"""What some operations do with each byte of their operands besides copying it."""
COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">=", "in"})
OURS = frozenset({"matches", "size"})
"""The functions that are Python: see `expression`."""
LONGEST_NUMBER = 400
"""Bytes of `string(5e-324)`, which the library writes out."""
_PASSING = frozenset({"dyn", "of", "ofNonZeroValue", "or", "orValue", "value"})


class TooCostly(Exception):
    """An evaluation could take too long."""


class SizeBound(NamedTuple):
    """An upper bound of the size of a value."""

    length: float  # of a list or a map
    nodes: float  # of all values and keys in it, itself included
    size: float  # of all texts in it, in bytes
    inner: SizeBound | None = None  # any of its elements; None: as itself

    @property
    def element(self) -> SizeBound:
        return self.inner or self

    def plus(self, other: SizeBound) -> SizeBound:
        """Either of two values, or both in one."""
        inner = None
        if self.inner is not None or other.inner is not None:
            inner = self.element.plus(other.element)
        return SizeBound(self.length + other.length, self.nodes + other.nodes, self.size + other.size, inner)

    @property
    def copying(self) -> float:
        return self.nodes * COPY + self.size * COPY_BYTE


NOTHING, SCALAR = SizeBound(0, 0, 0), SizeBound(0, 1, 32)


def anything(nodes: float, size: float) -> SizeBound:
    """A value of which only the weight is known."""
    return SizeBound(nodes, nodes, size)


class Estimate(NamedTuple):
    cost: float
    bound: SizeBound


def estimate(tree: ExpressionNode, shapes: Mapping[str, SizeBound]) -> float:
    """Returns what evaluating this costs at most, where the values that it reads have these shapes.

    Their names are those of fields, and those of parts of fields: `args.path`.
    """
    read = sum(bound.nodes * READ + bound.size * READ_BYTE for bound in shapes.values())
    cost, result = _estimate(tree, shapes, False)
    return read + cost + result.nodes * RETURN + result.size * RETURN_BYTE


def _estimate(node: ExpressionNode, scope: Mapping[str, SizeBound], summed: bool) -> Estimate:
    """What a node costs, and what it gives.

    `summed`: some variable in scope stands for many elements at once. Then the estimate must be a sum of
    products of its sizes, so that it holds for all of them together.
    """
    if node.kind == "literal":
        bound = SizeBound(0, 1, len(node.text.encode()))
        return Estimate(EVALUATE + bound.copying, bound)
    if node.kind == "name":
        return Estimate(EVALUATE, scope.get(node.text, SCALAR))
    if node.kind == "select" and (known := _part_of_field(node, scope)) is not None:
        return Estimate(2 * EVALUATE, known)
    if node.kind == "macro":
        return _macro(node, scope, summed)
    if node.kind == "has":  # what it asks for is not copied
        of = node.parts[0].parts
        return Estimate(EVALUATE + (_estimate(of[0], scope, summed).cost if of else 0), SCALAR)
    parts = [_estimate(part, scope, summed) for part in node.parts]
    cost = EVALUATE + sum(part.cost for part in parts)
    own, bound = _operation(node, [part.bound for part in parts])
    return Estimate(cost + own, bound)


def _part_of_field(node: ExpressionNode, scope: Mapping[str, SizeBound]) -> SizeBound | None:
    field = node.parts[0]
    return scope.get(f"{field.text}.{node.text}") if field.kind == "name" else None


def _operation(node: ExpressionNode, operands: list[SizeBound]) -> tuple[float, SizeBound]:
    """What an operation costs besides its operands, and what it gives."""
    whole = NOTHING
    for operand in operands:
        whole = whole.plus(operand)
    if node.kind in ("select", "index"):
        value, *index = operands
        is_path = node.parts[0].kind in ("name", "select", "index")  # in which nothing is copied
        return (0 if is_path else value.element.copying) + sum(2 * each.copying for each in index), value.element
    if node.kind in ("list", "map"):
        return whole.copying, SizeBound(len(operands), whole.nodes + 1, whole.size, whole)
    if node.kind == "choice":
        return 0, operands[1].plus(operands[2])
    if node.kind == "unary" or node.text in ("&&", "||"):
        return EVALUATE * len(operands), SCALAR
    if node.text in COMPARISONS:
        return whole.nodes * COMPARE + whole.size * COPY_BYTE, SCALAR
    cost = whole.copying + whole.size * EXTRA_BYTE.get(node.text, 0)
    if node.text in OURS:
        cost += CALL + whole.nodes * RETURN + whole.size * RETURN_BYTE
    if node.text == "+" and _is_scalar(node):
        return cost, SizeBound(0, 1, whole.size)
    if node.text == "+" or node.text in _PASSING:
        return cost, whole
    if node.text in ("bytes", "string"):
        return cost, SizeBound(0, 1, whole.size + LONGEST_NUMBER)
    return cost, SCALAR


def _is_scalar(node: ExpressionNode) -> bool:
    """Whether this is a text or a number, and no list: all that can be added to one is another."""
    if node.text == "+":
        return any(_is_scalar(part) for part in node.parts)
    return node.kind == "literal" or (node.kind == "call" and node.text != "dyn")


def _macro(node: ExpressionNode, scope: Mapping[str, SizeBound], summed: bool) -> Estimate:
    """Every element at most costs what the largest would; all of them, what one with all their content would.

    The lesser of the two is right for many small elements and for a few large ones.
    """
    called_on, variable, *bodies = node.parts
    cost, over = _estimate(called_on, scope, summed)
    outer = {name: bound for name, bound in scope.items() if name.split(".")[0] != variable.text}

    def each(element: SizeBound, summed: bool) -> Estimate:
        parts = [_estimate(body, {**outer, variable.text: element}, summed) for body in bodies]
        return Estimate(LOOP + element.copying + sum(part.cost for part in parts), parts[-1].bound)

    largest = each(over.element, summed)
    empty, joined = each(NOTHING, True), each(anything(over.nodes, over.size), True)
    total = over.length * empty.cost + joined.cost
    nodes = over.length * empty.bound.nodes + joined.bound.nodes
    size = over.length * empty.bound.size + joined.bound.size
    if not summed:
        total = min(total, over.length * largest.cost)
        nodes, size = min(nodes, over.length * largest.bound.nodes), min(size, over.length * largest.bound.size)
    cost += EVALUATE + total
    if node.text not in ("filter", "map"):
        return Estimate(cost, SCALAR)
    made = over if node.text == "filter" else SizeBound(over.length, nodes + 1, size, largest.bound)
    return Estimate(cost + (over.length + 1) / 2 * made.copying, made)


def costliest_part(tree: ExpressionNode, shapes: Mapping[str, SizeBound], text: str) -> str:
    """Says what makes an evaluation costly."""
    costs = [(_estimate(macro, shapes, False).cost, macro) for macro in _outer_macros(tree)]
    cost, macro = max(costs, default=(0.0, tree), key=lambda found: found[0])
    if cost > BUDGET / 2:
        over = macro.parts[0]
        count = _estimate(over, shapes, False).bound.length
        return f"{macro.text}() goes through up to {count:,.0f} elements of {text[over.start : over.end][:60]}"
    nodes, size = sum(bound.nodes for bound in shapes.values()), sum(bound.size for bound in shapes.values())
    return f"it works on {nodes:,.0f} values with {size:,.0f} bytes of text"


def _outer_macros(node: ExpressionNode) -> Iterator[ExpressionNode]:
    if node.kind == "macro":
        yield node
    else:
        for part in node.parts:
            yield from _outer_macros(part)


# --- values -----------------------------------------------------------------------------------

READ_LIMIT = int(BUDGET / READ)
"""How many values a rule may read."""
_NUMBERS = frozenset({int, float, bool, type(None)})


class ValueSize:
    """The size of a value, level by level: the value itself, its elements, their elements, and so on.

    Of each level it keeps the largest length, nodes and size.
    """

    __slots__ = ("_left", "_levels")

    def __init__(self, value: Any) -> None:
        """Raises `TooCostly` for a value that is too large or too deep to be read, `NotJson` for an odd one."""
        self._left = READ_LIMIT
        self._levels: list[list[int]] = []
        self._add((value,), 0)

    @property
    def nodes(self) -> int:
        return self._levels[0][1]

    @property
    def size(self) -> int:
        return self._levels[0][2]

    @property
    def bound(self) -> SizeBound:
        bound: SizeBound | None = None
        for length, nodes, size in reversed(self._levels):
            bound = SizeBound(length, nodes, size, bound)
        return bound or NOTHING

    def _add(self, items: Iterable[Any], depth: int) -> tuple[int, int]:
        """Takes account of these values at this depth. Returns their nodes and size."""
        if depth > DEPTH:
            raise TooCostly(f"it reads a value that is nested more than {DEPTH} deep")
        if depth == len(self._levels):
            self._levels.append([0, 0, 0])
        level = self._levels[depth]
        nodes = size = 0
        for item in items:
            nodes += 1
            kind = item.__class__
            if kind is str or isinstance(item, str):
                length = len(item) if item.isascii() else 4 * len(item)
                size += length
                if length > level[2]:
                    level[2] = length
            elif kind in _NUMBERS:
                continue
            elif isinstance(item, (dict, list, tuple)):
                self._left -= len(item)
                if self._left < 0:
                    raise TooCostly(f"it reads more than {READ_LIMIT:,} values")
                within = self._add(chain(item, item.values()) if isinstance(item, dict) else item, depth + 1)
                nodes += within[0]
                size += within[1]
                level[0] = max(level[0], len(item))
                level[1] = max(level[1], within[0] + 1)
                level[2] = max(level[2], within[1])
            elif not isinstance(item, (int, float)):
                raise NotJson
        level[1] = max(level[1], min(nodes, 1))
        return nodes, size


class NotJson(Exception):
    """A value that only `msgspec.to_builtins` makes one of JSON."""


def as_json(value: Any) -> tuple[Any, ValueSize]:
    """Returns a value as JSON has it, and how large it is. Raises `TooCostly` for one that is too large to be read."""
    try:
        return value, ValueSize(value)
    except NotJson:
        value = msgspec.to_builtins(value)
        return value, ValueSize(value)
