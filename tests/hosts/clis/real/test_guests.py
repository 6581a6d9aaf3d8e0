"""Programs that run the entries which fairlead installed for another CLI: their own code, without their models.

Cursor, VS Code and JetBrains: the code that reads the files and runs the hooks, driven from outside. The Copilot SDK,
which is the agent in several products: whole, against a scripted model.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from drivers import CLIS, REASON, Driver, a_driver

from fairlead.hosts.clis.probe.model import Model, Say, ScriptedCall

pytestmark = pytest.mark.clis
GUESTS = Path(__file__).parent / "guests"
AS_USER = 'mount --bind "$0" /etc/passwd && exec "$@"'
"""Entries of a project start the launcher in the home that the user database names."""


class Guest:
    """A program that has no hooks of its own, and the home in which fairlead is installed for others."""

    def __init__(self, name: str, driver: Driver) -> None:
        self.name, self.driver, self.place = name, driver, CLIS / name
        if not (self.place / "fetched").exists():
            pytest.skip(f"{name} is not here: `make e2e-guests` fetches it")
        own = self.place / "node_modules/node/bin/node"
        self.node = str(own if own.exists() else shutil.which("node"))
        users = driver.home / "passwd"
        users.write_text(f"root:x:0:0:root:{driver.home}:/bin/sh\n")
        driver.prefix = ["unshare", "-m", "/bin/sh", "-c", AS_USER, str(users)]
        if subprocess.run([*driver.prefix, "true"], capture_output=True, check=False).returncode:
            pytest.skip("no user database of its own can be had here")

    def install(self, *entries: str) -> None:
        """Install the entries of CLIs: `claude`, `copilot@project`."""
        for entry in entries:
            name, _, scope = entry.partition("@")
            ran = self.driver.fairlead("install", name, *(["--scope", scope] if scope else []))
            assert ran.returncode == 0, ran.stdout + ran.stderr

    def run(self, script: str, *words: str, call: Any = None, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.driver.prefix, self.node, str(GUESTS / script), str(self.place), str(self.driver.project), *words],
            input=json.dumps(call), env=self.driver.environ | variables, cwd=self.driver.project,
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip

    def result(self, script: str, *words: str, call: Any) -> dict[str, Any]:
        ran = self.run(script, *words, call=call)
        assert ran.returncode == 0, ran.stderr[-2000:]
        found: dict[str, Any] = json.loads(ran.stdout)
        return found

    def refuses(self, command: str, *, session: str = "s") -> bool:
        """Whether the program would not run a command, after what the hooks answered."""
        if self.name == "cursor_sdk":
            call = {"conversation_id": session, "tool_name": "Shell", "tool_input": {"command": command}}
            found = self.result("cursor.cjs", "preToolUse", call=call)["result"]
            return bool(found and found.get("permission") == "deny")
        if self.name == "vscode":
            call = {"tool_name": "run_in_terminal", "tool_input": {"command": command}}
            found = self.result("vscode.cjs", str(self.copilot_file), call=call)["result"]
            return bool(found and found.get("permissionDecision") == "deny")
        call = {"toolName": "run_in_terminal", "toolArgs": {"command": command}}
        return bool(self.result("jetbrains.cjs", str(self.copilot_file), call=call)["denied"])

    @property
    def copilot_file(self) -> Path:
        project = self.driver.project / ".github/hooks/fairlead.json"
        return project if project.exists() else self.driver.home / ".copilot/hooks/fairlead.json"

    def judged(self) -> list[tuple[str, str]]:
        """The host and the control of each judged call."""
        return [
            (body["step"]["host"], body["effect"] if "effect" in body else body["decision"]["control"])
            for body in self.driver.records(event="before_tool")
        ]


HOSTS = {"cursor_sdk": "cursor", "vscode": "vscode", "jetbrains": "jetbrains"}
ENTRIES = {
    "cursor_sdk": ("cursor", "cursor@project", "claude", "claude@project"),
    "vscode": ("copilot", "copilot@project"),
    "jetbrains": ("copilot@project",),
}
ALONE = [(name, (entry,)) for name, entries in ENTRIES.items() for entry in entries]
PAIRS = [("cursor_sdk", pair) for pair in combinations(ENTRIES["cursor_sdk"], 2)]


@pytest.fixture
def driver(folder: Path) -> Iterator[Driver]:
    with a_driver("copilot", folder) as made:
        yield made


@pytest.mark.parametrize(("name", "entries"), [*ALONE, *PAIRS])
def test_a_deny_holds_a_harmless_command_passes_and_each_is_judged_once(
    name: str, entries: tuple[str, ...], driver: Driver
) -> None:
    guest = Guest(name, driver)
    guest.install(*entries)
    assert guest.refuses("touch forbidden")
    assert not guest.refuses("echo hi")
    records = driver.records(event="before_tool")
    assert [body["step"]["host"] for body in records] == [HOSTS[name]] * 2
    assert [body["step"]["kind"] for body in records] == ["shell"] * 2


@pytest.mark.parametrize(("name", "entries"), ALONE)
def test_a_step_without_an_answer_is_refused(name: str, entries: tuple[str, ...], driver: Driver) -> None:
    guest = Guest(name, driver)
    guest.install(*entries)
    client = driver.state / "bin/fairlead_hook.py"
    client.write_text("raise SystemExit(3)\n")
    assert guest.refuses("echo hi")


@pytest.mark.parametrize(
    ("name", "entries"), [one for one in ALONE if one[0] == "cursor_sdk" and "claude" not in one[1][0]]
)
def test_cursor_refuses_where_the_launcher_is_missing(name: str, entries: tuple[str, ...], driver: Driver) -> None:
    guest = Guest(name, driver)
    guest.install(*entries)
    shutil.rmtree(driver.state / "bin")
    assert guest.refuses("echo hi")


def test_jetbrains_takes_no_exit_code_so_a_refusal_is_json(driver: Driver) -> None:
    guest = Guest("jetbrains", driver)
    guest.install("copilot@project")
    file = guest.copilot_file
    settings = json.loads(file.read_text())
    settings["hooks"]["preToolUse"] = [{"type": "command", "bash": "echo no >&2; exit 2", "timeoutSec": 5}]
    file.write_text(json.dumps(settings))
    assert not guest.refuses("echo hi"), "it takes exit codes now: the documentation says it does not"


# --- the Copilot SDK, whole ---------------------------------------------------------------------


def run_sdk(guest: Guest, *commands: str) -> Model:
    calls = [ScriptedCall("bash", {"command": command, "description": "a command"}) for command in commands]
    with Model(*calls, Say("FINE")) as model:
        ran = guest.run(
            "copilot_sdk.mjs", COPILOT_OFFLINE="true", COPILOT_AUTO_UPDATE="false",
            COPILOT_PROVIDER_BASE_URL=model.url + "/v1", COPILOT_PROVIDER_API_KEY="none",
            COPILOT_MODEL="claude-sonnet-4.5",
        )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    return model


@pytest.mark.parametrize("entries", [("copilot",), ("copilot", "claude")])
def test_the_copilot_sdk_carries_out_a_deny(entries: tuple[str, ...], driver: Driver) -> None:
    guest = Guest("copilot_sdk", driver)
    guest.install(*entries)
    model = run_sdk(guest, "touch forbidden", "touch allowed")
    assert not (driver.project / "forbidden").exists()
    assert (driver.project / "allowed").exists()
    assert model.received(REASON)
    assert [body["step"]["host"] for body in driver.records(event="before_tool")] == ["copilot", "copilot"]


def test_without_hooks_the_copilot_sdk_runs_the_command(driver: Driver) -> None:
    guest = Guest("copilot_sdk", driver)
    run_sdk(guest, "touch forbidden")
    assert (driver.project / "forbidden").exists()
