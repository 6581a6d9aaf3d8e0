"""`fairlead test --mutate`: writes the commands that a policy stops in other ways, and finds those that get past."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..display import escape, paint, short, styled
from .cases import open_judge
from .formats import outputs_of, show
from .loading import quiet_log

if TYPE_CHECKING:
    from ..replay.judge import Judge
    from ..replay.mutation import Mutation, RecordedNames

SHOWN = 8
"""Spellings that are listed of each command without --all."""


def add_mutations(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--mutate", nargs="*", metavar="COMMAND",
        help="write these commands in other ways, and see which get past the policy; without a COMMAND, those of "
        "--cases, or those that the policy stops in --journal. Nothing is run",
    )  # fmt: skip
    parser.add_argument(
        "--journal", metavar="FILE", action="append",
        help="with --mutate: the journal or exported file with the commands (default: the configured journal)",
    )  # fmt: skip


def run_mutations(options: argparse.Namespace) -> int:
    import asyncio

    from ..errors import FairleadError
    from ..replay.mutation import mutate, of_mutations

    quiet_log()
    outputs_of(options)
    if options.coverage or options.min_coverage is not None:
        raise FairleadError("--coverage counts the cases of --cases, and says nothing of --mutate")
    judge, name, places, _, untrusted = open_judge(options)

    async def run() -> tuple[list[Mutation], list[str], RecordedNames | None]:
        try:
            commands, names = await _commands(options, judge)
            return *await mutate(judge, commands), names
        finally:
            await judge.hooks.aclose()

    found, passing, names = asyncio.run(run())
    if not found:
        example = f": {short(passing[0], 80)}" if passing else ""
        more = f"; not in force: {', '.join(untrusted)}" if untrusted else ""
        raise FairleadError(f"the policy stops none of {len(passing):,} commands{example}{more}")
    report = of_mutations(found, name, places, names=names, who=options.who)
    show(options, report, _data(found, passing, name), _lines(found, passing, report.summary, options.all))
    return 2 if report.failed else 0


async def _commands(options: argparse.Namespace, judge: Judge) -> tuple[list[str], RecordedNames | None]:
    """The commands that the options name; if they are recorded ones, with the names of users and folders."""
    from ..replay.cases import read_cases
    from ..replay.mutation import stopped_commands
    from ..replay.sources import Traffic, open_source
    from .diff import paths_of

    if options.mutate:
        return list(options.mutate), None
    if options.cases:
        targets = [getattr(case.step, "target", None) for path in options.cases for case in read_cases(path)]
        return [target.command for target in targets if target is not None and target.command], None
    with Traffic([open_source(path) for path in paths_of(options)]) as traffic:
        return await stopped_commands(judge, traffic)


def _data(found: list[Mutation], passing: list[str], policy: str) -> dict[str, Any]:
    import msgspec

    rows = [
        msgspec.to_builtins(one)
        | {"past": len(one.past), "proven": len(one.proven), "neighbours_stopped": len(one.stopped),
           "shortest": one.past[0].command if one.past else None}
        for one in found
    ]  # fmt: skip
    return {"policy": policy, "commands": rows, "not_stopped": passing}


def _lines(found: list[Mutation], passing: list[str], summary: str, everything: bool) -> Iterator[str]:
    from ..replay.mutation import details_of, title_of

    for one in found:
        colour = "red" if one.past else "yellow" if one.stopped else "green"
        yield styled(title_of(one), "bold", colour)
        yield from (f"  {escape(detail)}" for detail in details_of(one))
        shown = one.past if everything else one.past[:SHOWN]
        yield from (f"    {paint(f'{spelling.kind:<14}', 'dim')}{short(spelling.command, 120)}" for spelling in shown)
        if len(one.past) > len(shown):
            yield f"    and {len(one.past) - len(shown)} more; --all shows them"
        yield ""
    if passing:
        yield f"not stopped as they are: {', '.join(short(command, 60) for command in passing[:5])}"
    yield escape(summary)
