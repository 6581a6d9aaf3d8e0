"""`fairlead check`: find mistakes in the configuration, and show what runs when."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..display import columns, escape, paint, print_json, short
from . import exceptions
from .loading import add_folder, add_json, quiet_log, read_config, say_never_trusted

if TYPE_CHECKING:
    from ..config.document import Mistake
    from ..config.hook_entry import ConfiguredHook
    from ..config.layers import Config
    from ..hosts.clis.chains import EventChain


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "check",
        help="find mistakes, and show what runs when",
        description="Find mistakes in all layers, and show the hooks of each event in running order.",
        epilog="Ends with 0 if everything is sound and in force. Ends with 1 for a mistake, for a hook that cannot run "
        "on this machine, and for a project's file that you have not trusted as it is. With --ci, it ends with 1 only "
        "for a mistake in the files, or for a file of the repository that is missing.",
    )
    parser.add_argument(
        "--ci", action="store_true", help="check a project's files as they are, trusted or not; trust nothing"
    )
    add_folder(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..hosts.clis.chains import chains_of

    if options.ci:
        config, mistakes, notes = read_for_ci(options.folder)
        failing, unavailable = [], []
    else:
        config = read_config(options)
        mistakes, failing, notes = [*config.mistakes, *_live_mistakes(config)], list(_failing(config)), []
        unavailable = config.unavailable
        notes += [f"{mistake.file}:{mistake.line}: {mistake.problem}" for mistake in config.approvals.unavailable]
    notes += exceptions.expiry_notes(config)
    quiet_log()
    chains = list(chains_of(config, options.folder))
    if options.json:
        print_json({
            "files": [{"layer": layer, "file": str(path)} for layer, path in config.sources],
            "mistakes": mistakes,
            "unavailable": unavailable,
            "failing": failing,
            "notes": notes,
            "untrusted": config.untrusted,
            "never_trusted": config.never_trusted,
            "events": {event: [describe(c) | {"notes": notes} for c, notes in chain] for event, chain in chains},
        })  # fmt: skip
    else:
        _show(config, chains, mistakes, unavailable, failing, options.ci)
        for note in notes:
            print(paint(f"note: {escape(note)}", "yellow"))
    return 1 if mistakes or unavailable or failing or config.untrusted else 0


def read_for_ci(folder: str) -> tuple[Config, list[Mistake], list[str]]:
    """Read the files as they are: the configuration, its mistakes, and what this machine lacks."""
    import os
    from pathlib import Path

    from ..config.document import Document, Mistake
    from ..config.hook_entry import variables
    from ..config.layers import find, read_live
    from ..config.survey import survey
    from ..errors import FairleadError

    sources = find(folder)
    files = [Document(project.path) for project in sources.projects if project.path.is_file()]
    if not files:
        raise FairleadError(f"there is no fairlead.toml in {Path(folder).resolve()} or above it")
    unset = sorted(set().union(*(variables(file.data) for file in files)) - os.environ.keys())
    config = read_live(sources, files, {**os.environ, **dict.fromkeys(unset, "unset")})
    mistakes, notes = config.mistakes, [f"{name} is not set here" for name in unset]
    roots = [Path(file.path).parent for file in files]
    lacking = [(hook.where, hook.unavailable.error.missing) for hook in config.hooks if hook.unavailable is not None]
    for (where, missing), mistake in zip(lacking, config.unavailable, strict=True):
        if any(Path(missing).is_relative_to(root) for root in roots):
            mistakes.append(mistake)
        else:
            notes.append(f"{where}: {mistake.problem}")
    for file in files if not mistakes else ():
        try:
            survey(file, Path(file.path).parent)
        except FairleadError as error:  # it cannot be trusted as it is
            mistakes.append(Mistake(file.path, 1, 1, "", str(error)))
    return config, mistakes, notes


def _live_mistakes(config: Config) -> Iterator[Mistake]:
    """The mistakes in files of projects that changed since they were trusted."""
    from ..config.document import Document
    from ..config.layers import live_layer

    known = {mistake.file for mistake in config.mistakes}
    for project in config.sources.projects:
        if project.key is not None and project.path.is_file() and str(project.path) not in known:
            yield from live_layer(config.sources, Document(project.path)).document.mistakes


def _failing(config: Config) -> Iterator[str]:
    """Hooks of projects that fail, because a file they use outside the project has changed."""
    for configured in (configured for configured in config.hooks if configured.unavailable is None):
        runner: Any = configured.hook.fn
        while not hasattr(runner, "problem") and hasattr(runner, "fn"):
            runner = runner.fn
        if hasattr(runner, "problem") and (problem := runner.problem()) is not None:
            yield f"hook {configured.name!r} fails: {problem}"


def describe(configured: ConfiguredHook) -> dict[str, Any]:
    """One hook, as data."""
    hook, entry = configured.hook, configured.entry
    return {
        "name": configured.name, "layer": hook.layer, "file": configured.file, "line": configured.line,
        "form": configured.form, "runs": entry[configured.form], "on": hook.described_events, "phase": hook.phase,
        "priority": hook.priority, "match": entry.get("match", {}), "timeout": hook.timeout,
        "on_failure": None if hook.phase == "observe" else hook.on_failure, "enforce": hook.enforce,
        "locked": configured.locked, "may": entry.get("may"),
    }  # fmt: skip


def _show(
    config: Config,
    chains: list[EventChain],
    mistakes: list[Mistake],
    unavailable: list[Mistake],
    failing: list[str],
    ci: bool,
) -> None:
    from ..enforcement import read_setting

    for layer, path in config.sources:
        print(f"{layer:<8} {escape(str(path))}")
    if not list(config.sources):
        print("No fairlead.toml found here, in the user's folder or in /etc. Write one with `fairlead init`.")
    for event, chain in chains:
        print(f"\n{paint(event, 'bold')}")
        rows = [
            [c.hook.phase, escape(c.name), c.form, f"{c.hook.layer} {escape(c.where)}", _match(c)] for c, _ in chain
        ]
        for (_, notes), line in zip(chain, columns(rows, "  ").splitlines(), strict=True):
            print(line)
            for note in notes:
                print(paint(f"      {note}", "yellow"))
    if not read_setting().enforced:
        print(paint("\nHooks are only watched now: `fairlead enforce` ends that.", "yellow"))
    for line in failing:
        print(paint(f"\n{escape(line)}", "red"))
    for mistake in (*mistakes, *unavailable):
        print(paint(escape(str(mistake), keep_lines=True), "red", to=sys.stderr), file=sys.stderr)
    wrong = len(mistakes)
    if wrong:
        print(f"\n{wrong} mistake{'s' * (wrong != 1)}.", file=sys.stderr)
    if not ci:
        say_never_trusted(config)
    if not wrong and list(config.sources):
        found = len(config.hooks)
        print(f"\n{found} hook{'s' * (found != 1)}{_state(config, unavailable, failing)}.")


def _state(config: Config, unavailable: list[Mistake], failing: list[str]) -> str:
    if unavailable:
        return f" in force, {len(unavailable)} of them cannot run here"
    if failing:
        return f" in force, {len(failing)} of them failing"
    return " in force; a fairlead.toml here is not what was trusted" if config.untrusted else ", no mistakes"


def _match(configured: ConfiguredHook) -> str:
    return " ".join(f"{key}={short(value)}" for key, value in configured.entry.get("match", {}).items())
