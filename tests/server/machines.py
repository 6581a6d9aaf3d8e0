"""A user's machine of its own, real daemons on it, and ways to talk to them byte by byte."""

from __future__ import annotations

import http.client
import json
import os
import pty
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import pytest

from fairlead import agent_process
from fairlead.client import Client
from fairlead.config.document import Document
from fairlead.config.survey import survey
from fairlead.config.trust import Trust

CLI = [sys.executable, "-m", "fairlead.cli"]
DEADLINE = 30.0
# What would change what is asked or who is asking, in the environment of these tests.
UNSET = ("CLAUDECODE", "CODEX_SANDBOX", "CURSOR_AGENT", "GEMINI_CLI", "OPENCODE", "QWEN_CODE", "FAIRLEAD_AGENT",
         "FAIRLEAD_TOKEN", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "NO_COLOR", "PYTHONDONTWRITEBYTECODE")  # fmt: skip
# Makes its stdin the controlling terminal, and becomes the command.
AT_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


class Ended(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str = ""

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Answer(NamedTuple):
    """What came back over HTTP."""

    status: int
    body: Any
    headers: dict[str, str]


class Daemon:
    """A daemon that runs."""

    def __init__(self, process: subprocess.Popen[str], state: Path, addresses: list[str]) -> None:
        self.process = process
        self.pid = process.pid
        self.socket = state / "run" / "v1.sock"
        self.url = next((one for one in addresses if one.startswith("http:")), "")
        self.port = int(self.url.rpartition(":")[2] or 0)

    def client(self, **options: Any) -> Client:
        return Client(self.socket, start=False, **options)

    def health(self) -> dict[str, Any]:
        with self.client() as client:
            return client.health()

    def ask(self, method: str, path: str, body: Any = None, *, tcp: bool = False, **options: Any) -> Answer:
        """One request, over the unix socket or over TCP."""
        return ask(("127.0.0.1", self.port) if tcp else str(self.socket), method, path, body, **options)

    def connect(self, *, tcp: bool = False) -> socket.socket:
        return connect(("127.0.0.1", self.port) if tcp else str(self.socket))

    def end(self) -> int:
        """Stop it, and give its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        try:
            return self.process.wait(DEADLINE)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            if self.process.stdout is not None:
                self.process.stdout.close()


def connect(address: Any) -> socket.socket:
    made = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET, socket.SOCK_STREAM)
    made.settimeout(DEADLINE)
    try:
        made.connect(address)
    except OSError:
        made.close()
        raise
    return made


class _Connection(http.client.HTTPConnection):
    def __init__(self, address: Any) -> None:
        super().__init__("localhost", timeout=DEADLINE)
        self._address = address

    def connect(self) -> None:
        self.sock = connect(self._address)


def ask(address: Any, method: str, path: str, body: Any = None, *, token: str | None = None, **headers: str) -> Answer:
    """One request over a connection of its own. `Sec_Fetch_Site="..."` is a header."""
    connection = _Connection(address)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    if token is not None:
        given["Authorization"] = f"Bearer {token}"
    content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    try:
        connection.request(method, path, content, given)
        answer = connection.getresponse()
        said = answer.read()
        return Answer(
            answer.status, json.loads(said) if said else None, {k.lower(): v for k, v in answer.headers.items()}
        )
    finally:
        connection.close()


def exchange(connection: socket.socket, data: bytes) -> bytes:
    """Send all data, and return what the daemon sends until it hangs up."""

    def send() -> None:
        try:
            connection.sendall(data)
        except OSError:
            pass  # the daemon may hang up early

    sending = threading.Thread(target=send)
    sending.start()
    try:
        return receive_all(connection)
    finally:
        connection.close()
        sending.join()


def receive_all(connection: socket.socket) -> bytes:
    """What comes in until the other side hangs up."""
    received = b""
    try:
        while part := connection.recv(65536):
            received += part
    except ConnectionError:
        pass
    return received


def questions_of(client: Client, session: str, *, every: bool = False) -> list[dict[str, Any]]:
    """The open questions of a session, or all of its questions."""
    return [question for question in client.approvals(every=every) if question["session"] == session]


class Terminal:
    """A command at a terminal: what is seen there, and what is typed."""

    def __init__(self, process: subprocess.Popen[Any], master: int) -> None:
        self.process = process
        self.seen = ""
        self._master = master

    def until(self, text: str) -> str:
        """Wait until a text is seen after what was seen before, and return all up to it."""
        until, found = monotonic() + DEADLINE, b""
        while text not in (shown := found.decode(errors="replace").replace("\r\n", "\n")):
            if not select.select([self._master], [], [], max(0, until - monotonic()))[0]:
                raise AssertionError(f"{text!r} was never seen, but {shown!r}")
            try:
                found += os.read(self._master, 65536)
            except OSError:
                raise AssertionError(f"{text!r} was never seen, but {shown!r}") from None
        self.seen += shown
        return shown

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def end(self) -> int:
        """Wait for its end, and give its exit code."""
        with suppress(AssertionError):
            self.until("\0 nothing says this")
        return self.process.wait(DEADLINE)


class Machine:
    """A home, a configuration, a state folder with a short path, and projects."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fl", dir="/tmp"))
        self.state = self.folder / "s"
        self.home = self.folder / "home"
        self.outside = self.folder / "bin"
        self.user_file = self.folder / "config/fairlead/fairlead.toml"
        for made in (self.state, self.home, self.outside, self.user_file.parent):
            made.mkdir(parents=True, mode=0o700)
        self.daemons: list[Daemon] = []
        self.processes: list[subprocess.Popen[Any]] = []

    @property
    def env(self) -> dict[str, str]:
        """What processes on this machine get."""
        kept = {name: value for name, value in os.environ.items() if name not in UNSET}
        return kept | {
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "FAIRLEAD_STATE_DIR": str(self.state),
            "TERM": "xterm",
        }

    @property
    def socket(self) -> Path:
        return self.state / "run" / "v1.sock"

    def live_here(self, patch: pytest.MonkeyPatch) -> None:
        """Make this process one of this machine."""
        for name in UNSET:
            patch.delenv(name, raising=False)
        for name in ("HOME", "XDG_CONFIG_HOME", "FAIRLEAD_STATE_DIR", "TERM"):
            patch.setenv(name, self.env[name])

    # --- files

    def user(self, text: str) -> None:
        self.user_file.write_text(text)
        self.user_file.chmod(0o644)

    def project(self, name: str, text: str, *, trusted: bool = True, **files: str) -> Path:
        """A project with a fairlead.toml; `check_py="..."` is a file check.py of it."""
        root = self.folder / name
        root.mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            path = root / file.replace("_", ".")
            path.write_text(content)
            path.chmod(0o755)
        (root / "fairlead.toml").write_text(text)
        if trusted:
            self.trust(root)
        return root

    def trust(self, root: Path) -> None:
        """Trust a project as it now is."""
        seen = survey(Document(root / "fairlead.toml"), root)
        Trust(self.state).pin(seen, unpinned=True)

    def program(self, name: str, text: str) -> Path:
        """A program outside of every project."""
        path = self.outside / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    # --- processes

    def start(self, *options: str, argv: list[str] | None = None, **more: Any) -> Daemon:
        """`fairlead serve`, once it answers."""
        command = argv or [*CLI, "serve", *(options or ("--tcp", "0"))]
        with (self.folder / "daemon.err").open("ab") as errors:
            process = subprocess.Popen(
                command, env=more.pop("env", self.env), stdout=subprocess.PIPE, stderr=errors, text=True, **more
            )
        addresses = []
        assert process.stdout is not None
        for _ in range(2 if "--tcp" in command or argv else 1):
            line = process.stdout.readline()
            if not line:
                process.stdout.close()
                raise AssertionError(f"no daemon: {process.wait()} {(self.folder / 'daemon.err').read_text()}")
            addresses.append(line.rpartition(" ")[2].strip())
        daemon = Daemon(process, self.state, addresses)
        self.daemons.append(daemon)
        return daemon

    def start_with(self, setup: str, settings: str = "tcp=0, idle=None", **options: Any) -> Daemon:
        """A daemon in whose process something is set up first: `setup` is code."""
        script = (
            f"{setup}\n"
            "from fairlead.server import app, approvals, daemon, protocol, projects, service, sessions\n"
            "from fairlead.cli.serve import _ready\n"
            f"daemon.serve(daemon.DaemonSettings({settings}), _ready)\n"
        )
        return self.start(argv=[sys.executable, "-c", script], **options)

    def run(self, *words: str, **options: Any) -> Ended:
        """Run `fairlead`, with no terminal."""
        ended = subprocess.run(
            [*CLI, *words], env=options.pop("env", self.env), input="", capture_output=True, text=True,
            timeout=3 * DEADLINE, cwd=self.home, **options,  # a doctor may wait for a launcher that waits
        )  # fmt: skip
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def at_terminal(self, *words: str, argv: list[str] | None = None, **options: Any) -> Ended:
        """Run `fairlead` at a terminal. All that is seen there is in `out`."""
        master, slave = pty.openpty()
        full = [sys.executable, "-ISc", AT_TERMINAL, *(argv or CLI), *words]
        process = subprocess.Popen(
            full, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, env=options.pop("env", self.env),
            cwd=self.home, **options,
        )  # fmt: skip
        self.processes.append(process)
        os.close(slave)
        seen, until = b"", monotonic() + DEADLINE
        try:
            while select.select([master], [], [], max(0, until - monotonic()))[0]:
                try:
                    found = os.read(master, 65536)
                except OSError:  # how Linux says that the other end is closed
                    break
                if not found:
                    break
                seen += found
            return Ended(process.wait(DEADLINE), seen.decode().replace("\r\n", "\n"))
        finally:
            os.close(master)

    @contextmanager
    def terminal(self, *words: str, **options: Any) -> Iterator[Terminal]:
        """`fairlead` at a terminal, to type at. It is ended with the block."""
        master, slave = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-ISc", AT_TERMINAL, *CLI, *words], stdin=slave, stdout=slave, stderr=slave,
            start_new_session=True, env=options.pop("env", self.env), cwd=self.home, **options,
        )  # fmt: skip
        self.processes.append(process)
        os.close(slave)
        try:
            yield Terminal(process, master)
        finally:
            process.kill()
            process.wait()
            os.close(master)

    def spawn(self, code: str, *words: str, **options: Any) -> subprocess.Popen[str]:
        """A process of this machine that runs some Python."""
        process = subprocess.Popen(
            [sys.executable, "-c", code, *words], env=options.pop("env", self.env), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, **options,
        )  # fmt: skip
        self.processes.append(process)
        return process

    def running(self) -> dict[str, Any] | None:
        """How the daemon of this machine is, if there is one."""
        try:
            connect(str(self.socket)).close()
            return dict(ask(str(self.socket), "GET", "/v1/health").body)
        except (OSError, http.client.HTTPException):
            return None

    def _left(self) -> list[int]:
        """Daemons that clients have started here, and those that are only just starting."""
        found, mark = [], f"FAIRLEAD_STATE_DIR={self.state}".encode()
        told = f'"state":{json.dumps(str(self.state))}'.encode()  # of those that the launcher has started
        for folder in Path("/proc").iterdir():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
                if b"fairlead.server" not in words:
                    continue
                if any(told in word for word in words) or mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:
                pass  # it is no process, or has ended
        return found

    def remove(self) -> None:
        for daemon in self.daemons:
            daemon.end()
        for pid in self._left():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda pid=pid: not alive(pid))
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)


def alive(pid: int) -> bool:
    """Whether a process runs. One that has ended and was not asked about does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(true: Callable[[], Any]) -> Any:
    """Wait for something that raises no event when it happens."""
    until = monotonic() + DEADLINE
    while not (found := true()):
        if monotonic() > until:
            raise AssertionError("it never came about")
        select.select([], [], [], 0.01)
    return found


@contextmanager
def a_machine() -> Iterator[Machine]:
    made = Machine()
    with pytest.MonkeyPatch.context() as patch:
        made.live_here(patch)
        try:
            yield made
        finally:
            made.remove()


def watched() -> bool:
    """Whether an agent runs these tests, and so everything that they start."""
    return agent_process.agent_around({}, os.getpid()) is not None
