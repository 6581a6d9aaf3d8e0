"""Carrying out a plan: all of its files are written or, if one cannot be written, none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ....errors import FairleadError
from ....folders import RECORD, Machine, as_json, write_record
from ....paths import Folders, atomic_write, make_private, state_folder
from ..launcher import NAME, usual_launcher, write_launcher
from ..mapping import hosts
from .plan import FileChange, Plan, missing_folders
from .records import InstallRecord, digest, installation_lock, read_records, replace_file, write_records
from .settings import InstallScope, has_scope
from .status import status
from .targets import read_text


def carry_out(plan: Plan) -> None:
    """Write all files of a plan, or none. Raises `FairleadError` if that fails."""
    try:
        with installation_lock(), _readable(plan.scope):
            for change in plan.changes:
                if read_text(change.path) != change.old:
                    raise FairleadError(f"{change.path} was changed by another program just now; try again")
            if plan.folders is not None:
                write_launcher(plan.folders, plan.launcher.parent)
            for change in plan.changes:
                if change.record is not None and change.base is not None:
                    change.record.backup = str(_back_up(change, plan.scope))
            _write_all(plan)
            if plan.folders is not None:
                _record_folders(plan.folders, plan.launcher.parent)
            if not plan.installs and not _is_launcher_used(plan):
                _remove_launcher(plan.launcher.parent, plan.scope)
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        raise FairleadError(f"{named}{error.strerror or error}; nothing was changed") from None


@contextmanager
def _readable(scope: InstallScope) -> Iterator[None]:
    """Let all users read managed files, whatever umask root has."""
    mask = os.umask(0o022)
    os.umask(mask & 0o022 if scope == "managed" else mask)
    try:
        yield
    finally:
        os.umask(mask)


def _write_all(plan: Plan) -> None:
    """Write all files and the record of them. If that fails, put back what was there."""
    done: list[FileChange] = []
    try:
        for change in plan.changes:
            if change.changes and change.snippet is None:
                done.append(change)
                _write(change, change.new, plan.scope)
        _record_changes(plan)
    except BaseException:
        for change in reversed(done):
            with suppress(OSError):
                _write(change, change.old, plan.scope)
                _remove_folders(change.record)
        raise


def _write(change: FileChange, text: str | None, scope: InstallScope) -> None:
    path = Path(os.path.realpath(change.path))
    if text is None:
        path.unlink(missing_ok=True)
        return
    for folder in missing_folders(path):
        os.mkdir(folder, 0o700 if scope == "user" else 0o755)
    replace_file(path, text.encode(), change.mode)


def _record_changes(plan: Plan) -> None:
    """Update the record, and remove the backups and folders that are no longer needed."""
    records = read_records()
    for change in plan.changes:
        if change.record is not None:
            records[change.record.key] = change.record
    for record in plan.gone:
        records.pop(record.key, None)
        _remove_folders(record)
        if record.backup is not None:
            Path(record.backup).unlink(missing_ok=True)
            with suppress(OSError):  # it holds other backups
                Path(record.backup).parent.rmdir()
    write_records(records)


def _back_up(change: FileChange, scope: InstallScope) -> Path:
    """Keep a copy of a file as it is without fairlead's hooks."""
    folder = make_private(state_folder()) / "backups"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{change.host}-{scope}-{digest(str(change.path))[7:19]}-{change.path.name}"
    content = (change.base or "").encode()
    if not path.exists() or path.read_bytes() != content:
        replace_file(path, content, 0o600)
    return path


def _remove_folders(record: InstallRecord | None) -> None:
    """Remove the folders that were made for a file, if they are empty."""
    for folder in reversed(() if record is None else record.folders):
        with suppress(OSError):
            os.rmdir(folder)


def _record_folders(folders: Folders | Machine, folder: Path) -> None:
    """Write down the folders of a launcher, for all later commands."""
    if isinstance(folders, Folders):
        write_record(folders)
    else:
        atomic_write(folder / RECORD, as_json(folders).encode() + b"\n", 0o644)


def _is_launcher_used(plan: Plan) -> bool:
    """Whether any settings still start the launcher. Settings that cannot be read may do so."""
    if any(record.launcher == str(plan.launcher) for record in read_records().values()):
        return True
    scope: InstallScope = "managed" if plan.scope == "managed" else "user"
    for host in hosts():
        try:
            if has_scope(host, scope) and status(host, scope) is not None:
                return True
        except FairleadError:
            return True
    return False


def _remove_launcher(folder: Path, scope: InstallScope) -> None:
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
    with suppress(OSError):  # one of them is not empty
        for empty in (usual.parent, usual.parent.parent, *usual.parents[2:4]):
            empty.rmdir()
