"""Replay reproduces what depends only on the record, and names the cause of every other difference."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from contextlib import closing
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from replay_scenes import PURE, SECRET, Human, causes, dispatch_all, every_event, hooks_of, record, replay

from fairlead import Hooks, Journal, Verdict, current_session, deny
from fairlead.errors import FairleadError
from fairlead.lifecycle import BeforeRequest, BeforeTool
from fairlead.replay.judge import Judge

COMMANDS = ("ls", "git push --force", "git status", "rm -rf build", "boom", "echo one two", "cat file.txt")


@given(
    names=st.lists(st.sampled_from(sorted(PURE)), min_size=1, max_size=6, unique=True),
    commands=st.lists(st.lists(st.sampled_from(COMMANDS), max_size=12), min_size=1, max_size=4),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_decision_that_depends_only_on_the_record_is_reproduced(names: list[str], commands: list[list[str]]):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        record(path, hooks_of(*names, approver=Human()), lambda hooks: dispatch_all(hooks, commands))
        report = replay(path, hooks_of(*names)) if any(commands) else None
    if report is not None:
        assert causes(report) == {}
        assert report.totals.same == sum(map(len, commands))


@given(
    names=st.lists(st.sampled_from(sorted(PURE)), max_size=4, unique=True),
    commands=st.lists(st.sampled_from((*COMMANDS, f"curl -H {SECRET}")), min_size=1, max_size=12),
    odd=st.sampled_from(("secret", "environment")),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_other_difference_has_its_cause(names: list[str], commands: list[str], odd: str):
    os.environ["FAIRLEAD_TEST_REPLAY"] = "1"
    try:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "journal.db"
            hooks = hooks_of(*names, odd, approver=Human())
            record(path, hooks, lambda hooks: dispatch_all(hooks, [commands]))
            del os.environ["FAIRLEAD_TEST_REPLAY"]
            report = replay(path, hooks_of(*names, odd))
    finally:
        os.environ.pop("FAIRLEAD_TEST_REPLAY", None)
    found = causes(report)
    assert report.totals.same + sum(found.values()) == len(commands)
    expected = {"secret": {"redacted"}, "environment": {"outside"}}[odd]
    # Where the odd hook changes what is asked, the question has no recorded answer.
    allowed = expected | ({"would ask", "redacted"} if odd == "environment" else set())
    assert {cause for cause, _ in found} <= allowed


def test_all_events_are_read_and_judged(tmp_path: Path):
    def watch(step: Any) -> None:
        seen.append(step)

    async def work(hooks: Hooks) -> None:
        session = hooks.session("s-1", host="loop")
        for step in every_event(session):
            dispatched.append(step)
            await session.dispatch(step)

    seen: list[Any] = []
    dispatched: list[Any] = []
    record(tmp_path / "journal.db", Hooks(), work)
    hooks = Hooks()
    hooks.add(watch, on="*", name="watch")
    report = replay(tmp_path / "journal.db", hooks)
    assert report.totals.steps == 26
    assert causes(report) == {}
    assert sorted(step.event for step in seen) == sorted(step.event for step in dispatched)
    assert {step.event: step for step in seen} == {step.event: step for step in dispatched}


def test_parallel_calls_are_judged_in_the_order_in_which_they_began(tmp_path: Path):
    async def nth(step: Any) -> Verdict | None:
        number = current_session().store.increment("n")
        await asyncio.sleep(0.02 if number % 4 == 1 else 0)  # so that the first of four ends last
        return deny("odd") if number % 2 else None

    def hooks(**options: Any) -> Hooks:
        made = Hooks(**options)
        made.add(nth, on="before_tool", phase="gate")
        return made

    async def work(hooks: Hooks) -> None:
        session = hooks.session("s-1")
        for _ in range(5):
            calls = [session.step(BeforeTool, tool="bash", args={"command": f"ls {n}"}) for n in range(4)]
            await asyncio.gather(*map(session.dispatch, calls))

    record(tmp_path / "journal.db", hooks(), work)
    report = replay(tmp_path / "journal.db", hooks())
    assert causes(report) == {}
    assert report.totals.same == 20


def test_a_subagent_shares_the_counters_of_its_parent(tmp_path: Path):
    async def work(hooks: Hooks) -> None:
        session = hooks.session("s-1")
        for number in range(3):
            child = session.subagent(f"helper-{number}")
            for _ in range(2):
                await child.dispatch(child.step(BeforeTool, tool="bash", args={"command": "ls"}))

    record(tmp_path / "journal.db", hooks_of("rate"), work)
    report = replay(tmp_path / "journal.db", hooks_of("rate"))
    assert causes(report) == {("cold state", ""): 6}  # the parent itself left no record

    async def work_of_all(hooks: Hooks) -> None:
        session = hooks.session("s-1")
        await session.dispatch(session.step(BeforeTool, tool="bash", args={"command": "ls"}))
        for number in range(3):
            child = session.subagent(f"helper-{number}")
            for _ in range(2):
                await child.dispatch(child.step(BeforeTool, tool="bash", args={"command": "ls"}))

    record(tmp_path / "whole.db", hooks_of("rate"), work_of_all)
    report = replay(tmp_path / "whole.db", hooks_of("rate"))
    assert causes(report) == {}
    assert report.totals.same == 7


def test_state_that_hooks_keep_is_rebuilt_across_requests(tmp_path: Path):
    def count(step: Any) -> Verdict | None:
        step.state["requests"] = step.state.get("requests", 0) + 1
        return deny("enough") if step.state["requests"] > 2 and step.event == "before_tool" else None

    def gate(step: Any) -> Verdict | None:
        return deny("enough") if current_session().state.get("requests", 0) > 2 else None

    def hooks(**options: Any) -> Hooks:
        made = Hooks(**options)
        made.add(count, on="before_request", name="count")
        made.add(gate, on="before_tool", phase="gate", name="gate")
        return made

    async def work(hooks: Hooks) -> None:
        session = hooks.session("s-1")
        for _ in range(4):
            await session.dispatch(session.step(BeforeRequest))
            await session.dispatch(session.step(BeforeTool, tool="bash", args={"command": "ls"}))

    record(tmp_path / "journal.db", hooks(), work)
    report = replay(tmp_path / "journal.db", hooks())
    assert causes(report) == {}
    assert report.totals.same == 8


def test_a_paused_policy_is_compared_with_what_it_would_have_done(tmp_path: Path):
    record(
        tmp_path / "journal.db",
        hooks_of("force_push", enforce=False),
        lambda hooks: dispatch_all(hooks, [["git push --force"]]),
    )
    report = replay(tmp_path / "journal.db", hooks_of("force_push"))
    assert causes(report) == {}
    assert report.totals.same == 1


def test_a_failure_that_does_not_come_back_is_named(tmp_path: Path):
    def flaky(step: Any) -> None:
        if failing:
            raise OSError("no network")

    def hooks() -> Hooks:
        made = Hooks()
        made.add(flaky, on="before_tool", phase="gate")
        return made

    failing = True
    record(tmp_path / "journal.db", hooks(), lambda hooks: dispatch_all(hooks, [["ls"]]))
    failing = False
    assert causes(replay(tmp_path / "journal.db", hooks())) == {("failure", "flaky"): 1}


def test_another_policy_is_named_as_the_cause(tmp_path: Path):
    record(tmp_path / "journal.db", hooks_of("force_push"), lambda hooks: dispatch_all(hooks, [["git push --force"]]))
    report = replay(tmp_path / "journal.db", hooks_of("rate"))
    assert causes(report) == {("policy", "force_push"): 1}


def test_a_new_question_is_no_deny(tmp_path: Path):
    record(tmp_path / "journal.db", hooks_of("rate"), lambda hooks: dispatch_all(hooks, [["rm -rf build"]]))
    report = replay(tmp_path / "journal.db", hooks_of("rate", "questions"))
    (one,) = report.differences
    assert (one.cause, one.now.control) == ("would ask", "ask")


@pytest.mark.parametrize("value", [float("nan"), b"bytes", ("a", "b"), {1: 2}, Path("/x")])
def test_a_value_that_json_cannot_hold_is_named(tmp_path: Path, value: Any):
    def typed(step: Any) -> Verdict | None:
        return deny("odd") if repr(step.args["value"]) == repr(value) else None

    def hooks() -> Hooks:
        made = Hooks()
        made.add(typed, on="before_tool", phase="gate")
        return made

    async def work(hooks: Hooks) -> None:
        session = hooks.session("s-1")
        await session.dispatch(session.step(BeforeTool, tool="odd", args={"value": value}))

    record(tmp_path / "journal.db", hooks(), work)
    report = replay(tmp_path / "journal.db", hooks())
    assert {cause for cause, _ in causes(report)} == {"inexact"}
    assert report.gaps.lossy == 1


def test_observers_that_would_tell_others_do_not_run(tmp_path: Path):
    told: list[Any] = []

    def hooks() -> Hooks:
        made = hooks_of("force_push")
        made.add(lambda step: told.append(step), on="before_tool", phase="observe", detached=True, name="tell")
        return made

    record(tmp_path / "journal.db", hooks(), lambda hooks: dispatch_all(hooks, [["ls"]]))
    told.clear()
    report = replay(tmp_path / "journal.db", hooks())
    assert (told, report.totals.same) == ([], 1)


def test_what_a_secret_may_have_left_in_the_session_is_not_taken_for_known(tmp_path: Path):
    def count_secrets(step: Any) -> Verdict | None:
        if "gh" + "p_" in (step.target.command or ""):
            current_session().store.increment("secrets")
        return None

    def after_a_secret(step: Any) -> Verdict | None:
        return deny("a secret was there") if current_session().store.get("secrets", 0) else None

    def hooks() -> Hooks:
        made = Hooks()
        for fn in (count_secrets, after_a_secret):
            made.add(fn, on="before_tool", phase="gate")
        return made

    commands = ["ls", f"curl -H {SECRET}", "pwd"]
    record(tmp_path / "journal.db", hooks(), lambda made: dispatch_all(made, [commands]))
    assert causes(replay(tmp_path / "journal.db", hooks())) == {
        ("redacted", "step.args.command (github token)"): 1, ("cold state", ""): 1,
    }  # fmt: skip


def test_what_follows_from_an_unknown_value_is_not_known_either(tmp_path: Path):
    def third(step: Any) -> Verdict | None:
        store = current_session().store
        count = store.get("calls", 0) + 1
        store.set("calls", count)
        return deny("every third") if count % 3 == 0 else None

    def hooks() -> Hooks:
        made = Hooks()
        made.add(third, on="before_tool", phase="gate")
        return made

    record(tmp_path / "journal.db", hooks(), lambda made: dispatch_all(made, [["ls"] * 6]))
    with closing(sqlite3.connect(tmp_path / "journal.db")) as db, db:
        db.execute("UPDATE records SET body = x'7b' WHERE seq = (SELECT min(seq) FROM records WHERE kind = 'decision')")
    assert causes(replay(tmp_path / "journal.db", hooks())) == {("cold state", ""): 5}


def test_steps_keep_their_order_when_the_process_is_held_up_between_two_clocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    read, calls = time.time_ns, count()

    def held_up() -> int:
        now = read()
        if next(calls) % 4 == 3:
            time.sleep(0.01)
        return now

    monkeypatch.setattr(time, "time_ns", held_up)
    path = tmp_path / "journal.db"
    record(path, hooks_of("rate"), lambda hooks: dispatch_all(hooks, [["ls", "pwd"] * 4]))
    assert causes(replay(path, hooks_of("rate"))) == {}


def test_what_a_hook_said_at_an_event_that_no_hook_is_about_now_is_a_difference(tmp_path: Path):
    record(
        tmp_path / "journal.db", hooks_of("force_push"), lambda made: dispatch_all(made, [["git push --force", "ls"]])
    )
    report = replay(tmp_path / "journal.db", Hooks())
    assert causes(report) == {("policy", "force_push"): 1}
    assert report.totals.steps == 1


def test_a_failure_that_depends_on_a_secret_is_no_failure_of_the_hook(tmp_path: Path):
    def fails_without(step: Any) -> None:
        if "gh" + "p_" not in (step.target.command or ""):
            raise ValueError("no token")

    def hooks() -> Hooks:
        made = Hooks()
        made.add(fails_without, on="before_tool", phase="gate")
        return made

    record(tmp_path / "journal.db", hooks(), lambda made: dispatch_all(made, [[f"curl -H {SECRET}"]]))
    assert causes(replay(tmp_path / "journal.db", hooks())) == {("redacted", "step.args.command (github token)"): 1}


def test_one_journal_with_everything_is_reproduced_and_each_other_decision_has_its_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Every event, parallel calls, subagents, counters, windows, approvals and redacted fields in one journal."""
    names = ("environment", "secret", "force_push", "rate", "budget", "sample", "verbose", "questions")

    async def work(hooks: Hooks) -> None:
        for number in range(4):
            session = hooks.session(f"s-{number}", host="loop", cwd="/repo")
            for step in every_event(session):
                await session.dispatch(step)
            commands = ["ls", "git push --force", "git status", "rm -rf build", f"curl -H {SECRET}"]
            calls = [session.step(BeforeTool, tool="bash", args={"command": command}) for command in commands]
            await asyncio.gather(*map(session.dispatch, calls))
            child = session.subagent("helper")
            for command in commands:
                with monkeypatch.context() as patch:
                    if command == "ls":
                        patch.setenv("FAIRLEAD_TEST_REPLAY", "1")
                    await child.dispatch(child.step(BeforeTool, tool="bash", args={"command": command}))

    record(tmp_path / "journal.db", hooks_of(*names, approver=Human()), work)
    judge = hooks_of(*names)
    judge.add(lambda step: None, on="*", phase="observe", name="every_event")  # so that all are read
    report = replay(tmp_path / "journal.db", judge)
    found = causes(report)
    assert report.totals.steps == 4 * (26 + 5 + 5)
    assert report.totals.same == report.totals.steps - sum(found.values())
    assert {cause for cause, _ in found} == {"redacted", "outside"}
    assert found["outside", "environment"] == 4  # one call of each subagent
    assert sum(count for (cause, _), count in found.items() if cause == "redacted") == 8  # the calls with a token


def test_hooks_with_a_journal_are_refused(tmp_path: Path):
    with Journal(tmp_path / "journal.db") as journal, pytest.raises(FairleadError, match="without one"):
        Judge(Hooks(journal=journal))
