"""`fairlead log` and `fairlead tail`: list decisions, and follow them."""

from __future__ import annotations

import argparse
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from heapq import merge
from typing import TYPE_CHECKING, Any

from ..display import print_json, print_line
from .journals import (
    add_filters,
    add_journal,
    add_journals,
    filter_of,
    journal_of,
    json_of,
    line_of,
    open_journals,
)
from .loading import host_name

if TYPE_CHECKING:
    from ..journal.reading import Filter, Reader, Record


def add_to(commands: Any) -> None:
    log: argparse.ArgumentParser = commands.add_parser(
        "log", help="list the decisions", description="List the decisions in the journal, the newest last."
    )
    add_journals(log)
    add_filters(log)
    log.add_argument("-n", "--limit", type=_many, default=50, metavar="N", help="the newest N (default: 50; 0: all)")
    log.set_defaults(run=run)
    tail: argparse.ArgumentParser = commands.add_parser(
        "tail",
        help="follow the decisions as they are made",
        description="Show decisions as they are made, until Ctrl-C. A terminal rings its bell when a hook asks.",
    )
    add_journal(tail)
    add_filters(tail)
    tail.add_argument("-n", "--limit", type=_many, default=10, metavar="N", help="begin with the newest N (default 10)")
    tail.set_defaults(run=follow)


def _many(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of records")
    return int(text)


def run(options: argparse.Namespace) -> int:
    with ExitStack() as held:
        readers = open_journals(options, held)
        several = len(readers) > 1
        found = _merged(readers, filter_of(options), options.limit or None)
        if options.json:
            print_json([json_of(record, reader.path if several else None) for reader, record in found])
            return 0
        nothing = True
        for _, record in found:
            nothing = False
            print(line_of(record, machine=several))
        if nothing:
            host_name(options.host, "; the journal has nothing of it either")
            print("The journal has no such records.", file=sys.stderr)
    return 0


def _merged(readers: list[Reader], which: Filter, limit: int | None) -> Iterator[tuple[Reader, Record]]:
    """Merge the records of several journals by time, each in its own order. `limit`: the newest."""

    def of(reader: Reader) -> Iterator[tuple[float, int, Reader, Record]]:
        latest = 0.0
        for record in reader.records(which, limit=limit):
            latest = max(latest, record.at)  # even if the clock went back, a journal's own order stays
            yield latest, place[reader], reader, record

    place = {reader: number for number, reader in enumerate(readers)}
    rows = merge(*map(of, readers), key=lambda row: row[:2])
    newest = rows if limit is None else iter(deque(rows, maxlen=limit))
    return ((reader, record) for _, _, reader, record in newest)


def follow(options: argparse.Namespace) -> int:
    from ..journal.reading import Reader

    with Reader(journal_of(options)) as reader:
        which = filter_of(options)
        recent = list(reader.records(which, limit=options.limit)) if options.limit > 0 else []
        for record in recent:
            _show(record, options.json)
        sys.stdout.flush()
        for new in reader.follow(which, after=recent[-1].seq if recent else None):
            if new is not None:
                _show(new, options.json)
                if _asks(new) and sys.stdout.isatty():
                    print("\a", end="")
                sys.stdout.flush()
    return 0


def _asks(record: Record) -> bool:
    """Whether a human has a question to answer: one for `fairlead approvals`, or one that the host puts."""
    return record.body.get("note") == "asked" if record.is_note else record.effect == "ask"


def _show(record: Any, as_json: bool) -> None:
    if as_json:
        print_line(json_of(record))
    else:
        print(line_of(record))
