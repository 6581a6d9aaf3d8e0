"""The transcripts of Cline: a document per session, which is written anew each time, and one per subagent."""

from __future__ import annotations

import re
from typing import Any

from ....lifecycle import Agent, Outcome
from ..mapping import a_dict, a_text, content
from ..transcripts.transcript import (
    Entries,
    EntryBuilder,
    Transcripts,
    TranscriptSource,
    a_list,
    texts_of,
    timestamp_of,
    words_of,
)

_USER_INPUT = re.compile(r"</?user_input[^>]*>")
_NOT_RUN = ("was rejected before execution", "Invalid input", "requires approval in a TTY session")


def read(source: TranscriptSource) -> Entries:
    document = source.document()
    origin = a_dict(document.get("origin"))
    builder = EntryBuilder(a_text(document.get("sessionId")) or source.path.name.removesuffix(".messages.json"))
    if origin.get("mode") == "subagent":
        parent = a_text(origin.get("parentThreadId")) or source.path.parent.name
        builder.session_id, builder.agent = parent, Agent(a_text(origin.get("subagent")), None, parent)
    beside = TranscriptSource(source.path.with_name(f"{builder.session_id}.json"))
    if beside.path.is_file():
        builder.cwd = a_text(beside.document().get("cwd"))
    messages = a_list(document.get("messages"))
    if messages:
        key, event = (
            ("start", "session_start") if builder.agent is None else (f"start {builder.agent.id}", "subagent_start")
        )
        yield builder.entry(event, key, timestamp_of(messages[0].get("ts")))
    for message in messages:
        yield from _message(builder, message)


def _message(builder: EntryBuilder, message: dict[str, Any]) -> Entries:
    body, at, key = message.get("content"), timestamp_of(message.get("ts")), str(message.get("id"))
    blocks = a_list(body)
    for block in blocks:
        call_id, tool = a_text(block.get("id")), a_text(block.get("name"))
        if block.get("type") == "tool_use" and call_id and tool:
            yield builder.call(call_id, tool, a_dict(block.get("input")), at)
        elif block.get("type") == "tool_result":
            yield from _result(builder, block, at)
    text = texts_of(body)
    if message.get("role") == "assistant":
        if text and not any(block.get("type") == "tool_use" for block in blocks):
            yield builder.entry("before_turn_end" if builder.agent is None else "subagent_stop", key, at)
    elif text and not text.startswith("<hook_context") and builder.agent is None:
        yield builder.entry("before_input", key, at, input=_USER_INPUT.sub("", text))


def _result(builder: EntryBuilder, block: dict[str, Any], at: float | None) -> Entries:
    output = content(block.get("content"))
    failed = block.get("is_error") or any(part.get("success") is False for part in a_list(output))
    outcome: Outcome = "error" if failed else "ok"
    text = words_of(output)
    not_run = bool(block.get("is_error")) and any(words in text for words in _NOT_RUN)
    yield from builder.result(block.get("tool_use_id"), at, output, outcome, False if not_run else None)


TRANSCRIPTS = Transcripts(
    host="cline", folders=(".cline/data/sessions",), names=("*.messages.json",), variable=("CLINE_DIR", ".cline"),
    ids=True, read=read,
)  # fmt: skip
