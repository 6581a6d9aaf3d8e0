"""Every format holds whatever the journal holds, and publishes no name and no secret."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_scenes import SECRET, shell

from fairlead.replay.formats import ANNOTATIONS, COMMENT, FORMATS, MARKER, ROWS, github, html, junit, markdown, sarif
from fairlead.replay.published import PublishedReport, Publisher, ReportRow, of_diff
from fairlead.replay.records import Body, Recorded
from fairlead.replay.report import NAMES, ChangeClass, DiffReport, Example, HookPlace, ReportedAnswer, Spread, Totals

HOSTILE = (
    "git push `x` @everyone <script>alert(1)</script> [a](http://b) ::error::no\n::set-output name=x::y | \x1b[31m"
)
TEXTS = st.text(max_size=60) | st.just(HOSTILE)


def report_of(text: str = "git push --force", *, accepted: str | None = None, count: int = 1) -> DiffReport:
    spread = Spread(count=3, sessions=2, users=["anastasia"], folders=["/srv/secret-project"], first=1e9, last=1.1e9)
    example = Example("r-1", "/home/anastasia/journal.db", "s-1", 1e9, "before_tool", "bash", text)
    changes = [
        ChangeClass(
            ReportedAnswer("deny", f"rule-{number}"), ReportedAnswer("proceed"), "before_tool", f"bash: {text}",
            "loosened", spread, example, accepted,
        )
        for number in range(count)
    ]  # fmt: skip
    return DiffReport("main", "HEAD", Totals(steps=9, same=6, changed=3), changes,
                      places={"rule-0": HookPlace("fairlead.toml", 7)})  # fmt: skip


def findings_of(row: str, example: str) -> PublishedReport:
    rows = [ReportRow(group="loosened", title=row, level="error", example=example, details=[row])]
    return PublishedReport(command="fairlead diff", title=row, summary=example, rows=rows, notes=[row])


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)


@given(TEXTS, TEXTS)
def test_no_text_breaks_a_format(row: str, example: str):
    publisher = Publisher((), ())
    found = findings_of(publisher.text(row), publisher.text(example))
    plain = findings_of("a", "b" if found.rows[0].example else "")
    ET.fromstring(junit(found))
    assert len(json.loads(sarif(found))["runs"][0]["results"]) == 1
    assert all(line.startswith(("::error ", "::notice ")) for line in github(found).split("\n"))
    assert len(github(found).split("\n")) == len(github(plain).split("\n"))
    page, usual = _Tags(), _Tags()
    page.feed(html(found))
    usual.feed(html(plain))
    assert page.tags == usual.tags


@given(st.text(alphabet="`a @<|[]()*_ ", max_size=30))
def test_a_text_in_a_comment_is_code_and_nothing_else(text: str):
    from fairlead.replay.formats import _code

    shown = _code(text)
    if not text.strip():
        assert shown == ""
        return
    fence = shown[: len(shown) - len(shown.lstrip("`"))]
    inner = shown[len(fence) : -len(fence)]
    assert fence not in inner
    assert inner.strip(" ") == text.strip(" ")


@pytest.mark.parametrize("name", FORMATS)
def test_names_and_secrets_are_not_published(name: str):
    text = f"curl -H 'X: {SECRET}' /home/anastasia/x /srv/secret-project/y; id anastasia"
    shown = FORMATS[name](of_diff(report_of(text)))
    for private in (SECRET, "anastasia", "secret-project", "journal.db"):
        assert private not in shown
    assert "1 user" in shown
    named = FORMATS[name](of_diff(report_of(text), who=True))
    assert "anastasia" in named
    assert SECRET not in named


def test_the_names_of_an_example_are_not_published_either():
    report = report_of("ls /srv/hidden; id bartholomew")
    report.changes[0].example.user, report.changes[0].example.folders = "bartholomew", ["/srv/hidden"]
    for shown in FORMATS.values():
        assert "bartholomew" not in shown(of_diff(report))
        assert "hidden" not in shown(of_diff(report))


def test_more_users_than_are_kept_by_name_are_said_to_be_more():
    def of(users: range) -> Spread:
        spread = Spread()
        for number in users:
            step = shell("ls", user_id=f"user-{number}", session_id=f"s-{number}", cwd="/repo")
            spread.add(Recorded(Body(id="r", at=0, step=step)))
        return spread

    def counts(spread: Spread) -> list[str]:
        return [count for count, _ in spread.name_counts()]

    assert counts(of(range(NAMES))) == ["100 users", "1 folder"]
    assert counts(of(range(NAMES + 1))) == ["more than 100 users", "1 folder"]
    first, second = of(range(60)), of(range(50, 120))
    first.merge(second)
    assert counts(first) == ["more than 100 users", "1 folder"]


def test_details_and_who_accepted_are_no_markup():
    report = report_of(accepted="ana\n\n@everyone [x](http://y): yes")
    report.changes[0].example.record = "r-1 @everyone [x](http://y)"
    lines = markdown(of_diff(report)).split("\n")
    shown = [line for line in lines if "@everyone" in line]
    assert len(shown) == 1  # no text begins a line of its own
    assert "@everyone" not in re.sub("`[^`]*`", "", shown[0])


def test_what_is_accepted_has_passed_and_what_is_not_failed_on_is_skipped():
    def case(report: DiffReport, *fail_on: Any) -> list[str]:
        (found,) = ET.fromstring(junit(of_diff(report, fail_on))).iter("testcase")
        return [child.tag for child in found]

    assert case(report_of()) == ["failure"]
    assert case(report_of(), "tightened") == ["skipped"]
    assert case(report_of(accepted="ana, until 2999-01-01: we want it")) == []
    (result,) = json.loads(sarif(of_diff(report_of(accepted="ana: yes"))))["runs"][0]["results"]
    assert (result["level"], result["suppressions"][0]["justification"]) == ("note", "ana: yes")


def test_a_finding_is_shown_at_the_line_of_its_hook():
    assert "::error file=fairlead.toml,line=7," in github(of_diff(report_of()))
    (result,) = json.loads(sarif(of_diff(report_of())))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 7}


def test_a_comment_and_annotations_stay_within_what_github_takes():
    report = report_of("x" * 5_000, count=2_000)
    comment = markdown(of_diff(report))
    assert comment.startswith(MARKER)
    assert f"and {2_000 - ROWS[0]} more" in comment
    assert len(comment) < 65_536
    assert github(of_diff(report)).count("::error") == ANNOTATIONS
    rows = [ReportRow(group=f"g{n % 7}", title="t" * 300, level="error", example="e" * 300) for n in range(2_000)]
    rows.sort(key=lambda row: row.group)
    assert len(markdown(PublishedReport(command="c", title="t", summary="s", rows=rows))) <= COMMENT


def test_the_same_finding_has_the_same_fingerprint_in_the_next_run():
    one, other = (json.loads(sarif(of_diff(report_of())))["runs"][0]["results"][0] for _ in range(2))
    assert one["partialFingerprints"] == other["partialFingerprints"]
