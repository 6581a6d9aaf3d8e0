"""The transcripts of Codex: a file per thread, which is a session, or a subagent's part of one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..hosts.host import a_dict, a_text, content
from ..lifecycle import Agent, Outcome
from .transcript import Source, Story, Told, Transcripts, a_list, moment_of, texts_of, words_of

_SHELLS = ("exec_command", "shell", "shell_command", "local_shell", "container.exec")
"""What the model calls the tool that hooks know as Bash."""
_PROGRAM = "exec"
"""A program that calls tools. Hooks are asked about those calls, never about the program."""
_BLOCKED = re.compile(r"(?:Command|Tool call) blocked by PreToolUse hook")
_NOT_RUN = ("unsupported call: ", "failed to parse function arguments")
_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (\d+)", re.MULTILINE)
_CONTEXT = ("<environment_context>", "<user_instructions>", "<turn_aborted>", "# AGENTS.md instructions")
_HOOK_PROMPT = re.compile(r"</?hook_prompt[^>]*>")


def read(source: Source) -> Iterator[Told]:
    """Items of the conversation are told twice: as the model's, and as what ran. Each call is told once."""
    reader = _Reader(source)
    for line in source.objects():
        payload = a_dict(line.get("payload"))
        at = moment_of(line.get("timestamp"))
        if line.get("type") == "session_meta":
            yield from reader.begin(payload, at)
        elif line.get("type") == "turn_context":
            reader.turn(payload)
        elif line.get("type") == "response_item":
            yield from reader.item(payload, at)
        elif line.get("type") == "event_msg":
            yield from reader.event(payload, at)


class _Reader:
    def __init__(self, source: Source) -> None:
        self.story = Story(source.path.stem[-36:])
        self.begun = False
        self.called: set[str] = set()

    def begin(self, meta: dict[str, Any], at: float | None) -> Iterator[Told]:
        """A thread that was forked off another one repeats that one's beginning after its own."""
        if self.begun:
            return
        self.begun = True
        story, thread = self.story, a_text(meta.get("id"))
        story.session_id = a_text(meta.get("session_id")) or thread or story.session_id
        story.cwd = a_text(meta.get("cwd"))
        parent = a_text(meta.get("parent_thread_id"))
        if parent is None:
            yield story.tell("session_start", "start", at)
            return
        name = a_text(meta.get("agent_role")) or a_text(meta.get("agent_nickname"))
        story.agent = Agent(thread, name, parent)
        yield story.tell("subagent_start", f"start {thread}", at, agent_name=name)

    def turn(self, context: dict[str, Any]) -> None:
        self.story.turn_id = a_text(context.get("turn_id")) or self.story.turn_id
        self.story.cwd = a_text(context.get("cwd")) or self.story.cwd

    # --- what the model says and is told ----------------------------------------------------

    def item(self, item: dict[str, Any], at: float | None) -> Iterator[Told]:
        kind, call_id = item.get("type"), a_text(item.get("call_id")) or a_text(item.get("id"))
        if kind == "message" and item.get("role") == "user":
            yield from self._message(item, at)
        elif kind in ("function_call", "custom_tool_call", "local_shell_call") and call_id:
            self.called.add(call_id)
            if tool := _tool(item):
                yield self.story.call(call_id, tool, _args(tool, item), at)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            yield from self._output(call_id, item.get("output"), at)

    def _message(self, item: dict[str, Any], at: float | None) -> Iterator[Told]:
        text = texts_of(item.get("content"))
        if not text or text.startswith(_CONTEXT):
            return
        kept_alive = text.startswith("<hook_prompt")
        said, source = (_HOOK_PROMPT.sub("", text), "continuation") if kept_alive else (text, "user")
        key = a_text(item.get("id")) or f"said {at}"
        yield self.story.tell("before_input", key, at, input=said, source=source)

    def _output(self, call_id: str | None, output: Any, at: float | None) -> Iterator[Told]:
        given = output.get("content", output) if isinstance(output, dict) else output
        words = words_of(given)
        blocked, not_run = _BLOCKED.match(words) is not None, words.startswith(_NOT_RUN)
        left = _EXIT.search(words[:500])
        failed = not_run or (left is not None and left[1] != "0")
        outcome: Outcome = "denied" if blocked else "error" if failed else "ok"
        yield from self.story.result(call_id, at, content(given), outcome, False if not_run else None)

    # --- what happened ----------------------------------------------------------------------

    def event(self, event: dict[str, Any], at: float | None) -> Iterator[Told]:
        kind, turn = event.get("type"), a_text(event.get("turn_id"))
        self.story.turn_id = turn or self.story.turn_id
        if kind == "item_completed":
            yield from self._completed(a_dict(event.get("item")), at)
        elif kind == "task_complete":
            agent = self.story.agent
            if agent is None:
                yield self.story.tell("before_turn_end", f"end {turn or at}", at)
            else:
                yield self.story.tell("subagent_stop", f"end {turn or at}", at, agent_name=agent.name)
        elif kind == "turn_aborted":
            yield self.story.tell("turn_end", f"end {turn or at}", at, stop_reason="cancelled")
        elif kind == "context_compacted":
            yield self.story.tell("after_compact", f"compacted {at}", at)

    def _completed(self, item: dict[str, Any], at: float | None) -> Iterator[Told]:
        """What ran. Only the calls that a program made are not known by then."""
        call_id = a_text(item.get("id"))
        ran = None if call_id in self.called else _ran(item)
        if call_id is None or ran is None:
            return
        tool, args, output, failed = ran
        yield self.story.call(call_id, tool, args, at)
        yield from self.story.result(call_id, at, content(output), "error" if failed else "ok")


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
    """The arguments, as hooks are given them."""
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
    """Which files were changed, in the form of a patch: what the patch itself said is not told."""
    verbs = {"add": "Add", "delete": "Delete"}
    lines = [f"*** {verbs.get(str(a_dict(how).get('type')), 'Update')} File: {path}" for path, how in changes.items()]
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


TRANSCRIPTS = Transcripts(
    host="codex", folders=(".codex/sessions", ".codex/archived_sessions"), names=("rollout-*.jsonl",),
    variable=("CODEX_HOME", ".codex"), ids=True, read=read,
)  # fmt: skip
