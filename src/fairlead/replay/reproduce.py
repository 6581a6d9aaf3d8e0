"""One policy judges recorded steps, and each answer is compared with the record.

A difference has a cause. They are looked for in this order:

- `redacted`: the answer depends on a secret that the record does not have
- `failure`: a hook failed, then or now
- `external`: it depends on a hook that runs elsewhere, and that has no recorded verdict for this step
- `untrusted code`: the same, for a hook whose code is not trusted
- `cold state`: a hook reads what earlier steps left, and these are missing
- `would ask`: a hook asks what was not asked then
- `policy`: a hook that takes part is not the one of then
- `inexact`: the record could not hold a value of the step exactly, or a long text of it is gone
- `outside`: a hook depends on something that no record has: the time of day, randomness of its own, the environment,
  files, what it keeps itself, or on another session
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import Any, Final, Literal

import msgspec

from ..lifecycle import EVENTS
from ..wire.decisions import BadRecord, decode_decision
from .diff import TURNS, Progress, count_step, note_gaps
from .judge import PROCEED, PROCEEDS, Answer, Judge, Judged, answer_of
from .records import NOTHING, Recorded
from .report import CLASSES, OTHER_SHAPES, ReplayClass, ReplayReport, ReportedAnswer, Spread, example_of
from .shapes import shape_of, target_text
from .sources import Group, MissingSteps, Traffic

MismatchCause = Literal[
    "failure", "redacted", "external", "untrusted code", "cold state", "would ask", "policy", "inexact", "outside"
]
Save = Callable[[Recorded, bool, bool], object]
"""Keeps a step, whether its decision is reproduced, and whether the beginning of its session is missing."""
_UNKNOWN: Final[tuple[MismatchCause, ...]] = ("redacted", "external", "untrusted code", "cold state")


def recorded_answer(recorded: Recorded) -> Answer:
    """What is compared of the recorded decision. Raises `BadRecord` if it cannot be read."""
    body = recorded.body
    if body.contributions is NOTHING and body.left is NOTHING and body.control == "proceed":
        return PROCEED
    data: dict[str, Any] = {
        "step": msgspec.to_builtins(recorded.step, str_keys=True),
        "control": body.control,
        "said": recorded.contributions,
        "left": None if body.left is NOTHING else msgspec.json.decode(body.left),
    }
    return answer_of(decode_decision(data))


def why_not_compared(recorded: Recorded) -> str | None:
    """Why a record has no decision of a policy to compare with."""
    if recorded.imported:
        return "imported: no policy was asked"
    if recorded.policy is None:
        return "recorded without a policy" if recorded.body.unanswered is None else "left by a launcher"
    if recorded.body.control == "abort" and any(run[2] == "cancelled" for run in recorded.runs):
        return "cancelled by the caller"
    return None


class Reproducer:
    """Compares the answers of one policy with the record."""

    def __init__(self, judge: Judge, report: ReplayReport, save: Save | None = None) -> None:
        self.judge, self.report, self._save = judge, report, save
        self._classes: dict[Any, ReplayClass] = {}

    async def run(self, traffic: Traffic, groups: list[Group], progress: Progress | None = None) -> None:
        """Judge the steps of these groups."""
        started, done = perf_counter(), 0
        try:
            for group in groups:
                await self._run_group(traffic, group)
                done += group.records
                if progress is not None:
                    progress(done)
                await asyncio.sleep(0)
        finally:
            report = self.report
            report.differences = sorted(
                self._classes.values(), key=lambda one: (-one.spread.count, one.cause, one.what, one.shape)
            )
            report.gaps, report.sources = traffic.gaps, [source.name for source in traffic.sources]
            report.external = sorted(self.judge.external)
            report.totals.took = perf_counter() - started

    async def _run_group(self, traffic: Traffic, group: Group) -> None:
        judge, totals = self.judge, self.report.totals
        judge.begin(group.is_cold)
        count, everything = totals.steps, traffic.selection.is_everything
        for number, recorded in enumerate(traffic.steps(group, EVENTS), 1):
            if isinstance(recorded, MissingSteps):
                judge.miss(recorded.began)
                continue
            if recorded.step.event in judge.events:
                judged = await judge.judge(recorded)
            else:  # no hook is about it: hooks were, if it is in the record what they said
                if recorded.step.event in judge.read_events:
                    judge.rebuild(recorded)
                if _is_silent(recorded):
                    if self._save is not None and recorded.step.event in judge.read_events:
                        self._save(recorded, False, group.is_cold)  # it brings the state of the session
                    continue
                judged = PROCEEDS
            if everything or traffic.selection.covers(recorded):
                count_step(totals, recorded.began)
                note_gaps(traffic, recorded)
                if judged is PROCEEDS and _is_plain(recorded):  # the usual case
                    totals.same += 1
                    is_same = True
                else:
                    is_same = self._compare(recorded, judged)
            else:
                totals.warming += 1
                is_same = False
            if self._save is not None:
                self._save(recorded, is_same, group.is_cold)
            if not number % TURNS:
                await asyncio.sleep(0)
        if totals.steps > count:
            totals.sessions += group.sessions
            totals.cold_sessions += group.is_cold

    def _compare(self, recorded: Recorded, judged: Judged) -> bool:
        """Whether a decision is reproduced. What is not is counted."""
        totals = self.report.totals
        reason = why_not_compared(recorded)
        try:
            then = recorded_answer(recorded)
        except BadRecord:
            reason = reason or "its decision cannot be read"
        if reason is not None:
            self.report.not_compared[reason] = self.report.not_compared.get(reason, 0) + 1
            return False
        differing = [answer for answer in judged.answers if not _is_same(then, answer, recorded)]
        if not differing and not judged.unknown:
            totals.same += 1
            return True
        now = differing[0] if differing else judged.answers[0]
        cause, what = self._cause(recorded, judged, then, now, len(differing))
        self._count(recorded, cause, what, then, now)
        return False

    def _cause(
        self, recorded: Recorded, judged: Judged, then: Answer, now: Answer, differing: int
    ) -> tuple[MismatchCause, str]:
        """Why an answer is not the recorded one."""
        differs_by_secret = len({ReportedAnswer.of(answer) for answer in judged.answers}) > 1
        if differing and (differing < len(judged.answers) or differs_by_secret):
            place, kind = recorded.redacted_places[0]
            return "redacted", f"{place} ({kind})"
        if set(then.failed) != set(now.failed):
            return "failure", min({*then.failed} ^ {*now.failed})
        for cause in _UNKNOWN:
            for unknown in judged.unknown:
                if unknown.why == cause:
                    return cause, unknown.what
        if judged.would_ask:
            return "would ask", now.hook or ""
        versions = recorded.source.versions(recorded.policy) if recorded.source is not None else {}
        ours = self.judge.versions
        replaced = {name for name in {*versions, *ours} if versions.get(name) != ours.get(name)}
        involved = {name for name in (then.hook, now.hook, *_hooks_in(then, now)) if name is not None}
        if then.changes != now.changes:
            involved |= {one["hook"] for one in recorded.contributions if (one.get("verdict") or {}).get("changes")}
        if involved & replaced:
            return "policy", min(involved & replaced)
        if recorded.redacted_places or any(place.startswith(("left", "said")) for place, *_ in recorded.body.redacted):
            return "redacted", recorded.body.redacted[0][0]
        if recorded.body.lossy or recorded.missing:
            return "inexact", recorded.body.lossy[0][0] if recorded.body.lossy else "a long text is gone"
        if replaced:
            return "policy", min(replaced)
        spoke = {one.get("hook") for one in recorded.contributions if "verdict" in one}
        first, second = (then.hook, now.hook) if now.hook in spoke else (now.hook, then.hook)
        return "outside", first or second or next(iter(_hooks_in(then, now)), "")

    def _count(self, recorded: Recorded, cause: MismatchCause, what: str, then: Answer, now: Answer) -> None:
        totals = self.report.totals
        if cause in ("redacted", "external", "untrusted code", "cold state"):
            totals.unknown += 1
        elif cause == "would ask":
            totals.would_ask += 1
        else:
            totals.changed += 1
        before, after, shape = ReportedAnswer.of(then), ReportedAnswer.of(now), shape_of(recorded.step)
        if (cause, what, before, after, shape) not in self._classes and len(self._classes) >= CLASSES:
            shape = OTHER_SHAPES
        example = example_of(recorded, target_text(recorded.step))
        known = self._classes.get((cause, what, before, after, shape))
        if known is None:
            known = ReplayClass(cause, what, before, after, shape, Spread(), example)
            self._classes[cause, what, before, after, shape] = known
        elif example.replaces(known.example):
            known.example = example
        known.spread.add(recorded)


def _is_plain(recorded: Recorded) -> bool:
    """Whether no hook said anything about a step that a policy judged."""
    return _is_silent(recorded) and recorded.policy is not None and not recorded.imported


def _is_silent(recorded: Recorded) -> bool:
    """Whether the record has nothing that a hook said."""
    body = recorded.body
    return body.contributions is NOTHING and body.left is NOTHING and body.control == "proceed"


def _is_same(then: Answer, now: Answer, recorded: Recorded) -> bool:
    if then == now:
        return True
    # What was redacted in the record cannot be compared word for word.
    return bool(recorded.body.redacted) and ReportedAnswer.of(then) == ReportedAnswer.of(now)


def _hooks_in(then: Answer, now: Answer) -> list[str]:
    """The hooks that said something in one of two answers only."""
    words = {*then.also} ^ {*now.also}
    return sorted(word.rpartition(" by ")[2] for word in words)


async def reproduce(judge: Judge, traffic: Traffic, *, policy: str = "policy") -> ReplayReport:
    """Compare the answers of a policy with recorded traffic."""
    report = ReplayReport(policy)
    await Reproducer(judge, report).run(traffic, traffic.groups())
    return report
