"""Enforcement: whether the verdicts of hooks take effect, for this user and for now.

`fairlead pause 10m`, `fairlead monitor` and `fairlead enforce` set it, so that a bad policy does not lock the user out.
Without enforcement, hooks still run, and the journal records what they would have done. Locked hooks are always
enforced.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from .errors import FairleadError
from .paths import atomic_write, make_private, state_folder
from .redaction.logs import logger

CHECK_INTERVAL = 0.2
"""Seconds between two checks of the file."""


class EnforcementSetting(msgspec.Struct, frozen=True):
    """The mode of enforcement, until when, why, and who set it."""

    mode: Literal["enforce", "monitor"] = "enforce"
    until: float | None = None  # seconds since 1970
    reason: str | None = None
    who: str | None = None

    @property
    def enforced(self) -> bool:
        return self.mode == "enforce" or (self.until is not None and time.time() >= self.until)


def read_setting(folder: Path | None = None) -> EnforcementSetting:
    """The current setting. If its file cannot be read, hooks are enforced."""
    try:
        return msgspec.json.decode(_file(folder).read_bytes(), type=EnforcementSetting)
    except FileNotFoundError:
        return EnforcementSetting()
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        logger.error("%s cannot be read (%s): hooks are enforced", _file(folder), error)
        return EnforcementSetting()


def write_setting(setting: EnforcementSetting, folder: Path | None = None) -> None:
    """Set enforcement for every process of this user."""
    from .redaction.redactor import redact_text

    parent = make_private(folder or state_folder())
    try:
        shown = replace(setting, reason=setting.reason and redact_text(setting.reason))
        atomic_write(_file(folder), msgspec.json.encode(shown))
    except OSError as error:
        raise FairleadError(f"{parent} cannot be written: {error.strerror}") from None


def _file(folder: Path | None) -> Path:
    return (folder or state_folder()) / "switch.json"


class EnforcementSwitch:
    """Says whether hooks are enforced now: `hooks.switch = EnforcementSwitch()`."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._checked = 0.0
        self._stamp: tuple[int, int] | None = (0, 0)
        self._setting = EnforcementSetting()

    def __call__(self) -> bool:
        now = time.monotonic()
        if now - self._checked >= CHECK_INTERVAL:
            self._checked = now
            stamp = self._file_stamp()
            if stamp != self._stamp:
                self._stamp = stamp
                self._setting = read_setting(self._folder)
        return self._setting.enforced

    @property
    def setting(self) -> EnforcementSetting:
        """The setting at the last check."""
        return self._setting

    def _file_stamp(self) -> tuple[int, int] | None:
        try:
            status = _file(self._folder).stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino
