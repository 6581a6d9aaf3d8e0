"""`fairlead ui`: look at what agents did, in the browser."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "ui",
        help="look at what agents did, in the browser",
        description="Open the inspector in the browser: what agents did, what hooks denied and changed, why, and what "
        "it cost. It runs on 127.0.0.1 until Ctrl-C, and only the browser that opens the printed address can see it.",
    )
    parser.add_argument("--journal", metavar="FILE", type=Path, help="the journal (default: the configured one)")
    parser.add_argument("--port", type=_port, default=0, metavar="PORT", help="the port (default: any free one)")
    parser.add_argument("--no-open", action="store_true", help="print the address, and do not open a browser")
    parser.add_argument(
        "--approve", action="store_true", help="answer questions from the page, with a code that this terminal shows"
    )
    parser.add_argument(
        "--export",
        metavar="WHAT",
        help="print one file of HTML to send to a colleague: a session, with its secrets taken out again, or what two "
        "policies decide differently, as OLD..NEW",
    )
    parser.set_defaults(run=run)


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 <= int(text) < 65536:
        raise argparse.ArgumentTypeError("a port is a number from 0 to 65535")
    return int(text)


def run(options: argparse.Namespace) -> int:
    from ..extras import require
    from .loading import quiet_log

    for module in ("starlette", "uvicorn", "httpcore"):
        require(module, "ui", "the pages of the inspector")
    quiet_log()
    journal = _journal(options)
    if options.export is not None:
        return _export(journal, options.export)
    from ..errors import FairleadError
    from ..ui.serving import serve
    from .consent import need_a_person

    if options.approve:
        need_a_person("approve")
        if not sys.stdout.isatty():
            raise FairleadError("--approve shows its codes on the terminal; do not send its output anywhere else")
    serve(journal, port=options.port, opens=not options.no_open, may_approve=options.approve)
    return 0


def _journal(options: argparse.Namespace) -> Path:
    """The journal to look at. Until there is one, that of the demo, if it was run."""
    from .demo import demo_journal
    from .journals import journal_of

    journal = journal_of(options)
    if options.journal is None and not journal.exists() and (demo := demo_journal()).exists():
        print("No agent was recorded yet. This shows what `fairlead demo` did.", file=sys.stderr)
        return demo
    return journal


def _export(journal: Path, what: str) -> int:
    from ..journal.reading import Reader
    from ..ui.export import export_session
    from .journals import settings

    settings().extend_redaction()
    with Reader(journal) as reader:
        if ".." in what and reader.session(what) is None:
            return _export_diff(journal, what)
        page = export_session(reader, what)
    sys.stdout.buffer.write(page.encode(errors="backslashreplace"))
    return 0


def _export_diff(journal: Path, policies: str) -> int:
    """The page of `fairlead diff`. Unlike there, a difference is no error."""
    from . import main

    return int(main(["diff", policies, "--html", "--journal", str(journal)]) == 1)
