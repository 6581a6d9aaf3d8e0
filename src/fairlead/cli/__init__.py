"""The command line. One module per command; what a command needs is imported when it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from . import check, completion, events, hooks, init, schema, test, trust

COMMANDS = (init, check, hooks, events, schema, trust, test, completion)


class _Parser(argparse.ArgumentParser):
    """A wrong call ends with 1: 2 is what `fairlead test` says of a denied step."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: {message}\n")


def make_parser() -> argparse.ArgumentParser:
    from .. import __version__

    parser = _Parser(prog="fairlead", description="One hook for every AI agent: check, try and trust your hooks.")
    parser.add_argument("--version", action="version", version=f"fairlead {__version__}")
    commands: Any = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_to(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Ends with what it returns, 1 if it could not be run."""
    from ..errors import FairleadError
    from .show import escape

    options = make_parser().parse_args(argv)
    try:
        return int(options.run(options))
    except FairleadError as error:
        print(f"fairlead: {escape(str(error), keep_lines=True)}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # `| head` has seen enough
        sys.stderr.close()
        return 1
    except KeyboardInterrupt:
        return 130
