"""What is left when a process is killed: everything that was acknowledged, and a word about what may be lost."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fairlead import Hooks
from fairlead.journal import Journal
from fairlead.journal.verify import verify

Start = Callable[..., "subprocess.Popen[bytes]"]

FLUSHING = """
journal = Journal(path)
hooks = Hooks(journal=journal)
number = 0
while True:
    put = [f"{sys.argv[2]}.{number + more}" for more in range(5)]
    number += 5
    for name in put:
        hooks.dispatch_sync(step(name))
    journal.flush()
    say(*put)
"""

DURABLE = """
hooks = Hooks(journal=Journal(path, durability="full"))
number = 0
while True:
    number += 1
    hooks.dispatch_sync(step(f"{sys.argv[2]}.{number}"))
    say(f"{sys.argv[2]}.{number}")  # that is to act on it
"""


def kill_while_writing(start: Start, path: Path, code: str, times: int) -> list[str]:
    """Kill a writer at random moments, over and over. Gives what was acknowledged."""
    acknowledged: list[str] = []
    chance = random.Random()
    for life in range(times):
        process = start(code, life)
        assert process.stdout is not None
        for _ in range(chance.randint(0, 20)):
            acknowledged += process.stdout.readline().decode().split()
        try:
            process.wait(chance.random() * 0.02)
        except subprocess.TimeoutExpired:
            process.kill()
        acknowledged += process.stdout.read().decode().split()
        process.wait()
        if path.exists():
            assert verify(path).problem is None
    return acknowledged


def check_kept(acknowledged: list[str], path: Path, kept: Callable[[], list[str]], open_journal: Any) -> None:
    journal = open_journal()
    Hooks(journal=journal)
    journal.note("opened again")
    journal.flush()
    assert verify(path).problem is None
    found = kept()
    assert set(acknowledged) <= set(found)
    assert len(found) == len(set(found))


@pytest.mark.parametrize("code", [FLUSHING, DURABLE], ids=["flushed", "durable"])
def test_what_was_acknowledged_survives_kill_9(code, start: Start, path: Path, kept: Any, open_journal: Any) -> None:
    check_kept(kill_while_writing(start, path, code, 3), path, kept, open_journal)


@pytest.mark.soak
@pytest.mark.parametrize("code", [FLUSHING, DURABLE], ids=["flushed", "durable"])
def test_what_was_acknowledged_survives_fifty_kills(
    code, start: Start, path: Path, kept: Any, open_journal: Any
) -> None:
    check_kept(kill_while_writing(start, path, code, 50), path, kept, open_journal)


# --- at every line ---------------------------------------------------------------------------------

# Forks a process for each line that the journal's modules execute, and kills it right there. What is left must
# verify, also after another process has opened and written it again, and must have what was acknowledged.
EVERY_LINE = """
import json, shutil
from fairlead.journal.verify import verify
logging.disable()
hooks = Hooks()
hooks.dispatch_sync(step(0))  # all is imported

def write(journal, numbers, kill_at, out):
    left = kill_at
    def trace(frame, event, arg):
        nonlocal left
        if "/fairlead/journal/" not in frame.f_code.co_filename:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace
    threading.settrace(trace)
    hooks = Hooks(journal=journal)
    for number in numbers:
        hooks.dispatch_sync(step(number))
        journal.flush()
        os.write(out, f"{number}\\n".encode())
    journal.close()
    os.write(out, b"closed\\n")
    os._exit(0)

def forked(work, *args):
    inner, outer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            work(*args, outer)
        finally:
            os._exit(1)
    os.close(outer)
    with open(inner) as said:
        lines = said.read().split()
    _, status = os.waitpid(pid, 0)
    return lines, status

def look(acknowledged, out):
    told = {}
    if path.exists():
        try:
            told["left"] = verify(path).problem
        except Exception as error:
            told["left"] = "" if "there is no journal" in str(error) else repr(error)
    journal = Journal(path)
    hooks = Hooks(journal=journal)
    hooks.dispatch_sync(step("after"))
    try:
        journal.flush(5)
        told["again"] = verify(path).problem
        with Reader(path) as reader:
            found = [r.body["step"]["call_id"] for r in reader.records() if not r.is_note]
        told["lost"] = [number for number in acknowledged if number not in found]
        told["twice"] = [number for number in found if found.count(number) > 1]
    except Exception as error:
        told["again"] = repr(error)
    os.write(out, json.dumps({k: v for k, v in told.items() if v}).replace(" ", "_").encode())
    os._exit(0)

first, stride, again = (int(word) for word in sys.argv[2:])
shutil.rmtree(path.parent, ignore_errors=True)
at = first
while True:
    path.parent.mkdir()
    if again:  # the second writer of a journal, not the first
        forked(write, Journal(path), ["0"], 0)
    acknowledged, _ = forked(write, Journal(path), ["1", "2"], at)
    ended = "closed" in acknowledged
    told, _ = forked(look, [word for word in acknowledged if word != "closed"])
    if told != ["{}"]:
        say(at, *told)
    shutil.rmtree(path.parent)
    if ended:
        break
    at += stride
say("lines", at)
"""


def killed_at_lines(start: Start, folder: Path, first: int, stride: int, again: bool, timeout: float) -> list[str]:
    process = start(EVERY_LINE, first, stride, int(again), where=folder / "line-by-line/journal.db")
    out, err = process.communicate(timeout=timeout)
    *wrong, last = out.decode().splitlines() or [""]
    assert last.startswith("lines "), err.decode()
    return wrong


@pytest.mark.parametrize("again", [False, True], ids=["the first writer", "a later writer"])
def test_a_kill_at_any_line_leaves_a_sound_journal(again: bool, start: Start, tmp_path: Path) -> None:
    assert killed_at_lines(start, tmp_path, random.randint(1, 180), 180, again, 30) == []


@pytest.mark.soak
@pytest.mark.parametrize("again", [False, True], ids=["the first writer", "a later writer"])
def test_a_kill_at_each_line_leaves_a_sound_journal(again: bool, start: Start, tmp_path: Path) -> None:
    assert killed_at_lines(start, tmp_path, 1, 1, again, 300) == []


def test_a_kill_before_the_first_head_is_written_is_no_damage(run: Any, path: Path, open_journal: Any) -> None:
    code = """
import fairlead.journal.store as store
write_head = store.write_head
def die(path, head):
    if head.seq:
        os.kill(os.getpid(), signal.SIGKILL)
    write_head(path, head)
store.write_head = die
Hooks(journal=Journal(path, durability="full")).dispatch_sync(step(1))
"""
    assert run(code).code == -9
    open_journal().note("opened again")
    open_journal().flush()
    assert verify(path).problem is None


def test_a_kill_while_the_key_is_made_leaves_no_half_of_one(run: Any, path: Path, keep: Any, journal: Journal) -> None:
    code = """
os.fdopen = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
Hooks(journal=Journal(path, durability="full")).dispatch_sync(step(1))
"""
    assert run(code).code == -9
    keep(journal, 1)
    assert len(path.with_name("journal.db.key").read_bytes()) == 32


# --- what is said about it --------------------------------------------------------------------------

# Gathers for ever: what is dispatched stays unwritten.
GATHERING = """
import fairlead.journal.writer as writer
journal = Journal(path)
hooks = Hooks(journal=journal)
if "first" in sys.argv:
    hooks.dispatch_sync(step(0))
    journal.flush()
writer.MAX_DELAY = writer.QUIET_DELAY = 3600
hooks.dispatch_sync(step(1))
say("put")
signal.pause()
"""

IDLE = """
journal = Journal(path)
hooks = Hooks(journal=journal)
hooks.dispatch_sync(step(1))
journal.flush()
say("written")
signal.pause()
"""


def marks(path: Path) -> list[bytes]:
    found = []
    for mark in path.with_name("journal.db.writers").glob("*"):
        with suppress(FileNotFoundError):  # one that is just being replaced
            found.append(mark.read_bytes())
    return found


def killed(process: subprocess.Popen[bytes], when: Callable[[], bool]) -> bool:
    """Kill a program once it has said its word and `when` holds; False if that never came."""
    assert process.stdout is not None
    process.stdout.readline()
    until = time.monotonic() + 5
    while not (held := when()) and time.monotonic() < until:
        time.sleep(0.005)
    process.kill()
    process.wait()
    return held


@pytest.mark.parametrize("words", [(), ("first",)], ids=["its first record", "a later one"])
def test_a_writer_marks_what_it_gathers_as_unwritten(words, start: Start, path: Path) -> None:
    process = start(GATHERING, *words)
    assert killed(process, lambda: any(mark.startswith(b"1") for mark in marks(path)))


def test_a_crash_with_something_unwritten_is_noted(
    start: Start, path: Path, notes: Any, journal: Journal, keep: Any
) -> None:
    process = start(GATHERING)
    killed(process, lambda: any(mark.startswith(b"1") for mark in marks(path)))
    keep(journal, 2)
    assert [(note["note"], note["pid"]) for note in notes()] == [("crashed", process.pid)]


def test_a_crash_with_something_unwritten_is_logged(
    start: Start, path: Path, journal: Journal, keep: Any, log: Any
) -> None:
    process = start(GATHERING)
    killed(process, lambda: any(mark.startswith(b"1") for mark in marks(path)))
    keep(journal, 2)
    assert f"process {process.pid} ended without closing it" in log.text


def test_a_crash_is_told_once(start: Start, path: Path, notes: Any, open_journal: Any, keep: Any) -> None:
    killed(start(GATHERING), lambda: any(mark.startswith(b"1") for mark in marks(path)))
    for number in (2, 3):
        journal = open_journal()
        keep(journal, number)
        journal.close()
    assert len(notes()) == 1


def test_a_crash_with_nothing_unwritten_is_not_told(
    start: Start, path: Path, notes: Any, journal: Journal, keep: Any
) -> None:
    assert killed(start(IDLE), lambda: all(mark.startswith(b"0") for mark in marks(path)))
    keep(journal, 2)
    assert notes() == []


def test_a_living_writer_has_not_crashed(start: Start, path: Path, notes: Any, journal: Journal, keep: Any) -> None:
    process = start(GATHERING)
    assert process.stdout is not None
    process.stdout.readline()
    keep(journal, 2)
    assert notes() == []


def test_a_crash_is_told_though_the_journal_could_not_be_written_at_first(
    start: Start, path: Path, notes: Any, open_journal: Any, keep: Any
) -> None:
    killed(start(GATHERING, "first"), lambda: any(mark.startswith(b"1") for mark in marks(path)))
    blocked = path.with_name("journal.db.head.new")
    blocked.mkdir()  # no head can be written
    journal = open_journal()
    keep(journal, 2, flush=False)
    with pytest.raises(Exception, match="cannot be written"):
        journal.flush()
    blocked.rmdir()
    journal.flush()
    assert [note["note"] for note in notes()] == ["crashed"]


def test_verify_tells_of_a_crash(start: Start, path: Path, journal: Journal, keep: Any, cli: Any) -> None:
    process = start(GATHERING)
    killed(process, lambda: any(mark.startswith(b"1") for mark in marks(path)))
    keep(journal, 2)
    ended = cli("verify", "--json", "--journal", path)
    assert f"process {process.pid} crashed" in json.dumps(ended.json["checked"]["notes"])
