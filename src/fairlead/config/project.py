"""The projects around a folder, and which of their trusted snapshots are in force there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from ..errors import FairleadError
from .document import Document
from .reading import Copies
from .repository import Repository, repositories_of
from .signed import accept
from .survey import Survey, survey
from .trust import Snapshot, Trust

FILE_NAME = "fairlead.toml"
_WAY_OUT = "`fairlead trust` in {root} looks at what is there now, `fairlead trust --forget` there ends the old policy"


class ProjectSource(msgspec.Struct, frozen=True):
    """A project around a folder: where it is, and as which trusted projects it counts."""

    root: Path
    keys: tuple[str, ...] = ()
    """Folders of trusted projects: this one, or other work trees of the same repository. Empty if never trusted."""

    @property
    def path(self) -> Path:
        return self.root / FILE_NAME


def projects_around(here: Path, trust: Trust) -> list[ProjectSource]:
    """The projects that hold in a folder, the outermost first: trusted ones, and files that are not trusted yet."""
    trusted = trust.projects
    found = {folder: [str(folder)] for folder in (here, *here.parents) if str(folder) in trusted}
    for tree in repositories_of(here):
        for key, project in trusted.items():
            root = Path(os.path.normpath(Path(tree.top) / project.inner))
            if project.repository is None or project.repository.common != tree.common or str(root) == key:
                continue
            if here.is_relative_to(root):
                # A work tree that lies in another one of its repository has the policy once, for itself.
                found = {folder: keys for folder, keys in found.items() if keys != [key] or folder == root}
                found.setdefault(root, []).append(key)
    for folder in _untrusted_folders(here):
        found.setdefault(folder, [])
    return [
        ProjectSource(folder, tuple(keys)) for folder, keys in sorted(found.items(), key=lambda at: len(at[0].parts))
    ]


def _untrusted_folders(here: Path) -> list[Path]:
    """Folders with a file of their own, from here up to the top of the repository; without one, the nearest."""
    tree = next(iter(repositories_of(here)), None)
    above = [folder for folder in (here, *here.parents) if tree is None or folder.is_relative_to(tree.top)]
    found = [folder for folder in above if (folder / FILE_NAME).is_file()]
    return found if tree is not None else found[:1]


class InForce:
    """What holds of one project: the snapshot that its file matches, or all that were trusted if it matches none."""

    def __init__(self, source: ProjectSource, trust: Trust) -> None:
        self.source = source
        self.root = source.root
        self.trusted_as = [found for key in source.keys if (found := trust.project(Path(key))) is not None]
        self.document: Document | None = None  # as it is now, if there is one
        self.survey: Survey | None = None
        self.problem = ""  # why the file is not what was trusted
        if source.path.is_file():
            self.document = Document(source.path)
            self._look(self.document)
        elif self.trusted_as:
            self.problem = "is gone"
        self._choose()

    def _look(self, document: Document) -> None:
        if document.mistakes:
            first = document.mistakes[0]
            self.problem = f"cannot be read (line {first.line}: {first.problem})"
            return
        try:
            self.survey = survey(document, self.root)
        except (FairleadError, RecursionError) as error:
            self.problem = f"cannot be trusted as it is ({error})"

    def _choose(self) -> None:
        known = {snapshot.digest: snapshot for project in self.trusted_as for snapshot in project.snapshots}
        match = known.get(self.survey.digest) if self.survey is not None else None
        self.snapshots: list[Snapshot] = [match] if match is not None else list(known.values())
        if self.snapshots and match is None and not self.problem:
            self.problem = "has changed since it was trusted"

    def contents(self, trust: Trust) -> Iterator[tuple[Document, Copies | None]]:
        """Each fairlead.toml that holds, with the copies that its hooks run; of a file never trusted, what is there."""
        if not self.snapshots and self.document is not None:
            yield self.document, None
        for snapshot in self.snapshots:
            document = Document(self.source.path, trust.content(snapshot, self.source.path))
            paths = trust.copies(snapshot, self.root)
            yield document, Copies(snapshot.digest, snapshot.at, self.root, paths, snapshot.launch, snapshot.outside)

    @property
    def notice(self) -> str | None:
        """What a user must know of a policy that is not the file that is there."""
        if not self.snapshots:
            return None
        way_out = _WAY_OUT.format(root=self.root)
        if self.problem:
            return f"{self.source.path} {self.problem}; the policy that was trusted stays in force: {way_out}"
        if (other := self._other_repository()) is not None:
            return f"{self.root} was trusted as another repository ({other}); its policy stays in force: {way_out}"
        return None

    def _other_repository(self) -> str | None:
        before = next((p.repository for p in self.trusted_as if p.repository is not None), None)
        now: Repository | None = next(iter(repositories_of(self.root)), None)
        if before is None or now is None or before.common != now.common or not before.is_other(now):
            return None
        return f"then {before.origin or 'without an origin'}, now {now.origin or 'without an origin'}"


def in_force(source: ProjectSource, trust: Trust, signers: Sequence[str]) -> InForce:
    """What holds of a project. A file that one of the user's signers has signed since is trusted first."""
    held = InForce(source, trust)
    differs = held.problem or not held.snapshots
    if signers and differs and held.survey is not None and accept(held.survey, trust, signers):
        return InForce(ProjectSource(source.root, (str(source.root),)), trust)
    return held
