"""Installing: having agent CLIs put their steps to fairlead, and taking it back, leaving all else as it was.

All files are planned before any is written. What was there is kept, and a record of it, in fairlead's own folder. But
what is ours is also known without a record: it starts our launcher.
"""

from __future__ import annotations

import fcntl
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import unified_diff
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Literal

import msgspec

from ..errors import FairleadError
from ..folders import (
    MACHINE,
    RECORD,
    Machine,
    as_json,
    from_environment,
    home_of_user,
    refuse_here,
    search_path,
    write_file,
    write_record,
)
from ..logs import logger
from ..places import Folders, is_mount, make_private, state_folder
from . import settings as where
from .host import Host, hosts
from .launcher import NAME, base_interpreter, launcher_folder, runs_of, usual_launcher, write_launcher
from .settings import TIMEOUT, Scope, has_scope, settings_file
from .targets import Before, JsonFile, Target, read_text, targets_of

NIX_STORE = Path("/nix/store")
"""What is below it is made by Nix, and not to be written by anything else."""


class Record(msgspec.Struct, kw_only=True):
    """That something was installed in a file, and what the file was before."""

    host: str
    scope: Scope
    file: str
    digest: str
    """Of the file as it was left."""
    existed: bool
    backup: str | None = None
    """A copy of the file as it would be without us."""
    made: tuple[tuple[str, ...], ...] | None = None
    """What had to be made in it."""
    folders: tuple[str, ...] = ()
    """Folders that had to be made for it."""
    timeout: float = TIMEOUT
    launcher: str = ""

    @property
    def before(self) -> Before:
        return Before(self.existed, self.made)


class Change(msgspec.Struct, kw_only=True):
    """What is to become of one file."""

    host: str
    path: Path
    old: str | None
    new: str | None
    mode: int
    outdated: bool = False
    """Whether other entries of ours are in it, that change."""
    record: Record | None = None
    """What to remember of it."""
    base: str | None = None
    """What it would be without us."""
    snippet: str | None = None
    """What somebody else has to write into it, because it cannot be written here."""

    @property
    def changes(self) -> bool:
        return self.old != self.new

    @property
    def action(self) -> Literal["wrote", "removed", "cleaned", "unchanged", "left"]:
        """`removed` is a file that is gone, `cleaned` one that stays, without what was ours in it.

        `left` is one that cannot be written here.
        """
        if not self.changes:
            return "unchanged"
        if self.snippet is not None:
            return "left"
        return "wrote" if self.record is not None else "removed" if self.new is None else "cleaned"

    def diff(self) -> str:
        """What changes, as a person reads it."""
        old, new = ((text or "").splitlines(keepends=True) for text in (self.old, self.new))
        names = [str(self.path) if text is not None else "/dev/null" for text in (self.old, self.new)]
        lines = unified_diff(old, new, names[0], names[1])
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


class Plan(msgspec.Struct, kw_only=True):
    """What is to become of all files."""

    installs: bool
    scope: Scope
    launcher: Path
    folders: Folders | Machine | None = None
    """What the launcher is to know."""
    changes: list[Change] = []
    gone: list[Record] = []
    """What need not be remembered any more."""
    warnings: list[str] = []


class Installed(msgspec.Struct, kw_only=True):
    """What of ours a CLI has in one scope."""

    host: str
    scope: Scope
    file: Path
    """Its file, or its folder, if there is a file for each event."""
    files: list[Path]
    events: list[str]
    missing: list[str]
    outdated: list[str]
    """Events whose entries would be written differently now: another launcher, another time-out."""
    trusted: bool | None = None
    """Whether the CLI will run them, if it has to be told."""
    foreign: list[str] = []
    """Hooks of others on the same events."""
    problems: list[str] = []
    """Why the CLI may not heed the file."""

    @property
    def current(self) -> bool:
        return not self.missing and not self.outdated


# --- planning -------------------------------------------------------------------------------------


def plan_install(
    wanted: Iterable[Host],
    scope: Scope,
    root: Path,
    folders: Folders | Machine | None = None,
    *,
    timeout: float | None = None,
    dry_run: bool = False,
) -> Plan:
    """What `install` does. Raises `FairleadError` if any file is not what it should be, so that none is written."""
    folders = folders_for(scope) if folders is None else folders
    plan = Plan(installs=True, scope=scope, launcher=launcher_for(scope), folders=folders)
    refuse_here(plan.launcher)
    records = read_records()
    for host in wanted:
        for target in targets_of(host, scope, root, plan.launcher, timeout or _timeout(host, scope, records)):
            change = _put(host, target, plan, records, timeout or _timeout(host, scope, records))
            plan.changes.append(change)
            if not dry_run:
                _check_root(change, scope)
            if change.changes and _cannot_write(change.path) is not None:
                change.snippet, change.record = target.put(None)[0], None
            plan.warnings += target.look(change.new).problems
    if scope == "managed":
        plan.warnings += _interpreters()
    if scope == "project" and Path(home_of_user()) != Path.home():
        found = home_of_user() or "the home of a user whom the user database knows, which you are not"
        plan.warnings.append(f"these settings look for the launcher in {found}: run `fairlead install` there, too")
    return plan


def folders_for(scope: Scope, *, daemon: bool | None = None, base: str = "") -> Folders | Machine:
    """What a launcher is to know: as the environment says, or what is recorded already. PATH is today's."""
    recorded = recorded_for(scope)
    daemon = (recorded is None or recorded.daemon) if daemon is None else daemon
    if scope == "managed":
        base = base or (recorded.base if isinstance(recorded, Machine) else "")
        return Machine(path=search_path(), base=base, daemon=daemon)
    return from_environment(daemon=daemon)


def recorded_for(scope: Scope) -> Folders | Machine | None:
    """What the launcher that is there knows."""
    try:
        runs = runs_of(launcher_for(scope).read_text("utf-8"))
    except (OSError, UnicodeError):
        return None
    return None if runs is None else runs.installed


def plan_uninstall(wanted: Iterable[Host], scope: Scope, root: Path, *, dry_run: bool = False) -> Plan:
    """What `uninstall` does."""
    plan = Plan(installs=False, scope=scope, launcher=launcher_for(scope))
    records = read_records()
    for host in wanted:
        targets = targets_of(host, scope, root, plan.launcher, _timeout(host, scope, records))
        for target in [*targets, *_others(host, scope, root, targets, records)]:
            record = records.get(_key(host, scope, target.path))
            change = _cut(host, target, record)
            plan.changes.append(change)
            plan.gone += [] if record is None else [record]
            if not dry_run:
                _check_root(change, scope)
                if change.changes and (why := _cannot_write(change.path)) is not None:
                    raise FairleadError(f"{change.path} cannot be written: {why}; take our hooks out where it is made")
    return plan


def _put(host: Host, target: Target, plan: Plan, records: dict[str, Record], timeout: float) -> Change:
    old = read_text(target.path)
    new, before = target.put(old)
    outdated = old is not None and False in target.look(old).events.values()
    known = records.get(_key(host, plan.scope, target.path))
    if old is None:
        base = None
    elif known is not None and known.digest == _digest(old) and _restorable(known):
        base, before = _backup_of(known), known.before
    else:  # nobody knows, or it was edited since: then it is what is left if ours is cut out
        base = target.cut(old, Before() if known is None else known.before)
        before = target.put(base)[1]
    folders = known.folders if known is not None and old is not None else _missing_folders(target.path)
    record = Record(
        host=host.name, scope=plan.scope, file=str(target.path), digest=_digest(new), existed=base is not None,
        made=before.made, folders=folders, timeout=timeout, launcher=str(plan.launcher),
    )  # fmt: skip
    mode = _mode(plan.scope, target.runs)
    return Change(
        host=host.name, path=target.path, old=old, new=new, mode=mode, outdated=outdated, record=record, base=base
    )


def _cut(host: Host, target: Target, record: Record | None) -> Change:
    old = read_text(target.path)
    new = old
    if old is not None and record is not None and record.digest == _digest(old) and _restorable(record):
        new = _backup_of(record)
    elif old is not None:
        new = target.cut(old, Before() if record is None else record.before)
    mode = _mode("user" if record is None else record.scope, target.runs)
    return Change(host=host.name, path=target.path, old=old, new=new, mode=mode)


def _others(
    host: Host, scope: Scope, root: Path, targets: Sequence[Target], records: dict[str, Record]
) -> Iterator[Target]:
    """Files that have something of ours, by the record, and would not be written to now."""
    known = {str(target.path) for target in targets}
    for record in records.values():
        if record.host != host.name or record.scope != scope or record.file in known:
            continue
        if (scope != "project" or Path(record.file).is_relative_to(root)) and record.file.endswith(".json"):
            yield JsonFile(host, Path(record.file), {})


def _timeout(host: Host, scope: Scope, records: dict[str, Record]) -> float:
    """The time-out that was asked for last."""
    found = (record.timeout for record in records.values() if (record.host, record.scope) == (host.name, scope))
    return next(found, TIMEOUT)


def launcher_for(scope: Scope) -> Path:
    """The launcher: the user's own, or the machine's, which users cannot change."""
    return (library() if scope == "managed" else launcher_folder()) / NAME


def library() -> Path:
    return where.ROOT / str(MACHINE).lstrip("/")


def _interpreters() -> Iterator[str]:
    """What the launcher runs, where not everybody can run it, or somebody else than root can change it."""
    for program in dict.fromkeys((base_interpreter(), sys.executable)):
        for path in (Path(program), *Path(program).parents):
            status = path.stat()
            if not status.st_mode & stat.S_IXOTH or status.st_uid != 0 or status.st_mode & stat.S_IWOTH:
                yield f"{program} is not for everybody to run, and for root alone to change, because of {path}"
                break


def _mode(scope: Scope, runs: bool) -> int:
    """Of a new file."""
    return (0o700 if runs else 0o600) if scope == "user" else (0o755 if runs else 0o644)


def _check_root(change: Change, scope: Scope) -> None:
    """Raise unless a file that is to change may be changed by this user."""
    if change.changes and scope == "managed" and not is_root():
        raise FairleadError(f"{change.path} holds for everybody on this machine: run this as root (sudo)")


def _cannot_write(path: Path) -> str | None:
    """Why a file cannot be written, if it cannot: it may be made by something else, as on NixOS."""
    real = Path(os.path.realpath(path))
    if real.is_relative_to(NIX_STORE):
        return f"it is {real}, which Nix has made"
    if real.exists() and not real.stat().st_mode & 0o222:
        return "it is read-only"
    if is_mount(real):
        return "it is mounted there, so that it cannot be replaced"
    folder = real.parent
    while not os.path.lexists(folder):
        folder = folder.parent
    if not folder.is_dir():
        raise FairleadError(f"{folder} is no folder, so {path} cannot be written")
    return None if os.access(folder, os.W_OK | os.X_OK) else f"you may not write to {folder}"


def is_root() -> bool:
    return os.geteuid() == 0


def _missing_folders(path: Path) -> tuple[str, ...]:
    """The folders that must be made for a file, the outermost first."""
    above = Path(os.path.realpath(path)).parents
    return tuple(str(folder) for folder in reversed(above) if not folder.exists())


# --- carrying it out ------------------------------------------------------------------------------


def carry_out(plan: Plan) -> None:
    """Do what is planned, all of it or, if something cannot be written, nothing."""
    try:
        with _locked(), _readable(plan.scope):
            for change in plan.changes:
                if read_text(change.path) != change.old:
                    raise FairleadError(f"{change.path} was changed just now, by somebody else; try again")
            if plan.folders is not None:
                write_launcher(plan.folders, plan.launcher.parent)
            for change in plan.changes:
                if change.record is not None and change.base is not None:
                    change.record.backup = str(_keep(change, plan.scope))
            _write_all(plan)
            if plan.folders is not None:
                _record_folders(plan.folders, plan.launcher.parent)
            if not plan.installs and not _anybody(plan):
                _remove_launcher(plan.launcher.parent, plan.scope)
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        raise FairleadError(f"{named}{error.strerror or error}; nothing was changed") from None


@contextmanager
def _readable(scope: Scope) -> Iterator[None]:
    """What is for everybody must be readable for everybody, whatever mask root has."""
    mask = os.umask(0o022)
    os.umask(mask & 0o022 if scope == "managed" else mask)
    try:
        yield
    finally:
        os.umask(mask)


def _write_all(plan: Plan) -> None:
    """Write all files, and that it was done."""
    done: list[Change] = []
    try:
        for change in plan.changes:
            if change.changes and change.snippet is None:
                done.append(change)
                _write(change, change.new, plan.scope)
        _remember(plan)
    except BaseException:
        for change in reversed(done):
            with suppress(OSError):
                _write(change, change.old, plan.scope)
                _remove_folders(change.record)
        raise


def _write(change: Change, text: str | None, scope: Scope) -> None:
    path = Path(os.path.realpath(change.path))
    if text is None:
        path.unlink(missing_ok=True)
        return
    for folder in _missing_folders(path):
        os.mkdir(folder, 0o700 if scope == "user" else 0o755)
    _replace(path, text.encode(), change.mode)


def _replace(path: Path, content: bytes, mode: int) -> None:
    """Write a file in one move. One that is there keeps its mode and its owner."""
    status = path.stat() if path.exists() else None
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), mode if status is None else status.st_mode & 0o7777)
            if status is not None and os.geteuid() == 0:
                os.fchown(file.fileno(), status.st_uid, status.st_gid)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def _remember(plan: Plan) -> None:
    """Write down what was done, or forget it."""
    records = read_records()
    for change in plan.changes:
        if change.record is not None:
            records[_key_of(change.record)] = change.record
    for record in plan.gone:
        records.pop(_key_of(record), None)
        _remove_folders(record)
        if record.backup is not None:
            Path(record.backup).unlink(missing_ok=True)
            with suppress(OSError):  # others have theirs there
                Path(record.backup).parent.rmdir()
    if not records:
        _records_file().unlink(missing_ok=True)
    elif records != read_records():
        _replace(_records_file(), msgspec.json.format(msgspec.json.encode(list(records.values())), indent=2), 0o600)


def _keep(change: Change, scope: Scope) -> Path:
    """A copy of what a file would be without us."""
    folder = make_private(state_folder()) / "backups"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{change.host}-{scope}-{_digest(str(change.path))[7:19]}-{change.path.name}"
    content = (change.base or "").encode()
    if not path.exists() or path.read_bytes() != content:
        _replace(path, content, 0o600)
    return path


def _remove_folders(record: Record | None) -> None:
    """Folders that were made for a file, and that nobody else has put anything into."""
    for folder in reversed(() if record is None else record.folders):
        with suppress(OSError):
            os.rmdir(folder)


def _anybody(plan: Plan) -> bool:
    """Whether anything still starts the launcher. What cannot be read may."""
    if any(record.launcher == str(plan.launcher) for record in read_records().values()):
        return True
    scope: Scope = "managed" if plan.scope == "managed" else "user"
    for host in hosts():
        try:
            if has_scope(host, scope) and status(host, scope) is not None:
                return True
        except FairleadError:
            return True
    return False


def _record_folders(folders: Folders | Machine, folder: Path) -> None:
    """Write down the folders of a launcher, which all commands go by."""
    if isinstance(folders, Folders):
        write_record(folders)
    else:
        write_file(folder / RECORD, as_json(folders), 0o644)


def _remove_launcher(folder: Path, scope: Scope) -> None:
    import shutil

    for name in (NAME, "fairlead_hook.py"):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    with suppress(OSError):
        folder.rmdir()
    if scope == "managed":
        (folder / RECORD).unlink(missing_ok=True)
        return
    usual = usual_launcher(str(Path.home()))
    if usual.is_symlink():
        usual.unlink()
    (usual.parent.parent / RECORD).unlink(missing_ok=True)
    with suppress(OSError):  # there is something else in one of them
        for empty in (usual.parent, usual.parent.parent, *usual.parents[2:4]):
            empty.rmdir()


# --- remembering ----------------------------------------------------------------------------------


def read_records() -> dict[str, Record]:
    """What was installed. Without it, what is ours is still known when it is seen."""
    try:
        records = msgspec.json.decode(_records_file().read_bytes(), type=list[Record])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        logger.warning("%s cannot be read (%s): what was installed is looked for", _records_file(), error)
        return {}
    return {_key_of(record): record for record in records}


def _records_file() -> Path:
    return state_folder() / "installed.json"


def _key(host: Host, scope: Scope, path: Path) -> str:
    return f"{host.name} {scope} {path}"


def _key_of(record: Record) -> str:
    return f"{record.host} {record.scope} {record.file}"


def _digest(text: str) -> str:
    return f"sha256:{sha256(text.encode()).hexdigest()}"


def _backup_of(record: Record) -> str | None:
    """The file as it was. None: it was not there, or that is not known."""
    return read_text(Path(record.backup)) if record.existed and record.backup is not None else None


def _restorable(record: Record) -> bool:
    return not record.existed or _backup_of(record) is not None


@contextmanager
def _locked() -> Iterator[None]:
    with (make_private(state_folder()) / "installed.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# --- looking --------------------------------------------------------------------------------------


def status(host: Host, scope: Scope, root: Path | None = None) -> Installed | None:
    """What of ours a CLI has in a scope. None: nothing, or it has no such scope."""
    root = Path.cwd() if root is None else root
    if not has_scope(host, scope):
        return None
    targets = targets_of(host, scope, root, launcher_for(scope), _timeout(host, scope, read_records()))
    texts = [read_text(target.path) for target in targets]
    if not any(text is not None and NAME in text for text in texts):
        return None
    looks = [target.look(text) for target, text in zip(targets, texts, strict=True)]
    wanted = [event for event in host.moments if any(event in target.events for target in targets)]
    has = {
        event: [look.events.get(event) for look, target in zip(looks, targets, strict=True) if event in target.events]
        for event in wanted
    }
    untrusted = [event for look in looks for event in look.untrusted]
    return Installed(
        host=host.name, scope=scope, file=settings_file(host, scope, root), files=[target.path for target in targets],
        events=[event for event in wanted if None not in has[event]],
        missing=[event for event in wanted if None in has[event]],
        outdated=[event for event in wanted if False in has[event]],
        trusted=not untrusted if host.name == "codex" and scope != "managed" else None,
        foreign=[f"{event}: {each}" for look in looks for event in look.foreign for each in look.foreign[event]],
        problems=[problem for look in looks for problem in look.problems],
    )  # fmt: skip
