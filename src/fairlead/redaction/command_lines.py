"""Finds the secrets of command lines by their place: the value of an option, a variable, a header, what is piped in.

`fairlead.shell` reads the line, so quotes, escapes, variables, wrappers and lines in lines make no difference. The
tables here only say which options and operands of a program are secrets; how a program takes its words is known to
`fairlead.shell.options`. Any text may have a command somewhere. To read all of it as a shell would take far too long,
so only the lines are read that name a program of these tables, or give something to a secret's name in quotes that the
expressions of `names` and `shapes` do not see through.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from ..shell import Command, read
from ..shell.carriers import CARRIERS, carrier_of
from ..shell.options import Argument, has_table
from ..shell.outputs import input_of, output_of
from ..shell.words import is_known
from .named_values import is_no_value, is_secret_argument
from .names import is_secret_name
from .shapes import Span

_OPTIONS = {
    "mysql mysqldump mysqladmin mysqlimport mysqlshow mysqlcheck mysqlslap mysqlbinlog mariadb mariadb-dump "
    "mariadb-admin": "--password",
    "curl": "--user: --proxy-user: --oauth2-bearer --pass --proxy-pass --tlspassword",
    "wget": "--password --http-password --ftp-password --proxy-password",
    "http https xh": "--auth:",
    "docker_login podman_login nerdctl_login buildah_login skopeo_login oras_login crane_auth_login az_login "
    "helm_registry_login twine_upload oc_login": "--password --token",
    "cf_login": "-p",
    "gh_secret_set": "--body",
    "glab_auth_login": "--token",
    "kubectl": "--token --password",
    "kubectl_create_secret": "--docker-password",
    "sshpass": "-p",
    "plink pscp psftp": "-pw",
    "redis-cli": "--pass",
    "mongo mongosh mongodump mongorestore": "--password",
    "sqlcmd bcp": "-P",
    "ldapsearch ldapmodify ldapadd ldapwhoami ldappasswd": "-w",
    "zip": "--password",
    "unzip": "-P",
    "7z 7za 7zz rar unrar": "-p",
    "ssh-keygen": "-N -P",
    "smbclient rpcclient": "--user%",
    "lftp": "-u,",
    "openssl": "-passin: -passout: -pass: -password:",
    "openssl_enc": "-k -K -pass:",
    "keytool jarsigner": "-storepass -keypass",
    "gpg gpg2": "--passphrase",
}
"""Options whose values are secrets, by program and subcommand. With a sign, only what follows that sign is one."""
_OPERANDS = {"vault_login": 1, "htpasswd": 2}  # without -b, htpasswd has no third one
"""Which operand is a secret, counted from 0 after the program."""
_INPUT = (
    "docker_login podman_login nerdctl_login buildah_login skopeo_login oras_login crane_auth_login "
    "helm_registry_login gh_auth_login glab_auth_login gh_secret_set sudo passwd cryptsetup vault_login"
)
_TAKES_INPUT = frozenset({"--password-stdin", "--with-token", "--stdin", "-S", "-"})
"""Programs that read a secret, and the words that tell them to. Some always do."""
_ALWAYS_READS = frozenset({"passwd", "cryptsetup", "gh_secret_set"})
_HEADERS = frozenset({"--header", "--proxy-header"})
_SETS_BY_NAME = frozenset({"aws", "npm", "yarn", "pnpm", "git", "gcloud", "vault", "rclone", "doppler", "wrangler"})
"""Programs with operands that are a name and its value: `aws configure set NAME VALUE`."""
_NAMES_A_RECORD = {"gcloud": "--secret"}
"""Options that say which secret is meant, and do not hold it."""


def _by_program(table: dict[str, str]) -> dict[str, dict[str, str]]:
    """The sign of each option, by program."""
    rows: dict[str, dict[str, str]] = {}
    for names, options in table.items():
        signs = {option.rstrip(":%,"): option[-1] if option[-1] in ":%," else "" for option in options.split()}
        for name in names.split():
            rows.setdefault(name, {}).update(signs)
    return rows


_SECRET_OPTIONS = _by_program(_OPTIONS)
_SECRET_INPUT = frozenset(_INPUT.split())
_SETS = frozenset({"set", "config", "create", "add"})
_ALSO = "chpasswd terraform tofu ansible ansible-playbook heroku fly psql"
_PROGRAMS = frozenset(
    name.split("_")[0] for name in (*_SECRET_OPTIONS, *_OPERANDS, *_SECRET_INPUT, *_SETS_BY_NAME, *_ALSO.split())
) - {"git", "passwd"}  # fmt: skip
"""Programs that a line has to name to be read."""
_WHOLE = 4096
"""Up to so many characters, a text that begins with a command is read as a whole, with its variables and documents."""
_LONGEST, _BESIDE = 2048, 256
"""Characters of a line that are read, and how far before a quote its name is looked for."""
_MOST = 50
"""Secrets of a line that are looked for in other spellings than their own."""

_NO_QUOTES = str.maketrans("", "", "\"'\\")
_NAMES = re.compile(r"[a-z0-9][a-z0-9-]*")
_FIRST_WORDS = frozenset({"echo", "printf", "cat", "if", "for", "while", "until", "cargo", "go", "pytest"})
_SUFFIX = re.compile(r"\.exe(?![\w.])", re.IGNORECASE)
_AFTER_A_NAME = (" ", "\t", "\n", "'", '"', "\\")
_ESCAPED = ("\\n", "\\t", "\\r")
"""What ends a line in a text that is written as JSON."""
_NEXT_IN_JSON = re.compile(r"\\n(?=[a-z][a-z-]+(?:[\s\\]|\Z))")
_IN_A_NAME = re.compile(r"[\w.-]")
_FIRST = re.compile(
    r"(?:\s*(?:[\"'\\({]|(?:\w+=)?\$\())*\s*(?:[\w-]+\s*\(\s*\)\s*[{(]\s*)?(?:\w+=(?:\\\n|\S)*\s+(?:&&\s+)?)*[\"'\\(]*([\w./-]+)"
)
_REST = re.compile(r"[^\n\\]*(?:\\(?:.|\n|\Z)[^\n\\]*)*", re.DOTALL)
_PLACED = re.compile(r"-[a-z]*[abhknpuw]\b|-h?p|pass|user|token|auth|key|cred|secret|cookie|stdin|@|login|\$'|-var|=")
_SECRETIVE = re.compile(r"pass|pwd|secret|token|key|auth|cred|cookie|://")
_SCHEME = re.compile(r"\s*(?:(?:bearer|basic|token|apikey|bot|digest|key)\s+)?", re.IGNORECASE)
_SET = re.compile(r"[\w./:=-]+=")
_COOKIE = re.compile(r"([\w.$-]+)=([^;\s]+)")
_OPERATORS, _BLANKS = re.compile(r"[;&|<>`]|\$\("), re.compile(r"\s")
_METAVAR = re.compile(r"[A-Z][A-Z_-]+|\d{1,5}|pass(?:word|wd)?|pwd|token|secret|key|value", re.ASCII)
_SNAKE = re.compile(r"[a-z]+(?:_[a-z]+)+(?:_?\d)?")
_ABSORBED = "\"'\\$"
_QUOTING = r"(?:\\\n|[\"'\\$])*"
_GAP = r"[\"'\s\\]+[\"'\\$]*"
_NEAR, _CONTEXT, _LONGEST_VALUE = 8, 16, 256
_ENDS = r"(?=[\"'\s;&|<>()`\\,}\]]|\Z)"
_END = re.compile(_ENDS)

Finder = Callable[[str], Iterator[Span]]


class _Secret(NamedTuple):
    """A secret in a word: what is before and after it there, and the word before that one."""

    value: str
    kind: str
    before: str = ""
    after: str = ""
    previous: str = ""


def command_secrets(text: str, lowered: str, find: Finder) -> Iterator[Span]:
    """The secrets of the command lines in a text. `find` finds those of a text that is no command line."""
    for start, line in _lines(text, lowered):
        left = _MOST
        for secret in {
            one: None for command in read(_SUFFIX.sub("", line)).commands for one in _secrets_of(command, line, find)
        }:
            places = [*_verbatim(secret, line)]
            if not places and left > 0:
                left -= 1
                places = [*_places_of(secret, line)]
            for at, end in places:
                if not _OPERATORS.search(line, at, end) or _is_in_quotes(line, at, end):
                    yield start + at, start + end, secret.kind


def _is_in_quotes(line: str, start: int, end: int) -> bool:
    return line[start - 1 : start] in ("'", '"') and line[end : end + 1] == line[start - 1 : start]


def _lines(text: str, lowered: str) -> Iterator[tuple[int, str]]:
    """What is read of a text: all of a command, or the rest of each line from where it names a program."""
    if len(text) <= _WHOLE and (first := _FIRST.match(text)) and _is_command(first[1]):
        plain = lowered.translate(_NO_QUOTES)
        if not _PROGRAMS.isdisjoint(_NAMES.findall(plain)) or (len(plain) < len(lowered) and _SECRETIVE.search(plain)):
            yield from _lines_of_json(text)
        return
    left, end = _WHOLE + len(text) // 4, 0
    for at in sorted([*_named_places(lowered), *_odd_places(text)]):
        rest = _REST.match(text, at, at + _LONGEST) if at >= end and left > 0 else None
        if rest and _PLACED.search(lowered, at, rest.end()):
            end = rest.end()
            left -= end - at
            yield from ((at + start, line) for start, line in _lines_of_json(rest[0]))


def _lines_of_json(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a text. In JSON, `\\n` and the name of a program begin the next one, unless they are in quotes."""
    start = 0
    for found in _NEXT_IN_JSON.finditer(text):
        line = text[start : found.start()]
        if not line.count("'") % 2 and not line.count('"') % 2:
            yield start, line
            start = found.end()
    yield start, text[start:]


def _named_places(lowered: str) -> Iterator[int]:
    """Where a text names a program of the tables."""
    plain = re.sub(r"\\[nrt]", " ", lowered) if "\\" in lowered else lowered
    for name in _PROGRAMS.intersection(_NAMES.findall(plain)):
        at = lowered.find(name)
        while at >= 0:
            end = at + len(name)
            if lowered.startswith(".exe", end):
                end += 4
            begins = lowered[max(at - 2, 0) : at] in _ESCAPED or not _IN_A_NAME.match(lowered, at - 1 if at else end)
            if lowered[end : end + 1] in _AFTER_A_NAME and begins:
                yield _start_of_pipe(lowered, at)
            at = lowered.find(name, end)


def _start_of_pipe(lowered: str, at: int) -> int:
    """Where the command begins that writes what this one reads: `echo SECRET | docker login`."""
    first = max(lowered.rfind("\n", max(at - _BESIDE, 0), at), at - _BESIDE, 0)
    pipe = lowered.rfind("|", first, at)
    writer = max(lowered.rfind("echo ", first, pipe), lowered.rfind("printf ", first, pipe)) if pipe > first else -1
    return writer if writer >= 0 else at


def _odd_places(text: str) -> Iterator[int]:
    """Where a line begins in which something is quoted that does not have to be, beside a secret's name."""
    for quoting in ("$'", "''", '""'):
        at = text.find(quoting)
        while at >= 0:
            if text[at + 2 : at + 3].isalnum() and (quoting == "$'" or text[at - 1 : at].isalnum()):
                start = max(text.rfind("\n", max(at - _BESIDE, 0), at) + 1, at - _BESIDE)
                if _SECRETIVE.search(text[start : at + 2].lower()):
                    yield start
            at = text.find(quoting, at + 2)


@lru_cache(maxsize=512)
def _is_command(word: str) -> bool:
    name = word.rpartition("/")[2]
    is_known = name in _PROGRAMS or name in CARRIERS or name in _FIRST_WORDS or has_table(name)
    return is_known or word.startswith(("./", "/", "~/", "../")) or carrier_of(name) is not None


# --- which words are secrets ----------------------------------------------------------------------------


def _secrets_of(command: Command, line: str, find: Finder) -> Iterator[_Secret]:
    rows = _rows_of(command)
    for name, value in command.assignments.items():
        if _is_given(name, value, "="):
            yield _Secret(value, "secret", f"{name}=")
    operands: list[str] = []
    for argument in command.arguments():
        if argument.value is not None and is_known(argument.value):
            yield from _of_argument(command, argument, rows, operands)
        if not argument.option:
            operands.append(argument.value or "")
    yield from _of_names(command)
    yield from _of_input(command, rows)
    for at, word in enumerate(command.args):
        if is_known(word) and word not in line:  # in quotes that the expressions do not see through
            previous = command.args[at - 1] if at else ""
            for start, end, kind in find(word):
                before, after = word[max(start - _CONTEXT, 0) : start], word[end : end + _CONTEXT]
                yield _Secret(word[start:end], kind, before, after, "" if before or after else previous)


def _rows_of(command: Command) -> list[str]:
    """The program with none, one and two of its subcommands, as the tables name it."""
    words = [command.program, *command.operands[:2]]
    return ["_".join(words[: count + 1]) for count in range(len(words))]


def _of_argument(command: Command, argument: Argument, rows: list[str], operands: list[str]) -> Iterator[_Secret]:
    option, word = argument.option, command.args[argument.at]
    value, before = word[argument.start :], word[: argument.start]
    previous = "" if before else command.args[argument.at - 1] if argument.at else command.program
    if option in _HEADERS:
        name, _, rest = value.partition(":")
        scheme = _SCHEME.match(rest)
        secret = rest[scheme.end() :] if scheme else rest
        if name.lower() != "cookie" and is_secret_argument(name, secret, " "):
            yield _Secret(secret, "authorization", value[: len(value) - len(secret)])
    elif option == "--cookie":
        for cookie in _COOKIE.finditer(value):
            if _is_plausible(cookie[2]):
                yield _Secret(cookie[2], "cookie", f"{cookie[1]}=")
    for row in rows:
        sign = _SECRET_OPTIONS.get(row, {}).get(option)
        if sign is not None:
            yield from _after_sign(value, sign, before, previous)
        if not option and _OPERANDS.get(row) == len(operands) and _is_plausible(value):
            yield _Secret(value, "password", previous=previous)


def _after_sign(value: str, sign: str, before: str, previous: str) -> Iterator[_Secret]:
    user, found, secret = value.partition(sign) if sign else ("", "", value)
    if (found or not sign) and secret != user and _is_plausible(secret):
        yield _Secret(secret, "password", f"{before}{user}{found}", "", "" if before or user else previous)


def _of_names(command: Command) -> Iterator[_Secret]:
    """What is given to a secret's name: `--token x`, `--from-literal=password=x`, `-e API_KEY=x`, `set NAME x`."""
    is_listed = command.program in _PROGRAMS
    for at, (word, after) in enumerate(pairwise([*command.args, ""])):
        if word[:1] == "-" and "=" not in word:
            if after[:1] != "-" and _is_given(word.strip("-"), after, " "):
                yield _Secret(after, "secret", previous=word)
            continue
        name, sign, value = word.rpartition("=") if word.count("=") == 2 and word[:1] == "-" else word.partition("=")
        name = name.rpartition("=")[2].rpartition(":")[2].strip("-")
        if sign:
            if (
                is_known(word)
                and word[: -len(value) - 1] != _NAMES_A_RECORD.get(command.program)
                and _SET.fullmatch(word[: len(word) - len(value)])
                and _is_given(name, value, " " if is_listed else "=")
            ):
                yield _Secret(value, "secret", word[: len(word) - len(value)])
        elif (
            command.program in _SETS_BY_NAME and not _SETS.isdisjoint(command.args[:at]) and _is_given(name, after, " ")
        ):
            yield _Secret(after, "secret", previous=word)


def _is_given(name: str, value: str, how: str) -> bool:
    return is_known(value) and is_secret_argument(name, value, how) and _is_plausible(value)


def _of_input(command: Command, rows: list[str]) -> Iterator[_Secret]:
    if command.program != "chpasswd" and _SECRET_INPUT.isdisjoint(rows):
        return
    if command.program != "chpasswd" and _ALWAYS_READS.isdisjoint(rows) and _TAKES_INPUT.isdisjoint(command.args):
        return
    before, text = command.reads, input_of(command)
    if text is None and before is not None and before.carries:  # nice echo x | ...
        text = output_of(before.inner[-1:])
    if text is None or not is_known(text):
        return
    for line in text.split("\n"):
        user, sign, secret = line.strip().partition(":") if command.program == "chpasswd" else ("", "", line.strip())
        if _is_plausible(secret):
            yield _Secret(secret, "password", f"{user}{sign}")


def _is_plausible(value: str) -> bool:
    """Whether a value in the place of a secret is one, and not a placeholder, a number or a command."""
    if len(value) < 3 or value[:1] == "-" or is_no_value(value) or _METAVAR.fullmatch(value):
        return False
    if _SNAKE.fullmatch(value) and is_secret_name(value):  # new_password
        return False
    return not (_OPERATORS.search(value) and _BLANKS.search(value))


# --- where they stand -----------------------------------------------------------------------------------


def _verbatim(secret: _Secret, line: str) -> Iterator[tuple[int, int]]:
    """Where a secret is in the line as it reads."""
    word, previous = secret.before + secret.value + secret.after, secret.previous
    at = line.find(word)
    while at >= 0 and len(word) > 2:
        end = at + len(word)
        near = line[max(0, at - len(previous) - _NEAR) : at]
        if near.rstrip(" \t\n\"'\\").endswith(previous) and not _IN_A_NAME.match(near[-1:]) and _END.match(line, end):
            yield at + len(secret.before), end - len(secret.after)
        at = line.find(word, end)


def _places_of(secret: _Secret, line: str) -> Iterator[tuple[int, int]]:
    """Where a secret is in the line as it is written, whatever quotes and escapes are in it."""
    if not 3 <= len(secret.value.strip(_ABSORBED)) <= _LONGEST_VALUE:
        return
    attempts = [secret]
    if len(secret.value) > 5:  # a variable may have it
        attempts += [secret._replace(previous=""), _Secret(secret.value, secret.kind)]
    for one in dict.fromkeys(attempts):
        for escaped in (False, True) if "$'" in line else (False,):
            if found := [match.span(1) for match in _pattern(one, escaped).finditer(line)]:
                yield from found
                return


def _pattern(secret: _Secret, escaped: bool) -> re.Pattern[str]:
    begins = r"(?<![\w-])" if len(secret.before) < _CONTEXT else ""
    previous = _spelled(secret.previous, escaped) + _GAP if secret.previous else ""
    before = _spelled(secret.before, escaped) + _QUOTING if secret.before else ""
    after = _QUOTING + _spelled(secret.after, escaped) if secret.after else _ENDS
    return re.compile(f"{begins}{previous}{before}({_spelled(secret.value, escaped)}){after}")


def _spelled(text: str, escaped: bool) -> str:
    """A pattern of all ways to write a text in quotes, and with escapes like \\x6b if these are used."""
    letters = [letter for letter in text if letter not in _ABSORBED]
    return _QUOTING.join((_escapes(one) if escaped else r"\s" if one.isspace() else re.escape(one)) for one in letters)


def _escapes(letter: str) -> str:
    code = ord(letter)
    return rf"(?:{re.escape(letter)}|(?i:x0?{code:x}|u0{{0,2}}{code:02x}|U0{{0,6}}{code:02x})|0?{code:o})"
