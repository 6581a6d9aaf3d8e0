# ruff: noqa: E501 (the lines of real transcripts are long)
"""`fairlead import`: past sessions in the journal, marked as what they are."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from fairlead import Hooks
from fairlead.hosts.clis.transcripts import importer
from fairlead.journal import Journal
from fairlead.journal.reading import Filter, Reader, Record
from fairlead.lifecycle import BeforeTool

SECRET = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
CLAUDE = r"""
{"parentUuid":null,"isSidechain":false,"promptId":"4a28","type":"user","message":{"role":"user","content":"please do it"},"uuid":"82e9","timestamp":"2026-11-16T05:04:29.441Z","cwd":"/home/dev/proj","sessionId":"d56f","version":"2.1.325"}
{"isSidechain":false,"message":{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"echo hello"}}],"stop_reason":"tool_use"},"type":"assistant","uuid":"7b00","timestamp":"2026-11-16T05:04:29.723Z","cwd":"/home/dev/proj","sessionId":"d56f"}
{"isSidechain":false,"promptId":"4a28","type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_1","type":"tool_result","content":"hello","is_error":false}]},"uuid":"ca74","timestamp":"2026-11-16T05:04:30.713Z","cwd":"/home/dev/proj","sessionId":"d56f"}
{"isSidechain":false,"message":{"role":"assistant","content":[{"type":"text","text":"all done"}],"stop_reason":"end_turn"},"type":"assistant","uuid":"dcb3","timestamp":"2026-11-16T05:04:33.639Z","cwd":"/home/dev/proj","sessionId":"d56f"}
""".lstrip()
STEPS = ["session_start", "before_input", "before_tool", "after_tool", "before_turn_end"]
SUBAGENT = r"""
{"parentUuid":null,"isSidechain":true,"agentId":"a843","type":"user","message":{"role":"user","content":"do it"},"uuid":"6373","timestamp":"2026-11-16T05:04:33.021Z","cwd":"/home/dev/proj","sessionId":"d56f"}
{"isSidechain":true,"agentId":"a843","message":{"role":"assistant","content":[{"type":"tool_use","id":"toolu_8","name":"Bash","input":{"command":"echo sub1"}}],"stop_reason":"tool_use"},"attributionAgent":"general-purpose","type":"assistant","uuid":"a6b6","timestamp":"2026-11-16T05:04:33.421Z","sessionId":"d56f"}
""".lstrip()
GEMINI = r"""
{"sessionId":"a34c","projectHash":"f0da","startTime":"2026-11-16T05:04:45.127Z","kind":"main"}
{"id":"5b52","timestamp":"2026-11-16T05:04:45.324Z","type":"user","content":[{"text":"please do it"}]}
{"id":"3751","timestamp":"2026-11-16T05:04:46.333Z","type":"gemini","content":"","toolCalls":[{"id":"run_shell_command__call_1_0","name":"run_shell_command","args":{"command":"echo hello"},"result":[{"functionResponse":{"id":"run_shell_command__call_1_0","name":"run_shell_command","response":{"output":"Output: hello"}}}],"status":"success","timestamp":"2026-11-16T05:04:47.077Z"}]}
""".lstrip()
CODEX = r"""
{"timestamp":"2026-11-16T05:04:36.501Z","ordinal":0,"type":"session_meta","payload":{"session_id":"01a1","id":"01a1","cwd":"/home/dev/proj","cli_version":"0.166.0"}}
{"timestamp":"2026-11-16T05:04:36.820Z","ordinal":9,"type":"response_item","payload":{"type":"function_call","status":"completed","id":"fc_1_0","name":"exec_command","arguments":"{\"cmd\": \"echo hello\"}","call_id":"call_1_0"}}
""".lstrip()


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "transcripts/d56f.jsonl"
    path.parent.mkdir()
    path.write_text(CLAUDE)
    return path


def records(machine: Any) -> list[Record]:
    with Reader(machine.state / "journal.db") as reader:
        return list(reader.records(Filter()))


# --- what is recorded -----------------------------------------------------------------------------


def test_the_steps_of_a_session_are_recorded_in_order(run, machine, transcript):
    ended = run("import", "claude", str(transcript))
    assert ended.code == 0
    assert ended.out.startswith("Imported 5 steps of 1 session from 1 transcript.\n")
    assert [record.body["step"]["event"] for record in records(machine)] == STEPS


def test_a_recorded_call_is_a_whole_step(run, machine, transcript):
    run("import", "claude", str(transcript))
    step: Any = records(machine)[2].decision.step
    assert (step.tool, step.args, step.call_id) == ("Bash", {"command": "echo hello"}, "toolu_1")
    assert (step.kind, step.target.command, step.safety) == ("shell", "echo hello", "mutating")
    assert (step.host, step.session_id, step.turn_id, step.cwd) == ("claude_code", "d56f", "4a28", "/home/dev/proj")
    assert step.agent.id == "d56f"


def test_it_says_that_nothing_was_decided_and_when_and_where_it_was_told(run, machine, transcript):
    run("import", "claude", str(transcript))
    for record in records(machine):
        decision = record.decision
        assert (decision.control, decision.contributions, decision.hook) == ("proceed", (), None)
        metadata = decision.step.metadata
        assert (metadata["imported"], metadata["source"]) == (True, str(transcript))
        assert metadata["at"].startswith("2026-11-16T05:04:")


def test_a_call_that_the_cli_refused_is_recorded_as_denied(run, machine, transcript):
    result = '"tool_use_id":"toolu_1"'
    assert CLAUDE.count(result) == 1
    refused = CLAUDE.replace(
        '"type":"user","message":{"role":"user","content":[{' + result,
        '"toolDenialKind":"user","type":"user","message":{"role":"user","content":[{' + result,
    )
    transcript.write_text(refused.replace('"is_error":false', '"is_error":true'))
    run("import", "claude", str(transcript))
    told = {record.body["step"]["event"]: record for record in records(machine)}
    assert (told["before_tool"].decision.control, told["before_tool"].effect) == ("proceed", "deny")
    assert [told[event].effect for event in STEPS if event != "before_tool"] == ["proceed"] * 4
    assert told["after_tool"].body["step"]["outcome"] == "denied"


def test_a_subagent_has_its_parent(run, machine, transcript):
    folder = transcript.parent / "d56f/subagents"
    folder.mkdir(parents=True)
    (folder / "agent-a843.jsonl").write_text(SUBAGENT)
    run("import", "claude", str(transcript.parent))
    agents = {(r.body["step"]["event"], r.body["step"]["agent"].get("parent")) for r in records(machine)}
    assert {("subagent_start", "d56f"), ("before_tool", "d56f"), ("before_tool", None)} <= agents


@pytest.mark.parametrize(
    ("cli", "name", "text", "tool"),
    [
        ("gemini", "session-2026-a34c.jsonl", GEMINI, "run_shell_command"),
        ("codex", "rollout-2026-01a1.jsonl", CODEX, "Bash"),
    ],
)
def test_other_clis_transcripts_are_taken_too(run, machine, tmp_path, cli, name, text, tool):
    (tmp_path / name).write_text(text)
    assert run("import", cli, str(tmp_path / name)).code == 0
    calls = [record.body["step"] for record in records(machine) if record.body["step"]["event"] == "before_tool"]
    assert [(call["host"], call["tool"], call["kind"]) for call in calls] == [(cli, tool, "shell")]


def test_a_home_is_a_folder_of_transcripts(run, machine):
    path = machine.home / ".claude/projects/-home-dev-proj/d56f.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(CLAUDE)
    (machine.home / "other.jsonl").write_text(SUBAGENT)
    assert run("import", "claude", str(machine.home), "--json").json["imported"] == 5


def test_the_journal_is_sound_and_shows_them(run, transcript):
    run("import", "claude", str(transcript))
    assert run("verify").code == 0
    log = run("log").out.splitlines()
    assert len(log) == 5
    assert "before_tool       proceed   Bash echo hello" in log[2]
    assert run("show", "3").code == 0


def test_secrets_are_redacted_as_in_any_record(run, machine, transcript):
    transcript.write_text(CLAUDE.replace("echo hello", f"echo {SECRET}").replace('"hello"', f'"{SECRET}"'))
    run("import", "claude", str(transcript))
    assert SECRET.encode() not in (machine.state / "journal.db").read_bytes()
    assert "[redacted: github token]" in records(machine)[2].body["step"]["args"]["command"]


def test_what_the_user_lists_is_redacted_too(run, machine, transcript):
    machine.user('[redact]\npatterns = ["hel+o"]\n')
    run("import", "claude", str(transcript))
    assert "hello" not in records(machine)[2].body["step"]["args"]["command"]


# --- what is there already ------------------------------------------------------------------------


def test_the_same_file_adds_nothing_the_second_time(run, machine, transcript):
    run("import", "claude", str(transcript))
    ended = run("import", "claude", str(transcript))
    assert ended.out.startswith("Imported 0 steps of 0 sessions")
    assert "5 were imported before." in ended.out
    assert len(records(machine)) == 5


def test_a_file_that_was_moved_adds_nothing(run, machine, transcript):
    run("import", "claude", str(transcript))
    moved = transcript.rename(transcript.with_name("moved.jsonl"))
    assert run("import", "claude", str(moved), "--json").json["imported"] == 0


def test_a_file_that_has_grown_adds_what_is_new(run, machine, transcript):
    lines = CLAUDE.splitlines(keepends=True)
    transcript.write_text("".join(lines[:2]))
    run("import", "claude", str(transcript))
    transcript.write_text(CLAUDE)
    told = run("import", "claude", str(transcript), "--json").json
    assert (told["events"], told["there"]) == ({"after_tool": 1, "before_turn_end": 1}, 3)


def test_the_same_session_in_two_files_is_taken_once(run, machine, transcript):
    transcript.with_name("copy.jsonl").write_text(CLAUDE)
    told = run("import", "claude", str(transcript.parent), "--json").json
    assert (told["imported"], told["there"], told["sessions"]) == (5, 5, 1)


def test_what_a_hook_was_asked_about_is_left_out(run, machine, transcript):
    journal = Journal()
    hooks = Hooks(journal=journal)
    about: dict[str, Any] = {"session_id": "d56f", "host": "claude_code"}
    hooks.dispatch_sync(BeforeTool(tool="Bash", args={"command": "echo hello"}, call_id="toolu_1", **about))
    journal.close()
    told = run("import", "claude", str(transcript), "--json").json
    assert told["events"] == {"session_start": 1, "before_input": 1, "before_turn_end": 1}
    assert told["decided"] == 2


def test_a_call_without_an_id_is_known_by_its_arguments(run, tmp_path):
    journal = Journal()
    about: dict[str, Any] = {"session_id": "a34c", "host": "gemini", "call_id": "call-of-ours"}
    Hooks(journal=journal).dispatch_sync(BeforeTool(tool="run_shell_command", args={"command": "echo hello"}, **about))
    journal.close()
    (tmp_path / "a34c.jsonl").write_text(GEMINI)
    assert "before_tool" not in run("import", "gemini", str(tmp_path / "a34c.jsonl"), "--json").json["events"]


# --- how ------------------------------------------------------------------------------------------


def test_a_dry_run_writes_nothing(run, machine, transcript):
    ended = run("import", "claude", str(transcript), "--dry-run")
    assert ended.out == "Would import 5 steps of 1 session from 1 transcript.\n"
    assert not machine.state.exists()


def test_a_dry_run_knows_what_is_there(run, transcript):
    run("import", "claude", str(transcript))
    told = run("import", "claude", str(transcript), "--dry-run", "--json").json
    assert (told["imported"], told["there"]) == (0, 5)


def test_garbage_is_counted_and_the_rest_is_taken(run, machine, transcript):
    transcript.write_text('{"half\n' + CLAUDE + "[]\n")
    ended = run("import", "claude", str(transcript))
    assert "2 of 6 lines could not be read, and were skipped." in ended.out
    assert len(records(machine)) == 5


def test_another_journal(run, machine, tmp_path, transcript):
    run("import", "claude", str(transcript), "--journal", str(tmp_path / "other.db"))
    assert (tmp_path / "other.db").exists()
    assert not (machine.state / "journal.db").exists()


def test_what_waits_is_written_before_more_is_read(run, machine, transcript, monkeypatch):
    """However long a transcript is, only so much of it is held."""
    flushed: list[int] = []
    flush = Journal.flush
    monkeypatch.setattr(importer, "WAITING", 100)
    monkeypatch.setattr(Journal, "flush", lambda self, *args: (flushed.append(len(self._queue)), flush(self, *args)))
    run("import", "claude", str(transcript))
    assert len(flushed) >= 4
    assert max(flushed) <= 2


def test_a_terminal_sees_how_far_it_is(terminal, transcript):
    ended = terminal("import", "claude", str(transcript))
    assert ended.code == 0
    assert "% of 1 transcripts" in ended.out


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("clade", "."), "did you mean"),
        (("claude", "/nowhere"), "there is nothing at /nowhere"),
        (("codex", "."), "there is no transcript of codex in .: they are called rollout-*.jsonl"),
    ],
)
def test_what_cannot_be_imported_says_so(run, words, problem):
    ended = run("import", *words)
    assert (ended.code, ended.out) == (1, "")
    assert problem in ended.err


def test_one_file_that_cannot_be_read_does_not_keep_the_others_out(run, machine, tmp_path):
    (tmp_path / "a").mkdir()
    with sqlite3.connect(tmp_path / "a/opencode.db") as db:
        db.execute("CREATE TABLE session (id text)")
    db.close()
    (tmp_path / "a/opencode-2.db").write_text("nothing like a database" * 100)
    ended = run("import", "opencode", str(tmp_path / "a"), "--json")
    assert (ended.code, len(ended.json["problems"])) == (1, 2)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions")
def test_a_journal_that_cannot_be_written_is_an_error(run, transcript, tmp_path):
    (tmp_path / "journal.db").write_text("this is another program's file, and it is no database at all" * 20)
    ended = run("import", "claude", str(transcript), "--journal", str(tmp_path / "journal.db"))
    assert ended.code == 1
    assert str(tmp_path / "journal.db") in ended.err
