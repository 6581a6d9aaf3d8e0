"""Verdicts as values: making them, reading them strictly, sanitising their text, applying them whole or not at all."""

import copy
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from fairlead import (
    EVENTS,
    Context,
    Decision,
    HookAborted,
    Hooks,
    MalformedVerdict,
    UnknownName,
    Verdict,
    abort,
    allow,
    answer,
    ask,
    change,
    deny,
    extend,
    inject,
    read_verdict,
    retry,
    skip,
    skip_rest,
    stop,
    warn,
)
from fairlead.lifecycle import (
    AfterTool,
    BeforeInput,
    BeforeModel,
    BeforePermission,
    BeforeTool,
    BeforeTurnEnd,
    Notification,
    SessionStart,
    Step,
)

BASH = BeforeTool(tool="Bash", args={"command": "ls"})


def decide(said: Any, step: Step = BASH, name: str = "h", **options: Any) -> Decision[Any]:
    hooks = Hooks()
    hooks.add(lambda step: said, on=step.event, name=name, **options)
    return hooks.dispatch_sync(step)


def malformed(said: Any, step: Step = BASH) -> str:
    """What the failure says, given that the verdict is malformed and nothing came of it."""
    decision = decide(said, step, on_failure="open")
    (failure,) = decision.failures
    assert (failure.kind, decision.step, decision.control) == ("malformed", step, "proceed")
    return failure.error


# --- making ---------------------------------------------------------------------------------

TEXT_IS_THE_REASON = {
    "deny": deny, "ask": ask, "allow": allow, "skip": skip, "stop": stop, "extend": extend, "retry": retry,
    "abort": abort, "skip_rest": skip_rest,
}  # fmt: skip


@pytest.mark.parametrize("control", TEXT_IS_THE_REASON)
def test_a_constructor_takes_its_text_first(control: str) -> None:
    verdict = TEXT_IS_THE_REASON[control]("because")
    assert (verdict.control, verdict.reason) == (control, "because")


@pytest.mark.parametrize("control", TEXT_IS_THE_REASON)
def test_the_text_of_a_constructor_is_optional(control: str) -> None:
    verdict = TEXT_IS_THE_REASON[control]()
    assert (verdict.control, verdict.reason) == (control, None)


@pytest.mark.parametrize("make", [change, inject, answer, warn], ids=lambda make: make.__name__)
def test_the_text_of_every_other_constructor_is_optional_too(make: Callable[..., Verdict]) -> None:
    assert make().control == "proceed"


def test_change_takes_its_reason_first() -> None:
    verdict = change("tidier", args={"command": "pwd"})
    assert (verdict.control, verdict.reason, verdict.changes) == ("proceed", "tidier", {"args": {"command": "pwd"}})


def test_inject_takes_its_context_first() -> None:
    assert inject("You are on main.").context == ("You are on main.",)


def test_warn_takes_its_warning_first() -> None:
    assert warn("careful").warnings == ("careful",)


def test_answer_takes_the_result_first() -> None:
    assert decide(answer("cached")).step.result == "cached"


def test_answer_says_whether_it_is_an_error() -> None:
    decision = decide(answer("no such file", is_error=True))
    assert (decision.step.result, decision.step.is_error) == ("no such file", True)


def test_answer_at_before_model_is_the_assistants() -> None:
    assert decide(answer("cached"), BeforeModel()).step.assistant == "cached"


def test_stop_ends_the_turn_normally_unless_told_otherwise() -> None:
    assert stop().stop_reason == "end_turn"


REASONS = ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]


@pytest.mark.parametrize("reason", REASONS)
def test_stop_takes_a_stop_reason(reason: Any) -> None:
    assert decide(stop("enough", stop_reason=reason)).stop_reason == reason


def test_an_unknown_stop_reason_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"refusl.*did you mean 'refusal'"):
        stop(stop_reason="refusl")  # type: ignore[arg-type]


def test_a_constructor_takes_context_warnings_and_metadata_along() -> None:
    verdict = deny("no", context="why not", warnings=["w1", "w2"], metadata={"k": 1})
    assert (verdict.context, verdict.warnings, verdict.metadata) == (("why not",), ("w1", "w2"), {"k": 1})


def test_a_constructor_takes_several_contexts() -> None:
    assert deny("no", context=["a", "b"]).context == ("a", "b")


def test_a_constructor_takes_changes_along() -> None:
    assert deny("no", args={"command": "true"}).changes == {"args": {"command": "true"}}


def test_a_change_of_none_is_no_change() -> None:
    assert change(args=None).changes == {}


@pytest.mark.parametrize(
    ("make", "field", "meant"),
    [
        (change, "arg", "args"),
        (change, "comand", "command"),
        (change, "system_promt", "system_prompt"),
        (deny, "reslt", "result"),
        (answer, "is_eror", "is_error"),
        (extend, "mesage", "message"),
    ],
)
def test_an_unknown_field_suggests_the_nearest(make: Callable[..., Verdict], field: str, meant: str) -> None:
    with pytest.raises(UnknownName, match=f"{field}.*did you mean '{meant}'"):
        make("x", **{field: "y"})


@pytest.mark.parametrize(
    ("field", "meant"),
    [("warnigs", "warnings"), ("contxt", "context"), ("stop_reson", "stop_reason"), ("metdata", "metadata")],
)
def test_a_misspelt_option_suggests_the_option(field: str, meant: str) -> None:
    with pytest.raises(UnknownName, match=f"{field}.*did you mean '{meant}'"):
        deny("x", **{field: "y"})


@pytest.mark.parametrize("make", [deny, ask, allow, skip, stop, extend, retry, abort, skip_rest, change, inject, warn])
def test_every_constructor_refuses_an_unknown_field(make: Callable[..., Verdict]) -> None:
    with pytest.raises(UnknownName, match="colour"):
        make("x", colour="red")


def test_a_field_of_another_event_is_refused_when_it_is_applied_not_when_it_is_made() -> None:
    assert "system_prompt" in malformed(change(system_prompt="hi"))


def test_a_verdict_cannot_be_edited() -> None:
    verdict = deny("no")
    with pytest.raises(AttributeError):
        verdict.control = "proceed"  # type: ignore[misc]


# --- reading --------------------------------------------------------------------------------


def read(data: Any, event: str = "before_tool") -> Verdict:
    return read_verdict(data, EVENTS[event])


FULL = {
    "control": "stop", "reason": "r", "name": "n", "stop_reason": "refusal", "additional_context": ["c"],
    "warnings": ["w"], "metadata": {"k": [1]}, "args": {"command": "pwd"},
}  # fmt: skip


@pytest.mark.parametrize(
    "encode",
    [dict, json.dumps, lambda data: json.dumps(data).encode()],
    ids=["mapping", "text", "bytes"],
)
def test_a_verdict_is_read_from_its_json_object(encode: Callable[[Any], Any]) -> None:
    assert read(encode(FULL)) == Verdict(
        "stop", "r", "n", "refusal", ("c",), ("w",), {"k": [1]}, {"args": {"command": "pwd"}}
    )


@pytest.mark.parametrize("key", FULL)
def test_null_is_absent(key: str) -> None:
    assert read({key: None}) == read({})


def test_the_event_may_be_given_by_its_name() -> None:
    assert read_verdict({"control": "deny"}, "before_tool") == deny()


def test_a_stop_that_is_read_is_the_stop_that_is_made() -> None:
    assert read({"control": "stop"}) == stop()


def test_null_by_itself_is_no_opinion() -> None:
    assert read("null") == Verdict()


def test_every_key_may_be_null_at_once() -> None:
    assert read(json.dumps(dict.fromkeys(FULL))) == read("{}")


def test_an_unknown_key_is_malformed() -> None:
    with pytest.raises(MalformedVerdict, match="permissionDecision"):
        read({"permissionDecision": "deny"})


def test_an_unknown_key_suggests_the_nearest() -> None:
    with pytest.raises(MalformedVerdict, match=r"contrl.*did you mean 'control'"):
        read({"contrl": "deny"})


def test_a_malformed_verdict_says_which_field() -> None:
    with pytest.raises(MalformedVerdict) as caught:
        read({"additional_context": 5})
    assert caught.value.field == "additional_context"


@pytest.mark.parametrize("word", ["block", "approve", "DENY", "Deny", " deny", "", "true"])
def test_an_unknown_control_is_malformed(word: str) -> None:
    with pytest.raises(MalformedVerdict, match="control"):
        read({"control": word})


def test_an_unknown_control_suggests_the_nearest() -> None:
    with pytest.raises(MalformedVerdict, match=r"'dney'.*did you mean 'deny'"):
        read({"control": "dney"})


def test_an_unknown_control_of_a_verdict_suggests_the_nearest() -> None:
    assert "'dney'; did you mean 'deny'" in malformed(Verdict(control="dney"))  # type: ignore[arg-type]


NOT_TEXT = [5, 0, True, False, 1.5, [], ["deny"], {}, {"a": 1}]


@pytest.mark.parametrize("control", NOT_TEXT)
def test_a_control_that_is_not_text_is_malformed(control: Any) -> None:
    with pytest.raises(MalformedVerdict, match="control"):
        read({"control": control})


@pytest.mark.parametrize("field", ["reason", "name"])
@pytest.mark.parametrize("value", NOT_TEXT)
def test_text_that_is_not_text_is_malformed(field: str, value: Any) -> None:
    assert f": {field}: " in malformed({"control": "deny", field: value})


@pytest.mark.parametrize("value", ["because", "", "stop", 5, [], {}, True, "END_TURN"])
def test_an_unknown_stop_reason_is_malformed(value: Any) -> None:
    assert "stop_reason" in malformed({"control": "stop", "stop_reason": value})


def test_a_stop_reason_without_stop_is_malformed() -> None:
    assert "stop_reason" in malformed({"control": "deny", "stop_reason": "refusal"})


def test_a_stop_without_a_reason_ends_the_turn() -> None:
    assert decide({"control": "stop"}).stop_reason == "end_turn"


@pytest.mark.parametrize("field", ["additional_context", "warnings"])
@pytest.mark.parametrize("value", ["one text", 5, True, {}, {"a": "b"}, [5], ["a", None], [["a"]], [{"text": "a"}]])
def test_a_list_of_texts_is_nothing_else(field: str, value: Any) -> None:
    with pytest.raises(MalformedVerdict, match=field):
        read({field: value})


@pytest.mark.parametrize("value", ["text", 5, True, [], [{}]])
def test_metadata_is_an_object(value: Any) -> None:
    assert "metadata" in malformed({"metadata": value})


CONTENT_FIELDS = [
    ("result", BASH),
    ("output", AfterTool(tool="Bash")),
    ("assistant", BeforeModel()),
]


@pytest.mark.parametrize(("field", "step"), CONTENT_FIELDS, ids=[field for field, _ in CONTENT_FIELDS])
@pytest.mark.parametrize("value", [5, True, False, 1.5, [1], ["text"], [None], [[]], [{"type": "text"}, "text"]])
def test_content_is_text_an_object_or_blocks_and_nothing_else(field: str, step: Step, value: Any) -> None:
    assert f": {field}: " in malformed({field: value}, step)


@pytest.mark.parametrize(("field", "step"), CONTENT_FIELDS, ids=[field for field, _ in CONTENT_FIELDS])
@pytest.mark.parametrize("value", ["", "text", {}, {"a": [1]}, [], [{"type": "text", "text": "a"}]])
def test_content_may_be_text_an_object_or_blocks(field: str, step: Step, value: Any) -> None:
    decision = decide({field: value}, step)
    assert decision.failures == ()
    assert getattr(decision.step, field) == value


@pytest.mark.parametrize("value", ["ls", ["ls"], 5, True, [], [["command", "ls"]]])
def test_args_are_an_object(value: Any) -> None:
    assert ": args: " in malformed({"args": value})


@pytest.mark.parametrize(
    "data",
    [b"", "", b"{", '{"control":', b"deny", "{'control': 'deny'}", b"\xff\xfe", b'{"a":1}{"b":2}', "NaN", "{} x"],
)
def test_what_is_not_json_is_malformed(data: Any) -> None:
    with pytest.raises(MalformedVerdict, match="not JSON"):
        read(data)


@pytest.mark.parametrize("data", ["5", '"deny"', "[]", '["deny"]', "true", "false", "1.5", '[{"control":"deny"}]'])
def test_json_that_is_not_an_object_is_malformed(data: str) -> None:
    with pytest.raises(MalformedVerdict, match="object"):
        read(data)


@pytest.mark.parametrize("depth", [10, 100, 500, 900, 1_000, 10_000, 200_000])
@pytest.mark.parametrize("key", ["control", "reason", "additional_context", "metadata", "unknown"])
def test_deeply_nested_json_is_read_or_malformed(key: str, depth: int) -> None:
    try:
        verdict = read(f'{{"{key}":' + "[" * depth + "]" * depth + "}")
    except MalformedVerdict:
        return
    assert isinstance(verdict, Verdict)


def test_text_that_cannot_be_encoded_is_malformed() -> None:
    with pytest.raises(MalformedVerdict):
        read('{"reason": "\ud800"}')


@pytest.mark.parametrize(
    "said", [True, False, 0, 1, "deny", "", b"", 1.5, [], ["deny"], ("deny",), {1}, object(), deny]
)
def test_a_return_value_that_is_no_verdict_is_malformed(said: Any) -> None:
    assert "verdict" in malformed(said)


def test_a_return_value_that_is_no_verdict_is_named_with_its_type() -> None:
    assert malformed(5).endswith("a hook returns a verdict or None, not int 5")


@pytest.mark.parametrize(("size", "shown"), [(58, "x" * 58), (59, "x" * 56 + "...")])
def test_a_return_value_is_quoted_up_to_60_characters(size: int, shown: str) -> None:
    assert malformed("x" * size).partition("not str '")[2].rstrip("'") == shown


class Unspeakable:
    """Not even its repr works."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")


def deep(depth: int, kind: str) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"a": value} if kind == "dict" else [value]
    return value


GARBAGE = {
    "an object without a repr": Unspeakable(),
    "an object without a repr as reason": {"reason": Unspeakable()},
    "an object without a repr as control": {"control": Unspeakable()},
    "a number too long to print": {"reason": 10**5000},
    "a number too long to print as control": {"control": 10**5000},
    "a number too long to print as key": {10**5000: 1},
    "deep lists as reason": {"reason": deep(20_000, "list")},
    "deep lists as control": {"control": deep(20_000, "list")},
    "deep dicts as args": {"args": {"a": deep(20_000, "dict")}},
    "deep lists as args": {"args": {"a": deep(20_000, "list")}},
    "deep dicts as a verdict's args": change(args={"a": deep(20_000, "dict")}),
    "deep lists as result": {"result": [{"a": deep(20_000, "list")}]},
    "a list as a verdict's control": Verdict(control=["deny"]),  # type: ignore[arg-type]
    "a dict as a verdict's stop reason": Verdict(control="stop", stop_reason={}),  # type: ignore[arg-type]
    "a number as a verdict's context": Verdict(context=5),  # type: ignore[arg-type]
    "a text as a verdict's context": Verdict(context="text"),  # type: ignore[arg-type]
    "a text as a verdict's warnings": Verdict(warnings="text"),  # type: ignore[arg-type]
    "a list as a verdict's changes": Verdict(changes=["args"]),  # type: ignore[arg-type]
    "a key that is no text": Verdict(changes={5: 1}),  # type: ignore[dict-item]
    "args whose keys are no texts": change(args={5: 1}),
    "keys of several types": {5: 1, "control": "deny", None: 2},
}


@pytest.mark.parametrize("said", GARBAGE.values(), ids=GARBAGE)
def test_garbage_is_malformed_and_never_gets_out_of_dispatch(said: Any) -> None:
    assert malformed(said)


@pytest.mark.parametrize("depth", [100, 300, 600, 900])
def test_arguments_as_deep_as_json_goes_are_taken_or_malformed(depth: int) -> None:
    said = json.loads('{"args":{"a":' + "[" * depth + "]" * depth + "}}")
    decision = decide(said, on_failure="open")
    assert decision.step.args == said["args"] or decision.failures[0].kind == "malformed"


def test_changes_of_several_key_types_are_malformed_from_a_gate_too() -> None:
    decision = decide(Verdict(changes={5: 1, "args": {}}), phase="gate", on_failure="open")  # type: ignore[dict-item]
    assert decision.failures[0].kind == "malformed"


# --- text for models --------------------------------------------------------------------------


def reason(text: str) -> str | None:
    return decide(deny(text)).reason


def context(text: str) -> str:
    return decide(inject(text)).context[0]


def warning(text: str) -> str:
    return decide(warn(text)).warnings[0]


def feedback(text: str) -> str:
    return decide(extend(text), BeforeTurnEnd()).context[0]


TEXTS = {"reason": reason, "context": context, "warning": warning, "feedback": feedback}
texts = pytest.mark.parametrize("shown", TEXTS.values(), ids=TEXTS)


@texts
def test_ordinary_text_is_left_alone(shown: Any) -> None:
    text = "Tests fail:\n\t2 of 3, naïve, 日本語, 🎣, עברית"
    assert shown(text) == text


@texts
@pytest.mark.parametrize("size", [4095, 4096])
def test_text_up_to_4_kib_is_left_alone(shown: Any, size: int) -> None:
    assert shown("x" * size) == "x" * size


@texts
@pytest.mark.parametrize("char", ["x", "é", "日", "🎣"])
@pytest.mark.parametrize("more", [1, 2, 3, 100_000])
def test_longer_text_is_cut_to_4_kib(shown: Any, char: str, more: int) -> None:
    text = char * (4096 // len(char.encode()) + more)
    assert 4000 < len(shown(text).encode()) <= 4096


def test_cut_text_keeps_its_beginning() -> None:
    assert context("begin " + "x" * 5000).startswith("begin xxx")


def test_cut_text_loses_its_last_word_which_may_be_half_a_secret() -> None:
    assert context("x" * 4000 + " " + "y" * 200) == "x" * 4000 + " [cut]"


@pytest.mark.parametrize(("length", "is_kept"), [(256, False), (257, True)])
def test_the_last_word_is_lost_if_it_has_up_to_256_characters(length: int, is_kept: bool) -> None:
    kept = 4096 - len(" [cut]")
    before = "x" * (kept - length - 1)
    assert context(f"{before} {'y' * 1000}") == (f"{before} {'y' * length}" if is_kept else before) + " [cut]"


CONTROL = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"]
BIDI = list("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@pytest.mark.parametrize("char", CONTROL + BIDI, ids=lambda char: f"U+{ord(char):04X}")
def test_control_and_bidi_characters_are_stripped(char: str) -> None:
    assert context(f"a{char}b") == "ab"


@texts
def test_an_escape_sequence_does_not_survive(shown: Any) -> None:
    assert shown("\x1b[2J\u202egnp.exe") == "[2Jgnp.exe"


def test_a_lone_surrogate_does_not_survive() -> None:
    assert context("a\ud800b") == "ab"


def test_each_context_is_capped_by_itself() -> None:
    decision = decide(change(context=["x" * 4096, "y" * 4096]))
    assert decision.context == ("x" * 4096, "y" * 4096)


def test_context_carries_the_name_of_its_hook() -> None:
    decision = decide(inject("note"), name="notes")
    assert isinstance(decision.context[0], Context)
    assert decision.context[0].hook == "notes"


def test_a_reason_carries_the_name_of_its_hook() -> None:
    assert decide(deny("no"), name="guard").hook == "guard"


def test_an_abort_carries_the_name_of_its_hook() -> None:
    with pytest.raises(HookAborted) as caught:
        decide(abort("broken"), name="guard").raise_for_abort()
    assert str(caught.value) == "[guard:hook_abort] broken"


def test_an_abort_may_give_another_name() -> None:
    with pytest.raises(HookAborted) as caught:
        decide(abort("broken", name="budget"), name="guard").raise_for_abort()
    assert str(caught.value) == "[budget:hook_abort] broken"


def test_a_failure_carries_the_name_of_its_hook() -> None:
    decision = decide({"contrl": "deny"}, name="guard")
    assert (decision.hook, decision.failures[0].hook) == ("guard", "guard")
    assert "guard" in (decision.reason or "")


def test_the_text_of_a_failure_is_capped_and_stripped() -> None:
    failure = decide({"\x1b[31m" + "x" * 9000: 1}).failures[0]
    assert "\x1b" not in failure.error
    assert len(failure.error.encode()) <= 4096


# --- verdicts are values ----------------------------------------------------------------------

SHARED: dict[str, tuple[Verdict, Step]] = {
    "change of args": (change(args={"command": "pwd", "deep": {"list": [1]}}), BASH),
    "change of command": (change(command="pwd"), BASH),
    "answer": (answer([{"type": "text"}]), BASH),
    "context and metadata": (inject("a", metadata={"k": [1]}, warnings="w"), BASH),
    "prepend_input": (change(prepend_input=["a"]), BeforeInput(input="b")),
    "resolved": (change(resolved=True), BeforePermission(tool="Bash")),
    "messages": (change(messages=[{"role": "user"}]), BeforeModel()),
    "malformed": (change(args={}, resolved=True), BASH),
    "too long": (inject("x" * 9000), BASH),
}


@pytest.mark.parametrize(("verdict", "step"), SHARED.values(), ids=SHARED)
def test_a_verdict_shared_by_hooks_and_dispatches_is_never_changed(verdict: Verdict, step: Step) -> None:
    pristine, hooks = copy.deepcopy(verdict), Hooks()
    hooks.add(lambda step: verdict, on=step.event, name="first", on_failure="open")
    hooks.add(lambda step: verdict, on=step.event, name="second", on_failure="open")
    for _ in range(2):
        hooks.dispatch_sync(step)
    assert verdict == pristine


@pytest.mark.parametrize(("verdict", "step"), SHARED.values(), ids=SHARED)
def test_a_shared_verdict_says_the_same_each_time(verdict: Verdict, step: Step) -> None:
    first, second = (decide(verdict, step, on_failure="open") for _ in range(2))
    assert (first.step, first.control, first.context) == (second.step, second.control, second.context)


def test_the_values_of_a_verdict_stay_editable_for_the_hook_that_made_it() -> None:
    args = {"command": "pwd", "list": [1]}
    decision = decide(change(args=args))
    args["list"].append(2)  # type: ignore[attr-defined]
    assert decision.step.args == {"command": "pwd", "list": [1]}


def test_the_metadata_of_a_verdict_stays_editable_for_the_hook_that_made_it() -> None:
    metadata = {"tries": [1]}
    decision = decide(inject("note", metadata=metadata))
    metadata["tries"].append(2)
    assert decision.verdicts[0].verdict.metadata == {"tries": [1]}


def test_a_verdict_without_changes_leaves_the_step_itself() -> None:
    assert decide(deny("no")).step is BASH


def test_a_mapping_that_was_returned_is_never_changed() -> None:
    said = {"control": "deny", "args": {"command": "pwd"}, "additional_context": ["c"], "name": None}
    pristine = copy.deepcopy(said)
    decide(said)
    assert said == pristine


# --- what cannot be changed ---------------------------------------------------------------------


def test_a_field_that_cannot_be_changed_names_those_that_can() -> None:
    error = malformed(change(system_prompt="x"))
    assert error.endswith("cannot be changed at before_tool; a hook may change args, result, is_error there")


def test_a_field_where_nothing_can_be_changed_says_so() -> None:
    assert malformed(change(args={}), SessionStart()).endswith("at session_start; nothing may be changed there")


def test_an_answer_where_there_is_none_names_the_events_that_take_one() -> None:
    error = malformed(answer("x"), SessionStart())
    assert error.endswith("answer: session_start cannot be answered; before_model and before_tool can")


def test_an_answer_is_given_once() -> None:
    assert malformed(answer("x", result="y")).endswith("answer: given twice, as answer(...) and as result=")


# --- whole or not at all ----------------------------------------------------------------------

HALF_WRONG: dict[str, tuple[Any, Step]] = {
    "a good and an unknown field": ({"args": {"command": "pwd"}, "colour": "red"}, BASH),
    "a good and a foreign field": (change(args={"command": "pwd"}, system_prompt="x"), BASH),
    "a foreign field first": (change(system_prompt="x", args={"command": "pwd"}), BASH),
    "a good and a badly typed field": (change(args={"command": "pwd"}, result=5), BASH),
    "a good command, a badly typed error": (change(command="pwd", is_error="no"), BASH),
    "good args, a url the tool does not take": (change(args={"command": "pwd"}, url="https://a.example"), BASH),
    "a good field, a control not taken": (extend("x", args={"command": "pwd"}), BASH),
    "a good field, a bad context": ({"args": {"command": "pwd"}, "additional_context": "text"}, BASH),
    "a good field, a bad reason": ({"args": {"command": "pwd"}, "reason": 5}, BASH),
    "a good field, a stray stop_reason": ({"args": {"command": "pwd"}, "stop_reason": "refusal"}, BASH),
    "a good field, context not taken": (change(message="quiet", context="x"), Notification(message="loud")),
    "a good field, resolved against the control": (deny(resolved=True), BeforePermission(tool="Bash")),
    "good context, a bad change": (inject("note", args=5), BASH),
    "good metadata, a bad change": ({"metadata": {"k": 1}, "warnings": ["w"], "source": "fork"}, SessionStart()),
}


@pytest.mark.parametrize(("said", "step"), HALF_WRONG.values(), ids=HALF_WRONG)
def test_a_verdict_that_is_wrong_in_part_changes_nothing(said: Any, step: Step) -> None:
    decision = decide(said, step, on_failure="open")
    assert decision.failures[0].kind == "malformed"
    assert decision.step == step
    assert decision.control == "proceed"


@pytest.mark.parametrize(("said", "step"), HALF_WRONG.values(), ids=HALF_WRONG)
def test_a_verdict_that_is_wrong_in_part_adds_nothing(said: Any, step: Step) -> None:
    decision = decide(said, step, on_failure="open")
    assert (decision.context, decision.metadata, decision.verdicts) == ((), {}, ())


def test_a_verdict_that_is_wrong_in_part_denies_when_failures_are_closed() -> None:
    decision = decide(allow("fine", args={"command": "pwd"}, result=5))
    assert (decision.control, decision.cause, decision.step) == ("deny", "failure", BASH)


def test_a_verdict_that_is_right_in_all_parts_is_applied_whole() -> None:
    decision = decide(change("tidy", args={"command": "pwd"}, result="x", is_error=False, context="c", warnings="w"))
    assert (decision.step.args, decision.step.result, decision.step.is_error) == ({"command": "pwd"}, "x", False)
    assert (decision.context, decision.warnings, decision.failures) == (("c",), ("w",), ())


def test_args_replace_and_never_merge() -> None:
    step = BeforeTool(tool="Bash", args={"command": "ls", "timeout": 5})
    assert decide(change(args={"command": "pwd"}), step).step.args == {"command": "pwd"}


def test_what_a_verdict_does_not_say_is_not_encoded() -> None:
    assert msgspec.json.encode(deny("no")) == b'{"control":"deny","reason":"no"}'
