"""Programs that take a line in an option or among their words: `tar --to-command`, `rsync -e`, `tmux`, `psql -c`."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from .commands import Command
from .outputs import input_of
from .words import Word, joined, unknown_of
from .wrappers import WRAPPERS, Wrapper, run_wrapper, wrapped

if TYPE_CHECKING:
    from .reading import Shell

LINE_OPTIONS: dict[str, str] = {
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


def run_line_options(shell: Shell, command: Command) -> None:
    """`tar --to-command=LINE`, `rsync -e LINE`, `nc -e LINE`"""
    names = LINE_OPTIONS[command.program].split()
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


def run_any_line(shell: Shell, command: Command) -> None:
    """`concurrently 'rm x' ls`, `hyperfine -p 'rm x' ls`: any word with a blank may be a line."""
    for word in command.args:
        if " " in word:
            shell.line(word, command.program, command, apart=True)
            command.sure = False
    if command.program in WRAPPERS:
        run_wrapper(shell, command)


_BWRAP = {
    **dict.fromkeys((
        "--bind", "--ro-bind", "--dev-bind", "--bind-try", "--ro-bind-try", "--dev-bind-try", "--symlink", "--setenv",
        "--file", "--bind-data", "--ro-bind-data", "--chmod",
    ), 2),
    **dict.fromkeys((
        "--chdir", "--proc", "--dev", "--tmpfs", "--mqueue", "--dir", "--unsetenv", "--uid", "--gid", "--hostname",
        "--args", "--cap-add", "--cap-drop", "--seccomp", "--perms", "--size", "--argv0", "--exec-label", "--lock-file",
        "--file-label", "--sync-fd", "--info-fd", "--json-status-fd", "--block-fd", "--userns", "--userns2", "--pidns",
    ), 1),
}  # fmt: skip
"""How many words the options of bwrap take."""


def run_bwrap(shell: Shell, command: Command) -> None:
    """`bwrap --bind / / WORDS`"""
    args, at = command.args, 0
    while at < len(args) and args[at][:1] == "-":
        at += 1 + _BWRAP.get(args[at], 0)
    shell.program(args[at:], "bwrap", command)


def run_after_dashes(shell: Shell, command: Command) -> None:
    """`gcloud compute ssh vm -- WORDS`, `nix run x -- WORDS`, `gdb --args WORDS`: and options with a line."""
    if command.program in LINE_OPTIONS:
        run_line_options(shell, command)
    for sign in ("--args", "--"):
        if sign in command.args and (command.program not in ("gh",) or "ssh" in command.operands):
            words = command.args[command.args.index(sign) + 1 :]
            if command.runs("nix run"):  # `nix run nixpkgs#git -- push`
                words = ["".join(command.operands[1:2]).rpartition("#")[2], *words]
            shell.program(words, command.program, command)
            break
    if command.operands[:2] == ["alias", "set"]:
        shell.line(joined(command.operands[3:]).lstrip("!"), command.program, command, apart=True)


TERMINALS = (
    "xterm", "uxterm", "urxvt", "rxvt", "konsole", "gnome-terminal", "xfce4-terminal", "mate-terminal", "terminator",
    "tilix", "alacritty", "st", "ghostty", "lxterminal", "x-terminal-emulator",
)  # fmt: skip
_RUNS_IN_TERMINAL = frozenset({"-e", "-x", "--command", "--execute", "--"})


def run_terminal(shell: Shell, command: Command) -> None:
    """`xterm -e WORDS`, `gnome-terminal -- WORDS`, `konsole -e LINE`, `xfce4-terminal --command=LINE`"""
    for at, word in enumerate(command.args):
        words = command.args[at + 1 :]
        if word in _RUNS_IN_TERMINAL and words:
            if len(words) == 1:
                shell.line(words[0], f"{command.program} {word}", command, apart=True)
            else:
                shell.program(words, f"{command.program} {word}", command)
            return
        if word.startswith(("--command=", "--execute=")):
            shell.line(word.partition("=")[2], command.program, command, apart=True)


def run_tmux(shell: Shell, command: Command) -> None:
    """`tmux new-session -d LINE`, `tmux send-keys LINE Enter`, `screen -dm WORDS`, `screen -X stuff LINE`"""
    args = command.args
    typed = next((at for at, word in enumerate(args) if word in ("send-keys", "send", "stuff")), None)
    if typed is not None:
        keys = [word for word in args[typed + 1 :] if word[:1] != "-"]
        if len(keys) > 1:
            keys.append("".join(_KEYS.get(word, word) for word in keys))
        for word in keys:
            shell.line(word, command.program, command, apart=True)
        command.sure = False
        return
    words, _ = wrapped(_TMUX if command.program == "tmux" else Wrapper("cehpsSt"), args)
    if len(words) > 1:
        shell.program(words, command.program, command)
    elif words:
        shell.line(words[0], command.program, command, apart=True)


_KEYS = {"Enter": "\n", "C-m": "\n", "Space": " ", "Tab": "\t", "C-j": "\n"}
_TMUX = Wrapper(
    "cefFLnsStxy",
    subcommands=(
        "new-session", "new", "new-window", "neww", "split-window", "splitw", "respawn-pane", "respawnp",
        "respawn-window", "respawnw", "run-shell", "run", "if-shell", "pipe-pane", "pipep", "display-popup", "popup",
    ),
)  # fmt: skip


def run_socat(shell: Shell, command: Command) -> None:
    """`socat - EXEC:rm`, `SYSTEM:rm`"""
    for word in command.operands:
        for address in word.split("!!"):
            kind, _, rest = address.partition(":")
            if kind.lower() in ("exec", "system", "shell"):
                shell.line(rest.partition(",")[0], "socat", command, apart=True)
                command.sure = False


def run_database(shell: Shell, command: Command) -> None:
    """`sqlite3 db '.shell rm x'`, `psql -c '\\! rm x'`, and the same in what they read."""
    if command.program in LINE_OPTIONS:
        run_line_options(shell, command)
    texts = (
        [*command.operands[1:], input_of(command) or ""] if command.program == "sqlite3" else [input_of(command) or ""]
    )
    for text in texts:
        for found in re.finditer(r"(?:^|[\n;])\s*(?:\.(?:shell|system)|\\!|system)[ \t]+([^\n]+)", text):
            shell.line(Word(found[1], ("code",)), command.program, command, apart=True)


def run_package(shell: Shell, command: Command) -> None:
    """`npx WORDS`, `npm exec -- WORDS`, `npx -c LINE`"""
    if command.program in LINE_OPTIONS:
        run_line_options(shell, command)
    if command.operands[:2] in (["pkg", "set"], ["set-script"]):
        for word in command.operands[2:]:
            name, _, line = word.partition("=")
            if name.startswith("scripts."):  # which `npm run` runs
                shell.line(line, "npm scripts", command, apart=True)
        return
    if not command.has("-c", "--call"):
        run_wrapper(shell, command)
