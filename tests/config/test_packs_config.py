"""Packs in fairlead.toml: which are used, how, and what is exempt from a rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairlead import Hooks
from fairlead.config.document import Document
from fairlead.config.layers import Config, ConfigFile, Sources
from fairlead.decision import Decision
from fairlead.lifecycle import BeforeTool
from fairlead.packs import NAMES


def read(path: Path, text: str, layer: Any = "user") -> ConfigFile:
    return ConfigFile(layer, Document(path / "fairlead.toml", text.encode()), None, as_trusted=True)


def mistakes(path: Path, text: str, layer: Any = "user") -> list[str]:
    return [mistake.problem for mistake in Config(Sources(None, None), [read(path, text, layer)]).mistakes]


def judge(path: Path, text: str, command: str, folder: Path | None = None) -> Decision[Any]:
    file = read(path, text)
    assert file.document.mistakes == []
    hooks = Hooks()
    hooks.replace_all([one.hook for one in Config(Sources(None, None), [file]).hooks], source="test")
    return hooks.dispatch_sync(BeforeTool(tool="bash", args={"command": command}, cwd=str(folder or path)))


def test_recommended_is_every_pack(tmp_path: Path) -> None:
    assert [one.name for one in read(tmp_path, 'packs = ["recommended"]').hooks] == [f"fairlead.{n}" for n in NAMES]


def test_a_pack_may_be_used_alone(tmp_path: Path) -> None:
    text = 'packs = ["files"]'
    assert judge(tmp_path, text, "rm -rf ~").control == "deny"
    assert judge(tmp_path, text, "git reset --hard").control == "proceed"


def test_options_of_one_pack_go_before_those_of_all(tmp_path: Path) -> None:
    text = """
        packs = ["recommended"]
        [pack.recommended]
        level = "disaster"
        [pack.git]
        level = "destructive"
        verdict = "deny"
    """
    assert judge(tmp_path, text, "git reset --hard").hook == "fairlead.git"
    assert judge(tmp_path, text, "terraform destroy").control == "proceed"


def test_a_pack_in_monitor_mode_decides_nothing(tmp_path: Path) -> None:
    decision = judge(tmp_path, 'packs = ["files"]\n[pack.files]\nenforce = false', "rm -rf ~")
    assert decision.control == "proceed"
    assert decision.monitored


def test_own_paths_are_protected(tmp_path: Path) -> None:
    text = 'packs = ["files"]\n[pack.files]\nprotect = ["/srv/photos"]'
    assert judge(tmp_path, text, "rm -rf /srv/photos/2020").control == "deny"


def test_own_hosts_are_allowed(tmp_path: Path) -> None:
    text = 'packs = ["apis"]\n[pack.apis]\nverdict = "deny"\nallow_hosts = ["api.acme.example"]'
    assert judge(tmp_path, text, "curl -X DELETE https://api.acme.example/x").control == "proceed"
    assert judge(tmp_path, text, "curl -X DELETE https://api.acme.example.evil.example/x").control == "deny"
    assert judge(tmp_path, text, "curl -X DELETE https://api.acme.example@evil.example/x").control == "deny"


EXEMPT = """
packs = ["git"]
[pack.git]
verdict = "deny"
[[exemption]]
rule = "git/push-force"
command = "git push --force origin mine"
reason = "my own branch"
"""


@pytest.mark.parametrize(
    "command",
    [
        "git push --force origin mine", "git push -f origin mine", "cd . && git push origin mine -f",
        "/usr/bin/git push -f origin mine", "sh -c 'git push -f origin mine'", "timeout 60 git push -f origin mine",
    ],
)  # fmt: skip
def test_an_exemption_covers_its_command_in_any_spelling(tmp_path: Path, command: str) -> None:
    assert judge(tmp_path, EXEMPT, command).control == "proceed"


@pytest.mark.parametrize(
    "command",
    [
        "git push --force origin main", "git push --force origin mine main", "git push --force --all origin mine",
        "git push --force origin mine && git push -f origin main", "git -C /x push --force origin mine",
        "git push --force origin $B", "A=1 git push --force origin mine", "git push --force origin mine > x",
        "git reset --hard", "ssh prod 'git push -f origin mine'", "docker exec x git push -f origin mine",
        "./git push -f origin mine", "/tmp/git push -f origin mine", "env GIT_DIR=/x git push -f origin mine",
        "PATH=/tmp/x; git push -f origin mine", "export GIT_DIR=/x; git push -f origin mine",
        ". ./x && git push -f origin mine", "kubectl exec x -- git push -f origin mine",
    ],
)  # fmt: skip
def test_an_exemption_covers_nothing_else(tmp_path: Path, command: str) -> None:
    assert judge(tmp_path, EXEMPT, command).control == "deny"


def test_an_exemption_ends_on_its_day(tmp_path: Path) -> None:
    assert judge(tmp_path, EXEMPT + "until = 2020-01-01", "git push -f origin mine").control == "deny"
    assert judge(tmp_path, EXEMPT + "until = 2999-01-01", "git push -f origin mine").control == "proceed"


def test_an_exemption_may_hold_in_one_project_only(tmp_path: Path) -> None:
    project, other = tmp_path / "project", tmp_path / "project-2"
    project.mkdir()
    other.mkdir()
    text = EXEMPT + f'project = "{project}"'
    command = "git push -f origin mine"
    assert judge(tmp_path, text, command, project).control == "proceed"
    assert judge(tmp_path, text, command, other).control == "deny"
    assert judge(tmp_path, text, f"cd {other} && {command}", project).control == "deny"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('packs = "git"', "packs must be a list"),
        ('packs = ["gti"]', "did you mean 'git'"),
        ('packs = ["git"]\n[pack.gti]', "did you mean 'git'"),
        ("[pack.git]", "the pack 'git' is not used; add it"),
        ('packs = ["git"]\n[pack.git]\nlevel = "low"', "level must be one of"),
        ('packs = ["git"]\n[pack.git]\nverdict = "allow"', "verdict must be one of"),
        ('packs = ["git"]\n[pack.git]\nlevle = "strict"', "did you mean 'level'"),
        ('[[exemption]]\nrule = "git/push-force"\ncommand = "git push -f"', "an exemption needs a reason"),
        ('[pack.recommended]\nlevel = "strict"', "the pack 'recommended' is not used"),
        ('[[exemption]]\nrule = "git/push-force"\nreason = "x"', "about one command, one path or one url"),
        ('[[exemption]]\nrule = "git/clean"\ncommand = "ls"\npath = "/x"\nreason = "x"', "about one command, one path"),
        ('[[exemption]]\nrule = "secrets/read-file"\npath = "x"\nreason = "x"', "path is an absolute path"),
        ('[[exemption]]\nrule = "secrets/read-file"\npath = "/x/*"\nreason = "x"', "no patterns"),
        ('[[exemption]]\nrule = "git/x"\ncommand = "ls"\nreason = "x"', "unknown rule"),
        ('[[exemption]]\nrule = "git/clean"\ncommand = "git clean -f *"\nreason = "x"', "no pattern"),
        ('[[exemption]]\nrule = "git/clean"\ncommand = "ls && git clean -f"\nreason = "x"', "one plain command"),
        ('[[exemption]]\nrule = "git/clean"\ncommand = "ls"\nreason = "x"\nuntil = "soon"', "until is a date"),
        ('[[exemption]]\nrule = "git/clean"\ncommand = "ls"\nreason = "x"\nproject = "x"', "an absolute path"),
    ],
)  # fmt: skip
def test_a_mistake_is_told(tmp_path: Path, text: str, problem: str) -> None:
    assert any(problem in found for found in mistakes(tmp_path, text))


@pytest.mark.parametrize(
    "text",
    [
        '[[exemption]]\nrule = "git/clean"\ncommand = "git clean -f"\nreason = "x"',
        'packs = ["apis"]\n[pack.apis]\nallow_hosts = ["x.example"]',
        'packs = ["git"]\n[pack.git]\nlocked = true',
    ],
)
def test_a_project_cannot_loosen_a_pack(tmp_path: Path, text: str) -> None:
    assert mistakes(tmp_path, text, "project")


@pytest.mark.parametrize("layer", ["user", "project"])
def test_budgets_have_limits_in_any_layer(tmp_path: Path, layer: Any) -> None:
    file = read(tmp_path, 'packs = ["budgets"]\n[pack.budgets]\ncalls = 50\nminutes = 1.5\ntokens = false', layer)
    assert file.document.mistakes == []
    gate: Any = file.hooks[0].hook.fn
    limits = gate.options.limits
    assert (limits.calls, limits.minutes, limits.tokens, limits.in_a_row) == (50, 1.5, None, 3)


@pytest.mark.parametrize("value", ["0", "-1", "true", '"many"', "1.5"])
def test_a_limit_that_is_no_number_is_a_mistake(tmp_path: Path, value: str) -> None:
    found = mistakes(tmp_path, f'packs = ["budgets"]\n[pack.budgets]\ncalls = {value}')
    assert found == ["calls must be a number above 0, or false for no limit"]


def test_only_budgets_have_limits(tmp_path: Path) -> None:
    found = mistakes(tmp_path, 'packs = ["files"]\n[pack.files]\ncalls = 5')
    assert len(found) == 1
    assert "unknown key 'calls'" in found[0]


def test_two_layers_that_use_budgets_count_apart(tmp_path: Path) -> None:
    text = 'packs = ["budgets"]\n[pack.budgets]\ncalls = 3\nin_a_row = false'
    gates = [read(tmp_path, text, layer).hooks[0].hook.fn for layer in ("user", "project")]
    hooks = Hooks()
    for number, gate in enumerate(gates):
        hooks.add(gate, "before_tool", name=f"gate {number}", phase="gate")
    session = hooks.session()
    step = session.step(BeforeTool, tool="bash", args={"command": "x"})
    assert [session.dispatch_sync(step).control for _ in range(4)] == ["proceed"] * 3 + ["deny"]
