"""Emits a span per decision, with a span per hook under it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from ..redaction.redactor import redact_text
from .attributes import BAD, SCOPE, attributes, run_attributes, timeline, title

if TYPE_CHECKING:
    from ..decision import Decision


def span_emitter() -> Callable[[Decision[Any], float], None] | None:
    """A function that emits the spans of a decision; None without a tracer provider."""
    provider = trace.get_tracer_provider()
    if isinstance(provider, (trace.ProxyTracerProvider, trace.NoOpTracerProvider)):
        return None
    tracer = trace.get_tracer(SCOPE)

    def emit(decision: Decision[Any], took: float) -> None:
        end = time.time_ns()
        _emit_spans(tracer, decision, end - int(took * 1e9), end)

    return emit


def _emit_spans(tracer: trace.Tracer, decision: Decision[Any], start: int, end: int) -> None:
    """Emit the spans of a decision. `start` and `end` are nanoseconds since 1970."""
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
