"""TOML texts: tables come and go, and the rest stays as it is, byte for byte."""

from __future__ import annotations

import tomllib
from time import monotonic

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.hosts.clis.install.toml_text import added, quoted, tables, without

lines = st.sampled_from([
    "", "# a remark", 'text = "x"', "list = [\n  [1],\n]", 'long = """\n[not.a.table]\n# no remark"""', "[one]",
    '["t.w" . o]', "[[many]]", "[[many]]  # again", "[one.two]", "  [in]", "n = 1\r", "[hooks.state.\"/a b:c\"]",
])  # fmt: skip


def is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


documents = st.lists(lines, max_size=8).map(lambda found: "".join(f"{line}\n" for line in found)).filter(is_toml)


@given(documents)
def test_a_table_that_was_added_goes_again_and_leaves_no_trace(text):
    new = added(added(text, "[ours.a]\nx = 1"), "[[ours.b]]\ny = '''\n[z]\n'''")
    assert tomllib.loads(new) == {**tomllib.loads(text), "ours": {"a": {"x": 1}, "b": [{"y": "[z]\n"}]}}
    assert without(new, lambda table: table.name[0] == "ours") == text


@given(documents)
def test_what_is_no_table_is_not_taken_for_one(text):
    assert all(table.name[0] not in ("not", "1") for table in tables(text))
    assert without(text, lambda table: False) == text


def test_a_text_with_many_tables_is_read_in_no_time():
    text = "".join(f'[projects."/home/me/{n}"]\ntrust_level = "trusted"\n\n' for n in range(2000))
    began = monotonic()
    assert len(tables(text)) == 2000
    assert monotonic() - began < 5


def test_a_table_ends_with_the_last_line_that_says_something():
    text = "[a]\nx = 1\n\n# of b\n[b]\n# nothing yet\n"
    assert [(table.name, table.text, table.value) for table in tables(text)] == [
        (("a",), "[a]\nx = 1\n", {"x": 1}),
        (("b",), "[b]\n", {}),
    ]
    assert without(text, lambda table: table.name == ("a",)) == "\n# of b\n[b]\n# nothing yet\n"


@pytest.mark.parametrize("text", ["", "x = 1", "x = 1\n", "# only this"])
def test_it_is_added_after_an_empty_line(text):
    new = added(text, "[a]")
    assert new.endswith("[a]\n")
    assert new in (f"{text}\n\n[a]\n", f"{text}\n[a]\n", "[a]\n")


@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x7f")))
def test_a_quoted_text_means_itself(text):
    assert tomllib.loads(f"x = {quoted(text)}") == {"x": text}
