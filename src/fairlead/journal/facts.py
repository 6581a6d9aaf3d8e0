"""What the journal records of a decision, as plain data. `entry.py` makes a redacted entry of it."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from ..errors import describe
from ..wire.decisions import encode_decision

if TYPE_CHECKING:
    from ..decision import Decision
    from ..engine.chain import Table
    from ..session import Session


def decision_facts(decision: Decision[Any], at: int, took: float | None) -> dict[str, Any]:
    """The facts that are recorded of a decision."""
    facts: dict[str, Any] = {"kind": "decision", "at": at, "took": took, "control": decision.control}
    try:
        facts |= encode_decision(decision)
    except Exception as error:  # a decision can hold any object of the host
        event = {"event": decision.event, "session_id": decision.original.session_id}
        return facts | {"step": event, "unwritable": describe(error)}
    if decision.contributions and (hook := decision.hook) is not None:
        facts["winner"] = {"hook": hook, "cause": decision.cause}
    elif decision.effect is not None and (names := [one.hook.name for one in decision.verdicts if one.verdict.changes]):
        facts["winner"] = {"hook": names[-1], "cause": "policy"}  # the host could not apply its change
    return facts


SessionContext = tuple["Session | None", Any, bool, "str | None"]
"""Of a session: its parent, its capabilities, whether it is lenient, and its caller."""


def context_facts(
    decision: Decision[Any], context: SessionContext | None, mode: str | None, lossy: list[Any]
) -> dict[str, Any]:
    """The facts about the session and enforcement of a decision, where they are unusual."""
    facts: dict[str, Any] = {}
    if mode is not None:
        facts["enforcement"] = mode
    if lossy:
        facts["lossy"] = lossy
    if context is not None:
        parent, capabilities, lenient, caller = context
        if parent is not None:
            facts["parent"] = parent.session_id
        if capabilities is not None:
            facts["can"] = sorted(capabilities.get(decision.event, ()))
        if lenient:
            facts["lenient"] = True
        if caller is not None:
            facts["user"] = caller
    return facts


def project_facts(table: Table, key: bytes | None) -> dict[str, Any]:
    """The project's folder, and a digest of the variables that its hooks see, keyed so that they cannot be guessed."""
    facts: dict[str, Any] = {} if table.hooks.root is None else {"root": table.hooks.root}
    variables = table.hooks.variables
    if variables is not None and key is not None:
        if table.variables is None:
            text = msgspec.json.encode(sorted(variables.items()))
            table.variables = blake2b(text, digest_size=8, key=key).hexdigest()
        facts["variables"] = table.variables
    return facts


def enforcement_of(switch: Any) -> str:
    """Why verdicts take no effect: the user has paused enforcement, or set monitor mode."""
    setting = getattr(switch, "setting", None)
    return "paused" if getattr(setting, "until", None) is not None else "monitor"


def with_current_state(decision: Decision[Any], state: Any) -> Decision[Any]:
    """A decision with a copy of its step's state, which hooks may edit before the record is written."""
    now = _plain(state)
    step = replace(decision.step, state=now)
    if decision.step is decision.original:
        return replace(decision, step=step, original=step)
    before = decision.original.state
    original = now if before is state else _plain(before)
    return replace(decision, step=step, original=replace(decision.original, state=original))


def _plain(state: Any) -> Any:
    try:
        return msgspec.to_builtins(state, enc_hook=repr, str_keys=True, builtin_types=(bytes, bytearray))
    except Exception:
        return repr(type(state))
