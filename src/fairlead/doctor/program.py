"""The program of a CLI: whether it is here, and which version it is."""

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

from ..hosts.host import Host
from .report import Report

VERSION_WAIT = 30.0
"""Seconds that a program has to say its version."""


def look_at_program(host: Host, report: Report, home: Path) -> None:
    found = shutil.which(host.program)
    if found is None:
        report.add("note", f"`{host.program}` is not on PATH")
        return
    report.path = os.path.abspath(found)
    report.version, said = version_of(report.path, home)
    if report.version is None:
        report.add("warning", f"`{report.path} --version` says no version: {said}")
    elif host.experimental:
        report.add("warning", f"version {report.version}: no version was proven; what is here is from documents")
    elif report.version != host.proven:
        report.add("warning", f"version {report.version} was not proven; {host.proven} was")
    else:
        report.add("ok", f"version {report.version}, which was proven")


def version_of(program: str, home: Path) -> tuple[str | None, str]:
    """What a program says of its version, or else what it did. Some write to their home even for that."""
    try:
        code, *texts = run_briefly([program, "--version"], home, VERSION_WAIT)
    except OSError as error:
        return None, why(error)
    if code is None:
        return None, f"it did not end within {VERSION_WAIT:g} s"
    version = next((found for text in texts if (found := _version_in(text))), None) if code == 0 else None
    return version, last_line(f"it ended with {code}", "\n".join(texts))


def run_briefly(argv: list[str], home: Path, wait: float, **more: str) -> tuple[int | None, str, str]:
    """A short run of a program, in a home of its own: its exit code (None: it did not end), and what it said.

    Whatever it started is gone afterwards, and nothing that lives on can hold this up.
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
    """With the last line of what a program said."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"{what}: {lines[-1][:200]}" if lines else f"{what}, and said nothing"


def why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
