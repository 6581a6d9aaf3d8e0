"""The page of coverage: tool calls in transcripts, and whether the journal has a decision on them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest


@pytest.fixture
def transcript(home: Path) -> Path:
    """A session of Claude Code with one call, of which no hook knew."""
    folder = home / "home/.claude/projects/-work"
    folder.mkdir(parents=True)
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    about = {"sessionId": "unknown-session", "timestamp": now, "cwd": "/work", "version": "2.0.0", "uuid": "u1"}
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "git push"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "done"}
    lines = [
        {"type": "assistant", "message": {"role": "assistant", "content": [call]}, **about},
        {"type": "user", "message": {"role": "user", "content": [result]}, **about},
    ]
    file = folder / "unknown-session.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return file


def test_a_call_without_a_decision_is_a_gap_with_its_reason(tab, transcript: Path):
    shown = tab.get("/coverage").text
    assert "1 gap in 1 session" in shown
    assert "git push" in shown
    assert "fairlead doctor" in shown


def test_without_transcripts_there_is_nothing_to_cover(tab):
    assert "no tool call" in tab.get("/coverage").text


def test_a_time_that_is_not_offered_is_the_last_day(tab):
    assert 'aria-current="true">the last day' in tab.get("/coverage?days=-5").text
