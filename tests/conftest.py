"""Which tests have targets of their own: end to end (they start programs, kill them, fill disks), and sweeps."""

from __future__ import annotations

import signal
from functools import cache
from pathlib import Path

import pytest

from fairlead.redaction import redactor as redaction

try:
    from hypothesis import settings
except ImportError:  # the environments of the frameworks have none
    pass
else:  # A busy machine makes any example slow, and that says nothing about the behaviour.
    settings.register_profile("fairlead", deadline=None)
    settings.load_profile("fairlead")

HERE = Path(__file__).parent
END_TO_END = (
    "cli/test_cli_coverage.py",
    "cli/test_cli_diff_untrusted.py",
    "cli/test_cli_edges.py",
    "cli/test_cli_fuzz.py",
    "cli/test_cli_import.py",
    "cli/test_cli_install.py",
    "cli/test_cli_run.py",
    "cli/test_cli_terminal.py",
    "cli/test_cli_trust.py",
    "config/test_fuzz.py",
    "config/test_trust_in_force.py",
    "engine/test_concurrency.py",
    "hosts/clis/test_acknowledging.py",
    "hosts/clis/test_answers.py",
    "hosts/clis/test_doctor.py",
    "hosts/clis/test_doctor_in_use.py",
    "hosts/clis/test_environment.py",
    "hosts/clis/test_installing.py",
    "hosts/clis/test_jsonc.py",
    "hosts/clis/test_launcher.py",
    "hosts/clis/test_racing.py",
    "hosts/clis/test_upgrade.py",
    "hosts/loop/test_loop_cancellation.py",
    "journal",
    "redaction/test_redaction_corpus.py",
    "redaction/test_redaction_everywhere.py",
    "replay/test_replay_page.py",
    "runners/test_alike.py",
    "runners/test_worker.py",
    "runners/test_worker_fuzz.py",
    "server",
    "telemetry",
    "test_enforcement.py",
    "test_typing.py",
)
SWEEPS = (
    "cli/test_cli_test_as_daemon.py",
    "config/test_guarded_files.py",
    "config/test_trust_attacks.py",
    "redaction/test_judged.py",
    "redaction/test_redaction_named.py",
    "redaction/test_redaction_shell.py",
    "redaction/test_redaction_vendors.py",
    "runners/test_rule_cost.py",
)
"""They try every combination, and take their time."""
LARGE = (
    "test_a_megabyte_of_something_like_a_secret_takes_no_minutes",
    "test_twice_the_text_takes_no_more_than",
    "test_a_survey_ends_within_its_budget_whatever_commands_say",
)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in a background job, whose children would ignore it, too
    signal.signal(signal.SIGINT, signal.default_int_handler)


@cache
def mark_of(path: Path) -> str | None:
    """The marker of a whole module."""
    for mark, parts in (("e2e", END_TO_END), ("sweep", SWEEPS), ("browser", ("ui/browser",))):
        if any(path.is_relative_to(HERE / part) for part in parts):
            return mark
    return None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What `-m` leaves out as a whole is not imported, unless it was named: that takes longer than many a test."""
    mark = mark_of(collection_path)
    return (
        True if mark and f"not {mark}" in config.option.markexpr and str(collection_path) not in config.args else None
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if mark := "e2e" if item.name.startswith(LARGE) else mark_of(item.path):
            item.add_marker(mark)


def pytest_runtest_teardown() -> None:
    """What one test taught the redactor of the process, the next must not see."""
    redaction.configure(None)
