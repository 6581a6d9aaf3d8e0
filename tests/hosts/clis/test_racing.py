"""Two hundred steps of several agent CLIs at once: one daemon, and an answer for each, whatever becomes of it."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from launched import HANDS_OFF, REASON, Launched, LauncherResult, assert_well_behaved
from machines import Machine, a_machine
from played import payload_of

from fairlead.hosts.clis.mapping import ALL, host_named
from fairlead.journal.reading import Reader

MANY = 200
SECONDS = 60.0
EXPECTED = [bool(number // len(ALL) % 2) for number in range(MANY)]
"""Which of them are denied."""


@pytest.fixture
def machine() -> Iterator[Machine]:
    with a_machine() as made:
        yield made


class Counted(Launched):
    """A machine on which each start of fairlead is counted."""

    def write(self, interpreter: Path | None = None) -> Path:
        launcher = super().write(interpreter)
        python, starts = self.machine.program("python", ""), self.machine.folder / "starts"
        python.write_text(f'#!/bin/sh\necho "$5" >>{starts}\nexec {sys.executable} "$@"\n')
        launcher.write_text(launcher.read_text().replace(f" {sys.executable} ", f" {python} "))
        assert str(python) in launcher.read_text()
        return launcher

    @property
    def starts(self) -> Counter[str]:
        starts = self.machine.folder / "starts"
        return Counter(starts.read_text().split() if starts.exists() else [])


def moment(host: str, number: int) -> tuple[str, bytes]:
    """A command of a host that is about to run. Every other one must not."""
    event = next(name for name, moment in host_named(host).events.items() if moment.event == "before_tool")
    command = f"touch {'forbidden' if number % 2 else 'allowed'}-{number}"
    return event, json.dumps(payload_of(host, event)).replace("echo hi", command).encode()


def all_at_once(here: Launched, **env: str) -> list[LauncherResult]:
    """All of them, each from a process of its own that waits for its answer."""
    ended: list[Any] = [None] * MANY
    ready = threading.Barrier(MANY)

    def one(number: int) -> None:
        host = ALL[number % len(ALL)]
        event, payload = moment(host, number // len(ALL))
        ready.wait(60)
        began = monotonic()
        process = here.start(host, event, SECONDS, **env)
        out, err = process.communicate(payload, timeout=120)
        ended[number] = LauncherResult(process.returncode, out.decode(), err.decode(), monotonic() - began)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(MANY)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one_ended in ended:
        assert_well_behaved(one_ended)
    return ended


def denied(ended: LauncherResult) -> bool:
    return REASON in ended.out


def test_of_many_that_find_no_daemon_one_starts_it_and_all_are_answered(machine: Machine) -> None:
    here = Counted(machine)
    here.policy(HANDS_OFF)
    ended = all_at_once(here)
    assert [denied(one) for one in ended] == EXPECTED
    assert all(one.code == 0 for one in ended)
    assert len(here.daemons) == 1
    assert here.starts == {"fairlead.server": 1}


def test_each_of_many_is_in_the_journal_once(machine: Machine) -> None:
    here = Launched(machine)
    here.policy(HANDS_OFF)
    all_at_once(here)
    here.stop()
    with Reader(machine.state / "journal.db") as reader:
        found = Counter(
            record.body["step"]["host"] for record in reader.records() if record.body["step"]["event"] == "before_tool"
        )
    assert found == dict.fromkeys(ALL, MANY // len(ALL))


def test_a_daemon_that_is_there_answers_many_at_once(machine: Machine) -> None:
    here = Counted(machine)
    here.policy(HANDS_OFF)
    here.shell("ls")
    ended = all_at_once(here)
    assert [denied(one) for one in ended] == EXPECTED
    assert here.starts == {"fairlead.server": 1}


def test_a_daemon_that_cannot_start_is_not_tried_by_each_of_many(machine: Machine) -> None:
    here = Counted(machine)
    here.policy("[[hook")
    ended = all_at_once(here)
    assert all(one.refuses for one in ended)
    assert all(one.took < SECONDS for one in ended)
    assert here.daemons == []
    assert here.starts["fairlead.server"] <= 5  # one, and another each time that a while has passed


def test_many_steps_of_a_daemon_that_is_killed_are_each_answered(machine: Machine) -> None:
    """The callers that were asking are refused, and those that come later get another daemon."""
    here = Launched(machine)
    here.policy(HANDS_OFF)
    here.shell("ls")
    over = threading.Event()

    def kill() -> None:
        while not over.wait(1.5):
            for pid in here.daemons:
                os.kill(pid, signal.SIGKILL)

    killing = threading.Thread(target=kill)
    killing.start()
    try:
        ended = all_at_once(here)
    finally:
        over.set()
        killing.join()
    wrong = [one for one, expected in zip(ended, EXPECTED, strict=True) if not one.refuses and denied(one) != expected]
    assert wrong == []
