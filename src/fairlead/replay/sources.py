"""Recorded traffic: journals and exported files, read session by session.

A group is a session with its subagents, which share a store. The steps of a group come in the order in which they
began. Only one group is in memory at a time, and of a very long one only a part.
"""

from __future__ import annotations

import heapq
import sqlite3
import tempfile
from array import array
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, Self

import msgspec

from ..errors import FairleadError
from ..journal.errors import JournalError
from ..journal.reading import Reader
from ..journal.schema import SCHEMA
from ..lifecycle import EVENTS
from .records import NOTHING, BadBody, Recorded, decode_body, imported_at

WINDOW: Final = 10_000
"""Steps of a group that are held back to be sorted."""
PAGE: Final = 100
"""Rows that are read at a time."""
FIRST: Final = 64
"""Records of a session among which its beginning is looked for."""
ROUNDING: Final = 1_000
"""Nanoseconds by which a time in seconds, as a float, may be off."""
TEXTS: Final = 32 << 20
"""Bytes of long texts that are kept in memory."""
_GAPS: Final = ("pruned", "lost", "crashed", "damaged", "erased")
"""Notes of the journal about records that are not there."""
_HOLES: Final = frozenset({"lost", "crashed", "damaged"})
"""Notes about steps that were judged before the note, and left no record."""
_began = attrgetter("began")


class MissingSteps(NamedTuple):
    """In place of steps that are not there: from then on, what their session remembers is not known."""

    began: float


Unreadable: Final = MissingSteps(-inf)
"""For a step that cannot be read. It comes before all others, because when it began is not known."""


class Selection(msgspec.Struct, frozen=True):
    """Which recorded steps are judged. Earlier steps of their sessions run, too, to rebuild the state."""

    since: float | None = None
    until: float | None = None
    session: str | None = None
    project: str | None = None  # its folder
    last: int | None = None  # so many of the newest records

    @property
    def is_everything(self) -> bool:
        """Whether every step counts."""
        return self.since is None and self.until is None and self.project is None

    def covers(self, recorded: Recorded) -> bool:
        """Whether the answer on this step counts."""
        return (
            (self.since is None or recorded.at >= self.since)
            and (self.until is None or recorded.began < self.until)
            and (self.project is None or self.project in (recorded.body.root, recorded.step.cwd))
        )


class Gaps(msgspec.Struct):
    """What the traffic does not tell. Each is counted."""

    notes: dict[str, int] = {}  # by note: pruned, lost, crashed, damaged, erased
    missing_numbers: int = 0  # records that are not in the chain
    unreadable: int = 0  # records without a step: unwritable, erased, damaged, or left by a launcher
    bad_lines: int = 0  # of an exported file
    missing_texts: int = 0  # records with a long text that is gone
    lossy: int = 0  # records that JSON could not hold exactly
    imported: int = 0  # steps from transcripts: no policy was asked about them
    first_bad: str = ""  # the first that could not be read, and why

    def add(self, other: Gaps) -> None:
        for note, count in other.notes.items():
            self.notes[note] = self.notes.get(note, 0) + count
        for name in ("missing_numbers", "unreadable", "bad_lines", "missing_texts", "lossy", "imported"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.first_bad = self.first_bad or other.first_bad


class Group(msgspec.Struct):
    """A session and its subagents: which of its sessions are in which source."""

    root: str | None  # None for steps without a session
    parts: list[tuple[int, str | None, int]] = []  # the number of the source, the session, and its records
    is_cold: bool = False  # its beginning is not in the traffic

    @property
    def records(self) -> int:
        return sum(count for _, _, count in self.parts)

    @property
    def sessions(self) -> int:
        """How many sessions it has: one may be in several sources."""
        return len({session for _, session, _ in self.parts if session is not None})


class _SessionHead(msgspec.Struct):
    """Of a session: its root, how many records it has, whether its beginning is there, and whether any are selected."""

    root: str
    records: int
    is_cold: bool
    is_selected: bool = True


class Source:
    """A journal or a file. `policies` are the hooks of each recorded policy with their versions."""

    name: str

    def heads(self, selection: Selection) -> dict[str | None, _SessionHead]:
        """All sessions: one without selected records may be a subagent of one that has some."""
        raise NotImplementedError

    def read(self, session: str | None, events: Collection[str], gaps: Gaps) -> Iterator[Recorded | MissingSteps]:
        """The steps of one session, at these events, in the order of their numbers."""
        raise NotImplementedError

    def versions(self, policy: str | None) -> dict[str, str]:
        """The version of each hook of a recorded policy."""
        raise NotImplementedError

    def newest(self, count: int) -> list[float]:
        """When the newest decisions were recorded: at most so many times."""
        raise NotImplementedError

    def gaps(self) -> Gaps:
        """What the source says about records that are missing."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class _Header(msgspec.Struct):
    """The fields of a step that say whose it is."""

    event: str = ""
    session_id: str | None = None
    root_session_id: str | None = None
    sequence: int | None = None
    metadata: dict[str, Any] | None = None


class _RecordHead(msgspec.Struct):
    kind: str = "decision"
    id: str = ""
    at: int = 0
    note: str = ""
    step: _Header | None = None
    parent: str | None = None


_head_decoder = msgspec.json.Decoder(_RecordHead)


def _time_of(body: bytes) -> float:
    """When a record's step was decided; when an imported one happened."""
    try:
        head = _head_decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeError):
        return 0.0
    metadata = head.step.metadata if head.step is not None else None
    if metadata is not None and metadata.get("imported") is True:
        return imported_at(metadata, head.at)
    return head.at / 1e9


def _root(session: str, head: _RecordHead) -> str:
    return (head.step and head.step.root_session_id) or head.parent or session


def _is_beginning(head: _RecordHead) -> bool:
    """Whether a record is the first of its session, as far as it tells."""
    step = head.step
    if step is None:
        return False
    imported = step.metadata is not None and step.metadata.get("imported") is True
    return imported or step.event == "session_start" or step.sequence in (None, 0, 1)


class JournalSource(Source):
    """A journal's file."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._reader = Reader(path)
        self._db = self._reader.db
        self._texts: OrderedDict[bytes, bytes] = OrderedDict()
        self._texts_size = 0
        self._versions: dict[str, dict[str, str]] = {}
        self._holes: list[int] | None = None
        self._first: dict[str, int] = {}  # of a session and its subagents: their first record

    def close(self) -> None:
        self._db.close()

    def heads(self, selection: Selection) -> dict[str | None, _SessionHead]:
        began = self._first_numbers()
        found: dict[str | None, _SessionHead] = {}
        chosen = self._sessions_since(selection.since)
        for session, first, records in self._rows("SELECT session, min(seq), count(*) FROM records GROUP BY session"):
            is_selected = chosen is None or session in chosen
            if session is None:
                found[None] = _SessionHead("", records, False, is_selected)
                continue
            head = self._head_of(first)
            is_pruned = began.get(session, first) < first
            is_cold = is_pruned or head is None or not (_is_beginning(head) or self._begins(session))
            root = session if head is None else _root(session, head)
            found[session] = _SessionHead(root, records, is_cold, is_selected)
            self._first[root] = min(first, self._first.get(root, first))
        self._first |= {session: self._first[head.root] for session, head in found.items() if session is not None}
        return found

    def _first_numbers(self) -> dict[str, int]:
        if self._reader.version < SCHEMA:
            return {}
        return dict(self._rows("SELECT session, first FROM sessions"))

    def _sessions_since(self, since: float | None) -> set[str | None] | None:
        if since is None:
            return None
        # An imported record has the time of its import here, and an older one in its step.
        # A time in seconds is rounded, so a little earlier ones are taken, too: each step is looked at again.
        earliest = int(max(since, 0) * 1e9) - ROUNDING
        rows = self._rows("SELECT DISTINCT session FROM records WHERE at >= ?", earliest)
        return {session for (session,) in rows}

    def _begins(self, session: str) -> bool:
        """Whether one of the first records is the beginning: of parallel steps, the first may be written last."""
        query = "SELECT seq FROM records WHERE session = ? ORDER BY seq LIMIT ?"
        heads = (self._head_of(seq) for (seq,) in list(self._rows(query, session, FIRST)))
        return any(head is not None and _is_beginning(head) for head in heads)

    def _head_of(self, seq: int) -> _RecordHead | None:
        for (body,) in self._rows("SELECT body FROM records WHERE seq = ?", seq):
            try:
                return _head_decoder.decode(body)
            except (msgspec.MsgspecError, UnicodeError):
                return None
        return None

    def read(self, session: str | None, events: Collection[str], gaps: Gaps) -> Iterator[Recorded | MissingSteps]:
        events = () if len(events) == len(EVENTS) else events  # all of them
        wanted = f"AND (event IN ({', '.join('?' * len(events))}) OR event IS NULL)" if events else ""
        query = f"SELECT seq, body FROM records WHERE session IS ? AND kind = 'decision' {wanted} ORDER BY seq"  # noqa: S608 (only marks)
        first = self._first.get(session or "", 0)
        holes = [] if session is None else [hole for hole in self.holes() if hole > first]
        for seq, data in self._rows(query, session, *events):
            try:
                if not data:
                    raise BadBody("its body was erased")
                body, policy, missing = decode_body(data, self._text)
                if body.unwritable is not None:
                    raise BadBody(f"it could not be written: {body.unwritable}")
            except BadBody as problem:
                gaps.unreadable += 1
                gaps.first_bad = gaps.first_bad or f"record {seq} of {self.name}: {problem}"
                yield Unreadable
                continue
            recorded = Recorded(body, self, policy, missing)
            if holes and holes[0] <= seq:
                holes = [hole for hole in holes if hole > seq]
                yield MissingSteps(recorded.began)
            yield recorded

    def holes(self) -> list[int]:
        """The numbers before which records are missing: they left a gap in the chain, or a note says so."""
        if self._holes is None:
            found = {seq for seq, note in self._notes() if note in _HOLES}
            ((first, last, count),) = self._rows("SELECT min(seq), max(seq), count(*) FROM records")
            if first is not None and last - first + 1 > count:
                query = "SELECT seq FROM records WHERE seq > ? AND seq - 1 NOT IN (SELECT seq FROM records)"
                found |= {seq for (seq,) in self._rows(query, first)}
            self._holes = sorted(found)
        return self._holes

    def _notes(self) -> Iterator[tuple[int, str]]:
        for seq, body in self._rows("SELECT seq, body FROM records WHERE kind = 'note'"):
            try:
                yield seq, _head_decoder.decode(body).note if body else ""
            except (msgspec.MsgspecError, UnicodeError):
                yield seq, ""

    def _text(self, digest: bytes) -> bytes | None:
        found = self._texts.get(digest)
        if found is not None:
            self._texts.move_to_end(digest)
            return found
        for (text,) in self._rows("SELECT body FROM texts WHERE digest = ?", digest):
            found = bytes(text)
            self._texts[digest] = found
            self._texts_size += len(found)
            while self._texts_size > TEXTS and len(self._texts) > 1:
                self._texts_size -= len(self._texts.popitem(last=False)[1])
        return found

    def versions(self, policy: str | None) -> dict[str, str]:
        if policy is None:
            return {}
        if policy not in self._versions:
            rows = self._rows("SELECT body FROM texts WHERE digest = ?", bytes.fromhex(policy))
            self._versions[policy] = next((_versions_in(text) for (text,) in rows), {})
        return self._versions[policy]

    def newest(self, count: int) -> list[float]:
        query = "SELECT body FROM records WHERE kind = 'decision' ORDER BY seq DESC LIMIT ?"
        return [_time_of(body) for (body,) in self._rows(query, count)]

    def gaps(self) -> Gaps:
        found = Gaps()
        for _, note in self._notes():
            if note in _GAPS:
                found.notes[note] = found.notes.get(note, 0) + 1
        for first, last, count in self._rows("SELECT min(seq), max(seq), count(*) FROM records"):
            found.missing_numbers = 0 if first is None else last - first + 1 - count
        return found

    def _rows(self, query: str, *values: Any) -> Iterator[Any]:
        try:
            with closing(self._db.execute(query, values)) as cursor:
                while page := cursor.fetchmany(PAGE):
                    yield from page
        except (sqlite3.Error, UnicodeError) as error:
            raise JournalError(f"the journal {self.name} cannot be read: {error}; run `fairlead verify`") from None


class ExportSource(Source):
    """A file that `fairlead export` has written, one record per line."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self.name = name
        self._file = file
        self._gaps = Gaps()
        self._lines: dict[str | None, array[int]] = {}
        self._heads: dict[str, tuple[str, bool]] = {}
        self._newest: dict[str | None, float] = {}
        self._times = array("d")
        self._versions: dict[str, dict[str, str]] = {}
        self._index()

    def close(self) -> None:
        self._file.close()

    def _index(self) -> None:
        offset = 0
        for number, line in enumerate(self._file, 1):
            start, offset = offset, offset + len(line)
            if not line.strip():
                continue
            try:
                head = _head_decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeError):
                self._bad_line(number, "it is no record")
                continue
            if head.kind == "note":
                if head.note in _GAPS:
                    self._gaps.notes[head.note] = self._gaps.notes.get(head.note, 0) + 1
                continue
            if head.step is None or not head.id:
                self._bad_line(number, "write the file with `fairlead export --format jsonl`")
                continue
            session = head.step.session_id
            self._lines.setdefault(session, array("q")).append(start)
            self._times.append(_time_of(line))
            self._newest[session] = max(self._newest.get(session, 0.0), head.at / 1e9)
            if session is not None:
                root, is_cold = self._heads.get(session) or (_root(session, head), True)
                self._heads[session] = (root, is_cold and not _is_beginning(head))

    def _bad_line(self, number: int, problem: str) -> None:
        self._gaps.bad_lines += 1
        self._gaps.first_bad = self._gaps.first_bad or f"line {number} of {self.name}: {problem}"

    def heads(self, selection: Selection) -> dict[str | None, _SessionHead]:
        found: dict[str | None, _SessionHead] = {}
        for session, lines in self._lines.items():
            is_selected = selection.since is None or self._newest[session] >= selection.since
            root, is_cold = self._heads[session] if session is not None else ("", False)
            found[session] = _SessionHead(root, len(lines), is_cold, is_selected)
        return found

    def read(self, session: str | None, events: Collection[str], gaps: Gaps) -> Iterator[Recorded | MissingSteps]:
        wanted = frozenset(events)
        for offset in self._lines.get(session, ()):
            self._file.seek(offset)
            line = self._file.readline()
            head = _head_decoder.decode(line)
            if head.step is not None and head.step.event and head.step.event not in wanted:
                continue
            try:
                body, policy, missing = decode_body(line.rstrip(), lambda _: None)
                if body.unwritable is not None or body.erased is not None:
                    raise BadBody("it could not be written" if body.erased is None else "its body was erased")
            except BadBody as problem:
                gaps.unreadable += 1
                gaps.first_bad = gaps.first_bad or f"record {head.id} of {self.name}: {problem}"
                yield Unreadable
                continue
            if policy is not None and policy not in self._versions and body.policy is not NOTHING:
                self._versions[policy] = _versions_in(bytes(body.policy))
            yield Recorded(body, self, policy, missing)

    def versions(self, policy: str | None) -> dict[str, str]:
        return {} if policy is None else self._versions.get(policy, {})

    def newest(self, count: int) -> list[float]:
        return heapq.nlargest(count, self._times)

    def gaps(self) -> Gaps:
        return self._gaps


def _versions_in(policy: bytes) -> dict[str, str]:
    """The version of each hook that can decide, in the text of a policy: a list of hooks, or an object with one."""
    try:
        found = msgspec.json.decode(policy)
        hooks = found["hooks"] if isinstance(found, dict) else found
        return {hook["name"]: hook["version"] for hook in hooks if hook.get("phase") != "observe"}
    except (msgspec.MsgspecError, UnicodeError, KeyError, TypeError, AttributeError):
        return {}


class Traffic:
    """Several sources, read as one."""

    def __init__(self, sources: Iterable[Source], selection: Selection | None = None) -> None:
        self.sources = list(sources)
        self.selection = self._with_last(selection or Selection())
        self.gaps = Gaps()
        for source in self.sources:
            self.gaps.add(source.gaps())

    def _with_last(self, selection: Selection) -> Selection:
        """The selection with the time from which the last records count."""
        if selection.last is None:
            return selection
        times = heapq.nlargest(selection.last, (at for one in self.sources for at in one.newest(selection.last)))
        since = times[-1] if times else 0.0
        return msgspec.structs.replace(selection, last=None, since=max(since, selection.since or 0.0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for source in self.sources:
            source.close()

    def groups(self) -> list[Group]:
        """All sessions with selected records, each with its subagents; in the order of their first records."""
        found: dict[str | None, Group] = {}
        selected: set[str | None] = set()  # the roots of those that have selected records
        heads = [source.heads(self.selection) for source in self.sources]
        roots = {name: head.root for known in heads for name, head in known.items() if name is not None}
        for number, known in enumerate(heads):
            for name, head in known.items():
                root = None if name is None else _top(name, roots)
                group = found.setdefault(root, Group(root))
                group.parts.append((number, name, head.records))
                group.is_cold = group.is_cold or head.is_cold or (root is not None and root not in roots)
                if head.is_selected:
                    selected.add(root)
        found = {root: group for root, group in found.items() if root in selected}
        wanted = self.selection.session
        if wanted is not None:
            chosen = [group for group in found.values() if any(name == wanted for _, name, _ in group.parts)]
            if not chosen:
                raise FairleadError(f"no record has the session {wanted!r}; `fairlead log` lists them")
            return chosen
        return list(found.values())

    def steps(self, group: Group, events: Collection[str]) -> Iterator[Recorded | MissingSteps]:
        """The steps of a group, in the order in which they began.

        `MissingSteps` stands for those that are gone or cannot be read, as early as that is known.
        """
        parts = [self._part(number, session, events) for number, session, _ in group.parts]
        merged = parts[0] if len(parts) == 1 else heapq.merge(*parts, key=_began)
        return merged if len({number for number, *_ in group.parts}) == 1 else _without_copies(merged)

    def _part(self, number: int, session: str | None, events: Collection[str]) -> Iterator[Recorded | MissingSteps]:
        """The steps of one session in one source, in order."""
        held: list[Recorded | MissingSteps] = []
        for recorded in self.sources[number].read(session, events, self.gaps):
            held.append(recorded)
            if len(held) >= 2 * WINDOW:
                held.sort(key=_began)
                yield from held[:WINDOW]
                del held[:WINDOW]
        held.sort(key=_began)
        yield from held


def _without_copies(steps: Iterator[Recorded | MissingSteps]) -> Iterator[Recorded | MissingSteps]:
    """Each record once, though two sources have it: a journal and its export, say."""
    began: float | None = None
    known: set[str] = set()
    for recorded in steps:
        if isinstance(recorded, MissingSteps):
            yield recorded
            continue
        if recorded.began != began:
            began = recorded.began
            known.clear()
        if recorded.id not in known:
            known.add(recorded.id)
            yield recorded


def _top(session: str, roots: dict[str, str]) -> str:
    """The session in which a chain of subagents began."""
    seen = {session}
    while (above := roots.get(session, session)) not in seen:
        seen.add(above)
        session = above
    return session


def open_source(path: str, stdin: IO[bytes] | None = None) -> Source:
    """Open a journal, an exported file, or `-` for an exported file on stdin."""
    if path == "-":
        if stdin is None:
            raise FairleadError("there is no stdin to read from")
        held = tempfile.TemporaryFile()  # noqa: SIM115 (the source closes it)
        while block := stdin.read(1 << 20):
            held.write(block)
        held.seek(0)
        return ExportSource(held, "stdin")
    file = Path(path)
    try:
        with file.open("rb") as opened:
            start = opened.read(16)
    except FileNotFoundError:
        return JournalSource(file)  # which says what to do
    except OSError as error:
        raise FairleadError(f"{path} cannot be read: {error.strerror}") from None
    if start.startswith(b"SQLite format 3") or not start:
        return JournalSource(file)
    if start.lstrip()[:1] != b"{":
        raise FairleadError(f"{path} is neither a journal nor a file that `fairlead export` has written")
    return ExportSource(file.open("rb"), path)
