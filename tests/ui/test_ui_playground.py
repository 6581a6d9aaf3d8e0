"""The playground: what hooks say of a step that a user types, and what another policy would have changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

DENY = 'rule = "target.command.contains(\'push\')"\ndeny = "no pushes here"\n'
RULE = f'[[hook]]\nname = "no-push"\non = "before_tool"\nmatch = {{ kind = "shell" }}\nphase = "gate"\n{DENY}'


@pytest.fixture
def user_file(home: Path) -> Path:
    file = home / "config/fairlead/fairlead.toml"
    file.parent.mkdir(parents=True)
    return file


def address(**asked: Any) -> str:
    return f"/playground?{urlencode(asked)}"


def test_a_typed_command_is_judged_by_what_is_in_force(tab, user_file: Path):
    user_file.write_text(RULE)
    shown = tab.get(address(step="git push")).text
    assert "denied" in shown
    assert "no pushes here" in shown


def test_a_command_that_no_hook_objects_to_goes_on(tab, user_file: Path):
    user_file.write_text(RULE)
    assert "goes on" in tab.get(address(step="git status")).text


def test_any_step_may_be_typed_as_json(tab, user_file: Path):
    user_file.write_text(RULE)
    step = '{"event": "before_tool", "tool": "bash", "args": {"command": "git push"}}'
    assert "no pushes here" in tab.get(address(step=step, kind="json")).text


@pytest.mark.parametrize("step", ["{", "[]", '{"event": "no_event"}', '{"event": "before_tool", "tool": 7}', "\x00"])
def test_what_is_no_step_is_an_error_and_not_a_crash(tab, step: str):
    answer = tab.get(address(step=step, kind="json"))
    assert answer.status_code == 400


def test_a_program_of_a_policy_does_not_run(tab, user_file: Path, tmp_path: Path):
    mark = tmp_path / "ran"
    user_file.write_text(f'[[hook]]\nname = "runs"\non = "before_tool"\ncommand = ["touch", "{mark}"]\n')
    shown = tab.get(address(step="ls")).text
    assert "runs" in shown
    assert "Not asked" in shown
    assert not mark.exists()


def test_a_program_that_somebody_types_does_not_run(tab, user_file: Path, tmp_path: Path):
    mark = tmp_path / "ran"
    typed = f'[[hook]]\nname = "runs"\non = "before_tool"\ncommand = ["touch", "{mark}"]\n'
    tab.get(address(step="ls", policy=typed, file=str(user_file), over="1"))
    assert not mark.exists()


def test_a_typed_policy_is_compared_with_its_file_on_recorded_traffic(tab, user_file: Path):
    user_file.write_text("")
    shown = tab.get(address(policy=RULE, file=str(user_file), over="1")).text
    assert "tightened" in shown
    assert "git push" in shown


def test_a_mistake_in_a_typed_policy_is_shown_with_its_line(tab, user_file: Path):
    user_file.write_text("")
    answer = tab.get(address(policy=RULE.replace("phase", "fase"), file=str(user_file), over="1"))
    assert answer.status_code == 200
    assert "fairlead.toml:5" in answer.text


def test_nothing_is_written_to_the_journal(tab, journal: Path, user_file: Path):
    user_file.write_text(RULE)
    before = journal.stat().st_mtime_ns, journal.stat().st_size
    tab.get(address(step="git push", policy=RULE, file=str(user_file), over="1"))
    assert (journal.stat().st_mtime_ns, journal.stat().st_size) == before


def test_a_file_that_was_not_offered_is_not_read(tab, tmp_path: Path, user_file: Path):
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret")
    answer = tab.get(address(policy=RULE, file=str(secret), over="1"))
    assert "the secret" not in answer.text
