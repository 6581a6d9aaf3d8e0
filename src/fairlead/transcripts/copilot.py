"""The transcripts of Copilot CLI: a file of events per session, its subagents' among them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..hosts.host import a_dict, a_text, content
from ..lifecycle import Agent, Outcome
from .transcript import Source, Story, Told, Transcripts, moment_of


def read(source: Source) -> Iterator[Told]:
    reader = _Reader(source)
    for line in source.objects():
        yield from reader.line(line)


class _Reader:
    def __init__(self, source: Source) -> None:
        self.story = Story(source.path.parent.name)
        self.names: dict[str | None, str | None] = {}

    def line(self, line: dict[str, Any]) -> Iterator[Told]:
        tell = {
            "session.start": self._start, "session.resume": self._start, "user.message": self._user,
            "assistant.message": self._assistant, "tool.execution_start": self._call,
            "tool.execution_complete": self._result, "subagent.started": self._subagent,
            "subagent.completed": self._subagent_done, "session.shutdown": self._shutdown,
        }.get(str(line.get("type")))  # fmt: skip
        if tell is None:
            return
        data, agent_id = a_dict(line.get("data")), a_text(line.get("agentId"))
        if agent_id is not None and "agentName" in data:
            self.names[agent_id] = a_text(data["agentName"])
        story = self.story
        story.agent = Agent(agent_id, self.names.get(agent_id), story.session_id) if agent_id else None
        yield from tell(str(line.get("id")), data, moment_of(line.get("timestamp")))

    def _start(self, key: str, data: dict[str, Any], at: float | None) -> Iterator[Told]:
        story = self.story
        story.session_id = a_text(data.get("sessionId")) or story.session_id
        story.cwd = a_text(a_dict(data.get("context")).get("cwd")) or story.cwd
        source = "new" if "startTime" in data else "resume"
        yield story.tell("session_start", key, at, source=source)

    def _user(self, key: str, data: dict[str, Any], at: float | None) -> Iterator[Told]:
        text = a_text(data.get("content"))
        if text and self.story.agent is None:
            yield self.story.tell("before_input", key, at, input=text)

    def _assistant(self, key: str, data: dict[str, Any], at: float | None) -> Iterator[Told]:
        if data.get("content") and not data.get("toolRequests") and self.story.agent is None:
            yield self.story.tell("before_turn_end", key, at)

    def _call(self, key: str, data: dict[str, Any], at: float | None) -> Iterator[Told]:
        call_id, tool = a_text(data.get("toolCallId")), a_text(data.get("toolName"))
        if call_id and tool:
            yield self.story.call(call_id, tool, a_dict(data.get("arguments")), at)

    def _result(self, key: str, data: dict[str, Any], at: float | None) -> Iterator[Told]:
        error = a_dict(data.get("error"))
        said = a_text(error.get("message"))
        outcome: Outcome = "ok" if data.get("success") else "denied" if error.get("code") == "denied" else "error"
        not_run = said is not None and said.startswith("Tool '") and said.endswith("' does not exist.")
        output = content(a_dict(data.get("result")).get("content")) if data.get("success") else said
        yield from self.story.result(data.get("toolCallId"), at, output, outcome, False if not_run else None)

    def _subagent(self, key: str, data: dict[str, Any], at: float | None) -> Iterator[Told]:
        yield self.story.tell("subagent_start", key, at, agent_name=a_text(data.get("agentName")))

    def _subagent_done(self, key: str, data: dict[str, Any], at: float | None) -> Iterator[Told]:
        yield self.story.tell("subagent_stop", key, at, agent_name=a_text(data.get("agentName")))

    def _shutdown(self, key: str, data: dict[str, Any], at: float | None) -> Iterator[Told]:
        yield self.story.tell("session_end", key, at, reason=a_text(data.get("shutdownType")))


TRANSCRIPTS = Transcripts(host="copilot", folders=(".copilot/session-state",), names=("events.jsonl",), read=read)
