"""Several processes write one journal at once: the chain holds, nothing is lost, nothing is there twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fairlead.journal.verify import verify

WRITER = """
import time
journal = Journal(path, durability=sys.argv[4])
hooks = Hooks(journal=journal)
until = time.monotonic() + float(sys.argv[3])
number = 0
while time.monotonic() < until:
    hooks.dispatch_sync(step(f"{sys.argv[2]}.{number}"))
    number += 1
journal.close()
say(number)
"""


def write_at_once(start: Any, seconds: float) -> list[str]:
    """Four writers, two of them durable. Gives what they have dispatched."""
    writers = [start(WRITER, who, seconds, "full" if who % 2 else "normal") for who in range(4)]
    ended = [writer.communicate() for writer in writers]
    assert [said for _, said in ended] == [b""] * 4
    counts = [int(counted) for counted, _ in ended]
    return [f"{who}.{number}" for who, count in enumerate(counts) for number in range(count)]


def check_all_kept(dispatched: list[str], path: Path, kept: Any) -> None:
    assert verify(path).problem is None
    wanted, found = Counter(dispatched), Counter(kept())
    assert not wanted - found, "lost"
    assert not found - wanted, "there twice"


def test_four_processes_may_write_at_once(start: Any, path: Path, kept: Any) -> None:
    check_all_kept(write_at_once(start, 0.3), path, kept)


@pytest.mark.soak
def test_four_processes_may_write_for_a_minute(start: Any, path: Path, kept: Any) -> None:
    check_all_kept(write_at_once(start, 60), path, kept)


def test_four_processes_may_begin_a_journal_at_once(start: Any, path: Path, kept: Any) -> None:
    code = """
sys.stdin.read(1)  # all of them wait here
journal = Journal(path, durability="full")
Hooks(journal=journal).dispatch_sync(step(sys.argv[2]))
"""
    writers = [start(code, who) for who in range(4)]
    for writer in writers:
        writer.stdin.write(b"x")
        writer.stdin.flush()
    assert [writer.wait() for writer in writers] == [0] * 4
    check_all_kept(["0", "1", "2", "3"], path, kept)


def test_two_may_prune_at_once(start: Any, path: Path, kept: Any, sql: Any) -> None:
    code = """
import fairlead.journal.writer as writer
writer.PRUNE_INTERVAL = 0.0
journal = Journal(path, durability="full", max_size=100_000)
hooks = Hooks(journal=journal)
for number in range(60):
    hooks.dispatch_sync(BeforeTool(tool="bash", args={"command": "x" * 400}, call_id=f"{sys.argv[2]}.{number}"))
journal.close()
"""
    writers = [start(code, who) for who in range(2)]
    said = [writer.communicate()[1].decode() for writer in writers]
    assert said == ["", ""]
    assert verify(path).problem is None
    found = kept()
    assert len(found) == len(set(found))
