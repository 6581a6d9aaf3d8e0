"""Trust in a project's hooks: what a human trusted is kept, and stays in force until a human says otherwise.

A snapshot holds fairlead.toml and every file of the project that its hooks name. Hooks run from these copies, so a
changed, broken or vanished file of the project opens nothing.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import msgspec

from ..agent_process import agent_around
from ..errors import FairleadError
from ..paths import atomic_write, state_folder
from ..runners.environment import leads_into
from .fallback_file import close_folder
from .programs import ProgramPin
from .regular_files import read_regular
from .repository import Repository, repositories_of
from .survey import FILE_LIMIT, Survey
from .survey_budget import Untrustworthy

TREES = 256
"""Work trees that are remembered of one project."""
VERSION = 2
"""Of the file trust.json. Version 1 kept digests only."""


class Snapshot(msgspec.Struct, frozen=True, omit_defaults=True):
    """A project's hooks as they were when a human trusted them."""

    digest: str
    file: str  # the SHA-256 of fairlead.toml
    files: dict[str, str] = {}  # path in the project, and its SHA-256
    folders: list[str] = []  # that hooks name as a whole
    launch: dict[str, list[str]] = {}  # the words that start each program, as the file names it
    outside: dict[str, list[ProgramPin]] = {}  # per hook, what it uses outside the project
    unpinned: bool = False
    at: float = 0.0
    signer: str | None = None  # who signed it, if it came with a signed trust file
    project: str | None = None  # which project that file is for


class TrustedProject(msgspec.Struct, omit_defaults=True):
    """All that is trusted of one project. Several snapshots are for several branches."""

    snapshots: list[Snapshot]
    repository: Repository | None = None
    inner: str = "."
    """Where in its work tree the project is."""
    trees: list[str] = []
    """Where the project is in other work trees of its repository: its policy holds there, whatever becomes of git."""
    forgotten: float = 0.0
    """When it was forgotten. What was signed before that does not come back."""
    order: int = 0
    """Counts what was decided, over all projects: the larger, the newer. Clocks are set back."""

    @property
    def newest(self) -> float:
        """When it was last decided what is trusted here: what was signed earlier counts for nothing."""
        return max(self.forgotten, *(snapshot.at for snapshot in self.snapshots), 0.0)

    def is_same(self, other: TrustedProject) -> bool:
        """Whether both are one project, in two work trees of its repository."""
        if self.repository is None or other.repository is None:
            return False
        return self.inner == other.inner and self.repository.is_same(other.repository)


class _Version(msgspec.Struct):
    version: int


class _TrustRecords(_Version):
    projects: dict[str, TrustedProject]


class Trust:
    """What a user trusts: projects, by the folder they are in.

    `accepts_signed`: signed trust files count. Nothing that runs under an agent accepts them, but for the daemon.
    """

    def __init__(self, folder: Path | None = None, *, accepts_signed: bool | None = None) -> None:
        self.folder = folder or state_folder()
        self._accepts_signed = accepts_signed
        self._file = self.folder / "trust.json"
        self._known: tuple[tuple[int, ...] | None, dict[str, TrustedProject]] = (None, {})

    @property
    def accepts_signed(self) -> bool:
        return agent_around() is None if self._accepts_signed is None else self._accepts_signed

    def project(self, root: Path) -> TrustedProject | None:
        """What is trusted of the project in this folder."""
        found = self.projects.get(str(root))
        if found is not None:
            self.check_folder(root)
        return found

    def pin(
        self,
        found: Survey,
        *,
        unpinned: bool = False,
        also: bool = False,
        signer: str | None = None,
        project: str | None = None,
        at: float | None = None,
    ) -> None:
        """Trust a project as it was surveyed, in place of whatever was trusted before, or beside it (`also`)."""
        if not unpinned:
            found.refuse_uncovered()
        if not found.launch:
            found.resolve()
        root = Path(found.root).resolve()
        with self._changing(root) as projects:
            snapshot = self._keep(found, unpinned, signer, project, time.time() if at is None else at)
            before = projects.get(str(root), TrustedProject([]))
            kept = [known for known in before.snapshots if also and known.digest != snapshot.digest]
            repository, inner = _repository_of(root)
            projects[str(root)] = TrustedProject(
                [*kept, snapshot], repository, inner, before.trees, order=_next_order(projects)
            )
            close_folder(self.folder, str(root))

    def _keep(self, found: Survey, unpinned: bool, signer: str | None, project: str | None, at: float) -> Snapshot:
        snapshot = Snapshot(
            found.digest, self._store("fairlead.toml", found.file),
            {path: self._store(path, content) for path, content in found.contents.items()},
            sorted(found.folders), found.launch, {seen.name: seen.outside for seen in found.hooks if seen.outside},
            unpinned, at, signer, project,
        )  # fmt: skip
        self._copy_folders(snapshot)
        return snapshot

    def add_tree(self, key: str, root: Path) -> None:
        """Remember that a project is also in this folder, which is in another work tree of its repository."""
        with self._changing(root) as projects:
            project = projects.get(key)
            if project is not None and str(root) not in project.trees:
                trees = [*project.trees, str(root)][-TREES:]
                projects[key] = msgspec.structs.replace(project, trees=trees)
                close_folder(self.folder, str(root))

    def record_repositories(self) -> None:
        """Remember the repositories of projects that had none when they were trusted: they may have work trees."""
        lacking = [key for key, p in self.projects.items() if p.snapshots and p.repository is None]
        found = {key: _repository_of(Path(key)) for key in lacking}
        for key, (repository, inner) in found.items():
            if repository is not None:
                with self._changing(Path(key)) as projects:
                    if (project := projects.get(key)) is not None:
                        projects[key] = msgspec.structs.replace(project, repository=repository, inner=inner)

    def check_folder(self, root: Path) -> None:
        """Raise if an agent or another user could write into the folder that holds what is trusted."""
        if leads_into(self.folder, root):
            raise Untrustworthy(f"{self.folder} lies in the project, where its agents can change it")
        if self.folder.is_dir() and self.folder.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise Untrustworthy(f"others may write to {self.folder}; chmod go-w it")

    @property
    def projects(self) -> Mapping[str, TrustedProject]:
        """All trusted projects, by their folders, and those that were forgotten."""
        return self._read()

    def forget(self, root: Path, signed: float = 0.0) -> bool:
        """Trust a project no longer, in all work trees of its repository. False if it was not trusted.

        `signed`: when a trust file was signed that lies there, accepted or not. It does not bring the policy back.
        """
        self.record_repositories()
        key = str(root) if str(root) in self.projects else str(root.resolve())
        with self._changing(root) as projects:
            known = projects.get(key, TrustedProject([]))
            same = {k: p for k, p in projects.items() if p.snapshots and (k == key or p.is_same(known))}
            at, order = max(time.time(), signed, *(p.newest for p in same.values()), 0.0), _next_order(projects)
            for other, project in same.items():
                projects[other] = msgspec.structs.replace(project, snapshots=[], forgotten=at, order=order)
            return bool(same)

    def forgotten(self, root: Path) -> float:
        """When the project in this folder was last forgotten, here or in another work tree; 0 if it never was."""
        here = TrustedProject([], *_repository_of(root))
        return max(
            (
                p.forgotten
                for k, p in self.projects.items()
                if k == str(root) or str(root) in p.trees or p.is_same(here)
            ),
            default=0.0,
        )

    # --- what is kept -----------------------------------------------------------------------

    def content(self, snapshot: Snapshot, live: Path) -> bytes:
        """The fairlead.toml of a snapshot. `live` is where it may be read again if the copy is damaged."""
        return self._stored("fairlead.toml", snapshot.file, live).read_bytes()

    def copies(self, snapshot: Snapshot, root: Path) -> dict[str, str]:
        """For each file and folder of the project that a hook names, the copy that is used in its place."""
        copies = {
            str(root / path): str(self._stored(path, digest, root / path)) for path, digest in snapshot.files.items()
        }
        self._copy_folders(snapshot)
        return copies | {str(root / path): str(self._folder(snapshot, path)) for path in snapshot.folders}

    def _store(self, path: str, content: bytes) -> str:
        """Store the content of a file, and return its digest."""
        digest = sha256(content).hexdigest()
        self._write_copy(self._place(path, digest), content)
        return digest

    def _place(self, path: str, digest: str) -> Path:
        return self.folder / "pinned" / digest / os.path.basename(path)

    def _stored(self, path: str, digest: str, live: Path) -> Path:
        """The copy of a file. One that was damaged is made again from the project, if that still has the content."""
        place = self._place(path, digest)
        for source in (place, live):
            try:
                content = read_regular(source, FILE_LIMIT + 1)
            except OSError:
                continue
            if sha256(content).hexdigest() == digest:
                self._write_copy(place, content)
                return place
        raise Untrustworthy(f"the trusted copy of {live} is damaged ({place}); look at the project: `fairlead trust`")

    def _write_copy(self, place: Path, content: bytes) -> None:
        try:
            if not place.is_file() or place.is_symlink() or place.read_bytes() != content:
                place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                atomic_write(place, content, 0o500)  # it may be a program
        except OSError as error:
            raise Untrustworthy(f"{place} cannot be written: {error.strerror}") from None

    def _folder(self, snapshot: Snapshot, path: str) -> Path:
        files = {name: digest for name, digest in snapshot.files.items() if name.startswith(f"{path}/")}
        digest = sha256(msgspec.json.encode(files, order="sorted")).hexdigest()
        return self._place(path, digest)

    def _copy_folders(self, snapshot: Snapshot) -> None:
        for path in snapshot.folders:
            folder = self._folder(snapshot, path)
            inner = [name for name in snapshot.files if name.startswith(f"{path}/")]
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name in inner:
                content = self._place(name, snapshot.files[name]).read_bytes()
                self._write_copy(folder / os.path.relpath(name, path), content)
            self._remove_others(folder, {os.path.relpath(name, path) for name in inner})

    def _remove_others(self, folder: Path, names: set[str]) -> None:
        """Remove what lies in the copy of a folder but was not in the folder."""
        for place, _, files in os.walk(folder):
            for name in files:
                if os.path.relpath(os.path.join(place, name), folder) not in names:
                    os.unlink(os.path.join(place, name))

    # --- the file ---------------------------------------------------------------------------

    def _read(self) -> dict[str, TrustedProject]:
        try:
            status = self._file.stat()
            stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
            if self._known[0] != stamp:
                found = self._decode(self._file.read_bytes())
                self._known = (stamp, found.projects)
            return dict(self._known[1])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError, UnicodeError, RecursionError) as error:
            problem = (
                f"{self._file} cannot be read ({error}); remove it and trust your projects anew: "
                "until you do, no policy of a project is in force"
            )
            raise FairleadError(problem) from None

    def _decode(self, content: bytes) -> _TrustRecords:
        """The projects in the file. The version is checked first: a file of a newer version must not be removed."""
        version = msgspec.json.decode(content, type=_Version).version
        if version > VERSION:
            raise FairleadError(
                f"{self._file} is of version {version}, and this fairlead knows {VERSION}: a newer fairlead wrote it; "
                "install that again: until you do, steps that guard are refused"
            )
        if version != VERSION:
            raise msgspec.DecodeError(f"its version is {version}, not {VERSION}")
        return msgspec.json.decode(content, type=_TrustRecords)

    @contextmanager
    def _changing(self, root: Path) -> Iterator[dict[str, TrustedProject]]:
        try:
            self.check_folder(root)
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with (self.folder / "trust.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                projects = self._read()
                yield projects
                encoded = msgspec.json.encode(_TrustRecords(VERSION, projects), order="sorted")
                atomic_write(self._file, msgspec.json.format(encoded))
        except OSError as error:
            raise FairleadError(f"{self.folder} cannot be written: {error.strerror}") from None
        except UnicodeError:
            raise FairleadError(f"{str(root)!r} is not UTF-8, so that it cannot be trusted") from None


def _repository_of(root: Path) -> tuple[Repository | None, str]:
    """The repository of a project now, and where in its work tree the project is."""
    found = next(iter(repositories_of(root)), None)
    return found, "." if found is None else str(root.relative_to(found.top))


def _next_order(projects: Mapping[str, TrustedProject]) -> int:
    return 1 + max((project.order for project in projects.values()), default=0)
