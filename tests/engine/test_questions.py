"""Every question of a step is put to a human, and the step is allowed only if each of them is answered with a yes."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead import Approval, ApprovalRequest, Decision, Hooks, TerminalApprover, Verdict, allow, ask, change, deny
from fairlead.hosts.clis.effect import effect_of, reason_of
from fairlead.lifecycle import BeforeTool
from fairlead.wire.decisions import decode_decision, encode_decision, summary
from fairlead.worker import verdict_of

quick = settings(deadline=None, max_examples=100, derandomize=True, database=None)
STEP = BeforeTool(tool="bash", args={"command": "rm -r build"})
SPEND, DELETE = "spend 5 EUR?", "delete the production database?"


class Desk:
    """Answers by the question's text, one after another, and keeps what was put."""

    def __init__(self, **answers: str) -> None:
        self.answers = answers
        self.put: list[str | None] = []

    async def approve(self, request: ApprovalRequest) -> Approval:
        await asyncio.sleep(0)
        self.put.append(request.question)
        return Approval(self.answers.get(request.hook, "allow"), "ann")  # type: ignore[arg-type]


class Board(Desk):
    """Takes all questions at once."""

    async def approve_all(self, requests: Sequence[ApprovalRequest]) -> list[Approval]:
        return [await self.approve(request) for request in requests]


def two(approver: Any = None, **options: Any) -> Hooks:
    hooks = Hooks(approver=approver, **options)
    hooks.add(lambda s: ask(SPEND), on="before_tool", name="budget", phase="gate")
    hooks.add(lambda s: ask(DELETE), on="before_tool", name="ops", phase="gate")
    return hooks


# --- what is put --------------------------------------------------------------------------------


@pytest.mark.parametrize("desk", [Desk, Board])
async def test_every_question_is_put_in_chain_order(desk: type[Desk]) -> None:
    approver = desk()
    decision = await two(approver).dispatch(STEP)
    assert (approver.put, decision.control) == ([SPEND, DELETE], "allow")


@pytest.mark.parametrize("phases", [("gate", "gate"), ("transform", "gate"), ("transform", "transform")])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_questions_of_transforms_gates_and_gates_that_run_at_once_are_put(
    phases: tuple[Any, Any], is_async: bool
) -> None:
    async def later(question: str) -> Verdict:
        await asyncio.sleep(0)
        return ask(question)

    approver = Desk()
    hooks = Hooks(approver=approver)
    for name, phase in zip(("first", "second"), phases, strict=True):
        hook = (lambda s, name=name: later(name)) if not is_async else _later(name)
        hooks.add(hook, on="before_tool", name=name, phase=phase)
    await hooks.dispatch(STEP)
    assert approver.put == ["first", "second"]


def _later(question: str) -> Any:
    async def hook(step: Any) -> Verdict:
        await asyncio.sleep(0)
        return ask(question)

    return hook


def test_a_sync_dispatch_puts_every_question() -> None:
    approver = Desk()
    assert (two(approver).dispatch_sync(STEP).control, approver.put) == ("allow", [SPEND, DELETE])


async def test_every_question_is_about_the_final_step() -> None:
    steps = []

    async def approve(request: ApprovalRequest) -> Approval:
        steps.append(request.step)
        return Approval("allow")

    hooks = Hooks(approver=approve)
    hooks.add(lambda s: ask("first?"), on="before_tool", name="early", priority=1)
    hooks.add(lambda s: change(command="ls"), on="before_tool", name="rewrite")
    hooks.add(lambda s: ask("second?"), on="before_tool", name="late", phase="gate")
    decision = await hooks.dispatch(STEP)
    assert [step.args for step in steps] == [{"command": "ls"}] * 2
    assert decision.step.args == {"command": "ls"}


async def test_a_question_of_a_hook_in_monitor_mode_is_not_put() -> None:
    approver = Desk(ops="deny")
    hooks = Hooks(approver=approver)
    hooks.add(lambda s: ask(SPEND), on="before_tool", name="budget", phase="gate")
    hooks.add(lambda s: ask(DELETE), on="before_tool", name="ops", phase="gate", enforce=False)
    decision = await hooks.dispatch(STEP)
    assert (approver.put, decision.control, decision.monitored[0].reason) == ([SPEND], "allow", DELETE)


async def test_a_refusal_ends_the_questions_of_who_is_asked_one_after_another() -> None:
    approver = Desk(budget="deny")
    decision = await two(approver).dispatch(STEP)
    assert (approver.put, decision.control, decision.hook) == ([SPEND], "deny", "budget")


async def test_the_terminal_asks_one_after_another() -> None:
    shown = io.StringIO()
    decision = await two(TerminalApprover(shown, io.StringIO("y\ny\n"))).dispatch(STEP)
    assert decision.control == "allow"
    assert shown.getvalue().index(SPEND) < shown.getvalue().index(DELETE)
    assert shown.getvalue().count("Allow? [y/N]") == 2


async def test_one_yes_at_the_terminal_is_not_two() -> None:
    decision = await two(TerminalApprover(io.StringIO(), io.StringIO("y\n"))).dispatch(STEP)
    assert (decision.control, decision.hook) == ("deny", "ops")


# --- what the answers come to -------------------------------------------------------------------


@pytest.mark.parametrize("desk", [Desk, Board])
async def test_the_second_refusal_is_a_deny_by_the_second_hook(desk: type[Desk]) -> None:
    decision = await two(desk(ops="deny")).dispatch(STEP)
    assert (decision.control, decision.hook, decision.cause) == ("deny", "ops", "approval")
    assert decision.reason == f"not approved by ann: {DELETE}"


async def test_of_two_refusals_the_first_in_chain_order_gives_the_reason() -> None:
    decision = await two(Board(budget="deny", ops="deny")).dispatch(STEP)
    assert (decision.hook, decision.reason) == ("budget", f"not approved by ann: {SPEND}")


async def test_a_second_question_without_an_answer_in_time_is_a_deny() -> None:
    async def approve(request: ApprovalRequest) -> Approval:
        if request.hook == "ops":
            await asyncio.Event().wait()
        return Approval("allow")

    decision = await two(approve, approval_timeout=0.02).dispatch(STEP)
    assert (decision.control, decision.hook) == ("deny", "ops")
    assert "no answer within 0.02 s" in (decision.reason or "")


@pytest.mark.parametrize(
    "answers",
    [[], [Approval("allow")], [Approval("allow")] * 3, ("allow", "allow"), None, [Approval("allow"), None],
     {"budget": "allow", "ops": "allow"}, [Approval("allow"), ("maybe",)]],
)  # fmt: skip
async def test_an_approver_that_is_asked_all_at_once_and_does_not_answer_all_denies(answers: Any) -> None:
    class Careless(Desk):
        async def approve_all(self, requests: Sequence[ApprovalRequest]) -> Any:
            return answers

    decision = await two(Careless()).dispatch(STEP)
    assert (decision.control, decision.cause) == ("deny", "approval")
    assert "the approver failed" in (decision.reason or "")


async def test_the_decision_tells_every_answer() -> None:
    decision = await two(Desk()).dispatch(STEP)
    told = [(one.hook, one.question, one.approval) for one in decision.approvals]
    assert told == [("budget", SPEND, Approval("allow", "ann")), ("ops", DELETE, Approval("allow", "ann"))]
    assert str(decision).count("approval     allow") == 2


async def test_what_is_left_to_the_host_is_every_question_with_its_hook() -> None:
    decision = await two(Desk(budget="ask", ops="ask")).dispatch(STEP)
    assert (decision.control, decision.cause, decision.denied) == ("ask", "approval", False)
    assert decision.reason == f"[budget] {SPEND}\n[ops] {DELETE}"
    assert decision.questions == (("budget", SPEND), ("ops", DELETE))


async def test_what_was_approved_is_not_left_to_the_host() -> None:
    decision = await two(Desk(budget="allow", ops="ask")).dispatch(STEP)
    assert (decision.control, decision.hook, decision.reason) == ("ask", "ops", DELETE)
    assert decision.questions == (("ops", DELETE),)


async def test_a_refusal_outweighs_what_is_left_to_the_host() -> None:
    decision = await two(Board(budget="ask", ops="deny")).dispatch(STEP)
    assert (decision.control, decision.hook) == ("deny", "ops")


async def test_long_questions_do_not_hide_each_other() -> None:
    hooks = Hooks(approver=Desk(**{f"h{n}": "ask" for n in range(5)}))
    for n in range(5):
        hooks.add(lambda s, n=n: ask(f"{n} " + "long " * 2000), on="before_tool", name=f"h{n}", phase="gate")
    told = reason_of(await hooks.dispatch(STEP))
    assert all(f"[h{n}] {n} long" in told for n in range(5))


async def test_a_question_without_words_is_shown_as_one() -> None:
    hooks = two(Desk(budget="ask", ops="ask", quiet="ask"))
    hooks.add(lambda s: ask(), on="before_tool", name="quiet", phase="gate")
    assert (await hooks.dispatch(STEP)).reason.endswith("\n[quiet] wants a human to decide")


async def test_a_host_that_asks_shows_every_question_once() -> None:
    decision = await two(Desk(budget="ask", ops="ask")).dispatch(STEP)
    assert effect_of(decision, ("deny", "ask")).ask == f"[budget] {SPEND}\n[ops] {DELETE}"
    assert effect_of(decision, ("deny",)).deny == f"[budget] {SPEND}\n[ops] {DELETE}"


async def test_every_answer_survives_the_journal() -> None:
    for approver in (Desk(), Board(ops="deny"), Desk(budget="ask", ops="ask")):
        decision = await two(approver).dispatch(STEP)
        again = decode_decision(msgspec.json.decode(msgspec.json.encode(encode_decision(decision), enc_hook=str)))
        assert (again.approvals, again.questions) == (decision.approvals, decision.questions)
        assert summary(again) == summary(decision)


def test_an_approval_that_an_older_version_wrote_down_can_be_read() -> None:
    verdict = {"hook": "may", "verdict": {"control": "ask", "reason": "may it?"}}
    told = {"step": {"event": "before_tool", "tool": "bash"}, "control": "deny"}
    old = decode_decision(told | {"said": [verdict, {"approval": {"answer": "deny", "who": "ann", "why": None}}]})
    assert (old.hook, old.reason, old.approval) == ("may", "not approved by ann: may it?", ("deny", "ann", None))


# --- hooks in a process of their own ------------------------------------------------------------


async def _approved(request: ApprovalRequest) -> Approval:
    return Approval("allow")


async def test_a_worker_passes_on_the_questions_of_all_its_hooks() -> None:
    verdict = verdict_of(await two(_approved).dispatch(STEP))
    assert verdict == {"control": "ask", "reason": f"[budget] {SPEND}\n[ops] {DELETE}"}


async def test_a_worker_whose_questions_would_be_cut_off_says_that_it_failed() -> None:
    hooks = two(_approved)
    hooks.add(lambda s: ask("long " * 2000), on="before_tool", name="long", phase="gate", priority=1)
    with pytest.raises(Exception, match="too long"):
        verdict_of(await hooks.dispatch(STEP))


# --- whatever hooks say, and whatever humans answer ----------------------------------------------

controls = st.none() | st.sampled_from(["ask", "ask", "ask", "allow", "deny", "proceed", "stop"])
one_hook = st.fixed_dictionaries({
    "says": controls,
    "question": st.none() | st.sampled_from(["spend?", "delete?", "x" * 9000]),
    "phase": st.sampled_from(["transform", "gate", "gate"]),
    "is_async": st.booleans(),
    "pause": st.integers(0, 2),
    "enforce": st.sampled_from([True, True, True, False]),
    "priority": st.integers(1, 3),
    "answer": st.sampled_from(["allow", "allow", "allow", "deny", "ask", "nonsense", "late", "raises"]),
})  # fmt: skip


class Anyone(Desk):
    """Answers each hook's question as it was told to."""

    async def approve(self, request: ApprovalRequest) -> Any:
        self.put.append(request.hook)
        answer = self.answers[request.hook]
        if answer == "late":
            await asyncio.Event().wait()
        if answer == "raises":
            raise OSError("no line")
        return Approval(answer) if answer != "nonsense" else "allow"  # type: ignore[arg-type]


class AnyoneAtOnce(Anyone):
    async def approve_all(self, requests: Sequence[ApprovalRequest]) -> list[Any]:
        return list(await asyncio.gather(*map(self.approve, requests)))


def built(spec: list[dict[str, Any]], approver: Any) -> Hooks:
    late = any(one["answer"] == "late" and one["says"] == "ask" for one in spec)
    hooks = Hooks(approver=approver, approval_timeout=0.02 if late else 60)
    for at, one in enumerate(spec):
        said = None if one["says"] is None else Verdict(one["says"], one["question"])

        def plain(step: Any, said: Any = said) -> Any:
            return said

        async def pausing(step: Any, said: Any = said, pause: int = one["pause"]) -> Any:
            for _ in range(pause):
                await asyncio.sleep(0)
            return said

        about = {key: one[key] for key in ("phase", "enforce", "priority")}
        hooks.add(pausing if one["is_async"] else plain, on="before_tool", name=f"h{at}", **about)
    return hooks


def to_be_put(decision: Decision[Any]) -> list[str]:
    """The hooks whose questions must have been put: if any asks, and nothing worse was said."""
    said = [hook_verdict for hook_verdict in decision.verdicts if hook_verdict.cause == "policy"]
    if any(hook_verdict.verdict.control in ("abort", "stop", "deny") for hook_verdict in said):
        return []
    return [hook_verdict.hook.name for hook_verdict in said if hook_verdict.verdict.control == "ask"]


@quick
@given(st.lists(one_hook, min_size=1, max_size=6), st.sampled_from([Anyone, AnyoneAtOnce]), st.booleans())
def test_a_step_is_allowed_exactly_if_every_question_was_put_and_approved(
    spec: list[dict[str, Any]], kind: type[Anyone], sync: bool
) -> None:
    approver = kind(**{f"h{at}": one["answer"] for at, one in enumerate(spec)})
    hooks = built(spec, approver)
    decision = hooks.dispatch_sync(STEP) if sync else asyncio.run(hooks.dispatch(STEP))
    wanted = to_be_put(decision)
    answers = [approver.answers[name] for name in wanted]

    assert approver.put == wanted[: len(approver.put)]  # in chain order, no other's, none twice
    if not wanted:
        assert decision.approvals == ()
        return
    assert decision.cause == "approval"
    assert (decision.control == "allow") is (approver.put == wanted and set(answers) == {"allow"})
    assert (decision.control == "ask") is (set(answers) <= {"allow", "ask"} and "ask" in answers)
    assert decision.denied is (decision.control == "deny")
    assert [name for name, _ in decision.questions] == [
        name for name in wanted if decision.control == "ask" and approver.answers[name] == "ask"
    ]
    assert all(f"[{name}]" in reason_of(decision) for name, _ in decision.questions)


async def test_an_allow_of_another_hook_answers_no_question() -> None:
    hooks = two(Desk(ops="deny"))
    hooks.add(lambda s: allow("fine"), on="before_tool", name="fine", phase="gate")
    assert (await hooks.dispatch(STEP)).control == "deny"


async def test_no_question_is_asked_once_a_gate_denies() -> None:
    approver = Desk()
    hooks = two(approver)
    hooks.add(lambda s: deny("no"), on="before_tool", name="no", phase="gate")
    assert ((await hooks.dispatch(STEP)).control, approver.put) == ("deny", [])
