"""`fairlead schema`: the JSON Schemas of the wire."""

from __future__ import annotations

import argparse
from typing import Any

from .display import print_json


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "schema",
        help="print the JSON Schemas of envelopes and verdicts",
        description="Print the JSON Schema of what a hook is given (the envelope) and may answer (the verdict).",
    )
    parser.add_argument("event", nargs="?", help="of this event only")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--envelope", dest="part", action="store_const", const="envelope", help="only the envelope's")
    which.add_argument("--verdict", dest="part", action="store_const", const="verdict", help="only the verdict's")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..lifecycle import event_named
    from ..wire import schemas

    found = schemas()
    if options.part:
        parts: Any = {name: both[options.part] for name, both in found.items()}
    else:
        parts = found
    print_json(parts[event_named(options.event).name] if options.event else parts)
    return 0
