"""`fairlead check`: is the configuration sound, and what would run when?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .display import columns, escape, paint, print_json, short
from .loading import add_folder, add_json, read_config, say_never_trusted

if TYPE_CHECKING:
    from ..config.document import Mistake
    from ..config.layers import Config
    from ..config.reading import Configured


Chains = list[tuple[str, list[tuple["Configured", list[str]]]]]
"""Each event, and its hooks in running order with what there is to know of each."""


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "check",
        help="look for mistakes, and show what runs when",
        description="Look for mistakes in all layers, and show each event's hooks in running order. "
        "Ends with 1 if anything is wrong.",
    )
    add_folder(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    config = read_config(options)
    chains = list(_chains(config))
    mistakes, failing = [*config.mistakes, *_live_mistakes(config)], list(_failing(config))
    if options.json:
        print_json({
            "files": [{"layer": layer, "file": str(path)} for layer, path in config.sources],
            "mistakes": mistakes,
            "failing": failing,
            "untrusted": config.untrusted,
            "never_trusted": config.never_trusted,
            "events": {event: [describe(c) | {"notes": notes} for c, notes in chain] for event, chain in chains},
        })  # fmt: skip
    else:
        _show(config, chains, mistakes, failing)
    return 1 if mistakes or failing or config.untrusted else 0


def _live_mistakes(config: Config) -> Iterator[Mistake]:
    """The mistakes in files of projects that are not what was trusted: they wait for `fairlead trust`."""
    from ..config.document import Document
    from ..config.layers import live_layer

    known = {mistake.file for mistake in config.mistakes}
    for project in config.sources.projects:
        if project.key is not None and project.path.is_file() and str(project.path) not in known:
            yield from live_layer(config.sources, Document(project.path)).document.mistakes


def _failing(config: Config) -> Iterator[str]:
    """Hooks of projects that fail, because what they use outside the project is not what was trusted."""
    for configured in config.hooks:
        runner: Any = configured.hook.fn
        while not hasattr(runner, "problem") and hasattr(runner, "fn"):
            runner = runner.fn
        if hasattr(runner, "problem") and (problem := runner.problem()) is not None:
            yield f"hook {configured.name!r} fails: {problem}"


def describe(configured: Configured) -> dict[str, Any]:
    """One hook, as data."""
    hook, entry = configured.hook, configured.entry
    return {
        "name": configured.name, "layer": hook.layer, "file": configured.file, "line": configured.line,
        "form": configured.form, "runs": entry[configured.form], "on": hook.described_events, "phase": hook.phase,
        "priority": hook.priority, "match": entry.get("match", {}), "timeout": hook.timeout,
        "on_failure": None if hook.phase == "observe" else hook.on_failure, "enforce": hook.enforce,
        "locked": configured.locked, "may": entry.get("may"),
    }  # fmt: skip


def _chains(config: Config) -> Iterator[tuple[str, list[tuple[Configured, list[str]]]]]:
    """Each event that has hooks, and those hooks in running order with what there is to know."""
    from ..lifecycle import EVENTS

    placed = list(config.hooks)
    for sequence, configured in enumerate(placed):
        configured.hook.place(sequence)
    placed.sort(key=lambda configured: configured.hook.order)
    for event in EVENTS:
        chain = [(c, _notes(c, event)) for c in placed if event in c.hook.events]
        if chain:
            yield event, chain


def _notes(configured: Configured, event: str) -> list[str]:
    """What of this hook cannot be enforced at this event."""
    from ..lifecycle import EVENTS

    hook, veto = configured.hook, EVENTS[event].veto
    if hook.phase == "observe":
        return []
    notes = [] if hook.enforce else ["only monitored"]
    if hook.on_failure == "closed" and veto not in ("abort", "deny", "stop"):
        notes.append("if it fails, the agent goes on: there is nothing to refuse here")
    if hook.on_failure == "open":
        notes.append("if it fails, the agent goes on: on_failure is open")
    return notes


def _show(config: Config, chains: Chains, mistakes: list[Mistake], failing: list[str]) -> None:
    from ..switches import read_setting

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
    for mistake in mistakes:
        print(paint(escape(str(mistake), keep_lines=True), "red", to=sys.stderr), file=sys.stderr)
    wrong = len(mistakes)
    if wrong:
        print(f"\n{wrong} mistake{'s' * (wrong != 1)}.", file=sys.stderr)
    say_never_trusted(config)
    if not wrong and list(config.sources):
        found = len(config.hooks)
        print(f"\n{found} hook{'s' * (found != 1)}{_state(config, failing)}.")


def _state(config: Config, failing: list[str]) -> str:
    if failing:
        return f" in force, {len(failing)} of them failing"
    return " in force; a fairlead.toml here is not what was trusted" if config.untrusted else ", no mistakes"


def _match(configured: Configured) -> str:
    return " ".join(f"{key}={short(value)}" for key, value in configured.entry.get("match", {}).items())
