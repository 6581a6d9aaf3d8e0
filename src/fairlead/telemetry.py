"""OpenTelemetry: each dispatch is a span of the caller's trace, with a span per hook under it, and some metrics.

Nothing is to be switched on: where a program has set up a tracer or a meter provider before its first dispatch,
spans and metrics are made. Names follow the conventions for generative AI where they have one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from opentelemetry import metrics, trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from .errors import describe
from .logs import logger
from .redaction import redact_text
from .spans import BAD, SCOPE, attributes, run_attributes, timeline, title

if TYPE_CHECKING:
    from concurrent.futures import Future

    from .decision import Decision
    from .run import Keep


def traced(keep: Keep | None) -> Keep | None:
    """What also takes in each decision for the traces and the metrics, if the program has any."""
    watchers = [*_spans(), *_metrics()]
    if not watchers:
        return keep

    def both(decision: Decision[Any], began: float) -> Future[None] | None:
        took = time.monotonic() - began
        for watch in watchers:
            try:
                watch(decision, took)
            except Exception as error:  # of somebody's exporter, which must not decide about the agent
                logger.warning("a decision could not be traced: %s", describe(error))
        return None if keep is None else keep(decision, began)

    return both


Watch = Callable[["Decision[Any]", float], None]


def _spans() -> list[Watch]:
    provider = trace.get_tracer_provider()
    if isinstance(provider, (trace.ProxyTracerProvider, trace.NoOpTracerProvider)):
        return []
    tracer = trace.get_tracer(SCOPE)

    def watch(decision: Decision[Any], took: float) -> None:
        end = time.time_ns()
        _tell(tracer, decision, end - int(took * 1e9), end)

    return [watch]


def _tell(tracer: trace.Tracer, decision: Decision[Any], start: int, end: int) -> None:
    """The spans of a decision that took from `start` to `end`, in nanoseconds since 1970."""
    span = tracer.start_span(title(decision), kind=SpanKind.INTERNAL, attributes=attributes(decision), start_time=start)
    if decision.failures:
        span.set_status(Status(StatusCode.ERROR, redact_text(str(decision.failures[0]))))
    inside = trace.set_span_in_context(span)
    for run, began, ended in timeline(decision, start, end):
        hook = tracer.start_span(run.hook, inside, attributes=run_attributes(run), start_time=began)
        if run.outcome in BAD:
            hook.set_status(Status(StatusCode.ERROR, run.outcome))
        hook.end(ended)
    span.end(end)


def _metrics() -> list[Watch]:
    provider = metrics.get_meter_provider()
    if type(provider).__name__ in ("_ProxyMeterProvider", "NoOpMeterProvider"):
        return []
    meter = metrics.get_meter(SCOPE)
    decisions = meter.create_counter("fairlead.decisions", "{decision}", "Decisions, by event, control and effect")
    failures = meter.create_counter("fairlead.failures", "{failure}", "Hooks that failed, by hook and kind")
    duration = meter.create_histogram("fairlead.dispatch.duration", "s", "How long a dispatch took")
    hooks = meter.create_histogram("fairlead.hook.duration", "s", "How long a hook took")

    def watch(decision: Decision[Any], took: float) -> None:
        what = {
            "fairlead.event": decision.event, "fairlead.control": decision.control,
            "fairlead.effect": decision.effective,
        }  # fmt: skip
        decisions.add(1, what)
        duration.record(took, what)
        for failure in decision.failures:
            failures.add(1, {"fairlead.hook": failure.hook, "fairlead.kind": failure.kind})
        for run in decision.runs:
            hooks.record(run.duration, {"fairlead.hook": run.hook, "fairlead.outcome": run.outcome})

    return [watch]
