"""The expressions of rules: CEL over a step, checked as far as it can be before any step comes.

Its names are the step's fields, `step` for all of them, and `commands` for those of a shell's line.
Evaluation is in Rust, and cannot be interrupted: what it may cost is bounded before it begins. Regular
expressions are RE2, as CEL has them. `size` of a text is ours too: the library counts bytes, CEL code points.
"""

from __future__ import annotations

import re
import sys
import threading
from bisect import bisect_right
from collections.abc import Iterator
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any, NamedTuple

import msgspec

from ..errors import FairleadError, UnknownName
from ..extras import MissingPackage, install_command
from ..lifecycle import Agent, Event, Step
from ..tools import TARGET_FIELDS, Target
from .cost import BUDGET, OURS, TooCostly, ValueSize, anything, as_json, costliest_part, estimate
from .prefilter import SHORT, prefilter_of
from .regex import Limit, Regex, TooSlow
from .syntax import MACROS, BadRule, ExpressionNode, NodePlace, parse, walk
from .template import names_of

LENGTH_LIMIT, NESTING = 10_000, 2
"""Of an expression: its characters, and how many macros may stand in one another."""
GLOBAL = frozenset({
    "bytes", "double", "duration", "dyn", "int", "size", "string", "timestamp", "type", "uint",
})  # fmt: skip
METHODS = frozenset({
    "contains", "endsWith", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours",
    "getMilliseconds", "getMinutes", "getMonth", "getSeconds", "has", "hasValue", "matches", "none", "of",
    "ofNonZeroValue", "or", "orValue", "runs", "size", "startsWith", "value",
})  # fmt: skip
FUNCTIONS = GLOBAL | METHODS
"""What an expression may call, as `size(x)` and as `x.contains(y)`."""
_TYPES = frozenset({"bool", "bytes", "double", "int", "list", "map", "null_type", "optional", "string", "type", "uint"})
FREE = frozenset({
    "args", "assistant", "content", "input", "messages", "metadata", "output", "prepend_input", "response", "result",
    "results", "state", "step", "usage",
})  # fmt: skip
"""Fields whose contents are known only when a step comes."""

COMMANDS = "commands"
"""The name of the list of commands, at events that have a target."""
_OF_COMMAND = {"has": "options", "runs": "runs"}
"""Methods of a command, and the part of it in which they look up a text: `c.has("-f")` is `"-f" in c.options`."""
_EXAMPLES = {"has": '"--force"', "runs": '"git push"'}
_PRESENT = "_present_"
"""Which guarded names are set."""
QUICK, _NODE = BUDGET / 20, 64
"""What evaluating on a light step costs at most; and how many bytes of text weigh as much as one value."""

_loading = threading.Lock()


class RuleFailed(FairleadError):
    """An expression could not be evaluated on a step."""


class Reading(NamedTuple):
    """What an expression has read of a step, and what evaluating it on that costs at most."""

    values: dict[str, Any]
    cost: float


class Expression:
    """A compiled expression for some events."""

    def __init__(self, text: str, events: list[Event[Any]]) -> None:
        cel = _cel()
        if not isinstance(text, str) or len(text) > LENGTH_LIMIT or "\0" in text:
            raise BadRule(f"an expression is a text of at most {LENGTH_LIMIT} characters, none of them NUL")
        self.text = text
        self._tree = parse(text)
        places = list(walk(self._tree))
        for place in places:
            _check(place, events)
        self._guarded = {place.node.text for place in places if _is_guard(place)}
        self._reads = _reads(places, events)
        self.names = tuple(self._reads)
        self._calls = {place.node.text for place in places if _is_ours(place.node)}
        try:
            self._program = cel.compile(_as_evaluated(text, places))
        except ValueError as error:
            raise BadRule(_syntax_error(error)) from None
        self._regexes = {}
        for literal in _patterns(places):
            pattern = cel.evaluate(literal)
            if not isinstance(pattern, str):
                raise BadRule(f"a regular expression is a text, not {pattern!r}")
            self._regexes[pattern] = Regex(pattern)
        if estimate(self._tree, {}) > BUDGET:
            raise BadRule(f"it takes too long, whatever the step: {costliest_part(self._tree, {}, text)}")
        self._easy_weight = _easy_weight(self._tree, self._reads)
        cannot_be_costly = self._easy_weight >= 8 * _NODE + 2 * SHORT
        self.prefilter = prefilter_of(self._tree, self.fields_read, events, cel.evaluate) if cannot_be_costly else None

    @property
    def fields_read(self) -> set[str] | None:
        """The fields that decide its value, such as `target.command`; None if it reads the step as a whole."""
        found: set[str] = set(self._guarded)
        for name, parts in self._reads.items():
            if name == "step":
                if parts is None:
                    return None
                found |= parts
            elif name == COMMANDS:
                found.add("target")
            elif parts is None:
                found.add(name)
            else:
                found |= {f"{name}.{part}" for part in parts}
        return found

    def read(self, step: Step) -> Reading:
        """Read what the expression needs of a step. Raises `RuleFailed` if evaluating it could take too long."""
        values: dict[str, Any] = {}
        cost = self._read(step, values)
        if self._guarded:
            values[_PRESENT] = {name: True for name in self._guarded if getattr(step, name, None) is not None}
        return Reading(values, cost)

    def evaluate(self, reading: Reading) -> Any:
        """The value of the expression for what was read. Raises `RuleFailed` if a function cannot give one."""
        values = reading.values
        if not self._calls:
            return self._program.execute(values)
        calls = _Calls(self._regexes, (BUDGET - reading.cost) / 1e9)
        for name in self._calls:
            values[f"_{name}_"] = getattr(calls, name)
        try:
            return self._program.execute(values)
        except IndexError:
            if calls.problem is None:
                raise
            raise RuleFailed(calls.problem) from None

    def type_problem(self, reading: Reading) -> str:
        """Say which part does not take the types of its values. The library only says that there is one."""
        for node in _inside_out(self._tree):
            if node.kind in _OPERATIONS and self._value_of(node, reading) is _FAILED:
                values = [self._value_of(part, reading) for part in node.parts]
                if _FAILED not in values:
                    return f"{self.text[node.start : node.end]}: {_type_problem(node, values)}"
        return "an operation in it does not take values of these types; convert one with int(), double() or string()"

    def _value_of(self, node: ExpressionNode, reading: Reading) -> Any:
        try:
            return _cel().evaluate(self.text[node.start : node.end], reading.values)
        except Exception:  # of whatever kind: it has no value
            return _FAILED

    def _read(self, step: Step, values: dict[str, Any]) -> float:
        """Fills in the values of fields. Returns what the evaluation costs at most."""
        weight = 0
        sizes: dict[str, ValueSize] = {}
        texts: dict[str, str] = {}
        try:
            for name, parts in self._reads.items():
                value = _value(step, name, parts)
                if value.__class__ is str:
                    values[name] = texts[name] = value
                elif parts is not None and isinstance(value, dict):
                    values[name] = read = {}
                    for part, item in value.items():
                        if item.__class__ is str:
                            read[part] = texts[f"{name}.{part}"] = item
                        else:
                            read[part], sizes[f"{name}.{part}"] = as_json(item)
                elif value is not None:
                    values[name], sizes[name] = as_json(value)
            for text in texts.values():
                weight += _NODE + (len(text) if text.isascii() else 4 * len(text))
            for extent in sizes.values():
                weight += _NODE * extent.nodes + extent.size
            if weight <= self._easy_weight:
                return QUICK
            shapes = {name: extent.bound for name, extent in sizes.items()}
            shapes |= {name: ValueSize(text).bound for name, text in texts.items()}
            cost = estimate(self._tree, shapes)
            if cost > BUDGET:
                raise TooCostly(costliest_part(self._tree, shapes, self.text))
        except TooCostly as problem:
            raise RuleFailed(f"this could take too long: {problem}") from None
        return cost


_FAILED: Any = object()
"""In place of the value of a part that has none."""
_OPERATIONS = frozenset({"binary", "unary", "method", "call", "choice", "index"})
_LOGICAL = frozenset({"&&", "||", "!"})


def _inside_out(node: ExpressionNode) -> Iterator[ExpressionNode]:
    """Every node after its parts, except for those inside of macros: they have a value for each element only."""
    if node.kind != "macro":
        for part in node.parts:
            yield from _inside_out(part)
        yield node


def _type_problem(node: ExpressionNode, values: list[Any]) -> str:
    """What an operation takes, and what it got. The values themselves may be secret."""
    kinds = [type_name(value) for value in values]
    if node.kind == "choice" or node.text in _LOGICAL:
        wrong = next((kind for kind in kinds if kind != "true or false"), kinds[0])
        return f"{'a condition' if node.kind == 'choice' else node.text} takes true or false, not {wrong}"
    if node.kind == "method":
        others = f" with {' and '.join(kinds[1:])}" if kinds[1:] else ""
        return f"{node.text}() cannot be called on {kinds[0]}{others}"
    if node.kind == "call":
        return f"{node.text}() does not take {' and '.join(kinds)}"
    if node.kind == "index":
        return f"{kinds[0]} has no part that {kinds[1]} names"
    if node.kind == "unary" or len(kinds) == 1:
        return f"{node.text} does not take {kinds[0]}"
    if node.text == "in":
        return f"in looks into a list or an object, not into {kinds[1]}"
    return f"{node.text} does not take {kinds[0]} and {kinds[1]}; convert one with int(), double() or string()"


def type_name(value: Any) -> str:
    """What a value is, in the words of a user."""
    if isinstance(value, bool):
        return "true or false"
    names = {int: "a whole number", float: "a number", str: "a text", list: "a list", dict: "an object", bytes: "bytes"}
    return "null" if value is None else names.get(type(value), f"a {type(value).__name__}")


class _Calls:
    """The functions that the library does not have as CEL defines them, for one evaluation.

    Each answers with a list of one, or with an empty one where it fails, and the expression asks for the
    first item: the library would log an exception.
    """

    def __init__(self, regexes: dict[str, Regex], seconds: float) -> None:
        self._regexes, self._limit = regexes, Limit(seconds)
        self.problem: str | None = None

    def size(self, value: Any) -> list[int]:
        """The number of code points, bytes or elements."""
        if isinstance(value, (str, bytes, list, dict)):
            return [len(value)]
        self.problem = f"size() takes a text, a list or an object, not {type_name(value)}"
        return []

    def matches(self, text: Any, pattern: Any) -> list[bool]:
        """Whether a text has a part that matches."""
        try:
            if isinstance(text, str) and isinstance(pattern, str):
                regex = self._regexes.get(pattern) or Regex.foreign(pattern, self._limit)
                return [regex.search(text, self._limit)]
            self.problem = "matches() takes texts, and was given what is not a text"
        except TooSlow:
            self.problem = f"matches() takes too long for {pattern[:60]!r} in a text of {len(text):,} characters"
        except (BadRule, UnicodeError) as error:
            self.problem = str(error)
        return []


def _cel() -> Any:
    """The compiled part of the package `cel` alone: the rest of it is a command line that is slow to import."""
    name = "cel.cel"
    with _loading:  # importing twice panics, and a module that is half there has nothing in it
        if name not in sys.modules:
            sys.modules[name] = _load_cel(name)
    return sys.modules[name]


def _load_cel(name: str) -> Any:
    package = find_spec("cel")
    spec = None if package is None else PathFinder.find_spec(name, package.submodule_search_locations)
    if spec is None or spec.loader is None:
        raise MissingPackage(f"rules need packages that are not installed; run: {install_command('rules')}", "cel")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _easy_weight(tree: ExpressionNode, reads: dict[str, set[str] | None]) -> float:
    """How heavy a step may be for an evaluation to be cheap, whatever it consists of."""
    names = [*reads, *(f"{name}.{part}" for name, parts in reads.items() for part in parts or ())]

    def cost(weight: float) -> float:
        return estimate(tree, dict.fromkeys(names, anything(weight / _NODE, weight)))

    weights = [2.0**exponent for exponent in range(10, 24)]
    return [0.0, *weights][bisect_right(weights, QUICK, key=cost)]


def _value(step: Step, name: str, parts: set[str] | None) -> Any:
    """A field of a step, or only these parts of it."""
    if name == COMMANDS:
        return [command.to_builtins() for command in step.target.commands]  # type: ignore[attr-defined]
    if name == "step":
        fields = {
            field: getattr(step, field)
            for field in ("event", *step.__struct_fields__)
            if parts is None or field in parts
        }
        return {field: _value(step, field, None) for field, value in fields.items() if value is not None}
    value = getattr(step, name, None)
    if isinstance(value, Target):
        value = {"paths": value.paths} | msgspec.to_builtins(value)
    if isinstance(value, dict) and parts is not None:
        return {part: value[part] for part in parts if part in value}
    return value


def first_line(error: BaseException) -> str:
    """What CEL complains of, without the advice that follows."""
    text = str(error).split(". Check ")[0].split(". CEL does not")[0]
    return " ".join(line.strip() for line in text.splitlines() if line.strip())


# --- what is checked when a rule is made --------------------------------------------------------


def _check(place: NodePlace, events: list[Event[Any]]) -> None:
    """Raises `BadRule` or `UnknownName` for what no step could make right."""
    node = place.node
    if place.macros > NESTING:
        raise BadRule(f"more than {NESTING} of all, exists, filter and map in one another take too long")
    if node.kind in ("call", "method"):
        _check_call(node)
    elif node.kind == "has":
        _check_has(place)
    elif node.kind == "macro":
        if node.parts[1].text == _PRESENT:
            raise BadRule(f"a variable cannot be called {_PRESENT}")
    elif node.kind == "select":
        _check_part(node, place.bound, events)
    elif node.kind == "name" and _is_field(place, events):
        for event in events:
            if node.text != "step" and node.text not in _names_at(event):
                raise UnknownName("name", node.text, ("step", *_names_at(event)), f" at {event.name}")


def _names_at(event: Event[Any]) -> tuple[str, ...]:
    names = names_of(event.name)
    return (*names, COMMANDS) if "target" in names else names


def _check_call(node: ExpressionNode) -> None:
    name, is_method = node.text, node.kind == "method"
    if is_method and name in _OF_COMMAND and (len(node.parts) != 2 or node.parts[1].kind != "literal"):
        raise BadRule(f"{name} is called on a command, with a text: c.{name}({_EXAMPLES[name]})")
    if name not in FUNCTIONS and (name not in MACROS or is_method):
        raise UnknownName("function", name, FUNCTIONS | MACROS | {"has"})
    if name not in (METHODS if is_method else GLOBAL):
        raise BadRule(f"{name} is called as {name + '(x)' if is_method else 'x.' + name + '(...)'}")
    if name in OURS and len(node.parts) != (2 if name == "matches" else 1):
        raise BadRule(f"{name} is called as {'x.matches(pattern)' if name == 'matches' else 'size(x)'}")


def _check_has(place: NodePlace) -> None:
    parts = place.node.parts
    if len(parts) != 1 or parts[0].kind not in ("select", "name"):
        raise BadRule("has() takes a field, or a part of one: has(x.y)")
    if parts[0].kind == "name" and parts[0].text in place.bound | {"step"}:
        raise BadRule(f"{parts[0].text} is always there; has() takes a part of it: has({parts[0].text}.x)")


def _is_field(place: NodePlace, events: list[Event[Any]]) -> bool:
    name = place.node.text
    return name not in place.bound and not (name in _TYPES and name not in _fields(events))


def _is_guard(place: NodePlace) -> bool:
    """Whether this is the field in `has(error)`."""
    return place.node.kind == "name" and place.parent is not None and place.parent.kind == "has"


def _is_ours(node: ExpressionNode) -> bool:
    return node.kind in ("call", "method") and node.text in OURS


def _fields(events: list[Event[Any]]) -> set[str]:
    return {name for event in events for name in _names_at(event)}


_PARTS: dict[str, tuple[str, ...]] = {"target": TARGET_FIELDS, "agent": Agent.__struct_fields__}


def _check_part(node: ExpressionNode, bound: frozenset[str], events: list[Event[Any]]) -> None:
    """`target.comand`, `step.tol`: where the parts are known, a misspelt one is found."""
    path: list[str] = []
    while node.kind == "select":
        path.insert(0, node.text)
        node = node.parts[0]
    if node.kind != "name" or node.text in bound:
        return  # a part of something free-form
    path.insert(0, node.text)
    if path[0] == "step" and len(path) == 2:
        valid = sorted(_fields(events))
    else:
        path = path[1:] if path[0] == "step" else path
        if len(path) != 2 or path[0] not in _PARTS:
            return
        valid = list(_PARTS[path[0]])
    if path[1] not in valid:
        raise UnknownName("field", ".".join(path), [f"{path[0]}.{name}" for name in valid])


# --- what an expression becomes -----------------------------------------------------------------


def _reads(places: list[NodePlace], events: list[Event[Any]]) -> dict[str, set[str] | None]:
    """The fields an expression reads, each with the parts of it that it reads, or None for all."""
    reads: dict[str, set[str] | None] = {}
    for place in places:
        if place.node.kind != "name" or not _is_field(place, events) or _is_guard(place):
            continue
        parts = reads.setdefault(place.node.text, set())
        if place.parent is None or place.parent.kind != "select":
            reads[place.node.text] = None
        elif parts is not None:
            parts.add(place.parent.text)
    return reads


def _patterns(places: list[NodePlace]) -> Iterator[str]:
    """The literal regular expressions: `x.matches("...")`."""
    for place in places:
        if place.node.text == "matches" and _is_ours(place.node) and place.node.parts[1].kind == "literal":
            yield place.node.parts[1].text


def _as_evaluated(text: str, places: list[NodePlace]) -> str:
    """The expression as the library is to evaluate it.

    `has(error)` is `has(_present_.error)`, since CEL guards only a part of something. Calls of ours are those of
    `_Calls`, and those of a command a look-up. `a.b` is `a["b"]`, which means the same, but for which the
    library does not copy what it finds.
    """
    edits = []
    for node, parent, _, _ in places:
        if node.kind == "name" and parent is not None and parent.kind == "has":
            edits.append((node.start, node.start, f"{_PRESENT}."))
        elif _is_ours(node):
            edits += [(node.at, node.at + len(node.text), f"_{node.text}_"), (node.end, node.end, "[0]")]
        elif node.kind == "method" and node.text in _OF_COMMAND:
            looked_up = text[node.parts[1].start : node.parts[1].end]
            edits.append((node.start, node.start, f"({looked_up} in "))
            edits.append((text.rindex(".", 0, node.at), node.end, f'["{_OF_COMMAND[node.text]}"])'))
        elif node.kind == "select" and (parent is None or parent.kind != "has"):
            edits.append((node.at, node.end, f'["{node.text}"]'))
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _syntax_error(error: ValueError) -> str:
    found = re.search(r"ERROR: <input>:(\d+):(\d+): (.*)", str(error))
    if found is None:
        return first_line(error)
    problem = found[3].removeprefix("Syntax error: ").split(" expecting {")[0]
    return f"syntax error at character {found[2]} of the expression: {problem}"
