"""`fairlead hooks`: the configured hooks."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING, Any

from ..display import columns, escape, print_json, short
from .check import describe
from .loading import add_folder, add_json, sound_config

if TYPE_CHECKING:
    from ..config.hook_entry import ConfiguredHook


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "hooks", help="list the configured hooks", description="List the hooks of all layers that run."
    )
    add_folder(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    config = sound_config(options)
    if options.json:
        print_json([describe(configured) for configured in config.hooks])
    elif config.hooks:
        heads = ["NAME", "LAYER", "PHASE", "ON", "RUNS"]
        print(columns([heads, *(_row(configured) for configured in config.hooks)]))
    else:
        print("No hooks. Write some with `fairlead init`.")
    return 0


def _row(configured: ConfiguredHook) -> list[str]:
    hook, runs = configured.hook, configured.entry[configured.form]
    shown = shlex.join(runs) if isinstance(runs, list) else runs
    return [
        escape(configured.name),
        hook.layer,
        hook.phase,
        hook.described_events,
        f"{configured.form} {short(shown, 60)}",
    ]
