"""Where a record is not exact: values that JSON cannot hold, and that are written down as something else.

A step that is read back from the journal differs there from the one that was judged, so a replay must not trust its
answer. Each place is named together with what stood there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from ..frozen import FrozenDict, FrozenList

LIMIT: Final = 100
"""Places that one record names. A record with more has lost so much that the rest does not matter."""
DEEP: Final = 250
"""Levels beyond which the redactor cuts a value off, which the record says elsewhere."""

_EXACT: Final = frozenset({int, bool, type(None)})
_DICTS: Final[frozenset[type]] = frozenset((dict, FrozenDict))
_LISTS: Final[frozenset[type]] = frozenset((list, FrozenList))


def inexact(value: Any, place: str) -> list[list[str]]:
    """The places in a value that are not read back as they are, each with the kind of what stood there.

    Halves of characters are not looked for: see `halves`.
    """
    found: list[list[str]] = []
    _look(value, place, _odd, found, 0)
    return found


def inexact_fields(fields: Mapping[str, Any], place: str) -> list[list[str]]:
    """The same for the fields of a step. Those with a type of their own are read back as that."""
    found: list[list[str]] = []
    for name, value in fields.items():
        kind = value.__class__
        if kind is not str and kind not in _EXACT and not isinstance(value, msgspec.Struct):
            found += inexact(list(value) if kind is tuple else value, f"{place}.{name}")
    return found


def halves(value: Any, place: str) -> list[list[str]]:
    """The places of texts with half a character in them: few records have any, and looking for them takes long."""
    found: list[list[str]] = []
    _look(value, place, _half, found, 0)
    return found


def _look(
    value: Any, place: str, kind_of: Callable[[Any], str | None], found: list[list[str]], depth: int
) -> None:  # fmt: skip
    kind = value.__class__
    if kind in _EXACT or depth > DEEP or len(found) >= LIMIT:
        return
    if kind in _DICTS:
        for key, item in value.items():
            odd = kind_of(key) if key.__class__ is str or kind_of is _half else key.__class__.__name__
            if odd is not None:
                found.append([_legible(place), f"{odd} as a key"])
            if item.__class__ not in _EXACT:
                _look(item, f"{place}.{key}", kind_of, found, depth + 1)
    elif kind in _LISTS:
        for number, item in enumerate(value):
            if item.__class__ not in _EXACT:
                _look(item, f"{place}.{number}", kind_of, found, depth + 1)
    elif (odd := kind_of(value)) is not None:
        found.append([_legible(place), odd])


def _odd(value: Any) -> str | None:
    """What JSON cannot hold, in a word."""
    kind = value.__class__
    if kind is float:
        return None if math.isfinite(value) else str(value)
    return None if kind is str else str(kind.__name__)


def _half(value: Any) -> str | None:
    try:
        if isinstance(value, str):
            value.encode()
    except UnicodeEncodeError:
        return "half a character"
    return None


def _legible(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
