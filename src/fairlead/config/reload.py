"""Reloading: when a file changes, or on SIGHUP, its layer is read again and swapped in at once.

A layer with a mistake keeps its old hooks in force; the others go on without it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

from ..errors import FairleadError
from ..registry import Hooks
from .document import Mistake
from .layers import FILE_NAME, SYSTEM_FILE, Config, find, load, read, user_file
from .trust import Trust

_log = logging.getLogger("fairlead")


class Reloader:
    """Keeps a `Hooks` in step with the files of a folder. The first reading raises `ConfigError` if it must.

    `on_reload` is called after each reading with the mistakes that were found.
    """

    def __init__(
        self,
        hooks: Hooks,
        cwd: str | Path = ".",
        *,
        trust: Trust | None = None,
        on_reload: Callable[[Sequence[Mistake]], None] | None = None,
    ) -> None:
        self._hooks = hooks
        self._cwd = Path(cwd).resolve()
        self._trust = trust or Trust()
        self._on_reload = on_reload
        self.config: Config = load(self._cwd, trust=self._trust)
        self.config.apply(hooks)

    async def reload(self) -> list[Mistake]:
        """Read all layers again; those without mistakes take effect. The mistakes of the others are returned."""
        before = self.config
        found = read(find(self._cwd), self._trust, before)
        mistakes = found.mistakes
        if mistakes:
            bad = {layer.layer for layer in found.layers if layer.document.mistakes}
            old = {layer.layer: layer for layer in before.layers}
            kept = [old.get(layer.layer) if layer.layer in bad else layer for layer in found.layers]
            found = Config(found.sources, [layer for layer in kept if layer is not None])
        try:
            found.apply(self._hooks)
        except FairleadError as error:  # a name that a hook in code has
            _log.error("the configuration stays as it was: %s", error)
            mistakes.append(Mistake(str(self._cwd / FILE_NAME), 1, 1, "", str(error)))
        else:
            self.config = found
            await self._hooks.close_removed()
        for mistake in mistakes:
            _log.error("%s", mistake)
        if self._on_reload is not None:
            self._on_reload(mistakes)
        return mistakes

    async def watch(self) -> None:
        """Reload whenever a file changes, until cancelled. Needs the package watchfiles."""
        from watchfiles import awatch

        names = {FILE_NAME, "trust.json"}
        folders = {self._cwd, SYSTEM_FILE.parent, user_file().parent, self._trust.folder}
        folders |= {path.parent for _, path in self.config.sources}
        there = [folder for folder in folders if folder.is_dir()]
        async for changes in awatch(*there, recursive=False, step=50):
            if any(Path(path).name in names or path in self._named for _, path in changes):
                await self.reload()

    @property
    def _named(self) -> set[str]:
        """Files of the project whose content was pinned."""
        return {path for layer in self.config.layers if layer.survey for path in layer.survey.contents}

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[Reloader]:
        """`async with Reloader(hooks).watching():` reloads on change and on SIGHUP within."""
        loop = asyncio.get_running_loop()
        hangups: set[asyncio.Task[list[Mistake]]] = set()

        def hang_up() -> None:
            task = loop.create_task(self.reload())
            hangups.add(task)
            task.add_done_callback(hangups.discard)

        task = loop.create_task(self.watch())
        with contextlib.suppress(ValueError, NotImplementedError, RuntimeError):  # not the main thread
            loop.add_signal_handler(signal.SIGHUP, hang_up)
        try:
            yield self
        finally:
            with contextlib.suppress(ValueError, NotImplementedError, RuntimeError):
                loop.remove_signal_handler(signal.SIGHUP)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
