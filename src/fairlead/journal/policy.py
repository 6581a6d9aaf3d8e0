"""The policy id: a digest of everything that was in force, so that two decisions can be told to stand on the same.

The policy itself is a text of the journal, kept once, under that very digest.
"""

from __future__ import annotations

import types
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

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
    return {**options, "on": hook.described_events, "version": version_of(hook)}


def version_of(hook: Hook) -> str:
    """A digest of what a hook does, as far as that can be seen: its entry in a file, or the code of its function."""
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
    return sha256(f"{type(fn).__qualname__} {shown} {seen} {given}".encode(errors="replace")).hexdigest()[:16]


def _told(value: Any) -> str:
    """A value, in words that are the same in every process; of an object, only its type."""
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(map(_told, value)))}}}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(_told, value))})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_told(key)}: {_told(item)}' for key, item in value.items())}}}"
    plain = value is None or value is ... or isinstance(value, (bool, int, float, complex, str, bytes))
    return repr(value) if plain else type(value).__qualname__


def _seen(code: types.CodeType) -> str:
    """Code without where it stands."""
    constants = (_seen(item) if isinstance(item, types.CodeType) else _told(item) for item in code.co_consts)
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {' '.join(constants)}"
