"""The demo, end to end: every part of it happens, for real, in a few seconds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from time import monotonic

import pytest

PARTS = {
    "a secret is redacted from a tool result": "API_KEY=[redacted: api key]",
    "a dangerous command is denied": "DENY by no-force-push",
    "the model recovers": "Then without force.",
    "an argument is rewritten": "mv -f build .trash/",
    "an approval is given": "ALLOW by commits_are_reviewed (approval)",
    "a failing test keeps the turn alive": "EXTEND by tests-first",
    "until it passes": "add() adds again, and the test passes.",
    "a hook crashes and falls closed": "DENY by closed_folders (failure)",
    "a background task finishes after the turn": "a background task finished after the turn",
    "events are counted": "events     ",
    "hooks are counted": "hooks run  ",
    "decisions are counted": "decisions  ",
    "the share of the hooks is told": "of which hooks",
    "it says how to look at what happened": "fairlead ui --journal ",
}


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def shown(state: Path) -> str:
    started = monotonic()
    ran = subprocess.run(
        [sys.executable, "-m", "fairlead.cli", "demo"], capture_output=True, text=True, timeout=60,
        env=os.environ | {"FAIRLEAD_STATE_DIR": str(state)},
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")
    return f"{ran.stdout}\n{monotonic() - started}"


@pytest.mark.parametrize("part", PARTS)
def test_the_demo_shows_that(part: str, shown: str):
    assert PARTS[part] in shown


def test_the_demo_ends_after_the_turn(shown: str):
    assert shown.index("a background task finished") > shown.index(" answer   ")
