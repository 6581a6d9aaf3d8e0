"""A hook that may not do everything: those of a project, and those that say `may = [...]`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable
from typing import Any

from ..errors import MalformedVerdict
from ..hook import Ran
from ..lifecycle import EVENTS, Step
from ..verdict import keep_within

PROJECT_MAY = ("deny", "ask", "stop", "warn")
"""What a project's hook may do unless its `may`, which is shown when it is trusted, says more."""


class Restricted:
    """Runs a hook and holds its verdict to what it may do."""

    def __init__(self, fn: Callable[[Step], Any], may: Iterable[str], never: Collection[str] = ()) -> None:
        self.fn = fn
        self.may = tuple(dict.fromkeys(may))
        self._never = never

    def __repr__(self) -> str:
        return repr(self.fn)

    async def __call__(self, step: Step) -> Any:
        said = self.fn(step)
        if inspect.isawaitable(said):
            said = await said
        verdict, details = (said.said, said.details) if isinstance(said, Ran) else (said, None)
        try:
            keep_within(verdict, EVENTS[step.event], self.may, self._never)
        except MalformedVerdict as problem:
            problem.details = details
            raise
        return said

    async def aclose(self) -> None:
        close = getattr(self.fn, "aclose", None)
        if close is not None:
            await close()
