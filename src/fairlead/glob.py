"""Globs over tool names: `*` and `?` match anything, `{a,b}` alternates, all else is itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .errors import RegistrationError

LENGTH, BRACES = 10_000, 100
ALTERNATIVES = 1000
"""What the braces of one glob may amount to."""


def compile_glob(pattern: str) -> re.Pattern[str]:
    """A glob as a regular expression, to be used with `fullmatch`. A bad one raises."""
    if not isinstance(pattern, str) or not pattern:
        raise RegistrationError(f"bad glob {pattern!r}: it must be a non-empty string")
    if len(pattern) > LENGTH or pattern.count("{") > BRACES:
        raise RegistrationError(f"bad glob {pattern[:50]!r}...: it is too long, or has too many braces")
    _check_braces(pattern)
    plain: list[str] = []
    for alternative in _alternatives(pattern):
        plain.append(alternative)
        if len(plain) > ALTERNATIVES:
            raise RegistrationError(f"bad glob {pattern!r}: its braces amount to more than {ALTERNATIVES} names")
    return re.compile("|".join(map(_translate, dict.fromkeys(plain))), re.DOTALL)


def is_exact(pattern: str) -> bool:
    """True for a plain name, which can be looked up instead of matched."""
    return not any(char in pattern for char in "*?{}")


def _check_braces(pattern: str) -> None:
    depth = 0
    for char in pattern:
        depth += (char == "{") - (char == "}")
        if depth < 0:
            meant = pattern.replace("}", "")
            raise RegistrationError(f"bad glob {pattern!r}: '}}' without '{{'; did you mean {meant!r}?")
    if depth:
        meant = pattern + "}" * depth
        raise RegistrationError(f"bad glob {pattern!r}: '{{' is never closed; did you mean {meant!r}?")


def _alternatives(pattern: str) -> Iterator[str]:
    """The globs without braces that this one stands for."""
    start = pattern.find("{")
    if start < 0:
        yield pattern
        return
    depth, parts, end = 0, [""], start
    for end in range(start, len(pattern)):
        char = pattern[end]
        depth += (char == "{") - (char == "}")
        if depth == 0:
            break
        if char == "," and depth == 1:
            parts.append("")
        elif end > start:
            parts[-1] += char
    for part in parts:
        yield from _alternatives(pattern[:start] + part + pattern[end + 1 :])


def _translate(pattern: str) -> str:
    """Each `*` ends where what follows it is first found, and nowhere else, so that no name takes long to match."""
    first, *others = ("".join("." if c == "?" else re.escape(c) for c in part) for part in pattern.split("*"))
    if not others:
        return f"(?:{first})"
    *middle, last = others
    return f"(?:{first}{''.join(f'(?:(?!{part}).)*{part}' for part in middle if part)}.*{last})"
