"""JSON as people write it, with comments and trailing commas, changed in place.

A document knows where each of its parts stands, so that a part can be put in, replaced or taken out while every other
byte stays as it is. What was put in can be taken out again, and leaves no trace.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, NoReturn

from ....errors import FairleadError

PathKey = str | int
"""The name of a member, or the index of an element."""
DEEPEST = 200
"""The deepest nesting that a document may have."""
LONGEST = 4000
"""Digits of a whole number that are worth counting."""

_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z0-9_$.+-]+")
_GAP = re.compile(r"[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_LINE_END = re.compile(r"[ \t]*\r?\n")
_BLANK = re.compile(r"[ \t]*")
_PLAIN = {"true": True, "false": False, "null": None}


class BadJson(FairleadError, ValueError):
    """A text is no JSON. It has the position of the error."""

    def __init__(self, problem: str, line: int, column: int) -> None:
        super().__init__(f"{problem} (line {line}, column {column})")
        self.problem, self.line, self.column = problem, line, column


class JsonNode(NamedTuple):
    """A value and its position in the text."""

    kind: Literal["object", "array", "plain"]
    start: int
    end: int
    plain: Any = None
    parts: tuple[JsonPart, ...] = ()

    @property
    def value(self) -> Any:
        """The Python value. If members share a name, the last counts."""
        if self.kind == "object":
            return {part.key: part.node.value for part in self.parts}
        return [part.node.value for part in self.parts] if self.kind == "array" else self.plain


class JsonPart(NamedTuple):
    """A member of an object or an element of an array, and the comma after it, if there is one."""

    key: str | None
    start: int
    node: JsonNode
    comma: int | None


class JsonDocument:
    """A parsed text. Each edit returns a new document. Raises `BadJson` if the text is no JSON."""

    def __init__(self, text: str) -> None:
        reader = _JsonReader(text)
        self.text = text
        self.root = reader.document()
        self.comment = reader.comment
        """The position of the first comment."""
        self.trailing = reader.trailing
        """The position of the first trailing comma."""
        self._newline = "\r\n" if "\r\n" in text else "\n"

    @property
    def value(self) -> Any:
        """The Python value."""
        return self.root.value

    def where(self, position: int) -> tuple[int, int]:
        """The line and the column of a position."""
        return _where(self.text, position)

    def find(self, path: Sequence[PathKey]) -> JsonNode | None:
        """The node at a path. If members share a name, the last counts."""
        node: JsonNode | None = self.root
        for key in path:
            node = None if node is None else _below(node, key)
        return node

    # --- edits --------------------------------------------------------------------------------

    def put(self, path: Sequence[PathKey], value: Any) -> JsonDocument:
        """Put a value at a path: it replaces what is there, or becomes the last member of the object above."""
        found = self.find(path)
        if found is not None:
            new = self._written(value, self._indent_at(found.start))
            return JsonDocument(self.text[: found.start] + new + self.text[found.end :])
        *above, key = path
        if not isinstance(key, str):
            raise KeyError(path)
        return self._add(self._holder(above, "object"), key, value)

    def append(self, path: Sequence[PathKey], value: Any) -> JsonDocument:
        """Append a value to the array at a path."""
        return self._add(self._holder(path, "array"), None, value)

    def remove(self, path: Sequence[PathKey]) -> JsonDocument:
        """Remove what is at a path, with its comma and its line."""
        *above, key = path
        node = self.find(above)
        index = None if node is None else _place(node, key)
        if node is None or index is None:
            raise KeyError(path)
        part, last = node.parts[index], index == len(node.parts) - 1
        before = node.parts[index - 1].comma if index else node.start
        assert before is not None  # noqa: S101 (whatever comes before another part has a comma)
        whole = len(node.parts) == 1
        after = self._after(part, node.end - 1 if whole else len(self.text))
        begin = self._kept_up_to(before + 1, part.start, after)
        if whole:
            inside = self.text[node.start + 1 : begin] + after
            return JsonDocument(self.text[: node.start + 1] + inside * bool(inside.strip()) + self.text[node.end - 1 :])
        if last and part.comma is None:
            return JsonDocument(self.text[:before] + self.text[before + 1 : begin] + after)
        return JsonDocument(self.text[:begin] + after)

    def _kept_up_to(self, start: int, end: int, after: str) -> int:
        """The end of the part of a gap that stays when what follows it is removed: all comments stay."""
        comment = self._last_comment(start, end)
        if comment is None:
            return start
        line = _LINE_END.match(self.text, comment.end())
        return line.end() if line and comment[0].startswith("//") and not _LINE_END.match(after) else comment.end()

    def _holder(self, path: Sequence[PathKey], kind: str) -> JsonNode:
        node = self.find(path)
        if node is None or node.kind != kind:
            raise KeyError(path)
        return node

    def _after(self, part: JsonPart, end: int) -> str:
        """The text after a part, without its comma."""
        if part.comma is None:
            return self.text[part.node.end : end]
        return self.text[part.node.end : part.comma] + self.text[part.comma + 1 : end]

    def _add(self, node: JsonNode, key: str | None, value: Any) -> JsonDocument:
        text, indent = self.text, self._indent_in(node)
        name = "" if key is None else f"{_quoted(key)}: "
        new = f"{self._newline}{indent}{name}{self._written(value, indent)}"
        if not node.parts:
            spot = self._past_comments(node.start + 1, node.end - 1)
            rest = text[spot : node.end - 1]
            if "\n" not in rest:
                rest = self._newline + self._indent_at(node.start)
            return JsonDocument(text[:spot] + new + rest + text[node.end - 1 :])
        last = node.parts[-1]
        if last.comma is not None:
            spot = self._past_comments(last.comma + 1, node.end - 1)
            return JsonDocument(f"{text[:spot]}{new},{text[spot:]}")
        spot = self._past_comments(last.node.end, node.end - 1)
        return JsonDocument(f"{text[: last.node.end]},{text[last.node.end : spot]}{new}{text[spot:]}")

    def _past_comments(self, start: int, end: int) -> int:
        comment = self._last_comment(start, end)
        return start if comment is None else comment.end()

    def _last_comment(self, start: int, end: int) -> re.Match[str] | None:
        """The last comment in a gap."""
        last = None
        while start < end and (gap := _GAP.match(self.text, start)):
            start = gap.end()
            last = gap if gap[0][0] == "/" else last
        return last

    # --- how it is written ------------------------------------------------------------------------

    def _written(self, value: Any, indent: str) -> str:
        written = json.dumps(value, indent=self._unit(), ensure_ascii=False)
        return written.replace("\n", self._newline + indent)

    def _unit(self) -> str:
        """The indent of one level in this document."""
        outer = self._indent_at(self.root.start)
        for part in self.root.parts:
            inner = self._own_line(part.start)
            if inner is not None and inner.startswith(outer) and inner != outer:
                return inner[len(outer) :]
        return "  "

    def _indent_in(self, node: JsonNode) -> str:
        """The indent of the parts of a node."""
        for part in reversed(node.parts):
            own = self._own_line(part.start)
            if own is not None:
                return own
        return self._indent_at(node.start) + self._unit()

    def _indent_at(self, position: int) -> str:
        """The indent of the line of a position."""
        line = self.text.rfind("\n", 0, position) + 1
        start = line + 1 if self.text.startswith("\ufeff", line) else line
        blank = _BLANK.match(self.text, start)
        return blank[0] if blank and blank.end() <= position else ""

    def _own_line(self, position: int) -> str | None:
        """The indent of a position with nothing before it in its line."""
        before = self.text[self.text.rfind("\n", 0, position) + 1 : position]
        return before if not before.strip(" \t") else None


def _below(node: JsonNode, key: PathKey) -> JsonNode | None:
    index = _place(node, key)
    return None if index is None else node.parts[index].node


def _place(node: JsonNode, key: PathKey) -> int | None:
    if isinstance(key, int):
        return key if node.kind == "array" and 0 <= key < len(node.parts) else None
    found = (index for index in reversed(range(len(node.parts))) if node.parts[index].key == key)
    return next(found, None) if node.kind == "object" else None


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _where(text: str, position: int) -> tuple[int, int]:
    begin = text.rfind("\n", 0, position) + 1
    column = position - begin + 1 - text.startswith("\ufeff", begin)
    return text.count("\n", 0, position) + 1, column


class _JsonReader:
    """A parser of JSON with comments and trailing commas."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, int(text.startswith("\ufeff"))
        self.comment: int | None = None
        self.trailing: int | None = None

    def document(self) -> JsonNode:
        self.skip()
        if self.at == len(self.text):
            self.fail("there is nothing in it")
        node = self.value(0)
        self.skip()
        if self.at < len(self.text):
            self.fail("something follows the end")
        return node

    def fail(self, problem: str, at: int | None = None) -> NoReturn:
        raise BadJson(problem, *_where(self.text, self.at if at is None else at))

    def skip(self) -> None:
        while gap := _GAP.match(self.text, self.at):
            if gap[0][0] == "/" and self.comment is None:
                self.comment = self.at
            self.at = gap.end()
        if self.text.startswith("/*", self.at):
            self.fail("a comment that does not end")

    def value(self, depth: int) -> JsonNode:
        sign = self.text[self.at : self.at + 1]
        if sign == "{" or sign == "[":
            if depth >= DEEPEST:
                self.fail("it is nested too deeply")
            return self.held(depth, sign)
        start = self.at
        if sign == '"':
            text = self.string()
            return JsonNode("plain", start, self.at, text)
        word = _WORD.match(self.text, start)
        if word is None:
            self.fail("a value is missing")
        self.at = word.end()
        if word[0] not in _PLAIN and not _NUMBER.fullmatch(word[0]):
            self.fail(f"{word[0]} is no value", start)
        return JsonNode("plain", start, self.at, _PLAIN[word[0]] if word[0] in _PLAIN else _number(word[0]))

    def string(self) -> str:
        found = _STRING.match(self.text, self.at)
        if found is None:
            self.fail("a text that does not end, or has a character in it that must be escaped")
        self.at = found.end()
        text: str = json.loads(found[0])
        return text

    def held(self, depth: int, sign: str) -> JsonNode:
        """An object or an array."""
        start, close = self.at, "}" if sign == "{" else "]"
        parts: list[JsonPart] = []
        self.at += 1
        self.skip()
        while not self.text.startswith(close, self.at):
            parts.append(self.part(depth, sign, close))
        self.at += 1
        if parts and parts[-1].comma is not None and self.trailing is None:
            self.trailing = parts[-1].comma
        return JsonNode("object" if sign == "{" else "array", start, self.at, None, tuple(parts))

    def part(self, depth: int, sign: str, close: str) -> JsonPart:
        start, key = self.at, None
        if self.at == len(self.text):
            self.fail(f"it ends before {close}")
        if sign == "{":
            if not self.text.startswith('"', self.at):
                self.fail('a name in "..." is missing')
            key = self.string()
            self.skip()
            if not self.text.startswith(":", self.at):
                self.fail(f"a : is missing after {_quoted(key)}")
            self.at += 1
            self.skip()
        node = self.value(depth + 1)
        self.skip()
        comma = self.at if self.text.startswith(",", self.at) else None
        if comma is not None:
            self.at += 1
            self.skip()
        elif not self.text.startswith(close, self.at):
            self.fail(f"it ends before {close}" if self.at == len(self.text) else f"a , or a {close} is missing")
        return JsonPart(key, start, node, comma)


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("-").isdigit() and len(text) < LONGEST else float(text)
