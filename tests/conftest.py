"""Which tests are end to end: they start daemons, kill processes and fill disks, and have a target of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
END_TO_END = (
    "server", "journal", "test_redaction_corpus.py", "test_redaction_everywhere.py", "test_switches.py",
    "test_telemetry.py",
)  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(item.path.is_relative_to(HERE / part) for part in END_TO_END):
            item.add_marker(pytest.mark.e2e)
