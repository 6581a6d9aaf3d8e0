"""The transcripts of Gemini CLI: a file per session, and one per subagent in a folder named after the session."""

from __future__ import annotations

from pathlib import Path
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


def read(source: TranscriptSource) -> Entries:
    """A message is written again whenever something is added to it, under the same id."""
    reader = _TranscriptReader(source)
    lines = source.objects() if source.path.suffix == ".jsonl" else iter([source.document()])
    for line in lines:
        if "sessionId" in line:
            yield from reader.begin(line)
        messages = line.get("messages") or a_dict(line.get("$set")).get("messages") or [line]
        for message in a_list(messages):
            yield from reader.message(message)
    yield from reader.end()


class _TranscriptReader:
    def __init__(self, source: TranscriptSource) -> None:
        self.path = source.path
        self.builder = EntryBuilder(source.path.stem)
        self.builder.cwd = _project(source.path)
        self.has_begun = False
        self.seen: set[str] = set()
        self.last: tuple[str, float | None] | None = None

    def begin(self, head: dict[str, Any]) -> Entries:
        if self.has_begun:
            return
        self.has_begun = True
        builder, own, at = self.builder, str(head["sessionId"]), timestamp_of(head.get("startTime"))
        folders = head.get("directories")
        if isinstance(folders, list) and folders:
            builder.cwd = a_text(folders[0]) or builder.cwd
        if head.get("kind") != "subagent":
            builder.session_id = own
            yield builder.entry("session_start", "start", at)
            return
        builder.session_id = self.path.parent.name  # the only id that hooks receive
        builder.agent = Agent(own, None, builder.session_id)
        yield builder.entry("subagent_start", f"start {own}", at)

    def message(self, message: dict[str, Any]) -> Entries:
        at, key = timestamp_of(message.get("timestamp")), str(message.get("id"))
        if message.get("type") == "user":
            yield from self._user(message, key, at)
        elif message.get("type") == "gemini":
            calls = a_list(message.get("toolCalls"))
            self.last = None if calls or not message.get("content") else (key, at)
            for call in calls:
                yield from self._call(call, at)

    def _user(self, message: dict[str, Any], key: str, at: float | None) -> Entries:
        text = texts_of(message.get("content"))
        if not text or key in self.seen or text.startswith("<session_context>"):
            return
        self.seen.add(key)
        yield from self.end()
        if self.builder.agent is None:
            yield self.builder.entry("before_input", key, at, input=text)

    def end(self) -> Entries:
        """A text after which nothing was called was the turn's last."""
        if self.last is not None:
            (key, at), self.last = self.last, None
            event = "before_turn_end" if self.builder.agent is None else "subagent_stop"
            yield self.builder.entry(event, f"end {key}", at)

    def _call(self, call: dict[str, Any], at: float | None) -> Entries:
        call_id, tool = a_text(call.get("id")), a_text(call.get("name"))
        if not call_id or not tool:
            return
        if call_id not in self.seen:
            self.seen.add(call_id)
            yield self.builder.call(call_id, tool, a_dict(call.get("args")), at)
        results = a_list(call.get("result"))
        status = call.get("status")
        if not results and status not in ("error", "cancelled"):
            return
        output: Any = a_dict(a_dict(results[0]).get("functionResponse")).get("response") if results else None
        words = words_of(output)
        blocked = words.startswith(("Tool execution blocked", "Agent execution stopped by hook"))
        not_run = status == "error" and " not found. Did you mean" in words
        outcome: Outcome = "ok" if status == "success" else "aborted" if status == "cancelled" else "error"
        done = timestamp_of(call.get("timestamp")) or at
        yield from self.builder.result(
            call_id, done, content(output), "denied" if blocked else outcome, False if not_run else None
        )


def _project(path: Path) -> str | None:
    """The folder of the project, which is written down beside the folder of its transcripts."""
    for folder in path.parents:
        if folder.name == "chats":
            try:
                return (folder.parent / ".project_root").read_text("utf-8").strip() or None
            except (OSError, UnicodeError):
                return None
    return None


TRANSCRIPTS = Transcripts(host="gemini", folders=(".gemini/tmp",), names=("*.jsonl", "session-*.json"), read=read)
