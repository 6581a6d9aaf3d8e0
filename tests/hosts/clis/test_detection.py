"""Which program fired an event: the payload says so, whichever CLI's entry ran and whatever the environment has."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from played import captures

from fairlead.hosts.clis.client import CLI_VARIABLES
from fairlead.hosts.clis.detection import find_source
from fairlead.hosts.clis.effect import Effect
from fairlead.hosts.clis.handler import parse_event, repeat_answer
from fairlead.hosts.clis.mapping import ALL, UNKNOWN_PROGRAM, host_named, host_tools

CURSOR = {
    "hook_event_name": "preToolUse", "cursor_version": "2.0", "conversation_id": "c", "session_id": "c",
    "workspace_roots": ["/w"], "tool_name": "Shell", "tool_input": {"command": "ls"},
}  # fmt: skip
VSCODE = {
    "timestamp": "2026-11-15T17:49:28.133Z", "hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/w",
    "tool_name": "run_in_terminal", "tool_input": {"command": "ls"}, "tool_use_id": "1",
}  # fmt: skip
JETBRAINS = {"timestamp": 1794766366147, "cwd": "/w", "toolName": "run_in_terminal", "toolArgs": '{"command": "ls"}'}
DEVIN = {"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "exec", "tool_input": {"command": "ls"}}
CURSORS = {"CURSOR_PROJECT_DIR": "/w", "CLAUDE_PROJECT_DIR": "/w"}

GUESTS = [
    ("cursor", "claude_code", "PreToolUse", CURSOR, CURSORS),
    ("cursor", "cursor", "preToolUse", CURSOR, CURSORS),
    ("vscode", "copilot", "preToolUse", VSCODE, {}),
    ("vscode", "copilot", "preToolUse", {key: VSCODE[key] for key in VSCODE if key != "timestamp"}, {}),
    ("vscode", "claude_code", "PreToolUse", VSCODE, {}),
    ("jetbrains", "copilot", "preToolUse", JETBRAINS, {}),
    ("devin", "claude_code", "PreToolUse", DEVIN, {"DEVIN_PROJECT_DIR": "/w"}),
]


@pytest.mark.parametrize(("host", "entry", "event", "payload", "cli_env"), GUESTS)
def test_a_program_is_known_whichever_entry_it_runs(
    host: str, entry: str, event: str, payload: dict[str, Any], cli_env: dict[str, str]
) -> None:
    source = find_source(entry, event, payload, cli_env)
    assert source.host.name == host
    parsed = parse_event(source.host, source.event, payload)
    assert parsed.mapping.event == "before_tool"
    assert parsed.fields is not None
    assert parsed.fields["args"] == {"command": "ls"}


UNKNOWN = [
    ("claude_code", "copilot", "preToolUse", {"session_id": "s", "tool_name": "Bash", "tool_input": {"command": "ls"}}),
    ("copilot", "claude_code", "PreToolUse", {"sessionId": "s", "toolName": "bash", "toolArgs": '{"command": "ls"}'}),
]
"""Which form it is in, the entry that ran, the entry's event, and a payload that no known program sends to it."""


@pytest.mark.parametrize(("form", "entry", "event", "payload"), UNKNOWN)
def test_a_program_that_is_not_known_is_judged_in_the_form_of_its_payload(
    form: str, entry: str, event: str, payload: dict[str, Any]
) -> None:
    source = find_source(entry, event, payload, {})
    assert (source.host.name, source.is_known) == (form, False)
    parsed = parse_event(source.host, source.event, payload)
    assert (parsed.mapping.event, parsed.fields and parsed.fields["args"]) == ("before_tool", {"command": "ls"})


def test_what_has_no_form_that_is_known_is_left_to_the_entry() -> None:
    for payload in ({}, {"toolName": 7}, {"tool_name": None}):
        assert find_source("copilot", "preToolUse", payload, {}).host.name in ("copilot", "jetbrains")
        assert find_source("claude_code", "PreToolUse", payload, {}).host.name == "claude_code"


@pytest.mark.parametrize(("form", "entry", "event", "payload"), UNKNOWN)
def test_a_refusal_of_an_unknown_program_is_said_in_every_way(
    form: str, entry: str, event: str, payload: dict[str, Any]
) -> None:
    source = find_source(entry, event, payload, {})
    parsed = parse_event(source.host, source.event, payload, {UNKNOWN_PROGRAM: entry})
    assert repeat_answer(parsed, Effect()) == "0::end"
    refused = repeat_answer(parsed, Effect(deny="not\nthat"))
    assert refused.startswith("refusal:{")
    json_text, _, reason = refused.removeprefix("refusal:").removesuffix(":end").partition("\n")
    assert "deny" in json.dumps(json.loads(json_text))
    assert reason == "not\nthat"


def test_a_guests_tools_are_known_by_what_they_do() -> None:
    for host, *_, payload, _ in GUESTS:
        tool = payload.get("tool_name") or payload["toolName"]
        assert host_tools().spec(tool, {"command": "ls"}, host).kind == "shell", host


@given(st.sampled_from(ALL), st.sets(st.sampled_from(CLI_VARIABLES)))
def test_no_variable_makes_a_cli_another_one_when_its_own_entry_runs(name: str, variables: set[str]) -> None:
    """A repository sets variables for a CLI, and a CLI inherits those of the one that started it."""
    if name == "copilot":
        variables |= {"COPILOT_PROJECT_DIR"}  # which it sets for every hook
    host = host_named(name)
    for capture in captures(name):
        if capture.event in host.events:
            source = find_source(name, capture.event, capture.payload, dict.fromkeys(variables, "/elsewhere"))
            assert source == (host, capture.event, True)
