"""Where the inspector of this user is, while one runs: so that a notification can link to its question.

The inspector writes its port into a file of the state folder, and holds a lock on that file. The lock ends with the
process, however it ends. The link has no secret: it opens for a browser that is signed in, and for no other.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import FairleadError
from ..paths import make_private, state_folder


def _file() -> Path:
    return state_folder() / "inspector.port"


@contextmanager
def announced(port: int) -> Iterator[None]:
    """Tell notifications of an inspector while it runs. If another one was first, or nothing can be written, do not."""
    descriptor = None
    with suppress(OSError, FairleadError):
        make_private(state_folder())
        descriptor = os.open(_file(), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, b"%d" % port)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def question_link(question_id: str) -> str | None:
    """The address of a question's place in the inspector. None if none runs."""
    try:
        descriptor = os.open(_file(), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        port = os.read(descriptor, 6)
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:  # the inspector holds it
        return f"http://127.0.0.1:{int(port)}/approvals#question-{question_id}" if port.isdigit() else None
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return None
