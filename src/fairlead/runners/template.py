"""Message templates over a step: `{target.command}` becomes the command.

A place is a dotted path into the step's JSON, and nothing more: no attributes, no formatting, one
pass, so that what is filled in is never read again. Whatever else stands in braces is left alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from ..errors import RunnerFailed, UnknownName
from ..lifecycle import EVENTS, HEADER, Step, iter_events

_DEEPEST = 20  # parts of a path that is named
_PLACE = re.compile(r"\{([A-Za-z_]\w*(?:\.\w+)*)\}", re.ASCII)


def names_of(event: str) -> tuple[str, ...]:
    """What a step of this event has, by the names that templates and rules use."""
    return ("event", *HEADER, *EVENTS[event].fields)


class Template:
    """A message to be filled in. Checked when it is made: a misspelt name is found then."""

    def __init__(self, text: str, on: str | Iterable[str] = ()) -> None:
        self.text = text
        self._parts = _PLACE.split(text)  # text, path, text, path, ..., text
        events = list(iter_events(on))
        for path in self._parts[1::2]:
            name = path.partition(".")[0]
            for event in events:
                if name not in names_of(event.name):
                    raise UnknownName("field", name, names_of(event.name), f" of {event.name} in {text!r}")
            anywhere = {known for event in EVENTS for known in names_of(event)}
            if name not in anywhere:
                raise UnknownName("field", name, anywhere, f" of any event in {text!r}")

    @property
    def paths(self) -> list[str]:
        """What the message has places for, in order."""
        return self._parts[1::2]

    def fill(self, step: Step, censor: Callable[[Any], Any] | None = None) -> str:
        """The message about this step, as `censor` leaves it. What is not set, or is no JSON, is left empty."""
        parts = list(self._parts)
        for at, path in enumerate(self.paths):
            try:
                parts[2 * at + 1] = _text(step, path.split("."), censor)
            except NotJSON:  # `state` may hold anything
                parts[2 * at + 1] = ""
        return "".join(parts)

    def parts(self, step: Step, censor: Callable[[Any], Any] | None = None) -> list[str]:
        """The pieces of the message: every second one is what stands in a place. Raises `NotJSON`.

        What is judged, or run, must not become empty because it could not be written.
        """
        parts = list(self._parts)
        parts[1::2] = [_text(step, path.split("."), censor) for path in self.paths]
        return parts


class NotJSON(RunnerFailed):
    """A place of a template is for something that is no JSON. It names where in the step that is."""

    def __init__(self, path: str, kind: str) -> None:
        self.path, self.kind = path, kind
        super().__init__(f"could not be shown: {path}; {kind} is no JSON value")


def _text(step: Step, path: list[str], censor: Callable[[Any], Any] | None) -> str:
    name, *rest = path
    field: Any = getattr(step, name, None) if name in names_of(step.event) else None
    try:
        value = msgspec.to_builtins(field, builtin_types=(bytes, bytearray))  # so that a censor sees what is in them
        if censor is not None:
            value = censor({name: value})[name]
        for part in rest:
            if isinstance(value, dict):
                value = value.get(part)
            elif isinstance(value, list) and part.isdigit() and len(part) < 10 and int(part) < len(value):
                value = value[int(part)]
            else:
                return ""
        return _written(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise NotJSON(*_culprit(name, field)) from None


def _written(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, (bytes, bytearray)):
        return str(msgspec.to_builtins(value))
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # half of a pair, which only ASCII can show
        return json.dumps(msgspec.to_builtins(value))


def _culprit(path: str, value: Any) -> tuple[str, str]:
    """Where in a value that is no JSON the part is for which it is none, and of which type that is."""
    for _ in range(_DEEPEST):
        items = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
        )
        inside = next(((key, item) for key, item in items if not _is_json(item)), None)
        if inside is None:
            break
        path, value = f"{path}.{inside[0]}", inside[1]
    return path, f"a {type(value).__name__}"


def _is_json(value: Any) -> bool:
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        return True
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False
    return True
