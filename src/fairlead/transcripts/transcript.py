"""What the transcripts of all CLIs share: where they are, how they are read, and what is told of them.

A transcript is read as it is written: from its first line to its last, and never as a whole. What it tells are
moments of the lifecycle, so that they can be compared with the journal's steps, and can become some.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..errors import FairleadError, UnknownName
from ..journal.entry import legible
from ..lifecycle import EVENTS, Agent, Outcome, Step
from ..tools import Tools

LONGEST_LINE = 64 << 20
"""Bytes. A line that is longer is not read, and counts as garbage."""
LARGEST_DOCUMENT = 512 << 20
"""Bytes of a transcript that is one JSON document, and so must be read as a whole."""
OPEN_CALLS = 10_000
"""Calls without a result that are remembered."""

_decode = msgspec.json.Decoder().decode


class Told(NamedTuple):
    """One moment, as a transcript tells it."""

    event: str
    """Ours."""
    fields: dict[str, Any]
    """The step's own."""
    at: float | None
    """When it was, in seconds since 1970, if that is told."""
    key: str
    """What it is known by: in its session there is no other, and it is the same whenever it is read."""
    session_id: str
    turn_id: str | None = None
    cwd: str | None = None
    agent: Agent | None = None
    """The subagent whose moment it is; None is the session's own agent."""

    def step(self, host: str, tools: Tools, metadata: dict[str, Any]) -> Step:
        """The step that a hook would have been asked about."""
        fields = dict(self.fields)
        if "tool" in fields:
            kind, target, safety = tools.classify(fields["tool"], fields["args"], host)
            fields |= {"kind": kind, "target": target, "safety": safety}
        step: Step = EVENTS[self.event].step(
            session_id=self.session_id, turn_id=self.turn_id, cwd=self.cwd, host=host, metadata=metadata,
            agent=self.agent or Agent(self.session_id), **fields,
        )  # fmt: skip
        return step


class Source:
    """A file that is being read: how far, and what of it was garbage."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = 0
        self.garbage = 0
        self.read = 0

    def objects(self) -> Iterator[dict[str, Any]]:
        """The file's lines that are JSON objects. The last one may be half written: its session is not over."""
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
        """The file, if it is one JSON object; otherwise nothing, and it counts as garbage."""
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
    """What some JSON says; None if it is none. Half a character, which JavaScript writes down, is made visible."""
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        pass
    try:
        return legible(json.loads(data))
    except (ValueError, RecursionError):
        return None


class Story:
    """Puts the moments of one transcript together: whose they are, and which result belongs to which call."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.turn_id: str | None = None
        self.cwd: str | None = None
        self.agent: Agent | None = None
        self._open: dict[str, tuple[str, dict[str, Any]]] = {}

    def tell(self, event: str, key: str, at: float | None, /, **fields: Any) -> Told:
        return Told(event, fields, at, key, self.session_id, self.turn_id, self.cwd, self.agent)

    def call(self, call_id: str, tool: str, args: dict[str, Any], at: float | None) -> Told:
        """A tool was called."""
        self._open[call_id] = (tool, args)
        if len(self._open) > OPEN_CALLS:
            del self._open[next(iter(self._open))]
        return self.tell("before_tool", call_id, at, tool=tool, args=args, call_id=call_id)

    def result(
        self, call_id: object, at: float | None, output: Any, outcome: Outcome = "ok", ran: bool | None = None
    ) -> Iterator[Told]:
        """What came of a call, unless that was told before, or nobody called."""
        known = self._open.pop(call_id, None) if isinstance(call_id, str) else None
        if known is None:
            return
        tool, args = known
        failed = outcome != "ok"
        error = words_of(output) or outcome if failed else None
        yield self.tell(
            "after_tool", str(call_id), at, tool=tool, args=args, call_id=call_id, output=output, outcome=outcome,
            executed=outcome not in ("denied", "aborted") if ran is None else ran, is_error=failed, error=error,
        )  # fmt: skip


class Transcripts(msgspec.Struct, frozen=True, kw_only=True):
    """The transcripts of one CLI."""

    host: str
    folders: tuple[str, ...]
    """Where they are in a user's home."""
    names: tuple[str, ...] = ("*.jsonl",)
    """How the files are called."""
    variable: tuple[str, str] | None = None
    """A variable that names another folder than the home's, and which that stands for."""
    ids: bool = False
    """Whether a hook is told the ids that calls have in the transcript."""
    read: Callable[[Source], Iterator[Told]]

    def places(self, home: Path, environ: Mapping[str, str] = os.environ) -> list[Path]:
        """The folders that the CLI itself would use."""
        given = environ.get(self.variable[0]) if self.variable else None
        if given and self.variable:
            return [Path(given) / Path(folder).relative_to(self.variable[1]) for folder in self.folders]
        return [home / folder for folder in self.folders]

    def in_home(self, home: Path) -> list[Path]:
        """The folders that there are, if a place is somebody's home."""
        return [place for folder in self.folders if (place := home / folder).is_dir()]

    def files(self, place: Path) -> list[Path]:
        """The transcripts in a folder or in a home, the oldest first; or the file that was named."""
        if place.is_file():
            return [place]
        folders = self.in_home(place) or [place]
        found = {path for folder in folders for name in self.names for path in folder.rglob(name) if path.is_file()}
        return sorted(found, key=lambda path: (changed(path), path))


def changed(path: Path) -> float:
    """When a file was last written to, or the log beside it, if it is a database."""
    times = []
    for each in (path, path.with_name(path.name + "-wal")):
        with suppress(OSError):
            times.append(each.stat().st_mtime)
    return max(times, default=0.0)


HOSTS = ("claude_code", "codex", "gemini", "qwen", "copilot", "droid", "cline", "opencode")


def transcripts_of(name: str) -> Transcripts:
    """The transcripts of a CLI; `claude` is Claude Code."""
    name = {"claude": "claude_code", "claude-code": "claude_code"}.get(name, name)
    if name not in HOSTS:
        raise UnknownName("CLI", name, HOSTS)
    found: Transcripts = import_module(f"fairlead.transcripts.{name}").TRANSCRIPTS
    return found


# --- reading what others wrote ------------------------------------------------------------------


def moment_of(value: Any) -> float | None:
    """When something was, in seconds since 1970: from a text, or from milliseconds."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    try:
        at = datetime.fromisoformat(value).timestamp() if isinstance(value, str) else value / 1000
        datetime.fromtimestamp(at)  # or else it is no time that anybody could read
    except (ValueError, OverflowError, OSError):
        return None
    return at


def a_list(value: Any) -> list[dict[str, Any]]:
    """The objects in what should be a list of them."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def texts_of(content: Any, key: str = "text") -> str:
    """The text of a message, which is one, or a list of blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(text for block in a_list(content) if isinstance(text := block.get(key), str) and text)


def words_of(output: Any) -> str:
    """What a tool gave back, as a text to look for words in."""
    if isinstance(output, dict):
        inner = output.get("error", output.get("content"))
        return inner if isinstance(inner, str) else texts_of(inner)
    return texts_of(output)
