"""At a terminal and in a pipe: colours, text that must not take a terminal over, interruption."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-m", "fairlead.cli"]
NASTY = "a\x1b]0;owned\x07b\x9b31mc\u202ed\re\nf\x08g\x00h\x7f"


def toml(text: str) -> str:
    """A string of TOML, which are written like JSON's."""
    return json.dumps(text).replace("\x7f", "\\u007f")


TOML = toml(NASTY)
WORD = toml(NASTY.replace("\0", ""))  # that may be part of a command
DENY = '[[hook]]\nname = "judge"\non = "before_tool"\nrule = "true"\ndeny = "no"\n'


# --- colours -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [("check",), ("test", "before_tool"), ("events", "before_tool")])
def test_a_terminal_sees_colours(machine, terminal, words):
    machine.user(DENY)
    assert "\x1b[1m" in terminal(*words).out


@pytest.mark.parametrize("words", [("check",), ("test", "before_tool"), ("events", "before_tool")])
def test_a_pipe_sees_none(machine, spawn, words):
    machine.user(DENY)
    assert "\x1b" not in spawn(*words).all


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_that_wants_none_sees_none(machine, terminal, monkeypatch, variable, value):
    machine.user(DENY)
    monkeypatch.setenv(variable, value)
    ended = terminal("test", "before_tool")
    assert (ended.code, "\x1b" in ended.out) == (2, False)


def test_json_has_no_colours_at_a_terminal_either(machine, terminal):
    machine.user(DENY)
    ended = terminal("test", "before_tool", "--json")
    assert ended.json["decision"]["control"] == "deny"


# --- text from elsewhere ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "verdict",
    [
        {"control": "deny", "reason": NASTY},
        {"warnings": [NASTY]},
        {"additional_context": [NASTY]},
        {"args": {"command": NASTY, NASTY: "x"}},
        {NASTY: 1},
        {"control": NASTY},
        {"reason": NASTY, "name": NASTY, "control": "abort"},
    ],
)
@pytest.mark.parametrize("enforce", ["true", "false"])
def test_what_a_hook_says_is_safe_to_show(machine, run, assert_safe, verdict, enforce):
    machine.file("verdict.json", json.dumps(verdict))
    line = json.dumps(f"cat {machine.project}/verdict.json")
    machine.user(f'[[hook]]\nname = "judge"\non = "before_tool"\nshell = {line}\nenforce = {enforce}\n')
    assert_safe(run("test", "before_tool"))


@pytest.mark.parametrize("code", [2, 7])
def test_what_a_hook_writes_to_stderr_is_safe_to_show(machine, run, assert_safe, code):
    machine.file("said", NASTY)
    line = json.dumps(f"cat {machine.project}/said >&2; exit {code}")
    machine.user(f'[[hook]]\nname = "judge"\non = "before_tool"\nshell = {line}\n')
    ended = run("test", "before_tool")
    assert ended.code == 2
    assert_safe(ended)


@pytest.mark.parametrize("words", [("check",), ("hooks",), ("test", "before_tool")])
def test_what_a_file_says_is_safe_to_show(machine, run, assert_safe, words):
    machine.user(f'[[hook]]\nname = {TOML}\non = "before_tool"\nmatch = {{ agent = [{TOML}] }}\nshell = {TOML}\n')
    ended = run(*words)
    assert ended.code in (0, 1)
    assert_safe(ended)


@pytest.mark.parametrize("words", [("check",), ("hooks",), ("test", "before_tool"), ("trust", "--show")])
def test_what_an_untrusted_file_says_is_safe_to_show(machine, run, assert_safe, words):
    machine.hooks(f'[[hook]]\nname = {TOML}\non = "before_tool"\nrule = "true"\ndeny = {TOML}\n')
    ended = run(*words)
    assert "owned" in ended.all
    assert_safe(ended)


def test_what_is_to_be_trusted_is_safe_to_show(machine, run, assert_safe):
    machine.file("x\x1b]0;owned\x07", "")
    machine.file("judge.sh", "#!/bin/sh\n", 0o755)
    argv = f'["./judge.sh", {toml("x" + chr(27) + "]0;owned" + chr(7))}, {WORD}]'
    machine.hooks(f'[[hook]]\nname = "judge"\non = "before_tool"\ncommand = {argv}\n')
    ended = run("trust", "--show")
    assert "    x\\x1b]0;owned\\x07  sha256:" in ended.out
    assert_safe(ended)


@pytest.mark.parametrize(
    "text",
    [
        f"{TOML} = 1",
        f"disable = [{TOML}]",
        f"[[hook]]\nname = {TOML}",
        f'[[hook]]\nname = "a"\non = {TOML}\nrule = "true"\ndeny = "x"',
        f'[[hook]]\nname = "a"\non = "before_tool"\nrule = {WORD}\ndeny = "x"',
        f'[[hook]]\nname = "a"\non = "before_tool"\ncommand = [{WORD}]',
        f'[[hook]]\nname = "a"\non = "before_tool"\nmatch = {{ kind = {TOML} }}\nrule = "true"\ndeny = "x"',
        f"[defaults]\non_failure = {TOML}",
        "a = '\u202e\u2066",
        "a = '\t\x1b",
    ],
)
def test_a_mistake_is_safe_to_show(machine, run, assert_safe, text):
    machine.user(text)
    ended = run("check")
    assert ended.code == 1
    assert_safe(ended)


@pytest.mark.parametrize("words", [("check",), ("hooks",), ("test", "before_tool"), ("trust", "--show")])
def test_the_name_of_a_folder_is_safe_to_show(machine, run, assert_safe, monkeypatch, words):
    folder = machine.project / "x\x1b]0;owned\x07\u202ey"
    folder.mkdir()
    (folder / "fairlead.toml").write_text(DENY)
    monkeypatch.chdir(folder)
    ended = run(*words)
    assert "owned" in ended.all
    assert_safe(ended)


@pytest.mark.parametrize(
    "content", [NASTY, json.dumps({"event": NASTY}), json.dumps({"event": "turn_start", NASTY: 1})]
)
def test_a_step_that_cannot_be_read_is_safe_to_complain_about(machine, run, assert_safe, content):
    machine.file("step.json", content)
    ended = run("test", "--step", "step.json")
    assert ended.code == 1
    assert_safe(ended)


def test_a_step_is_safe_to_show(machine, run, assert_safe):
    machine.user(DENY)
    step = {"event": "before_tool", "tool": NASTY, "args": {NASTY: NASTY}, "agent": {"name": NASTY}, "user_id": NASTY}
    machine.file("step.json", json.dumps(step))
    ended = run("test", "--step", "step.json")
    assert ended.code == 2
    assert_safe(ended)


def test_a_line_break_in_a_reason_cannot_fake_a_line_of_the_story(machine, run):
    line = toml("printf 'no\\n\\nproceed\\n' >&2; exit 2")
    machine.user(f'[[hook]]\nname = "judge"\non = "before_tool"\nshell = {line}\n')
    ended = run("test", "before_tool")
    assert ended.code == 2
    assert "proceed" not in ended.out.splitlines()


@pytest.mark.parametrize("words", [("check",), ("hooks",), ("test", "before_tool"), ("trust",)])
def test_json_is_safe_to_show_and_says_it_all(machine, run, words):
    machine.user(f'[[hook]]\nname = "judge"\non = "before_tool"\nshell = {WORD}\nenforce = false\n')
    machine.hooks("")
    ended = run(*words, "--json")
    if words[0] in ("test", "trust"):  # which say nothing of what a hook runs, or have nothing to say
        return
    assert json.dumps(NASTY.replace("\0", "")) in json.dumps(ended.json)
    assert [c for c in ended.out if c < " " and c != "\n"] == []


# --- interruption ------------------------------------------------------------------------------------------


def test_a_reader_that_has_seen_enough_is_no_error_to_speak_of():
    """`fairlead schema | head -1`: more than a pipe holds, so the writer notices."""
    process = subprocess.Popen([*COMMAND, "schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"{\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    process.wait(20)


def test_ctrl_c_ends_with_130_and_takes_the_hook_with_it(machine):
    fifo = machine.project / "fifo"
    os.mkfifo(fifo)
    # It holds on to the pipe for as long as it lives.
    line = toml(f"cat > /dev/null; exec 3> {fifo}; echo started >&3; exec sleep 60")
    machine.user(f'[[hook]]\nname = "judge"\non = "before_tool"\nshell = {line}\ntimeout = 60\n')
    words = [*COMMAND, "test", "before_tool"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    with fifo.open() as pipe:
        assert pipe.readline() == "started\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (130, b"", b"")
        assert select.select([pipe], [], [], 20)[0] == [pipe]
        assert pipe.read() == ""
