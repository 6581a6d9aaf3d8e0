"""`fairlead init`, and the first three commands of a new user."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import fairlead
from fairlead.extras import install_command
from fairlead.runners import expression


def test_three_commands_take_a_new_user_to_a_denied_force_push(machine, spawn):
    assert os.listdir(machine.project) == []
    init, check = spawn("init"), spawn("check")
    test = spawn("test", "before_tool", "--set", "tool=bash", "--set", "args.command=git push --force")
    assert [init.code, check.code, test.code] == [0, 0, 2]
    assert [init.err, check.err, test.err] == ["", "", ""]
    assert "deny by no-force-push: Force-push is off here." in test.out


def test_init_says_what_to_do_next(run):
    assert "Next: fairlead check\n" in run("init").out


def test_the_starter_is_where_it_said(machine, run):
    out = run("init").out
    assert str(machine.project_file) in out
    assert machine.project_file.is_file()


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("git push --force", 2),
        ("git push origin main --force", 2),
        ("git push -f", 2),
        ("git push origin +main", 2),
        ("cd x && sudo git -C y push -uf origin main", 2),
        ("git push --force-with-lease", 0),
        ("git push", 0),
        ("git push origin feature", 0),
        ("git pull --force", 0),
        ("ls", 0),
    ],
)
def test_what_the_starter_refuses(run, command, code):
    run("init")
    assert run("test", "before_tool", "--set", "tool=Bash", "--set", f"args.command={command}").code == code


def test_the_starter_has_no_mistake_and_is_trusted_at_once(run):
    run("init")
    ended = run("check", "--json")
    assert (ended.code, ended.json["mistakes"], ended.json["untrusted"]) == (0, [], [])
    assert [hook["name"] for hook in ended.json["events"]["before_tool"]] == ["no-force-push"]


def test_an_edited_starter_is_told_to_be_another_than_the_trusted_one(machine, run):
    run("init")
    machine.project_file.write_text(machine.project_file.read_text().replace("--force", "--fierce"))
    ended = run("check")
    assert (ended.code, "has changed since it was trusted" in ended.err) == (1, True)


def test_the_example_in_the_starter_s_comments_is_sound_as_well(machine, run, trust):
    run("init")
    (machine.project / "hooks").mkdir()
    machine.file("hooks/no-secrets.sh", "#!/bin/sh\nexit 0\n", 0o755)
    head, _, example = machine.project_file.read_text().partition("# [[hook]]\n")
    lines = ["[[hook]]", *(line.removeprefix("# ") for line in example.splitlines() if " = " in line)]
    machine.hooks(head, *lines)
    trust()
    assert run("check").code == 0


def test_a_file_that_is_there_is_kept(machine, run):
    machine.hooks("# mine")
    ended = run("init")
    assert (ended.code, machine.project_file.read_text()) == (1, "# mine")
    assert f"{machine.project_file} is already there" in ended.err


def test_a_link_that_leads_nowhere_is_kept(machine, run, tmp_path):
    machine.project_file.symlink_to(tmp_path / "nowhere")
    assert run("init").code == 1
    assert not (tmp_path / "nowhere").exists()


def test_init_does_not_trust_a_file_that_is_there(machine, run):
    machine.hooks('[[hook]]\nname = "judge"\non = "before_tool"\nshell = "exit 2"\n')
    run("init")
    assert not (machine.state / "trust.json").exists()


def test_the_user_s_file_is_for_all_projects(machine, run):
    assert run("init", "--user").code == 0
    assert machine.user_file.is_file()
    assert not machine.project_file.exists()
    assert run("test", "force-push").code == 2


def test_the_user_s_file_is_kept_too(machine, run):
    machine.user("# mine")
    ended = run("init", "--user")
    assert (ended.code, machine.user_file.read_text()) == (1, "# mine")


def test_a_project_that_was_trusted_is_not_started_anew(machine, run, trust):
    machine.hooks('[[hook]]\nname = "strict"\non = "before_tool"\nrule = "true"\ndeny = "no"\n')
    trust()
    (machine.project / "fairlead.toml").unlink()
    ended = run("init")
    assert ended.code == 1
    assert "trusted before" in ended.err


@pytest.mark.parametrize(
    "command",
    ["git push --force", "git push -f", "git -C . push --force", "git  push  origin +main", "git push origin -f"],
)
def test_the_starter_refuses_force_pushes_however_they_are_written(machine, run, command):
    assert run("init").code == 0
    assert run("test", "before_tool", "--set", "tool=bash", "--set", f"args.command={command}").code == 2


@pytest.mark.parametrize("command", ["git push", "git push origin main", "git pull -f", "echo --force"])
def test_the_starter_refuses_nothing_else(machine, run, command):
    assert run("init").code == 0
    assert run("test", "before_tool", "--set", "tool=bash", "--set", f"args.command={command}").code == 0


def without_rules(monkeypatch):
    """As if just the core were installed."""
    monkeypatch.setattr(expression, "find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "cel.cel", raising=False)


@pytest.mark.parametrize("words", [("init",), ("init", "--user")])
def test_a_starter_that_could_not_run_here_is_not_written(machine, run, monkeypatch, words):
    without_rules(monkeypatch)
    ended = run(*words)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.rstrip().endswith(f"run: {install_command('rules')}")
    assert not machine.project_file.exists()
    assert not machine.user_file.exists()


def test_what_cannot_run_here_is_neither_trusted_nor_installed(machine, run, monkeypatch):
    run("init", "--user")
    without_rules(monkeypatch)
    ended = run("install", "claude")
    assert (ended.code, "nothing was installed" in ended.err, "pip install" in ended.err) == (1, True, True)
    assert not (machine.home / ".claude").exists()
    machine.hooks(machine.user_file.read_text())
    ended = run("trust", "--show")
    assert (ended.code, "pip install" in ended.err) == (1, True)


def test_a_program_that_is_missing_is_a_warning_when_hooks_are_installed(machine, run):
    machine.user('[[hook]]\nname = "a"\non = "before_tool"\ncommand = ["/no/such/program"]\n')
    ended = run("install", "claude")
    assert (ended.code, f"warning: {machine.user_file}:4: hook 'a' cannot run here" in ended.err) == (0, True)


CORE = """
import contextlib, io, json, sys
sys.path[:0] = json.loads(sys.argv[1])
from fairlead.cli import main
ended = {}
for words in json.loads(sys.argv[2]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code
        except Exception as error:
            code = repr(error)
    ended[" ".join(words)] = [code, err.getvalue()]
print(json.dumps(ended))
"""
NEED_MORE = {"init": "rules", "serve": "serve", "approvals": "serve", "demo": "demo", "completion bash": "completion",
             "run task --model a:b": "prompt"}  # fmt: skip
NEED_NOTHING = ["check", "hooks", "events", "schema", "schema config", "doctor --no-run",
                "monitor --help", "test turn_start", "install claude --dry-run"]  # fmt: skip


def test_with_the_core_alone_each_command_runs_or_names_the_command_that_helps(machine, tmp_path):
    only = tmp_path / "only"
    only.mkdir()
    (only / "msgspec").symlink_to(Path(msgspec.__file__).parent)
    paths = [str(Path(fairlead.__file__).parents[1]), str(only)]
    words = [command.split() for command in (*NEED_MORE, *NEED_NOTHING)]
    argv = [sys.executable, "-S", "-P", "-c", CORE, json.dumps(paths), json.dumps(words)]
    said = subprocess.run(argv, capture_output=True, text=True, cwd=machine.project, stdin=subprocess.DEVNULL)
    ended = json.loads(said.stdout.splitlines()[-1])
    for command, extra in NEED_MORE.items():
        code, err = ended[command]
        assert (code, f"[{extra}]" in err) == (1, True), (command, err)
    for command in NEED_NOTHING:
        assert ended[command][0] == 0, (command, ended[command])


def test_the_starter_names_the_schema_by_which_editors_complete_it(machine, run):
    run("init")
    first = machine.project_file.read_text().splitlines()[0]
    assert first == "#:schema ./fairlead.schema.json"
    assert json.loads((machine.project / "fairlead.schema.json").read_text()) == run("schema", "config").json
