"""The page of replay: two policies on recorded steps, or the policy in force against the record."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

RULE = '[[hook]]\nname = "no-push"\non = "before_tool"\nphase = "gate"\nrule = "target.command.contains(\'push\')"\n'


@pytest.fixture
def policies(tmp_path: Path) -> dict[str, Path]:
    """Two policies of the user: one denies pushes, one asks about them."""
    found = {name: tmp_path / f"{name}.toml" for name in ("deny", "ask")}
    for name, file in found.items():
        file.write_text(f'{RULE}{name} = "no pushes here"\n')
    return found


def address(**asked: Any) -> str:
    return f"/replay?{urlencode(asked)}"


def test_a_loosening_is_told_from_a_tightening(tab, policies: dict[str, Path]):
    loosened = tab.get(address(old=policies["deny"], new=policies["ask"])).text
    tightened = tab.get(address(old=policies["ask"], new=policies["deny"])).text
    assert ("loosened" in loosened, "tightened" in loosened) == (True, False)
    assert ("loosened" in tightened, "tightened" in tightened) == (False, True)


def test_a_class_links_to_its_smallest_example(tab, policies: dict[str, Path]):
    shown = tab.get(address(old=policies["deny"], new=policies["ask"])).text
    link = shown.partition('href="/decision?id=')[2].partition('"')[0]
    assert "git push" in tab.get(f"/decision?id={link}").text


def test_equal_policies_have_no_difference(tab, policies: dict[str, Path]):
    assert "No difference" in tab.get(address(old=policies["deny"], new=policies["deny"])).text


def test_a_policy_that_is_not_there_is_an_error_that_names_it(tab):
    answer = tab.get(address(old="no-such-revision", new="."))
    assert answer.status_code == 400
    assert "no-such-revision" in answer.text


def test_the_policy_in_force_is_compared_with_the_record(tab):
    shown = tab.get(address(record="1")).text
    assert "are as recorded" in shown


def test_the_address_says_all_that_was_asked(tab, policies: dict[str, Path]):
    shown = tab.get(address(old=policies["deny"], new=policies["ask"], last=50)).text
    assert f'value="{policies["deny"]}"' in shown
    assert 'value="50"' in shown


def test_the_number_of_records_is_bounded(tab):
    assert 'value="50000"' in tab.get(address(last=10**12)).text
