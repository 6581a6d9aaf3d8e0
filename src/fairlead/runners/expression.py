"""The expressions of rules: CEL over a step, checked as far as it can be before any step comes.

Its names are the step's fields, and `step` for all of them. Evaluation is in Rust; regular
expressions are RE2, as CEL has them, compiled once, and take time linear in their input.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any

import msgspec

from ..errors import FairleadError, UnknownName
from ..lifecycle import Agent, Event, Step
from ..tools import TARGET_FIELDS, Target
from .template import names_of

LENGTH_LIMIT = 10_000
FUNCTIONS = frozenset({
    "bytes", "contains", "double", "duration", "endsWith", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear",
    "getFullYear", "getHours", "getMilliseconds", "getMinutes", "getMonth", "getSeconds", "hasValue", "int", "matches",
    "none", "of", "ofNonZeroValue", "or", "orValue", "size", "startsWith", "string", "timestamp", "type", "uint",
    "value", "dyn",
})  # fmt: skip
"""What an expression may call."""
_MACROS = frozenset({"all", "exists", "exists_one", "filter", "has", "map"})
_TYPES = frozenset({"bool", "bytes", "double", "int", "list", "map", "null_type", "optional", "string", "type", "uint"})
_LITERALS = frozenset({"false", "in", "null", "true"})
FREE = frozenset({"args", "assistant", "messages", "metadata", "output", "result", "results", "state", "step"})
"""Fields whose inside nobody knows before a step comes."""

_STRING = (
    r"""(?:[rRbB]{0,2}(?:\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))"""
)
_TOKEN = re.compile(rf"(?P<string>{_STRING})|(?P<name>[A-Za-z_]\w*)|(?P<comment>//[^\n]*)|(?P<other>\S)", re.ASCII)

Tokens = list[tuple[str | None, str]]


class BadRule(FairleadError, ValueError):
    """A rule that cannot be right."""


class Expression:
    """A compiled expression for some events."""

    def __init__(self, text: str, events: list[Event[Any]]) -> None:
        cel = _cel()
        if not isinstance(text, str) or len(text) > LENGTH_LIMIT:
            raise BadRule(f"an expression is a text of at most {LENGTH_LIMIT} characters")
        self.text = text
        try:
            self._program = cel.compile(_as_evaluated(text))
        except ValueError as error:
            raise BadRule(_syntax_error(error)) from None
        tokens = [(match.lastgroup, match[0]) for match in _TOKEN.finditer(text) if match.lastgroup != "comment"]
        self.names = _check_names(tokens, events)
        self._regexes = {}
        for literal in _regexes(tokens):
            pattern = cel.evaluate(literal)
            self._regexes[pattern] = compile_regex(pattern)

    def on(self, step: Step) -> Any:
        """The value of the expression for this step."""
        values: dict[str, Any] = {"found": self._found} if self._regexes else {}
        for name in self.names:
            value = step if name == "step" else getattr(step, name, None)
            if value is not None:
                values[name] = _plain(value)
        return self._program.execute(values)

    def _found(self, text: Any, pattern: str) -> bool | None:
        """`text.matches("literal")`. Not a text is an error, which null makes of it."""
        return self._regexes[pattern].search(text) is not None if isinstance(text, str) else None


def _cel() -> Any:
    """The compiled part of the package `cel` alone: the rest of it is a command line that is slow to import."""
    name = "cel.cel"
    if name not in sys.modules:
        package = find_spec("cel")
        spec = None if package is None else PathFinder.find_spec(name, package.submodule_search_locations)
        if spec is None or spec.loader is None:
            raise BadRule("rules need the package common-expression-language: pip install 'fairlead[rules]'")
        sys.modules[name] = module = module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


def _plain(value: Any) -> Any:
    """A value as JSON would have it, without what is not set."""
    if isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Step):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        return {"event": value.event} | {name: _plain(item) for name, item in fields.items() if item is not None}
    if isinstance(value, Target):
        return {"paths": list(value.paths)} | msgspec.to_builtins(value)
    return msgspec.to_builtins(value)


def first_line(error: BaseException) -> str:
    """What CEL complains of, without the advice that follows."""
    text = str(error).split(". Check ")[0].split(". CEL does not")[0]
    return " ".join(line.strip() for line in text.splitlines() if line.strip())


def compile_regex(pattern: str) -> Any:
    """A regular expression that takes linear time, whatever it is given."""
    try:
        import re2
    except ImportError:
        raise BadRule("regular expressions need the package google-re2: pip install 'fairlead[rules]'") from None
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        why = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else error
        raise BadRule(f"bad regular expression {pattern!r}: {why}") from None


def _as_evaluated(text: str) -> str:
    """`has(error)` as `has(step.error)`, since CEL guards only a part of something; literal regexes as ours."""
    strings: list[str] = []

    def hide(match: re.Match[str]) -> str:
        strings.append(match[0])
        return "\0"

    hidden = re.sub(_STRING, hide, text)
    hidden = re.sub(r"\bhas\(\s*([A-Za-z_]\w*)\s*\)", r"has(step.\1)", hidden)
    hidden = re.sub(r"\.(\s*)matches(\s*\(\s*\0\s*\))", r".\1found\2", hidden)
    return re.sub("\0", lambda _: strings.pop(0), hidden)


def _syntax_error(error: ValueError) -> str:
    found = re.search(r"ERROR: <input>:(\d+):(\d+): (.*)", str(error))
    if found is None:
        return first_line(error)
    problem = found[3].removeprefix("Syntax error: ").split(" expecting {")[0]
    return f"syntax error at character {found[2]} of the expression: {problem}"


def _check_names(tokens: Tokens, events: list[Event[Any]]) -> tuple[str, ...]:
    """The fields an expression reads. Raises `UnknownName` for a name or function that nothing goes by."""
    own = {tokens[i + 2][1] for i in range(len(tokens) - 2) if tokens[i][1] in _MACROS and tokens[i + 1][1] == "("}
    own = {name for name in own if any(_binds(tokens, i, name) for i in range(len(tokens)))}
    names: dict[str, None] = {}
    for i, (kind, text) in enumerate(tokens):
        before = tokens[i - 1][1] if i else ""
        after = tokens[i + 1][1] if i + 1 < len(tokens) else ""
        if kind != "name" or text in _LITERALS:
            continue
        if after == "(":
            if text not in FUNCTIONS and text not in _MACROS:
                raise UnknownName("function", text, FUNCTIONS | _MACROS)
        elif before == ".":
            _check_part(tokens, i, events)
        elif text not in own and not (text in _TYPES and text not in _fields(events)):
            for event in events:
                if text != "step" and text not in names_of(event.name):
                    raise UnknownName("name", text, ("step", *names_of(event.name)), f" at {event.name}")
            names[text] = None
    if "has" in [text for kind, text in tokens if kind == "name"]:
        names["step"] = None  # a guarded name is looked up there
    return tuple(names)


def _fields(events: list[Event[Any]]) -> set[str]:
    return {name for event in events for name in names_of(event.name)}


def _binds(tokens: Tokens, i: int, name: str) -> bool:
    """Whether the macro at i gives a name to each item: `.exists(name, ...)`."""
    words = [text for _, text in tokens[i : i + 4]]
    return len(words) == 4 and words[0] in _MACROS - {"has"} and words[1:] == ["(", name, ","]


_PARTS: dict[str, tuple[str, ...]] = {"target": TARGET_FIELDS, "agent": Agent.__struct_fields__}


def _check_part(tokens: Tokens, i: int, events: list[Event[Any]]) -> None:
    """`target.comand`, `step.tol`: where the parts are known, a misspelt one is found."""
    if i < 2 or tokens[i - 2][0] != "name":
        return
    whole, part = tokens[i - 2][1], tokens[i][1]
    if i >= 3 and tokens[i - 3][1] == "." and not (i >= 4 and tokens[i - 4][1] == "step"):
        return  # a part of a part of something free-form
    if whole == "step":
        valid = sorted(_fields(events))
    elif whole in _PARTS:
        valid = list(_PARTS[whole])
    else:
        return
    if part not in valid:
        raise UnknownName("field", f"{whole}.{part}", [f"{whole}.{name}" for name in valid])


def _regexes(tokens: Tokens) -> Iterator[str]:
    """The literal regular expressions: what stands in `.matches("...")`."""
    for i in range(len(tokens) - 3):
        words = [text for _, text in tokens[i : i + 4]]
        if words[0] == "matches" and words[1] == "(" and tokens[i + 2][0] == "string" and words[3] == ")":
            yield words[2]
