"""`dispatch_sync`: the same semantics without a loop, inside one, and across threads."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading

import pytest

from fairlead import Approval, Hooks, abort, answer, ask, change, deny, inject
from fairlead.lifecycle import BeforeTool

STEP = BeforeTool(tool="bash", args={"command": "ls"})
variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


async def denies(s):
    await asyncio.sleep(0)
    return deny(f"from {threading.current_thread().name}")


def test_sync_hooks_run_inline_without_any_loop():
    hooks, where = Hooks(), []
    hooks.add(lambda s: where.append(threading.current_thread()), on="before_tool", name="inline")
    assert hooks.dispatch_sync(STEP).control == "proceed"
    assert where == [threading.current_thread()]


def test_recorded_sync_hooks_run_in_the_callers_thread():
    hooks, where = Hooks(record=True), []
    hooks.add(lambda s: where.append(threading.current_thread()), on="before_tool", name="inline")
    hooks.dispatch_sync(STEP)
    assert where == [threading.current_thread()]


def test_async_hooks_run_on_the_private_loop_while_the_caller_waits():
    hooks = Hooks()
    hooks.add(denies, on="before_tool")
    assert hooks.dispatch_sync(STEP).reason == "from fairlead-loop"


async def test_it_works_inside_a_running_loops_thread():
    hooks = Hooks()
    hooks.add(denies, on="before_tool")
    assert hooks.dispatch_sync(STEP).reason == "from fairlead-loop"


async def test_sync_hooks_run_inline_inside_a_running_loops_thread_too():
    hooks = Hooks()
    hooks.add(lambda s: deny(threading.current_thread().name), on="before_tool", name="inline")
    assert hooks.dispatch_sync(STEP).reason == threading.current_thread().name


def test_a_hook_on_the_private_loop_may_dispatch_synchronously_itself():
    hooks = Hooks()

    @hooks.on.turn_start
    async def outer(s):
        await asyncio.sleep(0)
        return inject(hooks.dispatch_sync(STEP).reason)

    async def inner(s):
        await asyncio.sleep(0)
        return deny("nested")

    hooks.add(inner, on="before_tool")
    from fairlead.testing import step

    assert list(hooks.dispatch_sync(step("turn_start")).context) == ["nested"]


def test_a_sync_hook_may_dispatch_synchronously_itself():
    hooks = Hooks()
    hooks.add(lambda s: inject(str(hooks.dispatch_sync(STEP).control)), on="turn_start", name="outer")
    hooks.add(denies, on="before_tool")
    from fairlead.testing import step

    assert list(hooks.dispatch_sync(step("turn_start")).context) == ["deny"]


@pytest.mark.parametrize("is_async", [True, False])
def test_contextvars_are_visible_in_hooks(is_async: bool):
    hooks, seen = Hooks(), []

    async def looks(s):
        seen.append(variable.get())

    hooks.add(looks if is_async else (lambda s: seen.append(variable.get())), on="before_tool", name="looks")
    token = variable.set("mine")
    hooks.dispatch_sync(STEP)
    variable.reset(token)
    assert seen == ["mine"]


@pytest.mark.parametrize("blocking", [True, False])
async def test_contextvars_are_visible_in_async_dispatch_and_on_threads(blocking: bool):
    hooks, seen = Hooks(), []
    hooks.add(lambda s: seen.append(variable.get()), on="before_tool", name="looks", blocking=blocking)
    token = variable.set("mine")
    await hooks.dispatch(STEP)
    variable.reset(token)
    assert seen == ["mine"]


async def test_contextvars_are_visible_in_concurrent_gates():
    hooks, seen = Hooks(), []

    async def looks(s):
        seen.append(variable.get())

    for name in ("one", "two"):
        hooks.add(looks, on="before_tool", name=name, phase="gate")
    token = variable.set("mine")
    await hooks.dispatch(STEP)
    variable.reset(token)
    assert seen == ["mine", "mine"]


CASES = {
    "deny": lambda s: deny("no"),
    "change": lambda s: change(command="new"),
    "answer": lambda s: answer("cached"),
    "inject": lambda s: inject("hello"),
    "abort": lambda s: abort("broken"),
    "raises": lambda s: 1 / 0,
    "nonsense": lambda s: 7,
    "quiet": lambda s: None,
}


@pytest.mark.parametrize("phase", ["transform", "gate"])
@pytest.mark.parametrize("record", [True, False])
@pytest.mark.parametrize("case", CASES)
async def test_sync_and_async_dispatch_decide_alike(case: str, record: bool, phase: str):
    def build() -> Hooks:
        hooks = Hooks(record=record)
        hooks.add(lambda s: None, on="before_tool", name="before", phase=phase)
        hooks.add(CASES[case], on="before_tool", name="case", phase=phase)
        hooks.add(lambda s: inject("after"), on="before_tool", name="after", phase=phase)
        hooks.add(lambda s, d: None, on="before_tool", name="watch", phase="observe")
        return hooks

    one, other = build().dispatch_sync(STEP), await build().dispatch(STEP)
    for part in ("control", "reason", "hook", "cause", "step", "context", "failures", "changed", "warnings"):
        assert getattr(one, part) == getattr(other, part)
    assert [r[:3] for r in one.runs] == [r[:3] for r in other.runs]


def test_a_sync_function_that_returns_an_awaitable_is_awaited_elsewhere():
    hooks = Hooks()
    hooks.add(lambda s: denies(s), on="before_tool", name="hidden")
    assert hooks.dispatch_sync(STEP).reason == "from fairlead-loop"


def test_a_hidden_awaitable_may_end_the_dispatch():
    class Ending:
        def __await__(self):
            raise GeneratorExit
            yield

    hooks = Hooks()
    hooks.add(lambda s: Ending(), on="before_tool", name="ending")
    with pytest.raises(GeneratorExit):
        hooks.dispatch_sync(STEP)


def test_a_hidden_awaitable_that_hangs_times_out():
    hooks = Hooks(timeout=0.02)
    hooks.add(lambda s: asyncio.sleep(60), on="before_tool", name="hidden")
    assert hooks.dispatch_sync(STEP).failures[0].kind == "timeout"


def test_an_ask_reaches_the_approver_from_a_sync_dispatch():
    async def approver(request):
        await asyncio.sleep(0)
        return Approval("allow", "me")

    hooks = Hooks(approver=approver)
    hooks.add(lambda s: ask("?"), on="before_tool", name="asks")
    assert hooks.dispatch_sync(STEP).control == "allow"


def test_a_change_that_leads_to_async_gates_is_judged_by_them():
    hooks = Hooks()
    hooks.add(lambda s: change(args={"command": "create", "path": "x"}), on="before_tool", name="turns")

    async def no_writes(s):
        return deny("no writes")

    hooks.add(no_writes, on="before_tool", kind="write", phase="gate", name="one")
    hooks.add(no_writes, on="before_tool", kind="write", phase="gate", name="two")
    step = BeforeTool(tool="str_replace_based_edit_tool", args={"command": "view", "path": "x"})
    assert hooks.dispatch_sync(step).reason == "no writes"


def test_a_timeout_holds_in_a_sync_dispatch():
    hooks = Hooks()

    @hooks.on.before_tool(timeout=0.02)
    async def hangs(s):
        await asyncio.Event().wait()

    assert hooks.dispatch_sync(STEP).failures[0].kind == "timeout"


def test_many_threads_may_dispatch_synchronously_at_once():
    hooks, decisions = Hooks(), []
    hooks.add(denies, on="before_tool")
    workers = [threading.Thread(target=lambda: decisions.append(hooks.dispatch_sync(STEP))) for _ in range(20)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [d.control for d in decisions] == ["deny"] * 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_gets_a_private_loop_of_its_own():
    hooks = Hooks()
    hooks.add(denies, on="before_tool")
    hooks.dispatch_sync(STEP)
    child = os.fork()
    if child == 0:
        os._exit(0 if hooks.dispatch_sync(STEP).control == "deny" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
