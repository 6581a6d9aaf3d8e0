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
    settings = dict(shell.git_settings)
    for name, value in _settings_of_call(shell, command):
        _set(shell, command, name, value, settings)
    _run_options(shell, command)
    subcommand = operands[0] if operands else ""
    rest = args[args.index(subcommand) + 1 :] if operands else []
    if subcommand == "config" and len(operands) > 2:
        _set(shell, command, operands[-2], operands[-1], shell.git_settings)
    elif operands[:2] == ["remote", "add"] and {"--mirror", "--mirror=push"} & set(args):
        shell.git_settings[f"remote.{operands[-2]}.mirror"] = "true"
    elif operands[:2] in (["submodule", "foreach"], ["bisect", "run"]):
        _run_each(shell, command)
    elif subcommand == "push":
        _push_by_settings(shell, command, rest, settings)
    elif subcommand == "send-pack":
        shell.program(["git", "push", *rest], "git send-pack", command)
    elif (alias := settings.get(f"alias.{subcommand.lower()}")) is not None and not alias.startswith("!"):
        shell.program(["git", *alias.split(), *rest], f"git alias {subcommand}", command)


def _run_options(shell: Shell, command: Command) -> None:
    """Options and addresses with a line: `--exec LINE`, `--upload-pack=LINE`, `ext::LINE`."""
    for word, after in pairwise((*command.args, "")):
        name, sign, value = word.partition("=")
        if name in _GIT_LINES or (name[:2] == "--" and name.endswith("-filter")):
            shell.line(value if sign else after, "git --exec", command, apart=True)
        elif word[:2] == "-O" and command.operands[:1] == ["grep"]:
            shell.line(word[2:], "git --exec", command, apart=True)
        elif word.startswith("ext::"):
            words = re.split(r"(?<!%) ", word[5:])
            shell.program([re.sub("%(.)", r"\1", one) for one in words], "git ext::", command)


def _run_each(shell: Shell, command: Command) -> None:
    """`git submodule foreach LINE`, `git bisect run WORDS`"""
    args, (subcommand, action) = command.args, command.operands[:2]
    at = args.index(action) + 1
    at += sum(1 for word in args[at : at + 1] if word[:1] == "-")
    via = f"git {subcommand} {action}"
    if subcommand == "bisect" or len(args) > at + 1:
        shell.program(args[at:], via, command)
    else:
        shell.line(joined(args[at:]), via, command, apart=True)


def _push_by_settings(shell: Shell, command: Command, rest: list[str], settings: dict[str, str]) -> None:
    """What `git push` pushes where settings say so: `git -c remote.origin.push=+main push`."""
    remote = command.operands[1:2]
    for name, value in settings.items():
        found = _PUSHES.fullmatch(name)
        if found is None or remote not in ([], [found[1]]) or value == "false":
            continue
        if found[2] == "mirror" and not command.has("--mirror"):
            shell.program(["git", "push", "--mirror", *rest], "git config", command)
        elif found[2] == "push" and len(command.operands) < 3:
            shell.program(["git", "push", *rest, *([] if remote else [found[1]]), value], "git config", command)


_PUSHES = re.compile(r"remote\.(.+)\.(push|mirror)")
_GIT_LINES = frozenset({"-x", "--extcmd", "--open-files-in-pager", "--exec", "--upload-pack", "--receive-pack"})


def _settings_of_call(shell: Shell, command: Command) -> Iterator[tuple[str, str]]:
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


def _set(shell: Shell, command: Command, name: str, value: str, settings: dict[str, str]) -> None:
    """Note a setting, and follow one that is a line."""
    section, *middle = name.split(".")
    name = ".".join([section.lower(), *middle[:-1], *(one.lower() for one in middle[-1:])])
    settings[name] = value
    if value.startswith("!") or _RUNS_A_LINE.search(name):
        via = "git config" if command.operands[:1] == ["config"] else "git -c"
        shell.line(value.lstrip("!"), via, command, apart=True)


_RUNS_A_LINE = re.compile(
    r"\.(?:command|cmd|helper|program|textconv|process|clean|smudge|driver)$"
    r"|^core\.(?:pager|editor|sshcommand|fsmonitor|hookspath|askpass|gitproxy)|^(?:sequence\.editor|diff\.external|pager\.)"
)
