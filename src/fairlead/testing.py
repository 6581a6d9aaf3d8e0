"""What you need to test your own hooks.

    from fairlead.testing import assert_denied, step

    def test_force_push_is_denied():
        assert_denied(hooks, step("before_tool", tool="bash", args={"command": "git push --force"}))

Steps come with sensible defaults, assertions show the whole decision when they fail, and a
`Recorder` in a `Hooks` of yours remembers every step and every decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .decision import Decision
from .lifecycle import Step, event_named
from .registry import Hooks
from .samples import every_step, step
from .session import Session


class Recorder:
    """An observer that keeps every step it sees, with the decision on it.

    `Recorder(hooks)` registers itself for all events.
    """

    def __init__(self, hooks: Hooks | None = None, *, name: str = "recorder") -> None:
        self.seen: list[tuple[Step, Decision[Any]]] = []
        if hooks is not None:
            hooks.add(self, on="*", phase="observe", name=name)

    def __call__(self, step: Step, decision: Decision[Any]) -> None:
        self.seen.append((step, decision))

    def __len__(self) -> int:
        return len(self.seen)

    @property
    def events(self) -> list[str]:
        return [step.event for step, _ in self.seen]

    @property
    def steps(self) -> list[Step]:
        return [step for step, _ in self.seen]

    @property
    def decisions(self) -> list[Decision[Any]]:
        return [decision for _, decision in self.seen]

    def of(self, event: str) -> list[Decision[Any]]:
        """The decisions on one event."""
        event_named(event)
        return [decision for step, decision in self.seen if step.event == event]


Given = Decision[Any] | Step
"""Assertions take a decision, or a step to dispatch through `hooks`, or through a session of theirs, first."""


def decide(hooks: Hooks | Session, given: Given) -> Decision[Any]:
    """The decision on a step; a decision is given back as it is."""
    return given if isinstance(given, Decision) else hooks.dispatch_sync(given)


def _expect(met: bool, wanted: str, decision: Decision[Any]) -> None:
    if not met:  # not `assert`, which `python -O` leaves out
        raise AssertionError(f"{wanted}, but:\n{decision}")


def assert_proceeds(hooks: Hooks | Session, given: Given) -> Decision[Any]:
    """Nothing stands in the way."""
    decision = decide(hooks, given)
    _expect(decision.proceeds, "expected to proceed", decision)
    return decision


def assert_denied(
    hooks: Hooks | Session, given: Given, *, reason: str | None = None, hook: str | None = None, cause: str = "policy"
) -> Decision[Any]:
    """Denied, by policy unless `cause` says otherwise. `reason` need only be part of it."""
    return assert_control(hooks, given, "deny", reason=reason, hook=hook, cause=cause)


def assert_control(
    hooks: Hooks | Session,
    given: Given,
    control: str,
    *,
    reason: str | None = None,
    hook: str | None = None,
    cause: str | None = None,
) -> Decision[Any]:
    """Decided this way. What is not given is not checked."""
    decision = decide(hooks, given)
    _expect(decision.control == control, f"expected {control}", decision)
    _expect(hook is None or decision.hook == hook, f"expected hook {hook!r} to decide", decision)
    _expect(cause is None or decision.cause == cause, f"expected cause {cause}", decision)
    _expect(reason is None or reason in (decision.reason or ""), f"expected {reason!r} in the reason", decision)
    return decision


def assert_changed(hooks: Hooks | Session, given: Given, **fields: Any) -> Decision[Any]:
    """These fields were changed to these values."""
    decision = decide(hooks, given)
    for name, value in fields.items():
        got = getattr(decision.step, name)
        _expect(name in decision.changed and got == value, f"expected {name} to become {value!r}", decision)
    return decision


def assert_unchanged(hooks: Hooks | Session, given: Given) -> Decision[Any]:
    """No hook changed the step."""
    decision = decide(hooks, given)
    _expect(not decision.changed, "expected no change", decision)
    return decision


def assert_injected(hooks: Hooks | Session, given: Given, text: str) -> Decision[Any]:
    """Some hook added context that contains this text."""
    decision = decide(hooks, given)
    _expect(any(text in added for added in decision.context), f"expected context with {text!r}", decision)
    return decision


def assert_failed(hooks: Hooks | Session, given: Given, hook: str, *, kind: str | None = None) -> Decision[Any]:
    """This hook broke, in this way: error, timeout, malformed or quarantined."""
    decision = decide(hooks, given)
    kinds: Mapping[str, str] = {failure.hook: failure.kind for failure in decision.failures}
    _expect(hook in kinds, f"expected hook {hook!r} to fail", decision)
    _expect(kind is None or kinds[hook] == kind, f"expected {hook!r} to fail by {kind}", decision)
    return decision


__all__ = [
    "Given", "Recorder", "assert_changed", "assert_control", "assert_denied", "assert_failed", "assert_injected",
    "assert_proceeds", "assert_unchanged", "decide", "every_step", "step",
]  # fmt: skip
