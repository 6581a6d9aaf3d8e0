"""A decision from the daemon is the one that the same hooks make in this process, for every event."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from machines import Daemon, Machine

from fairlead import EVENTS, Decision, Hooks
from fairlead.client import AsyncClient, Client
from fairlead.config import load
from fairlead.lifecycle import BeforeTool
from fairlead.samples import every_step, step
from fairlead.server.approvals import ApprovalContext, ApprovalStore, approval_context
from fairlead.wire.decisions import decode_decision, encode_decision


def taking(control: str) -> list[str]:
    return [name for name, event in EVENTS.items() if control in event.controls]


WORKER = """
from fairlead import change, inject
from fairlead.lifecycle import EVENTS

NEW = {"input": "rewritten", "system_prompt": "rewritten", "output": "rewritten", "response": "rewritten",
       "content": "rewritten", "message": "rewritten", "initial_message": "rewritten", "model": "other-model",
       "args": {"command": "ls -l"}}

def rewrite(step):
    fields = {name: NEW[name] for name in EVENTS[step.event].changes if name in NEW}
    return change(**fields) if fields else None

def add_context(step):
    return inject(f"you are at {step.event}") if EVENTS[step.event].context else None
"""

REWRITE = """#!/bin/sh
echo '{"args": {"command": "ls -l"}, "reason": "tidied"}'
"""


def hook(name: str, on: Any, how: str, *more: str) -> str:
    events = f'"{on}"' if isinstance(on, str) else list(on)
    return "\n".join(["[[hook]]", f'name = "{name}"', f"on = {events}", how, *more, ""])


TRUE = 'rule = "true"'
FAILS = 'command = ["/bin/false"]'
CONFIGURATIONS: dict[str, str] = {
    "nothing": "",
    "deny rule": hook("no", taking("deny"), TRUE, 'deny = "not here"'),
    "stop rule": hook("enough", taking("stop"), TRUE, 'stop = "enough"'),
    "skip rule": hook("leave-out", taking("skip"), TRUE, 'skip = "not now"', 'may = ["skip"]'),
    "extend rule": hook("go-on", taking("extend"), TRUE, 'extend = "tests fail"', 'may = ["extend"]'),
    "warn rule": hook("careful", "*", TRUE, 'warn = "careful"'),
    "rewriting worker": hook("rewrite", "*", 'python = "check.py:rewrite"', 'may = ["change", "inject"]'),
    "context from a worker": hook("where", "*", 'python = "check.py:add_context"', 'may = ["inject"]'),
    "rewriting command, then a gate": hook("tidy", "before_tool", 'command = ["./rewrite.sh"]', 'may = ["change"]')
    + hook("judge", "before_tool", "rule = 'target.command == \"ls -l\"'", 'phase = "gate"', 'deny = "no ls"'),
    "vetoing command": hook("veto", [n for n, e in EVENTS.items() if e.veto in ("deny", "stop", "skip", "extend")],
                            'command = ["/bin/false"]', "exit = { 1 = 'veto' }", 'may = ["skip", "extend"]'),
    "ask": hook("may-it", taking("ask"), TRUE, 'phase = "gate"', 'ask = "may it?"'),
    "failing, closed": hook("broken", "*", FAILS),
    "failing, open": hook("broken", "*", FAILS, 'on_failure = "open"'),
    "failing, abort": hook("broken", "*", FAILS, 'on_failure = "abort"', 'may = ["abort"]'),
    "failing gate": hook("broken", "*", FAILS, 'phase = "gate"'),
    "malformed": hook("odd", "*", 'command = ["/bin/echo", "{\\"colour\\": 1}"]'),
    "time-out": hook("slow", "*", 'command = ["/bin/sleep", "60"]', "timeout = 0.3"),
    "observer": hook("watch", "*", 'command = ["/bin/true"]', 'phase = "observe"'),
    "failing observer": hook("watch", "*", FAILS, 'phase = "observe"'),
    "monitor mode": hook("no", taking("deny"), TRUE, 'deny = "not here"', "enforce = false"),
    "failing in monitor mode": hook("broken", "*", FAILS, "enforce = false"),
    "unknown tools are refused": '[defaults]\nunknown_tool = "deny"\n',
}  # fmt: skip


def roots(machine: Machine) -> dict[str, Path]:
    return {
        name: machine.project(f"p{i}", text, check_py=WORKER, rewrite_sh=REWRITE)
        for i, (name, text) in enumerate(CONFIGURATIONS.items())
    }


@pytest.fixture(scope="module")
def projects(shared: Machine) -> dict[str, Path]:
    return roots(shared)


def said(decision: Decision[Any]) -> dict[str, Any]:
    """All that a decision tells, but how long it took and which id a question got."""
    told = {
        name: getattr(decision, name)
        for name in (
            "control", "reason", "hook", "cause", "denied", "stop_reason", "changed", "context", "warnings",
            "failures", "monitored", "unsupported", "metadata", "step", "original", "approval",
        )
    }  # fmt: skip
    told["by"] = [text.hook for text in decision.context]
    told["ran"] = [run[:3] for run in decision.runs]
    told["story"] = re.sub(r"in [\d.]+ ms", "", str(decision))
    return {name: re.sub(r"approval \S+ pending", "approval ID pending", repr(value)) for name, value in told.items()}


async def in_process(root: Path, state: Path) -> dict[str, Any]:
    """What the hooks of a project say here."""
    pending = ApprovalStore(state / "other" / "approvals.db")
    hooks = Hooks(record=True, approver=pending, approval_timeout=None)
    load(root).apply(hooks)
    approval_context.set(ApprovalContext(str(root), "", 0.0))
    try:
        decisions = await asyncio.gather(*(hooks.dispatch(one) for one in every_step()))
    finally:
        await hooks.aclose()
        pending.close()
    return {decision.event: said(decision) for decision in decisions}


async def through_the_daemon(daemon: Daemon, root: Path) -> dict[str, Any]:
    async with AsyncClient(daemon.socket, start=False) as client:
        steps = every_step()
        decisions = await asyncio.gather(*(client.dispatch(one, root=str(root), deadline=0.0) for one in steps))
    return {decision.event: said(decision) for decision in decisions}


@pytest.mark.parametrize("name", CONFIGURATIONS)
async def test_every_event_gets_the_decision_that_it_gets_in_process(
    shared: Machine, daemon: Daemon, projects: dict[str, Path], name: str
) -> None:
    here = await in_process(projects[name], shared.state)
    assert await through_the_daemon(daemon, projects[name]) == here
    assert here.keys() == EVENTS.keys()


async def test_a_client_without_a_loop_gets_what_one_with_a_loop_gets(
    daemon: Daemon, projects: dict[str, Path], client: Client
) -> None:
    root = projects["rewriting worker"]
    plain = {one.event: said(client.dispatch(one, root=str(root), deadline=0.0)) for one in every_step()}
    assert plain == await through_the_daemon(daemon, root)


def test_the_folder_of_the_step_is_the_project_if_none_is_named(projects: dict[str, Path], client: Client) -> None:
    assert client.dispatch(step("before_tool", cwd=str(projects["deny rule"]))).control == "deny"


def test_what_a_host_cannot_carry_out_is_listed(projects: dict[str, Path], client: Client) -> None:
    given = step("before_tool")
    decision = client.dispatch(given, root=str(projects["rewriting worker"]), capabilities={"before_tool": ["deny"]})
    assert decision.unsupported == ("args",)


def test_a_deny_that_a_host_cannot_carry_out_is_not_lost(projects: dict[str, Path], client: Client) -> None:
    decision = client.dispatch(step("before_tool"), root=str(projects["deny rule"]), capabilities={"before_tool": []})
    assert (decision.control, decision.cause) == ("deny", "failure")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(args=st.dictionaries(st.text(), json_values, max_size=4), session=st.text())
def test_a_step_comes_back_as_it_was_sent(
    client: Client, projects: dict[str, Path], args: dict[str, Any], session: str
) -> None:
    sent = BeforeTool(tool="bash", args=args, session_id=session)
    decision = client.dispatch(sent, root=str(projects["nothing"]))
    assert (decision.step.args, decision.step.session_id) == (sent.args, session)


@pytest.mark.parametrize("name", ["rewriting worker", "failing, closed", "monitor mode", "extend rule"])
async def test_a_decision_on_the_wire_reads_back_as_it_was(projects: dict[str, Path], name: str) -> None:
    hooks = Hooks(record=True)
    load(projects[name]).apply(hooks)
    decisions = [await hooks.dispatch(one) for one in every_step()]
    await hooks.aclose()
    assert [said(decode_decision(encode_decision(one))) for one in decisions] == [said(one) for one in decisions]


@pytest.mark.parametrize(
    ("name", "event", "expected"),
    [
        ("deny rule", "before_tool", ("deny", "policy", ())),
        ("stop rule", "turn_start", ("stop", "policy", ())),
        ("skip rule", "notification", ("skip", "policy", ())),
        ("extend rule", "before_turn_end", ("extend", "policy", ())),
        ("rewriting worker", "before_input", ("proceed", None, ("input",))),
        ("rewriting command, then a gate", "before_tool", ("deny", "policy", ("args", "target"))),
        ("vetoing command", "after_input", ("stop", "policy", ())),
        ("ask", "before_tool", ("deny", "approval", ())),
        ("failing, closed", "session_start", ("abort", "failure", ())),
        ("failing, open", "before_tool", ("proceed", None, ())),
        ("failing, abort", "before_tool", ("abort", "failure", ())),
        ("malformed", "before_tool", ("deny", "failure", ())),
        ("time-out", "before_model", ("stop", "failure", ())),
        ("monitor mode", "before_tool", ("proceed", None, ())),
    ],
)
def test_these_configurations_do_what_they_are_called(
    projects: dict[str, Path], client: Client, name: str, event: str, expected: tuple[Any, ...]
) -> None:
    decision = client.dispatch(step(event), root=str(projects[name]), deadline=0.0)
    assert (decision.control, decision.cause, decision.changed) == expected
