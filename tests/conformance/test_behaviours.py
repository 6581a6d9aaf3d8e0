"""docs/seeds.md counts the behaviours of the seeds as the tests pin them."""

import pytest
from behaviours import PAGE, SEEDS, behaviour, collect, missing, tables, written


def test_every_number_of_every_seed_is_pinned():
    assert missing(collect()) == []


def test_the_page_has_the_tables_that_the_tests_give():
    page = PAGE.read_text()
    assert tables(collect()) in page, "run python tests/conformance/behaviours.py"
    assert written(page, collect()) == page


def test_a_gap_in_the_numbers_is_found():
    @behaviour("004-1", lines="1", kind="same", about="one")
    @behaviour("004-3", lines="3-4, 7", kind="different", about="three")
    def pins():
        pass

    first, third = pins.behaviours
    assert (first.number, third.lines, third.kind) == ("004-1", "3-4, 7", "different")
    others = [f"{seed}-1" for seed in SEEDS if seed != "004"]
    assert missing(pins.behaviours) == [*others, "004-2"]


@pytest.mark.parametrize(
    "wrong", [{"number": "5-1"}, {"number": "004-0"}, {"lines": "12 to 14"}, {"kind": "similar"}], ids=str
)
def test_a_mark_that_says_nothing_is_refused(wrong):
    with pytest.raises(ValueError):
        behaviour(**({"number": "004-1", "lines": "1", "kind": "same", "about": "it"} | wrong))
