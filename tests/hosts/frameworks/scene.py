"""A scene of the portable suite: hooks, a driver, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from driver import Call, Driver, Played, Say, Workbench

from fairlead import Decision, HookAborted, Hooks, Step, Verdict
from fairlead.approvals import ApproveFn

Way = Literal["async", "streaming", "sync"]


class Scene:
    """One driver, run in one way, with hooks whose decisions are kept."""

    def __init__(self, driver: Driver, way: str, *, approver: ApproveFn | None = None, recorded: bool = True) -> None:
        self.driver, self.way = driver, way
        self.decisions: list[Decision[Any]] = []
        self.hooks = Hooks(journal=self.decisions.append if recorded else None, approver=approver)
        self.bench = Workbench()
        self.adapter: Any = None
        self.errors: list[BaseException] = []
        self.seen = "yes"
        """What is told of it in the matrix: "yes", "reported" (as unsupported), "approver" (only the
        hooks' own approver is asked), "silent" (the event does not fire)."""

    # --- hooks ------------------------------------------------------------------------------

    def add(self, said: Verdict | Callable[..., Any], on: str, *, once: bool = False, **options: Any) -> None:
        """Add a hook that says something, each time or once."""
        left = [1] if once else None

        def judge(step: Step) -> Any:
            if left is not None and not left:
                return None
            if left is not None:
                left.pop()
            return said(step) if callable(said) else said

        self.hooks.add(judge, on=on, **{"name": "judge", **options})

    def can(self, event: str, part: str | None = None) -> bool:
        """Whether the framework's table says so. Without a part: whether the event fires at all."""
        table = self.driver.framework.capabilities(self.way == "streaming")
        return event in table and (part is None or part in table[event])

    # --- playing ----------------------------------------------------------------------------

    async def play(self, *script: Say | Call | Exception, **options: Any) -> Played:
        options.setdefault("bench", self.bench)
        options.setdefault("adapter", self.adapter)
        played = await self.driver.play(
            self.hooks, *script, streaming=self.way == "streaming", sync=self.way == "sync", **options
        )
        error = played.error
        while error is not None and error not in self.errors:  # two may be each other's cause
            self.errors.append(error)
            error = error.__cause__ or error.__context__
        return played

    # --- what came of it --------------------------------------------------------------------

    @property
    def ran(self) -> list[tuple[str, dict[str, Any]]]:
        return self.bench.ran

    @property
    def events(self) -> list[str]:
        return [decision.event for decision in self.decisions]

    def of(self, event: str) -> list[Decision[Any]]:
        return [decision for decision in self.decisions if decision.event == event]

    def steps(self, event: str) -> list[Any]:
        return [decision.step for decision in self.of(event)]

    @property
    def reported(self) -> set[tuple[str, str]]:
        """What the framework cannot carry out of what was wanted."""
        return {(decision.event, part) for decision in self.decisions for part in decision.unsupported}


def has(lines: list[str], text: str, role: str = "") -> bool:
    """Whether one of these messages, of some role, has the text in it."""
    return any(line.startswith(role) and text in line for line in lines)


def aborted(error: BaseException | None) -> bool:
    """Whether a run failed because a hook aborted it."""
    while error is not None:
        if isinstance(error, HookAborted) or any(map(aborted, getattr(error, "exceptions", ()))):
            return True
        if "hook_abort" in str(error):  # a framework that wraps what went wrong in its own words
            return True
        error = error.__cause__ or error.__context__
    return False
