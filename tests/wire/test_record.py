"""A decision as JSON, and back: it says the same."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead import (
    EVENTS,
    Approval,
    Decision,
    Hooks,
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
from fairlead.lifecycle import BeforeTool
from fairlead.testing import every_step, step
from fairlead.wire.decisions import BadRecord, decode_decision, encode_decision, summary

thorough = settings(deadline=None, max_examples=50, derandomize=True, database=None)
SAYS = (
    "control", "reason", "hook", "cause", "denied", "stop_reason", "changed", "context", "warnings", "failures",
    "monitored", "approval", "unsupported", "metadata", "runs", "event", "proceeds",
)  # fmt: skip


def again(decision: Decision[Any]) -> Decision[Any]:
    """The decision after a journey through JSON."""
    plain = msgspec.to_builtins(encode_decision(decision), str_keys=True)
    return decode_decision(msgspec.json.decode(msgspec.json.encode(plain)))


def said(decision: Decision[Any]) -> dict[str, Any]:
    found = {name: getattr(decision, name) for name in SAYS}
    found["by"] = [text.hook for text in decision.context]
    found["story"] = str(decision)
    found["step"] = msgspec.to_builtins(decision.step)
    return found


# --- decisions of real dispatches ---------------------------------------------------------------------------

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
texts = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
also = st.fixed_dictionaries(
    {},
    optional={
        "warnings": st.lists(names, max_size=2),
        "metadata": st.dictionaries(names, st.integers() | names | st.lists(st.booleans()), max_size=2),
        "context": st.lists(names, max_size=2),
    },
)
MAKERS = [deny, ask, allow, skip, stop, extend, abort, retry, skip_rest, change, inject, warn, answer]


@st.composite
def verdicts(draw: Any) -> Any:
    make = draw(st.sampled_from(MAKERS))
    more = draw(also)
    more.pop({inject: "context", warn: "warnings"}.get(make), None)
    text = draw(texts)
    if make is answer:
        return answer(text or "", **more)
    if make is change and draw(st.booleans()):
        more["args"] = draw(st.dictionaries(names, st.integers() | names, max_size=2))
    return make(text, **more)


@st.composite
def hook(draw: Any) -> dict[str, Any]:
    return {
        "says": draw(st.none() | verdicts() | st.just(RuntimeError("broken")) | st.just({"control": "dney"})),
        "phase": draw(st.sampled_from(["transform", "gate", "observe"])),
        "on_failure": draw(st.sampled_from(["open", "closed", "abort"])),
        "enforce": draw(st.booleans()),
        "wait": draw(st.booleans()),
        "priority": draw(st.integers(0, 3)),
    }


def build(hooks: Hooks, specs: list[dict[str, Any]], event: str) -> None:
    for number, spec in enumerate(specs):

        def say(step: Any, says: Any = spec["says"]) -> Any:
            if isinstance(says, Exception):
                raise says
            return says

        async def say_later(step: Any, says: Any = spec["says"]) -> Any:
            await asyncio.sleep(0)
            if isinstance(says, Exception):
                raise says
            return says

        options = {key: spec[key] for key in ("phase", "enforce", "priority")}
        if spec["phase"] != "observe":
            options["on_failure"] = spec["on_failure"]
        hooks.add(say_later if spec["wait"] else say, on=event, name=f"hook {number}", **options)


@thorough
@given(st.lists(hook(), max_size=5), st.sampled_from(sorted(EVENTS)), st.booleans(), st.booleans())
def test_a_decision_that_was_told_says_the_same(
    specs: list[dict[str, Any]], event: str, record: bool, approves: bool
) -> None:
    async def approve(request: Any) -> Approval:
        return Approval("allow" if approves else "deny", "me", "because")

    hooks = Hooks(record=record, approver=approve)
    build(hooks, specs, event)
    decision = asyncio.run(hooks.dispatch(step(event)))
    assert said(again(decision)) == said(decision)


async def test_what_a_host_cannot_carry_out_is_told() -> None:
    hooks = Hooks()
    hooks.add(lambda step: inject("context"), on="before_tool", name="adds")
    session = hooks.session("s", capabilities={"before_tool": frozenset()})
    decision = await session.dispatch(session.step(BeforeTool, tool="bash"))
    assert again(decision).unsupported == decision.unsupported == ("context",)


@pytest.mark.parametrize("made", every_step(), ids=lambda made: made.event)
def test_a_decision_on_any_event_can_be_told(made: Any) -> None:
    decision = Hooks(record=True).dispatch_sync(made)
    assert said(again(decision)) == said(decision)


def test_what_was_changed_to_nothing_is_told() -> None:
    before = BeforeTool(tool="bash", result="x")
    decision: Decision[Any] = Decision(msgspec.structs.replace(before, result=None), before)
    assert again(decision).step.result is None


def test_the_summary_is_plain_json() -> None:
    hooks = Hooks()
    hooks.add(lambda step: deny("no", context="c", metadata={"a": 1}), on="before_tool", name="no")
    decision = hooks.dispatch_sync(BeforeTool(tool="bash", args={"command": "ls"}))
    told = msgspec.json.decode(msgspec.json.encode(summary(decision)))
    assert (told["control"], told["hook"], told["context"]) == ("deny", "no", [{"text": "c", "hook": "no"}])


# --- what is no decision --------------------------------------------------------------------------------------

GOOD = {"step": {"event": "before_tool", "tool": "bash"}, "control": "deny"}
WRONG: dict[str, Any] = {
    "nothing": {},
    "no step": {"control": "deny"},
    "no control": {"step": GOOD["step"]},
    "an unknown control": GOOD | {"control": "dney"},
    "a control that is no text": GOOD | {"control": 5},
    "an unknown event": GOOD | {"step": {"event": "before_lunch"}},
    "a step without its tool": GOOD | {"step": {"event": "before_tool"}},
    "a step that is none": GOOD | {"step": "x"},
    "an unknown field": GOOD | {"step": GOOD["step"] | {"colour": "red"}},
    "another version": GOOD | {"step": GOOD["step"] | {"fairlead": 9}},
    "said that is no list": GOOD | {"said": 5},
    "said that says nothing": GOOD | {"said": [{}]},
    "a verdict without a hook": GOOD | {"said": [{"verdict": {"control": "deny"}}]},
    "a verdict of a wrong type": GOOD | {"said": [{"hook": "h", "verdict": {"reason": 5}}]},
    "an approval of a wrong shape": GOOD | {"said": [{"approval": {"when": 1}}]},
    "a run of a wrong shape": GOOD | {"runs": [["h"]]},
    "a run of an unknown phase": GOOD | {"runs": [["h", "dinner", "none", 1]]},
    "a run without a hook": GOOD | {"runs": [["", "gate", "none", 1]]},
    "left that is unknown": GOOD | {"left": {"colour": "red"}},
    "left that is no object": GOOD | {"left": [1]},
}


@pytest.mark.parametrize("told", WRONG.values(), ids=WRONG.keys())
def test_what_is_no_decision_is_refused(told: dict[str, Any]) -> None:
    with pytest.raises(BadRecord):
        decode_decision(told)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@thorough
@given(st.dictionaries(st.sampled_from(["step", "control", "said", "runs", "left"]), json_values))
def test_nothing_but_a_bad_record_comes_of_anything_else(more: dict[str, Any]) -> None:
    try:
        decode_decision(GOOD | more)
    except BadRecord:
        pass
