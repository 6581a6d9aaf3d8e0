"""Two policies judge the same recorded steps. What differs is sorted into classes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any, Final

from ..journal.policy import hook_to_builtins
from .judge import PROCEED, Answer, Judge, Judged, Unknown
from .memo import is_pure
from .records import Recorded
from .report import (
    CLASSES,
    DIRECTIONS,
    OTHER_SHAPES,
    ChangeClass,
    DiffReport,
    ReportedAnswer,
    Spread,
    Totals,
    UnknownClass,
    direction_of,
    example_of,
)
from .shapes import shape_of, target_text
from .shrinking import shrink_examples
from .sources import Group, MissingSteps, Traffic

Progress = Callable[[int], None]
"""Is told how many records are done."""
TURNS: Final = 500
"""Steps after which a long session lets an interruption through."""


class Differ:
    """Collects the differences between two policies."""

    def __init__(self, old: Judge, new: Judge, report: DiffReport) -> None:
        self.old, self.new, self.report = old, new, report
        self._differ_in_pure_hooks = _differ_in_pure_hooks(old, new)
        self._changes: dict[Any, ChangeClass] = {}
        self._unknown: dict[Any, UnknownClass] = {}

    async def run(self, traffic: Traffic, groups: list[Group], progress: Progress | None = None) -> None:
        """Judge the steps of these groups."""
        started, done = perf_counter(), 0
        try:
            for group in groups:
                await self._run_group(traffic, group)
                done += group.records
                if progress is not None:
                    progress(done)
                await asyncio.sleep(0)  # where an interruption comes through
        finally:
            self.finish(traffic)
            self.report.totals.took = perf_counter() - started

    async def _run_group(self, traffic: Traffic, group: Group) -> None:
        old, new, totals, covers = self.old, self.new, self.report.totals, traffic.selection.covers
        old.begin(group.is_cold)
        new.begin(group.is_cold)
        count = totals.steps
        everything, events = traffic.selection.is_everything, old.events | new.events
        read_events = old.read_events | new.read_events
        reads_more = read_events != events
        for number, recorded in enumerate(traffic.steps(group, read_events), 1):
            if isinstance(recorded, MissingSteps):
                old.miss(recorded.began)
                new.miss(recorded.began)
                continue
            if reads_more and recorded.step.event not in events:
                old.rebuild(recorded)
                new.rebuild(recorded)
                continue
            before, after = await old.judge(recorded), await new.judge(recorded)
            if everything or covers(recorded):
                count_step(totals, recorded.began)
                if before is after or (before == after and not before.unknown):
                    totals.same += 1
                else:
                    self._compare(recorded, before, after)
                totals.would_ask += before.would_ask or after.would_ask
                note_gaps(traffic, recorded)
            else:
                totals.warming += 1
            if not number % TURNS:
                await asyncio.sleep(0)
        if totals.steps > count:
            totals.sessions += group.sessions
            totals.cold_sessions += group.is_cold

    def _compare(self, recorded: Recorded, before: Judged, after: Judged) -> None:
        pairs = list(zip(before.answers, after.answers, strict=True))
        differing = [(old, new) for old, new in pairs if old != new]
        unknown = [] if self._cancels_out(before, after) else list(self._unknown_in_one(before, after))
        totals = self.report.totals
        if not unknown and not differing:
            totals.same += 1
        elif unknown:
            self._count_unknown(recorded, unknown[0])
        elif (
            len(differing) == len(pairs)
            and len({(ReportedAnswer.of(old), ReportedAnswer.of(new)) for old, new in pairs}) == 1
        ):
            self._count_change(recorded, *differing[0])
        else:
            place, kind = recorded.redacted_places[0]
            self._count_unknown(recorded, Unknown("redacted", f"{place} ({kind})"))

    def _cancels_out(self, before: Judged, after: Judged) -> bool:
        """Whether the same missing steps are all that is not known, and they make no difference.

        All hooks that remember anything are in both policies, and remember the same. And no other hook does anything
        about this step. So whatever the missing steps have left, it leads to the same answer in both.
        """
        return (
            self._differ_in_pure_hooks
            and before.unknown == after.unknown == COLD
            and all(answer is PROCEED for answer in (*before.answers, *after.answers))
            and self.old.remembers_like(self.new)
        )

    def _unknown_in_one(self, before: Judged, after: Judged) -> Iterator[Unknown]:
        """What is not known, but for what both policies do not know in the same way."""
        for unknown in sorted({*before.unknown, *after.unknown}):
            old, new = self.old.versions.get(unknown.what), self.new.versions.get(unknown.what)
            both = unknown in before.unknown and unknown in after.unknown
            if not (both and old is not None and old == new):
                yield unknown

    def _count_change(self, recorded: Recorded, before: Answer, after: Answer) -> None:
        self.report.totals.changed += 1
        old, new, shape = ReportedAnswer.of(before), ReportedAnswer.of(after), shape_of(recorded.step)
        event = recorded.step.event
        if (old, new, event, shape) not in self._changes and len(self._changes) >= CLASSES:
            shape = OTHER_SHAPES
        key = old, new, event, shape
        example = example_of(recorded, target_text(recorded.step))
        known = self._changes.get(key)
        if known is None:
            direction = direction_of(old.control, new.control)
            known = self._changes[key] = ChangeClass(old, new, event, shape, direction, Spread(), example)
        elif example.replaces(known.example):
            known.example = example
        known.spread.add(recorded)

    def _count_unknown(self, recorded: Recorded, unknown: Unknown) -> None:
        self.report.totals.unknown += 1
        shape = shape_of(recorded.step)
        if (unknown, shape) not in self._unknown and len(self._unknown) >= CLASSES:
            shape = OTHER_SHAPES
        example = example_of(recorded, target_text(recorded.step))
        known = self._unknown.get((unknown, shape))
        if known is None:
            known = self._unknown[unknown, shape] = UnknownClass(unknown.why, unknown.what, shape, Spread(), example)
        elif example.replaces(known.example):
            known.example = example
        known.spread.add(recorded)

    def finish(self, traffic: Traffic) -> None:
        """Put the classes into the report: those that reach furthest first."""
        self.report.changes = list(self._changes.values())
        self.report.unknown = list(self._unknown.values())
        self.report.gaps = traffic.gaps
        self.report.sources = [source.name for source in traffic.sources]
        order(self.report)


COLD: Final = (Unknown("cold state"),)


def _differ_in_pure_hooks(old: Judge, new: Judge) -> bool:
    """Whether every hook that only one of the policies has, as it is, depends on the step alone.

    And on the recorded step: no hook that remembers anything may change it before.
    """
    first, second = ({hook.name: hook for hook in one.hooks if hook.phase != "observe"} for one in (old, new))
    differing = [
        (one, other)
        for one, other in ((first.get(name), second.get(name)) for name in {*first, *second})
        if one is None or other is None or hook_to_builtins(one) != hook_to_builtins(other)
    ]
    may_change = any(hook.phase == "transform" and not is_pure(hook) for hook in (*first.values(), *second.values()))
    return not differing or (
        not may_change and all(hook is None or is_pure(hook) for pair in differing for hook in pair)
    )


def order(report: DiffReport) -> None:
    """Sort the classes: loosened before tightened before other, and each by count."""
    report.changes.sort(
        key=lambda one: (DIRECTIONS.index(one.direction), -one.spread.count, one.shape, str(one.before), str(one.after))
    )
    report.unknown.sort(key=lambda one: (-one.spread.count, one.why, one.what, one.shape))


def count_step(totals: Totals, began: float) -> None:
    """Count a step that was judged."""
    if began > totals.last:
        totals.last = began
    if began < totals.first or not totals.steps:
        totals.first = began
    totals.steps += 1


def note_gaps(traffic: Traffic, recorded: Recorded) -> None:
    """Count what a record does not tell exactly."""
    if not (recorded.missing or recorded.imported or recorded.body.lossy):
        return
    if recorded.missing:
        traffic.gaps.missing_texts += 1
    if recorded.body.lossy:
        traffic.gaps.lossy += 1
    if recorded.imported:
        traffic.gaps.imported += 1


def merge(into: DiffReport, other: DiffReport) -> None:
    """Add the report of another part of the traffic."""
    into.totals.add(other.totals)
    into.gaps.add(other.gaps)
    changes = {(one.before, one.after, one.event, one.shape): one for one in into.changes}
    for change in other.changes:
        key = change.before, change.after, change.event, change.shape
        _join(changes.setdefault(key, change), change)
    unknown = {(one.why, one.what, one.shape): one for one in into.unknown}
    for one in other.unknown:
        _join(unknown.setdefault((one.why, one.what, one.shape), one), one)
    into.changes, into.unknown = list(changes.values()), list(unknown.values())
    order(into)


def _join(known: Any, other: Any) -> None:
    if known is not other:
        known.spread.merge(other.spread)
        if other.example.replaces(known.example):
            known.example = other.example


async def diff(old: Judge, new: Judge, traffic: Traffic, *, names: tuple[str, str] = ("old", "new")) -> DiffReport:
    """Compare two policies on recorded traffic."""
    report = DiffReport(*names)
    await Differ(old, new, report).run(traffic, traffic.groups())
    await shrink_examples(report, old, new)
    return report
