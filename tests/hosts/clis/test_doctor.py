"""`fairlead doctor`: what it sees, what it says of it, and what it leaves alone.

The CLIs here are small programs that say a version, and one that does what Claude Code does about a tool call. What
the real ones do is in clis/test_clis_doctor.py.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead import Hooks, Journal
from fairlead.cli import main
from fairlead.config import layers
from fairlead.enforcement import EnforcementSetting, write_setting
from fairlead.folders import from_environment, write_record
from fairlead.hosts.clis.doctor import copies, program, trial
from fairlead.hosts.clis.doctor.program import version_of
from fairlead.hosts.clis.doctor.trial import PROBE
from fairlead.hosts.clis.install import carry_out, plan, plan_install, read_records
from fairlead.hosts.clis.install import settings as where
from fairlead.hosts.clis.install.settings import InstallScope, served_file, settings_file, settings_of
from fairlead.hosts.clis.launcher import write_launcher
from fairlead.hosts.clis.mapping import ALL, EXPERIMENTAL, host_named, hosts
from fairlead.lifecycle import BeforeTool
from fairlead.packs.protected_paths import HOOKS_OFF_VARIABLES

VARIABLES = [moved[0] for host in hosts() if (moved := settings_of(host).moved_by)]
OFF = {
    "claude_code": {"disableAllHooks": True},
    "gemini": {"hooksConfig": {"enabled": False}},
    "qwen": {"disableAllHooks": True},
    "copilot": {"disableAllHooks": True},
    "droid": {"hooksDisabled": True},
}
"""What turns hooks off."""
ROOT_PATH = "/usr/bin:/bin"

# Does what Claude Code does when the model calls a tool: asks its hooks, and runs the tool or tells the model why not.
CLAUDE = """#!{python} -I
import json, os, subprocess, sys, urllib.request
if "--version" in sys.argv:
    sys.exit(print("2.1.325 (Claude Code)"))
home, messages = os.environ["HOME"], [dict(role="user", content=sys.argv[-1])]
with open(home + "/.claude/settings.json") as file:
    settings = json.load(file)
with open({seen!r}, "w") as file:
    json.dump(dict(settings=settings, environ=dict(os.environ), cwd=os.getcwd()), file)

def ask():
    body = json.dumps(dict(model="m", tools=[dict(name="Bash")], messages=messages)).encode()
    asked = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", body)
    said = json.load(urllib.request.urlopen(asked))["content"][0]
    messages.append(dict(role="assistant", content=[said]))
    return said

def denied(call):
    if settings.get("disableAllHooks"):
        return None
    about = dict(session_id="s", cwd=os.getcwd(), hook_event_name="PreToolUse", tool_use_id=call["id"])
    about |= dict(tool_name=call["name"], tool_input=call["input"])
    for group in settings["hooks"]["PreToolUse"]:
        for hook in group["hooks"]:
            ran = subprocess.run(hook["command"], shell=True, input=json.dumps(about), capture_output=True, text=True)
            answer = json.loads(ran.stdout or "{{}}").get("hookSpecificOutput", {{}})
            if ran.returncode == 2 or answer.get("permissionDecision") == "deny":
                return answer.get("permissionDecisionReason") or ran.stderr

call = ask()
why = denied(call)
if why is None:
    subprocess.run(call["input"]["command"], shell=True)
messages.append(dict(role="user", content=[dict(type="tool_result", tool_use_id=call["id"], content=why or "ok")]))
print(ask()["text"])
"""


class Doctor:
    """A user's home, a project, a machine, programs on PATH, and the doctor."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home, self.project, self.machine = folder / "home", folder / "p", folder / "machine"
        self.bin, self.seen = folder / "bin", folder / "seen.json"
        for made in (self.home, self.project, self.machine, self.bin):
            made.mkdir(mode=0o700)
        self.state = self.home / ".local/state/fairlead"
        self.user_file = self.home / ".config/fairlead/fairlead.toml"
        self._capsys = capsys

    # --- what is there --------------------------------------------------------------------------

    def program(self, name: str, says: str | None = None, script: str | None = None) -> Path:
        """A CLI that says a version: the one that was proven, if it is not told which."""
        host = host_named(name)
        path = self.bin / host.program
        path.write_text(script or f"#!/bin/sh\necho {shlex.quote(says or host.proven or '1.0.0')}\n")
        path.chmod(0o755)
        return path

    def claude(self) -> None:
        """A program that heeds its hooks, as Claude Code does."""
        self.program("claude_code", script=CLAUDE.format(python=sys.executable, seen=str(self.seen)))

    def install(self, name: str, scope: InstallScope = "user") -> Path:
        carry_out(plan_install([host_named(name)], scope, self.project))
        return self.file(name, scope)

    def file(self, name: str, scope: InstallScope = "user") -> Path:
        return settings_file(host_named(name), scope, self.project)

    def write(self, path: Path, text: str | dict[str, Any]) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        return path

    def edit(self, path: Path, **more: Any) -> None:
        path.write_text(json.dumps(json.loads(path.read_text()) | more))

    @property
    def launcher(self) -> Path:
        return self.state / "bin/fairlead-hook"

    # --- what is said ---------------------------------------------------------------------------

    def run(self, *words: str) -> tuple[int, str, str]:
        self._capsys.readouterr()
        try:
            code = main(("doctor", "-C", str(self.project), *words))
        except SystemExit as ended:
            code = int(ended.code or 0)
        return (code, *self._capsys.readouterr())

    def reports(self, *words: str) -> list[dict[str, Any]]:
        code, out, err = self.run("--json", *words)
        assert err == ""
        found: list[dict[str, Any]] = json.loads(out)
        assert code == (0 if all(report["well"] for report in found) else 1)
        return found

    def look(self, name: str) -> dict[str, Any]:
        """The report on one CLI, without running it."""
        return self.reports(name, "--no-run")[0]

    def own(self, *words: str) -> dict[str, Any]:
        """The report on fairlead itself, without running any CLI."""
        return self.reports(*words or ("claude", "--no-run"))[-1]

    def try_out(self, name: str = "claude_code") -> dict[str, Any]:
        return self.reports(name)[0]

    def everything(self) -> dict[str, bytes | None]:
        """All files but fairlead's own, and when they were changed."""
        found: dict[str, bytes | None] = {}
        for top in (self.home, self.project, self.machine):
            for path in sorted(top.rglob("*")):
                if not path.is_relative_to(self.state):
                    found[f"{path} {path.lstat().st_mtime_ns}"] = path.read_bytes() if path.is_file() else None
        return found


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short name: there will be a socket in it."""
    path = Path(tempfile.mkdtemp(prefix="d-", dir="/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def doctor(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Doctor:
    made = Doctor(folder, capsys)
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.setenv("PATH", f"{made.bin}:{ROOT_PATH}")
    names = {*VARIABLES, "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "FAIRLEAD_STATE_DIR", *HOOKS_OFF_VARIABLES}
    for name in {*names, "OPENCODE_PURE", "FAIRLEAD_DAEMON"}:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(where, "ROOT", made.machine)
    monkeypatch.setattr(layers, "SYSTEM_FILE", made.machine / "etc/fairlead/fairlead.toml")
    monkeypatch.setattr(plan, "is_root", lambda: True)
    monkeypatch.chdir(made.project)
    return made


def said(report: dict[str, Any], level: str | None = None) -> str:
    """What was found, a line each."""
    return "\n".join(
        f"{found['level']}: {found['what']}" for found in report["findings"] if level in (None, found["level"])
    )


def todo(report: dict[str, Any], what: str) -> str | None:
    """What to do about something that was found."""
    found: list[str | None] = [found["todo"] for found in report["findings"] if what in found["what"]]
    assert len(found) == 1, said(report)
    return found[0]


def left_in(folder: Path) -> list[str]:
    """What still runs for a folder, once what was killed has had time to end."""
    until = time.monotonic() + 3
    while (found := processes_in(folder)) and time.monotonic() < until:
        time.sleep(0.05)
    return found


def processes_in(folder: Path) -> list[str]:
    """What runs with this folder in its environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if int(process.name) != os.getpid() and str(folder).encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


# --- which CLIs ---------------------------------------------------------------------------------------


def test_without_any_cli_nothing_is_wrong(doctor):
    code, out, _ = doctor.run()
    assert code == 0
    assert "no agent CLI here" in out


def test_a_cli_that_is_on_path_is_looked_at(doctor):
    doctor.program("gemini")
    doctor.program("goose")
    assert [report["host"] for report in doctor.reports("--no-run")] == ["gemini", "goose", "fairlead"]


def test_a_cli_that_has_our_hooks_is_looked_at_though_it_is_not_on_path(doctor):
    doctor.install("codex")
    assert [report["host"] for report in doctor.reports("--no-run")] == ["codex", "fairlead"]


def test_only_the_named_are_looked_at_each_once(doctor):
    doctor.program("gemini")
    doctor.program("claude_code")
    reports = doctor.reports("--no-run", "claude", "claude_code")
    assert [report["host"] for report in reports] == ["claude_code", "fairlead"]


def test_a_name_that_no_cli_has_ends_with_2_and_says_which_there_are(doctor):
    code, out, err = doctor.run("gemin")
    assert (code, out) == (2, "")
    assert "'gemin'" in err
    assert "gemini" in err


def test_a_folder_that_is_not_there_ends_with_2(doctor):
    code, _, err = doctor.run("-C", "/no/such/folder")
    assert code == 2
    assert "/no/such/folder" in err


def test_a_wrong_option_is_a_wrong_call(doctor):
    assert doctor.run("--no-such-option")[0] == 1


def test_the_json_is_a_list_of_reports_of_one_shape(doctor):
    doctor.install("claude_code")
    shapes = {tuple(report) for report in doctor.reports("--no-run", *ALL, *EXPERIMENTAL)}
    assert shapes == {(
        "host", "title", "experimental", "path", "version", "proven", "installed", "fires", "controls", "degraded",
        "unknown_tools", "entry_points", "last_seen", "findings", "well",
    )}  # fmt: skip


def test_what_a_cli_can_carry_out_is_told(doctor):
    doctor.install("qwen")
    assert doctor.look("qwen")["controls"]["before_tool"] == ["deny"]
    assert "controls: deny, extend, context" in doctor.run("qwen", "--no-run")[1]


# --- the version --------------------------------------------------------------------------------------


def test_the_version_that_was_proven_is_well(doctor):
    doctor.program("codex", "codex-cli " + str(host_named("codex").proven))
    assert "ok: version 0.166.0, which was proven" in said(doctor.look("codex"))


def test_another_version_is_a_warning_that_names_the_proven_one(doctor):
    doctor.program("codex", "codex-cli 9.1.0-alpha.3")
    report = doctor.look("codex")
    assert (report["version"], report["proven"]) == ("9.1.0-alpha.3", "0.166.0")
    assert "warning: version 9.1.0-alpha.3 was not proven; 0.166.0 was" in said(report)


def test_no_version_of_an_experimental_cli_was_proven(doctor):
    doctor.program("goose", "1.9.0")
    report = doctor.look("goose")
    assert report["experimental"] is True
    assert "warning: version 1.9.0: no version was proven" in said(report)
    assert "goose 1.9.0 (experimental)" in doctor.run("goose", "--no-run")[1].lower()


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ("2.1.325 (Claude Code)", "2.1.325"),
        ("GitHub Copilot CLI 1.0.102.\nRun 'copilot update' to check for updates.", "1.0.102"),
        ("WARNING: no PATH aliases\ncodex-cli 0.166.0", "0.166.0"),
        ("v0.61.0-preview.2+build.7.", "0.61.0-preview.2+build.7"),
        ("1.2.3rc1,", "1.2.3rc1"),
    ],
)
def test_the_version_is_found_in_what_the_cli_says(doctor, says, version):
    doctor.program("copilot", says)
    assert doctor.look("copilot")["version"] == version


IDENTIFIERS = st.from_regex(r"[0-9a-z]{1,5}", fullmatch=True)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    numbers=st.tuples(*[st.integers(0, 9999)] * 3),
    more=st.lists(IDENTIFIERS, max_size=3),
    before=st.sampled_from(["", "v", "cli ", "CLI: ", "\n\n"]),
    after=st.sampled_from(["", ".", ",", " (x)", ")", "\n", "..."]),
)
def test_whatever_stands_around_a_version_is_not_taken_for_a_part_of_it(folder, numbers, more, before, after):
    version = "-".join([".".join(map(str, numbers)), *[".".join(more)] * bool(more)])
    program, home = folder / "program", folder / "home"
    home.mkdir(exist_ok=True)
    (folder / "text").write_text(before + version + after)
    program.write_text(f"#!/bin/sh\ncat {folder}/text\n")
    program.chmod(0o755)
    assert version_of(str(program), home)[0] == version


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("#!/bin/sh\nexit 0\n", "it ended with 0, without any output"),
        ("#!/bin/sh\necho no such option >&2\nexit 64\n", "it ended with 64: no such option"),
        ("#!/bin/sh\necho 'Error: boom'; echo; echo 'Node.js v20.20.2' >&2; exit 1\n", "it ended with 1"),
        ("#!/bin/sh\nkill -9 $$\n", "it ended with -9"),
        ("#!/bin/sh\nprintf '\\377\\376\\000\\033]0;gotcha\\007'\n", "it ended with 0"),
        ("#!/no/such/interpreter\n", "No such file or directory"),
        ("\x7fELF", "Exec format error"),
    ],
    ids=["silent", "usage", "crash", "killed", "binary", "no-interpreter", "no-program"],
)
def test_a_cli_that_says_no_version_is_a_warning_that_says_what_it_did(doctor, script, why):
    doctor.program("gemini", script=script)
    report = doctor.look("gemini")
    assert report["version"] is None
    assert "--version` says no version: " + why in said(report, "warning")


def test_what_a_program_says_cannot_take_over_the_terminal(doctor):
    doctor.program("gemini", script="#!/bin/sh\nprintf 'a\\033]0;gotcha\\007b'\nexit 3\n")
    out = doctor.run("gemini", "--no-run")[1]
    assert "gotcha" in out
    assert [c for c in out if not c.isprintable() and c != "\n"] == []


def test_a_version_that_never_comes_is_not_waited_for_and_nothing_of_it_stays(doctor, folder, monkeypatch):
    monkeypatch.setattr(program, "VERSION_WAIT", 0.3)
    doctor.program("gemini", script="#!/bin/sh\nsleep 1000 &\nsleep 1000\n")
    began = time.monotonic()
    report = doctor.look("gemini")
    assert time.monotonic() - began < 10
    assert "it did not end within 0.3 s" in said(report, "warning")
    assert left_in(doctor.bin) == []


def test_a_child_that_outlives_it_does_not_hold_up_the_version(doctor):
    doctor.program("gemini", script="#!/bin/sh\nsleep 1000 &\necho 0.61.0\n")
    assert doctor.look("gemini")["version"] == "0.61.0"
    assert left_in(doctor.bin) == []


def test_a_cli_does_not_see_the_home_of_the_user_when_it_is_asked_for_its_version(doctor):
    doctor.program("gemini", script='#!/bin/sh\necho x > "$HOME/x"; echo x > x; echo 0.61.0\n')
    before = doctor.everything()
    assert doctor.look("gemini")["version"] == "0.61.0"
    assert doctor.everything() == before


def test_a_relative_folder_on_path_is_told_in_full(doctor, monkeypatch):
    doctor.program("gemini")
    monkeypatch.setenv("PATH", f"../bin:{ROOT_PATH}")
    report = doctor.look("gemini")
    assert (report["path"], report["version"]) == (str(doctor.bin / "gemini"), "0.61.0")


# --- installed, or not --------------------------------------------------------------------------------


def test_a_cli_without_our_hooks_is_a_problem_with_a_way_out(doctor):
    doctor.program("claude_code")
    report = doctor.look("claude")
    assert report["installed"] == []
    assert "problem: fairlead's hooks are not installed" in said(report)
    assert todo(report, "hooks are not installed") == "fairlead install claude_code"


def test_a_cli_that_is_not_here_needs_no_hooks(doctor):
    report = doctor.look("claude")
    assert report["well"] is True
    assert "note: `claude` is not on PATH" in said(report)


@pytest.mark.parametrize("name", [*ALL, *EXPERIMENTAL])
def test_after_install_all_is_well(doctor, name):
    doctor.program(name)
    doctor.install(name)
    report = doctor.look(name)
    assert said(report, "problem") == ""
    assert (report["well"], report["installed"]) == (True, ["user"])
    assert "events are hooked" in said(report, "ok")


@pytest.mark.parametrize("name", ["claude_code", "codex", "gemini", "qwen", "copilot"])
def test_hooks_of_the_machine_are_enough(doctor, name):
    doctor.program(name)
    doctor.install(name, "managed")
    report = doctor.look(name)
    assert said(report, "problem") == ""
    assert report["installed"] == ["managed"]


def test_hooks_of_a_project_are_found_from_a_folder_below(doctor, monkeypatch):
    (doctor.project / ".git").mkdir()
    doctor.install("claude_code", "project")
    below = doctor.project / "src/deep"
    below.mkdir(parents=True)
    assert doctor.reports("claude", "--no-run", "-C", str(below))[0]["installed"] == ["project"]


def test_hooks_in_two_scopes_are_noted(doctor):
    doctor.install("gemini")
    doctor.install("gemini", "project")
    report = doctor.look("gemini")
    assert report["installed"] == ["user", "project"]
    assert "note: installed for user and project: the daemon judges each step once" in said(report)


def test_a_home_that_is_the_project_too_has_them_once(doctor):
    doctor.install("claude_code")
    report = doctor.reports("claude", "--no-run", "-C", str(doctor.home))[0]
    assert report["installed"] == ["user"]
    assert "installed for" not in said(report)


def test_an_event_that_is_not_hooked_is_named(doctor):
    path = doctor.install("claude_code")
    hooks = json.loads(path.read_text())["hooks"]
    del hooks["PreToolUse"]
    doctor.edit(path, hooks=hooks)
    report = doctor.look("claude")
    assert todo(report, f"{path} (user): not hooked: PreToolUse") == "fairlead install claude_code"
    assert report["well"] is False


def test_a_program_of_an_event_that_is_gone_is_named(doctor):
    path = doctor.install("cline")
    (path / "PreToolUse").unlink()
    assert "not hooked: PreToolUse" in said(doctor.look("cline"), "problem")


def test_entries_that_would_be_written_differently_are_outdated(doctor):
    path = doctor.install("claude_code", "project")
    hooks = json.loads(path.read_text())["hooks"]
    hooks["PreToolUse"][0]["hooks"][0]["timeout"] = 3
    doctor.edit(path, hooks=hooks)
    report = doctor.look("claude")
    assert todo(report, "differ from what it would install now") == "fairlead install claude_code --scope project"


@pytest.mark.parametrize("name", ["claude_code", "opencode", "cline"])
def test_entries_of_another_launcher_are_outdated(doctor, name):
    doctor.install(name)
    for record in read_records().values():
        doctor.write(Path(record.file), Path(record.file).read_text().replace(str(doctor.state), "/elsewhere"))
    report = doctor.look(name)
    assert "differ from what it would install now" in said(report, "problem")


def test_a_moved_home_of_a_cli_is_where_its_hooks_are_looked_for(doctor, monkeypatch):
    doctor.install("claude_code")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(doctor.home / "moved"))
    assert doctor.look("claude")["installed"] == []


@pytest.mark.parametrize("name", ["gemini", "qwen"])
@pytest.mark.parametrize("line", ["SHELLOPTS=noexec", "export BASH_ENV = x", "A=1\n LD_PRELOAD=/x.so", "PS4: x"])
def test_a_variable_of_a_repository_that_a_shell_obeys_is_a_problem(doctor, name, line):
    doctor.install(name)
    doctor.write(doctor.project / ".env", "XDG_CONFIG_HOME=/x\nMY_ENV=1\n")
    assert doctor.look(name)["well"] is True
    doctor.write(doctor.project / ".env", line)
    assert "obeys it before anything else" in said(doctor.look(name), "problem")


def test_hooks_of_others_on_the_same_event_are_noted(doctor):
    path = doctor.install("claude_code")
    hooks = json.loads(path.read_text())["hooks"]
    hooks["PreToolUse"].append({"matcher": "Bash", "hooks": [{"type": "command", "command": "./mine.sh"}]})
    doctor.edit(path, hooks=hooks)
    report = doctor.look("claude")
    warned = "warning: another hook is on the same event, and may change the arguments unjudged: PreToolUse: ./mine.sh"
    assert warned in said(report)
    assert report["well"] is True


def test_a_secret_in_a_foreign_hook_is_not_shown(doctor):
    path = doctor.install("claude_code")
    secret = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuv"
    hooks = json.loads(path.read_text())["hooks"]
    hooks["Stop"].append({"hooks": [{"type": "command", "command": f"curl -H 'x-api-key: {secret}' localhost"}]})
    doctor.edit(path, hooks=hooks)
    assert secret not in doctor.run("claude", "--no-run")[1] + doctor.run("claude", "--no-run", "--json")[1]


def test_what_the_documents_leave_to_the_user_is_noted(doctor):
    doctor.install("kiro")
    assert "Kiro CLI 2 runs the hooks of the agent in use" in said(doctor.look("kiro"), "note")


# --- settings that cannot be read --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["claude_code", "codex", "copilot"])
def test_a_comment_in_a_file_of_strict_json_is_a_problem_with_its_place(doctor, name):
    path = doctor.install(name)
    path.write_text("// mine\n" + path.read_text())
    report = doctor.look(name)
    assert f"problem: {path}:1:1: " in said(report)
    assert "take it out" in said(report, "problem")


@pytest.mark.parametrize("name", ["gemini", "qwen", "droid"])
def test_a_comment_in_a_file_that_may_have_some_is_well(doctor, name):
    path = doctor.install(name)
    path.write_text("// mine\n" + path.read_text())
    assert doctor.look(name)["well"] is True


def test_settings_that_are_no_json_are_a_problem_with_its_place(doctor):
    path = doctor.install("claude_code")
    path.write_text(path.read_text()[:-20] + "\n!")
    report = doctor.look("claude")
    assert f"problem: {path}:" in said(report)
    assert "no hook of fairlead can be read from it" in said(report, "problem")
    assert "not hooked" not in said(report)


@pytest.mark.parametrize("content", [b"\xff\xfe{}", None], ids=["not-utf8", "a-folder"])
def test_settings_that_are_no_text_are_a_problem(doctor, content):
    doctor.program("claude_code")
    path = doctor.file("claude_code")
    path.parent.mkdir()
    path.mkdir() if content is None else path.write_bytes(content)
    report = doctor.look("claude")
    assert f"problem: {path}" in said(report)
    assert report["well"] is False


def test_what_cannot_be_read_counts_as_here_and_does_not_hide_the_others(doctor):
    doctor.install("gemini")
    path = doctor.file("claude_code")
    path.mkdir(parents=True)
    assert [report["host"] for report in doctor.reports("--no-run")] == ["claude_code", "gemini", "fairlead"]


# --- what turns hooks off -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", OFF)
def test_a_switch_in_the_file_of_the_hooks_is_a_problem(doctor, name):
    path = doctor.install(name)
    doctor.edit(path, **OFF[name])
    problems = said(doctor.look(name), "problem")
    assert str(path) in problems
    assert "turns all hooks" in problems


@pytest.mark.parametrize("name", ["claude_code", "gemini", "qwen", "droid"])
@pytest.mark.parametrize(("ours", "off"), [("user", "project"), ("project", "user")])
def test_a_switch_in_the_other_file_is_a_problem_too(doctor, name, ours, off):
    doctor.install(name, ours)
    path = doctor.write(doctor.file(name, off), OFF[name])
    report = doctor.look(name)
    assert f"{path}:1:" in said(report, "problem")
    assert "turns all hooks" in said(report, "problem")


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("claude_code", ".claude/settings.local.json"),
        ("copilot", ".github/copilot/settings.json"),
        ("copilot", ".github/copilot/settings.local.json"),
        ("copilot", ".claude/settings.json"),
        ("copilot", ".claude/settings.local.json"),
    ],
)
def test_a_switch_in_another_file_of_the_project_is_a_problem(doctor, name, file):
    doctor.install(name)
    path = doctor.write(doctor.project / file, '{\n  "disableAllHooks": true\n}')
    assert todo(doctor.look(name), f"{path}:2:") == "take disableAllHooks out"


@pytest.mark.parametrize("name", ["claude_code", "gemini", "qwen", "droid"])
def test_a_switch_in_the_file_of_the_machine_is_a_problem(doctor, name):
    doctor.install(name)
    path = doctor.write(doctor.file(name, "managed"), OFF[name])
    assert f"{path}:1:" in said(doctor.look(name), "problem")


@pytest.mark.parametrize("scope", ["user", "project"])
def test_a_machine_that_has_only_its_own_hooks_run_is_a_problem(doctor, scope):
    doctor.install("claude_code", scope)
    path = doctor.write(doctor.file("claude_code", "managed"), '{\n  "allowManagedHooksOnly": true\n}')
    what = f"{path}:2:28: allowManagedHooksOnly turns all hooks of Claude Code off that are not in that file"
    assert todo(doctor.look("claude"), what) == "sudo fairlead install claude_code --scope managed"


def test_a_machine_that_has_only_its_own_hooks_run_is_well_with_ours_among_them(doctor):
    doctor.install("claude_code")
    path = doctor.install("claude_code", "managed")
    doctor.edit(path, allowManagedHooksOnly=True)
    assert "allowManagedHooksOnly" not in said(doctor.look("claude"))


@pytest.mark.parametrize("file", ["user", "project", "managed"])
def test_only_the_file_of_the_machine_can_say_that_only_its_own_hooks_run(doctor, file):
    doctor.install("claude_code")
    path = doctor.file("claude_code", file)
    doctor.write(path, (json.loads(path.read_text()) if path.exists() else {}) | {"allowManagedHooksOnly": True})
    assert doctor.look("claude")["well"] is (file != "managed")


# --- settings that the vendor serves ------------------------------------------------------------------

SERVED = [host.name for host in hosts() if settings_of(host).served]
MERGED = [name for name in SERVED if settings_of(name).merge_setting]


@pytest.mark.parametrize("name", MERGED)
def test_served_settings_that_hide_the_managed_file_are_a_problem_with_what_to_add(doctor, name):
    doctor.install(name, "managed")
    doctor.write(served_file(host_named(name)), {"unrelated": 1})
    report = doctor.look(name)
    assert json.dumps(settings_of(name).merge_setting) in str(todo(report, "none of the managed file counts"))


@pytest.mark.parametrize("name", MERGED)
@pytest.mark.parametrize("more", [{"unrelated": 1}, {}])
def test_served_settings_that_are_merged_are_well(doctor, name, more):
    doctor.install(name, "managed")
    doctor.write(served_file(host_named(name)), more | (settings_of(name).merge_setting if more else {"$schema": "x"}))
    assert said(doctor.look(name), "problem") == ""


@pytest.mark.parametrize("name", MERGED)
def test_served_settings_do_not_matter_to_hooks_of_a_user(doctor, name):
    doctor.install(name)
    doctor.write(served_file(host_named(name)), {"unrelated": 1})
    assert said(doctor.look(name), "problem") == ""


@pytest.mark.parametrize("name", SERVED)
@pytest.mark.parametrize("scope", ["user", "managed"])
def test_a_switch_that_is_served_is_a_problem(doctor, name, scope):
    doctor.install(name, scope)
    doctor.write(served_file(host_named(name)), OFF[name])
    assert todo(doctor.look(name), "(the vendor serves it)") == "change it in the admin console"


def test_a_vendor_that_has_only_managed_hooks_run_is_a_problem_for_those_of_a_user(doctor):
    doctor.install("claude_code")
    doctor.write(served_file(host_named("claude_code")), {"allowManagedHooksOnly": True})
    assert "off that are not in that file" in said(doctor.look("claude"), "problem")


@pytest.mark.parametrize("name", SERVED)
def test_served_settings_that_cannot_be_read_are_a_warning(doctor, name):
    doctor.install(name)
    doctor.write(served_file(host_named(name)), "{")
    assert "settings that the vendor serves cannot be read" in said(doctor.look(name), "warning")


# --- hooks of others, in files that ours are not in -----------------------------------------------------


@pytest.mark.parametrize(
    ("name", "file", "event"),
    [
        ("claude_code", "p/.claude/settings.json", "PreToolUse"),
        ("claude_code", "p/.claude/settings.local.json", "PreToolUse"),
        ("gemini", "p/.gemini/settings.json", "BeforeTool"),
        ("copilot", "home/.copilot/hooks/other.json", "preToolUse"),
        ("copilot", "p/.github/hooks/other.json", "preToolUse"),
        ("cursor", "p/.cursor/hooks.json", "preToolUse"),
    ],
)
def test_a_hook_of_others_in_another_file_is_a_warning_that_names_the_file(doctor, folder, name, file, event):
    doctor.install(name)
    hook = {"type": "command", "command": "theirs", "bash": "theirs"}
    entry = hook if settings_of(name).form == "list" else {"matcher": "*", "hooks": [hook]}
    path = doctor.write(folder / file, {"hooks": {event: [entry]}})
    warnings = said(doctor.look(name), "warning")
    assert f"may change the arguments unjudged: {event}: theirs ({path})" in warnings


@pytest.mark.parametrize("scope", ["user", "project", "managed"])
def test_a_hook_of_ours_that_gemini_is_told_to_leave_out_is_a_problem(doctor, scope):
    path = doctor.install("gemini")
    command = json.loads(path.read_text())["hooks"]["BeforeTool"][0]["hooks"][0]["command"]
    path = doctor.file("gemini", scope)
    settings = json.loads(path.read_text()) if path.exists() else {}
    doctor.write(path, settings | {"hooksConfig": {"disabled": ["of another program", command]}})
    problems = said(doctor.look("gemini"), "problem")
    assert (f"{path}:1:" in problems, "hooksConfig.disabled turns a hook of fairlead off" in problems) == (True, True)


@pytest.mark.parametrize("value", [[], ["mine.sh", 5, None], "x", {"a": 1}])
def test_what_gemini_leaves_out_of_others_is_not_our_concern(doctor, value):
    doctor.edit(doctor.install("gemini"), hooksConfig={"disabled": value})
    assert doctor.look("gemini")["well"] is True


@pytest.mark.parametrize("file", ["hooks.json", "hooks/hooks.json"])
def test_a_switch_of_droid_beside_the_settings_of_the_project_is_a_problem(doctor, file):
    doctor.install("droid")
    path = doctor.write(doctor.project / ".factory" / file, '{\n  "hooksDisabled": true\n}')
    assert todo(doctor.look("droid"), f"{path}:2:") == "take hooksDisabled out"


@pytest.mark.parametrize("value", [False, None, "true", 1])
def test_a_switch_that_is_not_on_is_none(doctor, value):
    doctor.install("claude_code")
    doctor.write(doctor.project / ".claude/settings.local.json", {"disableAllHooks": value})
    assert doctor.look("claude")["well"] is True


def test_where_nothing_is_installed_switches_do_not_matter(doctor):
    doctor.write(doctor.project / ".claude/settings.local.json", {"disableAllHooks": True})
    assert doctor.look("claude")["well"] is True


def test_other_files_that_make_no_sense_are_left_alone(doctor):
    doctor.install("claude_code")
    doctor.write(doctor.project / ".claude/settings.local.json", "[")
    assert doctor.look("claude")["well"] is True


TURNS_OFF = [(host.name, variable) for host in hosts() for variable in settings_of(host).off_variables]


def test_the_guard_knows_each_variable_that_turns_hooks_off():
    assert {variable for _, variable in TURNS_OFF} == set(HOOKS_OFF_VARIABLES)


@pytest.mark.parametrize("variable", settings_of("qwen").off_variables)
@pytest.mark.parametrize("file", [".env", ".qwen/.env"])
def test_a_variable_of_a_repository_that_turns_hooks_off_is_a_problem(doctor, variable, file):
    doctor.install("qwen")
    doctor.write(doctor.project / file, f"export {variable}=1\n")
    found = said(doctor.look("qwen"), "problem")
    assert f"{file} sets {variable}, which turns all hooks of Qwen Code off" in found


@pytest.mark.parametrize(("name", "variable"), TURNS_OFF)
def test_a_variable_that_turns_hooks_off_is_a_problem(doctor, monkeypatch, name, variable):
    doctor.install(name)
    monkeypatch.setenv(variable, "0")
    assert doctor.look(name)["well"] is True
    monkeypatch.setenv(variable, "1")
    assert todo(doctor.look(name), f"{variable} is set") == f"unset {variable}"


@pytest.mark.parametrize("scope", ["user", "project"])
def test_a_program_that_can_undo_a_deny_of_cline_is_a_warning(doctor, scope):
    doctor.install("cline")
    path = doctor.write(doctor.file("cline", scope) / "PreToolUse.sh", "#!/bin/sh\n")
    doctor.write(doctor.file("cline", scope) / "PostToolUse.sh", "#!/bin/sh\n")
    warned = said(doctor.look("cline"), "warning")
    assert f"{path} can undo a deny" in warned
    assert "PostToolUse.sh" not in warned


def test_hooks_that_codex_does_not_trust_are_a_problem(doctor):
    path = doctor.install("codex")
    (path.parent / "config.toml").unlink()
    report = doctor.look("codex")
    assert todo(report, "does not trust them") == "fairlead install codex"
    assert report["well"] is False


def test_a_hook_that_was_edited_since_is_not_trusted_any_more(doctor):
    path = doctor.install("codex")
    path.write_text(path.read_text().replace('"timeout": 120', '"timeout": 119', 1))
    assert "does not trust them" in said(doctor.look("codex"), "problem")


@pytest.mark.parametrize("feature", ["hooks", "codex_hooks"])
def test_features_of_codex_turn_hooks_off(doctor, feature):
    path = doctor.install("codex")
    config = path.parent / "config.toml"
    config.write_text(config.read_text() + f"\n[features]\n{feature} = false\n")
    assert f": {feature} = false in [features]" in said(doctor.look("codex"), "problem")


@pytest.mark.parametrize("feature", ["hooks", "codex_hooks"])
def test_features_of_a_project_turn_hooks_of_codex_off(doctor, feature):
    doctor.install("codex")
    path = doctor.write(doctor.project / ".codex/config.toml", f"[features]\n{feature} = false\n")
    assert todo(doctor.look("codex"), f"{path}: {feature} = false") == f"take {feature} out"
    path.write_text("[")
    assert doctor.look("codex")["well"] is True


def test_hooks_that_fairlead_only_watches_are_a_warning(doctor):
    doctor.install("claude_code")
    write_setting(EnforcementSetting("monitor"))
    assert todo(doctor.own(), "only watches") == "fairlead enforce"


# --- fairlead itself ----------------------------------------------------------------------------------


def test_a_launcher_that_is_gone_is_a_problem(doctor):
    doctor.install("claude_code")
    doctor.launcher.unlink()
    assert todo(doctor.look("claude"), str(doctor.launcher)) == "fairlead install claude_code"


def test_a_launcher_that_may_not_be_run_is_a_problem(doctor):
    doctor.install("claude_code")
    doctor.launcher.chmod(0o644)
    assert f"{doctor.launcher}, which the hooks start, cannot be run" in said(doctor.look("claude"), "problem")


def test_a_client_that_is_gone_is_a_problem(doctor):
    doctor.install("claude_code")
    (doctor.launcher.parent / "fairlead_hook.py").unlink()
    assert "fairlead_hook.py" in said(doctor.look("claude"), "problem")


@pytest.mark.parametrize("which", ["base_interpreter", "executable"])
@pytest.mark.parametrize("name", ["py", "it's a py"])
def test_an_interpreter_that_is_gone_is_a_problem(doctor, monkeypatch, which, name):
    python = doctor.home / name
    python.symlink_to(sys.executable)
    with monkeypatch.context() as patch:
        if which == "executable":
            patch.setattr(sys, "executable", str(python))
        else:
            patch.setattr("fairlead.hosts.clis.launcher.base_interpreter", lambda: str(python))
        doctor.install("claude_code")
    assert doctor.look("claude")["well"] is True
    python.unlink()
    report = doctor.look("claude")
    assert todo(report, f"{python}, which the launcher") == "fairlead install claude_code"


@pytest.mark.parametrize("text", ["#!/bin/sh\nexit 0\n", "\nanswer=$('", ""])
def test_a_launcher_that_was_changed_is_a_warning(doctor, text):
    doctor.install("claude_code")
    doctor.launcher.write_text(text)
    assert todo(doctor.look("claude"), "is not what this fairlead would write") == "fairlead install claude_code"


def test_a_launcher_of_the_machine_is_looked_at_where_the_hooks_are_the_machines(doctor):
    doctor.install("claude_code", "managed")
    launcher = doctor.machine / "usr/local/lib/fairlead/fairlead-hook"
    launcher.unlink()
    problems = said(doctor.look("claude"), "problem")
    assert str(launcher) in problems
    assert str(doctor.launcher) not in problems


def test_a_state_that_others_may_write_to_is_a_problem(doctor):
    doctor.install("claude_code")
    doctor.state.chmod(0o777)
    assert todo(doctor.own(), "others may write") == f"chmod 700 {doctor.state}"


def test_a_mistake_in_the_configuration_is_a_problem(doctor):
    doctor.install("claude_code")
    doctor.write(doctor.user_file, "[[hook]]\nnam = 1\n")
    assert todo(doctor.own(), str(doctor.user_file)) == "fairlead check"


def test_where_no_hook_is_configured_that_is_noted(doctor):
    doctor.install("claude_code")
    assert todo(doctor.own(), "no hook is configured") == "fairlead init"
    doctor.write(doctor.user_file, '[[hook]]\nname = "a"\non = "before_tool"\nrule = "true"\ndeny = "no"\n')
    assert "no hook is configured" not in said(doctor.own())


def test_hooks_of_an_untrusted_project_are_a_warning(doctor):
    doctor.install("claude_code")
    hook = '[[hook]]\nname = "a"\non = "before_tool"\nrule = "true"\ndeny = "no"\n'
    doctor.write(doctor.project / "fairlead.toml", hook)
    assert "fairlead.toml (a) does not run" in said(doctor.own(), "warning")


@pytest.mark.parametrize(("policy", "level"), [("closed", "problem"), ("abort", "problem"), ("open", "warning")])
def test_a_hook_that_lacks_its_program_is_a_problem_where_it_refuses_without_it(doctor, policy, level):
    hook = f'[[hook]]\nname = "a"\non = "before_input"\ncommand = ["no-such-program"]\non_failure = "{policy}"\n'
    doctor.write(doctor.user_file, hook)
    assert "no-such-program" in said(doctor.own(), level)


# --- the journal --------------------------------------------------------------------------------------

REWRITE = """\
[[hook]]
name = "rewrite"
on = "before_tool"
command = ["/bin/echo", '{"args": {"command": "true"}}']
"""


def put(doctor: Doctor, name: str, event: str, payload: dict[str, Any], **more: str) -> str:
    """Put a step to fairlead as the CLI does, by the launcher, without a daemon."""
    environ = {"HOME": str(doctor.home), "PATH": ROOT_PATH, **more}
    folders = from_environment(daemon=False)
    write_launcher(folders)
    write_record(folders)
    ours = host_named(name).events[event].event
    about = {"session_id": "s", "cwd": str(doctor.project), "hook_event_name": event, **payload}
    ran = subprocess.run(
        [doctor.launcher, "60", ours, name, event], input=json.dumps(about), env=environ, cwd=doctor.project,
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def call(tool: str, **args: Any) -> dict[str, Any]:
    return {"tool_name": tool, "tool_input": args, "tool_use_id": f"id-{time.monotonic_ns()}"}


def test_what_the_journal_has_of_a_cli_is_told(doctor):
    doctor.install("qwen")
    doctor.write(doctor.user_file, REWRITE)
    for _ in range(2):
        put(doctor, "qwen", "PreToolUse", call("run_shell_command", command="ls"))
    put(doctor, "qwen", "PreToolUse", call("frobnicate", knob=3))
    report = doctor.look("qwen")
    assert report["degraded"] == {"args at before_tool": 3}
    assert "hooks decided args at before_tool 3 times, which it cannot carry out. The call is denied" in said(report)
    assert report["unknown_tools"] == {"frobnicate": 1}
    assert "[[tool]]" in str(todo(report, "tools of unknown kind: frobnicate"))
    assert report["last_seen"] is not None
    assert report["well"] is True


def in_seat(doctor: Doctor, entry_point: str, **more: str) -> None:
    variables = {"CLAUDE_CODE_ENTRYPOINT": entry_point, "CLAUDE_PROJECT_DIR": str(doctor.project), **more}
    put(doctor, "claude_code", "PreToolUse", call("Bash", command="ls"), **variables)


def test_calls_are_counted_by_entry_point_and_what_is_reported_of_one_is_told(doctor):
    doctor.install("claude_code")
    in_seat(doctor, "cli")
    in_seat(doctor, "claude-vscode")
    report = doctor.look("claude_code")
    assert report["entry_points"] == {"cli": 1, "claude-vscode": 1}
    assert "note: hooks of claude-vscode are reported not to fire in some versions of the extension" in said(report)
    assert "hooks of cli" not in said(report)


def test_a_program_that_named_no_projects_folder_is_told(doctor):
    doctor.install("claude_code")
    in_seat(doctor, "cli")
    assert "named no project" not in said(doctor.look("claude_code"))
    in_seat(doctor, "remote", CLAUDE_PROJECT_DIR="")
    report = doctor.look("claude_code")
    assert "warning: remote named no project's folder at 1 call" in said(report)


def test_a_program_with_transcripts_at_which_no_hook_fired_is_told(doctor):
    doctor.install("claude_code")
    in_seat(doctor, "cli")
    for name in ("cli", "claude-desktop"):
        line = {"type": "user", "sessionId": name, "entrypoint": name, "message": {"content": "hi"}}
        doctor.write(doctor.home / f".claude/projects/p/{name}.jsonl", json.dumps(line) + "\n")
    report = doctor.look("claude_code")
    assert todo(report, "claude-desktop has transcripts, and no hook fired there, as reported in the desktop app") == (
        "fairlead coverage --cli claude_code"
    )
    assert "cli has transcripts" not in said(report)


def test_a_program_that_fairlead_does_not_know_is_told(doctor):
    doctor.install("copilot")
    put(doctor, "copilot", "preToolUse", call("Bash", command="ls") | {"hook_event_name": "beforeAnything"})
    assert doctor.look("claude_code")["last_seen"] is not None
    found = said(doctor.own())
    assert "a program that fairlead does not know ran the entries of Copilot CLI, and sent the JSON of Claude" in found


def test_programs_that_run_the_entries_of_another_cli_are_looked_at_once_they_did(doctor):
    doctor.install("copilot")
    assert [report["host"] for report in doctor.reports("--no-run")] == ["copilot", "fairlead"]
    about = {"hook_event_name": "PreToolUse", "timestamp": "2026-11-15T17:49:28.133Z"}
    put(doctor, "copilot", "preToolUse", call("run_in_terminal", command="ls") | about)
    assert [report["host"] for report in doctor.reports("--no-run")] == ["copilot", "vscode", "fairlead"]


def test_a_tool_whose_arguments_told_its_kind_is_not_of_unknown_kind(doctor):
    doctor.install("qwen")
    put(doctor, "qwen", "PreToolUse", call("run_bash", command="ls"))
    put(doctor, "qwen", "PreToolUse", call("get_it", url="https://a.example/"))
    report = doctor.look("qwen")
    assert (report["unknown_tools"], "of unknown kind" in said(report)) == ({}, False)


def test_unknown_tools_of_a_loop_of_ones_own_are_told(doctor):
    with Journal() as journal:
        hooks = Hooks(journal=journal)
        hooks.dispatch_sync(BeforeTool(tool="frobnicate", args={"knob": 3}))
        hooks.dispatch_sync(BeforeTool(tool="run_bash", args={"command": "ls"}))
        hooks.dispatch_sync(BeforeTool(tool="of_a_cli", host="qwen"))
    report = doctor.own()
    assert report["unknown_tools"] == {"frobnicate": 1}
    assert "[[tool]]" in str(todo(report, "tools of unknown kind: frobnicate"))


def test_what_another_cli_did_is_not_told(doctor):
    doctor.install("qwen")
    doctor.write(doctor.user_file, REWRITE)
    put(doctor, "qwen", "PreToolUse", call("frobnicate", knob=3))
    report = doctor.look("claude")
    assert (report["degraded"], report["unknown_tools"], report["last_seen"]) == ({}, {}, None)


def test_a_tool_that_was_described_since_is_not_unknown_any_more(doctor):
    doctor.install("qwen")
    put(doctor, "qwen", "PreToolUse", call("frobnicate", knob=3))
    assert doctor.look("qwen")["unknown_tools"] == {"frobnicate": 1}
    doctor.write(doctor.user_file, '[[tool]]\nname = "frob*"\nkind = "read"\n')
    assert doctor.look("qwen")["unknown_tools"] == {}


def test_the_journal_that_is_configured_is_read(doctor):
    doctor.install("qwen")
    doctor.write(doctor.user_file, f'[journal]\npath = "{doctor.home}/elsewhere.db"\n')
    put(doctor, "qwen", "PreToolUse", call("frobnicate", knob=3))
    assert not (doctor.state / "journal.db").exists()
    assert doctor.look("qwen")["unknown_tools"] == {"frobnicate": 1}


def test_a_journal_that_is_none_is_a_warning(doctor):
    doctor.install("qwen")
    (doctor.state / "journal.db").write_bytes(b"no journal" * 1000)
    assert str(doctor.state / "journal.db") in said(doctor.look("qwen"), "warning")


# --- whether hooks fire ---------------------------------------------------------------------------------


def test_hooks_that_hold_are_seen_to_hold(doctor):
    doctor.claude()
    doctor.install("claude_code")
    report = doctor.try_out()
    assert report["fires"] is True, said(report)
    assert report["well"] is True


def test_nothing_is_left_behind(doctor, folder, monkeypatch):
    temporary = folder / "t"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    doctor.claude()
    doctor.install("claude_code")
    before = doctor.everything()
    assert doctor.try_out()["fires"] is True
    assert doctor.everything() == before
    assert list(temporary.iterdir()) == []
    assert left_in(temporary) == []
    assert not (doctor.state / "journal.db").exists()


def test_hooks_that_answer_nothing_do_not_hold(doctor):
    doctor.claude()
    doctor.install("claude_code")
    doctor.launcher.write_text("#!/bin/sh\nexit 0\n")
    report = doctor.try_out()
    assert (report["fires"], report["well"]) == (False, False)
    assert "a command ran that a hook denies" in said(report, "problem")
    assert todo(report, "it says nothing") == "fairlead install claude_code"


def test_hooks_that_are_switched_off_in_the_settings_do_not_hold(doctor):
    doctor.claude()
    doctor.edit(doctor.install("claude_code"), disableAllHooks=True)
    report = doctor.try_out()
    assert report["fires"] is False
    assert todo(report, "a command ran") is None  # what to do is said of the switch


def test_hooks_that_refuse_for_want_of_an_answer_are_told_apart(doctor):
    doctor.claude()
    doctor.install("claude_code")
    (doctor.launcher.parent / "fairlead_hook.py").write_text("raise SystemExit(7)\n")
    shutil.rmtree(doctor.launcher.parent / "__pycache__")
    report = doctor.try_out()
    assert report["fires"] is None
    what = "fairlead-hook gets no answer from fairlead: its client ended with 7"
    assert todo(report, what) == "fairlead install claude_code"


def test_that_fairlead_answers_is_seen_where_the_cli_is_not_here_too(doctor):
    doctor.install("kiro")
    assert doctor.try_out("kiro")["well"] is True
    doctor.launcher.write_text("#!/bin/sh\nexit 0\n")
    assert "gets no answer from fairlead: it says nothing" in said(doctor.try_out("kiro"), "problem")


def test_a_fairlead_that_cannot_be_imported_is_told_apart(doctor):
    doctor.install("kiro")
    python = doctor.home / "py"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    text = doctor.launcher.read_text()
    doctor.launcher.write_text(text.replace(f'"$folders" {shlex.quote(sys.executable)}', f'"$folders" {python}'))
    report = doctor.try_out("kiro")
    assert "could not be run without a daemon (it ended with 1)" in said(report, "problem")


def test_a_launcher_that_never_answers_is_not_waited_for(doctor, monkeypatch):
    monkeypatch.setattr(trial, "ANSWER_WAIT", 1.0)
    doctor.install("kiro")
    doctor.launcher.write_text("#!/bin/sh\nsleep 1000\n")
    assert "gets no answer from fairlead" in said(doctor.try_out("kiro"), "problem")
    assert left_in(doctor.launcher.parent) == []


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 3", "did not ask the scripted model anything, so nothing is proven: it ended with 3"),
        ("echo 'please log in' >&2; exit 1", "nothing is proven: it ended with 1: please log in"),
        ("kill -9 $$", "nothing is proven: it ended with -9"),
    ],
)
def test_what_a_broken_program_could_not_prove_is_said(doctor, script, why):
    doctor.install("claude_code")
    version = 'case "$*" in *--version*) echo 2.1.325; exit ;; esac'
    doctor.program("claude_code", script=f"#!/bin/sh\n{version}\n{script}\n")
    report = doctor.try_out()
    assert report["fires"] is None
    assert report["well"] is True
    assert why in said(report, "warning")


def test_a_program_that_never_ends_is_ended(doctor, folder, monkeypatch):
    monkeypatch.setattr(trial, "WAIT", 1.0)
    doctor.install("claude_code")
    version = 'case "$*" in *--version*) echo 2.1.325; exit ;; esac'
    doctor.program("claude_code", script=f"#!/bin/sh\n{version}\nsleep 1000\n")
    report = doctor.try_out()
    assert report["fires"] is None
    assert "it did not end within 1 s" in said(report, "warning")
    assert left_in(doctor.bin) == []


def test_a_program_that_stops_at_the_call_proves_nothing(doctor):
    doctor.install("claude_code")
    script = CLAUDE.format(python=sys.executable, seen=str(doctor.seen))
    doctor.program("claude_code", script=script.replace("why = denied(call)", "sys.exit('cannot go on')"))
    report = doctor.try_out()
    assert report["fires"] is None
    assert "not because a hook denies it, so nothing is proven: it ended with 1: cannot go on" in said(report)


def test_a_program_that_cannot_be_run_against_a_model_says_so(doctor):
    doctor.program("goose")
    doctor.install("goose")
    report = doctor.try_out("goose")
    assert report["fires"] is None
    assert "cannot be run against a scripted model" in said(report, "warning")


def test_without_the_program_nothing_is_tried(doctor):
    doctor.install("claude_code")
    assert "whether its hooks fire was not tried" in said(doctor.try_out(), "warning")


def test_asked_only_to_look_it_runs_nothing_but_the_version(doctor):
    doctor.claude()
    doctor.install("claude_code")
    report = doctor.look("claude")
    assert report["fires"] is None
    assert not doctor.seen.exists()


def test_where_the_daemon_of_the_machine_decides_nothing_is_tried(doctor, monkeypatch):
    monkeypatch.setattr(trial, "managed_folder", lambda: Path("/run/fairlead"))
    doctor.claude()
    doctor.install("claude_code")
    assert "/run/fairlead" in said(doctor.try_out(), "warning")
    assert not doctor.seen.exists()


# --- what a run is given of the settings ----------------------------------------------------------------


def test_a_run_is_given_what_the_settings_say_of_hooks_and_nothing_else(doctor):
    doctor.claude()
    secrets = {"env": {"ANTHROPIC_BASE_URL": "https://gateway.example"}, "apiKeyHelper": "./key.sh", "model": "opus"}
    doctor.edit(doctor.install("claude_code"), **secrets, mcpServers={"a": {"command": "npx"}})
    assert doctor.try_out()["fires"] is True
    seen = json.loads(doctor.seen.read_text())
    assert list(seen["settings"]) == ["hooks"]
    assert seen["environ"]["HOME"] != str(doctor.home)
    assert seen["cwd"] != str(doctor.project)


def test_the_hooks_of_others_are_not_started(doctor):
    doctor.claude()
    path = doctor.install("claude_code")
    hooks = json.loads(path.read_text())["hooks"]
    theirs = {"type": "command", "command": f"touch {doctor.home}/theirs", "timeout": 7}
    hooks["PreToolUse"] = [{"matcher": "Bash", "hooks": [theirs]}, *hooks["PreToolUse"]]
    doctor.edit(path, hooks=hooks)
    assert doctor.try_out()["fires"] is True
    assert not (doctor.home / "theirs").exists()
    given = json.loads(doctor.seen.read_text())["settings"]["hooks"]["PreToolUse"]
    assert given[0]["hooks"] == [theirs | {"command": "true"}]


@pytest.mark.parametrize(
    "command",
    [
        "/repo/fairlead-hook 110 before_tool claude_code PreToolUse",
        "{launcher} 110 before_tool claude_code PreToolUse; touch {proof}",
        "{launcher} 110 before_tool claude_code PreToolUse\ntouch {proof}",
        "{launcher} 110 before_tool claude_code $(touch {proof})",
    ],
)
def test_what_only_looks_like_ours_is_not_started(doctor, command):
    saving(doctor, "claude_code")
    doctor.install("claude_code")
    command = command.format(launcher=doctor.launcher, proof=doctor.home / "proof")
    hooks = {"SessionStart": [{"hooks": [{"type": "command", "command": command}]}]}
    doctor.write(doctor.project / ".claude/settings.json", {"hooks": hooks})
    doctor.try_out("claude_code")
    given = json.loads(given_to(doctor, "project", ".claude/settings.json"))["hooks"]
    assert given["SessionStart"][0]["hooks"][0]["command"] == "true"


@pytest.mark.parametrize(
    ("name", "file"), [("cline", ".cline/hooks/PreToolUse"), ("opencode", ".opencode/plugin/fairlead.js")]
)
@pytest.mark.parametrize("says", ["", "fairlead-hook"])
def test_a_program_of_the_project_in_the_place_of_ours_is_not_given(doctor, name, file, says):
    saving(doctor, name)
    doctor.install(name)
    doctor.write(doctor.project / file, f"// {says}\nthrow new Error()\n")
    doctor.try_out(name)
    assert not Path(f"{doctor.seen}-project", file).exists()


def test_nothing_of_the_user_reaches_a_run_through_variables(doctor, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "secret")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(doctor.home / "moved"))
    doctor.claude()
    doctor.install("claude_code")
    assert doctor.try_out()["fires"] is True
    assert not {"ANTHROPIC_AUTH_TOKEN", "CLAUDE_CONFIG_DIR"} & set(json.loads(doctor.seen.read_text())["environ"])


def saving(doctor: Doctor, name: str) -> None:
    """A CLI that keeps a copy of the home and the project that it was given."""
    version = f'case "$*" in *--version*) echo {host_named(name).proven}; exit ;; esac'
    copying = f'cp -r "$HOME" {doctor.seen}-home; cp -r "$PWD" {doctor.seen}-project'
    doctor.program(name, script=f"#!/bin/sh\n{version}\n{copying}\n")
    node = doctor.bin / "node"
    node.write_text('#!/bin/sh\n[ "$1" = --version ] && echo v22.0.0 || exec /bin/sh "$@"\n')
    node.chmod(0o755)


def given_to(doctor: Doctor, scope: InstallScope, path: str) -> str:
    return Path(f"{doctor.seen}-{'home' if scope == 'user' else 'project'}", path).read_text()


@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize("name", ALL)
def test_what_is_installed_is_where_a_run_looks_for_it(doctor, name, scope):
    saving(doctor, name)
    doctor.install(name, scope)
    doctor.try_out(name)
    about = settings_of(name)
    path = about.user.removeprefix("~/") if scope == "user" else about.project
    assert "fairlead-hook" in given_to(doctor, scope, path + "/PreToolUse" * (about.form == "files"))


def test_a_file_that_wins_over_the_settings_is_given_too(doctor):
    saving(doctor, "droid")
    winner = doctor.write(doctor.home / ".factory/hooks.json", {"PreToolUse": []})
    doctor.install("droid")
    assert "fairlead-hook" in winner.read_text()
    doctor.try_out("droid")
    assert "fairlead-hook" in given_to(doctor, "user", ".factory/hooks.json")
    assert "fairlead-hook" in given_to(doctor, "user", ".factory/settings.json")


def test_a_foreign_program_beside_ours_is_not_given(doctor):
    saving(doctor, "cline")
    doctor.install("cline")
    doctor.write(doctor.home / ".cline/hooks/PreToolUse.py", "print('{}')")
    assert "PreToolUse.py" in said(doctor.try_out("cline"), "warning")
    assert not Path(f"{doctor.seen}-home/.cline/hooks/PreToolUse.py").exists()


def test_codex_is_told_there_what_it_is_told_here_and_nothing_else(doctor):
    saving(doctor, "codex")
    path = doctor.install("codex")
    config = path.parent / "config.toml"
    mine = 'model = "mine"\n[features]\nhooks = false\nother = true\n[mcp_servers.a]\ncommand = "npx"\n'
    mine += f'[projects."{doctor.project}"]\ntrust_level = "untrusted"\n[projects."/other"]\ntrust_level = "trusted"\n'
    config.write_text(mine + config.read_text())
    doctor.write(doctor.project / ".codex/config.toml", 'model = "its"\n[features]\ncodex_hooks = false\n')
    doctor.try_out("codex")
    told = tomllib.loads(given_to(doctor, "user", ".codex/config.toml"))
    assert told["features"] == {"hooks": False}
    assert tomllib.loads(given_to(doctor, "project", ".codex/config.toml")) == {"features": {"codex_hooks": False}}
    assert "mcp_servers" not in told
    assert [project["trust_level"] for project in told["projects"].values()] == ["untrusted"]
    theirs, ours = told["hooks"]["state"], tomllib.loads(config.read_text())["hooks"]["state"]
    assert sorted(map(str, theirs.values())) == sorted(map(str, ours.values()))
    assert all(key.partition("/.codex/")[0].endswith("/home") for key in theirs)
    assert not set(theirs) & set(ours)


def test_settings_of_codex_that_are_no_toml_are_left_out(doctor):
    saving(doctor, "codex")
    path = doctor.install("codex")
    (path.parent / "config.toml").write_text("[")
    assert "config.toml" in said(doctor.try_out("codex"), "problem")
    assert "hooks" not in tomllib.loads(given_to(doctor, "user", ".codex/config.toml"))


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["command", "url", "hooks", "bash", "x"]), inner, max_size=4)
    ),
    max_leaves=20,
)


@settings(max_examples=50)
@given(data=st.dictionaries(st.text(max_size=5) | st.sampled_from(["hooks", "env", "disableAllHooks"]), JSONS))
def test_of_whatever_settings_no_command_or_address_of_others_is_kept(data):
    kept = copies._hooks_only(json.dumps(data), settings_of("claude_code"), whole=False)
    assert kept is not None
    again = json.loads(kept)
    assert set(again) <= {"hooks", "disableAllHooks"}
    commands = {value for value in _texts_under(again) if value not in copies._HARMLESS.values()}
    assert commands == set()


def _texts_under(value: Any) -> Iterator[str]:
    """The texts that stand where a command or an address stands."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key in copies._HARMLESS and isinstance(each, str):
                yield each
            yield from _texts_under(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts_under(each)


@pytest.mark.parametrize(
    ("text", "allows", "kept"),
    [
        ("", (), "{}"),
        ("\ufeff{}", (), "{}"),
        ("// c\n{}", ("comments",), "{}"),
        ("[]", (), None),
        ("{", ("comments",), None),
        ('{"hooks": {},}', ("comments",), None),
    ],
)
def test_a_file_that_the_cli_reads_nothing_of_is_left_out(text, allows, kept):
    given = copies._hooks_only(text, msgspec.structs.replace(settings_of("claude_code"), allows=allows), whole=False)
    assert (None if given is None else msgspec.json.decode(given)) == (None if kept is None else json.loads(kept))


@pytest.mark.parametrize("text", ["// c\n{}", '{"hooks": {},}', "{"])
def test_what_a_strict_cli_stumbles_over_stays_in_a_run(text):
    given = copies._hooks_only(text, settings_of("claude_code"), whole=False)
    assert given is not None
    with pytest.raises(ValueError, match=r"Expecting|Illegal"):
        json.loads(given)


# --- what a person reads --------------------------------------------------------------------------------


def test_all_that_is_well_is_said_in_a_word(doctor):
    doctor.claude()
    doctor.install("claude_code")
    code, out, _ = doctor.run("claude")
    assert code == 0
    assert out.startswith(f"Claude Code 2.1.325  {doctor.bin}/claude\n  ok    version 2.1.325, which was proven\n")
    assert out.endswith("\nAll is well.\n")


def test_what_is_not_proven_is_not_called_well(doctor):
    doctor.install("claude_code")
    code, out, _ = doctor.run("claude", "--no-run")
    assert code == 0
    assert "All is well" not in out
    assert "mind the warnings" in out


def test_who_is_not_well_is_named_at_the_end_and_what_to_do_is_said(doctor):
    doctor.program("gemini")
    doctor.program("codex")
    doctor.install("codex")
    code, out, _ = doctor.run("--no-run")
    assert code == 1
    assert "  BAD   fairlead's hooks are not installed\n        -> fairlead install gemini\n" in out
    assert out.endswith("\nNot well: Gemini CLI.\n")


def test_every_problem_that_install_can_mend_is_gone_after_it(doctor):
    doctor.program("claude_code")
    path = doctor.install("claude_code")
    hooks = json.loads(path.read_text())["hooks"]
    del hooks["PreToolUse"]
    hooks["Stop"][0]["hooks"][0]["timeout"] = 3
    doctor.edit(path, hooks=hooks)
    doctor.launcher.unlink()
    report = doctor.look("claude")
    ways = {found["todo"] for found in report["findings"] if found["level"] == "problem"}
    assert ways == {"fairlead install claude_code"}
    doctor.install("claude_code")
    assert doctor.look("claude")["well"] is True


def test_the_command_that_is_tried_has_a_name_that_says_who_did_it():
    assert "fairlead" in PROBE
