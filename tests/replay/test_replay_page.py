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
    isolate(tmp_path, monkeypatch)
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


def isolate(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "FAIRLEAD_STATE_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(folder / "user"))
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "ana")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "ana@example.com")
    (folder / "user").mkdir()


def test_the_workflow_fails_a_loosening_and_writes_its_comment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    isolate(tmp_path, monkeypatch)
    page = PAGE.read_text()
    policies = [text for kind, text in BLOCK.findall(page) if text.startswith(("# old.toml", "# new.toml"))]
    run("fairlead demo --journal demo.db", tmp_path)
    run("fairlead export --journal demo.db > traffic.jsonl", tmp_path)
    (tmp_path / "accepted.toml").write_text("")
    run("git init --quiet --initial-branch main", tmp_path)
    for policy in policies[:2]:
        (tmp_path / "fairlead.toml").write_text(policy)
        run("git add fairlead.toml", tmp_path)
        run("git commit --quiet -m policy", tmp_path)
    run("git update-ref refs/remotes/origin/main HEAD~1", tmp_path)
    found = re.search(r"run: >\n +(fairlead diff.*?)\n +- name", page, re.DOTALL)
    assert found is not None
    line = " ".join(found[1].split()).replace("$GITHUB_BASE_REF", "main")
    out = run(f"{line}  # ends with 2", tmp_path)
    assert out.startswith("::error file=fairlead.toml,line=2,")
    assert (tmp_path / "comment.md").read_text().startswith("<!-- fairlead -->")
    assert (tmp_path / "diff.xml").read_text().startswith("<?xml")


def run(line: str, folder: Path) -> str:
    command, _, comment = line.partition("#")
    words = shlex.split(command)
    target = words.pop() if len(words) > 2 and words[-2] == ">" else None
    words = words[:-1] if target else words
    assert words[0] in ("fairlead", "git", "cp")
    program = [sys.executable, "-m", "fairlead"] if words[0] == "fairlead" else [words[0]]
    done = subprocess.run(
        [*program, *words[1:]], cwd=folder, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"}, timeout=300,
    )  # fmt: skip
    expected = int(comment.split()[-1]) if "ends with" in comment else 0
    assert done.returncode == expected, (line, done.stdout, done.stderr)
    if target:
        (folder / target).write_text(done.stdout)
    return done.stdout
