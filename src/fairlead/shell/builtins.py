"""A shell's own commands, as far as they change what the commands after them do: `cd`, `export`, `read`, `set`."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from .commands import Command, Feed
from .outputs import input_of, output_of_command
from .words import Word, is_exact, is_number, split_at, unknown_of

if TYPE_CHECKING:
    from .reading import Shell

_ASSIGNS = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=(.*)", re.DOTALL)
_KNOWN_TO_READ = "adinNptu"
"""Options of `read` that take a value."""


def change_folder(shell: Shell, command: Command) -> None:
    words = [word for word in command.args if word == "-" or word[:1] != "-"]
    shell.change_folder(words[0] if words else "-" if command.program == "popd" else "~")


def declare(shell: Shell, command: Command) -> None:
    """`export A=1`, `declare -x A`, `local A=1`. What `declare` makes of a value of another kind is not known."""
    flags = "".join(word for word in command.args if word[:1] in "-+" and len(word) > 1)
    exports = (command.program == "export" and "n" not in flags) or "x" in flags.replace("+x", "")
    odd = command.program != "export" and any(letter in flags for letter in "nAcF")
    case = str.lower if "l" in flags else str.upper if "u" in flags else None
    own = command.program == "local" or (command.program in ("declare", "typeset") and "g" not in flags)
    for word in command.args:
        found = _ASSIGNS.fullmatch(word)
        name = found[1] if found else word
        if "i" in flags:
            shell.words.integers.add(name)
        evaluate_index(shell, command, word.partition("=")[0])
        if own and shell.locals:
            shell.locals[-1].setdefault(name, shell.variables.get(name))
        if exports:
            shell.exported.add(name)
        if found is None:
            continue
        text = found[3] if case is None or command.program == "export" else case(found[3])
        text = Word(text, unknown_of(word)) if unknown_of(word) else text
        if odd:
            shell.variables[name] = None
            if "n" in flags:
                shell.words.references |= {name, str(text)}
                evaluate_index(shell, command, text)
        elif "i" in flags and command.program != "export":
            shell.evaluate(command, text)
            shell.variables[name] = shell.words.calculated(text) if is_exact(text) and not found[2] else None
        elif found[2]:
            old = shell.variables.get(name)
            shell.variables[name] = old + text if type(old) is str and is_exact(text) else None
        else:
            shell.variables[name] = text
    if exports:
        shell.note_environment(command, [word.partition("=")[0] for word in command.args])


def unset(shell: Shell, command: Command) -> None:
    for name in command.operands:
        evaluate_index(shell, command, name)
        if shell.maybe:
            shell.variables[name] = None
        else:
            shell.variables.pop(name, None)
            shell.functions.pop(name, None)


def evaluate_index(shell: Shell, command: Command, name: str) -> None:
    """A name that is given to a command may have an index, which is calculated: `unset 'a[i]'`."""
    if "[" in name:
        shell.evaluate(command, name)


def test(shell: Shell, command: Command) -> None:
    """`test -v 'a[i]'`"""
    for word, after in pairwise(command.args):
        if word == "-v":
            evaluate_index(shell, command, after)


def set_arguments(shell: Shell, command: Command) -> None:
    """`set -- a b` sets the positional parameters, and `set -a` exports what is set from now on."""
    args = command.args
    values: list[str] | None = None
    for at, word in enumerate(args):
        if word in ("--", "-"):
            values = args[at + 1 :]
            break
        if word[:1] not in ("-", "+"):
            if at and args[at - 1][:1] in ("-", "+") and args[at - 1].endswith("o"):
                continue
            values = args[at:]
            break
    if args[:1] == ["-a"] or "allexport" in args or re.match(r"-\w*a", args[0] if args else ""):
        shell.exports_all = True
    if values is not None:
        shell.words.arguments = None if shell.maybe else values


def shift(shell: Shell, command: Command) -> None:
    if shell.words.arguments is not None:
        count = int(command.args[0]) if command.args and is_number(command.args[0]) else 1
        shell.words.arguments = None if shell.maybe else shell.words.arguments[count:]


def alias(shell: Shell, command: Command) -> None:
    for word in command.operands:
        name, sign, text = word.partition("=")
        if sign:
            shell.aliases[name] = Word(text, unknown_of(word)) if unknown_of(word) else text


def read_words(shell: Shell, command: Command) -> None:
    """`read a b`: the words of the line that it reads. The next `read` gets the line after it."""
    names, options = _options_of_read(command.args)
    for name in names:
        evaluate_index(shell, command, name)
    text = input_of(command) if "u" not in options else shell.text_behind(command, options["u"])
    line = None
    if text is not None and not unknown_of(text) and not set(options) & set("inNt"):
        line, _, rest = text.partition(options.get("d", "\n")[:1] or "\0")
        if command.source is not None and command.source is shell.feed:
            shell.feed = Feed(rest, [])
        if "\\" in line and "r" not in options:
            line = None
    separators = shell.variables.get("IFS", " \t\n")
    if text is not None and unknown_of(text) == ("*",):  # `ls | while read f`
        words: list[str] | None = [Word(text.strip(), ("*",))]
    elif line is None or not isinstance(separators, str) or not is_exact(separators):
        words = None
    else:
        words = _fields(line, separators, 0 if "a" in options else len(names)) if names or options else [line]
    if "a" in options:
        shell.variables[options["a"]] = words
        return
    for at, name in enumerate(names or ["REPLY"]):
        shell.variables[name] = None if words is None else words[at] if at < len(words) else ""


def _options_of_read(args: list[str]) -> tuple[list[str], dict[str, str]]:
    options: dict[str, str] = {}
    names: list[str] = []
    words = iter(args)
    for word in words:
        if word[:1] != "-" or len(word) < 2 or names:
            names.append(word)
            continue
        for at, letter in enumerate(word[1:], 2):
            if letter in _KNOWN_TO_READ:
                options[letter] = word[at:] or next(words, "")
                break
            options[letter] = ""
    return [name for name in names if name != "--"], options


def _fields(line: str, separators: str, most: int) -> list[str] | None:
    """The words of a line, of which the last has the rest. 0: as many as there are."""
    if not separators:
        return [line]
    blanks = "".join(sign for sign in separators if sign in " \t\n")
    line = line.strip(blanks) if blanks else line
    if blanks and blanks != separators:
        fields = split_at(line, separators)
        return fields if all(map(is_exact, fields)) and (not most or len(fields) <= most) else None
    sign = f"[{re.escape(separators)}]"
    fields = re.split(f"{sign}+" if blanks else sign, line, maxsplit=max(most - 1, 0) if most != 1 else 0)
    return [line] if most == 1 else fields


def read_lines(shell: Shell, command: Command) -> None:
    """`mapfile -t NAME`: an array of the lines that it reads."""
    text = input_of(command)
    names = command.operands or ["MAPFILE"]
    options = command.options
    mark = (options.get("-d") or "\0")[0] if "-d" in options else "\n"
    if callback := options.get("-C"):
        shell.line(callback, "mapfile -C", command)
    evaluate_index(shell, command, names[-1])
    known = text is not None and not unknown_of(text) and options.keys() <= {"-t", "-d"}
    shell.variables[names[-1]] = text.removesuffix(mark).split(mark) if known and text else None


def get_options(shell: Shell, command: Command) -> None:
    """`getopts` sets a name, and OPTARG."""
    for name in (*command.args[1:2], "OPTARG", "OPTIND"):
        shell.variables[name] = None


def let(shell: Shell, command: Command) -> None:
    for word in command.args:
        shell.evaluate(command, word)


def print_formatted(shell: Shell, command: Command) -> None:
    """`printf -v NAME FORMAT` sets a variable."""
    if command.args[:1] == ["-v"] and len(command.args) > 2:
        inner = Command(["printf", *command.args[2:]], command.folder, command.via, command.sure)
        evaluate_index(shell, command, command.args[1])
        shell.variables[command.args[1]] = output_of_command(inner)


def complete(shell: Shell, command: Command) -> None:
    """`compgen -C LINE` runs a line, `compgen -W WORDS` expands words, and `complete` has the same done later."""
    for option, value in pairwise((*command.args, "")):
        if option == "-C":
            shell.line(value, f"{command.program} -C", command)
        elif option == "-W":
            shell.evaluate(command, value)
    if command.program == "complete":
        enable(shell, command)


def enable(shell: Shell, command: Command) -> None:
    """`enable -f`, `hash -p` and `complete -C` change which program a name means."""
    if command.has({"enable": "-f", "hash": "-p"}.get(command.program, "-C")) and command.args[1:]:
        command.sure = shell.sure = False


def write_copies(shell: Shell, command: Command) -> None:
    """`tee FILE` writes what it reads."""
    for file in command.operands:
        shell.files.write(
            shell.path_of(file), None if shell.maybe else command, ">>" if command.has("--append") else ">"
        )
        if file.startswith(">("):
            command.sure = False
