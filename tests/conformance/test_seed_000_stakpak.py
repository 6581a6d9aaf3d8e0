"""Seed 000, stakpak: a request's lifecycle with shared state.

How its words map to ours:

- `Continue` is None, `Skip` is `skip_rest()`, `Abort{name, reason}` is `abort(reason, name=...)`.
- A `HookError` is an exception; that it fails the operation is `on_failure="abort"`.
- `HookContext` is a session: `ctx.state` is `session.state` (and the `state` of before_request and
  after_request), `spawn_task` is `session.spawn`, `clone` is `session.fork`.
- `BeforeInference` and `AfterInference` are before_model and after_model, `ToolCallRequested` is
  tool_requested, `ToolCallAborted` is after_tool with the outcome "aborted".

`execute_hooks(ctx, event)` is `session.dispatch(session.step(...))`, and the events fire in the loop.
"""

import asyncio
import threading
from dataclasses import dataclass, field

import msgspec
import pytest
from behaviours import behaviour

from fairlead import (
    HookAborted,
    Hooks,
    RegistrationError,
    UnknownName,
    abort,
    change,
    current_session,
    decode_step,
    encode_step,
    skip_rest,
    stop,
)
from fairlead.lifecycle import AfterModel, AfterRequest, BeforeModel, BeforeRequest

LOOK = ("Looking.", [("look", {"at": "a"})])
NAMES = {
    "BeforeRequest": "before_request",
    "AfterRequest": "after_request",
    "BeforeInference": "before_model",
    "AfterInference": "after_model",
    "ToolCallRequested": "tool_requested",
    "BeforeToolExecution": "before_tool",
    "AfterToolExecution": "after_tool",
    "ToolCallAborted": "after_tool",
}


@pytest.fixture
def hooks():
    """Hooks as the seed has them: an error fails the operation, and no hook has a time-out."""
    return Hooks(on_failure="abort", timeout=None)


@pytest.fixture
def ran():
    """The hooks that ran, in order."""
    return []


async def execute(hooks, kind=BeforeRequest, **context):
    """The decision on an event of a new context."""
    session = hooks.session(**context)
    return await session.dispatch(session.step(kind))


def noting(ran, name, verdict=None):
    """A hook that notes that it ran, and says `verdict`."""

    async def hook(step):
        ran.append(name)
        return verdict

    return hook


def add(hooks, ran, name, verdict=None, **options):
    hooks.add(noting(ran, name, verdict), on="before_request", name=name, **options)


# --- errors ---------------------------------------------------------------------------------------


class DatabaseError(Exception):
    """An error of the program's own, like those of the seed's `HookError`."""


class SerializationError(Exception):
    """Another one."""


class ExecutionError(Exception):
    """And another."""


@behaviour("000-1", lines="5-6", kind="otherwise", about="a HookError is any exception that the hook raises")
@behaviour("000-2", lines="7-8", kind="otherwise", about="DatabaseError: its class and text are in the failure")
@behaviour("000-3", lines="9-10", kind="otherwise", about="SerializationError: its class and text are in the failure")
@behaviour("000-4", lines="11-12", kind="otherwise", about="ExecutionError: its class and text are in the failure")
@pytest.mark.parametrize("error", [DatabaseError, SerializationError, ExecutionError])
async def test_an_error_keeps_its_kind_and_its_text(hooks, error):
    @hooks.on.before_request
    async def broken(step):
        raise error("the details")

    (failure,) = (await execute(hooks)).failures
    assert (failure.kind, failure.error) == ("error", f"{error.__name__}: the details")


# --- the context ----------------------------------------------------------------------------------


@behaviour("000-5", lines="14-15", kind="same", about="a context is written as JSON: its ids and its state")
def test_a_context_is_written_as_json(hooks):
    session = hooks.session("s-1", request_id="r-1", checkpoint_id="c-1", state={"input": ["hello"]})
    written = msgspec.json.decode(encode_step(session.step(BeforeRequest)))
    ids = {"session_id": "s-1", "request_id": "r-1", "checkpoint_id": "c-1"}
    assert {name: written[name] for name in ids} == ids
    assert written["state"] == {"input": ["hello"]}


@behaviour("000-6", lines="16", kind="same", about="a step may be of no session")
@behaviour("000-7", lines="16, 35", kind="different", about="a session always has an id: one is made if none is given")
def test_a_session_has_an_id_and_a_step_need_not_have_one(hooks):
    assert decode_step(encode_step(BeforeRequest())).session_id is None
    assert hooks.session().session_id is not None
    assert hooks.session("s-1").session_id == "s-1"


@behaviour("000-8", lines="17, 38", kind="same", about="a new context has no new checkpoint")
def test_a_new_context_has_no_checkpoint(hooks):
    session = hooks.session()
    assert (session.checkpoint_id, session.step(BeforeRequest).checkpoint_id) == (None, None)


@behaviour("000-9", lines="18, 39", kind="same", about="a request id is made, another one for each context")
def test_a_request_id_is_made(hooks):
    one, other = hooks.session(), hooks.session()
    assert one.request_id is not None
    assert one.request_id != other.request_id
    assert one.step(BeforeRequest).request_id == one.step(AfterModel).request_id == one.request_id


@behaviour("000-10", lines="18", kind="same", about="in the loop, each request has an id of its own on all its steps")
async def test_each_request_of_the_loop_has_an_id_of_its_own(scene):
    played = await scene(LOOK, "One.", "Two.").play("First.", "Second.")
    ids = [step.request_id for step in played.seen.steps]
    none, first, second = dict.fromkeys(ids)
    assert (none, ids) == (None, sorted(ids, key=[None, first, second].index))
    assert ids.count(None) == 1  # the session starts before its first request


@dataclass
class State:
    """A state of the program's own."""

    input: list[str] = field(default_factory=list)


@behaviour("000-11", lines="15, 19", kind="same", about="the state is of any type")
async def test_the_state_is_of_any_type(hooks):
    state, seen = State(), []
    hooks.add(lambda step: seen.append(step.state), on="before_request", name="sees")
    await execute(hooks, state=state)
    assert seen == [state]
    assert seen[0] is state


@behaviour("000-12", lines="19", kind="same", about="the state that an event carries is the context's")
def test_the_state_of_a_request_s_step_is_the_session_s(hooks):
    session = hooks.session(state={"round": 1})
    assert session.step(BeforeRequest).state is session.state
    assert session.step(AfterRequest).state is session.state
    assert session.step(BeforeRequest, state={"other": 1}).state == {"other": 1}


@behaviour("000-13", lines="20-21", kind="same", about="background tasks are not written")
async def test_background_tasks_are_not_written(hooks):
    session = hooks.session(state={})
    before = session.step(BeforeRequest)
    session.spawn(asyncio.sleep(0))
    written, plain = (
        msgspec.json.decode(encode_step(step)) for step in (session.step(BeforeRequest), before)
    )  # fmt: skip
    assert written | {"sequence": 0} == plain | {"sequence": 0}
    await session.close()


@behaviour("000-14", lines="23-26", kind="same", about="a clone keeps the session's id")
@behaviour("000-15", lines="27", kind="same", about="a clone keeps the new checkpoint's id")
@behaviour("000-16", lines="28", kind="same", about="a clone keeps the request's id")
def test_a_clone_keeps_the_ids(hooks):
    session = hooks.session("s-1", request_id="r-1", checkpoint_id="c-1")
    step = session.fork().step(BeforeRequest)
    assert (step.session_id, step.request_id, step.checkpoint_id) == ("s-1", "r-1", "c-1")


@behaviour("000-17", lines="29", kind="same", about="a clone has a copy of the state")
def test_a_clone_has_its_own_copy_of_the_state(hooks):
    session = hooks.session(state={"seen": [1]})
    fork = session.fork()
    fork.state["seen"].append(2)
    assert (session.state, fork.state) == ({"seen": [1]}, {"seen": [1, 2]})


@behaviour("000-18", lines="30", kind="same", about="a clone has none of the background tasks")
async def test_clones_do_not_share_background_tasks(hooks):
    release = asyncio.Event()
    session = hooks.session()
    session.spawn(release.wait())
    # If it shared the task, it would wait for it and report that it was late.
    assert await session.fork().close(timeout=0.02) == []
    release.set()
    await session.close()


@behaviour("000-19", lines="35-37", kind="same", about="a new context has the session's id that it is given")
@behaviour("000-20", lines="40", kind="same", about="a new context has the state that it is given")
@behaviour("000-21", lines="41", kind="same", about="a new context has no background tasks")
async def test_a_new_context_has_what_it_is_given(hooks):
    state = {"input": []}
    session = hooks.session("s-1", state=state)
    assert (session.session_id, session.state is state) == ("s-1", True)
    assert await session.close(timeout=0.02) == []


@behaviour("000-22", lines="44-46", kind="same", about="set_session_id: the session has the id from then on")
@pytest.mark.parametrize("dispatch", ["async", "sync"])
async def test_a_session_id_that_a_hook_sets_reaches_the_session(hooks, dispatch):
    hooks.add(lambda step: change(session_id="s-2"), on="before_request", name="opens")
    session = hooks.session("s-1")
    step = session.step(BeforeRequest)
    decision = await session.dispatch(step) if dispatch == "async" else session.dispatch_sync(step)
    assert decision.step.session_id == session.session_id == "s-2"
    assert session.step(AfterModel).session_id == "s-2"


@behaviour("000-23", lines="47-49", kind="same", about="set_new_checkpoint_id: the session has the id from then on")
@pytest.mark.parametrize("kind", [BeforeRequest, AfterRequest])
async def test_a_checkpoint_that_a_hook_makes_reaches_the_session(hooks, kind):
    hooks.add(lambda step: change(checkpoint_id="c-1"), on=kind.event, name="saves")
    session = hooks.session()
    decision = await session.dispatch(session.step(kind))
    assert decision.step.checkpoint_id == session.checkpoint_id == "c-1"
    assert session.step(AfterModel).checkpoint_id == "c-1"


@behaviour(
    "000-95",
    lines="44-49, 106",
    kind="otherwise",
    about="at any other event, a hook sets the ids of current_session()",
)
@pytest.mark.parametrize("event", ["before_input", "before_model", "before_tool", "after_tool"])
async def test_a_hook_sets_ids_at_any_event(scene, event):
    async def sets(step):
        session = current_session()
        session.session_id, session.checkpoint_id = "s-2", "c-1"

    played = scene(LOOK)
    played.add(sets, on=event)
    await played.play("One.", "Two.")
    later = [*played.steps("turn_end"), *played.steps("before_request")[1:], *played.steps("session_end")]
    assert [(step.session_id, step.checkpoint_id) for step in later] == [("s-2", "c-1")] * 4


@behaviour("000-24", lines="44-49", kind="same", about="the ids that one hook sets are seen by the hooks after it")
async def test_ids_are_seen_by_later_hooks(hooks):
    seen = []
    hooks.add(lambda step: change(session_id="s-2", checkpoint_id="c-1"), on="before_request", name="sets")
    hooks.add(lambda step: seen.append((step.session_id, step.checkpoint_id)), on="before_request", name="sees")
    await execute(hooks)
    assert seen == [("s-2", "c-1")]


@behaviour("000-25", lines="44-49", kind="same", about="in the loop, the ids that a hook sets are on all later steps")
async def test_in_the_loop_ids_are_on_all_later_steps(scene):
    played = scene(LOOK)
    played.add(change(session_id="known", checkpoint_id="c-1"), on="before_request")
    await played.play()
    after = played.seen.steps[played.events.index("before_request") :]
    assert {(step.session_id, step.checkpoint_id) for step in after} == {("known", "c-1")}
    assert (played.agent.session.session_id, played.agent.session.checkpoint_id) == ("known", "c-1")


@behaviour("000-26", lines="47-49", kind="same", about="a checkpoint of one request is where the next one starts")
async def test_a_new_checkpoint_at_the_end_is_where_the_next_request_starts(scene):
    played = scene()
    played.add(lambda step: change(checkpoint_id=f"after {step.request_id}"), on="after_request")
    await played.play("One.", "Two.")
    first, second = played.steps("before_request")
    assert (first.checkpoint_id, second.checkpoint_id) == (None, f"after {first.request_id}")


async def test_what_hooks_do_not_change_stays(hooks):
    hooks.add(lambda step: change(checkpoint_id="c-1"), on="before_request", name="saves")
    state = {"kept": True}
    session = hooks.session("s-1", state=state)
    await session.dispatch(session.step(BeforeRequest))
    assert (session.session_id, session.state is state) == ("s-1", True)


async def test_what_a_hook_in_monitor_mode_would_change_stays(hooks):
    hooks.add(lambda step: change(session_id="s-2", state=1), on="before_request", name="monitored", enforce=False)
    session = hooks.session("s-1", state={})
    await session.dispatch(session.step(BeforeRequest))
    assert (session.session_id, session.state) == ("s-1", {})


# --- background tasks -----------------------------------------------------------------------------


@behaviour("000-27", lines="52-57", kind="same", about="a hook spawns a task, which outlives the hook")
async def test_a_background_task_of_a_hook_is_finished_when_the_session_is_closed(hooks):
    release, saved = asyncio.Event(), []

    async def save():
        await release.wait()
        saved.append("checkpoint")

    hooks.add(lambda step: current_session().spawn(save()), on="after_request", name="in the background")
    session = hooks.session()
    await session.dispatch(session.step(AfterRequest))
    assert saved == []
    release.set()
    assert (await session.close(), saved) == ([], ["checkpoint"])


@behaviour("000-28", lines="20-21, 54", kind="same", about="a task ends with nothing or an error, which is reported")
async def test_background_task_errors_are_reported(hooks, caplog):
    async def save():
        raise DatabaseError("database is down")

    session = hooks.session()
    session.spawn(save())
    errors = await session.close()
    assert [(type(error), str(error)) for error in errors] == [(DatabaseError, "database is down")]
    assert "database is down" in caplog.text


@behaviour("000-29", lines="54-56", kind="same", about="the error of a task leaves the request alone")
async def test_in_the_loop_the_error_of_a_task_leaves_the_request_alone(scene):
    async def save():
        raise DatabaseError("database is down")

    played = scene("Fine.")
    played.add(lambda step: current_session().spawn(save()), on="before_request")
    await played.play()
    assert (played.output, played.error) == ("Fine.", None)
    assert [(step.where, step.error) for step in played.steps("error")] == [
        ("background", "DatabaseError: database is down")
    ]


# --- the events -----------------------------------------------------------------------------------


async def played_with(scene, *lines, **options):
    return await scene(*lines, **options).play()


@behaviour("000-30", lines="59-61", kind="same", about="BeforeRequest fires first in a request, with its state")
async def test_before_request_fires_first(scene):
    played = await played_with(scene, LOOK)
    requests = [event for event in played.events if event not in ("session_start", "session_end")]
    assert (requests[0], requests.count("before_request")) == ("before_request", 1)
    assert played.steps("before_request")[0].state is played.agent.session.state


@behaviour("000-31", lines="62", kind="same", about="AfterRequest fires last in a request")
@behaviour("000-32", lines="62", kind="same", about="AfterRequest fires after an error, too, and says what failed")
@pytest.mark.parametrize(("line", "error"), [("Fine.", None), (RuntimeError("down"), "down")])
async def test_after_request_fires_last(scene, line, error):
    played = await played_with(scene, line)
    (after,) = played.steps("after_request")
    assert played.events[-2:] == ["after_request", "session_end"]
    assert after.error is error is None or error in after.error


@behaviour("000-33", lines="63", kind="same", about="BeforeInference fires before each request to the model")
@behaviour("000-34", lines="64", kind="same", about="AfterInference fires after each answer of the model")
async def test_inference_events_fire_around_each_request_to_the_model(scene):
    played = scene(LOOK)
    sent = []
    played.add(lambda step: sent.append((step.event, len(played.sent))), on=("before_model", "after_model"))
    await played.play()
    assert sent == [("before_model", 0), ("after_model", 1), ("before_model", 1), ("after_model", 2)]
    assert [step.output for step in played.steps("after_model")] == ["Looking.", "Done."]


@behaviour("000-35", lines="65", kind="same", about="ToolCallRequested fires when the model asks for a tool")
@behaviour("000-36", lines="66", kind="same", about="BeforeToolExecution fires before the tool runs")
@behaviour("000-37", lines="67", kind="same", about="AfterToolExecution fires after the tool has run, with its result")
async def test_tool_events_fire_around_a_call(scene):
    played, when = scene(LOOK), []
    on = ("tool_requested", "before_tool", "after_tool")
    played.add(lambda step: when.append((step.event, step.tool, step.args, [*played.ran])), on=on)
    await played.play()
    call = ("look", {"at": "a"})
    assert when == [("tool_requested", *call, []), ("before_tool", *call, []), ("after_tool", *call, ["look a"])]
    assert played.steps("after_tool")[0].output == "look: a (1)"


@behaviour("000-38", lines="68", kind="otherwise", about='ToolCallAborted is after_tool with outcome="aborted"')
async def test_an_aborted_call_is_seen_by_the_hooks_for_aborted_calls_alone(scene):
    played, seen = scene(("", [("look", {"at": "a"}), ("touch", {"at": "b"})])), []
    played.add(lambda step: seen.append((step.tool, step.outcome)), on="after_tool", name="sees", outcome="aborted")
    played.add(lambda step: stop("enough") if step.tool == "touch" else None, on="tool_requested", name="stops")
    await played.play()
    assert ("touch", "aborted") in seen
    assert {outcome for _, outcome in seen} == {"aborted"}


@behaviour("000-39", lines="69", kind="same", about="Error fires when something fails, and says what and where")
async def test_error_fires_when_something_fails(scene):
    played = await played_with(scene, ("", [("crash", {})]))
    assert [(step.error, step.where) for step in played.steps("error")] == [("RuntimeError: boom", "tool crash")]


@behaviour("000-40", lines="59", kind="same", about="events compare and hash: hooks are found by their names")
@behaviour("000-41", lines="71-75", kind="otherwise", about="an event is shown by its name, such as before_request")
@pytest.mark.parametrize("event", sorted({*NAMES.values(), "error"}))
def test_an_event_is_shown_by_its_name(hooks, event):
    hook = hooks.add(lambda step: None, on=event, name="one")
    assert (hook.described_events, hook.events == {event}, hooks.has_hooks(event)) == (event, True, True)


@behaviour("000-42", lines="60-70", kind="otherwise", about="an error about the seed's name of an event suggests ours")
@pytest.mark.parametrize(("name", "event"), NAMES.items())
def test_the_seed_s_name_of_an_event_is_suggested(hooks, name, event):
    with pytest.raises(UnknownName, match=f"did you mean '{event}'"):
        hooks.add(lambda step: None, on=name)


@behaviour(
    "000-43", lines="106-107", kind="same", about="every event carries the context: its ids are on each envelope"
)
async def test_every_event_s_envelope_has_the_ids_of_the_request(scene):
    played = scene(LOOK, ("", [("crash", {})]), name="coder", session_id="s-1", cwd="/repo", user_id="u-1")
    envelopes = []
    played.hooks.add(lambda step: envelopes.append(encode_step(step)), on="*", phase="observe", name="wire")
    await played.play()
    read = [msgspec.json.decode(data) for data in envelopes]
    assert {"before_request", "after_request", "before_model", "after_model", "tool_requested", "before_tool",
            "after_tool", "error"} <= {envelope["event"] for envelope in read}  # fmt: skip
    header = {"session_id": "s-1", "cwd": "/repo", "user_id": "u-1", "host": "loop"}
    assert [envelope | header for envelope in read] == read
    request = {envelope.get("request_id") for envelope in read if envelope["event"] != "session_start"}
    assert request == {played.agent.session.request_id}
    numbers = [envelope["sequence"] for envelope in read]
    assert numbers == sorted(set(numbers))
    for envelope, step in zip(read, map(decode_step, envelopes), strict=True):
        assert (step.event, msgspec.json.decode(encode_step(step))) == (envelope["event"], envelope)


# --- outcomes -------------------------------------------------------------------------------------


@behaviour("000-44", lines="76-79", kind="same", about="Continue is the default: a hook that returns nothing goes on")
async def test_a_hook_without_an_opinion_goes_on(hooks, ran):
    add(hooks, ran, "first")
    add(hooks, ran, "second")
    decision = await execute(hooks)
    assert (ran, decision.control, decision.raise_for_abort()) == (["first", "second"], "proceed", None)


@behaviour("000-45", lines="80, 94", kind="same", about="Skip is no error: the operation goes on")
async def test_skip_goes_on_with_the_operation(scene):
    played, ran = scene("Fine."), []
    played.add(noting(ran, "first", skip_rest("done here")), on="before_model", name="first")
    played.add(noting(ran, "second"), on="before_model", name="second")
    await played.play()
    assert (ran, played.output, played.error) == (["first"], "Fine.", None)


@behaviour("000-46", lines="81-84", kind="same", about="Abort has an optional name and a reason")
@behaviour("000-47", lines="86-92", kind="same", about='an abort is the error "[name:hook_abort] reason"')
@behaviour("000-48", lines="91, 144", kind="same", about="an abort whose name is empty has an empty one in its text")
@pytest.mark.parametrize(
    ("verdict", "text"),
    [
        (abort("no budget left"), "[budget:hook_abort] no budget left"),
        (abort("no budget left", name="accounting"), "[accounting:hook_abort] no budget left"),
        (abort("no budget left", name=""), "[:hook_abort] no budget left"),
        (abort(""), "[budget:hook_abort] "),
        (abort(" two\nlines \n"), "[budget:hook_abort]  two\nlines \n"),
    ],
)
async def test_an_abort_is_an_error_in_the_seed_s_words(hooks, ran, verdict, text):
    add(hooks, ran, "budget", verdict)
    decision = await execute(hooks)
    with pytest.raises(HookAborted) as raised:
        decision.raise_for_abort()
    assert str(raised.value) == text


@behaviour("000-49", lines="94-95", kind="same", about="what is no abort is no error")
@pytest.mark.parametrize("verdict", [None, skip_rest(), skip_rest("done here"), change(checkpoint_id="c-1")])
async def test_what_is_not_an_abort_raises_nothing(hooks, ran, verdict):
    add(hooks, ran, "first", verdict)
    assert (await execute(hooks)).raise_for_abort() is None


@behaviour("000-50", lines="81-93", kind="same", about="in the loop, an abort fails the request")
async def test_in_the_loop_an_abort_fails_the_request(scene):
    played = scene()
    played.add(abort("quota exceeded", name="billing"), on="before_model")
    await played.play()
    assert isinstance(played.error, HookAborted)
    assert (str(played.error), played.sent) == ("[billing:hook_abort] quota exceeded", [])
    assert [step.error for step in played.steps("after_request")] == ["[billing:hook_abort] quota exceeded"]


# --- a hook ---------------------------------------------------------------------------------------


class Audit:
    """A hook object: its name and priority are attributes, and a method is what it does at an event."""

    name = "audit"
    priority = 7

    def __init__(self):
        self.seen = []

    async def before_request(self, step):
        self.seen.append(step.event)

    async def after_request(self, step):
        self.seen.append(step.event)


@behaviour("000-51", lines="99", kind="same", about="hooks are shared between threads")
def test_hooks_are_shared_between_threads(hooks):
    together, seen = threading.Barrier(4), []

    def meets(step):
        together.wait(timeout=10)  # passes only if all four threads are in the hook at once
        seen.append(step.session_id)

    hooks.add(meets, on="before_request")
    sessions = [hooks.session(f"s-{number}") for number in range(4)]
    threads = [threading.Thread(target=s.dispatch_sync, args=(s.step(BeforeRequest),)) for s in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == ["s-0", "s-1", "s-2", "s-3"]


@behaviour("000-52", lines="100", kind="same", about="a hook object has a name")
@behaviour("000-53", lines="101", kind="same", about="a hook object has a priority")
@behaviour("000-54", lines="104-107", kind="otherwise", about="execute(ctx, event) is one method per event, or on=")
async def test_a_hook_object_has_a_name_and_a_priority(hooks):
    audit = Audit()
    added = hooks.add(audit)
    assert {(hook.name, hook.priority) for hook in added} == {("audit.before_request", 7), ("audit.after_request", 7)}
    await execute(hooks, BeforeRequest)
    await execute(hooks, AfterRequest)
    assert audit.seen == ["before_request", "after_request"]


@pytest.mark.parametrize("option", ["name", "priority", "timeout", "on_failure"])
def test_an_option_that_is_a_method_is_refused(hooks, option):
    odd = type("Odd", (Audit,), {option: lambda self: 50})
    with pytest.raises(RegistrationError, match=rf"Odd\.{option} is a method.*pass {option}="):
        hooks.add(odd())
    with pytest.raises(RegistrationError, match=rf"Odd\.{option} is a method"):
        hooks.add(type("Odd", (), {option: lambda self: 50, "__call__": lambda self, step: None})(), on="before_tool")


def test_an_option_of_the_call_wins_over_the_object_s(hooks):
    assert [hook.priority for hook in hooks.add(Audit(), priority=3)] == [3, 3]
    assert [hook.name for hook in hooks.add(Audit(), name="other")] == ["other.after_request", "other.before_request"]


@behaviour("000-55", lines="101-103", kind="same", about="the default priority is 50")
async def test_the_default_priority_is_50(hooks, ran):
    add(hooks, ran, "51", priority=51)
    add(hooks, ran, "default")
    add(hooks, ran, "49", priority=49)
    await execute(hooks)
    assert ran == ["49", "default", "51"]


@behaviour("000-56", lines="101", kind="same", about="a priority may be any of 0 to 255")
@behaviour("000-57", lines="101", kind="different", about="a priority may be any whole number")
async def test_a_priority_is_any_whole_number(hooks, ran):
    for priority in (256, 255, 0, -1):
        add(hooks, ran, str(priority), priority=priority)
    await execute(hooks)
    assert ran == ["-1", "0", "255", "256"]
    with pytest.raises(RegistrationError, match="whole number"):
        add(hooks, ran, "odd", priority=1.5)


@behaviour("000-58", lines="104, 106", kind="same", about="a hook may change the state in place; later hooks see it")
async def test_state_changes_are_seen_by_later_hooks(hooks):
    @hooks.on.before_request
    async def build(step):
        step.state["input"] = ["hello"]

    @hooks.on.before_request
    async def extend_it(step):
        step.state["input"].append("world")

    session = hooks.session(state={})
    await session.dispatch(session.step(BeforeRequest))
    assert session.state == {"input": ["hello", "world"]}


@behaviour(
    "000-59", lines="106", kind="same", about="a hook may replace the state; later hooks and the session have it"
)
async def test_a_replaced_state_is_seen_by_later_hooks_and_the_session(hooks):
    seen = []
    hooks.add(lambda step: change(state={"round": 2}), on="before_request", name="replace")
    hooks.add(lambda step: seen.append(step.state), on="before_request", name="read")
    session = hooks.session(state={"round": 1})
    await session.dispatch(session.step(BeforeRequest))
    assert (seen, session.state) == ([{"round": 2}], {"round": 2})
    assert session.step(AfterRequest).state == {"round": 2}


@behaviour("000-60", lines="19, 106", kind="same", about="the state travels through all events of a request")
async def test_state_travels_through_the_events_of_a_request(scene):
    played = scene("Four.")
    played.add(lambda step: step.state.update(input="2 + 2"), on="before_request", name="builds")
    played.add(
        lambda step: current_session().state.update(output=f"{current_session().state['input']} = {step.output}"),
        on="after_model", name="reads",
    )  # fmt: skip
    await played.play()
    (after,) = played.steps("after_request")
    assert after.state == {"input": "2 + 2", "output": "2 + 2 = Four."}


@behaviour("000-61", lines="106", kind="same", about="what a hook changed stays when it skips, aborts or fails")
@pytest.mark.parametrize("end", [skip_rest(), abort("no"), DatabaseError("down")], ids=["skip", "abort", "error"])
async def test_state_changes_stay_whatever_the_hook_says(hooks, end):
    @hooks.on.before_request
    async def changes(step):
        step.state["changed"] = True
        if isinstance(end, Exception):
            raise end
        return end

    session = hooks.session(state={})
    await session.dispatch(session.step(BeforeRequest))
    assert session.state == {"changed": True}


@behaviour("000-62", lines="107", kind="same", about="one hook may serve several events, and knows which one it is")
async def test_one_hook_serves_several_events(hooks):
    seen = []
    hooks.add(lambda step: seen.append(step.event), on=("before_request", "before_model"), name="watch")
    for kind in (BeforeRequest, BeforeModel, AfterModel):
        await execute(hooks, kind)
    assert seen == ["before_request", "before_model"]


@behaviour("000-63", lines="98, 104", kind="same", about="a hook is async: it may await, and is waited for")
@behaviour("000-64", lines="104-108", kind="otherwise", about="hooks have no time-out with timeout=None")
async def test_a_hook_may_take_its_time(hooks):
    started, release = asyncio.Event(), asyncio.Event()

    @hooks.on.before_request
    async def waits(step):
        started.set()
        await release.wait()
        return abort("waited")

    dispatch = asyncio.create_task(execute(hooks))
    await started.wait()
    release.set()
    assert [hook.timeout for hook in hooks] == [None]
    assert (await dispatch).reason == "waited"


@behaviour("000-65", lines="104-108", kind="different", about="hooks have 5 s, and fail closed, unless told otherwise")
def test_the_defaults_are_fairlead_s_own():
    (hook,) = (Hooks().add(noting([], "one"), on="before_request"),)
    assert (hook.timeout, hook.on_failure) == (5, "closed")


# --- the registry ---------------------------------------------------------------------------------


@behaviour("000-66", lines="110-113", kind="same", about="a new registry has no hooks")
def test_new_hooks_are_empty(hooks):
    assert (len(hooks), list(hooks)) == (0, [])


@behaviour("000-67", lines="114-123", kind="otherwise", about="hooks are shown by their names, and listed with events")
def test_hooks_are_shown_by_name(hooks, ran):
    add(hooks, ran, "first")
    hooks.add(noting(ran, "second"), on="error", name="second")
    assert repr(hooks) == "<Hooks: first, second>"
    assert {hook.name: hook.described_events for hook in hooks} == {"first": "before_request", "second": "error"}


@behaviour("000-68", lines="112, 125-127", kind="same", about="a hook is registered for an event, and runs at no other")
async def test_a_hook_runs_at_its_own_event_only(hooks, ran):
    add(hooks, ran, "first")
    await execute(hooks, AfterRequest)
    assert ran == []
    await execute(hooks, BeforeRequest)
    assert ran == ["first"]


@behaviour("000-69", lines="125-127", kind="different", about="two hooks of one name are an error, unless replace=True")
async def test_two_hooks_of_one_name_are_an_error(hooks, ran):
    add(hooks, ran, "twin")
    with pytest.raises(RegistrationError, match="already registered"):
        add(hooks, ran, "twin")


@behaviour("000-70", lines="126-127", kind="same", about="a hook that is registered later runs from the next event on")
async def test_a_hook_that_is_registered_later_runs_from_then_on(hooks, ran):
    await execute(hooks)
    add(hooks, ran, "late")
    await execute(hooks)
    assert ran == ["late"]


@behaviour("000-71", lines="128", kind="same", about="lower priorities run first")
async def test_lower_priority_runs_first(hooks, ran):
    for name, priority in (("late", 90), ("early", 10), ("middle", 40)):
        add(hooks, ran, name, priority=priority)
    await execute(hooks)
    assert ran == ["early", "middle", "late"]


@behaviour("000-72", lines="128", kind="same", about="equal priorities keep the order of registration")
async def test_equal_priority_keeps_registration_order(hooks, ran):
    names = ["d", "a", "c", "b"]
    for name in names:
        add(hooks, ran, name, priority=7)
    await execute(hooks)
    assert ran == names


@behaviour("000-73", lines="128", kind="same", about="each event has an order of its own")
async def test_each_event_has_an_order_of_its_own(hooks, ran):
    hooks.add(noting(ran, "other"), on="after_request", name="other", priority=1)
    add(hooks, ran, "second", priority=20)
    add(hooks, ran, "first", priority=10)
    await execute(hooks)
    assert ran == ["first", "second"]


# --- execute_hooks --------------------------------------------------------------------------------


@behaviour("000-74", lines="135-137", kind="same", about="without hooks for the event, it continues")
async def test_no_hooks_proceed(hooks, ran):
    hooks.add(noting(ran, "other"), on="after_request", name="other")
    decision = await execute(hooks)
    assert (decision.control, decision.contributions, ran) == ("proceed", (), [])


@behaviour("000-75", lines="138, 140", kind="same", about="hooks run one after another")
async def test_hooks_run_one_after_another(hooks, ran):
    @hooks.on.before_request
    async def first(step):
        ran.append("first starts")
        await asyncio.sleep(0)
        ran.append("first ends")

    add(hooks, ran, "second")
    await execute(hooks)
    assert ran == ["first starts", "first ends", "second"]


@behaviour("000-76", lines="139", kind="same", about="an error stops the chain")
async def test_an_error_stops_the_chain(hooks, ran):
    @hooks.on.before_request
    async def broken(step):
        raise DatabaseError("database is down")

    add(hooks, ran, "second")
    await execute(hooks)
    assert ran == []


@behaviour("000-77", lines="139", kind="same", about="an error fails the operation, and is the cause of the failure")
@pytest.mark.parametrize("kind", [BeforeRequest, BeforeModel, AfterModel, AfterRequest])
async def test_an_error_fails_the_operation(hooks, kind):
    error = DatabaseError("database is down")

    @hooks.on(kind.event)
    async def broken(step):
        raise error

    decision = await execute(hooks, kind)
    with pytest.raises(HookAborted, match=r"^\[broken:hook_abort\] .*database is down") as raised:
        decision.raise_for_abort()
    assert raised.value.__cause__ is error


@behaviour("000-78", lines="139", kind="same", about="in the loop, the hook's error is the cause of the failed request")
async def test_in_the_loop_the_hook_s_error_is_the_cause(scene):
    error = DatabaseError("database is down")

    async def broken(step):
        raise error

    played = scene()
    played.add(broken, on="before_model", on_failure="abort")
    await played.play()
    assert isinstance(played.error, HookAborted)
    assert (played.error.__cause__, played.sent) == (error, [])


@behaviour("000-79", lines="139", kind="different", about="an error fails closed by default: the event's own refusal")
@pytest.mark.parametrize(("kind", "control"), [(BeforeRequest, "abort"), (BeforeModel, "stop"), (AfterModel, "deny")])
async def test_an_error_fails_closed_by_default(kind, control):
    hooks = Hooks()

    @hooks.on(kind.event)
    async def broken(step):
        raise DatabaseError("database is down")

    assert (await execute(hooks, kind)).control == control


@behaviour("000-80", lines="141", kind="same", about="Skip stops the chain")
async def test_skip_stops_the_chain(hooks, ran):
    add(hooks, ran, "first", skip_rest())
    add(hooks, ran, "second", abort("never said"))
    decision = await execute(hooks)
    assert (ran, decision.proceeds) == (["first"], True)


@behaviour("000-81", lines="141", kind="otherwise", about="the caller sees a Skip among decision.verdicts")
async def test_the_caller_sees_that_a_hook_skipped(hooks, ran):
    add(hooks, ran, "first", skip_rest("done here"))
    (skipped,) = (await execute(hooks)).verdicts
    assert (skipped.hook.name, skipped.verdict.control, skipped.verdict.reason) == ("first", "skip_rest", "done here")


@behaviour("000-82", lines="141", kind="different", about="Skip leaves out transforms; gates and observers still run")
async def test_skip_leaves_gates_and_observers_in(hooks, ran):
    add(hooks, ran, "first", skip_rest())
    add(hooks, ran, "second")
    add(hooks, ran, "gate", phase="gate")
    add(hooks, ran, "observer", phase="observe")
    await execute(hooks)
    assert ran == ["first", "gate", "observer"]


@behaviour("000-83", lines="142", kind="same", about="Abort stops the chain")
async def test_abort_stops_the_chain(hooks, ran):
    add(hooks, ran, "first", abort("no budget"))
    add(hooks, ran, "second")
    add(hooks, ran, "gate", phase="gate")
    assert (await execute(hooks)).control == "abort"
    assert ran == ["first"]


@behaviour("000-84", lines="143-144", kind="same", about="an abort is named after its hook, unless it names itself")
@behaviour("000-85", lines="145", kind="same", about="an abort keeps its reason")
@pytest.mark.parametrize(("name", "named"), [(None, "budget"), ("accounting", "accounting")])
async def test_an_abort_has_a_name_and_its_reason(hooks, ran, name, named):
    add(hooks, ran, "budget", abort("no budget left", name=name))
    decision = await execute(hooks)
    with pytest.raises(HookAborted) as raised:
        decision.raise_for_abort()
    assert (raised.value.name, raised.value.reason, decision.hook) == (named, "no budget left", "budget")


class Budget:
    """A hook object that aborts."""

    name = "budget"

    async def before_request(self, step):
        return abort("no budget left", name=step.metadata and step.metadata["name"])


@behaviour(
    "000-94",
    lines="100, 144",
    kind="different",
    about="a hook of an object is called object.method, in an abort, too, unless that names itself",
)
@pytest.mark.parametrize(("metadata", "named"), [(None, "budget.before_request"), ({"name": "budget"}, "budget")])
async def test_an_abort_of_a_hook_object_has_the_method_in_its_name(hooks, metadata, named):
    hooks.add(Budget())
    session = hooks.session()
    decision = await session.dispatch(session.step(BeforeRequest, metadata=metadata))
    with pytest.raises(HookAborted) as raised:
        decision.raise_for_abort()
    assert str(raised.value) == f"[{named}:hook_abort] no budget left"


@behaviour(
    "000-96",
    lines="83, 145",
    kind="different",
    about="a reason over 4 KiB is cut, with a warning, unless text_limit= is higher; control characters go",
)
@pytest.mark.parametrize(("options", "whole"), [({}, False), ({"text_limit": 10_000}, True)])
async def test_a_long_reason_of_an_abort_is_cut_with_a_warning(hooks, ran, options, whole):
    add(hooks, ran, "budget", abort("\x1bno " + "x" * 5000), **options)
    decision = await execute(hooks)
    with pytest.raises(HookAborted) as raised:
        decision.raise_for_abort()
    assert (str(raised.value) == "[budget:hook_abort] no " + "x" * 5000) is whole
    assert any("was cut" in warning for warning in decision.warnings) is not whole


@behaviour("000-86", lines="150", kind="same", about="when all hooks continue, the event continues")
async def test_when_all_hooks_continue_the_event_does(hooks, ran):
    for name in ("a", "b", "c"):
        add(hooks, ran, name)
    decision = await execute(hooks)
    assert (decision.control, ran) == ("proceed", ["a", "b", "c"])


# --- define_hook! ---------------------------------------------------------------------------------


@behaviour(
    "000-87", lines="153-155", kind="otherwise", about="define_hook! is the decorator hooks.on.<event>(name=...)"
)
@behaviour("000-88", lines="156-166", kind="same", about="a hook is one function of the context and the event")
async def test_a_hook_is_defined_in_one_place(hooks):
    @hooks.on.before_request(name="greeter")
    async def greets(step):
        step.state["greeting"] = f"hello from {step.event}"

    session = hooks.session(state={})
    await session.dispatch(session.step(BeforeRequest))
    assert ([hook.name for hook in hooks], session.state) == (["greeter"], {"greeting": "hello from before_request"})


# --- and the rest ---------------------------------------------------------------------------------


@behaviour("000-89", lines="130-134", kind="otherwise", about="execute_hooks(ctx, event) is session.dispatch(step)")
async def test_executing_the_hooks_of_an_event_gives_what_they_concluded(hooks, ran):
    add(hooks, ran, "sets", change(checkpoint_id="c-1"))
    session = hooks.session("s-1")
    step = session.step(BeforeRequest)
    decision = await session.dispatch(step)
    assert (decision.original, decision.event, decision.control) == (step, "before_request", "proceed")
    assert (decision.step.checkpoint_id, decision.changed, ran) == ("c-1", ("checkpoint_id",), ["sets"])


@behaviour("000-90", lines="20-21, 31", kind="same", about="a session has any number of tasks, and reports every error")
async def test_every_error_of_several_tasks_is_reported(hooks):
    async def fails(number):
        await asyncio.sleep(0)
        raise DatabaseError(f"error {number}")

    async def works():
        await asyncio.sleep(0)

    session = hooks.session()
    for work in (fails(1), works(), fails(2)):
        session.spawn(work)
    assert sorted(str(error) for error in await session.close()) == ["error 1", "error 2"]


@behaviour(
    "000-93",
    lines="21, 41",
    kind="different",
    about="a closing session waits for its tasks, 5 s by default, and cancels them then; the seed drops them at once",
)
async def test_a_task_that_takes_too_long_is_cancelled(hooks):
    ended = []

    async def hangs():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    session = hooks.session()
    session.spawn(hangs())
    (error,) = await session.close(timeout=0.02)
    assert (ended, type(error)) == (["cancelled"], TimeoutError)


@behaviour("000-91", lines="35-42", kind="same", about="two contexts share nothing")
async def test_two_contexts_share_nothing(hooks):
    hooks.add(lambda step: step.state.update(seen=step.session_id), on="before_request", name="marks")
    one, other = hooks.session("s-1"), hooks.session("s-2")
    for session in (one, other):
        await session.dispatch(session.step(BeforeRequest))
    assert (one.state, other.state) == ({"seen": "s-1"}, {"seen": "s-2"})


@behaviour("000-92", lines="29", kind="same", about="a clone goes on by itself: its ids do not reach the first context")
async def test_a_clone_goes_on_by_itself(hooks):
    hooks.add(lambda step: change(session_id="s-2", state={}), on="before_request", name="sets")
    session = hooks.session("s-1", state={"kept": True})
    fork = session.fork()
    await fork.dispatch(fork.step(BeforeRequest))
    assert (fork.session_id, fork.state) == ("s-2", {})
    assert (session.session_id, session.state) == ("s-1", {"kept": True})
