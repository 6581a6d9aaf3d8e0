"""`fairlead install` and `fairlead uninstall`: have an agent CLI put its steps to fairlead, or no longer."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .consent import need_a_person, refuse_agents
from .display import escape, paint, print_json
from .loading import add_folder, add_json

if TYPE_CHECKING:
    from ..hosts.host import Host
    from ..hosts.installing import Plan

SHORTEST, LONGEST = 5.0, 3600.0
_COLOURS = {"wrote": "green", "removed": "yellow", "cleaned": "yellow", "unchanged": "dim"}


def add_to(commands: Any) -> None:
    install: argparse.ArgumentParser = commands.add_parser(
        "install",
        help="put hooks into an agent CLI",
        description="Have agent CLIs put each step to fairlead: write it into their settings, beside whatever is "
        "there. A copy of each file is kept, and `fairlead uninstall` undoes it all.",
    )
    _add_common(install)
    install.add_argument("--timeout", type=float, metavar="SECONDS", help="what the CLI gives a hook (default: 120)")
    install.add_argument("--monitor", action="store_true", help="only watch, as `fairlead monitor` does")
    install.set_defaults(run=run_install)
    uninstall: argparse.ArgumentParser = commands.add_parser(
        "uninstall",
        help="take hooks out of an agent CLI",
        description="Take out just what `fairlead install` has written. Whatever else was written since stays.",
    )
    _add_common(uninstall)
    uninstall.set_defaults(run=run_uninstall)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "cli", nargs="+", metavar="CLI",
        help="claude, codex, gemini, qwen, copilot, droid, cline, opencode, or (experimental) cursor, windsurf, kiro, "
        "goose; or all that are here",
    )  # fmt: skip
    parser.add_argument(
        "--scope", choices=("user", "project", "managed"), default="user",
        help="for you (the default), for a project, or for everybody on this machine (as root)",
    )  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="only show what would change")
    add_folder(parser)
    add_json(parser)


def run_install(options: argparse.Namespace) -> int:
    from ..errors import FairleadError
    from ..hosts.installing import carry_out, plan_install

    if options.timeout is not None and not SHORTEST <= options.timeout <= LONGEST:
        raise FairleadError(f"--timeout must be from {SHORTEST:g} to {LONGEST:g} seconds, not {options.timeout:g}")
    if options.monitor and not options.dry_run:
        need_a_person("switch hooks off")
    found, root = _hosts(options.cli, installed=False), _root(options)
    plan = plan_install(found, options.scope, root, timeout=options.timeout, dry_run=options.dry_run)
    if not options.dry_run:
        if any(change.outdated for change in plan.changes):
            refuse_agents("change hooks that are installed")
        if options.monitor:
            _monitor()
        carry_out(plan)
    _show(plan, found, options)
    return 0


def run_uninstall(options: argparse.Namespace) -> int:
    from ..hosts.installing import carry_out, plan_uninstall

    if not options.dry_run:
        refuse_agents("uninstall hooks")
    found, root = _hosts(options.cli, installed=True), _root(options)
    plan = plan_uninstall(found, options.scope, root, dry_run=options.dry_run)
    if not options.dry_run:
        carry_out(plan)
    _show(plan, found, options)
    return 0


def _hosts(names: list[str], *, installed: bool) -> list[Host]:
    """The CLIs that are meant, each once; `all` are those that can be run, or that have hooks of ours."""
    import shutil

    from ..errors import FairleadError
    from ..hosts.host import host_named, hosts
    from ..hosts.installing import read_records

    found: dict[str, Host] = {}
    for name in names:
        if name != "all":
            host = host_named(name)
            found[host.name] = host
            continue
        known = {record.host for record in read_records().values()} if installed else set()
        here = [host for host in hosts() if shutil.which(host.program) or host.name in known]
        if not here:
            raise FairleadError("none of the agent CLIs that fairlead knows is on PATH; name one")
        found |= {host.name: host for host in here}
    return list(found.values())


def _root(options: argparse.Namespace) -> Path:
    """The project's folder."""
    from ..config.layers import find

    return find(options.folder).workspace or Path(options.folder).resolve()


def _monitor() -> None:
    from contextlib import redirect_stdout

    from . import switch

    with redirect_stdout(sys.stderr):
        switch.run(argparse.Namespace(mode="monitor", time=None, reason="fairlead install --monitor"))


# --- showing --------------------------------------------------------------------------------------


def _show(plan: Plan, found: list[Host], options: argparse.Namespace) -> None:
    if options.json:
        print_json(_data(plan, found, options))
        return
    for change in plan.changes:
        if options.dry_run and change.changes:
            _show_diff(change.diff())
        else:
            print(f"{paint(f'{change.action:<9}', _COLOURS[change.action])} {escape(str(change.path))}")
    for warning in plan.warnings:
        print(f"fairlead: warning: {escape(warning)}", file=sys.stderr)
    for line in _next(plan, found, options):
        print(escape(line))


def _show_diff(diff: str) -> None:
    from ..redaction import redact_text

    for line in redact_text(diff).splitlines():
        colour = {"+": "green", "-": "red", "@": "blue"}.get(line[:1])
        print(paint(escape(line), colour) if colour else escape(line))


def _next(plan: Plan, found: list[Host], options: argparse.Namespace) -> list[str]:
    """What to do then."""
    from ..hosts.settings import SETTINGS

    names = " ".join(host.name.removesuffix("_code") for host in found)
    if options.dry_run:
        return ["Nothing was changed."]
    if not plan.installs:
        return ["A session that is open keeps its hooks until it ends: start it anew."]
    lines = [f"{host.title} is experimental: this is from its documents." for host in found if host.experimental]
    lines += [said for host in found if (said := SETTINGS[host.name].says.get(plan.scope))]
    if plan.scope == "project":
        lines.append("These files name the launcher of this machine: keep them out of the repository.")
    return [*lines, f"Next: fairlead doctor {names}"]


def _data(plan: Plan, found: list[Host], options: argparse.Namespace) -> dict[str, Any]:
    from ..redaction import redact_text

    files: list[dict[str, Any]] = []
    for change in plan.changes:
        about = {"host": change.host, "file": str(change.path), "action": change.action}
        if options.dry_run:
            files.append(about | {"diff": redact_text(change.diff())})
        else:
            files.append(about | {"backup": change.record.backup if change.record is not None else None})
    return {
        "scope": plan.scope, "dry_run": options.dry_run, "launcher": str(plan.launcher), "files": files,
        "warnings": plan.warnings, "experimental": [host.name for host in found if host.experimental],
        "next": _next(plan, found, options),
    }  # fmt: skip
