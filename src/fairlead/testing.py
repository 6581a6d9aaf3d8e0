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
from .lifecycle import EVENTS, Step, event_named
from .registry import Hooks

_TOOL: dict[str, Any] = {"tool": "bash", "args": {"command": "echo hello"}, "call_id": "call-1"}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "session_end": {"reason": "exit"},
    "before_request": {"state": {}},
    "after_request": {"state": {}},
    "before_input": {"input": "hello"},
    "after_input": {"committed_len": 1},
    "before_prompt": {"system_prompt": "You are helpful.", "user_message": "hello"},
    "before_compact": {"message_count": 40, "token_estimate": 90_000, "threshold": 80_000},
    "after_compact": {"message_count": 4, "tokens_before": 90_000, "tokens_after": 9_000},
    "before_model": {"model": "test-model", "messages": [{"role": "user", "content": "hello"}], "message_count": 1},
    "after_model": {"model": "test-model", "output": "hi", "usage": {"input_tokens": 1}, "stop_reason": "end_turn"},
    "before_permission": {"proposed": "ask"},
    "after_permission": {"granted": True},
    "after_tool": {"output": "hello\n", "duration": 0.01},
    "after_tool_batch": {"results": [{"tool": "bash", "is_error": False}]},
    "before_response": {"response": "done"},
    "before_output": {"content": "done"},
    "turn_end": {"stop_reason": "end_turn", "iterations": 1, "response_length": 4},
    "subagent_start": {"agent_name": "helper", "initial_message": "look around"},
    "subagent_stop": {"agent_name": "helper", "reason": "done"},
    "notification": {"message": "build finished"},
    "error": {"error": "boom", "where": "before_model"},
}


def step(event: str, /, **fields: Any) -> Any:
    """A step of an event, with sensible defaults for whatever is not given."""
    row = event_named(event)
    defaults = {"session_id": "session-1", **(_TOOL if row.about_tool else {}), **_DEFAULTS.get(event, {})}
    if row.about_tool and "tool" in fields and "args" not in fields:
        defaults["args"] = {}
    return row.step(**(defaults | fields))


def every_step() -> list[Step]:
    """One step of every event, in the order of the lifecycle."""
    return [step(name) for name in EVENTS]


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
"""Assertions take a decision, or a step to dispatch through `hooks` first."""


def decide(hooks: Hooks, given: Given) -> Decision[Any]:
    """The decision on a step; a decision is given back as it is."""
    return given if isinstance(given, Decision) else hooks.dispatch_sync(given)


def _expect(met: bool, wanted: str, decision: Decision[Any]) -> None:
    if not met:  # not `assert`, which `python -O` leaves out
        raise AssertionError(f"{wanted}, but:\n{decision}")


def assert_proceeds(hooks: Hooks, given: Given) -> Decision[Any]:
    """Nothing stands in the way."""
    decision = decide(hooks, given)
    _expect(decision.proceeds, "expected to proceed", decision)
    return decision


def assert_denied(
    hooks: Hooks, given: Given, *, reason: str | None = None, hook: str | None = None, cause: str = "policy"
) -> Decision[Any]:
    """Denied, by policy unless `cause` says otherwise. `reason` need only be part of it."""
    return assert_control(hooks, given, "deny", reason=reason, hook=hook, cause=cause)


def assert_control(
    hooks: Hooks,
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


def assert_changed(hooks: Hooks, given: Given, **fields: Any) -> Decision[Any]:
    """These fields were changed to these values."""
    decision = decide(hooks, given)
    for name, value in fields.items():
        got = getattr(decision.step, name)
        _expect(name in decision.changed and got == value, f"expected {name} to become {value!r}", decision)
    return decision


def assert_unchanged(hooks: Hooks, given: Given) -> Decision[Any]:
    """No hook changed the step."""
    decision = decide(hooks, given)
    _expect(not decision.changed, "expected no change", decision)
    return decision


def assert_injected(hooks: Hooks, given: Given, text: str) -> Decision[Any]:
    """Some hook added context that contains this text."""
    decision = decide(hooks, given)
    _expect(any(text in added for added in decision.context), f"expected context with {text!r}", decision)
    return decision


def assert_failed(hooks: Hooks, given: Given, hook: str, *, kind: str | None = None) -> Decision[Any]:
    """This hook broke, in this way: error, timeout, malformed or quarantined."""
    decision = decide(hooks, given)
    kinds: Mapping[str, str] = {failure.hook: failure.kind for failure in decision.failures}
    _expect(hook in kinds, f"expected hook {hook!r} to fail", decision)
    _expect(kind is None or kinds[hook] == kind, f"expected {hook!r} to fail by {kind}", decision)
    return decision
