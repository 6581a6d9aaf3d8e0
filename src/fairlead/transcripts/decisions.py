"""What the journal knows of the sessions that transcripts tell of: which calls were decided on, and since when.

A call and its decision are matched by the call's id, where the CLI tells its hooks that id. Where it does not, they are
matched by session, tool and arguments, both as they are after redaction; and what is left by session, tool and time.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from ..hosts.host import a_dict, a_text
from ..journal.errors import JournalError
from ..journal.reading import Filter, Reader
from ..redaction import redact
from .transcript import Told

IMPORTED = "imported-"
"""How the ids of records begin that were made of a transcript: nothing was decided there."""
NEAR = 60.0
"""Seconds between a call and the decision on it, where only these tell that they belong together."""
SESSIONS = 256
"""Sessions whose decisions are remembered."""


class Decided(msgspec.Struct, eq=False):
    """One decision on a tool call."""

    at: float
    tool: str
    call_id: str | None
    args: dict[str, Any]
    control: str
    digest: bytes | None = None

    @property
    def refused(self) -> bool:
        return self.control in ("deny", "abort", "stop")

    def fits(self, digest: bytes) -> bool:
        if self.digest is None:
            self.digest = digest_of(self.args)
        return self.digest == digest


class Lost(NamedTuple):
    """A time from which the journal knows that it lacks records."""

    since: float
    until: float


def digest_of(args: dict[str, Any]) -> bytes:
    """What two calls have in common that have the same arguments, whatever secrets were taken out of them."""
    return sha256(msgspec.json.encode(redact({"args": args}), order="sorted", enc_hook=str)).digest()


class Session:
    """The decisions of one session that belong to no call yet."""

    def __init__(self, decisions: Iterable[Decided], began: float | None) -> None:
        self.left = dict.fromkeys(decisions)
        self.began = began
        """When a hook was first asked about anything in it; None if never."""
        self.tools = {decided.tool for decided in self.left}
        self._by_id = {decided.call_id: decided for decided in self.left if decided.call_id}

    def take_by_id(self, call_id: str) -> Decided | None:
        return self._taken(self._by_id.get(call_id))

    def take_by_args(self, tool: str, digest: bytes, at: float | None) -> Decided | None:
        return self._taken(_nearest((one for one in self.left if one.tool == tool and one.fits(digest)), at))

    def take_by_time(self, tool: str, at: float | None) -> Decided | None:
        found = None if at is None else _nearest((one for one in self.left if one.tool == tool), at)
        return self._taken(found) if found is not None and abs(found.at - (at or 0.0)) <= NEAR else None

    def _taken(self, found: Decided | None) -> Decided | None:
        if found is not None:
            del self.left[found]
            if found.call_id is not None:
                self._by_id.pop(found.call_id, None)
        return found


def _nearest(found: Iterable[Decided], at: float | None) -> Decided | None:
    return min(found, key=lambda one: abs(one.at - at) if at is not None else one.at, default=None)


class Decisions:
    """Journals, session by session. Without one, nothing was ever decided."""

    def __init__(self, *readers: Reader) -> None:
        self._readers = readers
        self._known: OrderedDict[str, Session] = OrderedDict()
        self.exists = bool(readers)
        self.began: float | None = None
        """When the first decision was made that is still there."""
        self.pruned = False
        self.lost: list[Lost] = []
        for reader in readers:
            self._survey(reader)

    def _survey(self, reader: Reader) -> None:
        first = _rows(reader, f"SELECT at FROM records WHERE kind = 'decision' AND {_MADE} ORDER BY at LIMIT 1", [])  # noqa: S608
        if first:
            self.began = min(first[0][0] / 1e9, self.began or first[0][0] / 1e9)
        ((oldest,),) = _rows(reader, "SELECT min(seq) FROM records", [])
        self.pruned = self.pruned or (oldest is not None and oldest > 1)
        for at, body in _rows(reader, "SELECT at, body FROM records WHERE kind = 'note' AND length(body) > 0", []):
            try:
                note = msgspec.json.decode(body, type=dict[str, Any])
            except (msgspec.MsgspecError, UnicodeError, TypeError):
                raise JournalError(f"a note in {reader.path} is damaged; run `fairlead verify`") from None
            if note.get("note") in ("crashed", "lost"):
                self.lost.append(self._lost(reader, note, at / 1e9))

    def _lost(self, reader: Reader, note: dict[str, Any], until: float) -> Lost:
        """From the last record of a writer that was killed until that was noticed."""
        query = "SELECT max(at) FROM records WHERE id GLOB ? AND kind = 'decision'"
        ((last,),) = _rows(reader, query, [f"{note.get('writer')}-*"])
        return Lost(until - NEAR if last is None else last / 1e9, until)

    def of(self, told: Told) -> list[Session]:
        """The session of a moment, by whichever id the CLI told its hooks.

        Which CLI that was does not matter: some run the hooks that were installed for another.
        """
        agent = told.agent
        ids = (told.session_id, agent.id, agent.parent) if agent else (told.session_id,)
        return [self._session(known) for known in dict.fromkeys(ids) if known]

    def _session(self, session_id: str) -> Session:
        if session_id not in self._known:
            self._known[session_id] = self._read(session_id)
            if len(self._known) > SESSIONS:
                self._known.popitem(last=False)
        self._known.move_to_end(session_id)
        return self._known[session_id]

    def _read(self, session_id: str) -> Session:
        which = Filter(event="before_tool", session=session_id, notes=False)
        began: list[float] = []
        made: list[Decided] = []
        for reader in self._readers:
            query = f"SELECT min(at) FROM records WHERE session = ? AND {_MADE}"  # noqa: S608
            ((first,),) = _rows(reader, query, [session_id])
            if first is not None:
                began.append(first / 1e9)
                records = (record for record in reader.records(which) if not record.id.startswith(IMPORTED))
                made += [_decided(record.body, record.at) for record in records]
        return Session(made, min(began, default=None))

    def is_there(self, name: str) -> bool:
        """Whether there is a record of this id."""
        return any(_rows(reader, "SELECT 1 FROM records WHERE id = ?", [name]) for reader in self._readers)

    def has(self, told: Told) -> bool:
        """Whether a hook was asked about such a moment of the session."""
        query = f"SELECT 1 FROM records WHERE session = ? AND event = ? AND {_MADE} LIMIT 1"  # noqa: S608
        return any(_rows(reader, query, [told.session_id, told.event]) for reader in self._readers)


def _rows(reader: Reader, query: str, values: list[Any]) -> list[Any]:
    try:
        return reader.db.execute(query, values).fetchall()
    except sqlite3.Error as error:
        raise JournalError(f"the journal {reader.path} cannot be read: {error}; run `fairlead verify`") from None


_MADE = f"id NOT GLOB '{IMPORTED}*'"


def _decided(body: dict[str, Any], at: float) -> Decided:
    step = a_dict(body.get("step"))
    return Decided(
        at, str(step.get("tool")).casefold(), a_text(step.get("call_id")), a_dict(step.get("args")),
        str(body.get("effect") or body.get("control")),
    )  # fmt: skip
