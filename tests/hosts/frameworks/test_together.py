"""One `Hooks` serves two frameworks in one process, at the same time: separate sessions, one journal."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import driver_langchain
import driver_pydantic_ai
from driver import Say, Workbench, call
from scene import has

from fairlead import Hooks, current_session, deny, inject
from fairlead.journal import Journal
from fairlead.journal.reading import Reader
from fairlead.journal.verify import verify
from fairlead.lifecycle import BeforeTool

LS, RM = call("shell", command="ls"), call("shell", command="rm -r /")
RUNS = 20


def policy(hooks: Hooks) -> None:
    """Some hooks, one of which counts in the session."""

    @hooks.on.before_tool(kind="shell", phase="gate")
    def no_rm(step: BeforeTool):
        session = current_session()
        assert session is not None
        session.state["host"] = session.state.get("host", step.host)
        assert session.state["host"] == step.host
        session.store.increment("calls")
        if step.target.command.startswith("rm"):
            return deny(f"not in {step.host}, call {session.store.get('calls')}")
        return None

    hooks.add(lambda step: inject(f"You are in {step.host}."), on="before_input", name="where")


async def test_two_frameworks_share_hooks_and_journal_but_no_session(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    drivers = {"langchain": driver_langchain.Driver(), "pydantic_ai": driver_pydantic_ai.Driver()}
    with Journal(path) as journal:
        hooks = Hooks(journal=journal)
        policy(hooks)
        benches = {name: [Workbench() for _ in range(RUNS)] for name in drivers}
        work = [
            drivers[name].play(hooks, LS, RM, Say(f"Done by {name} {number}."), bench=benches[name][number])
            for number in range(RUNS)
            for name in drivers
        ]
        played = await asyncio.gather(*work)
    for number, one in enumerate(played):
        name, other = ("langchain", "pydantic_ai") if number % 2 == 0 else ("pydantic_ai", "langchain")
        assert (one.error, one.output) == (None, f"Done by {name} {number // 2}.")
        assert has(one.sent[0], f"You are in {name}.")
        assert has(one.sent[2], f"not in {name}, call 2", "tool")
        assert not any(has(request, other) for request in one.sent)
    for name in drivers:
        assert [bench.ran for bench in benches[name]] == [[("shell", {"command": "ls"})]] * RUNS
    assert verify(path).problem is None
    with Reader(path) as reader:
        steps = [record.body["step"] for record in reader.records() if not record.is_note]
    assert Counter((step["host"], step["event"]) for step in steps)["langchain", "before_tool"] == 2 * RUNS
    assert Counter((step["host"], step["event"]) for step in steps)["pydantic_ai", "before_tool"] == 2 * RUNS
    sessions: dict[str, set[str]] = {}
    for step in steps:
        sessions.setdefault(step["session_id"], set()).add(step["host"])
    assert (len(sessions), {len(hosts) for hosts in sessions.values()}) == (2 * RUNS, {1})
