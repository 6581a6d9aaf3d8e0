"""Whatever a line says: no exception, an end, and what was not read is not sure."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.shell import read
from fairlead.shell.syntax import Parser
from fairlead.shell.tree import TOKENS, Budget, TooComplex

PIECES = st.sampled_from([
    "rm", "x", " ", " ", "\n", ";", "|", "&&", "||", "&", "(", ")", "$(", "`", "${", "}", "{", "'", '"', "$", "\\",
    "<<E", "\nE\n", "<", ">", "<<<", ">>", "2>&1", "if ", "then ", "fi", "for i in ", "do ", "done", "while ", "esac",
    "case x in ", ";;", "function ", "f()", "[[ ", " ]]", "((", "))", "$((", "sh -c ", "eval ", "xargs ", "sudo ", "X=",
    "$X", "${X:-y}", "{a,b}", "*", "~", "#", "!", "=", "echo ", "cd ", "alias a=", "$'\\x41'", "é", "\0",
])  # fmt: skip
LINES = st.lists(PIECES, max_size=40).map("".join)


@given(LINES | st.text(max_size=200))
@settings(max_examples=400)
def test_no_text_makes_it_raise(text: str) -> None:
    line = read(text, "/work")
    for command in line.commands:
        command.to_builtins()
        repr(command)


@given(LINES)
def test_reading_a_line_twice_gives_the_same(text: str) -> None:
    once, again = (read(text).commands for _ in range(2))
    assert [command.to_builtins() for command in once] == [command.to_builtins() for command in again]


UNITS = (
    "a ", "'\"", "$(", "`", "{", ",", "\\", "(", "<<E ", ";", "$", "a=", "if ", "\n", "$x", "*", "a=1 ", "$((", "!",
    "case x in ", "f() ", '"$(', '"', "`\\", "sh -c '", "eval ", "{a,b}", "|", "&&", "for i in a b; do ", "[[ ",
    "${x:-", "<(", "sudo ", "cd x;", "{1..9}", "a[;", "a[\n", "{1..999999}",
)  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_a_line_that_is_not_read_to_its_end_is_not_sure_and_not_empty(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    budget = Budget()
    try:
        Parser(text, budget).parse()
    except TooComplex:
        line = read(text)
        assert not line.sure
        assert line.commands
    assert budget.left <= TOKENS


def seconds(unit: str, characters: int) -> float:
    """The time to read a line of so many characters: the least of three."""
    times = []
    for _ in range(3):
        began = process_time()
        read(unit * (characters // len(unit)))
        times.append(process_time() - began)
    return min(times)


@pytest.mark.parametrize("unit", UNITS)
def test_no_long_line_takes_much_longer_than_one_of_ordinary_commands(unit: str) -> None:
    ordinary = seconds("a;", 100_000)
    assert seconds(unit, 100_000) < 20 * ordinary
    assert seconds(unit, 400_000) < 80 * ordinary


@pytest.mark.parametrize("word", ["{1..999999}", "x{1..999999}y", '{1..999999}"$a"', "{a,b}" * 12, "{1..999999}{a,b}"])
def test_braces_that_stand_for_too_many_words_are_not_sure(word: str) -> None:
    line = read(f"rm {word}")
    assert not line.sure
    assert not line.commands[0].sure


def test_loops_in_loops_end() -> None:
    line = "for a in 1 2 3 4 5 6 7 8 9; do " * 8 + "p; " + "done; " * 8
    assert not read(line).sure


@pytest.mark.parametrize(
    "line",
    [
        "for a in 1 2 3 4 5 6 7 8 9; do " * 8 + "p $a; " + "done; " * 8 + "rm x",
        "cat <<E | sh\n" + "echo a\n" * 8000 + "rm x\nE\n",
        "sh <<'E'\n" + "echo a\n" * 8000 + "rm x\nE\n",
        "sh -c '" + "echo a;" * 8000 + "rm x'",
    ],
)
def test_the_command_at_which_the_reader_stops_is_not_sure(line: str) -> None:
    assert not all(command.sure for command in read(line).commands)


def test_a_function_that_calls_itself_ends() -> None:
    assert not read("f() { f; f; }; f").sure


def test_variables_that_double_each_other_end() -> None:
    line = "a=xxxxxxxxxxxxxxxx; " + "a=$a$a; " * 40 + "p $a"
    assert not read(line).sure


@pytest.mark.parametrize(
    ("program", "begin", "unit"),
    [
        ("python3 -c", "os.system('a',", " "),
        ("python3 -c", "os.system", " "),
        ("perl -e", "open F, '|", " "),
        ("perl -e", "system", " "),
        ("perl -e", "exec", " "),
        ("awk", "", "print "),
        ("awk", "", "print x||"),
        ("sed", "", "\n"),
    ],
)
def test_code_that_nearly_runs_a_command_takes_time_as_it_is_long(program: str, begin: str, unit: str) -> None:
    code = begin + unit * (19_000 // len(unit))
    began = process_time()
    read(f"{program} - <<'END'\n{code}\nEND" if program[-2:] in ("-c", "-e") else f'{program} "{code}"')
    read(f'{program} "{code}"')
    assert process_time() - began < 0.2


@pytest.mark.parametrize(
    ("line", "runs"),
    [
        ("perl -e 'system ( qw(rm -rf x))'", "rm"),
        ("perl -e 'open F, \"|  rm x\"'", "rm"),
        ("python3 -c \"os.system( 'rm x' )\"", "rm"),
        ("python3 -c \"os.execvp('rm', ['rm', 'x'])\"", "rm"),
        ("python3 -c \"subprocess.run(args = [ 'rm', 'x'])\"", "rm"),
        ('ruby -e \'system "rm", "x"\'', "rm"),
        ("sed '1\n\n  e rm x'", "rm"),
    ],
)
def test_what_code_runs_is_found_whatever_blanks_stand_in_it(line: str, runs: str) -> None:
    assert runs in [command.program for command in read(line).commands]


def test_awk_code_that_prints_into_a_command_is_not_sure() -> None:
    assert not read("awk '{ print xprint, p | c }' a").sure
    assert read("awk '{ print p || q; print p }' a").sure
