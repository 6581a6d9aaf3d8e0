"""Where fairlead keeps things: its configuration, its state, its journal, its socket.

Where fairlead is installed, that is what `fairlead install` has recorded: see `folders`. A program that only uses the
library goes by its environment.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from .errors import FairleadError

SOCKET_LIMIT = 103
"""Bytes of a socket's path, on the system that takes the fewest."""

_REMOTE = frozenset({
    "9p", "afpfs", "afs", "beegfs", "ceph", "cifs", "davfs", "fuse.davfs2", "fuse.glusterfs", "fuse.rclone",
    "fuse.s3fs", "fuse.sshfs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "smb2", "smb3", "smbfs", "webdav",
})  # fmt: skip


class BadPlace(FairleadError):
    """A place that must not be used as it is."""


class Folders(msgspec.Struct, frozen=True, kw_only=True):
    """The folders that fairlead was installed for, and the variables that each hook gets."""

    home: str
    config: str
    """Holds the user's fairlead.toml."""
    state: str
    run: str
    """Holds the daemon's socket."""
    daemon: bool = True
    """Whether there is to be a daemon."""
    env: dict[str, str] = {}
    moved: dict[str, list[str]] = {}
    """Variables that moved a CLI's settings when its hooks were installed, each with all values it has had."""


_fixed: Folders | None = None


def fixed_folders() -> Folders | None:
    """The folders that this process uses whatever its environment says. None: it goes by its environment."""
    return _fixed


@contextmanager
def fixed(folders: Folders | None, home: str) -> Iterator[None]:
    """Use these folders, if there are any, and this home in the whole process meanwhile."""
    global _fixed
    before, named = _fixed, os.environ.get("HOME")
    _fixed = folders
    os.environ["HOME"] = home
    try:
        yield
    finally:
        _fixed = before
        if named is None:
            os.environ.pop("HOME", None)
        else:
            os.environ["HOME"] = named


def fix_for_good(folders: Folders) -> None:
    """Use these folders until the process ends, and no other variables than theirs."""
    global _fixed
    _fixed = folders
    os.environ.clear()
    os.environ.update({**folders.env, "HOME": folders.home, "PYTHONSAFEPATH": "1"})


def config_folder() -> Path:
    """Where the user's fairlead.toml is."""
    if _fixed is not None:
        return Path(_fixed.config)
    base = os.environ.get("XDG_CONFIG_HOME")
    return Path(base if base and os.path.isabs(base) else Path.home() / ".config") / "fairlead"


def state_folder() -> Path:
    """Where fairlead keeps what it must remember."""
    if _fixed is not None:
        return Path(_fixed.state)
    named = os.environ.get("FAIRLEAD_STATE_DIR")
    if named:
        if not os.path.isabs(named):
            raise BadPlace(f"FAIRLEAD_STATE_DIR must be an absolute path, not {named!r}")
        return Path(named)
    base = os.environ.get("XDG_STATE_HOME")
    return Path(base if base and os.path.isabs(base) else Path.home() / ".local/state") / "fairlead"


def runtime_folder() -> Path:
    """Where the daemon's socket is: a folder of the user's own, never bare temporary space."""
    if _fixed is not None:
        return Path(_fixed.run)
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and os.path.isabs(base) and not os.environ.get("FAIRLEAD_STATE_DIR"):
        return Path(base) / "fairlead"
    return state_folder() / "run"


def hung_mark() -> Path:
    """The file that a client leaves when the user's daemon hangs."""
    return runtime_folder() / "hung"


MANAGED = Path("/run/fairlead")
"""Where a daemon of another user's is, that agents of this one cannot get around."""


def managed_folder() -> Path | None:
    """The folder of such a daemon, if there is one: only who administers the machine can have made it."""
    try:
        status = MANAGED.lstat()
    except OSError:
        return None
    others = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return MANAGED if stat.S_ISDIR(status.st_mode) and status.st_uid != os.geteuid() and not others else None


def administers_managed() -> bool:
    """Whether this user is root or the owner of the machine's daemon: whoever may read its journal."""
    try:
        return os.geteuid() in (0, MANAGED.lstat().st_uid)
    except OSError:
        return False


def journal_file() -> Path:
    return state_folder() / "journal.db"


def make_private(folder: Path) -> Path:
    """The folder, made if it is not there. Raises `BadPlace` if anybody else could write to it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BadPlace(f"{folder} cannot be made: {error.strerror}") from None
    check_private(folder)
    return folder


def check_private(folder: Path) -> None:
    """Raise `BadPlace` unless a folder is this user's, and nobody else's to enter or write."""
    try:
        status = folder.lstat()
    except OSError as error:
        raise BadPlace(f"{folder}: {error.strerror}") from None
    if not stat.S_ISDIR(status.st_mode):
        raise BadPlace(f"{folder} is not a folder")
    if status.st_uid != os.geteuid():
        raise BadPlace(f"{folder} belongs to user {status.st_uid}, not to you")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise BadPlace(f"others may write to {folder}; chmod 700 it")


def refuse_remote(path: Path) -> None:
    """Raise `BadPlace` for a path on a network's filesystem, where neither locks nor shared memory can be relied on."""
    kind = filesystem_of(path)
    if kind in _REMOTE:
        raise BadPlace(
            f"{path} is on a network filesystem ({kind}), where a journal cannot be kept; set FAIRLEAD_STATE_DIR or "
            "path in [journal] to a local folder"
        )


def filesystem_of(path: Path) -> str:
    """The kind of filesystem a path is on; empty if that cannot be told."""
    real = os.path.realpath(path)
    held = [(point, kind) for point, kind in _mounts() if real == point or real.startswith(point.rstrip("/") + "/")]
    return max(reversed(held), key=lambda mount: len(mount[0]), default=("", ""))[1]  # the last one hides the others


def is_mount(path: Path) -> bool:
    """Whether something is mounted at this very path: a file, say, as in containers. It cannot be replaced then."""
    return os.path.realpath(path) in {point for point, _ in _mounts()}


def _mounts() -> list[tuple[str, str]]:
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:
        return _mounts_of_macos() if sys.platform == "darwin" else []
    found = []
    for line in lines:
        words, _, rest = line.partition(b" - ")
        point = re.sub(rb"\\([0-7]{3})", lambda code: bytes([int(code[1], 8)]), words.split()[4])  # \040 is a space
        found.append((os.fsdecode(point), os.fsdecode(rest.split()[0])))
    return found


def _mounts_of_macos() -> list[tuple[str, str]]:
    from subprocess import run

    shown = run(["/sbin/mount"], capture_output=True, text=True, check=False).stdout
    found = []
    for line in shown.splitlines():
        _, _, rest = line.partition(" on ")
        point, _, options = rest.rpartition(" (")
        found.append((point, options.partition(",")[0].rstrip(")")))
    return found
