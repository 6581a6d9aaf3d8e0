"""What stands out of a recorded decision: what was decided, by which hook, and why, in words for people.

This reads the JSON of a record, and not a `Decision`: a page shows hundreds, and most have nothing that stands out.
`decode_body` checks its shape, so that a record that was damaged is shown as such, and nothing else breaks over it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypedDict

import msgspec

from ..rendering import DERIVED
from .marks import MARKS, Mark

LongTexts = Callable[[Any], Any]
"""Gives a value with its long texts, which the journal stores elsewhere."""


class _Verdict(TypedDict, total=False):
    control: str
    reason: Any  # a text, or the digest of a long one
    context: list[Any] | None
    warnings: list[Any] | None
    changes: dict[str, Any] | None


class _Failure(TypedDict, total=False):
    hook: str
    error: Any
    control: str | None


class _Monitored(TypedDict, total=False):
    hook: str
    verdict: _Verdict


class _Approval(TypedDict, total=False):
    answer: str
    who: Any
    why: Any


class _Part(TypedDict, total=False):
    hook: str
    verdict: _Verdict
    failure: _Failure
    monitored: _Monitored
    approval: _Approval
    question: Any
    unsupported: Any


class _Winner(TypedDict, total=False):
    hook: str | None
    cause: str | None


class RecordedRun(msgspec.Struct, array_like=True, frozen=True):
    """One run of a hook."""

    hook: str
    phase: str
    outcome: str
    took: float
    details: Any = None


class TimelineBody(TypedDict, total=False):
    """What a timeline needs of a record's JSON."""

    took: float | None
    note: Any
    step: dict[str, Any]
    parent: str | None
    control: str | None
    effect: str | None
    winner: _Winner
    said: list[_Part]
    left: dict[str, Any]
    runs: list[RecordedRun]
    redacted: list[list[str]]
    unanswered: Any
    erased: bool
    damaged: bool  # it cannot be read


_decode = msgspec.json.Decoder(TimelineBody).decode


def decode_body(data: bytes) -> TimelineBody:
    """The JSON of a record. One that was erased or damaged has only that to say."""
    if not data:
        return {"erased": True}
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return {"damaged": True}


BY_CONTROL: dict[str | None, str] = {
    "deny": "denied", "abort": "aborted", "stop": "stopped", "skip": "skipped", "extend": "kept going",
    "retry": "retried", "ask": "waiting", "allow": "allowed",
}  # fmt: skip
_OUTCOME_OF_FAILURE: dict[str | None, str] = {
    "deny": "so it was denied", "abort": "so the request failed", "stop": "so the turn was stopped",
    "ask": "so a human was asked",
}  # fmt: skip
_WENT_ON = "and the agent went on"
_WOULD = {
    "deny": "would have denied", "abort": "would have failed the request", "stop": "would have stopped the turn",
    "ask": "would have asked", "skip": "would have left it out", "extend": "would have kept it going",
    "retry": "would have run it again", "allow": "would have allowed", "proceed": "would have changed it",
}  # fmt: skip
_TELLING = ("said", "left", "unanswered", "effect")
_DECORATION = frozenset("-=_*~#+|. \t")
LINE = 300
"""Characters of a line that are shown. The rest is there on opening."""


class Highlight(NamedTuple):
    """One thing that stands out: what, why, by whom, and what it was changed to."""

    mark: Mark
    why: str = ""
    by: str = ""
    seq: int = 0

    @property
    def rank(self) -> int:
        """Its importance; 0 is the most important."""
        return _RANKS[self.mark.name]


_RANKS = {name: rank for rank, name in enumerate(MARKS)}


def findings(body: TimelineBody, seq: int, texts: LongTexts) -> list[Highlight]:
    """What stands out of a record, the most important first. Most records have nothing."""
    if "damaged" in body:
        return [Highlight(MARKS["damaged"], "the record cannot be read; `fairlead verify` says more", "", seq)]
    if body.get("control") in (None, "proceed") and not any(body.get(part) for part in _TELLING):
        return []
    found = [one._replace(seq=seq) for one in _all(body, texts)]
    return sorted(dict.fromkeys(found), key=lambda one: one.rank)


def _all(body: TimelineBody, texts: LongTexts) -> Iterator[Highlight]:
    parts = body.get("said") or []
    yield from _decided(body, parts, texts)
    yield from _failures(parts, texts)
    for part in parts:
        if verdict := part.get("verdict"):
            yield from _context(part.get("hook", ""), verdict, texts)
        if seen := part.get("monitored"):
            would = seen.get("verdict") or {}
            control = would.get("control", "proceed")
            why = _joined(_WOULD.get(control, control), line(texts(would.get("reason"))))
            yield Highlight(MARKS["would"], why, seen.get("hook", ""))
        if "unsupported" in part:
            yield Highlight(MARKS["not done"], f"the agent cannot do this: {line(texts(part['unsupported']))}")
    yield from _changes(body, parts, texts)


def _decided(body: TimelineBody, parts: list[_Part], texts: LongTexts) -> Iterator[Highlight]:
    """The control that the host carried out, unless a failed hook is behind it."""
    control = body.get("effect") or body.get("control")
    winner = body.get("winner") or {}
    hook = winner.get("hook") or ""
    if unanswered := body.get("unanswered"):
        became = _OUTCOME_OF_FAILURE.get(control, _WENT_ON)
        yield Highlight(MARKS["failed"], f"{line(texts(unanswered))} ({became})", "launcher")
    elif answered := [part for part in parts if part.get("approval", {}).get("answer") in ("allow", "deny")]:
        yield _approval(answered, texts)
    elif control in BY_CONTROL and winner.get("cause") != "failure":
        yield Highlight(MARKS[BY_CONTROL[control]], _reason(parts, hook, texts), hook)
    if (effect := body.get("effect")) and effect != body.get("control"):
        yield Highlight(MARKS["not done"], f"decided: {body.get('control')}; the agent did: {effect}", hook)


def _approval(answered: list[_Part], texts: LongTexts) -> Highlight:
    """The answer of a human: of several, one that refuses."""
    refused = [part for part in answered if part["approval"]["answer"] == "deny"]
    part = (refused or answered)[0]
    approval = part["approval"]
    why = _joined(line(texts(part.get("question"))), line(texts(approval.get("why"))))
    return Highlight(MARKS["denied" if refused else "approved"], why, line(texts(approval.get("who"))) or "a human")


def _reason(parts: list[_Part], hook: str, texts: LongTexts) -> str:
    """Why a hook decided as it did: its reason, or the first line of what it adds for the model."""
    for part in parts:
        if (verdict := part.get("verdict")) and part.get("hook") == hook:
            return line(texts(verdict.get("reason") or next(iter(verdict.get("context") or ()), "")))
    return ""


def _failures(parts: list[_Part], texts: LongTexts) -> Iterator[Highlight]:
    for part in parts:
        if failure := part.get("failure"):
            became = _OUTCOME_OF_FAILURE.get(failure.get("control"), _WENT_ON)
            yield Highlight(MARKS["failed"], f"{line(texts(failure.get('error')))} ({became})", failure.get("hook", ""))


def _context(hook: str, verdict: _Verdict, texts: LongTexts) -> Iterator[Highlight]:
    if (context := verdict.get("context")) and verdict.get("control") != "extend":
        yield Highlight(MARKS["told"], line(texts(context[0])), hook)
    for warning in verdict.get("warnings") or ():
        yield Highlight(MARKS["warned"], line(texts(warning)), hook)


def _changes(body: TimelineBody, parts: list[_Part], texts: LongTexts) -> Iterator[Highlight]:
    left = body.get("left") or {}
    if not (changed := [name for name in left if name not in DERIVED]):
        return
    by = ", ".join(dict.fromkeys(part.get("hook", "") for part in parts if part.get("verdict", {}).get("changes")))
    if answers := [name for name in changed if name in ("result", "assistant")]:
        yield Highlight(MARKS["answered"], line(texts(left[answers[0]])), by)
    else:
        yield Highlight(MARKS["changed"], change_in_words(body, changed, texts), by)


def change_in_words(body: TimelineBody, changed: list[str], texts: LongTexts) -> str:
    """A change in one line: `→ mv build .trash/`, or `output: api key taken out`."""
    left, step = body["left"], body.get("step") or {}
    target = left.get("target")
    if isinstance(target, dict) and (aim := aim_of(target, texts)) and aim != aim_of(step.get("target"), texts):
        return f"→ {line(aim)}"
    for name in changed:
        before, after = texts(step.get(name)), texts(left[name])
        if before == after:
            kinds = taken_out(body, f"step.{name}")
            return f"{name}: {' and '.join(kinds)} taken out" if kinds else f"{name}: a secret in it was changed"
        if isinstance(after, dict) and isinstance(before, dict):
            keys = [key for key in (before | after) if before.get(key) != after.get(key)]
            return line(", ".join(f"{name}.{key}" for key in keys))
    return f"{', '.join(changed)}: {line(texts(left[changed[0]]))}"


def taken_out(body: TimelineBody, path: str) -> list[str]:
    """The kinds of secrets that redaction took out of a part of the record."""
    found = (row[1] for row in body.get("redacted") or () if len(row) > 1 and row[0].startswith(path))
    return list(dict.fromkeys(found))


def aim_of(target: Any, texts: LongTexts) -> str:
    """What a call works on: its command, its paths or its address."""
    known = target if isinstance(target, dict) else {}
    found = known.get("command") or known.get("paths") or known.get("url") or ""
    found = texts(found)
    return " ".join(map(str, found)) if isinstance(found, list) else str(found)


def line(value: Any) -> str:
    """A value in one line: of a text, the first line that is not decoration."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return _cut(_plain_text(value))
    for one in value.splitlines():
        if not _DECORATION.issuperset(one):
            return _cut(one.strip())
    return _cut(value.strip())


def _plain_text(value: Any) -> str:
    """The text of content blocks; anything else as JSON."""
    if isinstance(value, list):
        blocks = [block.get("text") if isinstance(block, dict) else block for block in value]
        if found := [block for block in blocks if isinstance(block, str)]:
            return line("\n".join(found))
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        return line(value["text"])
    return msgspec.json.encode(value, enc_hook=str).decode()


def _cut(text: str) -> str:
    return text if len(text) <= LINE else f"{text[: LINE - 1]}…"


def _joined(first: str, second: str) -> str:
    return f"{first}{' ' if first.endswith('?') else ': '}{second}" if first and second else first or second
