"""Which places of a command line hold plain data, so that a mark there hides nothing that runs.

The rule is an allowlist. Every program on the line must be listed here, and a mark may only stand where its program
takes data: a header of curl, the password in an address, the message of a commit. A program that is not listed may run
or decode any of its words, its input and its variables, so nothing is hidden beside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain, pairwise

from ..shell.commandline import CommandLine, Effort, ShellCommand, TooComplex
from .names import is_secret_name

_OPTIONS = {
    ": echo printf grep": "*",
    "curl": "-H --header -u --user -U --proxy-user -b --cookie -d --data --data-raw --json --oauth2-bearer URL",
    "wget": "--header --password --http-password URL",
    "psql": "-c --command URL",
    "mysql": "-pX --password -e --execute",
    "mysqldump mysqladmin": "-pX --password",
    "mongosh pg_dump": "URL",
    "redis-cli": "-a --pass",
    "git_clone git_remote git_fetch git_pull git_push git_ls-remote": "URL",
    "git_commit": "-m --message",
    "git_log": "-S -G",
    "git_config_http.extraheader vault_login": "*",
    "aws_configure_set heroku_config:set npm_config_set vault_kv_put": "NAME",
    "docker_login podman_login helm_registry_login twine_upload": "-p --password",
    "gh_secret_set": "-b --body",
    "docker_run podman_run": "-e --env",
    "docker_build podman_build": "--build-arg",
    "kubectl_create_secret": "--from-literal --docker-password",
    "terraform_plan terraform_apply": "-var",
    "make pytest npm_ci npm_install npm_publish npm_test git_status git_add git_diff aws_s3 gh_auth_login": "",
    "cd ls pwd true false sleep cat head tail wc tee tar jq sed python3_-m_json.tool for done fi test [ export": "",
}
"""The programs that may stand beside a mark, with their subcommands, and the options whose values are data.

`-pX` is an option with its value in the same word. `*` is any word that is no option. `NAME` is a value that is set for
a secret's name. `URL` is the user information and the query of an address.
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
_SETS_A_VARIABLE = frozenset({"-e", "--env", "--build-arg"})
_COOKIE = frozenset({"-b", "--cookie"})  # without a `=`, the value is a file
_DATABASES = frozenset({("psql",), ("mysql",)})
_RUNS_SQL = frozenset({"-c", "--command", "-e", "--execute"})

FIRST_MARK = 0xF0000
"""The first of the characters that stand for marks while a line is read. Commands do not use this plane of Unicode."""
_MARK = f"[{chr(FIRST_MARK)}-\U000ffffd]"
_MARKED = re.compile(_MARK)
_UNKNOWN = re.compile(rf"{_MARK}|\$")
WRAPPER = re.compile(r"(?:timeout\0\d+[smhd]?|if|then|else|elif|do|while|until|!|sudo|env|nohup|time)(?=\0|\Z)")
_ASSIGNS = re.compile(r"(\w+)=(.*)", re.DOTALL)
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
_COMMENT = re.compile(r"(?:^|\s)#[^\n]*")
_DEFINES = re.compile(r"\(\s*\)|\$\{\w*:?=|\$\{?_(?!\w)")
"""What defines a function, sets a variable within a word, or names the last word of the command before."""


def holds_only_data(text: str, marked: str, hidden: Mapping[str, str]) -> bool:
    """Whether what is hidden in a command line is plain data to every program on it.

    `marked` is the line with a character of `hidden` in place of each text that is hidden. A shell must find the same
    commands and words in both.
    """
    if any(mark in text for mark in hidden) or _DEFINES.search(text):
        return False
    try:
        lines = [CommandLine(one, "/", Effort({"HOME": "~"}), 0) for one in (marked, text)]
    except TooComplex:
        return False
    shown, original = (line.pipelines for line in lines)
    if not all(line.sound for line in lines) or [*map(len, shown)] != [*map(len, original)]:
        return False
    both = zip(chain.from_iterable(shown), chain.from_iterable(original), strict=True)
    if any([_restore(text, hidden) for text in _texts(one)] != _texts(other) for one, other in both):
        return False
    pipelines = [[_Marked(command) for command in pipeline] for pipeline in shown]
    commands = [*chain.from_iterable(pipelines)]
    places = [*_COMMENT.findall(marked), *chain.from_iterable(_texts(one.command) for one in commands)]
    if hidden.keys() - set("".join(places)):
        return False  # in a place that the reader drops, such as the name of a file that is read
    return all(one.holds_only_data() for one in commands) and _goes_nowhere(pipelines, commands)


def _texts(command: ShellCommand) -> list[str]:
    return [*command.words, *command.outputs, *command.inner_words, command.input, command.folder]


def _restore(text: str, hidden: Mapping[str, str]) -> str:
    return text if text.isascii() else _MARKED.sub(lambda mark: hidden.get(mark[0], mark[0]), text)


class _Marked:
    """A command of a line with marks, split into what it assigns, its program and the words of that program."""

    def __init__(self, command: ShellCommand) -> None:
        words = [*command.words]
        self.command = command
        self.assignments: dict[str, str] = {}
        while words:
            if found := _ASSIGNS.fullmatch(words[0]):
                self.assignments[found[1]] = found[2]
                del words[0]
            elif found := WRAPPER.match("\0".join(words[:3])):
                del words[: 1 + found[0].count("\0")]
            else:
                break
        if words[:2] == ["git", "-c"] and _EXTRA_HEADER.match("".join(words[2:3])):
            del words[1:3]
        self.program = next((key for n in (3, 2, 1) if (key := tuple(words[:n])) in PROGRAMS), ())
        self.is_listed = bool(self.program) or not words
        self.words = words[len(self.program) :]
        if self.program == ("export",):
            self.assignments |= dict(word.split("=", 1) for word in self.words if "=" in word)
            self.words = [word for word in self.words if "=" not in word]

    def holds_only_data(self) -> bool:
        """Whether the program is listed, and each mark stands for data of it or of a variable that holds a secret."""
        command = self.command
        if not self.is_listed or any(map(_MARKED.search, (*command.outputs, *command.inner_words, command.folder))):
            return False
        if _MARKED.search(command.input) and self.program not in _SECRET_INPUT:
            return False
        if any(_MARKED.search(value) and not is_secret_name(name) for name, value in self.assignments.items()):
            return False
        return all(self._is_data(at) for at, word in enumerate(self.words) if _MARKED.search(word))

    def _is_data(self, at: int) -> bool:
        """Whether the program takes the word at this index, which has a mark, as data."""
        options, word, before = PROGRAMS[self.program], self.words[at], self.words[at - 1] if at else ""
        if "--" in self.words[:at] or ("run" in self.program and not self._is_before_an_image(at)):
            return False
        if "*" in options and word[:1] != "-" and "-v" not in self.words:  # `printf -v` sets a variable
            return True
        if "NAME" in options and (is_secret_name(before) or ("=" in word and is_secret_name(word.partition("=")[0]))):
            return True
        if "URL" in options and _ADDRESS.fullmatch(word):
            return True
        option, _, value = word.partition("=") if word[:2] == "--" else (f"{word[:2]}X", "", word[2:])
        if before in options:
            option, value = before, word
        if option not in options or value[:1] == "@" or (option in _COOKIE and not _ASSIGNS.match(value)):
            return False
        if option in _SETS_A_VARIABLE:
            return (found := _ASSIGNS.fullmatch(value)) is not None and is_secret_name(found[1])
        return self.program not in _DATABASES or option not in _RUNS_SQL or _SQL.fullmatch(value) is not None

    def _is_before_an_image(self, at: int) -> bool:
        return all(word[:1] == "-" or before in _SETS_A_VARIABLE for before, word in pairwise(["", *self.words[:at]]))

    @property
    def hidden_variables(self) -> set[str]:
        """The variables that this command sets for a program, with a mark in their value."""
        assigned = [*self.assignments.items(), *(word.partition("=")[::2] for word in self.words)]
        return {name for name, value in assigned if _MARKED.search(value) and name.isidentifier()}


def _goes_nowhere(pipelines: list[list[_Marked]], commands: list[_Marked]) -> bool:
    """Whether nothing on a line could pass what is hidden on: a file, a pipe, or a program that reads a variable."""
    names = set().union(*(one.hidden_variables for one in commands))
    if any(one.words or one.program for one in commands) and not all(
        is_secret_name(name) or _LOCAL.fullmatch(name) for one in commands for name in one.assignments
    ):
        return False  # a variable such as PATH may decide which program runs
    if names and not all(_is_harmless(one, names) for one in commands):
        return False
    if not names and not any(one.program in _PRINTERS and any(map(_UNKNOWN.search, one.words)) for one in commands):
        return True
    piped = [pipeline for pipeline in pipelines if len(pipeline) > 1]
    return not any(one.command.outputs for one in commands) and all(
        len(pipeline) == 2 and pipeline[0].program in _PRINTERS and pipeline[1].program in _SECRET_INPUT
        for pipeline in piped
    )


def _is_harmless(command: _Marked, names: set[str]) -> bool:
    """Whether a command's words are no code, and name none of these variables but to hand it to a container."""
    texts = [word for word in command.words if not _MARKED.search(word)]
    return all(map(_PLAIN.fullmatch, [*texts, command.command.input])) and not any(
        name in word for name in names for before, word in pairwise(["", *texts]) if before not in _SETS_A_VARIABLE
    )
