"""The agent CLIs that are here, each with a driver of its own."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from drivers import WANTED, Driver, a_driver, binary
from fetch import REQUIRED


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "cli" in metafunc.fixturenames:
        metafunc.parametrize("cli", WANTED)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short name: a socket's path is not to be longer than a hundred characters."""
    path = Path(tempfile.mkdtemp(prefix="driver-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def driver(cli: str, folder: Path) -> Iterator[Driver]:
    """A driver of a CLI; skipped where it is not installed, unless it must be."""
    if not binary(cli).exists():
        message = f"{cli} is not installed: `make e2e-clis` fetches it"
        if cli in REQUIRED and os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    with a_driver(cli, folder) as made:
        yield made
