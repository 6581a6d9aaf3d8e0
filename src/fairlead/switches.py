"""The switch: whether hooks are enforced, or only watched, for this user and for now.

`fairlead pause 10m`, `fairlead monitor` and `fairlead enforce` set it, so that a bad policy locks nobody out. What is
watched still runs, and what it would have done is recorded. Locked hooks do not heed the switch.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Literal

import msgspec
from msgspec.structs import replace

from .errors import FairleadError
from .logs import logger
from .places import make_private, state_folder

LOOK = 0.2
"""Seconds for which what was seen is taken to hold."""


class Setting(msgspec.Struct, frozen=True):
    """How the switch is set: by whom, why, and until when."""

    mode: Literal["enforce", "monitor"] = "enforce"
    until: float | None = None  # seconds since 1970
    reason: str | None = None
    who: str | None = None

    @property
    def enforced(self) -> bool:
        return self.mode == "enforce" or (self.until is not None and time.time() >= self.until)


def read_setting(folder: Path | None = None) -> Setting:
    """How the switch is set. A file that cannot be read is one that does not lift anything."""
    try:
        return msgspec.json.decode(_file(folder).read_bytes(), type=Setting)
    except FileNotFoundError:
        return Setting()
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        logger.error("%s cannot be read (%s): hooks are enforced", _file(folder), error)
        return Setting()


def write_setting(setting: Setting, folder: Path | None = None) -> None:
    """Set the switch, for every process of this user."""
    from .redaction import redact_text

    place = make_private(folder or state_folder())
    try:
        with NamedTemporaryFile(dir=place, prefix=".", delete=False) as file:
            file.write(msgspec.json.encode(replace(setting, reason=setting.reason and redact_text(setting.reason))))
        os.replace(file.name, _file(folder))
    except OSError as error:
        raise FairleadError(f"{place} cannot be written: {error.strerror}") from None


def _file(folder: Path | None) -> Path:
    return (folder or state_folder()) / "switch.json"


class Switch:
    """Tells whether hooks are enforced now. `hooks.switch = Switch()`."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._looked = 0.0
        self._stamp: tuple[int, int] | None = (0, 0)
        self._setting = Setting()

    def __call__(self) -> bool:
        now = time.monotonic()
        if now - self._looked >= LOOK:
            self._looked = now
            stamp = self._look()
            if stamp != self._stamp:
                self._stamp = stamp
                self._setting = read_setting(self._folder)
        return self._setting.enforced

    @property
    def setting(self) -> Setting:
        """How it was set when it was last looked at."""
        return self._setting

    def _look(self) -> tuple[int, int] | None:
        try:
            status = _file(self._folder).stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino
