"""The names, attributes and times of a decision's spans. Secrets are redacted.

Names follow OpenTelemetry's conventions for generative AI, which have none for a decision yet. A decision is not the
tool run or model call that it is about: the host has a span for that, with `gen_ai.operation.name`. A decision has
`fairlead.operation.name` instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..redaction.redactor import redact, redact_text

if TYPE_CHECKING:
    from ..decision import Decision, HookRun

SCOPE = "fairlead"
BAD = ("error", "timeout", "malformed", "quarantined", "dropped")


def title(decision: Decision[Any]) -> str:
    """The name of a dispatch's span."""
    tool = getattr(decision.step, "tool", None)
    return redact_text(f"{decision.event} {tool}" if tool else decision.event)


def attributes(decision: Decision[Any]) -> dict[str, Any]:
    """The attributes of a dispatch's span."""
    step = decision.step
    agent = step.agent
    known = {
        "fairlead.operation.name": "decide",
        "gen_ai.conversation.id": step.session_id,
        "gen_ai.agent.id": agent and agent.id,
        "gen_ai.agent.name": agent and agent.name,
        "gen_ai.tool.name": getattr(step, "tool", None),
        "gen_ai.tool.call.id": getattr(step, "call_id", None),
        "gen_ai.request.model": getattr(step, "model", None),
        "fairlead.event": step.event,
        "fairlead.host": step.host,
        "fairlead.tool.kind": getattr(step, "kind", None),
        "fairlead.control": decision.control,
        "fairlead.effect": decision.effective,
        "fairlead.hook": decision.hook,
        "fairlead.cause": decision.cause,
        "fairlead.reason": decision.reason,
        "fairlead.changed": list(decision.changed) or None,
    }
    return {name: redact(value) for name, value in known.items() if value is not None}


def run_attributes(run: HookRun) -> dict[str, Any]:
    """The attributes of a hook's span."""
    return {
        "fairlead.operation.name": "run_hook", "fairlead.hook": run.hook, "fairlead.phase": run.phase,
        "fairlead.outcome": run.outcome,
    }  # fmt: skip


def timeline(decision: Decision[Any], start: int, end: int) -> Iterator[tuple[HookRun, int, int]]:
    """When each hook ran, by durations: one after another, but gates at the same time."""
    for run in decision.runs:
        until = min(start + int(run.duration * 1e9), end)
        yield run, start, until
        if run.phase != "gate":
            start = until
