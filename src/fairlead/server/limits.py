"""The limits of a request.

A request beyond them is refused, and its caller applies its failure policy.

The limits bound the time of each single call into C. Python runs no other thread during such a call, so a longer one
would delay every other request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..errors import FairleadError
from ..hosts.clis.mapping import Identity
from ..lifecycle import HEADER, Agent, Step

BODY = 8 << 20
"""Bytes of a request."""
LARGE, HUGE = 16 << 10, 64 << 10
"""Bytes from which a request is handled on a thread, and in another process: see `large`."""
VALUES = 50_000
"""Values in a request: texts, numbers, objects and lists."""
ESCAPES = 3_000_000
"""Backslashes in a request. An escaped character takes ten times as long to decode and to encode."""
ARGUMENTS = 1 << 20
"""Bytes of a tool call's arguments, as JSON. No model writes that much, and hooks read all of it."""
NAME, PATH = 1024, 4096
"""Characters of an id or a name, and of the working folder."""
VARIABLES = 128 << 10
"""Characters of all variables in a request."""


class TooLarge(FairleadError):
    """A request is beyond one of the limits."""


class Overloaded(FairleadError):
    """The daemon has too much to do. The caller applies its failure policy."""


def check_json(body: bytes) -> None:
    """Raise `TooLarge` for JSON that would take long to decode, without decoding it."""
    if body.count(b"\\") > ESCAPES:
        raise TooLarge(f"at most {ESCAPES:,} backslashes")
    # Every other piece is outside of all strings. Invalid JSON may have more of them, and is refused later.
    pieces = body.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"', 4 * VALUES)
    outside = b"".join(pieces[::2])
    if len(pieces) > 4 * VALUES or sum(map(outside.count, (b",", b"[", b"{"))) > VALUES:
        raise TooLarge(f"at most {VALUES:,} values: texts, numbers, objects and lists")


def check_arguments(args: Any) -> None:
    """Raise `TooLarge` for tool arguments that hooks could not read in time."""
    if len(msgspec.json.encode(args, enc_hook=str)) > ARGUMENTS:
        raise TooLarge(f"the arguments of a tool call are at most {ARGUMENTS >> 20} MiB of JSON")


def check_variables(variables: Mapping[str, str | None]) -> None:
    """Raise `TooLarge` for an environment that is larger than a program's can be."""
    if sum(len(name) + len(value or "") for name, value in variables.items()) > VARIABLES:
        raise TooLarge(f"the variables of a request are at most {VARIABLES >> 10} KiB")


def check_step(step: Step) -> None:
    """Raise `TooLarge` for a step with names or ids that are too long to keep or look up."""
    for name in _NAMES:
        value = getattr(step, name, None)
        if value is not None and len(value) > (PATH if name == "cwd" else NAME):
            raise TooLarge(f"{name} is at most {PATH if name == 'cwd' else NAME} characters")
    if step.agent is not None:
        _check_agent(step.agent)


def check_event(who: Identity, fields: Mapping[str, Any]) -> None:
    """Raise `TooLarge` for a CLI's event with such names or ids, before any of it is remembered."""
    named = {"session_id": who.session_id, "turn_id": who.turn_id}
    for name, value in (named | {name: fields.get(name) for name in ("tool", "call_id")}).items():
        if isinstance(value, str) and len(value) > NAME:
            raise TooLarge(f"{name} is at most {NAME} characters")
    if who.agent is not None:
        _check_agent(who.agent)


def _check_agent(agent: Agent) -> None:
    if any(name is not None and len(name) > NAME for name in (agent.id, agent.name, agent.parent)):
        raise TooLarge(f"the id and the name of an agent are at most {NAME} characters")


_NAMES = ("tool", "call_id", "origin", *(name for name in HEADER if name not in ("agent", "sequence", "metadata")))
