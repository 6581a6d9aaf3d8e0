"""What depends on the version of Strands: since 1.62, it has middleware."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

try:
    from strands.middleware import ExecuteToolStage, InvokeModelStage
    from strands.types.events import ToolResultEvent
except ImportError:  # before 1.62
    from strands.types._events import ToolInterruptEvent, ToolResultEvent

    ExecuteToolStage = InvokeModelStage = None

__all__ = [
    "ExecuteToolStage", "InvokeModelStage", "ToolResultEvent", "be_innermost",
    "bidirectional_events", "has_middleware", "question_of",
]  # fmt: skip


def has_middleware(agent: Any) -> bool:
    return InvokeModelStage is not None and hasattr(agent, "add_middleware")


def bidirectional_events() -> list[Any]:
    """The event with which a bidirectional agent begins, in versions in which it is one of its own."""
    events = sys.modules.get("strands.experimental.hooks.events")  # there, if the program has such an agent
    found = getattr(events, "BidiAgentInitializedEvent", None)
    return [] if found is None else [found]


def question_of(tool_use: Any, interrupt: Any) -> Any:
    """The event with which a tool asks a human, in versions without middleware."""
    return ToolInterruptEvent(tool_use, [interrupt])


def be_innermost(agent: Any, handlers: Mapping[Any, Callable[[Any, Any], Any]]) -> None:
    """Put a handler around each stage's own operation: inside of all middleware, also of what is added later.

    Each time that other middleware calls the stage again, or with another context, the handler is called again.
    """
    registry = agent._middleware_registry
    compose = registry.compose

    def compose_around(stage: Any, operation: Any) -> Any:
        handler = handlers.get(stage)
        return compose(stage, operation if handler is None else lambda context: handler(context, operation))

    registry.compose = compose_around
