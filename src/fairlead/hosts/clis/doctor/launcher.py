"""Checks on the launcher and the client: they can be run, and are what this fairlead would write."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from ....folders import Machine, home_of_user, installed_folders, other_home
from ....paths import Folders
from ..launcher import launcher_text, parse_launcher, usual_launcher
from ..mapping import Host
from .hooks import install_command
from .program import why
from .report import Report


def look_at_launcher(launcher: Path, report: Report, again: str) -> None:
    """Check that the launcher can be run, and is what this fairlead would write."""
    from .. import client as hook_client

    client = launcher.parent / "fairlead_hook.py"
    try:
        text, code = launcher.read_text("utf-8"), client.read_bytes()
    except (OSError, UnicodeError) as error:
        name = getattr(error, "filename", None) or launcher
        report.add("problem", f"{name}, which the hooks need, cannot be read: {why(error)}", again)
        return
    if not os.access(launcher, os.X_OK):
        report.add("problem", f"{launcher}, which the hooks start, cannot be run", again)
    runs = parse_launcher(text)
    if runs is not None:
        for path in dict.fromkeys((runs.interpreter, runs.python)):
            if not os.access(path, os.X_OK):
                report.add("problem", f"{path}, which the launcher {launcher} runs, cannot be run", again)
        if os.path.abspath(runs.python) != os.path.abspath(sys.executable):
            what = f"{launcher} runs the fairlead of {runs.python}, and this is that of {sys.executable}"
            report.add("warning", what, again)
        _look_at_folders(launcher, runs.installed, report, again)
        if text == launcher_text(*runs) and code == _content(hook_client):
            return
    report.add("warning", f"{launcher} is not what this fairlead would write: of another version, or changed", again)


def _look_at_folders(launcher: Path, installed: Folders | Machine, report: Report, again: str) -> None:
    """Check that the launcher and the commands use the same folders."""
    if isinstance(installed, Folders) and installed_folders() != installed:
        report.add("problem", f"{launcher} and the record of `fairlead install` name other folders", again)
    if (other := other_home()) is not None:
        report.add("note", f"HOME is {Path.home()}; fairlead is also installed in {other}, with folders of its own")


def look_at_project_launcher(host: Host, report: Report) -> None:
    """Check that the launcher exists which a project's hooks start, in the home from the user database."""
    if not (usual := usual_launcher(home_of_user())).exists():
        what = f"the hooks of the project start {usual}, which is not there: steps that guard are refused"
        report.add("warning", what, f"HOME={home_of_user()} {install_command(host)}")


def _content(module: Any) -> bytes:
    return Path(module.__file__).read_bytes()
