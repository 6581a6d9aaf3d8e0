"""Equal steps are judged once, and no step gets the answer on another one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead import Hooks
from fairlead.lifecycle import Agent, BeforeTool, Step, TurnEnd
from fairlead.replay.judge import Answer, Judge
from fairlead.replay.records import Body, Recorded
from fairlead.runners.rule import Rule

RULES = (
    ('target.command.contains("push")', {"deny": "no {target.command}"}, {"kind": "shell"}),
    ('tool == "bash" && args.n > 3', {"ask": "sure?"}, {}),
    ('args["m"] == "x"', {"warn": "m"}, {}),
    ("has(cwd) && cwd.startsWith('/repo')", {"inject": "in {cwd}"}, {}),
    ("step.user_id == 'ana'", {"deny": "not ana"}, {}),
    ("commands.exists(c, c.runs('rm'))", {"deny": "rm"}, {"agent": "coder"}),
    ("size(target.paths) > 1", {"warn": "many"}, {"host": "loop"}),
    ('target.command.contains("ls")', {"change": {"command": {"append": " -l"}}}, {"kind": "shell"}),
    ("agent.name == 'coder'", {"warn": "coder"}, {}),
    ("safety == 'destructive'", {"ask": "destructive"}, {}),
)  # fmt: skip

STEPS = st.builds(
    BeforeTool,
    tool=st.sampled_from(("bash", "Read", "odd")),
    args=st.fixed_dictionaries(
        {},
        optional={
            "command": st.sampled_from(("git push", "ls", "rm x")),
            "n": st.sampled_from((1, 5, 1.0, True, "5")),
            "m": st.sampled_from(("x", "y")),
            "file_path": st.sampled_from(("/a", "/b")),
            "paths": st.just(["/a", "/b"]),
        },
    ),
    cwd=st.sampled_from((None, "/repo", "/home")),
    user_id=st.sampled_from((None, "ana")),
    agent=st.sampled_from((None, Agent("1", "coder"), Agent("1", "other"))),
    host=st.sampled_from((None, "loop")),
)


def hooks_of(picked: list[int]) -> Hooks:
    hooks = Hooks()
    for number in picked:
        expression, outcomes, filters = RULES[number]
        phase: Any = "transform" if "change" in outcomes else "gate"
        rule = Rule(expression, on="before_tool", tried=False, **outcomes)
        hooks.add(rule, on="before_tool", name=f"r{number}", phase=phase, **filters)
    return hooks


def answers(judge: Judge, steps: list[Step]) -> list[tuple[Answer, ...]]:
    async def run() -> list[tuple[Answer, ...]]:
        judge.begin(is_cold=False)
        return [
            (await judge.judge(Recorded(Body(id=f"r{n}", at=n, step=step)))).answers for n, step in enumerate(steps)
        ]

    return asyncio.run(run())


@given(
    picked=st.lists(st.integers(0, len(RULES) - 1), min_size=1, max_size=5, unique=True),
    steps=st.lists(STEPS, min_size=1, max_size=30),
)
@settings(max_examples=150, deadline=None)
def test_every_answer_is_that_without_a_memo(picked: list[int], steps: list[Step]):
    plain = Judge(hooks_of(picked))
    plain._memo._keys.clear()
    assert answers(Judge(hooks_of(picked)), steps) == answers(plain, steps)


def test_a_rule_is_evaluated_once_for_equal_steps(monkeypatch: pytest.MonkeyPatch):
    calls = []
    judge_step = Rule._judge
    monkeypatch.setattr(
        Rule, "_judge", lambda rule, step, reading: calls.append(step) or judge_step(rule, step, reading)
    )
    steps: list[Step] = [BeforeTool(tool="bash", args={"command": "git push"}, call_id=str(n)) for n in range(50)]
    assert {one[0].control for one in answers(Judge(hooks_of([0])), steps)} == {"deny"}
    assert len(calls) == 1


def test_the_failure_of_a_rule_is_kept():
    steps: list[Step] = [BeforeTool(tool="bash", args={"command": "ls"}) for _ in range(3)]
    assert [one[0].failed for one in answers(Judge(hooks_of([1])), steps)] == [("r1",)] * 3


def test_an_answer_to_a_question_is_not_kept():
    """It comes from the record of that step."""
    steps: list[Step] = [BeforeTool(tool="bash", args={"n": 5})] * 2
    judge = Judge(hooks_of([1]))
    answers(judge, steps)
    assert not judge._memo._answers


def test_the_memo_is_bounded(monkeypatch: pytest.MonkeyPatch):
    from fairlead.replay import memo

    monkeypatch.setattr(memo, "SIZE", 10)
    judge = Judge(hooks_of([0]))
    answers(judge, [BeforeTool(tool="bash", args={"command": f"ls {n}"}) for n in range(95)])
    assert len(judge._memo._answers) <= 10


def test_hooks_that_are_functions_are_called_for_every_step():
    calls: list[Step] = []
    hooks = hooks_of([0])
    hooks.add(lambda step: calls.append(step), on="*", name="count")
    answers(Judge(hooks), [BeforeTool(tool="bash"), BeforeTool(tool="bash"), TurnEnd()])
    assert len(calls) == 3
