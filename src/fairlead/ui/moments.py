"""The moments of a session: what a person would call one thing, such as a tool call, made of up to five records.

The records of a call have its id; those of a model call follow each other. Everything else is a moment of its own. A
moment is *quiet* if it is only bookkeeping: nothing was asked, said or done, and no hook had anything to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from heapq import merge
from typing import Any

import msgspec

from ..journal.entry import references, unfold
from ..journal.reading import Reader
from .findings import Highlight, TimelineBody, aim_of, decode_body, findings, line
from .marks import MARKS

PAGE = 500
"""Moments on one page."""
SLOW = 0.1
"""Seconds from which a hook is named as slow."""
_CHUNK = 250
_LOOK_FOR_SUBAGENTS = 200
"""Sessions that began during a session, and are looked at to see whether they are its subagents."""
_ENDS = frozenset({"after_tool", "after_model"})
_NAMES = {
    "session_start": "session begins", "session_end": "session ends", "before_request": "request begins",
    "after_request": "request ends", "before_input": "user", "after_input": "message taken in",
    "turn_start": "turn begins", "before_prompt": "system prompt", "before_compact": "wants to compact",
    "after_compact": "compacted", "after_tool_batch": "calls are over", "before_turn_end": "wants to end the turn",
    "before_response": "response", "before_output": "output", "turn_end": "turn is over",
    "subagent_start": "starts a subagent", "subagent_stop": "subagent wants to end", "notification": "notification",
    "error": "error",
}  # fmt: skip
_STORY = frozenset({"before_turn_end", "subagent_start", "subagent_stop", "notification", "error", "after_compact"})
_DETAILS = {
    "before_input": ("input",), "before_prompt": ("system_prompt",), "before_response": ("response",),
    "before_output": ("content",), "before_turn_end": ("stop_reason",), "turn_end": ("stop_reason",),
    "subagent_start": ("agent_name", "initial_message"), "subagent_stop": ("agent_name", "reason"),
    "notification": ("message",), "error": ("where", "error"), "session_start": ("source",), "session_end": ("reason",),
}  # fmt: skip


class Row(msgspec.Struct):
    """A record, decoded as far as a timeline needs it: long texts are fetched only where they are shown."""

    seq: int
    id: str
    session: str
    event: str
    body: TimelineBody
    began: float
    ended: float

    @property
    def step(self) -> dict[str, Any]:
        return self.body.get("step") or {}


class SessionMoment(msgspec.Struct):
    """One thing that happened, with what hooks decided about it."""

    rows: list[Row]
    lane: str  # "turn", "model" or "tool"
    name: str
    what: str
    agent: str | None  # the subagent's name; None for the agent itself
    findings: list[Highlight] = []
    is_quiet: bool = True
    is_user: bool = False
    is_failed: bool = False  # the tool or the model failed, whatever hooks said

    @property
    def seq(self) -> int:
        return self.rows[0].seq

    @property
    def began(self) -> float:
        return min(row.began for row in self.rows)

    @property
    def ended(self) -> float:
        return max(row.ended for row in self.rows)

    @property
    def hooks(self) -> list[tuple[str, float]]:
        """Each run of a hook, and how long it took."""
        return [(run.hook, run.took) for row in self.rows for run in row.body.get("runs") or ()]

    @property
    def hook_time(self) -> float:
        """How long the hooks took, and what is around them: the time that the agent waited."""
        return sum(row.ended - row.began for row in self.rows if row.body.get("runs"))

    @property
    def slow_hook(self) -> str | None:
        """The hook that took longest, if that is long."""
        name, took = max(self.hooks, key=lambda run: run[1], default=("", 0.0))
        return name if took >= SLOW else None


class Timeline(msgspec.Struct):
    """A page of moments, in the order in which they began. `more` is the number to go on after, None at the end."""

    moments: list[SessionMoment]
    more: int | None


Clean = Callable[[Any], Any]
"""Takes out of a value what is to leave the machine with no secret in it."""


def timeline_of(
    reader: Reader, session: str, *, after: int = 0, limit: int = PAGE, clean: Clean | None = None
) -> Timeline:
    """The moments of a session and of its subagents, after a record. `clean` is applied to all that is shown."""
    texts = TextReader(reader)
    grouping = Grouping(session, texts if clean is None else lambda value: clean(texts(value)))
    more, last = None, after
    for row in session_rows(reader, session, after):
        if len(grouping.moments) >= limit and not grouping.belongs(row):
            more = last
            break
        grouping.add(row if clean is None else _cleaned(row, clean))
        last = row.seq
    moments = sorted(grouping.moments, key=lambda moment: (moment.began, moment.seq))
    for moment in moments:
        grouping.finish(moment)
    return Timeline(moments, more)


def _cleaned(row: Row, clean: Clean) -> Row:
    return msgspec.structs.replace(row, body=decode_body(msgspec.json.encode(clean(msgspec.to_builtins(row.body)))))


def subagents_of(reader: Reader, session: str) -> list[str]:
    """The sessions of a session's subagents: they began while it went on, and name it as their root."""
    if reader.version < 2:
        return []
    found = reader.db.execute(
        "SELECT other.session, other.first FROM sessions AS this JOIN sessions AS other ON other.first > this.first "
        "AND other.first < this.last + ? WHERE this.session = ? ORDER BY other.first LIMIT ?",
        (_LOOK_FOR_SUBAGENTS, session, _LOOK_FOR_SUBAGENTS),
    ).fetchall()
    return [name for name, first in found if _root_of(reader, first) == session]


def _root_of(reader: Reader, seq: int) -> str | None:
    row = reader.db.execute("SELECT body FROM records WHERE seq = ?", (seq,)).fetchone()
    body: TimelineBody = {} if row is None else decode_body(row[0])
    return (body.get("step") or {}).get("root_session_id") or body.get("parent")


# --- reading --------------------------------------------------------------------------------------


class TextReader:
    """Puts long texts back in place, each fetched once."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: dict[bytes, bytes] = {}

    def __call__(self, value: Any) -> Any:
        if not isinstance(value, (dict, list)):
            return value
        for digest in references(value):
            if digest not in self._known and (text := self._reader.text(digest)) is not None:
                self._known[digest] = text
        return unfold(value, self._known)


def session_rows(reader: Reader, session: str, after: int) -> Iterator[Row]:
    """The records of a session and of its subagents after a number, in order."""
    sessions = (session, *subagents_of(reader, session))
    return merge(*(_rows_of(reader, one, after) for one in sessions), key=lambda row: row.seq)


def _rows_of(reader: Reader, session: str, after: int) -> Iterator[Row]:
    """The records of a session in order, in short queries."""
    query = f"SELECT seq, id, at, session, event, body FROM records WHERE session = ? AND seq > ? ORDER BY seq LIMIT {_CHUNK}"  # noqa: E501, S608
    while True:
        found = reader.db.execute(query, (session, after)).fetchall()
        for row in found:
            yield row_of(*row)
        if len(found) < _CHUNK:
            return
        after = found[-1][0]


def row_of(seq: int, name: str, at: int, session: str | None, event: str | None, data: bytes) -> Row:
    """A record, from its columns and its body. A damaged or erased one has only its columns."""
    body = decode_body(data)
    ended = at / 1e9
    began = ended - (body.get("took") or 0.0)
    if (transcribed := _time_in_transcript(body)) is not None:
        began, ended = transcribed, transcribed + (ended - began)
    return Row(seq, str(name), session or "", event or "note", body, began, ended)


def _time_in_transcript(body: TimelineBody) -> float | None:
    """When an imported step began: its record is younger."""
    metadata = (body.get("step") or {}).get("metadata")
    if isinstance(metadata, dict) and metadata.get("imported") is True:
        with suppress(ValueError, TypeError):
            return datetime.fromisoformat(metadata["at"]).timestamp()
    return None


# --- grouping -------------------------------------------------------------------------------------


class Grouping:
    """Puts the records of a session into moments, one record after another."""

    def __init__(self, session: str, texts: Callable[[Any], Any]) -> None:
        self.moments: list[SessionMoment] = []
        self._session = session
        self._texts = texts
        self._open: dict[tuple[Any, ...], SessionMoment] = {}

    def use(self, texts: Callable[[Any], Any]) -> None:
        """Read long texts from here from now on: a feed opens the journal again for each look."""
        self._texts = texts

    def forget(self, but: int) -> None:
        """Forget all moments but the newest ones."""
        self.moments = self.moments[-but:]
        kept = {moment.seq for moment in self.moments}
        self._open = {key: moment for key, moment in self._open.items() if moment.seq in kept}

    def belongs(self, row: Row) -> bool:
        """Whether a record is part of a moment that is there already."""
        return self._moment_for(row, self._key(row)) is not None

    def add(self, row: Row) -> SessionMoment:
        """Add a record, and return its moment."""
        key = self._key(row)
        moment = self._moment_for(row, key)
        if moment is None:
            moment = SessionMoment([row], _lane(row.event), "", "", self._agent(row))
            self.moments.append(moment)
            if key is not None:
                self._open[key] = moment
        else:
            moment.rows.append(row)
        return moment

    def _key(self, row: Row) -> tuple[Any, ...] | None:
        """What the records of one moment have in common; None for one that is a moment by itself."""
        step = row.step
        if "tool" in step:
            return row.session, "tool", step.get("call_id") or (step.get("tool"), self._agent(row))
        if row.event in ("before_model", "after_model"):
            return row.session, "model", self._agent(row)
        if row.event in ("before_input", "after_input"):
            return row.session, "input", self._agent(row)
        return None

    def _moment_for(self, row: Row, key: tuple[Any, ...] | None) -> SessionMoment | None:
        moment = None if key is None else self._open.get(key)
        if moment is None:
            return None
        events = {one.event for one in moment.rows}
        retried = row.event == "after_tool" and (row.step.get("attempt") or 1) > 1
        if not retried and (row.event in events or (events & _ENDS and row.event not in _ENDS)):
            return None  # some models use the id of a call again
        return moment

    def _agent(self, row: Row) -> str | None:
        """The name of the subagent that a record belongs to."""
        agent = row.step.get("agent")
        if isinstance(agent, dict) and agent.get("parent"):
            return str(agent.get("name") or agent.get("id"))
        return row.session if row.session != self._session else None

    def finish(self, moment: SessionMoment) -> None:
        """Work out what a moment is called, and what stands out of it."""
        event, step = moment.rows[0].event, moment.rows[0].step
        found = [one for row in moment.rows for one in findings(row.body, row.seq, self._texts)]
        moment.findings = sorted(found, key=lambda one: one.rank)
        if moment.lane == "tool":
            moment.name, moment.what = str(step.get("tool")), _what_of_call(step, self._texts)
            last = moment.rows[-1].step
            moment.is_failed = last.get("outcome") == "error" or bool(last.get("is_error") and last.get("executed"))
            judged = any(row.event == "before_tool" for row in moment.rows)
            if last.get("outcome") == "denied" and judged and not moment.findings:
                why = line(self._texts(last.get("error")))
                moment.findings = [Highlight(MARKS["denied"], why, "the agent or its user", moment.rows[-1].seq)]
        elif moment.lane == "model":
            last = moment.rows[-1].step
            moment.name, moment.what = "model", line(self._texts(last.get("error") or last.get("output")))
            moment.is_failed = last.get("error") is not None
        else:
            moment.name = _NAMES.get(event, event.replace("_", " "))
            details = [step.get(field) for field in _DETAILS.get(event, ())] or [moment.rows[0].body.get("note")]
            moment.what = " ".join(filter(None, (line(self._texts(value)) for value in details)))
            moment.is_user = event == "before_input" and step.get("source", "user") == "user"
            if event == "before_input" and not moment.is_user:
                moment.name = "goes on with" if step.get("source") == "continuation" else "background"
        moment.what = moment.what or ("its body was erased" if "erased" in moment.rows[0].body else "")
        is_of_story = (
            moment.lane == "tool" or event in _STORY or (event in ("before_model", "before_input") and moment.what)
        )
        moment.is_quiet = not (moment.findings or is_of_story or (moment.lane == "model" and moment.what))


def _lane(event: str) -> str:
    if event in ("before_model", "after_model"):
        return "model"
    return "tool" if event in _TOOL_EVENTS else "turn"


_TOOL_EVENTS = frozenset({"tool_requested", "before_tool", "before_permission", "after_permission", "after_tool"})


def _what_of_call(step: dict[str, Any], texts: Callable[[Any], Any]) -> str:
    return line(aim_of(step.get("target"), texts)) or line(texts(step.get("args") or None))


def standing_out(moments: Iterable[SessionMoment]) -> list[tuple[Highlight, SessionMoment]]:
    """What stands out of some moments, the most important first. A moment is listed once for each kind of mark."""
    pairs = [(one, moment) for moment in moments for one in _one_of_each(moment.findings)]
    return sorted(pairs, key=lambda pair: (pair[0].rank, pair[1].began))


def _one_of_each(found: list[Highlight]) -> Iterator[Highlight]:
    known = set()
    for one in found:
        if one.mark not in known:
            known.add(one.mark)
            yield one


def single_moment(reader: Reader, columns: tuple[Any, ...]) -> SessionMoment:
    """One record as a moment of its own: its columns number, id, time, session, event and body."""
    row = row_of(*columns)
    grouping = Grouping(row.session, TextReader(reader))
    moment = grouping.add(row)
    grouping.finish(moment)
    return moment
