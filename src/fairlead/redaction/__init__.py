"""Redaction: secrets are replaced in whatever is kept or shown (journal, logs, traces, observers)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .redactor import Redactor, redact, redact_text

__all__ = ["Redactor", "redact", "redact_text"]


def __getattr__(name: str) -> Any:
    """Load the redactor when it is first used: the logger of this package must stay cheap to import."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import redactor

    return getattr(redactor, name)
