"""The agent CLIs that are here, each with a seat of its own."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from fetch import REQUIRED
from seats import WANTED, Seat, a_seat, binary


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "cli" in metafunc.fixturenames:
        metafunc.parametrize("cli", WANTED)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short name: a socket's path is not to be longer than a hundred characters."""
    path = Path(tempfile.mkdtemp(prefix="seat-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def seat(cli: str, folder: Path) -> Iterator[Seat]:
    """A seat of a CLI; skipped where it is not installed, unless it must be."""
    if not binary(cli).exists():
        message = f"{cli} is not installed: `make e2e-clis` fetches it"
        if cli in REQUIRED and os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    with a_seat(cli, folder) as made:
        yield made
