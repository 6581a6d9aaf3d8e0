"""Fixtures: a daemon that the tests of a module share, and a machine for a test that needs its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from machines import Daemon, Machine, a_machine, watched

from fairlead.client import Client
from fairlead.redaction import redactor as redaction


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A machine for one test."""
    with a_machine() as made:
        yield made


@pytest.fixture(scope="module")
def shared() -> Iterator[Machine]:
    """A machine that the tests of a module share."""
    with a_machine() as made:
        yield made


@pytest.fixture(scope="module")
def daemon(shared: Machine) -> Daemon:
    """The daemon of the shared machine."""
    return shared.start()


@pytest.fixture
def client(daemon: Daemon) -> Iterator[Client]:
    """A client of the shared daemon."""
    with daemon.client() as client:
        yield client


@pytest.fixture
def session(request: pytest.FixtureRequest) -> str:
    """The id of a session that only this test uses."""
    return str(request.node.name)


@pytest.fixture
def unwatched() -> None:
    """Skips where an agent runs these tests, and so everything that they start."""
    if watched():
        pytest.skip("an agent runs these tests, and it cannot do what only a person may")


@pytest.fixture(autouse=True)
def own_redactor() -> Iterator[None]:
    """A daemon within this process sets what is redacted; the next test has its own."""
    before = redaction._current
    yield
    redaction._current = before
