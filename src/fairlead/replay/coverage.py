"""How much of a policy its traffic or its test cases reach: hooks that never fire, and why.

A hook has a candidate where its events and filters match a step. "Never" is always said with the number of candidates:
no hit among a thousand is another thing than no hit among none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from ..decision import Decision
from ..display import counted
from ..hook import Hook
from ..verdict import Verdict
from .judge import Judge
from .published import PublishedReport, Publisher, ReportRow
from .records import Recorded
from .report import HookPlace

Status = Literal["fires", "never fires", "shadowed", "no candidates", "not reached"]
SLOW: Final = {True: 0.1, False: 0.001}
"""Seconds from which the mean run of a hook is slow: of one that leaves the process, and of one that does not."""


class HookCoverage(msgspec.Struct):
    """What traffic says of one hook."""

    name: str
    phase: str
    form: str
    candidates: int = 0  # steps that its events and filters match
    started: int = 0
    fired: int = 0  # it gave a verdict
    stopped: int = 0  # of these, verdicts that stop something
    alone: int = 0  # of those, no other hook stopped the same step
    failed: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    others: dict[str, int] = {}  # hooks that stopped the same step, and how often

    @property
    def status(self) -> Status:
        if not self.candidates:
            return "no candidates"
        if not self.started:
            return "not reached"
        if not self.fired:
            return "never fires"
        return "shadowed" if self.shadowed_by else "fires"

    @property
    def shadowed_by(self) -> list[str]:
        """The hooks that stop every step that this one stops."""
        never_alone = self.stopped == self.fired and self.stopped and not self.alone
        return sorted(name for name, count in self.others.items() if count == self.stopped) if never_alone else []

    @property
    def mean(self) -> float:
        """Seconds of a run, without the slowest, which was maybe the first."""
        return (self.seconds - self.slowest) / (self.started - 1) if self.started > 1 else self.seconds

    @property
    def is_slow(self) -> bool:
        return self.mean > SLOW[self.form not in ("rule", "pack", "python")]


class PolicyCoverage:
    """Counts what the hooks of a judge do. It takes part from when it is made."""

    def __init__(self, judge: Judge, forms: Mapping[str, str] | None = None) -> None:
        """`forms` says how configured hooks run. Hooks that are in none of its names are left out, if it is given."""
        judge.watch(self._count)
        hooks = [hook for hook in judge.hooks if hook.phase != "observe" and (forms is None or hook.name in forms)]
        self._hooks: list[tuple[Hook, HookCoverage]] = [
            (hook, HookCoverage(hook.name, hook.phase, (forms or {}).get(hook.name, "python"))) for hook in hooks
        ]
        self._by_name = {found.name: found for _, found in self._hooks}
        self._external = frozenset(judge.external)  # what they took is in the record
        self.steps = 0

    @property
    def hooks(self) -> list[HookCoverage]:
        return [found for _, found in self._hooks]

    @property
    def percent(self) -> float:
        """The share of hooks that fire at all, of 100."""
        fired = sum(found.fired > 0 for found in self.hooks)
        return 100.0 * fired / len(self._hooks) if self._hooks else 100.0

    def _count(self, decision: Decision[Any], recorded: Recorded) -> None:
        self.steps += 1
        step = decision.original
        for hook, found in self._hooks:
            found.candidates += step.event in hook.events and hook.applies(step)
        took = {run[0]: run[3] for run in recorded.runs} if self._external else {}
        for run in decision.runs:
            if (known := self._by_name.get(run.hook)) is not None:
                duration = took.get(run.hook, 0.0) if run.hook in self._external else run.duration
                known.started += 1
                known.seconds += duration
                known.slowest = max(known.slowest, duration)
        stopping: set[str] = set()
        fired: set[str] = set()
        for name, verdict in _verdicts(decision):
            if name not in fired and (known := self._by_name.get(name)) is not None:
                fired.add(name)
                known.fired += 1
                if verdict.control not in ("proceed", "allow", "skip_rest"):
                    stopping.add(name)
        for failure in decision.failures:
            if (known := self._by_name.get(failure.hook)) is not None:
                known.failed += 1
        for name in stopping:
            known = self._by_name[name]
            known.stopped += 1
            known.alone += len(stopping) == 1
            for other in stopping - {name}:
                known.others[other] = known.others.get(other, 0) + 1


def _verdicts(decision: Decision[Any]) -> Iterable[tuple[str, Verdict]]:
    yield from ((one.hook.name, one.verdict) for one in decision.verdicts if one.cause == "policy")
    yield from ((one.hook, one.verdict) for one in decision.monitored if one.cause == "policy")


def explain(hook: HookCoverage) -> str:
    """What is to be said about a hook."""
    if hook.status == "no candidates":
        return "no candidates: no step is at its events, of its tools and kinds"
    if hook.status == "not reached":
        return f"not reached: another hook ends each of its {counted(hook.candidates, 'candidate')} before it"
    if hook.status == "never fires":
        failed = f", and it failed {hook.failed:,} times" if hook.failed else ""
        return f"never fires: none of {counted(hook.candidates, 'candidate')}{failed}"
    fires = f"fires {hook.fired:,} times among {counted(hook.candidates, 'candidate')}"
    if hook.status == "shadowed":
        return f"shadowed by {', '.join(hook.shadowed_by)}: {fires}, never alone"
    return fires


def of_coverage(
    found: PolicyCoverage, policy: str, least: float | None, places: dict[str, HookPlace]
) -> PublishedReport:
    """The rows of a coverage: one per hook. With too little of it, hooks that do not fire are errors."""
    too_little = least is not None and found.percent < least
    rows = [_row(hook, too_little) for hook in found.hooks]
    kinds = Counter(hook.status for hook in found.hooks)
    counts = ", ".join(f"{count} {status}" for status, count in kinds.most_common())
    wanted = f", and {least:g} % is wanted" if too_little else ""
    return PublishedReport(
        command="fairlead coverage of a policy",
        title=Publisher((), ()).text(policy),
        summary=f"{found.percent:.0f} % of {counted(len(rows), 'hook')} fire in "
        f"{counted(found.steps, 'step')}{wanted}: {counts or 'none'}",
        rows=rows,
        places=places,
    )


def _row(hook: HookCoverage, too_little: bool) -> ReportRow:
    slow = [f"slow: {hook.mean * 1e3:.1f} ms on average"] if hook.is_slow else []
    fine = hook.status == "fires"
    level = "pass" if fine and not slow else "error" if too_little and not hook.fired else "warning"
    return ReportRow(
        group="slow" if fine and slow else hook.status,
        title=Publisher((), ()).text(f"{hook.name}: {explain(hook)}"),
        level=level,  # type: ignore[arg-type]
        details=slow,
        hook=hook.name,
    )
