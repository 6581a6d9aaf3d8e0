"""OpenTelemetry: a span per dispatch, in the caller's trace, a span per hook, and metrics.

There is nothing to switch on. If a program has set up a tracer or meter provider before its first dispatch, fairlead
uses it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ..errors import describe
from ..redaction.logs import logger

if TYPE_CHECKING:
    from concurrent.futures import Future

    from ..decision import Decision
    from ..engine.chain import DecisionSink


def traced(keep: DecisionSink | None) -> DecisionSink | None:
    """Make `keep` also emit spans and metrics, if the program has a provider for them."""
    from .metrics import metrics_emitter
    from .spans import span_emitter

    emitters = [emit for emit in (span_emitter(), metrics_emitter()) if emit is not None]
    if not emitters:
        return keep

    def keep_and_emit(decision: Decision[Any], began: float) -> Future[None] | None:
        took = time.monotonic() - began
        for emit in emitters:
            try:
                emit(decision, took)
            except Exception as error:  # a broken exporter must not affect the decision
                logger.warning("a decision could not be traced: %s", describe(error))
        return None if keep is None else keep(decision, began)

    return keep_and_emit
