"""Finds the values of a step that JSON cannot hold, and that are recorded as something else.

There, a step that is read from the journal differs from the one that was judged, so a replay cannot trust its result.
A record names each such place and the type of its value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from ..frozen import FrozenDict, FrozenList

LIMIT: Final = 100
"""Places that one record names. If there are more, the rest does not matter."""
DEEP: Final = 250
"""Levels beyond which the redactor cuts off a value, which the record lists under `redacted`."""

_EXACT: Final = frozenset({int, bool, type(None)})
_DICTS: Final[frozenset[type]] = frozenset((dict, FrozenDict))
_LISTS: Final[frozenset[type]] = frozenset((list, FrozenList))


def inexact(value: Any, place: str) -> list[list[str]]:
    """The places in a value that are not read back unchanged, each with the type of its value.

    This does not find lone surrogates: see `lone_surrogates`.
    """
    found: list[list[str]] = []
    _look(value, place, _odd, found, 0)
    return found


def inexact_fields(fields: Mapping[str, Any], place: str) -> list[list[str]]:
    """Like `inexact`, for the fields of a step. Fields that are structs are read back exactly."""
    found: list[list[str]] = []
    for name, value in fields.items():
        kind = value.__class__
        if kind is not str and kind not in _EXACT and not isinstance(value, msgspec.Struct):
            found += inexact(list(value) if kind is tuple else value, f"{place}.{name}")
    return found


def lone_surrogates(value: Any, place: str) -> list[list[str]]:
    """The places of texts with lone surrogates. Few records have any, and the search is slow."""
    found: list[list[str]] = []
    _look(value, place, _lone_surrogate, found, 0)
    return found


def _look(
    value: Any, place: str, kind_of: Callable[[Any], str | None], found: list[list[str]], depth: int
) -> None:  # fmt: skip
    kind = value.__class__
    if kind in _EXACT or depth > DEEP or len(found) >= LIMIT:
        return
    if kind in _DICTS:
        for key, item in value.items():
            odd = kind_of(key) if key.__class__ is str or kind_of is _lone_surrogate else key.__class__.__name__
            if odd is not None:
                found.append([_escape(place), f"{odd} as a key"])
            if item.__class__ not in _EXACT:
                _look(item, f"{place}.{key}", kind_of, found, depth + 1)
    elif kind in _LISTS:
        for number, item in enumerate(value):
            if item.__class__ not in _EXACT:
                _look(item, f"{place}.{number}", kind_of, found, depth + 1)
    elif (odd := kind_of(value)) is not None:
        found.append([_escape(place), odd])


def _odd(value: Any) -> str | None:
    """The type of a value that JSON cannot hold; None if JSON can."""
    kind = value.__class__
    if kind is float:
        return None if math.isfinite(value) else str(value)
    return None if kind is str else str(kind.__name__)


def _lone_surrogate(value: Any) -> str | None:
    try:
        if isinstance(value, str):
            value.encode()
    except UnicodeEncodeError:
        return "half a character"
    return None


def _escape(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
