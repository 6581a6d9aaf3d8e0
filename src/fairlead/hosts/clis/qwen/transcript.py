"""The transcripts of Qwen Code: a file per session, and one per subagent in a folder beside them."""

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
)


class _TranscriptReader(LineReader):
    def __init__(self, source: TranscriptSource) -> None:
        super().__init__(source)
        self.has_begun = False

    def line(self, line: dict[str, Any]) -> Entries:
        handle = {"user": self._user, "assistant": self._assistant, "tool_result": self._results}.get(
            str(line.get("type"))
        )
        if handle is None:
            return
        builder, at = self.builder, timestamp_of(line.get("timestamp"))
        builder.session_id = a_text(line.get("sessionId")) or builder.session_id
        builder.cwd = a_text(line.get("cwd")) or builder.cwd
        agent_id, name = a_text(line.get("agentId")), a_text(line.get("agentName"))
        builder.agent = Agent(agent_id, name, builder.session_id) if line.get("isSidechain") else None
        parts = a_list(a_dict(line.get("message")).get("parts"))
        if not self.has_begun:
            self.has_begun = True
            yield self._begin(parts, at)
        yield from handle(line, parts, at)

    def _begin(self, parts: list[dict[str, Any]], at: float | None) -> TranscriptEntry:
        agent = self.builder.agent
        if agent is None:
            return self.builder.entry("session_start", "start", at)
        first = texts_of(parts) or None
        return self.builder.entry(
            "subagent_start", f"start {agent.id}", at, agent_name=agent.name, initial_message=first
        )

    def _user(self, line: dict[str, Any], parts: list[dict[str, Any]], at: float | None) -> Entries:
        text = texts_of(parts)
        if text and self.builder.agent is None:
            source = "background" if text.startswith("<task-notification>") else "user"
            yield self.builder.entry("before_input", str(line.get("uuid")), at, input=text, source=source)

    def _assistant(self, line: dict[str, Any], parts: list[dict[str, Any]], at: float | None) -> Entries:
        calls = [a_dict(part["functionCall"]) for part in parts if "functionCall" in part]
        for call in calls:
            call_id, tool = a_text(call.get("id")), a_text(call.get("name"))
            if call_id and tool:
                yield self.builder.call(call_id, tool, a_dict(call.get("args")), at)
        if not calls and texts_of([part for part in parts if not part.get("thought")]):
            agent = self.builder.agent
            about = {} if agent is None else {"agent_name": agent.name}
            event = "before_turn_end" if agent is None else "subagent_stop"
            yield self.builder.entry(event, str(line.get("uuid")), at, **about)

    def _results(self, line: dict[str, Any], parts: list[dict[str, Any]], at: float | None) -> Entries:
        about = a_dict(line.get("toolCallResult"))
        for part in parts:
            reply = a_dict(part.get("functionResponse"))
            output = a_dict(reply.get("response"))
            ran = False if about.get("executionStatus") == "not_started" else None
            outcome: Outcome = "error" if "error" in output else "ok"
            if about.get("errorType") == "execution_denied":
                outcome = "denied"
            yield from self.builder.result(reply.get("id"), at, content(output), outcome, ran)


TRANSCRIPTS = Transcripts(host="qwen", folders=(".qwen/projects", ".qwen/tmp"), read=_TranscriptReader.read)
