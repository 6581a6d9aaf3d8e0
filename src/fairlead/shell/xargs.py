"""Programs that find the words of the commands that they run: `xargs`, `parallel`, `find -exec`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .commands import Command
from .outputs import input_of
from .shells import SHELLS, process_output
from .words import Word, is_number, joined, unknown_of
from .wrappers import Wrapper, wrapped

if TYPE_CHECKING:
    from .reading import Shell


def run_xargs(shell: Shell, command: Command) -> None:
    """`xargs rm` runs rm with the words that it reads: all at once, or as many as an option says."""
    words, _ = wrapped(
        Wrapper("aEIJLnPRsd --arg-file --delimiter --max-args --max-procs --max-chars --process-slot-var"),
        command.args,
    )
    options = _options_of_xargs(command.args[: len(command.args) - len(words)])
    words = words or ["echo"]
    text = input_of(command)
    if "a" in options:
        text = process_output(shell, command, options["a"])
    mark = options.get("I", options.get("J")) or ("{}" if "I" in options or "i" in options else "")
    if not any(mark in word for word in words):
        mark = ""  # GNU leaves the input out, others append it
    arguments = _arguments_of(text, options, bool(mark))
    if arguments is None:
        one = Word("", ("stdin",))
        words = [_put(word, mark, one) for word in words] if mark else [*words, one]
        shell.program(words, "xargs", command)
        return
    if mark:
        runs = [[_put(word, mark, one) for word in words] for one in arguments]
    elif "L" in options:
        lines = [_words_of_xargs(line) or [] for line in (text or "").split("\n") if line.strip()]
        runs = [[*words, *line] for line in lines]
        command.sure = command.sure and options["L"] == "1"
    else:
        count = int(options["n"]) if is_number(options.get("n", "")) and int(options["n"]) else len(arguments) or 1
        runs = [[*words, *arguments[at : at + count]] for at in range(0, len(arguments) or 1, count)]
        if not arguments and "r" in options:
            runs = []
    for run in runs[:_TURNS]:
        shell.program(run, "xargs", command)
    if len(runs) > _TURNS:
        shell.program([*words, Word("", ("stdin",))], "xargs", command)


_TURNS = 16
"""How many commands of one `xargs` or `parallel` are followed."""
_LONG_OF_XARGS = {
    "--arg-file": "a", "--delimiter": "d", "--max-args": "n", "--max-lines": "L", "--replace": "I", "--null": "0",
    "--no-run-if-empty": "r", "--eof": "E",
}  # fmt: skip


def _options_of_xargs(args: list[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    words = iter(args)
    for word in words:
        if word[:2] == "--":
            name, sign, value = word.partition("=")
            letter = next(
                (short for long, short in _LONG_OF_XARGS.items() if len(name) > 3 and long.startswith(name)), ""
            )
            options[letter] = value if sign or letter in "0rILE" else next(words, "")  # these take `=` only
            continue
        for at, letter in enumerate(word[1:], 2):
            if letter in "aEIJLnPRsd":
                options[letter] = word[at:] or next(words, "")
                break
            options[letter] = ""
    return options


def _arguments_of(text: str | None, options: dict[str, str], lines: bool) -> list[str] | None:
    """The words that xargs reads: of all lines, or with -I the lines, or with -0 and -d what is between the marks."""
    if text is not None and unknown_of(text) in (("*",), ("...",)):
        return [Word(word, unknown_of(text)) for word in text.split()]  # names of files, or some of the words
    if text is None or unknown_of(text) or "E" in options:
        return None
    delimiter = "\0" if "0" in options else options.get("d", "")
    if delimiter:
        delimiter = {"\\n": "\n", "\\t": "\t", "\\0": "\0"}.get(delimiter, delimiter)
        return (
            text.removesuffix(delimiter).split(delimiter) if len(delimiter) == 1 and text else [] if not text else None
        )
    if not lines:
        return _words_of_xargs(text)
    if re.search(r"[\"'\\]", text):
        return None
    return [line.lstrip() for line in text.split("\n") if line.strip()]


_WORD_OF_XARGS = re.compile(r"(?:[^\s\"'\\]|\\.|\"[^\"\n]*\"|'[^'\n]*')+", re.DOTALL)
_PIECE_OF_XARGS = re.compile(r"\\(.)|\"([^\"]*)\"|'([^']*)'", re.DOTALL)


def _words_of_xargs(text: str) -> list[str] | None:
    """Words as xargs splits them. It knows quotes and backslashes."""
    if re.search(r"\S", _WORD_OF_XARGS.sub("", text)):
        return None
    return [_PIECE_OF_XARGS.sub(lambda m: m[1] or m[2] or m[3] or "", word) for word in _WORD_OF_XARGS.findall(text)]


def _put(word: str, mark: str, value: str) -> str:
    """A word with the value where the mark stands."""
    if mark not in word:
        return word
    text, unknown = word.replace(mark, value), [*unknown_of(word), *unknown_of(value)]
    return Word(text, unknown) if unknown else text


def run_find(shell: Shell, command: Command) -> None:
    """`find DIR -exec rm {} ;`: the names that it finds are those below the folder."""
    args, at = command.args, 0
    while at < len(args):
        if args[at] in ("-exec", "-execdir", "-ok", "-okdir", "-x", "--exec", "-X", "--exec-batch"):
            rest = args[at + 1 :]
            end = next(
                (n for n, word in enumerate(rest) if word == ";" or (word == "+" and n and rest[n - 1] == "{}")),
                len(rest),
            )
            found = Word("{}", ("{}",))
            shell.program(
                [_put(word, "{}", found) if "{}" in word else word for word in rest[:end]],
                f"{command.program} -exec",
                command,
            )
            at += end + 1
        at += 1


def _lines_of(text: str) -> list[str]:
    """The lines of a text, each as well known as the text."""
    return [Word(line, unknown_of(text)) if unknown_of(text) and line else line for line in text.split("\n")]


def run_parallel(shell: Shell, command: Command) -> None:
    words, _ = wrapped(
        Wrapper(
            "ajNnLsdCSPI --jobs --max-args --max-procs --max-chars --colsep --arg-file --arg-sep --delay --timeout "
            "--retries --joblog --tmpdir --tempdir --workdir --wd --sshlogin --sshloginfile --slf --results --res "
            "--memfree --load --halt --nice --tagstring --trc --return --transferfile --tf --env --block --recstart "
            "--recend --rpl --profile --basefile --bf --header --semaphorename --limit --seqreplace"
        ),
        command.args,
    )
    signs = [at for at, word in enumerate(words) if word in (":::", "::::", ":::+")]
    arguments = words[signs[0] + 1 :] if signs else []
    words = words[: signs[0]] if signs else words
    if not arguments:
        text = input_of(command)
        arguments = [Word("", ("stdin",))] if text is None else _lines_of(text)
    odd = len(signs) > 1 or command.has("--pipe") or bool(signs and words != [] and "::::" in command.args)
    arguments = [word for word in arguments if (word or unknown_of(word)) and not word.startswith(":::")]
    odd = odd or command.has("-a", "--arg-file")
    for one in arguments[:_TURNS]:
        line = joined(words) if words else one
        if words:
            line = _put(line, "{}", one) if "{}" in line else joined([line, one])
        shell.line(line, "parallel", command, apart=True)
        if words and words[0] in SHELLS and "-c" in words:  # `-q` keeps each word as it is
            shell.program([_put(word, "{}", one) for word in words], "parallel", command)
    if odd or len(arguments) > _TURNS or re.search(r"\{[^}]", " ".join(words)):
        command.sure = False
