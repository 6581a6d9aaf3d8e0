"""The transcripts of Codex: a file per thread, which is a session, or a subagent's part of one."""

from __future__ import annotations

import re
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

_SHELLS = ("exec_command", "shell", "shell_command", "local_shell", "container.exec")
"""The model's names for the tool that hooks know as Bash."""
_PROGRAM = "exec"
"""A tool that runs a program, which calls tools. Hooks receive those calls, but not the program."""
_BLOCKED = re.compile(r"(?:Command|Tool call) blocked by PreToolUse hook")
_NOT_RUN = ("unsupported call: ", "failed to parse function arguments")
_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (\d+)", re.MULTILINE)
_CONTEXT = ("<environment_context>", "<user_instructions>", "<turn_aborted>", "# AGENTS.md instructions")
_HOOK_PROMPT = re.compile(r"</?hook_prompt[^>]*>")


def read(source: TranscriptSource) -> Entries:
    """A transcript has each item twice: as the model sent it, and as it ran. Each call becomes one entry."""
    reader = _TranscriptReader(source)
    for line in source.objects():
        payload = a_dict(line.get("payload"))
        at = timestamp_of(line.get("timestamp"))
        if line.get("type") == "session_meta":
            yield from reader.begin(payload, at)
        elif line.get("type") == "turn_context":
            reader.turn(payload)
        elif line.get("type") == "response_item":
            yield from reader.item(payload, at)
        elif line.get("type") == "event_msg":
            yield from reader.event(payload, at)


class _TranscriptReader:
    def __init__(self, source: TranscriptSource) -> None:
        self.builder = EntryBuilder(source.path.stem[-36:])
        self.has_begun = False
        self.requested: set[str] = set()

    def begin(self, meta: dict[str, Any], at: float | None) -> Entries:
        """Handle the first line only: a forked thread repeats the first line of its parent after its own."""
        if self.has_begun:
            return
        self.has_begun = True
        builder, thread = self.builder, a_text(meta.get("id"))
        builder.session_id = a_text(meta.get("session_id")) or thread or builder.session_id
        builder.cwd = a_text(meta.get("cwd"))
        parent = a_text(meta.get("parent_thread_id"))
        if parent is None:
            yield builder.entry("session_start", "start", at)
            return
        name = a_text(meta.get("agent_role")) or a_text(meta.get("agent_nickname"))
        builder.agent = Agent(thread, name, parent)
        yield builder.entry("subagent_start", f"start {thread}", at, agent_name=name)

    def turn(self, context: dict[str, Any]) -> None:
        self.builder.turn_id = a_text(context.get("turn_id")) or self.builder.turn_id
        self.builder.cwd = a_text(context.get("cwd")) or self.builder.cwd

    # --- the conversation -------------------------------------------------------------------

    def item(self, item: dict[str, Any], at: float | None) -> Entries:
        kind, call_id = item.get("type"), a_text(item.get("call_id")) or a_text(item.get("id"))
        if kind == "message" and item.get("role") == "user":
            yield from self._message(item, at)
        elif kind in ("function_call", "custom_tool_call", "local_shell_call") and call_id:
            self.requested.add(call_id)
            if tool := _tool(item):
                yield self.builder.call(call_id, tool, _args(tool, item), at)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            yield from self._output(call_id, item.get("output"), at)

    def _message(self, item: dict[str, Any], at: float | None) -> Entries:
        text = texts_of(item.get("content"))
        if not text or text.startswith(_CONTEXT):
            return
        kept_alive = text.startswith("<hook_prompt")
        prompt, source = (_HOOK_PROMPT.sub("", text), "continuation") if kept_alive else (text, "user")
        key = a_text(item.get("id")) or f"said {at}"
        yield self.builder.entry("before_input", key, at, input=prompt, source=source)

    def _output(self, call_id: str | None, output: Any, at: float | None) -> Entries:
        result = output.get("content", output) if isinstance(output, dict) else output
        words = words_of(result)
        blocked, not_run = _BLOCKED.match(words) is not None, words.startswith(_NOT_RUN)
        left = _EXIT.search(words[:500])
        failed = not_run or (left is not None and left[1] != "0")
        outcome: Outcome = "denied" if blocked else "error" if failed else "ok"
        yield from self.builder.result(call_id, at, content(result), outcome, False if not_run else None)

    # --- what happened ----------------------------------------------------------------------

    def event(self, event: dict[str, Any], at: float | None) -> Entries:
        kind, turn = event.get("type"), a_text(event.get("turn_id"))
        self.builder.turn_id = turn or self.builder.turn_id
        if kind == "item_completed":
            yield from self._completed(a_dict(event.get("item")), at)
        elif kind == "task_complete":
            agent = self.builder.agent
            if agent is None:
                yield self.builder.entry("before_turn_end", f"end {turn or at}", at)
            else:
                yield self.builder.entry("subagent_stop", f"end {turn or at}", at, agent_name=agent.name)
        elif kind == "turn_aborted":
            yield self.builder.entry("turn_end", f"end {turn or at}", at, stop_reason="cancelled")
        elif kind == "context_compacted":
            yield self.builder.entry("after_compact", f"compacted {at}", at)

    def _completed(self, item: dict[str, Any], at: float | None) -> Entries:
        """Add the calls that a program made. All others are known already."""
        call_id = a_text(item.get("id"))
        ran = None if call_id in self.requested else _ran(item)
        if call_id is None or ran is None:
            return
        tool, args, output, failed = ran
        yield self.builder.call(call_id, tool, args, at)
        yield from self.builder.result(call_id, at, content(output), "error" if failed else "ok")


def _tool(item: dict[str, Any]) -> str | None:
    """A tool, by the name that hooks know it by."""
    if item["type"] == "local_shell_call":
        return "Bash"
    name, space = a_text(item.get("name")), a_text(item.get("namespace")) or ""
    if name in _SHELLS:
        return "Bash"
    if name == _PROGRAM and item["type"] == "custom_tool_call":
        return None
    return f"{space.rstrip('_')}__{name}" if name and space.startswith("mcp__") else name


def _args(tool: str, item: dict[str, Any]) -> dict[str, Any]:
    """The arguments, as hooks receive them."""
    if item["type"] == "custom_tool_call":
        return {"command": item.get("input")}
    args = a_dict(item.get("action") if item["type"] == "local_shell_call" else item.get("arguments"))
    return {"command": _command(args.get("cmd", args.get("command")))} if tool == "Bash" else args


def _command(command: Any) -> Any:
    """A command line: of `bash -lc SCRIPT`, the script."""
    if isinstance(command, list) and len(command) == 3 and str(command[1]).startswith("-"):
        return command[2]
    return command


def _ran(item: dict[str, Any]) -> tuple[str, dict[str, Any], Any, bool] | None:
    failed = item.get("status") != "completed"
    match item.get("type"):
        case "CommandExecution":
            return "Bash", {"command": _command(item.get("command"))}, item.get("aggregated_output"), failed
        case "FileChange":
            return "apply_patch", {"command": _patch(a_dict(item.get("changes")))}, item.get("stdout"), failed
        case "McpToolCall":
            tool = f"mcp__{item.get('server')}__{item.get('tool')}"
            return tool, a_dict(item.get("arguments")), item.get("result"), failed
        case "CollabAgentToolCall":
            return str(item.get("tool")), {"message": item.get("prompt")}, a_list(item.get("receiver_agents")), failed
    return None


def _patch(changes: dict[str, Any]) -> str:
    """The changed files, in the form of a patch. The transcript does not have the patch itself."""
    verbs = {"add": "Add", "delete": "Delete"}
    lines = [f"*** {verbs.get(str(a_dict(how).get('type')), 'Update')} File: {path}" for path, how in changes.items()]
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


TRANSCRIPTS = Transcripts(
    host="codex", folders=(".codex/sessions", ".codex/archived_sessions"), names=("rollout-*.jsonl",),
    variable=("CODEX_HOME", ".codex"), ids=True, read=read,
)  # fmt: skip
