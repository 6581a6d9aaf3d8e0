"""What really happens: whether fairlead answers the launcher, and whether a CLI does not run what a hook denies."""

from __future__ import annotations

import os
import re
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ..folders import probing
from ..hosts import hook_client
from ..hosts.host import Host
from ..hosts.installing import Installed, launcher_for
from ..hosts.launcher import runs_of
from ..places import Folders, managed_folder, runtime_folder
from .copies import copy_settings
from .daemon import look_whether_it_started
from .program import last_line, run_briefly, why
from .report import Report
from .settings import install_again, install_command

WAIT = 60.0
"""Seconds that a CLI has to show what it does."""
ANSWER_WAIT = 30.0
"""Seconds that fairlead has to answer."""
END_WAIT = 5.0
"""Seconds that a daemon of our own has to end."""
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
    """Whether fairlead answers the launcher. It is asked of an event that no CLI has, and only it knows that."""
    for installed in found:
        launcher = launcher_for(installed.scope)
        argv = [str(launcher), f"{ANSWER_WAIT - 5:g}", "before_tool", host.name, "doctor"]
        try:
            with probing(_thrown_away(home, state)) as name:
                code, _, said = run_briefly(argv, home, ANSWER_WAIT, FAIRLEAD_PROBE=name)
        except OSError:
            continue  # which was told already
        if "has no event 'doctor'" not in said:
            what = f"{launcher} gets no answer from fairlead: {_reason(code, said)}"
            report.add("problem", what, install_again(host, installed))


def ask_in_use(launchers: list[Path], root: Path, report: Report) -> None:
    """Whether fairlead answers each launcher as it is in use: with its real state, and the daemon that is there.

    A daemon that is started for that ends again.
    """
    folder = managed_folder() or runtime_folder()
    was_there = hook_client.listens(str(folder))
    environ = {name: value for name, value in os.environ.items() if name.upper() == name}
    for launcher in launchers:
        argv = [str(launcher), f"{ANSWER_WAIT - 5:g}", "before_tool", "claude_code", "doctor"]
        try:
            code, _, said = run_briefly(argv, root, ANSWER_WAIT, **environ)
        except OSError as error:
            report.add("problem", f"{launcher} cannot be run: {why(error)}", "fairlead install")
            continue
        if "has no event 'doctor'" in said:
            report.add("ok", f"{launcher} gets answers from fairlead")
        else:
            reason = _reason(code, said)
            if "its client" in reason:
                reason += f" ({launcher.parent / 'fairlead_hook.py'})"
            report.add("problem", f"{launcher} gets no answer from fairlead: {reason}", "fairlead upgrade")
    if not was_there:
        if any(map(_starts_daemon, launchers)):
            look_whether_it_started(folder, report)
        stop_daemon(folder, kill=False)  # an agent may use it by now


def _starts_daemon(launcher: Path) -> bool:
    """Whether a launcher was installed to ask a daemon."""
    try:
        runs = runs_of(launcher.read_text("utf-8"))
    except (OSError, UnicodeError):
        return False
    return runs is not None and not (isinstance(runs.installed, Folders) and not runs.installed.daemon)


def _thrown_away(home: Path, state: Path) -> Folders:
    """The folders of a run."""
    return Folders(home=str(home), config=str(home / ".config/fairlead"), state=str(state), run=str(state / "run"))


def _reason(code: int | None, said: str) -> str:
    """Why a launcher gave no answer, in its own words where it has some."""
    told = re.search(r"because (?:fairlead gave no answer: )?(.+?)\.?(?: Run .fairlead doctor.*)?$", said, re.MULTILINE)
    if told:
        return told[1]
    return "it says nothing" if code == 0 else last_line(f"it ended with {code}", said)


class Seen(NamedTuple):
    """What came of having a model ask for a command that is denied."""

    asked: bool
    """Whether the CLI asked the model anything."""
    ran: bool
    told: bool
    """Whether the model was told why not."""
    said: str
    """What became of the run."""


def try_out(host: Host, found: list[Installed], report: Report, root: Path, folder: Path) -> None:
    from ..probe.programs import PROGRAMS

    if host.name not in PROGRAMS:
        report.add("warning", "it cannot be run against a scripted model: whether its hooks fire is not proven")
        return
    if (managed := managed_folder()) is not None:
        report.add("warning", f"the machine's daemon ({managed}) decides: whether hooks fire here is not proven")
        return
    try:
        seen = _probe(host, Path(report.path or ""), found, folder, root)
    except Exception as error:  # whatever a program of somebody else's may do
        report.add("warning", f"{host.title} could not be run, so nothing is proven: {str(error)[:300]}")
        return
    if seen.ran:
        report.fires = False
        todo = f"{install_command(host)}; and look for what turns its hooks off" if report.well else None
        report.add("problem", "a command ran that a hook denies: its hooks do not hold", todo)
    elif seen.told:
        report.fires = True
        report.add("ok", "its hooks fire: a command was denied, and the model was told why")
    elif seen.asked:
        what = "a command did not run, but not because a hook denies it, so nothing is proven"
        report.add("warning", f"{what}: {seen.said}", _try(host))
    else:
        what = f"{host.title} did not ask the scripted model anything, so nothing is proven"
        report.add("warning", f"{what}: {seen.said}", _try(host))


def _try(host: Host) -> str:
    return f"see that `{host.program}` itself works; then: fairlead doctor {host.name}"


def _probe(host: Host, binary: Path, found: list[Installed], folder: Path, root: Path) -> Seen:
    from ..probe.model import Model, Say
    from ..probe.programs import PROGRAMS

    home, project, state = folder / "home", folder / "project", folder / "state"
    project.mkdir(mode=0o700)
    copy_settings(host, found, root, home, project)
    folders = _thrown_away(home, state)
    Path(folders.config).mkdir(parents=True, exist_ok=True)
    Path(folders.config, "fairlead.toml").write_text(_POLICY)
    program = PROGRAMS[host.name](binary, home, project)
    with probing(folders) as name, Model(program.shell(f"touch {PROBE}"), Say("done")) as model:
        program.env["FAIRLEAD_PROBE"] = name
        try:
            ran = program.run(f"run touch {PROBE}", model, timeout=WAIT)
            said = last_line(f"it ended with {ran.code}", ran.text)
        except AssertionError:  # it did not end: but it may have shown what it does by then
            said = f"it did not end within {WAIT:g} s"
    return Seen(bool(model.asked), (project / PROBE).exists(), model.told(REASON), said)


def stop_daemon(run: Path, *, kill: bool = True) -> None:
    """The daemon that a run has started, if it has. It finishes what it has, but with `kill` not for long."""
    pid, socket = None, run / "v1.sock"
    if not socket.exists():
        return
    with suppress(Exception):
        from ..client import Client

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
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()  # it has ended, and nobody has heard of it yet
    return True
