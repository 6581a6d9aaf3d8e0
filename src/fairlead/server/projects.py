"""The hooks of each project, loaded from its configuration for the variables of a request.

Requests from one folder share hooks only if they bring the same variables, so that no hook, worker or connection of
one caller ever has another's credentials.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, NamedTuple

from ..config.hook_entry import variables
from ..config.layers import documents, find
from ..config.reload import Reloader
from ..config.trust import Trust
from ..engine.threads import threads
from ..errors import FairleadError
from ..hosts.clis.opening import caller_scope
from ..journal.policy import policy_of
from ..redaction.logs import logger
from ..redaction.redactor import Scope, redact_text, within
from ..registry import Hooks
from ..runners.environment import PASSED
from .large import FairLock

LIMIT = 64
"""Projects in memory. Beyond that, the caller with the most loses the least recently used one."""
CHECK_INTERVAL = 0.5
"""Seconds between two checks whether a folder's files have changed."""
VARIABLES = 1000
"""Variables of a request that hooks may see. Redaction compares every text with each of them."""

Environment = Mapping[str, str | None]
VisibleVariables = tuple[tuple[str, str | None], ...]
ProjectKey = tuple[str, VisibleVariables]
"""A folder, and what its hooks see of a request's variables."""


class NeedsVariables(FairleadError):
    """The hooks of a folder use variables that the request does not name."""

    def __init__(self, names: set[str]) -> None:
        super().__init__(f"the hooks here need {', '.join(sorted(names))}; send them, or null for one that is not set")
        self.names = sorted(names)


class Project:
    """The hooks of one folder and set of variables. It reloads them when their files change."""

    def __init__(self, root: str, environ: dict[str, str], open_hooks: Callable[..., Hooks], trust: Trust) -> None:
        def apply(hooks: Hooks) -> None:
            self.reloader = Reloader(hooks, root, trust=trust, environ=environ)

        self.root = root
        self._environ = environ
        self._scope: tuple[Any, Scope] = (None, caller_scope(environ))
        with within(self._scope[1]):
            self.hooks = open_hooks(root, apply, variables=environ)
        self.checked = monotonic()
        self.busy = 0
        self.caller = ""  # the last one to use it
        self._names: tuple[Any, frozenset[str]] = (None, frozenset())

    def __enter__(self) -> None:
        """Mark the project as in use, so that it is not evicted."""
        self.busy += 1

    def __exit__(self, *_: object) -> None:
        self.busy -= 1

    @property
    def home(self) -> str:
        """The project's top folder. Sessions are the same in all of its subfolders."""
        return self.reloader.config.sources.root or os.path.realpath(self.root)

    @property
    def names(self) -> frozenset[str]:
        """The variables that the current hooks use. Computed once per configuration."""
        config = self.reloader.config
        if self._names[0] is not config:
            self._names = (config, frozenset(n for layer in config.layers for n in variables(layer.document.data)))
        return self._names[1]

    @property
    def scope(self) -> Scope:
        """What is redacted for the callers of this project, including the variables that they bring."""
        config = self.reloader.config
        if self._scope[0] is not config:
            self._scope = (config, caller_scope(self._environ, config.redact.values))
        return self._scope[1]

    @property
    def policy(self) -> str:
        return policy_of(self.hooks.table)[0].hex()


def _refuse_without(names: frozenset[str], env: Environment) -> None:
    missing = names - env.keys()
    if missing:
        raise NeedsVariables(set(missing))


def _visible(env: Environment, names: frozenset[str]) -> VisibleVariables:
    """What hooks see of a request's variables: those they use, and those all hooks get."""
    return tuple(sorted((name, env[name]) for name in env if name in names or name in PASSED or name.startswith("LC_")))


class FolderVariables(NamedTuple):
    """The variables that a folder's hooks use, when that was checked, and its files' state."""

    checked: float
    names: frozenset[str]
    seen: dict[ProjectKey, Any]


def _check_root(root: str) -> None:
    if "\0" in root or not os.path.isabs(root) or not os.path.isdir(root):
        raise FairleadError(f"root must be the absolute path of a folder, not {root!r}")


class Projects:
    """All projects of the daemon."""

    def __init__(self, open_hooks: Callable[..., Hooks], trust: Trust | None = None) -> None:
        self._open_hooks = open_hooks
        self._trust = trust or Trust()
        self._projects: OrderedDict[ProjectKey, Project] = OrderedDict()
        self._names: OrderedDict[str, FolderVariables] = OrderedDict()
        self._recent: dict[tuple[Any, ...], Project] = {}  # by folder and variables, exactly as in a recent request
        self._loading: dict[ProjectKey, asyncio.Lock] = {}
        self._lock = FairLock()

    def __len__(self) -> int:
        return len(self._projects)

    async def find(self, root: str, env: Environment, caller: str = "") -> Project:
        """The project of a folder and an environment.

        Raises `ConfigError` for mistakes in its files.
        """
        now = monotonic()
        exact = (root, *env.items())
        known = self._recent.get(exact)
        if known is not None and now - known.checked < CHECK_INTERVAL and known.names <= env.keys():
            known.caller = caller
            return known
        project = await self._find(root, env, now, caller)
        if len(self._recent) > LIMIT * 4:
            self._recent.clear()
        self._recent[exact] = project
        return project

    async def _find(self, root: str, env: Environment, now: float, caller: str) -> Project:
        known = self._names.get(root)
        if known is None or now - known.checked >= CHECK_INTERVAL:
            known = await self._find_names(root, known, now, caller)
        _refuse_without(known.names, env)
        key = (root, _visible(env, known.names))
        if len(key[1]) > VARIABLES:
            raise FairleadError(f"a request brings {VARIABLES} variables at most, not {len(key[1])}")
        if key not in self._projects:
            key = await self._unchanged(key, now) or key
        project = self._projects.get(key)
        if project is None:
            project = await self._load(key, caller)
        else:
            await self._reload_if_due(project, now)
        self._projects.move_to_end(key)
        project.caller = caller
        _refuse_without(project.names, env)  # it may just have reloaded its files
        return project

    async def _find_names(self, root: str, known: FolderVariables | None, now: float, caller: str) -> FolderVariables:
        """The variables that the folder's hooks use. Its files are read only if they have changed."""
        _check_root(root)
        projects = {key: project for key, project in self._projects.items() if key[0] == root}
        for project in projects.values():
            await self._reload_if_due(project, now, always=True)  # a later reload could bring other variables
        seen = {key: project.reloader.seen for key, project in projects.items()}
        if known is not None and seen and seen == known.seen:
            names = known.names
        else:
            async with self._lock.turn(caller):
                newer = self._names.get(root)
                if newer is not None and newer is not known and now - newer.checked < CHECK_INTERVAL:
                    return newer  # another request has just checked
                found = await threads.run(self._read_names, root)  # slow for a large file
            # The current hooks stay in force even if their file is gone, so their variables count, too.
            names = found.union(*(project.names for project in projects.values()))
        self._names[root] = known = FolderVariables(now, names, seen)
        self._names.move_to_end(root)
        while len(self._names) > LIMIT * 16:
            self._names.popitem(last=False)
        return known

    async def _reload_if_due(self, project: Project, now: float, *, always: bool = False) -> None:
        if always or now - project.checked >= CHECK_INTERVAL:
            project.checked = now
            with project, within(project.scope):
                await project.reloader.look()

    def _read_names(self, root: str) -> frozenset[str]:
        """The variables that the hooks of a folder use, from its files."""
        found = documents(find(root, self._trust), self._trust)
        return frozenset(name for document in found for name in variables(document.data))

    async def _unchanged(self, key: ProjectKey, now: float) -> ProjectKey | None:
        """The project whose current hooks see the same variables, although a changed file uses more.

        A change that has mistakes, or that the user has not trusted, is not in force: the old hooks are.
        """
        root, visible = key
        for known, project in reversed(list(self._projects.items())):
            if known[0] == root and set(known[1]) < set(visible):
                await self._reload_if_due(project, now)
                if known in self._projects and known[1] == _visible(dict(visible), project.names):
                    return known
        return None

    async def _load(self, key: ProjectKey, caller: str) -> Project:
        async with self._loading.setdefault(key, asyncio.Lock()):  # two requests at once share one project
            try:
                if key not in self._projects:
                    root, visible = key
                    environ = {name: value for name, value in visible if value is not None}
                    # On a thread, because compiling rules and finding programs is slow.
                    async with self._lock.turn(caller):
                        project = await threads.run(Project, root, environ, self._open_hooks, self._trust)
                    project.caller = caller
                    self._projects[key] = project
            finally:
                self._loading.pop(key, None)
        project = self._projects[key]
        with project:
            await self._make_room()
        return project

    async def _make_room(self) -> None:
        while len(self._projects) > LIMIT and (key := self._spare()) is not None:
            self._recent.clear()
            project = self._projects.pop(key)
            with within(project.scope):
                await project.hooks.aclose()

    def _spare(self) -> ProjectKey | None:
        """An idle project to evict, of the caller and the folder with the most projects."""
        owners = {key: (project.caller, project.root) for key, project in self._projects.items()}
        folders, callers = Counter(owners.values()), Counter(caller for caller, _ in owners.values())
        idle = (key for key, project in self._projects.items() if not project.busy)
        return max(idle, key=lambda key: (callers[owners[key][0]], folders[owners[key]]), default=None)

    async def reload(self) -> list[str]:
        """Reload all files now, and return the mistakes in them."""
        self._names.clear()
        self._recent.clear()
        found: list[str] = []
        for project in list(self._projects.values()):
            with within(project.scope):
                try:
                    found += [str(mistake) for mistake in await project.reloader.reload()]
                except FairleadError as error:
                    found.append(redact_text(str(error)))
        return found

    async def aclose(self) -> None:
        for project in self._projects.values():
            with within(project.scope):
                try:
                    await project.hooks.aclose()
                except Exception as error:
                    logger.warning("the hooks of %s could not be closed: %s", project.root, error)
        self._projects.clear()
