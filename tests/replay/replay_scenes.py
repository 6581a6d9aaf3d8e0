"""Small worlds to record and to replay: hooks that depend on known things, and traffic."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairlead import Hooks, Journal, Verdict, allow, ask, change, current_session, deny, inject, warn
from fairlead.lifecycle import EVENTS, HEADER, BeforeTool, Step
from fairlead.replay.judge import Judge
from fairlead.replay.report import ReplayReport
from fairlead.replay.reproduce import reproduce
from fairlead.replay.sources import Selection, Traffic, open_source
from fairlead.samples import every_step
from fairlead.session import Session

SECRET = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7aB3dE6gH9"
DERIVED = ("kind", "target", "safety", "state")
OPENED: list[Traffic] = []
"""What `traffic_of` opened in this test; `conftest` closes it."""


def shell(command: str, **fields: Any) -> BeforeTool:
    return BeforeTool(tool="bash", args={"command": command}, **fields)


def fields_of(step: Step) -> dict[str, Any]:
    """The fields of a sample that a session's step can be built of."""
    return {name: getattr(step, name) for name in step.__struct_fields__ if name not in (*HEADER, *DERIVED)}


def every_event(session: Session) -> list[Step]:
    return [session.step(type(step), **fields_of(step)) for step in every_step()]


# --- hooks, by what they depend on ----------------------------------------------------------


def force_push(step: Any) -> Verdict | None:
    return deny("no force-push") if "--force" in (step.target.command or "") else None


def rate(step: Any) -> Verdict | None:
    return deny("too many") if current_session().store.hit("calls", within=60) > 3 else None


def budget(step: Any) -> Verdict | None:
    return warn("much") if current_session().store.increment("calls") > 5 else None


def remember(step: Any) -> Verdict | None:
    state = current_session().state
    state["n"] = state.get("n", 0) + 1
    return deny("every fifth") if state["n"] % 5 == 0 else None


def sample(step: Any) -> Verdict | None:
    return inject("sampled") if current_session().random(step, "sample").random() < 0.4 else None


def hour(step: Any) -> Verdict | None:
    return ask("late") if int(current_session().now() / 1000) % 2 == 0 else None


def verbose(step: Any) -> Verdict | None:
    command = step.target.command or ""
    return change(command=f"{command} -v") if command.startswith("git") else None


def questions(step: Any) -> Verdict | None:
    return ask("really?") if "rm " in (step.target.command or "") else None


def secret(step: Any) -> Verdict | None:
    return deny("a token") if "gh" + "p_" in (step.target.command or "") else None


def broken(step: Any) -> Verdict | None:
    if "boom" in (step.target.command or ""):
        raise ValueError("boom")
    return None


def environment(step: Any) -> Verdict | None:
    return deny("set") if os.environ.get("FAIRLEAD_TEST_REPLAY") else None


PURE: dict[str, Callable[[Any], Verdict | None]] = {
    one.__name__: one for one in (force_push, rate, budget, remember, sample, hour, verbose, questions, broken)
}
"""Hooks that depend only on what is recorded."""


def hooks_of(*names: str, **options: Any) -> Hooks:
    hooks = Hooks(**options)
    for name in names:
        fn = {**PURE, "secret": secret, "environment": environment}[name]
        phase: Any = "transform" if name == "verbose" else "gate"
        hooks.add(fn, on="before_tool", phase=phase, name=name)
    return hooks


class Human:
    """Answers questions in turn: yes, no, yes, ..."""

    def __init__(self) -> None:
        self.asked = 0

    async def approve(self, request: Any) -> Any:
        self.asked += 1
        return allow() if self.asked % 2 else deny("no")


# --- recording and replaying ----------------------------------------------------------------


def record(path: Path, hooks: Hooks, work: Callable[[Hooks], Any]) -> None:
    """Run a scene with a journal."""
    with Journal(path) as journal:
        hooks._journal = journal
        hooks._record = True
        hooks._swap_table(hooks._by_name)
        asyncio.run(work(hooks))


async def dispatch_all(hooks: Hooks, commands: list[list[str]]) -> None:
    """Each list of commands is a session."""
    for number, some in enumerate(commands):
        session = hooks.session(f"s-{number}", host="loop", cwd="/repo", user_id=f"user-{number % 2}")
        for command in some:
            await session.dispatch(session.step(BeforeTool, tool="bash", args={"command": command}))


def traffic_of(*paths: Path, **selection: Any) -> Traffic:
    OPENED.append(Traffic([open_source(str(path)) for path in paths], Selection(**selection)))
    return OPENED[-1]


def replay(path: Path, hooks: Hooks, **options: Any) -> ReplayReport:
    traffic = traffic_of(path)
    try:
        return asyncio.run(reproduce(Judge(hooks, enforced=False, **options), traffic))
    finally:
        traffic.close()


def causes(report: ReplayReport) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for one in report.differences:
        found[one.cause, one.what] = found.get((one.cause, one.what), 0) + one.spread.count
    return found


__all__ = ["EVENTS", "PURE", "SECRET", "Human", "causes", "dispatch_all", "every_event", "hooks_of", "record",
           "replay", "shell", "traffic_of"]  # fmt: skip
