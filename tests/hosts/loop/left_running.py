"""Processes that a test has started, and that should be gone."""

from __future__ import annotations

import subprocess
import time


def left_running(mark: str) -> list[str]:
    """The command lines with this mark that still run, once those that were killed have had time to end."""
    until = time.monotonic() + 10
    while (left := _running(mark)) and time.monotonic() < until:
        time.sleep(0.02)
    return left


def _running(mark: str) -> list[str]:
    listed = subprocess.run(["ps", "-Ao", "args="], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if mark in line]
