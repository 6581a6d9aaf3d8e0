"""Entries: a decision or a note, as the bytes that are stored and chained.

An entry is one JSON object. Secrets are redacted first. A long text is stored once, by its digest, and the entry has
`{"$text": digest}` in its place. The fields that are searched for are stored in columns, too. The columns follow from
the object, so a changed column is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from ..errors import describe
from .exactness import inexact_fields, lone_surrogates

if TYPE_CHECKING:
    from ..redaction.redactor import Redactor
    from .policy import PolicyText

LONG_TEXT: Final = 512
"""Characters from which a text is stored by its digest."""
LONG_MESSAGE: Final = 128
"""Bytes from which a message of a conversation is, because the next request to the model repeats it."""
TEXT: Final = "$text"
PLAIN: Final = "$plain"

VERSION: Final = 2
"""The version of an entry's format: its `v`."""
_PLAIN_KEYS: Final = (
    "v", "id", "at", "kind", "took", "control", "effect", "enforcement", "can", "lenient", "variables", "machine",
)  # fmt: skip
Invoke = Callable[..., Any]
"""Calls a function with arguments: here, on a thread, or in another process."""
OLD_COLUMNS: Final = ("id", "at", "kind", "event", "session", "host", "agent", "tool", "control", "hook", "cause")
"""The columns of schema 1."""
COLUMNS: Final = (*OLD_COLUMNS, "effect", "user")
"""The fields that are searched for. `effect` is None if the control was carried out unchanged."""
REFUSED: Final = ("deny", "stop", "abort")
"""The controls that stop an operation."""
STOPPING: Final = (*REFUSED, "ask")
"""The controls that keep an operation from running before a human looks."""
FAILED: Final = ("error", "timeout", "malformed", "quarantined", "dropped")
"""The outcomes of hooks that failed."""
WOULD: Final = "would "
"""The prefix of a monitored verdict's control in a run: the control was not carried out."""


class SessionCounts(NamedTuple):
    """What a record adds to the counts of its session: 0 or 1 each."""

    denied: int = 0
    failed: int = 0
    changed: int = 0
    asked: int = 0


NO_COUNTS: Final = SessionCounts()


class Entry(msgspec.Struct, frozen=True, gc=False):
    """What is written: the JSON object, its columns and counts, and its long texts.

    Nothing in it refers to other objects, so the garbage collector need not visit the thousands that may be queued.
    """

    body: bytes
    columns: tuple[Any, ...]
    runs: tuple[tuple[Any, ...], ...]
    counts: SessionCounts
    texts: dict[bytes, bytes]


def entry_of(body: Mapping[str, Any], encoded: bytes | None = None, texts: dict[bytes, bytes] | None = None) -> Entry:
    """Make the entry of an object.

    `encoded` are the bytes that it was decoded from, if there are any.
    """
    data = msgspec.json.encode(body) if encoded is None else encoded
    return Entry(data, columns_of(body), runs_of(body), counts_of(body), {} if texts is None else texts)


def make_entry(
    facts: Mapping[str, Any], redactor: Redactor, policy: PolicyText | None = None, call: Invoke | None = None
) -> Entry:
    """Make an entry of some facts.

    This never fails: an entry says which facts could not be written.

    `call(fn, *args)` calls a function elsewhere, for facts that are slow to redact.
    """
    try:
        lossy = [place for part in ("step", "left") if part in facts for place in inexact_fields(facts[part], part)]
        if lossy:
            facts = {**facts, "lossy": [*facts.get("lossy", ()), *lossy]}
        plain = msgspec.to_builtins(facts, enc_hook=_type_name, str_keys=True, builtin_types=(bytes, bytearray))
        return (call or call_here)(_encodable_entry, plain, redactor, policy)  # type: ignore[no-any-return]
    except Exception as error:  # a step can hold any object of the host
        step: Any = facts.get("step")
        step = step if isinstance(step, Mapping) else {}
        kept = {key: facts[key] for key in ("v", "id", "at", "kind", "took", "control", "effect") if key in facts}
        kept["step"] = {"event": str(step.get("event")), "session_id": _session(step)}
        kept["unwritable"] = describe(error).encode(errors="replace").decode()
        return _entry(kept, redactor, policy)


def call_here(fn: Callable[..., Any], *args: Any) -> Any:
    """Call a function here: the default `Invoke`."""
    return fn(*args)


def _encodable_entry(plain: dict[str, Any], redactor: Redactor, policy: PolicyText | None) -> Entry:
    try:
        return _entry(plain, redactor, policy)
    except UnicodeError:  # a lone surrogate must not hide the rest of the entry
        lossy = [place for part in ("step", "left") if part in plain for place in lone_surrogates(plain[part], part)]
        named = {"lossy": [*plain.get("lossy", ()), *lossy]} if lossy else {}
        return _entry(escape_surrogates({**plain, **named}), redactor, policy)


def escape_surrogates(value: Any) -> Any:
    """The value with lone surrogates spelled out, so that it can be encoded."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {escape_surrogates(key): escape_surrogates(item) for key, item in value.items()}
    return [escape_surrogates(item) for item in value] if isinstance(value, (list, tuple)) else value


def _session(step: Mapping[str, Any]) -> str | None:
    found = step.get("session_id")
    return found.encode(errors="replace").decode() if isinstance(found, str) else None


def _type_name(value: Any) -> str:
    return f"<{type(value).__name__}>"  # its own text could be anything


def _entry(plain: dict[str, Any], redactor: Redactor, policy: PolicyText | None) -> Entry:
    own: dict[str, Any] = {
        key: plain[key] for key in _PLAIN_KEYS if key in plain
    }  # fairlead's own fields, which hold no secrets
    if "user" in plain and plain["kind"] == "decision":  # from the system; the user of a note is free text
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
    """The value without its long texts, which are added to `texts`."""
    if isinstance(value, str):
        return _put(value, texts) if len(value) >= LONG_TEXT else value
    if isinstance(value, list):
        return [_fold(item, texts) for item in value]
    if not isinstance(value, dict):
        return value
    folded = {
        key: item
        if item.__class__ is str and len(item) < LONG_TEXT  # most are
        else _fold_messages(item, texts)
        if key == "messages" and isinstance(item, list)
        else _fold(item, texts)
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
    """The digests of the long texts that a folded value refers to."""
    if isinstance(value, dict):
        if value.keys() == {PLAIN}:
            return set().union(*map(references, value[PLAIN].values()))
        if value.keys() == {TEXT}:
            return {bytes.fromhex(value[TEXT])}
        return set().union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def unfold(value: Any, texts: Mapping[bytes, bytes]) -> Any:
    """The folded value with its long texts back in place."""
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
    """The columns of an entry's object, in the order of `COLUMNS`."""
    step = body.get("step") or {}
    agent = step.get("agent") or {}
    winner = body.get("winner") or {}
    of_step = (step.get("event"), step.get("session_id"), step.get("host"), agent.get("name"), step.get("tool"))
    user = step.get("user_id") or body.get("user")
    texts = (*of_step, body.get("control"), winner.get("hook"), winner.get("cause"), body.get("effect"), user)
    return (body["id"], body["at"], body["kind"], *(text if isinstance(text, str) else None for text in texts))


def runs_of(body: Mapping[str, Any]) -> tuple[tuple[Any, ...], ...]:
    """One row per hook that ran: place in the chain, hook, outcome, nanoseconds, and control.

    The control of a monitored hook begins with `WOULD`, because it was not carried out.
    """
    verdicts = {}
    would = WOULD if body.get("v", 1) >= 2 else ""  # schema 1 did not distinguish them
    for contribution in body.get("said") or ():
        for one, prefix in ((contribution, ""), (contribution.get("monitored") or {}, would)):
            if "verdict" in one and isinstance(one["hook"], str):
                verdicts[one["hook"]] = prefix + one["verdict"].get("control", "proceed")
    return tuple(
        (place, run[0], run[2], int(run[3] * 1e9), verdicts.get(run[0]) if run[2] == "verdict" else None)
        for place, run in enumerate(body.get("runs") or ())
    )


def counts_of(body: Mapping[str, Any]) -> SessionCounts:
    """What an entry's object adds to the counts of its session."""
    contributions = body.get("said") or ()
    effect = body.get("effect") or body.get("control")
    if not contributions and effect == "proceed" and "left" not in body:  # the usual case
        return NO_COUNTS
    return SessionCounts(
        int(effect in REFUSED),
        int(any("failure" in one for one in contributions)),
        int(bool(body.get("left"))),
        int(effect == "ask" or any("approval" in one for one in contributions)),
    )
