"""What a daemon needs on this machine. The in-process path asks at each step, so this imports little."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from ...folders import installed_folders
from ...paths import SOCKET_LIMIT, managed_folder, runtime_folder

PROTOCOL = 1
PACKAGES = ("uvicorn", "starlette", "httpcore")
"""Packages that a daemon needs beyond those of the core."""


def can_run() -> bool:
    """Whether a daemon is wanted, and what it needs is here."""
    fits = managed_folder() is not None or not is_too_long(socket_in(runtime_folder()))
    return fits and not is_unwanted() and not missing_packages()


def is_unwanted() -> bool:
    """Whether fairlead was installed with `--no-daemon`."""
    folders = installed_folders()
    return folders is not None and not folders.daemon and managed_folder() is None


def missing_packages() -> list[str]:
    return [name for name in PACKAGES if find_spec(name) is None]


def socket_in(folder: Path) -> Path:
    """Where the daemon's socket is."""
    return folder / f"v{PROTOCOL}.sock"


def is_too_long(place: Path) -> bool:
    """Whether a path is too long for a socket."""
    return len(os.fsencode(place)) > SOCKET_LIMIT
