"""What launchers did without an answer from fairlead, taken into the journal.

A launcher that gets no answer refuses the step, or lets it pass, and leaves a line in a file of the state folder: see
`leave_line` in `fairlead.hosts.hook_client`. The next process that writes the journal takes the lines in, each once.
"""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from ..logs import logger
from .errors import JournalError

if TYPE_CHECKING:
    from .writer import Journal

FILE, LIMIT = "unanswered.jsonl", 1 << 18
"""The file, and the bytes beyond which launchers add nothing. Their client imports nothing, so it has its own."""
LINE = 4096
"""Bytes that no line has more of."""
FLUSH = 2.0
"""Seconds that the journal has to write them. A step may wait for that."""
_NO_STEP = "the launcher does not read what the CLI sends"


class Line(msgspec.Struct, frozen=True):
    """What a launcher did: when, at which event of which host, where, and why it had no answer."""

    id: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$")]
    at: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
    event: Literal["before_tool", "before_input", "before_permission"]
    host: Annotated[str, msgspec.Meta(max_length=64)]
    cwd: str
    control: Literal["deny", "proceed"]
    why: str

    @property
    def facts(self) -> dict[str, Any]:
        """The record. Its id follows from the line, so that the journal takes it once."""
        step = {"event": self.event, "host": self.host, "cwd": self.cwd}
        about = {"unanswered": self.why, "unwritable": _NO_STEP, "winner": {"hook": None, "cause": "failure"}}
        made = {"id": f"launcher-{self.id}", "kind": "decision", "at": self.at, "took": None}
        return {**made, "control": self.control, "step": step, **about}


def take_in(folder: Path, journal: Journal) -> None:
    """Have the journal write down what is in the file of a state folder. What it could not write stays there."""
    path = folder / FILE
    try:
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return  # as a rule there is none
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or not status.st_size:
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # a launcher is at it, or was stopped at it: the next one who comes by takes them in
        for line in _lines(path, os.pread(file, LIMIT + LINE, 0)):
            journal.keep_facts(line.facts)
        journal.flush(FLUSH)
        os.ftruncate(file, 0)
    except (OSError, JournalError) as error:
        logger.error("%s was not taken into the journal: %s", path, error)
    finally:
        os.close(file)


def _lines(path: Path, content: bytes) -> list[Line]:
    """The lines of a file that may have been cut off, or written by another program."""
    found, bad = [], 0
    for text in content.split(b"\n"):
        try:
            found += [msgspec.json.decode(text, type=Line)] if text.strip() else []
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            bad += 1
    if bad:
        logger.warning("%s: %d lines are not a launcher's, or were cut off, and are left out", path, bad)
    if len(content) > LIMIT - LINE:
        logger.warning("%s is full: the launcher did more without an answer than it says", path)
    return found
