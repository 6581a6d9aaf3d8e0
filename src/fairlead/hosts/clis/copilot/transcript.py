"""The transcripts of Copilot CLI: a file of events per session, its subagents' among them."""

from __future__ import annotations

from typing import Any

from ....lifecycle import Agent, Outcome
from ..mapping import a_dict, a_text, content
from ..transcripts.transcript import Entries, LineReader, Transcripts, TranscriptSource, timestamp_of


class _TranscriptReader(LineReader):
    def __init__(self, source: TranscriptSource) -> None:
        super().__init__(source)
        self.builder.session_id = source.path.parent.name
        self.names: dict[str | None, str | None] = {}

    def line(self, line: dict[str, Any]) -> Entries:
        handle = {
            "session.start": self._start, "session.resume": self._start, "user.message": self._user,
            "assistant.message": self._assistant, "tool.execution_start": self._call,
            "tool.execution_complete": self._result, "subagent.started": self._subagent,
            "subagent.completed": self._subagent_done, "session.shutdown": self._shutdown,
        }.get(str(line.get("type")))  # fmt: skip
        if handle is None:
            return
        data, agent_id = a_dict(line.get("data")), a_text(line.get("agentId"))
        if agent_id is not None and "agentName" in data:
            self.names[agent_id] = a_text(data["agentName"])
        builder = self.builder
        builder.agent = Agent(agent_id, self.names.get(agent_id), builder.session_id) if agent_id else None
        yield from handle(str(line.get("id")), data, timestamp_of(line.get("timestamp")))

    def _start(self, key: str, data: dict[str, Any], at: float | None) -> Entries:
        builder = self.builder
        builder.session_id = a_text(data.get("sessionId")) or builder.session_id
        builder.cwd = a_text(a_dict(data.get("context")).get("cwd")) or builder.cwd
        source = "new" if "startTime" in data else "resume"
        yield builder.entry("session_start", key, at, source=source)

    def _user(self, key: str, data: dict[str, Any], at: float | None) -> Entries:
        text = a_text(data.get("content"))
        if text and self.builder.agent is None:
            yield self.builder.entry("before_input", key, at, input=text)

    def _assistant(self, key: str, data: dict[str, Any], at: float | None) -> Entries:
        if data.get("content") and not data.get("toolRequests") and self.builder.agent is None:
            yield self.builder.entry("before_turn_end", key, at)

    def _call(self, key: str, data: dict[str, Any], at: float | None) -> Entries:
        call_id, tool = a_text(data.get("toolCallId")), a_text(data.get("toolName"))
        if call_id and tool:
            yield self.builder.call(call_id, tool, a_dict(data.get("arguments")), at)

    def _result(self, key: str, data: dict[str, Any], at: float | None) -> Entries:
        error = a_dict(data.get("error"))
        message = a_text(error.get("message"))
        outcome: Outcome = "ok" if data.get("success") else "denied" if error.get("code") == "denied" else "error"
        not_run = message is not None and message.startswith("Tool '") and message.endswith("' does not exist.")
        output = content(a_dict(data.get("result")).get("content")) if data.get("success") else message
        yield from self.builder.result(data.get("toolCallId"), at, output, outcome, False if not_run else None)

    def _subagent(self, key: str, data: dict[str, Any], at: float | None) -> Entries:
        yield self.builder.entry("subagent_start", key, at, agent_name=a_text(data.get("agentName")))

    def _subagent_done(self, key: str, data: dict[str, Any], at: float | None) -> Entries:
        yield self.builder.entry("subagent_stop", key, at, agent_name=a_text(data.get("agentName")))

    def _shutdown(self, key: str, data: dict[str, Any], at: float | None) -> Entries:
        yield self.builder.entry("session_end", key, at, reason=a_text(data.get("shutdownType")))


TRANSCRIPTS = Transcripts(
    host="copilot", folders=(".copilot/session-state",), names=("events.jsonl",), read=_TranscriptReader.read
)
