"""A client turns whatever goes wrong into a decision: nothing is allowed by accident."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from machines import Daemon, Machine, connect, wait_until

from fairlead import EVENTS
from fairlead.client import AsyncClient, Client, DaemonError
from fairlead.samples import every_step, step

VETOED = {name: event.veto for name, event in EVENTS.items() if event.veto in ("abort", "deny", "stop")}


@contextmanager
def answering(path: Path, answer: bytes | None) -> Iterator[None]:
    """A server in the daemon's place that gives every caller the same answer; None gives no answer at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen(64)
    held: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                caller, _ = listening.accept()
            except OSError:
                return
            held.append(caller)
            if answer is not None:
                caller.recv(65536)
                caller.sendall(answer)
                caller.shutdown(socket.SHUT_RDWR)

    serving = threading.Thread(target=serve)
    serving.start()
    try:
        yield
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        serving.join()
        listening.close()
        for caller in held:
            caller.close()


def reply(status: int, content: bytes) -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(content), content)


DEEP = b'{"step":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
WRONG: dict[str, bytes | None] = {
    "it hangs up": b"",
    "garbage": b"\x00\x01garbage\r\n\r\n",
    "no JSON": reply(200, b"hello"),
    "bytes that are no text": reply(200, b"\xff\xfe"),
    "JSON that is no decision": reply(200, b"{}"),
    "a list": reply(200, b"[]"),
    "deep JSON": reply(200, DEEP),
    "an unknown control": reply(200, b'{"step": {"event": "turn_start"}, "control": "maybe"}'),
    "a decision that is half": reply(200, b'{"step": {"event": "before_tool"}, "control": "allow", "said": [{}]}'),
    "runs that make no sense": reply(200, b'{"step": {"event": "turn_start"}, "control": "proceed", "runs": [1]}'),
    "said that makes no sense": reply(200, b'{"step": {"event": "turn_start"}, "control": "proceed", "said": 7}'),
    "half an answer": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
    "400": reply(400, b'{"error": "bad_request", "message": "no"}'),
    "401": reply(401, b'{"error": "no_token", "message": "no"}'),
    "403": reply(403, b'{"error": "wrong_user", "message": "no"}'),
    "422": reply(422, b'{"error": "bad_configuration", "message": "no"}'),
    "428, again and again": reply(428, b'{"error": "needs_variables", "variables": ["A"]}'),
    "428, and nonsense": reply(428, b'{"error": "needs_variables", "variables": 7}'),
    "500": reply(500, b'{"error": "broken", "message": "no"}'),
    "503": reply(503, b'{"error": "overloaded", "message": "no"}'),
    "503 without JSON": reply(503, b"Service Unavailable"),
    "a redirect": b"HTTP/1.1 302 X\r\nLocation: http://evil.example/\r\nContent-Length: 0\r\n\r\n",
    "no answer in time": None,
}


@pytest.mark.parametrize("name", WRONG)
def test_whatever_is_answered_wrongly_is_a_failure(machine: Machine, name: str) -> None:
    with (
        answering(machine.socket, WRONG[name]),
        Client(machine.socket, timeout=0.2 if WRONG[name] is None else 5) as client,
    ):
        decision = client.dispatch(step("before_tool"))
    assert (decision.control, decision.cause, decision.hook) == ("deny", "failure", "fairlead.daemon")


@pytest.mark.parametrize("name", WRONG)
async def test_whatever_is_answered_wrongly_is_a_failure_with_a_loop_too(machine: Machine, name: str) -> None:
    with answering(machine.socket, WRONG[name]):
        async with AsyncClient(machine.socket, timeout=0.2 if WRONG[name] is None else 5) as client:
            decision = await client.dispatch(step("before_tool"))
    assert (decision.control, decision.cause, decision.hook) == ("deny", "failure", "fairlead.daemon")


# httpcore leaves a socket that could not connect to the collector.
no_daemon = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def lone_client(machine: Machine) -> Iterator[Client]:
    """A client, and no daemon."""
    machine.socket.parent.mkdir(mode=0o700)
    with Client(machine.socket, start=False) as client:
        yield client


@no_daemon
def test_without_a_daemon_every_event_gets_its_veto(lone_client: Client) -> None:
    decisions = {one.event: lone_client.dispatch(one) for one in every_step()}
    assert {name: decision.control for name, decision in decisions.items() if decision.control != "proceed"} == VETOED


@no_daemon
def test_without_a_daemon_an_open_policy_goes_on_with_a_warning(lone_client: Client) -> None:
    decisions = [lone_client.dispatch(one, on_failure="open") for one in every_step()]
    assert {(decision.control, len(decision.warnings)) for decision in decisions} == {("proceed", 1)}


@no_daemon
def test_without_a_daemon_an_abort_policy_aborts(lone_client: Client) -> None:
    decisions = [lone_client.dispatch(one, on_failure="abort") for one in every_step()]
    assert {(decision.control, decision.cause) for decision in decisions} == {("abort", "failure")}


@no_daemon
def test_without_a_daemon_the_reason_says_what_to_do(lone_client: Client) -> None:
    assert "fairlead serve" in (lone_client.dispatch(step("before_tool")).reason or "")


@no_daemon
def test_what_a_dead_daemon_left_behind_is_a_failure(machine: Machine) -> None:
    machine.socket.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(machine.socket))
    with Client(machine.socket, start=False) as client:
        assert client.dispatch(step("before_tool")).cause == "failure"


@pytest.mark.parametrize("command", ["\ud800", "half \udfff a character"])
def test_a_step_that_cannot_be_sent_is_a_failure(daemon: Daemon, command: str) -> None:
    with daemon.client() as client:
        decision = client.dispatch(step("before_tool", args={"command": command}))
    assert (decision.control, decision.cause) == ("deny", "failure")


async def test_a_step_that_cannot_be_sent_is_a_failure_with_a_loop_too(daemon: Daemon) -> None:
    async with AsyncClient(daemon.socket, start=False) as client:
        decision = await client.dispatch(step("before_tool", args={"command": "\ud800"}))
    assert (decision.control, decision.cause) == ("deny", "failure")


def test_a_step_that_goes_too_deep_is_a_failure(daemon: Daemon) -> None:
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]
    with daemon.client() as client:
        assert client.dispatch(step("before_request", state=deep)).cause == "failure"


def test_a_daemon_that_cannot_be_started_is_a_failure(machine: Machine) -> None:
    (machine.state / "daemon.log").mkdir()
    with Client() as client:
        decision = client.dispatch(step("before_tool"))
    assert (decision.control, decision.cause) == ("deny", "failure")


@no_daemon
def test_a_daemon_that_does_not_come_up_is_a_failure_that_names_its_log(machine: Machine) -> None:
    machine.user("this is no TOML")
    with Client() as client:
        decision = client.dispatch(step("before_tool"))
    assert "daemon.log" in (decision.reason or "")


def test_a_url_that_is_none_is_a_failure() -> None:
    with Client(url="ftp://127.0.0.1", token="t") as client:
        assert client.dispatch(step("before_tool")).cause == "failure"


def test_a_client_over_tcp_gets_decisions_with_its_token(shared: Machine, daemon: Daemon) -> None:
    from fairlead.server.tokens import Tokens

    token = Tokens(shared.state).add("mine", ["dispatch"])
    with Client(url=daemon.url, token=token) as client:
        assert client.dispatch(step("before_tool")).control == "proceed"


def test_a_client_over_tcp_without_a_token_is_refused(daemon: Daemon) -> None:
    with Client(url=daemon.url) as client:
        decision = client.dispatch(step("before_tool"))
    assert (decision.control, decision.cause) == ("deny", "failure")


def test_a_token_is_taken_from_the_environment(
    shared: Machine, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairlead.server.tokens import Tokens

    monkeypatch.setenv("FAIRLEAD_TOKEN", Tokens(shared.state).add("from the environment", ["dispatch"]))
    with Client(url=daemon.url) as client:
        assert client.dispatch(step("before_tool")).control == "proceed"


# --- who listens --------------------------------------------------------------------------------

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
IMPOSTOR = """
import os, socket, sys
folder = os.open(os.path.dirname(sys.argv[1]), os.O_RDONLY)
os.fchown(folder, 65534, 65534)
os.chmod(os.path.dirname(os.path.dirname(os.path.dirname(sys.argv[1]))), 0o755)
os.chmod(os.path.dirname(os.path.dirname(sys.argv[1])), 0o755)
os.setgid(65534); os.setuid(65534)
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o666)
listening.listen()
print("listening", flush=True)
caller, _ = listening.accept()
print(repr(caller.recv(10)), flush=True)
"""


@pytest.fixture
def impostor(machine: Machine) -> Callable[[], str]:
    """Another user who listens on our socket, in a folder that we then take back. Gives what it heard."""
    machine.socket.parent.mkdir(mode=0o700)
    process = machine.spawn(IMPOSTOR, str(machine.socket))
    assert process.stdout is not None
    assert process.stdout.readline() == "listening\n"
    os.chown(machine.socket.parent, 0, 0)
    for folder in (machine.state, machine.folder):
        folder.chmod(0o700)
    return lambda: process.stdout.readline().strip()  # type: ignore[union-attr]


@needs_root
@pytest.mark.filterwarnings("error")
def test_nothing_is_said_to_another_user(machine: Machine, impostor: Callable[[], str]) -> None:
    with Client(machine.socket) as client:
        client.dispatch(step("before_tool"))
    assert impostor() == "b''"


@needs_root
def test_another_user_on_our_socket_is_a_failure(machine: Machine, impostor: Callable[[], str]) -> None:
    with Client(machine.socket) as client:
        decision = client.dispatch(step("before_tool"))
    assert "listened on by user 65534" in (decision.reason or "")


@needs_root
async def test_another_user_on_our_socket_is_a_failure_with_a_loop_too(
    machine: Machine, impostor: Callable[[], str]
) -> None:
    async with AsyncClient(machine.socket) as client:
        decision = await client.dispatch(step("before_tool"))
    assert "listened on by user 65534" in (decision.reason or "")


@needs_root
def test_a_folder_of_another_user_is_not_trusted(machine: Machine) -> None:
    machine.socket.parent.mkdir(mode=0o700)
    os.chown(machine.socket.parent, 65534, 65534)
    with Client(machine.socket) as client, pytest.raises(DaemonError, match="belongs to user 65534"):
        client.health()


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_may_write_to_is_not_trusted(machine: Machine, mode: int) -> None:
    machine.socket.parent.mkdir(mode=0o700)
    machine.socket.parent.chmod(mode)
    with Client(machine.socket) as client, pytest.raises(DaemonError, match="chmod 700"):
        client.health()


def test_a_folder_that_is_a_link_is_not_trusted(machine: Machine) -> None:
    machine.socket.parent.symlink_to(machine.home)
    with Client(machine.socket) as client, pytest.raises(DaemonError, match="not a folder"):
        client.health()


# --- a daemon that goes away --------------------------------------------------------------------


@no_daemon
def test_a_daemon_that_is_killed_while_it_judges_is_a_failure(machine: Machine) -> None:
    fifo = machine.folder / "fifo"
    os.mkfifo(fifo)
    machine.program("wait", f"#!/bin/sh\necho here > {fifo}\nread line\nexec sleep 1000\n")
    machine.user(f'[[hook]]\nname = "slow"\non = "before_tool"\ncommand = ["{machine.outside}/wait"]\n')
    daemon = machine.start()
    found: list[Any] = []

    def dispatch() -> None:
        with daemon.client() as client:
            found.append(client.dispatch(step("before_tool")))

    asking = threading.Thread(target=dispatch)
    asking.start()
    assert fifo.read_text() == "here\n"
    daemon.process.kill()
    asking.join()
    assert (found[0].control, found[0].cause) == ("deny", "failure")


def test_a_client_outlives_the_daemon(machine: Machine) -> None:
    """Its connection is gone, and there is another daemon."""
    first = machine.start()
    with Client(machine.socket, start=False) as client:
        before = client.health()["pid"]
        first.end()
        second = machine.start()
        assert (before, client.health()["pid"]) == (first.pid, second.pid)


@no_daemon
def test_a_client_starts_the_daemon_that_it_needs(machine: Machine) -> None:
    with Client() as client:
        assert client.dispatch(step("before_tool")).control == "proceed"


def test_a_client_that_started_a_daemon_leaves_nothing_of_it_to_wait_for(machine: Machine) -> None:
    """No warning of a child that still runs, in a program that is strict about them."""
    code = "from fairlead.client import Client\nimport gc\nwith Client() as c: c.health()\ngc.collect()"
    process = machine.spawn(code, env=machine.env | {"PYTHONWARNINGS": "always::ResourceWarning"})
    _, said = process.communicate(timeout=30)
    assert "still running" not in said


@no_daemon
def test_the_next_client_starts_another_daemon_when_one_was_killed(machine: Machine) -> None:
    daemon = machine.start()
    daemon.process.kill()
    daemon.wait()
    with Client() as client:
        assert client.health()["pid"] != daemon.pid


@no_daemon
def test_a_daemon_that_drains_is_followed_by_another(machine: Machine) -> None:
    """The first still has something to do; who comes meanwhile waits for the second."""
    fifo, go = machine.folder / "fifo", machine.folder / "go"
    os.mkfifo(fifo)
    os.mkfifo(go)
    machine.program("wait", f"#!/bin/sh\necho here > {fifo}\nread line < {go}\n")
    root = machine.project("p", f'[[hook]]\nname = "slow"\non = "before_tool"\ncommand = ["{machine.outside}/wait"]\n')
    daemon = machine.start()

    def judge() -> None:
        with daemon.client() as client:
            client.dispatch(step("before_tool"), root=str(root))

    slow = threading.Thread(target=judge)
    slow.start()
    fifo.read_text()
    with daemon.client() as client:
        client.stop()
        wait_until(lambda: client.health()["status"] == "draining")
    found: list[Any] = []

    def ask() -> None:
        with Client() as another:
            found.append(another.dispatch(step("turn_start")).control)

    asking = threading.Thread(target=ask)
    asking.start()
    go.write_text("go\n")
    slow.join()
    asking.join()
    assert found == ["proceed"]


def test_connecting_says_nothing_by_itself(daemon: Daemon) -> None:
    connect(str(daemon.socket)).close()
    assert daemon.health()["status"] == "ok"
