"""`fairlead export`: the journal, for other programs."""

from __future__ import annotations

import argparse
from typing import Any

from .display import print_line
from .journals import add_filters, add_journal, filter_of, journal_of, json_of


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "export",
        help="the journal, for other programs",
        description="Write records to stdout, one JSON object a line: as they are, or as OpenTelemetry spans in the "
        "form that a collector reads from files (OTLP).",
    )
    parser.add_argument("--format", choices=("jsonl", "otlp"), default="jsonl", help="default: %(default)s")
    add_journal(parser)
    add_filters(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..journal.export import otlp
    from ..journal.reading import Reader

    with Reader(journal_of(options)) as reader:
        for record in reader.records(filter_of(options)):
            if options.format == "jsonl":
                print_line(json_of(record))
            elif not record.is_note:
                print_line(otlp(record))
    return 0
