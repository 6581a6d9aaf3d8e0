"""Programs that run other commands, and what a shell's own commands do to the commands after them.

A carrier is a function of the shell that follows the line, and of the command. It finds the command or the line that
is run inside, and has the shell follow that, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from . import builtins
from .commands import Command
from .git import run_git
from .interpreters import INTERPRETER, run_awk, run_code, run_editor, run_make, run_sed
from .line_options import (
    LINE_OPTIONS,
    TERMINALS,
    run_after_dashes,
    run_any_line,
    run_bwrap,
    run_database,
    run_line_options,
    run_package,
    run_socat,
    run_terminal,
    run_tmux,
)
from .outputs import input_of
from .remotes import run_docker, run_kubectl, run_ssh
from .shells import SHELLS, run_at, run_crontab, run_eval, run_shell, run_source, run_su, run_trap
from .syntax import DECLARES
from .wrappers import WRAPPERS, run_command, run_env, run_sudo, run_wrapper
from .xargs import run_find, run_parallel, run_xargs

if TYPE_CHECKING:
    from .reading import Shell

Carrier: TypeAlias = "Callable[[Shell, Command], None]"


def run_windows(shell: Shell, command: Command) -> None:
    """`pwsh -c LINE`, `powershell.exe -enc BASE64`, `cmd.exe /c LINE`: read by the reader for PowerShell and cmd."""
    from . import windows  # most lines have none

    command.sure = False
    inner = windows.WindowsShell.inside(shell, "powershell")
    command.stdin = input_of(command)
    windows.run_shell(inner, command)
    shell.sound = shell.sound and inner.sound


CARRIERS: dict[str, Carrier] = {
    **dict.fromkeys(LINE_OPTIONS, run_line_options),
    **dict.fromkeys(WRAPPERS, run_wrapper),
    **dict.fromkeys(SHELLS, run_shell),
    **dict.fromkeys(DECLARES, builtins.declare),
    "sudo": run_sudo, "env": run_env, "command": run_command, "eval": run_eval, "source": run_source, ".": run_source,
    "trap": run_trap, **dict.fromkeys(("su", "runuser", "script", "flock", "sg", "newgrp", "capsh"), run_su),
    "cd": builtins.change_folder, "pushd": builtins.change_folder, "popd": builtins.change_folder,
    "chdir": builtins.change_folder, "unset": builtins.unset, "set": builtins.set_arguments, "shift": builtins.shift,
    "alias": builtins.alias, "read": builtins.read_words, "mapfile": builtins.read_lines,
    "readarray": builtins.read_lines, "getopts": builtins.get_options, "let": builtins.let,
    "printf": builtins.print_formatted, "enable": builtins.enable, "hash": builtins.enable,
    "complete": builtins.complete, "compgen": builtins.complete, "tee": builtins.write_copies,
    "test": builtins.test, "[": builtins.test,
    "xargs": run_xargs, "gxargs": run_xargs, "parallel": run_parallel,
    **dict.fromkeys(("find", "gfind", "fd", "fdfind", "bfs"), run_find),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk", "original-awk"), run_awk),
    **dict.fromkeys(("sed", "gsed"), run_sed),
    **dict.fromkeys(("make", "gmake"), run_make),
    **dict.fromkeys(("vim", "vi", "nvim", "ex", "view", "vimdiff", "emacs"), run_editor),
    **dict.fromkeys(("ed", "red", "less", "more", "most"), run_editor),
    "ssh": run_ssh, "autossh": run_ssh, "scp": run_ssh, "sftp": run_ssh,
    **dict.fromkeys(("docker", "podman", "nerdctl", "docker-compose", "podman-compose"), run_docker),
    **dict.fromkeys(("kubectl", "oc"), run_kubectl),
    "tmux": run_tmux, "screen": run_tmux, "socat": run_socat, "at": run_at, "batch": run_at, "crontab": run_crontab,
    **dict.fromkeys(("sqlite3", "mysql", "mariadb", "psql"), run_database),
    "npx": run_package, "npm": run_package,
    **dict.fromkeys(("gcloud", "gdb", "nix", "gh", "launchctl"), run_after_dashes),
    **dict.fromkeys(("concurrently", "hyperfine", "entr", "nodemon", "cargo"), run_any_line),
    **dict.fromkeys(("salt", "snap", "flatpak", "pee", "mispipe"), run_any_line),
    **dict.fromkeys(TERMINALS, run_terminal),
    "bwrap": run_bwrap,
    "git": run_git,
}  # fmt: skip


def _no_assignment(shell: Shell, command: Command) -> None:
    """`1A=2 rm x`: not a variable for sh, but for other shells. What follows counts as a command."""
    shell.program(command.args, command.program[:40], command)


def carrier_of(name: str) -> Carrier | None:
    """The carrier of a program whose name has a version or a suffix: python3.11, powershell.exe."""
    if "=" in name:
        return _no_assignment
    return run_code if INTERPRETER.fullmatch(name) else run_windows if _WINDOWS.fullmatch(name) else None


_WINDOWS = re.compile(r"(?:powershell|pwsh|cmd)(?:\.exe)?", re.IGNORECASE)
