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
from drivers import CLIS, POLICY, REASON, Driver, a_driver
from machine import OwnMachine

from fairlead.hosts.clis.install.settings import LAUNCHER_GONE, LAUNCHER_NOT_IN_HOME
from fairlead.hosts.clis.probe.model import Model, Say, ScriptedCall

pytestmark = pytest.mark.clis
RULE = 'target.command.contains("forbidden")'
GUESTS = Path(__file__).parent / "guests"


class Guest:
    """A program that has no hooks of its own, and the home in which fairlead is installed for others."""

    def __init__(self, name: str, driver: Driver) -> None:
        self.name, self.driver, self.place = name, driver, CLIS / name
        if not (self.place / "fetched").exists():
            pytest.skip(f"{name} is not here: `make e2e-guests` fetches it")
        own = self.place / "node_modules/node/bin/node"
        self.node = str(own if own.exists() else shutil.which("node"))
        try:
            self.machine = OwnMachine(driver.home.parent, driver.home)
        except RuntimeError as error:
            pytest.skip(str(error))
        driver.prefix = self.machine.prefix

    def install(self, *entries: str, timeout: str | None = None) -> None:
        """Install the entries of CLIs: `claude`, `copilot@project`, `cursor@team`."""
        for entry in entries:
            name, _, scope = entry.partition("@")
            options = ["--scope", scope.replace("team", "project")] if scope else []
            ran = self.driver.fairlead("install", name, *options, *(["--timeout", timeout] if timeout else []))
            assert ran.returncode == 0, ran.stdout + ran.stderr
            if scope == "team":  # an administrator gives Cursor the text of a project's file
                file = self.driver.project / ".cursor/hooks.json"
                (self.driver.home / "team-hooks.json").write_text(file.read_text().replace("@project ", "@team "))
                file.unlink()
        if any(entry.endswith(("@project", "@team")) for entry in entries):
            assert self.driver.fairlead("install", self.launchers_of).returncode == 0

    launchers_of = "goose"
    """A CLI that none of these programs reads: its installation writes the user's launcher."""

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

    def refusal(self, command: str) -> str | None:
        """Why the program does not run a command, after what the hooks answered. None: it runs it."""
        if self.name == "copilot_sdk":
            return self._refusal_in_the_sdk(command)
        if self.name == "cursor_sdk":
            call = {"conversation_id": "s", "tool_name": "Shell", "tool_input": {"command": command}}
            found = self.result("cursor.cjs", "preToolUse", call=call)["result"] or {}
            return found.get("user_message", "") if found.get("permission") == "deny" else None
        if self.name == "vscode":
            call = {"tool_name": "run_in_terminal", "tool_input": {"command": command}}
            found = self.result("vscode.cjs", *map(str, self.files), call=call)["result"] or {}
            return found.get("permissionDecisionReason", "") if found.get("permissionDecision") == "deny" else None
        call = {"toolName": "run_in_terminal", "toolArgs": {"command": command}}
        found = self.result("jetbrains.cjs", *map(str, self.files), call=call)
        return found["reason"] if found["denied"] else None

    def refuses(self, command: str) -> bool:
        return self.refusal(command) is not None

    @property
    def files(self) -> list[Path]:
        """The files of hooks that VS Code and JetBrains find."""
        home, project = self.driver.home, self.driver.project
        found = [project / ".github/hooks/fairlead.json"]
        if self.name == "vscode":
            found += [home / ".copilot/hooks/fairlead.json", project / ".claude/settings.json"]
            found += [home / ".claude/settings.json"]
        return [file for file in found if file.exists()]

    def _refusal_in_the_sdk(self, command: str) -> str | None:
        """Run the agent, with a model that calls its shell."""
        file = self.driver.project / "ran"
        model = run_sdk(self, f"{command}; touch {file}")
        return None if file.exists() else "".join(request.text for request in model.requests)


HOSTS = {"cursor_sdk": "cursor", "vscode": "vscode", "jetbrains": "jetbrains", "copilot_sdk": "copilot"}
ENTRIES = {
    "cursor_sdk": ("cursor", "cursor@project", "cursor@team", "cursor@managed", "claude", "claude@project"),
    "vscode": ("copilot", "copilot@project", "claude", "claude@project"),
    "jetbrains": ("copilot@project",),
    "copilot_sdk": ("copilot", "copilot@project", "claude@project"),
}
"""The entries that each program reads."""
EXECUTORS = ("cursor_sdk", "vscode", "jetbrains")
"""Programs of which only the code for hooks runs."""
ALONE = [(name, (entry,)) for name, entries in ENTRIES.items() for entry in entries]
PAIRS = [(name, pair) for name, entries in ENTRIES.items() for pair in combinations(entries, 2)]


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
    assert REASON in (guest.refusal("touch forbidden") or "")
    assert not guest.refuses("echo hi")
    records = driver.records(event="before_tool")
    assert [body["step"]["host"] for body in records] == [HOSTS[name]] * 2
    assert [body["step"]["kind"] for body in records] == ["shell"] * 2


def test_cursor_tab_does_not_read_a_file_that_a_hook_denies(driver: Driver) -> None:
    reads = 'target.paths.exists(path, path.contains("forbidden"))'
    driver.policy(POLICY.replace('kind = "shell"', 'kind = "read"').replace(RULE, reads))
    guest = Guest("cursor_sdk", driver)
    guest.install("cursor")
    for path, answer in (("/p/forbidden", "deny"), ("/p/allowed", None)):
        call = {"conversation_id": "s", "file_path": path, "content": "A=1"}
        found = guest.result("cursor.cjs", "beforeTabFileRead", call=call)["result"] or {}
        assert found.get("permission") == answer


# --- what breaks --------------------------------------------------------------------------------


LAUNCHERS = {
    "exit 2": "echo not that >&2; exit 2",
    "crash": "kill -9 $$",
    "time-out": "exec sleep 8",
    "empty output": "cat >/dev/null",
    "missing": None,
}
"""Launchers that break. With none of them there is an answer of fairlead's."""
REFUSED = {
    ("cursor_sdk", "cursor"): {"exit 2", "crash", "time-out", "empty output", "missing"},
    ("cursor_sdk", "claude"): {"exit 2", "crash", "missing"},
    ("vscode", "copilot"): {"exit 2", "crash", "missing"},
    ("vscode", "copilot@project"): {"exit 2", "crash", "missing"},
    ("vscode", "claude"): {"exit 2", "crash", "missing"},
    ("jetbrains", "copilot@project"): {"crash", "missing"},
    ("copilot_sdk", "copilot"): {"exit 2", "crash", "missing"},
    ("copilot_sdk", "copilot@project"): {"exit 2", "crash", "missing"},
}
"""What each program refuses. Where it runs the tool, no entry can make it refuse: docs/clis.md says so."""


@pytest.mark.parametrize("broken", LAUNCHERS)
@pytest.mark.parametrize(("name", "entry"), REFUSED)
def test_a_broken_launcher_is_a_refusal_where_the_program_lets_it(
    name: str, entry: str, broken: str, driver: Driver
) -> None:
    guest = Guest(name, driver)
    guest.install(entry, timeout="5" if broken == "time-out" else None)
    launcher, script = driver.state / "bin/fairlead-hook", LAUNCHERS[broken]
    if script is None:
        launcher.unlink()
    else:
        launcher.write_text(f"#!/bin/sh\n{script}\n")
    refusal = guest.refusal("echo hi")
    assert (refusal is not None) is (broken in REFUSED[name, entry])
    if broken == "missing" and name in ("vscode", "jetbrains"):  # Cursor and the SDK say something of their own
        assert LAUNCHER_GONE in (refusal or "") or LAUNCHER_NOT_IN_HOME in (refusal or "")


CLIENTS = {
    "ends with an error": "raise SystemExit(3)",
    "is killed": "import os; os.kill(os.getpid(), 9)",
    "says nothing": "def run(): pass",
}


@pytest.mark.parametrize("broken", CLIENTS)
@pytest.mark.parametrize(("name", "entry"), [key for key in REFUSED if key[0] in EXECUTORS])
def test_a_step_without_an_answer_is_refused_and_recorded_once(
    name: str, entry: str, broken: str, driver: Driver
) -> None:
    guest = Guest(name, driver)
    guest.install(entry)
    client = driver.state / "bin/fairlead_hook.py"
    whole = client.read_text()
    shutil.rmtree(client.parent / "__pycache__")
    client.write_text(f"import sys\nif len(sys.argv) == 6:\n    {CLIENTS[broken]}\nelse:\n" + indented(whole))
    assert guest.refuses("echo hi")
    assert driver.fairlead("log").returncode == 0
    (record,) = driver.records(event="before_tool")
    assert record["step"]["host"] == entry.partition("@")[0].replace("claude", "claude_code")


def indented(text: str) -> str:
    return f"    exec({text!r}, globals())\n"


@pytest.mark.parametrize(("name", "entry"), [key for key in REFUSED if key[0] in EXECUTORS])
def test_a_hook_that_takes_too_long_is_a_refusal(name: str, entry: str, driver: Driver) -> None:
    slow = '[[hook]]\nname = "slow"\non = "before_tool"\ncommand = ["/bin/sleep", "30"]\ntimeout = 1\n'
    driver.policy(slow)
    guest = Guest(name, driver)
    guest.install(entry)
    assert "[slow] refused, because the hook failed (timeout)" in (guest.refusal("echo hi") or "")


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


def test_the_copilot_sdk_carries_out_a_deny_and_goes_on(driver: Driver) -> None:
    guest = Guest("copilot_sdk", driver)
    guest.install("copilot")
    model = run_sdk(guest, "touch forbidden", "touch allowed")
    assert not (driver.project / "forbidden").exists()
    assert (driver.project / "allowed").exists()
    assert model.received(REASON)
    assert [body["step"]["host"] for body in driver.records(event="before_tool")] == ["copilot", "copilot"]


def test_the_copilot_sdk_does_not_read_the_hooks_of_the_machine(driver: Driver) -> None:
    guest = Guest("copilot_sdk", driver)
    guest.install("copilot@managed")
    run_sdk(guest, "touch forbidden")
    assert (driver.project / "forbidden").exists(), "it reads them now: change docs/clis.md"


def test_without_hooks_the_copilot_sdk_runs_the_command(driver: Driver) -> None:
    guest = Guest("copilot_sdk", driver)
    run_sdk(guest, "touch forbidden")
    assert (driver.project / "forbidden").exists()
