"""Recording what transcripts tell: steps that were taken before any hook was asked, put into the journal as such.

Each is a decision that proceeds, of which `metadata` says that nobody made it: where it was read, and when it was. Of a
call that the CLI or its user refused, the effect is a denial. A record's id follows from the transcript, so that
nothing is recorded twice, however often and from wherever it is read.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256

from ..decision import Decision
from ..errors import FairleadError
from ..journal import Journal
from ..lifecycle import Step
from ..record import tell
from ..tools import Tools
from .decisions import IMPORTED, Decisions, Session, digest_of
from .transcript import Source, Told, Transcripts

WAITING = 8 << 20
"""Bytes of transcripts that may wait to be written."""


class Recorder(Journal):
    """A journal that takes steps by name: one that is there already is left out."""

    def keep(self, name: str, step: Step, *, refused: bool = False) -> None:
        """Keep a step on which no hook decided. Waits where there is more to write than can be held."""
        told = tell(Decision(step, step, effect="deny" if refused else None))
        facts = {"id": name, "kind": "decision", "at": time.time_ns(), "took": None, **told}
        done = self._put(lambda: facts)
        if done is not None:
            done.result()


class Recording:
    """Transcripts that are read into a journal. Without one, it is only counted what would be."""

    def __init__(self, journal: Recorder | None, decisions: Decisions, tools: Tools) -> None:
        self.events: Counter[str] = Counter()
        self.sessions: set[str] = set()
        self.there = 0
        """Steps that were recorded from a transcript before."""
        self.decided = 0
        """Steps that a hook was asked about: the journal has them anyway."""
        self._journal, self._decisions, self._tools = journal, decisions, tools
        self._names: set[str] = set()
        self._left_out: set[str] = set()

    def record(self, transcripts: Transcripts, source: Source, say: Callable[[], None] | None = None) -> None:
        """Record what one transcript tells. What makes no sense counts as garbage. `say` is called all the time."""
        self._left_out.clear()
        written = 0
        refused = _refused_calls(transcripts, source) if self._journal is not None else frozenset()
        for told in transcripts.read(source):
            if say is not None:
                say()
            if self._is_decided(transcripts, told):
                self.decided += 1
                continue
            name = name_of(transcripts.host, told)
            if name in self._names or self._decisions.is_there(name):
                self.there += 1
                continue
            try:
                step = told.step(transcripts.host, self._tools, _metadata(told, source))
            except (TypeError, ValueError, FairleadError):
                source.garbage += 1
                continue
            self._names.add(name)
            self.sessions.add(told.session_id)
            self.events[told.event] += 1
            if self._journal is not None:
                self._journal.keep(name, step, refused=told.event == "before_tool" and _call(told) in refused)
                if source.read > written + WAITING:
                    self._journal.flush(None)
                    written = source.read

    def _is_decided(self, transcripts: Transcripts, told: Told) -> bool:
        """Whether the journal has this moment from a hook: this very call, or anything of the kind in the session."""
        if told.event == "before_tool":
            known = any(_take(session, transcripts.ids, told) for session in self._decisions.of(told) if session.left)
            if known:
                self._left_out.add(told.key)
            return known
        if told.event == "after_tool":
            return told.key in self._left_out
        return any(session.began is not None for session in self._decisions.of(told)) and self._decisions.has(told)


def _call(told: Told) -> tuple[str, str]:
    """What a call and its result have in common."""
    return told.session_id, told.key


def _refused_calls(transcripts: Transcripts, source: Source) -> frozenset[tuple[str, str]]:
    """The calls that were refused. A transcript tells a call before it tells what came of it, so it is read twice."""
    results = (told for told in transcripts.read(Source(source.path)) if told.event == "after_tool")
    return frozenset(_call(told) for told in results if told.fields["outcome"] == "denied")


def _take(session: Session, ids: bool, told: Told) -> bool:
    found = session.take_by_id(told.key)
    if found is None and not ids:
        found = session.take_by_args(str(told.fields["tool"]).casefold(), digest_of(told.fields["args"]), told.at)
    return found is not None


def name_of(host: str, told: Told) -> str:
    """The id of the record of a moment."""
    agent = told.agent.id if told.agent else None
    facts = "\0".join(map(str, (host, told.session_id, agent, told.event, told.key, told.at)))
    return IMPORTED + sha256(facts.encode(errors="backslashreplace")).hexdigest()[:16]


def _metadata(told: Told, source: Source) -> dict[str, object]:
    try:
        at = None if told.at is None else datetime.fromtimestamp(told.at, UTC).isoformat()
    except (OverflowError, ValueError, OSError):  # of a clock that shows no time
        at = None
    return {"imported": True, "at": at, "source": str(source.path)}
