"""The result of a diff or a replay, as data. Every output format is made of these structs.

`DiffReport` and `ReplayReport` are complete: a format needs nothing else. Both are encoded with msgspec, so that parts
that several processes have made can be sent and merged.

- A `ChangeClass` is one line of a diff: all steps on which the policies differ in the same way.
- An `UnknownClass` counts the steps on which a difference cannot be told, and why.
- A `ReplayClass` is one line of a replay: a difference from the record, with its cause.
- `Spread` says how far a class reaches: sessions, users, folders, first and last.

Texts in them come from the journal, which is redacted. Redact again whatever is published.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal, Self

import msgspec

from ..display import counted
from ..verdict import SEVERITY
from .judge import Answer
from .records import Recorded
from .sources import Gaps

Direction = Literal["loosened", "tightened", "other"]
DIRECTIONS: Final[tuple[Direction, ...]] = ("loosened", "tightened", "other")
FailOn = Literal["loosened", "tightened", "unknown", "any"]
NAMES: Final = 100
"""Users and folders of a class that are kept by name. That there are more is all that is known of the others."""
CLASSES: Final = 2_000
"""Classes of a report. Further ones are counted in one class without a shape."""
OTHER_SHAPES: Final = "(other shapes)"


class Spread(msgspec.Struct):
    """How far a class reaches. Times are in seconds since 1970."""

    count: int = 0
    sessions: int = 0
    users: list[str] = []
    folders: list[str] = []
    first: float = 0.0
    last: float = 0.0
    session: str | None = None  # the last one that was counted: sessions come one after another
    more_users: bool = False  # than those in `users`
    more_folders: bool = False

    def add(self, recorded: Recorded) -> None:
        """Count one step."""
        self.first = recorded.began if not self.count else min(self.first, recorded.began)
        self.last = recorded.began if not self.count else max(self.last, recorded.began)
        self.count += 1
        step = recorded.step
        if step.session_id != self.session:
            self.session = step.session_id
            self.sessions += 1
        self._add_names([user_of(recorded)], [recorded.body.root or step.cwd])

    def merge(self, other: Spread) -> None:
        """Add the steps of other sessions."""
        both = self.count and other.count
        self.first = min(self.first, other.first) if both else self.first or other.first
        self.last = max(self.last, other.last)
        self.count += other.count
        self.sessions += other.sessions
        self._add_names(other.users, other.folders)
        self.more_users |= other.more_users
        self.more_folders |= other.more_folders

    def _add_names(self, users: Sequence[str | None], folders: Sequence[str | None]) -> None:
        self.more_users |= _add(self.users, users)
        self.more_folders |= _add(self.folders, folders)

    def name_counts(self) -> Iterator[tuple[str, list[str]]]:
        """How many users and folders there are, in words, and those that are known by name."""
        for word, names, more in (("user", self.users, self.more_users), ("folder", self.folders, self.more_folders)):
            if names:
                yield f"{'more than ' if more else ''}{counted(len(names), word)}", names


def _add(names: list[str], more: Sequence[str | None]) -> bool:
    """Add names to those that are kept. Returns whether there was no room for one."""
    new = [name for name in more if name is not None and name not in names]
    names += new[: NAMES - len(names)]
    return len(names) == NAMES and any(name not in names for name in new)


class Example(msgspec.Struct):
    """The smallest step of a class."""

    record: str  # its id
    journal: str
    session: str | None
    at: float
    event: str
    tool: str | None
    text: str  # what it works on: a command, paths, an address
    shrunk: str | None = None  # the smallest command that still shows the difference
    step: msgspec.Raw = msgspec.Raw(b"null")  # as it was recorded, to be judged again
    user: str | None = None
    folders: list[str] = []  # where the agent was: names that its texts may have

    def replaces(self, other: Example) -> bool:
        """Whether this is the smaller example. Among equals, it is the earlier one."""
        return (len(self.text), self.at, self.record) < (len(other.text), other.at, other.record)


class ReportedAnswer(msgspec.Struct, frozen=True):
    """What a policy does, as a report shows it."""

    control: str
    hook: str | None = None
    changed: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    answered: str = ""

    @classmethod
    def of(cls, answer: Answer) -> Self:
        return cls(answer.control, answer.hook, answer.changed, answer.also, answer.failed, answer.answered)

    def __str__(self) -> str:
        control = f"{self.control} ({self.answered})" if self.answered else self.control
        words = [control, *(f"change {field}" for field in self.changed), *self.also]
        return ", ".join([*words, *(f"{hook} fails" for hook in self.failed)])


def rank(control: str) -> int:
    """How strict a control is. `allow` is the loosest: the host does not ask its user."""
    return -1 if control == "allow" else SEVERITY.get(control, 0)


def direction_of(before: str, after: str) -> Direction:
    """Whether a control became looser or stricter."""
    old, new = rank(before), rank(after)
    return "loosened" if new < old else "tightened" if new > old else "other"


class ChangeClass(msgspec.Struct):
    """Steps on which the policies differ in the same way."""

    before: ReportedAnswer
    after: ReportedAnswer
    event: str
    shape: str
    direction: Direction
    spread: Spread
    example: Example
    accepted: str | None = None  # who accepted it, why and until when

    @property
    def hook(self) -> str | None:
        """The hook that makes the difference: the new one's, or the old one's."""
        loud = self.after if rank(self.after.control) >= rank(self.before.control) else self.before
        return loud.hook or self.after.hook or self.before.hook


class UnknownClass(msgspec.Struct):
    """Steps on which it is not known whether the policies differ."""

    why: str  # redacted, external, untrusted code, cold state
    what: str  # the hook, or the place in the step
    shape: str
    spread: Spread
    example: Example


class HookPlace(msgspec.Struct, frozen=True):
    """Where a hook stands: a file, and a line of it."""

    file: str
    line: int


class Totals(msgspec.Struct):
    """What was judged."""

    steps: int = 0  # that were judged and count
    same: int = 0
    changed: int = 0
    unknown: int = 0
    accepted: int = 0
    would_ask: int = 0  # a question that was not put then
    sessions: int = 0
    warming: int = 0  # steps that only rebuilt the state
    cold_sessions: int = 0
    first: float = 0.0
    last: float = 0.0
    took: float = 0.0  # seconds

    def add(self, other: Totals) -> None:
        both = self.steps and other.steps
        self.first = min(self.first, other.first) if both else self.first or other.first
        self.last = max(self.last, other.last)
        for name in ("steps", "same", "changed", "unknown", "accepted", "would_ask", "sessions", "warming",
                     "cold_sessions"):  # fmt: skip
            setattr(self, name, getattr(self, name) + getattr(other, name))


class DiffReport(msgspec.Struct):
    """Two policies on the same recorded steps."""

    old: str
    new: str
    totals: Totals = msgspec.field(default_factory=Totals)
    changes: list[ChangeClass] = []
    unknown: list[UnknownClass] = []
    gaps: Gaps = msgspec.field(default_factory=Gaps)
    sources: list[str] = []
    untrusted: list[str] = []  # hooks whose code was not run, and never is
    external: list[str] = []  # hooks whose recorded verdicts stood for them
    expired: list[str] = []  # accepted changes whose time is over
    places: dict[str, HookPlace] = {}  # of the hooks of both policies; the new one's, where both have it

    def fails(self, on: Iterable[FailOn] = ()) -> bool:
        """Whether a difference that was not accepted is one to fail on. Without a choice, any change is."""
        chosen = frozenset(on)
        return any(change.accepted is None and fails_for(change.direction, chosen) for change in self.changes) or (
            bool(self.unknown) and fails_for("unknown", chosen)
        )


def fails_for(what: Direction | Literal["unknown"], chosen: frozenset[FailOn]) -> bool:
    """Whether a difference of this kind is one to fail on. Without a choice, any change is."""
    return what in chosen or "any" in chosen or (not chosen and what != "unknown")


class ReplayClass(msgspec.Struct):
    """Steps whose answer differs from the record, for the same cause."""

    cause: str
    what: str  # the hook or the place, where the cause has one
    recorded: ReportedAnswer
    now: ReportedAnswer
    shape: str
    spread: Spread
    example: Example


class ReplayReport(msgspec.Struct):
    """One policy on recorded steps, compared with what was recorded."""

    policy: str
    totals: Totals = msgspec.field(default_factory=Totals)  # `same` is what was reproduced
    differences: list[ReplayClass] = []
    gaps: Gaps = msgspec.field(default_factory=Gaps)
    sources: list[str] = []
    not_compared: dict[str, int] = {}  # why no decision was recorded to compare with, and how often
    external: list[str] = []
    places: dict[str, HookPlace] = {}


def example_of(recorded: Recorded, text: str) -> Example:
    """A step as an example."""
    step = recorded.step
    source = recorded.source.name if recorded.source is not None else ""
    return Example(
        recorded.id, source, step.session_id, recorded.began, step.event, getattr(step, "tool", None), text,
        step=msgspec.Raw(_encoded(step)), user=user_of(recorded), folders=folders_of(recorded),
    )  # fmt: skip


def user_of(recorded: Recorded) -> str | None:
    """Whose agent it was."""
    return recorded.step.user_id or recorded.body.user


def folders_of(recorded: Recorded) -> list[str]:
    """The project of a step, and the folder in which its agent was."""
    return [folder for folder in dict.fromkeys((recorded.body.root, recorded.step.cwd)) if folder is not None]


def _encoded(step: Any) -> bytes:
    data = msgspec.json.encode(step)
    return data if len(data) <= LARGEST_EXAMPLE else b"null"


LARGEST_EXAMPLE: Final = 64 << 10
"""Bytes of a step that is kept as an example. A larger one is named, and not shrunk."""
