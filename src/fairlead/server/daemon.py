"""The daemon as a process: one per user and protocol, independent of its starter.

The daemon holds a lock while it lives. If several start at once, one gets the lock. A free lock shows that a socket was
left by a killed daemon.
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
from ..config.hook_entry import variables
from ..config.layers import Sources, documents, find, read
from ..config.trust import Trust
from ..errors import FairleadError
from ..folders import as_json, installed_folders
from ..journal import Journal
from ..paths import SOCKET_LIMIT, fixed_folders, make_private, runtime_folder, state_folder
from ..redaction.logs import logger
from ..runners.environment import PASSED
from .app import make_app
from .protocol import protocol
from .service import PROTOCOL, Service
from .tokens import Tokens

IDLE = 1800.0
"""Seconds without a request after which a daemon ends."""
GRACE = 20.0
"""Seconds that requests under way have to finish when the daemon ends."""
CHECK_INTERVAL = 10.0
"""Seconds between checks for the end of the daemon, and for what launchers did without an answer."""
CONNECTIONS = 2000
KEEP_ALIVE = 30
"""Seconds after which an idle connection is closed."""
START_TIMEOUT = 15.0
"""Seconds in which a new daemon must answer."""
TAKEOVER_TIMEOUT = 2 * GRACE + 5
"""Seconds in which an older daemon must end."""
_ANY_VALUE = "x" * 64
"""Stands for the value of a variable that a request will bring, while the user's file is checked."""


class DaemonSettings(msgspec.Struct, frozen=True):
    """The options of a daemon."""

    socket: str | None = None  # None: the user's own
    tcp: int | None = None  # a port on loopback
    idle: float | None = IDLE
    managed: bool = False  # other users of this machine may dispatch


class AlreadyRunning(FairleadError):
    """A daemon is running already."""


def socket_path(protocol: int = PROTOCOL) -> Path:
    """The socket of the user's daemon of a protocol."""
    return runtime_folder() / f"v{protocol}.sock"


def serve(settings: DaemonSettings, on_ready: Any = None) -> None:
    """Run the daemon until it is to end. Raises `AlreadyRunning` if there is one."""
    path = Path(settings.socket) if settings.socket else socket_path()
    if len(os.fsencode(path)) > SOCKET_LIMIT:
        raise FairleadError(
            f"{path} is too long for a socket; set XDG_RUNTIME_DIR or FAIRLEAD_STATE_DIR to a shorter one"
        )
    folder = _socket_folder(path, settings.managed)
    with _lock(folder, path):
        _enter_background()
        _drain_older(path)
        try:
            asyncio.run(_run(settings, path, on_ready))
        finally:
            with contextlib.suppress(OSError):
                path.unlink()  # under the lock, so the socket is still this daemon's


def _socket_folder(path: Path, managed: bool) -> Path:
    if not managed:
        return make_private(path.parent)
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    status = path.parent.lstat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise FairleadError(f"{path.parent} must belong to this user, and no other user may write to it; chmod go-w it")
    return path.parent


@contextlib.contextmanager
def _lock(folder: Path, path: Path) -> Iterator[None]:
    """Hold the daemon's lock. A newer fairlead stops an older daemon and takes over."""
    descriptor = os.open(folder / f"{path.name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        until = time.monotonic() + TAKEOVER_TIMEOUT
        while not _try_lock(descriptor):
            running = _running_health(path)
            if running is not None and running.get("status") != "draining":
                if not _is_older(str(running.get("version"))):
                    raise AlreadyRunning(f"a daemon is running already (process {running.get('pid')})")
                _ask_to_stop(path)
            if time.monotonic() > until:
                raise AlreadyRunning("another daemon holds the lock and does not answer; end its process")
            time.sleep(0.05)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _running_health(path: Path) -> dict[str, Any] | None:
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
    """Ask the daemons of older protocols to finish their requests and end."""
    for older in range(1, PROTOCOL):
        older_socket = path.with_name(f"v{older}.sock")
        if older_socket.exists():
            _ask_to_stop(older_socket)


def _enter_background() -> None:
    """Leave the starter's folder, and drop variables that hooks may not see."""
    os.chdir("/")
    os.umask(0o077)
    sys.setswitchinterval(0.0005)  # so that the journal's thread does not delay a dispatch
    if (folders := fixed_folders()) is not None:
        os.environ.update(folders.env)
    kept = {*PASSED, "XDG_STATE_HOME", "XDG_DATA_HOME", "PYTHONSAFEPATH", "PYTHONUNBUFFERED", "SSL_CERT_FILE"}
    for name in list(os.environ):
        if name == "FAIRLEAD_TOKEN" or (name not in kept and not name.startswith(("FAIRLEAD_", "LC_"))):
            del os.environ[name]


def _listen(path: Path, managed: bool) -> socket.socket:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()  # left by a killed daemon, since the lock was free
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
    """A server that leaves signals to the daemon."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _run(settings: DaemonSettings, path: Path, on_ready: Any) -> None:
    folder = make_private(state_folder())
    users = frozenset({os.geteuid(), *([0] if settings.managed else [])})
    service = Service(folder, _journal())
    service.recover()
    await service.import_unanswered_lines()
    # The sockets open last, so that no caller connects to a daemon that fails to start.
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
    reloads: set[asyncio.Task[Any]] = set()

    def on_sighup() -> None:
        reloads.add(task := loop.create_task(service.projects.reload()))
        task.add_done_callback(reloads.discard)

    loop.add_signal_handler(signal.SIGHUP, on_sighup)
    gc.collect()
    gc.freeze()  # these objects stay, so scanning them for garbage would only delay requests
    serving = loop.create_task(server.serve(sockets=sockets))
    reporting = loop.create_task(_report_ready(server, on_ready, sockets))
    try:
        await _serve_until_end(service, ending, serving, settings.idle)
        await service.drain(GRACE)
        server.should_exit = True
        await serving
    finally:
        reporting.cancel()
        await service.aclose()


async def _report_ready(server: _Server, on_ready: Any, sockets: list[socket.socket]) -> None:
    while not server.started:
        await asyncio.sleep(0.005)
    if on_ready is not None:
        on_ready(sockets)


async def _serve_until_end(
    service: Service, ending: asyncio.Event, serving: asyncio.Task[None], idle: float | None
) -> None:
    while not ending.is_set() and not serving.done():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ending.wait(), 1.0 if idle is None else min(max(idle / 10, 0.05), CHECK_INTERVAL))
        await service.import_unanswered_lines()
        if idle is not None and service.idle >= idle and not service.approvals.questions():
            logger.info("no request for %g s: ending", idle)
            return


def _journal() -> Journal | None:
    """The journal that the system's and the user's files configure.

    Variables that hooks use need not be set here, because each request brings its own.
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


def start(timeout: float = START_TIMEOUT) -> None:
    """Start the user's daemon in the background unless it runs, and wait until it answers."""
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
        folders = [] if installed is None else [as_json(installed)]
        process = Popen(  # noqa: S603 (argv, no shell)
            [sys.executable, "-P", "-m", "fairlead.server", *folders], stdin=DEVNULL, stdout=written, stderr=written,
            cwd="/", env=environ, start_new_session=True, close_fds=True,
        )  # fmt: skip
    threading.Thread(target=process.wait, name="fairlead-daemon", daemon=True).start()  # reaps the process
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
    """Whether a daemon answers that is not about to end."""
    running = _running_health(path)
    return running is not None and running.get("status") != "draining"


def _rotate(log: Path) -> None:
    with contextlib.suppress(OSError):
        if log.stat().st_size > 1 << 20:
            os.replace(log, log.with_suffix(".log.old"))
