"""Tells quickly, and for most steps, that a rule does not hold.

A rule such as `target.command.matches("git push.*--force")` can hold only if `git push` stands in the command. Looking
for that is a hundred times faster than evaluating the rule.

This never hides an error: it looks only at what the rule evaluates first. If that is false, the rule is false, and
nothing after it is evaluated. Any step on which the first part could fail is left to the rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, Final

from ..lifecycle import Event, Step
from .syntax import ExpressionNode

SHORT: Final = 2_000
"""Characters of a text up to which a rule that reads little else cannot take too long."""
_TEXTS: Final = frozenset({"target.command", "target.url", "target.server"})
_NAMES: Final = frozenset({"tool", "kind", "safety"})
"""Fields of a tool's step that always are a text, so that comparing them with one cannot fail."""
_SPECIAL: Final = frozenset("+\\.^$*?{}[]|()")

Literal = Callable[[str], Any]
"""The value of a literal of an expression."""


class Prefilter:
    """The rule can hold only if one of `needles` stands in the text at `path`."""

    def __init__(self, path: str, needles: tuple[str, ...]) -> None:
        self.path, self.needles = path, needles
        self._get = attrgetter(path)

    def excludes(self, step: Step) -> bool:
        """Whether the rule does not hold for this step, for sure, and cannot fail either."""
        text = self._get(step)
        if text.__class__ is not str or len(text) > SHORT or not text.isascii() or len(step.tool) > SHORT:  # type: ignore[attr-defined]
            return False
        for needle in self.needles:  # noqa: SIM110 (`all` is slower)
            if needle in text:
                return False
        return True


def prefilter_of(
    tree: ExpressionNode, reads: set[str] | None, events: list[Event[Any]], value_of: Literal
) -> Prefilter | None:
    """The prefilter of an expression; None if it has none.

    The expression may read nothing but short texts: a large value that it reads could be too costly, which is an error.
    """
    if reads is None or not all(event.about_tool for event in events):
        return None
    for part in _conjunction(tree):
        if _cannot_fail(part):
            continue
        found = _needles(part, value_of)
        if found is None:
            return None
        path, needles = found
        return Prefilter(path, needles) if reads <= {path, *_NAMES} and all(needles) else None
    return None


def _conjunction(node: ExpressionNode) -> Iterator[ExpressionNode]:
    """The parts of `a && b && c`, in the order in which they are evaluated."""
    if node.kind == "binary" and node.text == "&&":
        for part in node.parts:
            yield from _conjunction(part)
    else:
        yield node


def _cannot_fail(node: ExpressionNode) -> bool:
    """Whether a part compares the name of a tool, or its kind, with a text."""
    if node.kind != "binary" or node.text not in ("==", "!="):
        return False
    kinds = sorted((part.kind, part.text[:1] in "\"'" or part.text in _NAMES) for part in node.parts)
    return kinds == [("literal", True), ("name", True)]


def _needles(node: ExpressionNode, value_of: Literal) -> tuple[str, tuple[str, ...]] | None:
    """The text that a part looks into, and what must stand in it, one or the other, for the part to be true."""
    if node.kind == "binary" and node.text == "||":
        return _either([_needles(part, value_of) for part in node.parts])
    if node.kind != "method" or len(node.parts) != 2 or node.parts[1].kind != "literal":
        return None
    path, value = _path(node.parts[0]), value_of(node.parts[1].text)
    if path not in _TEXTS or not isinstance(value, str) or not value.isascii():
        return None
    if node.text in ("contains", "startsWith", "endsWith"):
        return path, (value,)
    return (path, found) if node.text == "matches" and (found := literals_of(value)) else None


def _either(found: list[tuple[str, tuple[str, ...]] | None]) -> tuple[str, tuple[str, ...]] | None:
    """What must stand in a text for one of several parts to be true, if all of them look into the same text."""
    known = [part for part in found if part is not None]
    if len(known) < len(found) or len({path for path, _ in known}) != 1:
        return None
    return known[0][0], tuple(needle for _, needles in known for needle in needles)


def _path(node: ExpressionNode) -> str:
    if node.kind == "select":
        return f"{_path(node.parts[0])}.{node.text}"
    return node.text if node.kind == "name" else ""


def literals_of(pattern: str) -> tuple[str, ...]:
    """Texts of which one stands in whatever the pattern matches; none if that cannot be said easily."""
    if "(?" in pattern or "\\Q" in pattern or "\n" in pattern:
        return ()
    found = [_longest_literal(branch) for branch in _branches(pattern)]
    return tuple(found) if all(len(literal) >= 2 for literal in found) else ()


def _branches(pattern: str) -> Iterator[str]:
    """The alternatives at the top of a pattern, each without its groups and character classes.

    What is left out becomes a line break, which no literal has.
    """
    depth, branch, at = 0, "", 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            escaped = pattern[at + 1 : at + 2]
            if escaped in _SPECIAL or escaped in "-/ ":
                branch += "" if depth else f"\0{escaped}"  # a character as it is
                at += 2
                continue
            yield ""  # a class or an assertion, such as \b or \x41: nothing is known
            return
        if char == "[":
            end = pattern.find("]", at + 2 if pattern[at + 1 : at + 2] != "^" else at + 3)
            if end < 0 or "[" in pattern[at + 1 : end] or "\\" in pattern[at:end]:
                yield ""
                return
            at = end
            branch += "" if depth else "\n"
        elif char == "(":
            depth += 1
            branch += "\n" if depth == 1 else ""
        elif char == ")":
            depth -= 1
        elif char == "|" and not depth:
            yield branch
            branch = ""
        elif not depth:
            branch += char
        at += 1
    yield branch


_PIECE = re.compile(r"\0(?P<escaped>.)|(?P<plain>[^\\.^$*+?{}\[\]|()\n\0])|(?P<other>.|\n)", re.DOTALL)


def _longest_literal(branch: str) -> str:
    """The longest run of characters that must stand in a match."""
    best = run = ""
    pieces = list(_PIECE.finditer(branch))
    for at, piece in enumerate(pieces):
        char = piece["escaped"] or piece["plain"]
        follows = pieces[at + 1][0] if at + 1 < len(pieces) else ""
        if piece["other"] == "{":
            return ""  # what a count says is not read here
        if char is None:
            run = ""
        elif follows and follows in "*?":
            run = ""  # it may be missing
        else:
            run += char
            best = max(best, run, key=len)
            if follows == "+":
                run = ""
    return best
