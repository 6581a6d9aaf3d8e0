"""Every event x every control x every changeable field: what DESIGN allows works, what it does not is malformed.

`ROWS` is DESIGN's lifecycle table written out by hand. It must not be derived from the source.
"""

from typing import Any

import pytest

from fairlead import (
    EVENTS,
    Approval,
    ApprovalRequest,
    Decision,
    Hooks,
    Verdict,
    abort,
    allow,
    answer,
    ask,
    change,
    deny,
    extend,
    inject,
    retry,
    skip,
    skip_rest,
    stop,
)

# event: (changeable fields, controls beyond those taken everywhere, veto)
ROWS: dict[str, tuple[str, str, str | None]] = {
    "session_start": ("", "deny stop", "abort"),
    "session_end": ("", "deny", None),
    "before_request": ("state session_id checkpoint_id", "", "abort"),
    "after_request": ("state checkpoint_id", "", "abort"),
    "before_input": ("input prepend_input", "deny stop", "deny"),
    "after_input": ("", "stop", "stop"),
    "turn_start": ("", "stop", "stop"),
    "before_prompt": ("system_prompt", "stop", "stop"),
    "before_compact": ("", "skip stop", "skip"),
    "after_compact": ("", "stop", None),
    "before_model": ("model messages assistant", "deny stop", "stop"),
    "after_model": ("output", "deny stop", "deny"),
    "tool_requested": ("", "stop", None),
    "before_tool": ("args result is_error", "deny ask allow stop", "deny"),
    "before_permission": ("resolved", "deny ask allow stop", "deny"),
    "after_permission": ("", "stop", None),
    "after_tool": ("output", "deny retry stop", "deny"),
    "after_tool_batch": ("", "stop", "stop"),
    "before_turn_end": ("", "extend stop", "extend"),
    "before_response": ("response", "deny", "deny"),
    "before_output": ("content", "deny", "deny"),
    "turn_end": ("", "", None),
    "subagent_start": ("initial_message", "deny", "deny"),
    "subagent_stop": ("", "extend", "extend"),
    "notification": ("message", "skip", "skip"),
    "error": ("", "", None),
}
NO_CONTEXT = {"session_end", "turn_end", "before_response", "before_output", "notification", "error"}
TOOL_EVENTS = {"tool_requested", "before_tool", "before_permission", "after_permission", "after_tool"}

MAKE: dict[str, Any] = {
    "proceed": change, "deny": deny, "ask": ask, "allow": allow, "skip": skip, "stop": stop, "extend": extend,
    "retry": retry, "abort": abort, "skip_rest": skip_rest,
}  # fmt: skip
EVERYWHERE = {"proceed", "abort", "skip_rest"}

VALUES: dict[str, Any] = {
    "state": {"n": 1}, "session_id": "s2", "checkpoint_id": "c2", "input": "new input", "prepend_input": "first, ",
    "system_prompt": "be brief", "model": "small", "messages": [{"role": "user"}], "assistant": "cached",
    "output": "redacted", "args": {"command": "pwd"}, "result": "answered", "is_error": True, "resolved": True,
    "response": "other words", "content": "shown", "initial_message": "go", "message": "quieter",
}  # fmt: skip
WRONG: dict[str, Any] = dict.fromkeys(VALUES, 5) | {"is_error": "yes", "resolved": "yes"}
del WRONG["state"]  # it may be anything


def taken(event: str) -> set[str]:
    return EVERYWHERE | set(ROWS[event][1].split())


def changeable(event: str) -> list[str]:
    return ROWS[event][0].split()


def step_of(event: str, **fields: Any) -> Any:
    if event in TOOL_EVENTS:
        fields = {"tool": "Bash", "args": {"command": "ls"}} | fields
    if event == "before_input":
        fields = {"input": "old input"} | fields
    return EVENTS[event].step(**fields)


async def approve(request: ApprovalRequest) -> Approval:
    return Approval("allow", "ann")


def decide(event: str, said: Any, step: Any = None, **options: Any) -> Decision[Any]:
    hooks = Hooks(approver=approve)
    hooks.add(lambda step: said, on=event, name="h", **options)
    return hooks.dispatch_sync(step_of(event) if step is None else step)


def test_the_table_names_every_event() -> None:
    assert list(ROWS) == list(EVENTS)


def test_the_values_cover_every_changeable_field() -> None:
    assert set(VALUES) == {field for event in ROWS for field in changeable(event)}


# --- controls -------------------------------------------------------------------------------

FOLDED = {"skip_rest": "proceed", "ask": "allow"}  # the approver of this module says yes
AS = {"python": lambda control: MAKE[control]("why"), "json": lambda control: {"control": control, "reason": "why"}}
forms = pytest.mark.parametrize("form", ["python", "json"])


def pairs(is_taken: bool) -> list[tuple[str, str]]:
    return [(event, control) for event in ROWS for control in MAKE if (control in taken(event)) is is_taken]


@forms
@pytest.mark.parametrize(("event", "control"), pairs(True))
def test_a_control_the_event_takes_decides(event: str, control: str, form: str) -> None:
    decision = decide(event, AS[form](control))
    assert decision.failures == ()
    assert decision.control == FOLDED.get(control, control)


@forms
@pytest.mark.parametrize(("event", "control"), pairs(True))
def test_a_control_the_event_takes_is_kept_among_the_opinions(event: str, control: str, form: str) -> None:
    decision = decide(event, AS[form](control))
    assert [(hook_verdict.verdict.control, hook_verdict.verdict.reason) for hook_verdict in decision.verdicts] == [
        (control, "why")
    ]


@forms
@pytest.mark.parametrize(("event", "control"), pairs(False))
def test_a_control_the_event_does_not_take_is_malformed(event: str, control: str, form: str) -> None:
    decision = decide(event, AS[form](control), on_failure="open")
    (failure,) = decision.failures
    assert failure.kind == "malformed"
    assert repr(control) in failure.error
    assert event in failure.error


@forms
@pytest.mark.parametrize(("event", "control"), pairs(False))
def test_a_malformed_control_is_no_opinion_when_failures_are_open(event: str, control: str, form: str) -> None:
    decision = decide(event, AS[form](control), on_failure="open")
    assert (decision.control, decision.verdicts, decision.cause) == ("proceed", (), None)


@forms
@pytest.mark.parametrize(("event", "control"), pairs(False))
def test_a_malformed_control_is_the_veto_when_failures_are_closed(event: str, control: str, form: str) -> None:
    veto = ROWS[event][2]
    held = veto if veto in ("abort", "deny", "stop") else None
    decision = decide(event, AS[form](control), on_failure="closed")
    assert decision.failures[0].control == held
    assert (decision.control, decision.cause) == ((held, "failure") if held else ("proceed", None))


@forms
@pytest.mark.parametrize("event", ROWS)
def test_a_malformed_control_aborts_when_failures_abort(event: str, form: str) -> None:
    never = next(control for control in MAKE if control not in taken(event))
    decision = decide(event, AS[form](never), on_failure="abort")
    assert (decision.control, decision.cause) == ("abort", "failure")


@forms
@pytest.mark.parametrize("event", ["before_tool", "before_permission"])
def test_a_refused_ask_is_a_deny(event: str, form: str) -> None:
    async def refuse(request: ApprovalRequest) -> Approval:
        return Approval("deny", "ann")

    hooks = Hooks(approver=refuse)
    hooks.add(lambda step: AS[form]("ask"), on=event, name="h")
    decision = hooks.dispatch_sync(step_of(event))
    assert (decision.control, decision.cause) == ("deny", "approval")


@forms
@pytest.mark.parametrize("event", ["before_tool", "before_permission"])
def test_an_ask_without_an_approver_is_a_deny(event: str, form: str) -> None:
    hooks = Hooks()
    hooks.add(lambda step: AS[form]("ask"), on=event, name="h")
    decision = hooks.dispatch_sync(step_of(event))
    assert (decision.control, decision.cause) == ("deny", "approval")


@forms
def test_retry_is_malformed_where_nothing_was_executed(form: str) -> None:
    step = step_of("after_tool", outcome="denied", executed=False)
    decision = decide("after_tool", AS[form]("retry"), step, on_failure="open")
    assert decision.control == "proceed"
    assert decision.failures[0].kind == "malformed"
    assert "retry" in decision.failures[0].error


@pytest.mark.parametrize("control", ["proceed", "deny", "stop", "abort", "skip_rest"])
def test_only_retry_needs_something_executed(control: str) -> None:
    step = step_of("after_tool", outcome="denied", executed=False)
    assert decide("after_tool", AS["python"](control), step).failures == ()


# --- the words of the wire --------------------------------------------------------------------


@pytest.mark.parametrize("event", [event for event, row in ROWS.items() if row[2]])
def test_veto_is_what_the_event_says_it_is(event: str) -> None:
    decision = decide(event, {"control": "veto", "reason": "why"})
    assert decision.failures == ()
    assert (decision.control, decision.reason) == (ROWS[event][2], "why")


@pytest.mark.parametrize("event", [event for event, row in ROWS.items() if not row[2]])
def test_veto_is_malformed_where_there_is_none(event: str) -> None:
    decision = decide(event, {"control": "veto"}, on_failure="open")
    assert decision.failures[0].kind == "malformed"
    assert "veto" in decision.failures[0].error


WORDS = {"break": "stop", "continue": "extend"}


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("event", ROWS)
def test_a_seed_word_is_its_control_or_malformed(event: str, word: str) -> None:
    decision = decide(event, {"control": word}, on_failure="open")
    if WORDS[word] in taken(event):
        assert (decision.control, decision.failures) == (WORDS[word], ())
    else:
        assert decision.control == "proceed"
        assert decision.failures[0].kind == "malformed"
        assert "control" in decision.failures[0].error


@pytest.mark.parametrize("word", ["veto", "break", "continue"])
def test_a_seed_word_is_not_a_control_of_a_verdict_object(word: str) -> None:
    decision = decide("before_tool", Verdict(control=word), on_failure="open")  # type: ignore[arg-type]
    assert decision.failures[0].kind == "malformed"


# --- fields ---------------------------------------------------------------------------------

CHANGE = {"python": lambda field, value: change(**{field: value}), "json": lambda field, value: {field: value}}


FIELDS = [(event, field) for event in ROWS for field in changeable(event)]
PLAIN = [(event, field) for event, field in FIELDS if field not in ("prepend_input", "resolved", "is_error")]


@forms
@pytest.mark.parametrize(("event", "field"), PLAIN)
def test_a_changeable_field_is_changed(event: str, field: str, form: str) -> None:
    decision = decide(event, CHANGE[form](field, VALUES[field]))
    assert decision.failures == ()
    assert decision.control == "proceed"
    assert getattr(decision.step, field) == VALUES[field]


@forms
def test_is_error_without_a_result_says_nothing(form: str) -> None:
    decision = decide("before_tool", CHANGE[form]("is_error", True))
    assert (decision.failures, decision.changed, decision.step.is_error) == ((), (), None)


def test_a_result_is_no_error_because_the_one_before_was() -> None:
    hooks = Hooks()
    hooks.add(lambda step: answer("no such file", is_error=True), on="before_tool", name="first")
    hooks.add(lambda step: answer("found"), on="before_tool", name="second")
    decision = hooks.dispatch_sync(step_of("before_tool"))
    assert (decision.step.result, decision.step.is_error) == ("found", None)


@forms
@pytest.mark.parametrize(("event", "field"), PLAIN)
def test_a_changed_field_is_listed(event: str, field: str, form: str) -> None:
    follows = {"target"} if field == "args" else set()
    assert set(decide(event, CHANGE[form](field, VALUES[field])).changed) == {field} | follows


@forms
@pytest.mark.parametrize(("event", "field"), PLAIN)
def test_the_original_step_is_kept(event: str, field: str, form: str) -> None:
    step = step_of(event)
    assert decide(event, CHANGE[form](field, VALUES[field]), step).original is step


@forms
@pytest.mark.parametrize("event", ROWS)
def test_a_field_the_event_does_not_change_is_malformed(event: str, form: str) -> None:
    step = step_of(event)
    for field in VALUES.keys() - changeable(event):
        decision = decide(event, CHANGE[form](field, VALUES[field]), step, on_failure="open")
        assert (decision.step, decision.changed, decision.control) == (step, (), "proceed")
        (failure,) = decision.failures
        assert failure.kind == "malformed"
        assert f": {field}: " in failure.error
        assert event in failure.error


@forms
@pytest.mark.parametrize("event", ROWS)
def test_a_malformed_change_is_the_veto_when_failures_are_closed(event: str, form: str) -> None:
    veto = ROWS[event][2]
    held = veto if veto in ("abort", "deny", "stop") else None
    for field in VALUES.keys() - changeable(event):
        decision = decide(event, CHANGE[form](field, VALUES[field]), on_failure="closed")
        assert (decision.failures[0].control, field) == (held, field)
        assert (decision.control, decision.cause) == ((held, "failure") if held else ("proceed", None))


@forms
@pytest.mark.parametrize(("event", "field"), [pair for pair in FIELDS if pair[1] in WRONG])
def test_a_value_of_the_wrong_type_is_malformed(event: str, field: str, form: str) -> None:
    step = step_of(event)
    decision = decide(event, CHANGE[form](field, WRONG[field]), step, on_failure="open")
    assert decision.step == step
    assert decision.failures[0].kind == "malformed"
    assert f": {field}: " in decision.failures[0].error


@forms
@pytest.mark.parametrize(("event", "field"), FIELDS)
def test_a_gate_changes_nothing(event: str, field: str, form: str) -> None:
    step = step_of(event)
    decision = decide(event, CHANGE[form](field, VALUES[field]), step, phase="gate", on_failure="open")
    assert decision.step == step
    assert decision.failures[0].kind == "malformed"
    assert field in decision.failures[0].error


@forms
@pytest.mark.parametrize(
    ("old", "prefix", "new"),
    [
        ("b", "a", "ab"),
        (["b"], "a", ["a", "b"]),
        ("b", ["a"], ["a", "b"]),
        ([{"t": 2}], [{"t": 1}], [{"t": 1}, {"t": 2}]),
        ("", "a", "a"),
    ],
)
def test_prepend_input_folds_into_input(old: Any, prefix: Any, new: Any, form: str) -> None:
    decision = decide("before_input", CHANGE[form]("prepend_input", prefix), step_of("before_input", input=old))
    assert (decision.step.input, decision.changed) == (new, ("input",))


def test_prepend_input_goes_before_an_input_changed_by_the_same_verdict() -> None:
    assert decide("before_input", change(input="new", prepend_input="first, ")).step.input == "first, new"


@forms
@pytest.mark.parametrize(("resolved", "control"), [(True, "allow"), (False, "deny")])
def test_resolved_reads_as_allow_or_deny(resolved: bool, control: str, form: str) -> None:
    decision = decide("before_permission", CHANGE[form]("resolved", resolved))
    assert (decision.control, decision.step.resolved, decision.cause) == (control, resolved, "policy")


@pytest.mark.parametrize(
    "said",
    [deny(resolved=True), allow(resolved=False), ask(resolved=True), ask(resolved=False), stop(resolved=True)],
    ids=["deny, true", "allow, false", "ask, true", "ask, false", "stop, true"],
)
def test_resolved_against_the_control_is_malformed(said: Verdict) -> None:
    decision = decide("before_permission", said, on_failure="open")
    assert decision.failures[0].kind == "malformed"
    assert "resolved" in decision.failures[0].error


@pytest.mark.parametrize("said", [allow(resolved=True), deny(resolved=False)], ids=["allow, true", "deny, false"])
def test_resolved_may_agree_with_the_control(said: Verdict) -> None:
    decision = decide("before_permission", said)
    assert (decision.control, decision.failures) == (said.control, ())


# --- answering, context, metadata -------------------------------------------------------------

ANSWERS = {"before_tool": "result", "before_model": "assistant"}


@pytest.mark.parametrize("event", ROWS)
def test_an_answer_is_taken_in_place_of_a_tool_or_a_model_only(event: str) -> None:
    decision = decide(event, answer("cached"), on_failure="open")
    if event in ANSWERS:
        assert decision.failures == ()
        assert getattr(decision.step, ANSWERS[event]) == "cached"
    else:
        assert decision.failures[0].kind == "malformed"
        assert "answer" in decision.failures[0].error


CONTEXT = {"python": inject("a note"), "json": {"additional_context": ["a note"]}}


@forms
@pytest.mark.parametrize("event", [event for event in ROWS if event not in NO_CONTEXT])
def test_context_is_added(event: str, form: str) -> None:
    decision = decide(event, CONTEXT[form])
    assert (decision.context, decision.failures) == (("a note",), ())


@forms
@pytest.mark.parametrize("event", sorted(NO_CONTEXT))
def test_context_is_malformed_where_no_model_would_read_it(event: str, form: str) -> None:
    decision = decide(event, CONTEXT[form], on_failure="open")
    assert decision.context == ()
    assert decision.failures[0].kind == "malformed"
    assert "additional_context" in decision.failures[0].error


@pytest.mark.parametrize("event", ROWS)
def test_warnings_and_metadata_are_taken_everywhere(event: str) -> None:
    decision = decide(event, {"warnings": ["careful"], "metadata": {"k": 1}})
    assert (decision.warnings, decision.metadata, decision.failures) == (("careful",), {"k": 1}, ())


@pytest.mark.parametrize("event", ROWS)
def test_an_empty_object_is_no_objection_anywhere(event: str) -> None:
    decision = decide(event, {})
    assert (decision.control, decision.changed, decision.failures) == ("proceed", (), ())


@pytest.mark.parametrize("event", ROWS)
def test_none_is_no_opinion_anywhere(event: str) -> None:
    decision = decide(event, None)
    assert (decision.control, decision.verdicts, decision.failures) == ("proceed", (), ())


TARGETS = {"command": "pwd", "paths": ["a"], "url": "https://a.example/"}


@forms
@pytest.mark.parametrize("field", TARGETS)
@pytest.mark.parametrize("event", [event for event in ROWS if event != "before_tool"])
def test_a_target_is_only_changed_where_arguments_are(event: str, field: str, form: str) -> None:
    decision = decide(event, CHANGE[form](field, TARGETS[field]), on_failure="open")
    assert decision.failures[0].kind == "malformed"
    assert field in decision.failures[0].error
