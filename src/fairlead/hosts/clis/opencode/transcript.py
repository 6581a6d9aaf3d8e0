"""The transcripts of OpenCode: one database of all sessions. Only conversations are looked at in it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any
from urllib.parse import quote

import msgspec

from ....errors import FairleadError
from ....lifecycle import Agent
from ..mapping import a_dict, a_text, content
from ..transcripts.transcript import Entries, EntryBuilder, TranscriptEntry, Transcripts, TranscriptSource, timestamp_of

_PARTS = """
SELECT s.id, s.parent_id, s.directory, s.agent, m.id, m.data, p.id, p.time_created, p.data
FROM session s JOIN message m ON m.session_id = s.id JOIN part p ON p.message_id = m.id
ORDER BY s.time_created, s.id, p.time_created, p.id
"""


def read(source: TranscriptSource) -> Entries:
    try:
        with closing(sqlite3.connect(f"file:{quote(str(source.path))}?mode=ro", uri=True, timeout=10)) as db:
            yield from _sessions(db, source)
    except sqlite3.Error as error:
        raise FairleadError(f"{source.path} cannot be read as a database of OpenCode's: {error}") from None


def _sessions(db: sqlite3.Connection, source: TranscriptSource) -> Entries:
    builder: EntryBuilder | None = None
    for session, parent, folder, agent, message_id, message, part_id, at, part in db.execute(_PARTS):
        source.lines += 1
        source.read += len(part)
        when = timestamp_of(at)
        if builder is None or builder.session_id != session:
            builder = EntryBuilder(session)
            builder.cwd = a_text(folder)
            builder.agent = Agent(session, a_text(agent), parent) if parent else None
            yield _begin(builder, when)
        builder.turn_id = message_id
        try:
            about, part_data = (msgspec.json.decode(data, type=dict[str, Any]) for data in (message, part))
        except (msgspec.MsgspecError, UnicodeError, RecursionError, TypeError):
            source.garbage += 1
        else:
            yield from _part(builder, about, part_data, part_id, when)


def _begin(builder: EntryBuilder, at: float | None) -> TranscriptEntry:
    if builder.agent is None:
        return builder.entry("session_start", "start", at)
    return builder.entry("subagent_start", "start", at, agent_name=builder.agent.name)


def _part(builder: EntryBuilder, message: dict[str, Any], part: dict[str, Any], key: str, at: float | None) -> Entries:
    text = a_text(part.get("text"))
    match part.get("type"):
        case "text" if message.get("role") == "user" and text and not part.get("synthetic") and builder.agent is None:
            yield builder.entry("before_input", key, at, input=text)
        case "tool":
            yield from _tool(builder, part, at)
        case "step-finish" if part.get("reason") == "stop":
            yield builder.entry("before_turn_end" if builder.agent is None else "subagent_stop", key, at)


def _tool(builder: EntryBuilder, part: dict[str, Any], at: float | None) -> Entries:
    call_id, tool, state = a_text(part.get("callID")), a_text(part.get("tool")), a_dict(part.get("state"))
    if not call_id or not tool:
        return
    yield builder.call(call_id, tool, a_dict(state.get("input")), at)
    done = timestamp_of(a_dict(state.get("time")).get("end"))
    unknown = tool == "invalid"  # what it calls a tool that is none
    if state.get("status") == "error" or unknown:
        part_data = state.get("error", state.get("output"))
        yield from builder.result(call_id, done, content(part_data), "error", False if unknown else None)
    elif state.get("status") == "completed":
        yield from builder.result(call_id, done, content(state.get("output")))


TRANSCRIPTS = Transcripts(
    host="opencode", folders=(".local/share/opencode",), names=("opencode*.db",),
    variable=("XDG_DATA_HOME", ".local/share"), ids=True, read=read,
)  # fmt: skip
