"""No request keeps another waiting for more than a tenth of a second, however large it is and whatever its shape."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from machines import Daemon, Machine, a_machine, connect
from shapes import REFUSED, SERVED, WRONG

MOST = 0.1
"""Seconds that a small request may take longer than one to a daemon that has nothing else to do."""
ATTEMPTS = 3
"""The machine may be busy with something else, which looks just the same."""
SECONDS = 1.0
RULE = """
[[hook]]
name = "no-force"
on = "before_tool"
match = { kind = "shell" }
phase = "gate"
rule = 'target.command.contains("--force")'
deny = "no"
"""
SHAPES = {
    f"{kind}: {name}": shape
    for kind, shapes in (("served", SERVED), ("refused", REFUSED), ("wrong", WRONG))
    for name, shape in shapes.items()
}
LOAD = """
import os, socket, sys
body = open(sys.argv[2], "rb").read()
lines = [f"POST {sys.argv[3]} HTTP/1.1", "Host: localhost", "Connection: close", f"Content-Length: {len(body)}", "", ""]
while True:
    for path in sys.argv[4:]:
        os.utime(path)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(sys.argv[1])
        try:
            connection.sendall("\\r\\n".join(lines).encode() + body)
            status = connection.recv(12)
            while connection.recv(1 << 20):
                pass
        except ConnectionError:
            status = b"HTTP/1.1 413"
    print(status[-3:].decode(), flush=True)
"""
"""Sends a request again and again, in a process of its own."""


@pytest.fixture(scope="module")
def root(shared: Machine) -> Path:
    return shared.project("p", RULE)


class Small:
    """A caller whose requests are small, on one connection."""

    def __init__(self, daemon: Daemon, root: Path) -> None:
        step = {"event": "before_tool", "tool": "bash", "args": {"command": "git status"}, "session_id": "s"}
        body = json.dumps({"step": step, "root": str(root)}).encode()
        self._said = b"POST /v1/dispatch HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (
            len(body),
            body,
        )
        self._socket = str(daemon.socket)
        self._connection = connect(self._socket)

    def close(self) -> None:
        self._connection.close()

    def connect(self) -> None:
        """Connect anew: a daemon hangs up on a caller that asks nothing for a while."""
        self.close()
        self._connection = connect(self._socket)

    def ask(self) -> float:
        """How long one request took."""
        began = time.perf_counter()
        self._connection.sendall(self._said)
        head, _, body = self._connection.recv(65536).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = int(head.lower().partition(b"content-length: ")[2].split()[0])
        while len(body) < length:
            body += self._connection.recv(65536)
        return time.perf_counter() - began


class Clock:
    """Small requests to the daemon, and by turns to another one that has nothing else to do."""

    def __init__(self, busy: Small, idle: Small) -> None:
        self._busy, self._idle = busy, idle
        self._seen: list[str] = []

    def within_reason(self, seconds: float = SECONDS) -> bool:
        """Whether the slowest request of so many seconds took as long as it may."""
        for small in (self._busy, self._idle):
            small.connect()
        until, busy, idle = time.perf_counter() + seconds, 0.0, 0.0
        while time.perf_counter() < until:
            busy, idle = max(busy, self._busy.ask()), max(idle, self._idle.ask())
            time.sleep(0.002)  # as one who has something else to do, too
        self._seen.append(f"{busy * 1e3:.0f} ms (an idle daemon: {idle * 1e3:.0f} ms)")
        return busy < idle + MOST

    def fail(self) -> None:
        seen = self._seen[-ATTEMPTS:]
        pytest.fail(f"the slowest request took {', '.join(seen)}")


@pytest.fixture(scope="module")
def clock(daemon: Daemon, root: Path) -> Iterator[Clock]:
    with a_machine() as other, ExitStack() as stack:
        idle = Small(other.start(), other.project("p", RULE))
        busy = Small(daemon, root)
        for small in (idle, busy):
            stack.callback(small.close)
        made = Clock(busy, idle)
        made.within_reason()  # until everything is loaded
        yield made


@contextmanager
def load(machine: Machine, daemon: Daemon, path: str, body: bytes, *touched: str) -> Iterator[str]:
    """Another caller sends this meanwhile, and touches a file each time. Gives how it was answered at first."""
    file = machine.folder / "body"
    file.write_bytes(body)
    process = machine.spawn(LOAD, str(daemon.socket), str(file), path, *touched)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("name", SHAPES)
def test_a_large_request_delays_a_small_one_by_no_more_than_a_tenth_of_a_second(
    shared: Machine, daemon: Daemon, root: Path, clock: Clock, name: str
) -> None:
    path, body = SHAPES[name](str(root))
    expected = {"served": "200", "refused": "413", "wrong": "400"}[name.partition(":")[0]]
    for _ in range(ATTEMPTS):
        with load(shared, daemon, path, body) as status:
            assert status == expected
            if clock.within_reason():
                return
    clock.fail()


def test_a_large_configuration_delays_a_small_request_by_no_more_than_a_tenth_of_a_second(
    shared: Machine, daemon: Daemon, clock: Clock
) -> None:
    """It is read again each time, because it has changed."""
    large = shared.project("large", f"numbers = [{'1,' * 400_000}]", trusted=False)
    body = json.dumps({"step": {"event": "turn_start"}, "root": str(large)}).encode()
    for _ in range(ATTEMPTS):
        with load(shared, daemon, "/v1/dispatch", body, str(large / "fairlead.toml")):
            if clock.within_reason(3 * SECONDS):
                return
    clock.fail()


def test_ten_large_requests_at_once_delay_a_small_one_by_no_more_than_one_does(
    shared: Machine, daemon: Daemon, root: Path, clock: Clock
) -> None:
    names = ("messages", "numbers", "a command of slashes", "what a CLI's tool gave", "one wide character")
    for _ in range(ATTEMPTS):
        with ExitStack() as stack:
            for name in names * 2:
                stack.enter_context(load(shared, daemon, *SERVED[name](str(root))))
            if clock.within_reason():
                return
    clock.fail()


ASKS = """
[[hook]]
name = "may"
on = "before_tool"
match = { kind = "write" }
phase = "gate"
rule = "true"
ask = "may it?"
"""


def test_a_large_step_that_a_human_is_asked_about_delays_a_small_one_by_no_more_than_a_tenth_of_a_second(
    shared: Machine, daemon: Daemon, clock: Clock
) -> None:
    root = shared.project("asks", ASKS)
    content = "".join(f"line {n} of a file, with a word or two\n" for n in range(20_000))
    step = {"event": "before_tool", "tool": "Write", "args": {"file_path": "/tmp/x", "content": content}}
    body = json.dumps({"step": step, "root": str(root), "deadline": 0}).encode()
    for _ in range(ATTEMPTS):
        with load(shared, daemon, "/v1/dispatch", body) as status:
            assert status == "200"
            if clock.within_reason():
                return
    clock.fail()
