"""`fairlead test --cases`: runs test cases of a policy, and measures how much of it they reach."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..display import escape, paint, short
from .formats import add_formats, outputs_of, show
from .loading import quiet_log, say_never_trusted, sound_config

if TYPE_CHECKING:
    from ..replay.cases import CaseResult
    from ..replay.coverage import PolicyCoverage
    from ..replay.judge import Judge
    from ..replay.published import PublishedReport
    from ..replay.report import HookPlace

SHOWN = 20
"""Failed cases that are shown in full without --all."""


def add_cases(parser: argparse.ArgumentParser) -> None:
    """The options of `fairlead test --cases` and of coverage."""
    parser.add_argument(
        "--cases", metavar="FILE", action="append", type=Path,
        help="run the test cases in this file, TOML or JSONL, instead of one step; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--policy", metavar="POLICY",
        help="with --cases and --mutate: judge with this file, folder or revision of git (default: what is in force)",
    )  # fmt: skip
    parser.add_argument(
        "--external", choices=("recorded", "run", "skip"), default="recorded",
        help="with --cases: hooks that leave this process do not run (the default), run if trusted, or are left out",
    )  # fmt: skip
    parser.add_argument("--all", action="store_true", help="with --cases and --mutate: show every result")
    add_coverage(parser)
    add_formats(parser)


def add_coverage(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--coverage", action="store_true", help="say which hooks never fire, are shadowed, not reached, or slow"
    )
    parser.add_argument(
        "--min-coverage",
        metavar="PERCENT",
        type=float,
        help="end with 2 if fewer of the hooks fire; implies --coverage",
    )


def run_cases(options: argparse.Namespace) -> int:
    import asyncio

    from ..display import counted
    from ..replay.cases import of_cases, read_cases
    from ..replay.cases import run_cases as judge_cases
    from ..replay.coverage import PolicyCoverage, of_coverage

    quiet_log()
    outputs_of(options)
    cases = [case for path in options.cases for case in read_cases(path)]
    judge, name, places, forms, untrusted = open_judge(options)
    coverage = PolicyCoverage(judge, forms) if wants_coverage(options) else None

    async def run() -> list[CaseResult]:
        try:
            return await judge_cases(judge, cases)
        finally:
            await judge.hooks.aclose()

    results = asyncio.run(run())
    found = of_cases(results, name, places, who=options.who)
    data: dict[str, Any] = {"policy": name, "cases": len(results), "failed": len(found.failed), "untrusted": untrusted}
    data["results"] = [_data(one) for one in results]
    lines = list(_lines(results, SHOWN if not options.all else None))
    if coverage is not None:
        covered = of_coverage(coverage, name, options.min_coverage, places)
        found.rows += covered.rows
        found.notes.append(covered.summary)
        data |= {"coverage": coverage_data(coverage)}
        lines += ["", *coverage_lines(covered)]
    setup = len(cases) - len(results)
    lines += [
        "",
        f"{escape(found.title)}: {found.summary}" + (f" ({counted(setup, 'step')} before them)" * bool(setup)),
    ]
    show(options, found, data, lines)
    if untrusted and not found.failed:
        return 1  # hooks of the project did not run
    return 2 if found.failed or lacks_coverage(options, coverage) else 0


def wants_coverage(options: argparse.Namespace) -> bool:
    return bool(options.coverage or options.min_coverage is not None)


def lacks_coverage(options: argparse.Namespace, coverage: PolicyCoverage | None) -> bool:
    least = options.min_coverage
    return coverage is not None and least is not None and coverage.percent < least


def open_judge(options: argparse.Namespace) -> tuple[Judge, str, dict[str, HookPlace], dict[str, str], list[str]]:
    """The policy that the options name, or the one in force: its name, places, forms, and what is not trusted."""
    from ..hosts.clis.opening import open_hooks
    from ..replay.judge import Judge
    from ..replay.policies import find_policy
    from ..replay.report import HookPlace

    if options.policy is not None:
        policy = find_policy(options.policy)
        judge, about = policy.open(options.external)
        return judge, about.name, about.places, about.forms, []
    config = _config_for_ci(options) if options.ci else sound_config(options)
    if not options.ci and not options.json and options.format is None:
        say_never_trusted(config)
    forms = {configured.name: configured.form for configured in config.hooks}
    places = {configured.name: HookPlace(configured.file, configured.line) for configured in config.hooks}
    hooks = open_hooks(options.folder, config.apply, record=False)
    judge = Judge(hooks, forms=forms, external=options.external, trusted=not options.ci)
    return judge, str(config.sources.root or options.folder), places, forms, [] if options.ci else config.never_trusted


def _config_for_ci(options: argparse.Namespace) -> Any:
    from ..config.document import ConfigError
    from .check import read_for_ci

    config, mistakes, _ = read_for_ci(options.folder)
    if mistakes:
        raise ConfigError(mistakes)
    return config


# --- output ---------------------------------------------------------------------------------


def _data(result: CaseResult) -> dict[str, Any]:
    import msgspec

    case, expected = result.case, result.case.expected
    return {
        "name": case.name, "where": case.where, "passed": result.problem is None, "problem": result.problem,
        "expected": {"control": expected.control, "hook": expected.hook, "change": expected.change},
        "got": msgspec.to_builtins(result.got),
    }  # fmt: skip


def _lines(results: list[CaseResult], most: int | None) -> Iterator[str]:
    if most is None:
        yield from (f"{paint('pass', 'green')}  {escape(one.case.name)}" for one in results if one.problem is None)
    failed = [one for one in results if one.problem is not None]
    for one in failed[:most]:
        yield f"{paint('FAIL', 'red', 'bold')}  {escape(one.case.name)}"
        yield f"      {short(one.problem, 300)}"
        yield f"      {paint(escape(one.case.where), 'dim')}"
    if most is not None and len(failed) > most:
        yield f"and {len(failed) - most:,} more failed; --all shows them"


def coverage_lines(found: PublishedReport) -> Iterator[str]:
    yield paint(escape(found.summary), "bold")
    for row in found.rows:
        colour = {"pass": "green", "warning": "yellow", "error": "red"}[row.level]
        yield f"  {paint(escape(row.title), colour)}{''.join(f'; {escape(detail)}' for detail in row.details)}"


def coverage_data(coverage: PolicyCoverage) -> dict[str, Any]:
    import msgspec

    hooks = [
        msgspec.to_builtins(one) | {"status": one.status, "shadowed_by": one.shadowed_by, "slow": one.is_slow}
        for one in coverage.hooks
    ]
    return {"percent": round(coverage.percent, 1), "steps": coverage.steps, "hooks": hooks}
