"""The folders that fairlead was installed for: worked out and recorded by `fairlead install`, read by all else.

They are recorded in two places: in the launcher, which hands them to the daemon, and in a file below the user's home,
which every `fairlead` command and `fairlead.client` read. So a variable in a repository's `.env`, or one that is set
in one terminal and not in another, does not decide which configuration, trust or journal is used.
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

from . import places
from .places import SOCKET_LIMIT, BadPlace, Folders, make_private

BELOW_HOME = ".local/state/fairlead"
"""Where the record is, below a home, wherever the state is."""
RECORD = "folders.json"
MACHINE = Path("/usr/local/lib/fairlead")
"""Where the launcher and the record of `fairlead install --scope managed` are."""


_NOEXEC = 8
"""The flag of `statvfs` of a filesystem from which nothing can be run, on Linux. `os.ST_NOEXEC` is not everywhere."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What is recorded for all users of a machine. Each one's home is what the user database says."""

    path: str
    """Where hooks find programs."""
    base: str = ""
    """The homes of users without an entry in the user database are below this."""
    daemon: bool = True


def as_json(installed: Folders | Machine) -> str:
    """As the thin client reads it: no spaces, nothing but ASCII."""
    return json.dumps(msgspec.to_builtins(installed), separators=(",", ":"))


def from_json(text: str) -> Folders | Machine:
    """Raises `BadPlace` for what is neither."""
    try:
        data = json.loads(text)
        if isinstance(data, dict) and "home" in data:
            folders = msgspec.convert(data, Folders)
            for folder in (folders.home, folders.config, folders.state, folders.run):
                if not os.path.isabs(folder):
                    raise ValueError(f"{folder!r} is no absolute path")
            return folders
        return msgspec.convert(data, Machine)
    except (ValueError, RecursionError) as error:
        raise BadPlace(f"these are no recorded folders: {error}") from None


def enter(text: str) -> None:
    """Use the folders that the launcher has handed on, and nothing else of the environment."""
    folders = from_json(text)
    if not isinstance(folders, Folders):
        raise BadPlace("these are the folders of no user")
    places.fix_for_good(folders)


# --- the home -----------------------------------------------------------------------------------


def home_folder() -> Path:
    """The user's home: what HOME names, if it is a folder of this user's, or else what the user database says."""
    named, known = os.environ.get("HOME", ""), home_in_database()
    if os.path.isabs(named) and (_is_own(named) or named == known):
        return Path(os.path.normpath(named))
    if known is None:
        shown = f"HOME is {named!r}, which is no folder of yours" if named else "HOME is not set"
        raise BadPlace(
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
    """What the user database says, whatever HOME is; nothing if it has no entry."""
    return home_in_database() or ""


def _is_own(folder: str) -> bool:
    try:
        status = os.stat(folder)
    except (OSError, ValueError):
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def other_home() -> Path | None:
    """The home that the user database has, if fairlead is installed there too and HOME is another."""
    known = home_in_database()
    if known is None or os.path.realpath(known) == os.path.realpath(home_folder()):
        return None
    return Path(known) if (Path(known) / BELOW_HOME / RECORD).exists() else None


# --- the record ---------------------------------------------------------------------------------


def read_record() -> Folders | None:
    """The folders that fairlead was installed for. None: it was not. Raises `BadPlace` if that cannot be told."""
    if os.name != "posix":
        return None
    home = home_folder()
    found = _read(home / BELOW_HOME / RECORD)
    if found is None and str(home) == home_in_database():
        found = _read(MACHINE / RECORD)
    return _of_user(home, found) if isinstance(found, Machine) else found


def installed_folders() -> Folders | None:
    """The folders of the user's daemon, where fairlead is installed. None: what the environment says."""
    if (folders := places.fixed_folders()) is not None:
        return folders
    try:
        return read_record()
    except BadPlace:
        return None


def _read(file: Path) -> Folders | Machine | None:
    try:
        status = file.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o022:
            raise BadPlace("it must be a file of yours that nobody else may write to")
        return from_json(file.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeError) as error:
        raise BadPlace(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except BadPlace as error:
        raise BadPlace(f"{file}: {error}; run `fairlead install` again") from None


def _of_user(home: Path, machine: Machine) -> Folders:
    """What the machine's launcher uses for this user."""
    state = home / BELOW_HOME
    return Folders(
        home=str(home), config=str(home / ".config/fairlead"), state=str(state), run=str(state / "run"),
        daemon=machine.daemon, env=_variables(home, machine.path),
    )  # fmt: skip


def record_file(folders: Folders) -> Path:
    return Path(folders.home) / BELOW_HOME / RECORD


def write_record(folders: Folders) -> None:
    """Write down the folders, for all commands to come."""
    file = record_file(folders)
    make_private(file.parent)
    write_file(file, as_json(folders), 0o600)


def write_file(file: Path, text: str, mode: int) -> None:
    """Write a small file in one move."""
    new = file.with_name(f".{file.name}.{os.getpid()}")
    new.write_text(text + "\n", "utf-8")
    new.chmod(mode)
    os.replace(new, file)


@contextmanager
def probing(folders: Folders) -> Iterator[str]:
    """Have the installed launchers use other folders meanwhile, for a CLI that has this name in FAIRLEAD_PROBE.

    Only somebody who can write to the state folder can put such a name there, and nothing else can guess it.
    """
    name, states = token_hex(16), {str(places.state_folder())}
    home = home_in_database()  # in which the launchers of machines and projects look
    known = None if home is None else _read(Path(home) / BELOW_HOME / RECORD) or _read(MACHINE / RECORD)
    if home is not None and known is not None:
        states.add(known.state if isinstance(known, Folders) else str(Path(home) / BELOW_HOME))
    made = []
    try:
        for state in states:
            with suppress(OSError, BadPlace):
                probes = make_private(Path(state, "probes"))
                _clear(probes)
                made.append(probes / name)
                write_file(made[-1], as_json(folders), 0o600)
        yield name
    finally:
        for file in made:
            with suppress(OSError):
                file.unlink()
                file.parent.rmdir()


def _clear(probes: Path) -> None:
    """Remove what a killed `fairlead doctor` has left. The launchers' client does not use it any more."""
    from .hosts.hook_client import PROBE_LIFE

    for left in probes.iterdir():
        if abs(time() - left.lstat().st_mtime) >= PROBE_LIFE:
            left.unlink()


# --- working them out ---------------------------------------------------------------------------


def from_environment(*, daemon: bool = True) -> Folders:
    """The folders to record: those in use already, or else what the environment says. PATH is today's."""
    from .guard import moved_settings  # which nothing but an installation needs

    if (folders := places.fixed_folders()) is not None:
        env = _variables(Path(folders.home), search_path(), Path(folders.config).parent)
        return replace(folders, daemon=daemon, env=env, moved=moved_settings())
    home, config, state = Path.home(), places.config_folder(), places.state_folder()
    return Folders(
        home=str(home), config=str(config), state=str(state), run=str(_socket_folder(home, state)), daemon=daemon,
        env=_variables(home, search_path(), config.parent), moved=moved_settings(),
    )  # fmt: skip


def search_path() -> str:
    """Where hooks find their programs: as whoever installs does, without what depends on the working folder."""
    found = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(folder)]
    return os.pathsep.join(dict.fromkeys(found)) or os.defpath


def _variables(home: Path, path: str, config: Path | None = None) -> dict[str, str]:
    """What hooks get, beside the caller's LANG, TZ and LC_*. TMPDIR and XDG_RUNTIME_DIR come and go: neither."""
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
    """Where a socket's path is not too long. If that is nowhere, there is no daemon, as the client finds out."""
    folders = [state / "run", home / ".fairlead"]
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(base):
        folders.append(Path(base) / "fairlead")
    fitting = (folder for folder in folders if len(os.fsencode(folder / "v1.sock")) <= SOCKET_LIMIT)
    return next(fitting, folders[0])


def contradictions(folders: Folders) -> Iterator[str]:
    """What the environment says that is not so."""
    told: dict[str, Any] = {
        "FAIRLEAD_STATE_DIR": ("", folders.state),
        "XDG_STATE_HOME": ("fairlead", folders.state),
        "XDG_CONFIG_HOME": ("fairlead", folders.config),
    }
    if os.environ.get("FAIRLEAD_STATE_DIR"):
        del told["XDG_STATE_HOME"]
    for name, (below, recorded) in told.items():
        named = os.environ.get(name)
        if named and os.path.normpath(os.path.join(named, below)) != recorded:
            yield (
                f"{name} is {named}, but fairlead was installed with {recorded}, and uses that; to move it, "
                "`fairlead uninstall all` first"
            )


def refuse_here(launcher: Path) -> None:
    """Raise where agent CLIs could not start a launcher."""
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
        raise BadPlace(f"agent CLIs start fairlead by a shell script, {launcher}, and {why}. Nothing was changed.")
