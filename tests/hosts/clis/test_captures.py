"""What the real CLIs said, line by line, and the steps that it is here.

`captures/CLI.jsonl` has their payloads, as they came. `captures/CLI.steps` has, on the same line, what each must be:
the CLI's event, ours (and those that follow from it), whose it is, and what it is about. An id that the CLI does not
give, and that is made up here, stands as `call 1`, `turn 2`, by when it first came up in the file.
"""

from __future__ import annotations

import asyncio
import json
import re
from functools import cache
from typing import Any

import pytest
from played import CAPTURES, Played, captured, captures

from fairlead import Decision, ToolStep
from fairlead.hosts.clis import hook_json
from fairlead.hosts.clis.detection import find_source
from fairlead.hosts.clis.mapping import ALL, host_named

ABOUT = ("source", "input", "outcome", "error", "output", "proposed", "granted", "agent_name", "reason", "message",
         "level", "content", "committed_len", "model", "results", "stop_reason", "continues_so_far")  # fmt: skip
PLAIN: dict[str, Any] = {"outcome": "ok", "stop_reason": "end_turn", "continues_so_far": 0}
"""What is not worth saying."""


class Telling:
    """Steps, as a line each."""

    def __init__(self) -> None:
        self._made: dict[str, str] = {}

    def line(self, event: str, decisions: list[Decision[Any]]) -> str:
        if not decisions:
            return f"{event} -> nothing"
        step = decisions[0].step
        ours = "+".join(decision.event for decision in decisions)
        whose = f"{_end(step.session_id)}/{self._id(_end(step.turn_id) if step.turn_id else '-')}"
        agent = step.agent
        if agent.id != step.session_id or agent.parent or agent.name:
            whose += f" {_end(agent.id)}={agent.name or '-'}<{_end(agent.parent) if agent.parent else '-'}"
        return " | ".join(part for part in (f"{event} -> {ours}", whose, self._tool(step), self._rest(step)) if part)

    def _tool(self, step: Any) -> str:
        if not isinstance(step, ToolStep):
            return ""
        aimed = {name: getattr(step.target, name) for name in ("command", "paths", "url", "server")}
        at = " ".join(f"{name}={_short(value)}" for name, value in aimed.items() if value)
        return f"{step.tool} {step.kind} {at} #{self._id(step.call_id or '-')}".replace("  ", " ")

    def _rest(self, step: Any) -> str:
        given = {name: getattr(step, name) for name in ABOUT if hasattr(step, name)}
        told = {name: value for name, value in given.items() if value is not None and PLAIN.get(name) != value}
        if told.get("error") == told.get("output"):
            told.pop("output", None)
        return " ".join(f"{name}={_short(value)}" for name, value in told.items())

    def _id(self, name: str) -> str:
        """An id of the CLI's as it is; one of ours by its number."""
        made = re.fullmatch(r"(turn|call)-[0-9a-f]{12}-\d+", name)
        if made is None:
            return name
        known = sum(other.startswith(made[1]) for other in self._made.values())
        return self._made.setdefault(name, f"{made[1]} {known + 1}")


def _end(name: str | None) -> str:
    """The end of a long id, where ids differ."""
    return str(name) if len(str(name)) < 9 or re.match(r"(turn|call)-[0-9a-f]{12}-", str(name)) else str(name)[-6:]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:60] + "…"


@cache
def seen(host: str) -> list[str]:
    """The captures of a CLI, played from the first to the last."""

    async def play() -> list[str]:
        cli, telling, lines = Played(host), Telling(), []
        for capture in captures(host):
            await cli.tell(capture.event, capture.payload)
            lines.append(telling.line(capture.event, cli.take()))
        return lines

    return asyncio.run(play())


def expected(host: str) -> list[str]:
    return (CAPTURES / f"{host}.steps").read_text().splitlines()


ROWS = [
    pytest.param(host, number, id=f"{host}-{number + 1}-{line.split()[0]}")
    for host in ALL
    for number, line in enumerate(expected(host))
]


@pytest.mark.parametrize(("host", "number"), ROWS)
def test_a_payload_is_the_step_that_it_should_be(host: str, number: int) -> None:
    assert seen(host)[number] == expected(host)[number]


@pytest.mark.parametrize("host", ALL)
def test_each_payload_has_its_line(host: str) -> None:
    assert len(expected(host)) == len(captures(host))


@pytest.mark.parametrize("host", ALL)
def test_no_payload_shows_where_it_was_captured(host: str) -> None:
    text = (CAPTURES / f"{host}.jsonl").read_text()
    assert not re.findall(r'"/(?!home/dev|usr/bin/|tmp/claude-1000)[a-z]+/[^"]*|/root/|/work/|sk-ant|AIza|ghp_', text)


# --- which calls belong together ----------------------------------------------------------------


def a_call(host: str) -> tuple[str, str, str]:
    """The CLI's names of a tool call's two moments, and the field in which it says which tool it is."""
    moments = {moment.event: name for name, moment in reversed(host_named(host).events.items()) if moment.installed}
    return moments["before_tool"], moments["after_tool"], "toolArgs" if host == "copilot" else "tool_input"


NAMELESS = ("gemini", "copilot", "droid")
"""CLIs that give a call no id."""


@pytest.mark.parametrize("host", NAMELESS)
async def test_calls_without_an_id_are_told_apart_by_their_arguments(host: str) -> None:
    before, after, args = a_call(host)
    cli = Played(host)
    for command in ("one", "two"):
        await cli.tell(before, captured(host, before, **{args: {"command": command}}))
    for command in ("two", "one"):  # the way round that they end
        await cli.tell(after, captured(host, after, **{args: {"command": command}}))
    ids = {step.target.command: step.call_id for step in cli.steps("before_tool")}
    assert len(set(ids.values())) == 2
    assert {step.target.command: step.call_id for step in cli.steps("after_tool")} == ids


@pytest.mark.parametrize("host", NAMELESS)
async def test_equal_calls_without_an_id_end_in_the_order_that_they_began(host: str) -> None:
    before, after, _ = a_call(host)
    cli = Played(host)
    for event in (before, before, after, after):
        await cli.tell(event, captured(host, event))
    began = [step.call_id for step in cli.steps("before_tool")]
    assert [step.call_id for step in cli.steps("after_tool")] == began


@pytest.mark.parametrize("host", NAMELESS)
async def test_a_call_whose_arguments_were_changed_is_still_the_same_call(host: str) -> None:
    before, after, args = a_call(host)
    cli = Played(host)
    await cli.tell(before, captured(host, before, **{args: {"command": "as the model wants it"}}))
    await cli.tell(after, captured(host, after, **{args: {"command": "as it was run"}}))
    assert cli.steps("after_tool")[0].call_id == cli.steps("before_tool")[0].call_id


@pytest.mark.parametrize("host", NAMELESS)
async def test_a_call_that_is_over_is_not_taken_for_the_next(host: str) -> None:
    before, after, _ = a_call(host)
    cli = Played(host)
    for event in (before, after, after):
        await cli.tell(event, captured(host, event))
    assert [step.call_id is None for step in cli.steps("after_tool")] == [False, True]


@pytest.mark.parametrize("host", NAMELESS)
async def test_the_duration_that_a_cli_does_not_give_is_measured(host: str) -> None:
    before, after, _ = a_call(host)
    cli = Played(host)
    await cli.tell(before, captured(host, before))
    await asyncio.sleep(0.02)
    await cli.tell(after, captured(host, after))
    assert 0.02 <= cli.steps("after_tool")[0].duration < 10


async def test_only_so_many_open_calls_are_remembered() -> None:
    cli = Played("gemini")
    for number in range(100):
        await cli.tell("BeforeTool", captured("gemini", "BeforeTool", tool_input={"command": str(number)}))
    (state,) = cli.states.values()
    assert len(state.calls) == 64


# --- one session, one turn ----------------------------------------------------------------------


@pytest.mark.parametrize("host", ["gemini", "copilot", "opencode"])
async def test_a_turn_without_an_id_is_the_same_from_one_message_to_the_next(host: str) -> None:
    moments = {moment.event: name for name, moment in host_named(host).events.items() if moment.installed}
    cli = Played(host)
    for ours in ("before_input", "before_tool", "before_input", "before_tool"):
        await cli.tell(moments[ours], captured(host, moments[ours]))
    turns = [decision.step.turn_id for decision in cli.decisions]
    assert turns[:3] == [turns[0]] * 3
    assert turns[3:] == [turns[3]] * 3
    assert turns[0] != turns[3]


@pytest.mark.parametrize("host", ALL)
async def test_the_steps_of_a_session_are_numbered(host: str) -> None:
    cli = Played(host)
    for capture in captures(host):
        await cli.tell(capture.event, capture.payload)
    by_session: dict[str, list[int]] = {}
    for decision in cli.decisions:
        by_session.setdefault(decision.step.session_id, []).append(decision.step.sequence)
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in by_session.values())


async def test_a_droid_subagent_has_its_parent_at_each_of_its_steps() -> None:
    """Droid says whose it is only when it starts."""
    cli = Played("droid")
    start = next(one.payload for one in captures("droid") if "calling_session_id" in one.payload)
    about = {"session_id": start["session_id"]}
    await cli.tell("SessionStart", start)
    await cli.tell("UserPromptSubmit", captured("droid", "UserPromptSubmit", **about))
    await cli.tell("PreToolUse", captured("droid", "PreToolUse", **about))
    parents = {decision.event: decision.step.agent.parent for decision in cli.decisions}
    assert set(parents.values()) == {start["calling_session_id"]}, parents


async def test_an_opencode_subagent_has_its_parent_as_the_plugin_tells_it() -> None:
    cli = Played("opencode")
    await cli.tell("PreToolUse", captured("opencode", "PreToolUse", parent_session_id="ses_parent", cwd="/p"))
    (step,) = cli.steps("before_tool")
    assert (step.agent.parent, step.cwd) == ("ses_parent", "/p")


# --- CLIs of which there are only documents -----------------------------------------------------

DOCUMENTED: list[tuple[str, str, dict[str, Any], str]] = [
    ("cursor", "preToolUse",
     {"conversation_id": "c", "generation_id": "g", "workspace_roots": ["/p"], "tool_name": "Shell",
      "tool_input": {"command": "ls"}, "tool_use_id": "t"},
     'preToolUse -> before_tool | c/g | Shell shell command="ls" #t'),
    ("cursor", "beforeTabFileRead",
     {"conversation_id": "c", "generation_id": "g", "file_path": "/p/.env", "content": "TOKEN=1"},
     'beforeTabFileRead -> before_tool | c/g | TabRead read paths=["/p/.env"] #call 1'),
    ("cursor", "postToolUse",
     {"conversation_id": "c", "generation_id": "g", "tool_name": "Shell", "tool_input": {"command": "ls"},
      "tool_output": "a b", "tool_use_id": "t", "duration": 5},
     'postToolUse -> after_tool | c/g | Shell shell command="ls" #t | output="a b"'),
    ("cursor", "postToolUseFailure",
     {"conversation_id": "c", "tool_name": "Read", "tool_input": {"file_path": "/x"}, "error_message": "gone"},
     'postToolUseFailure -> after_tool | c/- | Read read paths=["/x"] #- | outcome="error" error="gone"'),
    ("cursor", "beforeSubmitPrompt", {"conversation_id": "c", "generation_id": "g", "prompt": "hi"},
     'beforeSubmitPrompt -> before_input+turn_start | c/g | source="user" input="hi"'),
    ("cursor", "subagentStart", {"conversation_id": "c", "subagent_type": "explore", "task": "look"},
     'subagentStart -> subagent_start | c/- | agent_name="explore"'),
    ("windsurf", "pre_run_command",
     {"agent_action_name": "pre_run_command", "trajectory_id": "t", "execution_id": "e",
      "tool_info": {"command_line": "ls", "cwd": "/p"}},
     'pre_run_command -> before_tool | t/e | run_command shell command="ls" #call 1'),
    ("windsurf", "pre_write_code",
     {"agent_action_name": "pre_write_code", "trajectory_id": "t",
      "tool_info": {"file_path": "/p/a", "edits": [{"old_string": "a", "new_string": "b"}]}},
     'pre_write_code -> before_tool | t/- | write_file write paths=["/p/a"] #call 1'),
    ("windsurf", "pre_mcp_tool_use",
     {"agent_action_name": "pre_mcp_tool_use", "trajectory_id": "t",
      "tool_info": {"mcp_server_name": "git", "mcp_tool_name": "log", "mcp_tool_arguments": {"n": 1}}},
     'pre_mcp_tool_use -> before_tool | t/- | mcp__git__log mcp server="git" #call 1'),
    ("windsurf", "pre_user_prompt",
     {"agent_action_name": "pre_user_prompt", "trajectory_id": "t", "execution_id": "e",
      "tool_info": {"user_prompt": "hi"}},
     'pre_user_prompt -> before_input+turn_start | t/e | source="user" input="hi"'),
    ("kiro", "preToolUse",
     {"hook_event_name": "preToolUse", "session_id": "s", "cwd": "/p", "tool_name": "execute_bash",
      "tool_input": {"command": "ls"}},
     'preToolUse -> before_tool | s/- | execute_bash shell command="ls" #call 1'),
    ("goose", "PreToolUse",
     {"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "developer__shell",
      "tool_input": {"command": "ls"}},
     'PreToolUse -> before_tool | s/- | developer__shell shell command="ls" #call 1'),
]  # fmt: skip


@pytest.mark.parametrize(("host", "event", "payload", "line"), DOCUMENTED, ids=lambda given: str(given)[:20])
async def test_a_payload_from_the_documents_is_the_step_that_it_should_be(
    host: str, event: str, payload: dict[str, Any], line: str
) -> None:
    cli = Played(host)
    await cli.tell(event, payload)
    assert Telling().line(event, cli.take()) == line


def test_the_calls_of_a_batch_are_told_as_in_every_other_host() -> None:
    calls = [
        {"tool_name": "run_shell_command", "tool_input": {"command": "ls"}, "tool_use_id": "c1", "status": "error"},
        {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "c2", "tool_response": "a b"},
    ]
    about = {"args": {"command": "ls"}}
    assert hook_json.parse_batch({"tool_calls": calls})["results"] == [
        {"tool": "run_shell_command", "call_id": "c1", "outcome": "error", "is_error": True, "output": None, **about},
        {"tool": "Bash", "call_id": "c2", "outcome": None, "is_error": None, "output": "a b", **about},
    ]


@pytest.mark.parametrize("host", ["claude_code", "copilot"])
def test_whose_step_it_is_shows_in_the_payload_and_not_in_a_variable(host: str) -> None:
    """Copilot runs the entries that a project has for Claude Code. Its variable can stand in anything's environment."""
    found = [one for one in captures(host) if one.event in host_named("claude_code").events]
    assert found
    for capture in found:
        source = find_source("claude_code", capture.event, capture.payload, {"COPILOT_PROJECT_DIR": "/project"})
        assert (source.host.name, source.event) == (host, capture.event)
