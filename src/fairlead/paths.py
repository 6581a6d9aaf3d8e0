"""The paths of fairlead's configuration, state, journal and socket.

`fairlead install` records the folders, and installed hooks use those: see `folders`. A program that only uses the
library takes them from its environment.
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
"""Bytes of a socket's path, on the system with the lowest limit."""

_REMOTE = frozenset({
    "9p", "afpfs", "afs", "beegfs", "ceph", "cifs", "davfs", "fuse.davfs2", "fuse.glusterfs", "fuse.rclone",
    "fuse.s3fs", "fuse.sshfs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "smb2", "smb3", "smbfs", "webdav",
})  # fmt: skip


class BadPath(FairleadError):
    """A path that fairlead must not use as it is."""


class Folders(msgspec.Struct, frozen=True, kw_only=True):
    """The folders that `fairlead install` recorded, and the variables that each hook gets."""

    home: str
    config: str
    """Holds the user's fairlead.toml."""
    state: str
    run: str
    """Holds the daemon's socket."""
    daemon: bool = True
    """Whether hooks use a daemon."""
    env: dict[str, str] = {}
    moved: dict[str, list[str]] = {}
    """Variables that had moved a CLI's settings at install, each with all values that it has had."""


_fixed: Folders | None = None


def fixed_folders() -> Folders | None:
    """The folders that this process uses; None if it takes them from its environment."""
    return _fixed


@contextmanager
def fixed(folders: Folders | None, home: str) -> Iterator[None]:
    """Use these folders and this home in the whole process, inside the `with` block."""
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
    """Use these folders until the process ends, and keep only their variables."""
    global _fixed
    _fixed = folders
    os.environ.clear()
    os.environ.update({**folders.env, "HOME": folders.home, "PYTHONSAFEPATH": "1"})


def config_folder() -> Path:
    """The folder of the user's fairlead.toml."""
    if _fixed is not None:
        return Path(_fixed.config)
    base = os.environ.get("XDG_CONFIG_HOME")
    return Path(base if base and os.path.isabs(base) else Path.home() / ".config") / "fairlead"


def state_folder() -> Path:
    """The folder of fairlead's state: journal, trust, approvals, sessions."""
    if _fixed is not None:
        return Path(_fixed.state)
    named = os.environ.get("FAIRLEAD_STATE_DIR")
    if named:
        if not os.path.isabs(named):
            raise BadPath(f"FAIRLEAD_STATE_DIR must be an absolute path, not {named!r}")
        return Path(named)
    base = os.environ.get("XDG_STATE_HOME")
    return Path(base if base and os.path.isabs(base) else Path.home() / ".local/state") / "fairlead"


def runtime_folder() -> Path:
    """The folder of the daemon's socket. It is the user's own, never a shared temporary folder."""
    if _fixed is not None:
        return Path(_fixed.run)
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and os.path.isabs(base) and not os.environ.get("FAIRLEAD_STATE_DIR"):
        return Path(base) / "fairlead"
    return state_folder() / "run"


def hung_mark() -> Path:
    """The file that a client creates when the user's daemon hangs."""
    return runtime_folder() / "hung"


MANAGED = Path("/run/fairlead")
"""The folder of a daemon of another user, which agents of this user cannot bypass."""


def managed_folder() -> Path | None:
    """The folder of a managed daemon; None if there is none.

    Only an administrator can create it.
    """
    try:
        status = MANAGED.lstat()
    except OSError:
        return None
    others = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return MANAGED if stat.S_ISDIR(status.st_mode) and status.st_uid != os.geteuid() and not others else None


def administers_managed() -> bool:
    """Whether this user is root or owns the managed daemon, and so may read its journal."""
    try:
        return os.geteuid() in (0, MANAGED.lstat().st_uid)
    except OSError:
        return False


def journal_file() -> Path:
    """The default path of the journal."""
    return state_folder() / "journal.db"


def make_private(folder: Path) -> Path:
    """Create the folder if needed, and return it.

    Raises `BadPath` if other users could write to it.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BadPath(f"{folder} cannot be created: {error.strerror}") from None
    check_private(folder)
    return folder


def check_private(folder: Path) -> None:
    """Raise `BadPath` unless a folder belongs to this user, and no other user can write to it."""
    try:
        status = folder.lstat()
    except OSError as error:
        raise BadPath(f"{folder}: {error.strerror}") from None
    if not stat.S_ISDIR(status.st_mode):
        raise BadPath(f"{folder} is not a folder")
    if status.st_uid != os.geteuid():
        raise BadPath(f"{folder} belongs to user {status.st_uid}, not to you")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise BadPath(f"others may write to {folder}; chmod 700 it")


def atomic_write(
    path: Path, data: bytes, mode: int = 0o600, *, fsync: bool = False, owner: tuple[int, int] | None = None
) -> None:
    """Write a file in one move: a reader sees all of the old content or all of the new.

    `mode` is exact, whatever the umask is. `fsync` puts the content on the disk before the move, and `owner` gives the
    file to a user and a group. If any of this fails, the old file stays and no other is left.
    """
    new = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(descriptor, mode)
            if owner is not None:
                os.fchown(descriptor, *owner)
            if fsync:
                os.fsync(descriptor)
        os.replace(new, path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def refuse_remote(path: Path) -> None:
    """Raise `BadPath` for a path on a network filesystem, whose locks are unreliable."""
    kind = filesystem_of(path)
    if kind in _REMOTE:
        raise BadPath(
            f"{path} is on a network filesystem ({kind}), where a journal cannot be kept; set FAIRLEAD_STATE_DIR or "
            "path in [journal] to a local folder"
        )


def filesystem_of(path: Path) -> str:
    """The kind of filesystem that a path is on; empty if that is unknown."""
    real = os.path.realpath(path)
    mounts = [(point, kind) for point, kind in _mounts() if real == point or real.startswith(point.rstrip("/") + "/")]
    return max(reversed(mounts), key=lambda mount: len(mount[0]), default=("", ""))[
        1
    ]  # the last mount hides the others


def is_mount(path: Path) -> bool:
    """Whether this path is a mount point, such as a file in a container.

    It cannot be replaced then.
    """
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
