"""One daemon per user, however many start at once; away from whatever started it; and how it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from machines import CLI, DEADLINE, Daemon, Machine, alive, ask, wait_until

from fairlead.client import Client
from fairlead.samples import step

SERVER = [sys.executable, "-P", "-m", "fairlead.server"]
# Says which daemon it was answered by, having started one if there was none.
ASKS = """
from fairlead.client import Client
from fairlead.samples import step
with Client() as client:
    decision = client.dispatch(step("turn_start"))
    print(decision.control, client.health()["pid"], *decision.warnings)
"""


def daemons(machine: Machine) -> list[int]:
    """The processes that hold a socket of this machine open."""
    found = []
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        words = line.split()
        if len(words) > 7 and words[7] == str(machine.socket) and int(words[3], 16) & 0x10000:  # it listens
            found.append(int(words[6]))
    return found


def race(machine: Machine, number: int) -> list[str]:
    """What so many clients say that all begin at once."""
    clients = [machine.spawn(ASKS) for _ in range(number)]
    said = [client.communicate(timeout=120) for client in clients]
    assert [err for _, err in said if err] == []
    return [out.strip() for out, _ in said]


def test_of_clients_that_start_at_once_all_are_served_by_one_daemon(machine: Machine) -> None:
    said = race(machine, 10)
    found = machine.running()
    assert found is not None
    assert set(said) == {f"proceed {found['pid']}"}


def test_of_daemons_that_start_at_once_one_wins_and_the_others_step_back(machine: Machine) -> None:
    started = [
        subprocess.Popen(SERVER, env=machine.env, stderr=subprocess.DEVNULL, start_new_session=True) for _ in range(20)
    ]
    machine.processes += started
    winner = wait_until(machine.running)["pid"]
    others = [process for process in started if process.pid != winner]
    assert {process.wait(DEADLINE) for process in others} == {0}
    assert (len(others), alive(winner), len(daemons(machine))) == (19, True, 1)


@pytest.mark.soak
def test_a_thousand_starts_leave_one_daemon(machine: Machine) -> None:
    for round_ in range(20):
        said = race(machine, 50)
        found = machine.running()
        assert found is not None
        assert set(said) == {f"proceed {found['pid']}"}
        assert len(daemons(machine)) == 1
        os.kill(found["pid"], signal.SIGKILL if round_ % 2 else signal.SIGTERM)
        wait_until(lambda pid=found["pid"]: not alive(pid))


@pytest.mark.soak
def test_clients_that_come_while_a_daemon_ends_are_served_by_the_next(machine: Machine) -> None:
    for _ in range(20):
        clients = [machine.spawn(ASKS) for _ in range(10)]
        if machine.running() is not None:
            ask(str(machine.socket), "POST", "/v1/stop")
        said = [client.communicate(timeout=120) for client in clients]
        assert [err for _, err in said if err] == []
        assert {out.split()[0] for out, _ in said} == {"proceed"}


def test_a_second_daemon_is_refused_and_the_first_goes_on(machine: Machine) -> None:
    first = machine.start()
    second = machine.run("serve")
    assert (second.code, f"process {first.pid}" in second.err) == (1, True)
    assert first.health()["pid"] == first.pid


def test_what_a_killed_daemon_left_is_no_obstacle(machine: Machine) -> None:
    first = machine.start()
    first.process.kill()
    first.wait()
    assert machine.socket.exists()
    assert machine.start().health()["status"] == "ok"


def test_a_lock_without_a_holder_is_no_obstacle(machine: Machine) -> None:
    machine.socket.parent.mkdir(mode=0o700)
    (machine.socket.parent / "v1.sock.lock").write_text("999999")
    assert machine.start().health()["status"] == "ok"


# --- away from whatever started it --------------------------------------------------------------

STARTER = """
import os, sys
from fairlead.client import Client
os.chdir(sys.argv[1])
read, write = os.pipe()
for descriptor in (read, write):
    os.set_inheritable(descriptor, True)
os.environ["CREDENTIAL"] = "not for the daemon"
with Client() as client:
    print(client.health()["pid"], os.getsid(0), flush=True)
"""


@pytest.fixture(scope="module")
def started(shared: Machine) -> tuple[int, int]:
    """A daemon that a client has started, and that client's session."""
    out, err = shared.spawn(STARTER, str(shared.home)).communicate(timeout=DEADLINE)
    assert not err
    pid, session = map(int, out.split())
    return pid, session


def test_a_started_daemon_has_a_session_of_its_own(started: tuple[int, int]) -> None:
    pid, session = started
    assert os.getsid(pid) == pid != session


def test_a_started_daemon_is_in_no_user_s_folder(started: tuple[int, int]) -> None:
    assert os.readlink(f"/proc/{started[0]}/cwd") == "/"


def test_a_started_daemon_has_no_descriptor_of_its_starter(shared: Machine, started: tuple[int, int]) -> None:
    folder = f"/proc/{started[0]}/fd"
    standard = [os.readlink(f"{folder}/{number}") for number in (0, 1, 2)]
    pipes = [link for name in os.listdir(folder) if (link := os.readlink(f"{folder}/{name}")).startswith("pipe:")]
    assert (standard, pipes) == (["/dev/null", *[str(shared.state / "daemon.log")] * 2], [])


def test_a_started_daemon_has_no_variable_of_its_starters(started: tuple[int, int]) -> None:
    assert b"CREDENTIAL" not in Path(f"/proc/{started[0]}/environ").read_bytes()


def test_a_started_daemon_does_not_hold_a_token(machine: Machine) -> None:
    env = machine.env | {"FAIRLEAD_TOKEN": "fairlead_of_somebody"}
    out, _ = machine.spawn(STARTER, str(machine.home), env=env).communicate(timeout=DEADLINE)
    assert b"fairlead_of_somebody" not in Path(f"/proc/{out.split()[0]}/environ").read_bytes()


def test_the_log_of_a_started_daemon_is_its_users_alone(shared: Machine, started: tuple[int, int]) -> None:
    assert (shared.state / "daemon.log").stat().st_mode & 0o777 == 0o600


def test_a_hook_sees_what_its_request_brings_and_nothing_of_the_daemons(machine: Machine) -> None:
    seen = machine.folder / "seen"
    machine.program("look", f"#!/bin/sh\nenv > {seen}\n")
    machine.user(f'[[hook]]\nname = "look"\non = "turn_start"\ncommand = ["{machine.outside}/look"]\nenv = ["MINE"]\n')
    daemon = machine.start(env=machine.env | {"MINE": "the daemon's", "SECRET": "the daemon's", "LD_DEBUG": ""})
    body = {"step": {"event": "turn_start"}, "env": {"MINE": "the caller's", "OTHER": "x", "PATH": "/usr/bin:/bin"}}
    assert daemon.ask("POST", "/v1/dispatch", body).body["control"] == "proceed"
    found = dict(line.split("=", 1) for line in seen.read_text().splitlines())
    assert {name: found.get(name) for name in ("MINE", "SECRET", "OTHER", "LD_DEBUG", "PATH")} == {
        "MINE": "the caller's", "SECRET": None, "OTHER": None, "LD_DEBUG": None, "PATH": "/usr/bin:/bin",
    }  # fmt: skip


# --- ending -------------------------------------------------------------------------------------


class Slow:
    """A hook that is under way for as long as a test likes."""

    def __init__(self, machine: Machine) -> None:
        self._here, self._go = machine.folder / "here", machine.folder / "go"
        os.mkfifo(self._here)
        os.mkfifo(self._go)
        machine.program(
            "slow", f"#!/bin/sh\necho here > {self._here}\nread line < {self._go}\necho $line >&2\nexit 2\n"
        )
        machine.user(
            f'[[hook]]\nname = "slow"\non = "before_tool"\ncommand = ["{machine.outside}/slow"]\ntimeout = false\n'
        )
        self.decision: Any = None

    def begin(self, daemon: Daemon) -> None:
        self._thread = threading.Thread(target=self._dispatch, args=(daemon,))
        self._thread.start()
        self._here.read_text()

    def _dispatch(self, daemon: Daemon) -> None:
        with daemon.client() as client:
            self.decision = client.dispatch(step("before_tool", session_id="the slow one"))

    def finish(self) -> Any:
        self._go.write_text("done\n")
        self._thread.join()
        return self.decision


@pytest.fixture
def slow(machine: Machine) -> Slow:
    return Slow(machine)


def draining(daemon: Daemon) -> bool:
    return bool(daemon.health()["status"] == "draining")


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "the API"])
def test_what_is_under_way_gets_its_answer(machine: Machine, slow: Slow, how: str) -> None:
    daemon = machine.start()
    slow.begin(daemon)
    if how == "the API":
        daemon.ask("POST", "/v1/stop")
    else:
        daemon.process.send_signal(getattr(signal, how))
    wait_until(lambda: draining(daemon))
    assert (slow.finish().reason, daemon.wait()) == ("done", 0)


def test_a_daemon_that_ends_takes_nothing_new(machine: Machine, slow: Slow) -> None:
    daemon = machine.start()
    slow.begin(daemon)
    daemon.process.send_signal(signal.SIGTERM)
    wait_until(lambda: draining(daemon))
    answer = daemon.ask("POST", "/v1/dispatch", {"step": {"event": "turn_start"}})
    slow.finish()
    assert (answer.status, answer.body["error"], answer.headers.get("retry-after")) == (503, "draining", "1")


def test_a_daemon_that_has_ended_has_written_down_what_it_decided(machine: Machine, slow: Slow) -> None:
    daemon = machine.start()
    slow.begin(daemon)
    daemon.process.send_signal(signal.SIGTERM)
    slow.finish()
    daemon.wait()
    assert '"deny"' in machine.run("log", "--session", "the slow one", "--json").out


def test_a_daemon_that_has_ended_leaves_no_socket(machine: Machine) -> None:
    daemon = machine.start()
    assert (machine.socket.exists(), daemon.end(), machine.socket.exists()) == (True, 0, False)


def test_a_connection_that_says_nothing_does_not_keep_a_daemon(machine: Machine) -> None:
    daemon = machine.start()
    with daemon.connect():
        assert daemon.end() == 0


def test_an_idle_daemon_ends(machine: Machine) -> None:
    daemon = machine.start("--idle", "200ms")
    assert daemon.wait() == 0


def test_a_daemon_is_not_idle_while_something_is_under_way(machine: Machine, slow: Slow) -> None:
    daemon = machine.start("--idle", "1500ms")
    slow.begin(daemon)
    with pytest.raises(subprocess.TimeoutExpired):
        daemon.process.wait(2.0)
    assert (slow.finish().reason, daemon.wait()) == ("done", 0)


def test_a_daemon_is_not_idle_while_a_question_is_open(machine: Machine) -> None:
    machine.user('[[hook]]\nname = "may"\non = "before_tool"\nrule = "true"\nask = "may it?"\n')
    daemon = machine.start("--idle", "1500ms")
    with daemon.client() as client:
        client.dispatch(step("before_tool"), deadline=0.0)
        with pytest.raises(subprocess.TimeoutExpired):
            daemon.process.wait(2.0)
        client.answer(client.approvals()[0]["id"], False)
    assert daemon.wait() == 0


def test_a_newer_daemon_takes_over_from_an_older(machine: Machine) -> None:
    old = machine.start()
    new = machine.start_with("import fairlead\nfairlead.__version__ = '99.0.0'")
    assert (old.wait(), new.health()["version"]) == (0, "99.0.0")


def test_a_newer_daemon_waits_for_what_an_older_has_under_way(machine: Machine, slow: Slow) -> None:
    old = machine.start()
    slow.begin(old)
    newer = "import fairlead; fairlead.__version__ = '99.0.0'"
    code = f"{newer}\nfrom fairlead.server.daemon import *\nserve(DaemonSettings())"
    new = machine.spawn(code)
    wait_until(lambda: draining(old))
    assert slow.finish().reason == "done"
    wait_until(lambda: (machine.running() or {}).get("pid") == new.pid)


def test_an_older_daemon_does_not_take_over_from_a_newer(machine: Machine) -> None:
    new = machine.start_with("import fairlead\nfairlead.__version__ = '99.0.0'")
    assert machine.run("serve").code == 1
    assert new.health()["pid"] == new.pid


def test_a_question_that_is_open_does_not_hold_up_the_end(machine: Machine) -> None:
    """Its host is told that the question is pending; the next daemon has the answer."""
    machine.user('[[hook]]\nname = "may"\non = "before_tool"\nrule = "true"\nask = "may it?"\n')
    daemon = machine.start()
    found: list[Any] = []

    def dispatch() -> None:
        with daemon.client() as client:
            found.append(client.dispatch(step("before_tool"), deadline=600.0))

    asking = threading.Thread(target=dispatch)
    asking.start()
    wait_until(lambda: daemon.ask("GET", "/v1/approvals").body["approvals"])
    daemon.process.send_signal(signal.SIGTERM)
    try:
        assert daemon.process.wait(5) == 0
    finally:
        daemon.process.kill()
        asking.join()
    assert "pending" in (found[0].reason or "")


def test_sessions_that_cannot_be_saved_do_not_make_a_daemon_fall_over(machine: Machine) -> None:
    daemon = machine.start()
    (machine.state / "sessions.json").mkdir()
    with daemon.client() as client:
        client.dispatch(step("before_tool"))
    assert daemon.end() == 0


# --- the command --------------------------------------------------------------------------------


def test_serve_says_where_it_answers(machine: Machine) -> None:
    daemon = machine.start("--tcp", "0")
    assert (machine.socket.is_socket(), daemon.url.startswith("http://127.0.0.1:"), daemon.port > 0) == (True,) * 3


def test_serve_without_tcp_answers_on_no_port(machine: Machine) -> None:
    daemon = machine.start("--idle", "1h")
    listening = [line.split() for line in Path(f"/proc/{daemon.pid}/net/tcp").read_text().splitlines()[1:]]
    mine = {os.readlink(f"/proc/{daemon.pid}/fd/{name}") for name in os.listdir(f"/proc/{daemon.pid}/fd")}
    assert [words for words in listening if words[3] == "0A" and f"socket:[{words[9]}]" in mine] == []


def test_serve_says_how_the_running_one_is(machine: Machine) -> None:
    daemon = machine.start()
    ended = machine.run("serve", "--status")
    assert (ended.code, ended.out.startswith(f"ok: process {daemon.pid}")) == (0, True)
    assert ", 0 projects, 0 sessions, 0 under way" in ended.out


def test_one_project_is_not_many(machine: Machine) -> None:
    machine.start()
    with Client(machine.socket) as client:
        client.dispatch(step("before_tool"), root=str(machine.folder))
    assert ", 1 project, 1 session, 0 under way" in machine.run("serve", "--status").out


def test_serve_says_so_if_none_runs(machine: Machine) -> None:
    ended = machine.run("serve", "--status")
    assert (ended.code, "Traceback" in ended.err, "fairlead serve" in ended.err) == (1, False, True)


def test_serve_stops_the_running_one(machine: Machine) -> None:
    daemon = machine.start()
    assert (machine.run("serve", "--stop").code, daemon.wait()) == (0, 0)


def test_serve_has_nothing_to_stop_if_none_runs(machine: Machine) -> None:
    ended = machine.run("serve", "--stop")
    assert (ended.code, ended.err) == (0, "There is no daemon.\n")


def test_serve_does_not_say_that_there_is_none_where_it_could_not_look(machine: Machine) -> None:
    machine.start()
    machine.socket.parent.chmod(0o777)
    ended = machine.run("serve", "--stop")
    machine.socket.parent.chmod(0o700)
    assert (ended.code, "no daemon" in ended.err) == (1, False)


def test_serve_in_the_background_returns_once_it_answers(machine: Machine) -> None:
    ended = machine.run("serve", "--background", "--json")
    assert (ended.code, ended.json["status"]) == (0, "ok")


@pytest.mark.parametrize("options", [("--tcp", "0"), ("--idle", "1h"), ("--managed",)])
def test_serve_in_the_background_does_not_forget_its_options(machine: Machine, options: tuple[str, ...]) -> None:
    """It says that it cannot, rather than doing something else."""
    assert machine.run("serve", "--background", *options).code != 0


@pytest.mark.parametrize("options", [("--tcp", "70000"), ("--tcp", "-1"), ("--tcp", "x"), ("--idle", "soon")])
def test_serve_refuses_what_makes_no_sense(machine: Machine, options: tuple[str, ...]) -> None:
    ended = machine.run("serve", *options)
    assert (ended.code in (1, 2), "Traceback" in ended.err) == (True, False)


def test_serve_says_which_port_is_taken(machine: Machine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = machine.run("serve", "--tcp", str(taken.getsockname()[1]))
    assert (ended.code, "cannot be used" in ended.err, machine.socket.exists()) == (1, True, False)


def test_serve_refuses_a_socket_with_too_long_a_path(machine: Machine) -> None:
    state = machine.folder / ("x" * 100)
    ended = machine.run("serve", env=machine.env | {"FAIRLEAD_STATE_DIR": str(state)})
    assert (ended.code, "too long for a socket" in ended.err) == (1, True)


@pytest.mark.parametrize("which", ["state", "state/run"])
def test_serve_refuses_a_folder_that_others_may_write_to(machine: Machine, which: str) -> None:
    folder = machine.state if which == "state" else machine.state / "run"
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o777)
    ended = machine.run("serve")
    assert (ended.code, f"others may write to {folder}" in ended.err) == (1, True)


def test_serve_says_what_is_wrong_with_the_users_file(machine: Machine) -> None:
    machine.user("[[hook]]\nnam = 1\n")
    ended = machine.run("serve")
    assert (ended.code != 0, "fairlead.toml:2" in ended.err, "Traceback" in ended.err) == (True, True, False)


def test_serve_is_ended_by_its_terminal(machine: Machine) -> None:
    """Ctrl-C."""
    process = subprocess.Popen([*CLI, "serve"], env=machine.env, stdout=subprocess.PIPE, text=True)
    machine.processes.append(process)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("Answering on ")
    process.send_signal(signal.SIGINT)
    assert process.wait(DEADLINE) == 0


def test_a_client_of_the_old_daemon_is_not_cut_off_by_a_restart(machine: Machine) -> None:
    first = machine.start()
    with Client(machine.socket, start=False) as client:
        client.dispatch(step("turn_start"))
        first.end()
        machine.start()
        assert client.dispatch(step("turn_start")).control == "proceed"


NAMING = {
    "a header": 'url = "http://127.0.0.1:9/x"\nheaders = { X = { env = "T", prefix = "Bearer " } }\n',
    "a secret": 'url = "http://127.0.0.1:9/x"\nsecret = { env = "T" }\n',
    "a variable of a process": 'shell = "exit 2"\nenv = { X = { env = "T" } }\n',
}


@pytest.mark.parametrize("naming", NAMING)
def test_a_daemon_starts_without_the_variables_that_hooks_name(machine: Machine, naming: str) -> None:
    """It keeps none of them, set or not: each request brings its own."""
    machine.user('[[hook]]\nname = "x"\non = "before_tool"\n' + NAMING[naming])
    daemon = machine.start(env=machine.env | {"T": "t" * 40})
    with daemon.client() as client:
        decision = client.dispatch(step("before_tool"), root=str(machine.home), env={"T": "t" * 40})
    assert (decision.control, decision.hook) == ("deny", "x")
    asked = {"step": {"event": "before_tool", "tool": "bash", "args": {}}, "root": str(machine.home)}
    assert daemon.ask("POST", "/v1/dispatch", asked).status == 428


def test_a_daemon_does_not_start_with_another_mistake_beside_a_variable(machine: Machine) -> None:
    machine.user('[[hook]]\nname = "x"\non = "before_tool"\nphrase = 1\n' + NAMING["a header"])
    ended = machine.run("serve")
    assert (ended.code != 0, "phrase" in ended.err + ended.out) == (True, True)
