"""The transcripts of Claude Code: a file per session, and one per subagent in a folder beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..hosts.host import a_dict, a_text, content
from ..lifecycle import Agent, Outcome
from .transcript import Source, Story, Told, Transcripts, a_list, moment_of, texts_of, words_of

_NOT_SAID = ("<local-command-", "<command-name>", "[Request interrupted")
"""How texts begin that stand where the user's do, though nobody said them to the model."""
_NOT_RUN = ("<tool_use_error>Error: No such tool", "<tool_use_error>InputValidationError", "[Request interrupted")


def read(source: Source) -> Iterator[Told]:
    """The lines have a type each; most types are Claude Code's own business."""
    reader = _Reader(source)
    for line in source.objects():
        yield from reader.line(line)


class _Reader:
    def __init__(self, source: Source) -> None:
        self.path = source.path
        self.story = Story(source.path.stem)
        self.begun = False

    def line(self, line: dict[str, Any]) -> Iterator[Told]:
        tell = {"user": self._user, "assistant": self._assistant, "system": self._system}.get(str(line.get("type")))
        if tell is None:
            return
        story, at = self.story, moment_of(line.get("timestamp"))
        story.session_id = a_text(line.get("sessionId")) or story.session_id
        story.cwd = a_text(line.get("cwd")) or story.cwd
        story.turn_id = a_text(line.get("promptId")) or story.turn_id
        story.agent = self._agent(line)
        if not self.begun:
            self.begun = True
            yield from self._begin(line, at)
        yield from tell(line, at)

    def _agent(self, line: dict[str, Any]) -> Agent | None:
        if not line.get("isSidechain"):
            return None
        known = self.story.agent
        name = a_text(line.get("attributionAgent")) or (known.name if known else None) or self._named()
        return Agent(a_text(line.get("agentId")), name, self.story.session_id)

    def _named(self) -> str | None:
        """What kind of subagent it is, which the file beside its own says."""
        beside = Source(self.path.with_suffix(".meta.json"))
        return a_text(beside.document().get("agentType")) if beside.path.is_file() else None

    def _begin(self, line: dict[str, Any], at: float | None) -> Iterator[Told]:
        agent = self.story.agent
        if agent is None:
            yield self.story.tell("session_start", "start", at)
        else:
            asked = texts_of(a_dict(line.get("message")).get("content"))
            yield self.story.tell(
                "subagent_start", f"start {agent.id}", at, agent_name=agent.name, initial_message=asked or None
            )

    def _user(self, line: dict[str, Any], at: float | None) -> Iterator[Told]:
        said = a_dict(line.get("message")).get("content")
        results = [block for block in a_list(said) if block.get("type") == "tool_result"]
        for block in results:
            yield from self._result(block, line, at)
        text = texts_of(said)
        if results or not text or self.story.agent is not None or line.get("isCompactSummary"):
            return
        kept_alive = text.startswith("Stop hook feedback:")
        if text.startswith(_NOT_SAID) or (line.get("isMeta") and not kept_alive):
            return
        source = "continuation" if kept_alive else "background" if text.startswith("<task-notification>") else "user"
        yield self.story.tell("before_input", str(line.get("uuid")), at, input=text, source=source)

    def _result(self, block: dict[str, Any], line: dict[str, Any], at: float | None) -> Iterator[Told]:
        decided = a_dict(line.get("permissionDecision"))
        refused = decided.get("decision") == "reject" or "toolDenialKind" in line
        output = content(block.get("content"))
        outcome: Outcome = "denied" if refused else "error" if block.get("is_error") else "ok"
        told = outcome == "error" and words_of(output).startswith(_NOT_RUN)
        yield from self.story.result(block.get("tool_use_id"), at, output, outcome, False if told else None)

    def _assistant(self, line: dict[str, Any], at: float | None) -> Iterator[Told]:
        message = a_dict(line.get("message"))
        for block in a_list(message.get("content")):
            call_id, tool = a_text(block.get("id")), a_text(block.get("name"))
            if block.get("type") == "tool_use" and call_id and tool:
                yield self.story.call(call_id, tool, a_dict(block.get("input")), at)
        if message.get("stop_reason") == "end_turn" and texts_of(message.get("content")):
            yield self._end(str(line.get("uuid")), at)

    def _end(self, key: str, at: float | None) -> Told:
        agent = self.story.agent
        if agent is not None:
            return self.story.tell("subagent_stop", key, at, agent_name=agent.name)
        return self.story.tell("before_turn_end", key, at)

    def _system(self, line: dict[str, Any], at: float | None) -> Iterator[Told]:
        if line.get("subtype") == "compact_boundary":
            before = a_dict(line.get("compactMetadata")).get("preTokens")
            tokens = before if isinstance(before, int) else None
            yield self.story.tell("after_compact", str(line.get("uuid")), at, tokens_before=tokens)


TRANSCRIPTS = Transcripts(
    host="claude_code", folders=(".claude/projects",), variable=("CLAUDE_CONFIG_DIR", ".claude"), ids=True, read=read
)
