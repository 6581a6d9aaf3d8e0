"""What a rule may cost is known before it is evaluated, and what could take long is a failure at once."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from time import thread_time
from typing import Any

import pytest
import re2
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rule_expressions import Expressions, values

from fairlead import EVENTS, Hooks
from fairlead.runners import cost, regex
from fairlead.runners.cost import SizeBound, ValueSize, anything, estimate
from fairlead.runners.expression import Expression
from fairlead.runners.regex import Limit, Regex
from fairlead.runners.rule import BadRule, Rule, RuleFailed
from fairlead.runners.syntax import DEPTH, ExpressionNode, parse
from fairlead.testing import step

quick = settings(deadline=None, max_examples=200, derandomize=True, database=None)
SECONDS = 1.0
"""What nothing may take, on a machine that is far slower or busier than the one the constants are from."""


def holds(expression: str, event: str = "before_tool", **fields: Any) -> bool:
    return Rule(expression, on=event, warn="it holds")(step(event, **fields)) is not None


def failure(expression: str, event: str = "before_tool", **fields: Any) -> str:
    """What a rule complains of, which it does at once."""
    rule, given = Rule(expression, on=event, warn="it holds"), step(event, **fields)
    started = thread_time()
    with pytest.raises(RuleFailed) as caught:
        rule(given)
    assert thread_time() - started < SECONDS
    return str(caught.value)


# --- what takes too long --------------------------------------------------------------------------

LIST, TEXT = list(range(4000)), "a" * 100_000
BOMBS = {
    "macros in one another": "args.l.all(x, args.l.exists(y, y == x))",
    "macros in one another, of what they bind": "[args.l].map(x, x.map(y, x)).size() == 1",
    "macros over concatenations": "(args.l + args.l + args.l).all(x, (args.l + args.l).exists(y, y == x))",
    "macros over either of two": "args.l.all(x, (x > 1 ? args.l : []).exists(y, y == x))",
    "macros over what others made": "args.l.filter(x, x > 0).map(x, x + 1).all(x, x > 0)",
    "a list in a list for every element": "args.l.map(x, args.l).size() == 1",
    "a list that grows": "args.l.map(x, args.l + args.l).size() == 1",
    "looking through a list for every element": "args.l.all(x, x in args.l)",
    "a text for every element": "args.l.all(x, args.t.contains('b') || true)",
    "comparing with everything": "args.l.all(x, args != {'a': x})",
    "a text that doubles": "[args.t].map(a, a + a)" + ".map(a, a + a)" * 10 + ".size() == 1",
    "a text that doubles inside": "[args.t].map(a, [a + a + a + a].map(b, b + b + b + b)[0])" + ".map(a, a + a + a)" * 8
    + " == []",
    "a text that is made of many": "[" + ", ".join(["args.t"] * 900) + "] == [" + ", ".join(["args.t"] * 300) + "]",
    "a list of long texts": "args.l.map(x, args.t + args.t).size() == 1",
    "a text turned to and fro": "args.l.all(x, string(bytes(args.t)) == args.t)",
    "durations": "args.l.all(x, duration(args.t) > duration('1s') || true)",
    "lists in a literal": "args.l.all(x, [args.l, args.l, args.l].size() == 3)",
    "lists in a map": "args.l.all(x, {'a': args.l}.a.size() == 3)",
    "optional lists": "args.l.all(x, optional.of(args.l).hasValue())",
    "sizes": "args.l.all(x, size(args.l) > 0)",
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_what_could_take_long_fails_at_once(name: str) -> None:
    assert "could take too long" in failure(BOMBS[name], args={"l": LIST, "t": TEXT})


@pytest.mark.parametrize("name", BOMBS)
def test_what_could_take_long_works_on_a_small_step(name: str) -> None:
    rule = Rule(
        BOMBS[name].replace(".map(a, a + a)" * 10, "").replace(".map(a, a + a + a)" * 8, ""), on="before_tool", warn="x"
    )
    rule(step("before_tool", args={"l": [1, 2, 3], "t": "1h"}))


def test_a_concatenation_of_a_long_text_fails_at_once() -> None:
    expression = "+".join(["input"] * 45) + " == ''"
    assert "1 values with 4,000,000 bytes" in failure(expression, "before_input", input="a" * 4_000_000)


def test_the_failure_names_what_is_too_large() -> None:
    problem = failure("args.l.all(x, args.l.exists(y, y == x))", args={"l": LIST})
    assert problem == "this could take too long: all() goes through up to 4,000 elements of args.l"


def test_a_gate_whose_rule_could_take_long_fails_closed() -> None:
    hooks = Hooks()
    hooks.add(Rule(BOMBS["macros in one another"], on="before_tool", warn="x"), on="before_tool", name="r", timeout=1)
    started = thread_time()
    decision = hooks.dispatch_sync(step("before_tool", args={"l": LIST}))
    assert (decision.control, decision.cause) == ("deny", "failure")
    assert "could take too long" in decision.failures[0].error
    assert thread_time() - started < SECONDS


@pytest.mark.parametrize(
    "expression",
    [
        "[" + "1, " * 2_000 + "1].all(x, [" + "1, " * 1_000 + "1].all(y, y == x))",
        "['a']" + ".map(x, x + x)" * 30 + " == []",
    ],
)
def test_what_takes_too_long_on_any_step_is_refused(expression: str) -> None:
    with pytest.raises(BadRule, match="whatever the step"):
        Rule(expression, on="before_tool", warn="x")


# --- what does not ---------------------------------------------------------------------------------

MESSAGES = [{"role": "user", "content": "hello " * 20} for _ in range(500)] + [{"role": "tool", "content": TEXT * 2}]
FILES = [f"src/package/module_{number}.py" for number in range(5_000)]
ORDINARY: list[tuple[str, str, dict[str, Any]]] = [
    ("before_response", "response.contains('x') || true", {"response": TEXT * 20}),
    ("before_response", "response.matches('sk-[a-z]+') || true", {"response": TEXT * 3}),
    ("before_response", "response.matches('(?i)(password|secret|token)[^a-z]') || true", {"response": TEXT * 3}),
    ("before_response", "response.matches('^a+$')", {"response": TEXT}),
    ("before_response", "size(response) > 5", {"response": "é" * 300_000}),
    ("before_response", "['a b', 'c', 'd'].all(w, !response.contains(w))", {"response": TEXT * 3}),
    ("before_tool", "args.files.all(f, f.startsWith('src/') && !f.contains('..'))", {"args": {"files": FILES}}),
    ("before_tool", "args.files.exists(f, f.matches('_77[.]'))", {"args": {"files": FILES}}),
    ("before_tool", "!('x' in args.files) && args.files.size() == 5000", {"args": {"files": FILES}}),
    ("before_tool", "args.files.filter(f, f.endsWith('.py')).size() == 800", {"args": {"files": FILES[:800]}}),
    ("before_tool", "args.l.all(x, x >= 0)", {"args": {"l": list(range(30_000))}}),
    ("before_tool", "args.l.all(x, args.l.exists(y, x == y))", {"args": {"l": list(range(200))}}),
    ("before_tool", "args.a.all(x, x.id in args.b)", {"args": {"a": [{"id": 1}] * 1_000, "b": list(range(300))}}),
    ("before_tool", "args.path == 'x'", {"args": {"path": "x", "content": ["a"] * 200_000}}),
    ("before_tool", "step.tool == 'x'", {"tool": "x", "args": {"content": ["a"] * 200_000}}),
    ("before_model", "messages.exists(m, m.role == 'tool' && m.content.contains('aaa'))", {"messages": MESSAGES}),
    ("before_model", "messages.map(m, m.role).exists(r, r == 'tool')", {"messages": MESSAGES}),
    ("before_model", "size(messages) > 500 && messages[0].role == 'user'", {"messages": MESSAGES}),
]


@pytest.mark.parametrize(("event", "expression", "fields"), ORDINARY, ids=[each[1] for each in ORDINARY])
def test_an_ordinary_rule_holds_on_a_large_step(event: str, expression: str, fields: dict[str, Any]) -> None:
    assert holds(expression, event, **fields)


# --- reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [["a"] * 200_000, {str(i): i for i in range(200_000)}, [[1] * 1_000] * 1_000])
def test_a_value_that_takes_too_long_to_read_is_a_failure(value: Any) -> None:
    assert "it reads more than" in failure("args.v == 1", args={"v": value})


@pytest.mark.parametrize("nest", [lambda v: [v], lambda v: {"a": v}])
def test_a_value_that_is_nested_too_deeply_is_a_failure(nest: Any) -> None:
    value: Any = 1
    for _ in range(DEPTH - 1):
        value = nest(value)
    assert holds("args.v != 2", args={"v": value})
    for _ in range(400):
        value = nest(value)
    assert "nested more than" in failure("args.v != 2", args={"v": value})


def test_a_variable_that_is_named_like_a_field_is_not_the_field() -> None:
    expression = "args.l == [1] && [{'l': args.long}].all(args, args.l.map(x, args.l) == [])"
    assert "could take too long" in failure(expression, args={"l": [1], "long": LIST})


def test_a_value_that_is_no_json_is_read_as_json_has_it() -> None:
    from datetime import date

    assert holds("args.day == '2024-02-29' && args.tags.size() == 1", args={"day": date(2024, 2, 29), "tags": {"a"}})


@pytest.mark.parametrize("number", [2**63, 2**64, 10**400, -(10**400)])
def test_a_huge_number_is_compared_or_a_failure(number: int) -> None:
    try:
        assert not holds("args.v == 1", args={"v": number})
    except RuleFailed:
        return


# --- the estimate is an upper bound ----------------------------------------------------------------


class Impossible(Exception):
    """An expression that asks for an element of an empty list."""


def spend(node: ExpressionNode, scope: dict[str, Any]) -> tuple[Any, float]:
    """Evaluates an expression, and counts what the model of `cost` says of the real values, operation by operation."""
    if node.kind == "literal":
        return json.loads(node.text), cost._estimate(node, {}, False).cost
    if node.kind == "name":
        return scope.get(node.text), cost.EVALUATE
    if node.kind == "has":
        value, spent = spend(node.parts[0].parts[0], scope)
        return node.parts[0].text in value, spent + cost.EVALUATE
    if node.kind == "macro":
        return spend_macro(node, scope)
    if node.kind == "choice":
        condition, spent = spend(node.parts[0], scope)
        value, more = spend(node.parts[1 if condition else 2], scope)
        return value, spent + more + cost.EVALUATE
    parts = [spend(part, scope) for part in node.parts]
    own, _ = cost._operation(node, [ValueSize(value).bound for value, _ in parts])
    return apply(node, *(value for value, _ in parts)), cost.EVALUATE + sum(spent for _, spent in parts) + own


def spend_macro(node: ExpressionNode, scope: dict[str, Any]) -> tuple[Any, float]:
    called_on, variable, *bodies = node.parts
    over, spent = spend(called_on, scope)
    made: list[Any] = []
    spent += cost.EVALUATE
    for element in over:
        spent += cost.LOOP + ValueSize(element).bound.copying
        results = [spend(body, {**scope, variable.text: element}) for body in bodies]
        spent += sum(each for _, each in results)
        if node.text in ("filter", "map"):
            if all(value for value, _ in results[:-1]):
                made.append(element if node.text == "filter" else results[-1][0])
            spent += ValueSize(made).bound.copying
    return made if node.text in ("filter", "map") else True, spent


def apply(node: ExpressionNode, *operands: Any) -> Any:
    first, last = operands[0] if operands else None, operands[-1] if operands else None
    if node.kind == "index":
        if not first:
            raise Impossible
        return first[last]
    return {
        "select": lambda: first[node.text],
        "list": lambda: list(operands),
        "map": lambda: dict(zip(operands[::2], operands[1::2], strict=True)),
        "unary": lambda: not first,
        "call": lambda: {"size": len, "string": str}.get(node.text, lambda value: value)(first),
        "method": lambda: {"size": len, "orValue": lambda value, _: value, "of": lambda _, value: value}.get(
            node.text, lambda *_: True
        )(*operands),
        "binary": lambda: first + last if node.text == "+" else node.text in ("||", "!="),
    }[node.kind]()


@quick
@given(st.data())
def test_the_estimate_is_never_less_than_what_is_spent(data: Any) -> None:
    expressions = Expressions(lambda options: data.draw(st.sampled_from(options)))
    tree = parse(expressions.make("bool", data.draw(st.integers(2, 5))))
    args = values(data.draw(st.integers(0, 12)), data.draw(st.integers(0, 3)))
    try:
        _, spent = spend(tree, {"args": args})
    except Impossible:
        assume(False)
    shapes = {"args": ValueSize(args).bound}
    assert spent <= estimate(tree, shapes)
    assert spent <= estimate(tree, shapes | {f"args.{part}": ValueSize(value).bound for part, value in args.items()})


@quick
@given(st.data())
def test_whatever_a_step_consists_of_its_weight_is_enough_to_bound_the_cost(data: Any) -> None:
    expressions = Expressions(lambda options: data.draw(st.sampled_from(options)))
    tree = parse(expressions.make("bool", data.draw(st.integers(2, 5))))
    shape = ValueSize(values(data.draw(st.integers(0, 40)), data.draw(st.integers(0, 3)))).bound
    assert estimate(tree, {"args": shape}) <= estimate(tree, {"args": anything(shape.nodes, shape.size)})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@quick
@given(json_values)
def test_the_shape_of_a_value_holds_for_everything_in_it(value: Any) -> None:
    def check(value: Any, shape: SizeBound) -> tuple[int, int]:
        inside = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
        counted = [check(item, shape.element) for item in inside]
        nodes = 1 + sum(each[0] for each in counted)
        size = len(value.encode()) if isinstance(value, str) else sum(each[1] for each in counted)
        length = len(value) if isinstance(value, (dict, list)) else 0
        assert length <= shape.length
        assert nodes <= shape.nodes
        assert size <= shape.size
        return nodes, size

    check(value, ValueSize(value).bound)


# --- and it holds in the clock -----------------------------------------------------------------------


def is_accepted(expression: Expression, args: Any) -> bool:
    try:
        expression.read(step("before_tool", args=args))
    except RuleFailed:
        return False
    return True


def search_for_the_slowest(seed: int, cases: int) -> None:
    """Makes the step as large as the estimate lets it be, for random expressions, and says how long they take."""
    choose = random.Random(seed).choice
    for _ in range(cases):
        text, flavour = Expressions(choose).make("bool", choose([2, 3, 3, 4, 5])), choose(range(4))
        try:
            expression = Expression(text, [EVENTS["before_tool"]])
        except BadRule:
            continue
        size = 8
        while size < 20_000 and is_accepted(expression, values(size * 3 // 2, flavour)):
            size = size * 3 // 2
        given = step("before_tool", args=values(size, flavour))
        started = thread_time()
        try:
            expression.evaluate(expression.read(given))
        except (LookupError, TypeError, RuleFailed):
            pass
        print(json.dumps([thread_time() - started, size, flavour, text]), flush=True)


@pytest.mark.e2e
@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_that_is_accepted_takes_long(seed: int) -> None:
    here = Path(__file__).parent
    program = f"import sys; sys.path.insert(0, {str(here)!r})\nimport test_rule_cost\n"
    program += f"test_rule_cost.search_for_the_slowest({seed}, 15)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-500:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) > 5
    assert max(found)[0] < SECONDS, max(found)


# --- nothing crashes ---------------------------------------------------------------------------------

NESTED = {
    "parentheses": "('(' * n) + 'true' + (')' * n)",
    "lists": "('[' * n) + '1' + (']' * n) + ' != []'",
    "maps": "('{1: ' * n) + '1' + ('}' * n) + ' != {}'",
    "calls": "('dyn(' * n) + 'true' + (')' * n)",
    "sizes": "('size([' * n) + '1' + ('])' * n) + ' == 1'",
    "negations": "('!(' * n) + 'true' + (')' * n)",
    "comparisons": "('(true == ' * n) + 'true' + (')' * n)",
    "choices": "('true ? true : ' * n) + 'true'",
    "sums": "'1' + (' + 1' * n) + ' > 0'",
    "differences": "'true' + (' == true' * n)",
    "fields": "'args' + ('.a' * n) + ' == 1'",
    "indexes": "'args' + ('[\"a\"]' * n) + ' == 1'",
    "methods": "'args' + ('.size()' * n) + ' == 1'",
    "macros": "'[1]' + ('.map(x, x)' * n) + ' == [1]'",
    "memberships": "'true' + (' in [true]' * n)",
    "signs": "('!' * n) + 'true'",
    "conjunctions": "'true' + (' && true' * n)",
    "both": "'true' + (' && true || true' * n)",
    "arguments": "'[' + ('1, ' * n) + '1] != []'",
}
SWEEP = """
import sys, threading
from fairlead.runners.rule import BadRule, Rule, RuleFailed
from fairlead.testing import step

deep = 1
for _ in range(%(depth)d - 1):
    deep = {"a": [deep]}

def sweep():
    for text in %(nested)r:
        for n in [*range(1, 70), 100, 200, 600, 1000, 2000, 4900, 9900]:
            try:
                rule = Rule(eval(text), on="before_tool", warn="x")
                rule(step("before_tool", args={"a": deep}))
            except (BadRule, RuleFailed):
                pass
        print(text)

threading.stack_size(512 * 1024)
thread = threading.Thread(target=sweep)
thread.start()
thread.join()
"""


def test_however_deep_an_expression_and_a_value_are_nothing_crashes() -> None:
    program = SWEEP % {"nested": list(NESTED.values()), "depth": DEPTH // 2}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.splitlines() == list(NESTED.values())


@pytest.mark.parametrize(
    "name", [name for name in NESTED if name not in ("signs", "conjunctions", "both", "arguments")]
)
def test_an_expression_that_is_too_deep_is_refused(name: str) -> None:
    with pytest.raises(BadRule, match=f"at most {DEPTH}"):
        parse(eval(NESTED[name], {"n": DEPTH + 2}))


@pytest.mark.parametrize("expression", ["a.?b", "a[?0]", "Foo{a: 1}", "a.`b`", "a ? b", "[1, 2", "{1}", "f(", "a..b"])
def test_what_the_estimate_does_not_understand_is_refused(expression: str) -> None:
    with pytest.raises(BadRule):
        parse(expression)


@pytest.mark.parametrize(
    "call", ["l.all(x)", "l.all(1, true)", "l.map(x, 1, 2, 3)", "l.exists(x, y, true)", "l.filter()"]
)
def test_a_macro_that_is_not_called_as_one_is_refused(call: str) -> None:
    with pytest.raises(BadRule, match="is called as"):
        parse(call)


# --- regular expressions -------------------------------------------------------------------------------

patterns = st.lists(
    st.sampled_from(
        ["a", "b", "é", ".", "a*", "b+", "(a|b)", "[^a]", "^", "$", r"\b", r"\B", "a?", "(?:)", "|", "x{2}"]
    ),
    max_size=6,
).map("".join)
texts = st.text("abéx\n ", max_size=30)


def plain(pattern: str) -> Any:
    try:
        return re2.compile(pattern)
    except re2.error:
        assume(False)


@pytest.fixture(params=[20e-3, 300e-9])
def part(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts are searched at once, or a few bytes at a time."""
    monkeypatch.setattr(regex, "PART", request.param)


@pytest.mark.usefixtures("part")
def test_searching_in_parts_finds_what_searching_at_once_finds() -> None:
    @quick
    @given(patterns, texts)
    def check(pattern: str, text: str) -> None:
        assert Regex(pattern).search(text, Limit(60)) == (plain(pattern).search(text) is not None)

    check()


@pytest.mark.usefixtures("part")
def test_replacing_in_parts_makes_what_replacing_at_once_makes() -> None:
    @quick
    @given(patterns, texts, st.sampled_from(["", "-", "é"]))
    def check(pattern: str, text: str, new: str) -> None:
        assert Regex(pattern).replace(text, new, Limit(60)) == plain(pattern).sub(lambda _: new, text)

    check()


SLOW = [
    "[ab]*a[ab]{14}c",
    "[ab]*a[ab]{50}c",
    "[ab]*a[ab]{900}c",
    "(a?){500}a{500}c",
    "[ab]*a[ab]{300}c.*$",
    "(?i)[ab]*a[ab]{90}c",
]


@pytest.mark.parametrize("pattern", SLOW)
def test_a_search_that_takes_long_is_given_up(pattern: str) -> None:
    choose = random.Random(1).choice
    text = "".join(choose("ab") for _ in range(1_000_000))
    problem = failure(f"args.t.matches('{pattern}')", args={"t": text})
    assert problem == f"matches() takes too long for {pattern!r} in a text of 1,000,000 characters"


def test_searches_that_take_long_together_are_given_up() -> None:
    choose = random.Random(1).choice
    words = ["".join(choose("ab") for _ in range(1_000)) for _ in range(1_000)]
    assert "takes too long" in failure("args.w.exists(w, w.matches('[ab]*a[ab]{300}c'))", args={"w": words})


@pytest.mark.parametrize("pattern", ["(" * 900, r"\pL" * 300, "a{1000}{1000}", "x" * 1_001, "(?i)" + r"[\pL\pN]" * 100])
def test_a_hostile_pattern_in_a_step_is_a_failure_at_once(pattern: str) -> None:
    assert "regular expression" in failure("tool.matches(args.p)", args={"p": pattern})


def test_many_hostile_patterns_in_a_step_are_a_failure_at_once() -> None:
    hostile = [r"\pL" * 8 + str(number) for number in range(5_000)]
    assert "regular expression" in failure("args.p.all(p, tool.matches(p))", args={"p": hostile})


def test_a_pattern_in_a_step_is_re2_too() -> None:
    assert holds(r"'a\nb'.matches(args.p) && args.p.matches(args.p)", args={"p": r"\Aa|\\A"})


# --- edits -----------------------------------------------------------------------------------------


def edit_failure(text: Any, match: str, replace: str, event: str = "before_response", field: str = "response") -> str:
    rule = Rule("true", on=event, change={field: {"match": match, "replace": replace}})
    given = step(event, **{field: text})
    started = thread_time()
    with pytest.raises(RuleFailed) as caught:
        rule(given)
    assert thread_time() - started < SECONDS
    return str(caught.value)


def test_an_edit_whose_every_match_looks_at_all_the_text_is_given_up() -> None:
    assert edit_failure("a" * 150_000, "a*b|a", "-") == "replacing in response takes too long"


def test_an_edit_that_makes_too_much_text_is_given_up() -> None:
    assert edit_failure("a" * 50_000, "a", "{response}") == "replacing in response takes too long"


def test_an_edit_of_many_texts_that_makes_too_much_is_given_up() -> None:
    blocks = [{"type": "text", "text": "a" * 1_000} for _ in range(1_000)]
    assert edit_failure(blocks, "a", "-" * 100) == "replacing in response takes too long"


def test_an_edit_of_too_many_values_is_given_up() -> None:
    output = {"rows": list(range(200_000))}
    assert "could take too long: it reads more than" in edit_failure(output, "a", "-", "after_tool", "output")


def test_an_ordinary_edit_of_a_large_text_is_made() -> None:
    text = ("lorem ipsum sk-12345 dolor " + "x" * 500) * 500
    rule = Rule("true", on="before_response", change={"response": {"match": r"sk-\w+", "replace": "[key]"}})
    verdict = rule(step("before_response", response=text))
    assert verdict is not None
    assert verdict.changes["response"] == text.replace("sk-12345", "[key]")


# --- size ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expression",
    [
        '"é".size() == 1', 'size("日本😀") == 3', 'size("e\u0301") == 2', 'size("") == 0', 'size(b"é") == 2',
        'size(bytes("é")) == 2', "size([1, 2]) == 2", 'size({"a": 1}) == 1', "args.t.size() == 2", "size(args.l) == 3",
        "args.m.size() == 1", "args.l.map(w, size(w)) == [1, 2, 0]", "size(size(args.t) > 1 ? 'é' : '') == 1",
        "args . t . size ( ) == 2", "size(// a comment\nargs.t) == 2", "(args.t + 'é').size() == 3",
        "args.size == 7", "args.l.exists(size, size.size() == 2)", "'.size()'.size() == 7",
    ],
)  # fmt: skip
def test_the_size_of_a_text_is_the_number_of_its_code_points(expression: str) -> None:
    assert holds(expression, args={"t": "é😀", "l": ["é", "éé", ""], "m": {"é": 1}, "size": 7})


@pytest.mark.parametrize("value", [5, 1.5, True, None])
@pytest.mark.parametrize("expression", ["size(args.v) == 1", "args.v.size() == 1", "[args.v].all(v, v.size() == 1)"])
def test_the_size_of_what_has_none_is_a_failure(expression: str, value: Any) -> None:
    assert failure(expression, args={"v": value}).startswith("size() takes a text, a list or an object, not ")


@pytest.mark.parametrize("call", ["size()", "size(1, 2)", "tool.size(1)", "tool.matches()", "tool.matches('a', 'b')"])
def test_a_function_of_ours_with_other_arguments_is_refused(call: str) -> None:
    with pytest.raises(BadRule, match="is called as"):
        Rule(f"true || {call}", on="before_tool", warn="x")
