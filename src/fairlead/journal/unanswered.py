"""Imports into the journal what launchers did without an answer.

A launcher that gets no answer refuses the step, or lets it pass, and appends a line to a file in the state folder: see
`leave_line` in `fairlead.hosts.clis.client`. The next process that writes the journal imports each line once.
"""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from ..redaction.logs import logger
from .errors import JournalError

if TYPE_CHECKING:
    from .writer import Journal

FILE, LIMIT = "unanswered.jsonl", 1 << 18
"""The file, and the bytes at which launchers stop adding. The client has its own copy, as it imports nothing."""
LINE = 4096
"""Bytes of the longest line."""
FLUSH_TIMEOUT = 2.0
"""Seconds in which the journal must write the lines. A step may wait for that."""
_NO_STEP = "the launcher does not read what the CLI sends"


class LauncherLine(msgspec.Struct, frozen=True):
    """What a launcher did: the time, event, host and folder, and why it had no answer."""

    id: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$")]
    at: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
    event: Literal["before_tool", "before_input", "before_permission"]
    host: Annotated[str, msgspec.Meta(max_length=64)]
    cwd: str
    control: Literal["deny", "proceed"]
    why: str

    @property
    def facts(self) -> dict[str, Any]:
        """The facts of the record. Its id follows from the line, so that the journal stores it once."""
        step = {"event": self.event, "host": self.host, "cwd": self.cwd}
        about = {"unanswered": self.why, "unwritable": _NO_STEP, "winner": {"hook": None, "cause": "failure"}}
        made = {"id": f"launcher-{self.id}", "kind": "decision", "at": self.at, "took": None}
        return {**made, "control": self.control, "step": step, **about}


def import_unanswered(folder: Path, journal: Journal) -> None:
    """Record the lines in the file of a state folder. Lines that cannot be written stay there."""
    path = folder / FILE
    try:
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return  # usually there is no file
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or not status.st_size:
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # a launcher is writing, or was stopped while it wrote; the next import gets the lines
        for line in _lines(path, os.pread(file, LIMIT + LINE, 0)):
            journal.keep_facts(line.facts)
        journal.flush(FLUSH_TIMEOUT)
        os.ftruncate(file, 0)
    except (OSError, JournalError) as error:
        logger.error("%s was not imported into the journal: %s", path, error)
    finally:
        os.close(file)


def _lines(path: Path, content: bytes) -> list[LauncherLine]:
    """The valid lines of a file that may be cut off, or written by another program."""
    found, bad = [], 0
    for text in content.split(b"\n"):
        try:
            found += [msgspec.json.decode(text, type=LauncherLine)] if text.strip() else []
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            bad += 1
    if bad:
        logger.warning("%s: %d lines are not a launcher's, or were cut off, and are skipped", path, bad)
    if len(content) > LIMIT - LINE:
        logger.warning("%s is full: launchers have done more without an answer than it lists", path)
    return found
