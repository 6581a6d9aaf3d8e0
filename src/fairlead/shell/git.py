"""What git runs: aliases, lines in its settings and options, `submodule foreach`, `bisect run`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from .commands import Command
from .words import joined

if TYPE_CHECKING:
    from .reading import Shell


def run_git(shell: Shell, command: Command) -> None:
    """Lines and aliases that git runs: `-c alias.x='!rm y'`, `rebase --exec LINE`, `submodule foreach LINE`."""
    args, operands = command.args, command.operands
    aliases = dict(shell.git_aliases)
    for name, value in _git_settings(shell, command):
        _git_setting(shell, command, name, value, aliases)
    for word, after in pairwise((*args, "")):
        name, sign, value = word.partition("=")
        if name in ("-x", "--extcmd", "--open-files-in-pager", *_GIT_LINES) or (
            name[:2] == "--" and name.endswith("-filter")
        ):
            shell.line(value if sign else after, "git --exec", command, apart=True)
        elif word[:2] == "-O" and operands[:1] == ["grep"]:
            shell.line(word[2:], "git --exec", command, apart=True)
        elif word.startswith("ext::"):
            words = re.split(r"(?<!%) ", word[5:])
            shell.program([re.sub("%(.)", r"\1", one) for one in words], "git ext::", command)
    if operands[:1] == ["config"] and len(operands) > 2:
        _git_setting(shell, command, operands[-2], operands[-1], shell.git_aliases)
    elif operands[:2] in (["submodule", "foreach"], ["bisect", "run"]):
        at = args.index(operands[1]) + 1
        at += sum(1 for word in args[at : at + 1] if word[:1] == "-")
        via = f"git {operands[0]} {operands[1]}"
        if operands[0] == "bisect" or len(args) > at + 1:
            shell.program(args[at:], via, command)
        else:
            shell.line(joined(args[at:]), via, command, apart=True)
    elif operands and (alias := aliases.get(operands[0])) is not None and not alias.startswith("!"):
        rest = args[args.index(operands[0]) + 1 :]
        shell.program(["git", *alias.split(), *rest], f"git alias {operands[0]}", command)


_GIT_LINES = frozenset({"--exec", "--upload-pack", "--receive-pack"})


def _git_settings(shell: Shell, command: Command) -> Iterator[tuple[str, str]]:
    """What is set for one call: `-c name=value`, and the variables that stand for it."""
    args = command.args
    for word, after in pairwise((*args, "")):
        if word.startswith("--config-env"):
            name, _, variable = (word.partition("=")[2] or after).partition("=")
            value = shell.variables.get(variable)
            yield name, value if isinstance(value, str) else ""
    if any(name.startswith("GIT_CONFIG") for name in shell.exported):
        environment = {name: value for name in shell.exported if isinstance(value := shell.variables.get(name), str)}
        for variable, name in environment.items():
            if variable.startswith("GIT_CONFIG_KEY_"):
                yield name, environment.get(variable.replace("KEY", "VALUE"), "")
        for found in _PARAMETER.finditer(environment.get("GIT_CONFIG_PARAMETERS", "")):
            name, _, value = (found[1] if found[2] is None else f"{found[1]}={found[2]}").partition("=")
            yield name, value.replace("'\\''", "'")
    for at, word in enumerate(args):
        setting = args[at + 1] if word == "-c" and at + 1 < len(args) else word[2:] if word.startswith("-c") else ""
        if "=" in setting:
            name, _, value = setting.partition("=")
            yield name, value
    for variable, name in command.assignments.items():
        if variable in ("GIT_PAGER", "GIT_EDITOR", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_SEQUENCE_EDITOR"):
            yield "core.pager", name


_PARAMETER = re.compile(r"'((?:[^']|'\\'')*)'(?:='((?:[^']|'\\'')*)')?")
"""A setting in GIT_CONFIG_PARAMETERS: `'name=value'` or `'name'='value'`."""


def _git_setting(shell: Shell, command: Command, name: str, value: str, aliases: dict[str, str]) -> None:
    """A setting that is a line, or the alias of a git command."""
    name = name.lower()
    if name.startswith("alias."):
        aliases[name[6:]] = value
    if value.startswith("!") or _RUNS_A_LINE.search(name):
        shell.line(
            value.lstrip("!"), "git -c" if command.operands[:1] != ["config"] else "git config", command, apart=True
        )


_RUNS_A_LINE = re.compile(
    r"\.(?:command|cmd|helper|program|textconv|process|clean|smudge|driver)$"
    r"|^core\.(?:pager|editor|sshcommand|fsmonitor|hookspath|askpass|gitproxy)|^(?:sequence\.editor|diff\.external|pager\.)"
)
