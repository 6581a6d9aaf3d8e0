"""Messages with places for what a step says: `{target.command}` becomes the command.

A place is a dotted path into the step's JSON, and nothing more: no attributes, no formatting, one
pass, so that what is filled in is never read again. Whatever else stands in braces is left alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from ..errors import UnknownName
from ..lifecycle import EVENTS, HEADER, Step, iter_events

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
        """The message about this step, as `censor` leaves it. What the step does not say is left empty."""
        return "".join(self.parts(step, censor))

    def parts(self, step: Step, censor: Callable[[Any], Any] | None = None) -> list[str]:
        """The pieces of the message: every second one is what stands in a place."""
        parts = list(self._parts)
        parts[1::2] = [_text(step, path.split("."), censor) for path in self.paths]
        return parts


def _text(step: Step, path: list[str], censor: Callable[[Any], Any] | None) -> str:
    name, *rest = path
    value: Any = getattr(step, name, None) if name in names_of(step.event) else None
    try:
        value = msgspec.to_builtins(value)
    except (TypeError, RecursionError):  # `state` may hold anything
        return ""
    if censor is not None:
        value = censor({name: value})[name]
    for part in rest:
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and len(part) < 10 and int(part) < len(value):
            value = value[int(part)]
        else:
            return ""
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # half of a pair, which only ASCII can show
        return json.dumps(value)
    except (TypeError, RecursionError):
        return ""
