"""Policy is found where it was installed, whatever the environment of an agent CLI says.

A repository can set variables: some CLIs load its `.env`, others take variables from its settings. Every variable that
fairlead, its interpreter or its launcher reads is set to hostile values here. `variables.py` collects them from the
sources, so a new one is tried without a change here.
"""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from launched import HANDS_OFF, REASON, Launched
from machines import Machine, alive, wait_until

from fairlead.cli import main
from fairlead.client import default_socket
from fairlead.folders import as_json, from_environment, home_folder, read_record, write_record
from fairlead.hosts.clis import client as hook_client
from fairlead.hosts.clis import launcher
from fairlead.hosts.clis.install.commands import command_of
from fairlead.hosts.clis.mapping import host_named
from fairlead.journal.reading import Reader
from variables import LOADER, VARIABLES

SYSTEM_PYTHON = Path("/usr/bin/python3")
"""One that other users can run, too."""
PATHS = """
[[hook]]
name = "by-path"
on = "before_tool"
phase = "gate"
command = ["true"]
output = "ignore"
"""


def test_variables_that_are_read_are_found() -> None:
    wanted = {"FAIRLEAD_STATE_DIR", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "HOME", "PATH", "TMPDIR", "PYTHONPATH"}
    assert wanted | {"FAIRLEAD_PROBE", "CLAUDE_PROJECT_DIR", "CODEX_HOME"} <= set(VARIABLES)
    assert not any(name.startswith(LOADER) for name in VARIABLES)


class Installed(Launched):
    """Fairlead as `fairlead install` leaves it, with nothing set but a home; and a repository that wants it gone."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self.evil = self.project / "evil"
        self.ran = machine.folder / "ran"
        self._plant()

    @property
    def home(self) -> Path:
        return self.machine.home

    @property
    def state(self) -> Path:
        return self.home / ".local/state/fairlead"

    @property
    def env(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"} | self.more

    def policy(self, text: str, folder: Path | None = None) -> None:
        file = self.home / ".config/fairlead/fairlead.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def _plant(self) -> None:
        """One folder that is a home, a configuration, a state and a place of programs: each leaves a mark if used."""
        program = f"#!/bin/sh\n: > {self.ran}\n"
        hook = f'[[hook]]\nname = "evil"\non = "*"\ncommand = ["{self.evil}/tr"]\noutput = "ignore"\n'
        for folder in (".config/fairlead", "fairlead", ".local/state/fairlead", "run"):
            (self.evil / folder).mkdir(parents=True)
        for name in ("tr", "id", "true", "sh", "python3", "cat", "printf", "ssh-keygen"):
            (self.evil / name).write_text(program)
            (self.evil / name).chmod(0o755)
        for place in (".config/fairlead", "fairlead", "."):
            (self.evil / place / "fairlead.toml").write_text(hook)
        switch = '{"mode": "monitor", "by": "evil"}'
        for place in (".local/state/fairlead", "."):
            (self.evil / place / "switch.json").write_text(switch)
            (self.evil / place / "trust.json").write_text("{}")
        for name in ("sitecustomize.py", "usercustomize.py", "json.py", "msgspec.py", "fairlead.py", "pwd.py"):
            (self.evil / name).write_text(f"open({str(self.ran)!r}, 'w')")

    def hostile(self) -> dict[str, str]:
        return {
            "nowhere": "/nonexistent/folder", "the repository's": str(self.evil), "nothing": "",
            "relative": "evil", "long": "/" + "x" * 4000, "lines": f"{self.evil}\n/nonexistent", "off": "off",
        }  # fmt: skip

    def records(self) -> list[str]:
        """Commands that the journal of this home has."""
        self.stop()
        with Reader(self.state / "journal.db") as reader:
            return [record.body["step"]["args"]["command"] for record in reader.records() if _is_call(record.body)]

    @property
    def daemons(self) -> list[int]:
        found, told = [], f'"state":{json.dumps(str(self.state))}'.encode()
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"fairlead.server" in words and any(told in word for word in words):
                found.append(int(folder.name))
        return found

    def stop(self) -> None:
        for pid in self.daemons:
            os.kill(pid, signal.SIGTERM)
            wait_until(lambda pid=pid: not alive(pid))


def _is_call(body: dict[str, Any]) -> bool:
    return body.get("step", {}).get("event") == "before_tool"


def make() -> Iterator[Installed]:
    machine = Machine()
    made = Installed(machine)
    try:
        made.policy(HANDS_OFF + "locked = true\n" + PATHS)
        yield made
    finally:
        made.stop()
        machine.remove()


@pytest.fixture
def here() -> Iterator[Installed]:
    yield from make()


@pytest.fixture(scope="module")
def warm() -> Iterator[Installed]:
    """One machine with a daemon, for what changes nothing of it."""
    yield from make()


@pytest.mark.parametrize("name", VARIABLES)
def test_no_variable_of_a_cli_moves_the_users_policy(warm: Installed, name: str) -> None:
    for kind, value in warm.hostile().items():
        ended = warm.shell("touch forbidden", **{name: value})
        says_where = name in hook_client.CLI_VARIABLES  # which the CLI itself sets
        assert REASON in ended.out or (says_where and ended.refuses), (kind, ended)
        assert not warm.ran.exists(), kind


@pytest.mark.parametrize("daemon", [True, False])
@pytest.mark.parametrize("kind", ["nowhere", "the repository's", "nothing", "relative", "long", "lines", "off"])
def test_all_variables_at_once_move_nothing(here: Installed, kind: str, daemon: bool) -> None:
    """Here the daemon is started with these variables, too."""
    here.write(daemon=daemon)
    hostile = dict.fromkeys(set(VARIABLES) - set(hook_client.CLI_VARIABLES), here.hostile()[kind])
    ended = here.shell("touch forbidden", **hostile)
    assert REASON in ended.out, ended
    assert here.shell("ls", **hostile).passes
    assert len(here.daemons) == daemon
    assert sorted(here.records()) == ["ls", "touch forbidden"]
    assert not here.ran.exists()
    assert not list(here.evil.rglob("journal.db"))


def test_the_guard_keeps_settings_that_a_variable_has_moved(here: Installed) -> None:
    """Those of every installation: a second one, with another value, does not give up the first."""
    for name in ("first", "second"):
        moved = here.machine.folder / name
        env = here.env | {"CLAUDE_CONFIG_DIR": str(moved)}
        argv = [sys.executable, "-m", "fairlead", "install", "claude"]
        subprocess.run(argv, env=env, cwd=here.project, capture_output=True, check=True)
        assert (moved / "settings.json").exists()
    for name in ("first", "second"):
        for file in ("settings.json", "remote-settings.json"):
            ended = here.shell(f"rm {here.machine.folder / name / file}")
            assert "fairlead.guard" in ended.out, ended


@pytest.mark.parametrize(
    "variables", [{}, {"COPILOT_CLI": "1"}, {"COPILOT_PROJECT_DIR": "/"}, {"DEVIN_PROJECT_DIR": "/"}]
)
def test_no_variable_alone_says_whose_step_it_is(here: Installed, variables: dict[str, str]) -> None:
    here.policy(HANDS_OFF.replace('{ kind = "shell" }', '{ kind = "shell", host = "claude_code" }'))
    ended = here.shell("touch forbidden", CLAUDE_PROJECT_DIR=str(here.project), **variables)
    assert ended.reply["hookSpecificOutput"]["permissionDecision"] == "deny"


@pytest.mark.parametrize("host", ["claude_code", "codex"])
def test_settings_of_a_project_start_nothing_of_the_working_folder(host: str, tmp_path: Path) -> None:
    """For a user without an entry in the user database, a `~` stays as it is, and would be a folder here."""
    if os.geteuid():
        pytest.skip("only root can be another user")
    for folder in (tmp_path, *tmp_path.parents[:-1]):
        folder.chmod(folder.stat().st_mode | 0o055)
    planted = tmp_path / "~4000123/.local/state/fairlead/bin/fairlead-hook"
    planted.parent.mkdir(parents=True)
    planted.write_text("#!/bin/sh\necho PLANTED >&2\n")
    planted.chmod(0o755)
    ended = subprocess.run(
        ["/bin/sh", "-c", command_of(host_named(host), "PreToolUse", None, 60)], input="{}", text=True, cwd=tmp_path,
        capture_output=True, env={"PATH": "/usr/bin:/bin"}, user=4_000_123, group=4_000_123, extra_groups=[],
    )  # fmt: skip
    assert (ended.returncode, "PLANTED" in ended.stderr) == (2, False), ended


@pytest.mark.parametrize(("age", "passes"), [(0.0, True), (hook_client.PROBE_LIFE + 1, False)])
def test_what_a_killed_doctor_has_left_moves_nothing(here: Installed, age: float, passes: bool) -> None:
    there, probe = here.machine.folder / "left", here.state / "probes" / ("a" * 32)
    there.mkdir(mode=0o700)
    probe.parent.mkdir(mode=0o700, parents=True)
    folders = {"home": there, "config": there / "config", "state": there / "state", "run": there / "run"}
    probe.write_text(json.dumps({name: str(folder) for name, folder in folders.items()}, separators=(",", ":")))
    probe.chmod(0o600)
    written = time.time() - age
    os.utime(probe, (written, written))
    assert here.shell("touch forbidden", FAIRLEAD_PROBE=probe.name).passes is passes


@pytest.mark.parametrize("what", ["link", "empty", "folder", "writable"])
def test_a_record_that_cannot_be_used_is_no_missing_one(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may say that the user's policy is elsewhere, so a launcher for all users refuses."""
    record = tmp_path / hook_client.RECORD
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps({"home": str(tmp_path), "config": "/elsewhere"}))
    record.chmod(0o622 if what == "writable" else 0o600)
    if what == "empty":
        record.write_text("")
    elif what != "writable":
        record.rename(tmp_path / "real")
        record.symlink_to(tmp_path / "real") if what == "link" else record.mkdir()
    entry = pwd.struct_passwd(("u", "x", os.geteuid(), 0, "", str(tmp_path), "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda _: entry)
    with pytest.raises(hook_client.Failed, match="folders"):
        hook_client.folders_of_user('{"path":"/bin","base":""}')


@pytest.mark.parametrize("own", [True, False])
def test_a_home_below_the_folder_of_an_administrator_is_its_users(
    own: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any user may make a folder there, with another one's number."""
    if os.geteuid():
        pytest.skip("only root can give a folder away")

    def no_entry(user: int) -> None:
        raise KeyError(user)

    monkeypatch.setattr(pwd, "getpwuid", no_entry)
    home = tmp_path / str(os.geteuid())
    home.mkdir(mode=0o700)
    os.chown(home, os.geteuid() if own else 4_000_123, -1)
    given = json.dumps({"path": "/bin", "base": str(tmp_path)}, separators=(",", ":"))
    if own:
        assert hook_client.value(hook_client.folders_of_user(given), "home") == str(home)
    else:
        with pytest.raises(hook_client.Failed, match="must be a folder of this user"):
            hook_client.folders_of_user(given)


def test_commands_with_another_home_say_so(
    here: Installed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = here.home / hook_client.RECORD
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps({"home": str(here.home), "config": "/c", "state": str(here.state), "run": "/r"}))
    record.chmod(0o600)
    entry = pwd.struct_passwd(("u", "x", os.geteuid(), 0, "", str(here.home), "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda _: entry)
    other = here.machine.folder / "other"
    other.mkdir()
    for home, is_told in ((other, True), (here.home, False)):
        monkeypatch.setenv("HOME", str(home))
        assert main(["events"]) == 0
        assert (f"also installed in {here.home}" in capsys.readouterr().err) is is_told


def test_a_daemon_has_none_of_the_variables_of_a_cli(here: Installed) -> None:
    here.shell("ls", **dict.fromkeys(VARIABLES, "/hostile"), MY_TOKEN="hostile")
    (pid,) = here.daemons
    environ = Path(f"/proc/{pid}/environ").read_bytes().decode()
    assert "hostile" not in environ
    assert f"HOME={here.home}" in environ.split("\0")


def test_a_shell_that_takes_functions_from_its_environment_does_not_run_them(here: Installed) -> None:
    if not os.path.exists("/bin/bash"):
        pytest.skip("there is no bash here")
    names = ("printf", "cd", "pwd", "read", "tr", "test", "[", "exit", "eval", "command", "echo", "unset")
    functions = {f"BASH_FUNC_{name}%%": f"() {{ : > {here.ran}; exit 0; }}" for name in names}
    shell = here.machine.folder / "sh"  # by this name, bash takes more functions than with --posix
    shell.symlink_to("/bin/bash")
    text = here.launcher.read_text().replace("#!/bin/sh", f"#!{shell}", 1)
    here.launcher.write_text(text)
    about = {"session_id": "s", "tool_name": "Bash", "tool_input": {"command": "touch forbidden"}}
    ended = subprocess.run(
        [here.launcher, "20", "before_tool", "claude_code", "PreToolUse"], input=json.dumps(about), text=True,
        capture_output=True, cwd=here.project, env=here.env | functions, timeout=60,
    )  # fmt: skip
    assert REASON in ended.stdout, ended
    assert not here.ran.exists()


def test_a_shell_that_breaks_over_a_variable_refuses(here: Installed) -> None:
    """Dash ends with 2 over this one, before it has read a line."""
    assert REASON in (ended := here.shell("touch forbidden", OPTIND="x")).out or ended.refuses


def test_trust_is_read_where_it_was_recorded(here: Installed) -> None:
    from fairlead.config.document import Document
    from fairlead.config.survey import survey
    from fairlead.config.trust import Trust

    here.policy("")
    (here.project / "fairlead.toml").write_text(HANDS_OFF)
    here.state.mkdir(parents=True, exist_ok=True)
    Trust(here.state).pin(survey(Document(here.project / "fairlead.toml"), here.project), unpinned=True)
    for kind, value in here.hostile().items():
        hostile = dict.fromkeys(("FAIRLEAD_STATE_DIR", "XDG_STATE_HOME", "HOME", "XDG_RUNTIME_DIR"), value)
        assert REASON in here.shell("touch forbidden", **hostile).out, kind


SAYS = """
[[hook]]
name = "says"
on = "before_tool"
phase = "gate"
shell = 'echo "{\\"control\\": \\"deny\\", \\"reason\\": \\"$HOME $PATH $TMPDIR $TZ\\"}"'
"""


@pytest.mark.parametrize("daemon", [True, False])
def test_hooks_get_the_recorded_home_and_path(here: Installed, daemon: bool) -> None:
    here.write(daemon=daemon)
    here.policy(SAYS)
    path = from_environment().env["PATH"]
    ended = here.shell("ls", HOME="/evil", PATH="/evil/bin:/usr/bin:/bin", TMPDIR="/evil/tmp", TZ="UTC")
    assert f"{here.home} {path}  UTC" in ended.out


@pytest.mark.parametrize("daemon", [True, False])
def test_a_hook_that_names_a_variable_gets_the_clis(here: Installed, daemon: bool) -> None:
    here.write(daemon=daemon)
    here.policy(SAYS + 'env = ["PATH", "TMPDIR"]\n')
    ended = here.shell("ls", HOME="/evil", PATH="/their/bin:/usr/bin:/bin", TMPDIR="/their/tmp")
    assert f"{here.home} /their/bin:/usr/bin:/bin /their/tmp" in ended.out


def test_its_program_is_still_found_by_the_recorded_path(here: Installed) -> None:
    here.policy(HANDS_OFF + PATHS + 'env = ["PATH"]\n')
    outside = here.machine.program("true", f"#!/bin/sh\n: > {here.ran}\n").parent
    assert here.shell("ls", PATH=f"{outside}:/usr/bin:/bin").passes
    assert not here.ran.exists()


# --- commands and the library -------------------------------------------------------------------


def run(here: Installed, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fairlead.cli", *words], env=here.env | env, capture_output=True, text=True, timeout=60,
        cwd=here.project, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.fixture
def installed(here: Installed) -> Installed:
    ended = run(here, "install", "claude")
    assert ended.returncode == 0, ended.stderr
    return here


@pytest.mark.parametrize("name", ["FAIRLEAD_STATE_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"])
def test_a_command_uses_the_recorded_folders_and_says_what_it_ignores(installed: Installed, name: str) -> None:
    installed.shell("touch forbidden")
    installed.stop()
    for words, found in ((("hooks",), "hands-off"), (("log",), "deny")):
        ended = run(installed, *words, **{name: str(installed.evil)})
        assert found in ended.stdout, ended
        assert f"warning: {name} is {installed.evil}, but fairlead was installed with {installed.home}" in ended.stderr
    assert run(installed, "hooks").stderr == ""


@pytest.mark.parametrize("home", ["", "relative", "/nonexistent/home", "/etc/passwd", None])
def test_a_home_that_is_none_is_that_of_the_user_database(
    home: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pwd

    monkeypatch.setenv("HOME", home) if home is not None else monkeypatch.delenv("HOME", raising=False)
    assert str(home_folder()) == pwd.getpwuid(os.geteuid()).pw_dir
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home_folder() == tmp_path


def test_without_an_entry_and_a_home_the_way_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from fairlead.paths import BadPath

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_123)
    with pytest.raises(BadPath, match=r"user 4000123 has no entry in the user database; .*--home FOLDER"):
        home_folder()


def test_the_client_library_asks_the_daemon_that_was_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FAIRLEAD_STATE_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    assert default_socket() == Path("/run/user/7/fairlead/v1.sock")
    write_record(from_environment())
    assert default_socket().parent in (
        tmp_path / ".local/state/fairlead/run",
        tmp_path / ".fairlead",
    )  # if that is long


def test_a_record_that_others_may_write_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fairlead.paths import BadPath

    monkeypatch.setenv("HOME", str(tmp_path))
    write_record(from_environment())
    (file,) = tmp_path.rglob("folders.json")
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o622)
    with pytest.raises(BadPath, match="no other user may write to"):
        read_record()


def test_uninstalling_the_last_cli_forgets_the_folders(installed: Installed) -> None:
    record = installed.state / "folders.json"
    assert run(installed, "install", "codex", "--no-daemon").returncode == 0
    assert json.loads(record.read_text())["daemon"] is False
    assert run(installed, "uninstall", "claude").returncode == 0
    assert json.loads(record.read_text())["daemon"] is False
    assert run(installed, "uninstall", "codex").returncode == 0
    assert not record.exists()


# --- for all users of a machine -----------------------------------------------------------------


@pytest.fixture
def machines(here: Installed, tmp_path: Path) -> Iterator[Any]:
    """A launcher of all users, and a way to start it as one of them."""
    if os.geteuid() != 0 or not SYSTEM_PYTHON.exists():
        pytest.skip("only root can be another user")
    from fairlead.folders import Machine as ForAll

    folder = here.machine.folder / "lib"
    here.machine.folder.chmod(0o755)
    base = here.machine.folder / "homes"
    base.mkdir(mode=0o1777)
    base.chmod(0o1777)
    about = {"session_id": "s", "tool_name": "Bash", "tool_input": {"command": "touch forbidden"}}

    def start(uid: int, *, homes: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
        told = ForAll(path="/usr/bin:/bin", base=str(base) if homes else "")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(launcher, "base_interpreter", lambda: str(SYSTEM_PYTHON))
            path = launcher.write_launcher(told, folder)
        return subprocess.run(
            ["/bin/sh", path, "20", "before_tool", "claude_code", "PreToolUse"], input=json.dumps(about), text=True,
            capture_output=True, cwd="/", env={"PATH": "/usr/bin:/bin"} | env, timeout=60, user=uid, group=uid,
            extra_groups=[],
        )  # fmt: skip

    yield start
    for pid in (int(p.name) for p in Path("/proc").glob("[0-9]*") if _mentions(p, str(base))):
        os.kill(pid, 9)


def _mentions(process: Path, text: str) -> bool:
    try:
        return text.encode() in (process / "cmdline").read_bytes()
    except OSError:
        return False


def test_a_user_without_an_entry_is_refused_unless_install_named_a_folder(machines: Any, here: Installed) -> None:
    ended = machines(4_000_123, homes=False, HOME=str(here.evil))
    assert ended.returncode == 2
    assert "user 4000123 has no entry in the user database" in ended.stderr
    assert "fairlead install --scope managed --home FOLDER" in ended.stderr
    ended = machines(4_000_123, HOME=str(here.evil))
    assert "no entry" not in ended.stderr
    made = here.machine.folder / "homes/4000123/.local/state/fairlead/run"
    assert (made.is_dir(), made.stat().st_uid) == (True, 4_000_123)
    assert not here.ran.exists()


def test_the_home_of_a_user_is_that_of_the_user_database(monkeypatch: pytest.MonkeyPatch) -> None:
    import pwd

    monkeypatch.setenv("HOME", "/evil")
    given = hook_client.folders_of_user('{"path":"/bin","base":""}')
    home = pwd.getpwuid(os.geteuid()).pw_dir
    assert hook_client.value(given, "home") == home
    assert hook_client.value(given, "state") in (f"{home}/.local/state/fairlead", hook_client.value(given, "state"))
    assert json.loads(given)["env"]["PATH"] == "/bin" or (Path(home) / hook_client.RECORD).exists()


# --- settings of a project ----------------------------------------------------------------------


def test_settings_of_a_project_start_the_launcher_of_the_user_who_works_on_it(here: Installed) -> None:
    """The user's home, by the user database, is that of the test in a namespace of its own."""
    from fairlead.hosts.clis.install.commands import command_of
    from fairlead.hosts.clis.mapping import host_named

    home = os.path.expanduser("~root")
    able = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    if os.geteuid() != 0 or able.returncode or not SYSTEM_PYTHON.exists():
        pytest.skip("only root can put another home in place of one")
    here.write(SYSTEM_PYTHON)
    assert here.shell("ls").passes  # the daemon's interpreter may be below that home
    line = command_of(host_named("codex"), "PreToolUse", None, 60)
    assert str(here.home) not in line
    about = {"session_id": "s", "tool_name": "Bash", "tool_input": {"command": "touch forbidden"}}

    def start(mount: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["unshare", "-m", "/bin/sh", "-c", f"{mount}\n{line}"], input=json.dumps(about), capture_output=True,
            text=True, cwd=here.project, env={"HOME": str(here.evil), "PATH": f"{here.evil}:/usr/bin:/bin"}, timeout=60,
        )  # fmt: skip

    ended = start(f"/usr/bin/mount --bind {here.home} {home}")
    assert (ended.returncode, REASON in ended.stdout) == (0, True), ended
    empty = here.machine.folder / "empty"
    empty.mkdir()
    ended = start(f"/usr/bin/mount --bind {empty} {home}")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "its launcher is not in your home; run fairlead install" in ended.stderr
    assert not here.ran.exists()


def test_no_record_of_a_user_keeps_steps_from_the_machines_daemon(here: Installed) -> None:
    """An agent may run as that user. Here another user's daemon is down, so that the step is refused."""
    able = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    if os.geteuid() != 0 or able.returncode:
        pytest.skip("only root can put another /run in place of one")
    here.write(daemon=False)
    about = {"session_id": "s", "tool_name": "Bash", "tool_input": {"command": "ls"}}
    mount = "/usr/bin/mount -t tmpfs none /run; /usr/bin/mkdir /run/fairlead; /usr/bin/chown 4000123 /run/fairlead"
    ended = subprocess.run(
        ["unshare", "-m", "/bin/sh", "-c", f"{mount}\n{here.launcher} 20 before_tool claude_code PreToolUse"],
        input=json.dumps(about), capture_output=True, text=True, cwd=here.project, env=here.env, timeout=60,
    )  # fmt: skip
    assert ended.returncode == 2
    assert "the machine's daemon does not answer" in ended.stderr


def test_what_the_launcher_is_given_is_read_back(here: Installed) -> None:
    runs = launcher.parse_launcher(here.launcher.read_text())
    assert runs is not None
    assert json.loads(as_json(runs.installed))["home"] == str(here.home)
    assert launcher.launcher_text(*runs) == here.launcher.read_text()
