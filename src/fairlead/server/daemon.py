"""The daemon as a process: one per user and protocol, under a lock, away from whatever started it.

The lock is held for as long as the daemon lives, so that of any number that start at once, one wins; and what a
daemon that was killed has left behind is recognised by nobody holding the lock.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import gc
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import uvicorn

from .. import __version__
from ..config.document import ConfigError
from ..config.layers import Sources, documents, find, read
from ..config.reading import variables
from ..config.trust import Trust
from ..errors import FairleadError
from ..folders import as_json, installed_folders
from ..journal import Journal
from ..logs import logger
from ..places import SOCKET_LIMIT, fixed_folders, make_private, runtime_folder, state_folder
from ..runners.surroundings import PASSED
from .app import make_app
from .protocol import protocol
from .service import PROTOCOL, Service
from .tokens import Tokens

IDLE = 1800.0
"""Seconds after which a daemon that nobody asked anything ends."""
GRACE = 20.0
"""Seconds that what is under way has, when the daemon is to end."""
LOOK = 10.0
"""Seconds between looks whether the daemon is to end, and what launchers did without an answer."""
CONNECTIONS = 2000
KEEP_ALIVE = 30
"""Seconds for which a connection is kept on which nothing is asked."""
START = 15.0
"""Seconds in which a daemon must have come up."""
TAKEOVER = 2 * GRACE + 5
"""Seconds in which an older one must have gone."""
_ANY_VALUE = "x" * 64
"""Stands for what a request will bring in a variable, while the user's file is checked."""


class Settings(msgspec.Struct, frozen=True):
    """How a daemon is run."""

    socket: str | None = None  # another path than the user's own
    tcp: int | None = None  # a port on loopback
    idle: float | None = IDLE
    managed: bool = False  # other users of this machine may dispatch


class Running(FairleadError):
    """There is a daemon already."""


def socket_path(protocol: int = PROTOCOL) -> Path:
    """Where the user's daemon of a protocol is asked."""
    return runtime_folder() / f"v{protocol}.sock"


def serve(settings: Settings, on_ready: Any = None) -> None:
    """Be the daemon, until told to end. Raises `Running` if there is one."""
    path = Path(settings.socket) if settings.socket else socket_path()
    if len(os.fsencode(path)) > SOCKET_LIMIT:
        raise FairleadError(
            f"{path} is too long for a socket; set XDG_RUNTIME_DIR or FAIRLEAD_STATE_DIR to a shorter one"
        )
    folder = _place(path, settings.managed)
    with _lock(folder, path):
        _settle_in()
        _drain_older(path)
        try:
            asyncio.run(_run(settings, path, on_ready))
        finally:
            with contextlib.suppress(OSError):
                path.unlink()  # while nobody else can have put another there


def _place(path: Path, managed: bool) -> Path:
    if not managed:
        return make_private(path.parent)
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    status = path.parent.lstat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise FairleadError(f"{path.parent} must be this user's, and nobody else's to write; chmod go-w it")
    return path.parent


@contextlib.contextmanager
def _lock(folder: Path, path: Path) -> Iterator[None]:
    """Hold the daemon's lock. A newer fairlead asks an older one to end, and takes over."""
    descriptor = os.open(folder / f"{path.name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        until = time.monotonic() + TAKEOVER
        while not _try(descriptor):
            running = _running(path)
            if running is not None and running.get("status") != "draining":
                if not _is_older(str(running.get("version"))):
                    raise Running(f"a daemon is running already (process {running.get('pid')})")
                _ask_to_stop(path)
            if time.monotonic() > until:
                raise Running("another daemon holds the lock, and does not answer")
            time.sleep(0.05)
        yield
    finally:
        os.close(descriptor)


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _running(path: Path) -> dict[str, Any] | None:
    from ..client import Client, DaemonError

    try:
        with Client(path, start=False) as client:
            return client.health()
    except DaemonError:
        return None


def _ask_to_stop(path: Path) -> None:
    from ..client import Client, DaemonError

    with contextlib.suppress(DaemonError), Client(path, start=False) as client:
        client.stop()


def _is_older(version: str) -> bool:
    def parts(text: str) -> list[int]:
        return [int(part) for part in text.split(".") if part.isdigit()]

    return parts(version) < parts(__version__)


def _drain_older(path: Path) -> None:
    """Daemons of older protocols finish what they have, and end."""
    for older in range(1, PROTOCOL):
        place = path.with_name(f"v{older}.sock")
        if place.exists():
            _ask_to_stop(place)


def _settle_in() -> None:
    """Away from whatever started it: no folder, no environment but what hooks may see anyway."""
    os.chdir("/")
    os.umask(0o077)
    sys.setswitchinterval(0.0005)  # the journal's thread must not hold up a dispatch
    if (folders := fixed_folders()) is not None:
        os.environ.update(folders.env)
    kept = {*PASSED, "XDG_STATE_HOME", "XDG_DATA_HOME", "PYTHONSAFEPATH", "PYTHONUNBUFFERED", "SSL_CERT_FILE"}
    for name in list(os.environ):
        if name == "FAIRLEAD_TOKEN" or (name not in kept and not name.startswith(("FAIRLEAD_", "LC_"))):
            del os.environ[name]


def _listen(path: Path, managed: bool) -> socket.socket:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()  # of a daemon that was killed: its lock was free
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(path))
    path.chmod(0o666 if managed else 0o600)
    listening.listen(1024)
    return listening


def _tcp(port: int | None) -> list[socket.socket]:
    if port is None:
        return []
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # or each answer waits 40 ms for an ACK
    try:
        listening.bind(("127.0.0.1", port))
    except OSError as error:
        raise FairleadError(f"port {port} cannot be used: {error.strerror}") from None
    listening.listen(1024)
    return [listening]


class _Server(uvicorn.Server):
    """A server whose signals are ours."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _run(settings: Settings, path: Path, on_ready: Any) -> None:
    folder = make_private(state_folder())
    users = frozenset({os.geteuid(), *([0] if settings.managed else [])})
    service = Service(folder, _journal())
    service.recover()
    await service.take_in_unanswered()
    # Nobody is to knock at the door of a daemon that may not come up.
    sockets = [_listen(path, settings.managed), *_tcp(settings.tcp)]
    ending = asyncio.Event()
    app = make_app(service, Tokens(folder), ending.set, users)
    server = _Server(
        uvicorn.Config(
            app, http=protocol(None if settings.managed else users), ws="none", lifespan="off", log_config=None,
            access_log=False, server_header=False, date_header=False, limit_concurrency=CONNECTIONS,
            timeout_graceful_shutdown=int(GRACE), backlog=1024, proxy_headers=False, timeout_keep_alive=KEEP_ALIVE,
        )
    )  # fmt: skip
    loop = asyncio.get_running_loop()
    for end in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(end, ending.set)
    again: set[asyncio.Task[Any]] = set()

    def hang_up() -> None:
        again.add(task := loop.create_task(service.projects.reload()))
        task.add_done_callback(again.discard)

    loop.add_signal_handler(signal.SIGHUP, hang_up)
    gc.collect()
    gc.freeze()  # what is here now stays, so looking for garbage in it would only hold up requests
    serving = loop.create_task(server.serve(sockets=sockets))
    tell = loop.create_task(_when_up(server, on_ready, sockets))
    try:
        await _until_over(service, ending, serving, settings.idle)
        await service.drain(GRACE)
        server.should_exit = True
        await serving
    finally:
        tell.cancel()
        await service.aclose()


async def _when_up(server: _Server, on_ready: Any, sockets: list[socket.socket]) -> None:
    while not server.started:
        await asyncio.sleep(0.005)
    if on_ready is not None:
        on_ready(sockets)


async def _until_over(service: Service, ending: asyncio.Event, serving: asyncio.Task[None], idle: float | None) -> None:
    while not ending.is_set() and not serving.done():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ending.wait(), 1.0 if idle is None else min(max(idle / 10, 0.05), LOOK))
        await service.take_in_unanswered()
        if idle is not None and service.idle >= idle and not service.pending.questions():
            logger.info("nobody has asked anything for %g s: ending", idle)
            return


def _journal() -> Journal | None:
    """The journal that the system's and the user's files ask for.

    Whether the variables are set that hooks name is no matter of the daemon: each request brings its own.
    """
    found = find("/")
    sources = Sources(found.system, found.user)
    config = read(sources)
    if config.mistakes:
        named = {name for document in documents(sources, Trust()) for name in variables(document.data)}
        mistakes = read(sources, environ=dict.fromkeys(named, _ANY_VALUE) | dict(os.environ)).mistakes
        if mistakes:
            raise ConfigError(mistakes)
    config.extend_redaction()
    return config.open_journal()


# --- starting one -------------------------------------------------------------------------------


def start(timeout: float = START) -> None:
    """Start the user's daemon in the background, if it is not there, and wait until it answers."""
    from subprocess import DEVNULL, Popen

    installed = installed_folders()
    folder = make_private(state_folder() if installed is None else Path(installed.state))
    path = socket_path() if installed is None else Path(installed.run, socket_path().name)
    log = folder / "daemon.log"
    _rotate(log)
    environ = {
        name: value
        for name, value in (os.environ.items() if installed is None else installed.env.items())
        if name in PASSED or (name.startswith(("FAIRLEAD_", "XDG_", "LC_")) and name != "FAIRLEAD_TOKEN")
    }
    environ["PYTHONSAFEPATH"] = "1"
    with log.open("ab") as written:
        log.chmod(0o600)
        told = [] if installed is None else [as_json(installed)]
        process = Popen(  # noqa: S603 (argv, no shell)
            [sys.executable, "-P", "-m", "fairlead.server", *told], stdin=DEVNULL, stdout=written, stderr=written,
            cwd="/", env=environ, start_new_session=True, close_fds=True,
        )  # fmt: skip
    threading.Thread(target=process.wait, name="fairlead-daemon", daemon=True).start()  # it is nobody's to wait for
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        if _serves(path):
            return
        if process.returncode not in (None, 0):
            break
        time.sleep(0.02)
    if not _serves(path):
        raise FairleadError(f"the daemon did not start; {log} says why")


def _serves(path: Path) -> bool:
    """Whether there is a daemon that is not about to end."""
    running = _running(path)
    return running is not None and running.get("status") != "draining"


def _rotate(log: Path) -> None:
    with contextlib.suppress(OSError):
        if log.stat().st_size > 1 << 20:
            os.replace(log, log.with_suffix(".log.old"))
