"""Commands of whole sessions, written for these tests: what is dangerous is stopped, and ordinary work passes.

One command a line; those of several lines are in `scripts.json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.lifecycle import BeforeTool
from fairlead.packs import packs
from fairlead.packs.judging import PackGate

HOME, FOLDER = "/home/me", "/home/me/project"
COMMANDS = Path(__file__).parent / "commands"
GATES = [PackGate(pack) for pack in packs("recommended")]


def commands(label: str) -> Iterator[tuple[str, str]]:
    """The tool and the command of each row of a label."""
    for tool, name in (("bash", f"{label}.txt"), ("powershell", f"{label}.ps1")):
        lines = (COMMANDS / name).read_text(encoding="utf-8").splitlines()
        yield from ((tool, line) for line in lines if line and not line.startswith("# "))
    yield from (("bash", text) for text in json.loads((COMMANDS / "scripts.json").read_text(encoding="utf-8"))[label])


def objections(tool: str, command: str) -> list[str]:
    step = BeforeTool(tool=tool, args={"command": command}, cwd=FOLDER)
    return [one.rule.id for gate in GATES for one in gate.findings(step)]


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", HOME)


def test_dangerous_commands_are_stopped() -> None:
    assert [row for row in commands("dangerous") if not objections(*row)] == []


def test_ordinary_commands_pass_without_a_question() -> None:
    assert {row: found for row in commands("ordinary") if (found := objections(*row))} == {}


@pytest.mark.parametrize("label", ["dangerous", "ordinary"])
def test_there_are_enough_commands(label: str) -> None:
    rows = list(commands(label))
    assert len(rows) > 600
    assert len({tool for tool, _ in rows}) == 2
