"""`may`: a hook that is not trusted with more can be kept to some of what a verdict can do."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead import (
    EVENTS,
    MalformedVerdict,
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
    warn,
)
from fairlead.lifecycle import CONTROLS
from fairlead.verdict import POWERS, keep_within

USES: dict[str, tuple[Verdict, str]] = {
    "deny": (deny("no"), "before_tool"),
    "ask": (ask("really?"), "before_tool"),
    "allow": (allow(), "before_tool"),
    "skip": (skip(), "before_compact"),
    "stop": (stop(), "turn_start"),
    "extend": (extend("go on"), "before_turn_end"),
    "retry": (retry(), "after_tool"),
    "abort": (abort(), "session_start"),
    "skip_rest": (skip_rest(), "before_tool"),
    "change": (change(args={}), "before_tool"),
    "answer": (answer("cached"), "before_tool"),
    "inject": (inject("context"), "before_tool"),
    "warn": (warn("careful"), "before_tool"),
}
"""For every power a verdict that needs it and no other, and an event that takes it."""


def kept(said: Any, may: tuple[str, ...], event: str = "before_tool") -> str | None:
    """The power that is missing, None if the verdict keeps within what it may."""
    try:
        keep_within(said, EVENTS[event], may)
    except MalformedVerdict as problem:
        return problem.field
    return None


def test_a_missing_power_says_how_to_give_it() -> None:
    with pytest.raises(MalformedVerdict, match=r"may only warn; add 'deny' to its may = \[...\]"):
        keep_within(deny("no"), EVENTS["before_tool"], ("warn",))


def test_a_power_that_can_never_be_given_does_not_say_how() -> None:
    with pytest.raises(MalformedVerdict, match=r"may only warn$"):
        keep_within(deny("no"), EVENTS["before_tool"], ("warn",), never=("deny",))


def test_the_powers_are_all_controls_but_proceed_and_what_else_a_verdict_does() -> None:
    assert set(POWERS) == {*CONTROLS, "change", "answer", "inject", "warn"} - {"proceed"}


def test_there_is_a_use_of_every_power() -> None:
    assert set(USES) == set(POWERS)


@pytest.mark.parametrize("power", POWERS)
def test_a_power_that_is_named_is_given(power: str) -> None:
    verdict, event = USES[power]
    assert kept(verdict, (power,), event) is None


@pytest.mark.parametrize("power", POWERS)
def test_a_power_that_is_not_named_is_not_given_by_all_others(power: str) -> None:
    verdict, event = USES[power]
    assert kept(verdict, tuple(other for other in POWERS if other != power), event) == power


@pytest.mark.parametrize("said", [None, {}, {"control": "proceed"}, Verdict(), Verdict(reason="fine")])
def test_having_no_opinion_takes_no_power(said: Any) -> None:
    assert kept(said, ()) is None


def test_metadata_takes_no_power() -> None:
    assert kept({"metadata": {"seen": True}}, ()) is None


@pytest.mark.parametrize(
    ("said", "powers"),
    [
        (deny("no", context="c"), {"deny", "inject"}),
        (deny("no", warnings="w"), {"deny", "warn"}),
        (allow(args={}), {"allow", "change"}),
        (answer("x", args={}), {"answer", "change"}),
        (inject("c", warnings="w", command="ls"), {"inject", "warn", "change"}),
    ],
)
def test_a_verdict_needs_every_power_it_uses(said: Verdict, powers: set[str]) -> None:
    assert kept(said, tuple(powers)) is None
    for power in powers:
        assert kept(said, tuple(powers - {power})) == power


@pytest.mark.parametrize("field", ["command", "url", "paths"])
def test_changing_what_a_call_is_aimed_at_is_a_change(field: str) -> None:
    assert kept({field: "x"}, ("deny",)) == "change"


def test_an_answer_may_say_that_it_is_an_error() -> None:
    assert kept(answer("no such file", is_error=True), ("answer",)) is None


def test_answering_for_the_model_is_an_answer() -> None:
    assert kept(answer("hi"), ("change",), "before_model") == "answer"


def test_a_field_that_answers_elsewhere_is_a_change() -> None:
    assert kept({"output": "x"}, ("answer",), "after_tool") == "change"


@pytest.mark.parametrize(("event", "power"), [("before_tool", "deny"), ("before_turn_end", "extend")])
def test_a_veto_needs_the_power_it_stands_for(event: str, power: str) -> None:
    assert kept({"control": "veto"}, (power,), event) is None
    assert kept({"control": "veto"}, ("warn",), event) == power


@pytest.mark.parametrize(
    ("word", "event", "power"), [("break", "turn_start", "stop"), ("continue", "before_turn_end", "extend")]
)
def test_a_seeds_word_needs_the_power_it_stands_for(word: str, event: str, power: str) -> None:
    assert kept({"control": word}, (power,), event) is None
    assert kept({"control": word}, ("deny",), event) == power


def test_what_the_event_does_not_take_is_malformed_whatever_the_hook_may() -> None:
    with pytest.raises(MalformedVerdict, match="does not take 'deny'"):
        keep_within(deny("no"), EVENTS["turn_start"], POWERS)


def test_the_error_says_what_the_hook_may_and_what_to_add() -> None:
    with pytest.raises(MalformedVerdict, match=r"may only deny, warn; add 'allow' to its may = \[\.\.\.\]"):
        keep_within(allow(), EVENTS["before_tool"], ("deny", "warn"))
