"""Recorded traffic is read session by session, and what is missing in it is counted."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import pytest
from replay_scenes import causes, dispatch_all, hooks_of, record, replay, traffic_of

from fairlead import Hooks, Journal
from fairlead.cli.journals import json_of
from fairlead.errors import FairleadError
from fairlead.journal.erasing import erase
from fairlead.journal.reading import Reader
from fairlead.lifecycle import BeforeModel, BeforeTool
from fairlead.replay import sources
from fairlead.replay.judge import Judge
from fairlead.replay.reproduce import reproduce
from fairlead.replay.sources import Traffic, Unreadable, open_source

EVENTS = ("before_tool",)


def steps_of(traffic: Traffic) -> list[Any]:
    with traffic:
        return [one for group in traffic.groups() for one in traffic.steps(group, EVENTS)]


def export(path: Path, to: Path) -> Path:
    with Reader(path) as reader:
        to.write_text("".join(json.dumps(json_of(one)) + "\n" for one in reader.records()))
    return to


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "journal.db"
    record(path, hooks_of("rate"), lambda hooks: dispatch_all(hooks, [["ls"] * 6, ["pwd"] * 6]))
    return path


def test_sessions_come_one_after_another(path: Path):
    found = [one.step.session_id for one in steps_of(traffic_of(path))]
    assert found == ["s-0"] * 6 + ["s-1"] * 6


def test_an_exported_file_has_the_same_steps(path: Path, tmp_path: Path):
    exported = traffic_of(export(path, tmp_path / "journal.jsonl"))
    again, steps = steps_of(exported), steps_of(traffic_of(path))
    assert [one.step for one in again] == [one.step for one in steps]
    assert [one.policy for one in again] == [one.policy for one in steps]


def test_one_session_in_two_journals_is_one_group(tmp_path: Path):
    for number in range(2):
        record(tmp_path / f"{number}.db", hooks_of("rate"), lambda hooks: dispatch_all(hooks, [["ls"] * 2]))
    traffic = traffic_of(tmp_path / "0.db", tmp_path / "1.db")
    (group,) = traffic.groups()
    began = [one.began for one in traffic.steps(group, EVENTS)]
    assert began == sorted(began)
    assert len(began) == 4


def test_a_long_session_is_read_in_parts_and_still_in_order(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sources, "WINDOW", 2)
    began = [one.began for one in steps_of(traffic_of(path))[:6]]
    assert began == sorted(began)


def test_only_selected_sessions_are_read(path: Path):
    assert {one.step.session_id for one in steps_of(traffic_of(path, session="s-1"))} == {"s-1"}
    with pytest.raises(FairleadError, match="s-7"):
        traffic_of(path, session="s-7").groups()


def test_steps_before_the_selection_rebuild_the_state(path: Path):
    middle = steps_of(traffic_of(path))[5].began  # the last one of the first session
    traffic = traffic_of(path, since=middle)
    report = asyncio.run(reproduce(Judge(hooks_of("rate"), enforced=False), traffic))
    assert causes(report) == {}
    assert report.totals.warming > 0
    assert report.totals.steps + report.totals.warming == 12


@pytest.mark.parametrize("name", ["rate", "budget", "remember"])
def test_a_pruned_beginning_makes_what_hooks_remember_unknown(tmp_path: Path, name: str):
    path = tmp_path / "journal.db"
    record(path, hooks_of(name, "force_push"), lambda hooks: dispatch_all(hooks, [["ls"] * 6]))
    lines = export(path, tmp_path / "all.jsonl").read_text().splitlines()
    (tmp_path / "rest.jsonl").write_text("\n".join(lines[2:]) + "\n")
    report = replay(tmp_path / "rest.jsonl", hooks_of(name, "force_push"))
    assert set(causes(report)) == {("cold state", "")}
    assert report.totals.cold_sessions == 1
    pure = replay(tmp_path / "rest.jsonl", hooks_of("force_push"))
    assert "cold state" not in {cause for cause, _ in causes(pure)}


def test_a_window_is_known_again_when_it_has_passed(tmp_path: Path):
    path = tmp_path / "journal.db"
    record(path, hooks_of("rate"), lambda hooks: dispatch_all(hooks, [["ls"] * 6]))
    bodies = [json.loads(line) for line in export(path, tmp_path / "all.jsonl").read_text().splitlines()]
    for number, body in enumerate(bodies):  # one call every 40 seconds, in a window of 60
        body["at"] += number * 40 * 10**9
        body["said"] = None
        body["control"] = "proceed"
        del body["said"]
    rest = tmp_path / "rest.jsonl"
    rest.write_text("\n".join(map(json.dumps, bodies[1:])) + "\n")
    report = replay(rest, hooks_of("rate"))
    assert causes(report) == {("cold state", ""): 2}
    assert report.totals.same == 3


def test_an_erased_step_makes_its_session_cold(path: Path):
    with Reader(path) as reader:
        first = next(iter(reader.records())).id
    erase(path, [first], why="a test")
    report = replay(path, hooks_of("rate"))
    assert causes(report) == {("cold state", ""): 5}
    assert report.gaps.unreadable == 1
    assert report.gaps.notes == {"erased": 1}
    assert report.totals.same == 6


def test_what_could_not_be_written_is_counted(tmp_path: Path):
    class Odd:
        def __eq__(self, other: object) -> bool:
            raise RuntimeError

        __hash__ = None  # type: ignore[assignment]

    async def work(hooks: Hooks) -> None:
        session = hooks.session("s-1")
        deep: Any = []
        for _ in range(100_000):
            deep = [deep]
        for args in ({"a": 1}, {"odd": Odd()}):
            await session.dispatch(session.step(BeforeTool, tool="bash", args=args))

    path = tmp_path / "journal.db"
    record(path, hooks_of("force_push"), work)
    traffic = traffic_of(path)
    found = steps_of(traffic)
    assert len(found) == 2
    assert all(one is Unreadable or one.step.tool == "bash" for one in found)


def test_long_texts_are_put_back(tmp_path: Path):
    long = "x" * 5_000
    messages = [{"role": "user", "content": long}, {"role": "assistant", "content": "short"}]
    odd = {"$text": "mine", "$plain": {"$text": long}, "long": long}

    async def work(hooks: Hooks) -> None:
        session = hooks.session("s-1")
        await session.dispatch(session.step(BeforeModel, messages=messages))
        await session.dispatch(session.step(BeforeTool, tool="t", args=odd))
        await session.dispatch(session.step(BeforeTool, tool="t", args={"policy": long}))

    path = tmp_path / "journal.db"
    record(path, Hooks(), work)
    traffic = traffic_of(path)
    (group,) = traffic.groups()
    model, plain, policy = (one.step for one in traffic.steps(group, ("before_model", "before_tool")))
    assert model.messages == messages
    assert plain.args == odd
    assert policy.args == {"policy": long}


def test_a_crash_and_a_pruning_are_counted(tmp_path: Path):
    path = tmp_path / "journal.db"
    record(path, hooks_of("rate"), lambda hooks: dispatch_all(hooks, [["ls"] * 3]))
    with Journal(path) as journal:
        journal.keep_facts(journal._note("crashed", why="a test"))
        journal.keep_facts(journal._note("pruned", upto=0))
    assert traffic_of(path).gaps.notes == {"crashed": 1, "pruned": 1}


def test_bad_lines_are_counted_and_the_first_is_named(path: Path, tmp_path: Path):
    file = export(path, tmp_path / "journal.jsonl")
    file.write_text('{"at"\n' + file.read_text() + '{"resourceSpans": []}\n\n')
    with traffic_of(file) as traffic:
        gaps = traffic.gaps
    assert gaps.bad_lines == 2
    assert gaps.first_bad.startswith("line 1 of")


def test_stdin_is_read_once(path: Path, tmp_path: Path):
    stdin = io.BytesIO(export(path, tmp_path / "journal.jsonl").read_bytes())
    assert len(steps_of(Traffic([open_source("-", stdin)]))) == 12


def test_steps_without_a_session_are_judged_too(tmp_path: Path):
    async def work(hooks: Hooks) -> None:
        await hooks.dispatch(BeforeTool(tool="bash", args={"command": "git push --force"}))

    path = tmp_path / "journal.db"
    record(path, hooks_of("force_push"), work)
    assert replay(path, hooks_of("force_push")).totals.same == 1


def test_the_newest_records_alone_count(path: Path, tmp_path: Path):
    for one in (path, export(path, tmp_path / "journal.jsonl")):
        with traffic_of(one, last=4) as traffic:
            report = asyncio.run(reproduce(Judge(hooks_of("rate"), enforced=False), traffic))
        assert (report.totals.steps, report.totals.warming) == (4, 2)
        assert causes(report) == {}  # the earlier steps of the session have run


def test_a_record_that_two_sources_have_counts_once(path: Path, tmp_path: Path):
    copies = (path, export(path, tmp_path / "journal.jsonl"))
    with traffic_of(*copies) as traffic:
        report = asyncio.run(reproduce(Judge(hooks_of("rate"), enforced=False), traffic))
    assert (report.totals.steps, report.totals.sessions) == (12, 2)
    assert causes(report) == {}  # no call was counted twice
