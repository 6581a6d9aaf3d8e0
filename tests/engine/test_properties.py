"""Properties of the fold, the glob, the reading and the applying of verdicts, each against a small oracle."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fairlead import (
    EVENTS,
    Approval,
    ApprovalRequest,
    Hook,
    Hooks,
    MalformedVerdict,
    ReadOnlyError,
    RegistrationError,
    Verdict,
    read_verdict,
    thaw,
)
from fairlead.frozen import freeze
from fairlead.glob import compile_glob, is_exact
from fairlead.lifecycle import BeforeTool
from fairlead.verdict import HookVerdict, fold

quick = settings(deadline=None, max_examples=60, derandomize=True, database=None)
thorough = settings(quick, max_examples=200)

# --- the fold ---------------------------------------------------------------------------------

RANKS = [["proceed", "skip_rest"], ["allow"], ["skip", "extend", "retry"], ["ask"], ["deny"], ["stop"], ["abort"]]
RANK = {control: rank for rank, controls in enumerate(RANKS) for control in controls}


def oracle(controls: list[str]) -> int | None:
    """Which of these decides: the first of the most severe, None if none objects."""
    best = None
    for at, control in enumerate(controls):
        if RANK[control] > (0 if best is None else RANK[controls[best]]):
            best = at
    return best


def hook_verdicts(controls: list[str]) -> list[HookVerdict]:
    return [
        HookVerdict(Hook(lambda step: None, on="*", name=f"h{at}"), Verdict(control=control, reason=f"r{at}"))  # type: ignore[arg-type]
        for at, control in enumerate(controls)
    ]


any_controls = st.lists(st.sampled_from(sorted(RANK)), max_size=8)


@quick
@given(any_controls)
def test_the_first_of_the_most_severe_decides(controls: list[str]) -> None:
    said, best = hook_verdicts(controls), oracle(controls)
    assert fold(said) is (None if best is None else said[best])


@pytest.mark.parametrize("first", sorted(RANK))
@pytest.mark.parametrize("second", sorted(RANK))
def test_of_two_verdicts_the_more_severe_decides(first: str, second: str) -> None:
    verdicts, best = hook_verdicts([first, second]), oracle([first, second])
    assert fold(verdicts) is (None if best is None else verdicts[best])


def test_a_verdict_that_was_given_is_not_changed_afterwards() -> None:
    (given,) = hook_verdicts(["deny"])
    with pytest.raises(AttributeError):
        given.cause = "failure"  # type: ignore[misc]
    assert given.cause == "policy"


@quick
@given(any_controls, st.randoms(use_true_random=False))
def test_the_order_of_opinions_does_not_change_how_severe_the_outcome_is(controls: list[str], random: Any) -> None:
    said = hook_verdicts(controls)
    shuffled = random.sample(said, len(said))
    before, after = fold(said), fold(shuffled)
    assert (before is None) == (after is None)
    if before is not None and after is not None:
        assert RANK[before.verdict.control] == RANK[after.verdict.control]


@quick
@given(any_controls, any_controls)
def test_folding_in_two_parts_is_folding_at_once(left: list[str], right: list[str]) -> None:
    said = hook_verdicts([*left, *right])
    parts = [fold(said[: len(left)]), fold(said[len(left) :])]
    assert fold([part for part in parts if part is not None]) is fold(said)


AT_BEFORE_TOOL = ["proceed", "skip_rest", "allow", "ask", "deny", "stop", "abort"]
STEP = BeforeTool(tool="Bash", args={"command": "ls"})


async def approve(request: ApprovalRequest) -> Approval:
    return Approval("allow", "ann")


def register(
    hooks: Hooks, name: str, control: str | None, priority: int, is_async: bool, pause: int, phase: str
) -> None:
    said = None if control is None else Verdict(control=control, reason=f"{name} says so")  # type: ignore[arg-type]

    def plain(step: Any) -> Verdict | None:
        return said

    async def pausing(step: Any) -> Verdict | None:
        for _ in range(pause):
            await asyncio.sleep(0)
        return said

    hooks.add(pausing if is_async else plain, on="before_tool", name=name, priority=priority, phase=phase)


one_hook = st.tuples(
    st.none() | st.sampled_from(AT_BEFORE_TOOL),  # what it says
    st.integers(48, 52),  # priority
    st.booleans(),  # async
    st.integers(0, 3),  # how late it finishes
)
chains = st.lists(one_hook, min_size=1, max_size=7)


def in_chain_order(spec: list[Any]) -> list[tuple[str, str | None]]:
    """(name, what it says), by priority and then registration."""
    named = [(f"h{at}", *hook) for at, hook in enumerate(spec)]
    return [(name, control) for name, control, *_ in sorted(named, key=lambda hook: hook[2])]


@quick
@given(chains)
def test_gates_fold_by_severity_and_chain_order_whichever_finishes_first(spec: list[Any]) -> None:
    hooks = Hooks(approver=approve)
    for at, (control, priority, is_async, pause) in enumerate(spec):
        register(hooks, f"h{at}", control, priority, is_async, pause, "gate")
    decision = asyncio.run(hooks.dispatch(STEP))

    spoken = [(name, control) for name, control in in_chain_order(spec) if control is not None]
    best = oracle([control for _, control in spoken])
    if best is None:
        assert (decision.control, decision.hook, decision.cause) == ("proceed", None, None)
        return
    name, control = spoken[best]
    assert decision.hook == name
    assert decision.control == {"ask": "allow"}.get(control, control)
    assert decision.cause == ("approval" if control == "ask" else "policy")
    asking = [asks for asks, says in spoken if says == control == "ask"]
    told = "\n".join(f"[{asks}] {asks} says so" for asks in asking)
    assert decision.reason == (told if len(asking) > 1 else f"{name} says so")


@quick
@given(chains)
def test_every_gate_runs_to_its_end_and_is_kept_in_chain_order(spec: list[Any]) -> None:
    hooks = Hooks(approver=approve)
    for at, (control, priority, is_async, pause) in enumerate(spec):
        register(hooks, f"h{at}", control, priority, is_async, pause, "gate")
    decision = asyncio.run(hooks.dispatch(STEP))
    spoken = [(name, control) for name, control in in_chain_order(spec) if control is not None]
    assert [(hook_verdict.hook.name, hook_verdict.verdict.control) for hook_verdict in decision.verdicts] == spoken


@quick
@given(chains)
def test_a_deny_under_a_stop_or_an_abort_is_still_a_deny(spec: list[Any]) -> None:
    hooks = Hooks(approver=approve)
    for at, (control, priority, is_async, pause) in enumerate(spec):
        register(hooks, f"h{at}", control, priority, is_async, pause, "gate")
    decision = asyncio.run(hooks.dispatch(STEP))
    assert decision.denied is any(control == "deny" for control, *_ in spec)


@quick
@given(chains)
def test_a_transform_that_ends_its_phase_is_the_last_that_runs(spec: list[Any]) -> None:
    hooks = Hooks(approver=approve)
    for at, (control, priority, is_async, pause) in enumerate(spec):
        register(hooks, f"h{at}", control, priority, is_async, pause, "transform")
    decision = asyncio.run(hooks.dispatch(STEP))

    expected: list[tuple[str, str]] = []
    for name, control in in_chain_order(spec):
        if control is not None:
            expected.append((name, control))
        if control in ("abort", "stop", "deny", "skip_rest"):
            break
    assert [(hook_verdict.hook.name, hook_verdict.verdict.control) for hook_verdict in decision.verdicts] == expected


@quick
@given(chains)
def test_sync_and_async_dispatch_agree(spec: list[Any]) -> None:
    hooks = Hooks(approver=approve)
    for at, (control, priority, is_async, pause) in enumerate(spec):
        register(hooks, f"h{at}", control, priority, is_async, pause, "gate" if at % 2 else "transform")
    one, other = asyncio.run(hooks.dispatch(STEP)), hooks.dispatch_sync(STEP)
    assert (one.control, one.hook, one.reason, one.verdicts) == (
        other.control,
        other.hook,
        other.reason,
        other.verdicts,
    )


# --- the glob ---------------------------------------------------------------------------------


def matches(pattern: str, text: str) -> bool:
    """A matcher small enough to be seen to be right: alternatives first, then one character at a time."""
    if "{" in pattern:
        start = pattern.index("{")
        depth, parts, part = 0, [], ""
        for end in range(start, len(pattern)):
            char = pattern[end]
            depth += (char == "{") - (char == "}")
            if depth == 0:
                break
            if char == "," and depth == 1:
                parts.append(part)
                part = ""
            elif end > start:
                part += char
        rest = pattern[end + 1 :]
        return any(matches(pattern[:start] + choice + rest, text) for choice in [*parts, part])
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(matches(pattern[1:], text[at:]) for at in range(len(text) + 1))
    return bool(text) and pattern[0] in ("?", text[0]) and matches(pattern[1:], text[1:])


letters = st.sampled_from(list("ab_.[]^$()|+\\-\nÄ"))
plain_text = st.text(letters, max_size=6)
glob_part = st.one_of(st.text(letters, max_size=3), st.just("*"), st.just("?"))
globs = st.recursive(
    st.lists(glob_part, max_size=3).map("".join),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: "{" + ",".join(parts) + "}"),
        st.lists(inner, min_size=1, max_size=2).map("".join),
    ),
    max_leaves=4,
).filter(bool)


@thorough
@given(globs, plain_text)
def test_a_glob_matches_what_the_oracle_matches(pattern: str, text: str) -> None:
    assert bool(compile_glob(pattern).fullmatch(text)) == matches(pattern, text)


@quick
@given(globs, st.data())
def test_a_glob_matches_what_is_made_from_it(pattern: str, data: Any) -> None:
    assume("{" not in pattern)
    text = "".join(
        data.draw(plain_text) if char == "*" else data.draw(letters) if char == "?" else char for char in pattern
    )
    assert compile_glob(pattern).fullmatch(text)


@thorough
@given(globs, st.data())
def test_a_glob_matches_near_misses_as_the_oracle_does(pattern: str, data: Any) -> None:
    text = list(pattern)
    text[data.draw(st.integers(0, len(text) - 1))] = data.draw(letters)
    near = "".join(text).replace("*", "a").replace("?", "b")
    assert bool(compile_glob(pattern).fullmatch(near)) == matches(pattern, near)


@quick
@given(st.text(st.characters(exclude_characters="*?{}"), min_size=1))
def test_a_plain_name_matches_itself(name: str) -> None:
    assert is_exact(name)
    assert compile_glob(name).fullmatch(name)


@quick
@given(st.text(st.characters(exclude_characters="*?{}"), min_size=1), st.text(min_size=1))
def test_a_plain_name_matches_nothing_else(name: str, other: str) -> None:
    assume(name != other)
    assert not compile_glob(name).fullmatch(other)


@quick
@given(st.text())
def test_a_star_matches_anything(text: str) -> None:
    assert compile_glob("*").fullmatch(text)


@quick
@given(st.text(st.sampled_from("ab*?,{}"), max_size=10))
def test_a_glob_is_bad_exactly_when_its_braces_do_not_pair(pattern: str) -> None:
    depth, sound = 0, bool(pattern)
    for char in pattern:
        depth += (char == "{") - (char == "}")
        sound = sound and depth >= 0
    if sound and depth == 0:
        compile_glob(pattern)
        return
    with pytest.raises(RegistrationError, match="bad glob"):
        compile_glob(pattern)


@quick
@given(st.text(st.sampled_from("ab*?,{}"), max_size=10))
def test_a_bad_glob_is_refused_when_a_hook_is_registered(pattern: str) -> None:
    try:
        compile_glob(pattern)
    except RegistrationError:
        hooks = Hooks()
        with pytest.raises(RegistrationError, match="bad glob"):
            hooks.add(lambda step: None, on="before_tool", tool=pattern)
        assert len(hooks) == 0


@quick
@given(globs, plain_text.filter(bool))
def test_a_hook_runs_exactly_for_the_tools_its_glob_matches(pattern: str, tool: str) -> None:
    hooks, ran = Hooks(), []
    hooks.add(lambda step: ran.append(step.tool), on="before_tool", tool=pattern, name="h")
    hooks.dispatch_sync(BeforeTool(tool=tool))
    assert ran == ([tool] if matches(pattern, tool) else [])


# --- applying ---------------------------------------------------------------------------------

GOOD: dict[str, st.SearchStrategy[Any]] = {
    "args": st.dictionaries(st.text(max_size=3), st.integers() | st.lists(st.text(max_size=2), max_size=2), max_size=3),
    "result": st.text(max_size=5) | st.just({"a": 1}) | st.just([{"type": "text"}]),
    "is_error": st.booleans(),
}
BAD: dict[str, st.SearchStrategy[Any]] = {
    "args": st.sampled_from(["ls", 5, ["ls"], True]),
    "result": st.sampled_from([5, True, ["text"], [1]]),
    "is_error": st.sampled_from(["no", 1, [], {}]),
    "system_prompt": st.text(max_size=3),
    "resolved": st.booleans(),
    "output": st.text(max_size=3),
    "colour": st.text(max_size=3),
    "url": st.just("https://a.example/"),
    "paths": st.just(["a"]),
}
mixes = st.tuples(
    st.fixed_dictionaries({}, optional=GOOD),
    st.fixed_dictionaries({}, optional=BAD),
    st.booleans(),
    st.booleans(),
)


def in_effect(changes: dict[str, Any]) -> dict[str, Any]:
    """`is_error` describes the result of its own verdict: it counts with one, and not without."""
    if "result" in changes:
        return {"is_error": None} | changes
    return {field: value for field, value in changes.items() if field != "is_error"}


@thorough
@given(mixes)
def test_a_verdict_is_applied_whole_or_not_at_all(mix: tuple[dict[str, Any], dict[str, Any], bool, bool]) -> None:
    good, bad, bad_first, as_object = mix
    changes = {**bad, **{k: v for k, v in good.items() if k not in bad}}
    if not bad_first:
        changes = dict(reversed(changes.items()))
    said: Any = (
        Verdict(context=("note",), changes=changes) if as_object else {"additional_context": ["note"], **changes}
    )
    hooks = Hooks()
    hooks.add(lambda step: said, on="before_tool", name="h", on_failure="open")
    decision = hooks.dispatch_sync(STEP)
    if bad:
        assert (decision.step, decision.context, decision.control) == (STEP, (), "proceed")
        assert [failure.kind for failure in decision.failures] == ["malformed"]
    else:
        assert decision.failures == ()
        assert decision.context == ("note",)
        wanted = in_effect(changes)
        assert {field: getattr(decision.step, field) for field in wanted} == wanted


@quick
@given(st.lists(mixes, min_size=1, max_size=4))
def test_a_malformed_verdict_leaves_what_others_changed(several: list[Any]) -> None:
    hooks = Hooks()
    expected: dict[str, Any] = {}
    for at, (good, bad, *_) in enumerate(several):
        changes = {**good, **bad}
        hooks.add(lambda step, said=changes: said, on="before_tool", name=f"h{at}", on_failure="open")
        if not bad:
            expected |= in_effect(good)
    decision = hooks.dispatch_sync(STEP)
    assert {field: getattr(decision.step, field) for field in expected} == expected
    assert set(decision.changed) - {"target", "kind", "safety"} <= set(expected)


# --- reading ----------------------------------------------------------------------------------

WIRE = [
    "control", "reason", "name", "stop_reason", "additional_context", "warnings", "metadata", "args", "result",
    "is_error", "command", "paths", "url", "server", "answer", "changes", "context", "event",
]  # fmt: skip
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
words = st.sampled_from(
    [*AT_BEFORE_TOOL, "veto", "break", "continue", "skip", "extend", "retry", "refusal", "end_turn"]
)
near_verdicts = st.dictionaries(st.sampled_from(WIRE), json_values | words | st.lists(words, max_size=2), max_size=4)
events = st.sampled_from(sorted(EVENTS))
any_text = st.text(max_size=12) | st.text(st.sampled_from('\ud800\udfff\x00{}[]:,"null01'), max_size=12)


def read_or_refuse(data: Any, event: str) -> None:
    try:
        verdict = read_verdict(data, EVENTS[event])
    except MalformedVerdict:
        return
    assert isinstance(verdict, Verdict)
    assert verdict.control in RANK


@thorough
@given(json_values | near_verdicts, events)
def test_any_json_is_a_verdict_or_malformed(value: Any, event: str) -> None:
    read_or_refuse(json.dumps(value), event)


@thorough
@given(near_verdicts | st.dictionaries(st.text(max_size=5), json_values, max_size=3), events)
def test_any_mapping_is_a_verdict_or_malformed(value: Any, event: str) -> None:
    read_or_refuse(value, event)


@quick
@given(near_verdicts, events)
def test_a_mapping_and_its_json_read_alike(value: dict[str, Any], event: str) -> None:
    def outcome(data: Any) -> Any:
        try:
            return read_verdict(data, EVENTS[event])
        except MalformedVerdict as problem:
            return problem.field

    text = json.dumps(value)
    assert outcome(text) == outcome(json.loads(text))


@thorough
@given(st.binary(max_size=40), events)
def test_any_bytes_are_a_verdict_or_malformed(data: bytes, event: str) -> None:
    read_or_refuse(data, event)


@thorough
@given(any_text, events)
def test_any_text_is_a_verdict_or_malformed(data: str, event: str) -> None:
    read_or_refuse(data, event)


@quick
@given(near_verdicts, st.data())
def test_a_broken_off_verdict_is_malformed(value: dict[str, Any], data: Any) -> None:
    text = json.dumps(value)
    cut = data.draw(st.integers(1, len(text) - 1))
    with pytest.raises(MalformedVerdict):
        read_verdict(text[:cut], EVENTS["before_tool"])


@thorough
@given(json_values | near_verdicts)
def test_whatever_a_hook_returns_dispatch_gives_a_decision(said: Any) -> None:
    hooks = Hooks()
    hooks.add(lambda step: said, on="before_tool", name="h", on_failure="open")
    decision = hooks.dispatch_sync(STEP)
    assert [failure.kind for failure in decision.failures] in ([], ["malformed"])


# --- freezing ---------------------------------------------------------------------------------


@quick
@given(json_values)
def test_thawing_what_was_frozen_gives_it_back(value: Any) -> None:
    assert thaw(freeze(value)) == value


def plain(value: Any) -> bool:
    if isinstance(value, dict):
        return type(value) is dict and all(map(plain, value.values()))
    return not isinstance(value, list) or (type(value) is list and all(map(plain, value)))


@quick
@given(json_values)
def test_what_is_thawed_is_plain_at_every_depth(value: Any) -> None:
    assert plain(thaw(freeze(value)))


def containers(value: Any) -> list[Any]:
    inside = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [value] * isinstance(value, (dict, list)) + [found for item in inside for found in containers(item)]


@quick
@given(json_values)
def test_no_container_in_what_is_frozen_can_be_cleared(value: Any) -> None:
    frozen = freeze(value)
    for container in containers(frozen):
        with pytest.raises(ReadOnlyError):
            container.clear()
    assert frozen == value


@quick
@given(json_values)
def test_freezing_what_is_frozen_changes_nothing(value: Any) -> None:
    frozen = freeze(value)
    assert freeze(frozen) is frozen


@quick
@given(st.dictionaries(st.text(max_size=4), json_values, max_size=4))
def test_a_step_carries_its_arguments_as_they_were(args: dict[str, Any]) -> None:
    step = BeforeTool(tool="x", args=args)
    assert step.args == args
    assert json.loads(json.dumps(step.args)) == json.loads(json.dumps(args))
