"""`fairlead verify`: check that the journal was not changed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..display import escape, paint, print_json
from .journals import add_journal, journal_of, settings

if TYPE_CHECKING:
    from ..journal.anchor import AnchoredHead
    from ..journal.verify import VerifyResult


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "verify",
        help="check that the journal was not changed",
        description="Follow the chain of digests through the whole journal, and name the first record that was "
        "changed. Without an anchor, this shows only that the journal is consistent: an attacker who can write the "
        "file could have rebuilt all of it.",
        epilog="Ends with 0 if the journal is sound, with 2 if it was changed, with 3 if the proof is incomplete (the "
        "head beside the file or an anchor is missing), with 1 if it could not be read.",
    )
    parser.add_argument("--anchor", metavar="FILE", help="anchors to compare with, one per line; - is stdin")
    add_journal(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..journal.verify import verify

    path = journal_of(options)
    progress = _progress if sys.stderr.isatty() and not options.json else None
    checked = verify(path, _anchors(options), progress)
    if progress is not None:
        print("\r\x1b[K", end="", file=sys.stderr)
    if options.json:
        print_json({"journal": str(path), "verdict": checked.verdict, "checked": checked})
    else:
        _show(checked, str(path))
    return {"bad": 2, "unproven": 3}.get(checked.verdict, 0)


def _anchors(options: argparse.Namespace) -> list[AnchoredHead] | None:
    """The anchors to compare with. None: there are none, or they cannot be read from here."""
    from ..errors import FairleadError
    from ..journal.anchor import read_anchors

    try:
        if options.anchor is not None:
            return read_anchors(sys.stdin.buffer.read() if options.anchor == "-" else Path(options.anchor).read_bytes())
        anchor = settings().journal.get("anchor")
        return anchor.known() if anchor is not None and anchor.file is not None and options.journal is None else None
    except (OSError, ValueError) as error:
        raise FairleadError(f"the anchors cannot be read: {error}") from None


def _show(checked: VerifyResult, path: str) -> None:
    if checked.problem is not None:
        print(paint(f"bad: {escape(checked.problem)}", "red"))
        print(f"{escape(path)}: {checked.records} records before that are sound")
        return
    print(
        paint(checked.verdict, "green" if checked.doubt is None else "yellow") + f": {checked.records} records", end=""
    )
    print(f", {checked.first} to {checked.last}, each chained to the one before" if checked.records else "")
    print(f"  {escape(path)}")
    if checked.doubt is not None:
        print(f"  {escape(checked.doubt)}")
    if checked.erased:
        print(f"  the bodies of {checked.erased} records are erased; their digests are in the chain")
    for note in checked.notes:
        print(f"  {escape(note)}")
    if checked.newer > 0:
        print(f"  {checked.newer} records are newer than the head: a process is writing, or was killed")
    if checked.anchored is not None:
        print(f"  up to record {checked.anchored} an anchor vouches for it")
    elif checked.doubt is None:
        print("  no anchor: an attacker could have rebuilt all of it; see `anchor` in docs/journal.md")


def _progress(done: int, total: int) -> None:
    print(f"\r{done:,} of {total:,} records", end="", file=sys.stderr, flush=True)
