"""The transcripts of Qwen Code: a file per session, and one per subagent in a folder beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..hosts.host import a_dict, a_text, content
from ..lifecycle import Agent, Outcome
from .transcript import Source, Story, Told, Transcripts, a_list, moment_of, texts_of


def read(source: Source) -> Iterator[Told]:
    reader = _Reader(source)
    for line in source.objects():
        yield from reader.line(line)


class _Reader:
    def __init__(self, source: Source) -> None:
        self.story = Story(source.path.stem)
        self.begun = False

    def line(self, line: dict[str, Any]) -> Iterator[Told]:
        tell = {"user": self._user, "assistant": self._assistant, "tool_result": self._results}.get(
            str(line.get("type"))
        )
        if tell is None:
            return
        story, at = self.story, moment_of(line.get("timestamp"))
        story.session_id = a_text(line.get("sessionId")) or story.session_id
        story.cwd = a_text(line.get("cwd")) or story.cwd
        agent_id, name = a_text(line.get("agentId")), a_text(line.get("agentName"))
        story.agent = Agent(agent_id, name, story.session_id) if line.get("isSidechain") else None
        parts = a_list(a_dict(line.get("message")).get("parts"))
        if not self.begun:
            self.begun = True
            yield self._begin(parts, at)
        yield from tell(line, parts, at)

    def _begin(self, parts: list[dict[str, Any]], at: float | None) -> Told:
        agent = self.story.agent
        if agent is None:
            return self.story.tell("session_start", "start", at)
        asked = texts_of(parts) or None
        return self.story.tell("subagent_start", f"start {agent.id}", at, agent_name=agent.name, initial_message=asked)

    def _user(self, line: dict[str, Any], parts: list[dict[str, Any]], at: float | None) -> Iterator[Told]:
        text = texts_of(parts)
        if text and self.story.agent is None:
            source = "background" if text.startswith("<task-notification>") else "user"
            yield self.story.tell("before_input", str(line.get("uuid")), at, input=text, source=source)

    def _assistant(self, line: dict[str, Any], parts: list[dict[str, Any]], at: float | None) -> Iterator[Told]:
        calls = [a_dict(part["functionCall"]) for part in parts if "functionCall" in part]
        for call in calls:
            call_id, tool = a_text(call.get("id")), a_text(call.get("name"))
            if call_id and tool:
                yield self.story.call(call_id, tool, a_dict(call.get("args")), at)
        if not calls and texts_of([part for part in parts if not part.get("thought")]):
            agent = self.story.agent
            about = {} if agent is None else {"agent_name": agent.name}
            event = "before_turn_end" if agent is None else "subagent_stop"
            yield self.story.tell(event, str(line.get("uuid")), at, **about)

    def _results(self, line: dict[str, Any], parts: list[dict[str, Any]], at: float | None) -> Iterator[Told]:
        about = a_dict(line.get("toolCallResult"))
        for part in parts:
            given = a_dict(part.get("functionResponse"))
            output = a_dict(given.get("response"))
            ran = False if about.get("executionStatus") == "not_started" else None
            outcome: Outcome = "error" if "error" in output else "ok"
            if about.get("errorType") == "execution_denied":
                outcome = "denied"
            yield from self.story.result(given.get("id"), at, content(output), outcome, ran)


TRANSCRIPTS = Transcripts(host="qwen", folders=(".qwen/projects", ".qwen/tmp"), read=read)
