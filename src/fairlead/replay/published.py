"""What a diff, a replay or a run of test cases has found, as rows that every output format shows.

`PublishedReport` is made to be published: in a log of CI, a comment on a pull request, a page. So every text in it is
redacted again, users and folders are counted and not named, and home folders are written as `~`. `who=True` keeps the
names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

import msgspec

from ..display import counted
from ..escaping import escape
from ..redaction.redactor import redact_text
from .report import (
    ChangeClass,
    DiffReport,
    FailOn,
    HookPlace,
    ReplayClass,
    ReplayReport,
    Spread,
    UnknownClass,
    fails_for,
)
from .sources import Gaps

FindingLevel = Literal["error", "warning", "note", "pass"]
"""How grave a finding is: it fails the run, it is worth a look, it is accepted, it is as it should be."""
TEXT: Final = 300
"""Characters of a command that are shown."""
NOTHING_JUDGED: Final = "nothing was judged: no selected step is at an event that one of the policies has a hook for"
SHORTEST_NAME: Final = 3
"""Letters of a user's name, or of a folder, that is looked for in other texts. A shorter one stands in many words."""
HOME: Final = re.compile(r"(?P<homes>/home/|/Users/|[A-Za-z]:\\Users\\)[^/\\\s'\":;,]+|/root(?=[/\s'\":;,]|$)")


class ReportRow(msgspec.Struct, kw_only=True):
    """One row: a class of changes, an unknown, a test case."""

    group: str  # loosened, tightened, other, unknown, case, ...
    title: str
    level: FindingLevel
    details: list[str] = []
    example: str = ""  # a command, or another text of the step
    hook: str | None = None
    accepted: str | None = None

    @property
    def key(self) -> str:
        """The same for the same finding of the next run."""
        return sha256(f"{self.group}\0{self.title}".encode(errors="replace")).hexdigest()[:32]


class PublishedReport(msgspec.Struct, kw_only=True):
    """Everything that a format shows."""

    command: str  # "fairlead diff"
    title: str
    summary: str
    rows: list[ReportRow] = []
    notes: list[str] = []  # what was not judged, and why
    places: dict[str, HookPlace] = {}  # of the hooks

    @property
    def failed(self) -> list[ReportRow]:
        return [row for row in self.rows if row.level == "error"]

    def place_of(self, row: ReportRow) -> HookPlace | None:
        """Where the hook of a row stands; the file of the policy, if the hook is not in it."""
        found = self.places.get(row.hook or "")
        return found or next((HookPlace(place.file, 1) for place in self.places.values()), None)


class Publisher:
    """Makes texts fit to be published."""

    def __init__(self, users: Iterable[str], folders: Iterable[str], *, who: bool = False) -> None:
        names = {} if who else dict.fromkeys(folders, "FOLDER") | dict.fromkeys(users, "USER")
        self._names = {name: word for name, word in names.items() if len(name) >= SHORTEST_NAME}
        # The longest first: a folder in another one.
        words = sorted(self._names, key=len, reverse=True)
        pattern = "|".join(rf"(?<![\w.-]){re.escape(word)}(?![\w-])" for word in words)
        self._pattern = re.compile(pattern) if words else None
        self._who = who

    def text(self, text: str) -> str:
        """A text in one line, redacted, and without names."""
        text = redact_text(text)
        if self._pattern is not None:
            text = self._pattern.sub(lambda found: self._names[found[0]], text)
        text = escape(text if self._who else HOME.sub("~", text))
        return text if len(text) <= TEXT else f"{text[: TEXT - 3]}..."

    def reach(self, spread: Spread) -> str:
        """How far a class reaches, in words."""
        first, last = (datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M") for at in (spread.first, spread.last))
        words = [counted(spread.count, "step"), counted(spread.sessions, "session")]
        for count, names in spread.name_counts():
            words.append(f"{count}: {', '.join(map(escape, names))}" if self._who else count)
        return f"{', '.join(words)}; {first if first == last else f'{first} to {last}'} UTC"


# --- from reports ---------------------------------------------------------------------------


def of_diff(report: DiffReport, fail_on: Iterable[FailOn] = (), *, who: bool = False) -> PublishedReport:
    """The rows of a diff. What `fail_on` names is an error."""
    publisher = _publisher([*report.changes, *report.unknown], who)
    chosen = frozenset(fail_on)
    rows = [_of_change(one, fails_for(one.direction, chosen), publisher) for one in report.changes]
    rows += [_of_unknown(one, fails_for("unknown", chosen), publisher) for one in report.unknown]
    totals = report.totals
    counts = [f"{totals.same:,} the same", f"{totals.changed:,} changed", f"{totals.unknown:,} unknown"]
    if totals.accepted:
        counts.insert(2, f"{totals.accepted:,} of them accepted")
    notes = [f"no longer accepted: {publisher.text(one)}" for one in report.expired]
    if report.untrusted:
        notes.append(f"not run, because their code is not trusted: {publisher.text(', '.join(report.untrusted))}")
    if totals.would_ask:
        notes.append(f"{counted(totals.would_ask, 'step')} would ask a question that was not put then")
    if not totals.steps:
        notes.append(NOTHING_JUDGED)
    return PublishedReport(
        command="fairlead diff",
        title=f"{publisher.text(report.old)} -> {publisher.text(report.new)}",
        summary=f"{counted(totals.steps, 'recorded step')} of {counted(totals.sessions, 'session')}: "
        f"{', '.join(counts)}",
        rows=rows,
        notes=[*notes, *gap_words(report.gaps)],
        places=report.places,
    )


def of_replay(report: ReplayReport, *, who: bool = False) -> PublishedReport:
    """The rows of a replay. Every difference from the record is an error."""
    publisher = _publisher(report.differences, who)
    rows = [
        ReportRow(
            group=one.cause,
            title=publisher.text(f"{one.recorded} -> {one.now}{f' ({one.what})' if one.what else ''}  {one.shape}"),
            level="error", details=[publisher.reach(one.spread), publisher.text(f"record {one.example.record}")],
            example=publisher.text(one.example.text), hook=one.now.hook or one.recorded.hook,
        )
        for one in report.differences
    ]  # fmt: skip
    totals = report.totals
    compared = totals.steps - sum(report.not_compared.values())
    return PublishedReport(
        command="fairlead replay",
        title=publisher.text(report.policy),
        summary=f"{totals.same:,} of {counted(compared, 'decision')} reproduced",
        rows=rows,
        notes=[
            *(f"{count:,} not compared: {reason}" for reason, count in sorted(report.not_compared.items())),
            *gap_words(report.gaps),
        ],
        places=report.places,
    )


def _publisher(classes: Iterable[ChangeClass | UnknownClass | ReplayClass], who: bool) -> Publisher:
    users: set[str] = set()
    folders: set[str] = set()
    for one in classes:
        users.update(one.spread.users, [one.example.user] if one.example.user else [])
        folders.update(one.spread.folders, one.example.folders)
    return Publisher(users, folders, who=who)


def _of_change(change: ChangeClass, fails: bool, publisher: Publisher) -> ReportRow:
    hook = f" ({change.hook})" if change.hook else ""
    example = change.example
    return ReportRow(
        group=change.direction,
        title=publisher.text(f"{change.before} -> {change.after}{hook}  {change.shape}"),
        level="note" if change.accepted is not None else "error" if fails else "warning",
        details=[publisher.reach(change.spread), publisher.text(f"record {example.record}")],
        example=publisher.text(example.shrunk or example.text),
        hook=change.hook,
        accepted=None if change.accepted is None else publisher.text(change.accepted),
    )


def _of_unknown(unknown: UnknownClass, fails: bool, publisher: Publisher) -> ReportRow:
    what = f": {unknown.what}" if unknown.what else ""
    return ReportRow(
        group="unknown",
        title=publisher.text(f"{unknown.why}{what}  {unknown.shape}"),
        level="error" if fails else "warning",
        details=[publisher.reach(unknown.spread), publisher.text(f"record {unknown.example.record}")],
        hook=unknown.what,
    )


_NOTES: Final = {
    "pruned": "the beginning was pruned", "lost": "records were lost", "crashed": "a writer crashed",
    "damaged": "the journal was damaged", "erased": "bodies were erased",
}  # fmt: skip


def gap_words(gaps: Gaps) -> Iterator[str]:
    """What the traffic does not tell, in words."""
    counts: dict[str, Callable[[Gaps], int]] = {
        "record is missing in the chain": lambda one: one.missing_numbers,
        "record has no step that can be judged": lambda one: one.unreadable,
        "line is no record": lambda one: one.bad_lines,
        "record has lost a long text": lambda one: one.missing_texts,
        "step was not recorded exactly": lambda one: one.lossy,
        "step was imported from a transcript": lambda one: one.imported,
    }
    found = [words for note, words in _NOTES.items() if gaps.notes.get(note)]
    found += [f"{count(gaps):,} x {what}" for what, count in counts.items() if count(gaps)]
    if found:
        yield f"gaps: {'; '.join(found)}"


def relative_places(places: dict[str, HookPlace], root: Path) -> dict[str, HookPlace]:
    """The places with their files as the repository names them."""
    found = {}
    for hook, place in places.items():
        file = Path(place.file)
        found[hook] = HookPlace(
            file.relative_to(root).as_posix() if file.is_relative_to(root) else file.name, place.line
        )
    return found
