"""Daemons: one per module where tests can share it, and one of its own for who needs that."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from machines import Daemon, Machine, a_machine, watched

from fairlead import redaction


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
