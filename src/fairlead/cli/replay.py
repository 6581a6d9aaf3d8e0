"""`fairlead replay`: does the policy in force decide as it was recorded, and if not, why?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..display import counted, escape, paint, short
from .cases import add_coverage, coverage_data, coverage_lines, lacks_coverage, wants_coverage
from .diff import CLASSES, Bar, add_traffic, as_data, gap_lines, judged, paths_of, reach, selection_of
from .formats import add_formats, outputs_of, show
from .loading import add_folder, quiet_log, sound_config

if TYPE_CHECKING:
    from ..replay.judge import Judge
    from ..replay.report import ReplayReport
    from ..replay.reproduce import Save

MEANINGS = {
    "failure": "a hook failed, then or now",
    "redacted": "the answer depends on a secret that the record does not have",
    "external": "a hook runs elsewhere, and has no recorded verdict for this step",
    "untrusted code": "a hook's code is not trusted",
    "cold state": "a hook reads what earlier steps left, and these are missing",
    "would ask": "a hook asks what was not asked then",
    "policy": "a hook is not the one of then",
    "inexact": "the record does not hold the step exactly",
    "outside": "a hook depends on what no record has: the time of day, the environment, files, its own memory",
}


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "replay",
        help="judge recorded traffic again, and compare with the record",
        description="Judge what agents really did with the policy in force here, and compare each answer with the "
        "recorded one. Nothing is written, and no hook's program runs unless you ask for it.",
        epilog="Ends with 0 if every answer is the recorded one or nothing was recorded to compare with, with 2 if "
        "some differ or are not known, with 1 if it could not be run.",
    )
    parser.add_argument("--all", action="store_true", help="show every class, and not only the first ones")
    add_folder(parser)
    add_traffic(parser)
    parser.add_argument(
        "--save", metavar="FILE", type=Path,
        help="write the steps as test cases (JSONL): what is reproduced is expected of every later policy",
    )  # fmt: skip
    add_coverage(parser)
    add_formats(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    import asyncio

    from ..hosts.clis.opening import open_hooks
    from ..replay.coverage import PolicyCoverage, of_coverage
    from ..replay.judge import Judge
    from ..replay.published import of_replay
    from ..replay.report import HookPlace, ReplayReport
    from ..replay.reproduce import Reproducer
    from ..replay.sources import Traffic, open_source

    quiet_log()
    outputs_of(options)
    config = sound_config(options)
    forms = {configured.name: configured.form for configured in config.hooks}
    hooks = open_hooks(options.folder, config.apply, record=False)
    judge = Judge(hooks, forms=forms, external=options.external, enforced=False)
    coverage = PolicyCoverage(judge, forms) if wants_coverage(options) else None
    report = ReplayReport(str(config.sources.root or options.folder))
    report.places = {configured.name: HookPlace(configured.file, configured.line) for configured in config.hooks}
    sources = [open_source(path, sys.stdin.buffer) for path in paths_of(options)]
    traffic = Traffic(sources, selection_of(options))

    async def replay(bar: Bar) -> None:
        groups = traffic.groups()
        total = sum(group.records for group in groups)
        try:
            await Reproducer(judge, report, saved).run(traffic, groups, lambda done: bar(done, total))
        finally:
            await hooks.aclose()

    try:
        with saving(options.save, who=options.who) as saved, Bar("judging") as bar:
            asyncio.run(replay(bar))
    finally:
        traffic.close()
    found, data = of_replay(report, who=options.who), as_data(report)
    lines = list(lines_of(report, None if options.all else CLASSES))
    if coverage is not None:
        covered = of_coverage(coverage, report.policy, options.min_coverage, report.places)
        found.rows += covered.rows
        found.notes.append(covered.summary)
        data |= {"coverage": coverage_data(coverage)}
        lines += ["", *coverage_lines(covered)]
    show(options, found, data, lines)
    if options.save is not None:
        say_saved(options, judge)
    return 2 if report.differences or lacks_coverage(options, coverage) else 0


def say_saved(options: argparse.Namespace, judge: Judge) -> None:
    """Say how many cases were saved, and how many do not hold without the names of users and folders."""
    import asyncio

    from ..replay.cases import read_cases, run_cases

    cases = read_cases(options.save) if options.save.stat().st_size else []
    results = asyncio.run(run_cases(judge, cases))
    failed = sum(result.problem is not None for result in results)
    print(f"fairlead: {counted(len(results), 'case')} saved in {escape(str(options.save))}", file=sys.stderr)
    if failed:
        words = "do not hold without the names of users and folders; save with --who" * (not options.who)
        print(f"fairlead: {failed:,} of them {words or 'do not hold by themselves'}", file=sys.stderr)


@contextmanager
def saving(path: Path | None, *, who: bool) -> Iterator[Save | None]:
    """A function that writes cases to a new file. The file is there only if all went well."""
    from ..errors import FairleadError
    from ..replay.cases import CaseWriter

    if path is None:
        yield None
        return
    if path.exists():
        raise FairleadError(f"{path} is there already; delete it, or name another file")
    if path.suffix == ".toml":
        raise FairleadError(f"--save writes JSONL; name it {path.with_suffix('.jsonl').name}")
    writer = CaseWriter(who=who)
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("xb") as file:
            yield lambda recorded, reproduced, cold: file.write(writer.line(recorded, reproduced=reproduced, cold=cold))
        part.rename(path)
    except FileExistsError:
        raise FairleadError(f"{part} is there: another replay writes it, or was interrupted") from None
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise FairleadError(f"{path} cannot be written: {error.strerror}") from None
        raise


def lines_of(report: ReplayReport, most: int | None = CLASSES) -> Iterator[str]:
    """A replay for people."""
    totals = report.totals
    compared = totals.steps - sum(report.not_compared.values())
    yield f"{paint(escape(report.policy), 'bold')}: {judged(totals)}"
    yield f"{totals.same:,} of {counted(compared, 'decision')} reproduced"
    for reason, count in sorted(report.not_compared.items()):
        yield f"{count:,} not compared: {escape(reason)}"
    for cause in dict.fromkeys(one.cause for one in report.differences):
        some = [one for one in report.differences if one.cause == cause]
        yield ""
        yield paint(f"{cause}: {counted(sum(one.spread.count for one in some), 'step')}", "bold", "yellow") + (
            f"  {MEANINGS[cause]}"
        )
        for one in some[:most]:
            what = f" ({escape(one.what)})" if one.what else ""
            yield f"  {escape(str(one.recorded))} -> {escape(str(one.now))}{what}  {escape(one.shape)}"
            yield f"    {reach(one.spread)}; example {escape(one.example.record)}: {short(one.example.text, 80)}"
        if most is not None and len(some) > most:
            yield f"  and {counted(len(some) - most, 'class', 'classes')} more; --all shows them"
    yield from gap_lines(report.gaps)
