"""Errors of the journal."""

from __future__ import annotations

from ..errors import FairleadError


class JournalError(FairleadError):
    """The journal cannot be read or written. The message names the file and what to do."""


class NewerJournal(JournalError):
    """A newer fairlead has made this journal."""


class NoJournal(JournalError):
    """There is no journal yet."""


class NoRecord(JournalError):
    """There is no such record."""
