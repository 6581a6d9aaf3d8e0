"""A step is judged once, whichever and however many entries the CLI runs for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from machines import Daemon, Machine
from test_daemon_hook import DENIES, hook, records, shell, told, why


@pytest.fixture(scope="module")
def strict(shared: Machine) -> Path:
    return shared.project("strict", DENIES)


class Guest(NamedTuple):
    """A program, the entries that it runs, and what it sends to them."""

    host: str
    entries: tuple[str, ...]
    payload: Callable[[str, str, str], dict[str, Any]]
    """From a command, a session and the CLI whose entry runs."""
    cli_env: dict[str, str] = {}


def in_claude(command: str, session: str, entry: str) -> dict[str, Any]:
    return shell(command, session)


def in_cursor(command: str, session: str, entry: str = "cursor") -> dict[str, Any]:
    return {
        "hook_event_name": "preToolUse", "cursor_version": "2.0", "conversation_id": session, "session_id": session,
        "workspace_roots": ["/w"], "tool_name": "Shell", "tool_input": {"command": command},
    }  # fmt: skip


def in_copilot(command: str, session: str, entry: str) -> dict[str, Any]:
    """Copilot sends its own form to its own entries, and Claude Code's form to those of Claude Code."""
    if entry == "copilot":
        args = {"toolName": "bash", "toolArgs": json.dumps({"command": command})}
        return {"sessionId": session, "timestamp": 1794766366147, "cwd": "/w", **args}
    return in_vscode(command, session, entry) | {"tool_name": "Bash"}


def in_vscode(command: str, session: str, entry: str) -> dict[str, Any]:
    about = {"timestamp": "2026-11-15T17:49:28.133Z", "hook_event_name": "PreToolUse", "session_id": session}
    return {**about, "cwd": "/w", "tool_name": "run_in_terminal", "tool_input": {"command": command}}


def in_devin(command: str, session: str, entry: str) -> dict[str, Any]:
    about = {"hook_event_name": "PreToolUse", "session_id": session, "tool_name": "exec"}
    return {**about, "tool_input": {"command": command}}


CLAUDE = ("claude_code", "claude_code@project", "claude_code@managed")
COPILOT = ("copilot", "copilot@project", "copilot@managed")
GUESTS = [
    Guest("claude_code", CLAUDE, in_claude),
    Guest("cursor", ("cursor", "cursor@project", "cursor@managed", "cursor@team", *CLAUDE[:2]), in_cursor),
    Guest("copilot", (*COPILOT, *CLAUDE[:2]), in_copilot, {"COPILOT_PROJECT_DIR": "/w"}),
    Guest("vscode", (*COPILOT[:2], *CLAUDE[:2]), in_vscode),
    Guest("devin", ("devin", "devin@project", *CLAUDE[:2]), in_devin, {"DEVIN_PROJECT_DIR": "/w"}),
]
EVENTS = {"cursor": "preToolUse", "claude_code": "PreToolUse", "copilot": "preToolUse", "devin": "PreToolUse"}
PAIRS = [(guest, pair) for guest in GUESTS for pair in permutations(guest.entries, 2)]


def bring(daemon: Daemon, guest: Guest, entry: str, command: str, session: str, folder: Path) -> str:
    """What the launcher is told when a program runs one of the entries."""
    cli = entry.partition("@")[0]
    cli_env = dict.fromkeys(guest.cli_env, str(folder))
    payload = guest.payload(command, session, cli)
    payload |= {"cwd": str(folder)} if "cwd" in payload else {}
    answer = hook(daemon, entry, EVENTS[cli], payload, folder, told=cli_env)
    assert answer.status == 200, answer
    return str(answer.body["answer"])


def refuses(answer: str) -> bool:
    if answer.startswith("2:"):
        return True
    reply = json.loads(answer[2:-4] or "{}")
    return bool(why(reply)) or "deny" in (reply.get("permission"), reply.get("permissionDecision"))


@pytest.mark.parametrize(("guest", "pair"), PAIRS, ids=lambda value: getattr(value, "host", None) or "-".join(value))
def test_two_entries_get_the_same_refusal_and_the_journal_has_it_once(
    daemon: Daemon, strict: Path, guest: Guest, pair: tuple[str, str]
) -> None:
    session = "-".join((guest.host, *pair))
    assert [refuses(bring(daemon, guest, entry, "touch forbidden", session, strict)) for entry in pair] == [True, True]
    (record,) = records(daemon, session, "before_tool")
    assert record["step"]["host"] == guest.host
    assert record["step"]["kind"] == "shell"


@pytest.mark.parametrize(("guest", "pair"), PAIRS, ids=lambda value: getattr(value, "host", None) or "-".join(value))
def test_two_entries_let_a_harmless_step_pass_and_the_journal_has_it_once(
    daemon: Daemon, strict: Path, guest: Guest, pair: tuple[str, str]
) -> None:
    session = "-".join(("harmless", guest.host, *pair))
    assert not any(refuses(bring(daemon, guest, entry, "echo hi", session, strict)) for entry in pair)
    (record,) = records(daemon, session, "before_tool")
    assert record["step"]["host"] == guest.host


def test_entries_that_run_at_the_same_time_are_one_step(daemon: Daemon, strict: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        asked = pool.map(
            lambda entry: told(daemon, entry, "PreToolUse", shell("touch forbidden", "parallel"), strict), CLAUDE
        )
        assert all(map(why, asked))
    assert len(records(daemon, "parallel", "before_tool")) == 1


def test_an_equal_step_that_comes_again_is_another_one(daemon: Daemon, strict: Path) -> None:
    for _ in range(3):
        for entry in ("claude_code", "claude_code@project"):
            assert why(told(daemon, entry, "PreToolUse", shell("touch forbidden", "again"), strict))
    assert len(records(daemon, "again", "before_tool", number=3)) == 3


def test_a_step_that_broke_is_judged_again_for_the_next_entry(daemon: Daemon, strict: Path) -> None:
    bad = hook(daemon, "claude_code", "PreToolUse", {**shell("ls", "broken"), "tool_name": 7}, strict)
    assert bad.status != 200
    assert why(told(daemon, "claude_code@project", "PreToolUse", shell("touch forbidden", "broken"), strict))


def test_cursor_always_gets_an_answer_because_it_takes_silence_for_a_failure(daemon: Daemon, strict: Path) -> None:
    for entry, event in (("cursor", "preToolUse"), ("claude_code", "PreToolUse")):
        assert hook(daemon, entry, event, in_cursor("ls", entry), strict).body == {"answer": "0:{}:end"}
