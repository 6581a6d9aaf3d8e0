"""Emits metrics: counts of decisions and failures, and durations of dispatches and hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from opentelemetry import metrics

from .attributes import SCOPE

if TYPE_CHECKING:
    from ..decision import Decision


def metrics_emitter() -> Callable[[Decision[Any], float], None] | None:
    """A function that counts a decision that took some seconds; None without a meter provider."""
    provider = metrics.get_meter_provider()
    if type(provider).__name__ in ("_ProxyMeterProvider", "NoOpMeterProvider"):
        return None
    meter = metrics.get_meter(SCOPE)
    decisions = meter.create_counter("fairlead.decisions", "{decision}", "Decisions, by event, control and effect")
    failures = meter.create_counter("fairlead.failures", "{failure}", "Hooks that failed, by hook and kind")
    duration = meter.create_histogram("fairlead.dispatch.duration", "s", "How long a dispatch took")
    hooks = meter.create_histogram("fairlead.hook.duration", "s", "How long a hook took")

    def emit(decision: Decision[Any], took: float) -> None:
        about = {
            "fairlead.event": decision.event, "fairlead.control": decision.control,
            "fairlead.effect": decision.effective,
        }  # fmt: skip
        decisions.add(1, about)
        duration.record(took, about)
        for failure in decision.failures:
            failures.add(1, {"fairlead.hook": failure.hook, "fairlead.kind": failure.kind})
        for run in decision.runs:
            hooks.record(run.duration, {"fairlead.hook": run.hook, "fairlead.outcome": run.outcome})

    return emit
