"""`fairlead coverage`: what ran without a decision, and why."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fairlead import Hooks, deny
from fairlead.journal import Journal
from fairlead.journal import writer as journal_writer
from fairlead.lifecycle import Agent, BeforeTool, SessionStart

SESSION = "d56f96cd"


def stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


# --- transcripts, of lines as Claude Code, Gemini CLI and Copilot CLI write them ------------------


class Claude:
    """A transcript of Claude Code's, as it grows."""

    def __init__(self, home: Path, session: str = SESSION, agent: str | None = None) -> None:
        folder = home / ".claude/projects/-home-dev-proj"
        self.path = folder / (f"{session}/subagents/agent-{agent}.jsonl" if agent else f"{session}.jsonl")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.about = {"sessionId": session, "isSidechain": agent is not None, "cwd": "/home/dev/proj"}
        if agent:
            self.about["agentId"] = agent

    def line(self, kind: str, content: Any, at: float | None, **more: Any) -> None:
        line = {"type": kind, "message": {"role": kind, "content": content}, "uuid": os.urandom(4).hex(), **more}
        with self.path.open("a") as file:
            file.write(json.dumps({**line, **self.about, "timestamp": stamp(at or time.time())}) + "\n")

    def call(self, call_id: str, tool: str = "Bash", at: float | None = None, **args: Any) -> None:
        args = args or {"command": f"echo {call_id}"}
        self.line("assistant", [{"type": "tool_use", "id": call_id, "name": tool, "input": args}], at)

    def result(
        self, call_id: str, text: str = "ok", at: float | None = None, failed: bool = False, **more: Any
    ) -> None:
        block = {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": failed}
        self.line("user", [block], at, **more)

    def ran(self, call_id: str, tool: str = "Bash", at: float | None = None, **args: Any) -> None:
        self.call(call_id, tool, at, **args)
        self.result(call_id, at=at)


def gemini(home: Path, *commands: str, session: str = "a34c") -> None:
    path = home / f".gemini/tmp/proj/chats/session-2026-{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines: list[Any] = [{"sessionId": session, "startTime": stamp(time.time()), "kind": "main"}]
    for number, command in enumerate(commands):
        name = f"run_shell_command__call_{number}"
        answer = {"functionResponse": {"id": name, "name": "run_shell_command", "response": {"output": "Output: ok"}}}
        call = {"id": name, "name": "run_shell_command", "args": {"command": command}, "result": [answer]}
        call |= {"status": "success", "timestamp": stamp(time.time())}
        lines.append({"id": str(number), "timestamp": stamp(time.time()), "type": "gemini", "toolCalls": [call]})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


# --- decisions ------------------------------------------------------------------------------------


class Deciding:
    """Hooks that decide on steps, and a journal of that."""

    def __init__(self, hooks: Hooks) -> None:
        self.hooks = hooks

    def on(self, call_id: str | None, tool: str = "Bash", host: str = "claude_code", **about: Any) -> None:
        args = about.pop("args", {"command": f"echo {call_id}"})
        about = {"session_id": SESSION, **about}
        self.hooks.dispatch_sync(BeforeTool(tool=tool, args=args, call_id=call_id, host=host, **about))


@contextmanager
def deciding(path: Path | None = None) -> Iterator[Deciding]:
    journal = Journal(path)
    hooks = Hooks(journal=journal)
    hooks.add(lambda step: deny("no") if "forbidden" in str(step.args) else None, on="before_tool", name="judge")
    yield Deciding(hooks)
    journal.close()


@pytest.fixture
def claude(machine: Any) -> Claude:
    return Claude(machine.home)


@pytest.fixture
def reasons(run: Any) -> Callable[..., dict[str, int]]:
    """Why there are gaps."""

    def reasons(*words: str) -> dict[str, int]:
        found: dict[str, int] = run("coverage", "--json", *words).json["reasons"]
        return found

    return reasons


# --- gaps -----------------------------------------------------------------------------------------


def test_where_every_call_was_decided_there_is_no_gap(run, claude):
    with deciding() as decided:
        for number in range(3):
            decided.on(f"toolu_{number}")
            claude.ran(f"toolu_{number}")
    ended = run("coverage")
    assert ended.code == 0
    assert ended.out.splitlines()[1].split() == ["Claude", "Code", "Bash", "3", "3", "0", "0", "0"]
    assert "no gap in 1 session" in ended.out


def test_a_call_without_a_decision_is_a_gap_with_time_session_call_and_reason(run, claude):
    with deciding() as decided:
        decided.on("toolu_1")
        claude.ran("toolu_1")
        claude.ran("toolu_2", "Write", file_path="/etc/passwd", content="x")
    ended = run("coverage")
    assert ended.code == 1
    line = ended.out.splitlines()[-1]
    assert all(
        word in line for word in (SESSION, "toolu_2", "tool ", "Write /etc/passwd", datetime.now().strftime("%m-%d"))
    )
    assert "1 gap in 1 session" in ended.out


def test_gaps_as_data(run, claude, machine):
    with deciding() as decided:
        decided.on("toolu_1")
        claude.ran("toolu_1")
        claude.ran("toolu_2", "Write", file_path="/etc/passwd")
    told = run("coverage", "--json").json
    (gap,) = told["gaps"]
    assert gap["why"].startswith("hooks fired in this session, but never for this tool")
    assert {key: gap[key] for key in ("cli", "tool", "session", "call", "reason", "about", "agent")} == {
        "cli": "claude_code", "tool": "Write", "session": SESSION, "call": "toolu_2", "reason": "tool",
        "about": "/etc/passwd", "agent": None,
    }  # fmt: skip
    assert (told["transcripts"], told["sessions"], told["garbage"], told["gaps_left_out"]) == (1, 1, 0, 0)
    assert told["tools"] == [
        {"cli": "claude_code", "tool": "Bash", "calls": 1, "decided": 1, "denied": 0, "not_run": 0, "gaps": 0},
        {"cli": "claude_code", "tool": "Write", "calls": 1, "decided": 0, "denied": 0, "not_run": 0, "gaps": 1},
    ]


def test_calls_are_counted_by_the_program_that_ran_them(run, claude):
    with deciding() as decided:
        decided.on("toolu_1")
        claude.about["entrypoint"] = "cli"
        claude.ran("toolu_1")
        claude.about["entrypoint"] = "claude-vscode"
        claude.ran("toolu_2")
    ended = run("coverage")
    assert ["Claude", "Code", "claude-vscode", "1", "0", "0", "0", "1"] in [
        line.split() for line in ended.out.splitlines()
    ]
    told = run("coverage", "--json").json
    count = {"cli": "claude_code", "calls": 1, "denied": 0, "not_run": 0}
    assert told["programs"] == [
        {**count, "entry_point": "claude-vscode", "decided": 0, "gaps": 1},
        {**count, "entry_point": "cli", "decided": 1, "gaps": 0},
    ]
    assert [gap["entry_point"] for gap in told["gaps"]] == ["claude-vscode"]


def test_a_cli_that_names_no_program_has_one_row(run, machine):
    gemini(machine.home, "echo hi")
    ended = run("coverage", "--json")
    assert [(row["cli"], row["entry_point"]) for row in ended.json["programs"]] == [("gemini", None)]
    assert "ENTRY POINT" not in run("coverage").out


def test_a_refused_call_is_covered(run, claude):
    with deciding() as decided:
        decided.on("toolu_1", args={"command": "echo forbidden"})
        claude.call("toolu_1", command="echo forbidden")
        about = {"permissionDecision": {"decision": "reject", "source": "hook"}}
        claude.result("toolu_1", "PreToolUse:Bash hook error: no", failed=True, **about)
    ended = run("coverage", "--json")
    assert ended.code == 0
    assert ended.json["tools"][0]["denied"] == 1


def test_a_call_that_was_refused_and_ran_all_the_same_is_a_gap(reasons, claude):
    with deciding() as decided:
        decided.on("toolu_1", args={"command": "echo forbidden"})
        claude.ran("toolu_1", command="echo forbidden")
    assert reasons() == {"ran": 1}


def test_a_call_of_no_tool_never_ran_and_is_no_gap(run, claude):
    with deciding() as decided:
        decided.on("toolu_1")
        claude.ran("toolu_1")
        claude.call("toolu_2", "NoSuchTool")
        claude.result(
            "toolu_2", "<tool_use_error>Error: No such tool available: NoSuchTool</tool_use_error>", failed=True
        )
    ended = run("coverage", "--json")
    assert ended.code == 0
    assert ended.json["tools"][1]["not_run"] == 1


def test_an_imported_step_is_no_decision(run, reasons, claude):
    claude.ran("toolu_1", at=time.time() - 100)
    assert run("import", "claude", str(claude.path)).code == 0
    with deciding() as decided:
        decided.on("other", session_id="other")
    assert reasons() == {"before": 1}


def test_a_call_that_another_file_repeats_counts_once(run, machine, claude):
    at = time.time()
    with deciding() as decided:
        decided.on("toolu_1")
        claude.ran("toolu_1", at=at)
        os.utime(claude.path, (at - 50, at - 50))
        Claude(machine.home, "a-session-that-goes-on").ran("toolu_1", at=at)
    told = run("coverage", "--json").json
    assert (told["tools"][0]["calls"], told["gaps"]) == (1, [])


# --- reasons --------------------------------------------------------------------------------------


def test_without_a_journal_nothing_was_ever_decided(run, claude):
    claude.ran("toolu_1")
    ended = run("coverage")
    assert ended.code == 1
    assert "1 journal: there is no journal: nothing has ever been decided; run `fairlead install`" in ended.out


def test_a_session_without_any_record_had_no_hook(reasons, claude):
    with deciding() as decided:
        decided.on("toolu_1", session_id="another")
        claude.ran("toolu_2")
    assert reasons() == {"session": 1}


def test_what_is_older_than_the_journal_came_before_it(reasons, claude):
    claude.ran("toolu_1", at=time.time() - 100)
    with deciding() as decided:
        decided.on("toolu_2")
    assert reasons() == {"before": 1}


def test_what_is_older_than_a_pruned_journal_was_perhaps_decided(reasons, claude, machine, monkeypatch):
    monkeypatch.setattr(journal_writer, "PRUNE_INTERVAL", 0.0)
    claude.ran("toolu_1", at=time.time() - 100)
    journal = Journal(max_size=1)
    hooks = Hooks(journal=journal)
    for number in range(3):
        hooks.dispatch_sync(SessionStart(session_id=str(number)))
        journal.flush()
    journal.close()
    assert reasons() == {"pruned": 1}


def test_hooks_may_come_while_a_session_runs(reasons, claude):
    now = time.time()
    claude.ran("toolu_1", at=now + 0.001)
    with deciding() as decided:
        decided.on("x", session_id="another")
        between = time.time() + 0.05
        time.sleep(0.1)
        decided.on("toolu_2")
    claude.path.write_text(claude.path.read_text().replace(stamp(now + 0.001), stamp(between)))
    assert reasons() == {"late": 1}


def test_a_subagent_may_be_asked_about_by_no_hook(reasons, machine, claude):
    with deciding() as decided:
        decided.on("toolu_1")
        claude.ran("toolu_1")
        Claude(machine.home, agent="a843").ran("toolu_2")
    assert reasons() == {"subagent": 1}


def test_a_subagent_that_hooks_were_asked_about_is_covered(run, machine, claude):
    with deciding() as decided:
        decided.on("toolu_2", agent=Agent("a843", "general-purpose", SESSION))
        Claude(machine.home, agent="a843").ran("toolu_2")
    assert run("coverage").code == 0


def test_one_call_of_many_may_be_missed(reasons, claude):
    with deciding() as decided:
        decided.on("toolu_1")
        claude.ran("toolu_1")
        claude.ran("toolu_2")
    assert reasons() == {"missed": 1}


def test_records_may_be_lost_in_a_crash(reasons, machine, claude):
    with deciding() as decided:
        decided.on("toolu_1")
        claude.ran("toolu_1")
    claude.ran("toolu_2")
    marks = machine.state / "journal.db.writers"
    (marks / "0123456789").write_text('1{"pid": 1, "since": 1}')  # of a process that is gone
    with deciding() as decided:
        decided.on("toolu_3")
    assert reasons() == {"lost": 1}


def test_a_call_that_is_running_is_no_gap_yet(run, claude):
    with deciding() as decided:
        decided.on("x", session_id="another")
        claude.call("toolu_1")
    assert run("coverage").code == 0


def test_a_call_that_never_came_to_a_result_is_a_gap(reasons, claude):
    claude.call("toolu_1", at=time.time() - 1000)
    assert reasons() == {"open": 1}


# --- CLIs that tell their hooks no ids -------------------------------------------------------------


def test_calls_without_ids_are_matched_by_their_arguments(run, machine):
    with deciding() as decided:
        for command in ("ls", "pwd"):
            decided.on(None, "run_shell_command", "gemini", session_id="a34c", args={"command": command})
        gemini(machine.home, "pwd", "ls")
    assert run("coverage").code == 0


def test_of_two_calls_and_one_decision_one_is_a_gap(run, machine):
    with deciding() as decided:
        decided.on(None, "run_shell_command", "gemini", session_id="a34c", args={"command": "ls"})
        gemini(machine.home, "ls", "ls")
    told = run("coverage", "--json").json
    assert (told["tools"][0]["decided"], told["reasons"]) == (1, {"missed": 1})


def test_a_secret_that_was_redacted_does_not_hide_the_decision(run, machine):
    command = "curl -H 'authorization: Bearer ghp_abcdefghijklmnopqrstuvwxyz0123456789' x"
    with deciding() as decided:
        decided.on(None, "run_shell_command", "gemini", session_id="a34c", args={"command": "ls"})
        decided.on(None, "run_shell_command", "gemini", session_id="a34c", args={"command": command})
        gemini(machine.home, command, "ls", "pwd")
    ended = run("coverage")
    assert "ghp_" not in ended.all
    assert ended.out.splitlines()[-1].endswith("run_shell_command pwd")


def test_a_session_may_go_by_its_subagents_id(run, machine):
    path = machine.home / ".copilot/session-state/d5ec/events.jsonl"
    path.parent.mkdir(parents=True)
    call = {"toolCallId": "call_4_0", "toolName": "bash", "arguments": {"command": "echo sub1"}}
    done = {"toolCallId": "call_4_0", "success": True, "result": {"content": "sub1"}}
    about = {"agentId": "8582", "timestamp": stamp(time.time())}
    lines = [
        {"type": "tool.execution_start", "data": call, "id": "99ab", **about},
        {"type": "tool.execution_complete", "data": done, "id": "5819", **about},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with deciding() as decided:
        decided.on(None, "bash", "copilot", session_id="8582", args={"command": "echo sub1"})
    assert run("coverage").code == 0


def test_hooks_of_another_cli_that_it_runs_count_too(run, machine):
    with deciding() as decided:
        decided.on(None, "Run_Shell_Command", "claude_code", session_id="a34c", args={"command": "ls"})
        gemini(machine.home, "ls")
    assert run("coverage").code == 0


# --- which --------------------------------------------------------------------------------------


def test_since_leaves_out_what_is_older(run, claude):
    now = time.time()
    claude.ran("toolu_1", at=now - 7200)
    claude.ran("toolu_2", at=now - 60)
    told = run("coverage", "--since", "1h", "--json").json
    assert [gap["call"] for gap in told["gaps"]] == ["toolu_2"]


def test_a_call_at_an_unknown_time_is_not_left_out(run, claude):
    claude.ran("toolu_1")
    claude.path.write_text(re.sub('"timestamp": "[^"]*"', '"timestamp": 1e20', claude.path.read_text()))
    ended = run("coverage", "--since", "1h")
    assert (ended.code, "1 gap" in ended.out) == (1, True)


def test_a_file_that_has_not_changed_since_is_not_read(run, claude):
    claude.ran("toolu_1", at=time.time() - 7200)
    os.utime(claude.path, (1e9, 1e9))
    assert run("coverage", "--since", "1h", "--json").json["transcripts"] == 0


def test_one_cli_alone(run, machine, claude):
    claude.ran("toolu_1")
    gemini(machine.home, "ls")
    told = run("coverage", "--cli", "gemini", "--json").json
    assert {row["cli"] for row in told["tools"]} == {"gemini"}


def test_another_home(run, tmp_path):
    Claude(tmp_path / "elsewhere").ran("toolu_1")
    assert run("coverage", "--json").json["tools"] == []
    assert run("coverage", "--path", str(tmp_path / "elsewhere"), "--json").json["sessions"] == 1


@pytest.mark.parametrize("whole", [True, False])
def test_a_file_or_a_folder_of_a_named_cli(run, tmp_path, whole):
    claude = Claude(tmp_path / "elsewhere")
    claude.ran("toolu_1")
    place = claude.path.parent if whole else claude.path
    assert run("coverage", "--cli", "claude", "--path", str(place), "--json").json["sessions"] == 1


def test_only_the_newest_gaps_are_shown_unless_all_are_asked_for(run, claude):
    now = time.time()
    for number in range(30):
        claude.ran(f"toolu_{number}", at=now - 100 + number)
    some = run("coverage").out
    assert "The newest 20; --all lists them all:" in some
    assert some.count("toolu_") == 2 * 20  # the call, and what it was about
    assert run("coverage", "--all").out.count("toolu_") == 2 * 30


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--cli", "gemni"), "did you mean 'gemini'?"),
        (("--since", "last week"), "is not a time"),
        (("--path", "/nowhere"), "there is nothing at /nowhere"),
        (("--journal", "/nowhere/journal.db"), "there is no journal at /nowhere/journal.db"),
    ],
)
def test_what_cannot_be_told_ends_with_2(run, assert_safe, words, problem):
    ended = run("coverage", *words)
    assert (ended.code, ended.out) == (2, "")
    assert problem in ended.err
    assert_safe(ended)


def test_a_transcript_needs_the_name_of_its_cli(run, claude):
    claude.ran("toolu_1")
    ended = run("coverage", "--path", str(claude.path))
    assert (ended.code, "name its CLI with --cli" in ended.err) == (2, True)


def test_a_transcript_that_cannot_be_read_is_an_error_and_the_others_are_looked_at(run, machine, claude):
    with deciding() as decided:
        decided.on("toolu_1")
        claude.ran("toolu_1")
    folder = machine.home / ".local/share/opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.db").write_text("not a database, but long enough to be looked at " * 100)
    ended = run("coverage")
    assert ended.code == 2
    assert "opencode.db cannot be read" in ended.err
    assert "Claude Code  Bash" in ended.out


def test_what_is_nested_too_deeply_is_an_error_and_the_others_are_looked_at(run, machine, claude):
    with deciding() as decided:
        decided.on("toolu_1")
        claude.ran("toolu_1")
    folder = machine.home / ".codex/sessions"
    folder.mkdir(parents=True)
    call = {
        "type": "function_call",
        "call_id": "c1",
        "name": "shell",
        "arguments": '{"a":' + "[" * 5000 + "]" * 5000 + "}",
    }
    (folder / "rollout-1.jsonl").write_text(json.dumps({"type": "response_item", "payload": call}) + "\n")
    ended = run("coverage")
    assert ended.code == 2
    assert "rollout-1.jsonl has something in it that is nested too deeply" in ended.err
    assert "Claude Code  Bash" in ended.out
    ended = run("import", "codex", str(folder))
    assert (ended.code, "nested too deeply" in ended.err) == (1, True)


def test_garbage_is_counted(run, claude):
    claude.ran("toolu_1")
    with claude.path.open("a") as file:
        file.write('{"type": \n')
    assert "1 line could not be read" in run("coverage").err


def test_without_transcripts_there_is_nothing_to_tell(run):
    ended = run("coverage")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == "There are no tool calls in 0 transcripts.\n"


def test_what_a_transcript_says_is_safe_to_show(run, claude, assert_safe):
    nasty = "a\x1b]0;owned\x07b\x9b31mc\u202ed\re\x7f"
    claude.ran(nasty, nasty, command=nasty)
    claude.about["sessionId"] = nasty
    claude.ran("toolu_2", "Bash", command=nasty)
    for words in ((), ("--json",)):
        assert_safe(run("coverage", *words))
