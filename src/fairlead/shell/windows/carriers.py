"""Commands of PowerShell and cmd that run others, and those that change the folder.

A carrier is a function of the shell that follows the line, of the command, and of how it is written.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from ..carriers import carrier_of
from ..commands import Command
from ..shells import SHELLS
from ..words import Word, unknown_of
from ..wrappers import WRAPPERS
from .cmdlets import Parameters, WindowsCommand, parameters_of, program_of

if TYPE_CHECKING:
    from .reading import WindowsShell

Carrier: TypeAlias = "Callable[[WindowsShell, Command, str], None]"
_POSIX = frozenset({*WRAPPERS, *SHELLS, "git", "xargs", "su", "runuser"}) - {"at", "exec", "time", "watch", "builtin"}
_SWITCH_C = re.compile(r"(?:/{1,2}[a-z](?::\w+)?)*?/{1,2}([ckr])(.*)", re.IGNORECASE | re.DOTALL)
_RAW_PROGRAM = re.compile(r"\"[^\"]*\"|[^\s/]+")
_RAW_SWITCH = re.compile(r"\s*/(\w)(?::\w*)?")
_PARAMETER = re.compile(r"(?:[-/]|--|[\u2013\u2014\u2015])([a-z]+)(?::(.*))?", re.IGNORECASE | re.DOTALL)
_POWERSHELL_SHORT = {"c": "command", "e": "encodedcommand", "ec": "encodedcommand", "ep": "executionpolicy",
                     "ex": "executionpolicy", "f": "file", "w": "windowstyle", "wd": "workingdirectory",
                     "i": "inputformat", "o": "outputformat", "v": "version", "l": "login",
                     "nop": "noprofile"}  # fmt: skip
_WSL_VALUED = frozenset({"-d", "--distribution", "-u", "--user", "--cd", "--distribution-id", "--shell-type"})
_SPLIT = re.compile(r"[^\s\"]*\"[^\"]*\"?|[^\s\"]+")


def runs_posix(name: str) -> bool:
    """Is this a program that the reader of POSIX lines follows? `git`, `docker`, `bash`, `python`."""
    return name in _POSIX or carrier_of(name) is not None


def joined(words: list[str], quoted: bool = False) -> str:
    """Words as one text. `quoted`: those with a blank in quotes."""
    unknown = [one for word in words for one in unknown_of(word)]
    texts = [f'"{word}"' if quoted and len(words) > 1 and re.search(r"\s", word) else word for word in words]
    text = " ".join(texts)
    return Word(text, unknown) if unknown else text


def _powershell(shell: WindowsShell, command: Command, source: str = "") -> None:
    """`powershell -Command LINE`, `-EncodedCommand BASE64`, a line by itself, and what is piped into it."""
    table = parameters_of("powershell")
    args, at = command.args, 0
    while at < len(args):
        found = _PARAMETER.fullmatch(args[at])
        if found is None:  # also a dash by itself: what it reads
            break
        name = _POWERSHELL_SHORT.get(found[1].lower()) or table.in_full(found[1])
        at += 1
        if name == "file":
            return
        if name == "command":
            _run_powershell(shell, command, args[at:])
            return
        if name == "encodedcommand":
            text = _decoded(args[at]) if at < len(args) else None
            if text is not None:
                shell.line(text, "powershell", f"{command.program} -encodedcommand", command)
            return
        at += name in table.valued and found[2] is None
    if at < len(args) and program_of(command.program) == "pwsh" and args[at] != "-" and " " not in args[at]:
        return  # a script
    _run_powershell(shell, command, args[at:])


def _run_powershell(shell: WindowsShell, command: Command, words: list[str]) -> None:
    text: str | None = joined(words) if words and words != ["-"] else command.stdin
    if text:
        shell.line(text, "powershell", f"{command.program} -command", command)


def _decoded(word: str) -> str | None:
    """Base64 of UTF-16, as `-EncodedCommand` takes it."""
    try:
        return base64.b64decode(word.strip(), validate=False).decode("utf-16-le", "replace")
    except (ValueError, binascii.Error):
        return None


def _cmd(shell: WindowsShell, command: Command, source: str = "") -> None:
    """`cmd /c LINE`, `cmd /s /k "LINE"`, and what is piped into it. cmd takes a line as it is written."""
    if (text := _raw_line(source)) is not None:
        shell.line(text, "cmd", f"{command.program} /c", command)
        return
    for at, word in enumerate(command.args):
        if found := _SWITCH_C.fullmatch(word):
            rest = [*([found[2]] if found[2] else []), *command.args[at + 1 :]]
            shell.line(joined(rest, quoted=True), "cmd", f"{command.program} /{found[1].lower()}", command)
            return
        if word[:1] != "/":
            return
    if command.stdin:
        shell.line(command.stdin, "cmd", str(command.program), command)


def _raw_line(source: str) -> str | None:
    """What follows `/c`, without the quotes around it."""
    found = _RAW_PROGRAM.match(source)
    while found is not None and (found := _RAW_SWITCH.match(source, found.end())) is not None:
        if found[1].lower() in "ckr":
            text = source[found.start(1) + 1 :].strip()
            end = text.rfind('"')
            return text[1:end] + text[end + 1 :] if text[:1] == '"' and end > 0 else text
    return None


def _invoke_expression(shell: WindowsShell, command: Command, source: str) -> None:
    text = joined(command.operands) if command.operands else command.stdin
    if text and not (isinstance(text, Word) and text.startswith(("$(...)", "{...}"))):
        shell.line(text, "powershell", "invoke-expression", command)


def _start_process(shell: WindowsShell, command: Command, source: str) -> None:
    """`Start-Process cmd -ArgumentList '/c','del x'`: the texts of the list become one line of words."""
    table = parameters_of("start-process")
    words: list[str] = []
    for word in _process_words(table, command):
        words += _split(word) if words and re.search(r"\s", word) else [word]
    shell.program(words, "start-process", command)


def _process_words(table: Parameters, command: Command) -> list[str]:
    """The program of Start-Process, and what it is given."""
    listed = command.listed if isinstance(command, WindowsCommand) else frozenset()
    file: list[str] = []
    rest: list[str] = []
    name = ""
    for at, word in enumerate(command.args):
        found = re.fullmatch(r"-([A-Za-z]+)(?::(.*))?", word, re.DOTALL) if at not in listed else None
        full = {"args": "argumentlist"}.get(found[1].lower()) or table.in_full(found[1]) if found else ""
        if found and full in table.written and name != "argumentlist":
            name = full if full in table.valued else ""
            word = found[2] or ""
            if not word:
                continue
        if name == "argumentlist" or (not name and file):
            rest.append(word)
        elif not name or name == "filepath":
            file.append(word)
        following = at + 1 in listed
        name = name if following else ""
    return file + rest


def _split(text: str) -> list[str]:
    """The words of a text, as a program of Windows sees them."""
    return [joined([word.replace('"', "")]) for word in _SPLIT.findall(text)]


def _start(shell: WindowsShell, command: Command, source: str) -> None:
    """`start "title" /wait /d FOLDER program`"""
    args = command.args
    at = 1 if re.match(r'start\s+"', source, re.IGNORECASE) else 0
    while at < len(args) and args[at][:1] == "/":
        at += 2 if args[at].lower() in ("/d", "/node", "/affinity") else 1
    shell.program(args[at:], "start", command, named=True)


def _call(shell: WindowsShell, command: Command, source: str) -> None:
    if command.args and command.args[0][:1] != ":":
        shell.program(command.args, "call", command, named=True)


def _line_option(option: str) -> Carrier:
    """A program that takes a line of cmd as the value of an option: `forfiles /c LINE`."""

    def run(shell: WindowsShell, command: Command, source: str) -> None:
        for at, word in enumerate(command.args[:-1]):
            if word.lower() == option:
                shell.line(command.args[at + 1], "cmd", f"{command.program} {option}", command)

    return run


def _runas(shell: WindowsShell, command: Command, source: str) -> None:
    if command.operands and command.program != "wmic":
        shell.line(command.operands[-1], "cmd", "runas", command)
    elif [word.lower() for word in command.operands[:3]] == ["process", "call", "create"]:
        shell.line(joined(command.operands[3:]), "cmd", "wmic", command)


def _wsl(shell: WindowsShell, command: Command, source: str) -> None:
    """`wsl -d NAME -- rm x` runs a program of Linux."""
    args, at = command.args, 0
    while at < len(args) and args[at][:1] == "-":
        at += 2 if args[at] in _WSL_VALUED else 1
        if args[at - 1] in ("--", "-e", "--exec"):
            break
    if at < len(args) and all(word in _WSL_VALUED or word in ("--", "-e", "--exec", "-") or word[:1] != "-"
                              for word in args[:at]):  # fmt: skip
        shell.posix(command, args[at:])


def _cd(shell: WindowsShell, command: Command, source: str) -> None:
    words = [word for word in command.operands if word[:1] != "/" or len(word) > 2]
    if words:
        shell.change_folder(words[0])
    elif command.program == "set-location":
        shell.change_folder("~")


def _back(shell: WindowsShell, command: Command, source: str) -> None:
    shell.change_folder("-")


def run_shell(shell: WindowsShell, command: Command) -> None:
    """Follow what `powershell`, `pwsh` or `cmd` runs, called by a POSIX line."""
    (_cmd if program_of(command.program) == "cmd" else _powershell)(shell, command, "")


CARRIERS: dict[str, Carrier] = {
    "powershell": _powershell, "pwsh": _powershell, "cmd": _cmd, "command": _cmd,
    "invoke-expression": _invoke_expression, "start-process": _start_process, "start": _start, "call": _call,
    "forfiles": _line_option("/c"), "schtasks": _line_option("/tr"), "runas": _runas, "wmic": _runas,
    "wsl": _wsl, "set-location": _cd, "push-location": _cd, "cd": _cd, "pushd": _cd,
    "pop-location": _back, "popd": _back,
}  # fmt: skip
