"""Rules, templates and prompts at their edges: odd literals, scopes, unset fields, threads."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from fairlead import EVENTS, Hooks, MalformedVerdict, UnknownName
from fairlead.runners.prompt import Prompt
from fairlead.runners.rule import BadRule, Rule, RuleFailed
from fairlead.runners.template import Template
from fairlead.testing import step
from fairlead.verdict import keep_within


def holds(expression: str, event: str = "before_tool", **fields: Any) -> bool:
    return Rule(expression, on=event, warn="it holds")(step(event, **fields)) is not None


def decide(rule: Rule, event: str = "before_tool", **fields: Any) -> Any:
    hooks = Hooks(record=True)
    hooks.add(rule, on=event, name="rule")
    return hooks.dispatch_sync(step(event, **fields))


# --- NUL ---


@pytest.mark.parametrize("text", ["\0", "tool == 'x' \0", "\0'a'"])
def test_a_nul_in_an_expression_is_refused(text: str) -> None:
    with pytest.raises(BadRule):
        Rule(text, on="before_tool", deny="x")


# --- a type error in matches() ---


@pytest.mark.parametrize(
    "expression",
    [
        "args.n.matches('a') == true",
        "args.n.matches('a') == false",
        "args.n.matches('a') != true",
        "args.n.matches('a') in [true]",
        "[args.n.matches('a')] == [true]",
        "[args.n].map(x, x.matches('a')) == [true]",
    ],
)
@pytest.mark.parametrize("value", [5, None, ["a"], {"a": 1}, True])
def test_a_type_error_in_matches_is_a_failure_when_it_happens(expression: str, value: Any) -> None:
    with pytest.raises(RuleFailed):
        holds(expression, args={"n": value})


# --- literals ---


@pytest.mark.parametrize(
    "expression",
    [
        r"tool == r'\' || tool == 'has(tool)'",
        r'tool == r"\" || tool == "has(tool)"',
        "tool == r'''\\\n''' || tool == 'has(tool)'",
        "tool == 'x' // '''\n || tool == '''has(tool)'''",
        'tool == "x" // """\n || tool == """has(tool)"""',
    ],
)
def test_a_literal_is_never_rewritten(expression: str) -> None:
    assert holds(expression, tool="has(tool)")


@pytest.mark.parametrize("expression", [r"tool == r'\'", r"tool == r'\' || tool == 'y'"])
def test_a_raw_text_may_end_with_a_backslash(expression: str) -> None:
    assert holds(expression, tool="\\")


def test_what_follows_a_raw_text_is_checked() -> None:
    with pytest.raises(UnknownName, match="'nosuch'"):
        Rule(r"true || tool == r'\' || nosuch == 'x'", on="before_tool", deny="x")


@pytest.mark.parametrize(
    "expression", ["1u + 1u == 2u", "0x1f == 31", "1e3 == 1000.0", "1.5e-3 < 1.0", "0xFFu == 255u"]
)
def test_numbers_may_be_written_in_every_way(expression: str) -> None:
    assert holds(expression)


# --- names ---


@pytest.mark.parametrize(
    "expression",
    ["true || .nosuch == 'x'", "true || x == 1 || [1].exists(x, x == 1)", "[1].exists(x, x == 1) || x == 1"],
)
def test_an_unknown_name_is_refused_wherever_it_stands(expression: str) -> None:
    with pytest.raises((BadRule, UnknownName)):
        Rule(expression, on="before_tool", deny="x")


@pytest.mark.parametrize(
    "expression",
    [
        "[1].exists(tool, tool == 1) && tool == 'bash'",
        "tool == 'bash' && [1].exists(tool, tool == 1)",
        "args.items.exists(step, step.done)",
        "args.items.exists(agent, agent.done)",
        "args.items.exists(target, target.done)",
        "args.step.target.done",
    ],
)
def test_a_variable_may_have_any_name_and_only_where_it_is_bound(expression: str) -> None:
    assert holds(expression, args={"items": [{"done": True}], "step": {"target": {"done": True}}})


@pytest.mark.parametrize("expression", ["[1].exists(x, has(x))", "has(step)"])
def test_has_of_what_is_always_there_is_refused(expression: str) -> None:
    with pytest.raises(BadRule):
        Rule(expression, on="before_tool", deny="x")


@pytest.mark.parametrize("expression", ["has (tool)", "has( // so\n tool)"])
def test_has_may_be_written_with_spaces(expression: str) -> None:
    assert holds(expression)


@pytest.mark.parametrize(
    "expression", ["true || matches(tool, 'x')", "true || startsWith(tool, 'x')", "true || tool.int() == 1"]
)
def test_a_function_that_cannot_be_called_like_this_is_refused(expression: str) -> None:
    with pytest.raises(BadRule):
        Rule(expression, on="before_tool", deny="x")


def test_a_bad_regular_expression_in_parentheses_is_refused() -> None:
    with pytest.raises(BadRule, match="bad regular expression"):
        Rule("true || tool.matches(('('))", on="before_tool", deny="x")


def test_a_regular_expression_is_no_bytes() -> None:
    with pytest.raises(BadRule):
        Rule("tool.matches(b'bash')", on="before_tool", deny="x")


def test_a_rule_is_on_some_event() -> None:
    with pytest.raises(BadRule):
        Rule("nosuch", on=[], deny="x")


# --- change ---


@pytest.mark.parametrize(("event", "field"), [("before_tool", "result"), ("before_model", "assistant")])
def test_a_match_in_what_is_not_set_answers_nothing(event: str, field: str) -> None:
    decision = decide(Rule("true", on=event, change={field: {"match": "x", "replace": "y"}}), event)
    assert decision.changed == ()


def test_a_match_in_a_command_that_is_not_there_changes_nothing() -> None:
    rule = Rule("true", on="before_tool", change={"command": {"match": "x", "replace": "y"}})
    decision = decide(rule, tool="Read", args={"file_path": "x"})
    assert (decision.changed, decision.failures) == ((), ())


@pytest.mark.parametrize(("event", "field"), [("before_response", "response"), ("before_output", "content")])
def test_blocks_are_put_around_blocks(event: str, field: str) -> None:
    block = {"type": "text", "text": "a"}
    decision = decide(Rule("true", on=event, change={field: {"append": "!"}}), event, **{field: [block]})
    assert getattr(decision.step, field) == [block, {"type": "text", "text": "!"}]


@pytest.mark.parametrize(
    "output",
    [
        {"stdout": "the key"},
        {"result": {"lines": ["the key"]}},
        [{"type": "tool_result", "content": [{"type": "text", "text": "the key"}]}],
    ],
)
def test_a_match_is_replaced_wherever_it_stands_in_an_object(output: Any) -> None:
    rule = Rule("true", on="after_tool", change={"output": {"match": "key", "replace": "---"}})
    decision = decide(rule, "after_tool", output=output)
    assert "key" not in str(decision.step.output) or decision.failures


def test_a_text_that_cannot_be_searched_is_a_failure_of_the_rule() -> None:
    rule = Rule("true", on="before_response", change={"response": {"match": "x", "replace": "y"}})
    with pytest.raises(RuleFailed):
        rule(step("before_response", response="\ud800"))


def test_a_pattern_that_cannot_be_encoded_is_refused() -> None:
    with pytest.raises(BadRule):
        Rule("true", on="before_response", change={"response": {"match": "\ud800", "replace": "y"}})


def test_replacing_many_matches_takes_no_minutes() -> None:
    rule = Rule("true", on="before_response", change={"response": {"match": "a*b|a", "replace": "-"}})
    given = step("before_response", response="a" * 150_000)
    done: list[Any] = []

    def run() -> None:
        try:
            rule(given)
        except RuleFailed as problem:
            done.append(problem)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(10)
    assert done


# --- what is guarded, what is free-form, what is shown ---


def test_a_guard_reads_nothing_else_of_the_step() -> None:
    assert holds("has(error) && error == 'x'", "after_request", state=object(), error="x")


@pytest.mark.parametrize(
    ("event", "expression", "fields"),
    [
        ("before_response", "response.text == 'x'", {"response": {"text": "x"}}),
        ("before_response", "response[0].text == 'x'", {"response": [{"text": "x"}]}),
        ("before_output", "content.text == 'x'", {"content": {"text": "x"}}),
        ("before_input", "input.exists(part, part == 'x')", {"input": ["x"]}),
    ],
)
def test_blocks_can_be_read_like_any_free_form_field(event: str, expression: str, fields: Any) -> None:
    assert holds(expression, event, **fields)


def test_a_result_that_is_not_true_or_false_is_not_told() -> None:
    with pytest.raises(RuleFailed) as caught:
        holds("args.password", args={"password": "hunter22"})
    assert "hunter22" not in str(caught.value)


def test_a_type_error_in_what_is_known_is_refused_beside_a_guard() -> None:
    with pytest.raises(BadRule):
        Rule("has(tool) && tool > 5", on="before_tool", deny="x")


# --- [test_template] ---------------------------------------------------------------------------------


@pytest.mark.parametrize("args", [{"a": "\ud800"}, {"a": ["\udfff"]}, {"\ud800": 1}])
def test_half_a_pair_can_be_filled_in(args: Any) -> None:
    assert isinstance(Template("{args}").fill(step("before_tool", args=args)), str)


def test_a_number_of_any_length_is_a_place() -> None:
    assert Template("{args.a." + "1" * 5000 + "}").fill(step("before_tool", args={"a": []})) == ""


# --- [test_prompt] -----------------------------------------------------------------------------------

KEY = "sk-abcdefghij0123456789ABCDEFGHIJ"


def judged(
    *parts: Any, event: str = "before_tool", seen: list[str] | None = None, of: Any = None, **prompt: Any
) -> Any:
    async def answer(messages: Any, info: Any) -> ModelResponse:
        if seen is not None:
            seen.append(messages[0].parts[0].content)
        return ModelResponse(parts=list(parts))

    hooks = Hooks(record=True)
    hooks.add(Prompt("Judge.", model=FunctionModel(answer), **prompt), on=event, name="prompt")
    return asyncio.run(hooks.dispatch(step(event, **(of or {}))))


def test_a_misspelt_field_in_the_template_of_a_prompt_is_refused() -> None:
    with pytest.raises(UnknownName, match="did you mean 'tool'"):
        Prompt("x", model="test", template="{tol}")


@pytest.mark.parametrize("template", ["{args}", "{args.password}"])
def test_what_is_named_like_a_secret_is_not_sent_by_a_template(template: str) -> None:
    seen: list[str] = []
    decision = judged(TextPart("{}"), seen=seen, template=template, of={"args": {"password": "correct horse battery"}})
    assert (decision.control, seen) == ("deny", [])
    assert "could not be shown: args.password;" in decision.reason


@pytest.mark.parametrize(
    "part", [ToolCallPart("verdict", {"control": KEY}), ToolCallPart("verdict", {KEY: 1}), ToolCallPart(KEY, {})]
)
def test_what_a_model_says_wrongly_carries_no_secrets(part: Any) -> None:
    decision = judged(part, raw=True)
    assert KEY not in decision.failures[0].error


def test_two_verdicts_are_none() -> None:
    decision = judged(ToolCallPart("verdict", {}), ToolCallPart("verdict", {"control": "deny"}))
    assert decision.failures


def test_a_model_that_calls_a_tool_where_text_is_asked_for_fails() -> None:
    assert judged(ToolCallPart("other", {}), output="context").failures


# --- [test_may] --------------------------------------------------------------------------------------


def test_saying_that_an_answer_is_an_error_is_part_of_answering() -> None:
    with pytest.raises(MalformedVerdict):
        keep_within({"result": "no", "is_error": True}, EVENTS["before_tool"], ("deny", "ask", "warn"))


@pytest.mark.parametrize(("resolved", "power"), [(True, "allow"), (False, "deny")])
def test_resolved_needs_only_the_power_it_reads_as(resolved: bool, power: str) -> None:
    keep_within({"resolved": resolved}, EVENTS["before_permission"], (power,))


# --- the first rules of a process, made by several threads at once ---

RACE = """
import threading
from fairlead.runners.rule import Rule
barrier, errors = threading.Barrier(16), []
def make():
    barrier.wait()
    try:
        Rule("tool == 'x'", on="before_tool", deny="x")
    except BaseException as error:
        errors.append(repr(error))
threads = [threading.Thread(target=make) for _ in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not errors, errors
"""


def test_the_first_rules_may_be_made_by_many_threads_at_once() -> None:
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", RACE], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr[-500:]
