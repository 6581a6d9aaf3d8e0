"""Programs that run a command on another machine or in a container: `ssh`, `docker`, `kubectl`."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from .commands import Command
from .line_options import run_line_options
from .shells import run_input
from .wrappers import WRAPPERS, Wrapper, run_wrapper, wrapped

if TYPE_CHECKING:
    from .reading import Shell


def run_ssh(shell: Shell, command: Command) -> None:
    """`ssh host LINE`, `ssh -o ProxyCommand=LINE`; without a line, the host runs what ssh reads."""
    for option, after in pairwise((*command.args, "")):
        found = re.fullmatch(r"-[A-Za-z]*?o(.*)", option, re.DOTALL)  # `-vo NAME=x` and `-voNAME=x`, too
        setting = "" if found is None else found[1] or after
        name, value = (*re.split("[= ]+", setting, maxsplit=1), "")[:2]
        if name.lower() in ("proxycommand", "localcommand", "knownhostscommand", "permitlocalcommand"):
            shell.line(value, f"{command.program} -o", command, apart=True)
    if command.program in ("scp", "sftp"):
        run_line_options(shell, command)
        return
    words, _ = wrapped(WRAPPERS[command.program], command.args)
    if words or not command.operands:
        run_wrapper(shell, command)
    elif command.program == "ssh":
        run_input(shell, command)


_BEFORE_SUBCOMMAND = {
    "container": 1, "-D": 1, "--debug": 1, "-H": 2, "--host": 2, "--context": 2, "-c": 2, "--config": 2, "-l": 2,
    "--log-level": 2,
}  # fmt: skip
"""How many words these take before what docker is to do."""


def run_docker(shell: Shell, command: Command) -> None:
    """`docker exec`, `docker compose run`, and an `--entrypoint`."""
    args = command.args
    if skipped := _BEFORE_SUBCOMMAND.get(args[0] if args else "", 0):
        same = Command([command.program, *args[skipped:]], command.folder, command.via, command.sure)
        same.read_from(command.source)
        same.inner = command.inner
        run_docker(shell, same)
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
    run_wrapper(shell, command)


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


def run_kubectl(shell: Shell, command: Command) -> None:
    if "--" in command.args and command.operands[:1] in (["run"], ["debug"], ["create"]):
        with shell.elsewhere():
            shell.program(
                command.args[command.args.index("--") + 1 :], f"{command.program} {command.operands[0]}", command
            )
    else:
        run_wrapper(shell, command)
