"""The page about replay does what it says: its files are written, its commands run, and they end as it says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "replay.md"
BLOCK = re.compile(r"^```(toml|sh|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_commands_on_the_page_end_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("HOME", "FAIRLEAD_STATE_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "user"))
    (tmp_path / "user").mkdir()
    out = ""
    for kind, text in BLOCK.findall(PAGE.read_text()):
        if kind == "toml":
            (tmp_path / text.split()[1]).write_text(text)
        elif kind == "text":
            for line in text.splitlines():
                assert line in out
        else:
            for line in text.splitlines():
                out = run(line, tmp_path)


def run(line: str, folder: Path) -> str:
    command, _, comment = line.partition("#")
    words = shlex.split(command)
    target = words.pop() if len(words) > 2 and words[-2] == ">" else None
    words = words[:-1] if target else words
    assert words[0] == "fairlead"
    done = subprocess.run(
        [sys.executable, "-m", "fairlead", *words[1:]], cwd=folder, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"}, timeout=300,
    )  # fmt: skip
    expected = int(comment.split()[-1]) if "ends with" in comment else 0
    assert done.returncode == expected, (line, done.stdout, done.stderr)
    if target:
        (folder / target).write_text(done.stdout)
    return done.stdout
