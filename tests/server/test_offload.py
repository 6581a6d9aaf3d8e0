"""A process that works for another: it gives what the function gives, whatever happens to it in between."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from machines import Machine, alive, wait_until

from fairlead.journal.entry import make_entry
from fairlead.redaction.redactor import Redactor
from fairlead.server import offload as offload_module
from fairlead.server.offload import Offload, OffloadFailed


@pytest.fixture
def offload() -> Iterator[Offload]:
    made = Offload()
    yield made
    made.close()


def test_it_gives_what_the_function_gives(offload: Offload) -> None:
    assert offload.call(sorted, [3, 1, 2]) == [1, 2, 3]


def test_it_is_another_process_and_the_same_one_each_time(offload: Offload) -> None:
    pids = {offload.call(os.getpid) for _ in range(3)}
    assert (len(pids), os.getpid() in pids) == (1, False)


def test_it_raises_what_the_function_raises(offload: Offload) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        offload.call(int, "x")


@pytest.mark.parametrize(
    ("fn", "args"),
    [(os._exit, (3,)), (os.kill, (0, signal.SIGKILL)), (max, (1, lambda: 1)), (eval, ("lambda: 1",))],
    ids=["it ends", "it is killed", "what it takes cannot be pickled", "what it gives cannot be pickled"],
)
def test_a_call_that_fails_says_so_and_the_next_one_works(offload: Offload, fn: Any, args: Any) -> None:
    with pytest.raises(OffloadFailed):
        offload.call(fn, *args)
    assert offload.call(abs, -1) == 1


def test_a_call_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch, offload: Offload) -> None:
    """Though it is in the middle of a search, which nothing else interrupts."""
    monkeypatch.setattr(offload_module, "TIMEOUT", 0.3)
    with pytest.raises(OffloadFailed, match="no result"):
        offload.call(re.match, "(a+)+$", "a" * 50 + "b")
    assert offload.call(abs, -1) == 1


def test_one_that_has_been_idle_is_replaced(monkeypatch: pytest.MonkeyPatch, offload: Offload) -> None:
    monkeypatch.setattr(offload_module, "IDLE", 0.2)
    first = offload.call(os.getpid)
    known = offload._child
    assert known is not None
    wait_until(lambda: known.poll() is not None)
    assert offload.call(os.getpid) != first


def test_many_threads_may_share_one(offload: Offload) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda number: offload.call(abs, -number), range(200))) == list(range(200))


WAITS = """
import os, sys
from fairlead.server.offload import Offload
offload = Offload()
print(offload.call(os.getpid), flush=True)
sys.stdin.read()
"""


def test_it_ends_with_who_started_it(machine: Machine) -> None:
    """However that ends."""
    process = machine.spawn(WAITS, stdin=subprocess.PIPE)
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    assert alive(pid)
    process.kill()
    wait_until(lambda: not alive(pid))


def test_closing_ends_it(offload: Offload) -> None:
    pid = offload.call(os.getpid)
    offload.close()
    assert not alive(pid)


def test_what_it_prints_is_no_result(offload: Offload) -> None:
    assert offload.call(print, "hello") is None
    assert offload.call(abs, -1) == 1


ARGS = {
    "password": "hunter2hunter2", "text": "ghp_0123456789abcdefghijklmnopqrstuvwxyz", "half": "\ud800",
    "mine": "MY-0001", "listed": "a-listed-value", "long": "x" * 100_000,
}  # fmt: skip
FACTS = {"v": 1, "id": "x", "at": 0, "kind": "decision", "step": {"event": "before_tool", "args": ARGS}}


def test_an_entry_is_the_same_wherever_it_is_made(offload: Offload) -> None:
    """With the same key, names, patterns and values."""
    redactor = Redactor(names=["mine"], patterns=[r"MY-\d+"], values=["a-listed-value"], key=b"key")
    here, there = make_entry(FACTS, redactor), make_entry(FACTS, redactor, None, offload.call)
    assert here == there
    assert len(here.columns) == len(there.columns)
    assert b"hunter2" not in there.body
