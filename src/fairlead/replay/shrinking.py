"""Finds the smallest command that still shows a difference: words are left out while it stays."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from ..errors import FairleadError
from ..lifecycle import BeforeTool, Step
from ..verdict import apply
from .judge import Judge
from .records import AnyStep, Body, Recorded
from .report import ChangeClass, DiffReport, ReportedAnswer

CLASSES: Final = 40
"""Classes whose examples are made smaller: more do not fit on a screen."""
TRIES: Final = 200
"""Commands that are tried for one example."""
LONGEST: Final = 2_000
"""Characters of a command that is made smaller."""
_WORD = re.compile(r"""(?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|[^\s;&|])+|[;&|]+""", re.DOTALL)


async def shrink_examples(report: DiffReport, old: Judge, new: Judge) -> None:
    """Make the examples of a report's first classes smaller."""
    for change in report.changes[:CLASSES]:
        await _shrink(change, old, new)


async def _shrink(change: ChangeClass, old: Judge, new: Judge) -> None:
    example = change.example
    step: Step | None = msgspec.json.decode(example.step, type=AnyStep | None)
    if not isinstance(step, BeforeTool) or not step.target.command or len(step.target.command) > LONGEST:
        return

    async def differs(command: str) -> bool:
        try:
            other = apply(step, {"command": command}, new.hooks.tools)
        except FairleadError:
            return False
        recorded = Recorded(Body(id=example.record, at=int(example.at * 1e9), step=other))
        results = []
        for judge in (old, new):
            judge.begin(is_cold=False)
            judged = await judge.judge(recorded)
            if judged.unknown:
                return False
            results.append(ReportedAnswer.of(judged.answers[0]))
        return results == [change.before, change.after]

    if await differs(step.target.command):
        smallest = await smallest_command(step.target.command, differs)
        example.shrunk = smallest if smallest != step.target.command else None


async def smallest_command(command: str, differs: Callable[[str], Awaitable[bool]]) -> str:
    """The command without the words that make no difference."""
    words = [found[0] for found in _WORD.finditer(command)]
    tries, size = 0, max(len(words) // 2, 1)
    best = command
    while size and tries < TRIES:
        at, removed = 0, False
        while at < len(words) and tries < TRIES:
            fewer = words[:at] + words[at + size :]
            tries += 1
            if fewer and await differs(" ".join(fewer)):
                words, best, removed = fewer, " ".join(fewer), True
            else:
                at += size
        size = size // 2 if size > 1 or not removed else size
    return best
