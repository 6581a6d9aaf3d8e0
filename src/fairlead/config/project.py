"""The projects around a folder, and which of their trusted snapshots are in force there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ..errors import FairleadError
from .document import Document
from .hook_entry import TrustedCopies
from .repository import Repository, claims_of, repositories_of
from .signed import accept
from .survey import Survey, survey
from .trust import Snapshot, Trust, TrustedProject

FILE_NAME = "fairlead.toml"
GONE = "is gone"


class ProjectSource(msgspec.Struct, frozen=True):
    """A project around a folder: its root, and the key of the trust in it."""

    root: Path
    key: str | None = None
    """The folder of the trusted project that this is: the same, or in another work tree. None if never trusted."""

    @property
    def path(self) -> Path:
        return self.root / FILE_NAME


def projects_around(folder: Path, trust: Trust) -> list[ProjectSource]:
    """The projects that hold in a folder, the outermost first: trusted ones, and files that are not trusted yet."""
    with suppress(FairleadError):  # where the state cannot be written, they are looked for again each time
        trust.record_repositories()
    trusted = {key: project for key, project in trust.projects.items() if project.snapshots}
    here = Path(os.path.realpath(folder))
    found: dict[Path, str] = {}
    for place in dict.fromkeys((folder, *folder.parents, here, *here.parents)):  # as it is called, and where it leads
        known = str(place) if str(place) in trusted else _newest(trusted, lambda p, at=str(place): at in p.trees)  # type: ignore[misc]
        if known is not None:
            found[place] = known
    for tree in repositories_of(here):
        for root, key in _of_repository(tree, trusted):
            if here.is_relative_to(root) and root not in found:
                found[root] = key
                trust.add_tree(key, root)
    innermost: dict[str, Path] = {}  # a work tree that lies in another one has the policy once, for itself
    for root, known in found.items():
        if len(root.parts) > len(innermost.get(known, Path()).parts):
            innermost[known] = root
    kept: dict[Path, str | None] = {root: known for root, known in found.items() if innermost[known] == root}
    for place in _untrusted_folders(here):
        trees = repositories_of(place) if place not in kept else []
        held = {root for tree in trees for root, key in _of_repository(tree, trusted) if key in innermost}
        if place not in kept and place not in held:  # a work tree around one that has the policy of both
            kept[place] = None
    return [ProjectSource(root, key) for root, key in sorted(kept.items(), key=lambda at: len(at[0].parts))]


def claims_around(folder: Path, trust: Trust, projects: Sequence[ProjectSource]) -> list[str]:
    """One line per trusted repository that git uses in a folder which the repository does not name as a work tree.

    Who made such a folder is not known, so that the policy's hooks do not run there. Nor may anything else.
    """
    claims = claims_of(Path(os.path.realpath(folder)))
    trusted = {key: project for key, project in trust.projects.items() if project.snapshots} if claims else {}
    held = {project.key for project in projects}
    return [
        f"{claim.top} says that it is a work tree of {claim.common}, which has a trusted policy but does not name it: "
        f"run `git worktree repair` in {claim.top}, or remove {claim.top}/.git"
        for claim in claims
        if any(
            p.repository is not None and p.repository.is_same(claim) and key not in held for key, p in trusted.items()
        )
    ]


def _of_repository(tree: Repository, trusted: Mapping[str, TrustedProject]) -> Iterator[tuple[Path, str]]:
    """The trusted projects of a repository: where each is in this work tree, and the newest trust in it."""
    ours = {key: p for key, p in trusted.items() if p.repository is not None and p.repository.is_same(tree)}
    for inner in {project.inner for project in ours.values()}:
        key = _newest(ours, lambda project, inner=inner: project.inner == inner)  # type: ignore[misc]
        if key is not None:
            yield Path(os.path.normpath(Path(tree.top) / inner)), key


def _newest(trusted: Mapping[str, TrustedProject], matches: Callable[[TrustedProject], bool]) -> str | None:
    keys = [key for key, project in trusted.items() if matches(project)]
    return max(keys, key=lambda key: (trusted[key].order, trusted[key].newest), default=None)


def _untrusted_folders(here: Path) -> list[Path]:
    """Folders with a file of their own, from here up: nothing that an agent puts in between hides one of them."""
    return [folder for folder in (here, *here.parents) if (folder / FILE_NAME).is_file()]


class ProjectPolicy:
    """The policy of one project: the snapshot that its file matches, or all trusted ones if it matches none."""

    def __init__(self, source: ProjectSource, trust: Trust) -> None:
        self.source = source
        self.root = source.root
        self.trusted = None if source.key is None else trust.project(Path(source.key))
        self.snapshots = list(self.trusted.snapshots) if self.trusted is not None else []
        self.document: Document | None = None  # as it is now, if there is one
        self.survey: Survey | None = None
        self.problem = ""  # why the project is not what was trusted
        self.details = ""
        if not source.path.is_file():
            self.problem = GONE
        else:
            self.document = Document(source.path)
            self._look(self.document)
        self._choose()
        self._other = self._other_repository() if self.snapshots else None

    def _look(self, document: Document) -> None:
        if document.mistakes:
            self.problem = "cannot be read"
            self.details = f" (line {document.mistakes[0].line}: {document.mistakes[0].problem})"
            return
        try:
            self.survey = survey(document, self.root)
        except (FairleadError, RecursionError, OSError, ValueError) as error:
            self.problem = "names files that cannot be trusted as they are"
            self.details = f" ({error})"

    def _choose(self) -> None:
        found = self.survey
        match = next((s for s in self.snapshots if found is not None and s.digest == found.digest), None)
        if match is not None:
            self.snapshots = [match]
        elif self.snapshots and not self.problem and found is not None:
            same = any(snapshot.file == found.document_digest for snapshot in self.snapshots)
            self.problem = f"{'names files that have' if same else 'has'} changed since it was trusted"
            self.details = _changes(found, self.snapshots[-1])

    def contents(self, trust: Trust) -> Iterator[tuple[Document, TrustedCopies | None]]:
        """Each fairlead.toml in force, with the copies that its hooks run; None for a file that was never trusted."""
        if not self.snapshots and self.document is not None:
            yield self.document, None
        for snapshot in self.snapshots:
            document = Document(self.source.path, trust.content(snapshot, self.source.path))
            paths = trust.copies(snapshot, self.root)
            yield (
                document,
                TrustedCopies(snapshot.digest, snapshot.at, self.root, paths, snapshot.launch, snapshot.outside),
            )

    @property
    def notice(self) -> str | None:
        """What the user must know if the policy is not the file that is there."""
        return self._stays_in_force(self.details, self._other)

    @property
    def note(self) -> str | None:
        """The same for an agent, which reads it with every denial: nothing of it comes from the file."""
        return self._stays_in_force("", self._other and "another one is there")

    def _stays_in_force(self, details: str, other: str | None) -> str | None:
        if not self.snapshots:
            return None
        root = str(self.root) if str(self.root).isprintable() and len(str(self.root)) < 500 else "the project"
        look = "put a file there and look at it" if self.problem == GONE else "look at what is there now"
        way_out = f"{look} with `fairlead trust` in {root}, or end the policy with `fairlead trust --forget`"
        if len(self.snapshots) > 1:
            way_out = f"all {len(self.snapshots)} that were trusted hold now: {way_out}"
        problems = [f"{root}/{FILE_NAME} {self.problem}{details}"] if self.problem else []
        problems += [f"{root} was trusted as another repository ({other})"] if other is not None else []
        if not problems:
            return None
        return f"{'; '.join(problems)}; the policy that was trusted stays in force: {way_out}"

    def _other_repository(self) -> str | None:
        before = self.trusted.repository if self.trusted is not None else None
        now: Repository | None = next(iter(repositories_of(self.root)), None)
        if before is None or now is None or not before.is_replaced_by(now):
            return None
        return f"then {before.origin or 'without an origin'}, now {now.origin or 'without an origin'}"


def _changes(found: Survey, snapshot: Snapshot) -> str:
    """Which files have changed, as far as that is known."""
    named = found.files.keys() | snapshot.files.keys()
    changed = sorted(path for path in named if found.files.get(path) != snapshot.files.get(path))
    return f" ({', '.join(changed[:5])})" if changed else ""


def project_policy(source: ProjectSource, trust: Trust, signers: Sequence[str]) -> ProjectPolicy:
    """Find the policy of a project. A file that one of the user's signers has signed since is trusted first."""
    held = ProjectPolicy(source, trust)
    differs = held.problem or not held.snapshots
    if signers and differs and held.survey is not None and trust.accepts_signed:
        known = held.trusted or TrustedProject([])
        forgotten = trust.forgotten(source.root)
        if accept(held.survey, trust, signers, msgspec.structs.replace(known, forgotten=forgotten)):
            return ProjectPolicy(ProjectSource(source.root, str(source.root)), trust)
    return held
