"""`fairlead upgrade`: bring launcher, hooks, daemon and journal to this version."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..display import escape, paint, print_json
from .consent import refuse_agents
from .loading import add_folder, add_json, quiet_log

if TYPE_CHECKING:
    from ..hosts.clis.install.upgrade import UpgradePart

_COLOURS = {"current": "dim", "outdated": "yellow", "upgraded": "green", "left": "red"}


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "upgrade",
        help="bring hooks, daemon and state to this version",
        description="Run this after you installed another version of fairlead. It rewrites the launcher and the hooks "
        "in the settings of agent CLIs, ends a daemon of another version, and converts the journal. It lists what only "
        "you can decide.",
        epilog="Ends with 0 if everything has this version, with 1 if something is left to do.",
    )
    parser.add_argument("--check", "--dry-run", action="store_true", help="only show what would be done")
    add_folder(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from .. import __version__
    from ..hosts.clis.install.upgrade import look, upgrade

    quiet_log()
    planned = look(Path(options.folder).resolve())
    parts = [part for part, _ in planned]
    if not options.check:
        if any(part.state == "outdated" for part in parts):
            refuse_agents("upgrade what is installed")
        parts = upgrade(planned)
    done = all(part.done for part in parts)
    if options.json:
        print_json({"version": __version__, "done": done, "parts": [_data(part) for part in parts]})
    else:
        _show(parts, done, options.check, __version__)
    return 0 if done else 1


def _data(part: UpgradePart) -> dict[str, Any]:
    import msgspec

    data: dict[str, Any] = msgspec.to_builtins(part)
    return data


def _show(parts: list[UpgradePart], done: bool, check: bool, version: str) -> None:
    for part in parts:
        what = f"{part.name:<9} {escape(part.where)}: {escape(part.says)}"
        print(f"{paint(f'{part.state:<9}', _COLOURS[part.state])} {what}")
        if part.todo:
            print(f"{'':<9} {paint(f'-> {escape(part.todo)}', 'bold')}")
    if not parts:
        print("Nothing of fairlead is installed here. Start with `fairlead install`.")
    elif done:
        print(f"Everything has version {version}.")
    elif check:
        print("Nothing was changed. `fairlead upgrade` does it.")
    else:
        print("Something is left to do.")
