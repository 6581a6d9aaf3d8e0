"""Programs that run other commands, and what a shell's own commands do to the commands after them.

A carrier is a function of the shell that follows the line, and of the command. It finds the command or the line that
is run inside, and has the shell follow that, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from . import builtins
from .commands import Command, Feed, quote
from .interpreters import INTERPRETER, run_awk, run_code, run_editor, run_make, run_sed
from .outputs import input_of, output_of
from .syntax import DECLARES
from .words import Word, is_exact, made, unknown_of
from .wrappers import WRAPPERS, Wrapper, doubts, wrapped

if TYPE_CHECKING:
    from .reading import Shell

Carrier: TypeAlias = "Callable[[Shell, Command], None]"
_CHDIR = re.compile(r"(?:-[CD]|--chdir=?|--cwd=?|--directory=?|--working-directory=?)(.*)")
_STDIN = frozenset({"/dev/stdin", "/dev/fd/0", "-", "/proc/self/fd/0"})
SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "fish", "rbash", "csh", "tcsh", "yash", "pdksh"})


def _wrapper(shell: Shell, command: Command) -> None:
    wrapper = WRAPPERS[command.program]
    words, assignments = wrapped(wrapper, command.args)
    if assignments:
        command.assignments.update(assignments)
        shell.note_environment(command, list(assignments))
    if not words:
        return
    via = " ".join([command.program, *[word for word in command.args[:3] if word in wrapper.subcommands]])
    if command.program in _ELSEWHERE:
        with shell.elsewhere(), shell.environment(dict(assignments)):
            _run_wrapped(shell, command, wrapper, words, via)
    else:
        with shell.environment(dict(assignments)):
            _run_wrapped(shell, command, wrapper, words, via)


def _run_wrapped(shell: Shell, command: Command, wrapper: Wrapper, words: list[str], via: str) -> None:
    folder, before = shell.words.folder, shell.before
    own = command.args[: len(command.args) - len(words)]
    for option, value in pairwise((*own, "")):
        if found := _CHDIR.fullmatch(option):
            shell.change_folder(found[1] or value)
    if wrapper.line:
        shell.line(joined(words), via, command, apart=True, feed=command.source)
    else:
        shell.program(words, via, command)
        for skipped in range(1, min(doubts(wrapper, own), 4) + 1):  # an option that is not known may have a value
            command.sure = False
            shell.program(words[skipped:], via, command, sure=False)
    shell.words.folder, shell.before = folder, before


_ELSEWHERE = frozenset(
    {
        "sudo",
        "doas",
        "pkexec",
        "gosu",
        "su-exec",
        "docker",
        "podman",
        "nerdctl",
        "kubectl",
        "oc",
        "lxc",
        "incus",
        "machinectl",
        "ssh",
        "mosh",
        "autossh",
        "nsenter",
        "chroot",
    }
)
"""What these run has an environment of its own."""


def joined(words: list[str]) -> str:
    """Words as one line."""
    return made([part for word in words for part in (" ", word)][1:])


def _sudo(shell: Shell, command: Command) -> None:
    words, _ = wrapped(WRAPPERS[command.program], command.args)
    own = _without(command, words)
    if command.program == "sudo" and not words and own.has("-s", "--shell", "-i", "--login"):
        shell.program(["sh"], "sudo", command)
    elif not own.has("-e", "--edit", "-l", "--list"):
        _wrapper(shell, command)


def _without(command: Command, words: list[str]) -> Command:
    """A command without the words of the one that it runs, whose options are none of its own."""
    own = command.args[: len(command.args) - len(words)]
    return Command([command.program, *own], command.folder, command.via, command.sure)


def _env(shell: Shell, command: Command) -> None:
    """`env -S 'rm x'` splits its text into words."""
    words, _ = wrapped(WRAPPERS["env"], command.args)
    own = _without(command, words)
    for at, word in enumerate(own.args):
        if re.match(r"-\w*S|--split-string", word):
            text = word.partition("=")[2] if word.startswith("--") else word.partition("S")[2]
            before, rest = command.args[:at], command.args[at + 1 :]
            if not text:
                text, rest = (rest or [""])[0], rest[1:]
            line = joined(["env", *before, text, *map(quote, rest)])
            shell.line(line, "env -S", command, apart=True, feed=command.source)
            if re.search(r"[$\\]", text) or not is_exact(line):
                command.sure = False
            return
        if word[:1] != "-":
            break
    if own.has("-i", "--ignore-environment", "-u", "--unset") or "-" in own.args[:1]:
        with shell.elsewhere():
            _wrapper(shell, command)
    else:
        _wrapper(shell, command)


def _command_builtin(shell: Shell, command: Command) -> None:
    at = 0
    while at < len(command.args) and re.fullmatch(r"-[a-zA-Z]+|--", command.args[at]):
        if "v" in command.args[at].lower():
            return
        at += 1
    if at < len(command.args):
        shell.program(command.args[at:], "command", command)


# --- shells -------------------------------------------------------------------------------------


def _shell(shell: Shell, command: Command) -> None:
    """`sh -c LINE`, `... | sh`, `sh <<END`. A file that it runs is not looked into."""
    args, at = command.args, 0
    while at < len(args):
        word = args[at]
        if word in ("--", "-"):
            at += 1
            break
        if word.startswith("--"):
            if word in ("--rcfile", "--init-file") and at + 1 < len(args):
                run_script(shell, command, args[at + 1], [])
                at += 1
            at += 1
            if word.startswith(("--rcfile", "--init-file", "--init-command")):
                command.sure = False
            if word.startswith("--command="):  # fish
                _run_line(shell, command, word.partition("=")[2], [])
                return
            if word == "--command" and at < len(args):
                _run_line(shell, command, args[at], args[at + 1 :])
                return
        elif word[:1] in "-+" and len(word) > 1:
            if "c" in word[1:] and word[0] == "-":
                at += 1
                while at < len(args) and args[at][:1] in ("-", "+") and args[at] not in ("--", "-"):
                    at += 2 if args[at] in ("-o", "+o", "-O", "+O") else 1
                if at < len(args) and args[at] in ("--", "-"):
                    at += 1
                if at < len(args):
                    _run_line(shell, command, args[at], args[at + 1 :])
                return
            if "s" in word[1:] and word[0] == "-":
                _run_input(shell, command, args[at + 2 :] if args[at + 1 : at + 2] == ["--"] else args[at + 1 :])
                return
            at += 2 if word in ("-o", "+o", "-O", "+O") else 1
        else:
            break
    if at < len(args) and args[at] not in _STDIN:
        run_script(shell, command, args[at], args[at + 1 :])
    else:
        _run_input(shell, command, args[at + 1 :])


def _run_line(shell: Shell, command: Command, text: str, given: list[str]) -> None:
    with _arguments(shell, given[0] if given else command.program, given[1:]):
        _line_of_shell(shell, command, text, f"{command.program} -c", command.source)


def _line_of_shell(shell: Shell, command: Command, text: str, via: str, feed: Feed | None = None) -> None:
    """A line that a shell runs. `sh` may be dash, which takes what bash has of its own for plain text."""
    if command.program in ("sh", "dash", "ash") and _BASH_ONLY.search(text):
        text = Word(text, (*unknown_of(text), "sh"))
    if not is_exact(text):
        command.sure = False
    shell.line(text, via, command, apart=True, feed=feed)


_BASH_ONLY = re.compile(r"\$['\"]|\{[^{}\s]*(?:,|\.\.)[^{}\s]*\}|<<<|\$\{\w+(?:[/^,:@]|\[)(?![-=+?])")


@contextmanager
def _arguments(shell: Shell, name: str, arguments: list[str]) -> Iterator[None]:
    """The positional parameters of another shell."""
    old, old_name = shell.words.arguments, shell.words.name
    shell.words.arguments, shell.words.name = arguments, name
    yield
    shell.words.arguments, shell.words.name = old, old_name


def run_script(shell: Shell, command: Command, file: str, arguments: list[str], *, apart: bool = True) -> None:
    """A script is a file, or a process: `sh <(echo rm x)`. Only one that the line itself wrote is looked into."""
    text = _process(shell, command, file) if file.startswith("<(") else shell.script_of(command, file)
    if text is None:
        return
    first = text.partition("\n")[0]
    if first[:2] == "#!" and not _SHELL_LINE.search(first) and command.program not in SHELLS:
        command.sure = False
        return
    with _arguments(shell, file, arguments if apart or arguments else shell.words.arguments or []):
        shell.line(text, command.program, command, apart=apart)


_SHELL_LINE = re.compile(rf"\b(?:{'|'.join(sorted(SHELLS))})\b")


def _process(shell: Shell, command: Command, file: str) -> str | None:
    """What `<(...)` writes, if the line says it."""
    if not file.startswith("<("):
        return None
    inside = [one for one in command.inner if one.via[-1:] == ("<(...)",)]
    text = output_of(inside, shell.maybe)
    if text is None:
        command.sure = False
    return text


def _run_input(shell: Shell, command: Command, arguments: list[str] | None = None) -> None:
    """A shell without words runs what it reads."""
    files = [
        redirect.target for redirect in command.redirects if redirect.operator == "<" and redirect.descriptor in "0"
    ]
    if files and files[-1] not in _STDIN:
        run_script(shell, command, files[-1], arguments or [])
        return
    if command.source is None:
        return
    text = input_of(command)
    if text is None:
        command.sure = False
    else:
        with _arguments(shell, command.program, arguments or []):
            _line_of_shell(shell, command, text, command.program)


def _su(shell: Shell, command: Command) -> None:
    """`su -c LINE user`, `script -c LINE`, `flock file -c LINE`, `runuser -u x -- words`."""
    for at, word in enumerate(command.args):
        if (word in ("--command", "--session-command") or re.fullmatch(r"-\w*c", word)) and at + 1 < len(command.args):
            shell.line(command.args[at + 1], f"{command.program} -c", command, apart=True, feed=command.source)
            return
        if word.startswith("--command="):
            shell.line(word.partition("=")[2], f"{command.program} -c", command, apart=True, feed=command.source)
            return
        if (found := re.fullmatch(r"-\w*?c(.+)", word, re.DOTALL)) and word[1:2] != "-":
            line = Word(found[1], unknown_of(word)) if unknown_of(word) else found[1]
            shell.line(line, f"{command.program} -c", command, apart=True, feed=command.source)
            return
    if command.program == "runuser" and command.has("-u", "--user"):
        words, _ = wrapped(Wrapper("ugGs --user --group --shell"), command.args)
        shell.program(words, "runuser", command)
        return
    if command.program in ("sg", "capsh", "newgrp", "script"):
        words, _ = wrapped(Wrapper("IOBTEmo", words=1), command.args)
        if words and command.program != "newgrp":
            shell.line(joined(words), command.program, command, apart=True)
        elif command.source is not None and command.program != "capsh":
            _run_input(shell, command)
    if command.program == "flock":
        words, _ = wrapped(Wrapper("wE --timeout --conflict-exit-code", words=1), command.args)
        shell.program(words, "flock", command)
    elif command.program == "runuser" and "--" in command.args:
        shell.program(command.args[command.args.index("--") + 1 :], "runuser", command)
    elif command.program in ("su", "runuser"):
        _run_input(shell, command)


def _eval(shell: Shell, command: Command) -> None:
    text = joined(command.args[1:] if command.args[:1] == ["--"] else command.args)
    if text:
        shell.line(text, "eval", command, feed=command.source)
    if unknown_of(text):
        command.sure = False


def _source(shell: Shell, command: Command) -> None:
    args = command.args[1:] if command.args[:1] == ["--"] else command.args
    if not args:
        return
    if args[0] in _STDIN:
        text = input_of(command)
        if text is None:
            command.sure = False
        else:
            shell.line(text, command.program, command)
    else:
        run_script(shell, command, args[0], args[1:], apart=False)


def _trap(shell: Shell, command: Command) -> None:
    if len(command.operands) > 1 and command.operands[0] not in ("", "-"):
        shell.line(command.operands[0], "trap", command)


# --- programs that find the words of a command --------------------------------------------------


def _xargs(shell: Shell, command: Command) -> None:
    """`xargs rm` runs rm with the words that it reads: all at once, or as many as an option says."""
    words, _ = wrapped(
        Wrapper("aEIJLnPRsd --arg-file --delimiter --max-args --max-procs --max-chars --process-slot-var"),
        command.args,
    )
    options = _options_of_xargs(command.args[: len(command.args) - len(words)])
    words = words or ["echo"]
    text = input_of(command)
    if "a" in options:
        text = _process(shell, command, options["a"])
    mark = options.get("I", options.get("J")) or ("{}" if "I" in options or "i" in options else "")
    if not any(mark in word for word in words):
        mark = ""  # GNU leaves the input out, others append it
    given = _given_to_xargs(text, options, bool(mark))
    if given is None:
        one = Word("", ("stdin",))
        words = [_put(word, mark, one) for word in words] if mark else [*words, one]
        shell.program(words, "xargs", command)
        return
    if mark:
        runs = [[_put(word, mark, one) for word in words] for one in given]
    elif "L" in options:
        lines = [_words_of_xargs(line) or [] for line in (text or "").split("\n") if line.strip()]
        runs = [[*words, *line] for line in lines]
        command.sure = command.sure and options["L"] == "1"
    else:
        count = int(options["n"]) if options.get("n", "").isdigit() and int(options["n"]) else len(given) or 1
        runs = [[*words, *given[at : at + count]] for at in range(0, len(given) or 1, count)]
        if not given and "r" in options:
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


def _given_to_xargs(text: str | None, options: dict[str, str], lines: bool) -> list[str] | None:
    """The words that xargs reads: of all lines, or with -I the lines, or with -0 and -d what is between the marks."""
    if text is not None and unknown_of(text) == ("*",):
        return [Word(word, ("*",)) for word in text.split()]  # names of files
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


def _find(shell: Shell, command: Command) -> None:
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


def _parallel(shell: Shell, command: Command) -> None:
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
    given = words[signs[0] + 1 :] if signs else []
    words = words[: signs[0]] if signs else words
    if not given:
        text = input_of(command)
        given = [Word("", ("stdin",))] if text is None else text.split("\n")
    odd = len(signs) > 1 or command.has("--pipe") or bool(signs and words != [] and "::::" in command.args)
    given = [word for word in given if word and not word.startswith(":::")]
    odd = odd or command.has("-a", "--arg-file")
    for one in given[:_TURNS]:
        line = joined(words) if words else one
        if words:
            line = _put(line, "{}", one) if "{}" in line else joined([line, one])
        shell.line(line, "parallel", command, apart=True)
        if words and words[0] in SHELLS and "-c" in words:  # `-q` keeps each word as it is
            shell.program([_put(word, "{}", one) for word in words], "parallel", command)
    if odd or len(given) > _TURNS or re.search(r"\{[^}]", " ".join(words)):
        command.sure = False


# --- others -------------------------------------------------------------------------------------


def _git(shell: Shell, command: Command) -> None:
    """Lines and aliases that git runs: `-c alias.x='!rm y'`, `rebase --exec LINE`, `submodule foreach LINE`."""
    args, operands = command.args, command.operands
    aliases = dict(shell.git_aliases)
    for name, value in _git_settings(command):
        _git_setting(shell, command, name, value, aliases)
    for word, after in pairwise((*args, "")):
        name, sign, value = word.partition("=")
        if name in ("-x", "--extcmd", "--open-files-in-pager", *_GIT_LINES) or (
            name[:2] == "--" and name.endswith("-filter")
        ):
            shell.line(value if sign else after, "git --exec", command, apart=True)
        elif word[:2] == "-O" and operands[:1] == ["grep"]:
            shell.line(word[2:], "git --exec", command, apart=True)
        elif word.startswith("ext::"):
            words = re.split(r"(?<!%) ", word[5:])
            shell.program([re.sub("%(.)", r"\1", one) for one in words], "git ext::", command)
    if operands[:1] == ["config"] and len(operands) > 2:
        _git_setting(shell, command, operands[-2], operands[-1], shell.git_aliases)
    elif operands[:2] in (["submodule", "foreach"], ["bisect", "run"]):
        at = args.index(operands[1]) + 1
        at += sum(1 for word in args[at : at + 1] if word[:1] == "-")
        via = f"git {operands[0]} {operands[1]}"
        if operands[0] == "bisect" or len(args) > at + 1:
            shell.program(args[at:], via, command)
        else:
            shell.line(joined(args[at:]), via, command, apart=True)
    elif operands and (alias := aliases.get(operands[0])) is not None and not alias.startswith("!"):
        rest = args[args.index(operands[0]) + 1 :]
        shell.program(["git", *alias.split(), *rest], f"git alias {operands[0]}", command)


_GIT_LINES = frozenset({"--exec", "--upload-pack", "--receive-pack"})


def _git_settings(command: Command) -> Iterator[tuple[str, str]]:
    """What is set for one call: `-c name=value`, and the variables that stand for it."""
    args = command.args
    for at, word in enumerate(args):
        setting = args[at + 1] if word == "-c" and at + 1 < len(args) else word[2:] if word.startswith("-c") else ""
        if "=" in setting:
            name, _, value = setting.partition("=")
            yield name, value
    for variable, name in command.assignments.items():
        if variable.startswith("GIT_CONFIG_KEY_"):
            yield name, command.assignments.get(variable.replace("KEY", "VALUE"), "")
        elif variable in ("GIT_PAGER", "GIT_EDITOR", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_SEQUENCE_EDITOR"):
            yield "core.pager", name


def _git_setting(shell: Shell, command: Command, name: str, value: str, aliases: dict[str, str]) -> None:
    """A setting that is a line, or the alias of a git command."""
    name = name.lower()
    if name.startswith("alias."):
        aliases[name[6:]] = value
    if value.startswith("!") or _RUNS_A_LINE.search(name):
        shell.line(
            value.lstrip("!"), "git -c" if command.operands[:1] != ["config"] else "git config", command, apart=True
        )


_RUNS_A_LINE = re.compile(
    r"\.(?:command|cmd|helper|program|textconv|process|clean|smudge|driver)$"
    r"|^core\.(?:pager|editor|sshcommand|fsmonitor|hookspath|askpass|gitproxy)|^(?:sequence\.editor|diff\.external|pager\.)"
)


def _windows(shell: Shell, command: Command) -> None:
    """`pwsh -c LINE`, `powershell.exe -enc BASE64`, `cmd.exe /c LINE`: read by the reader for PowerShell and cmd."""
    from .windows import WindowsShell, run_shell  # most lines have none

    command.sure = False
    inner = WindowsShell.inside(shell, "powershell")
    command.stdin = input_of(command)
    run_shell(inner, command)
    shell.sound = shell.sound and inner.sound


# --- options whose value is a line --------------------------------------------------------------

_LINE_OPTIONS: dict[str, str] = {
    "tar": "-I -F --to-command --use-compress-program --info-script --new-volume-script --rsh-command "
    "--checkpoint-action",
    "bsdtar": "--use-compress-program",
    "rsync": "-e --rsh --rsync-path",
    "scp": "-S",
    "sftp": "-S",
    "sort": "--compress-program",
    "split": "--filter",
    "zip": "-TT --unzip-command",
    "man": "-P --pager -H",
    "nc": "-e -c",
    "ncat": "-e -c --exec --sh-exec",
    "netcat": "-e -c",
    "rg": "--pre",
    "fzf": "--preview --bind",
    "tcpdump": "-z",
    "vagrant": "-c --command",
    "nix-shell": "--run --command",
    "nix": "-c --command",
    "npx": "-c --call",
    "npm": "-c --call",
    "nodemon": "-x --exec",
    "gcloud": "--command",
    "ansible": "-a --args",
    "mysql": "-e --execute",
    "mariadb": "-e --execute",
    "psql": "-c --command",
    "wget": "--use-askpass",
    "aws": "--command",
    "gdb": "-ex --eval-command -iex",
    "sshfs": "-o",
    "script": "-c --command",
    "expect": "-c",
    "mosh": "--ssh",
    "flatpak": "--command",
    "watchexec": "--exec",
    "start-stop-daemon": "--exec --startas -x -a",
    "az": "--scripts",
    "fly": "-C --command",
    "flyctl": "-C --command",
    "ag": "--pager",
    "ack": "--pager",
    "bat": "--pager",
    "delta": "--pager",
    "hg": "--config",
    "svn": "--editor-cmd --diff-cmd",
}
"""Of each program: the options whose value it gives to a shell, or runs."""
_STARTS = re.compile(r"\s*(?:exec=|\\?!|\\!|\.?(?:shell|system)\b|execute(?:-silent)?\()?\s*")
_ONLY_MARKED = frozenset({"mysql", "mariadb", "psql", "gdb", "tar --checkpoint-action"})
"""Of these, only a value with such a mark is a line."""


def _line_options(shell: Shell, command: Command) -> None:
    """`tar --to-command=LINE`, `rsync -e LINE`, `nc -e LINE`"""
    names = _LINE_OPTIONS[command.program].split()
    for option, after in pairwise((*command.args, "")):
        if option[:1] != "-":
            continue
        name, sign, value = option.partition("=")
        for known in names:
            if known[:2] == "--" and len(name) > 4 and known.startswith(name):
                _line_option(shell, command, known, value if sign else after)
            elif known[:2] != "--" and (option == known or re.fullmatch(rf"-\w+{known[1:]}", option)):
                _line_option(shell, command, known, after)
            elif known[:2] != "--" and len(known) == 2 and option.startswith(known) and len(option) > 2:
                _line_option(shell, command, known, option[2:])


def _line_option(shell: Shell, command: Command, option: str, value: str) -> None:
    if command.program == "fzf":
        for action in re.findall(r"execute(?:-silent)?\((.*?)\)", value):
            shell.line(action, "fzf", command, apart=True)
    if command.program == "sshfs" or option == "--bind":
        value = value.partition("ssh_command=")[2]
    if command.program == "expect":
        value = re.sub(r"^\s*(?:spawn|exec|system)\s+", "", value)
        command.sure = False
    start = _STARTS.match(value)
    text = value[start.end() :] if start else value
    marked = start is not None and start[0].strip() != ""
    if (command.program in _ONLY_MARKED or option == "--checkpoint-action") and not marked:
        return
    if text:
        line = Word(text, unknown_of(value)) if unknown_of(value) else text
        shell.line(line, f"{command.program} {option}", command, apart=True)


def _ssh(shell: Shell, command: Command) -> None:
    """`ssh host LINE`, `ssh -o ProxyCommand=LINE`; without a line, the host runs what ssh reads."""
    for option, after in pairwise((*command.args, "")):
        found = re.fullmatch(r"-[A-Za-z]*?o(.*)", option, re.DOTALL)  # `-vo NAME=x` and `-voNAME=x`, too
        setting = "" if found is None else found[1] or after
        name, value = (*re.split("[= ]+", setting, maxsplit=1), "")[:2]
        if name.lower() in ("proxycommand", "localcommand", "knownhostscommand", "permitlocalcommand"):
            shell.line(value, f"{command.program} -o", command, apart=True)
    if command.program in ("scp", "sftp"):
        _line_options(shell, command)
        return
    words, _ = wrapped(WRAPPERS[command.program], command.args)
    if words or not command.operands:
        _wrapper(shell, command)
    elif command.program == "ssh":
        _run_input(shell, command)


def _docker(shell: Shell, command: Command) -> None:
    """`docker exec`, `docker compose run`, and an `--entrypoint`."""
    args = command.args
    if args[:1] and args[0] in (
        "container",
        "-H",
        "--host",
        "--context",
        "-c",
        "--config",
        "-l",
        "--log-level",
        "-D",
        "--debug",
    ):
        rest = args[1:] if args[0] in ("container", "-D", "--debug") else args[2:]
        same = Command([command.program, *rest], command.folder, command.via, command.sure)
        same.read_from(command.source)
        same.inner = command.inner
        _docker(shell, same)
        command.sure = command.sure and same.sure
        return
    at = next((at for at, word in enumerate(args) if word == "compose"), None)
    if command.program.endswith("-compose") or (at is not None and command.operands[:1] == ["compose"]):
        rest = args[(at or 0) + 1 :] if at is not None else args
        words, _ = wrapped(_COMPOSE, [word for word in rest if word not in ("-T", "-it", "-i", "-t", "-d")])
        with shell.elsewhere():
            shell.program(words, f"{command.program} compose", command)
        return
    entry = next(
        (word.partition("=")[2] or after for word, after in pairwise((*args, "")) if word.startswith("--entrypoint")),
        "",
    )
    if entry and command.operands[:1] in (["run"], ["create"]):
        words, _ = wrapped(WRAPPERS[command.program], args)
        with shell.elsewhere():
            after = _after_image(args, words)
            shell.program([entry, *after], f"{command.program} run", command)
            command.sure = False
        return
    _wrapper(shell, command)


def _after_image(args: list[str], words: list[str]) -> list[str]:
    """The words for an entrypoint: those after the image, which may be options."""
    at = next((at for at, word in enumerate(args) if word == "-c"), None)
    return args[at:] if at is not None else words


_COMPOSE = Wrapper(
    "fpeuwlv --file --project-name --env --user --workdir --index --name --volume --publish --label --env-file "
    "--profile",
    words=1,
    subcommands=("exec", "run"),
)


def _any_line(shell: Shell, command: Command) -> None:
    """`concurrently 'rm x' ls`, `hyperfine -p 'rm x' ls`: any word with a blank may be a line."""
    for word in command.args:
        if " " in word:
            shell.line(word, command.program, command, apart=True)
            command.sure = False
    if command.program in WRAPPERS:
        _wrapper(shell, command)


def _after_dashes(shell: Shell, command: Command) -> None:
    """`gcloud compute ssh vm -- WORDS`, `nix run x -- WORDS`, `gdb --args WORDS`: and options with a line."""
    if command.program in _LINE_OPTIONS:
        _line_options(shell, command)
    for sign in ("--args", "--"):
        if sign in command.args and (command.program not in ("gh",) or "ssh" in command.operands):
            shell.program(command.args[command.args.index(sign) + 1 :], command.program, command)
            break
    if command.operands[:2] == ["alias", "set"]:
        shell.line(joined(command.operands[3:]).lstrip("!"), command.program, command, apart=True)


def _kubectl(shell: Shell, command: Command) -> None:
    if "--" in command.args and command.operands[:1] in (["run"], ["debug"], ["create"]):
        with shell.elsewhere():
            shell.program(
                command.args[command.args.index("--") + 1 :], f"{command.program} {command.operands[0]}", command
            )
    else:
        _wrapper(shell, command)


def _tmux(shell: Shell, command: Command) -> None:
    """`tmux new-session -d LINE`, `tmux send-keys LINE Enter`, `screen -dm WORDS`, `screen -X stuff LINE`"""
    args = command.args
    typed = next((at for at, word in enumerate(args) if word in ("send-keys", "send", "stuff")), None)
    if typed is not None:
        keys = [word for word in args[typed + 1 :] if word[:1] != "-"]
        for word in keys:
            shell.line(word, command.program, command, apart=True)
        command.sure = False
        return
    words, _ = wrapped(_TMUX if command.program == "tmux" else Wrapper("cehpsSt"), args)
    if words:
        shell.line(joined(words), command.program, command, apart=True)


_TMUX = Wrapper(
    "cefFLnsStxy",
    subcommands=(
        "new-session",
        "new",
        "new-window",
        "neww",
        "split-window",
        "splitw",
        "respawn-pane",
        "respawnp",
        "respawn-window",
        "respawnw",
        "run-shell",
        "run",
        "if-shell",
        "pipe-pane",
        "pipep",
        "display-popup",
        "popup",
    ),
)


def _socat(shell: Shell, command: Command) -> None:
    """`socat - EXEC:rm`, `SYSTEM:rm`"""
    for word in command.operands:
        for address in word.split("!!"):
            kind, _, rest = address.partition(":")
            if kind.lower() in ("exec", "system", "shell"):
                shell.line(rest.partition(",")[0], "socat", command, apart=True)
                command.sure = False


def _at(shell: Shell, command: Command) -> None:
    """`echo rm x | at now` runs what it reads, later."""
    if command.has("-l", "-r", "-d", "-c", "-q") or (command.has("-f") and command.program != "crontab"):
        command.sure = command.sure and not command.has("-f")
        return
    _run_input(shell, command)


def _crontab(shell: Shell, command: Command) -> None:
    """`echo '* * * * * rm x' | crontab -`"""
    text = input_of(command) if not command.has("-l", "-e", "-r") else ""
    if text is None and command.source is not None:  # one of the commands before it may still say what it writes
        text = "".join(output_of([one]) or "" for one in command.source.commands)
        command.sure = False
    if text is None and command.source is not None:
        command.sure = False
    for line in (text or "").split("\n"):
        fields = line.split(None, 1 if line[:1] == "@" else 5)
        if line[:1] != "#" and len(fields) == (2 if line[:1] == "@" else 6):
            shell.line(Word(fields[-1], ("crontab",)), "crontab", command, apart=True)


def _database(shell: Shell, command: Command) -> None:
    """`sqlite3 db '.shell rm x'`, `psql -c '\\! rm x'`, and the same in what they read."""
    if command.program in _LINE_OPTIONS:
        _line_options(shell, command)
    texts = (
        [*command.operands[1:], input_of(command) or ""] if command.program == "sqlite3" else [input_of(command) or ""]
    )
    for text in texts:
        for found in re.finditer(r"(?:^|[\n;])\s*(?:\.(?:shell|system)|\\!|system)[ \t]+([^\n]+)", text):
            shell.line(Word(found[1], ("code",)), command.program, command, apart=True)


def _package_runner(shell: Shell, command: Command) -> None:
    """`npx WORDS`, `npm exec -- WORDS`, `npx -c LINE`"""
    if command.program in _LINE_OPTIONS:
        _line_options(shell, command)
    if not command.has("-c", "--call"):
        _wrapper(shell, command)


CARRIERS: dict[str, Carrier] = {
    **dict.fromkeys(_LINE_OPTIONS, _line_options),
    **dict.fromkeys(WRAPPERS, _wrapper),
    **dict.fromkeys(SHELLS, _shell),
    **dict.fromkeys(DECLARES, builtins.declare),
    "sudo": _sudo, "env": _env, "command": _command_builtin, "eval": _eval, "source": _source, ".": _source,
    "trap": _trap, "su": _su, "runuser": _su, "script": _su, "flock": _su, "sg": _su, "newgrp": _su, "capsh": _su,
    "cd": builtins.change_folder, "pushd": builtins.change_folder, "popd": builtins.change_folder,
    "chdir": builtins.change_folder, "unset": builtins.unset, "set": builtins.set_arguments, "shift": builtins.shift,
    "alias": builtins.alias, "read": builtins.read_words, "mapfile": builtins.read_lines,
    "readarray": builtins.read_lines, "getopts": builtins.get_options, "let": builtins.let,
    "printf": builtins.print_formatted, "enable": builtins.enable, "hash": builtins.enable,
    "complete": builtins.enable, "tee": builtins.write_copies,
    "xargs": _xargs, "gxargs": _xargs, "find": _find, "gfind": _find, "fd": _find, "fdfind": _find, "bfs": _find,
    "parallel": _parallel,
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk", "original-awk"), run_awk),
    **dict.fromkeys(("sed", "gsed"), run_sed),
    **dict.fromkeys(("make", "gmake"), run_make),
    **dict.fromkeys(("vim", "vi", "nvim", "ex", "view", "vimdiff", "emacs"), run_editor),
    **dict.fromkeys(("ed", "red", "less", "more", "most"), run_editor),
    "ssh": _ssh, "autossh": _ssh, "scp": _ssh, "sftp": _ssh,
    **dict.fromkeys(("docker", "podman", "nerdctl", "docker-compose", "podman-compose"), _docker),
    **dict.fromkeys(("kubectl", "oc"), _kubectl),
    "tmux": _tmux, "screen": _tmux, "socat": _socat, "at": _at, "batch": _at, "crontab": _crontab,
    **dict.fromkeys(("sqlite3", "mysql", "mariadb", "psql"), _database),
    "npx": _package_runner, "npm": _package_runner,
    **dict.fromkeys(("gcloud", "gdb", "nix", "gh", "launchctl"), _after_dashes),
    **dict.fromkeys(("concurrently", "hyperfine", "entr", "nodemon", "cargo"), _any_line),
    **dict.fromkeys(("salt", "bwrap", "snap", "flatpak"), _any_line),
    "git": _git,
}  # fmt: skip


def _no_assignment(shell: Shell, command: Command) -> None:
    """`1A=2 rm x`: not a variable for sh, but for other shells. What follows counts as a command."""
    shell.program(command.args, command.program[:40], command)


def carrier_of(name: str) -> Carrier | None:
    """The carrier of a program whose name has a version or a suffix: python3.11, powershell.exe."""
    if "=" in name:
        return _no_assignment
    return run_code if INTERPRETER.fullmatch(name) else _windows if _WINDOWS.fullmatch(name) else None


_WINDOWS = re.compile(r"(?:powershell|pwsh|cmd)(?:\.exe)?", re.IGNORECASE)
