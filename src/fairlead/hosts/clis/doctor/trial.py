"""Trials: whether fairlead answers the launcher, and whether a CLI refuses a command that a hook denies."""

from __future__ import annotations

import os
import re
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ....folders import probing
from ....paths import Folders, managed_folder, runtime_folder
from .. import client as hook_client
from ..daemon_needs import is_unwanted
from ..install import Installed, launcher_for
from ..launcher import parse_launcher
from ..mapping import Host
from .copies import copy_settings
from .daemon import look_whether_it_started
from .hooks import install_again, install_command

if TYPE_CHECKING:
    from ..probe.program import Program
from .program import last_line, run_briefly, why
from .report import Report

WAIT = 60.0
"""Seconds that a trial run of a CLI may take."""
ANSWER_WAIT = 30.0
"""Seconds within which fairlead must answer the launcher."""
END_WAIT = 5.0
"""Seconds that the daemon of a trial has to end."""
PROBE = "fairlead-doctor-was-here"
REASON = "fairlead doctor asked for this to be denied"

_POLICY = f"""
[[hook]]
name = "doctor"
on = "before_tool"
phase = "gate"
match = {{ kind = "shell" }}
rule = 'target.command.contains("{PROBE}")'
deny = "{REASON}"
"""


def ask_launcher(host: Host, found: list[Installed], report: Report, home: Path, state: Path) -> None:
    """Check that fairlead answers the launcher. The event `doctor` is unknown, which only fairlead can answer."""
    for installed in found:
        launcher = launcher_for(installed.scope)
        argv = [str(launcher), f"{ANSWER_WAIT - 5:g}", "before_tool", host.name, "doctor"]
        try:
            with probing(_temporary_folders(home, state)) as name:
                code, _, err = run_briefly(argv, home, ANSWER_WAIT, FAIRLEAD_PROBE=name)
        except OSError:
            continue  # another check has reported it
        if "has no event 'doctor'" not in err:
            what = f"{launcher} gets no answer from fairlead: {_reason(code, err)}"
            report.add("problem", what, install_again(host, installed))


def ask_in_use(launchers: list[Path], root: Path, report: Report) -> None:
    """Check that fairlead answers each launcher with its real state and daemon.

    A daemon that the check starts ends again.
    """
    folder = managed_folder() or runtime_folder()
    was_there = hook_client.is_listening(str(folder))
    environ = {name: value for name, value in os.environ.items() if name.upper() == name}
    for launcher in launchers:
        argv = [str(launcher), f"{ANSWER_WAIT - 5:g}", "before_tool", "claude_code", "doctor"]
        try:
            code, _, err = run_briefly(argv, root, ANSWER_WAIT, **environ)
        except OSError as error:
            report.add("problem", f"{launcher} cannot be run: {why(error)}", "fairlead install")
            continue
        if "has no event 'doctor'" in err:
            report.add("ok", f"{launcher} gets answers from fairlead")
        else:
            reason = _reason(code, err)
            if "its client" in reason:
                reason += f" ({launcher.parent / 'fairlead_hook.py'})"
            report.add("problem", f"{launcher} gets no answer from fairlead: {reason}", "fairlead upgrade")
    if not was_there:
        if any(map(_starts_daemon, launchers)) and not is_unwanted():
            look_whether_it_started(folder, report)
        stop_daemon(folder, kill=False)  # an agent may use it by now


def _starts_daemon(launcher: Path) -> bool:
    """Whether a launcher uses a daemon."""
    try:
        runs = parse_launcher(launcher.read_text("utf-8"))
    except (OSError, UnicodeError):
        return False
    return runs is not None and not (isinstance(runs.installed, Folders) and not runs.installed.daemon)


def _temporary_folders(home: Path, state: Path) -> Folders:
    """The folders of a trial, which are removed afterwards."""
    return Folders(home=str(home), config=str(home / ".config/fairlead"), state=str(state), run=str(state / "run"))


def _reason(code: int | None, err: str) -> str:
    """Why a launcher gave no answer: its own message if it has one."""
    found = re.search(r"because (?:fairlead gave no answer: )?(.+?)\.?(?: Run .fairlead doctor.*)?$", err, re.MULTILINE)
    if found:
        return found[1]
    return "it says nothing" if code == 0 else last_line(f"it ended with {code}", err)


class TrialResult(NamedTuple):
    """What happened when the scripted model called a command that a hook denies."""

    used_model: bool
    """Whether the CLI sent any request to the scripted model."""
    ran: bool
    """Whether the command ran."""
    has_reason: bool
    """Whether the model received the reason of the denial."""
    ending: str
    """How the run ended."""


def try_out(host: Host, found: list[Installed], report: Report, root: Path, folder: Path) -> None:
    """Run the CLI against a scripted model, and report whether its hooks deny a command."""
    from ..probe.program import program_of

    if (program := program_of(host.name)) is None:
        report.add("warning", "it cannot be run against a scripted model: whether its hooks fire is not proven")
        return
    if (managed := managed_folder()) is not None:
        report.add("warning", f"the machine's daemon ({managed}) decides: whether hooks fire here is not proven")
        return
    try:
        seen = _run_trial(host, program, Path(report.path or ""), found, folder, root)
    except Exception as error:  # the program of another vendor may do anything
        report.add("warning", f"{host.title} could not be run, so nothing is proven: {str(error)[:300]}")
        return
    if seen.ran:
        report.fires = False
        todo = f"{install_command(host)}; and look for what turns its hooks off" if report.well else None
        report.add("problem", "a command ran that a hook denies: its hooks do not hold", todo)
    elif seen.has_reason:
        report.fires = True
        report.add("ok", "its hooks fire: a command was denied, and the model received the reason")
    elif seen.used_model:
        what = "a command did not run, but not because a hook denies it, so nothing is proven"
        report.add("warning", f"{what}: {seen.ending}", _try(host))
    else:
        what = f"{host.title} did not ask the scripted model anything, so nothing is proven"
        report.add("warning", f"{what}: {seen.ending}", _try(host))


def _try(host: Host) -> str:
    return f"see that `{host.program}` itself works; then: fairlead doctor {host.name}"


def _run_trial(
    host: Host, kind: type[Program], binary: Path, found: list[Installed], folder: Path, root: Path
) -> TrialResult:
    from ..probe.model import Model, Say

    home, project, state = folder / "home", folder / "project", folder / "state"
    project.mkdir(mode=0o700)
    copy_settings(host, found, root, home, project)
    folders = _temporary_folders(home, state)
    Path(folders.config).mkdir(parents=True, exist_ok=True)
    Path(folders.config, "fairlead.toml").write_text(_POLICY)
    program = kind(binary, home, project)
    with probing(folders) as name, Model(program.shell(f"touch {PROBE}"), Say("done")) as model:
        program.env["FAIRLEAD_PROBE"] = name
        try:
            ran = program.run(f"run touch {PROBE}", model, timeout=WAIT)
            ending = last_line(f"it ended with {ran.code}", ran.text)
        except AssertionError:  # it did not end, but the command may have run, or been denied
            ending = f"it did not end within {WAIT:g} s"
    return TrialResult(bool(model.requests), (project / PROBE).exists(), model.received(REASON), ending)


def stop_daemon(run: Path, *, kill: bool = True) -> None:
    """Stop the daemon of a trial, if there is one. It finishes its work; with `kill`, only for a few seconds."""
    pid, socket = None, run / "v1.sock"
    if not socket.exists():
        return
    with suppress(Exception):
        from ....client import Client

        with Client(socket, start=False) as client:
            pid = int(client.health()["pid"])
            client.stop()
    until = time.monotonic() + END_WAIT
    while pid is not None and _lives(pid):
        if time.monotonic() > until:
            with suppress(OSError):
                if kill:
                    os.kill(pid, signal.SIGKILL)
            return
        time.sleep(0.02)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    with suppress(OSError):
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()  # a zombie: it has ended
    return True
