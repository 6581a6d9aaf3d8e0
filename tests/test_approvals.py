"""`ask`: a human decides about the final step. Whatever is not a clear yes is a no."""

from __future__ import annotations

import asyncio
import io
import os

import pytest

from fairlead import Approval, ApprovalRequest, Hooks, TerminalApprover, allow, ask, change, deny
from fairlead.lifecycle import BeforeTool

STEP = BeforeTool(tool="bash", args={"command": "rm -r build"})


def asking(approver=None, **options) -> Hooks:
    hooks = Hooks(approver=approver, **options)
    hooks.add(lambda s: ask("Delete it?"), on="before_tool", name="asks", phase="gate")
    return hooks


def answering(answer):
    async def approver(request: ApprovalRequest):
        return answer

    return approver


@pytest.mark.parametrize(
    "yes", [Approval("allow", "anna", "fine"), ("allow", "anna", "fine"), ("allow",), allow("fine")]
)
async def test_approved_is_allow(yes):
    decision = await asking(answering(yes)).dispatch(STEP)
    assert (decision.control, decision.cause, decision.hook) == ("allow", "approval", "asks")


@pytest.mark.parametrize(
    "no", [Approval("deny", "anna", "not today"), ("deny", "anna", "not today"), deny("not today")]
)
async def test_refused_is_deny_with_the_reason(no):
    decision = await asking(answering(no)).dispatch(STEP)
    assert (decision.control, decision.cause, decision.denied) == ("deny", "approval", True)
    assert "not today" in decision.reason


@pytest.mark.parametrize("odd", [True, None, "allow", ("maybe",), (), 1, ask("?"), {"answer": "allow"}])
async def test_anything_but_a_clear_answer_is_deny(odd):
    assert (await asking(answering(odd)).dispatch(STEP)).control == "deny"


async def test_no_approver_is_a_deny():
    decision = await asking().dispatch(STEP)
    assert (decision.control, decision.cause) == ("deny", "approval")
    assert "no approver is set" in decision.reason


async def test_late_is_deny():
    async def never(request):
        await asyncio.Event().wait()

    decision = await asking(never, approval_timeout=0.02).dispatch(STEP)
    assert (decision.control, decision.reason) == ("deny", "not approved: no answer within 0.02 s")


async def test_an_approver_that_breaks_is_deny():
    async def broken(request):
        raise OSError("no terminal")

    assert "no terminal" in (await asking(broken).dispatch(STEP)).reason


async def test_the_answer_says_who_and_why():
    decision = await asking(answering(Approval("allow", "anna", "it is mine"))).dispatch(STEP)
    assert decision.approval == Approval("allow", "anna", "it is mine")


async def test_the_approver_sees_the_final_step_the_question_and_the_hook():
    requests = []

    async def approver(request):
        requests.append(request)
        return Approval("allow")

    hooks = asking(approver)
    hooks.add(lambda s: change(command="rm -r dist"), on="before_tool", name="rewrite")
    await hooks.dispatch(STEP)
    (request,) = requests
    assert (request.step.target.command, request.question, request.hook) == ("rm -r dist", "Delete it?", "asks")


async def test_no_human_is_asked_when_another_hook_denies():
    async def approver(request):
        raise AssertionError("asked")

    hooks = asking(approver)
    hooks.add(lambda s: deny("no"), on="before_tool", name="denies", phase="gate")
    decision = await hooks.dispatch(STEP)
    assert (decision.control, decision.cause, decision.reason) == ("deny", "policy", "no")


async def test_an_ask_outweighs_an_allow():
    hooks = asking(answering(("deny",)))
    hooks.add(lambda s: allow(), on="before_tool", name="allows", phase="gate")
    assert (await hooks.dispatch(STEP)).control == "deny"


async def test_observers_see_the_answer():
    seen = []
    hooks = asking(answering(("allow", "anna")))
    hooks.add(lambda s, d: seen.append(d.control), on="before_tool", phase="observe", name="watch")
    await hooks.dispatch(STEP)
    assert seen == ["allow"]


async def test_cancelling_the_caller_cancels_the_question():
    asked, cancelled = asyncio.Event(), []

    async def approver(request):
        asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    task = asyncio.create_task(asking(approver).dispatch(STEP))
    await asked.wait()
    task.cancel()
    await asyncio.wait([task])
    assert (task.cancelled(), cancelled) == (True, [True])


async def test_an_approver_may_be_an_object():
    class Desk:
        async def approve(self, request: ApprovalRequest) -> Approval:
            return Approval("allow", "desk")

    assert (await asking(Desk()).dispatch(STEP)).control == "allow"


@pytest.mark.parametrize(
    ("typed", "control"), [("y\n", "allow"), ("YES\n", "allow"), ("n\n", "deny"), ("\n", "deny"), ("", "deny")]
)
async def test_the_terminal_approver_takes_only_yes_for_an_answer(typed: str, control: str):
    shown = io.StringIO()
    decision = await asking(TerminalApprover(shown, io.StringIO(typed))).dispatch(STEP)
    assert decision.control == control
    assert "Delete it?" in shown.getvalue()
    assert "rm -r build" in shown.getvalue()


async def test_the_terminal_approver_shows_no_escapes():
    shown = io.StringIO()
    hooks = asking(TerminalApprover(shown, io.StringIO("n\n")))
    await hooks.dispatch(BeforeTool(tool="bash", args={"command": "\x1b[2Jls \u202e"}))
    assert "\x1b" not in shown.getvalue()
    assert "\u202e" not in shown.getvalue()


async def test_a_question_without_an_answer_at_the_terminal_times_out():
    read_end, write_end = os.pipe()
    with os.fdopen(read_end) as silent, os.fdopen(write_end, "w"):
        hooks = asking(TerminalApprover(io.StringIO(), silent), approval_timeout=0.02)
        decision = await asyncio.wait_for(hooks.dispatch(STEP), 1)
        assert decision.control == "deny"
        os.write(write_end, b"n\n")
