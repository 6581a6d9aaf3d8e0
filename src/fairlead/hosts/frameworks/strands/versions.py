"""What depends on the version of Strands: since 1.62, it has middleware."""

from __future__ import annotations

from typing import Any

try:
    from strands.middleware import ExecuteToolStage, InvokeModelStage
    from strands.types.events import ToolResultEvent
except ImportError:  # before 1.62
    from strands.types._events import ToolInterruptEvent, ToolResultEvent

    ExecuteToolStage = InvokeModelStage = None

__all__ = ["ExecuteToolStage", "InvokeModelStage", "ToolResultEvent", "has_middleware", "question_of"]


def has_middleware(agent: Any) -> bool:
    return InvokeModelStage is not None and hasattr(agent, "add_middleware")


def question_of(tool_use: Any, interrupt: Any) -> Any:
    """The event with which a tool asks a human, in versions without middleware."""
    return ToolInterruptEvent(tool_use, [interrupt])
