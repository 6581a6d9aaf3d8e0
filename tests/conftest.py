"""Which tests are end to end: they start programs, kill them, fill disks or take their time, and have a target."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from fairlead import redaction

HERE = Path(__file__).parent
END_TO_END = (
    "server", "journal", "test_redaction_corpus.py", "test_redaction_everywhere.py", "test_switches.py",
    "test_telemetry.py", "cli/test_cli_run.py", "cli/test_cli_terminal.py", "cli/test_cli_fuzz.py",
    "runners/test_worker_fuzz.py", "hosts/test_launcher.py", "hosts/test_racing.py", "test_doctor.py",
    "hosts/test_acknowledging.py", "hosts/test_environment.py", "hosts/test_doctor_in_use.py", "hosts/test_upgrade.py",
    "cli/test_cli_install.py", "cli/test_cli_coverage.py", "cli/test_cli_import.py", "hosts/test_installing.py",
    "hosts/test_answers.py", "hosts/test_jsonc.py", "hosts/test_loop_cancellation.py", "cli/test_cli_edges.py",
    "config/test_fuzz.py", "runners/test_worker.py", "test_concurrency.py",
)  # fmt: skip
LARGE = ("test_a_megabyte_of_something_like_a_secret_takes_no_minutes", "test_twice_the_text_takes_no_more_than")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in a background job, whose children would ignore it, too
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.name.startswith(LARGE) or any(item.path.is_relative_to(HERE / part) for part in END_TO_END):
            item.add_marker(pytest.mark.e2e)


def pytest_runtest_teardown() -> None:
    """What one test taught the redactor of the process, the next must not see."""
    redaction.configure(None)
