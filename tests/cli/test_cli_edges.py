"""The command line at its edges: closed streams, full disks, odd values, names that mean harm."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-m", "fairlead.cli"]
RULE = '[[hook]]\nname = "judge"\non = "before_tool"\nrule = "true"\ndeny = "no"\n'
MATCH = RULE + 'match = { agent = "x" }\n'


# Terminal escapes reach stderr through logging's handler of last resort, and every line is said twice
def test_an_untrusted_name_is_safe_to_show_in_a_process_of_its_own(machine, spawn, assert_safe):
    machine.hooks(RULE.replace("judge", "x\\u001b]0;owned\\u0007"))
    assert_safe(spawn("test", "before_tool"))


def test_what_does_not_run_is_said_once(machine, spawn):
    machine.hooks(RULE)
    assert spawn("test", "before_tool").err.count("not run") == 1


def test_the_name_of_a_folder_is_safe_to_show_by_init(machine, run, assert_safe, monkeypatch):
    (machine.project / "x\x1b]0;owned\x07").mkdir()
    monkeypatch.chdir(machine.project / "x\x1b]0;owned\x07")
    assert_safe(run("init"))


@pytest.mark.usefixtures("unwatched")
def test_ctrl_d_does_not_trust(machine, terminal):
    machine.hooks(RULE)
    ended = terminal("trust", answer="\x04")
    assert (ended.code, "Traceback" in ended.out) == (1, False)


@pytest.mark.parametrize("words", [("events",), ("check",), ("test", "before_tool"), ("--help",), ("schema",)])
def test_a_reader_that_is_gone_is_no_error_to_speak_of(words):
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run([*COMMAND, *words], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert ended.stderr == b""
    assert ended.returncode != 120


@pytest.mark.parametrize("words", [("events",), ("schema",), ("check",)])
def test_a_full_disk_is_an_error_in_words(words):
    with open("/dev/full", "w") as full:
        ended = subprocess.run([*COMMAND, *words], stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert "Exception ignored" not in ended.stderr


@pytest.mark.parametrize("line", ["check >&-", "test --step - <&-", "trust <&-"])
def test_a_closed_stream_is_no_traceback(machine, line):
    machine.user(RULE)
    machine.hooks(RULE)
    ended = subprocess.run(["sh", "-c", f"{sys.executable} -m fairlead.cli {line}"], capture_output=True, text=True)
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("field", ["args.command", "tool", "cwd"])
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_bytes_that_are_no_utf_8_are_no_traceback(spawn, field, more):
    ended = spawn("test", "before_tool", "--set", f"{field}=".encode() + b"\xff", *more)
    assert "Traceback" not in ended.err
    assert ended.code in (0, 1)


def test_a_terminal_that_knows_only_ascii_is_no_traceback(spawn, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    ended = spawn("test", "before_tool", "--set", "tool=é")
    assert (ended.code, "Traceback" in ended.err) == (0, False)


@pytest.mark.parametrize(
    ("event", "given"),
    [
        ("before_tool", "agent:=5"),
        ("before_tool", "host:=[]"),
        ("before_tool", "metadata:=5"),
        ("before_tool", "target:=5"),
        ("before_tool", "cwd.x=1"),
        ("before_tool", "cwd:=5"),
        ("before_tool", "session_id:=5"),
        ("before_tool", "target.foo=1"),
        ("before_input", "input:=5"),
        ("before_model", "messages:=5"),
        ("after_tool", "outcome:=5"),
        ("error", "error:=5"),
        ("notification", "level:=5"),
        ("before_tool", "args.x:=" + "[" * 100_000),
    ],
)
def test_a_value_of_another_kind_is_a_mistake(machine, run, event, given):
    machine.user(MATCH)
    ended = run("test", event, "--set", given)
    assert (ended.code, ended.out) == (1, "")


def test_a_part_of_the_agent_can_be_set(machine, run):
    machine.user(MATCH)
    assert run("test", "before_tool", "--set", "agent.name=x").code == 2


def test_a_part_of_the_target_can_be_set(machine, run):
    machine.user(RULE.replace('"true"', "'target.command == \"x\"'"))
    assert run("test", "before_tool", "--set", "target.command=x").code == 2


def test_a_state_that_is_text_can_be_set(run):
    assert run("test", "before_request", "--set", "state=x", "--json").json["step"]["state"] == "x"


@pytest.mark.parametrize("words", [("hooks",), ("test", "before_tool"), ("trust",)])
def test_json_is_json_with_mistakes_in_every_command(machine, run, words):
    machine.hooks(RULE, "matsch = 1")
    ended = run(*words, "--json")
    assert ended.code == 1
    assert ended.json is not None


def test_mistakes_have_no_colours_where_stderr_is_no_terminal(machine, terminal):
    machine.user(RULE, "matsch = 1")
    terminal(argv=["/bin/sh", "-c", f"{sys.executable} -m fairlead.cli check 2> err"])
    assert "\x1b" not in (machine.project / "err").read_text()


@pytest.mark.parametrize("command", [("check",), ("hooks",), ("test", "before_tool")])
def test_a_folder_that_is_not_there_is_a_mistake(run, command):
    assert run(*command, "-C", "nowhere").code == 1


@pytest.mark.parametrize("folder", ["x" * 300, "loop"])
def test_an_odd_folder_is_no_traceback(machine, run, folder):
    (machine.project / "loop").symlink_to("loop")
    assert run("check", "-C", folder).code == 1


def test_a_folder_that_is_gone_is_no_traceback(machine, run):
    os.mkdir("gone")
    os.chdir("gone")
    os.rmdir("../gone")
    assert run("check").code == 1
    assert run("test", "before_tool").code == 1


def test_init_writes_nothing_that_it_cannot_trust(machine, run, monkeypatch):
    monkeypatch.setenv("FAIRLEAD_STATE_DIR", str(machine.project / ".state"))
    assert run("init").code == 1
    assert not machine.project_file.exists()


@pytest.mark.parametrize(
    ("variable", "words"), [("FAIRLEAD_STATE_DIR", ("init",)), ("XDG_CONFIG_HOME", ("init", "--user"))]
)
def test_init_where_a_folder_cannot_be_made_is_an_error_in_words(run, monkeypatch, variable, words):
    monkeypatch.setenv(variable, "/dev/null/x")
    ended = run(*words)
    assert (ended.code, ended.err != "") == (1, True)


@pytest.mark.parametrize("then", ["mistake", "link", "gone"])
def test_what_cannot_be_read_any_more_can_still_be_forgotten(machine, run, trust, then):
    machine.hooks(RULE)
    trust()
    if then == "mistake":
        machine.hooks(RULE, "matsch = 1")
    elif then == "link":
        (machine.project / "judge.sh").symlink_to("/bin/sh")
        machine.hooks('[[hook]]\nname = "judge"\non = "before_tool"\ncommand = ["./judge.sh"]\n')
    else:
        machine.project_file.unlink()
    assert run("trust", "--forget").code == 0
    (kept,) = json.loads((machine.state / "trust.json").read_text())["projects"].values()
    assert kept["snapshots"] == []


def test_the_environment_of_a_hook_is_shown_before_it_is_trusted(machine, run):
    machine.file("judge.sh", "")
    machine.hooks(
        '[[hook]]\nname = "judge"\non = "before_tool"\n'
        'command = ["bash", "judge.sh"]\nenv = { BASH_ENV = "./evil.sh" }\n'
    )
    assert "BASH_ENV" in run("trust", "--show").out


def test_sigterm_takes_the_hook_with_it(machine):
    pipe = machine.project / "pipe"
    os.mkfifo(pipe)
    machine.user(
        f'[[hook]]\nname = "judge"\non = "before_tool"\nshell = "echo $$ > {pipe}; exec sleep 30"\ntimeout = 60\n'
    )
    process = subprocess.Popen([*COMMAND, "test", "before_tool"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    hook = int(pipe.read_text())
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(hook)], capture_output=True, text=True).stdout.strip()
    try:
        assert state[:1] in ("", "Z")
    finally:
        if state[:1] not in ("", "Z"):
            os.kill(hook, signal.SIGKILL)


def test_a_wrong_call_is_safe_to_complain_about(run):
    ended = run("check", "x\x1b]0;owned\x07")
    assert [c for c in ended.err if not c.isprintable() and c != "\n"] == []


@pytest.mark.parametrize("character", ["\x7f", "\x9b", "\u202e", "\u2066"])
def test_json_is_safe_at_a_terminal_too(machine, run, character):
    ended = run("test", "before_tool", "--set", f"tool=a{character}b", "--json")
    assert ended.json["step"]["tool"] == f"a{character}b"
    assert character not in ended.out


def test_json_says_whether_they_are_trusted_now(machine, run, digest):
    machine.hooks(RULE)
    assert run("trust", "--json", "--expect", digest()).json["trusted"] is True


def test_a_removed_argument_is_told_from_one_that_is_null(machine, run):
    machine.user('[[hook]]\nname = "judge"\non = "before_tool"\nshell = """echo \'{"args": {"command": "ls"}}\'"""\n')
    out = run("test", "before_tool", "--set", "tool=bash", "--set", "args.command=ls", "--set", "args.old=1").out
    assert "+ args.old: null" not in out
