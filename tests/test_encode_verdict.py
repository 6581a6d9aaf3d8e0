"""`encode_verdict` writes what `read_verdict` reads: the same verdict, at every event, whatever is in it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead import (
    EVENTS,
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
    encode_verdict,
    extend,
    inject,
    read_verdict,
    retry,
    skip,
    skip_rest,
    stop,
    warn,
)
from fairlead.lifecycle import STOP_REASONS, BeforeTool
from fairlead.verdict import check

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
scalar = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | text
value = st.recursive(
    scalar | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
an_object = st.dictionaries(text, value, max_size=3)
content = text | an_object | st.lists(an_object, max_size=3)
some_input = text | st.lists(text | an_object, max_size=3)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "state": value.filter(lambda state: state is not None),
    "session_id": text, "checkpoint_id": text, "input": some_input, "prepend_input": some_input,
    "system_prompt": text, "model": text, "messages": st.lists(value, max_size=3), "assistant": content,
    "output": content, "args": an_object, "result": content, "is_error": st.booleans(), "response": content,
    "content": content, "initial_message": text, "message": text, "command": text, "url": text,
    "paths": text | st.lists(text, max_size=3),
}  # fmt: skip


@st.composite
def verdicts(draw: Any, event: str) -> Verdict:
    """Any verdict that this event takes."""
    row = EVENTS[event]
    control = draw(st.sampled_from(sorted(row.controls)))
    fields = [*row.changes, *(["command", "paths", "url"] if "args" in row.changes else [])]
    changed = draw(st.sets(st.sampled_from(fields))) if fields else set()
    changes = {name: draw(VALUES[name]) for name in sorted(changed - {"resolved"})}
    if "resolved" in changed and control in ("proceed", "allow", "deny"):
        changes["resolved"] = {"allow": True, "deny": False}.get(control, draw(st.booleans()))
    texts = st.lists(text, max_size=3).map(tuple)
    return Verdict(
        control,
        draw(st.none() | text),
        draw(st.none() | text),
        draw(st.sampled_from(STOP_REASONS)) if control == "stop" else None,
        draw(texts) if row.context else (),
        draw(texts),
        draw(st.none() | an_object),
        changes,
    )


@pytest.mark.parametrize("event", EVENTS)
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_a_verdict_that_was_written_is_read_as_it_was(event: str, data: Any) -> None:
    verdict = data.draw(verdicts(event))
    written = encode_verdict(verdict, event)
    assert read_verdict(written, event) == check(verdict, None, EVENTS[event])
    assert encode_verdict(read_verdict(written, EVENTS[event]), EVENTS[event]) == written


@pytest.mark.parametrize(
    ("verdict", "event", "written"),
    [
        (None, "before_tool", "null"),
        (Verdict(), "before_tool", "{}"),
        (deny("no", context="mind this"), "before_tool",
         '{"control":"deny","reason":"no","additional_context":["mind this"]}'),
        (stop("enough", "refusal"), "before_model", '{"control":"stop","reason":"enough","stop_reason":"refusal"}'),
        (change(command="ls"), "before_tool", '{"command":"ls"}'),
        (answer("cached", is_error=False), "before_tool", '{"result":"cached","is_error":false}'),
        (answer("said"), "before_model", '{"assistant":"said"}'),
        (inject("on main"), "turn_start", '{"additional_context":["on main"]}'),
        (warn("careful", metadata={"n": 1}), "error", '{"warnings":["careful"],"metadata":{"n":1}}'),
        (extend("go on"), "before_turn_end", '{"control":"extend","reason":"go on"}'),
        (abort("no", name="x"), "session_end", '{"control":"abort","reason":"no","name":"x"}'),
        *((make(), event, f'{{"control":"{make.__name__}"}}') for make, event in [
            (ask, "before_tool"), (allow, "before_tool"), (skip, "before_compact"), (retry, "after_tool"),
            (skip_rest, "error"),
        ]),
    ],
)  # fmt: skip
def test_a_verdict_is_written_in_the_words_of_the_wire(verdict: Verdict | None, event: str, written: str) -> None:
    assert encode_verdict(verdict, event).decode() == written
    assert read_verdict(written, event) == (
        Verdict() if verdict is None else check(verdict, None, EVENTS[event])
    )  # fmt: skip


def test_a_hook_may_return_what_was_written() -> None:
    written = msgspec.json.decode(encode_verdict(deny("no", metadata={"rule": 7}), "before_tool"))
    hooks = Hooks()
    hooks.add(lambda step: written, on="before_tool", name="judge")
    decision = hooks.dispatch_sync(BeforeTool(tool="bash"))
    assert (decision.control, decision.reason, decision.metadata) == ("deny", "no", {"rule": 7})


@pytest.mark.parametrize(
    ("verdict", "event", "field"),
    [
        (extend(), "before_tool", "control"),
        (change(args={}), "before_model", "args"),
        (inject("x"), "turn_end", "additional_context"),
        (Verdict("deny", stop_reason="end_turn"), "before_tool", "stop_reason"),
    ],
)
def test_what_the_event_does_not_take_is_not_written(verdict: Verdict, event: str, field: str) -> None:
    with pytest.raises(MalformedVerdict) as raised:
        encode_verdict(verdict, event)
    assert raised.value.field == field


@dataclass
class Loop:
    """A value that holds itself."""

    inner: Any = None


@pytest.mark.parametrize("state", [object(), "\ud800", {1: {object()}}], ids=["object", "text", "set"])
def test_what_is_no_json_is_not_written(state: Any) -> None:
    with pytest.raises(MalformedVerdict, match="cannot be written as JSON"):
        encode_verdict(change(state=state), "before_request")


def test_keys_that_json_has_no_type_for_are_written_as_text() -> None:
    written = encode_verdict(deny("x", metadata={date(2026, 1, 2): {1.5: "a", float("nan"): "b"}}), "before_tool")
    assert msgspec.json.decode(written)["metadata"] == {"2026-01-02": {"1.5": "a", "nan": "b"}}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("place", [lambda x: x, lambda x: [1, {"n": x}]], ids=["itself", "nested"])
def test_a_number_that_json_has_not_is_not_written(number: float, place: Any) -> None:
    with pytest.raises(MalformedVerdict, match="cannot be written as JSON: Out of range float"):
        encode_verdict(change(args={"n": place(number)}), "before_tool")


def test_a_value_that_holds_itself_is_not_written() -> None:
    loop = Loop()
    loop.inner = loop
    with pytest.raises(MalformedVerdict, match="cannot be written as JSON"):
        encode_verdict(change(state=loop), "before_request")


def test_an_unknown_event_is_an_error() -> None:
    with pytest.raises(UnknownName, match="did you mean 'before_tool'"):
        encode_verdict(deny(), "BeforeToolCall")
