"""An approval is used up once the CLI has the answer. After a kill before that, the next identical call finds it.

A CLI starts the launcher, the launcher starts the client, the client asks the daemon, and the daemon waits for a human.
Then something dies.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from launched import Launched, LauncherResult, answering, assert_well_behaved, http, request
from machines import Machine, a_machine, alive, wait_until
from played import payload_of

from fairlead.journal.reading import Reader

ASKS = """
[[hook]]
name = "budget"
on = "before_tool"
rule = "true"
phase = "gate"
ask = "spend 5 EUR?"

[[hook]]
name = "ops"
on = "before_tool"
rule = "true"
phase = "gate"
ask = "delete it?"
"""
SILENT = "gemini"
"""A CLI that is told nothing where a call is allowed: its hook just ends with 0."""


class Calls(Launched):
    """A CLI whose calls are asked about, and the human who answers."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self.policy(ASKS)
        self.daemon = machine.start()
        self.client = self.daemon.client()

    @property
    def states(self) -> set[str]:
        return {one["state"] for one in self.client.approvals(every=True)}

    def begin(self, host: str = "claude_code", **how: Any) -> subprocess.Popen[bytes]:
        """A call, up to where the human is asked."""
        process = self.ask(host, **how)
        wait_until(lambda: len(self.client.approvals()) == 2)
        return process

    def ask(self, host: str = "claude_code", **how: Any) -> subprocess.Popen[bytes]:
        event = {"claude_code": "PreToolUse", SILENT: "BeforeTool"}[host]
        process = subprocess.Popen(
            ["/bin/sh", str(self.launcher), "30", "before_tool", host, event], cwd=self.project, env=self.env,
            start_new_session=True, stdin=subprocess.PIPE, stderr=subprocess.PIPE, **{"stdout": subprocess.PIPE} | how,
        )  # fmt: skip
        self.machine.processes.append(process)
        assert process.stdin is not None
        process.stdin.write(json.dumps(payload_of(host, event)).encode())
        process.stdin.close()
        process.stdin = None
        return process

    def approve(self) -> None:
        for one in self.client.approvals():
            self.client.answer(one["id"], True)

    def again(self, host: str = "claude_code") -> bool:
        """Whether the identical call is allowed, without a question to a human."""
        process = self.ask(host)
        wait_until(lambda: process.poll() is not None or self.client.approvals())
        if asked := self.client.approvals():
            for one in asked:
                self.client.answer(one["id"], False)
        out, err = process.communicate(timeout=30)
        ended = LauncherResult(int(process.returncode), out.decode(), err.decode(), 0)
        assert_well_behaved(ended)
        return not asked and "deny" not in ended.out

    def notes(self) -> list[str]:
        """What became of approvals, by the journal."""
        self.daemon.end()
        with Reader(self.state / "journal.db") as reader:
            about = [record.body for record in reader.records() if "approval" in record.body]
        return [one["note"] for one in about if one["note"] != "asked"]


@pytest.fixture
def here() -> Iterator[Calls]:
    with a_machine() as machine:
        made = Calls(machine)
        yield made
        made.client.close()


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def kill(*pids: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


# --- when nothing dies --------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["claude_code", SILENT])
def test_a_call_whose_cli_was_told_uses_the_approval_up(here: Calls, host: str) -> None:
    process = here.begin(host)
    here.approve()
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, b'"allow"' in out) == (0, host != SILENT)
    assert here.states == {"used"}  # by the time that the hook has ended, and not some time later
    assert not here.again(host)


def test_what_the_cli_is_told_has_no_trace_of_the_receipt(here: Calls) -> None:
    process = here.begin()
    here.approve()
    out, err = process.communicate(timeout=30)
    told = json.loads(out)["hookSpecificOutput"]
    assert (told["permissionDecision"], err) == ("allow", b"")
    assert told["permissionDecisionReason"] == "[budget] spend 5 EUR?\n[ops] delete it?"


def test_a_grant_lets_the_call_of_a_cli_run_until_it_is_revoked(here: Calls) -> None:
    process = here.begin()
    for one in here.client.approvals():
        here.client.answer(one["id"], True, grant={"scope": "session"})
    out, _ = process.communicate(timeout=30)
    assert b'"allow"' in out
    assert [here.again(), here.again()] == [True, True]
    here.client.revoke(here.client.grants()[0]["id"])
    assert not here.again()


# --- when a caller dies while the daemon waits ----------------------------------------------------


def test_a_launcher_that_is_killed_while_the_human_thinks_uses_nothing_up(here: Calls) -> None:
    process = here.begin()
    (client,) = children(process.pid)
    kill(process.pid)
    process.wait()
    here.approve()  # the client is still there, and so the daemon hands it out
    wait_until(lambda: not alive(client))
    wait_until(lambda: here.states == {"approved"})
    assert [here.again(), here.again()] == [True, False]
    assert here.notes() == ["approved"] * 2 + ["returned"] * 2 + ["denied"] * 2


@pytest.mark.parametrize("who", ["client", "both"])
def test_a_client_that_is_killed_while_the_human_thinks_uses_nothing_at_all(here: Calls, who: str) -> None:
    process = here.begin()
    kill(*reversed((*children(process.pid), *([process.pid] if who == "both" else []))))
    _, err = process.communicate(timeout=30)
    assert (process.returncode, b"refused" in err) == ((2, True) if who == "client" else (-signal.SIGKILL, False))
    wait_until(lambda: here.daemon.health()["in_flight"] == 0)  # which has noticed
    here.approve()
    assert here.states == {"approved"}
    assert [here.again(), here.again()] == [True, False]
    assert "returned" not in here.notes()


def test_a_launcher_that_is_killed_before_it_has_written_the_answer_uses_nothing_up(here: Calls) -> None:
    process = here.begin()
    (client,) = children(process.pid)
    os.kill(process.pid, signal.SIGSTOP)
    here.approve()
    wait_until(lambda: not alive(client))  # it has given the launcher the answer
    kill(process.pid)
    assert process.communicate(timeout=30)[0] == b""
    wait_until(lambda: here.states == {"approved"})
    assert [here.again(), here.again()] == [True, False]


@pytest.mark.parametrize("host", ["claude_code", SILENT])
def test_a_cli_that_is_gone_when_the_answer_comes_has_not_been_told(here: Calls, host: str) -> None:
    process = here.begin(host)
    assert process.stdout is not None
    process.stdout.close()
    here.approve()
    process.wait(30)
    wait_until(lambda: here.states == {"approved"})
    assert [here.again(host), here.again(host)] == [True, False]


def test_a_cli_that_is_gone_and_whose_launcher_ignores_that_has_not_been_told(here: Calls) -> None:
    """Where SIGPIPE is ignored, as in many programs, the shell goes on after it."""
    process = here.begin(restore_signals=False)
    assert process.stdout is not None
    process.stdout.close()
    here.approve()
    assert process.wait(30) == 2
    wait_until(lambda: here.states == {"approved"})


def test_an_approval_returns_once_and_not_for_ever(here: Calls) -> None:
    process = here.begin()
    kill(process.pid)
    process.wait()
    here.approve()
    for state in ("approved", "used"):
        wait_until(lambda state=state: here.states == {state})
        if state == "approved":
            with gone() as stdout:
                here.ask(stdout=stdout).wait(30)
    assert not here.again()
    assert here.notes()[:6] == ["approved"] * 2 + ["returned"] * 2 + ["unacknowledged"] * 2


@contextmanager
def gone() -> Iterator[int]:
    """The stdout of a hook whose CLI reads nothing any more."""
    read, write = os.pipe()
    os.close(read)
    yield write
    os.close(write)


def test_a_launcher_that_is_killed_before_it_acknowledges_costs_one_more_call_at_most(here: Calls) -> None:
    """The CLI has the answer, but no process can know that."""
    python = here.machine.program("python", f'#!/bin/sh\n[ $# != 9 ] || exec sleep 60\nexec {sys.executable} "$@"\n')
    usual = here.launcher.read_bytes()
    here.write(python)
    process = here.begin()
    here.approve()
    (acknowledging,) = wait_until(lambda: [pid for pid in children(process.pid) if sleeps(pid)])
    kill(process.pid, acknowledging)
    assert b'"allow"' in process.communicate(timeout=30)[0]
    wait_until(lambda: here.states == {"approved"})
    here.launcher.write_bytes(usual)
    assert [here.again(), here.again()] == [True, False]


def sleeps(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep\0")
    return False


# --- when the acknowledgement goes wrong ----------------------------------------------------------

RECEIPT = "0123456789abcdef" * 2


def told(text: str) -> bytes:
    """An answer for which an approval was used, as the daemon writes it."""
    return http(json.dumps({"answer": text, "acknowledge": RECEIPT}, separators=(",", ":")).encode())


def refuses(caller: socket.socket) -> None:
    request(caller)
    caller.sendall(http(b'{"error":"too_late","message":"no"}', "409 Conflict"))


def hangs(caller: socket.socket) -> None:
    request(caller)
    with suppress(OSError):
        caller.settimeout(20)
        caller.recv(1)


def breaks_off(caller: socket.socket) -> None:
    caller.recv(1)


def garbage(caller: socket.socket) -> None:
    request(caller)
    caller.sendall(os.urandom(5000))


@pytest.fixture
def fake() -> Iterator[Launched]:
    """A launcher whose daemon is played by the test."""
    with a_machine() as machine:
        yield Launched(machine)


@pytest.mark.parametrize("second", [refuses, hangs, breaks_off, garbage])
@pytest.mark.parametrize(("answer", "code"), [('0:{"a":1}:end', 0), ("0::end", 0), ("2:no:end", 2)])
def test_the_answer_is_the_same_whatever_becomes_of_the_acknowledgement(
    fake: Launched, second: Callable[[socket.socket], None], answer: str, code: int
) -> None:
    received: list[bytes] = []

    def serve(caller: socket.socket) -> None:
        if received:
            received.append(b"")
            second(caller)
            return
        received.append(request(caller))
        caller.sendall(told(answer))

    with answering(fake.state, serve):
        ended = fake.call()
    text = answer[2:-4]
    assert (ended.code, len(received)) == (code, 2)
    assert (ended.out, ended.err) == ((text and text + "\n", "") if code == 0 else ("", text + "\n"))
    assert ended.took < 5


def test_the_receipt_is_what_is_acknowledged(fake: Launched) -> None:
    received: list[Any] = []

    def serve(caller: socket.socket) -> None:
        received.append(json.loads(request(caller)))
        caller.sendall(told("0::end") if len(received) == 1 else http(b"{}"))

    with answering(fake.state, serve):
        fake.call()
    assert received[1:] == [{"id": RECEIPT}]


@pytest.mark.parametrize("text", ["ack:x:0::end", "a:ack:b:end", '","acknowledge":"x"', ":end", "ack:"])
def test_what_looks_like_a_receipt_in_an_answer_is_none(fake: Launched, text: str) -> None:
    received: list[bytes] = []

    def serve(caller: socket.socket) -> None:
        received.append(request(caller))
        caller.sendall(http(json.dumps({"answer": f"2:{text}:end"}, separators=(",", ":")).encode()))

    with answering(fake.state, serve):
        ended = fake.call()
    assert (ended.code, ended.err, len(received)) == (2, text + "\n", 1)


def test_an_answer_without_an_approval_starts_no_second_client(fake: Launched) -> None:
    received: list[bytes] = []

    def serve(caller: socket.socket) -> None:
        received.append(request(caller))
        caller.sendall(http(b'{"answer":"0::end"}'))

    with answering(fake.state, serve) as callers:
        fake.call()
    assert (len(received), len(callers)) == (1, 1)


def test_without_a_daemon_nothing_is_asked_and_nothing_used_up(here: Calls) -> None:
    process = here.begin()
    kill(*children(process.pid), process.pid)
    process.communicate(timeout=30)
    wait_until(lambda: here.daemon.health()["in_flight"] == 0)
    here.approve()
    here.client.close()
    here.daemon.end()
    assert "without a daemon fairlead can ask none" in here.alone().call().out
    here.daemon = here.machine.start()
    here.client = here.daemon.client()
    assert here.states == {"approved"}
