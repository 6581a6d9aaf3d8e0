"""The page of hooks: what each did at the newest records."""

from __future__ import annotations

from pathlib import Path

from ui_journal import DENIED

from fairlead.journal.reading import Reader
from fairlead.ui.pages.hooks import WINDOWS, hooks_of


def test_a_hook_has_its_runs_and_denials(reader: Reader):
    row = next(row for row in hooks_of(reader, 1_000) if row.stats.hook == DENIED)
    assert (row.stats.runs, row.stats.denials) == (8, 1)


def test_hooks_that_refused_or_failed_come_first(reader: Reader):
    troubled = [row.stats.denials + row.stats.failures for row in hooks_of(reader, 1_000)]
    assert troubled == sorted(troubled, reverse=True)
    assert troubled[0] > 0


def test_the_newest_record_at_which_a_hook_spoke_is_named(reader: Reader):
    last_verdict = next(row.last_verdict for row in hooks_of(reader, 1_000) if row.stats.hook == DENIED)
    assert last_verdict is not None
    assert reader.record(last_verdict.record).body["step"]["args"] == {"command": "git push --force origin main"}


def test_the_verdicts_of_a_hook_are_counted(reader: Reader):
    last_verdict = next(row.last_verdict for row in hooks_of(reader, 1_000) if row.stats.hook == "trash")
    assert last_verdict is not None
    assert last_verdict.verdicts == 1


def test_a_hook_that_only_watches_never_spoke(reader: Reader):
    assert next(row.last_verdict for row in hooks_of(reader, 1_000) if row.stats.hook == "audit") is None


def test_only_the_newest_records_count(reader: Reader):
    runs = {row.stats.hook: row.stats.runs for row in hooks_of(reader, 3)}
    assert runs["audit"] == 3


def test_a_hook_has_the_line_of_its_file(tab, home: Path):
    file = home / "config/fairlead/fairlead.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f'[[hook]]\nname = "{DENIED}"\non = "before_tool"\nrule = "true"\ndeny = "no"\n')
    assert f"{file}:1" in tab.get("/hooks").text


def test_a_window_is_never_larger_than_the_largest(tab):
    assert tab.get("/hooks?last=999999999").status_code == 200
    assert f"last={WINDOWS[-1]}" in tab.get("/hooks").text
