"""`fairlead install` and `fairlead uninstall`, as a person uses them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead import paths as places
from fairlead.enforcement import read_setting
from fairlead.hosts.clis.install import plan
from fairlead.hosts.clis.install.settings import settings_of
from fairlead.hosts.clis.mapping import hosts

BY_HAND = """\
{
  // hands off
  "env": {"ANTHROPIC_API_KEY": "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuv"},
  "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}, // mine
  "unknown": {"key": [1, 2, 3,],},
}
"""


@pytest.fixture(autouse=True)
def at_home(monkeypatch):
    """Nothing that is moved, and no program on PATH."""
    for about in map(settings_of, hosts()):
        if about.moved_by is not None and about.moved_by[0] != "XDG_CONFIG_HOME":
            monkeypatch.delenv(about.moved_by[0], raising=False)


@pytest.fixture
def claude(machine) -> Path:
    path = machine.home / ".claude/settings.json"
    path.parent.mkdir()
    path.write_text(BY_HAND)
    return path


def everything(machine) -> dict[str, bytes]:
    places = (machine.home, machine.project)
    return {str(path): path.read_bytes() for place in places for path in place.rglob("*") if path.is_file()}


# --- in and out ------------------------------------------------------------------------------------------


def test_in_and_out_again_and_every_byte_is_as_it_was(machine, spawn, claude):
    before = everything(machine)
    into = spawn("install", "claude", "codex", "gemini")
    assert into.code == 0
    assert b"fairlead-hook" in claude.read_bytes()
    out = spawn("uninstall", "claude", "codex", "gemini")
    assert (out.code, out.err) == (0, "")
    assert everything(machine) == before


def test_there_is_a_line_for_each_file_and_what_to_do_next(machine, run):
    first = run("install", "claude", "gemini")
    files = [machine.home / ".claude/settings.json", machine.home / ".gemini/settings.json"]
    assert (first.code, first.err) == (0, "")
    assert first.out == f"wrote     {files[0]}\nwrote     {files[1]}\nNext: fairlead doctor claude gemini\n"
    again = run("install", "claude", "gemini")
    assert again.out == f"unchanged {files[0]}\nunchanged {files[1]}\nNext: fairlead doctor claude gemini\n"
    gone = run("uninstall", "claude", "gemini")
    assert gone.out.splitlines() == [
        f"removed   {files[0]}",
        f"removed   {files[1]}",
        "Open sessions keep their hooks: restart them.",
    ]


def test_a_file_that_stays_is_cleaned_and_not_removed(machine, run, claude):
    config = machine.home / ".codex/config.toml"
    config.parent.mkdir()
    config.write_text('model = "x"\n')
    run("install", "claude", "codex")
    gone = run("uninstall", "claude", "codex")
    assert gone.out.splitlines()[:3] == [
        f"cleaned   {claude}", f"removed   {config.parent / 'hooks.json'}", f"cleaned   {config}",
    ]  # fmt: skip
    assert config.read_text() == 'model = "x"\n'


def test_what_the_cli_would_not_read_is_a_warning(run, claude):
    ended = run("install", "claude")
    assert ended.code == 0
    assert f"fairlead: warning: {claude}:2:3: Claude Code reads nothing of a file with a comment in it" in ended.err


def test_where_nothing_is_installed_nothing_is_removed(machine, run, claude):
    ended = run("uninstall", "claude")
    assert (ended.code, ended.out.splitlines()[0]) == (0, f"unchanged {claude}")
    assert claude.read_text() == BY_HAND


def test_the_experimental_ones_say_so(run):
    ended = run("install", "cursor", "claude")
    assert "Cursor is experimental: fairlead was never tested with the program as a whole.\n" in ended.out
    assert "Claude Code is experimental" not in ended.out


# --- looking first -----------------------------------------------------------------------------------------


def test_a_dry_run_shows_what_would_change_and_changes_nothing(machine, run, claude):
    before = everything(machine)
    ended = run("install", "claude", "codex", "--dry-run")
    assert ended.code == 0
    assert f"--- {claude}\n+++ {claude}\n" in ended.out
    assert f"--- /dev/null\n+++ {machine.home}/.codex/hooks.json\n" in ended.out
    assert "+  " in ended.out
    assert ended.out.endswith("Nothing was changed.\n")
    assert (everything(machine), machine.state.exists()) == (before, False)


def test_a_dry_run_shows_no_secrets(run, claude):
    shown = run("install", "claude", "--dry-run").out + run("install", "claude", "--dry-run", "--json").out
    assert "fairlead-hook" in shown
    assert "abcdefghijklmnopqrstuvwxyz" not in shown


def test_a_dry_run_of_uninstall(machine, run, claude):
    run("install", "claude")
    before = everything(machine)
    ended = run("uninstall", "claude", "--dry-run")
    assert "-            " in ended.out
    assert everything(machine) == before


def test_as_data(machine, run, claude):
    dry = run("install", "claude", "--dry-run", "--json").json
    assert (dry["dry_run"], dry["files"][0]["action"]) == (True, "wrote")
    assert dry["files"][0]["diff"].startswith(f"--- {claude}")
    done = run("install", "claude", "cursor", "--json").json
    assert [(each["host"], each["action"]) for each in done["files"]] == [("claude_code", "wrote"), ("cursor", "wrote")]
    assert Path(done["files"][0]["backup"]).read_text() == BY_HAND
    assert done["launcher"] == str(machine.state / "bin/fairlead-hook")
    assert (done["scope"], done["experimental"], len(done["warnings"])) == ("user", ["cursor"], 2)
    assert run("install", "claude", "--json").json["files"][0]["action"] == "unchanged"
    assert run("uninstall", "claude", "--json").json["files"][0]["action"] == "cleaned"


# --- which ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("claude",), ("claude_code",), ("claude-code", "claude")])
def test_names(run, names):
    assert len(run("install", *names, "--json").json["files"]) == 1


def test_an_unknown_name_comes_with_a_suggestion(machine, run):
    ended = run("install", "claude", "gemni")
    assert (ended.code, ended.out) == (1, "")
    assert "unknown host 'gemni'; did you mean 'gemini'?" in ended.err
    assert everything(machine) == {}


def test_all_are_those_that_can_be_run(machine, run, monkeypatch):
    programs = machine.home.parent / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    ended = run("install", "all")
    assert (ended.code, "none of the agent CLIs that fairlead knows is on PATH" in ended.err) == (1, True)
    for name in ("codex", "qwen"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    assert {each["host"] for each in run("install", "all", "--json").json["files"]} == {"codex", "qwen"}
    (programs / "qwen").unlink()
    assert {each["host"] for each in run("uninstall", "all", "--json").json["files"]} == {"codex", "qwen"}
    assert everything(machine) == {}


@pytest.mark.parametrize("time", ["0", "4.9", "-1", "1e9", "nan"])
def test_a_time_out_that_makes_no_sense_is_an_error(machine, run, time):
    ended = run("install", "claude", f"--timeout={time}")
    assert (ended.code, "--timeout must be from 5 to 3600 seconds" in ended.err) == (1, True)
    assert everything(machine) == {}


def test_a_time_out(machine, run):
    run("install", "claude", "--timeout", "60")
    data = json.loads((machine.home / ".claude/settings.json").read_text())
    hook = data["hooks"]["PreToolUse"][0]["hooks"][0]
    assert hook["timeout"] == 60
    assert " 50 before_tool claude_code PreToolUse" in hook["command"]


# --- where ----------------------------------------------------------------------------------------------------


def test_a_project(machine, run):
    (machine.project / ".git").mkdir()
    below = machine.project / "src"
    below.mkdir()
    ended = run("install", "claude", "--scope", "project", "-C", str(below))
    assert ended.code == 0
    assert "name no folder of yours" in ended.out
    assert str(machine.home) not in (machine.project / ".claude/settings.json").read_text()
    own = str(machine.home / ".local")
    written = [name for name in everything(machine) if not name.startswith(own)]
    assert written == [str(machine.project / ".claude/settings.json")]
    assert run("uninstall", "claude", "--scope", "project", "-C", str(below)).code == 0
    assert everything(machine) == {}


def test_a_machine_needs_root(machine, run, monkeypatch):
    monkeypatch.setattr(plan, "is_root", lambda: False)
    monkeypatch.setattr("fairlead.hosts.clis.install.settings.ROOT", machine.home)
    ended = run("install", "claude", "--scope", "managed")
    assert (ended.code, ended.out) == (1, "")
    assert "/etc/claude-code/managed-settings.json holds for all users of this machine: run this as root" in ended.err


def test_for_a_machine_it_says_what_the_admin_console_must_say(machine, run, monkeypatch):
    monkeypatch.setattr(plan, "is_root", lambda: True)
    monkeypatch.setattr("fairlead.hosts.clis.install.settings.ROOT", machine.home)
    fragment = '{"managedSourcesBehavior": "merge"}'
    assert fragment in run("install", "claude", "--scope", "managed").out
    assert fragment not in run("install", "claude").out
    told = json.loads(run("install", "claude", "droid", "--scope", "managed", "--dry-run", "--json").out)
    assert told["console"] == {"claude_code": json.loads(fragment)}


def test_a_scope_that_a_cli_does_not_have(run):
    ended = run("install", "opencode", "--scope", "managed")
    assert (ended.code, "OpenCode has no settings that hold for a whole machine" in ended.err) == (1, True)


# --- what cannot be -------------------------------------------------------------------------------------------


def test_settings_that_cannot_be_parsed_are_left_alone(machine, spawn):
    path = machine.home / ".gemini/settings.json"
    path.parent.mkdir()
    path.write_text('{\n  "a": 1\n  "b": 2\n}')
    before = everything(machine)
    ended = spawn("install", "claude", "gemini")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == f"fairlead: {path}:3:3: a , or a }} is missing; it is unchanged: fix it, and try again\n"
    assert everything(machine) == before


AS_NOBODY = """
import os, sys
from fairlead.cli import main
main(["install", "claude", "--dry-run", "--json"])  # so that all it takes is imported
os.setgid(65534)
os.setuid(65534)
sys.exit(main(["install", "claude"]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_folder_that_one_may_not_write_to_is_left_alone(machine, claude, tmp_path):
    for folder in (machine.home, *machine.home.parents):  # others are let in
        folder.chmod(folder.stat().st_mode | 0o055)
    claude.parent.chmod(0o755)
    claude.chmod(0o644)
    ended = subprocess.run([sys.executable, "-c", AS_NOBODY], capture_output=True, text=True, timeout=30)
    assert ended.returncode == 1
    assert "fairlead: " in ended.stderr
    assert claude.read_text() == BY_HAND


def test_no_name_of_a_file_takes_the_terminal_over(machine, run, monkeypatch, assert_safe):
    home = machine.home / "a\x1b[2Jb\u202e"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    assert_safe(run("install", "claude", "--dry-run"))
    assert_safe(run("install", "claude"))
    assert_safe(run("uninstall", "claude"))
    (home / ".claude").mkdir()
    (home / ".claude/settings.json").write_text("\x1b[2J")
    assert_safe(run("install", "claude"))


# --- who -------------------------------------------------------------------------------------------------------


def test_an_agent_may_install_but_neither_change_nor_remove(machine, run, monkeypatch):
    monkeypatch.setenv("CLAUDECODE", "1")
    assert run("install", "claude").code == 0
    assert run("install", "claude").code == 0
    before = everything(machine)
    for words in (("uninstall", "claude"), ("install", "claude", "--timeout", "5"), ("install", "codex", "--monitor")):
        ended = run(*words)
        assert (ended.code, ended.out) == (1, "")
        assert "an agent cannot" in ended.err
    monkeypatch.setenv("FAIRLEAD_STATE_DIR", str(machine.home.parent / "another"))
    assert "fairlead was installed with" in run("install", "claude").err
    assert "an agent cannot switch the daemon on or off" in run("install", "claude", "--no-daemon").err
    assert everything(machine) == before
    assert run("uninstall", "claude", "--dry-run").code == 0


def test_only_a_person_starts_with_watching_only(machine, spawn):
    ended = spawn("install", "claude", "--monitor")
    assert (ended.code, ended.out, everything(machine)) == (1, "", {})
    assert "needs a terminal" in ended.err or "an agent cannot" in ended.err


@pytest.mark.usefixtures("unwatched")
def test_a_person_starts_with_watching_only(machine, terminal):
    ended = terminal("install", "claude", "--monitor")
    assert ended.code == 0
    assert "Hooks are only watched, until `fairlead enforce`." in ended.out
    assert read_setting(machine.state).mode == "monitor"
    assert (machine.home / ".claude/settings.json").exists()


# --- where it cannot be installed as usual ------------------------------------------------------------------


def test_a_file_that_nix_has_made_is_left_and_its_text_printed(machine, run, monkeypatch, tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    (store / "settings.json").write_text('{"theme": "dark"}')
    monkeypatch.setattr(plan, "NIX_STORE", store)
    linked = machine.home / ".claude/settings.json"
    linked.parent.mkdir()
    linked.symlink_to(store / "settings.json")
    ended = run("install", "claude", "gemini")
    assert ended.code == 3
    assert f"left      {linked}" in ended.out
    assert f"{linked} cannot be written here. Add this to it:" in ended.out
    assert linked.read_text() == '{"theme": "dark"}'
    assert "fairlead-hook" in (machine.home / ".gemini/settings.json").read_text()
    snippet = run("install", "claude", "--json").json["files"][0]["snippet"]
    (store / "settings.json").write_text(snippet)
    again = run("install", "claude")
    assert (again.code, again.out.split()[0]) == (0, "unchanged")
    linked.unlink()


def test_a_file_that_is_read_only_is_left(run, claude):
    claude.chmod(0o444)
    ended = run("install", "claude")
    assert (ended.code, claude.read_text()) == (3, BY_HAND)


def test_a_file_that_is_mounted_is_left(run, claude, monkeypatch):
    """As in containers: a file that something is mounted on cannot be replaced, and the other CLIs are installed."""
    monkeypatch.setattr(places, "_mounts", lambda: [("/", "ext4"), (os.path.realpath(claude), "ext4")])
    ended = run("install", "claude", "gemini")
    assert (ended.code, claude.read_text()) == (3, BY_HAND)
    assert "wrote" in ended.out


def test_what_cannot_be_written_is_not_taken_out_either(run, claude):
    run("install", "claude")
    claude.chmod(0o444)
    ended = run("uninstall", "claude")
    assert ended.code == 1
    assert f"{claude} cannot be written: it is read-only; remove fairlead's hooks where it is made" in ended.err


def test_where_no_program_can_be_run_nothing_is_written(machine, run, monkeypatch):
    class Noexec:
        f_flag = 8

    monkeypatch.setattr(os, "statvfs", lambda path: Noexec)
    ended = run("install", "claude")
    assert (ended.code, ended.out, everything(machine)) == (1, "", {})
    assert "noexec" in ended.err
    assert "Nothing was changed." in ended.err


AS_ON_WINDOWS = """
import sys
from contextlib import nullcontext
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
import fairlead.cli, fairlead.cli.install
fairlead.cli._where_installed = nullcontext
fairlead.cli.install._is_posix = lambda: False
sys.exit(fairlead.cli.main([WORDS, "claude"]))
"""


@pytest.mark.parametrize("words", ["install", "uninstall"])
def test_on_windows_it_is_refused_and_the_way_out_is_said(machine, words):
    """In a process without any of the modules that are not there."""
    program = AS_ON_WINDOWS.replace("WORDS", repr(words))
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, everything(machine)) == (1, "", {})
    assert "use WSL" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_home_is_for_users_whom_the_database_does_not_know(machine, run):
    ended = run("install", "claude", "--home", str(machine.home))
    assert (ended.code, everything(machine)) == (1, {})
    assert "--home is for users without an entry in the user database" in ended.err
    assert "must be an absolute path" in run("install", "claude", "--home", "here").err


def test_a_user_without_an_entry_names_a_home(machine, run, monkeypatch, tmp_path):
    monkeypatch.setattr("fairlead.folders.home_in_database", lambda: None)
    home = tmp_path / "their home"
    home.mkdir()
    assert run("install", "claude", "--home", str(home)).code == 0
    assert (home / ".claude/settings.json").exists()
    assert (home / ".local/state/fairlead/folders.json").exists()
