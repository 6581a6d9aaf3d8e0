"""Imports transcripts into the journal: steps that no hook received.

Each becomes a decision to proceed whose `metadata` says that it was imported, from where, and when the step happened.
If the CLI or its user refused a call, the effect is a denial. A record's id follows from the transcript, so that no
step is imported twice.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256

from ....decision import Decision
from ....errors import FairleadError
from ....journal import Journal
from ....lifecycle import Step
from ....tools import Tools
from ....wire.decisions import encode_decision
from .decisions import IMPORTED, Decisions, SessionDecisions, digest_of
from .transcript import TranscriptEntry, Transcripts, TranscriptSource

WAITING = 8 << 20
"""Bytes of transcripts that may wait to be written."""


class ImportJournal(Journal):
    """A journal that records a step under an id. It skips an id that it has already."""

    def keep(self, name: str, step: Step, *, refused: bool = False) -> None:
        """Record a step that no hook decided on. Waits while too much is unwritten."""
        entry = encode_decision(Decision(step, step, effect="deny" if refused else None))
        facts = {"id": name, "kind": "decision", "at": time.time_ns(), "took": None, **entry}
        done = self._put(lambda: facts)
        if done is not None:
            done.result()


class TranscriptImport:
    """Imports transcripts into a journal. Without a journal, it only counts what it would import."""

    def __init__(self, journal: ImportJournal | None, decisions: Decisions, tools: Tools) -> None:
        self.events: Counter[str] = Counter()
        self.sessions: set[str] = set()
        self.there = 0
        """Steps that were imported before."""
        self.decided = 0
        """Steps that a hook received, so that the journal has them."""
        self._journal, self._decisions, self._tools = journal, decisions, tools
        self._names: set[str] = set()
        self._left_out: set[str] = set()

    def record(
        self, transcripts: Transcripts, source: TranscriptSource, on_line: Callable[[], None] | None = None
    ) -> None:
        """Record what one transcript tells. What makes no sense counts as garbage. It calls `on_line` for each line."""
        self._left_out.clear()
        written = 0
        refused = _refused_calls(transcripts, source) if self._journal is not None else frozenset()
        for entry in transcripts.read(source):
            if on_line is not None:
                on_line()
            if self._is_decided(transcripts, entry):
                self.decided += 1
                continue
            name = name_of(transcripts.host, entry)
            if name in self._names or self._decisions.is_there(name):
                self.there += 1
                continue
            try:
                step = entry.step(transcripts.host, self._tools, _metadata(entry, source))
            except (TypeError, ValueError, FairleadError):
                source.garbage += 1
                continue
            self._names.add(name)
            self.sessions.add(entry.session_id)
            self.events[entry.event] += 1
            if self._journal is not None:
                self._journal.keep(name, step, refused=entry.event == "before_tool" and _call(entry) in refused)
                if source.read > written + WAITING:
                    self._journal.flush(None)
                    written = source.read

    def _is_decided(self, transcripts: Transcripts, entry: TranscriptEntry) -> bool:
        """Whether a hook received this call, or any such event in the session."""
        if entry.event == "before_tool":
            known = any(_take(session, transcripts.ids, entry) for session in self._decisions.of(entry) if session.left)
            if known:
                self._left_out.add(entry.key)
            return known
        if entry.event == "after_tool":
            return entry.key in self._left_out
        return any(session.began is not None for session in self._decisions.of(entry)) and self._decisions.has(entry)


def _call(entry: TranscriptEntry) -> tuple[str, str]:
    """The key that a call and its result share."""
    return entry.session_id, entry.key


def _refused_calls(transcripts: Transcripts, source: TranscriptSource) -> frozenset[tuple[str, str]]:
    """The calls that were refused. A call precedes its result, so this reads the transcript a first time."""
    results = (entry for entry in transcripts.read(TranscriptSource(source.path)) if entry.event == "after_tool")
    return frozenset(_call(entry) for entry in results if entry.fields["outcome"] == "denied")


def _take(session: SessionDecisions, ids: bool, entry: TranscriptEntry) -> bool:
    found = session.take_by_id(entry.key)
    if found is None and not ids:
        found = session.take_by_args(str(entry.fields["tool"]).casefold(), digest_of(entry.fields["args"]), entry.at)
    return found is not None


def name_of(host: str, entry: TranscriptEntry) -> str:
    """The id of the record of an entry."""
    agent = entry.agent.id if entry.agent else None
    facts = "\0".join(map(str, (host, entry.session_id, agent, entry.event, entry.key, entry.at)))
    return IMPORTED + sha256(facts.encode(errors="backslashreplace")).hexdigest()[:16]


def _metadata(entry: TranscriptEntry, source: TranscriptSource) -> dict[str, object]:
    try:
        at = None if entry.at is None else datetime.fromtimestamp(entry.at, UTC).isoformat()
    except (OverflowError, ValueError, OSError):  # out of range
        at = None
    return {"imported": True, "at": at, "source": str(source.path)}
