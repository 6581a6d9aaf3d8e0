"""A session as one file: everything in it, nothing fetched, nothing run, secrets taken out again."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256

import pytest
from test_ui_markup import Found
from ui_journal import DENIED, SECRET

from fairlead.journal.reading import Reader
from fairlead.redaction import redactor as redaction
from fairlead.redaction.redactor import Redactor
from fairlead.ui.export import export_session


@pytest.fixture
def exported(reader) -> str:
    return export_session(reader, "calls")


def test_it_has_what_stands_out_and_every_detail(exported):
    for words in ("What stands out", "git push --force origin main", DENIED, "Open a pull request.", "judges"):
        assert words in Found(exported).text


def test_it_fetches_nothing_and_leads_nowhere(exported):
    found = Found(exported)
    loading = {"script", "link", "img", "iframe", "object", "embed", "form", "base"}
    assert not loading & {tag for tag, _ in found.elements}
    for _, attributes in found.elements:
        assert not {"src", "data-src", "action", "style"} & attributes.keys()
        assert (attributes.get("href") or "#").startswith("#")
    assert "@import" not in exported
    assert "url(" not in exported


def test_its_policy_allows_its_own_style_and_nothing_else(exported):
    style = re.search(r"<style>(.*?)</style>", exported, re.DOTALL)[1]
    (policy,) = [a["content"] for tag, a in Found(exported).elements if a.get("http-equiv")]
    assert policy == f"default-src 'none'; style-src 'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'"


def test_every_link_leads_to_a_moment_that_is_there(exported):
    found = Found(exported)
    ids = {attributes.get("id") for _, attributes in found.elements}
    links = {attributes["href"][1:] for _, attributes in found.elements if attributes.get("href")}
    assert links
    assert links <= ids


def test_what_is_a_secret_today_is_taken_out_although_the_journal_has_it(reader):
    assert "Fix the failing test" in export_session(reader, "calls")
    before = redaction._current
    redaction.configure(Redactor(values=["Fix the failing test", "example.com"]))
    try:
        exported = export_session(reader, "calls")
    finally:
        redaction._current = before
    assert "Fix the failing test" not in exported
    assert "example.com" not in exported
    assert SECRET not in exported


def test_hostile_texts_stay_texts(journal):
    with Reader(journal) as reader:
        (session,) = reader.db.execute("SELECT session FROM records WHERE session LIKE 'hostile%'").fetchone()
        exported = export_session(reader, session)
    found = Found(exported)
    assert "onerror=alert(1)" in found.text
    assert not any(tag == "img" for tag, _ in found.elements)
    assert "\u202e" not in exported


def test_the_command_prints_it(fairlead, journal, exported):
    code, out, _ = fairlead("ui", "--journal", str(journal), "--export", "calls")
    assert code == 0
    assert out.startswith("<!doctype html>")
    assert "git push --force origin main" in out


def test_a_session_that_is_not_there_is_said(fairlead, journal):
    code, out, error = fairlead("ui", "--journal", str(journal), "--export", "none")
    assert (code, out) == (1, "")
    assert "no session 'none'" in error


def test_what_two_policies_decide_differently_is_one_file_too(fairlead, journal, home, monkeypatch):
    for name, rule in (("old", "false"), ("new", "true")):
        text = (
            f'[[hook]]\nname = "all"\non = "before_tool"\nmatch = {{ kind = "shell" }}\nrule = "{rule}"\ndeny = "No."\n'
        )
        (home / f"{name}.toml").write_text(text)
    monkeypatch.chdir(home)
    code, page, _ = fairlead("ui", "--journal", str(journal), "--export", "old.toml..new.toml")
    assert code == 0
    assert page.startswith("<!doctype html>")
    assert "tightened" in page
    assert "<script" not in page
