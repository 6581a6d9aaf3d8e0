"""`fairlead import`: copy past sessions of an agent CLI into the journal."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..display import escape, print_json
from .journals import add_journal, journal_of, settings

if TYPE_CHECKING:
    from ..hosts.clis.transcripts.importer import ImportJournal, TranscriptImport
    from ..hosts.clis.transcripts.transcript import Transcripts, TranscriptSource


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "import",
        help="copy past sessions of an agent CLI into the journal",
        description="Read the session transcripts that an agent CLI keeps, and record their steps in the journal. "
        "Imported steps are marked, because no hook decided on them. Steps that the journal has are skipped.",
        epilog="Ends with 0 if everything was read, with 1 if something could not be.",
    )
    parser.add_argument("cli", metavar="CLI", help="the CLI that wrote them: claude, codex, gemini, qwen, copilot, ...")
    parser.add_argument("path", metavar="PATH", type=Path, help="a transcript, a folder of them, or a home")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be recorded")
    add_journal(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..errors import FairleadError
    from ..hosts.clis.transcripts.transcript import TranscriptSource, transcripts_of

    transcripts = transcripts_of(options.cli)
    if not options.path.exists():
        raise FairleadError(f"there is nothing at {options.path}")
    sources = [TranscriptSource(path) for path in transcripts.files(options.path.absolute())]
    if not sources:
        names = " or ".join(transcripts.names)
        raise FairleadError(f"there is no transcript of {transcripts.host} in {options.path}: they are called {names}")
    recording, problems = _record(options, transcripts, sources)
    for problem in problems:
        print(f"fairlead: {escape(problem)}", file=sys.stderr)
    if options.json:
        print_json(_data(options, recording, sources, problems))
    else:
        _show(options, recording, sources)
    return 1 if problems else 0


def _record(
    options: argparse.Namespace, transcripts: Transcripts, sources: list[TranscriptSource]
) -> tuple[TranscriptImport, list[str]]:
    """Record every transcript that can be read, and return the problems of the others."""
    from ..errors import FairleadError
    from ..hosts.clis.mapping import host_tools
    from ..hosts.clis.transcripts.decisions import Decisions
    from ..hosts.clis.transcripts.importer import TranscriptImport
    from ..journal import JournalError
    from ..journal.reading import Reader

    path, problems = journal_of(options), []
    with ExitStack() as held:
        journal = None if options.dry_run else held.enter_context(_journal(path))
        reader = held.enter_context(Reader(path)) if path.exists() else None
        recording = TranscriptImport(journal, Decisions(*([] if reader is None else [reader])), host_tools())
        show_progress = _progress(sources) if sys.stderr.isatty() and not options.json else None
        for source in sources:
            try:
                recording.record(transcripts, source, show_progress)
            except JournalError:
                raise
            except FairleadError as error:
                problems.append(str(error))
            except RecursionError:
                problems.append(f"{source.path} has something in it that is nested too deeply to be read")
        if show_progress is not None:
            print("\r\x1b[K", end="", file=sys.stderr)
        if journal is not None:
            journal.flush(None)
    return recording, problems


def _journal(path: Path) -> ImportJournal:
    """Open the journal with the user's settings, even where they switch it off."""
    from ..hosts.clis.transcripts.importer import ImportJournal

    config = settings()
    config.extend_redaction()
    options = {key: value for key, value in config.journal.items() if key in ("max_size", "max_age", "anchor")}
    return ImportJournal(path, on_failure="closed", **options)


def _progress(sources: list[TranscriptSource]) -> Callable[[], None]:
    """A function that shows how much is read, at most five times a second."""
    from time import monotonic

    total = sum(source.path.stat().st_size for source in sources if source.path.exists()) or 1
    last = [0.0]

    def show() -> None:
        if monotonic() > last[0] + 0.2:
            last[0] = monotonic()
            done = min(sum(source.read for source in sources) * 100 // total, 100)
            print(f"\r{done} % of {len(sources)} transcripts", end="", file=sys.stderr, flush=True)

    return show


# --- output --------------------------------------------------------------------------------------


def _data(
    options: argparse.Namespace, recording: TranscriptImport, sources: list[TranscriptSource], problems: list[str]
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


def _show(options: argparse.Namespace, recording: TranscriptImport, sources: list[TranscriptSource]) -> None:
    did = "Would import" if options.dry_run else "Imported"
    sessions = len(recording.sessions)
    print(
        f"{did} {recording.events.total():,} steps of {sessions:,} session{'' if sessions == 1 else 's'} "
        f"from {len(sources):,} transcript{'' if len(sources) == 1 else 's'}."
    )
    if recording.there:
        print(f"  {recording.there:,} were imported before.")
    if recording.decided:
        print(f"  {recording.decided:,} are in the journal already, with decisions.")
    garbage = sum(source.garbage for source in sources)
    if garbage:
        lines = sum(source.lines for source in sources)
        print(f"  {garbage:,} of {lines:,} lines could not be read, and were skipped.")
    if recording.events and not options.dry_run:
        print("`fairlead log` shows them; `imported` in their metadata marks them.")
