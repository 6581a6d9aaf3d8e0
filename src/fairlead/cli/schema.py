"""`fairlead schema`: the JSON Schemas of the wire, and of fairlead.toml."""

from __future__ import annotations

import argparse
from typing import Any

from .display import print_json


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "schema",
        help="print the JSON Schemas of envelopes and verdicts, or of fairlead.toml",
        description="Print the JSON Schema of what a hook is given (the envelope) and may answer (the verdict), or "
        "with `config` that of fairlead.toml, by which editors complete it.",
    )
    parser.add_argument("event", nargs="?", help="of this event only, or `config`")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--envelope", dest="part", action="store_const", const="envelope", help="only the envelope's")
    which.add_argument("--verdict", dest="part", action="store_const", const="verdict", help="only the verdict's")
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
