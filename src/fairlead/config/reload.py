"""Reloading: when a file changes, or on SIGHUP, its layer is read again and swapped in at once.

A layer with a mistake keeps its old hooks in force; the others go on without it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic

from ..engine.threads import threads
from ..errors import FairleadError
from ..redaction.logs import logger
from ..registry import Hooks
from .document import Mistake
from .layers import SYSTEM_FILE, Config, ConfigFile, find, load_usable, read, user_file
from .project import FILE_NAME
from .signed import TRUST_FILE
from .trust import Trust

RETRY = 5.0
"""Seconds until the reloader looks again for what a hook needs and this machine lacked."""
GIT = ".git"
"""Which says what work tree a folder is in, and so what is trusted there."""
POLL = 0.5
"""Seconds after which the reloader looks for changes that the file system did not report."""


class Reloader:
    """Keeps a `Hooks` in step with the files of a folder.

    The first reading raises `ConfigError` if the system's or the user's file has a mistake.
    `on_reload` is called after each reading with the mistakes that were found.
    """

    def __init__(
        self,
        hooks: Hooks,
        cwd: str | Path = ".",
        *,
        trust: Trust | None = None,
        environ: Mapping[str, str] | None = None,
        on_reload: Callable[[Sequence[Mistake]], None] | None = None,
    ) -> None:
        self._hooks = hooks
        self._cwd = Path(os.path.abspath(cwd))  # a link in it may lead elsewhere later
        self._trust = trust or Trust()
        self._on_reload = on_reload
        self._environ = environ
        self._reloading = asyncio.Lock()
        self._paths = [str(path) for path in self._files(())]
        before = self._look()  # what is saved while it is read is read again
        self._take(load_usable(self._cwd, trust=self._trust, environ=environ))
        self.seen = self._look() | before
        self.config.apply(hooks)

    def _take(self, config: Config) -> None:
        self.config = config
        self._read_at = monotonic()
        self._paths = [str(path) for path in self._files(config.layers)]

    async def reload(self) -> list[Mistake]:
        """Read all layers again; those without mistakes take effect. The mistakes of the others are returned."""
        async with self._reloading:
            return await self._reload()

    async def _reload(self) -> list[Mistake]:
        seen = self._look()  # before it is read: what is saved meanwhile is read again
        found = await threads.run(self._read)
        self.seen = seen
        mistakes = found.mistakes
        found = self._without(found, [layer for layer in found.layers if layer.document.mistakes])
        mistakes += [mistake for _, mistake in found.conflicts if mistake not in mistakes]
        found = self._without(found, [layer for layer, _ in found.conflicts])
        try:
            found.apply(self._hooks)
        except FairleadError as error:  # a name that a hook in code has
            mistakes.append(
                Mistake(str(self._cwd / FILE_NAME), 1, 1, "", f"the configuration stays as it was: {error}")
            )
        else:
            self._take(found)
            await self._hooks.close_removed()
        for mistake in mistakes:
            logger.error("%s", mistake)
        mistakes += [Mistake(str(self._cwd / FILE_NAME), 1, 1, "", line) for line in found.notices]
        if self._on_reload is not None:
            self._on_reload(mistakes)
        return mistakes

    def _read(self) -> Config:
        """All layers as they are now. Compiling their rules takes a while, so this runs on a thread."""
        return read(find(self._cwd, self._trust), self._trust, self.config, self._environ)

    def _without(self, config: Config, bad: Sequence[ConfigFile]) -> Config:
        """A configuration in which bad layers are what they were.

        Of a project they stay if they were nothing: a file that is not trusted runs nothing and is complained of, and
        a trusted policy that cannot be used denies.
        """
        if not bad:
            return config
        old = {layer.identity: layer for layer in self.config.layers if layer.trusted}
        layers: list[ConfigFile] = []
        for layer in config.layers:
            if layer not in bad or not layer.trusted:
                layers.append(layer)
            elif layer.identity in old or layer.is_snapshot:
                layers.append(old.get(layer.identity, layer))
        return Config(config.sources, layers, config.notices)

    # --- noticing ---------------------------------------------------------------------------

    async def look(self) -> None:
        """Reload if a file has changed, for a caller that does not watch."""
        if self._look() != self.seen or self._may_run_now():
            await self._reload_safely()

    def _may_run_now(self) -> bool:
        """Whether to look again for what was missing: what a hook or a target needs, or the name of a work tree."""
        lacking = self.config.unavailable or self.config.approvals.unavailable
        return bool(lacking or self.config.sources.claims) and monotonic() - self._read_at >= RETRY

    async def watch(self) -> None:
        """Reload whenever a file changes, until cancelled: at once with the package watchfiles, else after a moment."""
        while True:
            folders = self._folders()
            async for _ in _changes(folders):
                await self.look()
                if self._folders() != folders:
                    break

    async def _reload_safely(self) -> None:
        try:
            await self.reload()
        except Exception:
            logger.exception("the configuration could not be read again")

    def _files(self, layers: Sequence[ConfigFile]) -> set[Path]:
        """All files that the configuration is or could be made from."""
        real = self._cwd.resolve()
        around = {self._cwd, *self._cwd.parents, real, *real.parents}
        project = (folder / name for folder in around for name in (FILE_NAME, TRUST_FILE, GIT))
        named = (Path(path) for layer in layers for path in layer.live)
        return {SYSTEM_FILE, user_file(), self._trust.folder / "trust.json", *project, *named}

    def _look(self) -> dict[str, tuple[int | str, ...] | None]:
        """What there is of these files now, and where the folder is."""
        return {path: _stamp(path) for path in self._paths} | {str(self._cwd): (os.path.realpath(self._cwd),)}

    def _folders(self) -> set[str]:
        """The folders in which a change would show, links and all; where one is missing, the nearest that is there."""
        found: set[str] = set()
        for path in self._files(self.config.layers):
            for place in (path, path.resolve()):
                folder = next((parent for parent in place.parents if parent.is_dir()), None)
                if folder is not None:
                    found.add(str(folder))
        return found

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[Reloader]:
        """`async with Reloader(hooks).watching():` reloads on change and on SIGHUP within."""
        loop = asyncio.get_running_loop()
        hangups: set[asyncio.Task[None]] = set()

        def hang_up() -> None:
            task = loop.create_task(self._reload_safely())
            hangups.add(task)
            task.add_done_callback(hangups.discard)

        before = signal.getsignal(signal.SIGHUP)
        has_handler = False
        with contextlib.suppress(ValueError, NotImplementedError, RuntimeError):  # not the main thread
            loop.add_signal_handler(signal.SIGHUP, hang_up)
            has_handler = True
        task = loop.create_task(self.watch())
        try:
            yield self
        finally:
            if has_handler:
                loop.remove_signal_handler(signal.SIGHUP)
                signal.signal(signal.SIGHUP, before)
            task.cancel()
            await asyncio.wait([task, *hangups])


def _stamp(path: str) -> tuple[int | str, ...] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    if os.path.basename(path) == GIT and stat.S_ISDIR(status.st_mode):
        return status.st_dev, status.st_ino  # git writes to it all the time
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_mode


async def _changes(folders: set[str]) -> AsyncIterator[None]:
    """Yield when something may have changed in these folders, or after half a second."""
    yield  # for changes before the watch began
    try:
        from watchfiles import awatch
    except ImportError:
        while True:
            await asyncio.sleep(POLL)
            yield
    try:
        watching = awatch(
            *folders, recursive=False, watch_filter=None, step=50, rust_timeout=int(POLL * 1000), yield_on_timeout=True
        )
        async for _ in watching:
            yield
    except FileNotFoundError:
        return  # a folder went away meanwhile: look again which there are
