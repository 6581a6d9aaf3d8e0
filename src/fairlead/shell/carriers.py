"""Programs that run other commands, and what a shell's own commands do to the commands after them.

A carrier is a function of the shell that follows the line, and of the command. It finds the command or the line that
is run inside, and has the shell follow that, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from .commands import Command, Feed
from .outputs import input_of, output_of, output_of_command
from .syntax import DECLARES
from .words import Word, is_exact, unknown_of

if TYPE_CHECKING:
    from .reading import Shell

Carrier: TypeAlias = "Callable[[Shell, Command], None]"
_ASSIGNS = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_CHDIR = re.compile(r"(?:-[CD]|--chdir=?|--cwd=?|--directory=?|--working-directory=?)(.*)")
SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "fish", "rbash", "csh", "tcsh", "yash", "pdksh"})


class Wrapper(NamedTuple):
    """How a program takes the command that it runs: after its options, and after some words of its own."""

    valued: str = ""
    """Its options with a value, as letters, and in their long form after blanks: "ugC --user --group"."""
    words: int = 0
    """How many words of its own stand before the command."""
    assigns: bool = False
    """May variables be set before the command?"""
    subcommands: tuple[str, ...] = ()
    """It runs a command only after one of these words."""
    line: bool = False
    """The words are joined and given to a shell."""


WRAPPERS: dict[str, Wrapper] = {
    "sudo": Wrapper(
        "ugpChrtTUDR --user --group --prompt --close-from --chdir --host --role --type "
        "--other-user --chroot --command-timeout",
        assigns=True,
    ),
    "doas": Wrapper("uC"),
    "pkexec": Wrapper(" --user"),
    "gosu": Wrapper(words=1),
    "su-exec": Wrapper(words=1),
    "env": Wrapper("uCP --unset --chdir --argv0", assigns=True),
    "nohup": Wrapper(),
    "setsid": Wrapper(),
    "nice": Wrapper("n --adjustment"),
    "ionice": Wrapper("cnpPu --class --classdata"),
    "timeout": Wrapper("ks --kill-after --signal", words=1),
    "stdbuf": Wrapper("ioe --input --output --error"),
    "builtin": Wrapper(),
    "exec": Wrapper("a"),
    "time": Wrapper("fo --format --output"),
    "gtimeout": Wrapper("ks", words=1),
    "chroot": Wrapper(words=1),
    "taskset": Wrapper("p", words=1),
    "chrt": Wrapper("TPD", words=1),
    "numactl": Wrapper("imCNpP"),
    "unshare": Wrapper("SGRw"),
    "setpriv": Wrapper(),
    "firejail": Wrapper(),
    "bwrap": Wrapper(),
    "busybox": Wrapper(),
    "toybox": Wrapper(),
    "strace": Wrapper("abeEfIoOpPsSuUX"),
    "ltrace": Wrapper("aAeFlnopsuwx"),
    "valgrind": Wrapper(),
    "caffeinate": Wrapper("tw"),
    "proxychains": Wrapper("f"),
    "proxychains4": Wrapper("f"),
    "torsocks": Wrapper("uPap"),
    "unbuffer": Wrapper(),
    "rlwrap": Wrapper("bcCDfgHlmOpPsStT"),
    "xvfb-run": Wrapper("efnpsw"),
    "dbus-run-session": Wrapper(),
    "systemd-run": Wrapper("EGpMtu --unit --slice --property --uid --gid --setenv --working-directory --description"),
    "systemd-inhibit": Wrapper(),
    "faketime": Wrapper(words=1),
    "cpulimit": Wrapper("lpPe"),
    "prlimit": Wrapper("o"),
    "chpst": Wrapper("uUbe/nlLmdofpcrt"),
    "envdir": Wrapper(words=1),
    "setuidgid": Wrapper(words=1),
    "softlimit": Wrapper(),
    "ts-node-dev": Wrapper(),
    "catchsegv": Wrapper(),
    "stdin": Wrapper(),
    "direnv": Wrapper(words=1, subcommands=("exec",)),
    "op": Wrapper(subcommands=("run",)),
    "doppler": Wrapper(subcommands=("run",)),
    "uv": Wrapper("p --python --with --extra --group --package --directory --project --env-file", subcommands=("run",)),
    "poetry": Wrapper("CP", subcommands=("run",)),
    "pipenv": Wrapper(subcommands=("run",)),
    "pdm": Wrapper("p", subcommands=("run",)),
    "hatch": Wrapper("e", subcommands=("run",)),
    "rye": Wrapper(subcommands=("run",)),
    "pixi": Wrapper("e", subcommands=("run",)),
    "conda": Wrapper("np --name --prefix --cwd", subcommands=("run",)),
    "mamba": Wrapper("np", subcommands=("run",)),
    "bundle": Wrapper(subcommands=("exec",)),
    "mise": Wrapper(subcommands=("exec", "x")),
    "asdf": Wrapper(words=1, subcommands=("exec",)),
    "rbenv": Wrapper(subcommands=("exec",)),
    "pyenv": Wrapper(subcommands=("exec",)),
    "dotenv": Wrapper("efv", subcommands=("run",)),
    "pnpm": Wrapper("CF", subcommands=("exec", "dlx")),
    "rustup": Wrapper(words=1, subcommands=("run",)),
    "flatpak-spawn": Wrapper(),
    "distrobox-enter": Wrapper("n"),
    "toolbox": Wrapper("cd", subcommands=("run",)),
    "docker": Wrapper(
        "euwlLmpvhcan --env --env-file --user --workdir --name --volume --network --entrypoint "
        "--mount --publish --platform --label --memory --cpus --hostname --detach-keys",
        words=1,
        subcommands=("exec", "run"),
    ),
    "podman": Wrapper(
        "euwlmpvh --env --env-file --user --workdir --name --volume --network --entrypoint --mount --publish",
        words=1,
        subcommands=("exec", "run"),
    ),
    "nerdctl": Wrapper("euwlmpvh --env --user --workdir --name --volume", words=1, subcommands=("exec", "run")),
    "kubectl": Wrapper(
        "ncf --namespace --container --context --kubeconfig --filename --cluster --user", words=1, subcommands=("exec",)
    ),
    "oc": Wrapper("ncf --namespace --container --context", words=1, subcommands=("exec", "rsh")),
    "lxc": Wrapper(words=1, subcommands=("exec",)),
    "incus": Wrapper(words=1, subcommands=("exec",)),
    "nsenter": Wrapper("tSG --target --setuid --setgid"),
    "machinectl": Wrapper(words=1, subcommands=("shell",)),
    "ssh": Wrapper("bcDeEFIiJLlmOopQRSWwB", words=1, line=True),
    "mosh": Wrapper("p --ssh --port", words=1, line=True),
    "sshpass": Wrapper("pfdP"),
    "autossh": Wrapper("bcDeEFIiJLlmMOopQRSWw", words=1, line=True),
    "watch": Wrapper("nq --interval --equexit", line=True),
    "viddy": Wrapper("n", line=True),
    "entr": Wrapper(),
    "nodemon": Wrapper("ewx"),
    "hyperfine": Wrapper("wmMrpsncuL --warmup --runs --prepare --setup --cleanup --shell", line=True),
    "at": Wrapper("qft"),
    "batch": Wrapper("qf"),
}


def wrapped(wrapper: Wrapper, args: list[str]) -> tuple[list[str], dict[str, str]]:
    """The words of the command that a wrapper runs, and the variables that it sets."""
    letters, *long = wrapper.valued.split(" ")
    assignments: dict[str, str] = {}
    words, at = wrapper.words, 0
    wanted = wrapper.subcommands
    while at < len(args):
        word = args[at]
        if word == "--":
            if wanted or words:
                at += 1
                words = 0 if not wanted else words
                continue
            at += 1
            break
        if word.startswith("--"):
            if "=" not in word and word in long:
                at += 1
        elif word[:1] == "-" and len(word) > 1:
            at += _takes_next(word, letters)
        elif wanted:
            if word not in wanted:
                return [], {}
            wanted = ()
        elif wrapper.assigns and (found := _ASSIGNS.fullmatch(word)):
            assignments[found[1]] = found[3]
        elif words:
            words -= 1
        else:
            break
        at += 1
    return args[at:], assignments


def _takes_next(word: str, letters: str) -> bool:
    """Is the word after these short options the value of the last one?"""
    for place, letter in enumerate(word[1:], 1):
        if letter in letters:
            return place == len(word) - 1
    return False


def _wrapper(shell: Shell, command: Command) -> None:
    wrapper = WRAPPERS[command.program]
    words, assignments = wrapped(wrapper, command.args)
    command.assignments.update(assignments)
    if not words:
        return
    via = " ".join([command.program, *[word for word in command.args[:3] if word in wrapper.subcommands]])
    folder, before = shell.words.folder, shell.before
    own = command.args[: len(command.args) - len(words)]
    for option, value in pairwise((*own, "")):
        if found := _CHDIR.fullmatch(option):
            shell.change_folder(found[1] or value)
    if wrapper.line:
        text = " ".join(words)
        unknown = [one for word in words for one in unknown_of(word)]
        shell.line(Word(text, unknown) if unknown else text, via, command, apart=True, feed=_feed_of(command))
    else:
        shell.program(words, via, command)
    shell.words.folder, shell.before = folder, before


def _feed_of(command: Command) -> Feed | None:
    if command.stdin is None and command.reads is None:
        return None
    return Feed(command.stdin, [command.reads] if command.reads is not None else [])


def _sudo(shell: Shell, command: Command) -> None:
    words, _ = wrapped(WRAPPERS[command.program], command.args)
    if command.program == "sudo" and not words and command.has("-s", "--shell", "-i", "--login"):
        shell.program(["sh"], "sudo", command)
    else:
        _wrapper(shell, command)


def _env(shell: Shell, command: Command) -> None:
    """`env -S 'rm x'` splits its text into words."""
    words, _ = wrapped(WRAPPERS["env"], command.args)
    for at, word in enumerate(command.args[: len(command.args) - len(words)]):
        if re.match(r"-\w*S|--split-string", word):
            text = word.partition("=")[2] if word.startswith("--") else word.partition("S")[2]
            rest = command.args[at + 1 :]
            text = " ".join([text, *rest]).strip()
            shell.line(text, "env -S", command, apart=True, feed=_feed_of(command))
            return
    _wrapper(shell, command)


def _command_builtin(shell: Shell, command: Command) -> None:
    at = 0
    while at < len(command.args) and re.fullmatch(r"-[pvV]+|--", command.args[at]):
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
            at += 2 if word in ("--rcfile", "--init-file") else 1
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
                if at < len(args) and args[at] == "--":
                    at += 1
                if at < len(args):
                    _run_line(shell, command, args[at], args[at + 1 :])
                return
            at += 2 if word in ("-o", "+o", "-O", "+O") else 1
        else:
            break
    if at < len(args) and args[at] not in ("/dev/stdin", "/dev/fd/0", "-", "/proc/self/fd/0"):
        _script(shell, command, args[at])
    else:
        _run_input(shell, command)


def _run_line(shell: Shell, command: Command, text: str, given: list[str]) -> None:
    arguments, name = shell.words.arguments, shell.words.name
    shell.words.arguments, shell.words.name = given[1:], given[0] if given else command.program
    shell.line(text, f"{command.program} -c", command, apart=True, feed=_feed_of(command))
    shell.words.arguments, shell.words.name = arguments, name
    if not is_exact(text):
        command.sure = False


def _script(shell: Shell, command: Command, file: str) -> None:
    """A script is a file, or a process: `sh <(echo rm x)`."""
    if (text := _process(shell, command, file)) is not None:
        shell.line(text, command.program, command, apart=True)


def _process(shell: Shell, command: Command, file: str) -> str | None:
    """What `<(...)` writes, if the line says it."""
    if not file.startswith("<("):
        return None
    inside = [one for one in command.inner if one.via[-1:] == ("<(...)",)]
    text = output_of(inside)
    if text is None:
        command.sure = False
    return text


def _run_input(shell: Shell, command: Command) -> None:
    """A shell without words runs what it reads."""
    for redirect in command.redirects:
        if redirect.operator == "<":
            if (text := _process(shell, command, redirect.target)) is not None:
                shell.line(text, command.program, command, apart=True)
            return
    if command.stdin is None and command.reads is None:
        return
    text = input_of(command)
    if text is None:
        command.sure = False
    else:
        shell.line(text, command.program, command, apart=True)


def _su(shell: Shell, command: Command) -> None:
    """`su -c LINE user`, `script -c LINE`, `flock file -c LINE`, `runuser -u x -- words`."""
    for at, word in enumerate(command.args):
        if word in ("-c", "--command", "--session-command") and at + 1 < len(command.args):
            shell.line(command.args[at + 1], f"{command.program} -c", command, apart=True, feed=_feed_of(command))
            return
        if word.startswith("--command="):
            shell.line(word.partition("=")[2], f"{command.program} -c", command, apart=True, feed=_feed_of(command))
            return
    if command.program == "flock":
        words, _ = wrapped(Wrapper("wE --timeout --conflict-exit-code", words=1), command.args)
        shell.program(words, "flock", command)
    elif command.program == "runuser" and "--" in command.args:
        shell.program(command.args[command.args.index("--") + 1 :], "runuser", command)
    elif command.program in ("su", "runuser"):
        _run_input(shell, command)


def _eval(shell: Shell, command: Command) -> None:
    text = " ".join(command.args)
    unknown = [one for word in command.args for one in unknown_of(word)]
    if text:
        shell.line(Word(text, unknown) if unknown else text, "eval", command, feed=_feed_of(command))
    if unknown:
        command.sure = False


def _source(shell: Shell, command: Command) -> None:
    if command.args and (text := _process(shell, command, command.args[0])) is not None:
        shell.line(text, "source", command)
    elif command.args and command.args[0] in ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
        _run_input(shell, command)


def _trap(shell: Shell, command: Command) -> None:
    if len(command.operands) > 1 and command.operands[0] not in ("", "-"):
        shell.line(command.operands[0], "trap", command)


# --- builtins -----------------------------------------------------------------------------------


def _cd(shell: Shell, command: Command) -> None:
    words = [word for word in command.args if word == "-" or word[:1] != "-"]
    shell.change_folder(words[0] if words else "-" if command.program == "popd" else "~")


def _declare(shell: Shell, command: Command) -> None:
    for word in command.args:
        if found := _ASSIGNS.fullmatch(word):
            text = Word(found[3], unknown_of(word)) if unknown_of(word) else found[3]
            old = shell.variables.get(found[1])
            shell.variables[found[1]] = old + text if found[2] and type(old) is str else text


def _unset(shell: Shell, command: Command) -> None:
    for name in command.operands:
        shell.variables.pop(name, None)
        shell.functions.pop(name, None)


def _set(shell: Shell, command: Command) -> None:
    if "--" in command.args:
        shell.words.arguments = command.args[command.args.index("--") + 1 :]
    elif command.args and command.args[0][:1] not in ("-", "+"):
        shell.words.arguments = command.args


def _shift(shell: Shell, command: Command) -> None:
    if shell.words.arguments is not None:
        count = int(command.args[0]) if command.args and command.args[0].isdigit() else 1
        shell.words.arguments = shell.words.arguments[count:]


def _alias(shell: Shell, command: Command) -> None:
    for word in command.operands:
        name, sign, text = word.partition("=")
        if sign:
            shell.aliases[name] = text


def _read(shell: Shell, command: Command) -> None:
    """`read a b`: the words of the line that it reads."""
    names = command.operands
    text = input_of(command)
    unknown = text is None or bool(unknown_of(text))
    words = [] if text is None else text.split("\n")[0].split(None, max(len(names) - 1, 0))
    for at, name in enumerate(names or ["REPLY"]):
        shell.variables[name] = None if unknown else words[at] if at < len(words) else ""


def _printf_v(shell: Shell, command: Command) -> None:
    """`printf -v NAME FORMAT` sets a variable."""
    if command.args[:1] == ["-v"] and len(command.args) > 2:
        inner = Command(["printf", *command.args[2:]], command.folder, command.via, command.sure)
        shell.variables[command.args[1]] = output_of_command(inner)


# --- programs that find the words of a command --------------------------------------------------


def _xargs(shell: Shell, command: Command) -> None:
    """`xargs rm` runs rm with the words that it reads."""
    words, _ = wrapped(
        Wrapper(
            "aEIJLnPRsd --arg-file --delimiter --max-args --max-lines --max-procs --max-chars "
            "--replace --process-slot-var"
        ),
        command.args,
    )
    words = words or ["echo"]
    text = input_of(command)
    if text is None:
        given: list[str] = [Word("", ("stdin",))]
    else:
        given = [
            Word(word, unknown_of(text)) if unknown_of(text) else word for word in re.split(r"[\s\0]+", text) if word
        ]
    marks = [value for name, value in command.options.items() if name in ("-I", "-J", "--replace")]
    mark = (marks[0] or "{}") if marks else "{}" if command.has("-i") else None
    if mark and any(mark in word for word in words[1:]):
        filled: list[str] = []
        for word in words:
            if mark not in word:
                filled.append(word)
            else:
                whole = word == mark and is_exact(word)
                filled += given if whole else [_put(word, mark, one) for one in given[:1] or [Word("", ("stdin",))]]
        words = filled
    else:
        words = [*words, *given]
    shell.program(words, "xargs", command)


def _put(word: str, mark: str, value: str) -> str:
    text = word.replace(mark, value)
    unknown = [*unknown_of(word), *unknown_of(value)]
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
            "ajNnLsdC --jobs --max-args --colsep --arg-file --delay --timeout --retries --joblog "
            "--tmpdir --workdir --sshlogin"
        ),
        command.args,
    )
    signs = [at for at, word in enumerate(words) if word in (":::", "::::", ":::+")]
    given = words[signs[0] + 1 :] if signs else []
    words = words[: signs[0]] if signs else words
    if not given:
        text = input_of(command)
        given = [Word("", ("stdin",))] if text is None else text.split("\n")
    for one in [word for word in given if word and not word.startswith(":::")][:16]:
        line = " ".join(words)
        line = line.replace("{}", one) if "{}" in line else f"{line} {one}".strip()
        unknown = [*unknown_of(one), *[u for word in words for u in unknown_of(word)]]
        shell.line(Word(line, unknown) if unknown else line, "parallel", command, apart=True)


# --- interpreters -------------------------------------------------------------------------------

_CODE = {
    "python": "c", "perl": "eE", "ruby": "e", "node": "ep", "nodejs": "ep", "bun": "e", "php": "rBRE", "lua": "e",
    "osascript": "e", "Rscript": "e", "julia": "eE",
}  # fmt: skip
"""The options of interpreters that take program text."""
_INTERPRETER = re.compile(r"(python|pypy|perl|ruby|node|nodejs|php|lua|luajit|bun|deno|julia|osascript|Rscript)[\d.]*")
_WINDOWS = re.compile(r"(?:powershell|pwsh|cmd)(?:\.exe)?", re.IGNORECASE)
_RUNS = re.compile(
    r"""(?:\bsystem|\bpopen\w*|\bexec\w*|\bspawn\w*|\bshell_exec|\bpassthru|\bproc_open|\bcall|\brun|\bcheck_\w+
        |\bPopen|\bgetoutput|\bgetstatusoutput|\bdo\s+shell\s+script|\bCommand|%x|\bqx)
        \s*[(\[{\s]\s*(?:\[\s*)?[fr]?("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')((?:\s*,\s*(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'))*)""",
    re.VERBOSE | re.DOTALL,
)
_TICKS = re.compile(r"`([^`]*)`")
_STRING = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'", re.DOTALL)


def _interpreter(shell: Shell, command: Command) -> None:
    """Code on the line: the commands that it names in calls such as `os.system("...")`. It may run others."""
    found = _INTERPRETER.fullmatch(command.program)
    family = {"pypy": "python", "luajit": "lua"}.get(found[1], found[1]) if found else ""
    code = code_of(command, _CODE.get(family, ""))
    if code is None:
        return
    budget = shell.budget
    budget.spend(1 + len(code) // 64)
    for call in _RUNS.finditer(code[:65536]):
        texts = [_decoded(a or b) for a, b in _STRING.findall(call[1] + call[2])]
        if len(texts) > 1:
            shell.program([*texts], f"{command.program} code", command, sure=False)
        elif texts:
            shell.line(Word(texts[0], ("code",)), f"{command.program} code", command, apart=True)
    if family in ("perl", "ruby", "php"):
        for ticks in _TICKS.finditer(code[:65536]):
            shell.line(Word(ticks[1], ("code",)), f"{command.program} code", command, apart=True)


def _decoded(text: str) -> str:
    return text.replace('\\"', '"').replace("\\'", "'").replace("\\\\", "\\")


def code_of(command: Command, letters: str) -> str | None:
    """The program text that an interpreter is given: `-c TEXT`, `-e TEXT`, or what it reads if it has no file."""
    texts: list[str] = []
    file = False
    args = iter(command.args)
    for word in args:
        if word in ("--eval", "--print", "eval"):
            texts.append(next(args, ""))
        elif word.startswith("--eval="):
            texts.append(word.partition("=")[2])
        elif word[:1] == "-" and len(word) > 1 and word[1] != "-":
            at = next((n for n, letter in enumerate(word[1:], 1) if letter in letters), 0)
            if at:
                texts.append(word[at + 1 :] or next(args, ""))
        elif not word.startswith("-"):
            file = True
            break
    if texts:
        return "\n".join(texts)
    if file:
        return None
    return input_of(command)


def _git(shell: Shell, command: Command) -> None:
    """Lines and aliases that git runs: `-c alias.x='!rm y'`, `rebase --exec LINE`, `submodule foreach LINE`."""
    args, operands = command.args, command.operands
    aliases = dict(shell.git_aliases)
    for name, value in _git_settings(command):
        _git_setting(shell, command, name, value, aliases)
    for at, word in enumerate(args):
        if word in ("--exec", "-x") and at + 1 < len(args):
            shell.line(args[at + 1], "git --exec", command, apart=True)
        elif word.startswith("--exec="):
            shell.line(word.partition("=")[2], "git --exec", command, apart=True)
    if operands[:1] == ["config"] and len(operands) > 2:
        _git_setting(shell, command, operands[-2], operands[-1], shell.git_aliases)
    elif operands[:2] in (["submodule", "foreach"], ["bisect", "run"]):
        shell.line(" ".join(operands[2:]), f"git {operands[0]} {operands[1]}", command, apart=True)
    elif operands and (alias := aliases.get(operands[0])) is not None and not alias.startswith("!"):
        rest = args[args.index(operands[0]) + 1 :]
        shell.program(["git", *alias.split(), *rest], f"git alias {operands[0]}", command)


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


CARRIERS: dict[str, Carrier] = {
    **dict.fromkeys(WRAPPERS, _wrapper),
    **dict.fromkeys(SHELLS, _shell),
    "sudo": _sudo, "env": _env, "command": _command_builtin, "eval": _eval, "source": _source, ".": _source,
    "trap": _trap, "su": _su, "runuser": _su, "script": _su, "flock": _su, "sg": _su,
    "cd": _cd, "pushd": _cd, "popd": _cd, "chdir": _cd,
    **dict.fromkeys(DECLARES, _declare),
    "unset": _unset, "set": _set, "shift": _shift, "alias": _alias, "read": _read, "printf": _printf_v,
    "xargs": _xargs, "gxargs": _xargs, "find": _find, "gfind": _find, "fd": _find, "fdfind": _find,
    "parallel": _parallel,
    "git": _git,
}  # fmt: skip


def carrier_of(name: str) -> Carrier | None:
    """The carrier of a program whose name has a version or a suffix: python3.11, powershell.exe."""
    return _interpreter if _INTERPRETER.fullmatch(name) else _windows if _WINDOWS.fullmatch(name) else None
