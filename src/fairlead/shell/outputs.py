"""What a command writes, where the line itself says it: `echo`, `printf`, `cat` of a document, and decoders."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Callable

from .commands import Command
from .words import LONGEST, Word, unknown_of

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v"}
_ESCAPED = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|0?([0-7]{1,3})|(.))", re.DOTALL)
_FORMAT = re.compile(r"%(?:([-0-9.]*)([sdbqcxo])|%)")


def output_of(commands: list[Command]) -> str | None:
    """What commands write, if the line says it: `echo` and its like. The commands of a pipeline count as one."""
    texts: list[str] = []
    for at, command in enumerate(commands):
        after = commands[at + 1] if at + 1 < len(commands) else None
        if after is not None and after.pipeline == command.pipeline and after.position > command.position:
            continue  # what it writes goes to the next one
        text = output_of_command(command)
        if text is None:
            return None
        texts.append(text)
    unknown = [one for text in texts for one in unknown_of(text)]
    joined = "".join(texts)
    return Word(joined, unknown) if unknown else joined


def output_of_command(command: Command) -> str | None:
    """The text that a command writes. None if only running it would tell."""
    return "" if command.writes() else written_by(command)


def written_by(command: Command) -> str | None:
    """The text that a command writes, to wherever its redirections lead."""
    write = WRITERS.get(command.program)
    return write(command) if write is not None else None


def input_of(command: Command) -> str | None:
    """The text that a command reads, if the line has it."""
    if command.stdin is not None:
        return command.stdin
    return output_of([command.reads]) if command.reads is not None else None


def _joined(words: list[str]) -> str:
    unknown = [one for word in words for one in unknown_of(word)]
    text = " ".join(words)
    return Word(text, unknown) if unknown else text


def _echo(command: Command) -> str:
    words, escapes, newline = command.args, False, "\n"
    while words and re.fullmatch(r"-[neE]+", words[0]):
        newline = "" if "n" in words[0] else newline
        escapes = escapes or "e" in words[0]
        words = words[1:]
    text = _joined(words)
    return _kept(text, (_unescaped(text) if escapes or "\\" in text else text) + newline)


def _kept(of: str, text: str) -> str:
    """A text that is as well known as the one that it was made of."""
    return Word(text, unknown_of(of)) if unknown_of(of) else text


def _unescaped(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        if found[1] or found[2]:
            return chr(int(found[1], 16) if found[1] else int(found[2], 8) & 0xFF)
        return _ESCAPES.get(found[3], found[0])

    return _ESCAPED.sub(character, text)


def _printf(command: Command) -> str:
    words = command.args[1:] if command.args[:1] == ["--"] else command.args
    if not words or words[0] == "-v":
        return ""
    form, values = _unescaped(words[0]), words[1:]
    text, used = _filled(form, values)
    while used and values[used:] and len(text) < LONGEST:  # a format is used again for the words that are left
        values = values[used:]
        more, used = _filled(form, values)
        text += more
    return _kept(_joined(words), text)


def _filled(form: str, values: list[str]) -> tuple[str, int]:
    """A format with its values, and how many it took."""
    used = 0

    def fill(found: re.Match[str]) -> str:
        nonlocal used
        if found[0] == "%%":
            return "%"
        value = values[used] if used < len(values) else ""
        used += 1
        return value[:1] if found[2] == "c" else _unescaped(value) if found[2] == "b" else value

    return _FORMAT.sub(fill, form), used


def _cat(command: Command) -> str | None:
    if command.options:
        return None
    return input_of(command) if command.operands in ([], ["-"]) else command.written


def _ls(command: Command) -> str | None:
    """The names of all files of a folder."""
    return None if command.operands else Word("*", ("*",))


def _tee(command: Command) -> str | None:
    return input_of(command)


def _mktemp(command: Command) -> str | None:
    return None if command.operands else Word("/tmp/tmp.XXXXXXXXXX\n", ("$(...)",))  # noqa: S108


def _base64(command: Command) -> str | None:
    text = input_of(command)
    if text is None or unknown_of(text) or not command.has("--decode", "-d", "-D"):
        return None
    try:
        return base64.b64decode(text.strip(), validate=False).decode("utf-8", "replace")
    except (ValueError, binascii.Error):
        return None


def _xxd(command: Command) -> str | None:
    text = input_of(command)
    if text is None or unknown_of(text) or not (command.has("-r") and command.has("-p")):
        return None
    try:
        return bytes.fromhex(text).decode("utf-8", "replace")
    except ValueError:
        return None


def _rev(command: Command) -> str | None:
    text = input_of(command)
    return None if text is None else _kept(text, "\n".join(line[::-1] for line in text.split("\n")))


def _nothing(_: Command) -> str:
    return ""


def _redirected(command: Command) -> str | None:
    """`$(< file)` is the text of a file. Without a program, nothing else is written."""
    return command.stdin if any(redirect.operator == "<" for redirect in command.redirects) else ""


def _pwd(command: Command) -> str | None:
    return command.folder + "\n" if command.folder else None


def _which(command: Command) -> str | None:
    """The path of a program, in a folder that is not known."""
    return Word("".join(f"/bin/{name}\n" for name in command.operands), ("$(...)",)) if command.operands else None


def _basename(command: Command) -> str | None:
    return _edited(command, lambda word: os.path.basename(word.rstrip("/")))


def _dirname(command: Command) -> str | None:
    return _edited(command, lambda word: os.path.dirname(word.rstrip("/")) or ".")


def _edited(command: Command, edit: Callable[[str], str]) -> str | None:
    if len(command.operands) != 1 or command.options:
        return None
    (word,) = command.operands
    return _kept(word, edit(word) + "\n")


def _command_v(command: Command) -> str | None:
    """`command -v NAME` prints it; without an option, the program that it runs."""
    if command.has("-v", "-V"):
        return _which(command)
    return output_of(command.inner)


def _inner(command: Command) -> str | None:
    """A program that only runs another."""
    return output_of(command.inner) if command.inner else None


WRITERS: dict[str, Callable[[Command], str | None]] = {
    "echo": _echo, "printf": _printf, "cat": _cat, "tee": _tee, "base64": _base64, "xxd": _xxd, "rev": _rev,
    "pwd": _pwd, "which": _which, "basename": _basename, "dirname": _dirname, "ls": _ls, "mktemp": _mktemp,
    "command": _command_v, "builtin": _inner, "env": _inner, "sudo": _inner,
    "exec": _inner, "eval": _inner, "sh": _inner, "bash": _inner, "zsh": _inner, "dash": _inner,
    "": _redirected, ":": _nothing, "true": _nothing, "false": _nothing, "cd": _nothing, "export": _nothing,
    "set": _nothing, "unset": _nothing, "local": _nothing, "declare": _nothing, "sleep": _nothing,
    "mkdir": _nothing, "touch": _nothing, "alias": _nothing, "shopt": _nothing, "read": _nothing,
}  # fmt: skip
