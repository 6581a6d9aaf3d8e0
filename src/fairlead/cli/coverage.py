"""`fairlead coverage`: which tool calls of the agent CLIs ran without a decision."""

from __future__ import annotations

import argparse
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..display import columns, escape, paint, print_json, short
from .journals import add_journals, journals_of

if TYPE_CHECKING:
    from ..hosts.clis.transcripts.coverage import Coverage, Gap
    from ..hosts.clis.transcripts.transcript import Transcripts, TranscriptSource
    from ..journal.reading import Reader

SHOWN, IN_JSON = 20, 1000
"""How many gaps are listed in a terminal and in JSON without --all."""


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "coverage",
        help="find tool calls of agent CLIs that ran without a decision",
        description="Read the session transcripts that the agent CLIs keep, and look in the journal for the decision "
        "on each tool call. A call that ran without one is a gap.",
        epilog="Ends with 0 if there is no gap, with 1 if there is one, with 2 if a transcript cannot be read.",
    )
    parser.add_argument("--cli", metavar="NAME", help="only this CLI: claude, codex, gemini, qwen, ...")
    parser.add_argument(
        "--path", metavar="PLACE", type=Path,
        help="a transcript or a folder of them, with --cli; or another home folder (default: yours)",
    )  # fmt: skip
    parser.add_argument("--since", metavar="WHEN", help="calls from then on: 24h, 30d, today, 2026-05-01T14:00")
    parser.add_argument("--all", action="store_true", help="list every gap, not just the newest")
    add_journals(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Find the gaps. An error ends with 2, because 1 means a gap."""
    from ..errors import FairleadError
    from ..redaction.redactor import redact_text

    try:
        return _run(options)
    except (FairleadError, OSError) as error:
        print(f"fairlead: {escape(redact_text(str(error)), keep_lines=True)}", file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    from ..errors import FairleadError
    from ..hosts.clis.mapping import host_tools
    from ..hosts.clis.transcripts.coverage import Coverage
    from ..hosts.clis.transcripts.decisions import Decisions
    from ..journal import JournalError

    since = _since(options)
    sources = list(_sources(options, since))
    paths = journals_of(options)
    with ExitStack() as held:
        readers = _readers(paths, named=bool(options.journal), held=held)
        found = Coverage(Decisions(*readers), host_tools(), since)
        gaps: deque[Gap] = deque(maxlen=None if options.all else IN_JSON if options.json else SHOWN)
        problems = []
        for transcripts, source in sources:
            try:
                gaps.extend(found.examine(transcripts, source))
            except JournalError:
                raise
            except FairleadError as error:
                problems.append(str(error))
            except RecursionError:
                problems.append(f"{source.path} has something in it that is nested too deeply to be read")
    newest = sorted(gaps, key=lambda gap: gap.at or 0.0)
    read = [source for _, source in sources]
    for problem in problems:
        print(f"fairlead: {escape(problem)}", file=sys.stderr)
    if options.json:
        print_json(_data(found, newest, read, paths) | {"problems": problems})
    else:
        _show(found, newest, read)
    return 2 if problems else 1 if found.reasons else 0


def _since(options: argparse.Namespace) -> float | None:
    from ..amounts import moment
    from ..errors import FairleadError

    try:
        return moment(options.since) if options.since else None
    except ValueError as error:
        raise FairleadError(f"--since: {error}") from None


def _readers(paths: list[Path], *, named: bool, held: ExitStack) -> list[Reader]:
    """Open the journals. Without --journal, there may be none yet."""
    from ..journal.reading import Reader

    return [held.enter_context(Reader(path)) for path in paths if named or path.exists()]


def _sources(options: argparse.Namespace, since: float | None) -> Iterator[tuple[Transcripts, TranscriptSource]]:
    """The transcripts to read, the oldest of each CLI first. Unchanged since `since`: left out."""
    from ..errors import FairleadError
    from ..hosts.clis.transcripts.transcript import HOSTS, changed_since, transcripts_of

    chosen: Path | None = options.path
    if chosen is not None and not chosen.exists():
        raise FairleadError(f"there is nothing at {chosen}")
    if chosen is not None and chosen.is_file() and not options.cli:
        raise FairleadError(f"{chosen}: name its CLI with --cli")
    for name in (options.cli,) if options.cli else HOSTS:
        transcripts = transcripts_of(name)
        if chosen is None:
            places = transcripts.places(Path.home())
        else:
            places = [chosen] if options.cli else transcripts.in_home(chosen)
        for source in changed_since(transcripts, places, since):
            yield transcripts, source


# --- output --------------------------------------------------------------------------------------


def _data(found: Coverage, gaps: list[Gap], read: list[TranscriptSource], paths: list[Path]) -> dict[str, Any]:
    import msgspec

    rows = [{"cli": cli, "tool": tool, **msgspec.to_builtins(count)} for (cli, tool), count in _rows(found)]
    total = found.reasons.total()
    return {
        "journal": str(paths[0]),
        "journals": [str(path) for path in paths],
        "transcripts": len(read),
        "sessions": len(found.sessions),
        "garbage": sum(source.garbage for source in read),
        "tools": rows,
        "programs": [
            {"cli": cli, "entry_point": entry_point, **msgspec.to_builtins(count)}
            for (cli, entry_point), count in _programs(found)
        ],
        "gaps": [{**msgspec.to_builtins(gap), "why": gap.why} for gap in gaps],
        "gaps_left_out": total - len(gaps),
        "reasons": found.reasons,
    }


def _rows(found: Coverage) -> list[Any]:
    from ..hosts.clis.transcripts.transcript import HOSTS

    return sorted(found.counts.items(), key=lambda row: (HOSTS.index(row[0][0]), row[0][1].casefold()))


def _programs(found: Coverage) -> list[Any]:
    from ..hosts.clis.transcripts.transcript import HOSTS

    return sorted(found.programs.items(), key=lambda row: (HOSTS.index(row[0][0]), row[0][1] or ""))


def _show(found: Coverage, gaps: list[Gap], read: list[TranscriptSource]) -> None:
    garbage = sum(source.garbage for source in read)
    if garbage:
        print(f"fairlead: {_many(garbage, 'line')} could not be read, and were skipped", file=sys.stderr)
    if not found.counts:
        print(f"There are no tool calls in {_many(len(read), 'transcript')}.", file=sys.stderr)
        return
    head = ("CLI", "TOOL", "CALLS", "DECIDED", "DENIED", "NOT RUN", "GAPS")
    print(columns([head, *(_row(cli, tool, count) for (cli, tool), count in _rows(found))]))
    if any(entry_point for _, entry_point in found.programs):
        head = ("CLI", "ENTRY POINT", *head[2:])
        rows = [_row(cli, entry_point or "", count) for (cli, entry_point), count in _programs(found)]
        print(f"\n{columns([head, *rows])}")
    total = found.reasons.total()
    if not total:
        print(paint(f"\nno gap in {_many(len(found.sessions), 'session')}", "green"))
        return
    print(paint(f"\n{_many(total, 'gap')} in {_many(len(found.sessions), 'session')}", "red", "bold"))
    _show_reasons(found)
    print(f"\nThe newest {len(gaps)}; --all lists them all:" if len(gaps) < total else "")
    print(columns(map(_line, gaps)))


def _show_reasons(found: Coverage) -> None:
    from ..hosts.clis.transcripts.coverage import WHY

    for reason, number in found.reasons.most_common():
        print(f"  {number} {reason}: {WHY[reason]}")


def _row(cli: str, tool: str, count: Any) -> tuple[str, ...]:
    numbers = (count.calls, count.decided, count.denied, count.not_run, count.gaps)
    return (_title(cli), short(tool, 40), *map(str, numbers))


def _line(gap: Gap) -> tuple[str, ...]:
    from datetime import datetime

    when = "" if gap.at is None else datetime.fromtimestamp(gap.at).strftime("%m-%d %H:%M:%S")
    whose = f"{gap.session} (subagent {gap.agent})" if gap.agent else gap.session
    return (when, _title(gap.cli), gap.reason, escape(whose), escape(gap.call), short(f"{gap.tool} {gap.about}", 80))


def _title(cli: str) -> str:
    from ..hosts.clis.mapping import host_named

    return host_named(cli).title


def _many(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
