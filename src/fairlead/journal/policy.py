"""The policy id: a digest of all hooks and tool descriptions in force.

Two decisions with the same id were made under the same policy. The journal stores the policy once, under its id.
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
from ..redaction.redactor import process_redactor
from .entry import escape_surrogates

if TYPE_CHECKING:
    from ..engine.chain import Table
    from ..hook import Hook

_OPTIONS = (
    "name", "phase", "priority", "layer", "source", "timeout", "on_failure", "enforce", "locked", "detached",
    "text_limit",
    "tool", "kind", "safety", "outcome", "agent", "host",
)  # fmt: skip


PolicyText = tuple[bytes, bytes]
"""A digest, and the text that it is the digest of."""


def policy_of(table: Table) -> PolicyText:
    """The policy of a table: its hooks, their options and versions, and the described tools.

    Computed once per table.
    """
    if table.policy is None:
        # The process's own redactor: the id must not depend on the variables that a caller brings.
        hooks, tools = [hook_to_builtins(hook) for hook in table.registered], table.hooks.tools.to_builtins()
        described = process_redactor().value({"hooks": hooks, **tools} if tools else hooks)
        text = msgspec.json.encode(escape_surrogates(described))
        table.policy = (sha256(text).digest(), text)
    return table.policy


def hook_to_builtins(hook: Hook) -> dict[str, Any]:
    """What a policy says of one hook: its options, its events, and the version of what it does."""
    options = {name: value for name in _OPTIONS if (value := getattr(hook, name)) not in (None, False)}
    options["on_failure"] = msgspec.to_builtins(hook.on_failure, enc_hook=str)  # which may be a verdict
    return {**options, "on": hook.described_events, "form": form_of(hook), "version": version_of(hook)}


def version_of(hook: Hook) -> str:
    """A digest of what a hook does: of its entry in a file, or of its function.

    The digest of a function covers its code, its defaults, and the closures, globals and object that it reads.
    """
    if hook.version is not None:
        return hook.version
    fn: Any = hook.fn
    arguments: list[str] = []
    while isinstance(fn, partial):
        arguments.append(_stable_text((fn.args, fn.keywords)))
        fn = fn.func
    arguments.append(_stable_text((getattr(fn, "__defaults__", None), getattr(fn, "__kwdefaults__", None))))
    code = getattr(fn, "__code__", None) or getattr(type(fn).__call__, "__code__", None)
    code_text = _code_text(code) if isinstance(code, types.CodeType) else ""
    name = repr(fn) if " at 0x" not in repr(fn) else ""
    text = f"{type(fn).__qualname__} {name} {code_text} {arguments} {_ReadValues().of(fn)}"
    return sha256(text.encode(errors="replace")).hexdigest()[:16]


class _ReadValues:
    """The values that functions read from outside, as text.

    An object without a stable text counts by its type.
    """

    def __init__(self) -> None:
        self._visited: set[int] = set()
        self._left = FUNCTIONS

    def of(self, fn: Any) -> str:
        """The values of a function's closure, of the globals that it names, and of its object."""
        owner = getattr(fn, "__self__", None) if isinstance(fn, types.MethodType) else fn
        function = getattr(fn, "__func__", fn)
        if not isinstance(function, types.FunctionType):
            function = type(fn).__dict__.get("__call__")
        values: list[str] = []
        if isinstance(function, types.FunctionType) and id(function) not in self._visited and self._left > 0:
            self._visited.add(id(function))
            self._left -= 1
            found = {**_cells(function), **_globals(function)}
            values += [f"{name}={self._value(value)}" for name, value in sorted(found.items())]
        if not isinstance(owner, (type, types.ModuleType, types.FunctionType)):
            own = getattr(owner, "__dict__", None)
            values += [f".{name}={self._value(value)}" for name, value in sorted((own or {}).items())]
        return f"[{', '.join(values)}]"

    def _value(self, value: Any) -> str:
        if isinstance(value, types.FunctionType):
            return f"{value.__qualname__} {_code_text(value.__code__)} {self.of(value)}"
        return _stable_text(value)


FUNCTIONS = 100
"""Functions that the version of one hook covers."""


def _cells(function: types.FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        with suppress(ValueError):  # the cell is still empty
            found[name] = cell.cell_contents
    return found


def _globals(function: types.FunctionType) -> dict[str, Any]:
    """The globals that a function, or a function inside it, names.

    Modules and builtins do not count.
    """
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
"""Items of a container that count. The rest of a larger container counts only by its length."""


def _stable_text(value: Any, depth: int = 0) -> str:
    """A text for a value that is the same in every process; for an object, only its type."""
    if depth > DEEP:
        return type(value).__qualname__
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(_stable_text(item, depth + 1) for item in _some(value)))}}}{len(value)}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(_stable_text(item, depth + 1) for item in _some(value))}){len(value)}"
    if isinstance(value, dict):
        items = (
            f"{_stable_text(key, depth + 1)}: {_stable_text(item, depth + 1)}" for key, item in _some(value.items())
        )
        return f"{{{', '.join(items)}}}{len(value)}"
    plain = value is None or value is ... or isinstance(value, (bool, int, float, complex, str, bytes, re.Pattern))
    return repr(value) if plain else type(value).__qualname__


DEEP = 20


def _some(items: Iterable[Any]) -> Iterator[Any]:
    return islice(iter(items), MANY)


def _code_text(code: types.CodeType) -> str:
    """A text for code, without its file and line numbers."""
    constants = (
        _code_text(item) if isinstance(item, types.CodeType) else _stable_text(item) for item in code.co_consts
    )
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {' '.join(constants)}"
