"""`fairlead diff`: what a change of a policy would have changed in recorded traffic."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from time import localtime, strftime
from typing import TYPE_CHECKING, Any, Self

from ..display import counted, escape, paint, short, styled
from .formats import add_formats, outputs_of, show
from .loading import quiet_log

if TYPE_CHECKING:
    from ..replay.report import ChangeClass, DiffReport, Spread, UnknownClass
    from ..replay.sources import Gaps, Selection

COLOURS = {"loosened": "red", "tightened": "yellow", "other": "blue"}
EXTERNAL = ("recorded", "run", "skip")
FAIL_ON = ("loosened", "tightened", "unknown", "any")


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "diff",
        help="judge recorded traffic with two policies, and show what differs",
        description="Judge what agents really did with two policies, and show what differs: in classes of like calls, "
        "each with how far it reaches. Nothing is written, and no hook's program runs unless you ask for it.",
        epilog="OLD and NEW are files, folders with a fairlead.toml, or revisions of git. One word, OLD..NEW, names "
        "two revisions; one revision is compared with the files that are here. Ends with 0 if nothing differs, with 2 "
        "if something does, with 1 if it could not be run.",
    )
    parser.add_argument("policy", nargs="+", metavar="POLICY", help="OLD NEW, or OLD..NEW: main..HEAD")
    parser.add_argument(
        "--fail-on", action="append", choices=FAIL_ON, default=[], metavar="WHAT",
        help="end with 2 only for this: loosened, tightened, unknown or any; may be repeated",
    )  # fmt: skip
    parser.add_argument("--accept", metavar="FILE", type=Path, help="a file of accepted changes: who, why, until when")
    parser.add_argument(
        "--layer", choices=("auto", "user", "project", "system"), default="auto",
        help="read the files as this layer (default: a fairlead.toml is a project's, any other file the user's)",
    )  # fmt: skip
    parser.add_argument("--jobs", type=int, default=0, metavar="N", help="processes (default: one per core)")
    parser.add_argument("--all", action="store_true", help="show every class, and not only the first ones")
    add_traffic(parser)
    add_formats(parser)
    parser.set_defaults(run=run)


def add_traffic(parser: argparse.ArgumentParser) -> None:
    """The options that select recorded traffic, and say what becomes of external hooks."""
    parser.add_argument(
        "--journal", metavar="FILE", action="append",
        help="a journal, or a file of `fairlead export`; - reads such a file from stdin; may be repeated "
        "(default: the configured journal)",
    )  # fmt: skip
    parser.add_argument("--since", metavar="WHEN", help="only steps from then on: 2h, 30d, today, 2026-05-01")
    parser.add_argument("--until", metavar="WHEN", help="only steps up to then")
    parser.add_argument("--last", metavar="N", type=int, help="only the newest N records")
    parser.add_argument("--session", metavar="ID", help="only this session, with its subagents")
    parser.add_argument("--project", metavar="DIR", help="only steps in this project")
    parser.add_argument(
        "--external", choices=EXTERNAL, default="recorded",
        help="hooks that leave this process: take their recorded verdicts (the default), run them if they are trusted, "
        "or leave them out",
    )  # fmt: skip


def selection_of(options: argparse.Namespace) -> Selection:
    from ..amounts import moment
    from ..errors import FairleadError
    from ..replay.sources import Selection

    try:
        since, until = (moment(text) if (text := getattr(options, end)) else None for end in ("since", "until"))
    except ValueError as error:
        raise FairleadError(str(error)) from None
    project = None if options.project is None else str(Path(options.project).absolute())
    if options.last is not None and options.last < 1:
        raise FairleadError("--last takes a number of records, from 1")
    return Selection(since, until, options.session, project, options.last)


def paths_of(options: argparse.Namespace) -> list[str]:
    """The journals and files to read."""
    from .journals import machine_journal, settings

    if options.journal:
        return [path if path == "-" else str(Path(path).absolute()) for path in options.journal]
    if (machine := machine_journal()) is not None:
        return [str(machine)]
    from ..paths import journal_file

    return [str(settings().journal.get("path") or journal_file())]


def run(options: argparse.Namespace) -> int:
    from ..errors import FairleadError
    from ..replay.accepted import accept, read_accepted
    from ..replay.parallel import Job, run_diff
    from ..replay.policies import find_policies
    from ..replay.published import of_diff
    from ..replay.sources import Traffic, open_source

    quiet_log()
    if len(options.policy) > 2:
        raise FairleadError("two policies are compared, and no more: OLD NEW, or OLD..NEW")
    outputs_of(options)
    accepted = [] if options.accept is None else read_accepted(options.accept)
    old, new = find_policies(options.policy, options.layer)
    paths = paths_of(options)
    job = Job(old, new, paths, selection_of(options), options.external)
    with Bar("judging") as bar:
        traffic = None
        if "-" in paths:
            traffic = Traffic([open_source(path, sys.stdin.buffer) for path in paths], job.selection)
        report = run_diff(job, options.jobs, traffic, bar)
    accept(report, accepted)
    data = as_data(report) | {"fails": report.fails(options.fail_on)}
    show(options, of_diff(report, options.fail_on, who=options.who), data,
         lines_of(report, None if options.all else CLASSES))  # fmt: skip
    return 2 if report.fails(options.fail_on) else 0


def as_data(report: Any) -> dict[str, Any]:
    """A report as plain data, without the steps of its examples."""
    import msgspec

    data: dict[str, Any] = msgspec.to_builtins(report, builtin_types=(msgspec.Raw,))
    for one in (*data.get("changes", ()), *data.get("unknown", ()), *data.get("differences", ())):
        one["example"].pop("step", None)
        one["spread"].pop("session", None)
        for name in ("user", "folders"):
            one["example"].pop(name, None)
    return data


class Bar:
    """A progress bar on stderr, if that is a terminal."""

    WIDTH = 30

    def __init__(self, what: str) -> None:
        self._what = what
        self._shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._shown:
            sys.stderr.write(f"\r{' ' * len(self._shown)}\r")
            sys.stderr.flush()
        if kind is KeyboardInterrupt:
            print("fairlead: interrupted; nothing was compared to the end, and nothing was written", file=sys.stderr)

    def __call__(self, done: int, total: int) -> None:
        part = done / max(total, 1)
        filled = int(part * self.WIDTH)
        text = f"{self._what} [{'#' * filled}{' ' * (self.WIDTH - filled)}] {done:,} of {total:,} records"
        if sys.stderr.isatty() and text != self._shown:
            self._shown = text
            sys.stderr.write(f"\r{text}")
            sys.stderr.flush()


# --- text -----------------------------------------------------------------------------------

CLASSES = 12
"""Classes that a report in text shows of each kind: they fit on one screen."""


def lines_of(report: DiffReport, most: int | None = CLASSES) -> Iterator[str]:
    """A diff for people."""
    from ..replay.published import NOTHING_JUDGED

    totals = report.totals
    yield f"{paint(escape(report.old), 'bold')} -> {paint(escape(report.new), 'bold')}: {judged(totals)}"
    if not totals.steps:
        yield paint(NOTHING_JUDGED, "yellow")
    shown = [change for change in report.changes if change.accepted is None]
    for direction in ("loosened", "tightened", "other"):
        some = [change for change in shown if change.direction == direction]
        if some:
            steps = sum(change.spread.count for change in some)
            name = "other changes" if direction == "other" else direction
            yield ""
            yield paint(f"{name}: {counted(steps, 'step')} in {counted(len(some), 'class', 'classes')}",
                        "bold", COLOURS[direction])  # fmt: skip
            for change in some[:most]:
                yield from _change_lines(change)
            if most is not None and len(some) > most:
                yield f"  and {counted(len(some) - most, 'class', 'classes')} more; --all shows them"
    if report.unknown:
        yield ""
        yield paint(f"unknown: {counted(totals.unknown, 'step')}", "bold", "yellow")
        for unknown in report.unknown[:most]:
            yield from _unknown_lines(unknown)
        if most is not None and len(report.unknown) > most:
            yield f"  and {counted(len(report.unknown) - most, 'class', 'classes')} more; --all shows them"
    yield from _closing_lines(report)


def _change_lines(change: ChangeClass) -> Iterator[str]:
    before, after = styled(str(change.before), "bold"), styled(str(change.after), "bold", COLOURS[change.direction])
    hook = f" ({escape(change.hook)})" if change.hook else ""
    yield f"  {before} -> {after}{hook}  {escape(change.shape)}"
    yield f"    {reach(change.spread)}"
    example = change.example
    text = short(example.shrunk or example.text, 100)
    smaller = " (shrunk)" if example.shrunk else ""
    yield f"    {paint('example', 'dim')} {escape(example.record)}{f': {text}' if text else ''}{smaller}"


def _unknown_lines(unknown: UnknownClass) -> Iterator[str]:
    what = f": {escape(unknown.what)}" if unknown.what else ""
    yield f"  {paint(unknown.why, 'yellow')}{what}  {escape(unknown.shape)}"
    yield f"    {reach(unknown.spread)}; example {escape(unknown.example.record)}"


def _closing_lines(report: DiffReport) -> Iterator[str]:
    totals = report.totals
    yield ""
    words = [f"{totals.same:,} the same", f"{totals.changed:,} changed", f"{totals.unknown:,} unknown"]
    if totals.accepted:
        words.insert(2, f"{totals.accepted:,} of them accepted")
    yield ", ".join(words)
    for change in (one for one in report.changes if one.accepted is not None):
        what = f"{change.before} -> {change.after}  {change.shape}  ({change.accepted})"
        yield f"accepted: {escape(what)}"
    for expired in report.expired:
        yield paint(f"no longer accepted: {escape(expired)}", "yellow")
    if report.untrusted:
        yield f"not run, because their code is not trusted: {escape(', '.join(report.untrusted))}"
    if totals.would_ask:
        yield f"{counted(totals.would_ask, 'step')} would ask a question that was not put then"
    yield from gap_lines(report.gaps)
    if any(change.direction == "tightened" for change in report.changes):
        yield paint("Each recorded step is judged by itself: what an agent does after a new refusal is not predicted.",
                    "dim")  # fmt: skip


def judged(totals: Any) -> str:
    """How much was judged, and how long that took."""
    when = ""
    if totals.steps:
        first, last = (strftime("%Y-%m-%d", localtime(at)) for at in (totals.first, totals.last))
        when = f", {first}" if first == last else f", {first} to {last}"
    sessions = counted(totals.sessions, "session")
    return f"{counted(totals.steps, 'step')} of {sessions}{when}, in {totals.took:.1f} s"


def reach(spread: Spread) -> str:
    """How far a class reaches, in words."""
    first, last = (strftime("%m-%d %H:%M", localtime(at)) for at in (spread.first, spread.last))
    words = [counted(spread.count, "step"), counted(spread.sessions, "session")]
    words += [count for count, _ in spread.name_counts()]
    return f"{', '.join(words)}; {first if first == last else f'{first} to {last}'}"


def gap_lines(gaps: Gaps) -> Iterator[str]:
    """What the traffic does not tell, in words."""
    from ..replay.published import gap_words

    for words in gap_words(gaps):
        yield paint(words, "yellow")
    if gaps.first_bad:
        yield paint(f"first: {short(gaps.first_bad, 200)}", "dim")
