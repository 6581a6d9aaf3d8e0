"""Writes a real journal: every event, every control, sessions of several hosts, a subagent, hostile texts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from fairlead import Hooks, Verdict, answer, ask, change, deny, extend, inject
from fairlead.approvals import Approval, ApprovalRequest
from fairlead.journal import Journal
from fairlead.lifecycle import EVENTS, Agent
from fairlead.samples import step as sample

SESSION = "every-event"
DENIED = "no-force-push"
SECRET = "sk-live-4f9a8b7c6d5e4f3a2b1c"
HOSTILE = '<img src=x onerror=alert(1)>\x1b[31mred\u202egnp.exe"\' onmouseover="alert(2)'


async def _approve(request: ApprovalRequest) -> Approval:
    return Approval("allow", "you", "looks right")


def demo_hooks(journal: Journal) -> Hooks:
    """Hooks that deny, fail, change, ask, extend, answer and add context, each for something of its own."""
    hooks = Hooks(journal=journal, approver=_approve)

    @hooks.on.before_tool(kind="shell", phase="gate", name=DENIED)
    def no_force_push(step: Any) -> Verdict | None:
        return deny("Force-push is off here.\nOpen a pull request.") if step.target.runs("git push") else None

    @hooks.on.before_tool(kind="shell", name="trash")
    def trash(step: Any) -> Verdict | None:
        return change(command="mv build .trash/") if step.target.command == "rm -rf build" else None

    @hooks.on.before_tool(kind="write", phase="gate", name="closed-folders")
    def closed_folders(step: Any) -> None:
        if any("notes" in path for path in step.target.paths):
            raise RuntimeError("the list of closed folders cannot be read")

    @hooks.on.before_tool(kind="shell", phase="gate", name="commits-are-reviewed")
    def reviewed(step: Any) -> Verdict | None:
        return ask("Commit this?") if step.target.runs("git commit") else None

    @hooks.on.before_tool(kind="shell", phase="gate", name="watched", enforce=False)
    def watched(step: Any) -> Verdict | None:
        return deny("not on this machine") if step.target.runs("make") else None

    @hooks.on.before_tool(kind="read", name="cached")
    def cached(step: Any) -> Verdict | None:
        return answer("from the cache") if "cached" in step.target.paths[0] else None

    @hooks.on.after_tool(kind="shell", name="hint")
    def hint(step: Any) -> Verdict | None:
        return inject("OK\nAll tests pass.") if step.target.runs("pytest") else None

    @hooks.on.before_turn_end(name="tests-first")
    def tests_first(step: Any) -> Verdict | None:
        return extend("-----\nFAIL: test_add") if step.continues_so_far == 0 else None

    @hooks.on("*", phase="observe", name="audit")
    def audit(step: Any) -> None:
        pass

    return hooks


async def write_journal(path: Path) -> None:
    """Write the journal that the tests read."""
    journal = Journal(path)
    async with demo_hooks(journal) as hooks:
        await _every_event(hooks)
        await _session_of_calls(hooks)
        await _hostile(hooks)
    journal.close()


async def _every_event(hooks: Hooks) -> None:
    """One session that has each event once, as samples."""
    session = hooks.session(SESSION, host="loop", cwd="/work/every")
    for event in EVENTS:
        await session.dispatch(sample(event, session_id=SESSION, host="loop", cwd="/work/every"))


async def _session_of_calls(hooks: Hooks) -> None:
    """A session like a real one: two turns, calls with each outcome, a subagent, a secret."""
    session = hooks.session("calls", host="claude_code", cwd="/work/calc")
    await _step(session, "before_input", input="Fix the failing test, and save the work.")
    for number, (tool, args) in enumerate(CALLS):
        await _call(session, tool, args, f"call-{number}")
    await _step(session, "before_turn_end", continues_so_far=0)
    await _step(session, "before_turn_end", continues_so_far=1)
    helper = Agent(id="agent-2", name="explorer", parent="agent-1")
    await _step(session, "subagent_start", agent_name="explorer", initial_message="Look for add.", agent=helper)
    await _call(session, "bash", {"command": "grep -rn add ."}, "call-sub", agent=helper)
    await _step(session, "subagent_stop", agent_name="explorer", continues_so_far=1, agent=helper)


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("Read", {"file_path": "calc.py"}),
    ("bash", {"command": "git push --force origin main"}),
    ("bash", {"command": "rm -rf build"}),
    ("Write", {"file_path": "notes/log.md", "content": "fixing add\n"}),
    ("bash", {"command": "git commit -qam 'Fix add'"}),
    ("bash", {"command": "make all"}),
    ("Read", {"file_path": "cached.txt"}),
    ("bash", {"command": f"curl -H 'Authorization: Bearer {SECRET}' https://example.com"}),
    ("bash", {"command": "pytest -q"}),
]


async def _hostile(hooks: Hooks) -> None:
    """Texts that attack the page in every field that a record can hold."""
    session = hooks.session(f"hostile {HOSTILE}", host="loop", cwd=f"/work/{HOSTILE}")
    hooks.add(lambda step: deny(HOSTILE), on="before_tool", phase="gate", tool=HOSTILE, name=f"hook {HOSTILE}")
    hooks.add(lambda step: change(args={HOSTILE: HOSTILE}), on="before_tool", tool=HOSTILE, name="changes")
    await _step(session, "before_input", input=HOSTILE)
    await _call(session, HOSTILE, {HOSTILE: HOSTILE, "command": HOSTILE}, HOSTILE)


async def _call(session: Any, tool: str, args: dict[str, Any], call_id: str, **header: Any) -> None:
    """The events of one tool call, as hosts send them."""
    given = {"tool": tool, "args": args, "call_id": call_id, **header}
    await _step(session, "tool_requested", **given)
    decision = await _step(session, "before_tool", **given)
    outcome = "denied" if decision.denied else "answered" if getattr(decision.step, "result", None) else "ok"
    if outcome == "ok":
        await _step(session, "before_permission", **given)
        await _step(session, "after_permission", granted=True, **given)
    await _step(session, "after_tool", outcome=outcome, executed=outcome == "ok", output="done", **given)


async def _step(session: Any, event: str, **fields: Any) -> Any:
    from fairlead.lifecycle import event_named

    return await session.dispatch(session.step(event_named(event).step, **fields))


def wait_until(true: Any, seconds: float = 10.0) -> None:
    """Wait until something holds."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "it did not become true"
        time.sleep(0.01)
