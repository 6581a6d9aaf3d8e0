"""Globs over tool names: `*` and `?` match anything, `{a,b}` alternates, all else is itself."""

from __future__ import annotations

import re
from functools import lru_cache

from .errors import RegistrationError


@lru_cache(maxsize=4096)
def compile_glob(pattern: str) -> re.Pattern[str]:
    """A glob as a regular expression, to be used with `fullmatch`. A bad one raises."""
    if not isinstance(pattern, str) or not pattern:
        raise RegistrationError(f"bad glob {pattern!r}: it must be a non-empty string")
    out: list[str] = []
    depth = 0
    for char in pattern:
        if char == "*":
            # Runs of `*` mean one; two `.*` in a row would only make matching slow.
            if not out or out[-1] != ".*":
                out.append(".*")
        elif char == "?":
            out.append(".")
        elif char == "{":
            depth += 1
            out.append("(?:")
        elif char == "}":
            depth -= 1
            if depth < 0:
                raise RegistrationError(
                    f"bad glob {pattern!r}: '}}' without '{{'; did you mean {pattern.replace('}', '')!r}?"
                )
            out.append(")")
        elif char == "," and depth:
            out.append("|")
        else:
            out.append(re.escape(char))
    if depth:
        raise RegistrationError(f"bad glob {pattern!r}: '{{' is never closed; did you mean {pattern + '}' * depth!r}?")
    return re.compile("".join(out), re.DOTALL)


def is_exact(pattern: str) -> bool:
    """True for a plain name, which can be looked up instead of matched."""
    return not any(char in pattern for char in "*?{}")
