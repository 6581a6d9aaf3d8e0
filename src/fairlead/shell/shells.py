"""Shells, and what gives them a line or a script: `sh -c`, `... | sh`, `eval`, `source`, `su -c`, `at`, `crontab`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

from .commands import Command, Feed, program_name
from .outputs import input_of, output_of
from .words import Word, is_exact, joined, unknown_of
from .wrappers import Wrapper, wrapped

if TYPE_CHECKING:
    from .reading import Shell

_STDIN = frozenset({"/dev/stdin", "/dev/fd/0", "-", "/proc/self/fd/0"})
SHELLS = frozenset({
    "sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "fish", "rbash", "csh", "tcsh", "yash", "pdksh", "oksh", "osh",
    "ysh", "xonsh", "elvish", "nu",
})  # fmt: skip


TAKES_TEXT = frozenset({
    "echo", "printf", "grep", "egrep", "fgrep", "rg", "ag", "ack", "man", "which", "whereis", "type", "ps", "pgrep",
    "pkill", "killall", "ls", "cat", "apt", "apt-get", "dnf", "yum", "brew", "apk", "pacman", "logger", "notify-send",
    "tldr", "info", "apropos", "jq", "curl",
})  # fmt: skip
"""Programs of no table that run no other: to them, `sh -c LINE` is text."""


def shell_in(args: list[str]) -> list[str]:
    """The words from `sh -c LINE` on, which any program may run. Empty if there is no such thing."""
    for at, word in enumerate(args):
        if word.endswith("sh") and program_name(word) in SHELLS:
            options = takewhile(lambda one: one[:1] in ("-", "+"), args[at + 1 :])
            if any(_TAKES_LINE.fullmatch(one) for one in options):
                return args[at:]
    return []


_TAKES_LINE = re.compile(r"-[a-zA-Z]*c")


def run_shell(shell: Shell, command: Command) -> None:
    """`sh -c LINE`, `... | sh`, `sh <<END`, `sh FILE`."""
    args, at = command.args, 0
    while at < len(args) and len(args[at]) > 1 and args[at][0] in "-+" and args[at] != "--":
        word, rest = args[at], args[at + 1 :]
        if word.startswith("--"):
            if _run_long_option(shell, command, word, rest):
                return
            at += 2 if word in _TAKES_FILE else 1
        elif word[0] == "-" and "c" in word:
            _run_line_after(shell, command, rest)
            return
        elif word[0] == "-" and "s" in word:
            run_input(shell, command, rest[1:] if rest[:1] == ["--"] else rest)
            return
        else:
            at += 2 if word in _TAKES_NAME else 1
    at += args[at : at + 1] in (["--"], ["-"])
    if at < len(args) and args[at] not in _STDIN:
        run_script(shell, command, args[at], args[at + 1 :])
    else:
        run_input(shell, command, args[at + 1 :])


_TAKES_FILE = frozenset({"--rcfile", "--init-file"})
_TAKES_NAME = frozenset({"-o", "+o", "-O", "+O"})


def _run_long_option(shell: Shell, command: Command, option: str, rest: list[str]) -> bool:
    """`--rcfile FILE`, and fish's `--command LINE`. True if the shell does nothing else then."""
    if option in _TAKES_FILE and rest:
        run_script(shell, command, rest[0], [])
    if option.startswith(("--rcfile", "--init-file", "--init-command")):
        command.sure = False
    name, sign, line = option.partition("=")
    if name != "--command" or not (sign or rest):
        return False
    _run_line(shell, command, line if sign else rest[0], [] if sign else rest[1:])
    return True


def _run_line_after(shell: Shell, command: Command, rest: list[str]) -> None:
    """The line of `sh -c OPTIONS LINE WORDS`."""
    at = 0
    while at < len(rest) and rest[at][:1] in ("-", "+") and rest[at] not in ("--", "-"):
        at += 2 if rest[at] in _TAKES_NAME else 1
    at += rest[at : at + 1] in (["--"], ["-"])
    if at < len(rest):
        _run_line(shell, command, rest[at], rest[at + 1 :])


def _run_line(shell: Shell, command: Command, text: str, values: list[str]) -> None:
    with _arguments(shell, values[0] if values else command.program, values[1:]):
        _line_of_shell(shell, command, text, f"{command.program} -c", command.source)


def _line_of_shell(shell: Shell, command: Command, text: str, via: str, feed: Feed | None = None) -> None:
    """A line that a shell runs. `sh` may be dash, which takes what bash has of its own for plain text."""
    if command.program in ("sh", "dash", "ash") and _BASH_ONLY.search(text):
        text = Word(text, (*unknown_of(text), "sh"))
    if not is_exact(text):
        command.sure = False
    shell.line(text, via, command, apart=True, feed=feed)


_BASH_ONLY = re.compile(r"\$['\"]|\{[^{}\s]*(?:,|\.\.)[^{}\s]*\}|<<<|\$\{\w+(?:[/^,:@]|\[)(?![-=+?])")


@contextmanager
def _arguments(shell: Shell, name: str, arguments: list[str]) -> Iterator[None]:
    """The positional parameters of another shell."""
    old, old_name = shell.words.arguments, shell.words.name
    shell.words.arguments, shell.words.name = arguments, name
    yield
    shell.words.arguments, shell.words.name = old, old_name


def run_script(shell: Shell, command: Command, file: str, arguments: list[str], *, apart: bool = True) -> None:
    """A script is a file, or a process: `sh <(echo rm x)`. Only one that the line itself wrote is looked into."""
    text = process_output(shell, command, file) if file.startswith("<(") else shell.script_of(command, file)
    if text is None:
        return
    first = text.partition("\n")[0]
    if first[:2] == "#!" and not _SHELL_LINE.search(first) and command.program not in SHELLS:
        command.sure = False
        return
    with _arguments(shell, file, arguments if apart or arguments else shell.words.arguments or []):
        shell.line(text, command.program, command, apart=apart)


_SHELL_LINE = re.compile(rf"\b(?:{'|'.join(sorted(SHELLS))})\b")


def process_output(shell: Shell, command: Command, file: str) -> str | None:
    """What `<(...)` writes, if the line says it."""
    if not file.startswith("<("):
        return None
    inside = [one for one in command.inner if one.via[-1:] == ("<(...)",)]
    text = output_of(inside, shell.maybe)
    if text is None:
        command.sure = False
    return text


def run_input(shell: Shell, command: Command, arguments: list[str] | None = None) -> None:
    """A shell without words runs what it reads."""
    files = [
        redirect.target for redirect in command.redirects if redirect.operator == "<" and redirect.descriptor in "0"
    ]
    if files and files[-1] not in _STDIN:
        run_script(shell, command, files[-1], arguments or [])
        return
    if command.source is None:
        return
    text = input_of(command)
    if text is None:
        command.sure = False
    else:
        with _arguments(shell, command.program, arguments or []):
            _line_of_shell(shell, command, text, command.program)


def run_su(shell: Shell, command: Command) -> None:
    """`su -c LINE user`, `script -c LINE`, `flock file -c LINE`, `runuser -u x -- words`."""
    for at, word in enumerate(command.args):
        if (word in ("--command", "--session-command") or re.fullmatch(r"-\w*c", word)) and at + 1 < len(command.args):
            shell.line(command.args[at + 1], f"{command.program} -c", command, apart=True, feed=command.source)
            return
        if word.startswith("--command="):
            shell.line(word.partition("=")[2], f"{command.program} -c", command, apart=True, feed=command.source)
            return
        if (found := re.fullmatch(r"-\w*?c(.+)", word, re.DOTALL)) and word[1:2] != "-":
            line = Word(found[1], unknown_of(word)) if unknown_of(word) else found[1]
            shell.line(line, f"{command.program} -c", command, apart=True, feed=command.source)
            return
    if command.program == "runuser" and command.has("-u", "--user"):
        words, _ = wrapped(Wrapper("ugGs --user --group --shell"), command.args)
        shell.program(words, "runuser", command)
        return
    if command.program in ("sg", "capsh", "newgrp", "script"):
        words, _ = wrapped(Wrapper("IOBTEmo", words=1), command.args)
        if words and command.program != "newgrp":
            shell.line(joined(words), command.program, command, apart=True)
        elif command.source is not None and command.program != "capsh":
            run_input(shell, command)
    if command.program == "flock":
        words, _ = wrapped(Wrapper("wE --timeout --conflict-exit-code", words=1), command.args)
        shell.program(words, "flock", command)
    elif command.program == "runuser" and "--" in command.args:
        shell.program(command.args[command.args.index("--") + 1 :], "runuser", command)
    elif command.program in ("su", "runuser"):
        run_input(shell, command)


def run_eval(shell: Shell, command: Command) -> None:
    text = joined(command.args[1:] if command.args[:1] == ["--"] else command.args)
    if text:
        shell.line(text, "eval", command, feed=command.source)
    if unknown_of(text):
        command.sure = False


def run_source(shell: Shell, command: Command) -> None:
    args = command.args[1:] if command.args[:1] == ["--"] else command.args
    if not args:
        return
    if args[0] in _STDIN:
        text = input_of(command)
        if text is None:
            command.sure = False
        else:
            with _arguments(shell, command.program, args[1:] or shell.words.arguments or []):
                shell.line(text, command.program, command)
    else:
        run_script(shell, command, args[0], args[1:], apart=False)


def run_trap(shell: Shell, command: Command) -> None:
    if len(command.operands) > 1 and command.operands[0] not in ("", "-"):
        shell.line(command.operands[0], "trap", command)


def run_at(shell: Shell, command: Command) -> None:
    """`echo rm x | at now` runs what it reads, later."""
    if command.has("-l", "-r", "-d", "-c"):
        return
    if command.has("-f"):
        file = next((after for word, after in pairwise(command.args) if word == "-f"), "")
        run_script(shell, command, file, [])
        return
    run_input(shell, command)


def run_crontab(shell: Shell, command: Command) -> None:
    """`echo '* * * * * rm x' | crontab -`"""
    text = input_of(command) if not command.has("-l", "-e", "-r") else ""
    if text is None and command.source is not None:  # one of the commands before it may still say what it writes
        text = "".join(output_of([one]) or "" for one in command.source.commands)
        command.sure = False
    if text is None and command.source is not None:
        command.sure = False
    for line in (text or "").split("\n"):
        fields = line.split(None, 1 if line[:1] == "@" else 5)
        if line[:1] != "#" and len(fields) == (2 if line[:1] == "@" else 6):
            shell.line(Word(fields[-1], ("crontab",)), "crontab", command, apart=True)
