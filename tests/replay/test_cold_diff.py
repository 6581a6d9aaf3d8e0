"""What is missing in the record is missing for both policies, and cancels out where that is certain."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from replay_scenes import PURE, dispatch_all, record, traffic_of

from fairlead import Hooks
from fairlead.replay.diff import diff
from fairlead.replay.judge import Judge
from fairlead.replay.report import DiffReport
from fairlead.runners.rule import Rule


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A session whose first steps are gone."""
    path = tmp_path / "journal.db"
    record(path, policy(), lambda hooks: dispatch_all(hooks, [["ls", "pwd", "ls", "git push --force", "ls"]]))
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM records WHERE seq IN (SELECT seq FROM records WHERE kind = 'decision' LIMIT 2)")
    return path


def policy(rule: str = "no-such-text", *, remembers: str = "rate", phase: Any = "gate") -> Hooks:
    hooks = Hooks()
    hooks.add(PURE[remembers], on="before_tool", phase=phase, name="remembers")
    text: Any = Rule(f'target.command.contains("{rule}")', on="before_tool", deny="no")
    hooks.add(text, on="before_tool", phase="gate", name="rule")
    return hooks


def compared(path: Path, old: Hooks, new: Hooks) -> DiffReport:
    with traffic_of(path) as traffic:
        return asyncio.run(diff(Judge(old), Judge(new), traffic))


def test_the_same_missing_steps_make_no_difference_to_a_changed_rule(path: Path):
    totals = compared(path, policy(), policy("other-text")).totals
    assert (totals.same, totals.changed, totals.unknown) == (3, 0, 0)


def test_a_step_on_which_the_rules_differ_is_not_taken_for_known(path: Path):
    totals = compared(path, policy(), policy("--force")).totals
    assert (totals.same, totals.changed, totals.unknown) == (2, 0, 1)


def test_a_changed_hook_that_remembers_is_unknown(path: Path):
    totals = compared(path, policy(), policy(remembers="budget")).totals
    assert (totals.same, totals.unknown) == (0, 3)


def test_a_hook_that_is_there_in_one_policy_only_is_unknown(path: Path):
    old = policy()
    old.unregister("remembers")
    assert compared(path, old, policy()).totals.unknown == 3


def test_a_hook_that_remembers_and_may_change_the_step_is_unknown(path: Path):
    transform: Any = "transform"
    totals = compared(path, policy(phase=transform), policy("other-text", phase=transform)).totals
    assert (totals.same, totals.unknown) == (0, 3)
    assert compared(path, policy(phase=transform), policy(phase=transform)).totals.same == 3
