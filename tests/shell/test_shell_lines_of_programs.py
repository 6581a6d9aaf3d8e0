"""Lines that programs run because of an option, a variable or a file of the line."""

from __future__ import annotations

import pytest

from fairlead.shell import read


@pytest.mark.parametrize(
    "line",
    [
        "split --filter='rm y' x",
        "tar -cf x z --checkpoint=1 --checkpoint-action=exec='rm y'",
        "tar -cf x z --use-compress-program='rm y'",
        "git filter-branch --tree-filter 'rm y' HEAD",
        "git difftool -x 'rm y' HEAD",
        "git fetch 'ext::rm y'",
        "EDITOR='rm y' git commit",
        "PROMPT_COMMAND='rm y' bash -i",
        "export PAGER='rm y'",
        "BASH_ENV=<(echo rm y) bash -c true",
        "bash --rcfile <(echo rm y) -i",
        "make -sf - <<< 'x:; rm y'",
        "make -f <(printf 'x:\\n\\trm y\\n')",
        "(crontab -l; echo '@reboot rm y') | crontab -",
        "xargs rm < <(echo y)",
        "mapfile -d '' x <<< 'rm y'; eval \"$x\"",
        "a[$(rm y)0]=1",
        "rm $(basename x/y)",
        "rm $(dirname y/x)",
        "echo 'rm y' > x.sh; sh x.sh",
        'perl -e \'exec("sh", "-c", "rm \\$(echo y)")\'',
    ],
)
def test_a_line_that_a_program_runs_is_followed(line: str) -> None:
    assert any(command.program == "rm" and command.args == ["y"] for command in read(line, "/work").commands)


def test_what_is_only_known_when_it_runs_is_not_sure() -> None:
    for line in ("rm $(which x)", "rm $(mktemp)", "rm $(< x)"):
        assert not read(line).sure


def test_all_files_of_a_folder_are_a_pattern() -> None:
    (command,) = [command for command in read("ls | xargs rm").commands if command.program == "rm"]
    assert command.args == ["*"]


def test_an_array_of_a_branch_is_followed_and_not_sure() -> None:
    line = read('true && x=(rm y); "${x[@]}"')
    assert any(command.program == "rm" and command.args == ["y"] for command in line.commands)
    assert not line.sure
