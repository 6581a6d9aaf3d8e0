"""The transcripts of Factory Droid: a file per session; a subagent's is a session that another one called."""

from __future__ import annotations

from typing import Any

from ....lifecycle import Agent, Outcome
from ..mapping import a_dict, a_text, content
from ..transcripts.transcript import (
    Entries,
    LineReader,
    TranscriptEntry,
    Transcripts,
    TranscriptSource,
    a_list,
    texts_of,
    timestamp_of,
    words_of,
)


class _TranscriptReader(LineReader):
    def __init__(self, source: TranscriptSource) -> None:
        super().__init__(source)
        self.at: float | None = None
        self.head: dict[str, Any] | None = None

    def line(self, line: dict[str, Any]) -> Entries:
        kind = line.get("type")
        if kind == "session_start":
            self.head = line
        elif kind == "message":
            self.at = timestamp_of(line.get("timestamp"))
            if self.head is not None:  # which does not say when it was
                head, self.head = self.head, None
                yield self._begin(head)
            yield from self._message(line, a_dict(line.get("message")))
        elif kind == "agent_turn_outcome":
            yield self._end(line)

    def _begin(self, head: dict[str, Any]) -> TranscriptEntry:
        builder = self.builder
        builder.session_id = a_text(head.get("id")) or builder.session_id
        builder.cwd = a_text(head.get("cwd"))
        caller = a_text(head.get("callingSessionId"))
        if caller is None:
            return builder.entry("session_start", "start", self.at)
        builder.agent = Agent(builder.session_id, None, caller)
        return builder.entry("subagent_start", "start", self.at)

    def _message(self, line: dict[str, Any], message: dict[str, Any]) -> Entries:
        body = message.get("content")
        for block in a_list(body):
            call_id, tool = a_text(block.get("id")), a_text(block.get("name"))
            if block.get("type") == "tool_use" and call_id and tool:
                yield self.builder.call(call_id, tool, a_dict(block.get("input")), self.at)
            elif block.get("type") == "tool_result":
                yield from self._result(block)
        text = texts_of(body)
        if message.get("role") != "user" or not text or text.startswith("<system-reminder>") or self.builder.agent:
            return
        source = "background" if message.get("visibility") == "llm_only" else "user"
        yield self.builder.entry("before_input", str(line.get("id")), self.at, input=text, source=source)

    def _result(self, block: dict[str, Any]) -> Entries:
        output = content(block.get("content"))
        outcome: Outcome = "error" if block.get("is_error") else "ok"
        not_run = outcome == "error" and words_of(output).startswith("Error: Not found: ")
        yield from self.builder.result(block.get("tool_use_id"), self.at, output, outcome, False if not_run else None)

    def _end(self, line: dict[str, Any]) -> TranscriptEntry:
        key = f"end {line.get('turnId')}"
        if line.get("reason") != "completed":
            return self.builder.entry("turn_end", key, self.at, stop_reason="cancelled")
        return self.builder.entry("before_turn_end" if self.builder.agent is None else "subagent_stop", key, self.at)


TRANSCRIPTS = Transcripts(host="droid", folders=(".factory/sessions",), read=_TranscriptReader.read)
