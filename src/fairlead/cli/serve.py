"""`fairlead serve`: run the daemon that decides for other programs."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ..display import print_json


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "serve",
        help="run the daemon that decides for other programs",
        description="Run the daemon on a unix socket of this user. It ends on Ctrl-C, SIGTERM and --stop. On SIGHUP, "
        "it reads all configuration again.",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--background", action="store_true", help="start the daemon in the background; return once it answers"
    )
    what.add_argument("--stop", action="store_true", help="end the running daemon after its open requests")
    what.add_argument("--status", action="store_true", help="show the state of the running daemon")
    parser.add_argument("--tcp", type=int, metavar="PORT", help="also answer on 127.0.0.1, to callers with a token")
    parser.add_argument("--idle", metavar="TIME", help="end after this time without a request (default: never)")
    parser.add_argument(
        "--managed", action="store_true", help="serve the other users of this machine, from /run/fairlead"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..errors import FairleadError
    from ..extras import require

    for module in ("uvicorn", "starlette", "httpcore"):
        require(module, "serve", "daemons")
    if options.status or options.stop:
        return _ask(options)
    if options.background:
        if options.tcp is not None or options.idle is not None or options.managed:
            raise FairleadError(
                "--tcp, --idle and --managed are for the foreground; run such a daemon under a supervisor"
            )
        from ..client import Client, start_daemon

        start_daemon()
        with Client(start=False) as client:
            print_json(client.health()) if options.json else print(f"Answering on {client.socket}")
        return 0
    return _serve(options)


def _ask(options: argparse.Namespace) -> int:
    from ..client import Client, DaemonError, default_socket

    try:
        with Client(start=False) as client:
            health = client.stop() if options.stop else client.health()
    except DaemonError as error:
        if options.stop and not default_socket().exists():
            print("There is no daemon.", file=sys.stderr)
            return 0
        print(f"fairlead: {error}", file=sys.stderr)
        return 1
    if options.json:
        print_json(health)
    else:
        print("The daemon finishes its open requests, and ends." if options.stop else _described(health))
    return 0 if health.get("status") in ("ok", "draining") else 2


def _described(health: dict[str, Any]) -> str:
    text = f"{health['status']}: process {health['pid']}, fairlead {health['version']}, up {health['uptime']:.0f} s, "
    counts = [_counted(health[f"{what}s"], what) for what in ("project", "session")]
    text += f"{', '.join(counts)}, {health['in_flight']} under way"
    text += "" if health.get("enforced", True) else "\nhooks are only watched: `fairlead enforce` ends that"
    return "\n".join([text, *(str(health[name]) for name in ("journal_error", "anchor_error") if health.get(name))])


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _serve(options: argparse.Namespace) -> int:
    import logging

    from ..amounts import seconds
    from ..errors import FairleadError
    from ..paths import MANAGED
    from ..server.daemon import DaemonSettings, serve, socket_path

    try:
        idle = None if options.idle is None else seconds(options.idle)
    except ValueError as error:
        raise FairleadError(str(error)) from None
    if options.tcp is not None and not 0 <= options.tcp < 65536:
        raise FairleadError("a port is a number from 0 to 65535")
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    place = str(MANAGED / socket_path().name) if options.managed else None
    serve(DaemonSettings(place, options.tcp, idle, options.managed), _ready)
    return 0


def _ready(sockets: list[Any]) -> None:
    for listening in sockets:
        name = listening.getsockname()
        print(f"Answering on {name if isinstance(name, str) else f'http://127.0.0.1:{name[1]}'}", flush=True)
