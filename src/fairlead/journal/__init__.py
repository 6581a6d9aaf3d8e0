"""The journal: every decision with its reasons, in one file that shows tampering."""

from .errors import JournalError
from .writer import Journal

__all__ = ["Journal", "JournalError"]
