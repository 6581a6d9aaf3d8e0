"""What a command writes, where the line itself says it: `echo`, `printf`, `cat` of a document, and decoders."""

from __future__ import annotations

import base64
import binascii
import os
import re
import string
from collections.abc import Callable
from itertools import pairwise

from .commands import Command
from .words import LONGEST, Word, is_number, joined, made, unknown_of

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v"}
_ESCAPED = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|0?([0-7]{1,3})|(.))", re.DOTALL)
_FORMAT = re.compile(r"%([-+ #0]*[0-9]{0,3}(?:\.[0-9]{1,3})?)([a-zA-Z%*(])")


def output_of(commands: list[Command], maybe: int = 0) -> str | None:
    """What commands write, if the line says it: `echo` and its like. The commands of a pipeline count as one.

    `maybe` is how many branches stand around all of them. What is written in a branch among them may be written or not.
    """
    texts: list[str] = []
    for at, command in enumerate(commands):
        after = commands[at + 1] if at + 1 < len(commands) else None
        if after is not None and after.pipeline == command.pipeline and after.position > command.position:
            continue  # what it writes goes to the next one
        text = output_of_command(command)
        if text is None or (after is not None and command.program in _ENDS):
            return None
        texts.append(Word(text, ("...",)) if text and command.maybe > maybe else text)
    return made(texts)


_ENDS = frozenset({"break", "continue", "return", "exit"})


def output_of_command(command: Command) -> str | None:
    """The text that a command writes to its standard output. None if only running it would tell."""
    for redirect in command.redirects:
        if redirect.operator in (">&", "<&") and is_number(redirect.target):
            if redirect.descriptor in ("", "1") and redirect.operator == ">&" and redirect.target != "1":
                return None
        elif redirect.writes and (redirect.descriptor in ("", "1") or redirect.operator[0] == "&"):
            return (
                None if redirect.target.startswith((">(", "/dev/", "/proc/")) and redirect.target != "/dev/null" else ""
            )
    return written_by(command)


def written_by(command: Command) -> str | None:
    """The text that a command writes, to wherever that goes."""
    if command.inner and any(one.via[-1:] == (f"{command.program}()",) for one in command.inner):
        return output_of(command.inner, command.maybe)
    write = WRITERS.get(command.program)
    return write(command) if write is not None else None


def input_of(command: Command) -> str | None:
    """The text that a command reads, if the line has it."""
    source = command.source
    if command.stdin is not None or source is None:
        return command.stdin
    return output_of(source.commands, source.maybe) if source.commands else None


def _echo(command: Command) -> str:
    words, escapes, newline = command.args, False, "\n"
    while words and re.fullmatch(r"-[neE]+", words[0]):
        newline = "" if "n" in words[0] else newline
        escapes = escapes or "e" in words[0]
        words = words[1:]
    text = joined(words)
    changed = _unescaped(text) if "\\" in text else text
    if changed != text and not escapes:  # bash leaves them as they are, dash and zsh do not
        return Word(changed + newline, (*unknown_of(text), "\\"))
    return _kept(text, changed + newline)


def _kept(of: str, text: str) -> str:
    """A text that is as well known as the one that it was made of."""
    return Word(text, unknown_of(of)) if unknown_of(of) else text


def _unescaped(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        if found[1] or found[2]:
            return chr(int(found[1], 16) if found[1] else int(found[2], 8) & 0xFF)
        return _ESCAPES.get(found[3], found[0])

    return _ESCAPED.sub(character, text)


def _printf(command: Command) -> str | None:
    words = command.args[1:] if command.args[:1] == ["--"] else command.args
    if not words or words[0] == "-v":
        return ""
    form, values = words[0], words[1:]
    texts: list[str] = []
    while sum(map(len, texts)) < LONGEST:  # a format is used again for the words that are left
        filled = _filled(form, values)
        if filled is None:
            return None
        texts.append(filled[0])
        values = values[filled[1] :]
        if not values or not filled[1]:
            break
    return _kept(joined(words), "".join(texts))


def _filled(form: str, values: list[str]) -> tuple[str, int] | None:
    """A format with its values, and how many it took. None if only `printf` knows what it means."""
    used = 0
    pieces: list[str] = []
    position = 0
    for found in _FORMAT.finditer(form):
        pieces.append(_unescaped(form[position : found.start()]))
        position = found.end()
        flags, kind = found[1], found[2]
        if kind == "%":
            pieces.append("%")
            continue
        value = values[used] if used < len(values) else ""
        used += 1
        if kind in "sbc":
            value = _unescaped(value) if kind == "b" else value[:1] if kind == "c" else value
            pieces.append(f"%{flags}s" % value)
        elif kind in "dixXou" and re.fullmatch(r"-?[0-9]{0,18}", value) and not (len(value) > 1 and value[0] == "0"):
            pieces.append(f"%{flags}{kind}" % int(value or 0))
        elif kind == "q" and not flags and re.fullmatch(r"[\w./:=@%+-]+", value):
            pieces.append(value)
        else:
            return None
    rest = form[position:]
    if "%" in rest:
        return None
    pieces.append(_unescaped(rest))
    return "".join(pieces), used


def _cat(command: Command) -> str | None:
    """`cat`, `cat -`, `cat <(echo x)`"""
    words = command.args
    if len(words) == 1 and words[0].startswith("<("):
        return output_of([one for one in command.inner if one.via[-1:] == ("<(...)",)], command.maybe)
    return input_of(command) if words in ([], ["-"]) else _some_of_input(command)


def _some_of_input(command: Command) -> str | None:
    """What is left of the text that it reads: all of it, or a part. Which, only running it would tell."""
    whole_lines = all(_OWN_WORD.fullmatch(word) and not _CUTS.match(word) for word in command.args)
    text = input_of(command) if whole_lines else None
    return text and Word(text, (*unknown_of(text), "..."))


_OWN_WORD = re.compile(r"-[a-zA-Z]{0,4}=?[0-9,-]{0,9}|--[a-z-]+(?:=.*)?|[0-9]{1,9}")
"""An option, or a number as its value: of a filter that reads no file."""
_CUTS = re.compile(r"-[a-zA-Z]*c|--bytes")
_COUNTS = re.compile(r"-[a-zA-Z]*[clLoq][a-zA-Z]*|--(?:count|files-with.*|only.*|quiet|silent)")


def _grep(command: Command) -> str | None:
    words = [word for word in command.args if word[:1] != "-"]
    if len(words) != 1 or any(map(_COUNTS.fullmatch, command.args)):
        return None
    text = input_of(command)
    return text and Word(text, (*unknown_of(text), "..."))


def _sed(command: Command) -> str | None:
    """`sed s/a/b/`, where it looks for a text and reads one line."""
    scripts = [word for word in command.args if word not in ("-e", "-E", "-r", "-u")]
    found = _REPLACES.fullmatch(scripts[0]) if len(scripts) == 1 else None
    text = input_of(command) if found is not None else None
    if not text or found is None or "\n" in text.removesuffix("\n"):
        return None
    old, new, line = found[2], found[3], text.removesuffix("\n")
    if old in ("^", "$"):
        line = new + line if old == "^" else line + new
    else:
        line = line.replace(old, new, -1 if "g" in found[4] else 1)
    return Word(f"{line}\n", (*unknown_of(text), "..."))


_REPLACES = re.compile(r"s([/|,#@!:])((?:\^|\$)|[^\\.*^$\[\]+?(){}|&]{1,200})\1([^\\&]{0,200})\1(g?)")


def _tr(command: Command) -> str | None:
    """`tr a-z A-Z`, `tr -d x`"""
    text = input_of(command)
    delete = command.args[:1] in (["-d"], ["--delete"])
    sets = [_characters(word) for word in command.args[delete:]]
    if text is None or unknown_of(text) or len(sets) != 2 - delete or not all(sets):
        return None
    old, new = sets[0] or "", "" if delete else sets[1] or ""
    table = {ord(sign): None if delete else new[min(at, len(new) - 1)] for at, sign in reversed(list(enumerate(old)))}
    return text.translate(table)


_CLASSES = {"[:upper:]": string.ascii_uppercase, "[:lower:]": string.ascii_lowercase, "[:digit:]": string.digits}


def _characters(word: str) -> str | None:
    """The characters of a set of `tr`. None if it is of a kind that is not known here."""
    if word in _CLASSES:
        return _CLASSES[word]
    if (
        (unknown_of(word) and unknown_of(word) != ("*",))
        or (word[:1] == "-" and len(word) > 1)
        or "[:" in word
        or "[=" in word
    ):
        return None
    text = _unescaped(word)
    return re.sub(
        "(.)-(.)", lambda m: "".join(map(chr, range(ord(m[1]), min(ord(m[2]) + 1, 0x250)))), text, flags=re.DOTALL
    )


def _tac(command: Command) -> str | None:
    text = None if command.args else input_of(command)
    return None if text is None else _kept(text, "".join(reversed(text.splitlines(keepends=True))))


def _tee(command: Command) -> str | None:
    return input_of(command)


def _base64(command: Command) -> str | None:
    text = input_of(command) if command.operands in ([], ["-"]) else None
    if text is None or unknown_of(text) or not command.has("--decode", "-d", "-D"):
        return None
    try:
        return base64.b64decode(text.strip(), validate=False).decode("utf-8", "replace")
    except (ValueError, binascii.Error):
        return None


def _xxd(command: Command) -> str | None:
    text = input_of(command) if command.operands in ([], ["-"]) else None
    if text is None or unknown_of(text) or not (command.has("-r") and command.has("-p")):
        return None
    try:
        return bytes.fromhex(text).decode("utf-8", "replace")
    except ValueError:
        return None


def _rev(command: Command) -> str | None:
    text = None if command.args else input_of(command)
    return None if text is None else _kept(text, "\n".join(line[::-1] for line in text.split("\n")))


def _nothing(_: Command) -> str:
    return ""


def _pwd(command: Command) -> str | None:
    return command.folder + "\n" if command.folder else None


def _type(command: Command) -> str | None:
    return _which(command) if command.args[:1] in (["-p"], ["-P"]) else None


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


def _ls(command: Command) -> str | None:
    """The names of all files of a folder."""
    return None if command.operands else Word("*", ("*",))


def _find(command: Command) -> str | None:
    """The names of all files of folders, unless it looks for some of them."""
    if any(word[:1] == "-" and word not in _FIND_TAKES_ALL for word in command.args):
        return None
    folders = [word for before, word in pairwise(("", *command.args)) if not _is_value(word, before)]
    return Word("".join(f"{folder.rstrip('/')}/*\n" for folder in folders or ["."]), ("*",))


_FIND_TAKES_ALL = frozenset({"-type", "-maxdepth", "-mindepth", "-print", "-print0", "-xdev", "-mount", "-depth", "-L"})


def _is_value(word: str, before: str) -> bool:
    return word[:1] == "-" or before in ("-type", "-maxdepth", "-mindepth")


def _compgen(command: Command) -> str | None:
    """`compgen -f a` gives the names that begin so, and `compgen -G 'a*'` those that a pattern stands for."""
    prefix = "".join(command.operands[-1:])
    pattern = f"{prefix}*" if command.has("-f") else command.options.get("-G")
    return None if pattern is None else Word(pattern, ("*",))


def _mktemp(command: Command) -> str | None:
    return None if command.operands else Word("/tmp/tmp.XXXXXXXXXX\n", ("$(...)",))  # noqa: S108


def _redirected(command: Command) -> str | None:
    """`$(< file)` is the text of a file. Without a program, nothing else is written."""
    return command.stdin if any(redirect.operator == "<" for redirect in command.redirects) else ""


def _command_v(command: Command) -> str | None:
    """`command -v NAME` prints it; without an option, the program that it runs."""
    if command.has("-v", "-V"):
        return _which(command)
    return output_of(command.inner, command.maybe)


def _inner(command: Command) -> str | None:
    """A program that only runs another."""
    return output_of(command.inner, command.maybe) if command.inner and command.sure else None


WRITERS: dict[str, Callable[[Command], str | None]] = {
    "echo": _echo, "printf": _printf, "cat": _cat, "tee": _tee, "base64": _base64, "xxd": _xxd, "rev": _rev,
    "tr": _tr, "tac": _tac, "type": _type, "pwd": _pwd, "which": _which, "basename": _basename, "dirname": _dirname,
    "ls": _ls, "find": _find, "mktemp": _mktemp, "command": _command_v, "builtin": _inner, "env": _inner,
    "sudo": _inner, "exec": _inner, "eval": _inner, "sh": _inner, "bash": _inner, "zsh": _inner, "dash": _inner,
    "": _redirected, ":": _nothing, "true": _nothing, "false": _nothing, "cd": _nothing, "export": _nothing,
    "set": _nothing, "unset": _nothing, "local": _nothing, "declare": _nothing, "sleep": _nothing,
    **dict.fromkeys(("head", "tail", "sort", "uniq", "nl", "column", "pv", "dd", "sponge", "shuf"), _some_of_input),
    "grep": _grep, "egrep": _grep, "fgrep": _grep, "sed": _sed, "stdbuf": _inner, "nice": _inner, "timeout": _inner,
    "compgen": _compgen, "mkdir": _nothing, "touch": _nothing, "alias": _nothing, "shopt": _nothing, "read": _nothing,
}  # fmt: skip
