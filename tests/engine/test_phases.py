"""Transforms change, gates judge what came of it, observers watch. In that order, whatever the registration."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from itertools import permutations
from time import monotonic

import pytest
from msgspec.structs import replace

from fairlead import Hooks, abort, allow, answer, ask, change, deny, inject, skip_rest, stop, warn
from fairlead.lifecycle import AfterTool, BeforeInput, BeforeModel, BeforeTool, BeforeTurnEnd, ToolRequested
from fairlead.testing import step


def bash(command: str = "ls") -> BeforeTool:
    return BeforeTool(tool="bash", args={"command": command})


async def test_without_hooks_the_step_proceeds_as_it_came():
    given = bash()
    decision = await Hooks().dispatch(given)
    assert (decision.control, decision.step, decision.original) == ("proceed", given, given)


async def test_transforms_see_the_step_as_changed_so_far():
    hooks = Hooks()
    hooks.add(lambda s: change(command=s.target.command + "b"), on="before_tool", name="one")
    hooks.add(lambda s: change(command=s.target.command + "c"), on="before_tool", name="two")
    assert (await hooks.dispatch(bash("a"))).step.args == {"command": "abc"}


async def test_lower_priority_numbers_run_first_and_equal_ones_in_registration_order():
    ran: list[str] = []
    hooks = Hooks()
    for name, priority in (("late", 90), ("first", 50), ("second", 50), ("early", 10)):
        hooks.add(lambda s, name=name: ran.append(name), on="before_tool", name=name, priority=priority)
    await hooks.dispatch(bash())
    assert ran == ["early", "first", "second", "late"]


async def test_a_higher_layer_runs_first_at_equal_priority():
    ran: list[str] = []
    hooks = Hooks()
    for layer in ("project", "user", "system", "builtin"):
        hooks.add(lambda s, layer=layer: ran.append(layer), on="before_tool", name=layer, layer=layer)
    await hooks.dispatch(bash())
    assert ran == ["builtin", "system", "user", "project"]


@pytest.mark.parametrize("gate_first", [True, False])
async def test_a_gate_sees_the_final_arguments_and_target_whatever_the_registration_order(gate_first: bool):
    seen: list[tuple[object, object]] = []
    hooks = Hooks()

    def gate(s: BeforeTool) -> None:
        seen.append((s.args["command"], s.target.command))

    def register_gate() -> None:
        hooks.add(gate, on="before_tool", phase="gate", priority=1)

    if gate_first:
        register_gate()
    hooks.add(lambda s: change(args={"command": "final"}), on="before_tool", name="rewrite", priority=99)
    if not gate_first:
        register_gate()
    await hooks.dispatch(bash("first"))
    assert seen == [("final", "final")]


@pytest.mark.parametrize("ending", [deny("no"), stop("enough"), abort("broken")], ids=lambda v: v.control)
async def test_an_ending_control_ends_the_transforms_with_its_own_changes_applied(ending):
    ran: list[str] = []
    hooks = Hooks()
    hooks.add(
        lambda s: {"control": ending.control, "args": {"command": "kept"}}, on="before_tool", name="ends", priority=1
    )
    hooks.add(lambda s: ran.append("later"), on="before_tool", name="later")
    decision = await hooks.dispatch(bash())
    assert (decision.control, decision.step.args, ran) == (ending.control, {"command": "kept"}, [])


@pytest.mark.parametrize("verdict", [ask("sure?"), allow(), answer("cached"), warn("hm"), inject("x")])
async def test_a_verdict_that_does_not_end_the_phase_lets_later_transforms_run(verdict):
    ran: list[str] = []
    hooks = Hooks()
    hooks.add(lambda s: verdict, on="before_tool", name="first")
    hooks.add(lambda s: ran.append("later"), on="before_tool", name="later")
    await hooks.dispatch(bash())
    assert ran == ["later"]


async def test_gates_run_after_skip_rest():
    ran: list[str] = []
    hooks = Hooks()
    hooks.add(lambda s: skip_rest(), on="before_tool", name="skips")
    hooks.add(lambda s: ran.append("transform"), on="before_tool", name="transform")
    hooks.add(lambda s: ran.append("gate") or deny("no"), on="before_tool", name="gate", phase="gate")
    decision = await hooks.dispatch(bash())
    assert (ran, decision.control) == (["gate"], "deny")


async def test_gates_run_on_answered_calls():
    hooks = Hooks()
    hooks.add(lambda s: answer("cached"), on="before_tool", name="cache")
    hooks.add(lambda s: deny("no") if s.result == "cached" else None, on="before_tool", name="gate", phase="gate")
    assert (await hooks.dispatch(bash())).denied


@pytest.mark.parametrize("control", ["deny", "abort"])
async def test_gates_do_not_run_when_a_transform_denied_or_aborted(control: str):
    ran: list[str] = []
    hooks = Hooks()
    hooks.add(lambda s: {"control": control}, on="before_tool", name="transform")
    hooks.add(lambda s: ran.append("gate"), on="before_tool", name="gate", phase="gate")
    await hooks.dispatch(bash())
    assert ran == []


async def test_gates_run_when_a_transform_stopped_and_a_deny_under_the_stop_is_carried_out():
    hooks = Hooks()
    hooks.add(lambda s: stop("enough"), on="before_tool", name="stops")
    hooks.add(lambda s: deny("and not this"), on="before_tool", name="denies", phase="gate")
    decision = await hooks.dispatch(bash())
    assert (decision.control, decision.hook, decision.denied) == ("stop", "stops", True)


async def test_a_gate_cannot_change_anything():
    hooks = Hooks()
    hooks.add(lambda s: change(args={}), on="before_tool", phase="gate", name="meddler")
    decision = await hooks.dispatch(bash())
    assert (decision.failures[0].kind, decision.step.args) == ("malformed", {"command": "ls"})


async def test_every_gate_runs_to_its_end_even_after_one_has_denied():
    ran: list[str] = []
    hooks = Hooks()
    hooks.add(lambda s: deny("first"), on="before_tool", phase="gate", name="first")
    hooks.add(lambda s: ran.append("second"), on="before_tool", phase="gate", name="second")
    await hooks.dispatch(bash())
    assert ran == ["second"]


async def test_among_equal_gates_the_first_in_order_gives_the_reason_whichever_finishes_first():
    finish_slow = asyncio.Event()
    hooks = Hooks()

    @hooks.on.before_tool(phase="gate")
    async def slow(s):
        await finish_slow.wait()
        return deny("slow", context="from slow")

    @hooks.on.before_tool(phase="gate")
    async def fast(s):
        finish_slow.set()
        return deny("fast", context="from fast")

    decision = await hooks.dispatch(bash())
    assert (decision.hook, list(decision.context)) == ("slow", ["from slow", "from fast"])


async def test_sync_and_async_gates_fold_in_one_order():
    hooks = Hooks()

    async def a_deny(s):
        return deny("async")

    hooks.add(a_deny, on="before_tool", phase="gate", name="one", priority=1)
    hooks.add(lambda s: deny("sync"), on="before_tool", phase="gate", name="two", priority=2)
    hooks.add(a_deny, on="before_tool", phase="gate", name="three", priority=3)
    assert (await hooks.dispatch(bash())).hook == "one"


async def test_ten_gates_that_wait_run_at_the_same_time():
    """Each waits until all ten have started: one after another they would wait for ever."""
    started = 0
    all_started = asyncio.Event()
    hooks = Hooks()

    async def gate(s):
        nonlocal started
        started += 1
        if started == 10:
            all_started.set()
        await all_started.wait()

    for i in range(10):
        hooks.add(gate, on="before_tool", phase="gate", name=f"gate{i}", timeout=5)
    assert (await hooks.dispatch(bash())).control == "proceed"


async def test_ten_gates_of_50_ms_finish_in_well_under_150_ms():
    hooks = Hooks()

    async def gate(s):
        await asyncio.sleep(0.05)

    for i in range(10):
        hooks.add(gate, on="before_tool", phase="gate", name=f"gate{i}")
    started = monotonic()
    await hooks.dispatch(bash())
    assert monotonic() - started < 0.15


SEVERITIES = {"allows": allow(), "asks": ask(), "denies": deny(), "stops": stop(), "aborts": abort()}
"""Verdicts, by the name of a hook that returns them: the more severe ones last."""


@pytest.mark.parametrize("order", [*permutations(SEVERITIES, 2), tuple(SEVERITIES)], ids=" ".join)
async def test_the_most_severe_control_decides(order: tuple[str, ...]):
    hooks = Hooks()
    for name in order:
        hooks.add(lambda s, verdict=SEVERITIES[name]: verdict, on="before_tool", phase="gate", name=name)
    assert (await hooks.dispatch(bash())).hook == max(order, key=list(SEVERITIES).index)


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [(deny("no"), "no (see the wiki)"), (ask("sure?"), "sure? (see the wiki)"), (allow("fine"), "fine")],
)
async def test_the_note_of_a_hook_goes_with_what_it_refuses_or_asks(verdict, reason: str):
    hooks = Hooks(approver=lambda request: True)
    hooks.add(lambda s: verdict, on="before_tool", name="guard")
    (hook,) = hooks
    hook.note = "see the wiki"
    assert (await hooks.dispatch(bash())).verdicts[0].verdict.reason == reason


async def test_the_note_of_a_hook_goes_with_its_failures():
    hooks = Hooks()
    hooks.add(lambda s: 1 / 0, on="before_tool", name="guard")
    (hook,) = hooks
    hook.note = "see the wiki"
    assert (await hooks.dispatch(bash())).failures[0].error == "ZeroDivisionError: division by zero (see the wiki)"


class DeployIsAShell:
    """How the file of a hook describes the tool `deploy`."""

    def readings(self, step):
        return [replace(step, kind="shell")] if step.tool == "deploy" else [step]


@pytest.mark.parametrize(("phase", "kind"), [("transform", "shell"), ("gate", "shell"), ("observe", "unknown")])
async def test_a_hook_that_judges_sees_the_step_as_its_file_describes_it(phase: str, kind: str):
    hooks, seen = Hooks(), []
    hooks.add(lambda s: seen.append(s.kind), on="before_tool", kind="shell", name="guard", phase=phase)
    (hook,) = hooks
    hook.view = DeployIsAShell()
    await hooks.dispatch(BeforeTool(tool="deploy"))
    assert seen == [kind]


async def test_a_tool_that_the_file_describes_is_told_from_one_that_it_does_not():
    hooks, seen = Hooks(), []
    hooks.add(lambda s: seen.append(s.tool), on="before_tool", kind="shell", name="guard")
    (hook,) = hooks
    hook.view = DeployIsAShell()
    for tool in ("other", "deploy", "other"):
        await hooks.dispatch(BeforeTool(tool=tool))
    assert seen == ["deploy"]


async def test_a_hook_whose_file_describes_tools_runs_at_steps_without_one():
    hooks, seen = Hooks(), []
    hooks.add(lambda s: seen.append(s.input), on="before_input", host="loop", name="guard", phase="observe")
    (hook,) = hooks
    hook.view = DeployIsAShell()
    await hooks.dispatch(BeforeInput(input="hello", host="loop"))
    assert seen == ["hello"]


# --- observers ----------------------------------------------------------------------------------


async def test_observers_run_after_a_deny_and_see_the_decision():
    seen: list[tuple[str, str]] = []
    hooks = Hooks()
    hooks.add(lambda s: deny("no"), on="before_tool", name="denies")
    hooks.add(lambda s, d: seen.append((s.tool, d.control)), on="before_tool", phase="observe", name="watch")
    await hooks.dispatch(bash())
    assert seen == [("bash", "deny")]


async def test_an_observer_may_take_the_step_alone():
    seen: list[str] = []
    hooks = Hooks()
    hooks.add(lambda s: seen.append(s.tool), on="before_tool", phase="observe", name="watch")
    await hooks.dispatch(bash())
    assert seen == ["bash"]


async def test_an_observer_cannot_change_the_decision():
    hooks = Hooks()
    hooks.add(lambda s: deny("no"), on="before_tool", name="denies")

    @hooks.on.before_tool(phase="observe")
    def meddler(s, decision):
        decision.control = "allow"

    decision = await hooks.dispatch(bash())
    assert (decision.control, decision.failures[0].hook) == ("deny", "meddler")


async def test_an_observer_that_returns_a_verdict_has_failed_and_changes_nothing():
    hooks = Hooks()
    hooks.add(lambda s: deny("no"), on="before_tool", phase="observe", name="meddler")
    decision = await hooks.dispatch(bash())
    assert (decision.control, decision.failures[0].kind) == ("proceed", "malformed")


async def test_an_observers_failure_goes_nowhere_and_the_next_one_runs():
    ran: list[str] = []
    hooks = Hooks()

    @hooks.on.before_tool(phase="observe")
    def broken(s):
        raise RuntimeError("boom")

    hooks.add(lambda s: ran.append("next"), on="before_tool", phase="observe", name="next")
    decision = await hooks.dispatch(bash())
    assert (decision.control, decision.failures[0].error, ran) == ("proceed", "RuntimeError: boom", ["next"])


async def test_observers_see_the_final_step():
    seen: list[object] = []
    hooks = Hooks()
    hooks.add(lambda s: seen.append(s.args["command"]), on="before_tool", phase="observe", name="watch")
    hooks.add(lambda s: change(command="final"), on="before_tool", name="rewrite")
    await hooks.dispatch(bash())
    assert seen == ["final"]


# --- what a decision carries ----------------------------------------------------------------------


async def test_the_decision_of_the_readme():
    hooks = Hooks()

    @hooks.on.before_tool(kind="shell", phase="gate")
    def no_force_push(step):
        if "--force" in step.target.command:
            return deny("force-push is off; open a pull request")

    d = await hooks.dispatch(BeforeTool(tool="bash", args={"command": "git push --force"}))
    assert (d.control, d.reason) == ("deny", "force-push is off; open a pull request")
    assert (d.hook, d.cause) == ("no_force_push", "policy")


async def test_changed_names_only_what_really_differs():
    hooks = Hooks()
    hooks.add(lambda s: change(args={"command": "ls"}), on="before_tool", name="same")
    assert (await hooks.dispatch(bash("ls"))).changed == ()


async def test_original_is_the_step_as_it_came():
    hooks = Hooks()
    hooks.add(lambda s: change(command="new"), on="before_tool", name="rewrite")
    decision = await hooks.dispatch(bash("old"))
    assert (decision.original.args, decision.changed) == ({"command": "old"}, ("args", "target"))


async def test_context_is_joined_in_chain_order_and_knows_its_hook():
    hooks = Hooks()
    hooks.add(lambda s: inject("b"), on="before_input", name="second", priority=60)
    hooks.add(lambda s: inject("a"), on="before_input", name="first")
    context = (await hooks.dispatch(BeforeInput(input="hi"))).context
    assert [(str(text), text.hook) for text in context] == [("a", "first"), ("b", "second")]


async def test_the_text_of_extend_is_the_next_user_message():
    hooks = Hooks()
    hooks.add(lambda s: {"control": "extend", "reason": "Tests still fail"}, on="before_turn_end", name="tests")
    decision = await hooks.dispatch(BeforeTurnEnd())
    assert (decision.control, list(decision.context)) == ("extend", ["Tests still fail"])


async def test_abort_raises_with_the_hooks_name_when_the_host_asks_for_it():
    from fairlead import HookAborted

    hooks = Hooks()
    hooks.add(lambda s: abort("quota"), on="before_model", name="limits")
    decision = await hooks.dispatch(BeforeModel(model="m"))
    with pytest.raises(HookAborted, match=r"^\[limits:hook_abort\] quota$"):
        decision.raise_for_abort()


async def test_stop_carries_its_stop_reason():
    hooks = Hooks()
    hooks.add(lambda s: stop("no more", stop_reason="refusal"), on="tool_requested", name="stops")
    assert (await hooks.dispatch(ToolRequested(tool="bash"))).stop_reason == "refusal"


async def test_metadata_and_warnings_are_gathered():
    hooks = Hooks()
    hooks.add(lambda s: warn("careful", metadata={"a": 1}), on="after_tool", name="one")
    hooks.add(lambda s: warn("again", metadata={"b": 2}), on="after_tool", name="two")
    decision = await hooks.dispatch(AfterTool(tool="bash", output="x"))
    assert (decision.warnings, decision.metadata) == (("careful", "again"), {"a": 1, "b": 2})


async def test_str_of_a_decision_tells_the_story():
    hooks = Hooks()
    hooks.add(lambda s: change(command="git push"), on="before_tool", name="rewrite")
    hooks.add(lambda s: deny("not on Friday"), on="before_tool", name="friday", phase="gate")
    text = str(await hooks.dispatch(bash("git push --force")))
    assert text.splitlines()[0] == "before_tool bash: deny by friday: not on Friday"
    assert "args: {'command': 'git push --force'} -> {'command': 'git push'}" in text


async def test_repr_of_a_decision_is_one_line():
    hooks = Hooks()
    hooks.add(lambda s: deny("no\nreally"), on="before_tool", name="x")
    assert "\n" not in repr(await hooks.dispatch(bash()))


# --- recording --------------------------------------------------------------------------------------


async def test_recording_keeps_one_run_per_started_hook_in_order():
    hooks = Hooks(record=True)
    hooks.add(lambda s: None, on="before_tool", name="quiet")
    hooks.add(lambda s: deny("no"), on="before_tool", name="denies", phase="gate")
    hooks.add(lambda s: None, on="before_tool", name="watch", phase="observe")
    runs = (await hooks.dispatch(bash())).runs
    assert [(r.hook, r.phase, r.outcome) for r in runs] == [
        ("quiet", "transform", "none"),
        ("denies", "gate", "verdict"),
        ("watch", "observe", "none"),
    ]


async def test_recording_is_off_by_default():
    hooks = Hooks()
    hooks.add(lambda s: deny("no"), on="before_tool", name="denies")
    assert (await hooks.dispatch(bash())).runs == ()


async def test_the_recorded_duration_is_the_hooks_own():
    hooks = Hooks(record=True)

    async def waits(s):
        await asyncio.sleep(0.02)

    hooks.add(waits, on="before_tool", name="waits")
    hooks.add(lambda s: None, on="before_tool", name="quick")
    waited, quick = (await hooks.dispatch(bash())).runs
    assert waited.duration >= 0.02 > quick.duration


async def test_a_journal_is_called_with_every_finished_decision_even_without_hooks():
    written: list[object] = []
    hooks = Hooks(journal=written.append)
    decision = await hooks.dispatch(bash())
    hooks.dispatch_sync(step("turn_start"))
    assert written[0] is decision
    assert len(written) == 2


class WaitingJournal:
    """Its writes end when the test says so."""

    def __init__(self):
        self.written = Future()

    def sink_for(self, table):
        return lambda decision, began: self.written


async def test_a_dispatch_ends_once_its_decision_is_written():
    journal = WaitingJournal()
    dispatch = asyncio.create_task(Hooks(journal=journal).dispatch(bash()))
    await asyncio.sleep(0)
    assert not dispatch.done()
    journal.written.set_result(None)
    assert (await dispatch).control == "proceed"


def test_a_sync_dispatch_whose_decision_cannot_be_written_fails():
    journal = WaitingJournal()
    journal.written.set_exception(OSError("the disk is full"))
    with pytest.raises(OSError, match="full"):
        Hooks(journal=journal).dispatch_sync(bash())


# --- monitor mode -----------------------------------------------------------------------------------


async def test_a_monitored_deny_is_recorded_and_not_carried_out():
    hooks = Hooks()
    hooks.add(lambda s: deny("would be"), on="before_tool", name="trial", enforce=False)
    decision = await hooks.dispatch(bash())
    (seen,) = decision.monitored
    assert (decision.control, decision.denied) == ("proceed", False)
    assert (seen.hook, seen.control, seen.reason) == ("trial", "deny", "would be")


async def test_later_hooks_see_the_step_without_a_monitored_change():
    seen: list[object] = []
    hooks = Hooks()
    hooks.add(lambda s: change(command="new", context="x"), on="before_tool", name="trial", enforce=False)
    hooks.add(lambda s: seen.append(s.args["command"]), on="before_tool", name="later")
    decision = await hooks.dispatch(bash("old"))
    assert (seen, decision.changed, decision.context) == (["old"], (), ())


async def test_a_monitored_failure_is_recorded_and_closes_nothing():
    hooks = Hooks()

    @hooks.on.before_tool(enforce=False)
    def broken(s):
        raise RuntimeError("boom")

    decision = await hooks.dispatch(bash())
    assert (decision.control, decision.failures) == ("proceed", ())
    assert (decision.monitored[0].control, decision.monitored[0].cause) == ("deny", "failure")


async def test_a_monitored_ask_asks_no_human():
    async def approver(request):
        raise AssertionError("asked")

    hooks = Hooks(approver=approver)
    hooks.add(lambda s: ask("?"), on="before_tool", name="trial", enforce=False)
    assert (await hooks.dispatch(bash())).control == "proceed"


async def test_a_whole_table_can_be_in_monitor_mode():
    hooks = Hooks(enforce=False)
    hooks.add(lambda s: deny("x"), on="before_tool", name="one")
    hooks.add(lambda s: deny("y"), on="before_tool", name="two", phase="gate")
    decision = await hooks.dispatch(bash())
    assert (decision.control, [m.hook for m in decision.monitored]) == ("proceed", ["one", "two"])


# --- trust -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verdict", [allow(), skip_rest(), {"control": "allow"}])
async def test_a_projects_hook_may_not_loosen(verdict):
    hooks = Hooks()
    hooks.add(lambda s: verdict, on="before_tool", name="project", layer="project", on_failure="open")
    assert (await hooks.dispatch(bash())).failures[0].kind == "malformed"


async def test_a_projects_hook_may_not_resolve_a_permission():
    hooks = Hooks()
    hooks.add(lambda s: change(resolved=True), on="before_permission", name="project", layer="project")
    assert (await hooks.dispatch(step("before_permission"))).cause == "failure"


async def test_a_projects_hook_may_deny():
    hooks = Hooks()
    hooks.add(lambda s: deny("no"), on="before_tool", name="project", layer="project")
    assert (await hooks.dispatch(bash())).cause == "policy"


# --- gates of the kind a call turned into ----------------------------------------------------------------


@pytest.mark.parametrize("control", ["proceed", "stop", "skip_rest"])
async def test_a_change_of_kind_is_judged_by_that_kinds_gates_however_the_transform_ends(control: str):
    hooks = Hooks()
    hooks.add(
        lambda s: {"control": control, "args": {"command": "create", "path": "x"}}, on="before_tool", name="turns"
    )
    hooks.add(lambda s: deny("no writes"), on="before_tool", kind="write", phase="gate", name="gate")
    view = BeforeTool(tool="str_replace_based_edit_tool", args={"command": "view", "path": "x"})
    assert (await hooks.dispatch(view)).denied
    assert hooks.dispatch_sync(view).denied


@pytest.mark.parametrize("count", [1, 2])
def test_async_gates_and_observers_of_the_new_kind_run_in_a_sync_dispatch(count: int):
    hooks, seen = Hooks(), []

    async def no_writes(s):
        await asyncio.sleep(0)
        return deny("no writes")

    async def watch(s, d):
        await asyncio.sleep(0)
        seen.append(d.control)

    hooks.add(lambda s: change(args={"command": "create", "path": "x"}), on="before_tool", name="turns")
    hooks.add(lambda s: None, on="before_tool", phase="observe", name="makes it not plain")
    for i in range(count):
        hooks.add(no_writes, on="before_tool", kind="write", phase="gate", name=f"gate{i}")
    hooks.add(watch, on="before_tool", kind="write", phase="observe")
    view = BeforeTool(tool="str_replace_based_edit_tool", args={"command": "view", "path": "x"})
    decision = hooks.dispatch_sync(view)
    assert (decision.reason, seen, decision.failures) == ("no writes", ["deny"], ())


async def test_a_cancelled_dispatch_is_journaled_with_its_cancelled_hook():
    written: list = []
    hooks, entered = Hooks(journal=written.append), asyncio.Event()

    @hooks.on.before_tool
    async def waits(s):
        entered.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(hooks.dispatch(bash()))
    await entered.wait()
    task.cancel()
    await asyncio.wait([task])
    (decision,) = written
    assert (decision.control, [r.outcome for r in decision.runs]) == ("abort", ["cancelled"])
