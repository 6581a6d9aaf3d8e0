"""What the transcripts of all CLIs share: where they are, and how they are read.

A transcript is read line by line, and never as a whole. Its entries are events of the lifecycle, so that fairlead can
compare them with the steps in the journal, and import them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ....errors import FairleadError, UnknownName
from ....journal.entry import escape_surrogates
from ....lifecycle import EVENTS, Agent, Outcome, Step
from ....tools import Tools
from ..mapping import ALL, EXPERIMENTAL, canonical_name
from ..packages import has_part, load_part

LONGEST_LINE = 64 << 20
"""Bytes. A line that is longer is not read, and counts as garbage."""
LARGEST_DOCUMENT = 512 << 20
"""Bytes of a transcript that is one JSON document, and so must be read as a whole."""
OPEN_CALLS = 10_000
"""Calls without a result that are remembered."""

_decode = msgspec.json.Decoder().decode


class TranscriptEntry(NamedTuple):
    """One event of the lifecycle, as a transcript has it."""

    event: str
    """The name of the event, as in `fairlead.lifecycle`."""
    fields: dict[str, Any]
    """The fields of the step."""
    at: float | None
    """Seconds since 1970, if the transcript has a time."""
    key: str
    """Identifies the entry in its session, and is the same each time the transcript is read."""
    session_id: str
    turn_id: str | None = None
    cwd: str | None = None
    agent: Agent | None = None
    """The subagent, or None for the session's own agent."""
    entry_point: str | None = None
    """Which of the CLI's programs ran, where the transcript says so."""

    def step(self, host: str, tools: Tools, metadata: dict[str, Any]) -> Step:
        """The step that hooks would have received."""
        fields = dict(self.fields)
        if "tool" in fields:
            kind, target, safety = tools.classify(fields["tool"], fields["args"], host)
            fields |= {"kind": kind, "target": target, "safety": safety}
        step: Step = EVENTS[self.event].step(
            session_id=self.session_id, turn_id=self.turn_id, cwd=self.cwd, host=host, metadata=metadata,
            agent=self.agent or Agent(self.session_id), **fields,
        )  # fmt: skip
        return step


Entries = Iterator[TranscriptEntry]


class TranscriptSource:
    """A transcript that is being read, with the number of bytes, lines and garbage lines so far."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = 0
        self.garbage = 0
        self.read = 0

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield the lines that are JSON objects. The last line of an open session may be incomplete."""
        try:
            with self.path.open("rb") as file:
                while line := file.readline(LONGEST_LINE):
                    self.read += len(line)
                    whole = line.endswith(b"\n")
                    while not whole and (more := file.readline(LONGEST_LINE)):  # too long to be held
                        self.read += len(more)
                        line, whole = b"too long", more.endswith(b"\n")
                    if line.strip():
                        yield from self._object(line, whole)
        except OSError as error:
            raise FairleadError(f"{self.path} cannot be read: {error.strerror}") from None

    def _object(self, line: bytes, whole: bool) -> Iterator[dict[str, Any]]:
        self.lines += 1
        found = _json(line)
        if isinstance(found, dict):
            yield found
        elif whole or found is not None:
            self.garbage += 1

    def document(self) -> dict[str, Any]:
        """The file as one JSON object. Anything else counts as garbage, and gives an empty object."""
        try:
            self.read = size = self.path.stat().st_size
            data = self.path.read_bytes() if size <= LARGEST_DOCUMENT else b""
        except OSError as error:
            raise FairleadError(f"{self.path} cannot be read: {error.strerror}") from None
        self.lines += 1
        found = _json(data)
        if isinstance(found, dict):
            return found
        self.garbage += 1
        return {}


def _json(data: bytes) -> Any:
    """Decode JSON; None if it is invalid. Lone surrogates, which JavaScript writes, become visible text."""
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        pass
    try:
        return escape_surrogates(json.loads(data))
    except (ValueError, RecursionError):
        return None


class EntryBuilder:
    """Builds the entries of one transcript: adds session and agent, and joins results to their calls."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.turn_id: str | None = None
        self.cwd: str | None = None
        self.agent: Agent | None = None
        self.entry_point: str | None = None
        self._open: dict[str, tuple[str, dict[str, Any]]] = {}

    def entry(self, event: str, key: str, at: float | None, /, **fields: Any) -> TranscriptEntry:
        return TranscriptEntry(
            event, fields, at, key, self.session_id, self.turn_id, self.cwd, self.agent, self.entry_point
        )

    def call(self, call_id: str, tool: str, args: dict[str, Any], at: float | None) -> TranscriptEntry:
        """The entry of a tool call."""
        self._open[call_id] = (tool, args)
        if len(self._open) > OPEN_CALLS:
            del self._open[next(iter(self._open))]
        return self.entry("before_tool", call_id, at, tool=tool, args=args, call_id=call_id)

    def result(
        self, call_id: object, at: float | None, output: Any, outcome: Outcome = "ok", ran: bool | None = None
    ) -> Entries:
        """The entry of a call's result. There is none without a call, or after the first result."""
        known = self._open.pop(call_id, None) if isinstance(call_id, str) else None
        if known is None:
            return
        tool, args = known
        failed = outcome != "ok"
        error = words_of(output) or outcome if failed else None
        yield self.entry(
            "after_tool", str(call_id), at, tool=tool, args=args, call_id=call_id, output=output, outcome=outcome,
            executed=outcome not in ("denied", "aborted") if ran is None else ran, is_error=failed, error=error,
        )  # fmt: skip


class LineReader:
    """Reads a transcript line by line. A subclass turns each line into entries."""

    def __init__(self, source: TranscriptSource) -> None:
        self.builder = EntryBuilder(source.path.stem)

    def line(self, line: dict[str, Any]) -> Entries:
        raise NotImplementedError

    @classmethod
    def read(cls, source: TranscriptSource) -> Entries:
        """Yield the entries of a transcript."""
        reader = cls(source)
        for line in source.objects():
            yield from reader.line(line)


class Transcripts(msgspec.Struct, frozen=True, kw_only=True):
    """The transcripts of one CLI."""

    host: str
    folders: tuple[str, ...]
    """The folders in a user's home."""
    names: tuple[str, ...] = ("*.jsonl",)
    """Patterns of the files' names."""
    variable: tuple[str, str] | None = None
    """A variable that names another folder, and the folder in the home that it replaces."""
    ids: bool = False
    """Whether hooks receive the same call ids as the transcript has."""
    read: Callable[[TranscriptSource], Entries]

    def places(self, home: Path, environ: Mapping[str, str] = os.environ) -> list[Path]:
        """The folders that the CLI itself uses."""
        moved = environ.get(self.variable[0]) if self.variable else None
        if moved and self.variable:
            return [Path(moved) / Path(folder).relative_to(self.variable[1]) for folder in self.folders]
        return [home / folder for folder in self.folders]

    def in_home(self, home: Path) -> list[Path]:
        """The transcript folders that exist in a home."""
        return [place for folder in self.folders if (place := home / folder).is_dir()]

    def files(self, place: Path) -> list[Path]:
        """The transcripts in a folder or a home, oldest first. A file is returned as it is."""
        if place.is_file():
            return [place]
        folders = self.in_home(place) or [place]
        found = {path for folder in folders for name in self.names for path in folder.rglob(name) if path.is_file()}
        return sorted(found, key=lambda path: (changed(path), path))


def changed(path: Path) -> float:
    """When a file was last written, or the log beside it if it is a database."""
    times = []
    for each in (path, path.with_name(path.name + "-wal")):
        with suppress(OSError):
            times.append(each.stat().st_mtime)
    return max(times, default=0.0)


def changed_since(transcripts: Transcripts, places: Iterable[Path], since: float | None) -> Iterator[TranscriptSource]:
    """The transcripts of a CLI below these places, oldest first. Those that were not written since are left out."""
    for place in places:
        for path in transcripts.files(place):
            if since is None or changed(path) >= since:
                yield TranscriptSource(path)


HOSTS = tuple(name for name in (*ALL, *EXPERIMENTAL) if has_part(name, "transcript"))
"""The CLIs whose transcripts fairlead can read."""


def transcripts_of(name: str) -> Transcripts:
    """The transcripts of a CLI; `claude` is Claude Code."""
    name = canonical_name(name) or name
    if name not in HOSTS:
        raise UnknownName("CLI", name, HOSTS)
    found: Transcripts = load_part(name, "transcript").TRANSCRIPTS
    return found


# --- reading what others wrote ------------------------------------------------------------------


def timestamp_of(value: Any) -> float | None:
    """Seconds since 1970, from an ISO text or from milliseconds."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    try:
        at = datetime.fromisoformat(value).timestamp() if isinstance(value, str) else value / 1000
        datetime.fromtimestamp(at)  # raises if it is out of range
    except (ValueError, OverflowError, OSError):
        return None
    return at


def a_list(value: Any) -> list[dict[str, Any]]:
    """The objects in a value that should be a list of objects."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def texts_of(content: Any, key: str = "text") -> str:
    """The text of a message: a string, or a list of blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(text for block in a_list(content) if isinstance(text := block.get(key), str) and text)


def words_of(output: Any) -> str:
    """A tool's output as text, to look for words in."""
    if isinstance(output, dict):
        inner = output.get("error", output.get("content"))
        return inner if isinstance(inner, str) else texts_of(inner)
    return texts_of(output)
