"""`fairlead install` and `fairlead uninstall`: put hooks into agent CLIs, and take them out."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..display import escape, paint, print_json
from .consent import need_a_person, refuse_agents
from .loading import add_folder, add_json

if TYPE_CHECKING:
    from ..folders import Machine
    from ..hosts.clis.install import Plan
    from ..hosts.clis.mapping import Host
    from ..paths import Folders

SHORTEST, LONGEST = 5.0, 3600.0
BY_HAND = 3
"""The exit code of `install` if it cannot write a file, and prints the text for it instead."""
_COLOURS = {"wrote": "green", "removed": "yellow", "cleaned": "yellow", "unchanged": "dim", "left": "red"}


def add_to(commands: Any) -> None:
    install: argparse.ArgumentParser = commands.add_parser(
        "install",
        help="put hooks into an agent CLI",
        description="Add hooks to the settings of agent CLIs, so that fairlead decides on each step. Other settings "
        "stay. A copy of each file is kept, and `fairlead uninstall` undoes everything. The folders of configuration, "
        "state and socket, and PATH, are recorded: no agent CLI can change them.",
        epilog=f"Ends with 0; with {BY_HAND} if a file cannot be written, and its text was printed instead; with 1 if "
        "nothing was changed.",
    )
    _add_common(install)
    install.add_argument(
        "--timeout", type=float, metavar="SECONDS", help="how long the CLI waits for a hook (default: 120)"
    )
    install.add_argument(
        "--daemon", action=argparse.BooleanOptionalAction, default=None,
        help="decide in a daemon (the default), or in a process of its own for each step; remembered",
    )  # fmt: skip
    install.add_argument(
        "--home", metavar="FOLDER",
        help="your home, if the user database has none; with --scope managed, the folder with the homes of users that "
        "the user database does not have, each named by the user id",
    )  # fmt: skip
    install.add_argument(
        "--monitor", action="store_true", help="record what hooks would do, without effect, as `fairlead monitor` does"
    )
    install.set_defaults(run=run_install)
    uninstall: argparse.ArgumentParser = commands.add_parser(
        "uninstall",
        help="take hooks out of an agent CLI",
        description="Take out exactly what `fairlead install` has written. Everything else in the files stays.",
    )
    _add_common(uninstall)
    uninstall.set_defaults(run=run_uninstall)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "cli", nargs="+", metavar="CLI",
        help="claude, codex, gemini, qwen, copilot, droid, cline, opencode, or (experimental) cursor, windsurf, kiro, "
        "goose; or all, for those on PATH",
    )  # fmt: skip
    parser.add_argument(
        "--scope", choices=("user", "project", "managed"), default="user",
        help="for you (the default), for a project, or for all users of this machine (as root)",
    )  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="only show what would change")
    add_folder(parser)
    add_json(parser)


def run_install(options: argparse.Namespace) -> int:
    _refuse_windows()
    from ..errors import FairleadError
    from ..hosts.clis.install import carry_out, plan_install

    if options.timeout is not None and not SHORTEST <= options.timeout <= LONGEST:
        raise FairleadError(f"--timeout must be from {SHORTEST:g} to {LONGEST:g} seconds, not {options.timeout:g}")
    if options.monitor and not options.dry_run:
        need_a_person("switch hooks off")
    folders = _folders(options)
    found, root = _hosts(options.cli, installed=False), _root(options)
    plan = plan_install(found, options.scope, root, folders, timeout=options.timeout, dry_run=options.dry_run)
    plan.warnings += [*_missing_packages(), *_missing_programs(root)]
    if not options.dry_run:
        if any(change.outdated for change in plan.changes):
            refuse_agents("change hooks that are installed")
        if options.monitor:
            _monitor()
        carry_out(plan)
    _show(plan, found, options)
    return BY_HAND if any(change.snippet is not None for change in plan.changes) else 0


def _refuse_windows() -> None:
    """Raise on Windows, before modules are imported that do not work there."""
    from ..errors import FairleadError

    if not _is_posix():
        raise FairleadError(
            "agent CLIs start fairlead by a shell script, which this system cannot run: use WSL. Nothing was changed."
        )


def _is_posix() -> bool:
    import os

    return os.name == "posix"


def _folders(options: argparse.Namespace) -> Folders | Machine:
    """The folders to record. An agent cannot change folders that are recorded already."""
    import os

    from ..agent_process import agent_around
    from ..errors import FairleadError
    from ..folders import home_in_database
    from ..hosts.clis.install import folders_for, recorded_for

    if options.home is not None and not os.path.isabs(options.home):
        raise FairleadError(f"--home must be an absolute path, not {options.home!r}")
    if options.home is not None and options.scope != "managed":
        if home_in_database() is not None:
            raise FairleadError("--home is for users without an entry in the user database; set HOME instead")
        os.environ["HOME"] = options.home
    recorded = recorded_for(options.scope)
    if recorded is not None and agent_around() is not None:
        if options.daemon not in (None, recorded.daemon) and not options.dry_run:
            refuse_agents("switch the daemon on or off")
        return recorded
    return folders_for(options.scope, daemon=options.daemon, base=options.home or "")


def run_uninstall(options: argparse.Namespace) -> int:
    _refuse_windows()
    from ..hosts.clis.install import carry_out, plan_uninstall

    if not options.dry_run:
        refuse_agents("uninstall hooks")
    found, root = _hosts(options.cli, installed=True), _root(options)
    plan = plan_uninstall(found, options.scope, root, dry_run=options.dry_run)
    if not options.dry_run:
        carry_out(plan)
    _show(plan, found, options)
    return 0


def _hosts(names: list[str], *, installed: bool) -> list[Host]:
    """The CLIs by name, each once. `all`: those on PATH, or with hooks of fairlead."""
    import shutil

    from ..errors import FairleadError
    from ..hosts.clis.install import read_records
    from ..hosts.clis.mapping import host_named, hosts

    found: dict[str, Host] = {}
    for name in names:
        if name != "all":
            host = host_named(name)
            if host.installs is not None:
                owner = host_named(host.installs)
                raise FairleadError(f"{host.title} runs the hooks of {owner.title}: fairlead install {owner.name}")
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


def _missing_programs(root: Path) -> list[str]:
    """Warnings about hooks that cannot run here. Raises if this interpreter cannot run the policy."""
    from ..config.document import ConfigError
    from ..config.layers import find, read, unavailable_hooks
    from ..extras import MissingPackage

    config = read(find(root))
    unreadable = [c for c in config.hooks if c.unavailable and isinstance(c.unavailable.error, MissingPackage)]
    if problems := [*config.startup_mistakes, *unavailable_hooks(unreadable)]:
        print("fairlead: nothing was installed, because the policy of this folder cannot run", file=sys.stderr)
        raise ConfigError(problems)
    return [f"{mistake.file}:{mistake.line}: {mistake.problem}" for mistake in config.unavailable]


def _missing_packages() -> list[str]:
    """A warning if this interpreter cannot run the daemon."""
    from importlib.util import find_spec

    from ..extras import install_command

    if all(find_spec(module) for module in ("uvicorn", "starlette", "httpcore")):
        return []
    problem = (
        "the daemon cannot run, so each step of an agent starts fairlead anew, nothing is remembered of a session, and "
        "`fairlead approvals` gets no questions"
    )
    return [f"{problem}; to have it, run: {install_command('serve')}"]


def _monitor() -> None:
    from contextlib import redirect_stdout

    from . import switch

    with redirect_stdout(sys.stderr):
        switch.run(argparse.Namespace(mode="monitor", time=None, reason="fairlead install --monitor"))


# --- output ---------------------------------------------------------------------------------------


def _show(plan: Plan, found: list[Host], options: argparse.Namespace) -> None:
    if options.json:
        print_json(_data(plan, found, options))
        return
    for change in plan.changes:
        if options.dry_run and change.changes:
            _show_diff(change.diff())
        else:
            print(f"{paint(f'{change.action:<9}', _COLOURS[change.action])} {escape(str(change.path))}")
    for change in plan.changes:
        if change.snippet is not None:
            print(f"\n{escape(str(change.path))} cannot be written here. Add this to it:\n")
            print(escape(change.snippet, keep_lines=True))
    for warning in plan.warnings:
        print(f"fairlead: warning: {escape(warning)}", file=sys.stderr)
    for line in _next(plan, found, options):
        print(escape(line))


def _show_diff(diff: str) -> None:
    from ..redaction.redactor import redact_text

    for line in redact_text(diff).splitlines():
        colour = {"+": "green", "-": "red", "@": "blue"}.get(line[:1])
        print(paint(escape(line), colour) if colour else escape(line))


def _next(plan: Plan, found: list[Host], options: argparse.Namespace) -> list[str]:
    """What the user does next."""
    from ..hosts.clis.install.settings import settings_of

    names = " ".join(host.name.removesuffix("_code") for host in found)
    if options.dry_run:
        return ["Nothing was changed."]
    if not plan.installs:
        return ["Open sessions keep their hooks: restart them."]
    lines = [
        f"{host.title} is experimental: fairlead was never tested with the program as a whole."
        for host in found
        if host.experimental
    ]
    lines += [note for host in found if (note := settings_of(host).notes.get(plan.scope))]
    if plan.scope == "managed":
        lines += [_served(host) for host in found if settings_of(host).merge_setting]
    if plan.scope == "project":
        lines.append(
            "These files name no folder of yours: everyone who works on the project runs `fairlead install`, too."
        )
    return [*lines, f"Next: fairlead doctor {names}"]


def _served(host: Host) -> str:
    """A note for organizations that serve settings: the managed file alone is not enough there."""
    from ..hosts.clis.install.settings import settings_of

    fragment = json.dumps(settings_of(host).merge_setting)
    return (
        f"If your organization serves settings to {host.title} from its admin console, add this there, or no hook "
        f"of the managed file runs: {fragment}"
    )


def _data(plan: Plan, found: list[Host], options: argparse.Namespace) -> dict[str, Any]:
    from ..hosts.clis.install.settings import settings_of
    from ..redaction.redactor import redact_text

    files: list[dict[str, Any]] = []
    for change in plan.changes:
        about = {"host": change.host, "file": str(change.path), "action": change.action}
        if options.dry_run:
            files.append(about | {"diff": redact_text(change.diff())})
        else:
            backup = change.record.backup if change.record is not None else None
            files.append(about | {"backup": backup, "snippet": change.snippet})
    return {
        "scope": plan.scope, "dry_run": options.dry_run, "launcher": str(plan.launcher), "files": files,
        "warnings": plan.warnings, "experimental": [host.name for host in found if host.experimental],
        "console": {
            host.name: merge
            for host in found
            if plan.scope == "managed" and (merge := settings_of(host).merge_setting)
        },
        "next": _next(plan, found, options),
    }  # fmt: skip
