"""The command line, run three ways: in this process, as a process of its own, and at a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import pytest

from fairlead import agent_process
from fairlead.cli import main
from fairlead.config import layers

COMMAND = [sys.executable, "-m", "fairlead.cli"]
# Makes its stdin the controlling terminal, so that Ctrl-C means something, and becomes the command.
AT_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
# What would change what is shown or who is asking, in the environment of these tests.
UNSET = (
    "CLAUDECODE", "CODEX_SANDBOX", "CURSOR_AGENT", "GEMINI_CLI", "OPENCODE", "QWEN_CODE", "FAIRLEAD_AGENT",
    "NO_COLOR", "PYTHONUNBUFFERED", "PYTHONIOENCODING", "XDG_STATE_HOME", "COLUMNS",
)  # fmt: skip
DEADLINE = 20

_real_ancestors = agent_process._ancestors


class Ended(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def all(self) -> str:
        return self.out + self.err


class Machine:
    """The files of a user, of a project and of the system."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.state = folder / "state"
        self.user_file = folder / "config/fairlead/fairlead.toml"
        self.system_file = folder / "etc/fairlead.toml"
        self.project = folder / "project"
        self.project_file = self.project / "fairlead.toml"
        for made in (self.home, self.project):
            made.mkdir()

    def system(self, *hooks: str) -> Path:
        return _write(self.system_file, hooks)

    def user(self, *hooks: str) -> Path:
        return _write(self.user_file, hooks)

    def hooks(self, *hooks: str) -> Path:
        """The project's."""
        return _write(self.project_file, hooks)

    def file(self, name: str, text: str | bytes, mode: int = 0o644) -> Path:
        path = self.project / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        return path


def _write(path: Path, texts: tuple[str, ...]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(texts))
    path.chmod(0o644)
    return path


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine of its own for every test, with the project as the current folder and no agent around."""
    made = Machine(tmp_path)
    for name, value in {
        "HOME": made.home,
        "XDG_CONFIG_HOME": tmp_path / "config",
        "FAIRLEAD_STATE_DIR": made.state,
        "TERM": "xterm",
    }.items():
        monkeypatch.setenv(name, str(value))
    for name in UNSET:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(layers, "SYSTEM_FILE", made.system_file)
    monkeypatch.setattr(agent_process, "_ancestors", lambda pid: iter(()))
    monkeypatch.chdir(made.project)
    return made


Run = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process."""

    def run(*words: str) -> Ended:
        capsys.readouterr()
        try:
            code = main(words)
        except SystemExit as ended:
            code = ended.code
        return Ended(code, *capsys.readouterr())

    return run


@pytest.fixture
def spawn() -> Run:
    """Run a command as a process of its own."""

    def spawn(*words: str | bytes, input: bytes = b"", **options: Any) -> Ended:
        ended = subprocess.run([*COMMAND, *words], input=input, capture_output=True, timeout=DEADLINE, **options)
        return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    return spawn


@pytest.fixture
def unwatched() -> None:
    """Skips where an agent runs these tests, and so everything that they start."""
    for words in _real_ancestors(os.getppid()):
        names = {os.path.basename(word).removesuffix(".js") for word in words[:2]}
        if names & agent_process.AGENTS:
            pytest.skip("an agent runs these tests, and it cannot trust hooks")


@pytest.fixture
def terminal() -> Iterator[Run]:
    """Run a command at a terminal, and answer what it asks. All that is seen there is in `out`."""
    started: list[subprocess.Popen[bytes]] = []

    def terminal(*words: str, answer: str = "", after: str = "[y/N] ", argv: list[str] = COMMAND) -> Ended:
        master, slave = pty.openpty()
        full = [sys.executable, "-ISc", AT_TERMINAL, *argv, *words]
        process = subprocess.Popen(full, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
        started.append(process)
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
                if answer and after.encode() in seen:
                    os.write(master, answer.encode())
                    answer = ""
            return Ended(process.wait(DEADLINE), seen.decode().replace("\r\n", "\n"), "")
        finally:
            os.close(master)

    yield terminal
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def unsafe(text: str) -> list[str]:
    """Characters that could take over the reader's terminal."""
    return sorted({c for c in text if not c.isprintable() and c != "\n"})


@pytest.fixture
def assert_safe() -> Callable[[Ended], None]:
    def assert_safe(ended: Ended) -> None:
        assert unsafe(ended.all) == []
        assert "Traceback" not in ended.all

    return assert_safe


@pytest.fixture
def digest(run: Run) -> Callable[[], str]:
    """The digest of the project as it is."""
    return lambda: str(run("trust", "--json").json["digest"])


@pytest.fixture
def trust(run: Run, digest: Callable[[], str]) -> Callable[..., None]:
    """Trust the project as it is."""

    def trust(*options: str) -> None:
        assert run("trust", "--expect", digest(), *options).code == 0

    return trust
