"""The page of the policy: files, trust, mistakes, packs, and what runs when."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

RULE = '[[hook]]\nname = "no-push"\non = "before_tool"\nmatch = { kind = "shell" }\nrule = "true"\ndeny = "no"\n'


@pytest.fixture
def user_file(home: Path) -> Path:
    file = home / "config/fairlead/fairlead.toml"
    file.parent.mkdir(parents=True)
    return file


def test_each_event_lists_its_hooks(tab, user_file: Path):
    user_file.write_text(RULE)
    shown = tab.get("/policy").text
    assert "no-push" in shown
    assert "before_tool" in shown
    assert "after_model" not in shown


def test_packs_are_listed_with_what_they_are_about(tab, user_file: Path):
    user_file.write_text('packs = ["git"]\n[pack.git]\nlevel = "strict"\n')
    shown = tab.get("/policy").text
    assert "fairlead.git" in shown
    assert "level strict" in shown


def test_a_mistake_is_shown_with_its_line(tab, user_file: Path):
    user_file.write_text(RULE.replace("rule", "roole"))
    shown = tab.get("/policy").text
    assert "fairlead.toml:1" in shown
    assert "roole" in shown


def test_a_project_that_nobody_trusted_is_not_in_force(tab, tmp_path: Path):
    (tmp_path / "project").mkdir()
    (tmp_path / "project/fairlead.toml").write_text(RULE)
    shown = tab.get(f"/policy?folder={quote(str(tmp_path / 'project'))}").text
    assert "not trusted" in shown
    assert "fairlead trust" in shown


def test_a_folder_that_is_not_there_is_an_error_that_names_it(tab):
    answer = tab.get("/policy?folder=/no/such/folder")
    assert answer.status_code == 400
    assert "/no/such/folder" in answer.text


def test_without_a_file_it_says_how_to_write_one(tab, tmp_path: Path):
    assert "fairlead init" in tab.get(f"/policy?folder={quote(str(tmp_path))}").text
