"""`fairlead export`: write the journal as JSON for other programs."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import Any

from ..display import print_line
from .journals import add_filters, add_journals, filter_of, json_of, open_journals


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "export",
        help="write the journal as JSON for other programs",
        description="Write records to stdout, one JSON object per line: as they are, or as OpenTelemetry spans in the "
        "format that a collector reads from files (OTLP).",
    )
    parser.add_argument("--format", choices=("jsonl", "otlp"), default="jsonl", help="default: %(default)s")
    add_journals(parser)
    add_filters(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..journal.export import otlp

    with ExitStack() as held:
        readers = open_journals(options, held)
        for reader in readers:
            for record in reader.records(filter_of(options)):
                if options.format == "jsonl":
                    print_line(json_of(record, reader.path if len(readers) > 1 else None))
                elif not record.is_note:
                    print_line(otlp(record))
    return 0
