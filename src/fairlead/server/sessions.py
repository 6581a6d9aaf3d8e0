"""The sessions of the daemon: what hooks keep between the steps of one agent, by the session's id.

They are written to a file when the daemon ends, and read when it starts, so that a limit is not lifted by its
having been idle. Where an agent CLI's session began is written at once, so that it holds if the daemon is killed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from time import time
from typing import Any, NamedTuple

import msgspec

from ..hosts.answering import Memory
from ..lifecycle import Step
from ..logs import logger
from ..registry import Hooks
from ..session import Session, StoreDump
from .fair import FairTable

LIMIT = 10_000
"""Sessions that are kept. Beyond that, the caller with the most loses one: see `FairTable`."""
CLI = "cli: "
"""In the place of a folder: what is remembered of an agent CLI's session, whichever folder that is in."""
LIFE = 86400.0
"""Seconds after which a session that nobody used is forgotten."""


class Kept(msgspec.Struct):
    """A session, and when it was last used."""

    session: Session
    used: float
    memory: Memory = msgspec.field(default_factory=Memory)
    began: str | None = None


class Saved(msgspec.Struct):
    """A session in the file."""

    root: str
    session_id: str
    state: Any
    store: StoreDump
    used: float
    memory: Memory = msgspec.field(default_factory=Memory)
    began: str | None = None
    caller: str = ""


class Key(NamedTuple):
    """Which session it is."""

    caller: str
    root: str
    session_id: str


class Sessions:
    """All sessions of the daemon. Two callers never share one, nor do two projects, whatever its id.

    A caller is the empty text for the daemon's own user, and says in all other cases which user or token it is.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._kept: FairTable[Key, Kept] = FairTable()
        self._home = Hooks()
        self._saving = threading.Lock()
        self._lines = 0
        self.begun: list[tuple[Key, Kept]] = []
        """Sessions of agent CLIs that `save_begun` has not written yet."""
        self._load()

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, caller: str, root: str, step: Step, hooks: Hooks, capabilities: Mapping[str, Any] | None) -> Session:
        """The session of a step, for dispatching to these hooks: its state and its store are the same every time."""
        if step.session_id is None:
            known = Session(self._home)
        else:
            known = self._find(Key(caller, root, step.session_id), root).session
        twin = known.twin()
        twin.hooks, twin.capabilities = hooks, capabilities
        twin.agent, twin.host, twin.cwd = step.agent, step.host, step.cwd
        return twin

    def of_cli(self, caller: str, session_id: str, root: str) -> tuple[str, Memory]:
        """Where an agent CLI's session began, and what is remembered of it between two of its moments.

        It stays there: an agent that goes elsewhere does not leave its policy behind.
        """
        key = Key(caller, CLI, session_id)
        kept = self._find(key, root)
        if kept.began is None:
            kept.began = root
            self.begun.append((key, kept))
        return kept.began, kept.memory

    def began(self, caller: str, session_id: str) -> str | None:
        """Where an agent CLI's session began, if it has."""
        kept = self._kept.get(Key(caller, CLI, session_id))
        return None if kept is None or time() - kept.used > LIFE else kept.began

    def _find(self, key: Key, folder: str) -> Kept:
        now = time()
        kept = self._kept.get(key)
        if kept is None or now - kept.used > LIFE:
            kept = Kept(Session(self._home, key.session_id), now)
            self._kept.put(key, kept, key.caller, folder)
            self._kept.shrink(LIMIT, key.caller)
        else:
            self._kept.use(key)
        kept.used = now
        return kept

    def known(self, root: str | None = None) -> list[dict[str, Any]]:
        return [
            {"caller": key.caller or None, "root": key.root, "session_id": key.session_id, "used": kept.used}
            for key, kept in self._kept.items()
            if key.root != CLI and root in (None, key.root)
        ]

    def get(self, caller: str, root: str, session_id: str) -> Session | None:
        kept = self._kept.get(Key(caller, root, session_id))
        return None if kept is None else kept.session

    def forget(self, caller: str, root: str, session_id: str) -> bool:
        return self._kept.pop(Key(caller, root, session_id)) is not None

    # --- the file ---------------------------------------------------------------------------

    def save(self) -> None:
        """Write all sessions down. One whose state is no JSON keeps its counters."""
        with self._saving:
            self._save()

    def save_begun(self) -> None:
        """Add the sessions of agent CLIs that have just begun to the file. Of two lines about one, the later counts."""
        with self._saving:
            begun, self.begun = self.begun, []
            if self._lines + len(begun) > 2 * LIMIT:  # it does not grow without end
                self._save()
                return
            try:
                descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                with os.fdopen(descriptor, "wb") as file:
                    file.writelines(b"\n" + _line(key, kept) for key, kept in begun)  # the one before may be cut short
            except OSError:
                self.begun += begun  # for the next try
                raise
            self._lines += len(begun)

    def _save(self) -> None:
        lines = [_line(key, kept) for key, kept in list(self._kept.items())]
        new = self._file.with_suffix(".new")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(b"\n".join(lines))
        os.replace(new, self._file)
        self._lines = len(lines)

    def _load(self) -> None:
        try:
            lines = self._file.read_bytes().splitlines()
        except FileNotFoundError:
            return
        except OSError as error:
            logger.error("%s cannot be read (%s): sessions begin anew", self._file, error)
            return
        self._lines = len(lines)
        for line in filter(None, lines):
            try:
                saved = msgspec.json.decode(line, type=Saved)
            except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
                logger.error("%s: a session cannot be read (%s) and begins anew", self._file, error)
                continue
            if time() - saved.used < LIFE:
                session = Session(self._home, saved.session_id, state=saved.state)
                session.store.load(saved.store)
                key = Key(saved.caller, saved.root, saved.session_id)
                kept = Kept(session, saved.used, saved.memory, saved.began)
                self._kept.put(key, kept, key.caller, saved.began or key.root)


def _line(key: Key, kept: Kept) -> bytes:
    saved = Saved(
        key.root, key.session_id, kept.session.state, kept.session.store.dump(), kept.used, kept.memory, kept.began,
        key.caller,
    )  # fmt: skip
    try:
        return msgspec.json.encode(saved)
    except (TypeError, ValueError, RecursionError, UnicodeError):
        saved.state = {}
        return msgspec.json.encode(saved)
