"""Entries: a decision, or a note, as the bytes that are kept and chained.

An entry is one JSON object. Secrets are taken out first, and long texts are kept once, by their
digest: where one stood, the entry says `{"$text": digest}`. What is searched for is also kept in columns, which
follow from the object, so that whoever changes a column is found out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from ..errors import describe
from .exactness import halves, inexact_fields

if TYPE_CHECKING:
    from ..redaction import Redactor
    from .policy import Policy

LONG_TEXT: Final = 512
"""Characters from which a text is kept apart, once."""
LONG_MESSAGE: Final = 128
"""Bytes from which a message of a conversation is, since the next request to the model repeats it."""
TEXT: Final = "$text"
PLAIN: Final = "$plain"

VERSION: Final = 2
"""The version of what is in an entry: its `v`."""
_OWN: Final = (
    "v", "id", "at", "kind", "took", "control", "effect", "enforcement", "can", "lenient", "variables", "machine",
)  # fmt: skip
Call = Callable[..., Any]
OLD_COLUMNS: Final = ("id", "at", "kind", "event", "session", "host", "agent", "tool", "control", "hook", "cause")
"""What records of schema 1 have."""
COLUMNS: Final = (*OLD_COLUMNS, "effect", "user")
"""What is searched for. `effect` is None where the control was carried out as it is."""
REFUSED: Final = ("deny", "stop", "abort")
"""The controls that keep an operation from running."""
FAILED: Final = ("error", "timeout", "malformed", "quarantined", "dropped")
"""The outcomes of hooks that broke."""
WOULD: Final = "would "
"""What a monitored verdict's control begins with, in a run: it was not carried out."""


class Tally(NamedTuple):
    """What a record adds to the counts of its session: 0 or 1 each."""

    denied: int = 0
    failed: int = 0
    changed: int = 0
    asked: int = 0


NOTHING: Final = Tally()


class Entry(msgspec.Struct, frozen=True):
    """What is written: the object, what follows from it, and the long texts that it refers to."""

    body: bytes
    columns: tuple[Any, ...]
    runs: tuple[tuple[Any, ...], ...]
    tally: Tally
    texts: dict[bytes, bytes]


def entry_of(body: Mapping[str, Any], encoded: bytes | None = None, texts: dict[bytes, bytes] | None = None) -> Entry:
    """The entry of an object, or of the bytes that it was decoded from."""
    data = msgspec.json.encode(body) if encoded is None else encoded
    return Entry(data, columns_of(body), runs_of(body), tally_of(body), {} if texts is None else texts)


def make_entry(
    facts: Mapping[str, Any], redactor: Redactor, policy: Policy | None = None, call: Call | None = None
) -> Entry:
    """An entry of some facts. Whatever they hold, there is one: what cannot be written down says so.

    `call(fn, *args)` calls a function elsewhere, for facts that take long to redact.
    """
    try:
        lossy = [place for part in ("step", "left") if part in facts for place in inexact_fields(facts[part], part)]
        if lossy:
            facts = {**facts, "lossy": [*facts.get("lossy", ()), *lossy]}
        plain = msgspec.to_builtins(facts, enc_hook=_shown, str_keys=True, builtin_types=(bytes, bytearray))
        return (call or directly)(_legible_entry, plain, redactor, policy)  # type: ignore[no-any-return]
    except Exception as error:  # whatever others have put into a step
        step: Any = facts.get("step")
        step = step if isinstance(step, Mapping) else {}
        kept = {key: facts[key] for key in ("v", "id", "at", "kind", "took", "control", "effect") if key in facts}
        kept["step"] = {"event": str(step.get("event")), "session_id": _session(step)}
        kept["unwritable"] = describe(error).encode(errors="replace").decode()
        return _entry(kept, redactor, policy)


def directly(fn: Callable[..., Any], *args: Any) -> Any:
    """The call that calls here and now."""
    return fn(*args)


def _legible_entry(plain: dict[str, Any], redactor: Redactor, policy: Policy | None) -> Entry:
    try:
        return _entry(plain, redactor, policy)
    except UnicodeError:  # half a character must not hide what stands beside it
        lossy = [place for part in ("step", "left") if part in plain for place in halves(plain[part], part)]
        named = {"lossy": [*plain.get("lossy", ()), *lossy]} if lossy else {}
        return _entry(legible({**plain, **named}), redactor, policy)


def legible(value: Any) -> Any:
    """The same, with halves of characters made visible."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {legible(key): legible(item) for key, item in value.items()}
    return [legible(item) for item in value] if isinstance(value, (list, tuple)) else value


def _session(step: Mapping[str, Any]) -> str | None:
    found = step.get("session_id")
    return found.encode(errors="replace").decode() if isinstance(found, str) else None


def _shown(value: Any) -> str:
    return f"<{type(value).__name__}>"  # whose own words could be anything


def _entry(plain: dict[str, Any], redactor: Redactor, policy: Policy | None) -> Entry:
    own: dict[str, Any] = {key: plain[key] for key in _OWN if key in plain}  # ours, where a number is no secret
    if "user" in plain and plain["kind"] == "decision":  # whom the system names; a note may name anybody
        own["user"] = plain["user"]
    clean, taken = redactor.record({key: value for key, value in plain.items() if key not in own and key != "runs"})
    texts: dict[bytes, bytes] = {}
    clean = own | {key: _fold(value, texts) for key, value in clean.items()}
    runs = []
    for place, (hook, phase, outcome, took, *details) in enumerate(plain.get("runs") or ()):
        row = [hook, phase, outcome, took]
        if details:
            shown, more = redactor.record(details[0], f"runs.{place}.{len(row)}")
            taken += more
            row.append(_fold(shown, texts))
        runs.append(row)
    if runs:
        clean["runs"] = runs
    if taken:
        clean["redacted"] = [list(one) for one in taken]
    if policy is not None:
        digest, texts[policy[0]] = policy
        clean["policy"] = {TEXT: digest.hex()}
    return entry_of(clean, texts=texts)


def _fold(value: Any, texts: dict[bytes, bytes]) -> Any:
    """A value without its long texts, which are put among `texts`."""
    if isinstance(value, str):
        return _put(value, texts) if len(value) >= LONG_TEXT else value
    if isinstance(value, list):
        return [_fold(item, texts) for item in value]
    if not isinstance(value, dict):
        return value
    folded = {
        key: _fold_messages(item, texts) if key == "messages" and isinstance(item, list) else _fold(item, texts)
        for key, item in value.items()
    }
    return {PLAIN: folded} if TEXT in folded or PLAIN in folded else folded


def _fold_messages(messages: list[Any], texts: dict[bytes, bytes]) -> list[Any]:
    return [
        _put(message, texts) if len(msgspec.json.encode(message)) >= LONG_MESSAGE else _fold(message, texts)
        for message in messages
    ]


def _put(value: Any, texts: dict[bytes, bytes]) -> dict[str, str]:
    data = msgspec.json.encode(value)
    digest = sha256(data)
    texts[digest.digest()] = data
    return {TEXT: digest.hexdigest()}


def references(value: Any) -> set[bytes]:
    """The digests of all texts that a folded value refers to."""
    if isinstance(value, dict):
        if value.keys() == {PLAIN}:
            return set().union(*map(references, value[PLAIN].values()))
        if value.keys() == {TEXT}:
            return {bytes.fromhex(value[TEXT])}
        return set().union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def unfold(value: Any, texts: Mapping[bytes, bytes]) -> Any:
    """A folded value, its long texts back in place."""
    if isinstance(value, list):
        return [unfold(item, texts) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {PLAIN}:
        return {key: unfold(item, texts) for key, item in value[PLAIN].items()}
    if value.keys() == {TEXT}:
        data = texts.get(bytes.fromhex(value[TEXT]))
        return f"[text {value[TEXT][:12]} is missing]" if data is None else msgspec.json.decode(data)
    return {key: unfold(item, texts) for key, item in value.items()}


def columns_of(body: Mapping[str, Any]) -> tuple[Any, ...]:
    """The columns that follow from an entry's object, in the order of `COLUMNS`."""
    step = body.get("step") or {}
    agent = step.get("agent") or {}
    winner = body.get("winner") or {}
    of_step = (step.get("event"), step.get("session_id"), step.get("host"), agent.get("name"), step.get("tool"))
    user = step.get("user_id") or body.get("user")
    texts = (*of_step, body.get("control"), winner.get("hook"), winner.get("cause"), body.get("effect"), user)
    return (body["id"], body["at"], body["kind"], *(text if isinstance(text, str) else None for text in texts))


def runs_of(body: Mapping[str, Any]) -> tuple[tuple[Any, ...], ...]:
    """One row per hook that ran: place in the chain, hook, outcome, nanoseconds, and what it said.

    What a monitored hook said was not carried out: its row says what the hook would have done.
    """
    verdicts = {}
    would = WOULD if body.get("v", 1) >= 2 else ""  # which schema 1 did not tell apart
    for said in body.get("said") or ():
        for what, mood in ((said, ""), (said.get("monitored") or {}, would)):
            if "verdict" in what and isinstance(what["hook"], str):
                verdicts[what["hook"]] = mood + what["verdict"].get("control", "proceed")
    return tuple(
        (place, run[0], run[2], int(run[3] * 1e9), verdicts.get(run[0]) if run[2] == "verdict" else None)
        for place, run in enumerate(body.get("runs") or ())
    )


def tally_of(body: Mapping[str, Any]) -> Tally:
    """What an entry's object adds to the counts of its session."""
    said = body.get("said") or ()
    effect = body.get("effect") or body.get("control")
    if not said and effect == "proceed" and "left" not in body:  # as a rule
        return NOTHING
    return Tally(
        int(effect in REFUSED),
        int(any("failure" in what for what in said)),
        int(bool(body.get("left"))),
        int(effect == "ask" or any("approval" in what for what in said)),
    )
