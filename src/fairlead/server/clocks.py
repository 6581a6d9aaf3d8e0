"""Ends that a clock cannot move: each has an end by the wall clock and by the uptime of the machine."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import NamedTuple


class Expiry(NamedTuple):
    """When something ends: by the wall clock, and by the uptime of this start of the machine."""

    wall: float
    uptime: float
    boot: str

    @classmethod
    def after(cls, seconds: float) -> Expiry:
        return cls(time.time() + seconds, uptime() + seconds, boot_id())


def uptime() -> float:
    """Seconds since the machine was started, including sleep where the system counts that."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def boot_id() -> str:
    """The id of this start of the machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return _boot_of_macos() if sys.platform == "darwin" else ""


def _boot_of_macos() -> str:
    from subprocess import run

    shown = run(["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, text=True, check=False)
    return shown.stdout.strip()
