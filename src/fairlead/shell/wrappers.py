"""Programs that run the command behind their own words: `sudo`, `env`, `timeout`, `docker exec`, `ssh`."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from .commands import Command, quote
from .words import is_exact, joined

if TYPE_CHECKING:
    from .reading import Shell

_CHDIR = re.compile(r"(?:-[CD]|--chdir=?|--cwd=?|--directory=?|--working-directory=?)(.*)")
_ASSIGNS = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)


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
    "chroot": Wrapper(" --userspec --groups", words=1),
    "taskset": Wrapper("p", words=1),
    "chrt": Wrapper("TPD", words=1),
    "numactl": Wrapper("imCNpP"),
    "unshare": Wrapper("SGRw"),
    "choom": Wrapper("np"),
    "uclampset": Wrapper("mMp"),
    "coresched": Wrapper("std"),
    "schedtool": Wrapper("anMpe"),
    "setpriv": Wrapper(
        " --reuid --regid --ruid --euid --rgid --egid --groups --bounding-set --inh-caps --ambient-caps "
        "--securebits --selinux-label --apparmor-profile --pdeathsig"
    ),
    "firejail": Wrapper(),
    "busybox": Wrapper(),
    "toybox": Wrapper(),
    "strace": Wrapper("abeEIoOpPsSuUX"),
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
    "systemd-inhibit": Wrapper(" --what --who --why --mode"),
    "faketime": Wrapper(words=1),
    "cpulimit": Wrapper("lpPe --limit --pid --path --exe"),
    "prlimit": Wrapper("o"),
    "chpst": Wrapper("uUbe/nlLmdofpcrt"),
    "envdir": Wrapper(words=1),
    "setuidgid": Wrapper(words=1),
    "softlimit": Wrapper("acdflmoprst"),
    "catchsegv": Wrapper(),
    "direnv": Wrapper(words=1, subcommands=("exec",)),
    "op": Wrapper(subcommands=("run",)),
    "doppler": Wrapper(subcommands=("run",)),
    "uv": Wrapper(
        "p --python --with --with-requirements --with-editable --extra --group --package --directory "
        "--project --env-file",
        subcommands=("run",),
    ),
    "poetry": Wrapper("CP", subcommands=("run",)),
    "pipenv": Wrapper(subcommands=("run",)),
    "pdm": Wrapper("p", subcommands=("run",)),
    "hatch": Wrapper("e", subcommands=("run",)),
    "rye": Wrapper(subcommands=("run",)),
    "pixi": Wrapper("e", subcommands=("run",)),
    "conda": Wrapper("np --name --prefix --cwd", subcommands=("run",)),
    "mamba": Wrapper("np", subcommands=("run",)),
    "micromamba": Wrapper("np --name --prefix --cwd", subcommands=("run",)),
    "tox": Wrapper("ecx", subcommands=("exec",)),
    "bundle": Wrapper(subcommands=("exec",)),
    "mise": Wrapper(subcommands=("exec", "x")),
    "asdf": Wrapper(words=1, subcommands=("exec",)),
    "rbenv": Wrapper(subcommands=("exec",)),
    "pyenv": Wrapper(subcommands=("exec",)),
    "dotenv": Wrapper("efv", subcommands=("run",)),
    "pnpm": Wrapper("CF", subcommands=("exec", "dlx")),
    "rustup": Wrapper(words=1, subcommands=("run",)),
    "flatpak-spawn": Wrapper(),
    "distrobox-enter": Wrapper("n --name", words=1),
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
    "npx": Wrapper("pw --package --workspace"),
    "npm": Wrapper("pw --package --workspace", subcommands=("exec", "x")),
    "yarn": Wrapper(subcommands=("exec", "dlx")),
    "bunx": Wrapper(),
    "uvx": Wrapper("p --from --with --python"),
    "pipx": Wrapper(" --spec --python", subcommands=("run",)),
    "fakeroot": Wrapper("lfisb"),
    "ip": Wrapper(words=2, subcommands=("netns",)),
    "adb": Wrapper("sHPt", subcommands=("shell",), line=True),
    "multipass": Wrapper(words=1, subcommands=("exec",)),
    "heroku": Wrapper("ars --app --remote --size", subcommands=("run",), line=True),
    "wsl": Wrapper("du --distribution --user --cd"),
    "wsl.exe": Wrapper("du --distribution --user --cd"),
    "pssh": Wrapper("hHlptoe --hosts --host --user", line=True),
    "pdsh": Wrapper("wxlgft", line=True),
    "clush": Wrapper("wxglf", line=True),
    "chronic": Wrapper(),
    "ifne": Wrapper(),
    "sem": Wrapper("j --id --jobs"),
    "schroot": Wrapper("cdu --chroot --directory --user"),
    "arch-chroot": Wrapper("u", words=1),
    "nsjail": Wrapper(),
    "snap": Wrapper(words=1, subcommands=("run",)),
    "distrobox": Wrapper("n --name", words=1, subcommands=("enter",)),
    "guix": Wrapper(subcommands=("shell",)),
    "dumb-init": Wrapper(),
    "tini": Wrapper("pe"),
    "s6-setuidgid": Wrapper(words=1),
    "eatmydata": Wrapper(),
    "autossh": Wrapper("bcDeEFIiJLlmMOopQRSWw", words=1, line=True),
    "watch": Wrapper("nq --interval --equexit", line=True),
    "viddy": Wrapper("n", line=True),
    "entr": Wrapper(),
    "nodemon": Wrapper("ewx --exec --ext --watch"),
    "hyperfine": Wrapper("wmMrpsncuL --warmup --runs --prepare --setup --cleanup --shell", line=True),
    "at": Wrapper("qft"),
    "dbus-launch": Wrapper(" --config-file"),
    "proot": Wrapper("rbwq --rootfs --bind --cwd --qemu"),
    "perf": Wrapper("eopCFcr --event --output --pid --cpu", subcommands=("stat", "record", "trace", "mem", "c2c")),
    "ts": Wrapper("LDN"),
    "watchexec": Wrapper("wefisSd --watch --exts --filter --ignore --signal --debounce", line=True),
    "aws-vault": Wrapper("d --duration --region", words=1, subcommands=("exec",)),
    "chamber": Wrapper(words=1, subcommands=("exec",)),
    "envchain": Wrapper(words=1),
    "infisical": Wrapper(" --env --path", subcommands=("run",)),
    "cgexec": Wrapper("g"),
    "setarch": Wrapper(words=1),
    "linux64": Wrapper(),
    "linux32": Wrapper(),
    "i386": Wrapper(),
    "arch": Wrapper("ed"),
    "timelimit": Wrapper("tTsS"),
    "torify": Wrapper(),
    "tsocks": Wrapper(),
    "vglrun": Wrapper("cdsq"),
    "daemonize": Wrapper("aceolpuE"),
    "trickle": Wrapper("duwtlnp"),
    "pct": Wrapper(words=1, subcommands=("exec",)),
    "crictl": Wrapper("r", words=1, subcommands=("exec",)),
    "tsh": Wrapper("l --login --proxy --user", words=1, subcommands=("ssh",), line=True),
    "concurrently": Wrapper("nc --names --prefix --kill-others"),
    "pm2": Wrapper("ni --name", subcommands=("start",), line=True),
    "batch": Wrapper("qf"),
    "wezterm": Wrapper(" --cwd", subcommands=("start",)),
    "kitty": Wrapper("cdoT --config --directory --title"),
    "foot": Wrapper("acdfotTwW --title --working-directory"),
    "gamemoderun": Wrapper(),
}


_FLAGS = frozenset({
    "rm", "interactive", "tty", "detach", "privileged", "init", "read-only", "quiet",
    "verbose", "foreground", "preserve-status", "login", "shell", "stdin", "non-interactive", "preserve-env",
    "set-home", "background", "reset-timestamp", "fork", "mount", "net", "pid", "ipc",
    "uts", "mount-proc", "map-root-user", "all", "clear-groups", "no-new-privs", "user", "scope",
    "wait", "pty", "collect", "ignore-environment", "null", "debug", "help", "version",
    "no-deps", "no-cache", "no-sync", "frozen", "isolated", "live-stream", "no-capture-output", "yes",
    "sys", "idle", "batch", "fifo", "other", "cpu-list", "ignore", "no-fork",
    "ctty", "no-healthcheck", "publish-all", "no-newline", "differences", "errexit", "color", "chgexit",
    "beep", "no-title", "exec", "precise", "autokill",
})  # fmt: skip
"""Options of wrappers that take no value."""


def doubts(wrapper: Wrapper, own: list[str]) -> int:
    """How many words after a wrapper's options may be values: those after options that are not known."""
    known = wrapper.valued.split(" ")[1:]
    return sum(
        word[:2] == "--" and "=" not in word and word not in known and word[2:] not in _FLAGS and len(word) > 2
        for word in own
    )


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
        elif word[:1] == "-" and (len(word) > 1 or wrapper.assigns):  # `env -` clears the environment
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


# --- how they are followed ------------------------------------------------------------------------


def run_wrapper(shell: Shell, command: Command) -> None:
    wrapper = WRAPPERS[command.program]
    words, assignments = wrapped(wrapper, command.args)
    if assignments:
        command.assignments.update(assignments)
        shell.note_environment(command, list(assignments))
    if not words:
        return
    via = " ".join([command.program, *[word for word in command.args[:3] if word in wrapper.subcommands]])
    if command.program in ELSEWHERE:
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


ELSEWHERE = frozenset({
    "sudo", "doas", "pkexec", "gosu", "su-exec", "docker", "podman", "nerdctl", "kubectl", "oc", "lxc", "incus",
    "machinectl", "ssh", "mosh", "autossh", "nsenter", "chroot",
})  # fmt: skip
"""What these run has an environment of its own."""


def run_sudo(shell: Shell, command: Command) -> None:
    words, _ = wrapped(WRAPPERS[command.program], command.args)
    own = _without(command, words)
    if command.program == "sudo" and not words and own.has("-s", "--shell", "-i", "--login"):
        shell.program(["sh"], "sudo", command)
    elif not own.has("-e", "--edit", "-l", "--list"):
        run_wrapper(shell, command)


def _without(command: Command, words: list[str]) -> Command:
    """A command without the words of the one that it runs, whose options are none of its own."""
    own = command.args[: len(command.args) - len(words)]
    return Command([command.program, *own], command.folder, command.via, command.sure)


def run_env(shell: Shell, command: Command) -> None:
    """`env -S 'rm x'` splits its text into words."""
    words, _ = wrapped(WRAPPERS["env"], command.args)
    own = _without(command, words)
    for at, word in enumerate(own.args):
        if re.match(r"-\w*S|--s", word):
            text = word.partition("=")[2] if word.startswith("--") else word.partition("S")[2]
            before, rest = command.args[:at], command.args[at + 1 :]
            if not text:
                text, rest = (rest or [""])[0], rest[1:]
            line = joined(
                ["env", *before, _ESCAPED_BLANK.sub(" ", text) if is_exact(text) else text, *map(quote, rest)]
            )
            shell.line(line, "env -S", command, apart=True, feed=command.source)
            if re.search(r"[$\\]", text) or not is_exact(line):
                command.sure = False
            return
        if word[:1] != "-":
            break
    for word in command.args:
        if found := _FUNCTION_OF_BASH.match(word):
            shell.line(f"{found[1]}{word[found.end() :]}", "env", command)
    if own.has("-i", "--ignore-environment", "-u", "--unset") or "-" in own.args[:1]:
        with shell.elsewhere():
            run_wrapper(shell, command)
    else:
        run_wrapper(shell, command)


_FUNCTION_OF_BASH = re.compile(r"BASH_FUNC_([^%=]+)(?:%%|\(\))=(?=\(\))")
_ESCAPED_BLANK = re.compile(r"\\[_tnrfv]")
"""Blanks in `env -S`: `env -S'rm\\_x'`."""


def run_command(shell: Shell, command: Command) -> None:
    at = 0
    while at < len(command.args) and re.fullmatch(r"-[a-zA-Z]+|--", command.args[at]):
        if "v" in command.args[at].lower():
            return
        at += 1
    if at < len(command.args):
        shell.program(command.args[at:], "command", command)
