"""Commands: real programs, every way to end, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from time import monotonic

import pytest

from fairlead import Hooks, UnknownName
from fairlead.errors import FairleadError
from fairlead.runners.command import Command
from fairlead.runners.environment import MissingProgram, hook_environment, resolve_program
from fairlead.testing import step


def hooked(command: Command, event: str = "before_tool", **options) -> Hooks:
    hooks = Hooks(record=True)
    hooks.add(command, on=event, name="command", **options)
    return hooks


async def decide(line: str, event: str = "before_tool", *, command: dict | None = None, **options):
    return await hooked(Command.shell(line, **(command or {})), event, **options).dispatch(step(event))


# --- what a command says -----------------------------------------------------------------------


async def test_exit_0_with_nothing_on_stdout_is_no_opinion():
    decision = await decide("cat > /dev/null")
    assert (decision.control, decision.runs[0].outcome) == ("proceed", "none")


async def test_exit_0_with_json_is_a_verdict():
    decision = await decide("""echo '{"control": "deny", "reason": "no"}'""")
    assert (decision.control, decision.reason, decision.cause) == ("deny", "no", "policy")


async def test_the_envelope_is_on_stdin():
    decision = await decide("""printf '{"reason": "%s", "control": "deny"}' "$(grep -o 'call-1')" """)
    assert decision.reason == "call-1"


async def test_exit_2_is_a_veto_with_stderr_as_reason():
    decision = await decide("echo 'not here' >&2; exit 2")
    assert (decision.control, decision.reason, decision.cause) == ("deny", "not here", "policy")


async def test_a_veto_by_exit_code_is_recorded_as_such():
    (run,) = (await decide("echo no >&2; exit 2")).runs
    assert run.details == {"exit": 2, "stderr": "no", "veto by exit code": True}


@pytest.mark.parametrize(
    ("event", "control"), [("before_turn_end", "extend"), ("before_compact", "skip"), ("turn_start", "stop")]
)
async def test_veto_means_what_the_event_says(event: str, control: str):
    assert (await decide("exit 2", event)).control == control


async def test_a_veto_where_there_is_nothing_to_veto_is_malformed():
    assert (await decide("exit 2", "turn_end")).failures[0].kind == "malformed"


@pytest.mark.parametrize("line", ["exit 1", "exit 3", "exit 127", "kill -9 $$", "kill -SEGV $$"])
async def test_any_other_ending_is_a_failure(line: str):
    decision = await decide(line)
    assert (decision.control, decision.cause, decision.failures[0].kind) == ("deny", "failure", "error")


async def test_a_failure_keeps_the_exit_code_and_stderr():
    (run,) = (await decide("echo oops >&2; exit 7")).runs
    assert run.details == {"exit": 7, "stderr": "oops"}


@pytest.mark.parametrize(
    "said", ["nonsense", "[]", "7", '{"control": "dney"}', '{"controll": "deny"}', '{"control": "deny"']
)
async def test_output_that_is_no_verdict_is_malformed(said: str):
    decision = await decide(f"echo '{said}'")
    assert (decision.control, decision.failures[0].kind) == ("deny", "malformed")


async def test_exit_codes_can_be_mapped():
    decision = await decide("exit 1", command={"exits": {1: "veto"}})
    assert (decision.control, decision.cause) == ("deny", "policy")


async def test_output_can_be_context():
    decision = await decide(
        "echo '2 tests failed'; exit 1", "before_turn_end", command={"exits": {1: "veto"}, "output": "context"}
    )
    assert (decision.control, list(decision.context)) == ("extend", ["2 tests failed"])


async def test_output_can_be_ignored():
    decision = await decide("echo nonsense", command={"output": "ignore"})
    assert (decision.control, decision.failures) == ("proceed", ())


def test_a_bad_mapping_or_output_is_refused_when_the_command_is_made():
    with pytest.raises(UnknownName, match="did you mean 'deny'"):
        Command(["true"], exits={1: "denyy"})
    with pytest.raises(UnknownName, match="did you mean 'context'"):
        Command(["true"], output="contex")  # type: ignore[arg-type]


# --- what cannot be run --------------------------------------------------------------------------


def test_a_missing_program_is_found_when_the_command_is_made():
    with pytest.raises(MissingProgram, match="'no-such-program'"):
        Command(["no-such-program"])


def test_a_missing_script_is_found_when_the_command_is_made():
    """Python itself would end with exit 2, which would look like a veto."""
    with pytest.raises(MissingProgram, match=r"'policy\.py'"):
        Command([sys.executable, "policy.py"])


async def test_a_script_that_goes_away_later_is_a_failure_not_a_veto(tmp_path: Path):
    script = tmp_path / "policy.py"
    script.write_text("")
    hooks = hooked(Command([sys.executable, "policy.py"], environment=hook_environment(tmp_path)))
    script.unlink()
    decision = await hooks.dispatch(step("before_tool"))
    assert (decision.cause, "is gone" in decision.reason) == ("failure", True)


def _running(pid: str) -> bool:
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())  # empty for one that is dead but not yet buried
    except (FileNotFoundError, ProcessLookupError):
        return False


async def gone(*pids: str) -> None:
    """Wait until none of these processes runs any more, five seconds at most."""
    until = monotonic() + 5
    while any(map(_running, pids)):
        assert monotonic() < until, "still running"
        await asyncio.sleep(0.01)


# --- never a deadlock, nothing left behind ---------------------------------------------------------

BIG = step("before_tool", args={"command": "x" * 10_000_000})


@pytest.mark.parametrize("line", ["exec true", "sleep 0.05", "head -c 1 > /dev/null"])
async def test_a_child_that_does_not_read_a_10_mb_envelope_does_not_block(line: str):
    decision = await asyncio.wait_for(hooked(Command.shell(line)).dispatch(BIG), 5)
    assert decision.control == "proceed"


async def test_a_child_that_reads_and_writes_a_lot_at_once_does_not_block():
    hooks = hooked(Command.shell("head -c 900000", output="ignore"))
    assert (await asyncio.wait_for(hooks.dispatch(BIG), 5)).failures == ()


@pytest.mark.parametrize("stream", ["", ">&2"])
async def test_more_output_than_allowed_is_a_clear_error(stream: str):
    decision = await asyncio.wait_for(hooked(Command.shell(f"head -c 10000000 /dev/zero {stream}")).dispatch(BIG), 5)
    assert "more than 1 MiB" in decision.failures[0].error


async def test_a_time_out_kills_the_whole_process_group(tmp_path: Path):
    pids = tmp_path / "pids"
    line = f"sleep 60 & echo $! > {pids}; echo $$ >> {pids}; wait"
    decision = await decide(line, timeout=0.3)
    assert decision.failures[0].kind == "timeout"
    await gone(*pids.read_text().split())


async def test_a_background_grandchild_that_holds_the_pipes_does_not_hold_the_hook():
    started = monotonic()
    decision = await decide("""sleep 30 & echo '{"control": "deny"}'""")
    assert decision.denied
    assert monotonic() - started < 5


async def test_cancelling_the_caller_kills_the_command(tmp_path: Path):
    started = tmp_path / "started"
    hooks = hooked(Command.shell(f"echo $$ > {started}; sleep 60"))
    task = asyncio.create_task(hooks.dispatch(step("before_tool")))
    while not started.exists() or not started.read_text():
        await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])
    await gone(started.read_text().strip())
    assert task.cancelled()


@pytest.mark.parametrize("line", ["true", "exit 2", "head -c 2000000 /dev/zero"])
async def test_commands_leave_no_descriptors_behind(line: str):
    hooks = hooked(Command.shell(line))
    await hooks.dispatch(step("before_tool"))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await hooks.dispatch(step("before_tool"))
    assert len(os.listdir("/proc/self/fd")) <= before  # fewer, if what an earlier test has left is closed now


def test_a_command_runs_in_a_sync_dispatch_too():
    assert hooked(Command.shell("exit 2")).dispatch_sync(step("before_tool")).denied


# --- environment --------------------------------------------------------------------------------


async def test_a_command_is_told_about_the_step(monkeypatch):
    told = "$FAIRLEAD_EVENT $FAIRLEAD_SESSION_ID $FAIRLEAD_TOOL $FAIRLEAD_CWD"
    line = f"""printf '{{"control": "deny", "reason": "%s"}}' "{told}" """
    decision = await hooked(Command.shell(line)).dispatch(step("before_tool", session_id="s1", cwd="/repo"))
    assert decision.reason == "before_tool s1 bash /repo"


@pytest.mark.parametrize(
    "name",
    [
        "LD_PRELOAD",
        "DYLD_INSERT_LIBRARIES",
        "PYTHONPATH",
        "NODE_OPTIONS",
        "BASH_ENV",
        "GIT_DIR",
        "AWS_SECRET_ACCESS_KEY",
    ],
)
def test_what_could_steer_or_leak_does_not_pass_unless_it_is_named(name: str):
    source = {name: "x", "PATH": "/bin"}
    assert name not in hook_environment(source=source).env
    assert hook_environment(source=source, env=(name,)).env[name] == "x"


def test_python_never_looks_for_modules_beside_the_script_unless_told_to():
    assert hook_environment(source={}).env["PYTHONSAFEPATH"] == "1"


def test_a_program_is_never_found_in_the_workspace(tmp_path: Path):
    planted = tmp_path / "git"
    planted.write_text("#!/bin/sh\nexit 0\n")
    planted.chmod(0o755)
    around = hook_environment(tmp_path, source={"PATH": f"{tmp_path}:/bin:/usr/bin"})
    with pytest.raises(FairleadError, match="workspace"):
        resolve_program("git", around, workspace=tmp_path)


def test_relative_entries_of_path_are_not_searched(tmp_path: Path, monkeypatch):
    planted = tmp_path / "planted-program"
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingProgram):
        resolve_program("planted-program", hook_environment(tmp_path, source={"PATH": ".::"}))
