"""Workers: one process, many steps, and what becomes of them when it dies, hangs or babbles."""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import sys
from pathlib import Path

import msgspec
import pytest

from fairlead import Hooks
from fairlead.engine import tracebacks
from fairlead.runners.environment import MissingProgram
from fairlead.runners.worker import Worker
from fairlead.testing import step

PYTHON = """
import os, time
from fairlead import change, deny, inject
from fairlead.worker import Worker

worker = Worker()

@worker.on.before_tool
async def judge(step):
    command = step.target.command
    if command.startswith("echo "):
        return deny(command[5:])
    if command == "pid":
        return deny(str(os.getpid()))
    if command == "crash":
        os._exit(3)
    if command == "raise":
        raise ValueError("boom")
    if command == "print":
        print("noise")
    if command == "hang":
        time.sleep(60)
    if command == "change":
        return change(command="changed", context="why")

worker.run()
"""

DOCS = (Path(__file__).parents[2] / "docs" / "runners.md").read_text()


def documented(language: str) -> str:
    """The worker that the docs show in this language."""
    match = re.search(rf"^```{language}\n(.*?)^```", DOCS, re.MULTILINE | re.DOTALL)
    assert match is not None
    return match[1]


def bash(command: str):
    return step("before_tool", args={"command": command})


def worker(tmp_path: Path, source: str = PYTHON, program: str = sys.executable, **options) -> Worker:
    script = tmp_path / "worker"
    script.write_text(source)
    return Worker([program, str(script)], **options)


def hooked(runner: Worker, **options) -> Hooks:
    hooks = Hooks(record=True)
    hooks.add(runner, on="before_tool", name="worker", **options)
    return hooks


async def test_a_worker_answers_with_verdicts(tmp_path: Path):
    async with hooked(worker(tmp_path)) as hooks:
        quiet, loud = await hooks.dispatch(bash("ls")), await hooks.dispatch(bash("echo no"))
    assert (quiet.control, quiet.runs[0].outcome) == ("proceed", "none")
    assert (loud.control, loud.reason, loud.cause) == ("deny", "no", "policy")


async def test_a_workers_changes_and_context_arrive(tmp_path: Path):
    async with hooked(worker(tmp_path)) as hooks:
        decision = await hooks.dispatch(bash("change"))
    assert (decision.step.target.command, list(decision.context)) == ("changed", ["why"])


async def test_one_process_answers_many_steps_at_once(tmp_path: Path):
    async with hooked(worker(tmp_path)) as hooks:
        pids = {d.reason for d in await asyncio.gather(*(hooks.dispatch(bash("pid")) for _ in range(50)))}
        decisions = await asyncio.gather(*(hooks.dispatch(bash(f"echo {i}")) for i in range(200)))
    assert len(pids) == 1
    assert [d.reason for d in decisions] == [str(i) for i in range(200)]


async def test_a_crash_fails_the_pending_steps_and_the_next_gets_a_new_process(tmp_path: Path):
    async with hooked(worker(tmp_path)) as hooks:
        before = (await hooks.dispatch(bash("pid"))).reason
        crashed = await hooks.dispatch(bash("crash"))
        after = await hooks.dispatch(bash("pid"))
    assert (crashed.cause, "the worker died" in crashed.reason) == ("failure", True)
    assert (after.cause, after.reason != before) == ("policy", True)


async def test_an_error_in_a_workers_hook_is_a_failure_that_names_it(tmp_path: Path):
    async with hooked(worker(tmp_path)) as hooks:
        decision = await hooks.dispatch(bash("raise"))
    assert (decision.cause, "'judge'" in decision.reason, "boom" in decision.reason) == ("failure", True, True)


async def test_what_a_python_worker_prints_goes_to_stderr(tmp_path: Path):
    async with hooked(worker(tmp_path)) as hooks:
        assert (await hooks.dispatch(bash("print"))).failures == ()


@pytest.mark.parametrize("said", ["hello", "{}", '{"id": "x"}', '{"id": 999, "verdict": null}', "[1]"])
async def test_noise_on_stdout_is_an_error_that_quotes_it(tmp_path: Path, said: str):
    async with hooked(worker(tmp_path, f"read line; echo '{said}'; cat > /dev/null", "/bin/sh")) as hooks:
        decision = await hooks.dispatch(bash("ls"))
    assert decision.failures[0].kind == "error"
    assert ("999" if "999" in said else said) in decision.failures[0].error


async def test_a_verdict_that_the_event_does_not_take_is_malformed(tmp_path: Path):
    source = """read line; echo '{"id": 1, "verdict": {"control": "extend"}}'; cat > /dev/null"""
    async with hooked(worker(tmp_path, source, "/bin/sh")) as hooks:
        assert (await hooks.dispatch(bash("ls"))).failures[0].kind == "malformed"


async def test_a_stuck_worker_is_killed_after_its_time_out_and_replaced(tmp_path: Path):
    async with hooked(worker(tmp_path), timeout=1.0) as hooks:
        before = (await hooks.dispatch(bash("pid"))).reason
        stuck = await hooks.dispatch(bash("hang"))
        after = await hooks.dispatch(bash("pid"))
    assert (stuck.failures[0].kind, after.reason != before) == ("timeout", True)


async def test_its_last_words_are_in_the_error(tmp_path: Path):
    async with hooked(worker(tmp_path, "read line; echo 'out of memory' >&2; exit 1", "/bin/sh")) as hooks:
        assert "out of memory" in (await hooks.dispatch(bash("ls"))).reason


async def test_closing_ends_the_process(tmp_path: Path):
    hooks = hooked(worker(tmp_path))
    pid = int((await hooks.dispatch(bash("pid"))).reason)
    await hooks.aclose()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_worker_serves_sync_dispatches(tmp_path: Path):
    hooks = hooked(worker(tmp_path))
    assert hooks.dispatch_sync(bash("echo no")).reason == "no"


def test_a_missing_program_is_found_when_the_worker_is_made():
    with pytest.raises(MissingProgram):
        Worker(["no-such-program"])


@pytest.mark.parametrize(("language", "program"), [("js", "node"), ("sh", "/bin/sh")])
async def test_the_worker_that_the_docs_show_in_another_language_works(tmp_path: Path, language: str, program: str):
    try:
        runner = worker(tmp_path, documented(language), program)
    except MissingProgram:
        pytest.skip(f"{program} is not installed")
    async with hooked(runner) as hooks:
        decisions = [await hooks.dispatch(bash(command)) for command in ("ls", "sudo ls")]
    assert [d.control for d in decisions] == ["proceed", "deny"]


async def test_ten_thousand_steps_while_the_worker_is_killed_at_random(tmp_path: Path, monkeypatch):
    """Every step ends in exactly one recorded outcome, none hangs, none gets another's verdict."""
    monkeypatch.setattr("fairlead.runners.worker.PAUSES", (0.0,) * 8)
    source = """while IFS= read -r line; do id=${line#*:}; id=${id%%,*}; c=${line#*command\\":\\"}; c=${c%%\\"*}
    printf '{"id":%s,"verdict":{"control":"deny","reason":"%s"}}\\n' "$id" "$c"; done"""
    runner = worker(tmp_path, source, "/bin/sh")
    hooks, room, kills = hooked(runner), asyncio.Semaphore(64), random.Random(7)
    doomed = set(kills.sample(range(500, 9500), 20))
    wrong: list[object] = []
    ended = 0

    async def one(i: int) -> None:
        nonlocal ended
        async with room:
            if i in doomed:
                for line in runner._lines.values():
                    if line._process is not None and not line._process.dead:
                        os.killpg(line._process._process.pid, signal.SIGKILL)
            decision = await hooks.dispatch(bash(f"c{i}"))
        ended += 1
        if decision.cause == "policy" and decision.reason != f"c{i}":
            wrong.append((i, decision.reason))
        if len(decision.runs) != 1:
            wrong.append((i, decision.runs))

    async with hooks:
        await asyncio.wait_for(asyncio.gather(*(one(i) for i in range(10_000))), 60)
    assert (ended, wrong) == (10_000, [])


@pytest.mark.parametrize("kind", ["async ", ""])
async def test_a_python_worker_that_raises_tells_its_traceback(tmp_path: Path, caplog, kind: str, monkeypatch):
    monkeypatch.setattr(tracebacks, "_logged", set())
    secret = "-".join(("Xy7", "secret", "91"))
    source = PYTHON.replace("async ", kind).replace('"boom"', f'"boom password={secret}"')
    async with hooked(worker(tmp_path, source)) as hooks:
        decisions = [await hooks.dispatch(bash("raise")) for _ in range(2)]
    (failure,) = decisions[1].failures
    assert failure.traceback is not None
    assert 'raise ValueError("boom' in failure.traceback
    assert failure.traceback.splitlines()[-1].startswith("ValueError: boom")
    assert secret not in failure.traceback
    logged = [record.message for record in caplog.records if "'worker' failed at" in record.message]
    assert [message.count("Traceback") for message in logged] == [1, 0]


@pytest.mark.parametrize("traceback", ["at judge (worker.js:7)", "", "x" * 10_000, "\n"])
async def test_a_traceback_of_another_language_is_bounded(tmp_path: Path, caplog, traceback: str, monkeypatch):
    monkeypatch.setattr(tracebacks, "_logged", set())
    answer = msgspec.json.encode({"error": "boom", "traceback": traceback}).decode()[1:].replace("%", "%%")
    source = f"""while IFS= read -r line; do id=${{line#*:}}; id=${{id%%,*}}
    printf '{{"id":%s,%s\\n' "$id" '{answer}'; done"""
    async with hooked(worker(tmp_path, source, "/bin/sh")) as hooks:
        decisions = [await hooks.dispatch(bash("ls")) for _ in range(2)]
    (failure,) = decisions[1].failures
    kept = traceback.strip()
    assert failure.traceback == ((kept if len(kept) < 4096 else f"...{kept[: 4096 - 3]}") or None)
    logged = [record.message for record in caplog.records if "'worker' failed" in record.message]
    assert [message.count("\n") for message in logged] == [int(bool(kept)), 0]


async def test_a_caller_that_gives_up_while_the_worker_starts_loses_no_process(tmp_path: Path):
    runner = worker(tmp_path)
    hooks = hooked(runner)
    task = asyncio.create_task(hooks.dispatch(bash("ls")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    pid = int((await hooks.dispatch(bash("pid"))).reason)
    await hooks.aclose()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_closing_ends_the_process_of_sync_dispatches_too(tmp_path: Path):
    hooks = hooked(worker(tmp_path))
    pid = int(hooks.dispatch_sync(bash("pid")).reason)
    asyncio.run(hooks.aclose())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
