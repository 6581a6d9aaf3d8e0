"""Finds the decisions in the journal that belong to the calls of a transcript.

A call and its decision are matched by the call's id, if hooks receive that id. Otherwise they are matched by session,
tool and redacted arguments. What is left is matched by session, tool and time.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from ....journal.errors import JournalError
from ....journal.reading import Filter, Reader
from ....redaction.redactor import redact
from ..mapping import a_dict, a_text
from .transcript import TranscriptEntry

IMPORTED = "imported-"
"""The prefix of the ids of imported records, which are no decisions."""
NEAR = 60.0
"""Seconds between a call and its decision, at most, where they are matched by time."""
SESSIONS = 256
"""Sessions whose decisions are kept in memory."""


class CallDecision(msgspec.Struct, eq=False):
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


class LostSpan(NamedTuple):
    """A time span of which the journal has lost records."""

    since: float
    until: float


def digest_of(args: dict[str, Any]) -> bytes:
    """A digest of arguments after redaction. Equal arguments have equal digests."""
    return sha256(msgspec.json.encode(redact({"args": args}), order="sorted", enc_hook=str)).digest()


class SessionDecisions:
    """The decisions of one session that no call has been matched with."""

    def __init__(self, decisions: Iterable[CallDecision], began: float | None) -> None:
        self.left = dict.fromkeys(decisions)
        self.began = began
        """When a hook first ran in the session; None if never."""
        self.tools = {decided.tool for decided in self.left}
        self._by_id = {decided.call_id: decided for decided in self.left if decided.call_id}

    def take_by_id(self, call_id: str) -> CallDecision | None:
        return self._taken(self._by_id.get(call_id))

    def take_by_args(self, tool: str, digest: bytes, at: float | None) -> CallDecision | None:
        return self._taken(_nearest((one for one in self.left if one.tool == tool and one.fits(digest)), at))

    def take_by_time(self, tool: str, at: float | None) -> CallDecision | None:
        found = None if at is None else _nearest((one for one in self.left if one.tool == tool), at)
        return self._taken(found) if found is not None and abs(found.at - (at or 0.0)) <= NEAR else None

    def _taken(self, found: CallDecision | None) -> CallDecision | None:
        if found is not None:
            del self.left[found]
            if found.call_id is not None:
                self._by_id.pop(found.call_id, None)
        return found


def _nearest(found: Iterable[CallDecision], at: float | None) -> CallDecision | None:
    return min(found, key=lambda one: abs(one.at - at) if at is not None else one.at, default=None)


class Decisions:
    """The decisions in some journals, by session. Without a journal there are none."""

    def __init__(self, *readers: Reader) -> None:
        self._readers = readers
        self._known: OrderedDict[str, SessionDecisions] = OrderedDict()
        self.exists = bool(readers)
        self.began: float | None = None
        """The time of the first decision, by its number."""
        self.pruned = False
        self.lost: list[LostSpan] = []
        for reader in readers:
            self._survey(reader)

    def _survey(self, reader: Reader) -> None:
        first = _rows(reader, f"SELECT at FROM records WHERE kind = 'decision' AND {_MADE} ORDER BY seq LIMIT 1", [])  # noqa: S608
        if first:
            self.began = min(first[0][0] / 1e9, self.began or first[0][0] / 1e9)
        ((oldest,),) = _rows(reader, "SELECT min(seq) FROM records", [])
        self.pruned = self.pruned or (oldest is not None and oldest > 1)
        notes = "SELECT at, body FROM records WHERE session IS NULL AND kind = 'note' AND length(body) > 0"
        for at, body in _rows(reader, notes, []):  # of no session, which an index leads to
            try:
                note = msgspec.json.decode(body, type=dict[str, Any])
            except (msgspec.MsgspecError, UnicodeError, TypeError):
                raise JournalError(f"a note in {reader.path} is damaged; run `fairlead verify`") from None
            if note.get("note") in ("crashed", "lost"):
                self.lost.append(self._lost(reader, note, at / 1e9))

    def _lost(self, reader: Reader, note: dict[str, Any], until: float) -> LostSpan:
        """The time from the last record of a killed writer until the note about it."""
        query = "SELECT max(at) FROM records WHERE id GLOB ? AND kind = 'decision'"
        ((last,),) = _rows(reader, query, [f"{note.get('writer')}-*"])
        return LostSpan(until - NEAR if last is None else last / 1e9, until)

    def of(self, entry: TranscriptEntry) -> list[SessionDecisions]:
        """The sessions of an entry, by each id that hooks may have received.

        The CLI does not matter: some CLIs run hooks that were installed for another.
        """
        agent = entry.agent
        ids = (entry.session_id, agent.id, agent.parent) if agent else (entry.session_id,)
        return [self._session(known) for known in dict.fromkeys(ids) if known]

    def _session(self, session_id: str) -> SessionDecisions:
        if session_id not in self._known:
            self._known[session_id] = self._read(session_id)
            if len(self._known) > SESSIONS:
                self._known.popitem(last=False)
        self._known.move_to_end(session_id)
        return self._known[session_id]

    def _read(self, session_id: str) -> SessionDecisions:
        which = Filter(event="before_tool", session=session_id, notes=False)
        began: list[float] = []
        made: list[CallDecision] = []
        for reader in self._readers:
            query = f"SELECT min(at) FROM records WHERE session = ? AND {_MADE}"  # noqa: S608
            ((first,),) = _rows(reader, query, [session_id])
            if first is not None:
                began.append(first / 1e9)
                records = (record for record in reader.records(which) if not record.id.startswith(IMPORTED))
                made += [_decided(record.body, record.at) for record in records]
        return SessionDecisions(made, min(began, default=None))

    def is_there(self, name: str) -> bool:
        """Whether the journal has a record with this id."""
        return any(_rows(reader, "SELECT 1 FROM records WHERE id = ?", [name]) for reader in self._readers)

    def has(self, entry: TranscriptEntry) -> bool:
        """Whether a hook received such an event in the session."""
        query = f"SELECT 1 FROM records WHERE session = ? AND event = ? AND {_MADE} LIMIT 1"  # noqa: S608
        return any(_rows(reader, query, [entry.session_id, entry.event]) for reader in self._readers)


def _rows(reader: Reader, query: str, values: list[Any]) -> list[Any]:
    try:
        return reader.db.execute(query, values).fetchall()
    except sqlite3.Error as error:
        raise JournalError(f"the journal {reader.path} cannot be read: {error}; run `fairlead verify`") from None


_MADE = f"id NOT GLOB '{IMPORTED}*'"


def _decided(body: dict[str, Any], at: float) -> CallDecision:
    step = a_dict(body.get("step"))
    return CallDecision(
        at, str(step.get("tool")).casefold(), a_text(step.get("call_id")), a_dict(step.get("args")),
        str(body.get("effect") or body.get("control")),
    )  # fmt: skip
