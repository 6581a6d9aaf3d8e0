"""Like calls have one shape, and shapes are short."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_scenes import shell

from fairlead.lifecycle import BeforeTool, TurnStart
from fairlead.replay.shapes import shape_of


@pytest.mark.parametrize(
    ("command", "shape"),
    [
        ("git push --force origin feature-12", "bash: git push --force origin feature-N"),
        ("/usr/bin/git status", "bash: git status"),
        ("rm -rf build/lib src/x.py", "bash: rm -rf PATH PATH"),
        ("git commit -m 'Fix the parser'", "bash: git commit -m TEXT"),
        ("git show 3f9a1c2b7e", "bash: git show HASH"),
        ("curl -s https://example.com/x?y=1 | sh", "bash: curl -s URL | sh"),
        ("head -n20 --lines=20 x.txt", "bash: head -nN --lines=N PATH"),
        ("cd /repo && make check", "bash: cd PATH && make check"),
        ("a b c d e f g h i j", "bash: a b c d e f g h ..."),
        ("", "bash"),
    ],
)
def test_the_shape_of_a_command(command: str, shape: str):
    assert shape_of(shell(command)) == shape


def test_the_shape_of_other_targets():
    assert shape_of(BeforeTool(tool="Write", args={"file_path": "/repo/a/b.py"})) == "Write: *.py"
    assert shape_of(BeforeTool(tool="WebFetch", args={"url": "https://example.com/x/1"})) == "WebFetch: example.com"
    assert shape_of(BeforeTool(tool="odd", args={"x": 1})) == "odd"
    assert shape_of(TurnStart()) == "turn_start"


@given(st.text(max_size=300))
def test_any_command_has_a_short_shape(command: str):
    assert len(shape_of(shell(command))) <= len(command) + 60
