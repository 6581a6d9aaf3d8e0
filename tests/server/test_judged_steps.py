"""A step is judged once, whichever and however many entries the CLI runs for it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from machines import Daemon, Machine
from test_daemon_hook import DENIES, hook, records, shell, told, why


@pytest.fixture(scope="module")
def strict(shared: Machine) -> Path:
    return shared.project("strict", DENIES)


def in_cursor(command: str, session: str) -> dict[str, Any]:
    return {
        "hook_event_name": "preToolUse", "cursor_version": "2.0", "conversation_id": session, "session_id": session,
        "workspace_roots": ["/w"], "tool_name": "Shell", "tool_input": {"command": command},
    }  # fmt: skip


CLAUDE = ("claude_code", "claude_code@project", "claude_code@managed")
CURSOR = ("cursor", "cursor@project", "claude_code", "claude_code@project")
EVENTS = {"cursor": "preToolUse", "claude_code": "PreToolUse"}
PAIRS = [
    *(("claude_code", shell, pair) for pair in product(CLAUDE, CLAUDE) if pair[0] < pair[1]),
    *(("cursor", in_cursor, pair) for pair in product(CURSOR, CURSOR) if pair[0] < pair[1]),
]


@pytest.mark.parametrize(("host", "payload", "pair"), PAIRS)
def test_two_entries_get_the_same_refusal_and_the_journal_has_it_once(
    daemon: Daemon, strict: Path, host: str, payload: Any, pair: tuple[str, str]
) -> None:
    session = "-".join((host, *pair))
    answers = [
        hook(daemon, entry, EVENTS[entry.partition("@")[0]], payload("touch forbidden", session), strict).body["answer"]
        for entry in pair
    ]
    assert answers[0] == answers[1]
    reply = json.loads(answers[0][2:-4])
    assert why(reply) or reply["permission"] == "deny"
    (record,) = records(daemon, session, "before_tool")
    assert record["step"]["host"] == host


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
