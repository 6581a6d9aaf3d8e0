"""Judges equal steps once, where every hook is a pure function of some fields of the step.

Rules are pure, and so are packs that remember nothing of a session. The key of a step holds every field that its hooks
read or filter on. A rule that fails on a step fails on each equal one: its failure is part of the answer that is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..config.restricted import RestrictedHook
from ..hook import Hook
from ..lifecycle import EVENTS, Event, Step
from ..packs.judging import PackGate
from ..runners.rule import Rule
from ..tools import TARGET_FIELDS

if TYPE_CHECKING:
    from ..registry import Hooks
    from .judge import Judged

SIZE: Final = 50_000
"""Answers that are kept. A full memo is emptied."""
_OF_TOOL: Final = frozenset({"tool", "kind", "safety", "target", "args"})
_PLAIN: Final = frozenset({str, int, bool, type(None)})

KeyFn = Callable[[Any], Any]


class Memo:
    """Answers of one policy, by what its hooks read of a step. `inert` hooks do nothing."""

    def __init__(self, hooks: Hooks, external: frozenset[str], inert: frozenset[str]) -> None:
        self._keys: dict[type[Step], KeyFn] = {}
        self._answers: dict[Any, Judged] = {}
        self._last: Any = None  # the key of the step that was looked up last
        for event in EVENTS.values():
            at_event = [hook for hook in hooks if event.name in hook.events and hook.name not in inert]
            names = _fields_read(at_event, event, external)
            if names is not None and "state" not in event.fields:  # which is rebuilt, and not what was recorded
                names |= _OF_TOOL if hooks.tools and event.about_tool else set()
                self._keys[event.step] = _key_of(names, event)

    def find(self, step: Step) -> Judged | None:
        """The answer on an equal step; None if it must be judged."""
        key_of = self._keys.get(step.__class__)
        self._last = None
        if key_of is None:
            return None
        try:
            key = key_of(step)
            found = self._answers.get(key)
        except (TypeError, ValueError, UnicodeError, RecursionError):  # a value that has no key
            return None
        self._last = key
        return found

    def keep(self, judged: Judged) -> None:
        """Keep the answer on the step that was looked up last."""
        if self._last is not None:
            if len(self._answers) >= SIZE:
                self._answers.clear()
            self._answers[self._last] = judged


def _fields_read(hooks: list[Hook], event: Event[Any], external: frozenset[str]) -> set[str] | None:
    """The fields that these hooks read, such as `target.command`; None if one of them is not pure, or reads all."""
    names: set[str] = {"host"}
    for hook in hooks:
        read = None if hook.name in external else _reads_of(hook)
        if read is None:
            return None
        names |= read
        names |= {name for name in ("agent", "outcome") if getattr(hook, name) is not None and name in event.types}
        names |= _OF_TOOL if hook.view is not None else set()
    return names | ({"tool", "kind", "safety"} if event.about_tool else set())


def is_pure(hook: Hook) -> bool:
    """Whether a hook depends on the step alone, and leaves nothing behind."""
    return _reads_of(hook) is not None


def depends_on_state(hook: Hook) -> bool:
    """Whether a hook may read or edit the state of a session. A pack has its own keys in the store, and no more."""
    return not is_pure(hook) and not isinstance(_function_of(hook), PackGate)


def _function_of(hook: Hook) -> Any:
    return hook.fn.fn if isinstance(hook.fn, RestrictedHook) else hook.fn


def _reads_of(hook: Hook) -> set[str] | None:
    fn = _function_of(hook)
    if hook.quarantine is not None:
        return None
    if isinstance(fn, Rule):
        return fn.reads
    if isinstance(fn, PackGate):
        return None if fn.remembers else {"cwd", *_OF_TOOL}
    return set(_OF_TOOL) if hook.layer == "builtin" and hook.name.endswith(".unknown_tool") else None


def _key_of(names: set[str], event: Event[Any]) -> KeyFn:
    """The function that makes the key of a step."""
    direct: set[str] = {"event"}
    encoded: set[str] = set()
    for name in names:
        field, _, part = name.partition(".")
        if field not in event.types:
            continue
        if field == "target" and part in TARGET_FIELDS:
            direct.add(name)
        elif field in ("target", "agent") or _is_plain(event.types[field]):
            direct.add(field)  # structs without lists, or plain values
        else:
            encoded.add(field)
    get = attrgetter(*sorted(direct))
    if not encoded:
        return get
    values, encode = attrgetter(*sorted(encoded), "event"), msgspec.json.Encoder().encode
    return lambda step: (get(step), encode(values(step)))


def _is_plain(hint: Any) -> bool:
    """Whether a field of this type always holds a value that can be a key as it is."""
    options = getattr(hint, "__args__", (hint,))
    return all(isinstance(option, str) or option in _PLAIN for option in options)
