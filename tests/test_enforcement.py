"""The switch: hooks are only watched for a while, by a human's decision that was written down first."""

from __future__ import annotations

import getpass
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import Daemon, Machine, a_machine, wait_until, watched

from fairlead import Hooks
from fairlead.client import Client
from fairlead.config import load
from fairlead.enforcement import EnforcementSetting, EnforcementSwitch, read_setting, write_setting
from fairlead.samples import step

DENIES = '[[hook]]\nname = "no"\non = "before_tool"\nrule = "true"\ndeny = "no"\n'
LOCKED = '[[hook]]\nname = "never"\non = "before_input"\nrule = "true"\ndeny = "never"\nlocked = true\n'


@pytest.fixture
def machine() -> Iterator[Machine]:
    with a_machine() as made:
        made.user(DENIES + LOCKED)
        yield made


@pytest.fixture
def daemon(machine: Machine) -> Daemon:
    return machine.start()


@pytest.fixture
def client(daemon: Daemon) -> Iterator[Client]:
    with daemon.client() as client:
        yield client


@pytest.fixture
def unwatched() -> None:
    """Skips where an agent runs these tests, and so everything that they start."""
    if watched():
        pytest.skip("an agent runs these tests, and it cannot switch hooks off")


def control(client: Client, event: str = "before_tool") -> str:
    return client.dispatch(step(event)).control


# --- the file -----------------------------------------------------------------------------------


def test_hooks_are_enforced_by_default(tmp_path: Path) -> None:
    assert EnforcementSwitch(tmp_path)()


def test_what_is_set_is_read(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    setting = EnforcementSetting("monitor", 1e12, "because", "ann")
    write_setting(setting, tmp_path)
    assert (read_setting(tmp_path), EnforcementSwitch(tmp_path)()) == (setting, False)


def test_a_pause_ends_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o700)
    write_setting(EnforcementSetting("monitor", time.time() + 600), tmp_path)
    switch = EnforcementSwitch(tmp_path)
    before = switch()
    later = time.time() + 601
    monkeypatch.setattr(time, "time", lambda: later)
    assert (before, switch()) == (False, True)


BROKEN = [
    b"", b"garbage", b"\xff", b"[]", b"null", b'{"mode": "off"}', b'{"mode": null}', b'{"mode": "monitor"',
    b'{"mode": "monitor", "until": "never"}', b'{"x":' + b"[" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("content", BROKEN)
def test_a_broken_switch_enforces(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "switch.json").write_bytes(content)
    assert EnforcementSwitch(tmp_path)()


@given(content=st.binary(max_size=60))
def test_no_garbage_lifts_anything(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("state")
    (folder / "switch.json").write_bytes(content)
    assert EnforcementSwitch(folder)()


def test_a_switch_that_is_a_folder_enforces(tmp_path: Path) -> None:
    (tmp_path / "switch.json").mkdir()
    assert EnforcementSwitch(tmp_path)()


def test_a_switch_that_was_removed_enforces(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    write_setting(EnforcementSetting("monitor"), tmp_path)
    switch = EnforcementSwitch(tmp_path)
    before = switch()
    (tmp_path / "switch.json").unlink()
    wait_until(switch)
    assert not before


def test_the_switch_is_the_users_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    write_setting(EnforcementSetting("monitor"), tmp_path)
    assert (tmp_path / "switch.json").stat().st_mode & 0o077 == 0


def test_nothing_is_written_where_others_could_write(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(Exception, match="chmod 700"):
        write_setting(EnforcementSetting("monitor"), tmp_path)


# --- what it does -------------------------------------------------------------------------------


@pytest.fixture
def hooks(machine: Machine) -> Hooks:
    made = Hooks(record=True)
    load(machine.home).apply(made)
    return made


async def test_hooks_in_a_program_heed_the_switch(hooks: Hooks) -> None:
    write_setting(EnforcementSetting("monitor"))
    decision = await hooks.dispatch(step("before_tool"))
    assert (decision.control, [seen.control for seen in decision.monitored]) == ("proceed", ["deny"])


async def test_locked_hooks_in_a_program_do_not(hooks: Hooks) -> None:
    write_setting(EnforcementSetting("monitor"))
    assert (await hooks.dispatch(step("before_input"))).control == "deny"


def test_a_pause_takes_effect_in_a_running_daemon(client: Client) -> None:
    before = control(client)
    write_setting(EnforcementSetting("monitor", time.time() + 600))
    wait_until(lambda: control(client) == "proceed")
    assert before == "deny"


def test_what_hooks_would_have_done_is_told(client: Client) -> None:
    write_setting(EnforcementSetting("monitor"))
    wait_until(lambda: control(client) == "proceed")
    assert [seen.hook for seen in client.dispatch(step("before_tool")).monitored] == ["no"]


def test_locked_hooks_do_not_heed_a_pause(client: Client) -> None:
    write_setting(EnforcementSetting("monitor"))
    wait_until(lambda: control(client) == "proceed")
    assert control(client, "before_input") == "deny"


def test_enforcing_takes_effect_in_a_running_daemon(client: Client) -> None:
    write_setting(EnforcementSetting("monitor"))
    wait_until(lambda: control(client) == "proceed")
    write_setting(EnforcementSetting("enforce"))
    wait_until(lambda: control(client) == "deny")


def test_a_pause_ends_by_itself_in_a_running_daemon(client: Client) -> None:
    write_setting(EnforcementSetting("monitor", time.time() + 1.5))
    wait_until(lambda: control(client) == "proceed")
    wait_until(lambda: control(client) == "deny")


def test_a_broken_switch_enforces_in_a_running_daemon(machine: Machine, client: Client) -> None:
    write_setting(EnforcementSetting("monitor"))
    wait_until(lambda: control(client) == "proceed")
    (machine.state / "switch.json").write_text("garbage")
    wait_until(lambda: control(client) == "deny")


def test_a_projects_hooks_heed_the_switch_too(machine: Machine, client: Client) -> None:
    root = machine.project("p", DENIES.replace('"no"\non', '"mine"\non'))
    write_setting(EnforcementSetting("monitor"))
    wait_until(lambda: control(client) == "proceed")
    assert client.dispatch(step("before_tool"), root=str(root)).control == "proceed"


# --- the commands -------------------------------------------------------------------------------


def notes(machine: Machine) -> list[dict[str, Any]]:
    """The pauses that were written down."""
    return [one for one in machine.run("log", "--json").json if one.get("note") == "paused"]


@pytest.mark.usefixtures("unwatched")
def test_pause_sets_the_switch_and_says_until_when(machine: Machine) -> None:
    ended = machine.at_terminal("pause", "10m", "--reason", "it locks me out")
    setting = read_setting(machine.state)
    assert (ended.code, setting.mode, setting.reason) == (0, "monitor", "it locks me out")
    assert setting.until is not None


@pytest.mark.usefixtures("unwatched")
def test_monitor_sets_the_switch_without_an_end(machine: Machine) -> None:
    machine.at_terminal("monitor")
    assert (read_setting(machine.state).mode, read_setting(machine.state).until) == ("monitor", None)


@pytest.mark.usefixtures("unwatched")
def test_a_pause_is_written_down_with_who_and_why(machine: Machine) -> None:
    machine.at_terminal("pause", "10m", "--reason", "it locks me out")
    (note,) = notes(machine)
    assert (note["reason"], note["who"]) == ("it locks me out", getpass.getuser())


@pytest.mark.usefixtures("unwatched")
def test_a_pause_that_cannot_be_written_down_does_not_take_effect(machine: Machine) -> None:
    (machine.state / "journal.db").mkdir()
    ended = machine.at_terminal("pause", "10m", "--reason", "x")
    assert (ended.code != 0, read_setting(machine.state).mode) == (True, "enforce")


@pytest.mark.usefixtures("unwatched")
def test_a_pause_is_written_down_while_a_daemon_writes_too(machine: Machine, client: Client) -> None:
    control(client)
    ended = machine.at_terminal("pause", "10m", "--reason", "x")
    wait_until(lambda: control(client) == "proceed")
    assert (ended.code, len(notes(machine)), machine.run("verify").code) == (0, 1, 0)


def test_enforce_needs_no_person(machine: Machine) -> None:
    write_setting(EnforcementSetting("monitor"))
    env = machine.env | {"CLAUDECODE": "1"}
    assert (machine.run("enforce", env=env).code, read_setting(machine.state).mode) == (0, "enforce")


@pytest.mark.parametrize("words", [("pause", "10m", "--reason", "x"), ("monitor",)])
def test_hooks_are_switched_off_at_a_terminal_only(machine: Machine, words: tuple[str, ...]) -> None:
    ended = machine.run(*words)
    assert (ended.code, "terminal" in ended.err, read_setting(machine.state).mode) == (1, True, "enforce")


@pytest.mark.parametrize("words", [("pause", "10m", "--reason", "x"), ("monitor",)])
def test_an_agent_does_not_switch_hooks_off(machine: Machine, words: tuple[str, ...]) -> None:
    claude = machine.program("claude", '#!/bin/sh\n"$@"\n')
    ended = machine.at_terminal(*words, argv=[str(claude), sys.executable, "-m", "fairlead.cli"])
    assert (ended.code, "agent" in ended.out, read_setting(machine.state).mode) == (1, True, "enforce")


@pytest.mark.usefixtures("unwatched")
@pytest.mark.parametrize("time", ["0", "2d", "soon", "-5m", "1e9"])
def test_a_pause_takes_a_time_of_a_day_at_most(machine: Machine, time: str) -> None:
    ended = machine.at_terminal("pause", time, "--reason", "x")
    assert (ended.code in (1, 2), "Traceback" in ended.out, read_setting(machine.state).mode) == (
        True,
        False,
        "enforce",
    )


def test_a_pause_needs_a_reason(machine: Machine) -> None:
    assert (machine.at_terminal("pause", "10m").code != 0, read_setting(machine.state).mode) == (True, "enforce")
