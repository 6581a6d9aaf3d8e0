"""Seed 003, defect: steps, envelopes, verdicts.

How its words map to ours:

- An envelope is the step as JSON, as `encode_step` writes it. `apply_verdict` is what a dispatch does with the
  verdict of a hook, which `read_verdict` reads from JSON.
- The controls `proceed` and `skip` keep their names; `break` is stop, `continue` is extend, and `veto` is what the
  event says it is. `run_step_pipeline` is a chain of transforms. Its `on_error` is `on_failure`: "open" leaves a
  bad verdict out, and a verdict of one's own is any control.
- after_session_enter is session_start, after_turn_enter is turn_start, ingest is input, generate is model, tool_apply
  is tool. `decision` of before_permission is `proposed`. The other names are the same.

Steps go over the wire before hooks see them, and verdicts come as JSON. What the loop does is tried with
`fairlead.hosts.loop`. What the seed does with commands, prompts and configuration is tested where fairlead has them.
"""

import asyncio
import json
import sys

import pytest
from behaviours import behaviour
from hypothesis import given
from hypothesis import strategies as st

from fairlead import (
    EVENTS,
    FairleadError,
    Hook,
    Hooks,
    MalformedVerdict,
    UnknownName,
    Verdict,
    change,
    decode_step,
    deny,
    encode_step,
    encode_verdict,
    extend,
    inject,
    read_verdict,
    skip,
    stop,
)
from fairlead.lifecycle import (
    AfterCompact,
    AfterInput,
    AfterModel,
    AfterPermission,
    AfterTool,
    AfterToolBatch,
    BeforeCompact,
    BeforeInput,
    BeforeModel,
    BeforePermission,
    BeforeTool,
    BeforeTurnEnd,
    SessionStart,
    TurnStart,
)
from fairlead.runners.worker import Worker

SESSION = Hooks().session("s-1", cwd="/repo", agent="coder")
REASONS = ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
LOOK = ("Looking.", [("look", {"at": "a"})])


def received(kind, **fields):
    """A step of session s-1, as another process receives it."""
    return decode_step(encode_step(SESSION.step(kind, **fields)))


def envelope(step):
    """The fields of a step's envelope, without the header that every envelope has."""
    data = json.loads(encode_step(step))
    return {name: data[name] for name in EVENTS[step.event].fields if name in data}


def handler(verdict):
    """A hook whose verdict comes as JSON, as that of a command or a service does."""

    async def hook(step):
        return read_verdict(json.dumps(verdict), step.event)

    return hook


async def decide(step, *verdicts, **options):
    """The decision on a step about which hooks give these verdicts, one after another."""
    hooks = Hooks()
    for number, verdict in enumerate(verdicts, 1):
        hooks.add(handler(verdict), on=step.event, name=f"hook-{number}", **options)
    return await hooks.dispatch(step)


def malformed(event, verdict):
    """The field that a malformed verdict names."""
    with pytest.raises(MalformedVerdict) as raised:
        read_verdict(json.dumps(verdict), event)
    return raised.value.field


BASH = received(BeforeTool, tool="bash", args={"command": "ls"})
TURN_END = received(BeforeTurnEnd)
STEPS = {
    "after_session_enter": received(SessionStart, source="resume"),
    "after_turn_enter": received(TurnStart, is_subagent=True, agent_type="scout"),
    "before_ingest": received(BeforeInput, source="background", input="hello"),
    "after_ingest": received(AfterInput, committed_len=3),
    "before_compact": received(BeforeCompact, token_estimate=9000, threshold=8000),
    "after_compact": received(AfterCompact, tokens_before=9000, tokens_after=800),
    "before_generate": received(BeforeModel, model="large", message_count=4, attempt=2),
    "after_generate": received(AfterModel, model="large", usage={"input_tokens": 7}, stop_reason="end_turn"),
    "before_permission": received(BeforePermission, tool="bash", proposed="ask"),
    "after_permission": received(AfterPermission, tool="bash", granted=True),
    "before_tool_apply": BASH,
    "after_tool_apply": received(AfterTool, tool="bash", output="done"),
    "after_tool_batch": received(AfterToolBatch, results=[]),
    "before_turn_end": TURN_END,
}
each_event = pytest.mark.parametrize("name", STEPS)
WITH_CONTEXT = [
    "after_session_enter", "after_turn_enter", "after_ingest", "after_compact", "after_tool_apply", "after_tool_batch",
    "before_turn_end",
]  # fmt: skip
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture
def hooks():
    return Hooks()


async def whole_run(scene):
    """A run of the loop in which all fourteen events fire, and its recorder."""
    one = scene(LOOK, LOOK, policy="open", token_budget=1)
    await one.play()
    return one


# --- events ---------------------------------------------------------------------------------------


@behaviour("003-1", lines="5-20", kind="same", about="fourteen events, each of which the loop fires")
async def test_the_loop_fires_all_fourteen_events(scene):
    one = await whole_run(scene)
    assert {step.event for step in STEPS.values()} <= set(one.events)


@behaviour("003-2", lines="6-19", kind="otherwise", about="events have names of their own; the seed's are suggested")
@each_event
def test_the_seed_s_name_of_an_event_is_understood_or_suggested(hooks, name):
    ours = STEPS[name].event
    if name == ours:
        assert name in EVENTS
        return
    with pytest.raises(UnknownName, match=f"did you mean '{ours}'"):
        hooks.add(handler({}), on=name)


@behaviour("003-3", lines="22-24", kind="same", about="is_known_event(name) is `name in EVENTS`; others are refused")
def test_an_unknown_event_is_refused(hooks):
    assert ("before_turn_end" in EVENTS, "before_everything" in EVENTS) == (True, False)
    with pytest.raises(UnknownName):
        hooks.add(handler({}), on="before_everything")


@behaviour(
    "003-4",
    lines="14-17",
    kind="different",
    about="before_tool comes before the permission, which then sees the final arguments",
)
async def test_the_loop_asks_for_permission_after_before_tool(scene):
    one = scene(LOOK)
    one.add(change(args={"at": "b"}), on="before_tool")
    await one.play()
    order = ["tool_requested", "before_tool", "before_permission", "after_permission", "after_tool", "after_tool_batch"]
    assert [event for event in one.events if event in order] == order
    assert (one.steps("before_permission")[0].args, one.ran) == ({"at": "b"}, ["look b"])


@behaviour(
    "003-5", lines="7-9", kind="same", about="a turn begins with its input; ingest comes before the turn here, too"
)
async def test_the_loop_takes_the_input_and_then_begins_the_turn(scene):
    one = await scene().play()
    order = ["session_start", "before_input", "after_input", "turn_start"]
    assert [event for event in one.events if event in order] == order


@behaviour(
    "003-6",
    lines="10-13, 18-19",
    kind="same",
    about="compaction, model, tools, batch and the end come in the seed's order",
)
async def test_the_loop_goes_on_in_the_seed_s_order(scene):
    one = await whole_run(scene)
    order = ["before_compact", "after_compact", "before_model", "after_model", "after_tool_batch", "before_turn_end"]
    request = order[:-1]
    assert [event for event in one.events if event in order] == [*request, *request, *request[:-1], "before_turn_end"]


# --- controls -------------------------------------------------------------------------------------


@behaviour("003-7", lines="28-29", kind="same", about="Proceed is the default control")
def test_proceed_is_the_default():
    assert Verdict().control == "proceed"


@behaviour("003-8", lines="30", kind="otherwise", about="Break{reason} is stop, with a stop_reason")
@pytest.mark.parametrize("reason", REASONS)
async def test_break_is_a_stop_with_its_reason(reason):
    decision = await decide(TURN_END, {"control": "break", "stop_reason": reason})
    assert (decision.control, decision.stop_reason) == ("stop", reason)


@behaviour("003-9", lines="31", kind="otherwise", about="Continue is extend")
async def test_continue_is_extend():
    assert (await decide(TURN_END, {"control": "continue"})).control == "extend"


@behaviour("003-10", lines="32", kind="same", about="Skip leaves the operation out")
async def test_skip_leaves_the_operation_out(scene):
    assert (await decide(STEPS["before_compact"], {"control": "skip"})).control == "skip"
    one = scene(LOOK, token_budget=1)
    one.add(handler({"control": "skip"}), on="before_compact")
    await one.play()
    assert ("compact" in one.ran, "after_compact" in one.events) == (False, False)


@behaviour(
    "003-11", lines="25", kind="same", about="HookControl is open for more: deny, ask, allow, retry, abort, skip_rest"
)
@pytest.mark.parametrize(
    ("name", "control"),
    [
        ("before_tool_apply", "deny"), ("before_tool_apply", "ask"), ("before_tool_apply", "allow"),
        ("after_tool_apply", "retry"), ("before_tool_apply", "abort"), ("before_tool_apply", "skip_rest"),
    ],
)  # fmt: skip
async def test_there_are_more_controls(name, control):
    decision = await decide(STEPS[name], {"control": control})
    assert ([one.verdict.control for one in decision.verdicts], decision.failures) == ([control], ())


@behaviour("003-12", lines="37-38, 73", kind="same", about="an unknown control is an error that shows the word")
@pytest.mark.parametrize("word", ["explode", "", "Break"])
def test_an_unknown_control_is_an_error_with_the_word(word):
    with pytest.raises(MalformedVerdict, match=f"control: unknown control '{word}'"):
        read_verdict(json.dumps({"control": word}), "before_turn_end")


@behaviour("003-13", lines="39-40", kind="same", about="a malformed field is an error with its name and a reason")
def test_a_malformed_field_is_an_error_with_its_name_and_a_reason():
    with pytest.raises(MalformedVerdict, match="additional_context: must be a list of strings") as raised:
        read_verdict(b'{"additional_context": 7}', "after_tool")
    assert raised.value.field == "additional_context"


@behaviour("003-14", lines="43", kind="same", about="a step says its event's name")
@each_event
def test_a_step_says_its_event(name):
    assert EVENTS[STEPS[name].event].step is type(STEPS[name])


@behaviour("003-15", lines="44", kind="same", about="a step renders an envelope, from which the same step is read")
@each_event
def test_an_envelope_is_one_json_object(name):
    data = json.loads(encode_step(STEPS[name]))
    assert (data["event"], decode_step(json.dumps(data))) == (STEPS[name].event, STEPS[name])


@behaviour("003-16", lines="42-46", kind="same", about="the loop's own steps are envelopes, too, ids included")
async def test_every_step_of_the_loop_survives_the_wire(scene):
    one = await whole_run(scene)
    for step in one.seen.steps:
        assert decode_step(encode_step(step)) == step
        assert step.session_id == one.agent.session.session_id


@behaviour("003-17", lines="45", kind="same", about="a verdict gives the step its changes, and a control")
async def test_a_verdict_gives_changes_and_a_control():
    decision = await decide(BASH, {"control": "break", "args": {"command": "true"}})
    assert (decision.control, decision.step.args) == ("stop", {"command": "true"})


@behaviour("003-18", lines="56-58", kind="same", about="a verdict without a control proceeds")
@behaviour("003-19", lines="60", kind="same", about="a control of null proceeds")
@behaviour("003-20", lines="62", kind="same", about='"proceed" proceeds')
@pytest.mark.parametrize("verdict", [{}, {"control": None}, {"control": "proceed"}])
@each_event
async def test_no_control_proceeds(name, verdict):
    assert (await decide(STEPS[name], verdict)).control == "proceed"


@behaviour(
    "003-21",
    lines="63, 27-33",
    kind="different",
    about="continue is taken at before_turn_end and subagent_stop, and malformed elsewhere",
)
@each_event
async def test_continue_is_taken_where_something_ends(name):
    decision = await decide(STEPS[name], {"control": "continue"}, on_failure="open")
    taken = name == "before_turn_end"
    assert (decision.control, len(decision.failures)) == (("extend", 0) if taken else ("proceed", 1))


@behaviour(
    "003-22",
    lines="64, 27-33",
    kind="different",
    about="skip is taken where an operation can be left out, and malformed elsewhere",
)
@each_event
async def test_skip_is_taken_where_something_can_be_left_out(name):
    decision = await decide(STEPS[name], {"control": "skip"}, on_failure="open")
    taken = name == "before_compact"
    assert (decision.control, len(decision.failures)) == (("skip", 0) if taken else ("proceed", 1))


@behaviour("003-23", lines="66, 262", kind="same", about="break is taken at all fourteen events")
@each_event
async def test_break_is_taken_at_every_event(name):
    decision = await decide(STEPS[name], {"control": "break"})
    assert (decision.control, decision.failures) == ("stop", ())


@behaviour("003-24", lines="67-70", kind="same", about="a break without a stop_reason is an end of the turn")
@pytest.mark.parametrize("verdict", [{"control": "break"}, {"control": "break", "stop_reason": None}])
async def test_break_without_a_stop_reason_ends_the_turn(verdict):
    assert (await decide(TURN_END, verdict)).stop_reason == "end_turn"


@behaviour(
    "003-25", lines="69", kind="different", about="a stop_reason that is no text is malformed; the seed reads end_turn"
)
@pytest.mark.parametrize("reason", [7, True, ["refusal"], {}])
def test_a_stop_reason_is_a_text(reason):
    assert malformed("before_tool", {"control": "break", "stop_reason": reason}) == "stop_reason"


@behaviour(
    "003-26", lines="143", kind="different", about="an unknown stop_reason is malformed; the seed reads end_turn"
)
async def test_an_unknown_stop_reason_is_malformed():
    assert malformed("before_tool", {"control": "break", "stop_reason": "bored"}) == "stop_reason"


@behaviour(
    "003-27",
    lines="67-70",
    kind="different",
    about="a stop_reason beside another control is malformed; the seed ignores it",
)
@pytest.mark.parametrize("control", ["proceed", "continue", "veto", None])
def test_a_stop_reason_goes_with_a_break(control):
    assert malformed("before_turn_end", {"control": control, "stop_reason": "refusal"}) == "stop_reason"


@behaviour(
    "003-184",
    lines="65-69",
    kind="different",
    about="a veto that ends the turn takes a stop_reason, too; the seed's veto always says end_turn",
)
@pytest.mark.parametrize("event", [name for name, event in EVENTS.items() if event.veto == "stop"])
def test_a_veto_that_ends_the_turn_takes_a_stop_reason(event):
    verdict = read_verdict({"control": "veto", "stop_reason": "refusal"}, event)
    assert (verdict.control, verdict.stop_reason) == ("stop", "refusal")
    assert read_verdict({"control": "veto"}, event).stop_reason == "end_turn"


@behaviour("003-28", lines="75", kind="same", about="a control that is no text is an error")
@pytest.mark.parametrize("control", [7, True, ["break"], {}])
def test_a_control_is_a_text(control):
    assert malformed("before_turn_end", {"control": control}) == "control"


VETOES = {
    "after_session_enter": "abort", "after_turn_enter": "stop", "before_ingest": "deny", "after_ingest": "stop",
    "before_compact": "skip", "before_generate": "stop", "after_generate": "deny", "before_permission": "deny",
    "before_tool_apply": "deny", "after_tool_apply": "deny", "after_tool_batch": "stop", "before_turn_end": "extend",
}  # fmt: skip


@behaviour("003-29", lines="65", kind="same", about="veto is what the event says it is")
@behaviour(
    "003-30",
    lines="47-54",
    kind="different",
    about="a veto refuses one operation and lets the turn go on; the seed's ends the turn, which is break",
)
@pytest.mark.parametrize("name", VETOES)
async def test_a_veto_is_what_the_event_says(name):
    decision = await decide(STEPS[name], {"control": "veto"})
    assert (decision.control, decision.failures) == (VETOES[name], ())


@behaviour(
    "003-31",
    lines="390, 455",
    kind="different",
    about="after_compact and after_permission have nothing to veto; the seed ends the turn",
)
@pytest.mark.parametrize("name", [name for name in STEPS if name not in VETOES])
def test_after_the_fact_there_is_nothing_to_veto(name):
    with pytest.raises(MalformedVerdict, match="has nothing to veto"):
        read_verdict(b'{"control": "veto"}', STEPS[name].event)


@behaviour(
    "003-32", lines="56", kind="different", about="a verdict that is no object is malformed; the seed reads no opinion"
)
@pytest.mark.parametrize("verdict", ["break", 7, True, ["break"], []])
def test_a_verdict_is_an_object(verdict):
    assert malformed("before_tool", verdict) == "verdict"


@behaviour("003-33", lines="56", kind="same", about="a verdict of null is no opinion")
async def test_null_is_no_opinion():
    assert (await decide(BASH, None)).control == "proceed"


@behaviour("003-34", lines="194-212", kind="different", about="an unknown key is malformed; the seed ignores it")
@each_event
def test_an_unknown_key_is_malformed(name):
    assert malformed(STEPS[name].event, {"colour": "red"}) == "colour"


@behaviour(
    "003-35",
    lines="233-235, 371-373",
    kind="different",
    about="a field that the event does not change is malformed; the seed ignores it",
)
@pytest.mark.parametrize(
    ("event", "field"), [("after_model", "args"), ("before_compact", "input"), ("before_tool", "model")]
)
def test_a_field_of_another_event_is_malformed(event, field):
    assert malformed(event, {field: "x"}) == field


@behaviour(
    "003-185",
    lines="194-212, 412-420, 476-480",
    kind="different",
    about="keys of fairlead's own are read, such as reason, command, messages and output; the seed ignores them",
)
@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("before_tool_apply", "command", "pwd"), ("before_generate", "messages", [{"role": "user"}]),
        ("after_tool_apply", "output", "other"), ("before_tool_apply", "reason", "why"),
        ("before_tool_apply", "warnings", ["mind this"]), ("before_tool_apply", "metadata", {"a": 1}),
    ],
)  # fmt: skip
async def test_keys_of_fairlead_s_own_are_read(name, key, value):
    event = STEPS[name].event
    assert json.loads(encode_verdict(read_verdict({key: value}, event), event)) == {key: value}
    assert malformed(event, {key: 7}) == key


@behaviour(
    "003-186",
    lines="195, 234, 338",
    kind="different",
    about="a context that is no list of texts is malformed at every event; the seed looks at it at seven of them",
)
@each_event
@pytest.mark.parametrize("context", ["one", [1], {}])
def test_a_context_is_checked_at_every_event(name, context):
    assert malformed(STEPS[name].event, {"additional_context": context}) == "additional_context"


@behaviour("003-36", lines="194-212", kind="different", about="null is absent, whatever the key")
async def test_null_is_absent():
    assert (await decide(BASH, {"colour": None, "result": None, "args": None})).step == BASH


@behaviour(
    "003-37",
    lines="260-262, 324-338",
    kind="different",
    about="a verdict is applied whole or not at all; the seed keeps what came before the error",
)
@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("after_session_enter", {"additional_context": ["kept"]}), ("before_ingest", {"input": "other"}),
        ("before_generate", {"model": "small"}), ("before_permission", {"resolved": True}),
    ],
)  # fmt: skip
async def test_a_verdict_is_applied_whole_or_not_at_all(name, good):
    decision = await decide(STEPS[name], {**good, "control": "explode"}, on_failure="open")
    assert (decision.step, decision.context, decision.control) == (STEPS[name], (), "proceed")


# --- context --------------------------------------------------------------------------------------


@behaviour("003-38", lines="79-81", kind="same", about="without additional_context there is none")
@behaviour("003-39", lines="83", kind="same", about="additional_context of null is none")
@pytest.mark.parametrize("verdict", [{}, {"additional_context": None}, {"additional_context": []}])
async def test_no_context_is_none(verdict):
    assert (await decide(TURN_END, verdict)).context == ()


@behaviour("003-40", lines="84-94", kind="same", about="additional_context is a list of texts, in order")
@pytest.mark.parametrize("name", WITH_CONTEXT)
async def test_context_is_a_list_of_texts(name):
    decision = await decide(STEPS[name], {"additional_context": ["one", "two"]})
    assert decision.context == ("one", "two")


@behaviour("003-41", lines="89-92", kind="same", about="an entry that is no text is an error")
@pytest.mark.parametrize("context", [[1], ["text", None], [["text"]], [{"text": "text"}]])
def test_each_entry_of_the_context_is_a_text(context):
    assert malformed("after_tool", {"additional_context": context}) == "additional_context"


@behaviour("003-42", lines="95-98", kind="same", about="a context that is no list is an error")
@pytest.mark.parametrize("context", ["text", 7, True, {"text": "text"}])
def test_the_context_is_a_list(context):
    assert malformed("after_tool", {"additional_context": context}) == "additional_context"


LONG = "word " * 2000


@behaviour(
    "003-43", lines="84-88", kind="different", about="a text of more than 4 KiB is cut, and the decision warns of it"
)
async def test_a_long_text_is_cut_with_a_warning():
    decision = await decide(TURN_END, {"additional_context": [LONG]})
    (text,), (warning,) = decision.context, decision.warnings
    assert (len(text.encode()) <= 4096, text.endswith("[cut]")) == (True, True)
    assert warning == "hook 'hook-1': a context of 10,000 bytes was cut to 4,096; text_limit= sets the limit"


@behaviour("003-44", lines="84-88", kind="otherwise", about="text_limit= of a hook lets its texts be longer")
async def test_a_hook_may_have_longer_texts(scene):
    decision = await decide(TURN_END, {"additional_context": [LONG]}, text_limit=20_000)
    assert (decision.context, decision.warnings) == ((LONG,), ())
    one = scene()
    one.add(handler({"additional_context": [LONG]}), on="turn_start", text_limit=20_000)
    await one.play()
    assert one.requests_with(LONG) == [0]


@behaviour("003-45", lines="87-88", kind="different", about="control and bidi characters are taken out of a text")
async def test_invisible_characters_are_taken_out():
    assert (await decide(TURN_END, {"additional_context": ["a\u202eb\x1b[0m"]})).context == ("ab[0m",)


@behaviour(
    "003-46",
    lines="195, 234, 338",
    kind="different",
    about="context may be added where the seed ignores it, such as before_tool",
)
@pytest.mark.parametrize(
    "name",
    [
        "before_ingest", "before_compact", "before_generate", "after_generate", "before_tool_apply",
        "before_permission", "after_permission",
    ],
)  # fmt: skip
async def test_context_may_be_added_at_more_events(name):
    assert (await decide(STEPS[name], {"additional_context": ["one"]})).context == ("one",)


@behaviour("003-47", lines="247, 269, 344, 463", kind="same", about="the model reads the context in its next request")
@pytest.mark.parametrize(
    ("event", "request_number"),
    [("session_start", 0), ("turn_start", 0), ("after_input", 0), ("after_tool", 1), ("after_tool_batch", 1)],
)
async def test_the_model_reads_the_context(scene, event, request_number):
    one = scene(LOOK)
    said = iter([{"additional_context": ["use rustfmt"]}])
    one.add(lambda step: next(said, None), on=event)
    await one.play()
    assert one.requests_with("use rustfmt")[0] == request_number


# --- texts for reasons, results, safety -----------------------------------------------------------


@behaviour("003-48", lines="101-107", kind="same", about="the five stop reasons have the same names")
@pytest.mark.parametrize("reason", REASONS)
def test_a_stop_reason_is_written_with_its_name(reason):
    assert envelope(received(BeforeTurnEnd, stop_reason=reason))["stop_reason"] == reason


@behaviour(
    "003-49",
    lines="108",
    kind="different",
    about="a provider's own stop reason is written as it is; the seed writes end_turn",
)
def test_another_stop_reason_is_written_as_it_is():
    assert envelope(received(AfterModel, stop_reason="tool_use"))["stop_reason"] == "tool_use"


@behaviour(
    "003-50",
    lines="137-142",
    kind="same",
    about="a break is read with any of the five reasons, and ends the turn with it",
)
@pytest.mark.parametrize("reason", REASONS)
async def test_a_break_ends_the_turn_of_the_loop_with_its_reason(scene, reason):
    one = scene()
    one.add(handler({"control": "break", "stop_reason": reason}), on="before_model")
    await one.play()
    assert (one.sent, one.result.stop_reason) == ([], reason)
    assert [step.stop_reason for step in one.steps("turn_end")] == [reason]


@behaviour("003-51", lines="113", kind="same", about="an output that is a text is that text")
def test_an_output_may_be_a_text():
    assert envelope(received(AfterTool, tool="t", output="hello"))["output"] == "hello"


@behaviour("003-52", lines="114", kind="same", about="an output that is JSON is its value: any JSON value, both ways")
@given(json_values)
def test_an_output_is_any_json_value_both_ways(value):
    step = SESSION.step(AfterTool, tool="t", output=value)
    assert decode_step(encode_step(step)).output == step.output == value
    data = json.dumps({"event": "after_tool", "tool": "t", "output": value})
    assert json.loads(encode_step(decode_step(data))).get("output") == value


BLOCKS = [{"type": "text", "text": "a chart:"}, {"type": "image", "mime": "image/png", "data": "iVBORw0KGgo="}]


@behaviour(
    "003-53",
    lines="115-126",
    kind="different",
    about="an envelope keeps content blocks, so that a judge sees what the model sees; the seed flattens them",
)
def test_an_envelope_keeps_content_blocks():
    assert envelope(received(AfterTool, tool="t", output=BLOCKS))["output"] == BLOCKS


@behaviour("003-54", lines="119-124", kind="same", about="where blocks become text, each is a line")
@behaviour("003-55", lines="121", kind="same", about="... and an image is [image: image/png]")
async def test_the_model_reads_blocks_as_lines(scene):
    one = scene(LOOK)
    one.add(handler({"result": BLOCKS}), on="before_tool")
    await one.play()
    assert one.sent[1][-1] == "result: a chart:\n[image: image/png]"


@behaviour("003-56", lines="129-136", kind="same", about="the four classes of safety have the same names")
@pytest.mark.parametrize("safety", ["read_only", "mutating", "destructive", "network"])
def test_a_class_of_safety_is_written_with_its_name(safety):
    assert envelope(received(BeforeTool, tool="t", safety=safety))["safety"] == safety


# --- before_turn_end ------------------------------------------------------------------------------


@behaviour("003-57", lines="148, 159", kind="same", about="before_turn_end: `stop_reason`")
@behaviour("003-58", lines="149, 160", kind="same", about="before_turn_end: `continues_so_far`")
@behaviour("003-59", lines="150, 161", kind="same", about="before_turn_end: `voluntary`")
def test_the_envelope_of_the_turn_s_end():
    step = received(BeforeTurnEnd, stop_reason="max_turn_requests", continues_so_far=2, voluntary=False)
    assert envelope(step) == {"stop_reason": "max_turn_requests", "continues_so_far": 2, "voluntary": False}


@behaviour("003-60", lines="151, 166-167", kind="same", about="the context of a continue is its feedback, in order")
async def test_continue_carries_feedback():
    verdict = {"control": "continue", "additional_context": ["tests fail", "fix them"]}
    assert (await decide(TURN_END, verdict)).context == ("tests fail", "fix them")


@behaviour("003-61", lines="151", kind="same", about="the model reads the feedback as the next message of the user")
@behaviour("003-62", lines="165", kind="same", about="a veto at the turn's end continues it")
@pytest.mark.parametrize("control", ["continue", "veto"])
async def test_the_model_reads_the_feedback(scene, control):
    one = scene("One.", "Two.")
    said = iter([{"control": control, "additional_context": ["tests fail"]}])
    one.add(lambda step: next(said, None), on="before_turn_end")
    await one.play()
    assert (one.sent[1][-1], one.output) == ("user: tests fail", "Two.")


@behaviour(
    "003-63", lines="149", kind="same", about="the loop counts how often the turn was continued, at most three times"
)
async def test_the_loop_counts_the_continues(scene):
    one = scene()
    one.add(handler({"control": "continue"}), on="before_turn_end")
    await one.play()
    assert [step.continues_so_far for step in one.steps("before_turn_end")] == [0, 1, 2, 3]


async def test_a_continue_without_feedback_has_a_text_of_the_loop_s_own(scene):
    one = scene("One.", "Two.")
    said = iter([{"control": "continue"}])
    one.add(lambda step: next(said, None), on="before_turn_end")
    await one.play()
    assert one.sent[1][-1] == "user: The work is not finished yet. Go on."


@behaviour("003-64", lines="150", kind="same", about="the end is involuntary where the cap on requests was hit")
async def test_the_end_is_involuntary_at_the_cap(scene):
    (end,) = (await scene(LOOK, LOOK, max_requests=2).play()).steps("before_turn_end")
    assert (end.voluntary, end.stop_reason) == (False, "max_turn_requests")


@behaviour("003-65", lines="165-168", kind="same", about="context without a continue does not keep the turn alive")
async def test_context_alone_does_not_extend(scene):
    one = scene("One.", "Two.")
    one.add(inject("mind the time"), on="before_turn_end")
    await one.play("Go.", "Again.")
    assert (one.requests_with("mind the time"), len(one.sent)) == ([1], 2)


# --- before_tool_apply ----------------------------------------------------------------------------


@behaviour("003-66", lines="178, 189", kind="same", about="before_tool: `tool`")
@behaviour("003-67", lines="179, 190", kind="same", about="before_tool: `safety`")
@behaviour("003-68", lines="180, 191", kind="same", about="before_tool: `args`")
def test_the_envelope_of_a_tool_call():
    step = received(BeforeTool, tool="bash", args={"command": "ls"}, safety="read_only")
    wanted = {"tool": "bash", "safety": "read_only", "args": {"command": "ls"}}
    assert envelope(step).items() >= wanted.items()


@behaviour("003-69", lines="187-192", kind="same", about="nothing is known of a result before a hook gives one")
def test_there_is_no_result_at_first():
    assert {"result", "is_error"}.isdisjoint(envelope(BASH))


@behaviour(
    "003-70",
    lines="187-192",
    kind="different",
    about="once a hook has answered, the envelope of the next one has the result",
)
async def test_the_next_hook_sees_the_result(hooks):
    seen = []
    hooks.add(handler({"result": "cached", "is_error": True}), on="before_tool", name="answers")
    hooks.add(lambda step: seen.append(envelope(step)), on="before_tool", name="reads")
    await hooks.dispatch(BASH)
    assert (seen[0]["result"], seen[0]["is_error"]) == ("cached", True)


@behaviour("003-71", lines="196-198", kind="same", about="`args` replaces the arguments, and never merges")
async def test_args_are_replaced():
    step = received(BeforeTool, tool="t", args={"a": 1, "b": 2})
    assert (await decide(step, {"args": {"b": 3}})).step.args == {"b": 3}


@behaviour("003-72", lines="196-198", kind="same", about="the tool runs with the new arguments")
async def test_the_tool_runs_with_the_new_arguments(scene):
    one = scene(LOOK)
    one.add(handler({"args": {"at": "b"}}), on="before_tool")
    await one.play()
    assert one.ran == ["look b"]


@behaviour(
    "003-73",
    lines="196",
    kind="different",
    about='"args": null leaves the arguments as they are; the seed sets them to null',
)
async def test_args_of_null_change_nothing():
    assert (await decide(BASH, {"args": None})).step.args == {"command": "ls"}


@behaviour(
    "003-74",
    lines="197",
    kind="different",
    about="arguments that are no object are malformed; the seed takes any value",
)
@pytest.mark.parametrize("args", ["ls", 7, True, ["ls"], []])
def test_args_are_an_object(args):
    assert malformed("before_tool", {"args": args}) == "args"


@behaviour("003-75", lines="199", kind="same", about="a result of null is none")
async def test_a_result_of_null_is_none(scene):
    one = scene(LOOK)
    one.add(handler({"result": None, "is_error": True}), on="before_tool")
    await one.play()
    assert one.ran == ["look a"]


RESULTS = {
    "text": ({"kind": "text", "text": "cached"}, "cached"),
    "json": ({"kind": "json", "value": {"rows": [1, 2]}}, {"rows": [1, 2]}),
    "content": (
        {"kind": "content", "blocks": [{"kind": "text", "text": "a chart:"}, {"kind": "image", "mime": "image/png"}]},
        [{"type": "text", "text": "a chart:"}, {"type": "image", "mime": "image/png"}],
    ),
}
each_result = pytest.mark.parametrize("kind", RESULTS)


@behaviour("003-76", lines="199-204", kind="same", about="a result is an object with its kind: text, json or content")
@behaviour("003-77", lines="173, 209", kind="same", about="it is the result of the call, in place of the tool's")
@each_result
async def test_a_result_with_its_kind_is_read(kind):
    written, meant = RESULTS[kind]
    assert (await decide(BASH, {"result": written})).step.result == meant


@behaviour("003-78", lines="199-211", kind="same", about="with a result the tool does not run, and the turn goes on")
@each_result
async def test_a_result_answers_in_place_of_the_tool(scene, kind):
    one = scene(LOOK)
    one.add(handler({"result": RESULTS[kind][0]}), on="before_tool")
    await one.play()
    (after,) = one.steps("after_tool")
    assert (one.ran, after.outcome, after.output, one.output) == ([], "answered", RESULTS[kind][1], "Done.")


@behaviour(
    "003-79",
    lines="114, 201",
    kind="same",
    about="kind json takes any JSON value; null is the text null, because no result is no answer",
)
@given(json_values)
def test_a_result_of_kind_json_is_any_value(value):
    hooks = Hooks()
    hooks.add(handler({"result": {"kind": "json", "value": value}}), on="before_tool")
    assert hooks.dispatch_sync(BASH).step.result == ("null" if value is None else value)


@behaviour("003-80", lines="201-204", kind="same", about="a result of an unknown kind is an error that names `result`")
@pytest.mark.parametrize(
    "result",
    [
        {"kind": "bogus"}, {"kind": "text"}, {"kind": "text", "text": 7}, {"kind": "json"}, {"kind": 7},
        {"kind": "content", "blocks": "x"}, {"kind": "content", "blocks": [{"kind": "audio"}]},
    ],
)  # fmt: skip
def test_a_result_of_an_unknown_kind_is_an_error(result):
    assert malformed("before_tool", {"result": result}) == "result"


@behaviour(
    "003-183", lines="201-204", kind="different", about="an unknown key in a result is malformed; the seed ignores it"
)
@pytest.mark.parametrize(
    "result",
    [
        {"kind": "text", "text": "a", "extra": 1}, {"kind": "json", "value": 1, "extra": 1},
        {"kind": "content", "blocks": [{"kind": "text", "text": "a", "extra": 1}]},
    ],
)  # fmt: skip
def test_an_unknown_key_in_a_result_is_malformed(result):
    assert malformed("before_tool", {"result": result}) == "result"


@behaviour("003-187", lines="121", kind="same", about="an image has a mime type and any other fields, which stay")
@pytest.mark.parametrize("more", [{}, {"data": "iVBORw0KGgo="}, {"uri": "file:///a.png", "size": [1, 2]}])
async def test_an_image_keeps_its_other_fields(scene, more):
    image = {"kind": "image", "mime": "image/png", **more, "alt": None, "type": "png"}
    result = {"kind": "content", "blocks": [image]}
    assert (await decide(BASH, {"result": result})).step.result == [{"type": "image", "mime": "image/png", **more}]
    one = scene(LOOK)
    one.add(handler({"result": result}), on="before_tool")
    await one.play()
    assert one.sent[1][-1] == "result: [image: image/png]"


@behaviour(
    "003-81", lines="201-204", kind="same", about="a result that is a number, true or a list of them is an error"
)
@pytest.mark.parametrize("result", [42, True, 1.5, [1], ["text"], [[]]])
def test_a_bare_value_is_no_result(result):
    assert malformed("before_tool", {"result": result}) == "result"


@behaviour(
    "003-82",
    lines="201-204",
    kind="different",
    about="a bare text, an object without a kind and content blocks are results; errors in the seed",
)
@pytest.mark.parametrize("result", ["cached", {"rows": 3}, [{"type": "text", "text": "cached"}]])
async def test_a_bare_result_is_read_as_it_is(result):
    assert (await decide(BASH, {"result": result})).step.result == result


@behaviour("003-83", lines="201-204", kind="same", about="a malformed result answers nothing")
async def test_a_malformed_result_answers_nothing():
    assert (await decide(BASH, {"result": {"kind": "bogus"}}, on_failure="open")).step == BASH


@behaviour("003-84", lines="174, 205-208", kind="same", about="is_error marks the result as an error")
async def test_a_result_may_be_an_error(scene):
    one = scene(LOOK)
    one.add(handler({"result": {"kind": "text", "text": "blocked by hook"}, "is_error": True}), on="before_tool")
    await one.play()
    assert one.sent[1][-1] == "error: blocked by hook"


@behaviour("003-85", lines="208", kind="same", about="a result is no error unless its verdict says so")
@pytest.mark.parametrize("more", [{}, {"is_error": None}, {"is_error": False}])
async def test_a_result_is_no_error_by_itself(more):
    decision = await decide(BASH, {"result": "no such file", "is_error": True}, {"result": "found", **more})
    assert (decision.step.result, bool(decision.step.is_error)) == ("found", False)


@behaviour(
    "003-86", lines="207", kind="different", about="an is_error that is no boolean is malformed; the seed reads false"
)
@pytest.mark.parametrize("is_error", ["yes", 1, []])
def test_is_error_is_a_boolean(is_error):
    assert malformed("before_tool", {"result": "x", "is_error": is_error}) == "is_error"


@behaviour("003-87", lines="199-210", kind="same", about="is_error without a result is ignored")
async def test_is_error_without_a_result_is_ignored(scene):
    assert (await decide(BASH, {"is_error": True})).step == BASH
    one = scene(LOOK)
    one.add(handler({"is_error": True}), on="before_tool")
    await one.play()
    assert (one.ran, one.steps("after_tool")[0].is_error) == (["look a"], False)


@behaviour("003-88", lines="195, 211", kind="same", about="the control stays proceed when a result answers")
async def test_a_result_is_no_control():
    assert (await decide(BASH, {"result": "cached"})).control == "proceed"


@behaviour("003-89", lines="195-211", kind="same", about="a result and a break may come in one verdict")
async def test_a_result_may_come_with_a_break():
    decision = await decide(BASH, {"control": "break", "stop_reason": "refusal", "result": "cached"})
    assert (decision.control, decision.stop_reason, decision.step.result) == ("stop", "refusal", "cached")


@behaviour("003-90", lines="209", kind="same", about="a later result replaces an earlier one")
async def test_the_last_result_counts():
    assert (await decide(BASH, {"result": "one"}, {"result": "two"})).step.result == "two"


# --- after_generate -------------------------------------------------------------------------------


@behaviour("003-91", lines="216, 227", kind="same", about="after_model: `model`")
@behaviour("003-92", lines="217, 228", kind="same", about="after_model: `usage`")
@behaviour("003-93", lines="218, 229", kind="same", about="after_model: `stop_reason`")
@behaviour("003-94", lines="219, 230", kind="same", about="after_model: `error`")
def test_the_envelope_of_an_answer():
    fields = {"model": "large", "usage": {"input_tokens": 10}, "stop_reason": "end_turn", "error": "overloaded"}
    assert envelope(received(AfterModel, **fields)) == fields


@behaviour(
    "003-95",
    lines="230, 278",
    kind="different",
    about="what is not set is left out of an envelope; the seed writes null",
)
def test_what_is_not_set_is_left_out():
    assert "error" not in envelope(STEPS["after_generate"])
    assert "agent_type" not in envelope(received(TurnStart))


@behaviour(
    "003-96", lines="216-219", kind="same", about="the loop fires after_model with all four, also when the model fails"
)
async def test_the_loop_reports_an_answer_and_a_failure(scene):
    (answered,) = (await scene("Hello.").play()).steps("after_model")
    (failed,) = (await scene(RuntimeError("down")).play()).steps("after_model")
    assert (answered.model, answered.stop_reason, answered.error) == ("scripted", "end_turn", None)
    assert answered.usage["input_tokens"] > 0
    assert "down" in failed.error


@behaviour("003-97", lines="233-235", kind="same", about="after_model takes a break")
async def test_a_break_after_the_model_ends_the_turn(scene):
    one = scene(LOOK)
    one.add(handler({"control": "break"}), on="after_model")
    await one.play()
    assert (one.ran, len(one.sent)) == ([], 1)


@behaviour(
    "003-98", lines="233-235", kind="different", about="after_model may change the output; the seed only watches"
)
async def test_after_model_may_change_the_output(scene):
    assert (await decide(STEPS["after_generate"], {"output": "other words"})).step.output == "other words"
    one = scene("My words.")
    one.add(handler({"output": "other words"}), on="after_model")
    await one.play()
    assert one.output == "other words"


# --- sessions and turns ---------------------------------------------------------------------------


@behaviour("003-99", lines="245, 255", kind="same", about="session_start: `cwd`")
@behaviour("003-100", lines="246, 256", kind="same", about="session_start: `source`")
@behaviour(
    "003-101", lines="240-241, 256", kind="same", about="a session is new or resumed; fairlead's may be a fork, too"
)
@pytest.mark.parametrize("source", ["new", "resume", "fork"])
def test_the_envelope_of_a_session_s_start(source):
    data = json.loads(encode_step(received(SessionStart, source=source)))
    assert (data["cwd"], data["source"]) == ("/repo", source)


@behaviour("003-102", lines="260-262", kind="same", about="a session's start takes context and a break in one verdict")
async def test_a_session_s_start_takes_context_and_a_break():
    verdict = {"additional_context": ["use rustfmt"], "control": "break"}
    decision = await decide(STEPS["after_session_enter"], verdict)
    assert (decision.control, decision.stop_reason, decision.context) == ("stop", "end_turn", ("use rustfmt",))


@behaviour(
    "003-103",
    lines="262",
    kind="same",
    about="a break at a session's start ends its first turn before it begins; the context waits for the next",
)
async def test_a_break_at_the_start_ends_the_first_turn(scene):
    one = scene("One.")
    one.add(handler({"additional_context": ["use rustfmt"], "control": "break"}), on="session_start")
    await one.play("Go.", "Again.")
    assert [step.event for step in one.seen.steps].count("turn_start") == 1
    assert (len(one.sent), one.requests_with("use rustfmt"), one.output) == (1, [0], "One.")


@behaviour(
    "003-104",
    lines="262, 47-54",
    kind="different",
    about="a veto at a session's start is an abort: the session does not start",
)
async def test_a_veto_at_the_start_is_an_abort(scene):
    one = scene()
    one.add(handler({"control": "veto", "reason": "closed"}), on="session_start")
    await one.play()
    assert (str(one.error), one.sent) == ("[judge:hook_abort] closed", [])


@behaviour("003-105", lines="267, 277", kind="same", about="turn_start: `is_subagent`")
@behaviour("003-106", lines="268, 278", kind="same", about="turn_start: `agent_type`, if there is one")
async def test_the_loop_says_whether_a_turn_is_a_subagent_s(scene):
    one = await scene(("Asking.", [("helper", {"message": "Help me."})])).play()
    assert [(step.is_subagent, step.agent_type) for step in one.steps("turn_start")] == [
        (False, None),
        (True, "helper"),
    ]
    assert envelope(STEPS["after_turn_enter"]) == {"is_subagent": True, "agent_type": "scout"}


@behaviour("003-107", lines="281-285", kind="same", about="a turn's start takes context and a break")
async def test_a_break_at_the_turn_s_start_ends_it(scene):
    one = scene()
    one.add(handler({"control": "break", "stop_reason": "refusal"}), on="turn_start")
    await one.play()
    assert (one.sent, one.result.stop_reason) == ([], "refusal")


# --- ingest ---------------------------------------------------------------------------------------


@behaviour("003-108", lines="290, 315", kind="same", about="the source of an input is a user ...")
@behaviour("003-109", lines="291, 316", kind="same", about="... a continuation, when a turn is extended ...")
@behaviour("003-110", lines="292, 317", kind="same", about="... or a background job")
async def test_the_loop_says_where_an_input_comes_from(scene):
    one = scene("One.", "Two.", "Three.")
    one.add(extend("run the tests"), on="before_turn_end")
    await one.agent.run("Go.")
    await one.agent.run("The build is done.", source="background")
    await one.agent.close()
    sources = [(step.source, step.input) for step in one.steps("before_input")]
    assert sources == [("user", "Go."), ("continuation", "run the tests"), ("background", "The build is done.")]


@behaviour(
    "003-111",
    lines="291",
    kind="same",
    about="a continuation is an input like any other: it can be rewritten, refused and has an after_input",
)
async def test_a_continuation_can_be_rewritten_and_refused(scene):
    for verdict, output in (({"input": "run all tests"}, "Two."), ({"control": "veto"}, "One.")):
        one = scene("One.", "Two.")
        one.add(extend("run the tests"), on="before_turn_end", name="extends")
        said = iter([None, verdict])
        one.add(lambda step, said=said: next(said), on="before_input")
        await one.play()
        assert (one.output, len(one.steps("after_input"))) == (output, 2 if output == "Two." else 1)


INPUT = [{"type": "text", "text": "look at "}, "this", {"type": "image", "mime": "image/png", "data": "iVBORw0KGgo="}]


@behaviour("003-112", lines="296, 319", kind="same", about="the envelope of a text has it as `input`")
def test_the_envelope_of_a_text():
    assert envelope(STEPS["before_ingest"]) == {"source": "background", "input": "hello"}


@behaviour(
    "003-113",
    lines="304-312",
    kind="otherwise",
    about="blocks stay blocks in `input`; the joined text is one expression",
)
def test_the_joined_text_of_an_input():
    given = envelope(received(BeforeInput, input=INPUT))["input"]
    assert given == INPUT
    texts = (block if isinstance(block, str) else block.get("text", "") for block in given)
    assert "".join(texts) == "look at this"


@behaviour("003-114", lines="320", kind="otherwise", about="input_len is len(input), or 1 for a text")
@pytest.mark.parametrize(("given", "length"), [(INPUT, 3), ("hello", 1), ([], 0)])
def test_the_length_of_an_input(given, length):
    given = envelope(received(BeforeInput, input=given))["input"]
    assert (1 if isinstance(given, str) else len(given)) == length


@behaviour("003-115", lines="324", kind="same", about="an input of null changes nothing")
@behaviour("003-116", lines="330", kind="same", about="a prepend_input of null changes nothing")
@pytest.mark.parametrize("field", ["input", "prepend_input"])
async def test_an_input_of_null_changes_nothing(field):
    assert (await decide(STEPS["before_ingest"], {field: None})).changed == ()


@behaviour("003-117", lines="326", kind="same", about="a text rewrites the input")
@behaviour("003-118", lines="327", kind="same", about="a list of texts rewrites the input")
@pytest.mark.parametrize("new", ["rewritten", ["rewritten", "extra"]])
async def test_an_input_is_rewritten(scene, new):
    assert (await decide(STEPS["before_ingest"], {"input": new})).step.input == new
    one = scene()
    one.add(handler({"input": new}), on="before_input")
    await one.play()
    assert one.sent[0][-1] == "user: " + (new if isinstance(new, str) else "\n".join(new))


@behaviour("003-119", lines="332, 335-336", kind="same", about="a text is put before the input")
@behaviour("003-120", lines="333-336", kind="same", about="a list of texts is put before the input, in order")
@pytest.mark.parametrize(
    ("prefix", "old", "new"),
    [
        ("hint", ["original"], ["hint", "original"]), (["a", "b"], ["original"], ["a", "b", "original"]),
        (["a", "b"], "original", ["a", "b", "original"]),
    ],
)  # fmt: skip
async def test_something_is_put_before_the_input(prefix, old, new):
    step = received(BeforeInput, input=old)
    assert (await decide(step, {"prepend_input": prefix})).step.input == new


@behaviour(
    "003-121", lines="331-336", kind="different", about="a text put before a text is one text; the seed has two blocks"
)
async def test_a_text_before_a_text_is_one_text():
    assert (await decide(STEPS["before_ingest"], {"prepend_input": "be brief: "})).step.input == "be brief: hello"


@behaviour(
    "003-122", lines="324-337", kind="same", about="an input is rewritten first, and something is put before it then"
)
async def test_the_input_is_rewritten_before_something_is_put_before_it():
    verdict = {"prepend_input": ["first"], "input": ["second"]}
    assert (await decide(STEPS["before_ingest"], verdict)).step.input == ["first", "second"]


@behaviour("003-123", lines="335-336", kind="same", about="what a later hook prepends comes first")
async def test_what_a_later_hook_prepends_comes_first():
    step = received(BeforeInput, input=["input"])
    decision = await decide(step, {"prepend_input": ["one"]}, {"prepend_input": ["two"]})
    assert decision.step.input == ["two", "one", "input"]


@behaviour(
    "003-124",
    lines="536-539",
    kind="same",
    about="an entry of an input that is neither text nor block is an error with the field's name",
)
@behaviour(
    "003-125",
    lines="542-545",
    kind="same",
    about="an input that is neither text nor list is an error with the field's name",
)
@pytest.mark.parametrize("value", [[7], ["text", None], [["text"]], 7, True, {"text": "x"}])
@pytest.mark.parametrize("field", ["input", "prepend_input"])
def test_a_malformed_input_is_an_error(field, value):
    assert malformed("before_input", {field: value}) == field


@behaviour(
    "003-126",
    lines="536-539",
    kind="different",
    about="a content block is an entry of an input, too; the seed takes texts only",
)
async def test_a_block_is_an_entry_of_an_input():
    assert (await decide(STEPS["before_ingest"], {"input": INPUT})).step.input == INPUT


@behaviour("003-127", lines="338", kind="same", about="a break at an input ends the turn: the model is not asked")
async def test_a_break_at_the_input_asks_no_model(scene):
    one = scene()
    one.add(handler({"control": "break", "stop_reason": "refusal"}), on="before_input")
    await one.play()
    assert (one.sent, one.result.stop_reason) == ([], "refusal")


@behaviour("003-128", lines="343, 351", kind="same", about="after_input: `committed_len`, the messages with the input")
async def test_the_loop_says_how_long_the_conversation_is(scene):
    one = await scene("One.").play("Go.", "Again.")
    assert [step.committed_len for step in one.steps("after_input")] == [1, 3]
    assert envelope(STEPS["after_ingest"]) == {"committed_len": 3}


@behaviour("003-129", lines="353-357", kind="same", about="after_input takes context and a break")
async def test_after_input_takes_context_and_a_break():
    decision = await decide(STEPS["after_ingest"], {"control": "break", "additional_context": ["one"]})
    assert (decision.control, decision.context) == ("stop", ("one",))


# --- compaction -----------------------------------------------------------------------------------


@behaviour("003-130", lines="361, 369", kind="same", about="before_compact: `token_estimate`")
@behaviour("003-131", lines="362, 369", kind="same", about="before_compact: `threshold`")
@behaviour("003-132", lines="377, 386", kind="same", about="after_compact: `tokens_before`")
@behaviour("003-133", lines="378, 386", kind="same", about="after_compact: `tokens_after`")
async def test_the_loop_compacts_with_the_numbers(scene):
    assert envelope(STEPS["before_compact"]) == {"token_estimate": 9000, "threshold": 8000}
    assert envelope(STEPS["after_compact"]) == {"tokens_before": 9000, "tokens_after": 800}
    one = await whole_run(scene)
    before, after = one.steps("before_compact")[0], one.steps("after_compact")[0]
    assert (before.threshold, before.token_estimate) == (1, after.tokens_before)
    assert before.token_estimate > before.threshold
    assert after.tokens_after > 0


@behaviour("003-134", lines="372", kind="same", about="a veto of a compaction skips it, and the turn goes on")
async def test_a_veto_skips_the_compaction(scene):
    one = scene(LOOK, token_budget=1)
    one.add(handler({"control": "veto"}), on="before_compact")
    await one.play()
    assert ("compact" in one.ran, one.output) == (False, "Done.")


@behaviour("003-135", lines="388-392", kind="same", about="after_compact takes context and a break")
async def test_after_compact_takes_context_and_a_break():
    decision = await decide(STEPS["after_compact"], {"control": "break", "additional_context": ["one"]})
    assert (decision.control, decision.context) == ("stop", ("one",))


# --- before_generate ------------------------------------------------------------------------------


@behaviour("003-136", lines="396, 407", kind="same", about="before_model: `model`")
@behaviour("003-137", lines="397, 408", kind="same", about="before_model: `message_count`")
@behaviour("003-138", lines="398, 409", kind="same", about="before_model: `attempt`")
def test_the_envelope_of_a_request():
    assert envelope(STEPS["before_generate"]) == {"model": "large", "message_count": 4, "attempt": 2}


@behaviour("003-139", lines="398", kind="same", about="the loop counts the attempts of a request, from 1")
async def test_the_loop_counts_the_attempts(scene):
    one = scene(LOOK)
    refusals = iter([deny("not yet"), deny("nor yet"), None, None])
    one.add(lambda step: next(refusals), on="before_model")
    await one.play()
    assert [step.attempt for step in one.steps("before_model")] == [1, 2, 3, 1]


@behaviour("003-140", lines="397", kind="same", about="the loop says how many messages the model gets")
async def test_the_loop_counts_the_messages(scene):
    one = await scene(LOOK).play()
    assert [(step.message_count, len(step.messages)) for step in one.steps("before_model")] == [(1, 1), (3, 3)]


@behaviour("003-141", lines="413-415", kind="same", about="`model` switches the model")
async def test_the_model_is_switched(scene):
    one = scene()
    one.add(handler({"model": "other"}), on="before_model")
    await one.play()
    assert (one.sent, len(one.other.sent), one.output) == ([], 1, "From the other model.")


@behaviour(
    "003-142",
    lines="399, 416-418",
    kind="same",
    about="`assistant` answers in place of the model, and the control stays proceed",
)
async def test_the_assistant_answers_in_place_of_the_model(scene):
    decision = await decide(STEPS["before_generate"], {"assistant": "synthetic reply", "model": "haiku"})
    assert (decision.control, decision.step.assistant, decision.step.model) == ("proceed", "synthetic reply", "haiku")
    one = scene("Never.")
    one.add(handler({"assistant": "synthetic reply"}), on="before_model")
    await one.play()
    assert (one.sent, one.output) == ([], "synthetic reply")


@behaviour("003-143", lines="413", kind="different", about="a model that is no text is malformed; the seed ignores it")
@behaviour(
    "003-144", lines="416", kind="different", about="an assistant that is no content is malformed; the seed ignores it"
)
@pytest.mark.parametrize(
    ("field", "value"), [("model", 7), ("model", ["small"]), ("assistant", 7), ("assistant", True)]
)
def test_a_model_is_a_text_and_an_answer_content(field, value):
    assert malformed("before_model", {field: value}) == field


@behaviour(
    "003-145",
    lines="405-411",
    kind="different",
    about="the envelope of a request has its messages, too, where the host gives them",
)
async def test_the_loop_gives_the_messages(scene):
    (request,) = (await scene().play()).steps("before_model")
    assert envelope(request)["messages"] == [{"role": "user", "content": "Go."}]


# --- permission -----------------------------------------------------------------------------------


@behaviour("003-146", lines="424, 433", kind="same", about="before_permission: `tool`")
@behaviour("003-147", lines="425, 433", kind="otherwise", about="before_permission: `decision` is `proposed`")
@pytest.mark.parametrize(("policy", "proposed"), [("open", "allow"), ("deny-all", "deny"), ("ask-writes", "ask")])
async def test_the_loop_says_what_it_proposes(scene, policy, proposed):
    (step,) = (await scene(("Touching.", [("touch", {})]), policy=policy).play()).steps("before_permission")
    assert envelope(step).items() >= {"tool": "touch", "proposed": proposed}.items()


@behaviour(
    "003-148",
    lines="425",
    kind="different",
    about="`proposed` is allow, ask or deny, and not any text: a host's own words go into metadata",
)
def test_what_is_proposed_is_one_of_three_words():
    with pytest.raises(FairleadError, match="proposed"):
        SESSION.step(BeforePermission, tool="bash", proposed="allow once")
    with pytest.raises(FairleadError, match="proposed"):
        decode_step(b'{"event": "before_permission", "tool": "bash", "proposed": "allow once"}')
    step = received(BeforePermission, tool="bash", proposed="allow", metadata={"decision": "allow once"})
    assert step.metadata == {"decision": "allow once"}


@behaviour("003-149", lines="426, 436-438", kind="same", about="`resolved` is recorded on the step")
@pytest.mark.parametrize("resolved", [True, False])
async def test_resolved_is_recorded(resolved):
    assert (await decide(STEPS["before_permission"], {"resolved": resolved})).step.resolved is resolved


@behaviour(
    "003-150",
    lines="436-439",
    kind="different",
    about="`resolved` is the control, too: allow or deny; the seed's stays proceed",
)
@pytest.mark.parametrize(("resolved", "control", "ran"), [(True, "allow", ["look a"]), (False, "deny", [])])
async def test_resolved_decides(scene, resolved, control, ran):
    assert (await decide(STEPS["before_permission"], {"resolved": resolved})).control == control
    one = scene(LOOK)
    one.add(handler({"resolved": resolved}), on="before_permission")
    await one.play()
    assert one.ran == ran


@behaviour(
    "003-151", lines="436", kind="different", about="a resolved that is no boolean is malformed; the seed ignores it"
)
@pytest.mark.parametrize("resolved", ["yes", 1, [True]])
def test_resolved_is_a_boolean(resolved):
    assert malformed("before_permission", {"resolved": resolved}) == "resolved"


@behaviour(
    "003-152", lines="436-439", kind="different", about="resolved beside a break is malformed; the seed keeps both"
)
@pytest.mark.parametrize("resolved", [True, False])
def test_resolved_does_not_go_with_a_break(resolved):
    assert malformed("before_permission", {"control": "break", "resolved": resolved}) == "resolved"


@behaviour("003-153", lines="435-440", kind="same", about="a resolved of null changes nothing")
async def test_a_resolved_of_null_changes_nothing():
    assert (await decide(STEPS["before_permission"], {"resolved": None})).control == "proceed"


@behaviour("003-154", lines="444, 452", kind="same", about="after_permission: `tool`")
@behaviour("003-155", lines="445, 452", kind="same", about="after_permission: `granted`")
@pytest.mark.parametrize(("policy", "granted"), [("open", True), ("deny-all", False)])
async def test_the_loop_says_whether_it_was_granted(scene, policy, granted):
    (step,) = (await scene(LOOK, policy=policy).play()).steps("after_permission")
    assert envelope(step).items() >= {"tool": "look", "granted": granted}.items()


@behaviour("003-156", lines="454-456", kind="same", about="after_permission takes a break: the tool does not run")
async def test_a_break_after_the_permission_runs_no_tool(scene):
    one = scene(LOOK)
    one.add(handler({"control": "break"}), on="after_permission")
    await one.play()
    assert (one.ran, len(one.sent)) == ([], 1)


# --- after_tool_apply and the batch ---------------------------------------------------------------


@behaviour("003-157", lines="460, 471", kind="same", about="after_tool: `tool`")
@behaviour("003-158", lines="461, 472", kind="same", about="after_tool: `is_error`")
@behaviour("003-159", lines="462, 473", kind="same", about="after_tool: `output`")
async def test_the_loop_gives_the_output_of_a_tool(scene):
    one = await scene(LOOK, ("Trying.", [("crash", {})])).play()
    looked, crashed = map(envelope, one.steps("after_tool"))
    assert looked.items() >= {"tool": "look", "is_error": False, "output": "look: a (1)"}.items()
    assert crashed.items() >= {"tool": "crash", "is_error": True, "error": "RuntimeError: boom"}.items()


@behaviour(
    "003-160",
    lines="462, 473",
    kind="different",
    about="`output` is what the model reads of a failed call, and hooks may change it; `error` describes the failure",
)
async def test_a_failed_call_has_an_error_and_an_output_that_the_model_reads(scene):
    (step,) = (await scene(("Trying.", [("crash", {})])).play()).steps("after_tool")
    assert (step.output, step.error) == ("RuntimeError: boom", "RuntimeError: boom")


WORKER = (
    "from fairlead.worker import Worker\nw = Worker()\nw.add(lambda step: None, on='after_tool', name='x')\nw.run()\n"
)
OUTPUTS = [
    [1, 2],
    ["a", None],
    42,
    2**70,
    1.5,
    True,
    False,
    None,
    "",
    {},
    [],
    {"a": [1]},
    [{"type": "text", "text": "a"}],
]


@behaviour(
    "003-161",
    lines="462, 473",
    kind="same",
    about="whatever JSON a tool returns, a hook in another process may see it, and the model reads it",
)
@behaviour(
    "003-182",
    lines="114, 473",
    kind="different",
    about="from the loop, hooks get a list, number, true or false as the JSON text that the model reads; the value in "
    "the seed",
)
async def test_a_worker_sees_every_output_and_the_model_reads_it(tmp_path):
    from fairlead.hosts.loop import Agent
    from fairlead.hosts.loop.tools import Tool
    from loop_scene import Scripted

    (tmp_path / "worker.py").write_text(WORKER)
    left = iter(OUTPUTS)

    async def run(args):
        return next(left)

    async with Hooks(record=True) as hooks:
        hooks.add(Worker([sys.executable, str(tmp_path / "worker.py")]), on="after_tool", name="worker", timeout=30)
        ends = []
        hooks.add(lambda step, decision: ends.append(decision), on="after_tool", phase="observe", name="watch")
        model = Scripted(*[("Again.", [("t", {})])] * len(OUTPUTS))
        tool = Tool("t", "Return something.", {"type": "object"}, run, "read", "read_only")
        async with Agent(model.model, [tool], hooks, policy="open", max_requests=50) as agent:
            await agent.run("Go.")
    assert [(end.control, end.failures) for end in ends] == [("proceed", ())] * len(OUTPUTS)
    read = [part.removeprefix("result: ") for part in model.sent[-1] if part.startswith("result: ")]
    texts = ["[1,2]", '["a",null]', "42", str(2**70), "1.5", "true", "false"]
    assert [end.step.output for end in ends] == [*texts, *OUTPUTS[len(texts) :]]
    assert read == [*texts, "", "", "{}", "", '{"a":[1]}', "a"]


@behaviour("003-162", lines="476-480", kind="same", about="after_tool takes context and a break")
async def test_after_tool_takes_context_and_a_break(scene):
    decision = await decide(STEPS["after_tool_apply"], {"control": "break", "additional_context": ["one"]})
    assert (decision.control, decision.context) == ("stop", ("one",))
    one = scene(LOOK)
    one.add(handler({"control": "break"}), on="after_tool")
    await one.play()
    assert (one.ran, len(one.sent)) == (["look a"], 1)


@behaviour(
    "003-163",
    lines="479, 47-54",
    kind="different",
    about="a veto after a tool withholds its output; the seed's ends the turn",
)
async def test_a_veto_after_a_tool_withholds_its_output(scene):
    one = scene(LOOK)
    one.add(handler({"control": "veto", "reason": "secret"}), on="after_tool")
    await one.play()
    assert (one.sent[1][-1], one.output) == ("error: [withheld by judge] secret", "Done.")


@behaviour("003-164", lines="484, 499", kind="same", about="each result of a batch has its `tool`")
@behaviour("003-165", lines="485, 500", kind="same", about="each result of a batch has its `is_error`")
@behaviour("003-166", lines="489, 498-501", kind="same", about="the results of a batch are in the order of the calls")
async def test_the_loop_lists_the_results_of_a_batch(scene):
    one = await scene(("Both.", [("look", {}), ("crash", {})])).play()
    (batch,) = one.steps("after_tool_batch")
    results = envelope(batch)["results"]
    assert [(result["tool"], result["is_error"]) for result in results] == [("look", False), ("crash", True)]


@behaviour("003-167", lines="498-501", kind="same", about="a batch may be empty")
def test_a_batch_may_be_empty():
    assert envelope(STEPS["after_tool_batch"]) == {"results": []}


@behaviour("003-168", lines="504-508", kind="same", about="a batch takes context and a break")
async def test_a_batch_takes_context_and_a_break(scene):
    decision = await decide(STEPS["after_tool_batch"], {"control": "break", "additional_context": ["mind the time"]})
    assert (decision.control, decision.context) == ("stop", ("mind the time",))
    one = scene(LOOK)
    one.add(handler({"control": "break"}), on="after_tool_batch")
    await one.play()
    assert len(one.sent) == 1


# --- the pipeline ---------------------------------------------------------------------------------

CONTEXT = [{"additional_context": ["one"]}, {"additional_context": ["two"]}]


@behaviour("003-169", lines="510-512", kind="same", about="the pipeline is the same for every event")
@each_event
async def test_a_chain_runs_at_every_event(name):
    decision = await decide(STEPS[name], {}, {"control": "break", "stop_reason": "refusal"}, {"control": "explode"})
    assert (decision.control, decision.stop_reason, decision.failures) == ("stop", "refusal", ())


@behaviour("003-170", lines="516-518", kind="same", about="verdicts are applied in order, and what they say adds up")
async def test_verdicts_add_up():
    assert (await decide(TURN_END, *CONTEXT)).context == ("one", "two")


@behaviour("003-171", lines="517", kind="same", about="each verdict is applied to the step as the ones before left it")
async def test_each_hook_sees_the_envelope_as_changed_so_far(hooks):
    seen = []
    hooks.add(handler({"args": {"command": "step1"}}), on="before_tool", name="one")
    hooks.add(lambda step: seen.append(envelope(step)["args"]), on="before_tool", name="reads")
    hooks.add(handler({"args": {"command": "step2"}}), on="before_tool", name="two")
    hooks.add(handler({"control": "break"}), on="before_tool", name="three")
    decision = await hooks.dispatch(BASH)
    assert (seen, decision.control, decision.step.args) == ([{"command": "step1"}], "stop", {"command": "step2"})


@behaviour("003-172", lines="519", kind="same", about="the first control that is not proceed ends the pipeline")
@pytest.mark.parametrize("control", ["break", "continue", "veto"])
async def test_the_pipeline_stops_at_the_first_control(control):
    first = {"control": control, "additional_context": ["said"]}
    decision = await decide(TURN_END, first, {"additional_context": ["never said"]}, {"control": "break"})
    assert decision.context == ("said",)
    assert decision.control == {"break": "stop"}.get(control, "extend")


@behaviour("003-173", lines="519", kind="same", about="what comes with the last control counts")
async def test_what_comes_with_the_control_counts():
    last = {"control": "break", "additional_context": ["three"]}
    assert (await decide(TURN_END, *CONTEXT, last)).context == ("one", "two", "three")


@behaviour("003-174", lines="527", kind="same", about="after the last verdict the pipeline proceeds")
async def test_at_its_end_the_pipeline_proceeds():
    assert (await decide(BASH, {}, {}, {"args": {"command": "pwd"}})).control == "proceed"


@behaviour(
    "003-175",
    lines="519",
    kind="different",
    about="gates run after a break, too: they judge the final step, and the most severe verdict decides",
)
async def test_gates_run_after_a_break(hooks):
    hooks.add(handler({"control": "break"}), on="before_tool", name="transform")
    hooks.add(handler({"control": "deny", "reason": "no"}), on="before_tool", phase="gate", name="gate")
    decision = await hooks.dispatch(BASH)
    assert (decision.control, decision.denied) == ("stop", True)


BAD_THEN_BREAK = [{"result": {"kind": "bogus"}}, {"control": "break"}]


@behaviour(
    "003-176",
    lines="520-523",
    kind="otherwise",
    about='on_error that returns None is on_failure="open": the next verdict is applied',
)
async def test_an_error_may_be_left_out():
    decision = await decide(BASH, *BAD_THEN_BREAK, on_failure="open")
    assert (decision.control, decision.step, len(decision.warnings)) == ("stop", BASH, 1)


@behaviour(
    "003-177",
    lines="514, 521-522",
    kind="same",
    about="on_error that returns a control is a verdict of one's own as on_failure",
)
@pytest.mark.parametrize(
    ("name", "policy", "control"),
    [
        ("before_tool_apply", stop("no policy", "refusal"), "stop"), ("before_turn_end", extend("try again"), "extend"),
        ("before_compact", skip(), "skip"), ("before_tool_apply", deny("no policy"), "deny"),
        ("after_permission", stop(), "stop"), ("before_tool_apply", change(args={"command": "true"}), "proceed"),
    ],
)  # fmt: skip
async def test_an_error_may_be_any_control(name, policy, control):
    decision = await decide(STEPS[name], {"colour": "red"}, on_failure=policy)
    assert (decision.control, [failure.policy for failure in decision.failures]) == (control, ["verdict"])
    if control == "stop":
        assert decision.stop_reason == policy.stop_reason
    if control != "proceed":
        assert (decision.cause, decision.reason) == ("failure", policy.reason or str(decision.failures[0]))


@behaviour("003-178", lines="521-522", kind="same", about="a control on an error ends the pipeline")
async def test_a_control_on_an_error_ends_the_pipeline():
    decision = await decide(
        BASH, {"control": "explode"}, {"args": {"command": "true"}}, on_failure=stop("no", "refusal")
    )
    assert (decision.step, decision.stop_reason) == (BASH, "refusal")


@behaviour(
    "003-179",
    lines="514",
    kind="otherwise",
    about='on_error that blocks is on_failure="closed", the default, or "abort"',
)
@pytest.mark.parametrize(("policy", "control"), [("closed", "deny"), ("abort", "abort")])
async def test_an_error_may_block(policy, control):
    assert (await decide(BASH, *BAD_THEN_BREAK, on_failure=policy)).control == control


@behaviour(
    "003-180",
    lines="514, 520",
    kind="different",
    about="one policy for each hook and every failure; the seed's sees the error",
)
async def test_an_error_and_a_malformed_verdict_have_one_policy(hooks):
    async def late(step):
        await asyncio.Event().wait()

    hooks.add(late, on="before_tool", timeout=0.02, on_failure=stop("no policy"))
    decision = await hooks.dispatch(BASH)
    assert (decision.control, decision.failures[0].kind) == ("stop", "timeout")


@behaviour("003-181", lines="514", kind="same", about="the verdict is one that the event takes, or the hook is refused")
def test_a_policy_that_the_event_does_not_take_is_refused(hooks):
    with pytest.raises(FairleadError, match=r"on_failure at before_tool: .*does not take 'extend'"):
        hooks.add(handler({}), on="before_tool", on_failure=extend())


# --- the engine around it, as the seed's repository tests it --------------------------------------


@each_event
async def test_events_are_routed_to_their_own_hooks(hooks, name):
    step, reached = STEPS[name], []
    for event in EVENTS:
        hooks.add(lambda step, event=event: reached.append((event, step)), on=event, name=event)
    await hooks.dispatch(step)
    assert reached == [(step.event, step)]


@each_event
async def test_no_handler_proceeds(hooks, name):
    assert (await hooks.dispatch(STEPS[name])).control == "proceed"


@pytest.mark.parametrize(("tool", "control"), [("bash", "deny"), ("bash_2", "proceed"), ("read", "proceed")])
async def test_tool_filter(hooks, tool, control):
    hooks.add(handler({"control": "veto"}), on="before_tool", tool="bash")
    assert (await hooks.dispatch(received(BeforeTool, tool=tool))).control == control


@pytest.mark.parametrize(("tool", "control"), [("fs.read", "deny"), ("net.read", "proceed")])
async def test_tool_filter_with_a_glob(hooks, tool, control):
    hooks.add(handler({"control": "veto"}), on="before_tool", tool="fs.*")
    assert (await hooks.dispatch(received(BeforeTool, tool=tool))).control == control


@pytest.mark.parametrize(
    ("safety", "control"),
    [("read_only", "proceed"), ("mutating", "deny"), ("destructive", "deny"), ("network", "proceed")],
)
async def test_safety_filter_takes_any_of_several(hooks, safety, control):
    hooks.add(handler({"control": "veto"}), on="before_tool", safety=["mutating", "destructive"])
    assert (await hooks.dispatch(received(BeforeTool, tool="t", safety=safety))).control == control


@pytest.mark.parametrize(
    ("tool", "safety", "control"),
    [("bash", "mutating", "deny"), ("bash", "read_only", "proceed"), ("read", "mutating", "proceed")],
)
async def test_tool_and_safety_must_both_match(hooks, tool, safety, control):
    hooks.add(handler({"control": "veto"}), on="before_tool", tool="bash", safety="mutating")
    assert (await hooks.dispatch(received(BeforeTool, tool=tool, safety=safety))).control == control


@each_event
async def test_every_handler_gets_the_common_header(hooks, name):
    seen = []
    hooks.add(lambda step: seen.append(json.loads(encode_step(step))), on=STEPS[name].event, name="reads")
    await hooks.dispatch(STEPS[name])
    header = {"event": STEPS[name].event, "session_id": "s-1", "cwd": "/repo"}
    assert seen[0].items() >= header.items()


async def test_dispatch_in_flight_keeps_the_old_table(hooks):
    started, go_on = asyncio.Event(), asyncio.Event()

    async def waits(step):
        started.set()
        await go_on.wait()

    judge = handler({"control": "veto", "reason": "old"})
    hooks.replace_all([Hook(waits, "before_tool"), Hook(judge, "before_tool", name="judge")], source="policy")
    in_flight = asyncio.create_task(hooks.dispatch(BASH))
    await started.wait()
    hooks.replace_all([], source="policy")
    go_on.set()
    assert (await in_flight).reason == "old"


async def test_next_dispatch_has_the_new_table(hooks):
    hooks.replace_all([Hook(handler({"control": "veto"}), "before_tool")], source="policy")
    hooks.replace_all([], source="policy")
    assert (await hooks.dispatch(BASH)).control == "proceed"
