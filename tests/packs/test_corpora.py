"""`make corpora`: reads whatever corpora lie in a folder, and writes figures and never a row into the page."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from bench.corpora import BEGIN, END, digest, write_page

ROOT = Path(__file__).parents[2]
ROWS = [
    {"command": "rm -rf ~", "label": "block", "source": "own/tests", "rule": "whole-home"},
    {"command": "frobnicate --unheard-of", "label": "block", "source": "own/tests", "rule": "made-up"},
    {"command": "ls -la", "label": "pass", "source": "own/tests"},
    {"command": "git reset --hard", "label": "ordinary", "source": "own/tests"},
    {"command": "Remove-Item -Recurse C:\\", "label": "block", "source": "own/tests", "dialect": "windows"},
]


def corpora(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench.corpora", str(folder), "--skip-rivals", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "traces.jsonl").write_text('{"kind": "user", "steps": []}\n')
    return tmp_path


def test_every_corpus_of_a_folder_is_scored(folder: Path) -> None:
    results = folder / "out/results.json"
    done = corpora(folder, "--json", str(results))
    assert done.returncode == 0, done.stderr
    labels = json.loads(results.read_text())["commands"]["own"]["labels"]
    assert labels["block"]["stopped"] == 2
    assert labels["pass"]["stopped"] == 0
    assert labels["ordinary"]["stopped"] == 1
    assert "traces.jsonl" in done.stderr


def test_misses_are_told_by_class_and_no_row_is_shown(folder: Path) -> None:
    done = corpora(folder)
    assert "| own | made-up | 1 |" in done.stdout
    assert "frobnicate" not in done.stdout
    assert "git/reset-hard" in done.stdout


def test_the_page_keeps_its_own_words(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "packs.md"
    page.write_text(f"# Mine\n\n{BEGIN}\nold\n{END}\n\nafter\n")
    write_page(page, "new")
    assert page.read_text() == f"# Mine\n\n{BEGIN}\n\nnew\n\n{END}\n\nafter\n"


def test_a_folder_without_corpora_is_an_error_that_says_so(tmp_path: Path) -> None:
    done = corpora(tmp_path)
    assert done.returncode == 2
    assert "no *.jsonl" in done.stderr


def test_disputed_rows_are_digests_with_a_reason() -> None:
    disputed = json.loads((ROOT / "bench/disputed.json").read_text())
    assert all(len(reason.split()) > 4 and keys for reason, keys in disputed.items())
    assert all(len(key) == len(digest("")) for keys in disputed.values() for key in keys)
