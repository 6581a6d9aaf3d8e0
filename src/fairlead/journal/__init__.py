"""The journal: what was decided, why, and by whom, in one file that shows if it was changed."""

from .errors import JournalError
from .writer import Journal

__all__ = ["Journal", "JournalError"]
