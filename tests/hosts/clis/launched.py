"""The launcher as an agent CLI starts it, on a machine of its own, and daemons that answer badly."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import pytest
from machines import UNSET, Machine, alive, wait_until
from played import payload_of

from fairlead.folders import from_environment
from fairlead.hosts.clis import launcher
from fairlead.hosts.clis.client import CLI_VARIABLES
from fairlead.hosts.clis.mapping import host_named

HANDS_OFF = """
[[hook]]
name = "hands-off"
on = "before_tool"
match = { kind = "shell" }
phase = "gate"
rule = 'target.command.contains("forbidden")'
deny = "That is not yours to touch."
"""
THE_REST = """
[[hook]]
name = "the-rest"
on = ["before_input", "before_permission"]
rule = "false"
deny = "Never said."
"""
FAILS_OPEN = HANDS_OFF + 'on_failure = "open"\n'
REASON = "That is not yours to touch."


class LauncherResult(NamedTuple):
    """How the launcher ended, what it wrote, and how long it took."""

    code: int
    out: str
    err: str
    took: float

    @property
    def reply(self) -> Any:
        _, _, told = self.out.rpartition("\t")
        return json.loads(told) if told.strip() else {}

    @property
    def passes(self) -> bool:
        return self.code == 0 and self.out == ""

    @property
    def refuses(self) -> bool:
        return self.code == 2 and bool(self.err.strip())


class Launched:
    """A machine with the launcher on it, and what an agent CLI does with that."""

    def __init__(self, machine: Machine, **env: str) -> None:
        self.machine = machine
        self.project = machine.folder / "p"
        self.project.mkdir(exist_ok=True)
        self.more = env
        self.launcher = self.write()

    @property
    def state(self) -> Path:
        return self.machine.state

    @property
    def env(self) -> dict[str, str]:
        return {name: value for name, value in self.machine.env.items() if name not in CLI_VARIABLES} | self.more

    def write(self, interpreter: Path | None = None, *, daemon: bool = True) -> Path:
        """Write the launcher, for an interpreter that a test may do something to, with or without a daemon."""
        with pytest.MonkeyPatch.context() as patch:
            for name in UNSET:
                patch.delenv(name, raising=False)
            for name in ("HOME", "XDG_CONFIG_HOME", "FAIRLEAD_STATE_DIR"):
                patch.setenv(name, self.env[name]) if name in self.env else patch.delenv(name, raising=False)
            if interpreter is not None:
                patch.setattr(launcher, "base_interpreter", lambda: str(interpreter))
            return launcher.write_launcher(from_environment(daemon=daemon))

    def alone(self) -> Launched:
        """The same, without a daemon."""
        self.write(daemon=False)
        return self

    def policy(self, text: str, folder: Path | None = None) -> None:
        """What holds in a folder: the user's own, or a project's that is trusted."""
        if folder is None:
            self.machine.user(text)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "fairlead.toml").write_text(text)
            self.machine.trust(folder)

    def start(self, host: str, event: str, seconds: float = 60, cwd: Path | None = None, **env: str) -> Any:
        ours = host_named(host).events[event].event
        return subprocess.Popen(
            ["/bin/sh", str(self.launcher), f"{seconds:g}", ours, host, event], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd or self.project, env=self.env | env,
        )  # fmt: skip

    def call(
        self,
        host: str = "claude_code",
        event: str = "PreToolUse",
        payload: dict[str, Any] | bytes | None = None,
        **how: Any,
    ) -> LauncherResult:
        """One moment, from the CLI's side."""
        said = payload if isinstance(payload, bytes) else json.dumps(payload or payload_of(host, event)).encode()
        began = monotonic()
        process = self.start(host, event, **how)
        try:
            out, err = process.communicate(said, timeout=90)
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()
        ended = LauncherResult(process.returncode, out.decode(), err.decode(), monotonic() - began)
        assert_well_behaved(ended)
        return ended

    def shell(self, command: str, **how: Any) -> LauncherResult:
        """Claude Code is about to run a command."""
        session = how.pop("session_id", "a-session")
        about = {"session_id": session, "cwd": str(self.project)}
        payload = {**about, "tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "1"}
        return self.call("claude_code", "PreToolUse", payload, **how)

    def learn(self) -> None:
        """Have a daemon write down what holds here, and end."""
        self.shell("ls")
        self.stop()

    def stop(self, how: int = signal.SIGTERM) -> None:
        """End the daemons. Their sockets are closed by then: a process that is no longer listed may still have one."""
        for pid in self.machine._left():
            with suppress(ProcessLookupError):
                os.kill(pid, how)
            wait_until(lambda pid=pid: not alive(pid))
        wait_until(lambda: not self.machine._left())

    @property
    def daemons(self) -> list[int]:
        return self.machine._left()

    def fallback(self) -> dict[str, dict[str, str]]:
        return dict(json.loads((self.state / "fallback.json").read_text()))


def assert_well_behaved(ended: LauncherResult) -> None:
    """Whatever happens, an agent CLI is told in a way that it understands, and by nothing else."""
    assert ended.code in (0, 2), ended
    assert "Traceback" not in ended.out + ended.err, ended
    assert ended.code == 0 or ended.err.strip(), ended
    if ended.out:
        lines = ended.out.rstrip("\n").split("\n")
        assert len(lines) == 1, ended
        json.loads(lines[0].removeprefix("HOOK_CONTROL\t"))


def copy_of(machine: Machine, state: Path) -> None:
    """Give a machine the state of another, but not its socket nor its daemon."""
    shutil.rmtree(machine.state)
    shutil.copytree(state, machine.state, ignore=shutil.ignore_patterns("run", "bin", "*.db*"))
    machine.state.chmod(0o700)


# --- daemons that answer badly ------------------------------------------------------------------

Answer = Callable[[socket.socket], None]


@contextmanager
def answering(folder: Path, answer: Answer) -> Iterator[list[int]]:
    """A process that listens in the daemon's place, and does this. It yields the callers' process ids."""
    run = folder / "run"
    run.mkdir(mode=0o700, exist_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(run / "v1.sock"))
    listening.listen(16)
    callers: list[int] = []
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            callers.append(struct.unpack("3i", told)[0])
            with connection, suppress(OSError):
                answer(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield callers
    finally:
        over.set()
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(10)


def request(connection: socket.socket) -> bytes:
    """What the client says, to the end."""
    received = b""
    while b"\r\n\r\n" not in received:
        if not (part := connection.recv(65536)):
            return b""  # it has hung up
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
    while len(body) < length:
        body += connection.recv(65536)
    return body


def http(body: bytes, status: str = "200 OK", length: int | None = None) -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(body) if length is None else length}\r\n\r\n".encode() + body
