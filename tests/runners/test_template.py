"""Templates: places in a text for what a step says, and nothing that could be made to say more."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead import EVENTS, UnknownName
from fairlead.lifecycle import Agent
from fairlead.runners.template import Template
from fairlead.testing import every_step, step

quick = settings(deadline=None, max_examples=150, derandomize=True, database=None)


def fill(text: str, event: str = "before_tool", **fields: Any) -> str:
    return Template(text, event).fill(step(event, **fields))


# --- what is filled in --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{tool}", "bash"),
        ("{event}", "before_tool"),
        ("{session_id}", "session-1"),
        ("{target.command}", "echo hello"),
        ("{args.command}", "echo hello"),
        ("{tool}: {target.command}.", "bash: echo hello."),
        ("{tool}{tool}", "bashbash"),
        ("no places", "no places"),
        ("", ""),
    ],
)
def test_a_place_becomes_what_the_step_says(text: str, expected: str) -> None:
    assert fill(text) == expected


def test_a_place_may_lie_deep_in_the_arguments() -> None:
    assert fill("{args.a.b.0.c}", args={"a": {"b": [{"c": "found"}]}}) == "found"


def test_a_number_is_a_place_in_a_list_or_a_name_in_an_object() -> None:
    assert fill("{args.list.1} {args.object.1}", args={"list": ["a", "b"], "object": {"1": "c"}}) == "b c"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, "true"), (False, "false"), (0, "0"), (7, "7"), (1.5, "1.5"), ("", ""), ("text", "text"), ('"', '"')],
)
def test_a_value_is_shown_as_json_and_a_text_as_itself(value: Any, expected: str) -> None:
    assert fill("{args.v}", args={"v": value}) == expected


@pytest.mark.parametrize("value", [[], {}, [1, "a", None], {"a": {"b": [True]}}, ["é"]])
def test_objects_and_lists_are_shown_as_json(value: Any) -> None:
    assert fill("{args.v}", args={"v": value}) == json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def test_a_whole_field_may_be_shown() -> None:
    assert json.loads(fill("{args}", args={"command": "ls", "n": [1]})) == {"command": "ls", "n": [1]}


def test_the_parts_of_an_agent_can_be_named() -> None:
    assert fill("{agent.name} of {agent.parent}", agent=Agent(name="a", parent="b")) == "a of b"


@pytest.mark.parametrize(
    "place",
    [
        "result",
        "agent",
        "agent.name",
        "target.url",
        "metadata.x",
        "args.missing",
        "args.missing.deeper",
        "args.null",
        "args.list.9",
        "args.list.x",
        "args.text.x",
        "args.text.0",
        "args.number.x",
        "tool.x",
    ],
)
def test_what_is_not_set_is_empty(place: str) -> None:
    args = {"null": None, "list": [1], "text": "abc", "number": 5}
    assert fill(f"<{{{place}}}>", args=args) == "<>"


@pytest.mark.parametrize("event", EVENTS)
def test_every_field_of_every_event_can_be_shown(event: str) -> None:
    given = step(event)
    for name in ("event", *given.__struct_fields__):
        assert (Template(f"{{{name}}}", event).fill(given) == "") == (getattr(given, name) in (None, "")), name


def test_state_that_is_no_json_is_empty() -> None:
    assert fill("<{state}>", "before_request", state=object()) == "<>"


def test_state_that_holds_itself_is_empty() -> None:
    state: dict[str, Any] = {}
    state["state"] = state
    assert fill("<{state}>", "before_request", state=state) == "<>"


# --- what is left alone ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "{tool:>10}",
        "{tool!r}",
        "{tool!s:x}",
        "{args[command]}",
        "{args.a-b}",
        "{args.}",
        "{.tool}",
        "{args..a}",
        "{ tool }",
        "{tool }",
        "{}",
        "{0}",
        "{0.tool}",
        "{tool",
        "tool}",
        "{",
        "}",
        "{{}}",
        "{tool()}",
        "{tool|upper}",
        "${",
        "%(tool)s",
        "$tool",
        "{'a': 1}",
        '{"a": {"b": 1}}',
        "{é}",
        "{tool\n}",
    ],
)
def test_whatever_else_stands_in_braces_is_left_alone(text: str) -> None:
    assert fill(text) == text


def test_braces_around_a_place_stay() -> None:
    assert fill("{{tool}}") == "{bash}"


@pytest.mark.parametrize(
    "text",
    [
        "{target.__class__}",
        "{target.__class__.__mro__}",
        "{target.__struct_fields__}",
        "{tool.__class__}",
        "{tool.upper}",
        "{args.keys}",
        "{args.__class__.__init__.__globals__}",
        "{event.__len__}",
        "{agent.__dict__}",
        "{metadata.get}",
    ],
)
def test_a_place_never_reaches_an_attribute(text: str) -> None:
    assert fill(text, agent=Agent(name="a"), metadata={"x": 1}) == ""


def test_a_name_with_underscores_is_a_name_like_any_other() -> None:
    assert fill("{args.__class__}", args={"__class__": "mine"}) == "mine"


@pytest.mark.parametrize("name", ["__class__", "__struct_fields__", "_containers", "__init__"])
def test_an_attribute_of_the_step_is_an_unknown_field(name: str) -> None:
    with pytest.raises(UnknownName):
        Template(f"{{{name}}}", "before_tool")


@pytest.mark.parametrize("name", ["__struct_fields__", "_containers", "_choices"])
def test_an_attribute_of_the_step_is_never_shown(name: str) -> None:
    try:
        shown = Template(f"<{{{name}}}>").fill(step("before_tool"))
    except UnknownName:
        return
    assert shown == "<>"


@pytest.mark.parametrize("value", ["{tool}", "{args.x}", "{{tool}}", "{target.command}", "{x", "\\1", "%s"])
def test_what_is_filled_in_is_not_read_again(value: str) -> None:
    assert fill("{args.x}|{tool}", args={"x": value}) == f"{value}|bash"


def test_places_cannot_be_put_together_from_what_is_filled_in() -> None:
    assert fill("{args.open}tool{args.close}", args={"open": "{", "close": "}"}) == "{tool}"


# --- what is wrong ------------------------------------------------------------------------------------


def test_a_misspelt_field_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UnknownName, match=r"unknown field 'tol' of before_tool in 'no \{tol\}'; did you mean 'tool'"):
        Template("no {tol}", "before_tool")


def test_a_misspelt_field_with_parts_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UnknownName, match="did you mean 'target'"):
        Template("{traget.command}", "before_tool")


def test_every_place_is_checked() -> None:
    with pytest.raises(UnknownName, match="'nosuch'"):
        Template("{tool} {args.x} {nosuch}", "before_tool")


def test_a_field_must_be_known_at_every_event_of_the_template() -> None:
    with pytest.raises(UnknownName, match="of turn_start"):
        Template("{tool}", ["before_tool", "turn_start"])


def test_the_header_is_known_at_all_events() -> None:
    template = Template("{event} {session_id}", "*")
    assert [template.fill(s) for s in every_step()] == [f"{event} session-1" for event in EVENTS]


def test_a_misspelt_event_is_refused() -> None:
    with pytest.raises(UnknownName, match="did you mean 'before_tool'"):
        Template("{tool}", "befor_tool")


@pytest.mark.parametrize("name", ["tool", "tool.x", "stop_reason", "args.command"])
def test_a_field_of_another_event_is_empty_where_no_event_was_named(name: str) -> None:
    assert Template(f"<{{{name}}}>").fill(step("turn_start")) == "<>"


# --- properties -----------------------------------------------------------------------------------------

plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(), values, max_size=4)
paths = st.lists(st.sampled_from(["a", "b", "0", "1", "00", "__class__", "_"]), max_size=4)
bracy = st.lists(st.sampled_from(["{", "}", "{tool}", "{args.x}", "{args}", "{nosuch}", "\\", "a", "%s"])).map("".join)


@quick
@given(objects)
def test_filling_never_raises_whatever_the_arguments_are(args: dict[str, Any]) -> None:
    assert isinstance(fill("{args} {target} {target.command} {args.command} {args.a.0}", args=args), str)


@quick
@given(values, paths)
def test_no_path_into_the_arguments_raises(value: Any, path: list[str]) -> None:
    assert isinstance(fill("{" + ".".join(["args", "a", *path]) + "}", args={"a": value}), str)


@quick
@given(st.text(st.characters(exclude_characters="{}")))
def test_a_text_without_braces_comes_back_unchanged(text: str) -> None:
    assert fill(text) == text


@quick
@given(st.text(string.punctuation + "tol .\n"))
def test_a_text_comes_back_unchanged_or_is_refused_but_for_its_places(text: str) -> None:
    try:
        template = Template(text, "before_tool")
    except UnknownName:
        return
    assert template.fill(step("before_tool")) == text.replace("{tool}", "bash")


@quick
@given(bracy, bracy)
def test_values_with_braces_are_never_read_again(x: str, y: str) -> None:
    assert fill("{args.x}|{args.y}|{args.x}", args={"x": x, "y": y}) == f"{x}|{y}|{x}"


@quick
@given(st.dictionaries(st.text(), bracy | st.lists(bracy), max_size=3))
def test_objects_are_shown_as_json_that_reads_back_the_same(args: dict[str, Any]) -> None:
    assert json.loads(fill("{args}", args=args)) == args
