"""Where the launcher acts without an answer, the journal says what it did."""

from __future__ import annotations

import fcntl
import json
import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import pytest
from launched import FAILS_OPEN, HANDS_OFF, Launched
from machines import Machine, a_machine, wait_until
from test_launcher import hung

from fairlead.hosts.clis import client as hook_client
from fairlead.journal import Journal
from fairlead.journal.reading import Filter, Reader
from fairlead.journal.unanswered import FILE, LIMIT, LauncherLine, import_unanswered
from fairlead.lifecycle import GUARDING

SLOW = """
[[hook]]
name = "slow"
on = "before_tool"
phase = "gate"
timeout = 30
command = ["/bin/sh", "-c", "cat >/dev/null; until [ -e go ]; do sleep 0.1; done; echo '{\\"control\\":\\"VERDICT\\"}'"]
"""
OPEN = 'on_failure = "open"\n'


@pytest.fixture
def machine() -> Iterator[Machine]:
    with a_machine() as made:
        yield made


def slow(machine: Machine, verdict: str, more: str = "") -> Launched:
    """A machine with a hook that says its verdict once a file is there, and a daemon that knows the project."""
    launched = Launched(machine)
    launched.policy(SLOW.replace("VERDICT", verdict).replace("-e go", f"-e {launched.project}/go") + more)
    (launched.project / "go").touch()
    launched.call(payload=told(launched, "before"))
    (launched.project / "go").unlink()
    return launched


def told(launched: Launched, call: str, **more: Any) -> dict[str, Any]:
    about = {"session_id": "s", "cwd": str(launched.project), "tool_name": "Bash", "tool_use_id": call}
    return {**about, "tool_input": {"command": "ls"}, **more}


def records(launched: Launched, **which: Any) -> list[dict[str, Any]]:
    ended = launched.machine.run("log", "--json", *(word for k, v in which.items() for word in (f"--{k}", v)))
    return [record for record in ended.json if record["kind"] == "decision"]


def of_call(launched: Launched, call: str) -> dict[str, dict[str, Any]]:
    return {each["step"]["event"]: each for each in records(launched) if each["step"].get("call_id") == call}


# --- a daemon that is late ------------------------------------------------------------------------------


@pytest.mark.e2e
def test_a_late_deny_of_hooks_that_fail_open_is_recorded_as_not_carried_out(machine: Machine) -> None:
    launched = slow(machine, "deny", OPEN)
    assert launched.call(payload=told(launched, "late"), seconds=4).code == 0, "the tool runs"
    (launched.project / "go").touch()
    wait_until(lambda: of_call(launched, "late"))
    assert set(of_call(launched, "late")) == {"before_tool"}, "the call is not over"
    record = of_call(launched, "late")["before_tool"]
    assert (record["control"], record["effective"]) == ("deny", "proceed")
    assert record["unanswered"] == "there was no answer in time"
    assert not [each for each in records(launched, decision="deny") if each["step"].get("call_id") == "late"]
    launched.call(event="PostToolUse", payload=told(launched, "late", tool_response={"stdout": "done"}))
    wait_until(lambda: "after_tool" in of_call(launched, "late"))
    assert of_call(launched, "late")["after_tool"]["step"]["executed"] is True


@pytest.mark.e2e
def test_a_late_proceed_of_hooks_that_fail_closed_is_recorded_as_denied_once(machine: Machine) -> None:
    launched = slow(machine, "proceed")
    assert launched.call(payload=told(launched, "late"), seconds=4).refuses
    (launched.project / "go").touch()
    wait_until(lambda: "after_tool" in of_call(launched, "late"))
    (record,) = records(launched, decision="deny")
    assert (record["control"], record["effective"], record["step"]["call_id"]) == ("proceed", "deny", "late")
    assert of_call(launched, "late")["after_tool"]["step"]["executed"] is False


@pytest.mark.e2e
def test_a_step_that_a_hung_daemon_left_is_recorded_once_though_the_daemon_goes_on(machine: Machine) -> None:
    with hung(machine) as launched:
        (pid,) = launched.daemons
        assert launched.shell("ls", seconds=4).refuses
        os.kill(pid, signal.SIGCONT)
        assert launched.shell("pwd").passes
    wait_until(lambda: len(records(launched)) >= 3)
    (record,) = records(launched, decision="deny")
    assert "does not answer at all" in record["unanswered"]


@pytest.mark.e2e
def test_each_step_that_a_daemon_refuses_while_it_hangs_is_recorded_though_it_is_killed(machine: Machine) -> None:
    with hung(machine) as launched:
        (pid,) = launched.daemons
        assert launched.shell("ls", seconds=4).refuses
        assert launched.shell("ls").refuses
        os.kill(pid, signal.SIGKILL)
    assert len(records(launched, decision="deny")) == 2


# --- no daemon at all -----------------------------------------------------------------------------------


@pytest.mark.e2e
def test_a_refusal_without_a_daemon_is_shown_while_the_policy_is_broken(machine: Machine) -> None:
    launched = Launched(machine)
    launched.policy(HANDS_OFF)
    launched.learn()
    launched.policy("x = [")
    assert launched.shell("secret words").refuses
    (record,) = records(launched, decision="deny")
    assert (record["step"]["event"], record["step"]["host"]) == ("before_tool", "claude_code")
    assert record["step"]["cwd"] == str(launched.project)
    assert "not TOML" in record["unanswered"]
    assert "secret words" not in json.dumps(record)
    assert launched.machine.run("log", "--decision", "deny").out.count("before_tool") == 1
    assert "1 deny" in launched.machine.run("stats").out
    assert launched.machine.run("show", record["id"]).code == 0
    assert launched.machine.run("verify").code == 0


@pytest.mark.e2e
def test_the_next_daemon_takes_in_what_was_left(machine: Machine) -> None:
    launched = Launched(machine)
    launched.policy(HANDS_OFF)
    launched.learn()
    launched.policy("x = [")
    assert launched.shell("ls").refuses
    launched.policy(HANDS_OFF)
    assert launched.shell("ls").passes
    assert (launched.state / FILE).stat().st_size == 0
    with Reader(launched.state / "journal.db") as reader:
        assert len(list(reader.records(Filter(decision="deny")))) == 1


@pytest.mark.e2e
def test_a_call_that_passes_without_an_answer_is_recorded_as_that(machine: Machine) -> None:
    launched = Launched(machine)
    launched.policy(FAILS_OPEN)
    launched.learn()
    launched.policy("x = [")
    assert launched.shell("forbidden").code == 0
    assert records(launched, decision="deny") == []
    assert [each["effective"] for each in records(launched) if "unanswered" in each] == ["proceed"]


@pytest.mark.e2e
def test_the_doctor_leaves_no_line(machine: Machine) -> None:
    launched = Launched(machine)
    launched.policy(HANDS_OFF)
    assert launched.shell("ls").passes
    launched.machine.run("doctor", "-C", str(launched.project))
    assert not (launched.state / FILE).exists()


# --- the file -------------------------------------------------------------------------------------------


@pytest.mark.e2e
@pytest.mark.parametrize("put", ["link", "pipe", "folder", "full"])
def test_whatever_is_in_the_place_of_the_file_a_refusal_is_one_and_nothing_else_is_written(
    machine: Machine, put: str
) -> None:
    launched = Launched(machine)
    launched.policy("x = [")
    file, other = launched.state / FILE, launched.project / "other"
    other.write_text("")
    if put == "link":
        file.symlink_to(other)
    elif put == "pipe":
        os.mkfifo(file)
    elif put == "folder":
        file.mkdir()
    else:
        file.write_bytes(b"x" * LIMIT)
    ended = launched.shell("ls")
    assert ended.refuses
    assert ended.took < 10
    assert other.read_text() == ""
    assert put != "full" or file.stat().st_size == LIMIT


def a_line(**more: Any) -> bytes:
    about = {
        "id": "0" * 16,
        "at": 1,
        "event": "before_tool",
        "host": "codex",
        "cwd": "/",
        "control": "deny",
        "why": "x",
    }
    return json.dumps(about | more).encode()


def taken(folder: Path) -> list[dict[str, Any]]:
    with Journal(folder / "journal.db") as journal:
        import_unanswered(folder, journal)
        import_unanswered(folder, journal)
    with Reader(folder / "journal.db") as reader:
        return [record.body for record in reader.records(Filter())]


def test_lines_that_were_cut_off_or_forged_are_left_out_and_the_others_taken_once(tmp_path: Path) -> None:
    good = [a_line(id=f"{number:016x}") for number in range(3)]
    bad = [good[0][:40], b"\xff\xfe", b"[" * 5000, a_line(id="../../x"), a_line(control="allow"), a_line(at=1 << 70)]
    (tmp_path / FILE).write_bytes(b"\n".join([good[0], *bad, good[1], good[1], b"", good[2]]))
    assert [body["id"] for body in taken(tmp_path)] == [f"launcher-{number:016x}" for number in range(3)]
    assert (tmp_path / FILE).read_bytes() == b""


def test_what_the_journal_cannot_write_stays(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(a_line())
    (tmp_path / "journal.db").write_bytes(b"garbage " * 100)
    with Journal(tmp_path / "journal.db", on_failure="closed") as journal:
        import_unanswered(tmp_path, journal)
    assert (tmp_path / FILE).read_bytes() == a_line()


def test_many_launchers_leave_whole_lines(tmp_path: Path) -> None:
    given = json.dumps({"home": "/h", "state": str(tmp_path)}, separators=(",", ":"))
    code = f"import sys; sys.argv = ['', {given!r}, 'left', 'deny', 'before_tool', 'codex', 'it\\'s \"odd\"\\n' * 9]; "

    def leave() -> None:
        from test_hook_client import alone

        alone(code + "import client; client.run()")

    threads = [threading.Thread(target=leave) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({body["id"] for body in taken(tmp_path)}) == 8


def test_client_and_journal_agree_on_the_file() -> None:
    assert (hook_client.UNANSWERED, hook_client.UNANSWERED_LIMIT) == (FILE, LIMIT)
    assert get_args(get_type_hints(LauncherLine)["event"]) == GUARDING


@pytest.mark.e2e
def test_a_command_that_reads_prunes_nothing(machine: Machine) -> None:
    """Its limits would be the defaults, where those of the user's file cannot be read."""
    machine.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = machine.state / "journal.db"
    old = time.time_ns() - 400 * 86400 * 10**9
    with Journal(path, max_age=math.inf) as journal:
        for number in range(20):
            line = a_line(id=f"{number:016x}", at=old + number * 3600 * 10**9)
            journal.keep_facts(msgspec.json.decode(line, type=LauncherLine).facts)
    (machine.state / FILE).write_bytes(a_line(id="f" * 16, at=time.time_ns()))
    assert machine.run("log", "--json").code == 0
    with Reader(path) as reader:
        assert len(list(reader.records())) == 21


def test_a_file_that_another_process_keeps_locked_holds_nothing_up(tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_bytes(a_line())
    with file.open() as held, Journal(tmp_path / "journal.db") as journal:
        fcntl.flock(held, fcntl.LOCK_EX)
        import_unanswered(tmp_path, journal)
        assert file.stat().st_size
        fcntl.flock(held, fcntl.LOCK_UN)
        import_unanswered(tmp_path, journal)
    assert not file.stat().st_size
