"""The logger of fairlead. Nothing that is logged through it shows a secret, whatever handler it has.

A filter redacts each record before a handler sees it. It is on this logger and not on its handlers, since those
are the user's; a logger below it (`fairlead.x`) needs its own: `redacting(logging.getLogger("fairlead.x"))`.
"""

from __future__ import annotations

import logging


class RedactingFilter(logging.Filter):
    """Replaces the message, the arguments, the exception and the stack of a record by their redacted text."""

    def filter(self, record: logging.LogRecord) -> bool:
        from .redactor import redact_text  # importing fairlead should not pay for what is seldom logged

        record.msg, record.args = redact_text(_message(record)), ()
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        # A formatter prefers the exception itself to its text, and would print it as it is.
        record.exc_info = None
        record.exc_text = redact_text(record.exc_text) if record.exc_text else None
        record.stack_info = redact_text(record.stack_info) if record.stack_info else None
        return True


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # arguments that do not fit; logging would print them, secrets and all
        return f"{record.msg!s} (with arguments that do not fit it)"


def redacting(logger: logging.Logger) -> logging.Logger:
    """The same logger, redacting. To ask twice is to ask once."""
    if not any(isinstance(known, RedactingFilter) for known in logger.filters):
        logger.addFilter(RedactingFilter())
    return logger


logger = redacting(logging.getLogger("fairlead"))
