"""The thin client: one file that needs nothing, starts in no time, and agrees with every part that it talks to."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead import paths as places
from fairlead.folders import as_json, from_environment, record_file
from fairlead.hosts.clis import client as hook_client
from fairlead.hosts.clis import launcher
from fairlead.hosts.clis.handler import read_payload
from fairlead.hosts.clis.mapping import ALL, EXPERIMENTAL, GUESTS, HookRequest, host_named
from fairlead.lifecycle import GUARDING
from fairlead.paths import Folders
from fairlead.runners import environment as hook_environment
from fairlead.server import daemon, service

FILE = Path(hook_client.__file__)


def alone(code: str) -> str:
    """Run code as the launcher runs the client: with no site and nothing of ours in sight."""
    start = f"import sys; sys.path.insert(0, {str(FILE.parent)!r}); {code}"
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", start], capture_output=True, text=True, check=True, timeout=20, env={}
    )
    return ended.stdout


def test_it_passes_on_the_variables_that_hooks_may_see() -> None:
    assert hook_client.PASSED == hook_environment.CALLERS


def test_it_speaks_the_daemons_protocol() -> None:
    assert hook_client.PROTOCOL == service.PROTOCOL


def test_it_looks_for_the_machines_daemon_where_that_is() -> None:
    assert str(places.MANAGED) == hook_client.MANAGED


def test_it_knows_how_long_a_sockets_path_may_be() -> None:
    assert hook_client.SOCKET_LIMIT == places.SOCKET_LIMIT


def test_it_gives_a_daemon_as_long_to_start_as_others_do() -> None:
    assert hook_client.START == daemon.START_TIMEOUT


def test_it_takes_no_more_than_the_daemon_would() -> None:
    from fairlead.server.limits import BODY

    assert hook_client.LIMIT <= BODY


def test_it_reads_the_folders_as_they_are_recorded() -> None:
    given = Folders(
        home='/a "home" of \n ä', config='/c","state":"/x', state="/s\\", run="/r\udcff", env={"PATH": '"run":"/x"'}
    )
    for name in ("home", "config", "state", "run"):
        assert hook_client.value(as_json(given), name) == getattr(given, name)


def test_it_finds_the_record_where_install_writes_it(tmp_path: Path) -> None:
    folders = Folders(home=str(tmp_path), config="/c", state="/s", run="/r")
    assert record_file(folders) == tmp_path / hook_client.RECORD


@pytest.mark.parametrize("name", [*ALL, *EXPERIMENTAL, *GUESTS])
def test_it_tells_what_a_host_reads_from_its_variables(name: str) -> None:
    host = host_named(name)
    read = {host.project, host.entry_point, host.attended_variable} - {None}
    assert read <= set(hook_client.CLI_VARIABLES)


def test_what_it_sends_is_what_the_daemon_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    import msgspec

    said = '{"session_id": "a \\"quoted\\" \\ud83d\\ude00 one", "tool_name": "\u0000\u001f\u2028é"}'
    monkeypatch.setattr(hook_client, "stdin", said.encode)
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", '/a b/"c"\n')
    monkeypatch.setattr(hook_client, "variables", lambda: {"CLAUDE_PROJECT_DIR": '/a b/"c"\n', "LC_ALL": "C"})
    asked = msgspec.json.decode(hook_client.RequestBody("claude_code", "PreToolUse", 30.0).encode(), type=HookRequest)
    assert (asked.host, asked.event, asked.payload) == ("claude_code", "PreToolUse", said)
    assert asked.cli_env == {"CLAUDE_PROJECT_DIR": '/a b/"c"\n'}
    assert asked.env == dict.fromkeys(hook_client.PASSED) | {"LC_ALL": "C"}


def test_the_daemons_deadline_lies_within_its_own_and_that_within_the_hosts() -> None:
    import msgspec

    hook_client_stdin, hook_client.stdin = hook_client.stdin, lambda: b"{}"
    try:
        asked = msgspec.json.decode(hook_client.RequestBody("codex", "Stop", 30.0).encode(), type=HookRequest)
    finally:
        hook_client.stdin = hook_client_stdin
    assert asked.deadline is not None
    assert asked.deadline < 30.0 - hook_client.SPARE < 30.0


# --- how little it is ---------------------------------------------------------------------------


def test_it_needs_no_other_file_of_ours() -> None:
    imported = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(FILE.read_text()))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or "."])
    }
    assert imported <= sys.stdlib_module_names


def test_it_imports_next_to_nothing_at_start() -> None:
    before, after = (set(alone(f"{code}print(*sys.modules)").split()) for code in ("", "import client; "))
    assert after - before <= {"client", "_signal", "_socket", "_json", "posix"}
    assert not after & {"json", "socket", "re", "os", "typing", "ssl", "subprocess"}


def test_it_is_compiled_once_and_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FAIRLEAD_STATE_DIR", str(tmp_path / "state"))
    launcher.write_launcher(from_environment())
    assert list((tmp_path / "state/bin/__pycache__").glob("fairlead_hook.*.pyc"))


def test_it_is_written_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FAIRLEAD_STATE_DIR", str(tmp_path / "state"))
    written = launcher.write_launcher(from_environment()).with_name("fairlead_hook.py")
    assert written.read_bytes() == FILE.read_bytes()


@pytest.mark.parametrize(
    ("told", "after", "found"),
    [
        ('{"variables":["A","B\\u00e9"]}', '"variables":[', ["A", "Bé"]),
        ('{"variables":[]}', '"variables":[', []),
        ('{"message":"no: \\"x\\""}', '"message":', ['no: "x"']),
        ("{}", '"message":', []),
        ('{"message":7}', '"message":', []),
    ],
)
def test_it_reads_just_enough_json(told: str, after: str, found: list[str]) -> None:
    assert hook_client.strings(told, after) == found


@pytest.mark.parametrize("name", [*ALL, *EXPERIMENTAL])
def test_the_launcher_guards_every_moment_that_would_let_something_through(name: str) -> None:
    """What is about to happen is refused where no daemon can be asked; and only a host that can refuse reads that."""
    host = host_named(name)
    can_deny = {moment.event for moment in host.events.values() if "deny" in moment.can and moment.installed}
    assert {event for event in can_deny if event.startswith("before_")} - {"before_model"} <= set(GUARDING)
    assert read_payload(host, next(iter(host.events)), "{}") == {}
