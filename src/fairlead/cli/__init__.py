"""The command line: one module per command. A command imports what it needs when it runs."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from ..display import escape
from . import (
    approvals,
    check,
    completion,
    coverage,
    demo,
    diff,
    doctor,
    events,
    exceptions,
    explain,
    export,
    hooks,
    importing,
    init,
    install,
    log,
    packs,
    replay,
    run,
    schema,
    serve,
    show,
    stats,
    switch,
    test,
    tokens,
    trust,
    ui,
    upgrade,
    verify,
)

COMMANDS = (
    init, install, doctor, upgrade, check, hooks, packs, events, schema, trust, test, explain, exceptions, diff, replay,
    run, log,
    show, ui, stats, verify, export, serve, approvals, tokens, switch, coverage, importing, demo, completion,
)  # fmt: skip


class _ArgumentParser(argparse.ArgumentParser):
    """Ends a wrong call with exit code 1, because 2 means a denied step in `fairlead test`."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: {escape(message)}\n")


def make_parser() -> argparse.ArgumentParser:
    from .. import __version__

    parser = _ArgumentParser(
        prog="fairlead", description="One hook for every AI agent: check, try and trust your hooks."
    )
    parser.add_argument("--version", action="version", version=f"fairlead {__version__}")
    commands: Any = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in COMMANDS:
        command.add_to(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 1 if it could not be run."""
    _prepare_streams()
    try:
        try:
            return _run(argv)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has ended
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

    from ..display import print_json
    from ..errors import FairleadError

    try:
        with _where_installed(getattr(options, "managed", False)):
            return int(options.run(options))
    except FairleadError as error:
        # By attribute: on Windows, which has no `fcntl`, `config.ConfigError` cannot be imported.
        if getattr(options, "json", False) and (mistakes := getattr(error, "mistakes", None)) is not None:
            print_json({"mistakes": mistakes})
        from ..redaction.redactor import redact_text

        print(f"fairlead: {escape(redact_text(str(error)), keep_lines=True)}", file=sys.stderr)
        return 1


@contextmanager
def _where_installed(managed: bool) -> Iterator[None]:
    """Use the folders that fairlead was installed for, and warn if the environment names others.

    An administrator who runs the daemon of a machine (`managed`) sets its folders in the environment.
    """
    from .. import folders, paths

    if managed or os.name != "posix":
        yield
        return
    try:
        home, found = str(folders.home_folder()), folders.read_record()
    except paths.BadPath as error:
        _warn(f"{error}. The folders that the environment names are used")
        yield
        return
    for contradiction in folders.contradictions(found) if found is not None else ():
        _warn(contradiction)
    if (other := folders.other_home()) is not None:
        _warn(f"HOME is {home}, and this uses the folders there; fairlead is also installed in {other}, your home")
    with paths.fixed(found, home):
        yield


def _warn(what: str) -> None:
    print(f"fairlead: warning: {escape(what)}", file=sys.stderr)


def _prepare_streams() -> None:
    """Have all three streams, able to take any text; and end tidily on SIGTERM and SIGHUP."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (it stays open)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    with suppress(ValueError):  # not the main thread
        for end in ("SIGTERM", "SIGHUP"):
            if hasattr(signal, end):  # Windows has no SIGHUP
                signal.signal(getattr(signal, end), signal.default_int_handler)


def _silence_stdout() -> None:
    """Write nothing more to stdout, not even when the interpreter ends: its reader is gone."""
    with suppress(OSError, ValueError):  # stdout is not a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
