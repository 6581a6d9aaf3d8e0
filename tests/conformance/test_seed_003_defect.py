"""Seed 003, defect: steps, envelopes, verdicts.

How its words map to ours:

- An envelope is the step as JSON; `hook_event` is its `event`. A handler is a hook that returns a verdict as a dict,
  with the words of the wire, and `apply_verdict` is what a dispatch does with it.
- The controls `proceed` and `skip` keep their names; `break` is stop, `continue` is extend, and `veto` is what the
  event says it is. `run_step_pipeline` is a chain of transforms. Its `on_error` is `on_failure`: "open" leaves a
  bad verdict out, "closed" and "abort" block.
- The matcher's `tool` and `tool_glob` are both `tool=`; `safety` is `safety=`, one or several.
- after_session_enter is session_start, after_turn_enter is turn_start, ingest is input, generate is model, tool_apply
  is tool. `decision` of before_permission is `proposed`. The other names are the same.

What it does with commands, prompts, configuration and its loop is tested where fairlead has them.
"""

import asyncio

import msgspec
import pytest

from fairlead import EVENTS, Hook, Hooks, MalformedVerdict, read_verdict
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

BASH = BeforeTool(tool="bash", args={"command": "ls"})


@pytest.fixture
def hooks():
    return Hooks()


def envelope(step):
    """The step as JSON, without what is not set."""
    fields = msgspec.json.decode(msgspec.json.encode(step))
    return {name: value for name, value in fields.items() if value is not None}


def saying(verdict):
    async def hook(step):
        return verdict

    return hook


async def decide(step, *verdicts, **options):
    """The decision on a step about which hooks give these verdicts, one after another."""
    hooks = Hooks()
    for number, verdict in enumerate(verdicts, 1):
        hooks.add(saying(verdict), on=step.event, name=f"hook-{number}", **options)
    return await hooks.dispatch(step)


# --- step: controls -----------------------------------------------------------------------------


def test_turn_end_envelope():
    step = BeforeTurnEnd(stop_reason="max_turn_requests", continues_so_far=2, voluntary=False)
    assert envelope(step) == {
        "event": "before_turn_end",
        "stop_reason": "max_turn_requests",
        "continues_so_far": 2,
        "voluntary": False,
    }


@pytest.mark.parametrize("verdict", [{}, {"control": None}, {"control": "proceed"}])
async def test_empty_verdict_proceeds(verdict):
    assert (await decide(BeforeTurnEnd(), verdict)).control == "proceed"


async def test_continue_keeps_the_turn_alive():
    decision = await decide(BeforeTurnEnd(), {"control": "continue"})
    assert decision.control == "extend"


async def test_continue_carries_feedback():
    verdict = {"control": "continue", "additional_context": ["tests fail", "fix them"]}
    assert (await decide(BeforeTurnEnd(), verdict)).context == ("tests fail", "fix them")


@pytest.mark.parametrize(
    ("step", "control"),
    [
        (BeforeTurnEnd(), "extend"),
        (BeforeCompact(), "skip"),
        (BASH, "deny"),
    ],
    ids=lambda value: getattr(value, "event", value),
)
async def test_veto_means_what_the_event_says(step, control):
    assert (await decide(step, {"control": "veto"})).control == control


@pytest.mark.parametrize("step", [BeforeTurnEnd(), BASH, BeforeModel()], ids=lambda step: step.event)
async def test_break_stops_the_turn(step):
    assert (await decide(step, {"control": "break"})).control == "stop"


@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"])
async def test_break_with_a_stop_reason(reason):
    decision = await decide(BeforeTurnEnd(), {"control": "break", "stop_reason": reason})
    assert decision.stop_reason == reason


async def test_break_without_a_stop_reason_is_an_end_of_turn():
    assert (await decide(BeforeTurnEnd(), {"control": "break"})).stop_reason == "end_turn"


async def test_break_with_an_unknown_stop_reason_is_an_error():
    (failure,) = (await decide(BASH, {"control": "break", "stop_reason": "bored"})).failures
    assert "stop_reason" in failure.error


async def test_skip_leaves_the_compaction_out():
    assert (await decide(BeforeCompact(), {"control": "skip"})).control == "skip"


@pytest.mark.parametrize("control", ["explode", "", 7, True, ["break"], {}])
def test_unknown_control_is_an_error(control):
    with pytest.raises(MalformedVerdict) as raised:
        read_verdict({"control": control}, EVENTS["before_turn_end"])
    assert raised.value.field == "control"


# --- step: tools --------------------------------------------------------------------------------


async def test_args_are_patched():
    decision = await decide(BASH, {"args": {"command": "ls -l"}})
    assert decision.step.args == {"command": "ls -l"}


async def test_args_are_replaced_and_not_merged():
    decision = await decide(BeforeTool(tool="t", args={"a": 1, "b": 2}), {"args": {"b": 3}})
    assert decision.step.args == {"b": 3}


RESULTS = pytest.mark.parametrize("result", ["cached", {"rows": 3}, [{"type": "text", "text": "cached"}]])


@RESULTS
async def test_result_answers_in_place_of_the_tool(result):
    assert (await decide(BASH, {"result": result})).step.result == result


@RESULTS
async def test_control_stays_proceed_when_a_result_answers(result):
    assert (await decide(BASH, {"result": result})).control == "proceed"


async def test_result_may_be_an_error():
    assert (await decide(BASH, {"result": "no such file", "is_error": True})).step.is_error is True


async def test_result_is_no_error_unless_it_says_so():
    assert not (await decide(BASH, {"result": "cached"})).step.is_error


@pytest.mark.parametrize("result", [42, True, ["text"], [1]])
async def test_malformed_result_is_an_error(result):
    (failure,) = (await decide(BASH, {"result": result})).failures
    assert (failure.kind, "result" in failure.error) == ("malformed", True)


async def test_malformed_result_answers_nothing():
    assert (await decide(BASH, {"result": 42}, on_failure="open")).step.result is None


@pytest.mark.parametrize("context", ["text", 7, [1], ["text", None], {"text": "text"}])
def test_additional_context_must_be_strings(context):
    with pytest.raises(MalformedVerdict) as raised:
        read_verdict({"additional_context": context}, EVENTS["after_tool"])
    assert raised.value.field == "additional_context"


@pytest.mark.parametrize("resolved", [True, False])
async def test_resolved_is_recorded(resolved):
    decision = await decide(BeforePermission(tool="bash", proposed="ask"), {"resolved": resolved})
    assert decision.step.resolved is resolved


@pytest.mark.parametrize(("resolved", "control"), [(True, "allow"), (False, "deny")])
async def test_resolved_decides(resolved, control):
    decision = await decide(BeforePermission(tool="bash", proposed="ask"), {"resolved": resolved})
    assert decision.control == control


async def test_batch_envelope_lists_the_results_in_order():
    results = [{"tool": "bash", "is_error": True}, {"tool": "read", "is_error": False}]
    assert envelope(AfterToolBatch(results=results))["results"] == results


async def test_context_may_be_added_after_a_batch():
    decision = await decide(AfterToolBatch(results=[]), {"additional_context": ["mind the time"]})
    assert decision.context == ("mind the time",)


# --- step: input and model ----------------------------------------------------------------------


@pytest.mark.parametrize("new", ["rewritten", ["rewritten", "in two parts"]])
async def test_input_is_rewritten_as_string_or_list(new):
    assert (await decide(BeforeInput(input="original"), {"input": new})).step.input == new


@pytest.mark.parametrize(
    ("prefix", "given", "expected"),
    [
        ("be brief. ", "hello", "be brief. hello"),
        (["be", "brief"], "hello", ["be", "brief", "hello"]),
        ("be brief", ["hello", "you"], ["be brief", "hello", "you"]),
        (["be", "brief"], ["hello", "you"], ["be", "brief", "hello", "you"]),
    ],
)
async def test_prepended_input_comes_first(prefix, given, expected):
    assert (await decide(BeforeInput(input=given), {"prepend_input": prefix})).step.input == expected


async def test_input_is_rewritten_before_something_is_prepended():
    verdict = {"prepend_input": ["first"], "input": ["second"]}
    assert (await decide(BeforeInput(input="original"), verdict)).step.input == ["first", "second"]


async def test_what_a_later_hook_prepends_comes_first():
    decision = await decide(BeforeInput(input=["input"]), {"prepend_input": ["one"]}, {"prepend_input": ["two"]})
    assert decision.step.input == ["two", "one", "input"]


@pytest.mark.parametrize("field", ["input", "prepend_input"])
async def test_input_that_is_neither_text_nor_blocks_is_an_error(field):
    (failure,) = (await decide(BeforeInput(input="original"), {field: 7})).failures
    assert field in failure.error


async def test_model_is_switched():
    assert (await decide(BeforeModel(model="large"), {"model": "small"})).step.model == "small"


async def test_assistant_answers_in_place_of_the_model():
    assert (await decide(BeforeModel(model="large"), {"assistant": "cached"})).step.assistant == "cached"


async def test_control_stays_proceed_when_the_assistant_answers():
    assert (await decide(BeforeModel(model="large"), {"assistant": "cached"})).control == "proceed"


# --- pipeline -----------------------------------------------------------------------------------

CONTEXT = [{"additional_context": ["one"]}, {"additional_context": ["two"]}]


async def test_verdicts_accumulate():
    assert (await decide(BeforeTurnEnd(), *CONTEXT)).context == ("one", "two")


async def test_verdicts_accumulate_and_then_break():
    decision = await decide(BeforeTurnEnd(), *CONTEXT, {"control": "break", "additional_context": ["three"]})
    assert (decision.control, decision.context) == ("stop", ("one", "two", "three"))


async def test_changes_that_come_with_a_break_are_applied():
    decision = await decide(BASH, {"control": "break", "args": {"command": "true"}})
    assert decision.step.args == {"command": "true"}


@pytest.mark.parametrize("control", ["break", "continue", "veto"])
async def test_pipeline_stops_at_the_first_control(control):
    first = {"control": control, "additional_context": ["said"]}
    decision = await decide(BeforeTurnEnd(), first, {"additional_context": ["never said"]})
    assert decision.context == ("said",)


async def test_each_handler_sees_the_envelope_as_changed_so_far(hooks):
    seen = []
    hooks.add(saying({"args": {"command": "ls -l"}}), on="before_tool", name="change")
    hooks.add(lambda step: seen.append(envelope(step)["args"]), on="before_tool", name="read")
    await hooks.dispatch(BASH)
    assert seen == [{"command": "ls -l"}]


MALFORMED_THEN_FINE = [{"control": "explode"}, {"args": {"command": "true"}}]


async def test_error_may_be_skipped():
    decision = await decide(BASH, *MALFORMED_THEN_FINE, on_failure="open")
    assert (decision.control, decision.step.args) == ("proceed", {"command": "true"})


@pytest.mark.parametrize(("policy", "control"), [("closed", "deny"), ("abort", "abort")])
async def test_error_may_block(policy, control):
    assert (await decide(BASH, *MALFORMED_THEN_FINE, on_failure=policy)).control == control


@pytest.mark.parametrize("policy", ["closed", "abort"])
async def test_error_that_blocks_stops_the_pipeline(policy):
    assert (await decide(BASH, *MALFORMED_THEN_FINE, on_failure=policy)).step == BASH


# --- engine -------------------------------------------------------------------------------------

EVENT_STEPS = {
    "after_session_enter": SessionStart(source="resume"),
    "after_turn_enter": TurnStart(is_subagent=True, agent_type="scout"),
    "before_ingest": BeforeInput(source="background", input="hello"),
    "after_ingest": AfterInput(committed_len=3),
    "before_compact": BeforeCompact(token_estimate=9000, threshold=8000),
    "after_compact": AfterCompact(tokens_before=9000, tokens_after=800),
    "before_generate": BeforeModel(model="large", message_count=4, attempt=2),
    "after_generate": AfterModel(model="large", usage={"input_tokens": 7}, stop_reason="end_turn"),
    "before_permission": BeforePermission(tool="bash", proposed="ask"),
    "after_permission": AfterPermission(tool="bash", granted=True),
    "before_tool_apply": BASH,
    "after_tool_apply": AfterTool(tool="bash", output="done"),
    "after_tool_batch": AfterToolBatch(results=[]),
    "before_turn_end": BeforeTurnEnd(),
}


@pytest.mark.parametrize("name", EVENT_STEPS)
async def test_events_are_routed_to_their_own_hooks(hooks, name):
    step, reached = EVENT_STEPS[name], []
    for event in EVENTS:
        hooks.add(lambda step, event=event: reached.append((event, step)), on=event, name=event)
    await hooks.dispatch(step)
    assert reached == [(step.event, step)]


@pytest.mark.parametrize("name", EVENT_STEPS)
async def test_no_handler_proceeds(hooks, name):
    assert (await hooks.dispatch(EVENT_STEPS[name])).control == "proceed"


@pytest.mark.parametrize(("tool", "control"), [("bash", "deny"), ("bash_2", "proceed"), ("read", "proceed")])
async def test_tool_filter(hooks, tool, control):
    hooks.add(saying({"control": "veto"}), on="before_tool", tool="bash")
    assert (await hooks.dispatch(BeforeTool(tool=tool))).control == control


@pytest.mark.parametrize(("tool", "control"), [("fs.read", "deny"), ("net.read", "proceed")])
async def test_tool_filter_with_a_glob(hooks, tool, control):
    hooks.add(saying({"control": "veto"}), on="before_tool", tool="fs.*")
    assert (await hooks.dispatch(BeforeTool(tool=tool))).control == control


@pytest.mark.parametrize(
    ("safety", "control"),
    [("read_only", "proceed"), ("mutating", "deny"), ("destructive", "deny"), ("network", "proceed")],
)
async def test_safety_filter_takes_any_of_several(hooks, safety, control):
    hooks.add(saying({"control": "veto"}), on="before_tool", safety=["mutating", "destructive"])
    assert (await hooks.dispatch(BeforeTool(tool="t", safety=safety))).control == control


@pytest.mark.parametrize(
    ("tool", "safety", "control"),
    [("bash", "mutating", "deny"), ("bash", "read_only", "proceed"), ("read", "mutating", "proceed")],
)
async def test_tool_and_safety_must_both_match(hooks, tool, safety, control):
    hooks.add(saying({"control": "veto"}), on="before_tool", tool="bash", safety="mutating")
    assert (await hooks.dispatch(BeforeTool(tool=tool, safety=safety))).control == control


@pytest.mark.parametrize("kind", [BeforeTurnEnd, BeforeCompact, SessionStart], ids=lambda kind: kind.event)
async def test_every_handler_gets_the_common_header(hooks, kind):
    seen = []
    hooks.add(lambda step: seen.append(envelope(step)), on=kind.event, name="read")
    session = hooks.session("s-1", cwd="/repo")
    await session.dispatch(session.step(kind))
    header = {"event": kind.event, "session_id": "s-1", "cwd": "/repo"}
    assert seen[0].items() >= header.items()


async def test_dispatch_in_flight_keeps_the_old_table(hooks):
    started, go_on = asyncio.Event(), asyncio.Event()

    async def waits(step):
        started.set()
        await go_on.wait()

    old = [Hook(waits, "before_tool"), Hook(saying({"control": "veto", "reason": "old"}), "before_tool", name="judge")]
    hooks.replace_all(old, source="policy")
    in_flight = asyncio.create_task(hooks.dispatch(BASH))
    await started.wait()
    hooks.replace_all([], source="policy")
    go_on.set()
    assert (await in_flight).reason == "old"


async def test_next_dispatch_has_the_new_table(hooks):
    hooks.replace_all([Hook(saying({"control": "veto"}), "before_tool")], source="policy")
    hooks.replace_all([], source="policy")
    assert (await hooks.dispatch(BASH)).control == "proceed"
