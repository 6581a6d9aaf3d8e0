"""The files that a line writes, for the commands after it that run them: `echo x > s; sh s`."""

from __future__ import annotations

from .commands import Command


class Files:
    """The files that commands of the line write, for those that run them later."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        """All commands in the order in which they were found."""
        self._written: dict[str, list[Command] | None] = {}

    def write(self, path: str, command: Command | None, operator: str = ">") -> None:
        """Without a command, what the file has is not known."""
        old = self._written.get(path)
        if command is None or (operator in (">>", "&>>") and (old is None or path not in self._written)):
            self._written[path] = None
        else:
            self._written[path] = [*(old or ()), command] if operator in (">>", "&>>") else [command]

    def writers_of(self, path: str) -> list[Command] | None:
        """The commands that wrote a file. None if the line does not say what it has."""
        return self._written.get(path)

    def names(self, file: str, by: Command) -> bool:
        """Does a command before this one name a file, so that it may have written it?"""
        name = file.rsplit("/", 1)[-1]
        for command in self.commands:
            if command is by:
                return False
            if command.inner and any(one is by for one in command.walk()):
                continue  # it runs this one
            words = command.writes() if command.program in _LOOKS_ONLY else (*command.args, *command.writes())
            if any(name in word for word in words):
                return True
        return False


_LOOKS_ONLY = frozenset(
    {"chmod", "test", "[", "ls", "cat", "stat", "file", "head", "tail", "grep", "wc", "cd", "echo", "printf"}
)
