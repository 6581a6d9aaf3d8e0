"""The folders that fairlead was installed for. `fairlead install` records them, and everything else reads them.

They are recorded in two places: in the launcher, which passes them to the daemon, and in a file below the user's home,
which every `fairlead` command and `fairlead.client` read. So a variable in a repository's `.env`, or one that is set
in one terminal only, cannot change which configuration, trust or journal is used.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from time import time
from typing import Any

import msgspec
from msgspec.structs import replace

from . import paths
from .paths import SOCKET_LIMIT, BadPath, Folders, atomic_write, make_private

BELOW_HOME = ".local/state/fairlead"
"""The folder of the record in a home, wherever the state folder is."""
RECORD = "folders.json"
MACHINE = Path("/usr/local/lib/fairlead")
"""The folder of the launcher and the record of `fairlead install --scope managed`."""


_NOEXEC = 8
"""`ST_NOEXEC` of `statvfs` on Linux: no program can be run from the filesystem. `os` does not always have it."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The record for all users of a machine. The home of each user is the one in the user database."""

    path: str
    """The PATH of hooks."""
    base: str = ""
    """The folder that holds the homes of users without an entry in the user database."""
    daemon: bool = True


def as_json(installed: Folders | Machine) -> str:
    """Encode folders as the thin client reads them: without spaces, ASCII only."""
    return json.dumps(msgspec.to_builtins(installed), separators=(",", ":"))


def from_json(text: str) -> Folders | Machine:
    """Decode folders. Raises `BadPath` for anything else."""
    try:
        data = json.loads(text)
        if isinstance(data, dict) and "home" in data:
            folders = msgspec.convert(data, Folders)
            for folder in (folders.home, folders.config, folders.state, folders.run):
                if not os.path.isabs(folder):
                    raise ValueError(f"{folder!r} is not an absolute path")
            return folders
        return msgspec.convert(data, Machine)
    except (ValueError, RecursionError) as error:
        raise BadPath(f"these are no recorded folders: {error}") from None


def enter(text: str) -> None:
    """Use the folders that the launcher has passed, and nothing else of the environment."""
    folders = from_json(text)
    if not isinstance(folders, Folders):
        raise BadPath("these are the folders of no user")
    paths.fix_for_good(folders)


# --- the home -----------------------------------------------------------------------------------


def home_folder() -> Path:
    """The user's home: HOME if that is a folder of this user, or the home in the user database."""
    named, known = os.environ.get("HOME", ""), home_in_database()
    if os.path.isabs(named) and (_is_own(named) or named == known):
        return Path(os.path.normpath(named))
    if known is None:
        shown = f"HOME is {named!r}, which is no folder of yours" if named else "HOME is not set"
        raise BadPath(
            f"{shown}, and user {os.geteuid()} has no entry in the user database; set HOME to a folder of yours, or "
            "name one with `fairlead install --home FOLDER`"
        )
    return Path(known)


def home_in_database() -> str | None:
    import pwd

    try:
        known = pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return None
    return known if os.path.isabs(known) else None


def home_of_user() -> str:
    """The home in the user database, whatever HOME is; empty if it has no entry."""
    return home_in_database() or ""


def _is_own(folder: str) -> bool:
    try:
        status = os.stat(folder)
    except (OSError, ValueError):
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def other_home() -> Path | None:
    """The home in the user database, if HOME is another and fairlead is installed in both."""
    known = home_in_database()
    if known is None or os.path.realpath(known) == os.path.realpath(home_folder()):
        return None
    return Path(known) if (Path(known) / BELOW_HOME / RECORD).exists() else None


# --- the record ---------------------------------------------------------------------------------


def read_record() -> Folders | None:
    """Read the folders that fairlead was installed for. None: it was not. Raises `BadPath` for a bad record."""
    if os.name != "posix":
        return None
    home = home_folder()
    found = _read(home / BELOW_HOME / RECORD)
    if found is None and str(home) == home_in_database():
        found = _read(MACHINE / RECORD)
    return _of_user(home, found) if isinstance(found, Machine) else found


def installed_folders() -> Folders | None:
    """The folders of the user's daemon. None: fairlead is not installed, and the environment decides."""
    if (folders := paths.fixed_folders()) is not None:
        return folders
    try:
        return read_record()
    except BadPath:
        return None


def _read(file: Path) -> Folders | Machine | None:
    try:
        status = file.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o022:
            raise BadPath("it must be a file of yours that no other user may write to")
        return from_json(file.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeError) as error:
        raise BadPath(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except BadPath as error:
        raise BadPath(f"{file}: {error}; run `fairlead install` again") from None


def _of_user(home: Path, machine: Machine) -> Folders:
    """The folders that the machine's launcher uses for this user."""
    state = home / BELOW_HOME
    return Folders(
        home=str(home), config=str(home / ".config/fairlead"), state=str(state), run=str(state / "run"),
        daemon=machine.daemon, env=_variables(home, machine.path),
    )  # fmt: skip


def record_file(folders: Folders) -> Path:
    return Path(folders.home) / BELOW_HOME / RECORD


def write_record(folders: Folders) -> None:
    """Record the folders for all later commands."""
    file = record_file(folders)
    make_private(file.parent)
    atomic_write(file, as_json(folders).encode() + b"\n")


@contextmanager
def probing(folders: Folders) -> Iterator[str]:
    """Make the installed launchers use other folders, for a CLI that has the yielded name in FAIRLEAD_PROBE.

    The name is a file in the state folder, so that only the user can make one. It cannot be guessed.
    """
    name, states = token_hex(16), {str(paths.state_folder())}
    home = home_in_database()  # where the launchers of machines and projects look
    known = None if home is None else _read(Path(home) / BELOW_HOME / RECORD) or _read(MACHINE / RECORD)
    if home is not None and known is not None:
        states.add(known.state if isinstance(known, Folders) else str(Path(home) / BELOW_HOME))
    made = []
    try:
        for state in states:
            with suppress(OSError, BadPath):
                probes = make_private(Path(state, "probes"))
                _clear(probes)
                made.append(probes / name)
                atomic_write(made[-1], as_json(folders).encode() + b"\n")
        yield name
    finally:
        for file in made:
            with suppress(OSError):
                file.unlink()
                file.parent.rmdir()


def _clear(probes: Path) -> None:
    """Remove the files of a `fairlead doctor` that was killed. They are too old for the client to use."""
    from .hosts.clis.client import PROBE_LIFE

    for left in probes.iterdir():
        if abs(time() - left.lstat().st_mtime) >= PROBE_LIFE:
            left.unlink()


# --- making the record --------------------------------------------------------------------------


def from_environment(*, daemon: bool = True) -> Folders:
    """The folders to record: those already in use, or those of the environment. PATH is the current one."""
    from .packs.protected_paths import moved_settings  # only an installation needs it

    if (folders := paths.fixed_folders()) is not None:
        env = _variables(Path(folders.home), search_path(), Path(folders.config).parent)
        return replace(folders, daemon=daemon, env=env, moved=moved_settings())
    home, config, state = Path.home(), paths.config_folder(), paths.state_folder()
    return Folders(
        home=str(home), config=str(config), state=str(state), run=str(_socket_folder(home, state)), daemon=daemon,
        env=_variables(home, search_path(), config.parent), moved=moved_settings(),
    )  # fmt: skip


def search_path() -> str:
    """The PATH of hooks: that of the installation, without entries that depend on the working folder."""
    found = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(folder)]
    return os.pathsep.join(dict.fromkeys(found)) or os.defpath


def _variables(home: Path, path: str, config: Path | None = None) -> dict[str, str]:
    """The variables of hooks, beside the caller's LANG, TZ and LC_*. TMPDIR and XDG_RUNTIME_DIR are temporary."""
    import pwd

    found = {"HOME": str(home), "PATH": path}
    if config is not None and config != home / ".config":
        found["XDG_CONFIG_HOME"] = str(config)
    try:
        user = pwd.getpwuid(os.geteuid())
    except KeyError:
        return found
    return found | {"LOGNAME": user.pw_name, "USER": user.pw_name, "SHELL": user.pw_shell or "/bin/sh"}


def _socket_folder(home: Path, state: Path) -> Path:
    """The first folder in which the socket's path is short enough. If there is none, no daemon can run."""
    folders = [state / "run", home / ".fairlead"]
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(base):
        folders.append(Path(base) / "fairlead")
    fitting = (folder for folder in folders if len(os.fsencode(folder / "v1.sock")) <= SOCKET_LIMIT)
    return next(fitting, folders[0])


def contradictions(folders: Folders) -> Iterator[str]:
    """Yield a message for each variable that contradicts the record."""
    variables: dict[str, Any] = {
        "FAIRLEAD_STATE_DIR": ("", folders.state),
        "XDG_STATE_HOME": ("fairlead", folders.state),
        "XDG_CONFIG_HOME": ("fairlead", folders.config),
    }
    if os.environ.get("FAIRLEAD_STATE_DIR"):
        del variables["XDG_STATE_HOME"]
    for name, (below, recorded) in variables.items():
        named = os.environ.get(name)
        if named and os.path.normpath(os.path.join(named, below)) != recorded:
            yield (
                f"{name} is {named}, but fairlead was installed with {recorded}, and uses that; to move it, "
                "`fairlead uninstall all` first"
            )


def refuse_here(launcher: Path) -> None:
    """Raise `BadPath` if agent CLIs could not start the launcher here."""
    why = None
    if os.name != "posix":
        why = "this system cannot run it; use WSL"
    elif not os.access("/bin/sh", os.X_OK):
        why = "there is no /bin/sh here"
    else:
        folder = launcher.parent
        while not folder.is_dir() and folder != folder.parent:
            folder = folder.parent
        if sys.platform == "linux" and os.statvfs(folder).f_flag & _NOEXEC:
            why = f"no program can be run from {folder} (noexec); set FAIRLEAD_STATE_DIR to another folder"
    if why is not None:
        raise BadPath(f"agent CLIs start fairlead by a shell script, {launcher}, and {why}. Nothing was changed.")
