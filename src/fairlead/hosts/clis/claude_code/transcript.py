"""The transcripts of Claude Code: a file per session, and one per subagent in a folder beside it."""

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

_NOT_INPUT = ("<local-command-", "<command-name>", "[Request interrupted")
"""How texts begin that have the role of the user, but are not the user's input."""
_NOT_RUN = ("<tool_use_error>Error: No such tool", "<tool_use_error>InputValidationError", "[Request interrupted")


class _TranscriptReader(LineReader):
    """Reads lines of three types. Claude Code uses the others for itself."""

    def __init__(self, source: TranscriptSource) -> None:
        self.path = source.path
        super().__init__(source)
        self.has_begun = False

    def line(self, line: dict[str, Any]) -> Entries:
        handle = {"user": self._user, "assistant": self._assistant, "system": self._system}.get(str(line.get("type")))
        if handle is None:
            return
        builder, at = self.builder, timestamp_of(line.get("timestamp"))
        builder.session_id = a_text(line.get("sessionId")) or builder.session_id
        builder.cwd = a_text(line.get("cwd")) or builder.cwd
        builder.turn_id = a_text(line.get("promptId")) or builder.turn_id
        builder.entry_point = a_text(line.get("entrypoint")) or builder.entry_point
        builder.agent = self._agent(line)
        if not self.has_begun:
            self.has_begun = True
            yield from self._begin(line, at)
        yield from handle(line, at)

    def _agent(self, line: dict[str, Any]) -> Agent | None:
        if not line.get("isSidechain"):
            return None
        known = self.builder.agent
        name = a_text(line.get("attributionAgent")) or (known.name if known else None) or self._named()
        return Agent(a_text(line.get("agentId")), name, self.builder.session_id)

    def _named(self) -> str | None:
        """The name of the subagent, from the file beside its transcript."""
        beside = TranscriptSource(self.path.with_suffix(".meta.json"))
        return a_text(beside.document().get("agentType")) if beside.path.is_file() else None

    def _begin(self, line: dict[str, Any], at: float | None) -> Entries:
        agent = self.builder.agent
        if agent is None:
            yield self.builder.entry("session_start", "start", at)
        else:
            first = texts_of(a_dict(line.get("message")).get("content"))
            yield self.builder.entry(
                "subagent_start", f"start {agent.id}", at, agent_name=agent.name, initial_message=first or None
            )

    def _user(self, line: dict[str, Any], at: float | None) -> Entries:
        blocks = a_dict(line.get("message")).get("content")
        results = [block for block in a_list(blocks) if block.get("type") == "tool_result"]
        for block in results:
            yield from self._result(block, line, at)
        text = texts_of(blocks)
        if results or not text or self.builder.agent is not None or line.get("isCompactSummary"):
            return
        kept_alive = text.startswith("Stop hook feedback:")
        if text.startswith(_NOT_INPUT) or (line.get("isMeta") and not kept_alive):
            return
        source = "continuation" if kept_alive else "background" if text.startswith("<task-notification>") else "user"
        yield self.builder.entry("before_input", str(line.get("uuid")), at, input=text, source=source)

    def _result(self, block: dict[str, Any], line: dict[str, Any], at: float | None) -> Entries:
        decided = a_dict(line.get("permissionDecision"))
        refused = decided.get("decision") == "reject" or "toolDenialKind" in line
        output = content(block.get("content"))
        outcome: Outcome = "denied" if refused else "error" if block.get("is_error") else "ok"
        not_run = outcome == "error" and words_of(output).startswith(_NOT_RUN)
        yield from self.builder.result(block.get("tool_use_id"), at, output, outcome, False if not_run else None)

    def _assistant(self, line: dict[str, Any], at: float | None) -> Entries:
        message = a_dict(line.get("message"))
        for block in a_list(message.get("content")):
            call_id, tool = a_text(block.get("id")), a_text(block.get("name"))
            if block.get("type") == "tool_use" and call_id and tool:
                yield self.builder.call(call_id, tool, a_dict(block.get("input")), at)
        if message.get("stop_reason") == "end_turn" and texts_of(message.get("content")):
            yield self._end(str(line.get("uuid")), at)

    def _end(self, key: str, at: float | None) -> TranscriptEntry:
        agent = self.builder.agent
        if agent is not None:
            return self.builder.entry("subagent_stop", key, at, agent_name=agent.name)
        return self.builder.entry("before_turn_end", key, at)

    def _system(self, line: dict[str, Any], at: float | None) -> Entries:
        if line.get("subtype") == "compact_boundary":
            before = a_dict(line.get("compactMetadata")).get("preTokens")
            tokens = before if isinstance(before, int) else None
            yield self.builder.entry("after_compact", str(line.get("uuid")), at, tokens_before=tokens)


TRANSCRIPTS = Transcripts(
    host="claude_code",
    folders=(".claude/projects",),
    variable=("CLAUDE_CONFIG_DIR", ".claude"),
    ids=True,
    read=_TranscriptReader.read,
)
