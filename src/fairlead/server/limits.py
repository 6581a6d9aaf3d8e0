"""What a request may hold. One that holds more is refused, and its caller goes by its failure policy.

The limits bound the time that each single call into C takes. Python runs nothing else meanwhile, whichever thread
makes the call, so a longer one would keep every other request waiting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..errors import FairleadError
from ..hosts.host import Identity
from ..lifecycle import HEADER, Agent, Step

BODY = 8 << 20
"""Bytes of a request."""
LARGE, HUGE = 16 << 10, 64 << 10
"""Bytes from which a request is worked on elsewhere than on the event loop, and in another process: see `large`."""
VALUES = 50_000
"""Values in a request: texts, numbers, objects and lists."""
ESCAPES = 3_000_000
"""Backslashes in a request. A character that is escaped takes ten times as long to read and to write."""
ARGUMENTS = 1 << 20
"""Bytes of a tool call's arguments, as JSON. No model writes as much, and hooks read all of them."""
NAME, PATH = 1024, 4096
"""Characters of an id or a name, and of the working folder."""
VARIABLES = 128 << 10
"""Characters of all variables that a request brings."""


class TooLarge(FairleadError):
    """A request that holds more than it may."""


class Overloaded(FairleadError):
    """There is more to do than can be done. The caller goes by its failure policy."""


def check_json(body: bytes) -> None:
    """Raise `TooLarge` for JSON that would take long to decode. Nothing of it is decoded to find out."""
    if body.count(b"\\") > ESCAPES:
        raise TooLarge(f"at most {ESCAPES:,} backslashes")
    # Every other piece is outside of all texts. In JSON that is not valid there may be more, and it is refused later.
    pieces = body.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"', 4 * VALUES)
    outside = b"".join(pieces[::2])
    if len(pieces) > 4 * VALUES or sum(map(outside.count, (b",", b"[", b"{"))) > VALUES:
        raise TooLarge(f"at most {VALUES:,} values: texts, numbers, objects and lists")


def check_arguments(args: Any) -> None:
    """Raise `TooLarge` for arguments of a tool call that hooks could not read in time."""
    if len(msgspec.json.encode(args, enc_hook=str)) > ARGUMENTS:
        raise TooLarge(f"the arguments of a tool call are at most {ARGUMENTS >> 20} MiB of JSON")


def check_variables(variables: Mapping[str, str | None]) -> None:
    """Raise `TooLarge` for an environment that no program has."""
    if sum(len(name) + len(value or "") for name, value in variables.items()) > VARIABLES:
        raise TooLarge(f"the variables of a request are at most {VARIABLES >> 10} KiB")


def check_step(step: Step) -> None:
    """Raise `TooLarge` for a step whose names and ids are too long to be kept or looked up."""
    for name in _NAMES:
        value = getattr(step, name, None)
        if value is not None and len(value) > (PATH if name == "cwd" else NAME):
            raise TooLarge(f"{name} is at most {PATH if name == 'cwd' else NAME} characters")
    if step.agent is not None:
        _check_agent(step.agent)


def check_moment(who: Identity, fields: Mapping[str, Any]) -> None:
    """Raise `TooLarge` for a CLI's moment with such names and ids, before any of it is remembered."""
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
