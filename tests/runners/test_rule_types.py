"""What a rule says when its expression does not fit the values of a step: in the words of who wrote it."""

from __future__ import annotations

import re
from itertools import product

import pytest

from fairlead.lifecycle import BeforeTool
from fairlead.runners.rule import BadRule, Rule, RuleFailed

STEP = BeforeTool(tool="t", args={"count": 5, "name": "secret", "list": [1, 2], "part": {"x": "y"}})
CONVERT = "; convert one with int(), double() or string()"
PROBLEMS = [
    ('args.count > "3"', 'args.count > "3": > does not take a whole number and a text' + CONVERT),
    ('args.name > 1 || tool == "x"', "args.name > 1: > does not take a text and a whole number" + CONVERT),
    ('args.count + "x" == "3x"', 'args.count + "x": + does not take a whole number and a text' + CONVERT),
    ('args.part["x"] > 3', 'args.part["x"] > 3: > does not take a text and a whole number' + CONVERT),
    ("args.list > 3", "args.list > 3: > does not take a list and a whole number" + CONVERT),
    ("!args.count", "!args.count: ! takes true or false, not a whole number"),
    ("args.count && true", "args.count && true: && takes true or false, not a whole number"),
    ("args.count ? true : false", "args.count ? true : false: a condition takes true or false, not a whole number"),
    ('args.count.contains("a")', 'args.count.contains("a"): contains() cannot be called on a whole number with a text'),
    ("args.name.startsWith(3)", "args.name.startsWith(3): startsWith() cannot be called on a text with a whole number"),
    ('"a" in args.count', '"a" in args.count: in looks into a list or an object, not into a whole number'),
    ("-args.name == 1", "-args.name: - does not take a text"),
    ("args.name + 1 == 2", "args.name + 1: + does not take a text and a whole number" + CONVERT),
    ("size(args.count) > 2", "size() takes a text, a list or an object, not a whole number"),
    ('args.list.exists(x, x > "a")', "an operation in it does not take values of these types" + CONVERT),
]


@pytest.mark.parametrize(("expression", "problem"), PROBLEMS, ids=[expression for expression, _ in PROBLEMS])
def test_a_type_error_says_which_part_does_not_take_what(expression: str, problem: str) -> None:
    with pytest.raises(RuleFailed) as raised:
        Rule(expression, on="before_tool", deny="no")(STEP)
    assert str(raised.value) == problem
    assert "secret" not in str(raised.value)


VALUES = ["args.count", "args.name", "args.list", "args.part", "args.ratio", "args.flag", "null"]
OPERATORS = ["+", "-", "*", "/", "%", "<", ">=", "&&", "||", "in"]


@pytest.mark.parametrize("operator", OPERATORS)
def test_no_operator_speaks_in_the_words_of_the_library(operator: str) -> None:
    args = {"count": 5, "name": "secret", "list": [1, 2], "part": {"x": "y"}, "ratio": 0.5, "flag": True}
    step = BeforeTool(tool="t", args=args)
    told = set()
    for left, right in product(VALUES, VALUES):
        try:
            Rule(f"({left} {operator} {right}) == 1", on="before_tool", deny="no")(step)
        except (BadRule, RuleFailed) as error:
            told.add(str(error))
    assert told
    for text in told:
        assert not re.search(
            r"CEL|overload|nsupported|coerce|operand|\b(string|int|double|bool|float|dict|str) [-+*/%<>]", text
        )


def test_what_is_wrong_for_every_step_is_told_in_the_same_words_when_the_rule_is_made() -> None:
    with pytest.raises(BadRule, match="on before_tool: tool > 3: > does not take a text and a whole number"):
        Rule("tool > 3", on="before_tool", deny="no")
