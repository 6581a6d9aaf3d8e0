"""The transcripts of Cline: a document per session, which is written anew each time, and one per subagent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..hosts.host import a_dict, a_text, content
from ..lifecycle import Agent, Outcome
from .transcript import Source, Story, Told, Transcripts, a_list, moment_of, texts_of, words_of

_USER_INPUT = re.compile(r"</?user_input[^>]*>")
_NOT_RUN = ("was rejected before execution", "Invalid input", "requires approval in a TTY session")


def read(source: Source) -> Iterator[Told]:
    document = source.document()
    origin = a_dict(document.get("origin"))
    story = Story(a_text(document.get("sessionId")) or source.path.name.removesuffix(".messages.json"))
    if origin.get("mode") == "subagent":
        parent = a_text(origin.get("parentThreadId")) or source.path.parent.name
        story.session_id, story.agent = parent, Agent(a_text(origin.get("subagent")), None, parent)
    beside = Source(source.path.with_name(f"{story.session_id}.json"))
    if beside.path.is_file():
        story.cwd = a_text(beside.document().get("cwd"))
    messages = a_list(document.get("messages"))
    if messages:
        key, event = (
            ("start", "session_start") if story.agent is None else (f"start {story.agent.id}", "subagent_start")
        )
        yield story.tell(event, key, moment_of(messages[0].get("ts")))
    for message in messages:
        yield from _message(story, message)


def _message(story: Story, message: dict[str, Any]) -> Iterator[Told]:
    said, at, key = message.get("content"), moment_of(message.get("ts")), str(message.get("id"))
    blocks = a_list(said)
    for block in blocks:
        call_id, tool = a_text(block.get("id")), a_text(block.get("name"))
        if block.get("type") == "tool_use" and call_id and tool:
            yield story.call(call_id, tool, a_dict(block.get("input")), at)
        elif block.get("type") == "tool_result":
            yield from _result(story, block, at)
    text = texts_of(said)
    if message.get("role") == "assistant":
        if text and not any(block.get("type") == "tool_use" for block in blocks):
            yield story.tell("before_turn_end" if story.agent is None else "subagent_stop", key, at)
    elif text and not text.startswith("<hook_context") and story.agent is None:
        yield story.tell("before_input", key, at, input=_USER_INPUT.sub("", text))


def _result(story: Story, block: dict[str, Any], at: float | None) -> Iterator[Told]:
    output = content(block.get("content"))
    failed = block.get("is_error") or any(part.get("success") is False for part in a_list(output))
    outcome: Outcome = "error" if failed else "ok"
    told = words_of(output)
    not_run = bool(block.get("is_error")) and any(words in told for words in _NOT_RUN)
    yield from story.result(block.get("tool_use_id"), at, output, outcome, False if not_run else None)


TRANSCRIPTS = Transcripts(
    host="cline", folders=(".cline/data/sessions",), names=("*.messages.json",), variable=("CLINE_DIR", ".cline"),
    ids=True, read=read,
)  # fmt: skip
