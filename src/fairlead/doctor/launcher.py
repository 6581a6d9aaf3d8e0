"""The launcher and the client: whether they can be run, and are what this fairlead would write."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from ..folders import Machine, home_of_user, installed_folders, other_home
from ..hosts.host import Host
from ..hosts.launcher import launcher_text, runs_of, usual_launcher
from ..places import Folders
from .program import why
from .report import Report
from .settings import install_command


def look_at_launcher(launcher: Path, report: Report, again: str) -> None:
    """Whether what the settings name can be run, and is what this fairlead would write."""
    from ..hosts import hook_client

    client = launcher.parent / "fairlead_hook.py"
    try:
        text, code = launcher.read_text("utf-8"), client.read_bytes()
    except (OSError, UnicodeError) as error:
        name = getattr(error, "filename", None) or launcher
        report.add("problem", f"{name}, which the hooks need, cannot be read: {why(error)}", again)
        return
    if not os.access(launcher, os.X_OK):
        report.add("problem", f"{launcher}, which the hooks start, cannot be run", again)
    runs = runs_of(text)
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
    """Whether the launcher and the commands go by the same folders, and whether there are others."""
    if isinstance(installed, Folders) and installed_folders() != installed:
        report.add("problem", f"{launcher} and the record of `fairlead install` name other folders", again)
    if (other := other_home()) is not None:
        report.add("note", f"HOME is {Path.home()}; fairlead is also installed in {other}, with folders of its own")


def look_at_project_launcher(host: Host, report: Report) -> None:
    """Whether the launcher is there that a project's settings start, in the home that the user database has."""
    if not (usual := usual_launcher(home_of_user())).exists():
        what = f"the hooks of the project start {usual}, which is not there: steps that guard are refused"
        report.add("warning", what, f"HOME={home_of_user()} {install_command(host)}")


def _content(module: Any) -> bytes:
    return Path(module.__file__).read_bytes()
