"""`fairlead doctor`: do our hooks really hold in the agent CLIs here?"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .display import escape, paint, print_json
from .loading import add_folder, add_json

if TYPE_CHECKING:
    from ..doctor import Report
    from ..hosts.host import Host


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "doctor",
        help="see whether hooks really hold in the agent CLIs here",
        description="Look at each agent CLI: its version, our hooks in it, what could turn them off, and whether they "
        "really fire: it is run against a scripted model on this machine, with a copy of its settings.",
        epilog="Ends with 0 if all is well, with 1 if something is not, with 2 if it could not look.",
    )
    parser.add_argument("cli", nargs="*", help="which (default: those that are installed here, or have our hooks)")
    parser.add_argument("--no-run", action="store_true", help="only look, and run nothing")
    add_folder(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..doctor import examine
    from ..hosts.host import host_named, hosts

    root = Path(options.folder).resolve()
    named = [host_named(name) for name in options.cli]
    reports = []
    for host in named or hosts():
        if not named and not _is_here(host, root):
            continue
        if sys.stderr.isatty() and not options.no_run:
            print(f"looking at {host.title} ...", end="\r", file=sys.stderr, flush=True)
        reports.append(examine(host, root, run=not options.no_run))
    if options.json:
        print_json([{**_data(report), "well": report.well} for report in reports])
    else:
        _show(reports)
    return 0 if all(report.well for report in reports) else 1


def _data(report: Report) -> dict[str, Any]:
    import msgspec

    data: dict[str, Any] = msgspec.to_builtins(report)
    return data


def _is_here(host: Host, root: Path) -> bool:
    import shutil

    from ..errors import FairleadError
    from ..hosts.installing import status
    from ..hosts.settings import SCOPES, has_scope

    if shutil.which(host.program):
        return True
    try:
        return any(status(host, scope, root) is not None for scope in SCOPES if has_scope(host, scope))
    except FairleadError:
        return True


_MARKS = {"ok": ("ok  ", "green"), "note": ("    ", "dim"), "warning": ("warn", "yellow"), "problem": ("BAD ", "red")}


def _show(reports: list[Report]) -> None:
    if not reports:
        print("There is no agent CLI here that fairlead knows. `fairlead install --help` lists them.")
    for report in reports:
        version = f" {report.version}" if report.version else ""
        print(paint(f"{report.title}{version}", "bold") + (f"  {report.path}" if report.path else ""))
        for finding in report.findings:
            mark, colour = _MARKS[finding.level]
            print(f"  {paint(mark, colour)}  {escape(finding.what)}")
            if finding.todo:
                print(f"        {paint(escape(finding.todo), 'bold')}")
        if report.installed:
            print(f"        controls: {_controls(report)}")
        print()
    bad = [report.title for report in reports if not report.well]
    if bad:
        print(paint(f"Not well: {', '.join(bad)}.", "red"))
    elif reports:
        print("All is well.")


def _controls(report: Report) -> str:
    tool = report.controls.get("before_tool", [])
    rest = {"extend": "before_turn_end", "context": "before_input"}
    held = [
        *tool,
        *(name for name, event in rest.items() if name in report.controls.get(event, []) and name not in tool),
    ]
    return ", ".join(held) or "none"
