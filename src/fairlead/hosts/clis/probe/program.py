"""Runs an agent CLI without a network, against a scripted model. Each CLI's `probe` module says how."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from ..packages import has_part, load_part
from .model import Model, ScriptedCall


@dataclass(frozen=True)
class ProgramResult:
    """The exit code and the output of a run that ended."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


@dataclass
class Program:
    """One agent CLI in a home and a project of its own."""

    binary: Path
    """The program to start."""
    home: Path
    """A folder that stands for the user's home."""
    project: Path
    """A folder to work in."""
    env: dict[str, str] = field(default_factory=dict)
    """More variables for its runs."""

    name: ClassVar[str]
    """The name of the host: claude_code, codex, gemini, ..."""

    def prepare(self, model: Model) -> None:
        """Write the settings that the CLI needs to reach the model, merged into those that exist. Idempotent."""

    def argv(self, prompt: str) -> list[str]:
        """The command line of a headless run in which tools need no approval."""
        raise NotImplementedError

    def variables(self, model: Model) -> dict[str, str]:
        """The variables that the CLI needs to reach the model."""
        return {}

    def shell(self, command: str) -> ScriptedCall:
        """The model's call of the CLI's shell tool."""
        raise NotImplementedError

    def write(self, path: str, text: str) -> ScriptedCall:
        """The model's call of the tool that makes a file."""
        raise NotImplementedError

    def run(self, prompt: str, model: Model, timeout: float = 60.0) -> ProgramResult:
        """Run the CLI once, headless, to its end. All processes that it started are gone afterwards."""
        self.prepare(model)
        environ = {
            "PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8", "TERM": "dumb", "NO_COLOR": "1",
            **self.variables(model), **self.env,
        }  # fmt: skip
        process = subprocess.Popen(  # noqa: S603 (argv, no shell)
            self.argv(prompt), cwd=self.project, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end within {timeout:g} s") from None
        finally:  # also if the user interrupts it
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
            process.wait()
        return ProgramResult(process.returncode, out, err)


def program_of(cli: str) -> type[Program] | None:
    """How to run a CLI against a scripted model. None: that is not possible."""
    program: type[Program] | None = load_part(cli, "probe").PROGRAM if has_part(cli, "probe") else None
    return program


def merge(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Merge settings into others, object by object."""
    merged = dict(old)
    for key, value in new.items():
        below = merged.get(key)
        merged[key] = merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged
