"""Upgrades what another version of fairlead has left: launcher, settings, daemon, journal, trust.

An upgrade never weakens a policy. What only the user may decide, such as trust in a project, is left with a hint.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Literal

import msgspec

from .... import __version__
from ....build import source_digest
from ....config.layers import Sources, find, read
from ....config.trust import Trust
from ....errors import FairleadError
from ....paths import MANAGED, journal_file, managed_folder, runtime_folder
from .. import client as hook_client
from ..launcher import base_interpreter, launcher_text, parse_launcher
from ..mapping import ALL, EXPERIMENTAL, Host, host_named, hosts
from .apply import carry_out
from .plan import is_root, launcher_for, plan_install, recorded_for
from .records import read_records
from .settings import SCOPES, InstallScope, has_scope, settings_of
from .status import status

PartState = Literal["current", "outdated", "upgraded", "left"]
STOP_WAIT = 30.0
"""Seconds that an older daemon has to finish its work and end."""
HANGS_WAIT = 3.0
"""Seconds after which a daemon that does not answer counts as hanging."""


class UpgradePart(msgspec.Struct, kw_only=True):
    """One thing that a version of fairlead has written or runs."""

    name: Literal["launcher", "settings", "daemon", "journal", "trust"]
    where: str
    state: PartState
    says: str
    todo: str | None = None
    """What the user must do."""

    @property
    def done(self) -> bool:
        return self.state in ("current", "upgraded")


Upgrade = Callable[[], None]
Planned = tuple[UpgradePart, Upgrade | None]
"""A part and the function that upgrades it. None: it is current, or only the user may change it."""


def look(root: Path) -> list[Planned]:
    """List all parts, for a user who works in `root`. Changes nothing."""
    return [*_launchers(), *_settings(root), *_daemon(), *_journal(), *_trust()]


def upgrade(planned: list[Planned]) -> list[UpgradePart]:
    """Upgrade all outdated parts in order. A part that fails is left, with the reason."""
    for part, apply in planned:
        if part.state != "outdated" or apply is None:
            continue
        try:
            apply()
            part.state = "upgraded"
        except (FairleadError, OSError) as error:
            part.state, part.todo = "left", part.todo or str(error)
            part.says = f"{part.says}: {error}"
    return [part for part, _ in planned]


# --- what is installed ------------------------------------------------------------------------------


def _launchers() -> Iterator[Planned]:
    for scope in ("user", "managed"):
        launcher = launcher_for(scope)
        if not launcher.exists():
            continue
        part = UpgradePart(name="launcher", where=str(launcher), state="current", says=f"is of version {__version__}")
        if _is_current(launcher):
            yield part, None
        elif scope == "managed" and not is_root():
            part.state, part.says, part.todo = "left", "is of another version", "sudo fairlead upgrade"
            yield part, None
        else:
            part.state, part.says = "outdated", "is of another version, or starts another fairlead"
            yield part, lambda scope=scope: _write_launcher(scope)  # type: ignore[misc]


def _is_current(launcher: Path) -> bool:
    try:
        client = (launcher.parent / "fairlead_hook.py").read_bytes()
        text = launcher.read_text("utf-8")
    except (OSError, UnicodeError):
        return False
    runs = parse_launcher(text)
    if runs is None or client != Path(hook_client.__file__).read_bytes():
        return False
    return text == launcher_text(launcher.parent, base_interpreter(), sys.executable, runs.installed)


def _write_launcher(scope: InstallScope) -> None:
    """Write the launcher again, with the folders that it has on record."""
    carry_out(plan_install([], scope, Path("/"), recorded_for(scope)))


def _settings(root: Path) -> Iterator[Planned]:
    seen: set[tuple[str, Path]] = set()
    for host, scope, place in _installed(root):
        try:
            installed = status(host, scope, place)
        except FairleadError as error:
            part = UpgradePart(name="settings", where=f"{host.title} ({scope})", state="left", says=str(error))
            part.todo = "fix the file, and try again"
            yield part, None
            continue
        if installed is None or (host.name, installed.file) in seen:  # a home may also be the project
            continue
        seen.add((host.name, installed.file))
        part = UpgradePart(
            name="settings", where=str(installed.file), state="current", says=f"{host.title} asks as it should"
        )
        if installed.current and installed.trusted is not False:
            yield part, None
        elif scope == "managed" and not is_root():
            part.state, part.says = "left", f"{host.title} asks as an older version did"
            part.todo = "sudo fairlead upgrade"
            yield part, None
        else:
            part.state, part.says = "outdated", f"{host.title} asks as another version did"
            yield part, lambda host=host, scope=scope, place=place: _install(host, scope, place)  # type: ignore[misc]


def _install(host: Host, scope: InstallScope, root: Path) -> None:
    plan = plan_install([host], scope, root, recorded_for(scope))
    carry_out(plan)
    if unwritten := [str(change.path) for change in plan.changes if change.snippet is not None]:
        again = f"fairlead install {host.name}" + ("" if scope == "user" else f" --scope {scope}")
        raise FairleadError(f"{', '.join(unwritten)} cannot be written; `{again}` shows what belongs there")


def _installed(root: Path) -> list[tuple[Host, InstallScope, Path]]:
    """Each CLI and scope that may have fairlead's hooks: here, and in each project on record."""
    found = [(host, scope, root) for host in hosts() for scope in SCOPES if has_scope(host, scope)]
    for record in read_records().values():
        if record.scope == "project" and record.host in (*ALL, *EXPERIMENTAL):
            settings = settings_of(record.host)
            depth = len(Path(settings.project).parts) + (settings.form == "files")
            place = Path(record.file).parents[depth - 1] if depth <= len(Path(record.file).parents) else root
            found.append((host_named(record.host), record.scope, place))
    return list({(host.name, scope, place): (host, scope, place) for host, scope, place in found}.values())


# --- what runs --------------------------------------------------------------------------------------


def _daemon() -> Iterator[Planned]:
    folder = managed_folder() or runtime_folder()
    if not hook_client.is_listening(str(folder)):
        return
    where = hook_client.socket_path(str(folder))
    if hook_client.hangs(str(folder), HANGS_WAIT):
        part = UpgradePart(name="daemon", where=where, state="left", says="does not answer", todo="fairlead doctor")
        yield part, None
        return
    from ....client import Client, DaemonError

    try:
        with Client(where, start=False) as client:
            health = client.health()
    except DaemonError as error:
        yield UpgradePart(name="daemon", where=where, state="left", says=str(error), todo="fairlead doctor"), None
        return
    part = UpgradePart(name="daemon", where=where, state="current", says=f"is of version {health.get('version')}")
    if (health.get("version"), health.get("source")) == (__version__, source_digest()):
        yield part, None
        return
    if health.get("version") == __version__:
        part.says += ", from other source files"
    if folder == MANAGED:
        part.state, part.todo = "left", "restart the machine's daemon, as root"
        yield part, None
    else:
        part.state = "outdated"
        part.says += ": it finishes what it has, and ends; the next step starts another"
        yield part, lambda: _stop(folder)


def _stop(folder: Path) -> None:
    from ....client import Client

    with Client(hook_client.socket_path(str(folder)), start=False) as client:
        client.stop()
    until = time.monotonic() + STOP_WAIT
    while hook_client.is_listening(str(folder)):
        if time.monotonic() > until:
            raise FairleadError(f"it did not end within {STOP_WAIT:g} s; look at it with `fairlead doctor`")
        time.sleep(0.05)


# --- what is kept -----------------------------------------------------------------------------------


def _journal() -> Iterator[Planned]:
    from ....journal.schema import SCHEMA

    try:
        found = find("/")
        config = read(Sources(found.system, found.user))
    except FairleadError:
        return  # `_trust` reports it
    path = Path(config.journal.get("path") or journal_file())
    if not path.exists():
        return
    part = UpgradePart(name="journal", where=str(path), state="current", says=f"has schema {SCHEMA}")
    try:
        schema = _schema_of(path)
    except sqlite3.Error as error:
        part.state, part.says, part.todo = "left", f"cannot be read: {error}", "fairlead verify"
        yield part, None
        return
    if schema == SCHEMA:
        yield part, None
    elif schema > SCHEMA:
        part.state, part.says = "left", f"has schema {schema}, and this fairlead knows {SCHEMA}: a newer one wrote it"
        part.todo = "install that fairlead again; until then, records go to a file of their own beside it"
        yield part, None
    else:
        part.state, part.says = "outdated", f"has schema {schema}, and goes on with {SCHEMA}: an older fairlead "
        part.says += "cannot write to it then"

        def migrate() -> None:
            journal = config.open_journal()
            if journal is not None:
                journal.close()
            if _schema_of(path) != SCHEMA:
                raise FairleadError("it is brought to this version when the next record is written")

        yield part, migrate


def _schema_of(path: Path) -> int:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        (schema,) = db.execute("PRAGMA user_version").fetchone()
        return int(schema)


def _trust() -> Iterator[Planned]:
    """The trust file. If it cannot be read, the user must trust the projects again."""
    trust = Trust()
    file = trust.folder / "trust.json"
    if not file.exists():
        return
    part = UpgradePart(name="trust", where=str(file), state="current", says="can be read")
    try:
        part.says = f"has {len(trust.projects)} trusted projects"
    except FairleadError as error:
        part.state, part.says = "left", str(error)
        names = ", ".join(_projects_in(file)[:8])
        part.todo = f"trust these again, each with `fairlead trust`: {names}" if names else "fairlead trust"
    yield part, None


def _projects_in(file: Path) -> list[str]:
    """The projects that a trust file names, whatever its version."""
    with suppress(OSError, msgspec.MsgspecError, UnicodeError, RecursionError):
        data = msgspec.json.decode(file.read_bytes())
        projects = data.get("projects", data) if isinstance(data, dict) else {}
        return sorted(name for name in projects if isinstance(name, str) and name.startswith("/"))
    return []
