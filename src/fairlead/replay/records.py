"""Turns a record of the journal into the step that was judged.

Decoding is typed: the JSON becomes the step's class at once. A long text is put back as bytes, before decoding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Union

import msgspec
from msgspec.structs import replace

from ..journal.entry import PLAIN, unfold
from ..lifecycle import EVENTS, Control, Step
from ..verdict import Verdict

if TYPE_CHECKING:
    AnyStep = Step
else:
    AnyStep = Union[tuple(event.step for event in EVENTS.values())]
FindText = Callable[[bytes], bytes | None]
"""Finds a long text by its digest."""

_REFERENCE: Final = re.compile(rb'\{"\$text":"([0-9a-f]{64})"\}')
_POLICY_AT_END: Final = b',"policy":{"$text":"'
_POLICY_LENGTH: Final = len(_POLICY_AT_END) + 64 + len('"}}')
_FOLDED: Final = b'"$'
"""In every body that has a long text, or that quotes a key of its own."""
_PLAIN: Final = f'"{PLAIN}"'.encode()


NOTHING: Final = msgspec.Raw(b"null")
"""In place of a part that a record does not have."""


class BadBody(Exception):
    """A record whose step cannot be read: it is damaged, incomplete, or of another kind."""


class Body(msgspec.Struct, kw_only=True):
    """A recorded decision. What few readers need stays undecoded."""

    id: str
    at: int
    step: AnyStep
    v: int = 1
    took: float | None = None
    control: Control = "proceed"
    effect: str | None = None
    unanswered: str | None = None
    left: msgspec.Raw = NOTHING
    contributions: msgspec.Raw = msgspec.field(default=NOTHING, name="said")
    runs: msgspec.Raw = NOTHING
    enforcement: str | None = None
    parent: str | None = None
    root: str | None = None
    user: str | None = None
    redacted: list[tuple[str, str, str]] = []
    lossy: list[tuple[str, str]] = []
    unwritable: str | None = None
    erased: Any = None
    policy: msgspec.Raw = NOTHING
    policy_id: str | None = None


_decoder = msgspec.json.Decoder(Body)


def decode_body(data: bytes, texts: FindText) -> tuple[Body, str | None, bool]:
    """Decode a record: its body, the id of its policy, and whether a text of it is missing.

    Raises `BadBody` if it holds no step.
    """
    policy: str | None = None
    missing = False
    try:
        end = len(data)
        if data.startswith(_POLICY_AT_END, end - _POLICY_LENGTH):
            policy, end = data[-67:-3].decode(), end - _POLICY_LENGTH
        if data.find(_FOLDED, 0, end) >= 0:  # a few bytes are found faster than a word
            data, missing = _with_texts(data if policy is None else data[:end] + b"}", texts)
        body = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeError, ValueError, TypeError, RecursionError) as error:
        raise BadBody(str(error)) from None
    return body, policy or body.policy_id, missing


def _with_texts(data: bytes, texts: FindText) -> tuple[bytes, bool]:
    """The bytes of a body with its long texts in place, and whether one is missing."""
    missing = False

    def find(digest: str) -> bytes:
        nonlocal missing
        found = texts(bytes.fromhex(digest))
        if found is None:
            missing = True
            return msgspec.json.encode(f"[text {digest[:12]} is missing]")
        return found

    if _PLAIN in data:  # a step with a key `$text` of its own
        folded = msgspec.json.decode(data)
        found = {bytes.fromhex(one[1].decode()): find(one[1].decode()) for one in _REFERENCE.finditer(data)}
        return msgspec.json.encode({key: unfold(value, found) for key, value in folded.items()}), missing
    return _REFERENCE.sub(lambda one: find(one[1].decode()), data), missing


class Recorded:
    """A recorded decision, and its step as it was judged."""

    def __init__(self, body: Body, source: Any = None, policy: str | None = None, missing: bool = False) -> None:
        self.body = body
        self.step: Step = body.step
        self.source = source
        self.policy = policy
        self.missing = missing
        metadata = body.step.metadata
        self.imported = metadata is not None and metadata.get("imported") is True
        # When it was decided, or when an imported step happened.
        self.at = imported_at(metadata, body.at) if self.imported and metadata is not None else body.at / 1e9
        self.began = self.at - (body.took or 0.0)

    @property
    def id(self) -> str:
        return self.body.id

    @cached_property
    def contributions(self) -> list[dict[str, Any]]:
        """What each hook said, failed, asked or would have done, in chain order."""
        return [] if self.body.contributions is NOTHING else msgspec.json.decode(self.body.contributions)

    @cached_property
    def runs(self) -> list[list[Any]]:
        """Hook, phase, outcome and seconds of every hook that was started, in order."""
        return [] if self.body.runs is NOTHING else msgspec.json.decode(self.body.runs)

    @cached_property
    def changes(self) -> dict[str, Any]:
        """The fields in which the step left the hooks with another value."""
        if self.body.left is NOTHING:
            return {}
        types = EVENTS[self.step.event].types
        return {
            name: msgspec.convert(value, types[name])
            for name, value in msgspec.json.decode(self.body.left).items()
            if name in types
        }

    @cached_property
    def final_step(self) -> Step:
        """The step as it left the hooks: what an approver was shown."""
        return replace(self.step, **self.changes) if self.changes else self.step

    @property
    def failures(self) -> list[str]:
        """The hooks that failed."""
        return [one["failure"]["hook"] for one in self.contributions if "failure" in one]

    @property
    def redacted_places(self) -> list[tuple[str, str]]:
        """The places of the step that were redacted, and the kind of each secret."""
        return [(place, kind) for place, kind, _ in self.body.redacted if place.startswith("step.")]

    def verdict_of(self, hook: str) -> tuple[str, Verdict | None]:
        """How a hook's run ended, and its verdict. The outcome is "" if the hook did not run."""
        outcome = next((run[2] for run in self.runs if run[0] == hook), "")
        for one in self.contributions if outcome == "verdict" else ():
            if one.get("hook") == hook and "verdict" in one:
                return outcome, msgspec.convert(one["verdict"], Verdict)
            if (seen := one.get("monitored")) is not None and seen["hook"] == hook:
                return outcome, msgspec.convert(seen["verdict"], Verdict)
        return outcome, None

    def changes_before(self, hook: str) -> Iterator[Mapping[str, Any]]:
        """The changes of the hooks that ran before this one."""
        for one in self.contributions:
            if one.get("hook") == hook:
                return
            if "verdict" in one and one["verdict"].get("changes"):
                yield one["verdict"]["changes"]


def imported_at(metadata: Mapping[str, Any], at: int) -> float:
    """When an imported step began, by its transcript; when it was imported, if that does not say."""
    with suppress(ValueError, TypeError, KeyError):
        return datetime.fromisoformat(metadata["at"]).timestamp()
    return at / 1e9
