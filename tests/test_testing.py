"""fairlead.testing: what users need to test their own hooks."""

from __future__ import annotations

import pytest

from fairlead import EVENTS, Hooks, UnknownName, change, deny, inject
from fairlead.testing import (
    Recorder,
    assert_changed,
    assert_control,
    assert_denied,
    assert_failed,
    assert_injected,
    assert_proceeds,
    assert_unchanged,
    every_step,
    step,
)

pytest_plugins = ["pytester"]


@pytest.fixture
def guarded() -> Hooks:
    hooks = Hooks()
    hooks.add(lambda s: deny("no force") if "--force" in s.target.command else None, on="before_tool", name="force")
    hooks.add(lambda s: change(output="[redacted]"), on="after_tool", name="redact")
    hooks.add(lambda s: inject("be brief"), on="before_input", name="brief")
    hooks.add(lambda s: 1 / 0, on="turn_start", name="broken", on_failure="open")
    return hooks


FORCE = {"command": "git push --force"}


def test_there_is_a_step_of_every_event():
    assert [s.event for s in every_step()] == list(EVENTS)


def test_given_fields_win_over_defaults():
    assert step("before_tool", tool="Read", args={"file_path": "x"}).kind == "read"


def test_an_unknown_event_suggests_the_nearest():
    with pytest.raises(UnknownName, match="did you mean 'before_tool'"):
        step("before_tol")


def test_assertions_pass_where_they_should(guarded: Hooks):
    assert_denied(guarded, step("before_tool", args=FORCE), reason="no force", hook="force")
    assert_proceeds(guarded, step("before_tool"))
    assert_unchanged(guarded, step("before_tool"))
    assert_changed(guarded, step("after_tool"), output="[redacted]")
    assert_injected(guarded, step("before_input"), "brief")
    assert_failed(guarded, step("turn_start"), "broken", kind="error")
    assert_control(guarded, step("before_tool", args=FORCE), "deny")


WRONG = {
    "denied": lambda h: assert_denied(h, step("before_tool")),
    "the reason": lambda h: assert_denied(h, step("before_tool", args=FORCE), reason="other"),
    "the hook": lambda h: assert_denied(h, step("before_tool", args=FORCE), hook="other"),
    "the cause": lambda h: assert_denied(h, step("before_tool", args=FORCE), cause="failure"),
    "proceeds": lambda h: assert_proceeds(h, step("before_tool", args=FORCE)),
    "changed": lambda h: assert_changed(h, step("after_tool"), output="other"),
    "unchanged": lambda h: assert_unchanged(h, step("after_tool")),
    "injected": lambda h: assert_injected(h, step("before_input"), "verbose"),
    "failed": lambda h: assert_failed(h, step("before_tool"), "force"),
    "the kind": lambda h: assert_failed(h, step("turn_start"), "broken", kind="timeout"),
}


@pytest.mark.parametrize("what", WRONG)
def test_assertions_fail_where_they_should_and_show_the_decision(what: str, guarded: Hooks):
    with pytest.raises(AssertionError, match=r"but:\n\s*(before_|after_|turn_)"):
        WRONG[what](guarded)


def test_assertions_take_a_decision_as_well(guarded: Hooks):
    assert_denied(guarded, guarded.dispatch_sync(step("before_tool", args=FORCE)))


async def test_a_recorder_remembers_every_step_and_decision(guarded: Hooks):
    seen = Recorder(guarded)
    await guarded.dispatch(step("before_tool", args=FORCE))
    await guarded.dispatch(step("before_input"))
    assert seen.events == ["before_tool", "before_input"]
    assert [d.control for d in seen.of("before_tool")] == ["deny"]


def test_the_pytest_plugin_gives_hooks_and_a_recorder(pytester: pytest.Pytester):
    pytester.makepyfile(
        """
        from fairlead import deny
        from fairlead.testing import step, assert_denied

        def test_mine(hooks, recorder):
            hooks.add(lambda s: deny("no"), on="before_tool", name="no")
            decision = assert_denied(hooks, step("before_tool"))
            assert decision.runs and recorder.events == ["before_tool"]
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)


def test_what_a_hook_does_to_the_state_of_one_sample_is_not_in_the_next():
    step("before_request").state["seen"] = True
    assert step("before_request").state == {}
