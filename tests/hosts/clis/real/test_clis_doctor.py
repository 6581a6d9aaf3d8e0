"""`fairlead doctor` with the real agent CLIs: what it says of hooks is what they do, and it leaves nothing behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from drivers import WANTED, Driver, a_driver, binary
from fetch import REQUIRED

from fairlead.folders import home_of_user
from fairlead.hosts.clis.install.settings import settings_file, settings_of

pytestmark = pytest.mark.clis

SWITCHES: dict[str, tuple[str, str]] = {
    "claude_code": ("project/.claude/settings.local.json", '{"disableAllHooks": true}'),
    "codex": ("home/.codex/config.toml", "\n[features]\nhooks = false\n"),
    "gemini": ("project/.gemini/settings.json", '{"hooksConfig": {"enabled": false}}'),
    "qwen": ("project/.qwen/settings.json", '{"disableAllHooks": true}'),
    "copilot": ("project/.github/copilot/settings.json", '{"disableAllHooks": true}'),
    "droid": ("project/.factory/settings.json", '{"hooks": {"hooksDisabled": true}}'),
}
"""What turns hooks off, in a file that they are not in. Where the file is there, it is added to it."""


class Examined(NamedTuple):
    """What the doctor says, and what it has left behind."""

    code: int
    report: dict[str, Any]
    changed: dict[str, object]
    """Files of the home, the project and the temporary folder that are not as they were."""
    left: list[str]
    """Processes that were not there before."""

    @property
    def text(self) -> str:
        return "\n".join(f"{found['level']}: {found['what']}" for found in self.report["findings"])


def examine(driver: Driver) -> Examined:
    """Have a look at the CLI of a driver, which is on PATH."""
    folder = driver.home.parent
    for name in ("bin", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    beside = binary(driver.host.name).parent
    for name in (driver.host.program, "node"):
        with suppress(FileExistsError):
            if (beside / name).exists():
                (folder / "bin" / name).symlink_to(beside / name)
    before = files(folder)
    path = f"{folder}/bin:{os.environ['PATH']}"
    ran = driver.fairlead("doctor", driver.host.name, "--json", PATH=path, TMPDIR=f"{folder}/tmp")
    assert ran.stdout.startswith("["), ran.stdout + ran.stderr
    after = files(folder)
    changed = {name: after.get(name) for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    return Examined(ran.returncode, json.loads(ran.stdout)[0], changed, left_in(folder))


def files(folder: Path) -> dict[str, tuple[object, ...]]:
    """All that is there, byte for byte and to the nanosecond."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else None)
        for path in folder.rglob("*")
    }


def left_in(folder: Path) -> list[str]:
    """The processes that still run for a folder after some time."""
    until = time.monotonic() + 5
    while (found := list(processes_in(folder))) and time.monotonic() < until:
        time.sleep(0.1)
    return found


def processes_in(folder: Path) -> Iterator[str]:
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if str(folder).encode() in (process / "environ").read_bytes():
                yield (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()


# --- hooks that hold --------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=WANTED)
def installed(request: pytest.FixtureRequest) -> Iterator[tuple[Driver, Examined]]:
    """A CLI with hooks, as the doctor sees it."""
    if not binary(request.param).exists():
        message = f"{request.param} is not installed: `make e2e-clis` fetches it"
        (pytest.fail if request.param in REQUIRED and os.environ.get("CI") else pytest.skip)(message)
    folder = Path(tempfile.mkdtemp(prefix="d-", dir="/tmp"))
    try:
        with a_driver(request.param, folder) as driver:
            driver.install()
            yield driver, examine(driver)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_after_install_hooks_are_seen_to_fire(installed: tuple[Driver, Examined]) -> None:
    _, seen = installed
    assert seen.report["fires"] is True, seen.text
    assert (seen.code, seen.report["well"], seen.report["installed"]) == (0, True, ["user"]), seen.text


def test_the_version_is_the_one_that_was_proven(installed: tuple[Driver, Examined]) -> None:
    driver, seen = installed
    assert seen.report["version"] == driver.host.proven, seen.text


def test_not_a_byte_is_changed_and_no_file_is_left(installed: tuple[Driver, Examined]) -> None:
    _, seen = installed
    changed = {name for name in seen.changed if not name.startswith("home/.local/state/fairlead") and name != "tmp"}
    assert changed == set()


def test_no_process_is_left(installed: tuple[Driver, Examined]) -> None:
    _, seen = installed
    assert seen.left == []


def test_nothing_of_it_is_in_the_journal_of_the_user(installed: tuple[Driver, Examined]) -> None:
    driver, _ = installed
    assert driver.records() == []


THEIRS = (
    'mount -t tmpfs tmpfs "$0/.local" && mkdir "$0/.local/state" && ln -s "$1" "$0/.local/state/" && shift && exec "$@"'
)
# Has what is installed in a driver where the user database says that the user's home is, in a namespace of its own.


def test_hooks_of_a_project_are_seen_to_fire(driver: Driver) -> None:
    home = home_of_user()
    able = subprocess.run(["unshare", "-m", "test", "-d", f"{home}/.local"], capture_output=True, check=False)
    if os.geteuid() != 0 or able.returncode:
        pytest.skip("only root can have another home for a while")
    driver.install("--scope", "project")
    driver.prefix = ["unshare", "-m", "/bin/sh", "-c", THEIRS, home, str(driver.state)]
    seen = examine(driver)
    assert (seen.report["fires"], seen.report["installed"]) == (True, ["project"]), seen.text


# --- hooks that do not ------------------------------------------------------------------------------


def test_hooks_that_are_turned_off_are_seen_not_to_hold(driver: Driver) -> None:
    if driver.host.name not in SWITCHES:
        pytest.skip("no setting of it turns hooks off")
    driver.install()
    name, text = SWITCHES[driver.host.name]
    path = driver.home.parent / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(text)
    seen = examine(driver)
    assert (seen.report["fires"], seen.code) == (False, 1), seen.text
    assert f"problem: {path}" in seen.text, "the reason must be shown, too"


def test_a_launcher_that_answers_nothing_is_seen_not_to_hold(driver: Driver) -> None:
    driver.install()
    (driver.state / "bin/fairlead-hook").write_text("#!/bin/sh\ncat >/dev/null\nexit 0\n")
    seen = examine(driver)
    assert (seen.report["fires"], seen.code) == (False, 1), seen.text


def test_a_comment_where_there_may_be_none_is_seen_to_turn_hooks_off(driver: Driver) -> None:
    if "comments" in settings_of(driver.host).allows:
        pytest.skip("its settings may have comments")
    driver.install()
    path = driver.home / settings_file(driver.host, "user", driver.project).relative_to(Path.home())
    path.write_text("// mine\n" + path.read_text())
    seen = examine(driver)
    assert (seen.report["fires"], seen.code) == (False, 1), seen.text
    assert f"problem: {path}:1:1: " in seen.text


def test_hooks_that_are_not_trusted_are_seen_not_to_hold(driver: Driver) -> None:
    if driver.host.name != "codex":
        pytest.skip("it needs no trust in hooks")
    driver.install()
    (driver.home / ".codex/config.toml").unlink()
    seen = examine(driver)
    assert (seen.report["fires"], seen.code) == (False, 1), seen.text
    assert "does not trust them" in seen.text


# --- what cannot be proven --------------------------------------------------------------------------


def test_hooks_that_cannot_answer_are_not_called_well(driver: Driver) -> None:
    driver.install()
    (driver.state / "bin/fairlead_hook.py").write_text("raise SystemExit(7)\n")
    shutil.rmtree(driver.state / "bin/__pycache__")
    seen = examine(driver)
    assert (seen.report["fires"], seen.code) == (None, 1), seen.text
    assert "gets no answer from fairlead: its client ended with 7" in seen.text


def test_a_program_that_fails_proves_nothing_and_that_is_said(driver: Driver) -> None:
    driver.install()
    program = driver.home.parent / "bin" / driver.host.program
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho it is broken >&2\nexit 1\n")
    program.chmod(0o755)
    seen = examine(driver)
    assert (seen.report["fires"], seen.report["version"]) == (None, None), seen.text
    assert "nothing is proven" in seen.text
    assert seen.left == []
