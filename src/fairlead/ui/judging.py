"""Judges a step, or recorded traffic, with a policy that is in force or that a user types. Nothing is written.

Rules, packs and Python hooks of fairlead run. Programs, services and models of a policy never do: their recorded
verdicts stand for them, and where there is none, the answer is "unknown".
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any, NamedTuple

from ..config.document import ConfigError
from ..config.layers import SYSTEM_FILE, find, read, user_file
from ..config.project import FILE_NAME
from ..decision import Decision
from ..errors import FairleadError
from ..hosts.clis.opening import open_hooks
from ..lifecycle import Step
from ..replay.diff import diff
from ..replay.judge import Judge, Judged
from ..replay.policies import Policy, find_policies
from ..replay.records import Body, Recorded
from ..replay.report import DiffReport, ReplayReport
from ..replay.reproduce import reproduce
from ..replay.sources import Selection, Traffic, open_source

LARGEST_TEXT = 64_000
"""Characters of a policy that a user types: an address holds no more."""


class Tried(NamedTuple):
    """A step as a policy judged it, and which of its hooks were not asked."""

    decision: Decision[Any]
    judged: Judged

    @property
    def not_run(self) -> list[str]:
        return [unknown.what for unknown in self.judged.unknown]


def policy_in_force(folder: Path) -> Judge:
    """A judge with all that is in force in a folder: every layer, packs, the guard. Raises for mistakes in a file."""
    config = read(find(folder))
    if config.mistakes:
        raise ConfigError(config.mistakes)
    forms = {configured.name: configured.form for configured in config.hooks}
    return Judge(open_hooks(folder, config.apply, record=False), forms=forms, enforced=False)


def typed_policy(text: str, file: Path) -> Judge:
    """A judge with the text of a file, as it would be if it were saved."""
    if len(text) > LARGEST_TEXT:
        raise FairleadError(f"a policy that is typed here has at most {LARGEST_TEXT:,} characters")
    path = file if file in (SYSTEM_FILE, user_file()) else file.parent / FILE_NAME
    layer = "system" if file == SYSTEM_FILE else "user" if file == user_file() else "project"
    return Policy("what you typed", str(path), text.encode(), layer, is_revision=True).open()[0]  # type: ignore[arg-type]


def try_step(judge: Judge, step: Step) -> Tried:
    """Judge one step."""
    decisions: list[Decision[Any]] = []
    judge.watch(lambda decision, recorded: decisions.append(decision))

    async def run() -> Judged:
        judge.begin(is_cold=False)
        try:
            return await judge.judge(Recorded(Body(id="playground", at=time.time_ns(), step=step)))
        finally:
            await judge.hooks.aclose()

    judged = asyncio.run(run())
    return Tried(decisions[0], judged)


def compare(journal: Path, old: Judge, new: Judge, last: int, names: tuple[str, str]) -> DiffReport:
    """Judge the newest steps of a journal with two policies."""

    async def run(traffic: Traffic) -> DiffReport:
        try:
            return await diff(old, new, traffic, names=names)
        finally:
            await old.hooks.aclose()
            await new.hooks.aclose()

    with _newest(journal, last) as traffic:
        return asyncio.run(run(traffic))


def compare_named(journal: Path, old: str, new: str, last: int) -> DiffReport:
    """The same for two policies by name: files, folders or revisions of git, from where `fairlead ui` runs."""
    policies = find_policies([word for word in (old, new) if word])
    (before, first), (after, second) = (policy.open() for policy in policies)
    report = compare(journal, before, after, last, (first.name, second.name))
    report.untrusted = sorted({*first.untrusted, *second.untrusted})
    return report


def compare_with_record(journal: Path, folder: Path, last: int) -> ReplayReport:
    """Judge the newest steps of a journal with the policy in force, and compare with the record."""
    judge = policy_in_force(folder)

    async def run(traffic: Traffic) -> ReplayReport:
        try:
            return await reproduce(judge, traffic, policy=str(folder))
        finally:
            await judge.hooks.aclose()

    with _newest(journal, last) as traffic:
        return asyncio.run(run(traffic))


def _newest(journal: Path, last: int) -> Traffic:
    return Traffic([open_source(str(journal))], Selection(last=last))
