"""Runs the inspector: a process of its own on 127.0.0.1, until Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import shlex
import socket
import sys
import threading
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import uvicorn

from ..errors import FairleadError
from ..server.inspector import announced
from .access import Access, redirect_file
from .answer_code import AnswerCode
from .app import make_app

OPENED = 60.0
"""Seconds after which the file that opened the browser is removed, used or not."""
CONNECTIONS = 100


def serve(journal: Path, *, port: int = 0, opens: bool = True, may_approve: bool = False) -> None:
    """Serve the inspector of a journal, and open the browser.

    `may_approve`: a page may answer questions, with a code that is printed here.
    """
    access = Access()
    code = AnswerCode(partial(print, flush=True)) if may_approve else None
    listening = _listen(port)
    port = listening.getsockname()[1]
    app = make_app(journal, access, code=code)
    config = uvicorn.Config(
        app, log_level="critical", access_log=False, lifespan="off", server_header=False, date_header=False,
        limit_concurrency=CONNECTIONS, timeout_graceful_shutdown=1, proxy_headers=False, ws="none",
    )  # fmt: skip
    print("\n".join(instructions(access.address(port), port, os.environ)), flush=True)
    with announced(port), _renewed_on_enter(access, port), _opened(access, port) if opens else _not_opened():
        asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen(CONNECTIONS)  # a browser that is quicker than the server waits, and is not refused
    except OSError as error:
        listening.close()
        raise FairleadError(f"port {port} cannot be used: {error.strerror}; leave out --port for a free one") from None
    return listening


def instructions(address: str, port: int, environ: Mapping[str, str]) -> Iterator[str]:
    """What the terminal says: the address, and over ssh how to reach it."""
    yield f"The inspector is at {address}"
    yield "The address works once. Press Enter for another one, Ctrl-C to end."
    if connection := environ.get("SSH_CONNECTION", "").split():
        host = connection[2] if len(connection) > 2 else "this-machine"
        forward = f"ssh -N -L {port}:127.0.0.1:{port} {shlex.quote(host)}"
        yield f"You are connected over ssh. Where your browser is, run: {forward}"


# --- the browser ----------------------------------------------------------------------------------


@contextmanager
def _not_opened() -> Iterator[None]:
    yield


@contextmanager
def _opened(access: Access, port: int) -> Iterator[None]:
    """Open the browser with a file that leads to the address, and remove the file once it was used."""
    with redirect_file(access.address(port)) as path:
        done = threading.Event()
        threading.Thread(target=_remove_when_used, args=(access, path, done), daemon=True).start()
        threading.Thread(target=_open_browser, args=(path,), daemon=True).start()
        try:
            yield
        finally:
            done.set()


def _remove_when_used(access: Access, path: Path, done: threading.Event) -> None:
    for _ in range(int(OPENED / 0.2)):
        if access.is_used or done.wait(0.2):
            break
    path.unlink(missing_ok=True)


def _open_browser(path: Path) -> None:
    with suppress(Exception):  # the address was printed
        webbrowser.open(path.as_uri())


@contextmanager
def _renewed_on_enter(access: Access, port: int) -> Iterator[None]:
    """Print another address whenever the user presses Enter."""
    if sys.stdin is not None and sys.stdin.isatty():
        threading.Thread(target=_renew, args=(access, port), daemon=True).start()
    yield


def _renew(access: Access, port: int) -> None:
    with suppress(OSError, ValueError):
        for _ in sys.stdin:
            access.renew()
            print(f"Another address: {access.address(port)}", flush=True)
