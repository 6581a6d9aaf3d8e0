"""The record of what was installed: which files were written, and what each was before.

fairlead also finds its hooks without a record, because their commands start its launcher.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import msgspec

from ....paths import atomic_write, make_private, state_folder
from ....redaction.logs import logger
from ..mapping import Host
from .settings import TIMEOUT, InstallScope
from .targets import Baseline, read_text


class InstallRecord(msgspec.Struct, kw_only=True):
    """A file that has hooks of fairlead, and what it was before."""

    host: str
    scope: InstallScope
    file: str
    digest: str
    """Of the file as fairlead wrote it."""
    existed: bool
    backup: str | None = None
    """A copy of the file without fairlead's hooks."""
    made: tuple[tuple[str, ...], ...] | None = None
    """The members that the installation added."""
    folders: tuple[str, ...] = ()
    """The folders that the installation made for the file."""
    timeout: float = TIMEOUT
    launcher: str = ""

    @property
    def key(self) -> str:
        return f"{self.host} {self.scope} {self.file}"

    @property
    def before(self) -> Baseline:
        return Baseline(self.existed, self.made)

    def original(self) -> str | None:
        """The file as it was. None: it did not exist, or that is unknown."""
        return read_text(Path(self.backup)) if self.existed and self.backup is not None else None

    def can_restore(self, text: str) -> bool:
        """Whether the file is as fairlead wrote it, and what it was before is known."""
        return self.digest == digest(text) and (not self.existed or self.original() is not None)


def read_records() -> dict[str, InstallRecord]:
    """What was installed, by key."""
    try:
        records = msgspec.json.decode(_file().read_bytes(), type=list[InstallRecord])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        logger.warning("%s cannot be read (%s): fairlead looks for its hooks in the settings", _file(), error)
        return {}
    return {record.key: record for record in records}


def write_records(records: dict[str, InstallRecord]) -> None:
    """Write down what is installed."""
    if not records:
        _file().unlink(missing_ok=True)
    elif records != read_records():
        replace_file(_file(), msgspec.json.format(msgspec.json.encode(list(records.values())), indent=2), 0o600)


def record_key(host: Host, scope: InstallScope, path: Path) -> str:
    """The key of a file's record."""
    return f"{host.name} {scope} {path}"


def last_timeout(host: Host, scope: InstallScope, records: dict[str, InstallRecord]) -> float:
    """The time-out of the last installation."""
    found = (record.timeout for record in records.values() if (record.host, record.scope) == (host.name, scope))
    return next(found, TIMEOUT)


def digest(text: str) -> str:
    return f"sha256:{sha256(text.encode()).hexdigest()}"


def replace_file(path: Path, content: bytes, mode: int) -> None:
    """Write a file in one move. A file that exists keeps its mode and its owner."""
    status = path.stat() if path.exists() else None
    owner = (status.st_uid, status.st_gid) if status is not None and os.geteuid() == 0 else None
    atomic_write(path, content, mode if status is None else status.st_mode & 0o7777, fsync=True, owner=owner)


@contextmanager
def installation_lock() -> Iterator[None]:
    """Keep other installations of this user waiting."""
    with (make_private(state_folder()) / "installed.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _file() -> Path:
    return state_folder() / "installed.json"
