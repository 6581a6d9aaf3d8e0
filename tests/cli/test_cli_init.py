"""`fairlead init`, and the first three commands of a new user."""

from __future__ import annotations

import os

import pytest


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
        ("git push --force-with-lease", 2),
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
