"""Drives a real agent CLI: a home, a project, fairlead installed for it, and a scripted model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fairlead.hosts.clis.mapping import Host, host_named, hosts
from fairlead.hosts.clis.probe.model import Model, ScriptedTurn
from fairlead.hosts.clis.probe.program import ProgramResult, program_of
from fairlead.journal.reading import Filter, Reader

CLIS = Path(os.environ.get("FAIRLEAD_CLIS") or Path(__file__).parents[4] / ".clis")
WANTED = os.environ.get("FAIRLEAD_CLIS_WANTED", "").split() or [host.name for host in hosts() if program_of(host.name)]
"""The CLIs that the tests run."""
REASON = "That file is not yours to touch."

POLICY = f"""
[[hook]]
name = "hands-off"
on = "before_tool"
match = {{ kind = "shell" }}
phase = "gate"
rule = 'target.command.contains("forbidden")'
deny = "{REASON}"
"""


def binary(name: str) -> Path:
    return CLIS / name / "node_modules" / ".bin" / host_named(name).program


class Driver:
    """One CLI with a home of its own. Each run plays a script of the model."""

    def __init__(self, name: str, folder: Path, policy: str = POLICY) -> None:
        self.host: Host = host_named(name)
        self.home, self.project = folder / "home", folder / "project"
        self.state = self.home / ".local/state/fairlead"
        self.home.mkdir(mode=0o700)
        self.project.mkdir()
        kind = program_of(name)
        assert kind is not None
        self.program = kind(binary(name), self.home, self.project)
        self.prefix: list[str] = []
        """Words before the command that starts `fairlead`."""
        self.policy(policy)

    # --- fairlead ---------------------------------------------------------------------------

    @property
    def environ(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8"}

    def policy(self, text: str) -> None:
        """Write the user's fairlead.toml."""
        path = self.home / ".config/fairlead/fairlead.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def fairlead(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.prefix, sys.executable, "-m", "fairlead.cli", *words], cwd=self.project, env=self.environ | more,
            capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def install(self, *options: str) -> None:
        ran = self.fairlead("install", self.host.name, *options)
        assert ran.returncode == 0, ran.stdout + ran.stderr

    def uninstall(self) -> None:
        ran = self.fairlead("uninstall", self.host.name)
        assert ran.returncode == 0, ran.stdout + ran.stderr

    def records(self, **filters: Any) -> list[dict[str, Any]]:
        """The records of the journal, oldest first, after the daemon has written them."""
        self.stop_daemon()
        path = self.state / "journal.db"
        if not path.exists():
            return []
        with Reader(path) as reader:
            found = [record.body for record in reader.records(Filter(**filters), limit=1000)]
        return sorted(found, key=lambda body: body.get("seq", 0)) if found and "seq" in found[0] else found[::-1]

    def stop_daemon(self) -> None:
        """Stop the daemon, so that its journal is complete."""
        self.fairlead("serve", "--stop")

    @property
    def daemon(self) -> int | None:
        """The process of the daemon, if there is one."""
        shown = self.fairlead("serve", "--status", "--json")
        with suppress(ValueError):
            return json.loads(shown.stdout).get("pid")
        return None

    # --- the CLI ----------------------------------------------------------------------------

    def run(self, *script: ScriptedTurn, prompt: str = "do it") -> tuple[Model, ProgramResult]:
        """One headless run against a scripted model."""
        with Model(*script) as model:
            return model, self.program.run(prompt, model, timeout=120)

    def close(self) -> None:
        self.stop_daemon()
        for process in _processes_of(self.home):
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)


def _processes_of(home: Path) -> Iterator[int]:
    """The processes that still have this home."""
    wanted = f"HOME={home}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)


@contextmanager
def a_driver(name: str, folder: Path, policy: str = POLICY) -> Iterator[Driver]:
    driver = Driver(name, folder, policy)
    try:
        yield driver
    finally:
        driver.close()
