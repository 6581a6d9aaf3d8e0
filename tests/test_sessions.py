"""Sessions: ids, shared state, counting, background tasks, subagents, what a host can carry out."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
from contextlib import nullcontext

import pytest
from msgspec.structs import replace

from fairlead import (
    Agent,
    FairleadError,
    Hooks,
    Session,
    Store,
    Unenforceable,
    change,
    current_session,
    deny,
    extend,
    inject,
    retry,
    stop,
)
from fairlead.lifecycle import AfterTool, BeforeInput, BeforeRequest, BeforeTool, BeforeTurnEnd, SessionStart, TurnStart


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
    session.dispatch_sync(session.step(TurnStart))
    assert current_session("none") == "none"
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


def test_a_window_counts_only_recent_hits():
    now = [100.0]
    store = Store(lambda: now[0])
    counts = []
    for at in (100.0, 100.5, 101.2, 105.0):
        now[0] = at
        counts.append(store.hit("push", within=1.0))
    assert counts == [1, 2, 2, 1]


def test_a_hit_as_old_as_the_window_no_longer_counts():
    now = [100.0]
    store = Store(lambda: now[0])
    store.hit("push", within=1.0)
    now[0] = 101.0
    assert store.hit("push", within=1.0) == 1


def test_a_hit_as_old_as_the_shorter_of_two_windows_counts_in_the_longer_one_only():
    now = [100.0]
    store = Store(lambda: now[0])
    store.hit("push", within=60.0)
    now[0] = 101.0
    assert store.hit("push", within=1.0) == 1
    assert store.hit("push", within=60.0) == 3


def test_another_process_goes_on_with_the_content_of_a_store():
    now = [100.0]
    store, loaded = Store(lambda: now[0]), Store(lambda: now[0])
    store.set("mode", "strict")
    store.hit("push", within=60.0)
    now[0] = 130.0
    dump = store.dump()
    now[0] = 5000.0  # each process has its own clock
    loaded.load(dump)
    assert loaded.get("mode") == "strict"
    assert loaded.hit("push", within=1.0) == 1
    now[0] = 5029.0
    assert loaded.hit("push", within=60.0) == 3
    now[0] = 5031.0
    assert loaded.hit("push", within=60.0) == 3


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


FILL = {
    "set": lambda store, key: store.set(key, 1),
    "increment": lambda store, key: store.increment(key),
    "hit": lambda store, key: store.hit(key, 60),
}


@pytest.mark.parametrize("fill", FILL.values(), ids=FILL)
def test_every_way_to_fill_a_store_has_an_end(fill, monkeypatch):
    monkeypatch.setattr(Store, "KEYS", 2)
    store = Store()
    fill(store, "a")
    fill(store, "b")
    with pytest.raises(FairleadError, match="holds 2 keys"):
        fill(store, "c")


def test_a_store_holds_ten_thousand_keys() -> None:
    store = Store()
    for number in range(10_000):
        store.set(str(number), number)
    with pytest.raises(FairleadError, match="holds 10000 keys"):
        store.set("one more", 1)


def test_a_window_counts_up_to_ten_thousand_hits() -> None:
    store = Store()
    assert max(store.hit("key", 3600) for _ in range(10_002)) == 10_000


# --- tools that no table knows --------------------------------------------------------------------------


@pytest.fixture
def seen_tools(monkeypatch) -> set[str]:
    seen: set[str] = set()
    monkeypatch.setattr("fairlead.session._seen_tools", seen)
    return seen


async def call(*tools: str, sync: bool = False, **args) -> None:
    """Dispatch a call of each tool."""
    session = Hooks().session()
    for tool in tools:
        step = session.step(BeforeTool, tool=tool, args=args)
        session.dispatch_sync(step) if sync else await session.dispatch(step)


@pytest.mark.parametrize("sync", [True, False])
async def test_a_tool_of_unknown_kind_is_logged_once(sync: bool, caplog, seen_tools):
    await call("frobnicate", "frobnicate", "bash", sync=sync)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "frobnicate" in caplog.text


async def test_a_tool_whose_kind_is_guessed_is_logged_with_it(caplog, seen_tools):
    caplog.set_level(logging.INFO)
    await call("frobnicate", command="ls")
    assert "tool 'frobnicate' is in no table; by its arguments, it is taken for kind shell" in caplog.text


async def test_a_name_that_no_tool_has_is_not_remembered(seen_tools):
    await call("x" * 201, "x" * 200)
    assert seen_tools == {"x" * 200}


async def test_ever_new_tools_do_not_fill_the_memory(seen_tools, monkeypatch):
    monkeypatch.setattr("fairlead.session._TOOLS_SEEN", 2)
    await call("one", "two", "three")
    assert seen_tools == {"three"}


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


async def test_an_error_on_another_loop_is_reported_by_the_session_alone(caplog) -> None:
    session, begun, may_fail = Hooks().session("s1"), threading.Event(), threading.Event()

    async def fails() -> None:
        begun.set()
        await asyncio.to_thread(may_fail.wait)
        raise ValueError("boom")

    thread = threading.Thread(target=lambda: session.spawn(fails()))  # without a loop of its own
    thread.start()
    thread.join()
    begun.wait()
    unhandled: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    closing = asyncio.create_task(session.close())
    await asyncio.sleep(0)
    may_fail.set()
    assert [str(error) for error in await closing] == ["boom"]
    await until_the_private_loop_is_done()
    gc.collect()
    assert unhandled == []


async def test_closing_waits_for_tasks_for_as_long_as_the_time_out_allows() -> None:
    session, ended = Hooks().session(), []

    async def background() -> None:
        await asyncio.sleep(0.05)
        session.spawn(later())  # a task may spawn another

    async def later() -> None:
        await asyncio.sleep(0.05)
        ended.append(True)

    session.spawn(background())
    assert await session.close(timeout=30) == []
    assert ended == [True]


async def test_closing_waits_no_longer_than_the_time_out() -> None:
    session = Hooks().session()
    session.spawn(asyncio.Event().wait())
    (error,) = await asyncio.wait_for(session.close(timeout=0.05), 20)
    assert str(error) == "background task did not finish within 0.05 s and was cancelled"


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
    assert f"did not finish within 0.02 s and was cancelled (session {session.session_id})" in caplog.text


# --- forks and subagents ------------------------------------------------------------------------------


async def spawn_without_a_loop(session: Session, work) -> None:
    await asyncio.to_thread(session.spawn, work)


async def until_the_private_loop_is_done() -> None:
    """Wait for all callbacks of tasks that have ended there: until then, its thread keeps their futures alive."""
    session = Hooks().session()
    await spawn_without_a_loop(session, asyncio.sleep(0))
    await session.close()


async def test_closing_waits_for_what_was_spawned_without_a_loop():
    session, done, closing = Hooks().session(), [], threading.Event()

    async def work():
        await asyncio.to_thread(closing.wait)
        done.append(True)

    await spawn_without_a_loop(session, work())
    asyncio.get_running_loop().call_soon(closing.set)
    assert (await session.close(), done) == ([], [True])


async def test_an_error_of_what_was_spawned_without_a_loop_is_reported_once(caplog):
    session, closing = Hooks().session(), threading.Event()

    async def work():
        await asyncio.to_thread(closing.wait)
        raise RuntimeError("broken")

    await spawn_without_a_loop(session, work())
    asyncio.get_running_loop().call_soon(closing.set)
    assert [str(error) for error in await session.close()] == ["broken"]
    await until_the_private_loop_is_done()
    gc.collect()
    assert caplog.text.count("broken") == 1


async def test_what_was_spawned_without_a_loop_is_cancelled_when_it_is_late():
    session, cancelled = Hooks().session(), threading.Event()

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    await spawn_without_a_loop(session, work())
    (error,) = await session.close(timeout=0.02)
    assert isinstance(error, TimeoutError)
    assert await asyncio.to_thread(cancelled.wait, 5)


async def test_a_fork_numbers_its_steps_by_itself():
    session = Hooks().session()
    session.step(TurnStart)
    fork = session.fork()
    assert [fork.step(TurnStart).sequence for _ in range(3)] == [2, 3, 4]
    assert session.step(TurnStart).sequence == 3


async def test_a_fork_has_no_errors_of_the_tasks_that_it_does_not_have():
    session = Hooks().session()

    async def fails():
        raise RuntimeError("broken")

    fork = session.fork()
    session.spawn(fails())
    assert len(await session.close()) == 1
    assert await fork.close() == []


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


def test_repr_of_a_session_without_an_agent_names_the_session():
    assert repr(Hooks().session("s1")) == "<session s1>"


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


async def test_a_host_may_set_the_effect_itself_before_it_is_journaled():
    written = []
    session = Hooks(journal=written.append).session()
    decision = await session.dispatch_with_effect(
        session.step(TurnStart), lambda decision: replace(decision, effect="stop")
    )
    assert (decision.effect, written[0].effect) == ("stop", "stop")
    assert (await session.dispatch(session.step(TurnStart))).effect is None


@pytest.mark.parametrize(
    ("verdict", "kind", "fields", "effect"),
    [
        (retry(), AfterTool, {"tool": "bash", "attempt": 2}, None),
        (retry(), AfterTool, {"tool": "bash", "attempt": 3}, "proceed"),
        (extend("go on"), BeforeTurnEnd, {"continues_so_far": 2}, None),
        (extend("go on"), BeforeTurnEnd, {"continues_so_far": 3}, "proceed"),
        (deny("no"), AfterTool, {"tool": "bash", "attempt": 9}, None),
    ],
)
async def test_what_the_host_has_done_often_enough_has_no_effect(verdict, kind, fields: dict, effect: str | None):
    hooks = Hooks()
    hooks.add(lambda s: verdict, on=("after_tool", "before_turn_end"), name="h")
    session = hooks.session()
    session.limits = {"retry": 2, "extend": 3}
    assert (await session.dispatch(session.step(kind, **fields))).effect == effect


async def test_a_deny_the_host_cannot_carry_out_is_an_error_never_silence():
    hooks, session = limited(before_tool=("args",))
    hooks.add(lambda s: deny("no"), on="before_tool", name="denies")
    with pytest.raises(Unenforceable, match="'denies' denies at before_tool, which small cannot carry out: no"):
        await session.dispatch(session.step(BeforeTool, tool="bash"))


CARRIED_OUT = {
    "a deny that it can": ([deny("no")], BeforeTool, ("deny",), (), None),
    "a deny without its context": ([deny("no", context="why")], BeforeTool, ("deny",), ("context",), None),
    "a deny of a result, as a stop": ([deny("no")], AfterTool, ("stop",), ("deny",), "stop"),
    "no deny of a result": ([deny("no")], AfterTool, (), ("deny",), "proceed"),
    "no deny of a call, though it can stop": ([deny("no")], BeforeTool, ("stop",), ("deny",), "proceed"),
    "no retry, though it can stop": ([retry()], AfterTool, ("stop",), ("retry",), "proceed"),
    "no retry, though it can deny": ([retry()], AfterTool, ("deny",), ("retry",), "proceed"),
    "the deny under a stop": ([stop(), deny("no")], BeforeTool, ("deny",), ("stop",), "deny"),
    "no change": ([change(args={"a": 1})], BeforeTool, (), ("args",), None),
}
"""What a lenient host carries out: the verdicts, the step, its capabilities; what is unsupported, and the effect."""


@pytest.mark.parametrize(("verdicts", "kind", "can", "unsupported", "effect"), CARRIED_OUT.values(), ids=CARRIED_OUT)
async def test_the_effect_is_what_the_host_can_carry_out(verdicts, kind, can, unsupported, effect):
    hooks = Hooks()
    event = kind(tool="bash").event
    for number, verdict in enumerate(verdicts):
        phase = "transform" if verdict.changes else "gate"
        hooks.add(lambda s, verdict=verdict: verdict, on=event, name=f"h{number}", phase=phase)
    session = hooks.session(capabilities={event: can}, lenient=True)
    decision = await session.dispatch(session.step(kind, tool="bash"))
    assert (decision.unsupported, decision.effect) == (unsupported, effect)


@pytest.mark.parametrize(
    ("step", "can", "is_lost"),
    [
        (BeforeTool(tool="bash"), ("stop",), True),
        (BeforeTool(tool="bash"), ("abort",), True),
        (AfterTool(tool="bash"), (), True),
        (AfterTool(tool="bash"), ("stop",), False),
        (AfterTool(tool="bash"), ("deny",), False),
        (SessionStart(), (), True),
        (SessionStart(), ("abort",), False),
    ],
)
async def test_a_deny_is_lost_unless_the_host_can_deny_or_do_what_replaces_it(step, can, is_lost: bool):
    hooks = Hooks()
    hooks.add(lambda s: deny("no"), on=step.event, name="denies")
    session = hooks.session(capabilities={step.event: can})
    with pytest.raises(Unenforceable) if is_lost else nullcontext():
        await session.dispatch(step)


@pytest.mark.parametrize("is_sync", [False, True])
async def test_a_session_takes_over_what_hooks_change_and_nothing_else_of_a_step(is_sync: bool):
    hooks = Hooks()
    session = hooks.session("s1", checkpoint_id="c1")
    step = BeforeRequest(session_id="other", checkpoint_id="c2", state={"n": 1})
    decision = session.dispatch_sync(step) if is_sync else await session.dispatch(step)
    assert decision.step is decision.original
    assert (session.session_id, session.checkpoint_id, session.state) == ("s1", "c1", {})


def test_a_session_builds_steps_of_tools_whose_kind_the_host_knows():
    step = Hooks().session().step(BeforeTool, tool="frobnicate", kind="shell", safety="destructive")
    assert (step.kind, step.safety) == ("shell", "destructive")


def test_every_step_says_in_which_session_it_all_began() -> None:
    root = Hooks().session("s1", agent="main")
    child = root.subagent("helper")
    grandchild = child.subagent("helper of the helper")
    sessions = (root, child, grandchild)
    assert [one.step(TurnStart).root_session_id for one in sessions] == ["s1", "s1", "s1"]
    assert len({one.session_id for one in sessions}) == 3


def test_now_is_the_time_of_day():
    assert abs(Hooks().session().now() - time.time()) < 5


def test_a_random_source_gives_the_same_numbers_for_the_same_step_and_salt():
    session = Hooks().session("s-1")
    one, other = session.step(TurnStart), session.step(TurnStart)
    numbers = [session.random(step, salt).random() for step in (one, other) for salt in ("", "mine")]
    assert len(set(numbers)) == 4
    assert [session.random(step, salt).random() for step in (one, other) for salt in ("", "mine")] == numbers
    assert Hooks().session("s-1").random(one).random() == numbers[0]
