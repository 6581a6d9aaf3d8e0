"""The sessions of the daemon: what hooks keep between the steps of one agent, by the session's id.

They are written to a file when the daemon ends, and read when it starts, so that a limit is not lifted by its
having been idle.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from time import time
from typing import Any

import msgspec

from ..hosts.answering import Memory
from ..lifecycle import Step
from ..logs import logger
from ..registry import Hooks
from ..session import Session, StoreDump

LIMIT = 10_000
"""Sessions that are kept. The one that was not used for longest goes."""
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


class Sessions:
    """All sessions of the daemon. Two projects never share one, whatever its id."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._kept: OrderedDict[tuple[str, str], Kept] = OrderedDict()
        self._home = Hooks()
        self._load()

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, root: str, step: Step, hooks: Hooks, capabilities: Mapping[str, Any] | None) -> Session:
        """The session of a step, for dispatching to these hooks: its state and its store are the same every time."""
        known = Session(self._home) if step.session_id is None else self._find(root, step.session_id).session
        twin = known.twin()
        twin.hooks, twin.capabilities = hooks, capabilities
        twin.agent, twin.host, twin.cwd = step.agent, step.host, step.cwd
        return twin

    def of_cli(self, whose: str, session_id: str, root: str) -> tuple[str, Memory]:
        """Where an agent CLI's session began, and what is remembered of it between two of its moments.

        It stays there: an agent that goes elsewhere does not leave its policy behind.
        """
        kept = self._find(CLI + whose, session_id)
        kept.began = kept.began or root
        return kept.began, kept.memory

    def began(self, whose: str, session_id: str) -> str | None:
        """Where an agent CLI's session began, if it has."""
        kept = self._kept.get((CLI + whose, session_id))
        return None if kept is None or time() - kept.used > LIFE else kept.began

    def _find(self, root: str, session_id: str) -> Kept:
        key, now = (root, session_id), time()
        kept = self._kept.get(key)
        if kept is None or now - kept.used > LIFE:
            kept = self._kept[key] = Kept(Session(self._home, session_id), now)
            while len(self._kept) > LIMIT:
                self._kept.popitem(last=False)
        kept.used = now
        self._kept.move_to_end(key)
        return kept

    def known(self, root: str | None = None) -> list[dict[str, Any]]:
        return [
            {"root": key[0], "session_id": key[1], "used": kept.used}
            for key, kept in self._kept.items()
            if not key[0].startswith(CLI) and (root is None or key[0] == root)
        ]

    def get(self, root: str, session_id: str) -> Session | None:
        kept = self._kept.get((root, session_id))
        return None if kept is None else kept.session

    def forget(self, root: str, session_id: str) -> bool:
        return self._kept.pop((root, session_id), None) is not None

    # --- the file ---------------------------------------------------------------------------

    def save(self) -> None:
        """Write all sessions down. One whose state is no JSON keeps its counters."""
        encoder, lines = msgspec.json.Encoder(), []
        for (root, session_id), kept in self._kept.items():
            saved = Saved(
                root, session_id, kept.session.state, kept.session.store.dump(), kept.used, kept.memory, kept.began
            )
            try:
                lines.append(encoder.encode(saved))
            except (TypeError, ValueError, RecursionError, UnicodeError):
                saved.state = {}
                lines.append(encoder.encode(saved))
        new = self._file.with_suffix(".new")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(b"\n".join(lines))
        os.replace(new, self._file)

    def _load(self) -> None:
        try:
            lines = self._file.read_bytes().splitlines()
        except FileNotFoundError:
            return
        except OSError as error:
            logger.error("%s cannot be read (%s): sessions begin anew", self._file, error)
            return
        for line in lines:
            try:
                saved = msgspec.json.decode(line, type=Saved)
            except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
                logger.error("%s: a session cannot be read (%s) and begins anew", self._file, error)
                continue
            if time() - saved.used < LIFE:
                session = Session(self._home, saved.session_id, state=saved.state)
                session.store.load(saved.store)
                self._kept[saved.root, saved.session_id] = Kept(session, saved.used, saved.memory, saved.began)
