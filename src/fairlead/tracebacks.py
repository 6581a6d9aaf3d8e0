"""Where a Python hook failed: its traceback, for the record and, once per place, for the log."""

from __future__ import annotations

import os
import traceback
from types import TracebackType

from .errors import FairleadError
from .hook import Hook, form_of
from .logs import logger
from .redaction import redact_text

LIMIT = 4096
"""Characters of a traceback that are kept. Its end says most, so the start is left out."""
_FRAMES, _LONGEST, _PLACES = 20, 1 << 16, 1024
_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep

_logged: set[tuple[str, str, int]] = set()
"""The hooks and the places of failures that were logged: a hook that fails at every step is logged once."""


def keep_traceback(hook: Hook, error: BaseException) -> str | None:
    """The traceback of what a hook raised, redacted. None where no code of the user's was running."""
    if isinstance(error, FairleadError) and form_of(hook) != "python":
        return None  # a runner says what is wrong with a program, a service or a rule
    inner = _beyond_fairlead(error.__traceback__)
    if inner is None:
        return None
    try:
        text = "".join(traceback.TracebackException(type(error), error, inner, limit=-_FRAMES).format())
    except Exception:  # from an error of somebody else's making
        text = "".join(traceback.format_tb(inner, -_FRAMES))
    text = redact_text(text[-_LONGEST:]).rstrip()
    text = text if len(text) <= LIMIT else f"...{text[3 - LIMIT :]}"
    _log_once(hook.name, inner, text)
    return text


def _beyond_fairlead(frames: TracebackType | None) -> TracebackType | None:
    """The traceback without the engine's own frames at its start."""
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_OWN):
        frames = frames.tb_next
    return frames


def _log_once(hook: str, frames: TracebackType, text: str) -> None:
    last = frames
    while last.tb_next is not None:
        last = last.tb_next
    place = (hook, last.tb_frame.f_code.co_filename, last.tb_lineno)
    if place in _logged:
        return
    if len(_logged) >= _PLACES:
        _logged.clear()
    _logged.add(place)
    logger.warning("hook %r failed at %s:%d (logged once)\n%s", *place, text)
