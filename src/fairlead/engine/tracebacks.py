"""Failures of hooks in the log, and tracebacks of Python hooks: for the record and, once per line of code, the log."""

from __future__ import annotations

import os
import re
import traceback
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from ..errors import FairleadError
from ..hook import Hook, form_of
from ..redaction.logs import logger
from ..redaction.redactor import redact_text

if TYPE_CHECKING:
    from ..decision import Failure
    from ..lifecycle import Agent

LIMIT = 4096
"""Characters of a traceback that are kept: the last ones, which say most."""
_FRAMES, _LONGEST, _PLACES = 20, 1 << 16, 1024
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_PLACE = re.compile(r'^ *File "([^"\n]+)", line ([0-9]{1,9})', re.MULTILINE)

_logged: set[tuple[str, str, int]] = set()
"""The tracebacks that were logged, as (hook, file, line): that of a hook that fails at every step is logged once."""
FramePlace = tuple[str, str, int]


class Traceback(NamedTuple):
    """The redacted traceback of what a hook raised, and where it did."""

    text: str
    place: FramePlace


def find_traceback(hook: Hook, error: BaseException) -> Traceback | None:
    """The traceback of what a hook raised. None where none of the user's code was running."""
    if isinstance(error, FairleadError) and form_of(hook) != "python":
        return _from_worker(hook, error)  # the error of a runner says enough about a program, a service or a rule
    inner = _skip_own_frames(error.__traceback__)
    if inner is None:
        return None
    try:
        text = "".join(traceback.TracebackException(type(error), error, inner, limit=-_FRAMES).format())
    except Exception:  # the error's own methods may raise
        text = "".join(traceback.format_tb(inner, -_FRAMES))
    text = _bounded(text)
    last = inner
    while last.tb_next is not None:
        last = last.tb_next
    return Traceback(text, (hook.name, last.tb_frame.f_code.co_filename, last.tb_lineno))


def _from_worker(hook: Hook, error: FairleadError) -> Traceback | None:
    """The traceback that a worker has sent. A worker runs, among others, the `python` hooks of a fairlead.toml."""
    sent = getattr(error, "traceback", None)
    text = _bounded(sent).lstrip() if isinstance(sent, str) else ""
    if not text:
        return None
    found = _PLACE.findall(text)
    file, line = found[-1] if found else ("its worker", "0")
    return Traceback(text, (hook.name, file, int(line)))


def _bounded(text: str) -> str:
    text = redact_text(text[-_LONGEST:]).rstrip()
    return text if len(text) <= LIMIT else f"...{text[3 - LIMIT :]}"


def _skip_own_frames(frames: TracebackType | None) -> TracebackType | None:
    """The traceback without the engine's own frames at its start."""
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_OWN):
        frames = frames.tb_next
    return frames


def log_failure(failure: Failure, agent: Agent | None, raised: Traceback | None) -> None:
    """Log a failure: what failed, what follows, and the traceback if this is its first time."""
    if failure.kind == "quarantined":
        return  # the failures that led to it are logged
    text = ""
    if raised is not None and raised.place not in _logged:
        if len(_logged) >= _PLACES:
            _logged.clear()
        _logged.add(raised.place)
        text = f"\n{raised.text}"
    where = f" (agent {agent.name})" if agent is not None and agent.name else ""
    logger.warning("%s%s; %s%s", failure, where, failure.control or "the agent goes on", text)
