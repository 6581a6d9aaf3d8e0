"""Read-only copies of JSON-like values, so that a hook cannot edit a step behind the engine's back.

They are real dicts and lists: they compare, iterate and encode like any other. Only
changing one raises, and the error says what to do instead.
"""

from __future__ import annotations

from typing import Any, NoReturn

from .errors import ReadOnlyError


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    raise ReadOnlyError("steps are read-only: return change(...) to change what the agent does")


class FrozenDict(dict[str, Any]):
    """A dict that cannot be changed. `thaw` gives a plain one."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __deepcopy__(self, memo: object) -> dict[str, Any]:
        return thaw(self)  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (thaw(self),)


class FrozenList(list[Any]):
    """A list that cannot be changed. `thaw` gives a plain one."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __deepcopy__(self, memo: object) -> list[Any]:
        return thaw(self)  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (thaw(self),)


_SCALARS = frozenset({str, int, float, bool, type(None)})
_ATOMS = _SCALARS | {FrozenDict, FrozenList}


def freeze(value: Any) -> Any:
    """A read-only copy, nested values included; what is frozen already is not copied again."""
    kind = value.__class__
    if kind in _ATOMS:
        return value
    if isinstance(value, dict):
        for item in value.values():
            if item.__class__ not in _ATOMS:
                return FrozenDict({key: freeze(nested) for key, nested in value.items()})
        return FrozenDict(value)  # most arguments are flat, and copied in one go
    if isinstance(value, list):
        return FrozenList([freeze(item) for item in value])
    if kind is tuple:
        return tuple(map(freeze, value))
    if isinstance(value, (set, frozenset)):
        return frozenset(value)
    return value


def thaw(value: Any) -> Any:
    """A plain, editable copy of what `freeze` gave: what a host hands to a tool."""
    if isinstance(value, dict):
        return {key: item if item.__class__ in _SCALARS else thaw(item) for key, item in value.items()}
    if isinstance(value, list):
        return [item if item.__class__ in _SCALARS else thaw(item) for item in value]
    if value.__class__ is tuple:
        return tuple(map(thaw, value))
    return value
