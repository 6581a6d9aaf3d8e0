"""Edges that a stranger found: each was a silent allow, a hang, a loss or an unhelpful message."""

from __future__ import annotations

import asyncio
import logging
import time
from time import monotonic

import pytest

from fairlead import (
    Approval,
    Hooks,
    RegistrationError,
    Store,
    Unenforceable,
    UnknownName,
    allow,
    ask,
    change,
    deny,
    extend,
)
from fairlead.glob import compile_glob
from fairlead.lifecycle import AfterTool, BeforeTool, BeforeTurnEnd, TurnStart, event_named

STEP = BeforeTool(tool="bash", args={"command": "ls"})


async def forever(s=None):
    await asyncio.Event().wait()


class Odd(BaseException):
    pass


class BadAwaitable:
    def __await__(self):
        yield 42


def raises(error):
    async def hook(s):
        raise error

    return hook


async def cancels_itself(s):
    asyncio.current_task().cancel()
    await asyncio.sleep(1)


async def awaits_nonsense(s):
    await BadAwaitable()


# --- a gate that ends abnormally never counts as no opinion -----------------------------------------

ABNORMAL = {
    "a base exception": raises(Odd("odd")),
    "a group of cancellations": raises(BaseExceptionGroup("g", [asyncio.CancelledError()])),
    "its own cancelled error": raises(asyncio.CancelledError()),
    "a yield that is no future": awaits_nonsense,
}


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("way", ABNORMAL)
async def test_a_gate_that_ends_abnormally_has_failed_alone_or_among_others(way: str, count: int):
    hooks = Hooks()
    for i in range(count):
        hooks.add(ABNORMAL[way], on="before_tool", phase="gate", name=f"gate{i}")
    decision = await asyncio.wait_for(hooks.dispatch(STEP), 2)
    assert (decision.control, decision.cause, len(decision.failures)) == ("deny", "failure", count)


async def test_a_gate_among_others_may_end_the_dispatch():
    hooks = Hooks()

    async def ends(s):
        raise GeneratorExit

    async def quiet(s):
        return None

    hooks.add(ends, on="before_tool", phase="gate")
    hooks.add(quiet, on="before_tool", phase="gate")
    with pytest.raises(GeneratorExit):
        await hooks.dispatch(STEP)


async def test_a_gate_among_others_that_cancels_its_own_task_has_failed():
    hooks = Hooks()
    hooks.add(cancels_itself, on="before_tool", phase="gate", name="one")
    hooks.add(raises(ValueError()), on="before_tool", phase="gate", name="two", on_failure="open")
    decision = await hooks.dispatch(STEP)
    assert (decision.control, decision.hook) == ("deny", "one")


@pytest.mark.parametrize("error", [Odd("odd"), asyncio.CancelledError()], ids=["odd", "cancelled"])
async def test_a_sync_hook_that_raises_oddly_fails_alike_in_both_dispatches(error: BaseException):
    hooks = Hooks()

    @hooks.on.before_tool
    def hook(s):
        raise error

    assert (await hooks.dispatch(STEP)).cause == "failure"
    assert hooks.dispatch_sync(STEP).cause == "failure"


# --- nested synchronous dispatch ----------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_synchronous_dispatches_nest_to_any_depth(depth: int):
    hooks = Hooks()

    @hooks.on.before_tool
    async def nests(s):
        await asyncio.sleep(0)
        left = s.args["left"]
        inner = hooks.dispatch_sync(BeforeTool(tool="bash", args={"left": left - 1})) if left else None
        return deny(f"{inner.reason if inner else ''}{left}")

    decision = hooks.dispatch_sync(BeforeTool(tool="bash", args={"left": depth}))
    assert decision.reason == "".join(map(str, range(depth + 1)))


# --- chains without any limit ----------------------------------------------------------------------------


async def test_without_any_time_out_a_swallowed_cancellation_still_propagates():
    hooks, entered = Hooks(), asyncio.Event()

    @hooks.on.before_tool(timeout=None)
    async def swallows(s):
        entered.set()
        try:
            await forever()
        except asyncio.CancelledError:
            return

    task = asyncio.create_task(hooks.dispatch(STEP))
    await entered.wait()
    task.cancel()
    await asyncio.wait([task], timeout=1)
    assert task.cancelled()


async def test_a_hook_after_one_without_a_time_out_has_its_own():
    hooks = Hooks(record=True, timeout=0.05)

    @hooks.on.before_tool(timeout=None)
    async def suspends(s):
        await asyncio.sleep(0.001)

    hooks.add(lambda s: forever(), on="before_tool", name="hidden", on_failure="open")
    decision = await asyncio.wait_for(hooks.dispatch(STEP), 1)
    assert [(f.hook, f.kind) for f in decision.failures] == [("hidden", "timeout")]
    assert decision.runs[0].duration < 1


# --- hooks that wait for something that will not end --------------------------------------------------------


async def stubborn():
    while True:
        try:
            await forever()
        except asyncio.CancelledError:
            pass


@pytest.mark.parametrize("gathered", [False, True])
async def test_a_hook_that_awaits_a_task_which_swallows_cancellation_is_abandoned(gathered: bool):
    hooks, tasks = Hooks(), []

    @hooks.on.before_tool(timeout=0.02, on_failure="open")
    async def waits(s):
        task = asyncio.create_task(stubborn())
        tasks.append(task)
        await (asyncio.gather(task) if gathered else task)

    hooks.add(lambda s: deny("reached"), on="before_tool", name="next")
    decision = await asyncio.wait_for(hooks.dispatch(STEP), 1)
    assert (decision.failures[0].kind, decision.reason) == ("timeout", "reached")
    for task in tasks:
        task.get_coro().close()


async def test_a_hook_that_awaits_a_task_gets_its_result():
    hooks = Hooks()

    @hooks.on.before_tool
    async def waits(s):
        async def work():
            await asyncio.sleep(0.001)
            return "done"

        return deny(await asyncio.create_task(work()) + "".join(await asyncio.gather(work(), work())))

    assert (await hooks.dispatch(STEP)).reason == "donedonedone"


async def test_the_callers_cancellation_reaches_a_task_that_a_hook_awaits():
    hooks, cancelled, entered = Hooks(), [], asyncio.Event()

    async def work():
        entered.set()
        try:
            await forever()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    @hooks.on.before_tool
    async def waits(s):
        await asyncio.create_task(work())

    task = asyncio.create_task(hooks.dispatch(STEP))
    await entered.wait()
    task.cancel()
    await asyncio.wait([task], timeout=1)
    assert (task.cancelled(), cancelled) == (True, [True])


# --- an untimed chain ----------------------------------------------------------------------------------


async def test_a_single_hook_is_timed_from_its_start_in_an_untimed_chain():
    hooks, block = Hooks(), []

    @hooks.on.before_tool(timeout=0.05)
    async def sometimes(s):
        if block:
            time.sleep(0.1)
            return allow()

    for _ in range(40):
        await hooks.dispatch(STEP)
    block.append(True)
    assert (await hooks.dispatch(STEP)).failures[0].kind == "timeout"


async def test_a_single_hook_that_blocks_then_suspends_in_an_untimed_chain_has_no_extra_time():
    hooks, block, took = Hooks(), [], []

    @hooks.on.before_tool(timeout=0.08, on_failure="open")
    async def sometimes(s):
        if block:
            started = monotonic()
            time.sleep(0.06)
            try:
                await forever()
            finally:
                took.append(monotonic() - started)

    for _ in range(40):
        await hooks.dispatch(STEP)
    block.append(True)
    await hooks.dispatch(STEP)
    assert 0.08 <= took[0] < 0.13


# --- nested deadlines ------------------------------------------------------------------------------------


async def test_an_outer_deadline_is_not_the_inner_hooks_failure():
    hooks, seen = Hooks(), []

    @hooks.on.turn_start(timeout=0.02, on_failure="open")
    async def outer(s):
        seen.append(await hooks.dispatch(STEP))

    hooks.add(forever, on="before_tool", quarantine=(1, 60))
    await hooks.dispatch(TurnStart())
    inner = next(hook for hook in hooks if hook.name == "forever")
    assert (seen, inner.quarantine._streak) == ([], 0)


# --- approvals ---------------------------------------------------------------------------------------------


def asking(approver, **options) -> Hooks:
    hooks = Hooks(approver=approver, **options)
    hooks.add(lambda s: ask("?"), on="before_tool", name="asks")
    return hooks


async def test_an_approval_that_comes_too_late_is_a_deny():
    async def late(request):
        try:
            await forever()
        except asyncio.CancelledError:
            return Approval("allow")

    assert (await asking(late, approval_timeout=0.02).dispatch(STEP)).control == "deny"


async def test_an_approver_that_will_not_be_cancelled_holds_up_no_dispatch():
    tasks = []

    async def never(request):
        tasks.append(asyncio.current_task())
        await stubborn()

    decision = await asyncio.wait_for(asking(never, approval_timeout=0.02).dispatch(STEP), 1)
    assert decision.control == "deny"
    tasks[0].get_coro().close()


async def test_an_approver_that_is_cancelled_denies_and_the_caller_goes_on():
    assert (await asking(raises(asyncio.CancelledError())).dispatch(STEP)).control == "deny"


async def test_an_approval_whose_reason_is_no_text_is_a_deny():
    async def odd(request):
        return Approval("allow", "me", 5)

    decision = await asking(odd).dispatch(STEP)
    assert decision.control == "deny"
    assert "an approver answers" in str(decision)


@pytest.mark.parametrize("options", [{"approver": 5}, {"approval_timeout": "soon"}])
def test_a_bad_approver_is_refused_when_it_is_given(options: dict):
    with pytest.raises(RegistrationError):
        Hooks(**options)


# --- detached observers keep the engine's rules ----------------------------------------------------------------


async def test_a_detached_observer_that_will_not_end_does_not_block_the_others():
    hooks, seen = Hooks(), []

    @hooks.on.before_tool(phase="observe", detached=True, timeout=0.02)
    async def never(s):
        await stubborn()

    hooks.add(lambda s: seen.append(1), on="before_tool", phase="observe", detached=True, name="next")
    await hooks.dispatch(STEP)
    await hooks.aclose(timeout=1)
    assert (seen, hooks.dropped) == ([1], 0)


async def test_a_detached_observer_that_raises_a_cancellation_loses_nothing():
    hooks, seen = Hooks(), []
    hooks.add(raises(asyncio.CancelledError()), on="before_tool", phase="observe", detached=True, name="odd")
    hooks.add(lambda s: seen.append(1), on="before_tool", phase="observe", detached=True, name="next")
    for _ in range(3):
        await hooks.dispatch(STEP)
    await hooks.aclose()
    assert seen == [1, 1, 1]


async def test_a_detached_observer_can_be_quarantined(caplog):
    hooks, starts = Hooks(), []

    @hooks.on.before_tool(phase="observe", detached=True, quarantine=(1, 60))
    def broken(s):
        starts.append(1)
        raise RuntimeError("boom")

    with caplog.at_level(logging.WARNING, "fairlead"):
        for _ in range(3):
            await hooks.dispatch(STEP)
        await hooks.aclose()
    assert len(starts) == 1
    assert "'broken' failed at before_tool (error): RuntimeError: boom" in caplog.text


# --- sessions --------------------------------------------------------------------------------------------------


def test_windows_of_different_length_over_the_same_hits_do_not_disturb_each_other():
    now = [0.0]
    store = Store(lambda: now[0])
    store.hit("k", 60)
    now[0] = 30.0
    assert store.hit("k", 1) == 1
    assert store.hit("k", 60) == 3


async def test_closing_waits_for_tasks_that_tasks_spawned():
    done = []

    async def later():
        await asyncio.sleep(0.01)
        done.append(True)

    async with Hooks().session() as session:

        async def first():
            await asyncio.sleep(0.01)
            session.spawn(later())

        session.spawn(first())
    assert done == [True]


async def test_closing_waits_for_what_a_sync_dispatch_spawned_on_the_private_loop():
    from fairlead import current_session

    hooks, done = Hooks(), []

    async def work():
        await asyncio.sleep(0.05)
        done.append(True)

    @hooks.on.turn_start
    async def spawns(s):
        current_session().spawn(work())

    session = hooks.session()
    session.dispatch_sync(session.step(TurnStart))
    started = monotonic()
    await session.close(timeout=5)
    assert done == [True]
    assert monotonic() - started < 2


def test_a_step_may_be_given_its_number():
    assert Hooks().session().step(TurnStart, sequence=7).sequence == 7


async def test_what_the_host_cannot_do_is_in_the_journal_too():
    written = []
    hooks = Hooks(journal=written.append)
    hooks.add(lambda s: change(command="x"), on="before_tool", name="changes")
    session = hooks.session(capabilities={"before_tool": ("deny",)})
    await session.dispatch(session.step(BeforeTool, tool="bash", args={"command": "ls"}))
    assert written[0].unsupported == ("args",)


async def test_a_deny_that_cannot_be_carried_out_is_an_error_in_both_dispatches():
    hooks = Hooks()
    hooks.add(lambda s: deny("no"), on="before_tool", name="denies")
    session = hooks.session(capabilities={"before_tool": ()})
    with pytest.raises(Unenforceable):
        session.dispatch_sync(session.step(BeforeTool, tool="bash"))


# --- journaling what was cancelled --------------------------------------------------------------------------------


async def test_a_dispatch_cancelled_while_a_human_is_asked_is_journaled():
    written, asked = [], asyncio.Event()

    async def approver(request):
        asked.set()
        await forever()

    hooks = asking(approver, journal=written.append)
    task = asyncio.create_task(hooks.dispatch(STEP))
    await asked.wait()
    task.cancel()
    await asyncio.wait([task])
    assert [d.control for d in written] == ["abort"]


async def test_the_gates_of_a_cancelled_dispatch_are_all_in_the_record():
    written, entered = [], []
    both = asyncio.Event()

    async def gate(s):
        entered.append(1)
        if len(entered) == 2:
            both.set()
        try:
            await forever()
        finally:
            await asyncio.sleep(0.02)

    hooks = Hooks(journal=written.append)
    hooks.add(gate, on="before_tool", phase="gate", name="one")
    hooks.add(gate, on="before_tool", phase="gate", name="two")
    task = asyncio.create_task(hooks.dispatch(STEP))
    await both.wait()
    task.cancel()
    await asyncio.wait([task])
    assert [(run.hook, run.outcome) for run in written[0].runs] == [("one", "cancelled"), ("two", "cancelled")]


# --- messages and values ---------------------------------------------------------------------------------------------


def test_a_bare_on_says_what_is_missing():
    hooks = Hooks()
    with pytest.raises(RegistrationError, match="which event"):

        @hooks.on
        def hook(s): ...


def test_a_tool_name_in_place_of_a_function_says_what_was_meant():
    with pytest.raises(RegistrationError, match=r"before_tool\(tool='bash'\)"):
        Hooks().on.before_tool("bash")


def test_a_very_long_name_is_shown_in_part():
    with pytest.raises(UnknownName) as caught:
        event_named("before_tool" * 1_000_000)
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize(
    ("build", "meant"),
    [
        (lambda: BeforeTool(tool="bash", kind="shel"), "shell"),
        (lambda: BeforeTool(tool="bash", safety="destructiv"), "destructive"),
        (lambda: AfterTool(tool="bash", outcome="eror"), "error"),
        (lambda: Hooks().session(agnt="x"), "agent"),
        (lambda: Hooks().session(capabilities={"befor_tool": ()}), "before_tool"),
    ],
)
def test_a_misspelt_value_suggests_the_nearest(build, meant: str):
    with pytest.raises(UnknownName, match=f"did you mean '{meant}'"):
        build()


def test_a_step_built_by_position_says_how_it_is_built():
    with pytest.raises(TypeError, match=r"BeforeTool\(tool='bash'\)"):
        BeforeTool("bash")


def test_a_tool_that_is_no_text_is_refused():
    with pytest.raises(TypeError, match="must be a string, not 5"):
        BeforeTool(tool=5)


def test_a_reason_may_be_given_by_name():
    assert deny(reason="x") == deny("x")


async def test_extend_keeps_its_feedback_beside_other_context():
    hooks = Hooks()
    hooks.add(lambda s: extend("Tests fail", context="see the log"), on="before_turn_end", name="tests")
    assert list((await hooks.dispatch(BeforeTurnEnd())).context) == ["Tests fail", "see the log"]


def test_classifying_a_tool_is_no_change():
    hooks = Hooks()
    hooks.tools.add("house", "shell", command="do")
    assert hooks.dispatch_sync(BeforeTool(tool="house", args={"do": "x"})).changed == ()


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("run_command", {"CommandLine": "git push --force"}),
        ("bash", {"Command": "git push --force"}),
        ("terminal", {"command_line": "git push --force"}),
        ("bash", {"command": {"cmd": "git push --force"}}),
        ("bash", {"command": [["git", "push", "--force"]]}),
        ("bash", {"whatever": {"deep": ["git push --force"]}}),
    ],
)
def test_no_shell_hides_its_command(tool: str, args: dict):
    assert "git push --force" in BeforeTool(tool=tool, args=args).target.command


@pytest.mark.parametrize("args", [{"FilePath": "a"}, {"target_directory": "a"}, {"edits": [{"file_path": "a"}]}])
def test_no_path_hides_behind_its_spelling(args: dict):
    assert BeforeTool(tool="Write", args=args).target.paths == ("a",)


def test_a_change_to_a_kind_without_hooks_leaves_the_old_kinds_gates_behind():
    for observer in (False, True):
        hooks = Hooks()
        hooks.add(lambda s: deny("no reads"), on="before_tool", kind="read", phase="gate", name="reads")
        hooks.add(
            lambda s: change(args={"command": "create", "path": "x"}), on="before_tool", kind="read", name="turns"
        )
        if observer:
            hooks.add(lambda s: None, on="before_tool", kind="write", phase="observe", name="watch")
        view = BeforeTool(tool="str_replace_based_edit_tool", args={"command": "view", "path": "x"})
        assert hooks.dispatch_sync(view).control == "proceed"


def test_a_time_out_beyond_all_reason_is_refused():
    with pytest.raises(RegistrationError, match="timeout"):
        Hooks().add(forever, on="before_tool", timeout=1e308)


def test_no_name_takes_long_to_match():
    started = monotonic()
    assert not compile_glob("*a*a*a*a*a*a*b").fullmatch("a" * 5000)
    assert monotonic() - started < 1


def test_braces_that_amount_to_too_much_are_refused():
    with pytest.raises(RegistrationError, match="more than 1000"):
        compile_glob("{a,b}" * 12)


def test_a_decision_shows_no_escapes_of_a_tools_name():
    hooks = Hooks()
    assert "\x1b" not in str(hooks.dispatch_sync(BeforeTool(tool="\x1b[2Jbash")))


# --- what a second stranger found ------------------------------------------------------------------------------------


def test_a_detached_observer_of_a_sync_caller_may_dispatch_synchronously_itself():
    import threading

    inner, outer, done = Hooks(), Hooks(), threading.Event()

    async def waits(s):
        await asyncio.sleep(0)

    inner.add(waits, on="before_tool")

    @outer.on.before_tool(phase="observe", detached=True)
    def nests(s):
        inner.dispatch_sync(STEP)
        done.set()

    outer.dispatch_sync(STEP)
    assert done.wait(5)
    assert inner.dispatch_sync(STEP).control == "proceed"


async def test_a_hook_that_awaits_a_future_of_another_loop_has_failed():
    other = asyncio.new_event_loop()
    hooks = Hooks()

    @hooks.on.before_tool
    async def lost(s):
        await other.create_future()

    decision = await hooks.dispatch(STEP)
    other.close()
    assert (decision.cause, "another event loop" in decision.reason) == ("failure", True)


async def test_the_hooks_after_one_that_awaits_a_future_of_another_loop_run_to_their_end():
    other = asyncio.new_event_loop()
    hooks = Hooks()

    @hooks.on.before_tool(on_failure="open")
    async def lost(s):
        await other.create_future()

    @hooks.on.before_tool
    async def denies(s):
        await asyncio.sleep(0)
        return deny("reached")

    decision = await hooks.dispatch(STEP)
    other.close()
    assert decision.reason == "reached"


async def test_a_gate_that_cancels_its_own_task_is_recorded_once():
    hooks = Hooks(record=True)

    async def quiet(s):
        await asyncio.sleep(0)

    hooks.add(cancels_itself, on="before_tool", phase="gate", name="one")
    hooks.add(quiet, on="before_tool", phase="gate", name="two")
    runs = (await hooks.dispatch(STEP)).runs
    assert [(run.hook, run.outcome) for run in runs] == [("one", "error"), ("two", "none")]


def test_a_hidden_coroutine_that_will_not_be_cancelled_times_out_in_a_sync_dispatch():
    hooks = Hooks(timeout=0.05)

    async def lasts(s):
        for _ in range(20):
            try:
                await asyncio.sleep(0.02)
            except asyncio.CancelledError:
                pass

    hooks.add(lambda s: lasts(s), on="before_tool", name="hidden")
    assert hooks.dispatch_sync(STEP).failures[0].kind == "timeout"


def test_draining_does_not_wait_for_a_loop_that_has_stopped():
    hooks = Hooks()
    hooks.add(lambda s: None, on="before_tool", phase="observe", detached=True, name="audit")
    stopped = asyncio.new_event_loop()
    stopped.run_until_complete(hooks.dispatch(STEP))
    asyncio.run(asyncio.wait_for(hooks.aclose(timeout=0.1), 2))
    stopped.run_until_complete(asyncio.sleep(0.01))  # what it had begun ends here
    stopped.close()


async def test_a_drain_that_gives_up_ends_the_observer_it_waited_for():
    hooks, ended = Hooks(), []

    @hooks.on.before_tool(phase="observe", detached=True)
    async def slow(s):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append(True)
            raise

    await hooks.dispatch(STEP)
    await hooks.aclose(timeout=0.02)
    await asyncio.sleep(0.01)
    assert (ended, hooks.dropped) == ([True], 1)


async def test_an_approvers_error_that_cannot_be_shown_is_a_deny():
    class Unspeakable(Exception):
        def __str__(self):
            raise ValueError("no")

        __repr__ = __str__

    assert (await asking(raises(Unspeakable())).dispatch(STEP)).control == "deny"


async def test_an_inner_hook_that_raises_its_cancellation_anew_is_not_blamed_for_the_outer_deadline():
    hooks, seen = Hooks(), []

    @hooks.on.turn_start(timeout=0.02, on_failure="open")
    async def outer(s):
        seen.append(await hooks.dispatch(STEP))

    @hooks.on.before_tool(quarantine=(1, 60))
    async def anew(s):
        try:
            await forever()
        except asyncio.CancelledError:
            raise asyncio.CancelledError from None

    await hooks.dispatch(TurnStart())
    assert seen == []


def test_unregistering_an_object_leaves_alone_what_only_sounds_like_it():
    class Guard:
        def before_tool(self, step): ...

        def after_tool(self, step): ...

    hooks = Hooks()
    hooks.add(Guard())
    hooks.add(lambda s: None, on="before_tool", name="Guard.custom")
    hooks.unregister("Guard")
    assert [hook.name for hook in hooks] == ["Guard.custom"]


# --- a change that has no effect --------------------------------------------------------------------


async def test_a_change_that_has_no_effect_is_told():
    hooks = Hooks()
    hooks.add(lambda step: change(args={"command": "ls"}), on="before_tool", name="same")
    decision = await hooks.dispatch(STEP)
    assert (decision.changed, decision.unchanged) == ((), ("args",))
    assert "args is as it was: nothing in it was changed" in str(decision)


async def test_a_change_that_a_later_hook_takes_back_has_no_effect():
    hooks = Hooks()
    hooks.add(lambda step: change(output="***"), on="after_tool", name="redact", priority=1)
    hooks.add(lambda step: change(output="a secret"), on="after_tool", name="restore", priority=2)
    decision = await hooks.dispatch(AfterTool(tool="bash", args={}, outcome="ok", output="a secret"))
    assert decision.unchanged == ("output",)


async def test_a_change_that_has_an_effect_is_not_called_one_without():
    hooks = Hooks()
    hooks.add(lambda step: change(command="pwd"), on="before_tool", kind="shell", name="other")
    decision = await hooks.dispatch(STEP)
    assert ("args" in decision.changed, decision.unchanged) == (True, ())
    assert "as it was" not in str(decision)
