"""`fairlead completion`: a script that completes commands and options in a shell."""

from __future__ import annotations

import argparse
from typing import Any


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "completion",
        help="print a completion script for your shell",
        description='Print a completion script. For bash: eval "$(fairlead completion bash)" in ~/.bashrc. '
        "For fish: fairlead completion fish > ~/.config/fish/completions/fairlead.fish",
    )
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh", "fish"))
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..errors import FairleadError
    from ..extras import install_command
    from . import make_parser

    try:
        import shtab
    except ImportError:
        problem = f"completion needs packages that are not installed; run: {install_command('completion')}"
        raise FairleadError(problem) from None
    print(shtab.complete(make_parser(), shell=options.shell))
    return 0
