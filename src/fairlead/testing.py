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


Subject = Decision[Any] | Step
"""Assertions take a decision, or a step to dispatch through `hooks`, or through a session of theirs, first."""


def decide(hooks: Hooks | Session, subject: Subject) -> Decision[Any]:
    """The decision on a step. A decision is returned as it is."""
    return subject if isinstance(subject, Decision) else hooks.dispatch_sync(subject)


def _expect(met: bool, wanted: str, decision: Decision[Any]) -> None:
    if not met:  # not `assert`, which `python -O` leaves out
        raise AssertionError(f"{wanted}, but:\n{decision}")


def assert_proceeds(hooks: Hooks | Session, subject: Subject) -> Decision[Any]:
    """The step proceeds."""
    decision = decide(hooks, subject)
    _expect(decision.proceeds, "expected to proceed", decision)
    return decision


def assert_denied(
    hooks: Hooks | Session,
    subject: Subject,
    *,
    reason: str | None = None,
    hook: str | None = None,
    cause: str = "policy",
) -> Decision[Any]:
    """The step is denied, by policy unless `cause` says otherwise. `reason` need only be part of it."""
    return assert_control(hooks, subject, "deny", reason=reason, hook=hook, cause=cause)


def assert_control(
    hooks: Hooks | Session,
    subject: Subject,
    control: str,
    *,
    reason: str | None = None,
    hook: str | None = None,
    cause: str | None = None,
) -> Decision[Any]:
    """The decision has this control. Arguments that you leave out are not checked."""
    decision = decide(hooks, subject)
    _expect(decision.control == control, f"expected {control}", decision)
    _expect(hook is None or decision.hook == hook, f"expected hook {hook!r} to decide", decision)
    _expect(cause is None or decision.cause == cause, f"expected cause {cause}", decision)
    _expect(reason is None or reason in (decision.reason or ""), f"expected {reason!r} in the reason", decision)
    return decision


def assert_changed(hooks: Hooks | Session, subject: Subject, **fields: Any) -> Decision[Any]:
    """These fields were changed to these values."""
    decision = decide(hooks, subject)
    for name, value in fields.items():
        got = getattr(decision.step, name)
        _expect(name in decision.changed and got == value, f"expected {name} to become {value!r}", decision)
    return decision


def assert_unchanged(hooks: Hooks | Session, subject: Subject) -> Decision[Any]:
    """No hook changed the step."""
    decision = decide(hooks, subject)
    _expect(not decision.changed, "expected no change", decision)
    return decision


def assert_injected(hooks: Hooks | Session, subject: Subject, text: str) -> Decision[Any]:
    """Some hook added context that contains this text."""
    decision = decide(hooks, subject)
    _expect(any(text in added for added in decision.context), f"expected context with {text!r}", decision)
    return decision


def assert_failed(hooks: Hooks | Session, subject: Subject, hook: str, *, kind: str | None = None) -> Decision[Any]:
    """This hook failed, in this way: error, timeout, malformed or quarantined."""
    decision = decide(hooks, subject)
    kinds: Mapping[str, str] = {failure.hook: failure.kind for failure in decision.failures}
    _expect(hook in kinds, f"expected hook {hook!r} to fail", decision)
    _expect(kind is None or kinds[hook] == kind, f"expected {hook!r} to fail by {kind}", decision)
    return decision


__all__ = [
    "Recorder", "Subject", "assert_changed", "assert_control", "assert_denied", "assert_failed", "assert_injected",
    "assert_proceeds", "assert_unchanged", "decide", "every_step", "step",
]  # fmt: skip
