"""Reading files that another program controls: only regular ones, and only so much of them.

A pipe or a device in the place of a file would hang the reader, so it is opened without waiting and then refused.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path


def open_regular(path: str | Path) -> BufferedReader:
    """Open a regular file for reading. Raises OSError for anything else."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def read_regular(path: str | Path, limit: int) -> bytes:
    """The first `limit` bytes of a regular file."""
    with open_regular(path) as file:
        return file.read(limit)
