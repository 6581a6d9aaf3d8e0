"""`fairlead upgrade`: what another version has left is brought to this one; what a person must decide is left."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from launched import HANDS_OFF, REASON, Launched
from machines import Machine, a_machine, wait_until, watched

from fairlead import __version__
from fairlead.build import source_digest
from fairlead.hosts.clis.install.settings import settings_file, settings_of
from fairlead.hosts.clis.mapping import ALL, host_named

AGENTS = pytest.mark.skipif(watched(), reason="an agent runs these tests, and may not upgrade")

OTHER_SOURCE = "import fairlead.build; fairlead.build.source_digest = lambda: 'another checkout'"


@pytest.fixture
def machine() -> Iterator[Machine]:
    with a_machine() as made:
        yield made


def upgrade(machine: Machine, *options: str) -> dict[str, Any]:
    ended = machine.run("upgrade", "--json", *options)
    assert ended.err == "", ended
    found: dict[str, Any] = ended.json
    assert ended.code == (0 if found["done"] else 1)
    return found


def states(found: dict[str, Any], name: str) -> list[str]:
    return [part["state"] for part in found["parts"] if part["name"] == name]


def todo(found: dict[str, Any], name: str) -> str:
    return "\n".join(str(part["todo"]) for part in found["parts"] if part["name"] == name)


def install(machine: Machine, *words: str) -> None:
    ended = machine.run("install", *words)
    assert ended.code == 0, ended


def age(machine: Machine) -> None:
    """Launcher and client of another version."""
    for name in ("fairlead-hook", "fairlead_hook.py"):
        path = machine.state / "bin" / name
        path.write_text(path.read_text() + "# of another version\n")


# --- what is installed ----------------------------------------------------------------------------------


def test_where_nothing_is_installed_there_is_nothing_to_do(machine: Machine) -> None:
    assert upgrade(machine) == {"version": __version__, "done": True, "parts": []}
    assert "Nothing of fairlead is installed here" in machine.run("upgrade").out


@pytest.mark.parametrize("name", ALL)
def test_after_install_all_is_current(machine: Machine, name: str) -> None:
    install(machine, name)
    found = upgrade(machine, "--check")
    assert (states(found, "launcher"), states(found, "settings"), found["done"]) == (["current"], ["current"], True)


@AGENTS
def test_a_launcher_of_another_version_is_written_anew(machine: Machine) -> None:
    install(machine, "claude")
    before = (machine.state / "bin/fairlead-hook").read_bytes()
    age(machine)
    found = upgrade(machine)
    assert (states(found, "launcher"), found["done"]) == (["upgraded"], True)
    assert (machine.state / "bin/fairlead-hook").read_bytes() == before


@AGENTS
@pytest.mark.parametrize("name", [name for name in ALL if settings_of(name).form in ("groups", "list")])
def test_hooks_that_are_written_differently_now_are_written_anew(machine: Machine, name: str) -> None:
    install(machine, name)
    with pytest.MonkeyPatch.context() as patch:
        machine.live_here(patch)
        path = settings_file(host_named(name), "user", machine.home)
    before = path.read_text()
    path.write_text(before.replace("fairlead-hook 1", "fairlead-hook 9"))
    assert path.read_text() != before
    found = upgrade(machine)
    assert (states(found, "settings"), found["done"]) == (["upgraded"], True)
    assert json.loads(path.read_text()) == json.loads(before)


@AGENTS
def test_hooks_of_a_project_elsewhere_are_found_by_the_record(machine: Machine) -> None:
    project = machine.folder / "project"
    project.mkdir()
    install(machine, "claude", "--scope", "project", "-C", str(project))
    path = project / ".claude/settings.json"
    before = path.read_text()
    path.write_text(before.replace("fairlead-hook 1", "fairlead-hook 9"))
    assert states(upgrade(machine), "settings") == ["upgraded"]
    assert json.loads(path.read_text()) == json.loads(before)


@pytest.mark.parametrize("option", ["--check", "--dry-run"])
def test_to_check_changes_nothing_and_ends_with_1(machine: Machine, option: str) -> None:
    install(machine, "claude")
    age(machine)
    before = (machine.state / "bin/fairlead-hook").read_bytes()
    found = upgrade(machine, option)
    assert (states(found, "launcher"), found["done"]) == (["outdated"], False)
    assert (machine.state / "bin/fairlead-hook").read_bytes() == before


def test_an_agent_may_look_and_not_upgrade(machine: Machine) -> None:
    install(machine, "claude")
    age(machine)
    env = machine.env | {"CLAUDECODE": "1"}
    assert machine.run("upgrade", "--check", env=env).code == 1
    ended = machine.run("upgrade", env=env)
    assert (ended.code, "an agent cannot upgrade" in ended.err) == (1, True)


# --- what runs ------------------------------------------------------------------------------------------


@AGENTS
@pytest.mark.parametrize("version", ["0.0.1", "999.0"])
def test_a_daemon_of_another_version_ends_and_the_next_step_starts_one_of_this(machine: Machine, version: str) -> None:
    launched = Launched(machine)
    launched.policy(HANDS_OFF)
    old = machine.start_with(f"import fairlead; fairlead.__version__ = {version!r}")
    assert states(upgrade(machine), "daemon") == ["upgraded"]
    assert old.wait() == 0
    assert REASON in launched.shell("touch forbidden").out
    assert wait_until(machine.running)["version"] == __version__


@AGENTS
def test_a_daemon_of_another_checkout_of_this_version_ends_and_the_next_step_starts_one_of_this(
    machine: Machine,
) -> None:
    launched = Launched(machine)
    launched.policy(HANDS_OFF)
    old = machine.start_with(OTHER_SOURCE)
    found = upgrade(machine, "--check")
    assert (states(found, "daemon"), found["done"]) == (["outdated"], False)
    assert states(upgrade(machine), "daemon") == ["upgraded"]
    assert old.wait() == 0
    assert REASON in launched.shell("touch forbidden").out
    assert wait_until(machine.running)["source"] == source_digest()
    assert states(upgrade(machine, "--check"), "daemon") == ["current"]


def test_a_daemon_of_this_version_stays(machine: Machine) -> None:
    launched = Launched(machine)
    launched.policy(HANDS_OFF)
    launched.shell("ls")
    before = launched.daemons
    assert states(upgrade(machine), "daemon") == ["current"]
    assert launched.daemons == before


# --- what is kept, and what an older fairlead does with what a newer one has kept ------------------------


@pytest.mark.parametrize(("version", "says"), [(99, "a newer fairlead wrote it"), (1, "its version is 1")])
def test_trust_of_another_version_is_left_to_a_person_with_the_projects_named(
    machine: Machine, version: int, says: str
) -> None:
    file = machine.state / "trust.json"
    file.write_text(json.dumps({"version": version, "projects": {"/my/project": {"other": "shape"}}}))
    before = file.read_bytes()
    found = upgrade(machine)
    assert states(found, "trust") == ["left"]
    assert "/my/project" in todo(found, "trust")
    assert says in found["parts"][-1]["says"]
    assert file.read_bytes() == before


def test_with_trust_of_a_newer_version_steps_are_refused_and_told_why(machine: Machine) -> None:
    launched = Launched(machine)
    launched.policy(HANDS_OFF)
    (machine.state / "trust.json").write_text(json.dumps({"version": 99, "projects": ["another shape"]}))
    ended = launched.shell("ls")
    assert ended.refuses
    assert "a newer fairlead wrote it" in ended.err
    assert "remove it" not in ended.err


def journal_of_schema(machine: Machine, schema: int) -> Path:
    launched = Launched(machine)
    launched.policy(HANDS_OFF)
    launched.shell("ls")
    launched.stop()
    path = machine.state / "journal.db"
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {schema}")
    db.close()
    return path


def test_a_newer_journal_is_left_and_the_program_goes_on_beside_it(machine: Machine) -> None:
    path = journal_of_schema(machine, 99)
    found = upgrade(machine)
    assert (states(found, "journal"), found["done"]) == (["left"], False)
    assert "install that fairlead again" in todo(found, "journal")
    launched = Launched(machine)
    assert REASON in launched.shell("touch forbidden").out, "hooks hold all the same"
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (99,)
    db.close()


def test_what_is_left_is_said_with_what_to_do(machine: Machine) -> None:
    (machine.state / "trust.json").write_text('{"version": 99, "projects": {}}')
    ended = machine.run("upgrade")
    assert ended.code == 1
    assert "-> " in ended.out
    assert ended.out.rstrip().endswith("Something is left to do.")
    assert os.listdir(machine.state)
