"""`fairlead import`: what the agent CLIs have written down of past sessions, into the journal."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .display import escape, print_json
from .journals import add_journal, journal_of, settings

if TYPE_CHECKING:
    from ..transcripts.recording import Recorder, Recording
    from ..transcripts.transcript import Source, Transcripts


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "import",
        help="take past sessions of an agent CLI into the journal",
        description="Read session transcripts that an agent CLI keeps by itself, and record the steps that they tell "
        "of, so that the journal has them, too. They are marked as imported: nothing was decided then. What is "
        "there already is left out.",
        epilog="Ends with 0 if everything was read, with 1 if something could not be.",
    )
    parser.add_argument("cli", metavar="CLI", help="whose they are: claude, codex, gemini, qwen, copilot, ...")
    parser.add_argument("path", metavar="PATH", type=Path, help="a transcript, a folder of them, or a home")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be recorded")
    add_journal(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..errors import FairleadError
    from ..transcripts.transcript import Source, transcripts_of

    transcripts = transcripts_of(options.cli)
    if not options.path.exists():
        raise FairleadError(f"there is nothing at {options.path}")
    sources = [Source(path) for path in transcripts.files(options.path.absolute())]
    if not sources:
        names = " or ".join(transcripts.names)
        raise FairleadError(f"there is no transcript of {transcripts.host} in {options.path}: they are called {names}")
    recording, problems = _record(options, transcripts, sources)
    for problem in problems:
        print(f"fairlead: {escape(problem)}", file=sys.stderr)
    if options.json:
        print_json(_told(options, recording, sources, problems))
    else:
        _show(options, recording, sources)
    return 1 if problems else 0


def _record(
    options: argparse.Namespace, transcripts: Transcripts, sources: list[Source]
) -> tuple[Recording, list[str]]:
    """Record every transcript that can be read. What cannot be is said."""
    from ..errors import FairleadError
    from ..hosts.host import host_tools
    from ..journal import JournalError
    from ..journal.reading import Reader
    from ..transcripts.decisions import Decisions
    from ..transcripts.recording import Recording

    path, problems = journal_of(options), []
    with ExitStack() as held:
        journal = None if options.dry_run else held.enter_context(_journal(path))
        reader = held.enter_context(Reader(path)) if path.exists() else None
        recording = Recording(journal, Decisions(*([] if reader is None else [reader])), host_tools())
        say = _progress(sources) if sys.stderr.isatty() and not options.json else None
        for source in sources:
            try:
                recording.record(transcripts, source, say)
            except JournalError:
                raise
            except FairleadError as error:
                problems.append(str(error))
            except RecursionError:
                problems.append(f"{source.path} has something in it that is nested too deeply to be read")
        if say is not None:
            print("\r\x1b[K", end="", file=sys.stderr)
        if journal is not None:
            journal.flush(None)
    return recording, problems


def _journal(path: Path) -> Recorder:
    """The journal, as the user's files want it, whether or not they have it switched on."""
    from ..transcripts.recording import Recorder

    config = settings()
    config.extend_redaction()
    given = {key: value for key, value in config.journal.items() if key in ("max_size", "max_age", "anchor")}
    return Recorder(path, on_failure="closed", **given)


def _progress(sources: list[Source]) -> Callable[[], None]:
    """Says how far it is, now and then."""
    from time import monotonic

    total = sum(source.path.stat().st_size for source in sources if source.path.exists()) or 1
    last = [0.0]

    def say() -> None:
        if monotonic() > last[0] + 0.2:
            last[0] = monotonic()
            done = min(sum(source.read for source in sources) * 100 // total, 100)
            print(f"\r{done} % of {len(sources)} transcripts", end="", file=sys.stderr, flush=True)

    return say


# --- telling it -----------------------------------------------------------------------------------


def _told(
    options: argparse.Namespace, recording: Recording, sources: list[Source], problems: list[str]
) -> dict[str, Any]:
    return {
        "journal": str(journal_of(options)),
        "dry_run": options.dry_run,
        "transcripts": len(sources),
        "sessions": len(recording.sessions),
        "imported": recording.events.total(),
        "events": recording.events,
        "there": recording.there,
        "decided": recording.decided,
        "lines": sum(source.lines for source in sources),
        "garbage": sum(source.garbage for source in sources),
        "problems": problems,
    }


def _show(options: argparse.Namespace, recording: Recording, sources: list[Source]) -> None:
    did = "Would import" if options.dry_run else "Imported"
    sessions = len(recording.sessions)
    print(
        f"{did} {recording.events.total():,} steps of {sessions:,} session{'' if sessions == 1 else 's'} "
        f"from {len(sources):,} transcript{'' if len(sources) == 1 else 's'}."
    )
    if recording.there:
        print(f"  {recording.there:,} were imported before.")
    if recording.decided:
        print(f"  {recording.decided:,} are there already: a hook was asked about them.")
    garbage = sum(source.garbage for source in sources)
    if garbage:
        lines = sum(source.lines for source in sources)
        print(f"  {garbage:,} of {lines:,} lines are garbage, and left out.")
    if recording.events and not options.dry_run:
        print("`fairlead log` shows them; `imported` in their metadata tells them from decisions.")
