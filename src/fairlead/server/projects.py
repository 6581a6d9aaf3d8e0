"""Tables per project: each folder's configuration, with what a request lets its hooks see of its environment.

Requests from one folder share a table only if they bring the same variables, so that no hook, worker or connection of
one caller ever has another's credentials.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, NamedTuple

from ..config.layers import documents, find
from ..config.reading import variables
from ..config.reload import Reloader
from ..config.trust import Trust
from ..errors import FairleadError
from ..journal.policy import policy_of
from ..logs import logger
from ..redaction import Scope, redact_text, within
from ..registry import Hooks
from ..runners.surroundings import PASSED
from ..threads import threads
from .large import Turns

LIMIT = 64
"""Tables that are kept. Beyond that, the caller with the most loses the one that was not used for longest."""
LOOK = 0.5
"""Seconds between looks at a folder's files."""
VARIABLES = 1000
"""Variables that a request may bring to hooks. All that is redacted for it is compared with each of them."""

Environment = Mapping[str, str | None]
Key = tuple[tuple[str, str | None], ...]


class NeedsVariables(FairleadError):
    """The hooks of a folder name variables that the request does not."""

    def __init__(self, names: set[str]) -> None:
        super().__init__(f"the hooks here need {', '.join(sorted(names))}; send them, or null for one that is not set")
        self.names = sorted(names)


class Project:
    """One table, and what keeps it in step with its files."""

    def __init__(self, root: str, environ: dict[str, str], make_hooks: Callable[[], Hooks], trust: Trust) -> None:
        self.root = root
        self.hooks = make_hooks()
        self.hooks.root, self.hooks.variables = os.path.realpath(root), dict(environ)
        self._secrets = {name: value for name, value in environ.items() if name not in PASSED}
        self._scope: tuple[Any, Scope] = (None, Scope(environ=self._secrets))
        with within(self._scope[1]):
            self.reloader = Reloader(self.hooks, root, trust=trust, environ=environ)
        self.looked = monotonic()
        self.busy = 0
        self.caller = ""  # who used it last
        self._names: tuple[Any, frozenset[str]] = (None, frozenset())

    def __enter__(self) -> None:
        """While a table is used, it does not make room for another."""
        self.busy += 1

    def __exit__(self, *_: object) -> None:
        self.busy -= 1

    @property
    def home(self) -> str:
        """The folder of the project, whichever of its folders was named: its sessions are the same in all of them."""
        return self.reloader.config.sources.root or os.path.realpath(self.root)

    @property
    def names(self) -> frozenset[str]:
        """The variables that the hooks in force name. Worked out once for each configuration."""
        config = self.reloader.config
        if self._names[0] is not config:
            self._names = (config, frozenset(n for layer in config.layers for n in variables(layer.document.data)))
        return self._names[1]

    @property
    def scope(self) -> Scope:
        """What is redacted for those who use this table: also the variables that they bring."""
        config = self.reloader.config
        if self._scope[0] is not config:
            self._scope = (config, Scope(values=config.redact.values, environ=self._secrets))
        return self._scope[1]

    @property
    def policy(self) -> str:
        return policy_of(self.hooks.table)[0].hex()


def _refuse_without(names: frozenset[str], env: Environment) -> None:
    missing = names - env.keys()
    if missing:
        raise NeedsVariables(set(missing))


def _visible(env: Environment, names: frozenset[str]) -> Key:
    """What hooks see of a request's variables: those that they name, and those that every hook gets."""
    return tuple(sorted((name, env[name]) for name in env if name in names or name in PASSED or name.startswith("LC_")))


class Named(NamedTuple):
    """The variables that the hooks of a folder name; when that was looked at, and what its tables had seen then."""

    looked: float
    names: frozenset[str]
    seen: dict[tuple[str, Key], Any]


def _check(root: str) -> None:
    if "\0" in root or not os.path.isabs(root) or not os.path.isdir(root):
        raise FairleadError(f"root must be the absolute path of a folder, not {root!r}")


class Projects:
    """All tables of the daemon."""

    def __init__(self, make_hooks: Callable[[], Hooks], trust: Trust | None = None) -> None:
        self._make_hooks = make_hooks
        self._trust = trust or Trust()
        self._tables: OrderedDict[tuple[str, Key], Project] = OrderedDict()
        self._names: OrderedDict[str, Named] = OrderedDict()
        self._asked: dict[tuple[Any, ...], Project] = {}  # just as it was asked for, a moment ago
        self._loading: dict[tuple[str, Key], asyncio.Lock] = {}
        self._turns = Turns()

    def __len__(self) -> int:
        return len(self._tables)

    async def find(self, root: str, env: Environment, caller: str = "") -> Project:
        """The table for a folder and an environment. Raises `ConfigError` if its files cannot be used as they are."""
        now = monotonic()
        asked = (root, *env.items())
        known = self._asked.get(asked)
        if known is not None and now - known.looked < LOOK and known.names <= env.keys():
            known.caller = caller
            return known
        project = await self._find(root, env, now, caller)
        if len(self._asked) > LIMIT * 4:
            self._asked.clear()
        self._asked[asked] = project
        return project

    async def _find(self, root: str, env: Environment, now: float, caller: str) -> Project:
        known = self._names.get(root)
        if known is None or now - known.looked >= LOOK:
            known = await self._find_names(root, known, now, caller)
        named = known.names
        _refuse_without(named, env)
        key = (root, _visible(env, named))
        if len(key[1]) > VARIABLES:
            raise FairleadError(f"a request brings {VARIABLES} variables at most, not {len(key[1])}")
        if key not in self._tables:
            key = await self._unchanged(key, now) or key
        project = self._tables.get(key)
        if project is None:
            project = await self._load(key, caller)
        else:
            await self._look(project, now)
        self._tables.move_to_end(key)
        project.caller = caller
        _refuse_without(project.names, env)  # it may have read its files just now
        return project

    async def _find_names(self, root: str, known: Named | None, now: float, caller: str) -> Named:
        """The variables that hooks name there. As long as nothing has changed, that needs no reading."""
        _check(root)
        tables = {key: table for key, table in self._tables.items() if key[0] == root}
        for table in tables.values():
            await self._look(table, now, always=True)  # or one that is looked at later has hooks that name others
        seen = {key: table.reloader.seen for key, table in tables.items()}
        if known is not None and seen and seen == known.seen:
            names = known.names
        else:
            async with self._turns.turn(caller):
                newer = self._names.get(root)
                if newer is not None and newer is not known and now - newer.looked < LOOK:
                    return newer  # another request has looked meanwhile
                found = await threads.run(self._named, root)  # of a large file, that takes long
            # Also those of hooks in force, whatever has become of their file since.
            names = found.union(*(table.names for table in tables.values()))
        self._names[root] = known = Named(now, names, seen)
        self._names.move_to_end(root)
        while len(self._names) > LIMIT * 16:
            self._names.popitem(last=False)
        return known

    async def _look(self, project: Project, now: float, *, always: bool = False) -> None:
        if always or now - project.looked >= LOOK:
            project.looked = now
            with project, within(project.scope):
                await project.reloader.look()

    def _named(self, root: str) -> frozenset[str]:
        """The variables that the hooks of a folder name."""
        found = documents(find(root, self._trust), self._trust)
        return frozenset(name for document in found for name in variables(document.data))

    async def _unchanged(self, key: tuple[str, Key], now: float) -> tuple[str, Key] | None:
        """The table whose hooks in force see just the same variables, whatever else a change of a file names.

        A change that is broken, or that no human has trusted, has not taken effect: what was there stays in force.
        """
        root, given = key
        for known, project in reversed(list(self._tables.items())):
            if known[0] == root and set(known[1]) < set(given):
                await self._look(project, now)
                if known in self._tables and known[1] == _visible(dict(given), project.names):
                    return known
        return None

    async def _load(self, key: tuple[str, Key], caller: str) -> Project:
        async with self._loading.setdefault(key, asyncio.Lock()):  # two requests at once need one table
            try:
                if key not in self._tables:
                    root, given = key
                    environ = {name: value for name, value in given if value is not None}
                    # On a thread, because compiling rules and looking for programs takes a while.
                    async with self._turns.turn(caller):
                        project = await threads.run(Project, root, environ, self._make_hooks, self._trust)
                    project.caller = caller
                    self._tables[key] = project
            finally:
                self._loading.pop(key, None)
        project = self._tables[key]
        with project:
            await self._make_room()
        return project

    async def _make_room(self) -> None:
        while len(self._tables) > LIMIT and (key := self._spare()) is not None:
            self._asked.clear()
            project = self._tables.pop(key)
            with within(project.scope):
                await project.hooks.aclose()

    def _spare(self) -> tuple[str, Key] | None:
        """An idle table: of the caller with the most tables, and of its folder with the most, the oldest."""
        whose = {key: (project.caller, project.root) for key, project in self._tables.items()}
        folders, callers = Counter(whose.values()), Counter(caller for caller, _ in whose.values())
        idle = (key for key, project in self._tables.items() if not project.busy)
        return max(idle, key=lambda key: (callers[whose[key][0]], folders[whose[key]]), default=None)

    async def reload(self) -> list[str]:
        """Read all files again, now. The mistakes that were found are returned."""
        self._names.clear()
        self._asked.clear()
        found: list[str] = []
        for project in list(self._tables.values()):
            with within(project.scope):
                try:
                    found += [str(mistake) for mistake in await project.reloader.reload()]
                except FairleadError as error:
                    found.append(redact_text(str(error)))
        return found

    async def aclose(self) -> None:
        for project in self._tables.values():
            with within(project.scope):
                try:
                    await project.hooks.aclose()
                except Exception as error:
                    logger.warning("the hooks of %s did not end well: %s", project.root, error)
        self._tables.clear()
