"""Rules that take long: they run in another process, say the same there, and keep no other request waiting."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from machines import Machine

from fairlead import Hooks
from fairlead.engine.threads import LoopShare, loop_share
from fairlead.journal import Journal
from fairlead.lifecycle import BeforeTool, BeforeTurnEnd
from fairlead.runners.rule import Rule
from fairlead.server import service as service_module
from fairlead.server.large import LargeRequests
from fairlead.server.service import DispatchRequest, Service
from fairlead.wire.steps import envelope

LONG = "args.l.all(x, args.l.all(y, x == y || true)) && false"
"""On 200 elements it takes some 30 ms, and the estimate says so."""


@pytest.fixture
async def service(machine: Machine) -> AsyncIterator[Service]:
    made = Service(machine.state, Journal(machine.state / "journal.db"))
    yield made
    await made.aclose()


def call_of(**args: Any) -> BeforeTool:
    return BeforeTool(tool="bulk", args=args, session_id="s")


async def dispatch(service: Service, step: BeforeTool, root: Path) -> Any:
    return await service.dispatch(DispatchRequest(msgspec.to_builtins(envelope(step)), root=str(root)))


def rules(number: int, rule: str, **more: str) -> str:
    lines = "".join(f"{name} = {json.dumps(text)}\n" for name, text in {"rule": rule, "deny": "no", **more}.items())
    return "".join(f'[[hook]]\nname = "rule-{i}"\non = "before_tool"\nphase = "gate"\n{lines}' for i in range(number))


RULES: dict[str, Callable[[], Rule]] = {
    "a deny": lambda: Rule('args.n == 1', on="before_tool", deny="No {args.n}."),
    "no opinion": lambda: Rule("args.n == 2", on="before_tool", deny="no"),
    "a question": lambda: Rule('tool.matches("b.*k")', on="before_tool", ask="Really {tool}?"),
    "a change": lambda: Rule(
        "true", on="before_tool", change={"command": {"match": "a+", "replace": "b"}}, warn="changed"
    ),
    "a failure": lambda: Rule("args.missing == 1", on="before_tool", deny="no"),
    "too long": lambda: Rule("args.l.all(x, args.l.all(y, x != y)) && true", on="before_tool", deny="no"),
    "context": lambda: Rule("voluntary", on="before_turn_end", extend="go on", inject="more"),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
async def test_a_rule_says_the_same_in_another_process(name: str) -> None:
    on_turn = name == "context"
    step: Any = BeforeTurnEnd(voluntary=True) if on_turn else call_of(n=1, command="caat", l=list(range(5000)))
    event, large = "before_turn_end" if on_turn else "before_tool", LargeRequests()
    hooks = Hooks()
    hooks.tools.add("bulk", kind="shell", command="command")
    hooks.add(RULES[name](), on=event, name="rule")
    here = await hooks.dispatch(step)
    share = loop_share.set(LoopShare(0.0, lambda fn, *args: large.run_in_process("", fn, *args)))
    try:
        elsewhere = await hooks.dispatch(step)
    finally:
        loop_share.reset(share)
        large.close()
    shown = [(one.control, one.reason, one.changed, one.step, one.warnings, one.context) for one in (here, elsewhere)]
    assert shown[0] == shown[1]
    assert [failure.error for failure in here.failures] == [failure.error for failure in elsewhere.failures]


async def test_a_light_step_is_judged_on_the_loop(
    service: Service, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = machine.project("p", rules(3, 'tool == "forbidden"'))

    async def run_in_process(*_: object) -> None:
        raise AssertionError("it was judged elsewhere")

    monkeypatch.setattr(service_module, "RULES_BUDGET", 60.0)  # also on a machine that is busy with something else
    monkeypatch.setattr(service.large, "run_in_process", run_in_process)
    assert (await dispatch(service, call_of(n=1), root))["control"] == "proceed"


async def test_other_requests_are_answered_while_long_rules_run(service: Service, machine: Machine) -> None:
    root, other = machine.project("p", rules(12, LONG)), machine.folder / "other"
    other.mkdir()
    light = call_of(n=1)
    await dispatch(service, light, other)
    long = asyncio.create_task(dispatch(service, call_of(l=list(range(200))), root))
    answered = 0
    while not long.done():
        await dispatch(service, light, other)
        answered += 1
    assert (await long)["control"] == "proceed"
    assert answered > 12  # at least one between any two of the rules


async def test_rules_that_have_used_up_their_share_go_on_elsewhere(
    service: Service, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = machine.project("p", rules(3, 'tool == "bulk"'))
    calls: list[Any] = []
    run_in_process = service.large.run_in_process

    async def counted(*args: Any) -> Any:
        calls.append(args)
        return await run_in_process(*args)

    monkeypatch.setattr(service.large, "run_in_process", counted)
    monkeypatch.setattr(service_module, "RULES_BUDGET", 1e-9)
    assert (await dispatch(service, call_of(n=1), root))["control"] == "deny"
    assert len(calls) == 2  # the first one used it up


async def test_a_rule_whose_process_is_gone_fails_by_its_policy(
    service: Service, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = machine.project("p", rules(1, LONG))

    def broken(*_: Any) -> Any:
        raise OSError("no process")

    monkeypatch.setattr("fairlead.server.offload._start", broken)
    answer = await dispatch(service, call_of(l=list(range(200))), root)
    assert (answer["control"], answer["cause"]) == ("deny", "failure")
