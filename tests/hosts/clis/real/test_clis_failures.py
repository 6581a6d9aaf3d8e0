"""How every agent CLI fails, turned on its head: whatever breaks, the hook's own policy says what that means.

In all of these CLIs a before-tool hook that times out lets the tool run, and most let it run when a hook breaks in any
other way. With fairlead between, a hook that fails closed denies, and one that fails open does not, whether it is the
hook that breaks, the daemon, the client, the interpreter, the disk or the configuration.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from drivers import WANTED, Driver, a_driver, binary
from fetch import REQUIRED

from fairlead.hosts.clis.install.settings import LAUNCHER_GONE
from fairlead.hosts.clis.probe.model import Model, Say
from fairlead.hosts.clis.probe.program import ProgramResult

pytestmark = pytest.mark.clis

SECONDS = "12"
"""What the CLI gives a hook. The launcher has less, and the client less than that: 7.6."""
GOOD = "cat >/dev/null\necho '{}'\n"
DISK = 4 << 20


def policy(driver: Driver, on_failure: str, more: str = "") -> str:
    """One hook that judges every call, by a script that the cases change."""
    command = ["/bin/sh", str(driver.home / "judge")]
    return (
        f'{more}\n[[hook]]\nname = "judge"\non = "before_tool"\ncommand = {json.dumps(command)}\ntimeout = 3\n'
        f'on_failure = "{on_failure}"\n'
    )


# --- a driver for each CLI and policy ---------------------------------------------------------------


@contextmanager
def placed(name: str, on_failure: str) -> Iterator[Driver]:
    """A CLI with one hook of this policy, in which a tool has run already: so it is known what holds there."""
    if not binary(name).exists():
        message = f"{name} is not installed: `make e2e-clis` fetches it"
        (pytest.fail if name in REQUIRED and os.environ.get("CI") else pytest.skip)(message)
    folder = Path(tempfile.mkdtemp(prefix="driver-"))
    try:
        with a_driver(name, folder) as driver, small_disk(driver.state):
            (driver.home / "judge").write_text(GOOD)
            driver.policy(policy(driver, on_failure))
            driver.install("--timeout", SECONDS)
            start_daemon(driver)
            _, ran = touch(driver, "good")
            assert exists(driver, "good"), ran.text
            yield driver
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A disk of its own for a folder, where this user may have one."""
    folder.mkdir(mode=0o700, parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=700", "tmpfs", str(folder)]
    mounted = shutil.which("mount") and subprocess.run(mount, capture_output=True).returncode == 0
    try:
        yield
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture(scope="module", params=WANTED)
def closed(request: pytest.FixtureRequest) -> Iterator[Driver]:
    with placed(request.param, "closed") as driver:
        yield driver


@pytest.fixture(scope="module", params=WANTED)
def opened(request: pytest.FixtureRequest) -> Iterator[Driver]:
    with placed(request.param, "open") as driver:
        yield driver


def touch(driver: Driver, name: str) -> tuple[Model, ProgramResult]:
    return driver.run(driver.program.shell(f"touch {name}"), Say("FINE"))


def exists(driver: Driver, name: str) -> bool:
    return (driver.project / name).exists()


def refusals(model: Model) -> str:
    """The refusals that the model received."""
    return "\n".join(
        found for request in model.requests for found in re.findall(r"\[\w+\] refused.{,600}", request.text)
    )


# --- breaking a hook --------------------------------------------------------------------------------


def judge(text: str) -> Callable[[Driver, str], AbstractContextManager[None]]:
    """The hook does something else."""

    @contextmanager
    def breaking(driver: Driver, on_failure: str) -> Iterator[None]:
        (driver.home / "judge").write_text(text)
        try:
            yield
        finally:
            (driver.home / "judge").write_text(GOOD)

    return breaking


# --- breaking the daemon --------------------------------------------------------------------------


def socket_of(driver: Driver) -> Path:
    return driver.state / "run/v1.sock"


def listens(driver: Driver) -> bool:
    with socket.socket(socket.AF_UNIX) as asking, suppress(OSError):
        asking.connect(str(socket_of(driver)))
        return True
    return False


def start_daemon(driver: Driver) -> None:
    ran = driver.fairlead("serve", "--background")
    assert ran.returncode == 0, ran.stderr


def kill_daemon(driver: Driver) -> None:
    """The socket stays, and no process listens on it."""
    found = driver.daemon
    if found is not None:
        os.kill(found, signal.SIGKILL)
        while listens(driver):
            time.sleep(0.01)


@contextmanager
def no_daemon(driver: Driver) -> Iterator[None]:
    """There is none, until a call starts one. That it could not is forgotten afterwards."""
    kill_daemon(driver)
    try:
        yield
    finally:
        (driver.state / "run/start.lock").unlink(missing_ok=True)


def another_daemon(
    at_the_tool: Callable[[socket.socket], None],
) -> Callable[[Driver, str], AbstractContextManager[None]]:
    """A fake daemon that answers nothing, and calls `at_the_tool` at a tool call."""

    def answer(driver: Driver, asking: socket.socket) -> None:
        with asking, suppress(OSError):
            request = body_of(asking)
            if driver.host.events[request["event"]].event == "before_tool":
                at_the_tool(asking)
            else:
                asking.sendall(response('{"answer":"0::end"}'))

    def serve(driver: Driver, listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                asking, _ = listening.accept()
                threading.Thread(target=answer, args=(driver, asking), daemon=True).start()

    @contextmanager
    def breaking(driver: Driver, on_failure: str) -> Iterator[None]:
        with no_daemon(driver), socket.socket(socket.AF_UNIX) as listening:
            socket_of(driver).unlink(missing_ok=True)
            listening.bind(str(socket_of(driver)))
            listening.listen(100)
            threading.Thread(target=serve, args=(driver, listening), daemon=True).start()
            try:
                yield
            finally:
                listening.shutdown(socket.SHUT_RDWR)
                socket_of(driver).unlink()

    return breaking


def body_of(asking: socket.socket) -> dict[str, Any]:
    got = b""
    while part := asking.recv(1 << 16):
        got += part
        head, _, body = got.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        if length and len(body) >= int(length[1]):
            found: dict[str, Any] = json.loads(body)
            return found
    raise OSError("it has gone")


def response(text: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\ncontent-length: {len(text)}\r\n\r\n{text}".encode()


def never(asking: socket.socket) -> None:
    asking.recv(1)


def half_an_answer(asking: socket.socket) -> None:
    asking.sendall(response('{"answer":"0::end"}')[:-12])


# --- breaking the launcher ------------------------------------------------------------------------


def launcher(
    interpreter: Callable[[Driver], Path] | None = None, python: Callable[[Driver], Path] | None = None
) -> Callable[[Driver, str], AbstractContextManager[None]]:
    """The launcher runs something else for the client, or the client for the daemon."""

    @contextmanager
    def breaking(driver: Driver, on_failure: str) -> Iterator[None]:
        path = driver.state / "bin/fairlead-hook"
        good = text = path.read_text()
        if interpreter is not None:
            text = swapped(text, r"(?<=answer=\$\()\S+(?= -I -S )", interpreter(driver))
        if python is not None:
            text = swapped(text, r'(?<="\$folders" )\S+(?= "\$seconds")', python(driver))
        with no_daemon(driver) if python else nullcontext():
            replace(path, text)
            try:
                yield
            finally:
                replace(path, good)

    return breaking


def swapped(text: str, pattern: str, path: Path) -> str:
    new, times = re.subn(pattern, lambda _: shlex.quote(str(path)), text)
    assert times == 1, text
    return new


def replace(path: Path, text: str) -> None:
    """In one move, since it may be running."""
    new = path.with_name("new")
    new.write_text(text)
    new.chmod(0o755)
    new.replace(path)


def program(text: str, mode: int = 0o755) -> Callable[[Driver], Path]:
    def made(driver: Driver) -> Path:
        path = driver.home / "program"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(mode)
        return path

    return made


def gone(driver: Driver) -> Path:
    return driver.home / "no/such/python"


@contextmanager
def launcher_to_lose(driver: Driver) -> Iterator[Path]:
    """The launcher, which is there again afterwards."""
    path = driver.state / "bin/fairlead-hook"
    good = path.read_text()
    try:
        yield path
    finally:
        replace(path, good)


# --- breaking the disk and the configuration --------------------------------------------------------


@contextmanager
def full_disk(driver: Driver, on_failure: str) -> Iterator[None]:
    """There is no room for what must be written down, and the journal has the policy of the hook."""
    with journaling(driver, on_failure, on_failure), filled(driver):
        yield


@contextmanager
def journaling(driver: Driver, journal: str, on_failure: str) -> Iterator[None]:
    """The journal has a policy: closed, it commits each decision before it is acted on."""
    durability = "full" if journal == "closed" else "normal"
    with no_daemon(driver):
        driver.policy(policy(driver, on_failure, f'[journal]\ndurability = "{durability}"\n'))
        start_daemon(driver)
        try:
            yield
        finally:
            kill_daemon(driver)
            driver.policy(policy(driver, on_failure))


@contextmanager
def filled(driver: Driver) -> Iterator[None]:
    if not os.path.ismount(driver.state):
        pytest.skip("nothing can be mounted here")
    ballast = fill(driver.state)
    try:
        yield
    finally:
        ballast.unlink()


def fill(disk: Path) -> Path:
    """Fill a disk to the last byte."""
    ballast = disk / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            with suppress(OSError):
                while True:
                    file.write(b"x" * size)
    return ballast


@contextmanager
def unreadable(driver: Driver, on_failure: str) -> Iterator[None]:
    """A folder is in the place of the configuration, which root cannot read either."""
    path = driver.home / ".config/fairlead/fairlead.toml"
    with no_daemon(driver):
        path.unlink()
        path.mkdir()
        try:
            yield
        finally:
            path.rmdir()
            driver.policy(policy(driver, on_failure))


# --- what can break ---------------------------------------------------------------------------------


class Case(NamedTuple):
    breaking: Callable[[Driver, str], AbstractContextManager[None]]
    why: str
    """The message that the model receives when the call is refused."""
    by: str = "fairlead"
    """Who refuses: the launcher, for want of an answer, or the daemon in the name of the hook."""


CASES = {
    "hook_error": Case(judge("cat >/dev/null; exit 7"), "exit", "judge"),
    "hook_timeout": Case(judge("sleep 60"), "timeout", "judge"),
    "hook_garbage": Case(judge("cat >/dev/null; echo '{\"contr'"), "malformed", "judge"),
    "daemon_dead": Case(launcher(python=program("exit 1")), "could not be run without a daemon (it ended with 1)"),
    "daemon_slow": Case(another_daemon(never), "there was no answer in time"),
    "daemon_killed_in_mid_decision": Case(judge("kill -9 $PPID; sleep 1"), "the middle of its answer"),
    "daemon_killed_in_mid_answer": Case(another_daemon(half_an_answer), "the middle of its answer"),
    "interpreter_deleted": Case(launcher(gone), "its interpreter cannot be run (exit 127)"),
    "interpreter_not_executable": Case(launcher(program("", 0o644)), "its interpreter cannot be run (exit 126)"),
    "client_killed": Case(launcher(program("kill -9 $$")), "its client was killed (exit 137)"),
    "disk_full": Case(full_disk, "journal.db cannot be written"),
    "config_unreadable": Case(unreadable, "fairlead.toml"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_hook_that_fails_closed_denies(closed: Driver, case: str) -> None:
    breaking, why, by = CASES[case]
    with breaking(closed, "closed"):
        model, ran = touch(closed, case)
    assert not exists(closed, case), ran.text
    if closed.host.name == "cline" and by == "fairlead":
        assert len(model.requests) == 1, (
            "its run was to end there"
        )  # all that can be done there without the call's name
    else:
        assert re.search(rf"\[{by}\] refused.*{re.escape(why)}", refusals(model)), refusals(model) + ran.text


def test_a_launcher_that_is_deleted_denies(closed: Driver) -> None:
    """Most refuse the prompt already, so that the model gets no request."""
    with launcher_to_lose(closed) as path:
        path.unlink()
        _, ran = touch(closed, "launcher_deleted")
    assert not exists(closed, "launcher_deleted"), ran.text
    _, ran = touch(closed, "launcher_back")
    assert exists(closed, "launcher_back"), ran.text


def test_a_launcher_that_is_deleted_in_mid_run_denies_the_next_call(closed: Driver) -> None:
    """By the hook itself, which lets the first call pass: no agent could."""
    shell = closed.program.shell
    with launcher_to_lose(closed) as path, judge(f"{GOOD}rm -f {path}\n")(closed, "closed"):
        model, ran = closed.run(shell("touch before_it_went"), shell("touch after_it_went"), Say("FINE"))
    # Copilot asks once more for the same call, for its permission, and is refused there already.
    assert exists(closed, "before_it_went") == (closed.host.name != "copilot"), ran.text
    assert not exists(closed, "after_it_went"), ran.text
    if closed.host.name in ("codex", "droid"):  # the others refuse in words of their own, or end the run
        assert LAUNCHER_GONE in refusals(model), refusals(model) + ran.text


def test_no_record_says_that_it_fails_open_if_the_launcher_is_deleted(opened: Driver) -> None:
    with launcher_to_lose(opened) as path:
        path.unlink()
        _, ran = touch(opened, "launcher_deleted")
    assert not exists(opened, "launcher_deleted"), ran.text


@pytest.mark.parametrize("case", CASES)
def test_a_hook_that_fails_open_lets_the_tool_run(opened: Driver, case: str) -> None:
    with CASES[case].breaking(opened, "open"):
        _, ran = touch(opened, case)
    assert exists(opened, case), ran.text


@pytest.mark.parametrize("opened", [name for name in REQUIRED if name in WANTED], indirect=True)
def test_a_journal_that_fails_closed_denies_though_the_hook_fails_open(opened: Driver) -> None:
    with journaling(opened, "closed", "open"):
        touch(opened, "written_down")
        with filled(opened):
            _, ran = touch(opened, "not_written_down")
    assert exists(opened, "written_down")
    assert not exists(opened, "not_written_down"), ran.text
