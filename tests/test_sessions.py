"""Sessions: ids, shared state, counting, background tasks, subagents, what a host can carry out."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from fairlead import Agent, FairleadError, Hooks, Session, Store, Unenforceable, change, current_session, deny, inject
from fairlead.lifecycle import BeforeInput, BeforeTool, TurnStart


def test_a_step_of_a_session_has_its_header_filled():
    session = Hooks().session(
        "s1", agent=Agent("a1", "coder"), host="loop", cwd="/repo", user_id="u", channel="cli", thread_id="t",
        request_id="r", turn_id="turn", checkpoint_id="c",
    )  # fmt: skip
    step = session.step(BeforeTool, tool="bash", metadata={"k": 1})
    header = (step.session_id, step.agent, step.host, step.cwd, step.user_id, step.channel, step.thread_id)
    assert header == ("s1", Agent("a1", "coder"), "loop", "/repo", "u", "cli", "t")
    assert (step.request_id, step.turn_id, step.checkpoint_id, step.metadata) == ("r", "turn", "c", {"k": 1})


def test_steps_are_numbered():
    session = Hooks().session()
    assert [session.step(TurnStart).sequence for _ in range(3)] == [1, 2, 3]


def test_a_field_given_to_the_step_wins_over_the_sessions():
    session = Hooks().session(cwd="/repo")
    assert session.step(TurnStart, cwd="/elsewhere").cwd == "/elsewhere"


def test_session_ids_are_unique_unless_given():
    hooks = Hooks()
    assert hooks.session().session_id != hooks.session().session_id


def test_dispatch_fills_no_header_by_itself():
    assert Hooks().dispatch_sync(TurnStart()).step.session_id is None


async def test_hooks_share_and_edit_the_sessions_state():
    hooks, seen = Hooks(), []

    @hooks.on.turn_start
    def writes(step):
        current_session().state["count"] = 1

    hooks.add(lambda s: seen.append(current_session().state["count"]), on="turn_start", name="reads")
    session = hooks.session()
    await session.dispatch(session.step(TurnStart))
    assert (seen, session.state) == ([1], {"count": 1})


@pytest.mark.parametrize("options", [{}, {"blocking": True}, {"phase": "gate"}, {"phase": "observe"}])
async def test_current_session_is_known_wherever_a_hook_runs(options: dict):
    hooks, seen = Hooks(), []
    hooks.add(lambda s: seen.append(current_session()), on="turn_start", name="looks", **options)
    session = hooks.session()
    await session.dispatch(session.step(TurnStart))
    session.dispatch_sync(session.step(TurnStart))
    assert seen == [session, session]


async def test_there_is_no_current_session_outside_of_a_dispatch():
    hooks = Hooks()
    session = hooks.session()
    await session.dispatch(session.step(TurnStart))
    assert current_session(None) is None
    with pytest.raises(FairleadError, match="there is no session here"):
        current_session()


async def test_sessions_at_the_same_time_do_not_mix():
    hooks = Hooks()

    @hooks.on.turn_start
    async def counts(step):
        session = current_session()
        await asyncio.sleep(0)
        session.state["turns"] = session.state.get("turns", 0) + 1
        assert session.session_id == step.session_id

    sessions = [hooks.session() for _ in range(50)]
    await asyncio.gather(*(s.dispatch(s.step(TurnStart)) for s in sessions for _ in range(4)))
    assert [s.state["turns"] for s in sessions] == [4] * 50


def test_a_state_of_ones_own_type_is_kept():
    class State:
        pass

    state = State()
    assert Hooks().session(state=state).state is state


# --- the store ----------------------------------------------------------------------------------------


def test_counters_are_atomic_across_threads():
    store = Store()
    workers = [threading.Thread(target=lambda: [store.increment("n") for _ in range(1000)]) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert store.get("n") == 8000


def test_a_window_counts_only_recent_hits(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("fairlead.session.monotonic", lambda: now[0])
    store = Store()
    counts = []
    for at in (100.0, 100.5, 101.2, 105.0):
        now[0] = at
        counts.append(store.hit("push", within=1.0))
    assert counts == [1, 2, 2, 1]


async def test_a_rate_limit_in_three_lines():
    hooks = Hooks()

    @hooks.on.before_tool(phase="gate")
    def rate_limit(step):
        if current_session().store.hit("tools", within=60) > 3:
            return deny("at most three calls a minute")

    session = hooks.session()
    controls = [(await session.dispatch(session.step(BeforeTool, tool="bash"))).control for _ in range(5)]
    assert controls == ["proceed"] * 3 + ["deny"] * 2


def test_a_full_store_is_an_error_and_forgets_nothing(monkeypatch):
    monkeypatch.setattr(Store, "KEYS", 2)
    store = Store()
    store.set("a", 1)
    store.increment("b")
    with pytest.raises(FairleadError, match="holds 2 keys"):
        store.increment("c")
    assert (store.increment("b"), store.get("a")) == (2, 1)


# --- background tasks -----------------------------------------------------------------------------------


async def test_closing_waits_for_background_tasks():
    done = []

    async def work():
        await asyncio.sleep(0.01)
        done.append(True)

    async with Hooks().session() as session:
        session.spawn(work())
    assert done == [True]


async def test_a_hook_may_spawn():
    hooks, done = Hooks(), []

    async def work():
        done.append(True)

    hooks.add(lambda s: current_session().spawn(work()), on="turn_start", name="spawns")
    async with hooks.session() as session:
        await session.dispatch(session.step(TurnStart))
    assert done == [True]


def test_a_hook_may_spawn_from_a_sync_dispatch():
    hooks, done = Hooks(), threading.Event()

    async def work():
        done.set()

    hooks.add(lambda s: current_session().spawn(work()), on="turn_start", name="spawns")
    session = hooks.session()
    session.dispatch_sync(session.step(TurnStart))
    assert done.wait(1)


async def test_errors_of_background_tasks_are_reported(caplog):
    async def fails():
        raise ValueError("boom")

    session = Hooks().session("s1")
    with caplog.at_level(logging.ERROR, "fairlead"):
        session.spawn(fails(), name="index")
        errors = await session.close()
    assert [str(e) for e in errors] == ["boom"]
    assert "'index' of session s1 failed" in caplog.text


async def test_what_is_not_done_in_time_is_cancelled_and_reported(caplog):
    cancelled = []

    async def hangs():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    session = Hooks().session()
    session.spawn(hangs())
    errors = await session.close(timeout=0.02)
    assert (cancelled, "did not finish within 0.02 s" in str(errors[0])) == ([True], True)


# --- forks and subagents ------------------------------------------------------------------------------


async def test_a_fork_has_the_ids_and_a_copy_of_the_state_but_not_the_tasks():
    async def hangs():
        await asyncio.Event().wait()

    session = Hooks().session("s1", state={"list": [1]}, checkpoint_id="c1")
    session.spawn(hangs())
    fork = session.fork()
    fork.state["list"].append(2)
    assert (fork.session_id, fork.checkpoint_id, session.state) == ("s1", "c1", {"list": [1]})
    assert await asyncio.wait_for(fork.close(), 1) == []
    await session.close(timeout=0)


def test_a_subagents_session_knows_its_parent():
    session = Hooks().session(agent="lead", cwd="/repo", host="loop")
    child = session.subagent("helper")
    step = child.step(TurnStart)
    assert child.parent is session
    assert (step.agent.name, step.agent.parent, step.cwd, step.host) == ("helper", session.agent.id, "/repo", "loop")
    assert child.session_id != session.session_id


def test_a_subagent_counts_in_its_parents_store():
    session = Hooks().session()
    session.store.increment("calls")
    assert session.subagent("helper").store.increment("calls") == 2


async def test_a_hook_can_be_for_one_agent_only():
    hooks = Hooks()
    hooks.add(lambda s: deny("not you"), on="before_tool", agent="helper", name="helpers")
    lead = hooks.session(agent="lead")
    helper = lead.subagent("helper")
    controls = [(await s.dispatch(s.step(BeforeTool, tool="bash"))).control for s in (lead, helper)]
    assert controls == ["proceed", "deny"]


def test_repr_names_the_session_and_the_agent():
    assert repr(Hooks().session("s1", agent="lead")) == "<session s1 of lead>"


# --- what the host can carry out ------------------------------------------------------------------------


def limited(**can: tuple[str, ...]) -> tuple[Hooks, Session]:
    hooks = Hooks()
    return hooks, hooks.session(host="small", capabilities=can)


async def test_what_the_host_cannot_carry_out_is_reported():
    hooks, session = limited(before_input=("deny",))
    hooks.add(lambda s: change(input="x", context="y"), on="before_input", name="changes")
    decision = await session.dispatch(session.step(BeforeInput, input="hi"))
    assert decision.unsupported == ("input", "context")


async def test_what_the_host_can_carry_out_is_not_reported():
    hooks, session = limited(before_input=("input", "context"))
    hooks.add(lambda s: inject("y", input="x"), on="before_input", name="changes")
    assert (await session.dispatch(session.step(BeforeInput, input="hi"))).unsupported == ()


async def test_a_deny_the_host_cannot_carry_out_is_an_error_never_silence():
    hooks, session = limited(before_tool=("args",))
    hooks.add(lambda s: deny("no"), on="before_tool", name="denies")
    with pytest.raises(Unenforceable, match="'denies' denies at before_tool, which small cannot carry out: no"):
        await session.dispatch(session.step(BeforeTool, tool="bash"))


def test_a_session_builds_steps_of_tools_whose_kind_the_host_knows():
    step = Hooks().session().step(BeforeTool, tool="frobnicate", kind="shell", safety="destructive")
    assert (step.kind, step.safety) == ("shell", "destructive")
