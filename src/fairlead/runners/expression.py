"""The expressions of rules: CEL over a step, checked as far as it can be before any step comes.

Its names are the step's fields, and `step` for all of them. Evaluation is in Rust; regular
expressions are RE2, as CEL has them, compiled once, and take time linear in their input.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any, NamedTuple

import msgspec

from ..errors import FairleadError, UnknownName
from ..lifecycle import Agent, Event, Step
from ..tools import TARGET_FIELDS, Target
from .template import names_of

LENGTH_LIMIT, NESTING = 10_000, 2
"""Of an expression: its characters, and how many macros may stand in one another. Each more costs a power."""
GLOBAL = frozenset({
    "bytes", "double", "duration", "dyn", "int", "size", "string", "timestamp", "type", "uint",
})  # fmt: skip
METHODS = frozenset({
    "contains", "endsWith", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours",
    "getMilliseconds", "getMinutes", "getMonth", "getSeconds", "hasValue", "matches", "none", "of", "ofNonZeroValue",
    "or", "orValue", "size", "startsWith", "value",
})  # fmt: skip
FUNCTIONS = GLOBAL | METHODS
"""What an expression may call, as `size(x)` and as `x.contains(y)`."""
_MACROS = frozenset({"all", "exists", "exists_one", "filter", "has", "map"})
_TYPES = frozenset({"bool", "bytes", "double", "int", "list", "map", "null_type", "optional", "string", "type", "uint"})
_LITERALS = frozenset({"false", "in", "null", "true"})
FREE = frozenset({
    "args", "assistant", "content", "input", "messages", "metadata", "output", "prepend_input", "response", "result",
    "results", "state", "step", "usage",
})  # fmt: skip
"""Fields whose inside nobody knows before a step comes."""

_RAW = r"""(?:[bB]?[rR]|[rR][bB])(?:\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}|"[^"\n]*"|'[^'\n]*')"""
_PLAIN = (
    r"""[bB]?(?:\"{3}(?:\\[\s\S]|[^\\])*?\"{3}|'{3}(?:\\[\s\S]|[^\\])*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
)
_NUMBER = r"0[xX][0-9a-fA-F]+[uU]?|(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?[uU]?"
_TOKEN = re.compile(
    rf"(?P<string>{_RAW}|{_PLAIN})|(?P<name>[A-Za-z_]\w*)|(?P<number>{_NUMBER})|(?P<comment>//[^\n]*)|(?P<other>\S)",
    re.ASCII,
)
_GIVEN = "_given_"
"""Which guarded names are set."""


class Token(NamedTuple):
    kind: str
    text: str
    start: int
    bound: frozenset[str]  # the variables of the macros it stands in
    depth: int  # how many those are


Tokens = list[Token]

_loading = threading.Lock()


class BadRule(FairleadError, ValueError):
    """A rule that cannot be right."""


class Expression:
    """A compiled expression for some events."""

    def __init__(self, text: str, events: list[Event[Any]]) -> None:
        cel = _cel()
        if not isinstance(text, str) or len(text) > LENGTH_LIMIT or "\0" in text:
            raise BadRule(f"an expression is a text of at most {LENGTH_LIMIT} characters, none of them NUL")
        self.text = text
        tokens = _tokens(text)
        try:
            self._program = cel.compile(_as_evaluated(text, tokens))
        except ValueError as error:
            raise BadRule(_syntax_error(error)) from None
        if any(token.depth > NESTING for token in tokens):
            raise BadRule(f"more than {NESTING} of all, exists, filter and map in one another take too long")
        guarded = _guarded(tokens)
        self._guarded = tuple({tokens[i].text for i in guarded})
        self.names = _check_names(tokens, events, guarded)
        self._regexes = {}
        for i in _regexes(tokens):
            pattern = cel.evaluate(tokens[i].text)
            if not isinstance(pattern, str):
                raise BadRule(f"a regular expression is a text, not {pattern!r}")
            self._regexes[pattern] = compile_regex(pattern)

    @property
    def has_regexes(self) -> bool:
        return bool(self._regexes)

    def on(self, step: Step) -> Any:
        """The value of the expression for this step."""
        values: dict[str, Any] = {"found": self._found} if self._regexes else {}
        if self._guarded:
            values[_GIVEN] = {name: True for name in self._guarded if getattr(step, name, None) is not None}
        for name in self.names:
            value = step if name == "step" else getattr(step, name, None)
            if value is not None:
                values[name] = _plain(value)
        return self._program.execute(values)

    def _found(self, text: Any, pattern: str) -> list[bool]:
        """`text.matches("literal")`, of which the first item is asked for: of what is no text there is none."""
        return [self._regexes[pattern].search(text) is not None] if isinstance(text, str) else []


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
        raise BadRule("rules need the package common-expression-language: pip install 'fairlead[rules]'")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
    except UnicodeError as error:
        raise BadRule(f"bad regular expression {pattern!r}: {error}") from None
    except re2.error as error:
        why = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else error
        raise BadRule(f"bad regular expression {pattern!r}: {why}") from None


def _tokens(text: str) -> Tokens:
    """The words of an expression, each with the variables that are known where it stands."""
    found = [match for match in _TOKEN.finditer(text) if match.lastgroup != "comment"]
    tokens: Tokens = []
    scopes: list[tuple[frozenset[str], int]] = [(frozenset(), 0)]
    for i, match in enumerate(found):
        words = [other[0] for other in found[i : i + 3]]
        if match[0] == "(":
            binds = i > 1 and found[i - 2][0] == "." and found[i - 1][0] in _MACROS - {"has"} and words[2:] == [","]
            bound, depth = scopes[-1]
            scopes.append((bound | {words[1]}, depth + 1) if binds else scopes[-1])
        tokens.append(Token(match.lastgroup or "", match[0], match.start(), *scopes[-1]))
        if match[0] == ")" and len(scopes) > 1:
            scopes.pop()
    return tokens


def _guarded(tokens: Tokens) -> list[int]:
    """Where the fields stand that are guarded by themselves: `has(error)`."""
    return [
        i + 2
        for i in range(len(tokens) - 3)
        if (tokens[i].text, tokens[i + 1].text, tokens[i + 3].text) == ("has", "(", ")")
        and tokens[i + 2].kind == "name"
        and tokens[i + 2].text not in tokens[i + 2].bound | {"step"}
        and not (i and tokens[i - 1].text == ".")
    ]


def _as_evaluated(text: str, tokens: Tokens) -> str:
    """`has(error)` as `has(_given_.error)`, since CEL guards only a part of something; literal regexes as ours."""
    edits = [(tokens[i].start, 0, f"{_GIVEN}.") for i in _guarded(tokens)]
    for i in _regexes(tokens):
        first = next(j for j in range(i, -1, -1) if tokens[j].text == "matches")
        last = i + (i - first) - 1
        edits += [(tokens[first].start, len("matches"), "found"), (tokens[last].start + 1, 0, "[0]")]
    for start, length, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[start + length :]
    return text


def _syntax_error(error: ValueError) -> str:
    found = re.search(r"ERROR: <input>:(\d+):(\d+): (.*)", str(error))
    if found is None:
        return first_line(error)
    problem = found[3].removeprefix("Syntax error: ").split(" expecting {")[0]
    return f"syntax error at character {found[2]} of the expression: {problem}"


def _check_names(tokens: Tokens, events: list[Event[Any]], guarded: list[int]) -> tuple[str, ...]:
    """The fields an expression reads. Raises `UnknownName` for a name or function that nothing goes by."""
    names: dict[str, None] = {}
    for i, (kind, text, _, bound, _) in enumerate(tokens):
        before = tokens[i - 1].text if i else ""
        after = tokens[i + 1].text if i + 1 < len(tokens) else ""
        if kind != "name" or text in _LITERALS:
            continue
        if before == "." and not _ends_operand(tokens, i - 2):
            raise BadRule(f"a name does not begin with a dot: .{text}")
        if after == "(":
            if text not in FUNCTIONS and text not in _MACROS:
                raise UnknownName("function", text, FUNCTIONS | _MACROS)
            if text not in _MACROS and text not in (METHODS if before == "." else GLOBAL):
                raise BadRule(f"{text} is called as {text + '(x)' if before == '.' else 'x.' + text + '(...)'}")
        elif before == ".":
            _check_part(tokens, i, events)
        elif text not in bound and not (text in _TYPES and text not in _fields(events)):
            for event in events:
                if text != "step" and text not in names_of(event.name):
                    raise UnknownName("name", text, ("step", *names_of(event.name)), f" at {event.name}")
            if i not in guarded:
                names[text] = None
    return tuple(names)


def _ends_operand(tokens: Tokens, i: int) -> bool:
    """Whether what stands here can have a part."""
    if i < 0:
        return False
    token = tokens[i]
    return (
        token.kind in ("string", "number")
        or token.text in (")", "]", "}")
        or (token.kind == "name" and token.text != "in")
    )


def _fields(events: list[Event[Any]]) -> set[str]:
    return {name for event in events for name in names_of(event.name)}


_PARTS: dict[str, tuple[str, ...]] = {"target": TARGET_FIELDS, "agent": Agent.__struct_fields__}


def _check_part(tokens: Tokens, i: int, events: list[Event[Any]]) -> None:
    """`target.comand`, `step.tol`: where the parts are known, a misspelt one is found."""
    path = [tokens[i].text]
    while i >= 2 and tokens[i - 1].text == "." and tokens[i - 2].kind == "name":
        i -= 2
        path.insert(0, tokens[i].text)
    if (i and tokens[i - 1].text == ".") or path[0] in tokens[i].bound:
        return  # a part of something free-form
    if path[0] == "step" and len(path) == 2:
        valid = sorted(_fields(events))
    else:
        path = path[1:] if path[0] == "step" else path
        if len(path) != 2 or path[0] not in _PARTS:
            return
        valid = list(_PARTS[path[0]])
    if path[1] not in valid:
        raise UnknownName("field", ".".join(path), [f"{path[0]}.{name}" for name in valid])


def _regexes(tokens: Tokens) -> Iterator[int]:
    """Where the literal regular expressions stand: `.matches("...")`."""
    for i, token in enumerate(tokens):
        if token.kind == "name" and token.text == "matches" and i and tokens[i - 1].text == ".":
            j = i + 1
            while j < len(tokens) and tokens[j].text == "(":
                j += 1
            closing = [other.text for other in tokens[j + 1 : j + j - i]]
            if j > i + 1 and j < len(tokens) and tokens[j].kind == "string" and closing == [")"] * (j - i - 1):
                yield j
