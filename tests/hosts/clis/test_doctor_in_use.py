"""`fairlead doctor` on what is really in use: whatever a refusal sends the user to it for, it finds."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from pwd import getpwnam
from typing import Any

import pytest
from launched import HANDS_OFF, THE_REST, Launched, LauncherResult, answering
from machines import Machine, a_machine, wait_until
from test_launcher import ANSWERS, BROKEN, Way, fill, folders, here, hung, known, told

from fairlead.hosts.clis.doctor import daemon as daemon_module

__all__ = ["folders", "here", "known"]  # fixtures

CLOSED = '[journal]\non_failure = "closed"\n'


@pytest.fixture
def machine() -> Iterator[Machine]:
    with a_machine() as made:
        yield made


@pytest.fixture
def used(machine: Machine) -> Launched:
    """A machine on which a daemon runs, and has answered."""
    launched = Launched(machine)
    launched.policy(HANDS_OFF + THE_REST)
    assert launched.shell("ls").passes
    return launched


def examine(launched: Launched, folder: Path | None = None, *options: str) -> dict[str, Any]:
    """The report on fairlead itself."""
    ended = launched.machine.run("doctor", "--json", "-C", str(folder or launched.project), *options)
    assert ended.err == "", ended
    report: dict[str, Any] = ended.json[-1]
    assert report["host"] == "fairlead"
    assert ended.code == (0 if all(each["well"] for each in ended.json) else 1)
    return report


def problems(report: dict[str, Any]) -> str:
    found = [f"{each['what']} -> {each['todo']}" for each in report["findings"] if each["level"] == "problem"]
    return "\n".join(found)


def levels(report: dict[str, Any], words: str) -> list[str]:
    return [each["level"] for each in report["findings"] if words in each["what"]]


def sends_to_the_doctor(ended: LauncherResult) -> bool:
    assert ended.refuses, ended
    return "Run `fairlead doctor`" in ended.err


def test_without_a_daemon_the_doctor_names_packs_that_say_less(machine: Machine) -> None:
    launched = Launched(machine)
    launched.policy('packs = ["recommended"]\n')
    assert levels(examine(launched), "about earlier calls of a session") == []
    assert machine.run("install", "claude", "--no-daemon", "-C", str(launched.project)).code == 0
    report = examine(launched)
    assert levels(report, "fairlead.budgets about earlier calls of a session say nothing") == ["warning"]
    assert levels(report, "installed with --no-daemon") == ["note"]
    assert levels(report, "the next step starts one") == []


# --- whatever a refusal sends the user to the doctor for ------------------------------------------------


@pytest.mark.parametrize("way", BROKEN.values(), ids=BROKEN)
def test_what_is_broken_is_found_and_a_broken_step_does_not_send_the_user_to_the_doctor(
    here: Launched, folders: dict[str, Path], way: Way
) -> None:
    way.do(here)
    ended = here.call(payload=told(way), cwd=folders["closed"], seconds=way.seconds)
    assert sends_to_the_doctor(ended) is (way.told is None), ended.err
    if sends_to_the_doctor(ended):
        assert problems(examine(here, folders["closed"]))


@pytest.mark.parametrize(("answer", "why"), ANSWERS.values(), ids=ANSWERS)
def test_a_daemon_that_is_none_is_found_where_its_answer_sends_the_user_to_the_doctor(
    here: Launched, folders: dict[str, Path], answer: Callable[[socket.socket], None], why: str
) -> None:
    with answering(here.state, answer):
        if sends_to_the_doctor(here.call(cwd=folders["closed"])):
            assert problems(examine(here, folders["closed"]))


def test_a_hung_daemon_is_named_with_its_process_and_the_way_out(machine: Machine) -> None:
    with hung(machine) as launched:
        (pid,) = launched.daemons
        assert sends_to_the_doctor(launched.shell("ls", seconds=4))
        found = problems(examine(launched))
        assert f"the daemon (process {pid}) does not answer" in found
        assert f"kill -KILL {pid}" in found
        assert sends_to_the_doctor(launched.shell("ls")), "while it hangs, each refusal says so"
        launched.stop(signal.SIGKILL)
    assert launched.shell("ls").passes


def test_a_hung_daemon_is_found_when_nothing_is_to_be_run(machine: Machine) -> None:
    with hung(machine) as launched:
        assert "does not answer" in problems(examine(launched, None, "--no-run"))


def test_a_slow_hook_does_not_send_the_user_to_the_doctor(machine: Machine) -> None:
    launched = Launched(machine)
    launched.policy('[[hook]]\nname = "slow"\non = "before_tool"\ncommand = ["sleep", "30"]\ntimeout = 60\n')
    assert not sends_to_the_doctor(launched.shell("ls", seconds=5))


def break_trust(launched: Launched) -> None:
    (launched.state / "trust.json").write_text("{")


def newer_trust(launched: Launched) -> None:
    (launched.state / "trust.json").write_text('{"version": 99, "projects": {}}')


def damage_copies(launched: Launched) -> None:
    """Both the copy of what was trusted and the file itself."""
    launched.policy(HANDS_OFF.replace("hands-off", "of-the-project"), launched.project)
    (launched.project / "fairlead.toml").write_text("")
    for copy in (launched.state / "pinned").rglob("fairlead.toml"):
        copy.chmod(0o600)
        copy.write_text("# another\n")


def open_state(launched: Launched) -> None:
    launched.policy(HANDS_OFF.replace("hands-off", "of-the-project"), launched.project)
    launched.state.chmod(0o777)


@pytest.mark.parametrize("do", [break_trust, newer_trust, damage_copies, open_state])
def test_trust_that_cannot_be_relied_on_is_found(machine: Machine, do: Callable[[Launched], None]) -> None:
    launched = Launched(machine)
    launched.policy(HANDS_OFF)
    do(launched)
    assert sends_to_the_doctor(launched.shell("ls"))
    assert problems(examine(launched))


@pytest.fixture
def small_disk(machine: Machine) -> Iterator[Launched]:
    """A state folder on a disk of its own, of a few megabytes."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", str(machine.state)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    launched = Launched(machine)
    try:
        yield launched
    finally:
        launched.stop(signal.SIGKILL)
        subprocess.run(["umount", "-l", str(machine.state)], check=True)


@pytest.mark.parametrize("full", ["before", "while it runs"])
@pytest.mark.parametrize("journal", ["", CLOSED], ids=["the journal fails open", "the journal fails closed"])
def test_a_full_disk_is_found(small_disk: Launched, full: str, journal: str) -> None:
    small_disk.policy(journal + HANDS_OFF + THE_REST)
    if full == "while it runs":
        assert small_disk.shell("ls").passes
    fill(small_disk.state)
    small_disk.shell("ls", seconds=30)  # by which the daemon notices
    found = problems(examine(small_disk))
    assert "No space left" in found or "disk is full" in found, found


# --- what is well, and what else there is to see ---------------------------------------------------------


def test_a_daemon_that_answers_is_well_and_stays(used: Launched) -> None:
    (pid,) = used.daemons
    report = examine(used)
    assert problems(report) == ""
    assert levels(report, f"the daemon answers (process {pid}") == ["ok"]
    assert levels(report, "gets answers from fairlead") == ["ok"]
    assert used.daemons == [pid]


def test_a_daemon_that_is_started_to_see_whether_it_answers_ends_again(machine: Machine) -> None:
    launched = Launched(machine)
    launched.policy(HANDS_OFF)
    assert problems(examine(launched)) == ""
    wait_until(lambda: not launched.daemons)


@pytest.mark.parametrize("version", ["0.0.1", "999.0"])
def test_a_daemon_of_another_version_is_found(machine: Machine, version: str) -> None:
    launched = Launched(machine)
    machine.start_with(f"import fairlead; fairlead.__version__ = {version!r}")
    found = problems(examine(launched))
    assert f"the daemon is of version {version}" in found
    assert "fairlead upgrade" in found


def test_a_daemon_of_another_checkout_of_this_version_is_found(machine: Machine) -> None:
    machine.start_with("import fairlead.build; fairlead.build.source_digest = lambda: 'another checkout'")
    found = problems(examine(Launched(machine)))
    assert "started from other source files" in found
    assert "fairlead upgrade" in found


def test_an_anchor_that_cannot_be_written_is_found(machine: Machine) -> None:
    anchor = machine.folder / "absent/anchors"
    machine.user(f'[journal]\nanchor = {{ file = "{anchor}" }}\n')
    daemon = machine.start()
    daemon.ask("POST", "/v1/dispatch", {"step": {"event": "turn_start", "session_id": "s"}})
    wait_until(lambda: daemon.health()["anchor_error"])
    assert "cannot anchor the journal" in problems(examine(Launched(machine)))


def test_the_machines_daemon_is_started_as_the_user_whose_folder_it_is(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_module, "MANAGED", machine.folder)
    assert daemon_module._managed_command().startswith("fairlead serve" if os.geteuid() == 0 else "sudo -u ")
    nobody = getpwnam("nobody")
    monkeypatch.setattr(Path, "lstat", lambda path: os.stat_result((0, 0, 0, 0, nobody.pw_uid, 0, 0, 0, 0, 0)))
    assert daemon_module._managed_command().startswith("sudo -u nobody FAIRLEAD_STATE_DIR=")


def test_something_else_in_the_daemons_place_is_found(machine: Machine) -> None:
    launched = Launched(machine)
    with answering(machine.state, lambda caller: caller.sendall(b"220 mail.example ESMTP\r\n")):
        assert f"process {os.getpid()} listens where the daemon should" in problems(examine(launched))


def test_a_project_that_is_not_trusted_and_one_that_has_changed_are_warnings(used: Launched) -> None:
    (used.project / "fairlead.toml").write_text(HANDS_OFF)
    assert levels(examine(used), "look at it with `fairlead trust`") == ["warning"]
    used.policy(HANDS_OFF, used.project)
    assert levels(examine(used), "fairlead.toml") == []
    (used.project / "fairlead.toml").write_text(HANDS_OFF.replace("not yours", "yours"))
    assert levels(examine(used), "changed since it was trusted") == ["warning"], examine(used)


def test_nothing_is_left_in_the_state_folder(used: Launched) -> None:
    examine(used)
    assert not list(used.state.glob(".*"))


def test_the_text_names_fairlead_itself_and_what_to_do(machine: Machine) -> None:
    launched = Launched(machine)
    launched.policy("[[hook")
    ended = machine.run("doctor", "-C", str(launched.project))
    assert ended.code == 1
    assert "-> fairlead check" in ended.out
    assert ended.out.rstrip().endswith("Not well: fairlead.")
    assert json.loads(machine.run("doctor", "--json").out)[-1]["version"]


# --- every file in the state folder ---------------------------------------------------------------------

MADE = (
    "approvals.db", "approvals.key", "bin/fairlead-hook", "bin/fairlead_hook.py", "daemon.log", "fallback.json",
    "journal.db", "journal.db.head", "journal.db.key", "journal.db.lock", "journal.db.writers",
    "run/start.lock", "run/v1.sock.lock", "sessions.json", "trust.json", "unanswered.jsonl",
    "fallback.lock", "trust.lock",
)  # fmt: skip
FULL = HANDS_OFF + THE_REST + '[journal]\ndurability = "full"\n'


@pytest.fixture
def installed(machine: Machine) -> Launched:
    """A machine on which all files of the state folder are there, and no daemon runs."""
    launched = Launched(machine)
    launched.policy(FULL)
    launched.policy(HANDS_OFF.replace("hands-off", "of-the-project"), launched.project)
    assert launched.shell("ls").passes
    assert launched.call(payload=b"no JSON").refuses, "which leaves a line for the journal"
    launched.stop()
    return launched


def test_these_are_all_files_of_the_state(installed: Launched) -> None:
    top = [*installed.state.iterdir(), *(installed.state / "run").iterdir()]
    found = {str(file.relative_to(installed.state)) for file in top if file.name not in ("run", "bin", "pinned")}
    assert {name for name in found if not name.endswith(("-wal", "-shm"))} <= set(MADE)


def remove(file: Path) -> None:
    shutil.rmtree(file) if file.is_dir() else file.unlink()


def garbage(file: Path) -> None:
    remove(file)
    file.write_bytes(b"garbage, and no more than that\n" * 40)
    os.utime(file, (0, 0))  # a young start.lock says for a while that no daemon starts


def folder(file: Path) -> None:
    remove(file)
    (file / "inside").mkdir(parents=True)


def unreadable(file: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads every file")
    file.chmod(0o000)


@pytest.mark.parametrize("how", [garbage, folder, unreadable])
@pytest.mark.parametrize("name", MADE)
def test_whatever_a_file_of_the_state_is_replaced_by_the_daemon_works_or_the_doctor_names_the_file(
    installed: Launched, name: str, how: Callable[[Path], None]
) -> None:
    file = installed.state / name
    assert file.exists()
    how(file)
    ended = installed.shell("ls", seconds=30) if "bin/" not in name else None
    if ended is not None and ended.passes and installed.daemons:
        return
    found = problems(examine(installed))
    assert name.rpartition("/")[2] in found, (ended, found)


def test_a_trigger_in_a_journal_that_refuses_without_its_record_is_found(installed: Launched) -> None:
    with closing(sqlite3.connect(installed.state / "journal.db")) as db:
        db.execute("CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM records WHERE seq = new.seq; END")
    launched = installed.alone()
    assert sends_to_the_doctor(launched.shell("ls"))
    assert "trigger 't'" in problems(examine(launched))
