"""Options in whatever spelling they are written."""

from __future__ import annotations

import pytest

from fairlead.shell import Command, read


def command_of(line: str) -> Command:
    return read(line).commands[0]


@pytest.mark.parametrize("line", ["rm -rf x", "rm -r -f x", "rm -fr x", "rm --recursive --force x", "rm x -r -f"])
def test_spellings_of_the_same_options_are_the_same(line: str) -> None:
    command = command_of(line)
    assert all(command.has(option) for option in ("--recursive", "-r", "--force", "-f"))
    assert command.operands == ["x"]


@pytest.mark.parametrize(
    ("line", "option", "value", "operands"),
    [
        ("git commit -m 'a b' file", "--message", "a b", ["commit", "file"]),
        ("git commit -mtext", "--message", "text", ["commit"]),
        ("git commit --message=text", "--message", "text", ["commit"]),
        ("git -C sub push", "-C", "sub", ["push"]),
        ("git checkout -bfeature", "-b", "feature", ["checkout"]),
        ("curl -o out http://x", "--output", "out", ["http://x"]),
        ("curl -sSfo out http://x", "--output", "out", ["http://x"]),
    ],
)
def test_a_value_of_an_option_is_no_operand(line: str, option: str, value: str, operands: list[str]) -> None:
    command = command_of(line)
    assert command.options[option] == value
    assert command.operands == operands


def test_after_two_dashes_nothing_is_an_option() -> None:
    command = command_of("git reset -- --hard")
    assert not command.has("--hard")
    assert command.operands == ["reset", "--hard"]


def test_of_an_unknown_program_each_letter_is_an_option() -> None:
    command = command_of("something -abc x")
    assert all(command.has(option) for option in ("-a", "-c", "-abc"))
    assert command.operands == ["x"]


@pytest.mark.parametrize(
    ("line", "runs"),
    [
        ("git push origin", True),
        ("git -C x push", True),
        ("git --no-pager push", True),
        ("git log push", False),
        ("gitx push", False),
    ],
)
def test_runs_asks_for_the_program_and_its_first_operands(line: str, runs: bool) -> None:
    assert command_of(line).runs("git push") is runs
