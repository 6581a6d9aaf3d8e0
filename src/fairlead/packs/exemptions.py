"""Exemptions: a rule that does not speak about one exact command, file or address, in one folder, until a day.

An exemption is read as strictly as a command: it matches a command with the same program, the same options and the
same operands, whatever way the line spells them, and no other. Of tools that are no shell, it matches a call that is
about one file, or one address.
"""

from __future__ import annotations

import os
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING

from ..errors import FairleadError
from ..shell import Command, read
from ..shell.commands import join

if TYPE_CHECKING:
    from ..lifecycle import BeforeTool
    from .lines import PackLine


class Exemption:
    """One `[[exemption]]`."""

    def __init__(
        self,
        rule: str,
        command: str = "",
        reason: str = "",
        project: str = "",
        owner: str = "",
        until: date | None = None,
        path: str = "",
        url: str = "",
    ) -> None:
        self.rule = rule
        self.command = command
        self.path = os.path.normpath(os.path.expanduser(path)) if path else ""
        self.url = url
        self.reason = reason
        self.project = os.path.normpath(os.path.expanduser(project)) if project else ""
        self.owner = owner
        self.until = until

    @classmethod
    def read(cls, rule: str, command: str = "", *, path: str = "", url: str = "", **more: str | date) -> Exemption:
        """An exemption from the fields of a file. A command that is not one plain command is an error."""
        exemption = cls(rule, command, path=path, url=url, **more)  # type: ignore[arg-type]
        if path and not os.path.isabs(exemption.path):
            raise FairleadError("path is an absolute path, or begins with ~")
        if set("*?[") & set(path) or "*" in url:
            raise FairleadError("an exemption has no patterns: it is for one file, or one address")
        if not command:
            return exemption
        line = read(command)
        if len(line.commands) != 1 or not line.sure or line.commands[0].writes() or line.commands[0].assignments:
            raise FairleadError("command is one plain command: no pipe, variable, pattern or redirection")
        if any(set("*?[") & set(word) for word in line.commands[0].args):
            raise FairleadError("command has no patterns: an exemption is for one exact command")
        return exemption

    @property
    def match(self) -> dict[str, str]:
        """What it is about: a command, a path or a URL."""
        fields = {"command": self.command, "path": self.path, "url": self.url}
        return {name: value for name, value in fields.items() if value}

    def has_ended(self, today: date | None = None) -> bool:
        """Is its last day over?"""
        return self.until is not None and (today or date.today()) > self.until

    @cached_property
    def _wanted(self) -> Command:
        return read(self.command).commands[0]

    def covers(self, command: Command, line: PackLine, today: date | None = None) -> bool:
        """Does it cover this command of this line?"""
        if not self.command or self.has_ended(today):
            return False
        if self.project and not _lies_in(command.folder, self.project):
            return False
        if not command.sure or command.program != self._wanted.program or command.options != self._wanted.options:
            return False
        if command.writes() or command.stdin is not None or command.reads is not None:
            return False
        if not all(one.partition(" ")[0] in _SAME_PLACE for one in command.via) or _changes_environment(command, line):
            return False
        home = line.home
        if _program(command.path, command.folder, home) != _program(self._wanted.path, command.folder, home):
            return False
        return [_operand(command.folder, word, home) for word in command.operands] == [
            _operand(command.folder, word, home) for word in self._wanted.operands
        ]

    def covers_call(self, step: BeforeTool, today: date | None = None) -> bool:
        """Does it cover this call of a tool that is no shell? It does if the call is about its file or address only."""
        if self.has_ended(today) or (self.project and not _lies_in(step.cwd or "", self.project)):
            return False
        paths, url = [str(path) for path in step.target.paths], str(step.target.url or "")
        if self.url:
            return url == self.url and not paths and step.args.keys() <= _OF_ADDRESS
        if not self.path or url or len(paths) != 1:
            return False
        path = join(step.cwd or "", paths[0], os.path.expanduser("~"))
        return path == self.path and os.path.realpath(path) == path  # what a link leads to is another file

    def __repr__(self) -> str:
        return f"<Exemption from {self.rule}: {' '.join(self.match.values())}>"


_OF_ADDRESS = frozenset({"url", "method", "prompt", "timeout"})
"""Arguments of a fetch that an exemption for an address covers: what else is sent there, it has not seen."""


_SAME_PLACE = frozenset({
    "sudo", "doas", "sh", "bash", "dash", "zsh", "timeout", "nice", "ionice", "nohup", "time", "command", "exec",
    "stdbuf", "setsid", "env",
})  # fmt: skip
"""What runs a command on this machine as it stands. `ssh host` and `docker exec` run it somewhere else."""
_CHANGE_ENVIRONMENT = frozenset(
    {"export", "declare", "typeset", "alias", "source", ".", "set", "unset", "enable", "hash"}
)
_PROGRAM_FOLDERS = ("/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/opt/homebrew/bin")


def _changes_environment(command: Command, line: PackLine) -> bool:
    """May the line give the command another environment, so that it does something else?"""
    return bool(line.variables_of(command)) or any(
        one.assignments or (one.program in _CHANGE_ENVIRONMENT and one.args) for one in line.commands
    )


def _program(path: str, folder: str, home: str) -> str:
    """Which program a path is: the name of one that is installed, else where it is."""
    if "/" not in path or os.path.dirname(path) in _PROGRAM_FOLDERS:
        return os.path.basename(path)
    return join(folder, path, home)


def _lies_in(folder: str, project: str) -> bool:
    """Is a folder a project's, or in it? Links are followed: what counts is where it really is."""
    if not folder:
        return False
    real, root = os.path.realpath(folder), os.path.realpath(project)
    return real == root or real.startswith(root.rstrip("/") + "/")


def _operand(folder: str, word: str, home: str) -> str:
    """An operand in one form: a path is absolute and has no `..`."""
    text = str(word)
    return join(folder, text, home) if "/" in text or text in (".", "..", "~") else text
