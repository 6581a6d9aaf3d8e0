"""A failure policy that is a verdict: what it does in each phase, and where it is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fairlead import (
    Approval,
    HookAborted,
    Hooks,
    RegistrationError,
    UnknownName,
    allow,
    ask,
    change,
    deny,
    inject,
    retry,
    skip_rest,
    stop,
)
from fairlead.lifecycle import AfterTool, BeforeTool, SessionStart

BASH = BeforeTool(tool="bash", args={"command": "ls"})


async def broken(step: Any) -> None:
    raise RuntimeError("boom")


async def late(step: Any) -> None:
    await asyncio.Event().wait()


async def malformed(step: Any) -> dict[str, Any]:
    return {"control": "explode"}


@pytest.mark.parametrize("hook", [broken, late, malformed])
@pytest.mark.parametrize("phase", ["transform", "gate"])
async def test_every_failure_leads_to_the_verdict(hook: Any, phase: Any) -> None:
    hooks = Hooks()
    hooks.add(hook, on="before_tool", phase=phase, timeout=0.02, on_failure=stop("no policy", "refusal"))
    decision = await hooks.dispatch(BASH)
    assert (decision.control, decision.reason, decision.stop_reason) == ("stop", "no policy", "refusal")
    assert (decision.cause, decision.failures[0].policy, decision.failures[0].control) == ("failure", "verdict", "stop")


async def test_a_verdict_without_a_reason_gives_the_failure() -> None:
    hooks = Hooks()
    hooks.add(broken, on="before_tool", on_failure=deny())
    assert (await hooks.dispatch(BASH)).reason == "hook 'broken' failed at before_tool (error): RuntimeError: boom"


async def test_its_changes_and_context_are_applied() -> None:
    hooks = Hooks()
    hooks.add(broken, on="before_tool", on_failure=change(args={"command": "true"}, context="The policy is down."))
    decision = await hooks.dispatch(BASH)
    assert (decision.control, decision.step.args, decision.step.target.command) == (
        "proceed",
        {"command": "true"},
        "true",
    )
    assert decision.context == ("The policy is down.",)
    assert "RuntimeError: boom" in decision.warnings[0]


async def test_it_may_ask_a_human() -> None:
    async def approve(request: Any) -> Approval:
        return Approval("allow", "ann")

    hooks = Hooks(approver=approve)
    hooks.add(broken, on="before_tool", phase="gate", on_failure=ask("The policy is down. Run it?"))
    decision = await hooks.dispatch(BASH)
    assert (decision.control, decision.approvals[0].question) == ("allow", "The policy is down. Run it?")


async def test_skip_rest_leaves_out_the_transforms_that_follow() -> None:
    hooks = Hooks()
    hooks.add(broken, on="before_tool", on_failure=skip_rest())
    hooks.add(lambda step: deny("never said"), on="before_tool", name="next")
    hooks.add(lambda step: inject("judged"), on="before_tool", phase="gate", name="gate")
    decision = await hooks.dispatch(BASH)
    assert (decision.control, decision.context) == ("proceed", ("judged",))


async def test_the_error_is_the_cause_where_a_denial_aborts() -> None:
    hooks = Hooks()
    hooks.add(broken, on=["session_start", "before_tool"], on_failure=deny("no policy"))
    with pytest.raises(HookAborted, match=r"^\[broken:hook_abort\] no policy$") as raised:
        (await hooks.dispatch(SessionStart())).raise_for_abort()
    assert isinstance(raised.value.__cause__, RuntimeError)
    (refusal,) = (await hooks.dispatch(BASH)).verdicts
    assert (refusal.verdict.control, refusal.error) == ("deny", None)


async def test_a_monitored_hook_only_records_it() -> None:
    hooks = Hooks()
    hooks.add(broken, on="before_tool", enforce=False, on_failure=stop("no policy"))
    decision = await hooks.dispatch(BASH)
    assert (decision.control, decision.monitored[0].control, decision.monitored[0].cause) == (
        "proceed",
        "stop",
        "failure",
    )


async def test_a_step_that_does_not_take_it_is_refused_as_closed() -> None:
    hooks = Hooks()
    hooks.add(broken, on="after_tool", on_failure=retry())
    ran = await hooks.dispatch(AfterTool(tool="bash", outcome="error"))
    denied = await hooks.dispatch(AfterTool(tool="bash", outcome="denied", executed=False))
    assert (ran.control, denied.control, denied.failures[0].policy) == ("retry", "deny", "closed")


@pytest.mark.parametrize(
    ("policy", "options", "problem"),
    [
        (retry(), {}, "does not take 'retry'"),
        (change(args={}), {"phase": "gate"}, "a gate only judges"),
        (allow(), {"layer": "project"}, "may not loosen"),
        (deny(), {"phase": "observe"}, "takes no on_failure"),
        ({"control": "deny"}, {}, "or a verdict, not"),
        ("opn", {}, "did you mean 'open'"),
    ],
    ids=["control", "gate", "project", "observer", "dict", "word"],
)
def test_a_policy_that_can_never_be_applied_is_refused(policy: Any, options: Any, problem: str) -> None:
    with pytest.raises((RegistrationError, UnknownName), match=problem):
        Hooks().add(broken, on="before_tool", on_failure=policy, **options)
