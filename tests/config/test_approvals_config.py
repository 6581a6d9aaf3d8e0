"""`[approvals]` in the system's and the user's file: who is told of a question, and whether an answer may last."""

from __future__ import annotations

from typing import Any

import pytest

from conftest import Machine, program
from fairlead.config.hook_entry import variables
from fairlead.config.layers import find as find_sources
from fairlead.config.layers import read

MISTAKES = [
    ("notify = 3", 'a list of "desktop"'),
    ('notify = ["desk"]', "did you mean 'desktop'?"),
    ("notify = [{ desktop = false }]", "desktop must be true"),
    ("notify = [{ command = [] }]", "the program first"),
    ('notify = [{ command = "page-me" }]', "a list of words"),
    ('notify = [{ url = "https://x.example", command = ["true"] }]', "is one of"),
    ('notify = [{ url = "http://x.example/" }]', "is not https"),
    ('notify = [{ url = "https://x.example/", secret = "abc" }]', "does not belong in a file"),
    ('notify = [{ url = "https://x.example/", body = "teams" }]', "one of question, slack"),
    ('notify = [{ url = "https://x.example/", headers = {} }]', "unknown key 'headers'"),
    ("grants = 1", "true or false"),
    ("grant = true", "did you mean 'grants'?"),
    (
        'notify = ["desktop", "desktop", "desktop", "desktop", "desktop", "desktop", "desktop", "desktop", "desktop"]',
        "8 t",
    ),
]


@pytest.mark.parametrize(("line", "says"), MISTAKES, ids=[line[:50] for line, _ in MISTAKES])
def test_a_mistake_has_its_line_and_a_way_out(line: str, says: str, machine: Machine) -> None:
    (mistake,) = machine.mistakes(user=f"[approvals]\n{line}\n")
    assert (mistake.line, mistake.column > 0) == (2, True)
    assert says in str(mistake)


def test_a_project_has_no_say(machine: Machine) -> None:
    machine.write(project='# mine\n[approvals]\nnotify = ["desktop"]\n')
    config = read(find_sources(machine.workspace))
    (mistake,) = config.mistakes
    assert (mistake.file, mistake.line, mistake.column) == (str(machine.project), 2, 1)
    assert "a project cannot say anything about the approvals; the user's file can" in str(mistake)
    assert config.approvals.notify == ()


def test_the_targets_of_both_files_count(machine: Machine) -> None:
    here = program(machine.outside / "page-me", "#!/bin/sh\n")
    one = f'[approvals]\nnotify = [{{ command = ["{here}", "--now"] }}]\n'
    targets = machine.load(system=one, user=one).approvals.notify
    assert [(target.form, target.argv) for target in targets] == [("command", (str(here), "--now"))] * 2
    assert len({target.name for target in targets}) == 2


@pytest.mark.parametrize(
    ("system", "user", "allowed"),
    [("true", "true", True), ("false", "true", False), ("true", "false", False), (None, None, True)],
)
def test_either_file_forbids_grants(system: str | None, user: str | None, allowed: bool, machine: Machine) -> None:
    texts = {
        layer: f"[approvals]\ngrants = {value}\n" if value else ""
        for layer, value in (("system", system), ("user", user))
    }
    assert machine.load(**texts).approvals.grants is allowed


def test_a_target_that_is_not_here_keeps_no_hook_from_running(machine: Machine) -> None:
    hook = '[[hook]]\nname = "h"\non = "before_tool"\nrule = "true"\ndeny = "no"\n'
    config = machine.load(user=f'[approvals]\nnotify = [{{ command = ["no-such-program"] }}]\n{hook}')
    (mistake,) = config.approvals.unavailable
    assert (mistake.line, "'no-such-program' is not there" in mistake.problem) == (2, True)
    assert [one.name for one in config.hooks] == ["h"]


def test_a_program_in_the_agents_workspace_is_refused(machine: Machine) -> None:
    here = program(machine.workspace / "page-me", "#!/bin/sh\n")
    (mistake,) = machine.mistakes(user=f'[approvals]\nnotify = [{{ command = ["{here}"] }}]\n')
    assert "lies in the agent's workspace" in str(mistake)


def test_the_variables_of_targets_are_those_of_the_caller(machine: Machine) -> None:
    text = '[approvals]\nnotify = [{ url = { env = "WHERE" }, secret = { env = "WITH" } }]\n'
    machine.write(user=text)
    config = read(find_sources(machine.workspace), environ={"WHERE": "https://x.example/secret", "WITH": "s"})
    (target,) = config.approvals.notify
    assert (target.url, target.secret, "secret" in target.name) == ("https://x.example/secret", "s", False)
    assert variables(config.layers[0].document.data) == {"WHERE", "WITH"}


@pytest.mark.parametrize("data", [{"approvals": 1}, {"approvals": {"notify": 1}}, {"redact": {"values": 1}}])
def test_the_variables_of_a_file_with_mistakes_are_none(data: dict[str, Any]) -> None:
    assert variables(data) == set()


def test_the_guard_keeps_the_program_that_notifies(machine: Machine) -> None:
    from fairlead.lifecycle import BeforeTool

    here = program(machine.outside / "page-me", "#!/bin/sh\n")
    hooks = machine.hooks(user=f'[approvals]\nnotify = [{{ command = ["{here}"] }}]\n')
    write = BeforeTool(tool="Write", args={"file_path": str(here), "content": "#!/bin/sh\nrm -rf ~\n"})
    assert hooks.dispatch_sync(write).denied
