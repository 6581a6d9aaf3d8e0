"""`fairlead test --cases` and `fairlead replay --save`: what they print, and how they end."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from test_cli_diff import DOCKER, FORCE, record

from conftest import Machine, Run

CASES = """
[[case]]
name = "force"
command = "git push --force"
control = "deny"
"""


@pytest.fixture
def cases(machine: Machine) -> Path:
    return machine.file("cases.toml", CASES)


def test_the_exit_code_says_whether_the_cases_hold(run: Run, machine: Machine, cases: Path):
    machine.user(FORCE)
    ended = run("test", "--cases", str(cases))
    assert ended.code == 0, ended.all
    assert "1 case: 1 passed, 0 failed" in ended.out
    machine.user(DOCKER)
    ended = run("test", "--cases", str(cases))
    assert ended.code == 2
    assert "FAIL  force" in ended.out
    assert run("test", "--cases", "nowhere.toml").code == 1
    assert run("test", "force-push", "--cases", str(cases)).code == 1


def test_every_format_has_the_cases(run: Run, machine: Machine, cases: Path):
    machine.user(FORCE)
    assert run("test", "--cases", str(cases), "--json").json["results"][0]["passed"] is True
    assert 'tests="1" failures="0"' in run("test", "--cases", str(cases), "--junit").out


def test_ci_judges_a_project_as_it_is_and_an_untrusted_one_passes_nothing(run: Run, machine: Machine, cases: Path):
    machine.hooks(FORCE)
    assert run("test", "--cases", str(cases), "--ci").code == 0
    ended = run("test", "--cases", str(cases))
    assert ended.code == 2
    assert "NOT TRUSTED" in ended.out
    cases.write_text(CASES.replace('"deny"', '"proceed"'))
    assert run("test", "--cases", str(cases)).code == 1


def test_code_of_a_project_never_runs_in_ci(run: Run, machine: Machine, cases: Path):
    marker = machine.home / "ran"
    hook = '[[hook]]\nname = "lint"\non = "before_tool"\ncommand = ["/usr/bin/touch", "{}"]\n'
    machine.hooks(FORCE, hook.format(marker))
    for external in ("recorded", "run"):
        ended = run("test", "--cases", str(cases), "--ci", "--external", external)
        assert ended.code == 2
        assert "not known: untrusted code lint" in ended.out
    assert run("test", "--cases", str(cases), "--ci", "--external", "skip").code == 0
    assert not marker.exists()


def test_too_little_coverage_ends_with_2(run: Run, machine: Machine, cases: Path):
    machine.user(FORCE, DOCKER)
    assert run("test", "--cases", str(cases), "--min-coverage", "50").code == 0
    ended = run("test", "--cases", str(cases), "--min-coverage", "51")
    assert ended.code == 2
    assert "never fires: none of 1 candidate" in ended.out


def test_records_become_cases_that_hold(run: Run, machine: Machine, tmp_path: Path):
    machine.user(FORCE, DOCKER)
    journal = machine.home / "own.db"
    record(journal)
    ended = run("replay", "--journal", str(journal), "--save", "cases.jsonl", "--coverage")
    assert ended.code == 0, ended.all
    assert "10 cases saved" in ended.err
    assert run("test", "--cases", "cases.jsonl").code == 0
    assert run("test", "--cases", "cases.jsonl", "--policy", str(machine.user(DOCKER))).code == 2
    assert run("replay", "--journal", str(journal), "--save", "cases.jsonl").code == 1  # it is there


def test_an_interruption_saves_nothing(run: Run, machine: Machine, monkeypatch: pytest.MonkeyPatch):
    from fairlead.cli.diff import Bar

    machine.user(FORCE)
    journal = machine.home / "own.db"
    record(journal)
    monkeypatch.setattr(Bar, "__call__", lambda *_: os.kill(os.getpid(), signal.SIGINT))
    assert run("replay", "--journal", str(journal), "--save", "cases.jsonl").code == 130
    assert not list(machine.project.glob("cases*"))


@pytest.mark.parametrize(
    "words", [("--coverage",), ("--min-coverage", "9"), ("--junit",), ("--policy", "x"), ("--output", "junit=x")]
)
def test_an_option_that_would_have_no_effect_is_refused(run: Run, words: tuple[str, ...]):
    ended = run("test", "force-push", *words)
    assert ended.code == 1
    assert "goes with --cases" in ended.err


# --- other spellings ------------------------------------------------------------------------


def test_mutate_ends_with_2_if_a_spelling_gets_past(run: Run, machine: Machine):
    machine.user(FORCE)
    ended = run("test", "--mutate", "git push --force origin main", "--json")
    assert ended.code == 2
    (found,) = ended.json["commands"]
    assert found["hook"] == "no-force-push"
    assert 0 < found["past"] < found["proven"]
    machine.file("sound.toml", 'packs = ["recommended"]')
    assert run("test", "--mutate", "git push --force", "--policy", "sound.toml").code == 0


def test_mutate_takes_commands_from_cases_and_from_a_journal(run: Run, machine: Machine, cases: Path):
    machine.user(FORCE)
    assert "'git push --force' get past" in run("test", "--mutate", "--cases", str(cases)).out
    journal = machine.home / "own.db"
    record(journal)
    assert "no-force-push" in run("test", "--mutate", "--journal", str(journal)).out


def test_mutate_says_if_there_is_nothing_to_get_around(run: Run, machine: Machine):
    ended = run("test", "--mutate", "ls")
    assert ended.code == 1
    assert "the policy stops none of 1 commands: ls" in ended.err
