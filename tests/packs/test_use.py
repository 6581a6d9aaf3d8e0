"""Packs in a program: `hooks.use("recommended")`, and packs of one's own."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead import Hooks
from fairlead.errors import RegistrationError, UnknownName
from fairlead.lifecycle import BeforeTool
from fairlead.packs import NAMES, Pack
from fairlead.packs.exemptions import Exemption

acme = Pack("acme", "What Acme never wants an agent to do.")


@acme.rule(
    "production", level="disaster", programs=["deploy"], why="It needs two people.", instead="Use staging.",
    stops=["deploy production"], passes=["deploy staging"],
)  # fmt: skip
def production(command: Any, line: Any) -> bool:
    return "production" in command.operands


def control(hooks: Hooks, command: str) -> str:
    return hooks.dispatch_sync(BeforeTool(tool="bash", args={"command": command}, cwd="/work")).control


def test_recommended_is_one_hook_per_pack() -> None:
    hooks = Hooks()
    used = hooks.use("recommended")
    assert [hook.name for hook in used] == [f"fairlead.{name}" for name in NAMES] == [hook.name for hook in hooks]
    assert control(hooks, "rm -rf ~") == "deny"
    assert control(hooks, "git status") == "proceed"


def test_some_packs_with_options() -> None:
    hooks = Hooks()
    hooks.use("git", level="strict", verdict="deny")
    assert control(hooks, "git rebase main") == "deny"
    assert control(hooks, "rm -rf ~") == "proceed"


def test_packs_are_used_one_after_another() -> None:
    hooks = Hooks()
    hooks.use("files")
    hooks.use("git", verdict="deny")
    assert control(hooks, "git clean -f") == "deny"
    with pytest.raises(RegistrationError, match=r"fairlead\.git"):
        hooks.use("git")
    hooks.use("git", verdict="warn", replace=True)
    assert control(hooks, "git clean -f") == "proceed"


def test_own_paths_hosts_and_exemptions() -> None:
    hooks = Hooks()
    exempt = Exemption.read("git/clean", "git clean -f", reason="the build does that")
    hooks.use("recommended", verdict="deny", protect=["/srv/photos"], allow_hosts=["ci.example"], exemptions=[exempt])
    assert control(hooks, "rm -rf /srv/photos/2020") == "deny"
    assert control(hooks, "curl -X DELETE https://ci.example/x") == "proceed"
    assert control(hooks, "git clean -f") == "proceed"
    assert control(hooks, "git clean -fd") == "deny"


def test_monitor_mode_decides_nothing() -> None:
    hooks = Hooks()
    hooks.use("files", enforce=False)
    decision = hooks.dispatch_sync(BeforeTool(tool="bash", args={"command": "rm -rf ~"}))
    assert (decision.control, [seen.control for seen in decision.monitored]) == ("proceed", ["deny"])


def test_a_pack_of_your_own() -> None:
    hooks = Hooks()
    hooks.use(acme)
    assert control(hooks, "deploy production") == "deny"
    assert control(hooks, "deploy staging") == "proceed"


def test_the_decision_names_the_rule() -> None:
    hooks = Hooks()
    hooks.use(acme)
    decision = hooks.dispatch_sync(BeforeTool(tool="bash", args={"command": "deploy production"}))
    assert decision.verdicts[0].verdict.metadata == {"rule": "acme/production", "level": "disaster"}
    assert "exception" not in str(decision.reason)  # no file grants one to a program


@pytest.mark.parametrize(
    ("names", "options", "error"),
    [
        (["gti"], {}, "did you mean 'git'"),
        (["git"], {"level": "low"}, "level"),
        (["git"], {"verdict": "allow"}, "verdict"),
        (["git"], {"protect": "/srv"}, r"protect=\['/srv'\]"),
    ],
)
def test_a_mistake_is_told_at_once(names: list[str], options: dict[str, Any], error: str) -> None:
    hooks = Hooks()
    with pytest.raises((UnknownName, RegistrationError), match=error):
        hooks.use(*names, **options)
    assert len(hooks) == 0


def test_another_level_is_another_version_of_the_policy() -> None:
    first, second = Hooks(), Hooks()
    (one,) = first.use("git")
    (other,) = second.use("git", level="strict")
    assert one.version != other.version
