"""The command line. One module per command; what a command needs is imported when it runs."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from . import (
    approvals,
    check,
    completion,
    coverage,
    demo,
    doctor,
    events,
    export,
    hooks,
    importing,
    init,
    install,
    log,
    run,
    schema,
    serve,
    show,
    stats,
    switch,
    test,
    tokens,
    trust,
    upgrade,
    verify,
)
from .display import escape

COMMANDS = (
    init, install, doctor, upgrade, check, hooks, events, schema, trust, test, run, log, show, stats, verify, export,
    serve, approvals, tokens, switch, coverage, importing, demo, completion,
)  # fmt: skip


class _Parser(argparse.ArgumentParser):
    """A wrong call ends with 1: 2 is what `fairlead test` says of a denied step."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: {escape(message)}\n")


def make_parser() -> argparse.ArgumentParser:
    from .. import __version__

    parser = _Parser(prog="fairlead", description="One hook for every AI agent: check, try and trust your hooks.")
    parser.add_argument("--version", action="version", version=f"fairlead {__version__}")
    commands: Any = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in COMMANDS:
        command.add_to(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Ends with what it returns, 1 if it could not be run."""
    _prepare_streams()
    try:
        try:
            return _run(argv)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough
        _silence_stdout()
        return 1
    except OSError as error:
        _silence_stdout()
        print(f"fairlead: {escape(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _run(argv: Sequence[str] | None) -> int:
    parser = make_parser()
    options = parser.parse_args(argv)
    if not hasattr(options, "run"):
        parser.print_help()
        return 0

    from ..errors import FairleadError
    from .display import print_json

    try:
        with _where_installed(getattr(options, "managed", False)):
            return int(options.run(options))
    except FairleadError as error:
        # Told by its attribute: where there is no `fcntl`, as on Windows, `config` cannot be imported.
        if getattr(options, "json", False) and (mistakes := getattr(error, "mistakes", None)) is not None:
            print_json({"mistakes": mistakes})
        from ..redaction import redact_text

        print(f"fairlead: {escape(redact_text(str(error)), keep_lines=True)}", file=sys.stderr)
        return 1


@contextmanager
def _where_installed(managed: bool) -> Iterator[None]:
    """Use the folders that fairlead was installed for, and say so if the environment names others.

    The daemon of a machine (`managed`) is run by an administrator, who says where its folders are.
    """
    from .. import folders, places

    if managed or os.name != "posix":
        yield
        return
    try:
        home, found = str(folders.home_folder()), folders.read_record()
    except places.BadPlace as error:
        _warn(f"{error}. What the environment says is used")
        yield
        return
    for contradiction in folders.contradictions(found) if found is not None else ():
        _warn(contradiction)
    if (other := folders.other_home()) is not None:
        _warn(f"HOME is {home}, and this uses the folders there; fairlead is also installed in {other}, your home")
    with places.fixed(found, home):
        yield


def _warn(what: str) -> None:
    print(f"fairlead: warning: {escape(what)}", file=sys.stderr)


def _prepare_streams() -> None:
    """Whatever the streams are, they are there and take any text; and whoever is told to end, ends tidily."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (it stays open)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    with suppress(ValueError):  # not the main thread
        for end in ("SIGTERM", "SIGHUP"):
            if hasattr(signal, end):  # Windows has one of them
                signal.signal(getattr(signal, end), signal.default_int_handler)


def _silence_stdout() -> None:
    """Nobody reads it, so nothing more is written, not even when the interpreter ends."""
    with suppress(OSError, ValueError):  # it is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
