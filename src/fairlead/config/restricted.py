"""A hook whose verdicts are limited: those of a project, and those with `may = [...]`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from ..errors import MalformedVerdict
from ..hook import RunnerResult
from ..lifecycle import EVENTS, Step
from ..verdict import keep_within
from .wrapper import HookWrapper

PROJECT_MAY = ("deny", "ask", "stop", "warn")
"""What a project's hook may do unless its `may`, which `fairlead trust` shows, lists more."""


class RestrictedHook(HookWrapper):
    """Runs a hook and refuses a verdict that the hook may not return."""

    def __init__(self, fn: Callable[[Step], Any], may: Iterable[str], never: Collection[str] = ()) -> None:
        super().__init__(fn)
        self.may = tuple(dict.fromkeys(may))
        self._never = never

    @property
    def form(self) -> str:
        """What kind of hook it runs: see `fairlead.hook.form_of`."""
        return str(getattr(type(self.fn), "form", "python"))

    async def __call__(self, step: Step) -> Any:
        result = await super().__call__(step)
        if result is None:
            return None
        verdict, details = (result.verdict, result.details) if isinstance(result, RunnerResult) else (result, None)
        try:
            keep_within(verdict, EVENTS[step.event], self.may, self._never)
        except MalformedVerdict as problem:
            problem.details = details
            raise
        return result
