"""Claude Code's managed settings are a chain of sources: what the real program does with a faked admin console.

The hooks are in the machine's managed file. What the console serves counts for more, and hides that file as a whole
unless it says otherwise.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from console import ClaudeCodeAtVendor, Console, namespace
from drivers import REASON, WANTED, Driver, a_driver, binary
from fetch import REQUIRED

from fairlead.hosts.clis.install.settings import settings_of
from fairlead.hosts.clis.probe.model import Say

pytestmark = pytest.mark.clis

UNRELATED = {"cleanupPeriodDays": 20}
MERGED = settings_of("claude_code").merge_setting


class Managed:
    """A driver of Claude Code with our hooks in the machine's managed file, and nowhere else."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.program = ClaudeCodeAtVendor(binary("claude_code"), driver.home, driver.project)
        self.cache = driver.home / ".claude/remote-settings.json"
        driver.install()
        user = driver.home / ".claude/settings.json"
        self.hooks = json.loads(user.read_text())
        user.unlink()

    def run(self, served: dict[str, Any] | None, **in_file: Any) -> tuple[bool, Console]:
        """Whether the command ran that the policy denies, with these settings served, and these in the file."""
        with Console(self.driver.home.parent, served, self.program.shell("touch forbidden"), Say("FINE")) as console:
            self.program.prepare(console)
            file = self.program.etc / "claude-code/managed-settings.json"
            file.parent.mkdir(exist_ok=True)
            file.write_text(json.dumps(self.hooks | in_file))
            ran = self.program.run("do it", console, timeout=120)
        assert console.requests, ran.text
        assert console.fetched, "it did not ask the console for settings"
        return (self.driver.project / "forbidden").exists(), console

    def examine(self, monkeypatch: pytest.MonkeyPatch) -> str:
        """The problems that the doctor sees, with this file as the machine's."""
        from fairlead.hosts.clis.doctor import examine
        from fairlead.hosts.clis.install import settings as where
        from fairlead.hosts.clis.mapping import host_named

        machine = self.driver.home.parent / "machine"
        file = machine / "etc/claude-code/managed-settings.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(self.hooks))
        monkeypatch.setattr(where, "ROOT", machine)
        monkeypatch.setenv("HOME", str(self.driver.home))
        for name in ("CLAUDE_CONFIG_DIR", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "FAIRLEAD_STATE_DIR"):
            monkeypatch.delenv(name, raising=False)
        report = examine(host_named("claude_code"), self.driver.project, run=False)
        assert "managed" in report.installed
        return "\n".join(f"{each.what} -> {each.todo}" for each in report.findings if each.level == "problem")


@pytest.fixture
def managed(folder: Path) -> Iterator[Managed]:
    if "claude_code" not in WANTED:
        pytest.skip("Claude Code is not among those that are run")
    why = None if binary("claude_code").exists() else "Claude Code is not installed: `make e2e-clis` fetches it"
    with suppress(RuntimeError):
        namespace()
        try:
            with Console(folder, {}):
                pass
        except OSError as error:
            why = why or f"port 443 of loopback cannot be used: {error}"
        if why is None:
            with a_driver("claude_code", folder) as driver:
                yield Managed(driver)
            return
    if "claude_code" in REQUIRED and os.environ.get("CI") and why is not None and "fetches" in why:
        pytest.fail(why)
    pytest.skip(why or "no mount namespace can be made here")


@pytest.mark.parametrize("in_file", [{}, MERGED], ids=["the file says nothing", "the file says merge"])
def test_one_unrelated_setting_in_the_console_hides_every_hook_of_the_managed_file(
    managed: Managed, in_file: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, _ = managed.run(UNRELATED, **in_file)
    assert ran, "it no longer does: change docs/clis/claude_code.md, `Settings.merged` and the doctor"
    found = managed.examine(monkeypatch)
    assert "none of the managed file counts" in found
    assert json.dumps(MERGED) in found


@pytest.mark.parametrize("served", [{}, MERGED, UNRELATED | MERGED], ids=["nothing", "merge", "merge and another"])
def test_hooks_of_the_managed_file_hold_where_the_console_serves_nothing_or_says_merge(
    managed: Managed, served: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, console = managed.run(served)
    assert not ran
    assert console.received(REASON)
    assert "none of the managed file counts" not in managed.examine(monkeypatch)


@pytest.mark.parametrize("forged", [UNRELATED, {}], ids=["a forged copy", "an empty copy"])
def test_a_forged_copy_of_served_settings_hides_the_hooks_while_the_console_cannot_be_asked(
    managed: Managed, forged: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is why the guard lets no agent write it, and the doctor names it."""
    managed.cache.parent.mkdir(exist_ok=True)
    managed.cache.write_text(json.dumps(forged))
    ran, _ = managed.run(None)
    assert ran is bool(forged)
    assert ("none of the managed file counts" in managed.examine(monkeypatch)) is bool(forged)


def test_hooks_of_a_user_hold_whatever_the_console_serves(managed: Managed) -> None:
    managed.driver.install()
    ran, console = managed.run(UNRELATED)
    assert not ran
    assert console.received(REASON)


def test_an_agent_may_not_write_the_copy_of_served_settings(managed: Managed) -> None:
    managed.driver.install()
    driver = managed.driver
    call = driver.program.shell(f"echo '{{}}' > {managed.cache}")
    model, ran = driver.run(call, Say("FINE"))
    assert not managed.cache.exists(), ran.text
    assert model.received("an agent does not change what judges it")
