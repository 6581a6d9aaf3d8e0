"""The daemon's sessions: the state that hooks keep between the steps of one agent.

The daemon saves them when it ends and loads them when it starts, so that an idle daemon's end lifts no limit. The
folder in which an agent CLI's session began is saved at once, so that it survives a killed daemon.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from time import time
from typing import Any, NamedTuple

import msgspec

from ..hosts.clis.handler import CliSessionState
from ..lifecycle import Step
from ..paths import atomic_write
from ..redaction.logs import logger
from ..registry import Hooks
from ..session import Session, StoreDump
from .fair import FairTable

LIMIT = 10_000
"""Sessions in memory. Beyond that, the caller with the most sessions loses one: see `FairTable`."""
CLI = "cli: "
"""Stands for the folder in the key of an agent CLI's session, which is the same in all folders."""
LIFE = 86400.0
"""Seconds after which an unused session is forgotten."""


class SessionEntry(msgspec.Struct):
    """A session in memory, and when it was last used."""

    session: Session
    used: float
    memory: CliSessionState = msgspec.field(default_factory=CliSessionState)
    began: str | None = None


class SavedSession(msgspec.Struct):
    """A session as a line of the file."""

    root: str
    session_id: str
    state: Any
    store: StoreDump
    used: float
    memory: CliSessionState = msgspec.field(default_factory=CliSessionState)
    began: str | None = None
    caller: str = ""


class SessionKey(NamedTuple):
    """Identifies a session."""

    caller: str
    root: str
    session_id: str


class SessionTable:
    """All sessions of the daemon.

    Two callers never share a session, nor do two projects, whatever its id.

    `caller` is empty for the daemon's own user. Otherwise it names the user or the token.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._entries: FairTable[SessionKey, SessionEntry] = FairTable()
        self._home = Hooks()
        self._saving = threading.Lock()
        self._lines = 0
        self.unsaved: list[tuple[SessionKey, SessionEntry]] = []
        """Sessions of agent CLIs that `save_new` has not written yet."""
        self._load()

    def __len__(self) -> int:
        return len(self._entries)

    def of(
        self,
        caller: str,
        root: str,
        step: Step,
        hooks: Hooks,
        capabilities: Mapping[str, Any] | None,
        *,
        lenient: bool = False,
    ) -> Session:
        """The session of a step, ready for dispatch. All sessions of one id share state and store."""
        if step.session_id is None:
            known = Session(self._home)
        else:
            known = self._find(SessionKey(caller, root, step.session_id), root).session
        twin = known.clone()
        twin.hooks, twin.capabilities, twin.lenient = hooks, capabilities, lenient
        twin.agent, twin.host, twin.cwd = step.agent, step.host, step.cwd
        return twin

    def of_cli(self, caller: str, session_id: str, root: str) -> tuple[str, CliSessionState]:
        """The folder in which an agent CLI's session began, and its memory between two events.

        The folder stays: an agent that changes into another folder keeps its policy.
        """
        key = SessionKey(caller, CLI, session_id)
        entry = self._find(key, root)
        if entry.began is None:
            entry.began = root
            self.unsaved.append((key, entry))
        return entry.began, entry.memory

    def began(self, caller: str, session_id: str) -> str | None:
        """The folder in which an agent CLI's session began; None for an unknown session."""
        entry = self._entries.get(SessionKey(caller, CLI, session_id))
        return None if entry is None or time() - entry.used > LIFE else entry.began

    def _find(self, key: SessionKey, folder: str) -> SessionEntry:
        now = time()
        entry = self._entries.get(key)
        if entry is None or now - entry.used > LIFE:
            entry = SessionEntry(Session(self._home, key.session_id), now)
            self._entries.put(key, entry, key.caller, folder)
            self._entries.shrink(LIMIT, key.caller)
        else:
            self._entries.use(key)
        entry.used = now
        return entry

    def known(self, root: str | None = None) -> list[dict[str, Any]]:
        return [
            {"caller": key.caller or None, "root": key.root, "session_id": key.session_id, "used": entry.used}
            for key, entry in self._entries.items()
            if key.root != CLI and root in (None, key.root)
        ]

    def get(self, caller: str, root: str, session_id: str) -> Session | None:
        entry = self._entries.get(SessionKey(caller, root, session_id))
        return None if entry is None else entry.session

    def forget(self, caller: str, root: str, session_id: str) -> bool:
        return self._entries.pop(SessionKey(caller, root, session_id)) is not None

    # --- the file ---------------------------------------------------------------------------

    def save(self) -> None:
        """Save all sessions. One whose state is not JSON keeps only its counters."""
        with self._saving:
            self._save()

    def save_new(self) -> None:
        """Append the agent CLIs' sessions that have just begun.

        Of two lines about a session, the later wins.
        """
        with self._saving:
            unsaved, self.unsaved = self.unsaved, []
            if self._lines + len(unsaved) > 2 * LIMIT:  # a limit to the file's growth
                self._save()
                return
            try:
                descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                with os.fdopen(descriptor, "wb") as file:
                    file.writelines(b"\n" + _line(key, entry) for key, entry in unsaved)  # the last line may be cut off
            except OSError:
                self.unsaved += unsaved  # for the next try
                raise
            self._lines += len(unsaved)

    def _save(self) -> None:
        lines = [_line(key, entry) for key, entry in list(self._entries.items())]
        atomic_write(self._file, b"\n".join(lines))
        self._lines = len(lines)

    def _load(self) -> None:
        try:
            lines = self._file.read_bytes().splitlines()
        except FileNotFoundError:
            return
        except OSError as error:
            logger.error("%s cannot be read (%s): all sessions start empty", self._file, error)
            return
        self._lines = len(lines)
        for line in filter(None, lines):
            try:
                saved = msgspec.json.decode(line, type=SavedSession)
            except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
                logger.error("%s: a session cannot be read (%s) and starts empty", self._file, error)
                continue
            if time() - saved.used < LIFE:
                session = Session(self._home, saved.session_id, state=saved.state)
                session.store.load(saved.store)
                key = SessionKey(saved.caller, saved.root, saved.session_id)
                entry = SessionEntry(session, saved.used, saved.memory, saved.began)
                self._entries.put(key, entry, key.caller, saved.began or key.root)


def _line(key: SessionKey, entry: SessionEntry) -> bytes:
    saved = SavedSession(
        key.root, key.session_id, entry.session.state, entry.session.store.dump(), entry.used, entry.memory,
        entry.began, key.caller,
    )  # fmt: skip
    try:
        return msgspec.json.encode(saved)
    except (TypeError, ValueError, RecursionError, UnicodeError):
        saved.state = {}
        return msgspec.json.encode(saved)
