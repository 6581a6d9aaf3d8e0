"""`fairlead stats`: how often each hook ran, denied and failed, and how often each rule of a pack spoke."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ..display import columns, escape, paint, print_json, short
from .journals import add_filters, add_journals, filter_of, open_journals

if TYPE_CHECKING:
    from ..journal.reading import HookStats, RuleStats

WIDTH = 24


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "stats",
        help="count runs, denials and failures of each hook",
        description="Per hook: how often it ran, denied and failed, how long it took, and its share of the time. Per "
        "rule of a pack: how often it denied and asked, or would have.",
    )
    add_journals(parser)
    add_filters(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..journal.reading import hook_stats, rule_stats

    with ExitStack() as held:
        readers, which = open_journals(options, held), filter_of(options)
        counts: Counter[str] = Counter()
        for reader in readers:
            counts.update(reader.counts(which))
        hooks, rules = hook_stats(readers, which), rule_stats(readers, which)
    if options.json:
        print_json({"decisions": counts, "hooks": hooks, "rules": rules})
        return 0
    if not counts:
        print("The journal has no such records.", file=sys.stderr)
        return 0
    totals = ", ".join(f"{number} {control}" for control, number in sorted(counts.items(), key=lambda c: -c[1]))
    print(f"{sum(counts.values())} decisions: {totals}\n")
    watched = any(stats.monitored for stats in hooks)
    if hooks:
        head = (
            "hook",
            "runs",
            "denied",
            *(("would stop",) if watched else ()),
            "failed",
            "p50",
            "p99",
            "share of time",
        )
        print(columns([head, *(_row(stats, watched) for stats in hooks)]))
    if rules:
        head = ("rule", "denied", "asked", *(("would stop",) if watched else ()), "last call")
        print("\n" + columns([head, *(_rule_row(stats, watched) for stats in rules)]))
    return 0


def _rule_row(stats: RuleStats, watched: bool) -> tuple[str, ...]:
    would = (str(stats.would_stop),) if watched else ()
    return (escape(stats.rule), str(stats.denied), str(stats.asked), *would, short(stats.last, 60))


def _row(stats: HookStats, watched: bool) -> tuple[str, ...]:
    bar = bar_of(stats.share, WIDTH)
    would = (str(stats.monitored),) if watched else ()
    return (
        escape(stats.hook), str(stats.runs), str(stats.denials), *would, str(stats.failures), _time(stats.p50),
        _time(stats.p99), f"{paint(bar, 'blue')} {stats.share:.0%}",
    )  # fmt: skip


def bar_of(share: float, width: int) -> str:
    """A bar, to an eighth of a character."""
    eighths = round(share * width * 8)
    return "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8].strip())


def _time(taken: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if taken * factor >= 1:
            return f"{taken * factor:.1f} {unit}"
    return f"{taken * 1e6:.1f} us"
