"""Nothing is lost when a process ends by itself, by an exception or by a signal; forks write under their own name."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead.journal import Journal
from fairlead.journal.verify import verify
from fairlead.redaction.redactor import Redactor

Kept = Callable[..., list[str]]

TEN = [str(number) for number in range(10)]
DISPATCH_TEN = """
journal = Journal(path)
hooks = Hooks(journal=journal)
for number in range(10):
    hooks.dispatch_sync(step(number))
"""


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("", 0),
        ("raise RuntimeError('over')", 1),
        ("sys.exit(3)", 3),
        ("journal.close()", 0),
        ("journal.close(); journal.close()", 0),
        ("os.kill(os.getpid(), signal.SIGTERM); signal.pause()", -signal.SIGTERM),
        ("os.kill(os.getpid(), signal.SIGINT); signal.pause()", -signal.SIGINT),
    ],
    ids=["its end", "an exception", "sys.exit", "close", "close twice", "SIGTERM", "SIGINT"],
)
def test_nothing_is_lost_at(ending: str, code: int, run: Any, kept: Kept) -> None:
    assert run(DISPATCH_TEN + ending).code == code
    assert kept() == TEN


@pytest.mark.parametrize("ending", ["journal.close()", ""], ids=["after a close", "without one"])
def test_the_end_of_a_program_is_silent(ending: str, run: Any) -> None:
    assert run(DISPATCH_TEN + ending).err == ""


def test_nothing_is_lost_at_sigterm_in_a_running_loop(run: Any, kept: Kept) -> None:
    code = """
async def main():
    hooks = Hooks(journal=Journal(path))
    for number in range(10):
        await hooks.dispatch(step(number))
    asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)
    await asyncio.Event().wait()
asyncio.run(main())
"""
    assert run(code).code == -signal.SIGTERM
    assert kept() == TEN


def test_nothing_is_lost_at_sigterm_where_another_thread_dispatched(run: Any, kept: Kept) -> None:
    code = """
hooks = Hooks(journal=Journal(path))
def work():
    for number in range(10):
        hooks.dispatch_sync(step(number))
thread = threading.Thread(target=work)
thread.start()
thread.join()
os.kill(os.getpid(), signal.SIGTERM)
signal.pause()
"""
    assert run(code).code == -signal.SIGTERM
    assert kept() == TEN


def test_a_program_s_own_handler_of_sigterm_is_left_alone(run: Any, kept: Kept) -> None:
    code = """
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
"""
    assert run(code + DISPATCH_TEN + "os.kill(os.getpid(), signal.SIGTERM); signal.pause()").code == 7


def test_a_program_s_own_handler_loses_nothing(run: Any, kept: Kept) -> None:
    code = """
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
"""
    run(code + DISPATCH_TEN + "os.kill(os.getpid(), signal.SIGTERM); signal.pause()")
    assert kept() == TEN


@pytest.mark.soak
@pytest.mark.parametrize("durability", ["normal", "full"])
def test_sigterm_at_any_moment_ends_the_process(durability: str, start: Any, path: Path, kept: Kept) -> None:
    code = """
hooks = Hooks(journal=Journal(path, durability=sys.argv[2]))
number = 0
while True:
    number += 1
    hooks.dispatch_sync(step(f"{sys.argv[3]}.{number}"))
    say(f"{sys.argv[3]}.{number}")
"""
    acted: list[str] = []
    for life in range(60):
        process = start(code, durability, life)
        for _ in range(random.randint(1, 60)):
            acted += process.stdout.readline().decode().split()
        process.terminate()
        acted += process.stdout.read().decode().split()
        assert process.wait(20) == -signal.SIGTERM
    assert set(acted) <= set(kept())


# Sends itself SIGTERM at some line of a durable dispatch, whatever lock is held there.
AT_A_LINE = """
import faulthandler
hooks = Hooks(journal=Journal(path, durability="full"))
hooks.dispatch_sync(step(0))
hooks.journal.close()

def dispatch(kill_at):
    left = kill_at
    def trace(frame, event, arg):
        nonlocal left
        if event == "line":
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGTERM)
        return trace if frame.f_code.co_filename.endswith(("threading.py", "_base.py", "writer.py")) else None
    sys.settrace(trace)
    hooks.dispatch_sync(step(1))
    sys.settrace(None)
    if left > 0:  # there are no more lines
        os._exit(3)
    while True:
        signal.pause()

at, stride = int(sys.argv[2]), int(sys.argv[3])
while True:
    pid = os.fork()
    if pid == 0:
        faulthandler.register(signal.SIGALRM, chain=True)  # a process that hangs says where
        signal.alarm(10)
        dispatch(at)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code == 3:
        break
    if code != -signal.SIGTERM:
        say(at, code)
    at += stride
"""


def test_sigterm_while_a_lock_is_held_ends_the_process(run: Any) -> None:
    ended = run(AT_A_LINE, random.randint(1, 25), 25)
    assert ended.out == "", ended.err


@pytest.mark.soak
def test_sigterm_at_each_line_of_a_dispatch_ends_the_process(start: Any) -> None:
    assert start(AT_A_LINE, 1, 1).communicate(timeout=600)[0] == b""


# --- forks ---------------------------------------------------------------------------------------

FORKED = (
    DISPATCH_TEN
    + """
pid = os.fork()
for number in range(10):
    hooks.dispatch_sync(step(f"{'child' if pid == 0 else 'parent'}{number}"))
journal.flush()
say("child" if pid == 0 else "parent", journal.writer)
if pid:
    os.waitpid(pid, 0)
"""
)


def test_nothing_is_lost_or_written_twice_with_a_fork(run: Any, kept: Kept) -> None:
    assert run(FORKED).code == 0
    assert sorted(kept()) == sorted([*TEN, *(f"{who}{number}" for who in ("child", "parent") for number in range(10))])


def test_a_child_writes_under_its_own_name(run: Any, records: Any) -> None:
    names = dict(line.split() for line in run(FORKED).lines)
    by = {record.body["step"]["call_id"]: record.id.rpartition("-")[0] for record in records()}
    assert (by["child1"], by["parent1"]) == (names["child"], names["parent"])
    assert by["child1"] != by["parent1"]


def test_a_journal_that_was_forked_verifies(run: Any, path: Path) -> None:
    run(FORKED)
    assert verify(path).problem is None


def test_forks_in_the_middle_of_writing_lose_nothing(run: Any, kept: Kept) -> None:
    code = """
journal = Journal(path, durability="full")
hooks = Hooks(journal=journal)
hooks.dispatch_sync(step("first"))  # all that it takes is imported
going = True
count = 0
def work():
    global count
    while going:
        hooks.dispatch_sync(step(f"parent{count}"))
        count += 1
thread = threading.Thread(target=work)
thread.start()
children = []
for number in range(12):
    pid = os.fork()
    if pid == 0:
        hooks.dispatch_sync(step(f"child{number}"))
        journal.close()
        os._exit(0)
    children.append(pid)
codes = [os.waitpid(pid, 0)[1] for pid in children]
going = False
thread.join()
say(count, *codes)
"""
    ended = run(code)
    count, *codes = ended.out.split()
    assert codes == ["0"] * 12, ended.err
    expected = [
        "first",
        *(f"child{number}" for number in range(12)),
        *(f"parent{number}" for number in range(int(count))),
    ]
    assert sorted(kept()) == sorted(expected)


def test_a_crash_of_the_parent_is_noticed_though_a_child_lives(
    start: Any, path: Path, notes: Any, keep: Any, journal: Journal
) -> None:
    code = """
import fairlead.journal.writer as writer
journal = Journal(path, durability="full")
hooks = Hooks(journal=journal)
hooks.dispatch_sync(step(1))
journal._mark.set(True)  # as in the middle of a batch
if os.fork() == 0:
    say("forked")
    signal.pause()
os.kill(os.getpid(), signal.SIGKILL)
"""
    process = start(code)
    process.stdout.readline()
    process.wait()
    keep(journal, 2)
    assert [note["note"] for note in notes()] == ["crashed"]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_nothing_is_lost_with_multiprocessing(method: str, tmp_path: Path, path: Path, kept: Kept) -> None:
    program = tmp_path / "program.py"
    program.write_text("""
import multiprocessing, sys
from fairlead import Hooks
from fairlead.journal import Journal
from fairlead.lifecycle import BeforeTool

def work(path, hooks, number):
    hooks = hooks or Hooks(journal=Journal(path))
    for more in range(3):
        hooks.dispatch_sync(BeforeTool(tool="bash", call_id=f"{number}.{more}"))

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[2])
    hooks = Hooks(journal=Journal(sys.argv[1])) if sys.argv[2] == "fork" else None
    work(sys.argv[1], hooks, 0)
    children = [context.Process(target=work, args=(sys.argv[1], hooks, number)) for number in (1, 2)]
    for child in children: child.start()
    for child in children: child.join()
""")
    subprocess.run([sys.executable, str(program), str(path), method], check=True, timeout=20)
    assert sorted(kept()) == [f"{number}.{more}" for number in range(3) for more in range(3)]


# --- closing ---------------------------------------------------------------------------------------


def test_what_is_kept_after_a_close_is_written(journal: Journal, keep: Any, kept: Kept) -> None:
    hooks = keep(journal, 1)
    journal.close()
    keep(journal, 2, hooks=hooks)
    assert kept() == ["1", "2"]


def test_a_closed_journal_lets_go_of_its_files(run: Any) -> None:
    code = (
        DISPATCH_TEN
        + """
journal.close()
links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
say(*(os.readlink(link) for link in links if os.path.islink(link) and "journal.db" in os.readlink(link)))
"""
    )
    assert run(code).out == "\n"


def test_closing_twice_does_not_open_it_again(journal: Journal, keep: Any, path: Path) -> None:
    keep(journal, 1)
    journal.close()
    shutil.rmtree(path.parent)
    journal.close()
    assert not path.parent.exists()


def test_a_journal_that_kept_nothing_makes_no_file(journal: Journal, path: Path) -> None:
    journal.flush()
    journal.close()
    assert not path.exists()


def test_it_can_be_used_in_a_with(open_journal: Any, keep: Any, kept: Kept) -> None:
    with open_journal() as journal:
        keep(journal, 1, flush=False)
    assert kept() == ["1"]


def test_two_journals_of_one_process_may_share_a_file(open_journal: Any, keep: Any, kept: Kept, path: Path) -> None:
    one, other = open_journal(), open_journal()
    for number in range(20):
        keep(one if number % 2 else other, number, flush=number % 5 == 0)
    one.close()
    other.close()
    assert sorted(kept(), key=int) == [str(number) for number in range(20)]


def test_closing_while_others_dispatch_leaves_none_waiting(run: Any, kept: Kept) -> None:
    code = """
journal = Journal(path, durability="full")
hooks = Hooks(journal=journal)
def work(who):
    for number in range(60):
        hooks.dispatch_sync(step(f"{who}.{number}"))
threads = [threading.Thread(target=work, args=(who,), daemon=True) for who in range(2)]
for thread in threads: thread.start()
while any(thread.is_alive() for thread in threads):
    journal.close(1)
say("done")
"""
    assert run(code).out == "done\n"
    assert len(kept()) == 120


def test_two_threads_may_fork_at_once(run: Any, kept: Kept) -> None:
    code = """
hooks = Hooks(journal=Journal(path))
hooks.dispatch_sync(step("first"))

def fork():
    for number in range(40):
        hooks.dispatch_sync(step(f"{threading.get_ident()}.{number}"))
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)

threads = [threading.Thread(target=fork) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
    assert run(code).code == 0
    assert len(kept()) == 1 + 3 * 40


def test_the_end_waits_as_long_as_something_is_written(open_journal: Any, keep: Any, kept: Kept) -> None:
    class Slow(Redactor):
        def record(self, value: Any, path: str = "") -> Any:
            time.sleep(0.002)
            return super().record(value, path)

    journal = open_journal(redactor=Slow())
    keep(journal, *range(600))
    journal.close(timeout=0.4)  # of which it needs more than one
    assert len(kept()) == 600
