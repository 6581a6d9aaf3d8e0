"""The policy id: a digest of everything that was in force, so that two decisions can be told to stand on the same.

The policy itself is a text of the journal, kept once, under that very digest.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from ..hook import form_of
from ..redaction import process_redactor
from .entry import legible

if TYPE_CHECKING:
    from ..hook import Hook
    from ..table import Table

_OPTIONS = (
    "name", "phase", "priority", "layer", "source", "timeout", "on_failure", "enforce", "locked", "detached",
    "tool", "kind", "safety", "outcome", "agent", "host",
)  # fmt: skip


Policy = tuple[bytes, bytes]
"""A digest, and the text it is of."""


def policy_of(table: Table) -> Policy:
    """The policy of a table: each hook, what it applies to, and a digest of what it does. Worked out once."""
    if table.policy is None:
        # With the process's own redactor: the same policy has the same id, whatever variables a caller brings.
        described = process_redactor().value([_described(hook) for hook in table.registered])
        text = msgspec.json.encode(legible(described))
        table.policy = (sha256(text).digest(), text)
    return table.policy


def _described(hook: Hook) -> dict[str, Any]:
    options = {name: value for name in _OPTIONS if (value := getattr(hook, name)) not in (None, False)}
    return {**options, "on": hook.described_events, "form": form_of(hook), "version": version_of(hook)}


def version_of(hook: Hook) -> str:
    """A digest of what a hook does, as far as that can be seen: its entry in a file, or its function.

    Of a function that is its code, its defaults, and what it reads from around it: closures, globals, its object.
    """
    if hook.version is not None:
        return hook.version
    fn: Any = hook.fn
    given: list[str] = []
    while isinstance(fn, partial):
        given.append(_told((fn.args, fn.keywords)))
        fn = fn.func
    given.append(_told((getattr(fn, "__defaults__", None), getattr(fn, "__kwdefaults__", None))))
    code = getattr(fn, "__code__", None) or getattr(type(fn).__call__, "__code__", None)
    seen = _seen(code) if isinstance(code, types.CodeType) else ""
    shown = repr(fn) if " at 0x" not in repr(fn) else ""
    told = f"{type(fn).__qualname__} {shown} {seen} {given} {_Surroundings().of(fn)}"
    return sha256(told.encode(errors="replace")).hexdigest()[:16]


class _Surroundings:
    """What functions read from around them, function by function. What cannot be told in words counts by its type."""

    def __init__(self) -> None:
        self._known: set[int] = set()
        self._left = FUNCTIONS

    def of(self, fn: Any) -> str:
        """The values of a function's closure, of the globals that it names, and of the object that it belongs to."""
        owner = getattr(fn, "__self__", None) if isinstance(fn, types.MethodType) else fn
        function = getattr(fn, "__func__", fn)
        if not isinstance(function, types.FunctionType):
            function = type(fn).__dict__.get("__call__")
        told: list[str] = []
        if isinstance(function, types.FunctionType) and id(function) not in self._known and self._left > 0:
            self._known.add(id(function))
            self._left -= 1
            found = {**_cells(function), **_globals(function)}
            told += [f"{name}={self._value(value)}" for name, value in sorted(found.items())]
        if not isinstance(owner, (type, types.ModuleType, types.FunctionType)):
            own = getattr(owner, "__dict__", None)
            told += [f".{name}={self._value(value)}" for name, value in sorted((own or {}).items())]
        return f"[{', '.join(told)}]"

    def _value(self, value: Any) -> str:
        if isinstance(value, types.FunctionType):
            return f"{value.__qualname__} {_seen(value.__code__)} {self.of(value)}"
        return _told(value)


FUNCTIONS = 100
"""Functions that one hook's version looks into."""


def _cells(function: types.FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        with suppress(ValueError):  # of a cell that is still empty
            found[name] = cell.cell_contents
    return found


def _globals(function: types.FunctionType) -> dict[str, Any]:
    """The globals that a function names, or a function inside it. Modules and builtins are somebody else's."""
    known = function.__globals__
    return {
        name: known[name]
        for name in _names(function.__code__)
        if name in known and not isinstance(known[name], types.ModuleType)
    }


def _names(code: types.CodeType) -> set[str]:
    inner = (_names(item) for item in code.co_consts if isinstance(item, types.CodeType))
    return set(code.co_names).union(*inner)


MANY = 10_000
"""Items of a container that count, one by one. Of a larger one, the rest counts by its number."""


def _told(value: Any, depth: int = 0) -> str:
    """A value, in words that are the same in every process; of an object, only its type."""
    if depth > DEEP:
        return type(value).__qualname__
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(_told(item, depth + 1) for item in _some(value)))}}}{len(value)}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(_told(item, depth + 1) for item in _some(value))}){len(value)}"
    if isinstance(value, dict):
        told = (f"{_told(key, depth + 1)}: {_told(item, depth + 1)}" for key, item in _some(value.items()))
        return f"{{{', '.join(told)}}}{len(value)}"
    plain = value is None or value is ... or isinstance(value, (bool, int, float, complex, str, bytes, re.Pattern))
    return repr(value) if plain else type(value).__qualname__


DEEP = 20


def _some(items: Iterable[Any]) -> Iterator[Any]:
    return islice(iter(items), MANY)


def _seen(code: types.CodeType) -> str:
    """Code without where it stands."""
    constants = (_seen(item) if isinstance(item, types.CodeType) else _told(item) for item in code.co_consts)
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {' '.join(constants)}"
