"""The doctor: checks fairlead and its hooks in the agent CLIs of a user, and says what to do.

To see whether hooks fire, it runs the CLI itself against a scripted model on loopback, in a temporary home. That home
gets what the user's settings say about hooks. Hooks of other programs do nothing there.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from .... import __version__
from ....config.layers import Config, Sources, find, read
from ....errors import FairleadError
from ....paths import journal_file
from ..install import launcher_for
from ..install.settings import SCOPES
from ..mapping import Host, host_named
from .daemon import look_at_daemon, look_at_session_rules
from .history import hosts_of, look_at_journal, look_at_other_tools, look_for_unknown_programs
from .hooks import (
    find_hooks,
    install_again,
    look_at_hooks,
    look_for_others,
    look_for_served,
    look_for_switches,
    look_for_variables,
)
from .launcher import look_at_launcher, look_at_project_launcher
from .policy import look_at_journal_file, look_at_policy, look_at_state
from .program import look_at_program
from .report import CheckLevel, CheckResult, Report
from .trial import ask_in_use, ask_launcher, stop_daemon, try_out

__all__ = ["CheckLevel", "CheckResult", "Report", "examine", "examine_fairlead", "hosts_in_journal"]


def examine(host: Host, root: Path, *, run: bool = True) -> Report:
    """Check one CLI, for a user who works in `root`. With `run`, run it against a scripted model."""
    report = Report(host=host.name, title=host.title, proven=host.proven, experimental=host.experimental)
    report.controls = {event: sorted(can) for event, can in host.capabilities().items() if can}
    if host.installs is not None:
        look_at_guest(host, root, report)
        return report
    with tempfile.TemporaryDirectory(prefix="fairlead-", ignore_cleanup_errors=True) as name:
        home, state = Path(name) / "home", Path(name) / "state"
        for place in (home, state):
            place.mkdir(mode=0o700)
        look_at_program(host, report, home)
        found = find_hooks(host, report, root)
        look_at_hooks(host, found, report)
        look_for_others(host, found, report, root)
        look_for_switches(host, found, report, root)
        look_for_served(host, found, report)
        if found:
            look_for_variables(host, report, root)
        for installed in found:
            look_at_launcher(launcher_for(installed.scope), report, install_again(host, installed))
            if installed.scope == "project":
                look_at_project_launcher(host, report)
        if (config := _config(root)) is not None:
            look_at_journal(host, config, _journal(config), report)
        try:
            if run and found:
                ask_launcher(host, found, report, home, state)
            if run and found and report.path is not None:
                try_out(host, found, report, root, Path(name))
            elif found:
                why = "--no-run" if not run else f"`{host.program}` is not on PATH"
                report.add("warning", f"whether its hooks fire was not tried ({why})", f"fairlead doctor {host.name}")
        finally:
            stop_daemon(state / "run")
    return report


def look_at_guest(host: Host, root: Path, report: Report) -> None:
    """Check a program that runs the entries of another CLI: whether these are there, and what the journal has."""
    owner = host_named(host.installs or "")
    installed = find_hooks(owner, report, root)
    level: CheckLevel = "ok" if installed else "problem"
    scopes = ", ".join(one.scope for one in installed) or "not installed"
    todo = None if installed else f"fairlead install {owner.name}"
    report.add(level, f"it runs the hooks of {owner.title}: {scopes}", todo)
    report.add("note", "whether its hooks fire cannot be tried here: look for its last step")
    if (config := _config(root)) is not None:
        look_at_journal(host, config, _journal(config), report)


def hosts_in_journal(root: Path) -> frozenset[str]:
    """The programs that fired events lately, also those that run the entries of another CLI."""
    config = _config(root)
    return frozenset() if config is None else hosts_of(_journal(config))


def examine_fairlead(root: Path, *, run: bool = True) -> Report:
    """Check what the hooks of all CLIs depend on: the daemon, the state, the policy of `root`, and trust."""
    report = Report(host="fairlead", title="fairlead", version=__version__)
    look_at_state(report)
    try:
        config = read(find(root))
    except FairleadError as error:  # for example unreadable trust
        report.add("problem", str(error))
    else:
        look_at_policy(config, report)
        look_at_journal_file(_journal(config), config, report)
        look_at_other_tools(config, _journal(config), report)
        look_for_unknown_programs(_journal(config), report)
        look_at_session_rules(config, report)
    answers = look_at_daemon(report)
    launchers = dict.fromkeys(launcher_for(scope) for scope in SCOPES)
    if run and answers and report.well:
        ask_in_use([launcher for launcher in launchers if launcher.exists()], root, report)
    return report


def _config(root: Path) -> Config | None:
    """The configuration of a folder. `examine_fairlead` reports why it cannot be read."""
    try:
        return read(find(root))
    except FairleadError:
        return None


def _journal(config: Config) -> Path:
    """The journal that the system's and the user's configuration name."""
    configured = read(Sources(config.sources.system, config.sources.user)).journal.get("path")
    return Path(configured) if configured else journal_file()
