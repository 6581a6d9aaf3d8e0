"""Which places of a command line hold plain data, so that a mark there hides nothing that runs.

The rule is an allowlist. Every program on the line must be listed here, and a mark may only stand where its program
takes data: a header of curl, the password in an address, the message of a commit. A program that is not listed may run
or decode any of its words, its input and its variables, so nothing is hidden beside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

from ..shell import Command, read
from .names import is_secret_name

_OPTIONS = {
    ": echo printf grep": "*",
    "curl": "--header --user --proxy-user --cookie --data --data-raw --json --oauth2-bearer URL",
    "wget": "--header --password --http-password URL",
    "psql": "--command URL",
    "mysql": "--password --execute",
    "mysqldump mysqladmin": "--password",
    "mongosh pg_dump": "URL",
    "redis-cli": "--pass",
    "git_clone git_remote git_fetch git_pull git_push git_ls-remote": "URL",
    "git_commit": "--message",
    "git_log": "-S -G",
    "git_config_http.extraheader vault_login": "*",
    "aws_configure_set heroku_config:set npm_config_set vault_kv_put": "NAME",
    "docker_login podman_login helm_registry_login twine_upload": "--password",
    "gh_secret_set": "--body",
    "docker_run podman_run": "--env",
    "docker_build podman_build": "--build-arg",
    "kubectl_create_secret": "--from-literal --docker-password",
    "terraform_plan terraform_apply": "-var",
    "make pytest npm_ci npm_install npm_publish npm_test git_status git_add git_diff aws_s3 gh_auth_login": "",
    "cd ls pwd true false sleep cat head tail wc tee tar jq sed python3_-m_json.tool test [ export": "",
}
"""The programs that may stand beside a mark, with their subcommands, and the options whose values are data.

The names of options are those of `Command.options`. `*` is any operand. `NAME` is a value that is set for a secret's
name. `URL` is the user information and the query of an address.
"""
PROGRAMS = {
    tuple(name.split("_")): frozenset(options.split())
    for names, options in _OPTIONS.items()
    for name in names.split()
}  # fmt: skip
_PRINTERS = frozenset({("echo",), ("printf",)})
_SECRET_INPUT = frozenset({
    ("docker", "login"), ("podman", "login"), ("helm", "registry", "login"), ("gh", "auth", "login"),
    ("gh", "secret", "set"),
})  # fmt: skip
"""Programs that read a secret from their input."""
_SETS_A_VARIABLE = frozenset({"--env", "--build-arg"})
_NAMES_A_VARIABLE = frozenset({"-e", *_SETS_A_VARIABLE})  # as a word before the name
_DATABASES = frozenset({("psql",), ("mysql",)})
_RUNS_SQL = frozenset({"--command", "--execute"})
WRAPPERS = frozenset({"sudo", "env", "nohup", "time", "timeout"})
"""Programs that run their words, and may stand beside a mark if they have no options."""

FIRST_MARK = 0xF0000
"""The first of the characters that stand for marks while a line is read. Commands do not use this plane of Unicode."""
_MARK = f"[{chr(FIRST_MARK)}-\U000ffffd]"
_MARKED = re.compile(_MARK)
_UNKNOWN = re.compile(rf"{_MARK}|\$")
_ASSIGNS = re.compile(r"(\w+)=(.*)", re.DOTALL)
_DURATION = re.compile(r"\d+[smhd]?")
_LOCAL = re.compile(r"(?!path\Z)[a-z_]+")
_PLAIN = re.compile(r"[\w@+:,./=\[\]-]*|(?i:select|show) [\w ,.=]*")
"""A word that cannot be code in any language: it calls, quotes and expands nothing."""
_ADDRESS = re.compile(
    rf"[a-z][a-z+]*://(?:[^/\s?#@]*@)?(?!{_MARK})(?:(?!{_MARK})[^\s?#])*(?:\?(?:[\w.-]+=[^\s#&]*(?:&|\Z))*)?"
)
_SQL = re.compile(
    r"(?i:insert\s+into|alter\s+(?:user|role)|create\s+(?:user|role))\s[^\\;()]*(?:(?<=(?i:values))\s?\([^\\;()]*\))?"
)
_EXTRA_HEADER = re.compile(r"http\.extraheader=", re.IGNORECASE)
_COMMENT = re.compile(r"(?:^|(?<=\s))#[^\n]*")
_DEFINES = re.compile(r"\(\s*\)|\bfunction\b|\$\{\w*:?=|\$\{?_(?!\w)")
"""What defines a function, sets a variable within a word, or names the last word of the command before."""


def holds_only_data(text: str, marked: str, hidden: Mapping[str, str]) -> bool:
    """Whether what is hidden in a command line is plain data to every program on it.

    `marked` is the line with a character of `hidden` in place of each text that is hidden. A shell must find the same
    commands and words in both.
    """
    if any(mark in text for mark in hidden) or _DEFINES.search(text):
        return False
    shown = _commands(marked)
    if shown is None or not _reads_alike(shown, _commands(text), hidden):
        return False
    seen = "".join(part for command in shown for part in _texts(command))
    if unseen := hidden.keys() - set(seen):  # in a comment, or in a place that the reader drops
        comments = "".join(_COMMENT.findall(marked))
        if unseen - set(comments) or not _reads_alike(shown, _commands(_COMMENT.sub("", marked)), {}):
            return False
    commands = [_Marked(command) for command in shown]
    return all(one.holds_only_data() for one in commands) and _goes_nowhere(commands)


def _commands(text: str) -> list[Command] | None:
    line = read(text, "/", {"HOME": "~"})
    return line.commands if line.sound else None


def _reads_alike(shown: list[Command], others: list[Command] | None, hidden: Mapping[str, str]) -> bool:
    """Whether two lines have the same commands, once what is hidden in the first is put back."""
    return others is not None and [[_restore(part, hidden) for part in _texts(one)] for one in shown] == [
        _texts(one) for one in others
    ]


def _texts(command: Command) -> list[str]:
    return [
        command.path, *command.args, *(part for pair in command.assignments.items() for part in pair),
        *(part for redirect in command.redirects for part in redirect), command.stdin or "", command.folder,
        *command.via, str(command.pipeline), str(command.position),
    ]  # fmt: skip


def _restore(text: str, hidden: Mapping[str, str]) -> str:
    return text if text.isascii() else _MARKED.sub(lambda mark: hidden.get(mark[0], mark[0]), text)


def _is_marked(text: str) -> bool:
    return _MARKED.search(text) is not None


def _is_substitution(command: Command) -> bool:
    """Whether its output becomes a word of another command, which may be a program."""
    return any(via.endswith("(...)") for via in command.via)


class _Marked:
    """A command of a line with marks: what it assigns, its program, and the words of that program."""

    def __init__(self, command: Command) -> None:
        self.command = command
        words = [command.path, *command.args]
        if words[:2] == ["git", "-c"] and _EXTRA_HEADER.match("".join(words[2:3])):
            del words[1:3]
        self.program = next((key for n in (3, 2, 1) if (key := tuple(words[:n])) in PROGRAMS), ())
        self.words = words[len(self.program) :]
        self.arguments = list(Command(words, "", (), True).arguments())[len(self.program) - 1 :] if self.program else []
        self.assignments = dict(command.assignments)
        if self.program == ("export",):
            self.assignments |= dict(word.split("=", 1) for word in self.words if "=" in word)

    @property
    def is_listed(self) -> bool:
        if self._is_computed():
            return False
        return bool(self.program) or not self.command.program or self._only_wraps()

    def _is_computed(self) -> bool:
        """Whether a substitution may give the program: `$(echo curl) x`."""
        path = self.command.path
        return path != "" and any(_is_substitution(one) and path in " ".join(one.args) for one in self.command.inner)

    def _only_wraps(self) -> bool:
        """Whether this is a wrapper without options of its own. What it runs is a command of the line, too."""
        command = self.command
        if command.path not in WRAPPERS or len(command.inner) > 1:
            return False
        words = [word for one in command.inner for word in (one.path, *one.args)]
        own = command.args[: len(command.args) - len(words)]
        if command.args[len(own) :] != words:
            return False
        if command.path == "timeout":
            return len(own) == 1 and _DURATION.fullmatch(own[0]) is not None
        self.assignments |= dict(word.split("=", 1) for word in own if "=" in word)
        return all(_ASSIGNS.fullmatch(word) for word in own)

    def holds_only_data(self) -> bool:
        """Whether the program is listed, and each mark stands for data of it or of a variable that holds a secret."""
        command = self.command
        if not self.is_listed or any(_is_marked(part) for part in (command.folder, *command.via)):
            return False
        if _is_substitution(command) and any(map(_is_marked, _texts(command))):
            return False
        if _is_marked(command.stdin or "") and self.program not in _SECRET_INPUT:
            return False
        if any(_is_marked(one.target) and one.operator not in ("<<", "<<-", "<<<") for one in command.redirects):
            return False
        if any(_is_marked(value) and not is_secret_name(name) for name, value in self.assignments.items()):
            return False
        if self.program == ("export",) or not self.program:
            return True
        return all(self._is_data(at) for at, word in enumerate(self.words) if _is_marked(word))

    def _is_data(self, at: int) -> bool:
        """Whether the program takes the word at this index, which has a mark, as data."""
        options, word, before = PROGRAMS[self.program], self.words[at], self.words[at - 1] if at else ""
        place = at + len(self.program) - 1  # among the words after the program's name
        if "--" in self.words[:at]:
            return False
        if "*" in options and word[:1] != "-" and "-v" not in self.words:  # `printf -v` sets a variable
            return True
        if "NAME" in options and (is_secret_name(before) or ("=" in word and is_secret_name(word.partition("=")[0]))):
            return True
        if "URL" in options and _ADDRESS.fullmatch(word):
            return True
        found = next((one for one in self.arguments if one.at == place and one.option and one.value), None)
        if found is None or found.option not in options or _is_marked(word[: found.start]):
            return False
        value = word[found.start :]
        if value[:1] == "@" or (found.option == "--cookie" and not _ASSIGNS.match(value)):
            return False  # it names a file
        if found.option in _SETS_A_VARIABLE:
            is_set = (variable := _ASSIGNS.fullmatch(value)) is not None and is_secret_name(variable[1])
            return is_set and not any(not one.option for one in self.arguments if one.at < place)  # before an image
        return self.program not in _DATABASES or found.option not in _RUNS_SQL or _SQL.fullmatch(value) is not None

    @property
    def hidden_variables(self) -> set[str]:
        """The variables that this command sets for a program, with a mark in their value."""
        assigned = [*self.assignments.items(), *(word.partition("=")[::2] for word in self.words)]
        return {name for name, value in assigned if _is_marked(value) and name.isidentifier()}


def _goes_nowhere(commands: list[_Marked]) -> bool:
    """Whether nothing on a line could pass what is hidden on: a file, a pipe, or a program that reads a variable."""
    names = set().union(*(one.hidden_variables for one in commands))
    if any(one.command.program for one in commands) and not all(
        is_secret_name(name) or _LOCAL.fullmatch(name) for one in commands for name in one.assignments
    ):
        return False  # a variable such as PATH may decide which program runs
    if names and not all(_is_harmless(one, names) for one in commands):
        return False
    if not names and not any(one.program in _PRINTERS and any(map(_UNKNOWN.search, one.words)) for one in commands):
        return True
    printers = {id(one.command) for one in commands if one.program in _PRINTERS and not one.command.position}
    return all(
        one.program in _SECRET_INPUT and id(one.command.reads) in printers for one in commands if one.command.position
    ) and not any(one.command.writes() for one in commands)


def _is_harmless(command: _Marked, names: set[str]) -> bool:
    """Whether a command's words are no code, and name none of these variables but to hand it to a container."""
    words = [command.command.path, *command.command.args]
    texts = [word for word in words if not _is_marked(word)]
    return all(map(_PLAIN.fullmatch, [*texts, command.command.stdin or ""])) and not any(
        name in word for name in names for before, word in pairwise(["", *texts]) if before not in _NAMES_A_VARIABLE
    )
