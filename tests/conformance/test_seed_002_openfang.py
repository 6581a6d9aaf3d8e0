"""Seed 002, openfang: a synchronous gate and three observers.

How its words map to ours:

- `fire` is `dispatch_sync`, `has_handlers(event)` is `hooks.has_hooks(event)`.
- `BeforeToolCall` is before_tool, its handlers are gates, and `Err(reason)` is `deny(reason)`. "The first Err stops
  execution" is a transform: gates all judge, and the first one gives the reason.
- `AfterToolCall` is after_tool, `BeforePromptBuild` is before_prompt and `AgentLoopEnd` is turn_end. Their handlers
  only observe: `phase="observe"`. An `Err` of theirs is an exception, which is logged and is in `decision.failures`.
- `agent_name` and `agent_id` are the step's `agent`, and `data` is the step's fields.

Steps are built by a session and go over the wire before hooks see them.
"""

import logging
import threading

import pytest
from behaviours import behaviour

import fairlead
from fairlead import Agent, Hooks, ReadOnlyError, UnknownName, change, decode_step, deny, encode_step
from fairlead.lifecycle import AfterTool, BeforePrompt, BeforeTool, TurnEnd
from fairlead.testing import assert_denied, assert_proceeds

EVENTS = ("before_tool", "after_tool", "before_prompt", "turn_end")
OBSERVED = EVENTS[1:]
LOOK = ("Looking.", [("look", {"at": "a"})])
SESSION = Hooks().session("s-1", agent=Agent("abc-123", "test-agent"))


def received(kind, **fields):
    """A step of the agent `test-agent`, as another process receives it."""
    return decode_step(encode_step(SESSION.step(kind, **fields)))


STEPS = {
    "before_tool": received(BeforeTool, tool="file_read", args={"path": "a.txt"}),
    "after_tool": received(AfterTool, tool="file_read", args={"path": "a.txt"}, output="ok"),
    "before_prompt": received(BeforePrompt, system_prompt="Be brief.", user_message="hello"),
    "turn_end": received(TurnEnd, iterations=2, response_length=5),
}
BEFORE = STEPS["before_tool"]
each_observed = pytest.mark.parametrize("event", OBSERVED)
each_event = pytest.mark.parametrize("event", EVENTS)


@pytest.fixture
def hooks():
    return Hooks()


class RecordHandler:
    """Keeps the events it was called with, like the seed's own."""

    def __init__(self):
        self.calls = []

    def __call__(self, step):
        self.calls.append(step.event)


def blocks(reason, ran=None):
    def block(step):
        if ran is not None:
            ran.append(reason)
        return deny(reason)

    return block


def broken(step):
    raise RuntimeError("oops")


# --- four events ----------------------------------------------------------------------------------


@behaviour("002-1", lines="243-245", kind="same", about="hooks are callbacks of the program; fairlead loads nothing")
def test_a_hook_is_a_function_of_the_program(hooks):
    fired = []
    hook = hooks.add(fired.append, on="turn_end", phase="observe", name="callback")
    hooks.dispatch_sync(STEPS["turn_end"])
    assert (hook.fn, hook.source, fired) == (fired.append, "code", [STEPS["turn_end"]])


@behaviour("002-2", lines="247", kind="same", about="BeforeToolCall fires before the tool runs, and can block it")
@behaviour("002-3", lines="247", kind="same", about="a blocked call is an error result, and the loop goes on")
async def test_a_blocked_tool_is_an_error_result_and_the_loop_goes_on(scene):
    played = scene(LOOK)
    played.add(deny("production is frozen"), on="before_tool", phase="gate")
    await played.play()
    assert played.sent[1][-1] == "error: Hook blocked tool 'look': production is frozen"
    assert (played.ran, played.output) == ([], "Done.")


@behaviour("002-4", lines="248", kind="same", about="AfterToolCall fires after the tool has run, with its result")
async def test_after_tool_call_fires_after_the_tool_has_run(scene):
    played, seen = scene(LOOK), []
    played.add(
        lambda step: seen.append((step.tool, step.args, step.output, [*played.ran])), on="after_tool", phase="observe"
    )
    await played.play()
    assert seen == [("look", {"at": "a"}, "look: a (1)", ["look a"])]


@behaviour("002-5", lines="249", kind="same", about="BeforePromptBuild fires before the system prompt is used")
async def test_before_prompt_build_fires_before_the_model_is_asked(scene):
    played, seen = scene(), []
    played.add(
        lambda step: seen.append((step.system_prompt, step.user_message, [*played.sent])),
        on="before_prompt", phase="observe",
    )  # fmt: skip
    await played.play("Hello.")
    assert seen == [("Be brief.", "Hello.", [])]


@behaviour("002-6", lines="250", kind="same", about="AgentLoopEnd fires once, after the agent's loop")
async def test_agent_loop_end_fires_once_at_the_end(scene):
    played, seen = scene(LOOK), []
    played.add(lambda step: seen.append((step.iterations, step.response_length)), on="turn_end", phase="observe")
    await played.play()
    assert seen == [(2, len("Done."))]


@behaviour("002-7", lines="248", kind="same", about="AfterToolCall only observes: nothing it says changes the result")
@behaviour("002-8", lines="249", kind="same", about="BeforePromptBuild only observes")
@behaviour("002-9", lines="250", kind="same", about="AgentLoopEnd only observes")
@each_observed
async def test_an_observer_changes_nothing_in_the_loop(scene, event):
    played = scene(LOOK)
    played.add(lambda step: deny("not mine to say"), on=event, phase="observe")
    await played.play()
    plain = await scene(LOOK).play()
    assert (played.sent, played.ran, played.output) == (plain.sent, plain.ran, plain.output)


@behaviour(
    "002-10", lines="252", kind="otherwise", about="BeforeToolCall is before_tool; the seed's names are suggested"
)
@pytest.mark.parametrize(
    ("name", "event"),
    list(zip(("BeforeToolCall", "AfterToolCall", "BeforePromptBuild", "AgentLoopEnd"), EVENTS, strict=True)),
)
def test_the_seed_s_name_of_an_event_is_suggested(hooks, name, event):
    with pytest.raises(UnknownName, match=f"did you mean '{event}'"):
        hooks.has_hooks(name)


# --- the context ----------------------------------------------------------------------------------


@behaviour("002-11", lines="256-257", kind="same", about="the context has the agent's display name")
@behaviour("002-12", lines="258-259", kind="same", about="the context has the agent's id")
@behaviour("002-13", lines="260-261", kind="same", about="the context says which event fired")
@each_event
def test_a_handler_knows_the_agent_and_the_event(hooks, event):
    seen = []
    hooks.add(lambda s: seen.append((s.agent.name, s.agent.id, s.event)), on=event, phase="observe", name="watch")
    hooks.dispatch_sync(STEPS[event])
    assert seen == [("test-agent", "abc-123", event)]


@behaviour("002-14", lines="262-263", kind="otherwise", about="data is the step's typed fields")
def test_data_is_the_step_s_fields(hooks):
    seen = []
    hooks.add(lambda s: seen.append((s.tool, s.args, s.output)), on="after_tool", phase="observe", name="watch")
    hooks.dispatch_sync(STEPS["after_tool"])
    assert seen == [("file_read", {"path": "a.txt"}, "ok")]


@behaviour("002-15", lines="263", kind="otherwise", about="data of any other kind travels as metadata, an object")
def test_data_of_the_host_travels_as_metadata(hooks):
    seen = []
    hooks.add(lambda s: seen.append(s.metadata), on="turn_end", phase="observe", name="watch")
    hooks.dispatch_sync(received(TurnEnd, metadata={"cost": [1.5, None, {"unit": "EUR"}]}))
    assert seen == [{"cost": [1.5, None, {"unit": "EUR"}]}]


@behaviour("002-16", lines="255, 271", kind="same", about="handlers share the context and cannot change it")
@each_event
def test_a_handler_cannot_change_the_context(hooks, event):
    caught = []

    @hooks.on(event, phase="observe")
    def edits(step):
        try:
            step.agent = None
        except ReadOnlyError as error:
            caught.append(error)

    decision = hooks.dispatch_sync(STEPS[event])
    assert (len(caught), decision.step) == (1, STEPS[event])


# --- a handler ------------------------------------------------------------------------------------


@behaviour("002-17", lines="266", kind="same", about="handlers are called from several threads at once")
def test_one_handler_serves_several_threads(hooks):
    together, fired = threading.Barrier(4), []

    def meets(step):
        together.wait(timeout=10)  # passes only if all four threads are in the handler at once
        fired.append(step.event)

    hooks.add(meets, on="turn_end", phase="observe")
    threads = [threading.Thread(target=hooks.dispatch_sync, args=(STEPS["turn_end"],)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert fired == ["turn_end"] * 4


@behaviour("002-18", lines="267-268", kind="same", about="on_event is called when the hook fires, not before")
@each_event
def test_a_handler_is_called_when_its_event_fires(hooks, event):
    recorder = RecordHandler()
    hooks.add(recorder, on=event, phase="observe")
    assert recorder.calls == []
    hooks.dispatch_sync(STEPS[event])
    assert recorder.calls == [event]


@behaviour("002-19", lines="269", kind="otherwise", about="Err(reason) for BeforeToolCall is deny(reason)")
@pytest.mark.parametrize("err", [deny("no"), {"control": "deny", "reason": "no"}], ids=["deny", "json"])
def test_err_blocks_the_tool_call(hooks, err):
    hooks.add(lambda step: err, on="before_tool", phase="gate", name="gate")
    assert_denied(hooks, BEFORE, reason="no", hook="gate")


@behaviour("002-20", lines="270", kind="same", about="for other events, what a handler returns has no effect")
@each_observed
def test_what_an_observer_returns_has_no_effect(hooks, event):
    hooks.add(lambda step: deny("not mine to say"), on=event, phase="observe", name="watch")
    decision = hooks.dispatch_sync(STEPS[event])
    assert (decision.control, decision.denied, decision.changed) == ("proceed", False, ())


@behaviour("002-21", lines="270", kind="different", about="a verdict of an observer is a recorded, malformed verdict")
@each_observed
def test_what_an_observer_returns_is_recorded(hooks, event):
    hooks.add(lambda step: deny("not mine to say"), on=event, phase="observe", name="watch")
    (failure,) = hooks.dispatch_sync(STEPS[event]).failures
    assert (failure.kind, failure.control) == ("malformed", None)


@behaviour("002-22", lines="271", kind="otherwise", about="Ok(()) is None")
@each_event
def test_ok_has_no_opinion(hooks, event):
    hooks.add(lambda step: None, on=event, name="ok")
    decision = hooks.dispatch_sync(STEPS[event])
    assert (decision.control, decision.contributions) == ("proceed", ())


@behaviour("002-23", lines="271", kind="same", about="a handler runs in the thread that fires, without an event loop")
def test_a_handler_runs_in_the_thread_that_fires(hooks):
    ran_in = []
    hooks.add(lambda step: ran_in.append(threading.get_ident()), on="before_tool", phase="gate", name="where")
    hooks.dispatch_sync(BEFORE)
    assert ran_in == [threading.get_ident()]


@behaviour(
    "002-24", lines="271", kind="different", about="an error before a tool call blocks, as a failure by its policy"
)
def test_an_error_in_a_gate_blocks_and_is_told_from_a_policy(hooks):
    hooks.add(broken, on="before_tool", phase="gate")
    assert_denied(hooks, BEFORE, reason="oops", cause="failure")


# --- the registry ---------------------------------------------------------------------------------


@behaviour("002-25", lines="273, 277", kind="same", about="handlers are kept by event: others do not fire")
@each_event
def test_only_the_handlers_of_the_event_fire(hooks, event):
    fired = []
    for name in EVENTS:
        hooks.add(lambda step, name=name: fired.append(name), on=name, phase="observe", name=name)
    hooks.dispatch_sync(STEPS[event])
    assert fired == [event]


@behaviour("002-26", lines="275", kind="same", about="handlers fire in registration order")
@each_event
def test_handlers_fire_in_registration_order(hooks, event):
    fired = []
    for name in ("second", "first", "third"):
        hooks.add(lambda step, name=name: fired.append(name), on=event, phase="observe", name=name)
    hooks.dispatch_sync(STEPS[event])
    assert fired == ["second", "first", "third"]


def register_while_dispatching(hooks, handler, threads=4, each=25):
    """Register `handler(name)` for many names from several threads. Gives the names and the dispatches meanwhile."""
    together = threading.Barrier(threads + 1)

    def register(thread):
        together.wait()
        for number in range(each):
            name = f"{thread}-{number}"
            hooks.add(handler(name), on="turn_end", phase="observe", name=name)

    workers = [threading.Thread(target=register, args=(thread,)) for thread in range(threads)]
    for worker in workers:
        worker.start()
    together.wait()
    dispatched = 0
    while dispatched == 0 or any(worker.is_alive() for worker in workers):
        hooks.dispatch_sync(STEPS["turn_end"])
        dispatched += 1
    for worker in workers:
        worker.join()
    return {f"{thread}-{number}" for thread in range(threads) for number in range(each)}, dispatched


@behaviour("002-27", lines="275", kind="same", about="the registry is thread-safe: no handler is lost")
def test_registering_from_several_threads_while_dispatching_loses_no_handler(hooks):
    fired = []
    names, _ = register_while_dispatching(hooks, lambda name: lambda step: fired.append(name))
    fired.clear()
    hooks.dispatch_sync(STEPS["turn_end"])
    assert sorted(fired) == sorted(names)


@behaviour("002-28", lines="275", kind="same", about="the registry is thread-safe: no dispatch is lost")
def test_registering_from_several_threads_while_dispatching_loses_no_dispatch(hooks):
    fired = []
    hooks.add(fired.append, on="turn_end", phase="observe", name="there from the start")
    _, dispatched = register_while_dispatching(hooks, lambda name: lambda step: None)
    assert len(fired) == dispatched


@behaviour("002-29", lines="280-285, 321-325", kind="same", about="a new registry, and the default one, are empty")
def test_new_hooks_are_empty(hooks):
    assert (len(hooks), list(hooks), [event for event in EVENTS if hooks.has_hooks(event)]) == (0, [], [])


@behaviour("002-30", lines="286-288", kind="same", about="register adds a handler for one event, after the others")
def test_register_adds_a_handler_after_the_others(hooks):
    hooks.add(lambda step: None, on="turn_end", phase="observe", name="one")
    hooks.add(lambda step: None, on="turn_end", phase="observe", name="two")
    assert [(hook.name, hook.described_events) for hook in hooks] == [("one", "turn_end"), ("two", "turn_end")]


@behaviour("002-31", lines="287-288", kind="otherwise", about="one handler twice needs two names")
def test_one_handler_may_be_registered_twice_under_two_names(hooks):
    recorder = RecordHandler()
    hooks.add(recorder, on="turn_end", phase="observe", name="one")
    hooks.add(recorder, on="turn_end", phase="observe", name="two")
    hooks.dispatch_sync(STEPS["turn_end"])
    assert recorder.calls == ["turn_end"] * 2


@behaviour("002-32", lines="286-287", kind="same", about="registering takes effect with the next event that fires")
def test_a_handler_that_is_registered_later_fires_from_then_on(hooks):
    recorder = RecordHandler()
    hooks.dispatch_sync(STEPS["turn_end"])
    hooks.add(recorder, on="turn_end", phase="observe")
    hooks.dispatch_sync(STEPS["turn_end"])
    assert recorder.calls == ["turn_end"]


# --- fire -----------------------------------------------------------------------------------------


@behaviour("002-33", lines="290", kind="same", about="fire says that any handler blocks, whichever it is")
@pytest.mark.parametrize("position", range(3))
def test_any_handler_can_block(hooks, position):
    for number in range(3):
        hook = blocks("no") if number == position else lambda step: None
        hooks.add(hook, on="before_tool", phase="gate", name=f"handler-{number}")
    assert_denied(hooks, BEFORE, reason="no", hook=f"handler-{position}")


@behaviour("002-34", lines="292", kind="otherwise", about="the first Err stops the others: register transforms")
def test_the_first_block_of_a_transform_leaves_the_second_idle(hooks):
    ran = []
    hooks.add(blocks("first", ran), on="before_tool", name="one")
    hooks.add(blocks("second", ran), on="before_tool", name="two")
    decision = hooks.dispatch_sync(BEFORE)
    assert (ran, decision.reason, decision.denied) == (["first"], "first", True)


@behaviour("002-35", lines="292", kind="different", about="gates all judge, each to its end, also after a block")
def test_every_gate_judges_and_the_first_block_gives_the_reason(hooks):
    ran = []
    hooks.add(blocks("first", ran), on="before_tool", phase="gate", name="one")
    hooks.add(blocks("second", ran), on="before_tool", phase="gate", name="two")
    decision = hooks.dispatch_sync(BEFORE)
    assert (ran, decision.reason, decision.hook) == (["first", "second"], "first", "one")


@behaviour("002-36", lines="292", kind="same", about="after a transform blocks, no gate runs")
def test_a_block_of_a_transform_leaves_the_gates_idle(hooks):
    ran = []
    hooks.add(blocks("gate", ran), on="before_tool", phase="gate", name="gate")
    hooks.add(blocks("transform", ran), on="before_tool", name="transform")
    assert (hooks.dispatch_sync(BEFORE).reason, ran) == ("transform", ["transform"])


@behaviour("002-37", lines="292", kind="same", about="in the loop, a second handler stays idle after the first Err")
async def test_in_the_loop_the_second_handler_stays_idle(scene):
    played, ran = scene(LOOK), []
    for name in ("one", "two"):
        played.add(blocks(name, ran), on="before_tool", name=name)
    await played.play()
    assert (ran, played.ran) == (["one"], [])
    assert played.sent[1][-1] == "error: Hook blocked tool 'look': one"


@behaviour("002-38", lines="292, 299", kind="same", about="fire returns the reason of the block, word for word")
def test_the_reason_is_returned_word_for_word(hooks):
    hooks.add(blocks("Not allowed: «rm -rf /»"), on="before_tool", phase="gate", name="block")
    assert hooks.dispatch_sync(BEFORE).reason == "Not allowed: «rm -rf /»"


@behaviour(
    "002-66",
    lines="299",
    kind="different",
    about="a reason over 4 KiB is cut, with a warning, unless text_limit= is higher; control characters go",
)
@pytest.mark.parametrize(("options", "whole"), [({}, False), ({"text_limit": 10_000}, True)])
def test_a_long_reason_is_cut_with_a_warning(hooks, options, whole):
    hooks.add(blocks("\x1b" + "x" * 5000), on="before_tool", name="block", **options)
    decision = hooks.dispatch_sync(BEFORE)
    assert (decision.reason == "x" * 5000) is whole
    assert any("was cut" in warning for warning in decision.warnings) is not whole


@behaviour("002-39", lines="293", kind="same", about="errors at other events do not propagate")
@each_observed
def test_an_error_in_an_observer_changes_nothing(hooks, event):
    hooks.add(broken, on=event, phase="observe")
    decision = hooks.dispatch_sync(STEPS[event])
    assert (decision.control, decision.denied, decision.step) == ("proceed", False, STEPS[event])


@behaviour("002-40", lines="295, 311", kind="same", about="without handlers, fire is Ok")
@each_event
def test_an_event_without_handlers_proceeds(hooks, event):
    hooks.add(broken, on="session_end", name="of another event")
    decision = hooks.dispatch_sync(STEPS[event])
    assert (decision.control, decision.step) == ("proceed", STEPS[event])


@behaviour("002-41", lines="296", kind="same", about="every handler of an event fires")
@behaviour("002-42", lines="300-308", kind="same", about="after an observer's error, the next one still runs")
@each_observed
def test_the_observer_after_one_that_failed_still_runs(hooks, event):
    recorder = RecordHandler()
    hooks.add(recorder, on=event, phase="observe", name="before")
    hooks.add(broken, on=event, phase="observe")
    hooks.add(recorder, on=event, phase="observe", name="after")
    hooks.dispatch_sync(STEPS[event])
    assert recorder.calls == [event] * 2


@behaviour("002-43", lines="302", kind="same", about="an observer's error is logged as a warning")
@behaviour("002-44", lines="303", kind="same", about="the log names the event")
@behaviour("002-45", lines="304", kind="same", about="the log names the agent")
@behaviour("002-46", lines="305", kind="same", about="the log has the error")
@behaviour("002-47", lines="306", kind="otherwise", about="the log says that the agent goes on, and names the hook")
@each_observed
def test_an_error_in_an_observer_is_logged(hooks, event, caplog):
    hooks.add(broken, on=event, phase="observe")
    for _ in range(2):  # every time, not only the first
        hooks.dispatch_sync(STEPS[event])
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
    for record in caplog.records:
        for part in ("'broken'", event, "test-agent", "RuntimeError: oops", "the agent goes on"):
            assert part in record.getMessage()


@behaviour("002-48", lines="302-307", kind="otherwise", about="the error is in decision.failures and warnings, too")
@each_observed
def test_an_error_in_an_observer_is_in_the_decision(hooks, event):
    hooks.add(broken, on=event, phase="observe")
    decision = hooks.dispatch_sync(STEPS[event])
    (failure,) = decision.failures
    assert (failure.hook, failure.event, failure.error) == ("broken", event, "RuntimeError: oops")
    assert decision.warnings == (str(failure),)


@behaviour("002-49", lines="311", kind="same", about="fire is Ok when no handler blocks")
def test_a_call_that_no_handler_blocks_goes_through(hooks):
    for number in range(3):
        hooks.add(lambda step: None, on="before_tool", phase="gate", name=f"handler-{number}")
    assert_proceeds(hooks, BEFORE)


@behaviour(
    "002-50", lines="294, 311", kind="same", about="a handler of BeforeToolCall blocks or not: it changes nothing"
)
def test_a_gate_cannot_change_the_call(hooks):
    hooks.add(lambda step: change(args={}), on="before_tool", phase="gate", name="gate", on_failure="open")
    decision = hooks.dispatch_sync(BEFORE)
    assert (decision.step.args, decision.failures[0].kind) == ({"path": "a.txt"}, "malformed")


# --- has_handlers ---------------------------------------------------------------------------------


@behaviour("002-51", lines="313-317", kind="same", about="has_handlers is true once a handler is registered")
@behaviour("002-52", lines="318", kind="same", about="has_handlers is false for an event that never had one")
@each_event
def test_has_handlers_once_one_is_registered(hooks, event):
    assert not hooks.has_hooks(event)
    hooks.add(lambda step: None, on=event, name="ok")
    assert [name for name in EVENTS if hooks.has_hooks(name)] == [event]


@behaviour("002-53", lines="317", kind="same", about="has_handlers is false again when the last handler is gone")
def test_has_handlers_is_false_again_when_all_are_gone(hooks):
    hooks.add(lambda step: None, on="before_tool", name="ok")
    hooks.unregister("ok")
    assert not hooks.has_hooks("before_tool")


# --- its own tests --------------------------------------------------------------------------------


@behaviour("002-54", lines="373-378", kind="same", about="test_empty_registry_is_noop")
def test_empty_registry_is_noop(hooks):
    assert hooks.dispatch_sync(BEFORE).proceeds


@behaviour("002-55", lines="379-392", kind="same", about="test_before_tool_call_can_block")
def test_before_tool_call_can_block(hooks):
    hooks.add(blocks("Not allowed"), on="before_tool", phase="gate", name="block")
    decision = hooks.dispatch_sync(BEFORE)
    assert (decision.denied, decision.reason) == (True, "Not allowed")


@behaviour("002-56", lines="393-406", kind="same", about="test_after_tool_call_receives_result")
def test_after_tool_call_receives_result(hooks):
    seen, recorder = [], RecordHandler()
    hooks.add(lambda step: seen.append((step.tool, step.output)), on="after_tool", phase="observe", name="sees")
    hooks.add(recorder, on="after_tool", phase="observe")
    assert hooks.dispatch_sync(STEPS["after_tool"]).proceeds
    assert (seen, len(recorder.calls)) == ([("file_read", "ok")], 1)


@behaviour("002-57", lines="407-418", kind="same", about="test_multiple_handlers_all_fire")
def test_multiple_handlers_all_fire(hooks):
    recorders = [RecordHandler(), RecordHandler()]
    for number, recorder in enumerate(recorders):
        hooks.add(recorder, on="turn_end", phase="observe", name=f"recorder-{number}")
    assert hooks.dispatch_sync(STEPS["turn_end"]).proceeds
    assert [len(recorder.calls) for recorder in recorders] == [1, 1]


@behaviour("002-58", lines="419-432", kind="same", about="test_hook_errors_dont_crash_non_blocking")
def test_hook_errors_dont_crash_non_blocking(hooks):
    hooks.add(broken, on="after_tool", phase="observe")
    assert hooks.dispatch_sync(STEPS["after_tool"]).proceeds


@behaviour("002-59", lines="433-451", kind="same", about="test_all_four_events_fire, with one handler for all of them")
def test_all_four_events_fire(hooks):
    recorder = RecordHandler()
    hooks.add(recorder, on=EVENTS, phase="observe")
    for event in EVENTS:
        hooks.dispatch_sync(STEPS[event])
    assert recorder.calls == list(EVENTS)


@behaviour("002-60", lines="452-459", kind="same", about="test_has_handlers")
def test_has_handlers(hooks):
    assert not hooks.has_hooks("before_tool")
    hooks.add(lambda step: None, on="before_tool", phase="gate", name="ok")
    assert hooks.has_hooks("before_tool")
    assert not hooks.has_hooks("after_tool")


@behaviour("002-61", lines="433-451", kind="same", about="all four events fire in the agent's loop, in this order")
async def test_all_four_events_fire_in_the_loop(scene):
    played, recorder = scene(LOOK), RecordHandler()
    played.add(recorder, on=EVENTS, phase="observe", name="record")
    await played.play()
    assert recorder.calls == ["before_prompt", "before_tool", "after_tool", "turn_end"]


# --- and the rest ---------------------------------------------------------------------------------


@behaviour(
    "002-62", lines="297-299", kind="same", about="only BeforeToolCall's Err is returned; others are passed over"
)
@each_event
def test_the_same_handler_blocks_at_before_tool_call_alone(hooks, event):
    for name in EVENTS:
        hooks.add(blocks("no"), on=name, phase="gate" if name == "before_tool" else "observe", name=name)
    decision = hooks.dispatch_sync(STEPS[event])
    assert decision.denied is (event == "before_tool")


@behaviour("002-63", lines="246, 260", kind="different", about="fairlead has 26 events; those four are among them")
def test_the_four_events_are_among_fairlead_s():
    assert set(EVENTS) < set(fairlead.EVENTS)


@behaviour(
    "002-64", lines="262-263", kind="same", about="the context travels as JSON, and is the same at the other end"
)
@each_event
def test_a_context_survives_the_wire(event):
    assert decode_step(encode_step(STEPS[event])) == STEPS[event]


@behaviour("002-65", lines="276-277", kind="same", about="two registries share nothing")
def test_two_registries_share_nothing(hooks):
    other = Hooks()
    hooks.add(blocks("no"), on="before_tool")
    assert (other.has_hooks("before_tool"), other.dispatch_sync(BEFORE).proceeds) == (False, True)
