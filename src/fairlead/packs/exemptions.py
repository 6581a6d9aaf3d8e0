"""Exemptions: a rule that does not speak about one exact command, in one folder, until a day.

An exemption is read as strictly as a command: it matches a command with the same program, the same options and the
same operands, whatever way the line spells them, and no other.
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
    from .lines import PackLine


class Exemption:
    """One `[[exemption]]`."""

    def __init__(
        self, rule: str, command: str, reason: str, project: str = "", owner: str = "", until: date | None = None
    ) -> None:
        self.rule = rule
        self.command = command
        self.reason = reason
        self.project = os.path.normpath(os.path.expanduser(project)) if project else ""
        self.owner = owner
        self.until = until

    @classmethod
    def read(
        cls, rule: str, command: str, reason: str, project: str = "", owner: str = "", until: date | None = None
    ) -> Exemption:
        """An exemption from the fields of a file. A command that is not one plain command is an error."""
        line = read(command)
        if len(line.commands) != 1 or not line.sure or line.commands[0].writes() or line.commands[0].assignments:
            raise FairleadError("command is one plain command: no pipe, variable, pattern or redirection")
        if any(set("*?[") & set(word) for word in line.commands[0].args):
            raise FairleadError("command has no patterns: an exemption is for one exact command")
        return cls(rule, command, reason, project, owner, until)

    @cached_property
    def _wanted(self) -> Command:
        return read(self.command).commands[0]

    def covers(self, command: Command, line: PackLine, today: date | None = None) -> bool:
        """Does it cover this command of this line?"""
        if self.until is not None and (today or date.today()) > self.until:
            return False
        if self.project and not _lies_in(command.folder, self.project):
            return False
        if not command.sure or command.program != self._wanted.program or command.options != self._wanted.options:
            return False
        if command.assignments or command.writes() or command.stdin is not None or command.reads is not None:
            return False
        home = line.home
        return [_operand(command.folder, word, home) for word in command.operands] == [
            _operand(command.folder, word, home) for word in self._wanted.operands
        ]

    def __repr__(self) -> str:
        return f"<Exemption from {self.rule}: {self.command}>"


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
