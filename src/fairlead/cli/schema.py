"""`fairlead schema`: print the JSON Schemas of envelopes, verdicts and fairlead.toml."""

from __future__ import annotations

import argparse
from typing import Any

from ..display import print_json


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "schema",
        help="print the JSON Schemas of envelopes and verdicts, or of fairlead.toml",
        description="Print the JSON Schemas of what a hook receives (the envelope) and returns (the verdict); or, with "
        "`config`, that of fairlead.toml, for completion in editors.",
    )
    parser.add_argument("event", nargs="?", help="only this event; or `config`")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--envelope", dest="part", action="store_const", const="envelope", help="only the envelope")
    which.add_argument("--verdict", dest="part", action="store_const", const="verdict", help="only the verdict")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..lifecycle import event_named
    from ..wire import schemas

    if options.event == "config":
        from ..config.schema import config_schema

        print_json(config_schema())
        return 0
    found = schemas()
    if options.part:
        parts: Any = {name: both[options.part] for name, both in found.items()}
    else:
        parts = found
    print_json(parts[event_named(options.event).name] if options.event else parts)
    return 0
