"""Failure is a policy, never an accident: every way to break, under every policy, at every kind of event."""

from __future__ import annotations

import asyncio

import pytest

from fairlead import Hooks, change, deny
from fairlead.hook import Quarantine
from fairlead.lifecycle import BeforeTool
from fairlead.testing import step


def raises(s):
    raise RuntimeError("boom")


async def hangs(s):
    await asyncio.Event().wait()


def nonsense(s):
    return "deny"


def wrong_control(s):
    return {"control": "extend"}


def wrong_field(s):
    return change(output="x")


WAYS = {"error": raises, "timeout": hangs, "malformed": nonsense, "control": wrong_control, "field": wrong_field}
KINDS = {"control": "malformed", "field": "malformed"}


def broken(way: str, policy: str, phase: str = "transform") -> Hooks:
    hooks = Hooks()
    options = {"timeout": 0.02} if way == "timeout" else {}
    hooks.add(WAYS[way], on="before_tool", name="broken", on_failure=policy, phase=phase, **options)
    return hooks


@pytest.mark.parametrize("phase", ["transform", "gate"])
@pytest.mark.parametrize(("policy", "control"), [("closed", "deny"), ("open", "proceed"), ("abort", "abort")])
@pytest.mark.parametrize("way", WAYS)
async def test_a_broken_hook_falls_the_way_its_policy_says(way: str, policy: str, control: str, phase: str):
    decision = await broken(way, policy, phase).dispatch(BeforeTool(tool="bash"))
    (failure,) = decision.failures
    assert decision.control == control
    assert (failure.hook, failure.kind, failure.policy) == ("broken", KINDS.get(way, way), policy)
    if control != "proceed":
        assert (decision.hook, decision.cause) == ("broken", "failure")


async def test_transforms_and_gates_are_closed_by_default():
    hooks = Hooks()
    hooks.add(raises, on="before_tool")
    assert (await hooks.dispatch(BeforeTool(tool="bash"))).control == "deny"


@pytest.mark.parametrize(
    ("event", "control"),
    [
        ("session_start", "abort"), ("before_request", "abort"), ("before_input", "deny"), ("turn_start", "stop"),
        ("before_model", "stop"), ("after_tool", "deny"), ("before_output", "deny"),
        ("before_compact", "proceed"), ("before_turn_end", "proceed"), ("notification", "proceed"),
        ("session_end", "proceed"), ("turn_end", "proceed"), ("error", "proceed"),
    ],
)  # fmt: skip
async def test_closed_is_the_events_veto_where_that_guards_and_goes_on_elsewhere(event: str, control: str):
    hooks = Hooks()
    hooks.add(raises, on=event)
    decision = await hooks.dispatch(step(event))
    assert (decision.control, decision.failures[0].hook) == (control, "raises")


async def test_the_reason_names_the_hook_the_event_and_the_error():
    hooks = Hooks()
    hooks.add(raises, on="before_tool")
    reason = (await hooks.dispatch(BeforeTool(tool="bash"))).reason
    assert reason == "hook 'raises' failed at before_tool (error): RuntimeError: boom"


async def test_an_open_failure_is_a_warning():
    hooks = Hooks()
    hooks.add(raises, on="before_tool", on_failure="open")
    (warning,) = (await hooks.dispatch(BeforeTool(tool="bash"))).warnings
    assert "'raises'" in warning
    assert "before_tool" in warning


async def test_denied_by_policy_and_denied_because_a_hook_broke_are_told_apart():
    hooks = Hooks()
    hooks.add(raises, on="before_tool", phase="gate")
    hooks.add(lambda s: deny("policy"), on="before_tool", phase="gate", name="policy", priority=1)
    decision = await hooks.dispatch(BeforeTool(tool="bash"))
    assert (decision.cause, decision.hook, decision.failures[0].hook) == ("policy", "policy", "raises")


@pytest.mark.parametrize(
    "said", [True, False, 0, 7, "deny", "", [], ["deny"], object(), {"controll": "deny"}, {"control": 1}]
)
async def test_a_malformed_verdict_never_slips_past_the_failure_policy(said):
    """Trap 4."""
    hooks = Hooks()
    hooks.add(lambda s: said, on="before_tool", name="odd")
    decision = await hooks.dispatch(BeforeTool(tool="bash"))
    assert (decision.control, decision.cause, decision.failures[0].kind) == ("deny", "failure", "malformed")


@pytest.mark.parametrize("said", [True, "deny", 7, {"controll": "deny"}])
def test_a_malformed_verdict_never_slips_past_in_a_sync_dispatch(said):
    hooks = Hooks()
    hooks.add(lambda s: said, on="before_tool", name="odd")
    assert hooks.dispatch_sync(BeforeTool(tool="bash")).cause == "failure"


async def test_an_empty_dict_is_a_verdict_that_proceeds():
    hooks = Hooks()
    hooks.add(lambda s: {}, on="before_tool", name="empty")
    decision = await hooks.dispatch(BeforeTool(tool="bash"))
    assert (decision.control, decision.failures) == ("proceed", ())


async def test_a_hook_that_edits_the_arguments_in_place_gets_an_error_and_they_are_as_they_were():
    hooks = Hooks()

    @hooks.on.before_tool
    def edits(s):
        s.args["env"]["PATH"][0] = "/evil"

    given = BeforeTool(tool="bash", args={"command": "ls", "env": {"PATH": ["/bin"]}})
    decision = await hooks.dispatch(given)
    assert "return change(...)" in decision.failures[0].error
    assert decision.step.args == {"command": "ls", "env": {"PATH": ["/bin"]}}


async def test_system_exit_and_keyboard_interrupt_are_not_a_hooks_failure():
    hooks = Hooks()

    @hooks.on.before_tool
    def leaves(s):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hooks.dispatch_sync(BeforeTool(tool="bash"))


# --- quarantine --------------------------------------------------------------------------------------


def flaky(fails: list[bool], **options) -> tuple[Hooks, list[int]]:
    hooks, starts = Hooks(record=True), []

    def sometimes(s):
        starts.append(1)
        if fails[0]:
            raise RuntimeError("boom")

    hooks.add(sometimes, on="before_tool", name="flaky", **options)
    return hooks, starts


async def test_after_so_many_failures_in_a_row_a_hook_is_not_started_and_its_policy_applies():
    hooks, starts = flaky([True], quarantine=(3, 60))
    for _ in range(5):
        decision = await hooks.dispatch(BeforeTool(tool="bash"))
    assert (len(starts), decision.failures[0].kind, decision.control) == (3, "quarantined", "deny")
    assert decision.runs[0].outcome == "quarantined"


async def test_a_success_in_between_starts_the_count_again():
    fails = [True]
    hooks, starts = flaky(fails, quarantine=(2, 60))
    for failing in (True, False, True, False, True):
        fails[0] = failing
        await hooks.dispatch(BeforeTool(tool="bash"))
    assert len(starts) == 5


async def test_a_verdict_in_between_starts_the_count_again():
    hooks, ways = Hooks(), iter([None, deny(), None, deny(), None])

    @hooks.on.before_tool(quarantine=(2, 60))
    def flaky(s):
        if (verdict := next(ways)) is None:
            raise RuntimeError("boom")
        return verdict

    decisions = [await hooks.dispatch(BeforeTool(tool="bash")) for _ in range(5)]
    assert [failure.kind for decision in decisions for failure in decision.failures] == ["error"] * 3


async def test_reset_lifts_a_quarantine():
    hooks, starts = flaky([True], quarantine=(1, 60))
    await hooks.dispatch(BeforeTool(tool="bash"))
    hooks.reset("flaky")
    await hooks.dispatch(BeforeTool(tool="bash"))
    assert len(starts) == 2


async def test_when_the_time_is_over_a_hook_is_tried_once():
    fails = [True]
    hooks, starts = flaky(fails, quarantine=(1, 0.02))
    await hooks.dispatch(BeforeTool(tool="bash"))
    await asyncio.sleep(0.03)
    await hooks.dispatch(BeforeTool(tool="bash"))  # the trial, which fails
    quarantined = await hooks.dispatch(BeforeTool(tool="bash"))
    assert (len(starts), quarantined.failures[0].kind) == (2, "quarantined")


async def test_a_trial_that_succeeds_ends_the_quarantine():
    fails = [True]
    hooks, starts = flaky(fails, quarantine=(1, 0.02))
    await hooks.dispatch(BeforeTool(tool="bash"))
    await asyncio.sleep(0.03)
    fails[0] = False
    for _ in range(3):
        decision = await hooks.dispatch(BeforeTool(tool="bash"))
    assert (len(starts), decision.control) == (4, "proceed")


async def test_a_malformed_verdict_counts_as_a_failure():
    hooks = Hooks()
    hooks.add(lambda s: "nonsense", on="before_tool", name="odd", quarantine=(2, 60))
    kinds = [(await hooks.dispatch(BeforeTool(tool="bash"))).failures[0].kind for _ in range(3)]
    assert kinds == ["malformed", "malformed", "quarantined"]


async def test_cancellation_does_not_count_towards_quarantine():
    hooks = Hooks()
    entered = asyncio.Event()

    @hooks.on.before_tool(quarantine=(1, 60))
    async def waits(s):
        entered.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(hooks.dispatch(BeforeTool(tool="bash")))
    await entered.wait()
    task.cancel()
    await asyncio.wait([task])
    entered.clear()
    again = asyncio.create_task(hooks.dispatch(BeforeTool(tool="bash")))
    await asyncio.wait_for(entered.wait(), 1)  # it was started again
    again.cancel()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that a quarantine reads, in seconds."""
    now = [1000.0]
    monkeypatch.setattr("fairlead.hook.monotonic", lambda: now[0])
    return now


async def test_starts_that_were_refused_do_not_extend_a_quarantine(clock: list[float]):
    hooks, starts = flaky([True], quarantine=(2, 30))
    for _ in range(2):
        await hooks.dispatch(BeforeTool(tool="bash"))
    for seconds in (10, 19.9):  # refused, and the last time just before the end
        clock[0] += seconds
        assert (await hooks.dispatch(BeforeTool(tool="bash"))).failures[0].kind == "quarantined"
    clock[0] += 0.2
    assert (await hooks.dispatch(BeforeTool(tool="bash"))).failures[0].kind == "error"
    assert len(starts) == 3


async def test_a_trial_that_the_caller_cancels_leaves_room_for_another(clock: list[float]):
    hooks, ways, entered = Hooks(), iter(["fails", "waits", "returns"]), asyncio.Event()

    @hooks.on.before_tool(quarantine=(1, 30))
    async def changing(s):
        way = next(ways)
        if way == "fails":
            raise RuntimeError("boom")
        if way == "waits":
            entered.set()
            await asyncio.Event().wait()

    await hooks.dispatch(BeforeTool(tool="bash"))
    clock[0] += 31
    trial = asyncio.create_task(hooks.dispatch(BeforeTool(tool="bash")))
    await entered.wait()
    trial.cancel()
    await asyncio.wait([trial])
    assert (await hooks.dispatch(BeforeTool(tool="bash"))).failures == ()


async def test_a_trial_that_fails_starts_the_quarantine_again(clock: list[float]):
    hooks, starts = flaky([True], quarantine=(2, 30))
    kinds = []
    for seconds in (0, 0, 31, 29, 2):
        clock[0] += seconds
        kinds.append((await hooks.dispatch(BeforeTool(tool="bash"))).failures[0].kind)
    assert kinds == ["error", "error", "error", "quarantined", "error"]
    assert len(starts) == 4


async def test_after_a_quarantine_the_count_starts_again(clock: list[float]):
    fails = [True]
    hooks, _ = flaky(fails, quarantine=(2, 30))
    for _ in range(2):
        await hooks.dispatch(BeforeTool(tool="bash"))
    clock[0] += 31
    for failing in (False, True):
        fails[0] = failing
        await hooks.dispatch(BeforeTool(tool="bash"))
    assert (await hooks.dispatch(BeforeTool(tool="bash"))).failures[0].kind == "error"
    assert (await hooks.dispatch(BeforeTool(tool="bash"))).failures[0].kind == "quarantined"


def test_only_one_caller_gets_the_trial():
    quarantine = Quarantine(1, 0.0001)
    quarantine.failed()
    while True:
        try:
            quarantine.admit("x")
            break
        except Exception:
            continue
    with pytest.raises(Exception, match="not started"):
        quarantine.admit("x")


# --- odd things hooks do -------------------------------------------------------------------------------


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


async def test_an_error_that_cannot_be_shown_is_a_failure_like_any_other():
    hooks = Hooks()

    @hooks.on.before_tool
    def raises(s):
        raise Unspeakable

    assert (await hooks.dispatch(BeforeTool(tool="bash"))).cause == "failure"


class Bomb(dict):
    def items(self):
        raise RuntimeError("boom")


def deep(n: int) -> dict:
    nested: dict = {}
    for _ in range(n):
        nested = {"a": nested}
    return nested


@pytest.mark.parametrize(
    "said",
    [Bomb(control="deny"), {"args": deep(50_000)}, {1: 2}, {"args": {1: 2}}],
    ids=["a mapping that raises", "too deep", "a key that is no string", "an argument that is none"],
)
async def test_a_verdict_that_explodes_when_it_is_read_is_malformed(said):
    hooks = Hooks()
    hooks.add(lambda s: said, on="before_tool", name="odd")
    decision = await hooks.dispatch(BeforeTool(tool="bash", args={"command": "ls"}))
    assert (decision.cause, decision.failures[0].kind) == ("failure", "malformed")
    assert decision.step.args == {"command": "ls"}


def test_arguments_that_are_no_dict_are_refused_when_the_step_is_built():
    with pytest.raises(TypeError, match="args of a BeforeTool must be a dict"):
        BeforeTool(tool="bash", args="ls")
