"""What scripts of awk and code of Python do to a file: which only read it, and which may change it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.packs.guarded_awk import writes_unknown
from fairlead.packs.guarded_python import only_prints


@pytest.mark.parametrize(
    "script",
    [
        "{ print $1 }",
        "$1 > 3 { print $2 }",
        "{ if ($1 > 3) print $2; else print ($3 > 4) }",
        "/->/ { print }",
        '{ print "a > b" }',
        '{ print > "out" }',
        '{ print $1 | "sort -u" }',
        'BEGIN { while (("date" | getline d) > 0) print d }',
        '{ print NR ": " $0 } # > x',
        '$1 ~ /[/]"/ || $2 == 1 { n++ } END { print n / 2 }',
        'BEGIN { system("ls") }',
    ],
)
def test_a_script_that_says_where_it_writes_is_known(script: str) -> None:
    assert not writes_unknown(script)


@pytest.mark.parametrize(
    "script",
    [
        "{ print > FILENAME }",
        "{ print >> FILENAME }",
        '{ print > "" FILENAME }',
        '{ print > ("" FILENAME) }',
        '{ printf "\\"" > FILENAME }',
        "{ print /}/ > FILENAME }",
        "{ print \\\n > FILENAME }",
        '{ ("rm " FILENAME) | getline }',
        '{ FILENAME "x" | getline }',
        '{ print "rm " FILENAME | "cat | sh" }',
        '{ print "rm " FILENAME | "env sh" }',
        '{ c = "sh"; print 1 | c }',
        '{ print 1 |& "x" }',
        '{ system("rm " FILENAME) }',
        '{ s = "system"; @s(1) }',
        "{ (a) / 1; print > FILENAME; b / 2 }",
        '{ if (1) /"/ ; print > FILENAME; x = "" }',
        "{ print > f" + "x" * 5000 + " }",
    ],
)
def test_a_script_that_may_write_anything_is_not(script: str) -> None:
    assert writes_unknown(script)


@pytest.mark.parametrize(
    "code",
    [
        'print(open("x").read())',
        "import json, sys; print(json.load(sys.stdin)['a'])",
        'import tomllib\nwith open("x", "rb") as f:\n    print(sorted(tomllib.load(f)))',
        "from pathlib import Path; print(Path('x').read_text().splitlines()[:3])",
        "import os; print(os.path.exists('x'), os.environ.get('A'), os.stat('x').st_size)",
        'for line in open("x", encoding="utf-8"):\n    if "a" in line: print(f"{line.strip()}")',
    ],
)
def test_code_that_prints_only_prints(code: str) -> None:
    assert only_prints(code)


@pytest.mark.parametrize(
    "code",
    [
        'open("x", "w")',
        'open("x", mode="r+")',
        'm = "w"; open("x", m)',
        "open(*('x', 'w'))",
        "open(**{'file': 'x', 'mode': 'w'})",
        'print(1, file=open("x", "w"))',
        "f = open; f('x', 'w')",
        "print = open; print('x', 'w')",
        "from pathlib import Path as open; open('x').unlink()",
        "import os; os.remove('x')",
        "import os; os.path.os.remove('x')",
        "import os; o = os; o.remove('x')",
        "import os; [f('x') for f in [os.path.join, os.remove]]",
        "from os import remove; remove('x')",
        "import sys; sys.modules['os'].remove('x')",
        "[x('y') for x in [__import__('os').remove]]",
        "(lambda: 1)()",
        "def print(x): pass",
        "class open: pass",
        "from pathlib import Path; Path('x').replace('y')",
        "from pathlib import Path; Path('x').open('w')",
        "import json; json.dump({}, open('x', 'w'))",
        "print(",
        "print(1)" + "\n" * 3000,
    ],
)
def test_code_that_may_do_more_does_not(code: str) -> None:
    assert not only_prints(code)


@given(st.text(alphabet="(){}[]'\"/\\|>;@#\n aprint1system,", max_size=60))
def test_no_text_makes_either_raise(text: str) -> None:
    writes_unknown(text)
    only_prints(text)
