"""More than can be done at once is refused at once, and the caller goes by its failure policy."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from machines import Answer, Daemon, Machine

from fairlead.samples import step


@pytest.fixture(scope="module")
def full(shared: Machine) -> Iterator[Daemon]:
    """A daemon that takes two dispatches at once, and has two."""
    here, go = shared.folder / "here", shared.folder / "go"
    for fifo in (here, go):
        os.mkfifo(fifo)
    shared.program("slow", f"#!/bin/sh\necho here > {here}\nread line < {go}\n")
    shared.user(f'[[hook]]\nname = "slow"\non = "before_tool"\ncommand = ["{shared.outside}/slow"]\ntimeout = false\n')
    daemon = shared.start_with("from fairlead.server import service\nservice.IN_FLIGHT = 2")

    def dispatch() -> None:
        with daemon.client() as client:
            client.dispatch(step("before_tool"))

    slow = [threading.Thread(target=dispatch) for _ in range(2)]
    for one in slow:
        one.start()
        here.read_text()
    yield daemon
    released = os.open(go, os.O_RDWR)  # so that what is written stays until both have read it
    os.write(released, b"go\n" * len(slow))
    for one in slow:
        one.join()
    os.close(released)


def asked(daemon: Daemon) -> Answer:
    return daemon.ask("POST", "/v1/dispatch", {"step": {"event": "turn_start"}})


def test_one_too_many_is_told_to_come_back(full: Daemon) -> None:
    answer = asked(full)
    assert (answer.status, answer.body["error"], answer.headers.get("retry-after")) == (503, "overloaded", "1")


def test_what_is_no_dispatch_is_still_answered(full: Daemon) -> None:
    assert full.health()["in_flight"] == 2


@pytest.mark.parametrize(("policy", "expected"), [("closed", "stop"), ("open", "proceed"), ("abort", "abort")])
def test_a_client_that_is_one_too_many_goes_by_its_policy(full: Daemon, policy: Any, expected: str) -> None:
    with full.client() as client:
        decision = client.dispatch(step("turn_start"), on_failure=policy)
    assert (decision.control, len(decision.failures)) == (expected, 1)
