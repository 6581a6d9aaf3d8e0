"""What every test of replay gets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from replay_scenes import OPENED


@pytest.fixture(autouse=True)
def journals_are_closed() -> Iterator[None]:
    """Closes the journals that a test has opened by `traffic_of`."""
    yield
    while OPENED:
        OPENED.pop().close()
