"""Seed 004, ironclaw: modify or reject, fail open or closed.

How its words map to ours:

- `Continue{modified: None}` is None, `Continue{modified}` is `change(...)`, `Reject{reason}` is `deny(reason)`.
- A failure mode is `on_failure="open"` or `"closed"`; error and time-out are both failures.
- `beforeInbound` is before_input (`input`), `beforeToolCall` is before_tool (`args`), `beforeOutbound` is
  before_output (`content`), `transformResponse` is before_response (`response`), `onSessionStart` and `onSessionEnd`
  are session_start and session_end. `hook_points` is `on=`, which takes several events.
- A tool call's modification is a JSON object there and here. What is no object is ignored there; here it is a
  malformed verdict, and `on_failure="open"` leaves the arguments alone, with a warning.
- Registering the same name again replaces: `replace=True`. Its default priority of 100 is `priority=100`.

Its events are read from its own JSON (`wire.ironclaw`), and go over our wire before hooks see them.
"""

import asyncio
import copy
import json
import threading

import pytest
from behaviours import behaviour

from fairlead import (
    FairleadError,
    HookAborted,
    Hooks,
    ReadOnlyError,
    RegistrationError,
    UnknownName,
    change,
    decode_step,
    deny,
    encode_step,
)
from fairlead.hosts.frameworks.flow import run_flow
from fairlead.hosts.frameworks.turn import Sessions
from fairlead.hosts.loop.agent import LOOP
from fairlead.wire.ironclaw import read_event, read_point

INBOUND = {"Inbound": {"user_id": "u-1", "channel": "cli", "content": "hello", "thread_id": "t-1"}}
TOOL_CALL = {"ToolCall": {"tool_name": "ls", "parameters": {"path": "/home"}, "user_id": "u-1", "context": "chat"}}
OUTBOUND = {"Outbound": {"user_id": "u-1", "channel": "cli", "content": "bye", "thread_id": None}}
SESSION_START = {"SessionStart": {"user_id": "u-1", "session_id": "s-1"}}
SESSION_END = {"SessionEnd": {"user_id": "u-1", "session_id": "s-1"}}
RESPONSE = {"ResponseTransform": {"user_id": "u-1", "thread_id": "t-1", "response": "done"}}
EVENTS = [INBOUND, TOOL_CALL, OUTBOUND, SESSION_START, SESSION_END, RESPONSE]
each_event = pytest.mark.parametrize("event", EVENTS, ids=lambda event: next(iter(event)))
each_session_event = pytest.mark.parametrize("event", [SESSION_START, SESSION_END], ids=["start", "end"])

LOOK = ("Looking.", [("look", {"at": "a"})])


def received(event):
    """The step of one of ironclaw's events, as another process receives it."""
    return decode_step(encode_step(read_event(json.dumps(event))))


HELLO, LIST_HOME = received(INBOUND), received(TOOL_CALL)


@pytest.fixture
def hooks():
    return Hooks()


def appending(text):
    async def hook(step):
        return change(input=step.input + text)

    return hook


async def raises(step):
    raise RuntimeError("boom")


async def never_answers(step):
    await asyncio.Event().wait()


# --- the points -----------------------------------------------------------------------------------


@behaviour("004-1", lines="16-17", kind="same", about="beforeInbound fires before an inbound message is processed")
async def test_before_inbound_comes_before_the_message_is_processed(scene):
    played = scene()
    played.add(lambda step: change(input=f"{step.input} Please."), on="before_input")
    await played.play("Go.")
    assert played.events.index("before_input") < played.events.index("after_input")
    assert played.sent[0][-1] == "user: Go. Please."


@behaviour("004-2", lines="18-19", kind="same", about="beforeToolCall fires before a tool call is executed")
async def test_before_tool_call_comes_before_the_tool_runs(scene):
    played, ran = scene(LOOK), []
    played.add(lambda step: ran.append([*played.ran]), on="before_tool")
    await played.play()
    assert (ran, played.ran) == ([[]], ["look a"])


@behaviour("004-3", lines="20-21", kind="same", about="beforeOutbound fires before a response is sent")
async def test_before_outbound_comes_before_the_response_is_sent(scene):
    played = scene("All done.")
    played.add(lambda step: change(content=f"{step.content} Bye."), on="before_output")
    await played.play()
    assert played.output == "All done. Bye."


@behaviour("004-4", lines="22-23", kind="same", about="onSessionStart fires when a new session starts")
async def test_on_session_start_fires_when_a_session_starts(scene):
    played = await scene().play("One.", "Two.")
    assert (played.events[0], played.events.count("session_start")) == ("session_start", 1)


@behaviour("004-5", lines="24-25", kind="same", about="onSessionEnd fires when a session ends")
async def test_on_session_end_fires_when_a_session_ends(scene):
    played = await scene().play("One.", "Two.")
    assert (played.events[-1], played.events.count("session_end")) == ("session_end", 1)


@behaviour("004-6", lines="26-27", kind="same", about="transformResponse fires before the turn is completed")
async def test_transform_response_comes_before_the_turn_is_completed(scene):
    played = await scene().play()
    order = ["before_response", "turn_end", "before_output"]
    assert [event for event in played.events if event in order] == order


@behaviour("004-7", lines="13-14", kind="same", about="a HookPoint in its own JSON is read: camelCase text")
@behaviour("004-8", lines="34", kind="otherwise", about="beforeInbound is before_input; the old name is suggested")
@behaviour("004-9", lines="35", kind="otherwise", about="beforeToolCall is before_tool; the old name is suggested")
@behaviour("004-10", lines="36", kind="otherwise", about="beforeOutbound is before_output; the old name is suggested")
@behaviour("004-11", lines="37", kind="otherwise", about="onSessionStart is session_start; the old name is suggested")
@behaviour("004-12", lines="38", kind="otherwise", about="onSessionEnd is session_end; the old name is suggested")
@behaviour("004-13", lines="39", kind="otherwise", about="transformResponse is before_response; it is suggested")
@pytest.mark.parametrize(
    ("point", "event"),
    [
        ("beforeInbound", "before_input"),
        ("beforeToolCall", "before_tool"),
        ("beforeOutbound", "before_output"),
        ("onSessionStart", "session_start"),
        ("onSessionEnd", "session_end"),
        ("transformResponse", "before_response"),
    ],
)
def test_a_point_is_read_by_its_own_name(hooks, point, event):
    assert read_point(json.dumps(point)) == read_point(point) == event
    with pytest.raises(UnknownName, match=f"did you mean '{event}'"):
        hooks.add(raises, on=point)


@behaviour("004-14", lines="13", kind="same", about="points compare, hash and copy: an event's name is a text")
def test_a_point_is_a_value(hooks):
    hooks.add(raises, on="before_input", name="one")
    (hook,) = hooks
    assert {read_point("beforeInbound"): "found"}["before_input"] == "found"
    assert hook.events == frozenset({read_point("beforeInbound")})


@pytest.mark.parametrize("point", ['"beforeLunch"', "beforeLunch", "7", b'"\xff"'])
def test_what_is_no_point_is_an_error(point):
    with pytest.raises(UnknownName):
        read_point(point)


# --- the events -----------------------------------------------------------------------------------


@behaviour("004-15", lines="45", kind="same", about="a HookEvent in its own JSON is read as a step")
@behaviour("004-16", lines="48-53", kind="same", about="Inbound has user_id, channel, content and thread_id")
def test_an_inbound_event_has_its_fields():
    step = received(INBOUND)
    assert (step.event, step.user_id, step.channel, step.input) == ("before_input", "u-1", "cli", "hello")
    assert step.thread_id == "t-1"


@behaviour("004-17", lines="55-61", kind="same", about="ToolCall has tool_name, parameters, user_id and context")
def test_a_tool_call_event_has_its_fields():
    step = received(TOOL_CALL)
    assert (step.event, step.tool, step.args) == ("before_tool", "ls", {"path": "/home"})
    assert (step.user_id, step.origin) == ("u-1", "chat")


@behaviour("004-18", lines="63-68", kind="same", about="Outbound has user_id, channel, content and thread_id")
def test_an_outbound_event_has_its_fields():
    step = received(OUTBOUND)
    assert (step.event, step.user_id, step.channel, step.content) == ("before_output", "u-1", "cli", "bye")


@behaviour("004-19", lines="70", kind="same", about="SessionStart has user_id and session_id")
@behaviour("004-20", lines="72", kind="same", about="SessionEnd has user_id and session_id")
@pytest.mark.parametrize(("event", "name"), [(SESSION_START, "session_start"), (SESSION_END, "session_end")])
def test_a_session_event_has_its_fields(event, name):
    step = received(event)
    assert (step.event, step.user_id, step.session_id) == (name, "u-1", "s-1")


@behaviour("004-21", lines="74-78", kind="same", about="ResponseTransform has user_id, thread_id and response")
def test_a_response_event_has_its_fields():
    step = received(RESPONSE)
    assert (step.event, step.user_id, step.thread_id, step.response) == ("before_response", "u-1", "t-1", "done")


@behaviour("004-22", lines="52, 67", kind="same", about="thread_id may be null or left out")
@pytest.mark.parametrize("thread", [{}, {"thread_id": None}])
def test_a_thread_is_optional(thread):
    for variant in ("Inbound", "Outbound"):
        step = received({variant: {"user_id": "u-1", "channel": "cli", "content": "hello", **thread}})
        assert step.thread_id is None


@behaviour("004-23", lines="59-60", kind="same", about='context is "chat", or the id of a job')
@pytest.mark.parametrize("context", ["chat", "job-7"])
def test_a_tool_call_says_whether_a_chat_or_a_job_made_it(context):
    assert received({"ToolCall": TOOL_CALL["ToolCall"] | {"context": context}}).origin == context


@behaviour("004-24", lines="57", kind="different", about="parameters are an object or null, not any JSON value")
def test_parameters_are_an_object():
    assert received({"ToolCall": TOOL_CALL["ToolCall"] | {"parameters": None}}).args == {}
    with pytest.raises(FairleadError, match="parameters"):
        received({"ToolCall": TOOL_CALL["ToolCall"] | {"parameters": ["ls"]}})


@behaviour("004-25", lines="45", kind="same", about="JSON that is no HookEvent is an error that says what is wrong")
@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ('{"Inbond": {}}', "did you mean 'Inbound'"),
        ('{"Inbound": {"user_id": "u-1", "channel": "cli"}}', "content"),
        ('{"SessionStart": {"user_id": "u-1", "session_id": 7}}', "session_id"),
        ('{"Inbound": {}, "Outbound": {}}', "it is an object with one variant"),
        ("{}", "it is an object with one variant"),
        ("[]", "it is an object with one variant"),
        ("nonsense", "not an event"),
        (b"\xff", "not an event"),
    ],
)
def test_what_is_no_event_is_an_error(data, problem):
    with pytest.raises(FairleadError, match=problem):
        read_event(data)


@behaviour("004-26", lines="83-85", kind="same", about="Inbound is at beforeInbound")
@behaviour("004-27", lines="86", kind="same", about="ToolCall is at beforeToolCall")
@behaviour("004-28", lines="87", kind="same", about="Outbound is at beforeOutbound")
@behaviour("004-29", lines="88", kind="same", about="SessionStart is at onSessionStart")
@behaviour("004-30", lines="89", kind="same", about="SessionEnd is at onSessionEnd")
@behaviour("004-31", lines="90", kind="same", about="ResponseTransform is at transformResponse")
@pytest.mark.parametrize(
    ("event", "point"),
    [
        (INBOUND, "beforeInbound"),
        (TOOL_CALL, "beforeToolCall"),
        (OUTBOUND, "beforeOutbound"),
        (SESSION_START, "onSessionStart"),
        (SESSION_END, "onSessionEnd"),
        (RESPONSE, "transformResponse"),
    ],
)
async def test_an_event_reaches_the_hooks_of_its_point_only(hooks, event, point):
    seen = []
    for name in ("before_input", "before_tool", "before_output", "session_start", "session_end", "before_response"):
        hooks.add(lambda step, name=name: seen.append(name), on=name, name=name)
    await hooks.dispatch(received(event))
    assert seen == [read_point(point)] == [received(event).event]


# --- modifications --------------------------------------------------------------------------------


@behaviour("004-32", lines="97-99", kind="same", about="a modification of Inbound replaces its content")
@behaviour("004-33", lines="97-99", kind="same", about="a modification of Outbound replaces its content")
@behaviour("004-34", lines="109-111", kind="same", about="a modification of ResponseTransform replaces its response")
@pytest.mark.parametrize(("event", "field"), [(INBOUND, "input"), (OUTBOUND, "content"), (RESPONSE, "response")])
async def test_content_is_modified(hooks, event, field):
    step = received(event)
    hooks.add(lambda step: change(**{field: "new"}), on=step.event, name="modify")
    decision = await hooks.dispatch(step)
    assert (getattr(decision.step, field), decision.changed) == ("new", (field,))


@behaviour("004-35", lines="97-98", kind="same", about="only the content is replaced: user, channel and thread stay")
async def test_a_modification_leaves_the_other_fields_alone(hooks):
    hooks.add(appending("!"), on="before_input")
    step = (await hooks.dispatch(HELLO)).step
    assert (step.user_id, step.channel, step.thread_id) == ("u-1", "cli", "t-1")


@behaviour("004-36", lines="100-101", kind="same", about="a modification of ToolCall is JSON that replaces parameters")
async def test_tool_parameters_are_replaced_by_valid_json(hooks):
    hooks.add(lambda step: change(args=json.loads('{"dir": "/tmp"}')), on="before_tool", name="modify")
    assert (await hooks.dispatch(LIST_HOME)).step.args == {"dir": "/tmp"}


@behaviour("004-37", lines="102-107", kind="same", about="under fail-open, parameters that are no JSON are ignored")
async def test_tool_parameters_are_left_alone_by_invalid_json(hooks):
    hooks.add(lambda step: change(args="not json"), on="before_tool", name="modify", on_failure="open")
    decision = await hooks.dispatch(LIST_HOME)
    assert (decision.control, decision.step.args) == ("proceed", {"path": "/home"})


@behaviour("004-38", lines="103-106", kind="same", about="a modification that is no JSON is warned of, and logged")
async def test_invalid_tool_parameters_are_warned_of(hooks, caplog):
    hooks.add(lambda step: change(args="not json"), on="before_tool", name="sloppy", on_failure="open")
    (warning,) = (await hooks.dispatch(LIST_HOME)).warnings
    (record,) = caplog.records
    for text in (warning, record.getMessage()):
        assert [part for part in ("sloppy", "before_tool", "args") if part not in text] == []


@behaviour("004-39", lines="102-107", kind="different", about="a closed hook whose parameters are no object denies")
async def test_invalid_tool_parameters_of_a_closed_hook_deny(hooks):
    hooks.add(lambda step: change(args="not json"), on="before_tool", name="sloppy", on_failure="closed")
    decision = await hooks.dispatch(LIST_HOME)
    assert (decision.control, decision.cause, decision.step.args) == ("deny", "failure", {"path": "/home"})


@behaviour("004-40", lines="112-114", kind="same", about="modifying a session event is harmless, with a warning")
@each_session_event
async def test_a_modification_of_a_session_event_is_harmless(hooks, event):
    step = received(event)
    hooks.add(lambda step: change(content="new"), on=step.event, name="modify", on_failure="open")
    decision = await hooks.dispatch(step)
    assert (decision.control, decision.step) == ("proceed", step)
    assert "nothing may be changed" in decision.warnings[0]


@behaviour("004-41", lines="112-114", kind="different", about="a closed hook that modifies a session's start aborts it")
async def test_a_closed_hook_that_modifies_the_start_of_a_session_aborts_it(hooks):
    hooks.add(lambda step: change(content="new"), on="session_start", name="modify", on_failure="closed")
    assert (await hooks.dispatch(received(SESSION_START))).control == "abort"
    hooks.add(lambda step: change(content="new"), on="session_end", name="late", on_failure="closed")
    assert (await hooks.dispatch(received(SESSION_END))).control == "proceed"


# --- outcomes -------------------------------------------------------------------------------------


@behaviour("004-42", lines="123-126", kind="same", about="Continue without a modification goes on: None")
@behaviour("004-43", lines="136-138", kind="otherwise", about="HookOutcome::ok() is None, or an empty object")
@pytest.mark.parametrize("nothing", [None, {}, {"control": "proceed"}, {"input": None}], ids=repr)
async def test_no_modification_changes_nothing(hooks, nothing):
    hooks.add(lambda step: nothing, on="before_input", name="quiet")
    decision = await hooks.dispatch(HELLO)
    assert (decision.control, decision.step, decision.changed) == ("proceed", HELLO, ())


@behaviour("004-44", lines="124-125", kind="same", about="Continue with a modification replaces the content")
@behaviour("004-45", lines="141-145", kind="otherwise", about="HookOutcome::modify(value) is change(input=value)")
@pytest.mark.parametrize("modified", [change(input="new"), {"input": "new"}], ids=["change", "json"])
async def test_a_modification_goes_on_with_the_new_content(hooks, modified):
    hooks.add(lambda step: modified, on="before_input", name="modify")
    decision = await hooks.dispatch(HELLO)
    assert (decision.control, decision.step.input) == ("proceed", "new")


@behaviour("004-46", lines="128-131", kind="same", about="Reject carries a reason for humans")
@behaviour("004-47", lines="148-152", kind="otherwise", about="HookOutcome::reject(reason) is deny(reason)")
@pytest.mark.parametrize("rejected", [deny("no spam"), {"control": "deny", "reason": "no spam"}], ids=["deny", "json"])
async def test_reject_gives_the_reason(hooks, rejected):
    hooks.add(lambda step: rejected, on="before_input", name="reject")
    decision = await hooks.dispatch(HELLO)
    assert (decision.control, decision.reason, decision.hook) == ("deny", "no spam", "reject")


@behaviour("004-48", lines="127-131", kind="same", about="every point takes Reject, under fail-open, too")
@each_event
async def test_every_point_takes_a_reject(hooks, event):
    step = received(event)
    hooks.add(lambda step: deny("no"), on=step.event, name="reject", on_failure="open")
    decision = await hooks.dispatch(step)
    assert (decision.denied, decision.proceeds, decision.reason) == (True, False, "no")
    assert (decision.cause, decision.failures) == ("policy", ())


@behaviour("004-49", lines="127", kind="same", about="a rejected inbound message never reaches the model")
async def test_a_rejected_message_is_answered_with_the_reason(scene):
    played = scene()
    played.add(deny("spam"), on="before_input")
    await played.play()
    assert (played.output, played.sent) == ("[Message rejected: spam]", [])


@behaviour("004-50", lines="127", kind="same", about="a rejected tool call does not run, and the model reads why")
async def test_a_rejected_tool_call_does_not_run(scene):
    played = scene(LOOK)
    played.add(deny("not here"), on="before_tool")
    await played.play()
    assert (played.ran, played.sent[1][-1]) == ([], "error: Hook blocked tool 'look': not here")


@behaviour("004-51", lines="127", kind="same", about="a rejected outbound message is not sent")
async def test_a_rejected_outbound_message_is_suppressed(scene):
    played = scene("The key is 1234.")
    played.add(deny("a key"), on="before_output")
    await played.play()
    assert (played.output, played.error) == (None, None)


@behaviour("004-52", lines="127", kind="same", about="a rejected response is replaced by the reason")
async def test_a_rejected_response_is_filtered_with_the_reason(scene):
    played = scene("Nonsense.")
    played.add(deny("wrong"), on="before_response")
    await played.play()
    assert played.output == "[Response filtered: wrong]"


@behaviour("004-53", lines="127", kind="same", about="a rejected session does not start, under fail-open, too")
async def test_a_rejected_session_does_not_start(scene):
    played = scene()
    played.add(deny("not today"), on="session_start", on_failure="open")
    await played.play()
    assert isinstance(played.error, HookAborted)
    assert str(played.error) == "[judge:hook_abort] not today"
    assert (played.sent, played.output) == ([], None)
    assert "before_input" not in played.events


@behaviour("004-54", lines="127", kind="same", about="a Reject at the end of a session is recorded, and it ends")
async def test_a_reject_at_the_end_of_a_session_is_recorded(scene):
    played = scene("Fine.")
    played.add(deny("too early"), on="session_end", on_failure="open")
    await played.play()
    (decision,) = played.seen.of("session_end")
    assert (decision.control, decision.reason, decision.hook) == ("deny", "too early", "judge")
    assert (played.output, played.error) == ("Fine.", None)


async def test_a_host_that_can_only_abort_a_session_carries_a_reject_out(hooks):
    hooks.add(lambda step: deny("no"), on=["session_start", "session_end"], name="reject")
    session = hooks.session(capabilities={"session_start": ["abort"], "session_end": []})
    start = await session.dispatch(received(SESSION_START))
    assert (start.effective, start.aborts) == ("abort", True)
    end = await session.dispatch(received(SESSION_END))
    assert (end.denied, end.effective, end.unsupported) == (True, "proceed", ("deny",))


# --- fail open, fail closed -----------------------------------------------------------------------

FAILING = pytest.mark.parametrize(("broken", "kind"), [(raises, "error"), (never_answers, "timeout")])


@behaviour("004-55", lines="158-159", kind="same", about="FailOpen: after an error it goes on as if the hook said ok")
@behaviour("004-56", lines="158-159", kind="same", about="FailOpen: after a time-out it goes on")
@FAILING
async def test_fail_open_goes_on_with_the_next_hook(hooks, broken, kind):
    hooks.add(broken, on="before_input", timeout=0.02, on_failure="open")
    hooks.add(appending(" world"), on="before_input", name="next")
    decision = await hooks.dispatch(HELLO)
    assert (decision.control, decision.step.input) == ("proceed", "hello world")


@behaviour("004-57", lines="160-161", kind="same", about="FailClosed: an error rejects the event")
@behaviour("004-58", lines="160-161", kind="same", about="FailClosed: a time-out rejects the event")
@FAILING
async def test_fail_closed_rejects(hooks, broken, kind):
    ran = []
    hooks.add(broken, on="before_input", timeout=0.02, on_failure="closed")
    hooks.add(ran.append, on="before_input", name="next")
    decision = await hooks.dispatch(HELLO)
    assert (decision.control, decision.cause, ran) == ("deny", "failure", [])


@behaviour("004-59", lines="161", kind="different", about="FailClosed at a session's end: it ends all the same")
async def test_fail_closed_cannot_keep_a_session_from_ending(hooks):
    hooks.add(raises, on=["session_start", "session_end"], on_failure="closed")
    assert (await hooks.dispatch(received(SESSION_START))).control == "abort"
    assert (await hooks.dispatch(received(SESSION_END))).control == "proceed"


@behaviour("004-60", lines="156-157", kind="otherwise", about='"fail_open" and "fail_closed" are "open" and "closed"')
@pytest.mark.parametrize(("mode", "control"), [("open", "proceed"), ("closed", "deny"), ("abort", "abort")])
async def test_a_failure_mode_is_a_word(hooks, mode, control):
    hook = hooks.add(raises, on="before_input", on_failure=mode)
    assert (hook.on_failure, (await hooks.dispatch(HELLO)).control) == (mode, control)
    with pytest.raises(UnknownName, match="on_failure"):
        hooks.add(raises, on="before_input", name="other", on_failure=f"fail_{mode}")


@behaviour("004-61", lines="166-169", kind="otherwise", about="ExecutionFailed: the failure has the error and its hook")
async def test_an_error_says_which_hook_failed_and_why(hooks):
    hooks.add(raises, on="before_input")
    decision = await hooks.dispatch(HELLO)
    (failure,) = decision.failures
    assert (failure.hook, failure.kind, failure.error) == ("raises", "error", "RuntimeError: boom")
    assert decision.reason == "hook 'raises' failed at before_input (error): RuntimeError: boom"


@behaviour("004-62", lines="171-172", kind="otherwise", about="Timeout: the failure names the hook and the limit")
async def test_a_timeout_says_which_hook_was_late_and_the_limit(hooks):
    hooks.add(never_answers, on="before_input", timeout=0.02)
    (failure,) = (await hooks.dispatch(HELLO)).failures
    assert (failure.hook, failure.kind, failure.error) == ("never_answers", "timeout", "no answer within 0.02 s")


@behaviour("004-63", lines="174-175", kind="otherwise", about="Rejected: decision.reason; a policy, not a failure")
async def test_a_rejection_and_a_failure_are_told_apart(hooks):
    hooks.add(lambda step: deny("no spam"), on="before_input", name="reject")
    decision = await hooks.dispatch(HELLO)
    assert str(decision) == "before_input: deny by reject: no spam"
    assert (decision.cause, decision.failures) == ("policy", ())


# --- the context ----------------------------------------------------------------------------------


@behaviour("004-64", lines="178-181", kind="same", about="metadata of the caller travels with the event to every hook")
async def test_metadata_travels_with_the_step(hooks):
    seen = []
    session = hooks.session()
    for name in ("one", "two"):
        hooks.add(lambda step: seen.append(step.metadata), on="before_input", name=name)
    step = session.step(type(HELLO), input="hello", metadata={"trace": ["t-1", {"deep": None}]})
    await session.dispatch(decode_step(encode_step(step)))
    assert seen == [{"trace": ["t-1", {"deep": None}]}] * 2


@behaviour("004-65", lines="184-190", kind="same", about="metadata is null unless the caller gives some")
def test_there_is_no_metadata_by_default():
    assert [received(event).metadata for event in EVENTS] == [None] * 6


@behaviour("004-66", lines="181", kind="different", about="metadata is an object, not any JSON value")
def test_metadata_is_an_object():
    with pytest.raises(FairleadError, match="Expected `object"):
        decode_step('{"event": "before_input", "input": "hello", "metadata": "t-1"}')


# --- a hook ---------------------------------------------------------------------------------------


class Greeter:
    """A hook object, with its options as attributes."""

    name = "greeter"
    timeout = 2.5
    priority = 100
    on_failure = "open"

    async def before_input(self, step):
        return change(input=f"{step.input}, world")

    async def session_end(self, step):
        return None


@behaviour("004-67", lines="196-198", kind="same", about="a hook is an object with a name of its own")
@behaviour("004-68", lines="201", kind="otherwise", about="hook_points() are an object's methods, or on=, for several")
@behaviour("004-69", lines="206, 213", kind="same", about="an object says its own failure mode and time-out")
async def test_a_hook_object_says_its_own_options(hooks):
    added = hooks.add(Greeter())
    assert [hook.name for hook in added] == ["greeter.before_input", "greeter.session_end"]
    assert {(hook.timeout, hook.priority, hook.on_failure) for hook in added} == {(2.5, 100, "open")}
    assert (await hooks.dispatch(HELLO)).step.input == "hello, world"


@behaviour("004-70", lines="197-198", kind="same", about="a hook's name is unique")
@behaviour("004-71", lines="197-198", kind="otherwise", about="the same name again replaces with replace=True only")
async def test_a_name_is_unique_and_can_be_replaced(hooks):
    hooks.add(appending(" from the old one"), on="before_input", name="greeter")
    with pytest.raises(FairleadError, match="replace=True"):
        hooks.add(appending(" from the new one"), on="before_input", name="greeter")
    hooks.add(appending(" from the new one"), on="before_input", name="greeter", replace=True)
    assert [hook.name for hook in hooks] == ["greeter"]
    assert (await hooks.dispatch(HELLO)).step.input == "hello from the new one"


@behaviour("004-72", lines="200-201", kind="same", about="a hook runs at its own points only, and at all of them")
async def test_a_hook_runs_at_its_own_points_only(hooks):
    points = []
    hooks.add(lambda step: points.append(step.event), on=["before_input", "before_output"], name="watch")
    for event in EVENTS:
        await hooks.dispatch(received(event))
    assert points == ["before_input", "before_output"]


@behaviour("004-73", lines="203-208", kind="different", about="closed by default; Hooks(on_failure='open') is FailOpen")
@pytest.mark.parametrize(("defaults", "control"), [({}, "deny"), ({"on_failure": "open"}, "proceed")])
async def test_the_default_failure_mode_is_that_of_the_hooks(defaults, control):
    hooks = Hooks(**defaults)
    hooks.add(raises, on="before_input")
    assert (await hooks.dispatch(HELLO)).control == control


@behaviour("004-74", lines="210-215", kind="same", about="a hook has 5 s by default")
def test_a_hook_has_five_seconds(hooks):
    assert hooks.add(never_answers, on="before_input").timeout == 5


@behaviour("004-75", lines="210-211", kind="same", about="a hook that runs longer than it may is stopped")
async def test_a_hook_that_takes_too_long_is_stopped(hooks):
    stopped = asyncio.Event()

    @hooks.on.before_input(timeout=0.02, on_failure="open")
    async def slow(step):
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    await hooks.dispatch(HELLO)
    assert stopped.is_set()


@behaviour("004-76", lines="218", kind="same", about="a hook gets the event read-only, and changes it by its outcome")
@each_event
async def test_an_event_cannot_be_edited_in_place(hooks, event):
    step = received(event)

    @hooks.on(step.event, on_failure="open")
    async def edits(step):
        step.user_id = "u-2"

    decision = await hooks.dispatch(step)
    assert (decision.failures[0].kind, decision.step.user_id) == ("error", "u-1")
    with pytest.raises(ReadOnlyError):
        LIST_HOME.args["path"] = "/"


@behaviour("004-77", lines="195, 218", kind="same", about="execute is async: a hook may await, and is waited for")
async def test_a_hook_may_await(hooks):
    @hooks.on.before_input
    async def waits(step):
        await asyncio.sleep(0)
        return change(input="waited")

    assert (await hooks.dispatch(HELLO)).step.input == "waited"


@behaviour("004-78", lines="196", kind="same", about="hooks are shared between threads")
def test_hooks_are_shared_between_threads(hooks):
    hooks.add(appending("!"), on="before_input")
    results = []
    threads = [threading.Thread(target=lambda: results.append(hooks.dispatch_sync(HELLO).step.input)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["hello!"] * 4


@behaviour("004-79", lines="219", kind="same", about="a hook ends with an outcome or an error, never both")
async def test_a_hook_that_fails_changes_nothing(hooks):
    @hooks.on.before_input(on_failure="open")
    async def half(step):
        change(input="never returned")
        raise RuntimeError("boom")

    decision = await hooks.dispatch(HELLO)
    assert (decision.step, decision.verdicts, len(decision.failures)) == (HELLO, (), 1)


# --- its registry, which is not part of the file --------------------------------------------------


def test_registered_hooks_are_listed(hooks):
    hooks.add(raises, on="before_input", name="one")
    hooks.add(raises, on="before_tool", name="two")
    assert [hook.name for hook in hooks] == ["one", "two"]


async def test_unregistered_hook_neither_runs_nor_is_listed(hooks):
    hooks.add(appending("!"), on="before_input", name="one")
    hooks.add(lambda step: None, on="before_input", name="two")
    hooks.unregister("one")
    assert [hook.name for hook in hooks] == ["two"]
    assert (await hooks.dispatch(HELLO)).step.input == "hello"


def test_unregistering_what_is_not_there_says_so(hooks):
    with pytest.raises(UnknownName, match="nobody"):
        hooks.unregister("nobody")


async def test_dispatch_in_flight_keeps_the_hooks_it_started_with(hooks):
    @hooks.on.before_input
    async def first(step):
        hooks.unregister("second")

    hooks.add(appending(" and second"), on="before_input", name="second")
    assert (await hooks.dispatch(HELLO)).step.input == "hello and second"


async def test_hooks_form_a_chain_by_priority():
    hooks = Hooks(priority=100)
    hooks.add(appending(" third"), on="before_input", name="c", priority=200)
    hooks.add(appending(" first"), on="before_input", name="a", priority=60)
    hooks.add(appending(" second"), on="before_input", name="b")
    assert (await hooks.dispatch(HELLO)).step.input == "hello first second third"


async def test_each_hook_sees_the_modification_before_it(hooks):
    seen = []
    hooks.add(appending(" world"), on="before_input", name="modify")
    hooks.add(lambda step: seen.append(step.input), on="before_input", name="read")
    await hooks.dispatch(HELLO)
    assert seen == ["hello world"]


async def test_reject_stops_the_chain(hooks):
    ran = []
    hooks.add(lambda step: deny("no spam"), on="before_input", name="reject")
    hooks.add(ran.append, on="before_input", name="after")
    await hooks.dispatch(HELLO)
    assert ran == []


async def test_modification_to_the_same_content_is_none(hooks):
    hooks.add(lambda step: change(input="".join(step.input)), on="before_input", name="same")
    assert (await hooks.dispatch(HELLO)).changed == ()


async def test_modifications_of_the_response_chain(scene):
    played = scene("one")
    for name in ("two", "three"):
        played.add(lambda step, name=name: change(response=f"{step.response} {name}"), on="before_response", name=name)
    await played.play()
    assert played.output == "one two three"


# --- and the rest ---------------------------------------------------------------------------------


@behaviour("004-80", lines="24, 71", kind="same", about="a session that is pruned ends, too, with its reason")
async def test_a_session_that_is_pruned_ends(hooks, monkeypatch):
    monkeypatch.setattr("fairlead.hosts.frameworks.turn.SESSIONS", 1)
    sessions, ended = Sessions(hooks, LOOP), []
    hooks.add(lambda step: ended.append((step.session_id, step.reason)), on="session_end", name="watch")
    for name in ("s-1", "s-2"):
        await run_flow(sessions.turn(name).begin("Hello."))
    assert ended == [("s-1", "forgotten")]


@behaviour("004-81", lines="45", kind="same", about="an event can be cloned")
@each_event
def test_an_event_can_be_cloned(event):
    step = received(event)
    assert copy.deepcopy(step) == copy.copy(step) == step


@behaviour(
    "004-82", lines="120-121", kind="same", about="an outcome is a value: it compares, and is shown with its parts"
)
async def test_an_outcome_is_a_value(hooks):
    rejected = deny("no spam")
    assert rejected == deny("no spam") != deny("other")
    assert "no spam" in repr(rejected)
    for name in ("one", "two"):
        hooks.add(lambda step: rejected, on="before_input", name=name, phase="gate")
    assert [one.verdict for one in (await hooks.dispatch(HELLO)).verdicts] == [rejected, rejected]


@behaviour("004-83", lines="95-99", kind="same", about="a modification is taken as it is: empty, long or of many lines")
@pytest.mark.parametrize("text", ["", "line\nline", "\u202e" + "x" * 10_000], ids=["empty", "lines", "long"])
async def test_a_modification_is_taken_as_it_is(hooks, text):
    hooks.add(lambda step: change(input=text), on="before_input", name="modify")
    assert (await hooks.dispatch(HELLO)).step.input == text


@behaviour(
    "004-86",
    lines="128-131",
    kind="different",
    about="a reason over 4 KiB is cut, with a warning, unless text_limit= is higher; control characters go",
)
@pytest.mark.parametrize(("options", "whole"), [({}, False), ({"text_limit": 10_000}, True)])
async def test_a_long_reason_is_cut_with_a_warning(hooks, options, whole):
    hooks.add(lambda step: deny("\x1b" + "x" * 5000), on="before_input", name="reject", **options)
    decision = await hooks.dispatch(HELLO)
    assert (decision.reason == "x" * 5000) is whole
    assert any("was cut" in warning for warning in decision.warnings) is not whole


@behaviour(
    "004-87", lines="213", kind="different", about="a time-out is above zero, or None for none; the seed's may be zero"
)
def test_a_timeout_is_above_zero(hooks):
    with pytest.raises(RegistrationError, match="above 0, or None, not 0"):
        hooks.add(never_answers, on="before_input", timeout=0)


@behaviour(
    "004-84", lines="100-101", kind="otherwise", about="parameters are given as an object, not as the text of one"
)
async def test_parameters_as_text_are_malformed(hooks):
    hooks.add(lambda step: change(args='{"dir": "/tmp"}'), on="before_tool", name="modify", on_failure="open")
    decision = await hooks.dispatch(LIST_HOME)
    assert (decision.step.args, decision.failures[0].kind) == ({"path": "/home"}, "malformed")


@behaviour("004-85", lines="123-126", kind="different", about="at a point with nothing to modify, no field is taken")
@each_session_event
@pytest.mark.parametrize("field", ["input", "content", "args", "session_id"])
async def test_a_session_event_takes_no_field(hooks, event, field):
    step = received(event)
    hooks.add(lambda step: {field: "new"}, on=step.event, name="modify", on_failure="open")
    (failure,) = (await hooks.dispatch(step)).failures
    assert (failure.kind, field in failure.error) == ("malformed", True)
