"""The transcripts of Factory Droid: a file per session; a subagent's is a session that another one called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..hosts.host import a_dict, a_text, content
from ..lifecycle import Agent, Outcome
from .transcript import Source, Story, Told, Transcripts, a_list, moment_of, texts_of, words_of


def read(source: Source) -> Iterator[Told]:
    reader = _Reader(source)
    for line in source.objects():
        yield from reader.line(line)


class _Reader:
    def __init__(self, source: Source) -> None:
        self.story = Story(source.path.stem)
        self.at: float | None = None
        self.head: dict[str, Any] | None = None

    def line(self, line: dict[str, Any]) -> Iterator[Told]:
        kind = line.get("type")
        if kind == "session_start":
            self.head = line
        elif kind == "message":
            self.at = moment_of(line.get("timestamp"))
            if self.head is not None:  # which does not say when it was
                head, self.head = self.head, None
                yield self._begin(head)
            yield from self._message(line, a_dict(line.get("message")))
        elif kind == "agent_turn_outcome":
            yield self._end(line)

    def _begin(self, head: dict[str, Any]) -> Told:
        story = self.story
        story.session_id = a_text(head.get("id")) or story.session_id
        story.cwd = a_text(head.get("cwd"))
        caller = a_text(head.get("callingSessionId"))
        if caller is None:
            return story.tell("session_start", "start", self.at)
        story.agent = Agent(story.session_id, None, caller)
        return story.tell("subagent_start", "start", self.at)

    def _message(self, line: dict[str, Any], message: dict[str, Any]) -> Iterator[Told]:
        said = message.get("content")
        for block in a_list(said):
            call_id, tool = a_text(block.get("id")), a_text(block.get("name"))
            if block.get("type") == "tool_use" and call_id and tool:
                yield self.story.call(call_id, tool, a_dict(block.get("input")), self.at)
            elif block.get("type") == "tool_result":
                yield from self._result(block)
        text = texts_of(said)
        if message.get("role") != "user" or not text or text.startswith("<system-reminder>") or self.story.agent:
            return
        source = "background" if message.get("visibility") == "llm_only" else "user"
        yield self.story.tell("before_input", str(line.get("id")), self.at, input=text, source=source)

    def _result(self, block: dict[str, Any]) -> Iterator[Told]:
        output = content(block.get("content"))
        outcome: Outcome = "error" if block.get("is_error") else "ok"
        not_run = outcome == "error" and words_of(output).startswith("Error: Not found: ")
        yield from self.story.result(block.get("tool_use_id"), self.at, output, outcome, False if not_run else None)

    def _end(self, line: dict[str, Any]) -> Told:
        key = f"end {line.get('turnId')}"
        if line.get("reason") != "completed":
            return self.story.tell("turn_end", key, self.at, stop_reason="cancelled")
        return self.story.tell("before_turn_end" if self.story.agent is None else "subagent_stop", key, self.at)


TRANSCRIPTS = Transcripts(host="droid", folders=(".factory/sessions",), read=read)
