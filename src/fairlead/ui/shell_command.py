"""A recorded step as a command to paste: `fairlead test before_tool --set tool=bash ...`."""

from __future__ import annotations

import shlex
from typing import Any

import msgspec

from ..lifecycle import EVENTS

_FOLLOWS = frozenset({"kind", "target", "safety", "call_id"})
"""What follows from the tool and its arguments, and what no hook judges."""
_USUAL = {"origin": "chat", "attempt": 1}
LONGEST = 20_000
"""Characters of a command that a terminal takes well."""


def as_test_command(step: dict[str, Any]) -> str | None:
    """The command that asks the configured hooks about a step; None for one that a command cannot hold."""
    event = EVENTS.get(str(step.get("event")))
    if event is None:
        return None
    words = ["fairlead", "test", event.name]
    if folder := step.get("cwd"):
        words += ["-C", str(folder)]
    if host := step.get("host"):
        words += ["--host", str(host)]
    for name in event.fields:
        if name not in _FOLLOWS and step.get(name) is not None and step[name] != _USUAL.get(name):
            words += _settings(name, step[name])
    command = shlex.join(words)
    printable = command.replace("\n", "").replace("\t", "").isprintable()
    return command if printable and len(command) <= LONGEST else None


def _settings(name: str, value: Any) -> list[str]:
    if name == "args" and isinstance(value, dict) and value and all(_is_plain(key) for key in value):
        return [word for key, item in value.items() for word in _settings(f"args.{key}", item)]
    if isinstance(value, str):
        return ["--set", f"{name}={value}"]
    return ["--set", f"{name}:={msgspec.json.encode(value, enc_hook=str).decode()}"]


def _is_plain(key: str) -> bool:
    """Whether a key can be written after `args.`: a point or an equals sign would end it."""
    return bool(key) and not set(key) & {".", "=", ":"}
