"""What a diff says of two policies in code: loosened or tightened, and what a session remembers."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from replay_scenes import SECRET, Human, causes, record, replay, shell, traffic_of

from fairlead import Hooks, Verdict, ask, current_session, deny
from fairlead.lifecycle import AfterTool, BeforeRequest, BeforeTool
from fairlead.replay.diff import diff
from fairlead.replay.judge import Judge
from fairlead.replay.report import DiffReport
from fairlead.session import Session

Gate = Callable[[Any], Verdict | None]
Work = Callable[[Hooks], Awaitable[None]]


def with_gates(*gates: Gate, **options: Any) -> Hooks:
    hooks = Hooks(**options)
    for gate in gates:
        hooks.add(gate, on="before_tool", phase="gate", name=gate.__name__)
    return hooks


def compared(path: Path, old: Hooks, new: Hooks, **selection: Any) -> DiffReport:
    with traffic_of(path, **selection) as traffic:
        return asyncio.run(diff(Judge(old), Judge(new), traffic))


def counts(report: DiffReport) -> tuple[int, int, int]:
    return report.totals.same, report.totals.changed, report.totals.unknown


async def call(session: Session, command: str = "ls") -> None:
    await session.dispatch(session.step(BeforeTool, tool="bash", args={"command": command}))


def nothing(step: Any) -> None: ...


def asks_about_rm(step: Any) -> Verdict | None:
    return ask("really?") if "rm" in step.target.command else None


def also_asks(step: Any) -> Verdict | None:
    return ask("sure?") if "rm" in step.target.command else None


def third(step: Any) -> Verdict | None:
    return deny("too many") if current_session().store.increment("n") > 3 else None


def read_only(step: Any) -> Verdict | None:
    return deny("read only") if current_session().state.get("mode") == "ro" else None


def remembers_calls(step: Any) -> Verdict | None:
    calls = current_session().store.get("calls", [])
    calls.append(1)  # in place
    current_session().store.set("calls", calls)
    return deny("too many") if len(calls) > 3 else None


# --- questions ------------------------------------------------------------------------------


@pytest.fixture
def answered(tmp_path: Path) -> Path:
    """A human approved the first call with rm, and refused the second."""

    async def work(hooks: Hooks) -> None:
        session = hooks.session("s-1")
        await call(session, "rm a")
        await call(session, "rm b")

    path = tmp_path / "journal.db"
    record(path, with_gates(asks_about_rm, approver=Human()), work)
    return path


def test_a_question_that_is_not_asked_any_more_is_loosened_though_the_human_approved(answered: Path):
    report = compared(answered, with_gates(asks_about_rm), with_gates(nothing))
    assert {(one.direction, str(one.before), str(one.after)) for one in report.changes} == {
        ("loosened", "ask (approved)", "proceed"), ("loosened", "ask (refused)", "proceed"),
    }  # fmt: skip


def test_a_refusal_in_place_of_a_question_is_tightened_though_the_human_refused(answered: Path):
    def asks_about_rm(step: Any) -> Verdict | None:
        return deny("no") if "rm" in step.target.command else None

    report = compared(answered, with_gates(globals()["asks_about_rm"]), with_gates(asks_about_rm))
    assert [(one.direction, one.spread.count) for one in report.changes] == [("tightened", 1), ("tightened", 1)]


def test_a_permission_in_place_of_a_question_is_loosened_though_the_human_approved(answered: Path):
    def asks_about_rm(step: Any) -> Verdict | None:
        return Verdict("allow") if "rm" in step.target.command else None

    report = compared(answered, with_gates(globals()["asks_about_rm"]), with_gates(asks_about_rm))
    assert [one.direction for one in report.changes] == ["loosened", "loosened"]


def test_one_of_two_questions_that_is_left_out_is_a_change(tmp_path: Path):
    path = tmp_path / "journal.db"
    asked = with_gates(asks_about_rm, also_asks, approver=Human())
    record(path, asked, lambda hooks: call(hooks.session("s-1"), "rm a"))
    assert counts(compared(path, with_gates(asks_about_rm, also_asks), with_gates(asks_about_rm))) == (0, 1, 0)


def test_recorded_answers_are_reproduced(answered: Path):
    assert causes(replay(answered, with_gates(asks_about_rm))) == {}


# --- what a session remembers ---------------------------------------------------------------


def test_a_pack_that_counts_calls_is_asked_about_every_call(tmp_path: Path):
    async def work(hooks: Hooks) -> None:
        session = hooks.session("s-1")
        for _ in range(6):
            await call(session, "pytest -x")

    def budgets() -> Hooks:
        hooks = Hooks()
        hooks.use("budgets")
        return hooks

    path = tmp_path / "journal.db"
    record(path, budgets(), work)
    assert counts(compared(path, budgets(), with_gates(nothing))) == (2, 4, 0)
    assert causes(replay(path, budgets())) == {}


def test_a_pack_that_measures_time_goes_by_the_recorded_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    now = [1_700_000_000.0]

    def budgets() -> Hooks:
        hooks = Hooks()
        hooks.use("budgets")
        return hooks

    async def work(hooks: Hooks) -> None:
        session = hooks.session("s-1")
        await call(session)
        now[0] += 9 * 3600
        await call(session, "pwd")

    path = tmp_path / "journal.db"
    with monkeypatch.context() as patch:
        patch.setattr("fairlead.session.time", lambda: now[0])
        record(path, budgets(), work)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("""UPDATE records SET body = CAST(json_set(CAST(body AS TEXT), '$.at',
                   json_extract(CAST(body AS TEXT), '$.at') + 32400000000000) AS BLOB)
                   WHERE kind = 'decision' AND CAST(body AS TEXT) LIKE '%pwd%'""")
    assert causes(replay(path, budgets())) == {}


def test_the_calls_of_a_subagent_before_the_selection_count(tmp_path: Path):
    middle: list[float] = []

    async def work(hooks: Hooks) -> None:
        parent = hooks.session("s-1")
        await call(parent)
        child = parent.subagent("helper")
        for _ in range(3):
            await call(child)
        await asyncio.sleep(0.01)
        middle.append(time.time())
        await call(parent)

    path = tmp_path / "journal.db"
    record(path, with_gates(third), work)
    assert counts(compared(path, with_gates(third), with_gates(nothing), since=middle[0])) == (0, 1, 0)
    assert counts(compared(path, with_gates(third), with_gates(nothing), last=1)) == (0, 1, 0)


def test_a_state_that_the_host_has_set_is_known_to_hooks_of_other_events(tmp_path: Path):
    async def work(hooks: Hooks) -> None:
        session = hooks.session("s-1", state={"mode": "ro"})
        for mode in ("ro", "rw"):
            session.state["mode"] = mode
            await session.dispatch(session.step(BeforeRequest))
            await call(session)

    path = tmp_path / "journal.db"
    record(path, with_gates(read_only), work)
    report = replay(path, with_gates(read_only))
    assert (causes(report), report.totals.steps) == ({}, 2)
    assert counts(compared(path, with_gates(read_only), with_gates(nothing))) == (1, 1, 0)


def test_a_secret_in_the_state_is_not_taken_for_its_mark(tmp_path: Path):
    def trusts_the_token(step: Any) -> Verdict | None:
        return None if current_session().state.get("token", "").startswith("gh" + "p_") else deny("no token")

    async def work(hooks: Hooks) -> None:
        session = hooks.session("s-1", state={"token": SECRET})
        await session.dispatch(session.step(BeforeRequest))
        await call(session)

    path = tmp_path / "journal.db"
    record(path, with_gates(trusts_the_token), work)
    assert causes(replay(path, with_gates(trusts_the_token))) == {("cold state", ""): 1}


def test_a_value_that_hooks_change_in_place_changes_once_for_a_step_with_a_secret(tmp_path: Path):
    async def work(hooks: Hooks) -> None:
        session = hooks.session("s-1")
        for _ in range(3):
            await call(session, f"echo {SECRET}")

    path = tmp_path / "journal.db"
    record(path, with_gates(remembers_calls), work)
    assert causes(replay(path, with_gates(remembers_calls))) == {}
    assert counts(compared(path, with_gates(remembers_calls), with_gates(nothing))) == (3, 0, 0)


@pytest.mark.parametrize("how", ["deleted", "note"])
def test_records_that_are_missing_between_others_make_what_is_remembered_unknown(tmp_path: Path, how: str):
    path = tmp_path / "journal.db"

    async def work(hooks: Hooks) -> None:
        session = hooks.session("s-1")
        for number in range(6):
            await call(session)
            if number == 1 and how == "note":
                assert hooks.journal is not None
                hooks.journal.note("paused")

    record(path, with_gates(third), work)
    if how == "deleted":
        with closing(sqlite3.connect(path)) as db, db:
            seqs = [seq for (seq,) in db.execute("SELECT seq FROM records WHERE kind = 'decision' ORDER BY seq")]
            db.execute("DELETE FROM records WHERE seq = ?", (seqs[1],))
    else:
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("""UPDATE records SET body = CAST(json_set(CAST(body AS TEXT), '$.note', 'lost') AS BLOB)
                       WHERE kind = 'note' AND CAST(body AS TEXT) LIKE '%paused%'""")
    found = causes(replay(path, with_gates(third)))
    assert found == {("cold state", ""): 4}
    same, changed, unknown = counts(compared(path, with_gates(third), with_gates(nothing)))
    assert (changed, unknown) == (0, 4)
    assert same == (1 if how == "deleted" else 2)


def test_a_session_after_a_gap_is_not_touched_by_it(tmp_path: Path):
    async def work(hooks: Hooks) -> None:
        for number in range(3):
            session = hooks.session(f"s-{number}")
            for _ in range(5):
                await call(session)

    path = tmp_path / "journal.db"
    record(path, with_gates(third), work)
    with closing(sqlite3.connect(path)) as db, db:
        seqs = [seq for (seq,) in db.execute("SELECT seq FROM records WHERE kind = 'decision' ORDER BY seq")]
        db.execute("DELETE FROM records WHERE seq = ?", (seqs[7],))  # in the second session
    assert causes(replay(path, with_gates(third))) == {("cold state", ""): 2}


def test_steps_at_events_without_hooks_are_not_counted(tmp_path: Path):
    async def work(hooks: Hooks) -> None:
        session = hooks.session("s-1")
        await call(session)
        await session.dispatch(session.step(AfterTool, tool="bash", args={}))

    path = tmp_path / "journal.db"
    record(path, with_gates(third), work)
    assert compared(path, with_gates(third), with_gates(nothing)).totals.steps == 1
    assert shell("ls").event == "before_tool"
