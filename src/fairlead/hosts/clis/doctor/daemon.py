"""Checks on the daemon: whether it runs, can write its journal, and is of this version."""

from __future__ import annotations

import os
import shlex
import socket
from pathlib import Path
from typing import Any

from .... import __version__
from ....build import source_digest
from ....config.layers import Config
from ....extras import install_command
from ....packs.judging import PackGate
from ....paths import MANAGED, BadPath, check_private, managed_folder, runtime_folder, state_folder
from ....peers import peer_of
from ..client import hangs, is_listening
from ..daemon_needs import can_run, is_too_long, is_unwanted, missing_packages, socket_in
from .program import why
from .report import Report

LIVES_WAIT = 3.0
"""Seconds within which a daemon must answer."""


def look_at_daemon(report: Report) -> bool:
    """Check the daemon. Returns whether it works, or can be started."""
    if is_unwanted():
        what = "fairlead was installed with --no-daemon: each step is judged without one, slowly"
        report.add("note", what, "fairlead install --daemon CLI, to have it")
        return True
    folder = managed_folder() or runtime_folder()
    place = socket_in(folder)
    if not _is_safe(folder, report):
        return False
    if is_too_long(place):
        report.add("warning", f"{place} is too long for a socket: each step is judged without a daemon")
        return True
    pid = _listener(place)
    if pid is None:
        return _can_start(folder, place, report)
    if hangs(str(folder), LIVES_WAIT):
        what = f"the daemon (process {pid}) does not answer: steps that guard are refused"
        todo = "restart it (as root)" if folder == MANAGED else f"kill -KILL {pid}; the next step starts another"
        report.add("problem", what, todo)
        return False
    return _is_healthy(place, pid, report)


def look_at_session_rules(config: Config, report: Report) -> None:
    """Name the packs that say less without a daemon."""
    if can_run():
        return
    gates = (c for c in config.hooks if isinstance(c.hook.fn, PackGate) and c.hook.fn.needs_session)
    if names := list(dict.fromkeys(c.hook.name for c in gates)):
        what = f"without a daemon, the rules of {', '.join(names)} about earlier calls of a session say nothing"
        report.add("warning", what)


def look_whether_it_started(folder: Path, report: Report) -> None:
    """Check that the launcher has started a daemon. Without one, each step is judged on its own."""
    too_long = is_too_long(socket_in(folder))
    if folder == MANAGED or too_long or missing_packages() or is_listening(str(folder)):
        return
    log = state_folder() / "daemon.log"
    what = "no daemon starts, so that each step is judged without one, and nothing is remembered between steps"
    report.add("problem", f"{what}: {_last_line(log)}", f"fix or move away what it names; {log} says more")


def _last_line(log: Path) -> str:
    """The last line of the daemon's log."""
    try:
        with log.open("rb") as file:
            file.seek(max(log.stat().st_size - 4096, 0))
            lines = file.read().decode("utf-8", "replace").split("\n")
    except OSError as error:
        return f"{log}: {why(error)}"
    return next((line.strip() for line in reversed(lines) if line.strip()), f"{log} says nothing")


def _is_safe(folder: Path, report: Report) -> bool:
    """Check the socket's folder: the client refuses one that another user can write to."""
    if folder == MANAGED or not os.path.lexists(folder):
        return True
    try:
        check_private(folder)
    except BadPath as error:
        report.add("problem", f"the daemon's socket cannot be trusted: {error}", f"fix {folder}, or remove it")
        return False
    return True


def _listener(place: Path) -> int | None:
    """The process that listens on the socket; None if there is none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(LIVES_WAIT)
        try:
            connection.connect(str(place))
            return peer_of(connection).pid
        except (BlockingIOError, TimeoutError):
            return 0  # it does not accept the connection
        except OSError:
            return None


def _can_start(folder: Path, place: Path, report: Report) -> bool:
    if folder == MANAGED:
        what = f"{MANAGED} is there, but no daemon of the machine: steps that guard are refused"
        report.add("problem", what, f"start it, as root: {_managed_command()}")
        return False
    if missing := missing_packages():
        what = f"no daemon can run without {', '.join(missing)}: each step is judged without one, slowly"
        report.add("warning", what, install_command("serve"))
    elif place.is_dir():
        report.add("problem", f"{place} is a folder, so no daemon can run", f"rmdir {place}")
    else:
        report.add("note", "no daemon runs now: the next step starts one")
    return True


def _managed_command() -> str:
    """The command with which root starts the machine's daemon, as the user who owns its folder."""
    from pwd import getpwuid

    owner = MANAGED.lstat().st_uid
    if owner == 0:
        return "fairlead serve --managed"
    try:
        name = getpwuid(owner).pw_name
    except KeyError:
        name = f"#{owner}"
    return (
        f"sudo -u {shlex.quote(name)} FAIRLEAD_STATE_DIR=... fairlead serve --managed (docs/threats.md has all of it)"
    )


def _is_healthy(place: Path, pid: int, report: Report) -> bool:
    from ....client import Client, DaemonError

    try:
        with Client(place, start=False) as client:
            health = client.health()
    except DaemonError as error:
        report.add("problem", f"process {pid} listens where the daemon should, and is none: {error}", f"end {pid}")
        return False
    _compare_versions(health, report)
    if error_of_journal := health.get("journal_error"):
        what = f"the daemon (process {pid}) cannot write the journal: {error_of_journal}"
        report.add("problem", what, f"make room, or fix the folder of {health.get('journal')}")
    elif health.get("status") == "draining":
        report.add("note", f"the daemon (process {pid}) is about to end: the next step starts another")
    else:
        report.add("ok", f"the daemon answers (process {pid}, version {health.get('version')})")
    if error_of_anchor := health.get("anchor_error"):
        what = f"the daemon (process {pid}) cannot anchor the journal: {error_of_anchor}"
        report.add("problem", what, "fix `anchor` in [journal], or what it names")
    for delivery in health.get("notifications", ()):
        if problem := delivery["error"]:
            report.add("warning", f"no notification by {delivery['target']}: {problem}", "fix `notify` in [approvals]")
    return True


def _compare_versions(health: dict[str, Any], report: Report) -> None:
    """Compare the daemon's version with this one: a daemon keeps the program that it was started with."""
    version = str(health.get("version"))
    if version != __version__:
        what = f"the daemon is of version {version}, this is {__version__}: steps are still judged by the former"
        report.add("problem", what, "fairlead upgrade")
    elif health.get("source") != source_digest():
        what = f"the daemon was started from other source files of version {version}: steps are still judged by those"
        report.add("problem", what, "fairlead upgrade")
