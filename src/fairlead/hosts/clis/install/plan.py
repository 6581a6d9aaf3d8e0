"""Plans what `fairlead install` and `fairlead uninstall` change. All files are planned before any is written."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Literal

import msgspec

from ....errors import FairleadError
from ....folders import MACHINE, Machine, from_environment, home_of_user, refuse_here, search_path
from ....paths import Folders, is_mount
from ..launcher import NAME, base_interpreter, launcher_folder, parse_launcher
from ..mapping import Host
from . import settings as install_settings
from .json_file import JsonFile
from .records import InstallRecord, digest, last_timeout, read_records, record_key
from .settings import InstallScope
from .targets import Baseline, SettingsTarget, read_text, targets_of

NIX_STORE = Path("/nix/store")
"""Nix makes the files below it, and no other program may write them."""


class FileChange(msgspec.Struct, kw_only=True):
    """How one file changes."""

    host: str
    path: Path
    old: str | None
    new: str | None
    mode: int
    outdated: bool = False
    """Whether the file has hooks of fairlead that are replaced."""
    record: InstallRecord | None = None
    """What to record of the file."""
    base: str | None = None
    """The file without fairlead's hooks."""
    snippet: str | None = None
    """What the user must write into the file, because fairlead cannot write it."""

    @property
    def changes(self) -> bool:
        return self.old != self.new

    @property
    def action(self) -> Literal["wrote", "removed", "cleaned", "unchanged", "left"]:
        """What happens to the file.

        `removed`: the file goes. `cleaned`: it stays, without fairlead's hooks. `left`: fairlead cannot write it.
        """
        if not self.changes:
            return "unchanged"
        if self.snippet is not None:
            return "left"
        return "wrote" if self.record is not None else "removed" if self.new is None else "cleaned"

    def diff(self) -> str:
        """The change as a unified diff."""
        old, new = ((text or "").splitlines(keepends=True) for text in (self.old, self.new))
        names = [str(self.path) if text is not None else "/dev/null" for text in (self.old, self.new)]
        lines = unified_diff(old, new, names[0], names[1])
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


class Plan(msgspec.Struct, kw_only=True):
    """How all files change."""

    installs: bool
    scope: InstallScope
    launcher: Path
    folders: Folders | Machine | None = None
    """The folders that the launcher uses."""
    changes: list[FileChange] = []
    gone: list[InstallRecord] = []
    """Records to remove."""
    warnings: list[str] = []


def plan_install(
    wanted: Iterable[Host],
    scope: InstallScope,
    root: Path,
    folders: Folders | Machine | None = None,
    *,
    timeout: float | None = None,
    dry_run: bool = False,
) -> Plan:
    """Plan an installation. Raises `FairleadError` if any file cannot take the hooks."""
    folders = folders_for(scope) if folders is None else folders
    plan = Plan(installs=True, scope=scope, launcher=launcher_for(scope), folders=folders)
    refuse_here(plan.launcher)
    records = read_records()
    for host in wanted:
        seconds = timeout or last_timeout(host, scope, records)
        for target in targets_of(host, scope, root, plan.launcher, seconds):
            change = _plan_adding(host, target, plan, records, seconds)
            plan.changes.append(change)
            if not dry_run:
                _check_root(change, scope)
            if change.changes and _cannot_write(change.path) is not None:
                change.snippet, change.record = target.add_hooks(None)[0], None
            plan.warnings += target.inspect(change.new).problems
    if scope == "managed":
        plan.warnings += _interpreters()
    if scope == "project" and Path(home_of_user()) != Path.home():
        found = home_of_user() or "the home of a user whom the user database knows, which you are not"
        plan.warnings.append(f"these settings look for the launcher in {found}: run `fairlead install` there, too")
    return plan


def folders_for(scope: InstallScope, *, daemon: bool | None = None, base: str = "") -> Folders | Machine:
    """The folders for a launcher: those on record, or those of the environment. PATH is always the current one."""
    recorded = recorded_for(scope)
    daemon = (recorded is None or recorded.daemon) if daemon is None else daemon
    if scope == "managed":
        base = base or (recorded.base if isinstance(recorded, Machine) else "")
        return Machine(path=search_path(), base=base, daemon=daemon)
    return from_environment(daemon=daemon)


def recorded_for(scope: InstallScope) -> Folders | Machine | None:
    """The folders that the installed launcher uses."""
    try:
        runs = parse_launcher(launcher_for(scope).read_text("utf-8"))
    except (OSError, UnicodeError):
        return None
    return None if runs is None else runs.installed


def plan_uninstall(wanted: Iterable[Host], scope: InstallScope, root: Path, *, dry_run: bool = False) -> Plan:
    """Plan the removal of fairlead's hooks."""
    plan = Plan(installs=False, scope=scope, launcher=launcher_for(scope))
    records = read_records()
    for host in wanted:
        targets = targets_of(host, scope, root, plan.launcher, last_timeout(host, scope, records))
        for target in [*targets, *_left_over(host, scope, root, targets, records)]:
            record = records.get(record_key(host, scope, target.path))
            change = _plan_removing(host, target, record)
            plan.changes.append(change)
            plan.gone += [] if record is None else [record]
            if not dry_run:
                _check_root(change, scope)
                if change.changes and (why := _cannot_write(change.path)) is not None:
                    raise FairleadError(
                        f"{change.path} cannot be written: {why}; remove fairlead's hooks where it is made"
                    )
    return plan


def _plan_adding(
    host: Host, target: SettingsTarget, plan: Plan, records: dict[str, InstallRecord], timeout: float
) -> FileChange:
    old = read_text(target.path)
    new, before = target.add_hooks(old)
    outdated = old is not None and False in target.inspect(old).events.values()
    known = records.get(record_key(host, plan.scope, target.path))
    if old is None:
        base = None
    elif known is not None and known.can_restore(old):
        base, before = known.original(), known.before
    else:  # there is no record, or the file was edited since
        base = target.remove_hooks(old, Baseline() if known is None else known.before)
        before = target.add_hooks(base)[1]
    folders = known.folders if known is not None and old is not None else missing_folders(target.path)
    record = InstallRecord(
        host=host.name, scope=plan.scope, file=str(target.path), digest=digest(new), existed=base is not None,
        made=before.made, folders=folders, timeout=timeout, launcher=str(plan.launcher),
    )  # fmt: skip
    mode = _mode(plan.scope, target.is_program)
    return FileChange(
        host=host.name, path=target.path, old=old, new=new, mode=mode, outdated=outdated, record=record, base=base
    )


def _plan_removing(host: Host, target: SettingsTarget, record: InstallRecord | None) -> FileChange:
    old = read_text(target.path)
    new = old
    if old is not None and record is not None and record.can_restore(old):
        new = record.original()
    elif old is not None:
        new = target.remove_hooks(old, Baseline() if record is None else record.before)
    mode = _mode("user" if record is None else record.scope, target.is_program)
    return FileChange(host=host.name, path=target.path, old=old, new=new, mode=mode)


def _left_over(
    host: Host, scope: InstallScope, root: Path, targets: Sequence[SettingsTarget], records: dict[str, InstallRecord]
) -> Iterator[SettingsTarget]:
    """Files that have hooks of fairlead on record, and that an installation would not write now."""
    known = {str(target.path) for target in targets}
    for record in records.values():
        if record.host != host.name or record.scope != scope or record.file in known:
            continue
        if (scope != "project" or Path(record.file).is_relative_to(root)) and record.file.endswith(".json"):
            yield JsonFile(host, Path(record.file), {})


def launcher_for(scope: InstallScope) -> Path:
    """The path of the launcher: the user's own, or the machine's, which users cannot change."""
    return (library() if scope == "managed" else launcher_folder()) / NAME


def library() -> Path:
    return install_settings.ROOT / str(MACHINE).lstrip("/")


def _interpreters() -> Iterator[str]:
    """Warn of interpreters that some users cannot run, or that a user other than root can change."""
    for program in dict.fromkeys((base_interpreter(), sys.executable)):
        for path in (Path(program), *Path(program).parents):
            status = path.stat()
            if not status.st_mode & stat.S_IXOTH or status.st_uid != 0 or status.st_mode & stat.S_IWOTH:
                yield f"{program}: all users must be able to run it, and only root to change it; {path} breaks that"
                break


def _mode(scope: InstallScope, runs: bool) -> int:
    """The mode of a new file."""
    return (0o700 if runs else 0o600) if scope == "user" else (0o755 if runs else 0o644)


def _check_root(change: FileChange, scope: InstallScope) -> None:
    """Raise if a managed file changes and the user is not root."""
    if change.changes and scope == "managed" and not is_root():
        raise FairleadError(f"{change.path} holds for all users of this machine: run this as root (sudo)")


def _cannot_write(path: Path) -> str | None:
    """Why fairlead cannot write a file; None if it can."""
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


def missing_folders(path: Path) -> tuple[str, ...]:
    """The folders to make for a file, the outermost first."""
    above = Path(os.path.realpath(path)).parents
    return tuple(str(folder) for folder in reversed(above) if not folder.exists())
