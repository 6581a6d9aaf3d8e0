"""Checks on the program of a CLI: where it is, and its version."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..mapping import Host
from .report import Report

VERSION_WAIT = 30.0
"""Seconds that `--version` may take."""


def look_at_program(host: Host, report: Report, home: Path) -> None:
    found = shutil.which(host.program)
    if found is None:
        report.add("note", f"`{host.program}` is not on PATH")
        return
    report.path = os.path.abspath(found)
    report.version, ending = version_of(report.path, home)
    if report.version is None:
        report.add("warning", f"`{report.path} --version` says no version: {ending}")
    elif host.experimental:
        report.add("warning", f"version {report.version}: no version was proven; what is here is from documents")
    elif report.version != host.proven:
        report.add("warning", f"version {report.version} was not proven; {host.proven} was")
    else:
        report.add("ok", f"version {report.version}, which was proven")


def version_of(program: str, home: Path) -> tuple[str | None, str]:
    """The version of a program, and how its run ended. It gets a home of its own, as some programs write to it."""
    try:
        code, *texts = run_briefly([program, "--version"], home, VERSION_WAIT)
    except OSError as error:
        return None, why(error)
    if code is None:
        return None, f"it did not end within {VERSION_WAIT:g} s"
    version = next((found for text in texts if (found := _version_in(text))), None) if code == 0 else None
    return version, last_line(f"it ended with {code}", "\n".join(texts))


def run_briefly(argv: list[str], home: Path, wait: float, **more: str) -> tuple[int | None, str, str]:
    """Run a program in a home of its own. Returns its exit code (None: it did not end), stdout and stderr.

    All processes that it started in its session are killed afterwards.
    """
    environ = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
        **more,
    }
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(  # noqa: S603 (argv, no shell)
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=home, env=environ, start_new_session=True
        )
        try:
            code: int | None = process.wait(wait)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return code, _beginning(out), _beginning(err)


def _beginning(file: Any) -> str:
    file.seek(0)
    return str(file.read(1 << 16).decode("utf-8", "replace"))


def _version_in(text: str) -> str | None:
    found = re.search(r"\d+\.\d+\.\d+[a-z0-9]*(?:[-+.][a-z0-9]+)*", text, re.ASCII | re.IGNORECASE)
    return found[0] if found else None


def last_line(what: str, text: str) -> str:
    """A message with the last line of a program's output."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"{what}: {lines[-1][:200]}" if lines else f"{what}, without any output"


def why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
