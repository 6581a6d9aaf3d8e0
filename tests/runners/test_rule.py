"""Rules: wrong when they are made, or a failure when they are run, but never silently nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead import EVENTS, Approval, ApprovalRequest, Decision, Hooks, UnknownName, Verdict
from fairlead.lifecycle import Agent
from fairlead.runners.rule import BadRule, Rule, RuleFailed
from fairlead.testing import every_step, step

quick = settings(deadline=None, max_examples=150, derandomize=True, database=None)


def holds(expression: str, event: str = "before_tool", **fields: Any) -> bool:
    """Whether a rule holds on a step of this event."""
    return Rule(expression, on=event, warn="it holds")(step(event, **fields)) is not None


def failure(expression: str, event: str = "before_tool", **fields: Any) -> str:
    """What a rule that can be made complains of, on a step of this event."""
    rule = Rule(expression, on=event, warn="it holds")
    with pytest.raises(RuleFailed) as caught:
        rule(step(event, **fields))
    return str(caught.value)


def refused(expression: str = "true", *, on: Any = "before_tool", **outcomes: Any) -> str:
    """What is wrong with a rule that cannot be made."""
    with pytest.raises((BadRule, UnknownName)) as caught:
        Rule(expression, on=on, **(outcomes or {"warn": "it holds"}))
    return str(caught.value)


def decide(rule: Rule, event: str = "before_tool", *, of: Any = None, **options: Any) -> Decision[Any]:
    """The decision of a table that has only this rule."""
    hooks = Hooks(record=True)
    hooks.add(rule, on=event, name="rule", **options)
    return hooks.dispatch_sync(step(event, **(of or {})))


def changed(event: str, field: str, value: Any, **edits: str) -> Any:
    """What a field becomes by these edits."""
    return getattr(decide(Rule("true", on=event, change={field: edits}), event, of={field: value}).step, field)


def within(seconds: float, work: Callable[[], Any]) -> Any:
    """What the work gives, on a thread that is waited for only so long."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append((work(), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert outcome, f"not done within {seconds:g} s"
    value, error = outcome[0]
    if error is not None:
        raise error
    return value


# --- what a rule says ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "event"),
    [
        ("deny", "before_tool"),
        ("ask", "before_tool"),
        ("allow", "before_tool"),
        ("stop", "turn_start"),
        ("skip", "before_compact"),
        ("extend", "before_turn_end"),
        ("abort", "session_start"),
    ],
)
def test_a_rule_that_holds_says_its_control_with_its_text_as_the_reason(word: str, event: str) -> None:
    verdict = Rule("true", on=event, **{word: "because"})(step(event))
    assert verdict is not None
    assert (verdict.control, verdict.reason) == (word, "because")


@pytest.mark.parametrize("word", ["deny", "ask", "allow", "stop", "abort", "warn", "inject"])
def test_a_rule_that_does_not_hold_says_nothing(word: str) -> None:
    assert Rule("false", on="before_tool", **{word: "because"})(step("before_tool")) is None


def test_deny_denies_by_policy() -> None:
    decision = decide(Rule("tool == 'bash'", on="before_tool", deny="not here"))
    assert (decision.control, decision.reason, decision.cause) == ("deny", "not here", "policy")


def test_ask_leaves_it_to_the_approver() -> None:
    async def approve(request: ApprovalRequest) -> Approval:
        return Approval("allow", why=f"yes to {request.question}")

    hooks = Hooks(approver=approve)
    hooks.add(Rule("true", on="before_tool", ask="really?"), on="before_tool", name="rule")
    decision = hooks.dispatch_sync(step("before_tool"))
    assert (decision.control, decision.cause, decision.reason) == ("allow", "approval", "yes to really?")


def test_allow_grants() -> None:
    assert decide(Rule("true", on="before_permission", allow="fine"), "before_permission").control == "allow"


def test_stop_ends_the_turn() -> None:
    decision = decide(Rule("true", on="turn_start", stop="enough"), "turn_start")
    assert (decision.control, decision.stop_reason, decision.reason) == ("stop", "end_turn", "enough")


def test_extend_gives_feedback() -> None:
    assert list(decide(Rule("true", on="before_turn_end", extend="go on"), "before_turn_end").context) == ["go on"]


def test_warn_only_warns() -> None:
    decision = decide(Rule("true", on="before_tool", warn="careful"))
    assert (decision.control, decision.warnings) == ("proceed", ("careful",))


def test_inject_adds_context() -> None:
    decision = decide(Rule("true", on="before_input", inject="be brief"), "before_input")
    assert (decision.control, list(decision.context)) == ("proceed", ["be brief"])


def test_an_outcome_may_be_joined_by_a_warning_context_and_a_change() -> None:
    rule = Rule("true", on="before_input", deny="no", warn="w", inject="c", change={"input": {"replace": "r"}})
    assert rule(step("before_input")) == Verdict("deny", "no", None, None, ("c",), ("w",), None, {"input": "r"})


def test_an_empty_text_is_no_reason() -> None:
    verdict = Rule("true", on="before_tool", deny="")(step("before_tool"))
    assert verdict is not None
    assert (verdict.control, verdict.reason) == ("deny", None)


@pytest.mark.parametrize("word", ["deny", "ask", "warn", "inject"])
def test_the_text_of_an_outcome_is_a_template(word: str) -> None:
    verdict = Rule("true", on="before_tool", **{word: "{tool}: {target.command}"})(step("before_tool"))
    assert verdict is not None
    assert "bash: echo hello" in (verdict.reason, *verdict.warnings, *verdict.context)


def test_a_rule_shows_its_expression() -> None:
    assert repr(Rule("tool == 'rm'", on="before_tool", deny="no")) == "<rule tool == 'rm'>"


# --- what is wrong with what it says ------------------------------------------------------------


def test_a_rule_without_an_outcome_is_refused() -> None:
    with pytest.raises(BadRule, match="what is to happen"):
        Rule("true", on="before_tool")


def test_an_outcome_of_none_is_no_outcome() -> None:
    assert "what is to happen" in refused(deny=None)


def test_a_misspelt_outcome_is_refused_with_a_suggestion() -> None:
    assert "did you mean 'deny'" in refused(dney="no")


def test_two_controls_exclude_one_another() -> None:
    assert refused(deny="no", ask="really?") == "a rule cannot both deny and ask"


@pytest.mark.parametrize("what", [True, 5, ["no"], {"text": "no"}])
def test_an_outcome_that_is_no_text_is_refused(what: Any) -> None:
    assert "takes a text" in refused(deny=what)


def test_a_misspelt_field_in_a_text_is_refused_with_a_suggestion() -> None:
    assert "did you mean 'tool'" in refused(deny="{tol} is not allowed")


def test_a_misspelt_event_is_refused_with_a_suggestion() -> None:
    assert "did you mean 'before_tool'" in refused(on="befor_tool")


@pytest.mark.parametrize("word", ["deny", "ask", "allow", "stop", "skip", "extend", "abort"])
@pytest.mark.parametrize("event", EVENTS)
def test_a_control_is_refused_by_every_event_that_does_not_take_it(event: str, word: str) -> None:
    if word in EVENTS[event].controls:
        verdict = Rule("true", on=event, **{word: "x"})(step(event))
        assert verdict is not None
        assert verdict.control == word
    else:
        assert f"{event} does not take '{word}'" in refused(on=event, **{word: "x"})


@pytest.mark.parametrize("event", EVENTS)
def test_context_is_refused_by_every_event_that_does_not_take_it(event: str) -> None:
    if EVENTS[event].context:
        assert decide(Rule("true", on=event, inject="x"), event).context == ("x",)
    else:
        assert f"{event} takes no context" in refused(on=event, inject="x")


@pytest.mark.parametrize("event", EVENTS)
def test_every_event_takes_a_warning(event: str) -> None:
    assert decide(Rule("true", on=event, warn="x"), event).warnings == ("x",)


def test_one_of_several_events_that_does_not_take_the_outcome_is_enough_to_refuse_it() -> None:
    assert "turn_start does not take 'deny'" in refused(on=["before_tool", "turn_start"], deny="x")


def test_a_rule_on_all_events_says_only_what_all_of_them_take() -> None:
    rule = Rule("event != ''", on="*", abort="{event}")
    assert [verdict.reason for s in every_step() if (verdict := rule(s))] == list(EVENTS)
    assert "does not take 'deny'" in refused(on="*", deny="x")


# --- seed 004: regex -> reject or replace, prepend, append -----------------------------------------

POINTS = [("before_input", "input"), ("before_output", "content"), ("before_response", "response")]
"""Where the seed's bundled rules edit a text: inbound, outbound and the response."""


@pytest.mark.parametrize(("event", "field"), POINTS)
def test_seed_004_a_regex_rejects(event: str, field: str) -> None:
    rule = Rule(f"{field}.matches('(?i)secret')", on=event, deny="[rejected]")
    decision = decide(rule, event, of={field: "a Secret plan"})
    assert (decision.control, decision.reason) == ("deny", "[rejected]")


@pytest.mark.parametrize(("event", "field"), POINTS)
def test_seed_004_a_regex_that_finds_nothing_rejects_nothing(event: str, field: str) -> None:
    assert (
        decide(Rule(f"{field}.matches('secret')", on=event, deny="x"), event, of={field: "a plan"}).contributions == ()
    )


@pytest.mark.parametrize(("event", "field"), POINTS)
def test_seed_004_a_regex_replaces_all_it_finds(event: str, field: str) -> None:
    assert changed(event, field, "sk-1 and sk-2", match=r"sk-\w+", replace="[key]") == "[key] and [key]"


@pytest.mark.parametrize(("event", "field"), POINTS)
def test_seed_004_a_rule_prepends(event: str, field: str) -> None:
    assert changed(event, field, "text", prepend="before ") == "before text"


@pytest.mark.parametrize(("event", "field"), POINTS)
def test_seed_004_a_rule_appends(event: str, field: str) -> None:
    assert changed(event, field, "text", append=" after") == "text after"


def test_seed_004_a_tool_call_is_rejected_by_regex() -> None:
    rule = Rule(r"target.command.matches('rm\\s+-rf')", on="before_tool", deny="no")
    assert decide(rule, of={"args": {"command": "rm  -rf /"}}).denied


def test_seed_004_the_parameters_of_a_tool_call_are_replaced() -> None:
    rule = Rule("true", on="before_tool", change={"command": {"match": "^npm", "replace": "pnpm"}})
    decision = decide(rule, of={"args": {"command": "npm install npm", "cwd": "/"}})
    assert decision.step.args == {"command": "pnpm install npm", "cwd": "/"}


def test_seed_004_modifications_chain() -> None:
    hooks = Hooks()
    for name, priority in (("third", 200), ("first", 10), ("second", 100)):
        rule = Rule("true", on="before_input", change={"input": {"append": f" {name}"}})
        hooks.add(rule, on="before_input", name=name, priority=priority)
    assert hooks.dispatch_sync(step("before_input")).step.input == "hello first second third"


def test_seed_004_a_later_rule_reads_what_an_earlier_one_made() -> None:
    hooks = Hooks()
    change = {"input": {"match": "hello", "replace": "goodbye"}}
    hooks.add(Rule("true", on="before_input", change=change), on="before_input", name="one")
    hooks.add(Rule("input == 'goodbye'", on="before_input", deny="no"), on="before_input", name="two")
    assert hooks.dispatch_sync(step("before_input")).hook == "two"


def test_seed_004_modified_only_when_the_result_differs() -> None:
    rule = Rule("true", on="before_response", change={"response": {"match": "x", "replace": "y"}})
    assert decide(rule, "before_response").changed == ()


@pytest.mark.parametrize("event", ["session_start", "session_end"])
def test_seed_004_session_events_have_nothing_to_modify(event: str) -> None:
    assert f"to change at {event}" in refused(on=event, change={"reason": {"append": "x"}})


# --- change -------------------------------------------------------------------------------------

TEXTS = {
    "before_input": "input", "before_prompt": "system_prompt", "before_model": "model", "after_model": "output",
    "before_tool": "command", "after_tool": "output", "before_response": "response", "before_output": "content",
    "subagent_start": "initial_message", "notification": "message",
}  # fmt: skip
"""Every event with a text to change, and that text."""


@pytest.mark.parametrize("event", TEXTS)
def test_the_text_of_every_event_that_has_one_can_be_edited(event: str) -> None:
    decision = decide(Rule("true", on=event, change={TEXTS[event]: {"append": "!"}}), event)
    field = TEXTS[event]
    before, after = (getattr(s.target if field == "command" else s, field) for s in (decision.original, decision.step))
    assert after == before + "!"


@pytest.mark.parametrize("event", [event for event in EVENTS if event not in TEXTS])
def test_an_event_without_a_text_to_change_refuses_a_change(event: str) -> None:
    assert f"unknown field 'response' to change at {event}" in refused(on=event, change={"response": {"append": "x"}})


def test_the_url_of_a_tool_call_can_be_edited() -> None:
    rule = Rule("true", on="before_tool", change={"url": {"match": "^http:", "replace": "https:"}})
    decision = decide(rule, of={"tool": "WebFetch", "args": {"url": "http://example.com"}})
    assert decision.step.args == {"url": "https://example.com"}


def test_several_fields_can_be_edited_at_once() -> None:
    rule = Rule("true", on="before_model", change={"model": {"replace": "m"}, "assistant": {"replace": "a"}})
    decision = decide(rule, "before_model")
    assert (decision.step.model, decision.step.assistant) == ("m", "a")


def test_replace_without_match_replaces_all_of_it() -> None:
    assert changed("before_response", "response", "anything", replace="something") == "something"


def test_edits_go_together() -> None:
    edits = {"match": "b", "replace": "-", "prepend": "<", "append": ">"}
    assert changed("before_response", "response", "abc", **edits) == "<a-c>"


def test_what_is_replaced_is_literal() -> None:
    assert changed("before_response", "response", "ab", match="(a)(b)", replace=r"\2\1\g<1>$1") == r"\2\1\g<1>$1"


def test_the_texts_of_an_edit_are_templates() -> None:
    assert changed("before_response", "response", "x", match="x", replace="{session_id}") == "session-1"


def test_a_pattern_is_no_template() -> None:
    assert changed("before_response", "response", "{session_id}", match=r"\{session_id\}", replace="x") == "x"


def test_what_is_filled_into_an_edit_is_not_read_again() -> None:
    rule = Rule("true", on="before_response", change={"response": {"append": " {channel}"}})
    assert decide(rule, "before_response", of={"channel": "{session_id}"}).step.response == "done {session_id}"


BLOCKS = [{"type": "text", "text": "a key"}, {"type": "image", "data": "AAAA"}]


@pytest.mark.parametrize(
    ("event", "field"),
    [
        ("after_tool", "output"),
        ("after_model", "output"),
        ("before_response", "response"),
        ("before_output", "content"),
    ],
)
def test_a_match_is_replaced_in_the_text_of_every_block(event: str, field: str) -> None:
    got = changed(event, field, BLOCKS, match="key", replace="---")
    assert got == [{"type": "text", "text": "a ---"}, {"type": "image", "data": "AAAA"}]


def test_a_match_is_replaced_in_the_text_of_a_single_block() -> None:
    assert changed("after_tool", "output", BLOCKS[0], match="key", replace="---") == {"type": "text", "text": "a ---"}


def test_a_match_is_replaced_in_every_text_of_an_input() -> None:
    assert changed("before_input", "input", ["a key", BLOCKS[0]], match="key", replace="---") == [
        "a ---",
        {"type": "text", "text": "a ---"},
    ]


@pytest.mark.parametrize("event", ["after_tool", "after_model"])
def test_blocks_are_put_around_blocks(event: str) -> None:
    got = changed(event, "output", [BLOCKS[0]], prepend="<", append=">")
    assert got == [{"type": "text", "text": "<"}, BLOCKS[0], {"type": "text", "text": ">"}]


def test_texts_are_put_around_the_texts_of_an_input() -> None:
    assert changed("before_input", "input", ["a", BLOCKS[0]], prepend="<", append=">") == ["<", "a", BLOCKS[0], ">"]


def test_adding_to_what_is_no_text_is_a_failure() -> None:
    decision = decide(
        Rule("true", on="after_tool", change={"output": {"append": "x"}}), "after_tool", of={"output": {"rows": 1}}
    )
    assert (decision.cause, decision.failures[0].kind, decision.changed) == ("failure", "error", ())


def test_a_command_cannot_be_given_to_a_tool_without_one() -> None:
    rule = Rule("true", on="before_tool", change={"command": {"prepend": "echo "}})
    assert decide(rule, of={"tool": "Read", "args": {"file_path": "x"}}).failures[0].kind == "malformed"


@pytest.mark.parametrize("change", ["response", {}, [], 5, {"response": {}}, {"response": "x"}, {"response": None}])
def test_a_change_that_names_no_edit_is_refused(change: Any) -> None:
    refused(on="before_response", change=change)


@pytest.mark.parametrize("text", [5, None, ["x"]])
def test_an_edit_that_is_no_text_is_refused(text: Any) -> None:
    assert "takes texts for match, replace, prepend, append" in refused(
        on="before_response", change={"response": {"append": text}}
    )


def test_a_misspelt_edit_is_refused_with_a_suggestion() -> None:
    assert "did you mean 'append'" in refused(on="before_response", change={"response": {"apend": "x"}})


def test_a_misspelt_field_to_change_is_refused_with_a_suggestion() -> None:
    assert "did you mean 'response'" in refused(on="before_response", change={"respnse": {"append": "x"}})


@pytest.mark.parametrize("field", ["args", "is_error", "tool", "session_id"])
def test_a_field_that_is_no_text_cannot_be_edited(field: str) -> None:
    assert f"unknown field '{field}' to change at before_tool" in refused(change={field: {"append": "x"}})


def test_a_match_without_a_replacement_is_refused() -> None:
    assert "replace says what it becomes" in refused(on="before_response", change={"response": {"match": "x"}})


@pytest.mark.parametrize("pattern", ["(", "[a", "a{2,1}", "*a", r"(?=a)", r"(a)\1", r"\8"])
def test_a_bad_pattern_to_match_is_refused(pattern: str) -> None:
    problem = refused(on="before_response", change={"response": {"match": pattern, "replace": "x"}})
    assert problem.startswith("bad regular expression")


def test_a_misspelt_field_in_the_text_of_an_edit_is_refused() -> None:
    assert "did you mean 'session_id'" in refused(on="before_response", change={"response": {"append": "{sesion_id}"}})


# --- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expression",
    [
        "tol == 'x'",
        "true || tol == 'x'",
        "false && tol == 'x'",
        "true ? true : tol == 'x'",
        "has(tol)",
        "!has(tool) && has(tol)",
        "[1].exists(x, tol == 'x')",
        "false && [].all(x, tol == 'x')",
        "true || [tol] == []",
        "true || {'a': tol} == {}",
        "true || {tol: 1} == {}",
        "true || args[tol] == 1",
        "true || size(tol) == 1",
        "true || (tol)",
        "true || !tol",
        "true || args.x.contains(tol)",
        "true || tol.matches('x')",
        "true // tool\n || tol",
    ],
)
def test_an_unknown_name_is_refused_wherever_it_stands(expression: str) -> None:
    assert refused(expression) == "unknown name 'tol' at before_tool; did you mean 'tool'?"


@pytest.mark.parametrize(
    "expression",
    [
        "tool.startswith('x')",
        "true || tool.startswith('x')",
        "false && tool.startswith('x')",
        "true ? true : tool.startswith('x')",
        "true || startswith(tool)",
        "true || args.a.b.startswith('x')",
        "false && [].exists(x, x.startswith('x'))",
        "true || 'x'.startswith('x')",
    ],
)
def test_an_unknown_function_is_refused_wherever_it_stands(expression: str) -> None:
    assert refused(expression) == "unknown function 'startswith'; did you mean 'startsWith'?"


@pytest.mark.parametrize("name", ["found", "eval", "exec", "print", "open", "getattr", "__import__"])
def test_a_function_of_the_engine_or_of_python_is_unknown(name: str) -> None:
    assert f"unknown function '{name}'" in refused(f"true || tool.{name}('x')")
    assert f"unknown function '{name}'" in refused(f"true || {name}('x')")


@pytest.mark.parametrize(
    ("expression", "meant"),
    [
        ("target.comand == 'x'", "target.command"),
        ("true || target.comand == 'x'", "target.command"),
        ("true || has(target.comand)", "target.command"),
        ("true || step.target.comand == 'x'", "target.command"),
        ("true || agent.nam == 'x'", "agent.name"),
        ("true || step.agent.nam == 'x'", "agent.name"),
        ("true || step.tol == 'x'", "step.tool"),
    ],
)
def test_a_misspelt_part_of_what_is_known_is_refused(expression: str, meant: str) -> None:
    assert f"did you mean '{meant}'" in refused(expression)


@pytest.mark.parametrize("expression", ["tool == 'x'", "true || tool == 'x'", "!has(tool)"])
def test_a_name_must_be_known_at_every_event_the_rule_is_on(expression: str) -> None:
    assert "unknown name 'tool' at turn_start" in refused(expression, on=["before_tool", "turn_start"])


@pytest.mark.parametrize("event", EVENTS)
def test_every_field_of_every_event_can_be_read(event: str) -> None:
    given = step(event)
    for name in ("event", *given.__struct_fields__):
        value = getattr(given, name)
        assert holds(f"has({name})", event) == (value is not None), name
        assert holds(f"has(step.{name})", event) == (value is not None), name


@pytest.mark.parametrize("name", ["event", "session_id", "turn_id", "cwd", "user_id", "channel", "host", "metadata"])
def test_the_header_can_be_read_at_all_events(name: str) -> None:
    Rule(f"has({name})", on="*", warn="x")


def test_a_rule_may_be_on_several_events() -> None:
    rule = Rule("tool == 'bash'", on=["before_tool", "after_tool"], deny="{event}")
    assert [rule(step(event)).reason for event in ("before_tool", "after_tool")] == ["before_tool", "after_tool"]  # type: ignore[union-attr]


def test_step_is_all_of_it() -> None:
    assert holds("step.event == 'before_tool' && step.tool == 'bash' && step.args.command == 'echo hello'")


def test_a_field_may_be_looked_up_by_a_text() -> None:
    assert holds("args['command'] == 'echo hello' && step['tool'] == 'bash'")


def test_the_inside_of_arguments_may_have_any_name() -> None:
    args = {"tol": 1, "target": {"comand": 2}, "agent": {"x": 3}, "step": {"y": 4}}
    assert holds("args.tol + args.target.comand + args.agent.x + args.step.y == 10", args=args)


@pytest.mark.parametrize(
    "expression",
    ["", "   ", "tool ==", "tool = 'x'", "(tool", "tool == 'x", "tool; tool", "tool 'x'", "// only this", "a b", "1 +"],
)
def test_what_is_no_expression_is_refused(expression: str) -> None:
    with pytest.raises(BadRule, match="syntax error"):
        Rule(expression, on="before_tool", deny="no")


@pytest.mark.parametrize("expression", [None, 5, b"true", ["true"], "true" + " " * 10_000])
def test_an_expression_is_a_text_of_limited_length(expression: Any) -> None:
    assert "at most 10000 characters" in refused(expression)


@pytest.mark.parametrize("nested", ["(" * 4990 + "true" + ")" * 4990, "[" * 10_000, "size(" * 1600 + "1" + ")" * 1600])
def test_an_expression_that_is_nested_too_deeply_is_refused(nested: str) -> None:
    with pytest.raises(BadRule):
        Rule(nested, on="before_tool", deny="no")


@pytest.mark.parametrize("long", ["!" * 9990 + "true", " && ".join(["true"] * 1200), "1" + "+1" * 40 + "== 41"])
def test_an_expression_may_be_long(long: str) -> None:
    assert holds(long)


# --- what is not set ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("result == 'x'", "result"),
        ("has(tool) && result == 'x'", "result"),
        ("agent.name == 'x'", "agent"),
        ("metadata.x == 1", "metadata"),
        ("is_error", "is_error"),
        ("!is_error", "is_error"),
        ("result != null", "result"),
    ],
)
def test_reading_a_field_that_is_not_set_is_a_failure(expression: str, name: str) -> None:
    assert failure(expression) == f"{name} is not set; guard it with has({name})"


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("target.url == 'x'", "url"),
        ("step.result == 'x'", "result"),
        ("args.missing == 'x'", "missing"),
        ("args['missing'] == 'x'", "missing"),
        ("args.missing.deep == 'x'", "missing"),
        ("!(args.missing == 'x')", "missing"),
        ("has(args.missing.deep)", "missing"),
    ],
)
def test_reading_a_part_that_is_not_set_is_a_failure(expression: str, name: str) -> None:
    assert failure(expression) == f"'{name}' is not set; guard it with has()"


@pytest.mark.parametrize(
    "expression",
    [
        "has(result)",
        "has(result) && result == 'x'",
        "has( result )",
        "has(\n\tresult\n)",
        "has(step.result) && step.result == 'x'",
        "has(target.url) && target.url == 'x'",
        "has(args.missing) && args.missing == 'x'",
        "has(args.missing) && has(args.missing.deep) && args.missing.deep == 'x'",
        "has(agent) && has(agent.name) && agent.name == 'x'",
        "has(metadata) ? metadata.x == 1 : false",
        "'missing' in args && args['missing'] == 'x'",
        "!(!has(result) || result != 'x')",
    ],
)
def test_has_guards_what_is_not_set(expression: str) -> None:
    assert not holds(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "has(tool)",
        "has(event)",
        "has(args.command)",
        "has(target.command)",
        "has(step.tool) && has(tool)",
        "has(result) || tool == 'bash'",
        "!has(result)",
        "has(agent) && has(agent.name) && agent.name == 'helper'",
        "has(metadata.x.y) && metadata.x.y",
    ],
)
def test_has_lets_through_what_is_set(expression: str) -> None:
    assert holds(expression, agent=Agent(name="helper"), metadata={"x": {"y": True}})


def test_a_null_in_the_arguments_is_set() -> None:
    assert holds("has(args.n) && args.n == null", args={"n": None})


def test_a_part_that_is_not_set_in_a_known_thing_is_found_by_has_too() -> None:
    assert holds("has(agent) && !has(agent.name)", agent=Agent(id="a"))


def test_the_paths_of_a_target_are_always_set() -> None:
    assert holds("target.paths == []")


# --- types ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expression",
    [
        "args.n.contains('a')",
        "args.n.startsWith('a') == true",
        "args.n.endsWith('a') == false",
        "args.n.matches('a')",
        "!args.n.matches('a')",
        "[args.n].exists(x, x.matches('a'))",
        "[args.n].all(x, x.matches('a'))",
        "args.n.matches('a') ? true : false",
        "args.n.matches('a') || false",
        "args.n.matches('a') && true",
        "args.n > 'a'",
        "args.n + 'a' == 'a'",
        "args.n.size() == 1",
        "size(args.n) == 1",
        "'a' in args.n",
        "args.n[0] == 1",
        "args.n.deep == 1",
        "args.n.exists(x, true)",
        "!args.n",
        "-args.s == 'a'",
        "args.n && true",
        "args.n ? true : false",
        "args.n / 0 == 1",
        "args.l[7] == 1",
        "args.s.contains(5)",
        "args.s > 1",
        "int(args.s) == 1",
        "timestamp(args.s) == timestamp(args.s)",
        "args.l.startsWith('a')",
        "args.m.matches('a')",
        "args.nothing.contains('a')",
        "args.nothing > 1",
    ],
)
def test_a_type_error_in_what_is_free_form_is_a_failure_when_it_happens(expression: str) -> None:
    args = {"n": 5, "s": "abc", "l": [1], "m": {"a": 1}, "nothing": None}
    assert failure(expression, args=args)


@pytest.mark.parametrize("expression", ["tool > 5", "tool + 1 == 2", "1 / 0 == 1", "tool.exists(x, true)", "!tool"])
def test_a_type_error_in_what_is_known_is_refused(expression: str) -> None:
    assert refused(expression).startswith("on before_tool: ")


@pytest.mark.parametrize("value", [5, 1.5, "true", None, [True], {"a": True}])
def test_a_result_that_is_not_true_or_false_is_a_failure(value: Any) -> None:
    assert "a rule is true or false" in failure("args.v", args={"v": value})


@pytest.mark.parametrize("expression", ["1", "'true'", "null", "tool", "args", "[true]", "size(tool)", "b'x'"])
def test_an_expression_that_is_known_not_to_be_true_or_false_is_refused(expression: str) -> None:
    assert "a rule is true or false" in refused(expression)


@pytest.mark.parametrize(("value", "expected"), [(True, True), (False, False)])
def test_a_result_may_come_from_the_step(value: bool, expected: bool) -> None:
    assert holds("args.v", args={"v": value}) is expected


def test_different_types_are_not_equal() -> None:
    assert not holds("args.n == '5'", args={"n": 5})


def test_whole_numbers_and_fractions_compare() -> None:
    assert holds("args.n == 5.0 && args.f == 1 && args.n > 4.5", args={"n": 5, "f": 1.0})


@pytest.mark.parametrize("value", [object(), {"deep": object()}, "\ud800"])
def test_a_value_that_is_no_json_is_a_failure(value: Any) -> None:
    assert failure("args.v == 1", args={"v": value})


def test_a_value_that_is_no_json_does_not_matter_where_it_is_not_read() -> None:
    assert holds("tool == 'bash'", args={"v": object()})


# --- regular expressions ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expression",
    [
        "tool.matches('(')",
        "true || tool.matches('(')",
        "false && tool.matches('(')",
        "true ? true : tool.matches('(')",
        'true || tool.matches("(")',
        "true || tool.matches(r'(')",
        "true || tool.matches('''(''')",
        'true || tool.matches("""(""")',
        "true || tool.matches( '(' )",
        "true || tool . matches ('(')",
        "true || tool.matches(\n'(' // here\n)",
        "true || args.a.b.matches('(')",
        "true || [].exists(x, x.matches('('))",
        "true || 'a'.matches('(')",
        r"true || tool.matches('\x28')",
    ],
)
def test_a_bad_regular_expression_is_refused_wherever_it_stands(expression: str) -> None:
    assert refused(expression).startswith("bad regular expression '('")


@pytest.mark.parametrize("pattern", ["[a", "a{2,1}", "*a", "(?=a)", "(?<!a)", r"(a)\\1", "a**"])
def test_a_regular_expression_that_is_not_linear_or_not_sound_is_refused(pattern: str) -> None:
    assert refused(f"true || tool.matches('{pattern}')").startswith("bad regular expression")


def test_a_regular_expression_is_searched_for_anywhere() -> None:
    assert holds("target.command.matches('hello')")
    assert not holds("target.command.matches('^hello')")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (r"args.s.matches(r'^\d+$')", True),
        (r"args.s.matches('^\\d+$')", True),
        (r"args.s.matches(r'^\D+$')", False),
        (r"args.s.matches(R'\d')", True),
        (r"args.s.matches('')", True),
        (r"args.s.matches('(?i)ÄÖ')", False),
    ],
)
def test_a_regular_expression_may_be_written_raw_or_escaped(expression: str, expected: bool) -> None:
    assert holds(expression, args={"s": "123"}) is expected


def test_a_regular_expression_knows_unicode() -> None:
    assert holds(r"args.s.matches('^(?i)äö.$') && args.s.matches(r'\p{Lu}')", args={"s": "ÄÖ€"})


def test_several_regular_expressions_are_kept_apart() -> None:
    assert holds("tool.matches('^b') && !tool.matches('^a') && target.command.matches('h.l+o') && tool.matches('^b')")


def test_a_regular_expression_may_come_from_the_step() -> None:
    assert holds("tool.matches(args.pattern)", args={"pattern": "^ba"})


@pytest.mark.parametrize("pattern", ["(", "(?=a)", 5, None])
def test_a_bad_regular_expression_from_the_step_is_a_failure(pattern: Any) -> None:
    assert failure("tool.matches(args.pattern)", args={"pattern": pattern})


def test_a_variable_may_be_called_like_the_engines_own_function() -> None:
    assert holds("[1].exists(found, found == 1) && tool.matches('ba')")


CATASTROPHIC = ["(a+)+$", "(a|aa)+$", "^(a|a)*$", "^(a*)*$", "([a-z]+)+$", "(.*a){20}$", "^(a?){50}a{50}$"]
LONG = "a" * 50_000 + "!"


@pytest.mark.parametrize("pattern", CATASTROPHIC)
def test_a_catastrophic_pattern_to_look_for_takes_no_time(pattern: str) -> None:
    assert within(20, lambda: holds(f"args.s.matches('{pattern}')", args={"s": LONG})) is False


@pytest.mark.parametrize("pattern", CATASTROPHIC)
def test_a_catastrophic_pattern_from_the_step_takes_no_time(pattern: str) -> None:
    assert within(20, lambda: holds("args.s.matches(args.p)", args={"s": LONG, "p": pattern})) is False


@pytest.mark.parametrize("pattern", CATASTROPHIC)
def test_a_catastrophic_pattern_to_replace_takes_no_time(pattern: str) -> None:
    assert within(20, lambda: changed("before_response", "response", LONG, match=pattern, replace="")) == LONG


# --- the language -----------------------------------------------------------------------------------

ARGS = {"l": [1, 2, 3], "words": ["one", "two"], "m": {"a": 1, "b": 2}, "people": [{"name": "ann"}, {"name": "bob"}]}


@pytest.mark.parametrize(
    "expression",
    [
        "tool in ['sh', 'bash']",
        "!(tool in ['sh', 'zsh'])",
        "'a' in args.m",
        "2 in args.l",
        "args.l.all(x, x > 0)",
        "!args.l.all(x, x > 1)",
        "args.l.exists(x, x == 2)",
        "args.l.exists_one(x, x == 2)",
        "!args.l.exists_one(x, x > 1)",
        "args.l.filter(x, x > 1) == [2, 3]",
        "args.l.map(x, x * 2) == [2, 4, 6]",
        "args.l.map(x, x > 1, x * 2) == [4, 6]",
        "args.m.all(key, args.m[key] > 0)",
        "args.people.exists(p, p.name == 'ann')",
        "args.people.all(p, has(p.name) && !has(p.age))",
        "args.people.map(p, p.name) == ['ann', 'bob']",
        "args.words.exists(w, args.people.all(p, p.name != w))",
        "args.words.all(w, args.words.exists(v, v == w))",
        "args.l.exists(x, args.l.exists(x, x == 3) && x == 1)",
        "args.words.exists(_w, _w.startsWith('t'))",
        "args.words.exists(size, size == 'one')",
        "args.words.map(w, size(w)) == [3, 3]",
        "tool == 'bash' ? args.l[0] == 1 : false",
        "tool == 'sh' ? false : tool == 'bash' ? true : false",
        "(tool == 'sh' ? 'a' : 'b') == 'b'",
        "tool.startsWith('ba') && tool.endsWith('sh') && tool.contains('as')",
        "size(tool) == 4 && tool.size() == 4 && size(args.l) == 3",
        "tool + '!' == 'bash!'",
        "1 + 2 * 3 == 7 && 7 % 4 == 3 && -1 < 0 && 7 / 2 == 3",
        "1.5 + 1.5 == 3.0 && .5 < 1.0 && 2.0 == 2",
        "type(tool) == string && type(args) == map && type(args.l) == list && type(1) == int",
        "int('7') == 7 && string(7) == '7' && double('1.5') == 1.5",
        "timestamp('2024-02-29T12:00:00Z').getFullYear() == 2024",
        "duration('90s') > duration('1m')",
        "[1] + [2] == [1, 2] && {'a': [1]}.a[0] == 1",
        "dyn(tool) == 'bash'",
        "optional.of(tool).hasValue() && !optional.none().hasValue()",
        "optional.none().orValue(true)",
        "true // && false",
        "// first\ntrue\n// last",
        "tool == 'bash' // it's \"so\"\n && true",
        "tool\n==\n'bash'",
        "\ttool=='bash'  ",
    ],
)
def test_the_language_of_rules(expression: str) -> None:
    assert holds(expression, args=ARGS)


@pytest.mark.parametrize(
    "literal",
    [
        "'it is'",
        '"it is"',
        "'''it is'''",
        '"""it is"""',
        "r'it is'",
        'R"it is"',
        "r'''it is'''",
        r"'\x69t is'",
        r"'\u0069t is'",
        r"'it\040is'",
        "'it' + ' is'",
        "'' + 'it is' + ''",
    ],
)
def test_a_text_may_be_written_in_many_ways(literal: str) -> None:
    assert holds(f"args.text == {literal}", args={"text": "it is"})


def test_a_text_may_have_several_lines() -> None:
    assert holds("args.text == '''one\ntwo'''", args={"text": "one\ntwo"})


def test_a_text_of_bytes_is_no_text() -> None:
    assert not holds("args.text == b'x'", args={"text": "x"})


def test_a_hash_is_no_comment() -> None:
    assert "syntax error" in refused("true # && false")


def test_a_comment_is_not_read() -> None:
    assert holds("tool == 'bash' // nosuch.startswith('(') has(nosuch) 'x\n")


def test_what_looks_like_a_comment_in_a_text_is_text() -> None:
    assert holds("args.url == 'http://x' && true", args={"url": "http://x"})


LOOKALIKES = [
    "has(tool)",
    "has(nosuch)",
    "tool.matches('(')",
    'x.matches("a")',
    ".matches(r'a')",
    "nosuch",
    "nosuch(1)",
    "step.nosuch",
    "target.nosuch",
    "[1].exists(x, x)",
    "// has(tool)",
    "found",
    "{tool}",
    "''' has(tool) '''",
    r"\d has(tool)",
    "",
]


def literals(text: str) -> list[str]:
    """This text as a literal, in every way that can hold it."""
    escaped = json.dumps(text, ensure_ascii=False)
    ways = [escaped, "'" + escaped[1:-1].replace('\\"', '"').replace("'", "\\'") + "'", f'""{escaped}""']
    if "'" not in text and "\n" not in text:
        ways += [f"r'{text}'", f"r'''{text}'''"]
    if '"' not in text and "\n" not in text:
        ways += [f'r"{text}"', f'R"""{text}"""']
    return ways


@pytest.mark.parametrize("text", LOOKALIKES)
def test_text_that_looks_like_an_expression_is_text(text: str) -> None:
    for literal in literals(text):
        expression = f"has(tool) && args.text == {literal} && tool.matches('bash')"
        assert holds(expression, args={"text": text}), expression


def test_a_regular_expression_that_looks_like_an_expression_is_one() -> None:
    assert holds(r"args.text.matches(r'^has\(tool\)$')", args={"text": "has(tool)"})


# --- through the engine -----------------------------------------------------------------------------

BOTH = pytest.mark.parametrize("phase", ["transform", "gate"])


@BOTH
@pytest.mark.parametrize("event", ["before_input", "before_model", "before_tool", "before_permission", "after_tool"])
def test_a_rule_denies_in_both_phases_and_at_any_event(phase: Any, event: str) -> None:
    decision = decide(Rule("session_id == 'session-1'", on=event, deny="no {event}"), event, phase=phase)
    assert (decision.control, decision.reason, decision.hook) == ("deny", f"no {event}", "rule")


@BOTH
@pytest.mark.parametrize(("policy", "control"), [("closed", "deny"), ("open", "proceed"), ("abort", "abort")])
@pytest.mark.parametrize("expression", ["result == 'x'", "args.n > 'x'", "args.n", "args.missing == 1"])
def test_a_rule_that_fails_does_what_its_policy_says(phase: Any, policy: Any, control: str, expression: str) -> None:
    decision = decide(
        Rule(expression, on="before_tool", warn="x"), of={"args": {"n": 5}}, phase=phase, on_failure=policy
    )
    assert (decision.control, [failed.kind for failed in decision.failures]) == (control, ["error"])


@BOTH
def test_a_rule_that_fails_is_never_taken_for_a_policy(phase: Any) -> None:
    decision = decide(Rule("result == 'x'", on="before_tool", deny="no"), phase=phase)
    assert (decision.cause, decision.runs[0].outcome) == ("failure", "error")


@BOTH
def test_a_rule_that_does_not_hold_is_recorded_as_saying_nothing(phase: Any) -> None:
    decision = decide(Rule("false", on="before_tool", deny="no"), phase=phase)
    assert [run.outcome for run in decision.runs] == ["none"]


def test_a_failure_says_what_to_do() -> None:
    decision = decide(Rule("result == 'x'", on="before_tool", deny="no"))
    assert decision.reason == (
        "hook 'rule' failed at before_tool (error): result is not set; guard it with has(result)"
    )


def test_a_gate_that_would_change_something_is_malformed() -> None:
    rule = Rule("true", on="before_response", change={"response": {"append": "!"}})
    decision = decide(rule, "before_response", phase="gate")
    assert (decision.changed, decision.failures[0].kind) == ((), "malformed")


def test_one_rule_serves_many_events_of_one_table() -> None:
    hooks = Hooks()
    events = ["before_input", "before_tool", "before_response"]
    hooks.add(Rule("event != 'before_tool'", on=events, deny="no"), on=events, name="rule")
    assert [hooks.dispatch_sync(step(event)).denied for event in events] == [True, False, True]


async def test_a_rule_needs_no_loop_and_minds_none() -> None:
    hooks = Hooks()
    hooks.add(Rule("true", on="before_tool", deny="no"), on="before_tool", name="rule")
    assert (await hooks.dispatch(step("before_tool"))).denied


def test_a_rule_with_a_time_limit_runs_on_a_thread() -> None:
    assert decide(Rule("tool.matches('ba')", on="before_tool", deny="no"), timeout=5).denied


def test_a_rule_may_be_used_by_many_threads_at_once() -> None:
    rule = Rule("args.i == int(args.s) && args.s.matches('^[0-9]+$')", on="before_tool", deny="{args.s}")
    wrong: list[Any] = []
    barrier = threading.Barrier(4)

    def run(base: int) -> None:
        barrier.wait(10)
        for i in range(base, base + 100):
            verdict = rule(step("before_tool", args={"i": i, "s": str(i)}))
            if verdict is None or verdict.reason != str(i):
                wrong.append((i, verdict))

    threads = [threading.Thread(target=run, args=(n * 1000,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert wrong == []


# --- properties ---------------------------------------------------------------------------------------

STEPS = {s.event: s for s in every_step()}

NAMES = [
    "tool", "args", "target", "target.command", "args.command", "step", "step.tool", "event", "session_id", "sequence",
    "metadata", "agent", "agent.name", "input", "output", "error", "response", "usage", "messages", "results", "state",
    "duration", "executed", "x", "nosuch", "true", "false", "null",
]  # fmt: skip
VALUES = [
    "0", "1", "-1", "2u", "1.5", "9223372036854775807", "-9223372036854775808", "'a'", '"b"', r"r'\d'", "b'c'", "''",
    "'''t'''", "'has(tool)'", "'.matches(\"(\")'", "'('", "[]", "[1, 2]", "['a']", "{}", "{'a': 1}", "{1: 'x'}", "int",
    "string", "optional", "duration('1h')", "timestamp('2020-01-01T00:00:00Z')", "optional.none()",
]  # fmt: skip
FUNCTIONS = ["size", "int", "uint", "double", "string", "bytes", "type", "dyn", "duration", "timestamp", "nosuch"]
METHODS = ["size", "contains", "startsWith", "endsWith", "matches", "getHours", "value", "orValue", "or", "nosuch"]
MACROS = ["all", "exists", "exists_one", "filter", "map"]
OPERATORS = ["&&", "||", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", " in "]


def grown(part: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions of parts, well-formed and mostly nonsense."""

    def joined(pattern: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.tuples(*parts).map(lambda texts: pattern % texts)

    return st.one_of(
        joined("%s%s%s", part, st.sampled_from(OPERATORS), part),
        joined("(%s%s%s)", part, st.sampled_from(OPERATORS), part),
        joined("%s(%s)", st.sampled_from(FUNCTIONS), part),
        joined("%s.%s(%s)", part, st.sampled_from(METHODS), part),
        joined("%s.%s()", part, st.sampled_from(METHODS)),
        joined("%s.%s(%s, %s)", part, st.sampled_from(MACROS), st.sampled_from(["x", "tool"]), part),
        joined("%s ? %s : %s", part, part, part),
        joined("%s[%s]", part, part),
        joined("[%s, %s]", part, part),
        joined("{%s: %s}", part, part),
        joined("!(%s)", part),
        joined("-%s", part),
        joined("has(%s.a)", part),
        joined('%s // it\'s "so"\n', part),
    )


expressions = st.recursive(st.sampled_from([*NAMES, *VALUES]), grown, max_leaves=10)
garbage = st.one_of(
    st.text(st.characters(exclude_characters="\0"), max_size=40),
    st.text("tol\"'()[]{}.,!=&|<>+-*/%?: \n\\rb019xhas`$#@", max_size=60),
    st.lists(
        st.sampled_from(["tool", "has(", ".matches(", "'", '"', "'''", "r'", "\\", ")", "(", ".", " ", "||", "//"]),
        max_size=14,
    ).map("".join),
)
events = st.just("*") | st.lists(st.sampled_from(list(EVENTS)), min_size=1, max_size=3)


def try_out(expression: str, on: Any) -> None:
    try:
        rule = Rule(expression, on=on, abort="no {event}")
    except (BadRule, UnknownName):
        return
    for event in EVENTS if on == "*" else on:
        try:
            verdict = rule(STEPS[event])
        except RuleFailed:
            continue
        assert verdict is None or isinstance(verdict, Verdict)


@quick
@given(expressions, events)
def test_an_expression_is_refused_or_gives_a_verdict_nothing_or_a_failure(expression: str, on: Any) -> None:
    within(20, lambda: try_out(expression, on))


@quick
@given(expressions.map(lambda text: f"({text}) == ({text})"), events)
def test_a_comparison_is_refused_or_gives_a_verdict_nothing_or_a_failure(expression: str, on: Any) -> None:
    within(20, lambda: try_out(expression, on))


@quick
@given(garbage, events)
def test_garbage_is_refused_or_gives_a_verdict_nothing_or_a_failure(text: str, on: Any) -> None:
    within(20, lambda: try_out(text, on))


@quick
@given(
    st.lists(st.sampled_from([*LOOKALIKES, " ", "'", '"', "é", "x"]), max_size=5).map("".join) | st.text(max_size=20),
    st.data(),
)
def test_a_literal_means_its_text_whatever_it_looks_like(text: str, data: Any) -> None:
    literal = data.draw(st.sampled_from(literals(text)[:2]))
    assert holds(f"has(tool) && args.text == {literal} && tool.matches('bash')", args={"text": text})


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@quick
@given(values, st.sampled_from(["args.v.matches('a')", "args.v == 'a'", "args.v > 1", "'a' in args.v", "args.v"]))
def test_whatever_the_arguments_are_a_rule_gives_a_verdict_nothing_or_a_failure(value: Any, expression: str) -> None:
    rule = Rule(expression, on="before_tool", deny="{args.v}")
    try:
        verdict = rule(step("before_tool", args={"v": value}))
    except RuleFailed:
        return
    assert verdict is None or verdict.control == "deny"
