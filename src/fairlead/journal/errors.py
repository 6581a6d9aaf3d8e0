"""What can be wrong with a journal."""

from __future__ import annotations

from ..errors import FairleadError


class JournalError(FairleadError):
    """The journal cannot be read or written. The text names the file and the way out."""


class NewerJournal(JournalError):
    """A journal that a newer fairlead has made."""


class NoJournal(JournalError):
    """There is no journal yet."""


class NoRecord(JournalError):
    """There is no such record."""
