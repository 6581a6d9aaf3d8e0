"""`fairlead doctor`: test whether hooks hold in the agent CLIs on this machine."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..display import escape, paint, print_json
from .loading import add_folder, add_json, quiet_log

if TYPE_CHECKING:
    from ..hosts.clis.doctor import Report
    from ..hosts.clis.mapping import Host


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "doctor",
        help="test whether fairlead and its hooks work on this machine",
        description="Check each agent CLI: its version, fairlead's hooks in its settings, and what could turn them "
        "off. To see whether the hooks fire, run the CLI with its hook settings against a scripted model on this "
        "machine, in a temporary home. Then check fairlead itself: the daemon, its state, and the configuration of "
        "this folder.",
        epilog="Ends with 0 if all is well, with 1 if there is a problem, with 2 if the check could not run.",
    )
    parser.add_argument(
        "cli", nargs="*", metavar="CLI",
        help="which CLIs (default: those on PATH, those with fairlead's hooks, and those in the journal)",
    )  # fmt: skip
    parser.add_argument("--no-run", action="store_true", help="do not run the CLIs, except for their --version")
    add_folder(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the checks. An error ends with 2, because 1 means that a check found a problem."""
    from ..errors import FairleadError
    from ..redaction.redactor import redact_text

    quiet_log()
    try:
        return _run(options)
    except (FairleadError, OSError) as error:
        print(f"fairlead: {escape(redact_text(str(error)), keep_lines=True)}", file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    from ..hosts.clis.doctor import examine, examine_fairlead, hosts_in_journal
    from ..hosts.clis.mapping import GUESTS, host_named, hosts

    root = _root(options.folder)
    named = {host.name: host for host in map(host_named, options.cli)}
    reports = []
    if not named:
        seen = hosts_in_journal(root)
        known = [host for host in hosts() if host.name in seen or _is_here(host, root)]
        named = {host.name: host for host in [*known, *(host_named(name) for name in GUESTS if name in seen)]}
    for host in named.values():
        _progress(f"looking at {host.title} ...")
        reports.append(examine(host, root, run=not options.no_run))
    _progress("looking at fairlead itself ...")
    reports.append(examine_fairlead(root, run=not options.no_run))
    _progress("")
    if options.json:
        print_json([{**_data(report), "well": report.well} for report in reports])
    else:
        _show(reports)
    return 0 if all(report.well for report in reports) else 1


def _root(folder: str) -> Path:
    """The project's folder. A state folder that cannot be read is a finding, not an error."""
    from ..config.layers import find
    from ..errors import FairleadError

    if not Path(folder).is_dir():
        raise FairleadError(f"{folder} is not a folder")
    try:
        return find(folder).workspace or Path(folder).resolve()
    except FairleadError:
        return Path(folder).resolve()


def _progress(what: str) -> None:
    """Show in a terminal what is being checked."""
    if sys.stderr.isatty():
        print(f"\r{what:<40}", end="" if what else "\r", file=sys.stderr, flush=True)


def _data(report: Report) -> dict[str, Any]:
    import msgspec

    data: dict[str, Any] = msgspec.to_builtins(report)
    return data


def _is_here(host: Host, root: Path) -> bool:
    import shutil

    from ..errors import FairleadError
    from ..hosts.clis.install import status
    from ..hosts.clis.install.settings import SCOPES, has_scope

    if shutil.which(host.program):
        return True
    try:
        return any(status(host, scope, root) is not None for scope in SCOPES if has_scope(host, scope))
    except FairleadError:
        return True


_MARKS = {"ok": ("ok  ", "green"), "note": ("    ", "dim"), "warning": ("warn", "yellow"), "problem": ("BAD ", "red")}


def _show(reports: list[Report]) -> None:
    if len(reports) == 1:
        print("There is no agent CLI here that fairlead knows. `fairlead install --help` lists them.")
    for report in reports:
        title = f"{report.title} {report.version or ''}".rstrip() + (" (experimental)" if report.experimental else "")
        print(paint(escape(title), "bold") + (f"  {escape(report.path)}" if report.path else ""))
        for finding in report.findings:
            mark, colour = _MARKS[finding.level]
            print(f"  {paint(mark, colour)}  {escape(finding.what)}")
            if finding.todo:
                print(f"        {paint(f'-> {escape(finding.todo)}', 'bold')}")
        if report.installed:
            print(f"        controls: {_controls(report)}")
            print(f"        last step in the journal: {report.last_seen or 'none'}")
        print()
    bad = [report.title for report in reports if not report.well]
    if bad:
        print(paint(f"Not well: {', '.join(bad)}.", "red"))
    elif any(_warned(report) or (report.fires is None and report.host != "fairlead") for report in reports):
        print("Nothing is wrong, as far as could be seen: mind the warnings.")
    else:
        print("All is well.")


def _warned(report: Report) -> bool:
    return any(finding.level == "warning" for finding in report.findings)


def _controls(report: Report) -> str:
    tool = report.controls.get("before_tool", [])
    rest = {"extend": "before_turn_end", "context": "before_input"}
    held = [
        *tool,
        *(name for name, event in rest.items() if name in report.controls.get(event, []) and name not in tool),
    ]
    return ", ".join(held) or "none"
